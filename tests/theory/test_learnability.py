"""Six properties that are one; weights that share δ out once; hierarchies that cover all risks at once."""

import math
from fractions import Fraction

import numpy as np
import pytest

from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.halfspaces import Halfspaces
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.learnability import (
    Hierarchy,
    first_class,
    geometric,
    inverse_square,
    learnability_report,
    pac_lower_bound,
    simultaneous_coverage,
    srm_penalty,
    srm_weights,
    telescoping,
)
from lemmata.theory.no_free_lunch import memorizer, no_free_lunch
from lemmata.theory.risk import FiniteDistribution, predicted
from lemmata.theory.sample_size import sample_size


class AllFunctions:
    """Every function on an infinite set."""

    vc_dim = math.inf


@pytest.mark.item("LRN-24")
@pytest.mark.parametrize(
    "cls", [Thresholds(), Intervals(), Halfspaces(3), FiniteClass([[0, 1], [1, 1]]), 5, AllFunctions(), math.inf]
)
def test_the_six_properties_are_those_of_a_finite_dimension(cls):
    report = learnability_report(cls)
    d = getattr(cls, "vc_dim", cls)
    assert report.vc_dim == d
    assert len(report.properties) == 6
    assert set(report.properties.values()) == {math.isfinite(d)}
    assert report.lower_bound == pac_lower_bound(d)
    if math.isfinite(d):
        assert report.lower_bound <= sample_size(1 / 8, 1 / 8, vc_dim=d)
    else:
        with pytest.raises(ValueError, match="no number of rows is enough"):
            sample_size(1 / 8, 1 / 8, vc_dim=d)


