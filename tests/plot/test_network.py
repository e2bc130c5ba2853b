"""Graphs are laid out without overlap, and drawn as the models are."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.testing import assert_allclose, assert_array_equal

from lemmata.graphical import BayesNet, FactorGraph
from lemmata.plot import JunctionTreeDisplay, NetworkDisplay
from lemmata.plot.graph_layout import stress, tidy
from lemmata.plot.layered_layout import crossings, layered, layers_of, narrowed, ordered

WET = {"rain": [], "sprinkler": [], "wet": ["rain", "sprinkler"]}
TABLES = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "wet": [[[0.99, 0.01], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]]}


def random_graph(n, seed, most=3):
    rng = np.random.default_rng(seed)
    return [(int(a), b) for b in range(1, n) for a in rng.choice(b, size=min(b, rng.integers(most + 1)), replace=False)]


def sizes_of(n, seed):
    return np.column_stack(
        [np.random.default_rng(seed).uniform(20, 90, size=n), np.random.default_rng(seed + 1).uniform(15, 60, size=n)]
    )


def overlaps(places, sizes, slack=1e-6):
    return [
        (i, j)
        for i, j in combinations(range(len(places)), 2)
        if (np.abs(places[i] - places[j]) < (sizes[i] + sizes[j]) / 2 - slack).all()
    ]


def inside(points, place, size, slack=1e-6):
    return (np.abs(points - place) < size / 2 - slack).all(axis=1).any()


@pytest.mark.parametrize("seed", range(4))
def test_arrows_go_down_past_all_other_nodes(seed):
    n, edges, sizes = 40, random_graph(40, seed), sizes_of(40, seed)
    found = layered(n, edges, sizes)
    assert not overlaps(found.places, sizes)
    for (a, b), route in zip(edges, found.routes, strict=True):
        assert (np.diff(route[:, 1]) < 0).all()
        assert_allclose(route[[0, -1], 1], [found.places[a, 1] - sizes[a, 1] / 2, found.places[b, 1] + sizes[b, 1] / 2])
        assert (np.abs(route[[0, -1], 0] - found.places[[a, b], 0]) <= sizes[[a, b], 0] / 2).all()
        line = np.concatenate([np.linspace(p, q, 50) for p, q in pairwise(route)])
        assert not any(inside(line, found.places[v], sizes[v]) for v in range(n) if v not in (a, b))
    again = layered(n, edges, sizes)
    assert_array_equal(found.places, again.places)


@pytest.mark.parametrize("seed", range(6))
def test_layers_have_the_least_total_length(seed):
    n, edges = 6, random_graph(6, seed, most=2)
    level = np.array(layers_of(n, edges))
    every = np.indices([n] * n).reshape(n, -1)  # brute force
    lengths = np.array([every[b] - every[a] for a, b in edges])
    best = lengths[:, (lengths > 0).all(axis=0)].sum(axis=0).min()
    assert all(level[b] > level[a] for a, b in edges)
    assert sum(level[b] - level[a] for a, b in edges) == best


def test_crossings_are_counted_and_taken_away():
    down = [[3, 5], [4], [3], [], [], []]
    pairs = [(a, b) for a in range(3) for b in down[a]]
    expected = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(pairs, 2))
    assert crossings([0, 1, 2], [3, 4, 5], down) == expected == 3
    # A matching can always be drawn without crossings, and so can a tree.
    rng = np.random.default_rng(0)
    links = list(zip(range(12), 12 + rng.permutation(12), strict=True))
    rows = ordered([0] * 12 + [1] * 12, links)
    assert crossings(*rows, [[b for a, b in links if a == v] for v in range(24)]) == 0
    parents = [-1] + [int(rng.integers(v)) for v in range(1, 30)]
    depth = [0]
    for v in range(1, 30):
        depth.append(depth[parents[v]] + 1)
    links = [(parents[v], v) for v in range(1, 30)]
    rows = ordered(depth, links)
    down = [[b for a, b in links if a == v] for v in range(30)]
    assert sum(crossings(rows[k], rows[k + 1], down) for k in range(len(rows) - 1)) == 0


def test_wide_layers_are_shared_among_several():
    edges = [(0, v) for v in range(1, 41)]
    sizes = np.full((41, 2), [60.0, 20.0])
    level = narrowed([0] + [1] * 40, edges, sizes, (16.0, 34.0))
    assert max(level) >= 2
    assert all(level[b] > level[a] for a, b in edges)
    wide = np.ptp(layered(41, edges, sizes).places[:, 0])
    assert wide < 0.75 * 39 * 76


def test_stress_finds_distances_that_exist():
    # A path has its own lengths as distances on a line; a ring of equal edges is a regular polygon.
    path = stress(8, [(i, i + 1) for i in range(7)], np.full((8, 2), 10.0), gap=10.0)
    assert_allclose(path[:, 0], 5 + 20.0 * np.arange(8), atol=1e-6)
    ring = stress(6, [(i, (i + 1) % 6) for i in range(6)], np.full((6, 2), 2.0), gap=20.0)
    radii = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert_allclose(radii, radii.mean(), rtol=0.01)  # the search ends when the stress hardly changes


@pytest.mark.parametrize("seed", range(3))
def test_springs_leave_no_overlap(seed):
    n, edges, sizes = 60, random_graph(60, seed, most=2), sizes_of(60, seed)
    places = stress(n, edges, sizes)
    assert not overlaps(places, sizes)
    assert_array_equal(places, stress(n, edges, sizes))


@pytest.mark.parametrize("seed", range(4))
def test_tidy_trees_center_parents_and_keep_apart(seed):
    rng = np.random.default_rng(seed)
    n = 40
    parents = [-1, -1] + [int(rng.integers(v)) for v in range(2, n)]
    breadths = rng.uniform(10, 50, size=n)
    places = tidy(parents, breadths, gap=7.0)
    depth = []
    for parent in parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    for level in range(max(depth) + 1):
        row = sorted((v for v in range(n) if depth[v] == level), key=places.__getitem__)
        for a, b in pairwise(row):
            assert places[b] - places[a] >= (breadths[a] + breadths[b]) / 2 + 7.0 - 1e-9
    for v in range(n):
        children = [places[c] for c in range(n) if parents[c] == v]
        if children:
            assert_allclose(places[v], (min(children) + max(children)) / 2)


def test_a_net_has_its_arrows_names_and_bars():
    net = BayesNet(WET, TABLES, {name: ["no", "yes"] for name in WET})
    _, ax = plt.subplots()
    display = net.plot(ax=ax)
    assert isinstance(display, NetworkDisplay)
    assert display.ax_ is ax
    assert display.edges == [(0, 2), (1, 2)]
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len(arrows) == 2
    assert len(boxes) == 3 + 2 * 6  # variables, and for each state a track and a bar
    written = [text.get_text() for text in ax.texts]
    assert written.count("no") == 3
    assert {*WET, "80 %", "20 %"} <= set(written)
    assert display.prior is None
    display.figure_.canvas.draw()


def test_evidence_is_shaded_and_moves_the_bars():
    net = BayesNet(WET, TABLES)
    evidence = {"wet": 1, "sprinkler": [0.3, 0.7]}
    display = NetworkDisplay.from_estimator(net, evidence=evidence)
    for name, chances in net.marginals(evidence).items():
        assert_allclose(display.marginals[name], chances)
        assert_allclose(display.prior[name], net.marginals()[name])
    nodes = [patch for patch in display.ax_.patches if isinstance(patch, FancyBboxPatch) and patch.get_linewidth() > 0]
    assert [patch.get_linestyle() for patch in nodes] == ["-", "--", "-"]  # soft evidence has a dashed edge
    assert len({patch.get_facecolor() for patch in nodes}) == 3
    bars = {
        round(p.get_width() / 42.0, 6) for p in display.ax_.patches if isinstance(p, FancyBboxPatch) and p.get_height() == 6.0
    }
    assert {round(float(p), 6) for chances in display.marginals.values() for p in chances} <= bars
    assert len(display.ax_.lines) == 2  # where the bars of the one variable without evidence were
    with pytest.raises(ValueError, match="no variable 'snow'"):
        NetworkDisplay.from_estimator(net, evidence={"snow": 1})
    with pytest.raises(ValueError, match="no variable 'snow'"):
        NetworkDisplay.from_estimator(net, evidence={"snow": 1}, bars=False)


def test_a_graph_without_tables_is_drawn_alone():
    display = NetworkDisplay.from_estimator(BayesNet([("rain", "wet"), ("sprinkler", "wet")]), name="no tables")
    assert display.marginals is None
    assert display.ax_.get_title() == "no tables"
    assert [text.get_text() for text in display.ax_.texts] == ["rain", "wet", "sprinkler"]


def test_many_states_are_cut_and_large_nets_are_dots():
    net = BayesNet({"many": []}, {"many": np.arange(1, 11) / 55})
    written = [text.get_text() for text in NetworkDisplay.from_estimator(net).ax_.texts]
    assert written == ["many", "5", "11 %", "6", "13 %", "7", "15 %", "8", "16 %", "9", "18 %", "5 more", "27 %"]
    parents = {i: [j for j in (i - 1, i - 7) if j >= 0] for i in range(200)}
    display = NetworkDisplay.from_estimator(BayesNet(parents))
    assert not display.ax_.texts
    assert len(display.edges) == 199 + 193


def test_names_stay_within_their_nodes():
    names = ["a", "LVEDVOLUME", "a rather long name", "Wiiiiiide", "MMMMM"]
    display = NetworkDisplay.from_estimator(BayesNet({name: names[:i] for i, name in enumerate(names)}))
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    nodes = [patch for patch in display.ax_.patches if isinstance(patch, FancyBboxPatch)]
    for text, node in zip(display.ax_.texts, nodes, strict=True):
        inner, outer = text.get_window_extent(renderer), node.get_window_extent(renderer)
        assert outer.x0 < inner.x0 < inner.x1 < outer.x1
        assert outer.y0 < inner.y0 < inner.y1 < outer.y1


def test_factor_graphs_have_squares():
    graph = FactorGraph([("a", [1, 2]), ("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])], {"lonely": ["x", "y"]})
    display = NetworkDisplay.from_estimator(graph, bars=False)
    assert display.factors == 3
    assert display.edges == [(0, 4), (0, 5), (1, 5), (1, 6), (2, 6)]
    squares = [patch for patch in display.ax_.patches if patch.get_width() == patch.get_height() == 9.0]
    assert len(squares) == 3
    assert len(display.ax_.lines) == 5
    assert len(display.layout_.places) == 7
    display.figure_.canvas.draw()
    assert_allclose(NetworkDisplay.from_estimator(graph).marginals["a"], graph.marginals()["a"])


def chain(n):
    return FactorGraph([((f"x{i}", f"x{i + 1}"), [[2, 1], [1, 3]]) for i in range(n)])


def test_junction_trees_show_cliques_separators_and_roots():
    graph = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]]), ("de", [[1, 2], [3, 4]])])
    _, ax = plt.subplots()
    display = JunctionTreeDisplay.from_estimator(graph, ax=ax)
    tree = graph.junction_tree()
    assert display.ax_ is ax
    assert display.cliques == tree.cliques
    assert display.parents == tree.parents
    written = [text.get_text() for text in ax.texts]
    assert sorted(written) == sorted(["b", *(", ".join(clique) for clique in tree.cliques)])
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    thick = max(patch.get_linewidth() for patch in boxes)
    assert sum(patch.get_linewidth() == thick for patch in boxes) == 2  # a root for each part
    assert len(ax.lines) == 1
    assert ax.get_title() == "Junction tree: 3 cliques, width 1"
    display.figure_.canvas.draw()
    assert JunctionTreeDisplay.from_estimator(tree).cliques == display.cliques


def test_large_trees_are_written_short():
    some = JunctionTreeDisplay.from_estimator(chain(30), name="a chain")
    assert some.ax_.get_title() == "a chain: 30 cliques, width 1"
    many = JunctionTreeDisplay.from_estimator(chain(80))
    assert {text.get_text() for text in many.ax_.texts} == {"2", "1"}
    names = [f"v{i}" for i in range(14)]
    wide = FactorGraph([(names, np.ones([2] * 14))])
    written = " ".join(text.get_text() for text in JunctionTreeDisplay.from_estimator(wide).ax_.texts)
    assert written.endswith("and 10 more")
    # Boxes of a tree do not overlap.
    sizes = np.array([[p.get_width(), p.get_height()] for p in some.ax_.patches[29:]])
    assert not overlaps(some.places_, sizes)
