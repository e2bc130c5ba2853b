"""Ratings: who said what of which item, however they come.

A rating is a user, an item and a number; a rating that was given twice counts twice. They come as pairs with a target, as
triples (an array, a frame, Parquet files, a Dask frame), or as a sparse matrix whose stored entries are the ratings, zeros
among them. Users and items are whole numbers or text; inside, they are numbers 0, 1, … in sorted order.

"""

from typing import Any, NamedTuple

import numpy as np

from lemmata.core.data import is_path, is_sparse

FEW_VALUES = 8  # ids whose range is no more than so many times their number are looked up in a table


class Triples(NamedTuple):
    """Ratings as they came: ids of users and items, values, weights or None; ids that exist without ratings; the precision."""

    users: Any
    items: Any
    values: Any
    weights: Any
    every: tuple[Any, Any] | None
    dtype: Any


class Ratings(NamedTuple):
    """Ratings by number: who, what, how much, how often (None: once each), and the ids that the numbers stand for."""

    users: Any
    items: Any
    user: Any
    item: Any
    values: Any
    weights: Any
    dtype: Any


def read(X, y=None, sample_weight=None, *, columns=("user", "item", "rating"), rated=True):
    """Read ratings from memory or from Parquet files; with rated=False only pairs are asked for.

    Examples
    --------
    >>> read([("ann", "tea", 4.0), ("bob", "tea", 2.0)]).values
    array([4., 2.])
    """
    triples = take(X, y, sample_weight, columns=columns, rated=rated)
    if len(triples.users) == 0:
        raise ValueError("Found no rows; at least one rating is needed.")
    found = present(triples)
    if len(found.users) == 0:
        raise ValueError("Every sample weight is zero: there is no rating to fit.")
    return found


def take(X, y=None, sample_weight=None, *, columns, rated=True):
    """Read ratings, of which there may be none."""
    if is_path(X):
        X = _parquet(X, columns, y, sample_weight, rated)
    if is_sparse(X):
        return _of_sparse(X, y, sample_weight)
    names = _named(X)
    if names is not None:
        users, items, values = _of_frame(X, names, columns, y)
        if isinstance(sample_weight, str):
            sample_weight = _column(X, sample_weight, names)
    else:
        users, items, values = _of_array(X, y)
    if values is None and rated:
        raise ValueError(
            "ProbabilisticMatrixFactorization requires y to be passed, or ratings as a third column; the target y is None."
        )
    users, items = identities(users, "user"), identities(items, "item")
    values, dtype = numbers(values, len(users)) if rated else (None, np.dtype(float))
    return Triples(users, items, values, positive(sample_weight, len(users)), None, dtype)


def numbers(values, n):
    """Return ratings as float64, and float32 if that is what they came in."""
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"Found {n} rows and ratings of shape {values.shape}: inconsistent, there must be one for each row.")
    dtype = np.dtype(np.float32 if values.dtype == np.float32 else np.float64)
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"Ratings must be numbers, got an array of {values.dtype}.") from None
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        kind = "NaN" if np.isnan(values[bad]) else "infinity"
        raise ValueError(f"The ratings contain {kind} in row {bad}: leave such rows out, a rating that is missing is not seen.")
    return values, dtype


def positive(weights, n):
    """Return weights as float64, or None."""
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"Found {n} rows and sample_weight of shape {weights.shape}: there must be one weight for each row.")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity.")
    if (weights < 0).any():
        raise ValueError("Negative values in sample_weight: a weight means repetition and is at least 0.")
    return weights


def present(triples):
    """Leave out the ratings of weight zero, whose users and items are then unknown."""
    if triples.weights is None or (triples.weights > 0).all():
        return triples
    there = triples.weights > 0
    users, items, values, weights = (None if a is None else a[there] for a in triples[:4])
    return triples._replace(users=users, items=items, values=values, weights=weights)


def identities(ids, kind):
    """Return ids as an array of whole numbers or of text."""
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"Expected one {kind} for each row, got an array with {ids.ndim} axes.")
    if ids.dtype.kind == "O":
        kinds = {type(v) for v in ids.tolist()}
        if kinds <= {str}:
            return ids.astype(str)
        if not kinds <= {int, bool} and not all(isinstance(v, (int, np.integer)) for v in ids.tolist()):
            raise ValueError(
                f"The ids of {kind}s must be all whole numbers or all text, got {sorted(k.__name__ for k in kinds)}."
            )
        return ids.astype(np.int64)
    if ids.dtype.kind == "f":
        whole = np.isfinite(ids) & (np.abs(ids) < 2.0**53) & (ids == np.rint(ids))
        if not whole.all():
            raise ValueError(f"The id of the {kind} in row {int(np.flatnonzero(~whole)[0])} is no whole number and no text.")
    elif ids.dtype.kind not in "iubUT":
        raise ValueError(f"The ids of {kind}s must be whole numbers or text, got {ids.dtype}.")
    return ids.astype(str) if ids.dtype.kind in "UT" else ids.astype(np.int64)


