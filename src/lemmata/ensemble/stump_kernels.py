"""Kernels of stumps: codes and words, sums by bin and class, bounds, and the search in the bins that can win; see `stumps`."""

import numpy as np

from lemmata.core.kernel import kernel

BINS = 256  # of which the last holds rows without a value
MISSING = 255
WIDE = 8  # columns in a word
UNIT = 2.0**61  # two bits of room for rounding below the largest integer
LEAST_GAIN = 1e-20  # e_k has the rounding of weights, 1e-16; its square says nothing below this
TIE = 1e-10  # gains, or weights of classes, that differ by less are equal: after an update many are, but for rounding
SLACK = 1e-9  # relative, of a bound: a thousand times what its rounding can take away

NO_ORDER, ORDERED, ONE_VALUE = 0, 1, 2  # what is known of the rows of a bin
U = np.uint64


@kernel
def codes_of(x, edges, codes):
    """Count the edges below each value, by halving; `edges` has 255 entries, unused ones are infinite."""
    for i in range(len(x)):
        v = x[i]
        place = U(0)
        step = U(128)
        while step > U(0):
            place += step * U(edges[place + step - U(1)] < v)
            step >>= U(1)
        codes[i] = np.uint8(place) if v == v else np.uint8(MISSING)


@kernel
def pack(codes, shift, words):
    """Put the codes of a column into their byte of the words."""
    for i in range(len(codes)):
        words[i] |= U(codes[i]) << U(shift)


@kernel
def group(codes, starts, order):
    """List the rows bin by bin; `starts` gets the place where each bin begins, and where the last one ends."""
    for i in range(len(codes)):
        starts[np.int64(codes[i]) + 1] += 1
    for b in range(BINS):
        starts[b + 1] += starts[b]
    place = starts.copy()
    for i in range(len(codes)):
        order[place[codes[i]]] = i
        place[codes[i]] += 1


@kernel
def take_columns(X, rows, first, out):
    """Copy some columns of the rows of a table, each to a line of its own."""
    for i in range(len(rows)):
        for j in range(out.shape[0]):
            out[j, i] = X[rows[i], first + j]


@kernel
def add_up(words, units, class_starts, sums):
    """Add the weights of the rows by class, column of the group and bin: sums (K, 8 · 256)."""
    byte = U(255)
    sums[:] = 0
    for k in range(len(sums)):
        h = sums[k]
        for i in range(U(class_starts[k]), U(class_starts[k + 1])):
            w, v = words[i], units[i]
            h[w & byte] += v
            h[U(256) + ((w >> U(8)) & byte)] += v
            h[U(512) + ((w >> U(16)) & byte)] += v
            h[U(768) + ((w >> U(24)) & byte)] += v
            h[U(1024) + ((w >> U(32)) & byte)] += v
            h[U(1280) + ((w >> U(40)) & byte)] += v
            h[U(1536) + ((w >> U(48)) & byte)] += v
            h[U(1792) + (w >> U(56))] += v


@kernel
def impurity_weight(a, total):
    """Gini impurity of class weights, times their sum."""
    squares = 0.0
    for k in range(len(a)):
        squares += a[k] * a[k]
    return total - squares / total if total > 0 else 0.0


@kernel
def rate_bins(sums, f, n_bins, missing, shares, one, known, gains, bounds):
    """Turn the sums of one column into sums up to each bin; rate the threshold after each bin, and bound those inside it.

    Rows without a value go right, then left: gains and bounds have a line for each.
    """
    n_classes = len(sums)
    off = f * BINS
    for k in range(n_classes):
        for b in range(1, n_bins):
            sums[k, off + b] += sums[k, off + b - 1]
    low, high, rest = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    whole = impurity_weight(shares, 1.0)
    total = 0
    for k in range(n_classes):
        total += sums[k, off + n_bins - 1] + (sums[k, off + MISSING] if missing else 0)
    for side in range(2 if missing else 1):
        before = 0
        for k in range(n_classes):
            start = sums[k, off + MISSING] if side else 0
            before += start
            low[k] = start * one
        for b in range(n_bins):
            upto = 0
            for k in range(n_classes):
                end = sums[k, off + b] + (sums[k, off + MISSING] if side else 0)
                upto += end
                high[k] = end * one
            a0, a1, b0, b1 = before * one, upto * one, (total - before) * one, (total - upto) * one
            here, most = 0.0, 0.0
            for k in range(n_classes):
                step = high[k] - low[k]
                excess = high[k] - shares[k] * a1
                top = high[k] - shares[k] * (a0 + step)  # all of the class, and none of the others, goes left
                bottom = low[k] - shares[k] * (a1 - step)
                here += excess * excess
                most += max(top * top, bottom * bottom)
            gains[side, b] = here / (a1 * b1) if upto > 0 and total > upto else 0.0
            if known[b] == ONE_VALUE or upto == before:
                bounds[side, b] = 0.0
            elif before > 0 and total > upto:
                bounds[side, b] = most / min(a0 * b0, a1 * b1) * (1 + SLACK)
            else:  # one end is no split: what lies left of the bin and right of it is impure, wherever its own rows go
                for k in range(n_classes):
                    rest[k] = shares[k] - high[k]
                bounds[side, b] = (whole - impurity_weight(low, a0) - impurity_weight(rest, b1)) * (1 + SLACK) + SLACK * SLACK
            before = upto
            low[:] = high


