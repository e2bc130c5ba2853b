"""Bins: codes are those of a sorted search, thresholds lie between values, weights are repetition."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import lemmata
from lemmata.tree.bins import MISSING, SAMPLE, learn_bins


def searched(edges, x):
    """Codes by NumPy's sorted search."""
    return np.where(np.isnan(x), MISSING, np.searchsorted(edges, x, side="left"))


def table(n, seed=0):
    """Columns of many kinds: normal, heavy tails, few values, one value, missing, huge offset, tiny."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    X[:, 1] = np.exp(9 * X[:, 1])
    X[:, 2] = rng.integers(0, 5, n)
    X[:, 3] = 4.0
    X[rng.random(n) < 0.2, 4] = np.nan
    X[:, 5] += 1e9
    X[:, 6] *= 1e-300
    X[:, 7] = rng.integers(0, 300, n)
    return X


@pytest.mark.parametrize("n", [1, 2, 50, 3000, SAMPLE + 10_001])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_are_those_of_a_sorted_search(n, dtype):
    X = table(n).astype(dtype)
    bins = learn_bins(X, None)
    codes = bins.codes(X)
    assert codes.dtype == np.uint8
    for j, edges in enumerate(bins.edges):
        assert np.array_equal(codes[:, j], searched(edges, X[:, j].astype(float)))
        assert len(edges) <= 254
        assert (np.diff(edges) > 0).all()


def test_thresholds_themselves_and_their_neighbors_are_coded_exactly():
    bins = learn_bins(table(3000), None)
    for j, edges in enumerate(bins.edges):
        x = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [-1e308, 1e308, 0.0]])
        X = np.zeros((len(x), 8))
        X[:, j] = x
        assert np.array_equal(bins.codes(X)[:, j], searched(edges, x))


def test_few_values_have_a_bin_each():
    X = np.array([[3.0], [1.0], [1.0], [7.0]])
    assert np.array_equal(learn_bins(X, None).edges[0], [2.0, 5.0])


def test_a_rare_value_outside_the_sample_is_found():
    X = np.zeros((SAMPLE * 2, 1))
    X[12_345, 0] = 5.0
    assert np.array_equal(learn_bins(X, None).edges[0], [2.5])


def test_quantiles_share_the_rows_evenly():
    x = np.random.default_rng(0).random((30_000, 1))
    counts = np.bincount(learn_bins(x, None).codes(x)[:, 0])
    assert len(counts) == 255
    assert abs(counts - 30_000 / 255).max() <= 2  # a threshold between two rows misses the quantile by a row


def test_a_weight_is_repetition():
    rng = np.random.default_rng(1)
    X, weight = rng.standard_normal((2000, 2)), rng.integers(1, 4, 2000)
    one, other = learn_bins(X, weight, 16), learn_bins(np.repeat(X, weight, axis=0), None, 16)
    assert all(np.array_equal(a, b) for a, b in zip(one.edges, other.edges, strict=True))


def test_sparse_rows_have_the_codes_of_dense_ones():
    X = table(20_000)
    X[np.random.default_rng(2).random(X.shape) < 0.8] = 0.0
    one, other = learn_bins(X, None), learn_bins(csr_array(X), None)
    assert np.array_equal(one.codes(X), other.codes(csr_array(X)))


def test_threads_change_nothing_and_width_pads():
    X = table(30_000)
    with lemmata.config(n_threads=1):
        one = learn_bins(X, None).codes(X)
    with lemmata.config(n_threads=3):
        other = learn_bins(X, None).codes(X, 16)
    assert np.array_equal(one, other[:, :8])
    assert not other[:, 8:].any()


def test_categories_keep_their_numbers():
    X = np.array([[0.0], [2.0], [np.nan], [7.0]])
    assert np.array_equal(learn_bins(X, None, is_categorical=np.array([True])).codes(X)[:, 0], [0, 2, MISSING, 7])
    with pytest.raises(ValueError, match="Column 0 has 301 categories"):
        learn_bins(np.array([[300.0]]), None, is_categorical=np.array([True]))


def test_numbers_of_bins_out_of_range_are_refused():
    with pytest.raises(ValueError, match="max_bins must be from 2 to 255"):
        learn_bins(np.zeros((3, 1)), None, 256)
