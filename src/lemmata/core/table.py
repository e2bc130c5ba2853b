"""Tables: named columns, each of one kind, read from CSV or Parquet or taken from any frame.

Four kinds, each with one representation, so that nothing downstream asks twice what a column is:

number   float64, missing is NaN; whole numbers are shown without a point
boolean  bool, or an object array of True, False and None where some are missing
date     datetime64, missing is NaT; time zones are turned into UTC
text     an object array of str, missing is None

A cell of a CSV file is missing when it is empty or NA, N/A, NaN, null, None or ?, in any case. The kind of a column is the
first of boolean (true, false), number, date (ISO 8601: 2024-05-31, with or without a time) that reads *all* its cells, else
text. Numbers with leading zeros (postal codes) are text. Numbers with a decimal comma are read where semicolons separate the
cells and a column has nothing else, unless commas could as well separate its thousands: then it is text, for a guess would be
wrong by a factor of a thousand.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
Kind = Literal["number", "boolean", "date", "text"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
BOOLEANS = {"true": True, "false": False}
DELIMITERS = (",", ";", "\t", "|")
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII)
DECIMAL_COMMA = re.compile(r"[+-]?(0|[1-9]\d*)(,\d+)?", re.ASCII)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)
QUOTES = "put a cell that holds the separator into quotes, and name every column in the header"  # what to do about many cells
LEADING_ZERO = re.compile(r"\n *[+-]?0\d")


class UnequalLines(ValueError):
    """A line of a CSV file has more or fewer cells than its header."""


class Table(Mapping[str, Column]):
    """Named columns of equal length, in order.

    Parameters
    ----------
    columns : Name of each column and its values, in one of the representations of the module.

    Examples
    --------
    >>> table = Table({"size": np.array([40.0, 65.0]), "city": np.array(["Graz", None], dtype=object)})
    >>> table
    <Table of 2 rows: size (number), city (text)>
    >>> table.take([0])["city"].tolist()
    ['Graz']
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"the columns have different lengths: {sorted(lengths)}.")
        self._columns = dict(columns)
        self.n_rows = lengths.pop() if lengths else 0

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} ({kind_of(column)})" for name, column in self.items())
        return f"<Table of {self.n_rows} rows: {columns}>"

    def take(self, rows: Any) -> "Table":
        """Return the rows given by their numbers or by a mask."""
        return Table({name: column[rows] for name, column in self.items()})

    def without(self, *names: str) -> "Table":
        """Return the table without these columns."""
        return Table({name: column for name, column in self.items() if name not in names})


def kind_of(column: Column) -> Kind:
    """Return the kind of a column.

    Examples
    --------
    >>> kind_of(np.array([True, None, False], dtype=object))
    'boolean'
    """
    if column.dtype.kind in "fb":
        return "number" if column.dtype.kind == "f" else "boolean"
    if column.dtype.kind == "M":
        return "date"
    return "boolean" if all(value is None or isinstance(value, bool) for value in column) else "text"


def is_missing(column: Column) -> NDArray[np.bool_]:
    """Mark the missing values of a column.

    Examples
    --------
    >>> is_missing(np.array(["a", None], dtype=object)).tolist()
    [False, True]
    """
    if column.dtype.kind == "O":
        return np.fromiter((value is None for value in column), dtype=bool, count=len(column))
    return np.isnat(column) if column.dtype.kind == "M" else np.isnan(column)


def shown(value: Any) -> str:
    """Write one value as a person would: whole numbers without a point, ISO dates, nothing for a missing value.

    Examples
    --------
    >>> [shown(v) for v in (3.0, 0.1, 1e20, True, None, np.datetime64("2024-05-31"))]
    ['3', '0.1', '1e+20', 'true', '', '2024-05-31']
    """
    if value is None or value != value:  # NaN and NaT differ from themselves
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)  # 2⁵³: exact up to here
    return str(value)


def distinct(column: Column) -> list[Any]:
    """Return the values that occur in a column, in order, without the missing ones.

    Examples
    --------
    >>> distinct(np.array(["b", None, "a", "b"], dtype=object))
    ['a', 'b']
    """
    present = column[~is_missing(column)]
    return sorted(set(present.tolist())) if present.dtype.kind == "O" else list(np.unique(present))


