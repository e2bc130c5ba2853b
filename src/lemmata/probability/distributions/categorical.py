"""The categorical distribution: one of K categories, numbered 0, …, K − 1.

P(k) = pₖ. A sequence of categories has the probability Π p_{xₙ} = Π pₖ^c(k), where c(k) counts how often k occurs: the counts
are all that the likelihood knows of the data, and p = c/N makes it greatest. Mean, variance, `cdf` and `icdf` are those of the
number of the category; the mean of the indicators is p itself.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import entr

from lemmata.probability.distributions.base import Discrete, observations, probabilities


@dataclass(frozen=True, eq=False)
class Categorical(Discrete):
    """One of K categories.

    Parameters
    ----------
    p : Probabilities of the categories 0, …, K − 1, with the sum 1.

    Examples
    --------
    >>> Categorical([0.2, 0.5, 0.3]).icdf([0.1, 0.6, 0.9]), Categorical([0.2, 0.5, 0.3]).mode
    (array([0, 1, 2]), 1)
    >>> Categorical.fit([0, 0, 2, 0]).p
    array([0.75, 0. , 0.25])
    """

    p: np.ndarray
    _cumulative: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        p = probabilities("p", self.p)
        self._store(p=p, _cumulative=np.minimum(np.cumsum(p), 1.0))

    @property
    def support(self):
        """Least and greatest value."""
        return 0, len(self.p) - 1

    @property
    def mean(self):
        """Mean number of the category."""
        return float(self.p @ np.arange(len(self.p)))

    @property
    def var(self):
        """Variance of the number of the category."""
        return float(self.p @ (np.arange(len(self.p)) - self.mean) ** 2)

    @property
    def mode(self):
        """The most probable category, the first one of several."""
        return int(np.argmax(self.p))

    def entropy(self):
        """Return the entropy in nats."""
        return float(entr(self.p).sum())

    def _logpdf(self, k):
        return np.log(self.p[k.astype(int)])

    def _cdf(self, k):
        return self._cumulative[k.astype(int)]

    @classmethod
    def fit(cls, data, sample_weight=None, *, n_categories=None):
        """Return the distribution under which the data are most likely.

        Parameters
        ----------
        data : Categories as whole numbers from 0.
        n_categories : K; by default the largest category seen, plus 1.
        """
        x, shares = observations(data, sample_weight)
        if not ((x >= 0) & (x == np.floor(x))).all() or (n_categories is not None and x.max() >= n_categories):
            raise ValueError("Categories must be whole numbers from 0 to n_categories − 1.")
        return cls(np.bincount(x.astype(int), weights=shares, minlength=n_categories or 0))
