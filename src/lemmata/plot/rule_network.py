"""Association rules as a network: from the items of the antecedent to the rule, and from there to those of the consequent."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import NEUTRAL, axes, ink
from lemmata.plot.graph_layout import stress
from lemmata.plot.network import FONT, SMALL, between, box, canvas, clipped, text_width
from lemmata.plot.rules import best_rules, lift_bar, lift_colors, positive, rules_of_model, say_that_there_are_none, told

SMALLEST, LARGEST = 7.0, 18.0  # diameters of rules, in points
GAP = 34.0  # between what an arrow ties together
LEGEND = 46.0  # height of the strip below, in points
BAR = 150.0  # length of the bar of colors


class RuleNetworkDisplay:
    """Items as names and rules as dots between them: lines come from the antecedent, arrows go to the consequent.

    A dot is as large as the rule's support, and has the color of its lift: gray at 1, where a rule says nothing.

    Parameters
    ----------
    items : Names.
    antecedents, consequents : Numbers of the items of each rule.
    support, lift : (n,), of the rules.
    name : What to write above the plot.

    Attributes
    ----------
    places_ : (items + rules, 2), where items and then rules are, in points.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.association import association_rules
    >>> baskets = [["tea", "milk", "jam"], ["tea", "milk"], ["tea", "jam"], ["jam"]] * 5
    >>> display = RuleNetworkDisplay.from_rules(association_rules(baskets, min_confidence=1.0))
    >>> display.items, display.antecedents, display.consequents
    (['milk', 'jam', 'tea'], [[0], [1, 0]], [[2], [2]])
    """

    def __init__(
        self,
        *,
        items: list[str],
        antecedents: list[list[int]],
        consequents: list[list[int]],
        support: Any,
        lift: Any,
        name: str | None = None,
    ) -> None:
        self.items = items
        self.antecedents = antecedents
        self.consequents = consequents
        self.support = np.asarray(support, dtype=float)
        self.lift = np.asarray(lift, dtype=float)
        self.name = name

    @classmethod
    def from_rules(cls, rules: Any, *, by: str = "lift", max_rules: int = 20, ax: Any = None, name: str | None = None) -> Self:
        """Plot the best of `Rules`, or of a frame with their columns.

        Parameters
        ----------
        by : Column that tells which rules are best: the smallest p-values, or the largest of anything else.
        max_rules : How many to show at most; more than some forty are a ball of wool.
        """
        shown = best_rules(rules, by, max_rules)
        number: dict[str, int] = {}
        sides = (shown.antecedents, shown.consequents)
        left, right = ([[number.setdefault(item, len(number)) for item in items] for items in side] for side in sides)
        parts = {"items": list(number), "antecedents": left, "consequents": right}
        return cls(**parts, support=shown.support, lift=shown.lift, name=told(shown, by, name)).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        min_confidence: float | None = None,
        by: str = "lift",
        max_rules: int = 20,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the best rules of a fitted `Apriori`; X and y are not looked at.

        Parameters
        ----------
        min_confidence : Least confidence; None: 0.8, or less if no rule is so confident.
        by, max_rules : See `from_rules`.
        """
        rules, title = rules_of_model(estimator, min_confidence, name)
        return cls.from_rules(rules, by=by, max_rules=max_rules, ax=ax, name=title)

    def plot(self, ax: Any = None) -> Self:
        """Lay out items and rules together, then draw lines, dots, names, and what the dots mean."""
        from matplotlib.patches import Circle

        m, n = len(self.items), len(self.lift)
        if n == 0:
            ax = axes(ax, (4.0, 2.4))
            ax.set_title(self.name or "")
            ax.set_axis_off()
            say_that_there_are_none(ax)
            self.places_, self.ax_, self.figure_ = np.zeros((0, 2)), ax, ax.figure
            return self
        names = [clipped(item, 26) for item in self.items]
        sizes = [(max(text_width(name, FONT) + 14.0, 24.0), 20.0) for name in names]
        diameters = diameters_of(self.support)
        sizes = np.vstack([np.array(sizes).reshape(-1, 2), np.repeat(diameters, 2).reshape(-1, 2)])
        inwards = [(i, m + k) for k, side in enumerate(self.antecedents) for i in side]
        outwards = [(m + k, i) for k, side in enumerate(self.consequents) for i in side]
        self.places_ = places = stress(m + n, inwards + outwards, sizes, GAP)
        high = np.maximum((places + sizes / 2).max(axis=0), [BAR + 24, 12.0])  # a layout begins at 0
        ax, scale = canvas(ax, [np.array([[0.0, -LEGEND], high])], self.name)
        self.ax_, self.figure_ = ax, ax.figure
        colors = lift_colors(self.lift)
        shades = colors.to_rgba(positive(self.lift))
        for a, b in inwards + outwards:
            self._line(ax, between(places[[a, b]], sizes[[a, b]]), shades[max(a, b) - m], scale, arrow=a >= m)
        for place, diameter, shade in zip(places[m:], diameters, shades, strict=True):
            ax.add_patch(Circle(place, diameter / 2, facecolor=shade, edgecolor=ink(), lw=0.6 * scale, zorder=3))
        for name, place, size in zip(names, places, sizes, strict=False):
            box(ax, place, size, color=NEUTRAL, face=0.12, round=5.0, scale=scale)
            style = {"ha": "center", "va": "center_baseline", "fontsize": FONT * scale, "color": ink(), "zorder": 5}
            ax.text(*place, name.replace("$", r"\$"), **style)
        self._legend(ax, colors, scale)
        return self

    def _line(self, ax: Any, route: np.ndarray, color: Any, scale: float, *, arrow: bool) -> None:
        from matplotlib.patches import FancyArrowPatch

        style = {"arrowstyle": "-|>" if arrow else "-", "mutation_scale": 8 * scale, "shrinkA": 0, "shrinkB": 0}
        ax.add_patch(FancyArrowPatch(*route, **style, color=color, lw=1.0 * scale, zorder=2))

    def _legend(self, ax: Any, colors: Any, scale: float) -> None:
        """Draw a bar of colors below the network, and say what the size of a dot is."""
        inside = ax.inset_axes([0, 22 - LEGEND, BAR, 7], transform=ax.transData)
        bar = ax.figure.colorbar(colors, cax=inside, orientation="horizontal")
        lift_bar(bar, self.lift)
        inside.tick_params(labelsize=SMALL * scale, length=2, pad=1)
        inside.set_xlabel("")
        style = {"fontsize": SMALL * scale, "color": ink(), "va": "center_baseline"}
        ax.text(BAR + 8, 25.5 - LEGEND, "lift", **style)
        least, most = self.support.min(), self.support.max()
        sizes = f"size: support {least:.2g}" + (f" to {most:.2g}" if most > least else "")
        ax.text(0, 3 - LEGEND, sizes, **style)


def diameters_of(support: np.ndarray) -> np.ndarray:
    """Give circles areas by supports, within what is seen and what there is room for.

    >>> diameters_of(np.array([0.02, 0.1, 0.5])).round(1)
    array([ 7.,  8., 18.])
    """
    return np.maximum(LARGEST * np.sqrt(support / max(float(support.max(initial=0.0)), 1e-300)), SMALLEST)
