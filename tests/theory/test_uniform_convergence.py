"""Deviations are exact, those of thresholds are Kolmogorov and Smirnov's, and the excess of ERM never exceeds two of them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import kolmogorov
from scipy.stats import kstest, kstwo, norm, uniform

from lemmata.theory.bounds.holdout import clopper_pearson_interval
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.classes.rectangles import Rectangles
from lemmata.theory.risk import FiniteDistribution, empirical_risk, true_risk
from lemmata.theory.sample_size import epsilon, sample_size, uc_to_agnostic
from lemmata.theory.uniform_convergence import (
    LineDistribution,
    excess_risk_bound,
    is_representative,
    representativeness,
    uniform_convergence_experiment,
)


def random_problem(seed, k=5, n_hypotheses=8):
    rng = np.random.default_rng(seed)
    law = FiniteDistribution(
        np.arange(k),
        [Fraction(int(w), 100) for w in rng.multinomial(100 - k, np.ones(k) / k) + 1],
        label_probabilities=[Fraction(int(c), 10) for c in rng.integers(0, 11, k)],
    )
    return FiniteClass(rng.random((n_hypotheses, k)) < 0.5), law, rng


@pytest.mark.item("LRN-07")
@pytest.mark.parametrize("seed", range(6))
def test_the_largest_deviation_is_that_of_the_definition(seed):
    H, law, rng = random_problem(seed)
    sample = law.sample(9, rng)
    errors = [Fraction(round(9 * empirical_risk(h, *sample)), 9) for h in H.hypotheses]
    expected = max(abs(e - true_risk(h, law)) for e, h in zip(errors, H.hypotheses, strict=True))
    found = representativeness(H, sample, law)
    assert isinstance(found, Fraction)
    assert found == expected
    assert is_representative(H, sample, law, found)
    assert not is_representative(H, sample, law, found - Fraction(1, 10**9))


@pytest.mark.item("LRN-07")
@pytest.mark.parametrize("cls", [Thresholds(), Intervals(), Rectangles(1)])
def test_infinite_classes_on_finite_domains(cls):
    points = np.arange(6.0)
    law = FiniteDistribution(points, labels=[1, 1, 0, 0, 1, 0])
    sample = law.sample(7, 0)
    grid = np.arange(-0.5, 6)
    if isinstance(cls, Thresholds):
        functions = [lambda x, t=t: x < t for t in grid]
    else:
        functions = [lambda x, a=a, b=b: (x > a) & (x < b) for a, b in product(grid, repeat=2)]
    assert representativeness(cls, sample, law) == representativeness(functions, sample, law)


@pytest.mark.item("LRN-07")
@pytest.mark.parametrize("law", [uniform(), norm(3.0, 2.0)])
@pytest.mark.parametrize("n", [1, 7, 100])
def test_thresholds_have_the_kolmogorov_smirnov_statistic(law, n):
    for seed in range(5):
        x, y = LineDistribution(law).sample(n, seed)
        assert not y.any()
        found = representativeness(Thresholds(), (x, y), LineDistribution(law))
        assert found == pytest.approx(kstest(x, law.cdf).statistic, rel=1e-12)


@pytest.mark.item("LRN-07")
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_line_is_the_limit_of_finite_domains(noise):
    """A fine grid in place of the uniform law: the largest deviations agree within its step."""
    line = LineDistribution(uniform(), threshold=0.3, noise=noise)
    x, y = line.sample(40, 1)
    k = 400
    grid = (np.arange(k) + 0.5) / k
    nearest = grid[np.minimum((x * k).astype(int), k - 1)]
    chances = [1 - noise if point < 0.3 else noise for point in grid]
    law = FiniteDistribution(grid, label_probabilities=chances)
    table = grid < np.append(grid, 1.0)[:, None]
    assert representativeness(table, (nearest, y), law) == pytest.approx(line.deviation(x, y)[0], abs=2 / k)
    t = np.array([0.1, 0.3, 0.8])
    np.testing.assert_allclose(line.risk(t), noise + (1 - 2 * noise) * np.abs(t - 0.3))


@pytest.mark.item("LRN-08")
@pytest.mark.parametrize("seed", range(4))
def test_excess_is_at_most_twice_the_deviation_on_all_samples(seed):
    H, law, _ = random_problem(seed, k=3, n_hypotheses=4)
    H = np.array([h.values for h in H.hypotheses])
    pairs = [(i, y) for i, y, _ in law.atoms]
    tight = False
    for sample in product(pairs, repeat=3):
        X, y = np.array([i for i, _ in sample]), np.array([y for _, y in sample])
        result = excess_risk_bound(H, (X, y), law)
        assert isinstance(result.excess, Fraction)
        assert result.holds
        assert result.bound == 2 * representativeness(H, (X, y), law)
        tight |= result.excess > result.bound / 2
        # Prop 2.1.1: a sample that is ε/2-representative makes ERM ε-optimal, for this and every larger ε
        assert not is_representative(H, (X, y), law, result.excess / 2 - Fraction(1, 10**9)) or result.excess == 0
    if seed == 0:
        assert tight, "the factor two is needed: once the deviation alone is exceeded"


@pytest.mark.item("LRN-08")
def test_excess_is_at_most_twice_the_deviation_on_every_simulated_sample():
    for seed in range(3):
        H, law, _ = random_problem(seed)
        result = uniform_convergence_experiment(H, law, 20, n_trials=2000, random_state=seed)
        assert (result.excesses <= 2 * result.deviations + 1e-12).all()
        assert result.excesses.max() > 0
        assert result.holds
    line = LineDistribution(uniform(), threshold=0.4, noise=0.3)
    result = uniform_convergence_experiment(Thresholds(), line, 30, n_trials=500, random_state=0)
    assert (result.excesses <= 2 * result.deviations).all()
    assert result.excesses.max() > 0


@pytest.mark.item("LRN-08")
def test_uniform_convergence_makes_erm_an_agnostic_learner():
    """Prop 2.1.2 by simulation: at m_UC(ε/2, δ) rows ERM misses ε-optimality with probability at most δ."""
    H, law, _ = random_problem(7)
    accuracy, failure = 0.3, 0.2
    m = uc_to_agnostic(lambda e, d: sample_size(e, d, hypotheses=len(H), goal="deviation"))(accuracy, failure)
    result = uniform_convergence_experiment(H, law, m, n_trials=2000, random_state=0)
    misses = int((result.excesses > accuracy).sum())
    assert clopper_pearson_interval(misses, 2000, 0.01)[1] <= failure


@pytest.mark.item("LRN-09")
@pytest.mark.parametrize("seed", range(3))
def test_exceedance_of_finite_classes_is_within_delta(seed):
    H, law, _ = random_problem(seed, k=8, n_hypotheses=40)
    n = sample_size(0.15, 0.05, hypotheses=40, goal="deviation")
    result = uniform_convergence_experiment(H, law, n, epsilon=0.15, n_trials=4000, random_state=seed)
    assert result.bound == pytest.approx(2 * 40 * np.exp(-2 * n * 0.15**2))
    assert result.bound <= 0.05
    assert result.upper <= 0.05
    assert result.lower <= result.exceedances / 4000 <= result.upper
    assert result.holds
    # a claim of much smaller deviations is refuted by the same trials
    assert uniform_convergence_experiment(H, law, n, epsilon=0.02, n_trials=500, random_state=seed).lower > 0.5


@pytest.mark.item("LRN-26")
def test_vc_inequality_holds_in_simulation():
    law = LineDistribution(uniform())
    for n in (50, 200):
        result = uniform_convergence_experiment(Thresholds(), law, n, n_trials=1500, random_state=n)
        assert result.epsilon == epsilon(n, 0.05, vc_dim=1, goal="deviation")
        assert np.quantile(result.deviations, 0.95) <= result.epsilon
        assert result.holds
        assert result.exceedances == 0
    points = np.arange(12.0)
    noisy = FiniteDistribution(points, label_probabilities=np.linspace(0.2, 0.8, 12))
    result = uniform_convergence_experiment(Intervals(), noisy, 4000, n_trials=1500, random_state=0)
    assert result.epsilon < 0.5
    assert np.quantile(result.deviations, 0.95) <= result.epsilon
    assert result.upper <= 0.05
    assert "samples of 4000 rows" in str(result)


@pytest.mark.item("LRN-26")
def test_no_deviation_bound_is_free_of_delta():
    """000 Thm 2.3.4 claims sup < c √(d/n) with c independent of δ: the Kolmogorov law refutes it for every c."""
    assert kolmogorov(2.0) == pytest.approx(6.709e-4, abs=5e-8)
    for c in (1.0, 2.0, 3.0, 5.0):
        failure = kolmogorov(c) / 2  # a δ that the claim cannot keep
        for n in (10**3, 10**5, 10**7):
            assert kstwo.sf(c / np.sqrt(n), n) > failure > 0
    # simulated at c = 2: thresholds, d = 1, and δ = 1e-4
    rng, trials = np.random.default_rng(0), 40_000
    for n in (100, 400):
        exceeded = 0
        for _ in range(8):
            x = np.sort(rng.random((trials // 8, n)), axis=1)
            above, below = np.arange(1, n + 1) / n - x, x - np.arange(n) / n
            exceeded += int((np.maximum(above.max(axis=1), below.max(axis=1)) * np.sqrt(n) > 2).sum())
        low, high = clopper_pearson_interval(exceeded, trials, 0.001)
        assert low > 1e-4
        assert low <= kstwo.sf(2 / np.sqrt(n), n) <= high
    # d = 0 would give no deviation at all: one hypothesis, whose empirical risk deviates nevertheless
    single = FiniteDistribution([0], label_probabilities=[Fraction(1, 2)])
    assert representativeness(np.array([[True]]), ([0, 0, 0], [1, 1, 0]), single) == Fraction(1, 6)


@pytest.mark.item("LRN-26")
def test_the_deviation_with_delta_inside_is_kept():
    """The corrected form: c √((d + ln 1/δ)/n) covers all δ with one c; c = 1 does for thresholds, by the exact law."""
    for n in (10, 100, 1000):
        for failure in (0.5, 0.05, 1e-4, 1e-9):
            assert kstwo.sf(min(1.0, np.sqrt((1 + np.log(1 / failure)) / n)), n) <= failure


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LineDistribution(uniform(), noise=0.5), "noise"),
        (lambda: representativeness(Intervals(), ([0.1], [0]), LineDistribution(uniform())), "Thresholds only"),
        (lambda: uniform_convergence_experiment(Intervals(), LineDistribution(uniform()), 5), "Thresholds only"),
        (lambda: representativeness(Thresholds(), ([9.0], [0]), FiniteDistribution([0.0], labels=[1])), "does not have"),
        (lambda: representativeness(Thresholds(), ([9.0], [0]), uniform()), "known on a FiniteDistribution"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
