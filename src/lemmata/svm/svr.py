"""Support vector regression: as flat a function as possible that stays within ε of most targets.

f(x) = Σ βᵢ k(xᵢ, x) + b minimizes ½‖w‖² + C Σ sᵢ max(0, |yᵢ − f(xᵢ)| − ε) with w = Σ βᵢφ(xᵢ) [1]. The dual is
max Σ yᵢβᵢ − ε Σ |βᵢ| − ½ Σ βᵢβⱼ k(xᵢ, xⱼ) over |βᵢ| ≤ C sᵢ, Σ βᵢ = 0. With βᵢ = aᵢ − aᵢ*, both at least 0, it is the problem of
`decomposition` with two variables for each row, of signs + and −. Rows strictly inside the tube have βᵢ = 0, rows outside |βᵢ|
= C sᵢ. Certificate: a dual point made of β bounds the objective of every machine from below (`optimality`).

[1] Vapnik, The Nature of Statistical Learning Theory (1995); Smola & Schölkopf, Stat. Comput. 14 (2004).
"""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core import threads
from lemmata.core.certificate import Certificate
from lemmata.core.estimator import Regressor, as_output
from lemmata.kernels.validity import warn_if_indefinite
from lemmata.svm.decomposition import scores_of, solve
from lemmata.svm.dual import Dual
from lemmata.svm.machine import KernelMachine, centered, load, shift_of
from lemmata.svm.optimality import balanced, judge_regressor, margin_check, squared_norms, verdict_checks


class SVR(Regressor, KernelMachine):
    """Support vector regression with a kernel and an ε-insensitive loss.

    Parameters
    ----------
    C : Price of a unit of error beyond ε.
    epsilon : ε, half the width of the tube in which errors cost nothing.
    kernel : "linear", "poly", "rbf", "sigmoid", a kernel of `lemmata.kernels`, a function of two tables that returns their
        kernel matrix, or "precomputed": then X is the kernel matrix of the rows, and in predictions that of new rows and those
        of the fit.
    degree, gamma, coef0 : Parameters of the kernels with names, see `SVC`.
    tol : Largest violation of the optimality conditions, in units of half the range of y.
    cache_size : MiB of memory for rows of the kernel matrix.
    max_iter : Most rounds of the solver; each optimizes a working set of about a thousand coefficients.
    warm_start : Whether a fit to the same rows begins with the coefficients of the last one.
    verbose : Whether to show progress.

    Attributes
    ----------
    support_ : Numbers of the support vectors.
    support_vectors_ : These rows.
    dual_coef_ : (1, support vectors), β.
    intercept_ : (1,), b.
    margin_ : 1/‖w‖.
    coef_ : Weights of the columns, for the linear kernel.
    kernel_ : The kernel with all its numbers.
    n_iter_ : Rounds of the solver.
    converged_ : Whether the solver reached tol.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.3]
    >>> model = SVR(C=10.0, epsilon=0.2, kernel="linear").fit(X, y)
    >>> model.coef_.round(6), model.intercept_.round(6)
    (array([[0.966667]]), array([0.2]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {**KernelMachine._machine_constraints, "epsilon": [Interval(Real, 0, None, closed="left")]}

    def __init__(
        self,
        C=1.0,
        epsilon=0.1,
        kernel="rbf",
        *,
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-6,
        cache_size=200.0,
        max_iter=10_000,
        warm_start=False,
        verbose=0,
    ):
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition.

        X may also be a Parquet path, a Dask table, or an iterator of blocks; the rows are then read into memory.
        """
        old = self._old_coefficients() if self.warm_start else None
        blocks = self._blocks(X, y, sample_weight, reset=True, order="C")
        rows, y, weight, numbers = load(blocks)
        kernel, rows = self._choose(rows, weight, numbers)
        warn_if_indefinite(kernel, rows)
        y, n = y.astype(float), len(y)
        middle, spread = (y.max() + y.min()) / 2, (y.max() - y.min()) / 2 or 1.0
        target, epsilon, cap = (y - middle) / spread, self.epsilon / spread, self.C * weight / spread  # one for all units of y
        signs = np.repeat([1.0, -1.0], n)
        dual = Dual(np.tile(np.arange(n), 2), signs, epsilon - signs * np.tile(target, 2), np.tile(cap, 2))
        start = None
        if old is not None and len(old) == n:
            beta = balanced(old / spread, cap)
            start = np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
        moved, mean = centered(kernel, rows)
        with threads.serial_blas():  # matrices are small, or worked on by threads of our own
            solution = solve(dual, kernel, moved, start=start, **self._options())
        beta = spread * dual.coefficients(solution.a, n)
        support = np.flatnonzero(beta)
        self._keep_support(kernel, rows, support, numbers)
        self.dual_coef_ = beta[support][None, :]
        self.intercept_ = np.array([middle + spread * solution.bias - shift_of(beta, moved, mean)])
        with np.errstate(divide="ignore"):
            scores = spread * solution.scores
            self.margin_ = 1 / np.sqrt(squared_norms(kernel, moved, beta[:, None], scores[:, None]))
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged
        self._shape = (n, self.n_features_in_)
        return self

    def _old_coefficients(self):
        """Return the coefficients of the last fit, one for each row, or None."""
        if not hasattr(self, "support_") or (len(self.support_) and self.support_.max() >= self._shape[0]):
            return None
        old = np.zeros(self._shape[0])
        old[self.support_] = self.dual_coef_[0]
        return old

    def _coefficients(self):
        """Return the coefficients, (support vectors, 1), once shapes fit together."""
        if self.dual_coef_.shape != (1, len(self.support_)):
            raise ValueError(f"dual_coef_ has the shape {self.dual_coef_.shape}, which is not that of a fit.")
        return np.asarray(self.dual_coef_, dtype=float).T

    def predict(self, X):
        """Predict f(x) for each row."""
        scores, dtype = self._scores(X)
        return as_output(scores[:, 0], dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no machine has a smaller objective, from the coefficients and the data."""
        check_is_fitted(self)
        table, y, weight, numbers = load(self._blocks(X, y, sample_weight, reset=False, order="C"))
        kernel, rows = self._choose(table, weight, numbers)
        checks = self._support_checks(kernel, rows, numbers)
        if not all(check.holds for check in checks):
            return Certificate(*checks, subject=repr(self))
        y, cap = y.astype(float), self.C * weight
        stored = np.zeros(len(y))
        stored[np.searchsorted(numbers, self.support_)] = self.dual_coef_[0]
        feasible = balanced(stored, cap)
        rows, mean = centered(kernel, rows)
        ahead = kernel.prepare(rows.astype(float))
        g, g_feasible = scores_of(kernel, ahead, ahead, np.column_stack([stored, feasible])).T
        bias = float(self.intercept_[0] + shift_of(stored, rows, mean))
        squared = float(squared_norms(kernel, rows, stored[:, None], g[:, None])[0])
        verdict = judge_regressor(stored, g, feasible, g_feasible, y, cap, self.epsilon, bias, squared)
        loss = "Σ C max(0, |y − f| − ε)"
        return Certificate(*checks, *verdict_checks([verdict], loss), margin_check(self.margin_, [verdict]), subject=repr(self))
