"""Failure probabilities exactly, by brute force over all samples; learners on hard distributions."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from scipy.stats import binom

from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.pac_harness import (
    PACExperiment,
    Trial,
    adversarial_bank,
    erm_failure_probability,
    misled_probability,
    pac_experiment,
)
from lemmata.theory.risk import FiniteDistribution
from lemmata.theory.sample_size import sample_size

STEPS = np.tri(6, 5, -1, dtype=bool)  # labels of 5 points by 6 thresholds


def brute_force(table, law, epsilon, m, ties):
    """Sum over all samples in sequence, from the definition."""
    risks, total = law.risks(table), Fraction(0)
    for sample in product(law.atoms, repeat=m):
        errors = [sum(row[i] != y for i, y, _ in sample) for row in table]
        least = [risk > min(risks) + epsilon for risk, e in zip(risks, errors, strict=True) if e == min(errors)]
        share = Fraction(sum(least), len(least)) if ties == "even" else int(any(least))
        total += prod(w for _, _, w in sample) * share
    return total


@pytest.mark.parametrize("ties", ["even", "worst"])
@pytest.mark.parametrize("seed", range(4))
def test_failure_probability_is_the_sum_over_all_samples(seed, ties):
    rng = np.random.default_rng(seed)
    table = rng.random((5, 3)) < 0.5
    law = FiniteDistribution(
        np.arange(3), [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], label_probabilities=[0, 1, Fraction(2, 3)]
    )
    for m in (1, 2, 4):
        expected = brute_force(table, law, Fraction(1, 10), m, ties)
        assert erm_failure_probability(table, law, Fraction(1, 10), m, ties=ties) == expected


@pytest.mark.item("LRN-04")
@pytest.mark.parametrize("target", range(6))
def test_exact_failure_is_within_the_bound(target):
    law = FiniteDistribution(np.arange(5), [Fraction(w, 15) for w in (1, 2, 3, 4, 5)], labels=STEPS[target])
    for epsilon in (Fraction(1, 20), Fraction(1, 10), Fraction(3, 10)):
        for m in (1, 5, 12):
            worst = erm_failure_probability(STEPS, law, epsilon, m, ties="worst")
            misled = misled_probability(STEPS, law, epsilon, m)
            bad = sum(risk > epsilon for risk in law.risks(STEPS))
            assert erm_failure_probability(STEPS, law, epsilon, m) <= worst == misled
            assert misled <= bad * (1 - epsilon) ** m <= len(STEPS) * (1 - epsilon) ** m
            # |H_B| is smaller than |H|: 001 has an equality where only this inequality holds
            assert bad < len(STEPS)
    # "<" in place of "≤" is false where both sides are zero
    assert misled_probability(STEPS, law, 1, 3) == 0 == len(STEPS) * (1 - 1) ** 3
    enough = sample_size(0.3, 0.1, hypotheses=6, realizable=True)
    misled = misled_probability(STEPS, law, Fraction(3, 10), enough)
    assert misled <= Fraction(1, 10)


@pytest.mark.item("LRN-04")
def test_erm_may_fail_however_many_rows_it_has():
    """001 calls ERM "guaranteed to succeed": at the size that is enough it still fails with positive probability."""
    law = FiniteDistribution(np.arange(5), labels=STEPS[3])
    m = sample_size(0.15, 0.1, hypotheses=6, realizable=True)
    assert 0 < misled_probability(FiniteClass(STEPS), law, Fraction(3, 20), m) <= Fraction(1, 10)


@pytest.mark.item("LRN-05")
def test_the_printed_agnostic_size_is_too_small():
    """H = {h, not h}, P(h correct) = (1 + ε')/2 with ε' just above ε: an exact counter-example to 000 Thm 2.2.2."""
    epsilon, failure = Fraction(1, 10), 1e-4
    law = FiniteDistribution([0], label_probabilities=[(1 + epsilon + Fraction(1, 10**5)) / 2])
    both = np.array([[True], [False]])

    def fails(n):
        exact = erm_failure_probability(both, law, epsilon, n)
        tail = binom.cdf(n // 2 - 1, n, 0.550005) + binom.pmf(n // 2, n, 0.550005) / 2  # "not h" wins, ties split evenly
        assert float(exact) == pytest.approx(tail, rel=1e-10)
        return float(exact)

    printed = int(np.ceil(np.log(2 * 2 / failure) / 0.1**2))
    assert printed == 1060
    probability = fails(printed)
    assert probability == pytest.approx(5.502e-4, abs=5e-8)
    assert probability > failure
    correct = sample_size(0.1, failure, hypotheses=2)
    assert correct == 2120
    probability = fails(correct)
    assert probability == pytest.approx(1.958e-6, abs=5e-10)
    assert probability <= failure


@pytest.mark.item("LRN-05")
@pytest.mark.parametrize("seed", range(5))
def test_agnostic_failure_is_within_its_bound(seed):
    rng = np.random.default_rng(seed)
    table = rng.random((6, 3)) < 0.5
    law = FiniteDistribution(np.arange(3), label_probabilities=[Fraction(int(c), 10) for c in rng.integers(1, 10, 3)])
    epsilon = Fraction(3, 10)
    for m in (4, 8, 12):
        bound = 2 * len(table) * np.exp(-m * 0.3**2 / 2)
        assert erm_failure_probability(table, law, epsilon, m, ties="worst") <= bound


@pytest.mark.item("LRN-06")
@pytest.mark.parametrize(("cls", "d"), [(Thresholds(), 1), (Intervals(), 2)])
def test_erm_learns_within_its_sample_size_on_every_distribution_of_the_bank(cls, d):
    points = np.arange(8.0)
    table = cls.dichotomies(points)
    bank = adversarial_bank(cls, points, 0.2, n_targets=2, random_state=d)

    def size(epsilon, delta):
        return sample_size(epsilon, delta, hypotheses=len(table), realizable=True)

    result = pac_experiment(cls, cls, bank, size, 0.2, 0.1, n_trials=200, random_state=0)
    assert result.m == size(0.2, 0.1)
    assert result.holds, str(result)
    assert all(trial.lower >= 0.9 for trial in result.trials)


@pytest.mark.item("LRN-06")
def test_agnostic_learning_holds_at_its_size_and_is_refuted_far_below():
    epsilon, delta = 0.25, 0.1
    bank = adversarial_bank(STEPS, np.arange(5), epsilon, realizable=False, n_targets=2, random_state=0)
    assert any("coins" in name for name in bank)

    def erm(X, y):
        return STEPS[(STEPS[:, X] != y).sum(axis=1).argmin()].__getitem__

    def size(epsilon, delta):
        return sample_size(epsilon, delta, hypotheses=len(STEPS))

    assert pac_experiment(erm, STEPS, bank, size, epsilon, delta, n_trials=200, random_state=0).holds

    def contrary(X, y):
        return ~STEPS[(STEPS[:, X] != y).sum(axis=1).argmin()]

    refused = pac_experiment(
        lambda X, y: contrary(X, y).__getitem__, STEPS, bank, 50, epsilon, delta, n_trials=60, random_state=0
    )
    assert not refused.holds
    assert refused.worst.refuted
    assert "refuted" in str(refused)


@pytest.mark.item("LRN-06")
def test_the_success_rates_are_those_of_the_exact_probabilities():
    bank = {"law": FiniteDistribution(np.arange(5), labels=STEPS[2])}

    def erm(X, y):
        return STEPS[(STEPS[:, X] != y).sum(axis=1).argmin()].__getitem__

    result = pac_experiment(erm, STEPS, bank, 3, 0.1, 0.05, n_trials=2000, random_state=1)
    trial = result.trials[0]
    # this ERM takes the first of the minimizers, so it fails as often as a point 0 or 1 is missing on its side
    exact = 1 - float(
        sum(
            Fraction(1, 125)
            for s in product(range(5), repeat=3)
            if STEPS[(STEPS[:, s] != STEPS[2, s]).sum(axis=1).argmin()].tolist() != STEPS[2].tolist()
        )
    )
    assert trial.lower <= exact <= trial.upper
    assert isinstance(result, PACExperiment)


def test_a_trial_may_be_open():
    assert Trial("shown", 100, 100, 0.96, 1.0, 0.05).holds
    between = Trial("open", 95, 100, 0.88, 0.98, 0.05)
    assert not between.holds
    assert not between.refuted
    assert "open" in str(PACExperiment(9, 0.1, 0.05, [between])).splitlines()[1]
    assert Trial("refuted", 50, 100, 0.4, 0.6, 0.05).refuted


def test_banks_are_hard_where_they_say():
    bank = adversarial_bank(STEPS, np.arange(5), Fraction(1, 10), realizable=False, n_targets=1, random_state=0)
    assert bank["rare points, target 0"].probabilities == [Fraction(8, 10)] + [Fraction(1, 20)] * 4
    assert bank["one rare point, target 0"].probabilities == [Fraction(1, 5)] * 5
    assert set(bank["coins, target 0"].positive) == {Fraction(4, 10), Fraction(6, 10)}
    for name, law in adversarial_bank(STEPS, np.arange(5), 0.1, random_state=0).items():
        assert min(law.risks(STEPS)) == 0, name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda law: erm_failure_probability(STEPS, law, 0.1, 3, ties="best"), "ties must be"),
        (lambda law: misled_probability(STEPS, law, 0.1, 200), "in too many ways"),
        (lambda law: adversarial_bank(STEPS, np.arange(5), 0.7), "strictly between 0 and 1/2"),
        (lambda law: adversarial_bank(STEPS[:, :1], [0], 0.1), "at least two points"),
        (lambda law: pac_experiment(None, STEPS, {"a": law}, 0, 0.1, 0.1), "m must be"),
        (lambda law: pac_experiment(None, STEPS, {"a": law}, 5, 0.1, 1.5), "delta"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(FiniteDistribution(np.arange(5), labels=STEPS[2]))
