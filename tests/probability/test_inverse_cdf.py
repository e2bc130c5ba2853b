"""Inverse-CDF sampling: quantiles known to all digits, Kolmogorov and Smirnov's test, the ends, the printed formula."""

import math

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import erf, erfinv

from lemmata.probability.distributions import Beta, Categorical, Exponential, Gamma, LogisticDistribution, Mixture, Normal
from lemmata.probability.inverse_cdf import inverse_cdf_sample

LAWS = [
    (Normal(0, 1), st.norm()),
    (Normal(5, 0.1), st.norm(5, 0.1)),
    (Exponential(2), st.expon(scale=0.5)),
    (LogisticDistribution(1, 2), st.logistic(1, 2)),
    (Gamma(2, 3), st.gamma(2, scale=1 / 3)),
    (Beta(0.5, 2), st.beta(0.5, 2)),
]


@pytest.mark.item("SMP-03")
def test_quantiles_of_the_catalogue():
    assert Normal(0, 1).icdf(0.975) == pytest.approx(1.959964, abs=5e-7)
    assert Exponential(2).icdf(0.5) == pytest.approx(0.346574, abs=5e-7)
    assert LogisticDistribution(0, 1).icdf(0.9) == pytest.approx(2.197225, abs=5e-7)
    u = np.linspace(0.001, 0.999, 99)
    np.testing.assert_allclose(Normal(0, 1).icdf(u), math.sqrt(2) * erfinv(2 * u - 1), rtol=1e-12, atol=1e-15)


@pytest.mark.item("SMP-03")
@pytest.mark.parametrize(("law", "theirs"), LAWS, ids=lambda law: type(law).__name__)
def test_draws_pass_kolmogorov_and_smirnov_and_the_cdf_undoes_the_quantile(law, theirs):
    x = inverse_cdf_sample(law.icdf, 20_000, random_state=1)
    assert st.kstest(x, theirs.cdf).pvalue > 1e-3
    assert st.kstest(x, Normal(0.02, 1).cdf if theirs.dist.name != "norm" else Normal(0.3, 1).cdf).pvalue < 1e-3  # it can fail
    u = np.linspace(0.0005, 0.9995, 1000)
    np.testing.assert_allclose(law.cdf(law.icdf(u)), u, rtol=1e-11)


@pytest.mark.item("SMP-03")
def test_the_printed_inverse_is_not_that_of_a_uniform_number_on_the_unit_interval():
    def half(x):  # ∫₀ˣ of the normal density, which the notes call erf
        return erf(x / math.sqrt(2)) / 2

    x = np.linspace(-8, 8, 101)
    assert half(x).min() >= -0.5
    assert half(x).max() <= 0.5
    u = (np.arange(5000) + 0.5) / 5000
    with np.errstate(invalid="ignore"):
        printed = math.sqrt(2) * erfinv(2 * u)  # the inverse of that function
    assert np.isnan(printed[u > 0.5]).all()  # half of the uniform numbers have no image
    assert (printed[u < 0.5] > 0).all()  # and the others give positive numbers only
    assert st.kstest(erfinv(u), st.norm().cdf).pvalue < 1e-12  # nor is it the usual erf's inverse
    shifted = math.sqrt(2) * erfinv(2 * (u - 0.5))  # on (−½, ½) it is right
    assert st.kstest(shifted, st.norm().cdf).pvalue > 0.9


def test_discrete_and_mixture_quantiles_sample_too():
    p = [0.1, 0.6, 0.3]
    counts = np.bincount(inverse_cdf_sample(Categorical(p).icdf, 10_000, 0), minlength=3)
    assert st.chisquare(counts, 10_000 * np.array(p)).pvalue > 1e-3
    law = Mixture([0.5, 0.5], [Normal(-3, 1), Normal(3, 0.2)])
    assert st.kstest(inverse_cdf_sample(law.icdf, 5000, 0), law.cdf).pvalue > 1e-3


def test_never_sends_zero_or_one_and_is_reproducible():
    seen = inverse_cdf_sample(lambda u: u, 100_000, 0)
    assert seen.min() > 0
    assert seen.max() < 1
    assert st.kstest(seen, "uniform").pvalue > 1e-3
    extremes = []

    class Ends(np.random.Generator):
        def integers(self, high, size):
            return np.array([0, high - 1])

    inverse_cdf_sample(lambda u: extremes.extend(u) or u, 2, Ends(np.random.PCG64(0)))
    assert 0 < extremes[0] < extremes[1] < 1
    np.testing.assert_array_equal(seen, inverse_cdf_sample(lambda u: u, 100_000, np.random.default_rng(0)))
    assert inverse_cdf_sample(lambda u: u, 0).shape == (0,)
    with pytest.raises(ValueError, match=r"pass distribution\.icdf"):
        inverse_cdf_sample(Normal(0, 1), 3)
    with pytest.raises(ValueError, match="whole number of draws"):
        inverse_cdf_sample(Normal(0, 1).icdf, -3)
