"""Gaussian process regression against dense algebra, scikit-learn, linear regression, refits, and what theory says of it."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process import kernels as peer_kernels

from contracts.problems import with_attribute
from lemmata.gaussian_process import GaussianProcessRegressor
from lemmata.gaussian_process.factor import cholesky
from lemmata.kernels import RBF, Constant, Linear, Matern, Periodic, Polynomial, White
from lemmata.linear_model import BayesianLinearRegression

KERNELS = {
    "rbf": Constant(1.7) * RBF([0.8, 1.4]),
    "matern": Constant(0.6) * Matern(1.1, nu=2.5) + RBF(2.0),
    "polynomial": Polynomial(2, gamma=0.4, gamma_bounds=(1e-3, 1e3)),
    "periodic": Periodic(1.2, 3.0) * RBF(2.0),
    "white": Constant(1.7) * RBF(0.8) + White(0.05),
}


def table(n=40, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(n)


def given(kernel, noise=0.1, **options):
    return GaussianProcessRegressor(kernel, noise=noise, optimizer=None, center=False, **options)


def dense(kernel, noise, X, y, new):
    """Posterior of f by solves with the whole matrix, as one would write it on a blackboard."""
    K = kernel(X) + noise * np.eye(len(X))
    cross = kernel(X, new)
    joint = kernel(np.vstack([new]))
    return cross.T @ np.linalg.solve(K, y), joint - cross.T @ np.linalg.solve(K, cross)


@pytest.mark.item("KRN-12")
def test_numbers_of_the_catalogue():
    model = given(RBF(gamma=1.0)).fit([[0.0], [1.0]], [1.0, 2.0])
    (mean,), (deviation,) = model.predict([[0.5]], return_std=True)
    (latent,) = model.predict([[0.5]], return_std=True, of="f")[1]
    assert round(mean, 6) == 1.591685
    assert round(deviation**2, 6) == 0.273596
    assert round(latent**2, 6) == 0.173596
    assert round(model.log_marginal_likelihood_, 6) == -3.748179


@pytest.mark.parametrize("name", KERNELS)
def test_posterior_and_evidence_are_those_of_dense_algebra(name):
    X, y = table()
    new = np.random.default_rng(1).uniform(-3, 3, (30, 2))
    kernel = KERNELS[name]
    model = given(kernel).fit(X, y)
    mean, covariance = dense(kernel, 0.1, X, y, new)
    close = {"rtol": 1e-8, "atol": 1e-8}  # what the issue asks for
    np.testing.assert_allclose(model.predict(new), mean, **close)
    np.testing.assert_allclose(model.predict(new, return_cov=True, of="f")[1], covariance, **close)
    np.testing.assert_allclose(model.predict(new, return_std=True, of="f")[1] ** 2, np.diag(covariance), **close)
    np.testing.assert_allclose(model.predict(new, return_std=True)[1] ** 2, np.diag(covariance) + 0.1, **close)
    value = multivariate_normal(np.zeros(40), kernel(X) + 0.1 * np.eye(40)).logpdf(y)
    np.testing.assert_allclose(model.log_marginal_likelihood_, value, rtol=1e-9)
    assert model.certify(X, y).holds


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("points", [None, 15])
def test_slopes_of_the_evidence_are_its_differences(name, points):
    if name == "white" and points:
        pytest.skip("inducing points cannot tell equal rows apart")
    X, y = table()
    kernel = KERNELS[name]
    model = (
        GaussianProcessRegressor(kernel, optimizer=None, inducing=points, random_state=0).fit(X, y, np.arange(40) % 3 + 1.0)
        if name != "white"
        else GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    )
    theta = np.append(kernel.theta, np.log(0.07))
    value, slopes = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == model.log_marginal_likelihood(theta)
    for i, slope in enumerate(slopes):
        h = 1e-5 * np.eye(len(theta))[i]
        found = (model.log_marginal_likelihood(theta + h) - model.log_marginal_likelihood(theta - h)) / 2e-5
        assert slope == pytest.approx(found, rel=1e-6, abs=1e-5)  # the error of a central difference


def test_the_same_as_scikit_learn():
    X, y = table()
    new = np.random.default_rng(1).uniform(-3, 3, (30, 2))
    theirs = peer_kernels.ConstantKernel(1.7) * peer_kernels.RBF([0.8, 1.4]) + peer_kernels.WhiteKernel(0.1)
    peer = Peer(theirs, alpha=1e-12, optimizer=None).fit(X, y)
    model = GaussianProcessRegressor(KERNELS["rbf"], optimizer=None, center=False).fit(X, y)
    value, slopes = model.log_marginal_likelihood(np.append(model.kernel_.theta, np.log(0.1)), eval_gradient=True)
    expected, gradient = peer.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-7)
    mean, deviation = given(KERNELS["rbf"]).fit(X, y).predict(new, return_std=True)
    for ours, theirs in zip((mean, deviation), peer.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


def test_a_search_ends_where_scikit_learns_does():
    X, y = table(80)
    kernel = peer_kernels.ConstantKernel() * peer_kernels.RBF([1.0, 1.0]) + peer_kernels.WhiteKernel(0.1 * y.var())
    peer = Peer(kernel, alpha=1e-12).fit(X, y - y.mean())
    model = GaussianProcessRegressor(Constant() * RBF([1.0, 1.0])).fit(X, y)
    assert model.converged_
    assert model.log_marginal_likelihood_ >= peer.log_marginal_likelihood_value_ - 1e-6
    np.testing.assert_allclose(model.kernel_.theta, peer.kernel_.theta[:3], rtol=1e-3)  # the tolerance of its optimizer
    assert not np.any(np.diff(model.trace_) > 1e-8 * abs(model.trace_[-1]))
    restarted = GaussianProcessRegressor(Constant() * RBF([1.0, 1.0]), n_restarts=3, random_state=0).fit(X, y)
    assert restarted.log_marginal_likelihood_ >= model.log_marginal_likelihood_ - 1e-8


@pytest.mark.item("KRN-12")
def test_the_linear_kernel_is_bayesian_linear_regression():
    rng = np.random.default_rng(2)
    X, new = rng.standard_normal((30, 3)), rng.standard_normal((10, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(30)
    line = BayesianLinearRegression(prior_precision=2.0, noise_variance=0.1, fit_intercept=False).fit(X, y)
    model = given(0.5 * Linear()).fit(X, y)
    for ours, theirs in zip(model.predict(new, return_std=True), line.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(line.log_evidence_, rel=1e-9)
    assert list(model.most_informative(new, 4)) == list(line.most_informative(new, 4))


@pytest.mark.parametrize("noise", [1e-10, 1e-6, 1e-2])
@pytest.mark.parametrize("n", [20, 300])
def test_variances_are_right_where_they_are_tiny(noise, n):
    """Where rows outnumber the features of a linear kernel, the variance is of the size of the noise (scikit-learn#11663)."""
    rng = np.random.default_rng(3)
    X, new = rng.standard_normal((n, 3)) + 5, rng.standard_normal((50, 3)) + 5
    model = given(Linear(), noise=noise).fit(X, X @ [1.0, 2.0, 3.0])
    line = BayesianLinearRegression(prior_precision=1.0, noise_variance=noise, fit_intercept=False).fit(X, X @ [1.0, 2.0, 3.0])
    for rows in (new, X):
        variance = model.predict(rows, return_std=True, of="f")[1] ** 2
        exact = np.einsum("ij,jk,ik->i", rows, line.covariance_, rows)
        assert (variance >= 0).all()
        # The rounding of k(x, x), some tens, is what no formula of kernels can see below.
        np.testing.assert_allclose(variance, exact, rtol=1e-2, atol=5e-13)
        covariance = model.predict(rows, return_cov=True, of="f")[1]
        np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-14)  # a root and a square
    assert model.certify(X, X @ [1.0, 2.0, 3.0]).holds


