"""Work on one node of a tree that grows: kernels, and the arrays they share.

A node is split in three steps: `divide` partitions its rows and writes down the children, `fill_small` fills the histogram of
the smaller child, `choose` subtracts it from the parent's and finds the best split of each child. `expand` does all three.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.gradient_histogram import TILE, add_histogram, fill_histogram, partition
from lemmata.ensemble.gradient_splits import HIGH, LOW, NO_SPLIT, choose_split


class Codes(NamedTuple):
    """A table of codes: words by row and by group, bytes by column; bins and kinds of the columns."""

    by_row: np.ndarray
    by_group: np.ndarray
    by_column: np.ndarray
    n_bins: np.ndarray
    is_categorical: np.ndarray
    trends: np.ndarray


class Target(NamedTuple):
    """What a tree is grown on: derivatives in fixed point, weights as integers; units and needs as in `scan_column`.

    Elements move from one row of `elements` to the other as a node is split: those of a node at depth k are in row k % 2.
    """

    elements: np.ndarray
    wide: bool
    packed: np.ndarray
    weight_of: np.ndarray
    units: np.ndarray
    needs: np.ndarray


class Room(NamedTuple):
    """What a thread needs to work on a node."""

    words: np.ndarray
    values: np.ndarray
    scores: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    found: np.ndarray
    lefts: np.ndarray


class Pair(NamedTuple):
    """The two children of a node."""

    ends: np.ndarray  # where the left one begins, the right one, and where it ends
    totals: np.ndarray
    row: np.ndarray  # of the elements
    small: np.ndarray  # which is the smaller
    wants: np.ndarray  # which may be split
    bounds: np.ndarray
    tables: np.ndarray
    splits: np.ndarray
    gains: np.ndarray


def new_pair():
    """Make room for two children."""
    whole = np.empty(13, np.int64)
    return Pair(
        whole[:3], whole[3:5], whole[12:], whole[5:6], np.empty(2, bool), np.empty((2, 2)), np.empty((2, 256), np.uint8),
        whole[6:12].reshape(2, 3), np.full(2, NO_SPLIT),
    )  # fmt: skip


def new_room(length):
    """Make room for a thread."""
    d = length // 256
    return Room(
        np.empty(TILE, np.uint64),
        np.empty(TILE, np.int64),
        np.empty((4, 257)),
        np.empty((3, 257), np.int64),
        np.empty(length, np.int64),
        np.empty((d, 3)),
        np.empty(d, np.int64),
    )


@kernel
def divide(codes, target, node, split, table, bounds, pair):
    """Partition the rows of a node, and write down its children.

    Parameters
    ----------
    node : First element, end of elements, depth, packed sums, and the rows from which a child may be split.
    bounds : Bounds of the node's value.
    """
    a, b, depth, total, least_rows = node
    j, left = split[0], split[2]
    middle = partition(codes.by_column[j], table, target.elements[depth & 1], a, b, target.elements[1 - (depth & 1)])
    pair.row[0] = 1 - (depth & 1)
    pair.ends[0], pair.ends[1], pair.ends[2] = a, middle, b
    pair.totals[0], pair.totals[1] = left, total - left
    pair.small[0] = 0 if middle - a <= b - middle else 1
    trend, mean = codes.trends[j], 0.0
    for side in range(2):
        pair.wants[side] = pair.ends[side + 1] - pair.ends[side] >= least_rows
        pair.bounds[side, 0], pair.bounds[side, 1] = bounds[0], bounds[1]
        g = (pair.totals[side] >> HIGH) * target.units[0]
        h = (pair.totals[side] & LOW) * target.units[1] + target.units[2]
        mean += 0.5 * min(max(-g / h, bounds[0]), bounds[1])
    if trend != 0:  # the values of both children lie on either side of their mean
        pair.bounds[0 if trend > 0 else 1, 1] = mean
        pair.bounds[1 if trend > 0 else 0, 0] = mean


@kernel
def fill_small(codes, target, pair, part, parts, hist, room):
    """Fill a histogram with one of some equal parts of the smaller child."""
    a, b = pair.ends[pair.small[0]], pair.ends[pair.small[0] + 1]
    a, b = a + (b - a) * part // parts, a + (b - a) * (part + 1) // parts
    elements = target.elements[pair.row[0]]
    fill_histogram(codes, elements, a, b, target.wide, target.packed, hist, room)


@kernel
def choose(codes, target, pair, hists, columns, room):
    """Make the parent's histogram that of the larger child, and choose the best split of each child that may be split.

    Parameters
    ----------
    hists : Histograms of the smaller child and of the parent.
    columns : Columns that each child may be split by.
    """
    small = pair.small[0]
    if pair.wants[1 - small]:
        add_histogram(hists[1], hists[0], -1)
    for side in range(2):
        pair.gains[side] = NO_SPLIT
        if pair.wants[side]:
            pair.gains[side] = choose_split(
                codes, target, hists[0 if side == small else 1], target.elements[pair.row[0]], pair.ends[side],
                pair.ends[side + 1], pair.totals[side], columns[side], pair.bounds[side, 0], pair.bounds[side, 1], room,
                pair.tables[side], pair.splits[side],
            )  # fmt: skip


@kernel
def expand(codes, target, node, split, table, bounds, pair, hists, columns, room):
    """Do all three: one call, as threads that come back from a kernel wait for each other."""
    divide(codes, target, node, split, table, bounds, pair)
    if pair.wants[0] or pair.wants[1]:
        fill_small(codes, target, pair, 0, 1, hists[0], room)
    choose(codes, target, pair, hists, columns, room)


@kernel
def fill_root(codes, target, part, parts, hist, room):
    """Fill a histogram with one of some equal parts of all rows."""
    n = codes.by_row.shape[0]
    a, b = n * part // parts, n * (part + 1) // parts
    elements = target.elements[0]
    fill_histogram(codes, elements, a, b, target.wide, target.packed, hist, room)


@kernel
def choose_root(codes, target, hist, columns, room, table, split):
    """Choose the best split of all rows; return what it gains, and the sums of all rows."""
    total = np.int64(0)
    for k in range(256):  # every row is in one bin of any column
        total += hist[k]
    n = codes.by_row.shape[0]
    gain = choose_split(codes, target, hist, target.elements[0], 0, n, total, columns, -np.inf, np.inf, room, table, split)
    return gain, total
