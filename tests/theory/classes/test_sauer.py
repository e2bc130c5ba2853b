"""Sauer's lemma, Cover's count and the inequality of shattered subsets, with the misprints of the notes shown wrong."""

from itertools import combinations
from math import comb, e, log

import numpy as np
import pytest

from lemmata.theory.bounds.growth import log_cover, log_sauer
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.halfspaces import Halfspaces
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.classes.sauer import (
    count_shattered_subsets,
    half_space_dichotomies,
    sauer_bound,
    sauer_exponential,
    sauer_polynomial,
)


def random_class(rng, points=5):
    return rng.random((int(rng.integers(1, 2**points)), points)) < rng.uniform(0.2, 0.8)


def restricted(table, chosen):
    return len({tuple(row) for row in table[:, list(chosen)]})


@pytest.mark.item("LRN-21")
def test_numbers_of_the_catalogue():
    assert sauer_bound(5, 2) == 16
    assert 16 <= 5**2
    assert sauer_exponential(5, 2) == pytest.approx(46.1816, abs=5e-5)
    assert sauer_exponential(5, 2) == pytest.approx((e * 5 / 2) ** 2, rel=1e-15)


@pytest.mark.item("LRN-21")
def test_chain_of_bounds_and_where_the_printed_ones_fail():
    for m in range(1, 25):
        for d in range(1, 12):
            total = sum(comb(m, i) for i in range(d + 1))
            assert sauer_bound(m, d) == total <= sauer_polynomial(m, d) == m**d + 1
            assert log(total) == pytest.approx(log_sauer(m, d), rel=1e-12)
            if m >= d:
                assert total <= sauer_exponential(m, d)
            if m >= 2 and d >= 2:
                assert total <= m**d
    # printed: π(m) ≤ m^d; wrong for d = 1 and for m = 1
    assert Thresholds().growth(7) == sauer_bound(7, 1) == 8 > 7**1
    assert Intervals().growth(1) == sauer_bound(1, 2) == 2 > 1**2
    # printed: Σ_{i≤d} C(m, d) in place of C(m, i)
    assert Intervals().growth(2) == 4 > sum(comb(2, 2) for _ in range(3))
    # (em/d)^d says nothing for m < d
    assert (e * 1 / 5) ** 5 < 2 == sauer_bound(1, 5)
    with pytest.raises(ValueError, match="m ≥ d only"):
        sauer_exponential(1, 5)
    with pytest.raises(ValueError):
        sauer_exponential(5, 0)


@pytest.mark.item("LRN-21", "LRN-20", "LRN-18")
def test_random_classes_keep_all_three_inequalities():
    rng = np.random.default_rng(0)
    for _ in range(200):
        table = random_class(rng)
        H = FiniteClass(table)
        shattered = [c for k in range(6) for c in combinations(range(5), k) if restricted(table, c) == 2**k]
        d = max(len(c) for c in shattered)
        assert H.vc_dim == d
        assert 2**d <= restricted(table, range(5)) <= len(H)
        assert restricted(table, range(5)) <= count_shattered_subsets(H, np.arange(5)) == len(shattered)
        for m in range(6):
            growth = max(restricted(table, c) for c in combinations(range(5), m))
            assert H.growth(m) == growth <= sauer_bound(m, d)
        for chosen in combinations(range(5), 3):
            inside = [c for c in shattered if set(c) <= set(chosen)]
            assert restricted(table, chosen) <= count_shattered_subsets(H, np.array(chosen)) == len(inside)


@pytest.mark.item("LRN-20")
def test_inequality_is_about_the_restriction_not_the_class():
    table = np.random.default_rng(1).random((30, 5)) < 0.5
    H = FiniteClass(table)
    assert len(H.dichotomies([0, 1])) <= count_shattered_subsets(H, [0, 1]) == 4 < len(H)  # the printed |H| would be wrong


@pytest.mark.item("LRN-20")
def test_half_spaces_shatter_enough_subsets():
    rng = np.random.default_rng(2)
    for X in (rng.normal(size=(6, 2)), rng.integers(-1, 2, size=(6, 2))):
        H = Halfspaces(2)
        count = sum(bool(H.shatters(X[list(c)])) for k in range(5) for c in combinations(range(6), k))
        assert len(H.dichotomies(X)) <= count == count_shattered_subsets(H, X)


@pytest.mark.item("LRN-22")
def test_covers_count_and_the_printed_bound():
    assert half_space_dichotomies(5, 2) == 22 <= 5**3 == 125
    for m in range(1, 30):
        for d in range(1, 8):
            count = 2 * sum(comb(m - 1, i) for i in range(d + 1))
            assert half_space_dichotomies(m, d) == count == half_space_dichotomies(m, d + 1, homogeneous=True)
            assert log(count) == pytest.approx(log_cover(m, d), rel=1e-12)
            assert count <= sauer_bound(m, d + 1)
            if m >= 2:
                assert count <= m ** (d + 1)
    assert half_space_dichotomies(1, 2) == 2 > 1**3  # one point has two labelings
    assert half_space_dichotomies(0, 2) == 1


def test_bounds_are_integers_of_any_size():
    assert isinstance(sauer_bound(1000, 500), int)
    assert sauer_bound(1000, 1000) == 2**1000
    assert half_space_dichotomies(2000, 10) == 2 * sum(comb(1999, i) for i in range(11))
    for bad in (-1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="whole number"):
            sauer_bound(bad, 2)
