"""Margin bounds: worked numbers at the width where the grid is best, and Rademacher complexities by brute force."""

from itertools import product
from math import comb, log, sqrt

import numpy as np
import pytest

from lemmata.theory.bounds.growth import log_stumps
from lemmata.theory.bounds.margins import (
    boosting_margin_bound,
    empirical_rademacher,
    linear_rademacher,
    margin_bound,
    margin_bound_known_radius,
    ramp,
)

DELTA = 0.05


def margins(n, rho):
    """Return margins of which a tenth is wrong and the rest exactly ρ: the mean ramp is .1 up to ρ, and larger beyond."""
    return np.repeat([-1.0, rho], [n // 10, n - n // 10])


def stumps(m):
    return log_stumps(m, 10)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(margin_bound_known_radius(margins(10_000, 0.5), 1.0, DELTA), 0.157155, id="4.3 radius"),
        pytest.param(margin_bound(margins(10_000, 0.5), 10_000.0, DELTA), 0.194412, id="4.3 trace"),
        pytest.param(boosting_margin_bound(margins(10_000, 0.5), stumps, DELTA), 0.314789, id="4.4"),
        pytest.param(margin_bound_known_radius(margins(100, 0.5), 1.0, DELTA), 0.6716, id="10 r=1, n=100"),
        pytest.param(margin_bound_known_radius(margins(1000, 0.5), 1.0, DELTA), 0.2807, id="10 r=1, n=1000"),
        pytest.param(margin_bound_known_radius(margins(1000, 0.125), 1.0, DELTA), 0.6669, id="10 narrow, n=1000"),
        pytest.param(margin_bound_known_radius(margins(10_000, 0.125), 1.0, DELTA), 0.2793, id="10 narrow, n=10000"),
        pytest.param(boosting_margin_bound(margins(1000, 0.5), stumps, DELTA), 0.7172, id="10 boosting, n=1000"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7 if len(f"{expected}") > 6 else 5.1e-5)


def test_vacuous_where_the_table_says_so():
    assert margin_bound_known_radius(margins(100, 0.125), 1.0, DELTA) >= 1
    assert boosting_margin_bound(margins(100, 0.5), stumps, DELTA) >= 1


def test_grid_is_paid_for():
    """A single ρ fixed in advance would be cheaper; the weight 1/18 of j = −2 is what the choice costs."""
    n = 10_000
    fixed = 0.1 + 4 / sqrt(n) + sqrt(log(1 / DELTA) / (2 * n))
    paid = 0.1 + 4 / sqrt(n) + sqrt(log(18 / DELTA) / (2 * n))
    assert fixed < margin_bound_known_radius(margins(n, 0.5), 1.0, DELTA) == pytest.approx(paid, rel=1e-14)


@pytest.mark.parametrize("rho", [2.0**-6, 0.5, 1.0, 2.0**6])
def test_every_width_of_the_grid_can_win(rho):
    n = 10**6
    j = round(2 * np.log2(rho))
    weight = 2 / 3 / ((abs(j) + 1) * (abs(j) + 2))
    expected = 2 / rho * 1e-6 * 0.01 + 3 * sqrt(log(2 / (DELTA * weight)) / (2 * n))
    found = margin_bound(np.full(n, rho), trace=1e-4, delta=DELTA)
    assert found <= expected * (1 + 1e-12)
    assert margin_bound(np.full(1000, rho), 1000 * rho**2, DELTA) == pytest.approx(margin_bound_reference(1000, rho), rel=1e-12)


def margin_bound_reference(n, margin):
    """Return the bound of n equal margins with trace n·margin², by a plain loop."""
    best = np.inf
    for j in range(-12, 13):
        rho = sqrt(2) ** j
        confidence = 3 * sqrt(log(2 / DELTA * 1.5 * (abs(j) + 1) * (abs(j) + 2)) / (2 * n))
        best = min(best, min(max(1 - margin / rho, 0), 1) + 2 / rho * margin / sqrt(n) + confidence)
    return best


def test_ramp_is_above_the_error_and_lipschitz():
    t = np.linspace(-3, 3, 601)
    for rho in (0.1, 1.0, 2.5):
        values = ramp(t, rho)
        assert (values >= (t <= 0)).all()
        assert (values <= (t < rho)).all()
        assert np.abs(np.diff(values) / np.diff(t)).max() <= 1 / rho + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_rademacher_complexity_is_exact_for_few_points(seed):
    outputs = np.random.default_rng(seed).normal(size=(5, 7))
    brute = np.mean([max(np.dot(signs, f) for f in outputs) / 7 for signs in product([-1, 1], repeat=7)])
    found = empirical_rademacher(outputs)
    assert found.value == pytest.approx(brute, rel=1e-12)
    assert found.low == found.value == found.high


def test_rademacher_complexity_by_random_signs():
    n = 40
    exact = sum(comb(n, k) * abs(2 * k - n) for k in range(n + 1)) / 2**n / n  # of the two constants: E|Σσ|/n
    inside = 0
    for seed in range(60):
        found = empirical_rademacher([[1.0] * n, [-1.0] * n], draws=2000, delta=0.2, random_state=seed)
        inside += found.low <= exact <= found.high
    assert inside >= 48
    assert found.high - found.low == pytest.approx(2 / sqrt(n) * sqrt(2 * log(2 / 0.2) / 2000), rel=1e-12)
    again = empirical_rademacher([[1.0] * n, [-1.0] * n], draws=2000, delta=0.2, random_state=59)
    assert again == found


def test_trace_bounds_the_complexity_of_linear_functions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3))
    exact = np.mean([np.linalg.norm(np.array(signs) @ X) / 9 for signs in product([-1, 1], repeat=9)])  # the supremum is a norm
    assert exact <= linear_rademacher(X) <= exact * sqrt(2)  # Khintchine
    directions = rng.normal(size=(3000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert exact * 0.97 <= empirical_rademacher(directions @ X.T).value <= exact
    assert linear_rademacher(X, norm=3.0) == pytest.approx(3 * sqrt((X**2).sum()) / 9, rel=1e-14)


def test_massart_bounds_the_complexity_of_stumps():
    n = 12
    x = np.arange(n)
    labelings = np.array([s * np.where(x >= t, 1.0, -1.0) for t in range(n) for s in (-1, 1)])
    assert len(np.unique(labelings, axis=0)) == 2 * n == round(np.exp(log_stumps(n, 1)))
    assert empirical_rademacher(labelings).value <= sqrt(2 * log_stumps(n, 1) / n)
    weights = np.random.default_rng(0).dirichlet(np.ones(2 * n), size=50)
    hull = np.vstack([labelings, weights @ labelings])
    assert empirical_rademacher(hull).value == pytest.approx(empirical_rademacher(labelings).value, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ramp([1.0], 0.0), "rho"),
        (lambda: margin_bound([], 1.0, DELTA), "margins"),
        (lambda: margin_bound([np.nan], 1.0, DELTA), "margins"),
        (lambda: margin_bound([1.0], -1.0, DELTA), "trace"),
        (lambda: margin_bound_known_radius([1.0], np.inf, DELTA), "radius"),
        (lambda: margin_bound([1.0], 1.0, 2.0), "delta"),
        (lambda: empirical_rademacher([1.0, 2.0]), "outputs"),
        (lambda: linear_rademacher([1.0, 2.0]), "X must be"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
