"""Bayesian linear regression against exact rational arithmetic, SciPy's normal densities, simulation and scikit-learn."""

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from scipy.stats import binom, multivariate_normal, norm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge

import lemmata
from lemmata.core.blocks import Blocks
from lemmata.core.certificate import free
from lemmata.linear_model import BayesianLinearRegression, Ridge
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model.posterior import excess
from lemmata.linear_model.spectrum import Evidence, Spectrum

X4, Y4 = np.arange(4.0)[:, None], np.array([1.0, 3.0, 2.0, 5.0])
ONES4 = np.column_stack([np.ones(4), X4])  # the catalogue's problem: a column of ones that the prior holds like any other


def catalogue():
    return BayesianLinearRegression(1.0, 1.0, fit_intercept=False).fit(ONES4, Y4)


def draw(n=40, d=4, seed=0, offset=3.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + offset
    return X, X @ rng.normal(size=d) + 2.0 + noise * rng.normal(size=n)


def relative(a, b):
    """Largest difference of covariances, each in units of the two standard deviations that belong to it."""
    std = np.sqrt(np.diag(b))
    return np.abs((a - b) / std / std[:, None]).max()


def exact_inverse(M):
    """Invert a matrix of fractions by Gauss and Jordan: no rounding at all."""
    n = len(M)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(M)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def exact_posterior(X, y, precision, noise, at):
    """Mean and covariance of (w, b), and mean and variance of y at some rows, in rational arithmetic."""
    fractions = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in X]
    d, noise, target = len(fractions[0]), Fraction(noise), [Fraction(float(v)) for v in y]
    P = [[sum(row[i] * row[j] for row in fractions) / noise for j in range(d)] for i in range(d)]
    for i in range(d - 1):
        P[i][i] += Fraction(precision)  # not on the intercept
    V = exact_inverse(P)
    right = [sum(row[i] * t for row, t in zip(fractions, target, strict=True)) / noise for i in range(d)]
    mean = [sum(V[i][j] * right[j] for j in range(d)) for i in range(d)]
    rows = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in at]
    means = [sum(a * b for a, b in zip(row, mean, strict=True)) for row in rows]
    variances = [noise + sum(row[i] * V[i][j] * row[j] for i in range(d) for j in range(d)) for row in rows]
    return tuple(np.array(a, dtype=float) for a in (mean, V, means, variances))


def dense_log_evidence(X, y, precision, noise):
    return multivariate_normal.logpdf(y, np.zeros(len(y)), noise * np.eye(len(y)) + X @ X.T / precision)


def flat_log_evidence(X, y, precision, noise):
    """Integrate b out of N(y | b, σ²I + XXᵀ/λ) by the closed form of a normal integral over n × n matrices."""
    inverse = np.linalg.inv(noise * np.eye(len(y)) + X @ X.T / precision)
    best, information = (inverse @ y).sum() / inverse.sum(), inverse.sum()
    return dense_log_evidence(X, y - best, precision, noise) + 0.5 * np.log(2 * np.pi / information)


@pytest.mark.item("LIN-11")
def test_the_mean_is_the_ridge_solution_and_the_mode_of_the_posterior():
    np.testing.assert_allclose(catalogue().coef_, [0.846154, 1.128205], atol=5e-7)
    X, y = draw()
    model = BayesianLinearRegression(0.3, 2.5, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, Ridge(0.3 * 2.5, fit_intercept=False).fit(X, y).coef_, rtol=1e-12)

    def log_posterior(w):
        return norm.logpdf(y, X @ w, np.sqrt(2.5)).sum() + norm.logpdf(w, 0, np.sqrt(1 / 0.3)).sum()

    gradient = approx_fprime(model.coef_, log_posterior, 1e-6)
    reference = approx_fprime(model.coef_ * 1.01, log_posterior, 1e-6)
    assert np.abs(gradient).max() < 1e-3 * np.abs(reference).max()  # forward differences are good to 1e-6 of the curvature
    with_intercept = BayesianLinearRegression(0.3, 2.5).fit(X, y)
    peer = Ridge(0.3 * 2.5).fit(X, y)
    np.testing.assert_allclose(with_intercept.mean_, np.append(peer.coef_, peer.intercept_), rtol=1e-12)


@pytest.mark.item("LIN-12")
def test_posterior_of_the_catalogue():
    model = catalogue()
    np.testing.assert_allclose(model.mean_, [0.846154, 1.128205], atol=5e-7)
    np.testing.assert_allclose(model.covariance_, [[0.384615, -0.153846], [-0.153846, 0.128205]], atol=5e-7)
    assert model.certify(ONES4, Y4).holds


