"""Visits of rows: in which order and in which batch each comes; and normal draws inside compiled code.

A weight of k is k visits (`core.visits`), each with draws of its own: k copies of a row are the same fit, to the bit.
"""

import math

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.visits import in_units, visits_of
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


def lay_out(n_rows, weight, unit, batch_size, rng):
    """Cut the visits of a block into batches, in an order that is drawn, or that of the table without a generator.

    Examples
    --------
    >>> batches = lay_out(3, np.array([1.0, 2.5, 1.0]), 1.0, 2, None)
    >>> batches.order, batches.weight
    (array([0, 1, 1, 1, 2]), array([1. , 1. , 1. , 0.5, 1. ]))
    """
    rows, shares = (np.arange(n_rows), None) if weight is None else visits_of(in_units(weight, unit))
    order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
    return cut(shares, order, batch_size)._replace(order=rows[order])
