"""Tails and inversions against exact fractions, SciPy, and each other; constants of PAC-Bayes by their definition."""

from fractions import Fraction
from math import comb, exp, log, log1p, pi, sqrt

import numpy as np
import pytest
from scipy.special import betainccinv
from scipy.stats import binom, hypergeom

from lemmata.theory.bounds import tails
from lemmata.theory.bounds.tails import (
    bernoulli_kl,
    binomial_upper,
    exponential_upper,
    grid_weight,
    integer_weight,
    kl_lower,
    kl_upper,
    log_binomial_cdf,
    log_choose,
    log_hypergeometric_cdf,
    pac_bayes_constant,
)


def log_of(fraction):
    """Return the logarithm of an exact probability, right at both ends."""
    return log(fraction) if 2 * fraction < 1 else log1p(-float(1 - fraction))


def test_log_choose_is_exact():
    n = np.repeat(np.arange(120), 120)
    k = np.tile(np.arange(120), 120)
    n, k = n[k <= n], k[k <= n]
    exact = np.array([log(comb(a, b)) for a, b in zip(n.tolist(), k.tolist(), strict=True)])
    np.testing.assert_allclose(log_choose(n, k), exact, rtol=1e-13, atol=1e-13)
    for n, k in [(10**10, 3), (10**8, 10), (10**5, 3 * 10**4), (10**6, 10**6 - 1), (0, 0)]:
        assert log_choose(n, k) == pytest.approx(log(comb(n, k)), rel=1e-14)
    with pytest.raises(ValueError, match="0 ≤ k ≤ n"):
        log_choose(3, 4)


@pytest.mark.parametrize("n", [1, 2, 7, 40, 90])
def test_log_binomial_cdf_against_exact_fractions(n):
    for p in (Fraction(1, 1024), Fraction(1, 8), Fraction(1, 2), Fraction(13, 16), Fraction(1023, 1024)):
        cumulated = Fraction(0)
        for k in range(n):
            cumulated += comb(n, k) * p**k * (1 - p) ** (n - k)
            assert log_binomial_cdf(k, n, float(p)) == pytest.approx(log_of(cumulated), rel=1e-12)
    assert log_binomial_cdf(-1, n, 0.3) == -np.inf
    assert log_binomial_cdf(n, n, 0.3) == 0
    assert log_binomial_cdf(n - 1, n, 1.0) == -np.inf
    assert log_binomial_cdf(0, n, 0.0) == 0


def test_log_binomial_cdf_of_a_million_trials():
    for k in (499_000, 500_000, 500_700):
        assert log_binomial_cdf(k, 10**6, 0.5) == pytest.approx(float(binom.logcdf(k, 10**6, 0.5)), rel=1e-9)
    exact = log(sum(comb(100_000, j) for j in range(101))) - 100_000 * log(2)
    assert log_binomial_cdf(100, 100_000, 0.5) == pytest.approx(exact, rel=1e-14)


def test_log_hypergeometric_cdf_against_exact_fractions():
    for population in (1, 5, 12):
        for marked in range(population + 1):
            for draws in range(population + 1):
                total = comb(population, draws)
                for k in range(-1, population + 1):
                    ways = sum(comb(marked, j) * comb(population - marked, draws - j) for j in range(min(k, draws) + 1))
                    found = log_hypergeometric_cdf(k, population, marked, draws)
                    assert found == (pytest.approx(log_of(Fraction(ways, total)), rel=1e-11, abs=1e-14) if ways else -np.inf)
    with pytest.raises(ValueError, match="cannot be more than the population"):
        log_hypergeometric_cdf(1, 3, 4, 2)


@pytest.mark.parametrize(("k", "marked"), [(60, 500), (99, 500), (100, 500), (105, 500), (150, 500), (3, 400)])
def test_log_hypergeometric_cdf_of_large_populations(k, marked):
    exact = sum(comb(marked, j) * comb(5000 - marked, 1000 - j) for j in range(k + 1))
    expected = log_of(Fraction(exact, comb(5000, 1000)))
    assert log_hypergeometric_cdf(k, 5000, marked, 1000) == pytest.approx(expected, rel=1e-11)
    for scale in (10, 200):  # to a million points
        found = log_hypergeometric_cdf(scale * 95, scale * 5000, scale * 500, scale * 1000)
        assert exp(found) == pytest.approx(float(hypergeom.cdf(scale * 95, scale * 5000, scale * 500, scale * 1000)), rel=1e-6)


@pytest.mark.parametrize("k", [0, 3, 30, 200, 299])
@pytest.mark.parametrize("log_delta", [-0.1, -3.0, -50.0, -500.0, -599.0])
def test_logarithmic_route_agrees_with_the_inverse_beta_function(monkeypatch, k, log_delta):
    by_beta = binomial_upper(k, 300, log_delta)
    assert by_beta == pytest.approx(float(betainccinv(k + 1, 300 - k, exp(log_delta))), abs=1e-15)
    monkeypatch.setattr(tails, "DEEP", 0.0)
    assert binomial_upper(k, 300, log_delta) == pytest.approx(by_beta, abs=3e-15)


