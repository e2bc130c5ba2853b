"""ℓp-penalized least squares: the scalar problem by brute force, p = 1 and 2 by other solvers, the certificate by search."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.linear_model import Lasso, Ridge

from lemmata.linear_model import LpRegression
from lemmata.linear_model.lp import best_coefficient, dual, objective, penalty_slope, step_of

POWERS = (0.1, 0.5, 0.9, 1.0, 1.05, 1.5, 1.9, 2.0)


def table(seed=0, n=60, d=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + rng.normal(size=d)
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, X[:, :3] @ [2.0, 0.0, -1.5] + 4 + rng.normal(size=n)


def value(model, X, y):
    """The objective as the docstring states it."""
    return ((y - model.predict(X)) ** 2).sum() + model.alpha * (np.abs(model.coef_) ** model.p).sum()


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(("curvature", "beta"), [(1.0, 0.5), (0.3, 2.0), (40.0, 0.01), (1e-3, 1.0)])
def test_the_scalar_problem_is_solved_globally(p, curvature, beta):
    for z in (-3.0, -0.4, 0.0, 1e-6, 0.7, 25.0):
        found = best_coefficient(curvature, z, beta, p)

        def cost(v, z=z):
            return curvature * v * v / 2 - z * v + beta * abs(v) ** p

        grid = np.linspace(-1.5, 1.5, 20001) * max(abs(z) / curvature, 1e-3)
        least = min(cost(v) for v in grid)
        polished = minimize_scalar(
            cost, bounds=(0, 1.5 * z / curvature) if z > 0 else (1.5 * z / curvature, 0), method="bounded"
        )
        # 1e-12: rounding of the three terms
        assert cost(found) <= min(least, polished.fun) + 1e-12 * (1 + z * z / curvature)
    assert best_coefficient(0.0, 1.0, beta, p) == 0.0, "a column that is not there has no coefficient"


def test_the_derivative_of_the_penalty():
    w = np.array([-2.0, 0.0, 0.3])
    h = 1e-6
    for p in (0.5, 1.0, 1.7):
        slope = 0.8 * (np.abs(w + h) ** p - np.abs(w - h) ** p) / (2 * h)
        # 1e-8: the square of the step of the differences
        np.testing.assert_allclose(penalty_slope(w, 0.8, p)[[0, 2]], slope[[0, 2]], rtol=1e-8)
        assert penalty_slope(w, 0.8, p)[1] == 0.0


@pytest.mark.item("LIN-08")
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("alpha", [0.05, 3.0, 80.0])
def test_every_power_is_certified_and_the_objective_never_rises(p, alpha):
    X, y = table()
    model = LpRegression(p, alpha).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert certificate.kind == ("local" if p < 1 else "proof")
    assert (np.diff(model.trace_) <= 1e-12 * ((y - y.mean()) ** 2).sum()).all()  # rounding of a difference of such sums
    assert (model.coef_ == 0).any() or p > 1 or alpha < 1, "p ≤ 1 sets coefficients to zero"
    if p > 1:
        assert (model.coef_ != 0).all(), "p > 1 does not"
    # the subgradient (p = 1) or gradient (p > 1) of the stated objective
    pull = 2 * (X - X.mean(axis=0)).T @ (y - model.predict(X))
    own = alpha * p * np.sign(model.coef_) * np.abs(np.where(model.coef_ == 0, 1, model.coef_)) ** (p - 1)
    away = model.coef_ != 0
    # 1e-7: the tolerance 1e-12 times the lengths of columns and target
    np.testing.assert_allclose(pull[away], own[away], rtol=1e-7, atol=1e-7)
    if p == 1:
        assert (np.abs(pull[~away]) <= alpha * (1 + 1e-9)).all()


@pytest.mark.item("LIN-08")
def test_norms_and_quasi_norms():
    """‖·‖ₚ is a norm for p ≥ 1 and none below; p → ∞ is the largest entry; convexity of the penalty changes at 1."""
    a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])

    def norm(v, p):
        return (np.abs(v) ** p).sum() ** (1 / p)

    assert norm(a + b, 0.5) > norm(a, 0.5) + norm(b, 0.5), "the triangle inequality fails below 1"
    rng = np.random.default_rng(0)
    for p in (1.0, 1.3, 2.0):
        for _ in range(200):
            u, v = rng.normal(size=(2, 4))
            assert norm(u + v, p) <= norm(u, p) + norm(v, p) + 1e-12  # rounding
            assert (np.abs((u + v) / 2) ** p).sum() <= ((np.abs(u) ** p).sum() + (np.abs(v) ** p).sum()) / 2 + 1e-12
    assert norm(np.array([3.0, -4.0, 1.0]), 400) == pytest.approx(4.0, rel=1e-3)  # 3^(1/400) of the largest
    middle = (a + b) / 2
    assert (np.abs(middle) ** 0.5).sum() > ((np.abs(a) ** 0.5).sum() + (np.abs(b) ** 0.5).sum()) / 2, "not convex below 1"


@pytest.mark.parametrize("n", [60, 12])
def test_one_and_two_are_lasso_and_ridge(n):
    X, y = table(1, n)
    lasso = Lasso(alpha=6.0 / (2 * n), tol=1e-14, max_iter=100_000).fit(X, y)
    # 1e-6: scikit-learn's own precision at this tolerance
    np.testing.assert_allclose(LpRegression(1, 6.0).fit(X, y).coef_, lasso.coef_, rtol=1e-6, atol=1e-6)
    ridge = Ridge(alpha=6.0).fit(X, y)
    ours = LpRegression(2, 6.0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-8)  # a tolerance of 1e-12 times the conditioning
    np.testing.assert_allclose(ours.intercept_, ridge.intercept_, rtol=1e-8)


@pytest.mark.parametrize("p", [1.2, 1.5, 1.8])
def test_between_one_and_two_a_general_minimizer_finds_the_same(p):
    X, y = table(2)
    model = LpRegression(p, 4.0).fit(X, y)
    Z, c = X - X.mean(axis=0), y - y.mean()

    def cost(w):
        r = c - Z @ w
        return r @ r + 4.0 * (np.abs(w) ** p).sum(), -2 * Z.T @ r + 4.0 * p * np.sign(w) * np.abs(w) ** (p - 1)

    found = minimize(cost, np.zeros(8), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000})
    assert value(model, X, y) <= found.fun * (1 + 1e-12)
    assert value(model, X, y) == pytest.approx(found.fun, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_below_one_the_fit_is_close_to_the_best_of_all_supports_and_is_a_local_optimum(seed):
    X, y = table(seed, n=40, d=4)
    model = LpRegression(0.5, 5.0).fit(X, y)
    Z, c = X - X.mean(axis=0), y - y.mean()
    G, q = Z.T @ Z, Z.T @ c
    best = np.inf
    for signs in product((-1.0, 0.0, 1.0), repeat=4):
        inside = np.flatnonzero(signs)
        if not len(inside):
            best = min(best, 0.0)
            continue
        start = np.linalg.lstsq(Z[:, inside], c, rcond=None)[0]
        H, r = G[np.ix_(inside, inside)], q[inside]
        found = minimize(
            lambda v, H=H, r=r: v @ H @ v / 2 - r @ v + 2.5 * (np.abs(v) ** 0.5).sum(), start, method="Nelder-Mead"
        )
        best = min(best, found.fun)
    ours = objective(G, q, model.coef_, 2.5, 0.5)
    assert ours <= best + 0.02 * abs(best), "two percent: a local optimum may not be the best"
    rng = np.random.default_rng(seed)
    for _ in range(300):
        moved = model.coef_ + 1e-3 * rng.normal(size=4) * (rng.random(4) < 0.5)
        assert objective(G, q, moved, 2.5, 0.5) >= ours - 1e-9 * abs(ours)


@pytest.mark.parametrize("p", [1.0, 1.1, 1.5, 2.0])
def test_the_dual_bounds_every_objective(p):
    X, y = table(3)
    Z, c = X - X.mean(axis=0), y - y.mean()
    rng = np.random.default_rng(3)
    least = (((y - LpRegression(p, 3.0).fit(X, y).predict(X)) ** 2).sum() + 0.0) / 2
    model = LpRegression(p, 3.0).fit(X, y)
    least += 1.5 * (np.abs(model.coef_) ** p).sum()
    for scale in (0.0, 1e-3, 0.1, 1.0):
        w = model.coef_ + scale * rng.normal(size=8)
        r = c - Z @ w
        bound = dual(c, r, np.abs(Z.T @ r), 1.5, p)
        assert bound <= least * (1 + 1e-12)
        if scale == 0.0:
            assert bound == pytest.approx(least, rel=1e-9)


def test_many_columns_many_targets_and_sparse_tables():
    from scipy.sparse import csr_array

    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 80)) * (rng.random((30, 80)) < 0.4)
    Y = X[:, :2] @ [[1.0, 2.0], [-1.0, 0.5]] + 0.1 * rng.normal(size=(30, 2))
    model = LpRegression(0.7, 0.5).fit(X, Y)
    assert model.coef_.shape == (2, 80)
    assert model.certify(X, Y).holds
    for t in range(2):
        np.testing.assert_allclose(LpRegression(0.7, 0.5).fit(X, Y[:, t]).coef_, model.coef_[t], rtol=1e-9, atol=1e-12)
    sparse = LpRegression(0.7, 0.5).fit(csr_array(X), Y)
    np.testing.assert_allclose(sparse.coef_, model.coef_, rtol=1e-6, atol=1e-9)  # sums in another order, and a local optimum
    assert sparse.certify(csr_array(X), Y).holds


def test_a_step_ends_where_it_began_at_the_optimum():
    G, q = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -0.3])
    state, step = np.zeros(2), step_of(G, q, 0.2, 1.5, 5.0)
    for _ in range(30):
        state, cost, residual = step(state)
    assert residual <= 1e-12
    assert cost == pytest.approx(objective(G, q, state, 0.2, 1.5), rel=1e-12)


@pytest.mark.parametrize(
    ("option", "match"), [({"p": 0}, "p"), ({"p": 2.5}, "p"), ({"alpha": 0}, "alpha"), ({"alpha": -1}, "alpha")]
)
def test_impossible_parameters_are_refused(option, match):
    with pytest.raises(ValueError, match=f"The '{match}' parameter"):
        LpRegression(**option).fit([[1.0], [2.0]], [1.0, 2.0])
