"""Rows in tiles of close ones: the search for tables of few columns, and for all powers but two.

Rows are cut into tiles by halving along the widest column. The search goes tile against tile: that with the nearest center
first, then all whose bounding boxes are not farther from the box of the rows that ask than their k-th neighbors so far [1].
Within a tile, coordinates lie column by column in single precision, taken from the tile's center: one vectorized loop compares
a row with all rows of a tile. What that rounds is known (‖rounding‖ ≤ 2u (‖x − c‖ + ‖q − c‖), u = 2⁻²⁴), so the loop
rules out rows for certain, and those left, few more than are near, are compared in double precision.

[1] Friedman, Bentley & Finkel, ACM Trans. Math. Softw. 3 (1977).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.neighbors.metric import box_distance, push, ranked

TILE = 128  # rows: with 64 or 256 searches of 50,000 rows take up to a third longer, in 3 columns and in 10
STRIDE = 32  # rows of a tile that are looked at together
UNIT = 2.0**-24  # rounding of single precision
TINIEST = 1e-30  # what numbers below single precision lose, next to coordinates of size 1
ROUNDING = 1.0 - 1e-12  # boxes are brought nearer by this share, so that a last bit rules nobody out


class Tiles(NamedTuple):
    """Rows of a table in tiles of close ones."""

    order: np.ndarray  # (n,), row numbers, tile after tile
    starts: np.ndarray  # (tiles + 1,), where each tile begins in the order
    rows: np.ndarray  # (n, d), in this order
    low: np.ndarray  # (tiles, d), the bounding boxes
    high: np.ndarray
    columns: np.ndarray  # (tiles, d, TILE), from the box's middle; infinite where there is no row; zeros make d even


def tiles_of(X, *, size=TILE, columns=True):
    """Cut rows into tiles by halving along the widest column until they fit.

    Examples
    --------
    >>> tiles_of(np.arange(400.0)[::-1, None]).starts
    array([  0, 100, 200, 300, 400])
    """
    rows, order, starts, stack = X.copy(), np.arange(len(X)), [0], [(0, len(X))]
    while stack:
        start, stop = stack.pop()
        if stop - start <= size:
            starts.append(stop)
            continue
        part, half = rows[start:stop], (stop - start) // 2
        places = np.argpartition(part[:, widest(part)], half)
        rows[start:stop], order[start:stop] = part[places], order[start:stop][places]
        stack += [(start + half, stop), (start, start + half)]  # the left half comes off first: tiles stay in order
    starts = np.array(starts)
    low, high = np.minimum.reduceat(rows, starts[:-1]), np.maximum.reduceat(rows, starts[:-1])
    d = X.shape[1]
    held = np.full((len(low), d + d % 2, TILE) if columns else (0, 0, 0), np.inf, dtype=np.float32)
    held[:, d:] = 0.0
    for t, (start, stop) in enumerate(pairwise(starts) if columns else ()):
        held[t, :d, : stop - start] = (rows[start:stop] - middle(low[t], high[t])).T
    return Tiles(order, starts, rows, low, high, held)


@kernel
def widest(rows):
    """Find the column in which rows differ most.

    Examples
    --------
    >>> int(widest(np.array([[0.0, 5.0], [1.0, 7.0]])))
    1
    """
    low, high = rows[0].copy(), rows[0].copy()
    for i in range(1, len(rows)):
        for f in range(len(low)):
            x = rows[i, f]
            low[f] = x if x < low[f] else low[f]
            high[f] = x if x > high[f] else high[f]
    return np.argmax(high - low)


def middle(low, high):
    """Give the middle of a box."""
    return 0.5 * low + 0.5 * high


@kernel
def screen(columns, q, p, differences, powers, sums):
    """Sum |x − q|^p, or find the largest difference, for all rows of a tile in single precision; p is whole or half.

    Parameters
    ----------
    columns, q : (d, TILE) and (d,) for an even d.
    differences, powers, sums : (TILE,), room to work, and for the result.
    """
    sums[:] = 0.0
    for f in range(0, len(q), 2):  # two at a time: sums are loaded and stored half as often
        a, b, x, y = columns[f], columns[f + 1], q[f], q[f + 1]
        if p == 2.0:
            for j in range(TILE):
                sums[j] += (a[j] - x) * (a[j] - x) + (b[j] - y) * (b[j] - y)
        elif p == 1.0:
            for j in range(TILE):
                sums[j] += abs(a[j] - x) + abs(b[j] - y)
        elif p == np.inf:
            for j in range(TILE):
                sums[j] = max(sums[j], abs(a[j] - x), abs(b[j] - y))
        else:
            for column, z in ((a, x), (b, y)):
                for j in range(TILE):
                    differences[j] = abs(column[j] - z)
                    powers[j] = differences[j]
                for _ in range(1, int(p)):
                    for j in range(TILE):
                        powers[j] *= differences[j]
                if p != np.floor(p):
                    for j in range(TILE):
                        powers[j] *= np.sqrt(differences[j])
                for j in range(TILE):
                    sums[j] += powers[j]


@kernel
def box_distances(columns, low, high, p, power, bounds):
    """Bound from below how the rows of a box are ranked for many rows at once, given column by column; see `box_distance`."""
    bounds[:] = 0.0
    for f in range(len(low)):
        a, b = low[f], high[f]
        for i in range(len(bounds)):
            gap = a - columns[f, i] if a - columns[f, i] > columns[f, i] - b else columns[f, i] - b
            gap = gap if gap > 0.0 else 0.0
            if power == 2.0:
                bounds[i] += gap * gap
            elif power == 1.0:
                bounds[i] += gap
            elif power == np.inf:
                bounds[i] = gap if gap > bounds[i] else bounds[i]
            elif gap > 0.0:
                bounds[i] += gap**power
    if p != 2.0 and power != 1.0 and power != np.inf:
        for i in range(len(bounds)):
            bounds[i] = np.sqrt(bounds[i]) if power == 2.0 else bounds[i] ** (1.0 / power)


@kernel
def most(ranking, size, length, d, p, power):
    """Bound what `screen` makes of rows ranked so, which are so far at most from the tile's middle, as q is by its length."""
    reach = np.sqrt(ranking) if p == 2.0 else ranking
    reach = (reach + 2.5 * UNIT * (size + length) + TINIEST) * (1.0 + (2.0 * d + 16.0) * UNIT)  # 2.5: 2 and its own rounding
    if power == 2.0:
        reach *= reach
    elif power != 1.0 and power != np.inf:
        reach **= power
    return np.float32(reach * (1.0 + 4.0 * UNIT))


