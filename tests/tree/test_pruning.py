"""Cost-complexity pruning: against every subtree by force, and against scikit-learn."""

import numpy as np
import pytest
from sklearn import tree as sk
from sklearn.datasets import load_breast_cancer, load_diabetes

from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor
from lemmata.tree.pruning import pruned, risks


def subtrees(tree, node=0):
    """Give (risk, leaves) of every subtree with this root."""
    risk = risks(tree)[node]
    yield risk, 1
    child = tree.children_left[node]
    if child >= 0:
        for a, m in subtrees(tree, child):
            for b, n in subtrees(tree, child + 1):
                yield a + b, m + n


def test_no_subtree_is_better_and_none_as_good_is_smaller():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + rng.normal(size=40)
    tree = DecisionTreeRegressor(max_leaf_nodes=9).fit(X, y).tree_
    every = list(subtrees(tree))
    for alpha in (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0):
        small = pruned(tree, alpha)
        leaf = small.children_left < 0
        cost = risks(small)[leaf].sum() + alpha * small.n_leaves
        least = min(risk + alpha * leaves for risk, leaves in every)
        assert cost == pytest.approx(least, abs=1e-12)
        assert small.n_leaves == min(leaves for risk, leaves in every if risk + alpha * leaves <= least + 1e-12)


def test_the_path_is_that_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    limits = {"min_samples_leaf": 8}
    ours = DecisionTreeRegressor(**limits).cost_complexity_pruning_path(X, y)
    peer = sk.DecisionTreeRegressor(random_state=0, **limits).cost_complexity_pruning_path(X, y)
    assert ours.ccp_alphas == pytest.approx(peer.ccp_alphas, rel=1e-6)  # no two links of equal strength
    assert ours.impurities == pytest.approx(peer.impurities, rel=1e-6)


@pytest.mark.slow_without_jit
def test_a_price_from_the_path_gives_its_tree():
    X, y = load_breast_cancer(return_X_y=True)
    path = DecisionTreeClassifier().cost_complexity_pruning_path(X, y)
    assert path.ccp_alphas[0] == 0
    assert np.all(np.diff(path.ccp_alphas) > 0)
    assert np.all(np.diff(path.impurities) > 0)
    for alpha, impurity in zip(path.ccp_alphas, path.impurities, strict=True):
        model = DecisionTreeClassifier(ccp_alpha=alpha).fit(X, y)
        leaf = model.tree_.children_left < 0
        assert risks(model.tree_)[leaf].sum() == pytest.approx(impurity, abs=1e-9)
        assert model.certify(X, y).holds
    assert model.get_n_leaves() == 1


def test_a_tree_that_was_not_pruned_enough_is_refused():
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    model.tree_ = DecisionTreeClassifier().fit(X, y).tree_
    assert not model.certify(X, y).holds
