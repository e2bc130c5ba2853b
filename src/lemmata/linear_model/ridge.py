"""Ridge regression: least squares with a price on the length of the coefficients.

Minimize Σᵢ sᵢ (yᵢ − xᵢ·w − b)² + α‖w‖²; the intercept is free. For α > 0 the solution (AᵀA + αI)⁻¹AᵀC is unique, A and C
the centered columns and targets. With alpha="gcv", α minimizes the generalized cross-validation score
n RSS(α) / (n − 1 − tr H(α))², an estimate of the prediction error that needs no refitting [1]: in the singular directions of
A, with shrinkage t = α/(σ² + α), RSS = r₀² + Σ(t z)² and tr H = Σ(1 − t), so the score is a function of one number; its
least grid point is polished on the derivative.
Certificate: with g = Aᵀr − αw, P(w) − P* = gᵀ(AᵀA + αI)⁻¹g exactly, since P is quadratic.

[1] Golub, Heath & Wahba, Technometrics 21 (1979).
"""

from numbers import Real

import numpy as np
from scipy.optimize import brentq
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check, equi
from lemmata.core.estimator import Regressor
from lemmata.core.threads import serial_blas
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model import wide
from lemmata.linear_model.base import LinearPredictor, optimality

GRID = 400  # points of the score; in units of log α its features are no narrower than one
SPAN = 1e6  # beyond the extreme σ² by this factor the score is constant to 1e-6


class Spectrum:
    """The singular directions of a problem, and the cross-validation score as a function of log α."""

    def __init__(self, problem):
        A, C = problem.centered
        self.unit = problem.shift.unit.max(initial=1.0)  # α is found in these units: σ² may not fit the raw ones
        U, values, _ = np.linalg.svd(A * (problem.shift.unit / self.unit), full_matrices=False)
        z = U.T @ C
        self.n = problem.weight - problem.intercept
        self.squares = values**2
        self.z2 = (z**2).sum(axis=1)
        self.rest = max(float((C**2).sum() - self.z2.sum()), 0.0)

    def grid(self):
        """Cover every α at which the score can move."""
        top = self.squares.max(initial=0.0)
        low = max(self.squares[self.squares > ls.EPS * top].min(initial=top), ls.EPS * top)
        return np.linspace(np.log(low / SPAN), np.log(top * SPAN), GRID) if top > 0 else np.zeros(1)

    def score(self, log_alpha):
        """Return n RSS / (n − tr H)²; infinite where no degree of freedom is left."""
        t = _shrinkage(self.squares, log_alpha)
        rss, freedom = self.rest + (t**2) @ self.z2, self.n - (1 - t).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(freedom > 1e-9 * self.n, self.n * rss / freedom**2, np.inf)

    def slope(self, log_alpha):
        """Return the derivative of log score by log α."""
        t = _shrinkage(self.squares, log_alpha)
        rss, freedom = self.rest + (t**2) @ self.z2, self.n - (1 - t).sum(axis=-1)
        return 2 * (t**2 * (1 - t)) @ self.z2 / rss - 2 * (t * (1 - t)).sum(axis=-1) / freedom

    def best(self):
        """Return the α of least score, and whether it lies inside the grid rather than at an end."""
        grid = self.grid()
        i = int(np.argmin(self.score(grid)))
        if 0 < i < len(grid) - 1 and self.slope(grid[i - 1]) < 0 < self.slope(grid[i + 1]):
            return float(np.exp(brentq(self.slope, grid[i - 1], grid[i + 1], xtol=1e-13))) * self.unit**2, True
        return float(np.exp(grid[i])) * self.unit**2, False


def _shrinkage(squares, log_alpha):
    alpha = np.exp(np.asarray(log_alpha))[..., None]
    return alpha / (squares + alpha)


class Ridge(LinearPredictor, Regressor):
    """Fit y = x·w + b by least squares with the penalty alpha·‖w‖².

    Parameters
    ----------
    alpha : Penalty, of at least 0; one number, one for each target, or "gcv" to choose it by generalized cross-validation.
        It stands beside the plain sum of squares, as in scikit-learn; the prior N(0, λ⁻¹) on w under noise σ² is alpha = λσ².
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
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like", StrOptions({"gcv"})],
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
        least = 0.0 if isinstance(self.alpha, str) else float(np.min(self.alpha))
        problem = ls.compress(blocks, self.fit_intercept, alpha=least)
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
                    f'alpha="gcv" needs all singular values: give a number for sparse tables beyond {wide.WIDE} columns.'
                )
            return np.full(n_targets, Spectrum(problem).best()[0])
        alpha = np.asarray(self.alpha, dtype=float)
        if (alpha < 0).any() or not np.isfinite(alpha).all():
            raise ValueError(f"alpha must be finite and at least 0, got {self.alpha!r}.")
        if alpha.ndim and alpha.shape != (n_targets,):
            raise ValueError(f"alpha must be one number or one for each of the {n_targets} targets, got {alpha.size} numbers.")
        return np.full(n_targets, alpha) if alpha.ndim == 0 else alpha

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
        A, C = problem.centered
        unit = problem.shift.unit[:, None]
        alphas = np.full(C.shape[1], self.alpha_)
        gradient = A.T @ (C - A @ coef) - alphas * (coef / unit) / unit
        with serial_blas():
            halves = [ls.solve(problem, a).half for a in alphas]
        excess = sum(((half.T @ gradient[:, t]) ** 2).sum() for t, half in enumerate(halves))
        checks = optimality(problem, coef, intercept, excess, alphas)
        checks += self._certify_alpha(Spectrum(problem)) if isinstance(self.alpha, str) else self._certify_given(alphas)
        return Certificate(*checks, subject=repr(self))

    def _certify_wide(self, problem):
        coef, intercept = self._parameters(problem)
        alphas = np.full(len(intercept), self.alpha_)
        excess, proof = wide.excess(problem, coef, alphas)
        checks = optimality(problem, coef, intercept, excess, alphas, kind="proof" if proof else "evidence")
        return Certificate(*checks, *self._certify_given(alphas), subject=repr(self))

    def _certify_given(self, alphas):
        difference = float(np.abs(alphas - self.alpha).max())
        yield Check("penalty", difference, 0.0, "proof", "alpha_ is the alpha asked for")

    def _certify_alpha(self, spectrum):
        here = np.log(self.alpha_ / spectrum.unit**2)
        least = spectrum.score(np.append(spectrum.grid(), here)).min()
        value = float(spectrum.score(here) / least - 1) if least > 0 else 0.0
        yield Check("penalty", value, 1e-6, "evidence", "no penalty on a fine grid has a smaller cross-validation score")
        if spectrum.best()[1]:
            claim = "the cross-validation score is stationary"
            yield equi(lambda a: spectrum.slope(np.log(np.abs(a))), [np.exp(here)], "penalty slope", claim)
