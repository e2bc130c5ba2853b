"""What planning returns, and its certificate.

From a value V and a policy π alone, one pass over the model gives Q and with it TV and T_πV; the extremes of TV − V and
T_πV − V bound ‖V − V*‖∞ and what π loses (`bounds`). The second bound does not feel a constant added to V, which the first
does: both are needed. They are relative to the largest return that the policy could have, max|r_π|/(1 − γ); since
|r_π| ≤ (1 + γ) max|V^π|, an error of one percent of the values is thousands of times the limit.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check, same
from lemmata.rl.bounds import EPSILON, bracket, reach_of
from lemmata.rl.policy import mean_under, read_policy

LIMIT = 1e-6  # of losses and errors, relative to the largest return


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

    Examples
    --------
    >>> from lemmata.rl import MDP, value_iteration
    >>> mdp = MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5)
    >>> found = value_iteration(mdp)
    >>> found.value, found.policy, found.q
    (array([4.]), array([1]), array([[3., 4.]]))
    >>> found.policy = np.array([0])
    >>> [check.name for check in found.certify(mdp).failed]
    ['policy loss']
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
        return certify(self, self.mdp if mdp is None else mdp)


def certify(solution, mdp):
    """Check a solution of a model: the loss of its policy, the error of its value, and that Q belongs to it.

    Parameters
    ----------
    solution : Anything with `value`, `policy` and `q`.
    mdp : The model.

    Examples
    --------
    >>> from lemmata.rl import MDP, value_iteration
    >>> mdp = MDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5)
    >>> print(certify(value_iteration(mdp), mdp))
    certificate holds (proof)
      check        value     limit  kind   claim
      policy loss  ... ≤ 1e-06  proof  no policy is worth more than this one by more, relative to its largest return
      value        ... ≤ 1e-06  proof  no value is further from the best one, relative to the largest return
      q            ... ≤ 1e-06  proof  Q = r + γ Σ T V, computed again
    """
    value = mdp._value(solution.value)
    policy = read_policy(solution.policy, mdp.n_states, mdp.n_actions)
    reach, q = reach_of(mdp), mdp.q(value)
    best, taken = q.max(axis=1), mean_under(policy, q)
    _, above = bracket(mdp, reach, 0.0, float((best - value).max()), value)
    below, _ = bracket(mdp, reach, float((taken - value).min()), 0.0, value)
    lowest, _ = bracket(mdp, reach, float((best - value).min()), 0.0, value)
    largest = float(np.abs(mean_under(policy, mdp.rewards)).max())
    unit = largest * reach.horizon if np.isfinite(reach.horizon) else max(largest, float(np.abs(value).max()))
    limit = max(LIMIT, 4 * EPSILON * (mdp.longest_row + 6) * reach.factor(value))
    claims = (
        "no policy is worth more than this one by more, relative to its largest return",
        "no value is further from the best one, relative to the largest return",
        "Q = r + γ Σ T V, computed again",
    )
    return Certificate(
        Check("policy loss", (above - below) / max(unit, TINY), limit, "proof", claims[0]),
        Check("value", max(above, -lowest) / max(unit, TINY), limit, "proof", claims[1]),
        same(solution.q, q, "q", claims[2]),
    )
