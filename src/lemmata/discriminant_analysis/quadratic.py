"""`QuadraticDiscriminantAnalysis`: Gaussian classes, each with a covariance of its own.

The log-posteriors of two classes differ by a quadratic function of x, so the boundary between them is a quadric. The principal
axes of each class, Σₖ = Rₖ diag(sₖ) Rₖᵀ, are there to look at; predictions use Cholesky factors, which rows with holes have as
well.
"""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import same
from lemmata.discriminant_analysis.gaussian_bayes import SHRINKAGE, GaussianFit


class QuadraticDiscriminantAnalysis(GaussianFit):
    """Classify by Gaussian classes, each with a covariance of its own.

    Parameters
    ----------
    shrinkage : Share α in [0, 1] of the mean variance in every covariance; "auto" for Ledoit and Wolf's share of independence
        in the correlations of each class; None for none.
    priors : Probabilities of the classes, in their order; default their shares of the rows.
    reg_param : Share r in [0, 1] of the identity, in squared units of X: (1 − r)Σ + rI, after the shrinkage.
    var_smoothing : Floor of the variance in every direction, as a share of that of the columns within the classes; nothing is
        added to what lies above it.

    Attributes
    ----------
    classes_ : Labels of the classes.
    class_count_ : Weight of the rows of each class.
    priors_ : Probabilities of the classes.
    means_ : (n_classes, n_features)
    covariance_ : (n_classes, n_features, n_features): maximum likelihood (divisor nₖ), with floor and shrinkage.
    scalings_ : (n_classes, n_features), variances along the principal axes of each class, the largest first.
    rotations_ : (n_classes, n_features, n_features), the axes as columns; the largest entry of each is positive.

    Examples
    --------
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    >>> y = [1, 1, 1, 2, 2, 2]
    >>> model = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> model.predict([[-0.8, -1.0], [float("nan"), 0.5]]), model.scalings_.round(3)
    (array([1, 2]), array([[0.845, 0.044],
           [0.845, 0.044]]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "shrinkage": SHRINKAGE,
        "priors": ["array-like", None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    _structure = "full"

    def __init__(self, *, shrinkage=None, priors=None, reg_param=0.0, var_smoothing=1e-8):
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.var_smoothing = var_smoothing

    def _regularized(self, covariance):
        return (1.0 - self.reg_param) * covariance + self.reg_param * np.eye(covariance.shape[-1])

    def _unregularized(self, covariance):
        return (covariance - self.reg_param * np.eye(covariance.shape[-1])) / (1.0 - self.reg_param)

    def _reversible(self):
        if self.reg_param == 1:
            raise ValueError("reg_param=1 leaves nothing of a covariance: take one below 1.")
        return super()._reversible()

    def _derive(self):
        values, vectors = np.linalg.eigh(self.covariance_)
        values, vectors = values[:, ::-1], vectors[:, :, ::-1]
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
        self.scalings_, self.rotations_ = values.copy(), vectors * np.where(largest < 0, -1.0, 1.0)

    def _derived(self):
        """Check the principal axes by what they are to give."""
        R, turned = self.rotations_, np.swapaxes(self.rotations_, 1, 2)
        each = np.broadcast_to(np.eye(R.shape[-1]), R.shape)
        return [
            same(turned @ R, each, "rotations", "axes are orthogonal and of unit length"),
            same(
                R * self.scalings_[:, None] @ turned,
                self.covariance_,
                "scalings",
                "axes and their variances give the covariances",
            ),
        ]
