"""What a classifier makes of a plane: regions, the boundary between them, and lines of equal confidence."""

from typing import Any, Self

import numpy as np
from sklearn.utils import get_tags

from lemmata.plot.drawing import (
    CLASS_MARKS,
    MAX_ROWS,
    NEUTRAL,
    answers,
    axes,
    class_colors,
    filled,
    ink,
    outlined,
    quiet,
    some_rows,
)
from lemmata.plot.plane import Plane, choose_plane

CONFIDENCE = (0.75, 0.9)  # probabilities of a class at which lines are drawn; of two classes, also of the other
RESOLUTION = 200  # points of the grid in each direction: lines are smooth at the size of a page
AT_ONCE = 1 << 20  # numbers that are asked for at once, so that a wide table fits the memory
IMPOSSIBLE = -1e6  # logarithm of a probability of zero, so that differences are numbers
ROOM = 0.07  # share of the extent of the rows that is left free around them
CROWDED = (1.5, 1.3)  # room around a number on a line, in its own sizes; the legend takes some later
NARROW = 4.0  # cells between two lines, below which a number on one covers the other
MARGIN_DASHES = (0, (4, 3))
SHADES = (0.10, 0.10, 0.12)  # opacities that add up with confidence: text and rows stay readable on the darkest


class BoundaryDisplay:
    """Regions of a classifier on a plane, the boundary between them, lines of confidence, and the rows.

    Two classes have lines where the probability of the second is 0.1, 0.25, 0.75 and 0.9; more have them where the largest
    probability is 0.75 and 0.9. A linear classifier of two classes without probabilities has lines at the scores ±1, at a
    distance of 1/‖w‖ from the boundary. Rows that are given to another class than theirs have a ring.

    Parameters
    ----------
    grid : Coordinates of the grid on the plane, two vectors.
    regions : Number of the class at each point of the grid, of shape (second, first).
    values : Logarithm of the probability, or score, of each class at each point, of shape (second, first, classes); None if
        there are only labels.
    response : "probability", "score" or "label": what the classifier says.
    points : Rows on the plane, of shape (rows, 2).
    labels : Number of the class of each row, or None.
    predicted : Number of the class that the model gives to each row.
    classes : What the classes are called.
    plane : `Plane` of the picture.
    margin : Whether scores of ±1 are worth a line; for two classes.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import LogisticRegression
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [3.0, 1.0], [2.0, 2.0]], ["no", "no", "yes", "yes"]
    >>> display = BoundaryDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    >>> display.response, display.ax_.get_xlabel()
    ('probability', 'x0')
    """

    def __init__(
        self,
        *,
        grid: tuple[np.ndarray, np.ndarray],
        regions: np.ndarray,
        values: np.ndarray | None,
        response: str,
        points: np.ndarray,
        labels: np.ndarray | None,
        predicted: np.ndarray,
        classes: list[str],
        plane: Plane,
        margin: bool = False,
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.regions = regions
        self.values = values
        self.response = response
        self.points = points
        self.labels = labels
        self.predicted = predicted
        self.classes = classes
        self.plane = plane
        self.margin = margin
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        feature_names: Any = None,
        class_names: Any = None,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot what a fitted classifier makes of the rows of X, at most `max_rows` of them, and of what lies between.

        Parameters
        ----------
        y : Classes of the rows.
        features : Two columns, by number or name, for the axes; the others stay at their means.
        feature_names, class_names : What to call columns and classes, in their order.
        """
        if takes_actions(estimator):
            raise ValueError(
                "This model decides by costs, not for the most probable class: plot it with DecisionRegionDisplay."
            )
        if getattr(estimator, "multilabel_", False):
            raise ValueError("Rows have several labels here, and a plane shows the regions of one: plot a model of one label.")
        X, y, names = some_rows(estimator, X, y, max_rows)
        names = names if feature_names is None else [str(n) for n in feature_names]
        whole = filled(X)
        plane = choose_plane(estimator, whole, names, features)
        classes = np.asarray(estimator.classes_)
        points, grid = place(plane, whole)
        if get_tags(estimator).input_tags.positive_only and (plane.rows(_corners(grid)) < 0).any():
            raise ValueError(
                f"{type(estimator).__name__} takes counts or codes, and the plane around the rows has negative numbers: "
                "use ConfusionMatrixDisplay."
            )
        points[np.isnan(X) @ plane.directions**2 > 0.5] = np.nan  # a row that lacks most of a coordinate has no place there
        regions, values, response = _on_grid(estimator, plane, grid)
        display = cls(
            grid=grid,
            regions=np.searchsorted(classes, regions),
            values=values,
            response=response,
            points=points,
            labels=None if y is None else class_numbers(classes, y),
            predicted=class_numbers(classes, answers(estimator, "predict", X)),
            classes=[str(c) for c in (classes if class_names is None else class_names)],
            plane=plane,
            margin=response == "score" and hasattr(estimator, "coef_") and len(classes) == 2,
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw regions, lines and rows."""
        ax = axes(ax, (6.4, 4.6))
        colors = class_colors(len(self.classes))
        ahead = self._ahead()
        for k, color in enumerate(colors):
            shade(ax, self.grid, ahead[k], 0.0, color, SHADES[0])
        # Every boundary is that of a class before the last.
        borders = [lines(ax, self.grid, a, [0.0], colors=ink(), linewidths=1.6) for a in ahead[: max(len(colors) - 1, 1)]]
        self._bordered, self._lined = any(border is not None for border in borders), False
        first, second = self.grid
        ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
        if self.response == "probability":
            self._confidence(ax, colors)
        elif self.margin:
            self._margins(ax, colors)
        self._rows(ax, colors)
        ax.set_title(self._title())
        ax.set(xlabel=self.plane.names[0], ylabel=self.plane.names[1])
        if not self.plane.directions[:, 1].any():
            ax.set_yticks([])
        quiet(ax)
        self._legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _title(self) -> str:
        return self.name or ""

    def _ahead(self) -> np.ndarray:
        """By how much each class is ahead of the others at each point, (classes, second, first); 0 on its boundary."""
        if self.values is None:
            return np.where(self.regions == np.arange(len(self.classes))[:, None, None], 0.5, -0.5)
        return ahead_of_others(self.values)

    def _confidence(self, ax: Any, colors: list[Any]) -> None:
        """Shade and line the points where a class has a probability of 0.75, and of 0.9."""
        logs = np.moveaxis(self.values, -1, 0)  # type: ignore[call-overload]
        drawn = []
        for k, color in enumerate(colors):
            odds = logs[k] - np.logaddexp.reduce(np.delete(logs, k, axis=0), axis=0)
            for share, opacity in zip(CONFIDENCE, SHADES[1:], strict=True):
                shade(ax, self.grid, odds, _logit(share), color, opacity)
            apart = [_logit(share) for share in CONFIDENCE if _is_apart(odds, _logit(share))]
            found = lines(ax, self.grid, odds, apart, colors=[color], linewidths=0.9, linestyles="dashed")
            if found is not None:
                second = len(colors) == 2 and k == 0  # of two classes, all lines tell of the second
                steep = np.maximum(np.hypot(*np.gradient(odds)), np.finfo(float).tiny)
                texts = {_logit(c): f"{1 - c if second else c:.2g}" for c in CONFIDENCE}
                drawn.append((found, texts, _logit(CONFIDENCE[0]) / steep))  # 0.75 is as far from 0.5 as 0.9 from 0.75
        self._lined = bool(drawn)
        self._write_levels(ax, drawn)

    def _write_levels(self, ax: Any, drawn: list[tuple[Any, dict[float, str], np.ndarray]]) -> None:
        """Write the levels on their lines, but not where they would cover others or the next line, cells away as given."""
        taken: list[Any] = []
        for contours, texts, away in drawn:
            free = []
            for text in ax.clabel(contours, fmt=texts, fontsize="small", inline=False):
                extent, (x, y) = text.get_window_extent().expanded(*CROWDED), text.get_position()
                first, second = (np.clip(np.searchsorted(g, v), 0, len(g) - 1) for g, v in zip(self.grid, (x, y), strict=True))
                if away[second, first] >= NARROW and not any(extent.overlaps(other) for other in taken):
                    taken.append(extent)
                    free.append((x, y))
                text.remove()
            if free:  # once more, with gaps in the lines where numbers stay
                for text in ax.clabel(contours, fmt=texts, fontsize="small", manual=free, zorder=4):  # above the rows
                    outlined(text, ax)

    def _margins(self, ax: Any, colors: list[Any]) -> None:
        """Draw lines at the scores ±1 of the second class of two."""
        lines(ax, self.grid, self.values[..., 1], [-1.0, 1.0], colors=ink(), linewidths=0.9, linestyles=[MARGIN_DASHES])

    def _rows(self, ax: Any, colors: list[Any]) -> None:
        if self.labels is None:
            ax.scatter(*self.points.T, s=14, alpha=0.7, linewidths=0, color=NEUTRAL)
            return
        for k, color in enumerate(colors):
            rows = self.labels == k
            mark, label = CLASS_MARKS[k % len(CLASS_MARKS)], f"{self.classes[k]}: {rows.sum():,} rows"
            ax.scatter(*self.points[rows].T, s=18, alpha=0.85, linewidths=0, color=color, marker=mark, label=label)
        wrong = self.predicted != self.labels
        if wrong.any():
            self._mistakes(ax, wrong, f"mistakes: {wrong.sum():,} of {len(wrong):,}")

    def _mistakes(self, ax: Any, wrong: np.ndarray, label: str) -> None:
        """Mark rows that are given to another class than theirs."""
        ax.scatter(*self.points[wrong].T, s=58, facecolors="none", edgecolors=ink(), linewidths=0.9, label=label)

    def _legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles, _ = ax.get_legend_handles_labels()
        if self.labels is None:
            handles = [
                Patch(color=c, alpha=0.5, label=n) for c, n in zip(class_colors(len(self.classes)), self.classes, strict=True)
            ]
        two = len(self.classes) == 2
        if self._bordered:
            called = "boundary" if self.response != "probability" else "p = ½" if two else "boundaries"
            handles.append(Line2D([], [], color=ink(), lw=1.6, label=called))
        if self._lined:
            levels = sorted({*CONFIDENCE, *(1 - c for c in CONFIDENCE)} if two else CONFIDENCE)
            of = f"probability of {self.classes[1]}" if two else "largest probability"
            of += "\n" + ", ".join(f"{level:.2g}" for level in levels)
            handles.append(Line2D([], [], color=NEUTRAL, lw=0.9, ls="--", label=of))
        if self.margin:
            handles.append(Line2D([], [], color=ink(), lw=0.9, ls=MARGIN_DASHES, label="score ±1"))
        ax.legend(handles=handles, frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), markerscale=1.2)


