"""The end of a minimization: what was found, how, and how sure it is.

A method is a step over a state (x, value, gradient, …); `drive` hands it to `core.iterate` and keeps what users ask for: the
values from the start on, the points, a checkpoint that knows its problem. A step that returns the very state it was given
has come to where rounding ends all progress: the run stops there as "stalled". One whose objective is so far below that of
the start that no digit of it is left stops as "unbounded".
Certificate: a stationary point, by the size of the random move that would leave a gradient as large as the one found; no
negative eigenvalue of the Hessian; and for a function with strong convexity μ a proof, f(x) − f* ≤ ‖∇f(x)‖²/2μ [1].

[1] Boyd & Vandenberghe, Convex Optimization, section 9.1 (2004).
"""

import hashlib
import warnings
from dataclasses import dataclass, replace

import numpy as np

from lemmata.core.certificate import SABOTAGE, TINY, Certificate, Check, equi, gap, length
from lemmata.core.iterate import Checkpoint, Run, iterate
from lemmata.optimize.derivatives import gradient as differences
from lemmata.optimize.derivatives import hessian

PATIENCE = 20  # steps without progress before a run counts as stalled: near the limit of rounding, progress comes by chance
CURVED = 1e-6  # share of the largest eigenvalue that the smallest may be negative by: what differences resolve, and more


