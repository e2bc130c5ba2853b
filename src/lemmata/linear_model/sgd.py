"""Linear classifiers by stochastic gradient descent.

Minimize (1/S) Σ sᵢ ℓ(yᵢ(w·xᵢ + b)) + α/2 ‖w‖² over planes (w, b), ℓ any convex loss of the margin, by one step for each visit
of a row; `stochastic_gradient` has the steps, `stochastic` the order of the visits. It stops when the mean loss over an epoch
has not fallen by more than tol (of it, or of 1 if it is less) for five epochs: near the minimum, not at it.
Certificate: the fit is a function of the data, the parameters and the seed, so it is computed again, an identity; and the dual
problem bounds how much better any planes can be, which is told and not judged. The same machine gives the same bits; another
kind of processor rounds otherwise.

Bottou, Neural Networks: Tricks of the Trade (2012). Zhang, ICML (2004).
"""

import warnings
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, gap, same
from lemmata.core.estimator import Iterative, as_output
from lemmata.core.iterate import iterate
from lemmata.core.random import generator
from lemmata.linear_model.margin_losses import LOSSES
from lemmata.linear_model.stochastic import OneVersusRest, decision, mixed
from lemmata.linear_model.stochastic_gradient import Settings, epoch, objective_at, objective_bound, start
from lemmata.optimize.rules import RULES, Rule
from lemmata.optimize.schedules import Schedule, constant, inverse, inverse_sqrt

SCHEDULES = {"constant": constant, "inverse": inverse, "inverse_sqrt": inverse_sqrt}
CHANCES = {"logistic", "log_loss", "deviance", "modified_huber"}  # losses whose minimizer is a function of the probability


def optimal(alpha, loss):
    """Return the schedule 1/(α(t₀ + t)) of Bottou, whose first step is as long as weights of a usual size suggest.

    For losses with slopes steeper than 1 the first step is shorter than scikit-learn's, which forgets the slope's sign.

    Examples
    --------
    >>> rate = optimal(0.0001, LOSSES["hinge"])
    >>> rate(1), rate(1001)
    (10.0, 5.0)
    """
    usual = alpha**-0.25  # Bottou's guess of the size of the weights: there the penalty α‖w‖² is √α
    first = float(usual / max(1.0, abs(loss.derivative(-usual))))
    return Schedule(first, power=1.0, decay=first * alpha)


def probability_block(X, weight, coef, intercept, loss):
    """Probabilities of the classes, (n, K): each from its own score, then made to sum to one."""
    scores = decision(X, coef, intercept)
    if loss == "modified_huber":
        p = (np.clip(scores, -1, 1) + 1) / 2
    else:
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-scores * (2 if loss == "deviance" else 1)))
    if len(coef) == 1:
        return np.column_stack([1 - p[:, 0], p[:, 0]])
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1 / len(coef))