@kernel
def nearest_of_tile(Q, low, high, names, tiles, p, power, index, value):
    """Find the nearest rows of rows Q, whose box is (low, high); a row that is called as one of them is left out.

    Parameters
    ----------
    names : (m,), numbers of the rows in the table, or −1 for rows that are not in it.
    p, power : Of the distance, and to screen by.
    index, value : (m, k), heaps of the nearest so far.
    """
    d, count = Q.shape[1], len(tiles.low)
    far, gaps = np.empty(count), np.empty(count)
    for t in range(count):
        far[t] = 0.0
        for f in range(d):
            step = (tiles.low[t, f] + tiles.high[t, f]) - (low[f] + high[f])
            far[t] += step * step
    first = np.argmin(far)
    room = np.zeros(d + d % 2, np.float32), np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    asking = Q.T.copy(), np.empty(len(Q))
    _visit(first, Q, names, tiles, p, power, index, value, room, asking)
    worst = value[:, 0].max()
    others = np.empty(count, np.int64)
    left = 0
    for t in range(count):
        gaps[t] = box_distance(low, high, tiles.low[t], tiles.high[t], p, power)
        if t != first and gaps[t] * ROUNDING <= worst:
            others[left] = t
            left += 1
    for t in others[:left][np.argsort(far[others[:left]], kind="mergesort")]:
        if gaps[t] * ROUNDING <= worst:
            _visit(t, Q, names, tiles, p, power, index, value, room, asking)
            worst = value[:, 0].max()


