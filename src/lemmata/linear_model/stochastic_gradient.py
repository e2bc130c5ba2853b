"""Stochastic gradient descent on P(w, b) = (1/S) Σ sᵢ ℓ(yᵢ(w·xᵢ + b)) + α/2 ‖w‖²: one step for each visit of a row.

A visit at time t moves by −η_t times the gradient of ℓ(y f) + α/2 ‖w‖², whose mean over the rows is the gradient of P; with
Σ η_t = ∞ and Σ η_t² < ∞ the weights converge to the minimum of a convex P [1]. The penalty shrinks w at every visit; kept as
a multiple of a vector, w = c·v, that is one multiplication, and the average of the weights over all visits is
Σ c_t v_t = C_T v_T − Σ C_{t−1} Δv_t with C_t = c_1 + … + c_t: nothing costs more than the numbers in the row [2].
How far P is from its minimum is bounded by the dual problem: for any a with Σ sᵢ aᵢ yᵢ = 0,
P* ≥ D(a) = −(1/S) Σ sᵢ ℓ*(−aᵢ) − ‖(1/S) Σ sᵢ aᵢ yᵢ xᵢ‖² / 2α (Fenchel); multiples of a = −ℓ′ at the margins, made to balance,
serve, and meet P* where P has a derivative and (w, b) is its minimizer.

[1] Robbins & Monro, Ann. Math. Stat. 22 (1951). [2] Bottou, Neural Networks: Tricks of the Trade (2012).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import TINY
from lemmata.core.kernel import kernel
from lemmata.linear_model.margin_losses import loss_derivative, loss_value
from lemmata.linear_model.stochastic import add, decision, dot, draw_order, fold, on_threads, shuffler, signs_of, stored, touch
from lemmata.optimize.rules import apply_rule
from lemmata.optimize.schedules import rate_at

SMALL = 1e-4  # factor that a vector takes in, before the sums of its average lose more than four digits
SHRUNK = np.append(2.0 ** -np.arange(17), 0.0)  # multiples of a dual point that are tried: any is one, and zero proves P* ≥ 0
STEEPEST = 1e12  # slope beyond which a loss is cut: a step must not leave the numbers
LARGEST = float(np.finfo(float).max)
PATIENCE = 5  # epochs without progress that end a problem


class Settings(NamedTuple):
    """What does not change during a fit."""

    positive: np.ndarray  # (K,), number of the class that each problem calls positive
    loss: int
    alpha: float
    eta: float  # the three constants of the schedule
    power: float
    decay: float
    intercept: float  # 1, or 0 without an intercept
    rule: int
    constants: tuple  # of the rule


class State(NamedTuple):
    """The planes of K binary problems after some epochs; the intercept is the last of d + 1 weights.

    Within an epoch the others are `scale` times what is stored, and `mass` times the stored less `lag` is still to be added to
    their sums; after it, 1, 0 and 0.
    """

    epoch: int
    weights: np.ndarray  # (K, d + 1)
    scale: np.ndarray  # (K,)
    sums: np.ndarray  # (K, d + 1): weights after each visit, added; (K, 0) without averaging
    mass: np.ndarray  # (K,)
    lag: np.ndarray  # (K, d), or (K, 0)
    moments1: np.ndarray  # (K, d + 1), or (K, 0) if the rule keeps none
    moments2: np.ndarray
    visits: float  # steps so far of the problems that are active
    seen: np.ndarray  # (K,), weight of the rows visited
    losses: np.ndarray  # (K,), mean over the last epoch of each problem of the loss before each visit; in an epoch, the sum
    best: np.ndarray  # (K,), the least of them
    idle: np.ndarray  # (K,), epochs since it fell by more than the tolerance
    active: np.ndarray  # (K,)


@kernel
def settle(state, k):
    """Take the factor of the weights of a problem in, and add to their sums what is still to be added."""
    for f in range(state.lag.shape[1]):
        state.sums[k, f] += state.mass[k] * state.weights[k, f] - state.lag[k, f]
        state.lag[k, f] = 0.0
    for f in range(state.weights.shape[1] - 1):
        state.weights[k, f] *= state.scale[k]
    state.scale[k], state.mass[k] = 1.0, 0.0


@kernel
def descend(values, indices, indptr, y, weight, starts, within, problems, settings, state):
    """Visit the rows of a block in the given order with plain steps; the arrays of the state change in place."""
    d, average, scale = state.weights.shape[1] - 1, state.sums.shape[1] > 0, state.scale
    eta, power, decay = settings.eta, settings.power, settings.decay
    read, visits = 0.0, state.visits
    for c in range(starts.shape[0]):
        read += touch(values, indices, starts[c], starts[c] + within.shape[0])
        for j in range(within.shape[0]):
            i = starts[c] + within[j]
            if i >= y.shape[0]:
                continue
            due = 1.0 if weight is None else weight[i]
            for q in range(problems.shape[0]):
                k, rest, t = problems[q], due, visits
                w, sign = state.weights[k], 1.0 if y[i] == settings.positive[k] else -1.0
                while rest > 0:
                    part = min(rest, 1.0)
                    rest -= part
                    t += 1
                    # the usual power without the general one, which is slow
                    rate = part * (eta / (1 + decay * (t - 1)) if power == 1 else rate_at(t, eta, power, decay))
                    margin = sign * (scale[k] * dot(values, indices, indptr, i, w) + w[d])
                    state.losses[k] += part * loss_value(settings.loss, margin)
                    slope = sign * max(loss_derivative(settings.loss, margin), -STEEPEST)
                    scale[k] *= max(1 - rate * settings.alpha, 0.0)
                    if scale[k] < SMALL:
                        settle(state, k)
                    if slope != 0:
                        change = -rate * slope / scale[k]
                        add(values, indices, indptr, i, change, w)
                        w[d] -= rate * slope * settings.intercept
                        if average:
                            add(values, indices, indptr, i, state.mass[k] * change, state.lag[k])
                    if average:
                        state.mass[k] += part * scale[k]
                        state.sums[k, d] += part * w[d]
            visits += np.ceil(due)
    return read


@kernel
def descend_by_rule(values, indices, indptr, y, weight, starts, within, problems, settings, state):
    """Visit the rows of a block in the given order with the steps of a rule, in all columns at each visit."""
    d = state.weights.shape[1] - 1
    beta1, beta2, epsilon, inside = settings.constants
    gradient, visits = np.empty(d + 1), state.visits
    for c in range(starts.shape[0]):
        for j in range(within.shape[0]):
            i = starts[c] + within[j]
            if i >= y.shape[0]:
                continue
            due = 1.0 if weight is None else weight[i]
            for q in range(problems.shape[0]):
                k, rest, t = problems[q], due, visits
                w, sign = state.weights[k], 1.0 if y[i] == settings.positive[k] else -1.0
                while rest > 0:
                    part = min(rest, 1.0)
                    rest -= part
                    t += 1
                    rate = part * rate_at(t, settings.eta, settings.power, settings.decay)
                    margin = sign * (dot(values, indices, indptr, i, w) + w[d])
                    state.losses[k] += part * loss_value(settings.loss, margin)
                    slope = sign * max(loss_derivative(settings.loss, margin), -STEEPEST)
                    for f in range(d):
                        gradient[f] = settings.alpha * w[f]
                    add(values, indices, indptr, i, slope, gradient)
                    gradient[d] = slope * settings.intercept
                    apply_rule(
                        settings.rule, w, gradient, state.moments1[k], state.moments2[k], t, rate, beta1, beta2, epsilon, inside
                    )
                    for f in range(state.sums.shape[1]):
                        state.sums[k, f] += part * w[f]
            visits += np.ceil(due)


def start(n_problems, n_columns, average, uses=(False, False)):
    """Return the state before the first visit; `uses` says which moments the rule keeps."""
    wide, none = (n_problems, n_columns + 1), (n_problems, 0)
    weights, sums, *moments = (np.zeros(wide if kept else none) for kept in (True, average, *uses))
    mass, seen, losses, idle = np.zeros((4, n_problems))
    scale, lag, best = np.ones(n_problems), np.zeros((n_problems, n_columns if average else 0)), np.full(n_problems, np.inf)
    active = np.ones(n_problems, dtype=bool)
    return State(0, weights, scale, sums, mass, lag, *moments, 0.0, seen, losses, best, idle, active)


def visit_block(X, y, weight, going, own, settings):
    """Visit the rows of a block, the binary problems on threads; return (state, generator)."""
    (state, rng), n, rows = going, X.shape[0], stored(X)
    order = draw_order(n, rows[0].size // n, rng)
    y, weight = np.asarray(y, dtype=np.int64), None if weight is None else np.asarray(weight, dtype=float)
    problems, kernel_of_rule = np.flatnonzero(state.active), descend_by_rule if settings.rule else descend

    def work(part):
        kernel_of_rule(*rows, y, weight, *order, part, settings, state)

    on_threads(work, problems, len(problems) * rows[0].size)
    visits, seen = (n, n) if weight is None else (np.ceil(weight).sum(), weight.sum())
    seen = state.seen + np.where(state.active, seen, 0.0)
    return (state._replace(visits=state.visits + float(visits), seen=seen), rng), own


def epoch(blocks, settings, seed, tol, state):
    """Visit all rows once; return (state, objective). A problem ends when its mean loss has not fallen for five epochs."""
    before = state
    state = state._replace(losses=np.where(state.active, 0.0, state.losses))
    (state, _), _ = fold(blocks, partial(visit_block, settings=settings), (state, shuffler(seed, state.epoch)))
    for k in np.flatnonzero(state.active):
        settle(state, k)
    if not (np.isfinite(state.weights).all() and np.isfinite(state.losses).all()):
        told = f"The steps left the numbers in epoch {state.epoch + 1}"
        raise ValueError(f"{told}; scale the columns, or take shorter steps by learning_rate and eta0.")
    losses = np.divide(state.losses, state.seen - before.seen, out=state.losses, where=state.active)
    falling = losses <= state.best - (tol or 0.0) * np.maximum(np.minimum(state.best, LARGEST), 1.0)
    idle = np.where(falling, 0.0, state.idle + 1)
    active = state.active & (idle < PATIENCE) if tol is not None else state.active
    objective = losses + settings.alpha / 2 * (state.weights[:, :-1] ** 2).sum(axis=1)
    best = np.minimum(state.best, losses)
    return state._replace(epoch=state.epoch + 1, losses=losses, best=best, idle=idle, active=active), float(objective.sum())


def loss_block(X, y, weight, positive, coef, intercept, loss):
    """Sum over a block: weights, losses, and dual weights aᵢ of the rows on each side, for each problem."""
    signs, weight = signs_of(y, positive), _weights(X, weight)
    margins = signs * decision(X, coef, intercept)
    pull = weight[:, None] * -loss.derivative(margins) * signs
    return weight.sum(), weight @ loss.value(margins), np.maximum(pull, 0.0).sum(axis=0), np.maximum(-pull, 0.0).sum(axis=0)


def dual_block(X, y, weight, positive, coef, intercept, loss, shares):
    """Sum over a block what the dual objective is made of: conjugates at each multiple, and rows by their dual weights."""
    signs, weight = signs_of(y, positive), _weights(X, weight)
    slopes = -loss.derivative(signs * decision(X, coef, intercept))
    slopes = slopes * np.where(slopes * signs > 0, *shares)
    conjugates = np.array([weight @ loss.conjugate(share * slopes) for share in SHRUNK])
    return conjugates, np.asarray(X.T @ (weight[:, None] * slopes * signs)).T


def _weights(X, weight):
    return np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=float)


def objective_at(blocks, settings, loss, coef, intercept):
    """Return P of each problem at given planes, and the sums that its lower bound begins with."""
    sums = blocks.reduce(loss_block, settings.positive, coef, intercept, loss)
    return sums[1] / sums[0] + settings.alpha / 2 * (coef.astype(float) ** 2).sum(axis=1), sums


def objective_bound(blocks, settings, loss, coef, intercept, sums):
    """Bound the minimum of P of each problem from below, the better the nearer given planes are to it."""
    total, _, up, down = sums
    shares = np.ones((2, len(coef)))
    if settings.intercept:  # the free intercept asks for balance: the heavier side gives way
        shares[0], shares[1] = np.minimum(1.0, down / np.maximum(up, TINY)), np.minimum(1.0, up / np.maximum(down, TINY))
    conjugates, rows = blocks.reduce(dual_block, settings.positive, coef, intercept, loss, shares)
    pull = ((rows / total) ** 2).sum(axis=1) / np.float64(2 * max(settings.alpha, TINY))
    return (-conjugates / total - SHRUNK[:, None] ** 2 * pull).max(axis=0)
