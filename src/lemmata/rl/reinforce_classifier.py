"""A classifier that is never told a label, only what the label it chose has earned: REINFORCE on a table.

    maximize  E[R] = (1/S) Σᵢ wᵢ Σ_a π_w(a | xᵢ) R(a, yᵢ),      w ← w + η (R(a, yᵢ) − b) ∇ log π_w(a | xᵢ),   a ~ π_w(· | xᵢ)

π is a network with a softmax, R a matrix of rewards, 1 for the right label by default. The mean of a step over the draws is the
gradient of E[R], for any b that does not depend on the draw (`policy_gradient`) [1]; here b is the mean of the rewards of the
last batches. It is what is left of learning with labels when only clicks, or refunds, come back. `predict_proba` is the policy:
how often each label would be chosen. It has no reason to be calibrated, for E[R] is largest where the policy is certain.

Certificate: the fit is a function of data, parameters and seed, so it is computed again, an identity. And at the fitted weights
the mean of the steps, summed over all actions of some rows, is compared with central differences of E[R].

[1] Williams, Machine Learning 8 (1992).
"""

from functools import partial
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.estimator import Classifier, Iterative, as_output
from lemmata.core.iterate import KEEP_LAST, replay
from lemmata.core.moments import spread_block
from lemmata.core.random import generator
from lemmata.core.xoshiro import seed as words
from lemmata.linear_model.stochastic import fold, mixed
from lemmata.neural_network.classifier import label_block, probability_block
from lemmata.neural_network.layers import hidden_sizes
from lemmata.neural_network.network import LIMIT, directions_of, disagreement, plain_forward
from lemmata.optimize.rules import RULES, Rule
from lemmata.rl.network_learner import NETWORK, draw_start, network_shape, of_a_fit
from lemmata.rl.policy_gradient import mean_score
from lemmata.rl.reward_epochs import Lesson, State, earned_block, visit_block

SHOWN = 64  # rows on which the mean of the steps is compared with differences
LINEAR_RATE, DEEP_RATE = (
    0.02,
    0.005,
)  # of Adam, by which digits, wine and tumors are learned best, without and with hidden units


def spread_of_rows(X, y, weight):
    """Spread of the columns of a block with labels."""
    return spread_block(X, weight)


