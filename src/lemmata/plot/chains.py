"""Whether chains of a sampler tell the same story: traces and autocorrelations; `ranks` has their ranks."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.stats import gaussian_kde

from lemmata.core import diagnostics
from lemmata.plot.drawing import NEUTRAL, axes, class_colors, ink, quiet

MOST_PANELS = 6  # dimensions that are shown unless told otherwise
MOST_POINTS = 2_000  # of a trace: more are not told apart


class ChainsDisplay:
    """The way of each chain through some dimensions, and on the right what each says about the law.

    Chains that tell the same story are hard to tell apart; R-hat and the effective numbers of draws say the same in numbers.

    Parameters
    ----------
    values : (chains, draws, dimensions).
    names : One for each dimension.
    name : What to write above the plot.

    Attributes
    ----------
    axes_ : Axes of all panels, (dimensions, 2).
    ax_, figure_ : First axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> ChainsDisplay.from_draws(draws).names
    ['x[0]', 'x[1]']
    """

    def __init__(self, *, values: np.ndarray, names: list[str], name: str | None = None) -> None:
        self.values = values
        self.names = names
        self.name = name

    @classmethod
    def from_draws(cls, draws: Any, names: Sequence[str] | None = None, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot `lemmata.sampling.Draws`, or an array (chains, draws, dimensions); the first six dimensions, or `names`."""
        values, names = chosen(draws, names)
        return cls(values=values, names=names, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each dimension, below each other; axes that are given are divided."""
        chains, n, d = self.values.shape
        panels = np.array([[left, beside(left, 0.22)] for left in stacked(ax, d, (7.6, 1.5))], dtype=object)
        colors, step = class_colors(chains), -(-n // MOST_POINTS)
        for i, (left, right) in enumerate(panels):
            x = self.values[:, :, i].astype(float)
            for chain, color in zip(x, colors, strict=True):
                left.plot(np.arange(0, n, step), chain[::step], color=color, lw=0.7, alpha=0.75)
                heights = _density(chain)
                if heights is not None:
                    right.plot(heights[1], heights[0], color=color, lw=1.2)
            rhat, bulk, tail = diagnostics.rhat(x), diagnostics.ess_bulk(x), diagnostics.ess_tail(x)
            caption(left, f"{self.names[i]}:  R-hat {rhat:.3f},  ESS {bulk:,.0f} bulk, {tail:,.0f} tails")
            left.set_xlim(0, n)
            right.set_ylim(left.get_ylim())
            right.set_xlim(left=0)
            right.set_xticks([])
            right.tick_params(labelleft=False, length=0)
            left.tick_params(labelbottom=i == d - 1)
            quiet(left)
            quiet(right)
        panels[-1, 0].set_xlabel("draw")
        titled(panels[0, 0], self.name)
        self.axes_, self.ax_, self.figure_ = panels, panels[0, 0], panels[0, 0].figure
        return self


class AutocorrelationDisplay:
    """How long draws remember: the correlation of all chains with themselves some draws later.

    Parameters
    ----------
    correlations : (lags, dimensions), from lag 0 on.
    times : For each dimension, how many draws are worth one independent draw.
    n : Number of all draws; correlations within the band ±2/√n are noise.
    names : One for each dimension.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> x = np.zeros((2, 2000, 1))
    >>> noise = np.random.default_rng(0).normal(size=x.shape)
    >>> for t in range(1, 2000):
    ...     x[:, t] = 0.8 * x[:, t - 1] + noise[:, t]
    >>> display = AutocorrelationDisplay.from_draws(x)
    >>> display.correlations[:3, 0].round(1)  # theory says 1, 0.8, 0.64
    array([1. , 0.8, 0.6])
    """

    def __init__(
        self, *, correlations: np.ndarray, times: np.ndarray, n: int, names: list[str], name: str | None = None
    ) -> None:
        self.correlations = correlations
        self.times = times
        self.n = n
        self.names = names
        self.name = name

    @classmethod
    def from_draws(
        cls,
        draws: Any,
        names: Sequence[str] | None = None,
        *,
        max_lag: int | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot `lemmata.sampling.Draws`, or an array (chains, draws, dimensions); the first six dimensions, or `names`.

        Parameters
        ----------
        max_lag : Longest lag; default about three times the longest memory.
        """
        values, names = chosen(draws, names)
        times = np.atleast_1d(diagnostics.autocorrelation_time(values))
        if max_lag is None:
            max_lag = int(np.clip(3 * np.nanmax(times), 20, 500))
        correlations = diagnostics.autocorrelation(values)[: max_lag + 1]
        n = values.shape[0] * values.shape[1]
        return cls(correlations=correlations, times=times, n=n, names=names, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a line for each dimension over the lags."""
        ax = axes(ax, (5.6, 3.6))
        lags, noise = np.arange(len(self.correlations)), 2 / np.sqrt(self.n)
        ax.axhspan(-noise, noise, color=NEUTRAL, alpha=0.25, lw=0)
        ax.axhline(0, color=NEUTRAL, lw=0.8)
        few = len(lags) <= 40
        for rho, time, name, color in zip(
            self.correlations.T, self.times, self.names, class_colors(len(self.names)), strict=True
        ):
            label = f"{name}: {time:,.3g} draws for one"
            ax.plot(lags, rho, color=color, lw=1.6, marker="o" if few else None, ms=3.5, label=label)
        ax.set(xlim=(0, lags[-1]), xlabel="lag, draws", ylabel="autocorrelation", title=self.name or "")
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def chosen(draws: Any, names: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    """Give the draws of some dimensions (chains, draws, dimensions) and their names."""
    values = np.asarray(getattr(draws, "values", draws))
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3:
        raise ValueError(f"Draws must have the shape (chains, draws, dimensions), got {values.shape}.")
    d = values.shape[2]
    known = list(getattr(draws, "names", ["x"] if d == 1 else [f"x[{i}]" for i in range(d)]))
    if names is None:
        return values[:, :, :MOST_PANELS], known[:MOST_PANELS]
    names = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"No dimension is called {unknown[0]!r}; there are {known}.")
    return values[:, :, [known.index(name) for name in names]], names


def stacked(ax: Any, n: int, size: tuple[float, float]) -> list[Any]:
    """Make n axes below each other: of a new figure, so high each, or of the place of given ones."""
    if ax is None:
        import matplotlib.pyplot as plt

        return list(plt.subplots(n, 1, figsize=(size[0], size[1] * n + 0.5), layout="constrained", squeeze=False)[1][:, 0])
    place = ax.get_subplotspec()
    if n == 1 or place is None:
        if n > 1:
            raise ValueError(f"Axes that stand alone have room for one dimension, not for {n}: give one name, or no axes.")
        return [ax]
    grid = place.subgridspec(n, 1)
    ax.set_subplotspec(grid[0])
    return [ax, *(ax.figure.add_subplot(grid[i]) for i in range(1, n))]


def beside(ax: Any, share: float) -> Any:
    """Make axes on the right of others, with so much of the width."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    return make_axes_locatable(ax).append_axes("right", size=f"{100 * share:.0f}%", pad=0.08)


def caption(ax: Any, text: str) -> None:
    """Write a line above a panel, below the place of a title."""
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "xytext": (0, 4), "annotation_clip": False}
    ax.annotate(text, (0, 1), **place, fontsize="small", color=ink())


def titled(ax: Any, name: str | None) -> None:
    """Write a name above the first panel and its caption."""
    if name:
        ax.set_title(name, pad=20)


def ordinal(k: int) -> str:
    """Write an ordinal number.

    >>> [ordinal(k) for k in (2, 3, 11, 21)]
    ['2nd', '3rd', '11th', '21st']
    """
    return f"{k}{'th' if 10 < k % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(k % 10, 'th')}"


def _density(x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Give places and heights of a smooth density; None where there is nothing to smooth."""
    if len(x) < 3 or not np.isfinite(x).all() or np.ptp(x) <= 1e-12 * np.abs(x).max():
        return None
    grid = np.linspace(x.min(), x.max(), 120)
    return grid, gaussian_kde(x[:: -(-len(x) // MOST_POINTS)])(grid)
