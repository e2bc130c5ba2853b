"""What proves a greedy tree: rows are sent down it again, and every node is tried again from the rows that come to it.

Four things make a tree the one that was asked for: every split is the best of its node, within the limits; no leaf could have
been split; every value, impurity and count is that of the rows; every threshold is the midpoint of the values beside it. With a
limit on the number of leaves the order of splits is replayed, largest gain first; with a price of leaves the tree is grown
without the price, and its smallest best subtree compared.
"""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from lemmata.core import threads
from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.config import n_threads
from lemmata.tree.audit import describe, node_left_over
from lemmata.tree.draw import mix
from lemmata.tree.exact import CRITERIA, grow_tree, numbering
from lemmata.tree.nodes import LEAF, NOTHING
from lemmata.tree.pruning import pruned
from lemmata.tree.scan_classes import ERROR, TIE

SPLIT_LIMIT = 1e-9  # of the impurity of the root: sums of n terms round to far less
GREEDY = "every split is the best of its node, tried again"


class Audit(NamedTuple):
    """What was found at the nodes of a tree."""

    short: np.ndarray  # by how much a better split of an inner node would lower the impurity
    value: np.ndarray
    impurity: np.ndarray
    gain: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    sets: int  # how many sets of categories are not those of the rows
    could: np.ndarray  # gain of the best split of each leaf that limits allow, -1 without one


def sound(tree, d):
    """Tell whether the arrays make a tree at all: every node but the root is the child of one node that stands before it."""
    n = tree.node_count
    child, inner = tree.children_left, tree.children_left != LEAF
    lengths = {len(v) for name, v in vars(tree).items() if name != "left_categories"}
    if lengths != {n} or np.any(child[inner] + 1 >= n) or np.any(child[inner] <= np.flatnonzero(inner)):
        return False
    order = np.full(n, -1, dtype=np.int64)
    if not np.array_equal(np.sort(np.concatenate([[0], child[inner], child[inner] + 1])), np.arange(n)):
        return False
    numbering(child, order)
    columns, sets = tree.feature, tree.category_set
    return bool(
        np.array_equal(order, np.arange(n))
        and np.all((columns[inner] >= 0) & (columns[inner] < d))
        and np.all(columns[~inner] == NOTHING)
        and np.array_equal(sets[sets != -1], np.arange(len(tree.left_categories)))
        and not np.any(sets[~inner] != -1)
    )


def rows_of_nodes(tree, X):
    """Send all rows down; return those of each node, in order."""
    rows = [np.arange(len(X))]
    found = {0: rows[0]}
    for node in range(tree.node_count):
        if tree.children_left[node] == LEAF:
            continue
        own = found[node]
        left = tree.goes_left(node, X[own, tree.feature[node]])
        found[int(tree.children_left[node])], found[int(tree.children_left[node]) + 1] = own[left], own[~left]
    return found


def keys_of_nodes(tree, seed):
    """Give what each node draws its columns by."""
    keys = np.zeros(tree.node_count, dtype=np.uint64)
    keys[0] = seed
    for node in np.flatnonzero(tree.children_left != LEAF):
        for side in (0, 1):
            keys[tree.children_left[node] + side] = mix(keys[node], np.uint64(1 + side))
    return keys


def midpoint(left, right):
    """Give the threshold between the values on both sides: infinity if there is none on the right."""
    left, right = left[~np.isnan(left)], right[~np.isnan(right)]
    if len(right) == 0 or len(left) == 0:
        return np.inf
    lower, upper = left.max(), right.min()
    middle = 0.5 * lower + 0.5 * upper
    return middle if lower <= middle < upper else lower


