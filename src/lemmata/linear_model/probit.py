"""Probit regression, and its siblings with other links.

Maximize Σᵢ sᵢ log P(yᵢ | xᵢ) − ‖w‖²/2C, where P(second class | x) = F(x·w + b) for a distribution function F of
`inverse_links`: the class tells on which side of x·w + b a hidden noise with this distribution fell. Newton's method with a
line search climbs; where the Hessian is not definite, which needs an F that is not log-concave, the information takes its
place (Fisher scoring), which keeps every direction one of ascent. Without a penalty there is no optimum if some plane
separates the classes; the fit says so.
Certificate: for log-concave F the objective is concave, and `link_objective` bounds its distance from the largest value by
duality. For other F the fit is a stationary point at which the Hessian is definite: a local optimum, maybe not the only one.

Bliss, Science 79 (1934). Pratt, J. Amer. Statist. Assoc. 76 (1981).
"""

from dataclasses import replace
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import TINY, Certificate, Check, equi, gap, length
from lemmata.core.estimator import Iterative, as_output
from lemmata.core.threads import serial_blas
from lemmata.linear_model import logistic_solvers
from lemmata.linear_model.inverse_links import LINKS, inverse_link
from lemmata.linear_model.linear_classifier import LinearClassifier
from lemmata.linear_model.link_objective import excess, link_objective
from lemmata.linear_model.logistic import LARGE, NOTHING, inverse_hessian, refuse_separable

BEYOND = 1e9  # multiple of the scores that is large for every link: `refuse_separable` then looks at them closely


