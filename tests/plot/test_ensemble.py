"""Boosting under its bound, importances in order, and partial dependence that is the mean of predictions."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier as PeerAdaBoost
from sklearn.ensemble import GradientBoostingRegressor as PeerBoosting
from sklearn.inspection import partial_dependence as peer_dependence
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier as PeerTree

from lemmata.ensemble import AdaBoostClassifier, RandomForestClassifier, RandomForestRegressor
from lemmata.plot import BoostingDisplay, ImportanceDisplay, PartialDependenceDisplay
from lemmata.plot.boosting import vote_bound
from lemmata.plot.drawing import sample_rows
from lemmata.plot.partial_dependence import CURVES


def rings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, ((np.hypot(*X.T) > 1.1) ^ (rng.random(n) < 0.1)).astype(int)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("k", [2, 3])
def test_training_errors_are_beneath_the_bound(k, rate):
    X, y = rings() if k == 2 else load_iris(return_X_y=True)
    model = PeerAdaBoost(PeerTree(max_depth=1), n_estimators=40, learning_rate=rate, random_state=0).fit(X, y)
    display = BoostingDisplay.from_estimator(model, X, y)
    error = display.curves["training"]
    assert_allclose(error, [np.mean(p != y) for p in model.staged_predict(X)])
    assert (error <= display.bound + 1e-12).all()
    assert legend(display)[-1].startswith("bound ∏ 2√" if k == 2 and rate == 1 else "bound ∏ (1")
    # The product is the mean of exp(half of all say − the say of the members that are right), which we find from their votes.
    say = model.estimator_weights_[: len(model.estimators_)]
    right = np.array([member.predict(X) == y for member in model.estimators_])
    loss = np.exp(np.cumsum(say) / 2 - np.cumsum(say[:, None] * right, axis=0).T).mean(axis=0)
    assert_allclose(display.bound, loss, rtol=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_our_adaboost_knows_its_errors_and_its_bound(k):
    X, y = rings() if k == 2 else load_iris(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=30).fit(X, y)
    display = model.plot()
    assert_array_equal(display.curves["training"], model.train_errors_)
    assert_allclose(display.bound, model.bound_, rtol=1e-9)
    assert legend(display)[0] == "training"


def test_the_bound_of_two_classes_is_the_product_of_the_catalogue():
    errors = np.array([0.3, 0.1, 0.45])
    assert_allclose(
        vote_bound(errors, np.log((1 - errors) / errors)), np.cumprod(2 * np.sqrt(errors * (1 - errors))), rtol=1e-12
    )


def test_losses_of_gradient_boosting_and_rows_that_were_not_fitted():
    X, y = load_diabetes(return_X_y=True)
    model = PeerBoosting(n_estimators=20, random_state=0).fit(X, y)
    display = BoostingDisplay.from_estimator(model)
    assert_array_equal(display.curves["training"], model.train_score_)
    assert list(display.curves) == ["training"]
    X, y = rings()
    model = PeerAdaBoost(n_estimators=10).fit(X, y)
    display = BoostingDisplay.from_estimator(model, validation=rings(seed=1))
    assert list(display.curves) == ["validation"]
    assert BoostingDisplay.from_estimator(model).ax_.get_ylabel() == "bound of the training error"


def test_importances_are_in_order():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = PeerBoosting(n_estimators=20, random_state=0).fit(X, y)
    display = ImportanceDisplay.from_estimator(model, top=4)
    largest = np.argsort(-model.feature_importances_)[:4]
    assert_array_equal(display.order_, largest)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == list(X.columns[largest])
    assert_allclose([bar.get_width() for bar in display.ax_.patches], model.feature_importances_[largest])
    assert display.ax_.get_title(loc="left") == "GradientBoostingRegressor (4 of 10 columns)"
    assert display.lost_ax_ is None


def test_shuffled_columns_lose_what_the_score_lost():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=500).fit(X, y)
    _, ax = plt.subplots()
    display = ImportanceDisplay.from_estimator(model, X, y, n_repeats=4, ax=ax)
    assert display.gain is None
    assert display.lost_ax_ is ax
    assert display.lost.shape == (4, 4)
    # A loss of accuracy can be no larger than the accuracy, and what two petals lose is most of it.
    assert set(display.order_[:2]) == {2, 3}
    assert display.lost.max() <= model.score(X, y)
    assert ax.get_xlabel() == "loss of accuracy when shuffled"
    with pytest.raises(ValueError, match="no gains of its columns: give rows X and y"):
        ImportanceDisplay.from_estimator(model)
    both = ImportanceDisplay.from_estimator(PeerTree(random_state=0).fit(X, y), X, y)
    assert both.lost_ax_ is not both.ax_
    both.figure_.canvas.draw()
    placed = plt.figure().add_axes((0.3, 0.2, 0.6, 0.6))
    assert ImportanceDisplay(feature_names="ab", gain=[0.4, 0.6], lost=[[0.1], [-0.1]]).plot(placed).order_.tolist() == [0, 1]


def test_partial_dependence_is_the_mean_of_predictions():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = PeerBoosting(n_estimators=20, random_state=0).fit(X, y)
    display = PartialDependenceDisplay.from_estimator(model, X, features="bmi", individual=True)
    (grid,) = display.grid
    for k in (0, len(grid) // 2, len(grid) - 1):
        rows = X.assign(bmi=grid[k])
        assert_allclose(display.average[0, k], model.predict(rows).mean(), rtol=1e-12)
        assert_allclose(display.individual[:, k], model.predict(rows.iloc[sample_rows(len(X), CURVES)]), rtol=1e-12)
    assert display.ax_.get_xlabel() == "bmi"
    peer = peer_dependence(model, X, ["bmi", "s5"], method="brute", grid_resolution=5)
    both = PartialDependenceDisplay.from_estimator(model, X, features=("bmi", "s5"))
    first, second = both.grid
    rows = X.assign(bmi=first[3], s5=second[1])
    assert_allclose(both.average[0, 3, 1], model.predict(rows).mean(), rtol=1e-12)
    assert both.average.shape == (1, len(first), len(second))
    assert peer["average"].min() - 30 < both.average.min() < both.average.max() < peer["average"].max() + 30
    both.figure_.canvas.draw()


def test_classes_have_curves_of_their_probabilities():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X, np.array(["a", "b", "c"])[y])
    display = PartialDependenceDisplay.from_estimator(model, X, features=2, feature_names=["u", "v", "petal", "w"])
    assert display.average.shape[0] == 3
    assert_allclose(display.average.sum(axis=0), 1, atol=1e-12)
    assert legend(display) == ["a", "b", "c", "deciles"]
    assert display.ax_.get_xlabel() == "petal"
    one = PartialDependenceDisplay.from_estimator(model, X, features=2, target="b")
    assert_allclose(one.average[0], display.average[1])
    assert one.ax_.get_ylabel() == "probability of b"
    with pytest.raises(ValueError, match="three or more classes, name one as target"):
        PartialDependenceDisplay.from_estimator(model, X, features=(0, 2))
    with pytest.raises(ValueError, match="no class 'd'"):
        PartialDependenceDisplay.from_estimator(model, X, features=2, target="d")
    two = PartialDependenceDisplay.from_estimator(LogisticRegression().fit(X[:100], y[:100]), X[:100], features=0)
    assert two.ax_.get_ylabel() == "probability of 1"
    assert len(two.average) == 1


def test_columns_by_name_and_columns_that_do_not_exist():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = PeerBoosting(n_estimators=5, random_state=0).fit(X, y)
    by_number = PartialDependenceDisplay.from_estimator(model, X, features=2)
    by_name = PartialDependenceDisplay.from_estimator(model, pd.DataFrame(X), features=["bmi"])
    assert_array_equal(by_number.average, by_name.average)
    with pytest.raises(ValueError, match="no column 'weight'"):
        PartialDependenceDisplay.from_estimator(model, X, features="weight")


def test_the_third_argument_is_the_columns_as_in_scikit_learn():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = PeerBoosting(n_estimators=5, random_state=0).fit(X, y)
    one = PartialDependenceDisplay.from_estimator(model, X, "bmi")
    assert one.ax_.get_xlabel() == "bmi"
    assert_array_equal(one.average, PartialDependenceDisplay.from_estimator(model, X, features=2).average)
    several = PartialDependenceDisplay.from_estimator(model, X, ["bmi", 8, ("bmi", "s5")])
    assert [ax.get_xlabel() for ax in several.axes_] == ["bmi", "s5", "bmi"]
    assert several.axes_[2].get_ylabel() == "s5"
    assert [panel.average.ndim for panel in (several, *several.others)] == [2, 2, 3]
    assert several.ax_ is several.axes_[0]
    several.figure_.canvas.draw()
    for classes in (np.arange(len(y)) % 2, (y > 100).to_numpy().astype(int)):  # y, where it used to be
        with pytest.raises(ValueError, match="features names a column twice; it takes columns to show, and y has no part"):
            PartialDependenceDisplay.from_estimator(model, X, classes)
    with pytest.raises(ValueError, match="one column or two, got 3"):
        PartialDependenceDisplay.from_estimator(model, X, (0, 1, 2))
    with pytest.raises(ValueError, match="features names no column"):
        PartialDependenceDisplay.from_estimator(model, X, [])


def test_panels_go_where_they_are_asked_to():
    X, y = load_diabetes(return_X_y=True)
    model = PeerBoosting(n_estimators=5, random_state=0).fit(X, y)
    figure, given = plt.subplots(1, 2)
    display = PartialDependenceDisplay.from_estimator(model, X, [2, 3], ax=given)
    assert list(display.axes_) == list(given)
    with pytest.raises(ValueError, match="ax must be 3 axes, one for each panel"):
        PartialDependenceDisplay.from_estimator(model, X, [2, 3, 4], ax=given)
    figure, ax = plt.subplots()
    display = PartialDependenceDisplay.from_estimator(model, X, [2, 3, 4, 5], ax=ax)
    assert all(panel.figure is figure for panel in display.axes_)
    figure.canvas.draw()
    with pytest.raises(ValueError, match="no place in a grid"):
        PartialDependenceDisplay.from_estimator(model, X, [2, 3], ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


def test_categories_are_not_joined_by_lines():
    table, score = words()
    model = RandomForestRegressor(n_estimators=5, random_state=0).fit(table, score)
    ax = PartialDependenceDisplay.from_estimator(model, table, "color", individual=True).ax_
    assert {line.get_linestyle() for line in ax.lines} == {"None"}
    assert_array_equal(ax.lines[-1].get_xdata(), [0, 1, 2])
    codes = table.assign(color=table["color"].map({"blue": 0.0, "green": 1.0, "red": 7.0})).fillna(0.0)
    model = RandomForestRegressor(n_estimators=5, random_state=0, categorical_features=["color"]).fit(codes, score)
    display = PartialDependenceDisplay.from_estimator(model, codes, "color")
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["0", "1", "7"]  # codes are names
    assert {line.get_linestyle() for line in display.ax_.lines} == {"None"}


def words(n=120, seed=0):
    """Make a table with a column of words and holes."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"color": rng.choice(["red", "blue", "green"], n), "size": rng.normal(size=n), "rest": rng.normal(size=n)}
    )
    score = np.where(table["color"] == "red", 2.0, 0.0) + table["size"] + 0.1 * rng.normal(size=n)
    table.loc[rng.random(n) < 0.2, "size"] = np.nan
    table.loc[rng.random(n) < 0.1, "color"] = None
    return table, score.to_numpy()


