"""The Normal-inverse-Wishart prior: against SciPy's densities, quadrature, and the chain rule."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from scipy.stats import chi2, invwishart, kstest, multivariate_normal, multivariate_t, norm, t

from lemmata.mixture.gibbs_kernels import student_block, total_block
from lemmata.mixture.normal_inverse_wishart import NormalInverseWishart, moments, students

PRIOR = NormalInverseWishart(
    np.array([1.0, -2.0, 0.5]), 0.7, np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 3.0]]), 4.5
)
LEVEL = 1e-6  # chance of a false alarm of each test of randomness


def rows(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * 2 + 1


def student(prior):
    """SciPy's density of a next row, from the textbook's parameters."""
    d, kappa, nu = len(prior.mean), prior.mean_precision, prior.degrees_of_freedom
    return multivariate_t(prior.mean, prior.scale * (kappa + 1) / (kappa * (nu - d + 1)), df=nu - d + 1)


def test_the_normalizer_is_that_of_scipys_densities():
    rng = np.random.default_rng(1)
    for _ in range(5):
        S = invwishart(df=5, scale=np.eye(3)).rvs(random_state=rng)
        m = rng.normal(size=3)
        away, d = m - PRIOR.mean, 3
        inverse = np.linalg.inv(S)
        kernel = -0.5 * (PRIOR.degrees_of_freedom + d + 2) * np.linalg.slogdet(S)[1] - 0.5 * np.trace(PRIOR.scale @ inverse)
        kernel -= 0.5 * PRIOR.mean_precision * away @ inverse @ away
        expected = invwishart.logpdf(S, PRIOR.degrees_of_freedom, PRIOR.scale)
        expected += multivariate_normal.logpdf(m, PRIOR.mean, S / PRIOR.mean_precision)
        assert kernel - PRIOR.log_normalizer() == pytest.approx(expected, rel=1e-10)


def test_the_posterior_is_prior_times_likelihood():
    X = rows(4)
    posterior = PRIOR.after(*moments(X))

    def log_density(which, m, S):
        value = invwishart.logpdf(S, which.degrees_of_freedom, which.scale)
        return value + multivariate_normal.logpdf(m, which.mean, S / which.mean_precision)

    rng = np.random.default_rng(2)
    for _ in range(5):
        S, m = invwishart(df=6, scale=np.eye(3)).rvs(random_state=rng), rng.normal(size=3)
        joint = log_density(PRIOR, m, S) + multivariate_normal.logpdf(X, m, S).sum()
        assert joint - log_density(posterior, m, S) == pytest.approx(PRIOR.log_marginal(*moments(X)), rel=1e-10)


def test_the_marginal_likelihood_is_the_integral():
    prior = NormalInverseWishart(np.array([0.5]), 2.0, np.array([[1.5]]), 3.0)
    X = np.array([[0.2], [1.1]])

    means, logs = np.linspace(-15.0, 15.0, 801), np.linspace(-7.0, 12.0, 801)  # of the variance
    variances = np.exp(logs)
    spread = np.sqrt(variances)[:, None]
    joint = norm.pdf(means, 0.5, spread / np.sqrt(2.0)) * (invwishart.pdf(variances, 3.0, 1.5) * variances)[:, None]
    for x in X[:, 0]:
        joint *= norm.pdf(x, means, spread)
    integral = trapezoid(trapezoid(joint, means, axis=1), logs)
    assert np.exp(prior.log_marginal(*moments(X))) == pytest.approx(integral, rel=1e-4)  # what the grid leaves out


@pytest.mark.item("CLU-20")
def test_the_predictive_density_is_scipys_student():
    X = rows(7, seed=3)
    for prior in (PRIOR, PRIOR.after(*moments(rows(5)))):
        np.testing.assert_allclose(prior.log_predictive(X), student(prior).logpdf(X), rtol=1e-10)


@pytest.mark.item("CLU-20")
def test_the_marginal_is_the_product_of_predictives():
    X = rows(6, seed=4)
    total = sum(student(PRIOR.after(*moments(X[:i]))).logpdf(X[i]) for i in range(len(X)))
    assert PRIOR.log_marginal(*moments(X)) == pytest.approx(total, rel=1e-10)
    assert PRIOR.log_marginal(*moments(X[:0])) == pytest.approx(0.0, abs=1e-12)


def test_leading_axes_are_many_at_once():
    groups = [rows(n, seed=n) for n in (0, 1, 2, 9)]
    counts, averages, scatters = (np.array(part) for part in zip(*map(moments, groups), strict=True))
    together = PRIOR.after(counts, averages, scatters)
    logs = PRIOR.log_marginal(counts, averages, scatters)
    for i, group in enumerate(groups):
        alone = PRIOR.after(*moments(group))
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_allclose(many[i], one, rtol=1e-12)
        assert logs[i] == pytest.approx(PRIOR.log_marginal(*moments(group)), rel=1e-12, abs=1e-12)


def test_draws_have_the_distribution():
    n, rng = 20_000, np.random.default_rng(5)
    many = NormalInverseWishart(
        np.tile(PRIOR.mean, (n, 1)), np.full(n, PRIOR.mean_precision), np.tile(PRIOR.scale, (n, 1, 1)), np.full(n, 4.5)
    )
    means, covariances = many.draw(rng)
    a = np.array([0.3, -1.0, 0.4])
    ratio = (a @ PRIOR.scale @ a) / np.einsum("i,nij,j->n", a, covariances, a)
    assert kstest(ratio, chi2(4.5 - 3 + 1).cdf).pvalue > LEVEL
    inverse = np.linalg.inv(covariances)
    assert kstest(np.einsum("i,nij,j->n", a, inverse, a) / (a @ np.linalg.inv(PRIOR.scale) @ a), chi2(4.5).cdf).pvalue > LEVEL
    away = (means - PRIOR.mean) @ a / np.sqrt(np.einsum("i,nij,j->n", a, covariances, a) / PRIOR.mean_precision)
    assert kstest(away, norm.cdf).pvalue > LEVEL
    x = means + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances), rng.normal(size=(n, 3)))
    scale = np.sqrt(a @ PRIOR.scale @ a * 1.7 / (0.7 * 2.5))
    assert kstest((x - PRIOR.mean) @ a / scale, t(2.5).cdf).pvalue > LEVEL


def test_one_draw_alone():
    mean, covariance = PRIOR.draw(np.random.default_rng(6))
    assert mean.shape == (3,)
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_kernels_of_students_are_scipys():
    groups = [rows(n, seed=n) for n in (0, 3, 8)]
    counts, averages, scatters = (np.array(part) for part in zip(*map(moments, groups), strict=True))
    posteriors = PRIOR.after(counts, averages, scatters)
    log_weights = np.log([0.2, 0.3, 0.5])
    X = np.concatenate([rows(5, seed=7), [[1e8, -1e8, 3.0]]])
    each = np.array([student(PRIOR.after(*moments(group))).logpdf(X) for group in groups]).T + log_weights
    found = students(posteriors, log_weights, PRIOR.mean)
    np.testing.assert_allclose(student_block(X, None, found), each, rtol=1e-9)
    np.testing.assert_allclose(total_block(X, None, found), logsumexp(each, axis=1), rtol=1e-9)
    np.testing.assert_allclose(student_block(X[:5].astype(np.float32), None, found), each[:5], rtol=1e-5)
