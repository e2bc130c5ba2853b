"""All frequent sets, depth first: every set is extended by its later siblings, whose bits are ANDed with its own.

Items are ranked by ascending support. The sets that begin with item j are one task: the baskets that hold j, and in them the
items after j. On dense tables the bits of the whole table are used; on sparse ones the baskets of j are projected to bits of
their own, so that a row has as many bits as j has baskets (`project`). From there on both are the same (`deepen`).

Found sets are nodes of a trie: a node is a set with one item added to that of its parent. The parents 0 … m − 1 are the single
items; a task numbers its own nodes from m on.

Zaki, IEEE Trans. Knowl. Data Eng. 12 (2000).
"""

import numpy as np

from lemmata.association.bitsets import _1, intersect, total
from lemmata.core.kernel import kernel
from lemmata.core.prefetch import prefetch

AHEAD = 16  # baskets whose items are asked for before their turn: they stand anywhere in memory


@kernel
def mine_bits(bits, weight, j, minimum, longest, room):
    """Find the sets of two items and more whose first item is j, from the bits of the whole table.

    Parameters
    ----------
    weight : Weights of the baskets; none for equal ones.
    minimum : Least support.
    longest : Most items of a set, at least 2.
    room : Most sets to keep; that more were found is told by one more.

    Returns
    -------
    nodes, found : Parent and item of each set, and its support.
    """
    m, width = bits.shape
    nodes, found, n = np.empty((m - j, 2), dtype=np.int32), np.empty(m - j), 0
    arena = np.empty((2 * (m - j), width), dtype=np.uint64)
    who, node = np.empty(2 * (m - j), dtype=np.int32), np.empty(2 * (m - j), dtype=np.int32)
    top = 0
    for k in range(j + 1, m):
        support = intersect(bits, j, bits, k, arena, top)
        if weight.size:
            support = total(arena, top, weight)
        if support >= minimum:
            nodes[n, 0], nodes[n, 1], found[n] = j, k, support
            who[top], node[top] = k, n
            n, top = n + 1, top + 1
    return deepen(nodes, found, n, arena, who, node, top, weight, m, minimum, longest, room)


@kernel
def project(later, ends, ranks, own, pairs, slot, j, minimum, longest, room):
    """Find the sets of two items and more whose first item is j, from the baskets of j.

    Parameters
    ----------
    later, ends : Where in `ranks` the items after j begin, and where those of the basket end, for each basket that holds j.
    ranks : Items of all baskets, ascending within each.
    own : Weights of these baskets; none for equal ones.
    pairs, slot : One entry an item, 0 and −1 throughout; used and left so, for to clear all at every item would be quadratic.
    """
    m, n_met, n_entries = len(pairs), 0, 0
    for q in range(len(later)):
        n_entries += ends[q] - later[q]
    met = np.empty(min(m, n_entries), dtype=np.int32)
    for q in range(len(later)):
        w = own[q] if own.size else 1.0
        prefetch(ranks, np.uint64(later[min(q + AHEAD, len(later) - 1)]))
        for f in range(later[q], ends[q]):
            if pairs[ranks[f]] == 0:
                met[n_met] = ranks[f]
                n_met += 1
            pairs[ranks[f]] += w
    top = 0
    for i in range(n_met):
        if pairs[met[i]] >= minimum:
            met[top], met[i] = met[i], met[top]
            top += 1
    met[:top] = np.sort(met[:top])
    nodes, found = np.empty((top, 2), dtype=np.int32), np.empty(top)
    who, node = np.empty(2 * top, dtype=np.int32), np.empty(2 * top, dtype=np.int32)
    for n in range(top):
        k = met[n]
        nodes[n, 0], nodes[n, 1], found[n] = j, k, pairs[k]
        who[n], node[n], slot[k] = k, n, n
    for i in range(n_met):
        pairs[met[i]] = 0.0
    if top < 2 or longest < 3:
        slot[met[:top]] = -1
        return nodes, found
    arena = np.zeros((2 * top, -(-len(later) // 64)), dtype=np.uint64)
    for q in range(len(later)):
        word, bit = q >> 6, _1 << np.uint64(q & 63)
        prefetch(ranks, np.uint64(later[min(q + AHEAD, len(later) - 1)]))
        for f in range(later[q], ends[q]):
            s = slot[ranks[f]]
            if s >= 0:
                arena[s, word] |= bit
    slot[met[:top]] = -1
    return deepen(nodes, found, top, arena, who, node, top, own, m, minimum, longest, room)


@kernel
def deepen(nodes, found, n, arena, who, node, top, weight, m, minimum, longest, room):
    """Extend pairs to larger sets; the first `top` rows of the arena are the bits of sets that differ in their last item."""
    begin, end, at = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64)
    end[0], depth = top, 0
    while depth >= 0 and n <= room:
        a = at[depth]
        if a == end[depth] or depth + 3 > longest:
            top = begin[depth]
            depth -= 1
            continue
        at[depth] += 1
        base, siblings = top, end[depth] - a - 1
        nodes, found = _with_room(nodes, found, n, siblings)
        if top + siblings > len(arena):
            arena, who, node = _rows(arena, top + siblings), _entries(who, top + siblings), _entries(node, top + siblings)
        for b in range(a + 1, end[depth]):
            support = intersect(arena, a, arena, b, arena, top)
            if weight.size:
                support = total(arena, top, weight)
            if support >= minimum:
                nodes[n, 0], nodes[n, 1], found[n] = m + node[a], who[b], support
                who[top], node[top] = who[b], n
                n, top = n + 1, top + 1
        if top > base:
            depth += 1
            if depth == len(begin):
                begin, end, at = _levels(begin), _levels(end), _levels(at)
            begin[depth], end[depth], at[depth] = base, top, base
    return nodes[:n], found[:n]


@kernel
def _with_room(nodes, found, n, extra):
    """Give nodes and supports with room for some more."""
    if n + extra <= len(nodes):
        return nodes, found
    most = max(2 * len(nodes), n + extra)
    more, longer = np.empty((most, 2), dtype=np.int32), np.empty(most)
    more[:n], longer[:n] = nodes[:n], found[:n]
    return more, longer


@kernel
def _rows(arena, least):
    """Give an arena of at least so many rows."""
    more = np.empty((max(2 * len(arena), least), arena.shape[1]), dtype=np.uint64)
    more[: len(arena)] = arena
    return more


@kernel
def _entries(a, least):
    """Give an array as long as `_rows` makes the arena."""
    more = np.empty(max(2 * len(a), least), dtype=np.int32)
    more[: len(a)] = a
    return more


@kernel
def _levels(a):
    """Give a stack with room for as many levels again."""
    more = np.zeros(2 * len(a), dtype=np.int64)
    more[: len(a)] = a
    return more
