"""Frequent sets of baskets that do not fit in memory: two passes over parts of them, exact.

If a set is in a share t of all baskets, it is in a share t of at least one part. So the first pass mines each part by itself
with the same share; what any part finds is a candidate, and nothing else can be frequent [1]. Beside the baskets that were
counted a candidate has a bound of those that may have been missed: a part that did not find it holds fewer than its own
minimum. The second pass counts the candidates whose bound reaches the minimum, unless every part has counted them already.

[1] Savasere, Omiecinski & Navathe, VLDB (1995).
"""

import threading
from dataclasses import dataclass

import numpy as np

from lemmata.association.baskets import is_whole, places_of, united
from lemmata.association.mining import SET_BYTES, Found, TooManySets, advice, frequent, with_room
from lemmata.association.trie import Trie, count_sets, lengths_of
from lemmata.core.config import config

ROUNDING = 1e-12  # relative, by which a count may miss a minimum that is a share
SUMS = 1e-9  # the same of sums of weights that are not whole: those of n baskets are off by up to n × 1e-16


@dataclass(frozen=True)
class Candidates:
    """What some parts found; the sum of two is what both found.

    Attributes
    ----------
    names : Items that are frequent by themselves in a part, ascending.
    trie : Sets of them.
    counted, bound : Baskets with each set that were counted, and the most that there can be.
    slack : The most baskets with a set that is not among these.
    total : Number of all baskets (by weight).
    whole : Whether all weights are whole.
    room : Most candidates that there may be.
    """

    names: np.ndarray
    trie: Trie
    counted: np.ndarray
    bound: np.ndarray
    slack: float
    total: float
    whole: bool
    room: int

    def __add__(self, other):
        names = united(self.names, other.names)
        start, last, parent = 0, [], []
        places = [np.searchsorted(names, side.names) for side in (self, other)]  # of items, among all
        rows = [np.empty(len(side.trie.last), dtype=np.int64) for side in (self, other)]
        levels = [np.cumsum(np.bincount(lengths_of(side.trie), minlength=1)) for side in (self, other)]
        for k in range(max(map(len, levels)) - 1):
            keys = []
            for side, place, row, ends in zip((self, other), places, rows, levels, strict=True):
                here = slice(*ends[k : k + 2]) if k + 1 < len(ends) else slice(0, 0)
                above = np.maximum(side.trie.parent[here], -1)
                keys.append((here, (row[above] if k else -1) * len(names) + place[side.trie.last[here]]))
            merged = np.union1d(keys[0][1], keys[1][1])
            for row, (here, key) in zip(rows, keys, strict=True):
                row[here] = start + np.searchsorted(merged, key)
            last.append(merged % len(names))
            parent.append(merged // len(names))
            start += len(merged)
            if start > self.room:
                raise TooManySets
        counted, bound = np.zeros(start), np.zeros(start)
        for side, row in zip((self, other), rows, strict=True):
            counted[row] += side.counted
            bound += side.slack
            bound[row] += side.bound - side.slack
        trie = Trie.of(*(np.concatenate([np.empty(0, dtype=np.int64), *column]) for column in (last, parent)))
        total, whole = self.total + other.total, self.whole and other.whole
        return Candidates(names, trie, counted, bound, self.slack + other.slack, total, whole, self.room)


def mine_block(baskets, share, strict, longest, memory, algorithm):
    """Find the sets that are in a share of the baskets of a part."""
    # the lowest that the weights of all baskets may ask for: these may not be whole, though those of a part are
    least, whole = threshold(share, strict, baskets.total, whole=strict), is_whole(baskets.weight)
    with config(n_threads=1):  # parts have threads already
        try:
            found = frequent(baskets, least, longest=longest, memory=memory, algorithm=algorithm)
        except TooManySets as error:
            support, _ = with_room(baskets, least, memory, longest=longest, algorithm=algorithm)
            error.share = np.inf if support is None else support / baskets.total if whole else support
            raise
    slack = max(np.ceil(least) - 1, 0) if whole else least
    support = found.support
    names, room = baskets.items[found.chosen], memory // SET_BYTES
    return Candidates(names, found.trie, support, support.copy(), float(slack), baskets.total, whole, room)


def count_block(baskets, names, trie):
    """Count the sets of a trie in the baskets of a part."""
    counts = np.zeros(len(trie.last))
    count_sets(trie, *baskets.numbered(places_of(names, baskets.items)), baskets.weight, counts)
    return counts


def total_block(baskets):
    """Count the baskets of a part, by weight."""
    return baskets.total


def threshold(share, strict, total, whole=True):
    """Give the least support: a share of all baskets, or just above it; weights may be whole or not.

    >>> threshold(0.02, False, 20_000.0) <= 400, threshold(0.02, True, 20_000.0) <= 400      # though 0.02 is none in binary
    (True, False)
    """
    rounding = ROUNDING if whole else SUMS
    return share * total * (1 + rounding if strict else 1 - rounding)


def frequent_in_parts(blocks, share, strict, *, longest, memory, algorithm, verbose=0):
    """Find all frequent sets of baskets in parts; return the names of the frequent items, what was found, the candidates."""
    options = strict, longest, memory, algorithm
    try:
        candidates = reduced(blocks, mine_block, share, *options, name="parts mined", verbose=verbose)
    except TooManySets as error:
        told = f"More than {memory // SET_BYTES:,} sets are frequent in parts of the baskets at a support of {share:.3g}"
        room = share_with_room(blocks, share, error, options)
        raise TooManySets(f"{told}, {advice(room)}") from None
    least = threshold(share, strict, candidates.total, candidates.whole)
    possible = candidates.bound >= least
    trie, (counted, bound) = only(candidates.trie, possible), (candidates.counted[possible], candidates.bound[possible])
    names = candidates.names[possible[: len(candidates.names)]]
    needed = with_prefixes(trie, bound > counted)
    if needed.any():
        asked = names[needed[: len(names)]], only(trie, needed)
        counted[needed] = reduced(blocks, count_block, *asked, name="parts counted", verbose=verbose)
    kept = counted >= least
    names = names[kept[: len(names)]]
    return names, Found(np.arange(len(names)), only(trie, kept), counted[kept]), candidates


def share_with_room(blocks, share, error, options):
    """Find a share for which all parts have room, by trying from what the part has that had none; None if there is none."""
    while share < 1 and (least := max(2 * share, getattr(error, "share", 0.0))) < np.inf:
        digits = 10.0 ** (1 - np.floor(np.log10(least)))
        share = float(min(np.ceil(least * digits) / digits, 1.0))
        try:
            blocks.reduce(mine_block, share, *options)
        except TooManySets as next_error:
            error = next_error
        else:
            return share
    return None


def reduced(blocks, kernel, *params, name, verbose):
    """Sum a kernel over parts; a bar counts those that are done, but on Dask, whose dashboard does."""
    if not verbose or blocks.home == "dask":
        return blocks.reduce(kernel, *params)
    from tqdm import tqdm

    with tqdm(desc=name, total=blocks.n_parts) as bar:

        def counted(baskets, *params):
            result = kernel(baskets, *params)
            with gate:
                bar.update()
            return result

        gate = threading.Lock()
        return blocks.reduce(counted, *params)


def with_prefixes(trie, rows):
    """Mark some sets, their items, and all sets on the way to them.

    >>> with_prefixes(Trie.of(np.array([0, 1, 2, 2]), np.array([-1, -1, -1, 0])), np.array([False, False, False, True]))
    array([ True, False,  True,  True])
    """
    marks = rows.copy()
    for _ in range(lengths_of(trie).max(initial=1) - 1):
        above = trie.parent[marks]
        marks[above[above >= 0]] = True
    marks[trie.last[marks]] = True
    return marks


def only(trie, kept):
    """Keep some sets, whose prefixes and items are kept too.

    >>> trie = Trie.of(np.array([0, 1, 2, 2]), np.array([-1, -1, -1, 0]))        # {0}, {1}, {2}, {0, 2}
    >>> [part.tolist() for part in only(trie, np.array([True, False, True, True]))]
    [[0, 1, 1], [-1, -1, 0], [2, 3, 3, 3]]
    """
    n_items = trie.child[0] if len(trie.last) else 0
    row, item = np.cumsum(kept) - 1, np.cumsum(kept[:n_items]) - 1
    parent = trie.parent[kept]
    return Trie.of(item[trie.last[kept]], np.where(parent >= 0, row[parent], -1))
