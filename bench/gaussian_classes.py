"""Classes that are Gaussians: fits and predictions, against scikit-learn with the same number of threads.

A fit is one pass over the rows. The objective of a fit is the mean log-posterior of the true class of some rows, that of a
prediction the mean of all log-posteriors.
"""

from functools import partial

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as PeerLDA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as PeerQDA
from sklearn.naive_bayes import GaussianNB as PeerNB

from bench.harness import Row
from lemmata.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.naive_bayes import GaussianNB

CLASSES = 3
SOME = 10_000  # rows that judge a fit
MODELS = {
    "GaussianNB": (GaussianNB, PeerNB, 1_000_000),
    "LDA": (LinearDiscriminantAnalysis, PeerLDA, 500_000),
    "QDA": (QuadraticDiscriminantAnalysis, PeerQDA, 500_000),
}


def table(n, d=50):
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.05 * rng.standard_normal((d, d)))
    X += 0.2 * rng.standard_normal((CLASSES, d))[y]
    return X, y


def holes(n, d):
    X, y = table(n, d)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    return X, y


def fitted(cls, data):
    return cls().fit(*data)


def judged(data, model):
    X, y = data[0][:SOME], data[1][:SOME]
    return float(model.predict_log_proba(X)[np.arange(SOME), y].mean())


def with_models(name, n, d=50):
    """Make rows, and models that are fitted outside the clock."""
    ours, peer, _ = MODELS[name]
    data = table(n, d)
    return data[0], ours().fit(*data), peer().fit(*data)


def logs(which, data):
    return data[which].predict_log_proba(data[0])


def labels(which, data):
    return data[which].predict(data[0])


ROWS = [
    Row(
        f"{name} fit, {n:,} × 50, {CLASSES} classes",
        partial(table, n),
        partial(fitted, ours),
        {"scikit-learn": partial(fitted, peer)},
        judged,
        {"scikit-learn": 3.0},
        agree=1e-6,
        repeats=3,
    )
    for name, (ours, peer, n) in MODELS.items()
]

ROWS += [
    Row(
        f"{name} {verb}, {n:,} × 50, {CLASSES} classes",
        partial(with_models, name, n),
        partial(function, 1),
        {"scikit-learn": partial(function, 2)},
        lambda data, found: float(found.mean()),
        {"scikit-learn": 1.0},
        agree=1e-6,
        repeats=3,
    )
    for name, (_, _, n) in MODELS.items()
    for verb, function in (("predict", labels), ("log-probabilities", logs))
]

# Nobody else learns from rows with holes: scikit-learn fits the complete ones, a few of a hundred, or fills in means.
ROWS += [
    Row(
        f"{name} fit, {n:,} × {d}, 20 % missing",
        partial(holes, n, d),
        partial(fitted, MODELS[name][0]),
        {},
        lambda data, model: float(np.nanmean(model.score_samples(data[0][:SOME]))),
        repeats=1,
    )
    for name, n, d in (("GaussianNB", 1_000_000, 50), ("LDA", 50_000, 10), ("QDA", 50_000, 10))
]
