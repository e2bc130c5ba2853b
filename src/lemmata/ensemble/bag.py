"""Bags: the rows that a member of an ensemble is fitted to, drawn so that they can be drawn again.

Draw i of a bag is a hash of the seed and of i, read as a number of [0, 1), and finds the row on whose share of the total
weight it falls. Whole weights are repetitions: as many draws are made as there are rows then, and a row of weight 2 has the
chances of two rows beside each other, draw by draw. Other weights are odds, and there are as many draws as rows.
"""

from numbers import Integral

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.random import generator
from lemmata.tree.draw import mix, uniform


def draw_seeds(random_state, n):
    """Draw the seeds of n members.

    Examples
    --------
    >>> bool(np.array_equal(draw_seeds(0, 3), draw_seeds(0, 5)[:3]))
    True
    """
    return generator(random_state).integers(0, 2**63 - 1, size=n)


def is_whole(weight):
    """Tell whether weights are numbers of repetitions.

    Examples
    --------
    >>> is_whole(None), is_whole(np.array([2.0, 0.0])), is_whole(np.array([0.5]))
    (True, True, False)
    """
    return weight is None or bool((weight == np.rint(weight)).all() and weight.sum() < 2**53)  # 2**53: counted exactly


def bag_size(max_samples, n_rows, weight):
    """Return how many rows a bag draws.

    Examples
    --------
    >>> bag_size(None, 3, None), bag_size(0.5, 3, np.array([2.0, 2.0, 4.0])), bag_size(7, 3, None)
    (3, 4, 7)
    """
    present = n_rows if weight is None or not is_whole(weight) else int(weight.sum())
    if max_samples is None:
        return present
    if isinstance(max_samples, Integral) and not isinstance(max_samples, bool) and max_samples >= 1:
        return int(max_samples)
    if isinstance(max_samples, float) and 0 < max_samples <= 1:
        return max(int(max_samples * present), 1)
    raise ValueError(f"max_samples must be None, a whole number of rows, or a share of (0, 1], got {max_samples!r}.")


def bag_counts(seed, n_draws, n_rows, odds=None):
    """Draw a bag: how often it has each row.

    Parameters
    ----------
    odds : Weights of the rows; None for equal ones.

    Examples
    --------
    >>> bag_counts(7, 5, 5), bag_counts(7, 5, 3, np.array([1.0, 3.0, 1.0]))  # three rows, or one of weight three
    (array([0, 1, 1, 3, 0]), array([0, 5, 0]))
    """
    counts = np.zeros(n_rows, dtype=np.int64)
    cumulative = np.empty(0) if odds is None else np.cumsum(odds)
    draw_rows(np.uint64(mix(np.uint64(seed), np.uint64(0))), n_draws, cumulative, counts)
    return counts


def distinct_copies(seed, n_draws, odds, copies):
    """Tell how many different copies of each row a bag of `bag_counts` has, where rows are copies of one: whole weights.

    Limits on rows (`min_samples_leaf`) count a row once, however often it was drawn; a row of weight two is two rows.

    Examples
    --------
    >>> distinct_copies(7, 5, np.array([1.0, 3.0, 1.0]), np.array([1, 3, 1]))  # beside bag_counts(7, 5, 5)
    array([0, 3, 0])
    """
    end = np.cumsum(odds)
    at = np.unique(places(np.uint64(mix(np.uint64(seed), np.uint64(0))), n_draws) * end[-1])
    row = np.searchsorted(end, at, side="right")
    copy = ((at - (end - odds)[row]) * (copies / odds)[row]).astype(np.int64)
    first = np.r_[True, (row[1:] != row[:-1]) | (copy[1:] != copy[:-1])]
    return np.bincount(row[first], minlength=len(odds))


@kernel
def places(key, n_draws):
    """Return the draws of a bag as numbers of [0, 1)."""
    out = np.empty(n_draws)
    for i in range(n_draws):
        out[i] = uniform(mix(key, np.uint64(i)))
    return out


@kernel
def draw_rows(key, n_draws, cumulative, counts):
    """Draw rows with replacement; `cumulative` weights, empty for equal ones."""
    n = len(counts)
    for i in range(n_draws):
        u = uniform(mix(key, np.uint64(i)))
        if len(cumulative) == 0:
            counts[min(int(u * n), n - 1)] += 1
            continue
        at, low, high = u * cumulative[n - 1], 0, n - 1  # the first row whose cumulative weight exceeds this
        while low < high:
            middle = (low + high) >> 1
            if cumulative[middle] > at:
                high = middle
            else:
                low = middle + 1
        counts[low] += 1
