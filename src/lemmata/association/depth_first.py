"""All frequent sets, depth first: every set is extended by its later siblings, whose bits are ANDed with its own.

Items are ranked by ascending support. The sets that begin with item j are one task: the baskets that hold j, and in them the
items after j. On dense tables their bits are cut out of the bits of the whole table; on sparse ones the baskets of j are
projected to bits of their own, so that a row has as many bits as j has baskets. From there on both are the same (`deepen`).

Found sets are a trie in three arrays: node i is the set of node `parent[i]` with `item[i]` added, and `count[i]` baskets hold
it. Nodes 0 … m − 1 are the single items; a task numbers its own nodes from m on.
"""

import numpy as np

from lemmata.association.bitsets import _1, intersect
from lemmata.core.kernel import kernel


@kernel
def mine_bits(bits, count, first, last, minimum, longest, room):
    """Find the sets whose lowest item is one of first … last − 1, from the bits of the whole table.

    Returns
    -------
    parent, item, count : The nodes, with at least two items each.
    enough : Whether the room (the most nodes to keep) sufficed.
    """
    m, width = bits.shape
    nodes, n = np.empty((256, 3), dtype=np.int32), 0
    arena = np.empty((2 * m, width), dtype=np.uint64)
    who, node = np.empty(2 * m, dtype=np.int32), np.empty(2 * m, dtype=np.int32)
    enough = longest >= 2 or n == 0
    for j in range(first, last if longest >= 2 else first):
        top = 0
        for k in range(j + 1, m):
            found = intersect(bits[j], bits[k], arena[top])
            if found >= minimum:
                nodes = _with_room(nodes, n)
                nodes[n] = j, k, found
                who[top], node[top] = k, n
                n, top = n + 1, top + 1
        nodes, n, arena, who, node, enough = deepen(nodes, n, arena, who, node, top, m, minimum, longest, room)
        if not enough:
            break
    return nodes[:n], enough


@kernel
def mine_rows(tid, place, start, indptr, ranks, m, first, last, minimum, longest, room):
    """Find the sets whose lowest item is one of first … last − 1, from the baskets of each item.

    Parameters
    ----------
    tid, place, start : Baskets of the items, one item after another (those of j from start[j] on), and where in `ranks` each
        of these entries stands.
    indptr, ranks : Items of the baskets, ascending within each.
    """
    nodes, n = np.empty((256, 3), dtype=np.int32), 0
    pairs, slot = np.zeros(m, dtype=np.int32), np.full(m, -1, dtype=np.int32)
    later = np.empty(m, dtype=np.int32)
    who, node = np.empty(64, dtype=np.int32), np.empty(64, dtype=np.int32)
    enough = True
    for j in range(first, last if longest >= 2 else first):
        n_later = 0
        for e in range(start[j], start[j + 1]):
            for f in range(place[e] + 1, indptr[tid[e] + 1]):
                k = ranks[f]
                if pairs[k] == 0:
                    later[n_later] = k
                    n_later += 1
                pairs[k] += 1
        met = np.sort(later[:n_later])
        top = 0
        if 2 * n_later > len(who):
            who, node = np.empty(2 * n_later, dtype=np.int32), np.empty(2 * n_later, dtype=np.int32)
        for k in met:
            if pairs[k] >= minimum:
                nodes = _with_room(nodes, n)
                nodes[n] = j, k, pairs[k]
                who[top], node[top], slot[k] = k, n, top
                n, top = n + 1, top + 1
        if top > 1 and longest > 2:
            arena = np.zeros((2 * top, -(-(start[j + 1] - start[j]) // 64)), dtype=np.uint64)
            for e in range(start[j], start[j + 1]):
                q = e - start[j]
                word, bit = q >> 6, _1 << np.uint64(q & 63)
                for f in range(place[e] + 1, indptr[tid[e] + 1]):
                    s = slot[ranks[f]]
                    if s >= 0:
                        arena[s, word] |= bit
            nodes, n, arena, who, node, enough = deepen(nodes, n, arena, who, node, top, m, minimum, longest, room)
        for k in met:
            pairs[k], slot[k] = 0, -1
        if not enough or n > room:
            return nodes[:n], False
    return nodes[:n], enough


@kernel
def deepen(nodes, n, arena, who, node, top, m, minimum, longest, room):
    """Extend pairs to larger sets; the first `top` rows of the arena are the bits of sets that differ in their last item."""
    begin, end, at = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64)
    end[0], depth = top, 0
    while depth >= 0:
        a = at[depth]
        if n > room:
            return nodes, n, arena, who, node, False
        if a == end[depth] or depth + 3 > longest:
            top = begin[depth]
            depth -= 1
            continue
        at[depth] += 1
        base, siblings = top, end[depth] - a - 1
        if top + siblings > len(arena):
            arena, who, node = _doubled(arena, top + siblings), _longer(who, top + siblings), _longer(node, top + siblings)
        for b in range(a + 1, end[depth]):
            found = intersect(arena[a], arena[b], arena[top])
            if found >= minimum:
                nodes = _with_room(nodes, n)
                nodes[n] = m + node[a], who[b], found
                who[top], node[top] = who[b], n
                n, top = n + 1, top + 1
        if top > base:
            depth += 1
            if depth == len(begin):
                begin, end, at = _deeper(begin), _deeper(end), _deeper(at)
            begin[depth], end[depth], at[depth] = base, top, base
    return nodes, n, arena, who, node, True


@kernel
def _with_room(nodes, n):
    """Give the nodes with room for one more."""
    if n < len(nodes):
        return nodes
    more = np.empty((2 * len(nodes), 3), dtype=np.int32)
    more[:n] = nodes
    return more


@kernel
def _doubled(arena, least):
    """Give an arena of at least so many rows."""
    more = np.empty((max(2 * len(arena), least), arena.shape[1]), dtype=np.uint64)
    more[: len(arena)] = arena
    return more


@kernel
def _longer(a, least):
    """Give an array as long as `_doubled` makes the arena."""
    more = np.empty(max(2 * len(a), least), dtype=np.int32)
    more[: len(a)] = a
    return more


@kernel
def _deeper(a):
    """Give the stack with room for as many levels again."""
    more = np.zeros(2 * len(a), dtype=np.int64)
    more[: len(a)] = a
    return more
