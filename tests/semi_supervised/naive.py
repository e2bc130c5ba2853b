"""Slow twins of the random walk, written for reading."""

import numpy as np


def weights(X, b):
    """Give exp(−‖x − x'‖²/b) for all pairs, one at a time."""
    return np.array([[np.exp(-((x - z) ** 2).sum() / b) for z in X] for x in X])


def linked(W, X, k):
    """Keep the weights of pairs of which one is among the k nearest of the other; of equally near rows, the first."""
    n = len(X)
    keep = np.zeros((n, n), bool)
    for i in range(n):
        others = sorted((((X[i] - X[j]) ** 2).sum(), j) for j in range(n) if j != i)
        keep[i, [j for _, j in others[:k]]] = True
    return W * (keep | keep.T)


def transitions(W, numbers):
    """Give the matrix of the walk with labeled rows made absorbing: M_ii = 1 and M_ij = 0."""
    M = W / W.sum(axis=1, keepdims=True)
    M[numbers >= 0] = np.eye(len(W))[numbers >= 0]
    return M


def absorption(W, numbers, n_classes):
    """Give the limit of Mᵗ, by squaring until nothing changes, summed over the labeled rows of each class."""
    M = transitions(W, numbers)
    for _ in range(60):  # 2⁶⁰ steps
        M = M @ M
    return np.column_stack([M[:, numbers == c].sum(axis=1) for c in range(n_classes)])
