"""Traces, bands and paths show the numbers that their names promise."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.linear_model import lasso_path as peer_path

from lemmata.core.iterate import iterate
from lemmata.linear_model import BayesianLinearRegression, LogisticRegression, lasso_path
from lemmata.optimize import GradientDescent, Quadratic, minimize
from lemmata.optimize.rates import convex_bound, strongly_convex_bound
from lemmata.plot import CoefficientPathDisplay, PredictiveBandDisplay, TraceDisplay


def bowl():
    f = Quadratic(np.diag([1.0, 4.0]), c=7.0)
    return f, minimize(f, [3.0, 4.0], f.gradient, rule=GradientDescent(0.25))


def test_a_run_is_shown_above_its_optimum_and_below_its_bounds():
    f, run = bowl()
    bounds = {
        "1/t": lambda t: convex_bound(0.25, distance=5.0, t=t),
        "linear": lambda t: strongly_convex_bound(0.25, mu=1.0, excess=f([3.0, 4.0]) - 7.0, t=t),
    }
    display = TraceDisplay.from_run(run, optimum=7.0, bound=bounds, name="descent")
    line, *drawn = display.ax_.lines
    t = line.get_xdata()
    assert t[0] == 0
    assert_allclose(line.get_ydata(), [f(x) - 7 for x in _path(f, t)], rtol=1e-6, atol=1e-14)  # 1e-14: two roundings of 7
    for bound, function in zip(drawn, bounds.values(), strict=True):
        assert bound.get_xdata()[0] == 1  # the first has none at the start
        assert_allclose(bound.get_ydata(), function(bound.get_xdata()))
        assert (line.get_ydata()[1:] <= bound.get_ydata()[: len(t) - 1] * (1 + 1e-9) + 1e-14).all()
    assert display.ax_.get_yscale() == "log"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["descent", "1/t", "linear"]
    assert "the optimum" in display.ax_.get_ylabel()


def _path(f, t):
    x = np.array([3.0, 4.0])
    for _ in t:
        yield x
        x = x - 0.25 * f.gradient(x)


def test_without_an_optimum_the_least_value_stands_for_it():
    display = TraceDisplay.from_run([5.0, 3.0, 2.0, 2.5])
    line = display.ax_.lines[0]
    assert_array_equal(line.get_xdata(), [0, 1, 3])
    assert_array_equal(line.get_ydata(), [3.0, 1.0, 0.5])
    assert "its least value" in display.ax_.get_ylabel()


def test_a_bound_may_be_a_function_or_numbers():
    trace = [4.0, 2.0, 1.0]
    assert_array_equal(TraceDisplay.from_run(trace, optimum=0.0, bound=[8, 4, 2]).ax_.lines[1].get_ydata(), [8, 4, 2])
    assert_array_equal(TraceDisplay.from_run(trace, optimum=0.0, bound=lambda t: 9 / t).ax_.lines[1].get_ydata(), [9, 4.5])


def test_iterations_of_estimators_and_loops_are_counted_from_one():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    model = LogisticRegression().fit(X, y)
    display = TraceDisplay.from_estimator(model)
    assert display.ax_.lines[0].get_xdata()[0] == 1
    assert_array_equal(display.trace, model.trace_)
    run = iterate(lambda x: (x / 2, x / 2, x / 2), 8.0, max_iter=3, tol=1.5, name="halves")
    display = TraceDisplay.from_run(run, optimum=0.0)
    assert_array_equal(display.ax_.lines[0].get_xdata(), [1, 2, 3])
    assert_array_equal(display.ax_.lines[0].get_ydata(), [4.0, 2.0, 1.0])


def test_several_runs_share_axes_in_colors_of_their_own():
    _, ax = plt.subplots()
    for name in ("one", "other"):
        TraceDisplay.from_run([4.0, 2.0, 1.0], optimum=0.0, ax=ax, name=name)
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "other"]


def regression(n_columns=1, n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    return X, X @ np.arange(1.0, n_columns + 1) + rng.normal(size=n)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_bands_are_quantiles_and_count_the_rows_they_hold(n_columns):
    X, y = regression(n_columns)
    model = BayesianLinearRegression().fit(X, y)
    display = PredictiveBandDisplay.from_estimator(model, X, y, feature=n_columns - 1, levels=(0.5, 0.8))
    rows = np.tile(X.mean(axis=0), (len(display.grid), 1))
    rows[:, -1] = display.grid
    mean, deviation = model.predict(rows, return_std=True)
    assert_allclose(display.mean, mean, rtol=1e-12)
    for level, ends in display.bands.items():
        assert_allclose(ends, np.column_stack(norm.interval(level, mean, deviation)), rtol=1e-9)
        inside = np.abs(y - model.predict(X)) <= norm.ppf((1 + level) / 2) * model.predict(X, return_std=True)[1]
        assert display.shares[level] == inside.mean()
    # Points keep what the model missed them by.
    at = X.mean(axis=0) + np.eye(n_columns)[-1] * (X[:, -1:] - X.mean(axis=0))
    assert_allclose(display.points[:, 1] - model.predict(at), y - model.predict(X), atol=1e-12)
    assert ("other columns at their means" in display.ax_.get_xlabel()) == (n_columns > 1)


def test_bands_need_no_targets_and_know_names():
    import pandas as pd

    X, y = regression(2)
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = BayesianLinearRegression().fit(frame, y)
    display = PredictiveBandDisplay.from_estimator(model, frame, feature="height")
    assert display.points is None
    assert display.shares is None
    assert display.ax_.get_xlabel() == "height (other columns at their means)"
    assert display.grid[0] < frame["height"].min() < frame["height"].max() < display.grid[-1]


def sparse_truth(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 12))
    return X, X[:, :3] @ [3.0, -2.0, 1.0] + rng.normal(size=60) + 5


def test_the_path_is_that_of_the_lasso():
    X, y = sparse_truth()
    display = CoefficientPathDisplay.from_data(X, y, n_alphas=30, chosen=0.1)
    alphas, coefs, _ = peer_path(X - X.mean(axis=0), y - y.mean(), alphas=30, tol=1e-12)
    assert_allclose(display.alphas, alphas, rtol=1e-9)
    assert_allclose(display.coefs, coefs, atol=1e-3)  # where gaps of a millionth leave the coefficients
    assert display.ax_.get_xlim() == (display.alphas[0], display.alphas[-1])
    assert display.ax_.lines[-1].get_xdata()[0] == 0.1


def test_numbers_above_count_what_is_not_zero_and_names_stand_beside_their_lines():
    X, y = sparse_truth()
    path = lasso_path(X, y, fit_intercept=True, n_alphas=50)
    display = CoefficientPathDisplay.from_path(*path, names=[f"c{j}" for j in range(12)])
    display.figure_.canvas.draw()
    alphas, coefs, _ = path
    (top,) = display.ax_.child_axes
    assert len(set(top.get_xticks())) == 7
    for tick, label in zip(top.get_xticks(), top.get_xticklabels(), strict=True):
        assert int(label.get_text()) == (coefs[:, np.flatnonzero(alphas == tick)[0]] != 0).sum()
    placed = {text.get_text(): text.xy[1] for text in display.ax_.texts}
    assert {"c0", "c1", "c2"} <= set(placed)
    assert len(placed) == 8
    for j in range(3):
        assert abs(placed[f"c{j}"] - coefs[j, -1]) < 0.1
    heights = np.sort(list(placed.values()))
    low, high = display.ax_.get_ylim()
    assert np.diff(heights).min() > 0.04 * (high - low)  # names do not hide each other


def test_zero_coefficients_have_no_line_and_a_short_path_has_a_picture():
    display = CoefficientPathDisplay.from_path([1.0, 0.5], [[0.0, 0.0], [0.0, 1.0]])
    assert [text.get_text() for text in display.ax_.texts] == ["x1"]
    display.figure_.canvas.draw()
    CoefficientPathDisplay.from_path([1.0, 0.5], np.zeros((2, 2))).figure_.canvas.draw()