def audit(tree, found, task):
    """Try every node again from its rows; None if a node has no rows at all."""
    X, labels, y = task["X"], task["labels"], task["y"]
    weight = np.ones(len(y)) if task["weight"] is None else task["weight"]
    kind, k, d = CRITERIA[task["criterion"]], task["n_classes"], X.shape[1]
    categorical = np.zeros(d, dtype=bool) if task["is_categorical"] is None else task["is_categorical"]
    signs = np.zeros(d, dtype=np.int64) if task["signs"] is None else task["signs"]
    n = tree.node_count
    if any(len(found[node]) == 0 for node in range(n)):
        return None
    value, impurity, gain = np.zeros((n, k if kind <= ERROR else 1)), np.zeros(n), np.zeros(n)
    total, rows, short, could = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n), np.full(n, -1.0)
    threshold, missing_left, wrong_sets = np.full(n, -2.0), np.zeros(n, dtype=bool), np.zeros(n, dtype=int)
    mixed = np.zeros(n)

    def look(node):
        shares = np.zeros(k)
        v, total[node], mixed[node] = describe(found[node], labels, y, weight, kind, shares)
        value[node] = shares / shares.sum() if kind <= ERROR else v
        rows[node], impurity[node] = len(found[node]), mixed[node] / total[node]

    threads.run(look, range(n), n_threads())
    last = -1 if k > 1 else 0  # the value that constraints bound
    bounds, deep, keys = np.tile([-np.inf, np.inf], (n, 1)), tree.depth, keys_of_nodes(tree, task["seed"])
    for node in np.flatnonzero(tree.children_left != LEAF):
        child, sign = tree.children_left[node], signs[tree.feature[node]]
        bounds[child : child + 2] = bounds[node]
        if sign:
            one, two = value[child, last], value[child + 1, last]
            up, down = (1, 0) if sign > 0 else (0, 1)
            bounds[child + down, 1] = min(bounds[child + down, 1], 0.5 * one + 0.5 * two)
            bounds[child + up, 0] = max(bounds[child + up, 0], 0.5 * one + 0.5 * two)

    def judge(node):
        inner, own = tree.children_left[node] != LEAF, found[node]
        alike = np.all(labels[own] == labels[own[0]]) and np.all(y[own] == y[own[0]])
        ended = deep[node] >= task["max_depth"] or len(own) < task["min_rows"] or alike
        best = np.inf
        size = 1.0 if k > 1 else np.sqrt(mixed[node] / total[node]) + SPLIT_LIMIT * abs(value[node, 0])
        slack = SPLIT_LIMIT * size  # what rounding can do to a mean
        if not ended:
            best = node_left_over(
                X, own, categorical, labels, y, weight, kind, k, task["max_features"], keys[node], task["least"],
                task["lightest"], signs, bounds[node, 0], bounds[node, 1], slack,
            )  # fmt: skip
        if not inner:
            if mixed[node] - best >= task["min_gain"] * (1 - SPLIT_LIMIT):
                could[node] = max(mixed[node] - best, 0.0)
            return
        child, column = int(tree.children_left[node]), int(tree.feature[node])
        left, right = found[child], found[child + 1]
        gain[node] = max(mixed[node] - mixed[child] - mixed[child + 1], 0.0)
        allowed = not ended and min(len(left), len(right)) >= task["least"]
        allowed &= min(total[child], total[child + 1]) >= task["lightest"]
        allowed &= gain[node] >= task["min_gain"] * (1 - SPLIT_LIMIT) - SPLIT_LIMIT * mixed[0]
        if signs.any():  # of values that the constraints bound
            one, two = value[child, last], value[child + 1, last]
            slack *= total[node] / min(total[child], total[child + 1])
            allowed &= (two - one) * signs[column] >= -slack
            allowed &= bounds[node, 0] - slack <= min(one, two) and max(one, two) <= bounds[node, 1] + slack
        short[node] = mixed[node] - best - gain[node] if allowed else np.inf
        if allowed and not signs.any():  # a split that is better than any is one by a column that was not drawn
            short[node] = abs(short[node])
        if categorical[column]:
            threshold[node] = np.nan
            present = X[left, column]
            codes = np.unique(present[~np.isnan(present)]).astype(int)
            wrong_sets[node] = not np.array_equal(codes, tree.categories_left(node))
        else:
            threshold[node] = midpoint(X[left, column], X[right, column])
        holes = np.isnan(X[own, column]).any()
        missing_left[node] = tree.missing_go_to_left[node] if holes else 2 * total[child] > total[node] * (1 + TIE)

    threads.run(judge, range(n), n_threads())
    if signs.any():  # values keep their bounds exactly, whatever was rounded
        value[:, last] = np.clip(value[:, last], bounds[:, 0], bounds[:, 1])
        value[:, 0] = 1 - value[:, 1] if k > 1 else value[:, 0]
    return Audit(short, value, impurity, gain, rows, total, threshold, missing_left, int(wrong_sets.sum()), could)


