"""Minkowski distances, and the few nearest rows seen so far.

d(a, b) = (Σ_f |a_f − b_f|^p)^(1/p) for 1 ≤ p < ∞, and max_f |a_f − b_f| for p = ∞: a metric for every such p. Where only order
matters the root is left out for p = 2, so that a distance is "ranked" by its square there, and by itself for all other p.
Where a sum of powers would leave the range of numbers, the largest difference is taken out of it first.

For p ≤ q, ‖v‖_p ≥ ‖v‖_q. So a power that compiles to vector instructions, the next whole or half one, bounds every other from
below: that is what searches screen by.
"""

import numpy as np

from lemmata.core.kernel import kernel

SMALLEST = 1e-280  # sum of powers that has all its digits
STEEPEST = 8.0  # powers above are screened by the largest difference: ‖v‖_∞ ≥ d^(−1/8) ‖v‖_8, which is 3/4 of it for d = 10


@kernel
def ranked(a, b, p):
    """Compare two rows: by Σ(a − b)² for p = 2, else by their distance.

    Examples
    --------
    >>> a, b = np.array([0.0, 0.0]), np.array([3.0, 4.0])
    >>> [round(float(ranked(a, b, p)), 6) for p in (1.0, 2.0, 3.0, np.inf)]
    [7.0, 25.0, 4.497941, 4.0]
    """
    total, largest = 0.0, 0.0
    if p == 2.0:
        for f in range(len(a)):
            total += (a[f] - b[f]) * (a[f] - b[f])
        return total
    if p == 1.0:
        for f in range(len(a)):
            total += abs(a[f] - b[f])
        return total
    if p != np.inf:
        for f in range(len(a)):
            total += abs(a[f] - b[f]) ** p
        if SMALLEST < total < 1.0 / SMALLEST:
            return total ** (1.0 / p)
    for f in range(len(a)):
        largest = max(largest, abs(a[f] - b[f]))
    if p == np.inf or largest == 0.0 or largest == np.inf:
        return largest
    total = 0.0
    for f in range(len(a)):
        total += (abs(a[f] - b[f]) / largest) ** p
    return largest * total ** (1.0 / p)


@kernel
def box_distance(low, high, other_low, other_high, p, power):
    """Bound from below how rows of two boxes are ranked, going by a power to screen by; a row is a box as well."""
    total = 0.0
    for f in range(len(low)):
        gap = max(other_low[f] - high[f], low[f] - other_high[f], 0.0)
        if power == 2.0:
            total += gap * gap
        elif power == 1.0:
            total += gap
        elif power == np.inf:
            total = max(total, gap)
        elif gap > 0.0:
            total += gap**power
    if p == 2.0 or power == 1.0 or power == np.inf:
        return total
    return np.sqrt(total) if power == 2.0 else total ** (1.0 / power)


def screening(p):
    """Give the power to screen by: the next whole or half one, or infinity.

    Examples
    --------
    >>> [screening(p) for p in (1, 1.2, 2, 2.7, 8, 9, np.inf)]
    [1.0, 1.5, 2.0, 3.0, 8.0, inf, inf]
    """
    return np.inf if p > STEEPEST else float(np.ceil(2 * p) / 2)


def rooted(values, p):
    """Turn what rows are ranked by into distances.

    Examples
    --------
    >>> rooted(np.array([25.0]), 2.0), rooted(np.array([25.0]), 1.0)
    (array([5.]), array([25.]))
    """
    return np.sqrt(values) if p == 2.0 else values


@kernel
def push(index, value, row, ranking):
    """Put a row on a heap of the nearest so far, the farthest on top, if it is nearer than that; the lower of equals is.

    Examples
    --------
    >>> index, value = np.array([7, 3]), np.array([4.0, 1.0])
    >>> push(index, value, 5, 4.0)
    >>> index, value
    (array([5, 3]), array([4., 1.]))
    """
    if not (ranking < value[0] or (ranking == value[0] and row < index[0])):
        return
    k, place = len(index), 0
    while 2 * place + 1 < k:
        child = 2 * place + 1
        if child + 1 < k and (
            value[child + 1] > value[child] or (value[child + 1] == value[child] and index[child + 1] > index[child])
        ):
            child += 1
        if not (value[child] > ranking or (value[child] == ranking and index[child] > row)):
            break
        index[place], value[place] = index[child], value[child]
        place = child
    index[place], value[place] = row, ranking


@kernel
def unheap(index, value):
    """Sort heaps, one in each row, nearest first."""
    for i in range(len(index)):
        for last in range(index.shape[1] - 1, 0, -1):
            row, ranking = index[i, last], value[i, last]
            index[i, last], value[i, last] = index[i, 0], value[i, 0]
            index[i, 0], value[i, 0] = np.iinfo(np.int64).max, np.inf  # anything is nearer
            push(index[i, :last], value[i, :last], row, ranking)
