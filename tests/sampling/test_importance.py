"""Importance sampling: closed forms of weights, invariance to scaling, tails that are too light, and every kind of law."""

import warnings

import numpy as np
import pytest
from scipy.stats import cauchy, multivariate_normal, norm, poisson, uniform

from lemmata.probability import MultivariateNormal, Normal
from lemmata.sampling import importance

ERRORS = 5.0  # standard errors: a false alarm once in a million
N = 50_000


@pytest.mark.item("SMP-01")
def test_weights_of_a_normal_law_under_a_wider_one():
    found = importance(norm(0, 1).logpdf, norm(0, 2), f=lambda x: x**2, n_draws=400_000, self_normalized=False, random_state=0)
    w = np.exp(found.log_weights)
    assert (w**2).mean() == pytest.approx(4 / np.sqrt(7), rel=0.01)  # 1.511858; 400,000 draws
    assert found.ess / found.n_draws == pytest.approx(np.sqrt(7) / 4, rel=0.01)  # 0.661438
    assert abs(found.estimate - 1.0) < ERRORS * found.standard_error
    assert found.certify(norm(0, 1).logpdf, norm(0, 2), lambda x: x**2).holds
    assert found.pareto_k < 0.5


@pytest.mark.item("SMP-01")
def test_the_unbiased_estimate_is_unbiased_and_its_error_is_its_spread():
    target, law, options = Normal(0.0, 1.0).logpdf, Normal(0.5, 1.5), {"n_draws": 100, "self_normalized": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 100 draws are few
        runs = [importance(target, law, random_state=seed, **options) for seed in range(1000)]
    estimates = np.array([run.estimate for run in runs])
    assert abs(estimates.mean()) < ERRORS * estimates.std() / np.sqrt(len(runs))
    assert np.sqrt(np.mean([run.standard_error**2 for run in runs])) == pytest.approx(estimates.std(), rel=0.1)
    weights = np.array([run.weights.sum() for run in runs])
    assert abs(weights.mean() - 1) < ERRORS * weights.std() / np.sqrt(len(runs))


@pytest.mark.item("SMP-02")
@pytest.mark.parametrize("log_scale", [-800.0, 3.0, 800.0])
def test_self_normalized_estimates_do_not_know_the_scale_of_the_target(log_scale):
    one = importance(norm(1, 1).logpdf, norm(0, 2), random_state=0)
    other = importance(lambda x: norm(1, 1).logpdf(x) + log_scale, norm(0, 2), random_state=0)
    assert other.estimate == pytest.approx(one.estimate, rel=1e-9)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)
    assert other.pareto_k == pytest.approx(one.pareto_k, rel=1e-6)
    assert other.log_normalizer == pytest.approx(one.log_normalizer + log_scale, abs=1e-9)


@pytest.mark.item("SMP-02")
def test_both_estimates_agree_where_the_constant_is_known():
    options = {"f": np.cos, "n_draws": N, "random_state": 0}
    unbiased = importance(norm(0, 1).logpdf, norm(0, 2), self_normalized=False, **options)
    normalized = importance(lambda x: -(x**2) / 2, norm(0, 2), **options)
    exact = np.exp(-0.5)  # E cos X
    for found in (unbiased, normalized):
        assert abs(found.estimate - exact) < ERRORS * found.standard_error
    assert abs(unbiased.estimate - normalized.estimate) < ERRORS * unbiased.standard_error
    assert abs(normalized.log_normalizer - 0.5 * np.log(2 * np.pi)) < ERRORS * normalized.log_normalizer_error


