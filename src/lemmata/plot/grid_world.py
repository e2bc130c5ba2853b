"""Grid worlds: the value of each cell, and what a policy does there."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import axes

LETTERS = 24  # cells of a side up to which values are written into them
BRIGHT = 0.55  # share of the scale above which ink is dark


class GridWorldDisplay:
    """The values of the states of a grid as colors, its policy as arrows, and marks on single cells.

    Parameters
    ----------
    value : (rows · columns,), of the cells, row after row; NaN leaves a cell empty.
    shape : Rows and columns.
    policy : (rows · columns,), number of an action for each cell, or −1 for none; or None.
    moves : Where each action points, as (to the right, down); default left, down, right, up, as in Gymnasium's FrozenLake.
    marks : Letters to write into cells, one for each, " " for none.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = GridWorldDisplay([0.1, 0.5, 0.2, 1.0], (2, 2), policy=[2, 1, 2, -1]).plot()
    >>> len(display.ax_.patches)
    3
    """

    def __init__(
        self,
        value: Any,
        shape: tuple[int, int],
        *,
        policy: Any = None,
        moves: Sequence[tuple[float, float]] = ((-1, 0), (0, 1), (1, 0), (0, -1)),
        marks: Any = None,
        name: str | None = None,
    ) -> None:
        rows, columns = shape
        self.value = np.asarray(value, dtype=float).ravel()
        self.shape = (int(rows), int(columns))
        self.policy = None if policy is None else np.asarray(policy).ravel()
        self.moves = moves
        self.marks = None if marks is None else np.asarray(marks).astype(str).ravel().tolist()  # Gymnasium's maps are bytes
        self.name = name
        for what, each in (("values", self.value), ("actions", self.policy), ("marks", self.marks)):
            if each is not None and len(each) != rows * columns:
                raise ValueError(f"{rows} × {columns} cells need as many {what}, got {len(each)}.")
        if self.policy is not None and self.policy.max() >= len(moves):
            raise ValueError(f"The policy takes action {self.policy.max()}, and moves has {len(moves)}: say where each points.")

    @classmethod
    def from_solution(
        cls, solution: Any, shape: tuple[int, int], *, ax: Any = None, name: str | None = None, **options: Any
    ) -> Self:
        """Plot `value` and `policy` of a plan, or `value_` and `policy_` of a learner.

        The states are the cells, row after row; one more, where episodes end, may follow them. A plan has no arrows where
        episodes end.
        """
        cells = int(np.prod(shape))
        value, policy = (getattr(solution, key, getattr(solution, f"{key}_", None)) for key in ("value", "policy"))
        if value is None:
            raise ValueError(f"There is no value to draw: fit the {type(solution).__name__} first.")
        if len(value) - cells not in (0, 1):
            raise ValueError(f"{shape[0]} × {shape[1]} cells are {cells}, and there are {len(value)} states.")
        policy = None if policy is None or np.ndim(policy) > 1 else np.array(policy)[:cells]
        if policy is not None and hasattr(solution, "mdp"):
            policy[solution.mdp.terminal[:cells]] = -1
        return cls(np.asarray(value)[:cells], shape, policy=policy, name=name, **options).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the grid."""
        rows, columns = self.shape
        ax = axes(ax, (1.2 + 0.55 * max(columns, 4), 0.8 + 0.55 * max(rows, 4)))
        grid = self.value.reshape(self.shape)
        drawn = ax.imshow(grid, cmap="viridis")
        ax.figure.colorbar(drawn, ax=ax, label="value", shrink=0.85)
        low, high = np.nanmin(grid), np.nanmax(grid)
        middle = low + BRIGHT * (high - low)
        for s in range(rows * columns):
            r, c = divmod(s, columns)
            ink = "black" if grid[r, c] > middle else "white"
            if self.marks is not None and self.marks[s].strip():
                ax.text(c - 0.42, r - 0.4, self.marks[s], color=ink, fontsize="x-small", ha="left", va="top")
            if self.policy is not None and self.policy[s] >= 0:
                x, y = self.moves[int(self.policy[s])]
                arrow = {"width": 0.03, "head_width": 0.2, "head_length": 0.16, "length_includes_head": True}
                ax.arrow(c - 0.28 * x, r - 0.28 * y, 0.56 * x, 0.56 * y, color=ink, lw=0, **arrow)
            elif self.policy is None and max(rows, columns) <= LETTERS and np.isfinite(grid[r, c]):
                ax.text(c, r, f"{grid[r, c]:.2g}", color=ink, fontsize="x-small", ha="center", va="center")
        ax.set(xticks=[], yticks=[], title=self.name or "")
        self.ax_, self.figure_ = ax, ax.figure
        return self
