"""Learning the tables of a Bayes net: counting where everything was seen, EM where something was not.

The log-likelihood of complete rows decomposes over variables and rows u of their parents' states,

    log L = Σ_i Σ_u Σ_k c_i(u, k) log θ_i(k | u),   maximized by θ_i(k | u) = (c_i(u, k) + α) / Σ_k (c_i(u, k) + α),

where c counts rows and α, a symmetric Dirichlet(α + 1) prior, adds α log θ for every entry. Each row of a table is a problem
of its own with one maximum, so counting again is a proof. A row of which there are no counts is uniform, the limit of small α.

With gaps, or with variables that nobody sees, the counts are replaced by their expectation given what was seen [1], which a
junction tree, compiled once, gives for each different row; complete rows are counted once for all. Then the log-likelihood
plus α Σ log θ never falls (`mixture.em`), and ends where a step leaves the tables as they are. Like mixtures, tables leap in
the square roots of chances, where 0 is no border.

[1] Lauritzen, Computational Statistics & Data Analysis 19 (1995).
"""

import warnings
from functools import partial

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.certificate import simplex
from lemmata.core.iterate import iterate
from lemmata.core.random import generator, spawn
from lemmata.graphical.arrows import parents_first
from lemmata.graphical.discrete_table import check_size, read_table
from lemmata.graphical.evidence import labels, some
from lemmata.graphical.learning_kernels import STANDS, count_rows, distinct_block, expect_rows, look_at_rows
from lemmata.mixture.discrete import alive, normalized, raised
from lemmata.mixture.em import LatentModel, best_of

WORK = 1 << 20  # entries of tables that a block of rows goes through, so that threads get equal shares
NOISE = 1.0  # of the logarithms of chances, in starts of what nobody sees
JITTER = 0.5  # and in further starts of what was seen in part
SHORT = 0.02  # share of the step from 1 % away, a fifth of what the certificate lets pass
ROUNDING = 1e-12  # share of a table by which rounding moves it
NOTHING = 1e-50  # chances that EM keeps above 0 in order to be able to return, and that ended as 0


