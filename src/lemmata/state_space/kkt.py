"""The same answers where a noise has no density: Karush, Kuhn and Tucker's equations in one sparse system.

If Q, V or P₀ is singular, its inverse is replaced by a multiplier: with all equations of the model stacked as F s = d + noise,
noise ~ N(0, Σ), the posterior mean of the path s solves, with one multiplier for every equation,

    [ −Σ  F ] [λ]   [d]
    [ Fᵀ  0 ] [s] = [0],

and eliminating λ where Σ has an inverse gives back the normal equations of `information`. The block of the inverse for s is the
covariance of s given the rows; the absolute value of the determinant is that of the covariance of the rows, since the equations
of the states have determinant one; and λᵀΣλ is the quadratic form of the rows. Nothing here is recursive.
"""

import numpy as np
from scipy.sparse import block_array, block_diag, csc_array
from scipy.sparse.linalg import splu

from lemmata.state_space.information import LOG_2PI, timed

SOME = 16  # times at which covariances are computed: each costs a solve for each state


class Path:
    """The posterior of the path of one series.

    Attributes
    ----------
    mean : (times + 1, n), the initial state first.
    log_likelihood : Of the rows.
    """

    def __init__(self, m, rows, shift):
        T, n = len(rows), len(m.initial_mean)
        A, D = timed(m.transition, T), timed(m.observation, T)
        Q, V = timed(m.transition_covariance, T), timed(m.observation_covariance, T)
        seen = [np.flatnonzero(~np.isnan(row)) for row in rows]
        outputs = block_diag([D[t][o].reshape(len(o), n) for t, o in enumerate(seen)], format="csc")
        zero = csc_array((outputs.shape[0], n))
        F = block_array([[_states(A, n)], [block_array([[zero, outputs]])]], format="csc")
        noise = [m.initial_covariance, *Q, *(V[t][np.ix_(o, o)] for t, o in enumerate(seen) if len(o))]
        d = np.concatenate([m.initial_mean, *shift, *(row[o] for row, o in zip(rows, seen, strict=True))])
        Sigma = block_diag(noise, format="csc")
        matrix = block_array([[-Sigma, F], [F.T, None]], format="csc")
        self.n, self.size, self.many = n, matrix.shape[0], F.shape[0]
        right = np.concatenate([d, np.zeros(F.shape[1])])
        self.solver = splu(matrix)
        x = self.solver.solve(right)
        x += self.solver.solve(right - matrix @ x)  # one refinement: digits that the elimination lost
        multipliers = x[: self.many]
        self.mean = x[self.many :].reshape(T + 1, n)
        with np.errstate(divide="ignore"):
            log_determinant = np.log(np.abs(self.solver.U.diagonal())).sum()
        count = sum(len(o) for o in seen)
        self.log_likelihood = -0.5 * (count * LOG_2PI + log_determinant + multipliers @ (Sigma @ multipliers))

    def covariance(self, t):
        """Give the covariance of state t with itself and with the state before it, the latter None for the initial one."""
        at = self.many + t * self.n
        right = np.zeros((self.size, self.n))
        right[at : at + self.n] = np.eye(self.n)
        columns = self.solver.solve(right)
        before = columns[at - self.n : at].T if t else None
        return columns[at : at + self.n], before


def _states(A, n):
    """Give the equations of the states: ones on the diagonal, minus the transitions below."""
    T = len(A)
    below = block_diag(list(-A), format="csc")
    pad = csc_array((n, T * n)), csc_array((T * n, n)), csc_array((n, n))
    lower = block_array([[pad[0], pad[2]], [below, pad[1]]], format="csc")
    return lower + csc_array((np.ones((T + 1) * n), (np.arange((T + 1) * n),) * 2))


def some_times(T):
    """Choose times at which to look: the first and last ones, and some between."""
    return np.unique(np.linspace(0, T, min(SOME, T + 1)).round().astype(int))
