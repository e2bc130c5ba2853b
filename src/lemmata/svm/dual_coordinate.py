"""Dual coordinate ascent for linear support vector machines: one slope at a time, each to its best.

In the dual problem of `linear_objective`, with βᵢ = cᵢ aᵢ and w = Σ βᵢ xᵢ kept up to date, the best value of one βᵢ has a
closed form: with the residual r = tᵢ − w·xᵢ − b and the curvature h = ‖xᵢ‖² + σ + μ/cᵢ,

    βᵢ ← clip(soft(βᵢ + (r − μ aᵢ)/h, ε/h)),    soft(β, e) = sign(β)·max(|β| − e, 0),

which costs as much as the row has numbers that are not zero. The free intercept asks for Σ βᵢ = 0: the method of multipliers
keeps b = b₀ + σ Σ βᵢ, which is a constant column of height √σ, and moves b₀ to b after each epoch, until nothing is left to
move. Rows whose slope is at a bound, and would go farther by more than any slope moved in the last epoch, are left out until
the rest has converged (shrinking) [1]. Rows are visited in random order, in each block; blocks in the order of the table.

[1] Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML (2008). [2] Ho & Lin, J. Mach. Learn. Res. 13 (2012), for regression.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lemmata.core.blocks import ArrayBlocks
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.core.xoshiro import seed as seeded
from lemmata.linear_model.stochastic import fold, recut, stored
from lemmata.svm.linear_intercept import best_intercept
from lemmata.svm.linear_objective import Step, centers_block, rows_of, transposed

COLUMN = 1.0  # σ
CHUNK = 64  # rows that are visited together, in random order: near each other in memory, so that they are read once
FIRST, CLOSER = 1e-2, 5.0  # violation, in units of the targets, at which all rows are looked at, and by how much it falls then


class Plane(NamedTuple):
    """What the rows of all blocks share: coefficients; and Σ β, b₀, the largest violation and Σ s(ta − ε|a| − ½μa²)."""

    coef: np.ndarray
    shared: np.ndarray  # (4,)


class Rows(NamedTuple):
    """What a block keeps: slopes, the rows that are visited, and ‖x‖² of each row."""

    slopes: np.ndarray
    active: np.ndarray
    squares: np.ndarray


class Ascent(NamedTuple):
    """The state after some epochs."""

    plane: Plane
    memory: tuple
    epoch: int
    leave: float  # violation beyond which a row at a bound is left out
    goal: float  # violation at which all rows are looked at


@kernel
def shuffle(order, n, rng):
    """Put the first n entries into random order."""
    for j in range(n - 1, 0, -1):
        k = int(next_uniform(rng) * (j + 1))
        order[j], order[k] = order[k], order[j]


@kernel
def row_dot(values, indices, indptr, i, w):
    """Multiply row i with a vector; unsigned counters, which need no check for negative ones."""
    total = 0.0
    if indices is None:
        for f in range(np.uint64(values.shape[1])):
            total += values[i, f] * w[f]
    else:
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += values[0, p] * w[np.uint64(indices[p])]
    return total


@kernel
def row_add(values, indices, indptr, i, share, w):
    """Add a multiple of row i to a vector."""
    if indices is None:
        for f in range(np.uint64(values.shape[1])):
            w[f] += share * values[i, f]
    else:
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            w[np.uint64(indices[p])] += share * values[0, p]


@kernel
def visit_rows(
    values, indices, indptr, squares, t, s, slopes, active, coef, shared, C, epsilon, two_sided, width, free, leave, rng
):
    """Set the slopes of the active rows of a block to their best, one after another; mark rows to be left out.

    Parameters
    ----------
    active : Numbers of the rows to visit, ascending; a row to be left out becomes −1.
    width : μ: 0 for bounded slopes, ½ for squared losses.
    free : σ, or 0 without an intercept.
    leave : Violation beyond which a row at a bound is left out.
    """
    bounded = width == 0
    n = len(active)
    starts, within = np.arange(0, n, CHUNK), np.arange(CHUNK)
    shuffle(starts, len(starts), rng)
    for start in starts:
        shuffle(within, CHUNK, rng)
        for j in within:
            if start + j >= n:
                continue
            i = active[start + j]
            c = C if s is None else C * s[i]
            a = slopes[i]
            r = t[i] - row_dot(values, indices, indptr, i, coef) - shared[1] - free * shared[0] - width * a
            if a == 0:
                out = epsilon - abs(r) if two_sided else epsilon - r * t[i]
            elif bounded and abs(a) == 1:
                out = r * a - epsilon
            else:
                out = -1.0
            if out >= 0:
                if out > leave:
                    active[start + j] = -1
                continue
            h = squares[i] + free + width / c
            if h > 0:
                e = epsilon / (h * c)
                b = a + r / (h * c)
                b = b - e if b > e else b + e if b < -e else 0.0
            else:
                b = np.sign(r) * np.inf if abs(r) > epsilon else 0.0
            if not two_sided and b * t[i] < 0:
                b = 0.0
            if bounded:
                b = min(max(b, -1.0), 1.0)
            if b != a:
                shared[2] = max(shared[2], abs(r) - epsilon if a == 0 else abs(r - epsilon * np.sign(a)))
                slopes[i] = b
                row_add(values, indices, indptr, i, c * (b - a), coef)
                shared[0] += c * (b - a)


def squares_of(X):
    """Return ‖x‖² of each row, in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=float).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=float)


