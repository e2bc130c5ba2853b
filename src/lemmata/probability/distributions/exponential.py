"""The exponential distribution: waiting times without memory.

f(x) = θ e^(−θx) for x ≥ 0, F(x) = 1 − e^(−θx), quantile −log(1 − u)/θ, mean 1/θ, variance 1/θ², entropy 1 − log θ. The
likelihood θⁿ e^(−θΣx) is greatest at θ = 1/mean(x). As a function of θ it is a gamma density, so a `Gamma(a, b)` prior gives
the posterior `Gamma(a + n, b + Σx)` (`conjugate.posterior`).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.probability.distributions.base import Univariate, average, observations, positive


@dataclass(frozen=True, eq=False)
class Exponential(Univariate):
    """Exponential distribution.

    Parameters
    ----------
    rate : Rate θ > 0; the mean is 1/θ.

    Examples
    --------
    >>> print(Exponential(2).icdf(0.5), Exponential.fit([1.0, 3.0]))
    0.346574 Exponential(rate=0.5)
    """

    rate: float

    support = (0.0, np.inf)

    def __post_init__(self):
        self._store(rate=positive("rate", self.rate))

    @property
    def mean(self):
        """Mean."""
        return 1 / self.rate

    @property
    def var(self):
        """Variance."""
        return self.rate**-2

    @property
    def mode(self):
        """Where the density is greatest."""
        return 0.0

    def entropy(self):
        """Return the differential entropy in nats."""
        return 1 - float(np.log(self.rate))

    def _logpdf(self, x):
        return np.log(self.rate) - self.rate * x

    def logpdf_gradient(self, x):
        """Return the derivative of the log density at x > 0."""
        return np.full(np.shape(x), -self.rate)[()]

    def _cdf(self, x):
        return -np.expm1(-self.rate * x)

    def _icdf(self, u):
        return -np.log1p(-u) / self.rate

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the exponential distribution under which the data are most likely."""
        x, shares = observations(data, sample_weight)
        if (x < 0).any() or not (x > 0).any():
            raise ValueError("An exponential distribution has no negative values, and some value must be positive.")
        return cls(1 / average(x, shares))
