"""What the classifier and the regressor share: a network fitted to a table by mini-batches, or by L-BFGS on all rows at once.

    minimize  (1/S) Σᵢ wᵢ ℓ(f(xᵢ), yᵢ) + α/(2S) ‖W‖²,     S the weight of a batch, or of all rows

over weights and biases, from a start that is drawn. Columns are centered and scaled inside, so that their units do not matter.
Mini-batch training (`training`) goes through the table epoch by epoch, block after block, and ends when the loss (or the score
of rows held out) has not improved by `tol` for some epochs: near a stationary point, not at it. L-BFGS goes on until the
gradient is next to nothing.
Certificate: the fit is a function of data, parameters and seed, so it is computed again, an identity; back-propagation is
compared with central differences at the fitted weights; and how far the weights are from rest is told, and judged where L-BFGS
was to find it. Another kind of processor rounds otherwise, and training may carry that far.

LeCun, Bottou, Orr & Müller, Neural Networks: Tricks of the Trade (1998).
"""

import warnings
from functools import partial
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.estimator import Estimator, Iterative, as_output
from lemmata.core.iterate import KEEP_LAST, replay
from lemmata.core.moments import spread_block
from lemmata.core.random import generator
from lemmata.core.visits import unit_of
from lemmata.linear_model.stochastic import fold
from lemmata.neural_network.epochs import Going, Lesson, State, judge_block, parameters_of, visit_block
from lemmata.neural_network.layers import STARTS, draw_parameters, hidden_sizes, layer, n_parameters, new_shape, penalized
from lemmata.neural_network.losses import pair
from lemmata.neural_network.multilayer_certificate import checks_of
from lemmata.neural_network.passes import gradient_block
from lemmata.neural_network.steps import Moving, begin, new_steps
from lemmata.neural_network.training import batch_of
from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step
from lemmata.optimize.rules import RULES, Rule

LARGEST = 200  # weight of a batch that is a tenth of the table
FEWEST = 2  # rows held out: of one alone the targets do not vary
REST = 1e-2  # share of tol that the largest entry of a gradient may have where L-BFGS stops; the certificate asks for rest


