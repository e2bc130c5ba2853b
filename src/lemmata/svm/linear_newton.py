"""Newton's method for linear support vector machines, within proximal steps where the loss has a kink.

The smoothed objective is piecewise quadratic. A Newton step solves the quadratic piece at hand, and an exact search along the
line, for which nothing but the scores of the rows is needed, keeps every step a descent; once the piece is that of the minimum,
one step is exact, so that squared losses end after a few steps at the last digit [1]. For the plain ones the smoothed
objective changes, whenever it is solved, to the one around the slopes just found: the proximal point method on the dual
problem, that is the method of multipliers on the primal, which ends after finitely many changes too, for the dual objective
is quadratic and its constraints are linear [2][3]. Only rows close to the margin curve, so that the equations of a step are
made of few rows. Up to 2000 columns, or 1000 rows that curve, they are solved by a factorization, else by conjugate gradients.

[1] Keerthi & DeCoste, J. Mach. Learn. Res. 6 (2005). [2] Rockafellar, Math. Oper. Res. 1 (1976). [3] Li, Sun & Toh, SIAM J.
Optim. 28 (2018).
"""

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.core.blocks import ArrayBlocks
from lemmata.core.certificate import GAP_LIMIT
from lemmata.core.data import is_sparse
from lemmata.core.threads import serial_blas
from lemmata.linear_model.logistic_loss import factored, objective
from lemmata.linear_model.logistic_solvers import DENSE
from lemmata.svm.linear_objective import MarginObjective, Step, centers_block, line_slope, rows_of, slopes_block

SQUARED = 0.5  # width at which the smoothed loss is the squared one
FIRST, SHRINK, LEAST = 2.5, 5.0, 1e-7  # first width of proximal steps, how fast it falls, and the last, in units of the targets
FALL = 25  # factor by which a proximal step lowers the excess, if its width need not fall
FLAT = 0.1  # share of the slope along a line that a unit step may leave, before the search goes on
EXACT = 1e-6  # share that the search leaves
TRIALS = 60  # of a search that halves an interval or does better
LOOSE = 1e-2  # residual at which a first proximal step is solved well enough; of a later one, as a share of the excess
STEEP = 1e-3  # curvature of the mean loss that a parameter without any is given
ROWS = 1000  # that curve, up to which equations of rows are solved where columns are too many
FORCING, PRODUCTS = 0.03, 300  # share of the gradient that conjugate gradients leave, and how many they may try
ROUNDED = 1e-14  # residual that no proximal step need be below
NOISE = 1e-15  # excess that may be rounding, if it does not fall any more
STILL = 4e-16  # of a parameter: two roundings
SETTLING = 3  # Newton steps: one is exact, in the last piece
PATIENCE = 3  # proximal steps without progress that end a fit: rounding is all that is left
CLOSE = GAP_LIMIT / 10  # share of the objective that a fit with a squared loss may leave
SURE = 1e-10  # of the tolerance: excess at which slopes count as found; it is quadratic in the error of the planes


def total_block(X, y, weight, loss):
    """Sum of weights of a block, and of targets times weights."""
    t, s = rows_of(y, weight, loss)
    return (float(len(t)), t.sum()) if s is None else (s.sum(), s @ t)


def spread_block(X, y, weight, loss, mean):
    """Sum of weighted distances of the targets of a block from a number."""
    t, s = rows_of(y, weight, loss)
    return float(np.abs(t - mean).sum() if s is None else s @ np.abs(t - mean))


def margin_problem(blocks, loss, C, intercept):
    """Describe a problem; return its objective before the first step, and the unit and the mean of its targets."""
    total, moment = blocks.reduce(total_block, loss)
    unit, mean = 1.0, 0.0
    if loss.two_sided:
        mean = moment / total
        unit = blocks.reduce(spread_block, loss, mean) / total or 1.0
        mean = mean if intercept else 0.0
    base = objective(blocks, 1, 1 / C, intercept)
    parts = (base.penalty, base.intercept, float(total), base.center, base.unit)
    return MarginObjective(blocks, 1, *parts, loss, (), FIRST * unit if loss.bounded else SQUARED, False), unit, mean


def is_wide(problem):
    """Tell whether coordinate ascent suits a problem better: a plain loss, and more columns than a factorization takes."""
    return problem.loss.bounded and len(problem.unit) > DENSE


