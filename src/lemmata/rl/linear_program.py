"""Planning as a linear program: the least value that no action can raise.

    minimize Σ V(s)   subject to   V(s) ≥ r(s, a) + γ Σ T(s, a, s') V(s')  for all s, a

V* satisfies the constraints, and every V that does is at least V*. The multipliers x(s, a) of the constraints are how often the
best policy is in s and does a, discounted and summed over starts in every state; the action with x > 0 is best there [1]. HiGHS
solves it, by a method that shares nothing with the others here: a cross-check for small models.

[1] d'Epenoux, Management Science 10 (1963).
"""

import warnings

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array
from sklearn.exceptions import ConvergenceWarning

from lemmata.rl.bounds import bracket, certifiable, reach_of
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.mdp import a_model
from lemmata.rl.policy import Chain, chain_of
from lemmata.rl.solution import Solution, moves_of

NEVER = 1e15  # cost of an action, in units of the best rewards, that is as good as forbidden


def linear_program(mdp):
    """Find the best policy and the value of every state by a linear program.

    Returns
    -------
    Solution : With value, policy, q, bound, error, and `occupancy` (states, actions), the multipliers.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]]  # in two states: stay, or go to the other one, mostly
    >>> found = linear_program(MDP(T, [0.0, 1.0], 0.9))
    >>> found.value, found.policy
    (array([ 8.780488, 10.      ]), array([1, 0]))
    >>> round(float(found.occupancy.sum()), 6)  # of two starts, each worth 1/(1 − γ) steps
    20.0
    """
    reach, (S, A) = reach_of(a_model(mdp)), mdp.rewards.shape
    stays = coo_array((np.ones(S * A), (np.arange(S * A), np.repeat(np.arange(S), A))), shape=(S * A, S))
    constraints = (mdp.gamma * moves_of(mdp) - stays.tocsr()).tocsr()
    # HiGHS is exact to 1e-7, whatever the units are. Those of the best rewards do not feel what forbids an action.
    unit = next((u for u in (np.abs(mdp.rewards.max(axis=1)).max(), np.abs(mdp.rewards).max()) if u > 0), 1.0)
    with np.errstate(over="ignore"):
        costs = np.minimum(-mdp.rewards.ravel() / unit, NEVER)
    found = linprog(np.ones(S), A_ub=constraints, b_ub=costs, bounds=(None, None), method="highs")
    if found.status != 0:
        told = "The linear program was not solved, by HiGHS, which is exact to 1e-7; use value_iteration or policy_iteration."
        raise ValueError(f"{told} It says: {found.message}")
    policy = np.asarray(found.ineqlin.marginals).reshape(S, A).argmin(axis=1)  # multipliers with their sign turned
    chain, occupancy = chain_of(mdp, policy), np.zeros((S, A))
    # The program's own values and multipliers are feasible to 1e-7 only: those of its policy are solved for.
    value = solve_chain(chain)
    occupancy[np.arange(S), policy] = solve_chain(Chain(chain.rows.T, np.ones(S), mdp.gamma))
    q = mdp.q(value)
    taken = q[np.arange(S), policy]
    below, above = bracket(mdp, reach, float((taken - value).min()), float((q.max(axis=1) - value).max()), value)
    bound, error = float(above - below), float(max(above, -below))
    converged = certifiable(mdp, reach, value, bound)
    if not converged:
        told = f"The linear program was solved to HiGHS's precision only: its policy is proved to lose at most {bound:.1e}."
        warnings.warn(told, ConvergenceWarning, stacklevel=2)
    return Solution(mdp, value, policy, bound, error, np.array([bound]), converged, occupancy)
