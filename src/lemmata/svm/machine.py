"""What the kernel machines share: which kernel, rows in memory, scores Σⱼ cⱼ k(x, xⱼ) + b over the support vectors."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Check
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Estimator
from lemmata.kernels import Kernel, Linear, Precomputed, choose_kernel
from lemmata.kernels.choice import NAMES
from lemmata.svm.decomposition import ROWS, block_scores


def load(blocks):
    """Bring rows into memory: the rows of positive weight, their targets, weights, and numbers in the whole table."""
    rows, y, weight = blocks.whole()
    weight = np.ones(rows.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    return rows, np.asarray(y), weight, blocks.numbers()


def centered(kernel, rows):
    """Take the mean off rows for the linear kernel: balanced coefficients do not feel it, but rounding does.

    Returns
    -------
    The rows, and the mean, or None where nothing is taken off.
    """
    if not isinstance(kernel, Linear) or is_sparse(rows):
        return rows, None
    mean = rows.mean(axis=0, dtype=float)
    return rows - mean, mean


def shift_of(coefficients, rows, mean):
    """Return by how much the bias is smaller when the mean is back in the rows; coefficients are (n,) or (n, m)."""
    return np.zeros(coefficients.shape[1:]) if mean is None else mean @ (rows.T @ coefficients)


def score_block(X, weight, kernel, support, coefficients, intercept):
    """Scores of a block, (n, m), over support vectors that were prepared."""
    scores = np.empty((X.shape[0], coefficients.shape[1]))
    for start in range(0, X.shape[0], ROWS):  # so that a long block takes no more memory than a short one
        points = kernel.prepare(X[start : start + ROWS].astype(float), support)
        scores[start : start + ROWS] = block_scores(kernel, points, support, coefficients)
    return scores + intercept


def plane_block(X, weight, planes, intercept):
    """Scores of a block, (n, m), from planes in the columns, (d, m)."""
    return np.asarray(X @ planes, dtype=float) + intercept


def given_block(X, weight, support, coefficients, intercept):
    """Scores of a block of a kernel matrix whose columns are the rows of the fit."""
    return X[:, support].astype(float) @ coefficients + intercept


class KernelMachine(Estimator):
    """Base of the machines: parameters of the kernel and of the solver, and scores from support vectors."""

    most_rows = 20_000
    _machine_constraints = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({*NAMES, "precomputed"}), Kernel, callable],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = not given
        return tags

    def _given(self):
        """Tell whether the rows are those of a kernel matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _choose(self, rows, weight, numbers):
        """Return the kernel, and the rows that it takes: for a given matrix, the numbers of its rows."""
        if self._given():
            if rows.shape[1] < rows.shape[0] or numbers[-1] >= rows.shape[1]:
                raise ValueError(
                    f"A precomputed kernel matrix is square, got {rows.shape[0]} rows and {rows.shape[1]} columns."
                )
            matrix = np.asarray(rows[:, numbers], dtype=float)
            if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * np.abs(matrix).max(initial=0.0):
                raise ValueError("A precomputed kernel matrix is symmetric, and this one is not.")
            return Precomputed((matrix + matrix.T) / 2), np.arange(len(matrix), dtype=float)[:, None]
        kernel = choose_kernel(self.kernel, rows, weight, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        return kernel, rows

    def _options(self):
        """Return what the solver needs to know."""
        options = {"tol": self.tol, "max_iter": self.max_iter, "cache_size": self.cache_size}
        return options | {"verbose": self.verbose, "name": type(self).__name__}

    def _keep_support(self, kernel, rows, support, numbers):
        """Keep the kernel and the support vectors, which are these of the rows."""
        self.support_ = numbers[support].astype(np.int32)
        if self._given():
            vars(self).pop("kernel_", None)
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.kernel_ = kernel
            self.support_vectors_ = rows[support]

    def _support_checks(self, kernel, rows, numbers):
        """Check that the support vectors are rows of the table, and that the kernel is the one asked for."""
        claim, found = "support vectors are rows of the table", False
        if self.support_.ndim == 1 and self.dual_coef_.shape[1:] == self.support_.shape:
            place = np.searchsorted(numbers, self.support_)
            found = np.array_equal(numbers[np.minimum(place, len(numbers) - 1)], self.support_)
            found = found and (self._given() or equal_tables(self.support_vectors_, rows[place]))
        checks = [Check("support", 0.0 if found else np.inf, SAME_LIMIT, "proof", claim)]
        if not self._given():
            agree, claim = self.kernel_ == kernel, "the kernel has the parameters asked for"
            checks.append(Check("kernel", 0.0 if agree else np.inf, SAME_LIMIT, "proof", claim))
        return checks

    def _scores(self, X):
        """Return the scores of rows, (n, m), and the precision of the rows."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        coefficients = self._coefficients()
        if self._given():
            return blocks.map(given_block, self.support_, coefficients, self.intercept_), blocks.dtype
        if isinstance(self.kernel_, Linear) or not len(self.support_):
            planes = np.asarray(coefficients.T @ self.support_vectors_, dtype=float).T
            return blocks.map(plane_block, planes, self.intercept_), blocks.dtype
        support = self.kernel_.prepare(self.support_vectors_.astype(float))
        return blocks.map(score_block, self.kernel_, support, coefficients, self.intercept_), blocks.dtype

    @property
    def coef_(self):
        """Weights of the columns, (m, d), where the kernel is linear."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError(
                "coef_ is there once a machine with a linear kernel is fitted: others have no weights of columns."
            )
        planes = self._coefficients().T @ self.support_vectors_
        return planes if is_sparse(planes) else np.asarray(planes)


def equal_tables(stored, rows):
    """Tell whether two tables have the same entries, dense or sparse."""
    if is_sparse(stored) or is_sparse(rows):
        return is_sparse(stored) and is_sparse(rows) and stored.shape == rows.shape and abs(stored - rows).nnz == 0
    return np.array_equal(stored, rows)
