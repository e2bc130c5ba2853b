"""Fifty rounds of AdaBoost on stumps.

The objective is the mean exponential loss of the vote on the rows of the fit, which is the same only if every round finds the
same stump. scikit-learn looks at values in single precision, so the table holds numbers that have no more digits. Its AdaBoost
and its trees have no threads; ours makes the table ready on two, and is on one in the rounds of a table of this size.
"""

from functools import partial

import numpy as np
from sklearn import ensemble as scikit
from sklearn.datasets import make_classification

from bench.harness import Row
from lemmata.ensemble import AdaBoostClassifier

ROUNDS = 50


def table(n, d, n_classes):
    X, y = make_classification(n, d, n_informative=d // 2, n_classes=n_classes, flip_y=0.05, random_state=0)
    return X.astype(np.float32).astype(float), y


def ours(data):
    return AdaBoostClassifier(n_estimators=ROUNDS).fit(*data)


def peer(data):
    return scikit.AdaBoostClassifier(n_estimators=ROUNDS, random_state=0).fit(*data)


def loss(data, model):
    """Mean of exp(A/2 − V), from the says and errors: what the training error is bounded by."""
    says, errors = model.estimator_weights_, model.estimator_errors_
    return float(np.prod(np.exp(-says / 2) * (1 - errors + errors * np.exp(says))))


ROWS = [
    Row(
        f"AdaBoostClassifier, {ROUNDS} stumps, {n:,} × {d}, {n_classes} classes",
        partial(table, n, d, n_classes),
        ours,
        {"scikit-learn": peer},
        loss,
        {"scikit-learn": bar},
        agree=1e-6,
        repeats=repeats,
    )
    for n, d, n_classes, bar, repeats in ((50_000, 30, 2, 40.0, 3), (50_000, 30, 5, 20.0, 2))
]
