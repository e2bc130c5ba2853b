"""One pass of Lloyd's algorithm over a block, with bounds that let most rows skip it.

A pass gives each row to its nearest center and sums, for each center, the weights and the offsets of its rows. Two bounds a
row, kept from pass to pass, tell when nothing can have changed [1]: `upper` ≥ distance to its own center, `lower` ≤ distance
to every other. When centers move by mⱼ, upper grows by m of its own and lower shrinks by the largest other m; a row with
upper below lower, or below half the distance from its center to the next, keeps its label unseen. Rows that remain are
scored all at once: ‖c‖² − 2 x·c in float32, by one matrix product that is twice as fast as in float64; a rigorous bound on
its error says which centers could be nearest, and only if there are several are they compared exactly.

Sums change only by the rows that changed hands. They are kept as exact integers on a grid of more than 80 bits, so that
adding and taking away leaves no trace. Labels are those of exact float64 distances, ties going to the first center. So a
pass is a function of the data and the centers alone: what a block remembers is a cache that may be lost at any time (a killed
worker, a resumed checkpoint) without changing one bit of the result.

[1] Hamerly, SDM (2010).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel

SLACK = 1e-10  # relative; rounding of distances and of thousands of bound updates stays far below
CHUNK = 512  # rows scored at once: scores of 200 centers then stay in the second-level cache
FEW = 96  # centers times columns up to which comparing exactly is as fast as a matrix product
UNIT32 = 2.0**-24  # rounding of float32


class Grid(NamedTuple):
    """Where rows are summed: offsets from `origin`, as multiples of size/2^bits (and 2^-bits of that) in two integers."""

    origin: np.ndarray
    size: float  # no weighted offset is longer
    weight: float  # no weight is larger
    bits: int  # so that a sum over all rows fits 64 bits

    def counts(self, statistics):
        """Turn the integers of a pass into the weight of each center's rows."""
        high, low = statistics[0].astype(float), statistics[1].astype(float)
        return (high + low / 2.0**self.bits) * (self.weight / 2.0**self.bits)

    def sums(self, statistics):
        """Turn the integers of a pass into the weighted sum of offsets of each center's rows."""
        high, low = statistics[2].astype(float), statistics[3].astype(float)
        return (high + low / 2.0**self.bits) * (self.size / 2.0**self.bits)


class Cache(NamedTuple):
    """What a block remembers of its last pass."""

    centers: np.ndarray
    grown: np.ndarray  # how far each center has moved in all
    shrunk: np.ndarray  # the same of the center that moved most beside it
    labels: np.ndarray
    upper: np.ndarray  # less what the center has grown
    lower: np.ndarray  # plus what it has shrunk
    statistics: tuple


@dataclass(frozen=True)
class Largest:
    """A number of which the largest is wanted: "adding" two keeps the larger."""

    value: float

    def __add__(self, other):
        """Keep the larger."""
        return self if self.value >= other.value else other


@kernel
def squared_distance(X, i, centers, j):
    """Squared distance of a row to a center, by differences: exact to a few roundings whatever the offset."""
    s = 0.0
    for f in range(X.shape[1]):
        t = np.float64(X[i, f]) - centers[j, f]
        s += t * t
    return s


@kernel
def survivors(X, centers, grown, shrunk, reach, labels, upper, lower, rows):
    """List the rows of a block whose nearest center may have changed, and count them.

    Bounds are stored net of what their center has grown and shrunk in all passes so far, so rows that pass are only read.
    """
    n = 0
    for i in range(len(X)):
        a = labels[i]
        bound = max(lower[i] - shrunk[a], reach[a]) * (1.0 - SLACK)
        if upper[i] + grown[a] >= bound:
            near = np.sqrt(squared_distance(X, i, centers, a)) * (1.0 + SLACK)
            upper[i] = near - grown[a]
            if near >= bound:
                rows[n] = i
                n += 1
    return n


