"""Gradient descent and its theorems: at every step of functions whose constants are known, and refused elsewhere."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from lemmata.optimize import GradientDescent, Quadratic, check_minimum, check_rate, convergence_rate, lipschitz_step, minimize
from lemmata.optimize.rates import averaged_bound, check_curvature, convex_bound, stochastic_bound, strongly_convex_bound

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")  # runs of a fixed number of steps


def logistic(seed, n=30, d=4):
    """A convex function that is not strongly convex, the Lipschitz constant of its gradient, and its minimum by SciPy."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n)

    def f(w):
        return np.logaddexp(0, -y * (X @ w)).sum()

    def grad(w):
        return -X.T @ (y / (1 + np.exp(y * (X @ w))))

    L = np.linalg.norm(X, 2) ** 2 / 4
    best = scipy_minimize(f, np.zeros(d), jac=grad, method="BFGS", options={"gtol": 1e-12}).x
    for _ in range(3):  # SciPy stops at 1e-8 or so; a few Newton steps make the minimum exact
        p = 1 / (1 + np.exp(-X @ best))
        best = best - np.linalg.solve(X.T @ ((p * (1 - p))[:, None] * X), grad(best))
    return f, grad, L, best


def run(f, grad, x0, step, steps, **options):
    """So many steps of gradient descent, no fewer."""
    return minimize(f, x0, grad, rule=GradientDescent(step), max_iter=steps, tol=0.0, keep=True, **options)


@pytest.mark.item("OPT-04")
def test_step_of_two_over_l_leaves_the_objective_unchanged_and_smaller_ones_lower_it():
    L, x = 5.0, np.array([1.2, 1.6])
    f = Quadratic(L * np.eye(2))
    assert f(x) == pytest.approx(10.0, rel=1e-15)
    turned = run(f, f.gradient, x, 2 / L, 1)
    np.testing.assert_allclose(turned.trace, [10.0, 10.0], rtol=1e-14)
    np.testing.assert_allclose(turned.points[1], -x, rtol=1e-14)
    for share in (0.01, 0.3, 1.0, 1.9, 1.99):
        assert run(f, f.gradient, x, share / L, 1).trace[1] < 10.0
    for share in (2.01, 3.0):
        assert run(f, f.gradient, x, share / L, 1).trace[1] > 10.0
    one = run(f, f.gradient, x, lipschitz_step(L), 1)
    np.testing.assert_allclose(one.points[1], 0.0, atol=1e-15)


@pytest.mark.item("OPT-04")
def test_moves_are_the_formula_for_descent_and_ascent():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    f = Quadratic(A @ A.T, rng.normal(size=3))
    found = run(f, f.gradient, rng.normal(size=3), 0.01, 20)
    for x, following in zip(found.points[:-1], found.points[1:], strict=True):
        np.testing.assert_allclose(following, x - 0.01 * f.gradient(x), rtol=1e-13, atol=1e-15)
    up = run(lambda x: -f(x), lambda x: -f.gradient(x), found.points[0], 0.01, 20)  # ascent is descent on −f
    np.testing.assert_allclose(up.points[1], found.points[0] + 0.01 * f.gradient(found.points[0]), rtol=1e-13)


@pytest.mark.item("OPT-04")
@pytest.mark.parametrize("seed", range(3))
def test_objective_is_monotone_and_the_gradient_vanishes_at_the_end(seed):
    f, grad, L, best = logistic(seed)
    fixed = minimize(f, np.ones(4), grad, method="gd", learning_rate=lipschitz_step(L), max_iter=5000)
    searched = minimize(f, np.ones(4), grad, method="gd", max_iter=5000)
    for found in (fixed, searched):
        assert found.converged
        assert np.abs(grad(found.x)).max() <= 1e-8
        assert (np.diff(found.trace) <= 1e-12 * f(np.ones(4))).all()
        np.testing.assert_allclose(found.x, best, atol=1e-7)  # the gradient over the smallest curvature, about 1
        assert check_minimum(f, found.x, grad).holds
    assert searched.n_iter < fixed.n_iter  # steps of its own are longer than 1/L where the curvature is smaller
    assert searched.run.state[3] > 1 / (2 * L)


