"""Blocks: the rows of a table, cut into blocks, wherever they live.

A block kernel turns one block (and the current parameters) into additive statistics. `reduce` adds them over all blocks,
`sweep` lets each block keep a state of its own from pass to pass, `map` collects row-wise results. The same three verbs run
on threads over arrays in memory, over a stream that is larger than memory, and on a Dask cluster.

The result is the same bits in all three homes and for any number of threads, because nothing depends on who was first:
the cuts depend on the shape of the data alone, and the sums follow one fixed tree. Block i sits at leaf i; two siblings are
added as soon as both are there, the left one first, and the roots left over at the end (one for each binary digit of the
number of blocks) are added from the smallest up. Statistics are tuples of arrays, of numbers, or of anything with `+`.
"""

import threading
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from lemmata.core import config
from lemmata.core.data import WIDE, Array, as_matrix, csr_rows, is_dask, is_path, is_sparse, one_each
from lemmata.core.threads import run

T = TypeVar("T")
Block = tuple[Any, ...]  # the rows of X, then of each aligned array
Kernel = Callable[..., Any]


def add(a: Any, b: Any) -> Any:
    """Add two statistics: tuples entry by entry, everything else by its own `+`."""
    return tuple(add(x, y) for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b


@dataclass(frozen=True)
class Largest:
    """A number of which the largest is wanted: "adding" two keeps the larger."""

    value: float

    def __add__(self, other: "Largest") -> "Largest":
        return self if self.value >= other.value else other


def joined(parts: list[Block]) -> Block:
    """Stack blocks into one."""
    if len(parts) == 1:
        return parts[0]
    return tuple(None if column[0] is None else _stack(column) for column in zip(*parts, strict=True))


def rows_of(block: Block, rows: Any) -> Block:
    """Pick rows of a block, by their numbers or a mask."""
    return tuple(None if a is None else a[rows] for a in block)


def _stack(column: tuple[Any, ...]) -> Any:
    if is_sparse(column[0]):
        from scipy.sparse import vstack

        return vstack(column, format="csr")
    return np.concatenate(column)


class Tree(Generic[T]):
    """Sum values that arrive in any order, from any thread, in the one order that their numbers give.

    Examples
    --------
    >>> tree = Tree(lambda a, b: f"({a} {b})")
    >>> for i in (2, 0, 1, 4, 3):
    ...     tree.put(0, i, str(i))
    >>> tree.total()
    '(((0 1) (2 3)) 4)'
    """

    def __init__(self, plus: Callable[[T, T], T]) -> None:
        self.plus = plus
        self._waiting: dict[tuple[int, int], T] = {}
        self._lock = threading.Lock()

    def put(self, level: int, i: int, value: T) -> None:
        """Place a value at node i of a level, and climb for as long as the sibling is there."""
        while True:
            with self._lock:
                if (level, i ^ 1) not in self._waiting:
                    self._waiting[level, i] = value
                    return
                sibling = self._waiting.pop((level, i ^ 1))
            value = self.plus(sibling, value) if i & 1 else self.plus(value, sibling)
            level, i = level + 1, i >> 1

    def total(self) -> T:
        """Add the roots left over: the smallest stands on the right."""
        (_, total), *rest = sorted(((level, value) for (level, _), value in self._waiting.items()), key=lambda r: r[0])
        for _, value in rest:
            total = self.plus(value, total)
        return total


class Blocks:
    """Rows in blocks, with arrays (targets, weights) cut alongside.

    Attributes
    ----------
    n_rows : Number of rows (an iterator is read through once to count them).
    n_blocks : Number of blocks.
    n_columns : Number of columns of X.
    columns : Names of the columns, or None.
    dtype : float32 if X is, else float64.
    home : "memory", "stream" or "dask".
    present : Which rows of the table these are, where some have weight zero and are left out: (rows of the table,), or None.
    complete : Whether these are all rows of the table.

    Examples
    --------
    >>> import numpy as np
    >>> def moments_block(X, weight):
    ...     return weight.sum(), weight @ X
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> total, sums = Blocks.of(X, np.ones(5), block_rows=2).reduce(moments_block)
    >>> sums / total
    array([4., 5.])
    """

    home = "memory"
    present: Array | None = None
    n_rows: int
    n_columns: int
    columns: list[str] | None
    dtype: np.dtype[Any]

    @staticmethod
    def of(
        X: Any,
        *aligned: Any,
        block_rows: int | None = None,
        columns: list[str] | None = None,
        allow_nan: bool = True,
        labels: bool = False,
        weighted: bool = False,
    ) -> "Blocks":
        """Cut a table into blocks.

        Parameters
        ----------
        X : NumPy array (any layout, memory-mapped too), SciPy sparse matrix, pandas, Polars or PyArrow frame; path of a
            Parquet file, list of such paths, or folder of them; Dask array or frame; or a function without arguments that
            returns an iterator of blocks (an array, or a tuple of X and what is aligned with it).
        *aligned : Arrays with one entry a row, or None. For Parquet and Dask frames, the name of a column.
        block_rows : Rows of a block. Blocks from an iterator stay as they are unless it is given, Dask partitions always.
        columns : Columns to use, in this order; for stored tables nothing else is read.
        allow_nan : Whether stored data may hold NaN; otherwise the pass that meets one says in which row.
        labels : Whether the first aligned array may hold names of classes instead of numbers.
        weighted : Whether the last aligned array holds weights of the rows: a stored row of weight zero is left out before
            anything of it is looked at, and a negative weight is refused.
        """
        block_rows = config.whole("block_rows", block_rows)
        if is_dask(X):
            from lemmata.core.dask_blocks import DaskBlocks

            return DaskBlocks(X, aligned, columns, allow_nan, weighted)
        if is_path(X) or (callable(X) and not hasattr(X, "__array__")):
            from lemmata.core.stream import open_stream

            return open_stream(X, aligned, block_rows, columns, allow_nan, labels, weighted)
        return ArrayBlocks(X, aligned, block_rows, columns)

    def __repr__(self) -> str:
        return f"<Blocks: {self.n_rows:,} rows × {self.n_columns} columns in {self.n_blocks} blocks, {self.home}>"

    def reduce(self, kernel: Kernel, *params: Any) -> Any:
        """Sum kernel(X, *aligned, *params) over the blocks."""
        tree: Tree[Any] = Tree(add)

        def work(task: tuple[int, Callable[[], Block]]) -> None:
            i, load = task
            tree.put(0, i, kernel(*load(), *params))

        run(work, self._tasks(), self._n_threads())
        return tree.total()

    def sweep(self, kernel: Kernel, state: Any, *params: Any) -> tuple[Any, Any]:
        """Sum as `reduce` does, while each block keeps a state of its own where it lives.

        The kernel is called as kernel(X, *aligned, state, *params) and returns (statistics, state). Pass None at first and
        what the last sweep returned from then on; a state may be changed in place.
        """
        tree: Tree[Any] = Tree(add)
        before: dict[int, Any] = {} if state is None else state
        after: dict[int, Any] = {}

        def work(task: tuple[int, Callable[[], Block]]) -> None:
            i, load = task
            statistics, after[i] = kernel(*load(), before.get(i), *params)
            tree.put(0, i, statistics)

        run(work, self._tasks(), self._n_threads())
        return tree.total(), after

    def map(self, kernel: Kernel, *params: Any) -> Any:
        """Collect kernel(X, *aligned, *params), an array with one entry a row or a tuple of such, in row order."""
        results: dict[int, Any] = {}

        def work(task: tuple[int, Callable[[], Block]]) -> None:
            i, load = task
            results[i] = kernel(*load(), *params)

        run(work, self._tasks(), self._n_threads())
        parts = [results[i] for i in range(len(results))]
        if isinstance(parts[0], tuple):
            return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        return np.concatenate(parts)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        raise NotImplementedError

    @property
    def complete(self) -> bool:
        """Whether these are all rows of the table."""
        return self.present is None

    def numbers(self) -> Array:
        """Give the numbers that these rows have in the table."""
        return np.arange(self.n_rows) if self.present is None else np.flatnonzero(self.present)

    @property
    def n_table(self) -> int:
        """Number of rows of the table, those of weight zero included."""
        return self.n_rows if self.present is None else len(self.present)

    def first(self) -> Block:
        """Return the first block."""
        _, load = next(self._tasks())
        return load()

    def take(self, rows: Array) -> Block:
        """Return the rows with these numbers, in ascending order, as one block."""
        kept: dict[int, Block] = {}
        start = 0
        for i, load in self._tasks():
            block = load()
            stop = start + block[0].shape[0]
            inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
            if len(inside):
                kept[i] = rows_of(block, inside)
            start = stop
        return joined([kept[i] for i in sorted(kept)])

    def whole(self) -> Block:
        """Return all rows as one block; of rows in memory it is a view where it can be, and not to be written to."""
        return self.take(np.arange(self.n_rows))

    def with_columns(self, function: Callable[[Any], Any], n_columns: int) -> "Blocks":
        """Give the same rows with function(X) in place of X: features made where and when they are needed."""
        other = self._changed(0, function)
        other.columns, other.n_columns = None, n_columns
        other._recut()
        return other

    def with_target(self, function: Callable[[Any], Any]) -> "Blocks":
        """Give the same rows with function(y) in place of y, the first aligned array."""
        return self._changed(1, function)

    _changes: tuple[tuple[int, Callable[[Any], Any]], ...] = ()

    def _changed(self, part: int, function: Callable[[Any], Any]) -> "Blocks":
        other = copy(self)
        other._changes = (*self._changes, (part, function))
        return other

    def _made(self, block: Block) -> Block:
        for part, function in self._changes:
            block = (*block[:part], function(block[part]), *block[part + 1 :])
        return block

    def _recut(self) -> None:
        """Choose the rows of a block again after the number of columns changed, where blocks are ours to cut."""

    def _tasks(self) -> Iterator[tuple[int, Callable[[], Block]]]:
        """Give (number, load) for each block; `load` runs on the thread that works on the block."""
        raise NotImplementedError

    def _n_threads(self) -> int:
        return config.n_threads()


class ArrayBlocks(Blocks):
    """Blocks of arrays in memory: slices, made contiguous and floating on the thread that works on them."""

    def __init__(self, X: Any, aligned: tuple[Any, ...], block_rows: int | None, columns: list[str] | None) -> None:
        self.X, self.columns = as_matrix(X, columns)
        self.n_rows, self.n_columns = self.X.shape
        self.dtype = np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)
        self.aligned = [None if a is None else np.asarray(a) for a in aligned]
        one_each(self.X, self.aligned)
        if self.n_rows == 0:
            raise ValueError("Found no rows; at least one is needed.")
        self.asked = block_rows
        self._recut()

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_rows // self.block_rows)

    def _tasks(self) -> Iterator[tuple[int, Callable[[], Block]]]:
        for i in range(self.n_blocks):
            yield i, partial(self._load, i)

    def _load(self, i: int) -> Block:
        rows = slice(i * self.block_rows, (i + 1) * self.block_rows)
        return self._made((self._rows(rows), *(None if a is None else a[rows] for a in self.aligned)))

    def take(self, rows: Array) -> Block:
        """Return the rows with these numbers as one block."""
        X = self.X[rows].astype(self.dtype, copy=False)
        return self._made((X, *(None if a is None else a[rows] for a in self.aligned)))

    def whole(self) -> Block:
        """Return all rows as one block, without a copy where they have the form of a block."""
        return self._made((self._rows(slice(0, self.n_rows)), *self.aligned))

    def with_block_rows(self, rows: int) -> "ArrayBlocks":
        """Give the same rows in blocks of another size."""
        other = copy(self)
        other.asked = int(rows)
        other._recut()
        return other

    def _recut(self) -> None:
        width = self.n_columns
        if width > WIDE and is_sparse(self.X):  # what a row holds, not what it could hold
            width = -(-self.X.nnz // self.n_rows)
        self.block_rows = self.asked or config.block_rows(width)

    def _rows(self, rows: slice) -> Array:
        if is_sparse(self.X):
            return csr_rows(self.X, rows).astype(self.dtype, copy=False)
        return np.asarray(self.X[rows], dtype=self.dtype, order="C")

    def _n_threads(self) -> int:
        return min(config.n_threads(), self.n_blocks)