@pytest.mark.item("LIN-12", "LIN-15")
@pytest.mark.parametrize("shape", [(12, 3), (5, 9)])
def test_likelihood_times_prior_over_posterior_is_the_evidence_everywhere(shape):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    model = BayesianLinearRegression(0.7, 0.4, fit_intercept=False).fit(X, y)
    for w in rng.normal(size=(5, shape[1])):
        prior, posterior = (
            norm.logpdf(w, 0, np.sqrt(1 / 0.7)).sum(),
            multivariate_normal.logpdf(w, model.mean_, model.covariance_),
        )
        ratio = norm.logpdf(y, X @ w, np.sqrt(0.4)).sum() + prior - posterior
        assert ratio == pytest.approx(model.log_evidence_, rel=1e-10)
    assert model.log_evidence_ == pytest.approx(dense_log_evidence(X, y, 0.7, 0.4), rel=1e-10)


@pytest.mark.item("LIN-12")
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("shape", [(12, 3), (4, 6)])
def test_posterior_and_predictions_agree_with_exact_arithmetic(shape, offset):
    X, y = draw(*shape, seed=2, offset=offset)
    at = np.vstack([X[:3], X[:3] + 5.0])
    model = BayesianLinearRegression(0.5, 0.25).fit(X, y)
    mean, covariance, means, variances = exact_posterior(X, y, 0.5, 0.25, at)
    np.testing.assert_allclose(model.coef_, mean[:-1], rtol=1e-10, atol=1e-10 * np.abs(mean[:-1]).max())
    np.testing.assert_allclose(model.intercept_, mean[-1], rtol=1e-10, atol=1e-10 * np.abs(y).max())
    np.testing.assert_allclose(model.covariance_, covariance, rtol=1e-9, atol=1e-10 * np.abs(covariance).max())
    np.testing.assert_allclose(model.covariance_[:-1, :-1], covariance[:-1, :-1], rtol=1e-10, atol=1e-11)
    predicted, std = model.predict(at, return_std=True)
    np.testing.assert_allclose(predicted, means, rtol=1e-10)
    np.testing.assert_allclose(std**2, variances, rtol=1e-10)
    assert model.certify(X, y).holds


@pytest.mark.parametrize("sizes", [[1e7, 1.0, 1e-3], [1e20, 1.0, 1e-20], [1e-17, 1e-17, 1e-17]])
def test_columns_of_very_different_sizes_do_not_cost_digits(sizes):
    X, y = draw(12, 3, seed=2)
    X = X * sizes
    model = BayesianLinearRegression(0.5, 0.25).fit(X, y)
    mean, covariance, means, variances = exact_posterior(X, y, 0.5, 0.25, X[:4])
    np.testing.assert_allclose(model.mean_, mean, rtol=1e-10)
    assert relative(model.covariance_, covariance) < 1e-11
    predicted, std = model.predict(X[:4], return_std=True)
    np.testing.assert_allclose(predicted, means, rtol=1e-11)
    np.testing.assert_allclose(std**2, variances, rtol=1e-11)
    assert model.certify(X, y).holds


@pytest.mark.parametrize("seed", range(5))
def test_correlated_columns_of_very_different_sizes_are_certified(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 5)) @ (np.eye(5) + rng.normal(size=(5, 5)))
    y = X.sum(axis=1) + rng.normal(size=20)
    X = X * 10.0 ** rng.uniform(-30, 30, size=5)
    assert BayesianLinearRegression(1.0, 1.0).fit(X, y).certify(X, y).holds
    assert Ridge(0.0).fit(X, y).certify(X, y).holds


@pytest.mark.item("LIN-13")
def test_predictive_distribution_of_the_catalogue():
    model = catalogue()
    mean, std = model.predict([[1.0, 4.0]], return_std=True)
    np.testing.assert_allclose([mean[0], std[0] ** 2], [5.358974, 2.205128], atol=5e-7)
    law = model.predict_dist([[1.0, 4.0]])
    np.testing.assert_allclose([law.mean()[0], law.var()[0]], [5.358974, 2.205128], atol=5e-7)
    low, high = model.predict_interval([[1.0, 4.0]], level=0.8)[0]
    np.testing.assert_allclose(law.cdf(np.array([low, high])), [0.1, 0.9], rtol=1e-12)
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got 90"):
        model.predict_interval([[1.0, 4.0]], level=90)


