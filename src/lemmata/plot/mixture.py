"""A mixture of Gaussians and the rows that it explains.

A linear map D of the rows turns N(μ, Σ) into N(Dᵀμ, DᵀΣD): on two columns or two directions every component is again a
Gaussian, whose lines of equal density are ellipses with half-axes √λ along the eigenvectors of DᵀΣD, at one standard
deviation. A row belongs to all components at once, with the responsibilities P(k|x): its color is the mix of theirs.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.stats import norm
from sklearn.utils import get_tags

from lemmata.mixture.gaussian import as_matrices
from lemmata.plot.cluster import principal_directions
from lemmata.plot.drawing import CLASS_MARKS, MAX_ROWS, NEUTRAL, answers, axes, class_colors, ink, outlined, quiet, some_rows

DEVIATIONS: dict[int, Any] = {1: "-", 2: (0, (4, 2))}  # of the ellipses, and how they are drawn
LISTED = 12  # components of the legend
BINS = (20, 60)  # least and most of a histogram
POINTS = 400  # of a curve
REACH = 3.5  # standard deviations of a component that a curve shows


def gaussians(estimator: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Give the weights, means and covariance matrices of the Gaussians of a fitted density, or None if it has none.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture
    >>> gaussians(GaussianMixture(1, covariance_type="spherical", reg_covar=0.0).fit([[0.0, 2.0], [4.0, 0.0]]))
    (array([1.]), array([[2., 1.]]), array([[[2.5, 0. ],
            [0. , 2.5]]]))
    """
    if hasattr(estimator, "means_") and hasattr(estimator, "covariances_"):
        means, kind = np.asarray(estimator.means_, dtype=float), getattr(estimator, "covariance_type", "full")
        matrices = as_matrices(np.asarray(estimator.covariances_, dtype=float), kind, *means.shape)
        return np.asarray(estimator.weights_, dtype=float), means, matrices
    if hasattr(estimator, "mean_") and hasattr(estimator, "covariance_"):
        return np.ones(1), np.asarray(estimator.mean_, dtype=float)[None], np.asarray(estimator.covariance_, dtype=float)[None]
    return None


def ellipse_axes(covariance: np.ndarray) -> tuple[float, float, float]:
    """Give the half-axes of the ellipse of one standard deviation, the longer first, and the angle of that one in degrees.

    Examples
    --------
    >>> ellipse_axes(np.array([[4.0, 0.0], [0.0, 9.0]]))
    (3.0, 2.0, 90.0)
    """
    values, vectors = np.linalg.eigh(covariance)
    short, long = np.sqrt(np.maximum(values, 0.0))  # rounding of a component without width
    x, y = vectors[:, 1] * (1.0 if vectors[0, 1] >= 0 else -1.0)
    return float(long), float(short), float(np.degrees(np.arctan2(y, x)))


def blend(responsibilities: np.ndarray, colors: Sequence[Any]) -> np.ndarray:
    """Mix the colors of the components by the probabilities of each row: (rows, 3).

    Examples
    --------
    >>> blend(np.array([[1.0, 0.0], [0.5, 0.5]]), ["#ff0000", "#0000ff"])
    array([[1. , 0. , 0. ],
           [0.5, 0. , 0.5]])
    """
    from matplotlib.colors import to_rgb

    return np.clip(responsibilities @ np.array([to_rgb(color) for color in colors]), 0.0, 1.0)