@pytest.mark.item("KRN-12")
def test_variance_is_at_most_the_priors_and_falls_with_every_row():
    X, y = table()
    new = np.random.default_rng(1).uniform(-4, 4, (50, 2))
    before = KERNELS["matern"].diag(new)
    for n in (1, 5, 20, 40):
        after = given(KERNELS["matern"]).fit(X[:n], y[:n]).predict(new, return_std=True, of="f")[1] ** 2
        assert (after <= before + 1e-12).all()
        before = after


@pytest.mark.item("KRN-12")
def test_without_noise_it_goes_through_the_targets():
    X, y = table(25)
    for noise in (1e-10, 0.0):
        model = given(Constant(2.0) * Matern(1.0, nu=1.5), noise=noise).fit(X, y)
        mean, deviation = model.predict(X, return_std=True, of="f")
        np.testing.assert_allclose(mean, y, atol=1e-8)
        assert (deviation < 1e-4).all()
        assert model.certify(X, y).holds


@pytest.mark.item("KRN-12")
def test_learning_row_by_row_is_learning_at_once():
    X, y = table()
    new = np.random.default_rng(1).uniform(-3, 3, (20, 2))
    weight = np.arange(40) % 3 + 1.0
    batch = given(KERNELS["rbf"]).fit(X, y, weight)
    model = given(KERNELS["rbf"]).fit(X[:10], y[:10], weight[:10])
    model.update(X[10:11], y[10:11], weight[10:11]).update(X[11:], y[11:], weight[11:])
    for ours, theirs in zip(model.predict(new, return_std=True), batch.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(batch.log_marginal_likelihood_, rel=1e-10)
    assert model.certify(X, y, weight).holds
    assert not model.certify(X, y).holds
    again, twice = model.update(X[:5], y[:5] + 1), given(KERNELS["rbf"])  # rows that it has already
    twice.fit(np.vstack([X, X[:5]]), np.append(y, y[:5] + 1), np.append(weight, np.ones(5)))
    np.testing.assert_allclose(again.predict(new), twice.predict(new), rtol=1e-9)
    assert again.log_marginal_likelihood_ == pytest.approx(twice.log_marginal_likelihood_, rel=1e-10)


@pytest.mark.parametrize("points", [None, 12])
def test_weights_are_repetition_in_posterior_and_evidence(points):
    X, y = table()
    weight = np.arange(40) % 4.0
    repeated = np.repeat(np.arange(40), weight.astype(int))
    rng = np.random.default_rng(4)
    ys = y[repeated] + 0.2 * rng.standard_normal(len(repeated))  # repetitions need not agree
    Z = None if points is None else X[:points]
    model = given(KERNELS["rbf"], inducing=Z).fit(X[repeated], ys)
    value = multivariate_normal(np.zeros(len(ys)), KERNELS["rbf"](X[repeated]) + 0.1 * np.eye(len(ys))).logpdf(ys)
    mean, covariance = dense(KERNELS["rbf"], 0.1, X[repeated], ys, X[:7])
    if points is None:
        assert model.log_marginal_likelihood_ == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(model.predict(X[:7]), mean, rtol=1e-8)
        np.testing.assert_allclose(model.predict(X[:7], return_std=True, of="f")[1] ** 2, np.diag(covariance), rtol=1e-7)
    else:
        assert model.log_marginal_likelihood_ <= value
    one = given(KERNELS["rbf"], inducing=Z).fit(X, y, weight)
    two = given(KERNELS["rbf"], inducing=Z).fit(X[repeated], y[repeated])
    assert one.log_marginal_likelihood_ == pytest.approx(two.log_marginal_likelihood_, rel=1e-10)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9, atol=1e-12)


