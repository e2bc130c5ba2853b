"""Whether chains of a sampler tell the same story: traces, ranks, autocorrelations; and whether a sampler is right."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.stats import binom, gaussian_kde, hypergeom

from lemmata.core import diagnostics
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, REFUSED, axes, class_colors, ink, quiet

MOST_PANELS = 6  # dimensions that are shown unless told otherwise
MOST_POINTS = 2_000  # of a trace: more are not told apart
EXPECTED = 10  # draws of a chain in a bin of ranks, at least
MOST_BINS = 20
LEVEL = 0.99  # that all bars of a panel are within their band, if the draws are what they claim to be


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


class RankDisplay:
    """A histogram, for each chain, of the ranks of its draws among those of all chains: flat, if all draw from one law.

    A chain that sits too low has too many small ranks, one that is too narrow too many in the middle. The band holds all bars
    of a dimension with 99 %, if draws are independent; so chains are thinned until they nearly are. Bars outside are red.

    Parameters
    ----------
    counts : For each dimension (chains, bins), how many draws of a chain have ranks in a bin.
    bands : For each dimension (2, bins), the least and the largest count that chance explains.
    steps : For each dimension, of how many draws one was taken.
    names : One for each dimension.
    name : What to write above the plot.

    Attributes
    ----------
    axes_ : Axes of all panels.
    ax_, figure_ : First axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = RankDisplay.from_draws(np.random.default_rng(0).normal(size=(4, 500, 1)))
    >>> display.counts[0].shape, display.steps, display.names
    ((4, 20), [1], ['x'])
    >>> bool(((display.bands[0][0] <= display.counts[0]) & (display.counts[0] <= display.bands[0][1])).all())
    True
    """

    def __init__(
        self, *, counts: list[np.ndarray], bands: list[np.ndarray], steps: list[int], names: list[str], name: str | None = None
    ) -> None:
        self.counts = counts
        self.bands = bands
        self.steps = steps
        self.names = names
        self.name = name

    @classmethod
    def from_draws(
        cls, draws: Any, names: Sequence[str] | None = None, *, thin: int | None = None, ax: Any = None, name: str | None = None
    ) -> Self:
        """Plot `lemmata.sampling.Draws`, or an array (chains, draws, dimensions); the first six dimensions, or `names`.

        Parameters
        ----------
        thin : Take one of so many draws. Default: of as many as are worth one independent draw.
        """
        values, names = chosen(draws, names)
        found = [rank_counts(values[:, :, i], thin) for i in range(len(names))]
        counts, bands, steps = ([part[k] for part in found] for k in range(3))
        return cls(counts=counts, bands=bands, steps=steps, names=names, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each dimension, in it a row for each chain."""
        panels = stacked(ax, len(self.names), (6.4, 0.8 + 0.42 * len(self.counts[0])))
        for panel, counts, band, step, name in zip(panels, self.counts, self.bands, self.steps, self.names, strict=True):
            chains = len(counts)
            high = 1.15 * max(float(counts.max()), float(band[1].max()))
            for k, (row, color) in enumerate(zip(counts, class_colors(chains), strict=True)):
                histogram(panel, row, band, color, base=chains - 1 - k, unit=high)
            panel.set(xlim=(0, 1), ylim=(0, chains), yticks=np.arange(chains) + 0.4)
            panel.set_yticklabels([f"chain {k + 1}" for k in range(chains)][::-1], fontsize="small")
            thinned = "" if step == 1 else f",  every {ordinal(step)} draw"
            caption(panel, f"{name}{thinned}")
            panel.tick_params(axis="y", length=0)
            quiet(panel)
        panels[-1].set_xlabel("rank among the draws of all chains, as a share")
        titled(panels[0], self.name)
        self.axes_, self.ax_, self.figure_ = np.array(panels, dtype=object), panels[0], panels[0].figure
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


