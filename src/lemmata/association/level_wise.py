"""Frequent sets level by level: Apriori.

A set is frequent only if each of its subsets is (its support is at most theirs), so the candidates of length k + 1 are the
unions of two frequent sets of length k that differ in their last item only, less those with a subset that is not frequent.
Each candidate is counted once, by ANDs of bits. The candidates that turn out not to be frequent are the negative border: that
all of them were counted is what proves that nothing is missing.

Agrawal & Srikant, VLDB (1994). Mannila & Toivonen, Data Min. Knowl. Discov. 1 (1997).
"""

import numpy as np

from lemmata.association.bitsets import intersect, total
from lemmata.association.trie import extension, items_of, row_of
from lemmata.core.kernel import kernel


@kernel
def siblings_end(trie, row):
    """Tell where the sets end that share a row's parent."""
    return trie.child[trie.parent[row] + 1] if trie.parent[row] >= 0 else trie.child[0]


@kernel
def candidates(trie, first, last):
    """List the candidates that extend rows first … last − 1: the row, and the item that is added to it.

    Examples
    --------
    >>> from lemmata.association.trie import Trie
    >>> trie = Trie.of(np.array([0, 1, 2, 1, 2]), np.array([-1, -1, -1, 0, 0]))      # {0}, {1}, {2}, {0, 1}, {0, 2}
    >>> candidates(trie, 0, 3)                                                       # all pairs
    (array([0, 0, 1]), array([1, 2, 2], dtype=int32))
    >>> candidates(trie, 3, 5)[0].size                                               # {1, 2} is not frequent
    0
    """
    most = 0
    for a in range(first, last):
        most += siblings_end(trie, a) - a - 1
    rows, items, n = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32), 0
    for a in range(first, last):
        own = items_of(trie, a)
        reduced = np.empty(len(own), dtype=np.int32)
        for b in range(a + 1, siblings_end(trie, a)):
            if all_subsets_found(trie, own, trie.last[b], reduced):
                rows[n], items[n] = a, trie.last[b]
                n += 1
    return rows[:n], items[:n]


@kernel
def all_subsets_found(trie, own, item, reduced):
    """Tell whether a set with one more item keeps a row when any of its items, but for the last two, is left out."""
    k = len(own)
    for left_out in range(k - 1):
        for i in range(k - 1):
            reduced[i] = own[i] if i < left_out else own[i + 1]
        row = row_of(trie, reduced[: k - 1])
        if row < 0 or extension(trie, row, item) < 0:
            return False
    return True


@kernel
def count_level(trie, bits, weight, first, last, minimum):
    """Count the candidates that extend rows first … last − 1; list the row, the item and the support of the frequent ones."""
    rows, items = candidates(trie, first, last)
    support = np.empty(len(rows))
    own = np.empty((2, bits.shape[1]), dtype=np.uint64)  # the baskets of a row, and those that hold another item too
    n = 0
    for c in range(len(rows)):
        if c == 0 or rows[c] != rows[c - 1]:
            members = items_of(trie, rows[c])
            own[0] = bits[members[0]]
            for i in range(1, len(members)):
                intersect(own, 0, bits, members[i], own, 0)
        found = intersect(own, 0, bits, items[c], own, 1)
        if weight.size:
            found = total(own, 1, weight)
        if found >= minimum:
            rows[n], items[n], support[n] = rows[c], items[c], found
            n += 1
    return rows[:n], items[:n], support[:n]
