"""Sets of at most n points reach Sauer's bound."""

from itertools import product

import numpy as np
import pytest

from lemmata.theory.classes.few_points import AtMostNPoints, TooManyPoints
from lemmata.theory.classes.sauer import sauer_bound


@pytest.mark.item("LRN-12")
@pytest.mark.parametrize("n", range(5))
def test_growth_is_sauers_bound_and_the_dimension_is_n_by_brute_force(n):
    H = AtMostNPoints(n)
    shattered = []
    for m in range(8):
        count = sum(sum(labels) <= n for labels in product([0, 1], repeat=m))
        assert count == len(H.dichotomies(np.arange(m))) == H.growth(m) == sauer_bound(m, n)
        shattered.append(bool(H.shatters(np.arange(m))))
        assert shattered[-1] == (count == 2**m)
    assert shattered.index(False) - 1 == n == H.vc_dim


def test_refutations():
    x = np.array([[1.0], [2.0], [2.0], [3.0]])
    labels = np.array([True, True, False, True])
    assert TooManyPoints(x, labels, 2, (0, 1, 3)).valid()
    assert not TooManyPoints(x, labels, 3, (0, 1, 3)).valid()
    assert not TooManyPoints(x, labels, 2, (0, 1, 1)).valid()
    assert TooManyPoints(x, labels, 3, (1, 2)).valid()
    assert not TooManyPoints(x, labels, 3, (0, 2)).valid()
    assert "equal" in AtMostNPoints(3).refutes(x, labels).claim
    assert "different" in AtMostNPoints(2).refutes(x, labels).claim
    for points in (x, x[[0, 1, 3]]):
        assert AtMostNPoints(2).unshattered(points).valid()
    with pytest.raises(ValueError, match="too many to list"):
        AtMostNPoints(10).dichotomies(np.arange(60))
    with pytest.raises(ValueError, match="at least 3 points"):
        AtMostNPoints(2).unshattered(x[[1, 2]])


def test_fewest_errors_takes_the_largest_gains():
    best = AtMostNPoints(1).erm([[0, 0], [0, 0], [1, 0], [1, 1]], [1, 1, 1, 0])
    assert best.errors == 1
    assert repr(best.hypothesis) == "FewPoints([(0.0, 0.0)])"
    assert AtMostNPoints(2).erm([1, 2], [0, 0]).hypothesis.members.shape == (0, 1)
