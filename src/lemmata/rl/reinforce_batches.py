"""Batches of episodes for REINFORCE: run the policy, then move it, and its baseline, by what came of it."""

from typing import NamedTuple

import numpy as np

from lemmata.core.xoshiro import next_uniform
from lemmata.neural_network.layers import forward, unit_rows
from lemmata.optimize.rules import apply_rule
from lemmata.rl.environment import SEEDS
from lemmata.rl.network_learner import UNMOVED, new_room
from lemmata.rl.policy_gradient import add_errors, add_scores, draw_action, returns_to_go

ROOM = 1024  # steps of a batch to begin with; there is more when it is needed
VALUE_STEPS = 5  # that the baseline takes for each of the policy: it is always behind


class Memory(NamedTuple):
    """What is learned, and what it takes."""

    parameters: np.ndarray
    moments1: np.ndarray
    moments2: np.ndarray
    value: np.ndarray  # of the baseline's network; of no length without one
    value_moments1: np.ndarray
    value_moments2: np.ndarray
    mean: np.ndarray  # (2,), of all returns from all steps so far, and how many they are
    stream: np.ndarray  # (4,), of the agent's random numbers
    steps: np.ndarray  # (2,), of the rule, for policy and baseline


class Batch(NamedTuple):
    """Some whole episodes: rows, actions, rewards, which steps were the last, and what is seen after each of those."""

    X: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    closed: np.ndarray
    after: np.ndarray  # (episodes, columns)
    ended: np.ndarray  # (episodes,), or they were cut


class Settings(NamedTuple):
    """What does not change during a fit."""

    policy: tuple  # shape of the network
    baseline: tuple  # shape of the baseline's, or none
    subtract_mean: bool
    normalize: bool
    entropy: float
    gamma: float
    rule: object
    batch_episodes: int
    horizon: int


def collect(world, settings, room, memory, stream, most):
    """Run the policy for the episodes of a batch; return it, or None if that many steps are not enough, and the steps taken."""
    X, actions, rewards = np.empty((ROOM, world.n_features)), [], []
    closed, after, ended, n = [], [], [], 0
    while len(ended) < settings.batch_episodes:
        seen = world.reset(int(next_uniform(stream) * SEEDS))
        first, over = n, False
        while not over:
            if n == most:
                return None, n
            if n == len(X):
                X = np.concatenate([X, np.empty_like(X)])
            world.write(seen, X[n])
            action = draw_action(settings.policy, memory.parameters, room, X[n], memory.stream)
            seen, reward, last, cut = world.step(action)
            actions.append(action)
            rewards.append(reward)
            n += 1
            over = last or cut or n - first == settings.horizon
            closed.append(over)
        row = np.empty(world.n_features)
        world.write(seen, row)
        after.append(row)
        ended.append(last)
    return Batch(X[:n], np.array(actions), np.array(rewards), np.array(closed), np.array(after), np.array(ended)), n


def improve(settings, memory, batch):
    """Move the policy, then the baseline, by what a batch says; the arrays of the memory change in place."""
    n, has_value = len(batch.rewards), len(memory.value) > 0
    rows = np.concatenate([batch.X, batch.after])
    base = values_of(settings.baseline, memory.value, rows) if has_value else np.full(len(rows), memory.mean[0])
    follows, found = np.zeros(n), np.empty(n)
    follows[batch.closed] = np.where(batch.ended, 0.0, base[n:])
    returns_to_go(batch.rewards, batch.closed, follows, settings.gamma, found)
    weights = found - base[:n] if has_value or settings.subtract_mean else found.copy()
    if settings.normalize:
        weights = (weights - weights.mean()) / max(weights.std(), np.finfo(float).tiny)
    shape, gradient = settings.policy, np.empty_like(memory.parameters)
    room = filled(shape, batch.X)
    add_scores(shape, memory.parameters, room, n, batch.actions, weights, settings.entropy, gradient, UNMOVED)
    memory.steps[0] += 1
    descend(settings.rule, memory[:3], -gradient / len(batch.ended), memory.steps[0])
    memory.mean[:] = (memory.mean[0] * memory.mean[1] + found.sum()) / (memory.mean[1] + n), memory.mean[1] + n
    if has_value:
        room, gradient = filled(settings.baseline, batch.X), np.empty_like(memory.value)
        for _ in range(VALUE_STEPS):
            room.values[: batch.X.size] = batch.X.ravel()
            add_errors(settings.baseline, memory.value, room, n, found, gradient, UNMOVED)
            memory.steps[1] += 1
            descend(settings.rule, memory[3:6], gradient / n, memory.steps[1])


def descend(rule, moving, gradient, t):
    """Take step t of a rule against a gradient; parameters and moments change in place."""
    apply_rule(rule.code, moving[0], gradient, *moving[1:], t, rule.schedule(t), *rule.constants)


def filled(shape, X):
    """Return room for rows, with the rows in it."""
    room = new_room(shape, len(X))
    room.values[: X.size] = X.ravel()
    return room


def values_of(shape, parameters, X):
    """Return the single output of a network for each row."""
    room = filled(shape, X)
    forward(shape, parameters, room, len(X), 0.0, UNMOVED)
    return unit_rows(shape, room.values, room.capacity, len(shape.codes), len(X)).copy()


def try_batches(world, settings, room, memory, stream, least, most):
    """Learn from whole batches until there are enough steps; the last one is lost if the steps do not suffice for it."""
    returns, lengths, taken = [], [], 0
    while taken < least:
        batch, n = collect(world, settings, room, memory, stream, most - taken)
        taken += n
        if batch is not None:
            improve(settings, memory, batch)
            ends = np.flatnonzero(batch.closed) + 1
            returns += np.add.reduceat(batch.rewards, np.append(0, ends[:-1])).tolist()
            lengths += np.diff(ends, prepend=0).tolist()
    return np.array(returns), np.array(lengths, dtype=np.int64), taken
