"""Learning by Bayes' rule: the density of an unknown number before and after the data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, ink, quiet

TAIL = 1e-3  # probability on either side that is left out of the picture
POINTS = 400  # of each curve
WIDEST = 12.0  # widths of the last posterior that the picture may have: a vague prior is cut
ROOM = 1.08  # height of the picture over the largest density
NEAR = 0.1  # share of the picture by which it is widened to an end of the support
LEVEL = 0.95  # probability of the shaded interval
BEFORE, AFTER, DATA = NEUTRAL, CLASS_COLORS[0], CLASS_COLORS[1]
MARKS = {"mean": "o", "median": "s", "mode": "^"}
MARK_NAMES = {"mean": "mean", "median": "median", "mode": "mode (MAP)"}


class PosteriorDisplay:
    """Prior and posterior densities of a number, of one posterior or of several after more and more data.

    The last posterior has its central interval of 95 % shaded. The likelihood is scaled to the height of the last posterior:
    only its shape has a meaning.

    Parameters
    ----------
    prior : Distribution on the line with `pdf` and `icdf`.
    posteriors : Mapping from names to distributions, in the order of the data.
    likelihood : Function of an array of values of the number, or None.
    marks : Which of "mean", "median" and "mode" to mark on the curves.
    name : What to write above the plot.

    Attributes
    ----------
    grid : Values of the number at which curves are drawn.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.probability.distributions import Beta
    >>> display = PosteriorDisplay.from_distributions(Beta(2, 2), Beta(9, 5), likelihood=lambda p: p**7 * (1 - p) ** 3)
    >>> [line.get_label() for line in display.ax_.lines][:2]
    ['prior Beta(2, 2)', 'posterior Beta(9, 5)']
    """

    def __init__(
        self,
        prior: Any,
        posteriors: Mapping[str, Any],
        *,
        likelihood: Callable[[np.ndarray], Any] | None = None,
        marks: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        self.prior = prior
        self.posteriors = posteriors
        self.likelihood = likelihood
        self.marks = marks
        self.name = name
        self.grid = _grid(prior, list(posteriors.values()))

    @classmethod
    def from_distributions(
        cls,
        prior: Any,
        posterior: Any,
        *,
        likelihood: Callable[[np.ndarray], Any] | None = None,
        marks: str | Sequence[str] = (),
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot a prior and its posterior.

        Parameters
        ----------
        prior : Continuous distribution on the line, as Beta, Gamma or Normal of `lemmata.probability.distributions`.
        posterior : Another one; a list of them after more and more data, or a mapping from names such as "after 10 tosses".
        likelihood : Function of an array of values of the number; any factor is allowed.
        marks : Which of "mean", "median" and "mode" (the maximum a posteriori) to mark on the curves.
        """
        if isinstance(posterior, Mapping):
            posteriors = {str(key): each for key, each in posterior.items()}
        else:
            several = posterior if isinstance(posterior, list | tuple) else [posterior]
            posteriors = {f"posterior {_called(each)}": each for each in several}
        if not posteriors:
            raise ValueError("There is no posterior to plot: give a distribution, or several.")
        for each in (prior, *posteriors.values()):
            _check(each)
        if likelihood is not None and not callable(likelihood):
            raise ValueError("likelihood must be a function of an array of values, as lambda p: p**7 * (1 - p)**3.")
        marks = (marks,) if isinstance(marks, str) else tuple(marks)
        strange = [mark for mark in marks if mark not in MARKS]
        if strange:
            raise ValueError(f"marks holds {strange[0]!r}; it may hold {', '.join(MARKS)}.")
        return cls(prior, posteriors, likelihood=likelihood, marks=marks, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the densities."""
        after, likely = list(self.posteriors.values()), self._likely()
        ax = axes(ax, (6.4, 4.2))
        ax.plot(self.grid, self.prior.pdf(self.grid), color=BEFORE, lw=2, ls=(0, (4, 3)), label=f"prior {_called(self.prior)}")
        for k, (key, each) in enumerate(self.posteriors.items(), start=1):
            strength = k / len(after)  # the last one is the darkest
            ax.plot(self.grid, each.pdf(self.grid), color=AFTER, lw=1.2 + strength, alpha=0.25 + 0.75 * strength, label=key)
        low, high = after[-1].icdf([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        inside = np.unique(np.append(self.grid[(self.grid > low) & (self.grid < high)], [low, high]))
        ax.fill_between(inside, after[-1].pdf(inside), color=AFTER, alpha=0.15, lw=0, label=f"{LEVEL:.0%} of the posterior")
        top = max(_height(each, self.grid) for each in (self.prior, *after))
        if likely is not None:
            ax.plot(
                self.grid,
                likely * _height(after[-1], self.grid),
                color=DATA,
                lw=1.6,
                ls=(0, (1, 1.4)),
                label="likelihood (scaled)",
            )
        self._mark(ax, top)
        ax.set(xlim=(self.grid[0], self.grid[-1]), ylim=(0, ROOM * top), xlabel="value of the unknown number", ylabel="density")
        ax.set_title(self.name or "before and after the data")
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _likely(self) -> np.ndarray | None:
        """Give the likelihood over its largest value, or say what is wrong with it."""
        if self.likelihood is None:
            return None
        heights = np.asarray(self.likelihood(self.grid), dtype=float)
        if heights.shape != self.grid.shape or not (heights >= 0).all() or not 0 < heights.max() < np.inf:
            raise ValueError("likelihood must give a number of at least 0 for each value, and a positive one somewhere.")
        return heights / heights.max()

    def _mark(self, ax: Any, top: float) -> None:
        """Mark the mean, the median and the mode of each curve where it has them inside the picture."""
        colors = [BEFORE] + [AFTER] * len(self.posteriors)
        for mark in self.marks:
            for each, color in zip((self.prior, *self.posteriors.values()), colors, strict=True):
                at = _statistic(each, mark)
                if self.grid[0] <= at <= self.grid[-1]:
                    height = min(float(each.pdf(at)), ROOM * top)  # at the edge where it is infinite
                    ax.plot(at, height, MARKS[mark], ms=6, color=color, mec=ink(), mew=0.7, clip_on=False, zorder=4)
            ax.plot([], [], MARKS[mark], ms=6, color=NEUTRAL, mec=ink(), mew=0.7, label=MARK_NAMES[mark])


def _check(distribution: Any) -> None:
    """Refuse what is not a density on the line."""
    if not (hasattr(distribution, "pdf") and hasattr(distribution, "icdf")) or getattr(distribution, "discrete", False):
        raise ValueError(f"{distribution!r} has no density on the line with pdf and icdf, as Beta(2, 2) has.")


def _called(distribution: Any) -> str:
    """Write a distribution with four digits for each parameter."""
    values = [getattr(distribution, key, None) for key in getattr(distribution, "__dataclass_fields__", ())]
    if not values or not all(isinstance(value, float) for value in values):
        return type(distribution).__name__
    return f"{type(distribution).__name__}({', '.join(f'{value:.4g}' for value in values)})"


def _statistic(distribution: Any, mark: str) -> float:
    """Give the mean, the median or the mode; NaN if there is none, or more than one."""
    if mark == "median":
        return float(distribution.icdf(0.5))
    try:
        return float(getattr(distribution, mark, np.nan))
    except ValueError:
        return np.nan


def _height(distribution: Any, grid: np.ndarray) -> float:
    """Give the largest density in the picture, without the peak of one that is infinite at an end of its support."""
    usual = distribution.icdf(np.linspace(0.1, 0.9, 17))
    usual = usual[(usual >= grid[0]) & (usual <= grid[-1])]
    heights = distribution.pdf(grid)
    if len(usual) and heights.argmax() in (0, len(grid) - 1):
        return min(float(heights.max()), 1.5 * float(np.max(distribution.pdf(usual))))
    return float(heights.max())


def _grid(prior: Any, posteriors: list[Any]) -> np.ndarray:
    """Choose the values to draw at: even ones, and quantiles of every curve, so that a narrow one is smooth."""
    levels = np.linspace(TAIL, 1 - TAIL, POINTS)
    after = np.concatenate([each.icdf(levels) for each in posteriors])
    before = prior.icdf(levels)
    room = max(WIDEST * np.ptp(posteriors[-1].icdf(levels)) - np.ptp(after), 0.0) / 2
    low = max(min(before.min(), after.min()), after.min() - room)
    high = min(max(before.max(), after.max()), after.max() + room)
    near = NEAR * (high - low)
    ends = [x for x in getattr(prior, "support", ()) if low - near <= x <= high + near]
    low, high = min(low, *ends, low), max(high, *ends, high)
    every = np.concatenate([before, after, np.linspace(low, high, POINTS)])
    return np.unique(every[(every >= low) & (every <= high)])