class SGDClassifier(Iterative, OneVersusRest):
    """Fit linear classifiers by stochastic gradient descent; each class against the rest if there are more than two.

    Parameters
    ----------
    loss : "hinge", "squared_hinge", "logistic" (or "log_loss"), "deviance", "exponential", "squared", "modified_huber" or
        "perceptron", as `margin_losses` has them.
    rule : How a gradient becomes a step: "sgd" (also None), "momentum", "adagrad", "rmsprop", "adam", or a rule of
        `lemmata.optimize`, which then also says how long steps are. Plain steps cost as much as the row has numbers that are
        not zero; the others touch all columns.
    alpha : Weight α of the penalty.
    fit_intercept : Whether the planes may lie off the origin; the intercept is not penalized.
    max_iter : Epochs at most.
    tol : Stop when the mean loss over an epoch has not fallen by this share of it (or of 1, if it is less) for five epochs;
        None to go on until max_iter.
    shuffle : Whether rows are visited in random order, as `stochastic` says, rather than in that of the table.
    average : Whether to give the average of the weights after each visit instead of the last ones.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    learning_rate : Length of step t: "optimal", 1/(α(t₀ + t)) with t₀ from the loss; "constant", eta0; "inverse_sqrt", eta0/√t;
        "inverse", eta0/t. Adagrad, RMSProp and Adam have their own measure, and take "optimal" for "constant".
    eta0 : Length of the first step, where it is not "optimal".
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : Labels; the single plane of two classes has the second on its positive side.
    coef_, intercept_ : Planes, (K, d) and (K,), or (1, d) and (1,) for two classes.
    objective_ : What is minimized, of each problem, at these planes.
    t_ : Steps taken by the problem that took most.
    seed_ : Seed of the order of the visits, with `shuffle`.
    n_iter_ : Epochs.
    converged_ : Whether the loss had stopped falling.
    trace_ : Mean loss of the rows as they are visited, plus the penalty, summed over the problems, for each epoch.

    Examples
    --------
    >>> X, y = [[0.0, 1.0], [1.0, 0.5], [3.0, 2.0], [4.0, 4.0]], ["no", "no", "yes", "yes"]
    >>> model = SGDClassifier(random_state=0).fit(X, y)
    >>> model.predict([[0.5, 0.5], [4.0, 3.0]])
    array(['no', 'yes'], dtype='<U3')
    >>> certificate = model.certify(X, y)
    >>> certificate.holds, [check.name for check in certificate]
    (True, ['coefficients', 'intercept', 'steps', 'objective', 'gap'])
    >>> SGDClassifier("logistic", random_state=0).fit(X, y).predict_proba(X).shape
    (4, 2)
    """

    _parameter_constraints = {
        "loss": [StrOptions(set(LOSSES) - {"zero_one"})],
        "rule": [StrOptions(set(RULES)), Rule, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "average": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "learning_rate": [StrOptions({"optimal", *SCHEDULES})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        loss="hinge",
        *,
        rule=None,
        alpha=0.0001,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-3,
        shuffle=True,
        average=False,
        random_state=None,
        learning_rate="optimal",
        eta0=0.01,
        verbose=0,
        checkpoint=None,
    ):
        self.loss = loss
        self.rule = rule
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.average = average
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y; a weight means repetition. X may also be a Parquet path, a Dask table, an iterator."""
        blocks = mixed(self._labeled(X, y, sample_weight, reset=True, order="C"))
        seed, (settings, rule) = self._seed(), self._settings()

        def fitted(state):
            return dict(zip(("coef_", "intercept_"), self._planes(state, blocks.dtype), strict=True))

        step, first = self._steps(blocks, seed)
        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(step, first, tol=0.0, monotone=None, name="SGDClassifier", fitted=fitted)
        self._keep(run.state, blocks.dtype, rule)
        self.n_iter_, self.trace_ = run.n_iter, run.trace
        self.converged_ = run.converged and (self.tol is None or not run.state.active.any())
        values, _ = objective_at(blocks, settings, LOSSES[self.loss], self.coef_, self.intercept_)
        self.objective_ = values if len(values) > 1 else float(values[0])
        vars(self).pop("seed_", None)
        if seed is not None:
            self.seed_ = seed
        if run.converged and not self.converged_:
            message = f"SGDClassifier's loss still falls after {run.n_iter} epochs; raise max_iter or tol."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on for one epoch over some rows in memory; the first call names all classes. There is no certificate then."""
        first = not hasattr(self, "coef_")
        blocks = self._lesson(X, y, classes, sample_weight, first=first)
        settings, rule = self._settings()
        state = start(len(self._positive()), blocks.n_columns, self.average, rule.uses)
        if first:
            self.n_iter_ = 0
        else:
            state = state._replace(epoch=self.n_iter_, visits=float(self.t_), **self._recalled())
        state, _ = epoch(blocks, settings, self._seed(), None, state)
        self._keep(state, blocks.dtype, rule)
        self.n_iter_ = state.epoch
        for name in ("objective_", "seed_", "trace_", "converged_"):
            vars(self).pop(name, None)
        return self

    def _seed(self):
        return int(generator(self.random_state).integers(2**32)) if self.shuffle else None

    def _settings(self):
        """Return what the steps need to know, and the rule."""
        loss, rule = LOSSES[self.loss], self.rule
        if isinstance(rule, Rule):
            schedule = rule.compiled_schedule
        else:
            rule = RULES[rule or "sgd"]()
            named = self.learning_rate
            if named == "optimal" and rule.uses[1]:  # steps divided by the size of gradients have the size of weights
                named = "constant"
            if named == "optimal" and self.alpha == 0:
                raise ValueError('learning_rate="optimal" needs a penalty: let alpha be positive, or choose another schedule.')
            schedule = optimal(self.alpha, loss) if named == "optimal" else SCHEDULES[named](self.eta0)
        eta, power, decay = schedule.constants
        if power == 0:  # the same as a fall of no speed, of which the compiled loop has a fast form
            power, decay = 1.0, 0.0
        numbers = (float(self.alpha), eta, power, decay, float(self.fit_intercept))
        return Settings(self._positive(), loss.code, *numbers, rule.code, rule.constants), rule

    def _steps(self, blocks, seed):
        """Return the step of a fit, one epoch, and the state before the first."""
        settings, rule = self._settings()

        def step(state):
            state, objective = epoch(blocks, settings, seed, self.tol, state)
            ended = not state.active.any() or state.epoch == self.max_iter  # what that means is said in `fit`
            return state, objective, 0.0 if ended else 1.0

        return step, start(len(settings.positive), blocks.n_columns, self.average, rule.uses)

    def _planes(self, state, dtype):
        """Return coefficients and intercepts: the last, or the average."""
        weights = state.sums / np.maximum(state.seen, np.finfo(float).tiny)[:, None] if self.average else state.weights
        return as_output(weights[:, :-1].copy(), dtype), as_output(weights[:, -1].copy(), dtype)

    def _keep(self, state, dtype, rule):
        """Keep the planes, and what `partial_fit` cannot go on without."""
        self.coef_, self.intercept_ = self._planes(state, dtype)
        self.t_ = state.visits
        names = ["sums"] * self.average + [f"moments{i + 1}" for i in range(2) if rule.uses[i]]
        vars(self).pop("_memory", None)
        if names:
            self._memory = {name: getattr(state, name) for name in ("weights", "seen", *names)}

    def _recalled(self):
        """Return the parts of the state that `_keep` kept."""
        if hasattr(self, "_memory"):
            return self._memory
        return {"weights": np.column_stack([self.coef_, self.intercept_]).astype(float)}

    @available_if(lambda self: self.loss in CHANCES)
    def predict_proba(self, X):
        """Give the probability of each class, (n, K); for losses that have one."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return as_output(blocks.map(probability_block, self.coef_, self.intercept_, self.loss), blocks.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fit by repeating it, and bound how far its objective is from the least."""
        check_is_fitted(self)
        blocks = mixed(self._labeled(X, y, sample_weight, reset=False, order="C"))
        if not hasattr(self, "objective_") or self.shuffle != hasattr(self, "seed_"):
            claim = "`fit` can be repeated; what `partial_fit` was shown, and when, is not known"
            return Certificate(Check("replay", np.inf, SAME_LIMIT, "proof", claim), subject=repr(self))
        step, first = self._steps(blocks, getattr(self, "seed_", None))
        state = iterate(step, first, max_iter=self.max_iter, tol=0.0, name="replay").state
        coef, intercept = self._planes(state, self.coef_.dtype)
        given = (blocks, self._settings()[0], LOSSES[self.loss], self.coef_, self.intercept_)
        values, sums = objective_at(*given)
        bounds = objective_bound(*given, sums)
        worst = int(np.argmax(values - bounds))
        claim = "no planes lower the objective by more than this share of it"
        return Certificate(
            same(self.coef_, coef, "coefficients", "the same visits lead to the same coefficients"),
            same(self.intercept_, intercept, "intercept", "and to the same intercepts"),
            Check("steps", abs(float(self.t_) - state.visits), 0.0, "proof", "after as many steps"),
            same(np.atleast_1d(self.objective_), values, "objective", "mean loss plus penalty at these planes"),
            gap(values[worst], bounds[worst], float(given[2].value(0.0)), claim, limit=np.inf),
            subject=repr(self),
        )
