"""Kernels of block Gibbs sampling: sums from the leaves of trees to their roots, and draws on the way back.

    β(v, x_v) = w_v(x_v) Π_{links below v} Σ_{children} w_link(x_v, children) Π β(children),        β = w at a leaf

A tree has nodes (variables) and links (factors that tie a parent to its children, given what is outside of the block). The
root is drawn from β, and then the children of each link from w_link(x_parent, ·) Π β. `block_gibbs` has the names of the
arrays; clusters 0, 1, … of the wiring are the nodes, and those behind them the links.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.graphical.gibbs_kernels import add_conditionals, log_density, weigh

FAR = 1e30  # messages beyond this are scaled back; any bound far within the range of floats would do


@kernel
def load(wiring, tables, log_tables, first, last, x, out, places):
    """Write the weights of clusters first to last at their places."""
    sizes, starts, values = wiring.sizes, tables.starts, tables.values
    near_starts, near, strides = wiring.near_starts, wiring.near, wiring.near_strides
    for i in range(first, last):
        n, start, at = sizes[i], starts[i], places[i]
        if start < 0:
            weigh(wiring, log_tables, i, x, out[at : at + n])
            continue
        row = 0
        for e in range(near_starts[i], near_starts[i + 1]):
            row += x[near[e]] * strides[e]
        start += row * n
        if n == 2:  # a loop of two or four rounds takes longer to set up than to run
            out[at], out[at + 1] = values[start], values[start + 1]
            continue
        if n == 4:
            out[at], out[at + 1] = values[start], values[start + 1]
            out[at + 2], out[at + 3] = values[start + 2], values[start + 3]
            continue
        for j in range(n):
            out[at + j] = values[start + j]


@kernel
def filter_back(wiring, tables, log_tables, trees, b, x, room, w):
    """Sum each tree of a block from its leaves to its root.

    The room of a node becomes β, the sum over everything below it, and that of a link the weights of its parent and its
    children together, all below them summed; β = 1 below a leaf. A message out of range is scaled, which no draw notices.
    """
    load(wiring, tables, log_tables, trees.node_starts[b], trees.node_starts[b + 1], x, room, trees.places)
    load(wiring, tables, log_tables, trees.link_starts[b], trees.link_starts[b + 1], x, room, trees.places)
    sizes, places, parents = wiring.sizes, trees.places, trees.parents
    child_starts, children = trees.child_starts, trees.children
    for k in range(trees.link_starts[b + 1] - 1, trees.link_starts[b] - 1, -1):
        at, parent = places[k], parents[k]
        card, up = sizes[parent], places[parent]
        width = trees.widths[k]
        first, last = child_starts[k], child_starts[k + 1]
        peak = 0.0
        if last - first == 1 and card == 2 and width == 2:  # likewise
            down = places[children[first]]
            zero, one = room[down], room[down + 1]
            room[at], room[at + 1] = room[at] * zero, room[at + 1] * one
            room[at + 2], room[at + 3] = room[at + 2] * zero, room[at + 3] * one
            room[up] *= room[at] + room[at + 1]
            room[up + 1] *= room[at + 2] + room[at + 3]
            peak = max(room[up], room[up + 1])
        else:
            w[0], have = 1.0, 1
            for e in range(last - 1, first - 1, -1):
                down = places[children[e]]
                for s in range(sizes[children[e]] - 1, -1, -1):  # downwards, since w[:have] is read until the end
                    for j in range(have):
                        w[s * have + j] = room[down + s] * w[j]
                have *= sizes[children[e]]
            for s in range(card):
                total = 0.0
                for j in range(width):
                    room[at + s * width + j] *= w[j]
                    total += room[at + s * width + j]
                room[up + s] *= total
                peak = max(peak, room[up + s])
        if peak > FAR or peak < 1.0 / FAR:
            for s in range(card):
                room[up + s] = room[up + s] / peak if peak > 0 else 0.0


@kernel
def pick(weights, at, n, u):
    """Draw one of n states by weights that need not sum to one; −1 if there is no mass."""
    if n == 2:  # without a branch that nobody could predict
        a, b = weights[at], weights[at + 1]
        return np.int64((u * (a + b) >= a) & (b > 0)) if a + b > 0 else -1
    total = 0.0
    for j in range(n):
        total += weights[at + j]
    if not total > 0:
        return -1
    total *= u
    s, chosen = 0.0, -1
    for j in range(n):
        if weights[at + j] > 0:
            chosen = j
            s += weights[at + j]
            if total < s:
                break
    return chosen


@kernel
def draw_block(wiring, tables, log_tables, trees, b, state, x, room, w):
    """Draw all variables of a block at once; return false if they have no mass."""
    filter_back(wiring, tables, log_tables, trees, b, x, room, w)
    sizes, places, parents, variables = wiring.sizes, trees.places, trees.parents, trees.variables
    child_starts, children = trees.child_starts, trees.children
    for e in range(trees.root_starts[b], trees.root_starts[b + 1]):
        r = trees.roots[e]
        s = pick(room, places[r], sizes[r], next_uniform(state))
        if s < 0:
            return False
        x[variables[r]] = s
    for k in range(trees.link_starts[b], trees.link_starts[b + 1]):
        parent = parents[k]
        width = trees.widths[k]
        s = pick(room, places[k] + x[variables[parent]] * width, width, next_uniform(state))
        if s < 0:
            return False
        for e in range(child_starts[k + 1] - 1, child_starts[k], -1):
            c = children[e]
            x[variables[c]] = s % sizes[c]
            s //= sizes[c]
        x[variables[children[child_starts[k]]]] = s
    return True


@kernel
def block_chance(wiring, tables, log_tables, trees, b, x, room, w):
    """Give the chance that `draw_block` draws the states that the block has in x."""
    filter_back(wiring, tables, log_tables, trees, b, x, room, w)
    sizes, places, chance = wiring.sizes, trees.places, 1.0
    for e in range(trees.root_starts[b], trees.root_starts[b + 1]):
        r = trees.roots[e]
        at = places[r]
        chance *= room[at + x[trees.variables[r]]] / room[at : at + sizes[r]].sum()
    for k in range(trees.link_starts[b], trees.link_starts[b + 1]):
        parent = trees.parents[k]
        width = trees.widths[k]
        at, s = places[k] + x[trees.variables[parent]] * width, 0
        for e in range(trees.child_starts[k], trees.child_starts[k + 1]):
            c = trees.children[e]
            s = s * sizes[c] + x[trees.variables[c]]
        chance *= room[at + s] / room[at : at + width].sum()
    return chance


@kernel
def run_blocks(wiring, tables, log_tables, trees, random_scan, state, x, n_sweeps):
    """Sweep so many times over all blocks, in their order or by as many choices at random; false if one has no mass."""
    room, w = np.empty(trees.places[-1]), np.empty(tables.widest)
    n = len(trees.node_starts) - 1
    for _ in range(n_sweeps):
        for t in range(n):
            b = np.int64(next_uniform(state) * n) if random_scan else t
            if not draw_block(wiring, tables, log_tables, trees, b, state, x, room, w):
                return False
    return True


@kernel
def record_blocks(wiring, tables, log_tables, trees, random_scan, state, x, thin, out, logs, graph):
    """Keep the states and the logarithm of the density after every `thin` sweeps."""
    scope_starts, scopes, cards, table_starts = graph
    for d in range(len(out)):
        if not run_blocks(wiring, tables, log_tables, trees, random_scan, state, x, thin):
            return False
        out[d] = x
        logs[d] = log_density(scope_starts, scopes, cards, table_starts, log_tables, x)
    return True


@kernel
def average_blocks(wiring, tables, log_tables, trees, random_scan, state, x, n_sweeps, site_wiring, site_tables, sums):
    """Add the conditionals of single variables after each of so many sweeps over blocks."""
    for _ in range(n_sweeps):
        if not run_blocks(wiring, tables, log_tables, trees, random_scan, state, x, 1):
            return False
        add_conditionals(site_wiring, site_tables, log_tables, x, sums)
    return True