@pytest.mark.item("OPT-05")
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_rate_of_convex_functions_holds_at_every_step(seed, share):
    f, grad, L, best = logistic(seed)
    start = best + np.random.default_rng(seed).normal(size=4)
    found = run(f, grad, start, share / L, 300)
    lengths = [np.linalg.norm(grad(x)) for x in found.points]
    distance = np.linalg.norm(start - best)
    certificate = check_rate(found, f(best), step=share / L, L=L, distance=distance, lengths=lengths)
    assert certificate.holds, certificate
    names = {"monotone", "convex bound", "gradient", "descent"} | ({"averaged bound"} if share <= 0.5 else set())
    assert {check.name for check in certificate} == names
    excess = found.trace - f(best)
    t = np.arange(1, 301)
    assert (excess[1:] <= distance**2 * L / (2 * share * t) + 1e-12).all()
    assert (excess[:-1] <= distance**2 * L / (share * t) + 1e-12).all() or share > 0.5
    assert (np.square(lengths) <= 2 * L * excess + 1e-9).all()


@pytest.mark.item("OPT-05")
def test_bound_is_half_attained_by_the_worst_function():
    T, R, L = 40, 3.0, 2.0
    kink = R / (2 * T + 1)  # Drori & Teboulle (2014): a Huber function on which T steps of 1/L do worst

    def f(x):
        return float(L * kink * (abs(x[0]) - kink / 2) if abs(x[0]) > kink else L * x[0] ** 2 / 2)

    def grad(x):
        return L * np.clip(x, -kink, kink)

    found = run(f, grad, [R], 1 / L, T)
    assert found.trace[-1] == pytest.approx(L * R**2 / (4 * T + 2), rel=1e-12)
    assert check_rate(found, 0.0, step=1 / L, L=L, distance=R).holds
    assert not check_rate(found, 0.0, step=1 / L, L=L, distance=R / 1.5).holds  # 1.5² > 2: the bound would be below


@pytest.mark.item("OPT-05")
def test_quadratic_bounds_and_what_is_lipschitz():
    f, grad, L, best = logistic(0)
    points = best + np.random.default_rng(1).normal(size=(12, 4))
    assert check_curvature(f, grad, points, mu=0.0, L=L).holds
    assert not check_curvature(f, grad, points, mu=L).holds
    assert not check_curvature(f, grad, points, L=L / 20).holds
    bowl = Quadratic(2 * np.eye(1))
    far = np.array([[1e6], [1e6 + 1]])
    assert abs(bowl(far[1]) - bowl(far[0])) > 1e6  # f itself is not Lipschitz with the constant 2 of its gradient
    assert check_curvature(bowl, bowl.gradient, far / 1e6, mu=2.0, L=2.0).holds


def test_forms_of_the_bounds():
    t = np.arange(1, 100)
    assert (averaged_bound(0.1, 2.0, t) >= convex_bound(0.1, 2.0, t)).all()  # hence the sharper form proves the other
    assert averaged_bound(0.1, 2.0, 0) == 40.0
    assert convex_bound(0.1, 2.0, 10) == pytest.approx(2.0, rel=1e-15)
    np.testing.assert_allclose(strongly_convex_bound(0.5, 0.5, 3.0, t), 3 * 0.75**t, rtol=1e-13)
    assert stochastic_bound([0.1] * 100, 2.0, 3.0) == pytest.approx((4 + 9) / 20, rel=1e-12)


