"""Decomposition: a large dual problem as a sequence of small ones.

Each round takes a working set of variables that violate optimality most, some of them from the last round, optimizes it in
pairs while the others rest, and adds what changed to the scores Fᵢ = Σ sₜaₜ k(xᵢ, x_{r(t)}) of all rows [1]. Kernel rows come
from a cache in float32. Rows whose variables have been at a bound for some rounds, and could not be moved from there, are left
out until the rest is solved [2]. Before it says that the problem is solved, it computes all scores anew in float64 and goes on
if there is still a violation; as the later changes are small, so is what single precision does to them: the solution is that of
the exact kernel. A small problem is solved at once, in float64 unless the tolerance is rough.

[1] Zanni, Serafini & Zanghirati, JMLR 7 (2006). [2] Joachims, in Advances in Kernel Methods (1999).
"""

from typing import Any, NamedTuple

import numpy as np

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.core.data import is_sparse
from lemmata.core.iterate import iterate
from lemmata.kernels import Linear
from lemmata.kernels.rows import BLOCK, fill
from lemmata.svm.cache import KernelCache
from lemmata.svm.dual import Dual, middle_of
from lemmata.svm.interior import Thin, Whole, interior_point
from lemmata.svm.pairs import add_rows, optimize_pairs, optimize_whole
from lemmata.svm.polish import polish

SET = 1024  # variables of a working set: 512 take more rounds, 2,048 longer ones
WHOLE = 2048  # variables of a problem that is solved at once
THIN = 200  # columns up to which a linear kernel is left to an interior point first
SHARE = 0.1  # of the violation that a round leaves: to solve a working set better does not pay
STEPS = 100_000  # of one round at most, so that it can be interrupted
FIRST = 30_000  # of the first round of a problem that is solved at once; most take a few thousand
ROUNDS = 30  # of a problem that is solved at once: what millions of steps do not solve, more do not
WORST = 1e-2  # of the margin: the largest rounding of scores that a fit puts up with
FINE = 1e-5  # tolerances from which on the last digits are wanted too
PATIENCE = 3  # rounds in which a row could not be moved before it is left out
WORTH = 0.7  # share of the rows that may stay when rows are left out: to leave out fewer is not worth the copying
COLUMNS = 2048  # of a block of scores


class Solution(NamedTuple):
    """What a solver found."""

    a: np.ndarray  # (T,)
    scores: np.ndarray  # (n,), Σ sₜaₜ k(xᵢ, x_{r(t)}), exact up to rounding
    bias: float
    violation: float
    objective: float
    n_iter: int
    converged: bool


class State(NamedTuple):
    """Where a solver is."""

    a: Any
    scores: Any
    objective: float
    recent: Any  # working set of the last round
    rows: Any  # rows that take part, ascending
    idle: Any  # (n,), rounds in which a row could not be moved
    exact: bool  # whether the scores of all rows are exact


