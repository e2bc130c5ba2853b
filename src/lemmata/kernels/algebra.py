"""The algebra of kernels: what can be made of valid kernels and is valid again.

k₁ + k₂ stacks the features of both, and k₁·k₂ has all products of two of them, so that its matrices are positive semidefinite
(Schur); what follows from these is in `transforms`. Derivatives go by the rules of sums and products; in the pullback of a
product, W is multiplied by the other factor.
"""

from numbers import Real

import numpy as np

from lemmata.kernels.base import KernelFunction
from lemmata.kernels.rows import Rows, fill


class Kernel(KernelFunction):
    """Base of all kernels: call it on rows; add, multiply and raise kernels to powers.

    Examples
    --------
    >>> from lemmata.kernels import RBF, Linear, White
    >>> k = 2.0 * RBF(length_scale=0.5) + Linear() ** 2 + White(0.1)
    >>> k
    Constant(2.0) * RBF(length_scale=0.5) + Linear() ** 2 + White(0.1)
    >>> k([[0.0], [1.0]]).round(6)
    array([[2.1     , 0.270671],
           [0.270671, 3.1     ]])
    """

    def __add__(self, other):
        return Sum(self, as_kernel(other))

    def __radd__(self, other):
        return Sum(as_kernel(other), self)

    def __mul__(self, other):
        return Product(self, as_kernel(other))

    def __rmul__(self, other):
        return Product(as_kernel(other), self)

    def __sub__(self, other):
        raise TypeError("Kernels are added and multiplied, never subtracted: a difference of kernels need not be a kernel.")

    __rsub__ = __sub__

    def __neg__(self):
        raise TypeError("A kernel has no negative: only positive multiples of a kernel are kernels.")

    def __pow__(self, exponent):
        from lemmata.kernels.transforms import Power

        return Power(self, exponent)

    def exp(self):
        """Return the kernel exp k(x, z)."""
        from lemmata.kernels.transforms import Exponential

        return Exponential(self)

    def weighted(self, function):
        """Return the kernel f(x)·k(x, z)·f(z) for a function of rows, (n, d) → (n,)."""
        from lemmata.kernels.transforms import Weighted

        return Weighted(self, function)

    def of(self, function):
        """Return the kernel k(ψ(x), ψ(z)) for a map of rows, (n, d) → (n, e)."""
        from lemmata.kernels.transforms import Mapped

        return Mapped(self, function)


def as_kernel(value):
    """Return a kernel as it is, and a number as a constant kernel that stays fixed."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real):
        return Constant(float(value), value_bounds="fixed")
    raise TypeError(f"A kernel can be combined with kernels and numbers, not with {type(value).__name__}.")


class Constant(Kernel):
    """The constant kernel k(x, z) = c: a common level of unknown size, or a factor of another kernel.

    Parameters
    ----------
    value : c, at least 0; a variance.
    value_bounds : Within what c may be fitted, or "fixed".

    Examples
    --------
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    hyperparameters = ("value",)

    def __init__(self, value=1.0, *, value_bounds=(1e-5, 1e5)):
        self.value = value
        self.value_bounds = value_bounds

    def __repr__(self, N_CHAR_MAX=700):
        return f"Constant({self.value})"

    def prepare(self, X, beside=None):
        """Keep the number of rows; nothing else matters."""
        return bare(X)

    def _level(self):
        if not (isinstance(self.value, Real) and 0 <= self.value < np.inf):
            raise ValueError(f"value of Constant must be at least 0, got {self.value!r}: a negative multiple is no kernel.")
        return float(self.value)

    @property
    def nonnegative(self):
        """A variance is not negative."""
        return True

    def values(self, A, B):
        """Return a matrix of c."""
        return np.full((len(A), len(B)), self._level())

    def diagonal(self, A):
        """Return c for each row."""
        return np.full(len(A), self._level())

    def derivatives(self, A, B):
        """Yield ∂k/∂log c = c."""
        for _ in self._free():
            yield self.values(A, B)


def bare(X):
    """Prepare rows that are told apart by their numbers only."""
    return Rows(None, np.arange(X.shape[0]), object())


