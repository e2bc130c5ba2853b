"""Growing one tree of gradient boosting, best split first, on all threads.

Every leaf that may be split knows its best split and what it gains; the leaf with the largest gain is split next, until there
are enough leaves. Splitting a leaf means to partition its rows, to fill the histogram of the smaller child, to subtract it from
the parent's, which becomes that of the larger one, and to look for the best split of each child.

The order of splits decides which leaves are split at all, and nothing else: so threads may work ahead. While one splits the
best leaf, another splits the next best, which will have its turn unless the leaves run out before; the turns are then
taken in the order of gains, and the tree is the same for any number of threads. Nobody works ahead on a leaf that gains much
less than what was worth a split in the tree before. Large leaves are shared by groups of columns.
"""

from bisect import insort
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.gradient_histogram import TILE, fill_histogram, partition, subtract
from lemmata.ensemble.gradient_splits import HIGH, LOW, NO_SPLIT, choose_split, scan_node
from lemmata.tree.draw import mix, shuffle

LARGE = 30_000  # rows from which a leaf is shared by threads
WORTH = 1.0  # of the smallest gain of the tree before: work ahead for more only


class Codes(NamedTuple):
    """A table of codes: words by row and by group, bytes of the latter; bins and kinds of the columns."""

    by_row: np.ndarray
    by_group: np.ndarray
    bytes: np.ndarray
    n_bins: np.ndarray
    is_categorical: np.ndarray
    trends: np.ndarray


class Target(NamedTuple):
    """What a tree is grown on: derivatives in fixed point, weights as integers; units and needs as in `scan_column`."""

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
    elements: np.ndarray
    scores: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    found: np.ndarray
    lefts: np.ndarray


class Pair(NamedTuple):
    """The two children of a node."""

    ends: np.ndarray  # where the left one begins, the right one, and where it ends
    totals: np.ndarray
    small: np.ndarray  # which is the smaller
    wants: np.ndarray  # which may be split
    bounds: np.ndarray
    tables: np.ndarray
    splits: np.ndarray
    gains: np.ndarray


def new_pair():
    """Make room for two children."""
    whole = np.empty(12, np.int64)
    return Pair(
        whole[:3], whole[3:5], whole[5:6], np.empty(2, bool), np.empty((2, 2)), np.empty((2, 256), np.uint8),
        whole[6:].reshape(2, 3), np.full(2, NO_SPLIT),
    )  # fmt: skip


def new_room(n, groups, length):
    """Make room for a thread."""
    d = length // 256
    return Room(
        np.empty((groups, TILE), np.uint64),
        np.empty(TILE, np.int64),
        np.empty(n + 1, np.int64),
        np.empty((4, 257)),
        np.empty((3, 257), np.int64),
        np.empty(length, np.int64),
        np.empty((2, d, 3)),
        np.empty((2, d), np.int64),
    )


