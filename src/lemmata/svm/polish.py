"""The last digits of a support vector machine: coefficients between their bounds solve linear equations.

At the optimum the values v of all free variables (0 < a < cap) are equal, to the bias b. For the changes δ = s·Δa of the free
variables this says K δ + Δb = v − b on their rows, and Σ δ = 0. The matrix may be singular, where rows are equal or more than
the features of the kernel; so K + εI is factored instead, and the solution refined with the residual: what remains is in
the null space, which no score can see. Variables that would leave their bounds stop there, and variables at a bound that should
leave it join; where the violation does not fall any more, the best point is kept.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from lemmata.svm.dual import middle_of

MOST = 1500  # free variables: beyond, the equations cost more than the last digits are worth
PASSES = 12
RIDGE = 1e-11  # of the mean of the diagonal
REFINEMENTS = 3
ENOUGH = 1e-11  # of the largest value: what rounding leaves of a violation


def polish(dual, square, a, scores):
    """Return a point with a smaller violation, or the same one.

    Parameters
    ----------
    dual : The problem, see `dual.Dual`.
    square : Function of two sets of variables that returns the kernel matrix of their rows.
    a, scores : The point, and the scores of all rows there.

    Returns
    -------
    a, change : The point, and the change of the coefficients of variables, s·Δa, whose scores are to be added.
    """
    values, best, start = dual.values(scores), a, a
    least, enough = _violation(dual, a, values), ENOUGH * float(np.abs(values).max(initial=0.0))
    for _ in range(PASSES):
        bias, (high, low) = middle_of(*dual.ends(a, values)), dual.extremes(a, values)
        free = (a > 0) & (a < dual.cap) | (high > bias) | (low < bias)
        which = np.flatnonzero(free)
        if not 1 < len(which) <= MOST:
            break
        delta = _equations(square(which, which), values[which] - bias, float(dual.sign @ a))
        if delta is None:
            break
        moved = a.copy()
        moved[which] = np.clip(a[which] + dual.sign[which] * delta, 0.0, dual.cap[which])
        changed = np.flatnonzero(moved != a)
        if not len(changed):
            break
        everyone = np.arange(len(a))
        values = values - square(everyone, changed) @ (dual.sign[changed] * (moved[changed] - a[changed]))
        a = moved
        violation = _violation(dual, a, values) + abs(float(dual.sign @ a))
        if violation < least:
            best, least = a, violation
        elif violation > 1e3 * least:
            break
        if least <= enough:
            break
    return best, dual.sign * (best - start)


def _violation(dual, a, values):
    high, low, _ = dual.ends(a, values)
    return max(float(high - low), 0.0)


def _equations(K, residual, imbalance):
    """Solve K δ + β = residual, Σ δ = −imbalance for δ; None where K is not positive semidefinite."""
    ridge = RIDGE * max(float(np.trace(K)) / len(K), 1e-300)
    shifted = K.copy()
    shifted[np.diag_indices(len(K))] += ridge
    factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        return None
    ones = dpotrs(factor, np.ones(len(K)), lower=1)[0]
    delta, wanted = np.zeros(len(K)), -imbalance
    for _ in range(REFINEMENTS):
        part = dpotrs(factor, residual - K @ delta, lower=1)[0]
        shift = (part.sum() - (wanted - delta.sum())) / ones.sum()
        delta = delta + part - shift * ones
    return delta if np.isfinite(delta).all() else None
