"""Maximum-entropy classification: the flattest probabilities that expect of every feature what the data show.

Among all P(y | x), maximize the entropy Σᵢ sᵢ H(P(· | xᵢ)) subject to Σᵢ sᵢ Σ_y P(y | xᵢ) fⱼ(xᵢ, y) = Σᵢ sᵢ fⱼ(xᵢ, yᵢ) for each
feature fⱼ. The multipliers w of these constraints make P(y | x) = exp(Σⱼ wⱼ fⱼ(x, y)) / Z(x) (that of Σ_y P(y | x) = 1 is
log Z − 1), and maximize the log-likelihood Σ s log P(y | x): the two problems are dual to each other, and at the optimum the
entropy equals minus the log-likelihood [1, 2]. The penalty ‖w‖²/2C lets the expectations differ by w/C. The objective is
convex; Newton's method, or L-BFGS with a Hessian as preconditioner, finds its optimum. Weights that change no score are
removed: of all solutions the shortest is kept.
Certificate: let δ be the Newton step from the fit, and q = p + (diag p − ppᵀ) F δ the probabilities that it would give to first
order, F the features of a row. They satisfy the constraints exactly, with (w + δ)/C; if they are positive, no weights have an
objective below Σ s H(q) − ‖w + δ‖²/2C, and without a penalty the q are the proof that an optimum exists.

[1] Jaynes, Phys. Rev. 106 (1957). [2] Berger, Della Pietra & Della Pietra, Computational Linguistics 22 (1996).
"""

from dataclasses import replace
from numbers import Integral, Real
from os import PathLike

import numpy as np
from scipy.special import xlogy
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import Largest
from lemmata.core.certificate import EQUI_LIMIT, SAME_LIMIT, TINY, Certificate, Check, equi, gap, length
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Classifier, Iterative, as_output
from lemmata.core.threads import serial_blas
from lemmata.linear_model import logistic_bounds, logistic_solvers
from lemmata.linear_model.joint_features import ClassIndexed, ClassObjective, Joint, log_linear
from lemmata.linear_model.link_objective import BALANCED, KEPT, balanced_step, dual_excess
from lemmata.linear_model.links import log_sum_exp
from lemmata.linear_model.logistic import LARGE, NOTHING, ROWS
from lemmata.linear_model.logistic_loss import FULL, probabilities
from lemmata.linear_model.logistic_solvers import DENSE, conjugate_gradients
from lemmata.linear_model.separability import separation

NOISE = 1e-28  # variance, in squared units, of a feature that is constant but for rounding


def score_block(X, weight, design, weights):
    """Scores of a block."""
    return design.scores(X, weights)


def expectation_block(X, weight, design, weights):
    """Sum over a block what the model expects of the features, and the weights of the rows."""
    s = np.ones(X.shape[0]) if weight is None else weight
    return design.moments(X, s[:, None] * probabilities(design.scores(X, weights))), float(s.sum())


def empirical_block(X, y, weight, design):
    """Sum over a block the features of the rows with their own classes, and the weights of the rows."""
    s = np.ones(X.shape[0]) if weight is None else weight
    return design.moments(X, s[:, None] * (y[:, None] == np.arange(design.n_classes))), float(s.sum())


def entropy_block(X, y, weight, design, weights, along):
    """Sum over a block s H(q) for the probabilities q after a step, to first order, and s (1 − q) of the own classes.

    The first is minus infinity if a probability is negative, or so much smaller than before that it may be.
    """
    P, V = probabilities(design.scores(X, weights)), design.scores(X, along)
    change = 1 + V - (P * V).sum(axis=1, keepdims=True)
    if not (change >= KEPT).all():
        return -np.inf, 0.0
    Q = P * change
    entropy, wrong = -xlogy(Q, Q).sum(axis=1), 1 - Q[np.arange(len(y)), y]
    s = np.ones(len(y)) if weight is None else weight
    return float(s @ entropy), float(s @ wrong)


def margin_block(X, y, weight, design, weights):
    """Minus the least margin of a block, the score of the own class above the best other, and the largest range of scores."""
    scores, rows = design.scores(X, weights), np.arange(len(y))
    spread = np.ptp(scores, axis=1)
    own = scores[rows, y]
    scores[rows, y] = -np.inf
    kept = slice(None) if weight is None else weight > 0
    short = (scores.max(axis=1) - own)[kept]
    return Largest(float(short.max(initial=-np.inf))), Largest(float(spread[kept].max(initial=0.0)))


def dual_value(problem, theta, gradient):
    """Return the dual objective at the probabilities after a Newton step: a lower bound, −∞ where one is negative."""
    step, left = balanced_step(problem, theta, gradient)
    weights, along = problem.weights(theta), problem.weights(step)
    entropy, wrong = problem.blocks.reduce(entropy_block, problem.design, weights, along)
    if problem.total * np.abs(left).max() > BALANCED * wrong:  # in units of the features' spread
        return -np.inf
    rounding = np.abs(left) @ np.abs(theta)  # what is left of the constraints
    return (entropy - problem.penalty / 2 * problem.penalized(weights + along)) / problem.total - rounding


