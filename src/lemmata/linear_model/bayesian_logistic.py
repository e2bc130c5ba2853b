"""Bayesian logistic regression: a normal posterior of the coefficients, and probabilities averaged over it.

P(second class | x) = σ(x·w + b), prior w ~ N(0, λ⁻¹I), and a flat prior on b. The posterior is approximated at its mode, which
is that of penalized logistic regression, by the normal distribution with the same curvature; see `laplace`. Predictions
average σ over the normal distribution of the score, which draws them towards ½ where the data say little; λ may be chosen
where the evidence is largest.
Certificate: the mode as in `logistic`; ‖LᵀHL − I‖ for the stored root L of the covariance, which bounds the relative error of
every variance; the evidence again; and its slope, if λ was chosen by it. All this says nothing of how normal the posterior is;
draws from the approximation, weighed by the true density, do.

Spiegelhalter & Lauritzen, Networks 20 (1990). MacKay, Neural Computation 4 (1992).
"""

from dataclasses import replace
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import EQUI_LIMIT, SABOTAGE, SAME_LIMIT, Certificate, Check, equi, same
from lemmata.core.estimator import Iterative, as_output
from lemmata.core.random import generator
from lemmata.linear_model import logistic_solvers
from lemmata.linear_model.laplace import (
    EPS,
    about_center,
    averaged,
    evidence_slope,
    evidence_start,
    evidence_step,
    laplace,
    moderated,
    refitted,
    score_block,
)
from lemmata.linear_model.linear_classifier import LinearClassifier
from lemmata.linear_model.logistic import optimality
from lemmata.linear_model.logistic_loss import objective, scores_of

DRAWS = 200  # by which the certificate judges how normal the posterior is: a share within a few percent
FLAT = 1e-6  # nats; an evidence with a second derivative in log λ below this does not depend on λ


