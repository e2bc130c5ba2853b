"""What resampling says of a statistic: its replicates, the estimate, and an interval."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet

FEWEST, MOST = 10, 60  # bars of the histogram
ROOM = 1.12  # height of the picture over the highest bar
COLOR = CLASS_COLORS[0]


class BootstrapDisplay:
    """Histogram of bootstrap replicates with the estimate and an interval.

    Bars inside the interval are filled, those outside are pale; the dotted line is the mean of the replicates, so its distance
    from the estimate is the bias.

    Parameters
    ----------
    replicates : (B,), the statistic of each resample.
    estimate : The statistic of the sample.
    interval : (low, high), or None.
    label : What the interval is.
    name : What the statistic is.

    Attributes
    ----------
    edges_, counts_ : Ends and heights of the bars.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.model_selection import Bootstrap
    >>> bootstrap = Bootstrap("mean", random_state=0).fit([1.0, 2.0, 3.0, 4.0])
    >>> BootstrapDisplay.from_bootstrap(bootstrap, level=0.9).ax_.get_title()
    'mean 2.5, 90 % bca interval 1.5 to 3.5'
    """

    def __init__(
        self,
        *,
        replicates: Any,
        estimate: float,
        interval: tuple[float, float] | None = None,
        label: str = "interval",
        name: str = "estimate",
    ) -> None:
        self.replicates = np.asarray(replicates, dtype=float)
        self.estimate = float(estimate)
        self.interval = interval
        self.label = label
        self.name = name

    @classmethod
    def from_bootstrap(
        cls,
        bootstrap: Any,
        *,
        level: float = 0.95,
        method: str = "bca",
        index: Any = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot a fitted `lemmata.model_selection.Bootstrap`.

        Parameters
        ----------
        level, method : Of the interval.
        index : Which number of a statistic that gives an array.
        """
        index = () if index is None else index
        low, high = bootstrap.interval(level, method)
        low, high = np.asarray(low)[index], np.asarray(high)[index]
        if np.ndim(low):
            raise ValueError(
                f"The statistic has the shape {bootstrap.estimate_.shape}: say by index which of its numbers to plot, as in "
                "BootstrapDisplay.from_bootstrap(bootstrap, index=0)."
            )
        called = bootstrap.statistic
        called = getattr(called, "__name__", f"quantile {called}" if isinstance(called, float) else str(called))
        rest = index if isinstance(index, tuple) else (index,)
        replicates = bootstrap.replicates_[(slice(None), *rest)]
        name = name or ("statistic" if called == "<lambda>" else called)
        label = f"{100 * level:.4g} % {method} interval"
        estimate = float(np.asarray(bootstrap.estimate_)[index])
        return cls(replicates=replicates, estimate=estimate, interval=(low, high), label=label, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the histogram."""
        ax = axes(ax, (6.0, 4.0))
        finite = self.replicates[np.isfinite(self.replicates)]
        self.counts_, self.edges_ = np.histogram(finite, bins=_edges(finite))
        top = ROOM * self.counts_.max()
        ax.stairs(self.counts_, self.edges_, fill=True, color=NEUTRAL, alpha=0.35, lw=0)
        title = f"{self.name} {self.estimate:.4g}"
        if self.interval is not None:
            low, high = (float(end) for end in self.interval)
            inside = ax.stairs(self.counts_, self.edges_, fill=True, color=COLOR, alpha=0.75, lw=0)
            inside.set_clip_path(_strip(ax, low, high, top))
            ax.plot([low, low, np.nan, high, high], [0, top, np.nan, 0, top], color=COLOR, lw=1.2, label=self.label)
            title += f", {self.label} {low:.4g} to {high:.4g}"
        ax.axvline(self.estimate, color=ink(), lw=1.8, label="estimate")
        ax.axvline(finite.mean(), color=ink(), lw=1.2, ls=(0, (1, 1.4)), label="mean of the replicates")
        ax.set(xlabel=self.name, ylabel="resamples", ylim=(0, top))
        ax.set_title(title, fontsize="medium")
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _edges(values: np.ndarray) -> np.ndarray:
    """Choose the bars: by the quartiles (Freedman and Diaconis), but neither very few nor very many; of equal values, one."""
    low, high = values.min(), values.max()
    if low == high:
        half = max(abs(low) / 10, 0.5)
        return np.array([low - half, low + half])
    quartiles = np.quantile(values, [0.25, 0.75])
    width = 2 * np.ptp(quartiles) / len(values) ** (1 / 3)
    number = int(np.clip((high - low) / width if width > 0 else FEWEST, FEWEST, MOST))
    return np.linspace(low, high, number + 1)


def _strip(ax: Any, low: float, high: float, top: float) -> Any:
    """Make the region between two values, to which bars are cut."""
    from matplotlib.patches import Rectangle

    return Rectangle((low, 0), high - low, top, transform=ax.transData)
