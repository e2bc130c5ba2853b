"""Exact trees against scikit-learn's.

Splits are the same up to exact ties, of which a tree grown fully has thousands; after a tie the trees differ. So trees that are
cut off early are compared by the impurity of their leaves, full ones by their accuracy on rows held out.
"""

from functools import partial

import numpy as np
from sklearn import tree as sk
from sklearn.datasets import make_classification

from bench.harness import Row
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor


def continuous(n):
    X, y = make_classification(n + 50_000, 30, n_informative=15, flip_y=0.05, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


def counted(n, d=30, values=16):
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, size=(n + 50_000, d)).astype(float)
    y = (X[:, :6].sum(axis=1) + rng.normal(size=len(X)) * 6 > 3 * (values - 1)).astype(int) + (X[:, 6] > values / 2)
    return X[:n], y[:n], X[n:], y[n:]


def numbers(n):
    X, _, Z, _ = continuous(n)
    rng = np.random.default_rng(1)
    f = [T[:, 0] * T[:, 1] + np.sin(T[:, 2]) * 3 + np.abs(T[:, 3]) for T in (X, Z)]
    return X, f[0] + rng.normal(size=len(X)), Z, f[1] + rng.normal(size=len(Z))


def grow(Model, data, **limits):
    return Model(**limits).fit(data[0], data[1])


def held_out(data, model):
    return float(model.score(data[2], data[3]))


def leaf_impurity(data, model):
    tree = model.tree_
    leaf = tree.children_left < 0
    return float(tree.weighted_n_node_samples[leaf] @ tree.impurity[leaf])


def row(name, make, ours, peer, objective, bar, agree, repeats=2, **limits):
    peers = {"scikit-learn": partial(grow, peer, random_state=1, **limits)}  # breaks ties by chance, this seed in our order
    bars = {} if bar is None else {"scikit-learn": bar}
    return Row(name, make, partial(grow, ours, **limits), peers, objective, bars, agree=agree, repeats=repeats)


CLASSES, NUMBERS = (DecisionTreeClassifier, sk.DecisionTreeClassifier), (DecisionTreeRegressor, sk.DecisionTreeRegressor)
ROWS = [
    row("tree, 200,000 × 30, two classes, full", partial(continuous, 200_000), *CLASSES, held_out, 10.0, 5e-3),
    row(
        "tree, 200,000 × 30, two classes, depth 8",
        partial(continuous, 200_000),
        *CLASSES,
        leaf_impurity,
        10.0,
        1e-6,
        max_depth=8,
    ),
    row("tree, 50,000 × 30, entropy, full", partial(continuous, 50_000), *CLASSES, held_out, 10.0, 5e-3, criterion="entropy"),
    row("tree, 200,000 × 30 of 16 values, three classes, full", partial(counted, 200_000), *CLASSES, held_out, None, 1e-2),
    row("regression tree, 100,000 × 30, full", partial(numbers, 100_000), *NUMBERS, held_out, 10.0, 5e-3),
    row(
        "regression tree, 10,000 × 30, absolute errors, depth 8",
        partial(numbers, 10_000),
        *NUMBERS,
        leaf_impurity,
        None,
        1e-3,  # absolute errors tie often, in nodes of any size
        criterion="absolute_error",
        max_depth=8,
    ),
]
