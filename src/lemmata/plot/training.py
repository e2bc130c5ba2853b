"""How training went: the loss of each epoch, and the score of rows held out."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from lemmata.plot.drawing import NEUTRAL, axes, class_colors, quiet


class TrainingCurveDisplay:
    """The loss of each epoch of one or several fits, and the scores of rows held out, where there are some, as dashes.

    Parameters
    ----------
    losses : Mapping from a name to the loss after each epoch.
    scores : Mapping from a name to the score after each epoch; drawn against an axis of its own.

    Attributes
    ----------
    ax_, figure_ : Axes of the losses, and figure, of the last plot.
    score_ax_ : Axes of the scores, or None.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.neural_network import MLPClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, [0, 1, 0, 1] * 5
    >>> model = MLPClassifier((4,), max_iter=8, tol=None, random_state=0).fit(X, y)
    >>> display = TrainingCurveDisplay.from_estimator(model)
    >>> len(display.losses["MLPClassifier"])
    8
    """

    def __init__(self, losses: Mapping[str, Any], scores: Mapping[str, Any] | None = None) -> None:
        self.losses = {name: np.asarray(values, dtype=float) for name, values in losses.items()}
        self.scores = {name: np.asarray(values, dtype=float) for name, values in (scores or {}).items()}

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot the `trace_` of a fitted model, and its `validation_scores_`; the data are not looked at."""
        return cls.from_estimators({type(estimator).__name__ if name is None else name: estimator}, ax=ax)

    @classmethod
    def from_estimators(cls, estimators: Mapping[str, Any], *, ax: Any = None) -> Self:
        """Plot several fitted models by name."""
        for model in estimators.values():
            if not hasattr(model, "trace_"):
                raise NotFittedError(f"{type(model).__name__} has no epochs to draw: fit it first.")
        losses = {name: model.trace_ for name, model in estimators.items()}
        held = {name: model.validation_scores_ for name, model in estimators.items() if hasattr(model, "validation_scores_")}
        return cls(losses, held).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves."""
        ax = axes(ax, (6.0, 4.2))
        colors = dict(zip(self.losses, class_colors(max(len(self.losses), 1)), strict=False))
        for name, values in self.losses.items():
            ax.plot(np.arange(1, len(values) + 1), values, lw=2, color=colors[name], label=name)
        if all((values > 0).all() for values in self.losses.values()):
            ax.set_yscale("log")
        ax.set(xlabel="epoch", ylabel="loss")
        self.score_ax_ = None
        if self.scores:
            self.score_ax_ = ax.twinx()
            for name, values in self.scores.items():
                color = colors.get(name, NEUTRAL)
                self.score_ax_.plot(np.arange(1, len(values) + 1), values, lw=1.4, ls=(0, (5, 3)), color=color)
                ax.plot([], [], lw=1.4, ls=(0, (5, 3)), color=color, label=f"{name}, rows held out")
            self.score_ax_.set_ylabel("score of rows held out")
            self.score_ax_.spines[["top"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
