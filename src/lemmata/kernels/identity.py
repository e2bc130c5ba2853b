"""Kernels of which rows they are, not of what the rows hold: noise, and matrices computed elsewhere."""

import numpy as np

from lemmata.kernels.algebra import Kernel, bare
from lemmata.kernels.rows import Rows


class White(Kernel):
    """White noise: k(x, z) = σ² if x and z are the same row, else 0. Rows of two tables are never the same.

    Parameters
    ----------
    noise : σ², the variance of the noise.
    noise_bounds : Within what σ² may be fitted, or "fixed".

    Examples
    --------
    >>> White(0.5)([[1.0], [1.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> White(0.5)([[1.0]], [[1.0]])
    array([[0.]])
    """

    hyperparameters = ("noise",)

    def __init__(self, noise=1.0, *, noise_bounds=(1e-10, 1e5)):
        self.noise = noise
        self.noise_bounds = noise_bounds

    def __repr__(self, N_CHAR_MAX=700):
        return f"White({self.noise})"

    def prepare(self, X, beside=None):
        """Keep the numbers of the rows."""
        return bare(X)

    @property
    def nonnegative(self):
        """A variance is not negative."""
        return True

    def values(self, A, B):
        """Return σ² where a row meets itself."""
        K = np.zeros((len(A), len(B)))
        if A.table is B.table:
            K[A.names[:, None] == B.names] = self._value("noise")
        return K

    def diagonal(self, A):
        """Return σ² for each row."""
        return np.full(len(A), float(self._value("noise")))

    def derivatives(self, A, B):
        """Yield ∂k/∂log σ² = k."""
        for _ in self._free():
            yield self.values(A, B)

    def pull(self, W, A):
        """Return σ² times the trace of W."""
        return np.array([self._value("noise") * np.trace(W) for _ in self._free()])


class Precomputed(Kernel):
    """A kernel between objects that is known as a matrix: rows are given by their numbers in it.

    Parameters
    ----------
    matrix : (n, n), symmetric; entry (i, j) is the kernel of the objects i and j.

    Examples
    --------
    >>> k = Precomputed([[2.0, 1.0], [1.0, 3.0]])
    >>> k([[1], [0]], [[1]])
    array([[3.],
           [1.]])
    """

    def __init__(self, matrix):
        self.matrix = matrix

    def __repr__(self, N_CHAR_MAX=700):
        return f"Precomputed(matrix of shape {np.shape(self.matrix)})"

    @property
    def positive(self):
        """It depends on the matrix."""
        return None

    def _checked(self):
        K = np.asarray(self.matrix, dtype=float)
        if (
            K.ndim != 2
            or K.shape[0] != K.shape[1]
            or not np.allclose(K, K.T, rtol=1e-8, atol=1e-8 * np.abs(K).max(initial=0.0))
        ):
            raise ValueError(f"The matrix of Precomputed must be square and symmetric, got shape {K.shape}.")
        return K

    def prepare(self, X, beside=None):
        """Read the numbers of the objects from the only column."""
        n = len(self._checked())
        if X.shape[1] != 1 or not np.array_equal(X, np.clip(np.round(X), 0, n - 1)):
            raise ValueError(f"Rows for Precomputed have one column: the numbers of objects, from 0 to {n - 1}.")
        return Rows(None, X[:, 0].astype(int), None)

    def values(self, A, B):
        """Look the entries up."""
        return np.asarray(self.matrix, dtype=float)[np.ix_(A.names, B.names)]

    def diagonal(self, A):
        """Look the diagonal up."""
        return np.asarray(self.matrix, dtype=float)[A.names, A.names]