class ProbitRegression(Iterative, LinearClassifier):
    """Classify rows of two classes by F(x·w + b), F the normal or another distribution function.

    Parameters
    ----------
    C : Inverse strength of the penalty ‖w‖²/2C beside the plain sum of log losses; the prior N(0, C) on each coefficient.
        `np.inf` leaves it out: the maximum likelihood estimate of econometrics.
    link : "probit", "logit", "cloglog" (F = 1 − exp(−eᶻ), not symmetric), "cauchit", or a frozen distribution on all numbers,
        such as `scipy.stats.t(5)`. The fits of the first three are proved to be best; those of the others are local optima.
    fit_intercept : Whether b is fitted (never penalized) or zero.
    tol : Stop when no entry of the gradient of the mean loss, columns in units of their spread, exceeds this.
    max_iter : Iterations at most.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : (2,)
    coef_ : (1, n_features), for the probability of the second class.
    intercept_ : (1,)
    n_iter_ : Iterations over all rows.
    converged_ : Whether the gradient is as small as asked.
    trace_ : Penalized mean loss after each iteration.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["no", "no", "yes", "no", "yes", "yes"]
    >>> model = ProbitRegression(C=np.inf).fit(X, y)
    >>> model.coef_, model.intercept_
    (array([[0.759781]]), array([-1.899453]))
    >>> model.predict_proba([[2.5]])
    array([[0.5, 0.5]])
    >>> model.certify(X, y)
    <Certificate holds: gap, coefficients, intercept>
    """

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="right")],
        "link": [StrOptions(set(LINKS)), HasMethods(["logcdf", "logsf", "logpdf", "ppf", "support"])],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(self, C=1.0, *, link="probit", fit_intercept=True, tol=1e-10, max_iter=1000, verbose=0, checkpoint=None):
        self.C = C
        self.link = link
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y of two classes; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        link = inverse_link(self.link)
        blocks = self._labeled(X, y, sample_weight, reset=True)
        problem = link_objective(blocks, link, 1 / self.C, self.fit_intercept)
        state, step = logistic_solvers.solver("newton", problem, None)

        def watched(state):
            after, value, residual = step(state)
            return after, value, 0.0 if after is state else residual  # rounding ends the progress: the certificate judges

        def fitted(state):
            coef, intercept = problem.parameters(state[0])
            return {"coef_": as_output(coef.T, blocks.dtype), "intercept_": as_output(intercept, blocks.dtype)}

        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(watched, state, tol=self.tol, monotone="down", name="probit regression", fitted=fitted)
        if np.isinf(self.C):
            self._refuse_separable(problem, run.state[0])
        self._store(*problem.parameters(run.state[0]), blocks.dtype)
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        return self

    @staticmethod
    def _refuse_separable(problem, theta):
        """Raise if a plane separates the classes; a look at the scores is enough where a finite bound proves an optimum."""
        bound, kind = excess(problem, theta) if problem.link.convex else (np.inf, "local")
        proved = kind == "proof" and np.isfinite(bound)
        # a score beyond which `refuse_separable` looks closely is in its own units one of a class that is certain to 3e-7
        factor = LARGE / problem.link.quantile(1 - 3e-7) if proved else BEYOND
        coef, intercept = problem.parameters(theta)
        refuse_separable(problem.blocks, factor * coef, factor * intercept)

    def predict_proba(self, X):
        """Give the probability of each class."""
        scores, dtype = self._scores(X)
        return as_output(np.exp(inverse_link(self.link).log_probabilities(scores[:, 0])), dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class, exact where the probability itself is too small to be."""
        scores, dtype = self._scores(X)
        logarithms = inverse_link(self.link).log_probabilities(scores[:, 0])
        rounded = np.log(as_output(np.exp(np.maximum(logarithms, -1.0)), dtype))
        return as_output(np.where(logarithms < -1, logarithms, rounded), dtype)  # near 1, those of `predict_proba`

    def predict(self, X):
        """Give the more probable class, which for a link that is not symmetric is not the one that the score's sign tells."""
        scores, _ = self._scores(X)
        return self.classes_[inverse_link(self.link).log_probabilities(scores[:, 0]).argmax(axis=1)]

    def covariance(self, X, y=None, sample_weight=None):
        """Give the asymptotic covariance of the estimate: coefficients, then intercept.

        With labels it is the inverse of the Hessian (the observed information, as statsmodels' Probit has it), without that of
        the expected information (as R's glm has it); the penalty counts in both. For "logit" they are the same.
        """
        check_is_fitted(self)
        if y is None:
            blocks = self._blocks(X, np.zeros(X.shape[0] if hasattr(X, "shape") else len(X)), sample_weight, reset=False)
        else:
            blocks = self._labeled(X, y, sample_weight, reset=False)
        problem = link_objective(blocks, inverse_link(self.link), 1 / self.C, self.fit_intercept, expected=y is None)
        return inverse_hessian(problem, *self._parameters())

    def standard_errors(self, X, y=None, sample_weight=None):
        """Give the standard errors of the coefficients, then of the intercept: the roots of the diagonal of `covariance`."""
        return np.sqrt(np.diag(self.covariance(X, y, sample_weight)))

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the penalized log loss is from its least value, or that it is a local minimum."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False)
        problem = link_objective(blocks, inverse_link(self.link), 1 / self.C, self.fit_intercept)
        coef, intercept = self._parameters()
        checks = stationary(problem, coef, intercept)
        theta = problem.theta(coef, intercept)
        if not problem.link.convex:
            extra = [minimum(problem, theta)] if problem.n_parameters <= logistic_solvers.DENSE else []
            return Certificate(*extra, *checks, subject=repr(self))
        value, (least, kind) = problem(theta)[0], excess(problem, theta)
        claim = "no coefficients lower the penalized log loss by more than this share"
        check = replace(gap(value, value - least, np.log(2), claim), kind=kind)
        return Certificate(check, *checks, subject=repr(self))


def stationary(problem, coef, intercept):
    """The checks that the gradient vanishes, in the coefficients and in the intercept."""
    kind = "proof" if problem.link.convex else "local"
    checks = []
    theta, d = problem.theta(coef, intercept), len(coef)
    if length(theta[:d]) > NOTHING:
        claim = "the gradient in the coefficients vanishes"
        residual = lambda w: problem(np.append(w, theta[d:]))[1][:d]  # noqa: E731 - the score at the center is kept
        checks.append(equi(residual, theta[:d], "coefficients", claim, kind=kind))
    if problem.intercept and length(intercept) > NOTHING:
        residual = lambda b: problem(problem.theta(coef, b))[1][-1:]  # noqa: E731
        checks.append(equi(residual, intercept, "intercept", "the gradient in the intercept vanishes", kind=kind))
    return checks


def minimum(problem, theta):
    """The check that the Hessian is positive definite: minus its least eigenvalue, columns in units of their curvature."""
    with serial_blas():
        H, information = (problem.second_derivatives(theta, expected=expected) for expected in (False, True))
        size = np.sqrt(np.maximum(np.diag(information), TINY))
        least = np.linalg.eigvalsh(H / size / size[:, None])[0]
    rounding = 1e-9  # of numerical second derivatives; directions in which no score moves have curvature zero
    return Check("minimum", float(-least), rounding, "local", "the objective curves upwards in every direction")
