"""Learning curves and validation curves as they are drawn."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier

from lemmata.linear_model import PolynomialRegression, Ridge
from lemmata.model_selection import learning_curve, validation_curve
from lemmata.naive_bayes import GaussianNB
from lemmata.plot import LearningCurveDisplay, ValidationCurveDisplay


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def numbers(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 1))
    return X, np.sin(4 * X[:, 0]) + 0.3 * rng.normal(size=n)


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def bands(ax):
    """Give the lower and upper ends of the bands, by the places where they are drawn."""
    found = []
    for band in ax.collections:
        assert isinstance(band, PolyCollection)
        corners = band.get_paths()[0].vertices
        ends = {x: corners[corners[:, 0] == x, 1] for x in np.unique(corners[:, 0])}
        found.append({x: (heights.min(), heights.max()) for x, heights in ends.items()})
    return found


def test_learning_curves_draw_means_and_intervals():
    X, y = numbers()
    curve = learning_curve(Ridge(alpha=0.1), X, y, train_sizes=[6, 20, 48], random_state=0)
    _, ax = plt.subplots()
    display = LearningCurveDisplay.from_curve(curve, level=0.8, ax=ax, name="ridge")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    drawn = lines(ax)
    assert_array_equal(drawn["held-out rows"], np.column_stack([[6, 20, 48], curve.test_scores.mean(axis=0)]))
    assert_array_equal(drawn["rows of the fit"], np.column_stack([[6, 20, 48], curve.train_scores.mean(axis=0)]))
    for band, interval in zip(bands(ax), (curve.test_interval(0.8), curve.train_interval(0.8)), strict=True):
        assert list(band) == [6, 20, 48]
        assert_allclose(np.array(list(band.values())).T, interval, rtol=1e-12)
    assert ax.get_title() == f"ridge: {curve.test_means[-1]:.3g} on held-out rows with 48 to fit"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rows to fit", "R²")


def test_estimators_are_fitted_as_by_the_functions():
    X, y = numbers()
    display = LearningCurveDisplay.from_estimator(Ridge(), X, y, scoring="neg_mean_squared_error", random_state=1)
    expected = learning_curve(Ridge(), X, y, scoring="neg_mean_squared_error", random_state=1)
    assert_array_equal(display.curve.test_scores, expected.test_scores)
    assert display.ax_.get_ylabel() == "neg mean squared error"
    options = {"param_name": "degree", "param_range": [1, 3, 5], "cv": 3, "random_state": 1}
    display = ValidationCurveDisplay.from_estimator(PolynomialRegression(), X, y, **options)
    assert_array_equal(display.curve.test_scores, validation_curve(PolynomialRegression(), X, y, **options).test_scores)
    assert display.ax_.get_title().startswith("PolynomialRegression: best at degree = ")


def test_the_best_and_the_simplest_value_are_marked():
    X, y = numbers()
    curve = validation_curve(PolynomialRegression(), X, y, param_name="degree", param_range=range(1, 9), random_state=0)
    assert curve.simplest < curve.best
    ax = ValidationCurveDisplay.from_curve(curve).ax_
    drawn, means = lines(ax), dict(zip(curve.values, curve.test_means, strict=True))
    assert_array_equal(drawn[f"best: {curve.best}"], [[curve.best, means[curve.best]]])
    assert_array_equal(drawn[f"simplest above it: {curve.simplest}"], [[curve.simplest, means[curve.simplest]]])
    error = curve.test_scores[:, curve.best - 1].std(ddof=1) / np.sqrt(5)
    assert_allclose(drawn["best, less one standard error"][:, 1], means[curve.best] - error, rtol=1e-12)
    assert ax.get_title() == f"best at degree = {curve.best}, as good at {curve.simplest}"
    assert ax.get_ylim()[1] < 1.1  # R² is at most 1, wherever the band ends
    low, high = ax.get_ylim()
    assert low < curve.test_means.min()
    assert high > curve.train_means.max()


def test_penalties_fall_to_the_right_and_names_stand_side_by_side():
    X, y = numbers()
    alphas = [100.0, 1.0, 0.01]
    ax = ValidationCurveDisplay.from_estimator(Ridge(), X, y, param_name="alpha", param_range=alphas, random_state=0).ax_
    assert ax.get_xscale() == "log"
    assert ax.xaxis_inverted()
    few = ValidationCurveDisplay.from_estimator(Ridge(), X, y, param_name="alpha", param_range=[1.0, 2.0], random_state=0).ax_
    assert few.get_xscale() == "linear"
    labels = np.where(y > 0, "up", "down")
    ax = ValidationCurveDisplay.from_estimator(
        DecisionTreeClassifier(random_state=0), X, labels, param_name="max_depth", param_range=[1, 3, None], random_state=0
    ).ax_
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "None"]
    assert ax.get_ylabel() == "accuracy"
    assert_array_equal(lines(ax)["held-out rows"][:, 0], [0, 1, 2])


def test_points_without_a_score_are_left_out():
    X, y = numbers()
    with pytest.warns(UserWarning, match="not well-defined with less than two samples"):
        display = LearningCurveDisplay.from_estimator(Ridge(), X, y, train_sizes=[1, 10, 40], random_state=0)
    assert np.isnan(lines(display.ax_)["rows of the fit"][0, 1])
    drawn = [display.curve.test_means, display.curve.train_means[1:]]
    low, high = display.ax_.get_ylim()
    assert low < min(means.min() for means in drawn)
    assert high > max(means.max() for means in drawn)


def test_values_may_be_arrays():
    X, y = numbers()
    labels = np.where(y > 0, "up", "down")
    priors = [np.array([0.999, 0.001]), np.array([0.5, 0.5])]
    display = ValidationCurveDisplay.from_estimator(
        GaussianNB(), X, labels, param_name="priors", param_range=priors, random_state=0
    )
    assert_array_equal(lines(display.ax_)["best: [0.5 0.5]"][0, 0], 1)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_pictures_are_drawn(style):
    X, y = numbers()
    with plt.style.context(style):
        single = [(np.arange(40), np.arange(40, 60))]  # a single fold has no band
        LearningCurveDisplay.from_estimator(Ridge(), X, y, cv=single).figure_.canvas.draw()
        ValidationCurveDisplay.from_estimator(
            Ridge(), X, y, param_name="alpha", param_range=[1.0], cv=single
        ).figure_.canvas.draw()
