"""Likelihood-ratio tests against Bayes actions, and Wald's sequential test against its theory in simulation."""

from itertools import count

import numpy as np
import pytest
from scipy import stats

from lemmata.decision import bayes_action, likelihood_ratio_test
from lemmata.decision.expectation import nodes
from lemmata.probability.distributions import Bernoulli, Beta, Categorical, Exponential, Gamma, MultivariateNormal, Normal

GRID = np.linspace(-6, 8, 500)


def actions_by_risk(p1, p0, priors, costs, x):
    joint = np.stack([priors[0] * p0.pdf(x), priors[1] * p1.pdf(x)], axis=-1)
    return bayes_action(joint / joint.sum(axis=-1, keepdims=True), costs)


@pytest.mark.item("DEC-03")
def test_the_umbrella():
    test = likelihood_ratio_test([0.9], [0.4], priors=[0.7, 0.3], costs=[[0, 5], [1, 0]])  # 0: dry, leave; 1: rain, take
    assert np.exp(test.log_ratio())[0] == pytest.approx(2.25)
    assert test.threshold == pytest.approx(0.466667, abs=5e-7)
    assert not test.reversed
    assert test.decide().tolist() == [1]


@pytest.mark.item("DEC-03")
@pytest.mark.parametrize("seed", range(200))
def test_the_decision_is_that_of_least_risk_whatever_the_costs(seed):
    rng = np.random.default_rng(seed)
    p1, p0 = Normal(2 * rng.random(), 0.5 + rng.random()), Normal(0, 1)
    prior = 0.1 + 0.8 * rng.random()
    costs = rng.normal(size=(2, 2))
    if seed % 5 == 0:
        costs[rng.integers(2), :] = costs[0, 0]  # differences that vanish, or nearly
    test = likelihood_ratio_test(p1, p0, [1 - prior, prior], costs)
    np.testing.assert_array_equal(test.decide(GRID), actions_by_risk(p1, p0, [1 - prior, prior], costs, GRID))
    if test.always is None:
        assert test.reversed == (costs[0, 1] < costs[1, 1])


@pytest.mark.item("DEC-03")
def test_both_layouts_of_the_threshold_agree_and_the_inequality_turns_round():
    costs, priors = np.array([[0.5, 3.0], [2.0, 1.0]]), np.array([0.7, 0.3])
    test = likelihood_ratio_test(Normal(1, 1), Normal(0, 1), priors, costs)
    one = priors[0] / priors[1] * (costs[1, 0] - costs[0, 0]) / (costs[0, 1] - costs[1, 1])
    other = priors[0] / priors[1] * (costs[0, 0] - costs[1, 0]) / (costs[1, 1] - costs[0, 1])
    assert one == other
    assert test.threshold == pytest.approx(one, rel=1e-14)
    # where action 1 is the worse one under hypothesis 1 (and the better one under 0), Θ > 0 is as before, but ">" is wrong
    turned = likelihood_ratio_test(Normal(1, 1), Normal(0, 1), priors, costs[::-1])
    assert turned.threshold == pytest.approx(one, rel=1e-14)
    assert turned.reversed
    expected = actions_by_risk(Normal(1, 1), Normal(0, 1), priors, costs[::-1], GRID)
    np.testing.assert_array_equal(turned.decide(GRID), expected)
    assert not np.array_equal((turned.log_ratio(GRID) > turned.log_threshold).astype(int), expected)


@pytest.mark.parametrize(
    ("costs", "always"),
    [([[1, 1], [0, 0]], 1), ([[0, 0], [1, 1]], 0), ([[1, 0], [0, 0]], 1), ([[0, 1], [0, 0]], 1), ([[0, 0], [0, 0]], 0)],
)
def test_an_action_that_is_never_worse_is_always_taken(costs, always):
    test = likelihood_ratio_test(Normal(1, 1), Normal(0, 1), costs=costs)
    assert test.always == always
    assert (test.decide(GRID) == always).all()
    assert test.decide_sequence(GRID) == always
    assert np.isinf(test.log_threshold)


