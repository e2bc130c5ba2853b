"""Policies: what to do in each state, one action for certain or each with a probability."""

import numpy as np
from scipy.sparse import csr_array

from lemmata.rl.transitions import SUMS


def read_policy(policy, n_states, n_actions):
    """Validate a policy; give an array of actions, or one of probabilities (states, actions).

    Examples
    --------
    >>> read_policy([1, 0], 2, 2), read_policy([[0.5, 0.5], [1, 0]], 2, 2)
    (array([1, 0]), array([[0.5, 0.5],
           [1. , 0. ]]))
    """
    policy = np.asarray(policy)
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
    policy = np.ascontiguousarray(policy, dtype=np.float64)
    wrong = ~((policy >= 0).all(axis=1) & (np.abs(policy.sum(axis=1) - 1) <= SUMS))
    if wrong.any():
        raise ValueError(
            f"Each row of a policy holds numbers of at least 0 that sum to 1; that of state {int(wrong.argmax())} does not."
        )
    return policy / policy.sum(axis=1, keepdims=True)


def weights_of(policy, n_actions):
    """Give a policy as a sparse matrix that picks rows s·A + a, one row for each state."""
    S = len(policy)
    if policy.ndim == 1:
        return csr_array((np.ones(S), np.arange(S) * n_actions + policy, np.arange(S + 1)), shape=(S, S * n_actions))
    where = np.arange(S * n_actions)
    weights = csr_array((policy.ravel(), where, np.arange(S + 1) * n_actions), shape=(S, S * n_actions))
    weights.eliminate_zeros()
    return weights


def mean_under(policy, each):
    """Average a table of states × actions over the actions of a policy."""
    return each[np.arange(len(policy)), policy] if policy.ndim == 1 else np.einsum("sa,sa->s", policy, each)
