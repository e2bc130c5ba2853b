"""What AdaBoost fits in a round: a stump by kernels, or any classifier; to weighted rows, or to rows drawn by weight.

A learner holds the rows, their class numbers y and weights `base`. `fit` takes the factor by which boosting has multiplied
each of these weights, keeps a new member, and returns the number of the class that it gives to each row.
"""

import numpy as np
from sklearn.base import clone

from lemmata.ensemble.bag import bag_counts, bag_size
from lemmata.ensemble.stump_kernels import whole_units
from lemmata.ensemble.stumps import StumpTable

INTEGRAL = 1 << 24  # sums of whole weights up to which their products with units stay exact to 1e-11
MOST_DRAWS = 100  # in a row without two classes
TRIES = 10  # draws of rows after which members that are no better than guessing are no bad luck


class Draws:
    """Draws of rows with the weights as odds, as many rows as there are, numbered from 0.

    A draw depends on the seed, its number and the weights only, so that a certificate finds the same one.

    Examples
    --------
    >>> draws = Draws(0, np.ones(4))
    >>> int(draws.counts(3, np.array([0.1, 0.2, 0.3, 0.4])).sum())
    4
    """

    def __init__(self, seed, base):
        self.seed, self.n_draws = seed, bag_size(None, len(base), base)
        self.made, self.used = 0, []

    def counts(self, number, odds):
        """Count how often a draw has each row."""
        return bag_counts(self.seed + number, self.n_draws, len(odds), odds)

    def next(self, odds, y):
        """Make a new draw, one with rows of two classes at least, and note that it is used."""
        for _ in range(MOST_DRAWS):
            counts = self.counts(self.made, odds)
            self.made += 1
            present = y[counts > 0]
            if (present != present[0]).any():
                self.used.append(self.made - 1)
                return counts
        raise ValueError(
            f"{MOST_DRAWS} draws of rows all held a single class, for the others weigh next to nothing: set resample=False, or "
            "boost an estimator that takes sample_weight."
        )


class Learner:
    """What learners share: the rows' classes and weights, draws if there are any, and the members so far."""

    def __init__(self, y, base, n_classes, draws):
        self.y, self.base, self.n_classes, self.draws, self.members = y, base, n_classes, draws, []

    @property
    def tries(self):
        """How often a member may be no better than guessing: other rows may be drawn, other weights are not to be had."""
        return 1 if self.draws is None else TRIES

    def discard(self):
        """Forget the last member."""
        self.members.pop()
        if self.draws is not None:
            self.draws.used.pop()


class StumpLearner(Learner):
    """Fits stumps, all by the kernels of `stumps`; rows are in the order of their classes."""

    def __init__(self, X, y, base, n_classes, draws):
        self.table = StumpTable(X, y, n_classes)
        super().__init__(self.table.of_class, base[self.table.rows], n_classes, draws)
        self.integral = bool(base.sum() <= INTEGRAL and (base == np.rint(base)).all())
        self.labels = y
        self.units, self.codes = np.empty(len(y), np.int64), np.empty(len(y), np.int32)

    def fit(self, multiplier):
        """Fit a stump; return the classes it gives."""
        rows = self.table.rows
        if self.draws is None:
            whole_units(multiplier, self.base, self.integral, self.units)
        else:
            odds = np.empty(len(rows))
            odds[rows] = self.base * multiplier
            self.units = self.draws.next(odds, self.labels)[rows]
        self.members.append(self.table.best(self.units))
        return self.table.classes(self.members[-1], self.codes)


class MemberLearner(Learner):
    """Fits members of any kind."""

    def __init__(self, X, y, base, classes, draws, estimator, rngs):
        super().__init__(y, base, len(classes), draws)
        self.X, self.labels, self.classes, self.estimator, self.rngs = X, classes[y], classes, estimator, rngs

    def fit(self, multiplier):
        """Fit a member; return the classes it gives."""
        weight = self.base * multiplier
        member = seeded(clone(self.estimator), self.rngs[len(self.members)])
        if self.draws is None:
            member.fit(self.X, self.labels, sample_weight=weight * self.base.sum())  # a weight means repetition
        else:
            rows = np.repeat(np.arange(len(weight)), self.draws.next(weight, self.y))
            member.fit(self.X[rows], self.labels[rows])
        self.members.append(member)
        return np.searchsorted(self.classes, member.predict(self.X))


def seeded(estimator, rng):
    """Give an estimator seeds of its own, wherever it takes one."""
    names = [name for name in sorted(estimator.get_params()) if name == "random_state" or name.endswith("__random_state")]
    return estimator.set_params(**{name: int(rng.integers(2**31)) for name in names})
