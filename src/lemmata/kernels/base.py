"""What every kernel is: a symmetric function k(x, z) of two rows that is an inner product of features of them.

A kernel is valid when each of its matrices K = (k(xᵢ, xⱼ)) is symmetric and positive semidefinite; then there are features φ in
some Hilbert space with k(x, z) = ⟨φ(x), φ(z)⟩, which may have infinitely many coordinates [1]. Sums, products, powers, positive
multiples, exponentials, f(x)·k(x, z)·f(z) and k(ψ(x), ψ(z)) of valid kernels are valid: sums stack features, products multiply
them (Schur). Hyperparameters are positive and are moved on a logarithmic scale; `theta` holds the logarithms of those that are
not fixed. A fit needs Σᵢⱼ Wᵢⱼ ∂Kᵢⱼ/∂θ for a symmetric W, which `pullback` gives without making the matrices ∂K/∂θ.

[1] Aronszajn, Trans. AMS 68 (1950).
"""

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, clone

from lemmata.core.data import as_matrix, is_sparse
from lemmata.kernels.rows import fill


class KernelFunction(BaseEstimator, ABC):
    """What a kernel does with rows, and its hyperparameters; `Kernel` adds the algebra."""

    hyperparameters: tuple[str, ...] = ()  # names of the parameters that may be fitted; "<name>_bounds" says within what
    __array_ufunc__ = None  # so that NumPy's numbers leave products and sums with a kernel to the kernel

    # What a kernel does with prepared rows

    @abstractmethod
    def prepare(self, X, beside=None):
        """Prepare rows of a matrix; `beside`, rows that they are to be multiplied with, gives them its origin."""

    @abstractmethod
    def values(self, A, B):
        """Return the matrix k(a, b) of prepared rows; it belongs to the caller."""

    @abstractmethod
    def diagonal(self, A):
        """Return k(a, a) for prepared rows."""

    def derivatives(self, A, B):
        """Yield ∂k(a, b)/∂θ for each entry of theta."""
        return iter(())

    def pull(self, W, A):
        """Return Σᵢⱼ Wᵢⱼ ∂k(aᵢ, aⱼ)/∂θ for each entry of theta; W is symmetric."""
        return np.array([np.vdot(W, D) for D in self.derivatives(A, A)])

    def log_values(self, A, B):
        """Return log k(a, b) for a kernel without negative values, where k itself may be too small for a number."""
        return log_of(self.values(A, B), self)

    @property
    def positive(self):
        """Whether every matrix is positive semidefinite by a theorem: True or False, or None where it depends on the rows."""
        return True

    @property
    def nonnegative(self):
        """Whether no value is negative, by its formula: True, False, or None where it is not known."""
        return None

    # What users call

    def __call__(self, X, Y=None):
        """Return the matrix of k(x, y), (n, m), in float64; of the rows of X with themselves without Y."""
        A, B = self._both(X, Y)
        K = fill(self.values, A, B)
        if A is B:
            np.fill_diagonal(K, self.diagonal(A))
        return K

    def diag(self, X):
        """Return k(x, x) for each row, (n,), without the rest of the matrix."""
        return np.asarray(self.diagonal(self.prepare(_rows(X))), dtype=float)

    def gradient(self, X, Y=None):
        """Return ∂k(x, y)/∂θ for each entry of theta, (len(theta), n, m)."""
        A, B = self._both(X, Y)
        found = list(self.derivatives(A, B))
        return np.array(found) if found else np.empty((0, len(A), len(B)))

    def pullback(self, W, X):
        """Return Σᵢⱼ Wᵢⱼ ∂k(xᵢ, xⱼ)/∂θ for each entry of theta and a symmetric W, without the matrices of derivatives."""
        A, W = self.prepare(_rows(X)), np.asarray(W, dtype=float)
        if W.shape != (len(A), len(A)):
            raise ValueError(f"W must have a row and a column for each of the {len(A)} rows, got shape {W.shape}.")
        return self.pull(W, A)

    def _both(self, X, Y):
        """Prepare the rows of two tables with the same columns; one that is not given is the other."""
        X = _rows(X)
        A = self.prepare(X)
        if Y is None:
            return A, A
        Y = _rows(Y)
        if Y.shape[1] != X.shape[1]:
            raise ValueError(f"Both tables of a kernel must have the same columns, got {X.shape[1]} and {Y.shape[1]}.")
        return A, self.prepare(Y, A)

    # Hyperparameters

    def _free(self):
        """Return the names of the hyperparameters that are not fixed, and the bounds of each."""
        found = [(name, getattr(self, f"{name}_bounds")) for name in self.hyperparameters]
        return [(name, bounds) for name, bounds in found if not (isinstance(bounds, str) and bounds == "fixed")]

    @property
    def theta(self):
        """Logarithms of the hyperparameters that are not fixed."""
        return np.log(np.concatenate([np.zeros(0), *(np.atleast_1d(self._value(name)) for name, _ in self._free())]))

    @property
    def bounds(self):
        """Logarithms of the least and largest values of theta, (len(theta), 2)."""
        found = [np.empty((0, 2))]
        for name, bounds in self._free():
            size = np.atleast_1d(self._value(name)).size
            pairs = np.broadcast_to(np.asarray(bounds, dtype=float), (size, 2))
            if not ((pairs[:, 0] > 0) & (pairs[:, 0] <= pairs[:, 1])).all():
                raise ValueError(f"{name}_bounds must be a pair 0 < low <= high or 'fixed', got {bounds!r}.")
            found.append(np.log(pairs))
        return np.concatenate(found)

    @property
    def theta_names(self):
        """What each entry of theta is the logarithm of."""
        found = []
        for name, _ in self._free():
            value = np.asarray(self._value(name))
            found += [name] if value.ndim == 0 else [f"{name}[{i}]" for i in range(len(value))]
        return found

    def with_theta(self, theta):
        """Return a copy with other hyperparameters, given by their logarithms."""
        theta, twin, start = np.asarray(theta, dtype=float), clone(self), 0
        if theta.shape != self.theta.shape:
            raise ValueError(f"theta has {len(self.theta)} entries for {self!r}, got shape {theta.shape}.")
        for name, _ in self._free():
            old = np.asarray(self._value(name))
            value = np.exp(theta[start : start + old.size])
            twin.set_params(**self._changed(name, float(value[0]) if old.ndim == 0 else value))
            start += old.size
        return twin

    def _value(self, name):
        """Return a hyperparameter, which is positive."""
        value = np.asarray(getattr(self, name), dtype=float)
        if not (np.isfinite(value).all() and (value > 0).all()):
            raise ValueError(f"{name} of {type(self).__name__} must be positive, got {getattr(self, name)!r}.")
        return value

    def _changed(self, name, value):
        """Return the parameters to set for a new value of a hyperparameter."""
        return {name: value}

    def __eq__(self, other):
        if type(self) is not type(other):
            return False
        one, two = self.get_params(deep=False), other.get_params(deep=False)
        return all(_equal(value, two[name]) for name, value in one.items())

    __hash__ = None


def _equal(a, b):
    """Tell whether two parameters are the same: kernels by their own rule, the rest entry by entry."""
    if isinstance(a, KernelFunction) or callable(a):
        return bool(a == b)
    if np.ndim(a) or np.ndim(b):
        return np.shape(a) == np.shape(b) and bool((np.asarray(a) == np.asarray(b)).all())
    return bool(a == b)


def log_of(K, kernel):
    """Return the logarithms of values that must not be negative."""
    if (K < 0).any():
        raise ValueError(f"{kernel!r} has negative values, of which there is no logarithm; use a kernel such as RBF.")
    with np.errstate(divide="ignore"):
        return np.log(K)


def _rows(X):
    """Return rows as a matrix of float64, dense or CSR; entries that are no numbers would spread silently."""
    X, _ = as_matrix(X)
    X = X.astype(np.float64, copy=False) if is_sparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    if not np.isfinite(X.data if is_sparse(X) else X).all():
        raise ValueError("A kernel takes rows of finite numbers, and these hold NaN or infinity; fill or drop them first.")
    return X
