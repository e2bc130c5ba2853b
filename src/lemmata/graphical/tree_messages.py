"""Messages on a forest of cliques: sums towards the roots and back, maxima, and draws.

Messages follow Hugin's scheme: towards the roots, each divided by its sum, whose logarithms add up to that of the partition
function; and back, each divided by what was sent before (0/0 is 0). `tree` is the `Program` of a junction tree.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.graphical.tree_layout import INSIDE, SUMMED


@kernel
def room(tree):
    """Make room for the tables and messages of one query; after the messages there is a number for each clique."""
    return np.empty(tree.base.size), np.empty(tree.places[tree.parent.size] + tree.parent.size)


@kernel
def enter(table, size, step, likelihood):
    """Multiply a table by the likelihood of a variable's states, `step` entries from one to the next."""
    for start in range(0, table.size, size * step):
        for k in range(size):
            w = likelihood[k]
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
    """Sum a clique's table over its residual states; return the total."""
    if columns == 1:
        total = 0.0
        for i in range(rows):
            total += table[i]
        message[0] = total
        return total
    message[:] = 0.0
    for i in range(rows):
        for j in range(columns):
            message[j] += table[i * columns + j]
    total = 0.0
    for j in range(columns):
        total += message[j]
    return total


@kernel
def begin(tree, evidence, starts, likelihood, tables, lean):
    """Copy the products of factors and enter evidence; return which cliques have a copy.

    Lean, a clique that nothing will be multiplied into, a leaf without evidence, is not copied: its own table is read.
    """
    copied = tree.has_child.copy()
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
        enter(tables[tree.offset[c] : tree.offset[c + 1]], tree.cards[v], tree.stride[v], part)
    return copied


@kernel
def collect(tree, copied, tables, messages):
    """Send messages to the roots; return log Z, -inf if the evidence is impossible.

    The tables become the products of their own factors and of all that was sent from below; messages are those sent up, and
    after them the number by which each was multiplied.
    """
    log_z = 0.0
    for c in range(tree.parent.size):
        rows, columns, p = tree.rows[c], tree.columns[c], tree.parent[c]
        message = messages[tree.places[c] : tree.places[c + 1]]
        table = (tables if copied[c] else tree.base)[tree.offset[c] : tree.offset[c + 1]]
        total = sum_rows(table, message, rows, columns)
        if not total > 0.0:
            return -np.inf
        log_z += np.log(total)
        scale = 1.0 / total
        messages[tree.places[tree.parent.size] + c] = scale
        for j in range(columns):
            message[j] *= scale
        if p >= 0:
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
    copied = begin(tree, evidence, starts, likelihood, tables, True)
    log_z = collect(tree, copied, tables, messages)
    if log_z > -np.inf:
        distribute(tree, copied, tables, messages, marginals)
    return log_z


@kernel
def all_beliefs(tree, evidence, starts, likelihood, tables, messages, marginals):
    """Answer one query, and leave the beliefs of cliques and separators in tables and messages."""
    copied = begin(tree, evidence, starts, likelihood, tables, False)
    log_z = collect(tree, copied, tables, messages)
    if log_z > -np.inf:
        distribute(tree, copied, tables, messages, marginals)
    return log_z


@kernel
def log_total(tree, evidence, starts, likelihood, tables, messages):
    """Return log Z, and leave in tables what was collected."""
    copied = begin(tree, evidence, starts, likelihood, tables, False)
    return collect(tree, copied, tables, messages)


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
def enter_logs(table, size, step, likelihood):
    """Add the logarithm of the likelihood of a variable's states to a table of logarithms."""
    for start in range(0, table.size, size * step):
        for k in range(size):
            w = np.log(likelihood[k]) if likelihood[k] > 0.0 else -np.inf
            for e in range(start + k * step, start + (k + 1) * step):
                table[e] += w


@kernel
def most_probable(tree, logs, evidence, starts, likelihood, tables, messages, states):
    """Find the states of the largest product; return its logarithm.

    Among equals the first residual state of a clique is taken, given those above it.
    """
    tables[:] = logs
    for i in range(evidence.size):
        v = evidence[i]
        c = tree.home[v]
        part = likelihood[starts[i] : starts[i + 1]]
        enter_logs(tables[tree.offset[c] : tree.offset[c + 1]], tree.cards[v], tree.stride[v], part)
    best = 0.0
    for c in range(tree.parent.size):
        rows, columns, p = tree.rows[c], tree.columns[c], tree.parent[c]
        table = tables[tree.offset[c] : tree.offset[c + 1]]
        message = messages[tree.places[c] : tree.places[c + 1]]
        message[:] = -np.inf
        for r in range(rows):
            for j in range(columns):
                message[j] = max(message[j], table[r * columns + j])
        if p < 0:
            best += message[0]
            continue
        above, run = tables[tree.offset[p] : tree.offset[p + 1]], tree.run[c]
        outer = tree.outer[tree.outer_starts[c] : tree.outer_starts[c + 1]]
        inner = tree.inner[tree.inner_starts[c] : tree.inner_starts[c + 1]]
        for o in range(outer.size):
            a, e = outer[o], o * run
            for k in range(run):
                within = k if tree.kind[c] == INSIDE else 0 if tree.kind[c] == SUMMED else inner[k]
                above[e + k] += message[a + within]
    if best == -np.inf:
        return best
    for c in range(tree.parent.size - 1, -1, -1):
        columns, start = tree.columns[c], tree.offset[c] + column_of(tree, c, states)
        top = 0
        for r in range(1, tree.rows[c]):
            if tables[start + r * columns] > tables[start + top * columns]:
                top = r
        set_residual(tree, c, top, states)
    return best


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
