"""Blocks on Dask: one partition, one block; the kernels run where the partitions are.

Statistics are added on the workers in the same tree as elsewhere, so only their total travels. The state of a sweep stays
on the worker that made it; should the worker die, Dask computes what it held anew, and the bits are the same.
"""

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np

from lemmata.core.blocks import Block, Blocks, Kernel, Tree, add, joined, rows_of
from lemmata.core.data import Array, as_matrix, finite_rows, have_weight, is_dask, is_sparse, one_each, some_present
from lemmata.core.threads import serial_blas


class DaskBlocks(Blocks):
    """Partitions of a Dask array or frame."""

    home = "dask"

    def __init__(self, X: Any, aligned: tuple[Any, ...], columns: list[str] | None, allow_nan: bool, weighted: bool) -> None:
        import dask

        self.columns, apart = None, [a for a in aligned if isinstance(a, str)]
        frame = X if hasattr(X, "columns") else None
        if frame is not None:
            own = {str(c): c for c in frame.columns}  # the names of a frame need not be text
            self.columns = [c for c in own if c not in apart] if columns is None else list(columns)
            for name in [*self.columns, *apart]:
                if name not in own:
                    raise ValueError(f"There is no column {name!r}; the frame has {', '.join(own)}.")
            X = frame[[own[c] for c in self.columns]]
            aligned = tuple(frame[own[a]] if isinstance(a, str) else a for a in aligned)
        elif apart:
            raise ValueError("A Dask array has no column names: give targets and weights as arrays.")
        if frame is None and X.ndim != 2:
            raise ValueError(f"Expected a table with rows and columns, got a Dask array with {X.ndim} axes.")
        parts = _partitions(X)
        lengths = dask.compute(*(dask.delayed(_n_rows)(part) for part in parts))
        if not sum(lengths):
            raise ValueError("Found no rows; at least one is needed.")
        kinds = {str(t) for t in (X.dtypes if frame is not None else [X.dtype])}
        self.dtype = np.dtype(np.float32 if kinds == {"float32"} else np.float64)
        beside = _beside(parts, lengths, aligned)
        starts, kept = np.cumsum([0, *lengths[:-1]]), list(lengths)
        if weighted and aligned[-1] is not None:
            masks = dask.compute(*(dask.delayed(_have_weight)(weight) for weight in beside[-1]))
            self.present, kept = some_present(masks), [int(mask.sum()) for mask in masks]
        self.lengths = [n for n in kept if n]
        self.n_rows, self.n_columns = sum(self.lengths), int(X.shape[1])
        make = dask.delayed(_block)
        self.blocks = [
            make(part, [column[i] for column in beside], self.dtype, int(starts[i]), allow_nan, self.present is not None)
            for i, part in enumerate(parts)
            if kept[i]
        ]

    @property
    def n_blocks(self) -> int:
        """Number of partitions that have rows."""
        return len(self.blocks)

    def reduce(self, kernel: Kernel, *params: Any) -> Any:
        """Sum kernel(X, *aligned, *params) over the partitions, on the workers."""
        import dask

        task, shared = dask.delayed(_apply), dask.delayed(params)
        tree: Tree[Any] = Tree(dask.delayed(add))
        for i, block in enumerate(self.blocks):
            tree.put(0, i, task(kernel, block, shared))
        with serial_blas():
            return tree.total().compute()

    def sweep(self, kernel: Kernel, state: Any, *params: Any) -> tuple[Any, Any]:
        """Sum as `reduce` does, while each partition's state stays with its worker."""
        import dask

        task, shared = dask.delayed(_apply_with_state, nout=2), dask.delayed(params)
        tree: Tree[Any] = Tree(dask.delayed(add))
        states = []
        for i, block in enumerate(self.blocks):
            statistics, after = task(kernel, block, None if state is None else state[i], shared)
            tree.put(0, i, statistics)
            states.append(after)
        with serial_blas():
            total, *states = dask.persist(tree.total(), *states)
            return total.compute(), states

    def map(self, kernel: Kernel, *params: Any) -> Any:
        """Give a Dask array (or a tuple of them) of row-wise results; nothing is computed yet."""
        import dask
        import dask.array

        task, shared = dask.delayed(_apply), dask.delayed(params)
        parts = [task(kernel, block, shared) for block in self.blocks]
        with serial_blas():
            sample = parts[0].compute()
        if not isinstance(sample, tuple):
            return _concatenated(parts, sample, self.lengths)
        pick = dask.delayed(tuple.__getitem__)
        return tuple(_concatenated([pick(p, j) for p in parts], sample[j], self.lengths) for j in range(len(sample)))

    def take(self, rows: Any) -> Block:
        """Return the rows with these numbers as one block; only they travel."""
        import dask

        starts = np.cumsum([0, *self.lengths])
        cuts = np.searchsorted(rows, starts)
        pick = dask.delayed(rows_of)
        parts = [
            pick(block, rows[cuts[i] : cuts[i + 1]] - starts[i]) for i, block in enumerate(self.blocks) if cuts[i] < cuts[i + 1]
        ]
        return joined([tuple(part) for part in dask.compute(*parts)])

    def _changed(self, part: int, function: Callable[[Any], Any]) -> "Blocks":
        """Change one part of every block, on the workers."""
        import dask

        other = copy(self)
        other.blocks = [dask.delayed(_with_function)(block, part, function) for block in self.blocks]
        return other

    def first(self) -> Block:
        """Return the first partition, computed."""
        return tuple(self.blocks[0].compute())


