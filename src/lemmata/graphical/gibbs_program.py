"""A factor graph compiled for Gibbs sampling: what stands around each variable, and the conditionals, computed once.

    x_k ~ p(x_k | all others) = (1/Z') Π_{m in M(k)} f_m(x_k, its other variables)

Only the factors that touch x_k matter. Evidence is reduced out; what is left around x_k has few states in most graphs, so the
cumulative conditionals fit into a table whose row is found from those states, and equal tables are stored once: a grid of
spins needs three short ones. Where there are too many states, logarithms of factors are summed at each draw.

As a Metropolis step this has the acceptance P(x') p(x_k | …) / (P(x) p(x'_k | …)) = 1, so P is stationary. It is the only
stationary law if the chain can get from every possible state to every other. Factors without zeros ensure that; deterministic
factors may not (two bits that must be equal can never flip one at a time), and then no number of draws helps: `classes` finds
this out on small graphs.

References: Geman & Geman, IEEE Transactions on Pattern Analysis and Machine Intelligence, 1984.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lemmata.core.xoshiro import seed
from lemmata.graphical import gibbs_kernels as kernels

MOST = 4096  # states around a variable for which a table is made
ROOM = 1 << 22  # numbers in all tables: 32 MiB
FEW = 1 << 14  # states of a graph that is looked at as a whole
TRIES = 100  # random fillings before a start counts as not found


class Wiring(NamedTuple):
    """Clusters of variables that are weighed at once, as flat arrays; cluster i has entries starts[i] to starts[i + 1].

    Attributes
    ----------
    member_starts, members : Its variables; the last one turns fastest in its weights.
    part_starts : Its factors, the parts p.
    sizes : Number of its weights.
    base : Where the weights of part p begin in the tables of the layout, evidence reduced out.
    out_starts, out_variables, out_strides : The other free variables of part p, and what their states add to the base.
    shift_starts, shifts : What each state of the members adds.
    near_starts, near, near_strides : All other free variables, and what their states add to the row of a table.
    configurations : Number of rows.
    """

    member_starts: np.ndarray
    members: np.ndarray
    part_starts: np.ndarray
    sizes: np.ndarray
    base: np.ndarray
    out_starts: np.ndarray
    out_variables: np.ndarray
    out_strides: np.ndarray
    shift_starts: np.ndarray
    shifts: np.ndarray
    near_starts: np.ndarray
    near: np.ndarray
    near_strides: np.ndarray
    configurations: np.ndarray


class Tables(NamedTuple):
    """Weights or cumulative conditionals of clusters; a start of −1 means that they are computed at each draw."""

    starts: np.ndarray
    values: np.ndarray
    widest: int


def incidence(layout, codes):
    """List the factors of each free variable: (starts, factors), with an entry for every variable."""
    lengths = np.diff(layout.scope_starts)
    factors = np.repeat(np.arange(len(lengths)), lengths)
    free = codes[layout.scopes] < 0
    variables, factors = layout.scopes[free], factors[free]
    starts = np.zeros(len(codes) + 1, dtype=np.int64)
    np.cumsum(np.bincount(variables, minlength=len(codes)), out=starts[1:])
    return starts, factors[np.argsort(variables, kind="stable")]


class Program:
    """What Gibbs sampling by sites and by blocks have in common: a layout with evidence, reduced to free variables.

    Parameters
    ----------
    layout : Layout of the model.
    codes : (n_variables,), state that a variable is clamped to, or −1. A variable with one state is always clamped.
    names : Names of the variables for errors. Default: their numbers.
    """

    def __init__(self, layout, codes=None, names=None):
        n = len(layout.cards)
        codes = np.full(n, -1, dtype=np.int64) if codes is None else np.array(codes, dtype=np.int64)
        self.layout, self.codes = layout, np.where((codes < 0) & (layout.cards == 1), 0, codes)
        self.names = list(range(n)) if names is None else list(names)
        self.free = np.flatnonzero(self.codes < 0)
        self._take(layout.tables)

    def _take(self, tables):
        with np.errstate(divide="ignore"):
            self.log_tables = np.log(tables)
        self.positive = True
        if not (tables > 0).all():
            for m, (_, table) in enumerate(self._reduced(tables)):
                self.positive &= bool((table > 0).all())
                if not table.any():
                    scope = self.layout.scopes[self.layout.scope_starts[m] : self.layout.scope_starts[m + 1]]
                    names = ", ".join(repr(self.names[v]) for v in scope)
                    raise ValueError(f"The factor of {names} is zero for every state that the evidence allows.")

    def _reduced(self, tables):
        """Give the free variables of each factor and its table with the evidence put in."""
        scope_starts, table_starts = self.layout.scope_starts, self.layout.table_starts
        for m in range(len(scope_starts) - 1):
            scope = self.layout.scopes[scope_starts[m] : scope_starts[m + 1]]
            table = tables[table_starts[m] : table_starts[m + 1]].reshape(self.layout.cards[scope])
            index = tuple(slice(None) if self.codes[v] < 0 else int(self.codes[v]) for v in scope)
            yield [int(v) for v in scope if self.codes[v] < 0], table[index]

    def _wire(self, member_starts, members, part_starts, parts):
        arrays = [np.asarray(a, dtype=np.int64) for a in (member_starts, members, part_starts, parts)]
        return Wiring(*arrays[:3], *kernels.wire(*self.layout[:4], self.codes, *arrays))

    def _tabulate(self, wiring, cumulative):
        x = np.maximum(self.codes, 0).astype(np.int32)
        width = wiring.sizes - 1 if cumulative else wiring.sizes
        room = int(min(ROOM, (wiring.configurations * width)[wiring.configurations <= MOST].sum()))
        starts, values, possible = kernels.tabulate(wiring, self.log_tables, self.layout.cards, x, cumulative, MOST, room)
        if not possible.all():
            i = int(np.argmin(possible))
            names = [self.names[v] for v in wiring.members[wiring.member_starts[i] : wiring.member_starts[i + 1]]]
            raise ValueError(
                f"No state of {', '.join(map(repr, names))} has a probability above zero, whatever the others are: factors, or "
                "factors and evidence, contradict each other."
            )
        return Tables(starts, values, int(wiring.sizes.max(initial=1)))

    def log_density(self, x):
        """Sum the logarithms of all factors at the states x."""
        layout = self.layout
        total = kernels.log_density(
            layout.scope_starts, layout.scopes, layout.cards, layout.table_starts, self.log_tables, np.asarray(x)
        )
        return float(total) + layout.log_scale

    def start(self, rng):
        """Draw states with a probability above zero: uniformly, or by filling in what the factors seen so far allow."""
        x = np.where(self.codes >= 0, self.codes, rng.integers(0, self.layout.cards)).astype(np.int32)
        if self.positive:
            return x
        tables = list(self._reduced(np.exp(self.log_tables)))
        around = {int(v): [] for v in self.free}
        for scope, table in tables:
            for v in scope:
                around[v].append((scope, table))
        for _ in range(TRIES):
            if self._fill(x, around, rng) and np.isfinite(self.log_density(x)):
                return x
        raise ValueError(
            f"No state with a probability above zero was found in {TRIES} tries; give one as `start`, such as a draw of a "
            "junction tree."
        )

    def _fill(self, x, around, rng):
        known = set()
        for v in map(int, self.free):
            weights = np.ones(self.layout.cards[v])
            for scope, table in around[v]:
                index = tuple(int(x[u]) if u in known else slice(None) for u in scope)
                left = [u for u in scope if u not in known]
                sums = table[index].sum(axis=tuple(a for a, u in enumerate(left) if u != v))
                weights = weights * sums / max(sums.max(), 1e-300)  # where all is zero, it stays zero
            if not weights.any():
                return False
            x[v] = rng.choice(len(weights), p=weights / weights.sum())
            known.add(v)
        return True

    def states(self):
        """List all states of a small graph with a probability above zero, and their probabilities.

        Returns
        -------
        states : (n_states, n_variables).
        law : (n_states,), summing to one.
        """
        cards = self.layout.cards[self.free]
        if prod(map(int, cards)) > FEW:
            raise ValueError(f"A graph with more than {FEW:,} states is too large to list them.")
        x = np.tile(np.maximum(self.codes, 0).astype(np.int32), (prod(map(int, cards)), 1))
        x[:, self.free] = np.indices(cards).reshape(len(cards), len(x)).T
        logs = np.array([self.log_density(row) for row in x])
        possible = np.isfinite(logs)
        if not possible.any():
            raise ValueError("No state has a probability above zero: factors, or factors and evidence, contradict each other.")
        law = np.exp(logs[possible] - logs.max())
        return x[possible], law / law.sum()

    def classes(self):
        """Count the classes of states that moves do not leave; None if there are zeros and too many states to look at.

        Moves of one site (or block) go between all states that agree elsewhere, in both directions.
        """
        if self.positive:
            return 1
        if prod(map(int, self.layout.cards[self.free])) > FEW:
            return None
        x, _ = self.states()
        n, here, there = len(x), [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for members in self.moves():  # a node for each state, and one for each group of states between which a move goes
            group = _agreeing(x, members)
            here.append(np.arange(len(x)))
            there.append(n + group)
            n += int(group.max()) + 1
        one, other = np.concatenate(here), np.concatenate(there)
        links = coo_array((np.ones(len(one)), (one, other)), shape=(n, n))
        return int(connected_components(links, directed=False)[0])

    def steps(self):
        """Give the exact transition matrix over `states` of each move, on a small graph, from what the kernels draw by."""
        x, _ = self.states()
        for i, members in enumerate(self.moves()):
            group, chances = _agreeing(x, members), np.array([self.chance(i, row) for row in x])
            yield np.where(group[:, None] == group, chances, 0.0)

    def matrix(self, scan="systematic"):
        """Give the exact transition matrix of a sweep (of a single move, for the random scan), on a small graph."""
        steps = list(self.steps())
        return np.linalg.multi_dot([*steps, np.eye(len(steps[0]))]) if scan == "systematic" else sum(steps) / len(steps)


def _agreeing(x, members):
    """Number the groups of states that agree but for some variables."""
    return np.unique(np.delete(x, members, axis=1), axis=0, return_inverse=True)[1].ravel()


class SiteProgram(Program):
    """Draw one variable after the other given all others.

    Examples
    --------
    >>> from lemmata.graphical.factor import Factor, lay_out
    >>> layout = lay_out([Factor(["a", "b"], [[1.0, 3.0], [2.0, 2.0]])], {"a": 0, "b": 1}, [2, 2])
    >>> program = SiteProgram(layout)
    >>> program.conditional(1, [0, 0])
    array([0.25, 0.75])
    >>> program.states()[1] @ program.matrix()
    array([0.125, 0.375, 0.25 , 0.25 ])
    """

    def __init__(self, layout, codes=None, names=None):
        super().__init__(layout, codes, names)
        starts, factors = incidence(layout, self.codes)
        counts = np.diff(starts)[self.free]
        self.wiring = self._wire(np.arange(len(self.free) + 1), self.free, np.r_[0, np.cumsum(counts)], factors)
        self.order = np.arange(len(self.free))
        self.tables = self._tabulate(self.wiring, True)

    def refill(self, tables):
        """Take other values of the same factors, as learning does after each step."""
        self.layout = self.layout._replace(tables=np.asarray(tables, dtype=float))
        self._take(self.layout.tables)
        self.tables = self._tabulate(self.wiring, True)

    def moves(self):
        """Give the variables that change at once, in the order of a sweep."""
        return [[int(v)] for v in self.free]

    def conditional(self, i, x):
        """Give the probabilities of the i-th free variable, given all others: those that a sweep draws from."""
        x = np.array(x, dtype=np.int32)
        out = np.empty(self.wiring.sizes[i])
        kernels.site_law(self.wiring, self.tables, self.log_tables, i, x, out)
        return out

    def chance(self, i, x):
        """Give the chance that the i-th move arrives at x from a state that agrees with it elsewhere."""
        return float(self.conditional(i, x)[x[self.free[i]]])

    def run(self, x, state, n_sweeps, random_scan=False):
        """Sweep n_sweeps times; x (int32) and the state of the generator move on."""
        kernels.run_sites(self.wiring, self.tables, self.log_tables, self.order, random_scan, state, x, n_sweeps)

    def record(self, x, state, thin, random_scan, out, logs):
        """Sweep `thin` times for each row of `out`; write states and logarithms of the density."""
        graph = (self.layout.scope_starts, self.layout.scopes, self.layout.cards, self.layout.table_starts)
        kernels.record_sites(
            self.wiring, self.tables, self.log_tables, self.order, random_scan, state, x, thin, out, logs, graph
        )
        logs += self.layout.log_scale

    def average(self, x, state, n_sweeps, random_scan, sites, sums):
        """Add the conditionals of all free variables, one after the other, to `sums` after each of n_sweeps sweeps."""
        own = (self.wiring, self.tables, self.log_tables, self.order)
        kernels.average_sites(*own, random_scan, state, x, n_sweeps, sums)


def chains(program, n_chains, rng, start=None):
    """Give starts and generators of so many chains: a list of (x, state).

    Parameters
    ----------
    start : (n_variables,) or (n_chains, n_variables), numbers of states, each with a probability above zero; drawn if None.
    """
    made = []
    for c, child in enumerate(rng.spawn(n_chains)):
        if start is None:
            x = program.start(child)
        else:
            x = np.array(start if np.ndim(start) == 1 else start[c], dtype=np.int32)
            if x.shape != program.codes.shape or (x < 0).any() or (x >= program.layout.cards).any():
                raise ValueError(f"start must hold {len(program.codes)} numbers of states for each chain.")
            x = np.where(program.codes >= 0, program.codes, x).astype(np.int32)
            if not np.isfinite(program.log_density(x)):
                raise ValueError("The start has probability zero; give one that all factors and the evidence allow.")
        made.append((x, seed(child)))
    return made
