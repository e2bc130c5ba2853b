"""Trees: against scikit-learn, against all splits by brute force, and what they promise."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import tree as sk
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

import lemmata
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text, impurity


def tables(n, d, seed, *, holes=0.0, rounded=False):
    """Draw a table with a target that a tree can learn, as classes and as numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if rounded:
        X = np.round(X, 1)
    y = X[:, 0] + np.where(X[:, 1] > 0, 2, -1) * X[:, -1] + rng.normal(size=n) / 2
    X[rng.random((n, d)) < holes] = np.nan
    return X, np.digitize(y, np.quantile(y, [0.3, 0.7])), y


def cost(y, criterion):
    """Measure rows by the definition, times their number."""
    if criterion == "squared_error":
        return ((y - y.mean()) ** 2).sum()
    if criterion == "absolute_error":
        return np.abs(y - np.median(y)).sum()
    return len(y) * impurity(np.unique(y, return_counts=True)[1], criterion)


def best_by_force(X, y, criterion, least=1):
    """Try every threshold of every column, with missing values on either side; return what the best one leaves."""
    best = np.inf
    for x in X.T:
        there = np.unique(x[~np.isnan(x)])
        for t in [*(there[1:] + there[:-1]) / 2, np.inf]:
            for side in (False, True):
                left = np.where(np.isnan(x), side, x <= t)
                if least <= left.sum() <= len(y) - least:
                    best = min(best, cost(y[left], criterion) + cost(y[~left], criterion))
    return best


ALL = ["gini", "entropy", "error", "squared_error", "absolute_error"]


@pytest.mark.item("TRE-03")
@pytest.mark.parametrize("criterion", ALL)
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("least", [1, 6])
def test_every_split_is_the_best_of_all(criterion, holes, rounded, least):
    X, labels, numbers = tables(70, 3, 1, holes=holes, rounded=rounded)
    numeric = criterion.endswith("_error") and criterion != "error"
    y = numbers if numeric else labels
    model = (DecisionTreeRegressor if numeric else DecisionTreeClassifier)(criterion=criterion, min_samples_leaf=least).fit(
        X, y
    )
    tree, path = model.tree_, model.decision_path(X).toarray().astype(bool)
    for node in np.flatnonzero(tree.children_left >= 0):
        own, child = path[:, node], tree.children_left[node]
        left = path[:, child]
        assert np.array_equal(own, left | path[:, child + 1])
        found = cost(y[left], criterion) + cost(y[own & ~left], criterion)
        assert found == pytest.approx(best_by_force(X[own], y[own], criterion, least), abs=1e-9 * cost(y, criterion))
        x = X[own & ~np.isnan(X[:, tree.feature[node]]), tree.feature[node]]
        if np.isfinite(tree.threshold[node]):
            below, above = x[x <= tree.threshold[node]].max(), x[x > tree.threshold[node]].min()
            assert tree.threshold[node] == pytest.approx((below + above) / 2)


@pytest.mark.item("TRE-03")
def test_children_are_weighted_by_their_rows():
    # Unweighted, the cut that sets one row of a class apart would win: one pure child, and one hardly more mixed than all.
    X, y = np.arange(10.0)[:, None], np.array([1, 0, 0, 0, 1, 0, 1, 1, 1, 1])
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y).tree_
    assert tree.threshold[0] == 5.5
    assert tree.gain[0] == pytest.approx(0.48 - (6 * impurity([4, 2]) + 0) / 10)


@pytest.mark.item("TRE-04")
@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
def test_a_full_tree_makes_no_errors_on_rows_that_differ(criterion):
    X, y, _ = tables(300, 4, 2)
    model = DecisionTreeClassifier(criterion=criterion).fit(X, y)
    assert model.score(X, y) == 1
    tree = model.tree_
    leaves = tree.children_left < 0
    assert tree.n_node_samples[leaves].sum() == 300  # leaves part the rows
    assert np.array_equal(np.bincount(model.apply(X), minlength=tree.node_count)[leaves], tree.n_node_samples[leaves])
    assert (tree.gain >= 0).all()  # total impurity never rises
    assert tree.impurity[0] - tree.gain.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.item("TRE-04")
def test_exclusive_or_takes_a_split_without_gain():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    model = DecisionTreeClassifier().fit(X, y)
    assert model.tree_.gain[0] == 0
    assert model.score(X, y) == 1


