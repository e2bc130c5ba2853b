"""Streams: tables larger than memory, read from Parquet files or from an iterator, a few blocks at a time.

Whatever the row groups of the files, the rows are cut again into blocks of `block_rows`, so a file gives the same blocks as
the array it holds. A reader thread stays two blocks ahead of the kernels.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lemmata.core import config
from lemmata.core.blocks import Block, Blocks, joined, rows_of
from lemmata.core.data import as_matrix, finite_rows, have_weight, is_path, is_sparse, one_each, some_present

T = TypeVar("T")
AHEAD = 2  # blocks read before they are asked for: enough to hide the disk, small beside the blocks at work
BUFFER = 1 << 20  # bytes of a column read at once; without it PyArrow holds whole row groups


def open_stream(
    source: Any,
    aligned: tuple[Any, ...],
    block_rows: int | None,
    columns: list[str] | None,
    allow_nan: bool,
    labels: bool,
    weighted: bool,
) -> "StreamBlocks":
    """Open Parquet paths or a function that returns an iterator of blocks."""
    if is_path(source):
        return ParquetBlocks(source, aligned, block_rows, columns, allow_nan, labels, weighted)
    if any(a is not None for a in aligned):
        raise ValueError("An iterator brings targets and weights itself: let it give tuples (X, y) or (X, y, weights).")
    return IteratorBlocks(source, len(aligned), block_rows, allow_nan, weighted)


class StreamBlocks(Blocks):
    """Blocks that pass by: each pass opens the source anew."""

    home = "stream"
    allow_nan: bool

    def _open(self) -> Iterator[Block]:
        raise NotImplementedError

    def _tasks(self) -> Iterator[tuple[int, Callable[[], Block]]]:
        row = 0
        for i, block in enumerate(read_ahead(self._open(), AHEAD)):
            yield i, partial(self._checked, block, row)
            row += block[0].shape[0]
        if row == 0:
            raise ValueError("Found no rows; at least one is needed.")

    def _checked(self, block: Block, first_row: int) -> Block:
        number = partial(self._number, first_row)
        finite_rows(block[0], number, self.allow_nan)
        for a in block[1:]:
            if a is not None and a.dtype.kind == "f":
                finite_rows(a, number, False, "y or sample_weight")
        return self._made(block)

    def _number(self, first_row: int, row: int) -> int:
        """Give the number in the table of a row of a block."""
        return first_row + row if self.present is None else int(np.flatnonzero(self.present)[first_row + row])

    def _without_absent(self, block: Block) -> Block:
        """Leave out the rows of weight zero, before blocks are cut: as if they were not in the table."""
        if self.present is None:
            return block
        present = have_weight(block[-1], block[0].shape[0])
        return block if present.all() else rows_of(block, present)


class ParquetBlocks(StreamBlocks):
    """Rows of Parquet files, one after another; only the columns that are needed are read."""

    def __init__(
        self,
        source: Any,
        aligned: tuple[Any, ...],
        block_rows: int | None,
        columns: list[str] | None,
        allow_nan: bool,
        labels: bool,
        weighted: bool,
    ) -> None:
        self.files = parquet_files(source)
        self.allow_nan = allow_nan
        for a in aligned:
            if a is not None and not isinstance(a, str):
                raise ValueError("With a Parquet file, name the column of the target or the weights instead of giving values.")
        self.aligned = list(aligned)
        footers = []
        for path in self.files:
            with open_parquet(path) as file:
                footers.append(file.metadata)
        schemas = [footer.schema.to_arrow_schema() for footer in footers]
        schema, apart = schemas[0], {a for a in aligned if a is not None}
        self.names = list(columns) if columns is not None else [name for name in schema.names if name not in apart]
        self.columns: list[str] | None = self.names
        for name, (file, schema) in product([*self.names, *apart], zip(self.files, schemas, strict=True)):
            if name not in schema.names:
                raise ValueError(f"There is no column {name!r} in {file.name}; it has {', '.join(schema.names)}.")
            if not (_is_numeric(schema.field(name).type) or (labels and name == aligned[0])):
                raise ValueError(f"Column {name!r} holds {schema.field(name).type}, not numbers; encode it or leave it out.")
        kinds = {str(schema.field(name).type) for name in self.names for schema in schemas}
        self.dtype = np.dtype(np.float32 if kinds == {"float"} else np.float64)
        self.n_columns = len(self.names)
        self.n_rows = sum(footer.num_rows for footer in footers)
        self.asked = block_rows
        self._recut()
        if weighted and aligned[-1] is not None:
            weights = (batch.column(0).to_numpy(zero_copy_only=False) for batch in self._read([aligned[-1]]))
            self.present = some_present([have_weight(weight, len(weight)) for weight in weights])
            self.n_rows = self.n_rows if self.present is None else int(self.present.sum())

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_rows // self.block_rows)

    def _open(self) -> Iterator[Block]:
        return recut(self._batches(), self.block_rows)

    def _recut(self) -> None:
        self.block_rows = self.asked or config.block_rows(self.n_columns)

    def _batches(self) -> Iterator[Block]:
        wanted = list(dict.fromkeys([*self.names, *(a for a in self.aligned if a is not None)]))
        for batch in self._read(wanted):
            yield self._without_absent(self._arrays(batch))

    def _read(self, wanted: list[str]) -> Iterator[Any]:
        for path in self.files:
            with open_parquet(path) as file:
                yield from file.iter_batches(batch_size=self.block_rows, columns=wanted, use_threads=False)

    def _arrays(self, batch: Any) -> Block:
        X = np.empty((batch.num_rows, len(self.names)), dtype=self.dtype)
        for j, name in enumerate(self.names):
            X[:, j] = batch.column(name).to_numpy(zero_copy_only=False)  # nulls become NaN
        return (X, *(None if a is None else batch.column(a).to_numpy(zero_copy_only=False) for a in self.aligned))


class IteratorBlocks(StreamBlocks):
    """Blocks from a function that returns a fresh iterator each time it is called."""

    def __init__(
        self,
        factory: Callable[[], Iterator[Any]],
        n_aligned: int,
        block_rows: int | None,
        allow_nan: bool,
        weighted: bool,
    ) -> None:
        self.factory, self.n_aligned, self.block_rows, self.allow_nan = factory, n_aligned, block_rows, allow_nan
        X = next(self._read(), (None,))[0]
        if X is None:
            raise ValueError("The iterator gave no block; it must give at least one, each time the function is called.")
        self.n_columns, self.dtype, self.columns = X.shape[1], X.dtype, None
        masks = [have_weight(part[-1] if weighted else None, part[0].shape[0]) for part in self._read()]
        self.present = some_present(masks)
        self.n_rows = sum(int(mask.sum()) for mask in masks)
        self._n_parts = sum(bool(mask.any()) for mask in masks)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_rows // self.block_rows) if self.block_rows else self._n_parts

    def _open(self) -> Iterator[Block]:
        return recut(self._parts(), self.block_rows) if self.block_rows else self._parts()

    def _parts(self) -> Iterator[Block]:
        parts = map(self._without_absent, self._read())
        return (part for part in parts if part[0].shape[0])

    def _read(self) -> Iterator[Block]:
        width = None
        for part in self.factory():
            X, *aligned = part if isinstance(part, tuple) else (part,)
            if len(aligned) > self.n_aligned:
                raise ValueError(f"The iterator gives {len(aligned)} arrays beside X, {self.n_aligned} at most are used here.")
            aligned += [None] * (self.n_aligned - len(aligned))
            X, _ = as_matrix(X)
            width = X.shape[1] if width is None else width
            if X.shape[1] != width:
                raise ValueError(f"The iterator gave a block of {width} columns and then one of {X.shape[1]}.")
            one_each(X, aligned)
            dtype = np.float32 if X.dtype == np.float32 else np.float64
            X = X.astype(dtype, copy=False) if is_sparse(X) else np.asarray(X, dtype=dtype, order="C")
            if X.shape[0]:
                yield (X, *(None if a is None else np.asarray(a) for a in aligned))


def recut(parts: Iterator[Block], rows: int) -> Iterator[Block]:
    """Cut a stream of blocks of any size into blocks of `rows` rows; the last may be shorter."""
    held: list[Block] = []
    n_held = 0
    for part in parts:
        at, n = 0, part[0].shape[0]
        while n_held + n - at >= rows:
            take = rows - n_held
            yield joined([*held, rows_of(part, slice(at, at + take))])
            held, n_held, at = [], 0, at + take
        if at < n:
            held.append(rows_of(part, slice(at, n)))
            n_held += n - at
    if held:
        yield joined(held)


def read_ahead(source: Iterator[T], depth: int) -> Iterator[T]:
    """Give what `source` gives, read by another thread up to `depth` items ahead."""
    items: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
    room, stop = threading.Semaphore(depth), threading.Event()

    def read() -> None:
        try:
            while room.acquire() and not stop.is_set():
                items.put((True, next(source)))
        except StopIteration:
            items.put((False, None))
        except BaseException as error:  # raised again where the items are used
            items.put((False, error))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while True:
            more, item = items.get()
            if more:
                room.release()
                yield item
                del item  # otherwise one block more stays in memory
            elif item is None:
                return
            else:
                raise item
    finally:
        stop.set()
        room.release()
        reader.join()


def parquet_files(source: Any) -> list[Path]:
    """List the files that a path, a list of paths or a folder stands for, in order of their names."""
    files: list[Path] = []
    for entry in source if isinstance(source, (list, tuple)) else [source]:
        path = Path(os.fspath(entry))
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.parquet") if p.is_file())
            if not inside:
                raise FileNotFoundError(f"There is no .parquet file in the folder {path}.")
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise FileNotFoundError(f"There is no file {path}.")
    return files


def open_parquet(path: Path) -> Any:
    """Open a Parquet file to be read piece by piece."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError('Reading Parquet needs PyArrow: pip install "lemmata[dask]".') from None
    try:
        return ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
    except ArrowException as error:
        raise ValueError(f"{path} cannot be read as Parquet, or not to its end: {error}") from None


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
