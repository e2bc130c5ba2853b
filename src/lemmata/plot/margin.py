"""What a support vector machine makes of a plane: regions, margins, and the rows that hold them in place.

With several classes there is a machine for each two of them, and a class is ahead by the least of the scores of its machines:
that is 0 on its boundary, and 1 on its margin.
"""

from copy import copy
from typing import Any, Self

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.plot.boundary import MARGIN_DASHES, SHADES, BoundaryDisplay, ask, class_numbers, lines, place, shade
from lemmata.plot.drawing import MAX_ROWS, answers, ink, sample_rows, some_rows
from lemmata.plot.plane import Plane, choose_plane


class MarginDisplay(BoundaryDisplay):
    """Regions of a support vector classifier on a plane, its margins, and the rows with the support vectors ringed.

    Regions are lighter inside the margins, where the score of the machine of a region and the class across the boundary is
    below 1. Rows that are given to another class than theirs have a cross.

    Parameters
    ----------
    support : Support vectors on the plane, of shape (vectors, 2).
    n_support : How many there are, of which those of `support` are shown.
    values : Least score of the machines of each class at each point, of shape (second, first, classes).
    grid, regions, points, labels, predicted, classes, plane, name : As in `BoundaryDisplay`.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.svm import SVC
    >>> X, y = [[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]], [1, 1, 0, 0]
    >>> display = MarginDisplay.from_estimator(SVC(kernel="linear", hard_margin=True).fit(X, y), X, y)
    >>> display.support
    array([[-1., -1.],
           [-2.,  1.],
           [ 1.,  1.]])
    """

    def __init__(
        self,
        *,
        grid: tuple[np.ndarray, np.ndarray],
        regions: np.ndarray,
        values: np.ndarray,
        points: np.ndarray,
        labels: np.ndarray | None,
        predicted: np.ndarray,
        support: np.ndarray,
        n_support: int,
        classes: list[str],
        plane: Plane,
        name: str | None = None,
    ) -> None:
        super().__init__(
            grid=grid, regions=regions, values=values, response="score", points=points, labels=labels, predicted=predicted,
            classes=classes, plane=plane, margin=True, name=name,
        )  # fmt: skip
        self.support = support
        self.n_support = n_support

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
        """Plot what a fitted `SVC` makes of the rows of X, at most `max_rows` of them, and of what lies between.

        Parameters
        ----------
        y : Classes of the rows.
        features : Two columns, by number or name, for the axes; the others stay at their means.
        feature_names, class_names : What to call columns and classes, in their order.
        """
        X, y, names = some_rows(estimator, X, y, max_rows)
        plane = choose_plane(estimator, X, names if feature_names is None else [str(n) for n in feature_names], features)
        classes = np.asarray(estimator.classes_)
        points, grid = place(plane, X)
        vectors = estimator.support_vectors_
        shown = vectors[sample_rows(vectors.shape[0], max_rows)]
        support = plane.points(shown.toarray() if is_sparse(shown) else np.asarray(shown))
        if not plane.directions[:, 1].any():  # one column, where rows are spread out: rings go around the rows
            support = points[np.isin(X[:, 0], np.unique(support[:, 0]))]
        display = cls(
            grid=grid,
            regions=class_numbers(classes, ask(estimator, "predict", plane, grid)).reshape(len(grid[1]), len(grid[0])),
            values=least_scores(estimator, plane, grid),
            points=points,
            labels=None if y is None else class_numbers(classes, y),
            predicted=class_numbers(classes, answers(estimator, "predict", X)),
            support=support,
            n_support=int(vectors.shape[0]),
            classes=[str(c) for c in (classes if class_names is None else class_names)],
            plane=plane,
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def _ahead(self) -> np.ndarray:
        """By how much each class is ahead, (classes, second, first)."""
        values = np.moveaxis(self.values, -1, 0)  # type: ignore[call-overload]
        own = self.regions == np.arange(len(self.classes))[:, None, None]
        # Where three machines each vote for another class, the surest one decides, and nobody is ahead by all scores.
        return np.where(own & (values <= 0), np.finfo(float).tiny, values)

    def _margins(self, ax: Any, colors: list[Any]) -> None:
        """Shade what is beyond the margins once more, and draw the margins."""
        for ahead, color in zip(self._ahead(), colors, strict=True):
            shade(ax, self.grid, ahead, 1.0, color, SHADES[1] + SHADES[2])
            lines(ax, self.grid, ahead, [1.0], colors=ink(), linewidths=0.9, linestyles=[MARGIN_DASHES])

    def _rows(self, ax: Any, colors: list[Any]) -> None:
        super()._rows(ax, colors)
        label = f"support vectors: {self.n_support:,}"
        ax.scatter(*self.support.T, s=58, facecolors="none", edgecolors=ink(), linewidths=0.9, label=label)

    def _mistakes(self, ax: Any, wrong: np.ndarray, label: str) -> None:
        ax.scatter(*self.points[wrong].T, s=22, color=ink(), marker="x", linewidths=1.0, label=label)


def least_scores(estimator: Any, plane: Plane, grid: Any) -> np.ndarray:
    """Return the least score of the machines of each class on the grid, (second, first, classes)."""
    k = len(estimator.classes_)
    pairwise = copy(estimator)
    pairwise.decision_function_shape = "ovo"
    scores = ask(pairwise, "decision_function", plane, grid)
    if k == 2:
        return np.stack([-scores, scores], axis=-1)
    least = np.full((*scores.shape[:2], k), np.inf)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]  # the machine of a pair is positive for the first
    for p, (i, j) in enumerate(pairs):
        least[..., i] = np.minimum(least[..., i], scores[..., p])
        least[..., j] = np.minimum(least[..., j], -scores[..., p])
    return least
