"""A table to search: the k nearest rows of any row, or all within a radius, exactly, for every Minkowski p in [1, ∞].

Few columns, or another power than two: tiles (see `tiles`). Many columns and p = 2: products of matrices (see `products`).
Sparse rows of very many columns: see `sparse`. Of equally distant rows the lower row number is nearer, and a distance is
computed by the same operations wherever it is: the answer depends on no tile, block or thread.
"""

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from lemmata.core import config, threads
from lemmata.core.data import WIDE, is_sparse
from lemmata.neighbors.metric import rooted, screening, unheap
from lemmata.neighbors.products import nearest_by_products, slices_of
from lemmata.neighbors.sparse import EPS, lists_of, nearest_of_lists, within_of_lists
from lemmata.neighbors.tiles import nearest_of_tile, tiles_of, within_of_tile

MANY = 13  # columns from which on products are faster: 47 μs a query against 36 in 10 columns, 51 against 67 in 14
DENSE = 1 << 27  # entries of a sparse table that is spread out: a GiB
FARTHEST = 2.0**400  # of coordinates as they are scaled: their squares have room
LIST = 16  # sparse rows that ask in one task


class Table:
    """Rows to search.

    Coordinates are multiplied by a power of two, which rounds nothing, so that the table has size one: no power of a
    difference overflows, however large the numbers are.

    Parameters
    ----------
    X : (n, d), array or CSR matrix.
    p : Power of the distance, from 1 to infinity.
    scale : Power of two to multiply with, chosen by default.

    Examples
    --------
    >>> table = Table(np.array([[0.0], [1.0], [3.0], [1.0]]))
    >>> table.nearest(2)[0].tolist()
    [[1, 3], [3, 0], [1, 3], [1, 0]]
    >>> table.nearest(1, np.array([[2.5]]))
    (array([[2]]), array([[0.5]]))
    >>> table.within(2.0, np.array([[2.5]]))
    (array([0, 0, 0]), array([2, 1, 3]), array([0.5, 1.5, 1.5]))
    """

    def __init__(self, X, p=2.0, scale=None):
        self.p, self.power = float(p), screening(p)
        if is_sparse(X) and X.shape[1] <= WIDE and X.shape[0] * X.shape[1] <= DENSE:
            X = X.toarray()
        self.X, self.sparse = X, is_sparse(X)
        self.n, self.d = X.shape
        self.scale = scale or 2.0 ** -int(np.clip(np.frexp(_span(X))[1], -1000, 1000))
        self.by_products = self.p == 2.0 and self.d >= MANY and not self.sparse
        if self.sparse:
            self.parts = lists_of(X, self.scale)
        else:
            rows = np.multiply(X, self.scale, dtype=float)
            self.parts = slices_of(rows) if self.by_products else tiles_of(rows)

    @property
    def order(self):
        """Row numbers in an order that has close rows close together."""
        return np.arange(self.n) if self.sparse else self.parts.order

    def nearest(self, k, queries=None, *, root=True):
        """Find the k nearest rows of each row of the table (itself left out), or of each query.

        Parameters
        ----------
        k : As many as there are rows at most, not counting the one that asks.
        queries : (m, d), other rows, an array or a CSR matrix.
        root : False for squared distances, if p = 2.

        Returns
        -------
        index, distance : (m, k), nearest first.
        """
        m = self.n if queries is None else queries.shape[0]
        index, distance = np.full((m, k), self.n), np.full((m, k), np.inf)
        for some, table, Q in self._groups(queries):

            def work(task, some=some, table=table):
                rows, asking, names = task
                found, value = np.full((len(rows), k), self.n), np.full((len(rows), k), np.inf)
                if table.sparse:
                    nearest_of_lists(*asking, names, table.parts, table.p, table.d, found, value)
                elif table.by_products:
                    nearest_by_products(*asking, names, table.parts, found, value)
                else:
                    nearest_of_tile(*asking, names, table.parts, table.p, table.power, found, value)
                unheap(found, value)
                index[some[rows]], distance[some[rows]] = found, table._unscaled(value, root)

            threads.run(work, table._tasks(Q), config.n_threads())
        return index, distance

    def within(self, radius, queries=None):
        """Find all rows within a radius of each row of the table (itself left out), or of each query.

        Returns
        -------
        which, index, distance : Of each pair the row that asks, in ascending order; the row found, nearest first; the distance.
        """
        found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for some, table, Q in self._groups(queries):
            parts = tiles_of(np.multiply(table.X, table.scale, dtype=float)) if table.by_products else table.parts
            reach = min(radius * table.scale, FARTHEST) ** (2 if table.p == 2.0 else 1)
            reach *= 1.0 + 8 * EPS  # who is in is decided by the distance itself, below

            def work(task, some=some, table=table, parts=parts, reach=reach):
                rows, asking, names = task
                if table.sparse:
                    which, index, value = within_of_lists(*asking, names, parts, table.p, table.d, reach)
                else:
                    which, index, value = within_of_tile(*asking, names, parts, table.p, table.power, reach)
                found.append((some[rows[which]], index, table._unscaled(value, True)))

            threads.run(work, table._tasks(Q), config.n_threads())
        which, index, distance = (np.concatenate(part) for part in zip(*found, strict=True))
        inside = distance <= radius
        which, index, distance = which[inside], index[inside], distance[inside]
        sort = np.lexsort((index, distance, which))
        return which[sort], index[sort], distance[sort]

    def _groups(self, queries):
        """Give queries in groups: their numbers, a table whose scale has room for them, and they in the form that it needs."""
        if queries is None:
            yield np.arange(self.n), self, None
            return
        queries, numbers = csr_array(queries) if self.sparse else queries, np.arange(queries.shape[0])
        far = _sizes(queries) > FARTHEST / self.scale
        rows = len(numbers) if self.sparse or not is_sparse(queries) else max(1, DENSE // self.d)
        near = numbers[~far]
        for some in (near[i : i + rows] for i in range(0, len(near), rows)):
            part = queries if len(some) == len(numbers) else queries[some]
            yield some, self, part.toarray() if is_sparse(part) and not self.sparse else part
        for i in numbers[far]:  # each for itself: one farther than all others would hide differences of theirs
            part = queries[[i]]
            table = Table(self.X, self.p, 2.0 ** -int(np.frexp(_sizes(part)[0])[1]))
            yield numbers[[i]], table, part.toarray() if is_sparse(part) and not self.sparse else part

    def _tasks(self, queries):
        """Give the rows that ask in portions: their numbers, what a kernel needs of them, and their names in the table."""
        if self.sparse:
            asking = self.parts if queries is None else lists_of(queries, self.scale)
            for first in range(0, len(asking.norms), LIST):
                rows = np.arange(first, min(first + LIST, len(asking.norms)))
                yield rows, (first, first + len(rows), asking), rows if queries is None else np.full(len(rows), -1)
            return
        asking = self.parts
        if queries is not None or self.by_products:
            asking = tiles_of(np.multiply(self.X if queries is None else queries, self.scale, dtype=float), columns=False)
        for t, (start, stop) in enumerate(pairwise(asking.starts)):
            rows = asking.order[start:stop]
            names = rows if queries is None else np.full(len(rows), -1)
            yield rows, (asking.rows[start:stop], asking.low[t], asking.high[t]), names

    def _unscaled(self, value, root):
        """Turn what rows are ranked by into distances in the units of the table."""
        with np.errstate(over="ignore"):  # beyond the largest number a distance, or its square, is infinite
            return rooted(value, self.p) / self.scale if root else value / self.scale / self.scale


def _sizes(X):
    """Give the largest absolute value of each row."""
    sizes = abs(X).max(axis=1).toarray().ravel() if is_sparse(X) else np.maximum(X.max(axis=1), -X.min(axis=1))
    return sizes.astype(float)


def _span(X):
    """Give half the size of a table: of its widest column if it is dense, and of any entry if it is sparse or constant."""
    size = float(_sizes(X).max())
    return size if is_sparse(X) else float((0.5 * X.max(axis=0) - 0.5 * X.min(axis=0)).max()) or size
