"""Growing one tree of gradient boosting, best split first, on all threads.

Every leaf that may be split knows its best split and what it gains; the leaf with the largest gain is split next, until there
are enough leaves. Splitting a leaf means to partition its rows, to fill the histogram of the smaller child, to subtract it from
the parent's, which becomes that of the larger one, and to look for the best split of each child.

All threads grow the same tree in step. Each partitions and sums up the rows that are its own (`gradient_histogram`); they meet;
each adds up what all have for a share of the columns, and looks for the best split of these; they meet again, and each sees
for itself which column is the best. So every thread knows the whole tree, nobody waits for orders, and since sums of integers
are exact the tree is the same for any number of threads.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import meet, new_marks
from lemmata.ensemble.gradient_histogram import (
    TILE,
    Codes,
    fill_all,
    fill_histogram,
    histogram_length,
    part,
    part_all,
    quantize,
    shares,
)
from lemmata.ensemble.gradient_splits import (
    HIGH,
    LOW,
    NO_SPLIT,
    best_column,
    fill_table,
    gain_of,
    scan_column,
    where_missing,
)
from lemmata.tree.draw import mix, shuffle
from lemmata.tree.heap import pop, push

MOST_BYTES = 1 << 28  # of histograms that are kept for leaves to come; without, a leaf's are summed up anew
U1, U2 = np.uint64(1), np.uint64(2)


class Nodes(NamedTuple):
    """The nodes of a tree, for each thread one copy: all are alike but for the places of the thread's own rows."""

    first: np.ndarray  # where the rows begin
    last: np.ndarray  # and where they end
    depth: np.ndarray
    slot: np.ndarray  # of its histogram, −1 for none
    total: np.ndarray  # packed sums
    bounds: np.ndarray  # of its value
    key: np.ndarray  # of its draws
    gain: np.ndarray
    column: np.ndarray  # of its split
    where: np.ndarray
    left: np.ndarray  # packed sums of the left child
    table: np.ndarray  # which codes go left
    child: np.ndarray  # the left one, or −1; the right one follows


class Plan(NamedTuple):
    """What threads share while they grow trees on one table.

    Parameters
    ----------
    begins : Where the rows of each thread begin.
    values : Packed derivatives.
    weight_of : Weights as integers.
    units, needs : As in `scan_column`.
    """

    marks: np.ndarray
    begins: np.ndarray
    codes: Codes
    rows: np.ndarray
    values: np.ndarray
    weight_of: np.ndarray
    units: np.ndarray
    needs: np.ndarray
    partial: np.ndarray  # (threads, 2, length), histograms over rows of one thread
    pool: np.ndarray  # (slots + 2, length), the last two for leaves that have no slot
    counts: np.ndarray  # histogram of weights
    found: np.ndarray  # (2, columns, 3), best split of each column for each child
    lefts: np.ndarray  # (2, columns)
    sizes: np.ndarray  # (threads, 2), rows of the children
    nodes: Nodes
    count: np.ndarray  # nodes of the tree
    max_leaves: int
    max_depth: int
    least_rows: int  # of a node that may be split
    n_drawn: int  # columns that a node looks at


