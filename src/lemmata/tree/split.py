"""The best split of one node: every column, every cut, in every direction for missing values.

Columns come in two forms. Sorted ones have their elements in order (`presort`); a scan reads them as they stand. Columns with
few distinct values, and categorical ones, are counted: one pass over the rows of the node fills a bin for each value, and a cut
parts the bins. Categories have no order of their own. For two classes, or for squares, the best set of categories is found by
ordering them by their mean and cutting that order, as Fisher and Breiman et al. have shown; with more classes the order by the
share of each class is tried in turn, which is a heuristic, and so is the order by means for absolute values.

References: Fisher, Journal of the American Statistical Association, 1958; Breiman, Friedman, Olshen & Stone, 1984, theorem 4.5.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.draw import shuffle
from lemmata.tree.presort import MISSING, RANK, ROW, ROWS
from lemmata.tree.scan_classes import ERROR, TIE, of_row, scan_class_bins, scan_classes, scan_pair
from lemmata.tree.scan_values import scan_mean, scan_mean_bins, scan_mean_of_rows, scan_median

SQUARED, ABSOLUTE = 3, 4
FEW = 32  # rows
U1, SIX, LOW6 = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel
def count_missing(e, a, b):
    """Count the missing values at the end of a node's elements."""
    count = 0
    while count < b - a and (e[b - 1 - count] >> RANK) == MISSING:
        count += 1
    return count


@kernel
def fill_bins(elements, a, b, codes, at, n_codes, labels, y, weight, center, classes, bin_rows, bin_weights, bin_sums, order):
    """Count the rows of a node by the value of a column; return how many values occur, missing ones (the last code) included.

    Classes have their weights in `bin_weights`; numbers have the weight there and the sum about the center in `bin_sums`.
    """
    found, last = 0, len(elements) - 1
    if b - a <= FEW:  # looking at every bin would take longer than sorting
        for i in range(a, b):
            c, k = codes[at, (elements[last, i] >> ROW) & ROWS], found
            while k > 0 and order[k - 1] > c:
                k -= 1
            if k > 0 and order[k - 1] == c:
                bin_rows[c] += 1
                continue
            for q in range(found, k, -1):
                order[q] = order[q - 1]
            order[k] = c
            bin_rows[c] = 1
            found += 1
    else:
        for c in range(n_codes + 1):
            bin_rows[c] = 0
        for i in range(a, b):
            bin_rows[codes[at, (elements[last, i] >> ROW) & ROWS]] += 1
        for c in range(n_codes + 1):
            if bin_rows[c] > 0:
                order[found] = c
                found += 1
    if order[found - 1] != n_codes:
        bin_rows[n_codes] = 0
    for i in range(found):
        bin_weights[order[i], :] = 0.0
        bin_sums[order[i]] = 0.0
    for i in range(a, b if found > 1 else a):
        row = (elements[last, i] >> ROW) & ROWS
        c = codes[at, row]
        w = of_row(weight, row)
        if classes:
            bin_weights[c, labels[row]] += w
        else:
            bin_weights[c, 0] += w
            bin_sums[c] += w * (y[row] - center)
    return found


@kernel
def sort_bins(order, m, key):
    """Sort the first m values by their keys, equal ones as they stand."""
    for i in range(1, m):
        c, k = order[i], i - 1
        while k >= 0 and key[order[k]] > key[c]:
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = c


class Room(NamedTuple):
    """Arrays to work in, so that a search makes none of its own."""

    prefix: np.ndarray  # counts, sums and scores of a chunk of cuts
    sums: np.ndarray
    score: np.ndarray
    suffix: np.ndarray  # what lies right of each cut
    left: np.ndarray  # weights of the classes on either side
    right: np.ndarray
    bin_rows: np.ndarray  # rows, weights and sums of each value of a column that is counted
    bin_weights: np.ndarray
    bin_sums: np.ndarray
    order: np.ndarray  # the values that occur
    keys: np.ndarray  # what categories are ordered by
    columns: np.ndarray  # in the order in which they are drawn
    tree_weights: np.ndarray  # partial sums over the ranks of y
    tree_sums: np.ndarray
    sorted_y: np.ndarray
    buffer: np.ndarray  # elements of a column that is counted, put in order


