"""Kernels by name, as estimators take them: "linear", "poly", "rbf", "sigmoid", or a kernel, or any function of two tables."""

from numbers import Real

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.kernels.algebra import Kernel
from lemmata.kernels.dot import Linear, Polynomial, Sigmoid
from lemmata.kernels.rows import BLOCK, Rows
from lemmata.kernels.stationary import RBF

NAMES = ("linear", "poly", "rbf", "sigmoid")


def choose_kernel(kernel, X, weight=None, *, gamma="scale", degree=3, coef0=0.0):
    """Return the kernel of a name for rows X; a kernel is returned as it is, and a function is wrapped.

    Parameters
    ----------
    kernel : One of `NAMES`, a kernel, or a function of two tables that returns the matrix of their kernel.
    X : (n, d), what gamma="scale" and gamma="auto" are computed from.
    weight : (n,), repetitions of the rows, or None.
    gamma, degree, coef0 : Parameters of the named kernels. "scale" is 1 / (d · variance of all entries), "auto" is 1/d.

    Examples
    --------
    >>> choose_kernel("rbf", np.array([[0.0], [2.0]]))
    RBF(gamma=1.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel)
    if kernel == "linear":
        return Linear()
    gamma = choose_gamma(gamma, X, weight)
    if kernel == "rbf":
        return RBF(gamma=gamma)
    if kernel == "poly":
        return Polynomial(degree, coef0, gamma=gamma)
    if kernel == "sigmoid":
        return Sigmoid(gamma, coef0)
    raise ValueError(f"kernel must be one of {NAMES}, a kernel of lemmata.kernels or a function, got {kernel!r}.")


def choose_gamma(gamma, X, weight=None):
    """Return gamma as a number; see `choose_kernel`."""
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / X.shape[1]
    if isinstance(gamma, str) and gamma == "scale":
        variance = float(_variance(X, weight))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if isinstance(gamma, Real) and 0 < gamma < np.inf:
        return float(gamma)
    raise ValueError(f"gamma must be a positive number, 'scale' or 'auto', got {gamma!r}.")


def _variance(X, weight):
    """Return the variance of all entries, of rows that are repeated as often as their weights say."""
    weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    total = weight.sum() * X.shape[1]
    if is_sparse(X):
        repeated = np.repeat(weight, np.diff(X.indptr))
        entries = X.data.astype(float)
        mean = (repeated @ entries) / total
        return float(repeated @ (entries - mean) ** 2 + (total - repeated.sum()) * mean**2) / total
    mean = float(weight @ X.sum(axis=1, dtype=float)) / total
    return float(weight @ ((X - mean) ** 2).sum(axis=1, dtype=float)) / total


class Function(Kernel):
    """A kernel that is any function of two tables, (n, d) and (m, d) → (n, m).

    Parameters
    ----------
    function : The function; that it is symmetric and positive semidefinite is up to the caller.

    Examples
    --------
    >>> Function(lambda X, Y: X @ Y.T)([[1.0, 2.0]], [[3.0, 1.0]])
    array([[5.]])
    """

    def __init__(self, function):
        self.function = function

    def prepare(self, X, beside=None):
        """Keep the rows as they are."""
        return Rows(X, np.arange(X.shape[0]), None)

    @property
    def positive(self):
        """It depends on the function."""
        return None

    def values(self, A, B):
        """Call the function."""
        K = self.function(A.points, B.points)
        K = np.array(K.toarray() if is_sparse(K) else K, dtype=A.points.dtype)
        if K.shape != (len(A), len(B)):
            raise ValueError(f"The kernel function returned shape {K.shape} for {len(A)} and {len(B)} rows.")
        return K

    def diagonal(self, A):
        """Call the function on blocks of rows, and take their diagonals."""
        blocks = (A[slice(start, start + BLOCK)] for start in range(0, len(A), BLOCK))
        return np.concatenate([np.diagonal(self.values(block, block)) for block in blocks])
