"""One column of a table as the axis of a picture, with the other columns at their means."""

from typing import Any

import numpy as np

from lemmata.plot.drawing import answers

RESOLUTION = 200  # points of a curve
ROOM = 0.15  # share of the extent of the column by which a curve goes on: doubt grows where no row is


class Column:
    """A column of rows X, by number or name.

    Attributes
    ----------
    number : Its number.
    grid : Values of the column for a curve that goes beyond the rows on either side.
    label : What to write under the axis.

    Examples
    --------
    >>> column = Column(np.array([[0.0, 5.0], [2.0, 7.0]]), ["a", "b"], "a")
    >>> column.rows(np.array([1.0]))
    array([[1., 6.]])
    >>> column.label
    'a (other columns at their means)'
    """

    def __init__(self, X: np.ndarray, names: list[str], feature: int | str) -> None:
        self.number = names.index(feature) if isinstance(feature, str) else int(feature)
        self.mean = X.mean(axis=0)
        low, high = float(X[:, self.number].min()), float(X[:, self.number].max())
        room = ROOM * (high - low) if high > low else 1.0
        self.grid = np.linspace(low - room, high + room, RESOLUTION)
        self.label = names[self.number] + (" (other columns at their means)" if X.shape[1] > 1 else "")

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Return rows with these values of the column."""
        rows = np.tile(self.mean, (len(values), 1))
        rows[:, self.number] = values
        return rows

    def points(self, estimator: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the column and the target of each row, (n, 2), the target as if the other columns were at their means too.

        That is as far as the model can tell: what it missed by stays the same.
        """
        values = X[:, self.number]
        missed = np.asarray(y, dtype=float) - answers(estimator, "predict", X)
        return np.column_stack([values, missed + answers(estimator, "predict", self.rows(values))])