@pytest.mark.item("DEC-04")
def test_a_sequence_is_decided_by_the_product_of_its_ratios():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p1, p0 = Normal(rng.random(), 1 + rng.random()), Normal(0, 1)
        test = likelihood_ratio_test(p1, p0, [0.6, 0.4], [[0, 2], [1, 0]])
        x = rng.normal(size=rng.integers(1, 12))
        product = np.prod(p1.pdf(x)) / np.prod(p0.pdf(x))
        assert np.exp(test.log_ratio(x).sum()) == pytest.approx(product, rel=1e-10)
        assert test.decide_sequence(x) == int(product > test.threshold)
        assert test.decide_sequence(x[:1]) == test.decide(x)[0]
    rows = rng.normal(size=(50, 2)) + 1
    test = likelihood_ratio_test(MultivariateNormal([1, 1], np.eye(2)), MultivariateNormal([0, 0], np.eye(2)))
    assert test.decide_sequence(rows) == 1


@pytest.mark.item("DEC-04")
def test_the_roc_is_monotone_and_no_other_test_dominates_it():
    """Neyman and Pearson, by drawing: at the false-alarm rate of any other test, the ratio misses no more."""
    p1, p0, n, length = Normal(0.5, 1.5), Normal(0, 1), 20_000, 4
    x0, x1 = p0.sample(n * length, 1).reshape(n, length), p1.sample(n * length, 2).reshape(n, length)
    ratio = likelihood_ratio_test(p1, p0)
    score0, score1 = ratio.log_ratio(x0).sum(axis=1), ratio.log_ratio(x1).sum(axis=1)
    rates = []
    for prior in (0.05, 0.2, 0.5, 0.8, 0.95):
        test = likelihood_ratio_test(p1, p0, [1 - prior, prior])
        rates.append(((score0 > test.log_threshold).mean(), (score1 > test.log_threshold).mean()))
        assert test.decide_sequence(x0[0]) == (score0[0] > test.log_threshold)
    assert (np.diff(rates, axis=0) >= 0).all()  # both rates rise as Θ falls
    others = {"mean": np.mean, "largest": np.max, "spread": np.std, "size": lambda x, axis: np.abs(x).sum(axis=axis)}
    for name, statistic in others.items():
        s0, s1 = statistic(x0, axis=1), statistic(x1, axis=1)
        for alarm in (0.01, 0.05, 0.2, 0.5):
            power = (s1 > np.quantile(s0, 1 - alarm)).mean()
            best = (score1 > np.quantile(score0, 1 - alarm)).mean()
            assert best > power - 4 * np.sqrt(0.5 / n), name  # 4 standard errors of a difference of such rates


def test_the_sequential_test_keeps_its_error_rates():
    p1, p0, alpha, beta, runs = Normal(0.5, 1), Normal(0, 1), 0.05, 0.1, 2000
    test = likelihood_ratio_test(p1, p0, sequential=True, alpha=alpha, beta=beta)
    assert test.log_upper == pytest.approx(np.log((1 - beta) / alpha))
    assert test.log_lower == pytest.approx(np.log(beta / (1 - alpha)))
    assert test.error_bounds == pytest.approx((alpha / (1 - beta), beta / (1 - alpha)))
    lengths, errors = [], []
    for truth, p in enumerate((p0, p1)):
        outcomes = [test.run(row) for row in p.sample(runs * 300, truth).reshape(runs, 300)]
        assert all(outcome.decision is not None for outcome in outcomes)
        errors.append(np.mean([outcome.decision != truth for outcome in outcomes]))
        lengths.append(np.mean([outcome.n_observations for outcome in outcomes]))
    assert errors[0] <= alpha / (1 - beta) + 4 * np.sqrt(alpha / runs)
    assert errors[1] <= beta / (1 - alpha) + 4 * np.sqrt(beta / runs)
    assert sum(errors) <= alpha + beta + 4 * np.sqrt((alpha + beta) / runs)
    expected = test.expected_samples()
    drift = 0.5**2 / 2  # KL of two normals with unit variance, both ways
    assert expected[1] == pytest.approx(((1 - beta) * test.log_upper + beta * test.log_lower) / drift, rel=1e-9)
    assert expected[0] == pytest.approx((alpha * test.log_upper + (1 - alpha) * test.log_lower) / -drift, rel=1e-9)
    # the approximation leaves out the overshoot, about 0.58 standard deviations of a log ratio over the drift
    for found, approximate in zip(lengths, expected, strict=True):
        assert approximate < found < approximate + 1.2 * 0.5 / drift
    # a fixed number of observations with the same rates needs about twice as many
    fixed = ((stats.norm.ppf(1 - alpha) + stats.norm.ppf(1 - beta)) / 0.5) ** 2
    assert max(lengths) < 0.75 * fixed


