"""Semi-gradient TD(λ) with a network: the value of a policy, or values of actions to act by.

    δ = r + γ V_w(s′) − V_w(s),    e ← γλ e + ∇V_w(s),    w ← w + η δ e                             (a policy is evaluated)
    δ = r + γ U_w(s′) − Q_w(s, a), e ← γλ e + ∇Q_w(s, a), w ← w + η δ e,    U as in `q_kernels`      (a policy is sought)

It is no gradient of the squared error: the target depends on w as well, and is held fixed. Where features φ enter linearly, the
mean change is zero at the solution of the projected Bellman equation, Σ_s d(s) φ(s) [T^λ V_w − V_w](s) = 0 with the share d of
the time that is spent in each state, and steps with Σ η = ∞ and Σ η² < ∞ get there [1]. One-hot features make it TD(λ) with a
table. With hidden layers, or where a policy is sought, there is no such theorem: what is found is tried, and the best is kept.
Where the values are those of the greedy policy, a random action that breaks with it ends the traces [2].

Certificate: the fit is computed again, an identity; derivatives are compared with central differences; and where the law is
known, the exact value of the policy tells how good it is.

[1] Tsitsiklis & Van Roy, IEEE Trans. Autom. Control 42 (1997). [2] Watkins, Learning from Delayed Rewards (1989).
"""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.random import spawn
from lemmata.core.xoshiro import next_uniform
from lemmata.core.xoshiro import seed as words
from lemmata.optimize.schedules import Schedule
from lemmata.rl.environment import FOREVER, SEEDS, discount_of, draw, number_of, world_of
from lemmata.rl.known_law import ERROR_LIMIT, LOSS_LIMIT, model_of, policy_check, reached, told_or_judged, value_check
from lemmata.rl.learner import constants_of
from lemmata.rl.network_learner import NETWORK, NetworkLearner, Trained, best_output, draw_start, go_on, new_room
from lemmata.rl.policy import read_policy
from lemmata.rl.q_kernels import TARGETS
from lemmata.rl.td_lambda import policy_for_draws
from lemmata.rl.td_network_kernels import NONE, Memory, Settings, first_action, learn


def try_episodes(world, settings, shape, room, policy, horizon, memory, stream, least, most):
    """Learn from whole episodes until there are enough steps; only the last one may be broken off.

    Parameters
    ----------
    policy : Function of (observation, stream of random numbers) that returns an action, or None if the network chooses.
    """
    x, after, returns, lengths, taken = np.empty(world.n_features), np.empty(world.n_features), [], [], 0
    while taken < least:
        seen = world.reset(int(next_uniform(stream) * SEEDS))
        world.write(seen, x)
        action = first_action(settings, shape, room, memory, x) if policy is None else policy(seen, memory.stream)
        total, steps, over = 0.0, 0, False
        while not over and taken < most:
            seen, reward, ended, cut = world.step(action)
            world.write(seen, after)
            total, steps, taken = total + reward, steps + 1, taken + 1
            over = ended or cut or steps == horizon
            output = action if policy is None else 0
            action = learn(settings, shape, room, memory, x, output, reward, after, ended, over)
            if policy is not None and not over:
                action = policy(seen, memory.stream)
            x, after = after, x
        if over:
            returns.append(total)
            lengths.append(steps)
    return np.array(returns), np.array(lengths, dtype=np.int64), taken


def action_of(policy, seen, n_actions):
    """Ask a function for an action; checked before compiled code reads it."""
    given = policy(seen)
    action = number_of(given, 0, n_actions)
    if action is None:
        raise ValueError(f"policy must return actions from 0 to {n_actions - 1}, and returned {given!r}.")
    return action


def as_function(policy, world):
    """Return a policy as a function of (observation, stream): a table, or a function of the observation."""
    if callable(policy):
        return lambda seen, stream: action_of(policy, seen, world.n_actions)
    if world.n_states is None:
        raise ValueError("A policy for observations that are no numbers of states is a function of the observation.")
    rows = policy_for_draws(policy, world.n_states, world.n_actions)
    return lambda seen, stream: int(rows.actions[draw(rows.indptr, rows.keep, rows.alias, seen, stream)])


