"""Kernels made of one kernel: powers, the exponential, a factor for each row, rows that are mapped before.

Whole powers are products of a kernel with itself, and exp k = Σ kᵐ/m! is a sum of them, so both are valid; f(x)·k(x, z)·f(z)
multiplies the features of a row by f(x), and k(ψ(x), ψ(z)) takes them of ψ(x).
"""

from numbers import Integral

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.kernels.algebra import Kernel, Product, Sum
from lemmata.kernels.rows import Rows


class _Changed(Kernel):
    """One kernel and a function of it that has no hyperparameters of its own."""

    def __init__(self, kernel):
        self.kernel = kernel

    def prepare(self, X, beside=None):
        """Prepare rows for the kernel inside."""
        return self.kernel.prepare(X, beside)

    @property
    def positive(self):
        """Whether the kernel inside is valid."""
        return True if self.kernel.positive else None

    @property
    def nonnegative(self):
        """Whether the kernel inside has no negative values."""
        return self.kernel.nonnegative

    @property
    def theta(self):
        """Those of the kernel inside."""
        return self.kernel.theta

    @property
    def bounds(self):
        """Bounds of theta."""
        return self.kernel.bounds

    @property
    def theta_names(self):
        """What each entry of theta is the logarithm of."""
        return [f"kernel__{name}" for name in self.kernel.theta_names]

    def with_theta(self, theta):
        """Return a copy with other hyperparameters, given by their logarithms."""
        return type(self)(self.kernel.with_theta(theta), *(v for k, v in self.get_params(deep=False).items() if k != "kernel"))

    def derivatives(self, A, B):
        """Yield the derivatives of the kernel inside times the slope of the function."""
        slope = self._slope(A, B) if len(self.theta) else None
        for D in self.kernel.derivatives(A, B):
            yield D * slope

    def pull(self, W, A):
        """Pull W times the slope back through the kernel inside."""
        return self.kernel.pull(W * self._slope(A, A), A) if len(self.theta) else np.zeros(0)


class Power(_Changed):
    """A kernel to a whole power, which `**` makes.

    Parameters
    ----------
    kernel : The kernel.
    exponent : A whole number of at least 1: other powers of a valid kernel need not be valid.

    Examples
    --------
    >>> from lemmata.kernels import Linear
    >>> (Linear() ** 2)([[1.0, 2.0]], [[3.0, 1.0]])
    array([[25.]])
    """

    def __init__(self, kernel, exponent):
        super().__init__(kernel)
        self.exponent = exponent

    def __repr__(self, N_CHAR_MAX=700):
        inner = f"({self.kernel!r})" if isinstance(self.kernel, (Sum, Product)) else repr(self.kernel)
        return f"{inner} ** {self.exponent}"

    def _whole(self):
        if not isinstance(self.exponent, Integral) or self.exponent < 1:
            raise ValueError(f"A kernel can be raised to whole powers of at least 1, got {self.exponent!r}.")
        return int(self.exponent)

    @property
    def nonnegative(self):
        """Whether the power is even, or the kernel inside has no negative values."""
        return True if self._whole() % 2 == 0 else self.kernel.nonnegative

    def values(self, A, B):
        """Return the power of each entry."""
        return self.kernel.values(A, B) ** self._whole()

    def log_values(self, A, B):
        """Return so many times the logarithm."""
        if not self.kernel.nonnegative:
            return super().log_values(A, B)
        return self._whole() * self.kernel.log_values(A, B)

    def diagonal(self, A):
        """Return the power of the diagonal."""
        return self.kernel.diagonal(A) ** self._whole()

    def _slope(self, A, B):
        return self._whole() * self.kernel.values(A, B) ** (self._whole() - 1)


class Exponential(_Changed):
    """The exponential of a kernel, exp k(x, z); `kernel.exp()` makes it.

    Parameters
    ----------
    kernel : The kernel.

    Examples
    --------
    >>> from lemmata.kernels import Linear
    >>> Linear().exp()([[0.5, 0.0]], [[2.0, 1.0]]).round(6)
    array([[2.718282]])
    """

    def __repr__(self, N_CHAR_MAX=700):
        return f"exp({self.kernel!r})"

    def values(self, A, B):
        """Return the exponential of each entry."""
        return np.exp(self.kernel.values(A, B))

    @property
    def nonnegative(self):
        """An exponential is positive."""
        return True

    def log_values(self, A, B):
        """Return the kernel inside."""
        return self.kernel.values(A, B)

    def diagonal(self, A):
        """Return the exponential of the diagonal."""
        return np.exp(self.kernel.diagonal(A))

    def _slope(self, A, B):
        return self.values(A, B)


