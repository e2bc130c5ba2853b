"""The certificate of a tree refuses what is not the greedy tree within its limits, and accepts every fit, of odd tables too."""

import numpy as np
import pandas as pd
import pytest
from sklearn import tree as sk

from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor
from lemmata.tree.pruning import _without_branches


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 2)
    y = X[:, 0] + np.where(X[:, 1] > 0, 2, -1) * X[:, 2] + rng.normal(size=n) / 2
    return X, y


@pytest.mark.parametrize(
    ("asked", "grown"),
    [
        ({"max_depth": 3}, {"max_depth": 4}),
        ({"max_depth": 3}, {"max_depth": 2}),
        ({"max_leaf_nodes": 7}, {"max_leaf_nodes": 8}),
        ({"max_leaf_nodes": 7}, {"max_leaf_nodes": 6}),
        ({"min_samples_leaf": 10}, {"min_samples_leaf": 5}),
        ({"min_samples_split": 30}, {}),
        ({"min_weight_fraction_leaf": 0.1}, {}),
        ({"min_impurity_decrease": 0.05}, {"min_impurity_decrease": 0.001}),
        ({"min_impurity_decrease": 0.001}, {"min_impurity_decrease": 0.05}),
        ({"monotonic_cst": [-1, 0, 0]}, {}),
        ({"monotonic_cst": [0, 0, 1], "max_depth": 4}, {"monotonic_cst": [1, 0, 0], "max_depth": 4}),
        ({"criterion": "absolute_error", "max_depth": 2}, {"max_depth": 2}),
        ({"ccp_alpha": 0.1}, {"ccp_alpha": 0.02}),
    ],
    ids=str,
)
def test_a_tree_within_other_limits_is_refused(asked, grown):
    X, y = table()
    model = DecisionTreeRegressor(**asked).fit(X, y)
    assert model.certify(X, y).holds
    model.tree_ = DecisionTreeRegressor(**grown).fit(X, y).tree_
    assert not model.certify(X, y).holds


def test_a_branch_that_was_cut_off_and_a_turn_out_of_order_are_refused():
    X, y = table()
    model = DecisionTreeRegressor(max_depth=4).fit(X, y)
    cut = np.zeros(model.tree_.node_count, dtype=bool)
    cut[np.flatnonzero(model.tree_.children_left >= 0)[-1]] = True
    model.tree_ = _without_branches(model.tree_, cut)
    checks = {check.name: check.holds for check in model.certify(X, y).checks}
    assert not checks.pop("leaves")
    assert all(checks.values())
    full = DecisionTreeRegressor(max_leaf_nodes=40).fit(X, y)
    cut = np.zeros(full.tree_.node_count, dtype=bool)
    weakest = [c for c in np.flatnonzero(full.tree_.children_left >= 0) if full.tree_.depth[c] == 2]
    cut[max(weakest, key=lambda c: full.tree_.gain[c])] = True  # the best of its row is left out
    full.tree_ = _without_branches(full.tree_, cut)
    full.set_params(max_leaf_nodes=full.get_n_leaves())
    checks = {check.name: check.holds for check in full.certify(X, y).checks}
    assert not checks.pop("turns")
    assert all(checks.values())


def test_a_column_that_was_not_drawn_is_refused_even_if_it_is_better():
    X, y = table()
    drawn = DecisionTreeRegressor(max_features=1, max_depth=1, random_state=0)
    best = DecisionTreeRegressor(max_depth=1).fit(X, y).tree_
    refused = 0
    for seed in range(6):
        model = drawn.set_params(random_state=seed).fit(X, y)
        assert model.certify(X, y).holds
        other = model.tree_.feature[0] != best.feature[0]
        model.tree_ = best
        assert model.certify(X, y).holds != other
        refused += other
    assert 0 < refused < 6


