"""The k nearest rows of a table, exactly: of each of its rows, or of other rows.

Rows are cut into tiles of close ones by halving along the widest column. The search goes tile against tile: the tiles of the
table are taken by the distance of their bounding boxes from that of the rows that ask, until the next box is farther than the
k-th neighbor of all of them [1]. Within a tile the coordinates lie column by column, so that all its distances come from one
vectorized loop. In many columns boxes rule out nobody; there products of matrices tell, up to a rounding that is known, who
may be near, and only those distances are computed. Distances are sums of squared differences, and of equal ones the lower row
number is nearer: the answer depends on no tile, block or thread.

[1] Friedman, Bentley & Finkel, ACM Trans. Math. Softw. 3 (1977).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lemmata.core import config, threads
from lemmata.core.kernel import kernel

TILE = 256  # rows: fewer make more boxes to look at, more make boxes that rule out less
WIDE = 20  # columns from which on products of matrices are faster
SLICE = 4096  # rows of the table in one product
ROUNDING = 1.0 - 1e-12  # bounds are lowered by this share, so that a last bit rules nobody out


class Tiles(NamedTuple):
    """Rows of a table in tiles of close ones."""

    order: np.ndarray  # (n,), row numbers, tile after tile
    starts: np.ndarray  # (tiles + 1,), where each tile begins in the order
    columns: np.ndarray  # (tiles, d, TILE), coordinates; infinite where a tile has fewer rows
    low: np.ndarray  # (tiles, d), the bounding boxes
    high: np.ndarray


def tiles_of(X):
    """Cut rows into tiles by halving along the widest column until they fit.

    Examples
    --------
    >>> tiles_of(np.arange(400.0)[::-1, None]).starts
    array([  0, 200, 400])
    """
    order, starts, stack = np.arange(len(X)), [0], [(0, len(X))]
    while stack:
        start, stop = stack.pop()
        if stop - start <= TILE:
            starts.append(stop)
            continue
        rows = X[order[start:stop]]
        column, half = int(np.argmax(rows.max(axis=0) - rows.min(axis=0))), (stop - start) // 2
        order[start:stop] = order[start:stop][np.argpartition(rows[:, column], half)]
        stack += [(start + half, stop), (start, start + half)]  # the left half comes off first: tiles stay in order
    columns = np.full((len(starts) - 1, X.shape[1], TILE), np.inf)
    low, high = np.empty((2, len(starts) - 1, X.shape[1]))
    for i, (start, stop) in enumerate(pairwise(starts)):
        rows = X[order[start:stop]]
        columns[i, :, : stop - start] = rows.T
        low[i], high[i] = rows.min(axis=0), rows.max(axis=0)
    return Tiles(order, np.array(starts), columns, low, high)


@kernel
def nearest_of_tile(Q, names, low, high, tiles, index, distance):
    """Find the nearest rows of rows Q, whose box is (low, high); a row that is called as one of them is left out.

    Parameters
    ----------
    names : (m,), numbers of the rows in the table, or −1 for rows that are not in it.
    index, distance : (m, k), the nearest so far, nearest first; none at first, which is infinitely far.
    """
    m, d = Q.shape
    k = index.shape[1]
    gaps = np.zeros(len(tiles.low))
    for t in range(len(gaps)):
        for f in range(d):
            gap = max(tiles.low[t, f] - high[f], low[f] - tiles.high[t, f], 0.0)
            gaps[t] += gap * gap
    squares = np.empty(TILE)
    for t in np.argsort(gaps, kind="mergesort"):
        if gaps[t] * ROUNDING > distance[:, k - 1].max():
            break
        start, count = tiles.starts[t], tiles.starts[t + 1] - tiles.starts[t]
        for i in range(m):
            bound = 0.0
            for f in range(d):
                gap = max(tiles.low[t, f] - Q[i, f], Q[i, f] - tiles.high[t, f], 0.0)
                bound += gap * gap
            if bound * ROUNDING > distance[i, k - 1]:
                continue
            squares[:] = 0.0
            for f in range(d):
                x = Q[i, f]
                for j in range(TILE):
                    squares[j] += (tiles.columns[t, f, j] - x) * (tiles.columns[t, f, j] - x)
            near = 0
            for j in range(TILE):
                near += squares[j] <= distance[i, k - 1]
            if near == 0:
                continue
            for j in range(count):
                if squares[j] <= distance[i, k - 1] and tiles.order[start + j] != names[i]:
                    _insert(index[i], distance[i], tiles.order[start + j], squares[j])


@kernel
def nearest_of_some(Q, names, X, numbers, products, norms, slack, index, distance):
    """Take in rows X with these numbers that may be among the nearest of rows Q, going by their products with them.

    Parameters
    ----------
    products : (m, len(X)), q·x, from any origin.
    norms : (len(X),), ‖x‖² from there.
    slack : (m,), what ‖x‖² − 2 q·x lacks of the squared distance at least, whatever rounding does.
    """
    k = index.shape[1]
    for i in range(len(Q)):
        bound = distance[i, k - 1] - slack[i]
        for j in range(len(X)):
            if norms[j] - 2.0 * products[i, j] <= bound and numbers[j] != names[i]:
                square = 0.0
                for f in range(Q.shape[1]):
                    square += (Q[i, f] - X[j, f]) * (Q[i, f] - X[j, f])
                _insert(index[i], distance[i], numbers[j], square)
                bound = distance[i, k - 1] - slack[i]


@kernel
def _insert(index, distance, row, square):
    """Put a row in its place among the nearest so far, if it has one."""
    place = len(index)
    while place > 0 and (square < distance[place - 1] or (square == distance[place - 1] and row < index[place - 1])):
        place -= 1
        if place + 1 < len(index):
            index[place + 1], distance[place + 1] = index[place], distance[place]
    if place < len(index):
        index[place], distance[place] = row, square


def nearest(tiles, k, queries=None):
    """Find the k nearest rows of each row of the table (itself left out), or of each query.

    Parameters
    ----------
    tiles : The table, see `tiles_of`; it has at least k rows, not counting the one that asks.
    queries : (m, d), other rows.

    Returns
    -------
    index, distance : (n, k), row numbers and squared distances, nearest first.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [1.0]])
    >>> nearest(tiles_of(X), 2)[0].tolist()
    [[1, 3], [3, 0], [1, 3], [1, 0]]
    >>> nearest(tiles_of(X), 1, np.array([[2.5]]))
    (array([[2]]), array([[0.25]]))
    """
    asking = tiles if queries is None else tiles_of(queries)
    d, starts = tiles.low.shape[1], asking.starts
    index = np.full((len(asking.order), k), -1)
    distance = np.full((len(asking.order), k), np.inf)
    if d >= WIDE:
        X = _rows(tiles)
        center = X.mean(axis=0)  # products of shorter rows have smaller roundings
        Z = X - center
        norms, size = np.einsum("ij,ij->i", Z, Z), max(np.abs(tiles.low).max(), np.abs(tiles.high).max())

    def work(t):
        rows = asking.order[starts[t] : starts[t + 1]]
        Q = np.ascontiguousarray(asking.columns[t, :, : len(rows)].T)
        names = rows if queries is None else np.full(len(rows), -1)
        found, squares = index[rows], distance[rows]
        if d < WIDE:
            nearest_of_tile(Q, names, asking.low[t], asking.high[t], tiles, found, squares)
        else:
            C = Q - center
            lengths = np.einsum("ij,ij->i", C, C)
            reach = np.sqrt(lengths) + np.sqrt(norms.max())  # no distance is larger; 8: sums of d roundings each, and room
            slack = lengths - 8 * d * np.finfo(float).eps * reach * (reach + size + np.abs(Q).max())
            for first in np.roll(np.arange(0, len(X), SLICE), -(starts[t] // SLICE)):  # own tile first: then bounds are tight
                part = slice(first, first + SLICE)
                nearest_of_some(Q, names, X[part], tiles.order[part], C @ Z[part].T, norms[part], slack, found, squares)
        index[rows], distance[rows] = found, squares

    threads.run(work, range(len(asking.low)), min(config.n_threads(), len(asking.low)))
    return index, distance


def _rows(tiles):
    """Give the rows of a table in the order of its tiles."""
    counts = np.diff(tiles.starts)
    return np.concatenate([columns[:, :n].T for columns, n in zip(tiles.columns, counts, strict=True)])
