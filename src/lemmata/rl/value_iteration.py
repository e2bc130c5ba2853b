"""Value iteration: repeat V ← TV until the greedy policy is proved to be as good as asked for.

    (TV)(s) = max_a [ r(s, a) + γ Σ_{s'} T(s, a, s') V(s') ],        ‖TV − TU‖∞ ≤ γ ‖V − U‖∞

so that V → V* from anywhere. Every iteration ends with a pass of T, whose extremes bound V* from both sides (`bounds`): it
stops when the greedy policy loses at most ε, not when V changes little; and actions whose values cannot reach the lower bound
of the best one are never looked at again. Where no episode ends, only the spread of TV − V matters, and the value returned is
the middle of the bounds [1, 2]. What happens between two passes is the method:

value         nothing: the textbook's iteration.
gauss-seidel  a sweep in place, in alternating directions.
prioritized   states whose successors changed most come first [3]: where news spreads from few places along few ways.
modified      the greedy policy is evaluated by passes of T_π, which read one action of each state, until they are near its
              value [4].
auto          "modified"; where episodes end also sweeps in place, with the states in the order in which the ends are reached;
              and after two iterations that gained little the linear equations of the policy are solved (`linear_system`).

[1] MacQueen (1966). [2] Porteus (1971). [3] Moore & Atkeson, Machine Learning 13 (1993). [4] Puterman & Shin, Management
Science 24 (1978).
"""

import warnings
from itertools import cycle
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.iterate import iterate
from lemmata.rl.bounds import bracket, certifiable, margin, reach_of, rounding
from lemmata.rl.linear_system import solve_chain
from lemmata.rl.mdp import a_model
from lemmata.rl.ordering import from_the_ends, view_of
from lemmata.rl.policy import chain_of
from lemmata.rl.prioritized import Queue
from lemmata.rl.solution import Solution
from lemmata.rl.sweeps import Passes
from lemmata.rl.walk import at_least_one

METHODS = ("auto", "value", "gauss-seidel", "prioritized", "modified")
PRECISION = 1e-8  # proved loss by default, relative to the largest value: a hundredth of what certificates ask
NEAR = 0.1  # a policy is evaluated until its residual is this share of what the last pass left
SWEEPS = 30  # at most, of one policy
PATIENCE = 30  # iterations like the last one that may be left before it is worth to solve for the value of the policy


class State(NamedTuple):
    """Where an iteration stands: the value before the last pass, what the pass made of it, and what that proves."""

    value: np.ndarray
    best: np.ndarray
    policy: np.ndarray | None
    below: float
    above: float
    left: float  # how far TV − V is from a constant or, where episodes end, from zero
    least: float  # the least bound so far
    slow: int  # iterations in a row that hardly lowered it

    @property
    def bound(self):
        """What the policy loses at most."""
        return self.above - self.below


