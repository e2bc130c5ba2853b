"""The list of groups that a column of a node is, and the best cut of it.

Groups are rows that share a rank or a category; each has its sums, integers in fixed point that do not depend on the order of
rows: the weight of every class, or the weight and the weighted target, and the number of rows (see `growth`).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.growth_binary import sort_keys
from lemmata.ensemble.ranks import COARSE, FINE
from lemmata.tree.scan_classes import GINI

SQUARES = 2  # beside the criteria for classes
BINS = COARSE + 1
U0, U1, U2, U6, U8, U32 = (np.uint64(k) for k in (0, 1, 2, 6, 8, 32))
LOW, LOW6, NAN = np.uint64(2**32 - 1), np.uint64(63), np.uint64(FINE)


class Table(NamedTuple):
    """The rows as trees see them; `weight` and `moment` (weight times target) in fixed point, `count` what limits count."""

    coarse: np.ndarray
    fine: np.ndarray
    last: np.ndarray
    categories: np.ndarray  # how many each column has; 0 in numerical ones
    label: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    moment: np.ndarray
    count: np.ndarray


class Rule(NamedTuple):
    """When and how to split."""

    criterion: int
    n_drawn: int
    limit: int
    max_depth: int
    min_split: int
    min_leaf: int
    lightest: float  # weight of a side, as a share of all; while a tree is grown, the weight itself
    least_gain: float  # relative to the weight of all; while a tree is grown, the worth of a split, in its units
    max_leaves: int  # 0 grows depth first, without a bound


class Room(NamedTuple):
    """Where the search for a split works."""

    histogram: np.ndarray
    groups: np.ndarray
    codes: np.ndarray
    order: np.ndarray
    means: np.ndarray
    missing: np.ndarray
    left: np.ndarray
    keys: np.ndarray
    own: np.ndarray  # the sums of each row of a node, for a numerical target
    columns: np.ndarray
    swapped: np.ndarray
    chosen: np.ndarray
    words: np.ndarray  # the set of categories of the best split so far


@kernel
def add_row(sums, row, table, criterion):
    """Add a row to its sums."""
    if criterion == SQUARES:
        sums[0] += table.weight[row]
        sums[1] += table.moment[row]
    else:
        sums[table.label[row]] += table.weight[row]
    sums[len(sums) - 1] += table.count[row]


@kernel
def mass_of(sums, criterion):
    """Multiply the weight of rows of several classes by their impurity."""
    total = other = 0.0
    for k in range(len(sums) - 1):
        total += sums[k]
    for k in range(len(sums) - 1):
        s = np.float64(sums[k])
        if criterion == GINI:
            other += s * (total - s) / total
        elif s > 0:
            other += s * np.log2(total / s)
    return other


@kernel
def worth_of(left, node, mass, criterion, lightest):
    """Tell by how much a split into classes lowers weight times impurity; -1 if a side is too light."""
    a = b = 0.0
    for k in range(len(node) - 1):
        a += left[k]
        b += node[k] - left[k]
    if min(a, b) < lightest:
        return -1.0
    lost = 0.0
    for k in range(len(node) - 1):
        s, r = np.float64(left[k]), np.float64(node[k] - left[k])
        if criterion == GINI:
            lost += s * (a - s) / a + r * (b - r) / b
        else:
            lost += (s * np.log2(a / s) if s > 0 else 0.0) + (r * np.log2(b / r) if r > 0 else 0.0)
    return max(mass - lost, 0.0)


@kernel
def scan_squares(room, g, node, rule, best):
    """Do what `scan` does for a numerical target, with the three sums in registers."""
    groups, order, missing = room.groups, room.order, room.missing
    weight, moment, count = node[0], node[1], node[2]
    n, mean = np.float64(weight), np.float64(moment) / np.float64(weight)
    found, missing_left = -1, False
    for side in range(2 if missing[2] > 0 else 1):
        w, s, c = missing[0] * side, missing[1] * side, missing[2] * side
        for i in range(g if side == 0 and missing[2] > 0 else g - 1):
            at = np.uint64(order[i])
            w += groups[at, 0]
            s += groups[at, 1]
            c += groups[at, 2]
            if c < rule.min_leaf or count - c < rule.min_leaf:
                continue
            # the lighter side, so that a split and its mirror image, of another column, are worth the same to the last bit
            turn = 2 * w > weight or (2 * w == weight and 2 * s > moment)
            u, v = (weight - w, moment - s) if turn else (w, s)
            if u < rule.lightest:
                continue
            t = np.float64(v) - mean * np.float64(u)
            worth = t * t * n / (np.float64(u) * (n - np.float64(u)))
            if worth > best:
                best, found, missing_left = worth, i, side == 1
    return best, found, missing_left


@kernel
def scan(room, g, node, mass, rule, best):
    """Find the best cut of the list of g groups in `order`: (worth, last group to the left, whether the missing go left)."""
    if rule.criterion == SQUARES:
        return scan_squares(room, g, node, rule, best)
    groups, order, missing, left = room.groups, room.order, room.missing, room.left
    last = len(node) - 1
    found, missing_left = -1, False
    for side in range(2 if missing[last] > 0 else 1):
        left[:] = missing * side
        cuts = g if side == 0 and missing[last] > 0 else g - 1  # all values to one side, if the other has the missing ones
        for i in range(cuts):
            for k in range(len(node)):
                left[k] += groups[order[i], k]
            if left[last] < rule.min_leaf or node[last] - left[last] < rule.min_leaf:
                continue
            worth = worth_of(left, node, mass, rule.criterion, rule.lightest)
            if worth > best:
                best, found, missing_left = worth, i, side == 1
    return best, found, missing_left


@kernel
def count_rows(rows, a, b, more, table, room, criterion):
    """Sum the rows of a node by their coarse ranks, in the columns chosen."""
    histogram, chosen, coarse = room.histogram, room.chosen, table.coarse
    last = np.uint64(histogram.shape[1] - 1)
    stop = np.uint64(more)
    for i in range(a, b):
        row = np.uint64(rows[i])
        w, c = table.weight[row], table.count[row]
        if criterion == SQUARES:
            m = table.moment[row]
            for q in range(stop):
                at = (q << U8) + np.uint64(coarse[row, chosen[q]])
                histogram[at, U0] += w
                histogram[at, U1] += m
                histogram[at, U2] += c
        else:
            k = np.uint64(table.label[row])
            for q in range(stop):
                at = (q << U8) + np.uint64(coarse[row, chosen[q]])
                histogram[at, k] += w
                histogram[at, last] += c


@kernel
def groups_of_bins(at, room):
    """List the groups of a column from its histogram; return how many there are."""
    histogram, groups = room.histogram, room.groups
    last = groups.shape[1] - 1
    g = 0
    for k in range(COARSE):
        if histogram[at + k, last] > 0:
            groups[g] = histogram[at + k]
            room.codes[g] = k
            g += 1
    room.missing[:] = histogram[at + COARSE]
    return g


@kernel
def groups_of_ranks(rows, a, b, column, table, room, criterion):
    """List the groups of a column from the fine ranks of the rows; return how many there are."""
    for i in range(a, b):
        row = np.uint64(rows[i])
        room.keys[i - a] = (np.uint64(table.fine[row, column]) << U32) | row
    sort_keys(room.keys, b - a)
    room.missing[:] = 0
    g = -1
    for i in range(b - a):
        code, row = np.int64(room.keys[i] >> U32), np.int64(room.keys[i] & LOW)
        if code == FINE:
            add_row(room.missing, row, table, criterion)
            continue
        if g < 0 or code != room.codes[g]:
            g += 1
            room.codes[g] = code
            room.groups[g] = 0
        add_row(room.groups[g], row, table, criterion)
    return g + 1


@kernel
def scan_ranks(rows, a, b, column, table, room, node, rule, best):
    """Find the best cut of a numerical column by its fine ranks, for a numerical target: (worth, rank, missing left).

    This is what `groups_of_ranks` and `scan` do together, for the many small nodes of trees for numbers.
    """
    keys, own, m = room.keys, room.own, b - a
    for i in range(m):
        keys[i] = (np.uint64(table.fine[np.uint64(rows[a + i]), column]) << U32) | np.uint64(i)
    sort_keys(keys, m)
    values = m
    hole_weight = hole_moment = hole_count = np.int64(0)
    while values > 0 and keys[values - 1] >> U32 == NAN:
        values -= 1
        at = keys[values] & LOW
        hole_weight += own[at, 0]
        hole_moment += own[at, 1]
        hole_count += own[at, 2]
    weight, moment, count = node[0], node[1], node[2]
    n, mean = np.float64(weight), np.float64(moment) / np.float64(weight)
    rank, missing_left = -1, False
    for side in range(2 if values < m else 1):
        w, s, c = hole_weight * side, hole_moment * side, hole_count * side
        for i in range(values if side == 0 and values < m else values - 1):
            at = keys[i] & LOW
            w += own[at, 0]
            s += own[at, 1]
            c += own[at, 2]
            if i + 1 < values and keys[i] >> U32 == keys[i + 1] >> U32:
                continue
            if c < rule.min_leaf or count - c < rule.min_leaf:
                continue
            turn = 2 * w > weight or (2 * w == weight and 2 * s > moment)  # as in `scan_squares`
            u, v = (weight - w, moment - s) if turn else (w, s)
            if u < rule.lightest:
                continue
            t = np.float64(v) - mean * np.float64(u)
            worth = t * t * n / (np.float64(u) * (n - np.float64(u)))
            if worth > best:
                best, missing_left = worth, side == 1
                rank = FINE if i == values - 1 else np.int64(((keys[i] >> U32) + (keys[i + 1] >> U32) - U1) >> U1)
    return best, rank, missing_left


@kernel
def order_by_mean(g, room, criterion, k):
    """Order categories by their mean target, or by the share of class k."""
    for i in range(g):
        sums = room.groups[i]
        total = np.float64(sums[0])
        if criterion != SQUARES:
            total = 0.0
            for c in range(len(sums) - 1):
                total += sums[c]
        mean = sums[1 if criterion == SQUARES else k] / total
        j = i
        while j > 0 and room.means[j - 1] > mean:
            room.means[j], room.order[j] = room.means[j - 1], room.order[j - 1]
            j -= 1
        room.means[j], room.order[j] = mean, i


@kernel
def scan_categories(room, g, node, mass, rule, best):
    """Find the best set of categories to go left, and write it to `words` if it is better than the best so far."""
    classes = len(node) - 1
    orders = classes if rule.criterion != SQUARES and classes > 2 else 1
    found, missing_left = -1, False
    for k in range(orders):
        order_by_mean(g, room, rule.criterion, k)
        best, cut, side = scan(room, g, node, mass, rule, best)
        if cut >= 0:
            found, missing_left = cut, side
            room.words[:] = 0
            for i in range(cut + 1):
                code = np.uint64(room.codes[room.order[i]])
                room.words[code >> U6] |= U1 << (code & LOW6)
    return best, found, missing_left
