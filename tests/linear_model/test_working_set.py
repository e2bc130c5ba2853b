"""The solver under the lasso: kernels against slow twins, bounds against brute force, and what screening throws away."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from lemmata.linear_model import working_set as ws
from linear_model import naive


def draw(seed, n=30, d=8, sparse=0.0):
    """Draw columns, some of them zero in places, and a target that a few of them make."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) >= sparse) + rng.normal(size=d) * (sparse == 0)
    return np.asfortranarray(X), X[:, :3] @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=n), rng.random(n) + 0.1


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, np.ascontiguousarray, csr_array, csc_array, np.float32])
def test_columns_and_their_products_match_their_twins(form, weighted, center):
    X, y, weight = draw(0, d=300, sparse=0.4)
    X = X.astype(np.float32).astype(float)
    root = np.sqrt(weight) if weighted else np.ones(30)
    c = root * (y - (root**2 @ y / (root @ root) if center else 0.0))
    table = ws.columns_of(X.astype(np.float32) if form is np.float32 else form(X), root, c, center)
    mean, norms, products = naive.column_sums(root[:, None] * X, root, c, center)
    A = root[:, None] * (X - mean)
    np.testing.assert_allclose(table.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(table.norms, norms, rtol=1e-12)
    np.testing.assert_allclose(table.start, products, rtol=1e-11, atol=1e-12)
    some, r = np.array([299, 0, 17, 256, 5]), np.cos(np.arange(30.0))
    np.testing.assert_allclose(table.products(r, some), A[:, some].T @ r, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(table.image(some, np.arange(1.0, 6.0)), A[:, some] @ np.arange(1.0, 6.0), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(table.with_target(r).start, A.T @ r, rtol=1e-11, atol=1e-12)
    pool = ws.Pool(table)
    for wanted in ([3, 17, 256], [0, 17, 299], list(range(280, 300)), [3]):
        pool.add(np.array(wanted))
    assert sorted(pool.columns) == sorted({3, 17, 256, 0, *range(280, 300)})
    taken = A[:, pool.columns]
    np.testing.assert_allclose(pool.gram[: pool.size, : pool.size], taken.T @ taken, rtol=1e-11, atol=1e-12)
    w = np.sin(np.arange(pool.size))
    np.testing.assert_allclose(pool.image(w), taken @ w, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_sparse_columns_far_off_center_have_the_gram_matrix_of_dense_ones(offset):
    X, y, weight = draw(1, sparse=0.5)
    X[:, 2] = X[:, 1] + offset + np.arange(30)  # a year among indicators: no entry of it is zero
    root = np.sqrt(weight)
    c = root * (y - weight @ y / weight.sum())
    tables = [ws.columns_of(form(X), root, c, True) for form in (np.asarray, csr_array)]
    np.testing.assert_allclose(tables[1].norms, tables[0].norms, rtol=1e-15 * offset)
    assert tables[1].far.tolist() == [j == 2 for j in range(8)]
    grams = []
    for table in tables:
        pool = ws.Pool(table)
        pool.add(np.array([0, 1, 4]))
        pool.add(np.array([2, 3]))
        grams.append(pool.gram[:5, :5])
    size = np.sqrt(np.diag(grams[0]))
    np.testing.assert_allclose(grams[1] / size / size[:, None], grams[0] / size / size[:, None], atol=1e-14 * offset)


def test_entries_of_a_sparse_table_that_stand_twice_are_summed():
    parts = np.array([1.0, 2.0, -1.0, 4.0, 1.0, 5.0]), np.array([0, 0, 0, 1, 1, 0]), np.array([0, 2, 3, 4, 6])
    twice = csr_array(parts, shape=(4, 2))
    c = np.array([1.0, -1.0, 2.0, -2.0])
    table, dense = (ws.columns_of(X, np.ones(4), c, True) for X in (twice, np.asfortranarray(twice.toarray())))
    np.testing.assert_allclose(table.norms, dense.norms, rtol=1e-14)
    np.testing.assert_allclose(table.start, dense.start, rtol=1e-14)


def test_constant_columns_do_not_count():
    X, y, _ = draw(2)
    X[:, 3], X[:, 5] = 0.1, 0.0
    for form in (np.asarray, csr_array):
        table = ws.columns_of(form(X), np.ones(30), y - y.mean(), True)
        assert np.flatnonzero(table.norms == 0).tolist() == [3, 5]
        assert ws.start(table, y).left.tolist() == [0, 1, 2, 4, 6, 7]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_a_sweep_matches_its_twin(l2, positive):
    A, c, _ = draw(3)
    A[:, 4] = 0.0
    w = np.where(np.arange(8) % 3 == 0, 0.5, 0.0)
    G = np.zeros((12, 12))  # room for more columns
    G[:8, :8] = A.T @ A
    for l1 in (0.1, 5.0, 1e3):
        ours, expected = w.copy(), w
        gradient = A.T @ (c - A @ w)
        for epochs in (1, 2):
            worst = ws.descend(G, gradient, ours, l1, l2, positive, epochs)
            for _ in range(epochs):
                expected, violation = naive.sweep(A, c, expected, l1, l2, positive)
            np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(gradient, A.T @ (c - A @ ours), rtol=1e-10, atol=1e-11)
            assert worst == pytest.approx(violation, rel=1e-9, abs=1e-10)


def at(table, c, w):
    """Stand at some coefficients, all columns in view."""
    everything = np.arange(table.d)
    residual = c - table.image(everything, w)
    return ws.Point(w, residual, table.products(residual, everything), everything)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_optimum_wherever_it_is_taken(seed, l2, positive):
    A, c, _ = draw(seed, n=12, d=5)
    table = ws.columns_of(A, np.ones(12), c, False)
    rng = np.random.default_rng(seed)
    for l1 in (0.01, 2.0, 30.0):
        best, least = naive.best_penalized(A, c, l1, l2, positive)
        for w in [best, np.zeros(5), *(s * rng.normal(size=5) for s in (1e-3, 1.0, 1e3)), 2 * np.linalg.lstsq(A, c)[0]]:
            w = np.abs(w) if positive else w
            value, bound, t = ws.bounds(table, at(table, c, w), c, l1, l2, positive)
            assert value == pytest.approx(naive.penalized(A, c, w, l1, l2), rel=1e-12)
            assert bound <= least * (1 + 1e-12)
            assert value >= least * (1 - 1e-12)
            assert t >= 0
        value, bound, _ = ws.bounds(table, at(table, c, best), c, l1, l2, positive)
        assert value - bound <= 1e-9 * value, "at the optimum there is no gap"


@pytest.mark.parametrize("seed", range(6))
def test_columns_that_are_screened_out_are_zero_in_the_exact_solution(seed):
    rng = np.random.default_rng(seed)
    A, c, _ = draw(seed, n=40, d=400)
    positive, l2 = bool(seed % 2), [0.0, 5.0][seed // 2 % 2]
    table = ws.columns_of(A, np.ones(40), c, False)
    for share in (0.9, 0.5, 0.1):
        l1 = share * np.abs(table.start).max()
        exact, *_ = ws.solve(table, c, l1, l2, positive, 1e-15, ws.start(table, c), ws.Pool(table), 50)
        screened = 0
        for tol in (0.5, 1e-1, 1e-3, 1e-6):
            point, value, bound, converged, _ = ws.solve(
                table, c, l1, l2, positive, tol, ws.start(table, c), ws.Pool(table), 50
            )
            assert converged
            assert value - bound <= tol * value
            gone = np.setdiff1d(np.arange(400), point.left)
            screened = max(screened, len(gone))
            assert not exact.w[gone].any()
            assert (np.abs(A[:, gone].T @ exact.residual) <= l1 * (1 + 1e-9)).all() or positive
        assert screened > 200 or share < 0.5
        point.w = point.w * (1 + 0.1 * rng.random(400))  # from elsewhere, screening is as safe
        moved = at(table, c, point.w)
        again, *_ = ws.solve(table, c, l1, l2, positive, 1e-9, moved, ws.Pool(table), 50)
        np.testing.assert_allclose(again.w, exact.w, atol=1e-6 * np.abs(exact.w).max())
        ws.complete(table, again)
        np.testing.assert_allclose(again.products, A.T @ again.residual, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_an_extrapolated_point_is_no_worse_and_has_the_gradient_it_says(seed):
    A, c, _ = draw(seed, d=8)
    G, q, w = A.T @ A, A.T @ c, np.zeros(8)
    gradient, history = q.copy(), [(np.zeros(8), q.copy())]
    for _ in range(5):
        ws.descend(G, gradient, w, 0.3, 0.1, False, 1)
        history.append((w.copy(), gradient.copy()))
    v, slope = ws.extrapolated(history, q, 0.3, 0.1, False)
    np.testing.assert_allclose(slope, q - G @ v, rtol=1e-9, atol=1e-10)
    assert naive.penalized(A, c, v, 0.3, 0.1) <= naive.penalized(A, c, w, 0.3, 0.1) * (1 + 1e-12)
    inner = ws.inner_gap(slope, np.diag(G), q, v, c @ c, 0.3, 0.1, False)
    table = ws.columns_of(A, np.ones(30), c, False)
    value, bound, _ = ws.bounds(table, at(table, c, v), c, 0.3, 0.1, False)
    assert inner == pytest.approx(value - bound, rel=1e-6, abs=1e-10)


def test_a_linear_system_ends_where_the_signs_are_right_and_stops_at_the_first_zero():
    A, c, _ = draw(4, d=4)
    G, q = A.T @ A, A.T @ c
    best, least = naive.best_penalized(A, c, 0.5)
    w = best * (1 + 0.1 * np.cos(np.arange(4)))
    ws.polish(G, q, w, 0.5, 0.0)
    np.testing.assert_allclose(w, best, rtol=1e-10)
    signs = np.array([1.0, -1.0, 1.0, 1.0])
    wrong = np.where(best * signs < 0, 1e-3 * signs, best)  # on the wrong side of zero by a little
    start = naive.penalized(A, c, wrong, 0.5, 0.0)
    ws.polish(G, q, wrong, 0.5, 0.0)
    assert least * (1 - 1e-14) <= naive.penalized(A, c, wrong, 0.5, 0.0) <= start  # 1e-14: roundings of two sums
    assert (wrong * signs >= 0)[best * signs < 0].all()


@pytest.mark.parametrize("scale", [1.0, 1e-5])
def test_of_columns_that_depend_on_each_other_no_more_are_used_than_there_are_dimensions(scale):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 6)) * np.geomspace(1.0, scale, 6)
    c = A @ np.full(6, 2.0)
    G, q, w = A.T @ A, A.T @ c, np.full(6, 2.0)
    ws.polish(G, q, w, 1e-9, 0.0)
    assert 1 <= np.count_nonzero(w) <= 3
    assert np.abs(w).sum() <= 12 * (1 + 1e-9), "the sum of sizes did not grow"
    np.testing.assert_allclose(A @ w, c, atol=1e-4 * np.abs(c).max())  # the fit stayed, to the penalty's pull
    with_ridge, whole = ws.direction(G.copy(), q, np.zeros(6), np.ones(6), 1.0)
    assert whole
    np.testing.assert_allclose(with_ridge, np.linalg.solve(G + np.eye(6), q), rtol=1e-9)
