"""Which form do these baskets have? Lists, a column of lists, pairs in two columns, or a table with a column for each item."""

from pathlib import Path

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from lemmata.association.baskets import NO_BASKETS, Baskets, names_array, of_lists, of_pairs, of_table
from lemmata.association.stored import BasketFiles, BasketPartitions, list_column, the_one, words_of
from lemmata.core.data import have_weight, is_dask, is_path, is_sparse, is_stored, some_present


class Tables:
    """Blocks of a table, seen as parts of baskets."""

    def __init__(self, blocks):
        if not blocks.n_rows:
            raise ValueError(NO_BASKETS)
        self.blocks = blocks
        if getattr(blocks, "block_rows", None):  # equal parts: in a short rest each set of items would be frequent
            blocks.block_rows = -(-blocks.n_rows // blocks.n_blocks)
        self.home, self.n_parts = blocks.home, blocks.n_blocks
        self.columns = None if blocks.columns is None else names_array(list(blocks.columns))

    def reduce(self, kernel, *params):
        """Sum kernel(baskets, *params) over the blocks."""
        return self.blocks.reduce(on_table, kernel, *params)

    def map(self, kernel, *params):
        """Collect kernel(baskets, *params), an array with one row a basket."""
        return self.blocks.map(on_table, kernel, *params)


def on_table(X, weight, kernel, *params):
    """Call a kernel of baskets on a block of a table."""
    return kernel(of_table(X, weight), *params)


def is_table(X, columns):
    """Tell whether X has a column for each item, unlike lists, a column of lists, or pairs.

    >>> is_table([["tea"], ["tea", "milk"]], None), is_table(np.eye(2), None), is_table([[1.0, 0.0]], None)
    (False, True, True)
    """
    if columns is not None:
        return False
    if is_path(X):
        none = isinstance(X, (list, tuple)) and not any(Path(name).exists() for name in X)
        if none or list_column(X) is not None:
            return False
        _refuse_words(*words_of(X))
        return True
    if is_dask(X):
        return X.ndim == 2
    if is_stored(X):
        return True
    if is_sparse(X) or isinstance(X, np.ndarray):
        return is_sparse(X) or X.dtype != object or X.ndim != 1
    if isinstance(X, (list, tuple)):  # items have names or numbers: fractions are entries of a table
        table = len(X) > 0 and isinstance(X[0], (list, tuple)) and len(X[0]) > 0 and isinstance(X[0][0], (float, bool))
        if table and len({len(row) for row in X if hasattr(row, "__len__")}) > 1:
            raise ValueError(
                "Lists of fractions are rows of a table, and equally long; items that are numbers are whole, as 7."
            )
        return table
    frame = _frame(X)
    if hasattr(frame, "get_column"):
        if _lists(frame) is not None:
            return False
        words = [name for name, kind in frame.schema.items() if str(kind).startswith(("String", "Categorical", "Enum"))]
        _refuse_words(words, len(frame.columns))
        return True
    return not hasattr(frame, "to_list") and hasattr(X, "__array__")


def _refuse_words(words, n_columns):
    """Ask for the columns of a narrow frame with text, which looks like pairs."""
    if words and n_columns <= 3:
        raise ValueError(
            f"Column {words[0]!r} holds text: for pairs name the columns, columns=[basket, item]; a table has a column "
            "for each item, true where it is there."
        )


def booleans(X):
    """Give a table of truth values in memory as an array, None for any other.

    >>> booleans(np.eye(2)) is None
    True
    """
    if isinstance(X, np.ndarray):
        return X if X.dtype == bool and X.ndim == 2 else None
    if is_stored(X):
        return None
    frame = _frame(X)
    if not hasattr(frame, "get_column") or any(str(kind) != "Boolean" for kind in frame.schema.values()):
        return None
    array = np.asarray(frame.to_numpy())
    return array if array.dtype == bool and array.ndim == 2 else None


def labels_of(X):
    """Give the names of the columns of a frame in memory if they are no text, as numbers of items are; else None.

    >>> import pandas as pd
    >>> labels_of(pd.DataFrame(np.eye(2), columns=[10, 20])), labels_of(np.eye(2))
    (array([10, 20]), None)
    """
    names = column_names(X)
    return None if names is None or all(isinstance(name, str) for name in names) else names


def column_names(X):
    """Give the names of the columns of a frame in memory; None for anything else."""
    names = None if is_stored(X) else getattr(_frame(X), "columns", None)
    return None if names is None else names_array(list(names))


def read(X, columns, sample_weight):
    """Read baskets that are no table: `Baskets`, or parts of them if they are stored.

    >>> len(read([["tea"], ["tea", "milk"]], None, [0.0, 2.0]))     # a basket of weight zero is absent
    1
    """
    columns = [columns] if isinstance(columns, str) else columns
    if columns is not None and len(columns) not in (1, 2):
        raise ValueError(f"columns names a column of lists, or one of baskets and one of items; got {list(columns)}.")
    if isinstance(X, (list, tuple)) and is_path(X) and not any(Path(name).exists() for name in X):
        raise ValueError(
            f"A list of text is read as files, and there is none of them: a basket is a list of items, [{X[0]!r}]."
        )
    if is_path(X) or is_dask(X):
        if sample_weight is not None:
            raise ValueError("Stored baskets take no weights: repeat them, or read them as lists.")
        return BasketFiles(X, columns or [list_column(X)]) if is_path(X) else BasketPartitions(_series(X, columns))
    if columns is not None and len(columns) == 2:
        if sample_weight is not None:
            raise ValueError("Pairs take no weights, for these would be weights of baskets: give lists of items instead.")
        frame = _named(_frame(X), columns)
        return of_pairs(*(frame.get_column(name).to_numpy() for name in columns))
    frame = _frame(X)
    if hasattr(frame, "get_column"):
        name = columns[0] if columns is not None else _lists(frame)
        lists = _named(frame, [name]).get_column(name).to_list()
    else:
        lists = frame.to_list() if hasattr(frame, "to_list") else X
    return weighted(of_lists(lists), sample_weight)


def weighted(baskets, sample_weight):
    """Give weights to baskets; those of weight zero are left out."""
    if sample_weight is None:
        return baskets
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(baskets),):
        raise ValueError(f"Found {len(baskets)} baskets and sample_weight of the shape {weight.shape}: one weight a basket.")
    present = some_present([have_weight(weight, len(weight))])
    weight = _check_sample_weight(weight, np.empty((len(weight), 1)), ensure_non_negative=True)
    return Baskets(baskets.items, baskets.held, weight) if present is None else baskets.take(present, weight)


