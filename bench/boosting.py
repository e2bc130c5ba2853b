"""Histogram gradient boosting: 100 trees of 31 leaves, and their predictions, on one million rows and fewer.

Everyone fits with two threads, 255 bins, a learning rate of 0.1 and no early stopping. The objective is the area under the
curve of the last 50,000 rows, which nobody fitted, or their root mean squared error; nobody's may be worse than ours by more
than the tolerance, nor ours than anybody's. Whether our trees are what they say is proved by the certificate.
"""

from functools import partial

import numpy as np
from sklearn import ensemble as scikit
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import roc_auc_score

from bench.harness import THREADS, Row
from lemmata.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

HELD_OUT = 50_000
TREES, LEAVES = 100, 31


def table(n, d, numbers):
    """Rows of two classes, or Friedman's first problem, whose noise is most of what is left after 100 trees."""
    if numbers:
        X, y = make_friedman1(n + HELD_OUT, d, noise=1.0, random_state=0)
    else:
        X, y = make_classification(n + HELD_OUT, d, n_informative=15, flip_y=0.05, random_state=0)
    return X[:n].copy(), y[:n], X[n:], y[n:]


def ours(data, numbers):
    kind = GradientBoostingRegressor if numbers else GradientBoostingClassifier
    return kind(max_iter=TREES, max_leaf_nodes=LEAVES, early_stopping=False).fit(data[0], data[1])


def peer(data, numbers):
    kind = scikit.HistGradientBoostingRegressor if numbers else scikit.HistGradientBoostingClassifier
    return kind(max_iter=TREES, max_leaf_nodes=LEAVES, early_stopping=False).fit(data[0], data[1])


def light(data, numbers):
    import lightgbm

    kind = lightgbm.LGBMRegressor if numbers else lightgbm.LGBMClassifier
    return kind(n_estimators=TREES, num_leaves=LEAVES, n_jobs=THREADS, verbose=-1).fit(data[0], data[1])


def extreme(data, numbers):
    import xgboost

    kind = xgboost.XGBRegressor if numbers else xgboost.XGBClassifier
    grown = {"grow_policy": "lossguide", "max_depth": 0, "max_leaves": LEAVES, "tree_method": "hist"}
    return kind(n_estimators=TREES, learning_rate=0.1, n_jobs=THREADS, **grown).fit(data[0], data[1])


def quality(data, model, numbers):
    _, _, X, y = data
    if numbers:
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    return float(roc_auc_score(y, model.predict_proba(X)[:, 1]))


def fitted(n, d, numbers):
    data = table(n, d, numbers)
    return data[0], ours(data, numbers), peer(data, numbers), light(data, numbers), extreme(data, numbers)


def predictions(data, contender):
    X, *models = data
    return models[contender].predict(X)


ROWS = [
    Row(
        f"gradient boosting, {TREES} × {LEAVES} leaves, {'numbers' if numbers else 'classes'}, {n:,} × {d}",
        partial(table, n, d, numbers),
        partial(ours, numbers=numbers),
        {
            "scikit-learn": partial(peer, numbers=numbers),
            "LightGBM": partial(light, numbers=numbers),
            "XGBoost": partial(extreme, numbers=numbers),
        },
        partial(quality, numbers=numbers),
        {"scikit-learn": 1.8, "LightGBM": 1.8, "XGBoost": 1.8},
        agree=0.005 if numbers else 0.002,
        repeats=3,
    )
    for n, d, numbers in ((200_000, 30, False), (1_000_000, 20, False), (1_000_000, 20, True))
]

ROWS += [
    Row(
        f"gradient boosting, predictions of 1,000,000 × 20, {TREES} trees",
        partial(fitted, 1_000_000, 20, True),
        partial(predictions, contender=0),
        {
            "scikit-learn": partial(predictions, contender=1),
            "LightGBM": partial(predictions, contender=2),
            "XGBoost": partial(predictions, contender=3),
        },
        lambda data, predicted: float(np.mean(predicted)),
        {"scikit-learn": 2.0},
        agree=1e-3,  # not the same trees
        repeats=3,
    )
]
