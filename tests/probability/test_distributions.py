"""Distributions on the line and of whole numbers: SciPy, exact fractions, 60 digits; tails, ends, immutability, errors."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats as st
from scipy.integrate import quad
from scipy.special import betainc, expit

from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    LogisticDistribution,
    Normal,
)

CONTINUOUS = [
    (Normal(0, 1), st.norm(0, 1)),
    (Normal(-3.5, 20), st.norm(-3.5, 20)),
    (LogisticDistribution(0, 1), st.logistic(0, 1)),
    (LogisticDistribution(2, 0.25), st.logistic(2, 0.25)),
    (Exponential(2), st.expon(scale=0.5)),
    (Exponential(1e-3), st.expon(scale=1e3)),
    (Gamma(0.3, 2), st.gamma(0.3, scale=0.5)),
    (Gamma(1, 1), st.gamma(1)),
    (Gamma(7.5, 0.1), st.gamma(7.5, scale=10)),
    (Gamma(1e5, 3), st.gamma(1e5, scale=1 / 3)),
    (Beta(0.5, 0.5), st.beta(0.5, 0.5)),
    (Beta(2, 3), st.beta(2, 3)),
    (Beta(1, 1), st.beta(1, 1)),
    (Beta(100, 50), st.beta(100, 50)),
    (Beta(0.2, 40), st.beta(0.2, 40)),
]
DISCRETE = [
    (Bernoulli(0.3), st.bernoulli(0.3)),
    (Bernoulli(0), st.bernoulli(0)),
    (Bernoulli(1), st.bernoulli(1)),
    (Binomial(10, 0.3), st.binom(10, 0.3)),
    (Binomial(1000, 0.999), st.binom(1000, 0.999)),
    (Binomial(7, 1), st.binom(7, 1)),
    (Binomial(7, 0), st.binom(7, 0)),
    (Binomial(0, 0.5), st.binom(0, 0.5)),
    (Categorical([0.2, 0.5, 0.3]), st.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
    (Categorical([0.5, 0, 0.5]), st.rv_discrete(values=([0, 1, 2], [0.5, 0, 0.5]))),
]
U = np.array([1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999])


def label(pair):
    return repr(pair[0]) if not isinstance(pair[0], Categorical) else f"Categorical{len(pair[0].p)}"


@pytest.mark.parametrize("pair", CONTINUOUS, ids=label)
def test_continuous_agrees_with_scipy(pair):
    ours, theirs = pair
    x = theirs.ppf(U)
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.pdf(x), theirs.pdf(x), rtol=1e-8)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.icdf(U), x, rtol=1e-10)
    np.testing.assert_allclose([ours.mean, ours.var], theirs.stats(), rtol=1e-13, atol=1e-13)
    assert ours.entropy() == pytest.approx(float(theirs.entropy()), rel=1e-9, abs=1e-9)
    h = 1e-6 * np.minimum(theirs.std(), x - ours.support[0])[1:-1]
    numeric = (theirs.logpdf(x[1:-1] + h) - theirs.logpdf(x[1:-1] - h)) / (2 * h)
    np.testing.assert_allclose(ours.logpdf_gradient(x[1:-1]), numeric, rtol=1e-4, atol=1e-4 / theirs.std())


@pytest.mark.parametrize("pair", DISCRETE, ids=label)
def test_discrete_agrees_with_scipy(pair):
    ours, theirs = pair
    k = np.arange(-1, ours.support[1] + 2)
    np.testing.assert_allclose(ours.pmf(k), theirs.pmf(k), rtol=1e-10, atol=1e-300)
    np.testing.assert_array_equal(ours.pmf(k), ours.pdf(k))
    np.testing.assert_array_equal(ours.logpmf(k), ours.logpdf(k))
    np.testing.assert_allclose(ours.cdf(k), theirs.cdf(k), rtol=1e-10)
    np.testing.assert_allclose(ours.cdf(k + 0.5), theirs.cdf(k), rtol=1e-10)
    assert (ours.pmf(k + 0.5) == 0).all()
    np.testing.assert_array_equal(ours.icdf([0.05, 0.35, 0.65, 0.95]), theirs.ppf([0.05, 0.35, 0.65, 0.95]))
    np.testing.assert_allclose([ours.mean, ours.var], theirs.stats(), rtol=1e-13, atol=1e-13)
    assert ours.entropy() == pytest.approx(float(theirs.entropy()), rel=1e-10, abs=1e-12)
    assert ours.pmf(ours.mode) == ours.pmf(k).max()
    assert ours.sample(5, 0).dtype.kind == "i"


def test_binomial_keeps_all_digits_of_exact_fractions():
    n, p = 1000, Fraction(3, 7)
    ours = Binomial(n, float(p))
    for k in (0, 1, 300, 428, 429, 700, 1000):
        exact = math.comb(n, k) * Fraction(ours.p) ** k * (1 - Fraction(ours.p)) ** (n - k)
        log = float(Decimal(exact.numerator).ln() - Decimal(exact.denominator).ln())
        assert ours.logpmf(k) == pytest.approx(log, rel=1e-13)
    assert Binomial(10**9, 0.5).logpmf(5 * 10**8) == pytest.approx(-0.5 * math.log(math.pi * 5e8), abs=1e-9)


def decimal_log_gamma(x):
    """Stirling's series in 60 digits, after shifting x above 60."""
    x, shift = Decimal(x), Decimal(0)
    while x < 60:
        shift += x.ln()
        x += 1
    tail = sum(Decimal(b.numerator) / b.denominator / (2 * n * (2 * n - 1)) / x ** (2 * n - 1) for n, b in BERNOULLI)
    two_pi = Decimal("6.283185307179586476925286766559005768394338798750211641949889")
    return (x - Decimal("0.5")) * x.ln() - x + two_pi.ln() / 2 + tail - shift


