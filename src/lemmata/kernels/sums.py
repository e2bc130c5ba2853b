"""Sums Σⱼ k(x, zⱼ)·cⱼ over many rows, tile by tile, so that no matrix of all pairs is ever in memory.

Averages with the weights k(x, zⱼ) need them only up to a factor: where k has a logarithm, the largest one is taken off before
the exponential, so that rows far from all z have weights that are numbers, and not 0/0.
"""

from itertools import pairwise

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials

TILE = 256  # rows of a tile, and
WIDE_TILE = 4096  # rows z of it: 8 MiB for a thread


@kernel
def add_sums(K, C, out):
    """Add Σⱼ K[i, j]·C[c, j] to out[i, c]."""
    for i in range(K.shape[0]):
        for c in range(C.shape[0]):
            s = 0.0
            for j in range(K.shape[1]):
                s += K[i, j] * C[c, j]
            out[i, c] += s


@kernel
def add_soft_sums(L, C, top, out, bits, powers):
    """Add Σⱼ exp(L[i, j] − top[i])·C[c, j] to out[i, c], where top rises to the largest L[i, j] met so far."""
    m = L.shape[1]
    for i in range(L.shape[0]):
        largest = L[i, 0]
        for j in range(m):
            largest = max(largest, L[i, j])
        if largest == -np.inf:
            continue
        if largest > top[i]:
            factor = np.exp(top[i] - largest)
            for c in range(C.shape[0]):
                out[i, c] *= factor
            top[i] = largest
        for j in range(m):
            L[i, j] -= top[i]
        exponentials(L[i], m, bits, powers)
        for c in range(C.shape[0]):
            s = 0.0
            for j in range(m):
                s += L[i, j] * C[c, j]
            out[i, c] += s


class Reference:
    """The rows z of a fit and their coefficients, prepared and cut for sums with any number of rows x.

    Parameters
    ----------
    kernel : The kernel.
    Z : (m, d), dense or CSR.
    C : (m, c), coefficients.
    """

    def __init__(self, kernel, Z, C):
        self.kernel = kernel
        self.rows = kernel.prepare(in_double(Z))
        C = np.ascontiguousarray(np.asarray(C, dtype=float).T)
        cuts = [slice(start, start + WIDE_TILE) for start in range(0, len(self.rows), WIDE_TILE)]
        self.parts = [(self.rows[cut], np.ascontiguousarray(C[:, cut])) for cut in cuts]
        self.n_sums = len(C)

    def sums(self, X):
        """Return Σⱼ k(x, zⱼ) cⱼ for rows, (n, c).

        >>> from lemmata.kernels import Linear
        >>> Reference(Linear(), np.array([[1.0], [2.0]]), [[1.0], [10.0]]).sums(np.array([[3.0]]))
        array([[63.]])
        """
        A = self.kernel.prepare(in_double(X), self.rows)
        out = np.zeros((len(A), self.n_sums))
        for start in range(0, len(A), TILE):
            tile = slice(start, start + TILE)
            for B, C in self.parts:
                add_sums(self.kernel.values(A[tile], B).astype(float, copy=False), C, out[tile])
        return out

    def soft_sums(self, X):
        """Return Σⱼ k(x, zⱼ)/k* cⱼ, (n, c), where k* > 0 is the largest k(x, zⱼ); zeros where all are 0.

        >>> from lemmata.kernels import RBF
        >>> Reference(RBF(), np.array([[0.0], [1.0]]), [[1.0], [5.0]]).soft_sums(np.array([[1000.0]]))
        array([[5.]])
        """
        A = self.kernel.prepare(in_double(X), self.rows)
        out, top = np.zeros((len(A), self.n_sums)), np.full(len(A), -np.inf)
        bits = np.empty(WIDE_TILE, np.int64)
        for start in range(0, len(A), TILE):
            tile = slice(start, start + TILE)
            for B, C in self.parts:
                L = np.ascontiguousarray(self.kernel.log_values(A[tile], B), dtype=float)
                add_soft_sums(L, C, top[tile], out[tile], bits, bits.view(np.float64))
        return out


def in_double(X):
    """Return rows in double precision: sums of kernels are compared with 0, and should not depend on the precision of rows."""
    return X.astype(np.float64, copy=False) if is_sparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def in_tiles(blocks):
    """Give rows in memory in blocks of one tile, so that all threads have work; a stream is what it is."""
    return blocks.with_block_rows(TILE) if blocks.home == "memory" else blocks


def distinct(X):
    """Return the numbers of the first of equal rows, in their order, and for every row which of them it equals.

    Examples
    --------
    >>> distinct(np.array([[2.0], [1.0], [2.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    if is_sparse(X):
        seen: dict[bytes, int] = {}
        group = np.array([seen.setdefault(text, len(seen)) for text in texts_of(X)])
        return np.unique(group, return_index=True)[1], group
    rows = np.ascontiguousarray(X + 0.0)  # −0 becomes 0
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return first[order], rank[group]


def texts_of(X):
    """Return the bytes of each row, which are the same for equal rows.

    >>> len(set(texts_of(np.array([[0.0], [-0.0], [1.0]]))))
    2
    """
    if not is_sparse(X):
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0)]
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(X.indptr)]
