"""Newton, conjugate gradients, BFGS and L-BFGS: finite ends on quadratics, their identities, and SciPy's answers elsewhere."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der, rosen_hess

from lemmata.optimize import Quadratic, check_minimum, conjugate_gradient, hessian, minimize
from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step, two_loop
from lemmata.optimize.newton import newton_direction
from lemmata.optimize.quasi_newton import bfgs_start, bfgs_step, bfgs_update


def bowl(seed, n, condition=100.0):
    """A positive definite quadratic form with known extreme eigenvalues, and a start."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = V @ np.diag(np.geomspace(1.0, condition, n)) @ V.T
    return Quadratic(A, rng.normal(size=n), 7.0), rng.normal(size=n)


class Collect:
    """A callback that keeps the states."""

    def __init__(self):
        self.states = []

    def begin(self, iteration, state):
        if not self.states:
            self.states.append(state)

    def end(self, iteration, state):
        self.states.append(state)


@pytest.mark.item("OPT-14")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", range(3))
def test_one_step_with_one_sign_solves_quadratics_up_and_down(seed, sign):
    f, x = bowl(seed, 5)
    g = Quadratic(sign * f.A, sign * f.b, f.c)
    step = np.linalg.solve(g.hessian(), g.gradient(x))
    best = np.linalg.solve(f.A, -f.b)
    np.testing.assert_allclose(x - step, best, rtol=1e-10)  # minus, for the minimum and for the maximum
    assert np.linalg.norm(x + step - best) == pytest.approx(2 * np.linalg.norm(x - best), rel=1e-10)  # the sign as printed
    model = g(x) + g.gradient(x) @ -step + step @ g.hessian() @ step / 2
    assert model == pytest.approx(g(best), rel=1e-10)  # the Taylor model is the function itself
    if sign > 0:
        found = minimize(f, x, f.gradient, f.hessian, method="newton")
        assert found.n_iter == 1
        np.testing.assert_allclose(found.x, best, rtol=1e-9)
        decrement = found.run.state[3]
        assert decrement**2 / 2 == pytest.approx(f(x) - f(best), rel=1e-9)


@pytest.mark.item("OPT-14")
def test_gradient_of_newton_steps_is_squared_near_the_minimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))

    def f(w):  # a number for a vector: strictly convex, not quadratic
        return np.logaddexp(0, X @ w).sum() + w @ w / 2 - X[:10].sum(axis=0) @ w

    def grad(w):
        return X.T @ (1 / (1 + np.exp(-X @ w))) + w - X[:10].sum(axis=0)

    def hess(w):
        p = 1 / (1 + np.exp(-X @ w))
        return X.T @ ((p * (1 - p))[:, None] * X) + np.eye(3)

    watch = Collect()
    found = minimize(f, np.ones(3), grad, hess, method="newton", callbacks=[watch], tol=1e-12)
    lengths = np.array([np.linalg.norm(state[2]) for state in watch.states])
    near = lengths[(lengths < 1e-1) & (lengths > 1e-7)]
    assert len(near) >= 2
    following = lengths[np.flatnonzero((lengths < 1e-1) & (lengths > 1e-7)) + 1]
    assert (following <= 1.0 * near**2 + 1e-13).all()
    decrements = [state[3] for state in watch.states]
    values = np.array([state[1] for state in watch.states])
    for k in range(1, len(values)):
        gap = values[k - 1] - found.value
        if 1e-9 < gap < 1e-2:  # above rounding, where the model is good
            assert decrements[k] ** 2 / 2 == pytest.approx(gap, rel=0.1)
    assert check_minimum(f, found.x, grad, hess, strong_convexity=1.0).holds
    assert found.converged


@pytest.mark.item("OPT-14")
def test_damping_saves_newton_where_plain_steps_diverge():
    def f(x):
        return float(np.log(np.cosh(x)).sum())

    def hess(x):
        return np.diag(1 / np.cosh(x) ** 2)

    x = np.array([2.0, -1.5])
    plain = x
    for _ in range(3):
        plain = plain - np.linalg.solve(hess(plain), np.tanh(plain)) if np.abs(plain).max() < 50 else plain
    assert np.abs(plain).max() > 50
    found = minimize(f, x, np.tanh, hess, method="newton")
    assert found.converged
    np.testing.assert_allclose(found.x, 0.0, atol=1e-8)


