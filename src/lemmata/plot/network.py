"""Graphical models as pictures: Bayes nets with their arrows, factor graphs with their squares, and what is known in them."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink
from lemmata.plot.graph_layout import Layout, beside, stress
from lemmata.plot.layered_layout import layered

FONT = 9.0  # points, of names; the layout is in points, too
SMALL = 7.5  # of states
ROW = 11.0  # from one state to the next
BAR = 42.0  # of a state that is certain
MOST_BARS = 24  # variables up to which marginals are drawn unless told otherwise
MOST_STATES = 6  # of a variable; of more, the most probable are drawn
MOST_NAMED = 160  # nodes, beyond which they are dots
LARGEST = (15.0, 11.0)  # inches; what does not fit is drawn smaller
NARROW = 2.5  # height against width, above which arrows go to the right
KNOWN = CLASS_COLORS[1]
COLOR = CLASS_COLORS[0]


class NetworkDisplay:
    """A Bayes net as arrows from parents to children, or a factor graph as round variables and square factors.

    Variables with evidence are shaded. In small models every variable has a bar for the probability of each state, given the
    evidence; a tick shows what it was without.

    Parameters
    ----------
    names : Names of the variables.
    edges : Pairs of numbers: (parent, child) of a Bayes net; (variable, factor) of a factor graph, where factors are numbered
        after the variables.
    factors : Number of the factors; None for a Bayes net.
    states : {variable: labels of its states}, for the bars.
    marginals : {variable: probabilities given the evidence}; None for no bars.
    prior : {variable: probabilities without evidence}, or None.
    evidence : {variable: what is known}.
    name : What to write above the plot.

    Attributes
    ----------
    layout_ : Places of the nodes and routes of the edges, in points.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.graphical import BayesNet
    >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
    >>> display = NetworkDisplay.from_estimator(net, evidence={"wet": 1})
    >>> display.names, display.edges, display.marginals["rain"]
    (['rain', 'wet'], [(0, 1)], array([0.2963, 0.7037]))
    """

    def __init__(
        self,
        *,
        names: list[str],
        edges: list[tuple[int, int]],
        factors: int | None = None,
        states: Mapping[str, Iterable] | None = None,
        marginals: Mapping[str, np.ndarray] | None = None,
        prior: Mapping[str, np.ndarray] | None = None,
        evidence: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.names = names
        self.edges = edges
        self.factors = factors
        self.states = {} if states is None else states
        self.marginals = marginals
        self.prior = prior
        self.evidence = {} if evidence is None else evidence
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        evidence: Mapping[Any, Any] | None = None,
        bars: bool | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot a `BayesNet`, with or without tables, or a `FactorGraph`; X and y are not looked at.

        Parameters
        ----------
        evidence : What is known, as for `marginals` of the model.
        bars : Whether to draw the marginals; None: of models that have tables and not too many variables.
        """
        variables = tuple(estimator.parents_ if hasattr(estimator, "parents_") else estimator.variables)
        number = {variable: i for i, variable in enumerate(variables)}
        if hasattr(estimator, "parents_"):
            factors = None
            edges = [(number[parent], i) for i, child in enumerate(variables) for parent in estimator.parents_[child]]
        else:
            factors, n = len(estimator.factors), len(variables)
            edges = [(number[v], n + k) for k, factor in enumerate(estimator.factors) for v in factor.variables]
        tables = getattr(estimator, "__sklearn_is_fitted__", lambda: hasattr(estimator, "states"))()
        if bars is None:
            bars = tables and len(variables) <= MOST_BARS
        found: dict[str, Any] = {}
        if bars:
            found["marginals"] = {str(v): p for v, p in estimator.marginals(evidence).items()}
            found["states"] = {str(v): labels for v, labels in estimator.states.items()}
            if evidence:
                found["prior"] = {str(v): p for v, p in estimator.marginals().items()}
        known = {str(v): value for v, value in (evidence or {}).items()}
        unknown = sorted(set(known) - {str(v) for v in variables})
        if unknown:
            raise ValueError(f"There is no variable {unknown[0]!r} to have evidence of.")
        title = type(estimator).__name__ if name is None else name
        names = [str(v) for v in variables]
        return cls(names=names, edges=edges, factors=factors, evidence=known, name=title, **found).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Lay out the graph, then draw the edges and the nodes."""
        n, squares = len(self.names), self.factors or 0
        named = n + squares <= MOST_NAMED
        rows = [self._rows(name) for name in self.names]
        sizes = np.array([self._size(name, shown, named) for name, shown in zip(self.names, rows, strict=True)])
        sizes = np.vstack([sizes.reshape(-1, 2), np.full((squares, 2), 9.0 if named else 4.0)])
        if self.factors is None:
            layout = arrows(n, self.edges, sizes, gap=(18.0, 36.0) if named else (6.0, 24.0))
        else:
            places = self._springs(sizes, 18.0 if named else 8.0)
            layout = Layout(places, [between(places[[a, b]], sizes[[a, b]]) for a, b in self.edges])
        self.layout_ = layout
        ax, scale = canvas(ax, (layout.places - sizes / 2, layout.places + sizes / 2, *layout.routes), self.name)
        for route in layout.routes:
            draw_route(ax, route, scale if named else 0.6 * scale, arrow=self.factors is None)
        for i, name in enumerate(self.names):
            self._draw_node(ax, name, layout.places[i], sizes[i], rows[i], scale, named)
        for place, size in zip(layout.places[n:], sizes[n:], strict=True):
            box(ax, place, size, color=ink(), face=1.0, round=0.0, scale=scale)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _springs(self, sizes: np.ndarray, gap: float) -> np.ndarray:
        """Place variables and factors; a factor of one variable, which ties nothing together, goes where there is room."""
        degree = np.bincount(np.array(self.edges, dtype=int).reshape(-1, 2)[:, 1], minlength=len(sizes))
        alone = {f: v for v, f in self.edges if degree[f] == 1}
        core = [i for i in range(len(sizes)) if i not in alone]
        number = {i: k for k, i in enumerate(core)}
        edges = [(number[v], number[f]) for v, f in self.edges if f not in alone]
        places = np.zeros((len(sizes), 2))
        places[core] = stress(len(core), edges, sizes[core], gap)
        if alone:
            holders = [number[v] for v in alone.values()]
            places[list(alone)] = beside(places[core], sizes[core], holders, sizes[-1], edges)
        return places

    def _rows(self, name: str) -> list[tuple[str, float, float | None]]:
        """Give label, probability and prior of the states to be drawn."""
        if self.marginals is None:
            return []
        chances, labels = np.asarray(self.marginals[name]), [str(label) for label in self.states[name]]
        before = None if self.prior is None or name in self.evidence else self.prior[name]
        shown = np.arange(len(labels))
        if len(labels) > MOST_STATES:
            shown = np.sort(np.argsort(-chances, kind="stable")[: MOST_STATES - 1])
        rows = [(clipped(labels[k]), float(chances[k]), None if before is None else float(before[k])) for k in shown]
        rest = len(labels) - len(shown)
        return [*rows, (f"{rest} more", float(1 - chances[shown].sum()), None)] if rest else rows

    def _size(self, name: str, rows: list, named: bool) -> tuple[float, float]:
        if not named:
            return 7.0, 7.0
        if not rows:
            return max(text_width(name, FONT) + 16.0, 24.0), 22.0
        labels = max(text_width(label, SMALL) for label, *_ in rows)
        return max(text_width(name, FONT) + 14.0, labels + BAR + 52.0), ROW * len(rows) + 24.0

    def _draw_node(
        self, ax: Any, name: str, place: np.ndarray, size: np.ndarray, rows: list, scale: float, named: bool
    ) -> None:
        known = name in self.evidence
        soft = known and isinstance(self.evidence[name], (list, np.ndarray))
        color = KNOWN if known else COLOR
        face = (0.32 if not soft else 0.16) if known else 0.10
        box(ax, place, size, color=color, face=face, round=5.0 if rows else min(size) / 2, scale=scale, dashed=soft)
        if not named:
            return
        top = place[1] + size[1] / 2 - 10.5 if rows else place[1]
        ax.text(place[0], top, name, ha="center", va="center_baseline", fontsize=FONT * scale, color=ink(), zorder=5)
        left, right = place[0] - size[0] / 2 + 7, place[0] + size[0] / 2 - 7
        first = right - BAR - 31
        for k, (label, chance, before) in enumerate(rows):
            y = top - 13.5 - ROW * k
            style = {"va": "center_baseline", "fontsize": SMALL * scale, "color": ink(), "zorder": 5}
            ax.text(left, y, label, ha="left", **style)
            ax.text(right, y, percent(chance), ha="right", **style)
            box(ax, (first + BAR / 2, y), (BAR, 6.0), color=color, face=face + 0.12, round=0.0, scale=scale, edge=0.0)
            box(ax, (first + BAR * chance / 2, y), (BAR * chance, 6.0), color=color, face=0.9, round=0.0, scale=scale, edge=0.0)
            if before is not None:
                ax.plot([first + BAR * before] * 2, [y - 4.2, y + 4.2], color=ink(), lw=1.1 * scale, zorder=6)


def arrows(n: int, edges: list[tuple[int, int]], sizes: np.ndarray, gap: tuple[float, float]) -> Layout:
    """Lay out arrows downwards; or to the right, if that would be a long and narrow picture.

    >>> arrows(8, [(i, i + 1) for i in range(7)], np.full((8, 2), 10.0), (10.0, 10.0)).places[:3].round(6)
    array([[ 5.,  5.],
           [25.,  5.],
           [45.,  5.]])
    """
    layout = layered(n, edges, sizes, gap)
    wide, tall = np.ptp(np.vstack([layout.places - sizes / 2, layout.places + sizes / 2]), axis=0)
    if tall <= NARROW * wide:
        return layout
    places, routes = layered(n, edges, sizes[:, ::-1], gap)
    top = (places + sizes[:, ::-1] / 2).max(axis=0)
    return Layout((top - places)[:, ::-1], [(top - route)[:, ::-1] for route in routes])


def canvas(ax: Any, corners: Iterable[np.ndarray], title: str | None) -> tuple[Any, float]:
    """Prepare axes for a drawing in points; give them and what one point of the drawing is on the paper.

    Parameters
    ----------
    ax : Axes; None makes a figure as large as the drawing.
    corners : Arrays of points that must be seen.
    """
    points = np.vstack(list(corners))
    low, high = points.min(axis=0) - 8, points.max(axis=0) + 8
    wide, tall = (high - low) / 72
    shrink = min(1.0, LARGEST[0] / wide, LARGEST[1] / tall)
    head = text_width(title or "", 12.0) / 72 + 0.3
    ax = axes(ax, (max(wide * shrink + 0.1, head, 3.0), max(tall * shrink + 0.45, 1.6)))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=title or "")
    ax.set_axis_off()
    engine = ax.figure.get_layout_engine()
    if engine is not None:
        engine.execute(ax.figure)  # the size of the axes, and so that of the text, is known after it
    scale = _scale(ax)
    if scale > 1.3:  # large paper is not to have large letters
        middle, half = (low + high) / 2, (high - low) / 2 * scale / 1.3
        ax.set(xlim=(middle[0] - half[0], middle[0] + half[0]), ylim=(middle[1] - half[1], middle[1] + half[1]))
        scale = 1.3
    return ax, scale


def _scale(ax: Any) -> float:
    extent = ax.get_window_extent()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return float(min(extent.width / (right - left), extent.height / (top - bottom)) * 72 / ax.figure.dpi)


def box(
    ax: Any,
    place: Any,
    size: Any,
    *,
    color: Any,
    face: float,
    round: float,
    scale: float,
    edge: float = 1.1,
    dashed: bool = False,
) -> Any:
    """Draw a box around a place: its edge in a color, its face in a shade of it, which hides what passes behind."""
    from matplotlib.patches import FancyBboxPatch

    shape = f"round,pad=0,rounding_size={round}" if round else "square,pad=0"
    patch = FancyBboxPatch(
        (place[0] - size[0] / 2, place[1] - size[1] / 2),
        *size,
        boxstyle=shape,
        facecolor=shade(color, face, ax),
        edgecolor=color if edge else "none",
        lw=edge * scale,
        ls="--" if dashed else "-",
        zorder=4 if edge == 0 else 3,
    )
    return ax.add_patch(patch)


def shade(color: Any, strength: float, ax: Any) -> Any:
    """Mix a color with that of the paper, if that has one; else let as much shine through."""
    from matplotlib.colors import to_rgba

    paper, own = np.array(to_rgba(ax.get_facecolor())), np.array(to_rgba(color))
    return tuple(strength * own + (1 - strength) * paper) if paper[3] == 1 else to_rgba(color, strength)


def draw_route(ax: Any, route: np.ndarray, scale: float, *, arrow: bool) -> None:
    """Draw a smooth line through points that go down, or to the right; with a head, if it is an arrow."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path
    from scipy.interpolate import PchipInterpolator

    if len(route) > 2:
        along = 1 if (np.diff(route[:, 1]) < 0).all() else 0
        t = np.abs(route[:, along] - route[0, along])
        fine = np.append(np.concatenate([np.linspace(a, b, 12, endpoint=False) for a, b in pairwise(t)]), t[-1])
        route = PchipInterpolator(t, route)(fine)
    style = {"color": NEUTRAL, "lw": 1.1 * scale, "zorder": 2}
    if arrow:
        ax.add_patch(FancyArrowPatch(path=Path(route), arrowstyle="-|>", mutation_scale=9 * scale, capstyle="butt", **style))
    else:
        ax.plot(*route.T, **style)


