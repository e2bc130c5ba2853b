"""Baskets that are stored: a column of lists, or pairs of a basket and an item, in Parquet files or on Dask.

What is read at a time becomes `Baskets` with items of its own, named as in the data; the mining works with names across parts.
"""

from functools import partial

import numpy as np

from lemmata.association.baskets import NO_BASKETS, SIGNED, Baskets, Rows, of_lists, plain, renumbered, united
from lemmata.core.blocks import Blocks
from lemmata.core.dask_blocks import DaskBlocks
from lemmata.core.stream import AHEAD, open_parquet, parquet_files, read_ahead

ENTRIES = 1 << 21  # items of the baskets of a part: what mining makes of them takes about 80 MiB
BATCH = 1 << 16  # rows read at once


class BasketFiles(Blocks):
    """Baskets of Parquet files in parts of about as many items; a part is one `Baskets`."""

    home, n_parts = "stream", None  # how many parts there are is known at their end

    def __init__(self, source, columns):
        self.files, self.of = parquet_files(source), columns
        self.n_blocks_read = 0
        for file in self.files:
            with open_parquet(file) as opened:
                schema = opened.schema_arrow
            for name in columns:
                if name not in schema.names:
                    raise ValueError(f"There is no column {name!r} in {file.name}; it has {', '.join(schema.names)}.")
            if len(columns) == 1 and not _holds_lists(schema.field(columns[0])):
                kind = schema.field(columns[0]).type
                raise ValueError(f"Column {columns[0]!r} in {file.name} holds no lists but {kind}; for pairs name two columns.")

    def _tasks(self):
        read = _lists if len(self.of) == 1 else _pairs
        found = False
        for i, part in enumerate(read_ahead(in_parts(read(self.files, self.of)), AHEAD - 1)):
            found = True
            yield i, partial(_alone, part)
        if not found:
            raise ValueError(NO_BASKETS)


class BasketPartitions(DaskBlocks):
    """A Dask column of lists: a partition is one `Baskets`."""

    def __init__(self, column):
        import dask

        task = dask.delayed(_of_partition)
        self.blocks = [task(part) for part in np.ravel(column.to_delayed())]


def list_column(source):
    """Name the one column of lists in Parquet files, or None."""
    with open_parquet(parquet_files(source)[0]) as opened:
        return the_one([field.name for field in opened.schema_arrow if _holds_lists(field)])


def words_of(source):
    """Name the columns of text in Parquet files; and tell how many columns there are in all."""
    import pyarrow as pa

    with open_parquet(parquet_files(source)[0]) as opened:
        schema = opened.schema_arrow
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_dictionary)
    return [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)], len(schema)


def the_one(names):
    """Give the name of the column that holds lists, None if there is none; of several nobody knows which.

    >>> the_one(["basket"]), the_one([])
    ('basket', None)
    """
    if len(names) > 1:
        raise ValueError(
            f"Columns {names[0]!r} and {names[1]!r} both hold lists: name that of the baskets by columns=, or leave one out."
        )
    return names[0] if names else None


def _holds_lists(field):
    import pyarrow as pa

    return any(is_kind(field.type) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def of_arrow(lists):
    """Number the items of an Arrow array of lists.

    >>> import pyarrow as pa
    >>> of_arrow(pa.array([["tea", "milk"], [], ["tea"]])).held
    Rows(indptr=array([0, 2, 2, 3]), indices=array([0, 1, 1], dtype=int32))
    """
    import pyarrow.compute as pc

    if lists.null_count:
        raise ValueError("A basket is missing: leave out the rows without a list, or put an empty list there.")
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return _encoded(indptr, lists.flatten())


def _encoded(indptr, values):
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(values.type):
        raise ValueError(f"Items must be text or numbers, and these are of the type {values.type}.")
    if pa.types.is_string_view(values.type):  # which Arrow does not sort
        values = values.cast(pa.large_string())
    missing = np.flatnonzero(values.is_null(nan_is_null=True))
    if len(missing):
        basket = int(np.searchsorted(indptr, missing[0], side="right") - 1)
        raise ValueError(f"Basket {basket} of a part holds an item that is missing: leave it out.")
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    items = plain(encoded.dictionary.take(order).to_numpy(zero_copy_only=False))
    slot = np.empty(len(order), dtype=np.int32)
    slot[order.to_numpy()] = np.arange(len(order))
    rows = renumbered(indptr, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False), slot)
    if items.dtype.kind in "iu":
        items = items.astype(np.int64 if items.max(initial=0) < SIGNED else object)
    return Baskets(items, rows)


