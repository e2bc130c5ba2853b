"""No discount: what turns a residual into a bound at γ = 1, where there is something that does.

Either every step costs: each pair from which the episode surely goes on has a negative reward, and then there are K and c with
K·(chance that the episode ends) − r ≥ c > 0; then an end must be within reach of every state, or it is worth −∞. Or every
policy's episodes end: no set of states can be kept to for ever. Then the longest expected number of steps, w = 1 + max_a P_a w,
is found by policy iteration; with w ≥ 1 − δ + P_a w for every action, w/(1 − δ) is an upper bound.

Bertsekas & Tsitsiklis, Mathematics of Operations Research 16 (1991).
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from lemmata.core.kernel import kernel
from lemmata.rl.bellman import sparse_q
from lemmata.rl.bounds import Reach, rounding
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.policy import Chain, chain_of, chosen

ROUNDS = 1000  # of policy iteration, which takes a few dozen at most in practice
ENOUGH = 0.01  # of a step, by which the equation of w may be missed: the bound is a hundredth too large then


@kernel
def keep_inside(indptr, successors, probabilities, ends, n_actions, inside):
    """Find the largest set of states that some policy never leaves: strike out states until each has an action that stays."""
    struck = True
    while struck:
        struck = False
        for s in range(len(inside)):
            if inside[s]:
                stays = False
                for a in range(n_actions):
                    holds = True
                    for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                        if probabilities[k] > 0.0 and (ends[k] or not inside[successors[k]]):
                            holds = False
                            break
                    if holds:
                        stays = True
                        break
                if not stays:
                    inside[s], struck = False, True


def never_ends(mdp, policy=None):
    """Give the states from which no move that ends can be reached, by any actions or by those of a policy.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]]
    >>> never_ends(MDP(T, [-1.0, -1.0, 0.0], 1.0, terminal=[2]))
    array([0])
    """
    moves, n, A = mdp.transitions, mdp.n_states, mdp.n_actions
    pairs = np.repeat(np.arange(n * A), np.diff(moves.indptr))
    possible = moves.probabilities > 0
    if policy is not None:
        possible &= chosen(policy, A).ravel()[pairs]
    # State n stands for the end, from which all arrows are followed backward.
    here, there = pairs[possible] // A, np.where(moves.ends, n, moves.successors)[possible]
    back = csr_array((np.ones(len(here)), (there, here)), shape=(n + 1, n + 1))
    return np.setdiff1d(np.arange(n), breadth_first_order(back, n, return_predecessors=False))


def undiscounted_reach(mdp):
    """Find what turns a residual into a bound without a discount; an error where nothing does."""
    moves = mdp.transitions
    pairs = np.repeat(np.arange(len(moves.indptr) - 1), np.diff(moves.indptr))
    ending = np.bincount(pairs, weights=moves.probabilities * moves.ends, minlength=len(moves.indptr) - 1)
    rewards, surely = mdp.rewards.ravel(), ending <= 0
    cost = -float(rewards[surely].max(initial=-np.inf))
    if 0 < cost < np.inf:
        credit = max(0.0, float(((rewards[~surely] + cost) / ending[~surely]).max(initial=0.0)))
        cost = float((credit * ending - rewards).min())
        if cost > 0:
            lost = never_ends(mdp)
            if len(lost):
                raise ValueError(
                    f"Without a discount every step costs here, and from state {lost[0]} no end can be reached, so that it is"
                    " worth −∞. Take gamma < 1, or make it terminal."
                )
            return Reach(np.inf, 1.0, cost, credit)
    inside = np.ones(mdp.n_states, dtype=np.bool_)
    keep_inside(*moves[:3], moves.ends, mdp.n_actions, inside)
    if inside.any():
        raise ValueError(
            f"Without a discount nothing is proved here: from state {int(inside.argmax())} some policy goes on for ever, and"
            " not every step costs. Take gamma < 1, or name the states after which nothing follows, by terminal."
        )
    return Reach(longest(mdp), 1.0)


def longest(mdp):
    """Bound the expected number of steps of any policy from any state; every policy's episodes must end.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]  # go on with a coin, or stop
    >>> longest(MDP(T, [1.0, 0.0], 1.0, terminal=[1]))
    2.0
    """
    n, ones = mdp.n_states, np.ones((mdp.n_states, mdp.n_actions))
    policy, q = np.zeros(n, dtype=np.int64), np.empty_like(ones)
    for _ in range(ROUNDS):
        steps = solve_chain(Chain(chain_of(mdp, policy).rows, ones[:, 0], 1.0))
        sparse_q(*mdp.continuing, ones, 1.0, steps, 0, n, q)
        lack = float((q.max(axis=1) - steps).max()) + rounding(mdp, steps)
        if lack <= ENOUGH:
            return float(steps.max() / (1 - lack))
        better = q.max(axis=1) > q[np.arange(n), policy] + rounding(mdp, steps)
        policy = np.where(better, q.argmax(axis=1), policy)
    return np.inf
