"""From a table to a tree: columns are sorted or counted, the top is grown on one thread, its subtrees on all.

A column with few distinct values is counted, unless absolute values need ranks of all rows anyway; others are sorted. Nodes are
numbered from the root down, left before right, siblings together, whatever the order in which they were made.
"""

import numpy as np

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.core.kernel import kernel
from lemmata.tree.grow import Data, Limits, grow
from lemmata.tree.nodes import Tree
from lemmata.tree.presort import MISSING, ROW, order_of, pack
from lemmata.tree.scan_classes import ENTROPY, ERROR, GINI
from lemmata.tree.split import ABSOLUTE, SQUARED

CRITERIA = {
    "gini": GINI,
    "entropy": ENTROPY,
    "log_loss": ENTROPY,
    "error": ERROR,
    "squared_error": SQUARED,
    "absolute_error": ABSOLUTE,
}
FEW_VALUES = 256  # distinct values up to which a column is counted
WORTH_SHARING = 20_000  # rows below which one thread grows the whole tree


def prepare(X, labels, y, weight, criterion, is_categorical=None, signs=None):
    """Sort or count the columns of a table; return (data, values, offsets, words) as `grow` takes them."""
    n, d = X.shape
    if n >= MISSING:
        raise ValueError(f"A tree takes fewer than {MISSING} rows, got {n}; grow it on a sample, or use gradient boosting.")
    categorical = np.zeros(d, dtype=bool) if is_categorical is None else np.asarray(is_categorical, dtype=bool)
    elements = np.empty((d + 1, n), dtype=np.uint64)
    tags = (labels & 255).astype(np.uint8)
    values, codes, counts = [None] * d, [None] * d, np.zeros(d, dtype=np.int64)
    missing_at = np.zeros(d, dtype=bool)

    def work(j):
        x = np.ascontiguousarray(X[:, j], dtype=float)
        missing_at[j] = np.isnan(x).any()
        if categorical[j]:  # already codes
            counts[j] = int(np.nanmax(x, initial=-1)) + 1
            codes[j] = np.where(np.isnan(x), counts[j], x).astype(np.int32)
            values[j] = np.arange(counts[j], dtype=float)
            return
        distinct = np.empty(n)
        counts[j] = pack(x, order_of(x), tags, elements[j], distinct)
        values[j] = distinct[: counts[j]].copy()
        if counts[j] <= FEW_VALUES and criterion != ABSOLUTE:
            codes[j] = np.where(np.isnan(x), counts[j], np.searchsorted(values[j], x)).astype(np.int32)

    threads.run(work, range(d), min(n_threads(), d))
    counted = np.array([c is not None for c in codes])
    sorted_at, counted_at = np.where(counted, -1, np.cumsum(~counted) - 1), np.where(counted, np.cumsum(counted) - 1, -1)
    kept = np.flatnonzero(~counted)
    if len(kept) < d:
        elements = np.vstack([elements[kept], elements[d:]])
    rows = order_of(y) if criterion == ABSOLUTE else np.arange(n)
    elements[-1] = (rows.astype(np.uint64) << ROW) | tags[rows]
    logs = np.arange(n + 1, dtype=float) if weight is None and criterion == ENTROPY else np.zeros(0)
    logs[1:] *= np.log(logs[1:])
    data = Data(
        elements,
        sorted_at,
        np.array([codes[j] for j in np.flatnonzero(counted)], dtype=np.int32).reshape(int(counted.sum()), n),
        counted_at,
        counts,
        categorical,
        labels.astype(np.int64),
        y,
        np.zeros(0) if weight is None else weight,
        np.zeros(d, dtype=np.int64) if signs is None else np.asarray(signs, dtype=np.int64),
        np.zeros(n if criterion == ABSOLUTE else 0, dtype=np.int64),
        logs,
        missing_at,
    )
    words = max([1, *(-(-int(counts[j]) // 64) for j in np.flatnonzero(categorical))])
    return data, np.concatenate([*values, np.zeros(1)]), np.concatenate([[0], np.cumsum(counts)]), words


def grow_tree(X, labels, y, weight, n_classes, criterion, seed, *, is_categorical=None, signs=None, **limits):
    """Grow a tree on a table.

    Parameters
    ----------
    labels, y : Class of each row, or its number; zeros for the other.
    weight : Weight of each row, or None.
    seed : Key of the root: what columns are drawn by.
    limits : max_features, least, lightest, min_rows, max_depth, max_leaves, min_gain; see `grow.Limits`.
    """
    kind = CRITERIA[criterion]
    data, values, offsets, words = prepare(X, labels, y, weight, kind, is_categorical, signs)
    n = len(y)
    by_class = kind <= ERROR
    counted = weight is None and not np.any(data.signs) and limits["lightest"] <= 1
    pair, plain = counted and kind == GINI and n_classes == 2, counted and kind == SQUARED
    share = n_threads() > 0 and n > WORTH_SHARING and limits["max_leaves"] == 0
    near = 0.0 if by_class else float(np.average(y, weights=weight))
    spread = root_spread(labels, y, weight, near, n_classes, by_class)
    all_limits = Limits(criterion=kind, pair=pair, plain=plain, spread=spread, pending=n // 8 if share else 0, **limits)
    marks = np.zeros(n, dtype=np.uint8)
    fixed = (values, offsets, words, marks)
    top = grow(data, all_limits, *fixed, 0, n, 0, np.uint64(seed), -np.inf, np.inf, near, n_classes)
    parts, (numbers, at, depths, seeds, bounds) = top[:11], top[11:]
    if len(numbers) == 0:
        return in_order(as_tree(parts))
    grown = [None] * len(numbers)
    alone = all_limits._replace(pending=0)

    def work(i):
        a, b = (int(v) for v in at[i])
        around = float(parts[6][numbers[i], 0])
        low, high = (float(v) for v in bounds[i])
        grown[i] = grow(data, alone, *fixed, a, b, int(depths[i]), np.uint64(seeds[i]), low, high, around, n_classes)[:11]

    largest_first = np.argsort(at[:, 0] - at[:, 1], kind="stable")
    threads.run(work, largest_first, min(n_threads(), len(numbers)))
    return in_order(stitched(as_tree(parts), numbers, [as_tree(part) for part in grown]))


def root_spread(labels, y, weight, near, n_classes, by_class):
    """Give a unit for gains: the weight of all rows, times the variance of y where there is one."""
    total = float(len(y) if weight is None else weight.sum())
    return total if by_class else float(np.average((y - near) ** 2, weights=weight)) * total


def as_tree(parts):
    """Name the arrays that `grow` returns; a categorical split may have none."""
    names = ("feature", "threshold", "children_left", "missing_go_to_left", "category_set", "left_categories", "value")
    names += ("impurity", "gain", "n_node_samples", "weighted_n_node_samples")
    return Tree(**dict(zip(names, parts, strict=True)))


def stitched(top, numbers, subtrees):
    """Put subtrees in the place of some nodes."""
    arrays = {name: [value.copy()] for name, value in vars(top).items()}
    count, sets = top.node_count, len(top.left_categories)
    for node, tree in zip(numbers, subtrees, strict=True):
        for name, value in vars(tree).items():
            if name == "left_categories":
                arrays[name].append(value)
                continue
            if name == "children_left":
                value = np.where(value < 0, value, value + count - 1)  # the root takes a place that there is
            elif name == "category_set":
                value = np.where(value < 0, value, value + sets)
            arrays[name][0][node] = value[0]
            arrays[name].append(value[1:].astype(arrays[name][0].dtype))
        count += tree.node_count - 1
        sets += len(tree.left_categories)
    return Tree(**{name: np.concatenate(parts) for name, parts in arrays.items()})


@kernel
def numbering(children_left, order):
    """Write the nodes in order: the two children of a node follow its left brother's descendants."""
    stack, depth, count = np.empty(len(order), dtype=np.int64), 1, 1
    stack[0], order[0] = 0, 0
    while depth > 0:
        depth -= 1
        node = order[stack[depth]]
        child = children_left[node]
        if child >= 0:
            order[count], order[count + 1] = child, child + 1
            stack[depth], stack[depth + 1] = count + 1, count
            depth += 2
            count += 2
    return count


def in_order(tree):
    """Number the nodes from the root down, left before right, siblings together, and sets likewise; gains become shares."""
    order = np.empty(tree.node_count, dtype=np.int64)
    order = order[: numbering(tree.children_left, order)]
    place = np.empty(tree.node_count, dtype=np.int32)
    place[order] = np.arange(len(order))
    arrays = {name: value[order] for name, value in vars(tree).items() if name != "left_categories"}
    child = arrays["children_left"]
    arrays["children_left"] = np.where(child < 0, -1, place[child]).astype(np.int32)
    arrays["gain"] = np.where(child < 0, 0.0, arrays["gain"] / arrays["weighted_n_node_samples"][0])
    used = arrays["category_set"] >= 0
    sets = tree.left_categories[arrays["category_set"][used]]
    arrays["category_set"][used] = np.arange(len(sets))
    return Tree(**arrays, left_categories=sets)