class Families:
    """The tables of a net in one vector: a variable and its parents, row after row.

    Attributes
    ----------
    graph : (cards, scope_starts, scopes, table_starts), as kernels want it.
    rows : Where each row of each table begins, and the end of the last.
    """

    def __init__(self, parents, states):
        from lemmata.graphical.bayes_net import BayesNet

        for name, above in parents.items():
            check_size((*above, name), states)
        uniform = {
            name: np.full([len(states[v]) for v in (*above, name)], 1.0 / len(states[name])) for name, above in parents.items()
        }
        self.net, self.states = BayesNet(parents, uniform, states), states
        self.layout = self.net.layout
        self.graph = tuple(self.layout[:4])
        sizes = np.diff(self.layout.table_starts)
        lengths = np.repeat(self.layout.cards, sizes // self.layout.cards)
        self.rows = np.concatenate([[0], np.cumsum(lengths)])

    def flat(self, tables):
        """Write tables into one vector."""
        return np.concatenate([np.ravel(np.asarray(tables[name], dtype=float)) for name in self.net.variables])

    def shaped(self, vector):
        """Cut a vector into {variable: table}."""
        starts = self.layout.table_starts
        return {
            factor.variables[-1]: vector[a:b].reshape(factor.shape).copy()
            for factor, a, b in zip(self.net.factors, starts[:-1], starts[1:], strict=True)
        }

    @property
    def uniform(self):
        """Give the vector of uniform tables."""
        return self.layout.tables

    def sums(self, counts):
        """Sum over each row."""
        return np.add.reduceat(counts, self.rows[:-1])

    def chances(self, counts, alpha):
        """Turn counts into chances; rows without counts are uniform."""
        return normalized(counts + alpha, self.rows, self.uniform)


def count_block(X, weight, graph):
    """Count the states of scopes in a block, as `count_rows` says."""
    return count_rows(X, weight, graph)


def expect_block(X, weight, prepared):
    """Log-likelihood of a block and its expected counts."""
    return expect_rows(X, weight, *prepared)


def gathered(blocks, families, complete, total, entries):
    """Put all rows with gaps into one table, equal ones once, and all others into one row that stands for them.

    Where the different rows are too many to keep, the blocks stay as they are.
    """
    found = blocks.reduce(distinct_block, families.layout.cards)
    if found.rows is None:
        return blocks
    rows, weight = found.rows, found.weight
    rest = total - float(weight.sum())
    if complete.any():
        standing = np.full((1, rows.shape[1]), STANDS, dtype=rows.dtype)
        rows, weight = np.concatenate([standing, rows]), np.concatenate([[rest], weight])
    return Blocks.of(rows, weight, block_rows=int(np.clip(WORK // max(entries, 1), 16, 1 << 14)))


def barren(parents, hidden):
    """Tell which variables neither were seen nor have descendants that were: no likelihood depends on their tables.

    >>> barren({"a": (), "b": ("a",), "c": ("b",), "d": ("a",)}, [False, True, True, False])
    array([False,  True,  True, False])
    """
    told = {name for name, gone in zip(parents, hidden, strict=True) if not gone}
    for name in reversed(parents_first(parents)):
        if name in told:
            told.update(parents[name])
    return np.array([name not in told for name in parents])


class NetModel(LatentModel):
    """The steps of EM; the parameters are one vector, the tables of `families`.

    Parameters
    ----------
    complete : Counts of the rows without gaps.
    seen : Counts of all scopes that were seen as a whole.
    average : Distribution of each variable where it was seen, one after the other.
    hidden : Which variables are never seen.
    alpha : Pseudo-count of every entry.
    total : Weight of all rows.
    given : Tables to start from, or None.
    """

    name = "EM of a Bayes net"

    def __init__(self, families, complete, seen, average, hidden, alpha, total, given):
        self.families, self.complete_counts, self.seen, self.alpha, self.total = families, complete, seen, alpha, total
        self.average, self.hidden, self.starts = average, hidden, 0
        self.idle = np.repeat(barren(families.net.parents_, hidden), np.diff(families.layout.table_starts))
        self.given = given if given is None or alpha == 0 else np.where(self.idle, families.uniform, given)
        self.tree = families.net.junction_tree()

    def start(self, blocks, rng):
        """Take what was given; else count what was seen, and scatter the rest about the averages.

        Tables that no row depends on are uniform at once: only the prior pulls at them, which may take ever so long.
        """
        if self.given is not None:
            if not blocks.reduce(expect_block, self.prepare((self.given,)))[0] > -np.inf:
                raise ValueError(
                    "Under the given tables some row is impossible, or alpha > 0 rules out a zero: move them inside."
                )
            return (self.given,)
        graph, counts = self.families.graph, np.empty(len(self.seen))
        states = np.concatenate([[0], np.cumsum(graph[0])])
        for v, (a, b) in enumerate(zip(graph[3][:-1], graph[3][1:], strict=True)):
            counts[a:b] = np.tile(self.average[states[v] : states[v + 1]], (b - a) // graph[0][v])
            unseen = self.hidden[graph[2][graph[1][v] : graph[1][v + 1]]].any()
            size = NOISE if unseen else JITTER if self.starts else 0.0
            counts[a:b] = (counts[a:b] + self.seen[a:b]) * np.exp(size * rng.standard_normal(b - a))
        self.starts += 1
        counts = np.where(self.idle, self.families.uniform, counts)
        return (normalized(counts, self.families.rows, self.families.uniform),)

    def prepare(self, parameters):
        """Fill the cliques of the tree with the tables; share the prior out among the rows."""
        (tables,) = parameters
        logs = _logs(tables)
        share = self.alpha * float(logs.sum()) / self.total if self.alpha > 0 else 0.0
        return self.tree.refilled(tables), self.families.graph, self.tree.where, logs, share, self.complete_counts

    def e_step(self, X, weight, prepared):
        """Log-likelihood and log-prior, and expected counts."""
        return expect_block(X, weight, prepared)

    def m_step(self, statistics, parameters):
        """Divide by the sums of rows; what was not even expected stays."""
        (tables,) = parameters
        return (alive(tables, normalized(statistics[1] + self.alpha, self.families.rows, tables)),)

    def escape(self, before, after):
        """Raise what lies on the border and is about to leave it."""
        tables = raised(before[0], after[0])
        return None if np.array_equal(tables, after[0]) else (normalized(tables, self.families.rows, tables),)

    def answer(self, blocks, tables, step):
        """Say by how much the step of each table changes where tables move by 1 %: the least of a few directions."""
        rng, spans = np.random.default_rng(len(tables)), self.families.layout.table_starts
        found = []
        for _ in range(5):
            moved = self.families.flat({name: simplex(table, rng) for name, table in self.families.shaped(tables).items()})
            (there,) = self.m_step(blocks.reduce(self.e_step, self.prepare((moved,))), (moved,))
            found.append(_lengths(there - moved - step, spans))
        return np.min(found, axis=0)

    def pack(self, parameters):
        """Square roots of the chances."""
        return np.sqrt(parameters[0])

    def unpack(self, vector):
        """Square, and divide by the sums; None where a row vanishes."""
        tables = normalized(vector**2, self.families.rows, np.nan)
        return (tables,) if np.isfinite(tables).all() else None


def _logs(tables):
    with np.errstate(divide="ignore"):
        return np.log(tables)


def learn(net, X, sample_weight=None):
    """Learn the tables of a net's graph; return the fitted attributes by name."""
    given, names = net.tables, dict(net.state_names or {})
    unknown = [name for name in (*names, *(given or {})) if name not in net.parents_]
    if unknown:
        raise ValueError(f"There are tables or state_names for {some(unknown)}, which is no variable of the net.")
    if given is not None:
        names = {**{name: range(np.shape(table)[-1]) for name, table in given.items() if np.ndim(table)}, **names}
    table = read_table(X, net.variables, sample_weight, states=names, fixed=False)
    families = Families(net.parents_, table.states)
    complete, partial, gaps, total = table.blocks.reduce(count_block, families.graph)
    history = {"n_iter_": 0, "converged_": True, "trace_": np.empty(0), "restarts_": np.empty(0)}
    if gaps == 0:
        counts, vector = complete, families.chances(complete, net.alpha)
        value = _decomposed(counts, vector)
    else:
        vector, value, counts, history = _maximize(net, table, families, complete, complete + partial, total)
    if net.alpha == 0:
        _warn_of_empty(families.sums(counts))
    return {
        "states_": table.states,
        "tables_": families.shaped(vector),
        "counts_": families.shaped(counts),
        "log_likelihood_": value,
        **history,
    }


def _decomposed(counts, tables):
    """Sum c log θ over all entries that were seen."""
    there = counts > 0
    return float(counts[there] @ _logs(tables[there]))


def _maximize(net, table, families, complete, seen, total):
    """Run EM from several starts; return the tables, their log-likelihood, the expected counts, and how it went."""
    n, cards = len(families.layout.cards), families.layout.cards
    alone = (cards, np.arange(n + 1), np.arange(n), np.concatenate([[0], np.cumsum(cards)]))
    marginals = sum(table.blocks.reduce(count_block, alone)[:2])
    average = normalized(marginals, alone[3], np.repeat(1.0 / cards, cards))
    hidden = np.add.reduceat(marginals, alone[3][:-1]) == 0
    given = None
    if net.tables is not None:
        from lemmata.graphical.bayes_net import BayesNet

        given = families.flat({f.variables[-1]: f.values for f in BayesNet(net.parents, net.tables, table.states).factors})
    model = NetModel(families, complete, seen, average, hidden, net.alpha, total, given)
    blocks = gathered(table.blocks, families, complete, total, model.tree.n_entries)
    rngs = spawn(generator(net.random_state), net.n_init if given is None else 1)
    drive = partial(_drive, max_iter=net.max_iter, verbose=net.verbose)
    if net.alpha > 0:  # a prior that pulls slowly moves tables of which the likelihood says little: leaps go on
        drive = partial(drive, rest=partial(Rest, model, blocks, net.tol))
    run = best_of(model, blocks, rngs, drive, tol=0.0 if net.alpha > 0 else net.tol, acceleration=True)
    tables = normalized(np.where(run.state[0] < NOTHING, 0.0, run.state[0]), families.rows, families.uniform)
    model.alpha = 0.0  # the prior is no part of the likelihood
    value, counts = blocks.reduce(expect_block, model.prepare((tables,)))
    empty = np.repeat(families.sums(counts) == 0, np.diff(families.rows))
    if net.alpha == 0:
        tables = np.where(empty, families.uniform, tables)
    history = {"n_iter_": run.n_iter, "converged_": run.converged, "trace_": run.trace, "restarts_": run.restarts}
    return tables, float(value), counts, history


class Rest:
    """Tells whether tables have come to rest: a plain step gains no more than tol, and is short.

    What is short is for the tables to say: no longer than one from a fiftieth of 1 % away.
    """

    def __init__(self, model, blocks, tol):
        self.model, self.blocks, self.tol, self.scale = model, blocks, tol, None

    def __call__(self, state, change):
        """Look at the state after a step that gained so much."""
        if not change <= self.tol:
            return False
        (before,), (after,) = state[-1][0], state[1]
        spans, step = self.model.families.layout.table_starts, after - before
        size, still = _lengths(step, spans), ROUNDING * _lengths(before, spans)
        for fresh in (False, True):  # what was found once will do until it says yes
            if self.scale is None or fresh:
                self.scale = self.model.answer(self.blocks, before, step)
            if ((size > SHORT * self.scale) & (size > still)).any():
                return False
        return True


def _lengths(vector, starts):
    return np.sqrt(np.add.reduceat(vector**2, starts[:-1]))


def _drive(step, state, *, fitted, rest=None, **options):
    """Run `iterate`, until all is at rest if there is a way to tell; nobody asks for attributes on the way."""
    if rest is None:
        return iterate(step, state, **options)
    at_rest = rest()

    def careful(before):
        after, value, change = step(before)
        return after, value, 0.0 if at_rest(after, change) else np.inf

    return iterate(careful, state, **options)


def _warn_of_empty(sums):
    """Say how many rows of tables are a convention."""
    never = int((sums == 0).sum())
    if never:
        warnings.warn(
            f"The data say nothing about {never:,} of the {len(sums):,} rows of the tables, combinations of parents that do "
            "not occur: these rows are uniform, the limit of small alpha.",
            UserWarning,
            stacklevel=4,
        )


def score_block(X, weight, prepared):
    """Total weight and log-likelihood of a block."""
    values = look_at_rows(X, *prepared, 0, 0, -1)[0]
    if weight is None:
        return float(len(values)), float(values.sum())
    there = weight > 0
    return float(weight.sum()), float(weight[there] @ values[there])


def chances_block(X, weight, prepared, first, last, variable):
    """Chances of the states of a variable given the rest of each row of a block."""
    return look_at_rows(X, *prepared, first, last, variable)[1]


def fill_block(X, weight, prepared, starts):
    """Numbers of states of the rows of a block, gaps filled with the most probable state of each variable."""
    filled = X.astype(np.int64)
    gaps = (X < 0).any(axis=1)
    chances = look_at_rows(X[gaps], *prepared, 0, starts[-1], -1)[1]
    for v in range(X.shape[1]):
        best = chances[:, starts[v] : starts[v + 1]].argmax(axis=1)
        filled[gaps, v] = np.where(filled[gaps, v] < 0, best, filled[gaps, v])
    return filled


def _opened(net, X, sample_weight=None, ignored=()):
    """Read a table with the labels of a net; give its blocks, and the net as kernels want it."""
    tree = net.junction_tree()
    blocks = read_table(X, net.variables, sample_weight, states=net.states, ignored=ignored).blocks
    return blocks, (tree.program, tuple(tree.layout[:4]), _logs(tree.layout.tables))


def total_log_likelihood(net, X, sample_weight=None):
    """Give the weight of all rows, and the sum of their log-likelihoods."""
    blocks, prepared = _opened(net, X, sample_weight)
    return blocks.reduce(score_block, prepared)


def chances_of(net, X, variable):
    """Give the chances of the states of a variable, given the rest of each row."""
    (variable,) = net._known((variable,))
    blocks, prepared = _opened(net, X, ignored=(variable,))
    number = net._codes[variable][0]
    starts = prepared[0].state_starts
    return blocks.map(chances_block, prepared, starts[number], starts[number + 1], number)


def filled(net, X):
    """Give {variable: labels}, gaps filled with the most probable state of each variable given the rest of its row."""
    blocks, prepared = _opened(net, X)
    codes = blocks.map(fill_block, prepared, prepared[0].state_starts)
    return {name: labels(net.states[name])[codes[:, v]] for v, name in enumerate(net.variables)}


def n_parameters(net):
    """Count the free chances: one less than its states in each row of a variable's table."""
    return sum(factor.values.size // factor.shape[-1] * (factor.shape[-1] - 1) for factor in net.factors)


def certify_tables(net, X, sample_weight=None):
    """Check, from data and tables alone, that no tables make these rows more probable; see `expected_counts`."""
    from lemmata.graphical.expected_counts import complete_checks, gaps_block, stationary_checks

    table = read_table(X, net.variables, sample_weight, states=net.states)
    families = Families(net.parents_, net.states)
    tables = families.flat(net._tables)
    stored = {
        "log-likelihood": getattr(net, "log_likelihood_", None),
        "counts": families.flat(net.counts_) if hasattr(net, "counts_") else None,
    }
    if table.blocks.reduce(gaps_block):
        return stationary_checks(table.blocks, families, tables, net.alpha, stored)
    return complete_checks(table.blocks, families, tables, net.alpha, stored)
