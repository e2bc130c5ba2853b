"""Hidden states along a sequence: how probable each is in every row, and the most probable path.

Two answers to the same question stand one above the other. The probabilities of the states given all rows fill the picture, one
color a state; the strip below has the colors of Viterbi's path. Where the strip shows a color that is not the widest above it,
the best path as a whole goes through a state that is not the most probable in that row.
"""

import sys
import warnings
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import MAX_ROWS, answers, axes, class_colors, ink, quiet, some_rows

STRIP = 0.08  # height of the strip, as a share of the picture


class StatesDisplay:
    """Probabilities of hidden states over time, and the most probable path.

    Parameters
    ----------
    probabilities : (rows, states), given all rows.
    path : (rows,), the most probable path.
    values : (rows,), a column to draw on top, or None.
    label : What to call the column.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.hmm import GaussianHMM
    >>> X = [[0.1], [-0.2], [0.0], [5.1], [4.8], [5.0], [5.2], [0.2], [-0.1], [0.1]]
    >>> display = StatesDisplay.from_estimator(GaussianHMM(2, random_state=0).fit(X), X)
    >>> bool((display.path == display.probabilities.argmax(axis=1)).all())
    True
    """

    def __init__(
        self,
        *,
        probabilities: np.ndarray,
        path: np.ndarray,
        values: np.ndarray | None = None,
        label: str = "",
        name: str | None = None,
    ) -> None:
        self.probabilities = probabilities
        self.path = path
        self.values = values
        self.label = label
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        column: int | None = 0,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot the states of a fitted hidden Markov model along one sequence, its first `max_rows` rows; y is not looked at.

        Parameters
        ----------
        column : Number of the column to draw on top; None for none.
        """
        rows, _, names = some_rows(estimator, X, most=sys.maxsize)
        probabilities, path = answers(estimator, "predict_proba", rows), _path(estimator, rows)
        values = None if column is None else rows[:max_rows, column]
        return cls(
            probabilities=probabilities[:max_rows],
            path=path[:max_rows],
            values=values,
            label="" if column is None else str(names[column]),
            name=type(estimator).__name__ if name is None else name,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the probabilities as areas, the path as a strip below, and the column as a line."""
        from matplotlib.colors import ListedColormap

        ax = axes(ax, (8.0, 3.6))
        n, k = self.probabilities.shape
        colors, edges = class_colors(k), np.arange(n + 1) - 0.5
        for probabilities, below, color, state in zip(
            self.probabilities.T,
            np.vstack([np.zeros(n), np.cumsum(self.probabilities.T, axis=0)[:-1]]),
            colors,
            range(k),
            strict=True,
        ):
            top = below + probabilities
            steps = np.append(below, below[-1]), np.append(top, top[-1])
            ax.fill_between(edges, *steps, step="post", color=color, alpha=0.45, linewidth=0, label=f"state {state}")
        ax.pcolormesh(edges, [-STRIP, -0.02], self.path[None], cmap=ListedColormap(colors), vmin=-0.5, vmax=k - 0.5)
        ax.set(xlim=(-0.5, n - 0.5), ylim=(-STRIP, 1.0), xlabel="row", ylabel="probability of the state", title=self.name or "")
        ax.set_yticks([0.0, 0.5, 1.0])
        quiet(ax)
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.08, 1), title="strip: best path")
        if self.values is not None:
            right = ax.twinx()
            right.plot(np.arange(n), self.values, color=ink(), lw=0.9)
            right.set_ylabel(self.label)
            right.spines[["top"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _path(estimator: Any, rows: np.ndarray) -> np.ndarray:
    """Give Viterbi's path of rows of our own making."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(estimator.decode(rows)[1])
