"""A support vector regression over one column: the function, its tube of half width ε, and the rows that hold it in place."""

from typing import Any, Self

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.plot.band import LINE, SHADE
from lemmata.plot.column import Column
from lemmata.plot.drawing import MAX_ROWS, NEUTRAL, answers, axes, ink, quiet, some_rows


class TubeDisplay:
    """Prediction of a regression with an ε-insensitive loss over one column, its tube, and the rows.

    Rows inside the tube cost nothing. Those that are support vectors have a ring: they lie on the tube or outside of it.

    Parameters
    ----------
    grid : Values of the column.
    mean : Predictions there.
    epsilon : ε.
    points : The column and the target of each row, of shape (rows, 2); None without a target.
    support : Whether each row is a support vector.
    labels : What to call the column and the target.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.svm import SVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.3]
    >>> display = TubeDisplay.from_estimator(SVR(C=10.0, epsilon=0.2, kernel="linear").fit(X, y), X, y)
    >>> display.support
    array([ True, False, False,  True])
    """

    def __init__(
        self,
        *,
        grid: np.ndarray,
        mean: np.ndarray,
        epsilon: float,
        points: np.ndarray | None = None,
        support: np.ndarray | None = None,
        labels: tuple[str, str] = ("x", "y"),
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.mean = mean
        self.epsilon = epsilon
        self.points = points
        self.support = support
        self.labels = labels
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: int | str = 0,
        feature_names: Any = None,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot a fitted `SVR` (or `LinearSVR`, which keeps no support vectors) over one column, the others at their means.

        Each row is shown at the target it would have if its other columns were at their means too, as far as the model can
        tell: what it missed by stays the same.

        Parameters
        ----------
        feature : The column, by number or name.
        feature_names : What to call the columns, in their order.
        """
        X, y, names = some_rows(estimator, X, y, max_rows)
        column = Column(X, names if feature_names is None else [str(n) for n in feature_names], feature)
        vectors = getattr(estimator, "support_vectors_", None)
        display = cls(
            grid=column.grid,
            mean=answers(estimator, "predict", column.rows(column.grid)),
            epsilon=float(estimator.epsilon),
            points=None if y is None else column.points(estimator, X, y),
            support=None if vectors is None else rows_among(X, vectors),
            labels=(column.label, "target" if X.shape[1] == 1 else "target, adjusted"),
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the tube, the function, and the rows."""
        ax = axes(ax, (5.6, 4.6))
        ax.plot(self.grid, self.mean, color=LINE, lw=2, label="prediction")
        low, high = self.mean - self.epsilon, self.mean + self.epsilon
        ax.fill_between(self.grid, low, high, color=LINE, alpha=SHADE, lw=0, label=f"tube: ±{self.epsilon:g}")
        if self.points is not None:
            ax.scatter(*self.points.T, s=14, alpha=0.8, linewidths=0, color=NEUTRAL, zorder=2.5)  # between tube and legend
            if self.support is not None:
                label = f"support vectors: {self.support.sum():,} of {len(self.points):,} rows"
                held = self.points[self.support]
                ax.scatter(*held.T, s=48, facecolors="none", edgecolors=ink(), linewidths=0.9, label=label, zorder=2.6)
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1], title=self.name or "", xlim=(self.grid[0], self.grid[-1]))
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def rows_among(X: np.ndarray, vectors: Any) -> np.ndarray:
    """Tell which rows have the entries of one of some vectors.

    >>> rows_among(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[3.0, 4.0]]))
    array([False,  True])
    """
    vectors = np.asarray(vectors.toarray() if is_sparse(vectors) else vectors, dtype=float)
    known = {row.tobytes() for row in vectors + 0.0}  # + 0.0: minus zero is zero
    return np.array([row.tobytes() in known for row in np.asarray(X, dtype=float) + 0.0])
