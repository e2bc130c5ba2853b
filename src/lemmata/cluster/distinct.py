"""The distinct rows of a table with their weights, in memory, and k of them drawn far apart.

A loss that is a sum over rows depends on the set of distinct rows and their total weights alone. An algorithm that sees these,
sorted, gives the same result for every order of the rows, and the same for a row of weight 3 as for three copies of it.
"""

import numpy as np


def load(blocks):
    """Bring the rows of positive weight into memory: the rows, their weights, their numbers in the whole table."""
    rows, weight = blocks.whole()
    return rows, np.ones(len(rows)) if weight is None else weight.astype(float), blocks.numbers()


def merged(rows, weight):
    """Merge equal rows and sort the others: for each, the number of its first copy, and the weight of all copies."""
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, np.bincount(group.ravel(), weight)


def spread_out(lines, weight, k, rng):
    """Draw k rows one by one, with odds ∝ weight × distance to the nearest one drawn before; lines(c) gives distances from c.

    Of 2 + ln k rows drawn each time, from as many equal parts of the odds, the one that leaves the least sum of distances is
    kept.
    """
    n, trials = len(weight), 2 + int(np.log(k))
    near, chosen = np.ones(n), []
    for uniform in (rng.random((k, 1)) + np.arange(trials)) / trials:
        total = np.cumsum(weight * near)
        if total[-1] == 0:  # the rest sit on those drawn: any of them will do
            return np.concatenate([chosen, np.setdiff1d(np.arange(n), chosen)[: k - len(chosen)]]).astype(np.int64)
        drawn = np.minimum(np.searchsorted(total, uniform * total[-1], side="right"), n - 1)
        closer = lines(drawn) if not chosen else np.minimum(lines(drawn), near)
        best = int(np.argmin(closer @ weight))
        chosen.append(drawn[best])
        near = closer[best].astype(float)
    return np.array(chosen)
