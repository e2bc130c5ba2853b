"""A random walk on rows: where it is absorbed, after how many steps, and how well both are known.

From row i the walk steps to row j ≠ i with probability p_ij ∝ w_ij = exp(−‖x_i − x_j‖²/b), over all pairs or along the links
of a sparse graph, and ends in a settled row. On the other rows its expectations solve linear equations: the probability f of
some kind of end is harmonic, f = Pf, and the expected number of steps is t = 1 + Pt.

Maximum principle [1]: if |f̂ − Pf̂| ≤ ρ and t̂ − Pt̂ ≥ θ > 0 on the free rows, then f̂ is off by at most ρ t̂/θ, row by row,
whatever method found it; and if |t̂ − Pt̂ − 1| ≤ τ < 1, then t̂ is off by at most the share τ/(1 − τ).

All pairs: Gaussian elimination, and refinements of what it gives; each row of I − P has half its weight on the diagonal, so no
units get in the way. Sparse graphs: in the inner product Σ d_i u_i v_i, d_i = Σ_j w_ij, I − P is self-adjoint and positive
definite, hence conjugate gradients [2], for all columns at once. Each step is led by a sweep down the rows and up again
(symmetric Gauss–Seidel), which also settles rows far out, whose small d_i hide them from inner products.
Weights are kept as logarithms, so that even those rows have steps whose probabilities sum to one.

Groups of rows that the walk leaves once in 10⁸ steps or less are traps: what becomes of a walk there is a matter of rounding.

[1] Varah, Linear Algebra Appl. 11 (1975). [2] Hestenes & Stiefel, J. Res. Natl. Bur. Stand. 49 (1952).
"""

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import csr_array

from lemmata.core import config, threads
from lemmata.core.iterate import iterate
from lemmata.semi_supervised.kernels import average, curvature, move, probabilities, spread, sweep, traps, turn

FAINT = float(np.log(np.finfo(float).eps)) / 2  # logarithm of the least share that leads anywhere: √ε, less drowns in rounding
LOWEST = -600.0  # logarithm of the least weight of a row in inner products, above where numbers lose digits
BAND = 5.0  # logarithms of weights that count as alike in the order of the rows
CHUNK = 2048  # rows that a thread takes at a time; sums follow these cuts, whoever takes them
WORTH_THREADS = 1 << 18  # values: a pass over fewer takes no longer than to start a thread
NOISE = 16 * float(np.finfo(float).eps)  # what rounding leaves of the residual of values around 1, with room


def degrees(level):
    """Give the weights of rows in inner products: their totals, up to a common factor."""
    return np.exp(np.maximum(level - level.max(), LOWEST))


def chunked(work, n, m):
    """Call work(number, first, last) for slices of n rows of m values; the slices are the same for any number of threads."""
    tasks = [(i, first, min(first + CHUNK, n)) for i, first in enumerate(range(0, n, CHUNK))]
    threads.run(lambda task: work(*task), tasks, config.n_threads() if n * m >= WORTH_THREADS else 1)


