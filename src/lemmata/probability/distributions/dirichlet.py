"""The Dirichlet distribution on the simplex, and what it knows after counting.

p(θ) = Γ(A)/ΠΓ(αₖ) Π θₖ^(αₖ−1) for θ ≥ 0, Σθ = 1, with A = Σα. The mean is m = α/A, the covariance (diag m − mmᵀ)/(A + 1). With
Stirling's remainders (`gamma_functions`) log p = Σ [αₖ(log(θₖ/mₖ) − θₖ/mₖ + 1) − log θₖ + ½ log αₖ − S(αₖ)] − ½ log A + S(A)
− ½(K − 1) log 2π, in which nothing large is left to cancel.

Counts c of categories have the likelihood Πθₖ^cₖ, hence the posterior Dirichlet(α + c), the predictive probabilities
(αₖ + cₖ)/(A + N), and, as an ordered sequence, the probability Γ(A)/Γ(A + N) Π Γ(αₖ + cₖ)/Γ(αₖ).

The mode is (αₖ − 1)/(A − K) if all αₖ > 1. Otherwise it lies on the boundary, where the density may be infinite; we mean the
limit of the maximum over θ ≥ ε as ε → 0. If some αₖ > 1 it is proportional to max(αₖ − 1, 0); else it is the corner of the
largest α.

Maximum likelihood. The log likelihood is concave in α; its slopes are gₖ = ψ(A) − ψ(αₖ) + mean(log θₖ), its Hessian is a
diagonal plus a multiple of the matrix of ones, so that Newton's step costs K operations [1]. We keep α = A·θ̄∘(1 + δ) with the
means θ̄ of the data and Σθ̄δ = 0: gₖ = L(αₖ) − L(A) − sₖ − log(1 + δₖ) with sₖ = log θ̄ₖ − mean(log θₖ), exact also when the
data hardly vary.

[1] Minka, Estimating a Dirichlet distribution (2000).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import polygamma

from lemmata.probability.distributions.base import SUM_TOLERANCE, Distribution, average, observations, vector
from lemmata.probability.distributions.categorical import Categorical
from lemmata.probability.distributions.gamma_functions import (
    HALF_LOG_2PI,
    log_gamma_kernel,
    log_minus_digamma,
    ratio_excess,
    stirling_remainder,
    trigamma_gap,
)

STEPS = 200  # a step at worst halves or doubles α, so that these reach any α from any other


def log_dirichlet(parts, alpha):
    """Return the log density at the vectors whose k-th entries are `parts[k]`, for α of the same layout.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_dirichlet(np.array([0.25, 0.75]), np.array([2.0, 1.0])))  # the density is 2x
    -0.693
    """
    total = alpha.sum(axis=0)
    kernel = log_gamma_kernel(parts, alpha, alpha / total) + 0.5 * np.log(alpha) - stirling_remainder(alpha)
    return kernel.sum(axis=0) - 0.5 * np.log(total) + stirling_remainder(total) - (len(alpha) - 1) * HALF_LOG_2PI


def log_polya(alpha, counts):
    """Return log Γ(A)/Γ(A + N) Π Γ(αₖ + cₖ)/Γ(αₖ) along the last axis, by Stirling's formula with its remainders.

    The terms in which α and c stand alone have canceled; the share of the largest category is taken as 1 − that of the rest.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_polya(np.ones(2), np.array([1e15, 0.0])))  # 1/(10¹⁵ + 1)
    -34.538776
    """
    after = alpha + counts
    total, n, whole = alpha.sum(), counts.sum(axis=-1), after.sum(axis=-1)
    first = np.arange(len(alpha)) == np.argmax(after, axis=-1)[..., None]
    rest = np.where(first, 0.0, after).sum(axis=-1)
    shares = np.where(first, np.log1p(-rest / whole)[..., None], np.log(after) - np.log(whole)[..., None])
    parts = counts * shares + (alpha - 0.5) * np.log1p(counts / alpha)
    parts += stirling_remainder(after) - stirling_remainder(alpha)
    bound = (total - 0.5) * np.log1p(n / total) + stirling_remainder(whole) - stirling_remainder(total)
    return parts.sum(axis=-1) - bound


def dirichlet_entropy(alpha):
    """Return the differential entropy in nats, with respect to all entries but one.

    Examples
    --------
    >>> import numpy as np
    >>> dirichlet_entropy(np.ones(3))  # uniform on a triangle of the area 1/2
    -0.693
    """
    total, k = alpha.sum(), len(alpha)
    parts = 0.5 * np.log(alpha) + stirling_remainder(alpha) + (alpha - 1) * log_minus_digamma(alpha)
    whole = (k - 0.5) * np.log(total) + stirling_remainder(total) + (total - k) * log_minus_digamma(total)
    return float(parts.sum() - whole + (k - 1) * HALF_LOG_2PI)


def dirichlet_mode(alpha):
    """Return where the density is greatest, also where it is infinite; refuse if it is so in several places.

    Examples
    --------
    >>> import numpy as np
    >>> dirichlet_mode(np.array([3.0, 2.0, 0.5])), dirichlet_mode(np.array([0.2, 0.3]))
    (array([0.667, 0.333, 0. ]), array([0., 1.]))
    """
    above = np.maximum(alpha - 1, 0.0)
    if not above.any():
        above = (alpha == alpha.max()).astype(float)
        if above.sum() > 1:
            raise ValueError(f"The density for {alpha} is greatest in many places: no entry exceeds 1, the largest tie.")
    return above / above.sum()


def concentrations(means, deficits):
    """Maximize the likelihood over α, given the means θ̄ₖ of the data and the deficits sₖ = log θ̄ₖ − mean(log θₖ) ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import digamma
    >>> alpha = np.array([2.0, 3.0])
    >>> m = alpha / 5  # then the expected log θ is ψ(α) − ψ(5)
    >>> concentrations(m, np.log(m) - digamma(alpha) + digamma(5.0))
    array([2., 3.])
    """
    total, shift = (len(means) - 1) / (2 * means @ deficits), np.zeros(len(means))  # the start is right as A → ∞

    def slopes(total, shift):
        return log_minus_digamma(total * means * (1 + shift)) - log_minus_digamma(total) - deficits - np.log1p(shift)

    g = slopes(total, shift)
    for _ in range(STEPS):
        shares = means * (1 + shift)
        alpha = total * shares
        gap = trigamma_gap(alpha)
        common = (g / polygamma(1, alpha)).sum() / (gap.sum() - trigamma_gap(total))
        own = g - gap / alpha * (g + common)
        size = min(1.0, 0.9 / max(-(common + own).min(), 0.9))  # no entry may lose more than nine tenths
        gain = alpha @ (g * (common + own))
        while True:
            mean = shares @ own
            growth = 1 + size * (common + mean)
            new_total, new_shift = total * growth, shift + (1 + shift) * size * (own - mean) / growth
            new_g = slopes(new_total, new_shift)
            if size * np.abs(common + own).max() < 1e-8:  # the error is now of the order of the square of this
                return new_total * means * (1 + new_shift)
            if alpha @ (new_g * (common + own)) >= -gain:  # not too far beyond the maximum along this line
                break
            size /= 2
        total, shift, g = new_total, new_shift, new_g
    raise ValueError("The rows are equal up to rounding: the likelihood has no maximum that this data could show.")


@dataclass(frozen=True, eq=False)
class Dirichlet(Distribution):
    """Dirichlet distribution of vectors of probabilities.

    Parameters
    ----------
    alpha : Concentrations αₖ > 0, at least two.

    Examples
    --------
    >>> prior = Dirichlet([1, 1, 1])
    >>> posterior = prior.update([3, 0, 1])
    >>> posterior
    Dirichlet(alpha=array([4., 1., 2.]))
    >>> posterior.predictive().p, posterior.map()
    (array([0.571, 0.143, 0.286]), array([0.75, 0. , 0.25]))
    >>> float(np.exp(prior.log_marginal([3, 0, 1]))) * 60
    1.0
    """

    alpha: np.ndarray

    def __post_init__(self):
        alpha = vector("alpha", self.alpha, least=2)
        if not (alpha > 0).all():
            raise ValueError(f"alpha must be positive, got {alpha}.")
        self._store(alpha=alpha)

    @property
    def mean(self):
        """Mean vector, α / Σα."""
        return self.alpha / self.alpha.sum()

    @property
    def var(self):
        """Variances of the entries."""
        return self.mean * (1 - self.mean) / (1 + self.alpha.sum())

    @property
    def cov(self):
        """Covariance matrix; singular, as the entries sum to one."""
        return (np.diag(self.mean) - np.outer(self.mean, self.mean)) / (1 + self.alpha.sum())

    @property
    def mode(self):
        """Where the density is greatest, on the boundary if some α ≤ 1; refused where there is no one such place."""
        return dirichlet_mode(self.alpha)

    def map(self):
        """Return the most probable vector of probabilities: `mode`."""
        return self.mode

    def entropy(self):
        """Return the differential entropy in nats, with respect to all entries but one."""
        return dirichlet_entropy(self.alpha)

    def logpdf(self, x):
        """Return the log density at each vector (the last axis of x); −∞ if it is not on the simplex."""
        x = self._vectors(x)
        inside = (x >= 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1) <= SUM_TOLERANCE)
        result = np.where(np.isnan(x).any(axis=-1), np.nan, -np.inf)
        alpha = self.alpha.reshape(-1, 1)
        with np.errstate(divide="ignore"):
            result[inside] = log_dirichlet(x[inside].reshape(-1, len(self.alpha)).T, alpha)
        return result[()]

    def logpdf_gradient(self, x):
        """Return the gradient of the log density, (α − 1)/θ; along the simplex only its differences matter."""
        return (self.alpha - 1) / self._vectors(x)

    def update(self, counts):
        """Return the posterior after these counts of the categories."""
        return Dirichlet(self.alpha + self._counts(counts, ndim=1))

    def predictive(self):
        """Return the distribution of the next category."""
        return Categorical(self.mean)

    def log_marginal(self, counts):
        """Return the log probability of a sequence of categories with these counts (the last axis), in any one order."""
        counts = self._counts(counts)
        return log_polya(self.alpha, counts)

    def _draw(self, n, rng):
        return rng.dirichlet(self.alpha, size=n)

    def _vectors(self, x):
        x = np.asarray(x, dtype=float)
        if x.shape[-1:] != self.alpha.shape:
            raise ValueError(f"A vector must have {len(self.alpha)} entries, got the shape {x.shape}.")
        return x

    def _counts(self, counts, ndim=None):
        counts = self._vectors(counts)
        if not (np.isfinite(counts) & (counts >= 0)).all() or ndim not in (None, counts.ndim):
            raise ValueError(f"Counts must be {len(self.alpha)} finite numbers, none negative; got {counts}.")
        return counts

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the Dirichlet distribution under which the rows, vectors of probabilities, are most likely."""
        x, shares = observations(data, sample_weight, ndim=2)
        if x.shape[1] < 2 or not (x > 0).all() or np.abs(x.sum(axis=1) - 1).max() > SUM_TOLERANCE:
            raise ValueError("Each row must be two or more positive probabilities with the sum 1; a zero has no likelihood.")
        if not np.ptp(x, axis=0).any():
            raise ValueError("All rows are equal: the likelihood of a Dirichlet distribution grows without limit with alpha.")
        mean = average(x, shares)
        return cls(concentrations(mean / mean.sum(), shares @ ratio_excess(x, mean)))
