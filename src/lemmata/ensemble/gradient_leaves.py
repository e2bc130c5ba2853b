"""Leaves of a grown tree: sums, bounds, values and gains in full precision, from which stages are made and proved.

Sums are rows of an array with Σg, Σh, weight and number of rows of each node.
"""

import numpy as np

from lemmata.ensemble.gradient_losses import weighted_quantile
from lemmata.ensemble.gradient_splits import LEAST_HESSIAN
from lemmata.tree.descend import WORD
from lemmata.tree.nodes import LEAF


def newton_values(sums, ridge, bounds):
    """Return −Σg/(Σh + λ) within bounds; 0 where there is next to nothing to divide by."""
    h = sums[:, 1] + ridge
    return np.clip(-np.divide(sums[:, 0], h, out=np.zeros(len(h)), where=h >= LEAST_HESSIAN), bounds[:, 0], bounds[:, 1])


def summed_up(tree, sums):
    """Add the sums of the leaves up to those of all nodes."""
    for i in range(tree.node_count - 1, -1, -1):  # a child stands after its parent
        left = tree.children_left[i]
        if left != LEAF:
            sums[i] = sums[left] + sums[left + 1]
    return sums


def value_bounds(tree, sums, ridge, trends):
    """Return the bounds of each node's value: children split by a monotone column lie on either side of their mean."""
    bounds = np.tile([-np.inf, np.inf], (tree.node_count, 1))
    if not np.any(trends):
        return bounds
    for i in np.flatnonzero(tree.children_left != LEAF):
        pair = slice(tree.children_left[i], tree.children_left[i] + 2)
        bounds[pair] = bounds[i]
        trend = trends[tree.feature[i]]
        if trend:
            middle = newton_values(sums[pair], ridge, bounds[pair]).mean()
            below, above = (0, 1) if trend > 0 else (1, 0)
            bounds[pair][below, 1] = bounds[pair][above, 0] = middle
    return bounds


def split_gains(tree, sums, ridge, bounds):
    """Return by how much each split lowers the second-order model of the loss; 0 at leaves."""
    g, h = sums[:, 0], sums[:, 1] + ridge
    own = newton_values(sums, ridge, bounds)
    gains = np.zeros(tree.node_count)
    inner = np.flatnonzero(tree.children_left != LEAF)
    for side in (0, 1):  # with the bounds of the parent, as splits are compared
        child = tree.children_left[inner] + side
        v = newton_values(sums[child], ridge, bounds[inner])
        gains[inner] -= g[child] * v + 0.5 * h[child] * v * v
    gains[inner] += (g * own + 0.5 * h * own * own)[inner]
    return gains


def leaf_quantiles(loss, residual, weight, leaf_of, n_leaves):
    """Return the quantile of the residuals of each leaf."""
    rows = np.arange(len(residual)) if weight is None else np.flatnonzero(weight > 0)
    order = rows[np.argsort(leaf_of[rows], kind="stable")]
    ends = np.searchsorted(leaf_of[order], np.arange(n_leaves + 1))
    found = np.zeros(n_leaves)
    for k in range(n_leaves):
        own = order[ends[k] : ends[k + 1]]
        if len(own):
            found[k] = weighted_quantile(residual[own], None if weight is None else weight[own], loss.quantile)
    return found


def bit_sets(sets):
    """Write sets of codes as bits, 64 in a word."""
    words = np.zeros((len(sets), 1 + max((int(s.max(initial=0)) for s in sets), default=0) // WORD), np.uint64)
    for row, codes in enumerate(sets):
        for code in codes:
            words[row, code // WORD] |= np.uint64(1) << np.uint64(code % WORD)
    return words
