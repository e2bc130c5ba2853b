"""`d_separated`: against the moral graph of ancestors, against other libraries, and against numbers."""

from itertools import chain, combinations, islice, product

import numpy as np
import pytest

from lemmata.graphical.factor import Factor, enumerate_joint
from lemmata.graphical.separation import ancestors, d_separated


def random_net(rng, n, chance):
    """Draw arrows from earlier to later vertices, which are then told in any order."""
    parents = {v: tuple(u for u in range(v) if rng.random() < chance) for v in range(n)}
    return {int(v): parents[v] for v in rng.permutation(n)}


def random_sets(rng, parents):
    """Draw x, y and given, apart from each other; neither x nor y is empty."""
    names = [int(v) for v in rng.permutation(list(parents))]
    a, b = rng.integers(1, 3, size=2)
    c = rng.integers(0, len(names))
    return names[:a], names[a : a + b] or names[-1:], names[a + b : a + b + c]


def separated_by_moral_graph(parents, x, y, given):
    """Cut the ancestors of all three out, marry parents, drop arrows, remove what is given, and look for a way."""
    kept = set(chain(x, y, given))
    while any(not kept.issuperset(parents[v]) for v in kept):
        kept |= {u for v in kept for u in parents[v]}
    edges = {frozenset((u, v)) for v in kept for u in parents[v]}
    edges |= {frozenset(pair) for v in kept for pair in combinations(parents[v], 2)}
    reached = set(x)
    while True:
        more = {v for edge in edges if edge & reached for v in edge} - reached - set(given)
        if not more:
            return not reached & set(y)
        reached |= more


def simple_trails(parents, x, y):
    """List all ways without repetition, recursively."""

    def extend(path):
        here = path[-1]
        if here in y:
            yield path
            return
        for v in parents:
            if v not in path and v not in x and (v in parents[here] or here in parents[v]):
                yield from extend((*path, v))

    return {path for start in x for path in extend((start,))}


def is_open(parents, path, given):
    """Apply the definition to each inner vertex of a trail."""
    observed_or_above = {v for v in parents if any(v in ancestors(parents, [g]) for g in given)}
    for a, v, b in zip(path, path[1:], path[2:], strict=False):
        collider = a in parents[v] and b in parents[v]
        if collider and v not in observed_or_above:
            return False
        if not collider and v in given:
            return False
    return True


CHAIN = {"a": (), "v": ("a",), "b": ("v",)}
FORK = {"v": (), "a": ("v",), "b": ("v",)}
COLLIDER = {"a": (), "b": (), "v": ("a", "b"), "d": ("v",)}


@pytest.mark.item("GRM-06")
@pytest.mark.parametrize(
    ("parents", "given", "separated"),
    [
        (CHAIN, [], False),
        (CHAIN, "v", True),
        (FORK, [], False),
        (FORK, "v", True),
        (COLLIDER, [], True),
        (COLLIDER, "v", False),
        (COLLIDER, "d", False),
    ],
)
def test_the_three_ways_of_passing_a_vertex(parents, given, separated):
    assert bool(d_separated(parents, "a", "b", given)) is separated
    assert bool(d_separated(parents, "b", "a", given)) is separated


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_moral_graph_of_ancestors(seed):
    rng = np.random.default_rng(seed)
    answers = []
    for _ in range(200):
        parents = random_net(rng, n=int(rng.integers(2, 10)), chance=rng.uniform(0.1, 0.6))
        x, y, given = random_sets(rng, parents)
        x = [v for v in x if v not in y]
        if x:
            answers.append(bool(d_separated(parents, x, y, given)))
            assert answers[-1] == separated_by_moral_graph(parents, x, y, given)
    assert 20 < sum(answers) < len(answers) - 20  # both answers have come up


def test_agrees_with_networkx():
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(1)
    for _ in range(100):
        parents = random_net(rng, n=8, chance=0.3)
        graph = networkx.DiGraph([(u, v) for v, family in parents.items() for u in family])
        graph.add_nodes_from(parents)
        x, y, given = random_sets(rng, parents)
        expected = networkx.is_d_separator(graph, set(x), set(y), set(given))
        assert bool(d_separated(parents, x, y, given)) == expected