class MixtureDisplay:
    """Rows in the mixed colors of their components, and the components as ellipses; over one column, the density.

    Ellipses lie at one and two standard deviations, inside which are 39 % and 86 % of a Gaussian in the plane; the heavier the
    component, the stronger they are drawn. The shape of a mark tells the most probable component.

    Parameters
    ----------
    points : Rows in the picture, of shape (rows, 2), or (rows, 1) for a density.
    responsibilities : Probability of each component for each row.
    weights : Probability of each component.
    means, covariances : Components in the picture, of shapes (k, 2) and (k, 2, 2), or (k, 1) and (k, 1, 1).
    labels : What to call the one or two axes.
    filled : Which rows lack entries and are shown at their mean given the others; default none.
    n_left_out : Rows that are not shown because they lack entries.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.mixture import GaussianMixture
    >>> X = [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [9.0, 2.0], [9.0, -2.0], [10.0, 0.0], [8.0, 0.0]]
    >>> display = MixtureDisplay.from_estimator(GaussianMixture(2, random_state=0).fit(X), X)
    >>> order = display.means[:, 0].argsort()
    >>> display.means[order], [ellipse_axes(covariance)[:2] for covariance in display.covariances[order]]
    (array([[0., 0.],
           [9., 0.]]), [(0.707, 0.707), (1.414, 0.707)])
    """

    def __init__(
        self,
        *,
        points: np.ndarray,
        responsibilities: np.ndarray,
        weights: np.ndarray,
        means: np.ndarray,
        covariances: np.ndarray,
        labels: Sequence[str],
        filled: np.ndarray | None = None,
        n_left_out: int = 0,
        name: str | None = None,
    ) -> None:
        self.points = points
        self.responsibilities = responsibilities
        self.weights = weights
        self.means = means
        self.covariances = covariances
        self.labels = labels
        self.filled = np.zeros(len(points), dtype=bool) if filled is None else filled
        self.n_left_out = n_left_out
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot a fitted mixture of Gaussians and rows, at most `max_rows` of them; y is not looked at.

        Parameters
        ----------
        estimator : With weights_, means_ and covariances_, as `lemmata.mixture.GaussianMixture`, or with mean_ and covariance_.
        X : Rows. One with missing entries is shown at its mean given the others if the estimator can fill it, else left out.
        features : One or two columns, by number or name; default all if there are at most two, else two principal directions.
        """
        parameters = gaussians(estimator)
        if parameters is None:
            kind = type(estimator).__name__
            raise ValueError(f"{kind} has no means_ and covariances_: fit a mixture of Gaussians, or use ClusterDisplay.")
        weights, means, matrices = parameters
        X, _, names = some_rows(estimator, X, None, max_rows)
        columns = _columns(names, features)
        X, n_rows = np.asarray(X, dtype=float), len(X)
        fill = "fill" if hasattr(estimator, "fill") else "transform"  # of a single Gaussian
        fills = hasattr(estimator, fill) and get_tags(estimator).input_tags.allow_nan
        if columns is not None and len(columns) == 1:
            X = X[~np.isnan(X[:, columns[0]])]  # a guess has no place among the counts of a histogram
        X = X if fills else X[~np.isnan(X).any(axis=1)]
        if not len(X):
            raise ValueError(f"There is no row to show: each lacks entries that {type(estimator).__name__} cannot do without.")
        rows = answers(estimator, fill, X) if np.isnan(X).any() else X
        origin, directions, labels = _view(rows, names, columns)
        shared = answers(estimator, "predict_proba", X) if len(weights) > 1 else np.ones((len(X), 1))
        return cls(
            points=(rows - origin) @ directions,
            responsibilities=shared,
            weights=weights,
            means=(means - origin) @ directions,
            covariances=np.einsum("ia,kij,jb->kab", directions, matrices, directions),
            labels=labels,
            filled=(np.isnan(X) @ (directions != 0)).any(axis=1),
            n_left_out=n_rows - len(X),
            name=type(estimator).__name__ if name is None else name,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the rows and the components."""
        ax = axes(ax, (6.4, 4.6))
        colors = class_colors(len(self.weights))
        if self.points.shape[1] == 1:
            self._density(ax, colors)
        else:
            self._plane(ax, colors)
        if len(self.weights) > LISTED:
            ax.plot([], [], ls="", label=f"and {len(self.weights) - LISTED} lighter components")
        if self.n_left_out:
            ax.plot([], [], ls="", label=f"{_lacking(self.n_left_out)}: left out")
        ax.set_title(self.name or "")
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plane(self, ax: Any, colors: list[Any]) -> None:
        """Draw the rows, and the ellipses of the components above them."""
        from matplotlib.patches import Ellipse

        own, mixed = self.responsibilities.argmax(axis=1), blend(self.responsibilities, colors)
        for k, color in enumerate(colors):
            mark, whole, guessed = CLASS_MARKS[k % len(CLASS_MARKS)], (own == k) & ~self.filled, (own == k) & self.filled
            ax.scatter(*self.points[whole].T, s=16, alpha=0.7, marker=mark, c=mixed[whole], linewidths=0)
            ax.scatter(*self.points[guessed].T, s=16, alpha=0.7, marker=mark, facecolors="none", edgecolors=mixed[guessed])
            ax.scatter([], [], s=30, color=color, marker=mark, label=self._called(k))
        strengths = self.weights / self.weights.max()
        for k, (mean, covariance, strength) in enumerate(zip(self.means, self.covariances, strengths, strict=True)):
            long, short, angle = ellipse_axes(covariance)
            look = {
                "fill": False,
                "edgecolor": colors[k],
                "lw": 0.8 + 1.8 * strength,
                "alpha": 0.5 + 0.5 * strength,
                "zorder": 3,
            }
            for times, style in DEVIATIONS.items():
                ax.add_patch(Ellipse(mean, 2 * times * long, 2 * times * short, angle=angle, ls=style, **look))
            outlined(ax.text(*mean, str(k), ha="center", va="center", weight="bold", color=ink(), zorder=4), ax)
        ax.autoscale_view()
        for times, style in DEVIATIONS.items():
            inside = -np.expm1(-(times**2) / 2)  # of a Gaussian in the plane
            told = f"{times} standard deviation{'' if times == 1 else 's'}"
            ax.plot([], [], color=NEUTRAL, ls=style, label=f"{told} ({inside:.0%})")
        if self.filled.any():
            told = f"{_lacking(int(self.filled.sum()))}:\nat the mean given the others"
            ax.scatter([], [], s=30, facecolors="none", edgecolors=NEUTRAL, label=told)
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1])

    def _density(self, ax: Any, colors: list[Any]) -> None:
        """Draw the histogram of the rows, the density, and what each component adds to it."""
        values, means = self.points[:, 0], self.means[:, 0]
        spread = np.sqrt(np.maximum(self.covariances[:, 0, 0], np.finfo(float).tiny))
        bins = int(np.clip(len(np.histogram_bin_edges(values, "auto")) - 1, *BINS))
        ax.hist(values, bins, density=True, color=NEUTRAL, alpha=0.3, label=f"{len(values):,} rows")
        reach = np.linspace(-REACH, REACH, POINTS // 4)
        near = (means[:, None] + spread[:, None] * reach)[self.weights > 0]  # so that a narrow component is smooth
        grid = np.unique(np.append(near, np.linspace(min(values.min(), near.min()), max(values.max(), near.max()), POINTS)))
        parts = self.weights[:, None] * norm.pdf(grid, means[:, None], spread[:, None])
        for k, (part, color) in enumerate(zip(parts, colors, strict=True)):
            ax.fill_between(grid, part, color=color, alpha=0.18, lw=0)
            ax.plot(grid, part, color=color, lw=1.6, ls=(0, (4, 2)), label=self._called(k))
            outlined(ax.text(means[k], part.max() / 2, str(k), ha="center", va="center", weight="bold", color=ink()), ax)
        ax.plot(grid, parts.sum(axis=0), color=ink(), lw=2, label="density")
        ax.set(xlabel=self.labels[0], ylabel="density", ylim=(0, None))

    def _called(self, k: int) -> str | None:
        """Name a component for the legend, if it is one of the heaviest."""
        heaviest = np.argsort(-self.weights, kind="stable")[:LISTED]
        return f"{k}: weight {self.weights[k]:.2f}" if k in heaviest else None


def _lacking(n: int) -> str:
    return "1 row lacks entries" if n == 1 else f"{n:,} rows lack entries"


def _columns(names: list[str], features: Any) -> list[int] | None:
    """Give the numbers of the columns to show, or None if there are too many for one picture."""
    if features is None:
        return list(range(len(names))) if len(names) <= 2 else None
    features = [features] if isinstance(features, str | int) else features
    for feature in features:
        known = feature in names if isinstance(feature, str) else 0 <= int(feature) < len(names)
        if not known:
            raise ValueError(f"features names the column {feature!r}, which is not among {names}.")
    columns = [names.index(feature) if isinstance(feature, str) else int(feature) for feature in features]
    if not (1 <= len(columns) <= 2 and len(set(columns)) == len(columns)):
        raise ValueError(f"features must be one column or two different ones, got {list(features)}.")
    return columns


def _view(rows: np.ndarray, names: list[str], columns: list[int] | None) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Give the origin and the directions (as columns) of the picture, and what to call them."""
    if columns is not None:
        return np.zeros(len(names)), np.eye(len(names))[:, columns], [names[j] for j in columns]
    mean, directions, shares = principal_directions(rows)
    return mean, directions, [f"first principal direction ({shares[0]:.0%} of the variance)", f"second ({shares[1]:.0%})"]
