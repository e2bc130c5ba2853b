"""Probabilistic PCA: principal components as a density, with missing entries and doubts.

A row has few hidden coordinates z and is seen with noise,

    x = Wz + μ + ε,   z ~ N(0, I_k),   ε ~ N(0, σ²I_d),   so   x ~ N(μ, WWᵀ + σ²I).

Without holes the likelihood has its maximum in closed form [1]: with λᵢ and qᵢ the eigenvalues and eigenvectors of the
covariance (divisor n),

    σ² = mean of λ_{k+1}, …, λ_d,   W = Q(Λ − σ²I)^{1/2}   up to a rotation of z,
    log p = −n/2 [d log 2π + Σ_{i≤k} log λᵢ + (d − k) log σ² + d],

and every other stationary point is a saddle. With holes there is no such formula, and EM finds it: the posterior of z given the
seen entries of a row is exact (`ppca_kernels`), each column is then regressed on z over the rows that show it, and σ² is what
is left,

    (w_j, μ_j) = argmin Σ E[(x_j − w_j·z − μ_j)²],   σ² = Σ_seen E[(x_j − w_j·z − μ_j)²] / number of seen entries.

To fill the holes first and take components of the result would find too little noise, and too much of what is common.

[1] Tipping & Bishop, J. R. Stat. Soc. B 61 (1999).
"""

from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from lemmata.core.data import WIDE
from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.decomposition import ppca_kernels as kernels
from lemmata.decomposition.ppca_certificate import certificate
from lemmata.decomposition.spectrum import route, spectrum_of, upright
from lemmata.mixture.em import LatentModel
from lemmata.mixture.finite import FittedByEM
from lemmata.mixture.gaussian import Table
from lemmata.mixture.missing import holes_block

SMALLEST = 1e-12  # noise variance, as a share of the mean variance of the columns: less cannot be told from none
WEAK = 0.1  # of the noise variance, that a coordinate starts with at least: with nothing it would never begin


class Scores(NamedTuple):
    """The posterior of the hidden coordinates of rows: their means (n, k) and covariances (n, k, k)."""

    mean: np.ndarray
    covariance: np.ndarray


def owned(X):
    """Give rows that may be written to: for others the same kernel is compiled anew, and may round in another order."""
    return X if X.flags.writeable else X.copy()


def posterior_block(X, weight, components):
    """Posterior mean of z for each row of a block, and the log-density of what is seen of it."""
    scores, density = np.empty((len(X), components[1].shape[1])), np.empty(len(X))
    kernels.posteriors(owned(X), *components, scores, np.empty((0, 0, 0)), density)
    return scores, density


def scores_block(X, weight, components):
    """Posterior mean and covariance of z for each row of a block."""
    n, k = len(X), components[1].shape[1]
    scores, covariances = np.empty((n, k)), np.empty((n, k, k))
    kernels.posteriors(owned(X), *components, scores, covariances, np.empty(n))
    return scores, covariances


def fill_block(X, weight, components):
    """Rows of a block with the mean of each hole given the seen entries, and the variance of each entry around it."""
    out, variance = np.empty(X.shape), np.empty(X.shape)
    kernels.fill(owned(X), *components, out, variance)
    return out, variance


def together_block(X, weight, mean):
    """Products of offsets from the mean, over rows that show both columns, and the weight of these rows."""
    seen = ~np.isnan(X)
    away, share = np.where(seen, X - mean, 0.0), seen.astype(float)
    heavy = 1.0 if weight is None else weight[:, None]
    return (heavy * away).T @ away, (heavy * share).T @ share


def least_noise(mean, variance):
    """Give the floor under the noise variance: SMALLEST, and the rounding of the table."""
    rounding = (np.finfo(float).eps * float(np.abs(mean).max(initial=0.0))) ** 2
    return max(SMALLEST * variance, rounding, np.finfo(float).tiny)


