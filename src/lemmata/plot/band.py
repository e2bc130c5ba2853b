"""A regression with its doubt: the mean over one column, and the bands that should hold most observations."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import MAX_ROWS, NEUTRAL, answers, axes, quiet, some_rows

LEVELS = (0.5, 0.9)
RESOLUTION = 200  # points of the curve
ROOM = 0.15  # share of the extent of the column by which the curve goes on: doubt grows where no row is
LINE, SHADE = "#2a9d6f", 0.22  # opacity of each band; one inside another is darker


class PredictiveBandDisplay:
    """Mean and predictive bands of a regression over one column, and the rows.

    Parameters
    ----------
    grid : Values of the column.
    mean : Predictions there.
    bands : Mapping from the probability of a band to its ends, of shape (points, 2).
    points : The column and the target of each row, of shape (rows, 2); None without a target.
    shares : Mapping from the probability of a band to the share of rows that their own bands hold; None without a target.
    labels : What to call the column and the target.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import BayesianLinearRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> display = PredictiveBandDisplay.from_estimator(BayesianLinearRegression().fit(X, y), X, y)
    >>> display.shares[0.9]
    1.0
    """

    def __init__(
        self,
        *,
        grid: np.ndarray,
        mean: np.ndarray,
        bands: dict[float, np.ndarray],
        points: np.ndarray | None = None,
        shares: dict[float, float] | None = None,
        labels: tuple[str, str] = ("x", "y"),
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.mean = mean
        self.bands = bands
        self.points = points
        self.shares = shares
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
        levels: tuple[float, ...] = LEVELS,
        feature_names: Any = None,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot a fitted regressor that has `predict_interval` over one column, the others at their means.

        Each row is shown at the target it would have if its other columns were at their means too, as far as the model can
        tell: what it missed by stays the same.

        Parameters
        ----------
        feature : The column, by number or name.
        levels : Probabilities of the bands.
        feature_names : What to call the columns, in their order.
        """
        X, y, names = some_rows(estimator, X, y, max_rows)
        names = names if feature_names is None else [str(n) for n in feature_names]
        j = names.index(feature) if isinstance(feature, str) else int(feature)
        low, high = float(X[:, j].min()), float(X[:, j].max())
        room = ROOM * (high - low) if high > low else 1.0
        grid = np.linspace(low - room, high + room, RESOLUTION)

        def middle(column: np.ndarray) -> np.ndarray:
            rows = np.tile(X.mean(axis=0), (len(column), 1))
            rows[:, j] = column
            return rows

        points, shares = None, None
        if y is not None:
            y = np.asarray(y, dtype=float)
            points = np.column_stack(
                [X[:, j], y - answers(estimator, "predict", X) + answers(estimator, "predict", middle(X[:, j]))]
            )
            own = {level: answers(estimator, "predict_interval", X, level=level) for level in levels}
            shares = {level: float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))) for level, ends in own.items()}
        others = " (other columns at their means)" if X.shape[1] > 1 else ""
        display = cls(
            grid=grid,
            mean=answers(estimator, "predict", middle(grid)),
            bands={level: answers(estimator, "predict_interval", middle(grid), level=level) for level in levels},
            points=points,
            shares=shares,
            labels=(names[j] + others, "target" if X.shape[1] == 1 else "target, adjusted"),
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bands, the widest first, the mean, and the rows."""
        from matplotlib.patches import Patch

        ax = axes(ax, (5.6, 4.6))
        handles = ax.plot(self.grid, self.mean, color=LINE, lw=2, label="mean")
        for depth, level in enumerate(sorted(self.bands, reverse=True), start=1):
            ax.fill_between(self.grid, *self.bands[level].T, color=LINE, alpha=SHADE, lw=0)
            label = f"{level:.0%} band" + (f", holds {self.shares[level]:.0%} of the rows" if self.shares else "")
            handles.append(Patch(color=LINE, alpha=1 - (1 - SHADE) ** depth, lw=0, label=label))
        if self.points is not None:
            ax.scatter(*self.points.T, s=14, alpha=0.8, linewidths=0, color=NEUTRAL, zorder=2.5)  # between bands and legend
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1], title=self.name or "", xlim=(self.grid[0], self.grid[-1]))
        ax.legend(handles=handles, frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
