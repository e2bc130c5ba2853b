"""K-medoids on distances that are given; the peers are FasterPAM and the original PAM in the Rust package of its authors.

Two kinds of tables: Gaussian clusters, and one Gaussian without any, where swaps go on for longer and end in local optima that
differ by a few per mille: the losses agree to that only. Drawn starts keep the best of three. PAM stands in for
scikit-learn-extra, whose compiled code does not load beside NumPy 2; it is the same algorithm.
"""

from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from bench.harness import Row
from lemmata.cluster import KMedoids


def table(n, k, clusters):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    if clusters:
        X += (3.0 * rng.standard_normal((k, 10)))[rng.integers(k, size=n)]
    return cdist(X, X), rng.choice(n, k, replace=False)


def ours(data, init=None):
    D, start = data
    model = KMedoids(len(start), metric="precomputed", init=start if init is None else init, random_state=0)
    return model.set_params(n_init=3 if init == "k-medoids++" else 1).fit(D).medoid_indices_


def rust(data, init=None):
    import kmedoids

    D, start = data
    first = start.astype(np.uint64) if init is None else len(start)
    how = "build" if init == "build" else "random"
    return kmedoids.fasterpam(D, first, init=how, random_state=0).medoids.astype(np.int64)


def pam(data):
    import kmedoids

    D, start = data
    return kmedoids.pam(D, len(start), init="build").medoids.astype(np.int64)


def loss(data, medoids):
    D, _ = data
    return float(D[:, medoids].min(axis=1).sum())


ROWS = [
    Row(
        f"KMedoids 5,000 rows, given distances, k = 20, {'clusters' if clusters else 'no clusters'}, {init or 'same start'}",
        partial(table, 5_000, 20, clusters),
        partial(ours, init=init),
        {"kmedoids (Rust)": partial(rust, init=init)},
        loss,
        {"kmedoids (Rust)": 1.0},
        agree=5e-3,
        repeats=3,
    )
    for clusters in (True, False)
    for init in (None, "build", "k-medoids++")
]

ROWS += [
    Row(
        f"KMedoids 5,000 rows, given distances, k = 20, {'clusters' if clusters else 'no clusters'}, against PAM",
        partial(table, 5_000, 20, clusters),
        partial(ours, init="build"),
        {"PAM (Rust)": pam},
        loss,
        {"PAM (Rust)": 20.0},
        agree=5e-3,
        repeats=1,
    )
    for clusters in (True, False)
]
