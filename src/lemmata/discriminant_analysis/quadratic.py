"""`QuadraticDiscriminantAnalysis`: Gaussian classes, each with a covariance of its own.

The log-posteriors of two classes differ by a quadratic function of x, so the boundary between them is a quadric. The principal
axes of each class, Σₖ = Rₖ diag(sₖ) Rₖᵀ, are there to look at; predictions use Cholesky factors, which rows with holes have as
well.
"""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.core.generative import same_entries
from lemmata.discriminant_analysis.axes import principal_axes
from lemmata.discriminant_analysis.gaussian_bayes import SHRINKAGE, GaussianFit


class QuadraticDiscriminantAnalysis(GaussianFit):
    """Classify by Gaussian classes, each with a covariance of its own.

    Parameters
    ----------
    solver : "svd", "lsqr" or "eigen", as in scikit-learn; all mean the one exact route of this class.
    shrinkage : Share α in [0, 1] of the mean variance in every covariance; "auto" for Ledoit and Wolf's share of independence
        in the correlations of each class; None for none.
    priors : Probabilities of the classes, in their order; default their shares of the rows.
    reg_param : Share r in [0, 1] of the identity, in squared units of X: (1 − r)Σ + rI, after the shrinkage.
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
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "shrinkage": SHRINKAGE,
        "priors": ["array-like", None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    _structure = "full"

    def __init__(
        self,
        *,
        solver="svd",
        shrinkage=None,
        priors=None,
        reg_param=0.0,
        store_covariance=False,
        tol=1e-4,
        var_smoothing=1e-8,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.var_smoothing = var_smoothing

    def _regularized(self, covariance):
        return (1.0 - self.reg_param) * covariance + self.reg_param * np.eye(covariance.shape[-1])

    def _derive(self):
        self.scalings_, self.rotations_ = principal_axes(self.covariance_)

    def _derived(self):
        """Check the principal axes by what they are to give."""
        R, turned = self.rotations_, np.swapaxes(self.rotations_, 1, 2)
        each = np.broadcast_to(np.eye(R.shape[-1]), R.shape)
        scales = np.sqrt(np.diagonal(self.covariance_, axis1=1, axis2=2))
        units, claim = scales[:, :, None] * scales[:, None, :], "axes and their variances give the covariances"
        return [
            same_entries(turned @ R, each, "rotations", "axes are orthogonal and of unit length", units=1.0),
            same_entries(R * self.scalings_[:, None] @ turned, self.covariance_, "scalings", claim, units=units),
        ]
