"""`LinearSVC`, against quadratic programs, liblinear and the catalogue."""

from copy import deepcopy

import dask.array as da
import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC as Libsvm
from sklearn.svm import LinearSVC as Liblinear

import lemmata
from lemmata.core.certificate import free
from lemmata.linear_model.margin_losses import LOSSES
from lemmata.optimize import solve_qp
from lemmata.svm import LinearSVC

LINE = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1, -1, 1, 1])
EXACT = [("hinge", "newton"), ("hinge", "dual"), ("squared_hinge", "newton"), ("squared_hinge", "dual")]
exact = pytest.mark.parametrize(("loss", "solver"), EXACT)


def overlapping(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + [2.0, -1.0, 0.5][:d]
    scores = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, np.where(scores > np.quantile(scores, 0.6), 1, -1)


def objective(X, y, coef, intercept, C, loss, weight=None):
    """½‖w‖² + C Σ s ℓ, written out; y = ±1."""
    margins = y * (X @ np.ravel(coef) + intercept)
    return float(0.5 * np.sum(np.square(coef)) + C * np.average(LOSSES[loss].value(margins), weights=weight) * total(y, weight))


def total(y, weight):
    return len(y) if weight is None else np.sum(weight)


def program(X, y, C, loss):
    """The soft margin as a quadratic program in (w, b, ξ): at least 1 − ξ, slacks not negative."""
    n, d = X.shape
    squared = loss == "squared_hinge"
    P = np.diag(np.concatenate([np.ones(d), [0.0], np.full(n, 2 * C if squared else 0.0)]))
    q = np.concatenate([np.zeros(d + 1), np.full(n, 0.0 if squared else C)])
    G = np.block([[-y[:, None] * X, -y[:, None], -np.eye(n)], [np.zeros((n, d + 1)), -np.eye(n)]])
    return solve_qp(P, q, G, np.concatenate([-np.ones(n), np.zeros(n)]))


@pytest.mark.item("KRN-17")
@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize(("C", "w", "least"), [(0.25, 0.5, 0.375), (10.0, 1.0, 0.5)])
def test_four_points_by_hand(solver, C, w, least):
    X, y = LINE
    model = LinearSVC(C, loss="hinge", solver=solver, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[w]], rtol=1e-6)  # the root of the duality gap
    assert model.intercept_[0] == pytest.approx(0, abs=1e-9)
    assert objective(X, y, model.coef_, model.intercept_, C, "hinge") == pytest.approx(least, rel=1e-10)
    assert model.certify(X, y).holds


@pytest.mark.item("KRN-17")
@exact
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_that_of_the_quadratic_program(loss, solver, seed):
    X, y = overlapping(25, seed=seed)
    for C in (0.05, 1.0, 20.0) if solver == "newton" else (0.05, 1.0):  # coordinate ascent is slow for few columns and large C
        model = LinearSVC(C, loss=loss, solver=solver).fit(X, y)
        solution = program(X, y, C, loss)
        value = objective(X, y, model.coef_, model.intercept_, C, loss)
        assert value == pytest.approx(solution.value, rel=1e-7)  # ten times the tolerance of the gap
        np.testing.assert_allclose(model.coef_[0], solution.x[:3], rtol=2e-3, atol=1e-3)  # the root of it
        assert model.certify(X, y).holds, str(model.certify(X, y))