@kernel
def compare(X, rows, centers, grown, shrunk, labels, upper, lower):
    """Give rows to their nearest centers by exact distances to all of them."""
    for r in range(len(rows)):
        i = rows[r]
        best, second, nearest = np.inf, np.inf, 0
        for j in range(len(centers)):
            s = squared_distance(X, i, centers, j)
            if s < best:
                best, second, nearest = s, best, j
            elif s < second:
                second = s
        labels[i] = nearest
        upper[i] = np.sqrt(best) * (1.0 + SLACK) - grown[nearest]
        lower[i] = np.sqrt(second) * (1.0 - SLACK) + shrunk[nearest]


@kernel
def gather(X, rows, origin, scale, out):
    """Copy rows, centered and scaled, in float32; return their squared lengths."""
    squares = np.empty(len(rows))
    for r in range(len(rows)):
        x, copy, s = X[rows[r]], out[r], np.float32(0.0)
        for f in range(len(x)):
            t = np.float32((np.float64(x[f]) - origin[f]) * scale)
            copy[f] = t
            s += t * t
        squares[r] = s
    return squares


@kernel
def two_best(scores, norms, best, second, nearest):
    """Find the least and second-least of scores (n_centers, n_rows) plus norms, and where the least is.

    Two centers at a time: half the traffic. The loops over rows are elementwise selections, which vectorize.
    """
    best[:] = np.inf
    second[:] = np.inf
    k = len(norms)
    for j in range(0, k - 1, 2):
        norm0, norm1, here0, here1 = norms[j], norms[j + 1], np.int32(j), np.int32(j + 1)
        row0, row1 = scores[j], scores[j + 1]
        for r in range(len(best)):
            s0, s1, b, t = row0[r] + norm0, row1[r] + norm1, best[r], second[r]
            first = s0 <= s1
            low, high, here = (s0 if first else s1), (s1 if first else s0), (here0 if first else here1)
            closer = low < b
            middle = b if closer else low
            other = high if high < t else t
            second[r] = middle if middle < other else other
            nearest[r] = here if closer else nearest[r]
            best[r] = low if closer else b
    if k % 2:
        for r in range(len(best)):
            s, b, t = scores[k - 1, r] + norms[k - 1], best[r], second[r]
            closer = s < b
            middle = b if closer else s
            second[r] = middle if middle < t else t
            nearest[r] = np.int32(k - 1) if closer else nearest[r]
            best[r] = s if closer else b


@kernel
def choose(scores, norms, squares, largest, length, X, rows, centers, grown, shrunk, labels, upper, lower):
    """Give rows to their nearest centers from float32 scores (n_centers, n_rows), exactly.

    A score plus the squared length of its row misses the squared distance by at most `error`; where the two best are closer
    than twice that, all centers are compared by their exact distances.
    """
    m, d = len(rows), X.shape[1]
    best, second = np.empty(m, dtype=np.float32), np.empty(m, dtype=np.float32)
    nearest = np.zeros(m, dtype=np.int32)
    two_best(scores, norms, best, second, nearest)
    near, far, margin = np.empty(m), np.empty(m), np.empty(m)
    for r in range(m):
        error = UNIT32 * (d + 4) * (2.5 * np.sqrt(squares[r]) * largest + 1.5 * squares[r] + 3.0 * largest * largest)
        low, next_low = np.float64(best[r]), np.float64(second[r])
        margin[r] = next_low - low - 2.0 * error
        near[r] = np.sqrt(max(low + squares[r] + error, 0.0)) * (length * (1.0 + SLACK))
        far[r] = np.sqrt(max(next_low + squares[r] - error, 0.0)) * (length * (1.0 - SLACK))
    for r in range(m):
        if margin[r] > 0.0:  # false for NaN, so that overflown scores are compared as well
            i, a = rows[r], nearest[r]
            labels[i] = a
            upper[i] = near[r] - grown[a]
            lower[i] = far[r] + shrunk[a]
        else:
            compare(X, rows[r : r + 1], centers, grown, shrunk, labels, upper, lower)