def value_iteration(mdp, epsilon=None, *, method="auto", start=None, max_iter=100_000, verbose=0, callbacks=()):
    """Find a policy that is proved to lose at most epsilon, and the value of every state.

    Parameters
    ----------
    mdp : The model.
    epsilon : Loss, in units of reward, that is proved for the policy from every state. Default: 1e-8 of the largest value.
        Less than rounding leaves cannot be proved, and is warned of.
    method : "auto", "value", "gauss-seidel", "prioritized" or "modified"; all stop at the same proof.
    start : Values to start from. Default: the rewards, or where episodes end, less than any policy is worth.
    max_iter : Most passes over all states.
    verbose : Whether to show a progress bar.
    callbacks : Objects with `begin(iteration, state)` and `end(iteration, state)`, the latter returning True to stop.

    Returns
    -------
    Solution : With value, policy, q, bound, error, trace (the bound after every pass), n_iter, converged.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> T = [[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]]  # in two states: stay, or go to the other one, mostly
    >>> mdp = MDP(T, [0.0, 1.0], 0.9, actions=["stay", "go"])
    >>> found = value_iteration(mdp)
    >>> found.value.round(6), mdp.named(found.policy)
    (array([ 8.780488, 10.      ]), {0: 'go', 1: 'stay'})
    >>> found.bound < 1e-6, found.certify(mdp).holds
    (True, True)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if epsilon is not None and not (isinstance(epsilon, Real) and epsilon > 0):
        raise ValueError(f"epsilon must be above 0, got {epsilon!r}.")
    max_iter = at_least_one("max_iter", max_iter)
    reach = reach_of(a_model(mdp))
    outwards = method == "auto" and mdp.episodic and mdp.table is None
    view = from_the_ends(mdp) if outwards else view_of(mdp, sparse=method == "prioritized")
    passes, first = Passes(view), view.forth(_first(mdp, reach, start))
    improve = _improver(view, passes, reach, method)

    def step(state):
        value = state.best if state.policy is None else improve(state, _wanted(view, reach, epsilon, state))
        best, policy, low, high = passes.bellman(value)
        below, above = bracket(view, reach, low, high, value)
        passes.strike(best, margin(view, below, above, value))
        new = State(value, best, policy, below, above, _left(view, low, high), min(above - below, state.least), 0)
        far = float(new.bound) / float(_wanted(view, reach, epsilon, new))
        patience = PATIENCE * SWEEPS if passes.settled else PATIENCE  # an iteration is then one pass of the policy, not many
        little = far > 1 and new.bound * far ** (1 / patience) > state.least
        return new._replace(slow=state.slow + 1 if little else 0), new.bound, far

    options = {"max_iter": max_iter, "tol": 1.0, "name": "value iteration", "verbose": verbose, "callbacks": callbacks}
    run = iterate(step, State(first, first, None, -np.inf, np.inf, np.inf, np.inf, 0), **options)
    if run.state.policy is None:  # interrupted before the first pass was over
        raise KeyboardInterrupt
    return _solution(mdp, view, reach, run, epsilon)


def _wanted(view, reach, epsilon, state):
    """Give the loss at which to stop; no less than rounding leaves."""
    least = 3 * reach.factor(state.value) * rounding(view, state.value)  # 3: both ends, and their difference
    goal = PRECISION * float(np.abs(_centered(view, state)).max()) if epsilon is None else epsilon
    return max(goal, least, np.finfo(float).tiny)


def _first(mdp, reach, start):
    """Give the values to start from."""
    ends = mdp.rewards.max(axis=1)
    if start is not None:
        value = np.array(mdp._value(start))
        if not np.isfinite(value).all():
            raise ValueError("start must hold finite numbers.")
    elif not mdp.episodic:
        value = ends.copy()  # what Bellman's operator makes of zeros
    else:
        # From below, the value of an end is seen to be better than what is known elsewhere, and spreads at once.
        least = min(float(mdp.rewards.min()), 0.0)
        value = np.full(mdp.n_states, least * reach.horizon if np.isfinite(reach.horizon) else 0.0)
    value[mdp.terminal] = ends[mdp.terminal]
    return value


def _improver(view, passes, reach, method):
    """Give the function of a state, and of the loss to reach, that makes the values for the next pass.

    Updates in place do not commute with adding a constant: values in the middle of the bounds could send them round in circles.
    """
    if method == "value":
        return lambda state, _: state.best
    if method == "gauss-seidel":
        turns = cycle((False, True))
        return lambda state, _: passes.sweep(state.best, next(turns))
    if method == "prioritized":
        queue = Queue(view)
        return lambda state, goal: queue.run(state.value, np.abs(state.best - state.value), goal / reach.factor(state.value))

    solvable = method == "auto"

    def evaluate(state, _):
        nonlocal solvable
        value = _centered(view, state)
        if state.slow > 1 and solvable:  # 1: another policy may have lost what the last one gained
            value, solvable = _solved(view, state.policy, value)
        else:
            value = _evaluated(view, passes, state, value)
        if method == "auto" and view.table is None and (view.episodic or state.slow):
            for turn in range(SWEEPS if state.slow else 2):
                value = passes.sweep(value, turn % 2 == 1)
        return value

    return evaluate


def _middle(view, state):
    """Give the constant that moves V to the middle of the bounds; nothing where episodes end."""
    return 0.0 if view.episodic else (state.above + state.below) / 2


def _centered(view, state):
    """Give what Bellman's operator makes of the value in the middle."""
    return state.best + view.gamma * _middle(view, state)


def _left(view, low, high):
    """Give how far a change between two extremes is from a constant or, where episodes end, from zero."""
    return max(high, -low) if view.episodic else high - low


def _evaluated(view, passes, state, value):
    """Bring the value of the policy nearer by passes, or where episodes end by sweeps in place."""
    if passes.settled:  # Bellman's operator is that of the policy, and proves something
        return value
    rows = passes.policy_rows(state.policy)
    for turn in range(SWEEPS):
        if view.episodic and not passes.dense:
            value, low, high = passes.policy_sweep(rows, value, turn % 2 == 1)
        else:
            value, low, high = passes.policy_pass(rows, value)
        if _left(view, low, high) <= NEAR * state.left:
            break
    return value


def _solved(view, policy, value):
    """Solve for the value of a policy; keep the given one, and say so, if that went wrong."""
    chain = chain_of(view, policy)
    solved = solve_chain(chain)
    before, after = (float(np.abs(chain.apply(v) - v).max()) for v in (value, solved))
    return (solved, True) if after <= NEAR * before else (value, False)


def _solution(mdp, view, reach, run, epsilon):
    """Make the result of the last pass."""
    state = run.state
    width = view.gamma * state.bound / 2 if not view.episodic else view.gamma * max(state.above, -state.below)
    value, policy = view.back(_centered(view, state)), view.back(state.policy)
    error = float(width + 2 * rounding(view, value))
    enough = certifiable(view, reach, value, state.bound) if epsilon is None else bool(state.bound <= epsilon)
    if run.converged and not enough:
        advice = "take a smaller gamma" if epsilon is None else f"epsilon={epsilon:g} cannot be proved"
        told = f"Rounding leaves a bound of {state.bound:.1e} on the loss of the policy: {advice}."
        warnings.warn(told, ConvergenceWarning, stacklevel=3)
    return Solution(mdp, value, policy, float(state.bound), error, run.trace, run.converged and enough)
