"""The ways out of many transient states: (I − A)X = B by GMRES, preconditioned by sweeps over states and over groups of them.

Rows are weighted by how often their states are visited, which makes what flows into a state about as much as what flows out
of it. A smooth error is then nearly constant on groups of states that exchange much, and the sum of the equations of each
group, for one unknown each, takes it away: aggregation multigrid for M-matrices, whose row and column sums must not be
negative [1]. Groups are found as in `aggregation`.

[1] Notay, SIAM J. Scientific Computing 34 (2012).
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse.linalg import LinearOperator, gmres
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.kernel import kernel
from lemmata.markov.aggregation import CHEAP, ISOLATED, join, pattern

REFINED = 1e-8  # by which each refinement shrinks the residual, until rounding stops it
REFINEMENTS = 4
ACCEPTED = 1e-9  # a residual above this, relative to the answer, is worth a warning
RESTART, RESTARTS = 30, 6
SMALL = 200  # unknowns that are solved for directly
VISITS = 20  # steps from a uniform start in which visits are counted


class Rows(NamedTuple):
    """Equations d_i y_i − Σ_j m_ij y_j = f_i, and how the unknowns are grouped."""

    indptr: np.ndarray
    indices: np.ndarray
    moves: np.ndarray  # m, at least 0
    leaks: np.ndarray  # d_i − Σ_j m_ij, at least 0
    diagonal: np.ndarray
    group: np.ndarray
    slot: np.ndarray


@kernel
def row_totals(indptr, moves, leaks):
    """Sum the rows of moves and leaks: the diagonal."""
    total = leaks.copy()
    for i in range(len(leaks)):
        for k in range(indptr[i], indptr[i + 1]):
            total[i] += moves[k]
    return total


@kernel
def relax(indptr, indices, moves, diagonal, f, y, backwards):
    """Solve one equation after the other for its own unknown."""
    n = len(y)
    for t in range(n):
        i = n - 1 - t if backwards else t
        total = f[i]
        for k in range(indptr[i], indptr[i + 1]):
            total += moves[k] * y[indices[k]]
        y[i] = total / diagonal[i]


@kernel
def remainder(indptr, indices, moves, diagonal, f, y, group, out):
    """Sum what the equations of each group still lack."""
    for g in range(len(out)):
        out[g] = 0.0
    for i in range(len(y)):
        total = f[i] - diagonal[i] * y[i]
        for k in range(indptr[i], indptr[i + 1]):
            total += moves[k] * y[indices[k]]
        out[group[i]] += total


@kernel
def add_moves(slot, moves, m):
    """Sum moves between groups."""
    total = np.zeros(m)
    for k in range(len(slot)):
        if slot[k] >= 0:
            total[slot[k]] += moves[k]
    return total


def grouped(rows, group, m):
    """Sum the equations of each group."""
    indptr, indices, slot = pattern(rows.indptr, rows.indices, group, m)
    moves, leaks = add_moves(slot, rows.moves, len(indices)), np.bincount(group, weights=rows.leaks, minlength=m)
    empty = np.empty(0, np.int32)
    coarse = Rows(indptr, indices, moves, leaks, row_totals(indptr, moves, leaks), empty, empty)
    return rows._replace(group=group, slot=slot), coarse


def hierarchy(rows):
    """Group the unknowns along their strongest couplings, down to a few."""
    levels = []
    while len(rows.leaks) > SMALL:
        n = len(rows.leaks)
        pair, m = join(rows.indptr, rows.indices, rows.moves, np.ones(n), np.zeros(n, np.bool_))
        _, paired = grouped(rows, pair, m)
        alone = paired.diagonal < ISOLATED * np.bincount(pair, weights=rows.diagonal, minlength=m)
        group, m = join(paired.indptr, paired.indices, paired.moves, np.ones(m), alone)
        rows, coarse = grouped(rows, group[pair], m)
        levels.append(rows)
        if m > 0.9 * n:  # nothing to join: the equations are nearly independent, and sweeps do
            return levels, None
        rows = coarse
    A = np.diag(rows.diagonal)
    where = np.repeat(np.arange(len(A)), np.diff(rows.indptr))
    np.subtract.at(A, (where, rows.indices), rows.moves)
    return [*levels, rows], lu_factor(A)


def correction(levels, factor, depth, f):
    """Answer a right-hand side roughly: sweep, correct the groups, sweep back."""
    rows = levels[depth]
    if depth == len(levels) - 1 and factor is not None:
        return lu_solve(factor, f)
    y = np.zeros(len(f))
    equations = (rows.indptr, rows.indices, rows.moves, rows.diagonal, f)
    relax(*equations, y, False)
    if depth < len(levels) - 1:
        coarse = levels[depth + 1]
        lack = np.empty(len(coarse.leaks))
        for _ in range(2 if depth and len(coarse.indices) <= CHEAP * len(rows.indices) else 1):
            remainder(*equations, y, rows.group, lack)
            y += correction(levels, factor, depth + 1, lack)[rows.group]
    relax(*equations, y, True)
    return y


def refined(rows, matrix, inverse, f):
    """Solve, and solve again for what is left while that helps; return the answer and what is left, relative to its terms."""
    y, left = np.zeros(len(f)), np.inf
    for _ in range(REFINEMENTS):
        lack = f - _times(rows, y)
        size = float((np.abs(lack) / (np.abs(f) + rows.diagonal * np.abs(y) + np.abs(f).max())).max())
        if size >= left / 2:
            break
        best, left = y, size
        if size <= np.finfo(float).eps:
            break
        y = y + gmres(matrix, lack, M=inverse, rtol=REFINED, atol=0.0, restart=RESTART, maxiter=RESTARTS)[0]
    return best, left


def large_absorption(A, B):
    """Solve (I − A)X = B and (I − A)s = 1; the rows of A and B together sum to one.

    Examples
    --------
    >>> from scipy.sparse import diags_array
    >>> n = 2000
    >>> A, B = diags_array([0.5, 0.5], offsets=[-1, 1], shape=(n, n)).tocsr(), np.zeros((n, 2))
    >>> B[0, 0] = B[-1, 1] = 0.5
    >>> X, steps = large_absorption(A, B)  # gambler's ruin: (n − i) / (n + 1) and (i + 1)(n − i), i = 0, 1, …
    >>> bool(abs(X[:, 0] - np.arange(n, 0, -1) / (n + 1)).max() < 1e-9), round(float(steps[999]))
    (True, 1001000)
    """
    n = A.shape[0]
    weight, transposed = np.ones(n), A.T.tocsr()
    for _ in range(VISITS):
        weight = 1 + transposed @ weight
    where = np.repeat(np.arange(n), np.diff(A.indptr))
    off = where != A.indices
    indptr = np.concatenate([[0], np.cumsum(off)])[A.indptr].astype(np.int64)
    moves, leaks = (A.data * weight[where])[off], B.sum(axis=1) * weight
    empty = np.empty(0, np.int32)
    rows = Rows(indptr, A.indices[off].astype(np.int32), moves, leaks, row_totals(indptr, moves, leaks), empty, empty)
    levels, factor = hierarchy(rows)
    matrix = LinearOperator((n, n), lambda y: _times(rows, y), dtype=float)
    inverse = LinearOperator((n, n), lambda f: correction(levels, factor, 0, np.ascontiguousarray(f)), dtype=float)
    answers, worst = [], 0.0
    for b in [*B.T, np.ones(n)]:
        y, left = refined(rows, matrix, inverse, b * weight)
        answers.append(y)
        worst = max(worst, left)
    if worst > ACCEPTED:
        warnings.warn(f"Absorption is known up to a residual of {worst:.1e} only.", ConvergenceWarning, stacklevel=4)
    return np.clip(np.array(answers[:-1]).T, 0.0, 1.0), answers[-1]


@kernel
def times(indptr, indices, moves, diagonal, y):
    """Multiply by the matrix of the equations."""
    out = diagonal * y
    for i in range(len(y)):
        for k in range(indptr[i], indptr[i + 1]):
            out[i] -= moves[k] * y[indices[k]]
    return out


def _times(rows, y):
    return times(rows.indptr, rows.indices, rows.moves, rows.diagonal, np.ascontiguousarray(y))
