"""When a probability is worth its costs: the mean cost of decisions against what mistakes cost.

Two kinds of mistakes have a cost each: to miss the second class, and to raise a false alarm. Only their ratio r decides: with
costs r/(1+r) and 1/(1+r), times a common scale, the Bayes decision is the second class where its probability exceeds 1/(1+r).
At r = 1 and the scale 2 a mean cost is the share of mistakes.
"""

from typing import Any, Self

import numpy as np

from lemmata.decision.decide import Decide
from lemmata.decision.risk import bayes_action, bayes_risk
from lemmata.plot.boundary import class_numbers
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet
from lemmata.plot.ticks import round_ticks

RATIOS = np.geomspace(1 / 50, 50, 121)
HATCH = "////"
AXIS_WIDTH = 42  # points that the numbers and the name of the right axis take


class CostCurveDisplay:
    """Mean cost of the Bayes decisions of a classifier against the ratio of the costs of its two mistakes.

    Beside it stand the costs of always deciding for the most probable class, which ignores the costs, and of the two constant
    decisions, which ignore the row. The thin line is what the probabilities promise: where it leaves the curve of the Bayes
    decisions they are not calibrated, on these rows. A `Decide` that may refuse has its share of refused rows behind.

    Parameters
    ----------
    ratios : Cost of missing the second class over that of a false alarm.
    costs : Mapping from "bayes", "argmax", "never" and "always" to mean costs at each ratio.
    promised : Mean expected cost of the Bayes decisions by the probabilities.
    rejected : Share of the rows that are refused at each ratio, or None.
    ratio : That of the model's own costs, or None.
    scale : Sum of the two costs.
    classes : What the two classes are called.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.
    share_ax_ : Axes of the share of refused rows, or None.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["dry", "dry", "rain", "dry", "rain", "rain"]
    >>> display = CostCurveDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, costs=[1.0, 5.0])
    >>> display.costs["bayes"], display.costs["argmax"]
    (array([0.333333, 0.11111]), array([0.333333, 0.333333]))
    """

    def __init__(
        self,
        *,
        ratios: np.ndarray,
        costs: dict[str, np.ndarray],
        promised: np.ndarray,
        rejected: np.ndarray | None = None,
        ratio: float | None = None,
        scale: float = 2.0,
        classes: tuple[str, str] = ("0", "1"),
        name: str | None = None,
    ) -> None:
        self.ratios = ratios
        self.costs = costs
        self.promised = promised
        self.rejected = rejected
        self.ratio = ratio
        self.scale = scale
        self.classes = classes
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, costs: Any = None, ax: Any = None, name: str | None = None
    ) -> Self:
        """Plot the costs of a fitted classifier of two classes on rows whose classes are known, best unseen ones.

        Parameters
        ----------
        estimator : Classifier with `predict_proba`, or a `Decide`, whose costs keep their sum and change their ratio.
        costs : Ratios: how many times as much as a false alarm it costs to miss the second class; default from 1/50 to 50.
        """
        decider = estimator if hasattr(estimator, "rejected") else Decide.of(estimator)
        if len(decider.classes_) != 2:
            raise ValueError(
                f"A cost curve has two kinds of mistakes: the classifier must have 2 classes, not {len(decider.classes_)}."
            )
        ratios = np.unique(np.asarray(RATIOS if costs is None else costs, dtype=float))
        if not len(ratios) or not (ratios > 0).all() or not np.isfinite(ratios).all():
            raise ValueError(f"costs must be positive ratios of the costs of the two mistakes; got {ratios.tolist()}.")
        scale, ratio = _own_costs(decider)
        posterior = decider.predict_proba(X)
        truth = class_numbers(np.asarray(decider.classes_), y)
        if len(truth) != len(posterior):
            raise ValueError(f"There are {len(posterior)} rows in X and {len(truth)} classes in y; give one for each row.")
        rules = {"argmax": posterior.argmax(axis=1), "never": np.zeros_like(truth), "always": np.ones_like(truth)}
        found = {key: np.empty(len(ratios)) for key in ("bayes", *rules)}
        promised, refused = np.empty(len(ratios)), np.empty(len(ratios))
        for i, r in enumerate(ratios):
            table = scale * np.array([[0.0, r / (1 + r)], [1 / (1 + r), 0.0]])
            if decider.reject_cost is not None:
                table = np.vstack([table, np.full(2, decider.reject_cost)])
            rules["bayes"] = bayes_action(posterior, table)
            promised[i], refused[i] = np.mean(bayes_risk(posterior, table)), np.mean(rules["bayes"] == 2)
            for key, taken in rules.items():
                found[key][i] = table[taken, truth].mean()
        first, second = decider.classes_
        display = cls(
            ratios=ratios,
            costs=found,
            promised=promised,
            rejected=None if decider.reject_cost is None else refused,
            ratio=ratio,
            scale=scale,
            classes=(str(first), str(second)),
            name=f"{type(estimator).__name__}: what its decisions cost" if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves."""
        from matplotlib.transforms import offset_copy

        ax = axes(ax, (7.6, 4.4))
        first, second = self.classes
        self.share_ax_ = self._share(ax)
        shown = {
            "never": (f"always decide {first}", {"color": CLASS_COLORS[2], "ls": (0, (1, 1.6)), "lw": 1.8}),
            "always": (f"always decide {second}", {"color": CLASS_COLORS[3], "ls": (0, (6, 2, 1, 2)), "lw": 1.8}),
            "argmax": ("most probable class", {"color": CLASS_COLORS[1], "ls": (0, (4, 3)), "lw": 1.8}),
            "bayes": ("least expected cost (Bayes)", {"color": CLASS_COLORS[0], "lw": 2.6}),
        }
        for key, (label, style) in shown.items():
            ax.plot(self.ratios, self.costs[key], label=label, **style)
        ax.plot(self.ratios, self.promised, color=ink(), lw=0.9, label="promised by the probabilities")
        if self.ratio is not None:
            ax.axvline(self.ratio, color=NEUTRAL, lw=1, label="ratio of the model's own costs", zorder=1)
        above = max(float(self.costs[key].max()) for key in ("bayes", "argmax"))
        ax.set(
            xscale="log", ylim=(0, 1.25 * max(above, float(self.promised.max()), np.finfo(float).tiny)), title=self.name or ""
        )
        if len(self.ratios) > 1:
            ax.set_xlim(self.ratios[0], self.ratios[-1])
        round_ticks(ax.xaxis, self.ratios[0], self.ratios[-1])
        ax.set_xlabel(f"cost of missing {second} ÷ cost of a false alarm")
        ax.set_ylabel(f"mean cost (the two costs sum to {self.scale:g})")
        handles, _ = ax.get_legend_handles_labels()
        if self.share_ax_ is not None:
            handles += self.share_ax_.get_legend_handles_labels()[0]
        beside = offset_copy(ax.transAxes, ax.figure, x=AXIS_WIDTH if self.share_ax_ else 0, units="points")
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "bbox_transform": beside}
        ax.legend(handles=handles, frameon=False, fontsize="small", **place)
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _share(self, ax: Any) -> Any:
        """Draw the share of refused rows behind the costs, on an axis of its own."""
        if self.rejected is None:
            return None
        behind = ax.twinx()
        behind.set_zorder(ax.get_zorder() - 1)
        ax.patch.set_visible(False)  # what is behind shows through
        style = {"facecolor": NEUTRAL, "alpha": 0.25, "edgecolor": NEUTRAL, "lw": 0, "hatch": HATCH}
        behind.fill_between(self.ratios, self.rejected, label="refused rows (right axis)", **style)
        behind.set(ylim=(0, 1), ylabel="share of refused rows")
        behind.spines[["top"]].set_visible(False)
        return behind


def _own_costs(decider: Any) -> tuple[float, float | None]:
    """Return the sum of the costs of the two mistakes, and their ratio if the model has costs of its own."""
    if callable(decider.costs) or callable(decider.reject_cost):
        raise ValueError(
            "A cost curve varies costs that are the same for all rows; those of this Decide are functions of the row."
        )
    if decider.costs is None:
        return 2.0, None
    table = np.asarray(decider.costs_)
    if table.shape != (2, 2) or np.diag(table).any() or not (table >= 0).all() or not table.any():
        raise ValueError("A cost curve needs two actions, of which the right one costs nothing and the wrong one something.")
    false_alarm, miss = table[1, 0], table[0, 1]
    return float(table.sum()), float(miss / false_alarm) if false_alarm > 0 and miss > 0 else None
