"""Oracles: few questions, and no proof from an oracle that does not deliver."""

import numpy as np

from lemmata.theory.classes.few_points import AtMostNPoints
from lemmata.theory.classes.oracle import Oracle, OracleSaysNo


def test_oracle_asks_only_extensions_of_what_is_realized():
    asked = []

    def one_true(points, labels):
        asked.append(len(points))
        return labels.sum() <= 1

    found = Oracle(one_true).dichotomies(np.arange(12.0)[:, None])
    assert len(found) == 13
    assert len(asked) <= 2 * 12 * 13  # and not 2¹²
    np.testing.assert_array_equal(found, AtMostNPoints(1).dichotomies(np.arange(12)))


def test_an_oracle_that_learns_badly_proves_nothing():
    lazy = Oracle(lambda P, y: np.zeros(len(P), dtype=bool))  # always predicts False
    assert len(lazy.dichotomies([[1.0], [2.0]])) == 1
    assert lazy.refutes([[1.0]], [True]).certificate().holds
    assert not OracleSaysNo(np.array([[1.0]]), np.array([False]), lazy.ask).valid()
