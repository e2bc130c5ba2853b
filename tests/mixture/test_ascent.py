"""Ways up the likelihood other than EM: the same optimum, overshooting Newton, and a bound with a restricted q."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.mixture as peer
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.mixture import GaussianMixture, elbo, likelihood_gradient, maximize_likelihood, observed_information
from lemmata.mixture.gaussian import as_matrices
from lemmata.mixture.information import Chart

kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
smooth = pytest.mark.parametrize("method", ["gradient", "newton"])
LINE = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [7.0], [9.0]])


def rows(n=300, d=2, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 1.5, d) + [3, -2] * rng.integers(2, size=(n, 1)) + 10
    return X, rng.uniform(0.5, 2, size=n)


def start(X, kind, k=2):
    d = X.shape[1]
    precisions = {"full": np.array([np.eye(d)] * k), "tied": np.eye(d), "diag": np.ones((k, d)), "spherical": np.ones(k)}
    means = 10 + np.linspace(0, 1, k)[:, None] * [3, -2]
    return {"weights_init": np.full(k, 1 / k), "means_init": means, "precisions_init": 0.5 * precisions[kind]}


def given(ascent, kind):
    """Give the end of an ascent as the start of something else."""
    precisions = np.linalg.inv(ascent.covariances) if kind in ("full", "tied") else 1 / ascent.covariances
    return {"weights_init": ascent.weights, "means_init": ascent.means, "precisions_init": precisions}


def log_joint(X, weights, means, covariances, kind):
    matrices = as_matrices(covariances, kind, *means.shape)
    parts = zip(weights, means, matrices, strict=True)
    return np.stack([np.log(w) + multivariate_normal(m, c).logpdf(X) for w, m, c in parts], axis=1)


def two_on_a_line(weights, means, variances):
    precisions = 1 / np.array(variances)
    means = np.array(means, dtype=float)[:, None]
    k = len(weights)
    return GaussianMixture(k, covariance_type="spherical", weights_init=weights, means_init=means, precisions_init=precisions)


def value(mixture, theta, X):
    """Mean log-likelihood at coordinates θ, by SciPy's densities."""
    chart = Chart(mixture.covariance_type, *np.shape(mixture.means_init))
    logs = log_joint(X, *chart.unpack(theta), mixture.covariance_type)
    return float(np.logaddexp.reduce(logs, axis=1).mean())


def coordinates(mixture):
    chart = Chart(mixture.covariance_type, *np.shape(mixture.means_init))
    return chart.pack(np.array(mixture.weights_init), mixture.means_init, 1 / mixture.precisions_init)


@pytest.mark.item("CLU-17")
@kinds
@smooth
def test_the_methods_end_at_the_optimum_of_em(kind, method):
    X, weight = rows()
    model = GaussianMixture(2, covariance_type=kind, reg_covar=0.0, tol=1e-15, max_iter=100_000, **start(X, kind))
    up = maximize_likelihood(model, X, sample_weight=weight, method=method, max_iter=10_000)
    assert not hasattr(model, "weights_")
    model.fit(X, sample_weight=weight)
    assert up.converged
    assert up.method == method
    assert up.gradient_norm <= 1e-8
    assert up.log_likelihood == pytest.approx(model.lower_bound_, abs=1e-12)
    np.testing.assert_allclose(up.weights, model.weights_, atol=1e-6)
    np.testing.assert_allclose(up.means, model.means_, rtol=1e-6)
    np.testing.assert_allclose(up.covariances, model.covariances_, rtol=1e-5, atol=1e-6)
    assert (np.diff(up.trace) >= -1e-12).all()
    logs = log_joint(X, up.weights, up.means, up.covariances, kind)
    assert up.trace[-1] == pytest.approx(np.average(np.logaddexp.reduce(logs, axis=1), weights=weight), rel=1e-12)
    assert up.trace[0] < up.trace[-1] - 0.01


@pytest.mark.item("CLU-17")
@kinds
@smooth
def test_em_of_scikit_learn_stands_still_where_they_end(kind, method):
    X, _ = rows()
    up = maximize_likelihood(GaussianMixture(2, covariance_type=kind, **start(X, kind)), X, method=method, max_iter=10_000)
    step = peer.GaussianMixture(2, covariance_type=kind, reg_covar=0.0, max_iter=1, tol=0.0, **given(up, kind))
    with pytest.warns(ConvergenceWarning):
        step.fit(X)
    np.testing.assert_allclose(step.weights_, up.weights, atol=1e-7)
    np.testing.assert_allclose(step.means_, up.means, rtol=1e-7)
    np.testing.assert_allclose(step.covariances_, up.covariances, rtol=1e-6, atol=1e-7)


