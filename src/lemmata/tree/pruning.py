"""Minimal cost-complexity pruning: the smallest subtree that is best when every leaf has a price.

For a price α a subtree T costs R(T) + α |leaves|, R = Σ over leaves of impurity × share of the weight. From the leaves up, a
node is worth keeping as a leaf if R(t) + α is no more than the least cost of its branches; that gives the unique smallest best
subtree. As α rises, subtrees are nested: the next node to lose its branches is the one with the least
g(t) = (R(t) − R(branches)) / (leaves − 1), the weakest link.

Reference: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984, chapter 3.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.heap import pop, push
from lemmata.tree.nodes import LEAF, NOTHING, Tree

ROUNDING = 1e-12  # of the impurity of the root: a branch that gains less than this gains nothing


def risks(tree):
    """Give R(t) of each node as a leaf: its impurity times the share of its weight."""
    return tree.impurity * (tree.weighted_n_node_samples / tree.weighted_n_node_samples[0])


@kernel
def cuts_of(children_left, risk, alpha, slack):
    """Mark the nodes that are leaves of the smallest best subtree, or below one."""
    n = len(children_left)
    cost, cut = np.empty(n), np.zeros(n, dtype=np.bool_)
    for node in range(n - 1, -1, -1):  # children stand behind their parents
        child = children_left[node]
        cost[node] = risk[node] + alpha
        if child >= 0:
            branches = cost[child] + cost[child + 1]
            if cost[node] <= branches + slack:
                cut[node] = True
            else:
                cost[node] = branches
    return cut


def pruned(tree, alpha):
    """Return the smallest subtree whose cost at this price is least.

    Examples
    --------
    >>> from lemmata.tree import DecisionTreeRegressor
    >>> X, y = [[1.0], [2.0], [3.0], [10.0]], [1.0, 2.0, 3.0, 30.0]
    >>> tree = DecisionTreeRegressor().fit(X, y).tree_
    >>> tree.n_leaves, pruned(tree, 1.0).n_leaves
    (4, 2)
    """
    risk = risks(tree)
    return _without_branches(tree, cuts_of(tree.children_left, risk, float(alpha), ROUNDING * risk[0]))


def _without_branches(tree, cut):
    """Make leaves of the nodes that are marked and leave out what is below; the order of the others stays."""
    kept = np.zeros(tree.node_count, dtype=bool)
    kept[0] = True
    inner = (tree.children_left != LEAF) & ~cut
    for node in np.flatnonzero(inner):
        if kept[node]:
            kept[tree.children_left[node] : tree.children_left[node] + 2] = True
    inner &= kept
    place = np.cumsum(kept) - 1
    arrays = {name: value[kept] for name, value in vars(tree).items() if name != "left_categories"}
    leaf = ~inner[kept]
    child = np.where(leaf, LEAF, place[arrays["children_left"]])
    for name, value in (
        ("feature", NOTHING),
        ("threshold", -2.0),
        ("category_set", -1),
        ("missing_go_to_left", False),
        ("gain", 0.0),
    ):
        arrays[name] = np.where(leaf, value, arrays[name]).astype(arrays[name].dtype)
    arrays["children_left"] = child.astype(np.int32)
    used = arrays["category_set"] >= 0
    sets = tree.left_categories[arrays["category_set"][used]]
    arrays["category_set"][used] = np.arange(len(sets))
    return Tree(**arrays, left_categories=sets)


def pruning_path(tree):
    """Return the prices at which the best subtree changes, and the impurity of its leaves from each price on."""
    alphas, impurities = weakest_links(tree.children_left, risks(tree))
    return alphas, impurities


@kernel
def weakest_links(children_left, risk):
    """Cut the weakest link until the root is left; links of equal strength fall together."""
    n = len(children_left)
    parent = np.full(n, -1, dtype=np.int64)
    leaves, below, alive = np.ones(n, dtype=np.int64), risk.copy(), np.zeros(n, dtype=np.bool_)
    for node in range(n - 1, -1, -1):
        child = children_left[node]
        if child >= 0:
            parent[child], parent[child + 1] = node, node
            leaves[node], below[node], alive[node] = leaves[child] + leaves[child + 1], below[child] + below[child + 1], True
    alphas, impurities = np.zeros(n + 1), np.zeros(n + 1)
    impurities[0] = below[0]
    count, alpha, slack = 1, 0.0, ROUNDING * risk[0]
    # A heap of (strength, node); entries that are out of date are recognized by their strength when they come up.
    strength = np.full(n, np.inf)
    heap_key, heap_node, size = np.empty(4 * n + 4), np.empty(4 * n + 4, dtype=np.int64), 0
    for node in range(n):
        if alive[node]:
            strength[node] = max((risk[node] - below[node]) / (leaves[node] - 1), 0.0)
            size = push(heap_key, heap_node, size, strength[node], node)
    while alive[0]:
        key, node, size = pop(heap_key, heap_node, size)
        if not alive[node] or key != strength[node]:
            continue
        if key > alpha + slack:
            alpha = key
            if count == 1 or alpha > alphas[count - 1]:
                count += 1
            alphas[count - 1] = alpha
        gone, rise = leaves[node] - 1, risk[node] - below[node]
        _kill(children_left, node, alive)
        at = node
        while at >= 0:
            leaves[at] -= gone
            below[at] += rise
            if at != node:
                strength[at] = max((risk[at] - below[at]) / max(leaves[at] - 1, 1), 0.0)
                if size + 1 >= len(heap_key):
                    heap_key, heap_node = np.concatenate((heap_key, heap_key)), np.concatenate((heap_node, heap_node))
                size = push(heap_key, heap_node, size, strength[at], at)
            at = parent[at]
        impurities[count - 1] = below[0]
    return alphas[:count].copy(), impurities[:count].copy()


@kernel
def _kill(children_left, node, alive):
    """Make a leaf of a node: it and all below it are links no more."""
    stack = [node]
    while len(stack) > 0:
        at = stack.pop()
        if alive[at]:
            alive[at] = False
            stack.append(children_left[at])
            stack.append(children_left[at] + 1)
