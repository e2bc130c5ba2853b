"""Risks on finite domains are fractions; estimates lie in their intervals; all minimizers are found."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.risk import (
    FiniteDistribution,
    behaviors,
    empirical_risk,
    expected_empirical_risk,
    is_realizable,
    minimizers,
    predicted,
    true_risk,
)


def random_law(seed, k=4, agnostic=True):
    rng = np.random.default_rng(seed)
    weights = [int(w) for w in rng.integers(1, 9, k)]
    chances = [Fraction(int(c), 7) for c in rng.integers(0, 8, k)] if agnostic else [int(c) for c in rng.integers(0, 2, k)]
    return FiniteDistribution(np.arange(k), [Fraction(w, sum(weights)) for w in weights], label_probabilities=chances)


@pytest.mark.item("LRN-01")
@pytest.mark.parametrize("seed", range(5))
def test_true_risk_is_the_sum_over_the_domain(seed):
    law = random_law(seed)
    for labels in product([0, 1], repeat=4):
        risk = true_risk(lambda x, labels=labels: np.array(labels)[x], law)
        by_hand = sum(
            w * (p if label == 0 else 1 - p) for w, p, label in zip(law.probabilities, law.positive, labels, strict=True)
        )
        assert isinstance(risk, Fraction)
        assert risk == by_hand
    f = np.array([0, 1, 1, 0])
    h = np.array([1, 1, 0, 0])
    disagreement = law.probabilities[0] + law.probabilities[2]
    assert true_risk(lambda x: h[x], law.labeled(f)) == disagreement  # D{x : h(x) ≠ f(x)}


@pytest.mark.item("LRN-01")
def test_the_exact_risk_lies_in_the_interval_of_its_estimate():
    law = random_law(1)
    h = np.array([1, 0, 1, 0])
    exact = float(true_risk(lambda x: h[x], law))
    outside = 0
    for seed in range(400):
        estimate = true_risk(lambda x: h[x], law.sample, n=200, delta=0.05, random_state=seed)
        low, high = estimate.hoeffding
        assert low <= estimate.lower <= estimate.value <= estimate.upper <= high  # Hoeffding's is the wider one
        outside += not low <= exact <= high
    # Each estimate misses with probability at most 0.05: 38 or more of 400 would have probability below 2e-4.
    assert outside < 38
    low, high = true_risk(lambda x: h[x], law.sample, n=10_000, random_state=0).hoeffding
    assert low <= exact <= high


@pytest.mark.item("LRN-02")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_average_empirical_risk_over_all_samples_is_the_true_risk(n):
    for seed in range(3):
        law = random_law(seed, k=3)
        for labels in product([0, 1], repeat=3):
            h = np.array(labels)
            assert expected_empirical_risk(lambda x, h=h: h[x], law, n) == true_risk(lambda x, h=h: h[x], law)


@pytest.mark.item("LRN-02")
def test_empirical_risk_counts_errors_in_any_pair_of_labels():
    h, x = lambda x: x >= 2, np.array([0, 1, 2, 3, 4])
    truth = np.array([0, 1, 1, 1, 0])
    for y in (truth, truth > 0, 2 * truth - 1):
        assert empirical_risk(h, x, y) == 2 / 5
    assert empirical_risk(Thresholds().erm(x, truth).hypothesis, x, truth) == Thresholds().erm(x, truth).errors / 5
    with pytest.raises(ValueError, match="at least one row"):
        empirical_risk(h, [], [])
    with pytest.raises(ValueError, match="samples to sum over; take n from 1 up to 10"):
        expected_empirical_risk(h, FiniteDistribution(np.arange(4), labels=[0, 1, 1, 0]), 11)


@pytest.mark.item("LRN-03")
@pytest.mark.parametrize("seed", range(10))
def test_minimizers_are_all_of_least_empirical_risk(seed):
    rng = np.random.default_rng(seed)
    table = rng.random((12, 6)) < 0.5
    H, law = FiniteClass(table), random_law(seed, k=6)
    X, y = law.sample(8, rng)
    found = minimizers(H, X, y)
    risks = np.array([empirical_risk(h, X, y) for h in H.hypotheses])
    assert found.risk == risks.min()
    assert (found.risk <= risks).all()
    assert found.index.tolist() == np.flatnonzero(risks == risks.min()).tolist() == [h.number for h in H.all_erm(X, y)]
    np.testing.assert_array_equal(found.predictions, table[found.index][:, X])
    np.testing.assert_array_equal(found.predictions, minimizers(table[:, X], X, y).predictions)


@pytest.mark.item("LRN-03")
def test_realizable_means_consistent_on_every_sample():
    points = np.array([0.0, 1.0, 2.0, 3.0])
    for cls in (Thresholds(), Intervals()):
        for labels in product([0, 1], repeat=4):
            law = FiniteDistribution(points, labels=labels)
            realizable = is_realizable(cls, law)
            assert realizable == (cls.realizes(points, np.array(labels, dtype=bool)) is not None)
            consistent = [
                minimizers(cls, points[list(s)], np.array(labels)[list(s)]).risk == 0 for s in product(range(4), repeat=4)
            ]
            assert all(consistent) == realizable
    noisy = FiniteDistribution([0, 1], label_probabilities=[0, Fraction(1, 2)])
    assert not is_realizable([lambda x: x > 0, lambda x: x > 1], noisy)


def test_floats_are_the_fractions_they_are_and_give_floats():
    law = FiniteDistribution([0, 1, 2], [0.1, 0.2, 0.7], labels=[0, 1, 1])
    assert true_risk(lambda x: x > 1, law) == pytest.approx(0.2)
    assert isinstance(true_risk(lambda x: x > 1, law), float)
    assert sum(law.probabilities) == 1
    assert isinstance(true_risk(lambda x: x > 1, law.labeled([1, 1, 1])), float)
    assert true_risk(lambda x: x > 0, FiniteDistribution([0, 1], labels=lambda x: x > 0)) == 0


def test_samples_follow_the_law():
    law = random_law(3)
    X, y = law.sample(20_000, 0)
    for i, label, weight in law.atoms:
        # five standard deviations of a binomial share
        assert abs(((i == X) & (y == label)).mean() - float(weight)) < 5 * np.sqrt(float(weight * (1 - weight)) / 20_000)
    counts = law.counts(50, 1000, 0)
    assert (counts.sum(axis=1) == 50).all()
    wide = FiniteDistribution([[0.0, 1.0], [2.0, 3.0]], labels=[0, 1])
    assert wide.sample(5, 0)[0].shape == (5, 2)


def test_behaviors_of_lists_tables_and_classes_agree():
    points = np.array([0.0, 1.0, 2.0])
    functions = [lambda x, t=t: x < t for t in (0, 0.5, 1.5, 2.5)]
    rows = behaviors(functions, points)
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, behaviors(Thresholds(), points).tolist()))
    np.testing.assert_array_equal(behaviors(rows, points), rows)
    np.testing.assert_array_equal(predicted(lambda x: 1, points), [True] * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": [], "labels": []}, "must be different, and there must be at least one"),
        ({"points": [1, 1], "labels": [0, 1]}, "must be different"),
        ({"points": [1, 2]}, "Give either the labels"),
        ({"points": [1, 2], "labels": [0, 1], "label_probabilities": [0, 1]}, "Give either the labels"),
        ({"points": [1, 2], "labels": [0]}, "one probability and one label for each of the 2 points"),
        ({"points": [1, 2], "probabilities": [Fraction(1, 2), Fraction(1, 3)], "labels": [0, 1]}, "these sum to 0.83"),
        ({"points": [1, 2], "probabilities": [1.5, -0.5], "labels": [0, 1]}, "at least 0 and sum to 1"),
        ({"points": [1, 2], "label_probabilities": [0.5, 1.5]}, "lies between 0 and 1"),
    ],
)
def test_bad_distributions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FiniteDistribution(**arguments)


def test_bad_tables_and_empty_classes_are_refused():
    with pytest.raises(ValueError, match="a column for each of the 3 points"):
        behaviors(np.ones((2, 2)), [0, 1, 2])
    with pytest.raises(ValueError, match="The class is empty"):
        minimizers([], [0, 1], [0, 1])
