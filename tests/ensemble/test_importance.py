"""Permutation importance and partial dependence, against scikit-learn's and closed forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier as PeerForest
from sklearn.inspection import partial_dependence as peer_dependence
from sklearn.inspection import permutation_importance as peer_importance
from sklearn.linear_model import LinearRegression as PeerLinear
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.metrics import get_scorer
from sklearn.svm import LinearSVC as PeerMachine
from sklearn.tree import DecisionTreeClassifier as PeerTree
from sklearn.tree import DecisionTreeRegressor as PeerRegressionTree

from lemmata.ensemble import AdaBoostClassifier, GradientBoostingClassifier, partial_dependence, permutation_importance
from lemmata.ensemble.importance import permuted_rows, used_columns
from lemmata.linear_model import LinearRegression


def classes(n=300, seed=0):
    return make_classification(n, 5, n_informative=3, n_redundant=0, flip_y=0.1, random_state=seed)


def test_the_mean_drop_of_a_linear_model():
    """With R² as the score, permuting column j costs 2 w² Var(x_j) / Var(y) on average over all permutations, rows centered."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = X @ [2.0, 1.0, 0.0]
    model = LinearRegression().fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=60, random_state=0)
    expected = 2 * np.array([4.0, 1.0, 0.0]) * X.var(axis=0) / y.var()
    # The error of the mean itself, five times (once in two million), and roundings where nothing is permuted away.
    assert (np.abs(found.importances_mean - expected * 400 / 399) <= 5 * found.standard_error + 0.02 * expected + 1e-12).all()
    assert found.score == pytest.approx(1.0)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_scikit_learns_in_distribution(scoring):
    X, y = classes()
    model = PeerLogistic().fit(X, y)
    mine = permutation_importance(model, X, y, scoring=scoring, n_repeats=100, random_state=0)
    peer = peer_importance(model, X, y, scoring=scoring, n_repeats=100, random_state=0)
    assert mine.importances.shape == peer.importances.shape == (5, 100)
    spread = np.sqrt((mine.importances_std**2 + peer.importances_std**2) / 100)
    assert (np.abs(mine.importances_mean - peer.importances_mean) <= 5 * spread + 1e-12).all()  # once in two million
    np.testing.assert_allclose(mine.importances_std, peer.importances_std, rtol=0.5, atol=1e-12)  # of 100 draws: 7 % each
    np.testing.assert_allclose(mine.importances_mean, mine.importances.mean(axis=1))
    np.testing.assert_allclose(mine.standard_error, mine.importances.std(axis=1, ddof=1) / 10, rtol=1e-12)


def test_permutations_can_be_replayed():
    X, y = classes()
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=5)
    again = permutation_importance(model, X, y, n_repeats=3, random_state=5)
    assert np.array_equal(found.importances, again.importances)
    for j in range(5):
        changed = X.copy()
        changed[:, j] = X[permuted_rows(found.seed, j, 2, len(X)), j]
        assert found.importances[j, 2] == model.score(X, y) - model.score(changed, y)


def test_columns_that_no_tree_asks_about_matter_exactly_nothing():
    X, y = classes()
    mine = AdaBoostClassifier(n_estimators=3), GradientBoostingClassifier(max_iter=2, max_depth=1)
    for model in (*mine, PeerTree(max_depth=2), PeerForest(3, max_depth=1, random_state=0)):
        model.fit(X, y)
        used = used_columns(model)
        assert used == set(np.flatnonzero(model.feature_importances_))
        assert 0 < len(used) < 5
        found = permutation_importance(model, X, y, random_state=0)
        others = sorted(set(range(5)) - used)
        assert (found.importances[others] == 0).all()
        assert np.array_equal(peer_importance(model, X, y, random_state=0).importances[others], found.importances[others])
    assert used_columns(PeerLogistic().fit(X, y)) is None


