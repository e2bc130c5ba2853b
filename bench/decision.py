"""What a decision adds to the probabilities it is made from: `Decide.predict` beside `predict_proba` of the same fitted model.

The bar of 1/1.1 means that to decide takes a tenth more time than to have the probabilities. scikit-learn has a threshold for
two classes and nothing for a matrix of costs.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import FixedThresholdClassifier

from bench.harness import Row
from bench.linear_classifiers import binary, several
from lemmata.decision import Decide, decision_cost
from lemmata.linear_model import LogisticRegression

TENTH = 1 / 1.1


class Task(NamedTuple):
    """Rows with their classes, a fitted model, costs, and the decisions on top of the model."""

    X: np.ndarray
    y: np.ndarray
    model: LogisticRegression
    costs: np.ndarray
    decide: Decide


def task(make, **options):
    X, y = make()
    model = LogisticRegression(tol=1e-4).fit(X, y)
    k = len(model.classes_)
    costs = np.random.default_rng(0).integers(1, 10, (k, k)) * (1.0 - np.eye(k))
    shares = np.bincount(y) / len(y)
    return Task(X, y, model, costs, Decide.of(model, costs, training_priors=shares, **options))


def decide(data):
    return data.decide.predict(data.X)


def probabilities(data):
    return data.model.predict_proba(data.X)


def threshold(data):
    cut = data.costs[1, 0] / (data.costs[1, 0] + data.costs[0, 1])
    peer = FixedThresholdClassifier(data.model, threshold=cut, response_method="predict_proba")
    peer.estimator_ = data.model  # fitted already
    return peer.predict(data.X)


def naive(data):
    return (data.model.predict_proba(data.X) @ data.costs.T).argmin(axis=1)


def cost(data, found):
    """Mean cost of actions, or of those that probabilities lead to."""
    taken = found if found.ndim == 1 else data.decide.risk(data.X).argmin(axis=1)
    return decision_cost(data.y, taken, data.costs)


ROWS = [
    Row(
        "Decide.predict 1,000,000 × 50, 2 classes",
        partial(task, binary),
        decide,
        {"predict_proba alone": probabilities, "probabilities, NumPy": naive, "scikit-learn threshold": threshold},
        cost,
        {"predict_proba alone": TENTH},
        repeats=40,
    ),
    Row(
        "Decide.predict 100,000 × 100, 10 classes",
        partial(task, several),
        decide,
        {"predict_proba alone": probabilities, "probabilities, NumPy": naive},
        cost,
        {"predict_proba alone": TENTH},
        repeats=40,
    ),
    Row(
        "Decide.predict 100,000 × 100, 10 classes, other priors",
        partial(task, several, priors=np.full(10, 0.1)),
        decide,
        {"predict_proba alone": probabilities},
        cost,
        {"predict_proba alone": TENTH},
        repeats=40,
    ),
]
