"""Junction trees: exact inference, compiled once and asked many times.

Eliminating the variables of a model in some order gives a forest of cliques, in which those that hold a variable hang
together (the running intersection). Each factor is multiplied into one clique that holds its variables; then two messages over
each separator make the tables of all cliques marginals of the same joint distribution (Lauritzen & Spiegelhalter 1988; Jensen,
Olesen & Lauritzen 1990). The cost is the number of entries of all tables: exponential in the width of the forest, linear in its
length.

All that does not depend on the evidence happens at the beginning: `elimination` finds an order, `tree_layout` lays tables and
index maps into flat arrays, and a query is one call of a kernel of `tree_messages`.
"""

from typing import NamedTuple

import numpy as np

from lemmata.graphical import tree_layout
from lemmata.graphical.elimination import Cliques, find_cliques, numbered
from lemmata.graphical.elimination_kernels import neighbors_of_scopes
from lemmata.graphical.evidence import encode_evidence, some
from lemmata.graphical.factor import Factor, starts_of
from lemmata.graphical.tree_logs import log_beliefs, log_columns, most_probable
from lemmata.graphical.tree_messages import STRAIN, all_beliefs, all_marginals, draw_states, log_total, room

MOST_ENTRIES = 1 << 28  # 2 GiB of tables, and as much to work on


class Program(NamedTuple):
    """A forest of cliques as the kernels read it; children come before parents."""

    cards: np.ndarray  # number of states of each variable
    state_starts: np.ndarray  # where the states of each variable begin among those of all
    starts: np.ndarray  # where the members of each clique begin
    members: np.ndarray  # residual variables, then the separator, both in the order of elimination
    n_residual: np.ndarray
    parent: np.ndarray  # -1: a root
    has_child: np.ndarray
    rows: np.ndarray  # states of the residual variables
    columns: np.ndarray  # states of the separator
    offset: np.ndarray  # where the table of each clique begins
    places: np.ndarray  # where the message of each clique begins
    kind: np.ndarray  # of the map from the parent's table to the separator, with the five that follow
    run: np.ndarray
    outer_starts: np.ndarray
    outer: np.ndarray
    inner_starts: np.ndarray
    inner: np.ndarray
    home: np.ndarray  # clique in which each variable is residual
    stride: np.ndarray  # entries there from one of its states to the next
    base: np.ndarray  # products of the factors
    strain: np.ndarray  # logarithm of how far apart the values of each table lie


class Calibrated(NamedTuple):
    """What a junction tree says given evidence: marginals of cliques, separators and variables of one distribution.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> found = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])]).junction_tree().calibrate()
    >>> found.beliefs[0].values * 27, found.separators[0].values * 27
    (array([[ 9.,  5.],
           [ 3., 10.]]), array([12., 15.]))
    """

    beliefs: list  # a Factor for each clique
    separators: list  # and for each separator
    marginals: dict
    log_partition: float


