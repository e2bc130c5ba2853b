"""Rows as a kernel sees them: moved, scaled or mapped once, so that many products with them cost one multiplication each."""

from typing import Any

import numpy as np

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel

BLOCK = 256  # rows of a matrix that one thread fills at a time


class Rows:
    """Rows of a table, prepared for one kernel.

    Parameters
    ----------
    points : (n, d), what the kernel multiplies: the rows themselves, or their images; dense or CSR.
    names : (n,), the numbers of the rows in their table, by which a row is told from another one with the same entries.
    table : Any object; rows of the same table share it, and rows of another table are never the same rows.
    origin : What was taken off every row; rows that are to be multiplied with these need the same.
    parts : The rows as the parts of a composed kernel see them, instead of points.
    """

    def __init__(
        self, points: Any, names: Any, table: Any, *, origin: Any = None, squares: Any = None, parts: Any = ()
    ) -> None:
        self.points, self.names, self.table, self.origin, self.parts = points, names, table, origin, parts
        if squares is None and points is not None:
            squares = row_squares(points)
        self.squares = squares

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, which: Any) -> "Rows":
        """Take some of the rows."""
        points = None if self.points is None else self.points[which]
        squares = None if self.squares is None else self.squares[which]
        parts = tuple(part[which] for part in self.parts)
        return Rows(points, self.names[which], self.table, origin=self.origin, squares=squares, parts=parts)


def row_squares(points):
    """Return the squared length of each row, in the precision of the rows."""
    if is_sparse(points):
        return np.asarray(points.multiply(points).sum(axis=1)).ravel().astype(points.dtype, copy=False)
    return np.einsum("ij,ij->i", points, points)


def products(A, B):
    """Return all inner products of two sets of points, as a dense matrix that belongs to the caller."""
    P = A @ B.T
    return P.toarray() if is_sparse(P) else np.ascontiguousarray(P)


def fill(values, A, B):
    """Return the matrix of a function of rows, block by block on all threads; the lower half alone where A is B."""
    matrix = np.empty((len(A), len(B)), getattr(A.points, "dtype", np.float64))
    same = A is B

    def work(start):
        rows, columns = slice(start, start + BLOCK), slice(0, min(start + BLOCK, len(B)) if same else len(B))
        matrix[rows, columns] = values(A[rows], B[columns] if same else B)

    threads.run(work, range(0, len(A), BLOCK), workers(len(A)))
    if same:
        reflect(matrix)
    return matrix


def workers(n):
    """Return how many threads have a block of n rows to work on: to start one costs as much as a small matrix."""
    return min(n_threads(), max(-(-n // BLOCK), 1))


def add_up(part, n):
    """Sum part(rows) over blocks of n rows on all threads, in the order of the blocks."""
    found = {}

    def work(start):
        found[start] = part(slice(start, start + BLOCK))

    threads.run(work, range(0, n, BLOCK), workers(n))
    return sum(found[start] for start in sorted(found))


@kernel
def reflect(matrix):
    """Copy the lower triangle of a square matrix into the upper one, tile by tile so that both stay near."""
    n, tile = len(matrix), 16
    for top in range(0, n, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(left, min(left + tile, i)):
                    matrix[j, i] = matrix[i, j]