def solve(dual, kernel, X, *, tol, start=None, max_iter, cache_size=200.0, verbose=0, name="SVC"):
    """Solve a dual problem.

    Parameters
    ----------
    dual : The problem.
    kernel : The kernel.
    X : (n, d), the rows, dense or CSR.
    tol : Violation of optimality at which to stop: by how much some v that may go up exceeds one that may go down.
    start : (T,), a feasible point to begin with; zero if None.
    cache_size : MiB for rows of the kernel matrix.

    Examples
    --------
    >>> from lemmata.kernels import Linear
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> dual = Dual(np.arange(4), y, -np.ones(4), np.full(4, 0.25))
    >>> solution = solve(dual, Linear(), X, tol=1e-9, max_iter=100)
    >>> solution.a, solution.bias
    (array([0.  , 0.25, 0.25, 0.  ]), 0.0)
    """
    if len(dual.row) <= WHOLE:

        def matrix(kind):
            rows = kernel.prepare(X.astype(kind, copy=False))
            K = fill(kernel.values, rows, rows)
            return K if len(K) == len(dual.row) else K[np.ix_(dual.row, dual.row)]

        own = Dual(np.arange(len(dual.row)), *dual[1:])
        solution = solve_whole(own, matrix, tol=tol, start=start, max_iter=max_iter, name=name)
        return solution._replace(scores=solution.scores[: X.shape[0]])
    n, exact = X.shape[0], kernel.prepare(X.astype(np.float64, copy=False))

    def square(one, other):
        return fill(kernel.values, exact[dual.row[one]], exact[dual.row[other]])

    def polished(a, scores):
        a, change = polish(dual, square, a, scores)
        return a, scores + scores_of(kernel, exact, exact, np.bincount(dual.row, change, n)) if change.any() else scores

    solver = _Decomposition(dual, kernel, X, exact, tol, cache_size)
    if start is None and isinstance(kernel, Linear) and not is_sparse(X) and X.shape[1] <= THIN:
        start = dual.balanced(interior_point(Thin(exact.points[dual.row]), dual.sign, dual.linear, dual.cap))
        start, scores = polished(start, solver.scores(start, exact))
    elif start is None:
        start, scores = np.zeros(len(dual.row)), np.zeros(n)
    else:
        scores = solver.scores(start, exact)
    state = State(start, scores, _objective(dual, start, scores), np.zeros(0, int), np.arange(n), np.zeros(n, int), True)
    run = iterate(solver.round, state, max_iter=max_iter, tol=tol, name=name, verbose=verbose)
    state = run.state if run.state.exact else solver.refreshed(run.state)
    a, scores = polished(state.a, state.scores) if tol <= FINE else (state.a, state.scores)
    a = snapped(a, dual.cap)
    ends = dual.ends(a, dual.values(scores))
    return Solution(a, scores, middle_of(*ends), ends[0] - ends[1], _objective(dual, a, scores), run.n_iter, run.converged)


def rounding(lengths, a, kind=np.float64):
    """Return what a violation can be by rounding alone, for rows of these lengths in the features of the kernel.

    More than a hundredth of the margin is no excuse: then columns should be scaled, and a fit says that it did not converge.
    """
    return min(4 * float(np.finfo(kind).eps) * float(lengths.max() * (lengths @ a)), WORST)


def snapped(a, cap):
    """Put variables on a bound that differ from it by rounding of the sum that they must keep."""
    slack = np.where(np.isfinite(cap), 4 * len(a) * np.finfo(float).eps * cap, 0.0)
    return np.where(a < slack, 0.0, np.where(cap - a < slack, cap, a))


def solve_whole(dual, matrix, *, tol, start=None, max_iter, name="SVC"):
    """Solve a dual problem whose rows are its variables; `matrix` gives their kernel matrix in float32 or float64."""
    K = matrix(np.float64 if tol <= FINE else np.float32)
    lengths = np.sqrt(np.abs(K.diagonal()).astype(float))

    def polished(a, scores):
        a, change = polish(dual, lambda one, other: K[np.ix_(one, other)], a, scores)
        return a, scores + K @ change if change.any() else scores

    def round_of(state):
        nonlocal K
        a, _, _, number = state
        if number == 1:  # pairs did not get there: leave the valley by another way
            K = K if K.dtype == np.float64 else matrix(np.float64)
            a = dual.balanced(interior_point(Whole(K), dual.sign, dual.linear, dual.cap))
            a, _ = polished(a, K @ (dual.sign * a))
        a = a.copy()
        sense, steps = (max(tol, rounding(lengths, a)), STEPS) if number else (tol, FIRST)
        scores, high, low, free = optimize_whole(K, a, dual.sign, dual.linear, dual.cap, sense, steps)
        excess = high - low
        if K.dtype == np.float32 and rounding(lengths, a, np.float32) > tol:
            excess = np.inf  # whatever it seems to be
        elif excess > tol:
            excess -= max(rounding(lengths, a) - tol, 0.0)
        return (a, scores, (high, low, free), number + 1), _objective(dual, a, scores), excess

    state, _, excess = round_of((np.zeros(len(K)) if start is None else start, None, None, 0))
    n_iter, converged = 1, excess <= tol
    if not converged:  # most problems need one round, and are too short for any ado
        run = iterate(round_of, state, max_iter=min(max_iter, ROUNDS), tol=tol, name=name)
        state, n_iter, converged = run.state, 1 + run.n_iter, run.converged
    a, scores, ends, _ = state
    if tol <= FINE:
        a, scores = polished(a, scores)
        a = snapped(a, dual.cap)
        ends = dual.ends(a, dual.values(scores))
    return Solution(a, scores, middle_of(*ends), ends[0] - ends[1], _objective(dual, a, scores), n_iter, converged)


