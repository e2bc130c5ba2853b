"""`GaussianMixture`: a density that is a sum of Gaussians, fitted by EM.

`gaussian` states the model and its M-step, `gaussian_kernels` the E-step, `em` the iteration, `gaussian_certificate` the
checks. Read as a classifier without labels, argmaxₖ πₖ N(x|μₖ, Σₖ) is Bayes' rule for the component of a row.
"""

import warnings
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster import KMeans
from lemmata.cluster.seeding import draw_centers
from lemmata.core.certificate import Certificate, Check
from lemmata.core.estimator import as_output
from lemmata.core.threads import serial_blas
from lemmata.mixture import gaussian_kernels as kernels
from lemmata.mixture.finite import FiniteMixture
from lemmata.mixture.gaussian import GaussianModel, Table, as_matrices, components_of, inverse_factors, posterior_block
from lemmata.mixture.gaussian_certificate import certificate
from lemmata.mixture.information import newton_gain
from lemmata.mixture.missing import Filled, fill_block, holes_block, warn_of_strangers

MOST_GAIN = 0.01  # nats: a hundredth of what one parameter is worth by Akaike's criterion
ON_THE_FLOOR = 0.01  # share of the floor in the smallest variance from which the likelihood is not what EM climbs
SECOND_ORDER = 1000  # entries of all covariances, at most, for which second derivatives are taken
SAMPLE = 1 << 17  # rows among which starting means are drawn


class _Started(GaussianModel):
    """A Gaussian model that starts as an estimator was told to."""

    def __init__(self, estimator, table, X, sample_weight):
        super().__init__(estimator.covariance_type, estimator.reg_covar, table)
        self.estimator, self.data = estimator, (X, sample_weight)

    def start(self, blocks, rng):
        """Take what was given; draw the rest."""
        weights, means, precisions = self.estimator._given(blocks.n_columns)
        parameters = self._drawn(blocks, rng, means) if weights is None or means is None or precisions is None else None
        covariances = parameters[2] if precisions is None else _inverse(precisions, self.kind)
        return (
            parameters[0] if weights is None else weights,
            parameters[1] if means is None else means,
            covariances,
        )

    def _drawn(self, blocks, rng, means):
        k, how = self.estimator.n_components, self.estimator.init_params
        if self.table.holes:
            blocks = blocks.with_columns(Filled(self.table.mean), blocks.n_columns)
        if means is not None:
            weights, _, covariances = self.around(blocks, means)
            return weights, means, covariances
        if how == "kmeans":
            X, sample_weight = self.sample(blocks, rng) if self.table.holes else self.data
            tries = 3 if self.table.holes else 1  # filled holes blur the clusters
            clusters = KMeans(k, n_init=tries, random_state=int(rng.integers(2**31 - 1))).fit(X, sample_weight=sample_weight)
            return self.around(blocks, clusters.cluster_centers_.astype(float))
        X, weight = self.sample(blocks, rng)
        if how == "k-means++":
            chosen = draw_centers(X, k, rng, weight)
        else:
            chosen = rng.choice(len(X), k, replace=False, p=None if weight is None else weight / weight.sum())
        return self.spread_out(np.asarray(X)[chosen].astype(float))

    @staticmethod
    def sample(blocks, rng):
        """Take the rows among which starts are looked for."""
        rows = np.arange(blocks.n_rows)
        if blocks.n_rows > SAMPLE:
            rows = np.sort(rng.choice(blocks.n_rows, SAMPLE, replace=False))
        return blocks.take(rows)

    def __getstate__(self):
        """Leave behind what only the start needs: the E-step may travel to other processes."""
        return {"kind": self.kind, "floor": self.floor, "table": self.table, "scale": self.scale}


