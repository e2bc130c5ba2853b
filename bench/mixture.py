"""Gaussian mixtures: the same number of plain EM iterations from the same start.

Overlapping Gaussians of unit variance; everyone gets the same weights, means and precisions to begin with.
"""

from functools import partial

import numpy as np
import sklearn.mixture as peer

from bench.harness import Row
from lemmata.mixture import GaussianMixture

STEPS = 50


def table(n, d, k, kind):
    rng = np.random.default_rng(0)
    means = 3.0 * rng.standard_normal((k, d))
    X = means[rng.integers(k, size=n)] + rng.standard_normal((n, d))
    ones = {"full": np.array([np.eye(d)] * k), "tied": np.eye(d), "diag": np.ones((k, d)), "spherical": np.ones(k)}
    start = {"means_init": X[rng.choice(n, k, replace=False)], "weights_init": np.full(k, 1 / k), "precisions_init": ones[kind]}
    return X, {"n_components": k, "covariance_type": kind, "tol": 0.0, "max_iter": STEPS, **start}


def ours(data):
    X, settings = data
    return GaussianMixture(**settings, acceleration=None).fit(X)


def scikit(data):
    X, settings = data
    return peer.GaussianMixture(**settings).fit(X)


def likelihood(data, model):
    return float(model.score(data[0]))


ROWS = [
    Row(
        f"GaussianMixture {kind} {n:,} × {d}, k = {k}, {STEPS} iterations",
        partial(table, n, d, k, kind),
        ours,
        {"scikit-learn": scikit},
        likelihood,
        {"scikit-learn": bar},
        agree=1e-9,
        repeats=2,
    )
    for n, d, k, kind, bar in (
        (100_000, 10, 10, "full", 8.0),
        (200_000, 20, 50, "diag", 5.0),
        (100_000, 10, 10, "tied", 5.0),
        (100_000, 10, 10, "spherical", 5.0),
    )
]
