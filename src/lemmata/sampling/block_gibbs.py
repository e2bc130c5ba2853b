"""Block Gibbs sampling on factor graphs: trees of variables drawn at once, given all others.

    x_B ~ p(x_B | rest) = (1/Z') Π_{m touches B} f_m

If the factors that touch a block tie it together as a forest once the rest is fixed, an exact joint draw costs as much as a
pass of messages: sums go from the leaves to the root (backward filter, β = 1 below a leaf), and states are drawn from the root
to the leaves (forward sampling). On a chain with factors f_i(x_i, x_{i+1}):

    β(N, ·) = 1,  β(i, x_i) = Σ f_i(x_i, x_{i+1}) β(i+1, x_{i+1}),    x₁ ∝ β(1, ·),  x_{i+1} ∝ f_i(x_i, ·) β(i+1, ·)

P is stationary for the same reason as with single variables. Larger blocks tend to forget faster; it is no theorem for all
graphs. A block also crosses zeros inside it that single variables cannot.

References: Jensen, Kjærulff & Kong, International Journal of Human-Computer Studies, 1995; Hamze & de Freitas, UAI 2004.
"""

from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from lemmata.graphical.gibbs_program import Program, incidence
from lemmata.sampling import block_gibbs_kernels as kernels
from lemmata.sampling.factor_gibbs import compiled, draw
from lemmata.sampling.tree_blocks import default_blocks, forest, ties


class Trees(NamedTuple):
    """The forests of all blocks as flat arrays, over clusters: first all nodes (variables), then all links.

    Attributes
    ----------
    places : Where the weights of each cluster lie in the room for messages.
    variables : Variable of each node.
    node_starts, link_starts : Block b has the nodes node_starts[b] to node_starts[b + 1], and likewise links, in the order of
        clusters, each link after the one above it.
    root_starts, roots : Nodes that are drawn first.
    parents, widths : Node above each link, and number of states of all below; entries of nodes are not used.
    child_starts, children : Nodes below each link; nodes have none.
    """

    places: np.ndarray
    variables: np.ndarray
    node_starts: np.ndarray
    link_starts: np.ndarray
    root_starts: np.ndarray
    roots: np.ndarray
    parents: np.ndarray
    widths: np.ndarray
    child_starts: np.ndarray
    children: np.ndarray


