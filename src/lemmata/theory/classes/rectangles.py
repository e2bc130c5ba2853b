"""Rectangles with sides along the axes: products of d closed intervals.

Rectangles realize a labeling of points if and only if the smallest box around the positive points holds no negative one.
So 2d + 1 points are never shattered: choose for each coordinate a lowest and a highest point, at most 2d of them; another point
lies in their box and cannot be excluded. The 2d points ±eᵢ are shattered; the dimension is 2d.

Growth: with d = 1 an interval is empty or has two ends among m points, 1 + m(m + 1)/2. With d = 2 ties only lose labelings,
and all that counts is the order of the points in y when they are sorted by x, a permutation p. The labelings whose first and
last positive points by x are i < j differ in how many of the points between them they reach above both and below both, of
which there are aᵢⱼ and bᵢⱼ, so that

    π(m) = max over permutations p of  1 + m + Σ_{i<j} (aᵢⱼ + 1)(bᵢⱼ + 1).

Up to m = 9 all permutations were tried: the maximum is the product of the growths of intervals on ⌊m/2⌋ and on ⌈m/2⌉ points.
Two groups of points that the coordinates cut apart reach as many for every m; that none have more is not known here for m > 9.

The fewest errors: choose the range of the first coordinate among the positive points, then the best box of the points in it in
the other coordinates; the last coordinate is the problem of the segment with the largest sum.
"""

from dataclasses import dataclass

import numpy as np

from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.hypotheses import EmpiricalMinimum, HypothesisClass, Refutation
from lemmata.theory.classes.labelings import as_labels, as_points, as_weights, check_size, sorted_labelings

PERMUTATIONS = 9  # points of the plane for which all permutations were tried
BOXES = 10_000_000  # ranges of the leading coordinates that the search for the best box may try: a few minutes


@dataclass(frozen=True)
class Box:
    """The points with lowerᵢ ≤ xᵢ ≤ upperᵢ for all i.

    Examples
    --------
    >>> Box((0.0, 0.0), (1.0, 2.0)).predict([[1, 2], [2, 1]])
    array([ True, False])
    """

    lower: tuple
    upper: tuple

    def predict(self, points):
        """Return which points lie inside, the border included."""
        x = as_points(points, len(self.lower))
        return ((x >= np.array(self.lower)) & (x <= np.array(self.upper))).all(axis=1)

    def __repr__(self):
        if any(a > b for a, b in zip(self.lower, self.upper, strict=True)):
            return "Box(empty)"
        return f"Box({' × '.join(f'[{a:.4g}, {b:.4g}]' for a, b in zip(self.lower, self.upper, strict=True))})"


@dataclass(frozen=True)
class InsideBox(Refutation):
    """A negative point in the smallest box of the positive ones.

    Attributes
    ----------
    points, labels : What is not realized.
    inside : Position of the negative point.
    low, high : For each coordinate, the position of a positive point that is not above (not below) the negative one.

    Examples
    --------
    >>> InsideBox(np.array([[1.0], [2.0], [3.0]]), np.array([True, False, True]), 1, np.array([0]), np.array([2])).valid()
    True
    """

    points: np.ndarray
    labels: np.ndarray
    inside: int
    low: np.ndarray
    high: np.ndarray

    def valid(self):
        """Compare the negative point with the positive ones, coordinate by coordinate."""
        x, each = self.points, np.arange(self.points.shape[1])
        between = (x[self.low, each] <= x[self.inside]) & (x[self.inside] <= x[self.high, each])
        positive = self.labels[self.low].all() and self.labels[self.high].all()
        return bool(between.all() and positive and not self.labels[self.inside])

    @property
    def claim(self):
        """The proof in one sentence."""
        around = sorted({*self.low.tolist(), *self.high.tolist()})
        return f"every box around the positive points {', '.join(map(str, around))} holds the negative point {self.inside}"


