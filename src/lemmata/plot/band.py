"""A regression with its doubt: the mean over one column, and the bands that should hold most observations."""

from typing import Any, Self

import numpy as np

from lemmata.plot.column import Column
from lemmata.plot.drawing import MAX_ROWS, NEUTRAL, answers, axes, quiet, some_rows

LEVELS = (0.5, 0.9)
LINE, SHADE = "#2a9d6f", 0.22  # opacity of each band; one inside another is darker
SAMPLES = 5  # functions that can be followed with the eye


class PredictiveBandDisplay:
    """Mean and predictive bands of a regression over one column, and the rows; of a Gaussian process, also some functions.

    Parameters
    ----------
    grid : Values of the column.
    mean : Predictions there.
    bands : Mapping from the probability of a band to its ends, of shape (points, 2).
    points : The column and the target of each row, of shape (rows, 2); None without a target.
    shares : Mapping from the probability of a band to the share of rows that their own bands hold; None without a target.
    samples : Functions from the posterior at the values of the column, of shape (functions, points); None if there are none.
    of : What the bands are of: "y", or the function "f".
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
        samples: np.ndarray | None = None,
        of: str = "y",
        labels: tuple[str, str] = ("x", "y"),
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.mean = mean
        self.bands = bands
        self.points = points
        self.shares = shares
        self.samples = samples
        self.of = of
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
        n_samples: int = SAMPLES,
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
        n_samples : How many functions to draw from the posterior of a Gaussian process, the same ones every time.
        """
        X, y, names = some_rows(estimator, X, y, max_rows)
        column = Column(X, names if feature_names is None else [str(n) for n in feature_names], feature)
        name = type(estimator).__name__ if name is None else name
        samples, options = None, {}
        if hasattr(estimator, "log_marginal_likelihood"):
            # Noise that is known row by row is not known between the rows; the function is.
            options = {"of": "f" if np.ndim(getattr(estimator, "noise", 0.0)) else "y"}
            samples = answers(estimator, "sample", column.rows(column.grid), n=n_samples, random_state=0) if n_samples else None
        return cls(**bands_over(estimator, column, X, y, levels, **options), **options, samples=samples, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bands, the widest first, the mean, and the rows."""
        from matplotlib.patches import Patch

        ax = axes(ax, (5.6, 4.6))
        handles = ax.plot(self.grid, self.mean, color=LINE, lw=2, label="mean")
        if self.samples is not None:
            drawn = ax.plot(self.grid, self.samples.T, color=LINE, lw=0.8, alpha=0.8, label="functions from the posterior")
            handles.append(drawn[0])
        for depth, level in enumerate(sorted(self.bands, reverse=True), start=1):
            ax.fill_between(self.grid, *self.bands[level].T, color=LINE, alpha=SHADE, lw=0)
            label = f"{level:.0%} band" + (" of f" if self.of == "f" else "")
            if self.shares and self.of == "y":  # a band of f need not hold rows with noise
                label += f", holds {self.shares[level]:.0%} of the rows"
            handles.append(Patch(color=LINE, alpha=1 - (1 - SHADE) ** depth, lw=0, label=label))
        if self.points is not None:
            ax.scatter(*self.points.T, s=14, alpha=0.8, linewidths=0, color=NEUTRAL, zorder=2.5)  # between bands and legend
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1], title=self.name or "", xlim=(self.grid[0], self.grid[-1]))
        ax.legend(handles=handles, frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def bands_over(
    estimator: Any, column: Column, X: np.ndarray, y: Any, levels: tuple[float, ...], **options: Any
) -> dict[str, Any]:
    """Return what a band display is made of; `options` are those of `predict_interval`."""
    points, shares = None, None
    if y is not None:
        y = np.asarray(y, dtype=float)
        points = column.points(estimator, X, y)
        own = {level: answers(estimator, "predict_interval", X, level=level, **options) for level in levels}
        shares = {level: float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))) for level, ends in own.items()}
    rows = column.rows(column.grid)
    return {
        "grid": column.grid,
        "mean": answers(estimator, "predict", rows),
        "bands": {level: answers(estimator, "predict_interval", rows, level=level, **options) for level in levels},
        "points": points,
        "shares": shares,
        "labels": (column.label, "target" if X.shape[1] == 1 else "target, adjusted"),
    }
