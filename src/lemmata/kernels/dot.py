"""Kernels of the inner product: ⟨x, z⟩, (γ⟨x, z⟩ + c)ᵐ and tanh(γ⟨x, z⟩ + c).

The polynomial of a whole degree m with γ > 0 and c ≥ 0 is valid: its features are the monomials up to degree m with the square
roots of multinomial coefficients (`feature_map`). The tanh, named after neural networks, is not: for the points 0, 1, 2 with
γ = 1 and c = 0 its matrix has the eigenvalue −0.09, and other c are no better. Convex solvers warn of it.
"""

from numbers import Integral, Real

import numpy as np

from lemmata.kernels.algebra import Kernel
from lemmata.kernels.rows import Rows, products


class _Dot(Kernel):
    """A function of the inner product."""

    @property
    def nonnegative(self):
        """An inner product may be negative."""
        return False

    def prepare(self, X, beside=None):
        """Keep the rows as they are."""
        return Rows(X, np.arange(X.shape[0]), None)


class Linear(_Dot):
    """The inner product k(x, z) = ⟨x, z⟩.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 1.0]])
    array([[5.]])
    """

    def values(self, A, B):
        """Return all inner products."""
        return products(A.points, B.points)

    def diagonal(self, A):
        """Return the squared lengths."""
        return A.squares


class _Bent(_Dot):
    """A function of γ⟨x, z⟩ + c."""

    hyperparameters = ("gamma", "coef0")

    def _base(self, P):
        numbers = isinstance(self.gamma, Real) and isinstance(self.coef0, Real)
        if not (numbers and 0 < self.gamma < np.inf and abs(self.coef0) < np.inf):
            raise ValueError(
                f"gamma of {type(self).__name__} must be positive and coef0 finite, got {self.gamma!r} and {self.coef0!r}."
            )
        P *= self.gamma
        P += self.coef0
        return P

    def values(self, A, B):
        """Return the function of all inner products."""
        return self._of(self._base(products(A.points, B.points)))

    def diagonal(self, A):
        """Return the function of the squared lengths."""
        return self._of(self._base(A.squares.copy()))

    def derivatives(self, A, B):
        """Yield the slope times γ⟨x, z⟩, then times c."""
        P = products(A.points, B.points)
        for name, _ in self._free():
            yield self._slope(self._base(P.copy())) * (self.gamma * P if name == "gamma" else self.coef0)


class Polynomial(_Bent):
    """The polynomial kernel k(x, z) = (γ⟨x, z⟩ + c)ᵐ; with c = 0 it is homogeneous.

    Parameters
    ----------
    degree : m, a whole number of at least 1.
    coef0 : c; at least 0 for a valid kernel.
    gamma : γ, positive.
    gamma_bounds, coef0_bounds : Within what γ and c may be fitted, or "fixed".

    Examples
    --------
    >>> Polynomial(2)([[1.0, 2.0]], [[3.0, 1.0]]), Polynomial(2, coef0=0.0)([[1.0, 2.0]], [[3.0, 1.0]])
    (array([[36.]]), array([[25.]]))
    """

    def __init__(self, degree=3, coef0=1.0, *, gamma=1.0, gamma_bounds="fixed", coef0_bounds="fixed"):
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds
        self.coef0_bounds = coef0_bounds

    @property
    def positive(self):
        """Whether c is at least 0, so that all monomials have weights of at least 0."""
        return True if self.coef0 >= 0 else None

    @property
    def nonnegative(self):
        """Whether the degree is even."""
        return self._whole() % 2 == 0

    def _whole(self):
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"degree of Polynomial must be a whole number of at least 1, got {self.degree!r}.")
        return int(self.degree)

    def _of(self, P):
        power = P.copy()
        for _ in range(self._whole() - 1):
            power *= P
        return power

    def _slope(self, P):
        return self._whole() * P ** (self._whole() - 1)


class Sigmoid(_Bent):
    """The tanh of the inner product, k(x, z) = tanh(γ⟨x, z⟩ + c), which is not positive semidefinite in general.

    Parameters
    ----------
    gamma : γ, positive.
    coef0 : c.
    gamma_bounds, coef0_bounds : Within what γ and c may be fitted, or "fixed".

    Examples
    --------
    >>> import numpy as np
    >>> round(float(np.linalg.eigvalsh(Sigmoid()([[0.0], [1.0], [2.0]])).min()), 6)
    -0.090867
    """

    def __init__(self, gamma=1.0, coef0=0.0, *, gamma_bounds="fixed", coef0_bounds="fixed"):
        self.gamma = gamma
        self.coef0 = coef0
        self.gamma_bounds = gamma_bounds
        self.coef0_bounds = coef0_bounds

    @property
    def positive(self):
        """It depends on the rows."""
        return None

    def _of(self, P):
        return np.tanh(P, out=P)

    def _slope(self, P):
        return 1 - np.tanh(P) ** 2