class Node(NamedTuple):
    """What a search knows of its node."""

    a: int  # where its elements begin and end
    b: int
    center: float  # mean (or median) of y
    total: float  # weight
    sum_total: float  # of the distances to the center, times weight
    impurity: float  # times weight: the unit of ties
    low: float  # bounds of its values
    high: float
    slack: float  # by how much means may break a constraint by rounding


@kernel
def find_split(data, limits, room, node, classes, key, best_set):
    """Find the best split of a node.

    Parameters
    ----------
    data, limits : See `grow.Data` and `grow.Limits`.
    classes : Weight of each class in the node.
    key : What the node draws its columns by.
    best_set : Where the categories that go left are written.

    Returns
    -------
    score, column, cut, missing_left : The cut is the rank or code up to which rows go left; the column is -1 without a split.
    """
    # A function that gets a tuple counts itself among the holders of every array in it, atomically, so that threads wait for
    # each other: hence arrays one by one, and no views, for what is done to every column.
    elements, sorted_at, codes, counted_at, n_codes = data.elements, data.sorted_at, data.codes, data.counted_at, data.n_codes
    labels, y, weight, place, logs = data.labels, data.y, data.weight, data.place, data.logs
    missing_at, categorical, signs = data.missing_at, data.categorical, data.signs
    columns, prefix, sums, score, suffix = room.columns, room.prefix, room.sums, room.score, room.suffix
    left, right, sorted_y, tree_weights, tree_sums = room.left, room.right, room.sorted_y, room.tree_weights, room.tree_sums
    bin_rows, bin_weights, bin_sums, order, keys = room.bin_rows, room.bin_weights, room.bin_sums, room.order, room.keys
    d, a, b, tie, ones = len(columns), node.a, node.b, TIE * node.impurity, np.int64(classes[len(classes) - 1])
    best, s, column, cut, missing_left, drawn, least = -np.inf, -np.inf, -1, -1, False, 0, limits.least
    for j in range(d):
        columns[j] = j
    if limits.max_features < d:
        shuffle(key, columns)
    if limits.criterion == ABSOLUTE:  # the last column of elements has the rows in the order of y
        for i in range(a, b):
            row = (elements[len(elements) - 1, i] >> ROW) & ROWS
            place[row] = i - a
            sorted_y[i - a] = y[row]
    for q in range(d):
        if drawn >= limits.max_features and column >= 0:
            break
        j = columns[q]
        k, holes = sorted_at[j], missing_at[j]
        if counted_at[j] < 0 and not holes and (limits.pair or limits.plain):
            varies, at, side = (elements[k, a] >> RANK) != (elements[k, b - 1] >> RANK), -1, False
            if varies:
                if limits.pair:
                    s, position = scan_pair(elements, k, a, b - 1, b - a, ones, 0, 0, least, best, tie, prefix, score)
                else:
                    s, position = scan_mean_of_rows(
                        elements, k, a, b - 1, b - a, y, node.center, node.sum_total, 0, 0.0, least, best, tie, sums, score
                    )
                if position >= 0:
                    at = np.int64(elements[k, position] >> RANK)
        elif counted_at[j] < 0 and limits.pair:
            varies, s, at, side = best_of_pair(elements, k, a, b, ones, least, best, tie, prefix, score)
        elif counted_at[j] < 0:
            varies, s, at, side = best_of_sorted(
                node, limits, elements, k, holes, signs[j], labels, y, weight, place, logs, classes, left, right, suffix,
                sorted_y, tree_weights, tree_sums, best,
            )  # fmt: skip
        else:
            varies, s, at, side = best_of_counted(
                node, limits, elements, codes, counted_at[j], n_codes[j], categorical[j], signs[j], labels, y, weight, place,
                classes, left, right, suffix, sorted_y, tree_weights, tree_sums, bin_rows, bin_weights, bin_sums, order, keys,
                room.buffer, best, best_set,
            )  # fmt: skip
        drawn += varies
        if at >= 0:
            best, column, cut, missing_left = s, j, at, side
    return best, column, cut, missing_left


