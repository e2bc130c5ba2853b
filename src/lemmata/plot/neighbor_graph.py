"""Rows and their nearest neighbors, joined by lines."""

from typing import Any, Self

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, quiet, some_rows
from lemmata.plot.plane import choose_plane

MAX_ROWS = 1_000  # more lines than those of so many rows make a cloud


class NeighborGraphDisplay:
    """Lines from rows to their nearest neighbors, on two columns or the two principal directions.

    A row that is in the table itself is not its own neighbor here.

    Parameters
    ----------
    points : Rows on the plane, of shape (rows, 2).
    neighbors : Their neighbors on the plane, of shape (rows, neighbors, 2).
    labels : What to call the directions.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.neighbors import NearestNeighbors
    >>> X = [[0.0, 0.0], [0.0, 1.0], [3.0, 0.0]]
    >>> display = NeighborGraphDisplay.from_estimator(NearestNeighbors(n_neighbors=1).fit(X), X)
    >>> display.neighbors[:, 0]
    array([[0., 1.],
           [0., 0.],
           [0., 0.]])
    """

    def __init__(self, *, points: np.ndarray, neighbors: np.ndarray, labels: tuple[str, str], name: str | None = None) -> None:
        self.points = points
        self.neighbors = neighbors
        self.labels = labels
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, name: str | None = None, max_rows: int = MAX_ROWS
    ) -> Self:
        """Plot the neighbors that a fitted search finds for the rows of X, at most `max_rows` of them; y is not looked at."""
        X, _, names = some_rows(estimator, X, None, max_rows)
        k, table = int(estimator.n_neighbors), estimator.X_
        distance, index = estimator.kneighbors(X, min(k + 1, table.shape[0]))
        own = (distance[:, 0] == 0)[:, None]
        index = np.where(own, index[:, 1:], index[:, :-1])
        found = table[index.ravel()]
        found = np.asarray(found.toarray() if is_sparse(found) else found, dtype=float)
        plane = choose_plane(None, np.asarray(X, dtype=float), names)
        name = f"{type(estimator).__name__}: {k} nearest" if name is None else name
        first = plane.names[0].split("\n")[0]  # there are no regions here
        display = cls(
            points=plane.points(X),
            neighbors=plane.points(found).reshape(*index.shape, 2),
            labels=(first, plane.names[1]),
            name=name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the lines and the rows."""
        from matplotlib.collections import LineCollection

        ax = axes(ax, (5.6, 4.6))
        starts = np.broadcast_to(self.points[:, None], self.neighbors.shape)
        ax.add_collection(LineCollection(np.stack([starts, self.neighbors], axis=2).reshape(-1, 2, 2), colors=NEUTRAL, lw=0.8))
        ax.scatter(*self.points.T, s=14, linewidths=0, color=CLASS_COLORS[0], zorder=2.5)  # above the lines
        ax.autoscale_view()
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1], title=self.name or "")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
