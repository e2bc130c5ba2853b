"""Markov decision processes: states, actions, where they lead, what they pay, and how much a later reward counts.

From state s, action a leads to s' with probability T(s, a, s') and pays R; a policy π chooses the actions, and is worth the
expected discounted return

    V^π(s) = E[ R₀ + γ R₁ + γ² R₂ + … | s₀ = s ],        |V^π| ≤ max|R| / (1 − γ) for γ < 1.

Episodes end in one of two ways. A `terminal` state is the last one: what it pays itself, R(s) or R(s, a), is paid once; what
would be paid for moving on is not. And a single move may end the episode, as Gymnasium's flag `terminated` says. Both come
down to moves that end: a terminal state that pays nothing is the end on arrival; one that pays is entered, and its one move,
to itself, ends. Nothing is added for what follows a move that ends.

Puterman, Markov Decision Processes (1994). Sutton & Barto, Reinforcement Learning (2018).
"""

from functools import cached_property
from numbers import Real

import numpy as np
from scipy.sparse import csr_array, issparse

from lemmata.core.random import generator
from lemmata.rl.bellman import q_values
from lemmata.rl.gymnasium_model import read_gymnasium
from lemmata.rl.policy import read_policy, rows_of
from lemmata.rl.transitions import SUMS, aligned, closed, continuing, numbers, read_rewards, read_table, with_unit_rows
from lemmata.rl.walk import walk


