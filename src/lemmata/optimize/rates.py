"""Rates of convergence: theorems that a run must obey, and the rate that a trace shows.

Let f be convex with f(x) ≤ f(z) + ∇f(z)·(x − z) + (L/2)‖x − z‖² (the gradient, not f, has the Lipschitz constant L), and let
x ← x − η∇f(x) with 0 < η ≤ 1/L start at a distance d from a minimum x*. Then after T steps [1]

    f(x_T) − f* ≤ d² / (2ηT)            hence, for η ≤ 1/2L,  ≤ d² / (η(T + 1)), the form that averages T + 1 points;
    f(x_T) − f* ≤ (1 − ημ)ᵀ (f(x₀) − f*)  if also f(x) ≥ f(z) + ∇f(z)·(x − z) + (μ/2)‖x − z‖²;
    ‖∇f(x)‖² ≤ 2L (f(x) − f*)           and f falls at every step, by η/2 ‖∇f‖² at least.

With gradients of length at most G that are right on average, the mean of the points, weighted by their rates ηₜ, has
E f(x̄) − f* ≤ (d² + G² Σηₜ²) / (2 Σηₜ), which is O(log T/√T) for ηₜ ∝ 1/√t [2]. Adagrad pays, against the best fixed point of
any sequence of convex functions, no more than (D²/2η + η) Σᵢ ‖g₁..T,ᵢ‖ = O(√T) while no entry is farther than D from it [3].

[1] Nesterov, Introductory Lectures on Convex Optimization (2004). [2] Nemirovski et al., SIAM J. Optim. 19 (2009).
[3] Duchi, Hazan & Singer, JMLR 12 (2011).
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check
from lemmata.optimize.minimum import Minimum

ROUNDING = 1e-12  # of the largest value: below this, differences of values mean nothing
FIT = 4  # points that a rate needs at least: a line through two always fits


def lipschitz_step(L):
    """Return 1/L: the step of gradient descent that is sure to lower f by most if ∇f has the Lipschitz constant L.

    Examples
    --------
    >>> lipschitz_step(4.0)
    0.25
    """
    if not (L > 0 and np.isfinite(L)):
        raise ValueError(f"A Lipschitz constant must be positive and finite, got {L}.")
    return 1 / L


def convex_bound(step, distance, t):
    """Bound f(xₜ) − f* by distance²/(2·step·t), for a step of at most 1/L and t ≥ 1.

    Examples
    --------
    >>> convex_bound(0.5, distance=2.0, t=8)
    0.5
    """
    return distance**2 / (2 * step * t)


def averaged_bound(step, distance, t):
    """Bound f(xₜ) − f* by distance²/(step·(t + 1)), for a step of at most 1/2L and t ≥ 0: weaker, but for every t.

    Examples
    --------
    >>> averaged_bound(0.5, distance=2.0, t=7)
    1.0
    """
    return distance**2 / (step * (t + 1))


def strongly_convex_bound(step, mu, excess, t):
    """Bound f(xₜ) − f* by (1 − step·μ)ᵗ times the excess at the start, for a step of at most 1/L.

    Examples
    --------
    >>> strongly_convex_bound(0.5, mu=1.0, excess=4.0, t=3)
    0.5
    """
    return (1 - step * mu) ** t * excess


def stochastic_bound(rates, distance, length):
    """Bound E f(x̄) − f* for the mean x̄ of the points, weighted by their rates, if no gradient is longer than `length`.

    Examples
    --------
    >>> stochastic_bound([0.5, 0.5], distance=1.0, length=1.0)
    0.75
    """
    rates = np.asarray(rates, dtype=float)
    return float((distance**2 + length**2 * (rates**2).sum()) / (2 * rates.sum()))


def adagrad_bound(gradients, learning_rate, distance, epsilon=0.0):
    """Bound the regret Σₜ gₜ·(xₜ − x) of Adagrad against any x that is never farther than `distance` in any entry.

    Parameters
    ----------
    gradients : One row for each step.

    Examples
    --------
    >>> adagrad_bound([[3.0], [4.0]], learning_rate=1.0, distance=2.0)
    15.0
    """
    roots = np.linalg.norm(np.asarray(gradients, dtype=float), axis=0)
    return float((distance**2 / (2 * learning_rate) * (roots + epsilon) + learning_rate * roots).sum())


def check_curvature(f, grad, points, mu=0.0, L=np.inf):
    """Check (μ/2)‖x − z‖² ≤ f(x) − f(z) − ∇f(z)·(x − z) ≤ (L/2)‖x − z‖² on all pairs of some points.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(5, 2))
    >>> check_curvature(lambda x: x @ x, lambda x: 2 * x, points, mu=2.0, L=2.0).holds
    True
    >>> [check.name for check in check_curvature(lambda x: x @ x, lambda x: 2 * x, points, mu=3.0, L=1.0).failed]
    ['convex', 'smooth']
    """
    points = [np.asarray(x, dtype=float) for x in points]
    values, slopes = [float(f(x)) for x in points], [np.asarray(grad(x), dtype=float) for x in points]
    noise = ROUNDING * max(np.abs(values).max(), 1.0)
    below, above = -np.inf, -np.inf
    for i, j in permutations(range(len(points)), 2):
        move = points[i] - points[j]
        rest, square = values[i] - values[j] - float(np.vdot(slopes[j], move)), float(np.vdot(move, move))
        below = max(below, (mu / 2 * square - rest - noise) / max(square, TINY))
        above = max(above, (rest - L / 2 * square - noise) / max(square, TINY)) if np.isfinite(L) else -np.inf
    size = max(abs(mu), 1.0) * ROUNDING
    checks = [Check("convex", below, size, "evidence", "no pair of points lies below the quadratic lower bound")]
    if np.isfinite(L):
        checks.append(
            Check("smooth", above, L * ROUNDING, "evidence", "no pair of points lies above the quadratic upper bound")
        )
    return Certificate(*checks)


def check_rate(trace, optimum, *, step, L, distance, mu=None, lengths=None):
    """Check a run of gradient descent with a fixed step against the theorems, at every t.

    Parameters
    ----------
    trace : Values from the start on, or the `Minimum` that has them.
    optimum : The least value f*.
    step : At most 1/L; the theorems say nothing of longer ones.
    L : Lipschitz constant of the gradient.
    distance : From the start to the nearest minimum.
    mu : Constant of strong convexity, if there is one.
    lengths : ‖∇f(xₜ)‖ for every t, to check ‖∇f‖² ≤ 2L(f − f*) and the descent at every step.

    Examples
    --------
    >>> from lemmata.optimize import GradientDescent, Quadratic, minimize
    >>> f = Quadratic(np.diag([1.0, 4.0]))
    >>> run = minimize(f, [3.0, 4.0], f.gradient, rule=GradientDescent(0.25))
    >>> print(check_rate(run, 0.0, step=0.25, L=4.0, distance=5.0, mu=1.0))
    certificate holds (proof)
      check         value     limit  kind   claim
      monotone      0.0e+00 ≤ 0e+00  proof  the objective never rises, beyond rounding
      convex bound  5.7e-02 ≤ 1e+00  proof  the excess never exceeds distance²/(2·step·t)
      contraction   7.5e-01 ≤ 1e+00  proof  every step leaves at most 1 − step·μ of the excess
      linear bound  1.0e+00 ≤ 1e+00  proof  the excess never exceeds (1 − step·μ)ᵗ of the first
    """
    trace = _values(trace)
    if not 0 < step <= (1 + ROUNDING) / L:
        raise ValueError(f"The theorems need a step in (0, 1/L] = (0, {1 / L:.6g}], got {step}.")
    noise = ROUNDING * max(np.abs(trace).max(), abs(optimum))
    excess, t = trace - optimum - noise, np.arange(len(trace))

    def most(parts, bounds):
        return float(np.max(np.maximum(parts, 0.0) / np.maximum(bounds, TINY), initial=0.0))

    falls = float(max((np.diff(trace) - noise).max(initial=0.0), 0.0))
    checks = [
        Check("monotone", falls, 0.0, "proof", "the objective never rises, beyond rounding"),
        _within("convex bound", most(excess[1:], convex_bound(step, distance, t[1:])), "distance²/(2·step·t)"),
    ]
    if step <= (1 + ROUNDING) / (2 * L):
        checks.append(_within("averaged bound", most(excess, averaged_bound(step, distance, t)), "distance²/(step·(t + 1))"))
    if mu is not None:
        claim = "every step leaves at most 1 − step·μ of the excess"
        left = most(excess[1:], (1 - step * mu) * (trace[:-1] - optimum))
        checks.append(Check("contraction", left, 1.0, "proof", claim))
        bounds = strongly_convex_bound(step, mu, trace[0] - optimum, t)
        checks.append(_within("linear bound", most(excess, bounds), "(1 − step·μ)ᵗ of the first"))
    if lengths is not None:
        squares = np.asarray(lengths, dtype=float) ** 2
        room = 2 * L * (trace - optimum + noise)
        checks.append(Check("gradient", most(squares, room), 1.0, "proof", "‖∇f‖² is at most 2L times the excess"))
        lost = trace[1:] - trace[:-1] + step * (1 - step * L / 2) * squares[:-1] - noise
        checks.append(
            Check("descent", float(lost.max(initial=0.0)), 0.0, "proof", "every step lowers f by step·(1 − step·L/2)‖∇f‖²")
        )
    return Certificate(*checks)


def _values(trace):
    return np.asarray(trace.trace if isinstance(trace, Minimum) else trace, dtype=float)


def _within(name, value, bound):
    return Check(name, value, 1.0, "proof", f"the excess never exceeds {bound}")


@dataclass(frozen=True)
class Rate:
    """How the error of a run falls in its later half.

    Parameters
    ----------
    kind : "linear" if the error falls like factorᵗ, "power" if like t⁻ᵖ: whichever fits better.
    factor : The fitted factor.
    power : The fitted p.
    misfit : Root mean square of the residuals of log error, of the better fit.
    """

    kind: str
    factor: float
    power: float
    misfit: float


def convergence_rate(trace, optimum=None):
    """Estimate from a trace whether the error falls like factorᵗ or like t⁻ᵖ, and the factor or p.

    Parameters
    ----------
    trace : Values from the start on, or the `Minimum` that has them; errors, if optimum is 0.
    optimum : The least value. Without it, the rate is that of the differences of values: they have the same factor, and
        the power p + 1.

    Examples
    --------
    >>> t = np.arange(1, 200)
    >>> rate = convergence_rate(7 + 0.9**t)
    >>> rate.kind, rate.factor
    ('linear', 0.9)
    >>> convergence_rate(7 + 3 / t**0.5, optimum=7).power
    0.5
    """
    trace = _values(trace)
    errors = np.abs(np.diff(trace)) if optimum is None else trace - optimum
    offset = 1.5 if optimum is None else 1.0  # a difference stands between two steps
    noise = ROUNDING * max(np.abs(trace).max(initial=0.0), abs(optimum or 0.0))
    seen = np.flatnonzero(errors > noise)
    seen = seen[len(seen) // 2 :]
    if len(seen) < FIT:
        raise ValueError(f"A rate needs {2 * FIT} values that differ from the optimum by more than rounding.")
    t, logs = seen + offset, np.log(errors[seen])
    fits = [_line(t, logs), _line(np.log(t), logs)]
    (slope, linear), (fall, power) = fits
    kind = "linear" if linear <= power else "power"
    return Rate(kind, float(np.exp(slope)), float(-fall - (optimum is None)), min(linear, power))


def _line(x, y):
    """Fit a line; return its slope and the root mean square of the residuals."""
    x = x - x.mean()
    y = y - y.mean()
    slope = float(x @ y / (x @ x))
    return slope, float(np.sqrt(np.mean((y - slope * x) ** 2)))
