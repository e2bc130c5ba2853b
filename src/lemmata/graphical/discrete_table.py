"""Rows of labels as rows of numbers of states: how the discrete models read data.

A table is a frame, {variable: values}, or an array whose columns are the variables in order; stored tables (Parquet, Dask, an
iterator of blocks) must hold numbers. Columns are found by name, and a variable without a column is hidden. Where the variables
are the numbers 0 to n − 1, these are the names of an array's columns as well. None and NaN are values that were not seen;
their number is -1, here and in every kernel.

A value means the state whose label equals it. Where no label of a variable is a number, numbers are numbers of states: that is
how a stored table, which has no text, tells of labels. Labels that are learned are the values of the data, sorted; a column of
floats that are all whole has whole labels, because a column with gaps holds floats for no other reason. The categories of a
pandas column, or of an Enum of Polars, are its labels, in their order, seen or not.
"""

from math import prod
from numbers import Integral, Number, Real
from typing import NamedTuple

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.data import is_dask, is_path, is_stored
from lemmata.graphical.evidence import some
from lemmata.graphical.factor_graph import check_labels

MOST = 10_000  # different values of a variable: more are measurements, not states
LARGEST = 1 << 28  # entries of a table: 2 GiB
EXACT = 1 << 53  # whole numbers beyond are not all floats


class DiscreteTable(NamedTuple):
    """Blocks of (numbers of states, weights), the labels that they stand for, and which variables have a column."""

    blocks: Blocks
    states: dict
    seen: list


def read_table(X, variables, sample_weight=None, *, states=None, fixed=True, ignored=()):
    """Turn a table into numbers of states.

    Parameters
    ----------
    variables : Names, in the order that the columns of the result have.
    states : {variable: labels} where they are known.
    fixed : Whether these are all labels there are. Otherwise a variable without an entry learns its labels from the data.
    ignored : Variables whose columns, if there are any, are not looked at.

    Examples
    --------
    >>> table = read_table({"a": ["no", "yes", None]}, ["a", "b"], states={"b": (0, 1)}, fixed=False)
    >>> table.blocks.first()[0]
    array([[ 0., -1.],
           [ 1., -1.],
           [-1., -1.]], dtype=float32)
    >>> table.states
    {'a': ('no', 'yes'), 'b': (0, 1)}
    """
    variables, states = list(variables), {name: tuple(labels) for name, labels in (states or {}).items()}
    for name, labels in states.items():
        check_labels(name, labels)
        _all_exact(name, np.array([label for label in labels if isinstance(label, Real)], dtype=object))
    if is_stored(X):
        return _stored(X, variables, sample_weight, states, fixed, ignored)
    columns, others = _columns(X, variables, ignored)
    _none_strange(variables, columns, others, ignored)
    seen = [name for name in variables if name in columns]
    weight, present = _weights(sample_weight, len(next(iter(columns.values())).values))
    codes = np.full((int(present.sum()) if weight is not None else len(present), len(variables)), -1, dtype=np.float32)
    for j, name in enumerate(variables):
        if name in columns:
            values, missing, categories = columns[name]
            if weight is not None and not present.all():
                values, missing = values[present], missing[present]
            if name not in states and not fixed:
                states[name] = categories or learned(name, _different(values[~missing]))
            codes[:, j] = np.where(missing, -1, _numbers(name, values, missing, states[name]))
    _all_named(variables, states)
    return DiscreteTable(Blocks.of(codes, None if weight is None else weight[present]), _ordered(states, variables), seen)


def check_size(scope, states):
    """Refuse a table over some variables that would fill the memory.

    >>> check_size(("a", "b"), {"a": range(100_000), "b": range(10_000)})
    Traceback (most recent call last):
    ...
    ValueError: The table over 'a' (100,000 states), 'b' (10,000 states) would have 1,000,000,000 entries, more than ...
    """
    size = prod(len(states[name]) for name in scope)
    if size > LARGEST:
        each = ", ".join(f"{name!r} ({len(states[name]):,} states)" for name in scope)
        raise ValueError(
            f"The table over {each} would have {size:,} entries, more than {LARGEST:,}: put the values in fewer bins, or take "
            "away a variable."
        )


