"""Lasso and elastic net: least squares with a price on the sizes of the coefficients, which makes many of them zero.

Minimize (1/2S) Σᵢ sᵢ (yᵢ − xᵢ·w − b)² + α ρ ‖w‖₁ + ½ α (1 − ρ) ‖w‖², S = Σ sᵢ; the intercept is free. Textbooks often write
‖y − Xw‖² + λ‖w‖₁: that is λ = 2Sα, and w = 0 from λ = 2 max|aⱼ·c| on. `working_set` solves it for columns A = √s (X − x̄) and
the target c = √s (y − ȳ). Tables much taller than wide are first compressed to a triangle with the same AᵀA and Aᵀc.
Certificate: the duality gap over all columns, from the coefficients alone; the fixed point of the proximal gradient step;
and the intercept that belongs to the coefficients.
"""

import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import ArrayBlocks
from lemmata.core.certificate import Certificate, equi, gap, same
from lemmata.core.data import WIDE
from lemmata.core.estimator import Regressor, as_output
from lemmata.core.threads import serial_blas
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model import working_set as ws
from lemmata.linear_model.base import LinearPredictor, is_single, optimality

NEARBY = 10  # working sets from coefficients that are the best to the digits of float32; one or two are usual
TALL = 4  # rows a column from which a triangle is cheaper than the rows


class Data(NamedTuple):
    """A regression by its columns: weight, means, and for each target the columns A and the target c about their means."""

    weight: float
    mean_x: np.ndarray
    mean_y: np.ndarray
    targets: list  # of (table, c)


def data_of(blocks, intercept, exact=False):
    """Take a table by its columns; by those of its triangle if it is tall.

    Parameters
    ----------
    exact : Whether the triangle must come from QR rather than from the Gram matrix.
    """
    if blocks.n_rows >= TALL * blocks.n_columns and blocks.n_columns <= WIDE:
        problem = ls.factored(blocks, ls.draw_shift(blocks, intercept), intercept) if exact else ls.compress(blocks, intercept)
        A, C = problem.centered
        A, ones = np.asfortranarray(A * problem.shift.unit), np.ones(len(A))
        mean_x, mean_y = problem.mean if intercept else (np.zeros(A.shape[1]), np.zeros(C.shape[1]))
        return Data(problem.weight, mean_x, mean_y, [(ws.DenseColumns(A, ones, c, False), c) for c in C.T.copy()])
    memory = isinstance(blocks, ArrayBlocks)
    X, y, weight = (blocks.X, *blocks.aligned) if memory else blocks.take(np.arange(blocks.n_rows))
    Y, root = ls.columns(y), np.ones(X.shape[0]) if weight is None else np.sqrt(weight)
    total = float(root @ root)
    mean_y = root**2 @ Y / total if intercept else np.zeros(Y.shape[1])
    targets = [root * (t - m) for t, m in zip(Y.T, mean_y, strict=True)]
    tables = [ws.columns_of(X, root, targets[0], intercept)]
    for c in targets[1:]:
        tables.append(tables[0].with_target(c))
    return Data(total, tables[0].mean, mean_y, list(zip(tables, targets, strict=True)))


def lasso_path(
    X, y, *, eps=1e-3, n_alphas=100, alphas=None, l1_ratio=1.0, positive=False, fit_intercept=False, tol=1e-6, max_iter=1000
):
    """Solve the lasso or the elastic net for a decreasing sequence of penalties.

    Parameters
    ----------
    X, y : Table and target. As in scikit-learn no intercept is fitted unless asked for.
    eps : Smallest penalty over the largest, at which all coefficients are zero.
    n_alphas : Number of penalties.
    alphas : The penalties themselves.
    l1_ratio : Share ρ of the 1-norm in the penalty, above 0.
    positive : Whether coefficients must be at least 0.
    fit_intercept : Whether columns and target are taken about their means.
    tol : Largest duality gap, as a share of the objective.
    max_iter : Working sets at most, for each penalty.

    Returns
    -------
    alphas : (n_alphas,), decreasing.
    coefs : (n_features, n_alphas)
    dual_gaps : (n_alphas,), in the units of the objective.

    Examples
    --------
    >>> X, y = [[-1.5, 1.0], [-0.5, -1.0], [0.5, -1.0], [1.5, 1.0]], [-1.75, 0.25, -0.75, 2.25]
    >>> alphas, coefs, gaps = lasso_path(X, y, alphas=[1.375, 0.25])
    >>> coefs
    array([[0. , 0.9],
           [0. , 0. ]])
    """
    blocks = ElasticNet()._blocks(X, y, reset=True)
    data = data_of(blocks, fit_intercept)
    table, c = data.targets[0]
    slope = table.start if positive else np.abs(table.start)
    if not 0 < l1_ratio <= 1:
        raise ValueError(f"l1_ratio must be above 0 and at most 1 here, got {l1_ratio}; for 0 there is Ridge.")
    if alphas is None:
        largest = float(slope.max()) / data.weight / l1_ratio
        largest = largest if largest > 0 else 1.0  # all coefficients are zero whatever the penalty
        alphas = np.geomspace(largest, largest * eps, n_alphas)
    alphas = np.sort(np.asarray(alphas, dtype=float))[::-1]
    if not len(alphas) or not (alphas > 0).all() or not np.isfinite(alphas).all():
        raise ValueError("alphas must be finite and above 0.")
    coefs, gaps = np.zeros((table.d, len(alphas))), np.zeros(len(alphas))
    point, pool = ws.start(table, c), ws.Pool(table)
    for j, alpha in enumerate(alphas):
        l1, l2 = alpha * l1_ratio * data.weight, alpha * (1 - l1_ratio) * data.weight
        point, value, bound, converged, _ = ws.solve(table, c, l1, l2, positive, tol, point, pool, max_iter)
        if not converged:
            _warn(value, bound, max_iter)
        coefs[:, j], gaps[j] = point.w, (value - bound) / data.weight
        if j + 1 < len(alphas):
            ws.complete(table, point)
    return alphas, coefs, gaps


