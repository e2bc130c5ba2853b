"""Radon's partition: exact, for any d + 2 points, and a proof that half-spaces do not shatter them."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from lemmata.theory.classes.halfspaces import Halfspaces
from lemmata.theory.classes.radon import HullsMeet, radon_partition


@pytest.mark.item("LRN-17")
def test_corners_of_the_unit_square():
    partition = radon_partition([[0, 0], [1, 1], [1, 0], [0, 1]])
    sides = {frozenset(partition.positive.tolist()), frozenset(partition.negative.tolist())}
    assert sides == {frozenset({0, 1}), frozenset({2, 3})}
    np.testing.assert_array_equal(partition.point, [0.5, 0.5])
    assert partition.weights == [Fraction(1, 2)] * 4
    assert partition.certificate().holds


@pytest.mark.item("LRN-17", "LRN-16")
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_both_convex_combinations_give_the_point_exactly(d):
    rng = np.random.default_rng(d)
    for trial in range(10):
        X = rng.integers(-2, 3, size=(d + 2, d)).astype(float) if trial % 2 else rng.normal(size=(d + 2, d))
        partition = radon_partition(X)
        points = []
        for side in (partition.positive, partition.negative):
            weights = [partition.weights[i] for i in side]
            assert min(weights) >= 0
            assert sum(weights) == 1
            points.append([sum(w * Fraction(X[i, j]) for w, i in zip(weights, side, strict=True)) for j in range(d)])
        assert points[0] == points[1]
        np.testing.assert_allclose(partition.point, [float(x) for x in points[0]], rtol=1e-15)
        assert sorted([*partition.positive, *partition.negative]) == list(range(d + 2))
        assert partition.certificate().holds
        # no half-space: the linear program of the same labels has no solution
        rows = np.where(partition.labels, -1.0, 1.0)[:, None] * np.hstack([X, np.ones((d + 2, 1))])
        assert linprog(np.zeros(d + 1), A_ub=rows, b_ub=-np.ones(d + 2), bounds=(None, None)).status == 2
        assert Halfspaces(d).realizes(X, partition.labels) is None


@pytest.mark.item("LRN-17")
def test_certificate_refuses_other_weights_and_other_points():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    good = radon_partition(X)
    third = Fraction(1, 3)
    assert not HullsMeet(X, good.labels, [third, 1 - third, third, 1 - third]).certificate().holds
    assert not HullsMeet(X + 1e-12 * np.eye(4, 2), good.labels, good.weights).certificate().holds
    assert not HullsMeet(X, good.labels, [w * 2 for w in good.weights]).certificate().holds
    assert not HullsMeet(X, np.array([True, False, True, False]), good.weights).certificate().holds
    negative = [Fraction(3, 2), Fraction(-1, 2), Fraction(1, 2), Fraction(1, 2)]
    assert not HullsMeet(X, good.labels, negative).certificate().holds
    assert not HullsMeet(X, good.labels, good.weights[:3]).certificate().holds


def test_independent_points_have_no_partition_and_dependent_ones_need_not_be_many():
    with pytest.raises(ValueError, match="affinely independent and have no Radon partition: give 4 points"):
        radon_partition([[0, 0], [1, 0], [0, 1]])
    assert radon_partition([[0, 0], [1, 1], [2, 2]]).valid()
    assert radon_partition([[3, 3], [3, 3]]).point.tolist() == [3, 3]
    assert radon_partition(np.random.default_rng(0).normal(size=(9, 2))).valid()
