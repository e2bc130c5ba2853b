"""Visits of rows: how often each comes, in which order, and in which batch; and normal draws inside compiled code.

A weight of k is k visits, each with draws of its own, and what is left below one is a visit that counts less: k copies of a row
are the same fit, to the bit. Weights that are all below one are no counts, and are taken relative to their mean.
"""

import math

import numpy as np

from lemmata.core.blocks import Largest
from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.neural_network.training import cut


@kernel
def fill_normals(state, out):
    """Fill an array of one dimension with standard normal numbers, by the polar method of Marsaglia and Bray."""
    i, n = 0, len(out)
    while i < n:
        a, b = 2.0 * next_uniform(state) - 1.0, 2.0 * next_uniform(state) - 1.0
        r = a * a + b * b
        if 0.0 < r < 1.0:
            length = math.sqrt(-2.0 * math.log(r) / r)
            out[i] = a * length
            if i + 1 < n:
                out[i + 1] = b * length
            i += 2


def weights_block(X, weight):
    """Largest weight of a block, sum of the weights, and number of rows."""
    return (Largest(1.0), float(len(X)), len(X)) if weight is None else (Largest(weight.max()), float(weight.sum()), len(X))


def unit_of(blocks):
    """Return the weight of one visit, and the weight of all rows in visits.

    Examples
    --------
    >>> from lemmata.core.blocks import Blocks
    >>> unit_of(Blocks.of(np.eye(2), np.array([3.0, 1.0]))), unit_of(Blocks.of(np.eye(2), np.array([0.3, 0.1])))
    ((1.0, 4.0), (0.2, 2.0))
    """
    largest, total, n = blocks.reduce(weights_block)
    unit = 1.0 if largest.value >= 1 else total / n
    return unit, total / unit


def lay_out(n_rows, weight, unit, batch_size, rng):
    """Cut the visits of a block into batches, in an order that is drawn, or that of the table without a generator.

    Examples
    --------
    >>> batches = lay_out(3, np.array([1.0, 2.5, 1.0]), 1.0, 2, None)
    >>> batches.order, batches.weight
    (array([0, 1, 1, 1, 2]), array([1. , 1. , 1. , 0.5, 1. ]))
    """
    rows, shares = np.arange(n_rows), None
    if weight is not None:
        times = np.asarray(weight, dtype=float) / unit
        visits = np.ceil(times).astype(np.int64)
        rows, shares = np.repeat(rows, visits), np.ones(int(visits.sum()))
        shares[np.cumsum(visits) - 1] = times - (visits - 1)
    order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
    return cut(shares, order, batch_size)._replace(order=rows[order])