@pytest.mark.item("KRN-17")
def test_a_large_price_gives_the_hard_margin():
    X = np.array([[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]])
    y = np.array([1, 1, -1, -1])
    model = LinearSVC(1e6, loss="hinge").fit(X, y)
    np.testing.assert_allclose(model.coef_, [[2 / 3, 1 / 3]], rtol=1e-9)  # KRN-13
    assert model.intercept_[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.item("KRN-19")
@pytest.mark.parametrize("seed", range(3))
def test_zero_is_a_subgradient_of_hinge_plus_penalty(seed):
    X, y = overlapping(60, seed=seed)
    C = 0.7
    model = LinearSVC(C, loss="hinge").fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    margins = y * (X @ w + b)
    # Σ max(0, 1 − m) + λ‖w‖², λ = 1/2C: rows beyond the margin have slope 0, rows within it −1, rows on it any between.
    on = np.abs(margins - 1) < 1e-7
    rows = np.column_stack([X, np.ones(len(y))]) * y[:, None]
    wanted = 2 * (1 / (2 * C)) * np.append(w, 0.0) - rows[(margins < 1) & ~on].sum(axis=0)
    slopes, *_ = np.linalg.lstsq(rows[on].T, wanted, rcond=None)
    np.testing.assert_allclose(rows[on].T @ slopes, wanted, atol=1e-8)
    assert ((slopes > -1e-8) & (slopes < 1 + 1e-8)).all()
    # and the same minimizer as the machine with slacks
    peer = Libsvm(C=C, kernel="linear", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(w, peer.coef_[0], rtol=1e-4, atol=1e-5)


def test_liblinear_has_the_same_optimum_without_an_intercept():
    X, y = overlapping(300, seed=4)
    for loss, dual in (("hinge", True), ("squared_hinge", True), ("squared_hinge", False)):
        peer = Liblinear(C=0.5, loss=loss, dual=dual, fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0).fit(
            X, y
        )
        for solver in ("newton", "dual"):
            model = LinearSVC(0.5, loss=loss, solver=solver, fit_intercept=False).fit(X, y)
            mine, its = (objective(X, y, m.coef_, 0.0, 0.5, loss) for m in (model, peer))
            assert mine == pytest.approx(its, rel=1e-7)
            assert model.intercept_[0] == 0
            assert model.certify(X, y).holds


def test_a_high_constant_column_of_liblinear_comes_to_a_free_intercept():
    X, y = overlapping(200, seed=5)
    peer = Liblinear(C=0.5, dual=False, intercept_scaling=1e4, tol=1e-12, max_iter=100_000).fit(X, y)
    model = LinearSVC(0.5).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-5)
    shifted = LinearSVC(0.5).fit(X + 100.0, y)  # which does not depend on the origin
    np.testing.assert_allclose(shifted.coef_, model.coef_, rtol=1e-9)


@pytest.mark.item("KRN-18")
def test_libsvm_has_the_same_plane_and_points_are_of_three_types():
    X, y = overlapping(150, seed=6)
    peer = Libsvm(C=2.0, kernel="linear", tol=1e-10).fit(X, y)
    model = LinearSVC(2.0, loss="hinge").fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-4)  # libsvm is not closer
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-4)
    margins = y * model.decision_function(X)
    alpha = np.zeros(len(y))
    alpha[peer.support_] = np.abs(peer.dual_coef_[0])
    assert (margins[alpha == 0] >= 1 - 1e-4).all()
    np.testing.assert_allclose(margins[(alpha > 1e-8) & (alpha < 2 - 1e-8)], 1.0, atol=1e-4)
    assert (margins[alpha > 2 - 1e-8] <= 1 + 1e-4).all()


def test_where_no_row_is_on_the_margin_the_intercept_is_in_the_middle():
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    model = LinearSVC(0.1, loss="hinge").fit(X, y)  # w = 0.2: any b from −0.8 to 0.8 is best
    assert model.coef_[0, 0] == pytest.approx(0.2)
    assert model.intercept_[0] == pytest.approx(0, abs=1e-12)
    X, y = np.array([[-1.0], [1.0], [3.0]]), np.array([0, 1, 1])
    model = LinearSVC(1e-3, loss="hinge").fit(X, y)  # w = 0.002: any b from 1 − 3w to 1 − w
    assert model.coef_[0, 0] == pytest.approx(0.002)
    assert model.intercept_[0] == pytest.approx(0.996)
    assert model.certify(X, y).holds


@exact
def test_one_percent_of_sabotage_is_refused(loss, solver):
    X, y = overlapping(200, seed=7)
    model = LinearSVC(loss=loss, solver=solver).fit(X, y)
    rng = np.random.default_rng(0)
    for name in ("coef_", "intercept_"):
        for _ in range(3):
            twin = deepcopy(model)
            setattr(twin, name, free(getattr(model, name), rng))
            assert not twin.certify(X, y).holds, name


@exact
@pytest.mark.parametrize("seed", range(2))
def test_weights_are_repetitions_and_zero_is_absence(loss, solver, seed):
    X, y = overlapping(60, seed=seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(y))
    weighted = LinearSVC(loss=loss, solver=solver, class_weight="balanced").fit(X, y, weight.astype(float))
    repeated = LinearSVC(loss=loss, solver=solver, class_weight="balanced").fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    # Newton's method is exact; the gap of coordinate ascent, 1e-7, is quadratic in the coefficients
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8 if solver == "newton" else 3e-3)
    assert weighted.certify(X, y, weight.astype(float)).holds


