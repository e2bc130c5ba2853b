"""The messages of `tree_messages` in logarithms: for maxima, and for sums whose terms lie too far apart for plain floats."""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.graphical.tree_layout import INSIDE, SUMMED
from lemmata.graphical.tree_messages import column_of, set_residual, spread


@kernel
def enter_logs(tree, logs, evidence, starts, likelihood, tables):
    """Copy the logarithms of the products of factors, and add those of the likelihoods."""
    tables[:] = logs
    for i in range(evidence.size):
        v = evidence[i]
        c, size, step = tree.home[v], tree.cards[v], tree.stride[v]
        for start in range(tree.offset[c], tree.offset[c + 1], size * step):
            for k in range(size):
                x = likelihood[starts[i] + k]
                w = np.log(x) if x > 0.0 else -np.inf
                for e in range(start + k * step, start + (k + 1) * step):
                    tables[e] += w


@kernel
def within(kind, inner, k):
    """Return the place of entry k of a stretch, from the stretch's own place in the separator."""
    return k if kind == INSIDE else 0 if kind == SUMMED else inner[k]


@kernel
def absorb_logs(tree, c, tables, message):
    """Add a message to the parent's table."""
    p, kind, run = tree.parent[c], tree.kind[c], tree.run[c]
    table = tables[tree.offset[p] : tree.offset[p + 1]]
    inner = tree.inner[tree.inner_starts[c] : tree.inner_starts[c + 1]]
    for o in range(tree.outer_starts[c + 1] - tree.outer_starts[c]):
        a, e = tree.outer[tree.outer_starts[c] + o], o * run
        for k in range(run):
            table[e + k] += message[a + within(kind, inner, k)]


@kernel
def column_peaks(table, rows, columns, peaks):
    """Write the largest entry of each column."""
    peaks[:] = -np.inf
    for i in range(rows):
        for j in range(columns):
            peaks[j] = max(peaks[j], table[i * columns + j])


@kernel
def collect_logs(tree, tables, messages):
    """Send logarithms of sums to the roots; return log Z."""
    log_z, peaks = 0.0, np.empty(tree.columns.max())
    for c in range(tree.parent.size):
        rows, columns = tree.rows[c], tree.columns[c]
        table = tables[tree.offset[c] : tree.offset[c + 1]]
        message, peak = messages[tree.places[c] : tree.places[c + 1]], peaks[:columns]
        column_peaks(table, rows, columns, peak)
        message[:] = 0.0
        for i in range(rows):
            for j in range(columns):
                if peak[j] > -np.inf:
                    message[j] += np.exp(table[i * columns + j] - peak[j])
        for j in range(columns):
            message[j] = peak[j] + np.log(message[j]) if peak[j] > -np.inf else -np.inf
        if tree.parent[c] >= 0:
            absorb_logs(tree, c, tables, message)
        else:
            log_z += message[0]
    return log_z


@kernel
def distribute_logs(tree, tables, messages, marginals):
    """Send messages back, write the marginals, and leave beliefs in tables and messages, as plain numbers."""
    peaks, fresh, sums = np.empty(tree.columns.max()), np.empty(tree.columns.max()), np.empty(tree.rows.max())
    for c in range(tree.parent.size - 1, -1, -1):
        rows, columns, p, kind, run = tree.rows[c], tree.columns[c], tree.parent[c], tree.kind[c], tree.run[c]
        table = tables[tree.offset[c] : tree.offset[c + 1]]
        message, peak, new = messages[tree.places[c] : tree.places[c + 1]], peaks[:columns], fresh[:columns]
        if p < 0:
            new[0] = 0.0
        else:
            above = tables[tree.offset[p] : tree.offset[p + 1]]
            outer = tree.outer[tree.outer_starts[c] : tree.outer_starts[c + 1]]
            inner = tree.inner[tree.inner_starts[c] : tree.inner_starts[c + 1]]
            peak[:] = -np.inf
            for o in range(outer.size):
                for k in range(run):
                    j = outer[o] + within(kind, inner, k)
                    peak[j] = max(peak[j], above[o * run + k])
            new[:] = 0.0
            for o in range(outer.size):
                for k in range(run):
                    j = outer[o] + within(kind, inner, k)
                    if peak[j] > -np.inf:
                        new[j] += np.exp(above[o * run + k] - peak[j])
            for j in range(columns):
                new[j] = peak[j] + np.log(new[j]) if peak[j] > -np.inf else -np.inf
        for j in range(columns):
            change = new[j] - message[j] if message[j] > -np.inf else -np.inf
            message[j] = new[j]
            new[j] = change
        for i in range(rows):
            total = 0.0
            for j in range(columns):
                table[i * columns + j] += new[j]
                total += np.exp(table[i * columns + j])
            sums[i] = total
        spread(tree, c, sums[:rows], marginals)
    for e in range(tables.size):
        tables[e] = np.exp(tables[e])
    for j in range(tree.places[tree.parent.size]):
        messages[j] = np.exp(messages[j])


@kernel
def log_beliefs(tree, logs, evidence, starts, likelihood, tables, messages, marginals):
    """Answer one query in logarithms; `logs` are those of the products of factors."""
    enter_logs(tree, logs, evidence, starts, likelihood, tables)
    log_z = collect_logs(tree, tables, messages)
    if log_z > -np.inf:
        distribute_logs(tree, tables, messages, marginals)
    return log_z


@kernel
def log_columns(tree, logs, evidence, starts, likelihood, tables, messages):
    """Return log Z, and leave tables, as plain numbers, whose columns are proportional to chances given the separator."""
    enter_logs(tree, logs, evidence, starts, likelihood, tables)
    log_z, peaks = collect_logs(tree, tables, messages), np.empty(tree.columns.max())
    for c in range(tree.parent.size):
        rows, columns = tree.rows[c], tree.columns[c]
        table = tables[tree.offset[c] : tree.offset[c + 1]]
        column_peaks(table, rows, columns, peaks[:columns])
        for e in range(table.size):
            table[e] = np.exp(table[e] - peaks[e % columns]) if table[e] > -np.inf else 0.0
    return log_z


@kernel
def logs_of(values):
    """Take logarithms, of 0 as well."""
    out = np.empty(values.size)
    for i in range(values.size):
        out[i] = np.log(values[i]) if values[i] > 0.0 else -np.inf
    return out


@kernel
def most_probable(tree, logs, evidence, starts, likelihood, tables, messages, states):
    """Find the states of the largest product; return its logarithm.

    Among equals the first residual state of a clique is taken, given those above it.
    """
    enter_logs(tree, logs, evidence, starts, likelihood, tables)
    best = 0.0
    for c in range(tree.parent.size):
        message = messages[tree.places[c] : tree.places[c + 1]]
        column_peaks(tables[tree.offset[c] : tree.offset[c + 1]], tree.rows[c], tree.columns[c], message)
        if tree.parent[c] >= 0:
            absorb_logs(tree, c, tables, message)
        else:
            best += message[0]
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