def _ordered(states, variables):
    return {name: states[name] for name in variables}


def _all_named(variables, states):
    nameless = [name for name in variables if name not in states]
    if nameless:
        raise ValueError(
            f"There is no column for {some(nameless)}: if hidden, give the labels in state_names, else check the names."
        )


def _weights(sample_weight, n):
    """Check weights; give them, or None, and which rows are there at all."""
    if sample_weight is None:
        return None, np.ones(n, dtype=bool)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one number for each of the {n} rows, and has the shape {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative: a weight means repetition.")
    if not weight.any():
        raise ValueError("Every sample weight is zero: there is no row to fit.")
    return weight, weight > 0


class Column(NamedTuple):
    """The values of a variable as numbers or objects, which are missing, and the labels that its type names, if it does."""

    values: np.ndarray
    missing: np.ndarray
    categories: tuple | None = None


def _columns(X, variables, ignored):
    """Give {variable: its column} of a table in memory, and the names of its other columns."""
    named = _named(X, variables)
    by_text = {str(name): name for name in named}
    found = {name: name if name in named else by_text.get(str(name)) for name in variables}
    given = {name: key for name, key in found.items() if key is not None}
    columns = {name: _values(name, named[key]) for name, key in given.items() if name not in ignored}
    if not columns and set(given) <= set(ignored):
        columns = {name: _gaps(len(named[key])) for name, key in given.items()}
    if not columns:
        raise ValueError(f"The data have no column for any variable: the variables are {some(variables)}.")
    lengths = {len(column.values) for column in columns.values()}
    if lengths == {0} or len(lengths) > 1:
        raise ValueError(f"All columns need the same number of rows, and at least one; they have {sorted(lengths)}.")
    return columns, set(named) - set(found.values())


def _gaps(n):
    return Column(np.zeros(n), np.ones(n, dtype=bool))


def _named(X, variables):
    """Give {name: column} of a table in memory."""
    import narwhals as nw

    if isinstance(X, dict):
        return X
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        twice = list(dict.fromkeys(X.columns[X.columns.duplicated()]))  # of pandas; others allow none
        raise ValueError(f"The data have several columns named {some(twice)}: rename them, or leave one out.") from None
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("A lazy frame has no rows yet: collect it first.")
    if isinstance(frame, nw.DataFrame):
        return {column.name: column for column in frame.iter_columns()}
    rows = X if isinstance(X, np.ndarray) and X.ndim == 2 else None if isinstance(frame, nw.Series) else _rows(X)
    if rows is None:
        raise ValueError(
            "The data must be a frame, {variable: values} or an array of rows and columns, and are a "
            f"{type(X).__name__} without columns."
        )
    array = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=object)
    if array.ndim != 2 or array.shape[1] != len(variables):
        raise ValueError(
            f"An array of data needs a column for each of the {len(variables)} variables, in order, and has the shape "
            f"{array.shape}; give a frame or a dictionary to leave some out."
        )
    return {name: array[:, j] for j, name in enumerate(in_order(variables))}


def _rows(X):
    """Give the rows of a list of lists; None where it is none."""
    try:
        return [list(row) for row in X]
    except TypeError:
        return None


def in_order(variables):
    """Say which variable each column of an array without names is: by number where they are 0 to n − 1, else as they come.

    >>> in_order([2, 0, 1]), in_order(["b", "a"])
    ([0, 1, 2], ['b', 'a'])
    """
    numbered = all(isinstance(name, Integral) and not isinstance(name, bool) for name in variables)
    return sorted(variables) if numbered and set(variables) == set(range(len(variables))) else list(variables)


def _none_strange(variables, columns, others, ignored=()):
    """Refuse columns that are no variables where variables have no column: one is most likely the other, misspelled."""
    hidden = [name for name in variables if name not in columns and name not in ignored]
    if hidden and others:
        raise ValueError(
            f"The data have no column for {some(hidden)}, but columns {some(sorted(others, key=str))}, which are no variables: "
            "rename them, or leave them out."
        )


