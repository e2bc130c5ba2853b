"""Exact linear algebra: against fractions, floats where these are exact, and linear programs."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from lemmata.theory.classes.exact import alternative, dependence, independent_columns, integers, normal_signs, orthogonal, solve


def whole(rng, shape, size=3):
    return integers(rng.integers(-size, size + 1, size=shape).astype(float))


def test_integers_keep_ratios():
    F = np.array([[0.1, -3.5], [2.0**-40, 1e10]])
    V = integers(F)
    scale = V[0, 1] / Fraction(-3.5)
    assert all(V[i, j] == Fraction(F[i, j]) * scale for i in range(2) for j in range(2))
    assert integers(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("seed", range(5))
def test_rank_orthogonal_vectors_and_dependence(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        A = whole(rng, (int(rng.integers(1, 6)), int(rng.integers(1, 5))))
        rank = np.linalg.matrix_rank(A.astype(float))
        columns = independent_columns(A)
        assert len(columns) == rank == np.linalg.matrix_rank(A[:, columns].astype(float) if columns else np.zeros((1, 1)))
        weights = dependence(A)
        if rank == len(A):
            assert weights is None
        else:
            assert any(weights)
            assert next(w for w in weights if w) > 0
            assert not (np.array(weights, dtype=object) @ A).any()
    B = whole(rng, (6, 3, 4))
    normals = orthogonal(B)
    for b, normal in zip(B, normals, strict=True):
        assert not (b @ normal).any()
        assert normal.any() == (np.linalg.matrix_rank(b.astype(float)) == 3)
    square = whole(rng, (3, 3), 9)
    if len(independent_columns(square)) == 3:
        assert (square @ np.array(solve(square, [1, -2, 3]), dtype=object)).tolist() == [1, -2, 3]


def test_signs_are_those_of_exact_determinants():
    rng = np.random.default_rng(0)
    F = np.round(rng.normal(size=(8, 3)), 1)  # tenths are not exact: many determinants are near zero, few are zero
    F[3] = F[0] + F[1]
    F[4] = 3 * F[0]
    V = integers(F)
    subsets = np.array([[i, j] for i in range(8) for j in range(i + 1, 8)])
    signs = normal_signs(F, V, subsets)
    for (i, j), row in zip(subsets, signs, strict=True):
        for k in range(8):
            a, b, c = ([Fraction(x) for x in F[index]] for index in (i, j, k))
            value = sum(
                c[p] * (a[q] * b[r] - a[r] * b[q]) for p, q, r in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
            )  # determinant of (a, b, c)
            assert row[k] == (value > 0) - (value < 0)


@pytest.mark.parametrize("seed", range(4))
def test_exactly_one_alternative_and_it_is_the_one_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    outcomes = set()
    for _ in range(25):
        r = int(rng.integers(1, 4))
        P, N = whole(rng, (int(rng.integers(1, 4)), r), 2), whole(rng, (int(rng.integers(0, 5)), r), 2)
        v, weights = alternative(P, N)
        rows = np.vstack([-P, N]).astype(float)
        program = linprog(np.zeros(r), rows, np.append(-np.ones(len(P)), np.zeros(len(N))), bounds=(None, None))
        assert (v is not None) == (program.status == 0)
        outcomes.add(v is None)
        if v is not None:
            assert weights is None
            assert all(x > 0 for x in P @ np.array(v, dtype=object))
            assert all(x <= 0 for x in N @ np.array(v, dtype=object))
        else:
            first, second = weights
            assert min([*first, *second]) >= 0
            assert sum(first) == 1
            left = np.array(first, dtype=object) @ P
            right = np.array(second, dtype=object) @ N if len(N) else np.zeros(r, dtype=object)
            assert (left == right).all()
    assert outcomes == {True, False}
