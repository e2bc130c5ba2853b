"""EM seen from below: the log-likelihood of each iterate, and the bound that carried it there.

From θ to θ⁺ an EM step maximizes the bound Q(·; θ) + H(θ), which touches the log-likelihood at θ. At θ⁺ the two differ by the
divergence D(θ ‖ θ⁺) of the new posterior from the old (`lemmata.mixture.decomposition`):

    L(θ⁺) = Q(θ⁺; θ) + H(θ) + D(θ ‖ θ⁺).

So a step gains at least what the bound gains, and D more. All terms are means over rows.
"""

import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from lemmata.mixture import decomposition
from lemmata.mixture.missing import by_pattern
from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, quiet, some_rows
from lemmata.plot.elbow import panel_below
from lemmata.plot.mixture import gaussians

MAX_ROWS = 100_000  # of a replay
FEW = 40  # points that can be told apart
SAME = 1e-6  # relative; starts that end closer to each other have ended in the same place
ROUNDING = 1e-15  # share of the log-likelihood below which a gap is no number
LIKELIHOOD, BOUND = CLASS_COLORS[:2]


def log_joint(X: np.ndarray, weights: np.ndarray, means: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Give log πₖ N(xᵢ|μₖ, Σₖ) for every row and component, of the entries that are seen: (rows, components).

    Examples
    --------
    >>> log_joint(np.array([[0.0, 1.0], [0.0, np.nan]]), np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    array([[-2.3379],
           [-0.9189]])
    """
    logs = np.log(weights, where=weights > 0, out=np.full(len(weights), -np.inf))
    out = np.tile(logs, (len(X), 1))
    order, starts, patterns = by_pattern(X)
    for start, stop, seen in zip(starts[:-1], starts[1:], patterns, strict=True):
        rows = order[start:stop]
        for k in range(len(weights) if seen.any() else 0):
            lower = np.linalg.cholesky(matrices[k][np.ix_(seen, seen)])
            white = solve_triangular(lower, (X[np.ix_(rows, seen)] - means[k][seen]).T, lower=True)
            out[rows, k] -= 0.5 * ((white**2).sum(axis=0) + seen.sum() * np.log(2 * np.pi)) + np.log(np.diagonal(lower)).sum()
    return out


def walk(X: np.ndarray, run: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Give the mean log-likelihood at each (weights, means, matrices) of a run, and (Q, H, D) of each step, as columns.

    Examples
    --------
    >>> one, other = [(np.array([p, 1 - p]), np.array([[0.0], [2.0]]), np.ones((2, 1, 1))) for p in (0.5, 0.25)]
    >>> likelihood, terms = walk(np.array([[0.0], [2.0]]), [one, other])
    >>> likelihood.round(4), terms.sum(axis=0).round(4)
    (array([-1.4852, -1.5635]), array([-1.5635]))
    """
    values, terms, before = [], [], None
    for parameters in run:
        joint = log_joint(X, *parameters)
        values.append(logsumexp(joint, axis=1).mean())
        if before is not None:
            terms.append(decomposition(joint, before))
        before = joint
    return np.array(values), np.array(terms).reshape(-1, 3).T / len(X)


class ElboDisplay:
    """The log-likelihood at each step of EM, the bound under it, and the gap between them.

    Parameters
    ----------
    likelihood : Mean log-likelihood of a row at the start and after each step.
    Q, H, D : After each step, the three terms of its mean log-likelihood with respect to the step before.
    others : Log-likelihoods of other starts, each like `likelihood`.
    reached : What each start reached in the end, as in `restarts_`; default unknown.
    name : What to write above the plot.

    Attributes
    ----------
    bound : Q + H after each step.
    ax_, gap_ax_, figure_ : Axes of the log-likelihood and of the gap, and figure, of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.mixture import GaussianMixture
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [5.0], [8.0], [9.0], [10.0]])
    >>> display = ElboDisplay.from_estimator(GaussianMixture(2, means_init=[[2.0], [4.0]]).fit(X), X, n_steps=5)
    >>> bool((display.bound <= display.likelihood[1:]).all())
    True
    >>> float(np.abs(display.likelihood[1:] - display.bound - display.D).max()) < 1e-12
    True
    """

    def __init__(
        self,
        *,
        likelihood: np.ndarray,
        Q: np.ndarray,
        H: np.ndarray,
        D: np.ndarray,
        others: list[np.ndarray] | None = None,
        reached: np.ndarray | None = None,
        name: str | None = None,
    ) -> None:
        self.likelihood = likelihood
        self.Q = Q
        self.H = H
        self.D = D
        self.others = [] if others is None else others
        self.reached = np.array([]) if reached is None else reached
        self.name = name
        self.bound = Q + H

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        n_steps: int = 20,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Replay the first steps of plain EM from the starts of a fitted mixture, and plot the run of the one that it kept.

        Parameters
        ----------
        estimator : `lemmata.mixture.GaussianMixture`. Without a fixed random_state, the replay draws starts of its own.
        X : The rows of the fit; of more than `max_rows`, the replay is of a sample. y is not looked at.
        n_steps : Steps at most.
        """
        check_is_fitted(estimator)
        if n_steps < 1:
            raise ValueError(f"n_steps must be at least 1, got {n_steps}.")
        rows, _, _ = some_rows(estimator, X, None, max_rows)
        rows = np.asarray(rows, dtype=float)
        runs = [walk(rows, run) for run in replay(estimator, rows, n_steps)]
        reached = np.asarray(estimator.restarts_)
        likelihood, (Q, H, D) = runs.pop(int(reached.argmax()) if len(reached) == len(runs) else 0)
        others = [other for other, _ in runs]
        name = type(estimator).__name__ if name is None else name
        return cls(likelihood=likelihood, Q=Q, H=H, D=D, others=others, reached=reached, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the log-likelihood and the bounds, and below them the gap; other starts are gray."""
        from matplotlib.ticker import MaxNLocator

        ax = axes(ax, (6.4, 5.4))
        steps, few = np.arange(len(self.likelihood)), len(self.likelihood) <= FEW
        for j, other in enumerate(self.others):
            told = "another start" if len(self.others) == 1 else f"{len(self.others)} other starts"
            ax.plot(other, color=NEUTRAL, lw=1, alpha=0.7, zorder=1, label=None if j else told)
        ax.plot(steps, self.likelihood, "o-" if few else "-", color=LIKELIHOOD, lw=2, ms=5, label="log-likelihood L")
        # The bound of each step touches the log-likelihood where the step begins: a sawtooth, with a break after each tooth.
        at, low, high = (np.column_stack(parts).ravel() for parts in self._teeth(steps))
        ax.plot(at, low, ls=(0, (4, 2)), color=BOUND, lw=1.4)
        ax.fill_between(at, low, high, color=BOUND, alpha=0.3, lw=0, label="gap D")
        ax.plot(steps[1:], self.bound, color=BOUND, ls="", marker="^" if few else "", ms=5)
        ax.plot([], [], marker="^" if few else "", ls=(0, (4, 2)), color=BOUND, lw=1.4, ms=5, label="bound Q + H of a step")
        ax.set(ylabel="mean log-likelihood of a row", title=self._title())
        ax.legend(frameon=False, fontsize="small", loc="lower right")
        quiet(ax)
        below = panel_below(ax, 0.35)
        drawn = ROUNDING * np.abs(self.likelihood[1:]) < self.D  # rounding has no logarithm worth showing
        below.plot(steps[1:][drawn], self.D[drawn], "s-" if few else "-", color=BOUND, lw=1.4, ms=4)
        below.set(yscale="log", xlabel="EM step", ylabel="gap D")
        below.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        quiet(below)
        self.ax_, self.figure_, self.gap_ax_ = ax, ax.figure, below
        return self

    def _teeth(self, steps: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """Give the places, the bounds and the log-likelihoods at the two ends of each step, and NaN after them."""
        breaks, before, after = np.full(len(self.bound), np.nan), self.likelihood[:-1], self.likelihood[1:]
        return [steps[:-1], steps[1:], steps[1:]], [before, self.bound, breaks], [before, after, breaks]

    def _title(self) -> str:
        """Say how far apart the starts ended."""
        if len(self.reached) < 2:
            return self.name or ""
        least, most = float(self.reached.min()), float(self.reached.max())
        if most - least <= SAME * max(1.0, abs(most)):
            told = f"all {len(self.reached)} starts reached {most:.4f}"
        else:
            digits = max(2, -int(np.floor(np.log10(most - least))))  # so that the two differ
            told = f"{len(self.reached)} starts reached {least:.{digits}f} to {most:.{digits}f}"
        told = told.replace("-", "\N{MINUS SIGN}")
        return f"{self.name}: {told}" if self.name else told


class _Recorder:
    """A callback of scikit-learn's kind that keeps the parameters at the start of each run and after each step."""

    def __init__(self) -> None:
        self.runs: list[list[Any]] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Keep the parameters with which a run begins."""
        if context.task_name == "iteration" and context.task_id == 0:
            self.runs.append([gaussians(fitted_estimator)])

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Keep the parameters to which a step led."""
        if context.task_name == "iteration":
            self.runs[-1].append(gaussians(fitted_estimator))


def replay(estimator: Any, X: np.ndarray, n_steps: int) -> list[list[Any]]:
    """Run plain EM again, for so many steps at most: the (weights, means, covariance matrices) of each run and each step.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> (run,) = replay(GaussianMixture(1, means_init=[[7.0]]), X, 1)
    >>> [means.tolist() for _, means, _ in run]
    [[[7.0]], [[3.25]]]
    """
    parameters = estimator.get_params(deep=False)
    if "acceleration" not in parameters or "means_init" not in parameters or not hasattr(estimator, "set_callbacks"):
        raise ValueError(f"ElboDisplay replays the EM steps of a GaussianMixture, and {type(estimator).__name__} is none.")
    options = {"acceleration": None, "max_iter": n_steps, "tol": 0.0, "checkpoint": None, "verbose": 0}
    recorder = _Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        clone(estimator).set_params(**options).set_callbacks(recorder).fit(X)
    return recorder.runs
