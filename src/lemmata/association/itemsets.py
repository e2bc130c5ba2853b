"""Frequent sets as a result: a frame of sets, supports and counts, and what follows from them without counting again."""

from dataclasses import dataclass

import numpy as np

from lemmata.association.baskets import EXACT
from lemmata.association.frame import Frame, SetColumn, row_numbers
from lemmata.association.trie import Trie, items_of, lengths_of, row_of, unfolded
from lemmata.core.kernel import kernel

NO_LIMIT = 1 << 30  # to the items of a set
MISSING = -2  # parent of a set whose prefix is not there
SOME_LEFT_OUT = "These are not all frequent sets in their order: some were left out, if not closed for example."


@dataclass(eq=False, repr=False)
class Itemsets(Frame):
    """Sets of items with the baskets that hold them: a frame of `itemset`, `support` and `count`.

    Sets stand by length, and within a length in the order of the items.

    Attributes
    ----------
    items : Names of the items that occur.
    indptr, indices : Numbers of the items of set i, ascending, in indices[indptr[i]:indptr[i + 1]].
    count : Baskets that hold each set (by weight, if baskets have weights).
    n_baskets : Number of all baskets, by weight.
    max_length : Most items that a set was allowed to have; 2³⁰ for any number.

    Examples
    --------
    >>> from lemmata.association import frequent_itemsets
    >>> found = frequent_itemsets([["tea", "milk"], ["tea", "milk", "jam"], ["tea"]], min_support=0.6)
    >>> found
    Itemsets: 3 rows
      itemset      support  count
      {milk}        0.6667      2
      {tea}              1      3
      {milk, tea}   0.6667      2
    >>> found["itemset"][2] == {"tea", "milk"}, found.to_pandas().columns.tolist()
    (True, ['itemset', 'support', 'count'])
    """

    items: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    count: np.ndarray
    n_baskets: float
    max_length: int = NO_LIMIT

    @property
    def support(self):
        """Share of the baskets that hold each set."""
        return self.count / self.n_baskets

    @property
    def length(self):
        """Number of items of each set."""
        return np.diff(self.indptr)

    def _columns(self):
        return {"itemset": SetColumn(self.items, self.indptr, self.indices), "support": self.support, "count": self.count}

    def take(self, rows):
        """Keep some sets, by their numbers or a mask.

        >>> from lemmata.association import frequent_itemsets
        >>> found = frequent_itemsets([["tea", "milk"], ["tea"]], min_support=0.5)
        >>> found.take(found.length == 2)["itemset"].tolist() == [{"tea", "milk"}]
        True
        """
        rows = row_numbers(rows)
        kept = SetColumn(self.items, self.indptr, self.indices).take(rows)
        return Itemsets(self.items, kept.indptr, kept.indices, self.count[rows], self.n_baskets, self.max_length)

    def trie(self):
        """Give the sets as a trie; if not all frequent sets are there, that is an error."""
        indptr, m = self.indptr, len(self.items)
        fits = indptr[0] == 0 and (np.diff(indptr) > 0).all() and indptr[-1] == len(self.indices) and len(indptr) > m
        fits = fits and len(self.count) == len(indptr) - 1
        parent = parents(indptr, self.indices, m) if fits else np.full(1, MISSING)
        if parent.min(initial=0) == MISSING:
            raise ValueError(SOME_LEFT_OUT)
        return Trie.of(self.indices[indptr[1:] - 1], parent)

    def closed(self):
        """Keep the closed sets: those that lose baskets with every item more. They tell the support of all others.

        >>> from lemmata.association import frequent_itemsets
        >>> frequent_itemsets([["tea", "milk"], ["tea", "milk"], ["jam"]], min_support=0.3).closed()
        Itemsets: 2 rows
          itemset      support  count
          {jam}         0.3333      1
          {milk, tea}   0.6667      2
        """
        return self._uncovered(same_support=True)

    def maximal(self):
        """Keep the maximal sets: those that are frequent with no item more. All others are their subsets.

        >>> from lemmata.association import frequent_itemsets
        >>> found = frequent_itemsets([["tea", "milk"], ["tea"]], min_support=0.5)
        >>> found.maximal()["itemset"].tolist() == [{"tea", "milk"}]
        True
        """
        return self._uncovered(same_support=False)

    def _uncovered(self, same_support):
        marks, complete = covered(self.trie(), self.count, same_support)
        if not complete:
            raise ValueError(SOME_LEFT_OUT)
        return self.take(~marks)


def itemsets_of(names, found, total, whole, max_length):
    """Make the result of what was found: names of all items, the found sets, the number of baskets; whole counts stay whole."""
    indptr = np.concatenate([[0], np.cumsum(lengths_of(found.trie))])
    count = np.rint(found.support).astype(np.int64) if whole and total <= EXACT else found.support
    return Itemsets(names[found.chosen], indptr, unfolded(found.trie, indptr), count, total, max_length)


@kernel
def parents(indptr, indices, m):
    """Find the row of each set without its last item; MISSING where there is none, or where a row is out of order."""
    n, at = len(indptr) - 1, 0
    parent = np.full(n, MISSING)
    for r in range(n):
        end = indptr[r + 1]
        if r < m:
            parent[r] = -1 if end - indptr[r] == 1 and indices[end - 1] == r else MISSING
        elif end - indptr[r] > 1 and indices[end - 2] < indices[end - 1] < m:
            while at < r and not is_prefix(indptr, indices, at, r):
                at += 1
            ascends = parent[r - 1] < at or indices[indptr[r] - 1] < indices[end - 1]
            parent[r] = at if at < r and ascends else MISSING
    return parent


@kernel
def is_prefix(indptr, indices, at, r):
    """Tell whether row `at` is row r without its last item."""
    k = indptr[at + 1] - indptr[at]
    if k + 1 != indptr[r + 1] - indptr[r]:
        return False
    same = True
    for i in range(k):
        same &= indices[indptr[at] + i] == indices[indptr[r] + i]
    return same


@kernel
def covered(trie, count, same_support):
    """Mark the sets with a superset of one item more, of the same support if asked; tell whether all subsets are there."""
    marks, complete = np.zeros(len(trie.last), dtype=np.bool_), True
    for r in range(len(trie.last)):
        own = items_of(trie, r)
        k = len(own)
        rest = own[: k - 1].copy()  # without the last, then the last but one, …
        for left_out in range(k - 1, -1, -1):
            if left_out < k - 1:
                rest[left_out] = own[left_out + 1]
            row = row_of(trie, rest) if k > 1 else np.int64(-1)
            complete &= row >= 0 or k == 1
            if row >= 0 and (not same_support or count[row] == count[r]):
                marks[row] = True
    return marks, complete