def read_table(path: str | Path) -> Table:
    r"""Read a CSV or Parquet file.

    The delimiter of a CSV file (comma, semicolon, tab or bar) is found from its first rows, the kind of each column from
    all its cells. A first column without a name that only numbers the rows, as pandas writes it, is left out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rents.csv"
    ...     _ = path.write_text("size;city;built\n40;Graz;1999-12-31\n?;Linz;2004-01-01\n")
    ...     table = read_table(path)
    >>> table
    <Table of 2 rows: size (number), city (text), built (date)>
    >>> table["size"]
    array([40., nan])
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give one CSV or Parquet file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        return _read_parquet(path)
    if start == b"PK\x03\x04":
        raise ValueError(f"{path} is a spreadsheet or an archive; save the table as CSV or Parquet.")
    if path.suffix.lower() in (".json", ".jsonl", ".html", ".xml") or start[:1] in (b"{", b"<"):
        raise ValueError(f"{path} is not a CSV or Parquet file; save the table as one of these.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read_csv(file, str(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save the table as CSV in UTF-8, or as Parquet.") from None


def write_table(table: Table, file: IO[str]) -> None:
    """Write a table as CSV: what `read_table` reads back.

    Examples
    --------
    >>> import sys
    >>> write_table(Table({"size": np.array([40.0, np.nan]), "city": np.array(["Graz", "Linz"], dtype=object)}), sys.stdout)
    size,city
    40,Graz
    ,Linz
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*([shown(value) for value in column] for column in table.values()), strict=True))


