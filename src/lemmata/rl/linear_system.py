"""The value of a policy as the solution of linear equations: (I − γP)V = r, P the moves after which the episode goes on.

Up to `DIRECT` states, and for dense rows, by elimination with one correction. Beyond, by GMRES with corrections. States that
lead to states with near numbers, at least once they are renumbered [1], are nearly eliminated: small entries of the factors
are left out [2], and a dozen iterations do. Where everything leads everywhere this would fill up, but there news spreads so
quickly that a sweep over the states in each direction is as good; as it is where what lies far ahead hardly counts.

[1] Cuthill & McKee, ACM National Conference (1969). [2] Saad, Numerical Linear Algebra with Applications 1 (1994).
"""

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import csr_array, eye_array, issparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, gmres, spilu

from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas

DIRECT = 1500  # states: elimination takes some tens of milliseconds
NEIGHBORS = 0.02  # of all states: the mean distance of the numbers of neighbors up to which factors stay sparse
FAR = 0.98  # discount from which factors are worth their time: below, sweeps need few iterations
SMALL, FILL = 1e-3, 10  # entries of factors that are left out, and how many times those of the matrix there may be
SHRINK = 1e-8  # by which each correction shrinks the residual, until rounding stops it
CORRECTIONS, RESTART, RESTARTS = 4, 30, 4


@kernel
def relax(indptr, indices, data, f, y, backwards):
    """Solve each of the equations y − (data) y = f for its own unknown, one after the other."""
    n = len(y)
    for t in range(n):
        i = n - 1 - t if backwards else t
        total, own = f[i], 1.0
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                own -= data[k]
            else:
                total += data[k] * y[indices[k]]
        y[i] = total / own


def solve_chain(chain):
    """Find the value of a policy.

    Examples
    --------
    >>> from lemmata.rl.policy import Chain
    >>> solve_chain(Chain(np.array([[0.2, 0.8], [0.8, 0.2]]), np.array([0.0, 1.0]), 0.9))
    array([4.675325, 5.324675])
    """
    with serial_blas():  # whose threads would change the last bits
        if issparse(chain.rows) and len(chain.rewards) > DIRECT:
            return solve_large(chain)
        factor = lu_factor(np.eye(len(chain.rewards)) - chain.gamma * chain.dense, check_finite=False)
        value = lu_solve(factor, chain.rewards, check_finite=False)
        return value + lu_solve(factor, chain.apply(value) - value, check_finite=False)


def solve_large(chain):
    """Solve by GMRES: again for what is left while that helps.

    Examples
    --------
    >>> from scipy.sparse import diags_array
    >>> from lemmata.rl.policy import Chain
    >>> steps = csr_array(diags_array([0.5, 0.5], offsets=[-1, 1], shape=(2000, 2000)))  # until a walk leaves 2,000 places
    >>> solve_large(Chain(steps, np.ones(2000), 1.0))[:2].round(6)  # i(2001 − i), i = 1, 2, …
    array([2000., 3998.])
    """
    n, order = len(chain.rewards), None
    moves = csr_array(chain.gamma * chain.rows)  # those of a flow come by columns
    if chain.gamma > FAR and _distance(moves) > NEIGHBORS * n:
        order = reverse_cuthill_mckee(moves)
        moves = csr_array(moves[order][:, order])
    matrix = csr_array(eye_array(n) - moves)
    if chain.gamma > FAR and _distance(moves) <= NEIGHBORS * n:
        factors = spilu(matrix.tocsc(), drop_tol=SMALL, fill_factor=FILL, permc_spec="NATURAL", diag_pivot_thresh=0.0)
        inverse = factors.solve
    else:
        moves.sort_indices()

        def inverse(f):
            y, f = np.zeros(n), np.ascontiguousarray(f)
            relax(moves.indptr, moves.indices, moves.data, f, y, False)
            relax(moves.indptr, moves.indices, moves.data, f, y, True)
            return y

    rewards = chain.rewards if order is None else chain.rewards[order]
    y = corrected(matrix, LinearOperator((n, n), inverse, dtype=float), rewards)
    if order is None:
        return y
    value = np.empty(n)
    value[order] = y
    return value


def corrected(matrix, inverse, f):
    """Solve, and solve again for what is left while that helps."""
    y, best, left = np.zeros(len(f)), np.zeros(len(f)), np.inf
    for _ in range(CORRECTIONS):
        lack = f - matrix @ y
        size = float(np.abs(lack).max())
        if not size < left / 2:
            break
        best, left = y, size
        if size <= np.finfo(float).eps * max(float(np.abs(y).max()), float(np.abs(f).max())):
            break
        y = y + gmres(matrix, lack, M=inverse, rtol=SHRINK, atol=0.0, restart=RESTART, maxiter=RESTARTS)[0]
    return best


def _distance(moves):
    """Give the mean distance of the numbers of a state and its successors."""
    rows = np.repeat(np.arange(moves.shape[0]), np.diff(moves.indptr))
    return float(np.abs(rows - moves.indices).mean()) if moves.nnz else 0.0