@pytest.mark.item("LIN-13")
def test_predictive_distribution_by_simulation():
    X, y = draw()
    model = BayesianLinearRegression(0.5, 0.8).fit(X, y)
    draws, at = model.sample(200_000, random_state=0), np.array([4.0, -2.0, 3.0, 0.0])
    simulated = draws @ np.append(at, 1.0) + np.sqrt(0.8) * np.random.default_rng(1).normal(size=len(draws))
    mean, std = model.predict([at], return_std=True)
    # 5 standard errors of the mean and of the variance of so many normal draws
    assert abs(simulated.mean() - mean[0]) < 5 * std[0] / np.sqrt(len(draws))
    assert simulated.var() == pytest.approx(std[0] ** 2, rel=5 * np.sqrt(2 / len(draws)))
    scaled = (np.cov(draws.T) - model.covariance_) / np.sqrt(np.outer(*2 * [np.diag(model.covariance_)]))
    assert np.abs(scaled).max() < 5 * np.sqrt(2 / len(draws))
    assert np.array_equal(model.sample(3, random_state=5), model.sample(3, random_state=5))


@pytest.mark.item("LIN-13")
def test_intervals_cover_as_often_as_they_say():
    rng, level, repeats, hits = np.random.default_rng(3), 0.8, 1000, 0
    for _ in range(repeats):  # truth drawn from the prior, noise as assumed: the coverage is exact
        w, X = rng.normal(size=2) / np.sqrt(2.0), rng.normal(size=(6, 2)) + 5.0
        y = X @ w + 0.5 * rng.normal(size=6)
        low, high = BayesianLinearRegression(2.0, 0.25, fit_intercept=False).fit(X[:5], y[:5]).predict_interval(X[5:], level)[0]
        hits += low <= y[5] <= high
    assert 1e-6 < binom.cdf(hits, repeats, level) < 1 - 1e-6  # fails for two seeds in a million


def test_intervals_with_an_intercept_cover_whatever_the_intercept():
    rng, level, repeats, hits = np.random.default_rng(4), 0.9, 1000, 0
    for i in range(repeats):
        w, X = rng.normal(size=2), rng.normal(size=(7, 2)) - 3.0
        y = X @ w + 1000.0 * (i % 3) + rng.normal(size=7)
        low, high = BayesianLinearRegression(1.0, 1.0).fit(X[:6], y[:6]).predict_interval(X[6:], level)[0]
        hits += low <= y[6] <= high
    assert 1e-6 < binom.cdf(hits, repeats, level) < 1 - 1e-6


@pytest.mark.item("LIN-14")
def test_measuring_lowers_the_entropy_by_what_was_foretold():
    model = catalogue()
    assert model.information([[1.0, 4.0]])[0] == pytest.approx(0.395393, abs=5e-7)
    before = multivariate_normal(model.mean_, model.covariance_).entropy()
    assert before == pytest.approx(1.006096, abs=5e-7)
    model.update([[1.0, 4.0]], [6.0])
    after = multivariate_normal(model.mean_, model.covariance_).entropy()
    assert before - after == pytest.approx(0.395393, abs=1e-6)
    X, y = draw(n=30)
    model = BayesianLinearRegression(0.5, 0.8).fit(X[:10], y[:10])
    for x, t in zip(X[10:], y[10:], strict=True):
        drop, before = model.information([x])[0], multivariate_normal(model.mean_, model.covariance_).entropy()
        after = multivariate_normal(model.update([x], [t]).mean_, model.covariance_).entropy()
        assert drop > 0
        assert before - after == pytest.approx(drop, rel=1e-8)  # a difference of two logarithms of size 10


@pytest.mark.item("LIN-14")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("d", [4, 25])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_one_row_at_a_time_is_all_at_once(intercept, d, offset):
    X, y = draw(n=20, d=d, offset=offset)
    weight = np.random.default_rng(5).integers(1, 4, 20).astype(float)
    batch = BayesianLinearRegression(0.5, 0.8, fit_intercept=intercept).fit(X, y, weight)
    model = BayesianLinearRegression(0.5, 0.8, fit_intercept=intercept).fit(X[:3], y[:3], weight[:3])
    for i in range(3, 19):
        model.update(X[i : i + 1], y[i : i + 1], weight[i : i + 1])
    assert model.update(X[19:], y[19:], weight[19:]) is model
    rtol = 1e-9 if offset == 0 or intercept else 1e-4  # without an intercept, 1e6 off center is a condition number of 1e12
    np.testing.assert_allclose(model.coef_, batch.coef_, rtol=rtol, atol=rtol * np.abs(batch.coef_).max())
    np.testing.assert_allclose(model.predict(X), batch.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], batch.predict(X, return_std=True)[1], rtol=1e-9)
    np.testing.assert_allclose(model.root_, batch.root_, rtol=rtol, atol=rtol * np.abs(batch.root_).max())
    np.testing.assert_allclose(model.center_, batch.center_, rtol=1e-12, atol=1e-12)
    assert model.weight_ == weight.sum()
    assert model.log_evidence_ == pytest.approx(batch.log_evidence_, rel=1e-6 if offset and not intercept else 1e-9)
    assert model.certify(X, y, weight).holds
    assert not model.certify(X[:19], y[:19], weight[:19]).holds


