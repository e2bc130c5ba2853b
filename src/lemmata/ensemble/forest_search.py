"""Search a finished tree of a forest for better splits.

At every node the columns are drawn again, from the seed and the path; of each the rows are sorted, and every admissible cut is
valued by the definition of the impurity, in floating point. Nothing of what grew the tree is used but the ranks of the table.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.ensemble.growth_scan import SQUARES
from lemmata.ensemble.ranks import COARSE, FINE
from lemmata.tree.draw import mix, shuffle
from lemmata.tree.scan_classes import GINI

U1, U6, U32, LOW, LOW6 = np.uint64(1), np.uint64(6), np.uint64(32), np.uint64(2**32 - 1), np.uint64(63)

ROUNDED = 1e-12  # share of the weight of a node below which the weight of a side, a difference, is rounding
LEEWAY = 1e-9  # of limits on gains and weights, which growth compared in another precision


@kernel
def mass(sums, criterion):
    """Multiply the weight of rows by their impurity, by definition; squares are about the mean of the node, less a constant."""
    k = len(sums) - 1
    if criterion == SQUARES:
        return -sums[1] * sums[1] / sums[0]
    total = out = 0.0
    for i in range(k):
        total += sums[i]
    for i in range(k):
        p = sums[i] / total
        if criterion == GINI:
            out += p * (1.0 - p)
        elif p > 0:
            out -= p * np.log2(p)
    return total * out


@kernel
def weight_of(sums, criterion):
    """Give the weight of rows."""
    return sums[0] if criterion == SQUARES else sums[: len(sums) - 1].sum()


@kernel
def put(sums, row, mean, label, target, weight, counts, criterion):
    """Add a row to sums: weight of its class, or weight and weighted distance from a mean; and its copies."""
    if criterion == SQUARES:
        sums[0] += weight[row]
        sums[1] += weight[row] * (target[row] - mean)
    else:
        sums[label[row]] += weight[row]
    sums[len(sums) - 1] += counts[row]


@kernel
def best_cut(groups, order, g, holes, node, rule, lightest, best):
    """Value every admissible cut of a list of groups, the rows without a value at either side; return the best gain."""
    last = len(node) - 1
    left = np.zeros(len(node))
    for side in range(2 if holes[last] > 0 else 1):
        left[:] = holes * side
        for i in range(g if side == 0 and holes[last] > 0 else g - 1):
            left += groups[order[i]]
            if left[last] < rule.min_leaf or node[last] - left[last] < rule.min_leaf:
                continue
            w, total = weight_of(left, rule.criterion), weight_of(node, rule.criterion)
            if min(w, total - w) < lightest:
                continue
            best = max(best, 0.0)
            if min(w, total - w) <= ROUNDED * total:  # a difference of sums says nothing about a side that light
                continue
            gain = mass(node, rule.criterion) - mass(left, rule.criterion) - mass(node - left, rule.criterion)
            best = max(best, gain)
    return best


@kernel
def search_tree(
    X, coarse, fine, last, edges, starts, categories, label, target, weight, counts, rows, key, rule, n_classes,
    feature, threshold, child, missing_left, chosen, sets,
):  # fmt: skip
    """Enumerate the candidates of every node of a tree: (largest excess over the split that was made, broken rules)."""
    n, d, m = len(feature), fine.shape[1], len(rows)
    width = 3 if rule.criterion == SQUARES else n_classes + 1
    place, keys, depth = np.zeros((n, 2), np.int64), np.zeros(n, np.uint64), np.zeros(n, np.int64)
    gains, pending = np.zeros(n), np.full(n, -1.0)
    place[0, 1], keys[0] = m, key
    groups, sortable, aside = np.zeros((m, width)), np.zeros(m, np.uint64), np.zeros(m, np.int64)
    codes = np.zeros(m, np.int64)
    worst, wrong, whole, lightest, root, latest = 0.0, 0, 0.0, 0.0, 0.0, 0
    for node in range(n):
        a, b = place[node]
        if b <= a:
            return worst, wrong + 1
        total = mean = 0.0
        for i in range(a, b):
            total += weight[rows[i]]
            mean += weight[rows[i]] * target[rows[i]]
        mean /= total
        sums = np.zeros(width)
        low = high = target[rows[a]]
        spread = 0.0
        for i in range(a, b):
            put(sums, rows[i], mean, label, target, weight, counts, rule.criterion)
            low, high = min(low, target[rows[i]]), max(high, target[rows[i]])
            spread += weight[rows[i]] * (target[rows[i]] - mean) ** 2
        if node == 0:
            whole, lightest = total, rule.lightest * total
            root = max(spread if rule.criterion == SQUARES else mass(sums, rule.criterion), 1e-300)
        open_node = low < high and sums[width - 1] >= rule.min_split and depth[node] < rule.max_depth
        best, drawn, order, asked = -1.0, 0, np.arange(d), child[node] < 0
        shuffle(keys[node], order)
        while open_node and drawn < d and (drawn < rule.n_drawn or best < 0):
            column = order[d - 1 - drawn]
            drawn += 1
            asked = asked or column == feature[node]
            by_coarse = sums[width - 1] > rule.limit and categories[column] <= COARSE
            g, holes = 0, np.zeros(width)
            for _ in range(2):
                for i in range(a, b):
                    row = rows[i]
                    code = np.uint64(coarse[row, column]) if by_coarse else np.uint64(fine[row, column])
                    if code == (COARSE if by_coarse else FINE):
                        code = np.uint64(FINE)
                    sortable[i - a] = (code << U32) | np.uint64(row)
                sortable[: b - a].sort()
                g = 0
                holes[:] = 0.0
                for i in range(b - a):
                    code, row = np.int64(sortable[i] >> U32), np.int64(sortable[i] & LOW)
                    if code == FINE:
                        put(holes, row, mean, label, target, weight, counts, rule.criterion)
                        continue
                    if g == 0 or code != codes[g - 1]:
                        codes[g] = code
                        groups[g] = 0.0
                        g += 1
                    put(groups[g - 1], row, mean, label, target, weight, counts, rule.criterion)
                if not by_coarse or categories[column] > 0 or g > 1:
                    break
                by_coarse = False
            if categories[column] == 0:
                best = best_cut(groups, np.arange(g), g, holes, sums, rule, lightest, best)
            else:
                orders = n_classes if rule.criterion != SQUARES and n_classes > 2 else 1
                for k in range(orders):
                    shares = np.zeros(g)
                    for i in range(g):
                        mass_of_group = groups[i, 0] if rule.criterion == SQUARES else groups[i, : width - 1].sum()
                        shares[i] = groups[i, 1 if rule.criterion == SQUARES else k] / mass_of_group
                    best = best_cut(groups, np.argsort(shares, kind="mergesort"), g, holes, sums, rule, lightest, best)
            if child[node] >= 0 and column == feature[node] and categories[column] == 0:
                # the edge halfway between the groups at both sides
                below = above = -1
                for i in range(b - a):
                    code, row = np.int64(sortable[i] >> U32), np.int64(sortable[i] & LOW)
                    if code != FINE and X[row, column] <= threshold[node]:
                        below = code
                    elif code != FINE:
                        above = code
                        break
                if below < 0:
                    wrong += 1
                elif below == codes[g - 1]:
                    wrong += threshold[node] != np.inf
                else:
                    middle = (below + above - 1) >> 1
                    middle = np.int64(last[column, middle]) if by_coarse else middle
                    wrong += threshold[node] != edges[starts[column] + middle]
        least = rule.least_gain * whole
        if child[node] < 0:
            pending[node] = best if best >= least * (1 + LEEWAY) else -1.0
            continue
        wrong += not asked or not open_node or best < least * (1 - LEEWAY)
        left, right, holes_seen = a, 0, 0
        part, rest = np.zeros(width), np.zeros(width)
        column = feature[node]
        for i in range(a, b):
            row = rows[i]
            x = X[row, column]
            go = missing_left[node]
            if x == x and chosen[node] < 0:
                go = x <= threshold[node]
            elif x == x:
                code = np.uint64(x)
                go = (sets[chosen[node], code >> U6] >> (code & LOW6)) & U1 > np.uint64(0)
            else:
                holes_seen += 1
            if go:
                put(part, row, mean, label, target, weight, counts, rule.criterion)
                rows[left] = row
                left += 1
            else:
                put(rest, row, mean, label, target, weight, counts, rule.criterion)
                aside[right] = row
                right += 1
        rows[left:b] = aside[:right]
        if left in (a, b):
            return worst, wrong + 1
        gains[node] = mass(sums, rule.criterion) - mass(part, rule.criterion) - mass(rest, rule.criterion)
        worst = max(worst, (best - gains[node]) / root)
        wrong += min(part[width - 1], rest[width - 1]) < rule.min_leaf
        wrong += min(weight_of(part, rule.criterion), weight_of(rest, rule.criterion)) < lightest * (1 - LEEWAY)
        if holes_seen == 0:
            wrong += missing_left[node] != (part[width - 1] > rest[width - 1])
        start = child[node]
        latest = node if start > child[latest] else latest
        for side in range(2):
            keys[start + side], depth[start + side] = mix(keys[node], np.uint64(1 + side)), depth[node] + 1
        place[start, 0], place[start, 1], place[start + 1, 0], place[start + 1, 1] = a, left, left, b
    leaves = (n + 1) // 2
    wrong += rule.max_leaves > 0 and leaves > rule.max_leaves
    for node in range(n):
        if pending[node] >= 0:  # a leaf that could be split: only a bound on leaves excuses it, if the last split gained more
            if rule.max_leaves == 0 or leaves < rule.max_leaves:
                wrong += 1
            elif node < child[latest]:
                worst = max(worst, (pending[node] - gains[latest]) / root)
    return worst, wrong


def search(tree, sample, ranks, rule, seed):
    """Search a tree for better splits: (largest excess of a candidate's gain, number of broken rules)."""
    counts, copies, weights = sample.bag(seed)
    weight = counts.astype(float) if weights is None else np.ldexp(weights, -int(np.frexp(weights.sum())[1]))  # scale is free
    regression = rule.criterion == SQUARES
    return search_tree(
        sample.X,
        ranks.coarse,
        ranks.fine,
        ranks.last,
        ranks.edges,
        ranks.starts,
        sample.categories,
        np.zeros(0, dtype=np.int64) if regression else sample.y.astype(np.int64),
        sample.y.astype(np.float64),
        weight,
        copies,
        np.flatnonzero(counts),
        np.uint64(seed),
        rule,
        max(sample.n_classes, 2),
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.missing_go_to_left,
        tree.category_set,
        np.ascontiguousarray(tree.left_categories),
    )