@kernel
def transfer(X, weight, rows, before, labels, origin, size, heaviest, bits, counts, counts_low, sums, sums_low):
    """Move rows from the sums of the center they had (none if before is empty) to those of the center they have."""
    fine = 2.0**bits
    scale, weight_scale = fine / size, fine / heaviest
    for r in range(len(rows)):
        i = rows[r]
        a, b = labels[i], before[r] if len(before) else -1
        if a == b:
            continue
        w = 1.0 if weight is None else weight[i]
        v = w * weight_scale
        high = np.rint(v)
        q, p = np.int64(high), np.int64(np.rint((v - high) * fine))
        counts[a] += q
        counts_low[a] += p
        if b >= 0:
            counts[b] -= q
            counts_low[b] -= p
        for f in range(X.shape[1]):
            v = w * (np.float64(X[i, f]) - origin[f]) * scale
            high = np.rint(v)
            q, p = np.int64(high), np.int64(np.rint((v - high) * fine))
            sums[a, f] += q
            sums_low[a, f] += p
            if b >= 0:
                sums[b, f] -= q
                sums_low[b, f] -= p


@kernel
def extent(X, weight, origin):
    """Longest weighted offset from the origin, largest weight; total weight, weighted sum of squares."""
    size, heaviest, total, scatter = 0.0, 0.0, 0.0, 0.0
    for i in range(len(X)):
        s = 0.0
        for f in range(X.shape[1]):
            t = np.float64(X[i, f]) - origin[f]
            s += t * t
        w = 1.0 if weight is None else weight[i]
        size, heaviest = max(size, w * w * s), max(heaviest, w)
        total += w
        scatter += w * s
    return np.sqrt(size), heaviest, total, scatter


@kernel
def distances(X, centers, labels):
    """Squared distance of each row to the center of its label."""
    out = np.empty(len(X))
    for i in range(len(X)):
        out[i] = squared_distance(X, i, centers, labels[i])
    return out


@kernel
def nearest_sparse(data, indices, indptr, centers_t, norms, labels, squared):
    """Give every sparse row to its nearest center; squared distances are ‖x‖² − 2 x·c + ‖c‖²."""
    k = len(norms)
    products = np.empty(k)
    for i in range(len(indptr) - 1):
        products[:] = 0.0
        square = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[e])
            square += x * x
            column = centers_t[indices[e]]
            for j in range(k):
                products[j] += x * column[j]
        best, nearest = np.inf, 0
        for j in range(k):
            s = norms[j] - 2.0 * products[j]
            if s < best:
                best, nearest = s, j
        labels[i] = nearest
        squared[i] = max(best + square, 0.0)


def extent_block(X, weight, origin):
    """What `Grid` needs to know of a block."""
    if is_sparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()  # the origin of sparse rows is zero
        w = np.ones(X.shape[0]) if weight is None else weight
        numbers = np.sqrt((w * w * squares).max()), w.max(), w.sum(), w @ squares
    else:
        numbers = extent(X, weight, origin)
    size, heaviest, total, scatter = (float(v) for v in numbers)
    return Largest(size), Largest(heaviest), total, scatter