@pytest.mark.item("OPT-14")
@pytest.mark.parametrize("given", [True, False])
def test_newton_descends_where_the_hessian_is_not_positive_definite(given):
    def f(x):  # two minima and a saddle between them
        return float(x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 + x[0] * x[1] / 10)

    def grad(x):
        return np.array([x[0] ** 3 - x[0] + x[1] / 10, 2 * x[1] + x[0] / 10])

    def hess(x):
        return np.array([[3 * x[0] ** 2 - 1, 0.1], [0.1, 2.0]])

    for x0 in ([0.05, 0.3], [-0.1, -2.0], [0.0, 1.0]):
        assert np.linalg.eigvalsh(hess(np.array(x0)))[0] < 0
        found = minimize(f, x0, grad, hess if given else None, method="newton")
        assert found.converged
        assert (np.diff(found.trace) <= 1e-12).all()
        assert check_minimum(f, found.x, grad, hess).holds
    direction, _ = newton_direction(np.array([1.0, 1.0]), np.zeros((2, 2)))
    assert direction.tolist() == [-1.0, -1.0]


@pytest.mark.item("OPT-15")
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_conjugate_gradients_solve_quadratics_in_n_steps_along_conjugate_directions(n):
    f, x = bowl(n, n, condition=30.0)
    best = np.linalg.solve(f.A, -f.b)
    watch, slopes = Collect(), []

    def counted(z):
        slopes.append(f.gradient(z))
        return slopes[-1]

    found = minimize(f, x, counted, method="cg", callbacks=[watch], tol=1e-7)
    assert found.n_iter <= n
    assert len(slopes) == 1 + 2 * found.n_iter  # a secant, then its exact step: no search is needed
    np.testing.assert_allclose(found.x, best, atol=1e-7)  # tol over the smallest curvature, 1
    D = np.array([state[3] for state in watch.states[:-1]])
    conjugate = D @ f.A @ D.T
    scale = np.sqrt(np.diag(conjugate))
    np.testing.assert_allclose(conjugate / np.outer(scale, scale), np.eye(len(D)), atol=1e-5)  # rounding grows with steps

    linear = conjugate_gradient(f.A, -f.b)
    assert len(linear.residuals) - 1 <= n
    np.testing.assert_allclose(linear.x, best, rtol=1e-8, atol=1e-9)
    D = linear.directions
    conjugate = D @ f.A @ D.T
    scale = np.sqrt(np.diag(conjugate))
    np.testing.assert_allclose(conjugate / np.outer(scale, scale), np.eye(len(D)), atol=1e-7)
    np.testing.assert_allclose(linear.residuals[-1], np.linalg.norm(f.A @ linear.x + f.b), atol=1e-9)


def test_linear_conjugate_gradients_take_products_and_refuse_what_is_not_positive_definite():
    A = np.diag([1.0, 2.0, 3.0])
    by_product = conjugate_gradient(lambda v: A @ v, np.ones(3))
    assert by_product.x.tolist() == conjugate_gradient(A, np.ones(3)).x.tolist()
    with pytest.raises(ValueError, match="not positive definite"):
        conjugate_gradient(np.diag([1.0, -2.0]), np.ones(2))
    assert conjugate_gradient(A, np.zeros(3)).x.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.item("OPT-15")
def test_formula_of_the_next_direction():
    watch = Collect()
    minimize(rosen, [-1.2, 1.0, 0.5], rosen_der, method="cg", callbacks=[watch])
    restarts = 0
    for old, new in zip(watch.states[:-1], watch.states[1:], strict=True):
        g0, d0, g1, d1 = old[2], old[3], new[2], new[3]
        beta = max(0.0, g1 @ (g1 - g0) / (g0 @ g0))
        restarts += beta == 0
        expected = -g1 + beta * d0
        np.testing.assert_allclose(d1, expected if expected @ g1 < 0 else -g1, rtol=1e-9, atol=1e-12)
    assert restarts > 0, "the plus of Polak-Ribière+ was never tried"


