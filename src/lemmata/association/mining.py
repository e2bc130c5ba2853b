"""Frequent sets of baskets in memory: which algorithm, on which threads, within which memory."""

import threading
from typing import NamedTuple

import numpy as np

from lemmata.association import depth_first
from lemmata.association.baskets import is_whole, slots
from lemmata.association.bitsets import n_words
from lemmata.association.itemsets import NO_LIMIT
from lemmata.association.level_wise import count_level
from lemmata.association.trie import Trie, in_order
from lemmata.core.fits import fit_all
from lemmata.core.kernel import kernel

DENSE = 1 / 32  # share of entries from which whole rows of bits are less to read than the baskets of an item
SET_BYTES = 80  # that a set takes while sets are found and brought into order
SHARE = 1 << 14  # candidates of a task: some milliseconds of work


class Found(NamedTuple):
    """Frequent sets: numbers of the items that are frequent by themselves, the trie of all sets, and their supports."""

    chosen: np.ndarray
    trie: Trie
    support: np.ndarray


class TooManySets(MemoryError):
    """More sets are frequent than there is room for."""


class Room:
    """Room that tasks share: each takes what it needs, and whoever finds too little raises the error that was given."""

    def __init__(self, most, error=TooManySets):
        self.left, self.error, self.gate = most, error, threading.Lock()

    def take(self, n):
        """Take room for n more."""
        with self.gate:
            self.left -= n
            if self.left < 0:
                raise self.error


def frequent_or_told(baskets, minimum, strict=False, *, memory, **options):
    """Find all sets of at least this support or, if there are too many, say for which support there is room.

    >>> from lemmata.association.baskets import of_lists
    >>> frequent_or_told(of_lists([range(9), range(9), range(2)]), 2, memory=80 * 100)
    Traceback (most recent call last):
      ...
    lemmata.association.mining.TooManySets: More than 100 sets are in at least 2 of 3 baskets, which is all that memory_limit
    has room for. min_support=3 has room (3 sets); or set max_length, or raise memory_limit.
    """
    try:
        return frequent(baskets, minimum, memory=memory, **options)
    except TooManySets as error:
        told = (
            str(error)
            or f"More than {memory // SET_BYTES:,} sets are in {'more than' if strict else 'at least'} {minimum:,.6g} of "
            f"{baskets.total:,.6g} baskets"
        )
    support, n = with_room(baskets, minimum, memory, **options)
    if strict and isinstance(support, int):
        support -= 1  # to be in more baskets than this is what was tried
    raise TooManySets(f"{told}, {advice(support, f' ({n:,} sets)')}")


def advice(support, what=""):
    """Say what to do about too many sets: a support for which there is room, if there is one, and of which `what` is known."""
    room = f"min_support={support} has room{what}; or set" if support is not None else "Set"
    return f"which is all that memory_limit has room for. {room} max_length, or raise memory_limit."


def with_room(baskets, minimum, memory, **options):
    """Find a support for which there is room by trying, each time with twice as many baskets; None if there is none.

    A number of baskets if all weights are whole, else a share. Beside it stands how many sets there are.
    """
    largest, whole = baskets.supports().max(), is_whole(baskets.weight)
    while minimum < largest:
        more = np.ceil(max(2 * minimum - 1, np.floor(minimum + 0.5) + 1)) if whole else 2 * minimum
        minimum = min(more, largest)
        try:
            n = len(frequent(baskets, minimum, memory=memory, **options).support)
        except TooManySets:
            continue
        return int(minimum) if whole else minimum / baskets.total, n
    return None, 0


