"""Grow a tree of a forest for two classes, by the Gini impurity, on complete numerical columns: the case that must be fast.

What a node of n rows with C of class 1 gains by a split that sends nₗ rows, c of them of class 1, to the left is
2 (c n − C nₗ)² / (n nₗ nᵣ), in integers up to the one division. A row is one word (its number, its multiplicity m in the bag,
its class, and as how many rows it counts), so a pass over the rows of a node reads them in sequence; a histogram entry is one
word as well (m of class 1 above, m below), so one addition counts both. Above `limit` rows a node counts coarse ranks; below,
sorting fine ranks by insertion is cheaper than clearing a histogram.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.draw import mix, uniform

U0, U1, U8, U16, U17, U32, U49 = (np.uint64(k) for k in (0, 1, 8, 16, 17, 32, 49))
LOW, LOW16 = np.uint64(2**32 - 1), np.uint64(2**16 - 1)
CLASS = np.uint64(2**16)  # the bit of the class, in the upper half of a word
BINS = 256
INSERTION = 40  # keys up to which insertion is faster than a general sort


@kernel
def both(x):
    """Give the multiplicity of a row, and above it once more if the row is of class 1."""
    return (x & LOW16) * (U1 | (x & CLASS) << U16)


@kernel
def count_copies(coarse, el, a, b, columns, first, stop, counted):
    """Count what limits on rows count, by coarse ranks."""
    for i in range(a, b):
        row, c = el[i] & LOW, np.int32(el[i] >> U49)
        for q in range(first, stop):
            counted[(q << U8) + np.uint64(coarse[row, columns[q]])] += c


@kernel
def count_rows(coarse, el, a, b, columns, first, stop, histogram):
    """Count the rows of a node by their coarse ranks, in the columns drawn."""
    for i in range(a, b):
        e = el[i]
        row, v = e & LOW, both(e >> U32)
        for q in range(first, stop):
            histogram[(q << U8) + np.uint64(coarse[row, columns[q]])] += v


@kernel
def scan_bins(histogram, at, n, ones, lightest, counted, rows, min_leaf, best, lefts, left_ones, scores):
    """Find the best coarse split of a column: (score, bin), or the given score and -1; rows are counted if two must be."""
    total = np.uint64(0)
    for k in range(BINS):
        total += histogram[at + np.uint64(k)]
        lefts[k] = np.int32(total & LOW)
        left_ones[k] = np.int32(total >> U32)
    for k in range(BINS):  # a loop of its own, which is compiled to vector instructions
        left, c = np.float64(lefts[k]), np.float64(left_ones[k])
        t = c * n - ones * left
        scores[k] = t * t / (left * (n - left)) if min(left, n - left) >= lightest else -1.0
    if min_leaf > 1:
        before = np.int64(0)
        for k in range(BINS):
            before += counted[at + np.uint64(k)]
            scores[k] = scores[k] if min(before, rows - before) >= min_leaf else -1.0
    found = -1
    for k in range(BINS):
        if scores[k] > best:
            best, found = scores[k], k
    return best, found


@kernel
def scan_sorted(keys, m, n, ones, lightest, rows, min_leaf, best):
    """Find the best split of a column from its sorted keys: (score, place before the cut), or the given score and -1."""
    found = -1
    total, counted = U0, U0
    for i in range(m - 1):
        key = keys[i]
        total += both(key)
        counted += (key & LOW) >> U17
        if (key >> U32) == (keys[i + 1] >> U32):
            continue
        nl, c = np.float64(total & LOW), np.float64(total >> U32)
        if min(nl, n - nl) < lightest or min(np.int64(counted), rows - np.int64(counted)) < min_leaf:
            continue
        t = c * n - ones * nl
        score = t * t / (nl * (n - nl))
        if score > best:
            best, found = score, i
    return best, found


@kernel
def sort_keys(keys, m):
    """Sort the first m keys."""
    if m > INSERTION:
        keys[:m].sort()
        return
    for i in range(1, m):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel
def sorted_keys(fine, el, a, b, column, keys):
    """Write fine ranks and the upper halves of the words of a node's rows as sorted keys."""
    for i in range(a, b):
        e = el[i]
        keys[np.uint64(i - a)] = (np.uint64(fine[e & LOW, column]) << U32) | (e >> U32)
    sort_keys(keys, b - a)


@kernel
def partition_coarse(coarse, column, rank, el, a, b, aside):
    """Put the rows whose coarse rank is at most this first, keeping the order; return where the others begin."""
    left, right = np.uint64(a), np.uint64(0)
    for i in range(np.uint64(a), np.uint64(b)):
        e = el[i]
        go = np.uint64(coarse[e & LOW, column] <= rank)
        el[left] = e
        aside[right] = e
        left += go
        right += U1 - go
    for i in range(right):
        el[left + i] = aside[i]
    return np.int64(left)


@kernel
def sums_of(el, a, b):
    """Sum multiplicities, those of class 1 above them, and what rows count as."""
    total, counted = U0, U0
    for i in range(a, b):
        total += both(el[i] >> U32)
        counted += el[i] >> U49
    return total, np.int64(counted)


