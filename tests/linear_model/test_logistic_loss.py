"""The sums under logistic regression: slow twins, finite differences, scikit-learn's loss, and bounds that must hold."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn._loss import HalfBinomialLoss, HalfMultinomialLoss
from sklearn.linear_model._linear_loss import LinearModelLoss

from lemmata.core.blocks import Blocks, add
from lemmata.linear_model import logistic_bounds, logistic_loss
from lemmata.linear_model.logistic_bounds import concordant_excess, convex_excess
from lemmata.linear_model.logistic_loss import curvature_block, diagonal_block, gradient_block, hessian_block, objective
from lemmata.linear_model.logistic_solvers import conjugate_gradients, newton_step
from linear_model import naive

FORMS = {"dense": np.asarray, "sparse": csr_array, "float32": lambda X: X.astype(np.float32)}


def table(seed, n=60, d=3, k=2, weighted=False):
    """Draw rows with a few zeros, off-center and of unequal scales, classes, weights, and coefficients (d, k) or (d, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 10.0], size=d) + rng.normal(size=d)
    X = (X * (rng.random((n, d)) < 0.8)).astype(np.float32).astype(float)  # the same numbers in either precision
    y, weight = rng.integers(0, k, n), rng.random(n) if weighted else None
    n_scores = 1 if k == 2 else k
    return X, y, weight, rng.normal(size=(d, n_scores)), rng.normal(size=n_scores)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_kernels_match_their_twins_and_add_over_blocks(k, weighted, form):
    X, y, weight, coef, intercept = table(k, k=k, weighted=weighted)
    F, center, unit = FORMS[form](X), np.array([0.5, -1.0, 2.0]), np.array([2.0, 0.25, 1.0])
    direction, slope = np.cos(coef), np.sin(intercept)
    H = naive.logistic_hessian(X, weight, coef, intercept)
    curved = (H @ np.vstack([direction, slope]).ravel()).reshape(4, -1)
    diagonal = np.diag(H).reshape(4, -1)
    standard = naive.logistic_hessian((X - center) / unit, weight, coef * unit[:, None], intercept + center @ coef)
    expected = {
        gradient_block: (naive.logistic_sums(X, y, weight, coef, intercept), ()),
        curvature_block: ((curved[-1], curved[:-1]), (direction, slope)),
        diagonal_block: ((diagonal[:-1], diagonal[-1]), ()),
        hessian_block: ((standard,), (center, unit)),
    }
    for kernel, (sums, parameters) in expected.items():
        for cuts in ([], [25], [1, 30, 31]):
            parts = []
            for a, b in zip([0, *cuts], [*cuts, 60], strict=True):
                weights = None if weight is None else weight[a:b]
                parts.append(kernel(F[a:b], y[a:b], weights, coef, intercept, *parameters))
            found = parts[0]
            for part in parts[1:]:
                found = add(found, part)
            found = found if isinstance(found, tuple) else (found,)
            for value, true in zip(found, sums, strict=True):
                np.testing.assert_allclose(value, true, rtol=1e-12, atol=1e-12, err_msg=kernel.__name__)


def test_losses_and_probabilities_stay_exact_far_out():
    X, coef = np.array([[1e3], [-1e3], [40.0], [-40.0]]), np.ones((1, 1))
    for form in (np.asarray, csr_array):
        loss, residual, g = gradient_block(form(X), np.array([1, 0, 0, 1]), None, coef, np.zeros(1))
        assert loss == pytest.approx(80 + 2 * np.log1p(np.exp(-40)), rel=1e-15)
        assert residual[0] == 0.0
        np.testing.assert_allclose(g, [[80.0]], rtol=1e-15)  # the two wrong rows pull with all of their weight
    loss, residual, g = gradient_block(X, np.array([0, 1, 2, 2]), None, np.array([[1.0, -1.0, 0.0]]), np.zeros(3))
    assert loss == pytest.approx(80.0, rel=1e-15)
    np.testing.assert_allclose(residual, [1.0, 1.0, -2.0], atol=1e-15)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 3.0])