def test_categories_and_missing_values_on_the_wrong_side_are_refused():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 200).astype(float)
    y = x % 3 + rng.normal(size=200) / 9
    x[::9] = np.nan
    model = DecisionTreeRegressor(max_depth=2, categorical_features=[0]).fit(x[:, None], y)
    assert model.certify(x[:, None], y).holds
    model.tree_.left_categories[0, 0] |= np.uint64(1 << 40)  # a category that never came
    assert not model.certify(x[:, None], y).holds
    X, y = table()
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    model.tree_.missing_go_to_left[0] ^= True  # nothing is missing, but may be later
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("name", ["feature", "children_left", "category_set", "threshold", "value", "n_node_samples"])
@pytest.mark.parametrize("nonsense", [-7, 0, 3, 10**6])
def test_nonsense_is_refused_without_a_crash(name, nonsense):
    X, y = table()
    model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    array = getattr(model.tree_, name)
    for node in (0, 1, len(array) - 1):
        kept = array[node].copy()
        array[node] = nonsense
        same = np.array_equal(array[node], kept)
        assert model.certify(X, y).holds == same
        array[node] = kept
    setattr(model.tree_, name, array[:-1])
    assert not model.certify(X, y).holds


def weights(kind, n, rng):
    if kind == "mixed":
        return 10.0 ** rng.uniform(-6, 6, n)
    return None if kind == "none" else rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("kind", ["none", "whole", "mixed"])
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("limits", [{}, {"max_leaf_nodes": 7}, {"min_weight_fraction_leaf": 0.1}], ids=str)
def test_ties_and_weights_of_all_sizes(kind, holes, limits):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n = 60
        X = np.column_stack([rng.integers(0, 4, n), np.ones(n), rng.integers(0, 4, n), rng.normal(size=n)])
        X = np.column_stack([X, X[:, 0]])  # a constant column, and one that is there twice
        y = np.round(X[:, 0] + 2 * rng.normal(size=n))
        X[rng.random(X.shape) < holes] = np.nan
        weight = weights(kind, n, rng)
        for model, target in (
            (DecisionTreeClassifier(**limits), rng.integers(0, 3, n)),
            (DecisionTreeClassifier(criterion="entropy", **limits), y > 0),
            (DecisionTreeClassifier(criterion="error", **limits), y > 0),
            (DecisionTreeRegressor(**limits), y),
            (DecisionTreeRegressor(criterion="absolute_error", **limits), y),
            (DecisionTreeClassifier(monotonic_cst=[1, 0, 0, -1, 0], **limits), y > 0),
            (DecisionTreeRegressor(monotonic_cst=[1, 0, 0, -1, 0], **limits), y),
        ):
            model.fit(X, target, weight)
            assert np.isfinite(model.tree_.gain).all()
            certificate = model.certify(X, target, weight)
            assert certificate.holds, f"{model}, seed {seed}:\n{certificate}"


@pytest.mark.parametrize("y", [1e12 + np.arange(40.0) % 7 / 4, 1 + np.arange(40) % 3 * 2.0**-52, 1e-100 * (np.arange(40) % 5)])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_numbers_far_from_zero_close_together_or_small(y, criterion):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = DecisionTreeRegressor(criterion=criterion).fit(X, y)
    assert np.array_equal(model.predict(X), y)
    if criterion == "squared_error":
        centered = y - y[0]  # exact
        assert model.tree_.impurity[0] == pytest.approx(np.var(centered), rel=1e-9)
    assert model.certify(X, y).holds


def test_numbers_and_weights_whose_squares_overflow_are_refused():
    X, y = table()
    with pytest.raises(ValueError, match="divide y by a constant"):
        DecisionTreeRegressor().fit(X, y * 1e200)
    with pytest.raises(ValueError, match="scale the weights"):
        DecisionTreeRegressor().fit(X, y, np.full(len(y), 1e-200))


