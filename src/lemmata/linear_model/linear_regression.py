"""Linear regression: least squares, with what a statistician asks of it.

Minimize Σᵢ sᵢ (yᵢ − xᵢ·w − b)² over w and b. `least_squares` solves it through one triangular factor; where the columns do
not determine w, the solution of least norm is taken. Under y ~ N(Xw + b, σ²) the estimate is unbiased with covariance
σ² (AᵀA)⁺, A the centered columns, and σ² is estimated by RSS / (Σs − rank − 1).
Certificate: by Pythagoras the objective exceeds its minimum by exactly ‖Π_A r‖² + Σs (ȳ − x̄·w − b)², r the residual with
the intercept profiled out [1]; and w lies in the row space of A, so no solution is shorter [2].

[1] Gauss, Theoria combinationis (1823). [2] Penrose, Math. Proc. Camb. Phil. Soc. 52 (1956).
"""

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, length, same
from lemmata.core.estimator import Regressor
from lemmata.core.threads import serial_blas
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model import wide
from lemmata.linear_model.base import LinearPredictor, is_single, optimality


def inference(problem, half, rss):
    """Return noise variance (t,), standard errors (t, d), and those of the intercept (t,)."""
    freedom = problem.weight - half.shape[1] - problem.intercept
    variance = rss / freedom if freedom > 0 else np.full(len(rss), np.nan)
    spread = np.sqrt((half**2).sum(axis=1)) / problem.shift.unit
    own = 1 / problem.weight + (((problem.mean[0] / problem.shift.unit) @ half) ** 2).sum() if problem.intercept else 0.0
    return variance, np.outer(np.sqrt(variance), spread), np.sqrt(variance * own)


class LinearRegression(LinearPredictor, Regressor):
    """Fit y = x·w + b by least squares.

    Parameters
    ----------
    fit_intercept : Whether b is fitted or zero.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    rank_ : Number of directions that the columns really span.
    noise_variance_ : Unbiased estimate of σ²; NaN if there are no more rows than parameters.
    standard_errors_ : Of each coefficient, in the shape of `coef_`.
    intercept_standard_error_ : Of the intercept.

    Sparse tables of more than 2,048 columns are solved by iteration: their rank is None and their errors are NaN.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_, model.standard_errors_
    (array([1.1]), array([0.519615]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {"fit_intercept": ["boolean"]}

    def __init__(self, *, fit_intercept=True):
        self.fit_intercept = fit_intercept

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        blocks = self._blocks(X, y, sample_weight, reset=True, multi_output=True)
        if wide.is_wide(blocks):
            return self._fit_wide(blocks)
        problem = ls.compress(blocks, self.fit_intercept)
        with serial_blas():
            solution = ls.refine(blocks, problem, ls.solve(problem))
            variance, errors, own = inference(problem, solution.half, solution.rss)
        self._store(blocks, problem, solution.scaled, solution.intercept)
        one = 0 if is_single(blocks) else slice(None)
        self.rank_ = solution.rank
        self.noise_variance_, self.standard_errors_, self.intercept_standard_error_ = variance[one], errors[one], own[one]
        return self

    def _fit_wide(self, blocks):
        problem = wide.compress(blocks, self.fit_intercept)
        t = problem.centered[1].shape[1]
        self._store(blocks, problem, *wide.solve(problem, np.zeros(t)))
        one = 0 if is_single(blocks) else slice(None)
        self.rank_, self.standard_errors_ = None, np.full_like(self.coef_, np.nan)
        self.noise_variance_ = self.intercept_standard_error_ = np.full(t, np.nan)[one]
        return self

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the squared error is from its least value, and recompute the standard errors."""
        check_is_fitted(self)
        blocks = self._blocks(X, y, sample_weight, reset=False, multi_output=True)
        if wide.is_wide(blocks):
            problem = wide.compress(blocks, self.fit_intercept)
            coef, intercept = self._parameters(problem)
            excess, _ = wide.excess(problem, coef, np.zeros(len(intercept)))
            return Certificate(*optimality(problem, coef, intercept, excess, kind="evidence"), subject=repr(self))
        problem = ls.factored(blocks, ls.draw_shift(blocks, self.fit_intercept), self.fit_intercept)
        coef, intercept = self._parameters(problem)
        A, C = problem.centered
        with serial_blas():
            found = ls.directions(problem, A)
            half, residual = found.half(), C - A @ coef
        inside = (found.U.T @ residual) ** 2
        rss = np.maximum((residual**2).sum(axis=0) - inside.sum(axis=0), 0.0)
        variance, errors, own = inference(problem, half, rss)
        # σ of a perfect fit is rounding: nothing below √ε of the spread of y is meaningful.
        noise = np.sqrt(ls.EPS) * np.linalg.norm(C) / np.sqrt(problem.weight)
        spread = np.maximum(np.sqrt((half**2).sum(axis=1)) / problem.shift.unit, TINY)
        freedom = f"it is RSS / (Σs − rank{' − 1' if self.fit_intercept else ''})"
        checks = [
            *optimality(problem, coef, intercept, inside.sum()),
            same(np.atleast_1d(self.noise_variance_), variance, "noise variance", freedom, floor=noise**2),
            same(
                np.atleast_2d(self.standard_errors_) / spread,
                errors / spread,
                "standard errors",
                "they are the roots of diag σ² (AᵀA)⁺",
                floor=noise,
            ),
            same(
                np.atleast_1d(self.intercept_standard_error_),
                own,
                "intercept error",
                "it is the root of σ² (1/Σs + x̄ᵀ(AᵀA)⁺x̄)",
                floor=noise,
            ),
        ]
        claim = f"the columns span {found.rank} directions"
        checks.append(Check("rank", float(abs(self.rank_ - found.rank)), 0.0, "proof", claim))
        if found.rank < A.shape[1]:
            raw, basis = np.atleast_2d(self.coef_).astype(float).T, found.row_space()
            value = length(raw - basis @ (basis.T @ raw)) / max(length(raw), TINY)
            checks.append(Check("row space", value, SAME_LIMIT, "proof", "no other solution is shorter"))
        return Certificate(*checks, subject=repr(self))
