"""Sets of at most n points: the class that reaches Sauer's bound.

h is True on n points or fewer. Any n points are shattered, and n + 1 cannot all be True, so the dimension is n, and m points
have Σ_{i≤n} C(m, i) labelings, Sauer's bound with equality. The fewest errors: the n largest positive gains (weight of the
True labels of a point, minus weight of its False ones).
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.hypotheses import EmpiricalMinimum, HypothesisClass, Refutation
from lemmata.theory.classes.labelings import as_labels, as_points, as_weights, check_size, gains, sorted_labelings
from lemmata.theory.classes.sauer import sauer_bound


@dataclass(frozen=True)
class FewPoints:
    """True on the listed points, False elsewhere.

    Examples
    --------
    >>> FewPoints(np.array([[2.0]])).predict([1, 2])
    array([False,  True])
    """

    members: np.ndarray

    def predict(self, points):
        """Return which points are listed."""
        x = as_points(points)
        return (x[:, None] == self.members[None]).all(axis=2).any(axis=1)

    def __repr__(self):
        return f"FewPoints({[tuple(p) if len(p) > 1 else p[0] for p in self.members.tolist()]})"


@dataclass(frozen=True)
class TooManyPoints(Refutation):
    """More than n different positive points, or a positive and a negative point at the same place.

    Attributes
    ----------
    points, labels : What is not realized.
    n : How many points may be positive.
    shown : Positions of n + 1 different positive points, or of a positive and a negative point that are equal.

    Examples
    --------
    >>> TooManyPoints(np.array([[1.0], [2.0]]), np.array([True, True]), 1, (0, 1)).valid()
    True
    """

    points: np.ndarray
    labels: np.ndarray
    n: int
    shown: tuple

    def valid(self):
        """Look at the points shown."""
        shown = list(self.shown)
        different = len(np.unique(self.points[shown], axis=0))
        if self.labels[shown].all():
            return different == len(shown) == self.n + 1
        return bool(len(shown) == 2 and different == 1 and self.labels[shown].any())

    @property
    def claim(self):
        """The proof in one sentence."""
        if self.labels[list(self.shown)].all():
            return f"{self.n + 1} different points are positive, and at most {self.n} may be"
        return f"the points {self.shown[0]} and {self.shown[1]} are equal and their labels are not"


class AtMostNPoints(HypothesisClass):
    """The sets of at most n points (of the line, or of any R^d): dimension n, growth Σ_{i≤n} C(m, i).

    Parameters
    ----------
    n : How many points a set may have.

    Examples
    --------
    >>> H = AtMostNPoints(2)
    >>> H.vc_dim, [H.growth(m) for m in range(1, 6)]
    (2, [2, 4, 7, 11, 16])
    >>> H.erm([1, 1, 2, 3, 4], [1, 1, 1, 1, 0])
    EmpiricalMinimum(hypothesis=FewPoints([1.0, 2.0]), errors=1, total=5)
    >>> H.shatters([1, 2, 3]).certificate().holds
    True
    """

    def __init__(self, n):
        self.n = check_count(n, "n", 0)

    def __repr__(self):
        return f"AtMostNPoints({self.n})"

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the class realizes, in lexicographic order, (k, m)."""
        points = self.as_points(points)
        values, where = np.unique(points, return_inverse=True, axis=0)
        n, rows = len(values), []
        check_size(sauer_bound(n, self.n), len(points))
        for size in range(min(self.n, n) + 1):
            chosen = np.array(list(combinations(range(n), size)), dtype=int).reshape(comb(n, size), size)
            rows.append(np.zeros((len(chosen), n), dtype=bool))
            np.put_along_axis(rows[-1], chosen, True, axis=1)
        return sorted_labelings(np.concatenate(rows)[:, where.ravel()], len(points))

    def realizes(self, points, labels):
        """Return the set of the positive points (`FewPoints`) if it is in the class and misses the negative ones, else None."""
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        h = FewPoints(np.unique(points[labels], axis=0))
        return h if len(h.members) <= self.n and np.array_equal(h.predict(points), labels) else None

    def refutes(self, points, labels):
        """Return n + 1 positive points or two equal points with different labels (`TooManyPoints`), or None."""
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        positive = np.flatnonzero(labels)
        first = positive[np.unique(points[positive], axis=0, return_index=True)[1]]
        if len(first) > self.n:
            return TooManyPoints(points, labels, self.n, tuple(np.sort(first)[: self.n + 1].tolist()))
        for i in np.flatnonzero(~labels):
            equal = positive[(points[positive] == points[i]).all(axis=1)]
            if len(equal):
                return TooManyPoints(points, labels, self.n, (int(equal[0]), int(i)))
        return None

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return isinstance(hypothesis, FewPoints) and len(hypothesis.members) <= self.n

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, TooManyPoints) and refutation.n == self.n

    def unshattered(self, points):
        """Return a labeling of at least n + 1 points that is not realized: all True, or equal points labeled differently."""
        points = self.as_points(points)
        _, where = np.unique(points, return_inverse=True, axis=0)
        repeated = np.flatnonzero(np.bincount(where.ravel())[where.ravel()] > 1)
        labels = np.arange(len(points)) == repeated[0] if len(repeated) else np.ones(len(points), dtype=bool)
        if len(points) <= self.n:
            raise ValueError(f"This takes at least {self.n + 1} points, and there are {len(points)}.")
        return self.refutes(points, labels)

    def growth(self, m):
        """Return Σ_{i≤n} C(m, i)."""
        return sauer_bound(m, self.n)

    @property
    def vc_dim(self):
        """Size of the largest shattered set, n."""
        return self.n

    def erm(self, X, y, sample_weight=None):
        """Return the `EmpiricalMinimum`: a set with the fewest errors, the n points that gain most."""
        X = self.as_points(X)
        y, w = as_labels(y, len(X)), as_weights(sample_weight, len(X))
        values, gain = gains(X, y, w)
        best = np.argsort(-gain, kind="stable")[: self.n]
        best = np.sort(best[gain[best] > 0])
        return EmpiricalMinimum(FewPoints(values[best]), (w[y].sum() - gain[best].sum()).item(), w.sum().item())