@dataclass(frozen=True)
class Minimum:
    """What a minimization found.

    Parameters
    ----------
    x, value, gradient : The point, the objective and its gradient there (None for methods that need none).
    run : How the iteration ended; its `state` holds what the method remembers.
    trace : The objective at the start, then after every iteration.
    points : The iterates, as many as `trace` has entries, if they were asked for.

    Examples
    --------
    >>> from lemmata.optimize import minimize
    >>> found = minimize(lambda x: (x - 3.0) ** 2, 0.0, method="newton")
    >>> found.x, found.converged, found.reason, found.n_iter
    (array(3.), True, 'converged', 1)
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray | None
    run: Run
    trace: np.ndarray
    points: np.ndarray | None = None

    @property
    def n_iter(self):
        """Number of iterations."""
        return self.run.n_iter

    @property
    def converged(self):
        """Whether the tolerance was met."""
        return self.run.converged

    @property
    def reason(self):
        """Why it ended: "converged", "max_iter", "interrupted", "callback", "stalled" (by rounding) or "unbounded"."""
        return self.run.reason


def finite_start(x0):
    """Return a copy of the start as floats; refuse what is empty or not finite."""
    x = np.array(x0, dtype=float)
    if not x.size or not np.isfinite(x).all():
        raise ValueError(f"x0 must hold at least one number, and finite ones only; got {x0}.")
    return x


def drive(
    step,
    state,
    *,
    shape,
    name,
    max_iter,
    tol,
    descends,
    verbose=0,
    callbacks=(),
    checkpoint=None,
    keep=False,
    identity="",
):
    """Run a method from its first state until the residual is at most `tol`, and return the `Minimum`.

    Parameters
    ----------
    step : Function of a state that returns (state, value, residual).
    state : Its first entries are (x, value, gradient).
    shape : Of x, for those who asked.
    descends : Whether no step may raise the objective beyond rounding. Then `PATIENCE` steps without a smaller value or a
        smaller residual than ever before mean that rounding, or a wrong gradient, has the last word.
    identity : What besides the start tells this problem from others: a checkpoint of another one is refused.
    """
    x, value, gradient = state[:3]
    if not np.isfinite(value):
        raise ValueError(f"The objective is {value} at x0; start where it is finite.")
    watch = _Watch(step, [x] if keep else None, value, PATIENCE if descends else np.inf)
    saved = None
    if checkpoint is not None:
        known = [x, value] if gradient is None else [x, value, gradient]
        digest = hashlib.sha256(b"".join(np.asarray(part, dtype=float).tobytes() for part in known))
        saved = Checkpoint(checkpoint, {"method": name, "problem": f"{digest.hexdigest()} {identity}"})
    if gradient is not None and float(np.abs(gradient).max()) <= tol:
        run = Run(state, np.zeros(0), True, "converged")
    else:
        options = {"max_iter": max_iter, "tol": tol, "name": name, "verbose": verbose, "checkpoint": saved}
        options["monotone"] = "down" if descends else None
        run = iterate(watch.step, state, callbacks=[*callbacks, watch], **options)
    if saved is not None and run.reason != "interrupted":
        saved.remove()
    if watch.reason and not run.converged:
        run = replace(run, reason=watch.reason)
        _warn(name, watch, tol)
    end = run.state if run.converged or run.trace.min(initial=np.inf) <= value else state  # the start may be the best of all
    return Minimum(
        end[0].reshape(shape),
        float(end[1]),
        None if end[2] is None else end[2].reshape(shape),
        run,
        np.append(value, run.trace),
        np.array(watch.points).reshape(-1, *shape) if keep else None,
    )


class _Watch:
    """Sees every step: collects the points, and notices when going on makes no sense."""

    def __init__(self, step, points, value, patience):
        self.inner, self.points, self.reason, self.residual = step, points, None, np.nan
        self.least, self.patience, self.idle = (value, np.inf), patience, 0
        self.floor = -(1 + abs(value)) / np.finfo(float).eps

    def step(self, state):
        following, value, self.residual = self.inner(state)
        progress = value < self.least[0] or self.residual < self.least[1]
        self.least = min(value, self.least[0]), min(self.residual, self.least[1])
        self.idle = 0 if progress else self.idle + 1
        stalled = following is state or self.idle >= self.patience
        self.reason = "stalled" if stalled else "unbounded" if value < self.floor else None
        return following, value, self.residual

    def begin(self, iteration, state):
        """Nothing to do before a step."""

    def end(self, iteration, state):
        if self.points is not None:
            self.points.append(state[0])
        return self.reason is not None


def _warn(name, watch, tol):
    from sklearn.exceptions import ConvergenceWarning

    if watch.reason == "unbounded":
        message = f"{name} stopped: the objective falls without limit, it seems to have no minimum."
    else:
        message = (
            f"{name} stalled: no step lowers the objective beyond rounding, and the largest entry of the gradient is "
            f"{watch.residual:.1e}, not {tol:.1e}. Raise tol, or see `check_gradient` whether the gradient is right."
        )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


def check_minimum(f, x, grad=None, hess=None, *, strong_convexity=None, null=0.0):
    """Check that a point is a minimum: its gradient, its Hessian, and a proof where strong convexity is known.

    Parameters
    ----------
    grad, hess : Derivatives of f; without them, differences.
    strong_convexity : A number μ > 0 such that f − ½μ‖x‖² is convex: then no point has a value below f(x) − ‖∇f(x)‖²/2μ.
    null : Objective of a trivial point, in proportion to which a gap counts where the value itself is nearly zero.

    Examples
    --------
    >>> print(check_minimum(lambda x: x @ x + 1, np.zeros(2), strong_convexity=2.0))
    certificate holds (local)
      check       value     limit  kind   claim
      stationary  0.0e+00 ≤ 1e-03  local  no larger gradient than after a random move of this share of max(1, ‖x‖)
      curvature   0.0e+00 ≤ 1e-06  local  no direction bends down by more than this share of the largest curvature
      gap         0.0e+00 ≤ 1e-06  proof  no point has a smaller value by more than this share
    """
    x = np.asarray(x, dtype=float)
    slope = grad or (lambda z: differences(f, z))
    values = np.linalg.eigvalsh(np.atleast_2d(hessian(f, x, grad) if hess is None else np.asarray(hess(x), dtype=float)))
    still = "no larger gradient than after a random move of this share of max(1, ‖x‖)"
    bent = "no direction bends down by more than this share of the largest curvature"
    checks = [
        equi(slope, x, "stationary", still, move=_move),
        Check("curvature", float(max(-values[0], 0.0) / max(np.abs(values).max(), TINY)), CURVED, "local", bent),
    ]
    if strong_convexity is not None:
        value = float(f(x))
        bound = value - length(np.asarray(slope(x))) ** 2 / (2 * strong_convexity)
        checks.append(gap(value, bound, null, "no point has a smaller value by more than this share"))
    return Certificate(*checks)


def _move(x, rng):
    """Move x by 1 % of its length, or of 1 if it is shorter."""
    u = rng.standard_normal(x.shape)
    return x + SABOTAGE * max(length(x), 1.0) / length(u) * u
