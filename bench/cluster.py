"""K-means from the same start to the same fixed point.

Two kinds of tables: Gaussian clusters that overlap, and one Gaussian without any clusters, where Lloyd needs many passes.
"""

from functools import partial

import numpy as np
import sklearn.cluster as peer

from bench.harness import Row
from lemmata.cluster import KMeans

PASSES = 5000  # never reached: everyone runs to the fixed point


def table(n, d, k, clusters):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if clusters:
        X += ((1.0 if d > 2 else 3.0) * rng.standard_normal((k, d)))[rng.integers(k, size=n)]
    return X, X[rng.choice(n, k, replace=False)]


def ours(data):
    X, start = data
    return KMeans(len(start), init=start, max_iter=PASSES).fit(X)


def scikit(data):
    X, start = data
    return peer.KMeans(len(start), init=start, n_init=1, tol=0, max_iter=PASSES).fit(X)


def intel(data):
    from sklearnex.cluster import KMeans as Intel

    X, start = data
    return Intel(len(start), init=start, n_init=1, tol=0, max_iter=PASSES).fit(X)


def inertia(data, model):
    X, _ = data
    return float(((X - model.cluster_centers_[model.labels_]) ** 2).sum())


ROWS = [
    Row(
        f"KMeans {n:,} × {d}, k = {k}, {'clusters' if clusters else 'no clusters'}",
        partial(table, n, d, k, clusters),
        ours,
        {"scikit-learn": scikit, "intelex": intel},
        inertia,
        {"scikit-learn": bar, "intelex": bar},
        agree=1e-9,
        repeats=2,
    )
    for n, d, k, bar in ((200_000, 20, 50, 2.5), (1_000_000, 2, 8, 1.2), (100_000, 64, 200, 1.2))
    for clusters in (True, False)
]
