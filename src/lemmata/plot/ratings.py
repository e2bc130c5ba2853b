"""What a recommender gets wrong: ratings less what was expected, against the law that it claims."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, quiet, sample_rows
from lemmata.plot.importance import panel_beside

POINTS, LAW = CLASS_COLORS[:2]
BINS = 41  # of the histogram: an odd number, so that one is about zero


class RatingResidualsDisplay:
    """Residuals of ratings over what was expected, and their distribution beside that which the model claims.

    Where the law is right, the histogram follows the curve: narrower means that the doubts are too large, wider that they are
    too small.

    Parameters
    ----------
    expected, residuals : (ratings,)
    deviations : (ratings,), the standard deviations that the model claims.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes of the residuals, and figure, of the last plot.
    law_ax_ : Axes of their distribution.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> display = RatingResidualsDisplay(expected=[3.0, 4.0], residuals=[1.0, -1.0], deviations=[1.0, 1.0]).plot()
    >>> display.ax_.get_ylabel()
    'rating − expected'
    """

    def __init__(self, *, expected: Any, residuals: Any, deviations: Any, name: str | None = None) -> None:
        self.expected = np.asarray(expected, dtype=float)
        self.residuals = np.asarray(residuals, dtype=float)
        self.deviations = np.asarray(deviations, dtype=float)
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, name: str | None = None, max_rows: int = 5_000
    ) -> Self:
        """Plot what a model with `predict_dist` makes of pairs X of users and items whose ratings are y."""
        if y is None or not hasattr(estimator, "predict_dist"):
            told = (
                "give the ratings y of the pairs X" if y is None else "implicit feedback has no law of ratings to compare with"
            )
            raise ValueError(f"Residuals cannot be drawn: {told}.")
        law = estimator.predict_dist(X)
        expected, deviations = np.asarray(law.mean()), np.asarray(law.std())
        kept = sample_rows(len(expected), max_rows)
        name = type(estimator).__name__ if name is None else name
        residuals = np.asarray(y, dtype=float) - expected
        return cls(expected=expected[kept], residuals=residuals[kept], deviations=deviations[kept], name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw residuals, and beside them how they are and should be distributed."""
        ax = axes(ax, (8.4, 4.0))
        beside = panel_beside(ax)
        ax.scatter(self.expected, self.residuals, s=9, alpha=0.4, linewidths=0, color=POINTS)
        ax.axhline(0, color=NEUTRAL, lw=1)
        ax.set(xlabel="expected rating", ylabel="rating − expected", title=self.name or "")
        reach = 1.05 * float(np.abs(self.residuals).max(initial=1e-9))
        beside.hist(
            self.residuals, bins=BINS, range=(-reach, reach), density=True, orientation="horizontal", color=POINTS, alpha=0.5
        )
        at, deviations = np.linspace(-reach, reach, 200), np.maximum(self.deviations, np.finfo(float).tiny)
        law = (np.exp(-0.5 * (at[:, None] / deviations) ** 2) / (np.sqrt(2 * np.pi) * deviations)).mean(axis=1)
        beside.plot(law, at, color=LAW, lw=2, label="claimed by the model")
        beside.set_xlabel("density")
        spread = float((self.residuals / deviations).std())
        beside.set_title(f"errors are {spread:.2f} × the claimed deviations", fontsize="medium")
        beside.legend(frameon=False, fontsize="small")
        beside.tick_params(labelleft=False)
        quiet(ax)
        quiet(beside)
        self.ax_, self.figure_, self.law_ax_ = ax, ax.figure, beside
        return self
