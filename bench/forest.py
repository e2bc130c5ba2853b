"""Forests and bagging: equal numbers of trees on the same rows, out-of-bag or held-out accuracy beside the time."""

from functools import cache

import numpy as np
import sklearn.ensemble as peer
from sklearn.linear_model import LogisticRegression as PeerLogistic

from bench.harness import THREADS, Row
from lemmata.ensemble import BaggingClassifier, RandomForestClassifier, RandomForestRegressor
from lemmata.linear_model import LogisticRegression


def rows(n=50_000, d=30):
    from sklearn.datasets import make_classification

    return make_classification(n, d, n_informative=15, flip_y=0.05, random_state=0)


def numbers(n=20_000, d=10):
    from sklearn.datasets import make_friedman1

    return make_friedman1(n, d, noise=1.0, random_state=0)


@cache
def grown():
    """A forest of each, to predict with; made once, outside the clock."""
    X, y = rows()
    theirs = peer.RandomForestClassifier(random_state=0, n_jobs=THREADS).fit(X, y)
    return RandomForestClassifier(random_state=0, oob_score=False).fit(X, y), theirs


def many(n=1_000_000):
    X, y = rows()
    grown()
    repeats = -(-n // len(y))
    return np.tile(X, (repeats, 1))[:n], np.tile(y, repeats)[:n]


def intelex(data):
    from sklearnex.ensemble import RandomForestClassifier as Peer

    return Peer(random_state=0, n_jobs=THREADS, oob_score=True).fit(*data)


ROWS = [
    Row(
        "RandomForestClassifier 50,000 × 30, 100 trees",
        rows,
        lambda data: RandomForestClassifier(random_state=0).fit(*data),
        {
            "scikit-learn": lambda data: peer.RandomForestClassifier(random_state=0, n_jobs=THREADS, oob_score=True).fit(*data),
            "scikit-learn-intelex": intelex,
        },
        lambda data, model: model.oob_score_,
        {"scikit-learn": 10.0, "scikit-learn-intelex": 2.0},
        agree=3e-3,  # seeds move the out-of-bag accuracy by a tenth of a point
        repeats=2,
    ),
    Row(
        "RandomForestClassifier predicts 1,000,000 × 30, 100 trees",
        many,
        lambda data: grown()[0].predict(data[0]),
        {"scikit-learn": lambda data: grown()[1].predict(data[0])},
        lambda data, labels: float((labels == data[1]).mean()),
        {"scikit-learn": 2.0},
        agree=3e-3,
        repeats=2,
    ),
    Row(
        "RandomForestRegressor 20,000 × 10, 50 trees",
        numbers,
        lambda data: RandomForestRegressor(50, random_state=0).fit(*data),
        {
            "scikit-learn": lambda data: peer.RandomForestRegressor(50, random_state=0, n_jobs=THREADS, oob_score=True).fit(
                *data
            )
        },
        lambda data, model: model.oob_score_,
        agree=5e-3,
        repeats=2,
    ),
    Row(
        "BaggingClassifier of logistic regressions 50,000 × 30, 20 members",
        rows,
        lambda data: BaggingClassifier(LogisticRegression(), 20, oob_score=False, random_state=0).fit(*data),
        {
            "scikit-learn": lambda data: peer.BaggingClassifier(PeerLogistic(), 20, random_state=0, n_jobs=THREADS).fit(*data),
        },
        lambda data, model: float(model.score(*data)),
        agree=3e-3,
        repeats=2,
    ),
]
