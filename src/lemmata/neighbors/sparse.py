"""The search for sparse tables of very many columns: products of sparse rows tell who may be near, and lists are merged.

A row that asks is spread out over all columns, so that its product with another is a sum over what that one holds. For p = 2
products rule out rows up to a rounding that is known, as in `products`; the distance of two rows is a sum over the columns
that either holds.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.neighbors.metric import push, ranked

EPS = float(np.finfo(float).eps)


class Lists(NamedTuple):
    """Sparse rows: those of a CSR matrix, columns in ascending order."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    norms: np.ndarray  # squared lengths


def lists_of(X, scale):
    """Take a CSR matrix apart, times a scale.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> lists_of(csr_array([[0.0, 2.0], [3.0, 1.0]]), 0.5).norms
    array([1. , 2.5])
    """
    X = X.astype(float)  # a copy
    X.sum_duplicates()
    values = X.data * scale
    norms = np.array([values[a:b] @ values[a:b] for a, b in zip(X.indptr, X.indptr[1:], strict=False)])
    return Lists(X.indptr.astype(np.int64), X.indices.astype(np.int64), values, norms)


@kernel
def merged(one, i, other, j, p, room, zeros):
    """Rank row j of one list for row i of another."""
    a, b, end_a, end_b, count = one.starts[i], other.starts[j], one.starts[i + 1], other.starts[j + 1], 0
    while a < end_a or b < end_b:
        if b == end_b or (a < end_a and one.columns[a] < other.columns[b]):
            room[count] = one.values[a]
            a += 1
        elif a == end_a or other.columns[b] < one.columns[a]:
            room[count] = other.values[b]
            b += 1
        else:
            room[count] = one.values[a] - other.values[b]
            a += 1
            b += 1
        count += 1
    return ranked(room[:count], zeros[:count], p)


@kernel
def nearest_of_lists(first, last, asking, names, table, p, d, index, value):
    """Find the nearest rows of some rows of a list; the other arguments are those of `nearest_of_tile`."""
    room, zeros, spread = np.empty(d), np.zeros(d), np.zeros(d)
    for i in range(first, last):
        for a in range(asking.starts[i], asking.starts[i + 1]):
            spread[asking.columns[a]] = asking.values[a]
        for j in range(len(table.norms)):
            if j == names[i - first]:
                continue
            if p == 2.0:
                product = 0.0
                for b in range(table.starts[j], table.starts[j + 1]):
                    product += table.values[b] * spread[table.columns[b]]
                sizes = asking.norms[i] + table.norms[j]
                held = asking.starts[i + 1] - asking.starts[i] + table.starts[j + 1] - table.starts[j]
                if sizes - 2.0 * product - 4.0 * (held + 8) * EPS * sizes > value[i - first, 0]:
                    continue
            push(index[i - first], value[i - first], j, merged(asking, i, table, j, p, room, zeros))
        for a in range(asking.starts[i], asking.starts[i + 1]):
            spread[asking.columns[a]] = 0.0


@kernel
def within_of_lists(first, last, asking, names, table, p, d, reach):
    """Find all rows within reach of some rows of a list; see `within_of_tile`."""
    room, zeros, found = np.empty(d), np.zeros(d), 0
    which, index, value = np.empty(len(table.norms), np.int64), np.empty(len(table.norms), np.int64), np.empty(len(table.norms))
    for i in range(first, last):
        for j in range(len(table.norms)):
            ranking = merged(asking, i, table, j, p, room, zeros)
            if j != names[i - first] and ranking <= reach:
                if found == len(index):
                    more = np.empty(len(index), np.int64)
                    which, index = np.concatenate((which, more)), np.concatenate((index, more))
                    value = np.concatenate((value, np.empty(len(value))))
                which[found], index[found], value[found] = i - first, j, ranking
                found += 1
    return which[:found], index[:found], value[:found]