NUMERATORS = [1, -1, 1, -1, 5, -691, 7, -3617, 43867, -174611, 854513, -236364091]
DENOMINATORS = [6, 30, 42, 30, 66, 2730, 6, 510, 798, 330, 138, 2730]
BERNOULLI = [(n, Fraction(*b)) for n, b in enumerate(zip(NUMERATORS, DENOMINATORS, strict=True), start=1)]


@pytest.mark.parametrize("a", [1e-3, 0.7, 3.0, 19.9, 20.1, 1e6, 1e12])
def test_gamma_and_beta_densities_have_all_digits_for_any_shape(a):
    with localcontext() as context:
        context.prec = 60
        gamma, beta = Gamma(a, 2.5), Beta(a, 3 * a)
        for x in gamma.mean * (1 + np.array([-3, -0.5, 0, 1, 4]) * min(gamma.shape**-0.5, 0.2)):
            d = Decimal(float(x))
            exact = Decimal(a) * Decimal("2.5").ln() + (Decimal(a) - 1) * d.ln() - Decimal("2.5") * d - decimal_log_gamma(a)
            assert gamma.logpdf(x) == pytest.approx(float(exact), rel=1e-13, abs=3e-14)
        for x in beta.mean * (1 + np.array([-3, -0.5, 0, 1, 4]) * min(a**-0.5, 0.2)):
            d = Decimal(float(x))
            constant = (
                decimal_log_gamma(beta.a) + decimal_log_gamma(beta.b) - decimal_log_gamma(Decimal(beta.a) + Decimal(beta.b))
            )
            exact = (Decimal(beta.a) - 1) * d.ln() + (Decimal(beta.b) - 1) * (1 - d).ln() - constant
            # a rounding of x or 1 − x by itself moves the log density by gradient · x · ε
            noise = 1e-15 * abs(beta.logpdf_gradient(x)) * x
            assert beta.logpdf(x) == pytest.approx(float(exact), rel=1e-13, abs=1e-13 + noise)


