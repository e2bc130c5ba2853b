"""Logistic regression: probabilities of classes from linear scores.

Maximize Σᵢ sᵢ log p(yᵢ | xᵢ) − ‖W‖²/2C, where log p(k | x) = zₖ − log Σⱼ e^zⱼ for K classes with scores z = Wx + b, and for two
classes p = σ(w·x + b). The intercept is free, and C = ∞ leaves out the penalty. The objective is concave; `logistic_solvers`
climbs it, `logistic_loss` has its sums over blocks. Without a penalty there is no optimum if some plane separates the classes
(then ever larger coefficients fit ever better); the fit finds that out and says so.
Certificate: `logistic_bounds` bounds the excess of the objective over its least value from gradient and Hessian, which proves
at the same time that an optimum exists; coefficients and intercepts are stationary; and the scores of several classes sum to
zero, for a common shift of all of them is seen by nothing.
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import Largest
from lemmata.core.certificate import GAP_LIMIT, SAME_LIMIT, TINY, Certificate, Check, equi, free, gap, length
from lemmata.core.estimator import Iterative, as_output
from lemmata.core.random import generator
from lemmata.linear_model import logistic_bounds, logistic_solvers
from lemmata.linear_model.linear_classifier import LinearClassifier
from lemmata.linear_model.links import log_sigmoid, log_sum_exp
from lemmata.linear_model.logistic_loss import objective, probabilities, scores_of
from lemmata.linear_model.separability import folded_rows, separation

LARGE = 15.0  # a score whose class is certain to 3e-7: without a penalty, a reason to look whether a plane separates
NOTHING = 1e-10  # coefficients that move no score by more are rounding, of which no share can be checked
ROWS = 200_000  # entries of a table up to which a linear program may decide about separability


def largest_score_block(X, y, weight, coef, intercept):
    """The largest score of a block in size, and minus the least margin: the score of the own class above the best other."""
    scores = scores_of(X, coef, intercept)
    if scores.shape[1] == 1:
        margins = np.where(y == 1, scores[:, 0], -scores[:, 0])
    else:
        own = scores[np.arange(len(y)), y]
        scores[np.arange(len(y)), y] = -np.inf
        margins = own - scores.max(axis=1)
    return Largest(float(np.abs(margins).max())), Largest(float(-margins.min()))


class LogisticRegression(Iterative, LinearClassifier):
    """Classify rows by linear scores whose differences are log odds.

    Parameters
    ----------
    C : Inverse strength of the penalty ‖W‖²/2C beside the plain sum of log losses; the prior N(0, C) on each coefficient.
        `np.inf` leaves it out.
    fit_intercept : Whether b is fitted (never penalized) or zero.
    solver : "lbfgs" (preconditioned by a sample of the rows), "newton", "cg" (nonlinear conjugate gradients), "bfgs", "gd"
        (gradient descent with backtracking) or "sgd" (stochastic gradients of reduced variance, an epoch an iteration).
        All end at the same optimum; the first two are fast.
    multi_class : "multinomial" for one model of all classes, "ovr" for one of each class against the rest.
    tol : Stop when no entry of the gradient of the mean loss, columns in units of their spread, exceeds this.
    max_iter : Iterations at most.
    verbose : 1 shows a progress bar.
    random_state : Seed of "sgd".
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : (n_classes,)
    coef_ : (1, n_features) for two classes, of which the second has the score, else (n_classes, n_features).
    intercept_ : (1,) or (n_classes,)
    n_iter_ : Iterations over all rows.
    converged_ : Whether the gradient is as small as asked.
    trace_ : Penalized mean loss after each iteration.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["no", "no", "yes", "no", "yes", "yes"]
    >>> model = LogisticRegression(C=np.inf).fit(X, y)
    >>> model.coef_, model.intercept_
    (array([[1.214028]]), array([-3.035069]))
    >>> model.predict_proba([[2.5]])
    array([[0.5, 0.5]])
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"lbfgs", "newton", "cg", "bfgs", "gd", "sgd"})],
        "multi_class": [StrOptions({"multinomial", "ovr"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        C=1.0,
        *,
        fit_intercept=True,
        solver="lbfgs",
        multi_class="multinomial",
        tol=1e-8,
        max_iter=1000,
        verbose=0,
        random_state=None,
        checkpoint=None,
    ):
        self.C = C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.multi_class = multi_class
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        blocks = self._labeled(X, y, sample_weight, reset=True)
        problems = self._problems(blocks)
        rng = generator(self.random_state)
        parts, runs = [], []
        with self._fitting(blocks, len(problems), X=X, y=y) as fitting:
            for problem in problems:
                run = self._run(problem, fitting, rng)
                parts.append(self._centered(*problem.parameters(run.state[0])))
                runs.append(run)
                if np.isinf(self.C):
                    refuse_separable(problem.blocks, *parts[-1], self.fit_intercept)
        self._store(np.hstack([coef for coef, _ in parts]), np.concatenate([b for _, b in parts]), blocks.dtype)
        self.n_iter_, self.converged_ = max(run.n_iter for run in runs), all(run.converged for run in runs)
        self.trace_ = runs[0].trace if len(runs) == 1 else np.concatenate([run.trace for run in runs])
        return self

    def _problems(self, blocks):
        """Describe the objectives to minimize: one, or one for each class against the rest."""
        k = len(self.classes_)
        if k == 2 or self.multi_class == "multinomial":
            return [objective(blocks, 1 if k == 2 else k, 1 / self.C, self.fit_intercept)]
        rest = [blocks.with_target(Against(number)) for number in range(k)]
        return [objective(b, 1, 1 / self.C, self.fit_intercept) for b in rest]

    def _run(self, problem, fitting, rng):
        state, step = logistic_solvers.solver(self.solver, problem, rng)

        def watched(state):
            after, value, residual = step(state)
            return after, value, 0.0 if after is state else residual  # rounding ends the progress: the certificate judges

        def fitted(state):
            coef, intercept = self._centered(*problem.parameters(state[0]))
            return {"coef_": as_output(coef.T, problem.blocks.dtype), "intercept_": as_output(intercept, problem.blocks.dtype)}

        down = None if self.solver == "sgd" else "down"
        return fitting.iterate(watched, state, tol=self.tol, monotone=down, name="logistic regression", fitted=fitted)

    @staticmethod
    def _centered(coef, intercept):
        """Make the scores of several classes sum to zero, which changes no probability."""
        if len(intercept) == 1:
            return coef, intercept
        return coef - coef.mean(axis=1, keepdims=True), intercept - intercept.mean()

    def predict_proba(self, X):
        """Give the probability of each class."""
        scores, dtype = self._scores(X)
        return as_output(self._probabilities(scores), dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class, exact where the probability itself is too small to be."""
        scores, dtype = self._scores(X)
        scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else self._relative(scores)
        return as_output(scores - log_sum_exp(scores)[:, None], dtype)

    def _probabilities(self, scores):
        if scores.shape[1] == 1:
            return np.hstack([probabilities(-scores), probabilities(scores)])
        return probabilities(self._relative(scores))

    def _relative(self, scores):
        """Give numbers whose softmax are the probabilities: one-vs-rest models share out σ(z), however small."""
        return scores if self.multi_class == "multinomial" else log_sigmoid(scores)

    def covariance(self, X, sample_weight=None):
        """Give the inverse of the Hessian of the penalized log loss at the fit, for two classes: coefficients, then intercept.

        Without a penalty it is the asymptotic covariance of the estimate, and `standard_errors` the roots of its diagonal;
        with one, the covariance of the Laplace approximation to the posterior. X is a table in memory.
        """
        check_is_fitted(self)
        coef, intercept = self._parameters()
        if coef.shape[1] > 1:
            raise ValueError("covariance is for two classes: of several, only differences of coefficients have one.")
        blocks = self._blocks(X, np.zeros(_n_rows(X)), sample_weight, reset=False)
        return inverse_hessian(objective(blocks, 1, 1 / self.C, self.fit_intercept), coef, intercept)

    def standard_errors(self, X, sample_weight=None):
        """Give the standard errors of the coefficients, then of the intercept."""
        return np.sqrt(np.diag(self.covariance(X, sample_weight)))

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the penalized log loss is from its least value."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False)
        coef, intercept = self._parameters()
        problems = self._problems(blocks)
        checks = []
        for j, problem in enumerate(problems):
            own = (coef, intercept) if len(problems) == 1 else (coef[:, j : j + 1], intercept[j : j + 1])
            checks += optimality(problem, *own, "" if len(problems) == 1 else f" {self.classes_[j]}")
        return Certificate(*checks, subject=repr(self))


class Against:
    """Turns class numbers into 1 for one class and 0 for the rest."""

    def __init__(self, number):
        self.number = number

    def __call__(self, y):
        """Compare."""
        return (np.asarray(y) == self.number).astype(np.int64)


def _n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def inverse_hessian(problem, coef, intercept):
    """Invert the Hessian in standard coordinates, and turn it back into the units of the data."""
    H = problem.hessian(problem.theta(coef, intercept)) * problem.total
    d, size = len(problem.unit), np.sqrt(np.diag(H))
    covariance = np.linalg.inv(H / size / size[:, None]) / size / size[:, None]
    back = np.diag(np.append(1 / problem.unit, np.ones(len(H) - d)))
    if problem.intercept:
        back[-1, :d] = -problem.center / problem.unit
    return back @ covariance @ back.T


def optimality(problem, coef, intercept, suffix=""):
    """The checks of a logistic fit: gap, stationary coefficients and intercepts, and the common shift of all scores."""
    theta = problem.theta(coef, intercept)
    value = problem(theta)[0]
    excess, kind = logistic_bounds.excess(problem, theta)
    claim = "no coefficients lower the penalized log loss by more than this share"
    check = gap(value, value - excess, np.log(max(problem.n_scores, 2)), claim, name=f"gap{suffix}")
    checks = [Check(check.name, check.value, GAP_LIMIT, kind, claim)]
    k = problem.n_scores

    def slope(w, b):
        return problem(problem.theta(w, b))[1].reshape(-1, k)

    if length(coef * problem.unit[:, None]) > NOTHING:
        claim = "the gradient in the coefficients vanishes"
        residual = lambda w: slope(w, intercept)[: len(coef)]  # noqa: E731
        checks.append(equi(residual, coef, f"coefficients{suffix}", claim, move=_inside, kind="proof"))
    if problem.intercept and length(intercept) > NOTHING:
        claim = "each class is expected as often as it occurs"
        residual = lambda b: slope(coef, b)[-1]  # noqa: E731
        checks.append(equi(residual, intercept, f"intercept{suffix}", claim, move=_inside, kind="proof"))
    if k > 1:
        common = max(length(a.mean(axis=-1)) * np.sqrt(k) / max(length(a), TINY) for a in (coef, intercept))
        checks.append(Check("common shift", common, SAME_LIMIT, "proof", "the scores of all classes sum to zero"))
    return checks


def _inside(a, rng):
    """Move by 1 % among parameters whose scores sum to zero over several classes."""
    moved = free(a, rng)
    if a.shape[-1] == 1:
        return moved
    inner = moved - a
    inner -= inner.mean(axis=-1, keepdims=True)
    return a + inner * (length(moved - a) / max(length(inner), TINY))


def refuse_separable(blocks, coef, intercept, fit_intercept=True):
    """Raise if classes without a penalty are separable, so that no finite coefficients are best."""
    largest, deficit = blocks.reduce(largest_score_block, coef, intercept)
    separated, others = deficit.value < 0, max(coef.shape[1] - 1, 1)
    if not separated and largest.value >= LARGE and blocks.n_rows * (len(coef) + 1) * others**2 <= ROWS:
        X, y, weight = blocks.take(np.arange(blocks.n_rows))
        rows = np.hstack([X.toarray() if hasattr(X, "toarray") else X, np.ones((len(y), int(fit_intercept)))]).astype(float)
        rows, y = (rows, y) if weight is None else (rows[weight > 0], y[weight > 0])
        separated = separation(folded_rows(rows, y, others + 1))[0] is not None
    if separated:
        raise ValueError(
            "A plane separates the classes: without a penalty no finite coefficients are best. Give a finite C, such as C=1.0."
        )
