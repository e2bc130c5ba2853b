"""The stages of gradient boosting: f ← f + ν·tree, each tree grown on the derivatives of the loss at f.

A stage takes the derivatives g, h of the loss at the scores of all rows, grows a tree on them in fixed point
(`gradient_growth`), and then forgets the fixed point: the value of a leaf is computed from sums in full precision,

newton       v = −Σg/(Σh + λ), Newton's step for the leaf;
line-search  v = −γ Σg/(Σs + λ) with s the weights: the tree that fits the negative gradient by least squares, and γ the best
             multiple of it, Friedman's algorithm as it was published [1];
either way   for losses without a second derivative, the quantile of y − f over the leaf, which is its best constant.

Rows held out for early stopping, and those that a stage's subsample leaves out, weigh nothing; they go down the tree all the
same, so that their scores are there when they are needed.

[1] Friedman, Ann. Stat. 29 (2001).
"""

from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.gradient_growth import Grower
from lemmata.ensemble.gradient_histogram import WIDE, quantize
from lemmata.ensemble.gradient_leaves import (
    bit_sets,
    leaf_quantiles,
    newton_values,
    numbered,
    split_gains,
    summed_up,
    value_bounds,
)
from lemmata.ensemble.gradient_losses import best_step
from lemmata.ensemble.gradient_splits import LEAST_HESSIAN
from lemmata.tree.draw import mix
from lemmata.tree.nodes import LEAF, NOTHING, Tree

STRETCH, TASKS = 16_384, 4  # a pass over the rows has so many tasks, but none of fewer rows
WHOLE = 1.0 - 1e-9  # of a weight: sums of fractions may lack the last digits


class Limits(NamedTuple):
    """What a tree may be."""

    max_leaf_nodes: int
    max_depth: float
    min_samples_leaf: float
    l2_regularization: float
    max_features: float
    least_rows: float  # of a node that may be split


class Rule(NamedTuple):
    """How stages are made: the loss, the way to leaf values, the learning rate, and the share of rows of a stage."""

    loss: object
    step: str
    rate: float
    subsample: float
    seed: int


@kernel
def number_rows(elements, ends, first, last, leaf_of):
    """Write the numbers of some leaves to their rows."""
    for k in range(first, last):
        row = np.uint64(ends[k, 2])
        for i in range(np.uint64(ends[k, 0]), np.uint64(ends[k, 1])):
            leaf_of[np.uint64(elements[row, i]) & np.uint64(0xFFFFFFFF)] = k


@kernel
def add_to_leaves(leaf_of, g, h, weight, sums):
    """Add derivatives, weights and rows to the sums of their leaves."""
    for i in range(len(g)):
        k = np.uint64(leaf_of[i])
        sums[k, 0] += g[i]
        sums[k, 1] += h[i]
    for i in range(len(g)):
        k = np.uint64(leaf_of[i])
        w = 1.0 if weight is None else weight[i]
        sums[k, 2] += w
        sums[k, 3] += 1.0 if w > 0 else 0.0


@kernel
def add_values(leaf_of, values, F):
    """Add the value of its leaf to the score of each row."""
    for i in range(len(F)):
        F[i] += values[np.uint64(leaf_of[i])]


@kernel
def extent(g, h):
    """Return the sum and the largest of |g|, and the same of h."""
    total = heavy = 0.0
    for i in range(len(g)):
        total += abs(g[i])
    for i in range(len(g)):
        heavy += h[i]
    most = top = 0.0
    for i in range(len(g)):
        most = max(most, abs(g[i]))
        top = max(top, h[i])
    return total, most, heavy, top


def unit(total, most, rows, room, largest):
    """Return the largest power of two by which numbers may be multiplied so that neither they nor their sums overflow."""
    scale = min((room - rows) / max(total, 1e-280), largest / max(most, 1e-280))
    return 2.0 ** np.clip(np.floor(np.log2(scale)), -960, 960)


def stage_mask(rule, t, n):
    """Draw the rows of a stage: 1 for those that take part."""
    return (np.random.default_rng([rule.seed, t]).random(n) < rule.subsample).astype(float)


def tree_seed(rule, t, k):
    """Return the key from which the nodes of a tree draw columns."""
    return np.uint64(mix(np.uint64(mix(np.uint64(rule.seed), np.uint64(t))), np.uint64(k)))