def _frame(X):
    """See a frame or a series through narwhals; anything else as it is."""
    import narwhals as nw

    frame = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("A lazy frame has no rows yet: give its collect().")
    if frame is X and hasattr(X, "__arrow_c_array__"):
        raise ValueError("Of Arrow, tables and chunked arrays are read: give pa.table(batch), or pa.chunked_array([array]).")
    return frame


def _lists(frame):
    """Name the only column that holds lists or sets, or None."""
    return the_one([name for name in frame.columns if _holds_lists(frame.get_column(name))])


def _holds_lists(series):
    if str(series.dtype).startswith(("List", "Array")):
        return True
    present = series.drop_nulls() if str(series.dtype) == "Object" else ()
    return len(present) > 0 and isinstance(present[0], (list, tuple, set, frozenset, np.ndarray))


def _named(frame, columns):
    for name in columns:
        if name not in getattr(frame, "columns", []):
            raise ValueError(f"There is no column {name!r}; columns= is for frames and Parquet files that have them.")
    return frame


def _series(X, columns):
    """Give the column of lists of a Dask frame, or a series as it is."""
    if columns is not None and len(columns) != 1:
        raise ValueError("Pairs on Dask may be cut between partitions: group them into a column of lists first.")
    series = X if X.ndim == 1 else _named(X, columns)[columns[0]]
    if str(series.dtype).startswith("string"):
        raise ValueError(
            "Dask has turned the lists into text: make the frame under "
            'dask.config.set({"dataframe.convert-string": False}), or read Parquet files by their path.'
        )
    return series
