"""Messages on a forest of cliques: sums towards the roots and back, and draws.

Messages follow Hugin's scheme: towards the roots, each divided by its largest value, whose logarithms add up to that of the
partition function; and back, each divided by what was sent before (0/0 is 0). `tree` is the `Program` of a junction tree.
All this is in plain floats. Where their range might not do, a kernel says so by NaN; `tree_logs` has the same in logarithms.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.graphical.tree_layout import INSIDE, SUMMED, extent

STRAIN = 300.0  # e³⁰⁰ twice, for a message and what it is divided by, is within the range of floats


@kernel
def room(tree):
    """Make room for the tables and messages of one query; after the messages there is a number for each clique."""
    return np.empty(tree.base.size), np.empty(tree.places[tree.parent.size] + tree.parent.size)


@kernel
def enter(table, size, step, likelihood, peak):
    """Multiply a table by the likelihood of a variable's states over its peak, `step` entries from one state to the next."""
    for start in range(0, table.size, size * step):
        for k in range(size):
            w = likelihood[k] / peak
            if w == 0.0:
                for e in range(start + k * step, start + (k + 1) * step):
                    table[e] = 0.0
            elif w != 1.0:
                for e in range(start + k * step, start + (k + 1) * step):
                    table[e] *= w


@kernel
def absorb(table, message, kind, run, outer, inner):
    """Multiply the parent's table by a message."""
    if kind == INSIDE:
        for o in range(outer.size):
            a, e = outer[o], o * run
            for k in range(run):
                table[e + k] *= message[a + k]
    elif kind == SUMMED:
        for o in range(outer.size):
            w, e = message[outer[o]], o * run
            for k in range(run):
                table[e + k] *= w
    else:
        for o in range(outer.size):
            a, e = outer[o], o * run
            for k in range(run):
                table[e + k] *= message[a + inner[k]]


@kernel
def marginalize(table, message, kind, run, outer, inner):
    """Sum the parent's table to the separator."""
    message[:] = 0.0
    if kind == INSIDE:
        for o in range(outer.size):
            a, e = outer[o], o * run
            for k in range(run):
                message[a + k] += table[e + k]
    elif kind == SUMMED:
        for o in range(outer.size):
            total, e = 0.0, o * run
            for k in range(run):
                total += table[e + k]
            message[outer[o]] += total
    else:
        for o in range(outer.size):
            a, e = outer[o], o * run
            for k in range(run):
                message[a + inner[k]] += table[e + k]


@kernel
def sum_rows(table, message, rows, columns):
    """Sum a clique's table over its residual states."""
    if columns == 1:
        total = 0.0
        for i in range(rows):
            total += table[i]
        message[0] = total
        return
    message[:] = 0.0
    for i in range(rows):
        for j in range(columns):
            message[j] += table[i * columns + j]


@kernel
def begin(tree, evidence, starts, likelihood, tables, lean):
    """Copy the products of factors and enter evidence.

    Lean, a clique that nothing will be multiplied into, a leaf without evidence, is not copied: its own table is read.

    Returns
    -------
    copied : Which cliques have a copy.
    strain : For each clique, the logarithm of how far apart its values may lie.
    shift : Logarithm of what the likelihoods were divided by.
    """
    copied, strain, shift = tree.has_child.copy(), tree.strain.copy(), 0.0
    for i in range(evidence.size):
        copied[tree.home[evidence[i]]] = True
    for c in range(copied.size):
        copied[c] |= not lean
        if copied[c]:
            tables[tree.offset[c] : tree.offset[c + 1]] = tree.base[tree.offset[c] : tree.offset[c + 1]]
    for i in range(evidence.size):
        v = evidence[i]
        c = tree.home[v]
        part = likelihood[starts[i] : starts[i + 1]]
        peak, least = extent(part)
        strain[c] += np.log(peak / least)
        shift += np.log(peak)
        enter(tables[tree.offset[c] : tree.offset[c + 1]], tree.cards[v], tree.stride[v], part, peak)
    return copied, strain, shift


@kernel
def collect(tree, copied, strain, tables, messages):
    """Send messages to the roots; return log Z, -inf if the evidence is impossible, NaN if plain floats are not to be trusted.

    The tables become the products of their own factors and of all that was sent from below; messages are those sent up, the
    largest value of each being 1, and after them the number by which each was multiplied. A clique to which the messages leave
    values further apart than STRAIN might have lost the small ones.
    """
    log_z = 0.0
    for c in range(tree.parent.size):
        rows, columns, p = tree.rows[c], tree.columns[c], tree.parent[c]
        message = messages[tree.places[c] : tree.places[c + 1]]
        table = (tables if copied[c] else tree.base)[tree.offset[c] : tree.offset[c + 1]]
        if strain[c] > STRAIN:
            return np.nan
        sum_rows(table, message, rows, columns)
        peak, least = extent(message)
        if peak == 0.0:
            return -np.inf
        log_z += np.log(peak)
        scale = 1.0 / peak
        messages[tree.places[tree.parent.size] + c] = scale
        if p >= 0:
            strain[p] += np.log(peak / least)
            for j in range(columns):
                message[j] *= scale
            absorb(
                tables[tree.offset[p] : tree.offset[p + 1]],
                message,
                tree.kind[c],
                tree.run[c],
                tree.outer[tree.outer_starts[c] : tree.outer_starts[c + 1]],
                tree.inner[tree.inner_starts[c] : tree.inner_starts[c + 1]],
            )
    return log_z


