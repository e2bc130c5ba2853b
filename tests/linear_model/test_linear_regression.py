"""Linear regression against certified values, closed forms, simulation and scikit-learn."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.linear_model import LinearRegression as Peer

from lemmata.linear_model import LinearRegression
from reference.nist import datasets, digits

BARS = {"Filip": 7, "Longley": 11, "Wampler1": 9, "Wampler2": 9, "Wampler3": 9, "Wampler4": 7, "Wampler5": 6}


@pytest.mark.item("LIN-02")
@pytest.mark.parametrize("data", datasets(), ids=lambda d: d.name)
@pytest.mark.parametrize("order", range(5))
def test_nist_certified_digits(data, order):
    rows = np.random.default_rng(order).permutation(len(data.y)) if order else slice(None)
    model = LinearRegression(fit_intercept=data.intercept).fit(data.X[rows], data.y[rows])
    coef = np.r_[model.intercept_, model.coef_] if data.intercept else model.coef_
    assert digits(coef, data.coef) >= BARS.get(data.name, 11)
    errors = np.r_[model.intercept_standard_error_, model.standard_errors_] if data.intercept else model.standard_errors_
    assert digits(errors, data.std_err) >= min(BARS.get(data.name, 11), 9) - 1  # NIST bars are for coefficients
    assert model.certify(data.X[rows], data.y[rows]).holds


@pytest.mark.item("LIN-02", "LIN-01")
def test_small_example():
    X, y = np.arange(4.0)[:, None], np.array([1.0, 3.0, 2.0, 5.0])
    model = LinearRegression().fit(X, y)
    np.testing.assert_allclose([model.intercept_, model.coef_[0]], [1.1, 1.1], rtol=1e-14)
    assert ((y - model.predict(X)) ** 2).sum() == pytest.approx(2.7, rel=1e-14)
    assert model.noise_variance_ == pytest.approx(2.7 / 2, rel=1e-14)
    residual = y - model.predict(X)
    assert abs(residual.sum()) < 1e-14
    assert abs(residual @ X[:, 0]) < 1e-14


@pytest.mark.item("LIN-01")
def test_centering_and_scaling_change_nothing_but_the_coefficients():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)) * [1, 10, 0.1] + [100, 0, -3], rng.normal(size=50)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    Z = (X - mean) / deviation
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-14)
    np.testing.assert_allclose(Z * deviation + mean, X, rtol=1e-14)
    raw, standard = LinearRegression().fit(X, y), LinearRegression().fit(Z, y)
    np.testing.assert_allclose(raw.predict(X), standard.predict(Z), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(raw.coef_ * deviation, standard.coef_, rtol=1e-10)
    # an appended column of ones is the intercept
    ones = LinearRegression(fit_intercept=False).fit(np.column_stack([np.ones(50), X]), y)
    np.testing.assert_allclose(ones.coef_, np.r_[raw.intercept_, raw.coef_], rtol=1e-10)
    assert ones.intercept_ == 0


@pytest.mark.item("LIN-03")
def test_predictions_are_a_projection():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 3))
    # the hat matrix is what the fit does to each unit vector: fit all of them at once, as targets
    P = LinearRegression().fit(X, np.eye(12)).predict(X)
    np.testing.assert_allclose(P, P.T, atol=1e-14)
    np.testing.assert_allclose(P @ P, P, atol=1e-14)
    assert np.trace(P) == pytest.approx(4, rel=1e-13)  # three columns and the intercept
    y = rng.normal(size=12)
    fitted = LinearRegression().fit(X, y).predict(X)
    np.testing.assert_allclose(fitted, P @ y, atol=1e-14)
    assert abs((y - fitted) @ fitted) < 1e-13
    assert y @ y == pytest.approx(fitted @ fitted + (y - fitted) @ (y - fitted), rel=1e-14)


@pytest.mark.item("LIN-04")
def test_estimates_are_unbiased_with_the_stated_covariance():
    rng = np.random.default_rng(2)
    n, repeats, sigma = 30, 20_000, 0.7
    X, w = rng.normal(size=(n, 2)) + np.array([1, -2]), np.array([1.5, -0.5])
    Y = (X @ w)[:, None] + 4.0 + sigma * rng.normal(size=(n, repeats))
    model = LinearRegression().fit(X, Y)
    A = X - X.mean(axis=0)
    covariance = sigma**2 * np.linalg.inv(A.T @ A)
    error = np.sqrt(np.diag(covariance) / repeats)
    assert (np.abs(model.coef_.mean(axis=0) - w) < 5 * error).all()  # 5 σ: fails once in 10⁶
    spread = np.cov(model.coef_.T)
    bound = 6 * np.sqrt(2 / repeats) * np.diag(covariance).max()  # six standard deviations of a sample variance
    np.testing.assert_allclose(spread, covariance, rtol=0, atol=bound)
    assert model.noise_variance_.mean() == pytest.approx(sigma**2, rel=6 * np.sqrt(2 / (n - 3) / repeats))
    mean_error = (model.standard_errors_**2).mean(axis=0)
    np.testing.assert_allclose(mean_error, np.diag(covariance), rtol=0.02)
    # the error of the estimate is uncorrelated with the residuals
    residual = Y - model.predict(X)
    correlation = np.corrcoef(np.vstack([(model.coef_ - w).T, residual]))[:2, 2:]
    assert np.abs(correlation).max() < 5 / np.sqrt(repeats)


@pytest.mark.item("LIN-10")
def test_least_norm_solution():
    model = LinearRegression(fit_intercept=False).fit([[1.0, 2.0]], [5.0])
    np.testing.assert_allclose(model.coef_, [1, 2], rtol=1e-14)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(5, 12)), rng.normal(size=5)
    w = LinearRegression(fit_intercept=False).fit(X, y).coef_
    np.testing.assert_allclose(X @ w, y, rtol=1e-12)
    np.testing.assert_allclose(w, X.T @ np.linalg.solve(X @ X.T, y), rtol=1e-11)
    null = np.linalg.svd(X)[2][5:]
    assert np.abs(null @ w).max() < 1e-13
    for direction in null:
        assert np.linalg.norm(w) < np.linalg.norm(w + 0.1 * direction)
    from lemmata.linear_model import Ridge

    np.testing.assert_allclose(Ridge(1e-9, fit_intercept=False).fit(X, y).coef_, w, rtol=1e-7)  # the limit, to O(α)


def test_least_norm_is_in_the_units_of_the_user():
    rng = np.random.default_rng(4)
    base = rng.normal(size=(30, 2))
    X = np.column_stack([base, 1e3 * base[:, 0]])  # the third column is the first in another unit
    y = base @ [1.0, 2.0]
    model = LinearRegression().fit(X, y)
    assert model.rank_ == 2
    expected = np.array([1, 0, 1e3]) / (1 + 1e6)  # of all a + 1000 c = 1, the shortest
    np.testing.assert_allclose(model.coef_[[0, 2]], expected[[0, 2]], rtol=0, atol=1e-12)  # of a length of 1e-3
    assert model.certify(X, y).holds


@pytest.mark.parametrize("multiple", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(80, 6), (5, 9), (7, 7)])
def test_agrees_with_scikit_learn(shape, intercept, multiple):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=shape) + 2, rng.normal(size=(shape[0], 3)) if multiple else rng.normal(size=shape[0])
    w = rng.random(shape[0])
    ours = LinearRegression(fit_intercept=intercept).fit(X, y, w)
    peer = Peer(fit_intercept=intercept).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-8, atol=1e-10)  # the peer's tolerance
    np.testing.assert_allclose(
        ours.intercept_, np.broadcast_to(peer.intercept_, np.shape(ours.intercept_)), rtol=1e-8, atol=1e-10
    )
    assert ours.coef_.shape == peer.coef_.shape


def test_sparse_is_dense():
    rng = np.random.default_rng(6)
    S = csr_array(random_array((200, 8), density=0.2, rng=rng))
    y = rng.normal(size=200)
    sparse, dense = LinearRegression().fit(S, y), LinearRegression().fit(S.toarray(), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-12)
    np.testing.assert_allclose(sparse.predict(S), dense.predict(S.toarray()), rtol=1e-12)
    assert sparse.certify(S, y).holds


def test_metamorphic_relations():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = LinearRegression().fit(X, y)
    order = rng.permutation(40)
    shuffled = LinearRegression().fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.coef_, model.coef_, rtol=1e-12)
    doubled = LinearRegression().fit(np.hstack([X, X]), y)  # each column twice: the least norm halves both
    np.testing.assert_allclose(doubled.coef_, np.tile(model.coef_ / 2, 2), rtol=1e-11)
    assert doubled.rank_ == 3
    shifted = LinearRegression().fit(X + 5, 2 * y + 1)
    np.testing.assert_allclose(shifted.coef_, 2 * model.coef_, rtol=1e-12)


def test_no_degrees_of_freedom_is_no_variance():
    model = LinearRegression().fit([[0.0], [1.0]], [1.0, 2.0])
    assert np.isnan(model.noise_variance_)
    assert np.isnan(model.standard_errors_).all()
    assert model.certify([[0.0], [1.0]], [1.0, 2.0]).holds
