"""Alternating ridge regressions: the maximum a posteriori of a factorization, one side given the other.

A rating is r ~ N(μ + bᵢ + cⱼ + uᵢᵀvⱼ, σ²), and all biases and factors of a side are N(0, 1/λ) before anything is seen. Minus
the log posterior, times σ², is

    F = ½ Σ s (r − μ − bᵢ − cⱼ − uᵢᵀvⱼ)² + ½σ²λ_u Σ (‖uᵢ‖² + bᵢ²) + ½σ²λ_v Σ (‖vⱼ‖² + cⱼ²),

the sum over the ratings that were seen, with weights s. Given the items, every user has a ridge problem of its own with the
columns (vⱼ, 1), the targets r − μ − cⱼ and the penalty λ_uσ² (not λ_u); given the users, so has every item. A sweep solves
all of both (`ridge_rows`), and F never rises. With implicit feedback every cell counts: it has the target 1 and confidence 1
+ αr where something was seen, and 0 with confidence 1 elsewhere [1]. Then

    Σ (confidence)(p − uᵀv)² = Σ_seen αr (t − uᵀv)² − Σ_seen t + tr UᵀU VᵀV,    t = 1 + 1/αr,

so that in the coordinates z = Lᵀu, LLᵀ = VᵀV + σ²λI, it is again a ridge problem with the entries that were seen alone.

Sweeps converge slowly where users and items explain each other. So a sweep x ↦ S(x) of x = (U, V) serves as a preconditioner:
t = x − S(x) takes the place of the gradient in nonlinear conjugate gradients [2], p ← −t + βp with β = max(0, t·(t −
t₋)/t₋·t₋). Along a line every residual is a quadratic function, hence F is a polynomial of degree four, whose coefficients
take one pass over the ratings and whose least value is exact. Where the least value on the line is no better than S(x)
itself, that is where the next sweep starts.

The noise variance, where it is to be estimated, is the fixed point of σ² = (Σ s e² + γσ²)/N: the squared residuals over the
ratings that are left after the γ parameters that the ratings determine (MacKay's evidence [3], users and items taken one
given the other). It moves when the factors have come to rest at the present one, by the secant rule.

[1] Hu, Koren & Volinsky, ICDM (2008). [2] De Sterck & Winlaw, Numer. Linear Algebra Appl. 22 (2015). [3] MacKay, Neural
Computation 4 (1992).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from lemmata.core import config
from lemmata.core.threads import run
from lemmata.recommend.ridge_rows import determined_rows, improve_rows, line_rows, solve_rows
from lemmata.recommend.shards import summed

ROUNDING = 1e-14  # of the sums that a value on a line consists of; below, two values are equal
CHUNK = 2048  # rows of dense algebra at once
WEAK, NEGLIGIBLE = 1e-2, 1e-8  # lengths of all factors' products, as shares of the ratings' own
REST = 0.1  # how much closer the factors must be to rest than the noise variance before that is moved
LONGEST = 16.0  # times the plain step: how far the noise variance may go at once
QUIETEST = 1e-6  # least share of the ratings' variance for an estimated noise variance: beyond, nothing restrains the factors
SETTLED = 1e-7  # relative change of the noise variance below which it stays; the certificate asks for 1e-6


def ridge_block(first, indptr, indices, values, weights, offsets, table, ridge, old, root=None):
    """Solve the rows of a shard; give rows, objective, gain and energy of each. With a root, rows are u = L⁻ᵀz."""
    return _run(solve_rows, first, (indptr, indices, values, weights), offsets, table, ridge, old, root)


def coordinate_block(first, indptr, indices, values, weights, offsets, table, ridge, old, root=None):
    """Improve the rows of a shard, one unknown after another; results as of `ridge_block`."""
    return _run(improve_rows, first, (indptr, indices, values, weights), offsets, table, ridge, old, root)


def _run(solver, first, entries, offsets, table, ridge, old, root):
    here = slice(first, first + len(entries[0]) - 1)
    start = old[here] if root is None or not old.any() else old[here] @ root
    new = np.empty_like(start)
    loss, step, energy = (np.empty(len(new)) for _ in range(3))
    if solver(*entries, offsets, table, ridge[here], start, new, loss, step, energy) >= 0:
        raise ValueError("The ratings of some users or items do not determine their factors; raise prior_precision.")
    return (new if root is None else solved(root, new, trans=1)), loss, step, energy


def solved(root, rows, trans=0):
    """Solve Lx = row for every row, or Lᵀx = row."""
    return np.ascontiguousarray(solve_triangular(root, rows.T, lower=True, trans=trans, check_finite=False).T)


def determined_block(first, indptr, indices, values, weights, table, ridge):
    """Count the parameters of each row of a shard that its ratings determine."""
    out = np.empty(len(indptr) - 1)
    determined_rows(indptr, indices, values, weights, table, ridge[first : first + len(out)], out)
    return (out,)


def moments_block(first, indptr, indices, values, weights, center):
    """Weight of each row's ratings, their sum, and that of their squares, about a center."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    w = weights if len(weights) else np.ones(len(values))
    e = values - center
    return tuple(np.bincount(row, a, minlength=len(indptr) - 1) for a in (w, w * e, w * e * e))


