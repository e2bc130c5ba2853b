"""The multivariate normal distribution and its algebra: marginals, conditionals, affine maps.

log N(x | μ, Σ) = −½ [d log 2π + log|Σ| + (x − μ)ᵀΣ⁻¹(x − μ)]: the constant is (2π)^(d/2), not 2π^(d/2). With the Cholesky
factor Σ = LLᵀ the quadratic form is ‖L⁻¹(x − μ)‖² and log|Σ| = 2Σ log Lᵢᵢ; the determinant itself would over- or underflow.

Marginal: x_a ~ N(μ_a, Σ_aa), drop rows and columns. An entry that is missing (NaN) is integrated out in just this way.
Conditional: x_a | x_b ~ N(μ_a + Σ_ab Σ_bb⁻¹(x_b − μ_b), Σ_aa − Σ_ab Σ_bb⁻¹ Σ_ba); the covariance is the inverse of the block
Λ_aa of the precision matrix Λ = Σ⁻¹, and does not depend on x_b. Affine map: Ax + b + e ~ N(Aμ + b, AΣAᵀ + V) with noise e ~
N(0, V). Maximum likelihood: the mean of the rows and their mean scatter (divisor n); the log likelihood is then −n/2 (d log 2π
+ log|Σ̂| + d).

Bishop, Pattern Recognition and Machine Learning, 2.3 (2006).
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from lemmata.probability.distributions.base import Distribution, average, observations, vector
from lemmata.probability.distributions.gamma_functions import HALF_LOG_2PI

SYMMETRY = 1e-8  # of √(ΣᵢᵢΣⱼⱼ): what single precision leaves of a symmetric matrix
ROUNDING = 4 * np.finfo(float).eps


def covariance(name, values, d):
    """Return a positive definite matrix, made exactly symmetric, and its Cholesky factor; both read-only.

    Examples
    --------
    >>> covariance("cov", [[4, 0], [0, 1]], 2)[1]
    array([[2., 0.], [0., 1.]])
    """
    values = np.array(values, dtype=float)
    if values.shape != (d, d) or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a matrix of finite numbers of the shape ({d}, {d}), got the shape {values.shape}.")
    size = np.sqrt(np.abs(np.diag(values)))
    if (np.abs(values - values.T) > SYMMETRY * np.outer(size, size)).any():
        raise ValueError(f"{name} must be symmetric.")
    values = (values + values.T) / 2
    try:
        factor = np.linalg.cholesky(values / np.outer(size, size)) if size.all() else None
    except np.linalg.LinAlgError:
        factor = None
    # the squared pivots of a correlation matrix are the shares of variance that the entries before leave unexplained
    if factor is None or (np.diag(factor) ** 2 <= d * ROUNDING).any():
        raise ValueError(f"{name} must be positive definite: some combination of the entries has no variance.")
    factor = size[:, None] * factor
    values.flags.writeable = factor.flags.writeable = False
    return values, factor


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Distribution):
    """Multivariate normal distribution.

    Parameters
    ----------
    mean : Mean vector.
    cov : Covariance matrix, symmetric and positive definite.

    Examples
    --------
    >>> joint = MultivariateNormal([0, 0], [[2, 1], [1, 2]])
    >>> joint.condition([1], [1.0])
    MultivariateNormal(mean=array([0.5]), cov=array([[1.5]]))
    >>> joint.logpdf([[1.0, np.nan], [0.0, 0.0]])  # NaN is missing: the first entry alone
    array([-1.5155, -2.3872])
    """

    mean: np.ndarray
    cov: np.ndarray
    _factor: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        mean = vector("mean", self.mean)
        cov, factor = covariance("cov", self.cov, len(mean))
        self._store(mean=mean, cov=cov, _factor=factor)

    @property
    def var(self):
        """Variances of the entries."""
        return np.diag(self.cov)

    @property
    def mode(self):
        """Where the density is greatest."""
        return self.mean

    def entropy(self):
        """Return the differential entropy in nats."""
        return float(len(self.mean) * (0.5 + HALF_LOG_2PI) + np.log(np.diag(self._factor)).sum())

    def logpdf(self, x):
        """Return the log density at each vector (the last axis of x); a NaN is missing and integrated out."""
        x = self._vectors(x)
        rows = x.reshape(-1, len(self.mean))
        result = np.empty(len(rows))
        missing = np.isnan(rows)
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            seen, chosen = np.flatnonzero(~pattern), which.reshape(-1) == k
            part = self if len(seen) == len(self.mean) else self.marginal(seen) if len(seen) else None
            result[chosen] = 0.0 if part is None else part._complete(rows[chosen][:, seen])
        return result.reshape(x.shape[:-1])[()]

    def _complete(self, rows):
        """Return the log density at rows without missing entries."""
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite entry or square: the log density is −∞
            square = (solve_triangular(self._factor, (rows - self.mean).T, lower=True, check_finite=False) ** 2).sum(axis=0)
        square = np.where(np.isnan(square), np.inf, square)
        return -0.5 * square - len(self.mean) * HALF_LOG_2PI - np.log(np.diag(self._factor)).sum()

    def logpdf_gradient(self, x):
        """Return the gradient of the log density, −Σ⁻¹(x − μ)."""
        x = self._vectors(x)
        return cho_solve((self._factor, True), (self.mean - x).reshape(-1, len(self.mean)).T).T.reshape(x.shape)

    def marginal(self, idx):
        """Return the distribution of the entries `idx`, in this order.

        Examples
        --------
        >>> MultivariateNormal([0, 1], [[2, 1], [1, 3]]).marginal([1])
        MultivariateNormal(mean=array([1.]), cov=array([[3.]]))
        """
        idx = self._indices(idx)
        return MultivariateNormal(self.mean[idx], self.cov[np.ix_(idx, idx)])

    def condition(self, idx, values):
        """Return the distribution of the other entries, given that the entries `idx` have these values.

        Examples
        --------
        >>> MultivariateNormal([0, 1], [[2, 1], [1, 4]]).condition([1], [5.0])
        MultivariateNormal(mean=array([1.]), cov=array([[1.75]]))
        """
        b = self._indices(idx)
        a = np.setdiff1d(np.arange(len(self.mean)), b)
        values = vector("values", np.atleast_1d(values))
        if len(values) != len(b) or not len(a):
            raise ValueError(f"Give one value for each of the {len(b)} entries, and leave at least one entry open.")
        # with the entries ordered (b, a) the factor's last block is the factor of the conditional covariance: no subtraction
        order = np.append(b, a)
        size = np.sqrt(self.var[order])
        factor = size[:, None] * np.linalg.cholesky(self.cov[np.ix_(order, order)] / np.outer(size, size))
        n = len(b)
        z = solve_triangular(factor[:n, :n], values - self.mean[b], lower=True)
        return MultivariateNormal(self.mean[a] + factor[n:, :n] @ z, factor[n:, n:] @ factor[n:, n:].T)

    def affine(self, A, b=0.0, noise_cov=None):
        """Return the distribution of Ax + b + e, where e has the mean 0, the covariance `noise_cov`, and nothing to do with x.

        Examples
        --------
        >>> MultivariateNormal([1, 2], [[2, 1], [1, 3]]).affine([[1, 1]], 10, noise_cov=[[0.5]])
        MultivariateNormal(mean=array([13.]), cov=array([[7.5]]))
        """
        A = np.asarray(A, dtype=float)
        if A.ndim != 2 or A.shape[1] != len(self.mean):
            raise ValueError(f"A must be a matrix with {len(self.mean)} columns, got the shape {A.shape}.")
        root = A @ self._factor
        noise = np.zeros((len(A), len(A))) if noise_cov is None else np.asarray(noise_cov, dtype=float)
        if noise.shape != (len(A), len(A)):
            raise ValueError(f"noise_cov must be a matrix of the shape ({len(A)}, {len(A)}), got the shape {noise.shape}.")
        return MultivariateNormal(A @ self.mean + b, root @ root.T + noise)

    def _draw(self, n, rng):
        return self.mean + rng.standard_normal((n, len(self.mean))) @ self._factor.T

    def _vectors(self, x):
        x = np.asarray(x, dtype=float)
        if x.shape[-1:] != self.mean.shape:
            raise ValueError(f"A vector must have {len(self.mean)} entries, got the shape {x.shape}.")
        return x

    def _indices(self, idx):
        idx = np.atleast_1d(np.arange(len(self.mean))[idx])
        if idx.ndim != 1 or not len(idx) or len(np.unique(idx)) != len(idx):
            raise ValueError("Name at least one entry, and none twice.")
        return idx

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the normal distribution under which the rows are most likely (complete rows only)."""
        x, shares = observations(data, sample_weight, ndim=2)
        mean = average(x, shares)
        root = np.sqrt(shares)[:, None] * (x - mean)
        try:
            return cls(mean, root.T @ root)
        except ValueError:
            message = "The rows lie in a plane of fewer dimensions, where the likelihood has no limit; drop columns."
            raise ValueError(message) from None
