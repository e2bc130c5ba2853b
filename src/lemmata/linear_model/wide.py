"""Least squares on sparse tables of many columns, where no block may become dense and no triangle fits.

The centered columns A = √s (X − 1 x̄ᵀ) are never formed: products with A and Aᵀ are those with X, and a correction of rank
one. LSMR [1] needs nothing else. Started at zero it stays in the row space of A, so it finds the solution of least norm. What
needs the inverse of AᵀA is left out: rank and standard errors are not known here.

[1] Fong & Saunders, SIAM J. Sci. Comput. 33 (2011).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from lemmata.core.data import WIDE, is_sparse
from lemmata.linear_model import least_squares as ls

PRECISION = 1e-15  # of the stopping rule; LSMR stops by itself where rounding ends its progress


class WideProblem(NamedTuple):
    """The centered problem as an operator; read like `least_squares.Problem`."""

    weight: float
    centered: tuple  # A, C
    mean: tuple  # of columns and targets
    shift: ls.Shift
    intercept: bool


def is_wide(blocks):
    """Tell whether a table is sparse, in memory, and too wide for a triangle."""
    return blocks.n_columns > WIDE and is_sparse(getattr(blocks, "X", None))


def compress(blocks, intercept):
    """Describe the data of a wide sparse table as a problem."""
    X, Y, weight = blocks.X.astype(float), ls.columns(blocks.aligned[0]), blocks.aligned[1]
    s = np.ones(X.shape[0]) if weight is None else weight
    total, d = float(s.sum()), X.shape[1]
    mean_x, mean_y = np.zeros(d), np.zeros(Y.shape[1])
    if intercept:
        mean_x, mean_y = np.asarray(X.T @ s).ravel() / total, s @ Y / total
    root = np.sqrt(s)
    A = LinearOperator(
        X.shape,
        dtype=float,
        matvec=lambda v: root * (X @ v.ravel() - mean_x @ v.ravel()),
        rmatvec=lambda u: X.T @ (root * u.ravel()) - mean_x * (root @ u.ravel()),
    )
    shift = ls.Shift(mean_x, mean_y, np.ones(d))
    return WideProblem(total, (A, root[:, None] * (Y - mean_y)), (mean_x, mean_y), shift, intercept)


def solve(problem, alphas):
    """Solve for each target with its penalty: coefficients (d, t) and intercepts (t,)."""
    A, C = problem.centered
    coef = np.column_stack([least_norm(A, c, alpha) for c, alpha in zip(C.T, alphas, strict=True)])
    mean_x, mean_y = problem.mean
    return coef, mean_y - mean_x @ coef if problem.intercept else np.zeros(C.shape[1])


def least_norm(A, c, alpha=0.0):
    """Return the w of least norm that minimizes ‖A w − c‖² + α‖w‖²."""
    limit = 20 * min(A.shape)  # in exact arithmetic min(A.shape) steps end it
    return lsmr(A, c, damp=np.sqrt(alpha), atol=PRECISION, btol=PRECISION, conlim=0, maxiter=limit)[0]


def excess(problem, coef, alphas):
    """Bound by how much the penalized error of these coefficients exceeds the least; whether that is a proof.

    With a penalty the objective is α-strongly convex: the excess is at most ‖gradient‖²/α. Without, it is the squared length
    of the residual's projection on the columns, which only another run of LSMR finds.
    """
    A, C = problem.centered
    total, proof = 0.0, True
    for w, c, alpha in zip(coef.T, C.T, alphas, strict=True):
        residual = c - A @ w
        if alpha > 0:
            gradient = A.T @ residual - alpha * w
            total += gradient @ gradient / alpha
        else:
            total += float(((A @ least_norm(A, residual)) ** 2).sum())
            proof = False
    return total, proof
