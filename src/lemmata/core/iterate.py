"""The one driver of every iterative fit: when to stop, what to show, what to keep when something goes wrong.

A step takes a state and returns (state, objective) or (state, objective, residual). With a residual (a duality gap, the
distance to a fixed point) the fit has converged when residual ≤ tol; without, when the objective changed by no more than
tol·|objective| + atol. The state is a plain value (arrays, numbers, tuples, dicts, generators) and `step` must depend on
nothing else that changes: then a checkpoint resumes with the same bits as if nothing had happened.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from lemmata.core.certificate import Floats
from lemmata.core.threads import is_interrupt

ROUNDING = 1e-9  # relative; sums of many terms may go the wrong way by this much without any step being at fault
KEEP_LAST: dict[str, Any] = {"monotone": "down", "rounding": np.inf}  # the last state is the one to keep, up or down
WRITE_SHARE = 20  # a checkpoint is written when 20 times as long as the last writing took has passed: 5 % at most


class MonotonicityError(RuntimeError):
    """The objective of an algorithm that must be monotone went the wrong way."""


@dataclass(frozen=True)
class Run:
    """How an iteration ended: its last (or best) state, the objective at every step, and why it stopped."""

    state: Any
    trace: Floats
    converged: bool
    reason: Literal["converged", "max_iter", "interrupted", "callback"]

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return len(self.trace)

    @property
    def objective(self) -> float:
        """Objective at the last step; NaN before the first."""
        return float(self.trace[-1]) if len(self.trace) else np.nan


class Callback(Protocol):
    """What wants to know of every step."""

    def begin(self, iteration: int, state: Any) -> None:
        """Hear that a step begins."""

    def end(self, iteration: int, state: Any) -> bool:
        """Hear that it ended; return True to stop the fit."""


class Checkpoint:
    """A file that a killed fit resumes from.

    Parameters
    ----------
    path : Where; written atomically, removed by whoever started the fit once it is done.
    identity : What the fit is of (estimator, parameters, data). A file with another identity is refused.
    """

    def __init__(self, path: Any, identity: dict[str, str]) -> None:
        self.path, self.identity = Path(path), identity
        self._next_write = 0.0

    def read(self) -> tuple[Any, Any, list[float], bool] | None:
        """Return (state, best state, trace, converged) of the fit that was cut short, or None if there is none."""
        from lemmata.core.persistence import read_state

        if not self.path.exists():
            return None
        identity, state, best, trace, converged = read_state(self.path)
        for key, value in self.identity.items():
            if identity.get(key) != value:
                raise ValueError(
                    f"The checkpoint {self.path} belongs to another fit (its {key} differs); delete it or choose another path."
                )
        return state, state if best is None else best, list(trace), converged

    def write(self, state: Any, best: Any, trace: list[float], *, converged: bool) -> None:
        """Write the state, and the best one if it is another, if enough time has passed (or if it is the final one)."""
        from lemmata.core.persistence import write_state

        started = time.monotonic()
        if started < self._next_write and not converged:
            return
        write_state(self.path, (self.identity, state, None if best is state else best, np.array(trace), converged))
        now = time.monotonic()
        self._next_write = now + WRITE_SHARE * (now - started)

    def remove(self) -> None:
        """Delete the file."""
        with suppress(FileNotFoundError):
            self.path.unlink()


def iterate(
    step: Callable[[Any], tuple[Any, ...]],
    state: Any,
    *,
    max_iter: int,
    tol: float,
    atol: float = 0.0,
    monotone: Literal["up", "down"] | None = None,
    rounding: float = 0.0,
    name: str,
    verbose: int = 0,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Repeat a step until it has converged, and return the run.

    Parameters
    ----------
    monotone : Direction in which theory lets the objective go; a step in the other one raises `MonotonicityError`.
        Without it, a run that did not converge returns the state with the smallest objective.
    rounding : Absolute error of the objective, beyond 1e-9 of it, that is no reason to raise.
    name : What the progress bar and messages call the fit.

    Examples
    --------
    >>> def newton(x):
    ...     y = (x + 2 / x) / 2
    ...     return y, y, abs(y - x)
    >>> run = iterate(newton, 1.0, max_iter=20, tol=1e-12, name="square root")
    >>> run.converged, run.n_iter, round(run.state, 12)
    (True, 6, 1.414213562373)
    """
    from sklearn.exceptions import ConvergenceWarning

    trace: list[float] = []
    best, best_objective, converged = state, np.inf, False
    reason: Literal["converged", "max_iter", "interrupted", "callback"] = "max_iter"
    if checkpoint is not None and (saved := checkpoint.read()) is not None:
        state, best, trace, converged = saved
        best_objective = min(trace)
    with _bar(max_iter, len(trace), name) if verbose else nullcontext() as bar:
        try:
            while not converged and len(trace) < max_iter:
                for callback in callbacks:
                    callback.begin(len(trace), state)
                state, objective, *residual = step(state)
                objective = float(objective)
                _watch(trace, objective, monotone, rounding, name)
                converged = bool(
                    residual[0] <= tol if residual else trace and abs(trace[-1] - objective) <= tol * abs(objective) + atol
                )
                trace.append(objective)
                if monotone or objective <= best_objective:
                    best, best_objective = state, objective
                if bar is not None:
                    bar.update()
                    bar.set_postfix_str(f"objective {objective:.8g}", refresh=False)
                if checkpoint is not None:
                    checkpoint.write(state, best, trace, converged=converged)
                stops = [callback.end(len(trace) - 1, state) for callback in callbacks]
                if any(stops) and not converged:
                    reason = "callback"
                    break
        except (KeyboardInterrupt, SystemError) as error:
            if not is_interrupt(error):
                raise
            reason = "interrupted"
        if converged and bar is not None:
            bar.total = bar.n  # done, however many iterations were allowed
            bar.refresh()
    if converged:
        return Run(state, np.array(trace), True, "converged")
    if reason != "callback":
        told = "was interrupted" if reason == "interrupted" else "did not converge"
        advice = "" if reason == "interrupted" else "; raise max_iter"
        message = f"{name} {told} after {len(trace)} iterations: the best state so far is kept{advice}."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return Run(best, np.array(trace), False, reason)


