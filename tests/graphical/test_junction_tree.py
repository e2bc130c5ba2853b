"""Exact inference against enumeration, and the certificate against sabotage."""

import pickle
from threading import Thread

import numpy as np
import pytest

from graphical.models import brute_joint, brute_marginal, random_evidence, random_graph, random_net
from lemmata.graphical import BayesNet, Factor, FactorGraph, ImpossibleEvidence, JunctionTree, enumerate_joint
from lemmata.graphical.elimination import RULES

TOL = 1e-12  # rounding of some hundred products and sums of numbers near 1


def models():
    return (
        [random_graph(s) for s in range(12)]
        + [random_graph(s, zeros=0.4) for s in range(4)]
        + [random_net(s) for s in range(12)]
    )


@pytest.mark.item("GRM-03", "GRM-17")
@pytest.mark.parametrize("model", models(), ids=repr)
def test_all_marginals_equal_enumeration(model):
    for evidence in (None, random_evidence(model, 1)):
        found = model.marginals(evidence)
        assert list(found) == list(model.variables)
        for name in model.variables:
            np.testing.assert_allclose(found[name], brute_marginal(model, [name], evidence), atol=TOL)
        assert np.isclose(model.log_partition(evidence), np.log(brute_joint(model, evidence).sum()), rtol=0, atol=1e-10)


@pytest.mark.item("GRM-02")
def test_rescaling_a_factor_changes_the_partition_function_only():
    model = random_graph(3)
    scaled = FactorGraph([Factor(f.variables, 7.5 * f.values) for f in model.factors], model.states)
    assert np.isclose(scaled.log_partition() - model.log_partition(), len(model.factors) * np.log(7.5), atol=1e-10)
    for name, probabilities in model.marginals().items():
        np.testing.assert_allclose(scaled.marginals()[name], probabilities, atol=TOL)


@pytest.mark.item("GRM-10")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("model", [random_graph(1), random_graph(2, zeros=0.4), random_net(3), random_net(4)], ids=repr)
def test_joints_of_any_variables_equal_enumeration(model, compiled):
    evidence = random_evidence(model, 2)
    if compiled:
        model.compile()
    free = [name for name in model.variables if name not in evidence]
    for i in free:
        for j in free:
            if i != j:
                found = model.pairwise(i, j, evidence)
                np.testing.assert_allclose(found, brute_marginal(model, [i, j], evidence), atol=TOL)
                np.testing.assert_allclose(found.sum(axis=1), model.marginals(evidence)[i], atol=TOL)
    np.testing.assert_allclose(model.joint(free[:3][::-1], evidence), brute_marginal(model, free[:3][::-1], evidence), atol=TOL)
    known = next(iter(evidence))
    np.testing.assert_allclose(
        model.joint([free[0], known], evidence), brute_marginal(model, [free[0], known], evidence), atol=TOL
    )


@pytest.mark.item("GRM-10")
def test_pairwise_of_the_catalogues_chain():
    chain = FactorGraph([("ab", [[3, 1], [1, 2]]), ("bc", [[2, 1], [1, 4]])])
    np.testing.assert_allclose(chain.pairwise("a", "c").ravel() * 27, [7, 7, 4, 9], atol=1e-12)
    product = np.outer(chain.marginals()["a"], chain.marginals()["c"]).ravel()
    np.testing.assert_allclose(product, [0.211248, 0.307270, 0.196159, 0.285322], atol=5e-7)


@pytest.mark.item("GRM-04")
def test_chain_of_flips_equals_the_power_of_its_matrix():
    flip = [[0.9, 0.1], [0.1, 0.9]]
    names = [f"x{i}" for i in range(1, 8)]
    parents = {name: names[i - 1 : i] if i else [] for i, name in enumerate(names)}
    net = BayesNet(parents, {name: flip if parents[name] else [0.5, 0.5] for name in names})
    assert np.isclose(net.marginals({"x2": 0})["x7"][0], 0.66384, atol=1e-12)
    np.testing.assert_allclose(net.marginals({"x2": 0})["x7"], np.linalg.matrix_power(flip, 5)[0], atol=1e-14)


