"""The hard margin: the width of the gap between separable classes.

With the class folded into the row, mᵢ = yᵢ·(xᵢ, 1), the margin γ* = max over ‖z‖ ≤ 1 of minᵢ ⟨z, mᵢ⟩ is the distance of the
convex hull of the rows from zero, and the maximizer points to the nearest point of the hull. Wolfe's algorithm [1] finds that
point in finitely many steps: it keeps a few affinely independent rows, goes to the point nearest to zero of the plane they
span, drops rows whose weights would turn negative on the way, and adds the row that lies farthest on the wrong side of the
plane through the point. Rows join in batches, so that a table is read a few times only, however long it is.
Certificate: for every unit z and all weights α ≥ 0 that sum to one, minᵢ ⟨z, mᵢ⟩ ≤ γ* ≤ ‖Σ αᵢmᵢ‖; the two meet.

[1] Wolfe, Math. Program. 11 (1976).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.certificate import TINY
from lemmata.core.data import is_sparse

EPS = float(np.finfo(float).eps)
BATCH = 64  # rows that join at a time: a read of the table costs more than a few rows too many
CLOSED = 1e-10  # relative width at which the bounds have met
ZERO = 1e-13  # of the longest row: a point of the hull as near as this is zero up to rounding
ROUNDS = 1000  # reads of the table at most; tens are usual


@dataclass(frozen=True)
class HardMargin:
    """The margin of separable rows between proven bounds; where no direction separates, both are zero (up to rounding).

    Attributes
    ----------
    lower, upper : Bounds of γ*.
    direction : Unit vector z with minᵢ ⟨z, mᵢ⟩ = lower; zeros if there is none.
    radius : Length of the longest row, R.
    """

    lower: float
    upper: float
    direction: np.ndarray
    radius: float

    @property
    def separable(self):
        """Whether a direction has a positive product with every row."""
        return self.lower > 0

    @property
    def overlap(self):
        """Whether the hull of the rows holds zero, up to rounding: then no direction has."""
        return self.upper <= ZERO * self.radius


def hard_margin(M):
    """Find the largest γ so that some unit z has ⟨z, mᵢ⟩ ≥ γ for every row.

    Parameters
    ----------
    M : Rows with the class folded in, (n, d), dense or CSR.

    Examples
    --------
    >>> result = hard_margin([[2.0, 1.0], [2.0, -1.0], [5.0, 0.0]])
    >>> result.lower, result.upper, result.direction
    (2.0, 2.0, array([1., 0.]))
    >>> hard_margin([[2.0, 1.0], [-2.0, 1.0], [0.0, -1.0]]).separable
    False
    """
    M = M if is_sparse(M) else np.asarray(M, dtype=float)

    def worst(z):
        scores = M @ z
        few = np.argpartition(scores, BATCH)[:BATCH] if len(scores) > BATCH else np.arange(len(scores))
        return M[few].toarray() if is_sparse(M) else M[few], float(scores.min())

    return margin_of(worst, M.shape[1], float(np.sqrt(squares(M).max())))


def margin_of(worst, n_columns, radius):
    """Find the hard margin of rows that are known through a function only.

    Parameters
    ----------
    worst : Function of z that returns the rows with the smallest products with z, a few of them, and the least product.
    radius : Length of the longest row.
    """
    radius = max(radius, TINY)
    rows, held, seen = np.empty((0, n_columns)), np.zeros(1, dtype=int), set()
    z, lower, upper, direction = np.zeros(n_columns), 0.0, np.inf, np.zeros(n_columns)
    for _ in range(ROUNDS):
        more, least = worst(z)
        if least / radius > lower:
            lower, direction = least / radius, z
        fresh = [row for row in more if row.tobytes() not in seen]
        if not fresh or lower >= (1 - CLOSED) * upper - ZERO:
            break
        seen.update(row.tobytes() for row in fresh)
        rows = np.vstack([rows, np.array(fresh) / radius])
        held, weights, point = nearest_point(rows, held)
        upper = float(np.linalg.norm(weights @ rows[held]))
        if upper <= ZERO:
            break
        z = point / np.linalg.norm(point)
    return HardMargin(lower * radius, upper * radius, direction, radius)


class Lowest:
    """The rows with the lowest scores; the sum of two keeps the lowest of both."""

    def __init__(self, scores, rows):
        few = np.argsort(scores, kind="stable")[:BATCH]
        self.scores, self.rows = scores[few], rows[few]

    def __add__(self, other):
        return Lowest(np.append(self.scores, other.scores), np.vstack([self.rows, other.rows]))


class Longest(float):
    """A length; the sum of two is the longer."""

    def __add__(self, other):
        return Longest(max(self, other))


def squares(X):
    """Return the squared length of each row, in float64."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if is_sparse(X) else np.einsum("ij,ij->i", X, X, dtype=float)