class _Pair(Kernel):
    """Two kernels and what is made of them."""

    def __init__(self, left, right):
        self.left = left
        self.right = right

    def prepare(self, X, beside=None):
        """Prepare rows for both kernels."""
        others = (None, None) if beside is None else beside.parts
        parts = tuple(k.prepare(X, other) for k, other in zip((self.left, self.right), others, strict=True))
        return Rows(None, np.arange(X.shape[0]), None, parts=parts)

    @property
    def positive(self):
        """Whether both kernels are valid."""
        return True if self.left.positive and self.right.positive else None

    @property
    def nonnegative(self):
        """Whether both kernels are free of negative values."""
        return True if self.left.nonnegative and self.right.nonnegative else None

    @property
    def theta(self):
        """Those of the left kernel, then those of the right one."""
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def bounds(self):
        """Bounds of theta."""
        return np.concatenate([self.left.bounds, self.right.bounds])

    @property
    def theta_names(self):
        """What each entry of theta is the logarithm of."""
        return [f"left__{name}" for name in self.left.theta_names] + [f"right__{name}" for name in self.right.theta_names]

    def with_theta(self, theta):
        """Return a copy with other hyperparameters, given by their logarithms."""
        cut = len(self.left.theta)
        if np.shape(theta) != (len(self.theta),):
            raise ValueError(f"theta has {len(self.theta)} entries for {self!r}, got shape {np.shape(theta)}.")
        return type(self)(self.left.with_theta(theta[:cut]), self.right.with_theta(theta[cut:]))


class Sum(_Pair):
    """The sum k₁(x, z) + k₂(x, z), which `+` makes.

    Parameters
    ----------
    left, right : The two kernels.

    Examples
    --------
    >>> from lemmata.kernels import Linear
    >>> (Linear() + 1.0)([[1.0, 2.0]], [[3.0, 1.0]])
    array([[6.]])
    """

    def __repr__(self, N_CHAR_MAX=700):
        return f"{self.left!r} + {self.right!r}"

    def values(self, A, B):
        """Return the sum of both matrices."""
        total = self.left.values(A.parts[0], B.parts[0])
        total += self.right.values(A.parts[1], B.parts[1])
        return total

    def log_values(self, A, B):
        """Return the logarithm of the sum, from those of both."""
        return np.logaddexp(self.left.log_values(A.parts[0], B.parts[0]), self.right.log_values(A.parts[1], B.parts[1]))

    def diagonal(self, A):
        """Return the sum of both diagonals."""
        return self.left.diagonal(A.parts[0]) + self.right.diagonal(A.parts[1])

    def derivatives(self, A, B):
        """Yield those of both kernels."""
        yield from self.left.derivatives(A.parts[0], B.parts[0])
        yield from self.right.derivatives(A.parts[1], B.parts[1])

    def pull(self, W, A):
        """Pull W back through both kernels."""
        return np.concatenate([self.left.pull(W, A.parts[0]), self.right.pull(W, A.parts[1])])


class Product(_Pair):
    """The product k₁(x, z)·k₂(x, z), which `*` makes.

    Parameters
    ----------
    left, right : The two kernels.

    Examples
    --------
    >>> from lemmata.kernels import Linear
    >>> (2.0 * Linear() * Linear())([[1.0, 2.0]], [[3.0, 1.0]])
    array([[50.]])
    """

    def __repr__(self, N_CHAR_MAX=700):
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right))

    def values(self, A, B):
        """Return the product of both matrices, entry by entry."""
        product = self.left.values(A.parts[0], B.parts[0])
        product *= self.right.values(A.parts[1], B.parts[1])
        return product

    def log_values(self, A, B):
        """Return the sum of the logarithms."""
        if not self.nonnegative:
            return super().log_values(A, B)
        return self.left.log_values(A.parts[0], B.parts[0]) + self.right.log_values(A.parts[1], B.parts[1])

    def diagonal(self, A):
        """Return the product of both diagonals."""
        return self.left.diagonal(A.parts[0]) * self.right.diagonal(A.parts[1])

    def derivatives(self, A, B):
        """Yield the derivatives of each factor times the other."""
        for one, other, i in ((self.left, self.right, 0), (self.right, self.left, 1)):
            if len(one.theta):
                factor = other.values(A.parts[1 - i], B.parts[1 - i])
                for D in one.derivatives(A.parts[i], B.parts[i]):
                    yield D * factor

    def pull(self, W, A):
        """Pull W, times the other factor, back through each factor."""
        found = []
        for one, other, i in ((self.left, self.right, 0), (self.right, self.left, 1)):
            if len(one.theta):
                part = A.parts[1 - i]
                found.append(one.pull(W * fill(other.values, part, part), A.parts[i]))
        return np.concatenate([np.zeros(0), *found])
