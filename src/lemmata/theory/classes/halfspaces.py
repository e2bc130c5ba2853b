"""Half-spaces: the points on one side of a plane.

h(x) = True if ⟨w, x⟩ + b > 0; a point on the plane is False. With rows vᵢ = (xᵢ, 1) this is ⟨u, vᵢ⟩ > 0 for u = (w, b). The
planes of homogeneous half-spaces hold the origin: b = 0, vᵢ = xᵢ, and w ≠ 0. Which labelings of finitely many points there
are is a question about an arrangement of planes, answered exactly; each labeling has a half-space that gives it, or a proof
that none does: the convex hulls (for b = 0, the cones) of its two sides meet.

Half-spaces of R^d have dimension d + 1, by Radon's theorem, and homogeneous ones d: of d + 1 points with Σ λᵢ xᵢ = 0, those
with λᵢ > 0 cannot be all the True ones, as Σ λᵢ⟨w, xᵢ⟩ would be positive and not zero. In both cases growth is Cover's count.
For affine half-spaces a point on the plane makes no difference, since the plane can be moved off it. Homogeneous planes cannot
be moved, and points x and −x may both be False; the count π_d still holds. A new point y splits a labeling only if some w ≠ 0
with ⟨w, y⟩ = 0 gives it too, so that π_d(m + 1) ≤ π_d(m) + π_{d−1}(m); or the labeling is "all False", given by some w and −w
alone, but then the m ≥ d points lie in a hyperplane and with y have 2π_{d−1}(m) + 2 labelings at most, which is no more. With
w = 0 in the class the count would be wrong: on ±e₁, ±e₂ it is 8, all of them taken, and w = 0 would add a ninth, "all False".
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lemmata.core.certificate import TINY
from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.arrangement import fewest_errors, positive_parts
from lemmata.theory.classes.exact import EPS, alternative, dependence, independent_columns, integers
from lemmata.theory.classes.hypotheses import EmpiricalMinimum, HypothesisClass, Refutation
from lemmata.theory.classes.labelings import as_labels, as_points, as_weights, gains, sorted_labelings
from lemmata.theory.classes.radon import HullsMeet, combination, lifted, radon_partition
from lemmata.theory.classes.sauer import half_space_dichotomies


@dataclass(frozen=True)
class Halfspace:
    """The half-space ⟨w, x⟩ + b > 0, with exact coefficients.

    Attributes
    ----------
    coef, intercept : w and b as fractions; the largest |wᵢ| is one, unless w = 0.

    Examples
    --------
    >>> h = Halfspace((Fraction(1), Fraction(-1, 2)), Fraction(0))
    >>> h, h.predict([[1, 1], [1, 2], [0, 0]])
    (Halfspace(1·x0 - 0.5·x1 + 0 > 0), array([ True, False, False]))
    """

    coef: tuple
    intercept: Fraction

    def predict(self, points):
        """Return which points lie inside; floats decide where rounding cannot matter, fractions elsewhere."""
        F = lifted(as_points(points, len(self.coef)))
        exact = [*self.coef, self.intercept]
        u = np.array([float(c) for c in exact])
        values = F @ u
        inside = values > 0
        doubtful = np.abs(values) <= np.abs(F) @ (4 * len(u) * EPS * np.abs(u) + TINY)
        for i in np.flatnonzero(doubtful):
            inside[i] = sum(c * Fraction(float(x)) for c, x in zip(exact, F[i], strict=True)) > 0
        return inside

    def __repr__(self):
        terms = [f"{'-' if c < 0 else '+'} {abs(float(c)):.4g}·x{i}" for i, c in enumerate(self.coef)]
        b = float(self.intercept)
        text = " ".join([*terms, f"{'-' if b < 0 else '+'} {abs(b):.4g}"])
        return f"Halfspace({text.removeprefix('+ ')} > 0)"


@dataclass(frozen=True)
class ConesMeet(Refutation):
    """Weights that no half-space through the origin survives.

    Σ λᵢ xᵢ over the positive points equals Σ μⱼ xⱼ over the negative ones, with Σ λᵢ = 1: the product of w with the left is
    positive, with the right it is not. If no label is True, the weights are positive, they cancel, and the points span the
    space: ⟨w, xⱼ⟩ ≤ 0 for all j would mean = 0 for all j, that is w = 0.

    Attributes
    ----------
    points, labels : What is not realized.
    weights : Fractions λ and μ, none negative, (m,).

    Examples
    --------
    >>> refutation = HomogeneousHalfspaces(2).refutes([[1, 0], [0, 1], [2, 3]], [0, 0, 1])
    >>> refutation.weights, refutation.valid()
    ([Fraction(2, 1), Fraction(3, 1), Fraction(1, 1)], True)
    """

    points: np.ndarray
    labels: np.ndarray
    weights: list

    def valid(self):
        """Form both sums in fractions and compare them."""
        if len(self.weights) != len(self.points) or min(self.weights, default=-1) < 0:
            return False
        positive, negative = np.flatnonzero(self.labels), np.flatnonzero(~self.labels)
        equal = combination(self.points, self.weights, positive) == combination(self.points, self.weights, negative)
        if len(positive):
            return equal and sum(self.weights[i] for i in positive) == 1
        spans = len(independent_columns(integers(self.points))) == self.points.shape[1]
        return equal and min(self.weights) > 0 and spans

    @property
    def claim(self):
        """The proof in one sentence."""
        if self.labels.any():
            return "a weighted sum of the positive points is one of the negative points too"
        return "weighted points cancel and span the space: one of them has a positive product with w"


class _Halfspaces(HypothesisClass):
    """What both classes of half-spaces share: everything but the rows."""

    def __init__(self, d):
        self.d = check_count(d, "d")

    def __repr__(self):
        return f"{type(self).__name__}({self.d})"

    def as_points(self, points):
        """Return points of the domain as an array, or say what is wrong with them."""
        return as_points(points, self.d)

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the class realizes, in lexicographic order, (k, m)."""
        points = self.as_points(points)
        different, where = np.unique(points, axis=0, return_inverse=True)
        F = self._rows(different)
        return sorted_labelings(positive_parts(F, zero=_leaves_room(F))[:, where.ravel()], len(points))

    def realizes(self, points, labels):
        """Return a `Halfspace` that gives these labels to the points, or None."""
        return self._decide(points, labels)[0]

    def refutes(self, points, labels):
        """Return the weights that refute these labels, `HullsMeet` or `ConesMeet`, or None if they are realized."""
        return self._decide(points, labels)[1]

    def growth(self, m):
        """Return Cover's count, the most labelings that m points can have."""
        return half_space_dichotomies(m, self.d, self._homogeneous)

    def erm(self, X, y, sample_weight=None):
        """Return the `EmpiricalMinimum`: a half-space with the fewest errors, exactly, the first one found.

        The work grows like n^(d+1), or n^d for homogeneous half-spaces: d = 2 with n = 500 and d = 3 with n = 100 take seconds.
        """
        X = self.as_points(X)
        y, w = as_labels(y, len(X)), as_weights(sample_weight, len(X))
        different, if_false = gains(X, y, np.where(y, w, 0))
        if_true = if_false - gains(X, y, w)[1]
        F = self._rows(different)
        errors, u = fewest_errors(F, if_true, if_false, zero=_leaves_room(F))
        return EmpiricalMinimum(self._hypothesis(X, u), errors, w.sum().item())