class MDP:
    """Describe a Markov decision process with finitely many states and actions.

    Parameters
    ----------
    T : Probabilities of the next states: an array (states, actions, states), or a sparse matrix of one row for each pair, row
        s·A + a, or a list of one sparse matrix (states, states) for each action. Sparse ones stay sparse.
    R : Rewards: (states,), (states, actions), or in the form of T for rewards that depend on the next state.
    gamma : Discount, in [0, 1]. At 1, returns are finite only where episodes end.
    terminal : States after which nothing follows, as a mask or as numbers. Their rows of T are not used.
    initial : Law of the first state, or its number. Default: uniform over the states that are not terminal.
    states, actions : Names, for messages and `named`.

    Attributes
    ----------
    n_states, n_actions, gamma : As given.
    rewards : Expected reward of each pair (states, actions).
    terminal, initial : Mask and law (states,).
    indptr, successors, probabilities : All moves as CSR arrays: those of the pair (s, a) are in row s·A + a.
    transition_rewards : What each of these moves pays, or None where `rewards` says it all.
    transition_ends : Whether the episode is over after the move.

    Examples
    --------
    >>> T = [[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]]  # in two states: stay, or go to the other one, mostly
    >>> mdp = MDP(T, [0.0, 1.0], 0.9, actions=["stay", "go"])
    >>> mdp
    MDP(2 states, 2 actions, gamma=0.9)
    >>> mdp.q([0.0, 1.0])
    array([[0.  , 0.72],
           [1.9 , 1.18]])
    >>> mdp.named(mdp.greedy([0.0, 1.0]))
    {0: 'go', 1: 'stay'}
    """

    def __init__(self, T, R, gamma, *, terminal=None, initial=None, states=None, actions=None):
        table = read_table(T)
        n_states = table.shape[1]
        self._describe(n_states, table.shape[0] // n_states, gamma, terminal, states, actions)
        table = with_unit_rows(table, np.repeat(self.terminal, self.n_actions), self._pair)
        self.rewards, self._moves = read_rewards(R, table, self.n_states, self.n_actions)
        if self._moves is not None:
            self.rewards[self.terminal] = 0.0
        self.initial = _law(initial, self.terminal)
        self.table = None if issparse(table) else table
        if self.table is None:
            self.transitions = self._closed(table)

    @classmethod
    def from_gymnasium(cls, env, gamma):
        """Read the model of a Gymnasium environment that has one: `env.unwrapped.P`, as the toy-text environments do.

        Moves keep their rewards and their flags `terminated`. States where episodes end, and from which none goes on, are
        terminal. A limit on the number of steps is no part of the model.

        Examples
        --------
        >>> import gymnasium
        >>> MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), 0.99)
        MDP(16 states, 4 actions, gamma=0.99, 5 terminal)
        """
        found = read_gymnasium(env)
        mdp = cls.__new__(cls)
        mdp._describe(found.n_states, found.n_actions, gamma, found.terminal, None, None)
        shape = (found.n_states * found.n_actions, found.n_states)
        table = csr_array((found.probabilities, found.successors, found.indptr), shape=shape)
        table = with_unit_rows(table, np.repeat(mdp.terminal, mdp.n_actions), mdp._pair)
        rows = np.repeat(np.arange(shape[0]), np.diff(found.indptr))
        mdp.rewards = np.bincount(rows, weights=table.data * found.rewards, minlength=shape[0]).reshape(mdp.n_states, -1)
        mdp.rewards[mdp.terminal] = 0.0
        mdp.initial = _law(found.initial, mdp.terminal)
        mdp.table = mdp._moves = None
        mdp.transitions = closed(table, found.rewards, mdp.rewards, mdp.terminal, found.ends)
        return mdp

    def _describe(self, n_states, n_actions, gamma, terminal, states, actions):
        self.n_states, self.n_actions = n_states, n_actions
        if not isinstance(gamma, Real) or not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be a number from 0 to 1, got {gamma!r}.")
        self.gamma = float(gamma)
        for what, names, n in (("states", states, n_states), ("actions", actions, n_actions)):
            if names is not None and (not np.iterable(names) or len(names) != n):
                raise ValueError(f"{what} must name all {n} of them in a list; got {names!r}.")
        self.states = None if states is None else list(states)
        self.actions = None if actions is None else list(actions)
        self.terminal = _mask(terminal, n_states)

    def _closed(self, table):
        paid = None if self._moves is None else aligned(table, self._moves)
        return closed(table, paid, self.rewards, self.terminal)

    def _pair(self, row):
        """Name the state and action of a row, for messages."""
        s, a = divmod(row, self.n_actions)
        s = s if self.states is None else repr(self.states[s])
        a = a if self.actions is None else repr(self.actions[a])
        return f"state {s}, action {a}"

    def __repr__(self):
        terminal = f", {int(self.terminal.sum())} terminal" if self.terminal.any() else ""
        return f"MDP({self.n_states} states, {self.n_actions} actions, gamma={self.gamma:g}{terminal})"

    @cached_property
    def transitions(self):
        """All moves in CSR form; made from a dense table when first asked for."""
        return self._closed(csr_array(self.table))

    @cached_property
    def continuing(self):
        """The moves after which the episode goes on: (indptr, successors, probabilities)."""
        return continuing(self.transitions)

    @cached_property
    def silent(self):
        """The terminal states that pay nothing."""
        return self.terminal & ~self.rewards.any(axis=1)

    @cached_property
    def episodic(self):
        """Whether any episode can end."""
        return bool(self.terminal.any() if self.table is not None else self.transitions.ends.any())

    @cached_property
    def longest_row(self):
        """The largest number of next states of a pair."""
        return self.n_states if self.table is not None else int(np.diff(self.indptr).max())

    indptr = property(lambda self: self.transitions.indptr)
    successors = property(lambda self: self.transitions.successors)
    probabilities = property(lambda self: self.transitions.probabilities)
    transition_rewards = property(lambda self: self.transitions.rewards)
    transition_ends = property(lambda self: self.transitions.ends)

    def q(self, value):
        """Find the value of each action, Q(s, a) = r(s, a) + γ Σ T(s, a, s') V(s'), for given values of the states.

        Examples
        --------
        >>> MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5).q([4.0])
        array([[3., 4.]])
        """
        return q_values(self, self._value(value))

    def bellman(self, value):
        """Apply Bellman's operator: the value of the best action of each state.

        Examples
        --------
        >>> MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5).bellman([4.0])
        array([4.])
        """
        return self.q(value).max(axis=1)

    def greedy(self, value):
        """Find the best action of each state for given values of the states; the first among equals.

        Examples
        --------
        >>> MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5).greedy([4.0])
        array([1])
        """
        return self.q(value).argmax(axis=1)

    def chain(self, policy):
        """Give the transition matrix under a policy, dense or sparse as T is; terminal states lead to themselves.

        Examples
        --------
        >>> MDP([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]], [0.0, 1.0], 0.9).chain([1, 0])
        array([[0., 1.],
               [0., 1.]])
        """
        policy = read_policy(policy, self.n_states, self.n_actions)
        rows = rows_of(self, None if self.table is not None else self.transitions[:3], policy)
        if self.table is not None and self.terminal.any():
            rows[self.terminal] = np.eye(self.n_states)[self.terminal]
        return rows

    def sample(self, policy, n_steps=None, *, episodes=None, random_state=None):
        """Walk under a policy, and give the steps: states, actions, rewards, next states, and where an episode was over.

        Parameters
        ----------
        policy : An action for each state, or probabilities (states, actions).
        n_steps, episodes : How many of either. A new episode begins with a state drawn from the initial law.

        Examples
        --------
        >>> coin = MDP([[[0.5, 0.5]], [[0.5, 0.5]]], [0.0, 1.0], 0.9)
        >>> steps = coin.sample([0, 0], 10_000, random_state=0)
        >>> bool(abs(steps.rewards.mean() - 0.5) < 0.02)
        True
        """
        policy = read_policy(policy, self.n_states, self.n_actions)
        if policy.ndim == 1:
            policy = (policy[:, None] == np.arange(self.n_actions)).astype(np.float64)
        return walk(self, policy, n_steps, episodes, generator(random_state))

    def named(self, policy):
        """Give a policy of one action for each state as {state: action}, by their names.

        Examples
        --------
        >>> MDP([[[1.0], [1.0]]], [0.0], 0.5, states=["here"], actions=["left", "right"]).named([1])
        {'here': 'right'}
        """
        policy = read_policy(policy, self.n_states, self.n_actions)
        if policy.ndim != 1:
            raise ValueError("Only a policy of one action for each state can be named; take its most probable actions first.")
        states = range(self.n_states) if self.states is None else self.states
        actions = range(self.n_actions) if self.actions is None else self.actions
        return {s: actions[a] for s, a in zip(states, policy, strict=True)}

    def _value(self, value):
        value = np.ascontiguousarray(numbers("A value function", value))
        if value.shape != (self.n_states,):
            raise ValueError(f"A value function has a number for each of {self.n_states} states; got the shape {value.shape}.")
        return value


def from_gymnasium(env, gamma):
    """Read the model of a Gymnasium environment that has one; the same as `MDP.from_gymnasium`.

    Examples
    --------
    >>> import gymnasium
    >>> from_gymnasium(gymnasium.make("CliffWalking-v1"), 0.9)
    MDP(48 states, 4 actions, gamma=0.9, 1 terminal)
    """
    return MDP.from_gymnasium(env, gamma)


def a_model(mdp):
    """Validate that there is a model, which planning needs; return it."""
    if not isinstance(mdp, MDP):
        told = f"mdp must be an MDP, got {type(mdp).__name__}"
        raise ValueError(f"{told}; from_gymnasium(env, gamma) reads the model of an environment that has one.")
    return mdp


def _mask(terminal, n):
    """Read terminal states: a mask, or numbers."""
    mask = np.zeros(n, dtype=bool)
    if terminal is None:
        return mask
    given = np.asarray(terminal)
    if given.dtype == bool and given.shape == (n,):
        return given.copy()
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= n):
        raise ValueError(f"terminal must be a mask of {n} states, or hold their numbers, from 0 to {n - 1}.")
    if len(np.unique(given)) < given.size:  # zeros and ones, which would name the first two states
        raise ValueError("terminal holds a number twice: name each state once, or give a mask of True and False.")
    mask[given.astype(np.int64)] = True
    return mask


def _law(initial, terminal):
    """Read the law of the first state."""
    n = len(terminal)
    if initial is None:
        free = ~terminal if not terminal.all() else np.ones(n, dtype=bool)
        return free / free.sum()
    law = numbers("initial", initial)
    if law.ndim == 0 and np.isin(law, np.arange(n)).all():
        return (np.arange(n) == law).astype(np.float64)
    if law.shape != (n,) or not (law >= 0).all() or abs(law.sum() - 1) > SUMS:
        raise ValueError(f"initial must be the number of a state, or {n} numbers of at least 0 that sum to 1.")
    return law / law.sum()
