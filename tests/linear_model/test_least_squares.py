"""The two routes to the triangle, its solution, and its refinement, against exact and constructed solutions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemmata.core.blocks import Blocks
from lemmata.linear_model import least_squares as ls


def exact_solution(X, y):
    """Solve the normal equations of [1, X] in rational arithmetic."""
    rows = [[Fraction(1), *map(Fraction, row)] for row in X.tolist()]
    d = len(rows[0])
    G = [[sum(r[a] * r[b] for r in rows) for b in range(d)] for a in range(d)]
    h = [sum(r[a] * Fraction(t) for r, t in zip(rows, y.tolist(), strict=True)) for a in range(d)]
    for k in range(d):
        p = next(i for i in range(k, d) if G[i][k] != 0)
        G[k], G[p], h[k], h[p] = G[p], G[k], h[p], h[k]
        for i in range(d):
            if i != k:
                f = G[i][k] / G[k][k]
                G[i] = [a - f * b for a, b in zip(G[i], G[k], strict=True)]
                h[i] -= f * h[k]
    return np.array([float(h[k] / G[k][k]) for k in range(d)])


def conditioned(n, d, condition, seed):
    """Draw a table whose centered columns have this condition number."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    U, _, Vt = np.linalg.svd(A - A.mean(axis=0), full_matrices=False)
    return U * np.geomspace(1, 1 / condition, d) @ Vt + rng.normal(size=d)


def fitted(X, y, **cut):
    blocks = Blocks.of(X, y, None, **cut)
    problem = ls.compress(blocks, True)
    solution = ls.refine(blocks, problem, ls.solve(problem))
    return problem, solution, np.r_[solution.intercept, solution.scaled[:, 0] / problem.shift.unit]


@pytest.mark.parametrize("condition", [1e0, 1e3, 1e5, 1e8, 1e11])
def test_digits_of_ill_conditioned_problems(condition):
    X = conditioned(40, 4, condition, seed=int(np.log10(condition)))
    y = X @ np.arange(1.0, 5.0) + 0.1 * np.random.default_rng(0).normal(size=40)
    expected = exact_solution(X, y)
    *_, found = fitted(X, y)
    # Refinement in double-double leaves ε κ² ε of the first error: full digits up to κ = 1e8, then some are lost.
    lost = max(0.0, 2 * np.log10(condition) - 16)
    assert np.abs(found / expected - 1).max() < 10 ** (-12 + lost)


@pytest.mark.parametrize("seed", range(5))
def test_the_cheap_route_is_taken_where_it_is_good_and_only_there(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(90, 3)), rng.normal(size=90)
    problem, _, found = fitted(X, y, block_rows=16)
    assert 0 < problem.error <= ls.CHEAP
    # 1e-12: a few hundred roundings
    np.testing.assert_allclose(found, exact_solution(X, y), rtol=1e-12, atol=1e-14)
    X = conditioned(90, 3, 1e6, seed)
    problem, _, found = fitted(X, y, block_rows=16)
    assert problem.error == 0
    expected = exact_solution(X, y)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("noise", [1.0, 1e-9])
def test_one_pass_is_enough_only_where_it_is(noise):
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(90, 3)))[0] * 9
    y = X @ [1.0, -2.0, 3.0] + noise * rng.normal(size=90)
    problem, solution, found = fitted(X, y, block_rows=16)
    assert 0 < problem.error <= ls.NEGLIGIBLE
    expected = exact_solution(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    rss = ((y - X @ expected[1:] - expected[0]) ** 2).sum()
    assert solution.rss[0] == pytest.approx(rss, rel=1e-6)  # a residual of 1e-9 has itself no more digits


def test_a_shift_far_from_the_mean_is_noticed():
    X = np.sort(np.random.default_rng(0).normal(size=(400, 1)), axis=0)
    X[:40] -= 1e7  # the first block is nothing like the rest
    y = np.linspace(0, 1, 400)
    *_, found = fitted(X, y, block_rows=40)
    # 1e-9: seven digits of the columns are their offset
    np.testing.assert_allclose(found, exact_solution(X, y), rtol=1e-9)


@pytest.mark.parametrize("kernel", [ls.gram_block, ls.factor_block])
@pytest.mark.parametrize("cuts", [(7, 13), (1, 2), (10, 40)])
def test_block_sums_add_up(kernel, cuts):
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(50, 3)), rng.normal(size=50), rng.random(50)
    shift = ls.Shift(np.zeros(3), np.zeros(1), np.ones(3))

    def products(statistics):
        _, square = statistics
        return square if kernel is ls.gram_block else square.rows.T @ square.rows

    parts = [kernel(*(a[s] for a in (X, y, w)), shift, True) for s in (slice(0, cuts[0]), slice(*cuts), slice(cuts[1], 50))]
    total = parts[0][1] + parts[1][1] + parts[2][1]
    Z = np.sqrt(w)[:, None] * np.column_stack([np.ones(50), X, y])
    np.testing.assert_allclose(products((0, total)), Z.T @ Z, rtol=1e-12, atol=1e-12)  # a hundred roundings
    assert sum(p[0] for p in parts) == pytest.approx(w.sum(), rel=1e-14)


@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
@settings(max_examples=200, deadline=None)
def test_error_free_transformations_are_exact(a, b):
    s, e = ls.two_sum(a, b)
    assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)
    if a == 0 or b == 0 or 1e-100 < abs(a * b) < 1e200:
        p, e = ls.two_product(a, b)
        assert Fraction(p) + Fraction(e) == Fraction(a) * Fraction(b)


def test_pair_sum_keeps_what_a_plain_sum_loses():
    terms = np.array([[1e16], [1.0], [-1e16], [1.0], [3.0]])
    pair = ls.pair_sum(terms, np.zeros_like(terms))
    assert (pair.high + pair.low)[0] == 5.0
    both = ls.Pair(np.array([1e16]), np.array([0.0])) + ls.Pair(np.array([1.0]), np.array([1e-17]))
    assert (both.high - 1e16 + both.low)[0] == 1.0


def test_weights_in_double_double_are_repetition():
    X = conditioned(30, 3, 1e7, seed=3)
    y = np.random.default_rng(1).normal(size=30)
    w = np.random.default_rng(2).integers(1, 4, 30)
    blocks = Blocks.of(X, y, w.astype(float))
    problem = ls.compress(blocks, True)
    solution = ls.refine(blocks, problem, ls.solve(problem))
    expected = exact_solution(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(solution.scaled[:, 0], expected[1:], rtol=1e-11)  # as the unweighted problem
