"""Categorical columns: text and named columns become codes 0, 1, … that trees split into sets of categories.

A category is a code of its column's sorted categories; what is missing, or was not seen in the fit, is NaN, and goes where a
node sends rows that have no value. Numbers stay what they are.
"""

import numpy as np
from sklearn.utils.validation import _check_feature_names

from lemmata.core.data import is_sparse, is_stored


class CategoricalColumns:
    """Mixin of trees and what is made of them, which take holes and text: `categorical_features`, and `_encoded`."""

    _categories = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.input_tags.string = True
        return tags

    @property
    def categories_(self):
        """Categories of each categorical column in the order of their codes, None for a column of numbers."""
        return [None] * self.n_features_in_ if self._categories is None else self._categories

    @property
    def is_categorical_(self):
        """Mark the categorical columns; None if there are none."""
        return None if self._categories is None else np.array([c is not None for c in self._categories])

    def _encoded(self, X, *, reset):
        """Return the table with codes in place of categories; a reset learns which columns have categories, and which."""
        asked = self.categorical_features
        if reset:
            self._categories = None
        if is_stored(X) or is_sparse(X):
            if reset and not (asked is None or isinstance(asked, str)):
                raise ValueError(
                    "categorical_features names columns of a stored or sparse table, whose categories cannot be learned: "
                    "read the rows into a frame or an array first."
                )
            return X
        if reset and asked is None:
            return X
        frame = _frame(X)
        if frame is None:
            X = X if isinstance(X, np.ndarray) else _array(X)
            if X.ndim != 2:
                return X
            columns = list(X.T)
            types = [_has_text(column) for column in columns] if reset else None
            names = None
        else:
            if not reset:
                _check_feature_names(self, X, reset=False)
            columns = [column.to_numpy() for column in frame.iter_columns()]
            types = [_is_text(column) for column in frame.iter_columns()] if reset else None
            names = [str(name) for name in frame.columns]
        if reset:
            chosen = np.array(types, dtype=bool) if isinstance(asked, str) else _chosen(asked, len(columns), names)
            if not chosen.any():
                return X
            self._categories = [_distinct(c) if k else None for c, k in zip(columns, chosen, strict=True)]
        elif self._categories is None or len(columns) != len(self._categories):
            return X
        coded = {j: _codes(columns[j], known) for j, known in enumerate(self._categories) if known is not None}
        return _with_arrays(X, coded) if frame is None else _with_series(frame, coded)


def _frame(X):
    """View X as a narwhals frame, if it is one."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _array(X):
    """Make an array of lists, in which text leaves numbers what they are."""
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind == "U" else array


def _has_text(column):
    """Tell whether a column of an array holds text."""
    return column.dtype.kind == "U" or (column.dtype.kind == "O" and any(isinstance(v, str) for v in column))


def _is_text(column):
    """Tell whether a column of a frame holds text or categories."""
    import narwhals as nw

    if column.dtype == nw.Object:
        return any(isinstance(value, str) for value in column.to_list())
    return column.dtype in (nw.String, nw.Categorical, nw.Enum)


def _chosen(asked, n_columns, names):
    """Mark the columns that were asked for by mask, numbers or names."""
    asked = np.asarray(asked)
    if asked.ndim != 1:
        raise ValueError(f"categorical_features must list columns or mark them, got an array with {asked.ndim} axes.")
    if asked.dtype.kind == "b":
        if len(asked) != n_columns:
            raise ValueError(f"categorical_features marks {len(asked)} columns, and X has {n_columns}.")
        return asked.astype(bool)
    if asked.dtype.kind in "OU":
        strange = [name for name in asked if names is None or name not in names]
        if strange:
            known = "X has no names of columns" if names is None else f"the columns of X are {names}"
            raise ValueError(f"categorical_features names {strange[0]!r}, and {known}.")
        return np.isin(names, asked)
    if len(asked) and (asked.dtype.kind not in "iu" or asked.min() < 0 or asked.max() >= n_columns):
        raise ValueError(f"categorical_features must hold numbers of columns from 0 to {n_columns - 1}, got {asked.tolist()}.")
    mask = np.zeros(n_columns, dtype=bool)
    mask[asked.astype(int)] = True
    return mask


def _absent(values):
    """Mark the missing values of a column."""
    if values.dtype.kind == "O":
        return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in values], dtype=bool)  # NA is of pandas
    return values != values


def _distinct(values):
    """Return the categories of a column, sorted; text if they are of several kinds."""
    present = values[~_absent(values)]
    if present.dtype.kind == "O":
        kinds = {isinstance(v, str) for v in present}
        present = np.array([str(v) for v in present]) if True in kinds else np.array(present.tolist())
    return np.unique(present)


def _codes(values, known):
    """Look values up among the sorted categories: NaN for what is missing or unknown."""
    codes = np.full(len(values), np.nan)
    present = np.flatnonzero(~_absent(values))
    looked = values[present]
    if looked.dtype.kind == "O" or known.dtype.kind == "U":
        looked = np.array([str(v) for v in looked]) if known.dtype.kind == "U" else np.array(looked.tolist())
    if len(known) == 0 or len(looked) == 0:
        return codes
    if (looked.dtype.kind == "U") != (known.dtype.kind == "U"):
        return codes
    place = np.minimum(np.searchsorted(known, looked), len(known) - 1)
    found = known[place] == looked
    codes[present[found]] = place[found]
    return codes


def _with_arrays(X, coded):
    """Replace columns of an array."""
    numbers = [coded[j] if j in coded else X[:, j] for j in range(X.shape[1])]
    return np.column_stack([np.asarray(column, dtype=float) for column in numbers])


def _with_series(frame, coded):
    """Replace columns of a frame."""
    import narwhals as nw

    names = frame.columns
    made = [nw.new_series(names[j], values, nw.Float64(), backend=frame.implementation) for j, values in coded.items()]
    if frame.implementation.is_pandas():  # an index of its own would not be aligned
        native = frame.to_native()
        return native.assign(**{names[j]: values for j, values in coded.items()})
    return frame.with_columns(*made).to_native()
