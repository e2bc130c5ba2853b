"""Ratings sorted into rows, one for each user or one for each item, in shards of whole rows.

Each user's ridge problem needs this user's ratings and all item factors, and each item's the reverse. So the ratings are kept
twice, as rows of users and as rows of items, both cut into shards of whole rows. A row is worked on alone and its entries
keep one order, so neither the cuts nor the home of the shards changes a bit. On Dask, partitions are shuffled once and then
every shard stays with its worker; what travels in a sweep are the factors.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.dask_blocks import DaskBlocks
from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.recommend.ratings import Ratings, Triples, distinct, places, present, take

SHARD = 1 << 15  # ratings of a shard in memory: some milliseconds of work, so that threads end together
ROW = 16  # ratings that cost as much as the work on a row that does not depend on their number


class Rows(NamedTuple):
    """Entries of consecutive rows: where rows start, the columns, the values, and the weights (none: all 1)."""

    indptr: Any
    indices: Any
    values: Any
    weights: Any


@kernel
def _sorting(keys, n):
    """Sort whole numbers below n; return where each value starts, and the order, in which equal ones stay as they were."""
    starts = np.zeros(n + 1, dtype=np.int64)
    for key in keys:
        starts[key + 1] += 1
    for k in range(n):
        starts[k + 1] += starts[k]
    at = starts[:-1].copy()
    order = np.empty(len(keys), dtype=np.int64)
    for e in range(len(keys)):
        order[at[keys[e]]] = e
        at[keys[e]] += 1
    return starts, order


def rows_of(row, column, values, weights, n_rows, n_columns):
    """Sort entries into rows, each by its columns; entries at the same place stay in their order."""
    _, by_column = _sorting(column, n_columns)
    indptr, by_row = _sorting(row[by_column], n_rows)
    order = by_column[by_row]
    indices = column[order].astype(np.int32 if n_columns < 2**31 else np.int64)
    return Rows(indptr, indices, values[order], np.zeros(0) if weights is None else weights[order])


def summed(rows, amounts):
    """Add up the amounts of entries at the same place, which follow each other; return rows of the sums, without weights."""
    if len(rows.indices) == 0:
        return rows._replace(values=amounts, weights=np.zeros(0))
    row = np.repeat(np.arange(len(rows.indptr) - 1), np.diff(rows.indptr))
    first = np.flatnonzero(np.concatenate([[True], (np.diff(rows.indices) != 0) | (np.diff(row) != 0)]))
    indptr = np.searchsorted(first, rows.indptr)
    return Rows(indptr, rows.indices[first], np.add.reduceat(amounts, first), np.zeros(0))


def cuts(indptr, n_shards=None):
    """Cut rows into shards of about as much work each; how many follows from the entries unless it is given."""
    work = np.asarray(indptr[1:]) + ROW * np.arange(1, len(indptr))
    n_shards = n_shards or max(1, -(-int(work[-1]) // SHARD))
    inner = np.searchsorted(work, np.arange(1, n_shards) * (work[-1] / n_shards))
    return np.unique(np.concatenate([[0], inner, [len(indptr) - 1]]))


class RatingBlocks(Blocks):
    """Rows of ratings in memory; a shard is (number of its first row, indptr, indices, values, weights)."""

    def __init__(self, rows, n_columns):
        self.rows, self.n_rows, self.n_columns = rows, len(rows.indptr) - 1, n_columns
        self.columns, self.dtype = None, np.dtype(float)
        self.cuts = cuts(rows.indptr)

    @property
    def n_blocks(self):
        """Number of shards."""
        return len(self.cuts) - 1

    def whole(self):
        """Return all rows."""
        return self.rows

    def changed(self, function):
        """Give function(rows) in place of the rows."""
        return RatingBlocks(function(self.rows), self.n_columns)

    def _tasks(self):
        for i in range(self.n_blocks):
            yield i, partial(self._load, i)

    def _load(self, i):
        start, stop = self.cuts[i], self.cuts[i + 1]
        first, last = self.rows.indptr[start], self.rows.indptr[stop]
        indptr = self.rows.indptr[start : stop + 1] - first
        weights = self.rows.weights[first:last] if len(self.rows.weights) else self.rows.weights
        return int(start), indptr, self.rows.indices[first:last], self.rows.values[first:last], weights

    def _n_threads(self):
        return min(super()._n_threads(), self.n_blocks)


class RatingShards(DaskBlocks):
    """Rows of ratings that live with Dask's workers; `map` gives arrays at once, since factors are needed everywhere."""

    def __init__(self, shards, lengths, n_columns):
        self.blocks, self.lengths = shards, lengths
        self.n_rows, self.n_columns = sum(lengths), n_columns
        self.columns, self.dtype = None, np.dtype(float)

    def map(self, kernel, *params):
        """Collect row-wise results in row order."""
        import dask

        task, shared = dask.delayed(_apply), dask.delayed(params)
        with serial_blas():
            parts = dask.compute(*(task(kernel, block, shared) for block in self.blocks))
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    def whole(self):
        """Bring all rows here."""
        import dask

        parts = dask.compute(*self.blocks)
        starts = np.cumsum([0, *(len(part[2]) for part in parts)])
        indptr = np.concatenate([[0], *(part[1][1:] + start for part, start in zip(parts, starts[:-1], strict=True))])
        return Rows(indptr, *(np.concatenate([part[k] for part in parts]) for k in (2, 3, 4)))

    def changed(self, function):
        """Give function(rows) in place of the rows, on the workers."""
        import dask

        change = dask.delayed(_changed)
        return RatingShards(list(dask.persist(*(change(b, function) for b in self.blocks))), self.lengths, self.n_columns)


