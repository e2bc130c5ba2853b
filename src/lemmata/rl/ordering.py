"""An order of the states in which news travels far in one sweep: from the ends of episodes outwards.

States are numbered in breadth from those where an episode may end, against the direction of the moves. A sweep in that order
finds the successors that lead to the end already put right; the opposite one follows the moves. Neighbors in the order are
neighbors in memory, however the states were numbered before.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel


class View(NamedTuple):
    """What planning needs of a model, with its states in some order."""

    n_states: int
    n_actions: int
    gamma: float
    table: np.ndarray | None
    continuing: tuple | None
    rewards: np.ndarray
    terminal: np.ndarray
    silent: np.ndarray
    episodic: bool
    longest_row: int
    order: np.ndarray | None  # the state of the model at each place; None if it is its own

    def back(self, each):
        """Put what belongs to the places of this order to the states of the model."""
        if self.order is None:
            return each
        out = np.empty_like(each)
        out[self.order] = each
        return out

    def forth(self, each):
        """Put what belongs to the states of the model to the places of this order."""
        return each if self.order is None else each[self.order]


@kernel
def predecessors(indptr, successors, n_states, n_actions):
    """List, for each state, the states that lead to it."""
    start, last = np.zeros(n_states + 1, np.int64), np.full(n_states, -1, np.int64)
    for s in range(n_states):
        for k in range(indptr[s * n_actions], indptr[(s + 1) * n_actions]):
            j = successors[k]
            if last[j] != s:
                last[j] = s
                start[j + 1] += 1
    for j in range(n_states):
        start[j + 1] += start[j]
    place, source = start[:-1].copy(), np.empty(start[n_states], np.int32)
    last[:] = -1
    for s in range(n_states):
        for k in range(indptr[s * n_actions], indptr[(s + 1) * n_actions]):
            j = successors[k]
            if last[j] != s:
                last[j] = s
                source[place[j]] = s
                place[j] += 1
    return start, source


@kernel
def in_breadth(start, source, first):
    """Order states in breadth from the first ones; those that are not reached come last."""
    n = len(first)
    order, tail = np.empty(n, np.int64), 0
    seen = first.copy()
    for s in range(n):
        if seen[s]:
            order[tail] = s
            tail += 1
    head = 0
    while head < n:
        if head == tail:
            for s in range(n):
                if not seen[s]:
                    order[tail], seen[s] = s, True
                    tail += 1
        j = order[head]
        head += 1
        for k in range(start[j], start[j + 1]):
            if not seen[source[k]]:
                order[tail], seen[source[k]] = source[k], True
                tail += 1
    return order


@kernel
def reordered(indptr, successors, probabilities, order, place, n_actions):
    """Copy all moves with their states renumbered."""
    n = len(order)
    starts, t = np.zeros(n * n_actions + 1, np.int64), 0
    moved, chances = np.empty_like(successors), np.empty_like(probabilities)
    for i in range(n):
        for a in range(n_actions):
            row = order[i] * n_actions + a
            for k in range(indptr[row], indptr[row + 1]):
                moved[t], chances[t] = place[successors[k]], probabilities[k]
                t += 1
            starts[i * n_actions + a + 1] = t
    return starts, moved, chances


def view_of(mdp, sparse=False):
    """Look at a model in its own order; with its moves in sparse form in any case if these are asked for."""
    parts = (
        mdp.gamma,
        mdp.table,
        mdp.continuing if sparse or mdp.table is None else None,
        mdp.rewards,
        mdp.terminal,
        mdp.silent,
        mdp.episodic,
        mdp.longest_row,
    )
    return View(mdp.n_states, mdp.n_actions, *parts, None)


def from_the_ends(mdp):
    """Look at a sparse model with its states in breadth from where episodes end.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from lemmata.rl import MDP
    >>> line = MDP(csr_array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), [-1.0, -1.0, 0.0], 0.9, terminal=[2])
    >>> from_the_ends(line).order  # state 1 leads to the end, and state 0 to state 1
    array([1, 2, 0])
    """
    view, S, A = view_of(mdp), mdp.n_states, mdp.n_actions
    first = np.logical_or.reduceat(mdp.transition_ends, mdp.indptr[:-1:A])
    order = in_breadth(*predecessors(*view.continuing[:2], S, A), first)
    place = np.empty(S, dtype=np.int64)
    place[order] = np.arange(S)
    moves = reordered(*view.continuing, order, place, A)
    each = {name: getattr(view, name)[order] for name in ("rewards", "terminal", "silent")}
    return view._replace(continuing=moves, order=order, **each)