class BlockProgram(Program):
    """Draw one block of variables after the other given all others.

    Parameters
    ----------
    blocks : Lists of numbers of variables; clamped ones are left out. Each block must be a forest, and every free variable
        must be in one at least. None: `default_blocks`.

    Examples
    --------
    >>> from lemmata.graphical.factor import Factor, lay_out
    >>> same = [[1.0, 0.0], [0.0, 2.0]]
    >>> program = BlockProgram(lay_out([Factor("ab", same)], {"a": 0, "b": 1}, [2, 2]), [[0, 1]])
    >>> program.classes(), program.chance(0, [1, 1])
    (1, 0.6666666666666666)
    """

    def __init__(self, layout, blocks=None, codes=None, names=None):
        super().__init__(layout, codes, names)
        if blocks is None:
            blocks = default_blocks(layout, self.codes)
        self.blocks = [[int(v) for v in block if self.codes[v] < 0] for block in blocks]
        self._check()
        self._plant()

    def _check(self):
        for b, block in enumerate(self.blocks):
            if len(set(block)) < len(block):
                raise ValueError(f"Block {b} names a variable twice.")
        missing = set(self.free.tolist()) - {v for block in self.blocks for v in block}
        if missing:
            raise ValueError(f"Every variable must be in a block, and {self.names[min(missing)]!r} is in none.")

    def _plant(self):
        layout = self.layout
        starts, factors = incidence(layout, self.codes)
        scope_starts, scopes = layout.scope_starts.tolist(), layout.scopes.tolist()

        def scopes_of(m):
            return scopes[scope_starts[m] : scope_starts[m + 1]]

        def factors_of(v):
            return factors[starts[v] : starts[v + 1]].tolist()

        nodes, links, roots = [], [], []  # of all blocks: (variable, factors), (parent, children, factors), node
        node_starts, link_starts, root_starts = [0], [0], [0]
        for b, block in enumerate(self.blocks):
            single, tied = ties(block, scopes_of, factors_of)
            try:
                tops, branches = forest(block, tied)
            except ValueError as error:
                cycle = " – ".join(repr(self.names[v]) for v in error.args[0])
                raise ValueError(f"Block {b} is no forest: {cycle} make a cycle; move one of them to another block.") from None
            number = {v: len(nodes) + i for i, v in enumerate(block)}
            nodes += [(v, single[v]) for v in block]
            links += [(number[v], [number[u] for u in below], m) for v, below, m in branches]
            roots += [number[r] for r in tops]
            node_starts.append(len(nodes))
            link_starts.append(len(links))
            root_starts.append(len(roots))
        variables = [v for v, _ in nodes]
        members = [[v] for v in variables] + [[variables[p], *(variables[c] for c in below)] for p, below, _ in links]
        parts = [m for _, m in nodes] + [m for _, _, m in links]
        self.wiring = self._wire(_starts(members), list(chain(*members)), _starts(parts), list(chain(*parts)))
        sizes, parents = self.wiring.sizes, np.array([-1] * len(nodes) + [p for p, _, _ in links], dtype=np.int64)
        flat = (
            self._places(sizes, node_starts, np.add(link_starts, len(nodes))),
            variables,
            node_starts,
            np.add(link_starts, len(nodes)),
            root_starts,
            roots,
            parents,
            sizes // np.where(parents >= 0, sizes[parents], 1),
            _starts([[]] * len(nodes) + [below for _, below, _ in links]),
            [c for _, below, _ in links for c in below],
        )
        self.trees = Trees(*(np.asarray(a, dtype=np.int64) for a in flat))
        self.tables = self._tabulate(self.wiring, False)

    @staticmethod
    def _places(sizes, *starts):
        """Lay out nodes and then links of one block at a time: all blocks use the same room, which stays in the cache."""
        places = np.zeros(len(sizes) + 1, dtype=np.int64)
        for block in zip(*map(pairwise, starts), strict=True):
            at = 0
            for first, last in block:
                ends = at + np.cumsum(sizes[first:last])
                places[first:last] = ends - sizes[first:last]
                at = int(ends[-1]) if last > first else at
            places[-1] = max(places[-1], at)
        return places

    def moves(self):
        """Give the variables that change at once, in the order of a sweep."""
        return self.blocks

    def chance(self, i, x):
        """Give the chance that the i-th move arrives at x from a state that agrees with it elsewhere."""
        room = np.empty(self.trees.places[-1]), np.empty(self.tables.widest)
        x = np.asarray(x, dtype=np.int32)
        return float(kernels.block_chance(self.wiring, self.tables, self.log_tables, self.trees, i, x, *room))

    def run(self, x, state, n_sweeps, random_scan=False):
        """Sweep n_sweeps times; x (int32) and the state of the generator move on."""
        done = kernels.run_blocks(self.wiring, self.tables, self.log_tables, self.trees, random_scan, state, x, n_sweeps)
        self._mass(done)

    def record(self, x, state, thin, random_scan, out, logs):
        """Sweep `thin` times for each row of `out`; write states and logarithms of the density."""
        graph = (self.layout.scope_starts, self.layout.scopes, self.layout.cards, self.layout.table_starts)
        done = kernels.record_blocks(
            self.wiring, self.tables, self.log_tables, self.trees, random_scan, state, x, thin, out, logs, graph
        )
        self._mass(done)
        logs += self.layout.log_scale

    def average(self, x, state, n_sweeps, random_scan, sites, sums):
        """Add the conditionals of single variables (`sites` has them) after each of n_sweeps sweeps."""
        own = (self.wiring, self.tables, self.log_tables, self.trees)
        self._mass(kernels.average_blocks(*own, random_scan, state, x, n_sweeps, sites.wiring, sites.tables, sums))

    @staticmethod
    def _mass(done):
        if not done:
            raise FloatingPointError("The weights of a block vanished; its factors differ by more than the range of floats.")


def _starts(lists):
    return np.r_[0, np.cumsum([len(entries) for entries in lists], dtype=np.int64)]


def block_gibbs(
    model,
    n_draws=1000,
    blocks=None,
    *,
    evidence=None,
    n_chains=4,
    warmup=None,
    thin=1,
    scan="systematic",
    start=None,
    random_state=None,
    verbose=0,
):
    """Draw states of all variables of a model given evidence, by Gibbs sampling of trees of variables at a time.

    Parameters
    ----------
    model : `FactorGraph` or `BayesNet`.
    n_draws : Draws that each chain keeps.
    blocks : Lists of variables that are drawn together. Given all others, the factors must tie a block together as a forest.
        Together they hold all variables; [["a", "b"], ["c"]] are two blocks. Default: few large trees.
    evidence : {variable: label or number of its state, or likelihoods of its states}.
    n_chains : Chains, which run on threads.
    warmup : Sweeps before the first draw. Default: half as many as follow.
    thin : Sweeps for each draw.
    scan : "systematic" draws every block in turn in each sweep, "random" as many, each chosen at random.
    start : {variable: label}, or numbers of states (n_variables,); or one of these for each chain; or a function of a generator
        that gives one. Default: at random, a start for each chain.
    random_state : Seed or generator.
    verbose : 1 shows a progress bar.

    Returns
    -------
    Draws of the numbers of states (chains × draws × variables), with the log of the product of all factors at each.

    Examples
    --------
    >>> from lemmata.graphical import FactorGraph
    >>> equal, loose = [[1, 0], [0, 2]], [[2, 1], [1, 2]]
    >>> graph = FactorGraph([("ab", equal), ("bc", loose), ("ca", loose)])
    >>> draws = block_gibbs(graph, 2000, [["a", "b"], ["c"]], random_state=0)
    >>> draws.mean().round(1), graph.marginals()["a"].round(2)
    (array([0.7, 0.7, 0.6]), array([0.33, 0.67]))
    """
    program = compiled(model, evidence, "trees" if blocks is None else blocks)
    return draw(program, model, n_draws, evidence, n_chains, warmup, thin, scan, start, random_state, verbose)
