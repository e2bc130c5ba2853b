"""The evidence of a Gaussian process as a landscape over two of its hyperparameters."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lemmata.plot.band import LINE
from lemmata.plot.drawing import REFUSED, axes, ink, outlined, quiet

REACH = 30.0  # factor by which the picture goes beyond the fitted values, where bounds allow it
RESOLUTION = 30  # points in each direction: each costs as much as a step of the search
DROPS = (
    0.5,
    2.0,
    5.0,
    10.0,
    20.0,
    50.0,
    100.0,
    200.0,
    500.0,
)  # nats below the best: 0.5 is one standard deviation of a Gaussian


class EvidenceDisplay:
    """Log marginal likelihood over two hyperparameters, on logarithmic axes, the others at their fitted values.

    Lines are labeled by how many nats the evidence lies below the best point of the picture.

    Parameters
    ----------
    grid : Logarithms of the two hyperparameters, two vectors.
    values : Log marginal likelihood, of shape (second, first); −∞ where the matrix has no factor.
    fitted : Logarithms of the two fitted values.
    best : Log marginal likelihood of the fit.
    labels : What to call the hyperparameters.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.gaussian_process import GaussianProcessRegressor
    >>> from lemmata.kernels import RBF
    >>> X = np.linspace(0.0, 6.0, 12)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.2 * np.resize([1.0, -1.0, 0.5], 12)
    >>> model = GaussianProcessRegressor(RBF()).fit(X, y)
    >>> display = EvidenceDisplay.from_estimator(model, resolution=9)
    >>> display.labels, bool(display.values.max() <= display.best + 1e-9)
    (('length_scale', 'noise'), True)
    """

    def __init__(
        self,
        *,
        grid: tuple[np.ndarray, np.ndarray],
        values: np.ndarray,
        fitted: tuple[float, float],
        best: float,
        labels: tuple[str, str],
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.values = values
        self.fitted = fitted
        self.best = best
        self.labels = labels
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        entries: Any = None,
        reach: float = REACH,
        resolution: int = RESOLUTION,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot the evidence of a fitted Gaussian process around its hyperparameters.

        Parameters
        ----------
        estimator : A model with `kernel_` and `log_marginal_likelihood(theta)`; it knows its rows, X and y are not looked at.
        entries : Two entries of theta, by number or name; default the last two.
        reach : Factor by which the picture goes beyond the fitted values on either side.
        resolution : Points in each direction.
        """
        check_is_fitted(estimator)
        theta, names = hyperparameters(estimator)
        if len(theta) < 2:
            raise ValueError(
                f"A surface takes two hyperparameters, and this model has {len(theta)} that are not fixed: {names}."
            )
        chosen = [len(theta) - 2, len(theta) - 1] if entries is None else [_number(names, entry) for entry in entries]
        if len(set(chosen)) != 2:
            raise ValueError(f"entries must name two different hyperparameters among {names}, got {entries!r}.")
        across = [np.linspace(theta[j] - np.log(reach), theta[j] + np.log(reach), resolution) for j in chosen]
        values = np.empty((resolution, resolution))
        for i, second in enumerate(across[1]):
            for j, first in enumerate(across[0]):
                there = theta.copy()
                there[chosen] = first, second
                values[i, j] = _evidence(estimator, there)
        display = cls(
            grid=(across[0], across[1]),
            values=values,
            fitted=(float(theta[chosen[0]]), float(theta[chosen[1]])),
            best=_evidence(estimator, theta),
            labels=tuple(_short(names, j) for j in chosen),
            name=f"{type(estimator).__name__}: log evidence" if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the surface as lines of equal evidence, and the fitted point."""
        from matplotlib.colors import to_rgba

        ax = axes(ax, (5.8, 4.8))
        first, second = np.exp(self.grid[0]), np.exp(self.grid[1])
        top = max(float(self.values.max()), self.best)
        drops = np.where(np.isfinite(self.values), top - self.values, 10 * DROPS[-1])
        used = [d for d in DROPS if drops.min() < d < drops.max()]
        depths = [0.0, *used, max(float(drops.max()), DROPS[0])]
        shades = [to_rgba(LINE, 0.75 * (1 - k / max(len(depths) - 1, 1)) ** 1.5) for k in range(len(depths) - 1)]
        ax.contourf(first, second, drops, levels=np.unique(depths), colors=shades[: len(np.unique(depths)) - 1])
        if used:
            drawn = ax.contour(first, second, drops, levels=used, colors=ink(), linewidths=0.7, alpha=0.7)
            for text in ax.clabel(drawn, fmt=lambda d: f"\N{MINUS SIGN}{d:g}", fontsize="small"):
                outlined(text, ax)
        told = f"fitted: {self.best:.2f}".replace("-", "\N{MINUS SIGN}")
        ax.plot(*np.exp(self.fitted), marker="P", ms=10, ls="", color=REFUSED, mec="white", label=told)
        ax.set(xscale="log", yscale="log", xlabel=self.labels[0], ylabel=self.labels[1], title=self.name or "")
        ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
        ax.legend(frameon=True, framealpha=0.8, fontsize="small", loc="best")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def hyperparameters(estimator: Any) -> tuple[np.ndarray, list[str]]:
    """Return the logarithms of what a Gaussian process searches over, and their names: of the kernel, then of the noise."""
    theta = np.array(estimator.kernel_.theta, dtype=float)
    names = getattr(estimator.kernel_, "theta_names", None)
    if names is None:  # scikit-learn's kernels
        names = [p.name for p in estimator.kernel_.hyperparameters for _ in range(0 if p.fixed else p.n_elements)]
    names = list(names)
    noise = getattr(estimator, "noise", None)
    if isinstance(noise, str) and noise == "evidence":
        return np.append(theta, np.log(estimator.noise_)), [*names, "noise"]
    return theta, names


def _number(names: list[str], entry: Any) -> int:
    """Return the number of a hyperparameter; of the parts of a composed kernel, the last word of a name is enough."""
    if not isinstance(entry, str):
        return range(len(names))[int(entry)]
    found = [j for j, name in enumerate(names) if entry in (name, name.rsplit("__", 1)[-1])]
    if len(found) != 1:
        raise ValueError(f"entries must name one hyperparameter each among {names}, and {entry!r} names {len(found)}.")
    return found[0]


def _short(names: list[str], j: int) -> str:
    """Return the last word of a name if no other has it."""
    ends = [name.rsplit("__", 1)[-1] for name in names]
    return ends[j] if ends.count(ends[j]) == 1 else names[j]


def _evidence(estimator: Any, theta: np.ndarray) -> float:
    """Return the log evidence, or −∞ where the matrix is not positive definite up to rounding."""
    try:
        return float(estimator.log_marginal_likelihood(theta))
    except np.linalg.LinAlgError:
        return -np.inf
