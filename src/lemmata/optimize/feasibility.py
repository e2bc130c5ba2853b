"""Systems of linear inequalities and equations: a solution, or a proof that there is none.

Exactly one of two things exists: an x with Gx ≤ h and Ax = b, or λ ≥ 0 and ν with Gᵀλ + Aᵀν = 0 and hᵀλ + bᵀν < 0 [1]; the
second excludes the first, since 0 = (Gᵀλ + Aᵀν)·x ≤ hᵀλ + bᵀν < 0. The equations go first: x = x₀ + Zy, with Z a basis of the
null space of A. What remains is GZy ≤ h − Gx₀, and one problem of nonnegative least squares answers it [2]: minimize
‖Eu − e‖ over u ≥ 0, where the columns of E are the rows (−GZ, Gx₀ − h) and e = (0, …, 0, 1). If its residual r is zero, then u
proves that nothing is feasible; otherwise −r, divided by its last entry, is the feasible y nearest to zero.

[1] Farkas, J. Reine Angew. Math. 124 (1902). [2] Lawson & Hanson, Solving Least Squares Problems, ch. 23 (1974).
"""

import numpy as np
from scipy.optimize import nnls

from lemmata.core.certificate import TINY

FEASIBLE = 1e-9  # violation of a constraint, relative to its own terms, that counts as rounding
RANK = 1e-10  # a direction smaller than this share of the largest counts as absent: 10⁶ roundings


class InfeasibleError(ValueError):
    """No point satisfies the constraints; the attributes `inequality` (λ ≥ 0) and `equality` (ν) prove it."""

    def __init__(self, inequality, equality):
        super().__init__("No point satisfies the constraints; the attributes inequality and equality of this error prove it.")
        self.inequality, self.equality = inequality, equality


def row_lengths(A):
    """Return the lengths of the rows of a matrix; 1 for rows of zeros, which need no unit."""
    lengths = np.linalg.norm(A, axis=1)
    return np.where(lengths > 0, lengths, 1.0)


def solve_equations(A, b):
    """Return the solution of Ax = b nearest to zero and a basis Z of the null space of A.

    Raises
    ------
    InfeasibleError : The equations contradict each other; ν with Aᵀν = 0 and bᵀν < 0 proves it.

    Examples
    --------
    >>> x, Z = solve_equations(np.array([[1.0, 1.0]]), np.array([2.0]))
    >>> x, np.abs(Z)
    (array([1., 1.]), array([[0.70710678],
           [0.70710678]]))
    """
    if not len(A):
        return np.zeros(A.shape[1]), np.eye(A.shape[1])
    unit = row_lengths(A)
    U, values, V = np.linalg.svd(A / unit[:, None])
    rank = int((values > RANK * values.max(initial=0.0)).sum())
    b = b / unit
    x = V[:rank].T @ ((U[:, :rank].T @ b) / values[:rank])
    rest = b - U[:, :rank] @ (U[:, :rank].T @ b)
    if np.linalg.norm(rest) > FEASIBLE * np.linalg.norm(b):
        raise InfeasibleError(np.zeros(0), -rest / unit)
    return x, V[rank:].T


def feasible_point(G, h, A, b, slack=FEASIBLE):
    """Return a point with Gx ≤ h and Ax = b, up to rounding, or raise an `InfeasibleError` that proves that there is none.

    Parameters
    ----------
    slack : Share of the largest |h| by which inequalities are relaxed, so that a set without interior counts as not empty.

    Examples
    --------
    >>> feasible_point(np.array([[-1.0, 0.0]]), np.array([-2.0]), np.array([[1.0, 1.0]]), np.array([0.0]))
    array([ 2., -2.])
    >>> try:
    ...     feasible_point(np.array([[1.0], [-1.0]]), np.array([1.0, -2.0]), np.zeros((0, 1)), np.zeros(0))
    ... except InfeasibleError as error:
    ...     print(error.inequality)
    [1. 1.]
    """
    try:
        x, Z = solve_equations(A, b)
    except InfeasibleError as error:
        raise InfeasibleError(np.zeros(len(G)), error.equality) from None
    if not len(G):
        return x
    unit = row_lengths(G)
    rows, room = G / unit[:, None], (h - G @ x) / unit
    size = max(np.abs(room).max(), np.abs(h / unit).max(), np.linalg.norm(x), TINY)
    if (room >= -slack * size).all():
        return x
    room = room / size + slack
    E, e = np.vstack([-Z.T @ rows.T, -room]), np.append(np.zeros(Z.shape[1]), 1.0)
    u = nnls(E, e)[0]
    r = E @ u - e
    point = x + size * Z @ (-r[:-1] / (r[-1] if r[-1] != 0 else 1.0))
    if (rows @ point - h / unit <= (slack + FEASIBLE) * size).all():
        return point
    inequality = u / max(u.max(), TINY) / unit
    equality = -np.linalg.lstsq(A.T, G.T @ inequality, rcond=RANK)[0] if len(A) else np.zeros(0)
    raise InfeasibleError(inequality, equality)
