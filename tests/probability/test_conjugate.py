"""Bayes' rule: conjugate updates against quadrature and grids, evidence against sums and integrals, any order, errors."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats as st
from scipy.integrate import quad

from lemmata.probability.conjugate import check_posterior, log_evidence, posterior
from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    MultivariateNormal,
    Normal,
)
from lemmata.probability.grid import GridPosterior, bayes_update

RNG = np.random.default_rng(0)
CASES = [
    (Beta(2, 2), "bernoulli", RNG.integers(0, 2, size=12), {}),
    (Beta(0.1, 7), Bernoulli, [0, 0, 0], {}),
    (Beta(0.5, 3), "binomial", [(5, 2), (3, 3), (10, 0)], {}),
    (Dirichlet([0.5, 2, 3]), "categorical", RNG.integers(0, 3, size=15), {}),
    (Dirichlet([0.5, 2, 3]), "multinomial", [[1, 0, 4], [2, 2, 2]], {}),
    (Gamma(1, 1), "exponential", RNG.exponential(size=9), {}),
    (Gamma(0.3, 20), Exponential, [0.0, 1e3], {}),
    (Normal(1, 2), "normal", RNG.normal(size=8), {"scale": 0.7}),
    (Normal(0, 1e3), Normal, 5 + RNG.normal(size=50), {"scale": 1e-2}),
    (
        MultivariateNormal([0, 1], [[2, 1], [1, 2]]),
        "multivariate_normal",
        RNG.normal(size=(7, 2)),
        {"cov": [[1, 0.3], [0.3, 0.5]]},
    ),
    (MultivariateNormal([0, 0], 1e6 * np.eye(2)), MultivariateNormal, RNG.normal(size=(9, 2)), {"cov": 1e-6 * np.eye(2)}),
]


def flat(law):
    return np.concatenate([np.ravel(getattr(law, name)) for name, f in law.__dataclass_fields__.items() if f.init])


@pytest.mark.item("PRB-02")
@pytest.mark.parametrize(("prior", "likelihood", "data", "known"), CASES)
def test_one_by_one_in_any_order_is_the_same_as_at_once(prior, likelihood, data, known):
    data = np.asarray(data)
    at_once, evidence = posterior(prior, likelihood, data, **known), log_evidence(prior, likelihood, data, **known)
    assert type(at_once) is type(prior)
    for seed in range(3):
        law, chain = prior, 0.0
        for i in np.random.default_rng(seed).permutation(len(data)):
            chain += log_evidence(law, likelihood, data[i : i + 1], **known)  # the one-step predictive probability
            law = posterior(law, likelihood, data[i : i + 1], **known)
        np.testing.assert_allclose(flat(law), flat(at_once), rtol=1e-12, atol=1e-12 * np.abs(flat(at_once)).max())
        assert chain == pytest.approx(evidence, rel=1e-12, abs=1e-11)
    assert check_posterior(prior, likelihood, data, **known).holds
    np.testing.assert_array_equal(flat(posterior(prior, likelihood, data[:0], **known)), flat(prior))
    assert log_evidence(prior, likelihood, data[:0], **known) == pytest.approx(0, abs=1e-14)


@pytest.mark.item("PRB-02")
def test_gray_morning_and_the_evidence_that_is_not_one():
    after = bayes_update([0.3, 0.7], [0.9, 0.4])
    assert after[0] == pytest.approx(0.490909, abs=5e-7)
    assert after[0] == pytest.approx(27 / 55, rel=1e-14)
    assert after.sum() == pytest.approx(1, rel=1e-15)
    without = np.array([0.3, 0.7]) * [0.9, 0.4]  # "the area is 1": forgetting the evidence 0.55 leaves no probabilities
    assert without.sum() == pytest.approx(0.55)
    rng = np.random.default_rng(1)
    prior, rows = rng.dirichlet(np.ones(5)), rng.random((400, 5)) * 1e-3
    batch = bayes_update(prior, rows)  # the product of the likelihoods is below the least number
    assert np.prod(rows, axis=0).max() == 0
    for seed in range(3):
        now = prior
        for row in np.random.default_rng(seed).permutation(rows):
            now = bayes_update(now, row)
        np.testing.assert_allclose(now, batch, rtol=1e-11, atol=1e-14)


@pytest.mark.item("PRB-02")
def test_grid_gives_the_conjugate_posterior_and_evidence():
    theta = np.linspace(0, 1, 4001)
    x = np.array([1, 0, 1, 1, 1, 0, 1])
    grid = GridPosterior.from_density(theta, Beta(2, 2).pdf)
    at_once = grid.update(lambda p: x.sum() * np.log(p) + (1 - x).sum() * np.log(1 - p))
    exact = posterior(Beta(2, 2), "bernoulli", x)
    assert (at_once.mean, at_once.var) == pytest.approx((exact.mean, exact.var), rel=1e-6)
    assert at_once.mode == pytest.approx(exact.mode, abs=1e-3)
    assert at_once.icdf(0.5) == pytest.approx(exact.icdf(0.5), abs=1e-3)
    assert at_once.log_evidence == pytest.approx(log_evidence(Beta(2, 2), "bernoulli", x), abs=1e-6)
    for order in itertools.islice(itertools.permutations(x), 0, 5040, 1000):
        now = grid
        for toss in order:
            now = now.update(lambda p, toss=toss: np.log(p if toss else 1 - p))
        np.testing.assert_allclose(now.probabilities, at_once.probabilities, rtol=1e-11, atol=1e-14)
        assert now.log_evidence == pytest.approx(at_once.log_evidence, rel=1e-12)
    np.testing.assert_allclose(at_once.probabilities * 4000, exact.pdf(theta), rtol=1e-5, atol=1e-5)
    pairs = GridPosterior([[0, 0], [0, 1], [1, 1]], np.log([0.5, 0.25, 0.25])).update([0.0, -1e4, -1e4])
    assert pairs.mean.tolist() == [0, 0]
    assert pairs.log_evidence == pytest.approx(math.log(0.5))
    uneven = GridPosterior.from_density(np.array([0.0, 1.0, 3.0]), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(uneven.probabilities, [1 / 6, 1 / 2, 1 / 3], rtol=1e-14)
    assert uneven.icdf([0.0, 0.1, 0.5, 1.0]).tolist() == [0, 0, 1, 3]


@pytest.mark.item("PRB-07")
def test_exponential_data_and_a_gamma_prior():
    x = np.array([0.3, 1.7, 0.2, 2.4, 0.9])
    n, total = len(x), x.sum()
    after = posterior(Gamma(1, 1), "exponential", x)  # the prior e^(−θ)
    assert after == Gamma(n + 1, 1 + total)
    assert posterior(Gamma(2.5, 0.5), Exponential, x) == Gamma(2.5 + n, 0.5 + total)
    joint = [quad(lambda t, k=k: t**k * math.exp(-t) * t**n * math.exp(-t * total), 0, np.inf)[0] for k in (0, 1)]
    assert after.mean == pytest.approx(joint[1] / joint[0], rel=1e-9)
    assert after.mean == pytest.approx((n + 1) / (1 + total), rel=1e-15)
    assert after.mode == pytest.approx(n / (1 + total), rel=1e-15)
    grid = np.linspace(0.01, 5, 49901)
    assert after.mode == pytest.approx(grid[np.argmax(n * np.log(grid) - grid * (1 + total))], abs=1e-4)
    assert math.exp(log_evidence(Gamma(1, 1), "exponential", x)) == pytest.approx(joint[0], rel=1e-9)
    np.testing.assert_allclose(Exponential(0.7).pdf(x), 0.7 * np.exp(-0.7 * x), rtol=1e-14)


def test_coin_and_normal_updates_are_those_of_the_formulas():
    assert posterior(Beta(2, 2), "binomial", (10, 7)) == Beta(9, 5)
    assert posterior(Dirichlet([1, 1, 1]), "multinomial", [3, 0, 1]) == Dirichlet([4, 1, 2])
    assert posterior(Dirichlet([1, 1, 1]), Categorical, [0, 0, 2, 0]) == Dirichlet([4, 1, 2])
    x, prior, scale = np.array([1.0, 2.5, 0.5]), Normal(-1, 2), 0.5
    after = posterior(prior, "normal", x, scale=scale)
    precision = 1 / prior.var + len(x) / scale**2
    assert after.var == pytest.approx(1 / precision, rel=1e-14)
    assert after.loc == pytest.approx((prior.loc / prior.var + x.sum() / scale**2) / precision, rel=1e-13)
    line = posterior(MultivariateNormal([-1], [[4]]), "multivariate_normal", x[:, None], cov=[[0.25]])
    assert (line.mean[0], line.cov[0, 0]) == pytest.approx((after.loc, after.var), rel=1e-13)
    prior, cov = MultivariateNormal([0, 1, 2], np.diag([1.0, 2, 3]) + 0.5), np.diag([0.1, 0.2, 0.3]) + 0.05
    rows = np.random.default_rng(0).normal(size=(6, 3))
    after = posterior(prior, MultivariateNormal, rows, cov=cov)
    inverse = np.linalg.inv
    np.testing.assert_allclose(inverse(after.cov), inverse(prior.cov) + 6 * inverse(cov), rtol=1e-10)
    weighted = inverse(prior.cov) @ prior.mean + inverse(cov) @ rows.sum(axis=0)
    np.testing.assert_allclose(after.mean, after.cov @ weighted, rtol=1e-10)
    stacked = MultivariateNormal(np.tile(prior.mean, 6), np.kron(np.eye(6), cov) + np.kron(np.ones((6, 6)), prior.cov))
    assert log_evidence(prior, MultivariateNormal, rows, cov=cov) == pytest.approx(stacked.logpdf(rows.ravel()), rel=1e-11)


@pytest.mark.item("PRB-17")
def test_evidence_of_categories_and_tosses_is_that_of_the_gamma_functions():
    prior, labels = Dirichlet([0.5, 2, 3]), [0, 2, 2, 1, 0, 2]
    counts = np.bincount(labels)
    assert log_evidence(prior, "categorical", labels) == pytest.approx(prior.log_marginal(counts), rel=1e-12)
    coefficient = math.lgamma(7) - sum(math.lgamma(c + 1) for c in counts)
    assert log_evidence(prior, "multinomial", counts) == pytest.approx(prior.log_marginal(counts) + coefficient, rel=1e-12)
    assert log_evidence(prior, "multinomial", counts) == pytest.approx(st.dirichlet_multinomial(prior.alpha, 6).logpmf(counts))
    assert log_evidence(Beta(2, 3), "binomial", (10, 4)) == pytest.approx(st.betabinom(10, 2, 3).logpmf(4), rel=1e-12)
    assert sum(math.exp(log_evidence(Beta(0.3, 2), "binomial", (8, k))) for k in range(9)) == pytest.approx(1, rel=1e-12)
    assert math.exp(log_evidence(Dirichlet([1, 1, 1]), "categorical", [0, 0, 2, 0])) == pytest.approx(1 / 60, rel=1e-13)
    tosses = [1] * 5
    assert log_evidence(Beta(1, 1e-20), "bernoulli", tosses) == pytest.approx(0, abs=1e-14)  # the posterior mean rounds to 1
    assert np.isfinite(log_evidence(Beta(1e-20, 1), "bernoulli", tosses))
    millions = (2_000_000, 1_000_000)
    assert log_evidence(Beta(1, 1), "binomial", millions) == pytest.approx(-math.log(2_000_001), rel=1e-8)


def test_certificate_of_a_posterior_is_refused_where_the_update_is_wrong(monkeypatch):
    from lemmata.probability import conjugate

    key = (Beta, "bernoulli")
    pair = conjugate._PAIRS[key]
    halved = pair._replace(update=lambda prior, x: Beta(prior.a + x.sum() / max(len(x), 1), prior.b + (1 - x).sum()))
    monkeypatch.setitem(conjugate._PAIRS, key, halved)
    assert {check.name for check in check_posterior(Beta(2, 2), "bernoulli", [1, 0, 1, 1]).failed} == {"order", "evidence"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: posterior(Gamma(1, 1), "bernoulli", [1]), "No conjugate update of Gamma"),
        (lambda: posterior(Beta(1, 1), 3, [1]), "No conjugate update"),
        (lambda: posterior(Beta(1, 1), "bernoulli", [2]), "zeros and ones"),
        (lambda: posterior(Beta(1, 1), "bernoulli", [1], scale=1), "takes no known parameter"),
        (lambda: posterior(Beta(1, 1), "binomial", [(3, 4)]), "0 ≤ successes ≤ n"),
        (lambda: posterior(Beta(1, 1), "binomial", [1, 0, 1]), "pairs"),
        (lambda: posterior(Dirichlet([1, 1]), "categorical", [2]), "for counts: 'multinomial'"),
        (lambda: posterior(Dirichlet([1, 1]), "multinomial", [1, 2, 3]), "for categories: 'categorical'"),
        (lambda: posterior(Gamma(1, 1), "exponential", [-1.0]), "none negative"),
        (lambda: posterior(Normal(0, 1), "normal", [1.0]), "takes scale="),
        (lambda: posterior(Normal(0, 1), "normal", [np.nan], scale=1), "finite numbers"),
        (lambda: posterior(Normal(0, 1), "normal", [1.0], scale=0), "scale must be positive"),
        (lambda: posterior(MultivariateNormal([0], [[1]]), "multivariate_normal", [[1.0, 2.0]], cov=[[1]]), "rows of 1"),
        (lambda: posterior(MultivariateNormal([0], [[1]]), "multivariate_normal", [[1.0]], cov=[[0]]), "positive definite"),
        (lambda: bayes_update([0.5, 0.5], [0, 0]), "probability zero"),
        (lambda: bayes_update([1, 0], [0, 1]), "probability zero"),
        (lambda: bayes_update([0.5, 0.6], [1, 1]), "sum to 1"),
        (lambda: bayes_update([0.5, 0.5], [1, -1]), "none negative"),
        (lambda: bayes_update([0.5, 0.5], [1, 1, 1]), "2 finite entries"),
        (lambda: GridPosterior([0, 1], [0, np.nan]), "must not be NaN"),
        (lambda: GridPosterior([0, 1], [0]), "one log_mass each"),
        (lambda: GridPosterior([0, 1], [0, 0]).update([0, np.nan]), "below"),
        (lambda: GridPosterior([0, 1], [0, 0]).update([-np.inf, -np.inf]), "probability zero"),
        (lambda: GridPosterior.from_density([0, 0.5, 1], Beta(0.5, 1).pdf), "leave out a pole"),
        (lambda: GridPosterior.from_density([1, 0], [1, 1]), "increasing"),
        (lambda: GridPosterior([[0, 1]], [0]).icdf(0.5), "increasing grid"),
    ],
)
def test_refuses_bad_input_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
