"""Sequential minimal optimization: the dual of a support vector machine, two variables at a time.

The problem is min ½ Σ sₜsᵤaₜaᵤKₜᵤ + Σ pₜaₜ subject to Σ sₜaₜ = 0 and 0 ≤ aₜ ≤ cₜ, with signs s = ±1. In terms of the values
vₜ = −sₜ·(gradient)ₜ, feasible a is optimal when no v of a variable that may go up (s a may grow) exceeds one of a variable that
may go down. A step takes the i with the largest v that may go up and the j that may go down for which the objective falls
most along the pair, by its second-order model [1], moves both by the clipped minimizer, and keeps Σ sₜaₜ as it was.
The largest of many numbers is found among their bits, read as integers in an order that is that of the numbers: compilers
turn such loops into vector instructions, which they may not do with floating-point comparisons.

[1] Fan, Chen & Lin, JMLR 6 (2005).
"""

import numpy as np

from lemmata.core.kernel import kernel

MOST, LEAST = np.int64(2**63 - 1), np.int64(-(2**63))
FLAT = 1e-12  # least curvature along a pair: equal rows have none, and kernels that are not positive have less


@kernel
def may_rise(sign, a, cap):
    """Tell whether s·a may grow."""
    return a < cap if sign > 0 else a > 0.0


@kernel
def optimize_pairs(K, a, v, sign, cap, tol, max_steps):
    """Take steps until the violation is at most tol; change a and v in place.

    Parameters
    ----------
    K : (q, q), kernel matrix of the variables' rows.
    a, v, sign, cap : (q,), the variables, their values, signs and upper bounds.

    Returns
    -------
    Number of steps, and by how much they lowered the objective.
    """
    q = len(a)
    diagonal, falls, fall = np.empty(q), np.empty(q), np.zeros(q)
    up, down, keys = np.empty(q, np.int64), np.empty(q, np.int64), np.empty(q, np.int64)
    value_bits, fall_bits, two = v.view(np.int64), fall.view(np.int64), np.empty(2)
    two_bits = two.view(np.int64)
    for t in range(q):
        diagonal[t] = K[t, t]
        _mark(t, sign, a, cap, up, down, falls)
    lowered = 0.0
    for steps in range(max_steps):
        largest, least = LEAST, MOST
        for t in range(q):
            b = value_bits[t]
            b ^= (b >> 63) & MOST  # negative numbers have their bits in the opposite order
            key = min(b, up[t])
            keys[t] = key
            largest = max(largest, key)
            least = min(least, max(b, down[t]))
        if largest == LEAST or least == MOST:
            return steps, lowered  # no variable may rise, or none may fall
        two_bits[0] = largest ^ ((largest >> 63) & MOST)
        two_bits[1] = least ^ ((least >> 63) & MOST)
        if two[0] - two[1] <= tol:
            return steps, lowered
        i = 0
        while keys[i] != largest:
            i += 1
        high, own, row = v[i], diagonal[i], K[i]
        for t in range(q):
            d = max(high - v[t], 0.0) * falls[t]
            fall[t] = d * d / max(own + diagonal[t] - 2 * row[t], FLAT)
        largest = np.int64(0)
        for t in range(q):
            largest = max(largest, fall_bits[t])
        j = 0
        while fall_bits[j] != largest:
            j += 1
        difference, curvature = high - v[j], own + diagonal[j] - 2 * row[j]
        step = difference / max(curvature, FLAT)
        room_i = cap[i] - a[i] if sign[i] > 0 else a[i]
        room_j = a[j] if sign[j] > 0 else cap[j] - a[j]
        step = min(step, room_i, room_j)
        if step == room_i:  # to the bound itself, not to a rounding of it
            a[i] = cap[i] if sign[i] > 0 else 0.0
        else:
            a[i] += sign[i] * step
        if step == room_j:
            a[j] = 0.0 if sign[j] > 0 else cap[j]
        else:
            a[j] -= sign[j] * step
        lowered += step * (difference - 0.5 * curvature * step)
        _mark(i, sign, a, cap, up, down, falls)
        _mark(j, sign, a, cap, up, down, falls)
        other = K[j]
        for t in range(q):
            v[t] -= step * (row[t] - other[t])
    return max_steps, lowered


@kernel
def _mark(t, sign, a, cap, up, down, falls):
    """Note whether a variable may go up, and down, as bounds of its key."""
    up[t] = MOST if may_rise(sign[t], a[t], cap[t]) else LEAST
    falling = may_rise(-sign[t], a[t], cap[t])
    down[t] = LEAST if falling else MOST
    falls[t] = 1.0 if falling else 0.0


@kernel
def optimize_whole(K, a, sign, linear, cap, tol, max_steps):
    """Optimize all variables of a problem; change a in place.

    Returns
    -------
    The scores Σ sᵤaᵤKₜᵤ, computed anew; the largest v that may go up, the least that may go down, and the mean v of free
    variables (NaN if there are none).
    """
    n = len(a)
    v, scores = np.empty(n), np.zeros(n)
    _add_scores(K, a, sign, scores)
    for t in range(n):
        v[t] = -sign[t] * linear[t] - scores[t]
    optimize_pairs(K, a, v, sign, cap, tol, max_steps)
    scores[:] = 0.0
    _add_scores(K, a, sign, scores)
    high, low, total, count = -np.inf, np.inf, 0.0, 0
    for t in range(n):
        value = -sign[t] * linear[t] - scores[t]
        up, down = may_rise(sign[t], a[t], cap[t]), may_rise(-sign[t], a[t], cap[t])
        high, low = max(high, value) if up else high, min(low, value) if down else low
        if up and down:
            total += value
            count += 1
    return scores, high, low, total / count if count else np.nan


@kernel
def _add_scores(K, a, sign, scores):
    for u in range(len(a)):
        if a[u] != 0.0:
            row, factor = K[u], sign[u] * a[u]
            for t in range(len(a)):
                scores[t] += factor * row[t]


@kernel
def extremes(a, v, sign, cap, high, low):
    """Write v where a variable may go up and −∞ elsewhere to `high`, and v where it may go down and ∞ elsewhere to `low`."""
    for t in range(len(a)):
        high[t] = v[t] if may_rise(sign[t], a[t], cap[t]) else -np.inf
        low[t] = v[t] if may_rise(-sign[t], a[t], cap[t]) else np.inf


@kernel
def add_rows(store, slots, factors, totals, start, stop):
    """Add rows of the store, times their factors, to the totals of columns from start to stop; sums are in float64.

    Four rows at a time, to write less often.
    """
    fours = len(slots) - len(slots) % 4
    for r in range(0, fours, 4):
        f, g, h, k = factors[r], factors[r + 1], factors[r + 2], factors[r + 3]
        a, b, c, d = store[slots[r]], store[slots[r + 1]], store[slots[r + 2]], store[slots[r + 3]]
        for j in range(start, stop):
            totals[j] += f * a[j] + g * b[j] + h * c[j] + k * d[j]
    for r in range(fours, len(slots)):
        row, factor = store[slots[r]], factors[r]
        for j in range(start, stop):
            totals[j] += factor * row[j]
