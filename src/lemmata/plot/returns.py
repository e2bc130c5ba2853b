"""Learning curves: what an agent earns, episode after episode, over several seeds."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from lemmata.plot.drawing import NEUTRAL, axes, class_colors, quiet

POINTS = 200  # of a curve, at most: more are finer than a line


class ReturnsDisplay:
    """The mean return over runs with several seeds, smoothed over episodes, and a band in which the middle of the runs lies.

    Parameters
    ----------
    returns : Mapping from the name of an agent to its runs, each a sequence of the returns of its episodes.
    window : Episodes over which a run is averaged; default a fiftieth of the shortest run.
    level : Share of the runs that the band holds, between quantiles of the runs at each episode.
    target : Return to draw a line at: where the task counts as solved.

    Attributes
    ----------
    curves_ : For each agent the episodes, the mean, and the lower and upper edge of the band.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> runs = [[0, 1, 2, 3], [0, 2, 4, 6], [0, 0, 3, 3]]
    >>> display = ReturnsDisplay({"agent": runs}, window=1, level=1.0).plot()
    >>> [part.tolist() for part in display.curves_["agent"]]
    [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 3.0, 4.0], [0.0, 0.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]]
    """

    def __init__(
        self,
        returns: Mapping[str, Sequence[Any]],
        *,
        window: int | None = None,
        level: float = 0.8,
        target: float | None = None,
    ) -> None:
        self.returns = {name: [np.asarray(run, dtype=float) for run in runs] for name, runs in returns.items()}
        for name, runs in self.returns.items():
            if not all(run.ndim == 1 for run in runs):
                raise ValueError(f"{name!r} needs a list of runs, each with the returns of its episodes.")
            if not runs or not all(len(run) for run in runs):
                raise ValueError(f"{name!r} has no episodes to draw.")
        self.window = window
        self.level = level
        self.target = target

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None, **options: Any
    ) -> Self:
        """Plot the `returns_` of a fitted agent; the environment is not looked at."""
        return cls.from_estimators({type(estimator).__name__ if name is None else name: [estimator]}, ax=ax, **options)

    @classmethod
    def from_estimators(cls, estimators: Mapping[str, Sequence[Any]], *, ax: Any = None, **options: Any) -> Self:
        """Plot fitted agents: by name, one for each seed."""
        for agent in chain.from_iterable(estimators.values()):
            if not hasattr(agent, "returns_"):
                raise NotFittedError(f"{type(agent).__name__} has no episodes to draw: fit it first.")
        return cls({name: [agent.returns_ for agent in agents] for name, agents in estimators.items()}, **options).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves."""
        ax = axes(ax, (6.2, 4.2))
        self.curves_ = {name: self._curve(runs) for name, runs in self.returns.items()}
        for (name, (at, mean, low, high)), color in zip(self.curves_.items(), class_colors(len(self.curves_)), strict=True):
            if len(self.returns[name]) > 1:
                ax.fill_between(at, low, high, color=color, alpha=0.18, lw=0)
            ax.plot(at, mean, lw=2, color=color, label=f"{name}, {len(self.returns[name])} seeds")
        if self.target is not None:
            ax.axhline(self.target, color=NEUTRAL, lw=1.2, ls=(0, (5, 3)), label="solved")
        ax.set(xlabel="episode", ylabel="return")
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curve(self, runs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Smooth runs over episodes, as long as all of them last, and take their mean and quantiles."""
        n = min(len(run) for run in runs)
        window = self.window or max(1, n // 50)
        sums = np.cumsum(np.pad(np.array([run[:n] for run in runs]), ((0, 0), (1, 0))), axis=1)
        starts = np.maximum(np.arange(1, n + 1) - window, 0)
        smooth = (sums[:, 1:] - sums[:, starts]) / (np.arange(1, n + 1) - starts)
        at = np.unique(np.linspace(0, n - 1, POINTS).round().astype(int))
        low, high = np.quantile(smooth[:, at], [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        return at + 1.0, smooth[:, at].mean(axis=0), low, high
