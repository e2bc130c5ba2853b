"""Kernels of Gibbs sampling on factor graphs: wiring, tables of conditionals, and sweeps over single variables.

A cluster is what is weighed at once: one variable, or the variables that a factor ties together inside a block. Its weights
are the product of its factors ("parts"), a function of the variables around it ("near"):

    w_i(members | near) = Π_{m in parts(i)} f_m(members, near)

Where `near` has few states, all weights are computed beforehand, and a draw is one look at a table. `gibbs_program` has the
names of the arrays.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import fill_uniform


@kernel
def wire(cards, scope_starts, scopes, table_starts, codes, member_starts, members, part_starts, part_factors):
    """Find for every cluster which variables are near, and where in the tables of its parts their states lead.

    A variable with a code ≥ 0 is clamped: it moves the base of a part and is near to nothing.
    """
    n, n_parts = len(member_starts) - 1, len(part_factors)
    sizes = np.ones(n, dtype=np.int64)
    n_shifts = 0
    for i in range(n):
        for e in range(member_starts[i], member_starts[i + 1]):
            sizes[i] *= cards[members[e]]
        n_shifts += sizes[i] * (part_starts[i + 1] - part_starts[i])
    most = 0
    for p in range(n_parts):
        most += scope_starts[part_factors[p] + 1] - scope_starts[part_factors[p]]
    base, out_starts, shift_starts = (
        np.empty(n_parts, np.int64),
        np.zeros(n_parts + 1, np.int64),
        np.zeros(n_parts + 1, np.int64),
    )
    out_variables, out_strides = np.empty(most, np.int64), np.empty(most, np.int64)
    shifts = np.empty(n_shifts, np.int64)
    near_starts, near, near_strides = np.zeros(n + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    configurations = np.ones(n)  # float: may be beyond integers
    place, seen = np.full(len(cards), -1, np.int64), np.full(len(cards), -1, np.int64)
    steps = np.zeros(len(cards), np.int64)  # stride in the table of a part, of each member
    n_out, n_near, at = 0, 0, 0
    for i in range(n):
        first, last = member_starts[i], member_starts[i + 1]
        for e in range(first, last):
            place[members[e]] = i
        for p in range(part_starts[i], part_starts[i + 1]):
            m = part_factors[p]
            base[p] = table_starts[m]
            for e in range(first, last):
                steps[members[e]] = 0
            stride = 1
            for e in range(scope_starts[m + 1] - 1, scope_starts[m] - 1, -1):
                v = scopes[e]
                if place[v] == i:
                    steps[v] = stride
                elif codes[v] >= 0:
                    base[p] += codes[v] * stride
                else:
                    out_variables[n_out], out_strides[n_out] = v, stride
                    n_out += 1
                    if seen[v] != i:
                        seen[v] = i
                        near[n_near] = v
                        n_near += 1
                stride *= cards[v]
            for j in range(sizes[i]):  # the last member turns fastest
                rest, shift = j, 0
                for e in range(last - 1, first - 1, -1):
                    shift += rest % cards[members[e]] * steps[members[e]]
                    rest //= cards[members[e]]
                shifts[at + j] = shift
            at += sizes[i]
            out_starts[p + 1], shift_starts[p + 1] = n_out, at
        stride = 1
        for e in range(near_starts[i], n_near):
            near_strides[e] = stride
            configurations[i] *= cards[near[e]]
            if configurations[i] < 2**62:
                stride *= cards[near[e]]
        near_starts[i + 1] = n_near
    return (
        sizes,
        base,
        out_starts,
        out_variables[:n_out],
        out_strides[:n_out],
        shift_starts,
        shifts,
        near_starts,
        near[:n_near],
        near_strides[:n_near],
        configurations,
    )


@kernel
def weigh(wiring, log_tables, i, x, w):
    """Multiply the parts of a cluster into w, the largest weight being 1; return false if all are zero."""
    n = wiring.sizes[i]
    for j in range(n):
        w[j] = 0.0
    for p in range(wiring.part_starts[i], wiring.part_starts[i + 1]):
        at = wiring.base[p]
        for e in range(wiring.out_starts[p], wiring.out_starts[p + 1]):
            at += x[wiring.out_variables[e]] * wiring.out_strides[e]
        s = wiring.shift_starts[p]
        for j in range(n):
            w[j] += log_tables[at + wiring.shifts[s + j]]
    peak = -np.inf
    for j in range(n):
        peak = max(peak, w[j])
    for j in range(n):
        w[j] = np.exp(w[j] - peak) if peak > -np.inf else 0.0
    return peak > -np.inf


@kernel
def accumulate(w, n, out, at):
    """Write the cumulative probabilities of all states but the last; they reach 1 with the last one that is possible."""
    total, last = 0.0, 0
    for j in range(n):
        total += w[j]
        if w[j] > 0:
            last = j
    s = 0.0
    for j in range(n - 1):
        s += w[j]
        if total == 0:
            out[at + j] = np.nan  # no chain comes here
        else:
            out[at + j] = 1.0 if j >= last else s / total


@kernel
def tabulate(wiring, log_tables, cards, x, cumulative, most, room):
    """Make a table for each cluster with at most `most` rows, equal ones once, while there is room for so many numbers.

    Returns where each table begins (−1: none), the numbers, and whether each cluster has mass for some state around it.
    """
    n = len(wiring.sizes)
    starts, possible = np.full(n, -1, np.int64), np.zeros(n, np.bool_)
    values, used = np.empty(room), 0
    slots = 1
    while slots < 2 * n + 2:
        slots *= 2
    owner = np.full(slots, -1, np.int64)  # open addressing: which cluster's table lies here
    w = np.empty(max(1, wiring.sizes.max()) if n > 0 else 1)
    for i in range(n):
        size = wiring.sizes[i]
        width = size - 1 if cumulative else size
        if wiring.configurations[i] > most or used + wiring.configurations[i] * width > room:
            possible[i] = True  # not known; a chain would find out
            continue
        count = np.int64(wiring.configurations[i])
        hashed = np.int64(width)
        for code in range(count):
            for e in range(wiring.near_starts[i], wiring.near_starts[i + 1]):
                v = wiring.near[e]
                x[v] = code // wiring.near_strides[e] % cards[v]
            if weigh(wiring, log_tables, i, x, w):
                possible[i] = True
            if cumulative:
                accumulate(w, size, values, used + code * width)
            else:
                for j in range(size):
                    values[used + code * width + j] = w[j]
            for j in range(width):  # the products stay below 2⁶³
                value = values[used + code * width + j]
                digits = np.int64(value * 1e9) if value == value else np.int64(2)
                hashed = (hashed * 1_000_003 + digits * 31 + 7) % 2_147_483_647
        length = count * width
        slot = hashed % slots
        while starts[i] < 0:
            other = owner[slot]
            if other < 0:
                owner[slot], starts[i] = i, used
                used += length
            elif wiring.sizes[other] == size and np.int64(wiring.configurations[other]) * width == length:
                equal = True
                for j in range(length):
                    a, b = values[starts[other] + j], values[used + j]
                    if a != b and (a == a or b == b):  # NaN equals NaN here
                        equal = False
                        break
                if equal:
                    starts[i] = starts[other]
            slot = (slot + 1) % slots
    return starts, values[:used].copy(), possible


@kernel
def log_density(scope_starts, scopes, cards, table_starts, log_tables, x):
    """Sum the logarithms of all factors."""
    total = 0.0
    for m in range(len(scope_starts) - 1):
        at = 0
        for e in range(scope_starts[m], scope_starts[m + 1]):
            at = at * cards[scopes[e]] + x[scopes[e]]
        total += log_tables[table_starts[m] + at]
    return total


@kernel
def count_tables(scope_starts, scopes, cards, table_starts, x, counts):
    """Add 1 to the entry of each factor's table that the states x pick: the statistics of a log-linear model."""
    for m in range(len(scope_starts) - 1):
        at = 0
        for e in range(scope_starts[m], scope_starts[m + 1]):
            at = at * cards[scopes[e]] + x[scopes[e]]
        counts[table_starts[m] + at] += 1.0


