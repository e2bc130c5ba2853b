"""Radon's theorem: any d + 2 points of R^d fall into two sets whose convex hulls meet.

The rows (xᵢ, 1) are d + 2 vectors of R^(d+1), hence dependent: Σ λᵢ xᵢ = 0 and Σ λᵢ = 0, with λ not zero. Divide by the sum of
the positive λᵢ: the points with λᵢ > 0 and the others have the common point Σ_{λᵢ>0} λᵢ xᵢ = Σ_{λᵢ<0} |λᵢ| xᵢ, a convex
combination of either [1]. No half-space holds the first set and misses the second, as it would have to do both with the common
point: half-spaces do not shatter d + 2 points. (The argument is about ⟨w, x⟩ + b, which is affine in x, not about its sign.)

[1] Radon, Math. Ann. 83 (1921).
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lemmata.theory.classes.exact import dependence, integers
from lemmata.theory.classes.hypotheses import Refutation
from lemmata.theory.classes.labelings import as_points


@dataclass(frozen=True)
class HullsMeet(Refutation):
    """Two sets of points whose convex hulls have a common point: no half-space holds one and misses the other.

    Attributes
    ----------
    points : All points, (m, d).
    labels : True for the first set.
    weights : Fractions, (m,); the weights of either set sum to one.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> meet = HullsMeet(np.array([[0.0], [1.0], [2.0]]), np.array([True, False, True]), [half, 1, half])
    >>> meet.point, meet.valid()
    (array([1.]), True)
    """

    points: np.ndarray
    labels: np.ndarray
    weights: list

    @property
    def positive(self):
        """Positions of the first set."""
        return np.flatnonzero(self.labels)

    @property
    def negative(self):
        """Positions of the second set."""
        return np.flatnonzero(~self.labels)

    @property
    def point(self):
        """The common point, rounded to floats."""
        return np.array([float(x) for x in combination(self.points, self.weights, self.positive)])

    def valid(self):
        """Form both convex combinations in fractions and compare them."""
        if len(self.weights) != len(self.points) or min(self.weights, default=-1) < 0:
            return False
        whole = all(sum(self.weights[i] for i in side) == 1 for side in (self.positive, self.negative))
        first, second = (combination(self.points, self.weights, side) for side in (self.positive, self.negative))
        return whole and first == second

    @property
    def claim(self):
        """The proof in one sentence."""
        return f"the hulls of both sets hold the point ({', '.join(f'{x:.4g}' for x in self.point)})"


def combination(points, weights, chosen):
    """Return Σ wᵢ xᵢ over the chosen rows as a list of fractions.

    Examples
    --------
    >>> combination(np.array([[1.0, 0.0], [0.0, 1.0]]), [Fraction(1, 3), Fraction(2, 3)], [0, 1])
    [Fraction(1, 3), Fraction(2, 3)]
    """
    total = [Fraction(0)] * points.shape[1]
    for i in chosen:
        if weights[i]:
            total = [t + weights[i] * Fraction(float(x)) for t, x in zip(total, points[i], strict=True)]
    return total


def lifted(points):
    """Append a coordinate 1, so that affine functions of a point are linear functions of its row.

    Examples
    --------
    >>> lifted(np.array([[2.0, 3.0]]))
    array([[2., 3., 1.]])
    """
    return np.hstack([points, np.ones((len(points), 1))])


def radon_partition(points):
    """Split points into two sets whose convex hulls meet, exactly.

    Parameters
    ----------
    points : At least d + 2 points of R^d, or fewer that are affinely dependent, (m, d).

    Returns
    -------
    partition : `HullsMeet` with `positive`, `negative`, `weights`, `point` and `certificate()`.

    Examples
    --------
    >>> partition = radon_partition([[0, 0], [1, 0], [0, 1], [1, 1]])
    >>> partition.positive, partition.negative, partition.point
    (array([0, 3]), array([1, 2]), array([0.5, 0.5]))
    >>> print(partition.certificate())
    labels +−−+ are not realized: certificate holds (proof)
      check       value     limit  kind   claim
      refutation  0.0e+00 ≤ 0e+00  proof  the hulls of both sets hold the point (0.5, 0.5)
    """
    points = as_points(points)
    weights = dependence(integers(lifted(points)))
    if weights is None:
        m, d = points.shape
        raise ValueError(
            f"These {m} points of R^{d} are affinely independent and have no Radon partition: give {d + 2} points."
        )
    half = sum(w for w in weights if w > 0)
    return HullsMeet(points, np.array([w > 0 for w in weights]), [Fraction(abs(w), half) for w in weights])
