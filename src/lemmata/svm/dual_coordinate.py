"""Dual coordinate ascent for linear support vector machines: one slope at a time, each to its best.

In the dual problem of `linear_objective`, with βᵢ = cᵢ aᵢ and w = Σ βᵢ xᵢ kept up to date, the best value of one βᵢ has a
closed form: with the residual r = tᵢ − w·xᵢ − b and the curvature h = ‖xᵢ‖² + σ + μ/cᵢ, xᵢ being measured from the mean row m,

    βᵢ ← clip(soft(βᵢ + (r − μ aᵢ)/h, ε/h)),    soft(β, e) = sign(β)·max(|β| − e, 0),

which costs as much as the row has numbers that are not zero: Σ βᵢ, w·m and m·xᵢ are kept, so that m is never taken off. The
free intercept asks for Σ βᵢ = 0: the method of multipliers keeps b = b₀ + σ Σ βᵢ, which is a constant column of height √σ, and
moves b₀ to b after each epoch, until nothing is left to move. Far from the origin, or with σ that does not suit the rows, b
and w would wait for each other for thousands of epochs. Rows whose slope is at a bound, and would go farther by more than any
slope moved in the last epoch, are left out until the rest has converged (shrinking) [1]. Rows are visited in random order, in
each block; blocks in the order of the table.

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
from lemmata.linear_model.stochastic import fold, stored
from lemmata.svm.linear_intercept import best_intercept
from lemmata.svm.linear_objective import Step, centers_block, rows_of, scores, transposed

COLUMN = 0.02  # σ as a share of ‖x‖², on average; at least such that slopes of one size move b by a unit of the targets
CHUNK = 64  # rows that are visited together, in random order: near each other in memory, so that they are read once
FIRST, CLOSER = 1e-2, 5.0  # violation, in units of the targets, at which all rows are looked at, and by how much it falls then


class Plane(NamedTuple):
    """What the rows of all blocks share: Σ β x; and Σ β, b₀, the largest violation, Σ s(ta − ε|a| − ½μa²) and Σ β x·m."""

    coef: np.ndarray
    shared: np.ndarray  # (5,)


class Rows(NamedTuple):
    """What a block keeps: slopes, the rows that are visited, and ‖x − m‖² and m·x of each row."""

    slopes: np.ndarray
    active: np.ndarray
    squares: np.ndarray
    levers: np.ndarray


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
    values, indices, indptr, squares, levers, t, s, slopes, active, coef, shared, lift, C, epsilon, two_sided, width, free,
    leave, rng,
):  # fmt: skip
    """Set the slopes of the active rows of a block to their best, one after another; mark rows to be left out.

    Parameters
    ----------
    active : Numbers of the rows to visit, ascending; a row to be left out becomes −1.
    lift : ‖m‖².
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
            f = row_dot(values, indices, indptr, i, coef) - shared[4] - shared[0] * (levers[i] - lift)  # w·(x − m)
            r = t[i] - f - shared[1] - free * shared[0] - width * a
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
                shared[4] += c * (b - a) * levers[i]


