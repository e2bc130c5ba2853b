"""Visits of rows: what a weight of one is, and how often each row comes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lemmata.core.blocks import Blocks
from lemmata.core.visits import in_units, unit_of, visits_of


@given(arrays(float, st.integers(1, 30), elements=st.floats(0, 9)))
def test_every_row_gets_its_weight_in_whole_visits_and_one_that_counts_less(weight):
    rows, shares = visits_of(weight)
    assert (np.diff(rows) >= 0).all()
    assert ((shares > 0) & (shares <= 1)).all()
    np.testing.assert_allclose(np.bincount(rows, shares, len(weight)), weight, rtol=1e-12, atol=1e-300)
    assert np.array_equal(np.bincount(rows, minlength=len(weight)), np.ceil(weight))


@pytest.mark.parametrize("block_rows", [3, 100])
def test_the_unit_is_that_of_the_table_wherever_it_is_cut(block_rows):
    X, y, weight = np.eye(6), np.arange(6), np.array([0.1, 0.1, 0.1, 0.5, 0.5, 0.5])
    assert unit_of(Blocks.of(X, y, weight, block_rows=block_rows)) == pytest.approx((0.3, 6.0), rel=1e-12)
    assert unit_of(Blocks.of(X, y, 2 * weight, block_rows=block_rows)) == pytest.approx((1.0, 3.6), rel=1e-12)
    assert unit_of(Blocks.of(X, y, None, block_rows=block_rows)) == (1.0, 6.0)


@given(st.floats(1e-6, 0.9), st.integers(1, 200))
def test_weights_that_are_all_the_same_are_ones(weight, n):
    w = np.full(n, weight)
    unit, total = unit_of(Blocks.of(np.zeros((n, 1)), w))
    assert total == n
    assert (in_units(w, unit) == 1).all()


@pytest.mark.parametrize("weight", [1e9, 1e30])
def test_more_visits_than_there_is_room_for_are_refused(weight):
    with pytest.raises(ValueError, match=r"the weights of a block of rows add up to .*: divide sample_weight by a number"):
        visits_of(np.full(3, weight))
