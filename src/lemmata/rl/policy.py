"""Policies: what to do in each state, one action for certain or each with a probability; and the chain that one makes."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from lemmata.core.kernel import kernel
from lemmata.rl.transitions import SUMS, numbers


class Chain(NamedTuple):
    """What follows from a policy: the moves after which the episode goes on, and the rewards."""

    rows: np.ndarray | csr_array  # (states, states); rows sum to less than one where the episode may end
    rewards: np.ndarray  # (states,)
    gamma: float

    def apply(self, value):
        """Apply T_π: what the policy is worth if its next states are worth so much."""
        return self.rewards + self.gamma * (self.rows @ value)

    @property
    def dense(self):
        """The rows as an array."""
        return self.rows.toarray() if issparse(self.rows) else self.rows


@kernel
def pick_rows(indptr, successors, probabilities, policy, n_actions):
    """Copy the row of one action of each state."""
    n = len(policy)
    starts = np.zeros(n + 1, np.int64)
    for s in range(n):
        row = s * n_actions + policy[s]
        starts[s + 1] = starts[s] + indptr[row + 1] - indptr[row]
    chosen, chances = np.empty(starts[n], np.int32), np.empty(starts[n])
    for s in range(n):
        t = starts[s]
        row = s * n_actions + policy[s]
        for k in range(indptr[row], indptr[row + 1]):
            chosen[t], chances[t] = successors[k], probabilities[k]
            t += 1
    return starts, chosen, chances


def read_policy(policy, n_states, n_actions):
    """Validate a policy; give an array of actions, or one of probabilities (states, actions).

    Examples
    --------
    >>> read_policy([1, 0], 2, 2), read_policy([[0.5, 0.5], [1, 0]], 2, 2)
    (array([1, 0]), array([[0.5, 0.5],
           [1. , 0. ]]))
    """
    try:
        policy = np.asarray(policy)
    except ValueError as error:
        raise ValueError(
            f"The rows of a policy have {n_actions} probabilities each, and these are not equally long."
        ) from error
    if policy.shape == (n_states,):
        actions = policy.astype(np.int64) if policy.dtype.kind in "biuf" and np.isfinite(policy).all() else None
        if actions is None or (actions != policy).any() or actions.min() < 0 or actions.max() >= n_actions:
            raise ValueError(f"A policy of one action for each state holds whole numbers from 0 to {n_actions - 1}.")
        return actions
    if policy.shape != (n_states, n_actions):
        raise ValueError(
            f"A policy has an action for each of {n_states} states, or a row of probabilities of {n_actions} actions for each;"
            f" got the shape {tuple(policy.shape)}."
        )
    policy = np.ascontiguousarray(numbers("A policy", policy))
    wrong = ~((policy >= 0).all(axis=1) & (np.abs(policy.sum(axis=1) - 1) <= SUMS))
    if wrong.any():
        raise ValueError(
            f"Each row of a policy holds numbers of at least 0 that sum to 1; that of state {int(wrong.argmax())} does not."
        )
    return policy / policy.sum(axis=1, keepdims=True)


def mean_under(policy, each):
    """Average a table of states × actions over the actions of a policy."""
    return each[np.arange(len(policy)), policy] if policy.ndim == 1 else np.einsum("sa,sa->s", policy, each)


def chosen(policy, n_actions):
    """Tell which actions a policy may take in each state, (states, actions)."""
    return policy > 0 if policy.ndim == 2 else policy[:, None] == np.arange(n_actions)


def rows_of(mdp, moves, policy):
    """Give the rows of a policy: dense from a dense table, else sparse from the given moves."""
    S, A = mdp.n_states, mdp.n_actions
    if mdp.table is not None:
        table = mdp.table.reshape(S, A, S)
        return table[np.arange(S), policy] if policy.ndim == 1 else np.einsum("sa,sat->st", policy, table)
    indptr, successors, probabilities = moves
    if policy.ndim == 1:
        indptr, successors, probabilities = pick_rows(indptr, successors, probabilities, policy, A)
        rows = csr_array((probabilities, successors, indptr), shape=(S, S))
    else:
        weights = csr_array((policy.ravel(), np.arange(S * A), np.arange(S + 1) * A), shape=(S, S * A))
        rows = weights @ csr_array((probabilities, successors, indptr), shape=(S * A, S))
    rows.sum_duplicates()
    return rows


def chain_of(mdp, policy):
    """Make the chain of a policy."""
    rows = rows_of(mdp, None if mdp.table is not None else mdp.continuing, policy)
    if mdp.table is not None:
        rows[mdp.terminal] = 0.0
        rows[:, mdp.silent] = 0.0
    return Chain(rows, mean_under(policy, mdp.rewards), mdp.gamma)
