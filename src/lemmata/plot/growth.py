"""How rich a class of hypotheses is: its labelings of m points against all there are, and against Sauer's bound."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_MARKS, NEUTRAL, axes, class_colors, ink, quiet
from lemmata.theory.classes.sauer import sauer_bound

MOST = 1000  # points up to which 2^m is a number of the machine


class GrowthDisplay:
    """Growth functions on a logarithmic axis, against 2ᵐ and Sauer's bound, with the VC dimension marked.

    A class of VC dimension d gives all 2ᵐ labelings to some m ≤ d points, where its curve is the straight line; from d + 1
    points on it stays below the line, and by Sauer's lemma it grows no faster than a polynomial of degree d.

    Parameters
    ----------
    growth : Mapping from the name of a class to its numbers of labelings of 1, 2, … points.
    dimensions : Mapping from the name of a class to its VC dimension, an int or infinity.
    max_m : Number of points of the right end.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.theory.classes.halfspaces import Halfspaces
    >>> display = GrowthDisplay.from_class(Halfspaces(2), max_m=6)
    >>> display.growth, display.dimensions
    ({'Halfspaces(2)': [2, 4, 8, 14, 22, 32]}, {'Halfspaces(2)': 3})
    """

    def __init__(
        self, growth: Mapping[str, list[int]], dimensions: Mapping[str, float], *, max_m: int, name: str | None = None
    ) -> None:
        self.growth = growth
        self.dimensions = dimensions
        self.max_m = max_m
        self.name = name

    @classmethod
    def from_class(cls, hypothesis_class: Any, *, max_m: int = 12, ax: Any = None, name: str | None = None) -> Self:
        """Plot the growth of a class, or of several.

        Parameters
        ----------
        hypothesis_class : Class of `lemmata.theory` with `growth(m)` and `vc_dim`; a list of them, or a mapping from names.
        max_m : Number of points of the right end; a curve ends before where the growth is not known.
        """
        if not (isinstance(max_m, int | np.integer) and 1 <= max_m <= MOST):
            raise ValueError(f"max_m={max_m!r} must be a whole number of points from 1 to {MOST}.")
        if not isinstance(hypothesis_class, Mapping):
            several = hypothesis_class if isinstance(hypothesis_class, list | tuple) else [hypothesis_class]
            hypothesis_class = {repr(each): each for each in several}
        if not hypothesis_class:
            raise ValueError("There is no class to plot: give one with growth(m) and vc_dim.")
        for key, each in hypothesis_class.items():
            if not (hasattr(each, "growth") and hasattr(each, "vc_dim")):
                raise ValueError(f"{key} is not a hypothesis class: it needs growth(m) and vc_dim, as Halfspaces(2) has.")
        growth = {str(key): _known_growth(each, int(max_m)) for key, each in hypothesis_class.items()}
        dimensions = {str(key): each.vc_dim for key, each in hypothesis_class.items()}
        return cls(growth, dimensions, max_m=int(max_m), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves; that of all labelings leaves the picture where the others stay far below."""
        ax = axes(ax, (7.8, 4.6))
        m = np.arange(1, self.max_m + 1)
        ax.plot(m, 2.0**m, color=NEUTRAL, lw=1.4, label="all labelings, $2^m$")
        for k, (key, color) in enumerate(zip(self.growth, class_colors(len(self.growth)), strict=True)):
            counts = np.array(self.growth[key], dtype=float)
            dimension = self.dimensions[key]
            told = f"{key}, VC dimension {'∞' if np.isinf(dimension) else int(dimension)}"
            few = self.max_m <= 25  # points that can be told apart
            mark = CLASS_MARKS[k % len(CLASS_MARKS)] if few else None
            ax.plot(m[: len(counts)], counts, color=color, lw=2.2, marker=mark, ms=5, label=told)
            if 1 <= dimension <= self.max_m:
                ax.plot(dimension, 2.0**dimension, "o", ms=14, mfc="none", mec=color, mew=1.6, zorder=4)
        finite = sorted({int(d) for d in self.dimensions.values() if np.isfinite(d)})
        highest = max(float(max(counts)) for counts in self.growth.values())
        for d in finite:
            bound = np.array([float(sauer_bound(int(n), d)) for n in m])
            highest = max(highest, bound[-1])
            label = "Sauer's bound for dimension d" if d == finite[0] else None
            ax.plot(m, bound, color=ink(), lw=1.1, ls=(0, (4, 3)), label=label, zorder=3)
            ax.annotate(f"d = {d}", (m[-1], bound[-1]), (6, 0), textcoords="offset points", va="center", fontsize="small")
        if any(1 <= d <= self.max_m for d in self.dimensions.values()):
            label = "VC dimension: the last\npoint on the line $2^m$"
            ax.plot([], [], "o", ms=9, mfc="none", mec=ink(), mew=1.3, label=label)
        ax.set_yscale("log", base=2)
        ax.set(xlim=(min(1, self.max_m - 1) - 0.02 * self.max_m, 1.15 * self.max_m))  # room for what the bounds are called
        ax.set(ylim=(1, 4 * highest), xlabel="number of points m", ylabel="number of labelings")
        ax.set_title(self.name or "growth: labelings of m points, at most")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _known_growth(hypothesis_class: Any, max_m: int) -> list[int]:
    """Give the growth for 1, 2, … points, as far as the class knows it."""
    counts: list[int] = []
    for m in range(1, max_m + 1):
        try:
            counts.append(int(hypothesis_class.growth(m)))
        except ValueError:  # what is not known exactly is not drawn
            if not counts:
                raise
            break
    return counts