def assign(X, rows, cache):
    """Give the listed rows of a dense block to their nearest centers, and set their bounds."""
    centers, bounds = cache.centers, (cache.grown, cache.shrunk, cache.labels, cache.upper, cache.lower)
    if centers.size <= FEW:
        compare(X, rows, centers, *bounds)
        return
    origin = centers.mean(axis=0)
    length = float(np.sqrt(((centers - origin) ** 2).sum(axis=1).max())) or 1.0
    scaled = (centers - origin) / length
    norms = (scaled**2).sum(axis=1)
    largest, coefficients = float(np.sqrt(norms.max())), (-2.0 * scaled).astype(np.float32)
    norms = norms.astype(np.float32)
    buffer = np.empty((min(CHUNK, len(rows)), X.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        few = buffer[: len(part)]
        squares = gather(X, part, origin, 1.0 / length, few)
        choose(coefficients @ few.T, norms, squares, largest, length, X, part, centers, *bounds)


def fresh(X, centers):
    """Start the memory of a block: nothing known, no sums."""
    n, k = X.shape[0], len(centers)
    labels, upper, lower = np.zeros(n, dtype=np.int32), np.empty(n), np.empty(n)
    return Cache(centers, np.zeros(k), np.zeros(k), labels, upper, lower, _zeros(k, X.shape[1]))


def drifted(cache, centers):
    """Account for a move of the centers: upper bounds grow by it, lower bounds shrink by the largest of another center."""
    moves = np.sqrt(((centers - cache.centers) ** 2).sum(axis=1)) * (1.0 + SLACK)
    order = np.argsort(moves)
    others = np.full(len(moves), moves[order[-1]])
    others[order[-1]] = moves[order[-2]] if len(moves) > 1 else 0.0
    return cache._replace(centers=centers, grown=cache.grown + moves, shrunk=cache.shrunk + others)


def sweep(X, weight, cache, centers, reach, grid):
    """Run one pass over a block: the integers of `Grid` for its rows, and what to remember.

    Parameters
    ----------
    reach : Half the distance from each center to the next.
    """
    if is_sparse(X):
        labels, _ = nearest(X, centers)
        return _sparse_sums(X, weight, labels, len(centers), grid), None
    if cache is None:
        cache = fresh(X, centers)
        rows, before = np.arange(X.shape[0]), np.empty(0, dtype=np.int32)
    else:
        cache = drifted(cache, centers)
        rows = np.empty(X.shape[0], dtype=np.int64)
        bounds = cache.labels, cache.upper, cache.lower
        rows = rows[: survivors(X, centers, cache.grown, cache.shrunk, reach, *bounds, rows)]
        before = cache.labels[rows]
    assign(X, rows, cache)
    transfer(X, weight, rows, before, cache.labels, grid.origin, grid.size, grid.weight, grid.bits, *cache.statistics)
    return tuple(s.copy() for s in cache.statistics), cache


def lloyd_block(X, weight, centers, grid):
    """As `sweep`, without memory."""
    return sweep(X, weight, None, centers, None, grid)[0]


def nearest(X, centers):
    """Nearest center of each row of a block, and the squared distance to it."""
    n = X.shape[0]
    if is_sparse(X):
        labels, squared, norms = np.zeros(n, dtype=np.int32), np.empty(n), (centers**2).sum(axis=1)
        nearest_sparse(X.data, X.indices, X.indptr, np.ascontiguousarray(centers.T), norms, labels, squared)
        return labels, squared
    cache = fresh(X, centers)
    assign(X, np.arange(n), cache)
    return cache.labels, distances(X, centers, cache.labels)


def _zeros(k, d):
    return tuple(np.zeros(shape, dtype=np.int64) for shape in (k, k, (k, d), (k, d)))


def _sparse_sums(X, weight, labels, k, grid):
    statistics = _zeros(k, X.shape[1])
    rows, no_label = np.arange(X.shape[0]), np.empty(0, dtype=np.int32)
    w = np.ones(X.shape[0]) if weight is None else weight
    ones, origin = np.ones((X.shape[0], 1)), np.zeros(1)
    transfer(ones, w, rows, no_label, labels, origin, grid.weight, grid.weight, grid.bits, *statistics[:2], *_zeros(k, 1)[2:])
    fine = 2.0**grid.bits
    entries = np.repeat(w, np.diff(X.indptr)) * X.data * (fine / grid.size)
    high = np.rint(entries)
    place = np.repeat(labels, np.diff(X.indptr)), X.indices
    np.add.at(statistics[2], place, high.astype(np.int64))
    np.add.at(statistics[3], place, np.rint((entries - high) * fine).astype(np.int64))
    return statistics
