"""Orders of elimination, and the tree decompositions they lead to.

Summing variables out of a product one after another joins the neighbors of each: the cost of an order is the size of the
tables on the way. To find the best order is NP-hard; the greedy rules take at each step the vertex that

    "min-fill"           needs the fewest new edges,
    "weighted-min-fill"  needs the lightest new edges, an edge weighing the product of the numbers of states,
    "min-degree"         has the fewest neighbors,
    "min-size"           has the smallest bag, counted in states.

Greedy rules depend on how they break ties, and a little noise in the scores finds better orders than the rule itself: where
tables are large, "auto" tries both fill rules many times, with as much work as one pass over the tables costs.
Bags that lie in others are dropped, and the rest is linked to a tree: the bag of v to the bag of that other member which is
eliminated first (for the chordal graph of an elimination this is a maximum-weight spanning tree of its cliques).
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from lemmata.core import xoshiro
from lemmata.graphical.elimination_kernels import (
    DEGREE,
    FILL,
    GIVEN,
    eliminate_all,
    gather_cliques,
    initial_fill,
    neighbors_of_scopes,
)

RULES = ("min-fill", "weighted-min-fill", "min-degree", "min-size")
NOISE = 1.0  # a score may double: less finds fewer orders, more forgets the rule
MOST_RESTARTS = 2000
WORK = 16  # entries of tables that cost as much to compile as one member of a bag costs to find
HOPELESS = 1e30  # entries that noise will not bring into any memory: better orders are not looked for


class Cliques(NamedTuple):
    """A forest of cliques, children before parents, each with its residual variables first and its separator last."""

    order: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    n_residual: np.ndarray
    parent: np.ndarray
    entries: float  # infinite, if they are more than a float can count


class Elimination(NamedTuple):
    """What eliminating the vertices of a graph in an order gives.

    Attributes
    ----------
    order : The vertices, first eliminated first.
    bags : List of sets: the maximal ones.
    edges : Pairs of numbers of bags: a tree (a forest, if the graph is not connected).
    fill : Edges that were added.

    Examples
    --------
    >>> eliminate({0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]}).bags
    [{0, 1, 3}, {1, 2, 3}]
    """

    order: list
    bags: list
    edges: list
    fill: list

    @property
    def width(self):
        """Vertices in the largest bag, less one."""
        return max(map(len, self.bags), default=0) - 1


def neighbor_sets(graph):
    """Read a graph, with each edge told at one end or at both: {vertex: set of its neighbors}.

    Parameters
    ----------
    graph : {vertex: its neighbors}, or a graph of networkx.

    Examples
    --------
    >>> neighbor_sets({"a": "ab", "b": ""})
    {'a': {'b'}, 'b': {'a'}}
    """
    sets = {name: set() for name in graph}
    for name in sets:
        for other in graph[name]:
            if other not in sets:
                raise ValueError(f"The graph has no vertex {other!r}, which is a neighbor of {name!r}.")
            if other != name:
                sets[name].add(other)
                sets[other].add(name)
    return sets


def eliminate(graph, order="min-fill", *, states=None, restarts=0, random_state=0):
    """Eliminate the vertices of a graph.

    Parameters
    ----------
    graph : {vertex: its neighbors}, each edge told at one end or at both; or a graph of networkx.
    order : "min-fill", "weighted-min-fill", "min-degree", "min-size", "auto", or the vertices in the order to take.
    states : {vertex: number of states}, for the weights; default 2.
    restarts : Number of further tries with noise, of which the one with the smallest tables is kept; None, with "auto", for as
        many as the tables are worth.
    random_state : Seed of the noise, a whole number.

    Examples
    --------
    >>> house = {"A": "B", "B": "ACD", "C": "BD", "D": "BCE", "E": "D"}
    >>> found = eliminate(house, "min-degree")
    >>> [sorted(bag) for bag in found.bags], found.edges, found.width
    ([['A', 'B'], ['B', 'C', 'D'], ['D', 'E']], [(0, 1), (1, 2)], 2)
    >>> square = {0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]}
    >>> eliminate(square, order=[0, 1, 2, 3]).fill
    [(1, 3)]
    """
    sets = neighbor_sets(graph)
    names = list(sets)
    numbers = {name: i for i, name in enumerate(names)}
    pairs = [(i, j) for i, name in enumerate(names) for j in sorted(numbers[other] for other in sets[name]) if i < j]
    scopes = np.array(pairs, dtype=np.int64).ravel()
    cards = np.array([2 if states is None else _count(states, name) for name in names], dtype=np.int64)
    rule = order if isinstance(order, str) else numbered(order, numbers)
    near = neighbors_of_scopes(len(names), np.arange(0, len(scopes) + 1, 2), scopes)
    cliques = find_cliques(near, cards, rule, restarts=restarts, seed=random_state)
    spans = zip(cliques.starts[:-1], cliques.starts[1:], strict=True)
    bags = [{names[v] for v in cliques.members[a:b]} for a, b in spans]
    edges = [(c, int(p)) for c, p in enumerate(cliques.parent) if p >= 0]
    return Elimination([names[v] for v in cliques.order], bags, edges, _fill(sets, cliques, names))


def triangulate(graph, order="min-fill", **options):
    """Add the edges to a graph that make it chordal: every cycle of more than three vertices gets a chord.

    Parameters
    ----------
    graph, order, options : As for `eliminate`.

    Examples
    --------
    >>> square = {0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]}
    >>> triangulate(square)
    {0: {1, 3}, 1: {0, 2, 3}, 2: {1, 3}, 3: {0, 1, 2}}
    """
    chordal = neighbor_sets(graph)
    for a, b in eliminate(graph, order, **options).fill:
        chordal[a].add(b)
        chordal[b].add(a)
    return chordal


def _count(states, name):
    """Look up the number of states of a vertex."""
    if name not in states:
        raise ValueError(f"states must have the number of states of every vertex, and {name!r} is missing.")
    count = states[name]
    if not isinstance(count, Integral) or count < 1:
        raise ValueError(f"The number of states of {name!r} must be a whole number of at least 1, got {count!r}.")
    return int(count)


def numbered(order, numbers):
    """Turn an order of names into one of numbers."""
    if not np.iterable(order):
        raise ValueError(f"order must be one of {', '.join(RULES)}, auto, or a list of all variables, got {order!r}.")
    order = list(order)
    if len(order) != len(numbers) or set(order) != set(numbers):
        raise ValueError("An order of elimination must have every variable exactly once.")
    return np.array([numbers[name] for name in order], dtype=np.int64)


def _fill(sets, cliques, names):
    """List the pairs within cliques that are no edges of the graph, the vertex that the graph has first first."""
    added = {}
    for a, b in zip(cliques.starts[:-1], cliques.starts[1:], strict=True):
        members = cliques.members[a:b].tolist()
        for i, x in enumerate(members):
            near = sets[names[x]]
            for y in members[:i]:
                if names[y] not in near:
                    added[(x, y) if x < y else (y, x)] = None
    return [(names[x], names[y]) for x, y in added]


def find_cliques(near, cards, rule="auto", *, restarts=None, seed=0):
    """Eliminate a graph of numbers and gather its cliques, by the best order found.

    Parameters
    ----------
    near : Starts and neighbors, as `neighbors_of_scopes` gives them.
    cards : Number of states of each vertex.
    rule : One of `RULES`, "auto", or an order.
    restarts : Number of tries with noise; None for as many as the tables are worth.
    """
    starts, neighbors = near
    n = len(cards)
    if restarts is not None and (not isinstance(restarts, Integral) or restarts < 0):
        raise ValueError(f"restarts must be a whole number of at least 0, or None, got {restarts!r}.")
    if isinstance(rule, np.ndarray):
        return _run(near, cards, np.ones(n), np.zeros(n), GIVEN, given=rule)
    if rule not in (*RULES, "auto"):
        raise ValueError(f"order must be one of {', '.join(RULES)}, auto, or a list of all variables, got {rule!r}.")
    ways = []
    if rule in ("min-fill", "auto"):
        ones = np.ones(n)
        ways.append((ones, initial_fill(starts, neighbors, ones), FILL))
    if rule in ("weighted-min-fill", "auto"):
        weight = cards.astype(float)
        ways.append((weight, initial_fill(starts, neighbors, weight), FILL))
    if rule == "min-degree":
        ways.append((np.ones(n), np.zeros(n), DEGREE))
    if rule == "min-size":
        ways.append((np.log(np.maximum(cards, 1.0)), np.zeros(n), DEGREE))
    best = min((_run(near, cards, *way) for way in ways), key=lambda found: found.entries)
    if n == 0:
        return best
    if restarts is None:
        worth = best.entries / (WORK * best.members.size) if rule == "auto" and best.entries < HOPELESS else 0
        restarts = int(min(worth, MOST_RESTARTS))
    state = xoshiro.seed(np.random.default_rng(seed)) if restarts else None
    for k in range(restarts):
        limit = np.log(best.entries)  # one bag alone would be larger than all tables of the best
        found = _run(near, cards, *ways[k % len(ways)], noise=NOISE, state=state, limit=limit)
        if found is not None and found.entries < best.entries:
            best = found
    return best


def _run(near, cards, weight, fill, rule, *, given=None, noise=0.0, state=None, limit=np.inf):
    """Eliminate once; None if a bag outgrew the limit."""
    given = np.empty(0, dtype=np.int64) if given is None else given
    state = np.zeros(4, dtype=np.uint64) if state is None else state
    log_card = np.log(np.maximum(cards, 1.0))
    *found, whole = eliminate_all(*near, weight, fill, rule, given, noise, state, log_card, limit)
    with np.errstate(over="ignore"):  # more entries than a float can count are infinitely many
        return Cliques(found[0], *gather_cliques(*found, cards)) if whole else None
