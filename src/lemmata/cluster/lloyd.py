"""One pass of Lloyd's algorithm over a block, with bounds that let most rows skip it.

A pass gives each row to its nearest center and sums, for each center, the weights and the offsets of its rows. Two bounds a
row, kept from pass to pass, tell when nothing can have changed [1]: `upper` ≥ distance to its own center, `lower` ≤ distance
to every other. When centers move by mⱼ, upper grows by m of its own and lower shrinks by the largest other m; a row with
upper below lower, or below half the distance from its center to the next, keeps its label unseen. Rows that remain are
scored side by side: ‖c‖² − 2 x·c in float32, twice as fast as in float64; a rigorous bound on its error says whether the
nearest is beyond doubt, and only if not are the centers compared exactly.

Sums change only by the rows that changed hands. They are kept as exact integers on a grid of more than 80 bits, so that
adding and taking away leaves no trace. Labels are those of exact float64 distances, ties going to the first center. So a
pass is a function of the data and the centers alone: what a block remembers is a cache that may be lost at any time (a killed
worker, a resumed checkpoint) without changing one bit of the result.

[1] Hamerly, SDM (2010).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.blocks import Largest
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel

SLACK = 1e-10  # relative; rounding of distances and of thousands of bound updates stays far below
TILE = 256  # rows scored side by side: long enough for the loops, short enough for the first-level cache
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


class Scoring(NamedTuple):
    """Centers, and all that a pass derives from them alone."""

    centers: np.ndarray  # (k, d)
    reach: np.ndarray  # (k,) half the distance to the next center, rounded down
    coefficients: (
        np.ndarray
    )  # −2 c in float32, in units of `length` from `origin`; padded to pairs of centers, fours of columns
    norms: np.ndarray  # ‖c‖² in the same units; infinite for the padding
    origin: np.ndarray
    length: float  # of the longest center, from the origin


class Cache(NamedTuple):
    """What a block remembers of its last pass."""

    centers: np.ndarray
    grown: np.ndarray  # how far each center has moved in all
    shrunk: np.ndarray  # the same of the center that moved most beside it
    labels: np.ndarray
    upper: np.ndarray  # less what the center has grown
    lower: np.ndarray  # plus what it has shrunk
    counts: np.ndarray  # the integers of `Grid`, high and low
    counts_low: np.ndarray
    sums: np.ndarray
    sums_low: np.ndarray

    def statistics(self):
        """Copy the integers of `Grid`."""
        return tuple(a.copy() for a in self[6:])


@kernel
def squared_distance(X, i, centers, j):
    """Squared distance of a row to a center, by differences: exact to a few roundings whatever the offset."""
    s = 0.0
    for f in range(X.shape[1]):
        t = np.float64(X[i, f]) - centers[j, f]
        s += t * t
    return s


@kernel
def drift(cache, centers):
    """Account for a move of the centers: upper bounds grow by it, lower bounds shrink by the largest of another center."""
    k, d = centers.shape
    moves = np.zeros(k)
    first, second, which = 0.0, 0.0, -1
    for j in range(k):
        s = 0.0
        for f in range(d):
            t = centers[j, f] - cache.centers[j, f]
            s += t * t
            cache.centers[j, f] = centers[j, f]
        moves[j] = np.sqrt(s) * (1.0 + SLACK)
        if moves[j] > first:
            first, second, which = moves[j], first, j
        elif moves[j] > second:
            second = moves[j]
    for j in range(k):
        cache.grown[j] += moves[j]
        cache.shrunk[j] += second if j == which else first


@kernel
def survivors(X, scoring, cache, rows):
    """List the rows of a block whose nearest center may have changed, and count them.

    Bounds are stored net of what their center has grown and shrunk in all passes so far, so rows that pass are only read.
    """
    n = 0
    for i in range(len(X)):
        a = cache.labels[i]
        bound = max(cache.lower[i] - cache.shrunk[a], scoring.reach[a]) * (1.0 - SLACK)
        if cache.upper[i] + cache.grown[a] >= bound:
            near = np.sqrt(squared_distance(X, i, scoring.centers, a)) * (1.0 + SLACK)
            cache.upper[i] = near - cache.grown[a]
            if near >= bound:
                rows[n] = i
                n += 1
    return n


@kernel
def compare(X, i, centers, cache):
    """Give a row to its nearest center by exact distances to all of them."""
    best, second, nearest = np.inf, np.inf, 0
    for j in range(len(centers)):
        s = squared_distance(X, i, centers, j)
        if s < best:
            best, second, nearest = s, best, j
        elif s < second:
            second = s
    cache.labels[i] = nearest
    cache.upper[i] = np.sqrt(best) * (1.0 + SLACK) - cache.grown[nearest]
    cache.lower[i] = np.sqrt(second) * (1.0 - SLACK) + cache.shrunk[nearest]


@kernel
def lay_out(X, rows, origin, scale, tile, squares):
    """Write rows side by side into a tile (below its two rows of scores), in float32; and their squared lengths."""
    for r in range(len(rows)):
        x, s = X[rows[r]], np.float32(0.0)
        for f in range(len(x)):
            t = np.float32((np.float64(x[f]) - origin[f]) * scale)
            tile[(f + 2) * TILE + r] = t
            s += t * t
        squares[r] = s


@kernel
def score(tile, coefficients, norms, best, second, nearest):
    """Find the least and second-least score of each row of a tile over all centers, and where the least is.

    Two centers and four columns at a time, so that the innermost loops, which run over rows, are bound by multiplications.
    Indices are unsigned: for signed ones the compiler allows for Python's negative indices, and does not vectorize.
    """
    width = np.uint64(TILE)
    best[:] = np.inf
    second[:] = np.inf
    for j in range(0, len(norms), 2):
        norm0, norm1, here0, here1 = norms[j], norms[j + 1], np.int32(j), np.int32(j + 1)
        for r in range(width):
            tile[r] = norm0
            tile[width + r] = norm1
        for f in range(0, coefficients.shape[1], 4):
            a0, a1, a2, a3 = coefficients[j, f], coefficients[j, f + 1], coefficients[j, f + 2], coefficients[j, f + 3]
            other = coefficients[j + 1]
            b0, b1, b2, b3 = other[f], other[f + 1], other[f + 2], other[f + 3]
            row0 = np.uint64((f + 2) * TILE)
            row1, row2, row3 = row0 + width, row0 + np.uint64(2) * width, row0 + np.uint64(3) * width
            for r in range(width):
                x0, x1, x2, x3 = tile[row0 + r], tile[row1 + r], tile[row2 + r], tile[row3 + r]
                tile[r] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                tile[width + r] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
        for r in range(width):  # elementwise selections
            s0, s1, b, t = tile[r], tile[width + r], best[r], second[r]
            first = s0 <= s1
            low, high, here = (s0 if first else s1), (s1 if first else s0), (here0 if first else here1)
            closer = low < b
            middle = b if closer else low
            rest = high if high < t else t
            second[r] = middle if middle < rest else rest
            nearest[r] = here if closer else nearest[r]
            best[r] = low if closer else b


@kernel
def settle(X, rows, best, second, nearest, squares, scoring, cache):
    """Give rows to their nearest centers from their scores, exactly.

    A score plus the squared length of its row misses the squared distance by at most `error`; where the two best are closer
    than twice that, all centers are compared by their exact distances.
    """
    unit, length = UNIT32 * (X.shape[1] + 4), scoring.length
    for r in range(len(rows)):
        i, a = rows[r], nearest[r]
        error = unit * (2.5 * np.sqrt(squares[r]) + 1.5 * squares[r] + 3.0)
        low, next_low = np.float64(best[r]), np.float64(second[r])
        if next_low - low > 2.0 * error:  # false for NaN, so that overflown scores are compared as well
            cache.labels[i] = a
            near, far = max(low + squares[r] + error, 0.0), max(next_low + squares[r] - error, 0.0)
            cache.upper[i] = np.sqrt(near) * (length * (1.0 + SLACK)) - cache.grown[a]
            cache.lower[i] = np.sqrt(far) * (length * (1.0 - SLACK)) + cache.shrunk[a]
        else:
            compare(X, i, scoring.centers, cache)


@kernel
def assign(X, rows, scoring, cache):
    """Give the listed rows of a dense block to their nearest centers, and set their bounds."""
    tile = np.zeros((scoring.coefficients.shape[1] + 2) * TILE, dtype=np.float32)
    best, second = np.empty(TILE, dtype=np.float32), np.empty(TILE, dtype=np.float32)
    nearest, squares = np.zeros(TILE, dtype=np.int32), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        part = rows[start : start + TILE]
        lay_out(X, part, scoring.origin, 1.0 / scoring.length, tile, squares)
        score(tile, scoring.coefficients, scoring.norms, best, second, nearest)
        settle(X, part, best, second, nearest, squares, scoring, cache)


@kernel
def transfer(X, weight, rows, before, grid, cache):
    """Move rows from the sums of the center they had (none if before is empty) to those of the center they have."""
    fine = 2.0**grid.bits
    scale, weight_scale = fine / grid.size, fine / grid.weight
    for r in range(len(rows)):
        i = rows[r]
        a, b = cache.labels[i], before[r] if len(before) else -1
        if a == b:
            continue
        w = 1.0 if weight is None else weight[i]
        v = w * weight_scale
        high = np.rint(v)
        q, p = np.int64(high), np.int64(np.rint((v - high) * fine))
        cache.counts[a] += q
        cache.counts_low[a] += p
        if b >= 0:
            cache.counts[b] -= q
            cache.counts_low[b] -= p
        for f in range(X.shape[1]):
            v = w * (np.float64(X[i, f]) - grid.origin[f]) * scale
            high = np.rint(v)
            q, p = np.int64(high), np.int64(np.rint((v - high) * fine))
            cache.sums[a, f] += q
            cache.sums_low[a, f] += p
            if b >= 0:
                cache.sums[b, f] -= q
                cache.sums_low[b, f] -= p


@kernel
def first_pass(X, weight, scoring, grid, cache):
    """Assign and sum all rows of a block."""
    rows = np.arange(len(X))
    assign(X, rows, scoring, cache)
    transfer(X, weight, rows, np.empty(0, dtype=np.int32), grid, cache)


@kernel
def next_pass(X, weight, scoring, grid, cache):
    """Assign and sum anew the rows of a block that the bounds do not excuse."""
    drift(cache, scoring.centers)
    rows = np.empty(len(X), dtype=np.int64)
    rows = rows[: survivors(X, scoring, cache, rows)]
    before = cache.labels[rows]
    assign(X, rows, scoring, cache)
    transfer(X, weight, rows, before, grid, cache)


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


def scoring_of(centers):
    """Derive from centers what a pass needs."""
    k, d = centers.shape
    origin = centers.mean(axis=0)
    offsets = centers - origin
    squares = (offsets**2).sum(axis=1)
    gaps = squares[:, None] + squares - 2.0 * (offsets @ offsets.T)
    np.fill_diagonal(gaps, np.inf)
    rounding = 4 * (d + 4) * np.finfo(float).eps * squares.max()  # of a product of offsets no longer than the longest
    reach = 0.5 * np.sqrt(np.maximum(gaps.min(axis=1) - rounding, 0.0)) * (1.0 - SLACK)
    length = float(np.sqrt(squares.max())) or 1.0
    coefficients = np.zeros((k + k % 2, d + -d % 4), dtype=np.float32)
    coefficients[:k, :d] = -2.0 * offsets / length
    norms = np.full(k + k % 2, np.inf, dtype=np.float32)
    norms[:k] = squares / length**2
    return Scoring(centers, reach, coefficients, norms, origin, length)


def fresh(X, centers):
    """Start the memory of a block: nothing known, no sums."""
    (n, d), k = X.shape, len(centers)
    labels, upper, lower = np.zeros(n, dtype=np.int32), np.empty(n), np.empty(n)
    integers = (np.zeros(shape, dtype=np.int64) for shape in (k, k, (k, d), (k, d)))
    return Cache(centers.copy(), np.zeros(k), np.zeros(k), labels, upper, lower, *integers)


def sweep(X, weight, cache, scoring, grid):
    """Run one pass over a block: the integers of `Grid` for its rows, and what to remember."""
    if is_sparse(X):
        return _sparse_sums(X, weight, scoring, grid), None
    if cache is None:
        cache = fresh(X, scoring.centers)
        first_pass(X, weight, scoring, grid, cache)
    else:
        next_pass(X, weight, scoring, grid, cache)
    return cache.statistics(), cache


def lloyd_block(X, weight, scoring, grid):
    """As `sweep`, without memory."""
    return sweep(X, weight, None, scoring, grid)[0]


def nearest(X, scoring):
    """Nearest center of each row of a block, and the squared distance to it."""
    n, centers = X.shape[0], scoring.centers
    if is_sparse(X):
        labels, squared, norms = np.zeros(n, dtype=np.int32), np.empty(n), (centers**2).sum(axis=1)
        nearest_sparse(X.data, X.indices, X.indptr, np.ascontiguousarray(centers.T), norms, labels, squared)
        return labels, squared
    cache = fresh(X, centers)
    assign(X, np.arange(n), scoring, cache)
    return cache.labels, distances(X, centers, cache.labels)


def _sparse_sums(X, weight, scoring, grid):
    """Sum sparse rows on the grid; their origin is zero, so that only entries that are there count."""
    labels, _ = nearest(X, scoring)
    (n, d), k, fine = X.shape, len(scoring.centers), 2.0**grid.bits
    w = np.ones(n) if weight is None else weight
    per_row = np.diff(X.indptr)
    entries = np.repeat(w, per_row) * X.data * (fine / grid.size)
    statistics = []
    for shape, place, values in (
        (k, (labels,), w * (fine / grid.weight)),
        ((k, d), (np.repeat(labels, per_row), X.indices), entries),
    ):
        high = np.rint(values)
        for part in (high, np.rint((values - high) * fine)):
            total = np.zeros(shape, dtype=np.int64)
            np.add.at(total, place, part.astype(np.int64))
            statistics.append(total)
    return tuple(statistics)