class JunctionTree:
    """Compile a model for exact inference.

    Parameters
    ----------
    model : `FactorGraph`, `BayesNet`, or whatever has `variables`, `factors` and `layout`.
    order : Rule of elimination ("auto", "min-fill", "weighted-min-fill", "min-degree", "min-size"), or all variables in order.
    restarts : Tries with noise in the rule, of which the smallest tables are kept; None: as many as the tables are worth.
        Of use where many queries follow.
    max_entries : Refuse to build larger tables. An entry takes 16 to 24 bytes, and 8 more for each query at the same time.
    random_state : Seed of the noise.

    Attributes
    ----------
    cliques : Tuples of variables, residual ones first.
    separators : Variables that each clique shares with its parent; () for a root.
    parents : Number of the clique that each one hangs on; -1 for a root.
    width : Variables in the largest clique, less one.
    n_entries : Numbers in all tables.

    Examples
    --------
    >>> from lemmata.graphical import BayesNet
    >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
    >>> tree = JunctionTree(net)
    >>> tree.cliques, tree.width, tree.n_entries
    ([('rain', 'wet')], 1, 4)
    >>> tree.calibrate({"wet": 1}).marginals["rain"].round(4)
    array([0.2963, 0.7037])
    """

    def __init__(self, model, order="auto", *, restarts=None, max_entries=MOST_ENTRIES, random_state=0):
        layout = model.layout
        self.model, self.layout, self.variables = model, layout, tuple(model.variables)
        if not isinstance(order, str):
            order = numbered(order, {name: i for i, name in enumerate(self.variables)})
        near = neighbors_of_scopes(len(layout.cards), layout.scope_starts, layout.scopes)
        cliques = find_cliques(near, layout.cards, order, restarts=restarts, seed=random_state)
        self.width = int(np.diff(cliques.starts).max(initial=0)) - 1
        if cliques.entries > max_entries:
            raise ValueError(
                f"The smallest junction tree that was found has {cliques.entries:.2g} entries (width {self.width}), more than "
                f"max_entries={max_entries:,}: give a better order, more restarts or more room, or use loopy_marginals, which "
                "is approximate."
            )
        self.program, self.where = compile_cliques(layout, cliques)
        by_logs = any(factor.log for factor in model.factors) or far_apart(layout, self.where)
        self._log_constant = self._constants = constants(model)
        self._states = [slice(a, b) for a, b in zip(self.program.state_starts, self.program.state_starts[1:], strict=False)]
        self._spare, self._logs = [], None
        if by_logs:
            self.program, _, scale = self.refilled_by_logs(self._log_factors())
            self._log_constant += scale
        else:
            self.program = self.refilled(layout.tables)

    def __repr__(self):
        return f"<JunctionTree of {len(self.program.parent)} cliques, width {self.width}, {self.n_entries:,} entries>"

    def __getstate__(self):
        return {**self.__dict__, "_spare": []}

    @property
    def scopes(self):
        """The variables of the factors, as the kernels read them."""
        return self.layout[:4]

    @property
    def shape(self):
        """The members of the cliques and where their tables begin, as the kernels read them."""
        return self.program.starts, self.program.members, self.program.offset

    @property
    def n_entries(self):
        """Numbers in all tables."""
        return self.program.base.size

    def _spans(self, residual):
        """Give the members of each clique, or of its separator only."""
        p = self.program
        begins = p.starts[:-1] if residual else p.starts[:-1] + p.n_residual
        return [tuple(self.variables[v] for v in p.members[a:b]) for a, b in zip(begins, p.starts[1:], strict=True)]

    @property
    def cliques(self):
        """Variables of each clique."""
        return self._spans(residual=True)

    @property
    def separators(self):
        """Variables that each clique shares with its parent."""
        return self._spans(residual=False)

    @property
    def parents(self):
        """Number of the clique that each one hangs on."""
        return self.program.parent.tolist()

    def refilled(self, tables):
        """Give the program for other values of the factors, laid out as the model's tables."""
        base = self._products(tables, logs=False)
        return self.program._replace(base=base, strain=tree_layout.strains(self.program.offset, base))

    def refilled_by_logs(self, logs):
        """Give the program for other logarithms of the factors, its own logarithms, and by how much log Z is larger by both."""
        p, sums = self.program, self._products(logs, logs=True)
        peaks = np.maximum.reduceat(sums, p.offset[:-1])
        peaks = np.where(np.isfinite(peaks), peaks, 0.0)
        sums -= np.repeat(peaks, np.diff(p.offset))
        least = np.minimum.reduceat(np.where(np.isneginf(sums), 0.0, sums), p.offset[:-1])
        return p._replace(base=np.exp(sums), strain=-least), sums, float(peaks.sum())

    def _products(self, values, *, logs):
        """Multiply the factors of each clique, or add their logarithms."""
        p, out = self.program, np.empty(self.program.offset[-1])
        _fill(self.layout, values, logs, self.where, p.starts, p.members, p.offset, out)
        return out

    def _log_tables(self):
        """Give the logarithms of the products of the factors, for maxima."""
        if self._logs is None:
            self._logs = self._products(self._log_factors(), logs=True)
        return self._logs

    def _log_factors(self):
        return np.concatenate([np.empty(0), *(factor.as_log().values.ravel() for factor in self.model.factors)])

    def _encode(self, evidence):
        return encode_evidence(self.model, evidence)

    def _buffers(self):
        """Take room to work in from those that were given back, so that queries do not ask the system for memory."""
        try:
            return self._spare.pop()
        except IndexError:
            return room(self.program)

    def _run(self, plain, careful, evidence, *more):
        """Run a kernel, or the one in logarithms where the first says that floats will not do; give log Z and the buffers."""
        codes, buffers = self._encode(evidence), self._buffers()
        log_z = plain(self.program, *codes, *buffers, *more) + self._log_constant
        if log_z != log_z:
            log_z = careful(self.program, self._log_tables(), *codes, *buffers, *more) + self._constants
        return float(log_z), buffers

    def _ask(self, plain, evidence):
        """Run a query; give the marginals of all variables in one array, log Z, and the buffers to be given back."""
        marginals = np.empty(self.program.state_starts[-1])
        log_z, buffers = self._run(plain, log_beliefs, evidence, marginals)
        if log_z == -np.inf:
            self._spare.append(buffers)
            raise ImpossibleEvidence(self._contradiction(evidence))
        return marginals, log_z, buffers

    def marginals(self, evidence=None):
        """Give {variable: probabilities of its states} given evidence."""
        marginals, _, buffers = self._ask(all_marginals, evidence)
        self._spare.append(buffers)
        return dict(zip(self.variables, [marginals[states] for states in self._states], strict=True))

    def calibrate(self, evidence=None):
        """Give the marginals of cliques and separators as well."""
        marginals, log_z, buffers = self._ask(all_beliefs, evidence)
        p, (tables, messages) = self.program, buffers
        beliefs = [self._factor(tables, p.offset, c, p.starts[c]) for c in range(len(p.parent))]
        separators = [self._factor(messages, p.places, c, p.starts[c] + p.n_residual[c]) for c in range(len(p.parent))]
        self._spare.append(buffers)
        named = dict(zip(self.variables, [marginals[states] for states in self._states], strict=True))
        return Calibrated(beliefs, separators, named, log_z)

    def _factor(self, values, places, c, first):
        p = self.program
        members = p.members[first : p.starts[c + 1]]
        table = values[places[c] : places[c + 1]].reshape(p.cards[members])
        return Factor([self.variables[v] for v in members], table)

    def log_partition(self, evidence=None):
        """Give the logarithm of the sum of the product of all factors over all states that agree with the evidence."""
        log_z, buffers = self._run(log_total, log_columns, evidence)
        self._spare.append(buffers)
        return log_z

    def factor_marginals(self, evidence=None):
        """Give the marginal over the scope of every factor, laid out as the model's tables."""
        _, _, buffers = self._ask(all_beliefs, evidence)
        out = np.zeros(self.layout.tables.size)
        tree_layout.add_factor_marginals(*self.scopes, self.where, *self.shape, buffers[0], 1.0, out)
        self._spare.append(buffers)
        return out

    def joint(self, variables, evidence=None):
        """Give the joint marginal of variables that lie in one clique as a `Factor`; None if they lie in none."""
        wanted = set(variables)
        holders = [c for c, clique in enumerate(self.cliques) if wanted <= set(clique)]
        if not holders:
            return None
        p = self.program
        smallest = min(holders, key=lambda c: p.rows[c] * p.columns[c])
        _, _, buffers = self._ask(all_beliefs, evidence)
        belief = self._factor(buffers[0], p.offset, smallest, p.starts[smallest])
        self._spare.append(buffers)
        return belief.marginal(variables).normalized()

    def most_probable(self, evidence=None):
        """Give the number of the state of each variable in the most probable assignment, and log of the product of factors."""
        codes, buffers, logs = self._encode(evidence), self._buffers(), self._log_tables()
        states = np.zeros(len(self.variables), dtype=np.int64)
        value = most_probable(self.program, logs, *codes, *buffers, states) + self._constants
        self._spare.append(buffers)
        if value == -np.inf:
            raise ImpossibleEvidence(self._contradiction(evidence))
        return states, float(value)

    def sample(self, n, rng, evidence=None):
        """Draw n rows of numbers of states, given evidence."""
        log_z, buffers = self._run(log_total, log_columns, evidence)
        if log_z == -np.inf:
            raise ImpossibleEvidence(self._contradiction(evidence))
        states = np.empty((n, len(self.variables)), dtype=np.int64)
        draw_states(self.program, buffers[0], rng.random((n, len(self.program.parent))), states)
        self._spare.append(buffers)
        return states

    def _contradiction(self, evidence):
        """Say which piece of evidence cannot be, given those before it."""
        known = list((evidence or {}).items())
        possible, impossible = 0, len(known)  # how many of the first pieces can be, and cannot
        if not known or self.log_partition() == -np.inf:
            return "The factors leave no state of the variables with a positive product: the model has no distribution."
        while impossible - possible > 1:
            middle = (possible + impossible) // 2
            if self.log_partition(dict(known[:middle])) == -np.inf:
                impossible = middle
            else:
                possible = middle
        name, value = known[possible]
        given = f" given {some(dict(known[:possible]).items(), pairs=True)}" if possible else ""
        return f"The evidence has probability zero: {name!r} cannot be {value!r}{given}."

    def certify(self, evidence=None, assignment=None):
        """Prove, from the model's factors and with plain tables, that the answers given this evidence are exact.

        Parameters
        ----------
        evidence : What is known.
        assignment : {variable: label} of all variables, of which it is proved that none is more probable.
        """
        from lemmata.graphical.tree_certificate import certificate

        return certificate(self, evidence, assignment)