@pytest.mark.item("GRM-18")
def test_worked_junction_tree():
    rng = np.random.default_rng(0)
    parents = {"A": "", "B": "A", "C": "A", "D": "A", "E": "BC", "F": "CD"}
    tables = {name: rng.dirichlet([1, 1], size=(2,) * len(above)) for name, above in parents.items()}
    net = BayesNet({name: tuple(above) for name, above in parents.items()}, tables)
    tree = JunctionTree(net, order="min-degree")
    assert {frozenset(clique) for clique in tree.cliques} == {frozenset(bag) for bag in ("BCE", "ABC", "ACD", "CDF")}
    assert {frozenset(s) for s in tree.separators if s} == {frozenset(s) for s in ("BC", "AC", "CD")}
    assert tree.width == 2
    found = tree.calibrate()
    for belief, shared, p in zip(found.beliefs, found.separators, tree.parents, strict=True):
        np.testing.assert_allclose(belief.values, brute_marginal(net, belief.variables), atol=1e-15)
        if p >= 0:
            for side in (belief, found.beliefs[p]):
                assert np.abs(side.marginal(shared.variables).values - shared.values).max() <= 2e-16
    assert tree.certify().holds


@pytest.mark.item("GRM-11")
@pytest.mark.parametrize("model", models(), ids=repr)
def test_map_equals_enumeration(model):
    for evidence in (None, random_evidence(model, 3)):
        best, joint = model.map(evidence), brute_joint(model, evidence)
        index = tuple(model._code(name, best[name]) for name in model.variables)
        assert joint[index] >= joint.max() * (1 - 1e-12)
        assert np.isclose(best.log_value, np.log(joint.max()), atol=1e-11)
        assert model.certify(evidence=evidence, assignment=best).holds


def test_map_ties_take_the_first_states():
    graph = FactorGraph([("ab", np.ones((2, 3))), ("bc", np.ones((3, 2)))])
    assert graph.map() == {"a": 0, "b": 0, "c": 0}
    assert graph.map({"b": 2}) == {"a": 0, "b": 2, "c": 0}


@pytest.mark.item("GRM-11")
def test_map_of_a_chain_is_viterbis_path():
    from lemmata.hmm import CategoricalHMM

    rng = np.random.default_rng(5)
    start, move, emit = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=3), rng.dirichlet(np.ones(4), size=3)
    symbols = rng.integers(0, 4, size=30)
    given = {"startprob_init": start, "transmat_init": move, "emissionprob_init": emit}
    hmm = CategoricalHMM(3, **given, fixed=("startprob", "transmat", "emissionprob")).fit(symbols[:, None])
    factors = [Factor([0], start)] + [Factor([t, t + 1], move) for t in range(29)]
    chain = FactorGraph(factors + [Factor([t], emit[:, s]) for t, s in enumerate(symbols)])
    best = chain.map()
    value, path = hmm.decode(symbols[:, None])
    assert np.isclose(best.log_value, value, atol=1e-9)
    assert [best[t] for t in range(30)] == path.tolist()


@pytest.mark.parametrize("order", [*RULES, "auto", "given"])
def test_every_order_gives_the_same_answers(order):
    model = random_graph(11, n=9, n_factors=12)
    expected = model.marginals()
    tree = JunctionTree(model, model.variables if order == "given" else order, restarts=3)
    for name, probabilities in tree.marginals().items():
        np.testing.assert_allclose(probabilities, expected[name], atol=TOL)
    assert tree.certify().holds


def test_long_maps_of_all_kinds():
    rng = np.random.default_rng(2)  # separators inside, outside and across runs of the parent's table
    sizes = {"a": 12, "b": 11, "c": 10, "d": 13, "e": 2, "f": 3}
    scopes = ["ab", "bc", "cd", "da", "ac", "be", "ef", "af", "cf"]
    graph = FactorGraph([Factor(s, rng.random([sizes[v] for v in s])) for s in scopes])
    for order in ("abcdef", "fedcba", "cafebd", "dbface"):
        tree = JunctionTree(graph, list(order))
        for name in graph.variables:
            np.testing.assert_allclose(tree.marginals()[name], brute_marginal(graph, [name]), atol=TOL)
        assert tree.certify(assignment=graph.map()).holds