def _leaves_room(F):
    """Whether some vector other than zero is orthogonal to all rows."""
    return len(independent_columns(integers(F))) < F.shape[1]


class Halfspaces(_Halfspaces):
    """The half-spaces ⟨w, x⟩ + b > 0 of R^d: dimension d + 1, growth 2·Σ_{i≤d} C(m − 1, i).

    Parameters
    ----------
    d : Number of coordinates.

    Examples
    --------
    >>> H = Halfspaces(2)
    >>> H.vc_dim, [H.growth(m) for m in range(1, 6)]
    (3, [2, 4, 8, 14, 22])
    >>> square = [[0, 0], [1, 0], [0, 1], [1, 1]]
    >>> len(H.dichotomies(square)), H.realizes(square, [0, 0, 0, 1])
    (14, Halfspace(1·x0 + 1·x1 - 1.5 > 0))
    >>> print(H.shatters(square).certificate())
    not shattered: certificate holds (proof)
      check       value     limit  kind   claim
      refutation  0.0e+00 ≤ 0e+00  proof  labels −++− are not realized: the hulls of both sets hold the point (0.5, 0.5)
    >>> H.erm(square, [0, 1, 1, 0]).errors
    1
    """

    _homogeneous = False
    _rows = staticmethod(lifted)

    @property
    def vc_dim(self):
        """Size of the largest shattered set, d + 1."""
        return self.d + 1

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return isinstance(hypothesis, Halfspace) and len(hypothesis.coef) == self.d

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, HullsMeet)

    def unshattered(self, points):
        """Return a labeling of at least d + 2 points that is not realized, by Radon's theorem, as a `HullsMeet`."""
        return radon_partition(self.as_points(points))

    def _decide(self, points, labels):
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        V = integers(lifted(points))
        if not labels.any():
            return self._hypothesis(points, [0] * self.d + [-1]), None
        v, weights = alternative(V[labels], V[~labels])
        if v is not None:
            return self._hypothesis(points, v), None
        both = np.empty(len(points), dtype=object)
        both[labels], both[~labels] = weights
        return None, HullsMeet(points, labels, both.tolist())

    def _hypothesis(self, points, u):
        """Put the plane in the middle between the two sides."""
        scale = max(abs(x) for x in u[:-1]) or abs(u[-1]) or 1
        coef, intercept = [Fraction(x, scale) for x in u[:-1]], Fraction(u[-1], scale)
        values = [sum(c * Fraction(float(x)) for c, x in zip(coef, row, strict=True)) for row in points]
        inside = [value for value in values if value + intercept > 0]
        outside = [value for value in values if value + intercept <= 0]
        if inside and outside:
            intercept = -(min(inside) + max(outside)) / 2
        return Halfspace(tuple(coef), intercept)


