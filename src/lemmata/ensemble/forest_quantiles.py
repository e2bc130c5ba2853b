"""Quantiles of a forest for numbers: the distribution of y among the training rows that share leaves with a new row.

The prediction of a forest is a mean Σᵢ wᵢ yᵢ over the training rows, where wᵢ is the share of row i in the leaf of the new row,
averaged over the trees. The same weights give a distribution function F(t) = Σᵢ wᵢ 1{yᵢ ≤ t}, and the quantile of q is the
smallest t with F(t) ≥ q. If leaves shrink while their rows grow many, it converges to the conditional quantile [1]; leaves of a
single row say little about a distribution, so `min_samples_leaf` of 5 or more serves it best.

[1] Meinshausen, JMLR 7 (2006).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.base import dense

ROUNDING = 1e-12  # a sum of shares that should be q may fall short of it by rounding
U32, LOW = np.uint64(32), np.uint64(2**32 - 1)


@dataclass(frozen=True)
class LeafRows:
    """Which training rows each leaf has.

    Attributes
    ----------
    rows : The rows of every tree, those of a leaf side by side, one tree after the other.
    ends : Where the rows of each tree begin, and where the last one's end.
    first : Of every node of all trees, where its rows begin among those of its tree; a leaf has `n_node_samples`.
    target : The numbers that were fitted.
    """

    rows: np.ndarray
    ends: np.ndarray
    first: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, parts, target):
        """Join (rows, first) of trees, in order."""
        rows, first = zip(*parts, strict=True)
        return cls(
            np.concatenate(rows).astype(np.int32),
            np.cumsum([0] + [len(r) for r in rows]),
            np.concatenate(first).astype(np.int32),
            target,
        )

    def misplaced(self, t, tree, nodes, counts, leaf):
        """Count the rows of a tree that do not belong where they stand, given the leaf of each row; `nodes` are the tree's."""
        rows, first = self.rows[self.ends[t] : self.ends[t + 1]].astype(np.int64), self.first[nodes]
        ends = np.flatnonzero(tree.children_left < 0)
        ends = ends[np.argsort(first[ends])]
        size = tree.n_node_samples[ends]
        if not np.array_equal(np.sort(rows), np.flatnonzero(counts)) or size.sum() != len(rows):
            return 1
        if not np.array_equal(first[ends], np.cumsum(size) - size):
            return 1
        return int((leaf[rows] != np.repeat(ends, size)).sum())


def quantiles(blocks, trees, leaf_rows, weights, q):
    """Give quantiles for the rows of blocks: (rows, quantiles).

    Parameters
    ----------
    weights : Weight of each entry of `leaf_rows.rows`.
    """
    order = np.argsort(leaf_rows.target, kind="stable")
    rank = np.empty(len(order), dtype=np.uint64)
    rank[order] = np.arange(len(order))
    nodes = trees.nodes
    size = np.where(nodes.children_left < 0, nodes.n_node_samples, 0)
    most = int(np.maximum.reduceat(size, trees.roots[:-1]).sum())  # rows that share leaves with one
    starts = leaf_rows.first + np.repeat(leaf_rows.ends[:-1], np.diff(trees.roots))
    asked = np.argsort(q, kind="stable")
    found = blocks.map(
        _quantile_block, trees.descent(), starts, size, leaf_rows.rows, rank, weights, leaf_rows.target[order], q[asked], most
    )
    return found[:, np.argsort(asked)]


def _quantile_block(X, weight, descent, starts, size, rows, rank, weights, values, q, most):
    X = dense(X)
    leaves = descent.leaves(X) + descent.trees.roots[:-1]
    out = np.empty((len(X), len(q)))
    fill_quantiles(leaves, starts, size, rows, rank, weights, values, q, np.empty(most, np.uint64), np.empty(most), out)
    return out


@kernel
def leaf_weight(weights, a, b):
    """Sum the weights of a leaf."""
    total = 0.0
    for i in range(a, b):
        total += weights[i]
    return total


@kernel
def fill_quantiles(leaves, starts, size, rows, rank, weights, values, q, keys, shares, out):
    """Sort the training rows in the leaves of each row by their targets, and read the quantiles (rising) off their shares."""
    n_trees = leaves.shape[1]
    for i in range(len(leaves)):
        m = 0
        for t in range(n_trees):
            a = starts[leaves[i, t]]
            b = a + size[leaves[i, t]]
            scale = 1.0 / (n_trees * leaf_weight(weights, a, b))
            for k in range(a, b):
                keys[m] = (rank[rows[k]] << U32) | np.uint64(m)
                shares[m] = weights[k] * scale
                m += 1
        keys[:m].sort()
        at, below = 0, shares[np.int64(keys[0] & LOW)]  # below: share up to and with this one
        for j in range(len(q)):
            while at < m - 1 and below < q[j] - ROUNDING:
                at += 1
                below += shares[np.int64(keys[at] & LOW)]
            out[i, j] = values[np.int64(keys[at] >> U32)]