def test_tails_are_finite_in_the_log_domain_and_ends_are_right():
    assert Normal(0, 1).logpdf(1e150) == pytest.approx(-0.5e300, rel=1e-12)
    assert Normal(0, 1).logpdf(40.0) == pytest.approx(st.norm.logpdf(40.0), rel=1e-14)
    assert Normal(0, 1).pdf(40.0) == pytest.approx(np.exp(st.norm.logpdf(40.0)))
    assert Normal(0, 1).pdf(50.0) == 0
    assert LogisticDistribution(0, 1).logpdf([-1e300, 1e5]).tolist() == [-1e300, -1e5]
    assert Exponential(1).logpdf(1e300) == -1e300
    assert Gamma(2, 1).logpdf(1e300) == pytest.approx(-1e300)
    assert Gamma(0.5, 1).logpdf(1e-300) == pytest.approx(st.gamma(0.5).logpdf(1e-300), rel=1e-14)
    assert Beta(1e-3, 1).logpdf(1e-300) == pytest.approx(st.beta(1e-3, 1).logpdf(1e-300), rel=1e-13)
    assert Beta(1e6, 1e6).logpdf(1e-200) == pytest.approx(float(st.beta(1e6, 1e6).logpdf(1e-200)), rel=1e-12)
    for law in (Normal(0, 1), LogisticDistribution(0, 1), Exponential(1), Gamma(2, 1), Beta(2, 2), Gamma(0.5, 1)):
        assert law.logpdf([-np.inf, np.inf]).tolist() == [-np.inf, -np.inf]
        assert law.cdf([-np.inf, np.inf]).tolist() == [0, 1]
        assert np.isnan(law.logpdf(np.nan))
        assert np.isnan(law.cdf(np.nan))
        assert law.icdf([0, 1]).tolist() == list(law.support)
    for law in (Exponential(1), Gamma(2, 1), Beta(2, 2)):
        assert law.logpdf(-0.1) == -np.inf
        assert law.pdf(law.support[1] + 1.0) == 0
    assert Gamma(1, 3).pdf(0.0) == pytest.approx(3)
    assert [Gamma(0.5, 1).pdf(0.0), Gamma(2, 1).pdf(0.0)] == [np.inf, 0]
    assert [Beta(1, 2).pdf(0.0), Beta(2, 1).pdf(1.0)] == pytest.approx([2, 2])
    assert [Beta(0.5, 2).pdf(0.0), Beta(2, 0.5).pdf(1.0), Beta(2, 2).pdf(1.0)] == [np.inf, np.inf, 0]
    assert np.isnan(Binomial(3, 0.5).logpdf(np.nan))
    assert np.isnan(Binomial(3, 0.5).cdf(np.nan))
    assert Bernoulli(0.0).logpdf(1) == -np.inf
    assert Bernoulli(1e-20).logpdf(0) == -1e-20


def test_modes():
    assert Normal(3, 1).mode == 3
    assert LogisticDistribution(3, 1).mode == 3
    assert Exponential(3).mode == 0
    assert (Gamma(3, 2).mode, Gamma(0.5, 2).mode) == (1, 0)
    assert Beta(3, 2).mode == pytest.approx(2 / 3)
    assert [Beta(1, 3).mode, Beta(3, 1).mode, Beta(0.5, 3).mode, Beta(0.5, 1).mode, Beta(0.5, 0.9).mode] == [0, 1, 0, 0, 0]
    assert [Beta(1, 0.5).mode, Beta(0.9, 0.5).mode] == [1, 1]
    for tied in (Beta(1, 1), Beta(0.5, 0.5)):
        with pytest.raises(ValueError, match="many places"):
            _ = tied.mode
    assert (Binomial(5, 0.9).mode, Binomial(3, 0.5).mode) == (5, 2)
    np.testing.assert_array_equal(Categorical([0.25, 0.25, 0.5]).icdf([0.25, 0.5, 0.75]), [0, 1, 2])  # the least that reaches u
    assert (Bernoulli(0.5).mode, Bernoulli(0.6).mode, Binomial(4, 0.5).mode, Binomial(4, 1).mode) == (0, 1, 2, 4)