@kernel
def distribute(tree, copied, tables, messages, marginals):
    """Send messages back from the roots, after `collect`, and write the marginals of all variables.

    The tables become beliefs, where they are copies, and the messages those of the separators.
    """
    widest, longest = 1, 1
    for c in range(tree.parent.size):
        widest, longest = max(widest, tree.columns[c]), max(longest, tree.rows[c])
    fresh, sums = np.empty(widest), np.empty(longest)
    for c in range(tree.parent.size - 1, -1, -1):
        rows, columns, p = tree.rows[c], tree.columns[c], tree.parent[c]
        table = (tables if copied[c] else tree.base)[tree.offset[c] : tree.offset[c + 1]]
        message = messages[tree.places[c] : tree.places[c + 1]]
        scale = messages[tree.places[tree.parent.size] + c]
        new = fresh[:columns]
        if p < 0:
            new[0] = scale
        else:
            marginalize(
                tables[tree.offset[p] : tree.offset[p + 1]],
                new,
                tree.kind[c],
                tree.run[c],
                tree.outer[tree.outer_starts[c] : tree.outer_starts[c + 1]],
                tree.inner[tree.inner_starts[c] : tree.inner_starts[c + 1]],
            )
            for j in range(columns):
                ratio = scale * new[j] / message[j] if message[j] > 0.0 else 0.0
                message[j] = new[j]
                new[j] = ratio
        if copied[c]:
            for i in range(rows):
                total = 0.0
                for j in range(columns):
                    x = table[i * columns + j] * new[j]
                    table[i * columns + j] = x
                    total += x
                sums[i] = total
        else:
            for i in range(rows):
                total = 0.0
                for j in range(columns):
                    total += table[i * columns + j] * new[j]
                sums[i] = total
        spread(tree, c, sums[:rows], marginals)


@kernel
def spread(tree, c, sums, marginals):
    """Split the joint marginal of a clique's residual variables into those of each, which sum to one."""
    step = 1
    for k in range(tree.starts[c] + tree.n_residual[c] - 1, tree.starts[c] - 1, -1):
        v = tree.members[k]
        size, a = tree.cards[v], tree.state_starts[v]
        total = 0.0
        for i in range(size):
            x = 0.0
            for e in range(i * step, sums.size, size * step):
                for t in range(e, e + step):
                    x += sums[t]
            marginals[a + i] = x
            total += x
        for i in range(size):
            marginals[a + i] /= total
        step *= size


@kernel
def all_marginals(tree, evidence, starts, likelihood, tables, messages, marginals):
    """Answer one query: fill marginals and return log Z."""
    copied, strain, shift = begin(tree, evidence, starts, likelihood, tables, True)
    log_z = collect(tree, copied, strain, tables, messages)
    if log_z > -np.inf:
        distribute(tree, copied, tables, messages, marginals)
    return log_z + shift


@kernel
def all_beliefs(tree, evidence, starts, likelihood, tables, messages, marginals):
    """Answer one query, and leave the beliefs of cliques and separators in tables and messages."""
    copied, strain, shift = begin(tree, evidence, starts, likelihood, tables, False)
    log_z = collect(tree, copied, strain, tables, messages)
    if log_z > -np.inf:
        distribute(tree, copied, tables, messages, marginals)
    return log_z + shift


@kernel
def log_total(tree, evidence, starts, likelihood, tables, messages):
    """Return log Z, and leave in tables what was collected."""
    copied, strain, shift = begin(tree, evidence, starts, likelihood, tables, False)
    return collect(tree, copied, strain, tables, messages) + shift


@kernel
def column_of(tree, c, states):
    """Return the place in a clique's separator of the states that were chosen above."""
    place = 0
    for k in range(tree.starts[c] + tree.n_residual[c], tree.starts[c + 1]):
        v = tree.members[k]
        place = place * tree.cards[v] + states[v]
    return place


@kernel
def set_residual(tree, c, row, states):
    """Split the number of a residual state into the states of its variables."""
    for k in range(tree.starts[c] + tree.n_residual[c] - 1, tree.starts[c] - 1, -1):
        v = tree.members[k]
        states[v] = row % tree.cards[v]
        row //= tree.cards[v]


@kernel
def draw_states(tree, tables, uniforms, out):
    """Draw states of all variables from collected tables, cliques from the roots down, one uniform number for each."""
    for i in range(out.shape[0]):
        states = out[i]
        for c in range(tree.parent.size - 1, -1, -1):
            rows, columns, start = tree.rows[c], tree.columns[c], tree.offset[c] + column_of(tree, c, states)
            total = 0.0
            for r in range(rows):
                total += tables[start + r * columns]
            target, chosen, last = uniforms[i, c] * total, -1, 0
            for r in range(rows):
                x = tables[start + r * columns]
                target -= x
                if x > 0.0:
                    last = r
                    if target < 0.0 and chosen < 0:
                        chosen = r
            set_residual(tree, c, chosen if chosen >= 0 else last, states)


@kernel
def hard_evidence(tree, codes, evidence, starts, likelihood):
    """Write the states of a row (-1: not seen) as evidence; return how many were seen."""
    seen = 0
    starts[0] = 0
    for v in range(codes.size):
        if codes[v] >= 0:
            size, a = tree.cards[v], starts[seen]
            for k in range(size):
                likelihood[a + k] = 1.0 if k == codes[v] else 0.0
            evidence[seen] = v
            seen += 1
            starts[seen] = a + size
    return seen
