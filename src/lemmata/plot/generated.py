"""What a generative model makes: pictures, or points beside those it learned from; and the plane of its latent variables."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import NEUTRAL, axes, class_colors, quiet, some_rows


class GeneratedDisplay:
    """Rows that a model drew: as pictures in a grid where columns are pixels, else as points on two columns.

    Parameters
    ----------
    rows : (n, columns), what was drawn.
    data : Rows that the model learned from, drawn in gray under the points, or None.
    image_shape : Height and width of the pictures; None for points.
    n_columns : Pictures beside each other; default a square of them.
    name : What to write above the plot.

    Attributes
    ----------
    picture_ : All pictures in one array, where there are pictures.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = GeneratedDisplay(np.arange(24.0).reshape(6, 4), image_shape=(2, 2), n_columns=3).plot()
    >>> display.picture_.shape  # two rows of three pictures, with a pixel between them
    (5, 8)
    """

    def __init__(
        self,
        rows: Any,
        *,
        data: Any = None,
        image_shape: tuple[int, int] | None = None,
        n_columns: int | None = None,
        name: str | None = None,
    ) -> None:
        self.rows = np.asarray(rows, dtype=float)
        if image_shape is not None and self.rows.shape[1] != image_shape[0] * image_shape[1]:
            raise ValueError(
                f"Pictures of {image_shape[0]} × {image_shape[1]} pixels do not have {self.rows.shape[1]} columns."
            )
        self.data = data
        self.image_shape = image_shape
        self.n_columns = n_columns
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        n: int = 64,
        random_state: Any = 0,
        image_shape: tuple[int, int] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Draw n rows from a fitted model with `sample`, and show them, beside those of X if given and they are points."""
        drawn = estimator.sample(n, random_state=random_state)
        drawn = drawn[0] if isinstance(drawn, tuple) else drawn
        data = None if X is None else some_rows(estimator, X)[0]
        name = type(estimator).__name__ if name is None else name
        return cls(drawn, data=data, image_shape=image_shape, name=name).plot(ax)

    @classmethod
    def from_latent_plane(
        cls,
        estimator: Any,
        *,
        image_shape: tuple[int, int],
        n: int = 12,
        reach: float = 2.0,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Show what a model makes of a grid of n × n points of its first two latent variables, from −reach to reach."""
        if estimator.latent_dim < 2:
            raise ValueError(f"A plane needs two latent variables, and {type(estimator).__name__} has one.")
        line = np.linspace(-reach, reach, n)
        across, up = np.meshgrid(line, line[::-1])
        z = np.zeros((n * n, int(estimator.latent_dim)))
        z[:, 0] = across.ravel()
        z[:, 1] = up.ravel()
        decode = estimator.inverse_transform if hasattr(estimator, "inverse_transform") else estimator.generate
        made = decode(z)
        name = f"{type(estimator).__name__}: latent plane" if name is None else name
        return cls(made, image_shape=image_shape, n_columns=n, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw pictures or points."""
        ax = axes(ax, (5.0, 5.0))
        if self.image_shape is None:
            if self.data is not None:
                ax.scatter(*_points(np.asarray(self.data)).T, s=8, color=NEUTRAL, alpha=0.4, lw=0, label="data")
            ax.scatter(*_points(self.rows).T, s=10, color=class_colors(1)[0], alpha=0.6, lw=0, label="generated")
            ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
            ax.set(xlabel="first column", ylabel="second")
            quiet(ax)
        else:
            self.picture_ = self._tiled()
            ax.imshow(self.picture_, cmap="gray_r")
            ax.set_axis_off()
        ax.set_title(self.name or "")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _tiled(self) -> np.ndarray:
        """Put the pictures beside and below each other, with a line of one pixel between them."""
        (height, width), n = self.image_shape, len(self.rows)
        columns = self.n_columns or int(np.ceil(np.sqrt(n)))
        lines = -(-n // columns)
        sheet = np.full((lines * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
        for k, row in enumerate(self.rows):
            i, j = divmod(k, columns)
            top, left = i * (height + 1), j * (width + 1)
            sheet[top : top + height, left : left + width] = row.reshape(height, width)
        return sheet


def _points(rows: np.ndarray) -> np.ndarray:
    """Give the first two columns; beside a single one, zeros."""
    return rows[:, :2] if rows.shape[1] > 1 else np.column_stack([rows, np.zeros(len(rows))])
