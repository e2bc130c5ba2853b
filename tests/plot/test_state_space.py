"""The picture of a series shows the numbers that the model gives, and says which they are."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from lemmata.plot import StateSpaceDisplay, TraceDisplay
from lemmata.state_space import LinearGaussianModel

NAN = float("nan")
X = np.array([[1.0, 0.5], [2.0, NAN], [NAN, NAN], [1.5, -0.5], [0.5, 0.0]])


def model(**more):
    D = np.array([[1.0, 0.0], [1.0, 1.0]])
    return LinearGaussianModel(0.8 * np.eye(2), D, 1.0, [[0.5, 0.1], [0.1, 1.0]], **more)


def test_bands_are_those_of_the_signal():
    display = StateSpaceDisplay.from_estimator(model(), X, output=1, kinds=("smoothed", "filtered"), n_steps=3, level=0.8)
    row = np.array([1.0, 1.0])
    for kind, result in {"smoothed": model().smooth(X), "filtered": model().filter(X)}.items():
        middle, low, high = display.bands[kind].T
        assert_allclose(middle, result.mean @ row)
        spread = np.sqrt(np.einsum("i,tij,j->t", row, result.covariance, row))
        assert_allclose(high - low, 2 * norm.ppf(0.9) * spread)
    coming = model().forecast(X, 3)
    assert_allclose(display.ahead[:, 0], coming.mean[:, 1])
    assert_allclose(display.ahead[:, 1:], coming.interval(0.8)[:, 1])
    assert_array_equal(display.rows, X[:, 1])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["smoothed, 80% band", "filtered, 80% band", "observed", "forecast, 80% band"]
    assert display.ax_.get_ylabel() == "output 1"
    display.figure_.canvas.draw()


def test_states_have_no_observed_numbers():
    display = StateSpaceDisplay.from_estimator(model(), X, state=1, n_steps=2, time=np.arange(1990, 1997))
    assert display.rows is None
    assert display.ax_.get_ylabel() == "state 1"
    assert_allclose(display.bands["smoothed"][:, 0], model().smooth(X).mean[:, 1])
    assert_allclose(display.ahead[:, 0], model().forecast(X, 2).state_mean[:, 1])
    assert display.ax_.lines[-1].get_xdata().tolist() == [1995, 1996]


def test_inputs_are_part_of_the_signal():
    inputs = np.array([[1.0], [2.0], [0.0], [1.0], [-1.0], [3.0]])
    driven = model(control=[[1.0], [0.0]], feedthrough=[[0.5], [0.0]])
    display = StateSpaceDisplay.from_estimator(driven, X, n_steps=1, inputs=inputs)
    smoothed = driven.smooth(X, inputs=inputs[:5])
    assert_allclose(display.bands["smoothed"][:, 0], smoothed.mean[:, 0] + 0.5 * inputs[:5, 0])
    assert_allclose(display.ahead[:, 0], driven.forecast(X, 1, inputs=inputs).mean[:, 0])


def test_the_model_draws_itself():
    _, ax = plt.subplots()
    display = model().plot(X, ax=ax)
    assert isinstance(display, StateSpaceDisplay)
    assert display.ax_ is ax
    rng = np.random.default_rng(0)
    fitted = model(max_iter=50, tol=1e-6).fit(rng.normal(size=(40, 2)))
    assert isinstance(fitted.plot(), TraceDisplay)
    with pytest.raises(ValueError, match="keeps no record of its fit"):
        model().plot()


def test_refusals():
    with pytest.raises(ValueError, match="kinds may be"):
        StateSpaceDisplay.from_estimator(model(), X, kinds=("predicted",))
    with pytest.raises(ValueError, match="one series"):
        StateSpaceDisplay.from_estimator(model(), X[None])