@kernel
def _visit(t, Q, names, tiles, p, power, index, value, room, asking):
    """Take in the rows of a tile."""
    q, differences, powers, sums = room
    one, none = np.float32(1.0), np.float32(0.0)  # counted in the type that is compared: that vectorizes
    d = Q.shape[1]
    start, stop = tiles.starts[t], tiles.starts[t + 1]
    size = box_distance(tiles.low[t], tiles.low[t], tiles.high[t], tiles.high[t], p, power)
    size = 0.5 * (np.sqrt(size) if p == 2.0 else size)
    columns, bounds = asking
    box_distances(columns, tiles.low[t], tiles.high[t], p, power, bounds)
    for i in range(len(Q)):
        if bounds[i] * ROUNDING > value[i, 0]:
            continue
        length = 0.0
        for f in range(d):
            from_middle = Q[i, f] - (0.5 * tiles.low[t, f] + 0.5 * tiles.high[t, f])
            q[f] = from_middle
            length += abs(from_middle)  # no norm is longer
        screen(tiles.columns[t], q, power, differences, powers, sums)
        bound = most(value[i, 0], size, length, d, p, power)
        for first in range(0, stop - start, STRIDE):
            near, part = none, sums[first : first + STRIDE]
            for j in range(STRIDE):
                near += one if part[j] <= bound else none
            if near == none:
                continue
            for j in range(STRIDE):
                row = start + first + j
                if part[j] <= bound and row < stop and tiles.order[row] != names[i]:
                    push(index[i], value[i], tiles.order[row], ranked(Q[i], tiles.rows[row], p))
                    bound = most(value[i, 0], size, length, d, p, power)


@kernel
def within_of_tile(Q, low, high, names, tiles, p, power, reach):
    """Find all rows within reach of rows Q, given as they are ranked; the arguments are those of `nearest_of_tile`.

    Returns
    -------
    which, index, value : The row of Q, the row of the table, and how far it is, for each pair.
    """
    m, d = Q.shape
    which, index, value = np.empty(TILE, np.int64), np.empty(TILE, np.int64), np.empty(TILE)
    q, sums = np.zeros(d + d % 2, np.float32), np.empty(TILE, np.float32)
    differences, powers = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    found = 0
    for t in range(len(tiles.low)):
        if box_distance(low, high, tiles.low[t], tiles.high[t], p, power) * ROUNDING > reach:
            continue
        start, stop = tiles.starts[t], tiles.starts[t + 1]
        size = box_distance(tiles.low[t], tiles.low[t], tiles.high[t], tiles.high[t], p, power)
        size = 0.5 * (np.sqrt(size) if p == 2.0 else size)
        for i in range(m):
            if box_distance(Q[i], Q[i], tiles.low[t], tiles.high[t], p, power) * ROUNDING > reach:
                continue
            length = 0.0
            for f in range(d):
                from_middle = Q[i, f] - (0.5 * tiles.low[t, f] + 0.5 * tiles.high[t, f])
                q[f] = from_middle
                length += abs(from_middle)
            screen(tiles.columns[t], q, power, differences, powers, sums)
            bound = most(reach, size, length, d, p, power)
            if found + TILE > len(index):
                room = np.empty(len(index), np.int64)
                which, index = np.concatenate((which, room)), np.concatenate((index, room))
                value = np.concatenate((value, np.empty(len(value))))
            for j in range(stop - start):
                if sums[j] <= bound and tiles.order[start + j] != names[i]:
                    ranking = ranked(Q[i], tiles.rows[start + j], p)
                    if ranking <= reach:
                        which[found], index[found], value[found] = i, tiles.order[start + j], ranking
                        found += 1
    return which[:found], index[:found], value[:found]