class Dense:
    """A walk on all pairs of rows.

    Parameters
    ----------
    squares : (n, n), squared distances; overwritten.
    b : Bandwidth.

    Attributes
    ----------
    order : (n,), in which order the walk has the rows of the table.

    Examples
    --------
    >>> walk = Dense(np.array([[0.0, 1.0], [1.0, 0.0]]), 1.0)
    >>> walk.after(np.array([[5.0], [7.0]]))
    array([[7.],
           [5.]])
    """

    def __init__(self, squares, b):
        self.order, self.P = np.arange(len(squares)), squares
        self.P /= -b
        np.fill_diagonal(self.P, -np.inf)  # a step leads elsewhere; where it is absorbed does not depend on waiting
        largest = self.P.max(axis=1, keepdims=True)
        self.P -= largest
        np.exp(self.P, out=self.P)
        total = self.P.sum(axis=1, keepdims=True)
        self.P /= total
        self.level = (largest + np.log(total)).ravel()

    def after(self, F):
        """Give the expectations of F after one step."""
        with threads.serial_blas():
            return self.P @ F

    def reaching(self, labeled):
        """Tell from which rows steps that are not too improbable lead to a label, past no trap."""
        barred = traps(*self._tree(), self.level, labeled, FAINT)
        seen, frontier = labeled.copy(), np.flatnonzero(labeled)
        while len(frontier):
            new = ~seen & ~barred & (self.P[:, frontier] >= np.exp(FAINT)).any(axis=1)
            seen |= new
            frontier = np.flatnonzero(new)
        return seen

    def _tree(self):
        """Give the heaviest links that join all rows, heaviest first: they are the only ones that `traps` looks at (Prim)."""
        n = len(self.P)
        heaviest, via, left = np.full(n, -np.inf), np.zeros(n, np.int64), np.arange(n) > 0
        ends, logs, new = np.zeros((2, n - 1), np.int64), np.empty(n - 1), 0
        for e in range(n - 1):
            with np.errstate(divide="ignore"):  # of both ways, the more probable one has kept more digits
                weight = np.maximum(np.log(self.P[new]) + self.level[new], np.log(self.P[:, new]) + self.level)
            closer = weight > heaviest
            heaviest[closer], via[closer] = weight[closer], new
            new = int(np.argmax(np.where(left, heaviest, -np.inf)))
            if not left[new]:  # what is left is joined by nothing that is more than zero
                new = int(np.argmax(left))
            ends[:, e], logs[e], left[new] = (via[new], new), heaviest[new], False
        order = np.argsort(-logs, kind="stable")
        return ends[0, order], ends[1, order], logs[order]

    def solver(self, free, tol):
        """Give a step of refinement, and how to start: F moves by the solution of the equations for its residual."""
        rows = np.flatnonzero(free)
        with threads.serial_blas():
            factors = lu_factor(np.eye(len(rows)) - self.P[np.ix_(rows, rows)], overwrite_a=True, check_finite=False)

        def step(state):
            F, R = state[0].copy(), state[1]
            with threads.serial_blas():
                F[rows] += lu_solve(factors, R[rows])
            R = residual(self, F, free)
            return (F, R), *verdict(F, np.abs(R).max(axis=0), tol)

        return step, lambda F: (F, residual(self, F, free))


