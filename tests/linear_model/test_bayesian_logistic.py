"""Bayesian logistic regression against catalogue numbers, quadrature of the true posterior, dense algebra and SciPy."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.optimize import approx_fprime, minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import expit

from helpers import Watcher
from lemmata.core.blocks import Blocks
from lemmata.linear_model import BayesianLogisticRegression, LogisticRegression
from lemmata.linear_model.laplace import averaged, evidence_at, evidence_slope, laplace, moderated, refitted
from lemmata.linear_model.logistic_loss import objective

X3, Y3 = np.array([[1.0], [2.0], [-1.0]]), np.array([1, 1, -1])


def draw(seed, n=60, d=3, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d)
    y = (X @ rng.normal(size=d) + 0.3 + rng.logistic(size=n) > 0).astype(int)
    return X + shift, y


def log_joint(w, x=X3[:, 0], y=Y3, precision=1.0):
    """Log likelihood and log prior, without the constant ½ log(λ/2π) of the prior."""
    return np.log(expit(y * x * w)).sum() - precision * w * w / 2


@pytest.mark.item("CLS-15")
def test_the_mode_of_the_small_example():
    half, whole = (BayesianLogisticRegression(p, fit_intercept=False).fit(X3, Y3) for p in (1.0, 2.0))
    # the prior N(0, 1/λ) makes the penalty ½λw²; λw² is that of twice the precision
    np.testing.assert_allclose([half.coef_[0, 0], whole.coef_[0, 0]], [0.879967, 0.591062], atol=5e-7)
    w = half.coef_[0, 0]
    assert ((1 - expit(Y3 * X3[:, 0] * w)) * Y3 * X3[:, 0]).sum() - w == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(LogisticRegression(1.0, fit_intercept=False).fit(X3, Y3).coef_, half.coef_, rtol=1e-7)
    assert half.certify(X3, Y3).holds


@pytest.mark.item("CLS-16")
def test_the_laplace_approximation_of_the_small_example():
    model = BayesianLogisticRegression(fit_intercept=False).fit(X3, Y3)
    assert model.covariance_[0, 0] == pytest.approx(0.522070, abs=5e-7)
    h = 1e-4
    w = model.coef_[0, 0]
    second = (log_joint(w + h) - 2 * log_joint(w) + log_joint(w - h)) / h**2
    assert 1 / model.covariance_[0, 0] == pytest.approx(-second, rel=1e-6)  # h² and rounding over h²
    # The catalogue's numbers are log ∫ likelihood · exp(−½λw²) dw: the prior's constant √(λ/2π) is missing. With it the
    # evidence is the probability of the labels; it is at most ½, for −w makes the opposite labels as probable as w makes these.
    constant = np.log(2 * np.pi) / 2
    assert model.log_evidence_ + constant == pytest.approx(-0.645940, abs=5e-7)
    total = quad(lambda w: np.exp(log_joint(w)), -20, 20, epsabs=1e-13)[0]
    assert np.log(total) == pytest.approx(-0.635190, abs=5e-7)
    assert np.log(total) - constant < np.log(0.5)
    assert model.log_evidence_ == pytest.approx(np.log(total) - constant, abs=0.02)  # the approximation's own error
    mean = quad(lambda w: w * np.exp(log_joint(w)), -20, 20, epsabs=1e-13)[0] / total
    variance = quad(lambda w: (w - mean) ** 2 * np.exp(log_joint(w)), -20, 20, epsabs=1e-13)[0] / total
    np.testing.assert_allclose([mean, variance], [0.977516, 0.549908], atol=5e-7)
    assert model.certify(X3, Y3).holds


@pytest.mark.item("CLS-16")
@pytest.mark.parametrize("intercept", [False, True])
def test_two_parameters_against_quadrature(intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1 if intercept else 2))
    y = (X[:, 0] + rng.logistic(size=40) > 0).astype(int)
    A = np.column_stack([X, np.ones(40)]) if intercept else X
    model = BayesianLogisticRegression(0.5, fit_intercept=intercept).fit(X, y)
    mode = np.append(model.coef_, model.intercept_) if intercept else model.coef_[0]
    ridge = np.array([0.5, 0.0 if intercept else 0.5])

    def density(b, a):
        z = A @ [a, b]
        return np.exp(y @ z - np.logaddexp(0, z).sum() - ridge @ [a * a, b * b] / 2)

    deviation = np.sqrt(np.diag(model.covariance_))
    low, high = mode - 9 * deviation, mode + 9 * deviation
    total = dblquad(density, low[0], high[0], low[1], high[1], epsabs=1e-14)[0]
    # the flat prior of the intercept has density one; each coefficient's has √(λ/2π)
    exact = np.log(total) + (1 if intercept else 2) * np.log(0.5 / (2 * np.pi)) / 2
    assert model.log_evidence_ == pytest.approx(exact, abs=0.1)  # an error of order 1/n of the approximation
    second = dblquad(lambda b, a: (a - mode[0]) ** 2 * density(b, a), low[0], high[0], low[1], high[1], epsabs=1e-14)[0] / total
    assert model.covariance_[0, 0] == pytest.approx(second, rel=0.3)


@pytest.mark.parametrize("shape", [(60, 3), (12, 30)])
@pytest.mark.parametrize("intercept", [False, True])
def test_covariance_is_the_inverse_hessian(shape, intercept):
    X, y = draw(1, *shape)
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = BayesianLogisticRegression(0.7, fit_intercept=intercept).fit(X, y, weight)
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    p = expit(model.decision_function(X))
    H = (A.T * (weight * p * (1 - p))) @ A + 0.7 * np.diag(np.arange(A.shape[1]) < X.shape[1])
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(H), rtol=1e-10, atol=1e-10 * np.abs(np.linalg.inv(H)).max())
    mean, variance = model.score_distribution(X)
    np.testing.assert_allclose(mean, model.decision_function(X), rtol=1e-12)
    np.testing.assert_allclose(variance, np.einsum("ij,jk,ik->i", A, np.linalg.inv(H), A), rtol=1e-10)
    log_det = np.linalg.slogdet(H)[1]
    loss = weight @ np.logaddexp(0, np.where(y == 1, -1, 1) * mean) + 0.35 * (model.coef_**2).sum()
    d = X.shape[1]
    evidence = -loss + d / 2 * np.log(0.7) - log_det / 2 + intercept * np.log(2 * np.pi) / 2
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-11)
    assert model.certify(X, y, weight).holds


@pytest.mark.parametrize("shape", [(60, 3), (12, 30)])
def test_a_million_off_center(shape):
    X, y = draw(2, *shape)
    X = np.round(X * 2**20) / 2**20  # so that the shift loses no digit
    near, far = BayesianLogisticRegression().fit(X, y), BayesianLogisticRegression().fit(X + 1e6, y)
    (mean, variance), (far_mean, far_variance) = near.score_distribution(X), far.score_distribution(X + 1e6)
    np.testing.assert_allclose(far_variance, variance, rtol=1e-9)
    np.testing.assert_allclose(far_mean, mean, rtol=1e-7, atol=1e-8)  # w·x + b is a difference of numbers of size 1e6
    d = X.shape[1]
    np.testing.assert_allclose(far.covariance_[:d, :d], near.covariance_[:d, :d], rtol=1e-9, atol=1e-10)
    assert far.log_evidence_ == pytest.approx(near.log_evidence_, rel=1e-10)
    assert far.certify(X + 1e6, y).holds


def test_draws_have_the_stated_distribution():
    X, y = draw(3, shift=5.0)
    model = BayesianLogisticRegression().fit(X, y)
    draws = model.sample(40_000, random_state=0)
    mean = np.append(model.coef_, model.intercept_)
    deviation = np.sqrt(np.diag(model.covariance_))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * deviation / np.sqrt(40_000)).all()
    scale = np.outer(deviation, deviation)
    np.testing.assert_allclose(np.cov(draws.T) / scale, model.covariance_ / scale, atol=5 * np.sqrt(2 / 40_000))
    _, variance = model.score_distribution(X)
    scores = draws[:, :3] @ X.T + draws[:, 3:]
    np.testing.assert_allclose(scores.var(axis=0), variance, rtol=5 * np.sqrt(2 / 40_000))
    assert model.sample(2, random_state=1).tobytes() == model.sample(2, random_state=1).tobytes()
    assert BayesianLogisticRegression(fit_intercept=False).fit(X, y).sample().shape == (1, 3)


def test_averages_of_the_sigmoid():
    means, variances = (
        a.ravel() for a in np.meshgrid([-30.0, -3.0, -0.1, 0.0, 1.0, 8.0, 50.0], [0.0, 0.01, 0.9, 1.0, 1.1, 9.0, 400.0, 1e6])
    )
    found = averaged(means, variances)
    for m, v, p in zip(means, variances, found, strict=True):
        density = lambda e, m=m, v=v: expit(m + np.sqrt(v) * e) * np.exp(-e * e / 2) / np.sqrt(2 * np.pi)  # noqa: E731
        steep = [(t - m) / np.sqrt(v) for t in (-40, 0, 40) if abs(t - m) < 9 * np.sqrt(v)] or None  # where σ turns
        assert p == pytest.approx(quad(density, -9, 9, points=steep, epsabs=1e-14, limit=500)[0], abs=1e-12)
    np.testing.assert_allclose(found + averaged(-means, variances), 1.0, rtol=1e-14)
    assert np.abs(moderated(means, variances) - found).max() < 0.02


@pytest.mark.parametrize("predictive", ["probit", "quadrature"])
def test_probabilities_are_averaged_towards_one_half(predictive):
    X, y = draw(4, n=25)
    model = BayesianLogisticRegression(predictive=predictive).fit(X, y)
    p, plain = model.predict_proba(X)[:, 1], expit(model.decision_function(X))
    assert (np.abs(p - 0.5) < np.abs(plain - 0.5)).all()
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    draws = model.sample(20_000, random_state=0)
    simulated = expit(draws[:, :3] @ X.T + draws[:, 3:]).mean(axis=0)
    np.testing.assert_allclose(p, simulated, atol=0.02 if predictive == "probit" else 5 * 0.5 / np.sqrt(20_000))
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("intercept", [False, True])
def test_the_slope_of_the_evidence(intercept):
    X, y = draw(5, shift=1.0)
    problem = objective(Blocks.of(X, y, None, block_rows=16), 1, 1.0, intercept)
    zero = np.zeros(problem.n_parameters)
    for rho in (-3.0, 0.0, 2.0):
        state, _ = evidence_at(problem, rho, zero, ())
        numerical = approx_fprime([rho], lambda r: evidence_at(problem, r[0], zero, ())[1], 1e-6)[0]
        assert state[1] == pytest.approx(numerical, rel=1e-4, abs=1e-5)  # forward difference


def naive_evidence(precision, X, y):
    """The Laplace evidence written out with dense algebra, the mode by SciPy."""
    A = np.column_stack([X, np.ones(len(X))])
    ridge = precision * (np.arange(A.shape[1]) < X.shape[1])
    loss = lambda v: np.logaddexp(0, A @ v).sum() - y @ (A @ v) + ridge @ v**2 / 2  # noqa: E731
    slope = lambda v: A.T @ (expit(A @ v) - y) + ridge * v  # noqa: E731
    mode = minimize(loss, np.zeros(A.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-10}).x
    p = expit(A @ mode)
    H = (A.T * (p * (1 - p))) @ A + np.diag(ridge)
    return -loss(mode) + X.shape[1] / 2 * np.log(precision) - np.linalg.slogdet(H)[1] / 2 + np.log(2 * np.pi) / 2


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_chooses_the_precision(seed):
    X, y = draw(20 + seed, n=200)
    model = BayesianLogisticRegression("evidence").fit(X, y)
    best = minimize_scalar(lambda r: -naive_evidence(np.exp(r), X, y), bracket=(-2, 1))
    assert model.log_evidence_ == pytest.approx(-best.fun, rel=1e-8)
    assert np.log(model.prior_precision_) == pytest.approx(best.x, abs=1e-3)  # a flat top, found from values alone
    certificate = model.certify(X, y)
    assert certificate.holds
    assert certificate.kind == "local"
    model.prior_precision_ *= 1.01
    assert not model.certify(X, y)["prior precision"].holds


def test_the_evidence_does_not_depend_on_units():
    X, y = draw(6)
    model = BayesianLogisticRegression("evidence").fit(X, y)
    for scale in (1e-60, 1e60):
        moved = BayesianLogisticRegression("evidence").fit(X * scale, y)
        assert moved.prior_precision_ / scale**2 == pytest.approx(model.prior_precision_, rel=1e-6)
        assert moved.certify(X * scale, y).holds


def test_an_evidence_without_a_largest_value():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 3))
    noise = BayesianLogisticRegression("evidence").fit(X, np.arange(60) % 2)
    assert noise.prior_precision_ > 1e6  # there is nothing to learn, and the prior says so
    assert np.abs(noise.coef_).max() < 1e-5
    assert noise.certify(X, np.arange(60) % 2).holds
    with pytest.raises(ValueError, match="The evidence rises without end as the prior widens"):
        BayesianLogisticRegression("evidence").fit(X, (X[:, 0] > 0).astype(int))


def test_a_search_that_was_cut_short_is_taken_up_again(tmp_path):
    X, y = draw(8)
    whole = BayesianLogisticRegression("evidence").fit(X, y)
    path = tmp_path / "search"

    def crash(iteration):
        if iteration == 2:
            raise MemoryError

    with pytest.raises(MemoryError):
        BayesianLogisticRegression("evidence", checkpoint=path).set_callbacks(Watcher(crash)).fit(X, y)
    resumed = BayesianLogisticRegression("evidence", checkpoint=path).fit(X, y)
    assert resumed.n_iter_ == whole.n_iter_
    for name in ("coef_", "root_", "prior_precision_", "log_evidence_"):
        assert np.asarray(getattr(resumed, name)).tobytes() == np.asarray(getattr(whole, name)).tobytes()


def test_normality_is_the_effective_share_of_draws():
    problem = objective(Blocks.of(X3, (Y3 > 0).astype(int), None), 1, 1.0, intercept=False)
    theta = refitted(problem, np.zeros(1))
    w, deviation = problem.parameters(theta)[0][0, 0], laplace(problem, theta).root[0, 0]
    approximate = lambda t: np.exp(-(((t - w) / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation  # noqa: E731
    first = quad(lambda t: np.exp(log_joint(t)), -6, 8)[0]
    second = quad(lambda t: np.exp(2 * log_joint(t)) / approximate(t), -6, 8)[0]
    model = BayesianLogisticRegression(fit_intercept=False).fit(X3, Y3)
    lost = model.certify(X3, Y3)["normality"]
    assert lost.value == pytest.approx(1 - first**2 / second, abs=0.05)  # 200 draws
    assert lost.kind == "evidence"
    X, y = draw(9, n=20_000)
    near = BayesianLogisticRegression().fit(X, y).certify(X, y)["normality"].value
    assert near < 0.01  # Bernstein and von Mises
    assert BayesianLogisticRegression().fit(X + 9, y).certify(X + 9, y)["normality"].value == pytest.approx(near, rel=1e-3)


def test_sparse_tables_are_dense_tables():
    X, y = draw(10)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    sparse, dense = BayesianLogisticRegression().fit(csr_array(X), y), BayesianLogisticRegression().fit(X, y)
    np.testing.assert_allclose(sparse.covariance_, dense.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sparse.score_distribution(csr_array(X))[1], dense.score_distribution(X)[1], rtol=1e-9)
    assert sparse.log_evidence_ == pytest.approx(dense.log_evidence_, rel=1e-12)
    assert sparse.certify(csr_array(X), y).holds


def test_the_evidence_slope_needs_the_turning_of_the_curvature():
    X, y = draw(11, n=30)
    problem = objective(Blocks.of(X, y, None), 1, 1.0, intercept=True)
    theta = refitted(problem, np.zeros(4))
    found, w = laplace(problem, theta), problem.parameters(theta)[0][:, 0]
    mackay = (3 - w @ w - (found.root**2).sum()) / 2  # the fixed point that takes the curvature for constant
    assert abs(evidence_slope(problem, theta, found) - mackay) > 0.01
