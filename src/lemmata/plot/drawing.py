"""What all displays share: axes made on demand, a readable number of rows, colors that work on light and dark paper."""

from typing import Any

import numpy as np

MAX_ROWS = 5_000  # more points than this hide each other and slow the page down
NEUTRAL = "0.55"  # a gray that is seen on white and on black
REFUSED = "#d1495b"
KIND_COLORS = {"proof": "#2a9d6f", "local": "#3b7dd8", "evidence": "#d08c1d"}


def axes(ax: Any, figsize: tuple[float, float]) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # here, so that importing lemmata.plot costs nothing

    return plt.subplots(figsize=figsize, layout="constrained")[1]


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


def quiet(ax: Any) -> None:
    """Take away the frame that carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
