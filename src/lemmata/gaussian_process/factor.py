"""Cholesky's factorization of a kernel matrix, and what is made of it.

A matrix that is positive definite on paper may not be so in rounding: then the least of a few multiples of the identity is
added that makes it so, from ten roundings of a sum of n terms to 10⁻⁶ of the mean of the diagonal. This jitter belongs to the
matrix from there on and is told. BLAS works on one thread, and ours on columns, so that the bits do not depend on the number
of threads.
"""

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.kernels.rows import reflect

LARGEST = 1e-6  # jitter, as a share of the diagonal: more would be noticed

COLUMNS = 128  # right sides that one thread solves at a time
TILE = 64  # rows of a triangle that are solved one by one; all else is products


def least_jitter(matrix):
    """Return the first jitter that is tried: ten roundings of a sum of as many terms as the matrix has rows."""
    return 10 * len(matrix) * float(np.finfo(float).eps) * float(np.diagonal(matrix).mean())


def cholesky(matrix, jitter=0.0):
    """Return the lower triangle L with LLᵀ = matrix + jitter·I, and the jitter; the matrix is left alone.

    Parameters
    ----------
    jitter : The first one tried; then `least_jitter`, and ten times the last one up to a millionth of the diagonal.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    (array([[2., 0.],
           [1., 2.]]), 0.0)
    """
    least, largest = least_jitter(matrix), LARGEST * float(np.diagonal(matrix).mean())
    while jitter <= largest < np.inf:  # of an infinite matrix no jitter is too large
        work = matrix.copy()
        work.flat[:: len(work) + 1] += jitter
        with serial_blas():
            upper, info = dpotrf(work.T, lower=0, clean=1, overwrite_a=1)
        if info == 0 and np.isfinite(upper[-1, -1]):
            return np.ascontiguousarray(upper.T), jitter
        jitter = max(10 * jitter, least)
    raise ValueError(
        "The kernel matrix of these rows is not positive definite; take a kernel that is a valid one, or more noise."
    )


def inverse(root):
    """Return (LLᵀ)⁻¹, all of it.

    Examples
    --------
    >>> inverse(np.array([[2.0, 0.0], [1.0, 2.0]]))
    array([[ 0.3125, -0.125 ],
           [-0.125 ,  0.25  ]])
    """
    with serial_blas():
        upper, _ = dpotri(root.T, lower=0)
    found = np.ascontiguousarray(upper.T)
    reflect(found)
    return found


@kernel
def forward(L, X):
    """Replace X by L⁻¹X, row after row; for small triangles."""
    for j in range(len(L)):
        for k in range(j):
            for c in range(X.shape[1]):
                X[j, c] -= L[j, k] * X[k, c]
        for c in range(X.shape[1]):
            X[j, c] /= L[j, j]


def half_solve(root, B):
    """Return L⁻¹B for a vector or a matrix; many columns on all threads, tile by tile with products between.

    Examples
    --------
    >>> half_solve(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([2.0, 5.0]))
    array([1., 2.])
    """
    if B.ndim == 1 or B.shape[1] < COLUMNS:
        with serial_blas():
            return dtrsm(1.0, root.T, B.reshape(len(B), -1), lower=0, trans_a=1).reshape(B.shape)
    out = np.empty(B.shape)

    def work(start):
        columns = slice(start, start + COLUMNS)
        for top in range(0, len(root), TILE):
            rows = slice(top, top + TILE)
            X = B[rows, columns] - root[rows, :top] @ out[:top, columns]
            forward(root[rows, rows], X)
            out[rows, columns] = X

    threads.run(work, range(0, B.shape[1], COLUMNS), n_threads())
    return out


def back_solve(root, B):
    """Return L⁻ᵀB for a vector or a matrix.

    Examples
    --------
    >>> back_solve(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([1.0, 2.0]))
    array([0., 1.])
    """
    with serial_blas():
        return dtrsm(1.0, root.T, B.reshape(len(B), -1), lower=0, trans_a=0).reshape(B.shape)
