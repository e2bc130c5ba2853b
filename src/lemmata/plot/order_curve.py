"""The order of a model: losses over orders, with the order suggested and the simplest that does about as well."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet

INTERVAL = 1.0  # standard errors on each side: those of the rule
WIDE = 50.0  # times the smallest value: beyond, the axis counts in powers


class OrderCurveDisplay:
    """Losses by the order of a model, one curve for each criterion, the less the better.

    Parameters
    ----------
    values : (n_values,), orders.
    losses : (repeats, n_values), or (n_values,); NaN where an order could not be judged. Of repeats, the mean is drawn with one
        standard error to each side, and the repeats thinly behind it. Or a dictionary of several criteria, each by its name.
    suggested, simplest : The orders to mark, or dictionaries of these. Default: that of the least mean, for both.
    param : Name of the parameter.
    unit : What the losses are.
    name : What to write above the plot.

    Attributes
    ----------
    lines_ : The curve of each criterion.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> losses = [[4.0, 1.1, 1.0], [4.4, 1.3, 1.2]]
    >>> display = OrderCurveDisplay(values=[1, 2, 3], losses=losses, suggested=3, simplest=2, param="degree").plot()
    >>> display.ax_.get_title()
    'least at degree = 3, simplest within one standard error 2'
    """

    def __init__(
        self,
        *,
        values: Any,
        losses: Any,
        suggested: Any = None,
        simplest: Any = None,
        param: str = "order",
        unit: str = "loss",
        name: str | None = None,
    ) -> None:
        self.values = np.asarray(values)
        named = losses if isinstance(losses, dict) else {unit: losses}
        self.losses = {key: np.atleast_2d(np.asarray(part, dtype=float)) for key, part in named.items()}
        for key, part in self.losses.items():
            if part.ndim != 2 or part.shape[1] != len(self.values) or np.isnan(part.mean(axis=0)).all():
                raise ValueError(f"{key} needs a loss of each of the {len(self.values)} values, got the shape {part.shape}.")
        self._least = {key: self.values[np.nanargmin(part.mean(axis=0))].item() for key, part in self.losses.items()}
        self.suggested = _each(suggested, self._least)
        self.simplest = _each(simplest, self.suggested)
        for marked in (*self.suggested.values(), *self.simplest.values()):
            if marked not in self.values:
                raise ValueError(f"An order that is marked must be one of the values {self.values.tolist()}, got {marked!r}.")
        self.param = param
        self.unit = unit
        self.name = name

    @classmethod
    def from_curve(cls, *curves: Any, ax: Any = None, name: str | None = None) -> Self:
        """Plot what `lemmata.model_selection.select_order` returned, once or by several criteria over the same values."""
        first = curves[0]
        if any(not np.array_equal(curve.values, first.values) or curve.param != first.param for curve in curves):
            raise ValueError("Curves in one picture have the same parameter and the same values: select them alike.")
        if len({curve.unit for curve in curves}) < len(curves):
            raise ValueError(
                f"Curves in one picture have different criteria, each in its own range, and {first.unit!r} is there twice: "
                "draw two models side by side."
            )
        return cls(
            values=first.values,
            losses={curve.unit: curve.losses for curve in curves},
            suggested={curve.unit: curve.suggested for curve in curves},
            simplest={curve.unit: curve.simplest for curve in curves},
            param=first.param,
            unit=first.unit if len(curves) == 1 else "share of the range of each",
            name=name,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the losses; several criteria each from 0, their least mean, to 1, their largest."""
        ax = axes(ax, (5.6, 4.0))
        several, self.lines_ = len(self.losses) > 1, {}
        for color, (key, losses) in zip(_colors(len(self.losses)), self.losses.items(), strict=True):
            scaled = _to_range(losses) if several else losses
            self.lines_[key] = _curve(ax, self.values, scaled, color, key if several else None)
            means = scaled.mean(axis=0)
            for order, marked, size in ((self.suggested[key], "o", 12), (self.simplest[key], "s", 13)):
                place = int(np.flatnonzero(self.values == order)[0])
                if marked == "o" or self.simplest[key] != self.suggested[key]:
                    ax.plot(order, means[place], marked, ms=size, mfc="none", mec=ink(), mew=1.6)
        ax.set(xlabel=self.param, ylabel=self.unit)
        if self.values.dtype.kind in "iu":
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        elif self.values[0] > 0 and self.values[-1] > WIDE * self.values[0]:
            ax.set_xscale("log")
        if several:
            ax.legend(frameon=False, fontsize="small")
        ax.set_title(self._title(), fontsize="medium")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _title(self) -> str:
        orders = list(dict.fromkeys(self.suggested.values()))
        told = "least at" if self.suggested == self._least else "suggested:"  # as the bend of an elbow is
        told += f" {self.param} = {', '.join(f'{order:g}' for order in orders)}"
        key = next(iter(self.losses))
        if len(self.losses) == 1 and self.simplest[key] != self.suggested[key]:
            told += f", simplest within one standard error {self.simplest[key]:g}"
        return f"{self.name}: {told}" if self.name else told


def _each(given: Any, default: dict[str, Any]) -> dict[str, Any]:
    """Give an order for each criterion."""
    return default if given is None else given if isinstance(given, dict) else dict.fromkeys(default, given)


def _colors(n: int) -> list[Any]:
    return [CLASS_COLORS[i % len(CLASS_COLORS)] for i in range(n)]


def _to_range(losses: np.ndarray) -> np.ndarray:
    """Shift and scale so that the means reach from 0 to 1."""
    means = losses.mean(axis=0)
    low, high = np.nanmin(means), np.nanmax(means)
    return (losses - low) / (high - low if high > low else 1.0)


def _curve(ax: Any, values: np.ndarray, losses: np.ndarray, color: Any, label: str | None) -> Any:
    """Draw the means, with repeats and standard errors where there are several."""
    n, means = len(losses), losses.mean(axis=0)
    if n > 1:
        if label is None:
            ax.plot(values, losses.T, color=NEUTRAL, lw=0.6, alpha=0.6)
        errors = INTERVAL * losses.std(axis=0, ddof=1) / np.sqrt(n)
        least = np.nanargmin(means)
        ax.axhline(means[least] + errors[least], color=color, lw=0.8, ls=":")  # what counts as about as good
        ax.errorbar(values, means, errors, fmt="none", ecolor=color, elinewidth=1.6, capsize=3)
    return ax.plot(values, means, "o-", color=color, lw=2, ms=5, label=label)[0]
