"""Coefficients over the penalty: which columns a lasso lets in, and when."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import NEUTRAL, axes, class_colors, some_rows

MOST_NAMES = 8  # of coefficients that are told apart by color; the others are gray
ROOM = 0.045  # share of the axis between two names


def visible(coefs: np.ndarray) -> np.ndarray:
    """Return the coefficients without those that are zero between zeros: a line begins where it leaves the axis.

    >>> visible(np.array([[0.0, 0.0, 1.0, 2.0, 0.0]]))
    array([[nan,  0.,  1.,  2.,  0.]])
    """
    zero = np.pad(coefs == 0, ((0, 0), (1, 1)), constant_values=True)
    return np.where(zero[:, :-2] & zero[:, 1:-1] & zero[:, 2:], np.nan, coefs)


class CoefficientPathDisplay:
    """Coefficients of the lasso over a sequence of penalties, and how many are not zero.

    The largest at the smallest penalty have a color and their name; the numbers above the plot count the coefficients that
    are not zero.

    Parameters
    ----------
    alphas : Penalties.
    coefs : Coefficients, of shape (columns, penalties).
    dual_gaps : Proven distances of the objectives from their least values, if they are known.
    names : What to call the columns.
    chosen : Penalty to mark.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> X, y = [[-1.5, 1.0], [-0.5, -1.0], [0.5, -1.0], [1.5, 1.0]], [-1.75, 0.25, -0.75, 2.25]
    >>> display = CoefficientPathDisplay.from_data(X, y, n_alphas=20, chosen=0.25)
    >>> display.coefs.shape, display.ax_.get_xscale()
    ((2, 20), 'log')
    """

    def __init__(
        self,
        alphas: Any,
        coefs: Any,
        dual_gaps: Any = None,
        *,
        names: Any = None,
        chosen: float | None = None,
        name: str | None = None,
    ) -> None:
        self.alphas = alphas
        self.coefs = coefs
        self.dual_gaps = dual_gaps
        self.names = names
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        fit_intercept: bool = True,
        names: Any = None,
        chosen: float | None = None,
        ax: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Solve the lasso for a sequence of penalties and plot it.

        Parameters
        ----------
        fit_intercept : Whether there is a free intercept, as `Lasso` has by default.
        chosen : Penalty to mark.
        options : Of `lasso_path`, such as eps, n_alphas, alphas, l1_ratio and positive.
        """
        from lemmata.linear_model import lasso_path  # here, so that importing lemmata.plot compiles nothing

        names = some_rows(None, X, most=1)[2] if names is None else names
        path = lasso_path(X, y, fit_intercept=fit_intercept, **options)
        return cls(*path, names=names, chosen=chosen, name=name).plot(ax)

    @classmethod
    def from_path(
        cls,
        alphas: Any,
        coefs: Any,
        dual_gaps: Any = None,
        *,
        names: Any = None,
        chosen: float | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot what `lasso_path` returned, or any coefficients over any penalties."""
        return cls(alphas, coefs, dual_gaps, names=names, chosen=chosen, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a line for each coefficient, over the logarithm of the penalty."""
        ax = axes(ax, (6.4, 4.6))
        alphas, coefs = np.asarray(self.alphas, dtype=float), np.asarray(self.coefs, dtype=float)
        last = coefs[:, alphas.argmin()]
        large = np.argsort(-np.abs(last), kind="stable")[:MOST_NAMES]
        large = large[last[large] != 0]
        lines = visible(coefs)
        for j in np.setdiff1d(np.arange(len(coefs)), large):
            ax.plot(alphas, lines[j], color=NEUTRAL, lw=0.8, alpha=0.6)
        for j, color in zip(large, class_colors(len(large)), strict=True):
            ax.plot(alphas, lines[j], color=color, lw=1.8)
        ax.axhline(0, color=NEUTRAL, lw=0.8, zorder=0)
        if self.chosen is not None:
            ax.axvline(self.chosen, color=NEUTRAL, lw=1.2, ls=(0, (4, 3)), zorder=0)
        ax.set(xscale="log", xlim=(alphas.max(), alphas.min()), xlabel="penalty α, falling", ylabel="coefficient")
        self._names(ax, last, large)
        self._counts(ax, alphas, coefs)
        ax.set_title(self.name or "")
        ax.spines["right"].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _names(self, ax: Any, last: np.ndarray, large: np.ndarray) -> None:
        """Write the names beside the ends of the lines, from the lowest up, none on top of another."""
        names = [f"x{j}" for j in range(len(last))] if self.names is None else [str(n) for n in self.names]
        low, high = ax.get_ylim()
        place, gap = -np.inf, ROOM * (high - low)
        colors = dict(zip(large, class_colors(len(large)), strict=True))
        for j in large[np.argsort(last[large], kind="stable")]:
            place = max(last[j], place + gap)
            ax.annotate(
                names[j],
                (1, place),
                xycoords=ax.get_yaxis_transform(),
                xytext=(5, 0),  # points
                textcoords="offset points",
                va="center",
                fontsize="small",
                color=colors[j],
            )

    def _counts(self, ax: Any, alphas: np.ndarray, coefs: np.ndarray) -> None:
        """Count above the plot the coefficients that are not zero."""
        from matplotlib.ticker import NullLocator

        top = ax.secondary_xaxis("top")
        places = np.geomspace(alphas.max(), alphas.min(), 7)  # more would touch each other
        nearest = [int(np.abs(np.log(alphas / place)).argmin()) for place in places]
        top.xaxis.set_minor_locator(NullLocator())
        top.set_xticks(alphas[nearest], [str(int((coefs[:, k] != 0).sum())) for k in nearest], minor=False)
        top.set_xlabel("coefficients that are not zero", fontsize="small")
        top.tick_params(labelsize="small", length=0)
        top.spines["top"].set_visible(False)