@kernel
def row_of(wiring, i, x):
    """Find the row of a cluster's table from the states around it."""
    code = 0
    for e in range(wiring.near_starts[i], wiring.near_starts[i + 1]):
        code += x[wiring.near[e]] * wiring.near_strides[e]
    return code


@kernel
def sweep(wiring, tables, log_tables, sites, uniforms, x, w):
    """Draw each of the sites anew given all others, one uniform number each."""
    for t in range(len(sites)):
        i, u = sites[t], uniforms[t]
        at, card = tables.starts[i], wiring.sizes[i]
        if at >= 0 and card == 2:
            x[wiring.members[i]] = u >= tables.values[at + row_of(wiring, i, x)]
            continue
        s = 0
        if at >= 0:
            at += row_of(wiring, i, x) * (card - 1)
            while s < card - 1 and u >= tables.values[at + s]:
                s += 1
        else:
            weigh(wiring, log_tables, i, x, w)
            accumulate(w, card, w, 0)
            while s < card - 1 and u >= w[s]:
                s += 1
        x[wiring.members[i]] = s


@kernel
def run_sites(wiring, tables, log_tables, order, random_scan, state, x, n_sweeps):
    """Sweep so many times over all sites, in the given order or by as many choices at random."""
    uniforms, w = np.empty(len(order)), np.empty(tables.widest)
    sites = order.copy()
    for _ in range(n_sweeps):
        if random_scan:
            fill_uniform(state, uniforms)
            for t in range(len(sites)):
                sites[t] = np.int64(uniforms[t] * len(sites))
        fill_uniform(state, uniforms)
        sweep(wiring, tables, log_tables, sites, uniforms, x, w)


