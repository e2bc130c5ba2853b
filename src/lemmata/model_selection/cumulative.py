"""Cumulative predictions: what the models of all folds say of the rows that they did not see, in the order of the table."""

import numpy as np

from lemmata.model_selection.splits import times_held_out


def joined(parts, splits, n, labels=False):
    """Put the predictions of all folds in the order of n rows; those of several repeats are averaged, or vote for a label.

    Examples
    --------
    >>> splits = [(None, np.array([2, 0])), (None, np.array([0]))]
    >>> joined([np.array([1.0, 2.0]), np.array([4.0])], splits, 3)
    array([ 3., nan,  1.])
    >>> joined([np.array(["b", "b"]), np.array(["a"])], splits, 3, labels=True)
    array(['a', None, 'b'], dtype=object)
    """
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"The folds' predictions of a row have different shapes, {sorted(shapes)}: they cannot be put together."
        )
    values, rows = np.concatenate(parts), np.concatenate([test for _, test in splits])
    times = times_held_out(splits, n)
    number = values.dtype.kind in "fiub"
    if times.max() > 1 and labels:
        values, rows = _most_frequent(values, rows)
    elif times.max() > 1:
        total = np.zeros((n, *values.shape[1:]))
        np.add.at(total, rows, values)
        rows = np.flatnonzero(times)
        values = (total[rows].T / times[rows]).T.astype(values.dtype if values.dtype.kind == "f" else float)
    if not times.all():  # a whole number has no NaN
        kind = values.dtype if values.dtype.kind in "fO" else np.dtype(float) if number else np.dtype(object)
    else:
        kind = values.dtype
    found = np.full((n, *values.shape[1:]), None if kind.kind == "O" else np.nan if kind.kind == "f" else 0, dtype=kind)
    found[rows] = values
    return found


def _most_frequent(values, rows):
    """Return the most frequent label of each row, the first among equals, and the rows."""
    if values.ndim > 1:
        columns = [_most_frequent(values[:, j], rows) for j in range(values.shape[1])]
        return np.stack([column for column, _ in columns], axis=1), columns[0][1]
    classes, places = np.unique(values, return_inverse=True)
    numbers, where = np.unique(rows, return_inverse=True)
    votes = np.zeros((len(numbers), len(classes)), dtype=np.int64)
    np.add.at(votes, (where, places), 1)
    return classes[votes.argmax(axis=1)], numbers