def test_a_model_of_evidence_may_be_updated_and_certified():
    X, y = draw(n=60)
    model = BayesianLinearRegression().fit(X[:40], y[:40])
    kept = model.prior_precision_, model.noise_variance_
    model.update(X[40:], y[40:])
    assert (model.prior_precision_, model.noise_variance_) == kept
    certificate = model.certify(X, y)
    assert certificate.holds
    assert "evidence" not in [check.name for check in certificate]
    assert "evidence" in [check.name for check in model.fit(X, y).certify(X, y)]
    with pytest.raises(NotFittedError):
        BayesianLinearRegression().update(X, y)
    with pytest.raises(ValueError, match="features"):
        model.update(X[:, :2], y)


@pytest.mark.item("LIN-14")
@pytest.mark.parametrize("intercept", [False, True])
def test_the_most_informative_rows_are_those_of_greedy_refitting(intercept):
    X, y = draw(n=12)
    pool = np.random.default_rng(6).normal(size=(40, 4)) * 2 + 3
    model = BayesianLinearRegression(0.5, 0.8, fit_intercept=intercept).fit(X, y)
    chosen, twin = model.most_informative(pool, n=6), deepcopy(model)
    for i, row in enumerate(chosen):
        # not the noise, which is the same everywhere, but the variance of the prediction is what counts
        std, drop = twin.predict(pool, return_std=True)[1], twin.information(pool)
        rest = np.setdiff1d(np.arange(40), chosen[:i])
        assert row == rest[np.argmax(std[rest])] == rest[np.argmax(drop[rest])]
        np.testing.assert_allclose(drop, 0.5 * np.log(std**2 / 0.8), rtol=1e-10)
        twin.update(pool[row : row + 1], [123.0])  # what is measured does not matter
    with pytest.raises(ValueError, match="n must be a whole number from 1 to the 40 rows of the pool, got 41"):
        model.most_informative(pool, n=41)
    assert sorted(model.most_informative(np.repeat(pool[:1], 3, axis=0), n=3)) == [0, 1, 2]


@pytest.mark.item("LIN-15")
def test_evidence_of_the_catalogue():
    assert catalogue().log_evidence_ == pytest.approx(-7.943432, abs=5e-7)
    assert catalogue().log_evidence_ == pytest.approx(dense_log_evidence(ONES4, Y4, 1.0, 1.0), rel=1e-12)


@pytest.mark.item("LIN-15")
@pytest.mark.parametrize("shape", [(30, 4), (8, 15)])
def test_evidence_chooses_the_prior_for_a_known_noise(shape):
    X, y = draw(*shape, seed=7, offset=0.0)
    model = BayesianLinearRegression("evidence", 1.3, fit_intercept=False).fit(X, y)
    found, size = model.prior_precision_, shape[1]
    assert found * model.coef_ @ model.coef_ == pytest.approx(size - found * np.trace(model.covariance_), rel=1e-9)
    scan = [dense_log_evidence(X, y, np.exp(t), 1.3) for t in np.linspace(-12, 12, 2001)]
    assert model.log_evidence_ >= max(scan)
    assert model.log_evidence_ == pytest.approx(dense_log_evidence(X, y, found, 1.3), rel=1e-10)
    assert model.certify(X, y).holds
    assert model.certify(X, y).kind == "proof"


@pytest.mark.parametrize("intercept", [False, True])
def test_evidence_chooses_prior_and_noise(intercept):
    X, y = draw(seed=8)
    model = BayesianLinearRegression(fit_intercept=intercept).fit(X, y)
    log_evidence = flat_log_evidence if intercept else dense_log_evidence
    best = minimize(lambda t: -log_evidence(X, y, *np.exp(t)), [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8})
    found = np.log([model.prior_precision_, model.noise_variance_])
    np.testing.assert_allclose(found, best.x, atol=1e-5)  # a minimum found by values alone: √ε of the argument
    assert model.log_evidence_ >= -best.fun - 1e-9
    # MacKay's fixed point: γ directions are determined by the data, N − γ by the noise
    gamma = 4 - model.prior_precision_ * np.trace(model.root_ @ model.root_.T)
    assert model.prior_precision_ == pytest.approx(gamma / (model.coef_ @ model.coef_), rel=1e-9)
    residual = y - model.predict(X)
    assert model.noise_variance_ == pytest.approx(residual @ residual / (len(y) - intercept - gamma), rel=1e-9)


