"""Slow twins of what the clustering kernels do, and brute force over all partitions."""

from itertools import product

import numpy as np


def nearest(X, centers):
    """Give each row its nearest center by differences, the first among equals, and the squared distance."""
    squared = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
    return squared.argmin(axis=1), squared.min(axis=1)


def lloyd(X, centers, weight=None, max_iter=1000):
    """Run Lloyd's algorithm to its fixed point; return centers, labels and the inertia before each move."""
    w = np.ones(len(X)) if weight is None else weight
    trace = []
    for _ in range(max_iter):
        labels, squared = nearest(X, centers)
        trace.append(w @ squared)
        moved = np.array([np.average(X[labels == j], axis=0, weights=w[labels == j]) for j in range(len(centers))])
        if np.allclose(moved, centers, rtol=0, atol=1e-13):
            break
        centers = moved
    return centers, labels, trace


def best_inertia(X, k):
    """Find the least inertia of k clusters by trying every assignment."""
    best = np.inf
    for labels in product(range(k), repeat=len(X)):
        labels = np.array(labels)
        groups = [X[labels == j] for j in range(k) if (labels == j).any()]
        best = min(best, sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups))
    return best
