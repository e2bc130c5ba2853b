"""The first layer on sparse rows: what they store is all that is multiplied.

Rows are centered by means μ and scaled by s, so they are not sparse any more; but

    (x − μ)∘s W + b = Σⱼ xⱼ sⱼ Wⱼ + (b − (μ∘s) W),      ∂E/∂W = Σᵢ (xᵢ∘s) δᵢᵀ − (μ∘s) (Σᵢ δᵢ)ᵀ,

and the second parts are taken once for a batch. A layer costs as many products as its rows store numbers, and one of its size.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.neural_network.layers import unit_rows


def entered(shape):
    """Return the shape of a network with no room for its inputs: sparse rows are never made dense."""
    return shape._replace(places=np.concatenate([[0, 0], np.cumsum(shape.sizes[1:])]).astype(np.int64))


@kernel
def enter(shape, parameters, room, values, indices, indptr, mean, scale, order, first, last):
    """Write what goes into the units of the first layer, for rows order[first:last]."""
    n, m, rows = shape.sizes[0], shape.sizes[1], last - first
    W, Z = parameters[: n * m].reshape(n, m), unit_rows(shape, room.values, room.capacity, 1, rows).reshape(rows, m)
    offset = parameters[n * m : n * m + m].copy()
    for f in range(n):
        share = mean[f] * scale[f]
        if share != 0:
            for j in range(m):
                offset[j] -= share * W[f, j]
    for q in range(rows):
        i = order[first + q]
        for j in range(m):
            Z[q, j] = offset[j]
        for p in range(indptr[i], indptr[i + 1]):
            f = indices[p]
            x = values[0, p] * scale[f]
            for j in range(m):
                Z[q, j] += x * W[f, j]


@kernel
def leave(shape, room, values, indices, indptr, mean, scale, order, first, last, gradient):
    """Write the derivatives with respect to the parameters of the first layer."""
    n, m, rows = shape.sizes[0], shape.sizes[1], last - first
    G, sums = gradient[: n * m].reshape(n, m), gradient[n * m : n * m + m]
    delta = unit_rows(shape, room.deltas, room.capacity, 1, rows).reshape(rows, m)
    sums[:] = 0.0
    for q in range(rows):
        for j in range(m):
            sums[j] += delta[q, j]
    for f in range(n):
        share = mean[f] * scale[f]
        for j in range(m):
            G[f, j] = -share * sums[j]
    for q in range(rows):
        i = order[first + q]
        for p in range(indptr[i], indptr[i + 1]):
            f = indices[p]
            x = values[0, p] * scale[f]
            for j in range(m):
                G[f, j] += x * delta[q, j]