def longest_block(X, y, weight):
    """Squared length of the longest row of a block."""
    return Longest(np.max(squares(X), initial=0.0, where=True if weight is None else np.asarray(weight) > 0))


def radius_of(blocks, unit):
    """Return the length of the longest row (x, u)."""
    return float(np.sqrt(float(blocks.reduce(longest_block)) + unit**2))


def lowest_block(X, y, weight, z, positive, unit):
    """Rows yᵢ(xᵢ, u) of a block with the lowest products with z, for the class that counts as positive."""
    signs = np.where(np.asarray(y) == positive, 1.0, -1.0)
    scores = signs * (X @ z[:-1] + unit * z[-1])
    if weight is not None:
        scores[np.asarray(weight) == 0] = np.inf
    few = np.argpartition(scores, BATCH)[:BATCH] if len(scores) > BATCH else np.arange(len(scores))
    few = few[scores[few] < np.inf]
    rows = (X[few].toarray() if is_sparse(X) else X[few]).astype(float)
    return Lowest(scores[few], signs[few, None] * np.column_stack([rows, np.full(len(few), unit)]))


def margin_of_blocks(blocks, positive, unit, radius):
    """Find the hard margin between a class and the rest, of rows in blocks with a constant column u behind."""

    def worst(z):
        lowest = blocks.reduce(lowest_block, z, positive, unit)
        return lowest.rows, float(lowest.scores[0])

    return margin_of(worst, blocks.n_columns + 1, radius)


def nearest_point(P, held):
    """Find the point nearest to zero of the hull of the rows P, by Wolfe's algorithm.

    Parameters
    ----------
    P : Rows, none longer than 1.
    held : Numbers of affinely independent rows to start from: one row, or the result for some of these rows.

    Returns
    -------
    held : Numbers of affinely independent rows.
    weights : Their weights in the nearest point, positive.
    point : The nearest point, accurate in its direction however near to zero it is.
    """
    weights, point = _nearest_of_plane(P[held])
    for _ in range(10 * len(P)):  # each round comes nearer to zero, so that none repeats; 10 leaves room for ties by rounding
        scores, squared = P @ point, float(point @ point)
        j = int(np.argmin(scores))
        if squared - scores[j] <= CLOSED / 10 * squared + EPS * np.sqrt(squared) or j in held or squared <= ZERO**2:
            break
        held, weights = np.append(held, j), np.append(weights, 0.0)
        while True:
            flat, point = _nearest_of_plane(P[held])
            if (flat > EPS).all():
                weights = flat
                break
            falling = flat <= EPS  # go toward the plane's nearest point until the first weight vanishes, and drop its row
            share = weights[falling] / np.maximum(weights[falling] - flat[falling], TINY)
            weights = weights + float(share.min()) * (flat - weights)
            weights[np.flatnonzero(falling)[share.argmin()]] = 0.0
            held, weights = held[weights > EPS], weights[weights > EPS]
            weights /= weights.sum()
    return held, weights, point


def _nearest_of_plane(P):
    """Return the weights, which sum to one, and the point nearest to zero of the plane through some rows."""
    edges = (P[1:] - P[0]).T
    point, along = P[0], np.zeros(len(P) - 1)
    for _ in range(2):  # the second time takes what rounding left of the first: the point may be tiny beside the rows
        step = np.linalg.lstsq(edges, point, rcond=None)[0]
        point, along = point - edges @ step, along + step
    return np.append(1 + along.sum(), -along), point
