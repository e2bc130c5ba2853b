"""Coordinate descent: monotone at every block, Gauss-Seidel on quadratics, stationary in every block at the end."""

import numpy as np
import pytest

from lemmata.core.iterate import MonotonicityError
from lemmata.optimize import Quadratic, block_descent, minimize
from lemmata.optimize.coordinate import block_start, block_step


def bowl(seed, n):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n + 2, n))
    return Quadratic(B.T @ B / n + 0.2 * np.eye(n), rng.normal(size=n)), rng.normal(size=n)


@pytest.mark.item("OPT-18")
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_on_quadratics_are_those_of_gauss_and_seidel(seed):
    f, x = bowl(seed, 4)
    found = minimize(f, x, f.gradient, method="coordinate", keep=True)
    naive = x.copy()
    for k in range(1, 6):
        for i in range(4):
            naive[i] = -(f.b[i] + f.A[i] @ naive - f.A[i, i] * naive[i]) / f.A[i, i]
        np.testing.assert_allclose(found.points[k], naive, rtol=1e-6, atol=1e-7)  # a secant is exact up to its differences
    assert found.converged
    np.testing.assert_allclose(found.x, np.linalg.solve(f.A, -f.b), atol=1e-7)


@pytest.mark.item("OPT-18")
@pytest.mark.parametrize("seed", range(3))
def test_objective_falls_at_every_block_and_each_block_is_stationary_at_the_end(seed):
    rng = np.random.default_rng(seed)
    R, rank, alpha = rng.normal(size=(6, 5)), 2, 0.3

    def split(x):
        return x[: 6 * rank].reshape(6, rank), x[6 * rank :].reshape(rank, 5)

    def f(x):  # alternating least squares: convex in each factor, not in both
        U, V = split(x)
        return ((R - U @ V) ** 2).sum() / 2 + alpha * (x @ x) / 2

    def left(x):
        _, V = split(x)
        return np.append(np.linalg.solve(V @ V.T + alpha * np.eye(rank), V @ R.T).T, x[6 * rank :])

    def right(x):
        U, _ = split(x)
        return np.append(x[: 6 * rank], np.linalg.solve(U.T @ U + alpha * np.eye(rank), U.T @ R))

    def grad(x):
        U, V = split(x)
        E = U @ V - R
        return np.append(E @ V.T, U.T @ E) + alpha * x

    x = rng.normal(size=22)
    values, state = [f(x)], block_start(f, x)
    for _ in range(20):
        state, value, _ = block_step(f, state, [left, right])
        values += state[3]
        assert value == values[-1]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    found = block_descent(f, x, [left, right], tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(found.trace[:21], np.array(values)[::2], rtol=1e-13)
    assert found.converged
    np.testing.assert_allclose(grad(found.x), 0.0, atol=1e-8)  # both blocks at once: the objective is smooth


@pytest.mark.item("OPT-18")
def test_a_group_that_is_not_minimized_is_noticed():
    f, x = bowl(0, 2)
    with pytest.raises(MonotonicityError, match="Block 1 raised the objective"):
        block_descent(f, x, [lambda z: z, lambda z: z + 1.0])
    with pytest.raises(MonotonicityError, match="Block 0"):
        block_descent(f, x, [lambda z: z * np.nan])
    with pytest.raises(ValueError, match=r"Update 0 returned the shape \(3,\), x has \(2,\)"):
        block_descent(f, x, [lambda z: np.zeros(3)])


@pytest.mark.item("OPT-18")
def test_nonsmooth_separable_terms_are_no_obstacle():
    # The lasso: soft thresholds in turn; its optimality condition is checked entry by entry.
    rng = np.random.default_rng(0)
    X, y, alpha = rng.normal(size=(30, 5)), rng.normal(size=30), 4.0

    def f(w):
        return ((X @ w - y) ** 2).sum() / 2 + alpha * np.abs(w).sum()

    def threshold(i, w):
        w = w.copy()
        rest = X[:, i] @ (y - X @ w + X[:, i] * w[i])
        w[i] = np.sign(rest) * max(abs(rest) - alpha, 0) / (X[:, i] @ X[:, i])
        return w

    found = block_descent(f, np.zeros(5), [lambda w, i=i: threshold(i, w) for i in range(5)], tol=1e-12)
    slope = X.T @ (X @ found.x - y)
    active = found.x != 0
    np.testing.assert_allclose(slope[active], -alpha * np.sign(found.x[active]), rtol=1e-9)
    assert (np.abs(slope[~active]) <= alpha).all()
    assert 0 < active.sum() < 5
    assert found.gradient is None
