"""Orders of elimination: the catalogue's graphs, and the bookkeeping of fill against counting."""

from itertools import combinations

import numpy as np
import pytest

from lemmata.graphical import eliminate, triangulate
from lemmata.graphical.elimination import RULES, find_cliques
from lemmata.graphical.elimination_kernels import neighbors_of_scopes


def random_graph(seed, n=12, share=0.3):
    rng = np.random.default_rng(seed)
    graph = {v: set() for v in range(n)}
    for a, b in combinations(range(n), 2):
        if rng.random() < share:
            graph[a].add(b)
            graph[b].add(a)
    return graph


def cycle(n):
    return {v: {(v - 1) % n, (v + 1) % n} for v in range(n)}


def greedy_by_counting(graph, score):
    """Eliminate with scores counted anew at every step; ties go to the first vertex."""
    left = {v: set(near) for v, near in graph.items()}
    order, bags = [], []
    while left:
        v = min(left, key=lambda u: (score(left, u), u))
        order.append(v)
        bags.append({v} | left[v])
        for a, b in combinations(left[v], 2):
            left[a].add(b)
            left[b].add(a)
        for u in left.pop(v):
            left[u].discard(v)
    return order, [bag for i, bag in enumerate(bags) if not any(bag < other for other in bags)]


def fill(left, v):
    return sum(b not in left[a] for a, b in combinations(left[v], 2))


@pytest.mark.item("GRM-15")
@pytest.mark.parametrize("seed", range(25))
def test_greedy_rules_equal_counting_anew(seed):
    graph = random_graph(seed, n=5 + seed, share=0.1 + 0.02 * seed)
    cards = {v: 2 + v % 3 for v in graph}

    def weighted(left, v):
        return sum(cards[a] * cards[b] for a, b in combinations(left[v], 2) if b not in left[a])

    for rule, score in (
        ("min-fill", fill),
        ("min-degree", lambda left, v: len(left[v])),
        ("weighted-min-fill", weighted),
    ):
        order, bags = greedy_by_counting(graph, score)
        found = eliminate(graph, rule, states=cards)
        assert found.order == order
        assert sorted(map(sorted, found.bags)) == sorted(map(sorted, bags))


@pytest.mark.item("GRM-15")
def test_graphs_of_the_catalogue():
    assert [len(bag) for bag in eliminate(cycle(5), "min-degree").bags] == [3, 3, 3]
    assert eliminate(cycle(5)).width == 2
    complete = {v: set(range(4)) - {v} for v in range(4)}
    assert eliminate(complete).bags == [{0, 1, 2, 3}]
    fig5 = {"A": "B", "B": "ACD", "C": "BD", "D": "BCE", "E": "D"}
    assert {frozenset(bag) for bag in eliminate(fig5, "min-degree").bags} == {frozenset(b) for b in ("AB", "DE", "BCD")}
    moral = {"A": "BCD", "B": "ACE", "C": "ABDEF", "D": "ACF", "E": "BC", "F": "CD"}
    bags = {frozenset(bag) for bag in eliminate(moral, "min-degree").bags}
    assert bags == {frozenset(b) for b in ("BCE", "ABC", "ACD", "CDF")}
    star = {0: {1, 2, 3}, 1: {0}, 2: {0}, 3: {0}}
    assert eliminate(star).width == 1


@pytest.mark.item("GRM-16")
@pytest.mark.parametrize("seed", range(10))
def test_triangulated_graphs_are_chordal(seed):
    graph = random_graph(seed)
    chordal = triangulate(graph)
    found = eliminate(graph)
    for i, v in enumerate(found.order):  # the order is a perfect one: later neighbors are all joined
        later = chordal[v] & set(found.order[i + 1 :])
        assert all(b in chordal[a] for a, b in combinations(later, 2))
    assert all(graph[v] <= chordal[v] for v in graph)
    added = {frozenset((a, b)) for a in chordal for b in chordal[a] - graph[a]}
    assert added == {frozenset(edge) for edge in found.fill}
    assert not eliminate(chordal, found.order).fill


def test_the_tree_of_bags_has_the_running_intersection():
    for seed in range(10):
        graph = random_graph(seed, share=0.25)
        for rule in RULES:
            found = eliminate(graph, rule)
            for v in graph:
                holders = [i for i, bag in enumerate(found.bags) if v in bag]
                inside = [edge for edge in found.edges if v in found.bags[edge[0]] and v in found.bags[edge[1]]]
                assert len(inside) == len(holders) - 1
            for a in graph:
                assert all(any({a, b} <= bag for bag in found.bags) for b in graph[a])


def test_restarts_never_make_tables_larger():
    graph = random_graph(4, n=40, share=0.12)
    pairs = np.array([(a, b) for a in graph for b in graph[a]]).ravel()
    near = neighbors_of_scopes(40, np.arange(0, len(pairs) + 1, 2), pairs)
    cards = np.random.default_rng(0).integers(2, 6, size=40)
    once = min(find_cliques(near, cards, rule).entries for rule in ("min-fill", "weighted-min-fill"))
    many = find_cliques(near, cards, "auto", restarts=200)
    assert many.entries < once  # on this graph noise finds better
    again = find_cliques(near, cards, "auto", restarts=200)
    np.testing.assert_array_equal(many.members, again.members)


def test_errors():
    with pytest.raises(ValueError, match="order must be one of"):
        eliminate(cycle(4), "best")
    with pytest.raises(ValueError, match="every variable exactly once"):
        eliminate(cycle(4), [0, 1, 2])
    with pytest.raises(ValueError, match="no vertex 'x'"):
        eliminate({"a": ["x"]})
    with pytest.raises(ValueError, match="got None"):
        eliminate(cycle(4), None)
    with pytest.raises(ValueError, match="3 is missing"):
        eliminate(cycle(4), states={0: 2, 1: 2, 2: 2})
    for count in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="number of states of 0 must be a whole number of at least 1"):
            eliminate(cycle(4), states=dict.fromkeys(range(4), count))
    for restarts in (-1, 0.5):
        with pytest.raises(ValueError, match="restarts must be a whole number of at least 0"):
            eliminate(cycle(4), restarts=restarts)
    assert eliminate({}).bags == []
    assert eliminate({}, "auto", restarts=1).bags == []
    assert eliminate({"alone": []}).bags == [{"alone"}]


@pytest.mark.slow_without_jit
def test_tables_without_number_are_infinite():
    n = 180  # 64^180 entries are more than a float can count
    complete = {v: range(v) for v in range(n)}
    pairs = np.array([(a, b) for a in complete for b in complete[a]]).ravel()
    near = neighbors_of_scopes(n, np.arange(0, len(pairs) + 1, 2), pairs)
    for restarts in (None, 2):
        assert find_cliques(near, np.full(n, 64), "auto", restarts=restarts).entries == np.inf
    assert eliminate(complete, "auto", states=dict.fromkeys(complete, 64), restarts=None).width == n - 1


def test_edges_may_be_told_at_one_end_and_by_networkx():
    nx = pytest.importorskip("networkx")
    once, twice = {0: [1, 3], 1: [2], 2: [3], 3: [3]}, cycle(4)
    assert triangulate(once) == triangulate(twice) == {0: {1, 3}, 1: {0, 2, 3}, 2: {1, 3}, 3: {0, 1, 2}}
    assert triangulate(nx.cycle_graph(4)) == triangulate(twice)
    for graph in (once, nx.cycle_graph(4)):
        assert eliminate(graph) == eliminate(twice)