class Stages:
    """Makes stages on one table.

    Parameters
    ----------
    weight : Weights of the rows, 0 for those held out; None for ones.
    F : Scores to begin with, (scores, rows); changed by every stage.
    """

    def __init__(self, crew, codes, bins, trends, limits, rule, y, weight, F):
        self.crew, self.bins, self.limits, self.rule = crew, bins, limits, rule
        self.y, self.weight, self.F = y, weight, F
        self.g, self.h = np.empty(F.shape), np.empty(F.shape)
        self.grower = Grower(crew, codes, bins, trends, limits)
        self.n = len(y)
        self.stretch = max(STRETCH, -(-self.n // TASKS))
        self.starts = range(0, self.n, self.stretch)
        self.leaf_of = np.empty(self.n, np.int32)
        self.wide = self.n <= WIDE
        if self.wide:
            self.grower.packed = np.empty(self.n, np.int64)
        self.total = float(self.n if weight is None else weight.sum())
        self.lightest = 1.0 if weight is None else float(weight[weight > 0].min())
        self.flat = rule.loss.flat or rule.step == "line-search"
        fine = 2.0 ** min(20.0, 61.0 - np.ceil(np.log2(max(self.total, 1e-280))))
        self.weight_of = np.full(self.n, fine, np.int64) if weight is None else np.rint(weight * fine).astype(np.int64)
        self.least = limits.min_samples_leaf * fine * WHOLE
        self.losses = np.zeros(len(self.starts))
        self.crew.each(self._differentiate, self.starts)

    @property
    def loss(self):
        """Mean loss at the scores as they are."""
        return float(self.losses.sum() / self.total)

    def restart(self, F):
        """Go on from scores that were kept."""
        self.F[:] = F
        self.crew.each(self._differentiate, self.starts)

    def _rows(self, start):
        return slice(start, min(start + self.stretch, self.n))

    def _differentiate(self, start):
        s = self._rows(start)
        w = None if self.weight is None else self.weight[s]
        self.losses[start // self.stretch] = self.rule.loss.fill(self.y[s], self.F[:, s], w, self.g[:, s], self.h[:, s])
        if self.flat and not self.rule.loss.flat:
            self.h[:, s] = 1.0 if w is None else w

    def stage(self, t):
        """Make a stage: one tree for each score."""
        mask = stage_mask(self.rule, t, self.n) if self.rule.subsample < 1 else None
        weight = self.weight if mask is None else mask if self.weight is None else mask * self.weight
        last = len(self.F) - 1
        return tuple(self._tree(t, k, mask, weight, k == last) for k in range(last + 1))

    def _tree(self, t, k, mask, weight, last):
        g, h = self.g[k], self.h[k]
        if mask is not None:
            g, h = g * mask, h * mask
        weight_of = self.weight_of if mask is None else self.weight_of * (mask > 0)
        units, needs = self._fixed(g, h, t)
        root, splits = self.grower.grow(units, needs, self.wide, weight_of, tree_seed(self.rule, t, k))
        nodes, leaves = numbered(root, splits)
        self._number(leaves)
        sums = self._sums(g, h, weight, len(leaves))
        tree, values = self._finished(nodes, leaves, sums, weight, k)

        def advance(start):
            s = self._rows(start)
            add_values(self.leaf_of[s], values, self.F[k, s])
            if last:
                self._differentiate(start)

        self.crew.each(advance, self.starts)
        return tree

    def _fixed(self, g, h, t):
        """Write the derivatives in fixed point; return units and needs for the splits."""
        parts = np.empty((len(self.starts), 4))

        def measure(start):
            s = self._rows(start)
            parts[start // self.stretch] = extent(g[s], h[s])

        self.crew.each(measure, self.starts)
        (total, _, heavy, _), (_, most, _, top) = parts.sum(axis=0), parts.max(axis=0)
        g_scale = unit(total, 0.0 if self.wide else most, self.n, 2.0**31, 32_766.0)
        h_scale = unit(heavy, 0.0 if self.wide else top, self.n, 2.0**32, 65_534.0)
        grower = self.grower

        def write(start):
            s = self._rows(start)
            packed = grower.packed[s] if self.wide else grower.packed
            quantize(g[s], h[s], g_scale, h_scale, self.wide, start, t, packed, grower.elements[0, s])

        self.crew.each(write, self.starts)
        return np.array([1 / g_scale, 1 / h_scale, self.limits.l2_regularization]), self._needs(h_scale, top)

    def _needs(self, h_scale, top):
        """Say what a child needs of h at the least, of h to be large enough for certain, and of weight."""
        rows = self.limits.min_samples_leaf
        if self.flat and (self.weight is None or np.array_equal(self.weight, np.floor(self.weight))) and h_scale >= 1:
            return np.array([max(rows * WHOLE, LEAST_HESSIAN)] * 2 + [self.least])
        bound = {"log_loss": 0.25}.get(self.rule.loss.name, 1.0 if self.flat else top)  # of h for a row of weight 1
        if bound == top and self.weight is not None and not self.flat:
            bound = np.inf  # weights and second derivatives go their own ways: count
        return np.array([LEAST_HESSIAN, max(rows * bound + rows / (self.lightest * h_scale), LEAST_HESSIAN), self.least])

    def _number(self, leaves):
        """Write the number of its leaf to each row."""
        ends = np.array([(leaf.a, leaf.b, leaf.depth % 2) for leaf in leaves])
        done = np.searchsorted(np.cumsum(ends[:, 1] - ends[:, 0]), np.arange(TASKS) * (self.n / TASKS))
        cuts = [*np.unique(done).tolist(), len(leaves)]
        self.crew.each(lambda cut: number_rows(self.grower.elements, ends, *cut, self.leaf_of), list(pairwise(cuts)))

    def _sums(self, g, h, weight, n_leaves):
        """Sum derivatives, weights and rows over the leaves, in the order of the rows."""
        parts = np.zeros((len(self.starts), n_leaves, 4))

        def add(start):
            s = self._rows(start)
            add_to_leaves(self.leaf_of[s], g[s], h[s], None if weight is None else weight[s], parts[start // self.stretch])

        self.crew.each(add, self.starts)
        return parts.sum(axis=0)

    def _finished(self, nodes, leaves, leaf_sums, weight, k):
        """Write a tree with thresholds in the units of the table and values from sums in full precision."""
        m, rule, ridge = len(nodes), self.rule, self.limits.l2_regularization
        at, sets = [leaf.number for leaf in leaves], []
        tree = Tree(
            feature=np.full(m, NOTHING, np.int32),
            threshold=np.full(m, float(NOTHING)),
            children_left=np.full(m, LEAF, np.int32),
            missing_go_to_left=np.zeros(m, bool),
            category_set=np.full(m, -1, np.int32),
            left_categories=np.zeros((0, 1), np.uint64),
            value=np.zeros((m, len(self.F))),
            impurity=np.zeros(m),
            gain=np.zeros(m),
            n_node_samples=np.zeros(m, np.int64),
            weighted_n_node_samples=np.zeros(m),
        )
        for node in nodes:
            i = node.number
            if i in at:
                continue
            j, where = int(node.split[0]), int(node.split[1])
            tree.feature[i], tree.children_left[i] = j, node.children[0].number
            tree.missing_go_to_left[i] = bool(node.table[255])
            if self.grower.codes.is_categorical[j]:
                tree.threshold[i], tree.category_set[i] = np.nan, len(sets)
                sets.append(np.flatnonzero(node.table[: self.grower.codes.n_bins[j]]))
            else:
                edges = self.bins.edges[j]
                tree.threshold[i] = edges[where >> 1] if where >> 1 < len(edges) else np.inf
        if sets:
            tree.left_categories = bit_sets(sets)
        sums = np.zeros((m, 4))
        sums[at] = leaf_sums
        sums = summed_up(tree, sums)
        bounds = value_bounds(tree, sums, ridge, self.grower.codes.trends)
        values = newton_values(sums, ridge, bounds)
        if rule.loss.quantile is not None:
            values[at] = leaf_quantiles(rule.loss, self.y - self.F[k], weight, self.leaf_of, len(leaves))
        elif rule.step == "line-search":
            values *= best_step(rule.loss, self.y, self.F, weight, values[at][self.leaf_of], k)
        tree.value[:, k] = rule.rate * values
        tree.gain[:] = split_gains(tree, sums, ridge, bounds)
        tree.weighted_n_node_samples[:], tree.n_node_samples[:] = sums[:, 2], sums[:, 3]
        return tree, tree.value[at, k]


def as_arrays(tree):
    """Give a tree as a tuple of its arrays, which a checkpoint can hold."""
    return tuple(getattr(tree, f.name) for f in fields(Tree))
