"""Kernels that count, and kernels that add logarithms up: what a pass of naive Bayes over rows consists of.

A fit needs the weighted sum of each column over the rows of each class, a prediction the inner products of each row with one
table of logarithms a class. Sparse rows are read as they lie, and codes are looked up instead of multiplied. Counts that are
whole numbers add up exactly below 2⁵³, so neither their order nor the cuts between blocks leave a trace.
"""

import numpy as np

from lemmata.core.kernel import kernel


@kernel
def dense_sums(X, y, weight, k):
    """Weight of each class and sums of each column over its rows, (k,) and (k, d)."""
    d = X.shape[1]
    totals, sums = np.zeros(k), np.zeros((k, d))
    for i in range(len(X)):
        c = y[i]
        w = 1.0 if weight is None else weight[i]
        totals[c] += w
        for j in range(d):
            sums[c, j] += w * X[i, j]
    return totals, sums


@kernel
def dense_ones(X, y, weight, k, threshold):
    """Weight of each class and, for each column, of its rows with an entry above the threshold."""
    d = X.shape[1]
    totals, ones = np.zeros(k), np.zeros((k, d))
    for i in range(len(X)):
        c = y[i]
        w = 1.0 if weight is None else weight[i]
        totals[c] += w
        for j in range(d):
            ones[c, j] += w if X[i, j] > threshold else 0.0
    return totals, ones


@kernel
def dense_holes(X, y, weight, k):
    """Weight of the rows of each class in which a column is missing, (k, d)."""
    d = X.shape[1]
    holes = np.zeros((k, d))
    for i in range(len(X)):
        w = 1.0 if weight is None else weight[i]
        for j in range(d):
            holes[y[i], j] += w if np.isnan(X[i, j]) else 0.0
    return holes


@kernel
def class_weights(y, weight, k):
    """Weight of the rows of each class."""
    totals = np.zeros(k)
    for i in range(len(y)):
        totals[y[i]] += 1.0 if weight is None else weight[i]
    return totals


@kernel
def sparse_sums(values, columns, starts, y, weight, sums):
    """Add to each column of each class the weighted entries of its rows; return how many entries are negative or missing."""
    strange = 0
    for i in range(len(y)):
        row = sums[y[i]]
        w = 1.0 if weight is None else weight[i]
        for e in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
            v = np.float64(values[e])
            row[np.uint64(columns[e])] += w * v
            strange += not v >= 0.0
    return strange


@kernel
def sparse_products(values, columns, starts, table):
    """Inner products of sparse rows with the columns of a table (d, k); and how many entries are negative or missing."""
    n, k, strange = len(starts) - 1, table.shape[1], 0
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    out = np.zeros((n, k))
    for i in range(n):
        sums = out[i]
        e, last = np.uint64(starts[i]), np.uint64(starts[i + 1])
        while e + four <= last:  # four entries at a time: a sum is read and written once for them
            v0, v1, v2, v3 = values[e], values[e + one], values[e + two], values[e + three]
            t0, t1 = table[np.uint64(columns[e])], table[np.uint64(columns[e + one])]
            t2, t3 = table[np.uint64(columns[e + two])], table[np.uint64(columns[e + three])]
            for c in range(k):
                sums[c] += v0 * t0[c] + v1 * t1[c] + v2 * t2[c] + v3 * t3[c]
            strange += not (v0 >= 0.0 and v1 >= 0.0 and v2 >= 0.0 and v3 >= 0.0)
            e += four
        while e < last:
            v0, t0 = values[e], table[np.uint64(columns[e])]
            for c in range(k):
                sums[c] += v0 * t0[c]
            strange += not v0 >= 0.0
            e += one
    return out, strange


@kernel
def largest_codes(X):
    """The largest code of each column (-1: none), and how many entries are neither a whole number from 0 nor missing."""
    d = X.shape[1]
    largest, strange = np.full(d, -1.0), 0
    for i in range(len(X)):
        for j in range(d):
            v = X[i, j]
            largest[j] = v if v > largest[j] else largest[j]
            strange += (v < 0.0) | (np.floor(v) < v)  # NaN is neither
    return largest, strange


@kernel
def code_sums(X, y, weight, starts, k):
    """Weight of each class, and of its rows with each code of each column: (codes of all columns, k)."""
    totals, counts = np.zeros(k), np.zeros((starts[-1], k))
    for i in range(len(X)):
        c = np.uint64(y[i])
        w = 1.0 if weight is None else weight[i]
        totals[c] += w
        for j in range(X.shape[1]):
            v = X[i, j]
            if not np.isnan(v):
                counts[np.uint64(starts[j] + np.int64(v)), c] += w
    return totals, counts


@kernel
def code_products(X, starts, table):
    """Add up, for each row, the entries (one a class) of its codes; a code without an entry, or a hole, adds nothing."""
    n, d, k = X.shape[0], X.shape[1], table.shape[1]
    out = np.zeros((n, k))
    for i in range(n):
        for j in range(d):
            v = X[i, j]
            if v < starts[j + 1] - starts[j]:  # which NaN is not
                e = np.uint64(starts[j] + np.int64(v))
                for c in range(k):
                    out[i, c] += table[e, c]
    return out
