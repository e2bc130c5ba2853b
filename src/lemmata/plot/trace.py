"""How a minimization came down: the objective above its optimum, and the line that a theorem draws."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from lemmata.core.iterate import Run
from lemmata.plot.drawing import NEUTRAL, axes, quiet

ROUNDING = 1e-16  # share of the largest value below which a difference of values is no number
STYLES = ((0, (5, 3)), (0, (1, 1.6)), (0, (6, 2, 1, 2)))  # of bounds: dashes, dots, both

Bound = Callable[[np.ndarray], Any] | np.ndarray | list[float]


class TraceDisplay:
    """The objective of a run above its optimum over the iterations, on a logarithmic axis, with its bounds.

    Parameters
    ----------
    trace : Values of the objective.
    optimum : The least value; default the least of the trace, whose own point is then not shown.
    bounds : Mapping from a name to a bound on the excess: a function of the iterations, or its values at each of them.
    first : Iteration of the first value: 0 if the trace begins with the start.
    name : What to call the run.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.optimize import GradientDescent, Quadratic, minimize
    >>> from lemmata.optimize.rates import convex_bound
    >>> f = Quadratic(np.diag([1.0, 4.0]))
    >>> run = minimize(f, [3.0, 4.0], f.gradient, rule=GradientDescent(0.25))
    >>> display = TraceDisplay.from_run(run, optimum=0.0, bound=lambda t: convex_bound(0.25, distance=5.0, t=t))
    >>> bool((display.trace[1:] <= display.bounds["bound"](np.arange(1, len(display.trace)))).all())
    True
    """

    def __init__(
        self,
        trace: np.ndarray,
        *,
        optimum: float | None = None,
        bounds: Mapping[str, Bound] | None = None,
        first: int = 0,
        name: str | None = None,
    ) -> None:
        self.trace = trace
        self.optimum = optimum
        self.bounds = {} if bounds is None else bounds
        self.first = first
        self.name = name

    @classmethod
    def from_run(
        cls,
        run: Any,
        *,
        optimum: float | None = None,
        bound: Bound | Mapping[str, Bound] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot what `lemmata.optimize.minimize` or `lemmata.core.iterate` returned, or any values from the start of a run on.

        Parameters
        ----------
        bound : Bound on the excess over the optimum: a function of the iterations (`lemmata.optimize.rates` has some), its
            values, or several of these by name.
        """
        trace, first = getattr(run, "trace", run), int(isinstance(run, Run))  # a `Run` does not know the value at its start
        bounds = bound if isinstance(bound, Mapping) else {} if bound is None else {"bound": bound}
        return cls(np.asarray(trace, dtype=float), optimum=optimum, bounds=bounds, first=first, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        optimum: float | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the `trace_` of a fitted estimator, one value after each iteration; the data are not looked at."""
        name = type(estimator).__name__ if name is None else name
        return cls(np.asarray(estimator.trace_, dtype=float), optimum=optimum, first=1, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the excess and its bounds; on axes that have a run already, in the next color."""
        ax = axes(ax, (5.6, 4.2))
        t = self.first + np.arange(len(self.trace))
        least = float(self.trace.min()) if self.optimum is None else self.optimum
        excess = self.trace - least
        seen = excess > ROUNDING * np.abs(self.trace).max(initial=0.0)  # rounding has no logarithm worth showing
        few = len(t) <= 40  # points that can be told apart
        ax.plot(t[seen], excess[seen], lw=2, marker="o" if few else None, ms=4, label=self.name or "run")
        for (name, bound), style in zip(self.bounds.items(), STYLES * len(self.bounds), strict=False):
            at = t[t >= 1] if callable(bound) else t
            ax.plot(at, bound(at) if callable(bound) else np.asarray(bound), color=NEUTRAL, lw=1.4, ls=style, label=name)
        above = "its least value" if self.optimum is None else "the optimum"
        ax.set(yscale="log", xlabel="iteration", ylabel=f"objective above {above}")
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
