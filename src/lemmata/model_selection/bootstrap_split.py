"""Resamples as splits: fit to a bag, drawn with repetition, and test on the rows that it has left out.

A bag of n draws leaves out a row with chance (1 − 1/n)ⁿ, about 0.368: so a model is tested on a third of the rows, and is
fitted to 0.632 n different ones.
"""

from numbers import Integral

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import _num_samples

from lemmata.core.random import generator, spawn


class BootstrapSplit(BaseCrossValidator):
    """Split rows into a bag, with repetitions, and the rows out of it.

    The scores of its splits are those of the leave-one-out bootstrap, pessimistic by what a model loses with a third fewer
    rows; `BootstrapScorer` corrects for that.

    Parameters
    ----------
    n_splits : Bags.
    stratified : Whether a bag has as many rows of each class as the table; rows are drawn within each class then.
    random_state : Seed; an integer gives the same bags at each call of `split`.

    Examples
    --------
    >>> import numpy as np
    >>> for bag, out in BootstrapSplit(2, random_state=0).split(np.zeros((5, 1))):
    ...     print(len(bag), sorted(set(bag.tolist()) | set(out.tolist())), set(bag) & set(out))
    5 [0, 1, 2, 3, 4] set()
    5 [0, 1, 2, 3, 4] set()

    A splitter of scikit-learn's kind, for its searches and selectors:

    >>> from lemmata.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> scores = cross_val_score(Ridge(), X, y, cv=BootstrapSplit(10, random_state=0))
    >>> len(scores), bool(scores.min() > 0.98)
    (10, True)
    """

    def __init__(self, n_splits=100, *, stratified=False, random_state=None):
        self.n_splits = n_splits
        self.stratified = stratified
        self.random_state = random_state

    def split(self, X, y=None, groups=None):
        """Yield (bag, out): numbers of rows, those of the bag in order and repeated.

        Parameters
        ----------
        X, y : Rows, of which only the number matters, and their classes if stratified.
        groups : Must be None: rows are drawn one by one.
        """
        if groups is not None:
            raise ValueError("Rows are drawn one by one; groups that stay together need a splitter such as GroupKFold.")
        n = _num_samples(X)
        if self.stratified and y is None:
            raise ValueError("stratified=True needs the classes y.")
        classes = np.unique(np.asarray(y), return_inverse=True)[1] if self.stratified else np.zeros(n, dtype=np.int64)
        if np.bincount(classes).max() < 2:
            raise ValueError(f"A bag of {n} row{'s' if n > 1 else ''} drawn within classes leaves none out: give more rows.")
        for rng in spawn(generator(self.random_state), self.get_n_splits()):
            counts = draw_bag(rng, classes)
            yield np.repeat(np.arange(n), counts), np.flatnonzero(counts == 0)

    def get_n_splits(self, X=None, y=None, groups=None):
        """Give the number of bags."""
        if not isinstance(self.n_splits, Integral) or isinstance(self.n_splits, bool) or self.n_splits < 1:
            raise ValueError(f"n_splits must be a whole number of at least 1, got {self.n_splits!r}.")
        return int(self.n_splits)


def draw_bag(rng, classes):
    """Draw rows within each class, again until a row is left out; give how often the bag has each.

    Examples
    --------
    >>> counts = draw_bag(np.random.default_rng(0), np.array([0, 0, 1, 1]))
    >>> int(counts[:2].sum()), int(counts.min())
    (2, 0)
    """
    while True:
        counts = np.zeros(len(classes), dtype=np.int64)
        for k in range(classes.max() + 1):
            rows = np.flatnonzero(classes == k)
            counts[rows] = np.bincount(rng.integers(len(rows), size=len(rows)), minlength=len(rows))
        if (counts == 0).any():  # half of the bags or more, where a class has two rows
            return counts


class ResubstitutionSplit(BaseCrossValidator):
    """Split nothing off: one split, fitted to all rows and tested on all of them. For scorers that resample by themselves.

    Examples
    --------
    >>> import numpy as np
    >>> [(fit.tolist(), test.tolist()) for fit, test in ResubstitutionSplit().split(np.zeros((3, 1)))]
    [([0, 1, 2], [0, 1, 2])]
    """

    def split(self, X, y=None, groups=None):
        """Yield all rows, twice."""
        rows = np.arange(_num_samples(X))
        yield rows, rows

    def get_n_splits(self, X=None, y=None, groups=None):
        """Give 1."""
        return 1
