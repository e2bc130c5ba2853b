"""Bernoulli and binomial distributions: one toss, and the number of heads among n.

P(1) = p, P(0) = 1 − p. A sequence of tosses with c heads among n has the probability p^c (1 − p)^(n − c): it depends on the
order in no way. The number of heads has C(n, c) times that; the factor has no p in it, so both give the same likelihood ratios
and the same maximum, p = c/n. C(n, c) p^c (1 − p)^(n − c) is also the Beta(c + 1, n − c + 1) density at p, divided by n + 1:
this form keeps all digits for large n.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, entr, xlog1py, xlogy

from lemmata.probability.distributions.base import Discrete, average, observations, probability
from lemmata.probability.distributions.dirichlet import log_dirichlet


@dataclass(frozen=True, eq=False)
class Bernoulli(Discrete):
    """One toss: 1 with the probability p, 0 otherwise.

    Parameters
    ----------
    p : Probability of 1.

    Examples
    --------
    >>> Bernoulli(0.25).pmf([0, 1, 2]), Bernoulli.fit([1, 0, 0, 1])
    (array([0.75, 0.25, 0. ]), Bernoulli(p=0.5))
    """

    p: float

    support = (0, 1)

    def __post_init__(self):
        self._store(p=probability("p", self.p))

    @property
    def mean(self):
        """Mean."""
        return self.p

    @property
    def var(self):
        """Variance."""
        return self.p * (1 - self.p)

    @property
    def mode(self):
        """The more probable value, 0 if they are equal."""
        return int(self.p > 0.5)

    def entropy(self):
        """Return the entropy in nats."""
        return float(entr(self.p) + entr(1 - self.p))

    def _logpdf(self, x):
        return xlogy(x, self.p) + xlog1py(1 - x, -self.p)

    def _cdf(self, k):
        return np.full(np.shape(k), 1 - self.p)

    @classmethod
    def fit(cls, data, sample_weight=None):
        """Return the distribution under which the data, zeros and ones, are most likely."""
        x, shares = observations(data, sample_weight)
        if not np.isin(x, (0, 1)).all():
            raise ValueError("The data of a Bernoulli distribution are zeros and ones.")
        return cls(shares[x == 1].sum() if (x == 0).any() else 1.0)


@dataclass(frozen=True, eq=False)
class Binomial(Discrete):
    """The number of ones among n independent tosses.

    Parameters
    ----------
    n : Number of tosses.
    p : Probability of a one.

    Examples
    --------
    >>> Binomial(3, 0.5).pmf([0, 1, 2, 3]), Binomial(3, 0.5).var
    (array([0.125, 0.375, 0.375, 0.125]), 0.75)
    >>> Binomial.fit([2, 3, 1], n=4)
    Binomial(n=4, p=0.5)
    """

    n: int
    p: float

    def __post_init__(self):
        if self.n != int(self.n) or self.n < 0:
            raise ValueError(f"n must be a whole number, not negative; got {self.n!r}.")
        self._store(n=int(self.n), p=probability("p", self.p))

    @property
    def support(self):
        """Least and greatest value."""
        return 0, self.n

    @property
    def mean(self):
        """Mean."""
        return self.n * self.p

    @property
    def var(self):
        """Variance."""
        return self.n * self.p * (1 - self.p)

    @property
    def mode(self):
        """The most probable value, the larger one of two."""
        return min(int((self.n + 1) * self.p), self.n)

    def entropy(self):
        """Return the entropy in nats, a sum over all values."""
        return float(entr(self.pmf(np.arange(self.n + 1))).sum())

    def _logpdf(self, k):
        odds = np.array([self.p, 1 - self.p]).reshape(2, *[1] * k.ndim)
        return log_dirichlet(odds, np.array([k + 1, self.n - k + 1])) - np.log(self.n + 1)

    def _cdf(self, k):
        return betainc(np.maximum(self.n - k, 1), k + 1, 1 - self.p)

    def _draw(self, n, rng):
        return rng.binomial(self.n, self.p, size=n)

    @classmethod
    def fit(cls, data, sample_weight=None, *, n):
        """Return the distribution with this n under which the data, numbers of ones, are most likely."""
        x, shares = observations(data, sample_weight)
        if not ((x >= 0) & (x <= n) & (x == np.floor(x))).all() or n < 1:
            raise ValueError(f"The data must be numbers of ones among n = {n} ≥ 1 tosses.")
        return cls(n, min(average(x, shares) / n, 1.0))
