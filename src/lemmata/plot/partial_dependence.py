"""What a model makes of one column, or of two, on average over the others."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from lemmata.ensemble import partial_dependence
from lemmata.ensemble.importance import Table, response
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, class_colors, ink, quiet, sample_rows

LINE = CLASS_COLORS[0]
ROWS = 1_000  # rows to average over, and of which individual curves are made
CURVES = 60  # individual curves that can be told apart
RESOLUTION = (80, 24)  # values of one column, and of each of two
TAILS = (0.05, 0.95)
DECILES = np.linspace(0.1, 0.9, 9)


class PartialDependenceDisplay:
    """The mean answer of a model when a column is set to a value in all rows, over that value; or over two columns.

    The mean over rows hides what differs between them: individual curves show it, and where they cross, the column does not act
    alone. Where no row is, a curve is what the model makes up; ticks at the foot are the deciles of the column.

    Parameters
    ----------
    grid : Values of the column, or of two; text for categories.
    average : (classes, *grid) mean answers; one "class" for regressions and for two classes.
    individual : (rows, grid), answers for some rows; or None.
    deciles : Deciles of each column; None where it has categories.
    feature_names : Names of the one or two columns.
    class_names : Names of the classes shown, or None.
    answer : What the model answers with.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import LinearRegression
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 2.0, 6.0, 7.0]
    >>> display = PartialDependenceDisplay.from_estimator(LinearRegression().fit(X, y), X, features=1)
    >>> display.average.round(6).tolist()
    [[3.0, 4.0, 5.0]]
    """

    def __init__(
        self,
        *,
        grid: Sequence[np.ndarray],
        average: np.ndarray,
        individual: np.ndarray | None = None,
        deciles: Sequence[np.ndarray | None] = (None, None),
        feature_names: Sequence[str] = ("x0", "x1"),
        class_names: Sequence[str] | None = None,
        answer: str = "prediction",
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.average = average
        self.individual = individual
        self.deciles = deciles
        self.feature_names = feature_names
        self.class_names = class_names
        self.answer = answer
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = 0,
        target: Any = None,
        individual: bool = False,
        max_rows: int = ROWS,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot what a fitted model makes of a column of X, or of two; y is not looked at.

        Parameters
        ----------
        features : The column by number or name, or two of them.
        target : Class whose probability is shown; default the second of two, and of more all in one plot.
        individual : Whether to draw a curve for each of some rows, too.
        max_rows : Rows to average over, at most.
        feature_names : What to call the columns, in their order.
        """
        X = _safe_indexing(np.asarray(X) if isinstance(X, list) else X, sample_rows(_num_samples(X), max_rows))
        table, names = Table(X), [] if feature_names is None else [str(n) for n in feature_names]
        asked = [features] if isinstance(features, str) or np.ndim(features) == 0 else list(features)
        if not 1 <= len(asked) <= 2:
            raise ValueError(f"features must be one column or two, got {len(asked)}.")
        columns = [table.number(names.index(f) if f in names else f) for f in asked]
        grid = [_grid(table.column(j), RESOLUTION[len(columns) - 1]) for j in columns]
        if len(columns) == 1:
            average = partial_dependence(estimator, X, columns[0], grid[0]).average
        else:
            slices = [table.with_column(columns[1], np.full(table.n_rows, value)) for value in grid[1]]
            average = np.stack([partial_dependence(estimator, rows, columns[0], grid[0]).average for rows in slices], axis=-1)
        labels, each = [str(c) for c in getattr(estimator, "classes_", ())], None
        average, labels = _of_class(average, labels, target, len(columns))
        if individual and len(columns) == 1 and len(average) == 1:
            few = table.taken(sample_rows(table.n_rows, CURVES))
            each = _individual(estimator, few, columns[0], grid[0], labels)
        own = names or (
            [f"x{j}" for j in range(table.n_columns)] if table.frame is None else [str(c) for c in table.frame.columns]
        )
        return cls(
            grid=grid,
            average=average,
            individual=each,
            deciles=[_deciles(table.column(j)) for j in columns],
            feature_names=[own[j] for j in columns],
            class_names=labels or None,
            answer=f"probability of {labels[0]}" if len(labels) == 1 else "probability" if labels else "prediction",
            name=type(estimator).__name__ if name is None else name,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves, or the surface as lines of equal height."""
        ax = axes(ax, (5.6, 4.2))
        if len(self.grid) == 1:
            self._curves(ax)
        else:
            self._surface(ax)
        ax.set_title(self.name or "")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curves(self, ax: Any) -> None:
        at, labels = _positions(self.grid[0])
        if self.individual is not None:
            shown = self.individual[sample_rows(len(self.individual), CURVES)]
            ax.plot(at, shown.T, color=NEUTRAL, lw=0.7, alpha=0.5, label="_rows")
        many = len(self.average) > 1
        colors = class_colors(len(self.average)) if many else [LINE]
        for k, (values, color) in enumerate(zip(self.average, colors, strict=True)):
            label = self.class_names[k] if many and self.class_names is not None else None
            ax.plot(at, values, "o-" if labels else "-", color=color, lw=2.2, ms=6, label=label)
        if labels:
            ax.set_xticks(at, labels)
            ax.margins(x=0.08)
        elif self.deciles[0] is not None:
            foot = ax.get_xaxis_transform()
            ax.vlines(self.deciles[0], 0, 0.03, transform=foot, color=ink(), lw=0.9)
            ax.set_xlim(at[0], at[-1])
        if many:
            ax.legend(frameon=False, fontsize="small")
        ax.set(xlabel=self.feature_names[0], ylabel=self.answer)

    def _surface(self, ax: Any) -> None:
        (first, names), (second, others) = _positions(self.grid[0]), _positions(self.grid[1])
        heights = self.average[0].T
        if names or others:
            drawn = ax.pcolormesh(first, second, heights, cmap="viridis", shading="nearest")
        else:
            drawn = ax.contourf(first, second, heights, levels=12, cmap="viridis")
            ax.contour(first, second, heights, levels=drawn.levels, colors="white", linewidths=0.5, alpha=0.6)
            for values, place in ((self.deciles[0], ax.get_xaxis_transform()), (self.deciles[1], ax.get_yaxis_transform())):
                lines = ax.vlines if values is self.deciles[0] else ax.hlines
                if values is not None:
                    lines(values, 0, 0.03, transform=place, color="white", lw=0.9)
        if names:
            ax.set_xticks(first, names)
        if others:
            ax.set_yticks(second, others)
        ax.figure.colorbar(drawn, ax=ax, label=self.answer)
        ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])


def _positions(values: np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Give where to draw values on an axis; categories stand side by side and have names."""
    values = np.asarray(values)
    if values.dtype.kind in "fiu":
        return values.astype(float), None
    return np.arange(len(values)), [str(v) for v in values]


def _grid(values: np.ndarray, most: int) -> np.ndarray:
    """Choose where to ask: at the values that there are, or evenly between the 5 % and 95 % quantiles if these are many."""
    kept = np.array([v for v in values.tolist() if v is not None and v == v])
    if not len(kept):
        raise ValueError("A column without any value has no partial dependence.")
    distinct = np.unique(kept)
    if distinct.dtype.kind not in "fiu" or len(distinct) <= most:
        return distinct
    return np.linspace(*np.quantile(kept, TAILS), most)


def _of_class(average: np.ndarray, labels: list[str], target: Any, n_columns: int) -> tuple[np.ndarray, list[str]]:
    """Choose the class whose probability is shown, or all of them."""
    if not labels:
        return average, []
    if target is not None and str(target) not in labels:
        raise ValueError(f"There is no class {target!r}: the classes are {labels}.")
    if len(labels) == 2:  # there is the probability of the second class alone
        first = target is not None and str(target) == labels[0]
        return (1 - average, labels[:1]) if first else (average, labels[1:])
    if target is not None:
        k = labels.index(str(target))
        return average[[k]], [labels[k]]
    if n_columns == 2:
        raise ValueError(f"A surface shows one probability: of three or more classes, name one as target, out of {labels}.")
    return average, labels


def _individual(estimator: Any, table: Table, column: int, grid: np.ndarray, labels: list[str]) -> np.ndarray:
    """Ask about each row with the column set to each value, (rows, grid)."""
    found = np.stack([response(estimator, table.with_column(column, np.full(table.n_rows, value))) for value in grid], axis=-1)
    if not labels:
        return found[:, 0]
    known = [str(c) for c in estimator.classes_]
    if len(known) == 2:
        return found[:, 0] if labels == known[1:] else 1 - found[:, 0]
    return found[:, known.index(labels[0])]


def _deciles(values: np.ndarray) -> np.ndarray | None:
    if values.dtype.kind not in "fiu":
        return None
    return np.nanquantile(values.astype(float), DECILES)
