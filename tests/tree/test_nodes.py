"""Descent: the fast way for four rows at a time, and the one through sets, against a walk node by node."""

import numpy as np
import pytest

from lemmata.tree import DecisionTreeRegressor
from lemmata.tree.draw import mix, shuffle, uniform
from lemmata.tree.nodes import Trees
from lemmata.tree.presort import order_of


def walked(tree, x):
    node = 0
    while tree.children_left[node] >= 0:
        left = tree.goes_left(node, x[tree.feature[node] : tree.feature[node] + 1])[0]
        node = tree.children_left[node] + (0 if left else 1)
    return node


@pytest.mark.parametrize("categorical", [None, [0, 2]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 3, 4, 101])
def test_every_way_down_leads_to_the_same_leaf(categorical, dtype, n):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 90, size=(300, 4)).astype(float), rng.normal(size=300)
    X[rng.random(X.shape) < 0.1] = np.nan
    models = [DecisionTreeRegressor(max_leaf_nodes=k, categorical_features=categorical).fit(X, y) for k in (30, 7)]
    trees = Trees.of([model.tree_ for model in models])
    new = rng.integers(-5, 200, size=(n, 4)).astype(dtype)  # with values and categories that were not seen
    new[rng.random(new.shape) < 0.1] = np.nan
    expected = np.array([[walked(tree, x) for tree in trees] for x in new])
    assert np.array_equal(trees.leaves(new), expected)
    total = sum(tree.value[expected[:, t]] for t, tree in enumerate(trees))
    assert np.array_equal(trees.total(new), total)
    assert trees[0] == models[0].tree_
    assert trees[-1] == models[1].tree_
    assert trees[0] != trees[1]


@pytest.mark.parametrize(
    "x",
    [
        [3.0, 1.0, 2.0],
        [0.0, -0.0, 0.0, -1.0],
        [np.nan, 1.0, -np.nan, -np.inf, np.inf],
        [1e308, -1e308, 5e-324, -5e-324, 0.0],
        1 + np.random.default_rng(0).integers(0, 100, 300) * 2.0**-52,  # differ in the last digits only
        np.random.default_rng(1).integers(0, 3, 300).astype(float),
    ],
    ids=["plain", "zeros", "no numbers", "extremes", "last digits", "few"],
)
def test_the_order_is_that_of_a_stable_sort(x):
    x = np.array(x)
    assert np.array_equal(order_of(x), np.argsort(x, kind="stable"))


def test_draws_depend_on_the_key_only_and_are_even():
    counts = np.zeros((5, 5))
    for seed in range(2000):
        order = np.arange(5)
        shuffle(np.uint64(mix(np.uint64(seed), np.uint64(1))), order)
        again = np.arange(5)
        shuffle(np.uint64(mix(np.uint64(seed), np.uint64(1))), again)
        assert np.array_equal(order, again)
        counts[np.arange(5), order] += 1
    assert abs(counts - 400).max() < 5 * np.sqrt(400)  # five standard deviations of a count
    draws = [uniform(np.uint64(mix(np.uint64(3), np.uint64(i)))) for i in range(4000)]
    assert np.mean(draws) == pytest.approx(0.5, abs=5 / np.sqrt(12 * 4000))
