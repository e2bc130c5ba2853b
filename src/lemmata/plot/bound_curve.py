"""What more rows buy: bounds on the risk, and the errors themselves, against the number of rows."""

from collections.abc import Callable, Mapping
from textwrap import fill
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, column_or_1d

from lemmata.core.random import generator
from lemmata.plot.drawing import CLASS_MARKS, NEUTRAL, axes, class_colors, ink, quiet
from lemmata.plot.ticks import round_ticks
from lemmata.theory.guarantees.guarantee import guarantee

CURVES = 6  # more bounds than this are not told apart
SIZES = 7  # fits of a picture, unless others are asked for
SMALLEST = 20  # rows with which a picture begins
WIDTH = 30  # letters of a line of the legend


class BoundCurveDisplay:
    """Bounds on the risk of a model against the number of rows it was fitted to.

    A bound that is not below 1 says nothing: it lies above the picture, and one that does so at every size is only named.

    Parameters
    ----------
    sizes : Numbers of rows, increasing.
    bounds : Mapping from the name of a bound to its values, NaN where it does not apply.
    training, test : Error at each size, on the rows of the fit and on others; None if not known.
    limit : The largest loss there can be.
    max_curves : Number of bounds to show, those that are smallest in the end.
    name : What to write above the plot.

    Attributes
    ----------
    shown : Names of the bounds that are drawn.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from math import log, sqrt
    >>> display = BoundCurveDisplay.from_formulas({"Hoeffding": lambda n: 0.1 + sqrt(log(20) / (2 * n))}, [100, 1000, 10000])
    >>> display.bounds["Hoeffding"]
    array([0.222387, 0.138702, 0.112239])
    """

    def __init__(
        self,
        sizes: np.ndarray,
        bounds: Mapping[str, np.ndarray],
        *,
        training: np.ndarray | None = None,
        test: np.ndarray | None = None,
        limit: float = 1.0,
        max_curves: int = CURVES,
        name: str | None = None,
    ) -> None:
        self.sizes = sizes
        self.bounds = bounds
        self.training = training
        self.test = test
        self.limit = limit
        self.name = name
        useful = [key for key, values in bounds.items() if (values < limit).any()]
        self.shown = sorted(useful, key=lambda key: _final(bounds[key]))[:max_curves]

    @classmethod
    def from_formulas(
        cls,
        formulas: Mapping[str, Callable[[int], float]],
        sizes: Any = None,
        *,
        limit: float = 1.0,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot formulas for a bound as functions of the number of rows.

        Parameters
        ----------
        formulas : Mapping from a name to a function of one whole number.
        sizes : Numbers of rows; default from 10 to a million.
        limit : The largest loss there can be.
        """
        if not formulas:
            raise ValueError("There is nothing to plot: give formulas such as {'Hoeffding': lambda n: …}.")
        sizes = _sizes(np.unique(np.geomspace(10, 10**6, 101).astype(int)) if sizes is None else sizes)
        values = {str(key): np.array([float(f(int(n))) for n in sizes]) for key, f in formulas.items()}
        return cls(sizes, values, limit=limit, max_curves=len(values), name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sizes: Any = None,
        delta: float = 0.05,
        test: tuple[Any, Any] | None = None,
        random_state: Any = 0,
        max_curves: int = CURVES,
        ax: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Fit copies of a classifier to more and more of the shuffled rows, and plot what each fit can promise.

        Parameters
        ----------
        estimator : Classifier that `lemmata.theory.guarantee` knows, which takes the options; it stays as it is.
        sizes : Numbers of rows; default some from 20 to all.
        delta : Probability, over samples, with which a bound may fail.
        test : Rows and labels (X, y) to show the true error by; no bound uses them.
        random_state : Seed of the shuffle.
        max_curves : Number of bounds to show, those that are smallest in the end.
        """
        if not is_classifier(estimator):
            raise ValueError(
                f"{type(estimator).__name__} is no classifier: its bounds are drawn from formulas, by from_formulas."
            )
        y = column_or_1d(y)
        sizes = _sizes(np.geomspace(min(SMALLEST, len(y)), len(y), SIZES).astype(int) if sizes is None else sizes, len(y))
        order = generator(random_state).permutation(len(y))
        found: dict[str, np.ndarray] = {}
        errors, unseen = np.empty(len(sizes)), np.empty(len(sizes))
        for i, n in enumerate(sizes):
            rows, labels = _safe_indexing(X, order[:n]), y[order[:n]]
            if len(np.unique(labels)) < 2:
                raise ValueError(f"The first {n} rows have the one class {labels[0]!s}: begin with more, by sizes=.")
            model = clone(estimator).fit(rows, labels)
            for bound in guarantee(model, rows, labels, delta, **options):
                found.setdefault(_called(bound), np.full(len(sizes), np.nan))[i] = bound.value
            errors[i] = np.mean(model.predict(rows) != labels)
            if test is not None:
                unseen[i] = np.mean(model.predict(test[0]) != column_or_1d(test[1]))
        display = cls(
            sizes,
            found,
            training=errors,
            test=None if test is None else unseen,
            max_curves=max_curves,
            name=f"{type(estimator).__name__}: what more rows can promise" if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves."""
        ax = axes(ax, (8.0, 4.4))
        few = len(self.sizes) <= 20  # marks that can be told apart
        for k, (key, color) in enumerate(zip(self.shown, class_colors(len(self.shown)), strict=True)):
            mark = CLASS_MARKS[k % len(CLASS_MARKS)] if few else None
            ax.plot(self.sizes, self.bounds[key], color=color, lw=1.8, marker=mark, ms=5, label=fill(key, WIDTH))
        for errors, label, style in ((self.test, "test error", "-"), (self.training, "training error", (0, (4, 3)))):
            if errors is not None:
                ax.plot(self.sizes, errors, color=ink(), lw=1.6, ls=style, label=label)
        hidden = [key for key in self.bounds if key not in self.shown]
        for key in hidden:
            vacuous = not (self.bounds[key] < self.limit).any()
            ax.plot([], [], ls="", label=fill(f"{key} ({'vacuous at all sizes' if vacuous else 'larger'})", WIDTH))
        top = self._top()
        if top >= self.limit:
            ax.axhline(self.limit, color=NEUTRAL, lw=1)
            ax.text(0.99, self.limit, "above: says nothing", color=NEUTRAL, fontsize="small", ha="right", va="bottom",
                    transform=ax.get_yaxis_transform())  # fmt: skip
        ax.set(xscale="log", xlabel="rows of the fit", ylabel="risk", ylim=(0, top), title=self.name or "bounds against rows")
        round_ticks(ax.xaxis, self.sizes[0], self.sizes[-1])
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _top(self) -> float:
        """Give the upper end of the axis: the limit with room for a word, or less if nothing comes near."""
        curves = [self.bounds[key] for key in self.shown] + [e for e in (self.training, self.test) if e is not None]
        largest = max((float(np.nanmax(curve)) for curve in curves), default=self.limit)
        return 1.1 * min(largest, self.limit)


def _sizes(sizes: Any, most: float = np.inf) -> np.ndarray:
    """Return increasing whole numbers, or say what is wrong with them."""
    sizes = np.unique(np.asarray(sizes))
    if not len(sizes) or (sizes < 1).any() or (sizes != np.floor(sizes)).any():
        raise ValueError(f"sizes must be whole numbers of rows, at least one; got {sizes.tolist()}.")
    if sizes[-1] > most:
        raise ValueError(f"sizes ask for {int(sizes[-1])} rows, and there are {most}.")
    return sizes.astype(int)


def _final(values: np.ndarray) -> float:
    """Give the value at the largest size that has one."""
    known = values[~np.isnan(values)]
    return float(known[-1])


def _called(bound: Any) -> str:
    """Name a bound, with what it is a bound of if that is not the risk of the model itself."""
    words = ["of the random classifier"] * (bound.target == "gibbs") + ["in expectation"] * (bound.kind == "expectation")
    return bound.name + (f" ({', '.join(words)})" if words else "")
