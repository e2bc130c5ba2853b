"""The logistic distribution: its distribution function is the sigmoid.

F(x) = 1/(1 + exp(−z)) with z = (x − μ)/s, density F(1 − F)/s, quantile μ + s log(u/(1 − u)), mean μ, variance s²π²/3, entropy
log s + 2. In a = 1/s and b = μ/s, where z = ax − b, the mean log likelihood log a + mean(log F + log(1 − F)) is concave,
because log σ(z) is concave and z is affine in (a, b). Newton's method with halved steps therefore ends at the one maximum,
where mean tanh(z/2) = 0 and mean x tanh(z/2) = 1/a.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from lemmata.probability.distributions.base import Univariate, average, deviation, observations, positive, real

STEPS = 200  # Newton needs about ten; halving the step costs more only where the data are absurdly spread


@dataclass(frozen=True, eq=False)
class LogisticDistribution(Univariate):
    """Logistic distribution.

    Parameters
    ----------
    loc : Mean μ.
    scale : Scale s > 0; the standard deviation is sπ/√3.

    Examples
    --------
    >>> print(LogisticDistribution(0, 1).icdf(0.9), LogisticDistribution(0, 1).var)
    2.197225 3.289868
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
        return (self.scale * np.pi) ** 2 / 3

    @property
    def mode(self):
        """Where the density is greatest."""
        return self.loc

    def entropy(self):
        """Return the differential entropy in nats."""
        return 2 + float(np.log(self.scale))

    def _logpdf(self, x):
        return _log_density(self._standard(x)) - np.log(self.scale)

    def logpdf_gradient(self, x):
        """Return the derivative of the log density at x."""
        return -np.tanh(self._standard(np.asarray(x, dtype=float)) / 2) / self.scale

    def _cdf(self, x):
        return expit(self._standard(x))

    def _icdf(self, u):
        return self.loc + self.scale * logit(u)

    def _standard(self, x):
        return (x - self.loc) / self.scale

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the logistic distribution under which the data are most likely."""
        x, shares = observations(data, sample_weight)
        if not np.ptp(x) > 0:
            raise ValueError("All values are equal: the likelihood of a logistic distribution has no limit as scale → 0.")
        center = average(x, shares)
        spread = deviation(x, center, shares)
        a, b = _newton((x - center) / spread, shares)
        return cls(center + spread * b / a, spread / a)


def _log_density(z):
    """Return log σ(z) + log σ(−z), which is even in z."""
    return -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))


def _newton(x, shares):
    """Maximize log a + mean log σ(z)σ(−z), z = ax − b, over a > 0 and b."""
    a, b = np.pi / np.sqrt(3), 0.0  # right for the mean and variance of the data, 0 and 1

    def value(a, b):
        return np.log(a) + shares @ _log_density(a * x - b)

    here = value(a, b)
    for _ in range(STEPS):
        z = a * x - b
        slope, bend = np.tanh(z / 2), 2 * expit(z) * expit(-z)
        gradient = np.array([1 / a - shares @ (x * slope), shares @ slope])
        cross = shares @ (x * bend)
        curvature = np.array([[1 / a**2 + shares @ (x * x * bend), -cross], [-cross, shares @ bend]])
        step = np.linalg.solve(curvature, gradient)
        decrement = gradient @ step
        size = min(1.0, 0.9 * a / max(-step[0], 0.5 * a))
        if decrement < 1e-14:  # the error after this step is of the order of its square
            return a + step[0], b + step[1]
        while (there := value(a + size * step[0], b + size * step[1])) < here:
            size /= 2
        a, b, here = a + size * step[0], b + size * step[1], there
    raise ValueError("The likelihood of the logistic distribution was not maximized: are there values of absurd size?")
