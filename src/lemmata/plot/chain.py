"""Markov chains as graphs, and rankings with their doubts."""

from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from lemmata.plot.drawing import NEUTRAL, axes, class_colors, ink, outlined, quiet

MOST_STATES = 30  # more arrows than these states have are a ball of wool
MOST_TEAMS = 40
NUMBERED = 6  # states up to which there is room for the chances beside the arrows
FAINT = 0.02  # chances below this are not drawn


class TransitionGraphDisplay:
    """States on a circle, and arrows between them as thick as the moves are likely.

    A recurrent class has a color of its own, and its states have areas by their stationary masses; states that the chain
    leaves for good are hollow. An arrow bends to the right of its way, so that a move and the one back are told apart.

    Parameters
    ----------
    chances : (n, n), chances of the moves between the states that are shown.
    names : What to call the states.
    labels : Number of the recurrent class of each state; -1 for a transient one.
    masses : Stationary mass of each state within its class.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.markov import MarkovChain
    >>> display = TransitionGraphDisplay.from_estimator(MarkovChain([[0.6, 0.4], [0.3, 0.7]], states=["rain", "sun"]))
    >>> display.names, display.masses.round(3)
    (['rain', 'sun'], array([0.429, 0.571]))
    """

    def __init__(
        self, *, chances: np.ndarray, names: list[str], labels: np.ndarray, masses: np.ndarray, name: str | None = None
    ) -> None:
        self.chances = chances
        self.names = names
        self.labels = labels
        self.masses = masses
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
        max_states: int = MOST_STATES,
    ) -> Self:
        """Plot a chain, given or fitted; of many states those with the largest stationary masses. X and y are not looked at."""
        model = estimator._model()
        square, found = model.square, estimator.classes()
        laws = estimator.stationary()
        laws = (laws.toarray() if issparse(laws) else laws).reshape(len(laws) if not issparse(laws) else laws.shape[0], -1)
        number = np.where(found.recurrent, np.cumsum(found.recurrent) - 1, -1)[found.label]
        masses = laws.sum(axis=0)
        shown = np.sort(np.argsort(-masses, kind="stable")[:max_states])
        names = [context_name(i, model.states, model.order) for i in shown]
        title = type(estimator).__name__ if name is None else name
        if len(shown) < len(masses):
            title += f": {len(shown)} of {len(masses):,} states"
        chances = square[shown][:, shown].toarray()
        return cls(chances=chances, names=names, labels=number[shown], masses=masses[shown], name=title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the arrows, then the states on top of them."""
        from matplotlib.patches import Circle, FancyArrowPatch

        ax, n = axes(ax, (5.6, 5.2)), len(self.names)
        angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
        places = np.column_stack([np.cos(angles), np.sin(angles)]) if n > 1 else np.zeros((1, 2))
        palette = class_colors(int(self.labels.max(initial=0)) + 1)
        colors = [palette[k] if k >= 0 else NEUTRAL for k in self.labels]
        room = min(0.3, 0.8 * np.sin(np.pi / max(n, 3)))  # the largest circles leave space between neighbors
        peak = max(self.masses.max(), 1e-300)
        radii = room * np.where(self.labels >= 0, np.sqrt(np.clip(self.masses / peak, 0.12, 1)), 0.4)
        for i, j in zip(*np.nonzero(self.chances > FAINT), strict=True):
            chance = float(self.chances[i, j])
            style = {"color": colors[i], "lw": 0.4 + 3.0 * chance, "alpha": 0.35 + 0.6 * chance}
            if i == j:
                outward = places[i] if n > 1 else np.array([0.0, 1.0])
                size = 0.55 * room
                middle = places[i] + outward * (radii[i] + 0.6 * size)
                ax.add_patch(Circle(middle, size, fill=False, zorder=1, **style))
                spot = middle + outward * (size + 0.1)
            else:
                way = places[j] - places[i]
                way = way / np.linalg.norm(way)
                begin, end = places[i] + way * radii[i], places[j] - way * (radii[j] + 0.02)
                shape = {"arrowstyle": "-|>", "mutation_scale": 9 + 6 * chance, "connectionstyle": "arc3,rad=0.18"}
                ax.add_patch(FancyArrowPatch(begin, end, shrinkA=0, shrinkB=0, zorder=2, **shape, **style))
                spot = (begin + end) / 2 + 0.14 * np.linalg.norm(end - begin) * np.array([way[1], -way[0]])
            if n <= NUMBERED:
                text = ax.text(*spot, f"{chance:.2g}", ha="center", va="center", fontsize="small", color=ink(), zorder=5)
                outlined(text, ax)
        for place, radius, color, number, name in zip(places, radii, colors, self.labels, self.names, strict=True):
            paper = ax.get_facecolor()
            ax.add_patch(Circle(place, radius, facecolor=color if number >= 0 else paper, edgecolor=color, lw=1.4, zorder=3))
            text = ax.text(*place, name, ha="center", va="center", fontsize="small", color=ink(), zorder=6)
            outlined(text, ax)
        edge = 1.25 + 1.6 * room
        ax.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal", title=self.name or "")
        ax.set_axis_off()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def context_name(i: int, states: np.ndarray, order: int) -> str:
    """Name a state, or a context by its symbols.

    >>> context_name(1, np.array(["a", "b"]), 2)
    'a, b'
    """
    k = len(states)
    return ", ".join(str(states[i // k**place % k]) for place in range(order - 1, -1, -1))


class RankingDisplay:
    """Ratings of teams from the best down, with the interval of each, and the ranks that cannot be excluded.

    Parameters
    ----------
    teams : Names, best first.
    scores, low, high : Rating of each team and its interval; the latter may be None.
    best, worst : Best and worst rank of each team, which hold for all at once; may be None.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.markov import MarkovRanker
    >>> model = MarkovRanker(prior=1.0).fit([("a", "b", 3, 1), ("b", "c", 2, 1), ("a", "c", 2, 0)])
    >>> RankingDisplay.from_estimator(model).teams
    ['a', 'b', 'c']
    """

    def __init__(
        self,
        *,
        teams: list[str],
        scores: np.ndarray,
        low: np.ndarray | None = None,
        high: np.ndarray | None = None,
        best: np.ndarray | None = None,
        worst: np.ndarray | None = None,
        name: str | None = None,
    ) -> None:
        self.teams = teams
        self.scores = scores
        self.low, self.high = low, high
        self.best, self.worst = best, worst
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        level: float = 0.95,
        ax: Any = None,
        name: str | None = None,
        max_teams: int = MOST_TEAMS,
    ) -> Self:
        """Plot the best teams of a fitted ranker; X and y are not looked at."""
        order = np.argsort(-estimator.scores_, kind="stable")[:max_teams]
        doubts = {}
        if not np.isnan(estimator.standard_errors_).any():
            found = estimator.intervals(level)
            doubts = {field: getattr(found, field)[order] for field in found._fields}
        title = type(estimator).__name__ if name is None else name
        if len(order) < len(estimator.teams_):
            title += f": the first {len(order)} of {len(estimator.teams_):,} teams"
        teams = [str(team) for team in estimator.teams_[order]]
        return cls(teams=teams, scores=estimator.scores_[order], name=title, **doubts).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a point and a line for each team, from the top, and write its ranks on the right."""
        n = len(self.teams)
        ax = axes(ax, (6.0, max(2.4, 1.2 + 0.26 * n)))
        heights, (color, *_) = np.arange(n), class_colors(1)
        if self.low is not None and self.high is not None:
            ax.hlines(heights, self.low, self.high, color=color, alpha=0.45, lw=4)
        ax.plot(self.scores, heights, "o", color=color, ms=6)
        if self.best is not None and self.worst is not None:
            for height, first, last in zip(heights, self.best, self.worst, strict=True):
                ranks = f"{first}" if first == last else f"{first}–{last}"
                place = {
                    "xy": (1, height),
                    "xycoords": ax.get_yaxis_transform(),
                    "textcoords": "offset points",
                    "xytext": (6, 0),
                }
                ax.annotate(ranks, **place, va="center", fontsize="small", annotation_clip=False)
            head = {"xy": (1, 1), "xycoords": "axes fraction", "textcoords": "offset points", "xytext": (6, 4)}
            ax.annotate("rank", **head, fontsize="small", color=NEUTRAL)
        ax.set_yticks(heights, self.teams)
        ax.set(ylim=(n - 0.5, -0.5), xlabel="rating: share of the walk's time", title=self.name or "")
        ax.set_xlim(left=0)
        ax.grid(axis="y", alpha=0.15)
        quiet(ax)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self
