"""How many clusters: the loss over their number, the chord under which it hangs, and the mean silhouettes."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from lemmata.cluster import elbow
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet

LOSS, SCORE = CLASS_COLORS[:2]


class ElbowDisplay:
    """The loss of clusterings with more and more clusters, with its elbow marked; the mean silhouettes below.

    The elbow is the point farthest below the chord from the first point of the curve to the last. The largest mean silhouette,
    which does not depend on the range that was tried, is a second opinion.

    Parameters
    ----------
    curve : What `lemmata.cluster.elbow` returned.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes of the loss, and figure, of the last plot.
    silhouette_ax_ : Axes of the silhouettes, or None if there are none.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.cluster import KMeans
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9], [0, 9], [1, 9], [0, 8]], dtype=float)
    >>> display = ElbowDisplay.from_estimator(KMeans(random_state=0), X, n_clusters=range(1, 6))
    >>> display.curve.suggested, display.ax_.get_title()
    (3, 'KMeans: elbow at 3 clusters, largest silhouette at 3')
    """

    def __init__(self, curve: Any, *, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_elbow(cls, curve: Any, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot what `lemmata.cluster.elbow` returned."""
        return cls(curve, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        n_clusters: Iterable[int] = range(1, 11),
        sample_weight: Any = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Fit a clusterer with several numbers of clusters by `lemmata.cluster.elbow`, and plot the curve."""
        name = type(estimator).__name__ if name is None else name
        return cls.from_elbow(elbow(estimator, X, n_clusters, sample_weight=sample_weight), ax=ax, name=name)

    def plot(self, ax: Any = None) -> Self:
        """Draw the losses, the chord and, below them, the silhouettes."""
        from matplotlib.ticker import MaxNLocator

        k, loss, scores = self.curve.n_clusters, self.curve.inertia, self.curve.silhouette
        scored = bool(np.isfinite(scores).any())
        ax = axes(ax, (5.8, 5.4 if scored else 4.0))
        ax.plot(k, loss, "o-", color=LOSS, lw=2, ms=5, label="loss")
        ax.plot(k[[0, -1]], loss[[0, -1]], color=NEUTRAL, lw=1.2, ls=(0, (4, 3)), zorder=1, label="chord")
        best = self.curve.suggested
        at = int(np.flatnonzero(k == best)[0])
        height = loss[0] + (loss[-1] - loss[0]) * (best - k[0]) / (k[-1] - k[0])
        ax.plot([best, best], [loss[at], height], color=NEUTRAL, lw=1.2, zorder=1)
        ax.plot(best, loss[at], "o", ms=12, mfc="none", mec=ink(), mew=1.6, label=f"elbow: {best} clusters")
        ax.set(ylim=(min(0.0, loss.min()), None), ylabel="loss (inertia)")
        ax.legend(frameon=False, fontsize="small", loc="upper right")
        quiet(ax)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        told = f"elbow at {best} clusters" + (f", largest silhouette at {self.curve.by_silhouette}" if scored else "")
        ax.set_title(f"{self.name}: {told}" if self.name else told, fontsize="medium")
        self.ax_, self.figure_, self.silhouette_ax_ = ax, ax.figure, None
        if scored:
            self._score(k, scores)
        else:
            ax.set_xlabel("number of clusters")
        return self

    def _score(self, k: np.ndarray, scores: np.ndarray) -> None:
        """Draw the mean silhouettes below."""
        ax = self.silhouette_ax_ = panel_below(self.ax_, 0.4)
        seen, best = np.isfinite(scores), self.curve.by_silhouette
        least, most = min(0.0, scores[seen].min()), scores[seen].max()
        ax.plot(k[seen], scores[seen], "s--", color=SCORE, lw=1.6, ms=5)
        ax.plot(best, scores[k == best], "s", ms=12, mfc="none", mec=ink(), mew=1.6, label=f"largest: {best} clusters")
        ax.set(ylim=(least - 0.1 * (most - least) * (least < 0), most + 0.2 * (most - least) + 1e-9))  # the mark has a size
        ax.set(xlabel="number of clusters", ylabel="mean silhouette")
        ax.legend(frameon=False, fontsize="small", loc="best")
        quiet(ax)


def panel_below(ax: Any, share: float) -> Any:
    """Divide axes in two, one below the other with so much of the height, such that a layout makes room for the labels of both.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from matplotlib import pyplot as plt
    >>> above = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    >>> below = panel_below(above, 0.25)
    >>> float(below.get_position().height), bool(above.get_position().y0 > below.get_position().y1)
    (0.2, True)
    """
    figure, place = ax.figure, ax.get_subplotspec()
    ax.tick_params(labelbottom=False)
    if place is None:  # axes that stand where they were put
        box, gap = ax.get_position(), 0.05
        ax.set_position((box.x0, box.y0 + (share + gap) * box.height, box.width, (1 - share - gap) * box.height))
        return figure.add_axes((box.x0, box.y0, box.width, share * box.height), sharex=ax)
    halves = place.subgridspec(2, 1, height_ratios=[1 - share, share])
    ax.set_subplotspec(halves[0])
    return figure.add_subplot(halves[1], sharex=ax)
