"""REINFORCE: a policy that is a network, moved along the gradient of its own expected return.

    ∇J = E[ Σ_t (G_t − b_t) ∇ log π_w(a_t | s_t) ],    G_t = r_t + γ r_{t+1} + γ² r_{t+2} + …

The expectation is over episodes of the policy itself, so the mean over a batch of them is an estimate without bias, for any
baseline b_t that does not look at what is done from t on; a baseline near the value of s_t takes away most of the variance
(`policy_gradient` has the reasons) [1]. For γ < 1 the factor γᵗ that belongs before each term is left out, as usual: with it,
nothing is learned from what happens late. An episode that is cut goes on with the baseline's estimate. The baseline is a second
network, fitted to the returns of the batches before; or their mean; or nothing.

Certificate: the fit is computed again, an identity; derivatives are compared with central differences; and where the law is
known, the exact value of the policy tells how good it is. What is kept is the policy that did best when tried.

[1] Williams, Machine Learning 8 (1992). Sutton, McAllester, Singh & Mansour, NeurIPS (1999).
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
from lemmata.rl.environment import FOREVER, discount_of, world_of
from lemmata.rl.known_law import LOSS_LIMIT, model_of, policy_check, reached, told_or_judged
from lemmata.rl.learner import WHOLE
from lemmata.rl.network_learner import NETWORK, UNMOVED, NetworkLearner, Trained, best_output, draw_start, go_on, new_room
from lemmata.rl.reinforce_batches import Memory, Settings, try_batches


class Reinforce(NetworkLearner):
    """Learn a policy by REINFORCE, in an MDP or in a Gymnasium environment with discrete actions.

    Parameters
    ----------
    hidden_layer_sizes : Units of each hidden layer; () for none, which makes the policy linear in the observation.
    activation : Of the hidden units: "tanh", "relu", "logistic" (or "sigmoid"), "identity".
    baseline : What is taken from returns: "value", the estimate of a second network of the same hidden layers; "mean", the mean
        of all returns before; or None.
    normalize : Whether returns less baseline are centered and scaled within a batch, which makes their units irrelevant.
    entropy : Weight of the entropy of the policy, which keeps it from being certain too soon.
    batch_episodes : Episodes between two steps of the policy.
    gamma : Discount; None takes the MDP's, or 0.99.
    rule : How a gradient becomes a step: "adam", "sgd", "momentum", "adagrad", "rmsprop", or a rule of `lemmata.optimize`,
        which then also says how long steps are.
    learning_rate : Length of steps, unless `rule` is a rule of its own.
    n_steps : Steps to take in the environment.
    n_evaluations : Episodes, beyond these steps, in which the greedy policy is tried a hundred times during the fit; the
        parameters that did best are kept. 0 keeps the last ones.
    stop_at : Mean return of such a trial at which the fit ends; None for any.
    max_episode_steps : Steps after which an episode is cut, also if the environment would go on.
    random_state : Seed, of the start, the agent and every episode.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    parameters_ : Weights and biases of all layers of the policy, one after another.
    value_parameters_ : Those of the baseline, at the end of the fit.
    n_outputs_ : Number of actions.
    returns_, lengths_ : Sum of the rewards, and number of steps, of each episode that was learned from.
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
    >>> two_arms = MDP([[[0.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], [[1.0, 0.0], [0.0, 0.0]], 0.9, terminal=[1])
    >>> model = Reinforce((), n_steps=1000, random_state=0).fit(two_arms)
    >>> model.predict([0]), bool(model.predict_proba([0])[0, 0] > 0.6)
    (array([0]), True)
    >>> model.certify(two_arms).holds
    True
    """

    _parameter_constraints = {
        **NETWORK,
        "baseline": [StrOptions({"value", "mean"}), None],
        "normalize": ["boolean"],
        "entropy": [Interval(Real, 0, None, closed="left")],
        "batch_episodes": [WHOLE],
    }

    def __init__(
        self,
        hidden_layer_sizes=(64,),
        activation="tanh",
        *,
        baseline="value",
        normalize=True,
        entropy=0.0,
        batch_episodes=10,
        gamma=None,
        rule="adam",
        learning_rate=0.01,
        n_steps=300_000,
        n_evaluations=10,
        stop_at=None,
        max_episode_steps=None,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.baseline = baseline
        self.normalize = normalize
        self.entropy = entropy
        self.batch_episodes = batch_episodes
        self.gamma = gamma
        self.rule = rule
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.n_evaluations = n_evaluations
        self.stop_at = stop_at
        self.max_episode_steps = max_episode_steps
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, env, y=None):
        """Learn in an environment, an `MDP` or one of Gymnasium, from batches of episodes."""
        world = world_of(env)
        self._learn_network(world)
        self.n_outputs_ = world.n_actions
        if not len(self.returns_):
            told = f"The {self.n_steps_} steps did not suffice for {self.batch_episodes} episodes"
            raise ValueError(f"{told}; raise n_steps, or cut episodes by max_episode_steps.")
        return self

    def _steps(self, world, seed):
        """Return the step of a fit, one chunk, and the state before the first."""
        rule, n = self._rule(), world.n_features
        policy, baseline = self._shape(n, world.n_actions, "softmax"), self._shape(n, 1)
        mine, start, theirs = spawn(np.random.default_rng(seed), 3)
        parameters, value = draw_start(policy, start), draw_start(baseline, start)
        if self.baseline != "value":
            value = value[:0]
        settings = Settings(
            policy,
            baseline,
            self.baseline == "mean",
            self.normalize,
            float(self.entropy),
            discount_of(self.gamma, world),
            rule,
            self.batch_episodes,
            self.max_episode_steps or FOREVER,
        )
        kept = [np.zeros(len(p) if used else 0) for p in (parameters, value) for used in rule.uses]
        counts = (np.zeros(2), words(mine), np.zeros(2, dtype=np.int64))
        memory = Memory(parameters, *kept[:2], value, *kept[2:], *counts)
        room, x = new_room(policy), np.empty(n)

        def act(memory, seen):
            world.write(seen, x)
            return best_output(policy, memory.parameters, room, x, UNMOVED)

        lesson = partial(try_batches, world, settings, room)
        options = (self.n_steps, self.n_evaluations, self.stop_at, self._longest(), self.chunk)
        none = np.zeros(0)
        first = Trained(memory, words(theirs), none, np.zeros(0, dtype=np.int64), 0, parameters, none)
        return partial(go_on, world, lesson, act, *options), first

    def _fitted(self, state):
        """Return the fitted attributes that a state amounts to."""
        found = {"parameters_": state.best, "returns_": state.returns, "lengths_": state.lengths}
        if self.baseline == "value":
            found["value_parameters_"] = state.memory.value
        return found | {"scores_": state.scores, "n_steps_": state.steps}

    def predict_proba(self, observations):
        """Return the probability of each action for each observation, (n, actions)."""
        check_is_fitted(self)
        return self._outputs(observations, self._shape(self.n_features_in_, self.n_outputs_, "softmax"), self.parameters_)

    def predict(self, observations):
        """Return the most probable action for each observation."""
        return self.predict_proba(observations).argmax(axis=1)

    def _act(self, world, seen):
        return int(self.predict([seen])[0])

    def certify(self, env, y=None):
        """Prove the fit by repeating it, and the derivatives by differences; tell how good it is where the law is known."""
        check_is_fitted(self)
        world = self._same_size(world_of(env))
        state, checks = self._replay(world)
        checks.append(self._derivatives(world, self._shape(self.n_features_in_, self.n_outputs_, "softmax"), self.parameters_))
        mdp = model_of(world, self.gamma_)
        if mdp is not None:
            limit = told_or_judged(state is not None, LOSS_LIMIT)
            checks.append(policy_check(mdp, self.predict(np.arange(mdp.n_states)), reached(mdp), limit=limit))
        return Certificate(*checks, subject=repr(self))
