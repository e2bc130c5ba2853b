"""What evidence changes: marginals before and after, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet
from lemmata.plot.network import percent

MOST_VARIABLES = 8  # unless told otherwise: those that the evidence changes most
ROOM = 0.24  # inches for a state


class MarginalsDisplay:
    """A bar for the probability of each state of some variables, before evidence and given it.

    Parameters
    ----------
    names : Names of the variables.
    states : Labels of the states of each.
    prior : Probabilities of the states of each, without evidence.
    posterior : Probabilities given the evidence; None if there is none.
    given : What is known, in words.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.graphical import BayesNet
    >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
    >>> display = MarginalsDisplay.from_estimator(net, evidence={"wet": 1}, variables=["rain"])
    >>> display.prior[0], display.posterior[0], display.given
    (array([0.8, 0.2]), array([0.2963, 0.7037]), 'wet = 1')
    """

    def __init__(
        self,
        *,
        names: list[str],
        states: list[tuple[str, ...]],
        prior: list[np.ndarray],
        posterior: list[np.ndarray] | None = None,
        given: str = "",
        name: str | None = None,
    ) -> None:
        self.names = names
        self.states = states
        self.prior = prior
        self.posterior = posterior
        self.given = given
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        variables: Sequence[Any] | None = None,
        evidence: Mapping[Any, Any] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot marginals of a `BayesNet` or a `FactorGraph`; X and y are not looked at.

        Parameters
        ----------
        variables : Names; default at most eight without hard evidence, those that the evidence changes most.
        evidence : What is known, as for `marginals` of the model.
        """
        before = estimator.marginals()
        after = estimator.marginals(evidence) if evidence else None
        if variables is None:
            soft = {v for v, value in (evidence or {}).items() if isinstance(value, (list, np.ndarray))}
            free = [v for v in estimator.variables if v not in (evidence or {}) or v in soft]
            if after is not None:
                change = {v: np.abs(after[v] - before[v]).sum() for v in free}
                chosen = set(sorted(free, key=lambda v: -change[v])[:MOST_VARIABLES])
                free = [v for v in free if v in chosen]
            variables = free[:MOST_VARIABLES]
        variables = [variables] if isinstance(variables, str) else list(variables)
        unknown = [v for v in variables if v not in before]
        if unknown:
            raise ValueError(f"There is no variable {unknown[0]!r} to be shown.")
        title = type(estimator).__name__ if name is None else name
        return cls(
            names=[str(v) for v in variables],
            states=[tuple(map(str, estimator.states[v])) for v in variables],
            prior=[before[v] for v in variables],
            posterior=None if after is None else [after[v] for v in variables],
            given=", ".join(_told(v, value) for v, value in (evidence or {}).items()),
            name=title,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the states of each variable from the top, with a bar or two for each, and write the numbers beside them."""
        from matplotlib.patches import Patch

        counts = [len(labels) for labels in self.states]
        starts = np.concatenate([[0], np.cumsum(np.array(counts) + 0.9)])  # a gap between variables
        both = self.posterior is not None
        ax = axes(ax, (6.0, 1.1 + ROOM * (1.35 if both else 1.0) * starts[-1]))
        heights = [starts[i] + np.arange(k) for i, k in enumerate(counts)]
        y = np.concatenate(heights)
        kinds = [(np.concatenate(self.prior), NEUTRAL, "before")]
        if self.posterior is not None:
            kinds.append((np.concatenate(self.posterior), CLASS_COLORS[0], f"given {_short(self.given)}"))
        thick = 0.8 / len(kinds)
        for k, (chances, color, _) in enumerate(kinds):
            at = y + thick * (k - (len(kinds) - 1) / 2)
            ax.barh(at, chances, height=0.9 * thick, color=color, alpha=0.95 if k else 0.7)
        for height, chance in zip(y, kinds[-1][0], strict=True):
            at = height + thick * (len(kinds) - 1) / 2
            style = {"textcoords": "offset points", "va": "center", "fontsize": "x-small", "color": ink()}
            ax.annotate(percent(chance), (chance, at), (4, 0), **style)
        for height, name in zip(heights, self.names, strict=True):
            place = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "xytext": (4, 0)}
            ax.annotate(name, (0, height[0] - 0.72), **place, va="center", fontsize="small", fontweight="bold", color=ink())
        ax.set_yticks(y, [label for labels in self.states for label in labels], fontsize="small")
        ax.set(ylim=(y[-1] + 0.6, -1.15), xlim=(0, 1.1), xlabel="probability", title=self.name or "")
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
        ax.tick_params(axis="y", length=0)
        quiet(ax)
        if both:
            handles = [Patch(color=color, alpha=0.95 if k else 0.7, label=label) for k, (_, color, label) in enumerate(kinds)]
            ax.legend(handles=handles, frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=2)
            ax.set_title(self.name or "", pad=24)  # above the legend
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _told(variable: Any, value: Any) -> str:
    """Say what is known of a variable."""
    if isinstance(value, (list, np.ndarray)):
        return f"{variable} ∝ ({', '.join(f'{x:g}' for x in value)})"
    return f"{variable} = {value}"


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[:most].rsplit(",", 1)[0] + ", …"
