"""Compiling a forest of cliques into flat arrays.

The table of a clique is stored with its residual variables first and its separator last, so that it is a dense matrix of
(residual states) × (separator states): a message to the parent is a sum over rows, with no index at all. The parent's table
meets the separator in another order of variables. There the index is cut into an outer part, for which the place in the
separator is kept, and an inner stretch of one of three kinds:

    INSIDE  the stretch runs along the separator,
    SUMMED  the stretch is summed out,
    MIXED   the place of each entry of the stretch is kept as well.
"""

import numpy as np

from lemmata.core.kernel import kernel

INSIDE, SUMMED, MIXED = 0, 1, 2
LONG_RUN = 9  # entries from which a stretch of one kind is worth a loop of its own
LONG_MAP = 1024  # entries of a mixed stretch at most: its places stay in the fastest cache


@kernel
def reattach(starts, members, n_residual, parent, sizes, n):
    """Hang each clique on the smallest later one that holds its separator; in place."""
    n_cliques = parent.size
    first = np.zeros(n + 1, dtype=np.int64)
    for k in range(members.size):
        first[members[k] + 1] += 1
    first = np.cumsum(first)
    holders, place = np.empty(members.size, dtype=np.int64), first[:n].copy()
    for c in range(n_cliques):
        for k in range(starts[c], starts[c + 1]):
            holders[place[members[k]]] = c
            place[members[k]] += 1
    hits = np.zeros(n_cliques, dtype=np.int64)
    for c in range(n_cliques):
        a, b = starts[c] + n_residual[c], starts[c + 1]
        if a == b:
            continue
        best = parent[c]
        for k in range(a, b):
            v = members[k]
            for i in range(first[v], first[v + 1]):
                hits[holders[i]] += 1
        rarest = members[a]
        for k in range(a, b):
            if first[members[k] + 1] - first[members[k]] < first[rarest + 1] - first[rarest]:
                rarest = members[k]
        for i in range(first[rarest], first[rarest + 1]):
            d = holders[i]
            if d > c and hits[d] == b - a and sizes[d] < sizes[best]:
                best = d
        parent[c] = best
        for k in range(a, b):
            v = members[k]
            for i in range(first[v], first[v + 1]):
                hits[holders[i]] = 0


@kernel
def clique_sizes(starts, members, n_residual, cards):
    """Return the number of states of the residual variables and of the separator of each clique."""
    n_cliques = n_residual.size
    rows, columns = np.ones(n_cliques, dtype=np.int64), np.ones(n_cliques, dtype=np.int64)
    for c in range(n_cliques):
        for k in range(starts[c], starts[c + 1]):
            if k < starts[c] + n_residual[c]:
                rows[c] *= cards[members[k]]
            else:
                columns[c] *= cards[members[k]]
    return rows, columns


@kernel
def parent_maps(starts, members, n_residual, parent, cards, rows, columns):
    """Say where the entries of the parent's table lie in each separator.

    Returns
    -------
    kind, run : Kind and length of the inner stretch of each clique's map.
    outer_starts, outer : Place in the separator of each stretch.
    inner_starts, inner : Place of each entry within a mixed stretch.
    """
    n_cliques, n = parent.size, cards.size
    kind, run = np.zeros(n_cliques, dtype=np.int64), np.ones(n_cliques, dtype=np.int64)
    outer_starts, inner_starts = np.zeros(n_cliques + 1, dtype=np.int64), np.zeros(n_cliques + 1, dtype=np.int64)
    stride, cut = np.zeros(n, dtype=np.int64), np.zeros(n_cliques, dtype=np.int64)
    for c in range(n_cliques):
        outer_starts[c + 1], inner_starts[c + 1] = outer_starts[c], inner_starts[c]
        p = parent[c]
        if p < 0:
            continue
        step = 1
        for k in range(starts[c + 1] - 1, starts[c] + n_residual[c] - 1, -1):
            stride[members[k]] = step
            step *= cards[members[k]]
        end = starts[p + 1]
        inside, k = 1, end
        while k > starts[p] and stride[members[k - 1]] == inside:
            inside *= cards[members[k - 1]]
            k -= 1
        cut_inside, summed, k = k, 1, end
        while k > starts[p] and stride[members[k - 1]] == 0:
            summed *= cards[members[k - 1]]
            k -= 1
        if max(inside, summed) >= LONG_RUN:
            kind[c] = INSIDE if inside >= summed else SUMMED
            run[c] = max(inside, summed)
            cut[c] = cut_inside if inside >= summed else k
        else:
            kind[c], length, k = MIXED, 1, end
            while k > starts[p] and (length == 1 or length * cards[members[k - 1]] <= LONG_MAP):
                length *= cards[members[k - 1]]
                k -= 1
            run[c], cut[c] = length, k
            inner_starts[c + 1] += length
        outer_starts[c + 1] += rows[p] * columns[p] // run[c]
        for k in range(starts[c] + n_residual[c], starts[c + 1]):
            stride[members[k]] = 0
    outer = np.empty(outer_starts[n_cliques], dtype=np.int32)
    inner = np.empty(inner_starts[n_cliques], dtype=np.int32)
    digits = np.zeros(n, dtype=np.int64)
    for c in range(n_cliques):
        p = parent[c]
        if p < 0:
            continue
        step = 1
        for k in range(starts[c + 1] - 1, starts[c] + n_residual[c] - 1, -1):
            stride[members[k]] = step
            step *= cards[members[k]]
        count(members[starts[p] : cut[c]], cards, stride, digits, outer[outer_starts[c] : outer_starts[c + 1]])
        if kind[c] == MIXED:
            count(members[cut[c] : starts[p + 1]], cards, stride, digits, inner[inner_starts[c] : inner_starts[c + 1]])
        for k in range(starts[c] + n_residual[c], starts[c + 1]):
            stride[members[k]] = 0
    return kind, run, outer_starts, outer, inner_starts, inner