class Multilayer(Iterative, Estimator):
    """Base of networks fitted to tables; the target, the last layer and the loss are those of the subclass."""

    _parameter_constraints = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions({"identity", "logistic", "sigmoid", "tanh", "relu"})],
        "rule": [StrOptions({*RULES, "lbfgs"}), Rule],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "start": [StrOptions(set(STARTS))],
        "standardize": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        hidden_layer_sizes=(100,),
        activation="relu",
        *,
        rule="adam",
        alpha=0.0001,
        batch_size="auto",
        learning_rate_init=0.001,
        dropout=0.0,
        clip=None,
        start="glorot",
        standardize=True,
        max_iter=200,
        tol=1e-4,
        n_iter_no_change=10,
        shuffle=True,
        early_stopping=False,
        validation_fraction=0.1,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.rule = rule
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.dropout = dropout
        self.clip = clip
        self.start = start
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coefs_(self):
        """Weights of each layer, (inputs, outputs), as views into `parameters_`."""
        return [layer(self._shape(), self.parameters_, k)[0] for k in range(len(self._sizes()) - 1)]

    @property
    def intercepts_(self):
        """Biases of each layer, as views into `parameters_`."""
        return [layer(self._shape(), self.parameters_, k)[1] for k in range(len(self._sizes()) - 1)]

    @property
    def loss_curve_(self):
        """Loss of each epoch; scikit-learn's name of `trace_`."""
        return self.trace_.tolist()

    @property
    def n_layers_(self):
        """Rows of units, those of the inputs and of the outputs included."""
        return len(self._sizes())

    @property
    def n_outputs_(self):
        """Units of the last layer."""
        return self._n_outputs()

    @property
    def out_activation_(self):
        """Name of the last activation."""
        return self._last()

    def _hidden(self):
        return hidden_sizes(self.hidden_layer_sizes)

    def _sizes(self):
        return (self.n_features_in_, *self._hidden(), self._n_outputs())

    def _shape(self):
        return new_shape(self._sizes(), [self.activation] * len(self._hidden()) + [self._last()])

    def _rule(self):
        return self.rule if isinstance(self.rule, Rule) else RULES[self.rule](self.learning_rate_init)

    def _seed(self):
        return int(generator(self.random_state).integers(2**32))

    def _plan(self, blocks, seed, scaling, held_out=0):
        shape, rule, (unit, total) = self._shape(), self._rule(), unit_of(blocks)
        steps = new_steps(rule, [shape], blocks.dtype, self.alpha, self.clip)
        plan = (tuple(shape), pair(self._loss, shape.codes[-1]), float(self.dropout), tuple(steps))
        size = batch_of(self.batch_size, total, LARGEST)
        return Lesson(plan, unit, size, bool(self.shuffle), *scaling, held_out, blocks.n_rows, seed)

    def _held_out(self, n_rows):
        """Return how many of all rows are held out."""
        if not self.early_stopping:
            return 0
        held = max(int(np.ceil(self.validation_fraction * n_rows)), FEWEST)
        if held >= n_rows:
            raise ValueError(f"Of {n_rows} rows, {held} are to be held out: lower validation_fraction, or fit more rows.")
        return held

    def _scaling(self, blocks):
        """Return means and scales of the columns, or nothing."""
        if not self.standardize:
            return None, None
        found = blocks.reduce(_spread_of_rows)
        return found.mean, found.scale

    def _fit(self, blocks, given):
        """Fit to blocks of (X, Y, weight); `given` are the data as callbacks want them."""
        blocks, targets = self._targets(blocks)
        seed, scaling = self._seed(), self._scaling(blocks)
        run = self._run(blocks, seed, scaling, targets, given)
        self._keep(run.state, blocks.dtype, scaling, targets)
        self.seed_, self._order_seed, self.loss_ = seed, seeds(seed)[0], run.objective
        self.n_iter_, self.trace_ = run.n_iter, run.trace
        self.converged_ = run.converged and (self.tol is None or self.rule == "lbfgs" or self._rested(run.state))
        vars(self).pop("validation_scores_", None)
        if self.early_stopping and self.rule != "lbfgs":
            self.validation_scores_ = np.array(run.state.scores)
        if run.converged and not self.converged_:
            what = "score of the rows held out still rises" if self.early_stopping else "loss still falls"
            message = f"{type(self).__name__}'s {what} after {run.n_iter} epochs; raise max_iter or tol."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self

    def _run(self, blocks, seed, scaling, targets, given=None):
        """Run the fit; without data for callbacks it is a replay, which shows nothing and keeps nothing."""
        step, first, tol = self._steps(blocks, seed, scaling)
        if given is None:
            return replay(step, first, max_iter=self.max_iter, tol=tol, ended=self._ended)

        def fitted(state):
            return self._attributes(state, blocks.dtype, scaling, targets)

        with self._fitting(blocks, **given) as fitting:
            return fitting.iterate(step, first, tol=tol, **KEEP_LAST, name=type(self).__name__, fitted=fitted)

    def _ended(self, state):
        """Tell whether the fit, which may have been cut short, had come as far; L-BFGS does not count its steps."""
        return isinstance(state, State) and state.steps >= self.t_

    def _steps(self, blocks, seed, scaling):
        """Return the step of a fit, the state before the first, and the residual at which it ends."""
        shape, (order_seed, start_seed) = self._shape(), seeds(seed)
        if self.rule == "lbfgs":
            start = draw_parameters(shape, np.random.default_rng(start_seed), np.float64, self.start)
            objective = partial(self._objective, blocks, scaling, unit_of(blocks)[0])
            return partial(lbfgs_step, objective), lbfgs_start(objective, start), REST * (self.tol or 0.0)
        start = draw_parameters(shape, np.random.default_rng(start_seed), blocks.dtype, self.start)
        held = self._held_out(blocks.n_rows)
        lesson, moving = self._plan(blocks, order_seed, scaling, held), begin(self._rule(), start)
        first = State(0, *moving, np.inf, 0, start[: 0 if held == 0 else None].copy(), ())
        return partial(self._epoch, blocks, lesson), first, 0.0

    def _epoch(self, blocks, lesson, state):
        """Go through all rows once; return (state, loss, 0 at the end or 1)."""
        rng = np.random.default_rng([lesson.seed, 0, state.epoch])
        going = Going(Moving(state.parameters, state.moments1, state.moments2, state.steps), rng, 0, 0.0, 0.0)
        going, _ = fold(blocks, partial(visit_block, lesson=lesson), going)
        loss = mean_loss(going, state.epoch + 1)
        mark, kept, scores = loss, state.kept, state.scores
        if lesson.held_out:
            score = self._held_out_score(blocks, lesson, going.moving.parameters)
            mark, scores = -score, (*scores, score)
            if mark < state.best:
                kept = going.moving.parameters.copy()
        idle = 0 if mark < state.best - (self.tol or 0.0) else state.idle + 1
        state = State(state.epoch + 1, *going.moving, min(mark, state.best), idle, kept, scores)
        ended = (self.tol is not None and self._rested(state)) or state.epoch == self.max_iter
        return state, loss, 0.0 if ended else 1.0

    def _rested(self, state):
        return state.idle >= self.n_iter_no_change

    def _held_out_score(self, blocks, lesson, parameters):
        visit = partial(judge_block, lesson=lesson, parameters=parameters, marks=self._marks)
        (_, sums), _ = fold(blocks, visit, (0, np.zeros(4)))
        return self._score_of(sums)

    def _objective(self, blocks, scaling, unit, parameters):
        """Return the penalized mean loss over all rows, and its gradient; the penalty is that of rows of the weight `unit`."""
        shape = self._shape()
        loss = pair(self._loss, shape.codes[-1])
        weight, value, gradient = blocks.reduce(gradient_block, tuple(shape), parameters, loss, *scaling)
        pull = unit * self.alpha * penalized(shape) * parameters
        return (value + 0.5 * float(pull @ parameters)) / weight, (gradient + pull) / weight

    def _targets(self, blocks):
        """Return the blocks with targets as the loss wants them, and the fitted attributes that say how."""
        return blocks, {}

    def _known_targets(self, blocks):
        """Return what `_targets` does, as the fitted attributes say."""
        return blocks, {}

    def _keep(self, state, dtype, scaling, targets):
        """Keep the parameters, and what `partial_fit` cannot go on without; forget what another fit left."""
        for name in ("mean_", "scale_", "target_mean_", "target_scale_", "_moments"):
            vars(self).pop(name, None)
        vars(self).update(self._attributes(state, dtype, scaling, targets))
        self.t_ = state.steps if isinstance(state, State) else 0
        if isinstance(state, State):
            self._moments = (self._rule().code, state.moments1, state.moments2)

    def _attributes(self, state, dtype, scaling, targets):
        """Give the fitted attributes that predictions follow from."""
        scales = {} if scaling[0] is None else dict(zip(("mean_", "scale_"), scaling, strict=True))
        return {"parameters_": as_output(parameters_of(state), dtype), "_layout": self._sizes(), **scales, **targets}

    def _moving(self, dtype):
        """Return the parameters as they were left, and what the rule remembers: nothing, if it was another one until now."""
        parameters, rule = self.parameters_.astype(dtype), self._rule()
        code, *moments = getattr(self, "_moments", (None,))
        if code != rule.code:
            return begin(rule, parameters)
        return Moving(parameters, *(m.astype(dtype) for m in moments), self.t_)

    def _go_on(self, blocks, first):
        """Go through some rows once more, from where the last call left off."""
        if self.rule == "lbfgs":
            raise ValueError("partial_fit goes on by mini-batches; choose another rule than 'lbfgs'.")
        if self.early_stopping:
            raise ValueError("partial_fit holds no rows out; leave early_stopping to fit.")
        if first:
            (blocks, targets), scaling = self._targets(blocks), self._scaling(blocks)
            self._order_seed, start_seed = seeds(self._seed())
            start = draw_parameters(self._shape(), np.random.default_rng(start_seed), blocks.dtype, self.start)
            moving, self.n_iter_ = begin(self._rule(), start), 0
        else:
            (blocks, targets), (_, _, *scaling) = self._known_targets(blocks), self._network()
            moving = self._moving(blocks.dtype)
        lesson = self._plan(blocks, self._order_seed, scaling)
        going = Going(moving, np.random.default_rng([lesson.seed, 0, self.n_iter_]), 0, 0.0, 0.0)
        going, _ = fold(blocks, partial(visit_block, lesson=lesson), going)
        loss = mean_loss(going, self.n_iter_ + 1)
        self._keep(State(0, *going.moving, 0.0, 0, moving.parameters[:0], ()), blocks.dtype, scaling, targets)
        self.loss_, self.n_iter_ = loss, self.n_iter_ + 1
        for name in ("seed_", "trace_", "converged_", "validation_scores_"):
            vars(self).pop(name, None)
        return self

    def _network(self):
        """Return shape, parameters, means and scales, checked before compiled code reads them."""
        check_is_fitted(self)
        shape, sizes = self._shape(), self._sizes()
        if sizes != self._layout:
            raise ValueError(f"The network was fitted with the layers {self._layout} and is now to have {sizes}: fit it again.")
        if self.parameters_.shape != (n_parameters(shape),):
            raise ValueError(f"parameters_ has the shape {self.parameters_.shape}, which is not that of a fit.")
        return tuple(shape), self.parameters_, getattr(self, "mean_", None), getattr(self, "scale_", None)

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fit by repeating it, and its derivatives by differences; tell how far the weights are from rest."""
        check_is_fitted(self)
        return Certificate(*checks_of(self, self._table(X, y, sample_weight, reset=False)), subject=repr(self))


def mean_loss(going, epoch):
    """Return the mean loss over an epoch, whose steps must have stayed among the numbers."""
    loss = going.total / going.weight
    if not (np.isfinite(loss) and np.isfinite(going.moving.parameters).all()):
        raise ValueError(f"The steps left the numbers in epoch {epoch}; lower learning_rate_init, or set clip.")
    return loss


def seeds(seed):
    """Return two seeds made of one: of the order of the visits, and of the start."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(2)]


def _spread_of_rows(X, Y, weight):
    return spread_block(X, weight)
