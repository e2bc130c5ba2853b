"""TD(λ): the value of a policy, learned from episodes while they run.

    δ_t = r_t + γ V(s_{t+1}) − V(s_t),    e ← γλ e + 1[s_t],    V ← V + η δ_t e

The trace hands each error back to the states that led to it: V(s) changes by η Σ_t 1[s_t = s] Σ_{u ≥ t} (γλ)^{u−t} δ_u over an
episode. If V is held until the episode is over (offline), the inner sum is G_t^λ − V(s_t) exactly, with the λ-return

    G_t^λ = (1 − λ) Σ_n λ^{n−1} [r_t + … + γ^{n−1} r_{t+n−1} + γⁿ V(s_{t+n})],    the last n having what is left of the weights,

so λ = 0 looks one step ahead, and λ = 1 learns from whole returns [1]. For every λ the mean change is zero at the value of the
policy, and steps with Σ η = ∞ and Σ η² < ∞ get there with probability one [2]. The default steps at visit n of a state,
(1 − γλ)/(1 + (1 − γ)(n − 1)), never overshoot: a trace is at most 1/(1 − γλ).

Certificate: the fit is computed again, an identity; where the law is known, the value is compared with the exact one.

[1] Sutton, Machine Learning 3 (1988). [2] Dayan, Machine Learning 8 (1992); Dayan & Sejnowski, Machine Learning 14 (1994).
Replacing traces: Singh & Sutton, Machine Learning 22 (1996).
"""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.random import spawn
from lemmata.core.xoshiro import seed as words
from lemmata.optimize.schedules import Schedule
from lemmata.rl.environment import FOREVER, alias_tables, discount_of, tabular
from lemmata.rl.known_law import model_of, value_check
from lemmata.rl.learner import SHARED, WHOLE, Learner, constants_of, go_on, numbers_of, start
from lemmata.rl.policy import read_policy
from lemmata.rl.q_learning import SHORTEST_HORIZON
from lemmata.rl.td_kernels import Policy, Settings, Table, run


def equal_odds(policy, world):
    """Return a policy; None is any action with equal odds."""
    return np.full((world.n_states, world.n_actions), 1 / world.n_actions) if policy is None else policy


def policy_for_draws(policy, n_states, n_actions):
    """Prepare a policy for draws in constant time."""
    policy = read_policy(policy, n_states, n_actions)
    chances = policy if policy.ndim == 2 else np.eye(n_actions)[policy]
    states, actions = np.nonzero(chances)
    indptr = np.searchsorted(states, np.arange(n_states + 1))
    return Policy(indptr, *alias_tables(indptr, chances[states, actions]), actions)


def lambda_returns(rewards, values, gamma, lambda_):
    """Return G_t^λ of each step of an episode, by the recursion G_t = r_t + γ[(1 − λ) V(s_{t+1}) + λ G_{t+1}].

    Parameters
    ----------
    rewards : r_t of each step.
    values : V(s_{t+1}) of each step; the last one is zero if the episode ended, and the value of the last state if it was cut.

    Examples
    --------
    >>> lambda_returns([0.0, 1.0], [0.0, 0.0], gamma=0.9, lambda_=0.5)
    array([0.45, 1.  ])
    """
    found, follows = np.empty(len(rewards)), float(values[-1])
    for t in range(len(rewards) - 1, -1, -1):
        follows = rewards[t] + gamma * ((1 - lambda_) * values[t] + lambda_ * follows)
        found[t] = follows
    return found


