"""The normal distribution on the line.

N(x | μ, σ²) = exp(−(x − μ)²/(2σ²)) / (√(2π) σ): the constant is √(2πσ²), for √(2πσ) leaves the mass √σ. F(x) = Φ((x − μ)/σ),
F⁻¹(u) = μ + σ√2 erf⁻¹(2u − 1). The likelihood is greatest at the mean of the data and the root of their mean squared deviation.
Among all densities with the variance σ² it has the largest entropy, ½ log(2πeσ²): the maximum of the concave −∫p log p under
∫p = 1 and ∫p(x − μ)² = σ² is where log p is an affine function of (x − μ)², and its slope λ = −1/(2σ²) must be negative, or p
would have no integral (`checks.check_maximum_entropy`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from lemmata.probability.distributions.base import Univariate, average, deviation, observations, positive, real
from lemmata.probability.distributions.gamma_functions import HALF_LOG_2PI


@dataclass(frozen=True, eq=False)
class Normal(Univariate):
    """Normal distribution with mean `loc` and standard deviation `scale`.

    Parameters
    ----------
    loc : Mean μ.
    scale : Standard deviation σ > 0.

    Examples
    --------
    >>> print(Normal(0, 1).icdf(0.975), Normal(0, 2).entropy())
    1.959964 2.112086
    >>> Normal.fit([1.0, 2.0, 3.0])
    Normal(loc=2.0, scale=0.816)
    """

    loc: float
    scale: float

    def __post_init__(self):
        self._store(loc=real("loc", self.loc), scale=positive("scale", self.scale))

    @property
    def mean(self):
        """Mean."""
        return self.loc

    @property
    def var(self):
        """Variance."""
        return self.scale**2

    @property
    def mode(self):
        """Where the density is greatest."""
        return self.loc

    def entropy(self):
        """Return the differential entropy in nats."""
        return float(0.5 + HALF_LOG_2PI + np.log(self.scale))

    def _logpdf(self, x):
        return -0.5 * ((x - self.loc) / self.scale) ** 2 - HALF_LOG_2PI - np.log(self.scale)

    def logpdf_gradient(self, x):
        """Return the derivative of the log density at x."""
        return (self.loc - np.asarray(x, dtype=float)) / self.scale / self.scale

    def _cdf(self, x):
        return ndtr((x - self.loc) / self.scale)

    def _icdf(self, u):
        return self.loc + self.scale * ndtri(u)

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the normal distribution under which the data are most likely."""
        x, shares = observations(data, sample_weight)
        loc = average(x, shares)
        if not np.ptp(x) > 0:
            raise ValueError("All values are equal: the likelihood of a normal distribution has no limit as scale → 0.")
        return cls(loc, deviation(x, loc, shares))
