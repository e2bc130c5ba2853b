"""Minimizing the logistic objective: a start from a sample of the rows, then steps that `iterate` drives.

A sample of m rows has its optimum within about √(d/m) standard errors of that of all rows, and its Hessian within that share
of theirs. So most of the way is gone on few rows, and the sample's Hessian is a preconditioner with which L-BFGS needs a
handful of passes over all rows instead of a hundred. Newton's method takes the Hessian of all rows at every step, or, where
that is too large to form, solves for the step by conjugate gradients [1].

[1] Dembo, Eisenstat & Steihaug, SIAM J. Numer. Anal. 19 (1982). [2] Johnson & Zhang, NIPS (2013).
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_solve

from lemmata.core.blocks import Blocks
from lemmata.core.threads import serial_blas
from lemmata.linear_model.logistic_loss import FULL, factored, total_block
from lemmata.optimize.conjugate import conjugate_start, conjugate_step
from lemmata.optimize.descent import backtracking_start, backtracking_step
from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step
from lemmata.optimize.line_search import ROUNDING, LineSearchError, search
from lemmata.optimize.quasi_newton import bfgs_start, bfgs_step

SAMPLE = 1 << 14  # rows of the sample: its optimum is then as close as a few full passes would bring it
SHARE = 4  # a sample must be this much smaller than the table to be worth its own fit
COARSE = 1e-3  # gradient at which a sample has said what it knows
ROUGH = 0.03  # gradient at which a Hessian of all rows serves as preconditioner for the rest of the way
COARSE_STEPS = 30
BATCH = 64  # rows of a stochastic gradient: enough for matrix products to pay, few enough for many steps an epoch
STEP = 0.2  # of stochastic gradients; in standard coordinates the curvature of the mean loss is mostly below 1
SHRINK = 4  # factor of that step after an epoch that ended higher than it began, which is then not taken
DENSE = 2000  # parameters up to which Newton's method forms the Hessian


def sampled(objective):
    """Return the objective on a sample of the rows, evenly spread, or the objective itself if the table is small."""
    blocks, n = objective.blocks, objective.blocks.n_rows
    stride = n // max(SAMPLE, 20 * len(objective.unit))  # 20 rows a column: enough for a Hessian within a quarter
    if stride < SHARE:
        return objective
    part = Blocks.of(*blocks.take(np.arange(stride // 2, n, stride)))
    total = part.reduce(total_block)
    if total == 0:
        return objective
    return replace(objective, blocks=part, penalty=objective.penalty * total / objective.total, total=total)


def start(objective):
    """Return a starting point and a preconditioner, from a sample of the rows."""
    part = sampled(objective)
    goal = ROUGH if part is objective else COARSE
    theta = np.zeros(objective.n_parameters)
    with serial_blas():
        if part.n_scores == 1 or part.n_parameters <= FULL:
            state, step = lbfgs_start(part, theta)[:3], newton_step
        else:
            state, step = lbfgs_start(part, theta), lbfgs_step
        options = {} if step is newton_step else {"precondition": part.preconditioner(theta)}
        for _ in range(COARSE_STEPS):
            before = state[1]
            state, value, residual = step(part, state, **options)
            if residual <= goal or not value < before:
                break
        return state[0], part.preconditioner(state[0])


def newton_step(objective, state):
    """Take one Newton step with a line search, from and to (θ, value, gradient); return (state, value, residual)."""
    theta, value, gradient = state
    with serial_blas():
        direction = newton_direction(objective, theta, gradient)
    try:
        point = search(objective, theta, value, gradient, direction)
    except LineSearchError:  # rounding ends the progress
        return state, value, float(np.abs(gradient).max())
    return point[:3], point.value, float(np.abs(point.gradient).max())


def newton_direction(objective, theta, gradient):
    """Return −H⁻¹·gradient: by a factor of the Hessian, or by conjugate gradients where that would be too large."""
    if objective.n_parameters <= DENSE:
        return -cho_solve(factored(objective.hessian(theta) + objective.gauge()), gradient)
    return -conjugate_gradients(lambda v: objective.curvature(theta, v), gradient, objective.preconditioner(theta))


def conjugate_gradients(product, rhs, precondition):
    """Solve H·v = rhs until the residual is a small share of the right-hand side, smaller close to the optimum."""
    v, r = np.zeros(len(rhs)), rhs.copy()
    z = precondition(r)
    p, rz = z.copy(), r @ z
    goal = min(0.25, np.sqrt(np.sqrt(rz))) ** 2 * rz  # Dembo, Eisenstat & Steihaug's forcing term
    for _ in range(len(rhs)):
        if rz <= goal:  # at once where the right-hand side is zero
            break
        Hp = product(p)
        alpha = rz / (p @ Hp)
        v, r = v + alpha * p, r - alpha * Hp
        z = precondition(r)
        rz, last = r @ z, rz
        p = z + rz / last * p
    return v


def variance_reduced_epoch(objective, rows, state, size, rng):
    """Take an epoch of stochastic gradient steps of a size, whose noise vanishes with the distance to the optimum [2].

    With θ̃ the state, each step uses the gradient of a few rows at θ, less that of the same rows at θ̃, plus that of all rows
    at θ̃: unbiased as ever, and exact where θ = θ̃ is the optimum.
    """
    anchor, _, gradient = state
    n = rows[0].shape[0]
    many = min(BATCH, max(n // BATCH, 1))
    theta = anchor.copy()
    order = rng.permutation(n)
    for at in range(0, n, many):
        batch = order[at : at + many]
        part = replace(objective, blocks=Blocks.of(*(None if a is None else a[batch] for a in rows)))
        part = replace(part, total=objective.total * len(batch) / n, penalty=objective.penalty * len(batch) / n)
        theta = theta - size * (part(theta)[1] - part(anchor)[1] + gradient)
    return (theta, *objective(theta))


def solver(name, objective, rng):
    """Return the first state and the step, a function of a state, of a solver."""
    zero = np.zeros(objective.n_parameters)
    match name:
        case "lbfgs":
            theta, precondition = start(objective)
            return lbfgs_start(objective, theta), lambda state: lbfgs_step(objective, state, precondition)
        case "newton":
            theta, _ = start(objective)
            return lbfgs_start(objective, theta)[:3], lambda state: newton_step(objective, state)
        case "cg":
            return conjugate_start(objective, zero), lambda state: conjugate_step(objective, state)
        case "bfgs":
            return bfgs_start(objective, zero), lambda state: bfgs_step(objective, state)
        case "gd":
            return backtracking_start(objective, zero), lambda state: backtracking_step(objective, state)
    rows = objective.blocks.take(np.arange(objective.blocks.n_rows))
    seed = int(rng.integers(2**63))

    def epoch(state):
        *before, size, count = state
        with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long may end anywhere
            after = variance_reduced_epoch(objective, rows, before, size, np.random.default_rng([seed, count]))
        if not after[1] <= before[1] + ROUNDING * abs(before[1]):
            after, size = before, size / SHRINK
        return (*after, size, count + 1), after[1], float(np.abs(after[2]).max())

    return (*lbfgs_start(objective, zero)[:3], STEP, 0), epoch