class GaussianMixture(FiniteMixture):
    """Fit a sum of Gaussian densities to rows, of which entries may be missing (NaN).

    Parameters
    ----------
    n_components : Number of Gaussians.
    covariance_type : "full" (a matrix for each component), "tied" (one for all), "diag" or "spherical".
    tol : Stop when a plain EM step changes the mean log-likelihood of a row by no more. The default is a ten-millionth of
        scikit-learn's 1e-3, because at that one the parameters still move by percents: the certificate would not hold.
    reg_covar : Added to every variance, in squared units of X, so that no component can collapse altogether.
    max_iter : Passes over the rows at most.
    n_init : Runs from different starts, of which the best is kept.
    init_params : "kmeans" (clusters of k-means), "k-means++" or "random_from_data" (rows as means, the table's covariance).
    weights_init, means_init, precisions_init : Given starts; what is missing comes from the rows nearest to means_init or,
        without these, from init_params.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM, which are scikit-learn's.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    weights_ : (n_components,), probability of each component.
    means_ : (n_components, n_features)
    covariances_ : (n_components, n_features, n_features), (n_features, n_features), (n_components, n_features) or
        (n_components,), by type.
    precisions_ : Their inverses.
    precisions_cholesky_ : Upper triangles U with precision UUᵀ; square roots for "diag" and "spherical".
    lower_bound_ : Mean log-likelihood of a row under the fitted parameters.
    lower_bounds_ : The same as trace_.
    restarts_ : (n_init,), mean log-likelihood that each run reached: how much the start matters.
    n_iter_ : Passes of the best run.
    converged_ : Whether it met tol.
    trace_ : Mean log-likelihood at each pass of the best run, before its M-step.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [16.0]]
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> order = model.means_[:, 0].argsort()
    >>> model.weights_[order].round(3), model.means_[order, 0].round(3), model.covariances_[order, 0, 0].round(3)
    (array([0.429, 0.571]), array([ 1., 13.]), array([0.667, 5.   ]))
    >>> print(model.certify(X))
    GaussianMixture(n_components=2, random_state=0): certificate holds (local)
      check           value     limit  kind      claim
      parameters      ...e... ≤ 1e-06  proof     weights are probabilities, covariances symmetric with an inverse
      weights         ...e... ≤ 1e-03  local     an EM step leaves the weights where they are
      means           ...e... ≤ 1e-03  local     an EM step leaves the means where they are
      covariances     ...e... ≤ 1e-03  local     an EM step leaves them as they are
      log-likelihood  ...e... ≤ 1e-06  proof     the mean log-density of the rows
      posterior       ...e... ≤ 1e-06  proof     the E-step is Bayes' rule
      floor           1.5e-06 ≤ inf    evidence  share of reg_covar in the smallest variance
      gain            ...e... ≤ 1e-02  local     nats that Newton's step would gain, where EM may only creep
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(kernels.KINDS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random_from_data"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "acceleration": [StrOptions({"squarem"}), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        tol=1e-10,
        reg_covar=1e-6,
        max_iter=10_000,
        n_init=1,
        init_params="kmeans",
        weights_init=None,
        means_init=None,
        precisions_init=None,
        acceleration="squarem",
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.acceleration = acceleration
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_components:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_components={self.n_components}.")
        all_given = all(given is not None for given in self._given(blocks.n_columns))
        n_runs = 1 if all_given else self.n_init
        with serial_blas():
            model = _Started(self, Table(blocks), X, sample_weight)
            if model.table.holes and self.covariance_type in ("full", "tied"):
                warn_of_strangers(blocks)
        parameters = self._maximize(model, blocks, n_runs, X, y)
        self._report(model.table, model.collapsed(parameters))
        return self

    def _report(self, table, collapsed):
        """Warn where the floor has taken over."""
        variances = np.diagonal(table.covariance)
        if 0 < variances.max() < self.reg_covar:
            message = (
                f"No column varies by as much as reg_covar={self.reg_covar:g} (the largest variance is {variances.max():.2g}), "
                "so the fit shows the floor and not the table. Rescale the columns or lower reg_covar."
            )
        elif len(collapsed):
            message = (
                f"Components {collapsed.tolist()} have collapsed onto the floor reg_covar={self.reg_covar:g}: they follow "
                "single rows or ties, where the likelihood has no maximum. Lower n_components or raise reg_covar."
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _given(self, d):
        """Check the starts that were given."""
        k, kind = self.n_components, self.covariance_type
        shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
        expected = {"weights_init": (k,), "means_init": (k, d), "precisions_init": shapes[kind]}
        found = []
        for name, shape in expected.items():
            value = getattr(self, name)
            array = None if value is None else np.array(value, dtype=float)
            if array is not None and (array.shape != shape or not np.isfinite(array).all()):
                raise ValueError(f"{name} must hold finite numbers in the shape {shape}, got the shape {array.shape}.")
            found.append(array)
        weights, _, precisions = found
        if weights is not None and not ((weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-6):
            raise ValueError("weights_init must be at least 0 and sum to 1.")
        if precisions is not None and not _positive(precisions, kind):
            raise ValueError("precisions_init must be positive, and symmetric positive definite where they are matrices.")
        return found

    def fill(self, X):
        """Give the rows with every missing entry (NaN) replaced by its mean given the seen entries of its row."""
        blocks = self._checked(X)
        return as_output(blocks.map(fill_block, self._components())[0], blocks.dtype)

    def fill_std(self, X):
        """Give the standard deviation of each filled entry given the seen entries of its row; 0 where an entry is seen."""
        blocks = self._checked(X)
        return as_output(np.sqrt(blocks.map(fill_block, self._components())[1]), blocks.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is stationary: an EM step, computed by another way, leaves every parameter where it is."""
        blocks = self._checked(X, sample_weight)
        with serial_blas():
            found = certificate(
                blocks,
                self.covariance_type,
                self.reg_covar,
                self.weights_,
                self.means_,
                self.covariances_,
                self.lower_bound_,
                self._components,
                repr(self),
            )
            if not self._is_smooth(found, blocks):
                return found
            gain = newton_gain(self.covariance_type, (self.weights_, self.means_, self.covariances_), blocks)
        claim = "nats that Newton's step would gain, where EM may only creep"
        return Certificate(*found.checks, Check("gain", gain, MOST_GAIN, "local", claim), subject=found.subject)

    def _is_smooth(self, found, blocks):
        """Tell whether second derivatives say something: no component on the floor, no holes, and not too many parameters."""
        if "floor" not in {check.name for check in found.checks} or found["floor"].value > ON_THE_FLOOR:
            return False
        small = self.n_components * self.n_features_in_**2 <= SECOND_ORDER and self._n_parameters() <= blocks.n_rows
        return small and (self.weights_ > 0).all() and not blocks.reduce(holes_block)

    @property
    def precisions_cholesky_(self):
        """Upper triangles U with precision UUᵀ."""
        factors = inverse_factors(self.covariances_, self.covariance_type)
        if self.covariance_type in ("full", "tied"):
            upper = np.swapaxes(factors, 1, 2)
            return upper if self.covariance_type == "full" else upper[0]
        return factors[:, 0] if self.covariance_type == "diag" else factors[:, 0, 0]

    @property
    def precisions_(self):
        """Inverses of the covariances."""
        upper = self.precisions_cholesky_
        return upper @ np.swapaxes(upper, -1, -2) if self.covariance_type in ("full", "tied") else upper**2

    def _n_parameters(self):
        k, d = self.means_.shape
        free = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}
        return free[self.covariance_type] + k * d + k - 1

    def _components(self):
        """Give the fitted parameters as the kernels want them, whatever was done to them since."""
        k, d = self.n_components, self.n_features_in_
        shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
        for name, shape in (("weights_", (k,)), ("means_", (k, d)), ("covariances_", shapes[self.covariance_type])):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        center = self.weights_ @ self.means_
        return components_of(self.weights_, self.means_, self.covariances_, self.covariance_type, center)

    def _draw(self, component, n, rng):
        """Draw rows from one Gaussian."""
        k, d = self.means_.shape
        lower = np.linalg.cholesky(as_matrices(self.covariances_, self.covariance_type, k, d)[component])
        return self.means_[component] + rng.standard_normal((n, d)) @ lower.T

    @staticmethod
    def _attributes(parameters):
        weights, means, covariances = parameters
        return {"weights_": weights, "means_": means, "covariances_": covariances}

    _posterior_block = staticmethod(posterior_block)

    def __sklearn_tags__(self):
        """Say that entries may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _positive(precisions, kind):
    """Tell whether precisions have an inverse that is a covariance."""
    if kind in ("diag", "spherical"):
        return bool((precisions > 0).all())
    try:
        np.linalg.cholesky(precisions)
    except np.linalg.LinAlgError:
        return False
    return bool(np.allclose(precisions, np.swapaxes(precisions, -1, -2)))


def _inverse(precisions, kind):
    """Turn precisions into covariances."""
    return np.linalg.inv(precisions) if kind in ("full", "tied") else 1.0 / precisions
