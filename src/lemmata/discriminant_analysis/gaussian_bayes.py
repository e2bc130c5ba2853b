"""`GaussianBayes`: a Gaussian for each class, and Bayes' rule with the estimates plugged in.

    ŷ(x) = argmaxₖ log πₖ − ½ log|Σₖ| − ½ (x − μₖ)ᵀ Σₖ⁻¹ (x − μₖ).

Maximum likelihood has a closed form: πₖ = nₖ/n, the mean of each class, and the scatter about it divided by nₖ, in one of five
structures (`structures`). One pass over the rows gives all of it (`class_moments`). With full covariances the boundary between
two classes is a quadric, with one covariance for all it is a plane, and with diagonal ones this is naive Bayes. With the true
parameters no classifier errs less; with estimates in their place that is lost.

Entries that are missing are integrated out, in the rows to classify and in those to learn from: where columns are independent
within a class each counts what is seen of it, else EM maximizes the likelihood of what is seen (`missing_classes`).

Certificate: the likelihood is strictly concave in the natural parameters of each Gaussian, so its maximum is unique and to
equal the recomputed moments is to be it; floor and shrinkage are replayed. With holes and dependent columns a step of EM,
computed by dense algebra, must leave the fit where it is: a stationary point.
"""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check
from lemmata.core.generative import class_shares, same_entries
from lemmata.core.threads import serial_blas
from lemmata.discriminant_analysis.class_model import GaussianClasses
from lemmata.discriminant_analysis.class_moments import ClassMoments, moments_of, refuse_unseen
from lemmata.discriminant_analysis.missing_classes import Standardized, fit_by_em, stationarity
from lemmata.discriminant_analysis.moments_check import recomputed, same_covariance, same_means
from lemmata.discriminant_analysis.structures import (
    ABOVE_THE_FLOOR,
    DENSE,
    STRUCTURES,
    best_shares,
    column_scales,
    maximum_likelihood,
    raised,
    shape_of,
    shrunk,
    warn_of_the_floor,
    with_weaker_correlations,
)

SHRINKAGE = [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None]


def covariance_of(blocks, moments, structure, shrinkage, floor, scales):
    """Give covariances of maximum likelihood, with the floor and the shrinkage."""
    if shrinkage == "auto" and structure in DENSE:
        moments = with_weaker_correlations(moments, best_shares(blocks, moments))
    covariance = raised(maximum_likelihood(moments, structure), structure, floor, scales)
    return shrunk(covariance, structure, shrinkage) if isinstance(shrinkage, Real) else covariance


