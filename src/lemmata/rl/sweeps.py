"""Passes over all states: Bellman's operator with its extremes, the same for one policy, and sweeps in place.

A pass reads the values of before and writes new ones (Jacobi), so that the extremes of TV − V bound what is left; a sweep
works with what it has just written (Gauss-Seidel), which carries news along many states at once, and alternates its direction.
On threads, a range of states sees the others as they were before the sweep: the same bits for any number of threads. Actions
that were proved worse than the best are not looked at again.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.rl.policy import mean_under, pick_rows
from lemmata.rl.ranges import spread

PARTS = 4  # ranges of a sweep in place, on as many threads: news needs a sweep to go from one to the next
STUCK = 1e-12  # a state left with less than this chance is not solved for


@kernel
def dense_pass(table, rewards, terminal, gamma, active, value, low, high, q, best, policy):
    """Apply Bellman's operator to a range of states of a dense table; return the extremes of its change."""
    n_actions = rewards.shape[1]
    least, most = np.inf, -np.inf
    for s in range(low, high):
        top, chosen = -np.inf, 0
        for a in range(n_actions):
            if active[s, a]:
                total = 0.0
                if not terminal[s]:
                    row = table[s * n_actions + a]
                    for j in range(len(row)):
                        total += row[j] * value[j]
                q[s, a] = rewards[s, a] + gamma * total
                if q[s, a] > top:
                    top, chosen = q[s, a], a
        best[s], policy[s] = top, chosen
        least, most = min(least, top - value[s]), max(most, top - value[s])
    return least, most


@kernel
def sparse_pass(indptr, successors, probabilities, rewards, gamma, active, value, low, high, q, best, policy):
    """Apply Bellman's operator to a range of states; return the extremes of its change."""
    n_actions = rewards.shape[1]
    least, most = np.inf, -np.inf
    for s in range(low, high):
        top, chosen = -np.inf, 0
        for a in range(n_actions):
            if active[s, a]:
                total = 0.0
                for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                    total += probabilities[k] * value[successors[k]]
                q[s, a] = rewards[s, a] + gamma * total
                if q[s, a] > top:
                    top, chosen = q[s, a], a
        best[s], policy[s] = top, chosen
        least, most = min(least, top - value[s]), max(most, top - value[s])
    return least, most


@kernel
def strike(q, best, margin, active, low, high):
    """Strike out the actions of a range of states whose values are below the best by more than a margin; count the others."""
    left = 0
    for s in range(low, high):
        for a in range(q.shape[1]):
            if active[s, a]:
                active[s, a] = best[s] - q[s, a] <= margin
                left += active[s, a]
    return left


@kernel
def dense_sweep(table, rewards, terminal, gamma, active, value, low, high, out, backwards):
    """Improve a range of states in place, from a dense table."""
    n_actions = rewards.shape[1]
    mixed = value.copy()
    for i in range(high - low):
        s = high - 1 - i if backwards else low + i
        top = -np.inf
        for a in range(n_actions):
            if active[s, a]:
                total = 0.0
                if not terminal[s]:
                    row = table[s * n_actions + a]
                    for j in range(len(row)):
                        total += row[j] * mixed[j]
                top = max(top, rewards[s, a] + gamma * total)
        mixed[s] = out[s] = top


@kernel
def sparse_sweep(indptr, successors, probabilities, rewards, gamma, active, value, low, high, out, backwards):
    """Improve a range of states in place; a move to the same state is solved for."""
    n_actions = rewards.shape[1]
    for i in range(high - low):
        s = high - 1 - i if backwards else low + i
        top = -np.inf
        for a in range(n_actions):
            if active[s, a]:
                total, stay = 0.0, 0.0
                for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                    j = successors[k]
                    if j == s:
                        stay += probabilities[k]
                    else:
                        total += probabilities[k] * (out[j] if low <= j < high else value[j])
                leave = 1.0 - gamma * stay
                if leave > STUCK:
                    top = max(top, (rewards[s, a] + gamma * total) / leave)
                else:
                    top = max(top, rewards[s, a] + gamma * (total + stay * out[s]))
        out[s] = top


@kernel
def dense_policy_pass(table, rewards, terminal, gamma, policy, value, low, high, out):
    """Apply the operator of a policy to a range of states of a dense table; return the extremes of its change."""
    n_actions = rewards.shape[1]
    least, most = np.inf, -np.inf
    for s in range(low, high):
        total = 0.0
        if not terminal[s]:
            row = table[s * n_actions + policy[s]]
            for j in range(len(row)):
                total += row[j] * value[j]
        out[s] = rewards[s, policy[s]] + gamma * total
        least, most = min(least, out[s] - value[s]), max(most, out[s] - value[s])
    return least, most


