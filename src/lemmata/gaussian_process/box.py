"""The BFGS method within bounds, for a few variables and an expensive objective.

Variables that lie at a bound and would leave it rest; the others move along −B⁻¹g, B the BFGS estimate of the Hessian [1],
and stop at the bounds [2]. Steps are shortened until the objective falls; close to the optimum, where its fall drowns in
rounding, until the slope does. Powell's damping keeps B positive definite whatever the curvature. The state is (x, value,
gradient, B), plain arrays.

[1] Nocedal & Wright, Numerical Optimization (2006). [2] Bertsekas, SIAM J. Control Optim. 20 (1982).
"""

import numpy as np

from lemmata.optimize.line_search import DECREASE

LONGEST = 2.0  # of a step in any variable; variables are logarithms
TRIALS = 15  # lengths of a step: the last is shorter than rounding lets matter
NOISE = 1e-11  # relative error of an objective that is a sum of many terms
STILL = 1e-11  # a step so short is rounding
DAMPED = 0.2  # least curvature along a step, as a share of that of B (Powell)


def blocked(x, gradient, low, high):
    """Tell which variables lie at a bound that they would leave."""
    return ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))


def projected(x, gradient, low, high):
    """Return the gradient without the entries of blocked variables: zero where no feasible direction descends."""
    return np.where(blocked(x, gradient, low, high), 0.0, gradient)


def box_start(fun, x, low, high):
    """Evaluate the objective where the iteration starts."""
    x = np.clip(x, low, high)
    value, gradient = fun(x)
    return x, float(value), gradient, np.zeros((len(x), len(x)))


def box_step(fun, low, high, state, rounding=0.0):
    """Take one step; return (state, value, residual): the largest entry of the projected gradient, 0 once rounding ends it all.

    Parameters
    ----------
    fun : Function of x that returns (value, gradient).
    low, high : Bounds.
    rounding : Absolute error of the objective, beyond 1e-11 of it.

    Examples
    --------
    >>> def valley(x):
    ...     return float(50 * x[0] ** 2 + (x[1] - 3) ** 2 / 2), np.array([100 * x[0], x[1] - 3])
    >>> low, high = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    >>> state = box_start(valley, np.array([1.0, 0.0]), low, high)
    >>> for _ in range(10):
    ...     state, value, residual = box_step(valley, low, high, state)
    >>> state[0].round(6), residual < 1e-8
    (array([0., 1.]), True)
    """
    x, value, gradient, B = state
    here = projected(x, gradient, low, high)
    steep, fresh = float(np.abs(here).max(initial=0.0)), not B.any()
    if steep == 0:
        return state, value, 0.0
    free, direction = ~blocked(x, gradient, low, high), np.zeros(len(x))
    direction[free] = -gradient[free] / steep if fresh else -np.linalg.solve(B[np.ix_(free, free)], gradient[free])
    direction *= min(1.0, LONGEST / np.abs(direction).max())
    noise = NOISE * abs(value) + rounding
    found = _shortened(fun, low, high, x, value, gradient, direction, noise)
    if found is None:  # forget the curvature and try once more, or end
        over = fresh or drowned(gradient @ direction, noise)
        return (x, value, gradient, np.zeros_like(B)), value, 0.0 if over else steep
    to, value_to, gradient_to = found
    s, y = to - x, gradient_to - gradient
    if fresh:
        B = np.eye(len(x)) * max((y @ y) / max(abs(s @ y), 1e-300), 1e-8)
    after = to, value_to, gradient_to, _updated(B, s, y)
    residual = float(np.abs(projected(to, gradient_to, low, high)).max())
    tiny = np.abs(s).max() <= STILL or (abs(gradient @ s) <= noise / 1e3 and residual >= steep / 2)
    return after, value_to, 0.0 if tiny else residual


def drowned(slope, noise):
    """Tell whether what a step promises is about as small as the rounding of the objective."""
    return abs(slope) <= 100 * noise


def _shortened(fun, low, high, x, value, gradient, direction, noise):
    """Find a step that lowers the objective, or None."""
    step = 1.0
    for _ in range(3 if drowned(gradient @ direction, noise) else TRIALS):
        to = np.clip(x + step * direction, low, high)
        slope = float(gradient @ (to - x))
        f, g = fun(to)
        if np.isfinite(f):
            if f <= value + DECREASE * slope:
                return to, float(f), g
            if f <= value + noise and abs(float(g @ (to - x))) <= (1 - 2 * DECREASE) * abs(slope):
                return to, float(f), g
            rise = f - value - slope
            step *= min(max(-slope / (2 * rise), 0.1), 0.5) if rise > 0 else 0.5
        else:
            step *= 0.25
        if np.abs(step * direction).max() <= STILL:
            return None
    return None


def _updated(B, s, y):
    """Update the estimate of the Hessian, damped where the curvature along the step is too small."""
    Bs = B @ s
    curvature, along = float(s @ Bs), float(s @ y)
    if along < DAMPED * curvature:
        share = (1 - DAMPED) * curvature / (curvature - along)
        y, along = share * y + (1 - share) * Bs, DAMPED * curvature
    return B - np.outer(Bs, Bs) / curvature + np.outer(y, y) / along
