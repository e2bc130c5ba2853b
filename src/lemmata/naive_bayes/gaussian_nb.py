"""`GaussianNB`: naive Bayes with normal columns.

    p(x, y) = P(y) Πⱼ N(xⱼ|θyⱼ, vyⱼ):

within a class the columns are independent and normal. Maximum likelihood takes the mean and the variance (divisor n) of the
seen entries of each column in each class, in one pass over the rows (`discriminant_analysis.class_moments`); a missing entry is
a factor that is left out, in learning and in predicting alike, and this is exact. A share of the largest variance of any column
is added to every variance, as scikit-learn does, so that a column that is constant within a class does not decide alone.

Certificate: the likelihood is strictly concave in the natural parameters, so to equal the recomputed moments is to be the
maximum.
"""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.generative import class_shares, same_entries
from lemmata.discriminant_analysis.class_model import GaussianClasses
from lemmata.discriminant_analysis.class_moments import ClassMoments, moments_of, refuse_unseen
from lemmata.discriminant_analysis.moments_check import recomputed, same_covariance, same_means
from lemmata.discriminant_analysis.structures import CONSTANT, column_scales, maximum_likelihood


def smoothing_of(moments, var_smoothing):
    """Give what is added to every variance: a share of the largest of a column, or of 1 if all columns are constant."""
    variances = moments.column_variances
    widest = variances[np.sqrt(variances) > CONSTANT * np.abs(moments.center)].max(initial=0.0)
    return var_smoothing * float(widest if widest > 0 else 1.0)


class GaussianNB(GaussianClasses):
    """Classify by Bayes' rule with columns that are independent and normal within each class.

    Parameters
    ----------
    priors : Probabilities of the classes, in their order; default their shares of the rows.
    var_smoothing : Share of the largest variance of a column that is added to every variance.

    Attributes
    ----------
    classes_ : Labels of the classes.
    class_count_ : Weight of the rows of each class.
    class_prior_ : Probabilities of the classes.
    theta_ : Mean of each column in each class, (n_classes, n_features).
    var_ : Variance of each column in each class, epsilon_ included.
    epsilon_ : What is added to every variance. Rows count by their weights, and after `partial_fit` it is that of all rows so
        far; scikit-learn looks at the last batch and not at weights.

    Examples
    --------
    >>> X, y = [[-1.0, 0.0], [-3.0, 1.0], [float("nan"), 2.0], [1.0, 4.0], [2.0, 6.0]], ["a", "a", "a", "b", "b"]
    >>> model = GaussianNB().fit(X, y)
    >>> model.theta_, model.var_.round(3)
    (array([[-2. ,  1. ],
           [ 1.5,  5. ]]), array([[1.   , 0.667],
           [0.25 , 1.   ]]))
    >>> model.predict([[-2.0, float("nan")], [0.0, 4.0]]), model.certify(X, y).holds
    (array(['a', 'b'], dtype='<U1'), True)
    """

    _parameter_constraints = {
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, priors=None, var_smoothing=1e-9):
        self.priors = priors
        self.var_smoothing = var_smoothing

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X of classes y; a weight means repetition. X may be a Parquet path, a Dask table, or an iterator, too."""
        with self._all_or_nothing():
            blocks = self._rows_of_classes(X, y, sample_weight, reset=True)
            self._settle(moments_of(blocks, len(self.classes_), dense=False)[0])
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from more rows, as if they had been there from the start; the first call names all classes."""
        with self._all_or_nothing():
            blocks = self._more(X, y, classes, sample_weight)
            moments = moments_of(blocks, len(self.classes_), dense=False)[0]
            self._settle(ClassMoments(*self._moments) + moments if hasattr(self, "class_count_") else moments)
        return self

    def _settle(self, moments):
        """Turn moments into parameters."""
        refuse_unseen(moments, self.classes_)
        self.class_prior_ = class_shares(self.priors, moments.weight)
        self.epsilon_ = smoothing_of(moments, self.var_smoothing)
        self.theta_ = moments.mean
        self.var_ = maximum_likelihood(moments, "diag") + self.epsilon_
        if not (self.var_ > 0).all():
            raise ValueError("Some column does not vary within a class, and there is no floor: set var_smoothing above 0.")
        self.class_count_ = moments.weight
        self._moments = (moments.weight, moments.seen, moments.mean, moments.scatter)

    def predict_joint_log_proba(self, X):
        """Give log p(x, y) for each row and class: scikit-learn's name of `joint_log_likelihood`."""
        return self.joint_log_likelihood(X)

    def _gaussians(self):
        k, d = len(self.classes_), self.n_features_in_
        for name, shape in (("class_prior_", (k,)), ("theta_", (k, d)), ("var_", (k, d))):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return self.class_prior_, self.theta_, self.var_, "diag"

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the parameters are those of maximum likelihood, with epsilon_ added to the variances."""
        check_is_fitted(self)
        blocks = self._rows_of_classes(X, y, sample_weight, reset=False)
        self._gaussians()
        found, _ = recomputed(blocks, len(self.classes_), dense=False)
        scales, epsilon = column_scales(found), smoothing_of(found, self.var_smoothing)
        shares = class_shares(self.priors, found.weight)
        checks = [
            same_entries(self.class_count_, found.weight, "counts", "the weight of the rows of each class"),
            same_entries(self.class_prior_, shares, "priors", "shares of the classes, or as given"),
            same_means(self.theta_, found.mean, scales),
            same_covariance(self.var_, maximum_likelihood(found, "diag") + epsilon, "diag", found.mean),
            same(self.epsilon_, epsilon, "epsilon", "the share var_smoothing of the largest variance"),
        ]
        if all(check.holds for check in checks):
            claim = "probabilities are Bayes' rule, with what is missing left out"
            checks.append(Check("posterior", self._disagreement(blocks), SAME_LIMIT, "proof", claim))
        return Certificate(*checks, subject=repr(self))
