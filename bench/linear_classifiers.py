"""Logistic and softmax regression to a gradient of 1e-6, dense and sparse; perceptron and stochastic gradients, five epochs.

scikit-learn's saga is not in the sparse row: it takes many times as long as its lbfgs to this precision.
"""

from importlib import import_module

import numpy as np
import sklearn.linear_model as peer

from bench.harness import Row
from lemmata.linear_model import LogisticRegression, Perceptron, SGDClassifier

TOL, EPOCHS = 1e-6, 5


def binary(n=1_000_000, d=50):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    odds = X @ rng.standard_normal(d) * 2 / np.sqrt(d) + 0.3
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def several(n=100_000, d=100, k=10):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal((d, k)) * 2 / np.sqrt(d)
    return X, (scores + rng.gumbel(size=(n, k))).argmax(axis=1)


def words(n=200_000, d=50_000, a_row=20):
    """Columns that occur as words do, a few often and most rarely."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    odds = 1 / (np.arange(d) + 10.0) ** 0.8
    columns = rng.choice(d, size=n * a_row, p=odds / odds.sum())
    X = csr_matrix((np.abs(rng.standard_normal(n * a_row)), columns, np.arange(0, n * a_row + 1, a_row)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(d)
    return X, (rng.random(n) < 1 / (1 + np.exp(scores.mean() - scores))).astype(int)


def log_loss(data, model):
    """Mean penalized log loss."""
    X, y = data
    scores = X @ model.coef_.T + model.intercept_
    scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    top = scores.max(axis=1)
    loss = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - scores[np.arange(len(y)), y]
    return float(loss.mean() + (model.coef_**2).sum() / 2 / len(y))


def accuracy(data, model):
    X, y = data
    return float(np.mean(model.predict(X) == y))


def scikit(solver, **options):
    return lambda data: peer.LogisticRegression(solver=solver, tol=TOL, max_iter=10_000, **options).fit(*data)


def intel(data):
    return import_module("sklearnex.linear_model").LogisticRegression(tol=TOL, max_iter=10_000).fit(*data)


def ours(data):
    return LogisticRegression(tol=TOL).fit(*data)


ROWS = [
    Row(
        "LogisticRegression 1,000,000 × 50",
        binary,
        ours,
        {
            "scikit-learn lbfgs": scikit("lbfgs"),
            "scikit-learn newton-cholesky": scikit("newton-cholesky"),
            "intelex": intel,
        },
        log_loss,
        {"scikit-learn lbfgs": 1.5, "scikit-learn newton-cholesky": 1.5, "intelex": 1},
        repeats=3,
    ),
    Row(
        "softmax 100,000 × 100, 10 classes",
        several,
        ours,
        {"scikit-learn lbfgs": scikit("lbfgs"), "scikit-learn newton-cg": scikit("newton-cg")},
        log_loss,
        {"scikit-learn lbfgs": 1.5, "scikit-learn newton-cg": 1.5},
        repeats=3,
    ),
    Row(
        "sparse logistic 200,000 × 50,000, 20 a row",
        words,
        ours,
        {
            "scikit-learn liblinear": scikit("liblinear"),
            "scikit-learn lbfgs": scikit("lbfgs"),
        },
        log_loss,
        {"scikit-learn liblinear": 1.5, "scikit-learn lbfgs": 1.5},
        repeats=1,
    ),
    Row(
        "Perceptron 500,000 × 50, 5 epochs",
        lambda: binary(500_000),
        lambda data: Perceptron(max_iter=EPOCHS, random_state=0).fit(*data),
        {"scikit-learn": lambda data: peer.Perceptron(max_iter=EPOCHS, tol=None, random_state=0).fit(*data)},
        accuracy,
        {"scikit-learn": 2},
        agree=0.1,  # the last of many iterates that never settle: these classes overlap
    ),
    Row(
        "SGDClassifier 500,000 × 50, 5 epochs",
        lambda: binary(500_000),
        lambda data: SGDClassifier("log_loss", max_iter=EPOCHS, tol=None, random_state=0).fit(*data),
        {
            "scikit-learn": lambda data: peer.SGDClassifier(loss="log_loss", max_iter=EPOCHS, tol=None, random_state=0).fit(
                *data
            )
        },
        accuracy,
        {"scikit-learn": 2},
        agree=0.02,  # stochastic
    ),
]