def _objective(dual, a, scores):
    """Return ½ Σ sₜaₜFₜ + Σ pₜaₜ."""
    return float(a @ (0.5 * dual.sign * scores[dual.row] + dual.linear))


class _Decomposition:
    """The rounds of one problem, and the kernel rows they share."""

    def __init__(self, dual, kernel, X, exact, tol, cache_size):
        self.dual, self.kernel, self.exact, self.tol = dual, kernel, exact, tol
        self.cache = KernelCache(kernel, kernel.prepare(X.astype(np.float32)), int(cache_size * 2**20))
        self.size = min(SET, self.cache.capacity)
        self.lengths = np.sqrt(np.abs(kernel.diagonal(exact)))[dual.row]

    def round(self, state):
        """Optimize one working set, or confirm that nothing is left to do."""
        dual, active = self.dual, self._active(state)
        part = Dual(*(field[active] for field in dual))
        a, v = state.a[active], dual.values(state.scores)[active]
        high, low = part.extremes(a, v)
        violation, sense = high.max() - low.min(), max(self.tol, rounding(self.lengths, state.a))
        if violation <= sense:
            if not state.exact:
                return self.round(self.refreshed(state))
            return state, state.objective, violation - (sense - self.tol)
        chosen = self._choose(high, low, np.flatnonzero(np.isin(active, state.recent, assume_unique=True)))
        before, a_chosen, v_chosen = a[chosen], a[chosen], v[chosen]
        slots = self.cache.slots(part.row[chosen])
        rows = self.cache.rows[part.row[chosen]]
        square = self._square(rows)
        target = max(sense, SHARE * violation)
        own = Dual(np.arange(len(chosen)), *(field[chosen] for field in part[1:]))
        steps, lowered = optimize_pairs(square, a_chosen, v_chosen, own.sign, own.cap, target, STEPS)
        if steps == STEPS:
            a_chosen, lowered = _another_way(own, square, before, v[chosen])
        scores = self._moved(state, slots, own.sign * (a_chosen - before))
        a_all = state.a.copy()
        a_all[active[chosen]] = a_chosen
        after = state._replace(
            a=a_all, scores=scores, objective=state.objective - lowered, recent=active[chosen[-self.size // 2 :]], exact=False
        )
        return self._shrunk(after, part, high, low), after.objective, violation

    def _square(self, rows):
        """Compute the kernel matrix of a working set: faster than to pick its entries from the store, or to reflect a half."""
        square = np.empty((len(rows), len(rows)), np.float32)

        def work(start):
            square[start : start + BLOCK] = self.kernel.values(rows[start : start + BLOCK], rows)

        threads.run(work, range(0, len(rows), BLOCK), n_threads())
        return square

    def _active(self, state):
        """Return the variables of the rows that take part."""
        if len(state.rows) == len(state.scores):
            return np.arange(len(state.a))
        mask = np.zeros(len(state.scores), dtype=bool)
        mask[state.rows] = True
        return np.flatnonzero(mask[self.dual.row])

    def _choose(self, high, low, recent):
        """Return a working set: the newer half of the last one, then the worst violators of both kinds."""
        chosen = np.zeros(len(high), dtype=bool)
        chosen[recent] = True
        count = self.size - len(recent)
        up = _largest(np.where(chosen, -np.inf, high), count // 2)
        chosen[up] = True
        down = _largest(np.where(chosen, -np.inf, -low), count - len(up))
        return np.concatenate([recent, up, down])

    def _moved(self, state, slots, change):
        """Return the scores after a change of the coefficients of the rows in these slots."""
        totals = np.zeros(len(state.rows))
        slots, change = slots[change != 0], change[change != 0]

        def work(start):
            add_rows(self.cache.store, slots, change, totals, start, min(start + COLUMNS, len(totals)))

        threads.run(work, range(0, len(totals), COLUMNS), n_threads())
        scores = state.scores.copy()
        scores[state.rows] += totals
        return scores

    def _shrunk(self, state, part, high, low):
        """Count the rounds in which a row could not be moved, and leave out rows for which these are enough."""
        stuck = (high < low.min()) & (low > high.max())  # −∞ and ∞ for what may not move at all in that direction
        movable = np.zeros(len(state.scores), dtype=bool)
        movable[part.row[~stuck]] = True
        idle = np.where(movable, 0, state.idle + 1)
        kept = idle[state.rows] < PATIENCE
        if kept.sum() > WORTH * len(kept) or kept.sum() < 2:
            return state._replace(idle=idle)
        self.cache.narrow(np.flatnonzero(kept), state.rows[kept])
        return state._replace(idle=idle, rows=state.rows[kept])

    def refreshed(self, state):
        """Return the state with the scores of all rows, all of which take part again: exact, unless the tolerance is rough."""
        n = len(state.scores)
        if self.tol <= FINE:
            scores = self.scores(state.a, self.exact)
        else:  # the scores of the rows that were left out are all that is missing
            scores, absent = state.scores.copy(), np.setdiff1d(np.arange(n), state.rows, assume_unique=True)
            scores[absent] = self.scores(state.a, self.cache.rows, absent)
        if len(state.rows) < n:
            self.cache.widen()
        objective = _objective(self.dual, state.a, scores)
        return state._replace(scores=scores, objective=objective, rows=np.arange(n), idle=np.zeros(n, dtype=int), exact=True)

    def scores(self, a, rows, which=slice(None)):
        """Compute the scores of some rows, in the precision in which the rows are prepared."""
        return scores_of(self.kernel, rows[which], rows, self.dual.coefficients(a, len(rows)))


def _another_way(dual, K, a, v):
    """Solve a working set by an interior point; return it, and by how much the objective fell."""
    K = K.astype(float)
    sums = K @ (dual.sign * a)
    linear = -dual.sign * (v + sums)  # what the objective of these variables has beside their own quadratic part
    best = interior_point(Whole(K), dual.sign, linear, dual.cap, float(dual.sign @ a))
    change = dual.sign * (best - a)
    return best, float(v @ change - 0.5 * change @ K @ change)


def _largest(values, count):
    """Return where the largest values are, fewer where less than so many are finite."""
    where = np.argpartition(-values, count)[:count] if 0 < count < len(values) else np.arange(len(values))[: max(count, 0)]
    where = where[values[where] > -np.inf]
    return where[np.argsort(-values[where], kind="stable")]


ROWS, TERMS = 512, 1024  # of a block of the kernel matrix that is multiplied and forgotten


def scores_of(kernel, points, rows, coefficients):
    """Compute Σⱼ cⱼ k(x, xⱼ) for prepared points in float64, block by block on all threads, without the whole matrix."""
    scores = np.zeros((len(points), *coefficients.shape[1:]))

    def work(start):
        scores[start : start + ROWS] = block_scores(kernel, points[start : start + ROWS], rows, coefficients)

    threads.run(work, range(0, len(points), ROWS), n_threads())
    return scores


def block_scores(kernel, points, rows, coefficients):
    """Compute Σⱼ cⱼ k(x, xⱼ) for a few prepared points; coefficients are (m,) or (m, k)."""
    used = np.flatnonzero(coefficients if coefficients.ndim == 1 else coefficients.any(axis=1))
    ahead, factors = rows[used], coefficients[used]
    scores = np.zeros((len(points), *coefficients.shape[1:]))
    for first in range(0, len(used), TERMS):
        terms = slice(first, first + TERMS)
        K = kernel.values(points, ahead[terms])
        scores += K @ factors[terms].astype(K.dtype)
    return scores