@pytest.mark.item("TRE-04")
def test_the_leaf_with_the_largest_gain_is_split_next():
    X, y, _ = tables(200, 3, 3)
    full, gains = DecisionTreeClassifier(criterion="entropy").fit(X, y).tree_, []
    waiting = [0]
    while waiting:  # by hand, on the tree that has all splits
        node = max(waiting, key=lambda node: full.gain[node] * (full.children_left[node] >= 0))
        gains.append(full.gain[node])
        waiting.remove(node)
        waiting += [c for c in (full.children_left[node], full.children_left[node] + 1) if full.children_left[c] >= 0]
    for leaves in (2, 5, 17):
        tree = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=leaves).fit(X, y).tree_
        assert tree.n_leaves == leaves
        assert np.sort(tree.gain)[::-1][: leaves - 1] == pytest.approx(np.sort(gains[: leaves - 1])[::-1])


@pytest.mark.item("TRE-05")
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_leaves_of_a_regression_tree_minimize_their_loss(criterion):
    X, _, y = tables(150, 3, 4)
    errors = []
    for depth in range(1, 8):
        model = DecisionTreeRegressor(criterion=criterion, max_depth=depth).fit(X, y)
        made, leaf = model.predict(X), model.apply(X)
        errors.append(cost_of(y - made, criterion))
        for node in np.unique(leaf):
            own = leaf == node
            center = y[own].mean() if criterion == "squared_error" else np.median(y[own])
            assert made[own] == pytest.approx(center)
            for other in (center - 0.01, center + 0.01):
                assert cost_of(y[own] - other, criterion) >= cost_of(y[own] - center, criterion) - 1e-12
    assert np.all(np.diff(errors) <= 1e-9)


def cost_of(residual, criterion):
    return (residual**2 if criterion == "squared_error" else np.abs(residual)).sum()


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("limits", [{}, {"max_depth": 3}, {"min_samples_leaf": 7}, {"max_leaf_nodes": 9}], ids=str)
def test_as_good_as_scikit_learn(load, criterion, limits):
    X, y = load(return_X_y=True)
    X = X.astype(np.float32).astype(float)  # which is how scikit-learn sees them
    ours = DecisionTreeClassifier(criterion=criterion, **limits).fit(X, y).tree_
    peer = sk.DecisionTreeClassifier(criterion=criterion, random_state=0, **limits).fit(X, y).tree_
    assert compare(ours, peer) >= 1


def compare(ours, peer):
    """Walk down two trees as long as they agree; equal gains may be ties, and end a walk. Return how many nodes were met."""
    stack, met = [(0, 0)], 0
    while stack:
        a, b = stack.pop()
        met += 1
        assert ours.n_node_samples[a] == peer.n_node_samples[b]
        assert ours.impurity[a] == pytest.approx(peer.impurity[b], abs=1e-9)
        if ours.children_left[a] < 0 or peer.children_left[b] < 0:
            assert ours.children_left[a] < 0
            assert peer.children_left[b] < 0
            continue
        left, right = peer.children_left[b], peer.children_right[b]
        n = peer.weighted_n_node_samples
        gain = (n[b] * peer.impurity[b] - n[left] * peer.impurity[left] - n[right] * peer.impurity[right]) / n[0]
        assert ours.gain[a] == pytest.approx(gain, abs=1e-9 * peer.impurity[0])
        if ours.feature[a] == peer.feature[b] and abs(ours.threshold[a] - peer.threshold[b]) < 1e-9:
            stack += [(ours.children_left[a], left), (ours.children_left[a] + 1, right)]
    return met


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("limits", [{"max_depth": 4}, {"min_samples_leaf": 9}, {"max_leaf_nodes": 12}], ids=str)
def test_numbers_as_well_as_scikit_learn(criterion, limits):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    ours = DecisionTreeRegressor(criterion=criterion, **limits).fit(X, y)
    peer = sk.DecisionTreeRegressor(criterion=criterion, random_state=0, **limits).fit(X, y)
    assert compare(ours.tree_, peer.tree_) >= 5


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["two classes", "numbers"])
def test_the_best_set_of_categories_is_found(kind, weighted):
    rng = np.random.default_rng(5)
    for trial in range(20):
        x, z = rng.integers(0, 7, 60), rng.normal(size=60)
        y = (
            (rng.normal(size=7)[x] + rng.normal(size=60) > 0).astype(int)
            if kind == "two classes"
            else rng.normal(size=60) + x % 3
        )
        if len(np.unique(y)) < 2:
            continue
        weight = rng.integers(1, 4, 60).astype(float) if weighted else None
        Model = DecisionTreeClassifier if kind == "two classes" else DecisionTreeRegressor
        model = Model(max_depth=1, categorical_features=[0]).fit(np.column_stack([x, z * 0]), y, weight)
        rows = np.repeat(np.arange(60), 1 if weight is None else weight.astype(int))
        criterion = "gini" if kind == "two classes" else "squared_error"
        best = min(
            cost(y[rows][left], criterion) + cost(y[rows][~left], criterion)
            for r in range(1, 7)
            for some in itertools.combinations(range(7), r)
            if 0 < (left := np.isin(x[rows], some)).sum() < len(rows)
        )
        assert (model.tree_.impurity[0] - model.tree_.gain[0]) * len(rows) == pytest.approx(best), trial
        assert model.certify(np.column_stack([x, z * 0]), y, weight).holds