def test_evidence_chooses_the_noise_for_a_known_prior():
    X, y = draw(seed=9)
    model = BayesianLinearRegression(0.4).fit(X, y)
    scan = [flat_log_evidence(X, y, 0.4, np.exp(t)) for t in np.linspace(-6, 6, 1001)]
    assert model.log_evidence_ >= max(scan)
    assert model.log_evidence_ == pytest.approx(max(scan), abs=1e-2)  # the grid is that fine
    assert model.certify(X, y).holds


@pytest.mark.parametrize("shape", [(15, 3), (4, 6)])
def test_the_intercept_is_integrated_out_under_a_flat_density(shape):
    X, y = draw(*shape, seed=10)
    model = BayesianLinearRegression(0.6, 0.9).fit(X, y)
    assert model.log_evidence_ == pytest.approx(flat_log_evidence(X, y, 0.6, 0.9), rel=1e-9)
    peak = dense_log_evidence(X, y - model.intercept_, 0.6, 0.9)
    ratio, _ = quad(
        lambda b: np.exp(dense_log_evidence(X, y - b, 0.6, 0.9) - peak),
        model.intercept_ - 30 * np.sqrt(model.covariance_[-1, -1]),
        model.intercept_ + 30 * np.sqrt(model.covariance_[-1, -1]),
        points=[model.intercept_],
        epsabs=1e-10,
    )
    assert model.log_evidence_ == pytest.approx(peak + np.log(ratio), rel=1e-8)
    # The limit of wide normal priors on b, times their density at zero.
    wide = np.hstack([X, np.full((len(X), 1), 1e4 * np.sqrt(0.6))])
    limit = dense_log_evidence(wide, y, 0.6, 0.9) + np.log(1e4 * np.sqrt(2 * np.pi))
    assert model.log_evidence_ == pytest.approx(limit, abs=1e-5)


def test_agrees_with_scikit_learn_where_it_is_right():
    X, y = draw(seed=11)
    options = {"alpha_1": 0.0, "alpha_2": 0.0, "lambda_1": 0.0, "lambda_2": 0.0, "tol": 1e-13, "max_iter": 10_000}
    peer = BayesianRidge(fit_intercept=False, compute_score=True, **options).fit(X, y)
    ours = BayesianLinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-8)  # 1e-8: what its fixed-point iteration leaves
    np.testing.assert_allclose([ours.prior_precision_, 1 / ours.noise_variance_], [peer.lambda_, peer.alpha_], rtol=1e-7)
    np.testing.assert_allclose(ours.covariance_, peer.sigma_, rtol=1e-7)
    np.testing.assert_allclose(ours.predict(X, return_std=True)[1], peer.predict(X, return_std=True)[1], rtol=1e-7)
    assert ours.log_evidence_ == pytest.approx(peer.scores_[-1], rel=1e-9)


def test_predictions_are_most_certain_at_the_center_of_the_data():
    """scikit-learn#33918: they were most certain at the origin."""
    X, y = draw(offset=1e6)
    model = BayesianLinearRegression().fit(X, y)
    std = model.predict(X.mean(axis=0) + np.outer([0.0, 1.0, 10.0, -1e6], np.ones(4)), return_std=True)[1]
    assert (np.diff(std) > 0).all()
    assert std[0] ** 2 == pytest.approx(model.noise_variance_ * (1 + 1 / len(X)), rel=1e-9)


def test_the_covariance_of_more_columns_than_rows_is_that_of_dense_algebra():
    """scikit-learn#31093: it was wrong there."""
    X, y = draw(n=10, d=30, offset=0.0)
    model = BayesianLinearRegression(2.0, 0.1, fit_intercept=False).fit(X, y)
    dense = np.linalg.inv(2.0 * np.eye(30) + X.T @ X / 0.1)
    np.testing.assert_allclose(model.covariance_, dense, rtol=1e-10, atol=1e-12)
    assert model.certify(X, y).holds


