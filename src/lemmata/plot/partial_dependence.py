"""What a model makes of one column, or of two, on average over the others."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from lemmata.ensemble import partial_dependence
from lemmata.ensemble.importance import Table, response
from lemmata.plot.drawing import CLASS_COLORS, CLASS_MARKS, NEUTRAL, axes, class_colors, quiet, sample_rows

LINE = CLASS_COLORS[0]
ROWS = 1_000  # rows to average over, and of which individual curves are made
CURVES = 60  # individual curves that can be told apart
RESOLUTION = (80, 24)  # values of one column, and of each of two
TAILS = (0.05, 0.95)
DECILES = np.linspace(0.1, 0.9, 9)
PANEL = (5.6, 4.2)  # inches
SMALLER = 0.8  # of several panels each
ACROSS = 3  # panels in a row
ASIDE = 0.18  # by how much dots of a category go to either side, of the room between two


class PartialDependenceDisplay:
    """The mean answer of a model when a column is set to a value in all rows, over that value; or over two columns.

    The mean over rows hides what differs between them: individual curves show it, and where they cross, the column does not act
    alone. Where no row is, a curve is what the model makes up; triangles at the foot are the deciles of the column. Categories
    have no order: each has a dot of its own.

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
    others : Displays that are drawn beside this one, a panel for each.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.
    axes_ : Axes of all panels of the last plot, this one's first.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import LinearRegression
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 2.0, 6.0, 7.0]
    >>> model = LinearRegression().fit(X, y)
    >>> PartialDependenceDisplay.from_estimator(model, X, 1).average.round(6).tolist()
    [[3.0, 4.0, 5.0]]
    >>> display = PartialDependenceDisplay.from_estimator(model, X, [0, 1, (0, 1)])
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['x0', 'x1', 'x0']
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
        others: Sequence[Self] = (),
    ) -> None:
        self.grid = grid
        self.average = average
        self.individual = individual
        self.deciles = deciles
        self.feature_names = feature_names
        self.class_names = class_names
        self.answer = answer
        self.name = name
        self.others = others

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Any = 0,
        *,
        target: Any = None,
        individual: bool = False,
        max_rows: int = ROWS,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot what a fitted model makes of a column of X, or of several.

        Parameters
        ----------
        features : A column by number or name; a tuple of two for a surface over both; a list of these for a panel each.
        target : Class whose probability is shown; default the second of two, and of more all in one plot.
        individual : Whether to draw a curve for each of some rows, too.
        max_rows : Rows to average over, at most.
        feature_names : What to call the columns, in their order.
        ax : Axes; those of several panels, or one whose place they share.

        Returns
        -------
        display : That of the first entry of a list, with those of the others in `others`.
        """
        X = _safe_indexing(np.asarray(X) if isinstance(X, list) else X, sample_rows(_num_samples(X), max_rows))
        table, names = Table(X), [] if feature_names is None else [str(n) for n in feature_names]
        own = names or (
            [f"x{j}" for j in range(table.n_columns)] if table.frame is None else [str(c) for c in table.frame.columns]
        )
        labels = [str(c) for c in getattr(estimator, "classes_", ())]
        panels = []
        for columns in _asked(features, table, names):
            categories = [_has_categories(estimator, table, j) for j in columns]
            grid = [_grid(table.column(j), RESOLUTION[len(columns) - 1], c) for j, c in zip(columns, categories, strict=True)]
            average, shown = _of_class(_average(estimator, table, columns, grid), labels, target, len(columns))
            each = None
            if individual and len(columns) == 1 and len(average) == 1:
                few = table.taken(sample_rows(table.n_rows, CURVES))
                each = _individual(estimator, few, columns[0], grid[0], shown)
            panels.append(
                cls(
                    grid=[_as_text(values) if c else values for values, c in zip(grid, categories, strict=True)],
                    average=average,
                    individual=each,
                    deciles=[None if c else _deciles(table.column(j)) for j, c in zip(columns, categories, strict=True)],
                    feature_names=[own[j] for j in columns],
                    class_names=shown or None,
                    answer=f"probability of {shown[0]}" if len(shown) == 1 else "probability" if shown else "prediction",
                    name=(type(estimator).__name__ if name is None else name) if not panels else "",  # once for all
                )
            )
        panels[0].others = panels[1:]
        return panels[0].plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves, or the surface as lines of equal height; and the other panels, if there are any."""
        if self.others:
            places = _panels(ax, 1 + len(self.others))
            for panel, place in zip(self.others, places[1:], strict=True):
                panel.plot(place)
        else:
            places = [axes(ax, PANEL)]
        ax = places[0]
        if len(self.grid) == 1:
            self._curves(ax)
        else:
            self._surface(ax)
        ax.set_title(self.name or "")
        quiet(ax)
        self.ax_, self.axes_, self.figure_ = ax, np.array(places, dtype=object), ax.figure
        return self

    def _curves(self, ax: Any) -> None:
        at, labels = _positions(self.grid[0])
        many = len(self.average) > 1
        if self.individual is not None:
            self._each_row(ax, at, joined=labels is None)
        colors = class_colors(len(self.average)) if many else [LINE]
        aside = np.linspace(-1, 1, len(colors)) * ASIDE if labels and many else np.zeros(len(colors))
        for k, (values, color) in enumerate(zip(self.average, colors, strict=True)):
            label = self.class_names[k] if many and self.class_names is not None else None
            mark = {"ls": "", "marker": CLASS_MARKS[k % len(CLASS_MARKS)], "ms": 9} if labels else {"lw": 2.2}
            ax.plot(at + aside[k], values, color=color, label=label, **mark)
        if labels:
            ax.set_xticks(at, labels)
            ax.set_xlim(at[0] - 0.5, at[-1] + 0.5)  # each category has the same room
            ax.grid(axis="y", color=NEUTRAL, alpha=0.25, lw=0.8)
        elif self.deciles[0] is not None:
            _mark_deciles(ax, self.deciles[0], "x")
            ax.set_xlim(at[0], at[-1])
        if ax.get_legend_handles_labels()[1]:
            ax.legend(frameon=False, fontsize="small")
        ax.set(xlabel=self.feature_names[0], ylabel=self.answer)

    def _each_row(self, ax: Any, at: np.ndarray, *, joined: bool) -> None:
        """Draw what the model makes of single rows: curves, or dots beside each other where there are categories."""
        shown = np.asarray(self.individual)[sample_rows(len(np.asarray(self.individual)), CURVES)]
        if joined:
            ax.plot(at, shown.T, color=NEUTRAL, lw=0.7, alpha=0.5, label="_rows")
            return
        spread = np.linspace(-1, 1, len(shown)) * ASIDE
        ax.plot((at + spread[:, None]).ravel(), shown.ravel(), ".", color=NEUTRAL, ms=4, alpha=0.5, label="_rows")

    def _surface(self, ax: Any) -> None:
        (first, names), (second, others) = _positions(self.grid[0]), _positions(self.grid[1])
        heights = self.average[0].T
        if names or others:
            drawn = ax.pcolormesh(first, second, heights, cmap="viridis", shading="nearest")
        else:
            drawn = ax.contourf(first, second, heights, levels=12, cmap="viridis")
            ax.contour(first, second, heights, levels=drawn.levels, colors="white", linewidths=0.5, alpha=0.6)
            for values, side in zip(self.deciles, "xy", strict=True):
                if values is not None:
                    _mark_deciles(ax, values, side)
        if names:
            ax.set_xticks(first, names)
        if others:
            ax.set_yticks(second, others)
        ax.figure.colorbar(drawn, ax=ax, label=self.answer)
        ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])


