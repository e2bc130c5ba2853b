"""L-BFGS with a preconditioner: what the two loops amount to as a matrix, exact steps, scale, and the end of all progress."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step, two_loop
from lemmata.optimize.quasi_newton import bfgs_update


def run(fun, x, steps, **options):
    """Take steps; return the states, the first included."""
    states = [lbfgs_start(fun, x)]
    for _ in range(steps):
        states.append(lbfgs_step(fun, states[-1], **options)[0])
    return states


def bowl(seed, n=8, condition=1e6):
    """A quadratic form, another with every curvature wrong by up to a half, and a start."""
    rng = np.random.default_rng(seed)
    V, curvatures = np.linalg.qr(rng.normal(size=(n, n)))[0], np.geomspace(1.0, condition, n)
    A, rough = V @ np.diag(curvatures) @ V.T, V @ np.diag(curvatures * rng.uniform(0.5, 1.5, n)) @ V.T
    return A, rough, lambda x: (x @ A @ x / 2, A @ x), rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_two_loops_with_a_preconditioner_are_bfgs_updates_of_it(seed):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(5, 5))
    P, C = B @ B.T + np.eye(5), np.diag(rng.random(5) + 1)
    moves = tuple(rng.normal(size=(4, 5)))
    changes = tuple(C @ s for s in moves)
    s, y = moves[-1], changes[-1]
    H = P * (y @ s) / (y @ P @ y)
    for move, change in zip(moves, changes, strict=True):
        H = bfgs_update(H, move, change)
    gradient = rng.normal(size=5)
    found = two_loop(gradient, moves, changes, lambda g: P @ g)
    np.testing.assert_allclose(found, H @ gradient, rtol=1e-9)
    np.testing.assert_allclose(two_loop(y, moves, changes, lambda g: P @ g), s, rtol=1e-9)  # the secant equation
    assert gradient @ found > 0
    assert np.array_equal(two_loop(gradient, (), ()), gradient)
    np.testing.assert_allclose(two_loop(gradient, (), (), lambda g: P @ g), P @ gradient)


@pytest.mark.parametrize("seed", range(3))
def test_the_inverse_hessian_as_preconditioner_ends_at_once_and_a_rough_one_soon(seed):
    A, rough, fun, x = bowl(seed)
    exact = run(fun, x, 1, precondition=lambda g: np.linalg.solve(A, g))
    np.testing.assert_allclose(exact[1][0], 0.0, atol=1e-9)
    near, plain = run(fun, x, 12, precondition=lambda g: np.linalg.solve(rough, g)), run(fun, x, 12)
    assert near[-1][1] < 1e-10 * near[0][1]
    assert near[-1][1] < 1e-6 * plain[-1][1]


def test_every_step_descends_and_remembers_what_it_saw():
    def fun(x):
        return rosen(x), rosen_der(x)

    states = run(fun, np.array([1.2, 1.0, 0.3, 2.0]), 60, memory=5)
    for before, after in pairwise(states):
        x, value, gradient, moves, changes = after
        assert value <= before[1]
        assert len(moves) == len(changes) <= 5
        assert value == rosen(x)
        if moves and after[0] is not before[0]:
            np.testing.assert_array_equal(moves[-1], x - before[0])
            np.testing.assert_array_equal(changes[-1], gradient - before[2])
            assert moves[-1] @ changes[-1] > 0
    np.testing.assert_allclose(states[-1][0], 1.0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_first_move_has_length_one_whatever_the_units_of_the_objective(scale):
    states = run(lambda x: (scale * float(np.log1p(x @ x)), scale * 2 * x / (1 + x @ x)), np.array([300.0, 400.0]), 1)
    first = states[1][0] - states[0][0]
    assert np.abs(first).max() >= 1.0 - 1e-12
    np.testing.assert_allclose(first / np.linalg.norm(first), [-0.6, -0.8], rtol=1e-12)


def test_where_rounding_ends_the_progress_the_state_stays():
    fun = lambda x: (1e6 + float(x @ x), 2 * x)  # noqa: E731
    state = lbfgs_start(fun, np.zeros(2))
    same, value, residual = lbfgs_step(fun, state)
    assert same is state
    assert (value, residual) == (1e6, 0.0)

    def broken(x):  # the value rises whatever the gradient says
        return float(np.abs(x - 3.0).sum()), np.ones(2)

    state = lbfgs_start(broken, np.full(2, 3.0))
    same, _, residual = lbfgs_step(broken, state)
    assert same is state
    assert residual == 1.0
    remembering = (*state[:3], (np.ones(2),), (np.ones(2),))
    forgot, _, residual = lbfgs_step(broken, remembering)
    assert forgot[3:] == ((), ())
    assert residual == 1.0


def test_pairs_without_curvature_are_not_kept():
    fun = lambda x: (-float(x.sum()), -np.ones(2))  # noqa: E731 - a plane
    state, value, _ = lbfgs_step(fun, lbfgs_start(fun, np.zeros(2)))
    assert value < 0
    assert state[3:] == ((), ())