class TDNetwork(NetworkLearner):
    """Learn values with a network, by semi-gradient TD(λ): of a given policy, or of actions, and then a policy with them.

    Parameters
    ----------
    hidden_layer_sizes : Units of each hidden layer; () for none, which makes the values linear in the observation.
    activation : Of the hidden units: "tanh", "relu", "logistic" (or "sigmoid"), "identity".
    policy : Policy to evaluate: for numbered states an action or a row of probabilities for each, else a function of the
        observation that returns an action. None: values of actions are learned, and a policy with them.
    lambda_ : How far errors reach back, from 0 to 1.
    traces : Whether they reach back at all; without, λ counts as 0.
    target : Where a policy is sought, what follows a step is worth "max", "expected" or "sample", as in `QLearning`.
    gamma : Discount; None takes the MDP's, or 0.99.
    rule : How a change becomes a step: "sgd", "momentum", "adagrad", "rmsprop", "adam", or a rule of `lemmata.optimize`, which
        then also says how long steps are.
    learning_rate : Length η of steps, unless `rule` is a rule of its own.
    epsilon : Chance of a random action: a number, or a schedule of `lemmata.optimize`, which counts steps.
    fit_intercept : Whether the last layer has biases.
    n_steps : Steps to take.
    n_evaluations : Episodes, beyond these steps, in which the greedy policy is tried a hundred times during the fit; the
        parameters that did best are kept. 0 keeps the last ones. There are none where a policy is given.
    stop_at : Mean return of such a trial at which the fit ends; None for any.
    max_episode_steps : Steps after which an episode is cut, also if the environment would go on.
    random_state : Seed, of the start, the agent and every episode.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    parameters_ : Weights and biases of all layers, one after another.
    n_outputs_ : 1, or the number of actions.
    returns_, lengths_ : Sum of the rewards, and number of steps, of each episode that came to a close.
    scores_ : Mean returns of the trials.
    n_steps_ : Steps taken.
    gamma_ : Discount.
    center_, scale_ : What is taken from observations, and what they are multiplied with, where they have bounds.
    seed_ : Seed of the run.
    source_ : "mdp" or "gymnasium".
    n_features_in_, n_actions_ : Number of states, or of numbers in an observation, and of actions.

    Examples
    --------
    >>> from lemmata.rl import MDP
    >>> line = [[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]]
    >>> mdp = MDP(line, [0.0, 1.0, 0.0], 0.9, terminal=[2], initial=0)
    >>> model = TDNetwork((), policy=[0, 0, 0], lambda_=0.5, learning_rate=0.1, fit_intercept=False, n_steps=2).fit(mdp)
    >>> model.predict([0, 1])  # one-hot rows without intercept are a table: one episode of TD(λ)
    array([0.045, 0.1  ])
    >>> stay_or_go = MDP([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]], [0.0, 1.0], 0.9)
    >>> model = TDNetwork((), learning_rate=0.1, n_steps=5000, max_episode_steps=100, random_state=0).fit(stay_or_go)
    >>> model.predict([0, 1]), model.certify(stay_or_go).holds
    (array([1, 0]), True)
    """

    _parameter_constraints = {
        **NETWORK,
        "policy": ["array-like", callable, None],
        "lambda_": [Interval(Real, 0, 1, closed="both")],
        "traces": ["boolean"],
        "target": [StrOptions(set(TARGETS))],
        "epsilon": [Interval(Real, 0, 1, closed="both"), Schedule],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        hidden_layer_sizes=(64,),
        activation="tanh",
        *,
        policy=None,
        lambda_=0.8,
        traces=True,
        target="max",
        gamma=None,
        rule="sgd",
        learning_rate=0.001,
        epsilon=0.1,
        fit_intercept=True,
        n_steps=200_000,
        n_evaluations=10,
        stop_at=None,
        max_episode_steps=None,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.policy = policy
        self.lambda_ = lambda_
        self.traces = traces
        self.target = target
        self.gamma = gamma
        self.rule = rule
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.n_steps = n_steps
        self.n_evaluations = n_evaluations
        self.stop_at = stop_at
        self.max_episode_steps = max_episode_steps
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, env, y=None):
        """Learn in an environment, an `MDP` or one of Gymnasium, from each step."""
        world = world_of(env)
        self._learn_network(world)
        self.n_outputs_ = world.n_actions if self.policy is None else 1
        return self

    def _steps(self, world, seed):
        """Return the step of a fit, one chunk, and the state before the first."""
        gamma, rule, control = discount_of(self.gamma, world), self._rule(), self.policy is None
        policy = None if control else as_function(self.policy, world)
        shape = self._shape(world.n_features, world.n_actions if control else 1)
        room, horizon = new_room(shape), self.max_episode_steps or FOREVER
        settings = Settings(
            TARGETS[self.target] if control else NONE,
            gamma,
            gamma * self.lambda_ if self.traces else 0.0,
            constants_of(self.epsilon),
            self.fit_intercept,
            rule.code,
            rule.constants,
            rule.compiled_schedule.constants,
        )
        mine, start, theirs = spawn(np.random.default_rng(seed), 3)
        parameters, x = draw_start(shape, start), np.empty(world.n_features)
        moments = [np.zeros(len(parameters) if used else 0) for used in rule.uses]
        blank = np.zeros((2, len(parameters)))
        memory = Memory(parameters, *blank, *moments, words(mine), np.zeros(1, dtype=np.int64))

        def act(memory, seen):
            world.write(seen, x)
            return best_output(shape, memory.parameters, room, x, memory.stream)

        lesson = partial(try_episodes, world, settings, shape, room, policy, horizon)
        tries = self.n_evaluations if control else 0
        step = partial(go_on, world, lesson, act, self.n_steps, tries, self.stop_at, self._longest(), self.chunk)
        return step, Trained(memory, words(theirs), np.zeros(0), np.zeros(0, np.int64), 0, parameters, np.zeros(0))

    def _fitted(self, state):
        """Return the fitted attributes that a state amounts to."""
        found = {"parameters_": state.best, "returns_": state.returns, "lengths_": state.lengths}
        return found | {"scores_": state.scores, "n_steps_": state.steps}

    def values(self, observations):
        """Return the value of each observation, or of each action in it, (n, actions)."""
        check_is_fitted(self)
        found = self._outputs(observations, self._shape(self.n_features_in_, self.n_outputs_), self.parameters_)
        return found[:, 0] if self.policy is not None else found

    def predict(self, observations):
        """Return the best action for each observation; of a given policy, the value."""
        values = self.values(observations)
        return values if self.policy is not None else values.argmax(axis=1)

    def _act(self, world, seen):
        if self.policy is not None:
            return super()._act(world, seen)
        return int(self.predict([seen])[0])

    def certify(self, env, y=None):
        """Prove the fit by repeating it, and the derivatives by differences; tell how good it is where the law is known."""
        check_is_fitted(self)
        world = self._same_size(world_of(env))
        state, checks = self._replay(world)
        checks.append(self._derivatives(world, self._shape(self.n_features_in_, self.n_outputs_), self.parameters_))
        mdp = model_of(world, self.gamma_)
        if mdp is not None and self.policy is None:
            limit = told_or_judged(state is not None, LOSS_LIMIT)
            checks.append(policy_check(mdp, self.predict(np.arange(mdp.n_states)), reached(mdp), limit=limit))
        elif mdp is not None and not callable(self.policy):
            policy = read_policy(self.policy, mdp.n_states, mdp.n_actions)
            limit = told_or_judged(state is not None, ERROR_LIMIT)
            checks.append(value_check(mdp, policy, self.predict(np.arange(mdp.n_states)), limit=limit))
        return Certificate(*checks, subject=repr(self))