def excess(problem, theta):
    """Bound by how much the objective exceeds its least value at θ; say whether that is a "proof" or "evidence"."""
    value, gradient = problem(theta)
    if problem.n_parameters <= DENSE:
        return dual_excess(dual_value, problem, theta, value, gradient), "proof"
    if isinstance(problem, ClassObjective):
        return logistic_bounds.excess(problem, theta)
    if problem.penalty > 0:  # the objective is strongly convex
        return problem.total * length(gradient * problem.unit) ** 2 / (2 * problem.penalty), "proof"
    with serial_blas():
        step = conjugate_gradients(lambda v: problem.curvature(theta, v), gradient, problem.preconditioner(theta))
    return gradient @ step / 2, "evidence"


def unseen(problem):
    """Return an orthonormal basis of the θ, in units of length, that change no probability; None if there are too many."""
    m = problem.n_parameters
    if m > DENSE:
        return None
    with serial_blas():
        H = problem.hessian(np.zeros(m))
        size = np.where(np.diag(H) > NOISE, np.sqrt(np.diag(H)), 1.0)
        values, vectors = np.linalg.eigh(H / size / size[:, None])
        none = values <= m * np.finfo(float).eps * max(values[-1], TINY)
        return np.linalg.qr(vectors[:, none] / (size * problem.length_unit)[:, None])[0]


def shortest(problem, theta, basis):
    """Return the shortest θ with the same probabilities; without a basis, the scores of all classes are made to sum to zero."""
    if basis is None:
        by_class = theta.reshape(-1, problem.n_scores)
        return theta if problem.n_scores == 1 else (by_class - by_class.mean(axis=1, keepdims=True)).ravel()
    t = theta / problem.length_unit
    return (t - basis @ (basis.T @ t)) * problem.length_unit


def refuse_separable(problem, theta):
    """Raise if the features separate the classes, so that no finite weights are best."""
    design, blocks, weights = problem.design, problem.blocks, problem.weights(theta)
    bound, kind = excess(problem, theta)
    deficit, spread = blocks.reduce(margin_block, design, weights)
    if kind == "proof" and np.isfinite(bound) and spread.value < LARGE:
        return
    separated = deficit.value < 0
    if not separated and blocks.n_rows * design.n_classes * len(weights) <= ROWS:
        X, y, weight = blocks.take(np.arange(blocks.n_rows))
        rows = np.array([F.toarray() if is_sparse(F) else F for F in design.rows(X)])
        own, others = rows[y, np.arange(len(y))], np.arange(len(rows))[:, None] != y
        others &= True if weight is None else weight > 0
        separated = separation((own - rows)[others])[0] is not None
    if separated:
        raise ValueError(
            "The features separate the classes: without a penalty no finite weights are best. Give a finite C, such as C=1.0."
        )


