"""Uniform bounds over half-spaces: worked numbers, the vacuity table, and what the hypergeometric proof needs."""

from math import log, sqrt

import numpy as np
import pytest
from scipy.stats import binom

from lemmata.theory.bounds.growth import log_boosted_stumps, log_cover, log_stumps, log_trees
from lemmata.theory.bounds.tails import log_hypergeometric_cdf
from lemmata.theory.bounds.uniform import (
    devroye_bound,
    hypergeometric_bound,
    realizable_vc_bound,
    relative_bound,
    vapnik_bound,
    vc_bound,
)

DELTA = 0.05
SIZES = (100, 1000, 10_000)


def half_spaces(d):
    return lambda m: log_cover(m, d)


TEN = half_spaces(10)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(vc_bound(0.05, 10_000, TEN, DELTA, sides=2), 0.316838, id="3.1 two-sided"),
        pytest.param(vc_bound(0.05, 10_000, TEN, DELTA), 0.315797, id="3.1 one-sided"),
        pytest.param(vapnik_bound(0.05, 10_000, TEN, DELTA), 0.144442, id="3.2"),
        pytest.param(devroye_bound(0.05, 10_000, TEN, DELTA), 0.143431, id="3.3"),
        pytest.param(relative_bound(0.05, 10_000, TEN, DELTA), 0.113593, id="3.4"),
        pytest.param(realizable_vc_bound(10_000, TEN, DELTA), 0.025481, id="3.5"),
        pytest.param(hypergeometric_bound(500, 10_000, TEN, DELTA), 0.089925, id="3.6"),
        pytest.param(hypergeometric_bound(50, 1000, TEN, DELTA), 0.190750, id="3.6 n=1000"),
        pytest.param(hypergeometric_bound(0, 1000, TEN, DELTA), 0.080500, id="3.6 no errors"),
        pytest.param(hypergeometric_bound(500, 10_000, TEN, DELTA, 10_000), 0.098000, id="3.6 ghost n"),
        pytest.param(hypergeometric_bound(500, 10_000, TEN, DELTA, 80_000), 0.0891875, id="3.6 ghost 8n"),
        pytest.param(hypergeometric_bound(500, 10_000, TEN, DELTA, 160_000), 0.08946875, id="3.6 ghost 16n"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("bound", "d", "expected"),
    [
        pytest.param(lambda n, g: vc_bound(0.05, n, g, DELTA, 2), 2, [1.1445, 0.4458, 0.1891], id="3.1 d=2"),
        pytest.param(lambda n, g: vc_bound(0.05, n, g, DELTA, 2), 10, [1.8988, 0.7764, 0.3168], id="3.1 d=10"),
        pytest.param(lambda n, g: vc_bound(0.05, n, g, DELTA, 2), 100, [3.4255, 1.8364, 0.7607], id="3.1 d=100"),
        pytest.param(lambda n, g: vapnik_bound(0.05, n, g, DELTA), 2, [0.4470, 0.1909, 0.0993], id="3.2 d=2"),
        pytest.param(lambda n, g: vapnik_bound(0.05, n, g, DELTA), 10, [0.7137, 0.3078, 0.1444], id="3.2 d=10"),
        pytest.param(lambda n, g: vapnik_bound(0.05, n, g, DELTA), 100, [1.2534, 0.6826, 0.3014], id="3.2 d=100"),
        pytest.param(lambda n, g: devroye_bound(0.05, n, g, DELTA), 2, [0.4014, 0.1776, 0.0955], id="3.3 d=2"),
        pytest.param(lambda n, g: devroye_bound(0.05, n, g, DELTA), 10, [0.7074, 0.3044, 0.1434], id="3.3 d=10"),
        pytest.param(lambda n, g: devroye_bound(0.05, n, g, DELTA), 100, [1.7534, 0.7669, 0.3225], id="3.3 d=100"),
        pytest.param(lambda n, g: relative_bound(0.05, n, g, DELTA), 2, [0.6954, 0.1630, 0.0774], id="3.4 d=2"),
        pytest.param(lambda n, g: relative_bound(0.05, n, g, DELTA), 10, [1.8077, 0.3568, 0.1136], id="3.4 d=10"),
        pytest.param(lambda n, g: relative_bound(0.05, n, g, DELTA), 100, [5.7966, 1.6942, 0.3453], id="3.4 d=100"),
        pytest.param(lambda n, g: realizable_vc_bound(n, g, DELTA), 2, [0.4120, 0.0545, 0.0068], id="3.5 d=2"),
        pytest.param(lambda n, g: realizable_vc_bound(n, g, DELTA), 10, [1.2129, 0.1883, 0.0255], id="3.5 d=10"),
        pytest.param(lambda n, g: realizable_vc_bound(n, g, DELTA), 100, [4.0895, 1.1490, 0.1820], id="3.5 d=100"),
        pytest.param(lambda n, g: hypergeometric_bound(n // 20, n, g, DELTA), 2, [0.2775, 0.1095, 0.0680], id="3.6 d=2"),
        pytest.param(lambda n, g: hypergeometric_bound(n // 20, n, g, DELTA), 10, [0.5575, 0.1908, 0.0899], id="3.6 d=10"),
        pytest.param(lambda n, g: hypergeometric_bound(n // 20, n, g, DELTA), 100, [1.0, 0.5495, 0.1906], id="3.6 d=100"),
        pytest.param(lambda n, g: hypergeometric_bound(0, n, g, DELTA), 2, [0.1675, 0.0230, 0.0029], id="3.6 no errors d=2"),
        pytest.param(lambda n, g: hypergeometric_bound(0, n, g, DELTA), 10, [0.45, 0.0805, 0.0109], id="3.6 no errors d=10"),
        pytest.param(lambda n, g: hypergeometric_bound(0, n, g, DELTA), 100, [1.0, 0.4345, 0.0781], id="3.6 no errors d=100"),
    ],
)
def test_vacuity_table(bound, d, expected):
    np.testing.assert_allclose([bound(n, half_spaces(d)) for n in SIZES], expected, atol=5.1e-5)


@pytest.mark.parametrize(
    ("log_growth", "delta", "expected"),
    [
        pytest.param(lambda m: log_trees(m, 10, 8), DELTA / 72, [0.7025, 0.2165, 0.0932], id="tree, 8 leaves"),
        pytest.param(lambda m: log_boosted_stumps(m, 10, 20), DELTA, [0.9975, 0.4190, 0.1453], id="20 stumps"),
        pytest.param(lambda m: log_boosted_stumps(m, 10, 100), DELTA, [1.0, 0.8505, 0.2970], id="100 stumps"),
    ],
)
def test_vacuity_table_of_other_classes(log_growth, delta, expected):
    np.testing.assert_allclose([hypergeometric_bound(n // 20, n, log_growth, delta) for n in SIZES], expected, atol=5.1e-5)


@pytest.mark.parametrize("d", [2, 10, 100])
@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_hypergeometric_is_below_all_others(d, n):
    growth = half_spaces(d)
    for errors in (0, n // 20, n // 4):
        least = hypergeometric_bound(errors, n, growth, DELTA)
        others = [f(errors / n, n, growth, DELTA) for f in (vc_bound, vapnik_bound, devroye_bound, relative_bound)]
        assert least <= min(1.0, *others)
    assert hypergeometric_bound(0, n, growth, DELTA) <= min(1.0, realizable_vc_bound(n, growth, DELTA))


@pytest.mark.parametrize(("n", "step"), [(60, 1), (200, 1), (2000, 10)])
def test_threshold_of_errors_grows_with_the_errors_seen(n, step):
    growth = half_spaces(5)
    totals = np.array([k + 4 * n * hypergeometric_bound(k, n, growth, DELTA) for k in range(0, n + 1, step)])
    assert (np.diff(totals) >= -1e-9).all()


def test_threshold_is_the_least_improbable_one():
    n, ghost, errors = 50, 120, 4
    goal = log(DELTA / 2) - log_stumps(n + ghost, 3)
    more = round(hypergeometric_bound(errors, n, lambda m: log_stumps(m, 3), DELTA, ghost) * ghost)
    assert log_hypergeometric_cdf(errors, n + ghost, errors + more, n) <= goal
    assert log_hypergeometric_cdf(errors, n + ghost, errors + more - 1, n) > goal


@pytest.mark.parametrize("p", [0.02, 0.1, 0.35, 0.6])
def test_covers_a_single_hypothesis(p):
    n = 80
    bounds = np.array([hypergeometric_bound(k, n, lambda m: 0.0, DELTA) for k in range(n + 1)])
    assert binom.pmf(np.arange(n + 1), n, p)[bounds <= p].sum() <= DELTA


@pytest.mark.parametrize("noise", [0.5, 0.05, 0.0])
def test_covers_the_worst_threshold_of_each_sample(noise):
    """All thresholds on [0, 1], labels x > ½ with noise; of every sample the h that is farthest above its bound."""
    rng = np.random.default_rng(1)
    n, grid = 100, np.linspace(0, 1, 401)
    risks = noise + (1 - 2 * noise) * np.abs(grid - 0.5)
    table = np.array([hypergeometric_bound(k, n, half_spaces(1), DELTA) for k in range(n + 1)])
    missed = 0
    for _ in range(300):
        x = rng.random(n)
        y = (x > 0.5) ^ (rng.random(n) < noise)
        errors = ((x[:, None] > grid) != y[:, None]).sum(axis=0)
        missed += bool((risks > table[errors]).any() or (1 - risks > table[n - errors]).any())
    assert missed / 300 <= DELTA


def test_devroye_solves_its_equation():
    growth = half_spaces(3)
    eps = devroye_bound(0.0, 500, growth, DELTA)
    assert log(4) + 4 * eps + 4 * eps**2 + growth(500**2) - 2 * 500 * eps**2 == pytest.approx(log(DELTA), abs=1e-9)


def test_relative_bound_solves_its_inequality():
    risk = relative_bound(0.05, 1000, TEN, DELTA)
    eps = (risk - 0.05) / sqrt(risk)
    assert log(4) + TEN(2000) - 1000 * eps**2 / 4 == pytest.approx(log(DELTA), rel=1e-12)


def test_vapnik_keeps_the_term_that_is_dropped():
    dropped = 0.05 + sqrt((TEN(20_000) + log(4 / DELTA)) / 10_000)
    assert vapnik_bound(0.05, 10_000, TEN, DELTA) == pytest.approx(dropped + 1e-4, rel=1e-14)


def test_numpy_numbers_come_back_as_floats():
    values = [f(np.float64(0.1), np.int64(50), TEN, DELTA) for f in (vc_bound, vapnik_bound, devroye_bound, relative_bound)]
    values += [hypergeometric_bound(np.int64(5), np.int64(50), TEN, DELTA), realizable_vc_bound(np.int64(50), TEN, DELTA)]
    assert all(type(value) is float for value in values)


def test_realizable_bound_is_not_below_what_its_proof_needs():
    assert realizable_vc_bound(100, lambda m: log(2), 0.9) == 0.08


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vc_bound(0.1, 100, TEN, DELTA, sides=3), "sides"),
        (lambda: vc_bound(1.1, 100, TEN, DELTA), "in \\[0, 1\\]"),
        (lambda: hypergeometric_bound(5, 4, TEN, DELTA), "more errors"),
        (lambda: hypergeometric_bound(5, 10, TEN, DELTA, ghost=0), "ghost"),
        (lambda: hypergeometric_bound(5, 10, lambda m: np.inf, DELTA), "log_growth"),
        (lambda: vapnik_bound(0.1, 10, lambda m: -1.0, DELTA), "log_growth"),
        (lambda: devroye_bound(0.1, 2, TEN, DELTA), "n must be"),
        (lambda: relative_bound(0.1, 10, TEN, 0.0), "delta"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
