"""How much of the variance each direction has, and how much the first of them keep together."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet

ALONE, TOGETHER = CLASS_COLORS[:2]
MARKS = (0.9, 0.99)  # shares of the variance worth a line


class ScreeDisplay:
    """The share of the variance along each direction as bars, and the share that the first directions keep as a line.

    Where the bars fall off and lie flat from then on, the rest is noise. The share kept is one minus the share of the squares
    that a reconstruction from these directions misses.

    Parameters
    ----------
    shares : (directions,), shares of the variance, falling.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.decomposition import PCA
    >>> X = [[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> display = ScreeDisplay.from_estimator(PCA().fit(X))
    >>> display.shares, display.ax_.get_title()
    (array([0.8, 0.2]), 'PCA: 2 directions keep 100 % of the variance')
    """

    def __init__(self, *, shares: Any, name: str | None = None) -> None:
        self.shares = np.asarray(shares, dtype=float)
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot the shares of a fitted `PCA` or `KernelPCA`; of the latter, among the directions it keeps. Rows are not read."""
        shares = getattr(estimator, "explained_variance_ratio_", None)
        if shares is None:
            values = np.asarray(estimator.eigenvalues_, dtype=float)
            shares = values / (values.sum() or 1.0)
        return cls(shares=shares, name=type(estimator).__name__ if name is None else name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw bars and line."""
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        ax = axes(ax, (5.8, 4.0))
        at, kept = np.arange(1, len(self.shares) + 1), np.cumsum(self.shares)
        ax.bar(at, self.shares, width=0.75, color=ALONE, label="along one direction")
        few = len(at) <= 40  # points that can be told apart
        ax.plot(at, kept, color=TOGETHER, lw=1.8, marker="o" if few else None, ms=4, label="kept by all up to it")
        for mark in MARKS:
            if kept[-1] >= mark:
                k = int(np.argmax(kept >= mark - 1e-12)) + 1
                ax.plot([0.4, k], [mark, mark], color=NEUTRAL, lw=0.9, ls=(0, (4, 3)), zorder=1)
                ax.plot([k, k], [0, mark], color=NEUTRAL, lw=0.9, ls=(0, (4, 3)), zorder=1)
                ax.annotate(f"{mark:.0%}: {k}", (k, mark), (4, -10), textcoords="offset points", fontsize="small", color=ink())
        ax.set(xlabel="direction", ylabel="share of the variance", ylim=(0, 1.04), xlim=(0.4, len(at) + 0.6))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        told = f"{len(at)} direction{'s keep' if len(at) > 1 else ' keeps'} {100 * kept[-1]:.3g} % of the variance"
        ax.set_title(f"{self.name}: {told}" if self.name else told, fontsize="medium")
        ax.legend(frameon=False, fontsize="small", loc="center right")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
