"""Growth functions against counted labelings: by linear programs, by enumeration of stumps and trees, by exact integers."""

from itertools import permutations, product
from math import comb, e, exp, log

import numpy as np
import pytest
from scipy.optimize import linprog

from lemmata.theory.bounds.growth import (
    log_argmax_linear,
    log_boosted_stumps,
    log_catalan,
    log_cover,
    log_naive_bayes,
    log_polynomials,
    log_quadratic,
    log_sauer,
    log_stumps,
    log_trees,
    stump_vc_dimension,
)


def separable(X, y):
    rows = y[:, None] * np.column_stack([X, np.ones(len(X))])
    return linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(X)), bounds=(None, None)).status == 0


def stump_labelings(X):
    """Return all labelings of rows by a threshold in one feature, as tuples of bools."""
    found = set()
    for column in X.T:
        for threshold in np.append(column.min() - 1, column):
            above = column > threshold
            found |= {tuple(above.tolist()), tuple((~above).tolist())}
    return found


def tree_labelings(X, leaves, classes, rows=None):
    """Return all labelings of rows by trees with exactly so many leaves, splits that separate nothing included."""
    rows = tuple(range(len(X))) if rows is None else rows
    if leaves == 1:
        return {tuple((row, c) for row in rows) for c in range(classes)}
    found = set()
    for column in X.T:
        for threshold in np.append(column.min() - 1, column):
            left = tuple(row for row in rows if column[row] <= threshold)
            right = tuple(row for row in rows if column[row] > threshold)
            for some in range(1, leaves):
                for a, b in product(tree_labelings(X, some, classes, left), tree_labelings(X, leaves - some, classes, right)):
                    found.add(tuple(sorted(a + b)))
    return found


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(log_cover(20_000, 10), 84.621360, id="3.7 Cover"),
        pytest.param(log_sauer(20_000, 11), 91.433855, id="3.7 Sauer"),
        pytest.param(log_trees(2000, 10, 8), 80.927546, id="3.8 tree"),
        pytest.param(log_boosted_stumps(2000, 10, 20), 266.015000, id="3.8 boosted stumps"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (5, 2), (6, 2), (6, 3), (7, 3), (3, 5)])
def test_cover_counts_half_spaces(m, d):
    X = np.random.default_rng(m + d).normal(size=(m, d))
    counted = sum(separable(X, np.array(y)) for y in product([-1.0, 1.0], repeat=m))
    assert exp(log_cover(m, d)) == pytest.approx(counted, rel=1e-12)
    assert log_cover(m, d) <= log_sauer(m, d + 1) + 1e-12


def test_cover_is_the_maximum_over_all_point_sets():
    line = np.column_stack([np.arange(5.0), np.zeros(5)])  # not in general position: fewer labelings, never more
    counted = sum(separable(line, np.array(y)) for y in product([-1.0, 1.0], repeat=5))
    assert counted == 10 < exp(log_cover(5, 2))


def test_homogeneous_count_fails_with_opposite_points():
    x = np.array([1.0, -1.0])
    counted = {tuple((w * x >= 0).tolist()) for w in (-1.0, 0.0, 1.0)}
    homogeneous = 2 * sum(comb(1, i) for i in range(1))
    assert homogeneous < len(counted) == 3 < exp(log_cover(2, 1))


def test_sauer_sum_and_the_popular_form():
    for m in range(12):
        for d in range(14):
            assert exp(log_sauer(m, d)) == pytest.approx(sum(comb(m, i) for i in range(d + 1)), rel=1e-12)
            if 1 <= d <= m:
                assert log_sauer(m, d) <= d * log(e * m / d) + 1e-12
    assert (e * 1 / 3) ** 3 < 1 < exp(log_sauer(1, 3))  # false where m < d


def test_classes_that_are_half_spaces_of_features():
    assert log_polynomials(60, 2, 3) == log_cover(60, 9)
    assert log_quadratic(60, 4) == log_cover(60, 14)
    assert log_naive_bayes(60, 4) == log_cover(60, 8)
    assert log_argmax_linear(60, 3, 4) == pytest.approx(6 * log_cover(60, 3), rel=1e-15)
    assert log_argmax_linear(60, 3, 2) == log_cover(60, 3)


@pytest.mark.parametrize(("m", "d"), [(1, 3), (2, 1), (5, 1), (9, 2), (12, 3)])
def test_stumps_are_counted(m, d):
    found = stump_labelings(np.random.default_rng(m).normal(size=(m, d)))
    assert len(found) <= round(exp(log_stumps(m, d)))
    if d <= 2 and m > 4:  # few orders of many points share no cut
        assert len(found) == round(exp(log_stumps(m, d)))


def test_stump_vc_dimension():
    """Section 3.8: 1 → 2, 2 → 3, 10 → 6, 100 → 9; neither 2 nor d + 1."""
    assert [stump_vc_dimension(d) for d in (1, 2, 10, 100)] == [2, 3, 6, 9]

    def shattered(v, d):
        orders = [np.arange(v)] + [np.array(order) for order in permutations(range(v))]
        tables = product(orders[1:], repeat=d - 1)
        return any(len(stump_labelings(np.column_stack([orders[0], *table]))) == 2**v for table in tables)

    for d, v in ((1, 2), (2, 3)):
        assert shattered(v, d)
        assert not shattered(v + 1, d)


def test_catalan_numbers():
    assert [round(exp(log_catalan(j))) for j in range(9)] == [1, 1, 2, 5, 14, 42, 132, 429, 1430]


@pytest.mark.parametrize(
    ("m", "d", "leaves", "classes"), [(1, 2, 2, 2), (4, 1, 2, 2), (4, 2, 3, 2), (4, 1, 3, 3), (5, 1, 4, 2)]
)
def test_trees_are_counted(m, d, leaves, classes):
    X = np.random.default_rng(m).normal(size=(m, d))
    assert len(tree_labelings(X, leaves, classes)) <= exp(log_trees(m, d, leaves, classes)) * (1 + 1e-12)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_votes_of_stumps_are_counted(rounds):
    X = np.random.default_rng(rounds).normal(size=(5, 1))
    base = [np.where(labels, 1.0, -1.0) for labels in stump_labelings(X)]
    weights = list(product([0.3, 1.0, 1.7, 2.9], repeat=rounds))
    found = {tuple((np.dot(w, votes) > 0).tolist()) for votes in product(base, repeat=rounds) for w in weights}
    assert len(found) <= exp(log_boosted_stumps(5, 1, rounds)) * (1 + 1e-12)


@pytest.mark.parametrize(
    "call", [lambda: log_cover(0, 2), lambda: log_sauer(5, -1), lambda: log_trees(5, 2, 0), lambda: log_argmax_linear(5, 2, 1)]
)
def test_bad_counts_are_named(call):
    with pytest.raises(ValueError, match="must be a whole number of at least"):
        call()