def advance_block(X, y, weight, center, coef, intercept, width, loss):
    """Slopes of the rows of a block after a proximal step."""
    t, _ = rows_of(y, weight, loss)
    return slopes_block(X, t, center, coef, intercept, width, loss)[1]


def around(problem, path, width, before=None):
    """Return the objective around the slopes that a path leads to; where they are known before its last step, from there."""
    problem = replace(problem, path=path, width=width)
    if not (problem.loss.bounded and isinstance(problem.blocks, ArrayBlocks)):
        return problem
    if before is not None and before.known and before.path == path[:-1]:
        centers = before.over("map", advance_block, *path[-1], problem.loss)
    else:
        centers = problem.blocks.map(centers_block, problem.loss, path)
    held = copy(problem.blocks)
    held.aligned = [*held.aligned, centers]
    return replace(problem, blocks=held, known=True)


def direction_of(problem, theta, gradient):
    """Return the Newton direction."""
    if problem.n_parameters <= DENSE:
        return -cho_solve(factored(problem.hessian(theta)), gradient)
    curved = problem.curved(theta)
    if curved is not None and curved.n_rows <= ROWS:
        return -solved_by_rows(problem, curved, gradient)
    diagonal = problem.diagonal(curved)
    scale = np.maximum(diagonal, STEEP * np.finfo(float).eps + STEEP * (diagonal == 0))
    return -conjugate_gradients(lambda v: problem.product(curved, v) + (scale - diagonal) * v, gradient, scale)


def proved_gap(problem, gradient):
    """Bound by how much the objective of a squared loss can fall: its curvature is at least that of the penalty."""
    slope = problem.unit * gradient[: len(problem.unit)]
    return problem.total / (2 * problem.penalty) * float(slope @ slope)


def solved_by_rows(problem, curved, rhs):
    """Solve H·v = rhs by as many equations as there are curved rows: H = R + ZᵀBZ, with a diagonal R (Woodbury's identity).

    For s = √B(Zv + β) these are (1 + √B Z R⁻¹Zᵀ√B) s = √B Z R⁻¹ rhs + β√B, and Σ √B s is the entry of rhs for the intercept β.
    """
    roots, unit, penalty = np.sqrt(curved.aligned[0]), problem.unit, problem.penalty
    d = len(unit)
    Z = curved.X if is_sparse(curved.X) else curved.X.astype(float) - problem.center
    gram = Z @ Z.T
    M = roots[:, None] * (gram.toarray() if is_sparse(gram) else gram) * roots / penalty
    M[np.diag_indices(len(M))] += 1.0
    factor = cho_factor(M)
    g = problem.total * rhs[:d] * unit
    s, ones = cho_solve(factor, np.column_stack([roots * (Z @ g) / penalty, roots])).T
    intercept = [(problem.total * rhs[d] - roots @ s) / (roots @ ones)] if problem.intercept else []
    if problem.intercept:
        s = s + intercept[0] * ones
    return np.append(unit / penalty * (g - Z.T @ (roots * s)), intercept)


def conjugate_gradients(product, rhs, scale):
    """Solve H·v = rhs, for H scaled by its diagonal, until the residual is a small share of the right-hand side."""
    v, r = np.zeros(len(rhs)), rhs.copy()
    z = r / scale
    p, rz = z.copy(), r @ z
    goal = FORCING**2 * rz
    for _ in range(PRODUCTS):
        if rz <= goal:
            break
        Hp = product(p)
        alpha = rz / (p @ Hp)
        v, r = v + alpha * p, r - alpha * Hp
        z = r / scale
        rz, last = r @ z, rz
        p = z + rz / last * p
    return v


def search(problem, theta, gradient, direction):
    """Return the step along a direction at which the smoothed objective is least, or 1 if that is almost as good."""
    rows, cross, square = problem.line(theta, direction)
    loss = problem.loss
    start = float(gradient @ direction)

    def slope(step):
        first, second = line_slope(step, *rows, problem.width, loss.epsilon, loss.two_sided, loss.bounded)
        return (first + problem.penalty * (cross + step * square)) / problem.total, (
            second + problem.penalty * square
        ) / problem.total

    low, high, step = 0.0, np.inf, 1.0
    for trial in range(TRIALS):
        first, second = slope(step)
        if abs(first) <= (EXACT if trial else FLAT) * -start:
            break
        low, high = (step, high) if first < 0 else (low, step)
        newton = step - first / second if second > 0 else np.inf
        middle = (low + high) / 2 if high < np.inf else 2 * step
        step = newton if low < newton < high else middle
    return step


