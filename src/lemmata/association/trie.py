"""Found sets as a trie in their one order: by length, and within a length item by item.

Row r is a set: the set of row `parent[r]` with `last[r]` added, the greatest of its items; the sets of one item are the first
rows, item i in row i. Every prefix of a frequent set is frequent, so it has a row. In this order `parent` ascends, and the sets
that extend row r by one item stand together, in rows `child[r]` to `child[r + 1]`: a set is looked up by one binary search for
each of its items, and the sets inside a basket are visited by walking down.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel

WORD = 1 << 62  # largest key of a set


class Trie(NamedTuple):
    """Sets of items, each prefix among them; see the module.

    Attributes
    ----------
    last, parent : (n,), greatest item of each set, and the row of the set without it (−1 for single items).
    child : (n + 1,), where the extensions of each set begin.
    """

    last: np.ndarray
    parent: np.ndarray
    child: np.ndarray

    @classmethod
    def of(cls, last, parent):
        """Make the trie of rows in their order.

        >>> Trie.of(np.array([0, 1, 1]), np.array([-1, -1, 0])).child     # {0}, {1}, {0, 1}
        array([2, 3, 3, 3])
        """
        child = np.searchsorted(parent, np.arange(len(parent) + 1))
        return cls(last.astype(np.int32), parent.astype(np.int32), child)


def in_order(n_items, levels, values):
    """Bring sets into the order of the trie.

    Parameters
    ----------
    n_items : Number of single items.
    levels : For each length from 2 on, (sets, length), items of each set, ascending.
    values : What belongs to each set (the single items first), listed alike: one array for each length from 1 on.

    Returns
    -------
    trie : Trie.
    values : What belongs to each row.
    """
    last, parent, sorted_values = [np.arange(n_items)], [np.full(n_items, -1)], [values[0]]
    start, above = 0, last[0]  # the first row of the last level, and its sets as numbers in base n_items, ascending
    for sets, value in zip(levels, values[1:], strict=True):
        fits = n_items ** sets.shape[1] < WORD
        if fits:
            keys = sets[:, 0].astype(np.int64)
            for column in sets.T[1:]:
                keys = keys * n_items + column
        else:  # the row of the prefix stands for it
            keys = prefixes(Trie.of(np.concatenate(last), np.concatenate(parent)), sets) * n_items + sets[:, -1]
        order = np.argsort(keys)
        keys = keys[order]
        rows = start + np.searchsorted(above, keys // n_items) if fits else keys // n_items
        start, above = start + len(last[-1]), keys
        last.append(keys % n_items)
        parent.append(rows)
        sorted_values.append(value[order])
    return Trie.of(np.concatenate(last), np.concatenate(parent)), np.concatenate(sorted_values)


@kernel
def prefixes(trie, sets):
    """Look up the rows of sets without their last item."""
    rows = np.empty(len(sets), dtype=np.int64)
    for i in range(len(sets)):
        rows[i] = row_of(trie, sets[i, :-1])
    return rows


@kernel
def row_of(trie, items):
    """Look up the row of a set, its items ascending; −1 if there is none."""
    row = np.int64(items[0])
    for i in range(1, len(items)):
        row = extension(trie, row, items[i])
        if row < 0:
            return row
    return row


@kernel
def extension(trie, row, item):
    """Look up the row of a set with one more item, greater than all it has; −1 if there is none."""
    low, high = trie.child[row], trie.child[row + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if trie.last[middle] < item:
            low = middle + 1
        else:
            high = middle
    if low < end and trie.last[low] == item:
        return np.int64(low)
    return np.int64(-1)


@kernel
def items_of(trie, row):
    """List the items of a row, ascending."""
    n, r = 0, row
    while r >= 0:
        n, r = n + 1, trie.parent[r]
    items, r = np.empty(n, dtype=np.int32), row
    for i in range(n - 1, -1, -1):
        items[i] = trie.last[r]
        r = trie.parent[r]
    return items


@kernel
def unfolded(trie, indptr):
    """List the items of every row, ascending: those of row r in indices[indptr[r]:indptr[r + 1]]."""
    indices = np.empty(indptr[-1], dtype=np.int32)
    for r in range(len(trie.last)):
        end = indptr[r + 1]
        indices[end - 1] = trie.last[r]
        if trie.parent[r] >= 0:
            start = indptr[trie.parent[r]]
            for i in range(end - 1 - indptr[r]):
                indices[indptr[r] + i] = indices[start + i]
    return indices


def lengths_of(trie):
    """Give the number of items of every set.

    >>> lengths_of(Trie.of(np.array([0, 1, 1]), np.array([-1, -1, 0])))
    array([1, 1, 2])
    """
    return _lengths(trie.parent)


@kernel
def _lengths(parent):
    lengths = np.ones(len(parent), dtype=np.int64)
    for r in range(len(parent)):
        if parent[r] >= 0:
            lengths[r] = lengths[parent[r]] + 1
    return lengths


def extended(trie, rows, items):
    """Add sets: rows with one item more. Return the trie, and the new rows of all old sets and then of the added ones.

    >>> trie = Trie.of(np.array([0, 1]), np.array([-1, -1]))                     # {0}, {1}, and now {0, 1}
    >>> trie, rows = extended(trie, np.array([0]), np.array([1]))
    >>> trie.last.tolist(), trie.parent.tolist(), rows.tolist()
    ([0, 1, 1], [-1, -1, 0], [0, 1, 2])
    """
    lengths = lengths_of(trie)
    last, parent = np.concatenate([trie.last, items]), np.concatenate([trie.parent, rows])
    order = np.lexsort((last, parent, np.concatenate([lengths, lengths[rows] + 1])))  # old parents keep their order
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Trie.of(last[order], np.where(parent >= 0, place[parent], -1)[order]), place


@kernel
def sets_inside(trie, indices, first, end, place, found):
    """Walk down the trie with a basket: list the rows of all sets that it holds.

    Of a set's extensions that are few each is looked for in the basket, of many those by the basket's items.

    Parameters
    ----------
    indices, first, end : Items of the basket, ascending, in indices[first:end]; those that are in no set are negative.
    place : (n_items,), −1 throughout; used and left so.
    found : Room for rows, made larger where it does not suffice.

    Returns
    -------
    n, found : Number of sets, and their rows.
    """
    n, last, child = 0, trie.last, trie.child  # a tuple of arrays would be counted atomically at every call
    if end - first > len(found):
        found = np.empty(2 * (end - first), dtype=np.int64)
    for e in range(first, end):
        if indices[e] >= 0:
            place[indices[e]] = e
            found[n] = indices[e]
            n += 1
    at = 0
    while at < n:
        row = found[at]
        at += 1
        low, high, after = child[row], child[row + 1], place[last[row]] + 1
        if low == high:
            continue
        most = n + min(high - low, end - after)
        if most > len(found):
            more = np.empty(2 * most, dtype=np.int64)
            more[:n] = found[:n]
            found = more
        if high - low < end - after:
            for r in range(low, high):
                if place[last[r]] >= 0:
                    found[n] = r
                    n += 1
        else:
            for e in range(after, end):  # both ascend: what was passed is not looked at again
                stop = high
                while low < stop:
                    middle = (low + stop) >> 1
                    if last[middle] < indices[e]:
                        low = middle + 1
                    else:
                        stop = middle
                if low == high:
                    break
                if last[low] == indices[e]:
                    found[n] = low
                    n += 1
    for e in range(first, end):
        if indices[e] >= 0:
            place[indices[e]] = -1
    return n, found


@kernel
def count_sets(trie, indptr, indices, weight, counts):
    """Add to `counts` the baskets that hold each set, or their weights if there are any."""
    place, found = np.full(trie.child[0], -1), np.empty(64, dtype=np.int64)
    for i in range(len(indptr) - 1):
        n, found = sets_inside(trie, indices, indptr[i], indptr[i + 1], place, found)
        w = weight[i] if weight.size else 1.0
        for k in range(n):
            counts[found[k]] += w


@kernel
def mark_sets(trie, indptr, indices, marks):
    """Write a one in row i of `marks` for each set that basket i holds."""
    place, found = np.full(trie.child[0], -1), np.empty(64, dtype=np.int64)
    for i in range(len(indptr) - 1):
        n, found = sets_inside(trie, indices, indptr[i], indptr[i + 1], place, found)
        for k in range(n):
            marks[i, found[k]] = 1