def test_class_weights():
    X, y = overlapping(100, seed=8)
    counts = np.array([(y == -1).sum(), (y == 1).sum()])
    by_name = LinearSVC(class_weight={-1: 50 / counts[0], 1: 50 / counts[1]}).fit(X, y)
    balanced = LinearSVC(class_weight="balanced").fit(X, y)
    by_row = LinearSVC().fit(X, y, np.where(y > 0, 50 / counts[1], 50 / counts[0]))
    for other in (by_name, by_row):
        np.testing.assert_allclose(balanced.coef_, other.coef_, rtol=1e-10)
    assert balanced.certify(X, y).holds
    with pytest.raises(ValueError, match="class_weight names 7"):
        LinearSVC(class_weight={7: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="must be positive"):
        LinearSVC(class_weight={1: -2.0}).fit(X, y)


@exact
def test_sparse_is_dense(loss, solver):
    X, y = overlapping(120, seed=9)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    dense = LinearSVC(loss=loss, solver=solver, random_state=0).fit(X, y)
    for kind in (csr_matrix, csr_array):
        sparse = LinearSVC(loss=loss, solver=solver, random_state=0).fit(kind(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
        np.testing.assert_allclose(sparse.decision_function(kind(X)), dense.decision_function(X), rtol=1e-5, atol=1e-6)
        assert sparse.certify(kind(X), y).holds


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_coordinate_ascent_does_not_mind_where_rows_are_and_how_long(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    y = np.where(X[:, :9].sum(axis=1) + rng.normal(size=60) > 0, 1, -1)

    def fit(X, C):
        return LinearSVC(C, loss=loss, solver="dual", random_state=0).fit(X, y)

    model, scaled, moved = fit(X, 1.0), fit(1024 * X, 2.0**-20), fit(X + 100, 1.0)
    assert model.n_iter_ < 60
    assert scaled.n_iter_ == model.n_iter_  # 1024: a power of two rounds nothing
    np.testing.assert_array_equal(1024 * scaled.coef_, model.coef_)
    assert moved.n_iter_ < 2 * model.n_iter_
    # 1e-5: both stop at a duality gap of 1e-7 of the objective, which is quadratic in the coefficients
    np.testing.assert_allclose(moved.coef_, model.coef_, atol=1e-5 * np.abs(model.coef_).max())
    assert moved.certify(X + 100, y).holds


def test_coefficients_that_should_be_zero_are_certified():
    X, y = np.array([[0.0, 0.0], [0.0, 0.0], [-0.78, 1.23]]), [1, 0, 2]  # two classes in one place: nothing tells them apart
    model = LinearSVC(469.0, loss="hinge").fit(X, y)
    assert np.abs(model.coef_[:2]).max() < 1e-8
    assert model.certify(X, y).holds


def test_wide_rows_of_many_scales_take_few_steps():
    rng = np.random.default_rng(13)
    X = rng.normal(size=(35, 2300)) * 10.0 ** rng.uniform(-3, 3, 2300)
    y = rng.integers(0, 2, 35)
    model = LinearSVC(20.0).fit(X, y)  # equations of rows, where conjugate gradients would go astray
    assert model.n_iter_ < 100
    assert model.certify(X, y).holds
    # all rows are support vectors of a squared loss, so that w = Xᵀα, Σ α = 0 and 1 − y f = y α/2C are linear equations
    t = 2.0 * y - 1
    K = np.block([[X @ X.T + np.eye(35) / 40, np.ones((35, 1))], [np.ones((1, 35)), np.zeros((1, 1))]])
    alpha = np.linalg.solve(K, np.append(t, 0.0))[:35]
    assert (t * alpha > 0).all()
    # 1e-6: columns of scale 1e3 leave a third of the digits of the smallest objective
    np.testing.assert_allclose(model.coef_[0], X.T @ alpha, atol=1e-6 * np.abs(X.T @ alpha).max())


def wide(n=150, d=2500, seed=0):
    """More columns than a factorization takes: conjugate gradients, and coordinate ascent for plain hinge."""
    rng = np.random.default_rng(seed)
    X = csr_matrix(np.where(rng.random((n, d)) < 0.01, rng.normal(size=(n, d)), 0.0))
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_more_columns_than_rows(loss):
    X, y = wide()
    models = [LinearSVC(0.3, loss=loss, solver=solver, random_state=0).fit(X, y) for solver in ("auto", "newton", "dual")]
    values = [objective(X, y, m.coef_, m.intercept_, 0.3, loss) for m in models]
    np.testing.assert_allclose(values, values[1], rtol=1e-6)
    for model in models:
        assert model.certify(X, y).holds, str(model.certify(X, y))
    twin = models[0]
    twin.coef_ = free(twin.coef_, np.random.default_rng(0))
    assert not twin.certify(X, y).holds


def test_several_classes_against_the_rest():
    X, y = load_digits(return_X_y=True)
    model = LinearSVC(0.01).fit(X, y)
    assert model.coef_.shape == (10, 64)
    assert model.certify(X, y).holds
    one = LinearSVC(0.01).fit(X, y == 3)
    np.testing.assert_allclose(model.coef_[3], one.coef_[0], rtol=1e-7)
    assert np.array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    peer = Liblinear(C=0.01, dual=False, tol=1e-8, max_iter=10_000).fit(X, y)
    assert model.score(X, y) > peer.score(X, y) - 0.01


@exact
def test_threads_and_homes_give_the_same_bits(loss, solver):
    X, y = overlapping(300, seed=10)
    models = []
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads, block_rows=64):
            models.append(LinearSVC(loss=loss, solver=solver, random_state=0).fit(X, y))
    assert np.array_equal(models[0].coef_, models[1].coef_)
    if solver == "newton":
        with lemmata.config(block_rows=64):
            stored = LinearSVC(loss=loss, solver=solver).fit(da.from_array(X, chunks=(64, 3)), da.from_array(y, chunks=64))
        assert np.array_equal(stored.coef_, models[0].coef_)
    else:  # blocks are visited in turn, rows in memory as one
        stored = LinearSVC(loss=loss, solver=solver, random_state=0).fit(lambda: iter([(X[:200], y[:200]), (X[200:], y[200:])]))
        np.testing.assert_allclose(stored.coef_, models[0].coef_, rtol=3e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_float32(loss):
    X, y = make_classification(400, 8, random_state=0)
    model = LinearSVC(loss=loss).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, LinearSVC(loss=loss).fit(X, y).coef_, rtol=1e-4, atol=1e-5)
    assert model.certify(X.astype(np.float32), y).holds


@pytest.mark.item("KRN-20")
def test_stochastic_subgradients_add_up_and_their_average_converges():
    X, y = overlapping(100, seed=11)
    C, n, rng = 0.5, 100, np.random.default_rng(0)
    w, b = rng.normal(size=3), 0.3
    margins = y * (X @ w + b)
    parts = 0.5 * (w @ w) / n + C * LOSSES["hinge"].value(margins)
    assert parts.sum() == pytest.approx(objective(X, y, w, b, C, "hinge"), rel=1e-12)
    # the steps of the stochastic solver are, up to a common factor, the subgradients of these parts
    steps = w / n - C * (y * (margins < 1))[:, None] * X
    along, h = rng.normal(size=3), 1e-7
    ahead = 0.5 * ((w + h * along) @ (w + h * along)) / n + C * LOSSES["hinge"].value(y * (X @ (w + h * along) + b))
    np.testing.assert_allclose((ahead - parts) / h, steps @ along, atol=1e-5)
    least = program(X, y, C, "hinge").value
    excess = []
    for epochs in (10, 100, 1000):
        model = LinearSVC(C, loss="hinge", solver="sgd", max_iter=epochs, tol=None, random_state=0).fit(X, y)
        excess.append(objective(X, y, model.coef_, model.intercept_, C, "hinge") / least - 1)
    assert excess[2] < excess[1] < excess[0]
    assert 0 <= excess[2] < 1e-3


def test_the_stochastic_fit_is_proved_by_repeating_it():
    X, y = overlapping(100, seed=12)
    model = LinearSVC(solver="sgd", class_weight="balanced", tol=1e-3, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds
    assert certificate["gap"].value > 1e-6  # told, not judged
    model.coef_ = model.coef_ * 1.01
    assert not model.certify(X, y).holds
    with pytest.raises(ValueError, match="tol=None"):
        LinearSVC(tol=None).fit(X, y)
    with pytest.raises(ValueError, match="rows in memory only"):
        LinearSVC(solver="sgd", class_weight="balanced").fit(lambda: iter([(X, y)]))