class Rectangles(HypothesisClass):
    """The boxes a₁ ≤ x₁ ≤ b₁, …, a_d ≤ x_d ≤ b_d, and the empty one: dimension 2d.

    Parameters
    ----------
    d : Number of coordinates.

    Examples
    --------
    >>> H = Rectangles(2)
    >>> diamond = [[0, 1], [0, -1], [1, 0], [-1, 0]]
    >>> H.vc_dim, len(H.dichotomies(diamond)), bool(H.shatters(diamond))
    (4, 16, True)
    >>> print(H.shatters([*diamond, [0, 0]]).certificate())
    not shattered: certificate holds (proof)
      check       value     limit  kind   claim
      refutation  0.0e+00 ≤ 0e+00  proof  labels −−++− are not realized: every box around the positive points 2, 3 holds the ...
    >>> [H.growth(m) for m in range(1, 7)]
    [2, 4, 8, 16, 28, 49]
    >>> H.erm([[0, 0], [1, 1], [2, 2], [1, 2]], [1, 1, 0, 1])
    EmpiricalMinimum(hypothesis=Box([0, 1] × [0, 2]), errors=0, total=4)
    """

    def __init__(self, d):
        self.d = check_count(d, "d")

    def __repr__(self):
        return f"Rectangles({self.d})"

    def as_points(self, points):
        """Return points of the domain as an array, or say what is wrong with them."""
        return as_points(points, self.d)

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the class realizes, in lexicographic order, (k, m)."""
        points = self.as_points(points)
        m = len(points)
        check_size(min(2**m, _interval_growth(m) ** self.d), m)
        found = np.ones((1, m), dtype=bool)
        for x in points.T:
            found = sorted_labelings(np.concatenate([_segments(x, inside) for inside in found]), m)
        return found

    def realizes(self, points, labels):
        """Return the smallest `Box` around the positive points if it holds no negative one, else None."""
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        box = _smallest_box(points[labels])
        return box if np.array_equal(box.predict(points), labels) else None

    def refutes(self, points, labels):
        """Return the first negative point inside the box of the positive ones (`InsideBox`), or None if there is none."""
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        inside = np.flatnonzero(_smallest_box(points[labels]).predict(points) & ~labels)
        if not len(inside):
            return None
        positive = np.flatnonzero(labels)
        low, high = positive[points[labels].argmin(axis=0)], positive[points[labels].argmax(axis=0)]
        return InsideBox(points, labels, int(inside[0]), low, high)

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return isinstance(hypothesis, Box) and len(hypothesis.lower) == len(hypothesis.upper) == self.d

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, InsideBox)

    def unshattered(self, points):
        """Return a labeling of at least 2d + 1 points that is not realized: the extreme points positive, another not."""
        points = self.as_points(points)
        labels = np.zeros(len(points), dtype=bool)
        labels[np.concatenate([points.argmin(axis=0), points.argmax(axis=0)])] = True
        if labels.all():
            raise ValueError(
                f"Each of these points is the only extreme one of some side: give at least {2 * self.d + 1} points."
            )
        return self.refutes(points, labels)

    def growth(self, m):
        """Return the largest number of labelings of m points; beyond d = 1 known for m ≤ 2d, and for m ≤ 9 if d = 2."""
        m = check_count(m, "m", 0)
        if m <= 2 * self.d:
            return 2**m
        if self.d == 1:
            return _interval_growth(m)
        if self.d == 2 and m <= PERMUTATIONS:
            return _interval_growth(m // 2) * _interval_growth(m - m // 2)
        raise ValueError(f"The growth of {self} is not known exactly at m = {m}; sauer_bound({m}, {2 * self.d}) bounds it.")

    @property
    def vc_dim(self):
        """Size of the largest shattered set, 2d."""
        return 2 * self.d

    def erm(self, X, y, sample_weight=None):
        """Return the `EmpiricalMinimum`: a box with the fewest errors, exactly, the first one found.

        With p positive points the work grows like p^(2(d − 1))·n.
        """
        X = self.as_points(X)
        y, w = as_labels(y, len(X)), as_weights(sample_weight, len(X))
        ranges = np.prod([float(len(np.unique(x[y])) + 1) ** 2 / 2 for x in X.T[:-1]])
        if ranges > BOXES:
            raise ValueError(f"The best box takes a search through {ranges:.1g} ranges, more than {BOXES}: take fewer points.")
        order = np.argsort(X[:, -1], kind="stable")
        gain = np.where(y, w, -w)[order]
        best, inside = best_box(X[order], gain)
        positive = X[order][inside & (gain > 0)]
        return EmpiricalMinimum(_smallest_box(positive), (w[y].sum() - best).item(), w.sum().item())


def best_box(X, gain, floor=0):
    """Return the largest total gain of the points in a box, if above the floor, and the points inside; else the floor and none.

    Parameters
    ----------
    X : Points in the order of their last coordinate, (n, d).
    gain : What each point adds, (n,).

    Examples
    --------
    >>> best_box(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1, -3, 2, 1]))[1]
    array([False, False,  True,  True])
    """
    best, inside = floor, np.zeros(len(X), dtype=bool)
    if X.shape[1] == 1:
        return _best_segment(X[:, 0], gain, floor)
    x = X[:, 0]
    ends = np.unique(x[gain > 0])
    for low in ends:
        for high in ends[ends >= low][::-1]:
            chosen = (x >= low) & (x <= high)
            if np.maximum(gain[chosen], 0).sum() <= best:  # narrower ranges have no more to gain
                break
            value, part = best_box(X[chosen][:, 1:], gain[chosen], best)
            if value > best:
                best, inside = value, np.zeros(len(X), dtype=bool)
                inside[np.flatnonzero(chosen)[part]] = True
    return best, inside


def _best_segment(x, gain, floor):
    """Find the run of equal or consecutive values with the largest sum: the largest rise of the cumulative sums."""
    inside = np.zeros(len(x), dtype=bool)
    if not len(x):
        return floor, inside
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    sums = np.append(0, np.cumsum(np.add.reduceat(gain, starts)))
    rise = sums[1:] - np.minimum.accumulate(sums)[:-1]
    last = int(rise.argmax())
    if rise[last] <= floor:
        return floor, inside
    first = int(sums[: last + 1].argmin())
    inside[starts[first] : np.append(starts, len(x))[last + 1]] = True
    return rise[last], inside


def _segments(x, inside):
    """Return the labelings by closed intervals, the empty one included, of those points of the line that are inside."""
    values = np.unique(x[inside])
    first, last = np.triu_indices(len(values))
    labels = inside & (x >= values[first][:, None]) & (x <= values[last][:, None])
    return np.concatenate([np.zeros((1, len(x)), dtype=bool), labels])


def _interval_growth(m):
    return 1 + m * (m + 1) // 2


def _smallest_box(points):
    d = points.shape[1]
    if not len(points):
        return Box((np.inf,) * d, (-np.inf,) * d)
    return Box(tuple(points.min(axis=0).tolist()), tuple(points.max(axis=0).tolist()))