def test_many_homes_one_posterior(tmp_path):
    X, y = draw(n=500)
    X[X < 2.5] = 0.0
    weight = np.random.default_rng(12).integers(1, 3, 500).astype(float)
    model = BayesianLinearRegression().fit(X, y, weight)
    sparse = BayesianLinearRegression().fit(csr_array(X), y, weight)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": y, "w": weight}), tmp_path / "rows.parquet")
    with lemmata.config(block_rows=64):
        stored = BayesianLinearRegression().fit(tmp_path / "rows.parquet", "y", "w")
        for other in (sparse, stored):
            np.testing.assert_allclose(other.covariance_, model.covariance_, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(other.log_evidence_, model.log_evidence_, rtol=1e-12)
        np.testing.assert_allclose(stored.predict(tmp_path / "rows.parquet"), model.predict(X), rtol=1e-10)
        np.testing.assert_array_equal(stored.most_informative(tmp_path / "rows.parquet", 3), model.most_informative(X, 3))
        half = BayesianLinearRegression(model.prior_precision_, model.noise_variance_).fit(X[:250], y[:250], weight[:250])
        half.update(csr_array(X[250:]), y[250:], weight[250:])
        np.testing.assert_allclose(half.covariance_, model.covariance_, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(half.log_evidence_, model.log_evidence_, rtol=1e-10)
    single = model.predict(X.astype(np.float32), return_std=True)
    assert [a.dtype for a in single] == [np.float32, np.float32]
    assert model.predict_interval(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e20, 1e100])
def test_evidence_knows_no_units(scale):
    X, y = draw()
    model, scaled = BayesianLinearRegression().fit(X, y), BayesianLinearRegression().fit(X * scale, y)
    for a, b in zip(scaled.predict(X * scale, return_std=True), model.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert scaled.prior_precision_ == pytest.approx(model.prior_precision_ * scale**2, rel=1e-9)
    assert scaled.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-10)
    given = BayesianLinearRegression(1.0, 1.0).fit(X * scale, y)
    assert given.certify(X * scale, y).holds
    louder = BayesianLinearRegression().fit(X, y * 1e6)
    assert louder.noise_variance_ == pytest.approx(model.noise_variance_ * 1e12, rel=1e-9)
    np.testing.assert_allclose(louder.root_, model.root_ * 1e6, rtol=1e-9)


def test_no_signal_is_the_end_of_the_search():
    X, _ = draw(n=200)
    y = np.random.default_rng(14).normal(size=200) + 5.0
    y -= (X - X.mean(axis=0)) @ np.linalg.lstsq(X - X.mean(axis=0), y, rcond=None)[0]  # nothing at all to find
    model = BayesianLinearRegression().fit(X, y)
    assert np.isfinite(model.prior_precision_)
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-6)
    assert model.noise_variance_ == pytest.approx(y.var(ddof=1), rel=1e-9)
    certificate = model.certify(X, y)
    assert certificate.holds
    assert "search ends" in certificate["penalty slope"].claim
    model.prior_precision_ *= 1.01
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("shape", [(50, 4), (6, 4), (10, 30), (31, 21)])
@pytest.mark.parametrize("settings", [{}, {"prior_precision": 0.5}])
def test_an_exact_fit_has_no_noise_but_rounding(shape, settings):
    X, y = draw(*shape, noise=0.0)
    model = BayesianLinearRegression(**settings).fit(X, y)
    if shape[0] > shape[1]:
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)
        assert 0 < model.noise_variance_ < 1e-20 * y.var()
    std = model.predict(X, return_std=True)[1]
    assert (std > 0).all()
    assert np.isfinite(model.log_evidence_)
    assert model.certify(X, y).holds
    for name in ("prior_precision_", "noise_variance_", "log_evidence_"):
        twin = deepcopy(model)
        setattr(twin, name, getattr(model, name) * 1.01)
        assert not twin.certify(X, y).holds, name


