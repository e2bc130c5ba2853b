"""What can be checked of frequent sets: every count again, and that no set is missing.

The found sets are complete if and only if no set of their negative border is frequent: a frequent set that is missing has a
smallest subset that is missing, all of whose own subsets were found, so it stands on the border. Counts are made anew by
walking through the baskets with a trie of the found sets and of the border, which shares nothing with the bits that found them.
"""

from dataclasses import dataclass

import numpy as np

from lemmata.association.baskets import Baskets, Rows, is_whole, places_of, united
from lemmata.association.level_wise import all_subsets_found, candidates
from lemmata.association.mining import shares
from lemmata.association.partition import count_block
from lemmata.association.trie import extended, extension, items_of, lengths_of
from lemmata.core.blocks import Blocks
from lemmata.core.certificate import Check
from lemmata.core.kernel import kernel

BORDER = 1 << 22  # sets of the border that are counted; of more, some drawn from a fixed seed
ROWS = 1 << 13  # baskets of a part
RELATIVE = 1e-9  # by which sums of weights in two orders may differ; one basket among a billion, if all count the same


class Parts(Blocks):
    """Baskets in memory, in parts that are counted at the same time."""

    def __init__(self, baskets):
        self.baskets, self.n_rows = baskets, len(baskets)
        self.rows = baskets.rows()

    @property
    def n_blocks(self):
        """Number of parts."""
        return -(-self.n_rows // ROWS)

    def _tasks(self):
        for i in range(self.n_blocks):
            yield i, lambda i=i: (self._part(i * ROWS, min((i + 1) * ROWS, self.n_rows)),)

    def _part(self, first, last):
        indptr, indices = self.rows
        inside = Rows(indptr[first : last + 1] - indptr[first], indices[indptr[first] : indptr[last]])
        return Baskets(self.baskets.items, inside, self.baskets.weight[first:last])


@dataclass(frozen=True)
class Singles:
    """How many baskets there are, of each item how many, whether weights are whole; the sum of two is that of both."""

    items: np.ndarray
    support: np.ndarray
    total: float
    whole: bool

    def __add__(self, other):
        if self.items is other.items:  # of baskets in memory, whose items may have no order
            return Singles(self.items, self.support + other.support, self.total + other.total, self.whole and other.whole)
        items = united(self.items, other.items)
        support = np.zeros(len(items))
        for side in (self, other):
            support[np.searchsorted(items, side.items)] += side.support
        return Singles(items, support, self.total + other.total, self.whole and other.whole)


def singles_block(baskets):
    """Count the items of a part."""
    return Singles(baskets.items, baskets.supports(), baskets.total, is_whole(baskets.weight))


def checks_of(source, names, itemsets, minimum, minimum_of, longest):
    """Check found sets against baskets.

    Parameters
    ----------
    names : Names of the frequent items as the baskets have them.
    minimum, minimum_of : The least support that was used, and the function of the number of baskets, and of whether their
        weights are whole, that gives it.
    """
    parts = Parts(source) if isinstance(source, Baskets) else source
    singles = parts.reduce(singles_block)
    least = minimum_of(singles.total, singles.whole)
    wrong = np.array([itemsets.n_baskets / singles.total, minimum / least]) - 1
    claim = "the number of baskets, and the least support that follows from it"
    baskets = Check("baskets", float(np.abs(wrong).max()), RELATIVE, "proof", claim)
    try:
        trie = itemsets.trie()
    except ValueError:
        return [baskets, Check("sets", np.inf, 0.0, "proof", "the sets are frequent sets in their order, none left out")]
    slot = places_of(names, singles.items)
    known = np.bincount(slot[slot >= 0], minlength=len(names))
    rows, items, all_of_it = border(trie, longest)
    walk, place = extended(trie, rows, items)
    counts = parts.reduce(count_block, names, walk)[place] if len(names) else np.empty(0)
    recounted, beyond = counts[: len(trie.last)], counts[len(trie.last) :]
    unit = 0.5 if itemsets.count.dtype.kind in "iu" else RELATIVE * singles.total
    difference = np.abs(itemsets.count - recounted).max(initial=0.0) if (known == 1).all() else np.inf
    infrequent = float((itemsets.count < least).sum() + missing_subsets(trie))
    missing = float((beyond >= least).sum() + (singles.support[slot < 0] >= least).sum())
    missing = missing if itemsets.max_length == longest else np.inf  # to another length nothing was looked for
    told = "no set is missing: of those next to the found ones none is frequent"
    told_of_some = f"of {BORDER:,} sets next to the found ones, drawn from many more, none is frequent"
    return [
        baskets,
        Check(
            "counts", float(difference), unit, "proof", "every set is in so many baskets, counted again by walking through them"
        ),
        Check("subsets", infrequent, 0.0, "proof", "every set is frequent, and so are all its subsets"),
        Check("border", missing, 0.0, *(("proof", told) if all_of_it else ("evidence", told_of_some))),
    ]


def border(trie, longest):
    """List the negative border beyond single items: rows, items to add, and whether these are all.

    >>> from lemmata.association.trie import Trie
    >>> border(Trie.of(np.array([0, 1, 2, 1]), np.array([-1, -1, -1, 0])), 9)     # {0}, {1}, {2}, {0, 1}
    (array([0, 1]), array([2, 2], dtype=int32), True)
    """
    short = int((lengths_of(trie) < longest).sum())
    cuts = shares(trie, 0, short)
    order = np.arange(len(cuts) - 1)
    rows, items, n = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int32)], 0
    np.random.default_rng(0).shuffle(order)  # so that a part of the border is a fair sample of it
    for i in order:
        if n > BORDER:
            return np.concatenate(rows), np.concatenate(items), False
        more, added = candidates(trie, cuts[i], cuts[i + 1])
        new = are_new(trie, more, added)
        more, added = more[new], added[new]
        rows.append(more)
        items.append(added)
        n += len(more)
    rows, items = np.concatenate(rows), np.concatenate(items)
    order = np.lexsort((items, rows))
    return rows[order], items[order], True


@kernel
def are_new(trie, rows, items):
    """Tell which candidates were not found."""
    new = np.empty(len(rows), dtype=np.bool_)
    for c in range(len(rows)):
        new[c] = extension(trie, rows[c], items[c]) < 0
    return new


@kernel
def missing_subsets(trie):
    """Count the sets with a subset that was not found."""
    n = 0
    for r in range(trie.child[0] if len(trie.last) else 0, len(trie.last)):
        own = items_of(trie, trie.parent[r])
        if not all_subsets_found(trie, own, trie.last[r], np.empty(len(own), dtype=np.int32)):
            n += 1
    return n