def learn(triples):
    """Number users and items in sorted order."""
    if triples.every is not None:
        (users, user), (items, item) = ((every, ids) for every, ids in zip(triples.every, triples[:2], strict=True))
    else:
        (users, user), (items, item) = distinct(triples.users), distinct(triples.items)
    return Ratings(users, items, user, item, triples.values, triples.weights, triples.dtype)


def distinct(ids):
    """Return the different ids, sorted, and the number of each id among them."""
    if ids.dtype.kind == "i" and len(ids):
        low, high = int(ids.min()), int(ids.max())
        if high - low < FEW_VALUES * len(ids):
            there = np.zeros(high - low + 1, dtype=bool)
            there[ids - low] = True
            number = np.cumsum(there) - 1
            return np.flatnonzero(there) + low, number[ids - low]
    return np.unique(ids, return_inverse=True)


def places(known, ids):
    """Look ids up among sorted known ones; −1 where one is unknown."""
    if len(known) == 0 or len(ids) == 0 or (known.dtype.kind == "U") != (ids.dtype.kind == "U"):
        return np.full(len(ids), -1)
    if known.dtype.kind == "i" and known[-1] - known[0] == len(known) - 1:  # the sorted ids follow each other
        return np.where((ids >= known[0]) & (ids <= known[-1]), ids - known[0], -1)
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, at, -1)


def _of_sparse(X, y, sample_weight):
    """Take the stored entries of a matrix of users × items."""
    if y is not None:
        raise ValueError("A sparse matrix has its ratings as entries: leave y out.")
    X = X.tocoo()
    if X.ndim != 2 or min(X.shape) == 0:
        raise ValueError(f"Expected a sparse matrix of users × items, got the shape {X.shape}.")
    values, dtype = numbers(X.data, X.nnz)
    user, item = X.row.astype(np.int64), X.col.astype(np.int64)
    every = np.arange(X.shape[0]), np.arange(X.shape[1])
    return Triples(user, item, values, positive(sample_weight, X.nnz), every, dtype)


def _of_array(X, y):
    """Take the columns of an array or of a list of rows."""
    if not isinstance(X, np.ndarray):
        X = list(X)
        if X and not all(hasattr(row, "__len__") and len(row) == len(X[0]) for row in X):
            raise ValueError("Expected rows of a user and an item (and a rating), all of one length.")
        columns = [_together([row[j] for row in X]) for j in range(len(X[0]))] if X and not isinstance(X[0], str) else []
        n = len(X)
    else:
        if X.ndim != 2:
            raise ValueError(f"Expected rows of a user and an item, got a 1D array or one with {X.ndim} axes.")
        columns, n = list(X.T), len(X)
    if n == 0:
        raise ValueError("Found no rows; at least one rating is needed.")
    if len(columns) not in (2, 3):
        raise ValueError(f"Expected a user and an item in each row, and a rating perhaps; got {len(columns)} columns.")
    return columns[0], columns[1], y if y is not None else columns[2] if len(columns) == 3 else None


def _together(values):
    """Make an array of values, in which numbers beside text stay numbers."""
    array = np.array(values)
    return np.array(values, dtype=object) if array.dtype.kind == "U" and not all(isinstance(v, str) for v in values) else array


def _named(X):
    """Return the names of the columns of a frame, or None."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return [str(c) for c in frame.columns] if isinstance(frame, nw.DataFrame) else None


def _of_frame(X, names, columns, y):
    """Take users, items and ratings by the names of their columns; of two or three other columns by their order."""
    chosen = [columns[0], columns[1]]
    if not set(chosen) <= set(names):
        if len(names) not in (2, 3):
            raise ValueError(f"There are no columns {chosen[0]!r} and {chosen[1]!r}; the frame has {', '.join(names)}.")
        chosen, rating = names[:2], names[2] if len(names) == 3 else None
    else:
        rating = columns[2] if columns[2] in names else None
    if isinstance(y, str):
        rating, y = y, None
    values = y if y is not None else None if rating is None else _column(X, rating, names)
    return _column(X, chosen[0], names), _column(X, chosen[1], names), values


def _column(X, name, names):
    import narwhals as nw

    if name not in names:
        raise ValueError(f"There is no column {name!r}; the frame has {', '.join(names)}.")
    frame = nw.from_native(X, eager_only=True)
    column = frame[:, names.index(name)]
    return column.to_numpy() if column.dtype.is_numeric() else np.array(column.to_list(), dtype=object)


def _parquet(source, columns, y, sample_weight, rated):
    """Read the columns that are needed from Parquet files, as one Arrow table."""
    from lemmata.core.stream import open_parquet, parquet_files

    for value in (y, sample_weight):
        if value is not None and not isinstance(value, str):
            raise ValueError("With a Parquet file, name the column of the ratings or the weights instead of giving values.")
    wanted = [*columns[:2]]
    if rated:
        wanted += [columns[2] if y is None else y] + ([] if sample_weight is None else [sample_weight])
    tables = []
    for path in parquet_files(source):
        with open_parquet(path) as file:
            names = file.schema_arrow.names
            for name in wanted:
                if name not in names:
                    raise ValueError(f"There is no column {name!r} in {path.name}; it has {', '.join(names)}.")
            tables.append(file.read(columns=wanted))

    import pyarrow as pa  # which is there, or the first file would have told

    return pa.concat_tables(tables)