@pytest.mark.item("CLU-17")
def test_every_point_of_the_ascent_is_a_mixture():
    X, _ = rows(n=100)
    for steps in (1, 2, 5):
        with pytest.warns(ConvergenceWarning):
            up = maximize_likelihood(GaussianMixture(3, **start(X, "full", 3)), X, method="gradient", max_iter=steps)
        assert not up.converged
        assert len(up.trace) == steps + 1
        assert (up.weights > 0).all()
        assert up.weights.sum() == pytest.approx(1.0, abs=1e-14)
        assert (np.linalg.eigvalsh(up.covariances) > 0).all()


@pytest.mark.item("CLU-17")
def test_newton_without_a_guard_overshoots_where_the_likelihood_is_concave():
    # One Gaussian of 25 times the variance of the rows: in log P the log-likelihood log P − ½P²s² is concave, and flat here.
    model = two_on_a_line([1.0], [LINE.mean()], [25 * LINE.var()])
    information = observed_information(model, LINE)
    assert (np.linalg.eigvalsh(information) > 0).all()
    plain = np.linalg.solve(information, likelihood_gradient(model, LINE))
    np.testing.assert_allclose(plain, [0.0, 12.0], atol=1e-9)  # (1 − 1/25)/(2/25), and right is log 5
    theta = coordinates(model)
    assert value(model, theta + plain, LINE) < value(model, theta, LINE) - 1e6
    up = maximize_likelihood(model, LINE)
    assert (np.diff(up.trace) > 0).all()
    np.testing.assert_allclose(up.covariances, [LINE.var()], rtol=1e-7)


@pytest.mark.item("CLU-17")
def test_newton_without_a_guard_falls_where_the_likelihood_is_not_concave():
    model = two_on_a_line([0.5, 0.5], [1.0, 7.0], [6.0, 6.0])
    information = observed_information(model, LINE)
    assert np.linalg.eigvalsh(information)[0] < 0
    theta = coordinates(model)
    before = value(model, theta, LINE)
    plain = np.linalg.solve(information, likelihood_gradient(model, LINE))
    assert value(model, theta + plain, LINE) < before - 0.01
    up = maximize_likelihood(model, LINE)
    assert up.trace[0] == pytest.approx(before, rel=1e-12)
    assert (np.diff(up.trace) > -1e-12).all()
    assert up.trace[1] > before + 0.01
    assert up.converged


@pytest.mark.item("CLU-17")
def test_newtons_sign_is_the_same_up_as_down():
    top = maximize_likelihood(two_on_a_line([0.5, 0.5], [1.0, 7.0], [2.0, 2.0]), LINE, tol=1e-12)
    near = two_on_a_line(top.weights, top.means[:, 0] + [0.02, -0.02], top.covariances * 1.01)
    theta, gradient = coordinates(near), likelihood_gradient(near, LINE)
    hessian = -observed_information(near, LINE)
    step = np.linalg.solve(hessian, gradient)
    right, printed = theta - step, theta + step
    best = coordinates(two_on_a_line(top.weights, top.means[:, 0], top.covariances))
    away = np.linalg.norm(theta - best)
    assert np.linalg.norm(right - best) < 0.1 * away  # squared, up to a factor
    assert np.linalg.norm(printed - best) > 1.9 * away  # as printed, it doubles the error
    assert value(near, printed, LINE) < value(near, theta, LINE) < value(near, right, LINE)


def test_newton_squares_the_error():
    X, _ = rows()
    model = GaussianMixture(2, reg_covar=0.0, tol=1e-7, **start(X, "full")).fit(X)
    norms = [maximize_likelihood(model, X, tol=np.inf).gradient_norm]
    for steps in (1, 2):
        with pytest.warns(ConvergenceWarning):
            norms.append(maximize_likelihood(model, X, tol=0.0, max_iter=steps).gradient_norm)
    assert norms[0] > 1e-6
    assert norms[1] < 100 * norms[0] ** 2
    assert norms[2] < max(100 * norms[1] ** 2, 1e-14)


