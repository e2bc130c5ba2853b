"""Which columns matter: what they gained in a tree or an ensemble, and what is lost when one is shuffled."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lemmata.ensemble import permutation_importance
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet
from lemmata.plot.network import clipped

GAIN, LOST = CLASS_COLORS[:2]
LETTERS = 28  # of the name of a column


class ImportanceDisplay:
    """Importances of the columns as bars, the largest on top.

    A gain is the share of the loss of impurity that splits on the column had in the fit: it counts what was learned, noise too.
    Permutation importance is how much a score falls when the column is shuffled; on rows that were not fitted, it counts what
    was worth learning. A bar that reaches below zero is a column that the model is better without.

    Parameters
    ----------
    feature_names : Names of the columns.
    gain : (columns,) shares of the gain, or None.
    lost : (columns, repeats) losses of the score, one for each shuffle; or None.
    top : How many columns to show: those of the largest mean loss, or gain if there is none.
    score : What to call the score.
    name : What to write above the plot.

    Attributes
    ----------
    order_ : Numbers of the columns shown, the most important first.
    ax_, figure_ : Axes (of the gain, if both are shown) and figure of the last plot.
    lost_ax_ : Axes of the permutation importance, or None.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = ImportanceDisplay(feature_names=["a", "b"], gain=[0.3, 0.7]).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['b', 'a']
    """

    def __init__(
        self,
        *,
        feature_names: Sequence[str],
        gain: Any = None,
        lost: Any = None,
        top: int = 15,
        score: str = "score",
        name: str | None = None,
    ) -> None:
        self.feature_names = feature_names
        self.gain = None if gain is None else np.asarray(gain, dtype=float)
        self.lost = None if lost is None else np.asarray(lost, dtype=float)
        self.top = top
        self.score = score
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        top: int = 15,
        scoring: Any = None,
        n_repeats: int = 5,
        random_state: Any = 0,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot `feature_importances_`, if the model has them; and with rows X and y the permutation importance on these.

        Parameters
        ----------
        scoring, n_repeats, random_state : As for `lemmata.ensemble.permutation_importance`.
        feature_names : What to call the columns, in their order.
        """
        gain = getattr(estimator, "feature_importances_", None)
        if gain is None and (X is None or y is None):
            raise ValueError(f"{type(estimator).__name__} has no gains of its columns: give rows X and y to shuffle them in.")
        lost = None
        if X is not None and y is not None:
            lost = permutation_importance(
                estimator, X, y, scoring=scoring, n_repeats=n_repeats, random_state=random_state
            ).importances
        if feature_names is None:
            known = getattr(estimator, "feature_names_in_", getattr(X, "columns", None))
            columns = len(gain if lost is None else lost)
            feature_names = [f"x{j}" for j in range(columns)] if known is None else known
        score = "accuracy" if scoring is None and hasattr(estimator, "classes_") else "R²" if scoring is None else str(scoring)
        return cls(
            feature_names=[str(n) for n in feature_names],
            gain=gain,
            lost=lost,
            top=top,
            score=score if scoring is None or isinstance(scoring, str) else "score",
            name=type(estimator).__name__ if name is None else name,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars, side by side if there are two kinds."""
        key = self.gain if self.lost is None else self.lost.mean(axis=1)
        assert key is not None
        self.order_ = np.argsort(-key, kind="stable")[: self.top]
        both = self.gain is not None and self.lost is not None
        ax = axes(ax, (8.4 if both else 5.6, 1.2 + 0.28 * max(len(self.order_), 3)))
        self.ax_, self.figure_, self.lost_ax_ = ax, ax.figure, None
        if self.lost is not None:
            self.lost_ax_ = panel_beside(ax) if both else ax
            mean, spread = self.lost[self.order_].mean(axis=1), self.lost[self.order_].std(axis=1)
            style = {"ecolor": ink(), "error_kw": {"lw": 1.2, "zorder": 3}} if self.lost.shape[1] > 1 else {}
            bars(self.lost_ax_, mean, LOST, xerr=spread if style else None, **style)
            self.lost_ax_.set_xlabel(f"loss of {self.score} when shuffled")
            self.lost_ax_.axvline(0, color=NEUTRAL, lw=0.8)
        if self.gain is not None:
            bars(ax, self.gain[self.order_], GAIN)
            ax.set_xlabel("share of the gain in the fit")
        ax.set_yticks(np.arange(len(self.order_)), [clipped(self.feature_names[j], LETTERS) for j in self.order_])
        if both:
            self.lost_ax_.tick_params(labelleft=False)  # type: ignore[union-attr]
        hidden = len(key) - len(self.order_)
        ax.set_title((self.name or "") + (f" ({len(self.order_)} of {len(key)} columns)" if hidden else ""), loc="left")
        return self


def bars(ax: Any, values: np.ndarray, color: Any, **style: Any) -> None:
    """Draw bars to the right, the first on top."""
    ax.barh(np.arange(len(values)), values, height=0.66, color=color, **style)
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.tick_params(left=False)
    quiet(ax)


def panel_beside(ax: Any) -> Any:
    """Divide axes in two, side by side, such that a layout makes room for the labels of both."""
    figure, place = ax.figure, ax.get_subplotspec()
    if place is None:  # axes that stand where they were put
        box = ax.get_position()
        ax.set_position((box.x0, box.y0, 0.47 * box.width, box.height))
        return figure.add_axes((box.x0 + 0.53 * box.width, box.y0, 0.47 * box.width, box.height), sharey=ax)
    halves = place.subgridspec(1, 2)
    ax.set_subplotspec(halves[0])
    return figure.add_subplot(halves[1], sharey=ax)