@kernel
def best_of_pair(elements, k, a, b, ones, least, best, tie, prefix, score):
    """Do as `best_of_sorted` for two classes by Gini, rows counted."""
    cut, missing_left, e = -1, False, elements[k]
    if (e[a] >> RANK) == (e[b - 1] >> RANK):
        return False, best, cut, missing_left
    missing = count_missing(e, a, b)
    s, position = scan_pair(elements, k, a, b - 1, b - a, ones, 0, 0, least, best, tie, prefix, score)
    if position >= 0:
        best, cut = s, np.int64(e[position] >> RANK)
    if missing > 0:
        among = 0
        for i in range(b - missing, b):
            among += np.int64(e[i] & U1)
        s, position = scan_pair(elements, k, a, b - missing - 1, b - a, ones, missing, among, least, best, tie, prefix, score)
        if position >= 0:
            best, cut, missing_left = s, np.int64(e[position] >> RANK), True
    return True, best, cut, missing_left


@kernel
def best_of_sorted(
    node, limits, elements, k, holes, sign, labels, y, weight, place, logs, classes, left, right, suffix, sorted_y,
    tree_weights, tree_sums, best,
):  # fmt: skip
    """Find the best cut of a sorted column; return (whether it varies, score, rank or -1, whether missing values go left)."""
    criterion, least, lightest = limits.criterion, limits.least, limits.lightest
    a, b, n, tie = node.a, node.b, node.b - node.a, TIE * node.impurity
    e, cut, missing_left = elements[k], -1, False
    varies = (e[a] >> RANK) != (e[b - 1] >> RANK)
    missing = count_missing(e, a, b) if holes else 0
    for side in range((2 if missing > 0 else 1) if varies else 0):
        stop = b - 1 if side == 0 else b - missing - 1
        first_left = b if side == 0 else b - missing  # rows from here on are left of every cut
        if criterion <= ERROR:
            left[:] = 0.0
            for i in range(first_left, b):
                row = (e[i] >> ROW) & ROWS
                left[labels[row]] += of_row(weight, row)
            s, position = scan_classes(
                e, a, stop, n, labels, weight, classes, left, right, criterion, least, lightest, best, tie, suffix, logs, sign,
                node.low, node.high,
            )  # fmt: skip
        elif criterion == SQUARED:
            wl, sl = 0.0, 0.0
            for i in range(first_left, b):
                row = (e[i] >> ROW) & ROWS
                w = of_row(weight, row)
                wl += w
                sl += w * (y[row] - node.center)
            s, position = scan_mean(
                e, a, stop, n, y, weight, node.center, node.total, node.sum_total, wl, sl, least, lightest, best, tie, sign,
                node.low, node.high, node.slack,
            )  # fmt: skip
        else:
            s, position = scan_median(
                e, a, stop, b, n, y, weight, place, sorted_y, node.center, side == 1, least, lightest, best, tie,
                tree_weights[: n + 1], tree_sums[: n + 1], suffix,
            )  # fmt: skip
        if position >= 0:
            best, cut, missing_left = s, np.int64(e[position] >> RANK), side == 1
    return varies, best, cut, missing_left


