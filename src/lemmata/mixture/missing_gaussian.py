"""`MissingGaussian`: mean and covariance of rows with holes, by EM, and what the holes may hold.

One Gaussian, entries missing at random. Given the seen entries of a row, the missing ones are normal about their regression on
them; the E-step takes the expectations of x and xxᵀ under that, the M-step is their mean:

    μ = mean of x̂,   Σ = mean of (x̂ − μ)(x̂ − μ)ᵀ + V,

where x̂ has the conditional means in the holes and V is their conditional covariance (`missing_kernels`). To fill the holes and
take the covariance of the result would leave V out, and find too little variance. This is the case of one component of
`gaussian`, which see; without holes the first step is the answer.
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.mixture.finite import FittedByEM
from lemmata.mixture.gaussian import GaussianModel, Table, components_of, posterior_block
from lemmata.mixture.gaussian_certificate import certificate
from lemmata.mixture.missing import by_pattern, fill_block, warn_of_strangers
from lemmata.probability import MultivariateNormal


class _OneGaussian(GaussianModel):
    """The steps of EM for one Gaussian, which starts from the seen entries of each column."""

    name = "EM of a Gaussian"

    def start(self, blocks, rng):
        """Take the mean and the variances of the seen entries."""
        return self.spread_out(self.table.mean[None])


class MissingGaussian(OneToOneFeatureMixin, TransformerMixin, FittedByEM):
    """Fit a Gaussian to rows with missing entries (NaN), and fill them.

    Parameters
    ----------
    tol : Stop when a plain EM step changes the mean log-likelihood of a row by no more.
    reg_covar : Added to every variance, in squared units of X, so that the covariance has an inverse.
    max_iter : Passes over the rows at most.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM.
    random_state : Seed of `draw`.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    mean_ : (n_features,)
    covariance_ : (n_features, n_features), of maximum likelihood (divisor n), plus reg_covar on its diagonal.
    lower_bound_ : Mean log-likelihood of a row (of its seen entries) under the fitted parameters.
    n_iter_ : Passes over the rows.
    converged_ : Whether they met tol.
    trace_ : Mean log-likelihood at each pass.

    Examples
    --------
    >>> nan = float("nan")
    >>> X = [[1.0, 2.0], [2.0, nan], [3.0, 5.0], [4.0, nan], [0.0, 1.5]]
    >>> model = MissingGaussian(reg_covar=0.0).fit(X)
    >>> model.mean_.round(4), model.covariance_.round(4)
    (array([2.    , 3.6429]), array([[2.    , 2.4286],
           [2.4286, 3.0442]]))
    >>> model.transform([[2.0, nan]]), model.fill_std([[2.0, nan]])
    (array([[2.    , 3.6429]]), array([[0.    , 0.3086]]))
    """

    _parameter_constraints = {
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "acceleration": [StrOptions({"squarem"}), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        *,
        tol=1e-12,
        reg_covar=1e-6,
        max_iter=10_000,
        acceleration="squarem",
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.acceleration = acceleration
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        with serial_blas():
            model = _OneGaussian("full", self.reg_covar, Table(blocks))
            if model.table.holes:
                warn_of_strangers(blocks)
        self._maximize(model, blocks, 1, X, y)
        return self

    def transform(self, X):
        """Give the rows with every missing entry replaced by its mean given the seen entries of its row."""
        blocks = self._checked(X)
        return as_output(blocks.map(fill_block, self._components())[0], blocks.dtype)

    def fill_std(self, X):
        """Give the standard deviation of each filled entry given the seen entries of its row; 0 where an entry is seen."""
        blocks = self._checked(X)
        return as_output(np.sqrt(blocks.map(fill_block, self._components())[1]), blocks.dtype)

    def conditional(self, row):
        """Give the distribution of the missing entries of one row given its seen ones.

        Examples
        --------
        >>> model = MissingGaussian().fit([[0.0, 1.0], [1.0, 3.0], [2.0, 4.0], [3.0, 8.0]])
        >>> model.conditional([2.0, float("nan")])
        MultivariateNormal(mean=array([5.1]), cov=array([[0.45]]))
        """
        row = self._checked(np.reshape(row, (1, -1))).first()[0][0].astype(float)
        seen = np.flatnonzero(~np.isnan(row))
        if len(seen) == len(row):
            raise ValueError("The row has no missing entry: there is nothing to give a distribution of.")
        joint = MultivariateNormal(self.mean_, self.covariance_)
        return joint.condition(seen, row[seen]) if len(seen) else joint

    def draw(self, X, n_draws=1):
        """Fill the holes with draws from their distribution given the seen entries: multiple imputation.

        Returns
        -------
        filled : (n_draws, n_rows, n_columns); what differs from draw to draw is what the table does not tell.
        """
        if n_draws < 1:
            raise ValueError(f"n_draws must be at least 1, got {n_draws}.")
        blocks = self._checked(X)
        X = blocks.take(np.arange(blocks.n_rows))[0]
        filled = np.repeat(self.transform(X).astype(float)[None], n_draws, axis=0)
        rng = generator(self.random_state)
        order, starts, seen = by_pattern(X)
        for start, stop, known in zip(starts[:-1], starts[1:], seen, strict=True):
            if not known.all():
                rows, holes = order[start:stop], np.flatnonzero(~known)
                lower = np.linalg.cholesky(self.conditional(X[rows[0]]).cov)
                noise = rng.standard_normal((n_draws, len(rows), len(holes))) @ lower.T
                filled[:, rows[:, None], holes] += noise
        return as_output(filled, blocks.dtype)

    def sample(self, n_samples=1):
        """Draw complete rows from the fitted distribution."""
        check_is_fitted(self)
        return MultivariateNormal(self.mean_, self.covariance_).sample(n_samples, self.random_state)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is stationary: an EM step, computed by another way, leaves mean and covariance where they are."""
        blocks = self._checked(X, sample_weight)
        one, mean, covariance = self._parameters()
        with serial_blas():
            return certificate(
                blocks, "full", self.reg_covar, one, mean, covariance, self.lower_bound_, self._components, repr(self)
            )

    def _parameters(self):
        """Give the fit as a mixture of one component."""
        d = self.n_features_in_
        for name, shape in (("mean_", (d,)), ("covariance_", (d, d))):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return np.ones(1), self.mean_[None], self.covariance_[None]

    def _components(self):
        return components_of(*self._parameters(), "full", self.mean_)

    def _n_parameters(self):
        d = len(self.mean_)
        return d + d * (d + 1) // 2

    @staticmethod
    def _attributes(parameters):
        _, means, covariances = parameters
        return {"mean_": means[0], "covariance_": covariances[0]}

    _posterior_block = staticmethod(posterior_block)

    def __sklearn_tags__(self):
        """Say that entries may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
