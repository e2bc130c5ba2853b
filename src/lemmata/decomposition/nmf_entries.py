"""The seen entries of a block, row by row: where they are, what they are, how much they count.

A table is complete, or some of its entries are missing: NaN in a dense table, or entries that a mask leaves out. A mask may
also let entries count more or less than once. A table with a mask travels through `Blocks` as one table of twice the columns,
the values (zero where nothing is seen) and then the weights, so that both are cut alike wherever the rows live.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.blocks import ArrayBlocks, Largest
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel

NONE = np.empty(0)  # stands for weights of entries that all count once


class Layout(NamedTuple):
    """What a block looks like: its columns, whether weights of the entries stand beside them, whether entries are missing."""

    n_columns: int
    paired: bool
    missing: bool


@kernel
def gather_dense(X, d, paired, missing, indptr, indices, values, marks):
    """List the seen entries of a dense block; of a complete one those that are not zero."""
    n = 0
    for i in range(X.shape[0]):
        for j in range(d):
            x = X[i, j]
            if paired:
                keep = X[i, d + j] > 0.0
            elif missing:
                keep = not np.isnan(x)
            else:
                keep = x != 0.0
            if keep:
                indices[n] = j
                values[n] = x
                if missing:
                    marks[n] = X[i, d + j] if paired else 1.0
                n += 1
        indptr[i + 1] = n
    return n


@kernel
def gather_pairs(starts, columns, data, indptr, indices, values, marks):
    """List the entries of a sparse block in which each row has its values first and as many weights after them."""
    n = 0
    for i in range(len(starts) - 1):
        m = (starts[i + 1] - starts[i]) // 2
        for p in range(starts[i], starts[i] + m):
            indices[n] = columns[p]
            values[n] = data[p]
            marks[n] = data[p + m]
            n += 1
        indptr[i + 1] = n


class Entries(NamedTuple):
    """Seen entries, those of row i from indptr[i] to indptr[i + 1]; `marks` are their weights, or empty if all are 1."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    marks: np.ndarray


def entries(X, layout):
    """List the seen entries of a block; of a complete block those that are not zero."""
    n = X.shape[0]
    if is_sparse(X) and not layout.paired:
        indices, values = X.indices.astype(np.int32, copy=False), X.data.astype(float, copy=False)
        return Entries(X.indptr.astype(np.int64), indices, values, NONE)
    room = X.nnz // 2 if is_sparse(X) else n * layout.n_columns
    indptr, indices, values = np.zeros(n + 1, np.int64), np.empty(room, np.int32), np.empty(room)
    marks = np.empty(room if layout.missing else 0)
    if is_sparse(X):
        gather_pairs(X.indptr, X.indices, X.data, indptr, indices, values, marks)
        return Entries(indptr, indices, values, marks)
    m = gather_dense(X, layout.n_columns, layout.paired, layout.missing, indptr, indices, values, marks)
    return Entries(indptr, indices[:m], values[:m], marks[:m])


def pair(X, mask):
    """Join a table and the weights of its entries into one table of twice the columns."""
    if is_sparse(X):
        from scipy.sparse import coo_array, csr_array, hstack

        weights = csr_array(mask, dtype=float)
        weights.sum_duplicates()
        weights.eliminate_zeros()
        rows = np.repeat(np.arange(X.shape[0]), np.diff(weights.indptr))
        seen = csr_array(X, dtype=X.dtype)
        seen.sum_duplicates()
        values = _looked_up(seen, rows, weights.indices)
        present = ~np.isnan(values)
        places = rows[present], weights.indices[present]
        parts = [coo_array((data[present], places), shape=X.shape) for data in (values, weights.data)]
        return hstack(parts, format="csr")  # keeps zeros that are stored: they are seen
    weights = np.asarray(mask.toarray() if is_sparse(mask) else mask, dtype=X.dtype)
    weights = np.where(np.isnan(X), 0, weights)
    return np.hstack([np.where(weights > 0, X, 0), weights])


