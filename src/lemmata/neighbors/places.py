"""k places for neighbors: who takes them, and with how much say.

A row of weight s stands for s copies of itself, and takes s of the k places, nearest first; the last taker gets what is left.
Where all rows together have fewer than k places to fill, all are taken. Say goes by places alone, by 1/distance (a row at no
distance has it all), or by any function of distances.
"""

import numpy as np


def taken(index, weight, k, less=None):
    """Give the places that neighbors take, nearest first.

    Parameters
    ----------
    index : (m, K), row numbers.
    weight : (n,), copies of each row.
    less : (m,), a row number each, which has one copy less.

    Examples
    --------
    >>> taken(np.array([[2, 0, 1]]), np.array([3.0, 1.0, 0.5]), 2)
    array([[0.5, 1.5, 0. ]])
    """
    copies = weight[index]
    if less is not None:
        copies = np.where(index == less[:, None], np.maximum(copies - 1.0, 0.0), copies)
    before = np.cumsum(copies, axis=1) - copies
    return np.clip(k - before, 0.0, copies)


def say(distance, places, how):
    """Give the weights of neighbors in a vote or mean, up to a common factor for each row.

    Parameters
    ----------
    distance, places : (m, K), nearest first.
    how : "uniform", "distance", or a function of distances.

    Examples
    --------
    >>> distance = np.array([[1.0, 4.0, 4.0], [0.0, 0.0, 2.0]])
    >>> say(distance, np.ones((2, 3)), "distance")
    array([[1.  , 0.25, 0.25],
           [1.  , 1.  , 0.  ]])
    """
    if callable(how):
        factor = np.asarray(how(distance), dtype=float)
        if factor.shape != distance.shape or not (np.isfinite(factor) & (factor >= 0)).all():
            raise ValueError("The function given as weights must return a finite number of at least 0 for each distance.")
    elif how == "distance":
        present = np.where(places > 0, distance, np.inf).min(axis=1, keepdims=True)  # relative to it nothing overflows
        factor = np.divide(present, distance, out=np.ones_like(distance), where=distance > present)  # so no 0/0, no ∞/∞
    else:
        factor = np.ones_like(distance)
    weights = factor * places
    return np.where(weights.any(axis=1, keepdims=True), weights, places)  # where nobody has a say, all have the same


def neighbors_of(table, k, weight, queries):
    """Find enough neighbors of each query to fill k places, or all rows.

    Returns
    -------
    index, distance : (m, K), nearest first.
    """
    count = min(k, table.n)
    while True:
        index, distance = table.nearest(count, queries)
        if count == table.n or weight[index].sum(axis=1).min() >= k:
            return index, distance
        count = min(2 * count, table.n)