def new_plan(codes, weight_of, limits, n_threads):
    """Make what threads share."""
    n, d = codes.by_column.shape[1], codes.by_column.shape[0]
    length = histogram_length(d)
    leaves = int(min(limits.max_leaf_nodes, 2 * n // limits.least_rows + 1, 2.0 ** min(limits.max_depth, 40)))
    most, slots = 2 * leaves - 1, int(min(leaves + 1, max(MOST_BYTES // (8 * length), 2)))
    shape = n_threads, most
    nodes = Nodes(
        *(np.zeros(shape, np.int64) for _ in range(5)), np.zeros((*shape, 2)), np.zeros(shape, np.uint64), np.zeros(shape),
        *(np.zeros(shape, np.int64) for _ in range(3)), np.zeros((*shape, 256), np.uint8), np.zeros(shape, np.int64),
    )  # fmt: skip
    share = limits.max_features
    return Plan(
        new_marks(n_threads), shares(n, n_threads), codes, np.empty((2, n), np.uint32), np.empty(n, np.int64), weight_of,
        np.zeros(3), np.zeros(3), np.empty((n_threads, 2, length), np.int64), np.empty((slots + 2, length), np.int64),
        np.empty(length, np.int64), np.empty((2, d, 3)), np.empty((2, d), np.int64), np.zeros((n_threads, 2), np.int64),
        nodes, np.zeros(1, np.int64), leaves, int(min(limits.max_depth, n)), int(min(np.ceil(limits.least_rows), n + 1)),
        d if share >= 1.0 else max(1, int(share * d)),
    )  # fmt: skip


@kernel
def draw_columns(key, n_drawn, order, drawn):
    """Mark the columns that a node may be split by."""
    if n_drawn == len(drawn):
        drawn[:] = True
        return
    for j in range(len(order)):
        order[j] = j
    shuffle(key, order)
    drawn[:] = False
    for k in range(n_drawn):
        drawn[order[k]] = True


@kernel
def add_up(partial, which, j, hist):
    """Write what all threads have of a column into a histogram."""
    for b in range(256 * j, 256 * j + 256):
        total = partial[0, which, b]
        for t in range(1, partial.shape[0]):
            total += partial[t, which, b]
        hist[b] = total


@kernel
def scan(plan, side, j, hist, total, bounds, counted, room):
    """Look for the best split of a column."""
    codes = plan.codes
    plan.lefts[side, j] = scan_column(
        hist, 256 * j, codes.n_bins[j], codes.is_categorical[j], counted, plan.counts, total, plan.units, plan.needs,
        bounds[0], bounds[1], codes.trends[j], room, plan.found[side, j],
    )  # fmt: skip


@kernel
def sum_over_rows(plan, me, node, values, which, words, tile):
    """Fill a histogram with the values of the rows of a node that are this thread's."""
    nodes = plan.nodes
    if node == 0:
        fill_all(plan.codes, values, me, len(plan.begins) - 1, plan.partial[me, which])
    else:
        a, b, rows = nodes.first[me, node], nodes.last[me, node], plan.rows[nodes.depth[me, node] & 1]
        fill_histogram(plan.codes, rows, a, b, values, plan.partial[me, which], words, tile)


@kernel
def settle(plan, me, node, side, hist, drawn, room, words, tile):
    """Choose the best split of a node from what was found for its columns; count rows where it matters."""
    nodes, codes = plan.nodes, plan.codes
    total, bounds = nodes.total[me, node], nodes.bounds[me, node]
    j, best, unsure = best_column(plan.found[side], drawn)
    if unsure > best:  # one that may have too few rows looks better: count them
        sum_over_rows(plan, me, node, plan.weight_of, 0, words, tile)
        meet(plan.marks, me)
        for k in range(me, len(drawn), len(plan.begins) - 1):
            if drawn[k]:
                add_up(plan.partial, 0, k, plan.counts)
                scan(plan, side, k, hist, total, bounds, True, room)
        meet(plan.marks, me)
        j, best, _ = best_column(plan.found[side], drawn)
    nodes.gain[me, node] = NO_SPLIT if j < 0 else gain_of(best, total, plan.units, bounds[0], bounds[1])
    if nodes.gain[me, node] == NO_SPLIT:
        return
    left = plan.lefts[side, j]
    where = where_missing(np.int64(plan.found[side, j, 1]), hist[256 * j + 255] == 0, left, total)
    nodes.column[me, node], nodes.where[me, node], nodes.left[me, node] = j, where, left
    table = nodes.table[me, node]
    fill_table(hist, 256 * j, codes.n_bins[j], codes.is_categorical[j], where, room.sums[2], room.scores[3], table)


@kernel
def begin_children(plan, me, node, child):
    """Write two children down, with all that follows from the split."""
    nodes, units = plan.nodes, plan.units
    trend, mean = plan.codes.trends[nodes.column[me, node]], 0.0
    for side in range(2):
        new = child + side
        nodes.depth[me, new], nodes.child[me, new], nodes.slot[me, new] = nodes.depth[me, node] + 1, -1, -1
        nodes.gain[me, new] = NO_SPLIT
        nodes.key[me, new] = mix(nodes.key[me, node], U1 if side == 0 else U2)
        left = nodes.left[me, node]
        nodes.total[me, new] = left if side == 0 else nodes.total[me, node] - left
        bounds = nodes.bounds[me, new]
        bounds[0], bounds[1] = nodes.bounds[me, node, 0], nodes.bounds[me, node, 1]
        g, h = (nodes.total[me, new] >> HIGH) * units[0], (nodes.total[me, new] & LOW) * units[1] + units[2]
        mean += 0.5 * min(max(-g / h, bounds[0]), bounds[1])
    if trend != 0:  # the values of both children lie on either side of their mean
        nodes.bounds[me, child + (0 if trend > 0 else 1), 1] = mean
        nodes.bounds[me, child + (1 if trend > 0 else 0), 0] = mean


@kernel
def divide(plan, me, node, child):
    """Partition the rows of a node that are this thread's."""
    nodes = plan.nodes
    a, b, depth = nodes.first[me, node], nodes.last[me, node], nodes.depth[me, node]
    codes, table = plan.codes.by_column[nodes.column[me, node]], nodes.table[me, node]
    out = plan.rows[1 - (depth & 1)]
    if node == 0:
        middle = part_all(codes, table, me, len(plan.begins) - 1, a, b, out)
    else:
        middle = part(codes, table, plan.rows[depth & 1], a, b, out)
    nodes.first[me, child], nodes.last[me, child] = a, middle
    nodes.first[me, child + 1], nodes.last[me, child + 1] = middle, b
    plan.sizes[me, 0], plan.sizes[me, 1] = middle - a, b - middle


@kernel
def enough(plan, side):
    """Tell whether a child has the rows to be split."""
    total = 0
    for t in range(plan.sizes.shape[0]):
        total += plan.sizes[t, side]
    return total >= plan.least_rows


@kernel
def grow(plan, me, g, h, even, turn, seed, room):
    """Grow a tree on derivatives; every thread calls it, with its number and a room of its own.

    Parameters
    ----------
    even, turn : As for `quantize`.
    seed : Key of the root's draws.
    room : See `new_room`.
    """
    nodes, pool, threads, d = plan.nodes, plan.pool, len(plan.begins) - 1, len(plan.codes.n_bins)
    words, tile = np.empty(TILE, np.uint64), np.empty(TILE, np.int64)
    order, drawn = np.empty(d, np.int32), np.empty((2, d), np.bool_)
    heap_keys, heap_nodes, waiting = np.empty(plan.max_leaves), np.empty(plan.max_leaves, np.int64), 0
    n_slots = len(pool) - 2
    free, n_free = np.arange(n_slots)[::-1].copy(), n_slots
    n = len(plan.values)
    a, b = n * me // threads, n * (me + 1) // threads
    quantize(g[a:b], h[a:b], even, 1.0 / plan.units[0], 1.0 / plan.units[1], n, a, turn, plan.values[a:b])
    meet(plan.marks, me)
    nodes.first[me, 0], nodes.last[me, 0] = plan.begins[me], plan.begins[me + 1]
    nodes.depth[me, 0], nodes.child[me, 0], nodes.key[me, 0] = 0, -1, seed
    nodes.bounds[me, 0, 0], nodes.bounds[me, 0, 1] = -np.inf, np.inf
    nodes.gain[me, 0] = NO_SPLIT
    count, leaves = 1, 1
    if n >= plan.least_rows and plan.max_leaves > 1:
        sum_over_rows(plan, me, 0, plan.values, 0, words, tile)
        draw_columns(seed, plan.n_drawn, order, drawn[0])
        n_free -= 1
        slot = nodes.slot[me, 0] = free[n_free]
        meet(plan.marks, me)
        nodes.total[me, 0] = 0
        for t in range(threads):
            for b in range(256):  # every row is in one bin of any column
                nodes.total[me, 0] += plan.partial[t, 0, b]
        for j in range(me, d, threads):
            add_up(plan.partial, 0, j, pool[slot])
            if drawn[0, j]:
                scan(plan, 0, j, pool[slot], nodes.total[me, 0], nodes.bounds[me, 0], False, room)
        meet(plan.marks, me)
        settle(plan, me, 0, 0, pool[slot], drawn[0], room, words, tile)
        if nodes.gain[me, 0] > NO_SPLIT:
            waiting = push(heap_keys, heap_nodes, waiting, -nodes.gain[me, 0], 0)
    while waiting > 0 and leaves < plan.max_leaves:
        _, node, waiting = pop(heap_keys, heap_nodes, waiting)
        child = nodes.child[me, node] = count
        begin_children(plan, me, node, child)
        divide(plan, me, node, child)
        count += 2
        leaves += 1
        kept = nodes.slot[me, node]
        if leaves == plan.max_leaves or nodes.depth[me, child] >= plan.max_depth:
            if kept >= 0:
                free[n_free] = kept
                n_free += 1
            continue
        # the smaller child by Σh, which all threads know already
        small = 0 if 2 * (nodes.left[me, node] & LOW) <= (nodes.total[me, node] & LOW) else 1
        sum_over_rows(plan, me, child + small, plan.values, 0, words, tile)
        if kept < 0:
            sum_over_rows(plan, me, child + 1 - small, plan.values, 1, words, tile)
        for side in range(2):
            draw_columns(nodes.key[me, child + side], plan.n_drawn, order, drawn[side])
        at = n_slots
        if n_free > 0:
            n_free -= 1
            at = nodes.slot[me, child + small] = free[n_free]
        other = n_slots + 1
        if kept >= 0:
            other = nodes.slot[me, child + 1 - small] = kept
        elif n_free > 0:
            n_free -= 1
            other = nodes.slot[me, child + 1 - small] = free[n_free]
        meet(plan.marks, me)
        wants = enough(plan, 0), enough(plan, 1)
        for j in range(me, d, threads):
            add_up(plan.partial, 0, j, pool[at])
            if kept >= 0:
                for b in range(256 * j, 256 * j + 256):
                    pool[other, b] -= pool[at, b]
            else:
                add_up(plan.partial, 1, j, pool[other])
            for side in range(2):
                if drawn[side, j] and wants[side]:
                    new, hist = child + side, pool[at if side == small else other]
                    scan(plan, side, j, hist, nodes.total[me, new], nodes.bounds[me, new], False, room)
        meet(plan.marks, me)
        for side in range(2):
            new, hist = child + side, pool[at if side == small else other]
            if wants[side]:
                settle(plan, me, new, side, hist, drawn[side], room, words, tile)
            if nodes.gain[me, new] > NO_SPLIT:
                waiting = push(heap_keys, heap_nodes, waiting, -nodes.gain[me, new], new)
            elif nodes.slot[me, new] >= 0:
                free[n_free] = nodes.slot[me, new]
                n_free += 1
    plan.count[0] = count
