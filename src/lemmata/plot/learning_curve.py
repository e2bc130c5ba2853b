"""Do more rows help: the score of the fit and of held-out rows over the number of rows."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from lemmata.model_selection.learning_curve import learning_curve
from lemmata.model_selection.scoring import measure_of
from lemmata.plot.drawing import CLASS_COLORS, axes, quiet
from lemmata.plot.ticks import readable

HELD_OUT, OF_FIT = CLASS_COLORS[:2]
UP_TO_ONE = ("accuracy", "balanced accuracy", "R²", "r2", "f1", "roc auc")  # scores that cannot exceed it
SHADE = 0.16  # opacity of a band; two of them cross
BEYOND = 0.5  # of the range of the means: as far as a band widens the axis
MARGIN = 0.03  # of it: room for a mark at the edge
DASHED = (0, (4, 2))


class LearningCurveDisplay:
    """Mean scores over the number of rows of the fit: of these rows, and of rows held out, each with a band over folds.

    The bands are approximate intervals of the means, corrected for the rows that fits share. Where the curves have met, more
    rows do not help; where they stay apart, they might.

    Parameters
    ----------
    curve : What `lemmata.model_selection.learning_curve` returned.
    level : Probability that the bands should have.
    label : What the score is; default by its name.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import LinearRegression
    >>> X = np.arange(12.0)[:, None]
    >>> display = LearningCurveDisplay.from_estimator(
    ...     LinearRegression(), X, 3 * X[:, 0] + 1, train_sizes=[2, 5, 8], cv=3, random_state=0
    ... )
    >>> display.ax_.get_title(), display.ax_.get_ylabel()
    ('LinearRegression: 1 on held-out rows with 8 to fit', 'R²')
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
        """Plot what `lemmata.model_selection.learning_curve` returned."""
        return cls(curve, level=level, label=label, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        train_sizes: Iterable[float] = (0.1, 0.325, 0.55, 0.775, 1.0),
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
        """Fit an estimator to more and more rows by `lemmata.model_selection.learning_curve`, and plot the curve."""
        curve = learning_curve(
            estimator,
            X,
            y,
            train_sizes=train_sizes,
            cv=cv,
            groups=groups,
            sample_weight=sample_weight,
            scoring=scoring,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        return cls.from_curve(curve, level=level, ax=ax, name=type(estimator).__name__ if name is None else name)

    def plot(self, ax: Any = None) -> Self:
        """Draw the two curves and their bands."""
        ax = axes(ax, (5.8, 4.0))
        sizes = self.curve.sizes
        score = score_name(self.curve)
        draw_scores(ax, sizes, self.curve, self.level, 1.0 if score in UP_TO_ONE else np.inf)
        ax.set(xlabel="rows to fit", ylabel=self.label or score, xlim=(0, 1.04 * sizes[-1]))
        told = f"{readable(self.curve.test_means[-1], 3)} on held-out rows with {sizes[-1]:,} to fit"
        ax.set_title(f"{self.name}: {told}" if self.name else told, fontsize="medium")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def draw_scores(ax: Any, x: Any, curve: Any, level: float, most: float = np.inf) -> None:
    """Draw the mean scores of held-out rows and of the fits over x, with their bands and a legend.

    The means are always in sight; a band is where it is not much wider than they reach, nor beyond the most a score can be.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from matplotlib import pyplot as plt
    >>> from types import SimpleNamespace
    >>> ends, means = np.array([[0.0, -9.0], [1.0, 11.0]]), np.array([0.5, 1.0])
    >>> curve = SimpleNamespace(
    ...     test_means=means, train_means=means, test_interval=lambda level: ends, train_interval=lambda level: ends
    ... )
    >>> ax = plt.figure().add_subplot()
    >>> draw_scores(ax, [1, 2], curve, 0.95)
    >>> [float(end) for end in ax.get_ylim()]
    [0.235, 1.265]
    """
    kinds = {
        "held-out rows": (curve.test_means, curve.test_interval(level), {"color": HELD_OUT, "marker": "o", "zorder": 3}),
        "rows of the fit": (curve.train_means, curve.train_interval(level), {"color": OF_FIT, "marker": "s", "ls": DASHED}),
    }
    for label, (mean, ends, style) in kinds.items():
        ax.fill_between(x, *ends, color=style["color"], alpha=SHADE, lw=0)
        ax.plot(x, mean, lw=2, ms=5, label=label, **style)
    means = np.concatenate([mean for mean, _, _ in kinds.values()])
    reach = np.concatenate([means, *[np.ravel(ends) for _, ends, _ in kinds.values()]])
    means, reach = means[np.isfinite(means)], reach[np.isfinite(reach)]  # a single row has no R²
    if len(means):
        span = float(np.ptp(means)) or 1.0
        low, high = max(reach.min(), means.min() - BEYOND * span), min(reach.max(), means.max() + BEYOND * span, most)
        ax.set_ylim(low - MARGIN * span, high + MARGIN * span)
    ax.legend(frameon=False, fontsize="small", markerscale=0.8, loc="best")
    quiet(ax)


def score_name(curve: Any) -> str:
    """Name the score of a curve as an axis does.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from lemmata.naive_bayes import GaussianNB
    >>> score_name(SimpleNamespace(scoring=None, estimator=GaussianNB())), score_name(SimpleNamespace(scoring="neg_log_loss"))
    ('accuracy', 'neg log loss')
    """
    if isinstance(curve.scoring, str):
        return curve.scoring.replace("_", " ")
    if curve.scoring is not None:
        return "score"
    names = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "R²"}
    return names.get(measure_of(curve.estimator), "score")