@pytest.mark.item("GRM-05")
def test_factors_multiply_to_the_joint():
    net, rng = random_net(6), np.random.default_rng(0)
    joint = enumerate_joint(net.factors, net.variables)
    for _ in range(20):
        codes = {name: int(rng.integers(len(net.states[name]))) for name in net.variables}
        chances = [net.tables[v][(*(codes[p] for p in net.parents_[v]), codes[v])] for v in net.variables]
        assert np.isclose(joint.given(codes).values, np.prod(chances), rtol=1e-12)
        assert np.isclose(net.log_value(codes), np.log(np.prod(chances)), atol=1e-10)


@pytest.mark.item("GRM-01")
def test_joint_of_a_net_sums_to_one_and_draws_follow_it():
    net = random_net(8, n=4)
    joint = brute_joint(net)
    assert np.isclose(joint.sum(), 1, atol=1e-14)
    n = 40_000
    for evidence in (None, {net.variables[2]: 1}):
        drawn = net.sample(n, evidence, random_state=3)
        counts = np.zeros(joint.shape)
        np.add.at(counts, tuple(drawn[name] for name in net.variables), 1)
        expected = brute_joint(net, evidence)
        expected = n * expected / expected.sum()
        assert not counts[expected == 0].any()
        alive = expected > 0
        chi2 = ((counts - expected)[alive] ** 2 / expected[alive]).sum()
        dof = alive.sum() - 1
        assert chi2 < dof + 5 * np.sqrt(2 * dof)  # five standard deviations: chance below 1e-4, and the seed is fixed


def test_unconnected_parts_and_variables_without_factors():
    graph = FactorGraph([("a", [1.0, 3.0]), ("bc", [[1.0, 0.0], [2.0, 2.0]])], {"d": ["x", "y", "z"]})
    np.testing.assert_allclose(graph.marginals()["d"], 1 / 3)
    assert np.isclose(np.exp(graph.log_partition()), 4 * 5 * 3)
    np.testing.assert_allclose(graph.pairwise("a", "d"), np.outer([0.25, 0.75], np.ones(3) / 3))
    assert graph.certify(assignment=graph.map()).holds
    assert graph.certify({"a": 1, "b": 0}).holds


def test_impossible_evidence_says_what_contradicts():
    net = BayesNet({"a": [], "b": ["a"]}, {"a": [1.0, 0.0], "b": [[0.5, 0.5], [0.5, 0.5]]})
    with pytest.raises(ImpossibleEvidence, match="'a' cannot be 1 given 'b': 0"):
        net.marginals({"b": 0, "a": 1})
    with pytest.raises(ImpossibleEvidence, match="'a' cannot be 1"):
        net.map({"a": 1})
    with pytest.raises(ImpossibleEvidence, match="probability zero"):
        net.joint(["b"], {"a": 1})
    with pytest.raises(ImpossibleEvidence, match="cannot"):
        net.sample(3, {"a": 1})
    assert net.log_partition({"a": 1}) == -np.inf
    dead = FactorGraph([("a", [0.0, 1.0]), ("a", [1.0, 0.0])])
    with pytest.raises(ImpossibleEvidence, match="no distribution"):
        dead.marginals()
    assert net.marginals({"b": 0})["a"][0] == 1  # and the model still answers


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"z": 1}, "no variable 'z'.*'a', 'b'"),
        ({"a": "maybe"}, "no state 'maybe'.*'no', 'yes'"),
        ({"a": 2}, "no state 2"),
        ({"a": -1}, "no state -1"),
        ({"a": True}, "no state True"),
        ({"a": [0.5]}, "needs 2 likelihoods"),
        ({"a": [0.5, -1]}, "not negative"),
        ({"a": [0.0, 0.0]}, "likelihood zero"),
        ([("a", 1)], "must be"),
    ],
)
def test_evidence_that_makes_no_sense(evidence, message):
    graph = FactorGraph([("ab", [[1, 2], [3, 4]])], {"a": ["no", "yes"]})
    with pytest.raises(ValueError, match=message):
        graph.marginals(evidence)
    np.testing.assert_array_equal(graph.marginals({"a": "yes"})["b"], graph.marginals({"a": 1})["b"])