class BayesianLogisticRegression(Iterative, LinearClassifier):
    """Classify rows of two classes by logistic regression with a normal posterior of its coefficients.

    Parameters
    ----------
    prior_precision : λ of the prior N(0, λ⁻¹I) on the coefficients, or "evidence" for the (nearest) one under which the labels
        are most probable.
    fit_intercept : Whether b is fitted, with a flat prior, or zero.
    predictive : How probabilities are averaged over the posterior: "probit", σ(μ/√(1 + πv/8)) for a score of mean μ and
        variance v, within 0.02; or "quadrature", exactly. Either is on the same side of ½ as the mode.
    tol : Stop when no entry of the gradient of the mean loss, columns in units of their spread, exceeds this; with "evidence",
        when the slope of the log evidence in log λ does not.
    max_iter : Iterations at most: of Newton's method, or of the search for λ.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : (2,)
    coef_ : (1, n_features), the mode; for the second class.
    intercept_ : (1,)
    covariance_ : Covariance of the coefficients, then of the intercept if there is one; made when asked for.
    root_ : (n_features, n_features), the lower triangle L with LLᵀ the covariance of the coefficients.
    center_ : (n_features,), where scores vary least: the mean of the rows with the weights p(1 − p); zero without an intercept.
    center_variance_ : Variance of the score there, independent of the coefficients.
    prior_precision_ : λ as given or found.
    log_evidence_ : Laplace's approximation of ln p(y). The flat prior of the intercept has density one, so that only
        differences between models with an intercept, or between models without, mean anything.
    n_iter_ : Iterations.
    converged_ : Whether they reached what `tol` asks for.
    trace_ : Penalized mean loss, or minus the log evidence, after each iteration.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [-1.0]], [1, 1, -1]
    >>> model = BayesianLogisticRegression(fit_intercept=False).fit(X, y)
    >>> model.coef_, model.covariance_, model.log_evidence_
    (array([[0.879967]]), array([[0.522070]]), -1.564878)
    >>> model.predict_proba([[1.0], [10.0]])
    array([[0.309679, 0.690321],
           [0.130368, 0.869632]])
    >>> model.certify(X, y)
    <Certificate holds: gap, coefficients, root, covariance, log evidence, prior precision, normality>
    """

    _parameter_constraints = {
        "prior_precision": [Interval(Real, 0, None, closed="neither"), StrOptions({"evidence"})],
        "fit_intercept": ["boolean"],
        "predictive": [StrOptions({"probit", "quadrature"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        prior_precision=1.0,
        *,
        fit_intercept=True,
        predictive="probit",
        tol=1e-10,
        max_iter=1000,
        verbose=0,
        checkpoint=None,
    ):
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.predictive = predictive
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
        blocks = self._labeled(X, y, sample_weight, reset=True)
        chosen = isinstance(self.prior_precision, str)
        problem = objective(blocks, 1, 1.0 if chosen else self.prior_precision, self.fit_intercept)
        with self._fitting(blocks, X=X, y=y) as fitting:
            run = self._search(problem, fitting) if chosen else self._mode(problem, fitting)
        for name, value in self._attributes(problem, run.state).items():
            setattr(self, name, value)
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        return self

    def _mode(self, problem, fitting):
        """Find the mode under a given precision."""
        state, step = logistic_solvers.solver("newton", problem, None)

        def watched(state):
            after, value, residual = step(state)
            return after, value, 0.0 if after is state else residual  # rounding ends the progress: the certificate judges

        def fitted(state):
            return self._attributes(problem, state)

        return fitting.iterate(watched, state, tol=self.tol, monotone="down", name="logistic posterior", fitted=fitted)

    def _search(self, problem, fitting):
        """Find the precision, and the mode under it."""
        state = evidence_start(problem, np.zeros(problem.n_parameters))

        def step(state):
            return evidence_step(problem, state)

        def fitted(state):
            return self._attributes(problem, state)

        return fitting.iterate(step, state, tol=self.tol, monotone=None, name="evidence", fitted=fitted)

    def _attributes(self, problem, state):
        """Give the fitted attributes of a state; all but the mode are those of the mode as it is stored, rounded or not."""
        theta = state[0]
        if isinstance(self.prior_precision, str):
            problem, theta = replace(problem, penalty=float(np.exp(state[0]))), state[-1]
        coef, intercept = (as_output(a, problem.blocks.dtype) for a in problem.parameters(theta))
        found = laplace(problem, problem.theta(coef.astype(float), intercept.astype(float)))
        return {
            "coef_": np.ascontiguousarray(coef.T),
            "intercept_": intercept,
            "root_": found.root,
            "center_": found.center,
            "center_variance_": found.center_variance,
            "prior_precision_": float(problem.penalty),
            "log_evidence_": found.log_evidence,
        }

    @property
    def covariance_(self):
        """Posterior covariance of the coefficients, then of the intercept."""
        half = self._joint_root()
        return half @ half.T

    def _joint_root(self):
        """Return a root of the covariance of the coefficients and the intercept: b is the score at the center less c·w."""
        if not self.fit_intercept:
            return self.root_
        d = len(self.root_)
        half = np.zeros((d + 1, d + 1))
        half[:d, :d], half[d, :d], half[d, d] = self.root_, -self.center_ @ self.root_, np.sqrt(self.center_variance_)
        return half

    def score_distribution(self, X):
        """Give mean and variance of the score x·w + b of each row."""
        mean, variance, dtype = self._score_distribution(X)
        return as_output(mean, dtype), as_output(variance, dtype)

    def _score_distribution(self, X):
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        parameters = (*self._parameters(), self.center_, self.root_, self.center_variance_)
        return *blocks.map(score_block, *parameters), blocks.dtype

    def predict_proba(self, X):
        """Give the probability of each class, averaged over the posterior."""
        mean, variance, dtype = self._score_distribution(X)
        average = moderated if self.predictive == "probit" else averaged
        return as_output(np.column_stack([average(-mean, variance), average(mean, variance)]), dtype)

    def sample(self, n=1, random_state=None):
        """Draw coefficients, then the intercept if there is one, from the posterior: (n, number of them)."""
        check_is_fitted(self)
        half, (coef, intercept) = self._joint_root(), self._parameters()
        mean = np.append(coef[:, 0], intercept) if self.fit_intercept else coef[:, 0]
        return mean + generator(random_state).standard_normal((n, len(half))) @ half.T

    def certify(self, X, y=None, sample_weight=None):
        """Prove the mode and the covariance, recompute the evidence, and say how normal the posterior is."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False)
        problem = objective(blocks, 1, float(self.prior_precision_), self.fit_intercept)
        coef, intercept = self._parameters()
        theta, unit = problem.theta(coef, intercept), problem.unit
        found, (S, _, _) = laplace(problem, theta), about_center(problem, theta)
        checks = optimality(problem, coef, intercept)
        checks += covariance_checks(S, unit[:, None] * self.root_)
        if self.fit_intercept:
            claim = "it is the mean of the rows with the weights p(1 − p)"
            checks.append(same(self.center_ / unit, found.center / unit, "center", claim, floor=np.sqrt(EPS)))
            claim = "it is 1/Σ s p(1 − p)"
            checks.append(same(self.center_variance_, found.center_variance, "center variance", claim))
        claim = "log p(y) by Laplace's approximation"
        checks.append(same(self.log_evidence_, found.log_evidence, "log evidence", claim, floor=problem.total * np.log(2)))
        if isinstance(self.prior_precision, str):
            checks.append(precision_check(problem, theta))
        else:
            checks.append(same(self.prior_precision_, self.prior_precision, "prior precision", "it is the one given"))
        checks.append(normality_check(problem, theta, found))
        return Certificate(*checks, subject=repr(self))


def covariance_checks(S, root):
    """Check that LᵀSL is the identity, in standard units: its distance bounds the relative error of every variance."""
    identity = np.eye(len(S))

    def residual(root):
        return root.T @ S @ root - identity

    size = np.sqrt(np.diag(S))
    rounding = len(S) * EPS * np.linalg.cond(S / size / size[:, None])
    claim = "it is a root of the covariance of the coefficients"
    yield equi(lambda a: residual(a / size[:, None]), root * size[:, None], "root", claim, kind="proof")
    claim = "no variance is off by more than this share"
    yield Check("covariance", float(np.linalg.norm(residual(root), 2)), max(SAME_LIMIT, rounding), "proof", claim)


def precision_check(problem, theta):
    """The check that the evidence is stationary in λ, the mode following; it may also be flat, for λ without end."""

    def slope(precision):
        moved = replace(problem, penalty=precision)
        mode = refitted(moved, theta)
        return evidence_slope(moved, mode, laplace(moved, mode))

    here, there = slope(problem.penalty), slope(problem.penalty * (1 + SABOTAGE))
    fall = here - there  # at the largest evidence its slope falls; a rise by more than rounding tells of a least one
    value = SABOTAGE * abs(here) / max(fall, SABOTAGE * FLAT) if fall > -SABOTAGE * FLAT else np.inf
    return Check("prior precision", float(value), EQUI_LIMIT, "local", "the evidence is largest at this precision, nearby")


def normality_check(problem, theta, found):
    """Say which share of draws from the approximation is lost when they are weighed by the posterior itself."""
    noise = np.random.default_rng(0).standard_normal((len(theta), DRAWS))
    d, (coef, intercept) = len(found.root), problem.parameters(theta)
    coefs = coef + found.root @ noise[:d]
    intercepts = np.zeros(DRAWS)
    if problem.intercept:
        intercepts = intercept + np.sqrt(found.center_variance) * noise[d] - found.center @ (coefs - coef)
    loss = problem.blocks.reduce(losses_block, coefs, intercepts) + problem.penalty / 2 * (coefs**2).sum(axis=0)
    ratio = (noise**2).sum(axis=0) / 2 - loss  # log of the posterior over its approximation, up to a constant
    weights = np.exp(ratio - ratio.max())
    lost = 1 - weights.sum() ** 2 / (weights @ weights) / DRAWS  # one less the effective share of Kish
    claim = "share of draws that weighing by the posterior itself loses"
    return Check("normality", float(lost), np.inf, "evidence", claim)


def losses_block(X, y, weight, coefs, intercepts):
    """Sum over a block the loss of each of several models."""
    z = scores_of(X, coefs, intercepts)
    losses = np.logaddexp(0.0, z) - (y == 1)[:, None] * z
    return losses.sum(axis=0) if weight is None else weight @ losses
