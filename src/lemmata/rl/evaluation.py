"""What a policy is worth: V^π = r_π + γ P_π V^π, solved, with a proved error.

The equations are linear (`linear_system`). If T_πV − V is nowhere larger than δ, then |V − V^π| ≤ δ/(1 − γ); without a discount
the longest expected number of steps of this policy takes the place of 1/(1 − γ), so that there is a bound wherever its episodes
end, whatever other policies do.
"""

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.certificate import TINY, Certificate, Check, same
from lemmata.rl.bounds import EPSILON, LIMIT, claimed, limit_of, rounding
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.mdp import a_model
from lemmata.rl.policy import Chain, chain_of, read_policy
from lemmata.rl.transitions import EXACT
from lemmata.rl.undiscounted import never_ends


@dataclass
class Evaluation:
    """The value of a policy, and how far from it the numbers can be at most.

    Attributes
    ----------
    policy : The policy, as actions or as probabilities.
    value : Value of every state.
    q : Value of every action, followed by the policy (states, actions).
    bound : Proved: no entry of `value` is further from the policy's value.

    Examples
    --------
    >>> from lemmata.rl import MDP, evaluate_policy
    >>> mdp = MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5)
    >>> found = evaluate_policy(mdp, [[0.5, 0.5]])
    >>> found.value, found.q
    (array([3.]), array([[2.5, 3.5]]))
    """

    mdp: object = field(repr=False)
    policy: np.ndarray = field(repr=False)
    value: np.ndarray = field(repr=False)
    bound: float

    @cached_property
    def q(self):
        """Value of every action."""
        return self.mdp.q(self.value)

    def certify(self, mdp=None):
        """Prove, from the policy and the value alone, that the value is the policy's."""
        mdp = self.mdp if mdp is None else a_model(mdp)
        policy = read_policy(self.policy, mdp.n_states, mdp.n_actions)
        value, chain = mdp._value(self.value), chain_of(mdp, policy)
        horizon = horizon_of(mdp, policy, chain)
        error, largest = error_of(mdp, chain, value, horizon), max(float(np.abs(value).max()), TINY)
        claim = "no value is further from the policy's, relative to the largest"
        return Certificate(
            Check("value", error / largest, limit_of(mdp, horizon), "proof", claim),
            claimed(self.bound, error, horizon * rounding(mdp, value) / 2, "bound"),
            same(self.q, mdp.q(value), "q", "Q = r + γ Σ T V, computed again"),
        )


def evaluate_policy(mdp, policy):
    """Find what a policy is worth in every state.

    Parameters
    ----------
    mdp : The model.
    policy : An action for each state, or probabilities (states, actions).

    Returns
    -------
    Evaluation : With value, q and bound.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]]  # in two states: stay, or go to the other one, mostly
    >>> found = evaluate_policy(MDP(T, [0.0, 1.0], 0.9), [1, 1])
    >>> found.value
    array([4.675325, 5.324675])
    >>> found.bound < 1e-12, found.certify().holds
    (True, True)
    """
    policy = read_policy(policy, a_model(mdp).n_states, mdp.n_actions)
    chain = chain_of(mdp, policy)
    horizon = horizon_of(mdp, policy, chain)
    value = solve_chain(chain)
    error = float(error_of(mdp, chain, value, horizon))
    if not error <= LIMIT * max(float(np.abs(value).max()), TINY):
        warnings.warn(f"The value of the policy is known up to {error:.1e} only.", ConvergenceWarning, stacklevel=2)
    return Evaluation(mdp, policy, value, error)


def refuse_endless(mdp, policy, there):
    """Raise an error if some of the states, those that are marked, lead to no end by a policy that has no discount."""
    lost = never_ends(mdp, policy)
    lost = lost[there[lost]]
    if mdp.gamma == 1 and len(lost):
        raise ValueError(
            f"Without a discount a policy is worth something only if it ends, and from state {lost[0]} it never does."
        )


def error_of(mdp, chain, value, horizon):
    """Bound the error of a value by its residual."""
    return (float(np.abs(chain.apply(value) - value).max()) + rounding(mdp, value)) * horizon


def horizon_of(mdp, policy, chain):
    """Find what turns the residual of a policy into a bound: 1/(1 − γ), or its longest expected number of steps."""
    if chain.gamma < 1:
        return 1 / max(1 - chain.gamma * (1 + EXACT), EPSILON)
    refuse_endless(mdp, policy, np.ones(mdp.n_states, dtype=bool))
    ones = Chain(chain.rows, np.ones(mdp.n_states), 1.0)
    steps = solve_chain(ones)
    lack = float(np.abs(ones.apply(steps) - steps).max())
    if not lack < 0.5:  # half a step: then the bound is at most twice too large
        raise ValueError("The episodes of this policy are too long for numbers of double precision; take gamma < 1.")
    return float(steps.max()) / (1 - lack)