def _warn(value, bound, max_iter):
    message = (
        f"After {max_iter} working sets the duality gap is still {(value - bound) / max(value, 1e-300):.1e} of the objective; "
        "raise max_iter or tol."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


class ElasticNet(LinearPredictor, Regressor):
    """Fit y = x·w + b by least squares with the penalty alpha·(l1_ratio·‖w‖₁ + ½(1 − l1_ratio)·‖w‖²).

    Parameters
    ----------
    alpha : Strength of the penalty, beside half the mean squared error, as in scikit-learn.
    l1_ratio : Share of the 1-norm: 1 is the lasso, 0 ridge regression.
    fit_intercept : Whether b is fitted (never penalized) or zero.
    positive : Whether coefficients must be at least 0.
    max_iter : Working sets at most.
    tol : Largest duality gap, as a share of the objective.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    n_iter_ : Working sets used.
    converged_ : Whether the gap is as small as asked.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> model = ElasticNet(alpha=0.5, l1_ratio=0.5).fit(X, y)
    >>> model.coef_, float(model.intercept_)
    (array([0.75]), 1.625)
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "positive": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, alpha=1.0, *, l1_ratio=0.5, fit_intercept=True, positive=False, max_iter=1000, tol=1e-8):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol

    @property
    def _share(self):
        """Share of the 1-norm in the penalty."""
        return self.l1_ratio

    @property
    def sparse_coef_(self):
        """The coefficients as a sparse matrix."""
        from scipy.sparse import csr_matrix

        return csr_matrix(self.coef_)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y). A stored table that is not much taller than wide is read into memory.
        """
        blocks = self._blocks(X, y, sample_weight, reset=True, multi_output=True)
        if self.alpha * self._share == 0:
            return self._fit_smooth(blocks)
        data = data_of(blocks, self.fit_intercept)
        l1, l2 = self._penalties(data.weight)
        coefs, self.n_iter_, self.converged_ = [], 0, True
        for table, c in data.targets:
            point, value, bound, converged, n_iter = ws.solve(
                table, c, l1, l2, self.positive, self.tol, ws.start(table, c), ws.Pool(table), self.max_iter
            )
            if not converged:
                _warn(value, bound, self.max_iter)
            coefs.append(point.w)
            self.n_iter_, self.converged_ = max(self.n_iter_, n_iter), self.converged_ and converged
        coef = as_output(np.array(coefs), blocks.dtype)
        intercept = data.mean_y - coef.astype(float) @ data.mean_x if self.fit_intercept else np.zeros(len(coef))
        self.coef_, self.intercept_ = coef, as_output(intercept, blocks.dtype)
        if is_single(blocks):
            self.coef_, self.intercept_ = coef[0], self.intercept_[0]
        return self

    def _penalties(self, weight):
        return self.alpha * self._share * weight, self.alpha * (1 - self._share) * weight

    def _fit_smooth(self, blocks):
        """Solve without a 1-norm: ridge regression, or least squares."""
        if self.positive:
            raise ValueError("positive=True needs a 1-norm: give alpha and l1_ratio above 0.")
        problem = ls.compress(blocks, self.fit_intercept)
        l2 = self.alpha * problem.weight
        with serial_blas():
            solution = ls.refine(blocks, problem, ls.solve(problem, l2), l2)
        self._store(blocks, problem, solution.scaled, solution.intercept)
        self.n_iter_, self.converged_ = 1, True
        return self

    def certify(self, X, y=None, sample_weight=None):
        """Prove by the duality gap how far the objective is from its least value."""
        check_is_fitted(self)
        blocks = self._blocks(X, y, sample_weight, reset=False, multi_output=True)
        if self.alpha * self._share == 0:
            return self._certify_smooth(blocks)
        data = data_of(blocks, self.fit_intercept, exact=True)
        coef, intercept = np.atleast_2d(self.coef_).astype(float), np.atleast_1d(self.intercept_).astype(float)
        checks = []
        for t, (table, c) in enumerate(data.targets):
            best = data.mean_y[t] - data.mean_x @ coef[t] if self.fit_intercept else 0.0
            checks += self._optimality(table, c, coef[t], data, intercept[t], best, f" {t}" if len(coef) > 1 else "")
        return Certificate(*checks, subject=repr(self))

    def _optimality(self, table, c, w, data, intercept, best, suffix):
        l1, l2 = self._penalties(data.weight)
        everything = np.arange(table.d)

        def at(w):
            residual = c - table.image(np.flatnonzero(w), w[w != 0])
            return ws.Point(w, residual, table.products(residual, everything), everything)

        point = at(w)
        value, bound, _ = ws.bounds(table, point, c, l1, l2, self.positive)
        if self.coef_.dtype == np.float32:  # rounding costs the bound more than the value: a point nearby has a better one
            present = np.flatnonzero(table.norms > 0)
            point = ws.Point(w, point.residual, point.products[present], present)
            bound = max(bound, ws.solve(table, c, l1, l2, self.positive, self.tol, point, ws.Pool(table), NEARBY)[2])
        shortfall = data.weight / 2 * (best - intercept) ** 2
        if self.positive and (w < 0).any():
            value = np.inf
        claim = "no coefficients lower the objective by more than this share of it"
        yield gap(value + shortfall, bound, float(c @ c) / 2, claim, name=f"gap{suffix}")
        if w.any():
            claim = "every coefficient is the best for the others"
            move = lambda w: fixed_point(table, at(w), l1, l2, self.positive)  # noqa: E731
            yield equi(move, w, f"coefficients{suffix}", claim, kind="proof")
        if self.fit_intercept:
            scale = abs(best + data.mean_x @ w) + float(np.abs(data.mean_x) @ np.abs(w))
            floor = np.sqrt(ls.EPS) * scale
            yield same(intercept, best, f"intercept{suffix}", "the fit passes through the mean", floor=floor)

    def _certify_smooth(self, blocks):
        problem = ls.factored(blocks, ls.draw_shift(blocks, self.fit_intercept), self.fit_intercept)
        coef, intercept = self._parameters(problem)
        A, C = problem.centered
        unit, l2 = problem.shift.unit[:, None], self.alpha * problem.weight
        gradient = A.T @ (C - A @ coef) - l2 * (coef / unit) / unit
        with serial_blas():
            half = ls.solve(problem, l2).half
        excess = float(((half.T @ gradient) ** 2).sum())
        return Certificate(*optimality(problem, coef, intercept, excess, np.full(C.shape[1], l2)), subject=repr(self))


def fixed_point(table, point, l1, l2, positive):
    """Return by how much each coefficient would change if it were made the best for the others, times its curvature."""
    z = point.products + table.norms * point.w
    size = np.maximum((z if positive else np.abs(z)) - l1, 0.0)
    return np.where(table.norms > 0, (table.norms + l2) * point.w - np.sign(z) * size, point.w)


class Lasso(ElasticNet):
    """Fit y = x·w + b by least squares with the penalty alpha·‖w‖₁, which sets coefficients to zero.

    Parameters
    ----------
    alpha : Strength of the penalty, beside half the mean squared error, as in scikit-learn.
    fit_intercept : Whether b is fitted (never penalized) or zero.
    positive : Whether coefficients must be at least 0.
    max_iter : Working sets at most.
    tol : Largest duality gap, as a share of the objective.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    n_iter_ : Working sets used.
    converged_ : Whether the gap is as small as asked.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> model = Lasso(alpha=0.25).fit(X, y)
    >>> model.coef_, float(model.intercept_)
    (array([0.9]), 1.4)
    >>> print(model.certify(X, y))
    Lasso(alpha=0.25): certificate holds (proof)
      check         value     limit  kind   claim
      gap           0.0e+00 ≤ 1e-06  proof  no coefficients lower the objective by more than this share of it
      coefficients  0.0e+00 ≤ 1e-03  proof  every coefficient is the best for the others
      intercept     0.0e+00 ≤ 1e-06  proof  the fit passes through the mean
    """

    _parameter_constraints = {key: value for key, value in ElasticNet._parameter_constraints.items() if key != "l1_ratio"}

    def __init__(self, alpha=1.0, *, fit_intercept=True, positive=False, max_iter=1000, tol=1e-8):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol

    @property
    def _share(self):
        return 1.0
