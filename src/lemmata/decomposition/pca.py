"""Principal component analysis: the subspace that is nearest to the rows.

Let C = Σ s (x − x̄)(x − x̄)ᵀ/(n − 1) be the covariance of the rows. Its eigenvectors q₁, …, q_k with the largest eigenvalues
span the subspace on which the projections x̃ = x̄ + QᵀQ(x − x̄) lie nearest to the rows: of all subspaces of k dimensions it
leaves the least

    Σ s ‖x − x̃‖² = (n − 1) Σ_{i>k} λᵢ,

and its coordinates z = Q(x − x̄) are uncorrelated, with variances λ₁ ≥ … ≥ λ_k [1]. `spectrum` has the ways to find them.

The rows also have a density: that of probabilistic PCA [2], normal with covariance QᵀΛQ + σ²(I − QᵀQ), σ² the mean of the
eigenvalues left out. Its logarithm is `score_samples`.

[1] Eckart & Young, Psychometrika 1 (1936); Fan, PNAS 35 (1949). [2] Tipping & Bishop, J. R. Stat. Soc. B 61 (1999).
"""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from lemmata.core.data import is_sparse
from lemmata.core.estimator import NO_WEIGHTS, Estimator, as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.decomposition.pca_certificate import certificate
from lemmata.decomposition.spectrum import route, spectrum_of

ROUNDED = 1e-12  # by which a sum of shares of variance may miss the share that was asked for


def scores_block(X, weight, mean, rows):
    """Coordinates (x − x̄)·q of the rows of a block along some directions."""
    if is_sparse(X):
        return X @ rows.T - rows @ mean
    return (X - mean) @ rows.T


