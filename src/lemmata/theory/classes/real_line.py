"""Classes on the line: thresholds and intervals.

Thresholds: h(x) = True if x < a. Of two points the lower one is True where the upper one is, so no two points are shattered:
dimension 1, growth m + 1. Intervals: h(x) = True if a ≤ x ≤ b; the labels + − + in this order are impossible: dimension 2,
growth 1 + m(m + 1)/2.

The fewest errors: after sorting, thresholds need the cumulative sums of gains (weight of a True label, minus weight of a False
one), and intervals the largest rise of these sums.
"""

from dataclasses import dataclass

import numpy as np

from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.hypotheses import EmpiricalMinimum, HypothesisClass, Refutation
from lemmata.theory.classes.labelings import as_labels, as_points, as_weights, gains, sorted_labelings
from lemmata.theory.classes.rectangles import Rectangles


@dataclass(frozen=True)
class Threshold:
    """The points x < a.

    Examples
    --------
    >>> Threshold(1.5).predict([1, 2])
    array([ True, False])
    """

    at: float

    def predict(self, points):
        """Return which points lie below a."""
        return as_points(points, 1)[:, 0] < self.at

    def __repr__(self):
        return f"Threshold(x < {self.at:.4g})"


@dataclass(frozen=True)
class WrongOrder(Refutation):
    """A positive point that is not below a negative one.

    Attributes
    ----------
    points, labels : What is not realized.
    negative, positive : Positions of the two points.

    Examples
    --------
    >>> WrongOrder(np.array([[1.0], [2.0]]), np.array([False, True]), 0, 1).valid()
    True
    """

    points: np.ndarray
    labels: np.ndarray
    negative: int
    positive: int

    def valid(self):
        """Compare the two points and their labels."""
        ordered = self.points[self.negative, 0] <= self.points[self.positive, 0]
        return bool(ordered and self.labels[self.positive] and not self.labels[self.negative])

    @property
    def claim(self):
        """The proof in one sentence."""
        return f"the negative point {self.negative} is not above the positive point {self.positive}"


class Thresholds(HypothesisClass):
    """The half-lines x < a: dimension 1, growth m + 1.

    Examples
    --------
    >>> H = Thresholds()
    >>> H.dichotomies([1, 2]).astype(int).tolist(), [H.growth(m) for m in range(1, 5)]
    ([[0, 0], [1, 0], [1, 1]], [2, 3, 4, 5])
    >>> H.erm([1, 2, 3, 4], [1, 0, 1, 0])
    EmpiricalMinimum(hypothesis=Threshold(x < 1.5), errors=1, total=4)
    >>> print(H.shatters([1, 2]).certificate())
    not shattered: certificate holds (proof)
      check       value     limit  kind   claim
      refutation  0.0e+00 ≤ 0e+00  proof  labels −+ are not realized: the negative point 0 is not above the positive point 1
    """

    d = 1
    vc_dim = 1

    def __repr__(self):
        return "Thresholds()"

    def as_points(self, points):
        """Return points of the domain as an array, or say what is wrong with them."""
        return as_points(points, 1)

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the class realizes, in lexicographic order, (k, m)."""
        x = self.as_points(points)[:, 0]
        return sorted_labelings(x < np.append(np.unique(x), np.inf)[:, None], len(x))

    def realizes(self, points, labels):
        """Return a `Threshold` between the positive points and the negative ones above them, or None."""
        x = self.as_points(points)[:, 0]
        labels = as_labels(labels, len(x))
        h = _between(x[labels].max(initial=-np.inf), x[~labels].min(initial=np.inf))
        return h if np.array_equal(h.predict(x), labels) else None

    def refutes(self, points, labels):
        """Return a negative point that is not above a positive one (`WrongOrder`), or None if the labels are realized."""
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        if labels.all() or not labels.any():
            return None
        positive, negative = np.flatnonzero(labels), np.flatnonzero(~labels)
        highest, lowest = positive[points[positive, 0].argmax()], negative[points[negative, 0].argmin()]
        return WrongOrder(points, labels, int(lowest), int(highest)) if points[lowest, 0] <= points[highest, 0] else None

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return isinstance(hypothesis, Threshold)

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, WrongOrder)

    def unshattered(self, points):
        """Return a labeling of at least two points that is not realized: the highest positive, the others not."""
        points = self.as_points(points)
        if len(points) < 2:
            raise ValueError("A single point is shattered: give at least 2 points.")
        return self.refutes(points, np.arange(len(points)) == points[:, 0].argmax())

    def growth(self, m):
        """Return m + 1."""
        return check_count(m, "m", 0) + 1

    def erm(self, X, y, sample_weight=None):
        """Return the `EmpiricalMinimum`: a threshold with the fewest errors, exactly; of several the lowest."""
        x = self.as_points(X)[:, 0]
        y, w = as_labels(y, len(x)), as_weights(sample_weight, len(x))
        values, gain = gains(x, y, w)
        below = np.append(0, np.cumsum(gain))
        cut = int(below.argmax())
        ends = np.concatenate([[-np.inf], values, [np.inf]])
        return EmpiricalMinimum(_between(*ends[cut : cut + 2].tolist()), (w[y].sum() - below[cut]).item(), w.sum().item())


def _between(low, high):
    """Return a threshold above the first number and not above the second, in the middle where floats have one."""
    if np.isinf(low) or np.isinf(high):
        return Threshold(float(high))
    middle = low / 2 + high / 2  # halves first: the sum of two large numbers may be infinite
    return Threshold(float(middle if low < middle <= high else high))


class Intervals(Rectangles):
    """The closed intervals a ≤ x ≤ b and the empty one: dimension 2, growth 1 + m(m + 1)/2.

    Examples
    --------
    >>> H = Intervals()
    >>> H.vc_dim, [H.growth(m) for m in range(1, 5)]
    (2, [2, 4, 7, 11])
    >>> H.realizes([1, 2, 3], [0, 1, 1]), H.realizes([1, 2, 3], [1, 0, 1])
    (Box([2, 3]), None)
    >>> print(H.refutes([1, 2, 3], [1, 0, 1]).certificate())
    labels +−+ are not realized: certificate holds (proof)
      check       value     limit  kind   claim
      refutation  0.0e+00 ≤ 0e+00  proof  every box around the positive points 0, 2 holds the negative point 1
    """

    def __init__(self):
        super().__init__(1)

    def __repr__(self):
        return "Intervals()"
