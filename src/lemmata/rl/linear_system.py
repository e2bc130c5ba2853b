"""The value of a policy as the solution of linear equations: (I − γP)V = r, P the moves after which the episode goes on.

Up to `DIRECT` states, and for dense rows, by elimination with one correction. Beyond, by GMRES, preconditioned by sweeps over
states and over groups of them, as for the ways out of a large chain: γP has leaks, 1 − γ and more where episodes end.
"""

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, gmres

from lemmata.core.threads import serial_blas
from lemmata.markov.transient import RESTART, VISITS, Rows, correction, hierarchy, refined, row_totals, times

DIRECT = 1500  # states: elimination takes some tens of milliseconds
ROUGH = 1e-2  # by which a rough answer shrinks the residual


def solve_chain(chain, start=None):
    """Find the value of a policy; roughly, from a start, if one is given and there are many states.

    Examples
    --------
    >>> from lemmata.rl.policy import Chain
    >>> solve_chain(Chain(np.array([[0.2, 0.8], [0.8, 0.2]]), np.array([0.0, 1.0]), 0.9))
    array([4.675325, 5.324675])
    """
    with serial_blas():  # whose threads would change the last bits
        if not issparse(chain.rows) or len(chain.rewards) <= DIRECT:
            matrix = np.eye(len(chain.rewards)) - chain.gamma * chain.dense
            factor = lu_factor(matrix, check_finite=False)
            value = lu_solve(factor, chain.rewards, check_finite=False)
            return value + lu_solve(factor, chain.apply(value) - value, check_finite=False)
        return solve_large(chain, start)


def solve_large(chain, start):
    """Solve by GMRES over sweeps and groups."""
    n, moves = len(chain.rewards), chain.rows
    weight, back = np.ones(n), moves.T.tocsr()
    for _ in range(VISITS):
        weight = 1 + chain.gamma * (back @ weight)
    where = np.repeat(np.arange(n), np.diff(moves.indptr))
    leaks = (1 - chain.gamma * np.minimum(moves.sum(axis=1), 1.0)) * weight
    off = where != moves.indices
    indptr = np.concatenate([[0], np.cumsum(off)])[moves.indptr].astype(np.int64)
    flows, empty = (chain.gamma * moves.data * weight[where])[off], np.empty(0, np.int32)
    rows = Rows(indptr, moves.indices[off].astype(np.int32), flows, leaks, row_totals(indptr, flows, leaks), empty, empty)
    levels, factor = hierarchy(rows)
    equations = (*rows[:3], rows.diagonal)
    matrix = LinearOperator((n, n), lambda y: times(*equations, np.ascontiguousarray(y)), dtype=float)
    inverse = LinearOperator((n, n), lambda f: correction(levels, factor, 0, np.ascontiguousarray(f)), dtype=float)
    if start is None:
        return refined(rows, matrix, inverse, chain.rewards * weight)[0]
    lack = (chain.apply(start) - start) * weight
    return start + gmres(matrix, lack, M=inverse, rtol=ROUGH, atol=0.0, restart=RESTART, maxiter=1)[0]