@pytest.mark.parametrize("k", [2, 4])
def test_the_objective_is_that_of_scikit_learn_in_other_coordinates(k, penalty, intercept):
    X, y, weight, coef, b = table(10 + k, k=k, weighted=True)
    b = b if intercept else np.zeros_like(b)
    problem = objective(Blocks.of(X, y, weight), len(b), penalty, intercept)
    theta = problem.theta(coef, b)
    for back, true in zip(problem.parameters(theta), (coef, b), strict=True):
        np.testing.assert_allclose(back, true, rtol=1e-13, atol=1e-13)
    value, gradient = problem(theta)
    base = HalfBinomialLoss() if k == 2 else HalfMultinomialLoss(n_classes=k)
    peer = LinearModelLoss(base_loss=base, fit_intercept=intercept)
    parameters = np.vstack([coef, b]) if intercept else coef
    w = parameters[:, 0] if k == 2 else np.asfortranarray(parameters.T)
    options = {"sample_weight": weight, "l2_reg_strength": penalty / weight.sum()}
    true, slope = peer.loss_gradient(w, X, y.astype(float), **options)
    assert value == pytest.approx(true, rel=1e-13)
    slope = slope.reshape(len(parameters), 1) if k == 2 else slope.reshape(k, -1, order="F").T
    raw = gradient.reshape(len(parameters), -1).copy()
    raw[: len(coef)] *= problem.unit[:, None]
    if intercept:  # θ's last row is the intercept at the center of the columns
        raw[:-1] += np.outer(problem.center, raw[-1])
    np.testing.assert_allclose(raw, slope, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("k", [2, 3])
def test_gradient_hessian_and_curvature_are_the_derivatives(k, form):
    X, y, weight, _, _ = table(20 + k, k=k, weighted=True)
    problem = objective(Blocks.of(FORMS[form](X), y, weight, block_rows=16), 1 if k == 2 else k, 0.7, True)
    rng = np.random.default_rng(k)
    theta = rng.normal(size=problem.n_parameters)
    _, gradient = problem(theta)
    h = 1e-5 * np.eye(len(theta))
    slopes = [(problem(theta + e)[0] - problem(theta - e)[0]) / 2e-5 for e in h]
    np.testing.assert_allclose(gradient, slopes, atol=1e-9)  # h² plus rounding over h
    H = problem.hessian(theta)
    columns = np.array([(problem(theta + e)[1] - problem(theta - e)[1]) / 2e-5 for e in h])
    np.testing.assert_allclose(H, columns, atol=1e-9)
    np.testing.assert_allclose(H, H.T, atol=1e-15)
    assert np.linalg.eigvalsh(H)[0] > -1e-15
    direction = rng.normal(size=len(theta))
    np.testing.assert_allclose(problem.curvature(theta, direction), H @ direction, rtol=1e-11, atol=1e-13)
    if k == 3:  # a common shift of all intercepts is seen by nothing, and the gauge fills it
        shift = np.zeros_like(theta)
        shift[-3:] = 1.0
        np.testing.assert_allclose(H @ shift, 0.0, atol=1e-15)
        assert np.linalg.eigvalsh(H + problem.gauge())[0] > 1e-3


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_preconditioners_are_the_inverse_hessian_or_its_diagonal_blocks(wide, intercept, monkeypatch):
    X, y, weight, _, _ = table(30, k=3, weighted=True)
    problem = objective(Blocks.of(X, y, weight), 3, 2.0, intercept)
    theta = np.random.default_rng(0).normal(size=problem.n_parameters)
    H, g = problem.hessian(theta), np.cos(np.arange(len(theta)))
    np.testing.assert_allclose((H + problem.gauge()) @ problem.preconditioner(theta)(g), g, rtol=1e-9)
    monkeypatch.setattr(logistic_loss, "FULL", 0)
    by_class = np.concatenate([np.linalg.solve(H[c::3, c::3], g[c::3])[:, None] for c in range(3)], axis=1).ravel()
    np.testing.assert_allclose(problem.preconditioner(theta)(g), by_class, rtol=1e-9)
    if wide:
        monkeypatch.setattr(logistic_loss, "WIDE", 2)
        S = objective(Blocks.of(csr_array(X), y, weight), 3, 2.0, intercept)
        np.testing.assert_allclose(S.preconditioner(theta)(g), g / np.diag(S.hessian(theta)), rtol=1e-9)


def test_conjugate_gradients_solve_and_take_a_right_hand_side_of_zero():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(12, 12))
    A, b = B @ B.T + 12 * np.eye(12), rng.normal(size=12) * 1e-9  # the forcing term is small where the gradient is
    v = conjugate_gradients(lambda p: A @ p, b, lambda r: r / np.diag(A))
    np.testing.assert_allclose(A @ v, b, rtol=0, atol=1e-3 * np.abs(b).max())
    assert conjugate_gradients(lambda p: A @ p, np.zeros(12), lambda r: r).tolist() == [0.0] * 12


def test_standard_coordinates_survive_constant_empty_and_far_columns_and_rows_without_weight():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40) + 1e6, np.full(40, 0.1), np.zeros(40), rng.normal(size=40) * 1e160])
    problem = objective(Blocks.of(X, rng.integers(0, 2, 40), None), 1, 0.0, True)
    np.testing.assert_allclose(problem.center[:3], [X[:, 0].mean(), 0.1, 0.0], rtol=1e-12)
    assert problem.unit[0] == pytest.approx(X[:, 0].std(), rel=1e-9)
    assert problem.unit[1:3].tolist() == [0.1, 1.0]
    assert problem.unit[3] == pytest.approx(1e160 * (X[:, 3] / 1e160).std(), rel=1e-9)
    weight = np.append(np.zeros(20), np.ones(20))
    stored = objective(Blocks.of(X, rng.integers(0, 2, 40), weight, block_rows=20), 1, 0.0, True)
    assert np.isfinite(stored.unit).all()
    assert stored.total == 20


