"""The five nearest rows of many rows, exactly.

Everyone fits and answers all queries, with two threads. The objective is the sum of all distances found, which is the same only
if everyone finds the same neighbors; ours are proved to be those of a sort by the certificate.
"""

from functools import partial

import numpy as np
from sklearn import neighbors as scikit

from bench.harness import THREADS, Row
from lemmata.neighbors import KNeighborsClassifier, NearestNeighbors

NEIGHBORS = 5


def table(n, m, d, law):
    rng = np.random.default_rng(0)
    draw = rng.standard_normal if law == "normal" else rng.random
    X = draw((n, d))
    return X, (X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3]).astype(int), draw((m, d))


def ours(data, p=2):
    X, _, queries = data
    return NearestNeighbors(NEIGHBORS, p=p).fit(X).kneighbors(queries)


def peer(data, p=2):
    X, _, queries = data
    return scikit.NearestNeighbors(n_neighbors=NEIGHBORS, p=p, n_jobs=THREADS).fit(X).kneighbors(queries)


def intel(data):
    from sklearnex.neighbors import NearestNeighbors as Intel

    X, _, queries = data
    return Intel(n_neighbors=NEIGHBORS, n_jobs=THREADS).fit(X).kneighbors(queries)


def total(data, found):
    return float(found[0].sum())


def classes(data):
    X, y, queries = data
    return KNeighborsClassifier(NEIGHBORS).fit(X, y).predict(queries)


def peer_classes(data):
    X, y, queries = data
    return scikit.KNeighborsClassifier(NEIGHBORS, n_jobs=THREADS).fit(X, y).predict(queries)


ROWS = [
    Row(
        f"k-NN, {m:,} queries on {n:,} × {d}, k = {NEIGHBORS}, {law}",
        partial(table, n, m, d, law),
        ours,
        {"scikit-learn": peer, "scikit-learn-intelex": intel},
        total,
        {"scikit-learn": bar, "scikit-learn-intelex": 1.0},
        agree=1e-9,  # sums of roundings
        repeats=2,
    )
    for n, m, d, bar in ((50_000, 50_000, 10, 4.0), (50_000, 10_000, 50, 1.2))
    for law in ("normal", "uniform")
]

ROWS += [
    Row(
        f"k-NN, 10,000 queries on 50,000 × 10, k = {NEIGHBORS}, p = {p}, normal",
        partial(table, 50_000, 10_000, 10, "normal"),
        partial(ours, p=p),
        {"scikit-learn": partial(peer, p=p)},
        total,
        {"scikit-learn": bar},
        agree=1e-9,
        repeats=1,
    )
    for p, bar in ((1, 4.0), (1.5, 4.0), (np.inf, 1.2))
]

ROWS += [
    Row(
        "KNeighborsClassifier, 100,000 queries on 100,000 × 4, normal",
        partial(table, 100_000, 100_000, 4, "normal"),
        classes,
        {"scikit-learn": peer_classes},
        lambda data, predicted: float(predicted.mean()),
        {"scikit-learn": 1.0},
        agree=1e-9,
        repeats=3,
    )
]