class _Factors(LatentModel):
    """The steps of EM; parameters are (mean, loadings (d, k), noise variance).

    Parameters
    ----------
    k : Number of coordinates.
    noise : Noise variance that is given, or None.
    table : The `Table` to fit.
    """

    name = "EM of probabilistic PCA"

    def __init__(self, k, noise, table):
        self.k, self.noise, self.table = k, noise, table
        variances = np.diag(table.covariance)
        self.floor = least_noise(table.mean, float(variances.mean()))
        self.unit = np.sqrt(np.maximum(variances, self.floor))

    def start(self, blocks, rng):
        """Take the components of the covariances of the rows that show both columns."""
        d = blocks.n_columns
        if d > WIDE:
            return (
                self.table.mean,
                self.unit[:, None] * rng.standard_normal((d, self.k)) / np.sqrt(self.k),
                float(self.unit.mean() ** 2),
            )
        products, weights = blocks.reduce(together_block, self.table.mean)
        values, vectors = np.linalg.eigh(products / np.maximum(weights, 1.0))
        values, vectors = values[::-1], vectors[:, ::-1]
        noise = max(float(values[self.k :].mean()), self.floor) if self.noise is None else self.noise
        return self.table.mean, vectors[:, : self.k] * np.sqrt(np.maximum(values[: self.k] - noise, WEAK * noise)), noise

    def prepare(self, parameters):
        """Add the products of the loadings of each column."""
        return prepared(*parameters)

    def e_step(self, X, weight, components):
        """Sum what the regressions of the columns on z need."""
        d, k = components[1].shape
        p = k * (k + 1) // 2
        statistics = np.zeros((d, p)), np.zeros((d, p + k + 1)), np.zeros((d, k + 1)), np.zeros(d)
        return *kernels.expectation(owned(X), weight, *components, *statistics), *statistics

    def m_step(self, statistics, parameters):
        """Regress each column on z where it is seen: the change of (w, μ) solves E[z̃z̃ᵀ] δ = E[(x − μ − w·z) z̃], z̃ = (z, 1)."""
        (mean, loadings, noise), (_, seen, spread, second, slope, misfit) = parameters, statistics
        hidden = _whole(spread, self.k)
        moments = _whole(second, self.k + 1)
        moments[:, :-1, :-1] += hidden
        blurred = np.einsum("jab,jb->ja", hidden, loadings)
        slope = slope - np.column_stack([blurred, np.zeros(len(mean))])
        change = np.linalg.solve(moments, slope[:, :, None])[:, :, 0]
        if self.noise is None:
            left = misfit + (blurred * loadings).sum(axis=1) - (change * slope).sum(axis=1)
            noise = max(float(left.sum()) / seen, self.floor)
        return mean + change[:, -1], loadings + change[:, :-1], noise

    def pack(self, parameters):
        """Measure everything in units of the columns."""
        mean, loadings, noise = parameters
        loadings = loadings / self.unit[:, None]
        return np.concatenate([(mean - self.table.mean) / self.unit, loadings.ravel(), [np.log(noise)]])

    def unpack(self, vector):
        """Undo `pack`."""
        d = len(self.unit)
        noise = self.noise or float(np.exp(vector[-1]))
        if not (self.floor <= noise < np.inf and np.isfinite(vector).all()):
            return None
        return self.table.mean + vector[:d] * self.unit, vector[d:-1].reshape(d, self.k) * self.unit[:, None], noise


def prepared(mean, loadings, noise):
    """Give what the kernels need of the parameters."""
    loadings = np.ascontiguousarray(loadings)
    return mean, loadings, kernels.products(loadings), float(noise)


def _whole(halves, k):
    """Give symmetric matrices from their lower halves."""
    rows, columns = np.tril_indices(k)
    whole = np.empty((len(halves), k, k))
    whole[:, rows, columns] = whole[:, columns, rows] = halves
    return whole


class ProbabilisticPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittedByEM):
    """Fit a Gaussian of few hidden coordinates and noise to rows, in which entries may be missing (NaN).

    Parameters
    ----------
    n_components : Number of hidden coordinates, fewer than columns.
    noise_variance : Variance of the noise, if it is known; None to estimate it.
    method : "closed" for the formula, which needs complete rows; "em" for EM; "auto" for EM where entries are missing.
    tol : Stop when a plain EM step changes the mean log-likelihood of a row by no more.
    max_iter : Passes of EM over the rows at most.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM.
    random_state : Seed of `sample`.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    mean_ : (n_features,)
    components_ : (n_components, n_features), Wᵀ: orthogonal rows, the longest first; a coordinate 1 adds its row to the mean.
    noise_variance_ : σ².
    lower_bound_ : Mean log-likelihood of a row (of its seen entries).
    n_iter_ : Passes of EM, or 1.
    converged_ : Whether they met tol.
    trace_ : Mean log-likelihood at each pass.

    Examples
    --------
    >>> nan = float("nan")
    >>> X = [[1.0, 2.0, 3.1], [2.0, 4.1, nan], [3.0, nan, 9.0], [nan, 8.1, 11.9], [5.0, 9.9, 15.2], [0.0, 0.1, -0.1]]
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> model.transform(X).ravel().round(1)
    array([-0.9, -0.3,  0.3,  0.9,  1.5, -1.5])
    >>> row = [[2.5, nan, nan]]
    >>> model.fill(row).round(1), model.fill_std(row).round(1)
    (array([[2.5, 5. , 7.5]]), array([[0. , 0.2, 0.3]]))
    >>> model.certify(X).kind
    'local'
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
        "method": [StrOptions({"auto", "closed", "em"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "acceleration": [StrOptions({"squarem"}), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components=1,
        *,
        noise_variance=None,
        method="auto",
        tol=1e-12,
        max_iter=10_000,
        acceleration="squarem",
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.noise_variance = noise_variance
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.acceleration = acceleration
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if self.n_components >= blocks.n_columns:
            raise ValueError(
                f"n_components={self.n_components} must be less than n_features = {blocks.n_columns}: "
                "what is left over is the noise."
            )
        holes = blocks.reduce(holes_block) > 0
        if holes and self.method == "closed":
            raise ValueError("method='closed' needs complete rows, and X contains NaN: use method='em' or 'auto'.")
        if holes or self.method == "em":
            with serial_blas():
                model = _Factors(self.n_components, self.noise_variance, Table(blocks))
            self._maximize(model, blocks, 1, X, y)
        else:
            self._solve(blocks)
        return self

    def _solve(self, blocks):
        """Take the maximum in closed form."""
        k, d = self.n_components, blocks.n_columns
        most = min(k, blocks.n_rows)  # rows vary in no more directions
        found = spectrum_of(blocks, most, route(blocks, most), generator(self.random_state))
        values = np.append(found.values, np.zeros(k - most)) / found.weight
        left = max(found.total / found.weight - float(values.sum()), 0.0)
        floor = least_noise(found.mean, found.total / found.weight / d)
        noise = max(left / (d - k), floor) if self.noise_variance is None else float(self.noise_variance)
        vectors = np.vstack([found.vectors, np.zeros((k - most, d))])
        loadings = vectors.T * np.sqrt(np.maximum(values - noise, 0.0))
        for name, value in self._attributes((found.mean, loadings, noise)).items():
            setattr(self, name, value)
        self.lower_bound_ = self._score(blocks)[1]
        self.n_iter_, self.converged_, self.trace_ = 1, True, np.array([self.lower_bound_])

    @staticmethod
    def _attributes(parameters):
        """Turn z such that the columns of W are orthogonal, the longest first."""
        mean, loadings, noise = parameters
        with serial_blas():
            vectors, lengths, _ = np.linalg.svd(loadings, full_matrices=False)
        return {"mean_": mean, "components_": upright(vectors.T) * lengths[:, None], "noise_variance_": float(noise)}

    def _components(self):
        k, d = self.n_components, self.n_features_in_
        if self.components_.shape != (k, d) or np.shape(self.mean_) != (d,) or not self.noise_variance_ > 0:
            raise ValueError("components_, mean_ or noise_variance_ are not those of a fit.")
        return prepared(np.asarray(self.mean_, dtype=float), self.components_.T.astype(float), self.noise_variance_)

    _posterior_block = staticmethod(posterior_block)

    def _n_parameters(self):
        k, d = self.components_.shape
        return d + d * k - k * (k - 1) // 2 + (self.noise_variance is None)

    def transform(self, X):
        """Give the posterior mean of the hidden coordinates of each row, given its seen entries."""
        return self._posterior(X)[0]

    def posterior(self, X):
        """Give the posterior of the hidden coordinates of each row: means and covariances; what is missing widens it."""
        blocks = self._checked(X)
        means, covariances = blocks.map(scores_block, self._components())
        return Scores(as_output(means, blocks.dtype), as_output(covariances, blocks.dtype))

    def inverse_transform(self, X):
        """Give the rows without noise whose coordinates are X."""
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != len(self.components_):
            raise ValueError(f"X has {Z.shape[1]} columns, and there are {len(self.components_)} coordinates.")
        with serial_blas():
            return as_output(Z @ self.components_ + self.mean_, Z.dtype)

    def fill(self, X):
        """Give the rows with every missing entry replaced by its mean given the seen entries of its row."""
        blocks = self._checked(X)
        return as_output(blocks.map(fill_block, self._components())[0], blocks.dtype)

    def fill_std(self, X):
        """Give the standard deviation of each filled entry given the seen entries of its row; 0 where an entry is seen."""
        blocks = self._checked(X)
        return as_output(np.sqrt(blocks.map(fill_block, self._components())[1]), blocks.dtype)

    def sample(self, n_samples=1):
        """Draw complete rows."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        rng, (k, d) = generator(self.random_state), self.components_.shape
        noise = np.sqrt(self.noise_variance_) * rng.standard_normal((n_samples, d))
        with serial_blas():
            return rng.standard_normal((n_samples, k)) @ self.components_ + self.mean_ + noise

    def get_covariance(self):
        """Give the covariance of the rows: WWᵀ + σ²I."""
        check_is_fitted(self)
        return self.components_.T @ self.components_ + self.noise_variance_ * np.eye(self.components_.shape[1])

    @property
    def _n_features_out(self):
        return len(self.components_)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no parameters make complete rows more probable; with missing entries, that the fit is stationary."""
        blocks = self._checked(X, sample_weight)
        self._components()  # refuses shapes that are none of a fit
        with serial_blas():
            return certificate(self, blocks, least_noise, blocks.reduce(holes_block) > 0)
