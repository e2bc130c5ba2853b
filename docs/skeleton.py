"""A skeleton to copy: the straight line on the one column that serves best.

Choose a column j, a slope w and an intercept b to minimize J(j, w, b) = Σᵢ sᵢ (yᵢ − w xᵢⱼ − b)². For a given column, with
the scatter about the means Sxx, Sxy, Syy, the best slope is Sxy / Sxx and leaves J = Syy − Sxy² / Sxx; so one pass over the
rows tells of all columns, and the one with the largest Sxy² / Sxx wins, the first among equals.
Certificate: the columns are few enough to try them all, so Syy − max Sxy² / Sxx is the least J that any line on any single
column has; and by Pythagoras J(j, w, b) = Syy − Sxy² / Sxx + Sxx (w − Sxy / Sxx)² + Σs (ȳ − w x̄ⱼ − b)² exactly.

A file of the library begins like this: the problem in one formula, the way to its solution, the theorem behind the
certificate, then the references (author, venue, year). The parts follow in the order of this file. Copy it to
`src/lemmata/<family>/<algorithm>.py`, export the class in the family's `__all__`, and the contracts will find it.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, equi, gap, same
from lemmata.core.estimator import Regressor, as_output
from lemmata.core.kernel import kernel


class Scatter(NamedTuple):
    """The data as this model sees them: total weight, means, and scatter about the means."""

    weight: float
    mean_x: np.ndarray  # (d,)
    mean_y: float
    xx: np.ndarray  # (d,)
    xy: np.ndarray  # (d,)
    yy: float

    @property
    def gain(self):
        """By how much the best line on each column lowers the objective; nothing for a constant column."""
        return np.divide(self.xy, self.xx, out=np.zeros(len(self.xx)), where=self.xx > 0) * self.xy


@kernel
def moments(X, y, weight, x0, y0):
    """Sum weights, offsets of columns and target from (x0, y0), and their products."""
    d = X.shape[1]
    total, sy, yy = 0.0, 0.0, 0.0
    sx, xx, xy = np.zeros(d), np.zeros(d), np.zeros(d)
    for i in range(len(X)):
        w = 1.0 if weight is None else weight[i]
        t = y[i] - y0
        total += w
        sy += w * t
        yy += w * t * t
        for f in range(d):
            u = np.float64(X[i, f]) - x0[f]  # float32 in, float64 sums
            sx[f] += w * u
            xx[f] += w * u * u
            xy[f] += w * u * t
    return total, sx, sy, xx, xy, yy


def moments_block(X, y, weight, x0, y0):
    """Give the statistics of a block: a tuple of numbers and arrays that add over blocks."""
    return moments(X, np.asarray(y, dtype=float), weight, x0, y0)


def predict_block(X, weight, column, slope, intercept):
    """Predictions of a block; without a target, a block is (X, weight)."""
    return intercept + slope * X[:, column].astype(float)


def scatter(blocks, intercept):
    """Reduce the data to their scatter about the mean, or about zero without an intercept."""
    X, y, _ = blocks.first()
    if not intercept:
        zero = np.zeros(X.shape[1])
        total, _, _, xx, xy, yy = blocks.reduce(moments_block, zero, 0.0)
        return Scatter(total, zero, 0.0, xx, xy, yy)
    x0, y0 = X[0].astype(float), float(y[0])  # offsets from a row of the data keep large means from eating digits
    total, sx, sy, xx, xy, yy = blocks.reduce(moments_block, x0, y0)
    # The scatter about the mean is that about any point less the share of the offset; rounding may leave a bit below zero.
    xx, yy = np.maximum(xx - sx * sx / total, 0.0), max(yy - sy * sy / total, 0.0)
    return Scatter(total, x0 + sx / total, y0 + sy / total, xx, xy - sx * sy / total, yy)


class SingleColumnRegression(Regressor):
    """Fit y = w·xⱼ + b by least squares on the one column j that serves best.

    Parameters
    ----------
    fit_intercept : Whether b is fitted or zero.

    Attributes
    ----------
    column_ : Number of the column.
    coef_ : Slope w.
    intercept_ : Intercept b.

    Examples
    --------
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 1.0]], [1.0, 3.0, 2.0, 5.0]
    >>> model = SingleColumnRegression().fit(X, y)
    >>> model.column_, round(float(model.coef_), 9), round(float(model.intercept_), 9)
    (0, 1.1, 1.1)
    >>> model.certify(X, y).holds
    True
    >>> model.coef_ *= 1.01
    >>> [check.name for check in model.certify(X, y).failed]
    ['gap', 'slope', 'intercept']
    """

    _parameter_constraints = {"fit_intercept": ["boolean"]}

    def __init__(self, *, fit_intercept=True):
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one column is not much
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition."""
        blocks = self._blocks(X, y, sample_weight, reset=True)
        data = scatter(blocks, self.fit_intercept)
        j = int(np.argmax(data.gain))
        slope = data.xy[j] / data.xx[j] if data.xx[j] > 0 else 0.0
        self.column_ = j
        self.coef_ = as_output(np.float64(slope), blocks.dtype)
        self.intercept_ = as_output(np.float64(data.mean_y - self.coef_ * data.mean_x[j]), blocks.dtype)
        return self

    def predict(self, X):
        """Predict w·xⱼ + b for each row."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return as_output(blocks.map(predict_block, self.column_, self.coef_, self.intercept_), blocks.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no line on any single column has a smaller squared error."""
        check_is_fitted(self)
        data = scatter(self._blocks(X, y, sample_weight, reset=False), self.fit_intercept)
        j, w, b = self.column_, float(self.coef_), float(self.intercept_)
        if not 0 <= j < len(data.xx):
            return Certificate(Check("column", np.inf, SAME_LIMIT, "proof", "there is such a column"), subject=repr(self))
        best_b = data.mean_y - w * data.mean_x[j]
        value = data.yy - 2 * w * data.xy[j] + w * w * data.xx[j] + data.weight * (best_b - b) ** 2
        bound = data.yy - data.gain.max()
        floor = np.sqrt(np.finfo(float).eps) * (abs(data.mean_y) + abs(w * data.mean_x[j]))
        checks = [
            gap(value, bound, data.yy, "no line on a single column lowers the squared error by more than this share"),
            same(b, best_b, "intercept", "the line passes through the mean, or through zero", floor=floor),
        ]
        if w != 0:  # 1 % of nothing is nothing: a slope of zero has the gap alone
            claim = "the residual is orthogonal to the column"
            checks.insert(1, equi(lambda a: data.xy[j] - data.xx[j] * a, w, "slope", claim, kind="proof"))
        return Certificate(*checks, subject=repr(self))
