"""Kernels of learning: counting the states of scopes, and expected counts of rows with gaps.

`graph` is (cards, scope_starts, scopes, table_starts), the first four arrays of a `Layout`: the table of scope m has an entry
for each of its states. Rows hold numbers of states, -1 where nothing was seen.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.graphical.gibbs_kernels import run_sites
from lemmata.graphical.tree_layout import add_factor_marginals
from lemmata.graphical.tree_logs import log_beliefs, logs_of
from lemmata.graphical.tree_messages import all_beliefs, all_marginals, hard_evidence, room

CELLS = 1 << 27  # numbers of states of different rows that are kept in memory: 512 MiB
STANDS = -2  # in the first column of a row that stands for all complete ones


@kernel
def place_of(graph, m, row):
    """Return the entry of a scope's table that a row picks, -1 where some variable of it was not seen."""
    cards, scope_starts, scopes, table_starts = graph
    at = 0
    for e in range(scope_starts[m], scope_starts[m + 1]):
        k = np.int64(row[scopes[e]])
        if k < 0:
            return -1
        at = at * cards[scopes[e]] + k
    return table_starts[m] + at


@kernel
def n_missing(row):
    """Count the variables that were not seen."""
    n = 0
    for v in range(row.size):
        if row[v] < 0:
            n += 1
    return n


@kernel
def count_rows(X, weight, graph):
    """Count the states of all scopes.

    Returns
    -------
    complete : Counts in rows without gaps.
    partial : Counts in the others, of scopes that were seen as a whole.
    gaps : Weight of the others.
    total : Weight of all rows.
    """
    complete, partial = np.zeros(graph[3][-1]), np.zeros(graph[3][-1])
    gaps, total = 0.0, 0.0
    for i in range(len(X)):
        w = 1.0 if weight is None else np.float64(weight[i])
        if w == 0.0:
            continue
        total += w
        whole = n_missing(X[i]) == 0
        counts = complete if whole else partial
        gaps += 0.0 if whole else w
        for m in range(graph[3].size - 1):
            at = place_of(graph, m, X[i])
            if at >= 0:
                counts[at] += w
    return complete, partial, gaps, total


@kernel
def log_product(graph, logs, row):
    """Sum the logarithms of all tables at a complete row."""
    total = 0.0
    for m in range(graph[3].size - 1):
        total += logs[place_of(graph, m, row)]
    return total


@kernel
def expect_rows(X, weight, tree, graph, where, logs, share, standing):
    """Sum the log-likelihood of rows, and the expected counts of all scopes given what was seen.

    Parameters
    ----------
    share : Added to the log-likelihood of each row.
    standing : Counts of the complete rows, all together, for the one row that stands for them.
    """
    n = tree.cards.size
    tables, messages = room(tree)
    evidence, starts = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    likelihood, marginals = np.empty(tree.state_starts[n]), np.empty(tree.state_starts[n])
    codes, careful = np.empty(n, dtype=np.int64), np.empty(0)
    counts, value = np.zeros(graph[3][-1]), 0.0
    for i in range(len(X)):
        w = 1.0 if weight is None else np.float64(weight[i])
        if w == 0.0:
            continue
        value += w * share
        if X[i, 0] == STANDS:
            for e in range(counts.size):
                if standing[e] > 0.0:
                    counts[e] += standing[e]
                    value += standing[e] * logs[e]
            continue
        if n_missing(X[i]) == 0:
            for m in range(graph[3].size - 1):
                counts[place_of(graph, m, X[i])] += w
            value += w * log_product(graph, logs, X[i])
            continue
        for v in range(n):
            codes[v] = np.int64(X[i, v])
        seen = hard_evidence(tree, codes, evidence, starts, likelihood)
        log_z = all_beliefs(tree, evidence[:seen], starts, likelihood, tables, messages, marginals)
        if np.isnan(log_z):  # plain floats will not do
            careful = logs_of(tree.base) if careful.size == 0 else careful
            log_z = log_beliefs(tree, careful, evidence[:seen], starts, likelihood, tables, messages, marginals)
        value += w * log_z
        if log_z > -np.inf:
            add_factor_marginals(
                tree.cards, graph[1], graph[2], graph[3], where, tree.starts, tree.members, tree.offset, tables, w, counts
            )
    return value, counts