@pytest.mark.item("GRM-06")
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_independence_in_numbers(seed):
    rng = np.random.default_rng(seed)
    parents = random_net(rng, n=5, chance=0.45)
    names = sorted(parents)
    factors = [Factor([*family, v], rng.dirichlet([1, 1], size=(2,) * len(family))) for v, family in parents.items()]
    joint = enumerate_joint(factors, names)
    for x, y in combinations(names, 2):
        rest = [v for v in names if v not in (x, y)]
        for given in chain.from_iterable(combinations(rest, k) for k in range(4)):
            table = joint.marginal([*given, x, y]).values
            table = table / table.sum(axis=(-2, -1), keepdims=True)
            apart = np.abs(table - table.sum(axis=-1, keepdims=True) * table.sum(axis=-2, keepdims=True)).max()
            if d_separated(parents, x, y, given):
                assert apart < 1e-12  # rounding of 32 products
            else:
                assert apart > 1e-7  # random tables hide no dependence


@pytest.mark.parametrize("seed", range(4))
def test_explanations_are_true(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        parents = random_net(rng, n=7, chance=0.35)
        x, y, given = random_sets(rng, parents)
        answer = d_separated(parents, x, y, given)
        trails = list(answer.trails())
        assert {trail.vertices for trail in trails} == {p for p in simple_trails(parents, x, y) if not set(p[1:-1]) & set(y)}
        assert len({trail.vertices for trail in trails}) == len(trails)
        for trail in trails:
            assert (trail.blocker is None) == is_open(parents, trail.vertices, given)
        assert answer.separated == all(trail.blocker is not None for trail in trails)
        if not answer:
            path = answer.open_trail.vertices
            assert path[0] in x
            assert path[-1] in y
            assert is_open(parents, path, given)
            assert len(path) == min(len(trail.vertices) for trail in trails if trail.blocker is None)


def test_explanations_in_words():
    parents = {"A": (), "B": ("A", "C"), "C": (), "D": ("B",), "E": ("C",), "F": ()}
    assert str(d_separated(parents, "A", "C", "D")) == (
        "A and C are not separated: A → B ← C is open because B's descendant D is observed."
    )
    assert str(d_separated(parents, "A", "E", ["C", "D"])) == (
        "A and E are separated: every trail is blocked.\n  A → B ← C → E is blocked because C is observed (fork)"
    )
    collider = next(d_separated(parents, "A", "C").trails())
    assert (collider.blocker, collider.kind) == ("B", "collider")
    assert str(collider) == "A → B ← C is blocked because neither B nor a descendant of it is observed (collider)"
    assert str(d_separated(parents, "A", "F")) == "A and F are separated: no trail joins them."
    assert str(d_separated(parents, "A", "B").open_trail) == "A → B is open because nothing is between them"
    assert "B is observed, and C is not observed" in str(d_separated(parents, "A", "E", "B"))


def test_first_trails_of_very_many_come_at_once():
    n = 60  # complete: more than 58! trails
    parents = {v: tuple(range(v)) for v in range(n)}
    parents[n] = ()
    answer = d_separated(parents, 0, n - 1)
    assert answer.open_trail.vertices == (0, n - 1)
    assert len(list(islice(answer.trails(), 100))) == 100
    parents = {v: tuple(range(v)) if v != 1 else () for v in range(n)}
    assert str(d_separated(parents, 0, 1)).endswith("… and more.")


def test_long_chains():
    n = 5000
    parents = {v: (v - 1,) if v else () for v in range(n)}
    assert not d_separated(parents, 0, n - 1)
    assert d_separated(parents, 0, n - 1, n // 2)
    assert next(d_separated(parents, 0, n - 1, n // 2).trails()).blocker == n // 2


def test_names_may_be_tuples_and_collections_anything():
    parents = {("x", t): (("x", t - 1),) if t else () for t in range(4)}
    assert d_separated(parents, ("x", 0), ("x", 3), ("x", 1))
    assert d_separated(parents, {("x", 0)}, [("x", 3), ("x", 2)], iter([("x", 1)]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "a"), "no variable in common, and 'a'"),
        (("a", "b", ["b"]), "no variable in common, and 'b'"),
        (("a", "z"), "There is no variable 'z'"),
        ((["a"], ["b", "q"]), "There is no variable 'q'"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        d_separated(CHAIN, *arguments)


def test_unknown_parents():
    with pytest.raises(ValueError, match="The parent 'q' of 'a'"):
        d_separated({"a": ("q",)}, "a", "a")


def test_ancestors():
    parents = {v: tuple(u for u in range(1, v) if v % u == 0) for v in range(1, 30)}  # divisors
    for v, w in product(range(1, 30), repeat=2):
        assert (w in ancestors(parents, [v])) == (v % w == 0)


def test_a_cycle_is_no_net():
    with pytest.raises(ValueError, match="The arrows form a cycle: a → b → a"):
        d_separated({"a": ("b",), "b": ("a",), "c": ("a",)}, "a", "c")
