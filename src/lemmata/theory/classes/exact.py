"""Linear algebra without rounding: the signs that decide which side of a plane a point is on.

Every float is a whole number divided by a power of two, so rows of floats become rows of integers when all are multiplied by
one power of two, and no sign changes. On integers three things are computed exactly: linearly dependent rows and columns, by
elimination without division; the vector that is orthogonal to r − 1 rows of length r, by minors; and the theorem of the
alternative for rows a that must be positive and rows n that must not be,

    either some v has ⟨v, aᵢ⟩ > 0 for all i and ⟨v, nⱼ⟩ ≤ 0 for all j,  or  Σ λᵢ aᵢ = Σ μⱼ nⱼ with λ, μ ≥ 0 and Σ λᵢ = 1

(multiply the second by v to see that they exclude each other), by the first phase of the simplex method with integer pivots [1]
and Bland's rule, which cannot cycle [2].

[1] Edmonds, J. Res. Natl. Bur. Stand. 71B (1967). [2] Bland, Math. Oper. Res. 2 (1977).
"""

from fractions import Fraction
from itertools import combinations
from math import gcd

import numpy as np

from lemmata.core.certificate import TINY

EPS = float(np.finfo(float).eps)


def integers(F):
    """Multiply floats by the least power of two that makes them whole; return Python integers in an array of objects.

    Examples
    --------
    >>> integers(np.array([[0.5, 3.0]]))
    array([[1, 6]], dtype=object)
    """
    ratios = [float(x).as_integer_ratio() for x in np.ravel(F)]
    scale = max((q for _, q in ratios), default=1)
    V = np.empty(len(ratios), dtype=object)
    V[:] = [p * (scale // q) for p, q in ratios]
    return V.reshape(np.shape(F))


def primitive(v):
    """Divide integers by their greatest common divisor.

    Examples
    --------
    >>> primitive([4, -6])
    [2, -3]
    """
    common = gcd(*v) or 1
    return [x // common for x in v]


def independent_columns(V):
    """Return the positions of the first columns of an integer matrix that span all of them.

    Examples
    --------
    >>> independent_columns(np.array([[1, 2, 0], [2, 4, 1]], dtype=object))
    [0, 2]
    """
    V, chosen, before = V.copy(), [], 1
    for column in range(V.shape[1]):
        step = len(chosen)
        rows = np.flatnonzero(V[step:, column] != 0)
        if not len(rows):
            continue
        V[[step, step + rows[0]]] = V[[step + rows[0], step]]
        pivot = V[step, column]
        # fraction-free elimination (Bareiss): the division by the last pivot leaves no rest
        V[step + 1 :] = (V[step + 1 :] * pivot - np.outer(V[step + 1 :, column], V[step])) // before
        chosen.append(column)
        before = pivot
    return chosen


def orthogonal(A, dtype=object):
    """Return vectors orthogonal to r − 1 rows of length r, by minors; zero where the rows are dependent.

    Parameters
    ----------
    A : Stack of matrices, (k, r − 1, r).
    dtype : object for integers; float for a fast guess.

    Examples
    --------
    >>> orthogonal(np.array([[[1, 0, 2], [0, 1, 3]]], dtype=object))
    array([[-2, -3, 1]], dtype=object)
    """
    return _minors(A, dtype, -1)


def _minors(A, dtype, sign):
    """Expand the r minors of order r − 1 along their last rows; with sign +1 and |A| this bounds the size of all terms."""
    k, height, r = A.shape
    minors = {(): np.ones(k, dtype=dtype)}
    for row in range(height):
        wider = {}
        for columns in combinations(range(r), row + 1):
            terms = [A[:, row, c] * minors[columns[:i] + columns[i + 1 :]] for i, c in enumerate(columns)]
            wider[columns] = sum(term * sign ** (row + i) for i, term in enumerate(terms))
        minors = wider
    everything = tuple(range(r))
    return np.stack([minors[everything[:c] + everything[c + 1 :]] * sign ** (height + c) for c in range(r)], axis=1)


def normal_signs(F, V, subsets):
    """Return the sides, −1, 0 or 1, of all rows of the plane through the origin and some of the rows, (k, m).

    Floats decide where the value exceeds what rounding can do to it, integers elsewhere.

    Parameters
    ----------
    F : Rows, (m, r), as floats.
    V : The same rows as integers.
    subsets : Positions of the r − 1 rows in each plane, (k, r − 1); a row of zeros is the result if they are dependent.

    Examples
    --------
    >>> F = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> normal_signs(F, integers(F), np.array([[0], [2]]))
    array([[ 0,  1,  1],
           [-1,  1,  0]], dtype=int8)
    """
    r = F.shape[1]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        values = orthogonal(F[subsets], float) @ F.T
        size = _minors(np.abs(F[subsets]), float, 1) @ np.abs(F).T
        clear = np.abs(values) > 4 * (r + 1) ** 2 * EPS * size + TINY  # r levels of at most r products and sums each
    signs = np.where(clear, np.sign(np.where(clear, values, 0.0)), 0.0).astype(np.int8)
    np.put_along_axis(clear, subsets, True, axis=1)  # the rows in the plane are in it
    np.put_along_axis(signs, subsets, 0, axis=1)
    doubtful = np.flatnonzero(~clear.all(axis=1))
    if len(doubtful):
        exact = orthogonal(V[subsets[doubtful]]) @ V.T
        signs[doubtful] = (exact > 0).astype(np.int8) - (exact < 0).astype(np.int8)
    return signs


def dependence(V):
    """Return integers λ, not all zero and the first of them positive, with Σ λᵢ vᵢ = 0 for the rows; None if independent.

    Examples
    --------
    >>> dependence(np.array([[1, 0], [0, 1], [2, -3]], dtype=object))
    [2, -3, -1]
    """
    r = len(independent_columns(V))
    rows = independent_columns(V.T)
    if r == len(V):
        return None
    extra = next(i for i in range(len(V)) if i not in rows)
    chosen = sorted([*rows, extra])
    # r + 1 rows of rank r: in r independent columns their dependence is orthogonal to r vectors of length r + 1
    A = V[chosen][:, independent_columns(V)].T
    found = primitive(orthogonal(A[None])[0].tolist())
    if next(x for x in found if x) < 0:
        found = [-x for x in found]
    weights = [0] * len(V)
    for i, x in zip(chosen, found, strict=True):
        weights[i] = x
    return weights


def solve(A, b):
    """Return a rational solution of a square system of integers with independent rows, by Cramer's rule.

    Examples
    --------
    >>> solve(np.array([[2, 0], [1, 1]], dtype=object), [1, 1])
    [Fraction(1, 2), Fraction(1, 2)]
    """
    wide = np.concatenate([A, -np.array(b, dtype=object)[:, None]], axis=1)
    *x, last = orthogonal(wide[None])[0].tolist()
    return [Fraction(value, last) for value in x]


def alternative(positive, negative):
    """Return (v, None) with ⟨v, aᵢ⟩ > 0 and ⟨v, nⱼ⟩ ≤ 0, or (None, (λ, μ)) with Σ λᵢ aᵢ = Σ μⱼ nⱼ and Σ λᵢ = 1, exactly.

    Parameters
    ----------
    positive : Rows a of integers, (p, r), at least one.
    negative : Rows n of integers, (q, r).

    Examples
    --------
    >>> rows = np.array([[1, 0], [0, 1], [1, 1]], dtype=object)
    >>> alternative(rows[:1], rows[1:])
    ([1, -1], None)
    >>> alternative(rows[2:], rows[:2])
    (None, ([Fraction(1, 1)], [Fraction(1, 1), Fraction(1, 1)]))
    """
    (p, r), q = positive.shape, len(negative)
    rows, chosen = np.concatenate([positive, negative]), [0]
    while True:  # few rows decide: take those that the last v puts on the wrong side
        inside = np.array([i < p for i in chosen])
        v, weights = _phase_one(rows[chosen][inside], rows[chosen][~inside])
        if v is None:
            break
        values = rows @ np.array(v, dtype=object)
        violation = [max(0, 1 - x) if i < p else max(0, x) for i, x in enumerate(values)]
        worst = sorted((i for i in range(p + q) if violation[i]), key=lambda i: -violation[i])
        if not worst:
            return v, None
        chosen = sorted({*chosen, *worst[: 2 * r]})
    full = [Fraction(0)] * (p + q)
    for i, weight in zip(chosen, [*weights[0], *weights[1]], strict=True):
        full[i] = weight
    return None, (full[:p], full[p:])


def _phase_one(positive, negative):
    """Solve the alternative of all rows at once by the first phase of the simplex method."""
    (p, r), q = positive.shape, len(negative)
    n = p + q
    # columns: λ, μ, one artificial variable for each equation, right side; the last row is the objective, to be made zero
    T = np.zeros((r + 2, n + r + 2), dtype=object)
    T[:r, :p], T[:r, p:n] = positive.T, -negative.T
    T[r, :p] = 1
    T[r, -1] = 1
    for i in range(r + 1):
        T[i, n + i] = 1
    T[-1] = -T[: r + 1].sum(axis=0)
    T[-1, n : n + r + 1] = 0
    basis, scale = list(range(n, n + r + 1)), 1
    while True:
        entering = next((j for j in range(n) if T[-1, j] < 0), None)
        if entering is None:
            break
        rows = [i for i in range(r + 1) if T[i, entering] > 0]
        leaving = min(rows, key=lambda i: (Fraction(T[i, -1], T[i, entering]), basis[i]))
        pivot = T[leaving, entering]
        row = T[leaving].copy()
        T = (T * pivot - np.outer(T[:, entering], row)) // scale
        T[leaving] = row
        basis[leaving], scale = entering, pivot
    if T[-1, -1] == 0:
        weights = [Fraction(0)] * n
        for i, j in enumerate(basis):
            if j < n:
                weights[j] = Fraction(T[i, -1], scale)
        return None, (weights[:p], weights[p:])
    # reduced costs of the artificial variables are 1 − y, and v = −y
    return primitive([T[-1, n + i] - scale for i in range(r)]), None
