"""Points, labels and labelings: what is read as what, and what is refused."""

import numpy as np
import pytest

from lemmata.theory.classes.labelings import as_labels, as_points, as_weights, first_missing, sorted_labelings


def test_labels_of_any_two_kinds():
    for y in ([0, 1, 1], [-1, 1, 1], ["a", "b", "b"], [False, True, True], [2.0, 5.0, 5.0]):
        np.testing.assert_array_equal(as_labels(y, 3), [False, True, True])
    np.testing.assert_array_equal(as_labels([1, 1], 2), [True, True])
    np.testing.assert_array_equal(as_labels([-1, -1], 2), [False, False])
    np.testing.assert_array_equal(as_labels([0, 0], 2), [False, False])
    with pytest.raises(ValueError, match="could mean either side"):
        as_labels([7, 7], 2)
    with pytest.raises(ValueError, match="could mean either side"):
        as_labels(["a", "a"], 2)
    with pytest.raises(ValueError, match="two kinds"):
        as_labels([1, 2, 3], 3)
    with pytest.raises(ValueError, match="one label for each of the 3 points"):
        as_labels([0, 1], 3)


def test_points_and_weights_that_are_none():
    with pytest.raises(ValueError, match="2 coordinates"):
        as_points([[1.0]], 2)
    with pytest.raises(ValueError, match="finite"):
        as_points([[np.nan]], 1)
    for bad in ([1.0], [1, -1], [1.0, np.nan], ["a", "b"]):
        with pytest.raises(ValueError, match="weights"):
            as_weights(bad, 2)


@pytest.mark.parametrize("m", [3, 20, 70])
def test_first_missing_labeling_of_many_points(m):
    numbers = [0, 1, 2, 4]
    rows = np.array([[n >> (m - 1 - j) & 1 if m - 1 - j < 60 else 0 for j in range(m)] for n in numbers], dtype=bool)
    np.testing.assert_array_equal(sorted_labelings(rows[[3, 1, 0, 0, 2]], m), rows)
    missing = first_missing(rows)
    np.testing.assert_array_equal(np.flatnonzero(missing), [m - 2, m - 1])  # 3
    np.testing.assert_array_equal(np.flatnonzero(first_missing(rows[:3])), [m - 2, m - 1])
    np.testing.assert_array_equal(np.flatnonzero(first_missing(rows[1:])), [])
