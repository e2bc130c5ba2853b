"""Association rules as points: how often they apply, how often they are right, and how far that is from chance."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from lemmata.association import Rules
from lemmata.plot.drawing import MAX_ROWS, NEUTRAL, axes, quiet
from lemmata.plot.network import clipped
from lemmata.plot.point_labels import write_beside

# Blue for less than by chance, orange for more, gray for neither; half-way colors are clear, so that most rules have one.
SHADES = ((0.0, "#2a5fc4"), (0.3, "#6aa3e8"), (0.5, NEUTRAL), (0.7, "#e3a72f"), (1.0, "#c9480d"))
EDGE = 1.0001  # by which a mark may be outside of its axis
LEAST_REACH = 2.0  # lift up to which colors go at least: rules that are all near chance are gray
WIDE = 20.0  # largest against smallest support, from which the axis is logarithmic
TRIED = 200  # rules that are looked at for labels
LONGEST = 30  # letters of a side of a rule
CONFIDENCES = (0.8, 0.5, 0.2, 0.0)  # asked of the rules of a model, until there are some


class Shown(NamedTuple):
    """The best rules of many, best first."""

    antecedents: list[tuple[str, ...]]
    consequents: list[tuple[str, ...]]
    support: np.ndarray
    confidence: np.ndarray
    lift: np.ndarray
    rows: np.ndarray  # their numbers among all
    total: int  # how many there are in all


class RulesDisplay:
    """Rules as points: support, confidence, and lift as a color, which is gray at 1, where a rule says nothing.

    Rules to the right apply often, those at the top are seldom wrong, and orange ones say more than that the consequent is
    popular. Blue ones, however confident, are right less often than a guess that does not look at the antecedent.

    Parameters
    ----------
    support, confidence, lift : (n,), of the rules.
    labels : {number of a rule: what to write beside its point}, the most interesting first; what has no room is left out.
    most_labels : How many to write at most.
    name : What to write above the plot.

    Attributes
    ----------
    labelled_ : Numbers of the rules that have a label.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.association import association_rules
    >>> rules = association_rules([["tea", "milk"], ["tea", "milk"], ["tea"], ["jam"]] * 5, min_confidence=0.8)
    >>> display = RulesDisplay.from_rules(rules)
    >>> display.labels, display.ax_.get_title()
    ({0: 'milk ⇒ tea'}, '1 rule')
    """

    def __init__(
        self,
        *,
        support: Any,
        confidence: Any,
        lift: Any,
        labels: Mapping[int, str] | None = None,
        most_labels: int = 6,
        name: str | None = None,
    ) -> None:
        self.support = np.asarray(support, dtype=float)
        self.confidence = np.asarray(confidence, dtype=float)
        self.lift = np.asarray(lift, dtype=float)
        self.labels = {} if labels is None else dict(labels)
        self.most_labels = most_labels
        self.name = name

    @classmethod
    def from_rules(
        cls,
        rules: Any,
        *,
        by: str = "lift",
        labels: int | Sequence[int] = 6,
        max_rules: int = MAX_ROWS,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot rules: `Rules`, or a frame with their columns.

        Parameters
        ----------
        by : Column that tells which rules are best: the smallest p-values, or the largest of anything else.
        labels : How many of the best to name, of each set of items one; or the numbers of the rules to name.
        max_rules : Of more rules than this the best are shown.
        """
        shown = best_rules(rules, by, max_rules)
        if isinstance(labels, int):
            most, named = labels, distinct(shown)
        else:
            place = {int(row): i for i, row in enumerate(shown.rows)}
            most, named = len(labels), [place[int(row)] for row in labels if int(row) in place]
        texts = {i: text_of(shown.antecedents[i], shown.consequents[i]) for i in named}
        title = told(shown, by, name)
        measures = {"support": shown.support, "confidence": shown.confidence, "lift": shown.lift}
        return cls(**measures, labels=texts, most_labels=most, name=title).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        min_confidence: float | None = None,
        by: str = "lift",
        labels: int = 6,
        max_rules: int = MAX_ROWS,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the rules of a fitted `Apriori`; X and y are not looked at.

        Parameters
        ----------
        min_confidence : Least confidence; None: 0.8, or less if no rule is so confident.
        by, labels, max_rules : See `from_rules`.
        """
        rules, title = rules_of_model(estimator, min_confidence, name)
        return cls.from_rules(rules, by=by, labels=labels, max_rules=max_rules, ax=ax, name=title)

    def plot(self, ax: Any = None) -> Self:
        """Draw the points, those furthest from chance on top, and write beside the best what they say."""
        ax = axes(ax, (6.8, 4.6))
        ax.set(xlabel="support", ylabel="confidence")
        ax.set_title(self.name or "", fontsize="medium")
        quiet(ax)
        self.ax_, self.figure_, self.labelled_ = ax, ax.figure, list[int]()
        n = len(self.lift)
        if n == 0:
            say_that_there_are_none(ax)
            return self
        colors = lift_colors(self.lift)
        order = np.argsort(np.abs(np.log(positive(self.lift))), kind="stable")
        style = {"s": float(np.clip(4_000 / n, 9, 44)), "alpha": 0.9 if n <= 200 else 0.65, "linewidths": 0, "zorder": 2}
        ax.scatter(self.support[order], self.confidence[order], c=colors.to_rgba(positive(self.lift[order])), **style)
        ax.margins(0.06, 0.08)
        if self.support.max() > WIDE * self.support.min() > 0:
            ax.set_xscale("log")
            marks = round_ticks(*ax.get_xlim())
            ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
            ax.set_xticks([], minor=True)
        lift_bar(ax.figure.colorbar(colors, ax=ax, shrink=0.85, pad=0.02), self.lift)
        self.labelled_ = write_beside(ax, self.support, self.confidence, self.labels, self.most_labels, style["s"])
        return self


def say_that_there_are_none(ax: Any) -> None:
    """Write that there are no rules, where they would be."""
    ax.text(0.5, 0.5, "no rules", transform=ax.transAxes, ha="center", va="center", color=NEUTRAL)


def best_rules(rules: Any, by: str, most: int) -> Shown:
    """Take the best of rules, whatever frame they are in.

    >>> frame = {"antecedent": [{"tea"}, {"jam"}], "consequent": [{"jam"}, {"tea", "milk"}], "lift": [1.5, 2.0]}
    >>> import pandas as pd
    >>> best_rules(pd.DataFrame(frame | {"support": [0.1, 0.2], "confidence": [0.6, 0.7]}), "lift", 1)[:2]
    ([('jam',)], [('milk', 'tea')])
    """
    if not isinstance(rules, Rules):
        import narwhals as nw

        rules = nw.from_native(rules, eager_only=True, pass_through=True)
        if not isinstance(rules, nw.DataFrame):
            raise ValueError(
                f"Rules come from association_rules, or from a frame with their columns; got {type(rules).__name__}."
            )
    needed = ["antecedent", "consequent", "support", "confidence", "lift", by]
    missing = [name for name in needed if name not in rules.columns]
    if missing:
        raise ValueError(f"Rules need a column {missing[0]!r} to be drawn; there are {', '.join(rules.columns)}.")
    if by in needed[:2]:
        raise ValueError(f"Rules are ranked by a column of numbers, such as 'lift'; {by!r} holds sets.")
    values = np.asarray(rules[by], dtype=float)
    rows = np.argsort(values if "p_value" in by else -values, kind="stable")[:most]
    kept = rules.take(rows) if isinstance(rules, Rules) else rules[rows.tolist()]
    sides = [[names_of(side) for side in np.asarray(kept[name], dtype=object)] for name in needed[:2]]
    return Shown(*sides, *(np.asarray(kept[name], dtype=float) for name in needed[2:5]), rows, len(rules))


def names_of(items: Any) -> tuple[str, ...]:
    """Name the items of a set in an order that does not depend on chance.

    >>> names_of({10, 9}), names_of(["tea", "milk"])
    (('9', '10'), ('milk', 'tea'))
    """
    try:
        return tuple(map(str, sorted(items)))
    except TypeError:
        return tuple(sorted(map(str, items)))


def distinct(shown: Shown) -> list[int]:
    """Choose of each set of items the first rule that is made of it: the others say much the same."""
    seen: set[frozenset[str]] = set()
    chosen = []
    for i, (left, right) in enumerate(zip(shown.antecedents[:TRIED], shown.consequents[:TRIED], strict=True)):
        both = frozenset(left + right)
        if both not in seen:
            seen.add(both)
            chosen.append(i)
    return chosen


def text_of(left: Sequence[str], right: Sequence[str]) -> str:
    """Write a rule.

    >>> text_of(["milk", "tea"], ["jam"])
    'milk, tea ⇒ jam'
    """
    return f"{clipped(', '.join(left), LONGEST)} ⇒ {clipped(', '.join(right), LONGEST)}"


def told(shown: Shown, by: str, name: str | None) -> str:
    """Say how many rules are shown, and which."""
    n = len(shown.lift)
    rules = f"{n:,} rule{'s' if n != 1 else ''}"
    if n < shown.total:
        rules = f"{n:,} of {shown.total:,} rules, by {by.replace('_', ' ')}"
    return f"{name}: {rules}" if name else rules


def rules_of_model(estimator: Any, min_confidence: float | None, name: str | None) -> tuple[Rules, str]:
    """Make the rules of a model, and what to write above them."""
    name = type(estimator).__name__ if name is None else name
    for least in CONFIDENCES if min_confidence is None else (min_confidence,):
        rules = estimator.rules(min_confidence=least)
        if rules:
            break
    return rules, f"{name}, confidence ≥ {least:g}" if least else name


def positive(lift: np.ndarray) -> np.ndarray:
    """Give lifts a logarithm: 0 is as small as can be."""
    return np.maximum(lift, np.finfo(float).tiny)


def lift_colors(lift: np.ndarray) -> Any:
    """Map lifts to colors: gray at 1, and to each side by their logarithm, up to the furthest that there is.

    Lifts below 1 are seldom as far from it as those above, and are what one should see, so each side has a scale of its own.

    >>> colors = lift_colors(np.array([0.5, 16.0]))
    >>> np.asarray(colors.norm([0.5, 1.0, 4.0, 16.0])).round(3)
    array([0.  , 0.5 , 0.75, 1.  ])
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import FuncNorm, LinearSegmentedColormap

    shown = lift[lift > 0]
    least, most = min(1 / LEAST_REACH, float(shown.min(initial=1.0))), max(LEAST_REACH, float(shown.max(initial=1.0)))
    sides = np.log([1 / least, most])

    def share(values: Any) -> Any:
        """Give −1 for the least lift, 0 for 1, 1 for the largest."""
        away = np.log(positive(np.asarray(values, dtype=float)))
        return np.where(away < 0, away / sides[0], away / sides[1])

    def value(shares: Any) -> Any:
        """Give the lift of a share."""
        shares = np.asarray(shares, dtype=float)
        return np.exp(np.where(shares < 0, shares * sides[0], shares * sides[1]))

    return ScalarMappable(FuncNorm((share, value), least, most), LinearSegmentedColormap.from_list("lift", SHADES))