def test_too_wide_a_model_is_refused_before_any_work():
    n = 40
    graph = FactorGraph([([i, j], np.ones((2, 2))) for i in range(n) for j in range(i)])
    with pytest.raises(ValueError, match=r"1.1e\+12 entries \(width 39\).*loopy_marginals"):
        graph.marginals()


def test_many_variables_and_long_chains():
    n = 3000  # more axes than any array has, and a chain whose joint is far below the smallest float
    rng = np.random.default_rng(0)
    tables = rng.gamma(1.0, size=(n - 1, 3, 3)) * 1e-5
    chain = FactorGraph([([t, t + 1], tables[t]) for t in range(n - 1)])
    forward, scale = np.ones(3), 0.0
    for table in tables:
        forward = forward @ table
        scale += np.log(forward.sum())
        forward /= forward.sum()
    assert np.isclose(chain.log_partition(), scale, rtol=1e-12)
    np.testing.assert_allclose(chain.marginals()[n - 1], forward, atol=1e-12)


def test_logarithms_beyond_the_range_of_floats():
    rng = np.random.default_rng(1)
    values = [rng.normal(scale=500, size=(3, 3)) for _ in range(4)]
    scopes = ["ab", "bc", "cd", "da"]
    graph = FactorGraph([Factor(s, v, log=True) for s, v in zip(scopes, values, strict=True)])
    joint = enumerate_joint(graph.factors, graph.variables)
    assert np.isclose(graph.log_partition(), joint.total(), rtol=1e-12)
    assert np.isclose(graph.map().log_value, joint.values.max(), rtol=1e-12)
    for name in graph.variables:
        np.testing.assert_allclose(graph.marginals()[name], np.exp(joint.marginal([name]).values - joint.total()), atol=1e-9)
    assert random_graph(5, log=True).certify().holds


def test_constant_factors_count():
    graph = FactorGraph([("a", [1.0, 3.0]), ((), 5.0)])
    assert np.isclose(np.exp(graph.log_partition()), 20)
    assert np.isclose(graph.map().log_value, np.log(15))


@pytest.mark.item("GRM-17")
@pytest.mark.parametrize("model", [random_graph(2, n=8), random_net(5)], ids=repr)
def test_certificate_refuses_one_percent(model):
    assert model.certify().holds
    tree = model.junction_tree()
    refused = {}
    for c in range(len(tree.parents)):
        table = tree.program.base[tree.program.offset[c] : tree.program.offset[c + 1]]
        entry = int(np.argmax(table))
        if table.size == 1:
            continue
        before = table[entry]
        table[entry] *= 1.01
        refused[c] = not tree.certify().holds
        table[entry] = before
    assert refused
    assert all(refused.values())
    assert tree.certify().holds
    best = model.map()
    worst = {name: states[-1] if best[name] == states[0] else states[0] for name, states in model.states.items()}
    assert not model.certify(assignment=worst)["map"].holds


def test_certificate_refuses_a_forest_that_does_not_hang_together():
    from lemmata.graphical.tree_certificate import _torn

    assert _torn([("a", "b"), ("b", "c")], [("b",), ()], [1, -1]) == 0
    assert _torn([("a", "b"), ("b", "c")], [(), ()], [-1, -1]) == 1
    assert _torn([("a", "b"), ("c",), ("b", "c")], [(), ("c",), ()], [1, 2, -1]) > 0