def out_of_turn(tree, seen, max_leaves):
    """Replay the splits, largest gain first; return by how much a leaf that was passed over would have gained more."""
    inner = tree.children_left != LEAF
    # Heaps of (-gain, node): of splits that were made, and of leaves that could have been split.
    made, passed, leaves, worst = [], [], 1, 0.0

    def wait(node):
        if inner[node]:
            heappush(made, (-seen.gain[node], node))
        elif seen.could[node] >= 0:
            heappush(passed, (-seen.could[node], node))

    wait(0)
    while (made or passed) and leaves != max_leaves:
        if not made:
            return np.inf  # something could be split, and more leaves were allowed
        gain, node = heappop(made)
        worst = max(worst, gain - passed[0][0] if passed else 0.0)
        wait(int(tree.children_left[node]))
        wait(int(tree.children_left[node]) + 1)
        leaves += 1
    return np.inf if made else worst


def same_thresholds(stored, expected):
    """Check thresholds; an infinite one, which parts what is there from what is missing, is that exactly."""
    infinite = np.isinf(expected)
    if not np.array_equal(infinite, np.isinf(stored)):
        stored = np.full(len(expected), np.nan)
    claim = "every threshold is the midpoint of its neighbors"
    return same(np.where(infinite, 0.0, stored), np.where(infinite, 0.0, expected), "thresholds", claim)


def tree_checks(tree, task):
    """Check a tree against the rows it was grown on."""
    if not sound(tree, task["X"].shape[1]):
        return [Check("structure", np.inf, 0.0, "proof", "the nodes make a tree")]
    seen = audit(tree, rows_of_nodes(tree, task["X"]), task)
    if seen is None:
        return [Check("structure", np.inf, 0.0, "proof", "every node has rows")]
    unit = max(seen.impurity[0] * seen.weight[0], np.finfo(float).tiny)
    total = seen.weight[0]
    checks = [Check("splits", float(seen.short.max(initial=0.0) / unit), SPLIT_LIMIT, "proof", GREEDY)]
    if task["max_leaves"]:
        turn = out_of_turn(tree, seen, task["max_leaves"]) / unit
        checks.append(Check("turns", float(turn), SPLIT_LIMIT, "proof", "the leaf with the largest gain was split next"))
    else:
        worst = float((seen.could >= 0).sum())
        checks.append(Check("leaves", worst, 0.0, "proof", "no leaf can be split within the limits"))
    ways = np.sum(tree.missing_go_to_left != seen.missing_left) + seen.sets
    return [
        *checks,
        same(tree.value, seen.value, "values", "every value minimizes the loss of its rows"),
        same(tree.impurity, seen.impurity, "impurities", "impurities are those of the rows"),
        same(tree.gain, seen.gain / total, "gains", "gains are those of the rows", floor=seen.impurity[0] * SAME_LIMIT),
        same(tree.n_node_samples, seen.rows, "rows", "rows are counted right"),
        same(tree.weighted_n_node_samples, seen.weight, "weights", "weights are summed right"),
        same_thresholds(tree.threshold, seen.threshold),
        Check("ways", float(ways), 0.0, "proof", "missing values and categories go where the rows say"),
    ]


def certify_tree(model, task):
    """Certify a fitted tree from the task that it was grown for."""
    tree = model.tree_
    drawn = same(model.max_features_, task["max_features"], "columns", "so many columns are drawn as asked for")
    if model.ccp_alpha == 0:
        return Certificate(*tree_checks(tree, task), drawn, subject=repr(model))
    full = grow_tree(**task)
    expected = pruned(full, model.ccp_alpha)
    alike = tree.node_count == expected.node_count and all(
        np.array_equal(getattr(tree, name), getattr(expected, name))
        for name in ("feature", "children_left", "missing_go_to_left", "category_set", "left_categories", "n_node_samples")
    )
    claim = "the tree is the smallest best one for the price of a leaf"
    checks = [Check("pruning", 0.0 if alike else np.inf, SAME_LIMIT, "proof", claim)]
    if alike:
        checks += [
            same(getattr(tree, name), getattr(expected, name), name, "as in the tree before it was pruned")
            for name in ("value", "impurity", "gain", "weighted_n_node_samples")
        ]
        checks.append(same_thresholds(tree.threshold, expected.threshold))
    return Certificate(*checks, *tree_checks(full, task), drawn, subject=repr(model))
