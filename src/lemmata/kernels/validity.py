"""Is it a kernel? A test on points, whose "no" can be checked by hand.

A function is a valid kernel exactly if each of its matrices is symmetric and positive semidefinite. No test on points proves
that, but one matrix refutes it: a vector v with vᵀKv < 0 is the proof, and the eigenvector of the least eigenvalue is the
strongest. Eigenvalues that rounding alone pushes below 0 are within n·ε of the largest one, so that this is the tolerance.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from lemmata.core.certificate import TINY
from lemmata.core.data import is_sparse
from lemmata.core.threads import serial_blas
from lemmata.kernels.algebra import Kernel
from lemmata.kernels.choice import Function

EPS = float(np.finfo(float).eps)
ROUNDING = 8  # roundings in an entry of a kernel matrix, each of which moves an eigenvalue by up to n·ε of the largest
SAMPLED = 256  # rows on which a solver looks whether its kernel is valid: a matrix that costs it nothing


@dataclass(frozen=True)
class Validity:
    """What a test of a kernel matrix found; true if nothing speaks against the kernel.

    Attributes
    ----------
    least, largest : Eigenvalues of the matrix; of its symmetric part if it is not symmetric.
    tolerance : How far below 0 rounding alone may push an eigenvalue.
    asymmetry : The largest |k(x, z) − k(z, x)|.
    vector : v with vᵀKv = `least` < −`tolerance` and length 1, where there is one: a refutation that can be checked.
    """

    least: float
    largest: float
    tolerance: float
    asymmetry: float
    vector: Any = None

    def __bool__(self):
        return self.vector is None and self.asymmetry <= self.tolerance

    def __repr__(self):
        if self.vector is not None:
            return f"<not positive semidefinite: vᵀKv = {self.least:.6g} for the unit vector in .vector>"
        if not self:
            return f"<not symmetric: k(x, z) and k(z, x) differ by {self.asymmetry:.6g}>"
        return f"<positive semidefinite on these points: least eigenvalue {self.least:.6g}, tolerance {self.tolerance:.1g}>"


def is_positive_semidefinite(k, X=None, *, tol=None):
    """Test on points whether a function is a kernel, or whether a matrix is one of a kernel.

    Parameters
    ----------
    k : A kernel, a function of two tables that returns a matrix, or a square matrix.
    X : (n, d), the points; None for a matrix.
    tol : How far below 0 an eigenvalue may lie; by default what rounding can do.

    Returns
    -------
    Validity, which is true or false, and holds the least eigenvalue and the vector that refutes.

    Examples
    --------
    >>> from lemmata.kernels import RBF, Sigmoid
    >>> points = np.array([[0.0], [1.0], [2.0]])
    >>> bool(is_positive_semidefinite(RBF(), points))
    True
    >>> found = is_positive_semidefinite(Sigmoid(coef0=-1.0), points)
    >>> found
    <not positive semidefinite: vᵀKv = -1.26977 for the unit vector in .vector>
    >>> round(float(found.vector @ Sigmoid(coef0=-1.0)(points) @ found.vector), 6)
    -1.269772
    """
    K = matrix_of(k, X)
    n = len(K)
    asymmetry = float(np.abs(K - K.T).max(initial=0.0))
    with serial_blas():  # the same bits for any number of threads
        least, vector = eigh((K + K.T) / 2, subset_by_index=[0, 0])
        largest = float(eigh((K + K.T) / 2, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0])
    tolerance = rounding_of([least[0], largest], n) if tol is None else float(tol)
    refuted = float(least[0]) < -tolerance
    return Validity(float(least[0]), largest, tolerance, asymmetry, vector[:, 0] if refuted else None)


def rounding_of(eigenvalues, n=None):
    """Return how far below 0 rounding may push an eigenvalue of a matrix of n rows, given at least the extreme ones."""
    n = len(eigenvalues) if n is None else n
    return ROUNDING * n * EPS * max(float(eigenvalues[-1]), -float(eigenvalues[0]), TINY)


def matrix_of(k, X):
    """Return the matrix of a kernel or a function on points, or a matrix as it is."""
    if isinstance(k, Function):
        k = k.function  # as it is: a kernel is made symmetric when its matrix is filled
    if isinstance(k, Kernel):
        if X is None:
            raise ValueError("A kernel is tested on points: give them as X.")
        return k(X)
    if callable(k):
        if X is None:
            raise ValueError("A function is tested on points: give them as X.")
        X = X if is_sparse(X) else np.asarray(X)
        k = k(X, X)
    elif X is not None:
        raise ValueError("A matrix is tested as it is: leave X out.")
    K = k.toarray() if is_sparse(k) else np.array(k, dtype=float)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K):
        raise ValueError(f"A kernel matrix has a row and a column for each point, got shape {K.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("The kernel matrix holds NaN or infinity.")
    return K


def warn_if_indefinite(kernel, X=None, *, K=None):
    """Warn in one sentence where a kernel that no theorem covers is not positive semidefinite; for solvers that need it.

    Parameters
    ----------
    kernel : The kernel; nothing is computed if it is valid by a theorem.
    X : (n, d), the rows of a fit; 256 of them, evenly spaced, are looked at.
    K : A matrix of the kernel, or a part of it, instead of X.

    Returns
    -------
    Validity, or None if nothing had to be computed.

    Examples
    --------
    >>> from lemmata.kernels import RBF, Sigmoid
    >>> warn_if_indefinite(RBF(), [[0.0], [1.0], [2.0]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = warn_if_indefinite(Sigmoid(), np.array([[0.0], [1.0], [2.0]]))
    >>> print(caught[0].message)
    Sigmoid() is not positive semidefinite on these rows (least eigenvalue -0.0909), so that the problem is not convex and no \
certificate can be global; use another kernel, such as RBF.
    """
    if kernel.positive:
        return None
    if K is None:
        X = X if is_sparse(X) else np.asarray(X)
        found = is_positive_semidefinite(kernel, X[:: -(-X.shape[0] // SAMPLED)].astype(float))
    else:
        rows = slice(None, None, -(-len(K) // SAMPLED))
        found = is_positive_semidefinite(K[rows, rows])
    if not found:
        about = f"least eigenvalue {found.least:.3g}" if found.vector is not None else "it is not symmetric"
        warnings.warn(
            f"{kernel!r} is not positive semidefinite on these rows ({about}), so that the problem is not convex and no "
            "certificate can be global; use another kernel, such as RBF.",
            stacklevel=3,
        )
    return found
