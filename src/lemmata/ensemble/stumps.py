"""Stumps: the best single question about the rows, asked again and again under changing weights.

A stump sends a row with x ≤ t in one column to the left and gives each side its heaviest class. Of all columns and thresholds
it takes the one with the largest decrease of the Gini impurity. Write a_k for the weight of class k on the left, A for all of
it, r_k for the share of the class in the whole table, of weight 1, and e_k = a_k − A r_k for the excess over what the share
would give: the decrease is

    gain = Σ_k e_k² / (A (1 − A)).

Boosting asks the same question under weights that change, while the order of the values never does. So each column is cut once
into at most 255 bins of neighboring values; a round adds up weights by bin and class, which settles all thresholds between two
bins. Inside a bin every a_k lies between its values at the two ends, hence so does A, and A (1 − A) is least at one of them:
that bounds e_k and the gain. Only in bins whose bound beats the best gain so far are the values looked at, in order (into which
a bin is put in the round that first needs it). What comes out is exactly the best stump.

Weights are added as whole numbers, in units of 2⁻⁶¹ of their sum: no order of adding, no number of threads and no repetition
of a row in place of a weight changes a bit, and splits that are equally good are exactly so. Rows lie in the order of
their classes, bins of eight columns in a word, so that eight sums cost one row of memory and fit the fastest cache.
A row without a value (NaN) goes to whichever side gains more.

Reference: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.config import n_threads
from lemmata.core.threads import run
from lemmata.ensemble.stump_kernels import (
    BINS,
    MISSING,
    NO_ORDER,
    ONE_VALUE,
    TIE,
    WIDE,
    add_up,
    add_votes,
    codes_of,
    group,
    neighbors_of,
    pack,
    rate_bins,
    search,
    side_classes,
    split_sums,
    take_columns,
)
from lemmata.tree.nodes import LEAF, NOTHING, Tree

SAMPLE = 8192  # rows from which the bins of a column are cut
THREADED = 1 << 22  # entries of the table below which starting a thread costs more than it saves


def settled(shares):
    """Make classes whose shares are the largest but for rounding exactly equal, so that the first wins."""
    top = shares.max(axis=-1, keepdims=True)
    return np.where(shares > top * (1 - TIE), top, shares)


class Stump(NamedTuple):
    """One stump: the question, and the class shares of all rows, of those that go left, and of those that go right."""

    feature: int  # -2: no split gains anything, and all rows go left
    threshold: float
    missing_left: bool
    gain: float
    value: np.ndarray  # (3, K)
    weight: np.ndarray  # (3,), shares of the rows' weight
    rows: np.ndarray  # (3,), number of rows

    @property
    def classes(self):
        """Class of either side; the first among equals."""
        return int(self.value[1].argmax()), int(self.value[2].argmax())


class Stumps(NamedTuple):
    """Many stumps: the fields of each, stacked; `one(t)` is one of them."""

    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    gain: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, stumps):
        """Stack stumps, in order."""
        return cls(*(np.array(field) for field in zip(*stumps, strict=True)))

    def one(self, t):
        """Give back one stump."""
        return Stump(int(self.feature[t]), *(field[t] for field in self[1:]))

    @property
    def sides(self):
        """(stumps, 2), class of either side."""
        return self.value[:, 1:].argmax(axis=2)


def bin_edges(x):
    """Cut a column into at most 255 bins: the upper ends of all but the last, and whether every bin holds a single value.

    A value that would fill more than a bin has one of its own, so that the other bins stay small.

    Examples
    --------
    >>> bin_edges(np.array([3.0, 1.0, np.nan, 1.0, 2.0]))
    (array([1., 2.]), True)
    """
    step = -(-len(x) // SAMPLE)
    sample = np.sort(x[::step])
    sample = sample[: np.searchsorted(sample, np.nan)]  # NaN comes last
    different = sample[np.flatnonzero(np.diff(sample, prepend=-np.inf))]
    if len(different) < BINS:
        return different[:-1], step == 1
    marks = sample[np.arange(1, BINS - 1) * len(sample) // (BINS - 1)]
    often = marks[:-1][np.diff(marks) == 0]
    edges = np.unique(np.concatenate([marks, np.nextafter(often, -np.inf)]))
    return edges, False


def vote_block(X, weight, stumps, says):
    """Give the votes on a block of rows, (rows, K)."""
    votes = np.zeros((X.shape[0], stumps.value.shape[2]))
    question = stumps.feature >= 0  # of a stump without one the left side holds all rows
    column, threshold = np.where(question, stumps.feature, 0), np.where(question, stumps.threshold, np.inf)
    add_votes(X, column, threshold, stumps.missing_left | ~question, stumps.sides, says, votes)
    return votes


def stump_tree(stump):
    """Write a stump as the tree that it is."""
    nodes = 1 if stump.feature < 0 else 3
    question = np.arange(nodes) == 0 if nodes == 3 else np.zeros(1, dtype=bool)
    return Tree(
        feature=np.where(question, stump.feature, NOTHING).astype(np.int32),
        threshold=np.where(question, stump.threshold, float(NOTHING)),
        children_left=np.where(question, 1, LEAF).astype(np.int32),
        missing_go_to_left=question & bool(stump.missing_left),
        category_set=np.full(nodes, -1, np.int32),
        left_categories=np.zeros((0, 1), np.uint64),
        value=stump.value[:nodes].copy(),
        impurity=1 - (stump.value[:nodes] ** 2).sum(axis=1),
        gain=np.where(question, stump.gain, 0.0),
        n_node_samples=stump.rows[:nodes].astype(np.int64),
        weighted_n_node_samples=stump.weight[:nodes].copy(),
    )


class StumpTable:
    """A table made ready for many stumps: rows in the order of their classes, columns in bins.

    Examples
    --------
    >>> table = StumpTable(np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0, 0, 1, 1]), 2)
    >>> stump = table.best(np.ones(4, dtype=np.int64))
    >>> stump.feature, stump.threshold, round(stump.gain, 9), stump.classes
    (0, 1.5, 0.5, (0, 1))
    """

    def __init__(self, X, y, n_classes):
        n, d = X.shape
        self.rows = np.argsort(y, kind="stable")
        self.of_class = y[self.rows].astype(np.int32)
        self.class_starts = np.searchsorted(self.of_class, np.arange(n_classes + 1))
        self.values = np.empty((d, n))
        self.words = np.zeros((-(-d // WIDE), n), np.uint64)
        self.order = np.empty((d, n), np.uint32)
        self.starts = np.zeros((d, BINS + 1), np.int64)
        self.edges = np.full((d, BINS - 1), np.inf)
        self.n_bins = np.empty(d, np.int64)
        self.known = np.full((d, BINS), NO_ORDER, np.uint8)
        groups = range(len(self.words))
        run(lambda g: self._prepare(X, g), groups, min(n_threads(), len(groups)))
        if not self.starts[:, MISSING].all():
            raise ValueError(f"Column {int(np.argmin(self.starts[:, MISSING]))} has no value in any row: leave it out.")
        self.missing = self.starts[:, MISSING] < n
        self.sums = np.empty((len(self.words), n_classes, WIDE * BINS), np.int64)
        self.gains, self.bounds = np.zeros((2, d, 2, BINS - 1))
        self.threads = min(n_threads(), len(groups)) if n * d >= THREADED else 1

    def _prepare(self, X, g):
        """Copy, cut and code the eight columns of a group."""
        first = g * WIDE
        part = self.values[first : first + WIDE]
        take_columns(X, self.rows, first, part)
        codes = np.empty(len(self.rows), np.uint8)
        for j in range(first, first + len(part)):
            edges, single = bin_edges(self.values[j])
            self.edges[j, : len(edges)] = edges
            self.n_bins[j] = len(edges) + 1
            self.known[j] = ONE_VALUE if single else NO_ORDER
            codes_of(self.values[j], self.edges[j], codes)
            pack(codes, WIDE * (j - first), self.words[g])
            group(codes, self.starts[j], self.order[j])

    def best(self, units):
        """Return the stump with the largest gain under whole weights, one for each row in the order of `rows`."""
        totals = np.add.reduceat(units, self.class_starts[:-1])
        total = int(totals.sum())
        one, shares = 1.0 / total, totals / total

        def rate(g):
            add_up(self.words[g], units, self.class_starts, self.sums[g])
            for j in range(g * WIDE, min((g + 1) * WIDE, len(self.n_bins))):
                room = self.known[j], self.gains[j], self.bounds[j]
                rate_bins(self.sums[g], j % WIDE, self.n_bins[j], self.missing[j], shares, one, *room)

        groups = range(len(self.words))
        if self.threads > 1:
            run(rate, groups, self.threads)
        else:
            for g in groups:
                rate(g)
        gain, j, side, cut = search(
            self.sums,
            self.gains,
            self.bounds,
            self.n_bins,
            self.missing,
            self.edges,
            self.order,
            self.starts,
            self.known,
            self.values,
            units,
            self.of_class,
            totals,
            shares,
            one,
        )
        n = len(units)
        if j < 0:
            return Stump(-2, np.inf, True, 0.0, settled(np.array([shares] * 3)), np.array([1.0, 1.0, 0.0]), np.array([n, n, 0]))
        low, high = neighbors_of(self.values[j], units, cut)
        middle = low / 2 + high / 2  # infinite where only rows without a value go right
        threshold = middle if low <= middle < high or high == np.inf else low
        left = np.empty(len(totals), np.int64)
        count = split_sums(self.values[j], units, self.class_starts, threshold, bool(side), left)
        upto = int(left.sum())
        value = settled(np.array([shares, left / upto, (totals - left) / (total - upto)]))
        # A column that is never missing here may be later: such a row goes with the heavier side.
        missing_left = bool(side) if self.missing[j] else 2 * upto > total
        return Stump(
            j,
            float(threshold),
            missing_left,
            float(gain),
            value,
            np.array([total, upto, total - upto]) / total,
            np.array([n, count, n - count]),
        )

    def classes(self, stump, out):
        """Write the class that a stump gives to each row, in the order of `rows`."""
        if stump.feature < 0:
            out[:] = stump.classes[0]
        else:
            side_classes(self.values[stump.feature], stump.threshold, stump.missing_left, *stump.classes, out)
        return out