@kernel
def divide(codes, target, node, split, table, bounds, room, pair):
    """Partition the rows of a node, and write down its children.

    Parameters
    ----------
    node : First row, end of rows, packed sums, and the rows from which a child may be split.
    bounds : Bounds of the node's value.
    """
    a, b, total, least_rows = node
    j, left = split[0], split[2]
    middle = partition(codes.bytes[j // 8], j % 8, table, target.elements, a, b, room.elements)
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
def look(codes, target, pair, hists, columns, g0, g1, room):
    """Fill the histogram of the smaller child, make the parent's that of the larger, and scan those that may be split.

    Parameters
    ----------
    hists : Histogram for the smaller child, and that of the parent, which becomes that of the larger.
    columns : Columns that each child may be split by.
    """
    small = pair.small[0]
    a, b = pair.ends[small], pair.ends[small + 1]
    fill_histogram(codes, target, a, b, target.wide, target.packed, g0, g1, hists[0], room)
    if pair.wants[1 - small]:
        subtract(hists[1], hists[0], g0, g1)
    for side in range(2):
        if pair.wants[side]:
            low, high = pair.bounds[side, 0], pair.bounds[side, 1]
            hist = hists[0 if side == small else 1]
            scan_node(codes, target, hist, pair.totals[side], columns[side], g0, g1, low, high, False, room, side)


@kernel
def choose(codes, target, pair, hists, columns, room):
    """Choose the best split of each child that may be split."""
    for side in range(2):
        pair.gains[side] = NO_SPLIT
        if pair.wants[side]:
            pair.gains[side] = choose_split(
                codes, target, hists[0 if side == pair.small[0] else 1], pair.ends[side], pair.ends[side + 1],
                pair.totals[side], columns[side], pair.bounds[side, 0], pair.bounds[side, 1], room, side,
                pair.tables[side], pair.splits[side],
            )  # fmt: skip


@kernel
def expand(codes, target, node, split, table, bounds, room, pair, hists, columns):
    """Do all three: one call, as threads that come back from a kernel wait for each other."""
    divide(codes, target, node, split, table, bounds, room, pair)
    if pair.wants[0] or pair.wants[1]:
        look(codes, target, pair, hists, columns, 0, codes.by_row.shape[1], room)
    choose(codes, target, pair, hists, columns, room)


@kernel
def look_at_root(codes, target, hist, columns, g0, g1, room):
    """Fill the histogram of all rows and scan it; return the sums of all rows."""
    fill_histogram(codes, target, 0, len(target.elements), target.wide, target.packed, g0, g1, hist, room)
    total = np.int64(0)
    for k in range(g0 * 2048, g0 * 2048 + 256):  # every row is in one bin of any column
        total += hist[k]
    scan_node(codes, target, hist, total, columns, g0, g1, -np.inf, np.inf, False, room, 0)
    return total


class Leaf:
    """A node while the tree grows: its rows, its sums, its histogram, and the best split of it."""

    def __init__(self, a, b, depth, total, bounds, key):
        self.a, self.b, self.depth, self.total, self.bounds, self.key = a, b, depth, total, bounds, key
        self.hist, self.gain, self.claimed, self.children, self.done = None, NO_SPLIT, False, None, False

    def __lt__(self, other):
        return self.gain > other.gain or (self.gain == other.gain and self.order < other.order)


class Grower:
    """Grows trees on one table of codes.

    Parameters
    ----------
    codes : (rows, columns padded to a multiple of eight), uint8.
    bins : The `Bins` they are codes of.
    trends : 1, −1 or 0 for each column: must it raise the value, lower it, or may it do both.
    limits : What the trees may be: `gradient_stages.Limits`.
    """

    def __init__(self, crew, codes, bins, trends, limits):
        self.crew, self.limits = crew, limits
        self.n, self.d = len(codes), len(bins.edges)
        by_row = codes.view(np.uint64)
        self.groups = by_row.shape[1]
        by_group = np.empty((self.groups, self.n), np.uint64)

        def turn(start):
            by_group[:, start : start + 65_536] = by_row[start : start + 65_536].T

        crew.each(turn, range(0, self.n, 65_536))
        kinds = np.zeros(self.d, bool) if bins.is_categorical is None else np.asarray(bins.is_categorical)
        trends = np.asarray(trends, np.int64)
        self.codes = Codes(by_row, by_group, by_group.view(np.uint8), bins.n_bins.astype(np.int64), kinds, trends)
        self.elements, self.packed = np.empty(self.n, np.int64), np.empty(1, np.int64)
        self.length = 256 * (-(-self.d // 4) * 4)
        self.everything = np.arange(self.d)
        self.rooms, self.histograms = [], []
        self.worth = 0.0

    def grow(self, units, needs, wide, weight_of, seed):
        """Grow a tree on the elements as they are; return its root and the nodes that were split, in order."""
        self.target = Target(self.elements, wide, self.packed, weight_of, units, needs)
        growth = Growth(self, seed)
        self.crew.run(growth)
        self.worth = WORTH * min((node.gain for node in growth.splits), default=0.0) if growth.left == 0 else 0.0
        for leaf in growth.frontier:
            for node in (leaf, *(leaf.children or ())):
                self.release(node)
        return growth.root, growth.splits

    def room(self):
        """Lend the working space of a task."""
        return _popped(self.rooms) or new_room(self.n, self.groups, self.length)

    def histogram(self):
        """Lend a histogram."""
        hist = _popped(self.histograms)
        return np.empty(self.length, np.int64) if hist is None else hist

    def release(self, leaf):
        """Take back the histogram of a leaf."""
        if leaf.hist is not None:
            self.histograms.append(leaf.hist)
            leaf.hist = None

    def columns(self, key):
        """Return the columns that a node may be split by."""
        share = self.limits.max_features
        if share >= 1.0:
            return self.everything
        order = np.arange(self.d, dtype=np.int32)
        shuffle(key, order)
        return np.sort(order[: max(1, int(share * self.d))]).astype(np.int64)


def _popped(things):
    """Take one of some things, or None: another thread may have taken the last one just now."""
    try:
        return things.pop()
    except IndexError:
        return None


class Growth:
    """The job of growing one tree: see the head of this file."""

    def __init__(self, grower, seed):
        self.grower = grower
        self.root = root = Leaf(0, grower.n, 0, 0, np.array([-np.inf, np.inf]), np.uint64(seed))
        self.frontier, self.splits, self.numbers, self.ready = [], [], count(), []
        self.left = grower.limits.max_leaf_nodes - 1
        self.finished = grower.n < grower.limits.least_rows
        if not self.finished:
            root.hist, root.room = grower.histogram(), grower.room()
            root.columns = grower.columns(root.key)
            self._share(root, self._part_of_root)

    def _share(self, leaf, part):
        """Hand out the groups of columns of a leaf as tasks."""
        cuts = np.linspace(0, self.grower.groups, self.grower.crew.n_threads + 1).round().astype(int)
        cuts = np.unique(cuts).tolist()
        leaf.parts = len(cuts) - 1
        self.ready += [(part, leaf, *pair) for pair in pairwise(cuts)]

    def take(self):
        """Hand out a part of a leaf, or the best leaf that nobody has."""
        if self.ready:
            return self.ready.pop()
        for rank, leaf in enumerate(self.frontier[: self.left]):
            if not leaf.claimed and (rank == 0 or leaf.gain >= self.grower.worth):
                leaf.claimed = True
                return (self._divide, leaf, self.left - rank > 1)
        return None

    def give(self, result):
        """Take note of what was done, and take the turns that are due."""
        leaf, step = result
        if step == "divided":
            self._share(leaf, self._part_of_children)
            return
        if step == "part":
            leaf.parts -= 1
            if leaf.parts == 0:
                self.ready.append((self._choose_root if leaf.children is None else self._choose, leaf))
            return
        if leaf.children is None:  # the root has its split
            self._open(leaf)
        else:
            leaf.done = True
        while self.left and self.frontier and self.frontier[0].done:
            leaf = self.frontier.pop(0)
            self.splits.append(leaf)
            self.left -= 1
            for child in leaf.children:
                self._open(child)
        self.finished = self.left == 0 or not self.frontier

    def _open(self, leaf):
        """Let a leaf wait for its turn."""
        if leaf.gain > NO_SPLIT:
            leaf.order = next(self.numbers)
            insort(self.frontier, leaf)

    def _part_of_root(self, root, g0, g1):
        grower = self.grower
        room = grower.room()
        shared = room._replace(found=root.room.found, lefts=root.room.lefts)
        root.total = int(look_at_root(grower.codes, grower.target, root.hist, root.columns, g0, g1, shared))
        grower.rooms.append(room)
        return root, "part"

    def _choose_root(self, root):
        grower = self.grower
        root.table, root.split = np.empty(256, np.uint8), np.empty(3, np.int64)
        root.gain = choose_split(
            grower.codes, grower.target, root.hist, root.a, root.b, root.total, root.columns, -np.inf, np.inf,
            root.room, 0, root.table, root.split,
        )  # fmt: skip
        grower.rooms.append(root.room)
        if root.gain == NO_SPLIT:
            grower.release(root)
        return root, "done"

    def _divide(self, leaf, deeper):
        """Split a leaf; a large one only as far as its rows, the rest is shared."""
        grower, limits = self.grower, self.grower.limits
        leaf.room, leaf.pair = grower.room(), new_pair()
        keys = [np.uint64(mix(leaf.key, np.uint64(side))) if limits.max_features < 1 else leaf.key for side in (1, 2)]
        leaf.columns = tuple(grower.columns(key) for key in keys)
        deeper = deeper and leaf.depth + 1 < limits.max_depth
        node = leaf.a, leaf.b, leaf.total, int(min(limits.least_rows, grower.n + 1)) if deeper else grower.n + 1
        split = grower.codes, grower.target, node, leaf.split, leaf.table, leaf.bounds, leaf.room, leaf.pair
        leaf.hists, leaf.hist = (grower.histogram(), leaf.hist), None
        shared = leaf.b - leaf.a >= LARGE and grower.crew.n_threads > 1
        if shared:
            divide(*split)
        else:
            expand(*split, leaf.hists, leaf.columns)
        leaf.children = [
            Leaf(int(leaf.pair.ends[k]), int(leaf.pair.ends[k + 1]), leaf.depth + 1, int(leaf.pair.totals[k]), bounds, key)
            for k, (bounds, key) in enumerate(zip(leaf.pair.bounds, keys, strict=True))
        ]
        if shared and leaf.pair.wants.any():
            return leaf, "divided"
        return self._opened(leaf)

    def _part_of_children(self, leaf, g0, g1):
        grower, room = self.grower, self.grower.room()
        shared = room._replace(found=leaf.room.found, lefts=leaf.room.lefts)
        look(grower.codes, grower.target, leaf.pair, leaf.hists, leaf.columns, g0, g1, shared)
        grower.rooms.append(room)
        return leaf, "part"

    def _choose(self, leaf):
        choose(self.grower.codes, self.grower.target, leaf.pair, leaf.hists, leaf.columns, leaf.room)
        return self._opened(leaf)

    def _opened(self, leaf):
        """Give the children what was found for them."""
        pair, small = leaf.pair, int(leaf.pair.small[0])
        for k, child in enumerate(leaf.children):
            child.hist, child.table = leaf.hists[0 if k == small else 1], pair.tables[k]
            child.split, child.gain = pair.splits[k], float(pair.gains[k])
            if child.gain == NO_SPLIT:
                self.grower.release(child)
        self.grower.rooms.append(leaf.room)
        leaf.hists = leaf.room = leaf.pair = None
        return leaf, "done"
