"""Kernel regression: the textbook's number, weights that sum to one, and a bandwidth that leaving rows out chose."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsRegressor

from lemmata.kernels import RBF, Function, Linear, Matern, Periodic
from lemmata.svm import KernelRegression, kernel_regression
from lemmata.svm.kernel_regression import loo_errors


def curve(seed, n=80, d=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def plain(k, X, y, new):
    """Average with weights as the formula has them."""
    K = k(new, X)
    return K @ y / K.sum(axis=1)


def leave_out(gamma, X, y, weight=None):
    """Leave every single copy of a row out in turn, and predict it from the rest."""
    weight = np.ones(len(X), dtype=int) if weight is None else weight
    X, y = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    np.fill_diagonal(K, 0.0)  # copies of a row stay
    return ((y - K @ y / K.sum(axis=1)) ** 2).mean()


@pytest.mark.item("KRN-11")
def test_the_example_of_two_points():
    model = KernelRegression(gamma=1.0).fit([[0.0], [1.0]], [1.0, 2.0])
    assert model.predict([[0.25]])[0] == pytest.approx(1.377541, abs=5e-7)
    a, b = np.exp(-0.0625), np.exp(-0.5625)
    assert model.predict([[0.25]])[0] == pytest.approx((a + 2 * b) / (a + b), rel=1e-14)


@pytest.mark.item("KRN-11")
@pytest.mark.parametrize("k", [RBF(0.4), Matern(0.4, nu=1.5), Periodic(0.5, 3.0), 2.0 * RBF(0.4) + 0.1], ids=repr)
def test_weights_are_shares(k):
    X, y = curve(0)
    new = np.linspace(-1, 7, 50)[:, None]
    model = KernelRegression(k).fit(X, y)
    np.testing.assert_allclose(model.predict(new), plain(k, X, y, new), rtol=1e-10, atol=1e-12)
    weights = KernelRegression(k).fit(X, np.eye(80)).predict(new)  # the prediction of an indicator is a weight
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights @ y, model.predict(new), rtol=1e-10, atol=1e-12)
    for far in (1e2, 1e5, 1e150):
        p = model.predict([[far], [-far]])
        assert (p >= y.min()).all()
        assert (p <= y.max()).all()


def test_far_away_and_with_large_gamma_the_nearest_row_decides():
    X, y = curve(1)
    nearest = KNeighborsRegressor(1).fit(X, y)
    new = np.linspace(-50, 50, 101)[:, None]
    np.testing.assert_allclose(KernelRegression(gamma=1e7).fit(X, y).predict(new), nearest.predict(new), rtol=1e-9)
    np.testing.assert_allclose(KernelRegression(gamma=1.0).fit(X, y).predict([[1e6]]), nearest.predict([[1e6]]), rtol=1e-9)
    np.testing.assert_allclose(KernelRegression(gamma=1e-14).fit(X, y).predict(new), y.mean(), rtol=1e-9)


@pytest.mark.parametrize("d", [1, 12])
def test_leave_one_out_errors_and_slopes(d):
    X, y = curve(2, n=30, d=d)
    weight = np.random.default_rng(0).integers(1, 4, 30)
    for w in (None, weight):
        gammas = np.array([0.05, 0.7, 9.0])
        errors, slopes = loo_errors(X, y[:, None], np.ones(30) if w is None else w.astype(float), gammas)
        np.testing.assert_allclose(errors, [leave_out(g, X, y, w) for g in gammas], rtol=1e-9)
        h = 1e-6
        step = [(leave_out(g * np.exp(h), X, y, w) - leave_out(g * np.exp(-h), X, y, w)) / (2 * h) for g in gammas]
        np.testing.assert_allclose(slopes, step, rtol=1e-5, atol=1e-8)


@pytest.mark.item("KRN-11")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow_without_jit
def test_the_bandwidth_is_the_one_that_predicts_best(seed):
    X, y = curve(seed, n=60)
    model = KernelRegression().fit(X, y)
    gamma = model.kernel_.gamma
    assert model.loo_error_ == pytest.approx(leave_out(gamma, X, y), rel=1e-9)
    search = minimize_scalar(
        lambda t: leave_out(np.exp(t), X, y), bracket=(np.log(gamma / 2), np.log(gamma), np.log(gamma * 2))
    )
    assert np.exp(search.x) == pytest.approx(gamma, rel=1e-5)
    assert all(leave_out(g, X, y) >= model.loo_error_ * (1 - 1e-12) for g in np.geomspace(gamma / 1e4, gamma * 4, 40))
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "local"
    for factor in (0.99, 1.01):
        twin = deepcopy(model)
        twin.kernel_ = RBF(gamma=factor * gamma)
        assert not twin.certify(X, y).holds
    assert model.score(X, y) > 0.9


@pytest.mark.slow_without_jit
def test_bandwidths_at_the_ends():
    X, y = curve(3, n=40)
    noise = KernelRegression().fit(X, np.where(np.arange(40) % 2, 1.0, -1.0))
    assert noise.certify(X, np.where(np.arange(40) % 2, 1.0, -1.0)).holds
    flat = KernelRegression().fit(X, np.full(40, 3.0))
    assert flat.loo_error_ == pytest.approx(0.0, abs=1e-25)
    assert flat.certify(X, np.full(40, 3.0)).holds
    twice = np.repeat(X, 2, axis=0)
    assert KernelRegression().fit(twice, np.repeat(y, 2)).certify(twice, np.repeat(y, 2)).holds
    alone = KernelRegression().fit([[1.0, 2.0]], [5.0])
    assert alone.predict([[0.0, 0.0], [9.0, 9.0]]).tolist() == [5.0, 5.0]


@pytest.mark.slow_without_jit
def test_weights_are_repetition():
    X, y = curve(4)
    weight = np.random.default_rng(0).integers(0, 4, 80)
    weighted = KernelRegression().fit(X, y, weight)
    repeated = KernelRegression().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.loo_error_ == pytest.approx(repeated.loo_error_, rel=1e-9)
    new = np.linspace(-1, 7, 30)[:, None]
    np.testing.assert_allclose(weighted.predict(new), repeated.predict(new), rtol=1e-9)
    np.testing.assert_array_equal(weighted.weights_, weight[weight > 0])
    assert weighted.certify(X, y, weight).holds


@pytest.mark.slow_without_jit
def test_several_targets_sparse_rows_and_many_left_out(monkeypatch):
    X, y = curve(5, n=150, d=2)
    Y = np.column_stack([y, 2 - y, X[:, 0]])
    model = KernelRegression(gamma=2.0).fit(X, Y)
    assert model.predict(X[:7]).shape == (7, 3)
    for c in range(3):
        np.testing.assert_allclose(model.predict(X)[:, c], KernelRegression(gamma=2.0).fit(X, Y[:, c]).predict(X), rtol=1e-10)
    both = KernelRegression().fit(X, Y)
    total = sum(loo_errors(X, Y[:, [c]], np.ones(150), np.array([both.kernel_.gamma]))[0][0] for c in range(3))
    assert both.loo_error_ == pytest.approx(total, rel=1e-10)
    assert both.certify(X, Y).holds
    sparse = KernelRegression().fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.predict(csr_array(X)), KernelRegression().fit(X, y).predict(X), rtol=1e-6)
    assert sparse.certify(csr_array(X), y).holds
    monkeypatch.setattr(kernel_regression, "LEFT_OUT", 40)  # every fourth row
    some = KernelRegression().fit(X, y)
    K = RBF(gamma=some.kernel_.gamma)(X)
    np.fill_diagonal(K, 0.0)
    assert some.loo_error_ == pytest.approx((((K @ y / K.sum(axis=1)) - y)[::4] ** 2).mean(), rel=1e-9)
    assert some.certify(X, y).holds


def test_kernels_with_negative_values_are_refused():
    X, y = curve(6)
    for kernel in ("linear", "sigmoid", Linear()):
        with pytest.raises(ValueError, match="has negative values; use RBF"):
            KernelRegression(kernel, gamma=1.0).fit(X, y)
    with pytest.raises(ValueError, match="has negative values; use RBF"):
        KernelRegression("poly", gamma=1.0, degree=3).fit(X, y)
    with pytest.raises(ValueError, match="gamma='loo' chooses the bandwidth of kernel='rbf'"):
        KernelRegression("poly").fit(X, y)
    even = KernelRegression("poly", gamma=1.0, degree=2, coef0=1.0).fit(X, y)
    np.testing.assert_allclose(even.predict(X), plain(even.kernel_, X, y, X), rtol=1e-9)
    unknown = KernelRegression(Function(lambda A, B: A @ B.T)).fit(X, y)
    np.testing.assert_allclose(unknown.predict(X), plain(Linear(), X, y, X), rtol=1e-9)
    with pytest.raises(ValueError, match="negative values"):
        unknown.predict(-X)