def test_threads_share_a_model():
    model = random_graph(4)
    evidence = [random_evidence(model, s) for s in range(6)]
    expected = [model.marginals(e) for e in evidence]
    found = [None] * 6

    def ask(i):
        for _ in range(50):
            found[i] = model.marginals(evidence[i])

    threads = [Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(expected, found, strict=True):
        for name in model.variables:
            np.testing.assert_array_equal(a[name], b[name])


def test_pickled_models_answer_alike():
    for model in (random_graph(4), random_net(4)):
        before = model.marginals()
        after = pickle.loads(pickle.dumps(model)).marginals()
        for name in model.variables:
            np.testing.assert_array_equal(before[name], after[name])
        assert pickle.loads(pickle.dumps(model.junction_tree())).certify().holds


def test_factor_marginals_are_laid_out_as_the_tables():
    model = random_net(7)
    flat = model.junction_tree().factor_marginals({model.variables[0]: 0})
    for m, factor in enumerate(model.factors):
        part = flat[model.layout.table_starts[m] : model.layout.table_starts[m + 1]].reshape(factor.shape)
        np.testing.assert_allclose(part, brute_marginal(model, factor.variables, {model.variables[0]: 0}), atol=TOL)


COIN = [[0.6, 0.4], [0.4, 0.6]]


def test_a_hub_with_thousands_of_children_does_not_run_out_of_floats():
    star = FactorGraph([Factor(("c", i), COIN) for i in range(3000)])
    np.testing.assert_allclose(star.marginals()["c"], 0.5)
    assert np.isclose(star.log_partition(), np.log(2), atol=1e-9)
    seen = star.marginals(dict.fromkeys(range(2990), 0))["c"]  # odds 1.5^2990: far beyond floats, and back
    assert seen[0] == 1
    balanced = star.marginals({i: int(i >= 1500) for i in range(3000)})
    np.testing.assert_allclose(balanced["c"], 0.5)
    drawn = star.sample(2000, {i: int(i >= 1400) for i in range(2800)}, random_state=0)["c"]
    assert abs(drawn.mean() - 0.5) < 0.05  # 4.5 standard errors
    assert star.certify({i: int(i >= 150) for i in range(300)}).holds


def test_values_that_lie_far_apart_are_not_lost():
    far = FactorGraph([Factor("ab", [[0.0, -1000.0], [-1000.0, -1000.0]], log=True)])
    assert np.isclose(far.log_partition({"a": 1}), -1000 + np.log(2))
    np.testing.assert_allclose(far.marginals({"a": 1})["b"], 0.5)
    np.testing.assert_allclose(far.joint("b", {"a": 1}), 0.5)
    for size in (1e-200, 1e200, 1e-310):
        twice = FactorGraph([("a", [size, 3 * size])] * 2 + [("ab", COIN)])
        np.testing.assert_allclose(twice.marginals()["a"], [0.1, 0.9], rtol=1e-9)
        np.testing.assert_allclose(twice.joint("a"), [0.1, 0.9], rtol=1e-9)
        assert np.isclose(twice.log_partition(), np.log(10) + 2 * np.log(size), rtol=1e-9)
        assert twice.certify(assignment=twice.map()).holds
    loud = FactorGraph([("ab", COIN)]).marginals({"a": [1e308, 1e308], "b": [1e308, 1e308]})
    np.testing.assert_allclose(loud["a"], 0.5)
    small = FactorGraph([Factor((i, j), np.full((2, 2), 0.1)) for i in range(30) for j in range(i)])
    np.testing.assert_allclose(small.joint([0], dict.fromkeys(range(1, 30), 1)), 0.5)


def test_hubs_that_disagree_are_weighed_right():
    sharp = [[0.99, 0.01], [0.01, 0.99]]
    children = {"h1": 170, "h2": 100, "h3": 100}
    factors = [Factor(pair, np.eye(2)) for pair in (("h1", "h2"), ("h2", "h3"))]
    factors += [Factor((hub, (hub, i)), sharp) for hub, n in children.items() for i in range(n)]
    told = {"h1": 0, "h2": 1, "h3": 1}
    graph = FactorGraph(factors)
    found = graph.marginals({(hub, i): told[hub] for hub, n in children.items() for i in range(n)})
    odds = 170 - 200  # sharp children for state 0, in units of log 99
    np.testing.assert_allclose(np.log(found["h1"][0]), odds * np.log(99), rtol=1e-9)


def test_a_certificate_with_nan_is_refused(monkeypatch):
    model = random_graph(2, n=8)
    tree = model.junction_tree()
    for spoil in (
        lambda found: found.beliefs[1].values.fill(np.nan),
        lambda found: next(s for s in found.separators if s.variables).values.fill(np.nan),
        lambda found: found.marginals["v1"].fill(np.nan),
    ):
        found = tree.calibrate()
        spoil(found)
        monkeypatch.setattr(JunctionTree, "calibrate", lambda self, evidence, found=found: found)
        assert not tree.certify().holds
        monkeypatch.undo()
    assert tree.certify().holds


def test_numbers_are_states_only_where_no_label_is_a_number():
    die = BayesNet({"d": []}, {"d": [0.5, 0.3, 0.2]}, {"d": [1, 2, 3]})
    assert die.marginals({"d": 1})["d"][0] == 1
    with pytest.raises(ValueError, match="no state 0"):
        die.marginals({"d": 0})


def test_what_is_asked_for_is_checked():
    graph = FactorGraph([("ab", COIN)])
    for ask, message in (
        (lambda: graph.pairwise("a", "a"), "each once"),
        (lambda: graph.joint([]), "at least one variable"),
        (lambda: graph.joint("z"), "no variable 'z'"),
        (lambda: graph.sample(-1), "n must be"),
        (lambda: graph.certify(assignment={"a": 1}), "none for 'b'"),
        (lambda: graph.log_value({"a": 1}), "none for 'b'"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    assert FactorGraph([], {"a": "xy"}).map() == {"a": "x"}


def test_a_table_too_large_for_one_query_is_refused():
    net = FactorGraph([([0, i], np.ones((2, 2))) for i in range(1, 41)])
    with pytest.raises(ValueError, match="entries over 41 variables"):
        net.joint(list(range(1, 41)))


def test_setting_a_part_of_a_model_changes_its_answers():
    graph = FactorGraph([("a", [1.0, 3.0])])
    assert graph.marginals()["a"][0] == 0.25
    graph.factors = [Factor("a", [1.0, 1.0])]
    assert graph.marginals()["a"][0] == 0.5
    net = BayesNet({"a": []}, {"a": [0.5, 0.5]})
    net.marginals()
    net.tables = {"a": [0.1, 0.9]}
    np.testing.assert_allclose(net.marginals()["a"], [0.1, 0.9])


def test_rows_that_nearly_sum_to_one_are_divided_by_their_sum():
    net = BayesNet({"a": [], "b": ["a"]}, {"a": [0.5, 0.5], "b": [[0.5, 0.5000009], [0.5, 0.5]]})
    assert abs(net.log_partition()) < 1e-12
    np.testing.assert_allclose(net.joint("a"), net.compile().joint("a"), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_evidence_that_cuts_a_large_model_gets_a_tree_of_its_own(seed, monkeypatch):
    from lemmata.graphical import model as module

    net = random_net(seed, n=9)
    evidence = random_evidence(net, seed, n=3)
    expected = [net.marginals(evidence), net.log_partition(evidence), net.map(evidence)]
    monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(module, "WORTH", 1)
    tree, _, fixed = net._tree_for(evidence)
    assert set(fixed) == {name for name, value in evidence.items() if not isinstance(value, list)}
    assert tree is not net.junction_tree()
    found = net.marginals(evidence)
    assert list(found) == list(net.variables)
    for name in net.variables:
        np.testing.assert_allclose(found[name], expected[0][name], atol=TOL)
    assert np.isclose(net.log_partition(evidence), expected[1], atol=1e-10)
    assert np.isclose(net.map(evidence).log_value, expected[2].log_value, atol=1e-10)
    assert net.certify(evidence=evidence, assignment=net.map(evidence))["map"].holds
    drawn = net.sample(20, evidence, random_state=0)
    assert all((drawn[name] == net.states[name][code]).all() for name, code in fixed.items())
    whole = {name: net.map(evidence)[name] for name in net.variables}
    assert all(p.max() == 1 for p in net.marginals(whole).values())  # nothing is left to ask for
    sure = BayesNet({"a": [], "b": ["a"]}, {"a": [1.0, 0.0], "b": [[0.5, 0.5], [0.5, 0.5]]})
    with pytest.raises(ImpossibleEvidence, match="'a' cannot be 1"):
        sure.marginals({"a": 1})