def lift_bar(bar: Any, lift: np.ndarray) -> None:
    """Cut a bar of colors to the lifts that there are, and write round numbers beside it."""
    from matplotlib.ticker import NullLocator

    low, high = min(1.0, float(positive(lift).min())), max(1.0, float(lift.max()))
    low, high = max(low, bar.norm.vmin), min(high, bar.norm.vmax)
    if low == high:
        low, high = bar.norm.vmin, bar.norm.vmax
    axis = bar.ax.xaxis if bar.orientation == "horizontal" else bar.ax.yaxis
    (bar.ax.set_xlim if bar.orientation == "horizontal" else bar.ax.set_ylim)(low, high)
    marks = round_ticks(low, high)
    axis.set_ticks(marks, [f"{mark:g}" for mark in marks])
    axis.set_minor_locator(NullLocator())
    bar.set_label("lift")
    bar.outline.set_visible(False)


def round_ticks(low: float, high: float) -> list[float]:
    """Choose round numbers for a logarithmic axis.

    >>> round_ticks(0.4, 9.0), round_ticks(1.0, 1.3), round_ticks(0.9, 300.0)
    ([0.5, 1.0, 2.0, 5.0], [1.0, 1.1, 1.2, 1.3], [1.0, 10.0, 100.0])
    """
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for digits in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        marks = np.outer(decades, digits).ravel()
        marks = marks[(marks >= low / EDGE) & (marks <= high * EDGE)]
        if len(marks) >= 3:
            return [float(f"{mark:.6g}") for mark in marks]
    step = 10.0 ** np.floor(np.log10((high - low) / 2))
    step *= max(factor for factor in (1, 2, 5) if factor * step <= (high - low) / 2)
    return [float(f"{k * step:.6g}") for k in range(int(np.ceil(low / EDGE / step)), int(high * EDGE / step) + 1)]
