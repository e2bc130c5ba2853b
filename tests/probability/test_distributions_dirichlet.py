"""The gamma function and the Dirichlet distribution: identities, quadrature, evidence, modes on the boundary, extremes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats as st
from scipy.integrate import dblquad, quad
from scipy.special import digamma, gamma, gammaln, polygamma

from lemmata.probability.distributions import Beta, Categorical, Dirichlet, Gamma
from lemmata.probability.distributions.gamma_functions import (
    log_minus_digamma,
    log_rising,
    ratio_excess,
    stirling_remainder,
    trigamma_gap,
)


@pytest.mark.item("PRB-15")
def test_gamma_function_recursion_factorials_and_integral():
    for n in range(1, 30):
        assert log_rising(1.0, n) == pytest.approx(math.log(math.factorial(n)), rel=1e-14, abs=1e-15)
        assert gamma(n) == pytest.approx(math.factorial(n - 1), rel=1e-14)
    x = np.array([1e-8, 0.3, 1.0, 2.5, 19.0, 21.0, 1e5, 1e15])
    np.testing.assert_allclose(log_rising(x, 1), np.log(x), rtol=1e-14, atol=1e-14)  # Γ(x + 1) = x Γ(x)
    np.testing.assert_allclose(gamma(x[1:6] + 1), x[1:6] * gamma(x[1:6]), rtol=1e-13)
    np.testing.assert_allclose(log_rising(x, 2.5), log_rising(x, 1.5) + np.log(x + 1.5), rtol=1e-13)
    for a in (0.5, 1.0, 3.7, 30.0):
        integral = quad(lambda t, a=a: 2 * t ** (2 * a - 1) * math.exp(-t * t), 0, 40, points=[math.sqrt(a)])[0]  # t² for t
        assert gamma(a) == pytest.approx(integral, rel=1e-8)
        assert Gamma(a, 1).pdf(1.3) == pytest.approx(math.exp(-1.3) * 1.3 ** (a - 1) / integral, rel=1e-8)


@pytest.mark.parametrize("x", [1e-6, 0.01, 1.0, 15.0, 19.999, 20.0, 20.001, 100.0])
def test_remainders_are_what_they_say(x):
    stirling = (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi)
    assert stirling_remainder(x) == pytest.approx(gammaln(x) - stirling, rel=1e-9, abs=1e-13)
    assert log_minus_digamma(x) == pytest.approx(math.log(x) - digamma(x), rel=1e-12, abs=1e-14)
    assert trigamma_gap(x) == pytest.approx(x - 1 / polygamma(1, x), rel=1e-8, abs=1e-12)
    h = 1e-4 * x
    slope = (stirling_remainder(x + h) - stirling_remainder(x - h)) / (2 * h)  # S′ = 1/(2x) − L, as log Γ has the derivative ψ
    assert slope == pytest.approx(1 / (2 * x) - log_minus_digamma(x), rel=1e-5, abs=1e-9)


def test_ratio_excess():
    for y in (1e-3, 0.4, 0.6, 0.9, 1.0, 1.2, 3.0, 1e5):
        assert ratio_excess(y * 7, 7.0) == pytest.approx(y - 1 - math.log(y), rel=1e-12, abs=1e-15)
    assert ratio_excess(1e-300, 1e100) == pytest.approx(400 * math.log(10) - 1, rel=1e-14)
    assert ratio_excess(1 + 2.0**-40, 1.0) == pytest.approx(float(Fraction(1, 2**81) - Fraction(1, 3 * 2**120)), rel=1e-14)


@pytest.mark.item("PRB-16")
def test_density_moments_and_the_coin():
    coin = Dirichlet([100, 50])
    assert coin.mean[0] == pytest.approx(0.666667, abs=5e-7)
    assert coin.mode[0] == pytest.approx(0.668919, abs=5e-7)
    assert math.sqrt(coin.var[0]) == pytest.approx(0.038362, abs=5e-7)
    assert coin.pdf([2 / 3, 1 / 3]) > 1000 * coin.pdf([1 / 2, 1 / 2])  # weighted and fair coin: a sharp peak around 2/3
    x = np.linspace(0.01, 0.99, 50)
    for a, b in ((100, 50), (0.3, 4), (1, 1)):
        np.testing.assert_allclose(
            Dirichlet([a, b]).logpdf(np.stack([x, 1 - x], axis=1)), Beta(a, b).logpdf(x), rtol=1e-12, atol=1e-12
        )
        assert quad(Beta(a, b).pdf, 0, 1, points=[0.5, 2 / 3])[0] == pytest.approx(1, abs=1e-7)
    law = Dirichlet([2, 3, 1.5])
    mass = dblquad(lambda y, x: law.pdf([x, y, 1 - x - y]), 0, 1, 0, lambda x: 1 - x, epsabs=1e-5)[0]
    assert mass == pytest.approx(1, abs=1e-4)
    assert law.certify(n_draws=0)["mass"].value < 1e-10
    uniform = Dirichlet([1, 1, 1]).pdf(np.random.default_rng(0).dirichlet([1, 1, 1], size=10))
    np.testing.assert_allclose(uniform, 2, rtol=1e-13)
    draws = law.sample(50_000, 0)
    np.testing.assert_allclose(draws.mean(axis=0), law.mean, atol=5 * math.sqrt(law.var.max() / 50_000))
    np.testing.assert_allclose(np.cov(draws.T, ddof=0), law.cov, atol=1e-3)
    np.testing.assert_allclose(law.mode, (law.alpha - 1) / (law.alpha.sum() - 3), rtol=1e-14)
    assert (np.sort(Dirichlet(np.full(10, 0.01)).sample(200, 0), axis=1)[:, -1] > 0.9).mean() > 0.8  # small α: sparse draws
    assert (np.sort(Dirichlet(np.full(10, 10.0)).sample(200, 0), axis=1)[:, -1] > 0.9).mean() == 0


@pytest.mark.parametrize("alpha", [[2, 3, 4], [0.3, 0.5, 2, 9], [1, 1], [1e-3] * 3, [1e4, 2e4, 5e4]])
def test_agrees_with_scipy(alpha):
    ours, theirs = Dirichlet(alpha), st.dirichlet(alpha)
    x = np.random.default_rng(0).dirichlet(np.ones(len(alpha)), size=20)
    np.testing.assert_allclose(ours.logpdf(x), [theirs.logpdf(row) for row in x], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ours.mean, theirs.mean(), rtol=1e-13)
    np.testing.assert_allclose(ours.var, theirs.var(), rtol=1e-10)
    np.testing.assert_allclose(ours.cov, theirs.cov(), rtol=1e-10)
    assert ours.entropy() == pytest.approx(theirs.entropy(), rel=1e-9)


@pytest.mark.item("PRB-17")
def test_posterior_predictive_and_evidence():
    prior, counts = Dirichlet([1, 1, 1]), [3, 0, 1]
    after = prior.update(counts)
    np.testing.assert_array_equal(after.alpha, [4, 1, 2])
    np.testing.assert_allclose(after.predictive().p, [0.571429, 0.142857, 0.285714], atol=5e-7)
    assert math.exp(prior.log_marginal(counts)) == pytest.approx(1 / 60, rel=1e-13)
    np.testing.assert_array_equal(prior.predictive().p, prior.mean)
    prior = Dirichlet([0.5, 2, 3.25])
    data = [0, 2, 2, 1, 0, 2]
    whole = prior.log_marginal(np.bincount(data))
    for order in itertools.islice(itertools.permutations(data), 0, 720, 37):
        law, chain = prior, 0.0
        for k in order:
            chain += law.predictive().logpmf(k)
            law = law.update(np.eye(3)[k])
        assert chain == pytest.approx(whole, rel=1e-13)
        assert law == prior.update(np.bincount(data))


@pytest.mark.item("PRB-17")
def test_evidence_sums_to_one_over_all_sequences_and_the_printed_one_does_not():
    alpha = [Fraction(1, 2), Fraction(2), Fraction(3)]
    prior = Dirichlet([float(a) for a in alpha])
    sequences = [np.bincount(s, minlength=3) for s in itertools.product(range(3), repeat=4)]
    assert np.exp(prior.log_marginal(sequences)).sum() == pytest.approx(1, rel=1e-13)

    def rising(a, n):
        return math.prod((a + i for i in range(n)), start=Fraction(1))

    for counts in sequences:
        exact = math.prod((rising(a, int(c)) for a, c in zip(alpha, counts, strict=True)), start=Fraction(1)) / rising(
            sum(alpha), 4
        )
        assert math.exp(prior.log_marginal(counts)) == pytest.approx(float(exact), rel=1e-13)
    constant = gammaln(5.5) - gammaln(9.5)
    for other in range(3):  # Γ(α_k′) with one fixed k′ where Γ(α_k) is meant
        printed = [constant + (gammaln(c + prior.alpha) - gammaln(prior.alpha[other])).sum() for c in sequences]
        assert abs(np.exp(printed).sum() - 1) > 0.1


def test_mode_on_the_boundary():
    def truncated(alpha, epsilon):
        """The maximum of the density over θ ≥ ε, by brute force."""
        grid = np.append(np.linspace(epsilon, 1 - epsilon * (len(alpha) - 1), 400), [])
        points = np.array([(*p, 1 - sum(p)) for p in itertools.product(grid, repeat=len(alpha) - 1)])
        points = points[points[:, -1] >= epsilon * (1 - 1e-9)]
        return points[np.argmax(np.log(points) @ (np.array(alpha) - 1))]

    for alpha in ([0.5, 2], [0.2, 0.3], [3, 2, 0.5], [0.5, 1, 4], [0.3, 0.9, 0.8], [0.5, 1, 0.2], [1, 1, 2]):
        np.testing.assert_allclose(Dirichlet(alpha).mode, truncated(alpha, 1e-6), atol=0.01)
        np.testing.assert_array_equal(Dirichlet(alpha).map(), Dirichlet(alpha).mode)
    for alpha in ([1, 1], [0.5, 0.5], [0.2, 1, 1], [1, 1, 1]):
        with pytest.raises(ValueError, match="many places"):
            Dirichlet(alpha).map()
    np.testing.assert_allclose(Dirichlet([2, 2, 2]).update([3, 0, 1]).map(), [4 / 7, 1 / 7, 2 / 7], rtol=1e-14)
    naive = (np.array([3.5, 0.5, 1.5]) - 1) / (5.5 - 3)  # the interior formula, where an entry is below 1
    assert naive.min() < 0
    np.testing.assert_allclose(Dirichlet([0.5, 0.5, 0.5]).update([3, 0, 1]).map(), [5 / 6, 0, 1 / 6], rtol=1e-14)


def test_extreme_concentrations_and_counts():
    sharp = Dirichlet([1e6, 1e6, 1e6])
    center = np.full(3, 1 / 3)
    cov = sharp.cov[:2, :2]
    normal = -0.5 * np.linalg.slogdet(2 * np.pi * cov)[1]  # nearly normal
    assert sharp.logpdf(center) == pytest.approx(normal, abs=1e-5)
    assert sharp.entropy() == pytest.approx(1 - normal, abs=1e-5)
    assert Dirichlet([1e-3] * 3).logpdf([1e-300, 1e-300, 1.0]) > 1000
    assert np.isfinite(Dirichlet([1e-3] * 3).entropy())
    huge = Dirichlet([1e15, 1e15])
    assert huge.log_marginal([1, 0]) == pytest.approx(math.log(0.5), rel=1e-14)
    assert huge.log_marginal([2, 1]) == pytest.approx(3 * math.log(0.5), rel=1e-14)
    flat = Dirichlet([1, 1])
    n = 10**12  # Beta(n + 1, n + 1): the evidence is B(n + 1, n + 1), about 2⁻²ⁿ √(π/n)/2
    stirling = -2 * n * math.log(2) + 0.5 * math.log(math.pi / n) - math.log(2)
    assert flat.log_marginal([n, n]) == pytest.approx(stirling, rel=1e-11)
    assert flat.log_marginal([0, 0]) == 0
    assert flat.log_marginal([1e15, 0]) == pytest.approx(-math.log(1e15 + 1), rel=1e-14)
    assert Dirichlet([1e-3, 1e-3]).log_marginal([1e12, 0]) == pytest.approx(
        gammaln(2e-3) - gammaln(1e-3) - 1e-3 * math.log(1e12), rel=1e-9
    )  # Γ(n + ε)/Γ(n + 2ε) → n^(−ε)


def test_off_the_simplex_zeros_and_nan():
    law = Dirichlet([1, 2, 0.5])
    assert law.logpdf([0.5, 0.5, 0.5]) == -np.inf
    assert law.logpdf([1.5, -0.5, 0.0]) == -np.inf
    assert law.logpdf([0.5, 0, 0.5]) == -np.inf
    assert law.logpdf([0.5, 0.5, 0]) == np.inf
    assert np.isnan(law.logpdf([np.nan, 0.5, 0.5]))
    assert law.logpdf([0, 0.5, 0.5]) == pytest.approx(st.dirichlet([1, 2, 0.5]).logpdf([1e-15, 0.5, 0.5]), rel=1e-12)
    assert law.predictive() == Categorical(law.mean)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dirichlet([1]), "at least 2"),
        (lambda: Dirichlet([1, 0]), "alpha must be positive"),
        (lambda: Dirichlet([1, 1]).update([1, -1]), "none negative"),
        (lambda: Dirichlet([1, 1]).update([[1, 1]]), "Counts must be 2"),
        (lambda: Dirichlet([1, 1]).update([1, 1, 1]), "2 entries"),
        (lambda: Dirichlet([1, 1]).log_marginal([np.nan, 1]), "Counts must be 2"),
        (lambda: Dirichlet([1, 1]).logpdf([1.0]), "2 entries"),
    ],
)
def test_refuses_bad_input_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
