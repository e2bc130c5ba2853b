"""The lasso at 2,000 × 10,000: one penalty, and a path of fifty.

Stopping rule: a duality gap of 1e-6 of ‖y‖² (scikit-learn, celer) or, stricter, of the objective (ours).
"""

import numpy as np
import sklearn.linear_model as peer

from bench.harness import Row
from lemmata.linear_model import Lasso, lasso_path

TOL = 1e-6
SHARE, LOW, COUNT = 0.1, 1e-2, 50


def table(n=2_000, d=10_000, support=100):
    """Columns that correlate with their neighbors, in the layout that coordinate descent prefers, and a third of noise."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d)))
    w = np.zeros(d)
    w[rng.choice(d, support, replace=False)] = rng.standard_normal(support)
    y = X @ w
    y += rng.standard_normal(n) * np.linalg.norm(y) / np.sqrt(n) / 3
    X -= X.mean(axis=0)
    y -= y.mean()
    return X, y, float(np.abs(X.T @ y).max()) / n


def one(data, coef):
    X, y, largest = data
    return float(((y - X @ coef) ** 2).sum() / (2 * len(y)) + SHARE * largest * np.abs(coef).sum())


def alphas(data):
    return data[2] * np.geomspace(1, LOW, COUNT)


def last(data, coefs):
    """Mean objective over the path, which every penalty moves."""
    X, y, _ = data
    loss = ((y[:, None] - X @ coefs) ** 2).sum(axis=0) / (2 * len(y))
    return float((loss + alphas(data) * np.abs(coefs).sum(axis=0)).mean())


def celer_one(data):
    import celer

    return celer.Lasso(alpha=SHARE * data[2], tol=TOL).fit(*data[:2]).coef_


def celer_many(data):
    import celer

    return celer.celer_path(*data[:2], pb="lasso", alphas=alphas(data), tol=TOL)[1]


ROWS = [
    Row(
        "Lasso 2,000 × 10,000 at 0.1 alpha_max",
        table,
        lambda data: Lasso(SHARE * data[2], tol=TOL).fit(*data[:2]).coef_,
        {
            "scikit-learn": lambda data: peer.Lasso(SHARE * data[2], tol=TOL, max_iter=100_000).fit(*data[:2]).coef_,
            "celer": celer_one,
        },
        one,
        {"scikit-learn": 2, "celer": 1},
        agree=1e-5,  # a gap of 1e-6 of ‖y‖² is more than 1e-6 of the objective
    ),
    Row(
        "lasso_path 2,000 × 10,000, 50 alphas to 1e-2",
        table,
        lambda data: lasso_path(*data[:2], alphas=alphas(data), tol=TOL)[1],
        {
            "scikit-learn": lambda data: peer.lasso_path(*data[:2], alphas=alphas(data), tol=TOL, max_iter=100_000)[1],
            "celer": celer_many,
        },
        last,
        {"scikit-learn": 4, "celer": 1},
        agree=1e-5,
        repeats=3,
    ),
]
