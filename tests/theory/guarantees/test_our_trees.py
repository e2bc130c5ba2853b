"""Our own trees, votes and Gaussian classes get the bounds of scikit-learn's, and none where their premises fail."""

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis as peer_discriminants
from sklearn import ensemble as peer_ensembles
from sklearn import naive_bayes as peer_bayes
from sklearn import tree as peer_trees

from lemmata.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.ensemble import AdaBoostClassifier, BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from lemmata.naive_bayes import GaussianNB
from lemmata.theory import guarantee
from lemmata.theory.bounds.occam import occam_bound, tree_code_length
from lemmata.tree import DecisionTreeClassifier


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes"], n)
    X = rng.standard_normal((n, 3)).astype(np.float32).astype(float)  # scikit-learn's trees see no more digits
    X[:, 0] += np.where(y == "yes", 1.2, -1.2)
    return X, y


def values(result):
    return {bound.name: bound.value for bound in result}


PAIRS = [
    (AdaBoostClassifier(n_estimators=6), peer_ensembles.AdaBoostClassifier(n_estimators=6, random_state=0)),
    (GaussianNB(), peer_bayes.GaussianNB()),
    (LinearDiscriminantAnalysis(), peer_discriminants.LinearDiscriminantAnalysis()),
    (QuadraticDiscriminantAnalysis(), peer_discriminants.QuadraticDiscriminantAnalysis()),
]


@pytest.mark.parametrize(("ours", "peer"), PAIRS, ids=[type(model).__name__ for model, _ in PAIRS])
def test_the_bounds_of_the_peers(ours, peer):
    X, y = rows()
    mine, theirs = (values(guarantee(model.fit(X, y), X, y, refit=False)) for model in (ours, peer))
    assert mine.keys() == theirs.keys()
    assert mine
    for name, value in theirs.items():
        assert mine[name] == pytest.approx(value, rel=0.02), name  # one row more or less at the boundary


def test_a_tree_is_told_in_double_precision():
    X, y = rows()
    model = DecisionTreeClassifier(max_leaf_nodes=4).fit(X, y)
    peer = peer_trees.DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    mine, theirs = values(guarantee(model, X, y)), values(guarantee(peer, X, y))
    assert mine["growth function"] == pytest.approx(theirs["growth function"])
    errors = int((model.predict(X) != y).sum())
    assert mine["description length"] == pytest.approx(occam_bound(errors, len(y), tree_code_length(4, 3, 64, 2), 0.05))
    assert mine["description length"] > theirs["description length"]


def test_boosted_stumps_are_counted():
    X, y = rows()
    model = GradientBoostingClassifier(max_iter=6, max_depth=1, early_stopping=False).fit(X, y)
    assert "growth function" in values(guarantee(model, X, y))
    model = GradientBoostingClassifier(max_iter=6, max_depth=2, early_stopping=False).fit(X, y)
    assert "growth function" not in values(guarantee(model, X, y))


def test_no_bound_by_counting_where_categories_or_holes_are():
    X, y = rows()
    table = pd.DataFrame({"a": X[:, 0], "color": np.where(X[:, 1] > 0, "red", "blue")})
    model = DecisionTreeClassifier(max_leaf_nodes=4).fit(table, y)
    result = guarantee(model, table, y)
    assert not {"growth function", "description length"} & values(result).keys()
    X[::7, 2] = np.nan
    for model in (DecisionTreeClassifier(max_leaf_nodes=4), GaussianNB(), LinearDiscriminantAnalysis()):
        assert "growth function" not in values(guarantee(model.fit(X, y), X, y, refit=False))


def test_rows_left_out_of_a_bag_test_its_member_but_not_a_forest_whose_bins_they_cut():
    X, y = rows()
    name = "out-of-bag, twice the members"
    assert name in values(guarantee(BaggingClassifier(n_estimators=5, random_state=0).fit(X, y), X, y))
    result = guarantee(RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y), X, y)
    assert name not in values(result)
    assert any("bins" in reason for reason in map(str, result.inapplicable.values()))