@pytest.mark.item("OPT-16")
@pytest.mark.parametrize("seed", range(4))
def test_bfgs_update_is_the_formula_satisfies_the_secant_and_stays_positive_definite(seed):
    rng = np.random.default_rng(seed)
    n = 5
    B = rng.normal(size=(n, n))
    H, s, y = B @ B.T + np.eye(n), rng.normal(size=n), rng.normal(size=n)
    y = y if y @ s > 0 else -y
    rho = 1 / (y @ s)
    left = np.eye(n) - rho * np.outer(s, y)
    expected = left @ H @ left.T + rho * np.outer(s, s)
    updated = bfgs_update(H, s, y)
    np.testing.assert_allclose(updated, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(updated @ y, s, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    assert np.linalg.eigvalsh(updated)[0] > 0


@pytest.mark.item("OPT-16")
@pytest.mark.parametrize("n", [2, 4, 7])
def test_bfgs_with_exact_searches_ends_after_n_steps_with_the_inverse_hessian(n):
    f, x = bowl(n, n, condition=10.0)
    H, g = np.eye(n), f.gradient(x)
    for _ in range(n):
        d = -H @ g
        s = -(g @ d) / (d @ f.A @ d) * d
        x = x + s
        H, g = bfgs_update(H, s, f.gradient(x) - g), f.gradient(x)
    np.testing.assert_allclose(x, np.linalg.solve(f.A, -f.b), atol=1e-8)
    np.testing.assert_allclose(H, np.linalg.inv(f.A), atol=1e-6)  # the last pairs are short, their differences rounded


@pytest.mark.item("OPT-16")
def test_bfgs_run_keeps_its_promises_at_every_step():
    def fun(x):
        return rosen(x), rosen_der(x)

    state = bfgs_start(fun, np.array([-1.2, 1.0, 0.5, 2.0]))
    for _ in range(25):
        old = state
        state, value, residual = bfgs_step(fun, state)
        s, y = state[0] - old[0], state[2] - old[2]
        assert y @ s > 0
        np.testing.assert_allclose(state[3] @ y, s, rtol=1e-6, atol=1e-9 * np.linalg.norm(s))
        assert np.linalg.eigvalsh(state[3])[0] > 0
        assert value <= old[1]
        assert residual == np.abs(rosen_der(state[0])).max()


@pytest.mark.item("OPT-17")
@pytest.mark.parametrize("seed", range(3))
def test_two_loops_give_the_direction_of_bfgs_from_the_same_start(seed):
    def fun(x):
        return rosen(x), rosen_der(x)

    rng = np.random.default_rng(seed)
    state = lbfgs_start(fun, rng.normal(size=6))
    for k in range(1, 13):
        state, _, _ = lbfgs_step(fun, state, memory=50)
        _, _, gradient, moves, changes = state
        assert len(moves) == k  # memory ≥ iterations
        s, y = moves[-1], changes[-1]
        H = np.eye(6) * (s @ y) / (y @ y)
        for move, change in zip(moves, changes, strict=True):
            H = bfgs_update(H, move, change)
        np.testing.assert_allclose(two_loop(gradient, moves, changes), H @ gradient, rtol=1e-6, atol=1e-9 * np.abs(H).max())
    short = lbfgs_start(fun, rng.normal(size=6))
    for _ in range(12):
        short, _, _ = lbfgs_step(fun, short, memory=3)
    assert len(short[3]) == 3


@pytest.mark.item("OPT-15", "OPT-16", "OPT-17")
@pytest.mark.parametrize("method", ["cg", "bfgs", "lbfgs"])
def test_final_gradient_vanishes_where_scipy_ends_too(method):
    x0 = np.array([-1.2, 1.0, 0.5, 1.3, 0.2])
    found = minimize(rosen, x0, rosen_der, method=method)
    assert found.converged
    assert np.abs(rosen_der(found.x)).max() <= 1e-8
    other = scipy_minimize(rosen, x0, jac=rosen_der, method="trust-exact", hess=rosen_hess, options={"gtol": 1e-10})
    np.testing.assert_allclose(found.x, other.x, atol=1e-7)  # the gradient over the smallest curvature, 0.2 or so
    assert check_minimum(rosen, found.x, rosen_der, rosen_hess, null=rosen(x0)).holds


def test_check_minimum_tells_saddles_and_slopes_from_minima():
    saddle = Quadratic(np.diag([1.0, -1.0]))
    assert [check.name for check in check_minimum(saddle, [0.0, 0.0], saddle.gradient).failed] == ["curvature"]
    bowl_, _ = bowl(0, 3)
    best = bowl_.minimizer()
    assert check_minimum(bowl_, best, bowl_.gradient, bowl_.hessian, strong_convexity=1.0).holds
    moved = check_minimum(bowl_, best + 0.02, bowl_.gradient, bowl_.hessian, strong_convexity=1.0)
    assert [check.name for check in moved.failed] == ["stationary", "gap"]
    value = bowl_(best + 0.02)
    assert value - moved["gap"].value * abs(value) <= bowl_(best) <= value
    flattest = np.linalg.eigh(bowl_.A)[1][:, 0]  # of curvature 1: here the bound is the excess itself
    value = bowl_(best + 0.1 * flattest)
    tight = check_minimum(bowl_, best + 0.1 * flattest, bowl_.gradient, bowl_.hessian, strong_convexity=1.0)
    assert tight["gap"].value * abs(value) == pytest.approx(value - bowl_(best), rel=1e-9)
    np.testing.assert_allclose(hessian(bowl_, best), bowl_.A, atol=1e-5)
