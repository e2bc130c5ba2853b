"""No free lunch: every learner, every target, every sample, in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from lemmata.theory.no_free_lunch import memorizer, no_free_lunch


def majority(X, y):
    return lambda points: np.full(len(points), 2 * y.sum() > len(y))


def nearest(X, y):
    return lambda points: y[np.abs(X - points[:, None]).argmin(axis=1)]


def contrary(X, y):
    return lambda points: ~memorizer(X, y)(points)


def thresholds(X, y):
    steps = np.tri(9, 8, -1, dtype=bool)
    return lambda points: steps[(steps[:, X] != y).sum(axis=1).argmin()][points]


LEARNERS = [memorizer, majority, nearest, contrary, thresholds]


@pytest.mark.item("LRN-23")
@pytest.mark.parametrize(("size", "m", "printed"), [(4, 2, 0.28125), (6, 3, 0.289352)])
def test_average_error_of_the_memorizer(size, m, printed):
    result = no_free_lunch(size, memorizer)
    assert result.m == m
    assert result.average == Fraction(1, 2) * (1 - Fraction(1, size)) ** m
    assert float(result.average) == pytest.approx(printed, abs=5e-7)


@pytest.mark.item("LRN-23")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
@pytest.mark.parametrize("size", [2, 4, 5, 6])
def test_every_learner_has_a_target_on_which_it_fails(learner, size):
    for m in {1, size // 2}:
        result = no_free_lunch(size, learner, m)
        assert result.applies
        assert result.average >= Fraction(1, 4)
        assert result.worst >= Fraction(1, 4)
        assert result.worst_failure >= Fraction(1, 7) > Fraction(1, 8)
        assert result.holds
        assert len(result.expected) == len(result.failure) == 2**size


@pytest.mark.item("LRN-23")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_the_table_is_that_of_the_definition(learner):
    size, m = 4, 2
    result = no_free_lunch(size, learner, m)
    for t, labels in enumerate(product([False, True], repeat=size)):
        f = np.array(labels)[::-1]  # bit i of t is the label of point i
        risks = [
            Fraction(int((learner(np.array(s), f[list(s)])(np.arange(size)) != f).sum()), size)
            for s in product(range(size), repeat=m)
        ]
        assert result.expected[t] == sum(risks) / len(risks)
        assert result.failure[t] == Fraction(sum(risk > Fraction(1, 8) for risk in risks), len(risks))
    assert result.expected[int(result.worst_target @ (1 << np.arange(size)))] == result.worst


@pytest.mark.item("LRN-23")
def test_with_enough_rows_the_theorem_is_silent():
    result = no_free_lunch(2, memorizer, 6)
    assert not result.applies
    assert result.holds
    assert result.worst == Fraction(1, 64)  # the target (1, 1) is missed on one point if the sample has only the other: 2·2⁻⁶/2
    assert result.worst < Fraction(1, 4)


def test_sizes_are_guarded():
    with pytest.raises(ValueError, match="too many to list"):
        no_free_lunch(16)
    with pytest.raises(ValueError, match="domain_size"):
        no_free_lunch(1)
    with pytest.raises(ValueError, match="m must be"):
        no_free_lunch(4, m=0)
    result = no_free_lunch(8, m=2)
    assert "256 targets on 8 points" in str(result)
    assert result.failure[1] == 0  # one point of eight is missed at most, and 1/8 does not exceed 1/8
    assert result.failure[3] == Fraction(36, 64)  # both points of this target are missed by six points of eight, twice
