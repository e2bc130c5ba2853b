"""Tree decompositions: what makes a graph of variables cheap, how cheap it can be at best, and a checker for both.

A tree decomposition puts the vertices of a graph into bags, linked to a tree, so that
    1. every vertex is in a bag,
    2. every edge lies within a bag,
    3. the bags of each vertex are connected (running intersection).
Its width is the size of the largest bag less one; the treewidth is the least width there is: 1 for a tree, 2 for a cycle,
n − 1 for a complete graph. Exact inference costs the product of the states of a bag, so the width is what counts.

Below, the treewidth is at least the degree of any vertex of least degree in a minor (Gogate and Dechter), which is never less
than a clique without one vertex; above, it is at most the width of any order of elimination. For a few vertices it is worked
out: with Q(S, v) the vertices outside S that v sees through S,  width(S) = min_{v ∈ S} max(width(S − v), |Q(S − v, v)|).

A graph is chordal if every cycle of more than three vertices has a chord or, the same, if there is a perfect order: each
vertex and its later neighbors are a clique. Maximum cardinality search finds one if there is one. Then the maximal cliques,
joined by a spanning tree in which the common vertices are as many as possible, are a tree decomposition.

References: Tarjan and Yannakakis, SIAM Journal on Computing 1984; Jensen and Jensen, UAI 1994; Gogate and Dechter, UAI 2004;
Bodlaender, Fomin, Koster, Kratsch and Thilikos, ACM Transactions on Algorithms 2012.
"""

from collections import Counter
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.core.kernel import kernel
from lemmata.graphical.elimination import eliminate, neighbor_sets

MOST_VERTICES = 20  # a byte for each of their subsets, and a second of work


def moralize(parents):
    """Marry the parents of each variable, and drop the arrows.

    Parameters
    ----------
    parents : {variable: its parents}.

    Returns
    -------
    graph : {variable: set of its neighbors}.

    Examples
    --------
    >>> {name: sorted(near) for name, near in moralize({"a": (), "b": (), "c": ("a", "b")}).items()}
    {'a': ['b', 'c'], 'b': ['a', 'c'], 'c': ['a', 'b']}
    """
    for name, family in parents.items():
        for parent in family:
            if parent not in parents:
                raise ValueError(f"The parent {parent!r} of {name!r} is no variable of the net.")
    return dependency_graph([[name] for name in parents] + [[name, *family] for name, family in parents.items()])


def dependency_graph(factors):
    """Join all variables that have a factor in common: a clique for each factor.

    Parameters
    ----------
    factors : Factors, or the lists of their variables.

    Returns
    -------
    graph : {variable: set of its neighbors}.

    Examples
    --------
    >>> {name: sorted(near) for name, near in dependency_graph(["AB", "BCD"]).items()}
    {'A': ['B'], 'B': ['A', 'C', 'D'], 'C': ['B', 'D'], 'D': ['B', 'C']}
    """
    graph = {}
    for factor in factors:
        scope = set(getattr(factor, "variables", factor))
        for name in getattr(factor, "variables", factor):
            graph.setdefault(name, set()).update(scope)
    for name, near in graph.items():
        near.discard(name)
    return graph


class TreeDecomposition:
    """Bags of vertices, linked to a tree.

    Parameters
    ----------
    bags : List of sets of vertices.
    edges : Pairs of numbers of bags: a tree, or a forest for a graph that is not connected.

    Examples
    --------
    >>> found = TreeDecomposition(["AB", "BCD", "DE"], [(0, 1), (1, 2)])
    >>> found.width, [sorted(common) for common in found.separators]
    (2, [['B'], ['D']])
    >>> graph = {"A": "B", "B": "ACD", "C": "BD", "D": "BCE", "E": "D"}
    >>> found.certify(graph).holds
    True
    >>> [check.name for check in TreeDecomposition(["AB", "BCD", "DE"], [(0, 1), (0, 2)]).certify(graph).failed]
    ['running intersection']
    """

    def __init__(self, bags, edges):
        self.bags = [frozenset(bag) for bag in bags]
        self.edges = [(int(a), int(b)) for a, b in edges]
        for a, b in self.edges:
            if not (0 <= a < len(self.bags) and 0 <= b < len(self.bags)):
                raise ValueError(f"The edge ({a}, {b}) needs bags of these numbers, and there are {len(self.bags)} bags.")

    def __repr__(self):
        return f"TreeDecomposition({len(self.bags)} bags, width {self.width})"

    @property
    def width(self):
        """Vertices of the largest bag, less one."""
        return max(map(len, self.bags), default=0) - 1

    @property
    def separators(self):
        """What the bags at the ends of each edge have in common."""
        return [self.bags[a] & self.bags[b] for a, b in self.edges]

    def certify(self, graph):
        """Check the three conditions for a graph, and compare the width with a bound that no decomposition can beat."""
        graph = neighbor_sets(graph)
        homes = {name: set() for name in graph}
        for i, bag in enumerate(self.bags):
            for name in bag:
                homes.setdefault(name, set()).add(i)
        links = Counter(name for common in self.separators for name in common)
        lost = sum(not home for home in homes.values()) + len(homes) - len(graph)
        torn = sum(homes[a].isdisjoint(homes[b]) for a, near in graph.items() for b in near) // 2
        # in a forest, as many bags as edges between them and one more are connected
        apart = sum(abs(len(home) - links[name] - 1) for name, home in homes.items() if home)
        closing = len(self.edges) - len(_spanning(len(self.bags), self.edges))
        over = self.width - _minor_degree(graph)
        return Certificate(
            Check("tree", closing, 0, "proof", "no edge between bags closes a cycle"),
            Check("vertices", lost, 0, "proof", "every vertex is in a bag, and nothing else is"),
            Check("edges", torn, 0, "proof", "the ends of every edge are together in a bag"),
            Check("running intersection", apart, 0, "proof", "the bags of each vertex are connected"),
            Check("width over its bound", over, np.inf, "proof", "no tree decomposition is narrower by more than this"),
            subject=repr(self),
        )


