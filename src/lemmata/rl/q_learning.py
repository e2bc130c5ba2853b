"""Q-learning: values of actions, learned by trying, without knowing the law of the environment.

    Q(s, a) ← (1 − η) Q(s, a) + η [r + γ max_b Q(s′, b)]

If every pair is visited without end and the steps η of each have Σ η = ∞ and Σ η² < ∞, Q converges to the solution of
Q = r + γ Σ T max Q with probability one [1]. Steps 1/(1 + (1 − γ)(n − 1)) at the n-th visit, the default, get there in a time
that is a power of the horizon 1/(1 − γ); with the plain 1/n it grows exponentially with it [2, 3]. Exploration that falls
like c/n(s) visits all pairs without end where all states can be reached from each other, and becomes greedy [4]. `q_kernels`
has the step, with the relatives Sarsa, Expected Sarsa [5] and double learning [6].

Certificate: the fit is computed again, an identity. Where the law is known, as of an MDP, the learned policy is evaluated
exactly, and the Bellman residual of its value V bounds what any other policy gains: V* − V ≤ max(TV − V)/(1 − γ) [7]. The same
bound for the table, |Q − Q*| ≤ max|TQ − Q|/(1 − γ), is told: after any number of noisy steps it is honest, and not small.

[1] Watkins & Dayan, Machine Learning 8 (1992); Tsitsiklis, Machine Learning 16 (1994). [2] Even-Dar & Mansour, JMLR 5 (2003).
[3] Wainwright, arXiv:1905.06265 (2019). [4] Singh, Jaakkola, Littman & Szepesvári, Machine Learning 38 (2000).
[5] Rummery & Niranjan (1994); van Seijen et al., ADPRL (2009). [6] van Hasselt, NeurIPS (2010). [7] MacQueen (1966).
"""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import TINY, Certificate, Check
from lemmata.core.random import spawn
from lemmata.core.xoshiro import seed as words
from lemmata.optimize.schedules import Schedule
from lemmata.rl.environment import FOREVER, discount_of, tabular
from lemmata.rl.known_law import model_of, policy_check, reached, table_check
from lemmata.rl.learner import SHARED, Learner, constants_of, go_on, numbers_of, start
from lemmata.rl.q_kernels import TARGETS, Agent, Settings, run

SHORTEST_HORIZON = 0.01  # the least that 1 − γ counts for in the steps: without discount they must fall all the same
SIGMAS = 5.0  # standard deviations beyond which exploration was not what it says: once in two million fits


def new_agent(world, double, initial, rng):
    """Return an agent that knows nothing."""
    q = np.full((2 if double else 1, world.n_states, world.n_actions), float(initial))
    visits, explored = np.zeros(q.shape[1:], dtype=np.int64), np.zeros(world.n_actions, dtype=np.int64)
    return Agent(q, visits, visits.sum(axis=1), words(rng), explored, np.zeros(2))


def exploration_check(agent, limit):
    """Check that each action was a random one as often as ε says, in standard deviations."""
    n, (mean, squares) = len(agent.explored), agent.doubt
    away = np.abs(agent.explored - mean / n) / np.sqrt(max(mean / n - squares / n**2, TINY))
    claim = "each action was drawn at random as often as ε says, but for so many standard deviations"
    return Check("exploration", float(away.max()), limit, "evidence", claim)


def visits_check(visits):
    """Tell which share of the pairs was never tried; that of a large environment need not be zero."""
    claim = "share of the pairs that can be reached and were never tried"
    return Check("never tried", float((visits == 0).mean()), np.inf, "evidence", claim)


