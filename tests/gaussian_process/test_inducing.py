"""Inducing points against the exact process, and against the bound as Titsias writes it."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from contracts.problems import fitted, with_attribute
from lemmata.core.certificate import free
from lemmata.gaussian_process import GaussianProcessRegressor
from lemmata.gaussian_process.inducing import chosen
from lemmata.kernels import RBF, Constant, Matern

KERNEL = Constant(1.7) * RBF([0.8, 1.4])


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def given(kernel=KERNEL, **options):
    return GaussianProcessRegressor(kernel, noise=0.1, optimizer=None, center=False, random_state=0, **options)


@pytest.mark.parametrize("kernel", [KERNEL, Matern(1.0, nu=2.5) + Constant(0.5)])
def test_all_rows_as_inducing_points_are_the_exact_process(kernel):
    X, y = table()
    new = np.random.default_rng(1).uniform(-3, 3, (30, 2))
    exact, model = given(kernel).fit(X, y), given(kernel, inducing=X).fit(X, y)
    close = {"rtol": 0, "atol": 3e-4}  # the points have a jitter: a thousandth of the noise's deviation
    assert model.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, rel=1e-4)
    np.testing.assert_allclose(model.predict(new), exact.predict(new), **close)
    ours, theirs = (m.predict(new, return_cov=True, of="f")[1] for m in (model, exact))
    np.testing.assert_allclose(ours, theirs, **close)
    assert given(kernel, inducing=60).fit(X, y).log_marginal_likelihood_ == pytest.approx(
        exact.log_marginal_likelihood_, rel=1e-4
    )


def test_the_bound_and_the_posterior_are_titsias():
    X, y = table()
    Z, new = X[:12], np.random.default_rng(1).uniform(-3, 3, (30, 2))
    model = given(inducing=Z).fit(X, y)
    C, K = KERNEL(Z, X), KERNEL(Z) + model.jitter_ * np.eye(12)
    Q = C.T @ np.linalg.solve(K, C)
    bound = multivariate_normal(np.zeros(60), Q + 0.1 * np.eye(60)).logpdf(y) - (KERNEL.diag(X) - np.diag(Q)).sum() / 0.2
    assert model.log_marginal_likelihood_ == pytest.approx(bound, rel=1e-9)
    inner = np.linalg.inv(K + C @ C.T / 0.1)
    k = KERNEL(Z, new)
    np.testing.assert_allclose(model.predict(new), k.T @ inner @ C @ y / 0.1, rtol=1e-7, atol=1e-9)
    variance = KERNEL.diag(new) - np.einsum("ij,ij->j", k, (np.linalg.inv(K) - inner) @ k)
    np.testing.assert_allclose(model.predict(new, return_std=True, of="f")[1] ** 2, variance, rtol=1e-7, atol=1e-9)


def test_more_points_raise_the_bound_towards_the_evidence():
    X, y = table(200)
    exact = given().fit(X, y).log_marginal_likelihood_
    bounds = [given(inducing=X[:m]).fit(X, y).log_marginal_likelihood_ for m in (5, 10, 20, 40, 80, 200)]
    assert np.all(np.diff(bounds) >= -1e-6)
    assert bounds[-1] == pytest.approx(exact, rel=1e-4)  # but for the jitter
    greedy = given(inducing=40).fit(X, y)
    assert greedy.log_marginal_likelihood_ > bounds[3]  # chosen points see more than the first ones
    assert greedy.log_marginal_likelihood_ <= exact + 1e-8


def test_chosen_points_are_different_rows_and_no_more_than_are_needed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2))
    Z = chosen(KERNEL, X, 50, rng)
    assert len(np.unique(Z, axis=0)) == 50
    assert {row.tobytes() for row in Z} <= {row.tobytes() for row in X}
    assert len(chosen(RBF(1e3), X[:100], 50, rng)) < 20  # so smooth that a few rows say all


def test_a_search_with_inducing_points_is_certified_and_sabotage_refused():
    X, y = table(150)
    model = GaussianProcessRegressor(inducing=30, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    exact = GaussianProcessRegressor().fit(X, y)
    assert model.log_marginal_likelihood_ <= exact.log_marginal_likelihood_ + 1e-8
    rng = np.random.default_rng(7)
    for name, value in fitted(model).items():
        array = np.asarray(value)
        if array.dtype.kind == "f" and array.any():
            changed = free(np.atleast_1d(array), rng).reshape(array.shape)
            assert not with_attribute(model, name, changed if array.ndim else changed[()]).certify(X, y).holds, name


@pytest.mark.parametrize(("n", "m", "d"), [(200, 60, 2), (400, 5, 1), (30, 20, 1), (400, 40, 3)])
def test_targets_without_noise_are_certified_and_one_percent_is_refused(n, m, d):
    """The noise goes to its lower bound, where slopes once were nothing but rounding."""
    X = np.random.default_rng(n + d).standard_normal((n, d))
    for y in (np.cos(X[:, 0]), 1e6 * X.sum(axis=1)):
        model = GaussianProcessRegressor(inducing=m, random_state=0).fit(X, y)
        certificate = model.certify(X, y)
        assert certificate.holds, str(certificate)
        for name in ("alpha_", "L_", "inner_root_", "inducing_points_", "noise_"):
            assert not with_attribute(model, name, 1.01 * getattr(model, name)).certify(X, y).holds, name


def test_many_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (12_000, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(len(X))
    model = GaussianProcessRegressor(inducing=60, random_state=0, tol=1e-3).fit(X, y)
    assert model.noise_ == pytest.approx(0.01, rel=0.1)  # its standard error is about 1.3 %
    assert np.abs(model.predict(X[:500]) - np.sin(2 * X[:500, 0]) - X[:500, 1]).max() < 0.05
    with pytest.raises(ValueError, match="without inducing points"):
        model.leave_one_out()
    with pytest.raises(ValueError, match="no inducing points"):
        model.update(X[:2], y[:2])