def implicit_rows(rows, confidence):
    """Turn amounts into targets 1 + 1/αr with weights αr; what was seen twice adds up, and zero is not seen."""
    if (rows.values < 0).any():
        raise ValueError("Implicit feedback counts or measures attention: amounts must be at least 0, and one is negative.")
    sums = summed(rows, rows.values * rows.weights if len(rows.weights) else rows.values)
    seen = sums.values != 0
    indptr = np.concatenate([[0], np.cumsum(seen)])[sums.indptr]
    extra = confidence * sums.values[seen]
    return rows._replace(indptr=indptr, indices=sums.indices[seen], values=1 + 1 / extra, weights=extra)


class Moments(NamedTuple):
    """What the ratings are on the whole: weights of each user and item, mean, and variance."""

    users: Any
    items: Any
    mean: float
    variance: float


def moments_of(users, items):
    """Add up ratings; sums of rows are added in their order, so that no home of the shards changes a bit."""
    weight, total, _ = users.map(moments_block, 0.0)
    mean = float(total.sum() / weight.sum())
    squares = users.map(moments_block, mean)[2]
    return Moments(weight, items.map(moments_block, 0.0)[0], mean, float(squares.sum() / weight.sum()))


class Model(NamedTuple):
    """What does not change: shards of both sides, λ of every row, the kind of model, the constant in F, and ‖r − μ‖."""

    users: Any
    items: Any
    precision_users: Any
    precision_items: Any
    mean: float
    biases: bool
    implicit: bool
    block: Any
    constant: float
    scale: float


def columns_of(factors, biases):
    """Give the columns of the other side's ridge problems: the factors, and ones for the bias."""
    return np.column_stack([factors[:, :-1], np.ones(len(factors))]) if biases else factors


def offsets_of(factors, biases, mean):
    """Give what is taken off the targets of the other side: the mean and the biases of this one."""
    return mean + factors[:, -1] if biases else np.full(len(factors), mean)


def half_sweep(model, blocks, other, ridge, old):
    """Solve all rows of one side; give them with the objective, gain and energy of each row."""
    if not model.implicit:
        offsets = offsets_of(other, model.biases, model.mean)
        return blocks.map(model.block, offsets, columns_of(other, model.biases), ridge, old)
    slices = [slice(start, start + CHUNK) for start in range(0, len(other), CHUNK)]
    grams = on_threads(lambda here: other[here].T @ other[here], slices)
    root = cholesky(sum(grams) + ridge[0] * np.eye(other.shape[1]), lower=True)
    table = np.concatenate(on_threads(lambda here: solved(root, other[here]), slices))
    return blocks.map(model.block, np.zeros(len(other)), table, np.ones(len(old)), old, root)


