"""What a known law says of something learned by trying: exact values, and bounds that no amount of luck can fake.

For any V and the policy π, with the Bellman operators T (best action) and T_π of the MDP,

    V* − V^π ≤ [max(TV − V) − min(T_πV − V)] / (1 − γ),        |Q − Q*| ≤ max|TQ − Q| / (1 − γ)

With V = V^π, solved for exactly, the first says how much there is to gain, and is zero for an optimal policy (`bounds` has it
without discount, too). States that cannot be reached from where episodes begin are left out: the others are closed under all
actions, an MDP of their own.

MacQueen, J. Math. Anal. Appl. 14 (1966). Porteus, Management Science 18 (1971).
"""

import warnings
from contextlib import suppress

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from lemmata.core.certificate import TINY, Check
from lemmata.rl.bounds import bracket, reach_of
from lemmata.rl.evaluation import refuse_endless
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.mdp import MDP
from lemmata.rl.policy import Chain, chain_of, chosen, mean_under, read_policy
from lemmata.rl.value_iteration import value_iteration

TRANSPARENT = {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics"}  # wrappers that only look
ERROR_LIMIT = 0.1  # of the largest value: noise that a fit of reasonable length leaves
LOSS_LIMIT = 0.01  # of the largest value: a policy that was learned may miss the best one by a percent


def model_of(world, gamma):
    """Return the MDP behind an environment, or None where there is none to be seen, or something may change what it does."""
    if world.mdp is not None:
        return world.mdp
    env = world.env
    while type(env).__name__ in TRANSPARENT:
        env = env.env
    plain = env is getattr(env, "unwrapped", env) and hasattr(env, "P")
    return MDP.from_gymnasium(env, gamma) if plain else None


def reached(mdp, policy=None):
    """Return which states can be reached from where episodes begin, by any actions or by those of a policy.

    States in which nothing follows and nothing is paid do not count.

    Examples
    --------
    >>> line = MDP([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]], [0.0, 1.0, 0.0], 0.9, terminal=[2], initial=1)
    >>> reached(line)
    array([False,  True, False])
    """
    n, (indptr, successors, _) = mdp.n_states, mdp.continuing
    first = np.flatnonzero(mdp.initial)
    pairs = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if policy is not None:
        taken = chosen(policy, mdp.n_actions).ravel()[pairs]
        pairs, successors = pairs[taken], successors[taken]
    rows = pairs // mdp.n_actions
    where = (np.concatenate([rows, np.full(len(first), n)]), np.concatenate([successors, first]))
    graph = csr_array((np.ones(len(where[0])), where), shape=(n + 1, n + 1))  # state n stands for the beginning
    found = np.zeros(n + 1, dtype=bool)
    found[breadth_first_order(graph, n, return_predecessors=False)] = True
    return found[:n] & ~mdp.silent


def policy_check(mdp, policy, there, *, limit=LOSS_LIMIT):
    """Bound what the best policy gains over a given one, relative to the largest value; without bound if there is none.

    The best value is no more than V plus what the residual TV − V allows, for any V: the value of the policy itself, or where
    that says too little, for what one pass gains may be had again and again, that of a plan.
    """
    claim, loss = "no policy gains more than this share of the largest value, from any state that can be reached", np.inf
    with suppress(ValueError):  # what is no policy, or one without a value, or an MDP in which nothing can be proved
        policy, reach = read_policy(policy, mdp.n_states, mdp.n_actions), reach_of(mdp)
        value = np.zeros(mdp.n_states)
        value[there] = value_within(mdp, policy, there)
        own, scale = (mean_under(policy, mdp.q(value)) - value)[there], max(np.abs(value[there]).max(), TINY)
        low, _ = bracket(mdp, reach, own.min(), 0.0, value[there])

        def lost(guess):
            gain = (mdp.q(guess).max(axis=1) - guess)[there]
            _, above = bracket(mdp, reach, 0.0, gain.max(), guess[there])
            return float(((guess - value)[there].max() + above - low) / scale)

        loss = lost(value)
        if loss > limit:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a plan that is not quite the best bounds the loss too
                loss = min(loss, lost(value_iteration(mdp).value))
    return Check("policy loss", loss, limit, "proof", claim)


def told_or_judged(repeated, limit):
    """Give the limit of a check that is told where the fit was repeated; where it was not, nothing else is proved."""
    return np.inf if repeated else limit


def table_check(mdp, q, there):
    """Bound the distance of a table to the solution of Bellman's equation, relative to the largest value; told, not judged."""
    residual = np.abs(mdp.q(np.where(mdp.silent, 0.0, q.max(axis=1))) - q)[there].max()
    error = residual / (1 - mdp.gamma) if mdp.gamma < 1 else np.inf
    claim = "no entry is further from its optimal value than this share of the largest one"
    return Check("Bellman error", float(error / max(np.abs(q[there]).max(), TINY)), np.inf, "proof", claim)


def value_within(mdp, policy, there):
    """Find the value of a policy in states that it does not leave; what it is worth elsewhere, if anything, does not matter.

    Examples
    --------
    >>> T = [[[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]]
    >>> endless = MDP(T, [-1.0, 0.0, -1.0], 1.0, terminal=[1], initial=0)
    >>> value_within(endless, np.zeros(3, dtype=int), np.array([True, False, False]))
    array([-1.])
    """
    refuse_endless(mdp, policy, there)
    chain, inside = chain_of(mdp, policy), np.flatnonzero(there)
    return solve_chain(Chain(chain.rows[inside][:, inside], chain.rewards[inside], chain.gamma))


def value_check(mdp, policy, value, *, limit=ERROR_LIMIT):
    """Compare values with the exact ones of a policy, relative to the largest, in the states that it can get to."""
    there = reached(mdp, policy)
    exact = value_within(mdp, policy, there)
    error = np.abs(value[there] - exact).max() / max(float(np.abs(exact).max()), TINY)
    claim = "no value is further from the policy's exact one than this share of the largest"
    return Check("value error", float(error), limit, "proof", claim)