@pytest.mark.parametrize("seed", range(3))
def test_a_noise_below_the_rounding_of_the_targets_may_be_given(seed):
    X, y = draw(31, 21, seed=seed, noise=0.0)
    model = BayesianLinearRegression(0.5, 1e-26 * y.var()).fit(X, y)
    assert model.certify(X, y).holds
    model.log_evidence_ *= 1.01
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("y", [np.full(10, 0.1), np.zeros(10), np.full(10, -3e7)], ids=["0.1", "0", "-3e7"])
@pytest.mark.parametrize("settings", [{}, {"prior_precision": 0.5}, {"noise_variance": 0.5}])
def test_constant_targets(y, settings):
    X, _ = draw(n=10)
    model = BayesianLinearRegression(**settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-12)
    assert model.noise_variance_ > 0
    if "noise_variance" not in settings:
        rounding = (np.finfo(float).eps * y[0]) ** 2  # the targets themselves are rounded that much
        assert model.noise_variance_ >= rounding * (1 - 1e-12)
    assert model.certify(X, y).holds


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"prior_precision": 0.5}, {"noise_variance": 0.5}, {"prior_precision": 1, "noise_variance": 1}]
)
def test_hardly_any_rows(n, intercept, settings):
    X, y = draw(n=n)
    model = BayesianLinearRegression(**settings, fit_intercept=intercept).fit(X, y)
    assert np.isfinite(model.covariance_).all()
    assert model.certify(X, y).holds
    if n == 1 and intercept:
        assert model.noise_variance_ == settings.get("noise_variance", 1.0)
        assert model.prior_precision_ == settings.get("prior_precision", 1.0)


def test_a_column_that_never_varies_keeps_its_prior():
    X, y = draw()
    X[:, 1] = 4.2
    for noise in (0.5, 1e-20):
        model = BayesianLinearRegression(0.25, noise).fit(X, y)
        assert abs(model.coef_[1]) < 1e-15
        np.testing.assert_allclose(model.covariance_[1, :-1], [0.0, 4.0, 0.0, 0.0], rtol=1e-12, atol=1e-12)
        assert model.certify(X, y).holds
    twice = BayesianLinearRegression(0.25, 1e-12).fit(X[:, [0, 0, 2]], y)
    np.testing.assert_allclose(twice.coef_[0], twice.coef_[1], rtol=1e-9)
    difference = np.array([1.0, -1.0, 0.0])
    assert difference @ twice.covariance_[:3, :3] @ difference == pytest.approx(2 / 0.25, rel=1e-9)


@pytest.mark.parametrize(
    "settings", [{"prior_precision": 0.5}, {"noise_variance": 0.7}, {"prior_precision": 1, "noise_variance": 2}]
)
@pytest.mark.parametrize("shape", [(40, 4), (8, 20)])
def test_one_percent_of_anything_is_refused_whatever_was_given(settings, shape):
    X, y = draw(*shape)
    model, rng = BayesianLinearRegression(**settings).fit(X, y), np.random.default_rng(15)
    assert model.certify(X, y).holds
    for name in ("coef_", "intercept_", "root_", "center_", "weight_", "prior_precision_", "noise_variance_", "log_evidence_"):
        twin = deepcopy(model)
        value = np.atleast_1d(getattr(model, name))
        setattr(twin, name, free(value, rng).reshape(np.shape(getattr(model, name)))[()])
        assert not twin.certify(X, y).holds, name


def factored(X, y, intercept=True):
    blocks = Blocks.of(X, y, None)
    return ls.factored(blocks, ls.draw_shift(blocks, intercept), intercept)


def spectrum(X, y, intercept=True):
    return Spectrum(factored(X, y, intercept))


@pytest.mark.parametrize("shape", [(20, 4), (5, 12)])
def test_the_excess_of_any_coefficients_is_exact(shape):
    X, y = draw(*shape, offset=0.0)
    best, rng = Ridge(0.7, fit_intercept=False).fit(X, y).coef_, np.random.default_rng(18)

    def objective(w):
        return ((y - X @ w) ** 2).sum() + 0.7 * w @ w

    across = np.linalg.svd(X)[2][-1]  # with more columns than rows only the penalty sees this direction
    for w in (*rng.normal(size=(3, shape[1])), best + across):
        found = excess(factored(X, y, intercept=False), w[:, None], 0.7)
        np.testing.assert_allclose(found, [objective(w) - objective(best)], rtol=1e-10)


def test_where_the_digits_of_the_data_end_no_variance_is_promised():
    X, y = draw(10, 30, noise=0.0)
    for prior in (0.5, 1e-8):
        certificate = BayesianLinearRegression(prior).fit(X, y).certify(X, y)
        assert certificate.holds
        assert "covariance" not in [check.name for check in certificate]