def as_table(data: Any) -> Table:
    """Turn a pandas, Polars or PyArrow frame, a mapping of columns or an array of numbers into a table.

    Examples
    --------
    >>> import pandas as pd
    >>> as_table(pd.DataFrame({"rooms": [2, 3], "balcony": [True, None], "city": ["Graz", None]}))
    <Table of 2 rows: rooms (number), balcony (boolean), city (text)>
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        return Table({str(name): _settle(list(values)) for name, values in data.items()})
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return Table({f"x{j}": _settle(data[:, j].tolist()) for j in range(data.shape[1])})
    import narwhals as nw  # here, so that reading a CSV file needs nothing but NumPy

    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        raise TypeError(f"a table is a pandas, Polars or PyArrow frame, a mapping or a 2-D array, not {type(data)}.") from None
    return Table({str(series.name): _from_series(series) for series in frame.iter_columns()})


def looks_like(column: Column) -> str:
    """Say what a column of text looks like if it is numbers with commas, and how to write them; else nothing.

    Examples
    --------
    >>> looks_like(np.array(["37,3", "4", None], dtype=object))
    'looks like numbers with a decimal comma: write 37.3 for 37,3'
    >>> looks_like(np.array(["1,000", "12,500"], dtype=object))
    'looks like thousands separated by commas: write 1000 for 1,000, or 1.000 if the comma is decimal'
    >>> looks_like(np.array(["Graz", "37,3"], dtype=object))
    ''
    """
    values = distinct(column) if kind_of(column) == "text" else []
    example = next((value for value in values if "," in value), None)
    if example is None:
        return ""
    point = example.replace(",", ".")
    if _in_thousands(values) and all(value.lstrip("+-").replace(",", "").isdecimal() for value in values):
        whole, decimal = example.replace(",", ""), f", or {point} if the comma is decimal" if example.count(",") == 1 else ""
        return f"looks like thousands separated by commas: write {whole} for {example}{decimal}"
    return f"looks like numbers with a decimal comma: write {point} for {example}" if _fit(DECIMAL_COMMA, values) else ""


def parse_column(cells: Sequence[str], decimal_comma: bool = False) -> Column:
    """Read the cells of one column as the first kind that fits them all; numbers may have a decimal comma if that is said.

    Examples
    --------
    >>> parse_column(["1", " 2.5", "NA"])
    array([1. , 2.5, nan])
    >>> parse_column(["0800", "8010"]).tolist()
    ['0800', '8010']
    >>> parse_column(["37,3", "4"], decimal_comma=True)
    array([37.3,  4. ])
    """
    with suppress(ValueError):  # first as they are: a column of numbers without gaps is common, and long
        return _numbers(cells)
    missing = {cell for cell in set(cells) if cell.strip().lower() in MISSING}
    with suppress(ValueError):
        return _numbers(["nan" if cell in missing else cell for cell in cells])
    # Each distinct cell is read once: columns that are not numbers mostly repeat themselves.
    text = {cell: cell.strip() for cell in set(cells) - missing}
    if decimal_comma and _fit(DECIMAL_COMMA, text.values()) and not _in_thousands(text.values()):
        return _numbers(["nan" if cell in missing else text[cell].replace(",", ".") for cell in cells])
    for kind, parse in (("boolean", _boolean), ("date", _date)):
        try:
            values: dict[str, Any] = {cell: parse(value) for cell, value in text.items()}
        except ValueError:
            continue
        return _column([values.get(cell) for cell in cells], kind)
    return _column([text.get(cell) for cell in cells], "text")


def _column(values: list[Any], kind: str) -> Column:
    """Put values of one kind, None where missing, into the representation of that kind."""
    if kind == "number":
        return np.array(values, dtype=float)  # None becomes NaN
    if kind == "date":
        column = np.array(values, dtype="datetime64[us]")
        days = column.astype("datetime64[D]")
        return days if np.array_equal(days, column, equal_nan=True) else column
    return np.array(values, dtype=object if kind == "text" or None in values else bool)


def _fit(pattern: re.Pattern[str], values: Iterable[str]) -> bool:
    return all(pattern.fullmatch(value) for value in values)


def _in_thousands(values: Iterable[str]) -> bool:
    """Tell whether every comma may separate thousands."""
    return _fit(THOUSANDS, (value for value in values if "," in value))


def _numbers(cells: Sequence[str]) -> Column:
    column = np.fromiter(map(float, cells), dtype=float, count=len(cells))
    text = "\n" + "\n".join(cells)
    if "_" in text or LEADING_ZERO.search(text):  # Python reads 1_000 and 007 as numbers; in a table they are names
        raise ValueError("codes, not numbers")
    return column


def _boolean(text: str) -> bool:
    try:
        return BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def _date(text: str) -> datetime:
    if not ISO_DATE.fullmatch(text):
        raise ValueError(text)
    return _utc(datetime.fromisoformat(text))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _settle(values: list[Any]) -> Column:
    """Find the kind of Python values and represent them so."""
    values = [None if value is None or value != value else value for value in values]
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool | np.bool_) for value in present) and present:
        return _column([value if value is None else bool(value) for value in values], "boolean")
    if all(isinstance(value, Real) for value in present):
        return _column(values, "number")
    if all(isinstance(value, date) for value in present):
        return _column([_utc(value) if isinstance(value, datetime) else value for value in values], "date")
    return _column([value if value is None else str(value) for value in values], "text")


def _from_series(series: Any) -> Column:
    if series.dtype.is_numeric() and not series.is_null().any():
        return np.asarray(series.to_numpy(), dtype=float)
    missing = series.is_null().to_list()
    return _settle([None if gone else value for gone, value in zip(missing, series.to_list(), strict=True)])


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError('reading Parquet needs PyArrow: pip install "lemmata[dask]".') from None
    try:
        table = as_table(pyarrow.parquet.read_table(path))
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file that can be read: {str(error).splitlines()[0]}.") from None
    if not table.n_rows or not len(table):
        raise ValueError(f"{path} has no rows.")
    return table


def _read_csv(file: IO[str], name: str) -> Table:
    lines = list(islice(file, 100))  # enough to see the delimiter
    delimiter = sniff(lines)
    reader = csv.reader(_chain(lines, file), delimiter=delimiter, strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header, name)
        rows = []
        for row in reader:
            if len(row) == len(header):
                rows.append(row)
            elif row:  # an empty line is not a row
                todo = "leave a cell empty for what is missing" if len(row) < len(header) else QUOTES
                counts = f"{_cells(len(row))}, but the header has {len(header)}"
                raise UnequalLines(f"{name}, line {reader.line_num}: {counts}; {todo}.")
    except csv.Error as error:
        raise ValueError(f"{name}, line {reader.line_num}: {error}.") from None
    if not rows:
        raise ValueError(f"{name} has a header but no rows.")
    named = ((key or f"column {j + 1}", cells) for j, (key, *cells) in enumerate(_columns(header, rows)))
    columns = {key: parse_column(cells, decimal_comma=delimiter == ";") for key, cells in named}
    if not header[0] and len(header) > 1 and _counts_rows(columns["column 1"]):
        del columns["column 1"]
    return Table(columns)


def sniff(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts the most lines into as many cells as the first, and the first into the most.

    Examples
    --------
    >>> sniff(["name;price", "bread, rye;2,50"])
    ';'
    """

    def quality(delimiter: str) -> tuple[int, int]:
        try:
            lengths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            return 0, 0
        return (sum(n == lengths[0] for n in lengths), lengths[0]) if lengths and lengths[0] > 1 else (0, 0)

    return max(DELIMITERS, key=quality)


def _check_header(header: list[str], name: str) -> None:
    if not any(header):
        raise ValueError(f"{name} is empty: it should begin with a line of column names.")
    if parse_column(header).dtype.kind in "fM":
        raise ValueError(f"{name} has no header: its first line holds only values; put a line with the column names above it.")
    repeated = next((key for key in header if key and header.count(key) > 1), None)
    if repeated is not None:
        raise ValueError(f"{name} has two columns named {repeated!r}; rename one of them.")


def _columns(header: list[str], rows: list[list[str]]) -> Iterable[tuple[str, ...]]:
    return zip(header, *rows, strict=True)


def _counts_rows(column: Column) -> bool:
    return column.dtype.kind == "f" and any(np.array_equal(column, np.arange(len(column)) + first) for first in (0.0, 1.0))


def _cells(n: int) -> str:
    return f"{n} cell" if n == 1 else f"{n} cells"


def _chain(lines: list[str], file: IO[str]) -> Iterator[str]:
    yield from lines
    yield from file
