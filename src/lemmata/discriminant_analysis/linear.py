"""`LinearDiscriminantAnalysis`: Gaussian classes with one covariance.

With Σ the same for all classes, xᵀΣ⁻¹x cancels in Bayes' rule, and what is left is linear. About the mean x̄ = Σₖ πₖ μₖ it is

    δₖ(x) = (x − x̄)ᵀ Σ⁻¹ (μₖ − x̄) − ½ (μₖ − x̄)ᵀ Σ⁻¹ (μₖ − x̄) + log πₖ,   P(k|x) ∝ exp δₖ(x).

So only x's position relative to the class means counts, in k − 1 directions at most: those z with zᵀΣz = 1 along which the
means are widest apart, Σ_b z = λ Σ z with Σ_b = Σₖ πₖ (μₖ − x̄)(μₖ − x̄)ᵀ, are Fisher's discriminants [1]. Everything comes
from the Cholesky factor of Σ in units of its columns.

Σ is pooled by the weights of the classes, whatever priors are given: it is what the rows say. (scikit-learn's solvers "lsqr"
and "eigen" pool by the priors given, and so does the `covariance_` that it stores.)

[1] Fisher, Ann. Eugen. 7 (1936); Rao, J. R. Stat. Soc. B 10 (1948).
"""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.core.certificate import SAME_LIMIT, Check, length, same
from lemmata.core.estimator import as_output
from lemmata.core.generative import same_logs
from lemmata.discriminant_analysis.class_model import joint_block, or_prior
from lemmata.discriminant_analysis.gaussian_bayes import SHRINKAGE, GaussianFit
from lemmata.discriminant_analysis.moments_check import ROUNDINGS, same_means
from lemmata.mixture.gaussian import components_of
from lemmata.mixture.missing import fill_block

FLOOR = 1e-6  # scores are as large as its inverse where a covariance is singular, and 1e-6 leaves them ten digits


class Plane(NamedTuple):
    """Scores (x − center)·coef + there: about the center of the rows no offset of the table costs digits."""

    coef: np.ndarray  # (k, d)
    center: np.ndarray  # (d,)
    there: np.ndarray  # (k,)