@kernel
def put_in_order(order, x):
    """Sort the rows of a bin by value; tell what is known of it now."""
    values = np.empty(len(order))
    for i in range(len(order)):
        values[i] = x[order[i]]
    by_value = np.argsort(values)
    rows = order.copy()
    for i in range(len(order)):
        order[i] = rows[by_value[i]]
    return ONE_VALUE if values[by_value[0]] == values[by_value[-1]] else ORDERED


@kernel
def best_inside(order, x, units, of_class, left, total, shares, one, best, earlier, cut):
    """Try the thresholds between the values of a bin; `left` holds the class weights before it, and is changed.

    Of splits that are equally good the one below `cut` wins, or any if the column is an `earlier` one; found returns whether.
    """
    upto = 0
    for k in range(len(left)):
        upto += left[k]
    found = False
    for i in range(len(order) - 1):
        row = order[i]
        left[of_class[row]] += units[row]
        upto += units[row]
        if x[row] != x[order[i + 1]] and upto > 0 and total > upto:
            a = upto * one
            squares = 0.0
            for k in range(len(left)):
                excess = left[k] * one - shares[k] * a
                squares += excess * excess
            gain = squares / (a * ((total - upto) * one))
            if gain > best * (1 + TIE) or (gain > best * (1 - TIE) and (earlier or x[row] < cut)):
                found, earlier, best, cut = True, False, max(gain, best), x[row]
    return found, best, cut


@kernel
def search(sums, gains, bounds, n_bins, missing, edges, order, starts, known, values, units, of_class, totals, shares, one):
    """Find the best split of all: first among the thresholds between bins, then inside bins that can do better.

    Of splits that are equally good but for rounding the first wins: by column, with missing values on the right, by value.
    """
    d = len(n_bins)
    n_classes = len(totals)
    total = totals.sum()
    best, column, side, cut = LEAST_GAIN, -1, 0, np.inf
    for j in range(d):
        for s in range(2 if missing[j] else 1):
            for b in range(n_bins[j]):
                if gains[j, s, b] > best * (1 + TIE):
                    best, column, side, cut = gains[j, s, b], j, s, edges[j, b] if b < n_bins[j] - 1 else np.inf
    left = np.zeros(n_classes, np.int64)
    for j in range(d):
        base = j % WIDE * BINS
        for s in range(2 if missing[j] else 1):
            for b in range(n_bins[j]):
                if bounds[j, s, b] < best * (1 - TIE) or known[j, b] == ONE_VALUE:
                    continue
                rows = order[j, starts[j, b] : starts[j, b + 1]]
                if known[j, b] == NO_ORDER:
                    known[j, b] = put_in_order(rows, values[j])
                for k in range(n_classes):
                    left[k] = sums[j // WIDE, k, base + b - 1] if b > 0 else 0
                    left[k] += sums[j // WIDE, k, base + MISSING] if s else 0
                earlier = j < column or (j == column and s < side)
                edge = cut if j == column and s == side else -np.inf
                found, best, place = best_inside(
                    rows, values[j], units, of_class, left, total, shares, one, best, earlier, edge
                )
                if found:
                    column, side, cut = j, s, place
    return best, column, side, cut


@kernel
def neighbors_of(x, units, cut):
    """Find the values next to a cut on either side, among rows of positive weight."""
    low, high = -np.inf, np.inf
    for i in range(len(x)):
        v = x[i]
        if units[i] > 0:
            low = v if v <= cut and v > low else low
            high = v if v > cut and v < high else high
    return low, high


@kernel
def split_sums(x, units, class_starts, threshold, missing_left, left):
    """Add the weights that go left, by class; count the rows."""
    count = 0
    for k in range(len(left)):
        total = 0
        for i in range(class_starts[k], class_starts[k + 1]):
            goes = x[i] <= threshold or (missing_left and x[i] != x[i])
            total += units[i] if goes else 0
            count += 1 if goes else 0
        left[k] = total
    return count


@kernel
def side_classes(x, threshold, missing_left, left_class, right_class, out):
    """Give each row the class of its side."""
    for i in range(len(x)):
        out[i] = left_class if x[i] <= threshold or (missing_left and x[i] != x[i]) else right_class


@kernel
def add_votes(X, feature, threshold, missing_left, sides, says, votes):
    """Add up what the stumps have to say on each row."""
    for i in range(X.shape[0]):
        for t in range(len(feature)):
            x = X[i, feature[t]]
            right = U(x > threshold[t]) | (U(x != x) & U(not missing_left[t]))
            votes[i, sides[t, right]] += says[t]


@kernel
def whole_units(multiplier, base, integral, units):
    """Round weights base · multiplier to whole units; of whole base weights the multiplier alone is rounded."""
    for i in range(len(units)):
        if integral:
            units[i] = np.int64(base[i]) * np.int64(np.rint(multiplier[i] * UNIT))
        else:
            units[i] = np.int64(np.rint(base[i] * multiplier[i] * UNIT))
