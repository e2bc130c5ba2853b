"""What counts as a table, and how it becomes a matrix of numbers.

Tables in memory are NumPy arrays, SciPy sparse matrices and frames (pandas, Polars, PyArrow; through narwhals). Stored
tables are Parquet files, Dask collections and iterators of blocks; they are read block by block, and only when needed.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WIDE = 2048  # columns beyond which no kernel makes a sparse block dense, or a triangle of the columns


def is_sparse(X: Any) -> bool:
    """Tell whether X is a SciPy sparse matrix or array."""
    from scipy.sparse import issparse

    return bool(issparse(X))


def csr_rows(X: Any, rows: slice) -> Any:
    """Return consecutive rows of a CSR matrix as views of its arrays, which slicing would copy.

    >>> from scipy.sparse import csr_array
    >>> csr_rows(csr_array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]), slice(1, 3)).toarray()
    array([[0., 2.],
           [3., 0.]])
    """
    start, stop, _ = rows.indices(X.shape[0])
    first, last = X.indptr[start], X.indptr[stop]
    parts = (X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first)
    return type(X)(parts, shape=(stop - start, X.shape[1]), copy=False)


def is_path(X: Any) -> bool:
    """Tell whether X names stored files: a path, or a non-empty list of paths."""
    if isinstance(X, (list, tuple)):
        return bool(X) and all(isinstance(p, (str, os.PathLike)) for p in X)
    return isinstance(X, (str, os.PathLike))


def is_dask(X: Any) -> bool:
    """Tell whether X is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def is_stored(X: Any) -> bool:
    """Tell whether the rows of X live outside this process's arrays: Parquet, Dask, or an iterator of blocks."""
    return is_path(X) or is_dask(X) or (callable(X) and not hasattr(X, "__array__"))


def as_matrix(X: Any, columns: Sequence[str] | None = None) -> tuple[Any, list[str] | None]:
    """Return an array or CSR matrix with two axes, and the names of its columns if it has them.

    >>> as_matrix([[1, 2], [3, 4]])
    (array([[1, 2],
           [3, 4]]), None)
    """
    names: list[str] | None = None
    if is_sparse(X):
        X = X.tocsr() if X.ndim == 2 else X
    elif not isinstance(X, np.ndarray):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            frame = frame.select(columns) if columns is not None else frame
            names = [str(c) for c in frame.columns]
            X = numeric(frame)
        else:
            X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected a table with rows and columns, got an array with {X.ndim} axes; use X.reshape(-1, 1) "
            "for a single column."
        )
    if X.dtype.kind not in "fiub":
        X = _floats(X)
    return X, names


def is_single(frame: Any) -> bool:
    """Tell whether all columns of a narwhals frame are in single precision."""
    return all(str(kind) == "Float32" for kind in frame.schema.values())


def is_single_frame(X: Any) -> bool:
    """Tell whether a frame is in single precision, which scikit-learn sees of arrays and of pandas only.

    >>> import pyarrow
    >>> is_single_frame(pyarrow.table({"a": np.zeros(2, np.float32)})), is_single_frame(pyarrow.table({"a": np.zeros(2)}))
    (True, False)
    """
    if not hasattr(X, "columns"):
        return False
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return isinstance(frame, nw.DataFrame) and is_single(frame)


def numeric(frame: Any) -> Array:
    """Turn a narwhals frame into numbers, missing entries into NaN; a column that cannot be says its name."""
    import narwhals as nw

    wanted = np.float32 if is_single(frame) else np.float64
    out = np.empty(frame.shape, dtype=wanted)
    for j, column in enumerate(frame.iter_columns()):
        try:
            if not (column.dtype.is_numeric() or column.dtype in (nw.Boolean, nw.Object)):
                raise TypeError  # dates and digits in text would pass for numbers
            numbers = column.cast(nw.Float64) if column.dtype == nw.Boolean else column
            out[:, j] = numbers.to_numpy()  # None and NA become NaN
        except (TypeError, ValueError):
            raise ValueError(
                f"Column {str(column.name)!r} holds {column.dtype}, not numbers; encode it or leave it out."
            ) from None
    return out


def _floats(X: Array) -> Array:
    try:
        if X.dtype.kind in "cmM":  # complex numbers, durations, dates: NumPy would make something of them
            raise TypeError
        return X.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"Expected numbers, got an array of {X.dtype}; encode text and objects as numbers first.") from None


def one_each(X: Any, aligned: Sequence[Any]) -> None:
    """Raise unless every aligned array has one entry for each row of X."""
    for a in aligned:
        if a is not None and len(a) != X.shape[0]:
            raise ValueError(f"Found {X.shape[0]} rows and {len(a)} aligned values; there must be one for each row.")


def have_weight(weight: Any, n_rows: int) -> Array:
    """Tell for each row of a block whether it is there: zero means absent. A negative weight is refused."""
    if weight is None:
        return np.ones(n_rows, dtype=bool)
    if ((weight < 0) & (weight > -np.inf)).any():
        raise ValueError("Negative values in sample_weight: a weight means repetition and is at least 0.")
    return np.asarray(weight != 0)  # NaN and infinity are refused elsewhere, by the number of their row


def some_present(masks: Sequence[Array]) -> Array | None:
    """Join what `have_weight` says of all blocks, None if every row is there; raise if none is."""
    present = np.concatenate([np.ones(0, dtype=bool), *masks])
    if len(present) and not present.any():
        raise ValueError("Every sample weight is zero: there is no row to fit.")
    return None if present.all() else present


def finite_rows(X: Any, number: Callable[[int], int], allow_nan: bool, name: str = "X") -> None:
    """Raise for the first row of a block with NaN (unless allowed) or infinity; `number` gives its number in the table."""
    values = X.data if is_sparse(X) else X
    if not allow_nan:
        with np.errstate(over="ignore", invalid="ignore"):  # the sum of finite numbers can overflow
            if np.isfinite(values.sum()):  # but a NaN or infinity never hides in it
                return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    row = (
        int(np.searchsorted(X.indptr, np.flatnonzero(bad)[0], side="right") - 1)
        if is_sparse(X)
        else int(np.argwhere(bad)[0][0])
    )
    value = values[bad][0]
    kind = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(f"Input {name} contains {kind} in row {number(row)}; clean or impute it first.")