@pytest.mark.item("LRN-24")
def test_the_lower_bound_grows_with_the_shattered_set():
    assert [pac_lower_bound(d) for d in range(7)] == [1, 1, 2, 2, 3, 3, 4]
    assert pac_lower_bound(math.inf) == math.inf
    # it is what enumeration finds: with m ≤ d/2 rows the memorizer fails on some target of d shattered points
    for d in (2, 4, 6):
        for m in range(1, d // 2 + 1):
            assert m < pac_lower_bound(d)
            assert no_free_lunch(d, memorizer, m).worst_failure > Fraction(1, 8)
    with pytest.raises(ValueError, match="vc_dim"):
        pac_lower_bound(-1)


def rows_needed(size, learner, most):
    """For each target on a domain, the least n from which on the learner has P(L ≤ 1/8) ≥ 7/8, under the uniform law."""
    tables = [no_free_lunch(size, learner, m).failure for m in range(1, most + 1)]
    needed = []
    for t in range(2**size):
        good = [table[t] <= Fraction(1, 8) for table in tables]
        needed.append(next((n for n in range(1, most + 1) if all(good[n - 1 :])), most + 1))
    return np.array(needed)


def biased(X, y):
    """Memorize, and say 1 elsewhere if more than half of the labels were 1."""
    return lambda points: np.where(np.isin(points, X), memorizer(X, y)(points), 2 * np.sum(y) > len(y))


@pytest.mark.item("LRN-27")
@pytest.mark.parametrize("learner", [memorizer, biased])
def test_competitors_that_need_n_rows_form_a_class_of_dimension_at_most_2n(learner):
    size, most = 3, 7
    needed = rows_needed(size, learner, most)
    labels = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(bool)
    dimensions = []
    for n in range(1, most + 1):
        members = labels[needed <= n]
        if len(members):
            dimensions.append(FiniteClass(members).vc_dim)
            assert dimensions[-1] <= 2 * n
    assert len(set(needed.tolist())) > 1, "some targets need more rows than others: learning is not uniform"
    assert (np.diff(dimensions) >= 0).all()


@pytest.mark.item("LRN-27")
def test_a_union_of_learnable_classes_is_learned_competitor_by_competitor():
    growing = Hierarchy([(FiniteClass(np.eye(n + 1, 5)), n) for n in range(1, 4)])
    assert growing.is_nonuniformly_learnable
    assert not Hierarchy([(Thresholds(), 1), (AllFunctions(), math.inf)]).is_nonuniformly_learnable
    sizes = [Hierarchy([(None, d) for d in (1, 2, 4, 8)]).sample_size(n, 0.2, 0.05) for n in (1, 2, 3, 4)]
    assert (np.diff(sizes) > 0).all()  # richer competitors need more rows
    # m(h, ε, δ) is m_UC of the class at ε/2 and w(n) δ
    w = 6 / (math.pi**2 * 4)
    assert sizes[1] == sample_size(0.1, w * 0.05, vc_dim=2, goal="deviation")
    # the definition needs "≥ 1 − δ": with the printed "≤", a learner that always succeeds would not be one
    successes = 1 - np.array([float(p) for p in no_free_lunch(2, memorizer, 8).failure])
    assert (successes >= 1 - 1 / 8).all()
    assert not (successes <= 1 - 1 / 8).any()


@pytest.mark.item("LRN-28")
def test_weights_sum_to_at_most_one():
    n = np.arange(1, 200_001)
    total = inverse_square(n).sum()
    assert total <= 1
    assert total == pytest.approx(0.999997, abs=5e-7)
    assert telescoping(n).sum() == pytest.approx(1 - 1 / 200_001)
    assert geometric(np.arange(1.0, 60.0)).sum() == pytest.approx(1.0)
    for weights in (None, telescoping, geometric, [0.5, 0.25, 0.2]):
        assert srm_weights(3, weights).sum() <= 1
    with pytest.raises(ValueError, match="sum to at most 1; these sum to 1"):
        srm_weights(2, [0.6, 0.5])
    with pytest.raises(ValueError, match="at least 0"):
        srm_weights(2, [0.6, -0.5])
    with pytest.raises(ValueError, match="one weight for each of the 3"):
        srm_weights(3, [0.6, 0.1])


@pytest.mark.item("LRN-28")
def test_penalty_with_the_weight_once():
    w = 6 / (math.pi**2 * 9)
    found = srm_penalty(3, 1000, 0.05, hypotheses=2**3)
    assert found == pytest.approx(0.0650509, abs=5e-8)
    assert found == pytest.approx(math.sqrt(math.log(2 * 8 / (w * 0.05)) / 2000), rel=1e-12)
    twice = math.sqrt(math.log(2 * 8 / (w * w * 0.05)) / 2000)  # the notes weight ε_n itself and then once more
    assert twice > found * 1.1
    assert srm_penalty(3, 1000, 0.05, telescoping, hypotheses=8) == pytest.approx(math.sqrt(math.log(16 * 12 / 0.05) / 2000))
    # ε_n(m, δ') = min{ε : m_UC(ε, δ') ≤ m}
    assert sample_size(found, w * 0.05, hypotheses=8, goal="deviation") == 1000
    assert sample_size(found * 0.9999, w * 0.05, hypotheses=8, goal="deviation") > 1000
    assert srm_penalty(1, 10, 0.05, lambda n: 0.0, vc_dim=1) == 1.0
    with pytest.raises(ValueError, match="between 0 and 1"):
        srm_penalty(1, 10, 0.05, lambda n: 2.0, vc_dim=1)


def nested(k, sizes, seed):
    """Finite classes on k points, each within the next."""
    rng = np.random.default_rng(seed)
    table = np.unique(rng.random((4 * max(sizes), k)) < 0.5, axis=0)
    table = table[rng.permutation(len(table))]
    return Hierarchy([(FiniteClass(table[:size]), int(math.log2(size))) for size in sizes])


@pytest.mark.item("LRN-28")
@pytest.mark.parametrize("seed", range(3))
def test_all_risks_are_covered_at_once(seed):
    hierarchy = nested(6, (1, 4, 16, 40), seed)
    law = FiniteDistribution(np.arange(6), label_probabilities=[0.1, 0.3, 0.5, 0.5, 0.8, 0.9])
    result = simultaneous_coverage(hierarchy, law, 60, 0.2, n_trials=3000, random_state=seed)
    assert result.lower >= 0.8
    assert result.lower <= result.covered / result.n_trials <= result.upper
    # the coverage is that of the definition, sample by sample
    table, number = first_class(hierarchy, law.points)
    risks = np.array([float(r) for r in law.risks(table)])
    rng, covered = np.random.default_rng(seed), 0
    for _ in range(300):
        X, y = law.sample(60, rng)
        empirical = (table[:, X] != y).mean(axis=1)
        covered += all(abs(e - r) <= hierarchy.penalty(n, 60, 0.2) for e, r, n in zip(empirical, risks, number, strict=True))
    assert covered / 300 >= 0.8


@pytest.mark.item("LRN-28")
def test_first_class_is_the_first_that_has_the_behavior():
    hierarchy = nested(5, (2, 5, 9), 0)
    table, number = first_class(hierarchy, np.arange(5))
    assert len(table) == 9
    for row, n in zip(table, number, strict=True):
        inside = [any((predicted(h, np.arange(5)) == row).all() for h in cls.hypotheses) for cls in hierarchy.classes]
        assert inside.index(True) + 1 == n
    assert sorted(number.tolist()) == [1] * 2 + [2] * 3 + [3] * 4


def test_hierarchies_refuse_nonsense():
    with pytest.raises(ValueError, match="at least one class"):
        Hierarchy([])
    with pytest.raises(ValueError, match="A VC dimension"):
        Hierarchy([(None, -1)])
    assert len(Hierarchy([(None, 1), (None, 2)])) == 2