def _spanning(n, edges):
    """Keep of the edges between n points those that join what no earlier one has joined."""
    root, kept = list(range(n)), []
    for edge in edges:
        a, b = edge
        while root[a] != a:
            root[a] = a = root[root[a]]
        while root[b] != b:
            root[b] = b = root[root[b]]
        if a != b:
            root[a] = b
            kept.append(edge)
    return kept


def tree_decomposition(graph, order="min-fill"):
    """Decompose a graph by eliminating its vertices.

    Parameters
    ----------
    graph : {vertex: its neighbors}.
    order : As for `eliminate`.

    Examples
    --------
    >>> ring = {i: [(i - 1) % 5, (i + 1) % 5] for i in range(5)}
    >>> found = tree_decomposition(ring)
    >>> found.width, found.certify(ring).holds
    (2, True)
    """
    found = eliminate(graph, order)
    return TreeDecomposition(found.bags, found.edges)


class WidthBound(NamedTuple):
    """Between which numbers a treewidth lies."""

    lower: int
    upper: int


def treewidth_bound(graph):
    """Bound the treewidth of a graph from below and from above, in little time.

    Examples
    --------
    >>> treewidth_bound({i: [(i - 1) % 5, (i + 1) % 5] for i in range(5)})
    WidthBound(lower=2, upper=2)
    """
    graph = neighbor_sets(graph)
    return WidthBound(_minor_degree(graph), min(eliminate(graph, order).width for order in ("min-fill", "min-degree")))


def _minor_degree(graph):
    """Contract vertices of least degree with the neighbor that shares least with them; the largest such degree is a bound."""
    names = list(graph)
    place = {name: i for i, name in enumerate(names)}  # breaks ties: sets have no order of their own
    near = {name: set(others) for name, others in graph.items()}
    heap = [(len(others), place[name]) for name, others in near.items()]
    heapify(heap)
    bound = 0 if near else -1
    while heap:
        degree, at = heappop(heap)
        name = names[at]
        if name not in near or len(near[name]) != degree:  # gone, or there is a later entry for it
            continue
        others = near.pop(name)
        bound = max(bound, degree)
        for other in others:
            near[other].discard(name)
        if others:
            into = min(others, key=lambda v: (len(near[v] & others), place[v]))
            gained = others - near[into] - {into}
            near[into] |= gained
            for other in gained:
                near[other].add(into)
        for other in others:
            heappush(heap, (len(near[other]), place[other]))
    return bound


@kernel
def best_widths(near, n, width):
    """Fill in the least width of eliminating each set of vertices first; sets and neighborhoods are numbers in base two."""
    for chosen in range(1, 1 << n):
        best = n
        for v in range(n):
            if chosen >> v & 1:
                before = chosen ^ (1 << v)
                if width[before] >= best:
                    continue
                seen = near[v]  # what v sees through the vertices eliminated before it
                entered = 0
                fresh = seen & before
                while fresh:
                    entered |= fresh
                    u = 0
                    while fresh:
                        if fresh & 1:
                            seen |= near[u]
                        fresh >>= 1
                        u += 1
                    fresh = seen & before & ~entered
                seen &= ~chosen
                degree = 0
                while seen:
                    seen &= seen - 1
                    degree += 1
                best = min(best, max(width[before], degree))
        width[chosen] = best


