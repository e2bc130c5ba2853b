"""A kernel matrix as a heat map: which rows a kernel takes to be alike."""

from typing import Any, Self

import numpy as np

from lemmata.kernels import Kernel
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, class_colors, sample_rows, some_rows

MAX_ROWS = 1_000  # more rows than a picture has points in one direction are lost
STRIP = 0.03  # share of the picture that the colors of the classes take
POSITIVE, NEGATIVE = CLASS_COLORS[0], CLASS_COLORS[1]


class KernelMatrixDisplay:
    """Heat map of k(xᵢ, xⱼ), with the rows class after class if their classes are given.

    Rows of one class that are alike show as a square on the diagonal. Where values are negative, they have a color of their
    own.

    Parameters
    ----------
    matrix : k(xᵢ, xⱼ), (rows, rows), in the order of the picture.
    labels : Number of the class of each row, sorted, or None.
    classes : What the classes are called, or None.
    order : Numbers of the rows in the table.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.kernels import RBF
    >>> display = KernelMatrixDisplay.from_kernel(RBF(gamma=1.0), [[0.0], [1.0], [0.1]], ["a", "b", "a"])
    >>> display.order, display.matrix.round(2)
    (array([0, 2, 1]), array([[1.  , 0.99, 0.37],
           [0.99, 1.  , 0.44],
           [0.37, 0.44, 1.  ]]))
    """

    def __init__(
        self,
        *,
        matrix: np.ndarray,
        labels: np.ndarray | None = None,
        classes: list[str] | None = None,
        order: np.ndarray | None = None,
        name: str | None = None,
    ) -> None:
        self.matrix = matrix
        self.labels = labels
        self.classes = classes
        self.order = np.arange(len(matrix)) if order is None else order
        self.name = name

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, y: Any = None, *, ax: Any = None, name: str | None = None, max_rows: int = MAX_ROWS
    ) -> Self:
        """Plot the matrix of a kernel of `lemmata.kernels`, or of any function of two tables, for at most `max_rows` rows of X.

        Parameters
        ----------
        y : Classes of the rows, by which they are sorted.
        """
        X, y, _ = some_rows(None, X, y, max_rows)
        K = np.asarray(kernel(X) if isinstance(kernel, Kernel) else kernel(X, X), dtype=float)
        return cls.from_matrix(K, y, ax=ax, name=repr(kernel) if name is None and isinstance(kernel, Kernel) else name)

    @classmethod
    def from_matrix(cls, K: Any, y: Any = None, *, ax: Any = None, name: str | None = None, max_rows: int = MAX_ROWS) -> Self:
        """Plot a matrix that is known, at most `max_rows` of its rows; y has the classes of the rows."""
        K = np.asarray(K, dtype=float)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(f"A kernel matrix has as many columns as rows, got shape {K.shape}.")
        order, labels, classes = sample_rows(len(K), max_rows), None, None
        if y is not None:
            found, numbers = np.unique(np.asarray(y), return_inverse=True)
            order = order[np.argsort(numbers[order], kind="stable")]
            labels, classes = numbers[order], [str(c) for c in found]
        return cls(matrix=K[np.ix_(order, order)], labels=labels, classes=classes, order=order, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, name: str | None = None, max_rows: int = MAX_ROWS
    ) -> Self:
        """Plot the matrix of the kernel of a fitted model; if that takes a kernel matrix for its rows, X is the matrix.

        Parameters
        ----------
        y : Classes of the rows, by which they are sorted.
        """
        name = type(estimator).__name__ if name is None else name
        if isinstance(getattr(estimator, "kernel", None), str) and estimator.kernel == "precomputed":
            return cls.from_matrix(X, y, ax=ax, name=name, max_rows=max_rows)
        if not isinstance(getattr(estimator, "kernel_", None), Kernel):
            raise ValueError(f"{type(estimator).__name__} has no kernel_ of lemmata.kernels; use from_kernel or from_matrix.")
        name = f"{name}: {estimator.kernel_!r}"
        return cls.from_kernel(estimator.kernel_, X, y, ax=ax, name=name, max_rows=max_rows)

    def plot(self, ax: Any = None) -> Self:
        """Draw the matrix, and strips with the colors of the classes."""
        from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm, to_rgba

        ax = axes(ax, (5.8, 4.8))
        K, n = self.matrix, len(self.matrix)
        low, high = min(float(K.min()), 0.0), max(float(K.max()), 0.0)
        reach = max(-low, high) or 1.0
        paper = to_rgba(NEUTRAL, 0.06)
        shades = LinearSegmentedColormap.from_list("kernel", [to_rgba(NEGATIVE), paper, to_rgba(POSITIVE)])
        image = ax.imshow(
            K, cmap=shades, norm=TwoSlopeNorm(0.0, -reach, reach), extent=(0, n, n, 0), interpolation="nearest", aspect="equal"
        )
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
        bar.ax.set_ylim(low, high if high > low else 1.0)
        bar.outline.set_visible(False)
        ax.spines[:].set_visible(False)
        self._strips(ax, n)
        ax.set(title=self.name or "", xlabel="row" if self.labels is None else "row, class after class")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _strips(self, ax: Any, n: int) -> None:
        """Draw the colors of the classes beside the rows, and their names."""
        if self.labels is None or self.classes is None:
            return
        colors, width = class_colors(len(self.classes)), STRIP * n
        middles = []
        for k, color in enumerate(colors):
            first, last = np.searchsorted(self.labels, [k, k + 1])
            middles.append((first + last) / 2)
            ax.fill([-width, 0, 0, -width], [first, first, last, last], color=color, lw=0, clip_on=False)
            if 0 < first < n:
                ax.plot([0, n], [first, first], color=NEUTRAL, lw=0.8)
                ax.plot([first, first], [0, n], color=NEUTRAL, lw=0.8)
        ax.set(xlim=(-width, n), ylim=(n, 0))
        ax.set_yticks(middles, self.classes)
        ax.tick_params(axis="y", length=0)
