"""Least squares and ridge at a million rows."""

import numpy as np
import sklearn.linear_model as peer

from bench.harness import Row
from lemmata.linear_model import LinearRegression, Ridge


def table(n=1_000_000, d=50):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


def squared_error(data, model):
    X, y = data
    return float(((y - X @ model.coef_ - model.intercept_) ** 2).sum())


def penalized_error(data, model):
    return squared_error(data, model) + float((model.coef_**2).sum())


def intel(name, *args):
    """Fit scikit-learn-intelex's model of this name; imported when first run."""

    def run(data):
        from importlib import import_module

        return getattr(import_module("sklearnex.linear_model"), name)(*args).fit(*data)

    return run


ROWS = [
    Row(
        "LinearRegression 1,000,000 × 50",
        table,
        lambda data: LinearRegression().fit(*data),
        {"scikit-learn": lambda data: peer.LinearRegression().fit(*data), "intelex": intel("LinearRegression")},
        squared_error,
        {"scikit-learn": 15, "intelex": 1},
    ),
    Row(
        "Ridge 1,000,000 × 50",
        table,
        lambda data: Ridge(1.0).fit(*data),
        {"scikit-learn": lambda data: peer.Ridge(1.0).fit(*data), "intelex": intel("Ridge", 1.0)},
        penalized_error,
        {"scikit-learn": 2, "intelex": 1},
    ),
]