def in_parts(batches):
    """Collect batches of baskets into parts of about `ENTRIES` items; a small rest joins the last part.

    In a part of a few baskets each set of items would be frequent.
    """
    last, held, entries = [], [], 0
    for batch in batches:
        held.append(batch)
        entries += batch.n_entries
        if entries >= ENTRIES:
            if last:
                yield together(last)
            last, held, entries = held, [], 0
    if last and entries >= ENTRIES // 2:
        yield together(last)
        last = []
    if last or held:
        yield together([*last, *held])


def together(parts):
    """Put baskets of several parts, each with items of its own, into one.

    >>> a, b = (Baskets(np.array(items), Rows(np.array([0, 1]), np.array([0]))) for items in (["jam"], ["tea"]))
    >>> together([a, b]).items, together([a, b]).held
    (array(['jam', 'tea'], dtype='<U3'), Rows(indptr=array([0, 1, 2]), indices=array([0, 1], dtype=int32)))
    """
    if len(parts) == 1:
        return parts[0]
    items = united(*(part.items for part in parts))
    indices = [np.searchsorted(items, part.items).astype(np.int32)[part.held.indices] for part in parts]
    ends = np.cumsum([0, *(part.n_entries for part in parts[:-1])])
    indptr = [part.held.indptr[1:] + end for part, end in zip(parts, ends, strict=True)]
    weight = np.concatenate([part.weight for part in parts])
    return Baskets(items, Rows(np.concatenate([[0], *indptr]), np.concatenate(indices)), weight)


def _batches(files, columns):
    for path in files:
        with open_parquet(path) as file:
            for group in range(file.num_row_groups):  # one by one: Arrow joins no lists of categories of two groups
                yield from file.iter_batches(batch_size=BATCH, row_groups=[group], columns=list(columns), use_threads=False)


def _lists(files, columns):
    for batch in _batches(files, columns):
        yield of_arrow(batch.column(0))


def _pairs(files, columns):
    """Collect consecutive rows of the same basket; what is left at the end of a batch waits for the next."""
    import pyarrow as pa

    held = None
    for batch in _batches(files, columns):
        table = pa.table({"basket": batch.column(columns[0]), "item": batch.column(columns[1])})
        if np.any(batch.column(0).is_null(nan_is_null=True)):
            raise ValueError(f"A pair has no basket: leave out the rows in which {columns[0]!r} is missing.")
        table = table if held is None else pa.concat_tables([held, table]).combine_chunks()
        ids = table["basket"].to_numpy()
        if (ids[1:] < ids[:-1]).any():
            raise ValueError(f"Baskets must stand together: sort the rows by {columns[0]!r}, ascending.")
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        if len(starts) > 1:
            yield _encoded(starts, table["item"].slice(0, starts[-1]).combine_chunks())
        held = table.slice(starts[-1])
    if held is not None and len(held):
        yield _encoded(np.array([0, len(held)]), held["item"].combine_chunks())


def _of_partition(part):
    baskets = of_lists(part.tolist())
    if any(isinstance(item, frozenset) for item in baskets.items.tolist()):
        raise ValueError("Items of baskets in parts must have an order, which sets have not: name them.")
    return (baskets,)


def _alone(part):
    return (part,)