@kernel
def advance(variables, cards, stride, digits, place):
    """Go to the next state of variables, the last one fastest, and to its place: Σ digit × stride."""
    for k in range(variables.size - 1, -1, -1):
        v = variables[k]
        digits[v] += 1
        place += stride[v]
        if digits[v] < cards[v]:
            break
        digits[v] = 0
        place -= stride[v] * cards[v]
    return place


@kernel
def count(variables, cards, stride, digits, out):
    """Write the places of all states of variables."""
    place = 0
    for i in range(out.size):
        out[i] = place
        place = advance(variables, cards, stride, digits, place)


@kernel
def homes(starts, members, n_residual, cards, n):
    """Return the clique in which each variable is residual, and the entries of its table from one state to the next."""
    home, stride = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for c in range(n_residual.size):
        step = 1
        for k in range(starts[c + 1] - 1, starts[c] - 1, -1):
            v = members[k]
            if k < starts[c] + n_residual[c]:
                home[v], stride[v] = c, step
            step *= cards[v]
    return home, stride


@kernel
def factor_cliques(scope_starts, scopes, position, home):
    """Return, for each factor, the clique in which the variable of its scope that is eliminated first is residual."""
    where = np.zeros(scope_starts.size - 1, dtype=np.int64)
    for m in range(where.size):
        first = -1
        for k in range(scope_starts[m], scope_starts[m + 1]):
            if first < 0 or position[scopes[k]] < position[first]:
                first = scopes[k]
        where[m] = home[first] if first >= 0 else -1
    return where


@kernel
def factor_strides(cards, scopes, stride):
    """Write the step of each variable of a scope, whose table is in C order, into stride."""
    step = 1
    for k in range(scopes.size - 1, -1, -1):
        stride[scopes[k]] = step
        step *= cards[scopes[k]]


@kernel
def fill_tables(cards, scope_starts, scopes, table_starts, tables, logs, where, starts, members, offset, out):
    """Fill the tables of all cliques with the products of their factors, or with the sums of their logarithms."""
    n_cliques = starts.size - 1
    stride, digits = np.zeros(cards.size, dtype=np.int64), np.zeros(cards.size, dtype=np.int64)
    fresh = np.ones(n_cliques, dtype=np.bool_)
    for m in range(where.size):
        c = where[m]
        if c < 0:
            continue
        factor_strides(cards, scopes[scope_starts[m] : scope_starts[m + 1]], stride)
        values = tables[table_starts[m] : table_starts[m + 1]]
        table = out[offset[c] : offset[c + 1]]
        outer, last = members[starts[c] : starts[c + 1] - 1], members[starts[c + 1] - 1]
        size, step, place, e = cards[last], stride[last], 0, 0
        while e < table.size:
            if fresh[c]:
                for k in range(size):
                    table[e + k] = values[place + k * step]
            elif logs:
                for k in range(size):
                    table[e + k] += values[place + k * step]
            elif step == 0:
                w = values[place]
                for k in range(size):
                    table[e + k] *= w
            else:
                for k in range(size):
                    table[e + k] *= values[place + k * step]
            e += size
            place = advance(outer, cards, stride, digits, place)
        fresh[c] = False
        for k in range(scope_starts[m], scope_starts[m + 1]):
            stride[scopes[k]] = 0
    for c in range(n_cliques):
        if fresh[c]:
            out[offset[c] : offset[c + 1]] = 0.0 if logs else 1.0


@kernel
def add_factor_marginals(cards, scope_starts, scopes, table_starts, where, starts, members, offset, beliefs, weight, out):
    """Add, for each factor, weight times the marginal of its clique's beliefs to its place in out."""
    stride, digits = np.zeros(cards.size, dtype=np.int64), np.zeros(cards.size, dtype=np.int64)
    for m in range(where.size):
        c = where[m]
        if c < 0:
            out[table_starts[m]] += weight
            continue
        factor_strides(cards, scopes[scope_starts[m] : scope_starts[m + 1]], stride)
        sums = out[table_starts[m] : table_starts[m + 1]]
        table = beliefs[offset[c] : offset[c + 1]]
        outer, last = members[starts[c] : starts[c + 1] - 1], members[starts[c + 1] - 1]
        size, step, place, e = cards[last], stride[last], 0, 0
        while e < table.size:
            for k in range(size):
                sums[place + k * step] += weight * table[e + k]
            e += size
            place = advance(outer, cards, stride, digits, place)
        for k in range(scope_starts[m], scope_starts[m + 1]):
            stride[scopes[k]] = 0


@kernel
def extent(values):
    """Return the largest and the smallest positive value; 0 and infinity if there is none."""
    peak, least = 0.0, np.inf
    for j in range(values.size):
        if values[j] > peak:
            peak = values[j]
        if 0.0 < values[j] < least:
            least = values[j]
    return peak, least


@kernel
def strains(offset, base):
    """Return, for each clique, the logarithm of how far its positive values are from 1, above and below."""
    out = np.zeros(offset.size - 1)
    for c in range(out.size):
        peak, least = extent(base[offset[c] : offset[c + 1]])
        if peak > 0.0:
            out[c] = max(np.log(peak), 0.0) + max(-np.log(least), 0.0)
    return out
