"""The search, against a sort of all distances, SciPy's tree, and itself under other threads, orders and units."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

import lemmata
from lemmata.neighbors import tiles as tiles_file
from lemmata.neighbors.metric import ranked, rooted, screening
from lemmata.neighbors.products import slices_of
from lemmata.neighbors.search import MANY, Table
from lemmata.neighbors.tiles import most, screen, tiles_of

POWERS = [1, 1.5, 2, 3, np.inf]
WIDE = 40
assert WIDE >= MANY


def all_distances(Q, X, p, same=False):
    D = cdist(Q, X, "chebyshev") if p == np.inf else cdist(Q, X, "minkowski", p=p)
    if same:
        np.fill_diagonal(D, np.inf)
    return D


def sorted_by_distance(D, k):
    """Sort all distances, the first of equals first."""
    index = np.argsort(D, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(D, index, axis=1)


def assert_found(found, D):
    """Assert that neighbors are those of a sort, and that distances are right."""
    index, distance = found
    expected = sorted_by_distance(D, index.shape[1])
    np.testing.assert_allclose(distance, expected[1], rtol=1e-12)  # sums of d powers in another order
    np.testing.assert_allclose(np.take_along_axis(D, index, axis=1), expected[1], rtol=1e-12)
    assert (np.diff(np.sort(index, axis=1), axis=1) > 0).all(), "a row is there twice"


@pytest.mark.item("NBR-01")
@pytest.mark.parametrize("p", [*POWERS, 1.7, 2.2, 7.9, 30])
def test_a_distance_is_a_metric_and_that_of_scipy(p):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(25, 6)) * 10.0 ** rng.integers(-3, 4, size=(25, 1))
    A[20:] = A[:5]
    D = np.array([[rooted(ranked(a, b, float(p)), p) for b in A] for a in A])
    np.testing.assert_allclose(D, all_distances(A, A, p), rtol=1e-12)  # a few roundings
    assert np.array_equal(D, D.T)
    assert np.array_equal(D == 0, (A[:, None] == A).all(axis=2))
    assert (D[:, :, None] <= (D[:, None, :] + D.T[None]) * (1 + 1e-12)).all(), "the way around is no shorter"
    np.testing.assert_allclose(ranked(A[0] * 8, A[1] * 8, float(p)), ranked(A[0], A[1], float(p)) * (64 if p == 2 else 8))


@pytest.mark.item("NBR-01")
def test_distances_of_high_powers_do_not_overflow_and_tend_to_the_largest_difference():
    a, b = np.array([1e200, 0.0, 3e200]), np.zeros(3)
    with np.errstate(over="ignore"):  # NumPy's numbers, without compilation, would warn of the attempt
        assert ranked(a, b, 3.0) == pytest.approx(1e200 * 28 ** (1 / 3), rel=1e-12)
        assert ranked(a, b, 1e6) == pytest.approx(3e200, rel=1e-5)
        assert ranked(a * 1e-300, b, 4.5) == pytest.approx(1e-100 * (1 + 3**4.5) ** (1 / 4.5), rel=1e-12)
    assert ranked(b, b, 4.5) == 0.0


@pytest.mark.item("NBR-02")
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(("n", "d", "k"), [(2, 1, 1), (40, 3, 39), (700, 1, 5), (900, 2, 12), (1100, 10, 7), (600, WIDE, 20)])
@pytest.mark.slow_without_jit
def test_neighbors_are_those_of_a_sort_and_of_scipys_tree(n, d, k, p):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 3.0, size=d) + 5.0
    table = Table(X, p)
    assert_found(table.nearest(k), all_distances(X, X, p, same=True))
    Q = rng.normal(size=(200, d)) + 5.0
    index, distance = table.nearest(k, Q)
    distances, places = cKDTree(X).query(Q, k=k, p=p)
    assert np.array_equal(index, places.reshape(200, k))
    np.testing.assert_allclose(distance, distances.reshape(200, k), rtol=1e-12)


@pytest.mark.parametrize("p", [1.2, 1.9, 2.6, 7.7, 12])
@pytest.mark.slow_without_jit
def test_powers_between_are_screened_by_the_next_half(p):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 5)) * [1, 1, 1, 1, 100]
    assert screening(p) >= p
    assert_found(Table(X, p).nearest(6), all_distances(X, X, p, same=True))


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])  # halves of whole numbers have powers that round
@pytest.mark.parametrize(("d", "offset"), [(3, 0.0), (25, 1e8), (3, -1e8)])
@pytest.mark.slow_without_jit
def test_of_equally_near_rows_the_lower_number_comes_first(d, offset, p):
    X = np.random.default_rng(0).integers(0, 4, size=(800, d)) + offset
    X[:, 3:] = X[:, :1]  # 64 places for 800 rows
    for k in (3, 30, 799) if d == 3 else (3, 30):
        # sums of powers of whole numbers are exact, and roots of equal sums are equal; SciPy's are so up to roundings
        D = all_distances(X - offset, X - offset, p, same=True).round(9)
        assert np.array_equal(Table(X, p).nearest(k)[0], sorted_by_distance(D, k)[0])
        D = all_distances(X[:50] - offset, X - offset, p).round(9)
        assert np.array_equal(Table(X, p).nearest(k, X[:50])[0], sorted_by_distance(D, k)[0])


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("d", [4, 24])
@pytest.mark.slow_without_jit
def test_a_large_offset_and_far_clusters_hide_no_neighbor(d, p):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, d)) + 1e8  # products of these rows agree to 16 digits
    assert_found(Table(X, p).nearest(6), all_distances(X, X, p, same=True))
    X = rng.normal(size=(900, d)) * 1e-6 + 1.0
    X[:, 0] += np.arange(900) % 7
    X[::11] *= 1e6
    assert_found(Table(X, p).nearest(6), all_distances(X, X, p, same=True))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.slow_without_jit
def test_any_units(p):
    X = np.random.default_rng(5).normal(size=(400, 3))
    index, distance = Table(X, p).nearest(4)
    for scale in (2.0**-900, 2.0**-70, 2.0**900):
        other = Table(X * scale, p).nearest(4)
        assert np.array_equal(other[0], index)
        np.testing.assert_allclose(other[1], distance * scale, rtol=1e-15)  # powers of two do not round


def test_a_query_from_very_far_away_disturbs_nobody():
    table = Table(np.array([[1e-200, 0.0], [2e-200, 0.0], [5e-200, 0.0]]))
    index, distance = table.nearest(2, np.array([[0.0, 0.0], [1e300, 0.0], [0.0, -1e250]]))
    assert index[0].tolist() == [0, 1]
    np.testing.assert_allclose(distance, [[1e-200, 2e-200], [1e300, 1e300], [1e250, 1e250]], rtol=1e-15)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.slow_without_jit
def test_within_a_radius_are_all_rows_that_are_there(d, p):
    rng = np.random.default_rng(d)
    X, Q = rng.integers(0, 6, size=(700, d)).astype(float), rng.integers(0, 6, size=(60, d)).astype(float)
    for asking in (None, Q):
        D = all_distances(X if asking is None else asking, X, p, same=asking is None)
        radius = np.sort(D[np.inf > D])[D.size // 50] * (1 + 1e-13)  # a distance that occurs, up to SciPy's rounding
        which, index, distance = Table(X, p).within(radius, asking)
        assert len(which) == (radius >= D).sum()
        np.testing.assert_allclose(distance, D[which, index], rtol=1e-12)
        order = np.lexsort((index, distance, which))
        assert np.array_equal(order, np.arange(len(which)))
    assert all(len(part) == 0 for part in Table(X, p).within(0.5, Q + 100))
    which, index, distance = Table(X).within(2.0, X[:5] + np.eye(d)[0] * 2)  # to the bit: 2 is within 2
    assert all(i in index[which == i] for i in range(5))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("columns", [50, 3000])
@pytest.mark.slow_without_jit
def test_sparse_rows(columns, p):
    rng = np.random.default_rng(7)
    X = sparse.random_array((150, columns), density=30 / columns, rng=rng, format="csr")
    Q = sparse.random_array((40, columns), density=30 / columns, rng=rng, format="csr")
    table = Table(X, p)
    assert table.sparse == (columns > 2048)
    for asking in (None, Q, Q.toarray()):
        dense = (X if asking is None else sparse.csr_array(asking)).toarray()
        D = all_distances(dense, X.toarray(), p, same=asking is None)
        assert_found(table.nearest(5, asking), D)
        radius = np.median(D.min(axis=1)) * (1 + 1e-9)
        assert len(table.within(radius, asking)[0]) == (radius >= D).sum()


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.slow_without_jit
def test_what_screening_rules_out_is_farther(p):
    """The bound is no smaller than what single precision makes of any row that near, however the rows lie."""
    rng = np.random.default_rng(1)
    power, d = screening(p), 8
    for scale in 10.0 ** np.arange(-7, 3):
        X = rng.normal(size=(100, d)) * scale + rng.normal(size=d)
        tile = tiles_of(X)
        for q in X[:20] + rng.normal(size=(20, d)) * scale * 0.1:
            center = tiles_file.middle(tile.low[0], tile.high[0])
            sums, length = np.empty((3, tiles_file.TILE), np.float32), float(np.abs(q - center).sum())
            screen(tile.columns[0], (q - center).astype(np.float32), power, *sums)
            size = float(np.linalg.norm((tile.high[0] - tile.low[0]) / 2, ord=power))
            for j, x in enumerate(tile.rows):
                assert sums[2, j] <= most(ranked(q, x, float(p)), size, length, d, float(p), power)


def test_tiles_and_slices_hold_every_row_once():
    X = np.random.default_rng(1).normal(size=(3001, 4))
    for parts in (tiles_of(X), slices_of(X)):
        assert np.array_equal(np.sort(parts.order), np.arange(3001))
        assert np.array_equal(parts.rows, X[parts.order])
        for t, (start, stop) in enumerate(zip(parts.starts, parts.starts[1:], strict=False)):
            rows = X[parts.order[start:stop]]
            assert (parts.low[t] <= rows).all()
            assert (rows <= parts.high[t]).all()


@pytest.mark.parametrize(("d", "p"), [(5, 2), (5, 1.5), (30, 2), (30, np.inf)])
@pytest.mark.slow_without_jit
def test_threads_and_portions_do_not_matter(d, p):
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(2000, d)), rng.normal(size=(900, d))
    answers = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            answers += [
                Table(X, p).nearest(8, Q),
                [np.concatenate([Table(X, p).nearest(8, q)[i] for q in np.split(Q, 9)]) for i in (0, 1)],
            ]
    for index, distance in answers[1:]:
        assert np.array_equal(index, answers[0][0])
        assert distance.tobytes() == answers[0][1].tobytes()
    order = rng.permutation(2000)
    index, distance = Table(X[order], p).nearest(8, Q)
    assert np.array_equal(order[index], answers[0][0])
    assert distance.tobytes() == answers[0][1].tobytes()
