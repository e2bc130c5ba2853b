"""A series with what a state-space model makes of it: the filtered and the smoothed signal with their bands, and a forecast."""

from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, quiet

SMOOTHED, FILTERED, AHEAD = CLASS_COLORS[2], CLASS_COLORS[0], CLASS_COLORS[1]
SHADE = 0.22  # opacity of a band


class StateSpaceDisplay:
    """A series over time, the signal in it with bands, and what is expected next.

    Parameters
    ----------
    time : Times of the rows.
    rows : Observed numbers, NaN where missing; None if a state is shown, which nobody observed.
    bands : Mapping from "smoothed" or "filtered" to (mean, lower end, upper end) of the signal, of shape (rows, 3).
    ahead : The same of the coming observations (or states), of shape (steps, 3), or None.
    level : Probability of the bands.
    label : What the vertical axis shows.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.state_space import LinearGaussianModel
    >>> model = LinearGaussianModel(1.0, 1.0, 1.0, 1.0)
    >>> display = StateSpaceDisplay.from_estimator(model, [[1.0], [2.0], [1.5]], n_steps=2)
    >>> display.bands["smoothed"][:, 0], len(display.ahead)
    (array([1. , 1.5, 1.5]), 2)
    """

    def __init__(
        self,
        *,
        time: np.ndarray,
        rows: np.ndarray | None,
        bands: dict[str, np.ndarray],
        ahead: np.ndarray | None = None,
        level: float = 0.9,
        label: str = "output",
        name: str | None = None,
    ) -> None:
        self.time = time
        self.rows = rows
        self.bands = bands
        self.ahead = ahead
        self.level = level
        self.label = label
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        output: int = 0,
        state: int | None = None,
        kinds: tuple[str, ...] = ("smoothed",),
        n_steps: int = 0,
        level: float = 0.9,
        time: Any = None,
        inputs: Any = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot one series; the bands are of the signal without the noise of observing, that of the forecast has it.

        Parameters
        ----------
        output : Column of X whose signal is shown.
        state : Number of a state that is shown instead.
        kinds : Which of "smoothed" and "filtered" to show.
        n_steps : Rows to forecast; `inputs`, if there are any, have so many rows more than X.
        level : Probability of the bands.
        time : Times of the rows and of the forecast; default 0, 1, …
        """
        from scipy.stats import norm

        strange = set(kinds) - {"smoothed", "filtered"}
        if strange:
            raise ValueError(f"kinds may be 'smoothed' and 'filtered', got {sorted(strange)}.")
        X = np.asarray(X, dtype=float)
        if X.ndim > 2:
            raise ValueError(f"A plot shows one series; X has {X.ndim} axes: choose one of its series.")
        X = X.reshape(len(X), -1)
        T, reach = len(X), norm.ppf((1 + level) / 2)
        given = None if inputs is None else np.asarray(inputs, dtype=float)
        now = {} if given is None else {"inputs": given[:T]}
        matrices = estimator._matrices()
        pick = np.eye(len(matrices.initial_mean))[state] if state is not None else matrices.observation[..., output, :]

        def ends(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
            rows = np.broadcast_to(pick, (T + n_steps, mean.shape[1]))[:T]
            middle = (rows * mean).sum(axis=1)
            if state is None and given is not None:
                through = matrices.feedthrough[..., output, :]
                middle = middle + (np.broadcast_to(through, (T + n_steps, given.shape[1]))[:T] * given[:T]).sum(axis=1)
            spread = np.sqrt(np.einsum("ti,tij,tj->t", rows, covariance, rows))
            return np.column_stack([middle, middle - reach * spread, middle + reach * spread])

        results = {kind: estimator.smooth(X, **now) if kind == "smoothed" else estimator.filter(X, **now) for kind in kinds}
        ahead = None
        if n_steps:
            coming = estimator.forecast(X, n_steps, **({} if given is None else {"inputs": given}))
            if state is None:
                ahead = np.column_stack([coming.mean[:, output], coming.interval(level)[:, output]])
            else:
                mean, spread = coming.state_mean[:, state], np.sqrt(coming.state_covariance[:, state, state])
                ahead = np.column_stack([mean, mean - reach * spread, mean + reach * spread])
        display = cls(
            time=np.arange(T + n_steps) if time is None else np.asarray(time),
            rows=X[:, output] if state is None else None,
            bands={kind: ends(result.mean, result.covariance) for kind, result in results.items()},
            ahead=ahead,
            level=level,
            label=f"output {output}" if state is None else f"state {state}",
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bands, the observed numbers and the forecast."""
        ax = axes(ax, (7.2, 4.2))
        T = len(next(iter(self.bands.values())))
        colors = {"smoothed": SMOOTHED, "filtered": FILTERED}
        for kind, (middle, low, high) in ((kind, band.T) for kind, band in self.bands.items()):
            ax.fill_between(self.time[:T], low, high, color=colors[kind], alpha=SHADE, lw=0)
            ax.plot(self.time[:T], middle, color=colors[kind], lw=2, label=f"{kind}, {self.level:.0%} band")
        if self.rows is not None:
            ax.plot(self.time[:T], self.rows, "o", ms=3.5, color=NEUTRAL, mew=0, label="observed", zorder=2.5)
        if self.ahead is not None:
            later = self.time[T : T + len(self.ahead)]
            ax.fill_between(later, *self.ahead[:, 1:].T, color=AHEAD, alpha=SHADE, lw=0)
            ax.plot(later, self.ahead[:, 0], color=AHEAD, lw=2, label=f"forecast, {self.level:.0%} band")
        ax.set(xlabel="time", ylabel=self.label, title=self.name or "")
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
