"""The gamma distribution, by shape and rate.

f(x) = bᵃ xᵃ⁻¹ e^(−bx) / Γ(a) for x > 0, with mean a/b, variance a/b², mode max(a − 1, 0)/b. With m = a/b and Stirling's
remainder S (`gamma_functions`) log f = a(log(x/m) − x/m + 1) − log x + ½ log a − ½ log 2π − S(a), whose terms stay small for
any a, and the entropy is ½ log a − log b + ½ log 2π + S(a) + (a − 1) L(a), L(a) = log a − ψ(a).

Maximum likelihood puts the rate at b = a / mean(x), and the shape where the concave profile likelihood has the slope zero,
L(a) = log mean(x) − mean(log x) =: s > 0. Newton's method on this equation in 1/a, in which L is nearly linear, takes about
four steps from the start below [1].

[1] Minka, Estimating a Gamma distribution (2002).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincinv, polygamma

from lemmata.probability.distributions.base import Univariate, average, observations, positive
from lemmata.probability.distributions.gamma_functions import (
    HALF_LOG_2PI,
    log_gamma_kernel,
    log_minus_digamma,
    ratio_excess,
    stirling_remainder,
    trigamma_gap,
)

STEPS = 20  # the steps shrink quadratically; four or five reach rounding


@dataclass(frozen=True, eq=False)
class Gamma(Univariate):
    """Gamma distribution.

    Parameters
    ----------
    shape : Shape a > 0.
    rate : Rate b > 0; the mean is a/b.

    Examples
    --------
    >>> print(Gamma(3, 2).mean, Gamma(3, 2).mode, Gamma(1, 2).logpdf(0.5))
    1.5 1.0 -0.30685
    >>> Gamma.fit([1.0, 2.0, 4.0])
    Gamma(shape=3.4012, rate=1.45766)
    """

    shape: float
    rate: float

    support = (0.0, np.inf)

    def __post_init__(self):
        self._store(shape=positive("shape", self.shape), rate=positive("rate", self.rate))

    @property
    def mean(self):
        """Mean."""
        return self.shape / self.rate

    @property
    def var(self):
        """Variance."""
        return self.shape / self.rate / self.rate

    @property
    def mode(self):
        """Where the density is greatest; it is infinite there if the shape is below 1."""
        return max(self.shape - 1, 0.0) / self.rate

    def entropy(self):
        """Return the differential entropy in nats."""
        a = self.shape
        remainders = stirling_remainder(a) + (a - 1) * log_minus_digamma(a)
        return float(0.5 * np.log(a) - np.log(self.rate) + HALF_LOG_2PI + remainders)

    def _logpdf(self, x):
        a = self.shape
        return log_gamma_kernel(x, a, self.mean) + 0.5 * np.log(a) - HALF_LOG_2PI - stirling_remainder(a)

    def logpdf_gradient(self, x):
        """Return the derivative of the log density at x > 0."""
        return (self.shape - 1) / np.asarray(x, dtype=float) - self.rate

    def _cdf(self, x):
        return gammainc(self.shape, self.rate * x)

    def _icdf(self, u):
        return gammaincinv(self.shape, u) / self.rate

    def _draw(self, n, rng):
        return rng.gamma(self.shape, 1 / self.rate, size=n)

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the gamma distribution under which the data are most likely."""
        x, shares = observations(data, sample_weight)
        if not (x > 0).all():
            raise ValueError("A gamma distribution has positive values only; a zero or negative value cannot be fitted.")
        if not np.ptp(x) > 0:
            raise ValueError("All values are equal: the likelihood of a gamma distribution grows without limit with the shape.")
        mean = average(x, shares)
        shape = shape_of(float(shares @ ratio_excess(x, mean)))
        return cls(shape, shape / mean)


def shape_of(s):
    """Return the a with log a − ψ(a) = s, for s > 0.

    Examples
    --------
    >>> import numpy as np
    >>> shape_of(float(np.euler_gamma))  # ψ(1) is minus Euler's constant
    1.0
    """
    a = (3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s) if s < 10 else 1 / s
    for _ in range(STEPS):
        # the derivative of L is 1/a − ψ′(a) = −ψ′(a) (a − 1/ψ′(a))/a, so 1/a′ = (1 − change)/a
        change = (log_minus_digamma(a) - s) / (polygamma(1, a) * trigamma_gap(a))
        a = float(a / (1 - min(change, 0.5)))
        if abs(change) < 1e-8:  # the next change would be of the order of its square
            break
    return a