@kernel
def best_of_counted(
    node, limits, elements, codes, at, last, categorical, sign, labels, y, weight, place, classes, left, right, suffix,
    sorted_y, tree_weights, tree_sums, bin_rows, bin_weights, bin_sums, order, keys, buffer, best, best_set,
):  # fmt: skip
    """Find the best cut of a counted column, or the best set of its categories; return as `best_of_sorted`, with a code.

    Parameters
    ----------
    at, last : Place of the column among the codes, and its last code, which is "missing".
    """
    criterion, least, lightest = limits.criterion, limits.least, limits.lightest
    n, tie, by_class, n_classes = node.b - node.a, TIE * node.impurity, limits.criterion <= ERROR, len(classes)
    cut, missing_left = -1, False
    found = fill_bins(
        elements, node.a, node.b, codes, at, last, labels, y, weight, node.center, by_class, bin_rows, bin_weights, bin_sums,
        order,
    )  # fmt: skip
    missing = bin_rows[last]
    valid = found - 1 if missing > 0 else found
    turns = n_classes if categorical and by_class and n_classes > 2 else 1
    for turn in range(turns if found > 1 else 0):
        if categorical:
            key_bins(order, valid, bin_weights, bin_sums, by_class, 1 if n_classes == 2 else turn, keys)
            sort_bins(order, valid, keys)
        for side in range(2 if missing > 0 else 1):
            m, n_left = (found, 0) if side == 0 else (valid, missing)
            if by_class:
                for k in range(n_classes):
                    left[k] = bin_weights[last, k] if side == 1 else 0.0
                s, position = scan_class_bins(
                    order, m, bin_rows, bin_weights, n, n_left, classes, left, right, criterion, least, lightest, best, tie,
                    sign, node.low, node.high,
                )  # fmt: skip
            elif criterion == SQUARED:
                wl, sl = (bin_weights[last, 0], bin_sums[last]) if side == 1 else (0.0, 0.0)
                s, position = scan_mean_bins(
                    order, m, bin_rows, bin_weights, bin_sums, n, n_left, node.center, node.total, node.sum_total, wl, sl,
                    least, lightest, best, tie, sign, node.low, node.high, node.slack,
                )  # fmt: skip
            else:
                into_buffer(elements[len(elements) - 1], node.a, node.b, codes[at], order[:found], keys, bin_rows, buffer)
                s, position = scan_median(
                    buffer, 0, n - n_left - 1, n, n, y, weight, place, sorted_y, node.center, side == 1, least, lightest, best,
                    tie, tree_weights[: n + 1], tree_sums[: n + 1], suffix,
                )  # fmt: skip
                if position >= 0:
                    position = np.int64(buffer[position] >> RANK)
            if position >= 0:
                best, cut, missing_left = s, order[position], side == 1
                if categorical:
                    best_set[:] = np.uint64(0)
                    for i in range(position + 1):
                        code = np.uint64(order[i])
                        best_set[code >> SIX] |= U1 << (code & LOW6)
    return found > 1, best, cut, missing_left


@kernel
def key_bins(order, n, bin_weights, bin_sums, by_class, k, keys):
    """Write what the first n categories are ordered by: the mean of y, or the share of class k."""
    for i in range(n):
        c = order[i]
        if by_class:
            w = 0.0
            for m in range(bin_weights.shape[1]):
                w += bin_weights[c, m]
            keys[c] = bin_weights[c, k] / w
        else:
            keys[c] = bin_sums[c] / bin_weights[c, 0]


@kernel
def into_buffer(rows, a, b, codes, order, start, bin_rows, buffer):
    """Write the elements of a node by the order of their values, with the place in that order for a rank."""
    at = 0.0
    for i in range(len(order)):
        start[order[i]] = at
        at += bin_rows[order[i]]
    for i in range(len(order)):
        bin_rows[order[i]] = i  # the rank, for the time being
    for i in range(a, b):
        row = (rows[i] >> ROW) & ROWS
        c = codes[row]
        buffer[np.int64(start[c])] = (np.uint64(bin_rows[c]) << RANK) | (row << ROW)
        start[c] += 1.0
    for i in range(len(order)):  # and back to what it counts
        stop = np.int64(start[order[i]])
        bin_rows[order[i]] = stop if i == 0 else stop - np.int64(start[order[i - 1]])