@pytest.mark.item("OPT-06")
@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_linear_rate_of_strongly_convex_quadratics(seed, share):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(6, 5))
    f = Quadratic(B.T @ B + 0.1 * np.eye(5), rng.normal(size=5), 3.0)
    mu, L = f.curvature
    best, step = f.minimizer(), share / L
    start = rng.normal(size=5)
    found = run(f, f.gradient, start, step, 200)
    distance = np.linalg.norm(start - best)
    certificate = check_rate(found, f(best), step=step, L=L, distance=distance, mu=mu)
    assert certificate.holds, certificate
    assert {"contraction", "linear bound"} <= {check.name for check in certificate}
    excess = found.trace - f(best)
    visible = excess[1:] > 1e-9 * excess[0]
    assert (excess[1:][visible] / excess[:-1][visible] <= (1 - step * mu) * (1 + 1e-6)).all()
    rate = convergence_rate(found, f(best))
    assert rate.kind == "linear"
    assert rate.factor <= 1 - step * mu
    assert not check_rate(found, f(best), step=step, L=L, distance=distance, mu=min(30 * mu, 0.99 * L)).holds


@pytest.mark.item("OPT-06")
def test_definition_of_strong_convexity_has_a_plus_before_the_inner_product():
    rng = np.random.default_rng(0)
    f = Quadratic(np.diag([1.0, 4.0]), [0.5, -2.0])
    points = rng.normal(size=(10, 2))
    assert check_curvature(f, f.gradient, points, *f.curvature).holds
    assert not check_curvature(f, f.gradient, points, 1.01, 4.0).holds
    assert not check_curvature(f, f.gradient, points, 1.0, 3.99).holds
    assert not check_curvature(f, lambda x: -f.gradient(x), points, *f.curvature).holds  # the sign as printed


def test_theorems_are_not_claimed_for_longer_steps_or_other_traces():
    with pytest.raises(ValueError, match=r"need a step in \(0, 1/L\] = \(0, 0.5\]"):
        check_rate([1.0, 0.5], 0.0, step=0.6, L=2.0, distance=1.0)
    with pytest.raises(ValueError, match="positive and finite"):
        lipschitz_step(0.0)
    rising = check_rate([1.0, 1.1, 0.5], 0.0, step=0.5, L=2.0, distance=5.0, lengths=[0.1, 0.1, 0.1])
    assert [check.name for check in rising.failed] == ["monotone", "descent"]
    steep = check_rate([1.0, 0.5], 0.0, step=0.5, L=2.0, distance=5.0, lengths=[3.0, 0.1])
    assert [check.name for check in steep.failed] == ["gradient", "descent"]
    uneven = check_rate([1.0, 0.5, 0.45], 0.0, step=0.5, L=2.0, distance=5.0, mu=0.5)
    assert [check.name for check in uneven.failed] == ["contraction"]  # 0.9 of the excess is left, though all is below 0.75ᵗ
    slow = check_rate([1.0, 0.9, 0.8], 0.0, step=0.25, L=2.0, distance=0.4)
    assert [check.name for check in slow.failed] == ["convex bound", "averaged bound"]


@pytest.mark.parametrize("optimum", [None, 2.0])
@pytest.mark.parametrize("factor", [0.2, 0.7, 0.99])
def test_rate_estimates_factors(factor, optimum):
    rate = convergence_rate(2.0 + 5 * factor ** np.arange(400), optimum)
    assert rate.kind == "linear"
    assert rate.factor == pytest.approx(factor, rel=1e-3)  # near the noise the differences are rounded


@pytest.mark.parametrize("optimum", [None, 2.0])
@pytest.mark.parametrize("power", [0.25, 0.5, 1.0, 2.0])
def test_rate_estimates_powers(power, optimum):
    rate = convergence_rate(2.0 + 5 / np.arange(1, 2000) ** power, optimum)
    assert rate.kind == "power"
    assert rate.power == pytest.approx(power, abs=0.01)


def test_rate_needs_enough_values():
    with pytest.raises(ValueError, match="needs 8 values"):
        convergence_rate([1.0, 0.5, 0.25])
    with pytest.raises(ValueError, match="needs 8 values"):
        convergence_rate(np.ones(50))