def test_weights_of_rows_and_scorers():
    X, y = classes()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = PeerTree(max_depth=3, random_state=0).fit(X, y)
    weighted = permutation_importance(model, X, y, sample_weight=weight, random_state=0)
    present = weight > 0
    assert weighted.score == model.score(X[present], y[present], sample_weight=weight[present])
    named = permutation_importance(model, X, y, scoring="accuracy", random_state=0)
    given = permutation_importance(model, X, y, scoring=get_scorer("accuracy"), random_state=0)
    own = permutation_importance(model, X, y, random_state=0)
    assert np.array_equal(named.importances, own.importances)
    assert np.array_equal(given.importances, own.importances)
    assert np.isnan(permutation_importance(model, X, y, n_repeats=1).standard_error).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    X, y = classes()
    names = list("abcde")
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    table = pd.DataFrame(X, columns=names, index=np.arange(len(X))[::-1]) if frame is pd.DataFrame else frame(X, schema=names)
    named = AdaBoostClassifier(n_estimators=10).fit(table, y)
    weight = np.arange(len(y)) % 3
    one = permutation_importance(named, table, y, random_state=0, sample_weight=weight)
    other = permutation_importance(model, X, y, random_state=0, sample_weight=weight)
    assert np.array_equal(one.importances, other.importances)
    grid = [-1.0, 0.0, 1.0]
    assert np.array_equal(partial_dependence(named, table, "c", grid).average, partial_dependence(model, X, 2, grid).average)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_partial_dependence_of_classes_is_scikit_learns(n_classes):
    X, y = make_classification(
        200, 4, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=1
    )
    X[:, 3] = np.round(X[:, 3])  # a column of few values
    for model in (PeerLogistic().fit(X, y), PeerForest(5, random_state=0).fit(X, y)):
        for j in (0, 3):
            mine = partial_dependence(model, X, j)
            peer = peer_dependence(model, X, [j], method="brute", kind="average")
            np.testing.assert_allclose(mine.grid, peer["grid_values"][0], rtol=1e-12)
            np.testing.assert_allclose(mine.average, peer["average"], rtol=1e-9)
    machine = PeerMachine().fit(X, y)
    peer = peer_dependence(machine, X, [1], method="brute", kind="average")
    np.testing.assert_allclose(partial_dependence(machine, X, 1).average, peer["average"], rtol=1e-9)


def test_partial_dependence_of_numbers_is_scikit_learns():
    X, y = make_regression(150, 3, random_state=0)
    weight = np.random.default_rng(0).exponential(size=len(y))
    for model in (PeerLinear().fit(X, y), PeerRegressionTree(max_depth=4, random_state=0).fit(X, y)):
        mine = partial_dependence(model, X, 1, sample_weight=weight)
        peer = peer_dependence(model, X, [1], method="brute", kind="average", sample_weight=weight)
        np.testing.assert_allclose(mine.average, peer["average"], rtol=1e-9)


def test_partial_dependence_of_holes_and_of_whole_numbers():
    X, y = classes()
    X[::5, 1] = np.nan
    model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    found = partial_dependence(model, X, 1)
    assert np.isfinite(found.grid).all()
    assert np.isfinite(found.average).all()
    at = partial_dependence(model, X, 1, [np.nan]).average[0, 0]
    changed = X.copy()
    changed[:, 1] = np.nan
    assert at == pytest.approx(model.predict_proba(changed)[:, 1].mean())
    whole = np.array([[0, 1], [1, 5], [2, 3]])
    line = LinearRegression().fit(whole, [1.0, 3.0, 5.0])
    np.testing.assert_allclose(partial_dependence(line, whole, 0, [0.5]).average, 2.0)  # 1 + 2 x, and 0.5 is not rounded


def test_nonsense_is_refused():
    X, y = classes()
    model = PeerTree().fit(X, y)
    with pytest.raises(ValueError, match="n_repeats must be a whole number"):
        permutation_importance(model, X, y, n_repeats=0)
    with pytest.raises(ValueError, match="equally many"):
        permutation_importance(model, X, y[:-1])
    with pytest.raises(ValueError, match="column must be a number from 0 to 4 or a name"):
        partial_dependence(model, X, 5)
    with pytest.raises(ValueError, match="There is no column 'z'"):
        partial_dependence(model, X, "z")
    with pytest.raises(ValueError, match="The grid must be a list of values"):
        partial_dependence(model, X, 0, 3.0)
    with pytest.raises(ValueError, match="table of rows and columns"):
        partial_dependence(model, y, 0)

    class Mute(BaseEstimator):
        def fit(self, X, y):
            self.fitted_ = True
            return self

    with pytest.raises(ValueError, match="Mute has no score of its own"):
        permutation_importance(Mute().fit(X, y), X, y)