class HomogeneousHalfspaces(_Halfspaces):
    """The half-spaces ⟨w, x⟩ > 0 of R^d with w ≠ 0: dimension d, growth 2·Σ_{i<d} C(m − 1, i).

    Parameters
    ----------
    d : Number of coordinates.

    Examples
    --------
    >>> H = HomogeneousHalfspaces(2)
    >>> H.vc_dim, [H.growth(m) for m in range(1, 5)]
    (2, [2, 4, 6, 8])
    >>> bool(H.shatters([[1, 0], [0, 1]]))
    True
    >>> H.realizes([[1, 1], [-1, -1]], [0, 0]), H.realizes([[1, 1], [-1, -1]], [1, 1])
    (Halfspace(1·x0 - 1·x1 + 0 > 0), None)
    """

    _homogeneous = True
    _rows = staticmethod(np.asarray)

    @property
    def vc_dim(self):
        """Size of the largest shattered set, d."""
        return self.d

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return Halfspaces(self.d).contains(hypothesis) and hypothesis.intercept == 0 and any(hypothesis.coef)

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, ConesMeet)

    def unshattered(self, points):
        """Return a labeling of at least d + 1 points that is not realized, from a linear dependence, as a `ConesMeet`."""
        points = self.as_points(points)
        weights = dependence(integers(points))
        if weights is None:
            raise ValueError(f"These points are linearly independent, and shattered: give at least {self.d + 1} points.")
        total = sum(w for w in weights if w > 0)
        return ConesMeet(points, np.array([w > 0 for w in weights]), [Fraction(abs(w), total) for w in weights])

    def _decide(self, points, labels):
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        V = integers(points)
        if labels.any():
            v, weights = alternative(V[labels], V[~labels])
        else:
            free = self._orthogonal(V)
            # −Σ xⱼ on the positive side means that not all products are zero
            v, weights = (free, None) if free else alternative(-V.sum(axis=0)[None], V)
        if v is not None:
            return self._hypothesis(points, v), None
        both = np.empty(len(points), dtype=object)
        if labels.any():
            both[labels], both[~labels] = weights
        else:
            both[:] = [1 + w for w in weights[1]]
        return None, ConesMeet(points, labels, both.tolist())

    def _orthogonal(self, V):
        """Return integers orthogonal to all rows, or None if the rows span the space."""
        return dependence(V.T) if len(V) else [1] + [0] * (self.d - 1)

    def _hypothesis(self, points, u):
        if not any(u):
            u = self._orthogonal(integers(points))
        scale = max(abs(x) for x in u)
        return Halfspace(tuple(Fraction(x, scale) for x in u), Fraction(0))