def squares_of(X):
    """Return ‖x‖² of each row, in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=float).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=float)


def kept_of(X, slopes, center):
    """Return what a block keeps before its first visit; squared lengths set the size of steps, and need few digits."""
    levers = scores(X, center, 0.0)
    return Rows(slopes, np.arange(0), np.maximum(squares_of(X) - 2 * levers + center @ center, 0.0), levers)


def middle_of(X, weight):
    """Return the mean row of a block, and the mean of the squared distances from it."""
    share = np.ones(X.shape[0]) if weight is None or not np.any(weight) else np.asarray(weight, dtype=float)
    share = share / share.sum()
    center = transposed(X, share)
    return center, float(share @ kept_of(X, None, center).squares)


def visit_block(X, y, weight, plane, own, loss, center, C, width, free, leave, seed, epoch):
    """Visit the rows of a block; return (plane, what the block keeps). A block that keeps no active rows visits all."""
    t, s = rows_of(y, weight, loss)
    own = kept_of(X, np.zeros(len(t)), center) if own is None else own
    slopes, active = own.slopes.copy(), own.active.copy() if len(own.active) else np.arange(len(t))
    rng = seeded(np.random.default_rng([seed, epoch, len(t)]))
    given = (float(center @ center), C, loss.epsilon, loss.two_sided, width, free, leave, rng)
    visit_rows(*stored(X), own.squares, own.levers, t, s, slopes, active, *plane, *given)
    worth = t * slopes - loss.epsilon * np.abs(slopes) - width / 2 * slopes**2
    plane.shared[3] += worth.sum() if s is None else s @ worth
    return plane, own._replace(slopes=slopes, active=active[active >= 0])


def whole(problem):
    """Give a problem whose rows in memory are a single block, so that they are visited in an order drawn from all."""
    blocks = problem.blocks
    return replace(problem, blocks=blocks.with_block_rows(blocks.n_rows)) if isinstance(blocks, ArrayBlocks) else problem


def near_block(X, y, weight, plane, own, loss, center, C, step):
    """Begin with the slopes that a proximal step from the middle gives; add up what they make of the plane."""
    slopes = centers_block(X, y, weight, loss, (step,))
    s = rows_of(y, weight, loss)[1]
    beta = C * (slopes if s is None else s * slopes)
    plane.coef[:] += transposed(X, beta)
    own = kept_of(X, slopes, center)
    plane.shared[[0, 4]] += beta.sum(), beta @ own.levers
    return plane, own


class CoordinateAscent:
    """The epochs of a fit, from and to an `Ascent`.

    Parameters
    ----------
    problem : From `margin_problem`.
    unit : Of the targets.
    tol : Share of the objective that the duality gap may have.
    seed : Of the order of the rows.
    """

    def __init__(self, problem, unit, tol, seed):
        X, _, weight = problem.blocks.first()  # which is the same in every home
        self.problem, self.unit, self.ends, self.seed = whole(problem), unit, tol, seed
        self.C, self.width = 1 / problem.penalty, 0.0 if problem.loss.bounded else problem.width
        self.center, self.free = np.zeros(X.shape[1]), 0.0
        if problem.intercept:
            self.center, square = middle_of(X, weight)
            self.free = max(COLUMN * square, (unit if problem.loss.bounded else 1.0) / (self.C * problem.total))

    def start(self, theta):
        """Return the first state: no slopes, and the intercept of given planes."""
        coef, intercept = self.problem.parameters(theta)
        shared = np.array([0.0, intercept[0] + self.center @ coef[:, 0], 0.0, 0.0, 0.0])
        return Ascent(Plane(np.zeros(self.problem.blocks.n_columns), shared), (), 0, np.inf, FIRST)

    def near(self, theta, width):
        """Return a first state close to the optimum, for plain losses: slopes as planes suggest them, within a width."""
        state = self.start(theta)
        coef, intercept, *_ = self.problem.at(theta)
        step = Step(coef, intercept, width * self.unit)
        given = (self.problem.loss, self.center, self.C, step)
        plane, memory = fold(self.problem.blocks, Visit(near_block, given), state.plane)
        plane.shared[1] -= self.free * plane.shared[0]
        return state._replace(plane=plane, memory=memory)

    def step(self, state):
        """Visit the active rows once; return (state, minus the dual objective, duality gap once that is known)."""
        plane, memory, epoch, leave, goal = state
        plane = Plane(plane.coef, plane.shared * np.array([1.0, 1.0, 0.0, 0.0, 1.0]))
        given = (self.problem.loss, self.center, self.C, self.width, self.free, leave, self.seed, epoch)
        plane, memory = fold(self.problem.blocks, Visit(visit_block, given), plane, memory or None)
        violation, whole = plane.shared[2] / self.unit, leave == np.inf
        plane.shared[1] += self.free * plane.shared[0]
        coef = self.centered(plane)
        dual = (self.C * plane.shared[3] - coef @ coef / 2) / (self.C * self.problem.total)
        gap = np.inf
        if violation <= goal and whole:
            gap, goal = self.gap(plane, dual), goal / CLOSER
        leave = plane.shared[2]
        if violation <= goal or not any(len(rows.active) for rows in memory):
            leave = np.inf
            memory = tuple(rows._replace(active=rows.active[:0]) for rows in memory)
        return Ascent(plane, memory, epoch + 1, leave, goal), -dual, gap

    def centered(self, plane):
        """Return w = Σ β (x − m)."""
        return plane.coef - plane.shared[0] * self.center

    def gap(self, plane, dual):
        """Return the duality gap, relative to the objective; what the sum of all β is off by counts with it."""
        coef, beta, b, problem = self.centered(plane), *plane.shared[:2], self.problem
        if problem.intercept and problem.loss.bounded:
            b = best_intercept(problem.blocks, coef, problem.loss) + self.center @ coef
        value = problem.evaluate(problem.theta(coef[:, None], np.array([b - self.center @ coef])))[2]
        off = problem.intercept * (abs(b) + self.unit) * abs(beta) / (self.C * self.problem.total)
        return (value - dual + off) / max(value, np.finfo(float).tiny)

    def theta(self, state):
        """Return the planes of a state in standard coordinates."""
        coef = self.centered(state.plane)
        return self.problem.theta(coef[:, None], state.plane.shared[1:2] - self.center @ coef)


class Visit:
    """A visit of a block, with what does not change during an epoch."""

    def __init__(self, function, given):
        self.function, self.given = function, given

    def __call__(self, X, y, weight, plane, own):
        """Visit the rows of a block."""
        return self.function(X, y, weight, plane, own, *self.given)