@pytest.mark.item("PRB-06")
def test_likelihood_of_a_sequence_is_that_of_its_counts():
    rng = np.random.default_rng(0)
    p = np.array([0.5, 0.2, 0.3])
    x = rng.choice(3, size=40, p=p)
    ordered = np.prod([p[k] for k in x])
    counts = np.bincount(x, minlength=3)
    assert np.exp(Categorical(p).logpdf(x).sum()) == pytest.approx(ordered, rel=1e-12)
    assert np.prod(p**counts) == pytest.approx(ordered, rel=1e-12)
    assert Categorical(p).logpdf(rng.permutation(x)).sum() == pytest.approx(np.log(ordered), rel=1e-13)
    tosses = (x == 0).astype(int)
    n, c = len(x), tosses.sum()
    for theta in (0.1, 0.5, 0.9):
        sequence = Bernoulli(theta).logpdf(tosses).sum()
        assert sequence == pytest.approx(c * math.log(theta) + (n - c) * math.log1p(-theta), rel=1e-13)
        assert Binomial(n, theta).logpdf(c) - sequence == pytest.approx(math.log(math.comb(n, c)), rel=1e-12)
    ratio = Binomial(n, 0.3).logpdf(c) - Binomial(n, 0.6).logpdf(c)  # no trace of the binomial coefficient
    assert ratio == pytest.approx(Bernoulli(0.3).logpdf(tosses).sum() - Bernoulli(0.6).logpdf(tosses).sum(), abs=1e-11)


