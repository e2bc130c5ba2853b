"""Bellman's operators: the value of every action, of the best one, and of the one that a policy takes.

    Q(s, a) = r(s, a) + γ Σ_{s'} T(s, a, s') V(s'),    (TV)(s) = max_a Q(s, a),    (T_πV)(s) = Σ_a π(a | s) Q(s, a)

The sum is over moves after which the episode goes on. T and T_π are monotone, and γ-contractions in the largest difference.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.rl.ranges import spread


@kernel
def dense_q(table, rewards, terminal, gamma, value, low, high, out):
    """Find the values of all actions of a range of states, from a dense table."""
    n_actions = rewards.shape[1]
    for s in range(low, high):
        for a in range(n_actions):
            total = 0.0
            if not terminal[s]:
                row = table[s * n_actions + a]
                for j in range(len(row)):
                    total += row[j] * value[j]
            out[s, a] = rewards[s, a] + gamma * total


@kernel
def sparse_q(indptr, successors, probabilities, rewards, gamma, value, low, high, out):
    """Find the values of all actions of a range of states, from the moves that go on."""
    n_actions = rewards.shape[1]
    for s in range(low, high):
        for a in range(n_actions):
            total = 0.0
            for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                total += probabilities[k] * value[successors[k]]
            out[s, a] = rewards[s, a] + gamma * total


def q_values(mdp, value):
    """Find Q(s, a) for a value of each state."""
    out = np.empty((mdp.n_states, mdp.n_actions))
    if mdp.table is not None:
        inputs = (mdp.table, mdp.rewards, mdp.terminal, mdp.gamma, np.where(mdp.silent, 0.0, value))
        spread(lambda low, high: dense_q(*inputs, low, high, out), mdp.n_states, mdp.table.size)
    else:
        inputs = (*mdp.continuing, mdp.rewards, mdp.gamma, value)
        spread(lambda low, high: sparse_q(*inputs, low, high, out), mdp.n_states, len(mdp.continuing[1]))
    return out