class TDLambda(Learner):
    """Learn the value of a policy by TD(λ), in an MDP or in a Gymnasium environment with numbered states and actions.

    Parameters
    ----------
    policy : The policy: an action for each state, or probabilities (states, actions). None: any action, with equal odds.
    lambda_ : How far errors reach back: 0 to the last state, 1 through the whole episode.
    gamma : Discount; None takes the MDP's, or 0.99.
    learning_rate : Step η: a number, or a schedule of `lemmata.optimize`, which counts the visits of the state. None is
        (1 − γλ)/(1 + (1 − γ)(n − 1)) at visit n.
    trace : "accumulating", which adds 1 at each visit, or "replacing", which sets the trace to 1.
    online : Whether values change at each step, or at the end of the episode.
    n_steps, n_episodes : Steps to take and episodes to finish at most; the first that is reached ends the fit.
    max_episode_steps : Steps after which an episode is cut, also if the environment would go on.
    random_state : Seed, of the policy and of every episode.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    value_ : (S,), value of each state.
    visits_ : (S,), how often each was left.
    returns_, lengths_ : Sum of the rewards, and number of steps, of each episode that came to a close.
    n_steps_ : Steps taken.
    gamma_ : Discount.
    seed_ : Seed of the run.
    source_ : "mdp" or "gymnasium".
    n_features_in_, n_actions_ : Number of states, and of actions.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> line = [[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]]
    >>> mdp = MDP(line, [0.0, 1.0, 0.0], 0.9, terminal=[2], initial=0)
    >>> TDLambda(lambda_=0.5, learning_rate=0.1, n_episodes=1).fit(mdp).value_
    array([0.045, 0.1  , 0.   ])
    >>> model = TDLambda(lambda_=0.5, n_steps=10_000).fit(mdp)
    >>> model.value_.round(3), model.certify(mdp).holds
    (array([0.9, 1. , 0. ]), True)
    """

    _parameter_constraints = {
        **SHARED,
        "policy": ["array-like", None],
        "lambda_": [Interval(Real, 0, 1, closed="both")],
        "learning_rate": [Interval(Real, 0, 1, closed="right"), Schedule, None],
        "trace": [StrOptions({"accumulating", "replacing"})],
        "online": ["boolean"],
        "n_episodes": [WHOLE, None],
    }

    def __init__(
        self,
        policy=None,
        *,
        lambda_=0.9,
        gamma=None,
        learning_rate=None,
        trace="accumulating",
        online=True,
        n_steps=1_000_000,
        n_episodes=None,
        max_episode_steps=None,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.policy = policy
        self.lambda_ = lambda_
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.trace = trace
        self.online = online
        self.n_steps = n_steps
        self.n_episodes = n_episodes
        self.max_episode_steps = max_episode_steps
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, env, y=None):
        """Follow the policy in an environment, an `MDP` or one of Gymnasium, and learn what its states are worth."""
        return self._learn(tabular(env, "TDLambda"))

    def _steps(self, world, seed):
        """Return the step of a fit, one chunk, and the state before the first."""
        gamma, rate, n = discount_of(self.gamma, world), self.learning_rate, world.n_states
        fade = gamma * self.lambda_
        if rate is None:
            shortest = SHORTEST_HORIZON
            rate = Schedule(max(1 - fade, shortest), power=1.0, decay=max(1 - gamma, shortest))
        replacing, horizon = self.trace == "replacing", self.max_episode_steps or FOREVER
        settings = Settings(gamma, fade, constants_of(rate), replacing, self.online, horizon)
        policy = policy_for_draws(equal_odds(self.policy, world), n, world.n_actions)
        limits = (horizon, self.n_steps, self.n_episodes, self.chunk)
        mine, theirs = spawn(np.random.default_rng(seed), 2)
        whole, none = np.zeros((2, n), dtype=np.int64), np.zeros((3, n))
        table = Table(none[0], whole[0], none[1], whole[1], none[2], words(mine), np.zeros(1, dtype=np.int64))
        return partial(go_on, world, partial(run, settings, policy), *limits), start(table, words(theirs))

    def _fitted(self, state):
        """Return the fitted attributes that a state amounts to."""
        found = {"value_": state.memory.value, "visits_": state.memory.visits}
        return found | {"returns_": state.returns, "lengths_": state.lengths, "n_steps_": state.steps}

    def predict(self, states):
        """Return the value of each state."""
        check_is_fitted(self)
        return self.value_[numbers_of(states, len(self.value_))]

    def certify(self, env, y=None):
        """Prove the fit by repeating it and, where the law is known, compare it with the exact value of the policy."""
        check_is_fitted(self)
        world = self._same_size(tabular(env, "TDLambda"))
        _, checks = self._replay(world)
        mdp = model_of(world, self.gamma_)
        if mdp is not None:
            policy = read_policy(equal_odds(self.policy, mdp), mdp.n_states, mdp.n_actions)
            checks.append(value_check(mdp, policy, self.value_))
        return Certificate(*checks, subject=repr(self))
