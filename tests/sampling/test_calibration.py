"""Simulation-based calibration: our samplers pass at level 1e-3, and wrong ones are found out."""

import numba
import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm
from sklearn.exceptions import ConvergenceWarning

from lemmata.sampling import Calibration, gibbs, metropolis_hastings, simulation_based_calibration

LEVEL = 1e-3


@numba.njit  # noqa: TID251 - what a user writes
def log_posterior(theta, x):
    """Mean and log standard deviation, both with standard normal priors, given normal data."""
    total = -0.5 * theta[0] ** 2 - 0.5 * theta[1] ** 2
    for i in range(len(x)):
        total -= theta[1] + 0.5 * ((x[i] - theta[0]) * np.exp(-theta[1])) ** 2
    return total


def prior(rng):
    return rng.standard_normal(2)


def simulate(theta, rng):
    return rng.normal(theta[0], np.exp(theta[1]), size=5)


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-06")
def test_metropolis_hastings_is_calibrated():
    def posterior(x, rng):
        return metropolis_hastings(log_posterior, np.zeros(2), 2500, n_chains=2, args=(x,), random_state=rng, warmup=1000)

    found = simulation_based_calibration(
        prior, simulate, posterior, 300, n_ranks=49, quantity=log_posterior, names=["mean", "log sd", "log p"], random_state=0
    )
    assert found.ranks.shape == (300, 3)
    assert found.certify(LEVEL).holds, str(found)


@pytest.mark.slow_without_jit
def test_data_that_count_twice_are_found_out():
    def posterior(x, rng):
        twice = np.repeat(x, 2)
        return metropolis_hastings(log_posterior, np.zeros(2), 1500, n_chains=2, args=(twice,), random_state=rng, warmup=500)

    found = simulation_based_calibration(prior, simulate, posterior, 150, n_ranks=19, random_state=0)
    assert not found.certify(LEVEL).holds


@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("right", [True, False])
def test_gibbs_sampling_is_calibrated(right):
    """Two numbers with correlation 0.6 a priori, and the sum seen with noise."""
    spread = np.sqrt(1 - 0.36) if right else 0.4

    def posterior(x, rng):
        def conditional(i):
            def draw(theta, rng):
                mean, variance = 0.6 * theta[1 - i], spread**2
                gain = variance / (variance + 1.0)
                return rng.normal(mean + gain * (x - theta[1 - i] - mean), np.sqrt(variance * (1 - gain)))

            return draw

        return gibbs([conditional(0), conditional(1)], [0.0, 0.0], 100, n_chains=2, random_state=rng, warmup=20)

    def draw_prior(rng):
        return rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]])

    found = simulation_based_calibration(
        draw_prior, lambda theta, rng: rng.normal(theta.sum()), posterior, 200, n_ranks=19, random_state=0
    )
    assert found.certify(LEVEL).holds == right


def test_ranks_of_exact_posteriors_are_uniform_with_ties_too():
    """A coin of unknown kind, tossed three times: the posterior has two points."""

    def posterior(heads, rng):
        odds = np.array([0.3**heads * 0.7 ** (3 - heads), 0.6**heads * 0.4 ** (3 - heads)])
        return rng.choice([0.3, 0.6], p=odds / odds.sum(), size=9)

    found = simulation_based_calibration(
        lambda rng: rng.choice([0.3, 0.6]), lambda p, rng: rng.binomial(3, p), posterior, 2000, n_ranks=9, random_state=0
    )
    counts = np.bincount(found.ranks[:, 0], minlength=10)
    assert chisquare(counts).pvalue > LEVEL
    assert found.p_values[0] == pytest.approx(chisquare(counts).pvalue, rel=1e-9)
    np.testing.assert_array_equal(found.histogram[0], counts)


def test_bins_of_unequal_width_are_counted_fairly():
    ranks = np.repeat(np.arange(10), 30)[:, None]
    found = Calibration(ranks, 9, ("x",), 4)
    assert found.histogram.sum() == 300
    assert found.p_values[0] == pytest.approx(1.0)
    assert "p = 1" in str(found)


def test_few_effective_draws_are_told_and_shapes_are_checked():
    def lazy(x, rng):
        return metropolis_hastings(lambda t: -0.5 * t[0] ** 2, [0.0], 50, n_chains=1, random_state=rng, warmup=0)

    with pytest.warns(ConvergenceWarning, match="effective draws"):
        simulation_based_calibration(lambda rng: rng.normal(), lambda t, rng: t, lazy, 5, random_state=0)
    with pytest.raises(ValueError, match="draws of 2 dimensions"):
        simulation_based_calibration(prior, simulate, lambda x, rng: rng.normal(size=(99, 3)), 5, random_state=0)
    with pytest.raises(ValueError, match="names must be 2"):
        simulation_based_calibration(prior, simulate, lambda x, rng: rng.normal(size=(99, 2)), 5, names=["a"], random_state=0)


def ranks_of(n, shift, scale, seed):
    """Ranks of standard normal truths among 99 draws from another normal law."""
    rng = np.random.default_rng(seed)
    return Calibration(rng.binomial(99, norm.cdf((rng.normal(size=n) - shift) / scale))[:, None], 99, ("x",), 10)


def test_small_shifts_and_spreads_are_found_and_nothing_else():
    refused = {}
    for shift, scale in ((0.2, 1.0), (0.0, 0.8), (0.0, 1.2)):
        refused[shift, scale] = sum(not ranks_of(500, shift, scale, seed).certify().holds for seed in range(50))
    assert min(refused.values()) >= 30  # 40, 50 and 48 are expected
    assert sum(not ranks_of(500, 0.0, 1.0, seed).certify().holds for seed in range(1000)) <= 5  # 1 is expected


def test_p_values_of_right_ranks_are_uniform():
    found = [ranks_of(200, 0.0, 1.0, seed) for seed in range(500)]
    for measure in ("p_shift", "p_spread"):
        assert kstest([getattr(one, measure)[0] for one in found], "uniform").pvalue > LEVEL
    assert Calibration(np.arange(50)[:, None] % 2, 1, ("x",), 2).p_spread.tolist() == [1.0]
