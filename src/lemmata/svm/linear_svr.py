"""Linear support vector regression: the flattest line that keeps most targets within a tube.

Minimize ½‖w‖² + C Σᵢ sᵢ ℓ(yᵢ − w·xᵢ − b) with ℓ(r) = max(0, |r| − ε) or its square: residuals within ε cost nothing. With ε = 0
the plain loss is that of least absolute deviations, and the square that of ridge regression. The intercept is free, as in
`SVR`; liblinear, and scikit-learn's `LinearSVR`, penalize it as the coefficient of a constant column.
`linear_newton` or `dual_coordinate` find the line. Certificate: `linear_certificate` bounds the objective by the dual problem.

Vapnik, The Nature of Statistical Learning Theory (1995). Ho & Lin, J. Mach. Learn. Res. 13 (2012).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.estimator import Iterative, Regressor, as_output
from lemmata.core.random import generator
from lemmata.svm.linear_machine import Machine
from lemmata.svm.linear_objective import Loss, scores


def predict_block(X, weight, coef, intercept):
    """Predictions of a block."""
    return scores(X, coef, intercept)


class LinearSVR(Iterative, Regressor):
    """Predict numbers by a linear function whose residuals cost nothing within a tube.

    Parameters
    ----------
    C : Price of a unit of loss, beside ½‖w‖².
    epsilon : Half the width of the tube, in units of y.
    loss : "epsilon_insensitive" or "squared_epsilon_insensitive".
    solver : "auto"; "newton", exact, and fast but for the plain loss over thousands of columns, for which "auto" takes the
        next; or "dual", coordinate ascent on the dual problem.
    fit_intercept : Whether there is an intercept. It is never penalized.
    tol : "newton": stop when no entry of the gradient of the mean loss, columns in units of their spread, exceeds this. "dual":
        when the duality gap is at most ten times this share of the objective.
    max_iter : Steps, or epochs, at most.
    random_state : Seed of the order of rows, for "dual".
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    coef_ : (n_features,)
    intercept_ : Number; for the plain loss the middle, where several are best.
    n_iter_ : Steps or epochs.
    converged_ : Whether it is as good as asked.
    trace_ : Mean penalized loss before each step; minus the dual objective after each epoch of "dual".

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.3]
    >>> model = LinearSVR(C=10.0, epsilon=0.2, fit_intercept=False).fit(X, y)
    >>> model.coef_
    array([1.033333])
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "solver": [StrOptions({"auto", "newton", "dual"})],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        C=1.0,
        *,
        epsilon=0.0,
        loss="epsilon_insensitive",
        solver="auto",
        fit_intercept=True,
        tol=1e-8,
        max_iter=10_000,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        blocks = self._blocks(X, y, sample_weight, reset=True, order="C" if self.solver == "dual" else None)
        seed = int(generator(self.random_state).integers(2**32))
        with self._fitting(blocks, X=X, y=y) as fitting:
            coef, intercept, run = self._machine(blocks, seed).fit(fitting, "LinearSVR")
        self.coef_, self.intercept_ = coef[0], intercept[0]
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        return self

    def _machine(self, blocks, seed=0):
        """Describe the line to find."""
        loss = Loss(True, self.loss == "epsilon_insensitive", float(self.epsilon), 1, None)
        return Machine(blocks, [loss], self.C, self.fit_intercept, self.solver, self.tol, seed)

    def predict(self, X):
        """Predict w·x + b for each row."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return as_output(blocks.map(predict_block, self.coef_.astype(float), float(self.intercept_)), blocks.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the objective is from its least value."""
        check_is_fitted(self)
        blocks = self._blocks(X, y, sample_weight, reset=False)
        if self.coef_.shape != (self.n_features_in_,):
            raise ValueError(f"coef_ has the shape {self.coef_.shape}, which is not that of a fit.")
        checks = self._machine(blocks).checks(self.coef_[None], np.atleast_1d(self.intercept_), [""])
        return Certificate(*checks, subject=repr(self))