@pytest.mark.item("CLU-17")
@kinds
def test_the_bound_with_hard_assignments_rises_and_stays_below(kind):
    X, weight = rows()
    model = GaussianMixture(2, covariance_type=kind, **start(X, kind))
    up = maximize_likelihood(model, X, sample_weight=weight, method="hard")
    assert up.converged
    assert (np.diff(up.trace) >= -1e-13).all()
    assert up.trace[-1] > up.trace[0] + 0.01
    logs = log_joint(X, up.weights, up.means, up.covariances, kind)
    best = logs.argmax(axis=1)
    q = np.eye(2)[best]
    total = np.logaddexp.reduce(logs, axis=1)
    bound = np.average(elbo(q, logs), weights=weight)
    assert up.trace[-1] == pytest.approx(bound, rel=1e-12)
    assert up.log_likelihood == pytest.approx(np.average(total, weights=weight), rel=1e-12)
    assert bound < up.log_likelihood - 1e-3
    free = elbo(np.exp(logs - total[:, None]), logs)  # q without the restriction: EM's bound, which is tight
    assert np.average(free, weights=weight) == pytest.approx(up.log_likelihood, rel=1e-12)
    # no q is better for these parameters, and no parameters for this q: weights, means and covariances of the rows assigned
    shares = np.array([weight[best == j].sum() for j in range(2)]) / weight.sum()
    np.testing.assert_allclose(up.weights, shares, rtol=1e-9)
    scatters = []
    for j in range(2):
        mine = best == j
        np.testing.assert_allclose(up.means[j], np.average(X[mine], axis=0, weights=weight[mine]), rtol=1e-9)
        scatters.append(np.cov(X[mine].T, bias=True, aweights=weight[mine]))
    expected = {
        "full": np.array(scatters),
        "tied": shares[0] * scatters[0] + shares[1] * scatters[1],
        "diag": np.array([np.diag(s) for s in scatters]),
        "spherical": np.array([np.trace(s) / 2 for s in scatters]),
    }[kind]
    np.testing.assert_allclose(up.covariances, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.item("CLU-17")
def test_the_optimum_of_the_restricted_bound_is_none_of_the_likelihood():
    X, _ = rows(seed=4)
    model = GaussianMixture(2, covariance_type="tied", **start(X, "tied"))
    hard, top = maximize_likelihood(model, X, method="hard"), maximize_likelihood(model, X)
    assert hard.gradient_norm > 1e-3
    assert hard.log_likelihood < top.log_likelihood
    assert np.linalg.norm(hard.means[0] - hard.means[1]) > np.linalg.norm(top.means[0] - top.means[1])


def test_a_component_that_no_row_prefers_keeps_its_place():
    model = two_on_a_line([0.5, 0.25, 0.25], [2.0, 7.0, 500.0], [2.0, 2.0, 1.5])
    up = maximize_likelihood(model, LINE, method="hard")
    assert up.weights[2] == 0
    assert (up.means[2, 0], up.covariances[2]) == (500.0, 1.5)
    assert up.weights.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="A weight is zero"):
        maximize_likelihood(GaussianMixture(3, covariance_type="spherical", **given(up, "spherical")), LINE)


@pytest.mark.parametrize("method", ["newton", "hard"])
def test_a_collapse_is_an_error_and_no_result(method):
    X = np.vstack([rows(n=30)[0], [[100.0, 100.0]]])
    model = GaussianMixture(2, **{**start(X, "full"), "means_init": X[[0, -1]]})
    with pytest.raises(ValueError, match="A component has collapsed"):
        maximize_likelihood(model, X, method=method)


@pytest.mark.parametrize("method", ["gradient", "newton", "hard"])
def test_units_blocks_and_files_change_nothing(method, tmp_path):
    X, weight = rows(n=200)
    options = {"method": method, "max_iter": 10_000, "tol": 1e-5}
    first = start(X, "full")
    up = maximize_likelihood(GaussianMixture(2, **first), X, sample_weight=weight, **options)
    units = np.array([1e-4, 1e5])
    scaled = {"means_init": first["means_init"] * units, "precisions_init": first["precisions_init"] / np.outer(units, units)}
    other = maximize_likelihood(GaussianMixture(2, **{**first, **scaled}), X * units, sample_weight=weight, **options)
    np.testing.assert_allclose(other.weights, up.weights, atol=1e-7)
    np.testing.assert_allclose(other.means, up.means * units, rtol=1e-6)
    np.testing.assert_allclose(other.trace[:5] + np.log(units).sum(), up.trace[:5], rtol=1e-9)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "w": weight}), tmp_path / "rows.parquet")
    with lemmata.config(block_rows=64):
        here = maximize_likelihood(GaussianMixture(2, **first), X, sample_weight=weight, **options)
        stored = maximize_likelihood(GaussianMixture(2, **first), tmp_path / "rows.parquet", sample_weight="w", **options)
    np.testing.assert_array_equal(stored.trace, here.trace)
    np.testing.assert_allclose(here.means, up.means, rtol=1e-6)


def test_a_fit_is_where_the_ascent_starts_and_stays_as_it_is():
    X, _ = rows()
    fit = GaussianMixture(2, random_state=0).fit(X)
    kept = fit.means_.copy()
    up = maximize_likelihood(fit, X)
    assert up.trace[0] == pytest.approx(fit.lower_bound_, rel=1e-12)
    assert len(up.trace) <= 5
    np.testing.assert_array_equal(fit.means_, kept)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="Unknown method 'em'; there are gradient, newton, hard"):
        maximize_likelihood(GaussianMixture(2), LINE, method="em")