class CalibrationDisplay:
    """Ranks of true parameters among draws of their posteriors, by simulation: flat, if the sampler is right.

    A ∪ says that it is too sure, a ∩ that it is not sure enough, a slope that it is shifted. The band holds all bars of a
    quantity with 99 %; bars outside are red.

    Parameters
    ----------
    counts : (quantities, bins), how many ranks are in each bin.
    bands : (2, bins), the least and the largest count that chance explains.
    p_values : One for each quantity.
    names : One for each quantity.
    name : What to write above the plot.

    Attributes
    ----------
    axes_ : Axes of all panels.
    ax_, figure_ : First axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.sampling import Calibration
    >>> display = CalibrationDisplay.from_calibration(Calibration(np.arange(100)[:, None] % 10, 9, ("theta",), 10))
    >>> display.counts, display.bands[:, 0]
    (array([[10, 10, 10, 10, 10, 10, 10, 10, 10, 10]]), array([ 2., 21.]))
    """

    def __init__(
        self, *, counts: np.ndarray, bands: np.ndarray, p_values: np.ndarray, names: list[str], name: str | None = None
    ) -> None:
        self.counts = counts
        self.bands = bands
        self.p_values = p_values
        self.names = names
        self.name = name

    @classmethod
    def from_calibration(cls, calibration: Any, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot what `lemmata.sampling.simulation_based_calibration` found."""
        bins, ranks = calibration.n_bins, calibration.n_ranks + 1
        edges = -(-np.arange(bins + 1) * ranks // bins)
        beyond = (1 - LEVEL) / (2 * bins)
        bands = binom.ppf([[beyond], [1 - beyond]], len(calibration.ranks), np.diff(edges) / ranks)
        names = [str(each) for each in calibration.names]
        found = {"counts": calibration.histogram, "p_values": calibration.p_values, "bands": bands}
        return cls(names=names, name=name, **found).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each quantity."""
        panels = stacked(ax, len(self.names), (5.6, 1.7))
        for panel, counts, p, name in zip(panels, self.counts, self.p_values, self.names, strict=True):
            histogram(panel, counts, self.bands, CLASS_COLORS[0])
            panel.set(xlim=(0, 1), ylim=(0, None), ylabel="simulations")
            caption(panel, f"{name}:  p = {p:.2g}")
            quiet(panel)
        panels[-1].set_xlabel("rank of the truth among posterior draws, as a share")
        titled(panels[0], self.name)
        self.axes_, self.ax_, self.figure_ = np.array(panels, dtype=object), panels[0], panels[0].figure
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


def rank_counts(x: np.ndarray, thin: int | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    """Count the ranks of each chain's draws in bins; give the band of chance, and the step of thinning.

    How many of the draws in a bin are of one chain has a hypergeometric law, if all are alike. All bars share 1 % outside.

    >>> counts, band, step = rank_counts(np.arange(80.0).reshape(2, 40), thin=1)
    >>> counts.tolist(), band.tolist(), step  # one chain is below the other
    ([[20, 20, 0, 0], [0, 0, 20, 20]], [[4.0, 4.0, 4.0, 4.0], [16.0, 16.0, 16.0, 16.0]], 1)
    """
    n = x.shape[1]
    if thin is None:  # each chain has a memory of its own; where they disagree, the common one would be endless
        alone = [diagnostics.autocorrelation_time(chain[None]) for chain in x]
        thin = int(np.clip(np.rint(np.mean(alone)), 1, max(n // (2 * EXPECTED), 1)))
    kept = x[:, n - 1 :: -thin][:, ::-1]
    m = kept.shape[1]
    noise = np.random.default_rng(0).random(kept.shape)  # equal draws, as of counts, are ranked at random
    order = np.lexsort((noise.ravel(), kept.ravel()))
    ranks = np.empty(kept.size, dtype=int)
    ranks[order] = np.arange(kept.size)
    bins = int(np.clip(m // EXPECTED, 2, MOST_BINS))
    edges = -(-np.arange(bins + 1) * kept.size // bins)
    counts = np.array([np.histogram(row, edges)[0] for row in ranks.reshape(kept.shape)])
    beyond = (1 - LEVEL) / (2 * counts.size)
    band = hypergeom.ppf([[beyond], [1 - beyond]], kept.size, m, np.diff(edges))
    return counts, band, thin


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


def histogram(ax: Any, counts: np.ndarray, band: np.ndarray, color: Any, base: float = 0.0, unit: float = 1.0) -> None:
    """Draw bars over a base, with the band of chance; bars outside it are red."""
    edges = np.linspace(0, 1, len(counts) + 1)
    out = (counts < band[0]) | (counts > band[1])
    low, high = (base + _steps(limit) / unit for limit in band)
    ax.fill_between(edges, low, high, step="post", color=NEUTRAL, alpha=0.22, lw=0, zorder=0)
    colors = [(REFUSED, 0.75) if o else (color, 0.45) for o in out]
    ax.bar(edges[:-1], counts / unit, 1 / len(counts), base, align="edge", color=colors, zorder=1)
    ax.step(edges, base + _steps(counts) / unit, where="post", color=color, lw=1.2, zorder=2)
    for limit in (low, high):
        ax.step(edges, limit, where="post", color=NEUTRAL, lw=0.8, ls=(0, (4, 2)), zorder=2)


def ordinal(k: int) -> str:
    """Write an ordinal number.

    >>> [ordinal(k) for k in (2, 3, 11, 21)]
    ['2nd', '3rd', '11th', '21st']
    """
    return f"{k}{'th' if 10 < k % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(k % 10, 'th')}"


def _steps(heights: np.ndarray) -> np.ndarray:
    return np.append(heights, heights[-1])


def _density(x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Give places and heights of a smooth density; None where there is nothing to smooth."""
    if len(x) < 3 or not np.isfinite(x).all() or np.ptp(x) <= 1e-12 * np.abs(x).max():
        return None
    grid = np.linspace(x.min(), x.max(), 120)
    return grid, gaussian_kde(x[:: -(-len(x) // MOST_POINTS)])(grid)
