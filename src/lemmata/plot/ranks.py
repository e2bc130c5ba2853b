"""Histograms of ranks: whether chains tell the same story, and whether a sampler is right."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.stats import binom, hypergeom

from lemmata.core import diagnostics
from lemmata.plot.chains import caption, chosen, ordinal, stacked, titled
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, REFUSED, class_colors, quiet

EXPECTED = 10  # draws of a chain in a bin of ranks, at least
MOST_BINS = 20
LEVEL = 0.99  # that all bars of a panel are within their band, if the draws are what they claim to be


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


def _steps(heights: np.ndarray) -> np.ndarray:
    return np.append(heights, heights[-1])
