"""Growing one tree of gradient boosting, best split first, on all threads.

Every leaf that may be split knows its best split and what it gains; the leaf with the largest gain is split next, until there
are enough leaves. Splitting a leaf means to partition its rows, to fill the histogram of the smaller child, to subtract it from
the parent's, which becomes that of the larger one, and to look for the best split of each child.

The order of splits decides which leaves are split at all, and nothing else: so threads may work ahead. While one splits the
best leaf, another splits the next best, which will have its turn unless the leaves run out before; the turns are then
taken in the order of gains, and the tree is the same for any number of threads. Nobody works ahead on a leaf that gains much
less than what was worth a split in the tree before. Of a large leaf, threads take equal parts of the rows.
"""

from bisect import insort
from itertools import count

import numpy as np

from lemmata.ensemble.gradient_histogram import add_histogram
from lemmata.ensemble.gradient_nodes import (
    Codes,
    Target,
    choose,
    choose_root,
    divide,
    expand,
    fill_root,
    fill_small,
    new_pair,
    new_room,
)
from lemmata.ensemble.gradient_splits import NO_SPLIT
from lemmata.tree.draw import mix, shuffle

LARGE = 30_000  # rows from which a leaf is shared by threads
WORTH = 1.0  # of the smallest gain of the tree before: work ahead for more only


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
        by_group, by_column = np.empty(by_row.shape[::-1], np.uint64), np.empty((self.d, self.n), np.uint8)

        def turn(start):
            rows = slice(start, start + 65_536)
            by_group[:, rows], by_column[:, rows] = by_row[rows].T, codes[rows, : self.d].T

        crew.each(turn, range(0, self.n, 65_536))
        kinds = np.zeros(self.d, bool) if bins.is_categorical is None else np.asarray(bins.is_categorical)
        trends = np.asarray(trends, np.int64)
        self.codes = Codes(by_row, by_group, by_column, bins.n_bins.astype(np.int64), kinds, trends)
        self.elements, self.packed = np.empty((2, self.n), np.int64), np.empty(1, np.int64)
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
        return _popped(self.rooms) or new_room(self.length)

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
            root.hist = grower.histogram()
            self._share(root, self._part_of_root)

    def _share(self, leaf, part):
        """Hand out the rows of a leaf in equal parts; each fills a histogram of its own."""
        leaf.parts = self.grower.crew.n_threads if leaf.b - leaf.a >= LARGE else 1
        leaf.others = [self.grower.histogram() for _ in range(leaf.parts - 1)]
        self.ready += [(part, leaf, k, leaf.parts) for k in range(leaf.parts)]

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

    def _part_of_root(self, root, k, parts):
        grower, room = self.grower, self.grower.room()
        fill_root(grower.codes, grower.target, k, parts, root.hist if k == 0 else root.others[k - 1], room)
        grower.rooms.append(room)
        return root, "part"

    def _choose_root(self, root):
        grower, room = self.grower, self.grower.room()
        self._merge(root, root.hist)
        root.table, root.split = np.empty(256, np.uint8), np.empty(3, np.int64)
        columns = grower.columns(root.key)
        root.gain, root.total = choose_root(grower.codes, grower.target, root.hist, columns, room, root.table, root.split)
        grower.rooms.append(room)
        if root.gain == NO_SPLIT:
            grower.release(root)
        return root, "done"

    def _merge(self, leaf, hist):
        """Add up the histograms of the parts."""
        for other in leaf.others:
            add_histogram(hist, other, 1)
            self.grower.histograms.append(other)

    def _divide(self, leaf, deeper):
        """Split a leaf; a large one only as far as its rows, the rest is shared."""
        grower, limits = self.grower, self.grower.limits
        leaf.pair = pair = new_pair()
        keys = [np.uint64(mix(leaf.key, np.uint64(side))) if limits.max_features < 1 else leaf.key for side in (1, 2)]
        leaf.columns = tuple(grower.columns(key) for key in keys)
        deeper = deeper and leaf.depth + 1 < limits.max_depth
        least_rows = int(min(limits.least_rows, grower.n + 1)) if deeper else grower.n + 1
        node = leaf.a, leaf.b, leaf.depth, leaf.total, least_rows
        split = grower.codes, grower.target, node, leaf.split, leaf.table, leaf.bounds, pair
        leaf.hists, leaf.hist = (grower.histogram(), leaf.hist), None
        shared = leaf.b - leaf.a >= LARGE and grower.crew.n_threads > 1
        if shared:
            divide(*split)
        else:
            room = grower.room()
            expand(*split, leaf.hists, leaf.columns, room)
            grower.rooms.append(room)
        leaf.children = [
            Leaf(int(pair.ends[k]), int(pair.ends[k + 1]), leaf.depth + 1, int(pair.totals[k]), pair.bounds[k], keys[k])
            for k in (0, 1)
        ]
        if shared and pair.wants.any():
            return leaf, "divided"
        return self._opened(leaf)

    def _part_of_children(self, leaf, k, parts):
        grower, room = self.grower, self.grower.room()
        hist = leaf.hists[0] if k == 0 else leaf.others[k - 1]
        fill_small(grower.codes, grower.target, leaf.pair, k, parts, hist, room)
        grower.rooms.append(room)
        return leaf, "part"

    def _choose(self, leaf):
        grower, room = self.grower, self.grower.room()
        self._merge(leaf, leaf.hists[0])
        choose(grower.codes, grower.target, leaf.pair, leaf.hists, leaf.columns, room)
        grower.rooms.append(room)
        return self._opened(leaf)

    def _opened(self, leaf):
        """Give the children what was found for them."""
        pair, small = leaf.pair, int(leaf.pair.small[0])
        for k, child in enumerate(leaf.children):
            child.hist, child.table = leaf.hists[0 if k == small else 1], pair.tables[k]
            child.split, child.gain = pair.splits[k], float(pair.gains[k])
            if child.gain == NO_SPLIT:
                self.grower.release(child)
        leaf.hists = leaf.pair = None
        return leaf, "done"