class ReinforceClassifier(Iterative, Classifier):
    """Learn to label rows from rewards alone, by REINFORCE.

    Parameters
    ----------
    hidden_layer_sizes : Units of each hidden layer; () for none, which is a linear model.
    activation : Of the hidden units: "relu", "tanh", "logistic" (or "sigmoid"), "identity".
    reward : What choosing a label earns: a matrix with a row for each label that is chosen and a column for each that is right,
        in the order of `classes_`; or a function of the two labels. None: 1 if they are the same, else 0.
    baseline : Whether the mean of the last rewards is taken from each, which lowers the variance.
    entropy : Weight of the entropy of the policy, which keeps it from being certain: two hidden layers of 64 units go on trying
        all ten digits with 0.05, and may forget one with 0.
    rule : How a gradient becomes a step: "adam", "sgd", "momentum", "adagrad", "rmsprop", or a rule of `lemmata.optimize`,
        which then also says how long steps are.
    learning_rate : Length of steps, unless `rule` is a rule of its own. None is 0.02 without hidden units and 0.005 with them:
        with longer ones a policy is soon certain of a few labels, and never tries the others.
    batch_size : Visits between two steps.
    max_iter : Epochs.
    shuffle : Whether rows are visited in an order that is drawn anew in every epoch, within each block.
    random_state : Seed of the start, of the order of the rows and of the draws. The same seed gives the same bits for any
        number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : Labels.
    parameters_ : Weights and biases of all layers, one after another.
    reward_ : (K, K), what choosing a label (row) earns where another (column) is right.
    expected_reward_ : Mean reward of the fitted policy on the table.
    mean_, scale_ : What the columns are centered by and divided by.
    t_ : Steps.
    n_iter_ : Epochs.
    converged_ : Whether all of them were run.
    trace_ : Mean reward of the visits of each epoch.
    seed_ : Seed of the run.

    Examples
    --------
    >>> X, y = [[0.0, 1.0], [1.0, 0.5], [3.0, 2.0], [4.0, 4.0]], ["no", "no", "yes", "yes"]
    >>> model = ReinforceClassifier(random_state=0).fit(X, y)
    >>> model.predict([[0.5, 0.5], [4.0, 3.0]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        **{name: NETWORK[name] for name in ("hidden_layer_sizes", "activation", "random_state", "verbose")},
        "learning_rate": [*NETWORK["learning_rate"], None],
        "reward": ["array-like", callable, None],
        "baseline": ["boolean"],
        "entropy": [Interval(Real, 0, None, closed="left")],
        "rule": [StrOptions(set(RULES)), Rule],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        hidden_layer_sizes=(),
        activation="relu",
        *,
        reward=None,
        baseline=True,
        entropy=0.0,
        rule="adam",
        learning_rate=None,
        batch_size=32,
        max_iter=100,
        shuffle=True,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.reward = reward
        self.baseline = baseline
        self.entropy = entropy
        self.rule = rule
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y, which only say what is earned; a weight means repetition.

        X may also be a Parquet path, a Dask table, an iterator.
        """
        hidden_sizes(self.hidden_layer_sizes)
        blocks = mixed(self._labeled(X, y, sample_weight, reset=True, order="C"))
        seed, spread = int(generator(self.random_state).integers(2**32)), blocks.reduce(spread_of_rows)
        self.reward_ = self._rewards()
        step, first = self._steps(blocks, seed, spread)

        def fitted(state):
            return {"parameters_": as_output(state.parameters, blocks.dtype), "mean_": spread.mean, "scale_": spread.scale}

        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(step, first, tol=0.0, **KEEP_LAST, name="ReinforceClassifier", fitted=fitted)
        for name, value in fitted(run.state).items():
            setattr(self, name, value)
        self.t_, self.seed_ = run.state.steps, seed
        self.n_iter_, self.trace_, self.converged_ = run.n_iter, -run.trace, run.converged
        self.expected_reward_ = self._expected(blocks)
        return self

    def _rewards(self):
        """Return the matrix of rewards, checked."""
        labels, K = self.classes_.tolist(), len(self.classes_)
        given = np.eye(K) if self.reward is None else self.reward
        if callable(given):
            given = [[given(chosen, right) for right in labels] for chosen in labels]
        try:
            found = np.array(given, dtype=float)
        except (TypeError, ValueError):  # words, or rows that are not equally long
            found = np.zeros(0)
        if found.shape != (K, K) or not np.isfinite(found).all():
            raise ValueError(f"reward must have {K} rows and {K} columns of finite numbers, one each for {labels}.")
        return found

    def _shape(self):
        return network_shape(self.n_features_in_, self.hidden_layer_sizes, self.activation, len(self.classes_), "softmax")

    def _rate(self):
        """Return the length of steps."""
        if self.learning_rate is not None:
            return self.learning_rate
        return DEEP_RATE if hidden_sizes(self.hidden_layer_sizes) else LINEAR_RATE

    def _steps(self, blocks, seed, spread):
        """Return the step of a fit, one epoch, and the state before the first."""
        rule = self.rule if isinstance(self.rule, Rule) else RULES[self.rule](self._rate())
        shape, seeds = self._shape(), np.random.SeedSequence(seed).spawn(3)
        start, draws = (np.random.default_rng(child) for child in seeds[:2])
        parameters = draw_start(shape, start)
        moments = [np.zeros(len(parameters) if used else 0) for used in rule.uses]
        lesson = Lesson(
            tuple(shape),
            (rule.code, rule.constants, rule.compiled_schedule.constants),
            self.batch_size,
            bool(self.baseline),
            float(self.entropy),
            self.reward_,
            spread.mean,
            spread.scale,
            bool(self.shuffle),
            int(seeds[2].generate_state(1)[0]),
        )
        first = State(0, parameters, *moments, words(draws), np.zeros(2), np.zeros(2), 0)
        return partial(self._epoch, blocks, lesson), first

    def _epoch(self, blocks, lesson, state):
        """Visit all rows once; return (state, mean reward with the sign turned, 0 at the end or 1)."""
        rng = np.random.default_rng([lesson.seed, state.epoch])
        (state, _), _ = fold(blocks, partial(visit_block, lesson=lesson), (state._replace(earned=np.zeros(2)), rng))
        state = state._replace(epoch=state.epoch + 1)
        if not np.isfinite(state.parameters).all():
            raise ValueError(f"The steps left the numbers in epoch {state.epoch}; lower learning_rate.")
        return state, -state.earned[0] / state.earned[1], 0.0 if state.epoch == self.max_iter else 1.0

    def _expected(self, blocks):
        """Return the mean reward of the policy on rows."""
        weight, earned = blocks.reduce(earned_block, *self._network(), self.reward_)
        return earned / weight

    def _network(self):
        """Return shape, parameters, means and scales, checked before compiled code reads them."""
        check_is_fitted(self)
        shape = self._shape()
        return tuple(shape), of_a_fit(shape, self.parameters_), self.mean_, self.scale_

    def predict_proba(self, X):
        """Give the chance with which each label is chosen, (n, K)."""
        network, blocks = self._network(), self._blocks(X, reset=False)
        return as_output(blocks.map(probability_block, *network), blocks.dtype)

    def predict(self, X):
        """Give each row the label that is chosen most often."""
        network = self._network()
        return self._blocks(X, reset=False).map(label_block, *network, self.classes_)

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fit by repeating it, and the mean of its steps by differences of the expected reward."""
        check_is_fitted(self)
        blocks = mixed(self._labeled(X, y, sample_weight, reset=False, order="C"))
        spread = blocks.reduce(spread_of_rows)
        step, first = self._steps(blocks, self.seed_, spread)
        state = replay(step, first, max_iter=self.max_iter, ended=lambda state: state.steps >= self.t_).state
        floor = np.sqrt(np.finfo(float).eps) * float(np.abs(spread.scale).max())
        parameters = as_output(state.parameters, self.parameters_.dtype)
        return Certificate(
            same(self.parameters_, parameters, "weights", "the same visits and draws lead to these weights"),
            Check("steps", abs(self.t_ - state.steps), 0.0, "proof", "after as many steps"),
            same(self.mean_, spread.mean, "means", "columns are centered by their means", floor=floor),
            same(self.scale_, spread.scale, "scales", "and divided by their standard deviations"),
            same(self.reward_, self._rewards(), "rewards", "rewards are those that were asked for"),
            same(self.expected_reward_, self._expected(blocks), "expected reward", "the policy earns as much on these rows"),
            self._unbiased(blocks),
            subject=repr(self),
        )

    def _unbiased(self, blocks):
        """Compare the mean of the steps over all actions, in some rows, with differences of the expected reward."""
        _, parameters, _, _ = self._network()
        X, y, weight = (None if part is None else part[:SHOWN] for part in blocks.first())
        Z = (np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float) - self.mean_) / self.scale_
        earned = self.reward_.T[np.asarray(y, dtype=int)] * (
            1.0 if weight is None else np.asarray(weight, dtype=float)[:, None]
        )

        def expected(parameters):
            return float((plain_forward(self._shape(), parameters, Z)[1] * earned).sum())

        # any baseline will do, and a wrong one shows whether it does
        gradient, value = mean_score(self._shape(), parameters, Z, earned - earned.max()), expected(parameters)
        error = disagreement(expected, parameters, gradient, directions_of(self._shape(), np.random.default_rng(0)), value)
        claim = "steps are right on average: the mean of R ∇ log π over all actions is the gradient of the expected reward"
        return Check("mean of the steps", error, LIMIT, "proof", claim)
