"""Ridge regression: least squares with a price on the length of the coefficients.

Minimize Σᵢ sᵢ (yᵢ − xᵢ·w − b)² + α‖w‖²; the intercept is free. For α > 0 the solution (AᵀA + αI)⁻¹AᵀC is unique, A and C
the centered columns and targets. It is also the most probable w under noise σ² and the prior N(0, λ⁻¹I), if α = λσ² [1];
so α may be chosen as the one under which the targets are most probable, or by generalized cross-validation: see `spectrum`.
Certificate: with g = Aᵀr − αw, P(w) − P* = gᵀ(AᵀA + αI)⁻¹g exactly, since P is quadratic; and the bound of `spectrum` on the
evidence of any α.

[1] Hoerl & Kennard, Technometrics 12 (1970).
"""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check
from lemmata.core.estimator import Regressor
from lemmata.core.threads import serial_blas
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model import wide
from lemmata.linear_model.base import LinearPredictor, optimality
from lemmata.linear_model.posterior import excess
from lemmata.linear_model.spectrum import CrossValidation, Evidence, Spectrum, compress

CRITERIA = {"gcv": CrossValidation, "evidence": Evidence}


class Ridge(LinearPredictor, Regressor):
    """Fit y = x·w + b by least squares with the penalty alpha·‖w‖².

    Parameters
    ----------
    alpha : Penalty, of at least 0; one number, or one for each target; or "gcv" or "evidence" to choose one for all of them.
        It stands beside the plain sum of squares, as in scikit-learn; the prior N(0, λ⁻¹) on w under noise σ² is alpha = λσ².
        "gcv" minimizes the generalized cross-validation score. "evidence" maximizes the density of the targets over λ and σ²:
        where the columns say nothing of the targets it grows as λ → ∞, and alpha is the end of the search, at which the
        coefficients are less than a millionth of their size; where the columns fit the targets exactly it grows as σ² → 0,
        and the noise is taken to be 12 digits below them. If no column varies, alpha is 1.
    fit_intercept : Whether b is fitted (never penalized) or zero.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    alpha_ : The penalty used.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> model = Ridge(alpha=1.0).fit(X, y)
    >>> model.coef_, float(model.intercept_)
    (array([0.916667]), 1.375)
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like", StrOptions(set(CRITERIA))],
        "fit_intercept": ["boolean"],
    }

    def __init__(self, alpha=1.0, *, fit_intercept=True):
        self.alpha = alpha
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
        if isinstance(self.alpha, str):
            problem = compress(blocks, self.fit_intercept)
        else:
            problem = ls.compress(blocks, self.fit_intercept, alpha=float(np.min(self.alpha)))
        n_targets = len(problem.shift.y)
        with serial_blas():
            alphas = self._alphas(problem, n_targets)
            parts = [self._solved(blocks, problem, alphas, a) for a in np.unique(alphas)]
        scaled, intercept = sum(p[0] for p in parts), sum(p[1] for p in parts)
        self.alpha_ = float(alphas[0]) if np.ndim(self.alpha) == 0 else alphas
        self._store(blocks, problem, scaled, intercept)
        return self

    def _fit_wide(self, blocks):
        problem = wide.compress(blocks, self.fit_intercept)
        alphas = self._alphas(problem, problem.centered[1].shape[1])
        self.alpha_ = float(alphas[0]) if np.ndim(self.alpha) == 0 else alphas
        self._store(blocks, problem, *wide.solve(problem, alphas))
        return self

    def _alphas(self, problem, n_targets):
        if isinstance(self.alpha, str):
            if isinstance(problem, wide.WideProblem):
                raise ValueError(
                    f'alpha="{self.alpha}" needs all singular values: give a number for sparse tables over {wide.WIDE} columns.'
                )
            return np.full(n_targets, self._criterion(problem).best())
        alpha = np.asarray(self.alpha, dtype=float)
        if (alpha < 0).any() or not np.isfinite(alpha).all():
            raise ValueError(f"alpha must be finite and at least 0, got {self.alpha!r}.")
        if alpha.ndim and alpha.shape != (n_targets,):
            raise ValueError(f"alpha must be one number or one for each of the {n_targets} targets, got {alpha.size} numbers.")
        return np.full(n_targets, alpha) if alpha.ndim == 0 else alpha

    def _criterion(self, problem):
        return CRITERIA[self.alpha](Spectrum(problem))

    def _solved(self, blocks, problem, alphas, alpha):
        """Solve for one penalty; zeros at the targets that have another."""
        solution = ls.refine(blocks, problem, ls.solve(problem, alpha), alpha)
        return solution.scaled * (alphas == alpha), solution.intercept * (alphas == alpha)

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the penalized squared error is from its least value, and that of the score from its own."""
        check_is_fitted(self)
        blocks = self._blocks(X, y, sample_weight, reset=False, multi_output=True)
        if wide.is_wide(blocks):
            return self._certify_wide(wide.compress(blocks, self.fit_intercept))
        problem = ls.factored(blocks, ls.draw_shift(blocks, self.fit_intercept), self.fit_intercept)
        coef, intercept = self._parameters(problem)
        alphas = np.full(len(intercept), self.alpha_)
        with serial_blas():
            more = sum(excess(problem, coef, a)[alphas == a].sum() for a in np.unique(alphas))
        checks = optimality(problem, coef, intercept, more, alphas)
        checks += self._criterion(problem).checks(self.alpha_) if isinstance(self.alpha, str) else self._certify_given(alphas)
        return Certificate(*checks, subject=repr(self))

    def _certify_wide(self, problem):
        coef, intercept = self._parameters(problem)
        alphas = np.full(len(intercept), self.alpha_)
        more, proof = wide.excess(problem, coef, alphas)
        checks = optimality(problem, coef, intercept, more, alphas, kind="proof" if proof else "evidence")
        return Certificate(*checks, *self._certify_given(alphas), subject=repr(self))

    def _certify_given(self, alphas):
        difference = float(np.abs(alphas - self.alpha).max())
        yield Check("penalty", difference, 0.0, "proof", "alpha_ is the alpha asked for")