def _partitions(X: Any) -> list[Any]:
    parts = X.to_delayed()
    if getattr(parts, "ndim", 1) == 2:  # an array cut along its columns as well: only the rows may be
        if parts.shape[1] > 1:
            parts = X.rechunk({1: -1}).to_delayed()
        parts = parts[:, 0]
    return list(parts)


def _beside(parts: list[Any], lengths: tuple[int, ...], aligned: tuple[Any, ...]) -> list[list[Any]]:
    """Cut each aligned array as the rows are."""
    columns: list[list[Any]] = []
    for a in aligned:
        if a is None:
            columns.append([None] * len(parts))
        elif is_dask(a):
            columns.append(_partitions(a))
            if len(columns[-1]) != len(parts):
                raise ValueError(f"X has {len(parts)} partitions and y or the weights {len(columns[-1])}; repartition alike.")
        else:
            values = np.asarray(a)
            if len(values) != sum(lengths):
                raise ValueError(f"Found {sum(lengths)} rows and {len(values)} aligned values; there must be one a row.")
            columns.append(np.split(values, np.cumsum(lengths)[:-1]))
    return columns


def _have_weight(weight: Any) -> Array:
    return have_weight(np.asarray(weight), len(weight))


def _n_rows(part: Any) -> int:
    return int(part.shape[0])


def _block(part: Any, aligned: list[Any], dtype: np.dtype[Any], first_row: int, allow_nan: bool, some_absent: bool) -> Block:
    X, _ = as_matrix(part)
    X = X.astype(dtype, copy=False) if is_sparse(X) else np.asarray(X, dtype=dtype, order="C")
    aligned = [None if a is None else np.asarray(a) for a in aligned]
    one_each(X, aligned)
    block: Block = (X, *aligned)
    numbers = first_row + np.arange(X.shape[0])
    if some_absent:
        present = have_weight(aligned[-1], X.shape[0])
        block, numbers = rows_of(block, present), numbers[present]
    finite_rows(block[0], numbers.item, allow_nan)
    for a in block[1:]:
        if a is not None and a.dtype.kind == "f":
            finite_rows(a, numbers.item, False, "y or sample_weight")
    return block


def _with_function(block: Block, part: int, function: Callable[[Any], Any]) -> Block:
    return (*block[:part], function(block[part]), *block[part + 1 :])


def _apply(kernel: Kernel, block: Block, params: tuple[Any, ...]) -> Any:
    with serial_blas():
        return kernel(*block, *params)


def _apply_with_state(kernel: Kernel, block: Block, state: Any, params: tuple[Any, ...]) -> tuple[Any, Any]:
    with serial_blas():
        return kernel(*block, deepcopy(state), *params)  # Dask may run a task twice: its input must stay as it was


def _concatenated(parts: list[Any], sample: Any, lengths: list[int]) -> Any:
    import dask.array as da

    return da.concatenate(
        [da.from_delayed(p, shape=(n, *sample.shape[1:]), dtype=sample.dtype) for p, n in zip(parts, lengths, strict=True)]
    )
