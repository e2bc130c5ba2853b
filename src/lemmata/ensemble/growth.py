"""Grow a tree of a forest: any number of classes or a numerical target, any weights, missing values, categorical columns.

A column of a node is a list of groups of rows (see `growth_scan`). A split is a cut of the list; it is worth the weight of the
node times its impurity, less that of its children.

- Numerical columns: groups in the order of their ranks. Above `limit` rows groups are coarse ranks, unless all rows share one;
  otherwise fine ranks. The threshold is the edge halfway, in ranks, between the groups at both sides of the cut.
- Categorical columns: one group a category, in the order of their mean target. For squares and for two classes some cut of
  this list is the best of all subsets [1]; for K classes the lists ordered by the share of each class are tried, a heuristic.
- Missing values are a group of their own that goes to either side; in a node without any they go where more rows go.

[1] Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984), theorem 4.5; Fisher, JASA 53 (1958).
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.growth_scan import (
    BINS,
    SQUARES,
    add_row,
    count_rows,
    groups_of_bins,
    groups_of_ranks,
    mass_of,
    scan,
    scan_categories,
    scan_ranks,
)
from lemmata.ensemble.ranks import COARSE, FINE
from lemmata.tree.draw import mix, uniform

CHUNK = 8  # columns counted in one pass: their histograms share a cache
U1, U6, LOW6 = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel
def best_split(rows, a, b, key, node, table, rule, room):
    """Find the best split of a node: (worth, column, rank, whether the missing go left); worth -1 if there is none."""
    d = len(room.columns)
    mass = 0.0 if rule.criterion == SQUARES else mass_of(node, rule.criterion)
    best, by, rank, missing_left = -1.0, -1, -1, False
    drawn = 0
    large = node[len(node) - 1] > rule.limit
    if rule.criterion == SQUARES:
        for i in range(a, b):
            row = np.uint64(rows[i])
            room.own[i - a, 0], room.own[i - a, 1], room.own[i - a, 2] = table.weight[row], table.moment[row], table.count[row]
    while drawn < d and (drawn < rule.n_drawn or best < 0):
        more = min(CHUNK, rule.n_drawn - drawn) if drawn < rule.n_drawn else 1
        for q in range(more):
            i = d - 1 - drawn - q
            j = int(uniform(mix(key, np.uint64(2 + i))) * (i + 1))
            room.swapped[i] = j
            room.columns[i], room.columns[j] = room.columns[j], room.columns[i]
        if large:
            room.histogram[: more * BINS] = 0
            for q in range(more):
                room.chosen[q] = room.columns[d - 1 - drawn - q]
            count_rows(rows, a, b, more, table, room, rule.criterion)
        for q in range(more):
            column = room.columns[d - 1 - drawn - q]
            categories = table.categories[column]
            coarse = large and categories <= COARSE
            if coarse:
                g = groups_of_bins(q * BINS, room)
            if not coarse or (categories == 0 and g == 1):
                coarse = False
                if rule.criterion == SQUARES and categories == 0:
                    best, cut, side = scan_ranks(rows, a, b, column, table, room, node, rule, best)
                    if cut >= 0:
                        by, rank, missing_left = column, cut, side
                    continue
                g = groups_of_ranks(rows, a, b, column, table, room, rule.criterion)
            if categories > 0:
                best, cut, side = scan_categories(room, g, node, mass, rule, best)
                if cut >= 0:
                    by, rank, missing_left = column, -1, side
                continue
            for i in range(g):
                room.order[i] = i
            best, cut, side = scan(room, g, node, mass, rule, best)
            if cut >= 0:
                by, missing_left = column, side
                if cut == g - 1:
                    rank = FINE  # every value goes left
                else:
                    rank = (room.codes[cut] + room.codes[cut + 1] - 1) >> 1
                    rank = np.int64(table.last[column, rank]) if coarse else rank
        drawn += more
    for i in range(d - drawn, d):  # undo the swaps, the last one first
        j = room.swapped[i]
        room.columns[i], room.columns[j] = room.columns[j], room.columns[i]
    return best, by, rank, missing_left


@kernel
def goes_left(code, rank, words, categorical, missing_left):
    """Tell whether a row goes left."""
    if code == FINE:
        return missing_left
    if categorical:
        return (words[np.uint64(code) >> U6] >> (np.uint64(code) & LOW6)) & U1 > np.uint64(0)
    return code <= rank


@kernel
def is_mixed(rows, a, b, table, criterion):
    """Tell whether rows differ in their target."""
    for i in range(a + 1, b):
        if criterion == SQUARES:
            if table.target[rows[i]] != table.target[rows[a]]:
                return True
        elif table.label[rows[i]] != table.label[rows[a]]:
            return True
    return False


@kernel
def grow(rows, key, table, rule, room):
    """Grow a tree on these rows, which are reordered; children lie side by side.

    Returns
    -------
    Column (-2: leaf), rank, left child, whether the missing go left, number of the category set, the sets, sums, worth, and
    first and last row of every node.
    """
    m, n_sums = len(rows), len(room.left)
    size = 2 * m - 1 if rule.max_leaves == 0 else min(2 * m - 1, 2 * rule.max_leaves - 1)
    feature, rank, child = np.full(size, -2, np.int32), np.zeros(size, np.int32), np.full(size, -1, np.int32)
    missing_left, chosen = np.zeros(size, np.bool_), np.full(size, -1, np.int32)
    sets = np.zeros((size if len(room.words) else 0, len(room.words)), np.uint64)
    sums, worth = np.zeros((size, n_sums), np.int64), np.zeros(size)
    place, keys, depth = np.empty((size, 2), np.int64), np.empty(size, np.uint64), np.zeros(size, np.int64)
    open_nodes, aside = np.empty(size, np.int64), np.empty(m, rows.dtype)
    for i in range(m):
        add_row(sums[0], rows[i], table, rule.criterion)
    place[0, 0], place[0, 1], keys[0] = 0, m, key
    count, top, n_sets, leaves = 1, 0, 0, 1
    fresh = 1  # nodes at the end that were not looked at yet
    while True:
        for node in range(count - 1, count - 1 - fresh, -1):  # the left one last: it is split first
            a, b = place[node]
            if sums[node, n_sums - 1] < rule.min_split or depth[node] >= rule.max_depth:
                continue
            if not is_mixed(rows, a, b, table, rule.criterion):
                continue
            best, by, at, side = best_split(rows, a, b, keys[node], sums[node], table, rule, room)
            if best < 0 or best < rule.least_gain:
                continue
            feature[node], rank[node], missing_left[node], worth[node] = by, at, side, best
            if table.categories[by] > 0:
                chosen[node] = n_sets
                sets[n_sets] = room.words
                n_sets += 1
            open_nodes[top] = node
            top += 1
        if top == 0 or (rule.max_leaves > 0 and leaves >= rule.max_leaves):
            break
        pick = top - 1
        if rule.max_leaves > 0:
            for i in range(top - 1):
                if worth[open_nodes[i]] > worth[open_nodes[pick]]:
                    pick = i
        node = open_nodes[pick]
        top -= 1
        open_nodes[pick] = open_nodes[top]
        a, b = place[node]
        by, at, categorical = feature[node], rank[node], chosen[node] >= 0
        words = sets[chosen[node]] if categorical else room.words
        left, right, holes = a, 0, 0
        for i in range(a, b):
            row = rows[i]
            code = np.int64(table.fine[row, by])
            holes += code == FINE
            if goes_left(code, at, words, categorical, missing_left[node]):
                add_row(sums[count], row, table, rule.criterion)
                rows[left] = row
                left += 1
            else:
                add_row(sums[count + 1], row, table, rule.criterion)
                aside[right] = row
                right += 1
        rows[left:b] = aside[:right]
        if holes == 0:
            missing_left[node] = sums[count, n_sums - 1] > sums[count + 1, n_sums - 1]
        child[node] = count
        for side in range(2):
            keys[count + side], depth[count + side] = mix(keys[node], np.uint64(1 + side)), depth[node] + 1
        place[count, 0], place[count, 1], place[count + 1, 0], place[count + 1, 1] = a, left, left, b
        count, fresh, leaves = count + 2, 2, leaves + 1
    for i in range(top):  # what the bound on leaves left unsplit
        node = open_nodes[i]
        feature[node], rank[node], missing_left[node], worth[node], chosen[node] = -2, 0, False, 0.0, -1
    return (
        feature[:count],
        rank[:count],
        child[:count],
        missing_left[:count],
        chosen[:count],
        sets[:n_sets],
        sums[:count],
        worth[:count],
        place[:count],
    )
