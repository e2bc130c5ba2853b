"""Counts and expected counts by plain enumeration: the certificate of learning.

Complete rows are counted again; the maximum of the likelihood is unique in every row of a table that has counts, so equality
is a proof. Where something was not seen, the tables must stay where an EM step, whose expected counts come from here, leaves
them; by Fisher's identity the likelihood is stationary exactly there. A chance of 0 stays 0 whatever the rows say, so
there the condition is another: to raise it must not pay.

Given what was seen in a row, the missing variables fall apart into components that no table connects. The joint
distribution of each is written out, state by state, for all rows with that component at once:

    P(missing | seen) ∝ Π P(x_i | parents),   over the tables that touch the component.

A component with too many states is left to the tree, whose own certificate says that it is exact.

What `learning` counts and expects is counted and expected here a second time, by other means, on purpose: a certificate that
shared the code of the fit would share its mistakes.
"""

from math import prod

import numpy as np
from scipy.special import logsumexp

from lemmata.core.blocks import Blocks
from lemmata.core.certificate import EQUI_LIMIT, SABOTAGE, SAME_LIMIT, TINY, Check, length, same, simplex
from lemmata.graphical.learning_kernels import distinct_block, expect_rows
from lemmata.mixture.discrete import EXCESS

MOST = 1 << 12  # states of a component that is written out
CELLS = 1 << 21  # numbers at a time
NOTHING = 1e-12  # chances below count as 0
STILL = 1e-11  # share of a table by which rounding moves it: where nothing depends on a table, there is no other measure
RAISED = 1e-9  # a chance in place of 0: its expected count, divided by it, is the derivative of the log-likelihood


def gaps_block(X, weight):
    """Count the rows with gaps."""
    return int(((X < 0).any(axis=1) & (True if weight is None else weight > 0)).sum())


def recount_block(X, weight, graph):
    """Count the states of all scopes in the complete rows."""
    whole = (X >= 0).all(axis=1)
    counts, codes, weight = np.zeros(graph[3][-1]), X[whole].astype(np.int64), None if weight is None else weight[whole]
    for m, scope in enumerate(scopes_of(graph)):
        place = np.zeros(len(codes), dtype=np.int64)
        for v in scope:
            place = place * graph[0][v] + codes[:, v]
        counts[graph[3][m] : graph[3][m + 1]] = np.bincount(place, weight, minlength=graph[3][m + 1] - graph[3][m])
    return counts


def scopes_of(graph):
    """Give the variables of each scope."""
    return [graph[2][a:b].tolist() for a, b in zip(graph[1][:-1], graph[1][1:], strict=True)]


