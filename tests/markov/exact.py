"""Slow twins in exact arithmetic, written for reading."""

from fractions import Fraction

import numpy as np


def solve(A, b):
    """Solve a square system of fractions by elimination."""
    n = len(A)
    rows = [[Fraction(v) for v in row] + [Fraction(value)] for row, value in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [v - rows[i][k] * w for v, w in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def rational(weights):
    """Turn integer weights into rows of fractions that sum to one."""
    return [[Fraction(int(w), int(sum(row))) for w in row] for row in weights]


def floats(P):
    return np.array([[float(v) for v in row] for row in P])


def law(P):
    """Solve w(I − P) = 0, Σw = 1, exactly."""
    n = len(P)
    A = [[Fraction(int(i == j)) - P[i][j] for i in range(n)] for j in range(n)]
    A[-1] = [Fraction(1)] * n
    return solve(A, [0] * (n - 1) + [1])


def random_weights(n, seed, zeros=0.5, ring=True):
    """Draw integer odds, many of them 0, of very different sizes; the ring keeps the chain irreducible."""
    rng = np.random.default_rng(seed)
    W = rng.integers(1, 10, (n, n)) * 10 ** rng.integers(0, 7, (n, n)) * (rng.random((n, n)) > zeros)
    if ring:
        W[np.arange(n), (np.arange(n) + 1) % n] += 1
    return W
