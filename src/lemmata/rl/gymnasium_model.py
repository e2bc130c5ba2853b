"""The model inside a Gymnasium environment, where there is one."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order


class GymnasiumModel(NamedTuple):
    """What `P` and `initial_state_distrib` of an environment say."""

    n_states: int
    n_actions: int
    indptr: np.ndarray
    successors: np.ndarray
    probabilities: np.ndarray
    rewards: np.ndarray
    ends: np.ndarray
    terminal: np.ndarray
    initial: np.ndarray | None


def read_gymnasium(env):
    """Read `P`: for each state and action a list of (probability, next state, reward, terminated); equal ones are merged."""
    inner = getattr(env, "unwrapped", env)
    P = getattr(inner, "P", None)
    if not hasattr(P, "__getitem__") or not len(P) or not hasattr(P[0], "__getitem__"):
        raise ValueError(
            f"{type(inner).__name__} has no table P of its transitions, so it can be learned in but not planned in; FrozenLake,"
            " CliffWalking and Taxi have one."
        )
    n_states, n_actions = len(P), len(P[0])
    indptr, moves = [0], []
    for s in range(n_states):
        if len(P[s]) != n_actions:
            raise ValueError(f"State {s} of {type(inner).__name__} has {len(P[s])} actions, and state 0 has {n_actions}.")
        for a in range(n_actions):
            merged = {}
            for p, successor, reward, terminated in P[s][a]:
                key = (int(successor), float(reward), bool(terminated))
                merged[key] = merged.get(key, 0.0) + float(p)
            moves += [(p, *key) for key, p in merged.items() if p > 0]
            indptr.append(len(moves))
    probabilities, successors, rewards, ends = (np.array(column) for column in zip(*moves, strict=True))
    initial = getattr(inner, "initial_state_distrib", None)
    indptr, successors = np.array(indptr, dtype=np.int64), successors.astype(np.int32)
    started = np.ones(n_states, dtype=bool) if initial is None else np.asarray(initial) > 0
    terminal = last_states(indptr, successors, ends, started)
    return GymnasiumModel(n_states, n_actions, indptr, successors, probabilities, rewards, ends, terminal, initial)


def last_states(indptr, successors, ends, started):
    """Find the states where episodes end and none goes on: entered by moves that end, and in no other way from the start."""
    n = len(started)
    rows = np.repeat(np.arange(len(indptr) - 1) * n // (len(indptr) - 1), np.diff(indptr))
    goes = ~ends
    first = np.flatnonzero(started)
    where = (np.concatenate([rows[goes], np.full(len(first), n)]), np.concatenate([successors[goes], first]))
    graph = csr_array((np.ones(len(where[0])), where), shape=(n + 1, n + 1))  # state n stands for the beginning
    visited = np.zeros(n + 1, dtype=bool)
    visited[breadth_first_order(graph, n, return_predecessors=False)] = True
    arrived = np.zeros(n, dtype=bool)
    arrived[successors[ends]] = True
    return arrived & ~visited[:n]
