"""Junction trees as pictures: which variables are held together, and what passes between them."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, ink
from lemmata.plot.graph_layout import tidy
from lemmata.plot.network import FONT, SMALL, box, canvas, clipped, text_width

MOST_FULL = 16  # cliques up to which all variables are written
MOST_NAMED = 60  # cliques up to which some are
LINE = 11.0  # points from one line of a text to the next
PAGE = 1.35  # width against height that a picture likes to have


class JunctionTreeDisplay:
    """Cliques as boxes with their variables, and on the way from a clique to its parent the separator: what both hold.

    The cliques in which messages are collected, the roots, have thick edges. Of many cliques, or of large ones, some variables
    are written and the others counted.

    Parameters
    ----------
    cliques : Names of the variables of each clique.
    separators : Names of the variables that each clique shares with its parent; empty for a root.
    parents : Number of the clique that each one hangs on; -1 for a root.
    name : What to write above the plot, before the width.

    Attributes
    ----------
    places_ : Centers of the boxes, in points.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.graphical import FactorGraph
    >>> graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])])
    >>> display = JunctionTreeDisplay.from_estimator(graph)
    >>> display.cliques, display.separators, display.ax_.get_title()
    ([('a', 'b'), ('b', 'c')], [('b',), ()], 'Junction tree: 2 cliques, width 1')
    """

    def __init__(
        self, *, cliques: list[tuple[str, ...]], separators: list[tuple[str, ...]], parents: list[int], name: str | None = None
    ) -> None:
        self.cliques = cliques
        self.separators = separators
        self.parents = parents
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot the junction tree of a model, or a `JunctionTree`; X and y are not looked at."""
        tree = estimator.junction_tree() if hasattr(estimator, "junction_tree") else estimator
        cliques, separators = ([tuple(map(str, held)) for held in kind] for kind in (tree.cliques, tree.separators))
        return cls(cliques=cliques, separators=separators, parents=list(tree.parents), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Lay out the forest, downwards or to the right, whichever suits the page; then draw ways, boxes and separators."""
        n = len(self.cliques)
        boxes = [self._lines(held, 26.0 if n <= MOST_FULL else 18.0) for held in self.cliques]
        ways = [self._lines(held, 20.0 if n <= MOST_FULL else 14.0) for held in self.separators]
        ways = [lines if parent >= 0 else [] for lines, parent in zip(ways, self.parents, strict=True)]
        sizes, small = _sizes(boxes, FONT, (16.0, 8.0)), _sizes(ways, SMALL, (13.0, 6.0))
        layouts = [_laid_out(self.parents, sizes, small, down) for down in (True, False)]
        down = min((True, False), key=lambda down: abs(np.log(np.divide(*layouts[not down][2]) / PAGE)))
        places, spots, _ = layouts[not down]
        self.places_ = places
        corners = [places - sizes / 2, places + sizes / 2, spots - small / 2, spots + small / 2]
        width = max(map(len, self.cliques)) - 1
        many = f"{n} clique" + "s" * (n > 1)
        ax, scale = canvas(ax, corners, f"{self.name or 'Junction tree'}: {many}, width {width}")
        for c, parent in enumerate(self.parents):
            if parent >= 0:
                ax.plot(*_way(places, sizes, spots[c], c, parent, down).T, color=NEUTRAL, lw=1.1 * scale, zorder=2)
                box(ax, spots[c], small[c], color=CLASS_COLORS[1], face=0.16, round=0.0, scale=scale, edge=0.8)
                _write(ax, spots[c], ways[c], SMALL, scale)
        for c, parent in enumerate(self.parents):
            edge = 2.6 if parent < 0 else 1.1
            box(ax, places[c], sizes[c], color=CLASS_COLORS[0], face=0.10, round=5.0, scale=scale, edge=edge)
            _write(ax, places[c], boxes[c], FONT, scale)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _lines(self, held: tuple[str, ...], letters: float) -> list[str]:
        """Write variables into lines of about so many letters; of many cliques the first few variables, and how many more."""
        n = len(self.cliques)
        if n > MOST_NAMED:
            return [str(len(held))]
        most = len(held) if n <= MOST_FULL and len(held) <= 12 else 4
        shown = held if len(held) <= most + 1 else held[:most]
        names = [clipped(v, 20 if n <= MOST_FULL else 12) for v in shown]
        rest = len(held) - len(shown)
        lines = [""]
        for i, name in enumerate([*names, *([f"and {rest} more"] if rest else [])]):
            word = name if i == len(names) - 1 + bool(rest) or (rest and i == len(names) - 1) else name + ","
            if lines[-1] and len(lines[-1]) + len(word) + 1 > letters:
                lines.append(word)
            else:
                lines[-1] = f"{lines[-1]} {word}".strip()
        return lines if held else ["∅"]


def _sizes(texts: list[list[str]], font: float, pad: tuple[float, float]) -> np.ndarray:
    """Measure the boxes of texts; (0, 0) where there is none."""
    step = LINE * font / FONT
    wide = [max((text_width(line, font) + pad[0] for line in lines), default=0.0) for lines in texts]
    return np.column_stack([wide, [step * len(lines) + pad[1] if lines else 0.0 for lines in texts]])


def _laid_out(
    parents: list[int], sizes: np.ndarray, small: np.ndarray, down: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Place cliques and separators of a forest that grows down or to the right; give the size of all, too."""
    across, along = (0, 1) if down else (1, 0)
    n, depth = len(parents), np.array([_depth(parents, c) for c in range(len(parents))])
    spread = tidy(parents, np.maximum(sizes, small)[:, across], gap=12.0)
    places, spots = np.zeros((n, 2)), np.zeros((n, 2))
    places[:, across] = spots[:, across] = spread
    reach = 0.0
    for level in range(depth.max() + 1):
        here = depth == level
        own, between = sizes[here, along].max(), small[here, along].max()
        if level:
            spots[here, along] = reach + 20.0 + between / 2
            reach += 20.0 + between + 9.0
        places[here, along] = reach + sizes[here, along] / 2  # boxes of a level begin side by side, close to their separators
        reach += own
    places[:, 1], spots[:, 1] = -places[:, 1], -spots[:, 1]
    roots = np.array(parents) < 0
    spots[roots] = places[roots]
    extent = (places + sizes / 2).max(axis=0) - (places - sizes / 2).min(axis=0)
    return places, spots, extent


def _depth(parents: list[int], c: int) -> int:
    """Count the steps to the root."""
    steps = 0
    while parents[c] >= 0:
        c, steps = parents[c], steps + 1
    return steps


def _way(places: np.ndarray, sizes: np.ndarray, spot: np.ndarray, c: int, parent: int, down: bool) -> np.ndarray:
    """Give the points of the line from a parent over the separator to its child."""
    along = int(down)
    sign = -1.0 if down else 1.0
    begin, end = places[parent].copy(), places[c].copy()
    begin[along] += sign * sizes[parent, along] / 2
    end[along] -= sign * sizes[c, along] / 2
    return np.array([begin, spot, end])


def _write(ax: Any, place: np.ndarray, lines: list[str], font: float, scale: float) -> None:
    """Write lines around a place."""
    step = LINE * font / FONT
    for i, line in enumerate(lines):
        y = place[1] + step * ((len(lines) - 1) / 2 - i)
        ax.text(place[0], y, line, ha="center", va="center_baseline", fontsize=font * scale, color=ink(), zorder=5)
