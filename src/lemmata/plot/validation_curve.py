"""How complex a model: the score of the fit and of held-out rows over the values of a parameter."""

from collections.abc import Iterable
from numbers import Real
from typing import Any, Self

import numpy as np

from lemmata.model_selection.validation_curve import validation_curve
from lemmata.plot.drawing import NEUTRAL, axes, ink
from lemmata.plot.learning_curve import UP_TO_ONE, draw_scores, score_name
from lemmata.plot.ticks import readable, round_ticks

DECADES = 1.5  # of positive values from which an axis is logarithmic


class ValidationCurveDisplay:
    """Mean scores over the values of a parameter: of the rows of the fit, and of rows held out, each with a band over folds.

    A ring marks the best mean of held-out rows; the line below it is one standard error lower, and the diamond is the first
    value, so the simplest one, that reaches it. The bands are approximate intervals of the means, corrected for the rows that
    fits share.

    Parameters
    ----------
    curve : What `lemmata.model_selection.validation_curve` returned.
    level : Probability that the bands should have.
    label : What the score is; default by its name.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import PolynomialRegression
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(60, 1))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=60)
    >>> display = ValidationCurveDisplay.from_estimator(
    ...     PolynomialRegression(), X, y, param_name="degree", param_range=[1, 2, 3, 4, 5], random_state=0
    ... )
    >>> display.ax_.get_title()
    'PolynomialRegression: best at degree = 3, as good at 2'
    """

    def __init__(self, curve: Any, *, level: float = 0.95, label: str | None = None, name: str | None = None) -> None:
        self.curve = curve
        self.level = level
        self.label = label
        self.name = name

    @classmethod
    def from_curve(
        cls, curve: Any, *, level: float = 0.95, label: str | None = None, ax: Any = None, name: str | None = None
    ) -> Self:
        """Plot what `lemmata.model_selection.validation_curve` returned."""
        return cls(curve, level=level, label=label, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        param_name: str,
        param_range: Iterable[Any],
        cv: Any = 5,
        groups: Any = None,
        sample_weight: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        level: float = 0.95,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Fit an estimator with several values of a parameter, from the simplest to the most complex, and plot the curve."""
        curve = validation_curve(
            estimator,
            X,
            y,
            param_name=param_name,
            param_range=param_range,
            cv=cv,
            groups=groups,
            sample_weight=sample_weight,
            scoring=scoring,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        return cls.from_curve(curve, level=level, ax=ax, name=type(estimator).__name__ if name is None else name)

    def plot(self, ax: Any = None) -> Self:
        """Draw the two curves, their bands, and the best and the simplest value."""
        curve = self.curve
        ax = axes(ax, (5.8, 4.0))
        x = self._place(ax)
        means, parameter = curve.test_means, curve.param_name.split("__")[-1]
        best, simplest = (
            next(i for i, other in enumerate(curve.values) if other is value) for value in (curve.best, curve.simplest)
        )
        enough = means[best] - np.nan_to_num(curve.test_standard_errors[best])
        score = score_name(curve)
        draw_scores(ax, x, curve, self.level, 1.0 if score in UP_TO_ONE else np.inf)
        ring = {"ls": "", "mfc": "none", "mec": ink(), "mew": 1.6, "zorder": 4}
        ax.plot(x[best], means[best], "o", ms=12, label=f"best: {shown(curve.best)}", **ring)
        ax.axhline(enough, color=NEUTRAL, lw=1, ls=(0, (1, 1.6)), zorder=1, label="best, less one standard error")
        if simplest != best:
            ax.plot(x[simplest], means[simplest], "D", ms=11, label=f"simplest above it: {shown(curve.simplest)}", **ring)
        ax.legend(frameon=False, fontsize="small", markerscale=0.8, loc="best")
        ax.set(xlabel=parameter, ylabel=self.label or score)
        told = f"best at {parameter} = {shown(curve.best)}" + (
            f", as good at {shown(curve.simplest)}" if simplest != best else ""
        )
        ax.set_title(f"{self.name}: {told}" if self.name else told, fontsize="medium")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _place(self, ax: Any) -> np.ndarray:
        """Give every value its place on the axis: where it is if it is a number, else one beside another; simple ones left."""
        from matplotlib.ticker import MaxNLocator

        values = self.curve.values
        if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
            ax.set_xticks(range(len(values)), [shown(value) for value in values])
            return np.arange(len(values))
        x = np.array(values, dtype=float)
        if x.min() > 0 and np.log10(x.max() / x.min()) >= DECADES:
            ax.set_xscale("log")
            round_ticks(ax.xaxis, x.min(), x.max())
        elif all(float(value).is_integer() for value in x):
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        if len(x) > 1 and x[0] > x[-1]:  # penalties fall where complexity grows
            ax.invert_xaxis()
        return x


def shown(value: Any) -> str:
    """Write the value of a parameter.

    Examples
    --------
    >>> shown(0.1), shown(12), shown(None), shown("gini")
    ('0.1', '12', 'None', 'gini')
    """
    return readable(float(value), 3) if isinstance(value, Real) and not isinstance(value, bool) else str(value)
