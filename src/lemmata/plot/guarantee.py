"""What can be promised about a model: a bar for each bound, what was observed, and what a constant prediction would lose."""

from textwrap import fill
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink
from lemmata.theory.guarantees.guarantee import guarantee

NAME_WIDTH, REMARK_WIDTH = 30, 26  # letters of a line, beside the bars on either side
LINE_HEIGHT = 0.2  # inches of a line of text
BOUND, BEST = CLASS_COLORS[0], CLASS_COLORS[1]


class GuaranteeDisplay:
    """The bounds of a guarantee as bars, from the best to those that say nothing.

    The dark part of a bar was observed on the data, its end is the bound, the dashed line is the risk of the best constant
    prediction on the same rows. A vacuous bound, which allows every loss there can be, is gray and cut at the largest loss. The
    star is the risk that is promised: the best bound, which pays for being chosen. Bounds of another quantity than the
    promised one (a quantile beside a mean, say) have another scale and are only counted below.

    Parameters
    ----------
    guarantee : `lemmata.theory.guarantees.bound.Guarantee`.
    name : What to write above the plot; default the model.

    Attributes
    ----------
    bounds : The bounds that are shown, from the top.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X[:400], y[:400])
    >>> display = GuaranteeDisplay.from_estimator(model, X[:400], y[:400], holdout=(X[400:], y[400:]))
    >>> display.bounds[0].name, display.bounds[0].value
    ('hold-out, Clopper-Pearson', 0.187)
    """

    def __init__(self, guarantee: Any, *, name: str | None = None) -> None:
        self.guarantee = guarantee
        self.name = name
        if not len(guarantee.bounds):
            reasons = "; ".join(f"{bound}: {reason}" for bound, reason in guarantee.inapplicable.items())
            raise ValueError(f"There is no bound to show. {reasons or 'Give unseen rows as holdout=(X, y)'}.")
        best = guarantee.best
        risk = best.risk if any(bound.risk == best.risk for bound in guarantee.bounds) else guarantee.bounds[0].risk
        self.bounds = [bound for bound in guarantee.bounds if bound.risk == risk]

    @classmethod
    def from_guarantee(cls, result: Any, *, ax: Any = None, name: str | None = None) -> Self:
        """Plot what `lemmata.theory.guarantee` returned."""
        return cls(result, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        holdout: tuple[Any, Any] | None = None,
        delta: float = 0.05,
        ax: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Bound the risk of a fitted model by `lemmata.theory.guarantee`, which takes the options, and plot the bounds.

        Parameters
        ----------
        X, y : The rows that the model was fitted to.
        holdout : Rows and labels that had no part in finding the model.
        delta : Probability, over samples, with which a bound may fail.
        """
        return cls(guarantee(estimator, X, y, delta, holdout, **options), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars."""
        names = [fill(bound.name, NAME_WIDTH) for bound in self.bounds]
        remarks = [fill(_remark(bound), REMARK_WIDTH) for bound in self.bounds]
        lines = sum(1 + max(n.count("\n"), r.count("\n")) for n, r in zip(names, remarks, strict=True))
        ax = axes(ax, (8.0, 1.9 + LINE_HEIGHT * (lines + len(names))))
        limit, texts = self._limit(), [_number(bound.value) for bound in self.bounds]
        beyond = 18 + 6 * max(map(len, texts))  # points: 6 are enough for a digit, and 8 stand before the first
        for row, bound in enumerate(self.bounds):
            value = min(bound.value, limit)
            if bound.vacuous:
                ax.barh(row, value, height=0.62, color=NEUTRAL, alpha=0.3)
                ax.text(0.99 * value, row, "vacuous", ha="right", va="center", fontsize="small")
            else:
                ax.barh(row, value, height=0.62, color=BOUND, alpha=0.35, label=_once(ax, "bound"))
            ax.barh(row, min(bound.observed, limit), height=0.62, color=BOUND, label=_once(ax, "observed"))
            if bound.trivial < limit:
                ends = [row - 0.5, row + 0.5]  # bounds of the same rows have one line
                ax.plot(
                    [bound.trivial] * 2, ends, color=ink(), lw=1.2, ls=(0, (4, 3)), label=_once(ax, "best constant prediction")
                )
            beside = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "va": "center"}
            ax.annotate(texts[row], (1, row), (8, 0), fontsize="small", **beside)
            ax.annotate(remarks[row], (1, row), (beyond, 0), fontsize="x-small", **beside)
        self._star(ax)
        ax.set(xlim=(0, limit), ylim=(len(self.bounds) - 0.4, -0.6), xlabel=self._xlabel())
        ax.set_yticks(range(len(names)), names, fontsize="small")
        ax.set_title(self._title(), loc="left", pad=42, fontsize="medium")  # points; the legend has two lines below it
        ax.legend(frameon=False, fontsize="small", ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _limit(self) -> float:
        """Give the right end of the axis: the largest loss there can be, or the largest number where there is none."""
        limit = max(bound.limit for bound in self.bounds)
        finite = [x for bound in self.bounds for x in (bound.value, bound.observed) if np.isfinite(x)]
        return float(limit) if np.isfinite(limit) else 1.1 * max(finite, default=1.0)

    def _star(self, ax: Any) -> None:
        best, names = self.guarantee.best, [bound.name for bound in self.bounds]
        if best.name in names:
            style = {"ls": "", "marker": "*", "ms": 13, "color": BEST, "mec": ink(), "mew": 0.8}
            ax.plot(best.value, names.index(best.name), **style, clip_on=False, zorder=4, label="promised, the choice paid for")

    def _title(self) -> str:
        best, subject = self.guarantee.best, self.guarantee.subject if self.name is None else self.name
        if best.vacuous:
            told = "Nothing can be promised"
        else:
            told = f"Promised: risk ≤ {_number(best.value)}, with probability ≥ {1 - self.guarantee.delta:.4g}"
        return "\n".join([*([fill(subject, 70)] if subject else []), told])

    def _xlabel(self) -> str:
        risk = self.bounds[0].risk
        label = "risk: share of mistakes on new rows" if risk == "zero-one" else f"risk: {risk}, on new rows"
        hidden = len(self.guarantee.bounds) - len(self.bounds)
        others = "1 bound of another quantity is" if hidden == 1 else f"{hidden} bounds of other quantities are"
        return label + (f"\n({others} not shown)" if hidden else "")


def _remark(bound: Any) -> str:
    """Give what is to be known about a bound, without what the picture says already."""
    parts = [part for part in bound.remark.split(", ") if part not in ("vacuous", bound.risk)]
    return ", ".join(parts)


def _number(value: float) -> str:
    """Write a number with three or four digits, and a large one with its thousands apart.

    >>> [_number(x) for x in (0.0622, 787.04, 16530.2, 3.1e8)]
    ['0.0622', '787', '16,530', '3.1e+08']
    """
    if value < 100:
        return f"{value:#.3g}"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def _once(ax: Any, label: str) -> str | None:
    """Give a label to the first of its kind only."""
    return None if label in ax.get_legend_handles_labels()[1] else label