@pytest.mark.parametrize("given", [{}, {"noise": 0.8}, {"precision": 0.3}], ids=["both", "prior", "noise"])
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_below_the_evidence_of_every_choice_and_close_to_the_best(given, seed):
    rng = np.random.default_rng(seed)
    n, d = [(40, 4), (6, 20), (25, 10), (3, 1), (60, 30), (12, 12)][seed]
    X, y = rng.normal(size=(n, d)) * np.logspace(0, seed, d), rng.normal(size=n)
    y = y * rng.choice([0.1, 10.0]) + X @ rng.normal(size=d)
    evidence = Evidence(spectrum(X, y), **given)
    bound, low, high = evidence.lower_bound(), *evidence.grid()[[0, -1]]
    scan = sum(evidence.parts(np.linspace(low - 20, high + 20, 20_001)))  # beyond the grid as well
    if "precision" in given:
        scan = scan[evidence.noise(np.linspace(low - 20, high + 20, 20_001)) >= evidence.spectrum.floor]
    best = sum(evidence.parts(evidence.place()))
    assert bound <= scan.min() + 1e-9
    assert bound >= scan.min() - 0.05  # promised: 0.04
    assert best <= scan.min() + 1e-6


@pytest.mark.parametrize("strong", [10.0, 14.0])
def test_the_best_of_two_maxima_is_found_and_the_other_is_refused(strong):
    # Strong columns whose coefficients are small ask for a large penalty, weak ones with large coefficients for a small one.
    rng = np.random.default_rng(16)
    U = np.linalg.qr(rng.normal(size=(60, 30)))[0]
    size, share = np.repeat([1e4, 1.0], [10, 20]), np.repeat([strong, 9.0], [10, 20])
    X, y = U * size, U @ (share * rng.choice([-1, 1], 30)) + 0.3 * rng.normal(size=60)
    evidence = Evidence(spectrum(X, y, intercept=False))
    grid = np.linspace(*evidence.grid()[[0, -1]], 4001)
    values = sum(evidence.parts(grid))
    local = 1 + np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:]))
    assert len(local) == 2
    order = local[np.argsort(values[local])]
    assert evidence.place() == pytest.approx(grid[order[0]], abs=0.05)
    model = Ridge("evidence", fit_intercept=False).fit(X, y)
    assert model.certify(X, y).holds
    other = Ridge(float(np.exp(grid[order[1]]) * evidence.spectrum.unit**2), fit_intercept=False).fit(X, y)
    other.alpha = "evidence"
    assert not other.certify(X, y)["evidence"].holds


def draw_awkward(rng):
    """Draw a small table with one or several things wrong with it."""
    n, d = rng.integers(1, 12, size=2)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=d) + rng.choice([0.0, 1e3, 1e6])
    trouble = rng.integers(4)
    if trouble == 0:
        X = X[:, rng.integers(d, size=d)]  # columns twice
    elif trouble == 1:
        X[:, rng.integers(d)] = 4.2
    elif trouble == 2:
        X = X[rng.integers(n, size=n)]  # rows twice
    y = X @ rng.normal(size=d) * 10.0 ** rng.uniform(-4, 4)
    y = y + rng.choice([0.0, 1e-8, 1.0]) * (1 + y.std()) * rng.normal(size=n)
    return X, y + rng.choice([0.0, 1e3])


@pytest.mark.parametrize("seed", range(5))
def test_awkward_tables_are_certified_whatever_is_given(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        X, y = draw_awkward(rng)
        weight = None if rng.random() < 0.5 else rng.integers(1, 4, len(y)).astype(float)
        prior, noise = 10.0 ** rng.uniform(-8, 8, size=2)
        for settings in (
            {},
            {"prior_precision": prior},
            {"noise_variance": noise},
            {"prior_precision": prior, "noise_variance": noise},
        ):
            for intercept in (False, True):
                model = BayesianLinearRegression(**settings, fit_intercept=intercept).fit(X, y, weight)
                certificate = model.certify(X, y, weight)
                assert certificate.holds, f"{X.shape} {settings}: {certificate}"


def test_weights_that_are_no_rows_are_refused():
    X, y = draw(n=10)
    with pytest.raises(ValueError, match="a weight means repetition"):
        BayesianLinearRegression().fit(X, y, np.full(10, 0.05))
    assert BayesianLinearRegression(1.0, 1.0).fit(X, y, np.full(10, 0.05)).certify(X, y, np.full(10, 0.05)).holds
    part = np.random.default_rng(17).random(10)  # fractions are fine as long as more than one row remains
    assert BayesianLinearRegression().fit(X, y, part).certify(X, y, part).holds


def test_refusals():
    X, y = draw()
    for settings in (
        {"prior_precision": 0.0},
        {"prior_precision": "gcv"},
        {"noise_variance": -1.0},
        {"noise_variance": np.inf},
    ):
        with pytest.raises(ValueError, match=next(iter(settings))):
            BayesianLinearRegression(**settings).fit(X, y)
    with pytest.raises(ValueError, match="one number a row"):
        BayesianLinearRegression().fit(lambda: iter([(X, np.column_stack([y, y]))]))