class _Until:
    """Stops an iteration at the first state of which something is true."""

    def __init__(self, ended: Callable[[Any], bool]) -> None:
        self.ended = ended

    def begin(self, iteration: int, state: Any) -> None: ...

    def end(self, iteration: int, state: Any) -> bool:
        return self.ended(state)


def replay(
    step: Callable[[Any], tuple[Any, ...]], state: Any, *, max_iter: int, tol: float = 0.0, ended: Callable[[Any], bool]
) -> Run:
    """Repeat an iteration that kept its last state, and show nothing.

    Parameters
    ----------
    ended : Tells whether the iteration ended at a state, if Ctrl-C or a callback cut it short.

    Examples
    --------
    >>> replay(lambda x: (x + 1, 0.0, 1.0), 0, max_iter=9, ended=lambda x: x == 3).state
    3
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        most = 0 if ended(state) else max_iter
        return iterate(step, state, max_iter=most, tol=tol, **KEEP_LAST, name="replay", callbacks=[_Until(ended)])


def _bar(total: int, done: int, name: str) -> Any:
    """Show a progress bar; not made where it is not shown, because tqdm starts a thread of its own all the same."""
    from tqdm import tqdm

    return tqdm(total=total, initial=done, desc=name)


def _watch(trace: list[float], objective: float, monotone: str | None, rounding: float, name: str) -> None:
    """Raise if the objective is not a number, or went the wrong way by more than rounding."""
    if np.isnan(objective):
        raise FloatingPointError(
            f"{name}: the objective is not a number at iteration {len(trace) + 1}; check the data's scale."
        )
    if not monotone or not trace:
        return
    rise = objective - trace[-1] if monotone == "down" else trace[-1] - objective
    if rise > ROUNDING * max(abs(objective), abs(trace[-1])) + rounding:
        wrong = "rose" if monotone == "down" else "fell"
        raise MonotonicityError(
            f"{name}: the objective {wrong} at iteration {len(trace) + 1}, from {trace[-1]:.17g} to {objective:.17g}."
        )
