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
    nodes, found, n = np.empty((64, 2), dtype=np.int32), np.empty(64), 0
    arena = np.empty((2 * (m - j), width), dtype=np.uint64)
    who, node = np.empty(2 * (m - j), dtype=np.int32), np.empty(2 * (m - j), dtype=np.int32)
    top = 0
    for k in range(j + 1, m):
        support = intersect(bits[j], bits[k], arena[top])
        if weight.size:
            support = total(arena[top], weight)
        if support >= minimum:
            nodes, found = _with_room(nodes, found, n)
            nodes[n, 0], nodes[n, 1], found[n] = j, k, support
            who[top], node[top] = k, n
            n, top = n + 1, top + 1
    return deepen(nodes, found, n, arena, who, node, top, weight, m, minimum, longest, room)


@kernel
def project(tids, places, indptr, ranks, weight, m, j, minimum, longest, room):
    """Find the sets of two items and more whose first item is j, from the baskets of j.

    Parameters
    ----------
    tids, places : Baskets that hold j, and where in `ranks` they do.
    indptr, ranks : Items of all baskets, ascending within each.
    """
    nodes, found, n = np.empty((64, 2), dtype=np.int32), np.empty(64), 0
    pairs, slot, met, n_met = np.zeros(m), np.full(m, -1, dtype=np.int32), np.empty(m, dtype=np.int32), 0
    for e in range(len(tids)):
        w = weight[tids[e]] if weight.size else 1.0
        for f in range(places[e] + 1, indptr[tids[e] + 1]):
            k = ranks[f]
            if slot[k] == -1:
                slot[k] = -2
                met[n_met] = k
                n_met += 1
            pairs[k] += w
    met, top = np.sort(met[:n_met]), 0
    for k in met:
        if pairs[k] >= minimum:
            slot[k] = top
            top += 1
    who, node = np.empty(2 * top, dtype=np.int32), np.empty(2 * top, dtype=np.int32)
    for k in met:
        if slot[k] >= 0:
            nodes, found = _with_room(nodes, found, n)
            nodes[n, 0], nodes[n, 1], found[n] = j, k, pairs[k]
            who[n], node[n] = k, n
            n += 1
    if top < 2 or longest < 3:
        return nodes[:n], found[:n]
    arena = np.zeros((2 * top, -(-len(tids) // 64)), dtype=np.uint64)
    own = np.empty(len(tids) if weight.size else 0)
    for q in range(len(tids)):
        word, bit = q >> 6, _1 << np.uint64(q & 63)
        if weight.size:
            own[q] = weight[tids[q]]
        for f in range(places[q] + 1, indptr[tids[q] + 1]):
            s = slot[ranks[f]]
            if s >= 0:
                arena[s, word] |= bit
    return deepen(nodes, found, n, arena, who, node, top, own, m, minimum, longest, room)


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
        if top + siblings > len(arena):
            arena, who, node = _rows(arena, top + siblings), _entries(who, top + siblings), _entries(node, top + siblings)
        for b in range(a + 1, end[depth]):
            support = intersect(arena[a], arena[b], arena[top])
            if weight.size:
                support = total(arena[top], weight)
            if support >= minimum:
                nodes, found = _with_room(nodes, found, n)
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
def _with_room(nodes, found, n):
    """Give nodes and supports with room for one more."""
    if n < len(nodes):
        return nodes, found
    more, longer = np.empty((2 * len(nodes), 2), dtype=np.int32), np.empty(2 * len(nodes))
    more[:n], longer[:n] = nodes, found
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