@kernel
def rows_pass(indptr, successors, probabilities, rewards, gamma, value, low, high, out):
    """Apply the operator of a policy, given by its rows, to a range of states; return the extremes of its change."""
    least, most = np.inf, -np.inf
    for s in range(low, high):
        total = 0.0
        for k in range(indptr[s], indptr[s + 1]):
            total += probabilities[k] * value[successors[k]]
        out[s] = rewards[s] + gamma * total
        least, most = min(least, out[s] - value[s]), max(most, out[s] - value[s])
    return least, most


@kernel
def rows_sweep(indptr, successors, probabilities, rewards, gamma, value, low, high, out, backwards):
    """Put the value of a policy right in one state of a range after the other; return the extremes of the change."""
    least, most = np.inf, -np.inf
    for i in range(high - low):
        s = high - 1 - i if backwards else low + i
        total, stay = 0.0, 0.0
        for k in range(indptr[s], indptr[s + 1]):
            j = successors[k]
            if j == s:
                stay += probabilities[k]
            else:
                total += probabilities[k] * (out[j] if low <= j < high else value[j])
        leave = 1.0 - gamma * stay
        new = (rewards[s] + gamma * total) / leave if leave > STUCK else rewards[s] + gamma * (total + stay * out[s])
        least, most = min(least, new - value[s]), max(most, new - value[s])
        out[s] = new
    return least, most


def extremes(results):
    """Join the extremes of ranges."""
    return min(low for low, _ in results), max(high for _, high in results)


class Passes:
    """Passes over one model, with room for what they write."""

    def __init__(self, mdp):
        self.mdp, self.n = mdp, mdp.n_states
        self.dense = mdp.table is not None
        self.moves = (mdp.table, mdp.rewards, mdp.terminal) if self.dense else (*mdp.continuing, mdp.rewards)
        self.active = np.ones((mdp.n_states, mdp.n_actions), dtype=np.bool_)
        self.left = self.active.size
        self.q = np.empty((mdp.n_states, mdp.n_actions))

    @property
    def size(self):
        """Numbers that a pass reads."""
        read = self.mdp.table.size if self.dense else len(self.moves[1])
        return read * self.left // self.active.size

    @property
    def settled(self):
        """Whether one action is left in each state."""
        return self.left == self.n

    def bellman(self, value):
        """Apply Bellman's operator; return TV, the greedy policy and the extremes of TV − V."""
        best, policy = np.empty(self.n), np.empty(self.n, np.int64)
        inputs, outputs = (*self.moves, self.mdp.gamma, self.active, value), (self.q, best, policy)
        run = dense_pass if self.dense else sparse_pass
        results = spread(lambda low, high: run(*inputs, low, high, *outputs), self.n, self.size)
        return best, policy, *extremes(results)

    def strike(self, best, margin):
        """Leave out from now on the actions that the last pass found to be worse than the best by more than a margin."""
        if margin < np.inf:
            work = lambda low, high: strike(self.q, best, margin, self.active, low, high)  # noqa: E731
            self.left = sum(spread(work, self.n, self.active.size))

    def sweep(self, value, backwards):
        """Improve all states in place."""
        out = value.copy()
        inputs = (*self.moves, self.mdp.gamma, self.active, value)
        run = dense_sweep if self.dense else sparse_sweep
        spread(lambda low, high: run(*inputs, low, high, out, backwards), self.n, self.size, PARTS)
        return out

    def policy_rows(self, policy):
        """Prepare passes of one policy."""
        if self.dense:
            return (*self.moves, self.mdp.gamma, policy)
        return (*pick_rows(*self.moves[:3], policy, self.mdp.n_actions), mean_under(policy, self.mdp.rewards), self.mdp.gamma)

    def policy_pass(self, rows, value):
        """Apply the operator of one policy; return T_πV and the extremes of T_πV − V."""
        out = np.empty(self.n)
        run, size = (dense_policy_pass, self.n * self.n) if self.dense else (rows_pass, len(rows[1]))
        return out, *extremes(spread(lambda low, high: run(*rows, value, low, high, out), self.n, size))

    def policy_sweep(self, rows, value, backwards):
        """Put the value of one policy right in place; sparse rows only. Return it and the extremes of its change."""
        out = value.copy()
        work = lambda low, high: rows_sweep(*rows, value, low, high, out, backwards)  # noqa: E731
        return out, *extremes(spread(work, self.n, len(rows[1]), PARTS))
