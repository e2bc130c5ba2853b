"""Step functions of one column: two labels that change at cuts, with the fewest errors for so many changes.

Class c holds the functions of a single column, whichever of d, that change their label at most c times along it: constants,
stumps, intervals and their complements, and so on. A column puts m points in an order with m − 1 gaps, so that the class has
at most 2 + 2d Σ_{i=1..c} C(m − 1, i) labelings of them; the constants are the same for all columns.
The fewest errors follow by dynamic programming along the sorted values. With C_l(i) the errors of label l on the first i
values, and F_c,l(i) the fewest of any function on these that ends with label l after at most c changes,
    F_0,l = C_l,   F_c,l(i) = C_l(i) + min_{j ≤ i} (F_{c−1,1−l}(j) − C_l(j)),
which is a running minimum: the whole costs O(k) for each c. From the other end of the column the same recursion gives the same
numbers by other sums, which is how a certificate counts them.
"""

from math import log

import numpy as np

from lemmata.theory.bounds.growth import log_sauer


def log_steps(m, d, changes):
    """Return the logarithm of the number of labelings of m points by step functions of one of d columns.

    Examples
    --------
    >>> [round(float(np.exp(log_steps(5, d, c)))) for d, c in ((1, 0), (1, 1), (3, 1), (1, 4))]
    [2, 10, 26, 32]
    """
    if changes == 0 or m < 2:
        return log(2)
    nonconstant = log_sauer(m - 1, changes)
    nonconstant += log(-np.expm1(-nonconstant))  # ln (S − 1)
    return float(min(m * log(2), np.logaddexp(log(2), log(2 * d) + nonconstant)))


def _costs(x, y, weight):
    """Return the values of a column, and the errors of either label on the first i of them, (2, k + 1)."""
    values, place = np.unique(x, return_inverse=True)
    tallies = [np.bincount(place, weights=weight * (y != label), minlength=len(values)) for label in (0, 1)]
    return values, np.column_stack([np.zeros(2), np.cumsum(tallies, axis=1)])


def _forward(costs, changes):
    """Yield F_c for c = 0, …, changes, each (2, k + 1): a row for either last label, a column for the first i values."""
    best = costs
    yield best
    for _ in range(changes):
        best = costs + np.minimum.accumulate(best[::-1] - costs, axis=1)
        yield best


def step_errors(x, y, weight, changes):
    """Return the fewest errors on one column with at most 0, 1, …, `changes` changes of the label.

    Examples
    --------
    >>> step_errors([1.0, 2.0, 3.0, 4.0], np.array([0, 1, 1, 0]), np.ones(4), 2)
    array([2., 1., 0.])
    """
    return np.array([best[:, -1].min() for best in _forward(_costs(x, y, weight)[1], changes)])


def step_function(x, y, weight, changes):
    """Return a step function of fewest errors on one column: cuts, and the label below the first.

    Examples
    --------
    >>> step_function([1.0, 2.0, 3.0, 4.0], np.array([0, 1, 1, 0]), np.ones(4), 2)
    (array([1.5, 3.5]), 0)
    """
    values, costs = _costs(x, y, weight)
    best = list(_forward(costs, changes))
    i, label = len(values), int(best[-1][:, -1].argmin())
    labels = np.empty(i, dtype=np.int64)
    for c in range(changes, 0, -1):
        j = int((best[c - 1][1 - label, : i + 1] - costs[label, : i + 1]).argmin())
        labels[j:i] = label
        i, label = j, 1 - label
    labels[:i] = label
    at = np.flatnonzero(np.diff(labels))
    return midpoints(values[at], values[at + 1]), int(labels[0])


def midpoints(low, high):
    """Return cuts c with low < c ≤ high, in the middle unless rounding forbids.

    Examples
    --------
    >>> midpoints(np.array([1.0]), np.array([2.0]))
    array([1.5])
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    middle = low / 2 + high / 2
    return np.where(low < middle, middle, high)


def backward_errors(x, y, weight, changes):
    """Return what `step_errors` does, from the other end: B_c,l(i) = min_{j ≥ i} (C_l(j) + B_{c−1,1−l}(j)) − C_l(i).

    Examples
    --------
    >>> backward_errors([1.0, 2.0, 3.0, 4.0], np.array([0, 1, 1, 0]), np.ones(4), 2)
    array([2., 1., 0.])
    """
    order = np.argsort(x, kind="stable")
    x, wrong = np.asarray(x)[order], np.array([weight * (y != 0), weight * (y != 1)])[:, order]
    ends = np.append(0, np.flatnonzero(np.append(x[1:] > x[:-1], True)) + 1)  # a change falls between different values only
    costs = np.column_stack([np.zeros(2), np.cumsum(wrong, axis=1)])[:, ends]
    rest = costs[:, -1:] - costs
    fewest = [rest[:, 0].min()]
    for _ in range(changes):
        rest = np.minimum.accumulate((costs + rest[::-1])[:, ::-1], axis=1)[:, ::-1] - costs
        fewest.append(rest[:, 0].min())
    return np.array(fewest)
