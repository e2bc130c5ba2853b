"""Bounds for regression: worked numbers, ranks of quantiles by exact sums, coverage under heavy tails."""

from math import comb, log, sqrt

import numpy as np
import pytest
from scipy.stats import t as student

from lemmata.theory.bounds.holdout import bentkus_bound, betting_bound, clopper_pearson, kl_bound
from lemmata.theory.bounds.regression_bounds import (
    clipped_loss_bound,
    dkw_margin,
    exceedance_bound,
    quantile_rank,
    rademacher_regression_bound,
)

DELTA = 0.05


def test_worked_numbers():
    """Section 8."""
    assert dkw_margin(250, DELTA) == pytest.approx(0.077405, abs=5e-7)
    assert quantile_rank(250, 0.9, DELTA) == 234
    assert exceedance_bound(5, 100, DELTA) == clopper_pearson(5, 100, DELTA) == pytest.approx(0.102253, abs=5e-7)


@pytest.mark.parametrize("level", [0.5, 0.75, 0.875])
@pytest.mark.parametrize("delta", [0.45, 0.1, 0.01])
def test_quantile_rank_is_the_least_that_covers(level, delta):
    for n in range(1, 41):
        tails = np.cumsum([comb(n, j) * level**j * (1 - level) ** (n - j) for j in range(n)])
        enough = np.flatnonzero(tails >= 1 - delta - 1e-14)
        assert quantile_rank(n, level, delta) == (int(enough[0]) + 1 if len(enough) else None)
    assert (quantile_rank(40, level, delta) is None) == (level**40 > delta)


def test_quantile_of_a_large_sample():
    rank = quantile_rank(10**6, 0.9, DELTA)
    assert rank == pytest.approx(900_000 + 1.645 * sqrt(90_000), abs=3)


def test_clipped_losses_are_divided_by_their_bound():
    losses = np.random.default_rng(0).exponential(size=200)
    clipped = np.minimum(losses / 4, 1)
    assert clipped_loss_bound(losses, 4.0, DELTA) == 4 * betting_bound(clipped, DELTA)
    least = min(kl_bound(clipped.mean(), 200, DELTA), bentkus_bound(clipped.mean(), 200, DELTA))
    assert clipped_loss_bound(losses, 4.0, DELTA, form="tail") == 4 * least
    with_infinite = np.append(losses, np.inf)
    assert 4 * clipped.mean() < clipped_loss_bound(with_infinite, 4.0, DELTA) < 4


def test_coverage_under_heavy_tails():
    """Residuals of Student's t with 3 degrees of freedom, hold-out of 250: clipped loss, tail, all tails, quantile."""
    rng = np.random.default_rng(5)
    n, runs, grid = 250, 300, np.linspace(0, 6, 241)
    x = np.linspace(0, 1, 200_001)[1:-1]
    truth = np.minimum(np.abs(student.ppf(x, 3)), 4).mean()
    survival, q90 = 2 * student.sf(grid, 3), student.ppf(0.95, 3)
    rank, margin = quantile_rank(n, 0.9, DELTA), dkw_margin(n, DELTA)
    failures = np.zeros(5)
    for _ in range(runs):
        residuals = np.abs(rng.standard_t(3, n))
        frequencies = (residuals[:, None] > grid).mean(axis=0)
        failures += [
            clipped_loss_bound(residuals, 4.0, DELTA) < truth,
            clipped_loss_bound(residuals, 4.0, DELTA, form="tail") < truth,
            exceedance_bound(int((residuals > 2).sum()), n, DELTA) < 2 * student.sf(2, 3),
            (frequencies + margin < survival).any(),
            np.sort(residuals)[rank - 1] < q90,
        ]
    assert (failures / runs <= DELTA + 3 * sqrt(DELTA * (1 - DELTA) / runs)).all()


@pytest.mark.parametrize(
    ("norm", "exponents"), [(0.9, [0]), (1.0, [0]), (1.1, [1]), (5.0, [3]), (0.3, [-1, 0]), (0.01, range(-6, 1))]
)
def test_norm_is_rounded_up_to_the_grid(norm, exponents):
    n, trace, upper = 400, 300.0, 4.0
    expected = min(
        0.5
        + 2 * 4.0 * 2.0**j * sqrt(trace) / n
        + 3 * upper * sqrt(log(2 / DELTA * 1.5 * (abs(j) + 1) * (abs(j) + 2)) / (2 * n))
        for j in exponents
    )
    assert rademacher_regression_bound(0.5, 2 * sqrt(upper), norm, trace, n, DELTA, upper) == pytest.approx(expected, rel=1e-13)


def test_rademacher_bound_holds_for_least_squares():
    rng = np.random.default_rng(2)
    n, runs, failures = 200, 100, 0
    for _ in range(runs):
        X = rng.normal(size=(n + 2000, 3))
        y = X @ [0.5, -0.2, 0.1] + rng.standard_t(3, n + 2000)
        w = np.linalg.lstsq(X[:n], y[:n], rcond=None)[0]
        losses = np.minimum(np.abs(y - X @ w), 4.0)
        bound = rademacher_regression_bound(losses[:n].mean(), 1.0, np.linalg.norm(w), (X[:n] ** 2).sum(), n, DELTA, 4.0)
        failures += losses[n:].mean() > bound
    assert failures == 0


def test_zero_model_has_a_bound():
    assert 0.1 < rademacher_regression_bound(0.1, 1.0, 0.0, 100.0, 100, DELTA, 1.0) < 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dkw_margin(10, 0.6), "≤ 0.5"),
        (lambda: quantile_rank(10, 1.0, DELTA), "level"),
        (lambda: clipped_loss_bound([1.0], np.inf, DELTA), "unbounded"),
        (lambda: clipped_loss_bound([-1.0], 1.0, DELTA), "losses"),
        (lambda: clipped_loss_bound([np.nan], 1.0, DELTA), "losses"),
        (lambda: clipped_loss_bound([1.0], 1.0, DELTA, form="wald"), "form"),
        (lambda: rademacher_regression_bound(0.1, 0.0, 1.0, 1.0, 10, DELTA, 1.0), "lipschitz"),
        (lambda: rademacher_regression_bound(0.1, 1.0, np.inf, 1.0, 10, DELTA, 1.0), "norm"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