class Weighted(_Changed):
    """A kernel with a factor for each row, f(x)·k(x, z)·f(z); `kernel.weighted(f)` makes it.

    Parameters
    ----------
    kernel : The kernel.
    function : f, a function of rows, (n, d) → (n,).

    Examples
    --------
    >>> from lemmata.kernels import Linear
    >>> Linear().weighted(lambda X: 1 / np.linalg.norm(X, axis=1))([[3.0, 4.0]], [[0.0, 2.0]])
    array([[0.8]])
    """

    def __init__(self, kernel, function):
        super().__init__(kernel)
        self.function = function

    def prepare(self, X, beside=None):
        """Prepare rows for the kernel inside, and keep their factors."""
        factors = np.asarray(self.function(X), dtype=X.dtype)
        if factors.shape != (X.shape[0],):
            raise ValueError(f"The function of Weighted must give a number for each of {X.shape[0]} rows, got {factors.shape}.")
        inner = self.kernel.prepare(X, None if beside is None else beside.parts[0])
        return Rows(factors, np.arange(X.shape[0]), None, squares=factors, parts=(inner,))

    @property
    def nonnegative(self):
        """It depends on the function."""
        return None

    def values(self, A, B):
        """Return the matrix with each row and each column multiplied."""
        return A.points[:, None] * self.kernel.values(A.parts[0], B.parts[0]) * B.points

    def diagonal(self, A):
        """Return the diagonal times the squares of the factors."""
        return A.points**2 * self.kernel.diagonal(A.parts[0])

    def derivatives(self, A, B):
        """Yield the derivatives of the kernel inside with each row and each column multiplied."""
        for D in self.kernel.derivatives(A.parts[0], B.parts[0]):
            yield A.points[:, None] * D * B.points

    def pull(self, W, A):
        """Pull W, multiplied by the factors, back through the kernel inside."""
        return self.kernel.pull(A.points[:, None] * W * A.points, A.parts[0])


class Mapped(_Changed):
    """A kernel of mapped rows, k(ψ(x), ψ(z)); `kernel.of(ψ)` makes it.

    Parameters
    ----------
    kernel : The kernel.
    function : ψ, a map of rows, (n, d) → (n, e).

    Examples
    --------
    >>> from lemmata.kernels import RBF
    >>> on_a_circle = RBF().of(lambda X: np.column_stack([np.cos(X[:, 0]), np.sin(X[:, 0])]))
    >>> on_a_circle([[0.0]], [[np.pi], [2 * np.pi]]).round(6)
    array([[0.135335, 1.      ]])
    """

    def __init__(self, kernel, function):
        super().__init__(kernel)
        self.function = function

    def prepare(self, X, beside=None):
        """Map rows and prepare them for the kernel inside."""
        images = self.function(X)
        images = images.tocsr().astype(X.dtype) if is_sparse(images) else np.ascontiguousarray(images, dtype=X.dtype)
        if images.ndim != 2 or images.shape[0] != X.shape[0]:
            raise ValueError(f"The map of Mapped must give one row for each of {X.shape[0]} rows, got shape {images.shape}.")
        return self.kernel.prepare(images, beside)

    def values(self, A, B):
        """Return the matrix of the mapped rows."""
        return self.kernel.values(A, B)

    def log_values(self, A, B):
        """Return the logarithms of the kernel inside."""
        return self.kernel.log_values(A, B)

    def diagonal(self, A):
        """Return the diagonal of the mapped rows."""
        return self.kernel.diagonal(A)

    def derivatives(self, A, B):
        """Yield the derivatives of the kernel inside."""
        return self.kernel.derivatives(A, B)

    def pull(self, W, A):
        """Pull W back through the kernel inside."""
        return self.kernel.pull(W, A)