@pytest.mark.parametrize("signs", [[1, 1], [-1, 1]])
@pytest.mark.parametrize("limits", [{"max_depth": 4}, {"min_samples_leaf": 5}, {"max_leaf_nodes": 9}], ids=str)
def test_monotone_in_every_column_as_in_scikit_learn(signs, limits):
    # With columns that are free, scikit-learn splits beyond the bounds and clips the values; here such splits are not made.
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(150, 2)), 1).astype(np.float32).astype(float)
    y = np.round(X @ signs + 2 * rng.normal(size=150))
    weight = rng.integers(1, 4, 150).astype(float)
    for model, peer, target in (
        (DecisionTreeRegressor, sk.DecisionTreeRegressor, y),
        (DecisionTreeClassifier, sk.DecisionTreeClassifier, y > 0),
    ):
        ours = model(monotonic_cst=signs, **limits).fit(X, target, weight)
        theirs = peer(monotonic_cst=signs, random_state=0, **limits).fit(X, target, weight)
        assert ours.get_n_leaves() == theirs.get_n_leaves()
        gap = ours.tree_.impurity[0] - ours.tree_.gain.sum()
        leaf = theirs.tree_.children_left < 0
        left = theirs.tree_.impurity[leaf] @ theirs.tree_.weighted_n_node_samples[leaf] / weight.sum()
        assert gap == pytest.approx(left, rel=1e-9)


def test_monotone_values_are_in_order_to_the_last_digit():
    rng = np.random.default_rng(2)
    for seed in range(20):
        x = rng.integers(0, 30, 80).astype(float)
        y = np.round(rng.normal(size=80), 1) + 0.1 * seed
        weight = rng.random(80)
        model = DecisionTreeRegressor(monotonic_cst=[1]).fit(x[:, None], y, weight)
        assert np.all(np.diff(model.predict(np.arange(30.0)[:, None])) >= 0)
        assert model.certify(x[:, None], y, weight).holds


def test_what_is_missing_among_categories():
    k = np.arange(60) % 5
    y = k % 2 + np.arange(60) / 1000
    names = ["x", "y", "z", "w", None]
    found = []
    for column in (
        pd.array([names[i] for i in k], dtype="string"),
        pd.Series([pd.NA if i == 4 else names[i] for i in k], dtype=object),
        pd.Series([names[i] for i in k], dtype=object),
        pd.Categorical([names[i] for i in k]),
    ):
        frame = pd.DataFrame({"a": column})
        model = DecisionTreeRegressor(max_depth=3).fit(frame, y)
        assert model.categories_[0].tolist() == ["w", "x", "y", "z"]
        assert model.certify(frame, y).holds
        found.append(model.predict(frame))
    assert all(np.array_equal(made, found[0]) for made in found)


def test_text_in_arrays_and_lists():
    k = np.arange(60) % 4
    y = k % 2 * 1.0
    text = np.array(list("abcd"))[k]
    model = DecisionTreeRegressor().fit(text[:, None], y)
    assert model.categories_[0].tolist() == ["a", "b", "c", "d"]
    assert np.array_equal(model.predict(text[:, None]), y)
    mixed = [[letter, float(i)] for i, letter in enumerate(text)]
    model = DecisionTreeRegressor().fit(mixed, y)
    assert model.is_categorical_.tolist() == [True, False]
    assert np.array_equal(model.predict(mixed), y)


def test_a_thousand_categories():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1500, 3000)
    y = rng.normal(size=1500)[x]
    model = DecisionTreeRegressor(max_depth=1, categorical_features=[0]).fit(x[:, None], y)
    rank = np.argsort(np.argsort([y[x == c].mean() if (x == c).any() else np.inf for c in range(1500)]))[x]
    order = np.argsort(rank, kind="stable")
    ordered, n = y[order], len(y)
    left = np.cumsum(ordered)[:-1]
    sizes = np.arange(1, n)
    gains = (left - sizes * y.mean()) ** 2 * n / (sizes * (n - sizes)) / n
    assert model.tree_.gain[0] == pytest.approx(gains[np.diff(rank[order]) > 0].max(), rel=1e-9)
    assert model.certify(x[:, None], y).holds
