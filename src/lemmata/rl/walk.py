"""Walks through a model under a policy: what happens, step by step, drawn from a seed."""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform, seed

CHUNK = 1 << 14  # steps walked between two looks at whether there are enough
MOST_STEPS = 100_000_000  # of so many episodes, unless another number is given


class Steps(NamedTuple):
    """Steps of episodes, one after the other.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> line = MDP([[[0.0, 1.0]], [[0.0, 1.0]]], [2.0, 0.0], 0.9, terminal=[1], initial=[1.0, 0.0])
    >>> steps = line.sample([0, 0], episodes=2, random_state=0)
    >>> steps.states, steps.rewards, steps.ends
    (array([0, 0], dtype=int32), array([2., 2.]), array([ True,  True]))
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    next_states: np.ndarray
    ends: np.ndarray  # whether the episode was over after the step


@kernel
def draw(weights, low, high, u):
    """Find the place in a stretch of weights whose share holds a uniform number; they sum to one."""
    last = low
    for k in range(low, high):
        if weights[k] > 0.0:
            last = k
            u -= weights[k]
            if u < 0.0:
                return k
    return last  # rounding


@kernel
def steps(
    indptr,
    successors,
    probabilities,
    ends,
    paid,
    rewards,
    policy,
    initial,
    bits,
    state,
    episodes,
    states,
    actions,
    gains,
    nexts,
    over,
):
    """Walk until the arrays are full or so many episodes are over; return the steps taken, the state and the episodes left.

    `policy` holds a row of probabilities for each state; `paid` is empty where rewards do not depend on the next state.
    """
    n_actions = rewards.shape[1]
    for t in range(len(states)):
        if episodes == 0:
            return t, state, episodes
        if state < 0:
            state = draw(initial, 0, len(initial), next_uniform(bits))
        a = draw(policy[state], 0, n_actions, next_uniform(bits))
        row = state * n_actions + a
        k = draw(probabilities, indptr[row], indptr[row + 1], next_uniform(bits))
        states[t], actions[t], nexts[t], over[t] = state, a, successors[k], ends[k]
        gains[t] = paid[k] if len(paid) else rewards[state, a]
        state = np.int64(successors[k])
        if ends[k]:
            state = np.int64(-1)
            episodes -= 1
    return len(states), state, episodes


def at_least_one(name, value):
    """Validate a number of steps, episodes or iterations."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def walk(mdp, policy, n_steps, episodes, rng):
    """Walk under a policy given as probabilities; start anew from the initial law whenever an episode is over."""
    if (n_steps is None) == (episodes is None):
        raise ValueError("Give the number of steps, n_steps, or of episodes, and not both.")
    at_least_one(*(("n_steps", n_steps) if episodes is None else ("episodes", episodes)))
    moves = mdp.transitions
    if episodes is not None and not moves.ends.any():
        raise ValueError("No move of this model ends an episode; ask for n_steps instead of episodes.")
    paid = np.empty(0) if moves.rewards is None else moves.rewards
    inputs = (
        moves.indptr,
        moves.successors,
        moves.probabilities,
        moves.ends,
        paid,
        mdp.rewards,
        policy,
        mdp.initial,
        seed(rng),
    )
    left, state, chunks, total = -1 if episodes is None else episodes, np.int64(-1), [], 0
    while left != 0 and (episodes is not None or total < n_steps):
        room = CHUNK if episodes is not None else min(CHUNK, n_steps - total)
        chunk = Steps(*(np.empty(room, kind) for kind in (np.int32, np.int32, np.float64, np.int32, np.bool_)))
        taken, state, left = steps(*inputs, state, left, *chunk)
        chunks.append([part[:taken] for part in chunk])
        total += taken
        if total > MOST_STEPS:
            raise ValueError(f"{left} of {episodes} episodes are not over after {MOST_STEPS:,} steps; ask for n_steps instead.")
    return Steps(*(np.concatenate(parts) for parts in zip(*chunks, strict=True)))