@kernel
def look_at_rows(X, tree, graph, logs, first, last, left_out):
    """Give the log-likelihood of each row, and the marginals of states first to last given it.

    A variable that is left out (-1: none) counts as not seen. An impossible row has the marginals before anything is seen.
    """
    n = tree.cards.size
    tables, messages = room(tree)
    evidence, starts = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    likelihood, marginals = np.empty(tree.state_starts[n]), np.empty(tree.state_starts[n])
    codes, before, careful = np.empty(n, dtype=np.int64), np.empty(tree.state_starts[n]), np.empty(0)
    if np.isnan(all_marginals(tree, evidence[:0], starts, likelihood, tables, messages, before)):
        careful = logs_of(tree.base)
        log_beliefs(tree, careful, evidence[:0], starts, likelihood, tables, messages, before)
    values, out = np.empty(len(X)), np.empty((len(X), last - first))
    for i in range(len(X)):
        for v in range(n):
            codes[v] = -1 if v == left_out else np.int64(X[i, v])
        if first == last and n_missing(codes) == 0:
            values[i] = log_product(graph, logs, codes)
            continue
        seen = hard_evidence(tree, codes, evidence, starts, likelihood)
        values[i] = all_marginals(tree, evidence[:seen], starts, likelihood, tables, messages, marginals)
        if np.isnan(values[i]):
            careful = logs_of(tree.base) if careful.size == 0 else careful
            values[i] = log_beliefs(tree, careful, evidence[:seen], starts, likelihood, tables, messages, marginals)
        for k in range(last - first):
            out[i, k] = marginals[first + k] if values[i] > -np.inf else before[first + k]
    return values, out


@kernel
def add_features(graph, indptr, indices, data, row, out):
    """Add the features of a row of states to out; entry e of the tables has the features indices[indptr[e] : indptr[e + 1]]."""
    for m in range(graph[3].size - 1):
        at = place_of(graph, m, row)
        for k in range(indptr[at], indptr[at + 1]):
            out[indices[k]] += data[k]


@kernel
def advance_chains(wiring, tables, log_tables, order, states, X, n_sweeps, graph, indptr, indices, data, out):
    """Sweep so many times over each chain of Gibbs sampling, and write its features."""
    out[:] = 0.0
    for c in range(len(X)):
        run_sites(wiring, tables, log_tables, order, False, states[c], X[c], n_sweeps)
        add_features(graph, indptr, indices, data, X[c], out[c])


class Distinct:
    """The different rows with gaps, sorted, and the weight of each; the sum of two has the rows of both, each once."""

    def __init__(self, rows, weight, cards):
        self.rows, self.weight, self.cards = rows, weight, cards
        if self.rows is not None:
            self._merge()

    def _merge(self):
        keys = _keys(self.rows, self.cards)
        order = np.lexsort(keys[::-1])
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
        first = np.flatnonzero(new)
        self.rows = self.rows[order[first]]
        self.weight = np.add.reduceat(self.weight[order], first) if len(first) else self.weight

    def __add__(self, other):
        too_many = self.rows is None or other.rows is None or self.rows.size + other.rows.size > CELLS
        if too_many:
            return Distinct(None, None, self.cards)
        return Distinct(np.concatenate([self.rows, other.rows]), np.concatenate([self.weight, other.weight]), self.cards)


def _keys(rows, cards):
    """Write rows as a few whole numbers each, equal for equal rows only."""
    keys, size = [np.zeros(len(rows), dtype=np.int64)], 1
    for v, card in enumerate(cards):
        base = int(card) + 1
        if size * base >= 1 << 62:
            keys.append(np.zeros(len(rows), dtype=np.int64))
            size = 1
        keys[-1] = keys[-1] * base + (rows[:, v].astype(np.int64) + 1)
        size *= base
    return keys


def distinct_block(X, weight, cards):
    """Collect the different rows of a block that have gaps."""
    gaps = (X < 0).any(axis=1)
    if weight is not None:
        gaps &= weight > 0
    rows = X[gaps]
    return Distinct(rows, np.ones(len(rows)) if weight is None else weight[gaps].astype(float), cards)
