"""What factors are made of: their loadings on the columns, as bars or, where columns are pixels, as pictures."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, head, quiet
from lemmata.plot.importance import LETTERS
from lemmata.plot.network import clipped

UP, DOWN = CLASS_COLORS[:2]


class LoadingsDisplay:
    """The loadings of the columns on each factor as bars, positive and negative in two colors.

    Parameters
    ----------
    components : (factors, columns).
    feature_names : Names of the columns.
    factors : How many factors to show.
    top : How many columns to show: those with the largest loadings on any of these factors, in the order of the table.
    name : What to write above the plot.

    Attributes
    ----------
    columns_ : Numbers of the columns shown.
    ax_, figure_ : Axes of the first factor, and figure, of the last plot.
    axes_ : Axes of all factors.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = LoadingsDisplay([[0.8, 0.6], [-0.6, 0.8]], feature_names=["width", "height"]).plot()
    >>> len(display.axes_), [text.get_text() for text in display.ax_.get_yticklabels()]
    (2, ['width', 'height'])
    """

    def __init__(
        self,
        components: Any,
        *,
        feature_names: Sequence[str] | None = None,
        factors: int = 4,
        top: int = 15,
        name: str | None = None,
    ) -> None:
        self.components = np.asarray(components, dtype=float)
        columns = self.components.shape[1]
        self.feature_names = [f"x{j}" for j in range(columns)] if feature_names is None else [str(n) for n in feature_names]
        self.factors = factors
        self.top = top
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        factors: int = 4,
        top: int = 15,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the `components_` of a fitted model; rows are not read, but their columns may have names."""
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", getattr(X, "columns", None))
        name = type(estimator).__name__ if name is None else name
        return cls(estimator.components_, feature_names=feature_names, factors=factors, top=top, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the factors side by side."""
        shown = self.components[: self.factors]
        largest = np.abs(shown).max(axis=0)
        self.columns_ = np.sort(np.argsort(-largest, kind="stable")[: self.top])
        ax = axes(ax, (1.6 + 1.9 * len(shown), 1.2 + 0.28 * max(len(self.columns_), 3)))
        head(ax, self.name)
        self.axes_ = panels_beside(ax, len(shown))
        at = np.arange(len(self.columns_))
        for k, (panel, row) in enumerate(zip(self.axes_, shown[:, self.columns_], strict=True)):
            panel.barh(at, row, height=0.66, color=np.where(row >= 0, UP, DOWN).tolist())
            panel.axvline(0, color=NEUTRAL, lw=0.8)
            panel.set_title(f"factor {k + 1}", fontsize="small")
            panel.set_ylim(len(at) - 0.5, -0.5)
            panel.tick_params(left=False, labelleft=k == 0, labelsize="small")
            quiet(panel)
        self.ax_, self.figure_ = self.axes_[0], ax.figure
        self.ax_.set_yticks(at, [clipped(self.feature_names[j], LETTERS) for j in self.columns_])
        return self


class FactorImagesDisplay:
    """Factors over pixels as pictures, in a grid.

    Where loadings are of both signs, blue is negative, red positive and white zero, on one scale for all; else dark is large.

    Parameters
    ----------
    images : (factors, height, width).
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes around all pictures, and figure, of the last plot.
    axes_ : Axes of each picture.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.decomposition import PCA
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> display = FactorImagesDisplay.from_estimator(PCA(6).fit(X), shape=(8, 8))
    >>> display.images.shape, len(display.axes_)
    ((6, 8, 8), 6)
    """

    def __init__(self, images: Any, *, name: str | None = None) -> None:
        self.images = np.asarray(images, dtype=float)
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        shape: tuple[int, int],
        factors: int = 24,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the first `components_` of a model of pictures with height × width = shape pixels; rows are not read."""
        components = np.asarray(estimator.components_, dtype=float)[:factors]
        if shape[0] * shape[1] != components.shape[1]:
            raise ValueError(f"Pictures of {shape[0]} × {shape[1]} pixels have not {components.shape[1]} columns.")
        name = type(estimator).__name__ if name is None else name
        return cls(components.reshape(-1, *shape), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the pictures."""
        n = len(self.images)
        across = min(n, max(3, int(np.ceil(np.sqrt(1.6 * n)))))
        down = -(-n // across)
        ax = axes(ax, (1.1 * across, 1.15 * down + 0.3))
        largest = float(np.abs(self.images).max()) or 1.0
        signed = bool((self.images < 0).any())
        style = (
            {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest} if signed else {"cmap": "Greys", "vmin": 0, "vmax": largest}
        )
        place = ax.get_subplotspec()
        grid = (
            ax.figure.add_gridspec(down, across) if place is None else place.subgridspec(down, across, wspace=0.06, hspace=0.06)
        )
        ax.set_axis_off()
        head(ax, self.name)
        self.axes_ = []
        for i, image in enumerate(self.images):
            panel = ax.figure.add_subplot(grid[i // across, i % across])
            panel.imshow(image, interpolation="nearest", **style)
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_color(NEUTRAL)
            self.axes_.append(panel)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def panels_beside(ax: Any, n: int) -> list[Any]:
    """Divide axes into so many, side by side, that share their vertical axis."""
    if n == 1:
        return [ax]
    figure, place = ax.figure, ax.get_subplotspec()
    if place is None:  # axes that stand where they were put
        box, gap = ax.get_position(), 0.03
        width = (box.width - gap * (n - 1) * box.width) / n
        ax.set_position((box.x0, box.y0, width, box.height))
        rest = [
            figure.add_axes((box.x0 + k * (width + gap * box.width), box.y0, width, box.height), sharey=ax) for k in range(1, n)
        ]
        return [ax, *rest]
    parts = place.subgridspec(1, n)
    ax.set_subplotspec(parts[0])
    return [ax, *(figure.add_subplot(parts[k], sharey=ax) for k in range(1, n))]
