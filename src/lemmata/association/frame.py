"""Results with many rows: named columns, some of which hold sets, that become Python objects only when somebody looks.

A million sets as Python objects take longer to make than to find. So a column of sets stays two arrays of numbers, and goes to
Arrow, and from there to Polars or pandas, as it is.
"""

from typing import NamedTuple

import numpy as np

HEAD = 10  # rows that are shown


class SetColumn(NamedTuple):
    """Sets of items, one a row: names of the items, and the numbers of those in set i in indices[indptr[i]:indptr[i + 1]]."""

    items: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray

    @property
    def n_rows(self):
        """Number of sets."""
        return len(self.indptr) - 1

    @property
    def lengths(self):
        """Number of items of each set."""
        return np.diff(self.indptr)

    def objects(self):
        """Make a frozenset of each row.

        >>> SetColumn(np.array(["a", "b"], dtype=object), np.array([0, 1, 3]), np.array([1, 0, 1])).objects()[0]
        frozenset({'b'})
        """
        sets, lengths = np.empty(self.n_rows, dtype=object), self.lengths
        for k in np.unique(lengths):
            rows = np.flatnonzero(lengths == k)
            members = (self.items[self.indices[self.indptr[rows] + i]].tolist() for i in range(k))
            sets[rows] = np.fromiter(map(frozenset, zip(*members, strict=True)), dtype=object, count=len(rows))
        return sets

    def take(self, rows):
        """Keep some rows.

        >>> column = SetColumn(np.arange(3), np.array([0, 1, 3, 4]), np.array([1, 0, 2, 2]))
        >>> column.take(np.array([1, 0])).objects().tolist()
        [frozenset({0, 2}), frozenset({1})]
        """
        lengths = self.lengths[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][rows] - indptr[:-1], lengths)
        return SetColumn(self.items, indptr, self.indices[places])

    def text(self, row):
        """Write a set as people do."""
        return "{" + ", ".join(map(str, self.items[self.indices[self.indptr[row] : self.indptr[row + 1]]])) + "}"

    def arrow(self):
        """Give the column to PyArrow without making objects: lists of names."""
        import pyarrow as pa

        try:
            names = pa.array(self.items)
        except (ValueError, TypeError, OverflowError):  # Arrow's own, and of numbers that are too large
            raise ValueError("Arrow has no type for items of these kinds: use to_pandas, or give the items as text.") from None
        indices = pa.array(self.indices.astype(np.int32, copy=False))
        values = pa.DictionaryArray.from_arrays(indices, names) if pa.types.is_string(names.type) else names.take(indices)
        return pa.LargeListArray.from_arrays(pa.array(self.indptr.astype(np.int64, copy=False)), values)


def row_numbers(rows):
    """Give rows that are told by their numbers or a mask as an array; no rows at all are whole numbers too.

    >>> row_numbers([]).dtype.kind
    'i'
    """
    rows = np.asarray(rows)
    rows = rows if rows.size else rows.astype(np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "biu":
        raise ValueError("Rows are told by a slice, a mask or a list of their numbers, as [0]; columns by one name.")
    return rows


class Frame:
    """Named columns of equal length; `frame["support"]` is an array, `frame["itemset"]` an array of frozensets.

    It goes to pandas, Polars and PyArrow by `to_pandas()`, `to_polars()` and `to_arrow()`, or by whatever of theirs takes
    Arrow's streams.
    """

    def _columns(self):
        """Give the columns by name: arrays and `SetColumn`s."""
        raise NotImplementedError

    def __len__(self):
        """Number of rows."""
        column = next(iter(self._columns().values()))
        return column.n_rows if isinstance(column, SetColumn) else len(column)

    @property
    def columns(self):
        """Names of the columns."""
        return list(self._columns())

    def __iter__(self):
        return iter(self.columns)

    def __getitem__(self, name):
        if not isinstance(name, str):  # rows: a slice, a mask, or numbers
            return self.take(np.arange(len(self))[name] if isinstance(name, slice) else name)
        columns = self._columns()
        if name not in columns:
            raise KeyError(f"There is no column {name!r}; there are {', '.join(columns)}.")
        return columns[name].objects() if isinstance(columns[name], SetColumn) else columns[name]

    def __bool__(self):
        return len(self) > 0

    def take(self, rows):
        """Keep some rows, by their numbers or a mask."""
        raise NotImplementedError

    def sort(self, by, *, descending=True):
        """Order the rows by a column of numbers; equal ones stay as they are."""
        if isinstance(self._columns().get(by), SetColumn):
            raise ValueError(f"Column {by!r} holds sets, which have no order: sort by a column of numbers.")
        values = np.asarray(self[by], dtype=float)
        return self.take(np.argsort(-values if descending else values, kind="stable"))

    def head(self, n=HEAD):
        """Keep the first rows."""
        return self[: max(n, 0)]

    def to_pandas(self):
        """Make a pandas frame; sets are frozensets."""
        import pandas as pd

        return pd.DataFrame({name: self[name] for name in self})

    def to_arrow(self):
        """Make a PyArrow table; sets are lists."""
        import pyarrow as pa

        columns = self._columns()
        return pa.table({name: c.arrow() if isinstance(c, SetColumn) else c for name, c in columns.items()})

    def to_polars(self):
        """Make a Polars frame; sets are lists."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema=None):
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _cells(self, rows):
        """Write some rows as text, column by column."""
        columns = {}
        for name, column in self._columns().items():
            if isinstance(column, SetColumn):
                columns[name] = [column.text(row) for row in rows]
            else:
                columns[name] = [f"{column[row]:.4g}" if column.dtype.kind == "f" else str(column[row]) for row in rows]
        return columns

    def __repr__(self):
        rows = range(min(len(self), HEAD))
        lines = [[name, *cells] for name, cells in self._cells(rows).items()]
        widths = [max(map(len, column)) for column in lines]
        pads = ["<" if isinstance(column, SetColumn) else ">" for column in self._columns().values()]
        head = f"{type(self).__name__}: {len(self):,} rows" + (f", the first {HEAD}" if len(self) > HEAD else "")
        table = zip(*lines, strict=True)
        body = ("  ".join(f"{cell:{pad}{w}}" for cell, pad, w in zip(row, pads, widths, strict=True)) for row in table)
        return "\n".join([head, *(f"  {line.rstrip()}" for line in body)])

    def _repr_html_(self):
        from html import escape

        rows = range(min(len(self), HEAD))
        cells = self._cells(rows)
        head = "".join(f"<th>{escape(name)}</th>" for name in cells)
        lines = zip(*cells.values(), strict=True)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
        caption = f"{type(self).__name__}: {len(self):,} rows"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
