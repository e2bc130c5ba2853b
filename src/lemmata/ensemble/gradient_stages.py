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
from typing import NamedTuple

import numpy as np

from lemmata.core.meeting import threads_that_meet
from lemmata.ensemble.gradient_growth import new_plan
from lemmata.ensemble.gradient_histogram import MOST_G, MOST_H, unit
from lemmata.ensemble.gradient_leaves import bit_sets, leaf_quantiles, newton_values, split_gains, summed_up, value_bounds
from lemmata.ensemble.gradient_losses import line_search
from lemmata.ensemble.gradient_splits import LEAST_HESSIAN
from lemmata.ensemble.gradient_team import ADVANCE, GROW, Team, Work, n_stretches
from lemmata.tree.draw import mix
from lemmata.tree.nodes import LEAF, NOTHING, Tree

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


def stage_mask(rule, t, n):
    """Draw the rows of a stage: 1 for those that take part."""
    return (np.random.default_rng([rule.seed, t]).random(n) < rule.subsample).astype(float)


def tree_seed(rule, t, k):
    """Return the key from which the nodes of a tree draw columns."""
    return np.uint64(mix(np.uint64(mix(np.uint64(rule.seed), np.uint64(t))), np.uint64(k)))


class Stages:
    """Makes stages on one table; a context, as threads wait for its orders.

    Parameters
    ----------
    codes : `Codes` of the table, made with `bins`.
    weight : Weights of the rows, 0 for those held out; None for ones.
    F : Scores to begin with, (scores, rows); changed by every stage.
    """

    def __init__(self, codes, bins, limits, rule, y, weight, F):
        self.bins, self.limits, self.rule = bins, limits, rule
        self.y, self.weight, self.F, self.n = y, weight, F, len(y)
        self.total = float(self.n if weight is None else weight.sum())
        self.lightest = 1.0 if weight is None else float(weight[weight > 0].min())
        self.flat = rule.loss.flat or rule.step == "line-search"
        fine = 2.0 ** min(52.0, 60.0 - np.ceil(np.log2(max(self.total, 1e-280))))
        self.weight_of = np.full(self.n, fine, np.int64) if weight is None else np.rint(weight * fine).astype(np.int64)
        self.least = limits.min_samples_leaf * fine * WHOLE
        n_threads = max(1, min(threads_that_meet(), self.n // 2048))
        drawn = rule.subsample < 1
        self.plan = plan = new_plan(codes, self.weight_of.copy() if drawn else self.weight_of, limits, n_threads)
        slope, curve = np.empty(F.shape), np.empty(F.shape)
        parts, even = n_stretches(self.n), self.flat and weight is None and not drawn
        curve[:] = 1.0 if weight is None else weight  # where the loss has no second derivative to put there
        self.work = Work(
            plan, np.zeros(3, np.int64), np.zeros(1, np.uint64), y, F, slope, curve,
            slope.copy() if drawn else slope, curve.copy() if drawn else curve,
            rule.loss.code, rule.loss.parameter, self.flat, even,
            np.empty(self.n, np.int32), np.empty(plan.max_leaves), np.zeros((parts, plan.max_leaves, 4)),
            np.zeros(parts), np.zeros((parts, len(F), 3)),
        )  # fmt: skip
        self.tree_weight = np.empty(self.n) if drawn else weight
        self.team = Team(self.work, weight, self.tree_weight)

    def __enter__(self):
        self.team.__enter__()
        try:
            self.team.order(ADVANCE, which=1)
        except BaseException:  # else the others would wait for ever
            self.team.__exit__()
            raise
        return self

    def __exit__(self, *error):
        self.team.__exit__(*error)

    @property
    def loss(self):
        """Mean loss at the scores as they are."""
        return float(self.work.losses.sum() / self.total)

    def restart(self, F):
        """Go on from scores that were kept."""
        self.F[:] = F
        self.team.order(ADVANCE, which=1)

    def stage(self, t):
        """Make a stage: one tree for each score."""
        if self.rule.subsample < 1:
            self._draw(t)
        last = len(self.F) - 1
        return tuple(self._tree(t, k, k == last) for k in range(last + 1))

    def _draw(self, t):
        """Leave the rows out that a stage has not drawn."""
        mask, work = stage_mask(self.rule, t, self.n), self.work
        np.multiply(work.slope, mask, out=work.g)
        np.multiply(work.curve, mask, out=work.h)
        np.multiply(self.weight_of, mask > 0, out=self.plan.weight_of)
        np.multiply(mask, 1.0 if self.weight is None else self.weight, out=self.tree_weight)
        work.extents[:] = 0.0
        work.extents[0] = np.column_stack([np.abs(work.g).sum(axis=1), work.h.sum(axis=1), work.h.max(axis=1)])

    def _tree(self, t, k, last):
        plan, work = self.plan, self.work
        slope, curve, top = (*work.extents[:, k, :2].sum(axis=0), work.extents[:, k, 2].max())
        h_scale = unit(curve, self.n, MOST_H)
        plan.units[:] = 1 / unit(slope, self.n, MOST_G), 1 / h_scale, self.limits.l2_regularization
        plan.needs[:] = self._needs(h_scale, top)
        work.seed[0] = tree_seed(self.rule, t, k)
        self.team.order(GROW, k, t)
        tree, values = self._finished(k)
        work.values[: len(values)] = values
        self.team.order(ADVANCE, k, which=int(last))
        return tree

    def _needs(self, h_scale, top):
        """Say what a child needs of h at the least, of h to be large enough for certain, and of weight."""
        rows = self.limits.min_samples_leaf
        if self.flat and (self.weight is None or np.array_equal(self.weight, np.floor(self.weight))) and h_scale >= 1:
            return np.array([max(rows * WHOLE, LEAST_HESSIAN)] * 2 + [self.least])
        bound = {"log_loss": 0.25}.get(self.rule.loss.name, 1.0 if self.flat else top)  # of h for a row of weight 1
        if bound == top and self.weight is not None and not self.flat:
            bound = np.inf  # weights and second derivatives go their own ways: count
        return np.array([LEAST_HESSIAN, max(rows * bound + rows / (self.lightest * h_scale), LEAST_HESSIAN), self.least])

    def _finished(self, k):
        """Write a tree with thresholds in the units of the table and values from sums in full precision."""
        rule, ridge, codes, m = self.rule, self.limits.l2_regularization, self.plan.codes, int(self.plan.count[0])
        column, where, child, table = (getattr(self.plan.nodes, name)[0, :m] for name in ("column", "where", "child", "table"))
        inner = child >= 0
        at, sets = np.flatnonzero(~inner), []
        tree = Tree(
            feature=np.where(inner, column, NOTHING).astype(np.int32),
            threshold=np.full(m, float(NOTHING)),
            children_left=np.where(inner, child, LEAF).astype(np.int32),
            missing_go_to_left=inner & (table[:, 255] > 0),
            category_set=np.full(m, -1, np.int32),
            left_categories=np.zeros((0, 1), np.uint64),
            value=np.zeros((m, len(self.F))),
            impurity=np.zeros(m),
            gain=np.zeros(m),
            n_node_samples=np.zeros(m, np.int64),
            weighted_n_node_samples=np.zeros(m),
        )
        for i in np.flatnonzero(inner):
            j = column[i]
            if codes.is_categorical[j]:
                tree.threshold[i], tree.category_set[i] = np.nan, len(sets)
                sets.append(np.flatnonzero(table[i, : codes.n_bins[j]]))
            else:
                edges = self.bins.edges[j]
                tree.threshold[i] = edges[where[i] >> 1] if where[i] >> 1 < len(edges) else np.inf
        if sets:
            tree.left_categories = bit_sets(sets)
        sums = np.zeros((m, 4))
        sums[at] = self.work.sums[:, : len(at)].sum(axis=0)
        if self.tree_weight is None:
            nodes = self.plan.nodes
            sums[at, 2] = sums[at, 3] = (nodes.last[:, at] - nodes.first[:, at]).sum(axis=0)
        if self.work.even:
            sums[at, 1] = sums[at, 2]
        sums = summed_up(tree, sums)
        bounds = value_bounds(tree, sums, ridge, codes.trends)
        values = newton_values(sums, ridge, bounds)
        weight, leaf_of = self.tree_weight, self.work.leaf_of
        if rule.loss.quantile is not None:
            values[at] = leaf_quantiles(rule.loss, self.y - self.F[k], weight, leaf_of, len(at))
        elif rule.step == "line-search":
            values *= line_search(rule.loss, self.y, self.F, weight, values[at][leaf_of], k)
        tree.value[:, k] = rule.rate * values
        tree.gain[:] = split_gains(tree, sums, ridge, bounds)
        tree.weighted_n_node_samples[:], tree.n_node_samples[:] = sums[:, 2], sums[:, 3]
        return tree, tree.value[at, k]


def as_arrays(tree):
    """Give a tree as a tuple of its arrays, which a checkpoint can hold."""
    return tuple(getattr(tree, f.name) for f in fields(Tree))