def on_threads(function, tasks):
    """Collect what a function makes of some tasks, in their order."""
    results = {}

    def work(task):
        i, given = task
        results[i] = function(given)

    run(work, enumerate(tasks), min(config.n_threads(), len(tasks)))
    return [results[i] for i in range(len(tasks))]


class Unknown(NamedTuple):
    """A noise variance to be estimated: from ratings of this weight in all, and no less than a floor."""

    weight: float
    floor: float


class State(NamedTuple):
    """Where a fit is: the point x, S(x) with its F, the last t and p (none at first), and the noise variance with its moves."""

    point: tuple[Any, Any]
    fit: tuple[Any, Any]
    objective: float
    step: tuple[Any, ...]
    direction: tuple[Any, ...]
    noise: float
    unrest: tuple[float, ...]


def begin(model, n_components, noise, scale, rng):
    """Draw item factors such that products with users of the same size would be as large as ratings are."""
    width = n_components + model.biases
    items = np.zeros((model.items.n_rows, width))
    items[:, :n_components] = np.sqrt(scale / np.sqrt(n_components)) * rng.standard_normal((len(items), n_components))
    start = np.zeros((model.users.n_rows, width)), items
    return State(start, start, np.inf, (), (), noise, (1.0,))


def iteration(model, tol, unknown, leaps, state):
    """Sweep, then leap; return (state, minus the log posterior at the sweep's end, distance from rest).

    The distance is the length of the items' last step relative to that of the items, both in the metric of their problems.
    `unknown` tells of a noise variance that is to be estimated; None if it is given.
    """
    ridges = state.noise * model.precision_users, state.noise * model.precision_items
    exact = model.block is ridge_block  # then where a user was does not matter
    begin_at = np.zeros_like(state.point[0]) if exact else state.point[0]
    users, _, first_gain, first_energy = half_sweep(model, model.users, state.point[1], ridges[0], begin_at)
    items, loss, gain, energy = half_sweep(model, model.items, users, ridges[1], state.point[1])
    half = loss.sum()
    objective = half + 0.5 * (ridges[0] @ (users**2).sum(axis=1)) + model.constant
    distance = _ratio(gain.sum(), energy.sum() - 2 * half)
    if not exact:  # the users are not at rest either
        distance = max(distance, _ratio(first_gain.sum(), first_energy.sum()))
    fit = users, items
    if NEGLIGIBLE * model.scale < strength(model, fit) < WEAK * model.scale:  # factors that die out must be seen to do so
        distance = max(distance, np.linalg.norm(items - state.point[1]) / np.linalg.norm(items))
    now = state._replace(point=fit, fit=fit, objective=objective)
    if leaps and distance > tol and np.isfinite(state.objective):
        now = leap(model, ridges, state, now)
    value = objective / state.noise
    if unknown is not None:
        squares = 2 * half - ridges[1] @ (items**2).sum(axis=1)
        now, distance = _with_noise(model, now, squares, distance, tol, unknown)
    return now, value, distance


def strength(model, fit):
    """Bound the length of the products of all factors."""
    users, items = (side[:, :-1] if model.biases else side for side in fit)
    return float(np.linalg.norm(users) * np.linalg.norm(items))


def _ratio(gain, energy):
    """Length of a step relative to what it leads to; no step from nothing to nothing is none."""
    return float(np.sqrt(max(gain, 0.0) / energy)) if energy > 0 else 0.0


def _dot(a, b):
    return float(np.vdot(a[0], b[0]) + np.vdot(a[1], b[1]))


def leap(model, ridges, state, swept):
    """Go from the last point to where F is least along the conjugate direction, if that is below where the sweep led."""
    step = tuple(x - s for x, s in zip(state.point, swept.fit, strict=True))
    direction = tuple(-t for t in step)
    if state.step:
        beta = max(0.0, (_dot(step, step) - _dot(step, state.step)) / _dot(state.step, state.step))
        direction = tuple(d + beta * p for d, p in zip(direction, state.direction, strict=True))
    polynomial = along(model, ridges, state.point, direction)
    turns = np.roots(np.polyder(polynomial))
    turns = turns.real[np.abs(turns.imag) <= 1e-9 * np.abs(turns)]
    values = np.polyval(polynomial, turns)
    if not len(values) or not values.min() <= swept.objective + ROUNDING * np.abs(polynomial).max():
        return swept._replace(step=(), direction=())
    by = float(turns[values.argmin()])
    point = tuple(x + by * p for x, p in zip(state.point, direction, strict=True))
    return swept._replace(point=point, step=step, direction=direction)


