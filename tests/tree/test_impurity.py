"""Impurities: the catalogue's numbers, their bounds and their concavity."""

import numpy as np
import pytest

from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor, impurity, split_gain

CRITERIA = ["gini", "entropy", "error"]


@pytest.mark.item("TRE-01")
def test_the_numbers_of_the_catalogue():
    third, half = [1 / 3] * 3, [0.5, 0.5]
    assert impurity(third, "entropy", base=np.e) == pytest.approx(1.098612, abs=5e-7)
    assert impurity(third, "entropy") == pytest.approx(1.584963, abs=5e-7)
    assert impurity(third) == pytest.approx(0.666667, abs=5e-7)
    assert impurity(third, "error") == pytest.approx(0.666667, abs=5e-7)
    assert impurity(half, "entropy", base=np.e) == pytest.approx(0.693147, abs=5e-7)
    assert [impurity(half, c) for c in ("entropy", "gini", "error")] == [1.0, 0.5, 0.5]


@pytest.mark.item("TRE-01")
@pytest.mark.parametrize("criterion", CRITERIA)
def test_largest_where_equal_zero_where_pure_and_concave(criterion):
    rng = np.random.default_rng(0)
    for k in (2, 3, 7):
        assert impurity(np.eye(k)[0], criterion) == 0
        for _ in range(50):
            p, q, t = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k)), rng.random()
            assert impurity(p, criterion) <= impurity(np.ones(k), criterion) + 1e-15
            mixed = impurity(t * p + (1 - t) * q, criterion)
            assert mixed >= t * impurity(p, criterion) + (1 - t) * impurity(q, criterion) - 1e-14
            assert split_gain(rng.integers(0, 9, k) + np.eye(k)[0], rng.integers(0, 9, k) + np.eye(k)[0], criterion) >= -1e-14


@pytest.mark.item("TRE-02")
def test_variance_is_what_is_within_plus_what_is_between():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80) * 5 + 100
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y).tree_
    assert tree.impurity[0] == pytest.approx(((y - y.mean()) ** 2).mean(), rel=1e-13)  # divisor n
    for node in np.flatnonzero(tree.children_left >= 0):
        child = tree.children_left[node]
        n = tree.n_node_samples[[child, child + 1]] / tree.n_node_samples[node]
        within = n @ tree.impurity[child : child + 2]
        between = n @ (tree.value[child : child + 2, 0] - tree.value[node, 0]) ** 2
        assert tree.impurity[node] == pytest.approx(within + between, rel=1e-10)
        assert tree.gain[node] == pytest.approx(between * tree.n_node_samples[node] / 80, rel=1e-10)


@pytest.mark.item("TRE-06")
def test_fifty_of_each_kind_of_iris():
    assert impurity([50, 50, 50], "entropy") == pytest.approx(1.584963, abs=5e-7)
    assert [impurity([50, 0, 0], "entropy"), impurity([0, 50, 50], "entropy")] == [0.0, 1.0]
    assert impurity([50, 50, 50], "entropy", base=np.e) == pytest.approx(1.098612, abs=5e-7)
    assert impurity([0, 50, 50], "entropy", base=np.e) == pytest.approx(0.693147, abs=5e-7)
    left, right = [50, 0, 0], [0, 50, 50]
    assert split_gain(left, right, "entropy") == pytest.approx(0.918296, abs=5e-7)
    assert split_gain(left, right, "entropy", base=np.e) == pytest.approx(0.636514, abs=5e-7)
    assert impurity([50] * 3, "entropy") - split_gain(left, right, "entropy") == pytest.approx(0.666667, abs=5e-7)
    assert impurity([50] * 3) - split_gain(left, right) == pytest.approx(0.333333, abs=5e-7)


@pytest.mark.item("TRE-06")
def test_the_tree_of_iris_finds_that_split():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(X, y).tree_
    assert tree.impurity == pytest.approx([1.584963, 0, 1], abs=5e-7)
    assert tree.gain[0] == pytest.approx(0.918296, abs=5e-7)
    assert np.array_equal(tree.n_node_samples, [150, 50, 100])


@pytest.mark.parametrize(("counts", "criterion"), [([], "gini"), ([0, 0], "gini"), ([-1, 2], "error"), ([1, 1], "mse")])
def test_nonsense_is_refused(counts, criterion):
    with pytest.raises(ValueError, match="must be"):
        impurity(counts, criterion)
