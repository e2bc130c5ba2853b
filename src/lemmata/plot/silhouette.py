"""How well each row lies in its cluster: silhouettes, sorted within each cluster, and their mean."""

from typing import Any, Self

import numpy as np

from lemmata.cluster import silhouette
from lemmata.plot.drawing import MAX_ROWS, answers, axes, class_colors, ink, outlined, sample_rows, some_rows

GAP = 0.02  # of all rows, between clusters
LEAST = 0.4  # height of a small cluster over that of an even share: its name needs room
MANY = 8  # clusters from which the picture grows


class SilhouetteDisplay:
    """The silhouettes of the rows of each cluster, from the largest to the smallest, and the mean of all.

    A silhouette near 1 means that the row is much nearer to its own cluster than to the next one; below 0 it is nearer to the
    next. A cluster whose bars all fall short of the mean, or reach below 0, is none.

    Parameters
    ----------
    silhouettes : Silhouette of each row.
    labels : Cluster of each row.
    name : What to write above the plot.

    Attributes
    ----------
    score : Mean silhouette.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.cluster import KMedoids
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 10.0, 12.0], [0.0, 1.0, 10.0, 12.0]))
    >>> display = SilhouetteDisplay.from_estimator(KMedoids(2, metric="precomputed").fit(D), D)
    >>> display.silhouettes.round(3).tolist(), display.score
    ([0.909, 0.9, 0.789, 0.826], 0.856)
    """

    def __init__(self, *, silhouettes: np.ndarray, labels: np.ndarray, name: str | None = None) -> None:
        self.silhouettes = silhouettes
        self.labels = labels
        self.name = name
        self.score = float(np.mean(silhouettes))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        metric: Any = None,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot the silhouettes of the clusters that a fitted clusterer gives to the rows of X; y is not looked at.

        Parameters
        ----------
        X : Rows; with precomputed distances, those of all pairs of the rows of the fit.
        metric : As in `lemmata.cluster.silhouette`; default that of the estimator, or "euclidean".
        max_rows : Of more rows a sample is taken, and silhouettes are those within the sample.
        """
        metric = getattr(estimator, "metric", "euclidean") if metric is None else metric
        name = type(estimator).__name__ if name is None else name
        if isinstance(metric, str) and metric == "precomputed":
            D = np.asarray(X, dtype=float)
            rows, labels = sample_rows(len(D), max_rows), _labels(estimator, D, len(D))
            return cls.from_labels(D[np.ix_(rows, rows)], labels[rows], metric=metric, ax=ax, name=name)
        X, _, _ = some_rows(estimator, X, None, max_rows)
        return cls.from_labels(X, _labels(estimator, X, max_rows), metric=metric, ax=ax, name=name)

    @classmethod
    def from_labels(cls, X: Any, labels: Any, *, metric: Any = "euclidean", ax: Any = None, name: str | None = None) -> Self:
        """Plot the silhouettes of a clustering made by any means.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> SilhouetteDisplay.from_labels([[0.0], [1.0], [10.0], [12.0]], list("aabb")).score
        0.856
        """
        return cls(silhouettes=silhouette(X, labels, metric), labels=np.asarray(labels), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a step for each row, cluster by cluster from the top, and the line of the mean."""
        found, sizes = np.unique(self.labels, return_counts=True)
        ax = axes(ax, (6.0, max(4.2, 1.8 + 0.3 * len(found))))
        n, top, middles, names = len(self.labels), 0.0, [], []
        least = LEAST * n / max(len(found), MANY)
        for label, size, color in zip(found, sizes, class_colors(len(found)), strict=True):
            own = np.sort(self.silhouettes[self.labels == label])[::-1]
            height = max(size, least)
            edges = top + (height - size) / 2 + np.arange(size + 1)
            ax.stairs(own, edges, orientation="horizontal", baseline=0, fill=True, color=color, label=str(label))
            middles.append(top + height / 2)
            names.append(f"{label}: {size:,} row{'' if size == 1 else 's'}, mean {own.mean():.2f}")
            top += height + GAP * n
        ax.axvline(0, color=ink(), lw=0.8)
        ax.axvline(self.score, color=ink(), lw=1.4, ls=(0, (4, 3)))
        text = ax.annotate(
            f"mean {self.score:.3f}", (self.score, 1), (0, 3), xycoords=ax.get_xaxis_transform(), textcoords="offset points"
        )
        text.set(ha="center", va="bottom", fontsize="small")
        outlined(text, ax)
        below = int((self.silhouettes < 0).sum())
        told = (
            f"{below:,} row{' is' if below == 1 else 's are'} below 0: nearer to another cluster"
            if below
            else "none is below 0"
        )
        ax.set(
            xlim=(min(0.0, 1.08 * self.silhouettes.min()), 1.0), ylim=(top - GAP * n, -GAP * n), xlabel=f"silhouette ({told})"
        )
        ax.set_yticks(middles, names, fontsize="small")
        ax.set_title(self.name or "", pad=18)  # points: the mean stands between
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _labels(estimator: Any, X: np.ndarray, most: int) -> np.ndarray:
    """Ask a clusterer for the clusters of rows; one that cannot say must have been fitted to them."""
    if hasattr(estimator, "predict"):
        return answers(estimator, "predict", X)
    labels = np.asarray(estimator.labels_)
    labels = labels[sample_rows(len(labels), most)]
    if len(labels) != len(X):
        kind = type(estimator).__name__
        raise ValueError(
            f"{kind} cannot predict, and its {len(labels)} labels are not those of {len(X)} rows: give the rows of the fit."
        )
    return labels