def line_block(first, indptr, indices, values, weights, offsets, table, start, direction):
    """Sum squares and products of the residuals of each row of a shard and of their first and second changes along a line."""
    here = slice(first, first + len(indptr) - 1)
    out = np.empty((len(indptr) - 1, 6))
    line_rows(indptr, indices, values, weights, offsets, table, start[here], direction[here], out)
    return (out,)


def along(model, ridges, point, direction):
    """Give F(x + a·p) as a polynomial in a, the highest power first."""
    (users, items), (move, drift) = point, direction
    biased, swap = model.biases, len(items) > len(users)
    # The larger side is gone through row by row, since the cache holds more of the smaller one.
    blocks = model.items if swap else model.users
    (own, own_move), (other, other_move) = ((items, drift), (users, move))[:: 1 if swap else -1]
    changes = columns_of(other_move, biased)
    if biased:
        changes[:, -1] = 0.0  # the column of ones stays as it is
    table = np.hstack([columns_of(other, biased), changes])
    offsets = np.column_stack([offsets_of(other, biased, model.mean), offsets_of(other_move, biased, 0.0)])
    ee, el, ec, ll, lc, cc = blocks.map(line_block, offsets, table, own, own_move)[0].sum(axis=0)
    flat, tilt, bend = (
        sum(ridge @ np.einsum("ij,ij->i", a, b) for ridge, a, b in zip(ridges, left, right, strict=True))
        for left, right in ((point, point), (point, direction), (direction, direction))
    )
    polynomial = np.array([0.5 * cc, lc, 0.5 * (ll + bend) - ec, tilt - el, 0.5 * (ee + flat) + model.constant])
    if not model.implicit:
        return polynomial
    sides = []
    for x, p in ((users, move), (items, drift)):
        cross = x.T @ p
        sides.append((p.T @ p, cross + cross.T, x.T @ x))
    for i, left in enumerate(sides[0]):
        for j, right in enumerate(sides[1]):
            polynomial[i + j] += 0.5 * (left * right).sum()
    return polynomial


def determined(model, users, items, noise):
    """Count the parameters that the ratings determine, each side given the other."""
    ridge_users, ridge_items = noise * model.precision_users, noise * model.precision_items
    (first,) = model.users.map(determined_block, columns_of(items, model.biases), ridge_users)
    (second,) = model.items.map(determined_block, columns_of(users, model.biases), ridge_items)
    return first.sum() + second.sum()


def noise_of(squares, gamma, noise, unknown):
    """Estimate the noise variance from the squared residuals, where gamma of the ratings are used up."""
    return max(float((squares + gamma * noise) / unknown.weight), unknown.floor)


def _with_noise(model, state, squares, distance, tol, unknown):
    """Move the noise variance once the factors are at rest; while it moves, the fit has not converged."""
    change, *past = state.unrest
    if distance > max(tol, REST * change):
        return state, np.inf
    wanted = noise_of(squares, determined(model, *state.fit, state.noise), state.noise, unknown)
    here, by = float(np.log(state.noise)), float(np.log(wanted / state.noise))
    if abs(by) <= SETTLED:
        return state._replace(unrest=(abs(by), *past)), distance
    step = by
    if past and here != past[0]:
        slope = (by - past[1]) / (here - past[0])
        step = float(np.clip(-by / slope, -LONGEST * abs(by), LONGEST * abs(by))) if slope < 0 else by
    afresh = state._replace(point=state.fit, objective=np.inf, step=(), direction=())
    return afresh._replace(noise=float(np.exp(here + step)), unrest=(abs(by), here, by)), np.inf