def test_noise_of_each_row():
    X, y = table()
    noise = np.linspace(0.05, 0.5, 40)
    model = given(KERNELS["rbf"], noise=noise).fit(X, y)
    K = KERNELS["rbf"](X) + np.diag(noise)
    np.testing.assert_allclose(model.alpha_, np.linalg.solve(K, y), rtol=1e-8)
    assert model.log_marginal_likelihood_ == pytest.approx(multivariate_normal(np.zeros(40), K).logpdf(y), rel=1e-9)
    assert model.certify(X, y).holds
    assert GaussianProcessRegressor(noise=noise).fit(X, y, np.arange(40) % 3.0).certify(X, y, np.arange(40) % 3.0).holds
    with pytest.raises(ValueError, match="ask for predictions of='f'"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match="one positive variance for each row"):
        given(None, noise=noise[:-1]).fit(X, y)


def test_leaving_one_out_is_fitting_without_it():
    X, y = table(25)
    model = given(KERNELS["matern"]).fit(X, y)
    found = model.leave_one_out()
    for i in range(25):
        others = given(KERNELS["matern"]).fit(np.delete(X, i, 0), np.delete(y, i))
        mean, deviation = others.predict(X[[i]], return_std=True)
        assert found.mean[i] == pytest.approx(mean[0], rel=1e-8)
        assert found.variance[i] == pytest.approx(deviation[0] ** 2, rel=1e-8)
        assert found.log_density[i] == pytest.approx(norm.logpdf(y[i], mean[0], deviation[0]), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("points", [None, 20])
def test_rows_to_measure_next_are_those_of_refits(points):
    X, y = table()
    pool = np.random.default_rng(5).uniform(-3, 3, (60, 2))
    model = given(KERNELS["rbf"], inducing=points, random_state=0).fit(X[:15], y[:15])
    chosen = model.most_informative(pool, 5)
    rows, targets, expected = X[:15], y[:15], []
    for _ in range(5):
        v = given(KERNELS["rbf"]).fit(rows, targets).predict(pool, return_std=True)[1]
        v[expected] = 0
        expected.append(int(np.argmax(v)))
        rows, targets = np.vstack([rows, pool[expected[-1:]]]), np.append(targets, 0.0)
    assert list(chosen) == expected


def test_samples_have_the_posteriors_moments():
    X, y = table(10)
    new = X[:3] + 0.3
    model = given(KERNELS["rbf"]).fit(X, y)
    mean, covariance = model.predict(new, return_cov=True, of="f")
    draws = model.sample(new, 40_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * np.sqrt(covariance.max() / 40_000))  # five standard errors
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=5 * covariance.max() * np.sqrt(2 / 40_000))
    noisy = model.sample(new, 40_000, random_state=0, of="y")
    np.testing.assert_allclose(np.cov(noisy.T), covariance + 0.1 * np.eye(3), atol=0.01)
    law = model.predict_dist(new)
    np.testing.assert_allclose(law.var(), np.diag(covariance) + 0.1, rtol=1e-9)
    np.testing.assert_allclose(model.predict_interval(new, 0.5), np.column_stack(law.interval(0.5)), rtol=1e-9)


