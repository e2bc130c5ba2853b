"""The parts: rows taken together, triangles, and descent within bounds."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, rosen, rosen_der

from lemmata.gaussian_process.box import box_start, box_step
from lemmata.gaussian_process.distinct import counted, merged
from lemmata.gaussian_process.factor import back_solve, cholesky, forward, half_solve, inverse


def test_merging_keeps_the_likelihood_of_every_value():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (20, 1)).astype(float)
    y, weight, scale = rng.standard_normal(20), rng.integers(1, 4, 20).astype(float), rng.uniform(0.5, 2, 20)
    data, noise = merged(X, y, weight, scale), 0.3
    for f in rng.standard_normal((5, 3)):
        at = f[X[:, 0].astype(int)]
        whole = weight @ (-(np.log(2 * np.pi * noise * scale) + (y - at) ** 2 / (noise * scale)) / 2)
        v = noise / data.weight
        parts = -(np.log(2 * np.pi * v) + (data.y - f[data.X[:, 0].astype(int)]) ** 2 / v) / 2
        assert parts.sum() + data.constant(noise)[0] == pytest.approx(whole, rel=1e-12)
    h = 1e-6
    slope = (data.constant(noise * np.exp(h))[0] - data.constant(noise * np.exp(-h))[0]) / (2 * h)
    assert data.constant(noise)[1] == pytest.approx(slope, rel=1e-7)
    rows, counts = counted(X, (y > 0).astype(int), weight, 2)
    np.testing.assert_array_equal(rows, data.X)
    assert counts.sum() == weight.sum()


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
def test_triangles(n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n))
    K = A @ A.T + n * np.eye(n)
    L, jitter = cholesky(K)
    assert jitter == 0
    np.testing.assert_allclose(L, np.linalg.cholesky(K), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(inverse(L), np.linalg.inv(K), rtol=1e-9, atol=1e-12)
    for B in (rng.standard_normal(n), rng.standard_normal((n, 3)), rng.standard_normal((n, 300))):
        np.testing.assert_allclose(half_solve(L, B), solve_triangular(L, B, lower=True), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(back_solve(L, B), solve_triangular(L.T, B), rtol=1e-9, atol=1e-12)
    X = rng.standard_normal((n, 4))
    expected = np.linalg.solve(L, X)
    forward(L, X)
    np.testing.assert_allclose(X, expected, rtol=1e-9, atol=1e-12)


def test_a_matrix_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="not positive definite"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
    _, jitter = cholesky(np.ones((5, 5)))
    assert 0 < jitter < 1e-12


@pytest.mark.parametrize(("low", "high"), [(-10.0, 10.0), (-10.0, 0.5), (1.2, 3.0), (-0.3, 0.4)])
def test_descent_within_bounds_ends_where_scipys_does(low, high):
    def fun(x):
        return float(rosen(x)), rosen_der(x)

    n = 4
    low, high = np.full(n, low), np.full(n, high)
    start = np.clip(np.array([-1.2, 1.0, -0.5, 0.8]), low, high)
    state, residual = box_start(fun, start, low, high), np.inf
    for _ in range(200):
        state, value, residual = box_step(fun, low, high, state)
        if residual <= 1e-9:
            break
    peer = minimize(rosen, start, jac=rosen_der, bounds=np.column_stack([low, high]), tol=1e-14)
    assert residual <= 1e-9
    np.testing.assert_allclose(state[0], peer.x, atol=1e-5)
    assert value <= peer.fun + 1e-12


def test_a_function_that_is_infinite_far_away_is_no_obstacle():
    def fun(x):
        return (np.inf, np.full(1, np.nan)) if x[0] > 1.5 else (float((x[0] - 1) ** 4), 4 * (x - 1) ** 3)

    low, high = np.array([-50.0]), np.array([50.0])
    state = box_start(fun, np.array([-3.0]), low, high)
    for _ in range(100):
        state, _, residual = box_step(fun, low, high, state)
        if residual <= 1e-9:
            break
    assert state[0][0] == pytest.approx(1.0, abs=1e-2)
