"""Line search: a step along a descent direction that satisfies the strong Wolfe conditions.

With φ(t) = f(x + t d) and φ′(0) < 0, find t with φ(t) ≤ φ(0) + c₁ t φ′(0) (enough decrease) and |φ′(t)| ≤ c₂ |φ′(0)| (enough
curvature, which keeps quasi-Newton updates positive definite) [1]. Close to an optimum the decrease drowns in the rounding of
f while the slopes are still exact: there the decrease is read off the slopes, φ′(t) ≤ (1 − 2c₁)|φ′(0)|, which says the
same for a quadratic [2]. The search keeps an interval that must hold such a t and halves it or better at each trial.

[1] Nocedal & Wright, Numerical Optimization (2006). [2] Hager & Zhang, SIAM J. Optim. 16 (2005).
"""

from typing import NamedTuple

import numpy as np

DECREASE = 1e-4  # c₁: almost any decrease will do; the curvature keeps steps long
CURVATURE = 0.9  # c₂: loose, so that the first trial of a quasi-Newton method is usually the last
ROUNDING = 1e-10  # relative error that sums of many terms may have: smaller differences of f mean nothing
TRIALS = 60  # each halves the interval at least: 60 exhaust the digits of a step
STRETCH = 10.0  # longest stretch of a step whose slope is still too steep
MARGIN = 0.1  # share of the interval that a trial keeps from its ends


class LineSearchError(ArithmeticError):
    """No step along the direction lowers the objective: it is no descent direction, or rounding ends the progress."""


class Point(NamedTuple):
    """Where a search ended."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    step: float


def search(fun, x, value, gradient, direction, first=1.0, curvature=CURVATURE):
    """Find a point along a direction that satisfies the strong Wolfe conditions.

    Parameters
    ----------
    fun : Function of x that returns (value, gradient).
    x, value, gradient : Where the search starts.
    direction : A direction in which the objective falls.
    first : First step tried; 1 is natural for (quasi-)Newton directions.
    curvature : By how much the slope must flatten, between 1e-4 and 1.

    Examples
    --------
    >>> def bowl(x):
    ...     return float(x @ x) / 2, x
    >>> x = np.array([3.0, 4.0])
    >>> point = search(bowl, x, *bowl(x), direction=-x)
    >>> point.value, point.step
    (0.0, 1.0)
    """
    slope = float(gradient @ direction)
    if not slope < 0:
        raise LineSearchError(f"The slope along the direction is {slope:.3g}: the objective does not fall.")
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.nan
    noise = ROUNDING * abs(value)
    step, best = float(first), None
    for _ in range(TRIALS):
        point = x + step * direction
        f, g = fun(point)
        here = float(g @ direction) if np.isfinite(f) else np.nan
        decreased = f <= value + DECREASE * step * slope or (f <= value + noise and here <= (2 * DECREASE - 1) * slope)
        if decreased and (best is None or f < best.value):
            best = Point(point, float(f), g, step)
        if decreased and abs(here) <= -curvature * slope:
            return Point(point, float(f), g, step)
        if decreased and here < 0:
            low, low_slope = step, here
        else:
            high, high_slope = step, here
        step = _trial(low, low_slope, high, high_slope)
        if not low < step < high:
            break
    if best is None or not best.value < value:
        raise LineSearchError("No step along the direction lowers the objective beyond rounding.")
    return best


def _trial(low, low_slope, high, high_slope):
    """Choose the next step: where the slope, if it were linear, would vanish, kept inside the interval."""
    if high == np.inf:
        return STRETCH * max(low, np.finfo(float).tiny)
    width = high - low
    if high_slope > 0:
        flat = low + width * low_slope / (low_slope - high_slope)
        return float(np.clip(flat, low + MARGIN * width, high - MARGIN * width))
    return low + width / 2