class GaussianFit(GaussianClasses):
    """Base of `GaussianBayes` and of the discriminant analyses, which fix the structure and add what follows from the fit.

    A kind of model has the parameters priors, shrinkage and var_smoothing, and `_structure`.
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X of classes y; a weight means repetition. X may be a Parquet path, a Dask table, or an iterator, too."""
        with self._all_or_nothing(), serial_blas():
            blocks = self._rows_of_classes(X, y, sample_weight, reset=True)
            self._settle(blocks, *self._moments_of(blocks))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from more rows, as if they had been there from the start; the first call names all classes."""
        if self.shrinkage == "auto" and self._structure in DENSE:
            raise ValueError('shrinkage="auto" looks at all rows together: give a number, or fit all rows at once.')
        with self._all_or_nothing(), serial_blas():
            blocks = self._more(X, y, classes, sample_weight)
            moments, holes = self._moments_of(blocks)
            begun = hasattr(self, "class_count_")
            if holes or (begun and self._moments is None):
                raise ValueError(
                    f'Rows with missing entries must be fitted all at once where covariance="{self._structure}": use fit, '
                    "or independent columns."
                )
            self._settle(blocks, ClassMoments(*self._moments).like(moments) + moments if begun else moments, holes)
        return self

    def _moments_of(self, blocks):
        dense = self._structure in DENSE
        pooled = self._structure == "tied" and self.shrinkage != "auto"
        return moments_of(blocks, len(self.classes_), dense, pooled)

    def _settle(self, blocks, moments, holes):
        """Turn moments into parameters."""
        refuse_unseen(moments, self.classes_)
        scales = column_scales(moments)
        self.priors_ = class_shares(self.priors, moments.weight)
        self._unshrunk = None  # the certificate starts from it where there are holes
        if holes:
            alpha = self._shrinkage_of_holes()
            units = Standardized(moments.center, scales)
            self.means_, self._unshrunk = fit_by_em(blocks, self._structure, self.var_smoothing, moments, units)
            covariance = shrunk(self._unshrunk, self._structure, alpha)
        else:
            self.means_ = moments.mean
            covariance = covariance_of(blocks, moments, self._structure, self.shrinkage, self.var_smoothing, scales)
        self.covariance_ = self._regularized(covariance)
        floor = self.var_smoothing * (ABOVE_THE_FLOOR if holes else 1.0)
        warn_of_the_floor(self.covariance_, self._structure, scales, floor, self.classes_, moments.weight)
        self._derive()
        self.class_count_ = moments.weight
        self._moments = None if holes else (moments.weight, moments.seen, moments.mean, moments.scatter)

    def _shrinkage_of_holes(self):
        """Give the shrinkage of a fit with holes."""
        if self.shrinkage == "auto":
            raise ValueError('shrinkage="auto" needs complete rows: give a number, or independent columns.')
        return self.shrinkage or 0.0

    def _regularized(self, covariance):
        """Do to the covariances what a kind of model does to them last."""
        return covariance

    def _derive(self):
        """Set what follows from the parameters."""

    def _derived(self):
        """Give the checks of what follows from the parameters."""
        return []

    def _gaussians(self):
        k, d = len(self.classes_), self.n_features_in_
        for name, shape in (("priors_", (k,)), ("means_", (k, d)), ("covariance_", shape_of(self._structure, k, d))):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return self.priors_, self.means_, self.covariance_, self._structure

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the parameters are those of maximum likelihood, with the floor and the shrinkage asked for."""
        check_is_fitted(self)
        blocks = self._rows_of_classes(X, y, sample_weight, reset=False)
        with serial_blas():
            self._gaussians()
            found, holes = recomputed(blocks, len(self.classes_), self._structure in DENSE)
            shares = class_shares(self.priors, found.weight)
            checks = [
                same_entries(self.class_count_, found.weight, "counts", "the weight of the rows of each class"),
                same_entries(self.priors_, shares, "priors", "shares of the classes, or as given"),
                *(self._stationary if holes else self._most_likely)(blocks, found),
                *self._derived(),
            ]
            if all(check.holds for check in checks):  # else there may be no inverse to speak of
                claim = "probabilities are Bayes' rule, with what is missing integrated out"
                checks.append(Check("posterior", self._disagreement(blocks), SAME_LIMIT, "proof", claim))
        return Certificate(*checks, subject=repr(self))

    def _most_likely(self, blocks, found):
        """Compare with recomputed moments, in units of the columns."""
        scales = column_scales(found)
        best = covariance_of(blocks, found, self._structure, self.shrinkage, self.var_smoothing, scales)
        return [
            same_means(self.means_, found.mean, scales),
            same_covariance(self.covariance_, self._regularized(best), self._structure, found.mean),
        ]

    def _stationary(self, blocks, found):
        """Let a step of EM say whether it would go elsewhere, from the covariances before shrinkage."""
        unshrunk = self.covariance_ if self._unshrunk is None else self._unshrunk
        units = Standardized(found.center, column_scales(found))
        best = self._regularized(shrunk(unshrunk, self._structure, self._shrinkage_of_holes()))
        claim = "the covariances of EM, with shrinkage as asked for"
        try:
            return [
                *stationarity(blocks, self._structure, self.var_smoothing, self.means_, unshrunk, units),
                same_covariance(self.covariance_, best, self._structure, found.mean, "shrinkage", claim),
            ]
        except np.linalg.LinAlgError:
            return [Check("covariance", np.inf, SAME_LIMIT, "proof", "covariances have an inverse")]


class GaussianBayes(GaussianFit):
    """Classify by a Gaussian for each class and Bayes' rule.

    Parameters
    ----------
    covariance : "full": a matrix for each class; "tied": one for all classes; "diag": variances for each class (naive Bayes);
        "tied-diag": variances for all classes; "spherical": one variance for each class.
    priors : Probabilities of the classes, in their order; default their shares of the rows.
    shrinkage : Share α in [0, 1] of the mean variance in every covariance, (1 − α)Σ + α(tr Σ/d)I; "auto" for Ledoit and Wolf's
        share of independence in the correlations of each class; None for none.
    var_smoothing : Floor of the variance in every direction, as a share of that of the columns within the classes; nothing is
        added to what lies above it.

    Attributes
    ----------
    classes_ : Labels of the classes.
    class_count_ : Weight of the rows of each class.
    priors_ : Probabilities of the classes.
    means_ : (n_classes, n_features)
    covariance_ : Maximum likelihood (divisor nₖ, or n where classes share it), with floor and shrinkage; of shape (n_classes,
        n_features, n_features), (n_features, n_features), (n_classes, n_features), (n_features,) or (n_classes,), in the order
        of the structures above.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [6.0, 5.0], [7.0, 8.0], [8.0, 5.0]]
    >>> model = GaussianBayes("tied").fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> model.means_, model.covariance_.round(3)
    (array([[1., 1.],
           [7., 6.]]), array([[0.667, 0.167],
           [0.167, 1.333]]))
    >>> model.predict([[3.0, 3.0], [float("nan"), 6.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.certify(X, ["a", "a", "a", "b", "b", "b"]).holds
    True
    """

    _parameter_constraints = {
        "covariance": [StrOptions(set(STRUCTURES))],
        "priors": ["array-like", None],
        "shrinkage": SHRINKAGE,
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, covariance="full", *, priors=None, shrinkage=None, var_smoothing=1e-8):
        self.covariance = covariance
        self.priors = priors
        self.shrinkage = shrinkage
        self.var_smoothing = var_smoothing

    @property
    def _structure(self):
        return self.covariance
