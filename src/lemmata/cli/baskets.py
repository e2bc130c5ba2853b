"""What `lemmata rules` reads: baskets in a table, in one of these forms, tried in this order; a line says which was seen.

pairs   two columns, of a basket and of an item in it: named, or all there is and as pairs are, by their rows or their names
items   every column is yes or no (true and false, 0 and 1, y and n, t and f, x and empty): a row is a basket, a column an item
values  columns of text with few values: a row is a basket, "column=value" an item

A Parquet file is also taken with a column of lists, and one too large to be read at once goes to Apriori as a path.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lemmata.association.baskets import EXACT
from lemmata.association.stored import list_column
from lemmata.cli.show import are, plural, some
from lemmata.core.table import Column, Table, UnequalLines, distinct, is_missing, kind_of, read_table, shown

CELLS = 1 << 26  # of a Parquet file that is read at once: half a GiB of numbers
FEW = 20  # values of a column of text of which each is an item
PAIRED = 0.9  # share of different rows from which on no names are asked: some buy a thing twice, but columns of classes repeat
NAMES_OF_BASKETS = frozenset(
    ("basket", "bill", "cart", "client", "customer", "id", "invoice", "order", "purchase", "receipt", "transaction", "user")
)
NAMES_OF_ITEMS = frozenset(("article", "good", "item", "product", "sku"))
YES_AND_NO = (("yes", "no"), ("y", "n"), ("t", "f"), ("x", ""))  # words of one column, in any case; empty is no
YES = frozenset(yes for yes, _ in YES_AND_NO)
ROW_AND_COLUMN = "a row is a basket, and a column an item"
WHAT_TO_GIVE = (
    "give columns of yes and no, or of 0 and 1, each an item; or name the columns of baskets and of items "
    f"with --basket and --item; or give columns of text with at most {FEW} values"
)


@dataclass(frozen=True)
class Found:
    """Baskets that were seen in a file.

    Attributes
    ----------
    baskets : Lists of items, or the path of what is too large to be read at once.
    columns : Those of the baskets and of the items, or that of the lists; None where a row is a basket.
    form : What was seen, in words.
    remarks : What else should be known: what was left out.
    """

    baskets: list[list[Any]] | Path
    columns: tuple[str, ...] | None
    form: str
    remarks: tuple[str, ...] = ()


def read_baskets(path: Path, basket: str | None = None, item: str | None = None) -> Found:
    """Read a CSV or Parquet file and see the baskets in it."""
    if (basket is None) != (item is None):
        raise ValueError("--basket and --item go together: name the column of the baskets and that of the items.")
    if basket is not None and basket == item:
        raise ValueError(
            f"--basket and --item are the same column, {basket!r}; name that of the baskets and that of the items."
        )
    stored = _stored(path, basket, item)
    if stored is not None:
        return stored
    try:
        table = read_table(path)
    except UnequalLines as error:
        how = "baskets of unequal length are written as pairs: a column of baskets, one of items, and a line for each item"
        raise ValueError(f"{str(error).rpartition(';')[0]}; {how}.") from None
    if basket is None or item is None:
        return see(table, path.name)
    _check_names(basket, item, list(table))
    return from_pairs(table, basket, item, "")


def see(table: Table, name: str) -> Found:
    """Find the form of a table.

    Examples
    --------
    >>> see(Table({"tea": np.array([1.0, 1.0, 0.0]), "milk": np.array([True, False, False])}), "a.csv").baskets
    [['tea', 'milk'], ['tea'], []]
    >>> bought = Table({"receipt": np.array([1.0, 1.0, 2.0]), "item": np.array(["tea", "milk", "tea"], dtype=object)})
    >>> see(bought, "b.csv").baskets
    [['tea', 'milk'], ['tea']]
    >>> see(Table({"sky": np.array(["blue", "gray", "blue"], dtype=object)}), "c.csv").baskets
    [['sky=blue'], ['sky=gray'], ['sky=blue']]
    """
    if not all_yes_or_no(table):
        pair = paired(table)
        if pair is not None:
            return from_pairs(table, *pair, f", as {pair[0]} repeats (--basket and --item overrule)")
    dropped = {column: reason for j, column in enumerate(table) if (reason := _unfit(table[column], first=j == 0))}
    kept = table.without(*dropped)
    reasons = (f"{some([c for c in dropped if dropped[c] == reason])} ({reason})" for reason in dict.fromkeys(dropped.values()))
    remarks = [f"left out: {', '.join(reasons)}."] if dropped else []
    if not len(kept):
        raise ValueError(f"{name} has no columns of items ({remarks[0].removesuffix('.')}): {WHAT_TO_GIVE}.")
    missing = sum(int(is_missing(column).sum()) for column in kept.values())
    if all_yes_or_no(kept):
        remarks += [f"{plural(missing, 'empty cell')}: the item is not there."] if missing else []
        return Found(_rows(kept, _item_names), None, ROW_AND_COLUMN, tuple(remarks))
    for column in kept:
        if kind_of(kept[column]) in ("number", "date") and not yes_or_no(kept[column]):
            kind, parts = ("numbers", "'low' and 'high'") if kind_of(kept[column]) == "number" else ("dates", "'Monday'")
            todo = f"cut it into parts with names, such as {parts}, or leave it out; --basket and --item are for pairs"
            raise ValueError(f"the column {column!r} holds {kind}: {todo}.")
    remarks += (
        [f"{plural(missing, 'empty cell')}, which {'is no item' if missing == 1 else 'are no items'}."] if missing else []
    )
    example = next(f"{column}={shown(distinct(kept[column])[0])}" for column in kept)
    form = f"a row is a basket; items are the values of {some(list(kept))}, such as {example}"
    return Found(_rows(kept, _value_names), None, form, tuple(remarks))


def all_yes_or_no(table: Table) -> bool:
    """Tell whether a table has nothing but yes and no in its columns."""
    return all(yes_or_no(column) for column in table.values())


def yes_or_no(column: Column) -> bool:
    """Tell whether a column holds true and false, 0 and 1, or two such words, and not only missing values.

    Examples
    --------
    >>> yes_or_no(np.array([1.0, np.nan, 0.0])), yes_or_no(np.array([1.0, 2.0])), yes_or_no(np.array([np.nan]))
    (True, False, False)
    >>> yes_or_no(np.array(["Yes", None, "no"], dtype=object)), yes_or_no(np.array(["yes", "f"], dtype=object))
    (True, False)
    """
    present = column[~is_missing(column)]
    if not len(present) or kind_of(column) == "date":
        return False
    if kind_of(column) == "text":
        words = {value.lower() for value in distinct(column)}
        return any(words <= set(pair) for pair in YES_AND_NO)
    return kind_of(column) == "boolean" or bool(np.isin(present, (0.0, 1.0)).all())


def paired(table: Table) -> tuple[str, str] | None:
    """Tell which of two columns are the baskets and which the items, if the rows are such pairs; None if not.

    Baskets come again and again, and few rows twice. Where more do, the name of the baskets and their values must both say
    that they are baskets; what only one of them says is refused, for it would be a guess. The names tell which column is
    which; without them, of a number and a text the number is the basket, else the first column.

    Examples
    --------
    >>> item, receipt = np.array(["tea", "milk", "tea"], dtype=object), np.array([1.0, 1.0, 2.0])
    >>> paired(Table({"item": item, "receipt": receipt})), paired(Table({"item": item, "number": np.arange(3.0)}))
    (('receipt', 'item'), None)
    """
    if len(table) != 2 or not all(_identifies(column) for column in table.values()):
        return None
    basket, item = _basket_and_item(table)
    there = ~is_missing(table[basket]) & ~is_missing(table[item])
    baskets, items = table[basket][there].tolist(), table[item][there].tolist()
    if len(set(baskets)) == len(baskets):
        return None
    by_name, by_values = _named(basket, NAMES_OF_BASKETS), _as_receipts(table[basket][there])
    if len(set(zip(baskets, items, strict=True))) >= PAIRED * len(baskets) or (by_name and by_values):
        return basket, item
    if by_name or by_values or _named(item, NAMES_OF_ITEMS):
        what_to_do = f"say --basket {shlex.quote(basket)} --item {shlex.quote(item)}"
        other = "cut the numbers into parts with names" if kind_of(table[basket]) == "number" else "rename the columns"
        other += ", in words" if kind_of(table[basket]) == "text" and by_values else ""
        raise ValueError(f"these look like pairs in which rows repeat; {what_to_do}, or {other}, if each row is a basket.")
    return None


def _basket_and_item(table: Table) -> tuple[str, str]:
    """Tell the column of the baskets from that of the items: by the names, else by their kinds."""
    first, second = table
    first_says = _named(first, NAMES_OF_BASKETS) - _named(first, NAMES_OF_ITEMS)
    second_says = _named(second, NAMES_OF_BASKETS) - _named(second, NAMES_OF_ITEMS)
    if first_says != second_says:
        return (first, second) if first_says > second_says else (second, first)
    swapped = kind_of(table[second]) == "number" and kind_of(table[first]) == "text"
    return (second, first) if swapped else (first, second)


def _named(name: str, words: frozenset[str]) -> bool:
    """Tell whether the name of a column has one of these words, or its plural."""
    said = (word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", name))
    return any(word in words or word.removesuffix("s") in words for word in said)


def _as_receipts(column: Column) -> bool:
    """Tell whether values are numbered as receipts are, or too many to be items themselves."""
    values = distinct(column)
    if kind_of(column) == "number" or len(values) > FEW:
        return True
    return len(values) ** 2 > len(column) and all(re.search(r"\d", value) for value in values)


def from_pairs(table: Table, basket: str, item: str, why: str) -> Found:
    """Collect the items of each basket; pairs that lack one of the two are left out."""
    there = ~is_missing(table[basket]) & ~is_missing(table[item])
    if not there.any():
        raise ValueError(f"no row has both {basket!r} and {item!r}: there are no baskets.")
    for name in (basket, item):
        _check_digits(name, table[name][there])
    _, number = np.unique(table[basket][there], return_inverse=True)
    order = np.argsort(number, kind="stable")
    names = _names(table[item][there][order])
    ends = [*np.flatnonzero(np.diff(number[order], prepend=-1)).tolist(), len(names)]
    lacking = int((~there).sum())
    remarks = (f"{plural(lacking, 'row')} without {basket} or {item} {are(lacking)} left out.",) if lacking else ()
    form = f"a row is a pair of a basket, {basket}, and an item, {item}{why}"
    return Found([names[start:end] for start, end in pairwise(ends)], (basket, item), form, remarks)


def _check_names(basket: str, item: str, columns: list[str]) -> None:
    for name in (basket, item):
        if name not in columns:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(columns)}.")


def _check_digits(name: str, column: Column) -> None:
    """Refuse numbers that are not told apart: a table holds them to 53 bits."""
    if kind_of(column) == "number" and (np.abs(column) >= EXACT).any():
        raise ValueError(
            f"the column {name!r} holds numbers of more than 15 digits, of which not all are told apart: "
            "put a letter before each, so that they are text."
        )


def _identifies(column: Column) -> bool:
    """Tell whether a column may name things: text or whole numbers."""
    present = column[~is_missing(column)]
    return len(present) > 0 and (
        kind_of(column) == "text" or (kind_of(column) == "number" and bool((present == np.round(present)).all()))
    )


def _names(column: Column) -> list[Any]:
    """Name items by their values; whole numbers stay numbers, as frames have them."""
    if kind_of(column) == "number" and (column == np.round(column)).all():
        return list(column.astype(np.int64).tolist())
    return [shown(value) for value in column]


def _unfit(column: Column, first: bool) -> str:
    """Say why a column cannot be items, if so; numbers that are different in every row only in the first column."""
    values, n = distinct(column), int((~is_missing(column)).sum())
    if not n:
        return "empty"
    if not yes_or_no(column) and _identifies(column) and len(values) == n > 2 and (first or kind_of(column) == "text"):
        return "different in every row, as an identifier is"
    return f"more than {FEW} values" if kind_of(column) == "text" and len(values) > FEW else ""


def _rows(table: Table, names: Callable[[str, Column], list[str | None]]) -> list[list[str]]:
    """Collect the items of each row; `names` gives those of a column, None where there is none."""
    columns = [names(name, column) for name, column in table.items()]
    return [[item for item in row if item is not None] for row in zip(*columns, strict=True)]


def _item_names(name: str, column: Column) -> list[str | None]:
    return [name if value == 1 or str(value).lower() in YES else None for value in column.tolist()]  # True, too, equals 1


def _value_names(name: str, column: Column) -> list[str | None]:
    return [None if gone else f"{name}={shown(value)}" for gone, value in zip(is_missing(column), column.tolist(), strict=True)]


def _stored(path: Path, basket: str | None, item: str | None) -> Found | None:
    """See baskets in a Parquet file without reading it: a column of lists, or more cells than memory should hold."""
    try:
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            schema, n_cells = file.schema_arrow, file.metadata.num_rows * file.metadata.num_columns
    except (ImportError, OSError, ValueError):  # `read_table` says what is wrong, or what to install
        return None
    if basket is not None and item is not None:
        _check_names(basket, item, schema.names)
        form = f"a row is a pair of a basket, {basket}, and an item, {item}"
        return Found(path, (basket, item), form) if n_cells > CELLS else None
    lists = list_column(path)
    if lists is not None:
        return Found(path, (lists,), f"a row is a basket, the list in {lists}")
    if n_cells <= CELLS:
        return None
    if not all(pyarrow.types.is_boolean(kind) for kind in schema.types) and not _all_bits(path):
        what_to_do = "turn them into such, or name the columns of baskets and of items with --basket and --item"
        reason = "its columns are not all of true and false, or of 0 and 1"
        raise ValueError(f"{path} is too large to be read at once, and {reason}: {what_to_do}.")
    return Found(path, None, ROW_AND_COLUMN)


def _all_bits(path: Path) -> bool:
    """Tell whether all columns of a Parquet file hold 0 and 1, in one pass."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        if not all(
            pa.types.is_boolean(k) or pa.types.is_integer(k) or pa.types.is_floating(k) for k in file.schema_arrow.types
        ):
            return False
        batches = file.iter_batches()
        return all(pc.all(pc.is_in(c.cast(pa.float64()), pa.array([0.0, 1.0]))).as_py() for b in batches for c in b.columns)