def test_text_columns_of_frames():
    rng = np.random.default_rng(6)
    color, size = rng.choice(["red", "green", "blue", None], 200), rng.normal(size=200)
    y = np.where(color == "blue", 5.0, 0.0) + np.where(color == None, 2.0, 0.0) + size  # noqa: E711
    expected = None
    for frame in (pd.DataFrame, lambda table: pl.DataFrame({k: list(v) for k, v in table.items()})):
        table = frame({"color": color, "size": size})
        model = DecisionTreeRegressor(max_depth=3).fit(table, y)
        assert model.is_categorical_.tolist() == [True, False]
        assert model.categories_[0].tolist() == ["blue", "green", "red"]
        made = model.predict(table)
        expected = made if expected is None else expected
        assert np.array_equal(made, expected)
        assert model.certify(table, y).holds
    assert "color in {blue}" in export_text(model)
    unknown, missing = frame({"color": ["violet"], "size": [0.0]}), frame({"color": [None], "size": [0.0]})
    assert model.predict(unknown) == model.predict(missing)


def test_categories_of_many_classes_are_no_worse_than_any_order_by_one_class():
    rng = np.random.default_rng(7)
    x = rng.integers(0, 9, 300)
    y = (x * 7 % 4 + rng.integers(0, 2, 300)) % 4
    model = DecisionTreeClassifier(max_depth=1, categorical_features=[0]).fit(x[:, None], y)
    shares = np.array([[np.mean(y[x == c] == k) for k in range(4)] for c in range(9)])
    for k in range(4):
        order = np.argsort(shares[:, k])
        for cut in range(1, 9):
            left = np.isin(x, order[:cut])
            assert model.tree_.gain[0] * 300 >= cost(y, "gini") - cost(y[left], "gini") - cost(y[~left], "gini") - 1e-9


def test_missing_values_go_where_they_are_told_apart_best():
    x = np.array([1.0, 2.0, 3.0, np.nan, np.nan, np.nan])
    model = DecisionTreeClassifier().fit(x[:, None], [0, 0, 0, 1, 1, 1])
    assert model.tree_.node_count == 3
    assert np.isinf(model.tree_.threshold[0])
    assert model.predict([[np.nan], [7.0]]).tolist() == [1, 0]
    assert export_text(model, feature_names=["x"]).splitlines()[::2] == ["x is there", "x is missing"]
    model = DecisionTreeClassifier().fit(x[:, None], [0, 1, 1, 0, 0, 0])
    assert model.tree_.missing_go_to_left[0]
    assert model.score(x[:, None], [0, 1, 1, 0, 0, 0]) == 1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_monotone_constraints_hold_everywhere(sign, kind):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(400, 3))
    y = sign * X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=400)
    if kind == "classes":
        model = DecisionTreeClassifier(monotonic_cst=[sign, 0, 0], min_samples_leaf=5).fit(X, y > 0)
    else:
        model = DecisionTreeRegressor(monotonic_cst=[sign, 0, 0], min_samples_leaf=5).fit(X, y)
    grid = np.repeat(rng.normal(size=(50, 1, 3)), 40, axis=1)
    grid[:, :, 0] = np.linspace(-3, 3, 40)
    made = model.predict_proba(grid.reshape(-1, 3))[:, 1] if kind == "classes" else model.predict(grid.reshape(-1, 3))
    steps = sign * np.diff(made.reshape(50, 40), axis=1)
    assert steps.min() >= 0
    assert steps.max() > 0
    assert model.certify(X, y > 0 if kind == "classes" else y).holds