def test_proposing_from_the_target_is_plain_averaging():
    found = importance(norm(2, 1).logpdf, norm(2, 1), n_draws=1000, random_state=0)
    assert found.estimate == pytest.approx(found.draws.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(found.draws.std(ddof=1) / np.sqrt(1000), rel=1e-12)
    assert found.ess == pytest.approx(1000, rel=1e-12)
    assert found.pareto_k == -np.inf
    assert found.certify(norm(2, 1).logpdf, norm(2, 1)).holds


def test_tails_that_are_too_light_are_told():
    with pytest.warns(UserWarning, match=r"Pareto k = \d\.\d+, above 0\.7"):
        found = importance(cauchy.logpdf, norm(0, 1), f=np.abs, n_draws=20_000, random_state=0)
    assert found.pareto_k > 0.7
    assert "Pareto k" in [check.name for check in found.certify().failed]
    with pytest.warns(UserWarning, match="too few"):
        importance(norm(0, 1).logpdf, norm(0, 2), n_draws=10, random_state=0)


def test_smoothing_lowers_the_error():
    target, law = Normal(0.0, 1.5).logpdf, Normal(0.0, 1.0)

    def misses(smooth):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # k = 1 − 1/1.5² = 0.56, so some samples of 300 look worse than they may
            return np.std(
                [importance(target, law, None, 300, smooth=smooth, random_state=seed).estimate for seed in range(300)]
            )

    assert misses(True) < 0.95 * misses(False)
    found = importance(norm(0, 1.3).logpdf, norm(0, 1), smooth=True, random_state=0)
    assert found.certify(norm(0, 1.3).logpdf, norm(0, 1)).holds


MEAN, COVARIANCE = np.array([1.0, -1.0]), np.array([[1.0, 0.6], [0.6, 1.0]])


@pytest.mark.parametrize(
    "law",
    [
        multivariate_normal(np.zeros(2), 4 * np.eye(2)),
        MultivariateNormal(np.zeros(2), 4 * np.eye(2)),
        (lambda n, rng: rng.normal(0, 2, (n, 2)), multivariate_normal(np.zeros(2), 4 * np.eye(2)).logpdf),
    ],
    ids=["scipy", "lemmata", "functions"],
)
def test_every_kind_of_law_in_two_dimensions(law):
    target = multivariate_normal(MEAN, COVARIANCE)
    found = importance(target.logpdf, law, n_draws=N, random_state=0)
    assert (np.abs(found.estimate - MEAN) < ERRORS * found.standard_error).all()
    found = importance(MultivariateNormal(MEAN, COVARIANCE), law, f=lambda x: x[:, 0] * x[:, 1], n_draws=N, random_state=0)
    assert abs(found.estimate - (0.6 - 1.0)) < ERRORS * found.standard_error


def test_discrete_laws_and_targets_with_gaps():
    found = importance(poisson(3).logpmf, poisson(4), n_draws=N, random_state=0)
    assert abs(found.estimate - 3.0) < ERRORS * found.standard_error
    found = importance(uniform(0, 1).logpdf, Normal(0.5, 1.0), n_draws=N, random_state=0)
    assert abs(found.estimate - 0.5) < ERRORS * found.standard_error
    assert (found.weights == 0).any()
    assert found.certify(uniform(0, 1).logpdf, Normal(0.5, 1.0)).holds


@pytest.mark.parametrize("name", ["log_weights", "weights", "draws", "estimate", "standard_error"])
def test_one_percent_of_sabotage_is_refused(name):
    found = importance(norm(1, 1).logpdf, norm(0, 2), random_state=0)
    assert found.certify(norm(1, 1).logpdf, norm(0, 2)).holds
    object.__setattr__(found, name, getattr(found, name) * 1.01)
    assert not found.certify(norm(1, 1).logpdf, norm(0, 2)).holds


def test_errors():
    with pytest.raises(ValueError, match="no mass at any draw"):
        importance(lambda x: np.full(len(x), -np.inf), norm(0, 1), random_state=0)
    with pytest.raises(ValueError, match="target is nan"):
        importance(lambda x: np.full(len(x), np.nan), norm(0, 1), random_state=0)
    with pytest.raises(ValueError, match="do not agree"):
        importance(norm.logpdf, (lambda n, rng: rng.normal(size=n), uniform.logpdf), random_state=0)
    with pytest.raises(ValueError, match="numbers for as many points"):
        importance(lambda x: 0.0, norm(0, 1), random_state=0)
    with pytest.raises(ValueError, match="f must give"):
        importance(norm.logpdf, norm(0, 2), f=lambda x: 1.0, random_state=0)
    with pytest.raises(ValueError, match="A law is"):
        importance(norm.logpdf, 3.0)
    with pytest.raises(ValueError, match="n_draws"):
        importance(norm.logpdf, norm(0, 2), n_draws=1)


def test_a_few_weights_that_decide_are_told():
    """Of 2000 draws a handful reaches the target, and most of them are at its edge."""
    with pytest.warns(UserWarning, match="Pareto k = inf"):
        found = importance(lambda x: np.where(x > 2.9, -40 * x, -np.inf), norm(0, 1), n_draws=2000, random_state=1)
    assert 0 < np.isfinite(found.log_weights).sum() < 5
    assert {"ESS", "Pareto k"} <= {check.name for check in found.certify().failed}
    with pytest.warns(UserWarning, match=r"Only \d+ of 500 draws are effective"):
        importance(norm(0, 1).logpdf, norm(0, 2), n_draws=500, random_state=0)


def test_an_integrand_with_heavier_tails_than_the_weights_is_told():
    options = {"n_draws": 20_000, "random_state": 0}
    with pytest.warns(UserWarning, match="weight times f"):
        found = importance(cauchy.logpdf, cauchy, **options)
    assert [check.name for check in found.certify().failed] == ["Pareto k of f"]
    assert importance(cauchy.logpdf, cauchy, f=np.cos, **options).certify(f=np.cos).holds


@pytest.mark.parametrize("name", ["ess", "pareto_k", "log_normalizer", "log_normalizer_error"])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_one_percent_of_sabotage_of_what_is_told_of_the_weights_is_refused(name, shift):
    target = norm(shift, 1).logpdf
    found = importance(target, norm(0, 2), random_state=0)
    object.__setattr__(found, name, getattr(found, name) * 1.01)
    assert not found.certify(target, norm(0, 2)).holds
    assert not found.certify().holds


def test_a_target_that_is_not_normalized_is_told_without_nan():
    with pytest.raises(ValueError, match="self_normalized=True"):
        importance(lambda x: norm.logpdf(x) + 900, norm(0, 2), self_normalized=False, random_state=0)
