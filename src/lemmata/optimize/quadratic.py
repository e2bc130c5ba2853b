"""Quadratic forms and second-order conditions.

f(x) = ½ xᵀAx + bᵀx + c has the gradient ½(A + Aᵀ)x + b and the Hessian ½(A + Aᵀ): only the symmetric part of A matters. It is
convex if and only if no eigenvalue of that part is negative, and then its extreme eigenvalues μ and L are the constants of
strong convexity and of the gradient's Lipschitz condition. For any f, a minimum needs a Hessian that is positive
semidefinite, a maximum one that is negative semidefinite; definite ones are enough. Between the two nothing is decided.
Certificate: the smallest eigenvalue, and the success of a Cholesky factorization.

Boyd & Vandenberghe, Convex Optimization, appendix A (2004).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ZERO = 1e-10  # an eigenvalue below this share of the largest counts as zero: 10⁶ roundings


class SecondOrder(NamedTuple):
    """What a Hessian says of a stationary point.

    Parameters
    ----------
    kind : "minimum", "maximum", "saddle", or "undecided" where an eigenvalue is zero and the others do not disagree.
    eigenvalues : Ascending.
    semidefinite : Whether no eigenvalue is negative: what a minimum needs.
    cholesky : Whether H (or −H, for a maximum) has a Cholesky factor: the second opinion.
    """

    kind: str
    eigenvalues: np.ndarray
    semidefinite: bool
    cholesky: bool


def second_order(H, tol=ZERO):
    """Classify a stationary point by the eigenvalues of its Hessian.

    Parameters
    ----------
    tol : Eigenvalues within this share of the largest count as zero. A Hessian from differences deserves 1e-6.

    Examples
    --------
    >>> second_order(np.eye(2)).kind, second_order(-np.eye(2)).kind, second_order(np.diag([1.0, -1.0])).kind
    ('minimum', 'maximum', 'saddle')
    >>> second_order(np.diag([1.0, 0.0]))
    SecondOrder(kind='undecided', eigenvalues=array([0., 1.]), semidefinite=True, cholesky=False)
    """
    H = np.atleast_2d(np.asarray(H, dtype=float))
    H = (H + H.T) / 2
    values = np.linalg.eigvalsh(H)
    zero = tol * np.abs(values).max(initial=0.0)
    up, down = bool((values > zero).any()), bool((values < -zero).any())
    flat = bool((np.abs(values) <= zero).any())
    kind = "saddle" if up and down else "undecided" if flat else "minimum" if up else "maximum"
    return SecondOrder(kind, values, not down, _has_cholesky(-H if kind == "maximum" else H))


def _has_cholesky(H):
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return False
    return True


@dataclass(frozen=True)
class Quadratic:
    """The function ½ xᵀAx + bᵀx + c with its derivatives.

    Parameters
    ----------
    A : Square matrix; it need not be symmetric.
    b : Vector, by default zero.
    c : Number.

    Examples
    --------
    >>> f = Quadratic([[1.0, 2.0], [0.0, 3.0]])
    >>> f([1.0, 1.0])
    3.0
    >>> f.gradient([1.0, 1.0])
    array([2., 4.])
    >>> f.hessian()
    array([[1., 1.],
           [1., 3.]])
    """

    A: np.ndarray
    b: np.ndarray | None = None
    c: float = 0.0

    def __post_init__(self):
        A = np.atleast_2d(np.asarray(self.A, dtype=float))
        b = np.zeros(len(A)) if self.b is None else np.asarray(self.b, dtype=float)
        if A.shape != (len(A), len(A)) or b.shape != (len(A),):
            raise ValueError(f"A must be square and b as long as A, got the shapes {A.shape} and {b.shape}.")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", b)

    def __call__(self, x):
        """Return the value at x."""
        x = np.asarray(x, dtype=float)
        return float(x @ self.A @ x / 2 + self.b @ x + self.c)

    def gradient(self, x):
        """Return ½(A + Aᵀ)x + b."""
        return self.hessian() @ np.asarray(x, dtype=float) + self.b

    def hessian(self, x=None):
        """Return ½(A + Aᵀ), which does not depend on x."""
        return (self.A + self.A.T) / 2

    @property
    def curvature(self):
        """The extreme eigenvalues (μ, L) of the Hessian: strong convexity, and Lipschitz constant of the gradient."""
        values = np.linalg.eigvalsh(self.hessian())
        return float(values[0]), float(values[-1])

    def minimizer(self):
        """Return the point of least value; the one nearest to zero if there are several, an error if there is none."""
        H = self.hessian()
        x = -np.linalg.lstsq(H, self.b, rcond=ZERO)[0]
        if not second_order(H).semidefinite or not np.allclose(H @ x, -self.b, rtol=0, atol=ZERO**0.5 * np.abs(self.b).max()):
            raise ValueError("This quadratic form is not bounded from below: it has no minimizer.")
        return x
