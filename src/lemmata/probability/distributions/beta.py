"""The beta distribution: a probability of which we are not sure.

p(x) = xᵃ⁻¹(1 − x)ᵇ⁻¹ / B(a, b) on [0, 1]: the first entry of a Dirichlet vector (x, 1 − x) with α = (a, b), and every formula
here is the one of `dirichlet` with K = 2. The mean is a/(a + b), the variance mean·(1 − mean)/(a + b + 1). After h heads and t
tails Beta(a, b) becomes Beta(a + h, b + t).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincinv, betaln

from lemmata.probability.distributions.base import Univariate, average, observations, positive
from lemmata.probability.distributions.dirichlet import concentrations, dirichlet_entropy, dirichlet_mode, log_dirichlet
from lemmata.probability.distributions.gamma_functions import ratio_excess

FAR = 1e-8  # of (1 + b) x, whose square is what two terms of the distribution function neglect


@dataclass(frozen=True, eq=False)
class Beta(Univariate):
    """Beta distribution.

    Parameters
    ----------
    a, b : Shapes > 0, the weights of evidence for 1 and for 0.

    Examples
    --------
    >>> coin = Beta(100, 50)
    >>> coin.mean, coin.mode, coin.var**0.5
    (0.666667, 0.668919, 0.038362)
    """

    a: float
    b: float

    support = (0.0, 1.0)

    def __post_init__(self):
        self._store(a=positive("a", self.a), b=positive("b", self.b))

    @property
    def mean(self):
        """Mean."""
        return self.a / (self.a + self.b)

    @property
    def var(self):
        """Variance."""
        total = self.a + self.b
        return self.a / total * (self.b / total) / (total + 1)

    @property
    def mode(self):
        """Where the density is greatest; refused where it is so in more than one place."""
        return float(dirichlet_mode(self._alpha)[0])

    @property
    def _alpha(self):
        return np.array([self.a, self.b])

    def entropy(self):
        """Return the differential entropy in nats."""
        return dirichlet_entropy(self._alpha)

    def _logpdf(self, x):
        return log_dirichlet(np.array([x, 1 - x]), self._alpha.reshape(2, *[1] * x.ndim))

    def logpdf_gradient(self, x):
        """Return the derivative of the log density at 0 < x < 1."""
        x = np.asarray(x, dtype=float)
        return (self.a - 1) / x - (self.b - 1) / (1 - x)

    def _cdf(self, x):
        return betainc(self.a, self.b, x)

    def _icdf(self, u):
        # far out in the lower tail, where SciPy gives NaN or misses, F is xᵃ / (a B(a, b)) · (1 + a (1 − b) x / (a + 1))
        with np.errstate(divide="ignore"):
            first = np.exp(np.minimum((np.log(u) + np.log(self.a) + betaln(self.a, self.b)) / self.a, 0.0))
        near = first * (1 - (1 - self.b) / (self.a + 1) * first)
        return np.where(first * (1 + self.b) < FAR, near, betaincinv(self.a, self.b, u))

    def _draw(self, n, rng):
        return rng.beta(self.a, self.b, size=n)

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the beta distribution under which the data are most likely."""
        x, shares = observations(data, sample_weight)
        if not ((x > 0) & (x < 1)).all():
            raise ValueError("Values must lie strictly between 0 and 1; the ends have no finite likelihood.")
        if not np.ptp(x) > 0:
            raise ValueError("All values are equal: the likelihood of a beta distribution grows without limit with its shapes.")
        mean = average(x, shares)
        deficits = shares @ ratio_excess(x, mean), shares @ ratio_excess(1 - x, 1 - mean)
        return cls(*concentrations(np.array([mean, 1 - mean]), np.array(deficits)))
