"""Tree decompositions: the checker, the bounds and the exact width against brute force, and the chordal route."""

from itertools import combinations, permutations

import numpy as np
import pytest

from lemmata.graphical.decomposition import (
    TreeDecomposition,
    clique_tree,
    dependency_graph,
    exact_treewidth,
    is_chordal,
    maximal_cliques,
    moralize,
    perfect_order,
    tree_decomposition,
    treewidth_bound,
)
from lemmata.graphical.elimination import triangulate
from lemmata.graphical.factor import Factor

HOUSE = {"A": "B", "B": "ACD", "C": "BD", "D": "BCE", "E": "D"}  # edges AB, BC, BD, CD, DE
WORKED = {"A": (), "B": "A", "C": "A", "D": "A", "E": "BC", "F": "CD"}  # P(A)P(B|A)P(C|A)P(D|A)P(E|B,C)P(F|C,D)


def random_graph(rng, n, chance):
    graph = {v: set() for v in range(n)}
    for a, b in combinations(range(n), 2):
        if rng.random() < chance:
            graph[a].add(b)
            graph[b].add(a)
    return graph


def ring(n):
    return {i: {(i - 1) % n, (i + 1) % n} for i in range(n)}


def complete(n):
    return {i: set(range(n)) - {i} for i in range(n)}


def grid(m, n):
    near = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    points = {(i, j) for i in range(m) for j in range(n)}
    return {(i, j): {(i + a, j + b) for a, b in near} & points for i, j in sorted(points)}


def random_tree(rng, n):
    return dependency_graph([(v, int(rng.integers(v))) for v in range(1, n)])