@kernel
def record_sites(wiring, tables, log_tables, order, random_scan, state, x, thin, out, logs, graph):
    """Keep the states and the logarithm of the density after every `thin` sweeps."""
    scope_starts, scopes, cards, table_starts = graph
    for d in range(len(out)):
        run_sites(wiring, tables, log_tables, order, random_scan, state, x, thin)
        out[d] = x
        logs[d] = log_density(scope_starts, scopes, cards, table_starts, log_tables, x)


@kernel
def site_law(wiring, tables, log_tables, i, x, out):
    """Write the probabilities of the states of a site given all others, from what a sweep would read."""
    at, card = tables.starts[i], wiring.sizes[i]
    if at >= 0:
        at += row_of(wiring, i, x) * (card - 1)
        for s in range(card - 1):
            out[s] = tables.values[at + s]
    else:
        weigh(wiring, log_tables, i, x, out)
        accumulate(out, card, out, 0)
    out[card - 1] = 1.0
    for s in range(card - 1, 0, -1):
        out[s] -= out[s - 1]


@kernel
def add_conditionals(wiring, tables, log_tables, x, sums):
    """Add the conditionals of all sites at the states x, one site after the other."""
    w, at = np.empty(tables.widest), 0
    for i in range(len(wiring.sizes)):
        site_law(wiring, tables, log_tables, i, x, w)
        for s in range(wiring.sizes[i]):
            sums[at + s] += w[s]
        at += wiring.sizes[i]


@kernel
def average_sites(wiring, tables, log_tables, order, random_scan, state, x, n_sweeps, sums):
    """Add the conditionals after each of so many sweeps."""
    for _ in range(n_sweeps):
        run_sites(wiring, tables, log_tables, order, random_scan, state, x, 1)
        add_conditionals(wiring, tables, log_tables, x, sums)