class Sparse:
    """A walk along the links of a graph.

    Parameters
    ----------
    index, squares : (n, k), neighbors of the rows and their squared distances; a link leads both ways.
    b : Bandwidth.
    order : (n,), an order of the rows in which neighbors are close, which the walk keeps for rows with the like distances.

    Examples
    --------
    >>> walk = Sparse(np.array([[1], [0], [1]]), np.array([[1.0], [1.0], [1.0]]), 1.0, np.arange(3))
    >>> walk.after(np.array([[5.0], [7.0], [9.0]]))
    array([[7.],
           [7.],
           [7.]])
    """

    def __init__(self, index, squares, b, order):
        n, k = index.shape
        # Rows far from all others come last: a sweep then solves their equations outright, and they follow the rest.
        order = order[np.argsort(np.floor(squares[order, 0] / (BAND * b)), kind="stable")]
        place = np.empty(n, np.int32)
        place[order] = np.arange(n, dtype=np.int32)
        # A matrix would lose links of length zero, so it holds their numbers, from 1; both ways have the same length.
        numbers = np.arange(1, n * k + 1).reshape(n, k)[order]
        links = csr_array((numbers.ravel(), place[index[order]].ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        links = links.maximum(links.T.tocsr()).tocsr()
        links.sort_indices()
        self.order, self.start, self.to = order, links.indptr, links.indices
        self.logs = squares.ravel()[links.data - 1] / -b
        self.p, self.level = probabilities(self.start, self.logs)
        self.degree = degrees(self.level)

    def after(self, F):
        """Give the expectations of F after one step."""
        F, out = np.ascontiguousarray(F), np.empty(F.shape)
        chunked(lambda i, first, last: average(self.start, self.to, self.p, F, first, last, out), *F.shape)
        return out

    def reaching(self, labeled):
        """Tell from which rows steps that are not too improbable lead to a label, past no trap."""
        rows = np.repeat(np.arange(len(labeled), dtype=self.to.dtype), np.diff(self.start))
        once = np.flatnonzero(rows < self.to)
        once = once[np.argsort(-self.logs[once], kind="stable")]
        barred = traps(rows[once], self.to[once], self.logs[once], self.level, labeled, FAINT)
        seen = labeled.copy()
        spread(self.start, self.to, self.logs, self.level, FAINT, barred, seen)
        return seen

    def solver(self, free, tol):
        """Give a step of conjugate gradients, in place, and how to start; what looks solved is looked at anew."""
        n, degree = len(free), self.degree

        def swept(R):
            Z = np.empty(R.shape)
            sweep(self.start, self.to, self.p, free, R, Z)
            return Z, degree @ (R * Z)

        def start(F):
            R = residual(self, F, free)
            return F, R, *swept(R)

        def step(state):
            F, R, D, product = state
            m = F.shape[1]
            Q, sums, largest = np.empty(F.shape), np.zeros((-(-n // CHUNK), m)), np.zeros((-(-n // CHUNK), m))

            def ahead(i, first, last):
                average(self.start, self.to, self.p, D, first, last, Q)
                curvature(D, Q, free, degree, first, last, sums[i])

            chunked(ahead, n, m)
            alpha = _ratio(product, sums.sum(axis=0))
            chunked(lambda i, first, last: move(F, R, D, Q, alpha, first, last, largest[i]), n, m)
            found = verdict(F, largest.max(axis=0), tol)
            if found[1] == 0.0 or not np.any(alpha):  # by the recurrence, which rounding leads astray: look
                state = start(F)
                return state, *verdict(F, np.abs(state[1]).max(axis=0), tol)
            Z, after = swept(R)
            beta = _ratio(after, product)
            chunked(lambda i, first, last: turn(D, Z, beta, first, last), n, m)
            return (F, R, D, after), *found

        return step, start


def _ratio(a, b):
    """Divide, and give 0 where there is nothing left to divide by."""
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)


def residual(walk, F, free):
    """Give what the columns of F lack on free rows: Pf − f and, for the last one, 1 + Pt − t."""
    R = walk.after(F) - F
    R[:, -1] += 1.0
    R[~free] = 0.0
    return R


def error_bound(steps, largest):
    """Bound the error of probabilities, and the relative error of the numbers of steps, by the maximum principle.

    Parameters
    ----------
    steps : Largest expected number of steps.
    largest : (m,), largest residual of each column, the last one that of the steps.

    Examples
    --------
    >>> round(error_bound(3.0, np.array([1e-9, 1e-12])), 15)
    3e-09
    """
    astray = largest[-1]
    if not astray < 1.0:
        return np.inf
    return float(max(largest[:-1].max(initial=0.0) * steps / (1.0 - astray), astray / (1.0 - astray)))


def verdict(F, largest, tol):
    """Give the bound of the errors, and the same again or 0 where it is within the tolerance, or within rounding."""
    steps = F[:, -1].max()
    bound = error_bound(steps, largest)
    return bound, 0.0 if bound <= max(tol, NOISE * steps) else bound


def absorb(walk, F, free, *, tol, max_iter, verbose=0):
    """Solve for the free rows of F: its columns are probabilities of ends, and the last one numbers of steps.

    Parameters
    ----------
    F : (n, m), with the values of settled rows in place.
    tol : Largest error, of a probability or relative of a number of steps, unless rounding alone is larger.

    Returns
    -------
    Run, whose state begins with the solution and whose trace has the bound of the errors after each iteration.

    Examples
    --------
    >>> x = np.arange(4.0)  # the walk ends at both ends; how probably at the left one, and after how many steps?
    >>> walk = Dense((x[:, None] - x) ** 2, 1.0)
    >>> F = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> absorb(walk, F, np.array([False, True, True, False]), tol=1e-9, max_iter=9).state[0].round(6)
    array([[1.      , 0.      ],
           [0.655783, 1.952574],
           [0.344217, 1.952574],
           [0.      , 0.      ]])
    """
    with threads.serial_blas():
        step, start = walk.solver(free, tol)
        # Errors of single steps go up and down; "up" with any rounding says that the last state counts.
        options = {"monotone": "up", "rounding": np.inf, "name": "random walk", "verbose": verbose}
        return iterate(step, start(np.array(F, order="C")), max_iter=max_iter, tol=0.0, **options)