def test_a_stream_is_read_no_further_than_needed():
    test = likelihood_ratio_test(Bernoulli(0.8), Bernoulli(0.5), sequential=True)
    taken = count()
    outcome = test.run(1 for _ in taken)
    # each one adds log 1.6, and log 19 is wanted
    assert outcome.n_observations == 7
    assert next(taken) == 7
    np.testing.assert_allclose(outcome.path, np.log(1.6) * np.arange(1, 8))
    again = test.run([1] * 20)
    assert (again.decision, again.n_observations) == (1, 7)
    np.testing.assert_allclose(again.path, outcome.path)
    assert test.run([1, 0]).decision is None
    assert test.run(iter([0, 0, 0, 0])).decision == 0
    densities = likelihood_ratio_test([0.8] * 9, [0.5] * 9, sequential=True)
    assert densities.run().n_observations == 7
    impossible = likelihood_ratio_test(Exponential(1), Normal(0, 1), sequential=True)
    assert impossible.run([0.1, -1.0, 5.0])[:2] == (0, 2)
    assert likelihood_ratio_test([1.0, 0.0, 1.0], [1.0, 1.0, 0.0], sequential=True).run()[:2] == (0, 2)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Bernoulli(0.7), Bernoulli(0.2)),
        (Categorical([0.2, 0.3, 0.5]), Categorical([0.4, 0.4, 0.2])),
        (Exponential(2), Exponential(1)),
    ],
)
def test_expected_samples_have_the_divergence_as_drift(p, q):
    if isinstance(p, Exponential):
        forward, backward = np.log(2) + 1 / 2 - 1, -(np.log(1 / 2) + 2 - 1)
    else:
        a, b = (d.pmf(np.arange(d.support[1] + 1)) for d in (p, q))
        forward, backward = stats.entropy(a, b), -stats.entropy(b, a)
    test = likelihood_ratio_test(p, q, sequential=True)
    np.testing.assert_allclose(test.expected_samples(), test.expected_samples((backward, forward)), rtol=1e-9)


@pytest.mark.parametrize("p", [Normal(1, 2), Exponential(3), Gamma(0.4, 2), Gamma(9, 1), Beta(0.5, 0.7), Bernoulli(0.3)])
def test_the_quadrature_has_the_moments(p):
    x, weights = nodes(p)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    assert weights @ x == pytest.approx(p.mean, rel=1e-9)
    assert weights @ (x - p.mean) ** 2 == pytest.approx(p.var, rel=1e-8)
    x, weights = nodes(p, [p.mean])
    assert weights @ (x > p.mean) == pytest.approx(1 - p.cdf(p.mean), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: likelihood_ratio_test(Normal(0, 1), Normal(1, 1), [0.5, 0.6]), "priors must be positive and sum to one"),
        (lambda: likelihood_ratio_test(Normal(0, 1), Normal(1, 1), costs=np.ones((3, 2))), r"\(2, 2\)"),
        (lambda: likelihood_ratio_test(Normal(0, 1), Normal(1, 1), costs=np.ones((3, 2, 2))), "one matrix of costs"),
        (lambda: likelihood_ratio_test(Normal(0, 1), Normal(1, 1)).decide(), "give the observations"),
        (lambda: likelihood_ratio_test([0.5], [0.4]).decide([1.0]), "leave out x"),
        (lambda: likelihood_ratio_test([0.5], [-0.4]).decide(), "at least 0"),
        (lambda: likelihood_ratio_test([0.5], [0.4, 0.2]).decide(), r"\(1,\) and \(2,\)"),
        (lambda: likelihood_ratio_test([0.0], [0.0]).decide(), "impossible under both"),
        (lambda: likelihood_ratio_test([0.0, 1.0], [1.0, 0.0]).decide_sequence(), "together are impossible"),
        (lambda: likelihood_ratio_test(1, 2, sequential=True, alpha=0.6, beta=0.5), "sum below 1"),
        (lambda: likelihood_ratio_test(1, 2, [0.5, 0.5], sequential=True), "leave out priors and costs"),
        (lambda: likelihood_ratio_test([0.5], [0.4], sequential=True).expected_samples(), "give drifts"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
