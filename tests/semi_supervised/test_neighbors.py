"""The nearest rows, against SciPy's tree and a sort of all distances."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

import lemmata
from lemmata.semi_supervised.neighbors import nearest, tiles_of


def ranked(Q, X, k, same=False):
    """Sort all distances, the first of equals first."""
    D = cdist(Q, X, "sqeuclidean")
    if same:
        np.fill_diagonal(D, np.inf)
    index = np.argsort(D, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(D, index, axis=1)


@pytest.mark.parametrize(("n", "d", "k"), [(2, 1, 1), (40, 3, 39), (700, 1, 5), (900, 2, 12), (1100, 10, 7), (600, 40, 20)])
def test_neighbors_are_those_of_a_sort(n, d, k):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 3.0, size=d) + 5.0
    index, squares = nearest(tiles_of(X), k)
    expected = ranked(X, X, k, same=True)
    assert np.array_equal(index, expected[0])
    np.testing.assert_allclose(squares, expected[1], rtol=1e-12)  # sums of d squares in another order
    Q = rng.normal(size=(300, d)) + 5.0
    index, squares = nearest(tiles_of(X), k, Q)
    distances, places = cKDTree(X).query(Q, k=k)
    assert np.array_equal(index, places.reshape(300, k))
    np.testing.assert_allclose(squares, distances.reshape(300, k) ** 2, rtol=1e-12)


@pytest.mark.parametrize(("d", "offset"), [(3, 0.0), (25, 0.0), (25, 1e7)])
def test_of_equally_near_rows_the_first_counts(d, offset):
    X = np.random.default_rng(0).integers(0, 4, size=(800, d)) + offset
    X[:, 3:] = X[:, :1]  # 64 places for 800 rows
    for k in (3, 30):
        assert np.array_equal(nearest(tiles_of(X), k)[0], ranked(X, X, k, same=True)[0])
        assert np.array_equal(nearest(tiles_of(X), k, X[:50])[0], ranked(X[:50], X, k)[0])


@pytest.mark.slow_without_jit
def test_a_large_offset_hides_no_neighbor_in_many_columns():
    X = np.random.default_rng(3).normal(size=(5000, 24)) * 1e-6 + 1.0  # products of these rows agree to 6 digits
    X[:, 0] += np.arange(5000) % 7
    some = np.arange(0, 5000, 50)
    index, squares = nearest(tiles_of(X), 6)
    D = cdist(X[some], X, "sqeuclidean")
    D[np.arange(100), some] = np.inf
    np.testing.assert_allclose(squares[some], np.sort(D, axis=1)[:, :6], rtol=1e-12)
    assert np.array_equal(index[some], np.argsort(D, axis=1)[:, :6])


def test_tiles_hold_every_row_once():
    X = np.random.default_rng(1).normal(size=(3001, 4))
    tiles = tiles_of(X)
    assert np.array_equal(np.sort(tiles.order), np.arange(3001))
    for t, (start, stop) in enumerate(zip(tiles.starts, tiles.starts[1:], strict=False)):
        rows = X[tiles.order[start:stop]]
        assert np.array_equal(tiles.columns[t, :, : stop - start].T, rows)
        assert (tiles.low[t] <= rows).all()
        assert (rows <= tiles.high[t]).all()


@pytest.mark.slow_without_jit
def test_threads_do_not_matter():
    X = np.random.default_rng(2).normal(size=(2000, 5))
    answers = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            answers.append(nearest(tiles_of(X), 8))
    assert np.array_equal(answers[0][0], answers[1][0])
    assert answers[0][1].tobytes() == answers[1][1].tobytes()
