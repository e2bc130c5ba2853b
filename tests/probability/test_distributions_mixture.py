"""Mixtures: density, moments and draws against direct sums; quantiles in tails, gaps and of discrete laws."""

import math

import numpy as np
import pytest
import scipy.stats as st
from scipy.integrate import quad
from scipy.optimize import brentq

from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    Mixture,
    MultivariateNormal,
    Normal,
)

PAIR = Mixture([0.3, 0.7], [Normal(-2, 1), Normal(3, 0.5)])


def test_density_moments_and_responsibilities_are_weighted_sums():
    x = np.linspace(-6, 6, 50)
    parts = np.stack([0.3 * st.norm(-2, 1).pdf(x), 0.7 * st.norm(3, 0.5).pdf(x)], axis=-1)
    np.testing.assert_allclose(PAIR.pdf(x), parts.sum(axis=-1), rtol=1e-12)
    np.testing.assert_allclose(PAIR.responsibilities(x), parts / parts.sum(axis=-1, keepdims=True), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(PAIR.cdf(x), 0.3 * st.norm(-2, 1).cdf(x) + 0.7 * st.norm(3, 0.5).cdf(x), rtol=1e-13)
    mean, second = (quad(lambda t, k=k: t**k * PAIR.pdf(t), -20, 20, points=[-2, 3], limit=200)[0] for k in (1, 2))
    assert (PAIR.mean, PAIR.var) == pytest.approx((mean, second - mean**2), rel=1e-9)
    h = 1e-6
    np.testing.assert_allclose(
        PAIR.logpdf_gradient(x), (PAIR.logpdf(x + h) - PAIR.logpdf(x - h)) / (2 * h), rtol=1e-6, atol=1e-7
    )
    entropy = quad(lambda t: -PAIR.pdf(t) * PAIR.logpdf(t), -20, 20, points=[-2, 3], limit=200)[0]
    assert PAIR.entropy() == pytest.approx(entropy, rel=1e-8)
    assert PAIR.logpdf(1e4) == pytest.approx(math.log(0.3) + Normal(-2, 1).logpdf(1e4), rel=1e-13)  # no underflow
    assert Mixture([1, 0], [Normal(0, 1), Normal(50, 1)]).responsibilities(50.0).tolist() == [1, 0]
    far = Mixture([0.5, 0.5], [Normal(0, 1e-3), Normal(1e6, 1)])
    assert far.entropy() == pytest.approx(math.log(2) + (Normal(0, 1e-3).entropy() + Normal(0, 1).entropy()) / 2, rel=1e-6)


MIXTURES = [
    PAIR,
    Mixture([0.5, 0.5], [Normal(0, 1e-6), Normal(1e6, 1)]),
    Mixture([0.2, 0.8], [Exponential(3), Gamma(20, 0.1)]),
    Mixture([0.5, 0.5], [Beta(0.3, 5), Beta(5, 0.3)]),
    Mixture([0.5, 0.5], [Normal(0, 1), Mixture([0.1, 0.9], [Normal(5, 1), Normal(-5, 2)])]),
]


@pytest.mark.parametrize("law", MIXTURES, ids=range(len(MIXTURES)))
def test_quantiles_solve_the_equation(law):
    u = np.concatenate([[1e-12, 1e-6], np.linspace(0.001, 0.999, 200), [1 - 1e-9]])
    x = law.icdf(u)
    assert (np.diff(x) >= 0).all()
    slack = 4 * np.finfo(float).eps * np.abs(x) * law.pdf(x) * 2
    assert (np.abs(law.cdf(x) - u) <= 1e-14 + 1e-12 * u + slack).all()
    for p in (0.01, 0.3, 0.95):
        low, high = law.icdf(1e-9), law.icdf(1 - 1e-9)
        assert law.icdf(p) == pytest.approx(brentq(lambda t, p=p: law.cdf(t) - p, low, high, xtol=1e-14), rel=1e-8, abs=1e-10)
    assert law.icdf([0, 1]).tolist() == list(law.support)
    assert law.icdf(np.full((2, 3), 0.5)).shape == (2, 3)
    assert abs(law.icdf(1e-200) - law.icdf(0.9e-200)) <= 1e-3 * abs(law.icdf(1e-200)) + 1e-300 or law.support[0] == 0


def test_discrete_mixture():
    law = Mixture([0.25, 0.75], [Binomial(5, 0.3), Categorical([0.1, 0.2, 0.7])])
    k = np.arange(-1, 8)
    p = 0.25 * st.binom(5, 0.3).pmf(k)
    p[1:4] += 0.75 * np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(law.pmf(k), p, rtol=1e-12)
    np.testing.assert_array_equal(law.logpmf(k), law.logpdf(k))
    np.testing.assert_allclose(law.cdf(k), np.cumsum(p), rtol=1e-12)
    assert law.entropy() == pytest.approx(st.entropy(p), rel=1e-12)
    np.testing.assert_array_equal(law.icdf([0.0, 0.3, 0.5, 1.0]), [0, 1, 2, 5])
    assert law.sample(100, 0).dtype.kind == "i"
    assert law.discrete
    assert law.mean == pytest.approx(k @ p, rel=1e-13)
    assert law.var == pytest.approx((k - law.mean) ** 2 @ p, rel=1e-13)


def test_mixture_of_vectors_and_missing_entries():
    parts = [MultivariateNormal([0, 0], [[1, 0.5], [0.5, 2]]), MultivariateNormal([3, -1], np.eye(2))]
    law = Mixture([0.4, 0.6], parts)
    x = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(law.pdf(x), 0.4 * parts[0].pdf(x) + 0.6 * parts[1].pdf(x), rtol=1e-12)
    x[3, 1] = np.nan
    marginal = Mixture([0.4, 0.6], [Normal(0, 1), Normal(3, 1)])
    assert law.logpdf(x)[3] == pytest.approx(marginal.logpdf(x[3, 0]), rel=1e-12)
    draws = law.sample(100_000, 0)
    np.testing.assert_allclose(draws.mean(axis=0), law.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), law.cov, atol=0.06)
    np.testing.assert_allclose(np.diag(law.cov), law.var, rtol=1e-13)
    assert law.logpdf_gradient(x[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match="has no formula"):
        law.entropy()


def test_there_is_no_fit_and_bad_input_is_refused():
    assert not hasattr(Mixture, "fit")
    for make, message in [
        (lambda: Mixture([0.5, 0.5], [Normal(0, 1)]), "one distribution for each"),
        (lambda: Mixture([0.5, 0.6], [Normal(0, 1), Normal(1, 1)]), "sum to 1"),
        (lambda: Mixture([1.0], ["normal"]), "one distribution for each"),
        (lambda: Mixture([0.5, 0.5], [Normal(0, 1), Bernoulli(0.5)]), "all discrete"),
        (lambda: Mixture([0.5, 0.5], [Dirichlet([1, 1]), MultivariateNormal([0], [[1]])]), "vectors of one length"),
        (lambda: Mixture([0.5, 0.5], [Exponential(1), Gamma(1, 2)]).responsibilities(-1.0), "density zero"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()
