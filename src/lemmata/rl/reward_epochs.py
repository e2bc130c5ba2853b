"""Epochs of learning labels from rewards alone: each visit of a row draws a label, and sees what that label earns.

A weight of k is k visits in a row, each with a draw of its own; what is left below one is a visit that counts that much less.
Visits are taken some at a time, in the order of the table or one that is drawn, and each batch moves the parameters once. All
draws come from one stream that goes from block to block, so they are the same wherever the rows live.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.core.visits import visits_of
from lemmata.core.xoshiro import next_uniform
from lemmata.neural_network.layers import Shape, backward, conclude, forward, new_rooms, room_of, unit_rows
from lemmata.neural_network.passes import outputs_of, rows_of
from lemmata.neural_network.training import gather
from lemmata.optimize.rules import apply_rule
from lemmata.optimize.schedules import rate_at
from lemmata.rl.policy_gradient import drawn, slopes_of

RECENT = 100.0  # batches over which the running mean of the rewards looks back


class Lesson(NamedTuple):
    """What does not change during a fit; shapes and rules as plain tuples, so that they may travel."""

    shape: tuple
    rule: tuple  # number, constants, constants of the schedule
    batch_size: int
    baseline: bool
    entropy: float
    reward: np.ndarray  # (actions, labels)
    mean: np.ndarray
    scale: np.ndarray
    shuffle: bool
    seed: int


class State(NamedTuple):
    """A fit after some epochs."""

    epoch: int
    parameters: np.ndarray
    moments1: np.ndarray
    moments2: np.ndarray
    stream: np.ndarray  # (4,), of the draws
    running: np.ndarray  # (2,), mean reward of the last batches, and how many there were
    earned: np.ndarray  # (2,), rewards and weight of the visits of this epoch
    steps: int


@kernel
def visit(shape, rule, constants, schedule, batch, baseline, entropy, reward, rows, y, order, share, state, room, gradient):
    """Visit rows in an order, each with its share, and take a step after every batch; return the steps taken so far."""
    values, indices, indptr, mean, scale = rows
    last, n, steps = len(shape.codes), len(order), state.steps
    K = shape.sizes[last]
    eta, power, decay = schedule
    beta1, beta2, epsilon, inside = constants
    for start in range(0, n, batch):
        m = min(batch, n - start)
        gather(values, indices, indptr, mean, scale, order, start, start + m, room.values)
        forward(shape, state.parameters, room, m, 0.0, state.stream)
        conclude(shape, room, m)
        chances = unit_rows(shape, room.values, room.capacity, last, m)
        slopes = unit_rows(shape, room.deltas, room.capacity, last, m)
        earned, mass, base = 0.0, 0.0, state.running[0] if baseline else 0.0
        for i in range(m):
            w = share[start + i]
            a = drawn(chances[i * K : (i + 1) * K], next_uniform(state.stream))
            r = reward[a, y[order[start + i]]]
            earned += w * r
            mass += w
            slopes_of(chances, i * K, K, a, w * (r - base), w * entropy, slopes)
        for j in range(m * K):
            slopes[j] /= -mass  # rules go downhill
        backward(shape, state.parameters, room, m, 0.0, gradient, False)
        steps += 1
        rate = rate_at(steps, eta, power, decay)
        apply_rule(rule, state.parameters, gradient, state.moments1, state.moments2, steps, rate, beta1, beta2, epsilon, inside)
        state.running[1] = min(state.running[1] + 1, RECENT)
        state.running[0] += (earned / mass - state.running[0]) / state.running[1]
        state.earned[0] += earned
        state.earned[1] += mass
    return steps


def visits_in(order, weight):
    """Return rows in the order of their visits, and the share of each visit.

    Examples
    --------
    >>> visits_in(np.array([2, 0, 1]), np.array([2.0, 0.5, 1.0]))
    (array([2, 0, 0, 1]), array([1. , 1. , 1. , 0.5]))
    """
    if weight is None:
        return order, np.ones(len(order))
    places, share = visits_of(np.asarray(weight)[order])
    return order[places], share


def visit_block(X, y, weight, going, own, lesson):
    """Visit the rows of a block; return ((state, generator of orders), what the block keeps)."""
    (state, rng), n, shape = going, X.shape[0], Shape(*lesson.shape)
    order, share = visits_in(rng.permutation(n) if lesson.shuffle else np.arange(n), weight)
    room = room_of(new_rooms(shape, 1, min(lesson.batch_size, len(order)), np.float64), 0)
    options = (*lesson.rule, lesson.batch_size, lesson.baseline, lesson.entropy, lesson.reward)
    table, labels = rows_of(X, lesson.mean, lesson.scale, np.float64), np.asarray(y, dtype=np.int64)
    with serial_blas():
        steps = visit(shape, *options, table, labels, order, share, state, room, np.empty_like(state.parameters))
    return (state._replace(steps=steps), rng), own


def earned_block(X, y, weight, shape, parameters, mean, scale, reward):
    """Sum over a block: weights, and the expected rewards of the policy."""
    chances = outputs_of(Shape(*shape), parameters, rows_of(X, mean, scale, np.float64))
    w = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    return float(w.sum()), float(w @ (chances * reward.T[np.asarray(y, dtype=np.int64)]).sum(axis=1))