def test_a_matrix_that_rounding_makes_singular_gets_a_jitter_that_is_told():
    X = np.linspace(0, 1, 60)[:, None]
    y = np.sin(6 * X[:, 0])
    model = given(RBF(1.0), noise=0.0).fit(X, y)
    assert 0 < model.jitter_ <= 1e-6
    mean, deviation = model.predict(X, return_std=True, of="f")
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert np.isfinite(deviation).all()
    assert model.certify(X, y).holds


def test_sabotaged_hyperparameters_are_refused():
    X, y = table()
    for kernel, options in ((None, {}), (KERNELS["rbf"], {}), (KERNELS["matern"], {"inducing": 15, "random_state": 0})):
        model = GaussianProcessRegressor(kernel, **options).fit(X, y)
        assert model.certify(X, y).holds, str(model.certify(X, y))
        true = model.kernel_
        for i in range(len(true.theta)):
            model.kernel_ = true.with_theta(true.theta + 0.01 * np.eye(len(true.theta))[i])
            assert not model.certify(X, y).holds
        model.kernel_ = true
    stopped = GaussianProcessRegressor(optimizer=None).fit(X, y)  # where the search starts is no place to end
    assert stopped.certify(X, y).holds
    assert not stopped.set_params(optimizer="bfgs").certify(X, y).holds


def test_nonsense_is_refused():
    X, y = table(10)
    with pytest.raises(ValueError, match="tells equal rows apart"):
        given(KERNELS["white"]).fit(X, y, np.full(10, 2.0))
    with pytest.raises(ValueError, match="tells equal rows apart"):
        given(KERNELS["white"], inducing=5).fit(X, y)
    with pytest.raises(ValueError, match="Inducing points need the 2 columns"):
        given(None, inducing=np.zeros((3, 1))).fit(X, y)
    for bounds in ((1.0, 0.1), (1.0,), (0.0, 1.0), (0.1, np.inf)):
        with pytest.raises(ValueError, match="noise_bounds must be two variances"):
            GaussianProcessRegressor(noise_bounds=bounds).fit(X, y)
    with pytest.raises(ValueError, match="Inducing points need noise"):
        given(None, noise=0.0, inducing=3).fit(X, y)  # which once never ended
    with pytest.raises(ValueError, match="not positive definite"):
        cholesky(np.diag([1.0, np.inf]))
    model = given(None).fit(X, y)
    with pytest.raises(ValueError, match="'y' or of 'f'"):
        model.predict(X, return_std=True, of="z")
    with pytest.raises(ValueError, match="or for the covariance"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="theta needs"):
        model.log_marginal_likelihood(np.zeros(9))


@pytest.mark.parametrize("seed", range(4))
def test_one_percent_of_any_array_is_refused_where_the_matrix_is_ill_conditioned(seed):
    """The targets have no noise: 1 % of α is little next to what moving α anywhere else would do."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 2))
    y = 1e6 * X.sum(axis=1) + 1e9 * (seed % 2) if seed < 2 else np.cos(X[:, 0])
    model = GaussianProcessRegressor().fit(X, y)
    assert np.linalg.cond(model.L_) ** 2 > 1e8
    assert model.certify(X, y).holds
    for name in ("alpha_", "L_", "noise_", "y_train_"):
        assert not with_attribute(model, name, 1.01 * getattr(model, name)).certify(X, y).holds, name


def test_more_rows_than_a_matrix_has_room_for_are_refused():
    X = np.arange(20_001.0)[:, None]
    with pytest.raises(ValueError, match=r"20,001 different rows are more than .* inducing=500"):
        GaussianProcessRegressor(optimizer=None).fit(X, X[:, 0])