@pytest.mark.parametrize("n", [10, 1000, 10**6])
@pytest.mark.parametrize("log_delta", [-0.05, -3.0, -599.0, -601.0, -5000.0])
def test_binomial_upper_solves_its_equation(n, log_delta):
    for k in {1, n // 100, n // 20, n // 2} - {0}:
        bound = binomial_upper(k, n, log_delta)
        if bound < 1 - 1e-9:
            assert log_binomial_cdf(k, n, bound) == pytest.approx(log_delta, rel=1e-9, abs=1e-9)
        else:
            assert log_binomial_cdf(k, n, 1 - 1e-9) >= log_delta


def test_binomial_upper_at_the_ends():
    assert binomial_upper(7, 7, -1.0) == 1
    assert binomial_upper(0, 500, -2000.0) == pytest.approx(1 - exp(-4), rel=1e-15)
    for k, n, log_delta, message in [(3, 2, -1.0, "more errors"), (0.5, 2, -1.0, "whole"), (1, 2, 0.0, "negative")]:
        with pytest.raises(ValueError, match=message):
            binomial_upper(k, n, log_delta)


def test_bernoulli_kl():
    q, p = np.array([0.0, 0.0, 0.3, 1.0, 1.0, 0.5]), np.array([0.0, 0.4, 0.6, 0.2, 1.0, 0.0])
    middle = 0.3 * log(0.5) + 0.7 * log(0.7 / 0.4)
    np.testing.assert_allclose(bernoulli_kl(q, p), [0, -log(0.6), middle, -log(0.2), 0, np.inf], rtol=1e-14)


def test_kl_inversions_round_outward_and_mirror_each_other():
    q = np.linspace(0, 1, 41)[:, None]
    budget = np.array([0.0, 1e-6, 1e-3, 0.1, 1.0, 20.0])
    upper, lower = kl_upper(q, budget), kl_lower(q, budget)
    assert (upper >= q).all()
    assert (lower <= q).all()
    np.testing.assert_allclose(lower, 1 - kl_upper(1 - q, budget), atol=3e-16)
    np.testing.assert_allclose(upper[0], -np.expm1(-budget), rtol=1e-12, atol=2e-16)  # the mean 0
    beyond = bernoulli_kl(q, upper) >= budget - 1e-15
    assert (beyond | (upper == 1)).all()
    assert (bernoulli_kl(q, np.maximum(upper - 4e-16, q)) <= budget + 1e-15).all()  # and nothing farther in is beyond
    with pytest.raises(ValueError, match="budget"):
        kl_upper(0.5, -0.1)
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        kl_upper(1.5, 0.1)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 37, 120])
def test_pac_bayes_constant_is_its_defining_sum(n):
    exact = sum(comb(n, k) * Fraction(k, n) ** k * (1 - Fraction(k, n)) ** (n - k) for k in range(n + 1))
    assert pac_bayes_constant(n) == pytest.approx(float(exact), rel=1e-14)


def test_pac_bayes_constant_and_its_upper_bound():
    """Section 0: ξ(1000) = 40.303213 against 2√1000 = 63.245553; ξ(n) ≤ 2√n, with equality at n = 1 only."""
    assert pac_bayes_constant(1000) == pytest.approx(40.303213, abs=5e-7)
    ratios = np.array([pac_bayes_constant(n) / (2 * sqrt(n)) for n in range(1, 3001)])
    assert ratios[0] == 1
    assert (ratios[1:] < 1).all()
    for n in (10**5, 10**7):
        assert pac_bayes_constant(n) == pytest.approx(sqrt(pi * n / 2) + 2 / 3, abs=1e-3)


def test_weights_sum_to_one():
    weights = np.cumsum([integer_weight(k) for k in range(1000)])
    np.testing.assert_allclose(weights, 1 - 1 / (np.arange(1000) + 2.0), rtol=1e-13)
    two_sided = sum(grid_weight(j) for j in range(-999, 1000))
    assert two_sided == pytest.approx(2 / 3 * (2 * (1 - 1 / 1001) - 1 / 2), rel=1e-13)  # tends to 2/3·(2 − ½) = 1
    with pytest.raises(ValueError, match="whole"):
        integer_weight(-1)


def test_exponential_upper_takes_the_least_of_its_rates():
    rates = [0.5, 1.0, 2.0]
    each = [(1 - exp(-r * 0.1 - (4 + log(3)) / 500)) / (1 - exp(-r)) for r in rates]
    assert exponential_upper(0.1, 4.0, 500, rates) == pytest.approx(min(each), rel=1e-14)
    for rates in ([], [0.0], [-1.0], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match="rates"):
            exponential_upper(0.1, 4.0, 500, rates)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, np.nan])
def test_delta_is_checked(delta):
    with pytest.raises(ValueError, match="delta is the probability"):
        tails.check_delta(delta)
