"""What planning returns, and its certificate.

From a value V and a policy π alone, one pass over the model gives Q and with it TV and T_πV; the extremes of TV − V and
T_πV − V bound ‖V − V*‖∞ and what π loses (`bounds`). The second bound does not feel a constant added to V, which the first
does: both are needed. They are relative to the largest value: an error of one percent is thousands of times the limit, and at
least ten times where the horizon is so long that rounding raises it. The bounds that were claimed are compared with these.

How often the best policy takes each pair, discounted and summed over a start in every state, obeys the equations of a flow,

    Σ_a x(s', a) = 1 + γ Σ_{s, a} x(s, a) T(s, a, s'),

whose lack is in units of one start: x is off by no more, relative to the number of its steps.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.certificate import TINY, Certificate, Check, same
from lemmata.rl.bounds import bracket, claimed, limit_of, reach_of, rounding
from lemmata.rl.mdp import a_model
from lemmata.rl.policy import chosen, mean_under, read_policy


@dataclass
class Solution:
    """A policy, the value of every state, and how far from the best they can be at most.

    Attributes
    ----------
    value : Value of every state.
    policy : Action in every state.
    q : Value of every action (states, actions); computed from `value` when first asked for.
    bound : Proved: the policy is worth at most so much less than the best one, from any state.
    error : Proved: no entry of `value` is further from the best value.
    trace : The bound after every iteration.
    n_iter, converged : How many there were, and whether the bound is as small as was asked for.
    occupancy : Of a linear program, how often the policy takes each pair (states, actions), else None.

    Examples
    --------
    >>> from lemmata.rl import MDP, value_iteration
    >>> mdp = MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5)
    >>> found = value_iteration(mdp)
    >>> found.value, found.policy, found.q
    (array([4.]), array([1]), array([[3., 4.]]))
    >>> found.policy = np.array([0])
    >>> [check.name for check in found.certify(mdp).failed]
    ['policy loss', 'bound']
    """

    mdp: object = field(repr=False)
    value: np.ndarray = field(repr=False)
    policy: np.ndarray = field(repr=False)
    bound: float
    error: float
    trace: np.ndarray = field(repr=False)
    converged: bool
    occupancy: np.ndarray | None = field(default=None, repr=False)

    @property
    def n_iter(self):
        """Number of iterations."""
        return len(self.trace)

    @cached_property
    def q(self):
        """Value of every action."""
        return self.mdp.q(self.value)

    def certify(self, mdp=None):
        """Prove, from the value and the policy alone, that no policy is worth more.

        Parameters
        ----------
        mdp : The model; default, the one that was solved.
        """
        return certify(self, self.mdp if mdp is None else a_model(mdp))


def certify(solution, mdp):
    """Check a solution of a model: the loss of its policy, the error of its value, what was claimed of both, and Q.

    Parameters
    ----------
    solution : What a planner returned.
    mdp : The model.

    Examples
    --------
    >>> from lemmata.rl import MDP, value_iteration
    >>> mdp = MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5)
    >>> print(certify(value_iteration(mdp), mdp))
    certificate holds (proof)
      check        value     limit  kind   claim
      policy loss  ... ≤ 1e-06  proof  no policy is worth more than this one by more, relative to the largest value
      value        ... ≤ 1e-06  proof  no value is further from the best one, relative to the largest
      bound        ... ≤ 1e+00  proof  the bound that is proved again, as a multiple of the one that is claimed
      error        ... ≤ 1e+00  proof  the error that is proved again, as a multiple of the one that is claimed
      q            ... ≤ 1e-06  proof  Q = r + γ Σ T V, computed again
    """
    value = mdp._value(solution.value)
    policy = read_policy(solution.policy, mdp.n_states, mdp.n_actions)
    reach, q = reach_of(mdp), mdp.q(value)
    best, taken = q.max(axis=1), mean_under(policy, q)
    _, above = bracket(mdp, reach, 0.0, float((best - value).max()), value)
    below, _ = bracket(mdp, reach, float((taken - value).min()), 0.0, value)
    lowest, _ = bracket(mdp, reach, float((best - value).min()), 0.0, value)
    bound, error, factor = above - below, max(above, -lowest), reach.factor(value)
    largest, limit, slack = max(float(np.abs(value).max()), TINY), limit_of(mdp, factor), factor * rounding(mdp, value)
    claims = (
        "no policy is worth more than this one by more, relative to the largest value",
        "no value is further from the best one, relative to the largest",
        "Q = r + γ Σ T V, computed again",
    )
    checks = [
        Check("policy loss", bound / largest, limit, "proof", claims[0]),
        Check("value", error / largest, limit, "proof", claims[1]),
        claimed(solution.bound, bound, slack, "bound"),
        claimed(solution.error, error, slack / 2, "error"),
        same(solution.q, q, "q", claims[2]),
    ]
    if solution.occupancy is not None:
        checks.append(flow_check(mdp, policy, solution.occupancy, limit))
    return Certificate(*checks)


def moves_of(mdp):
    """Give the moves after which the episode goes on as a sparse matrix, a row for each pair."""
    indptr, successors, probabilities = mdp.continuing
    return csr_array((probabilities, successors, indptr), shape=(mdp.rewards.size, mdp.n_states))


def flow_check(mdp, policy, occupancy, limit):
    """Check that an occupancy is a flow, and that of a policy."""
    claim, x = "what flows into each state flows out by the policy's actions, in units of one start", np.asarray(occupancy)
    if x.shape != mdp.rewards.shape:
        return Check("occupancy", np.inf, limit, "proof", claim)
    lack = np.abs(x.sum(axis=1) - 1 - mdp.gamma * (moves_of(mdp).T @ x.ravel())).max()
    wrong = np.abs(np.where(chosen(policy, mdp.n_actions), np.minimum(x, 0.0), x)).max()
    return Check("occupancy", float(max(lack, wrong)), limit, "proof", claim)