def _panels(ax: Any, n: int) -> list[Any]:
    """Give n axes: the ones given, parts of the one given, or those of a new figure, three in a row."""
    if np.ndim(ax):
        given = list(np.ravel(ax))
        if len(given) != n:
            raise ValueError(f"ax must be {n} axes, one for each panel, or a single one to share; got {len(given)}.")
        return given
    across = min(n, ACROSS)
    down = -(-n // across)
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(across * PANEL[0] * SMALLER, down * PANEL[1] * SMALLER), layout="constrained")
        places = figure.add_gridspec(down, across)
    else:
        figure, spot = ax.figure, ax.get_subplotspec()
        if spot is None:
            raise ValueError(f"These axes have no place in a grid that {n} panels could share: give as many axes.")
        places = spot.subgridspec(down, across)
        ax.set_axis_off()
    return [figure.add_subplot(places[k // across, k % across]) for k in range(n)]


def _mark_deciles(ax: Any, deciles: np.ndarray, side: str) -> None:
    """Put triangles at the deciles of the column of an axis; lines there would be taken for ticks."""
    foot = np.full(len(deciles), 0.022)  # share of the other side, so that they stand on the axis
    at = (deciles, foot) if side == "x" else (foot, deciles)
    place = ax.get_xaxis_transform() if side == "x" else ax.get_yaxis_transform()
    style = {"ls": "", "ms": 5, "mfc": "0.35", "mec": "white", "mew": 0.6, "zorder": 3, "clip_on": False}
    label = "deciles" if side == "x" else None
    ax.plot(*at, marker="^" if side == "x" else ">", transform=place, scalex=False, scaley=False, label=label, **style)


def _asked(features: Any, table: Table, names: list[str]) -> list[list[int]]:
    """Give the columns of each panel by number: one, or two for a surface."""
    entries = [features] if isinstance(features, str | tuple) or not isinstance(features, Iterable) else list(features)
    panels = []
    for entry in entries:
        asked = [entry] if isinstance(entry, str) or not isinstance(entry, Iterable) else list(entry)
        if not 1 <= len(asked) <= 2:
            raise ValueError(f"A panel shows one column or two, got {len(asked)}: features may be a list, with a panel each.")
        panels.append([table.number(names.index(f) if isinstance(f, str) and f in names else f) for f in asked])
    if not panels:
        raise ValueError("features names no column.")
    if any(panel in panels[:i] for i, panel in enumerate(panels)):  # the classes of the rows, say, which are no columns
        raise ValueError("features names a column twice; it takes columns to show, and y has no part in it.")
    return panels


def _has_categories(estimator: Any, table: Table, column: int) -> bool:
    """Tell whether the values of a column are names: text, truth values, or codes that the model takes for categories."""
    if table.column(column).dtype.kind not in "fiu":
        return any(isinstance(v, str | bool) for v in table.column(column).tolist())
    known = getattr(estimator, "is_categorical_", None)
    return hasattr(estimator, "n_categories_") or (known is not None and bool(known[column]))


def _average(estimator: Any, table: Table, columns: list[int], grid: list[np.ndarray]) -> np.ndarray:
    """Give the mean answers over the grid, (classes, *grid)."""
    if len(columns) == 1:
        return partial_dependence(estimator, table.native, columns[0], grid[0]).average
    slices = [table.with_column(columns[1], np.full(table.n_rows, value)) for value in grid[1]]
    return np.stack([partial_dependence(estimator, rows, columns[0], grid[0]).average for rows in slices], axis=-1)


def _as_text(values: np.ndarray) -> np.ndarray:
    """Write categories, codes without a fraction of zeros."""
    return np.array([f"{v:g}" if isinstance(v, float) else str(v) for v in values.tolist()])


def _positions(values: np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Give where to draw values on an axis; categories stand side by side and have names."""
    values = np.asarray(values)
    if values.dtype.kind in "fiu":
        return values.astype(float), None
    return np.arange(len(values)), [str(v) for v in values]


def _grid(values: np.ndarray, most: int, categories: bool) -> np.ndarray:
    """Choose where to ask: at the values that there are, or evenly between the 5 % and 95 % quantiles if these are many."""
    kept = np.array([v for v in values.tolist() if v is not None and v == v])
    if not len(kept):
        raise ValueError("A column without any value has no partial dependence.")
    distinct = np.unique(kept)
    if categories or distinct.dtype.kind not in "fiu" or len(distinct) <= most:
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