def enumerate_block(X, weight, graph, tables, by_tree):
    """Sum the log-likelihood of rows and the expected counts of all scopes.

    Parameters
    ----------
    tables : Chances, laid out as the graph says.
    by_tree : Function of (X, weight) that does the same, for rows whose gaps leave too much to write out.
    """
    weight = np.ones(len(X)) if weight is None else weight.astype(float)
    scopes, groups, large = scopes_of(graph), {}, []
    patterns, which = np.unique(X < 0, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    for missing, rows in zip(patterns, np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1]), strict=True):
        parts = components(missing, scopes)
        if max((_states(graph, members) for members, _ in parts), default=1) > MOST:
            large.append(rows)
            continue
        for members, touching in parts:
            groups.setdefault((members, touching), []).append(rows)
    value, counts = 0.0, np.zeros(graph[3][-1])
    if large:
        rows = np.concatenate(large)
        value, counts = by_tree(X[rows], weight[rows])
    with np.errstate(divide="ignore"):
        logs = np.log(tables)
    codes = X.astype(np.int64)
    for (members, touching), rows in groups.items():
        rows, step = np.concatenate(rows), max(1, CELLS // _states(graph, members))
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            value += _expect(codes[some], weight[some], members, touching, graph, scopes, logs, counts)
    whole = np.setdiff1d(np.arange(len(X)), np.concatenate(large)) if large else np.arange(len(X))
    for m, scope in enumerate(scopes):
        seen = whole[(codes[np.ix_(whole, scope)] >= 0).all(axis=1)]
        if len(seen):
            value += _expect(codes[seen], weight[seen], (), (m,), graph, scopes, logs, counts)
    return value, counts


def _states(graph, members):
    return prod(int(graph[0][v]) for v in members)


def components(missing, scopes):
    """Split the missing variables into components that no scope connects: (variables, scopes that touch them).

    >>> components([True, False, True], [[0], [0, 1], [1, 2], [1]])
    [((0,), (0, 1)), ((2,), (2,))]
    """
    owner = {v: v for v, gone in enumerate(missing) if gone}

    def root(v):
        while owner[v] != v:
            v = owner[v]
        return v

    touched = [(m, [v for v in scope if missing[v]]) for m, scope in enumerate(scopes)]
    for _, gone in touched:
        for v in gone[1:]:
            owner[root(v)] = root(gone[0])
    found = {}
    for v in owner:
        found.setdefault(root(v), ([], []))[0].append(v)
    for m, gone in touched:
        if gone:
            found[root(gone[0])][1].append(m)
    return [(tuple(members), tuple(touching)) for members, touching in found.values()]


def _expect(X, weight, members, touching, graph, scopes, logs, counts):
    """Add the expected counts of the scopes that touch a component; return the log-likelihood of what was seen of them."""
    cards, views = graph[0], []
    joint = np.zeros((len(X), *(int(cards[v]) for v in members)))
    for m in touching:
        table = logs[graph[3][m] : graph[3][m + 1]].reshape([int(cards[v]) for v in scopes[m]])
        view = _View(scopes[m], members, cards, X)
        views.append((m, view))
        joint += view.spread(view.take(table), members, cards)
    density = logsumexp(joint.reshape(len(X), -1), axis=1) if members else joint
    possible = density > -np.inf
    lifted = joint - np.where(possible, density, 0.0).reshape(-1, *[1] * len(members))
    posterior = np.exp(lifted) * np.where(possible, weight, 0.0).reshape(-1, *[1] * len(members))
    for m, view in views:
        axes = tuple(1 + i for i, v in enumerate(members) if v not in view.gone)
        view.add(posterior.sum(axis=axes), members, counts[graph[3][m] : graph[3][m + 1]], cards)
    return float(weight @ density)


class _View:
    """A scope seen by rows with the same gaps: the axes of seen variables are picked, those of missing ones stay."""

    def __init__(self, scope, missing, cards, X):
        self.seen, self.gone = [v for v in scope if v not in missing], [v for v in scope if v in missing]
        self.axes = [scope.index(v) for v in (*self.seen, *self.gone)]
        self.size = prod(int(cards[v]) for v in self.seen)
        self.place = np.zeros(len(X), dtype=np.int64)
        for v in self.seen:
            self.place = self.place * cards[v] + X[:, v]

    def take(self, table):
        """Give the entries that each row leaves open."""
        return table.transpose(self.axes).reshape(self.size, -1)[self.place]

    def spread(self, entries, members, cards):
        """Give them axes that line up with those of the component."""
        shaped = entries.reshape(len(entries), *(int(cards[v]) for v in self.gone))
        order = [v for v in members if v in self.gone]
        shaped = shaped.transpose(0, *(1 + self.gone.index(v) for v in order))
        return shaped.reshape(len(entries), *(int(cards[v]) if v in self.gone else 1 for v in members))

    def add(self, marginal, members, counts, cards):
        """Add the rows' shares of each entry to the counts."""
        order = [v for v in members if v in self.gone]
        marginal = marginal.transpose(0, *(1 + order.index(v) for v in self.gone)).reshape(len(marginal), -1)
        sums = np.zeros((self.size, marginal.shape[1]))
        np.add.at(sums, self.place, marginal)
        shape = [int(cards[v]) for v in (*self.seen, *self.gone)]
        counts += sums.reshape(shape).transpose(np.argsort(self.axes)).ravel()


class ByTree:
    """The expected counts of rows by the compiled tree."""

    def __init__(self, families, tables):
        with np.errstate(divide="ignore"):
            logs = np.log(tables)
        tree = families.net.junction_tree()
        self.prepared = tree.refilled(tables), families.graph, tree.where, logs, 0.0, np.zeros(len(tables))

    def __call__(self, X, weight):
        """Expect."""
        return expect_rows(X, weight, *self.prepared)


class Step:
    """The EM step on a table with gaps: equal rows once, complete ones counted."""

    def __init__(self, blocks, families, alpha):
        self.families, self.alpha = families, alpha
        self.counts = blocks.reduce(recount_block, families.graph)
        found = blocks.reduce(distinct_block, families.layout.cards)
        self.merged = found.rows is not None
        self.blocks = Blocks.of(found.rows, found.weight) if self.merged else blocks

    def expect(self, tables):
        """Give the log-likelihood, and the expected counts."""
        value, counts = self.blocks.reduce(enumerate_block, self.families.graph, tables, ByTree(self.families, tables))
        if self.merged:
            there = self.counts > 0
            with np.errstate(divide="ignore"):
                value, counts = value + float(self.counts[there] @ np.log(tables[there])), counts + self.counts
        return value, counts

    def residual(self, tables):
        """Say how far a step moves the tables."""
        return tables - self.families.chances(self.expect(tables)[1], self.alpha)


def complete_checks(blocks, families, tables, alpha, stored):
    """Prove that tables are the normalized counts of complete rows, and hence the best."""
    counts = blocks.reduce(recount_block, families.graph)
    best = families.chances(counts, alpha)
    worst = max(length(tables[a:b] - best[a:b]) / length(best[a:b]) for a, b in _spans(families))
    what = "likelihood" if alpha == 0 else "posterior"
    claim = f"every table has the shares of its counts, the only maximum of the {what}"
    there = counts > 0
    with np.errstate(divide="ignore"):
        value = float(counts[there] @ np.log(tables[there]))
    return [Check("tables", worst, SAME_LIMIT, "proof", claim), *_identities(stored, value, counts)]


def stationary_checks(blocks, families, tables, alpha, stored):
    """Check that an EM step, computed by enumeration, leaves the tables where they are."""
    step = Step(blocks, families, alpha)
    value, counts = step.expect(tables)
    if not value > -np.inf:
        return [Check("tables", np.inf, EQUI_LIMIT, "local", "no row is impossible")]
    here, rng = tables - families.chances(counts, alpha), np.random.default_rng(0)
    told = np.repeat(families.sums(counts) > 0, np.diff(families.rows))  # a row without counts jumps once it has any
    there = []
    for _ in range(3):  # a median needs no fewer
        moved = families.flat({name: simplex(table, rng) for name, table in families.shaped(tables).items()})
        there.append(np.where(told, step.residual(moved) - here, 0.0))
    worst = 0.0
    for a, b in _spans(families):
        if length(here[a:b]) > STILL * length(tables[a:b]):
            scale = max(float(np.median([length(d[a:b]) for d in there])), TINY)
            worst = max(worst, SABOTAGE * length(here[a:b]) / scale)
    claim = "an EM step leaves every table where it is"
    checks = [Check("tables", worst, EQUI_LIMIT, "local", claim), *_identities(stored, value, counts)]
    if alpha == 0 and (tables < NOTHING).any():
        checks.append(Check("border", excess(step, tables), EXCESS, "local", "to raise a 0 does not pay"))
    return checks


def excess(step, tables):
    """Say by how much, at most, the derivative by a chance of 0 exceeds that by the others of its row, as a share."""
    zero = tables < NOTHING
    _, counts = step.expect(np.where(zero, RAISED, tables))
    sums = np.repeat(step.families.sums(counts), np.diff(step.families.rows))
    low = zero & (sums > 0)
    return float((counts[low] / RAISED / sums[low] - 1.0).max(initial=0.0))


def _spans(families):
    return list(zip(families.layout.table_starts[:-1], families.layout.table_starts[1:], strict=True))


def _identities(stored, value, counts):
    """Check what the fit reports beside the tables."""
    checks = []
    if stored["log-likelihood"] is not None:
        claim = "the sum over the rows, recomputed"
        checks.append(same(stored["log-likelihood"], value, "log-likelihood", claim, floor=1e-3))
    if stored["counts"] is not None:
        checks.append(same(stored["counts"], counts, "counts", "how often each state was seen, or is expected"))
    return checks