@kernel
def grow_binary(coarse, fine, last, el, key, n_drawn, limit, max_depth, min_split, min_leaf, lightest, least_gain):
    """Grow a tree on the rows `el`; depth first, children side by side.

    Returns
    -------
    Column, fine rank, left child, rows, what they count as, weight, weight of class 1 and score of every node; column -2 is a
    leaf.
    """
    d = last.shape[0]
    size = 2 * len(el) - 1
    feature, rank, child = np.full(size, -2, np.int32), np.zeros(size, np.int32), np.full(size, -1, np.int32)
    rows, counted, weight = np.zeros(size, np.int32), np.zeros(size, np.int64), np.zeros(size)
    ones, score = np.zeros(size), np.zeros(size)
    stack = np.empty((d + 70 + len(el) // 2, 4), np.int64)
    keys_of = np.empty(len(stack), np.uint64)
    histogram, copies = np.zeros(n_drawn * BINS, np.uint64), np.zeros(n_drawn * BINS, np.int32)
    lefts, left_ones, scores = np.empty(BINS, np.int32), np.empty(BINS, np.int32), np.empty(BINS)
    keys, aside = np.empty(len(el), np.uint64), np.empty(len(el), np.uint64)
    columns = np.arange(d).astype(np.uint64)  # those drawn stand at the end, the first one last
    chosen = np.empty(d, np.uint64)  # the columns drawn, in order
    swapped = np.empty(d, np.int64)
    total, c = sums_of(el, 0, len(el))
    rows[0], counted[0], weight[0], ones[0] = len(el), c, np.float64(total & LOW), np.float64(total >> U32)
    whole = weight[0]
    lightest = max(lightest * whole, 1.0)
    count, top = 1, 0
    if 0 < ones[0] < whole and counted[0] >= min_split and max_depth > 0:
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, len(el), 0
        keys_of[0] = key
        top = 1
    while top > 0:
        top -= 1
        node, a, b, depth = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        own = keys_of[top]
        n, c = weight[node], ones[node]
        best, by, low, high, from_coarse = -1.0, U0, 0, 0, False
        drawn = 0
        while drawn < d and (drawn < n_drawn or best < 0):
            more = n_drawn if drawn == 0 else 1
            for q in range(more):
                i = d - 1 - drawn - q
                j = int(uniform(mix(own, np.uint64(2 + i))) * (i + 1))
                swapped[i] = j
                columns[i], columns[j] = columns[j], columns[i]
                chosen[drawn + q] = columns[i]
            if counted[node] > limit:
                histogram[: more * BINS] = U0
                picked = chosen[drawn : drawn + more]
                count_rows(coarse, el, a, b, picked, U0, np.uint64(more), histogram)
                if min_leaf > 1:
                    copies[: more * BINS] = 0
                    count_copies(coarse, el, a, b, picked, U0, np.uint64(more), copies)
            for q in range(more):
                column = chosen[drawn + q]
                if counted[node] > limit:
                    at = np.uint64(q * BINS)
                    previous = best
                    best, k = scan_bins(
                        histogram, at, n, c, lightest, copies, counted[node], min_leaf, best, lefts, left_ones, scores
                    )
                    if k >= 0:
                        low, by, from_coarse = k, column, True
                        high = k + 1
                        while histogram[at + np.uint64(high)] == U0:
                            high += 1
                        continue
                    several = False
                    for k in range(BINS):
                        several = several or 0 < lefts[k] < n
                    if several:
                        continue
                    best = previous
                sorted_keys(fine, el, a, b, column, keys)
                best, k = scan_sorted(keys, b - a, n, c, lightest, counted[node], min_leaf, best)
                if k >= 0:
                    low, high, by, from_coarse = np.int64(keys[k] >> U32), np.int64(keys[k + 1] >> U32), column, False
            drawn += more
        for i in range(d - drawn, d):  # undo the swaps, the last one first
            j = swapped[i]
            columns[i], columns[j] = columns[j], columns[i]
        if best < 0 or 2.0 * best < least_gain * n * whole:
            continue
        middle = (low + high - 1) >> 1
        if from_coarse:
            cut = partition_coarse(coarse, by, middle, el, a, b, aside)
            middle = np.int64(last[by, middle])
        else:
            cut = partition_coarse(fine, by, middle, el, a, b, aside)
        feature[node], rank[node], child[node], score[node] = by, middle, count, best
        total, counted[count] = sums_of(el, a, cut)
        rows[count], weight[count], ones[count] = cut - a, np.float64(total & LOW), np.float64(total >> U32)
        rows[count + 1], counted[count + 1] = b - cut, counted[node] - counted[count]
        weight[count + 1], ones[count + 1] = n - weight[count], c - ones[count]
        for side in range(1, -1, -1):
            new = count + side
            if 0 < ones[new] < weight[new] and counted[new] >= min_split and depth + 1 < max_depth:
                stack[top, 0], stack[top, 3] = new, depth + 1
                stack[top, 1], stack[top, 2] = (a, cut) if side == 0 else (cut, b)
                keys_of[top] = mix(own, np.uint64(1 + side))
                top += 1
        count += 2
    return (
        feature[:count],
        rank[:count],
        child[:count],
        rows[:count],
        counted[:count],
        weight[:count],
        ones[:count],
        score[:count],
    )
