"""What all displays share: axes made on demand, a readable number of rows, colors that work on light and dark paper."""

import warnings
from typing import Any

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.data import is_sparse

MAX_ROWS = 5_000  # more points than this hide each other and slow the page down
NEUTRAL = "0.55"  # a gray that is seen on white and on black
REFUSED = "#d1495b"
KIND_COLORS = {"proof": "#2a9d6f", "local": "#3b7dd8", "evidence": "#d08c1d"}
# Blue and orange first: they are told apart by everyone. Red is left to what is refused.
CLASS_COLORS = ("#3b7dd8", "#d08c1d", "#2a9d6f", "#9b6bc9", "#2aa3b5", "#cf6fa5", "#8a8f2e", "#8c6d5a")
CLASS_MARKS = "os^Dv<>P"  # shapes, for those who do not tell colors apart


def axes(ax: Any, figsize: tuple[float, float]) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # here, so that importing lemmata.plot costs nothing

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def head(ax: Any, text: str | None) -> None:
    """Write above a group of panels: above the figure if it has nothing else, so that a layout makes room for it."""
    if text and len(ax.figure.axes) == 1:
        ax.figure.suptitle(text, fontsize="medium")
    elif text:
        ax.set_title(text, pad=18)


def sample_rows(n: int, most: int = MAX_ROWS) -> np.ndarray:
    """Choose at most so many of n rows, the same ones every time.

    >>> sample_rows(3)
    array([0, 1, 2])
    >>> len(sample_rows(1_000_000))
    5000
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def some_rows(estimator: Any, X: Any, y: Any = None, most: int = MAX_ROWS) -> tuple[np.ndarray, Any, list[str]]:
    """Take at most so many rows of a table, wherever it lives: dense rows, their targets, and the names of the columns.

    >>> some_rows(None, [[1.0, 2.0], [3.0, 4.0]], [0, 1])
    (array([[1., 2.],
           [3., 4.]]), array([0, 1]), ['x0', 'x1'])
    """
    known = getattr(estimator, "feature_names_in_", None)
    blocks = Blocks.of(X, y, columns=None if known is None else list(known), labels=True)
    rows, target = blocks.take(sample_rows(blocks.n_rows, most))
    names = blocks.columns if known is None else list(known)
    return rows.toarray() if is_sparse(rows) else rows, target, names or [f"x{j}" for j in range(blocks.n_columns)]


def filled(X: np.ndarray) -> np.ndarray:
    """Put the mean of a column where it lacks a value, so that the row has a place in a picture.

    >>> filled(np.array([[1.0, np.nan], [3.0, 5.0]]))
    array([[1., 5.],
           [3., 5.]])
    """
    missing = np.isnan(X)
    if not missing.any():
        return X
    mean = np.where(missing, 0.0, X).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, mean, X)


def answers(estimator: Any, verb: str, X: np.ndarray, **options: Any) -> np.ndarray:
    """Call `predict` or another method on rows of our own making, which have no column names to be checked."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(getattr(estimator, verb)(X, **options))


def class_colors(n: int) -> list[Any]:
    """Give n colors that are told apart, the same ones for the same n."""
    if n <= len(CLASS_COLORS):
        return list(CLASS_COLORS[:n])
    import matplotlib as mpl

    return [mpl.colormaps["turbo"](j / (n - 1)) for j in range(n)]


def ink() -> Any:
    """Return the color of text, which is seen on whatever the paper is."""
    import matplotlib as mpl

    return mpl.rcParams["text.color"]


def outlined(text: Any, ax: Any) -> None:
    """Give a text an edge in the color of the paper, if that has one, so that it is read on top of points."""
    from matplotlib.colors import to_rgba
    from matplotlib.patheffects import withStroke

    if to_rgba(ax.get_facecolor())[3] > 0:
        text.set_path_effects([withStroke(linewidth=2.5, foreground=ax.get_facecolor())])  # points


def quiet(ax: Any) -> None:
    """Take away the frame that carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
