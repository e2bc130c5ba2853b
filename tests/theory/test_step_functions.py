"""Step functions: the fewest errors against brute force over all labelings with so many changes, from both ends."""

from itertools import product

import numpy as np
import pytest

from lemmata.theory.step_functions import backward_errors, log_steps, midpoints, step_errors, step_function


def brute_force(x, y, weight, changes):
    """Try every labeling of the distinct values."""
    values, place = np.unique(x, return_inverse=True)
    best = np.full(changes + 1, np.inf)
    for labels in product([0, 1], repeat=len(values)):
        labels = np.array(labels)
        errors = weight @ (labels[place] != y)
        c = int((np.diff(labels) != 0).sum())
        best[c:] = np.minimum(best[c:], errors)
    return best


@pytest.mark.parametrize("seed", range(30))
def test_fewest_errors_are_those_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    x = rng.integers(0, 8, n).astype(float)  # with ties
    y, weight = rng.integers(0, 2, n), rng.integers(1, 5, n).astype(float)
    expected = brute_force(x, y, weight, 5)
    np.testing.assert_array_equal(step_errors(x, y, weight, 5), expected)
    np.testing.assert_array_equal(backward_errors(x, y, weight, 5), expected)
    for changes in range(6):
        cuts, first = step_function(x, y, weight, changes)
        assert len(cuts) <= changes
        predictions = (first + np.searchsorted(cuts, x, side="right")) % 2
        assert weight @ (predictions != y) == expected[changes]
        assert not np.isin(cuts, x).any()
        assert ((cuts > x.min()) & (cuts < x.max())).all()


def test_weights_are_repetition_and_rows_may_come_in_any_order():
    rng = np.random.default_rng(0)
    x, y, weight = rng.normal(size=40), rng.integers(0, 2, 40), rng.integers(0, 4, 40)
    weighted = step_errors(x, y, weight.astype(float), 6)
    repeated = step_errors(np.repeat(x, weight), np.repeat(y, weight), np.ones(weight.sum()), 6)
    np.testing.assert_array_equal(weighted, repeated)
    order = rng.permutation(40)
    np.testing.assert_array_equal(step_errors(x[order], y[order], weight[order].astype(float), 6), weighted)
    assert (np.diff(weighted) <= 0).all()


@pytest.mark.parametrize(("m", "d"), [(1, 2), (4, 1), (4, 2), (5, 3)])
def test_growth_bounds_the_labelings_and_is_reached_on_one_column(m, d):
    rng = np.random.default_rng(m + d)
    for changes in range(5):
        bound = np.exp(log_steps(m, d, changes))
        found = set()
        for column in rng.normal(size=(d, m)):
            order = np.argsort(column)
            for labels in product([0, 1], repeat=m):
                if (np.diff(np.array(labels)[order]) != 0).sum() <= changes:
                    found.add(labels)
        assert len(found) <= bound * (1 + 1e-12)
        if d == 1:
            assert len(found) == pytest.approx(bound)


def test_growth_has_no_overflow():
    assert log_steps(10**6, 10**4, 15) < 250
    assert log_steps(50, 3, 200) == pytest.approx(50 * np.log(2))


def test_cuts_separate_neighbors_that_have_nothing_between_them():
    low = np.array([1.0, -1e308, 0.0])
    high = np.array([np.nextafter(1.0, 2.0), 1e308, 5e-324])
    cuts = midpoints(low, high)
    assert ((low < cuts) & (cuts <= high)).all()