def exact_treewidth(graph):
    """Work out the treewidth of a graph whose connected parts are small.

    Time and memory grow as 2ⁿ for a part of n vertices, which may have 20.

    Examples
    --------
    >>> exact_treewidth({i: [j for j in range(4) if j != i] for i in range(4)})
    3
    """
    graph = neighbor_sets(graph)
    largest = 0 if graph else -1
    for part in _components(graph):
        if len(part) > MOST_VERTICES:
            raise ValueError(
                f"The treewidth is worked out for up to {MOST_VERTICES} connected vertices, and there are {len(part)}; "
                "treewidth_bound tells between which numbers it lies."
            )
        numbers = {name: i for i, name in enumerate(part)}
        near = np.array([sum(1 << numbers[other] for other in graph[name]) for name in part], dtype=np.int64)
        width = np.zeros(1 << len(part), dtype=np.int8)
        best_widths(near, len(part), width)
        largest = max(largest, int(width[-1]))
    return largest


def _components(graph):
    """Split the vertices into connected parts."""
    seen, parts = set(), []
    for name in graph:
        if name not in seen:
            part = [name]
            seen.add(name)
            for v in part:
                for u in graph[v]:
                    if u not in seen:
                        seen.add(u)
                        part.append(u)
            parts.append(part)
    return parts


def perfect_order(graph):
    """Find an order in which each vertex and its later neighbors are a clique; None if the graph is not chordal.

    Maximum cardinality search: number the vertices from the last, next always one with most neighbors that have a number.

    Examples
    --------
    >>> perfect_order({"A": "BC", "B": "ACD", "C": "ABD", "D": "BC"})
    ['D', 'C', 'B', 'A']
    >>> print(perfect_order({0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]}))
    None
    """
    found = _search(neighbor_sets(graph))
    return None if found is None else list(found)


def _search(graph):
    """Give {vertex: its later neighbors}, first eliminated first, of a chordal graph, or None."""
    count, place = dict.fromkeys(graph, 0), {name: i for i, name in enumerate(graph)}
    buckets = [dict.fromkeys(graph)]  # sets that keep their order
    later = {}
    while count:
        while not buckets[-1]:
            buckets.pop()
        name = next(iter(buckets[-1]))
        del buckets[-1][name], count[name]
        later[name] = graph[name] & later.keys()
        for other in sorted(graph[name], key=place.get):
            if other in count:
                del buckets[count[other]][other]
                count[other] += 1
                if count[other] == len(buckets):
                    buckets.append({})
                buckets[count[other]][other] = None
    rank = {name: i for i, name in enumerate(later)}
    for near in later.values():
        if near:
            last = max(near, key=rank.get)  # the first of them to be eliminated
            if not near - {last} <= later[last]:
                return None
    return dict(reversed(later.items()))


def is_chordal(graph):
    """Tell whether every cycle of more than three vertices has a chord.

    Examples
    --------
    >>> is_chordal({0: [1, 2], 1: [0, 2], 2: [0, 1]}), is_chordal({0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [0, 2]})
    (True, False)
    """
    return _search(neighbor_sets(graph)) is not None


def maximal_cliques(graph):
    """List the cliques of a chordal graph that lie in no other; there are at most as many as vertices.

    Examples
    --------
    >>> [sorted(clique) for clique in maximal_cliques({"A": "B", "B": "ACD", "C": "BD", "D": "BC"})]
    [['B', 'C', 'D'], ['A', 'B']]
    """
    return _linked_cliques(graph)[0]


def clique_tree(graph):
    """Link the maximal cliques of a chordal graph to a tree, with as many common vertices as possible.

    A spanning tree of cliques has the running intersection property just if no other has more common vertices in all. A perfect
    order gives one: the clique of each vertex hangs on that of the later neighbor which is eliminated first.

    Examples
    --------
    >>> graph = {"A": "BC", "B": "ACD", "C": "ABD", "D": "BC"}
    >>> found = clique_tree(graph)
    >>> [sorted(bag) for bag in found.bags], found.edges, found.certify(graph).holds
    ([['B', 'C', 'D'], ['A', 'B', 'C']], [(0, 1)], True)
    """
    return TreeDecomposition(*_linked_cliques(graph))


def _linked_cliques(graph):
    """Find the maximal cliques of a chordal graph, and the links between them."""
    later = _search(neighbor_sets(graph))
    if later is None:
        raise ValueError("The maximal cliques are listed for chordal graphs, and this one is not; triangulate it first.")
    rank = {name: i for i, name in enumerate(later)}
    follows = {name: min(near, key=rank.get) for name, near in later.items() if near}
    cliques, home = [], {}
    for name, near in later.items():
        if name not in home:
            home[name] = len(cliques)
            cliques.append({name, *near})
        up = follows.get(name)
        if near and up not in home and len(near) > len(later[up]):
            home[up] = home[name]  # its own clique lies within this one
    return cliques, [(home[name], home[up]) for name, up in follows.items() if home[name] != home[up]]
