"""Growing a tree: take a leaf that can be split, split it best, until none is left or a limit is reached.

The rows of a node stand together in every sorted column, from a to b; a split parts each column stably, so that its children
are sorted again. Depth first, a subtree soon fits into fast memory; best first, the leaf with the largest gain is split
next, which matters only where the number of leaves is limited. A subtree needs nothing but its rows, so several threads
grow several subtrees, and the tree is the same for any number of them.

Reference: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.draw import mix
from lemmata.tree.partition import has_missing, heavier, mark_left, part, threshold_of
from lemmata.tree.presort import ROW, ROWS
from lemmata.tree.scan_classes import CHUNK, ENTROPY, ERROR, TIE, of_row, score_of
from lemmata.tree.split import ABSOLUTE, SQUARED, Node, Room, find_split

U1, U2 = np.uint64(1), np.uint64(2)
LN2 = np.log(2.0)
ULP = 2.0**-50  # a few roundings of a mean


class Data(NamedTuple):
    """What the kernels read of a table."""

    elements: np.ndarray  # (sorted columns + 1, rows); the last one has the rows as they stand, or in the order of y
    sorted_at: np.ndarray  # of each column, its place among the elements, or -1
    codes: np.ndarray  # (counted columns, rows), the number of the value; the last one is "missing"
    counted_at: np.ndarray  # of each column, its place among the codes, or -1
    n_codes: np.ndarray  # distinct values of each column
    categorical: np.ndarray
    labels: np.ndarray  # class of each row
    y: np.ndarray  # number of each row
    weight: np.ndarray  # of each row; empty if every row counts as one
    signs: np.ndarray  # monotone constraint of each column
    place: np.ndarray  # room for the rank of each row's y in its node
    logs: np.ndarray  # x ln x of whole numbers
    missing_at: np.ndarray  # whether a column has missing values


class Limits(NamedTuple):
    """What stops the growth."""

    criterion: int
    max_features: int
    least: int  # rows on each side of a split
    lightest: float  # weight on each side of a split
    pair: bool  # two classes, Gini, rows counted: the fast scan
    plain: bool  # squares, rows counted, nothing monotone: likewise
    min_rows: int  # to be split at all
    max_depth: int
    max_leaves: int  # 0 for any number; otherwise leaves are split best first
    min_gain: float  # times the weight of all rows
    spread: float  # impurity of the root, times its weight: the unit of ties between leaves
    pending: int  # nodes with so many rows or fewer are left to others


@kernel
def summary(data, criterion, rows, a, b, near, classes):
    """Describe a node: (value, weight, sum about the value, impurity times weight); class weights are written to `classes`."""
    labels, y, weight = data.labels, data.y, data.weight
    n_classes = len(classes)
    if criterion <= ERROR:
        classes[:] = 0.0
        for i in range(a, b):
            row = (rows[i] >> ROW) & ROWS
            classes[labels[row]] += of_row(weight, row)
        total, largest = 0.0, 0.0
        for k in range(n_classes):
            total += classes[k]
        for k in range(n_classes):
            largest = max(largest, classes[k])
        if largest == total:
            return 0.0, total, 0.0, 0.0
        return 0.0, total, 0.0, class_impurity(classes, total, criterion)
    total, s = 0.0, 0.0
    for i in range(a, b):
        row = (rows[i] >> ROW) & ROWS
        total += of_row(weight, row)
    if criterion == SQUARED:
        for i in range(a, b):
            row = (rows[i] >> ROW) & ROWS
            s += of_row(weight, row) * (y[row] - near)
        value = near + s / total
    else:
        value, seen = near, 0.0
        for i in range(a, b):
            row = (rows[i] >> ROW) & ROWS
            w = of_row(weight, row)
            seen += w
            if 2.0 * seen >= total * (1.0 - TIE):
                value = y[row]
                if 2.0 * seen <= total * (1.0 + TIE) and i + 1 < b:  # between two medians
                    value = 0.5 * value + 0.5 * y[(rows[i + 1] >> ROW) & ROWS]
                break
    off, spread = 0.0, 0.0
    for i in range(a, b):
        row = (rows[i] >> ROW) & ROWS
        off += of_row(weight, row) * (y[row] - value)
    for i in range(a, b):
        row = (rows[i] >> ROW) & ROWS
        w, u = of_row(weight, row), y[row] - value
        spread += w * u * u if criterion == SQUARED else w * abs(u)
    if criterion == SQUARED:  # about the mean itself, of which the value has lost digits where y is large
        spread = max(spread - off * off / total, 0.0)
    return value, total, off, spread


@kernel
def class_impurity(classes, total, criterion):
    """Give the impurity of class weights, times their total; entropy in bits."""
    nothing = np.zeros(len(classes))
    s = score_of(classes, nothing, criterion)
    return -s / LN2 if criterion == ENTROPY else total - s


@kernel
def gain_of(score, classes, total, sum_total, impurity, criterion):
    """Turn the score of a split into the fall of impurity, times weight."""
    if criterion == ENTROPY:
        return max(impurity + score / LN2, 0.0)
    if criterion <= ERROR:
        return max(score - (total - impurity), 0.0)
    if criterion == SQUARED:
        return max(score - sum_total * sum_total / total, 0.0)
    return max(impurity + score, 0.0)


@kernel
def grow(data, limits, values, offsets, words, marks, a0, b0, depth0, key0, low0, high0, near0, n_classes):
    """Grow a subtree on the rows from a0 to b0.

    Parameters
    ----------
    values, offsets : Distinct values of all columns, and where those of each begin.
    words : Words of a set of categories.
    marks : Room for one mark a row.
    depth0, key0, low0, high0, near0 : Depth of the subtree's root, key of its draws, bounds of its values, a number near y.

    Returns
    -------
    The arrays of a tree; and of each node left to others its number, rows, depth, key, bounds and value.
    """
    elements, criterion, max_leaves = data.elements, limits.criterion, limits.max_leaves
    rows, m, d, unit = elements[len(elements) - 1], b0 - a0, len(data.n_codes), TIE * limits.spread
    most = 0
    for j in range(d):
        if data.counted_at[j] >= 0:
            most = max(most, data.n_codes[j])
    by_class = criterion <= ERROR
    bins = most + 1
    room = Room(
        np.empty(CHUNK, dtype=np.int64),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(m if criterion in (ERROR, ABSOLUTE) else 0),
        np.zeros(n_classes),
        np.zeros(n_classes),
        np.zeros(bins, dtype=np.int64),
        np.zeros((bins, n_classes)),
        np.zeros(bins),
        np.zeros(bins, dtype=np.int64),
        np.zeros(bins),
        np.zeros(d, dtype=np.int64),
        np.zeros(m + 1 if criterion == ABSOLUTE else 0),
        np.zeros(m + 1 if criterion == ABSOLUTE else 0),
        np.zeros(m if criterion == ABSOLUTE else 0),
        np.zeros(m if criterion == ABSOLUTE else 0, dtype=np.uint64),
    )
    spare = np.empty(m, dtype=np.uint64)
    size = 64
    feature, child = np.full(size, -2, dtype=np.int32), np.full(size, -1, dtype=np.int32)
    threshold, missing_left = np.full(size, -2.0), np.zeros(size, dtype=np.bool_)
    set_of, sets = np.full(size, -1, dtype=np.int32), np.zeros((4, words), dtype=np.uint64)
    value = np.zeros((size, n_classes if by_class else 1))
    impurity, gain, weights, samples = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int64)
    # of nodes that wait: where their rows are, and how they are to be split
    at, depths, seeds = np.zeros((size, 2), dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.uint64)
    bounds, plan = np.zeros((size, 2)), np.zeros((size, 3), dtype=np.int64)
    chosen = np.zeros((size, words), dtype=np.uint64)
    waiting, n_waiting = np.zeros(size, dtype=np.int64), 0
    left_out, n_left_out = np.zeros(size, dtype=np.int64), 0
    classes = np.zeros(n_classes)
    count, n_sets, leaves = 1, 0, 1
    at[0, 0], at[0, 1], depths[0], seeds[0] = a0, b0, depth0, key0
    bounds[0, 0], bounds[0, 1] = low0, high0
    near, fresh, first = near0, 1, 0
    while True:
        for node in range(first, first + fresh):  # nodes that were just made: what they are, and how they are best split
            a, b = at[node]
            v, total, off, mixed = summary(data, criterion, rows, a, b, near, classes)
            weights[node], samples[node], impurity[node] = total, b - a, mixed / total
            low, high = bounds[node]
            if by_class:
                for k in range(n_classes):
                    value[node, k] = classes[k] / total
                if not low <= value[node, n_classes - 1] <= high:  # by rounding, as below
                    value[node, 1] = min(max(value[node, 1], low), high)
                    value[node, 0] = 1.0 - value[node, 1]
            else:
                value[node, 0] = min(max(v, low), high)
            if ends(data, limits, rows, a, b, depths[node]):
                continue
            if samples[node] <= limits.pending:
                left_out[n_left_out] = node
                n_left_out += 1
                continue
            slack = TIE * np.sqrt(mixed / total) + ULP * abs(v)
            this = Node(a, b, v, total, off, mixed, low, high, slack)
            score, column, cut, to_left = find_split(data, limits, room, this, classes, seeds[node], chosen[node])
            if column < 0:
                continue
            gain[node] = gain_of(score, classes, total, off, mixed, criterion)
            if gain[node] < limits.min_gain * (1.0 - TIE):
                gain[node] = 0.0
                continue
            plan[node, 0], plan[node, 1], plan[node, 2] = column, cut, to_left
            waiting[n_waiting] = node
            n_waiting += 1
        if n_waiting == 0 or (max_leaves > 0 and leaves >= max_leaves):
            break
        pick = n_waiting - 1
        if max_leaves > 0:
            for i in range(n_waiting):
                # the first among equals, whatever was rounded
                if gain[waiting[i]] > gain[waiting[pick]] + unit or (
                    gain[waiting[i]] >= gain[waiting[pick]] - unit and waiting[i] < waiting[pick]
                ):
                    pick = i
        node = waiting[pick]
        for i in range(pick, n_waiting - 1):
            waiting[i] = waiting[i + 1]
        n_waiting -= 1
        if count + 2 > size:
            feature, child = _longer(feature, -2), _longer(child, -1)
            threshold, missing_left, set_of = _longer(threshold, -2.0), _longer(missing_left, False), _longer(set_of, -1)
            impurity, gain, weights, samples = (
                _longer(impurity, 0.0),
                _longer(gain, 0.0),
                _longer(weights, 0.0),
                _longer(samples, 0),
            )
            depths, seeds, waiting, left_out = _longer(depths, 0), _longer(seeds, 0), _longer(waiting, 0), _longer(left_out, 0)
            value, at, bounds, plan, chosen = _taller(value), _taller(at), _taller(bounds), _taller(plan), _taller(chosen)
            size *= 2
        column, cut, to_left = plan[node, 0], plan[node, 1], plan[node, 2] == 1
        a, b = at[node]
        n_left = mark_left(data, a, b, column, cut, to_left, chosen[node], marks)
        feature[node], child[node] = column, count
        if data.categorical[column]:
            if n_sets == len(sets):
                sets = _taller(sets)
            sets[n_sets], set_of[node], threshold[node] = chosen[node], n_sets, np.nan
            n_sets += 1
        else:
            threshold[node] = threshold_of(data, a, b, column, cut, values, offsets)
        any_missing = has_missing(data, a, b, column)
        missing_left[node] = to_left if any_missing else heavier(data, rows, a, b, marks)
        for s in range(2):
            at[count + s, 0], at[count + s, 1] = (a, a + n_left) if s == 0 else (a + n_left, b)
            depths[count + s] = depths[node] + 1
            seeds[count + s] = mix(seeds[node], U1 if s == 0 else U2)
            bounds[count + s] = bounds[node]
        part(elements, len(elements) - 1, len(elements), a, b, marks, spare)
        near = value[node, 0]
        if not ends(data, limits, rows, a, a + n_left, depths[node] + 1) or not ends(
            data, limits, rows, a + n_left, b, depths[node] + 1
        ):
            part(elements, 0, len(elements) - 1, a, b, marks, spare)
        if data.signs[column] != 0:
            _tighten(data, criterion, rows, a, a + n_left, b, near, data.signs[column], bounds, count, classes)
        first, fresh, leaves = count, 2, leaves + 1
        count += 2
    others = left_out[:n_left_out]
    return (
        feature[:count], threshold[:count], child[:count], missing_left[:count], set_of[:count], sets[:n_sets], value[:count],
        impurity[:count], gain[:count], samples[:count], weights[:count], others.copy(), at[others], depths[others],
        seeds[others], bounds[others],
    )  # fmt: skip


@kernel
def _longer(x, fill):
    """Double the length of an array."""
    y = np.full(2 * len(x), fill, dtype=x.dtype)
    y[: len(x)] = x
    return y


@kernel
def _taller(x):
    """Double the number of rows of an array."""
    y = np.zeros((2 * len(x), x.shape[1]), dtype=x.dtype)
    y[: len(x)] = x
    return y


@kernel
def ends(data, limits, rows, a, b, depth):
    """Tell whether a node is a leaf for a reason that is seen at once: too deep, too small, or nothing to tell apart."""
    labels, y = data.labels, data.y
    if depth >= limits.max_depth or b - a < limits.min_rows or b - a < 2 * limits.least:
        return True
    first = (rows[a] >> ROW) & ROWS
    for i in range(a + 1, b):
        row = (rows[i] >> ROW) & ROWS
        if labels[row] != labels[first] or y[row] != y[first]:
            return False
    return True


@kernel
def _tighten(data, criterion, rows, a, middle, b, near, sign, bounds, first, classes):
    """Bound the values of two children by the middle between them, so that no descendant breaks the constraint."""
    one = summary(data, criterion, rows, a, middle, near, classes)[0]
    if criterion <= ERROR:
        one = classes[1] / classes.sum()
    two = summary(data, criterion, rows, middle, b, near, classes)[0]
    if criterion <= ERROR:
        two = classes[1] / classes.sum()
    between = 0.5 * one + 0.5 * two
    up, down = (1, 0) if sign > 0 else (0, 1)
    bounds[first + down, 1] = min(bounds[first + down, 1], between)
    bounds[first + up, 0] = max(bounds[first + up, 0], between)