def test_tables_with_words_and_holes_are_drawn():
    table, score = words()
    kind = np.where(score > 1, "high", "low")
    forest = RandomForestClassifier(n_estimators=10, random_state=0).fit(table, kind)
    display = forest.plot(table, kind)
    assert isinstance(display, ImportanceDisplay)
    assert set(display.feature_names) == set(table.columns)
    assert_allclose(display.gain, forest.feature_importances_)
    regression = RandomForestRegressor(n_estimators=10, random_state=0).fit(table, score)
    shown = regression.plot(table, score)
    assert_allclose(shown.y_pred, regression.predict(table))
    curve = PartialDependenceDisplay.from_estimator(regression, table, features="color")
    assert [t.get_text() for t in curve.ax_.get_xticklabels()] == ["blue", "green", "red"]
    assert curve.average[0, 2] > curve.average[0, 0] + 0.5
    both = PartialDependenceDisplay.from_estimator(regression, table, features=("size", "color"))
    assert [t.get_text() for t in both.ax_.get_yticklabels()] == ["blue", "green", "red"]
    for k, color in enumerate(["blue", "green", "red"]):
        rows = table.assign(size=both.grid[0][4], color=color)
        assert_allclose(both.average[0, 4, k], regression.predict(rows).mean(), rtol=1e-12)
    curve.figure_.canvas.draw()
    both.figure_.canvas.draw()


def test_rows_with_holes_lie_on_the_plane_of_the_columns_that_matter():
    table, score = words()
    X, y = table[["size", "rest"]].assign(more=0.0), np.where(score > 1, "high", "low")
    forest = RandomForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    display = forest.plot(X, y)
    assert display.ax_.get_xlabel() == "size (other columns at their means)"
    assert display.ax_.get_ylabel() == "rest"
    assert_array_equal(np.isnan(display.points[:, 0]), X["size"].isna())
    assert_array_equal(np.array(display.classes)[display.predicted], forest.predict(X))
    display.figure_.canvas.draw()
