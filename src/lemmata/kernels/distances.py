"""Squared distances of prepared rows, without the digits that ‖a‖² + ‖b‖² − 2⟨a, b⟩ loses.

Where columns are few, squares of differences are as fast as products of matrices. Where they are many, products are faster, but
the distance of rows that lie near each other and far from the origin is a small difference of large numbers; pairs whose
distance is a small share of their lengths are done again by differences. So a row has distance exactly 0 to itself, and near
rows theirs to nearly all digits, however short the length scale by which they are divided.
"""

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.kernels.rows import products

# For bytes of a number: columns up to which differences, which lose no digits, are as fast as products of matrices, and
FEW = {8: 8, 4: 32}
NEAR = {8: 1e-4, 4: 1e-2}  # the share of ‖a‖² + ‖b‖² below which a distance from products is done again


@kernel
def squares_of_differences(A, columns, out):
    """Write ‖a − b‖² for rows a and points b given column by column; four columns at a time, to write less often."""
    d, m = columns.shape
    fours = d - d % 4
    for i in range(A.shape[0]):
        row = out[i]
        for j in range(m):
            row[j] = 0
        for f in range(0, fours, 4):
            a, b, c, e = A[i, f], A[i, f + 1], A[i, f + 2], A[i, f + 3]
            p, q, r, s = columns[f], columns[f + 1], columns[f + 2], columns[f + 3]
            for j in range(m):
                row[j] += (a - p[j]) * (a - p[j]) + (b - q[j]) * (b - q[j]) + (c - r[j]) * (c - r[j]) + (e - s[j]) * (e - s[j])
        for f in range(fours, d):
            x, column = A[i, f], columns[f]
            for j in range(m):
                row[j] += (x - column[j]) * (x - column[j])


@kernel
def squares_of_products(P, a, b, near, lost):
    """Replace products by ‖a‖² + ‖b‖² − 2⟨a, b⟩; what is not above its share of ‖a‖² + ‖b‖² (NaN is not) becomes −1.

    How many these are in each row goes to `lost`.
    """
    for i in range(P.shape[0]):
        count = 0
        for j in range(P.shape[1]):
            both = a[i] + b[j]
            s = both - 2 * P[i, j]
            far = s > near * both
            P[i, j] = s if far else -1
            count += not far
        lost[i] = count


@kernel
def repair_dense(S, lost, A, B):
    """Replace the entries −1 by sums of squared differences."""
    for i in range(S.shape[0]):
        if lost[i] == 0:
            continue
        for j in range(S.shape[1]):
            if S[i, j] < 0:
                s = 0.0
                for f in range(A.shape[1]):
                    s += (A[i, f] - B[j, f]) * (A[i, f] - B[j, f])
                S[i, j] = s


@kernel
def repair_sparse(S, a, a_indices, a_indptr, b, b_indices, b_indptr, row, seen):
    """Replace the entries −1, for rows in CSR form; `row` has a zero and `seen` a −1 for each column."""
    pair = 0
    for i in range(S.shape[0]):
        for p in range(a_indptr[i], a_indptr[i + 1]):
            row[a_indices[p]] = a[p]
        for j in range(S.shape[1]):
            if S[i, j] < 0:
                s = 0.0
                for p in range(b_indptr[j], b_indptr[j + 1]):
                    f = b_indices[p]
                    seen[f] = pair
                    s += (row[f] - b[p]) * (row[f] - b[p])
                for p in range(a_indptr[i], a_indptr[i + 1]):
                    if seen[a_indices[p]] != pair:
                        s += a[p] * a[p]
                S[i, j] = s
                pair += 1
        for p in range(a_indptr[i], a_indptr[i + 1]):
            row[a_indices[p]] = 0.0


def squared_distances(A, B):
    """Return ‖a − b‖² for prepared rows, both dense or both sparse, as a matrix that belongs to the caller.

    Examples
    --------
    >>> from lemmata.kernels.rows import Rows
    >>> rows = Rows(1e8 + np.eye(9), np.arange(9), None)
    >>> squared_distances(rows[:2], rows[:3])
    array([[0., 2., 2.],
           [2., 0., 2.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):  # squares beyond the largest number are far, and are repaired if near
        if not is_sparse(A.points) and A.points.shape[1] <= FEW[A.points.dtype.itemsize]:
            S = np.empty((len(A), len(B)), A.points.dtype)
            squares_of_differences(A.points, np.ascontiguousarray(B.points.T), S)
            return S
        S = products(A.points, B.points)
        lost = np.empty(len(S), np.int64)
        squares_of_products(S, A.squares, B.squares, S.dtype.type(NEAR[S.dtype.itemsize]), lost)
        if lost.any():
            if is_sparse(A.points):
                d = A.points.shape[1]
                parts = (part for X in (A.points, B.points) for part in (X.data, X.indices, X.indptr))
                repair_sparse(S, *parts, np.zeros(d), np.full(d, -1))
            else:
                repair_dense(S, lost, A.points, B.points)
    return S
