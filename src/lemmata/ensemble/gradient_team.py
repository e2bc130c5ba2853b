"""A team: threads that stay in compiled code for a whole fit and make its stages together.

The leader, who lives in Python, gives two kinds of orders: grow a tree, and add its values to the scores. The others wait where
threads meet (`core.meeting`), do their share, and wait again; so an order costs a microsecond, and growing, in which threads
meet twice a split, needs no orders at all. Sums of real numbers are taken over fixed stretches of rows, whoever does which.
"""

import threading
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import meet
from lemmata.ensemble.gradient_growth import Plan, grow
from lemmata.ensemble.gradient_histogram import STRIPE
from lemmata.ensemble.gradient_losses import differentiate
from lemmata.ensemble.gradient_splits import new_room

QUIT, GROW, ADVANCE = 0, 1, 2
STRETCH, STRETCHES = 16_384, 32  # a pass over the rows has at most so many stretches, and none of fewer rows


class Work(NamedTuple):
    """What a team works on.

    Attributes
    ----------
    order : What to do, for which score, for which tree or (of ADVANCE) whether derivatives are wanted after it.
    seed : Key of the draws of the next tree.
    F, slope, curve : Scores and derivatives of the loss, (scores, rows).
    g, h : Derivatives that trees are grown on: the same, or those of the rows in a subsample.
    loss, parameter, steady : The loss, its parameter, and whether second derivatives stay as they are.
    even : Whether they are 1 for all rows.
    """

    plan: Plan
    order: np.ndarray
    seed: np.ndarray
    y: np.ndarray
    F: np.ndarray
    slope: np.ndarray
    curve: np.ndarray
    g: np.ndarray
    h: np.ndarray
    loss: int
    parameter: float
    steady: bool
    even: bool
    leaf_of: np.ndarray  # of each row
    values: np.ndarray  # of each leaf
    sums: np.ndarray  # (stretches, leaves, 4): g, h, weight and rows of each leaf
    losses: np.ndarray  # of each stretch
    extents: np.ndarray  # (stretches, scores, 3): Σ|g|, Σh and the largest h


def n_stretches(n):
    """Return into how many stretches so many rows are cut."""
    return max(1, min(STRETCHES, n // STRETCH))


@kernel
def stretch(k, n, n_stretches):
    """Return where a stretch begins and ends."""
    return n * k // n_stretches, n * (k + 1) // n_stretches


@kernel
def rows_of(weight, a, b):
    """Return a part of the weights, if there are any."""
    if weight is None:
        return None
    return weight[a:b]


@kernel
def measure(g, h, even, out):
    """Add to Σ|g|, Σh and the largest h."""
    slope, curve, top = 0.0, 0.0, 0.0
    for i in range(len(g)):
        slope += abs(g[i])
    if even:
        curve, top = float(len(g)), 1.0
    else:
        for i in range(len(h)):
            curve += h[i]
        for i in range(len(h)):
            top = max(top, h[i])
    out[0] += slope
    out[1] += curve
    out[2] = max(out[2], top)


@kernel
def derive(work, weight, k, a, b):
    """Write the derivatives of the loss on some rows of a stretch, and add to its sum and to their extents."""
    w = rows_of(weight, a, b)
    slope, curve = work.slope[:, a:b], work.curve[:, a:b]
    work.losses[k] += differentiate(work.loss, work.parameter, work.steady, work.y[a:b], work.F[:, a:b], w, slope, curve)
    for s in range(len(work.F)):
        measure(work.slope[s, a:b], work.curve[s, a:b], work.even, work.extents[k, s])


@kernel
def number_rows(work, me):
    """Write the numbers of their leaves to the rows of a thread."""
    plan, nodes, leaf = work.plan, work.plan.nodes, 0
    if plan.count[0] == 1:
        n, threads = len(work.y), len(plan.begins) - 1
        for start in range(me * STRIPE, n, threads * STRIPE):
            work.leaf_of[start : start + STRIPE] = 0
        return
    for node in range(plan.count[0]):
        if nodes.child[me, node] >= 0:
            continue
        rows = plan.rows[nodes.depth[me, node] & 1]
        for i in range(np.uint64(nodes.first[me, node]), np.uint64(nodes.last[me, node])):
            work.leaf_of[np.uint64(rows[i])] = leaf
        leaf += 1


@kernel
def add_to_leaves(leaf_of, g, h, even, weight, sums):
    """Add derivatives, weights and rows to the sums of their leaves; what is 1 for all rows is left out."""
    for i in range(len(g)):
        sums[np.uint64(leaf_of[i]), 0] += g[i]
    if not even:
        for i in range(len(g)):
            sums[np.uint64(leaf_of[i]), 1] += h[i]
    if weight is not None:
        for i in range(len(g)):
            sums[np.uint64(leaf_of[i]), 2] += weight[i]
            sums[np.uint64(leaf_of[i]), 3] += 1.0 if weight[i] > 0 else 0.0


@kernel
def perform(work, me, weight, tree_weight, room):
    """Do a thread's share of an order."""
    threads, n, parts = len(work.plan.begins) - 1, len(work.y), len(work.losses)
    k = work.order[1]
    if work.order[0] == GROW:
        grow(work.plan, me, work.g[k], work.h[k], work.even, work.order[2], work.seed[0], room)
        number_rows(work, me)
        meet(work.plan.marks, me)
        leaves = (work.plan.count[0] + 1) // 2
        for s in range(me, parts, threads):
            a, b = stretch(s, n, parts)
            work.sums[s, :leaves] = 0.0
            leaf_of, w = work.leaf_of[a:b], rows_of(tree_weight, a, b)
            add_to_leaves(leaf_of, work.g[k, a:b], work.h[k, a:b], work.even, w, work.sums[s])
    else:
        for s in range(me, parts, threads):
            first, last = stretch(s, n, parts)
            if work.order[2] == 1:
                work.losses[s] = 0.0
                work.extents[s] = 0.0
            for a in range(first, last, STRIPE):  # near memory
                b = min(a + STRIPE, last)
                if k >= 0:
                    for i in range(a, b):
                        work.F[k, i] += work.values[np.uint64(work.leaf_of[i])]
                if work.order[2] == 1:
                    derive(work, weight, s, a, b)
    meet(work.plan.marks, me)


@kernel
def serve(work, me, weight, tree_weight, room):
    """Take orders until there are no more."""
    while True:
        meet(work.plan.marks, me)
        if work.order[0] == QUIT:
            return
        perform(work, me, weight, tree_weight, room)


@kernel
def lead(work, weight, tree_weight, room):
    """Give the order that is written down, and do the leader's share."""
    meet(work.plan.marks, 0)
    if work.order[0] != QUIT:
        perform(work, 0, weight, tree_weight, room)


class Team:
    """Threads that serve, from entering a `with` statement to leaving it."""

    def __init__(self, work, weight, tree_weight):
        self.work, self.rest = work, (weight, tree_weight)
        self.room = new_room()

    def __enter__(self):
        n_threads = len(self.work.plan.begins) - 1
        arguments = [(self.work, me, *self.rest, new_room()) for me in range(1, n_threads)]
        self.threads = [threading.Thread(target=serve, args=own, daemon=True) for own in arguments]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.order(QUIT)
        for thread in self.threads:
            thread.join()

    def order(self, what, score=-1, which=0):
        """Have an order carried out by all threads."""
        self.work.order[:] = what, score, which
        lead(self.work, *self.rest, self.room)