class Descent(NamedTuple):
    """The state of a fit after some steps."""

    theta: np.ndarray
    path: tuple  # of proximal steps
    goal: float  # residual at which the next one begins
    width: float
    excess: float  # that the last one left
    idle: int  # proximal steps of the least width in a row that did not lower it
    residual: float  # before the last Newton step


class ProximalNewton:
    """The steps of a fit, from and to a `Descent`; what they need of the rows is kept between them.

    Parameters
    ----------
    problem : From `margin_problem`.
    unit : Of the targets.
    tol : Largest entry of the gradient of the mean loss, in units of its slopes, that ends the fit.
    """

    ends = 0.0  # residual of the last step

    def __init__(self, problem, unit, tol):
        self.problem, self.tol = problem, tol
        self.unit, self.slope_unit = unit, 1.0 if problem.loss.bounded else unit
        self.held = None

    def current(self, state):
        """Return the objective around the slopes that the path leads to."""
        if self.held is None or len(self.held.path) != len(state.path):
            self.held = around(self.problem, state.path, state.width, self.held)
        return self.held

    def start(self, theta):
        """Return the first state."""
        return Descent(theta, (), LOOSE, self.problem.width, np.inf, 0, np.inf)

    @staticmethod
    def theta(state):
        """Return the planes of a state in standard coordinates."""
        return state.theta

    def near(self, theta, width):
        """Return a first state close to the optimum: slopes as planes suggest them, within a width of the margin."""
        coef, intercept, *_ = self.problem.at(theta)
        path = (Step(coef, intercept, width * self.unit),) if self.problem.loss.bounded else ()
        width = width * self.unit if self.problem.loss.bounded else self.problem.width
        return Descent(theta, path, LOOSE * width / self.unit, width, np.inf, 0, np.inf)

    def settled(self, state):
        """Return a state around the slopes of a state, and as wide as the first, at which they balance to the last digit.

        Slopes from a narrow step have the rounding of the residuals, divided by the width.
        """
        if not self.problem.loss.bounded:
            return state
        path = (*state.path, Step(*self.current(state).at(state.theta)[:3]))
        state = Descent(state.theta, path, 0.0, FIRST * self.unit, np.inf, 0, np.inf)
        for _ in range(SETTLING):
            after = self.step(state)[0]
            if after.path != path or after is state:
                break
            state = after
        self.held = None  # the step may have gone on from the path
        return state

    def step(self, state):
        """Take a Newton step, or begin a proximal one; return (state, objective, residual)."""
        problem = self.current(state)
        _, gradient, value, excess = problem.evaluate(state.theta)
        residual = float(np.abs(gradient).max()) / self.slope_unit
        halted = residual <= self.tol and residual > state.residual / 2  # by rounding: in the last piece a step is exact
        if problem.loss.bounded:
            solved = residual <= max(state.goal, ROUNDED)
        else:
            solved = residual <= self.tol and proved_gap(problem, gradient) <= CLOSE * value
        if solved or halted:
            return self._solved(state, residual, value, excess)
        with serial_blas():
            direction = direction_of(problem, state.theta, gradient)
        theta = state.theta + search(problem, state.theta, gradient, direction) * direction
        if np.all(np.abs(theta - state.theta) <= STILL * np.abs(theta)):  # rounding ends the progress
            return self._solved(state, residual, value, excess, stuck=True)
        return state._replace(theta=theta, residual=residual), value, np.inf

    def _solved(self, state, residual, value, excess, stuck=False):
        """End the fit, or begin the next proximal step."""
        if not self.problem.loss.bounded:
            return state, value, 0.0
        left = excess / max(value, np.finfo(float).tiny)
        narrow = state.width <= LEAST * self.unit
        idle = state.idle + 1 if narrow and (stuck or left > state.excess / 2) else 0
        sure = left <= SURE * self.tol or state.excess / 2 < left <= NOISE
        if (residual <= self.tol and sure) or idle == PATIENCE:
            return state, value, 0.0
        path = (*state.path, Step(*self.current(state).at(state.theta)[:3]))
        goal = min(state.goal / SHRINK, LOOSE * left)
        width = max(state.width / SHRINK, LEAST * self.unit) if left > state.excess / FALL else state.width
        return Descent(state.theta, path, goal, width, left, idle, np.inf), value, np.inf