@pytest.mark.item("PRB-08")
@pytest.mark.parametrize(("loc", "scale"), [(0, 1), (-2, 0.5), (100, 30)])
def test_logistic_distribution(loc, scale):
    law = LogisticDistribution(loc, scale)
    x = loc + scale * np.linspace(-30, 30, 61)
    F = 1 / (1 + np.exp(-(x - loc) / scale))
    np.testing.assert_allclose(law.cdf(x), F, rtol=1e-13)
    np.testing.assert_allclose(
        law.pdf(x), np.exp(-(x - loc) / scale) / (1 + np.exp(-(x - loc) / scale)) ** 2 / scale, rtol=1e-12
    )
    np.testing.assert_allclose(law.pdf(x)[:31], (F * (1 - F) / scale)[:31], rtol=1e-12)
    u = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(law.icdf(u), loc + scale * np.log(u / (1 - u)), rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(law.cdf(law.icdf(u)), u, rtol=1e-12)
    moments = [quad(lambda z, k=k: z**k * law.pdf(loc + scale * z) * scale, -60, 60, limit=200)[0] for k in range(3)]
    assert moments == pytest.approx([1, 0, math.pi**2 / 3], abs=1e-9)
    assert (law.mean, law.var) == (loc, pytest.approx(scale**2 * math.pi**2 / 3, rel=1e-15))
    assert LogisticDistribution(0, 1).var == pytest.approx(3.289868, abs=5e-7)
    np.testing.assert_array_equal(LogisticDistribution(0, 1).cdf(x), expit(x))


@pytest.mark.item("PRB-09")
@pytest.mark.parametrize(("loc", "scale"), [(0, 1), (1, 2), (-40, 0.1)])
def test_normal_density_has_the_mass_one_and_the_printed_one_has_not(loc, scale):
    law = Normal(loc, scale)
    x = loc + scale * np.linspace(-8, 8, 33)
    np.testing.assert_allclose(
        law.pdf(x), np.exp(-((x - loc) ** 2) / (2 * scale**2)) / (math.sqrt(2 * math.pi) * scale), rtol=1e-12
    )
    assert quad(law.pdf, loc - 40 * scale, loc + 40 * scale, points=[loc])[0] == pytest.approx(1, abs=1e-12)

    def printed(x):
        return np.exp(-((x - loc) ** 2) / (2 * scale**2)) / math.sqrt(2 * math.pi * scale)

    mass = quad(printed, loc - 40 * scale, loc + 40 * scale, points=[loc])[0]
    assert mass == pytest.approx(math.sqrt(scale), rel=1e-10)
    if scale == 2:
        assert mass == pytest.approx(1.414214, abs=5e-7)


@pytest.mark.parametrize("law", [law for law, _ in CONTINUOUS + DISCRETE], ids=lambda law: type(law).__name__)
def test_is_an_immutable_value_that_draws_reproducibly(law):
    twin = pickle.loads(pickle.dumps(copy.deepcopy(law)))
    assert twin == law
    assert hash(twin) == hash(law)
    assert law != Normal(123, 1)
    assert law != "law"
    name = next(iter(law.__dataclass_fields__))
    with pytest.raises(FrozenInstanceError):
        setattr(law, name, 0.5)
    draws = law.sample(2000, random_state=3)
    np.testing.assert_array_equal(draws, law.sample(2000, random_state=3))
    np.testing.assert_array_equal(draws, law.sample(2000, random_state=np.random.default_rng(3)))
    assert abs(draws.mean() - law.mean) <= 4.5 * math.sqrt(law.var / 2000) + 1e-12
    assert law.sample(0, 0).shape == (0,)
    scalar, array = law.logpdf(0.5), law.logpdf(np.full((2, 3), 0.5))
    assert np.ndim(scalar) == 0
    assert array.shape == (2, 3)
    assert (array == scalar).all()


def test_arrays_inside_cannot_be_changed():
    p = np.array([0.5, 0.5])
    law = Categorical(p)
    p[0] = 0.9
    assert law.p.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        law.p[0] = 0.9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(0, 0), "scale must be positive, got 0.0"),
        (lambda: Normal(np.nan, 1), "loc must be one finite number"),
        (lambda: Normal([0, 1], 1), "loc must be one finite number"),
        (lambda: LogisticDistribution(0, -1), "scale must be positive"),
        (lambda: Exponential(0), "rate must be positive"),
        (lambda: Gamma(np.inf, 1), "shape must be one finite number"),
        (lambda: Beta(1, -1), "b must be positive"),
        (lambda: Bernoulli(1.1), "p must be a probability between 0 and 1"),
        (lambda: Binomial(2.5, 0.5), "n must be a whole number"),
        (lambda: Binomial(-1, 0.5), "n must be a whole number"),
        (lambda: Categorical([0.5, 0.6]), "sum to 1"),
        (lambda: Categorical([-0.5, 1.5]), "at least 0"),
        (lambda: Categorical([]), "p must be a list of at least 1"),
        (lambda: Normal(0, 1).icdf(1.5), "between 0 and 1"),
        (lambda: Normal(0, 1).icdf(np.nan), "between 0 and 1"),
        (lambda: Normal(0, 1).sample(2.5), "whole number of draws"),
        (lambda: Gamma(2, 1).sample(-1), "whole number of draws"),
        (lambda: Normal(0, 1).sample((2, 3)), "whole number of draws"),
        (lambda: Normal(0, 1).sample(np.nan), "whole number of draws"),
        (lambda: Normal("a", 1), "loc must be numbers; got 'a'"),
        (lambda: Categorical(["a", "b"]), r"p must be numbers; got \['a', 'b'\]"),
        (lambda: Normal.fit(["a"]), r"The data must be numbers; got \['a'\]"),
    ],
)
def test_refuses_bad_parameters_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("a", "b"), [(2.0, 7.0), (1.0138, 0.1745), (6.5, 109.0), (3.93, 6.9e4)])
def test_quantiles_of_the_beta_distribution_far_out(a, b):
    u = np.concatenate([[0.0], 10.0 ** -np.arange(320.0, 0.0, -1.0)])
    x = Beta(a, b).icdf(u)
    assert x[0] == 0
    assert (np.diff(x) > 0).all()
    keep = u > 1e-290  # below, the distribution function itself leaves the numbers
    np.testing.assert_allclose(betainc(a, b, x[keep]), u[keep], rtol=1e-9)
