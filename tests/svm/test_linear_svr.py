"""`LinearSVR`, against quadratic programs, liblinear, libsvm and ridge regression."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.svm import SVR as Libsvm
from sklearn.svm import LinearSVR as Liblinear

import lemmata
from lemmata.core.certificate import free
from lemmata.linear_model import Ridge
from lemmata.optimize import solve_qp
from lemmata.svm import LinearSVR

PLAIN, SQUARED = "epsilon_insensitive", "squared_epsilon_insensitive"
exact = pytest.mark.parametrize(
    ("loss", "solver"), [(loss, solver) for loss in (PLAIN, SQUARED) for solver in ("newton", "dual")]
)


def noisy(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.5][:d] + [2.0, -1.0, 0.0][:d]
    return X, X @ rng.normal(size=d) + 4.0 + rng.standard_t(3, size=n)


def objective(X, y, model, C, epsilon, loss):
    over = np.maximum(np.abs(y - X @ model.coef_ - model.intercept_) - epsilon, 0)
    return float(0.5 * model.coef_ @ model.coef_ + C * (over if loss == PLAIN else over**2).sum())


def program(X, y, C, epsilon, loss):
    """The tube as a quadratic program in (w, b, ξ, ξ̂)."""
    n, d = X.shape
    squared = loss == SQUARED
    P = np.diag(np.concatenate([np.ones(d), [0.0], np.full(2 * n, 2 * C if squared else 0.0)]))
    q = np.concatenate([np.zeros(d + 1), np.full(2 * n, 0.0 if squared else C)])
    rows, none, eye = np.column_stack([X, np.ones(n)]), np.zeros((n, n)), np.eye(n)
    G = np.block([[-rows, -eye, none], [rows, none, -eye], [np.zeros((2 * n, d + 1)), -np.eye(2 * n)]])
    return solve_qp(P, q, G, np.concatenate([epsilon - y, epsilon + y, np.zeros(2 * n)]))


@pytest.mark.item("KRN-23")
@pytest.mark.parametrize("solver", ["newton", "dual"])
def test_three_points_by_hand(solver):
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 3.3])
    model = LinearSVR(10.0, epsilon=0.2, fit_intercept=False, solver=solver).fit(X, y)
    assert model.coef_[0] == pytest.approx(1.033333, abs=6e-7)
    assert objective(X, y, model, 10.0, 0.2, PLAIN) == pytest.approx(0.533889, abs=6e-7)
    beta = model.coef_[0] / 3  # the last row alone is on the tube
    assert beta == pytest.approx(0.344444, abs=6e-7)
    assert y @ [0, 0, beta] - 0.2 * beta - 0.5 * (3 * beta) ** 2 == pytest.approx(0.533889, abs=6e-7)
    assert model.certify(X, y).holds


@exact
@pytest.mark.parametrize("seed", range(2))
def test_the_objective_is_that_of_the_quadratic_program(loss, solver, seed):
    X, y = noisy(25, seed=seed)
    for C, epsilon in ((0.05, 0.0), (0.3, 0.5), (10.0, 0.1))[: 3 if solver == "newton" else 2]:  # ascent is slow for large C
        model = LinearSVR(C, epsilon=epsilon, loss=loss, solver=solver).fit(X, y)
        value = objective(X, y, model, C, epsilon, loss)
        assert value == pytest.approx(program(X, y, C, epsilon, loss).value, rel=1e-7)
        assert model.certify(X, y).holds, str(model.certify(X, y))


def test_liblinear_has_the_same_optimum_without_an_intercept():
    X, y = noisy(200, seed=3)
    for loss in (PLAIN, SQUARED):
        options = {"C": 0.3, "epsilon": 0.4, "loss": loss, "fit_intercept": False}
        peer = Liblinear(**options, dual=True, tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, y)
        model = LinearSVR(**options).fit(X, y)
        np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-5)


def test_libsvm_has_the_same_line():
    X, y = noisy(150, seed=4)
    peer = Libsvm(kernel="linear", C=0.7, epsilon=0.3, tol=1e-10).fit(X, y)
    model = LinearSVR(0.7, epsilon=0.3).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], rtol=1e-4, atol=1e-5)  # libsvm is not closer
    assert model.intercept_ == pytest.approx(peer.intercept_[0], rel=1e-4)


def test_without_a_tube_the_square_is_ridge_regression():
    X, y = noisy(100, seed=5)
    model = LinearSVR(2.0, loss=SQUARED).fit(X, y)
    ridge = Ridge(alpha=1 / 4).fit(X, y)  # ½‖w‖² + 2Σr² is twice Σr² + ¼‖w‖²
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(ridge.intercept_, rel=1e-9)


def test_an_even_number_of_residuals_has_its_median_in_the_middle():
    X, y = np.zeros((4, 1)), np.array([1.0, 2.0, 5.0, 9.0])
    model = LinearSVR().fit(X, y)
    assert model.coef_[0] == 0
    assert model.intercept_ == pytest.approx(3.5, rel=1e-12)
    assert model.certify(X, y).holds


@exact
def test_one_percent_of_sabotage_is_refused(loss, solver):
    X, y = noisy(150, seed=6)
    rng = np.random.default_rng(0)
    model = LinearSVR(0.2, epsilon=0.2, loss=loss, solver=solver).fit(X, y)
    for name in ("coef_", "intercept_"):
        for _ in range(3):
            twin = deepcopy(model)
            changed = free(np.atleast_1d(getattr(model, name)), rng)
            setattr(twin, name, changed if name == "coef_" else changed[0])
            assert not twin.certify(X, y).holds, name


@exact
def test_weights_sparse_rows_and_scales(loss, solver):
    X, y = noisy(80, seed=7)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"epsilon": 0.3, "loss": loss, "solver": solver, "random_state": 0}
    weighted = LinearSVR(**options).fit(X, y, weight.astype(float))
    repeated = LinearSVR(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    close = 1e-8 if solver == "newton" else 3e-3  # the gap of coordinate ascent is quadratic in the coefficients
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=close, atol=close)
    assert weighted.certify(X, y, weight.astype(float)).holds
    np.testing.assert_allclose(
        LinearSVR(**options).fit(csr_matrix(X), y).coef_, LinearSVR(**options).fit(X, y).coef_, rtol=close, atol=close
    )
    # targets in other units: y, ε and w by a factor, C by what keeps the two terms in proportion
    factor = 1e6
    scaled = LinearSVR(**options | {"epsilon": 0.3 * factor, "C": factor if loss == PLAIN else 1.0}).fit(X, y * factor)
    np.testing.assert_allclose(scaled.coef_, factor * LinearSVR(**options).fit(X, y).coef_, rtol=close, atol=close * factor)
    assert scaled.certify(X, y * factor).holds


def test_a_stream_gives_the_same_bits():
    X, y = noisy(200, seed=8)

    def parts():
        for start in range(0, 200, 64):
            yield X[start : start + 64], y[start : start + 64]

    with lemmata.config(block_rows=64):
        memory = LinearSVR(epsilon=0.1).fit(X, y)
    stream = LinearSVR(epsilon=0.1).fit(parts)
    assert np.array_equal(memory.coef_, stream.coef_)
    assert memory.intercept_ == stream.intercept_
    assert stream.certify(parts).holds
