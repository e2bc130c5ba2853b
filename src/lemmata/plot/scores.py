"""Rows by the coordinates that a transformer gives them."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_MARKS, MAX_ROWS, NEUTRAL, answers, axes, class_colors, quiet, some_rows

CLASSES = 20  # so many different targets are still told apart by colors


class ScoresDisplay:
    """Rows on two of the coordinates that a transformer gives them, in the colors of their targets.

    Parameters
    ----------
    points : (rows, 2), coordinates; of a transformer with one, the second is zero.
    target : What to color rows by: few different labels, or numbers; or None.
    labels : Names of the two axes.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.decomposition import PCA
    >>> X = [[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> display = ScoresDisplay.from_estimator(PCA().fit(X), X)
    >>> display.labels
    ('first coordinate (80 % of the variance)', 'second (20 %)')
    """

    def __init__(
        self, *, points: np.ndarray, target: Any = None, labels: tuple[str, str] = ("first", "second"), name: str | None = None
    ) -> None:
        self.points = points
        self.target = None if target is None else np.asarray(target)
        self.labels = labels
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        coordinates: tuple[int, int] = (0, 1),
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot what a fitted transformer makes of the rows of X, at most `max_rows` of them.

        Parameters
        ----------
        coordinates : Numbers of the two coordinates to show.
        """
        X, target, _ = some_rows(estimator, X, y, max_rows)
        z = answers(estimator, "transform", X).astype(float)
        i, j = coordinates
        points = np.column_stack([z[:, i], z[:, j] if j < z.shape[1] else np.zeros(len(z))])
        shares = getattr(estimator, "explained_variance_ratio_", None)
        first, second = ("first coordinate", "second") if (i, j) == (0, 1) else (f"coordinate {i}", f"coordinate {j}")
        if shares is not None:
            first += f" ({100 * shares[i]:.3g} % of the variance)"
            second += f" ({100 * shares[j]:.3g} %)" if j < len(shares) else ""
        name = type(estimator).__name__ if name is None else name
        return cls(points=points, target=target, labels=(first, second), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the rows."""
        ax = axes(ax, (5.8, 4.6))
        found = None if self.target is None else np.unique(self.target)
        if self.target is None:
            ax.scatter(*self.points.T, s=14, alpha=0.6, linewidths=0, color=class_colors(1)[0])
        elif len(found) <= CLASSES:
            for k, color, mark in zip(found, class_colors(len(found)), CLASS_MARKS * 3, strict=False):
                rows = self.target == k
                ax.scatter(*self.points[rows].T, s=16, alpha=0.65, linewidths=0, color=color, marker=mark, label=str(k))
            ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), markerscale=1.5)
        else:
            drawn = ax.scatter(*self.points.T, s=14, alpha=0.7, linewidths=0, c=self.target, cmap="viridis")
            ax.figure.colorbar(drawn, ax=ax, label="target")
        ax.axhline(0, color=NEUTRAL, lw=0.6, zorder=0)
        ax.axvline(0, color=NEUTRAL, lw=0.6, zorder=0)
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1], title=self.name or "")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
