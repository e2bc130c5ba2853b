"""The search for tables of many columns under the Euclidean distance: products of matrices tell who may be near.

In many columns boxes rule out few rows. But ‖x − q‖² = ‖x‖² − 2 q·x + ‖q‖², and all products of some rows with some others are
one product of matrices. It is made in single precision, with the middle of a slice of close rows for the origin, so that what
it rounds is small next to the distances: at most (d + 8) u (‖x‖ + ‖q‖)² with u = 2⁻²⁴, in whatever order sums are taken [1].
That rules out rows for certain; those left are compared in double precision.

[1] Higham, Accuracy and Stability of Numerical Algorithms (2002), section 3.1.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.neighbors.metric import box_distance, push, ranked
from lemmata.neighbors.tiles import ROUNDING, TINIEST, UNIT, middle, tiles_of

SLICE = 1024  # rows: with a tile of rows that ask they make a MiB of products, which a cache holds
STRIDE = 64  # products looked at together


class Slices(NamedTuple):
    """Rows of a table in slices of close ones."""

    order: np.ndarray  # (n,), row numbers, slice after slice
    starts: np.ndarray  # (slices + 1,), where each slice begins in the order
    rows: np.ndarray  # (n, d), in this order
    low: np.ndarray  # (slices, d), the bounding boxes
    high: np.ndarray
    center: np.ndarray  # (slices, d), the middles of the boxes
    moved: np.ndarray  # (n, d), the rows seen from there, in single precision
    norms: np.ndarray  # (n,), their squared lengths
    size: np.ndarray  # (slices,), the largest length


def slices_of(X):
    """Cut rows into slices of close ones.

    Examples
    --------
    >>> slices_of(np.arange(2000.0)[:, None]).starts
    array([   0, 1000, 2000])
    """
    tiles = tiles_of(X, size=SLICE, columns=False)
    center = middle(tiles.low, tiles.high)
    moved = tiles.rows - np.repeat(center, np.diff(tiles.starts), axis=0)
    norms = np.einsum("ij,ij->i", moved, moved)
    size = np.sqrt(np.maximum.reduceat(norms, tiles.starts[:-1]))
    return Slices(*tiles[:5], center, moved.astype(np.float32), norms.astype(np.float32), size)


def nearest_by_products(Q, low, high, names, slices, index, value):
    """Find the nearest rows of rows Q; the arguments are those of `nearest_of_tile`."""
    gaps, order = slice_order(low, high, slices)
    for s in order:
        if gaps[s] * ROUNDING > value[:, 0].max():
            continue
        part = slice(slices.starts[s], slices.starts[s + 1])
        C = Q - slices.center[s]
        lengths = np.einsum("ij,ij->i", C, C)
        reach = np.sqrt(lengths) + slices.size[s]
        slack = lengths - 4.0 * (Q.shape[1] + 8) * UNIT * reach * reach - TINIEST  # 4: twice what is needed for each side
        products = C.astype(np.float32) @ slices.moved[part].T
        take_in(Q, names, slices.rows[part], slices.order[part], products, slices.norms[part], slack, index, value)


@kernel
def slice_order(low, high, slices):
    """Give the distances of the boxes of slices from a box, and their order by the distance of the middles."""
    gaps, far = np.empty(len(slices.low)), np.zeros(len(slices.low))
    for s in range(len(gaps)):
        gaps[s] = box_distance(low, high, slices.low[s], slices.high[s], 2.0, 2.0)
        for f in range(len(low)):
            step = slices.low[s, f] + slices.high[s, f] - low[f] - high[f]
            far[s] += step * step
    return gaps, np.argsort(far, kind="mergesort")


@kernel
def take_in(Q, names, rows, numbers, products, norms, slack, index, value):
    """Take in rows with these numbers that may be among the nearest of rows Q, going by their products with them.

    Parameters
    ----------
    products : (m, len(rows)), q·x, from any origin.
    norms : (len(rows),), ‖x‖² from there.
    slack : (m,), what ‖x‖² − 2 q·x lacks of the squared distance at least, whatever rounding does.
    """
    # Counted in the type that is compared: that vectorizes.
    one, none, twice = np.float32(1.0), np.float32(0.0), np.float32(2.0)
    for i in range(len(Q)):
        bound = np.float32((value[i, 0] - slack[i]) + abs(value[i, 0] - slack[i]) * 2.0 * UNIT)
        for start in range(0, len(rows), STRIDE):
            squares, crossed = norms[start : start + STRIDE], products[i, start : start + STRIDE]
            near = none
            for j in range(len(squares)):
                near += one if squares[j] - twice * crossed[j] <= bound else none
            if near == none:
                continue
            for j in range(len(squares)):
                if squares[j] - twice * crossed[j] <= bound and numbers[start + j] != names[i]:
                    push(index[i], value[i], numbers[start + j], ranked(Q[i], rows[start + j], 2.0))
                    bound = np.float32((value[i, 0] - slack[i]) + abs(value[i, 0] - slack[i]) * 2.0 * UNIT)
