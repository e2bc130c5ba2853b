"""Gaussian classes on the plane of two columns: an ellipse for each, and the boundary that Bayes' rule draws between them.

Of more than two columns the others are integrated out: a class is N(μₒ, Σₒₒ) on the two that are shown, and the boundary is
that of a row of which nothing else is known. So ellipses and boundary belong together, which a cut through the space of all
columns and the shadow of an ellipsoid do not.
"""

from typing import Any, Self

import numpy as np

from lemmata.discriminant_analysis.class_model import GaussianClasses
from lemmata.discriminant_analysis.structures import expanded
from lemmata.plot.boundary import BoundaryDisplay, ask, class_numbers, log_probabilities, place
from lemmata.plot.drawing import MAX_ROWS, NEUTRAL, answers, class_colors, some_rows
from lemmata.plot.mixture import DEVIATIONS, ellipse_axes
from lemmata.plot.plane import choose_plane


def class_gaussians(estimator: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Give priors, means and covariance matrices of the classes of a fitted model, ours or scikit-learn's; None without them.

    Examples
    --------
    >>> from lemmata.naive_bayes import GaussianNB
    >>> class_gaussians(GaussianNB(var_smoothing=0.0).fit([[0.0], [2.0], [5.0], [9.0]], [0, 0, 1, 1]))
    (array([0.5, 0.5]), array([[1.],
           [7.]]), array([[[1.]],
    <BLANKLINE>
           [[4.]]]))
    """
    if isinstance(estimator, GaussianClasses):
        priors, means, covariance, structure = estimator._gaussians()
        return priors, means, expanded(covariance, structure, *means.shape)
    if hasattr(estimator, "theta_") and hasattr(estimator, "var_"):
        return estimator.class_prior_, estimator.theta_, np.eye(estimator.theta_.shape[1]) * estimator.var_[:, None]
    if all(hasattr(estimator, name) for name in ("classes_", "means_", "priors_", "covariance_")):
        found = np.asarray(estimator.covariance_)  # a list of one for each class, or one for all
        return estimator.priors_, estimator.means_, np.broadcast_to(found, (len(estimator.means_), *found.shape[-2:]))
    return None


class _OnColumns:
    """A model that is told two columns of a row and nothing else."""

    def __init__(self, estimator: Any, columns: list[int]) -> None:
        self.estimator, self.columns, self.classes_ = estimator, columns, estimator.classes_

    def predict(self, X: np.ndarray) -> np.ndarray:
        return answers(self.estimator, "predict", self._rows(X))

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        return answers(self.estimator, "predict_log_proba", self._rows(X))

    def _rows(self, X: np.ndarray) -> np.ndarray:
        rows = np.full((len(X), self.estimator.n_features_in_), np.nan)
        rows[:, self.columns] = X
        return rows


class ClassGaussiansDisplay(BoundaryDisplay):
    """Regions and rows of a classifier with Gaussian classes, and each class as an ellipse.

    Ellipses lie at one and two standard deviations, inside which are 39 % and 86 % of a Gaussian in the plane. Lines of
    confidence and rings are those of `BoundaryDisplay`.

    Parameters
    ----------
    means, covariances : Classes on the plane, of shapes (classes, 2) and (classes, 2, 2).
    n_left_out : Rows that are not shown because they lack one of the two entries.
    grid, regions, values, points, labels, predicted, classes, plane, name : As in `BoundaryDisplay`.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.discriminant_analysis import GaussianBayes
    >>> X = [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [9.0, 2.0], [9.0, -2.0], [10.0, 0.0], [8.0, 0.0]]
    >>> model = GaussianBayes().fit(X, list("aaaabbbb"))
    >>> display = ClassGaussiansDisplay.from_estimator(model, X, list("aaaabbbb"))
    >>> display.means, [ellipse_axes(covariance)[:2] for covariance in display.covariances]
    (array([[0., 0.],
           [9., 0.]]), [(0.707, 0.707), (1.414, 0.707)])
    """

    def __init__(self, *, means: np.ndarray, covariances: np.ndarray, n_left_out: int = 0, **boundary: Any) -> None:
        super().__init__(response="probability", **boundary)
        self.means = means
        self.covariances = covariances
        self.n_left_out = n_left_out

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
        """Plot the classes of a fitted model and rows, at most `max_rows` of them.

        Parameters
        ----------
        estimator : With Gaussian classes, as those of `lemmata.discriminant_analysis` and `GaussianNB`.
        y : Classes of the rows.
        features : Two columns, by number or name; needed where there are more, of which nothing else is then told.
        feature_names, class_names : What to call columns and classes, in their order.
        """
        found = class_gaussians(estimator)
        if found is None:
            raise ValueError(f"{type(estimator).__name__} has no Gaussian classes: use BoundaryDisplay.")
        X, y, names = some_rows(estimator, X, y, max_rows)
        names = names if feature_names is None else [str(n) for n in feature_names]
        columns = _two_columns(names, features)
        model = estimator if len(names) == 2 and columns == [0, 1] else _OnColumns(estimator, columns)
        rows = np.asarray(X, dtype=float)[:, columns]
        seen = ~np.isnan(rows).any(axis=1)
        if not seen.any():
            raise ValueError("There is no row to show: each lacks one of the two entries.")
        rows, labels = rows[seen], None if y is None else np.asarray(y)[seen]
        plane = choose_plane(None, rows, [names[j] for j in columns])
        classes = np.asarray(estimator.classes_)
        points, grid = place(plane, rows)
        display = cls(
            means=found[1][:, columns],
            covariances=found[2][:, columns][:, :, columns],
            n_left_out=int((~seen).sum()),
            grid=grid,
            regions=np.searchsorted(classes, ask(model, "predict", plane, grid)),
            values=log_probabilities(model, plane, grid),
            points=points,
            labels=None if labels is None else class_numbers(classes, labels),
            predicted=class_numbers(classes, answers(model, "predict", rows)),
            classes=[str(c) for c in (classes if class_names is None else class_names)],
            plane=plane,
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def _rows(self, ax: Any, colors: list[Any]) -> None:
        super()._rows(ax, colors)
        from matplotlib.patches import Ellipse

        for mean, covariance, color in zip(self.means, self.covariances, class_colors(len(self.classes)), strict=True):
            long, short, angle = ellipse_axes(covariance)
            for times, style in DEVIATIONS.items():
                look = {"fill": False, "edgecolor": color, "ls": style, "lw": 1.8, "zorder": 3}
                ax.add_patch(Ellipse(mean, 2 * times * long, 2 * times * short, angle=angle, **look))
        for times, style in DEVIATIONS.items():
            told = f"{times} standard deviation{'' if times == 1 else 's'}"
            ax.plot([], [], color=NEUTRAL, lw=1.8, ls=style, label=told)

    def _title(self) -> str:
        told = "1 row lacks an entry" if self.n_left_out == 1 else f"{self.n_left_out:,} rows lack entries"
        return "\n".join(part for part in (self.name, f"{told}: left out" if self.n_left_out else "") if part)


def _two_columns(names: list[str], features: Any) -> list[int]:
    """Give the numbers of the two columns to show."""
    if features is None and len(names) == 2:
        return [0, 1]
    if features is None or len(features) != 2:
        raise ValueError(f"Of {len(names)} columns, two can be shown: name them as features=(…, …), or use BoundaryDisplay.")
    for feature in features:
        if not (feature in names if isinstance(feature, str) else 0 <= int(feature) < len(names)):
            raise ValueError(f"features names the column {feature!r}, which is not among {names}.")
    columns = [names.index(f) if isinstance(f, str) else int(f) for f in features]
    if columns[0] == columns[1]:
        raise ValueError(f"features must name two different columns, got {list(features)}.")
    return columns
