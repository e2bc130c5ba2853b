"""Duality: the worked example in all its numbers, weak duality on every pair tried, and what strong duality needs."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import minimize_scalar

from lemmata.optimize import Program, duality, second_order
from lemmata.optimize.duality import (
    InfeasibleError,
    check_saddle,
    dual,
    duality_gap,
    kkt_residuals,
    lagrangian,
    solve_equality,
    solve_qp,
    stationary_point,
    sup_lagrangian,
)

EXAMPLE = Program(lambda x: x**2, [lambda x: 2 - x])  # minimize x² subject to x ≥ 2


def convex(seed):
    """A convex program in two variables with a disc and a half-plane, strictly feasible at zero."""
    rng = np.random.default_rng(seed)
    a, c = rng.normal(size=2), 3 * rng.normal(size=2)
    return Program(
        lambda x: np.exp(a @ x) + (x - c) @ (x - c),
        [lambda x: x @ x - 1, lambda x: a @ x - 0.3],
        gradient=lambda x: a * np.exp(a @ x) + 2 * (x - c),
        inequality_gradients=[lambda x: 2 * x, lambda x: a],
    )


def solution(program, bounds=50.0):
    """Primal by SciPy, multipliers by maximizing the dual with SciPy."""
    best = scipy_minimize(
        lambda p: -dual(program, p, np.zeros(2)).value, np.ones(2), bounds=[(0, bounds)] * 2, method="L-BFGS-B", tol=1e-14
    )
    cons = [{"type": "ineq", "fun": lambda x, g=g: -g(x)} for g in program.inequalities]
    primal = scipy_minimize(program.f, np.zeros(2), constraints=cons, method="SLSQP", options={"ftol": 1e-14})
    return primal.x, best.x


@pytest.mark.item("OPT-24")
def test_worked_example():
    assert lagrangian(EXAMPLE, 3.0, [5.0]) == 3.0**2 + 5.0 * (2 - 3.0)
    for price in np.linspace(0, 10, 21):
        point = dual(EXAMPLE, [price], x0=0.0)
        assert point.x == pytest.approx(price / 2, abs=1e-8)
        assert point.value == pytest.approx(-(price**2) / 4 + 2 * price, abs=1e-10)
    best = minimize_scalar(
        lambda p: -dual(EXAMPLE, [p], x0=0.0).value, bounds=(0, 20), method="bounded", options={"xatol": 1e-9}
    )
    assert best.x == pytest.approx(4.0, abs=1e-5)  # a minimum by values alone: √ε of the argument
    assert -best.fun == pytest.approx(4.0, abs=1e-9)
    assert duality_gap(EXAMPLE, 2.0, [4.0]) == pytest.approx(0.0, abs=1e-9)
    assert np.abs(kkt_residuals(EXAMPLE, 2.0, [4.0])).max() < 1e-9
    assert kkt_residuals(EXAMPLE, 2.0, [4.0]).certificate(convex=True).holds
    quadratic = solve_qp([[2.0]], [0.0], [[-1.0]], [-2.0])
    np.testing.assert_allclose([quadratic.x[0], quadratic.inequality[0], quadratic.value], [2.0, 4.0, 4.0], rtol=1e-12)
    assert quadratic.certificate.holds

    def printed(price):
        return -(price**2) / 4 - 2 * price

    assert printed(4.0) == -12.0
    assert (printed(-4 + 1e-6) - printed(-4 - 1e-6)) / 2e-6 == pytest.approx(0.0, abs=1e-6)  # stationary at −4, no price at all
    assert dual(EXAMPLE, [4.0], x0=0.0).value == pytest.approx(4.0)


@pytest.mark.item("OPT-20")
@pytest.mark.parametrize("seed", range(3))
def test_supremum_of_the_lagrangian_is_the_objective_with_an_infinite_penalty(seed):
    program = convex(seed)
    rng = np.random.default_rng(seed)
    kinds = set()
    for x in rng.normal(size=(60, 2)):
        feasible = all(g(x) <= 0 for g in program.inequalities)
        kinds.add(feasible)
        found = sup_lagrangian(program, x)
        prices = np.abs(rng.standard_cauchy(size=(200, 2)))
        assert found.value == (program.f(x) if feasible else np.inf)
        if feasible:
            assert lagrangian(program, x, found.multipliers) == found.value
            assert not found.multipliers.any()  # attained at λ = 0
            assert all(lagrangian(program, x, p) < found.value for p in prices)  # and at no λ > 0: ≥ and sup, not > and max
        else:
            assert (found.multipliers >= 0).all()
            for t in (0.0, 1.0, 1e3, 1e6):
                expected = program.f(x) + t * found.slope
                assert lagrangian(program, x, t * found.multipliers) == pytest.approx(expected, rel=1e-12)
            assert found.slope == max(g(x) for g in program.inequalities) > 0
    assert kinds == {True, False}


@pytest.mark.item("OPT-20")
def test_equalities_are_penalized_on_both_sides():
    program = Program(lambda x: float(x @ x), equalities=[lambda x: x.sum() - 1])
    for x, sign in (([2.0, 0.0], 1), ([0.0, 0.0], -1)):
        found = sup_lagrangian(program, np.array(x))
        assert found.value == np.inf
        assert found.multipliers.tolist() == [sign]
    assert sup_lagrangian(program, np.array([0.5, 0.5])).value == 0.5


@pytest.mark.item("OPT-21")
@pytest.mark.parametrize("seed", range(3))
def test_dual_is_concave_and_below_every_feasible_value(seed):
    program, rng = convex(seed), np.random.default_rng(seed)
    points = rng.uniform(-1, 1, size=(200, 2))
    values = [program.f(x) for x in points if program.feasible(x)]
    prices = 3 * rng.random((12, 2)) ** 2
    bounds = [dual(program, p, np.zeros(2)).value for p in prices]
    assert len(values) > 20
    assert max(bounds) <= min(values)
    for i in range(0, 12, 2):
        middle = dual(program, (prices[i] + prices[i + 1]) / 2, np.zeros(2)).value
        assert middle >= (bounds[i] + bounds[i + 1]) / 2 - 1e-9
        for x in points[:5]:  # a minimum over x: no x has a smaller Lagrangian
            assert lagrangian(program, x, prices[i]) >= bounds[i] - 1e-9
    assert all(duality_gap(program, x, prices[0], np.zeros(2)) >= 0 for x in points[:20])


@pytest.mark.item("OPT-21")
def test_dual_of_a_lagrangian_without_minimum_bounds_nothing():
    program = Program(lambda x: x[0], [lambda x: 1 - x[0]])  # L = x + λ(1 − x)
    assert dual(program, [0.5], x0=np.zeros(1)).value == -np.inf
    assert dual(program, [1.0], x0=np.zeros(1)).value == pytest.approx(1.0)
    explosive = Program(lambda x: -np.exp(x[0]), [lambda x: x[0]])
    assert dual(explosive, [1.0], x0=np.ones(1)).value == -np.inf
    with pytest.raises(ValueError, match="must not be negative"):
        dual(program, [-1.0], x0=np.zeros(1))
    with pytest.raises(ValueError, match="1 constraints, and multipliers of the shape"):
        lagrangian(program, np.zeros(1), [1.0, 2.0])
    assert duality_gap(program, np.array([0.0]), [1.0]) == np.inf  # not feasible


@pytest.mark.item("OPT-22", "OPT-23")
@pytest.mark.parametrize("seed", range(4))
def test_convex_programs_with_a_strictly_feasible_point_have_no_gap_and_a_saddle_point(seed):
    program, rng = convex(seed), np.random.default_rng(seed)
    assert program.strictly_feasible(np.zeros(2))
    x, prices = solution(program)
    assert program.feasible(x, tol=1e-7)
    gap = program.f(x) - dual(program, prices, np.zeros(2)).value
    assert abs(gap) < 1e-5 * max(1.0, abs(program.f(x)))  # two SciPy solvers that know nothing of each other
    certificate = check_saddle(program, x, prices, 2 * rng.normal(size=(300, 2)), 5 * rng.random((300, 2)), tol=1e-5)
    assert certificate.holds, certificate
    assert kkt_residuals(program, x, prices).certificate(tol=1e-2, convex=True).holds  # the multipliers are known to √1e-5
    prices_only = check_saddle(program, 2 * x + 2, prices, [2 * x + 2], [[0.0, 0.0], prices, [9.0, 9.0]], tol=1e-5)
    assert [check.name for check in prices_only.failed] == ["prices"]  # not feasible: higher prices raise L
    points_only = check_saddle(program, x + 0.3, prices, [x + 9, x, x - 9], [prices], tol=1e-5)
    assert [check.name for check in points_only.failed] == ["points"]


@pytest.mark.item("OPT-22")
def test_what_strong_duality_needs():
    # Without Slater's point the best bound may not be attained: x² ≤ 0 leaves x = 0, and min x + λx² = −1/4λ < 0 for every λ.
    thin = Program(lambda x: x[0], [lambda x: x[0] ** 2])
    assert not thin.strictly_feasible(np.zeros(1))
    for price in (0.5, 5.0, 500.0):
        assert dual(thin, [price], np.ones(1)).value == pytest.approx(-1 / (4 * price), rel=1e-6)
    # Without convexity there may be a gap: min −x² on [−1, 1] is −1, but L = −x² + λ(x² − 1) with λ < 1 has no minimum …
    hill = Program(lambda x: -(x[0] ** 2) + x[0] ** 3 / 3, [lambda x: x[0] ** 2 - 1])
    assert dual(hill, [5.0], np.array([-20.0])).value == -np.inf
    # A minimum of L is unique only under strict convexity: here every (1, z) is one.
    flat = Program(lambda x: (x[0] - 1) ** 2, [lambda x: -x[0]])
    first, second = (dual(flat, [0.0], np.array([0.0, z])) for z in (-3.0, 3.0))
    assert first.value == pytest.approx(second.value, abs=1e-12)
    assert abs(first.x[1] - second.x[1]) > 1
    # A minimum inside the set has the price zero, not a positive one, and is the minimum of f itself.
    inside = solve_qp(2 * np.eye(2), [-1.0, 0.0], [[1.0, 1.0]], [9.0])
    assert inside.inequality.tolist() == [0.0]
    np.testing.assert_allclose(inside.x, [0.5, 0.0], atol=1e-12)


@pytest.mark.item("OPT-22")
@pytest.mark.parametrize("seed", range(5))
def test_primal_dual_solutions_are_saddle_points(seed):
    rng = np.random.default_rng(seed)
    B, q, G = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(4, 3))
    P, h = B @ B.T, 0.5 + rng.random(4)
    found = solve_qp(P, 3 * q, G, h)
    program = Program(lambda x: x @ P @ x / 2 + 3 * q @ x, [lambda x, i=i: G[i] @ x - h[i] for i in range(4)])
    assert program.strictly_feasible(np.zeros(3))
    assert found.certificate.holds
    assert check_saddle(program, found.x, found.inequality, 3 * rng.normal(size=(200, 3)), 9 * rng.random((200, 4))).holds
    assert kkt_residuals(program, found.x, found.inequality).certificate(convex=True).holds
    assert abs(duality_gap(program, found.x - 1e-12 * (G.T @ found.inequality), found.inequality)) < 1e-6
    assert found.inequality.max() > 0


@pytest.mark.item("OPT-23")
def test_each_condition_is_measured_by_its_own_residual():
    program = Program(lambda x: x[0] ** 2 + x[1] ** 2, [lambda x: 2 - x[0], lambda x: x[1] - 5], [lambda x: x[1] - x[0] + 2])
    exact = kkt_residuals(program, np.array([2.0, 0.0]), [4.0, 0.0, 0.0])
    np.testing.assert_allclose(exact, 0.0, atol=1e-9)
    assert exact.certificate().kind == "local"
    assert exact.certificate(convex=True).kind == "proof"
    cases = {
        "primal": (np.array([1.5, -0.5]), [4.0, 0.0, 0.0], 0.5),
        "dual": (np.array([2.0, 0.0]), [4.0, -0.25, 0.0], 0.25),
        "stationarity": (np.array([2.0, 0.0]), [1.0, 0.0, 0.0], 3.0),
        "complementarity": (np.array([2.0, 0.0]), [4.0, 0.5, 0.0], 2.5),
    }
    for name, (x, multipliers, size) in cases.items():
        residuals = kkt_residuals(program, x, multipliers)
        assert getattr(residuals, name) == pytest.approx(size, rel=1e-9)
        assert name in [check.name for check in residuals.certificate().failed]
    both = kkt_residuals(program, np.array([3.0, 0.5]), [0.0, 0.0, 0.0])
    assert both.primal == pytest.approx(0.5)  # an equality counts on both sides
    with_gradients = convex(0)
    without = Program(with_gradients.f, with_gradients.inequalities)
    x = np.array([0.3, -0.2])
    np.testing.assert_allclose(kkt_residuals(with_gradients, x, [1.0, 2.0]), kkt_residuals(without, x, [1.0, 2.0]), rtol=1e-8)


@pytest.mark.item("OPT-19")
@pytest.mark.parametrize("seed", range(5))
def test_equality_constrained_quadratics_solve_their_linear_system(seed):
    rng = np.random.default_rng(seed)
    B, q, A, b = rng.normal(size=(5, 5)), rng.normal(size=5), rng.normal(size=(2, 5)), rng.normal(size=2)
    for P, kind in ((B @ B.T, "minimum"), (-B @ B.T, "maximum")):
        found = solve_equality(P, q, A, b)
        K = np.block([[P, A.T], [A, np.zeros((2, 2))]])
        expected = np.linalg.solve(K, np.append(-q, b))
        np.testing.assert_allclose(np.append(found.x, found.multipliers), expected, rtol=1e-6, atol=1e-9)
        assert found.tangent.kind == kind
        assert found.certificate(kind).holds
        assert not found.certificate("minimum" if kind == "maximum" else "maximum").holds
        np.testing.assert_allclose(P @ found.x + q + A.T @ found.multipliers, 0.0, atol=1e-9)
        np.testing.assert_allclose(A @ found.x, b, atol=1e-9)
        feasible = found.x[:, None] + (np.eye(5) - np.linalg.pinv(A) @ A) @ rng.normal(size=(5, 100))
        values = np.einsum("ik,ij,jk->k", feasible, P, feasible) / 2 + q @ feasible
        assert (values >= found.value).all() if kind == "minimum" else (values <= found.value).all()


@pytest.mark.item("OPT-19")
def test_only_the_tangent_space_decides():
    indefinite = np.diag([1.0, -5.0])
    assert second_order(indefinite).kind == "saddle"
    assert solve_equality(indefinite, [0.0, 0.0], [[0.0, 1.0]], [2.0]).tangent.kind == "minimum"
    assert solve_equality(indefinite, [0.0, 0.0], [[1.0, 0.0]], [2.0]).tangent.kind == "maximum"
    saddle = solve_equality(np.diag([1.0, -5.0, 1.0]), np.zeros(3), [[0.0, 0.0, 1.0]], [2.0])
    assert saddle.tangent.kind == "saddle"
    alone = solve_equality(np.eye(2), [1.0, 1.0], np.eye(2), [3.0, 4.0])
    np.testing.assert_allclose(alone.x, [3.0, 4.0], rtol=1e-12)
    assert alone.certificate().holds
    with pytest.raises(InfeasibleError) as refusal:
        solve_equality(np.eye(2), [0.0, 0.0], [[1.0, 1.0], [2.0, 2.0]], [1.0, 3.0])
    proof = refusal.value.equality
    np.testing.assert_allclose(proof @ [[1.0, 1.0], [2.0, 2.0]], 0.0, atol=1e-12)
    assert proof @ [1.0, 3.0] < 0
    with pytest.raises(ValueError, match="no stationary point"):
        solve_equality(np.diag([1.0, 0.0]), [0.0, 1.0], [[1.0, 0.0]], [0.0])


@pytest.mark.item("OPT-19")
def test_largest_entropy_and_points_of_a_sphere():
    entropy = Program(
        lambda p: (p * np.log(p)).sum(),
        equalities=[lambda p: p.sum() - 1],
        gradient=lambda p: np.log(p) + 1,
        equality_gradients=[np.ones_like],
    )
    found = stationary_point(entropy, np.array([0.1, 0.2, 0.3, 0.4]), tol=1e-12)
    np.testing.assert_allclose(found.x, 0.25, rtol=1e-10)
    assert found.multipliers[0] == pytest.approx(np.log(4) - 1, rel=1e-9)
    assert found.certificate().holds
    a = np.array([1.0, -2.0, 2.0])
    sphere = Program(
        lambda x: a @ x, equalities=[lambda x: x @ x - 1], gradient=lambda x: a, equality_gradients=[lambda x: 2 * x]
    )
    for start, kind, sign in ((a / 4, "maximum", 1), (-a / 4 + 0.1, "minimum", -1)):
        found = stationary_point(sphere, start)
        np.testing.assert_allclose(found.x, sign * a / 3, atol=1e-9)
        assert found.tangent.kind == kind
        assert found.certificate(kind).holds
        assert found.value == pytest.approx(3.0 * sign)
    with pytest.raises(ValueError, match="equality constraints only"):
        stationary_point(EXAMPLE, 0.0)


def test_the_module_lists_its_names():
    assert all(hasattr(duality, name) for name in duality.__all__)
