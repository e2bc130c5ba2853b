"""Ridge regression against closed forms, its dual, simulation, brute-force cross-validation and scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge as Peer

import lemmata
from lemmata.linear_model import BayesianLinearRegression, LinearRegression, Ridge

X4, Y4 = np.arange(4.0)[:, None], np.array([1.0, 3.0, 2.0, 5.0])


@pytest.mark.item("LIN-06")
def test_small_example():
    both = Ridge(1.0, fit_intercept=False).fit(np.column_stack([np.ones(4), X4]), Y4)
    np.testing.assert_allclose(both.coef_, [0.846154, 1.128205], atol=5e-7)
    slope = Ridge(1.0).fit(X4, Y4)
    np.testing.assert_allclose([slope.coef_[0], slope.intercept_], [0.916667, 1.375], atol=5e-7)


@pytest.mark.item("LIN-06")
@pytest.mark.parametrize("alpha", [1e-6, 0.3, 1e4])
@pytest.mark.parametrize("shape", [(30, 4), (6, 15)])
def test_normal_equations_and_dual_form(alpha, shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    w = Ridge(alpha, fit_intercept=False).fit(X, y).coef_
    residual = (X.T @ X + alpha * np.eye(shape[1])) @ w - X.T @ y
    assert np.linalg.norm(residual) < 1e-12 * np.linalg.norm(X.T @ y)
    dual = X.T @ np.linalg.solve(X @ X.T + alpha * np.eye(shape[0]), y)
    np.testing.assert_allclose(w, dual, rtol=1e-6)  # the dual system's conditioning is 1e7 at the smallest penalty


@pytest.mark.item("LIN-07")
def test_ridge_against_least_squares():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(25, 4)), rng.normal(size=25)
    norms = [np.linalg.norm(Ridge(a).fit(X, y).coef_) for a in (1e-9, 1e-2, 1.0, 1e2, 1e9)]
    least_squares = LinearRegression().fit(X, y)
    assert all(a > b for a, b in pairwise(norms))
    assert norms[0] <= np.linalg.norm(least_squares.coef_)
    np.testing.assert_allclose(Ridge(1e-9).fit(X, y).coef_, least_squares.coef_, rtol=1e-8)
    assert norms[-1] < 1e-6
    np.testing.assert_allclose(Ridge(0.0).fit(X, y).coef_, least_squares.coef_, rtol=1e-12)


@pytest.mark.item("LIN-07")
def test_bias_and_variance_in_closed_form_and_by_simulation():
    x = np.array([-2.0, 1.0, 1.0]) * np.sqrt(5 / 6)  # centered, xᵀx = 5
    rng = np.random.default_rng(2)
    repeats = 200_000
    Y = x[:, None] * 1.0 + rng.normal(size=(3, repeats))
    shrink = 5 / (5 + 1)
    bias2, variance = (shrink - 1) ** 2, 5 / (5 + 1) ** 2
    np.testing.assert_allclose([bias2, variance, bias2 + variance], [0.0277778, 0.1388889, 0.1666667], atol=5e-8)
    estimates = Ridge(1.0, fit_intercept=False).fit(x[:, None], Y).coef_[:, 0]
    assert abs(estimates.mean() - shrink) < 5 * np.sqrt(variance / repeats)
    assert estimates.var() == pytest.approx(variance, rel=5 * np.sqrt(2 / repeats))
    plain = LinearRegression(fit_intercept=False).fit(x[:, None], Y).coef_[:, 0]
    assert ((plain - 1) ** 2).mean() == pytest.approx(0.2, rel=5 * np.sqrt(2 / repeats))
    assert ((estimates - 1) ** 2).mean() < ((plain - 1) ** 2).mean()


@pytest.mark.parametrize("intercept", [False, True])
def test_agrees_with_scikit_learn(intercept):
    rng = np.random.default_rng(3)
    X, Y, w = rng.normal(size=(50, 5)) + 3, rng.normal(size=(50, 3)), rng.random(50)
    alphas = np.array([0.1, 5.0, 0.1])
    ours = Ridge(alphas, fit_intercept=intercept).fit(X, Y, w)
    peer = Peer(alphas, fit_intercept=intercept, solver="cholesky").fit(X, Y, w)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-9, atol=1e-12)
    assert ours.certify(X, Y, w).holds


def brute_force_gcv(X, y, alpha):
    """N RSS / (n − tr H)² with the hat matrix written out; the intercept counts as a parameter."""
    n = len(y)
    A = X - X.mean(axis=0)
    H = A @ np.linalg.solve(A.T @ A + alpha * np.eye(X.shape[1]), A.T) + np.ones((n, n)) / n
    r = y - H @ y
    return n * (r @ r) / (n - np.trace(H)) ** 2


def test_gcv_minimizes_the_score_computed_by_brute_force():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:100], y[:100]
    model = Ridge("gcv").fit(X, y)
    best = minimize_scalar(
        lambda t: brute_force_gcv(X, y, np.exp(t)), bounds=(-12, 5), method="bounded", options={"xatol": 1e-9}
    )
    assert np.log(model.alpha_) == pytest.approx(best.x, abs=1e-4)  # a minimum by values alone: √ε of the argument
    assert model.certify(X, y).holds
    assert brute_force_gcv(X, y, model.alpha_) <= best.fun * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["noise", "exact"])
def test_gcv_at_the_ends(kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    y = rng.normal(size=60) if kind == "noise" else X @ [1.0, 2.0, 3.0]
    model = Ridge("gcv").fit(X, y)
    assert model.certify(X, y).holds
    assert 0 < model.alpha_ < np.inf
    if kind == "exact":
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-5)


def brute_force_evidence(X, Y, alpha):
    """Log density of the targets at the best noise, the flat intercept integrated out, over n × n matrices."""
    n, t = Y.shape
    K = np.linalg.inv(np.eye(n) + X @ X.T / alpha)
    R = Y - (K.sum(axis=0) @ Y) / K.sum()
    noise = np.einsum("it,ij,jt", R, K, R) / (n - 1) / t
    one = (n - 1) * (np.log(2 * np.pi * noise) + 1) - np.linalg.slogdet(K)[1] + np.log(K.sum())
    return -0.5 * t * one


@pytest.mark.parametrize("targets", [1, 3])
def test_evidence_is_greatest_at_the_penalty_found(targets):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 6)) * [1, 2, 3, 0.1, 1, 1] + 10
    Y = X @ rng.normal(size=(6, targets)) + 4 * rng.normal(size=(40, targets))
    model = Ridge("evidence").fit(X, Y)
    best = minimize_scalar(
        lambda x: -brute_force_evidence(X, Y, np.exp(x)), bounds=(-12, 12), method="bounded", options={"xatol": 1e-9}
    )
    assert np.log(model.alpha_) == pytest.approx(best.x, abs=1e-4)  # a minimum by values alone: √ε of the argument
    assert brute_force_evidence(X, Y, model.alpha_) >= -best.fun * (1 + 1e-12)
    certificate = model.certify(X, Y)
    assert certificate.holds
    assert certificate.kind == "proof"
    model.alpha_ *= 1.01
    assert not model.certify(X, Y).holds


def test_evidence_is_that_of_the_bayesian_model():
    X, y = load_diabetes(return_X_y=True)
    bayesian = BayesianLinearRegression().fit(X, y)
    ridge = Ridge("evidence").fit(X, y)
    assert ridge.alpha_ == pytest.approx(bayesian.prior_precision_ * bayesian.noise_variance_, rel=1e-9)
    np.testing.assert_allclose(ridge.coef_, bayesian.coef_, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_no_signal_and_no_noise_end_the_search(criterion):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 3)) + 2, rng.normal(size=60) + 5
    A = X - X.mean(axis=0)
    quiet = Ridge(criterion).fit(X, y - A @ np.linalg.lstsq(A, y, rcond=None)[0])
    np.testing.assert_allclose(quiet.predict(X), y.mean(), rtol=1e-6)
    for target in (X @ [1.0, 2.0, 3.0], np.full(60, 0.1), np.zeros(60)):
        model = Ridge(criterion).fit(X, target)
        np.testing.assert_allclose(model.predict(X), target, rtol=1e-5)
        assert model.certify(X, target).holds
    for rows in (1, 2, 3):
        assert Ridge(criterion).fit(X[:rows], y[:rows]).certify(X[:rows], y[:rows]).holds
    assert Ridge(criterion).fit(np.ones((60, 3)), y).alpha_ == 1


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_a_penalty_is_chosen_from_stored_blocks_as_from_memory(criterion):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 5)) + 100
    w = rng.normal(size=5)
    for noise in (1.0, 1e-7):  # the second is too small for sums of squares: the rows are factored
        y = X @ w + noise * rng.normal(size=300)
        whole = Ridge(criterion).fit(X, y)
        with lemmata.config(block_rows=32):
            blocks = Ridge(criterion).fit(X, y)
            assert blocks.certify(X, y).holds
        assert blocks.alpha_ == pytest.approx(whole.alpha_, rel=1e-6)  # where the noise is 1e-7, it has no more digits


@pytest.mark.parametrize("criterion", ["gcv", "evidence"])
def test_wide_sparse_tables_need_a_number(criterion):
    X = csr_array(np.eye(20, 3000))
    with pytest.raises(ValueError, match=f'alpha="{criterion}" needs all singular values'):
        Ridge(criterion).fit(X, np.arange(20.0))


def test_refusals():
    with pytest.raises(ValueError, match="alpha"):
        Ridge(-1.0).fit(X4, Y4)
    with pytest.raises(ValueError, match="one for each of the 1 targets"):
        Ridge([1.0, 2.0]).fit(X4, Y4)
    with pytest.raises(ValueError, match="alpha"):
        Ridge("loo").fit(X4, Y4)


def test_the_certificate_refuses_another_penalty():
    model = Ridge(1.0).fit(X4, Y4)
    model.alpha_ = 1.01
    assert not model.certify(X4, Y4).holds
