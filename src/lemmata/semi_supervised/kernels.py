"""Kernels of the random walk on a sparse graph.

The links of row i are start[i], …, start[i+1] − 1; link e leads to row to[e] and has the probability p[e]. Tables of values
have one line for each row, and all their columns are worked on in one pass over the links.

A loop that adds up numbers writes none: a compiler may take the sum in one order where it can tell that arrays lie apart, and
in another where they lie side by side, so that bits would depend on where memory was free.
"""

import numpy as np

from lemmata.core.kernel import kernel


@kernel
def probabilities(start, logs):
    """Turn logarithms of weights into the probabilities of steps; give also the logarithm of the total of each row."""
    p, level = np.empty(len(logs)), np.empty(len(start) - 1)
    for i in range(len(level)):
        largest, total = logs[start[i]], 0.0
        for e in range(start[i], start[i + 1]):
            largest = max(largest, logs[e])
        for e in range(start[i], start[i + 1]):
            p[e] = np.exp(logs[e] - largest)
        for e in range(start[i], start[i + 1]):  # no writing here: see the module's docstring
            total += p[e]
        for e in range(start[i], start[i + 1]):
            p[e] /= total
        level[i] = largest + np.log(total)
    return p, level


@kernel
def spread(start, to, logs, level, least, barred, seen):
    """Mark all rows from which steps of log-probability `least` or more lead to a marked row, past no row that is barred."""
    queue = np.empty(len(seen), np.int64)
    found, done = 0, 0
    for i in range(len(seen)):
        if seen[i]:
            queue[found] = i
            found += 1
    while done < found:
        j = queue[done]
        done += 1
        for e in range(start[j], start[j + 1]):
            i = to[e]
            if not seen[i] and not barred[i] and logs[e] - level[i] >= least:  # the step back has the same weight
                seen[i] = True
                queue[found] = i
                found += 1


@kernel
def traps(a, b, logs, level, labeled, least):
    """Find rows without a label that the walk hardly leaves, from links a–b in the order of falling weights.

    Links join rows to groups. A group without a label is a trap if the next link out of it, the heaviest there is, weighs less
    than the share `least` (a logarithm) of what its heaviest row has in all. From then on it counts as an end of walks.
    """
    n = len(level)
    root, after, last = np.arange(n), np.full(n, -1), np.arange(n)  # members of a group are a list from its root on
    top, ends, trapped = level.copy(), labeled.copy(), np.zeros(n, np.bool_)
    for e in range(len(a)):
        i, j = _root(root, a[e]), _root(root, b[e])
        if i == j:
            continue
        for r in (i, j):
            if not ends[r] and logs[e] - top[r] < least:
                _mark(r, after, trapped)
                ends[r] = True
        root[j], after[last[i]], last[i] = i, j, last[j]
        top[i], ends[i] = max(top[i], top[j]), ends[i] or ends[j]
    for r in range(n):
        if root[r] == r and not ends[r]:
            _mark(r, after, trapped)
    return trapped


@kernel
def _root(root, i):
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i


@kernel
def _mark(i, after, marks):
    while i >= 0:
        marks[i] = True
        i = after[i]


@kernel
def average(start, to, p, F, first, last, out):
    """Average F over the next rows of each row from `first` to `last`."""
    for i in range(first, last):
        out[i] = 0.0
        for e in range(start[i], start[i + 1]):
            j, share = to[e], p[e]
            for c in range(F.shape[1]):
                out[i, c] += share * F[j, c]


@kernel
def curvature(D, Q, free, degree, first, last, sums):
    """Turn Q = P D into D − P D on free rows, and sum D·(D − P D) for each column."""
    for i in range(first, last):
        for c in range(D.shape[1]):
            Q[i, c] = D[i, c] - Q[i, c] if free[i] else 0.0
            sums[c] += degree[i] * D[i, c] * Q[i, c]


@kernel
def move(F, R, D, Q, alpha, first, last, largest):
    """Move F along D and the residual R along with it; find the largest residual of each column."""
    for i in range(first, last):
        for c in range(F.shape[1]):
            F[i, c] += alpha[c] * D[i, c]
            R[i, c] -= alpha[c] * Q[i, c]
            largest[c] = max(largest[c], abs(R[i, c]))


@kernel
def sweep(start, to, p, free, R, Z):
    """Solve (I − L)(I − U) Z = R on free rows, where L has the steps to rows before and U those to rows after."""
    n, m = R.shape
    for i in range(n):
        for c in range(m):
            Z[i, c] = R[i, c] if free[i] else 0.0
        e = start[i] if free[i] else start[i + 1]
        while e < start[i + 1] and to[e] < i:
            for c in range(m):
                Z[i, c] += p[e] * Z[to[e], c]
            e += 1
    for i in range(n - 1, -1, -1):
        e = start[i + 1] - 1 if free[i] else -1
        while e >= start[i] and to[e] > i:
            for c in range(m):
                Z[i, c] += p[e] * Z[to[e], c]
            e -= 1


@kernel
def turn(D, Z, beta, first, last):
    """Turn the direction D towards Z."""
    for i in range(first, last):
        for c in range(D.shape[1]):
            D[i, c] = Z[i, c] + beta[c] * D[i, c]