def test_class_weights_are_weights_of_rows():
    X, y, _ = tables(100, 3, 9)
    factors = {0: 1.0, 1: 3.0, 2: 0.5}
    by_class = DecisionTreeClassifier(class_weight=factors, max_depth=4).fit(X, y)
    by_row = DecisionTreeClassifier(max_depth=4).fit(X, y, np.array([factors[k] for k in y]))
    assert by_class.tree_ == by_row.tree_
    balanced = DecisionTreeClassifier(class_weight="balanced", max_depth=1).fit(X, y)
    assert balanced.tree_.value[0] == pytest.approx(np.full(3, 1 / 3))
    assert balanced.certify(X, y).holds


@pytest.mark.parametrize("n", [500, pytest.param(30_000, marks=pytest.mark.slow_without_jit)])
def test_the_same_tree_for_any_number_of_threads(n):
    X, y, numbers = tables(n, 4, 10, holes=0.05)
    with lemmata.config(n_threads=1):
        one = DecisionTreeClassifier(max_features=2, random_state=0).fit(X, y).tree_
        other = DecisionTreeRegressor(max_depth=9).fit(X, numbers).tree_
    with lemmata.config(n_threads=3):
        assert DecisionTreeClassifier(max_features=2, random_state=0).fit(X, y).tree_ == one
        assert DecisionTreeRegressor(max_depth=9).fit(X, numbers).tree_ == other
    # Grown in one piece, without subtrees for other threads: best first with no limit that matters
    assert DecisionTreeRegressor(max_depth=9, max_leaf_nodes=n).fit(X, numbers).tree_.n_leaves == other.n_leaves


def test_many_classes_and_values_near_each_other():
    rng = np.random.default_rng(11)
    y = rng.integers(0, 400, 2000)
    X = np.column_stack([1 + y * 1e-13, rng.normal(size=2000)])
    assert DecisionTreeClassifier().fit(X, y).score(X, y) == 1


def test_columns_are_drawn_anew_at_every_node():
    X, y, _ = tables(400, 6, 12)
    trees = [DecisionTreeClassifier(max_features="sqrt", random_state=s).fit(X, y) for s in range(2)]
    assert trees[0].tree_ != trees[1].tree_
    assert trees[0].max_features_ == 2
    assert len(np.unique(trees[0].tree_.feature)) == 7  # all six, and the mark of a leaf
    for model in trees:
        assert model.certify(X, y).holds
    model = trees[0]
    model._seed += 1  # other columns
    assert not model.certify(X, y).holds


def test_counted_and_sorted_columns_give_the_same_tree(monkeypatch):
    from lemmata.tree import exact

    X, y, numbers = tables(600, 4, 13, holes=0.1, rounded=True)
    for model, target in ((DecisionTreeClassifier(), y), (DecisionTreeClassifier(), y > 0), (DecisionTreeRegressor(), numbers)):
        counted = model.fit(X, target).tree_
        with monkeypatch.context() as patch:
            patch.setattr(exact, "FEW_VALUES", 0)
            assert np.array_equal(model.fit(X, target).tree_.feature, counted.feature)
            assert np.array_equal(model.tree_.threshold, counted.threshold)


def test_leaves_as_sparse_features():
    X, y, _ = tables(50, 3, 14)
    model = DecisionTreeClassifier(max_leaf_nodes=6).fit(X, y)
    marks = model.leaf_indicator(X)
    assert marks.shape == (50, 11)
    assert np.array_equal(marks.toarray().argmax(axis=1), model.apply(X))
    assert marks.sum() == 50
    path = model.decision_path(X)
    peer = sk.DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(X, y)
    assert path.sum() == peer.decision_path(X).sum()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotonic_cst": [1, 0]}, "for each of the 3 columns"),
        ({"monotonic_cst": [1, 0, 0]}, "more than two classes"),
        ({"monotonic_cst": [1, 0, 0], "categorical_features": [0]}, "has none"),
        ({"categorical_features": [7]}, "numbers of columns from 0 to 2"),
        ({"categorical_features": ["size"]}, "X has no names"),
        ({"categorical_features": [True]}, "marks 1 columns"),
        ({"class_weight": {9: 1.0}}, "not a class"),
    ],
    ids=str,
)
def test_nonsense_is_refused(parameters, message):
    X, y, _ = tables(30, 3, 15)
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(**parameters).fit(X, y)
