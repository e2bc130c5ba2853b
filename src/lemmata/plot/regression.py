"""Observed against predicted values, with the line on which a perfect model lies, and the residuals below."""

from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from lemmata.plot.drawing import NEUTRAL, answers, axes, quiet, sample_rows, some_rows


class RegressionDisplay:
    """Observed against predicted values of a regression.

    Parameters
    ----------
    y_true : Observed values.
    y_pred : Predicted values.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.
    residual_ax_ : Axes of the residuals, or None.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import LinearRegression
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5]
    >>> display = RegressionDisplay.from_estimator(LinearRegression().fit(X, y), X, y, residuals=True)
    >>> display.residual_ax_.get_ylabel()
    'observed − predicted'
    """

    def __init__(self, *, y_true: Any, y_pred: Any, name: str | None = None) -> None:
        self.y_true = y_true
        self.y_pred = y_pred
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, residuals: bool = False, ax: Any = None, name: str | None = None
    ) -> Self:
        """Plot the predictions of a fitted regressor for the rows of X, at most 5,000 of them."""
        if y is None:
            raise ValueError("A regression is shown by observed against predicted values: give the targets y.")
        if getattr(estimator, "is_categorical_", None) is not None:  # text is for the model to read
            rows = sample_rows(len(X))
            X, y = _safe_indexing(X, rows), _safe_indexing(np.asarray(y), rows)
        else:
            X, y, _ = some_rows(estimator, X, y)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, answers(estimator, "predict", X), residuals=residuals, ax=ax, name=name)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, residuals: bool = False, ax: Any = None, name: str | None = None
    ) -> Self:
        """Plot predictions made by any means."""
        return cls(y_true=np.asarray(y_true), y_pred=np.asarray(y_pred), name=name).plot(ax, residuals=residuals)

    def plot(self, ax: Any = None, *, residuals: bool = False) -> Self:
        """Draw the points, at most 5,000 of them, and the line observed = predicted.

        Parameters
        ----------
        residuals : Whether to draw a panel of residuals below.
        """
        ax = axes(ax, (5.6, 6.2) if residuals else (5.6, 4.6))
        rows = sample_rows(len(self.y_true))
        observed, predicted = self.y_true[rows], self.y_pred[rows]
        style = {"s": 14, "alpha": 0.55, "linewidths": 0, "color": "C0"}
        ax.scatter(predicted, observed, **style)
        ax.axline((float(predicted.flat[0]),) * 2, slope=1, color=NEUTRAL, lw=1, zorder=0)
        ax.set(xlabel="predicted", ylabel="observed", title=self.name or "")
        quiet(ax)
        self.ax_, self.figure_, self.residual_ax_ = ax, ax.figure, None
        if residuals:
            self.residual_ax_ = _panel_below(ax)
            self.residual_ax_.scatter(predicted, observed - predicted, **style)
            self.residual_ax_.axhline(0, color=NEUTRAL, lw=1, zorder=0)
            self.residual_ax_.set(xlabel="predicted", ylabel="observed − predicted")
            quiet(self.residual_ax_)
        return self


def _panel_below(ax: Any) -> Any:
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    panel = make_axes_locatable(ax).append_axes("bottom", size="45%", pad=0.25, sharex=ax)
    ax.tick_params(labelbottom=False)
    ax.set_xlabel("")
    return panel
