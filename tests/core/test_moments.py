"""Moments of rows and spreads of columns, put together from blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from lemmata.core.moments import spread_block


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 1e8, -1e-9]))
def test_spreads_of_blocks_are_those_of_all_rows(n, d, seed, weighted, offset):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, d)) + offset, rng.integers(1, 4, n).astype(float) if weighted else None
    middle = int(rng.integers(1, n))
    parts = [slice(0, middle), slice(middle, n)]
    a, b = (spread_block(X[part], None if weight is None else weight[part]) for part in parts)
    both, w = a + b, np.ones(n) if weight is None else weight
    mean = np.average(X, axis=0, weights=w)
    np.testing.assert_allclose(both.mean, mean, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(both.squares, w @ (X - mean) ** 2, rtol=1e-7, atol=1e-12)  # 1e8 takes sixteen digits of a square
    assert both.weight == w.sum()


def test_sparse_columns_spread_as_dense_ones():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 6)) < 0.3, rng.normal(size=(50, 6)), 0.0)
    X[:, 4] = 0.0
    for weight in (None, rng.random(50)):
        dense, sparse = spread_block(X, weight), spread_block(csr_array(X), weight)
        np.testing.assert_allclose(sparse.mean, dense.mean, rtol=0, atol=1e-15)
        np.testing.assert_allclose(sparse.squares, dense.squares, rtol=0, atol=1e-13)
    empty = spread_block(csr_array((3, 2)), None)
    assert empty.mean.tolist() == empty.squares.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("value", [0.0, 4.2, 1e200, -1e-200])
def test_a_constant_column_may_be_divided_by_its_scale(value):
    X = np.column_stack([np.full(7, value), np.arange(7.0)])
    assert spread_block(X, None).scale.tolist() == [1.0, 2.0]
