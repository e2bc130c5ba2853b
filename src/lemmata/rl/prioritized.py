"""Prioritized sweeping: the states whose successors changed most are put right first.

A change of V(s) by Δ changes the value of a pair (s̄, a) that leads to s by at most γ T(s̄, a, s) |Δ|. A queue keeps, for every
state, the largest such change since it was last put right, and gives the state with the largest one. Where news spreads from a
few states, as from the end of a maze, most states are put right once or twice, whatever their number.

Moore & Atkeson, Machine Learning 13 (1993).
"""

import numpy as np

from lemmata.core.kernel import kernel

ROUNDS, LEAST = 8, 100_000  # updates between two passes over all states, for each state, and for few states: about 10 ms
DEEP = 0.1  # changes below this share of the residual to reach are left to the next pass


@kernel
def predecessors(indptr, successors, probabilities, n_states, n_actions):
    """List, for each state, the states that lead to it, and the largest chance with which they do."""
    start = np.zeros(n_states + 1, np.int64)
    last, best = np.full(n_states, -1, np.int64), np.zeros(n_states)
    for s in range(n_states):
        for k in range(indptr[s * n_actions], indptr[(s + 1) * n_actions]):
            j = successors[k]
            if last[j] != s:
                last[j] = s
                start[j + 1] += 1
    for j in range(n_states):
        start[j + 1] += start[j]
    place = start[:-1].copy()
    source, chance = np.empty(start[n_states], np.int32), np.zeros(start[n_states])
    last[:] = -1
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            for k in range(indptr[row], indptr[row + 1]):
                best[successors[k]] = 0.0
            for k in range(indptr[row], indptr[row + 1]):  # a row may name a state more than once
                best[successors[k]] += probabilities[k]
            for k in range(indptr[row], indptr[row + 1]):
                j = successors[k]
                if last[j] != s:
                    last[j] = s
                    source[place[j]] = s
                    place[j] += 1
                chance[place[j] - 1] = max(chance[place[j] - 1], best[j])
    return start, source, chance


@kernel
def lift(heap, where, priority, i):
    """Move an entry of the heap up to its place."""
    s = heap[i]
    while i > 0:
        up = (i - 1) // 2
        if priority[heap[up]] >= priority[s]:
            break
        heap[i] = heap[up]
        where[heap[i]] = i
        i = up
    heap[i] = s
    where[s] = i


@kernel
def sink(heap, where, priority, i):
    """Move an entry of the heap down to its place."""
    s, n = heap[i], len(heap)
    while 2 * i + 1 < n:
        down = 2 * i + 1
        if down + 1 < n and priority[heap[down + 1]] > priority[heap[down]]:
            down += 1
        if priority[heap[down]] <= priority[s]:
            break
        heap[i] = heap[down]
        where[heap[i]] = i
        i = down
    heap[i] = s
    where[s] = i


@kernel
def prioritize(indptr, successors, probabilities, rewards, gamma, start, source, chance, value, priority, enough, most):
    """Put states right in the order of their priorities, until these are small; return how many were."""
    n_states, n_actions = rewards.shape
    heap, where = np.arange(n_states), np.arange(n_states)
    for i in range(n_states // 2 - 1, -1, -1):
        sink(heap, where, priority, i)
    for done in range(most):
        s = heap[0]
        if priority[s] <= enough:
            return done
        top = -np.inf
        for a in range(n_actions):
            total = 0.0
            for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                total += probabilities[k] * value[successors[k]]
            top = max(top, rewards[s, a] + gamma * total)
        change = abs(top - value[s])
        value[s], priority[s] = top, 0.0
        sink(heap, where, priority, 0)
        for k in range(start[s], start[s + 1]):
            p, j = gamma * chance[k] * change, source[k]
            if p > priority[j]:
                priority[j] = p
                lift(heap, where, priority, where[j])
    return most


class Queue:
    """The queue of one model."""

    def __init__(self, mdp):
        self.moves, self.rewards, self.gamma = mdp.continuing, mdp.rewards, mdp.gamma
        self.back = predecessors(*self.moves, mdp.n_states, mdp.n_actions)

    def run(self, value, priority, goal):
        """Put states right until no change is expected to matter for a residual of `goal`."""
        value, most = value.copy(), max(ROUNDS * len(value), LEAST)
        prioritize(*self.moves, self.rewards, self.gamma, *self.back, value, priority, DEEP * goal, most)
        return value