def solved(problem):
    """Give the optimum to the last digit, by Newton steps."""
    theta = np.zeros(problem.n_parameters)
    state = (theta, *problem(theta))
    for _ in range(40):
        before, (state, _, _) = state, newton_step(problem, state)
        if state is before:  # rounding ends the progress
            break
    return state[:2]


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_at_every_distance_from_the_optimum(seed):
    rng = np.random.default_rng(seed)
    k = [2, 3, 4][seed % 3]
    X, y, weight, _, _ = table(seed, n=80, k=k, weighted=bool(seed % 2))
    if seed % 4 == 0:  # directions in which no score moves
        X = np.column_stack([X, X[:, 0] - X[:, 1], np.full(80, 3.0)])
    penalty = [0.0, 1.0, 1e-9, 50.0][seed // 3 % 4]
    problem = objective(Blocks.of(X, y, weight), 1 if k == 2 else k, penalty, seed % 5 != 0)
    theta, best = solved(problem)
    assert concordant_excess(problem, theta, problem(theta)[1]) < 1e-14
    finite = 0
    for size in np.geomspace(1e-5, 1e2, 15):
        for mask in (rng.random(len(theta)) < 0.3, np.ones(len(theta))):
            point = theta + size * rng.normal(size=len(theta)) * mask
            value, gradient = problem(point)
            rounding = 1e-14 * max(value, 1.0)
            bound = concordant_excess(problem, point, gradient)
            assert bound >= value - best - rounding
            if np.isfinite(bound) and value - best > 1e-9:
                finite += 1
                assert bound <= 2 * (value - best)  # 1 + t/3 + … below 2: tight as long as it says anything
            if penalty > 0:
                assert convex_excess(problem, point, value) >= value - best - rounding
        assert size < 50 or bound == np.inf or penalty > 1, "far away the bound says nothing"
    assert finite >= 4


def test_the_bound_says_nothing_where_the_hessian_vanishes_because_all_rows_are_certain():
    X, y = np.array([[0.0], [0.1], [5.0], [6.0]]), np.array([0, 1, 0, 1])
    problem = objective(Blocks.of(X, y, None), 1, 0.0, True)
    for slope in (10.0, 30.0, 100.0, 1e3):  # row three is certainly wrong: its curvature is gone, its gradient is not
        point = problem.theta(np.array([[slope]]), np.array([-0.05 * slope]))
        assert concordant_excess(problem, point, problem(point)[1]) == np.inf
    X, y = np.array([[0.0], [0.0], [4.0], [4.0]]), np.array([0, 1, 0, 0])
    problem = objective(Blocks.of(X, y, None), 1, 0.0, True)
    point = problem.theta(np.array([[1e3]]), np.zeros(1))  # all of the gradient is in the direction without curvature
    assert problem(point)[0] > 1e3
    assert concordant_excess(problem, point, problem(point)[1]) == np.inf


def test_a_common_shift_of_penalized_coefficients_costs_what_the_bound_says():
    X, y, _, _, _ = table(3, k=3)
    problem = objective(Blocks.of(X, y, None), 3, 0.5, True)
    theta, best = solved(problem)
    coef, intercept = problem.parameters(theta)
    moved = problem.theta(coef + np.array([[0.3], [0.0], [-0.1]]), intercept + 2.0)
    value, gradient = problem(moved)
    assert value - best == pytest.approx(0.5 / 2 * 3 * (0.3**2 + 0.1**2) / 60, rel=1e-9)
    assert concordant_excess(problem, moved, gradient) == pytest.approx(value - best, rel=1e-9)


def test_which_bound_serves_where(monkeypatch):
    X, y, _, _, _ = table(4)
    kinds = {}
    for dense in (True, False):
        monkeypatch.setattr(logistic_bounds, "DENSE", 2000 if dense else 1)
        for penalty in (0.0, 1.0):
            problem = objective(Blocks.of(X, y, None), 1, penalty, True)
            theta, best = solved(problem)
            value = problem(0.99 * theta)[0]
            bound, kinds[dense, penalty] = logistic_bounds.excess(problem, 0.99 * theta)
            assert bound >= value - best or kinds[dense, penalty] == "evidence"
            assert bound == pytest.approx(value - best, rel=0.2) or kinds[dense, penalty] == "proof"
    assert kinds == {(True, 0.0): "proof", (True, 1.0): "proof", (False, 0.0): "evidence", (False, 1.0): "proof"}
    far = problem.theta(np.zeros((3, 1)), np.array([50.0]))
    assert convex_excess(problem, far, problem(far)[0]) == np.inf, "Newton's method does not find the intercept from there"
