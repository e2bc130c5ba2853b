"""Thresholds and intervals: counts, dimension and the fewest errors, by brute force."""

import numpy as np
import pytest

from lemmata.theory.classes.real_line import Intervals, Thresholds, WrongOrder
from lemmata.theory.classes.rectangles import InsideBox


@pytest.mark.item("LRN-13")
def test_growth_of_the_catalogue_by_brute_force():
    thresholds, intervals = [], []
    for m in range(1, 5):
        x = np.arange(m, dtype=float)
        ends = np.arange(-0.75, m + 0.5, 0.5)
        thresholds.append(len({tuple(x < a) for a in ends}))
        intervals.append(len({tuple((a <= x) & (x <= b)) for a in ends for b in ends}))
    assert thresholds == [2, 3, 4, 5] == [Thresholds().growth(m) for m in range(1, 5)]
    assert intervals == [2, 4, 7, 11] == [Intervals().growth(m) for m in range(1, 5)]
    for m in range(1, 30):
        x = np.random.default_rng(m).normal(size=m)
        assert len(Thresholds().dichotomies(x)) == Thresholds().growth(m) == m + 1
        assert len(Intervals().dichotomies(x)) == Intervals().growth(m) == 1 + m * (m + 1) // 2


@pytest.mark.item("LRN-13")
def test_dimensions_one_and_two():
    assert Thresholds().vc_dim == 1
    assert Intervals().vc_dim == 2
    assert Thresholds().shatters([0.3])
    assert Intervals().shatters([0.3, -2.0])
    rng = np.random.default_rng(0)
    for _ in range(100):
        two, three = rng.integers(-2, 3, size=(2, 1)), rng.integers(-2, 3, size=(3, 1))
        assert not Thresholds().shatters(two)
        assert not Intervals().shatters(three)
        assert Thresholds().unshattered(two).valid()
        assert Intervals().unshattered(three).valid()


def test_a_wrong_refutation_is_noticed():
    x = np.array([[1.0], [2.0], [3.0]])
    labels = np.array([True, False, True])
    assert WrongOrder(x, labels, 1, 2).valid()
    assert not WrongOrder(x, labels, 1, 0).valid()
    assert not WrongOrder(x, labels, 0, 2).valid()
    assert not WrongOrder(x, labels, 1, 1).valid()
    assert InsideBox(x, labels, 1, np.array([0]), np.array([2])).valid()
    assert not InsideBox(x, labels, 1, np.array([0]), np.array([0])).valid()
    assert not InsideBox(x, labels, 0, np.array([0]), np.array([2])).valid()
    assert not InsideBox(x, ~labels, 1, np.array([0]), np.array([2])).valid()


def test_threshold_falls_between_neighboring_floats():
    a = 1.0
    b = np.nextafter(a, 2.0)
    for H in (Thresholds(), Intervals()):
        h = H.realizes([a, b], [1, 0])
        assert h.predict([a, b]).tolist() == [True, False]
        assert H.erm([a, b], [1, 0]).errors == 0
    huge = np.finfo(float).max
    assert Thresholds().realizes([huge / 2, huge], [1, 0]).predict([huge / 2, huge]).tolist() == [True, False]
    assert Thresholds().realizes([-huge, huge], [1, 0]).at == 0


@pytest.mark.parametrize("seed", range(3))
def test_fewest_errors_of_many_points(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 60, size=200) / 4
    y = rng.random(200) < np.where((x > 4) & (x < 9), 0.8, 0.3)
    w = rng.integers(1, 5, size=200)
    ends = np.arange(-1, 62) / 4 - 0.125
    threshold, interval = Thresholds().erm(x, y, w), Intervals().erm(x, y, w)
    assert threshold.errors == min(w @ ((x < a) != y) for a in ends) == w @ (threshold.hypothesis.predict(x) != y)
    assert interval.errors == min(w @ (((x > a) & (x < b)) != y) for a in ends for b in ends)
    assert interval.errors == w @ (interval.hypothesis.predict(x) != y)
    assert interval.errors < threshold.errors


def test_no_labels_true_is_the_empty_interval():
    best = Intervals().erm([1, 2], [0, 0])
    assert repr(best.hypothesis) == "Box(empty)"
    assert best.errors == 0
    with pytest.raises(ValueError, match="at least 2 points"):
        Thresholds().unshattered([1.0])
