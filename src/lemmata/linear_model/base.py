"""What the linear regressions share: predictions in blocks, and the checks of every least-squares fit."""

from dataclasses import replace

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import ArrayBlocks
from lemmata.core.certificate import equi, gap, same
from lemmata.core.estimator import as_output
from lemmata.linear_model import least_squares as ls


class LinearPredictor(MultiOutputMixin):
    """Mixin: sparse input, x·w + b, and coefficients in the precision of the input."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict(self, X):
        """Predict x·w + b for each row."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return as_output(blocks.map(predict_block, self.coef_, self.intercept_), blocks.dtype)

    def _store(self, blocks, problem, scaled, intercept):
        """Keep coefficients in the precision of the input, and the intercept that belongs to the rounded ones."""
        self.coef_ = as_output(np.ascontiguousarray(scaled.T / problem.shift.unit), blocks.dtype)
        if self.fit_intercept and blocks.dtype != np.float64:
            mean_x, mean_y = problem.mean
            intercept = mean_y - self.coef_.astype(float) @ mean_x
        self.intercept_ = as_output(intercept, blocks.dtype)
        if is_single(blocks):
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]

    def _parameters(self, problem):
        """Give the coefficients as columns in the units of a problem, and the intercepts as a vector."""
        scaled = np.atleast_2d(self.coef_).astype(float) * problem.shift.unit
        return scaled.T, np.atleast_1d(self.intercept_).astype(float)


def predict_block(X, weight, coef, intercept):
    """Predictions of a block."""
    return X @ coef.T + intercept


def is_single(blocks):
    """Tell whether the target is one number a row rather than a row of numbers."""
    y = blocks.aligned[0] if isinstance(blocks, ArrayBlocks) else blocks.first()[1]  # a first block may be costly to cut
    return np.asarray(y).ndim == 1


def optimality(problem, scaled, intercept, excess, alpha=0.0, kind="proof"):
    """The checks of every least-squares fit: gap, stationary coefficients, the intercept that belongs to them.

    Parameters
    ----------
    scaled : Coefficients in the units of the problem.
    excess : By how much the objective, with its best intercept, exceeds the least one.
    alpha : Penalty of each target.
    kind : What the excess is: "evidence" if only estimated.
    """
    A, C = problem.centered
    unit = problem.shift.unit[:, None]
    mean_x, mean_y = problem.mean[0] / problem.shift.unit, problem.mean[1]
    off = mean_y - mean_x @ scaled - intercept if problem.intercept else -intercept
    shortfall = problem.weight * (off**2).sum()
    value = ((C - A @ scaled) ** 2).sum() + np.sum(ls.penalties(alpha, scaled, unit)) + shortfall
    bound = value - shortfall - excess
    claim = "no coefficients lower the objective by more than this share of it"
    checks = [replace(gap(value, bound, (C**2).sum(), claim), kind=kind)]
    if scaled.any() and np.linalg.norm(C - A @ scaled) > ls.ROUNDING * np.linalg.norm(C):  # else the residual is rounding
        claim = "the residual is orthogonal to every column" if np.all(alpha == 0) else "the gradient vanishes"
        checks.append(
            equi(lambda w: A.T @ (C - A @ w) - alpha * (w / unit) / unit, scaled, "coefficients", claim, kind="proof")
        )
    if problem.intercept:
        scale = np.abs(mean_y) + np.abs(mean_x) @ np.abs(scaled)
        floor = np.sqrt(ls.EPS) * float(np.linalg.norm(scale))
        checks.append(same(intercept, intercept + off, "intercept", "the fit passes through the mean", floor=floor))
    return checks