def linear(X, plane):
    """Linear scores of a block, (n, k); not finite where an entry is missing or a product too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Class by class, BLAS is three times as fast as row by row; what reads the scores wants rows.
        return np.add((plane.coef @ (X - plane.center).T).T, plane.there, order="C")


def linear_block(X, weight, plane, components):
    """Log P(y|x) of the rows of a block, up to what all classes share: linear scores if the rows are complete."""
    scores = linear(X, plane)
    if not np.isfinite(scores).all():  # a class may have the probability 0, and then this is the slower way and no other
        return joint_block(X, weight, components)
    return scores if scores.shape[1] > 1 else np.hstack([np.zeros_like(scores), scores])


def score_block(X, weight, plane, components, prior):
    """Scores of a block, (n, k); with holes, how much more likely each class makes what is seen than N(x̄, Σ) does."""
    if not np.isnan(X).any():
        scores = linear(X, plane)
        return np.where(np.isnan(scores), prior, scores)  # of a row beyond all numbers
    joint = joint_block(X, weight, components)
    return or_prior(*(joint[:, 1:2], joint[:, :1]) if len(prior) == 1 else (joint[:, :-1], joint[:, -1:]), prior)


def projection_block(X, weight, mean, directions, components):
    """Rows of a block in the directions; what is missing has its mean given what is seen."""
    rows = fill_block(X, weight, components)[0] if np.isnan(X).any() else X
    return (rows - mean) @ directions


def discriminants(priors, means, covariance):
    """Give x̄, coefficients (k, d), directions (d, min(k − 1, d)), and their shares in the spread of the means.

    Examples
    --------
    >>> mean, coef, directions, shares = discriminants(np.array([0.5, 0.5]), np.array([[0.0], [2.0]]), np.eye(1))
    >>> mean, coef[:, 0], directions, shares
    (array([1.]), array([-1.,  1.]), array([[1.]]), array([1.]))
    """
    mean = priors @ means
    scale = np.sqrt(np.diagonal(covariance))
    lower = np.linalg.cholesky(covariance / np.outer(scale, scale))
    white = solve_triangular(lower, ((means - mean) / scale).T, lower=True)
    coef = solve_triangular(lower, white, lower=True, trans=1).T / scale
    m = min(len(priors) - 1, len(mean))
    left, spread, _ = np.linalg.svd(white * np.sqrt(priors))
    directions = solve_triangular(lower, left[:, :m], lower=True, trans=1)
    directions *= np.where(directions[np.abs(directions).argmax(axis=0), np.arange(m)] < 0, -1.0, 1.0)  # one of two signs
    squares = spread[:m] ** 2
    return mean, coef, directions / scale[:, None], squares / (squares.sum() or 1.0)


def scores_at(center, priors, means, coef):
    """Give the scores at a center: of all classes, (k,), or of the second of two less that of the first, (1,)."""
    away = means - center
    if len(coef) == 1:  # halfway between two means they differ by their priors alone
        return np.diff(log_of(priors)) - coef @ (away[0] + away[1]) / 2
    return log_of(priors) - 0.5 * (away * coef).sum(axis=1)


def log_of(priors):
    """Take logarithms of priors; a class may have the probability 0."""
    with np.errstate(divide="ignore"):
        return np.log(priors)


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GaussianFit):
    """Classify by Gaussian classes with one covariance, and find the directions that tell the classes apart.

    Parameters
    ----------
    solver : "svd", "lsqr" or "eigen", as in scikit-learn; all mean the one exact route of this class.
    shrinkage : Share α in [0, 1] of the mean variance in the covariance; "auto" for Ledoit and Wolf's share of independence in
        the correlations of each class; None for none.
    priors : Probabilities of the classes, in their order; default their shares of the rows.
    n_components : Directions that `transform` gives; default min(n_classes − 1, n_features), the most there are.
    store_covariance : As in scikit-learn; covariance_ is there in any case.
    tol : As in scikit-learn; here `var_smoothing` says what counts as singular.
    var_smoothing : Floor of the variance in every direction, as a share of that of the columns within the classes; nothing is
        added to what lies above it.

    Attributes
    ----------
    classes_ : Labels of the classes.
    class_count_ : Weight of the rows of each class.
    priors_ : Probabilities of the classes.
    means_ : (n_classes, n_features)
    covariance_ : (n_features, n_features), within the classes: maximum likelihood (divisor n), with floor and shrinkage.
    xbar_ : Mean of the means, by priors_.
    coef_, intercept_ : Scores x·w + b: (n_classes, n_features) and (n_classes,); for two classes those of the second less those
        of the first, (1, n_features) and (1,).
    scalings_ : (n_features, min(n_classes − 1, n_features)), directions in which classes have unit variance and no correlation,
        sorted by how far apart the means are. The largest entry of each, in units of the columns, is positive.
    explained_variance_ratio_ : Share of each of the n_components directions in the variance of the means.

    Examples
    --------
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    >>> y = [1, 1, 1, 2, 2, 2]
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> model.predict([[-0.8, -1.0], [float("nan"), 0.5]]), model.transform(X)[:, 0].round(2)
    (array([1, 2]), array([-2.12, -2.12, -4.24,  2.12,  2.12,  4.24]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "shrinkage": SHRINKAGE,
        "priors": ["array-like", None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    _structure = "tied"

    def __init__(
        self,
        solver="svd",
        shrinkage=None,
        priors=None,
        n_components=None,
        store_covariance=False,
        tol=1e-4,
        *,
        var_smoothing=FLOOR,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.var_smoothing = var_smoothing

    def _derive(self):
        most = min(len(self.classes_) - 1, self.n_features_in_)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(f"n_components must be at most min(n_classes − 1, n_features) = {most}, got {self.n_components}.")
        self._n_features_out = self.n_components or most
        self.xbar_, coef, self.scalings_, shares = discriminants(self.priors_, self.means_, self.covariance_)
        self.explained_variance_ratio_ = shares[: self._n_features_out]
        self.coef_ = coef[1:] - coef[:1] if len(self.classes_) == 2 else coef
        self.intercept_ = scores_at(self.xbar_, self.priors_, self.means_, self.coef_) - self.coef_ @ self.xbar_

    def decision_function(self, X):
        """Give the score x·w + b of the second class of two, (n,), or the scores of all classes, (n, k)."""
        blocks = self._checked(X)
        priors, means = np.append(self.priors_, 1.0), np.vstack([self.means_, self.xbar_])
        components = components_of(priors, means, self.covariance_, "tied", self.xbar_)
        logs = log_of(self.priors_)
        prior = np.diff(logs) if len(logs) == 2 else logs
        with np.errstate(over="ignore"):  # beyond single precision it is infinite
            scores = as_output(blocks.map(score_block, self._plane(), components, prior), blocks.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def transform(self, X):
        """Give the rows in the directions that tell the classes apart; what is missing has its mean given what is seen."""
        blocks = self._checked(X)
        directions = self.scalings_[:, : self._n_features_out]
        return as_output(blocks.map(projection_block, self.xbar_, directions, self._components()), blocks.dtype)

    def _scores(self):
        return linear_block, self._plane(), self._components()

    def _plane(self):
        """Give the scores x·w + b of a block in a form that keeps their digits far from zero."""
        k = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.coef_.shape != (k, self.n_features_in_) or self.intercept_.shape != (k,):
            raise ValueError(f"coef_ has the shape {self.coef_.shape}, which is not that of a fit.")
        return Plane(self.coef_, self.xbar_, scores_at(self.xbar_, self.priors_, self.means_, self.coef_))

    def _derived(self):
        """Check coefficients and directions by the equations they solve, in units of the columns."""
        scale = np.sqrt(np.maximum(np.diagonal(self.covariance_), np.finfo(float).tiny))
        within, away = self.covariance_ / np.outer(scale, scale), (self.means_ - self.xbar_) / scale
        coef, Z = self.coef_ * scale, self.scalings_ * scale[:, None]
        aim = away[1:] - away[:1] if len(self.classes_) == 2 else away
        best = self._plane().there - self.coef_ @ self.xbar_
        rounding = ROUNDINGS / SAME_LIMIT * len(scale) * (np.abs(self.coef_) @ np.abs(self.xbar_) + 1.0)
        units = np.maximum(np.where(np.isinf(best), 0.0, np.abs(best)), rounding)
        between = (self.priors_ * away.T) @ away @ Z
        spread = np.einsum("ij,ij->j", Z, between)
        shares = spread[: self._n_features_out] / (spread.sum() or 1.0)
        miss = length(between - within @ Z * spread) / max(length(between), np.finfo(float).eps)
        return [
            same_means(self.xbar_, self.priors_ @ self.means_, scale, "xbar", "the mean of the means"),
            same(coef @ within, aim, "coef", "Σ times the coefficients gives the means, or their difference", floor=1e-6),
            same_logs(self.intercept_, best, "intercept", "scores are log-posteriors up to what all classes share", units),
            same(Z.T @ within @ Z, np.eye(Z.shape[1]), "scalings", "directions are uncorrelated with unit variance in classes"),
            Check("discriminants", miss, 1e-6, "proof", "in these directions the means are spread the most"),
            same(self.explained_variance_ratio_, shares, "explained_variance_ratio", "shares of the spread", floor=1e-6),
        ]