def _values(name, column):
    """Read the column of a variable."""
    import narwhals as nw

    if isinstance(column, (str, bytes, dict)) or not hasattr(column, "__len__") or getattr(column, "ndim", 1) != 1:
        raise ValueError(f"The column of {name!r} must be a list of values, got {column!r}.")
    if not isinstance(column, nw.Series):
        column = nw.from_native(column, series_only=True, pass_through=True)  # a Series in a dictionary
    if isinstance(column, nw.Series):
        missing = column.is_null().to_numpy().astype(bool)
        if column.dtype.is_numeric():
            values = column.fill_null(0).to_numpy() if missing.any() else column.to_numpy()
            return _numeric(name, np.asarray(values), missing)
        categories, text = _categories(column), column.dtype in (nw.String, nw.Categorical, nw.Enum)
        column = column.to_list()
        if categories is not None:
            return _values(name, column)._replace(categories=categories)
        if text:
            return Column(_objects(column), missing)
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return _numeric(name, column, np.zeros(len(column), dtype=bool))
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        return Column(column.astype(object), np.zeros(len(column), dtype=bool))
    values = _objects([value.item() if isinstance(value, np.generic) else value for value in column])
    missing = np.fromiter((_is_missing(value) for value in values), dtype=bool, count=len(values))
    if all(isinstance(value, (int, float)) for value in values[~missing]):
        whole_bool = all(isinstance(value, bool) for value in values[~missing])
        values[missing] = 0
        _all_exact(name, values)
        return _numeric(name, values.astype(bool if whole_bool else float), missing)
    return Column(values, missing)


def _categories(column):
    """Give the labels that the type of a column names, in order, or None; a Categorical of Polars has no order of its own."""
    import narwhals as nw

    native = column.to_native()
    if column.implementation.is_pandas() and hasattr(native, "cat"):
        return tuple(native.cat.categories.tolist()) or None
    return tuple(native.dtype.categories.to_list()) if column.dtype == nw.Enum else None


def _objects(column):
    values = np.empty(len(column), dtype=object)
    values[:] = column
    return values


def _numeric(name, values, missing):
    missing = missing | np.isnan(values) if values.dtype.kind == "f" else missing
    _all_exact(name, values[~missing])
    return Column(values, missing)


def _all_exact(name, values):
    """Refuse numbers that would be taken for their neighbors."""
    if values.dtype.kind != "b" and len(values) and max(float(values.max()), -float(values.min())) >= EXACT:
        raise ValueError(
            f"The variable {name!r} has numbers of 2^53 and more, which cannot all be told apart: number its states, or make "
            "texts of them."
        )


def _is_missing(value):
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA equals nothing, itself neither
        return True


def _different(values):
    """List the different values of a column."""
    return np.unique(values).tolist() if values.dtype.kind in "fiub" else list(dict.fromkeys(values))


def learned(name, values):
    """Make labels of the different values of a column: sorted, whole floats as whole numbers.

    >>> learned("a", [2.0, 0.0]), learned("b", ["yes", "no"])
    ((0, 2), ('no', 'yes'))
    """
    if not values:
        raise ValueError(f"No value of {name!r} was seen: give its labels in state_names to learn it as hidden.")
    if len(values) > MOST:
        raise ValueError(f"The variable {name!r} has {len(values):,} different values: too many for states; put them in bins.")
    if all(isinstance(value, float) and value.is_integer() for value in values):
        values = [int(value) for value in values]
    try:
        return tuple(sorted(values))
    except TypeError:
        return tuple(sorted(values, key=lambda value: (type(value).__name__, str(value))))


def _numbers(name, values, missing, labels):
    """Give the number of the state of each value; where it is missing, any."""
    if values.dtype.kind in "fiub":
        return numbers_of(name, values, ~missing, labels)
    known = {label: k for k, label in enumerate(labels)}
    try:
        codes = np.fromiter((known.get(value, -1) for value in values), dtype=np.int64, count=len(values))
    except TypeError:
        raise ValueError(f"The variable {name!r} has values that cannot be labels, such as {values[0]!r}.") from None
    strange = (codes < 0) & ~missing
    if strange.any():
        _refuse(name, values[int(np.argmax(strange))], labels)
    return codes


