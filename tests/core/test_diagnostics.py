"""Diagnostics of draws: against arviz_stats (frozen numbers), closed forms, and chains that never move."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import genpareto

from lemmata.core import diagnostics

REFERENCE = json.loads((Path(__file__).parents[1] / "sampling" / "reference" / "arviz.json").read_text())
MEASURES = {
    "rhat": diagnostics.rhat,
    "split_rhat": diagnostics.split_rhat,
    "ess_bulk": diagnostics.ess_bulk,
    "ess_tail": diagnostics.ess_tail,
    "ess_mean": diagnostics.ess_mean,
    "ess_sd": diagnostics.ess_sd,
    "mcse_mean": diagnostics.mcse_mean,
    "identity": lambda x: np.size(x) / diagnostics.autocorrelation_time(x),
    "mcse_quantile 0.1": lambda x: diagnostics.mcse_quantile(x, 0.1),
    "mcse_quantile 0.5": lambda x: diagnostics.mcse_quantile(x, 0.5),
}


@pytest.mark.item("SMP-10")
@pytest.mark.parametrize("name", REFERENCE["chains"])
def test_chains_as_arviz_has_them(name):
    case = REFERENCE["chains"][name]
    for measure, expected in case["found"].items():
        found = MEASURES[measure](np.array(case["draws"]))
        assert found == pytest.approx(expected, rel=1e-10), measure  # the same sums; only rounding may differ


@pytest.mark.parametrize("case", REFERENCE["weights"], ids=["60", "300", "200"])
def test_weights_as_arviz_smooths_them(case):
    smooth, k = diagnostics.pareto_smooth(case["log_weights"])
    assert k == pytest.approx(case["k"], rel=1e-10)
    np.testing.assert_allclose(smooth, case["smooth"], rtol=1e-10, atol=1e-12)
    assert np.exp(smooth).sum() == pytest.approx(1.0, rel=1e-12)


def autoregression(a, chains=20, n=2000, seed=12):
    rng = np.random.default_rng(seed)
    x = np.zeros((chains, n))
    noise = rng.normal(size=x.shape)
    x[:, 0] = noise[:, 0] / np.sqrt(1 - a * a)
    for t in range(1, n):
        x[:, t] = a * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("a", [-0.5, 0.0, 0.8])
def test_autocorrelations_of_an_autoregression(a):
    x = autoregression(a)
    assert diagnostics.autocorrelation_time(x) == pytest.approx((1 + a) / (1 - a), rel=0.15)  # 40,000 draws
    np.testing.assert_allclose(diagnostics.autocorrelation(x)[:6], a ** np.arange(6), atol=0.05)


def test_standard_errors_are_the_spread_of_repeated_estimates():
    runs = [autoregression(0.6, chains=4, n=500, seed=seed) for seed in range(200)]
    for estimate, error in (
        (lambda x: x.mean(), diagnostics.mcse_mean),
        (lambda x: x.std(), diagnostics.mcse_sd),
        (lambda x: np.quantile(x, 0.1), lambda x: diagnostics.mcse_quantile(x, 0.1)),
    ):
        spread = np.std([estimate(x) for x in runs])
        assert np.mean([error(x) for x in runs]) == pytest.approx(spread, rel=0.2)  # a spread of 200 is known to 5 %


def test_split_rhat_is_its_definition():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(3, 101))
    halves = np.concatenate([x[:, :50], x[:, 51:]])
    W, B = halves.var(axis=1, ddof=1).mean(), 50 * halves.mean(axis=1).var(ddof=1)
    assert diagnostics.split_rhat(x) == pytest.approx(np.sqrt((49 / 50 * W + B / 50) / W), rel=1e-12)
    assert diagnostics.split_rhat(x + np.linspace(0, 9, 101)) > 1.5  # a trend parts the halves of a single chain
    assert diagnostics.split_rhat(x[:1] + np.linspace(0, 9, 101)) > 1.5


@pytest.mark.parametrize("rhat", [diagnostics.split_rhat, diagnostics.rhat])
def test_chains_that_never_move(rhat):
    assert rhat(np.full((2, 10), 0.1)) == 1.0
    assert rhat(np.array([[1.0] * 4, [2.0] * 4])) == np.inf
    assert np.isnan(rhat(np.ones((2, 3))))
    assert np.isnan(rhat(np.array([[1.0, np.nan, 2.0, 3.0]] * 2)))


def test_sizes_of_chains_that_never_move_are_the_numbers_of_draws():
    x = np.full((3, 50), 0.1)
    for size in (diagnostics.ess_bulk, diagnostics.ess_tail, diagnostics.ess_mean, diagnostics.ess_sd):
        assert size(x) == 150
    assert diagnostics.mcse_mean(x) == pytest.approx(0.0, abs=1e-15)
    assert diagnostics.mcse_sd(x) == pytest.approx(0.0, abs=1e-15)
    assert diagnostics.mcse_quantile(x, 0.3) == 0.0


def test_all_entries_at_once_are_each_alone(monkeypatch):
    x = np.random.default_rng(0).normal(size=(3, 60, 2, 3)).cumsum(axis=1)
    x[:, :, 1, 1] = 7.0
    for group in (1, 1000, 1 << 22):
        monkeypatch.setattr(diagnostics, "GROUP", group)
        for measure in MEASURES.values():
            if measure is MEASURES["identity"]:
                continue
            found = measure(x)
            assert found.shape == (2, 3)
            np.testing.assert_allclose(found, [[measure(x[:, :, i, j]) for j in range(3)] for i in range(2)], rtol=1e-12)


def test_ranks_do_not_care_for_the_scale():
    x = np.random.default_rng(1).normal(size=(4, 200))
    assert diagnostics.ess_bulk(np.exp(x)) == pytest.approx(diagnostics.ess_bulk(x), rel=1e-12)
    assert diagnostics.ess_bulk(3 * x - 5) == pytest.approx(diagnostics.ess_bulk(x), rel=1e-12)


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.6, 1.0])
def test_pareto_fit_finds_the_shape(k):
    x = np.sort(genpareto(k, scale=2.0).rvs(20_000, random_state=0))
    shape, scale = diagnostics.pareto_fit(x)
    assert shape == pytest.approx(k, abs=0.04)  # its standard error is about (1 + k) / √20,000 = 0.014
    assert scale == pytest.approx(2.0, rel=0.05)


def test_weights_without_a_tail():
    smooth, k = diagnostics.pareto_smooth(np.zeros(100))
    assert k == -np.inf
    np.testing.assert_allclose(smooth, -np.log(100), rtol=1e-12)
    assert np.isnan(diagnostics.pareto_smooth(np.arange(10.0))[1])
    with_zeros = np.append(np.random.default_rng(0).normal(size=100), np.full(400, -np.inf))
    smooth, k = diagnostics.pareto_smooth(with_zeros)
    assert np.isfinite(k)
    assert np.exp(smooth).sum() == pytest.approx(1.0)


def test_one_row_of_draws_is_refused():
    with pytest.raises(ValueError, match="shape"):
        diagnostics.rhat(np.arange(10.0))


def test_few_weights_that_decide_are_the_heaviest_tail():
    logs = np.full(1000, -np.inf)
    logs[:4] = [0, -5, -10, -20]
    assert diagnostics.pareto_smooth(logs)[1] == np.inf
    logs[:4] = 0.0  # equal, and too few
    assert diagnostics.pareto_smooth(logs)[1] == np.inf
    logs[:50] = 0.0
    assert diagnostics.pareto_smooth(logs)[1] == -np.inf
    plateau = np.zeros(1000)  # as of a discrete target: three draws are a little heavier than all others
    plateau[:3] = 0.3
    assert diagnostics.pareto_smooth(plateau)[1] < 0.5
    plateau[:3] = 30.0
    assert diagnostics.pareto_smooth(plateau)[1] > 0.7


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-17), (0.0, 1e-140), (1.0, 1e-13), (0.0, 1e17)])
def test_measures_do_not_depend_on_the_unit(offset, scale):
    x = autoregression(0.7, chains=4, n=300)
    y = offset + scale * x
    assert diagnostics.ess_mean(y) == pytest.approx(diagnostics.ess_mean(x), rel=0.02)  # 1 + 1e-13 has three digits left
    assert diagnostics.mcse_mean(y) == pytest.approx(scale * diagnostics.mcse_mean(x), rel=0.02)
    assert diagnostics.split_rhat(y) == pytest.approx(diagnostics.split_rhat(x), rel=0.01)
    assert diagnostics.split_rhat(y + 10 * scale * np.arange(4)[:, None]) > 2


LIGHT = {
    "normal": lambda rng, size: rng.normal(size=size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "Laplace": lambda rng, size: rng.laplace(size=size),
    "uniform": lambda rng, size: rng.random(size),
    "Poisson": lambda rng, size: rng.poisson(300.0, size),
    "geometric": lambda rng, size: rng.geometric(0.01, size),
    "two modes": lambda rng, size: np.where(rng.random(size) < 0.1, 30.0, 0.0) + rng.random(size),
}


@pytest.mark.parametrize("n", [125, 500])
@pytest.mark.parametrize("name", LIGHT)
def test_light_tails_are_not_taken_for_heavy_ones(name, n):
    x = LIGHT[name](np.random.default_rng(n), (4, n, 1000))
    shapes, counted = diagnostics.tail_shape(x, np.full(1000, 4.0 * n))
    assert (shapes > diagnostics.K_LIMIT).sum() == 0
    assert (shapes > diagnostics.spread_limit(counted)).sum() <= 2  # less than one in a thousand


def test_heavy_tails_are_seen():
    rng = np.random.default_rng(0)
    shapes, _ = diagnostics.tail_shape(rng.standard_cauchy((4, 5000, 100)), np.full(100, 20_000.0))
    assert (shapes > diagnostics.K_LIMIT).sum() >= 99
    shapes, counted = diagnostics.tail_shape(-np.abs(rng.standard_t(1.5, (4, 5000, 100))), np.full(100, 20_000.0))
    assert (shapes > diagnostics.spread_limit(counted)).sum() >= 99
    assert np.isnan(diagnostics.tail_shape(np.ones((2, 3)))[0])
