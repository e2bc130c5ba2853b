"""The best split of one node: every column, every cut, in every direction for missing values.

Columns come in two forms. Sorted ones have their elements in order (`presort`); a scan reads them as they stand. Columns with
few distinct values, and categorical ones, are counted: one pass over the rows of the node fills a bin for each value, and a cut
parts the bins. Categories have no order of their own. For two classes, or for squares, the best set of categories is found by
ordering them by their mean and cutting that order, as Fisher and Breiman et al. have shown; with more classes the order by the
share of each class is tried in turn, which is a heuristic, and so is the order by means for absolute values.

References: Fisher, Journal of the American Statistical Association, 1958; Breiman, Friedman, Olshen & Stone, 1984, theorem 4.5.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.draw import shuffle
from lemmata.tree.presort import MISSING, RANK, ROW, ROWS
from lemmata.tree.scan_classes import ERROR, TIE, of_row, scan_class_bins, scan_classes, scan_pair
from lemmata.tree.scan_values import scan_mean, scan_mean_bins, scan_median

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
def fill_bins(rows, a, b, codes, n_codes, labels, y, weight, center, classes, bin_rows, bin_weights, bin_sums, order):
    """Count the rows of a node by the value of a column; return how many values occur, missing ones (the last code) included.

    Classes have their weights in `bin_weights`; numbers have the weight there and the sum about the center in `bin_sums`.
    """
    found = 0
    if b - a <= FEW:  # looking at every bin would take longer than sorting
        for i in range(a, b):
            c, k = codes[(rows[i] >> ROW) & ROWS], found
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
            bin_rows[codes[(rows[i] >> ROW) & ROWS]] += 1
        for c in range(n_codes + 1):
            if bin_rows[c] > 0:
                order[found] = c
                found += 1
    if order[found - 1] != n_codes:
        bin_rows[n_codes] = 0
    for i in range(found):
        bin_weights[order[i], :] = 0.0
        bin_sums[order[i]] = 0.0
    if found == 1:
        return found
    for i in range(a, b):
        row = (rows[i] >> ROW) & ROWS
        c = codes[row]
        w = of_row(weight, row)
        if classes:
            bin_weights[c, labels[row]] += w
        else:
            bin_weights[c, 0] += w
            bin_sums[c] += w * (y[row] - center)
    return found


@kernel
def sort_bins(order, key):
    """Sort values by their keys, equal ones as they stand."""
    for i in range(1, len(order)):
        c, k = order[i], i - 1
        while k >= 0 and key[order[k]] > key[c]:
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = c


@kernel
def find_split(data, options, room, a, b, center, total, sum_total, classes, impurity, key, low, high, best_set):
    """Find the best split of a node.

    Parameters
    ----------
    data : See `grow.Data`: elements, where each column has them, codes, labels, y, weights …
    options : Criterion and limits.
    room : Arrays to work in.
    a, b : Where the node begins and ends in the elements.
    center, total, sum_total : Mean (or median) of y, weight of the node, and the sum about the center.
    classes : Weight of each class in the node.
    impurity : Times the weight of the node: the unit of ties.
    key : What the node draws its columns by.
    low, high : Bounds of its values.
    best_set : Where the categories that go left are written.

    Returns
    -------
    score, column, cut, missing_left : The cut is the rank or code up to which rows go left; the column is -1 without a split.
    """
    elements, sorted_at, codes, counted_at, n_codes, categorical, labels, y, weight, signs, place, logs, missing_at = data
    criterion, max_features, least, lightest, pair = options
    (
        prefix,
        score,
        suffix,
        left,
        right,
        bin_rows,
        bin_weights,
        bin_sums,
        order,
        keys,
        columns,
        tree_w,
        tree_s,
        sorted_y,
        buffer,
    ) = room
    n, d = b - a, len(n_codes)
    n_classes = len(classes)
    by_class = criterion <= ERROR
    best, column, cut, best_missing = -np.inf, -1, -1, False
    tie = TIE * impurity
    for j in range(d):
        columns[j] = j
    if max_features < d:
        shuffle(key, columns)
    drawn = 0
    rows = elements[len(elements) - 1]
    if criterion == ABSOLUTE:  # the last column of elements has the rows in the order of y
        for i in range(a, b):
            row = (rows[i] >> ROW) & ROWS
            place[row] = i - a
            sorted_y[i - a] = y[row]
    for q in range(d):
        if drawn >= max_features and column >= 0:
            break
        j = columns[q]
        sign = signs[j]
        if counted_at[j] < 0:
            e = elements[sorted_at[j]]
            if (e[a] >> RANK) == (e[b - 1] >> RANK):
                continue
            drawn += 1
            missing = count_missing(e, a, b) if missing_at[j] else 0
            for side in range(2 if missing > 0 else 1):
                stop = b - 1 if side == 0 else b - missing - 1
                position = -1
                if pair:
                    ones = 0
                    if side == 1:
                        for i in range(b - missing, b):
                            ones += np.int64(e[i] & U1)
                    s, position = scan_pair(
                        e, a, stop, n, np.int64(classes[1]), side * missing, ones, least, best, tie, prefix, score
                    )
                elif by_class:
                    left[:] = 0.0
                    if side == 1:
                        for i in range(b - missing, b):
                            row = (e[i] >> ROW) & ROWS
                            left[labels[row]] += of_row(weight, row)
                    s, position = scan_classes(
                        e, a, stop, n, labels, weight, classes, left, right, criterion, least, lightest, best, tie, suffix,
                        logs, sign, low, high,
                    )  # fmt: skip
                elif criterion == SQUARED:
                    wl, sl = 0.0, 0.0
                    if side == 1:
                        for i in range(b - missing, b):
                            row = (e[i] >> ROW) & ROWS
                            w = of_row(weight, row)
                            wl += w
                            sl += w * (y[row] - center)
                    s, position = scan_mean(
                        e, a, stop, n, y, weight, center, total, sum_total, wl, sl, least, lightest, best, tie, sign, low, high
                    )
                else:
                    s, position = scan_median(
                        e, a, stop, b, n, y, weight, place, sorted_y, center, side == 1, least, lightest, best, tie,
                        tree_w[: n + 1], tree_s[: n + 1], suffix,
                    )  # fmt: skip
                if position >= 0:
                    best, column, cut, best_missing = s, j, np.int64(e[position] >> RANK), side == 1
            continue
        own = codes[counted_at[j]]
        found = fill_bins(
            rows, a, b, own, n_codes[j], labels, y, weight, center, by_class, bin_rows, bin_weights, bin_sums, order
        )
        if found == 1:
            continue
        drawn += 1
        last = n_codes[j]
        missing = bin_rows[last]
        valid = found - 1 if missing > 0 else found
        for turn in range(n_classes if categorical[j] and by_class and n_classes > 2 else 1):
            if categorical[j]:
                for i in range(valid):
                    c = order[i]
                    if by_class:
                        w = 0.0
                        for k in range(n_classes):
                            w += bin_weights[c, k]
                        keys[c] = bin_weights[c, 1 if n_classes == 2 else turn] / w
                    else:
                        keys[c] = bin_sums[c] / bin_weights[c, 0]
                sort_bins(order[:valid], keys)
            for side in range(2 if missing > 0 and valid > 0 else 1):
                cuts = order[:found] if side == 0 else order[:valid]
                n_left = missing if side == 1 else 0
                if by_class:
                    for k in range(n_classes):
                        left[k] = bin_weights[last, k] if side == 1 else 0.0
                    s, position = scan_class_bins(
                        cuts, bin_rows, bin_weights, n, n_left, classes, left, right, criterion, least, lightest, best, tie,
                        sign, low, high,
                    )  # fmt: skip
                elif criterion == SQUARED:
                    wl, sl = (bin_weights[last, 0], bin_sums[last]) if side == 1 else (0.0, 0.0)
                    s, position = scan_mean_bins(
                        cuts, bin_rows, bin_weights[:, 0], bin_sums, n, n_left, center, total, sum_total, wl, sl, least,
                        lightest, best, tie, sign, low, high,
                    )  # fmt: skip
                else:
                    into_buffer(rows, a, b, own, order[:found], keys, bin_rows, buffer)
                    stop = n - 1 if side == 0 else n - missing - 1
                    s, position = scan_median(
                        buffer, 0, stop, n, n, y, weight, place, sorted_y, center, side == 1, least, lightest, best, tie,
                        tree_w[: n + 1], tree_s[: n + 1], suffix,
                    )  # fmt: skip
                    if position >= 0:
                        position = np.int64(buffer[position] >> RANK)
                if position >= 0:
                    best, column, cut, best_missing = s, j, cuts[position], side == 1
                    if categorical[j]:
                        best_set[:] = np.uint64(0)
                        for i in range(position + 1):
                            if cuts[i] < last:
                                code = np.uint64(cuts[i])
                                best_set[code >> SIX] |= U1 << (code & LOW6)
    return best, column, cut, best_missing


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
