"""How many components: the error of hidden entries, or the perplexity of unseen documents, over their number."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet


class RankCurveDisplay:
    """Errors over the number of components: one thin line for each way to hide entries, and their mean.

    Parameters
    ----------
    ranks : (n,), numbers of components or topics.
    errors : (repeats, n), or (n,): the error of hidden entries, perplexity, or anything of which less is better.
    label : What the errors are.
    name : What to write above the plot.

    Attributes
    ----------
    best_ : Number with the smallest mean error.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = RankCurveDisplay(ranks=[1, 2, 3], errors=[4.0, 1.0, 1.2], name="NMF").plot()
    >>> display.best_, display.ax_.get_title()
    (2, 'NMF: least at 2 components')
    """

    def __init__(self, *, ranks: Any, errors: Any, label: str = "error of hidden entries", name: str | None = None) -> None:
        self.ranks = np.asarray(ranks)
        self.errors = np.atleast_2d(np.asarray(errors, dtype=float))
        self.label = label
        self.name = name

    @classmethod
    def from_curve(cls, curve: Any, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot what `lemmata.decomposition.select_rank` returned."""
        return cls(ranks=curve.ranks, errors=curve.errors, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the errors."""
        from matplotlib.ticker import MaxNLocator

        ax = axes(ax, (5.6, 4.0))
        mean = self.errors.mean(axis=0)
        if len(self.errors) > 1:
            ax.plot(self.ranks, self.errors.T, color=NEUTRAL, lw=0.8)
        ax.plot(self.ranks, mean, "o-", color=CLASS_COLORS[0], lw=2, ms=5)
        self.best_ = int(self.ranks[mean.argmin()])
        ax.plot(self.best_, mean.min(), "o", ms=12, mfc="none", mec=ink(), mew=1.6)
        ax.set(xlabel="components", ylabel=self.label)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        told = f"least at {self.best_} component{'s' if self.best_ > 1 else ''}"
        ax.set_title(f"{self.name}: {told}" if self.name else told, fontsize="medium")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