def log_density_block(X, weight, mean, components, variances, noise):
    """Log-density of the rows of a block under probabilistic PCA."""
    k, d = components.shape
    z = scores_block(X, weight, mean, components)
    value = (z**2 / variances).sum(axis=1) + np.log(variances).sum() + d * np.log(2 * np.pi)
    if k < d:
        if is_sparse(X):
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2 * (X @ mean) + mean @ mean - (z**2).sum(axis=1)
        else:
            squares = ((X - mean - z @ components) ** 2).sum(axis=1)
        value = value + np.maximum(squares, 0.0) / noise + (d - k) * np.log(noise)
    return -0.5 * value


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Find the directions along which rows vary most.

    Parameters
    ----------
    n_components : Number of directions; or a fraction between 0 and 1, for the fewest that keep this share of the variance;
        None for all along which the rows vary.
    whiten : Whether `transform` divides each coordinate by its standard deviation.
    svd_solver : How to find them. "covariance_eigh": from the covariance of the columns, or "full": from a triangle of the
        rows, slower and to all digits; "arpack" and "randomized": by products with few vectors, for tables with many columns,
        iterated until the residuals are below `tol`; "auto" chooses by shape. Sparse tables with many columns are never made
        dense.
    tol : Residual ‖Cq − λq‖/λ at which the last two solvers stop; 0 for 1e-8.
    random_state : Seed of what they start from.

    Attributes
    ----------
    components_ : (n_components, n_features), the directions: orthonormal rows, by falling variance; the largest entry of each
        is positive.
    explained_variance_ : (n_components,), variance along each, with divisor n − 1.
    explained_variance_ratio_ : The same as shares of the total variance.
    singular_values_ : (n_components,), √((n − 1) × variance): lengths of the columns of coordinates.
    mean_ : (n_features,)
    noise_variance_ : Mean of the n_features − n_components variances that are left out; 0 if none is.
    n_samples_ : Number of rows, or sum of their weights.

    Examples
    --------
    >>> X = [[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> model = PCA(1).fit(X)
    >>> model.components_, model.explained_variance_ratio_
    (array([[1., 0.]]), array([0.8]))
    >>> model.transform(X).ravel() + 0.0
    array([ 2., -2.,  0.,  0.])
    >>> print(model.certify(X))
    PCA(n_components=1): certificate holds (proof)
      check           value     limit  kind   claim
      orthonormal     0.0e+00 ≤ 1e-06  proof  the directions are orthogonal and of unit length
      mean            0.0e+00 ≤ 1e-06  proof  the mean of the rows
      eigenvectors    0.0e+00 ≤ 1e-06  proof  the covariance maps each direction to itself times its variance
      leading         5.0e-07 ≤ 1e-06  proof  no direction beside them has more variance, by more than this share of all
      reconstruction  0.0e+00 ≤ 1e-06  proof  projections miss the rows by what the variances left out say
      derived         0.0e+00 ≤ 1e-06  proof  shares, singular values, noise and number of rows follow from them
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither"), None],
        "whiten": ["boolean"],
        "svd_solver": [StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(self, n_components=None, *, whiten=False, svd_solver="auto", tol=0.0, random_state=None):
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True)
        k = self._wanted(blocks)
        solver = route(blocks, k) if self.svd_solver == "auto" else self.svd_solver
        if solver in ("arpack", "randomized") and (k is None or k >= min(blocks.n_rows, blocks.n_columns)):
            raise ValueError(
                f"svd_solver={solver!r} finds fewer directions than there are rows and columns, "
                f"{min(blocks.n_rows, blocks.n_columns)}: give n_components as a smaller number."
            )
        found = spectrum_of(blocks, k, solver, generator(self.random_state), self.tol)
        if not found.converged:
            warnings.warn("PCA did not converge: raise tol, or use svd_solver='full'.", ConvergenceWarning, stacklevel=2)
        self._keep(found, self._number(found), blocks.dtype)
        return self

    def _wanted(self, blocks):
        """Give the number of directions to find, or None if all are needed to choose it."""
        if not isinstance(self.n_components, Integral):
            return None
        most = min(blocks.n_rows, blocks.n_columns)
        if self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} must be at most {most}, the smaller of the numbers of rows and columns."
            )
        return int(self.n_components)

    def _number(self, found):
        """Give the number of directions to keep."""
        if self.n_components is None or isinstance(self.n_components, Integral):
            return len(found.values)
        if found.total == 0:
            return 1
        kept = np.cumsum(found.values) / found.total
        return min(int(np.searchsorted(kept, self.n_components - ROUNDED)) + 1, len(kept))

    def _keep(self, found, k, dtype):
        d, rest = len(found.mean), max(found.weight - 1, 0.0) or 1.0  # one row has no variance, whatever the divisor
        values = found.values[:k]
        left = max(found.total - float(values.sum()), 0.0)
        self.components_ = as_output(found.vectors[:k], dtype)
        self.explained_variance_ = as_output(values / rest, dtype)
        self.explained_variance_ratio_ = as_output(values / (found.total or 1.0), dtype)
        self.singular_values_ = as_output(np.sqrt(values), dtype)
        self.mean_ = as_output(found.mean, dtype)
        self.noise_variance_ = left / rest / (d - k) if k < d else 0.0
        self.n_samples_ = int(found.weight) if float(found.weight).is_integer() else found.weight

    def transform(self, X):
        """Give the coordinates of rows along the directions."""
        blocks = self._checked(X)
        z = blocks.map(scores_block, self.mean_.astype(float), self.components_.astype(float))
        return as_output(z / self._scales() if self.whiten else z, blocks.dtype)

    def inverse_transform(self, X):
        """Give the rows whose coordinates are X: points of the subspace."""
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != len(self.components_):
            raise ValueError(f"X has {Z.shape[1]} columns, and there are {len(self.components_)} directions.")
        with serial_blas():
            rows = (Z * self._scales() if self.whiten else Z) @ self.components_.astype(float) + self.mean_
        return as_output(rows, Z.dtype)

    def _scales(self):
        """Give the standard deviations to divide by; what does not vary is left as it is."""
        deviations = np.sqrt(self.explained_variance_.astype(float))
        return np.where(deviations > np.finfo(float).eps * deviations[0], deviations, 1.0)

    def score_samples(self, X):
        """Give the log-density of each row under probabilistic PCA with these variances."""
        blocks = self._checked(X)
        return as_output(blocks.map(log_density_block, *self._density()), blocks.dtype)

    def score(self, X, y=None):
        """Give the mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def get_covariance(self):
        """Give the covariance of the density: QᵀΛQ + σ²(I − QᵀQ)."""
        check_is_fitted(self)
        components = self.components_.astype(float)
        along = components.T * (self.explained_variance_ - self.noise_variance_)
        return along @ components + self.noise_variance_ * np.eye(components.shape[1])

    def get_precision(self):
        """Give the inverse of that covariance."""
        check_is_fitted(self)
        _, components, variances, noise = self._density()
        k, d = components.shape
        if k == d:
            return (components.T / variances) @ components
        return (components.T * (1 / variances - 1 / noise)) @ components + np.eye(d) / noise

    def _density(self):
        variances, (k, d) = self.explained_variance_.astype(float), self.components_.shape
        if not (variances > 0).all() or (k < d and not self.noise_variance_ > 0):
            raise ValueError("The rows do not vary in every direction, so they have no density: keep fewer components.")
        return self.mean_.astype(float), self.components_.astype(float), variances, self.noise_variance_

    def _checked(self, X, sample_weight=NO_WEIGHTS):
        check_is_fitted(self)
        blocks = self._blocks(X, sample_weight=sample_weight, reset=False)
        if self.components_.ndim != 2 or self.components_.shape[1] != self.n_features_in_:
            raise ValueError(f"components_ has the shape {self.components_.shape}, which is not that of a fit.")
        return blocks

    @property
    def n_components_(self):
        """Number of directions."""
        return len(self.components_)

    @property
    def _n_features_out(self):
        return len(self.components_)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no other subspace of as many dimensions lies nearer to the rows."""
        return certificate(self, self._checked(X, sample_weight))