def frequent(baskets, minimum, *, longest=NO_LIMIT, memory=1 << 30, algorithm="auto", verbose=0):
    """Find all sets of at least this support.

    Parameters
    ----------
    baskets : Baskets.
    minimum : Least support, in baskets (by weight).
    longest : Most items of a set.
    memory : Bytes that the sets may take while they are found; more sets than that are an error.
    algorithm : "depth" (vertical, depth first), "levels" (Apriori), or "auto": by levels if only pairs are asked for and the
        table is dense, else depth first.

    Examples
    --------
    >>> from lemmata.association.baskets import of_lists
    >>> found = frequent(of_lists([["a", "b"], ["a", "b", "c"], ["c"]]), 2)
    >>> found.trie.last.tolist(), found.trie.parent.tolist(), found.support          # a, b, c, and a with b
    ([0, 1, 2, 1], [-1, -1, -1, 0], array([2., 2., 2., 2.]))
    """
    support = baskets.supports()
    chosen = np.flatnonzero(support >= minimum)
    singles = support[chosen]
    if longest < 2 or len(chosen) < 2:
        return Found(chosen, *in_order(len(chosen), [], [singles]))
    limits = minimum, min(longest, NO_LIMIT), max(memory // SET_BYTES, 1)
    dense = is_dense(baskets, singles)
    if algorithm == "levels" or (algorithm == "auto" and dense and longest == 2):  # pairs have no depth
        return Found(chosen, *_by_levels(baskets, chosen, singles, limits, memory, verbose))
    order = np.argsort(singles, kind="stable")  # rank of an item: rarest first, so that few baskets are looked at most often
    parts = _by_depth(baskets, chosen[order], limits, verbose, dense)
    return Found(chosen, *_unranked(order, singles, parts))


def is_dense(baskets, singles):
    """Tell whether frequent items fill so much of the table that all rows have a bit for all of them."""
    return singles.sum() > DENSE * len(singles) * baskets.total


def _by_depth(baskets, ranked, limits, verbose, dense):
    """Mine depth first, one task for each first item."""
    m, weight, room, own = len(ranked), baskets.weight, Room(limits[-1] - len(ranked)), threading.local()
    if dense:
        bits = baskets.bits(ranked)

        def mine(j):
            return depth_first.mine_bits(bits, weight, j, *limits)

    else:
        rows = baskets.numbered(slots(len(baskets.items), ranked))
        start, later, ends, weights = transposed(*rows, weight, m)

        def mine(j):
            if not hasattr(own, "pairs"):
                own.pairs, own.slot = np.zeros(m), np.full(m, -1, dtype=np.int32)
            at = slice(start[j], start[j + 1])
            return depth_first.project(later[at], ends[at], rows.indices, weights[at], own.pairs, own.slot, j, *limits)

    def within(j):
        part = mine(j)
        room.take(len(part[1]))
        return part

    return fit_all(within, range(m), ours=True, verbose=verbose, name="items")


def _by_levels(baskets, chosen, singles, limits, memory, verbose):
    """Mine level by level, the rows of a level in shares of about as many candidates."""
    minimum, longest, most = limits
    needed = len(chosen) * n_words(len(baskets)) * 8
    if needed > memory:
        raise TooManySets(f"The bits of {len(chosen)} items take {needed / 2**30:.1f} GiB")
    bits, weight, room = baskets.bits(chosen), baskets.weight, Room(most - len(chosen))
    (trie, support), first, length = in_order(len(chosen), [], [singles]), 0, 1
    while first < len(trie.last) and length < longest:
        cuts = shares(trie, first, len(trie.last))

        def count(i, trie=trie, cuts=cuts):
            part = count_level(trie, bits, weight, cuts[i], cuts[i + 1], minimum)
            room.take(len(part[0]))
            return part

        parts = fit_all(count, range(len(cuts) - 1), ours=True, verbose=verbose, name=f"sets of {length + 1}")
        parents, items, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        first, length = len(trie.last), length + 1
        trie = Trie.of(np.concatenate([trie.last, items]), np.concatenate([trie.parent, parents]))
        support = np.concatenate([support, counts])
    return trie, support


def shares(trie, first, last):
    """Cut rows into shares of about as many candidates.

    >>> shares(Trie.of(np.arange(3), np.full(3, -1)), 0, 3).tolist()
    [0, 3]
    """
    rows = np.arange(first, last)
    siblings = np.where(trie.parent[rows] < 0, trie.child[0], trie.child[trie.parent[rows] + 1]) - rows - 1
    inner = np.searchsorted(np.cumsum(siblings), np.arange(SHARE, siblings.sum(), SHARE)) + first
    return np.unique([first, *inner, last])


@kernel
def transposed(indptr, indices, weight, m):
    """List for each item where in `indices` the baskets that hold it go on and end, and the weights of these baskets."""
    start = np.zeros(m + 1, dtype=np.int64)
    for e in range(len(indices)):
        start[indices[e] + 1] += 1
    for j in range(m):
        start[j + 1] += start[j]
    at = start[:-1].copy()
    later, ends = np.empty(len(indices), dtype=np.int64), np.empty(len(indices), dtype=np.int64)
    own = np.empty(len(indices) if weight.size else 0)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            k = at[indices[e]]
            later[k], ends[k] = e + 1, indptr[i + 1]
            if weight.size:
                own[k] = weight[i]
            at[indices[e]] += 1
    return start, later, ends, own


def _unranked(order, singles, parts):
    """Bring what the tasks found, in ranks, into the order of the trie, in items."""
    m = len(order)
    sizes = np.array([len(found) for _, found in parts])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    nodes = np.concatenate([nodes for nodes, _ in parts])
    support = np.concatenate([found for _, found in parts])
    shift = np.repeat(offsets[:-1], sizes)
    parent = np.where(nodes[:, 0] >= m, nodes[:, 0] + shift, nodes[:, 0])
    lengths, levels, values = node_lengths(parent, m), [], [singles]
    for k in range(2, lengths.max(initial=1) + 1):
        here = np.flatnonzero(lengths == k)
        levels.append(sets_of(parent, nodes[:, 1], order, m, here, k))
        values.append(support[here])
    return in_order(m, levels, values)


@kernel
def node_lengths(parent, m):
    """Count the items of each node."""
    lengths = np.empty(len(parent), dtype=np.int64)
    for i in range(len(parent)):
        lengths[i] = 2 if parent[i] < m else lengths[parent[i] - m] + 1
    return lengths


@kernel
def sets_of(parent, item, order, m, nodes, k):
    """List the items of nodes of k items, ascending."""
    sets = np.empty((len(nodes), k), dtype=np.int32)
    for i in range(len(nodes)):
        node = nodes[i] + m
        for n in range(k):
            x = order[node] if node < m else order[item[node - m]]
            at = n
            while at > 0 and sets[i, at - 1] > x:
                sets[i, at] = sets[i, at - 1]
                at -= 1
            sets[i, at] = x
            if node >= m:
                node = parent[node - m]
    return sets