class MaximumEntropyClassifier(Iterative, Classifier):
    """Classify rows by P(y | x) ∝ exp(Σⱼ wⱼ fⱼ(x, y)), for features of a row and a class together.

    Parameters
    ----------
    features : Function f(X, label) of a block of rows and one of the labels that returns the features (n, m) of each row with
        this label, an array or a sparse matrix. It is called on blocks of rows, so the features of a row may depend on that row
        alone. None takes the columns of X and a constant, once for each class: softmax regression.
    C : Inverse strength of the penalty ‖w‖²/2C beside the plain sum of log losses; `np.inf` leaves it out, and the model then
        expects of every feature exactly what the data show. The constants of features=None are not penalized.
    tol : Stop when no entry of the gradient of the mean loss, features in units of their spread, exceeds this.
    max_iter : Iterations at most.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : (n_classes,)
    weights_ : (m,), one for each feature, the shortest of all that give the same probabilities. With features=None class by
        class: those of the columns, then that of the constant (and shortest with columns in units of their spread).
    n_iter_ : Iterations over all rows.
    converged_ : Whether the gradient is as small as asked.
    trace_ : Penalized mean loss after each iteration.

    Examples
    --------
    >>> words = ["nation", "motion", "station", "function", "run", "table", "is", "mention", "quick", "think"]
    >>> kinds = ["Noun", "Noun", "Noun", "Noun", "Verb", "Noun", "Verb", "Verb", "Other", "Verb"]
    >>> X = [[float(word.endswith("tion"))] for word in words]
    >>> def features(X, label):
    ...     ends = X[:, 0] * (label == "Noun")
    ...     return np.column_stack([ends, np.full(len(X), label == "Noun"), np.full(len(X), label == "Verb")])
    >>> model = MaximumEntropyClassifier(features, C=np.inf).fit(X, kinds)
    >>> model.weights_
    array([2.77258872, 0.22314355, 1.38629436])
    >>> model.feature_expectations(X), model.feature_expectations(X, kinds)
    (array([0.4, 0.5, 0.4]), array([0.4, 0.5, 0.4]))
    >>> model.certify(X, kinds)
    <Certificate holds: gap, duality, moments>
    """

    _parameter_constraints = {
        "features": [callable, None],
        "C": [Interval(Real, 0, None, closed="right")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(self, features=None, *, C=1.0, tol=1e-10, max_iter=1000, verbose=0, checkpoint=None):
        self.features = features
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _design(self):
        k = len(self.classes_)
        return ClassIndexed(k) if self.features is None else Joint(self.features, tuple(self.classes_))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        blocks = self._labeled(X, y, sample_weight, reset=True)
        problem = log_linear(blocks, self._design, 1 / self.C)
        state, step = logistic_solvers.solver("newton" if problem.n_parameters <= FULL else "lbfgs", problem, None)
        basis = unseen(problem)

        def watched(state):
            after, value, residual = step(state)
            return after, value, 0.0 if after is state else residual  # rounding ends the progress: the certificate judges

        def fitted(state):
            return {"weights_": as_output(problem.weights(shortest(problem, state[0], basis)), blocks.dtype)}

        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(watched, state, tol=self.tol, monotone="down", name="maximum entropy", fitted=fitted)
        if np.isinf(self.C):
            refuse_separable(problem, run.state[0])
        self.weights_ = fitted(run.state)["weights_"]
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        return self

    def _scores(self, X):
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return blocks.map(score_block, self._design, self._weights()), blocks.dtype

    def _weights(self):
        """Give the weights in float64, checked before a compiled kernel indexes them."""
        if self.features is None and self.weights_.shape != (len(self.classes_) * (self.n_features_in_ + 1),):
            raise ValueError(f"weights_ has the shape {self.weights_.shape}, which is not that of a fit.")
        return self.weights_.astype(float)

    def decision_function(self, X):
        """Give the scores w·f(x, y) of all classes, or of two classes the second's above the first's."""
        scores, dtype = self._scores(X)
        return as_output(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores, dtype)

    def predict_proba(self, X):
        """Give the probability of each class."""
        scores, dtype = self._scores(X)
        return as_output(probabilities(scores), dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class, exact where the probability itself is too small to be."""
        scores, dtype = self._scores(X)
        return as_output(scores - log_sum_exp(scores)[:, None], dtype)

    def predict(self, X):
        """Give the most probable class; the first of equals."""
        scores, _ = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def feature_expectations(self, X, y=None, sample_weight=None):
        """Give the mean of each feature over rows X: with their labels y, or with labels that the model draws."""
        check_is_fitted(self)
        if y is None:
            blocks = self._blocks(X, sample_weight=sample_weight, reset=False)
            moments, total = blocks.reduce(expectation_block, self._design, self._weights())
        else:
            moments, total = self._labeled(X, y, sample_weight, reset=False).reduce(empirical_block, self._design)
        return moments / total

    def certify(self, X, y=None, sample_weight=None):
        """Prove by the dual problem how far the objective is from its least value."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False)
        problem, weights = log_linear(blocks, self._design, 1 / self.C), self._weights()
        theta = problem.standard(weights)
        value, (least, kind) = problem(theta)[0], excess(problem, theta)
        claim = "no weights lower the penalized log loss by more than this share"
        checks = [replace(gap(value, value - least, np.log(len(self.classes_)), claim), kind=kind)]
        squares = problem.penalty * problem.penalized(weights) / problem.total
        entropy = blocks.reduce(entropy_block, problem.design, weights, np.zeros(len(weights)))[0] / problem.total
        claim = "the entropy of the model is minus the log-likelihood" + ("" if np.isinf(self.C) else ", plus ‖w‖²/C")
        off = abs(entropy - (value + squares / 2)) / max(value, TINY)
        checks.append(Check("duality", float(off), EQUI_LIMIT, "proof", claim))
        if length(theta) > NOTHING:
            claim = "the model expects of every feature what the data show" + ("" if np.isinf(self.C) else ", less w/C")
            checks.append(equi(lambda t: problem(t)[1], theta, "moments", claim, kind="proof"))
        basis = unseen(problem)
        if basis is None or basis.shape[1]:
            extra = length(theta - shortest(problem, theta, basis)) / max(length(theta), TINY)
            rounding = float(np.finfo(self.weights_.dtype).eps) * problem.terms(weights) / max(length(theta), TINY)
            claim = "no shorter weights give the same probabilities"
            checks.append(Check("least norm", extra, max(SAME_LIMIT, rounding), "proof", claim))
        return Certificate(*checks, subject=repr(self))
