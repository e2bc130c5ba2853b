"""Sequences in blocks: whole ones, several short ones together.

A kernel sees (X, lengths): the rows of some sequences, one after the other, and how many belong to each. Where blocks begin
depends on the lengths alone, so sums over blocks have the same bits for any number of threads. A stored table without lengths
is one sequence, and its rows are brought together in memory, because what comes last says something about what was first; with
a column that numbers the sequences they pass by, a few at a time.
"""

from functools import partial

import numpy as np

from lemmata.core import config
from lemmata.core.blocks import ArrayBlocks, Blocks
from lemmata.core.data import is_stored


def sequences_of(estimator, X, lengths, reset):
    """Validate sequences for an estimator and cut them into blocks.

    Parameters
    ----------
    X : Rows of one sequence, or of several with their `lengths`; a list of tables, or an array of three axes, one table a
        sequence; or a stored table, with the name of a column that numbers its sequences in place of lengths.
    """
    if not is_stored(X):
        X, lengths = gathered(X, lengths)
    elif isinstance(lengths, str):
        blocks = estimator._blocks(X, sample_weight=lengths, reset=reset, order="C")
        return StoredSequences(blocks)
    blocks = estimator._blocks(X, reset=reset, order="C")
    rows = blocks.X if isinstance(blocks, ArrayBlocks) else blocks.take(np.arange(blocks.n_rows))[0]
    return Sequences(np.ascontiguousarray(rows), checked_lengths(lengths, len(rows)))


def gathered(X, lengths):
    """Put a list of tables, or the tables of an array with three axes, one below the other."""
    several = np.ndim(X) == 3 if isinstance(X, np.ndarray) else _is_list_of_tables(X)
    if not several:
        return X, lengths
    if lengths is not None:
        raise ValueError("A list of sequences has its lengths: leave lengths out.")
    parts = [np.asarray(part) for part in X]
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"The sequences have different numbers of columns, {sorted(widths)}: they must have the same.")
    return np.concatenate(parts), [len(part) for part in parts]


def _is_list_of_tables(X):
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(hasattr(part, "shape") and np.ndim(part) == 2 for part in X)


def checked_lengths(lengths, n):
    """Give lengths as whole numbers from 1 that add up to n; without any there is one sequence."""
    if lengths is None:
        return np.array([n], dtype=np.int64)
    found = np.asarray(lengths)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not (found >= 1).all() or found.sum() != n:
        said = f"they add up to {found.sum()}" if found.ndim == 1 and found.dtype.kind in "iu" else f"got {lengths!r}"
        raise ValueError(f"lengths must be whole numbers of at least 1 that add up to the {n} rows of X; {said}.")
    return found.astype(np.int64)


class Sequences(Blocks):
    """Sequences in memory: rows one after the other, and lengths."""

    def __init__(self, X, lengths):
        self.X, self.lengths, self.columns, self.dtype = X, lengths, None, X.dtype
        self.n_rows, self.n_columns = X.shape
        ends = np.cumsum(lengths)
        # A block takes sequences until it has enough rows.
        size, cuts = config.block_rows(self.n_columns), [0]
        while cuts[-1] < len(lengths):
            done = ends[cuts[-1] - 1] if cuts[-1] else 0
            cuts.append(min(int(np.searchsorted(ends, done + size)) + 1, len(lengths)))
        self.cuts, self.starts = cuts, np.concatenate([[0], ends])

    @property
    def n_blocks(self):
        """Number of blocks."""
        return len(self.cuts) - 1

    def _tasks(self):
        for i in range(self.n_blocks):
            yield i, partial(self._load, i)

    def _load(self, i):
        first, last = self.cuts[i], self.cuts[i + 1]
        return self.X[self.starts[first] : self.starts[last]], self.lengths[first:last]

    def _n_threads(self):
        return min(config.n_threads(), self.n_blocks)

    def rows(self):
        """Give the rows as a table, without their order."""
        return ArrayBlocks(self.X, (None,), None, None)


class StoredSequences(Blocks):
    """Sequences of a stored table whose blocks come as (X, number of the sequence of each row)."""

    home = "stream"

    def __init__(self, blocks):
        self.blocks, self.columns, self.dtype = blocks, blocks.columns, blocks.dtype
        self.n_rows, self.n_columns = blocks.n_rows, blocks.n_columns

    @property
    def n_blocks(self):
        """Number of blocks, at most."""
        return self.blocks.n_blocks

    def _tasks(self):
        i, held = 0, None
        for block in self._pieces():
            if held is not None:
                block = tuple(np.concatenate(pair) for pair in zip(held, block, strict=True))
            held, ready = _split_last(*block)
            if ready is not None:
                yield i, partial(_with_lengths, *ready)
                i += 1
        yield i, partial(_with_lengths, *held)

    def _pieces(self):
        """Give the blocks of the table as they come; partitions of a cluster come here, since a sequence may span several."""
        if self.blocks.home == "dask":
            return (part.compute() for part in self.blocks.blocks)
        return (load() for _, load in self.blocks._tasks())

    def rows(self):
        """Give the rows as a table, without their order."""
        return self.blocks.with_target(_no_target)


def _no_target(numbers):
    return None


def _split_last(X, numbers):
    """Hold back the rows of the last sequence, which may go on in the next block; the others are ready, if there are any."""
    last = len(numbers) - int(np.argmax(numbers[::-1] != numbers[-1])) if (numbers != numbers[-1]).any() else 0
    return (X[last:], numbers[last:]), (X[:last], numbers[:last]) if last else None


def _with_lengths(X, numbers):
    """Turn the numbers of sequences into lengths."""
    ends = np.append(np.flatnonzero(np.diff(numbers)) + 1, len(numbers))
    return np.ascontiguousarray(X), np.diff(ends, prepend=0)