def _looked_up(X, rows, columns):
    """Give the entries of a CSR table with sorted columns at these places, zero where none is stored."""
    d = X.shape[1]
    stored = np.repeat(np.arange(X.shape[0], dtype=np.int64), np.diff(X.indptr)) * d + X.indices
    wanted = rows.astype(np.int64) * d + columns
    at = np.minimum(np.searchsorted(stored, wanted), max(len(stored) - 1, 0))
    if not len(stored):
        return np.zeros(len(wanted), X.dtype)
    return np.where(stored[at] == wanted, X.data[at], 0)


def masked(blocks, mask):
    """Put the weights of the entries beside the rows that they belong to."""
    if blocks.home != "memory":
        raise ValueError("A mask needs the rows in memory; in a stored table, mark missing entries by NaN.")
    shape = (blocks.n_table, blocks.n_columns)
    if np.shape(mask) != shape:
        raise ValueError(f"mask must have the shape of X, {shape}, got {np.shape(mask)}.")
    values = mask.data if is_sparse(mask) else np.asarray(mask)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("mask must be finite and not negative: it says how much each entry counts.")
    X, weight = blocks.whole()
    mask = (mask.tocsr() if is_sparse(mask) else np.asarray(mask))[blocks.numbers()]
    both = ArrayBlocks(pair(X, mask), (weight,), None, None)
    both.present = blocks.present
    return both


def ones_or(weight, n):
    """Give the weights of n rows as numbers."""
    return np.ones(n) if weight is None else weight.astype(float, copy=False)


def look_block(X, weight):
    """Find the largest entry of a block, how far the least is below zero, any NaN, and the weights of rows and entries."""
    values = X.data if is_sparse(X) else X
    holes = bool(np.isnan(values.sum()))
    largest, least = (np.nanmax, np.nanmin) if holes and not np.isnan(values).all() else (np.max, np.min)
    most, below = (float(largest(values)), -float(least(values))) if values.size else (0.0, 0.0)
    s = ones_or(weight, X.shape[0])
    stored = float(s @ np.diff(X.indptr) if is_sparse(X) else s.sum() * X.shape[1])
    return Largest(np.nan_to_num(most)), Largest(np.nan_to_num(below)), Largest(float(holes)), float(s.sum()), stored


def column_block(X, weight, layout, inverse):
    """Sum the seen entries of each column of a block, and how much they count."""
    seen, s = entries(X, layout), ones_or(weight, X.shape[0])
    count = np.repeat(s, np.diff(seen.indptr)) * (seen.marks if len(seen.marks) else 1.0)
    sums = np.bincount(seen.indices, count * seen.values * inverse, layout.n_columns)
    counts = np.bincount(seen.indices, count, layout.n_columns) if layout.missing else np.full(layout.n_columns, s.sum())
    return sums, counts


class Table:
    """A validated table in blocks, and the unit in which it is counted: a power of four, so that nothing is rounded.

    The factors count in `half`, the root of the unit, each.
    """

    def __init__(self, blocks, layout, largest, weight, stored, dtype):
        self.blocks, self.layout, self.weight, self.stored, self.dtype = blocks, layout, weight, stored, dtype
        self.half = 2.0 ** np.ceil(np.log2(largest) / 2) if largest > 0 else 1.0
        self.unit = self.half**2

    def refuse_empty_columns(self):
        """Raise where a column has no entry that is seen."""
        counts = self.blocks.reduce(column_block, self.layout, 1 / self.unit)[1] if self.layout.missing else np.ones(1)
        if not counts.all():
            raise ValueError(f"Column {int(np.argmin(counts))} has no value: leave it out.")

    def length(self, error, loss):
        """Give √(2 × loss), in the units in which the table was given."""
        return float(np.sqrt(2 * error) * self.unit ** (loss.power / 2))