def petersen():
    outer = [(i, (i + 1) % 5) for i in range(5)]
    inner = [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    return dependency_graph(outer + inner + [(i, i + 5) for i in range(5)])


def width_of_order(graph, order):
    """Eliminate, by the definition."""
    near, width = {v: set(u) for v, u in graph.items()}, 0
    for v in order:
        others = near.pop(v)
        width = max(width, len(others))
        for u in others:
            near[u] = (near[u] | others) - {u, v}
    return width


def is_clique(graph, vertices):
    return all(b in graph[a] for a, b in combinations(vertices, 2))


@pytest.mark.item("GRM-13")
def test_moral_and_dependency_graphs_have_a_clique_for_each_factor_and_nothing_else():
    rng = np.random.default_rng(0)
    for _ in range(30):
        parents = {v: tuple(u for u in range(v) if rng.random() < 0.3) for v in range(8)}
        graph = moralize(parents)
        assert list(graph) == list(parents)
        pairs = {frozenset(p) for v, family in parents.items() for p in combinations((v, *family), 2)}
        assert {frozenset((a, b)) for a in graph for b in graph[a]} == pairs
        factors = [Factor((*family, v), np.ones((2,) * (len(family) + 1))) for v, family in parents.items()]
        assert dependency_graph(factors) == graph
        for factor in factors:
            assert is_clique(graph, factor.variables)


@pytest.mark.item("GRM-05")
def test_one_graph_may_stand_for_different_factors():
    assert dependency_graph(["ABC"]) == dependency_graph(["AB", "BC", "CA"])


def test_moralize_agrees_with_networkx():
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(1)
    parents = {v: tuple(u for u in range(v) if rng.random() < 0.2) for v in range(20)}
    graph = networkx.DiGraph([(u, v) for v, family in parents.items() for u in family])
    graph.add_nodes_from(parents)
    moral = networkx.moral_graph(graph)
    assert {v: set(moral[v]) for v in moral} == moralize(parents)


@pytest.mark.item("GRM-14")
def test_the_decomposition_of_the_notes_is_valid():
    found = TreeDecomposition([{"A", "B"}, {"B", "C", "D"}, {"D", "E"}], [(0, 1), (1, 2)])
    assert found.width == 2
    assert found.certify(HOUSE).holds
    assert found.certify(HOUSE).kind == "proof"
    assert found.certify(HOUSE)["width over its bound"].value == 0


@pytest.mark.item("GRM-14")
@pytest.mark.parametrize(
    ("bags", "edges", "refused"),
    [
        (["AB", "BC", "CD", "DE"], [(0, 1), (1, 2), (2, 3)], ["edges"]),  # BD is in no bag
        (["BCD", "DE"], [(0, 1)], ["vertices", "edges"]),
        (["ABZ", "BCD", "DE"], [(0, 1), (1, 2)], ["vertices"]),
        (["AB", "BCD", "DE"], [(0, 1), (0, 2)], ["running intersection"]),
        (["AB", "BCD", "DE"], [(0, 1)], ["running intersection"]),
        (["AB", "BCD", "DE", "BD"], [(0, 1), (1, 2), (1, 3), (3, 0)], ["tree", "running intersection"]),
        (["AB", "BCD", "DE"], [(0, 1), (1, 2), (2, 0)], ["tree"]),
        (["AB", "BCD", "DE"], [(0, 1), (1, 2), (1, 2)], ["tree", "running intersection"]),
    ],
)
def test_each_condition_is_missed_when_it_fails(bags, edges, refused):
    certificate = TreeDecomposition(bags, edges).certify(HOUSE)
    assert [check.name for check in certificate.failed] == refused


def test_certificates_against_the_definition():
    rng = np.random.default_rng(2)
    verdicts = []
    for _ in range(300):
        graph = random_graph(rng, 5, 0.4)
        found = tree_decomposition(graph)
        bags = [set(bag) for bag in found.bags]
        edges = list(found.edges)
        if rng.random() < 0.7:  # spoil it, perhaps
            bags[rng.integers(len(bags))] ^= {int(rng.integers(5))}
        if edges and rng.random() < 0.3:
            edges[rng.integers(len(edges))] = tuple(rng.integers(len(bags), size=2))
        verdicts.append(TreeDecomposition(bags, edges).certify(graph).holds)
        assert verdicts[-1] == valid_by_definition(graph, bags, edges)
    assert 50 < sum(verdicts) < 250


def valid_by_definition(graph, bags, edges):
    """Check conditions by paths: the bags on every path between two bags with v have v; no two paths join the same bags."""
    if set().union(*bags) != set(graph):
        return False
    if not all(any({a, b} <= bag for bag in bags) for a in graph for b in graph[a]):
        return False
    near = {i: [b if a == i else a for a, b in edges if i in (a, b)] for i in range(len(bags))}

    def paths(path, end):
        if path[-1] == end:
            yield path
        else:
            for step in near[path[-1]]:
                if step not in path:
                    yield from paths([*path, step], end)

    for i, j in combinations(range(len(bags)), 2):
        found = list(paths([i], j))
        if len(found) > 1 or (not found and bags[i] & bags[j]):
            return False
        if found and not all(bags[i] & bags[j] <= bags[k] for k in found[0]):
            return False
    return all(a != b for a, b in edges)


@pytest.mark.item("GRM-14")
def test_widths_that_are_known():
    rng = np.random.default_rng(3)
    known = [(ring(5), 2), (ring(9), 2), (random_tree(rng, 10), 1), (complete(6), 5), (HOUSE, 2), (grid(2, 5), 2)]
    known += [({"lonely": ()}, 0), ({}, -1), ({"a": "b", "b": "a", "c": ""}, 1)]
    for graph, width in known:
        assert exact_treewidth(graph) == width
        assert treewidth_bound(graph) == (width, width)
        found = tree_decomposition(graph)
        assert found.width == width
        if graph:
            assert found.certify(graph).holds


@pytest.mark.slow_without_jit
@pytest.mark.item("GRM-15")
def test_widths_of_harder_graphs():
    for graph, width in [(grid(3, 3), 3), (grid(3, 5), 3), (grid(4, 4), 4), (petersen(), 4), (ring(15), 2)]:
        assert exact_treewidth(graph) == width
        lower, upper = treewidth_bound(graph)
        assert lower <= width <= upper


@pytest.mark.item("GRM-15")
def test_exact_width_is_the_best_of_all_orders():
    rng = np.random.default_rng(4)
    for _ in range(25):
        graph = random_graph(rng, int(rng.integers(2, 7)), rng.uniform(0.2, 0.9))
        best = min(width_of_order(graph, order) for order in permutations(graph))
        assert exact_treewidth(graph) == best
        lower, upper = treewidth_bound(graph)
        assert lower <= best <= upper


def test_bounds_of_larger_graphs_are_in_order_and_no_less_than_a_clique_asks():
    rng = np.random.default_rng(5)
    for n in (30, 60, 100):
        graph = random_graph(rng, n, 0.05)
        clique = [int(v) for v in rng.choice(n, size=7, replace=False)]
        for v in clique:
            graph[v] |= set(clique) - {v}
        lower, upper = treewidth_bound(graph)
        assert 6 <= lower <= upper
        assert tree_decomposition(graph).certify(graph).holds


def test_disconnected_graphs_are_worked_out_part_by_part():
    parts = dependency_graph([(10 * k + i, 10 * k + (i + 1) % 4) for k in range(10) for i in range(4)])
    assert exact_treewidth(parts) == 2
    found = tree_decomposition(parts)
    assert found.certify(parts).holds
    assert len(found.edges) == len(found.bags) - 10


@pytest.mark.item("GRM-16")
def test_chordal_just_if_some_order_is_perfect():
    rng = np.random.default_rng(6)
    answers = []
    for _ in range(150):
        graph = random_graph(rng, int(rng.integers(3, 7)), 0.5)
        fill_free = any(is_perfect(graph, order) for order in permutations(graph))
        assert is_chordal(graph) == fill_free
        order = perfect_order(graph)
        assert (order is not None) == fill_free
        if order is not None:
            assert is_perfect(graph, order)
        answers.append(fill_free)
    assert 20 < sum(answers) < 130


def is_perfect(graph, order):
    place = {v: i for i, v in enumerate(order)}
    return all(is_clique(graph, [u for u in graph[v] if place[u] > place[v]]) for v in order)


@pytest.mark.item("GRM-16")
def test_maximal_cliques_and_their_tree():
    rng = np.random.default_rng(7)
    for _ in range(60):
        graph = random_graph(rng, 8, rng.uniform(0.1, 0.6))
        chordal = triangulate(graph)
        assert is_chordal(chordal)
        cliques = maximal_cliques(chordal)
        subsets = [set(s) for k in range(1, 9) for s in combinations(chordal, k) if is_clique(chordal, s)]
        largest = [s for s in subsets if not any(s < other for other in subsets)]
        assert sorted(map(sorted, cliques)) == sorted(map(sorted, largest))
        found = clique_tree(chordal)
        assert found.certify(chordal).holds
        assert found.certify(graph).holds
        assert found.width == max(map(len, cliques)) - 1
        # a vertex in k bags is in k − 1 separators: no spanning tree has more common vertices
        assert sum(map(len, found.separators)) == sum(map(len, found.bags)) - len(graph)


@pytest.mark.item("GRM-16")
def test_the_worked_junction_tree():
    graph = moralize(WORKED)
    assert is_chordal(graph)
    for found in (clique_tree(graph), clique_tree(triangulate(graph)), tree_decomposition(graph, "min-degree")):
        assert {"".join(sorted(bag)) for bag in found.bags} == {"BCE", "ABC", "ACD", "CDF"}
        assert sorted("".join(sorted(common)) for common in found.separators) == ["AC", "BC", "CD"]
        ends = {frozenset("".join(sorted(found.bags[i])) for i in edge) for edge in found.edges}
        assert ends == {frozenset(("BCE", "ABC")), frozenset(("ABC", "ACD")), frozenset(("ACD", "CDF"))}
        assert found.width == 2
        assert found.certify(graph).holds


def test_chordality_agrees_with_networkx():
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(8)
    for _ in range(50):
        graph = random_graph(rng, 12, rng.uniform(0.05, 0.9))
        for each in (graph, triangulate(graph)):
            other = networkx.Graph([(a, b) for a in each for b in each[a]])
            other.add_nodes_from(each)
            assert is_chordal(each) == networkx.is_chordal(other)


def test_edges_told_at_one_end_and_loops():
    assert exact_treewidth({"a": ["a", "b"], "b": [], "c": ["a", "b"]}) == 2
    assert is_chordal({"a": ["b", "c"], "b": ["c"], "c": []})


def test_errors():
    with pytest.raises(ValueError, match="up to 20 connected vertices, and there are 21; treewidth_bound"):
        exact_treewidth(ring(21))
    with pytest.raises(ValueError, match="no vertex 'z', which is a neighbor of 'a'"):
        treewidth_bound({"a": "z"})
    with pytest.raises(ValueError, match="triangulate it first"):
        maximal_cliques(ring(4))
    with pytest.raises(ValueError, match="there are 1 bags"):
        TreeDecomposition(["AB"], [(0, 1)])
    with pytest.raises(ValueError, match="The parent 'q' of 'a'"):
        moralize({"a": "q"})


def test_graphs_told_at_one_end_and_by_networkx():
    nx = pytest.importorskip("networkx")
    once = {name: [other for other in near if other > name] for name, near in petersen().items()}
    for graph in (once, petersen(), nx.petersen_graph()):
        assert exact_treewidth(graph) == 4
        assert treewidth_bound(graph).lower <= 4 <= treewidth_bound(graph).upper
        assert not is_chordal(graph)
        assert tree_decomposition(graph).certify(graph).holds
        assert clique_tree(triangulate(graph)).certify(graph).holds
    assert maximal_cliques(nx.path_graph(3)) == [{2, 1}, {1, 0}]


def least_degrees(graph):
    """Contract as the bound does, looking at every vertex in every step."""
    near = {name: set(others) for name, others in graph.items()}
    bound = 0
    while near:
        name = min(near, key=lambda v: (len(near[v]), v))
        others = near.pop(name)
        bound = max(bound, len(others))
        for other in others:
            near[other].discard(name)
        if others:
            into = min(others, key=lambda v: (len(near[v] & others), v))
            for other in others - {into}:
                near[into].add(other)
                near[other].add(into)
    return bound


def test_the_heap_finds_the_least_degrees():
    rng = np.random.default_rng(7)
    for n in (1, 5, 20, 40):
        for chance in (0.05, 0.2, 0.6):
            graph = random_graph(rng, n, chance)
            assert treewidth_bound(graph).lower == least_degrees(graph)


@pytest.mark.slow_without_jit
def test_long_paths_and_wide_stars_take_no_time():
    # Each took a minute when every vertex, or every pair of cliques, was looked at for every other.
    n = 20_000
    path = {v: [v + 1] if v < n - 1 else [] for v in range(n)}
    assert treewidth_bound(path) == (1, 1)
    star = {0: range(1, n), **dict.fromkeys(range(1, n), ())}
    found = clique_tree(star)
    assert len(found.bags) == n - 1
    assert len(found.edges) == n - 2
    assert found.certify(star).holds


def test_clique_trees_have_as_many_common_vertices_as_any():
    rng = np.random.default_rng(3)
    for _ in range(40):
        graph = triangulate(random_graph(rng, 9, 0.3))
        found = clique_tree(graph)
        assert found.certify(graph).holds
        bags = found.bags
        assert all(not a < b for a in bags for b in bags)
        # Kruskal over all pairs.
        pairs = sorted(combinations(range(len(bags)), 2), key=lambda pair: -len(bags[pair[0]] & bags[pair[1]]))
        part, heaviest = list(range(len(bags))), 0
        for a, b in pairs:
            if part[a] != part[b]:
                heaviest += len(bags[a] & bags[b])
                part = [part[a] if p == part[b] else p for p in part]
        assert sum(map(len, found.separators)) == heaviest