def visit_block(X, y, weight, plane, own, loss, C, width, free, leave, seed, epoch):
    """Visit the rows of a block; return (plane, what the block keeps). A block that keeps no active rows visits all."""
    t, s = rows_of(y, weight, loss)
    own = Rows(np.zeros(len(t)), np.arange(0), squares_of(X)) if own is None else own
    slopes, active = own.slopes.copy(), own.active.copy() if len(own.active) else np.arange(len(t))
    rng = seeded(np.random.default_rng([seed, epoch, len(t)]))
    given = (C, loss.epsilon, loss.two_sided, width, free, leave, rng)
    visit_rows(*stored(X), own.squares, t, s, slopes, active, *plane, *given)
    worth = t * slopes - loss.epsilon * np.abs(slopes) - width / 2 * slopes**2
    plane.shared[3] += worth.sum() if s is None else s @ worth
    return plane, Rows(slopes, active[active >= 0], own.squares)


def whole(problem):
    """Give a problem whose rows in memory are a single block, so that they are visited in an order drawn from all."""
    blocks = problem.blocks
    return replace(problem, blocks=recut(blocks, blocks.n_rows)) if isinstance(blocks, ArrayBlocks) else problem


def near_block(X, y, weight, plane, own, loss, C, step):
    """Begin with the slopes that a proximal step from the middle gives; add up what they make of the plane."""
    slopes = centers_block(X, y, weight, loss, (step,))
    s = rows_of(y, weight, loss)[1]
    beta = C * (slopes if s is None else s * slopes)
    plane.coef[:] += transposed(X, beta)
    plane.shared[0] += beta.sum()
    return plane, Rows(slopes, np.arange(0), squares_of(X))


class CoordinateAscent:
    """The epochs of a fit, from and to an `Ascent`.

    Parameters
    ----------
    problem : From `margin_problem`, whose blocks are visited.
    unit : Of the targets.
    tol : Share of the objective that the duality gap may have.
    seed : Of the order of the rows.
    """

    def __init__(self, problem, unit, tol, seed):
        self.problem, self.unit, self.ends, self.seed = problem, unit, tol, seed
        self.C, self.free = 1 / problem.penalty, COLUMN * problem.intercept
        self.width = 0.0 if problem.loss.bounded else problem.width

    def start(self, theta):
        """Return the first state: no slopes, and the intercept of given planes."""
        shared = np.array([0.0, self.problem.parameters(theta)[1][0], 0.0, 0.0])
        return Ascent(Plane(np.zeros(self.problem.blocks.n_columns), shared), (), 0, np.inf, FIRST)

    def near(self, theta, width):
        """Return a first state close to the optimum, for plain losses: slopes as planes suggest them, within a width."""
        state = self.start(theta)
        coef, intercept, *_ = self.problem.at(theta)
        step = Step(coef, intercept, width * self.unit)
        plane, memory = fold(self.problem.blocks, Visit(near_block, (self.problem.loss, self.C, step)), state.plane)
        plane.shared[1] -= self.free * plane.shared[0]
        return state._replace(plane=plane, memory=memory)

    def step(self, state):
        """Visit the active rows once; return (state, minus the dual objective, duality gap once that is known)."""
        plane, memory, epoch, leave, goal = state
        plane = Plane(plane.coef, plane.shared * np.array([1.0, 1.0, 0.0, 0.0]))
        given = (self.problem.loss, self.C, self.width, self.free, leave, self.seed, epoch)
        plane, memory = fold(self.problem.blocks, Visit(visit_block, given), plane, memory or None)
        violation, whole = plane.shared[2] / self.unit, leave == np.inf
        plane.shared[1] += self.free * plane.shared[0]
        dual = (self.C * plane.shared[3] - plane.coef @ plane.coef / 2) / (self.C * self.problem.total)
        gap = np.inf
        if violation <= goal and whole:
            gap, goal = self.gap(plane, dual), goal / CLOSER
        leave = plane.shared[2]
        if violation <= goal or not any(len(rows.active) for rows in memory):
            leave = np.inf
            memory = tuple(rows._replace(active=rows.active[:0]) for rows in memory)
        return Ascent(plane, memory, epoch + 1, leave, goal), -dual, gap

    def gap(self, plane, dual):
        """Return the duality gap, relative to the objective; what the sum of all β is off by counts with it."""
        beta, b, problem = plane.shared[0], plane.shared[1], self.problem
        if problem.intercept and problem.loss.bounded:
            b = best_intercept(problem.blocks, plane.coef, problem.loss)
        value = problem.evaluate(problem.theta(plane.coef[:, None], np.array([b])))[2]
        off = problem.intercept * (abs(b) + self.unit) * abs(beta) / (self.C * self.problem.total)
        return (value - dual + off) / max(value, np.finfo(float).tiny)

    def theta(self, state):
        """Return the planes of a state in standard coordinates."""
        return self.problem.theta(state.plane.coef[:, None], state.plane.shared[1:2])


class Visit:
    """A visit of a block, with what does not change during an epoch."""

    def __init__(self, function, given):
        self.function, self.given = function, given

    def __call__(self, X, y, weight, plane, own):
        """Visit the rows of a block."""
        return self.function(X, y, weight, plane, own, *self.given)