def _is_apart(odds: np.ndarray, level: float) -> bool:
    """Tell whether the line of a level is a cell of the grid or more away from the boundary: else the two are one."""
    between = int(((odds > 0) & (odds < level)).sum())
    inside = odds > 0
    return between >= max(int((inside[1:] != inside[:-1]).sum()), int((inside[:, 1:] != inside[:, :-1]).sum()))


def _logit(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))


def takes_actions(estimator: Any) -> bool:
    """Tell whether a model decides by costs, or may refuse: then its region of an action is not that of a largest probability.

    >>> from lemmata.decision import Decide
    >>> takes_actions(Decide()), takes_actions(Decide(reject_cost=0.1))
    (False, True)
    """
    settings = (getattr(estimator, name, None) for name in ("costs", "reject_cost"))
    return hasattr(estimator, "rejected") and any(setting is not None for setting in settings)


def place(plane: Plane, X: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the rows on the plane, and the coordinates of a grid that shows them all with some room."""
    points = plane.points(X)
    if not plane.directions[:, 1].any():  # one column: the rows are spread evenly, for they would hide each other
        points[:, 1] = (np.arange(len(points)) * (np.sqrt(5) - 1) / 2) % 1
    return points, (_axis(points[:, 0]), _axis(points[:, 1]))


def _axis(column: np.ndarray) -> np.ndarray:
    low, high = float(column.min()), float(column.max())
    room = ROOM * (high - low) if high > low else 1.0
    return np.linspace(low - room, high + room, RESOLUTION)


def _corners(grid: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Give the corners of a grid, where a plane has its largest and its smallest numbers."""
    return np.array([(x, y) for x in grid[0][[0, -1]] for y in grid[1][[0, -1]]])


def shade(ax: Any, grid: Any, heights: np.ndarray, level: float, color: Any, alpha: float, **style: Any) -> Any:
    """Fill where the heights exceed a level, if they do anywhere."""
    if not heights.max() > level:
        return None
    return ax.contourf(*grid, heights, levels=[level, heights.max() + 1], colors=[color], alpha=alpha, **style)


def lines(ax: Any, grid: Any, heights: np.ndarray, levels: list[float], **style: Any) -> Any:
    """Draw the lines that exist: a level that no point reaches has none."""
    found = [level for level in levels if heights.min() < level < heights.max()]
    return ax.contour(*grid, heights, levels=found, **style) if found else None


def class_numbers(classes: np.ndarray, labels: Any) -> np.ndarray:
    """Return the numbers of the classes of some labels."""
    labels = np.asarray(labels).ravel()
    strange = np.setdiff1d(labels, classes)
    if len(strange):
        raise ValueError(f"y holds the label {strange[0]!s}, which is not a class of the fit: {list(classes)}.")
    return np.searchsorted(classes, labels)


def ask(estimator: Any, verb: str, plane: Plane, grid: Any) -> np.ndarray:
    """Return what a method of the model answers on the grid, of shape (second, first) and that of an answer."""
    points = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
    parts = np.array_split(points, -(-len(points) * len(plane.origin) // AT_ONCE))
    found = np.concatenate([answers(estimator, verb, plane.rows(part)) for part in parts])
    return found.reshape(len(grid[1]), len(grid[0]), *found.shape[1:])


def log_probabilities(estimator: Any, plane: Plane, grid: Any) -> np.ndarray:
    """Return the logarithms of the probabilities on the grid, finite ones."""
    with np.errstate(divide="ignore"):
        if hasattr(estimator, "predict_log_proba"):
            logs = ask(estimator, "predict_log_proba", plane, grid)
        else:
            logs = np.log(ask(estimator, "predict_proba", plane, grid))
    return np.maximum(logs, IMPOSSIBLE)


def ahead_of_others(values: np.ndarray) -> np.ndarray:
    """Return by how much each class is ahead of the others, (classes, second, first), for values (second, first, classes)."""
    values = np.moveaxis(values, -1, 0)
    return values - np.array([np.delete(values, j, axis=0).max(axis=0) for j in range(len(values))])


def _on_grid(estimator: Any, plane: Plane, grid: Any) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Return the labels on the grid, and log-probabilities or scores of all classes if the classifier gives them."""
    labels = ask(estimator, "predict", plane, grid)
    if hasattr(estimator, "predict_proba"):
        return labels, log_probabilities(estimator, plane, grid), "probability"
    if not hasattr(estimator, "decision_function"):
        return labels, None, "label"
    scores = ask(estimator, "decision_function", plane, grid)
    if scores.ndim == 2:  # that of the second class of two
        scores = np.stack([-scores, scores], axis=-1)
    return labels, scores, "score"
