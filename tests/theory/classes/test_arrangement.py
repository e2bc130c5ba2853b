"""Arrangements of rows without general position."""

import numpy as np

from lemmata.theory.classes.arrangement import fewest_errors, positive_parts


def test_arrangement_of_rows_that_repeat_and_cancel():
    F = np.array([[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0], [0.0, 0.0]])  # one line: three labelings
    assert positive_parts(F).astype(int).tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]]
    assert positive_parts(F, zero=False).astype(int).tolist() == [[0, 0, 1, 0], [1, 1, 0, 0]]
    assert positive_parts(np.zeros((2, 2))).tolist() == [[False, False]]
    cost, u = fewest_errors(F, np.array([0, 5, 0, 0]), np.array([3, 0, 1, 0]))
    assert cost == 3
    assert (F @ u)[2] > 0
    assert fewest_errors(np.zeros((2, 2)), np.array([0, 1]), np.array([2, 0])) == (2, [0, 0])
