"""The Bayes classifier against all classifiers of a finite world, and the Gaussian rule against quadrature and draws."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from lemmata.decision import BayesRule, gaussian_rule
from lemmata.probability.distributions import Binomial, Categorical, Exponential, MultivariateNormal, Normal


@pytest.mark.item("DEC-12")
@pytest.mark.parametrize("seed", range(10))
def test_no_classifier_of_a_finite_world_errs_less(seed):
    rng = np.random.default_rng(seed)
    n_x, k = 5, rng.integers(2, 4)
    priors, tables = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(n_x), k)
    labels = np.array(["a", "b", "c"])[:k]
    rule = BayesRule([Categorical(p) for p in tables], priors, labels)
    joint = priors[:, None] * tables
    errors = {f: 1 - sum(joint[y, x] for x, y in enumerate(f)) for f in product(range(k), repeat=n_x)}
    least = rule.error()
    assert least.standard_error == 0
    assert least.value == pytest.approx(min(errors.values()), rel=1e-12)
    best = min(errors, key=errors.get)
    np.testing.assert_array_equal(rule.predict(np.arange(n_x)), labels[list(best)])
    for f in list(errors)[::7]:
        # P(f ≠ Y) = E[P(f ≠ Y | X)], both exactly
        answers = labels[list(f)]
        assert rule.error_of(lambda x, answers=answers: answers[x]).value == pytest.approx(errors[f], rel=1e-12)
        conditional = 1 - (joint / joint.sum(axis=0))[list(f), np.arange(n_x)]
        assert conditional @ joint.sum(axis=0) == pytest.approx(errors[f], rel=1e-12)
    posterior = rule.posterior(np.arange(n_x))
    np.testing.assert_allclose(posterior, (joint / joint.sum(axis=0)).T, rtol=1e-12)
    assert (1 - posterior.max(axis=1)) @ joint.sum(axis=0) == pytest.approx(least.value, rel=1e-12)


@pytest.mark.item("DEC-12")
def test_the_error_from_draws_agrees_with_the_exact_one():
    rule = BayesRule([MultivariateNormal([0.0, 0.0], np.eye(2)), MultivariateNormal([2.0, 0.0], np.eye(2))])
    found = rule.error(random_state=1)
    exact = stats.norm.cdf(-1)
    assert abs(found.value - exact) < 4 * found.standard_error
    assert 0 < found.standard_error < 1e-3
    low, high = found.interval(0.95)
    assert high - low == pytest.approx(2 * 1.959964 * found.standard_error, rel=1e-5)
    x, y = rule.sample(20_000, 2)
    assert abs(np.mean(rule.predict(x) != y) - exact) < 4 * np.sqrt(exact / 20_000)
    worse = rule.error_of(lambda x: (x[:, 0] > 1.5).astype(int))
    assert worse.value > found.value
    assert worse.value == pytest.approx((stats.norm.sf(1.5) + stats.norm.cdf(-0.5)) / 2, abs=4 * worse.standard_error)
    rates = BayesRule([Exponential(1), Exponential(4)], [0.5, 0.5])
    cut = np.log(4) / 3  # where e^(−x) = 4 e^(−4x)
    exact = (-np.expm1(-cut) + np.exp(-4 * cut)) / 2
    assert abs(rates.error().value - exact) < 4 * rates.error().standard_error
    assert BayesRule([Binomial(3, 0.2), Binomial(5, 0.9)]).error().standard_error == 0
    np.testing.assert_array_equal(BayesRule([Exponential(1), Exponential(2)], [0.3, 0.7]).posterior([-1.0]), [[0.3, 0.7]])
    assert BayesRule([Normal(0, 1), Normal(2, 2)]).error().value == gaussian_rule([0, 2], [1, 2]).error


@pytest.mark.item("DEC-13")
def test_the_printed_numbers():
    same = gaussian_rule([0, 2], [1, 1])
    np.testing.assert_allclose(same.thresholds, [1.0])
    assert same.error == pytest.approx(0.158655, abs=5e-7)
    assert same.regions.tolist() == [0, 1]
    wide = gaussian_rule([0, 2], [1, 2])
    np.testing.assert_allclose(wide.thresholds, [-2.570917, 1.237584], atol=5e-7)
    assert wide.error == pytest.approx(0.226694, abs=5e-7)
    assert wide.regions.tolist() == [1, 0, 1], "class 0 between the roots"
    for rule, scales in ((same, [1, 1]), (wide, [1, 2])):
        np.testing.assert_allclose(rule.log_odds(rule.thresholds), 0, atol=1e-12)
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 100_000)
        mistakes = np.mean(rule.predict(rng.normal(2.0 * y, np.array(scales)[y])) != y)
        assert abs(mistakes - rule.error) < 3 * np.sqrt(rule.error * (1 - rule.error) / 100_000)


@pytest.mark.item("DEC-13")
@pytest.mark.parametrize("seed", range(30))
def test_roots_regions_and_error(seed):
    rng = np.random.default_rng(seed)
    means, scales = rng.normal(size=2) * 2, np.exp(rng.normal(size=2) * 0.7)
    scales[1] = scales[0] if seed % 5 == 0 else scales[0] * (1 + 1e-9) if seed % 5 == 1 else scales[1]
    priors = rng.dirichlet([3.0, 3.0])
    rule = gaussian_rule(means, scales, priors)
    assert rule.certificate().holds, str(rule.certificate())
    assert len(rule.thresholds) <= (1 if scales[0] == scales[1] else 2)
    x = np.linspace(-15, 15, 3001)
    weighted = [np.log(p) + stats.norm.logpdf(x, m, s) for p, m, s in zip(priors, means, scales, strict=True)]
    clear = np.abs(weighted[1] - weighted[0]) > 1e-9
    np.testing.assert_array_equal(rule.predict(x)[clear], (weighted[1] > weighted[0])[clear])
    np.testing.assert_allclose(rule.log_odds(x), weighted[1] - weighted[0], atol=1e-10 * np.abs(weighted).max())
    for root in rule.thresholds[np.abs(rule.thresholds) < 15]:
        near = optimize.brentq(
            lambda t: float(rule.log_odds(t)), root - 1e-3 * scales.min(), root + 1e-3 * scales.min(), xtol=1e-14
        )
        assert root == pytest.approx(near, abs=1e-7)
    y = rng.choice(2, size=20_000, p=priors)
    draws = rng.normal(means[y], scales[y])
    mistakes = np.mean(rule.predict(draws) != y)
    assert abs(mistakes - rule.error) < 4 * np.sqrt(rule.error * (1 - rule.error) / 20_000)  # 1 in 16,000 at each seed


@pytest.mark.item("DEC-13")
def test_no_root_at_all():
    far = gaussian_rule([0, 0], [1, 1], [0.9, 0.1])
    assert len(far.thresholds) == 0
    assert far.error == pytest.approx(0.1)
    always = gaussian_rule([0, 0.1], [1, 0.9], [0.99, 0.01])
    assert len(always.thresholds) == 0
    assert always.error == pytest.approx(0.01)
    assert always.certificate().holds
    tail = gaussian_rule([0, 60], [1, 1])
    assert tail.error == pytest.approx(stats.norm.sf(30), rel=1e-10, abs=0), "tails are exact"


@pytest.mark.parametrize("change", ["thresholds", "error", "regions"])
def test_sabotage_is_refused(change):
    rule = gaussian_rule([0, 2], [1, 2])
    values = {name: getattr(rule, name) for name in ("means", "scales", "priors", "thresholds", "regions", "error")}
    values[change] = values[change] * 1.01 if change != "regions" else 1 - values[change]
    assert not type(rule)(**values).certificate().holds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_rule([0, 1], [1, 0]), "two positive scales"),
        (lambda: gaussian_rule([0, 1, 2], [1, 1, 1]), "two finite means"),
        (lambda: gaussian_rule([0, 1], [1, 1], [0.5, 0.6]), "sum to one"),
        (lambda: BayesRule([Normal(0, 1)]), "at least two classes"),
        (lambda: BayesRule([Normal(0, 1), Normal(1, 1)], [0.2, 0.2]), "sum to one"),
        (lambda: BayesRule([Normal(0, 1), Normal(1, 1)], classes=["a", "a"]), "2 different labels"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