class QLearning(Learner):
    """Learn the values of actions by trying them, in an MDP or in a Gymnasium environment with numbered states and actions.

    Parameters
    ----------
    gamma : Discount; None takes the MDP's, or 0.99.
    learning_rate : Share η of its error by which an entry is corrected: a number, or a schedule of `lemmata.optimize`, which
        counts the visits of the pair. None is 1/(1 + (1 − γ)(n − 1)) at visit n.
    epsilon : Chance ε of a random action: a number, or a schedule, which counts the visits of the state.
    target : What follows a step is worth "max", the value of the best action (Q-learning), "expected", the mean over the
        actions of the policy that explores (Expected Sarsa), or "sample", that of the action that it takes next (Sarsa).
    double : Whether two tables judge each other's best actions, which takes away the bias of the maximum.
    exploring_starts : Whether each episode begins with any state and action, with equal odds; for MDPs.
    initial : Value that entries start from; a large one makes the agent try everything once.
    n_steps : Steps to take.
    max_episode_steps : Steps after which an episode is cut, also if the environment would go on.
    random_state : Seed, of the agent and of every episode.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    q_ : (S, A), value of each action in each state; with `double` the mean of the two tables.
    policy_ : (S,), the best action in each state.
    value_ : (S,), its value.
    visits_ : (S, A), how often each was tried.
    returns_, lengths_ : Sum of the rewards, and number of steps, of each episode that came to a close.
    n_steps_ : Steps taken.
    gamma_ : Discount.
    seed_ : Seed of the run.
    source_ : "mdp" or "gymnasium".
    n_features_in_, n_actions_ : Number of states, and of actions.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> stay_or_go = [[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]]
    >>> mdp = MDP(stay_or_go, [0.0, 1.0], 0.9)
    >>> model = QLearning(random_state=0).fit(mdp)
    >>> model.policy_, model.value_.round(1)
    (array([1, 0]), array([ 8.8, 10. ]))
    >>> certificate = model.certify(mdp)
    >>> certificate.holds, certificate["policy loss"].value
    (True, 0.0)
    >>> model.predict([1, 0, 0])
    array([0, 1, 1])
    """

    _parameter_constraints = {
        **SHARED,
        "learning_rate": [Interval(Real, 0, 1, closed="right"), Schedule, None],
        "epsilon": [Interval(Real, 0, 1, closed="both"), Schedule],
        "target": [StrOptions(set(TARGETS))],
        "double": ["boolean"],
        "exploring_starts": ["boolean"],
        "initial": [Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        gamma=None,
        *,
        learning_rate=None,
        epsilon=0.1,
        target="max",
        double=False,
        exploring_starts=False,
        initial=0.0,
        n_steps=1_000_000,
        max_episode_steps=None,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.target = target
        self.double = double
        self.exploring_starts = exploring_starts
        self.initial = initial
        self.n_steps = n_steps
        self.max_episode_steps = max_episode_steps
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, env, y=None):
        """Try actions in an environment, an `MDP` or one of Gymnasium, and learn from each step."""
        return self._learn(tabular(env, "QLearning"))

    def _steps(self, world, seed):
        """Return the step of a fit, one chunk, and the state before the first."""
        gamma, rate = discount_of(self.gamma, world), self.learning_rate
        if self.exploring_starts and world.mdp is None:
            raise ValueError("exploring_starts needs an MDP: an environment of Gymnasium begins where it likes.")
        if rate is None:
            rate = Schedule(1.0, power=1.0, decay=max(1 - gamma, SHORTEST_HORIZON))
        horizon = self.max_episode_steps or FOREVER
        schedules = (constants_of(rate), constants_of(self.epsilon))
        settings = Settings(TARGETS[self.target], gamma, *schedules, horizon, self.exploring_starts)
        step = partial(go_on, world, partial(run, settings), horizon, self.n_steps, None, self.chunk)
        mine, theirs = spawn(np.random.default_rng(seed), 2)
        return step, start(new_agent(world, self.double, self.initial, mine), words(theirs))

    def _fitted(self, state):
        """Return the fitted attributes that a state amounts to."""
        q = state.memory.q.mean(axis=0)
        found = {"q_": q, "policy_": q.argmax(axis=1), "value_": q.max(axis=1), "visits_": state.memory.visits}
        return found | {"returns_": state.returns, "lengths_": state.lengths, "n_steps_": state.steps}

    def predict(self, states):
        """Return the best action in each state."""
        check_is_fitted(self)
        return self.policy_[numbers_of(states, len(self.policy_))]

    def _act(self, world, state):
        return int(self.policy_[state])

    def certify(self, env, y=None):
        """Prove the fit by repeating it and, where the law is known, bound what any policy gains over the learned one.

        The environment is the one of the fit. What was learned in Gymnasium can also be certified on an `MDP` with the same
        states; then there is nothing to repeat.
        """
        check_is_fitted(self)
        world = self._same_size(tabular(env, "QLearning"))
        state, checks = self._replay(world)
        mdp = model_of(world, self.gamma_)
        if state is not None:  # where the law is known, luck is told and not judged
            checks.append(exploration_check(state.memory, SIGMAS if mdp is None else np.inf))
        if mdp is not None:
            there = reached(mdp)
            checks += [policy_check(mdp, self.policy_, there), table_check(mdp, self.q_, there)]
            checks.append(visits_check(self.visits_[there]))
        return Certificate(*checks, subject=repr(self))