def numbers_of(name, values, there, labels):
    """Look numbers up among the labels of a variable or, where no label is a number, take them for numbers of states.

    >>> numbers_of("a", np.array([30, 10]), np.array([True, True]), (30, 10)).tolist()
    [0, 1]
    >>> numbers_of("a", np.array([1.0, 0.0]), np.array([True, True]), ("no", "yes")).tolist()
    [1, 0]
    """
    numeric = {float(label): k for k, label in enumerate(labels) if isinstance(label, Number)}
    if not numeric:
        numeric = {float(k): k for k in range(len(labels))}
    known = np.array(sorted(numeric))
    order = np.array([numeric[value] for value in known])
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    strange = there & (known[place] != values)
    if strange.any():
        _refuse(name, values[int(np.argmax(strange))].item(), labels)
    return order[place]


def _refuse(name, value, labels):
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    raise ValueError(f"The data have the value {value!r} of {name!r}, which is none of its states: {some(labels)}.")


class Coder:
    """Turns blocks of a stored table into numbers of states; a column for each variable, -1 where there is none."""

    def __init__(self, places, labels):
        self.places, self.labels = places, labels  # column in the table of each variable or None; (name, labels) of each

    def __call__(self, X):
        """Code a block."""
        codes = np.full((len(X), len(self.labels)), -1, dtype=np.float32)
        for j, (place, (name, labels)) in enumerate(zip(self.places, self.labels, strict=True)):
            if place is not None:
                there = ~np.isnan(X[:, place])
                codes[:, j] = np.where(there, numbers_of(name, np.where(there, X[:, place], 0), there, labels), -1)
        return codes


class Values:
    """The different values of each column of some rows; the sum of two is their union."""

    def __init__(self, columns):
        self.columns = columns

    def __add__(self, other):
        return Values([np.union1d(a, b) for a, b in zip(self.columns, other.columns, strict=True)])


def values_block(X, weight):
    """Collect the values of a block that have weight."""
    rows = X if weight is None else X[weight > 0]
    columns = [np.unique(rows[~np.isnan(rows[:, j]), j]) for j in range(X.shape[1])]
    return Values([column[: MOST + 1] for column in columns])


def weights_block(X, weight):
    """Count the negative weights of a block, and sum them all."""
    return int((weight < 0).sum()), float(weight.sum())


def _stored(X, variables, sample_weight, states, fixed, ignored):
    """Open a stored table."""
    columns = _stored_columns(X)
    wanted = None if columns is None else [str(name) for name in variables if str(name) in columns]
    if columns is not None:
        if not wanted:
            raise ValueError(f"The data have no column for any variable: the variables are {some(variables)}.")
        apart = {sample_weight} if isinstance(sample_weight, str) else set()
        there = [name for name in variables if str(name) in wanted]
        _none_strange(variables, there, set(columns) - set(wanted) - apart, ignored)
    blocks = Blocks.of(X, sample_weight, columns=wanted)
    if columns is None and blocks.n_columns != len(variables):
        raise ValueError(
            f"A table without names needs a column for each of the {len(variables)} variables, in order, and has "
            f"{blocks.n_columns}."
        )
    if blocks.first()[-1] is not None:
        negative, total = blocks.reduce(weights_block)
        if negative or not total > 0:
            raise ValueError("sample_weight must be positive somewhere and negative nowhere: a weight means repetition.")
    order = [str(name) for name in in_order(variables)] if wanted is None else wanted
    places = [None if name in ignored or str(name) not in order else order.index(str(name)) for name in variables]
    seen = [name for name, place in zip(variables, places, strict=True) if place is not None]
    if not fixed and any(name not in states for name in seen):
        found = blocks.reduce(values_block).columns
        for name, place in zip(variables, places, strict=True):
            if place is not None and name not in states:
                _all_exact(name, found[place])
                states[name] = learned(name, found[place].tolist())
    _all_named(variables, states)
    coded = blocks.with_columns(Coder(places, [(name, states[name]) for name in variables]), len(variables))
    return DiscreteTable(coded, _ordered(states, variables), seen)


def _stored_columns(X):
    """Give the names of the columns of a stored table, or None where it has none."""
    if is_dask(X):
        return [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if is_path(X):
        from pyarrow.parquet import read_schema

        from lemmata.core.stream import parquet_files

        return list(read_schema(parquet_files(X)[0]).names)
    return None
