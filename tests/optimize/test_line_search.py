"""The line search: the Wolfe conditions on functions of every shape, where rounding ends, and what it refuses."""

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from lemmata.optimize.line_search import CURVATURE, DECREASE, LineSearchError, search


def wolfe(fun, x, direction, point, curvature=CURVATURE):
    """Assert enough decrease and enough curvature, recomputed from the function."""
    value, gradient = fun(x)
    slope = gradient @ direction
    after, there = fun(point.x)
    np.testing.assert_allclose(point.x, x + point.step * direction, rtol=1e-15)
    assert point.value == after
    assert np.array_equal(point.gradient, there)
    assert after <= value + DECREASE * point.step * slope
    assert abs(there @ direction) <= curvature * abs(slope)


FUNCTIONS = {
    "quartic": lambda t: (t**4 - 3 * t, 4 * t**3 - 3),
    "long valley": lambda t: (np.log1p(np.exp(-1e-3 * t)), -1e-3 / (1 + np.exp(1e-3 * t))),
    "steep wall": lambda t: (np.exp(50 * t) - 60 * t, 50 * np.exp(50 * t) - 60),
    "waves": lambda t: (np.sin(5 * t) + t * t / 4 - t, 5 * np.cos(5 * t) + t / 2 - 1),
    "kink": lambda t: (abs(t - 1) ** 1.5, 1.5 * np.sign(t - 1) * abs(t - 1) ** 0.5),
    "barrier": lambda t: (-np.log(2 - t) - 2 * t, 1 / (2 - t) - 2) if t < 2 else (np.inf, np.nan),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("first", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("curvature", [0.9, 0.1, 1e-3])
def test_the_strong_wolfe_conditions_hold_from_any_first_step(name, first, curvature):
    def fun(x):
        with np.errstate(over="ignore"):
            value, slope = FUNCTIONS[name](x[0])
        return value, np.array([slope])

    x, direction = np.zeros(1), np.ones(1)
    if fun(x)[1][0] > 0:
        direction = -direction
    point = search(fun, x, *fun(x), direction, first, curvature)
    wolfe(fun, x, direction, point, curvature)


@pytest.mark.parametrize("seed", range(5))
def test_descent_directions_of_rosenbrock_by_few_evaluations(seed):
    rng = np.random.default_rng(seed)
    calls = []

    def fun(x):
        calls.append(x)
        return rosen(x), rosen_der(x)

    x = rng.normal(size=4)
    direction = -rosen_der(x) * rng.random(4)
    calls.clear()
    point = search(fun, x, rosen(x), rosen_der(x), direction)
    assert len(calls) <= 20
    wolfe(fun, x, direction, point)


def test_a_natural_step_is_taken_at_once():
    A = np.diag([1.0, 30.0, 500.0])
    calls = []

    def fun(x):
        calls.append(x)
        return x @ A @ x / 2, A @ x

    x = np.array([1.0, -2.0, 3.0])
    point = search(fun, x, x @ A @ x / 2, A @ x, -x)  # Newton's direction
    assert point.step == 1.0
    assert len(calls) == 1


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_where_the_decrease_drowns_in_rounding_the_slopes_decide(offset):
    def fun(x):
        return offset + x[0] ** 2 / 2, x.copy()

    x = np.array([1e-8])  # the decrease is 5e-17, below the rounding of 1
    point = search(fun, x, *fun(x), -x, first=1.7)
    assert abs(point.x[0]) <= 0.9e-8


def test_what_does_not_descend_is_refused():
    def bowl(x):
        return float(x @ x), 2 * x

    x = np.array([1.0, 1.0])
    for direction in (x, np.zeros(2), np.array([1.0, -1.0]), np.full(2, np.nan)):
        with pytest.raises(LineSearchError, match="does not fall"):
            search(bowl, x, *bowl(x), direction)
    with pytest.raises(LineSearchError, match="No step"):
        search(lambda x: (1.0 + abs(x[0]), np.array([-1.0])), np.zeros(1), 1.0, np.array([-1.0]), np.ones(1))  # a false slope
    with pytest.raises(LineSearchError, match="No step"):
        search(lambda x: (np.nan, x), x, 1.0, -x, x)


def test_a_function_without_a_minimum_gives_a_point_that_is_lower():
    def fun(x):
        return -x[0], np.array([-1.0])

    point = search(fun, np.zeros(1), 0.0, np.array([-1.0]), np.ones(1))
    assert point.value < -1e6