def _apply(kernel, block, params):
    with serial_blas():
        return kernel(*block, *params)


def _changed(block, function):
    first, *parts = block
    return (first, *function(Rows(*parts)))


def in_memory(ratings):
    """Sort ratings by users and by items."""
    n_users, n_items = len(ratings.users), len(ratings.items)
    users = rows_of(ratings.user, ratings.item, ratings.values, ratings.weights, n_users, n_items)
    user = np.repeat(np.arange(n_users), np.diff(users.indptr))
    items = rows_of(users.indices, user, users.values, users.weights if len(users.weights) else None, n_items, n_users)
    return RatingBlocks(users, n_items), RatingBlocks(items, n_users)


def on_dask(X, y, sample_weight, columns):
    """Read partitions where they are, number users and items, and shuffle; return (ratings without entries, users, items)."""
    import dask

    parts = list(np.ravel(X.to_delayed()))
    beside = [_along(a, len(parts)) for a in (y, sample_weight)]
    triples = dask.persist(*(dask.delayed(_part)(part, *both, columns) for part, *both in zip(parts, *beside, strict=True)))
    found = dask.compute(*(dask.delayed(_ids)(t) for t in triples))
    found = [f for f in found if f is not None]
    if not found:
        raise ValueError("Found no rows; at least one rating of positive weight is needed.")
    users, items = (distinct(np.concatenate([f[k] for f in found]))[0] for k in (0, 1))
    dtype = np.dtype(np.float32 if all(f[2] == np.float32 for f in found) else np.float64)
    sides = []
    for by, own, other in ((0, users, items), (1, items, users)):
        counts = sum(dask.compute(*(dask.delayed(_counts)(t, by, own) for t in triples)))
        edges = cuts(np.concatenate([[0], np.cumsum(counts)]), len(parts))
        split = [dask.delayed(_split, nout=len(edges) - 1)(t, by, users, items, edges) for t in triples]
        merge = dask.delayed(_merge)
        shards = [merge(s, edges, [pieces[s] for pieces in split], len(other)) for s in range(len(edges) - 1)]
        sides.append(RatingShards(list(dask.persist(*shards)), np.diff(edges).tolist(), len(other)))
    return Ratings(users, items, None, None, None, None, dtype), *sides


def _along(values, n):
    """Cut what is beside the rows as the rows are; the name of a column goes along whole."""
    if values is None or isinstance(values, str):
        return [values] * n
    if not hasattr(values, "to_delayed"):
        raise ValueError("With a Dask table, give ratings and weights as the name of a column, or as Dask arrays or series.")
    parts = list(np.ravel(values.to_delayed()))
    if len(parts) != n:
        raise ValueError(f"X has {n} partitions and y or the weights {len(parts)}; repartition alike.")
    return parts


def _part(part, y, sample_weight, columns):
    """Read a partition; an empty one gives None."""
    if len(part) == 0:
        return None
    triples = present(take(part, y, sample_weight, columns=columns))
    return triples if len(triples.users) else None


def _ids(triples):
    return None if triples is None else (distinct(triples.users)[0], distinct(triples.items)[0], triples.dtype)


def _counts(triples, by, known):
    return 0 if triples is None else np.bincount(places(known, triples[by]), minlength=len(known))


def _split(triples: Triples, by, users, items, edges):
    """Cut the ratings of a partition by the shard that they belong to."""
    if triples is None:
        return [None] * (len(edges) - 1)
    numbers = places(users, triples.users), places(items, triples.items)
    row, column = numbers if by == 0 else numbers[::-1]
    shard = np.searchsorted(edges, row, side="right") - 1
    weights = triples.weights
    return [
        (row[here], column[here], triples.values[here], None if weights is None else weights[here])
        for here in (shard == s for s in range(len(edges) - 1))
    ]


def _merge(s, edges, pieces, n_columns):
    """Sort what all partitions have of a shard into rows."""
    pieces = [p for p in pieces if p is not None]
    row, column, values = (np.concatenate([p[k] for p in pieces]) for k in range(3))
    weights = None if pieces[0][3] is None else np.concatenate([p[3] for p in pieces])
    first = int(edges[s])
    return (first, *rows_of(row - first, column, values, weights, int(edges[s + 1]) - first, n_columns))
