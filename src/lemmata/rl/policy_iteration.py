"""Policy iteration: evaluate a policy, take the best actions for its values, until none is better.

    V = (I − γP_π)⁻¹ r_π,        π(s) ← argmax_a [ r(s, a) + γ Σ T(s, a, s') V(s') ]  where that gains

Every policy is worth at least as much as the one before in every state, and there are finitely many, so it ends with one that
is best [1]. An action that gains no more than rounding is not taken, so rounding cannot send it around in circles. The residual
of the last value proves the policy (`bounds`).

[1] Howard, Dynamic Programming and Markov Processes (1960).
"""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.iterate import iterate
from lemmata.rl.bounds import bracket, certifiable, reach_of, rounding
from lemmata.rl.evaluation import horizon_of
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.mdp import a_model
from lemmata.rl.policy import chain_of, read_policy
from lemmata.rl.solution import Solution
from lemmata.rl.walk import at_least_one


class State(NamedTuple):
    """A policy, its value, and what is proved of both."""

    policy: np.ndarray
    value: np.ndarray
    bound: float
    error: float


def policy_iteration(mdp, *, start=None, max_iter=1000, verbose=0):
    """Find the best policy, and the value of every state.

    Parameters
    ----------
    mdp : The model.
    start : Policy to start from, one action for each state. Default: the actions of the highest rewards or, without a discount,
        such as lead to an end.
    max_iter : Most policies to evaluate.
    verbose : Whether to show a progress bar.

    Returns
    -------
    Solution : With value, policy, q, bound, error, trace (the bound of every policy), n_iter, converged.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]]  # in two states: stay, or go to the other one, mostly
    >>> found = policy_iteration(MDP(T, [0.0, 1.0], 0.9))
    >>> found.value, found.policy, found.n_iter
    (array([ 8.780488, 10.      ]), array([1, 0]), 2)
    >>> found.certify().holds
    True
    """
    max_iter = at_least_one("max_iter", max_iter)
    reach, states = reach_of(a_model(mdp)), np.arange(mdp.n_states)
    if start is None:
        policy = mdp.rewards.argmax(axis=1) if mdp.gamma < 1 else toward_the_ends(mdp)
    else:
        policy = read_policy(start, mdp.n_states, mdp.n_actions)
        if policy.ndim != 1:
            raise ValueError("start must be a policy of one action for each state.")
        horizon_of(mdp, policy, chain_of(mdp, policy))  # an error, without a discount, if it never ends

    def step(state):
        value = solve_chain(chain_of(mdp, state.policy))
        q = mdp.q(value)
        best, taken = q.max(axis=1), q[states, state.policy]
        below, above = bracket(mdp, reach, float((taken - value).min()), float((best - value).max()), value)
        better = best > taken + 2 * rounding(mdp, value)
        new = State(state.policy, value, float(above - below), float(max(above, -below)))
        if not better.any():
            return new, new.bound, 0.0
        return new._replace(policy=np.where(better, q.argmax(axis=1), state.policy)), new.bound, 1.0

    first = State(policy, np.zeros(mdp.n_states), np.inf, np.inf)
    run = iterate(step, first, max_iter=max_iter, tol=0.0, name="policy iteration", verbose=verbose)
    state = run.state
    converged = run.converged and certifiable(mdp, reach, state.value, state.bound)
    if run.converged and not converged:
        told = f"Rounding leaves a bound of {state.bound:.1e} on the loss of the policy: take a smaller gamma."
        warnings.warn(told, ConvergenceWarning, stacklevel=2)
    return Solution(mdp, state.value, state.policy, state.bound, state.error, run.trace, converged)


def toward_the_ends(mdp):
    """Choose in each state an action that may lead nearer to an end: then an end is reached for certain, if it can be.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], [[0, 0, 1], [0, 0, 1]]]
    >>> toward_the_ends(MDP(np.array(T, dtype=float), [-1.0, -1.0, 0.0], 1.0, terminal=[2]))
    array([1, 1, 0])
    """
    moves, n = mdp.transitions, mdp.n_states
    away = np.full(n, np.inf)
    starts = moves.indptr[:-1]
    while True:
        ahead = np.where(moves.ends, 0.0, away[moves.successors])
        ahead = np.where(moves.probabilities > 0, ahead, np.inf)
        steps = 1 + np.minimum.reduceat(ahead, starts).reshape(n, mdp.n_actions)
        nearer = np.minimum(away, steps.min(axis=1))
        if np.array_equal(nearer, away):
            return steps.argmin(axis=1)
        away = nearer
