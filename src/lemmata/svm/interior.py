"""An interior-point method for the dual of a support vector machine, for problems on which steps on pairs crawl.

Where columns have very different scales and the price C is high, the objective is a long, narrow valley, and coordinate methods
take millions of steps along it. Newton's method on the perturbed conditions of optimality, a·z = μ and (cap − a)·w = μ for the
multipliers z, w ≥ 0 of the bounds, with μ → 0, takes some tens whatever the scales are [1]; each solves two systems with
K + D for a diagonal D > 0 by one Cholesky factor. What is far inside the bounds at the end is free; `polish` does the rest.

[1] Mehrotra, SIAM J. Optim. 2 (1992).
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from lemmata.core.threads import serial_blas

STEPS = 80  # of Newton's method; 15 to 40 are usual
SHY = 0.995  # share of the way to the nearest bound that a step goes
CLOSED = 1e-13  # of the objective: the gap at which the method stops
FLAT = 1e-10  # the same for the gradient of the Lagrangian
NEGLIGIBLE = 1e-7  # of its multiplier's scale: a variable this near to a bound is there


def interior_point(K, sign, linear, cap, total=0.0):
    """Find a point near the optimum of min ½(s·a)ᵀK(s·a) + pᵀa subject to Σ sₜaₜ = total and 0 ≤ a ≤ cap.

    Returns
    -------
    a : The point, with variables at their bounds where they tend there.

    Examples
    --------
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> interior_point(np.outer([-2.0, -1, 1, 2], [-2.0, -1, 1, 2]), y, -np.ones(4), np.full(4, 0.25)).round(6)
    array([0.  , 0.25, 0.25, 0.  ])
    """
    unit = max(float(np.trace(K)) / len(K), 1e-300)  # a is measured in 1/unit, so that the curvature is about one
    K, cap, total = K / unit, cap * unit, total * unit
    bounded = np.isfinite(cap)
    a = np.where(bounded, np.minimum(cap / 2, 1.0), 1.0)
    z, w, bias = np.ones(len(a)), np.where(bounded, 1.0, 0.0), 0.0
    count = len(a) + bounded.sum()
    with serial_blas():
        for _ in range(STEPS):
            room = np.where(bounded, cap - a, 1.0)  # w is 0 where there is no bound, and so is all that is divided by this
            slope = sign * (K @ (sign * a)) + linear
            dual, mu = slope + sign * bias - z + w, float(z @ a + w @ room) / count
            value = abs(float(a @ (slope + linear))) / 2 + abs(float(linear @ a))
            if mu * count <= CLOSED * value and np.abs(dual).max() <= FLAT * (1 + np.abs(linear).max()):
                break
            newton = _newton(K, sign, a, z, w, room, dual, float(sign @ a) - total)
            if newton is None:
                break
            da, dz, dw, _ = newton(-z * a, -w * room)
            far = _reach((a, da), (z, dz), (room[bounded], -da[bounded]), (w[bounded], dw[bounded]))
            ahead = float((z + far * dz) @ (a + far * da) + (w + far * dw) @ (room - far * da)) / count
            aim = mu * (ahead / mu) ** 3
            da, dz, dw, shift = newton(aim - z * a - da * dz, np.where(bounded, aim - w * room + da * dw, 0.0))
            if not np.isfinite(da).all():
                break
            size = SHY * _reach((a, da), (z, dz), (room[bounded], -da[bounded]), (w[bounded], dw[bounded]))
            a, z, w, bias = a + size * da, z + size * dz, w + size * dw, bias + size * shift
    a = np.where((a < NEGLIGIBLE * a.max()) & (a < z), 0.0, a)
    return np.where(bounded & (cap - a < NEGLIGIBLE * cap) & (cap - a < w), cap, a) / unit


def _newton(K, sign, a, z, w, room, dual, balance):
    """Return a function of the changes wanted of a·z and (cap − a)·w that gives the step; None where K is no kernel matrix."""
    shifted = K.copy()
    shifted[np.diag_indices(len(a))] += z / a + w / room
    factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        return None
    through = dpotrs(factor, np.ones(len(a)), lower=1)[0]

    def step(lower, upper):
        part = dpotrs(factor, sign * (-dual + lower / a - upper / room), lower=1)[0]
        shift = (part.sum() + balance) / through.sum()
        da = sign * (part - shift * through)
        return da, (lower - z * da) / a, (upper + w * da) / room, shift

    return step


def _reach(*ways):
    """Return how much of a step, at most all of it, keeps every x + step positive."""
    return min(1.0, *(float(np.min(-x[d < 0] / d[d < 0], initial=np.inf)) for x, d in ways))