class ImpossibleEvidence(ValueError):
    """The evidence has probability zero.

    Examples
    --------
    >>> from lemmata.graphical import BayesNet
    >>> BayesNet({"rain": []}, {"rain": [1.0, 0.0]}).marginals({"rain": 1})
    Traceback (most recent call last):
        ...
    lemmata.graphical.junction_tree.ImpossibleEvidence: The evidence has probability zero: 'rain' cannot be 1.
    """


def compile_cliques(layout: tuple, cliques: Cliques):
    """Lay a forest of cliques into flat arrays; give the program, its tables not yet filled, and each factor's clique."""
    cards, n = layout.cards, len(layout.cards)
    _, starts, members, n_residual, parent, _ = cliques
    rows, columns = tree_layout.clique_sizes(starts, members, n_residual, cards)
    tree_layout.reattach(starts, members, n_residual, parent, rows * columns, n)
    maps = tree_layout.parent_maps(starts, members, n_residual, parent, cards, rows, columns)
    home, stride = tree_layout.homes(starts, members, n_residual, cards, n)
    position = np.empty(n, dtype=np.int64)
    position[cliques.order] = np.arange(n)
    where = tree_layout.factor_cliques(layout.scope_starts, layout.scopes, position, home)
    offset, places, state_starts = starts_of(rows * columns), starts_of(columns), starts_of(cards)
    has_child = np.zeros(len(parent), dtype=np.bool_)
    has_child[parent[parent >= 0]] = True
    shape = (cards, state_starts, starts, members, n_residual, parent, has_child, rows, columns, offset, places)
    return Program(*shape, *maps, home, stride, np.empty(0), np.zeros(len(parent))), where


def _fill(layout, values, logs, where, starts, members, offset, out):
    tree_layout.fill_tables(
        layout.cards, layout.scope_starts, layout.scopes, layout.table_starts, values, logs, where, starts, members, offset, out
    )


def far_apart(layout, where):
    """Tell whether the product of some clique's factors might run out of the range of floats."""
    if not layout.tables.size:
        return False
    begins = layout.table_starts[:-1]
    peak = np.maximum.reduceat(layout.tables, begins)
    least = np.minimum.reduceat(np.where(layout.tables > 0, layout.tables, np.inf), begins)
    alive = (where >= 0) & (peak > 0)
    reach = np.abs(np.log(peak[alive])) + np.abs(np.log(least[alive]))
    return bool(alive.any()) and float(np.bincount(where[alive], reach).max()) > STRAIN


def constants(model):
    """Sum the logarithms of the factors that have no variable."""
    return float(sum(factor.as_log().values for factor in model.factors if not factor.variables))