def between(places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Cut the line between the centers of two boxes where it leaves each.

    >>> between(np.array([[0.0, 0.0], [10.0, 0.0]]), np.array([[4.0, 4.0], [2.0, 2.0]]))
    array([[2., 0.],
           [9., 0.]])
    """
    way = places[1] - places[0]
    with np.errstate(divide="ignore"):
        cut = [min(1.0, float((size / 2 / np.abs(way)).min())) for size in sizes]
    return np.array([places[0] + cut[0] * way, places[1] - cut[1] * way])


def text_width(text: str, size: float) -> float:
    """Measure a text in points, without paper."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text.replace("$", r"\$"), size=size).get_extents().width) if text.strip() else 0.0


def clipped(text: str, most: int = 14) -> str:
    """Cut a long text.

    >>> clipped("LowerBodyO2", 8)
    'LowerBo…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def percent(chance: float) -> str:
    """Write a probability in three places.

    >>> [percent(p) for p in (0.0, 0.0004, 0.032, 0.456, 0.9996, 1.0)]
    ['0 %', '<0.1 %', '3.2 %', '46 %', '>99.9 %', '100 %']
    """
    if 0 < chance < 5e-4 or 5e-4 > 1 - chance > 0:
        return "<0.1 %" if chance < 0.5 else ">99.9 %"
    share = 100 * chance
    return f"{share:.1f} %" if 0 < share < 9.95 or 99 < share < 100 else f"{share:.0f} %"
