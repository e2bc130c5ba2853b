"""Planning as a linear program: the least value that no action can raise.

    minimize Σ V(s)   subject to   V(s) ≥ r(s, a) + γ Σ T(s, a, s') V(s')  for all s, a

V* satisfies the constraints, and every V that does is at least V*. The multipliers x(s, a) of the constraints are how often the
best policy is in s and does a, discounted and summed over starts in every state; the action with x > 0 is best there [1]. HiGHS
solves it, by a method that shares nothing with the others here: a cross-check for small models.

[1] d'Epenoux, Management Science 10 (1963).
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from lemmata.rl.bounds import bracket, reach_of
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.policy import chain_of
from lemmata.rl.solution import Solution


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
    reach, (S, A) = reach_of(mdp), mdp.rewards.shape
    moves = csr_array((mdp.continuing[2], mdp.continuing[1], mdp.continuing[0]), shape=(S * A, S))
    stays = coo_array((np.ones(S * A), (np.arange(S * A), np.repeat(np.arange(S), A))), shape=(S * A, S))
    constraints = (mdp.gamma * moves - stays.tocsr()).tocsr()
    found = linprog(np.ones(S), A_ub=constraints, b_ub=-mdp.rewards.ravel(), bounds=(None, None), method="highs")
    if found.status != 0:
        raise ValueError(f"The linear program was not solved: {found.message}")
    occupancy = np.maximum(-np.asarray(found.ineqlin.marginals).reshape(S, A), 0.0)
    policy = occupancy.argmax(axis=1)
    value = solve_chain(chain_of(mdp, policy))  # the program's own values are feasible to 1e-7 only
    q = mdp.q(value)
    taken = q[np.arange(S), policy]
    below, above = bracket(mdp, reach, float((taken - value).min()), float((q.max(axis=1) - value).max()), value)
    return Solution(mdp, value, policy, above - below, max(above, -below), np.array([above - below]), True, occupancy)
