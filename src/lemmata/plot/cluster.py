"""Clusters seen from the two directions in which the rows vary most."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import MAX_ROWS, answers, axes, quiet, some_rows


def principal_directions(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the two principal directions (as columns) and their shares of the variance.

    >>> mean, directions, shares = principal_directions(np.array([[0.0, 1.0], [4.0, 1.0]]))
    >>> directions[:, 0], shares
    (array([1., 0.]), array([1., 0.]))
    """
    mean = X.mean(axis=0)
    _, singular, right = np.linalg.svd(X - mean, full_matrices=False)
    directions, shares = np.zeros((X.shape[1], 2)), np.zeros(2)
    k = min(2, len(singular))
    directions[:, :k] = right[:k].T
    # A direction has no sign of its own: the largest entry is made positive, so that a plot can be compared with the next.
    directions *= np.where(directions[np.abs(directions).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    total = (singular**2).sum()
    shares[:k] = singular[:k] ** 2 / total if total else 0
    return mean, directions, shares


class ClusterDisplay:
    """Rows and centers of a clustering on the two principal directions of the data.

    Parameters
    ----------
    points : Rows on the two directions, of shape (rows, 2).
    labels : Cluster of each row.
    centers : Centers on the two directions, of shape (clusters, 2).
    shares : Shares of the variance in the two directions.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.cluster import KMeans
    >>> X = [[0.0, 1.0], [0.0, -1.0], [9.0, 1.0], [9.0, -1.0]]
    >>> display = ClusterDisplay.from_estimator(KMeans(2, random_state=0).fit(X), X)
    >>> np.abs(display.centers[:, 0])
    array([4.5, 4.5])
    """

    def __init__(
        self, *, points: np.ndarray, labels: np.ndarray, centers: np.ndarray, shares: np.ndarray, name: str | None = None
    ) -> None:
        self.points = points
        self.labels = labels
        self.centers = centers
        self.shares = shares
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, name: str | None = None, max_rows: int = MAX_ROWS
    ) -> Self:
        """Plot the clusters that a fitted clusterer gives to the rows of X, at most `max_rows` of them; y is not looked at."""
        X, _, _ = some_rows(estimator, X, None, max_rows)
        labels = answers(estimator, "predict", X)
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X) if np.isnan(X).any() else X
        found = np.unique(labels)
        centers = getattr(estimator, "cluster_centers_", getattr(estimator, "means_", None))
        centers = np.array([X[labels == k].mean(axis=0) for k in found]) if centers is None else np.asarray(centers)
        mean, directions, shares = principal_directions(X)
        name = type(estimator).__name__ if name is None else name
        display = cls(
            points=(X - mean) @ directions, labels=labels, centers=(centers - mean) @ directions, shares=shares, name=name
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the rows in the color of their cluster and the centers as crosses."""
        import matplotlib as mpl

        ax = axes(ax, (5.6, 4.6))
        found = np.unique(self.labels)
        colors = mpl.colormaps["tab10" if len(found) <= 10 else "turbo"]  # tab10 has 10 colors
        for j, k in enumerate(found):
            rows = self.labels == k
            color = colors(j) if len(found) <= 10 else colors(j / (len(found) - 1))
            ax.scatter(*self.points[rows].T, s=12, alpha=0.55, linewidths=0, color=color, label=f"{k}: {rows.sum():,} rows")
        edge = mpl.rcParams["text.color"]
        ax.scatter(*self.centers.T, marker="X", s=90, color=edge, edgecolors=mpl.rcParams["figure.facecolor"], label="centers")
        first, second = self.shares
        ax.set(
            xlabel=f"first principal direction ({first:.0%} of the variance)",
            ylabel=f"second ({second:.0%})",
            title=self.name or "",
        )
        quiet(ax)
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), markerscale=1.6)
        self.ax_, self.figure_ = ax, ax.figure
        return self
