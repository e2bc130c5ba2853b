"""Sum-product on trees against the sum over all assignments, and its cost against the formula."""

import itertools

import numpy as np
import pytest

from lemmata.graphical.factor import Factor, enumerate_joint
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.sum_product import sum_product, walk_forest

CHAIN = [Factor([1, 2], [[3, 1], [1, 2]]), Factor([2, 3], [[2, 1], [1, 4]])]


def random_tree(seed, n_factors=6, zeros=0.0):
    """Grow a tree: each factor hangs from a variable that is there, and brings up to three new ones; some are unary."""
    rng = np.random.default_rng(seed)
    cards, factors = [int(rng.integers(1, 4))], []
    for _ in range(n_factors):
        old, n_new = int(rng.integers(len(cards))), int(rng.integers(0, 4))
        if np.prod(cards) > 2000:
            n_new = 0
        scope = [old, *range(len(cards), len(cards) + n_new)]
        cards += [int(size) for size in rng.integers(1, 4, size=n_new)]
        scope = [scope[i] for i in rng.permutation(len(scope))]
        table = rng.gamma(1.0, size=[cards[v] for v in scope]) * (rng.random([cards[v] for v in scope]) >= zeros)
        factors.append(Factor([f"x{v}" for v in scope], table, log=False))
    return factors


def names_of(factors):
    return list(dict.fromkeys(name for factor in factors for name in factor.variables))


@pytest.mark.item("GRM-07")
@pytest.mark.parametrize("seed", range(12))
def test_marginals_and_z_of_random_trees_equal_the_sum_over_all_assignments(seed):
    factors = random_tree(seed)
    names, found = names_of(factors), sum_product(factors)
    joint = enumerate_joint(factors, names)
    for name in names:
        np.testing.assert_allclose(found.marginals[name], joint.marginal([name]).normalized().values, rtol=1e-12)
    at_variables, at_factors = found.log_partitions()
    # Z is read at every vertex, and is the same everywhere.
    np.testing.assert_allclose([*at_variables.values(), *at_factors, found.log_partition], joint.total(), rtol=0, atol=1e-12)
    edges = sum(len(factor.variables) for factor in factors)
    assert len(found.q) == len(found.r) == edges
    assert found.certify().holds, str(found.certify())


@pytest.mark.item("GRM-07")
def test_leaves_send_one_and_their_table():
    found = sum_product([Factor(["a"], [0.2, 0.8]), *CHAIN, Factor(["a", 1], [[1.0, 2.0], [3.0, 4.0]])])
    np.testing.assert_array_equal(found.q[3, 2], [0.0, 0.0])
    np.testing.assert_allclose(np.exp(found.r[0, "a"]), [0.2, 0.8], rtol=1e-15)


@pytest.mark.item("GRM-10")
def test_the_joint_of_two_variables_is_by_clamping():
    found = sum_product(CHAIN)
    np.testing.assert_allclose(found.pairwise(1, 3).ravel(), np.array([7, 7, 4, 9]) / 27, rtol=1e-14)
    # The product of unclamped messages is that of the marginals; with both clamped it is the square of the joint.
    np.testing.assert_allclose(
        np.outer(found.marginals[1], found.marginals[3]).ravel(), [0.211248, 0.307270, 0.196159, 0.285322], atol=6e-7
    )
    both = [np.exp(sum_product(CHAIN, {1: a, 3: b}).log_partition) ** 2 for a, b in itertools.product(range(2), repeat=2)]
    np.testing.assert_allclose(np.array(both) / sum(both), np.array([49, 49, 16, 81]) / 195, rtol=1e-13)


@pytest.mark.item("GRM-10")
@pytest.mark.parametrize("seed", range(6))
def test_pairs_of_random_forests(seed):
    factors = random_tree(seed, 4) + [
        Factor([("other", *f.variables[:1])], f.marginal(f.variables[:1]).values) for f in CHAIN[:1]
    ]
    names, found = names_of(factors), sum_product(factors)
    joint = enumerate_joint(factors, names).normalized()
    for i, j in itertools.permutations(names, 2):
        pair = found.pairwise(i, j)
        np.testing.assert_allclose(pair, joint.marginal([i, j]).values, rtol=1e-11, atol=1e-16)
        np.testing.assert_allclose(pair.sum(axis=1), found.marginals[i], rtol=1e-11)
        np.testing.assert_allclose(pair.sum(axis=0), found.marginals[j], rtol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_evidence_hard_soft_and_zeros(seed):
    factors = random_tree(seed, 5, zeros=0.2)
    names = names_of(factors)
    rng = np.random.default_rng(seed)
    joint = enumerate_joint(factors, names)
    if not np.isfinite(joint.total()):
        with pytest.raises(ValueError, match="contradict"):
            sum_product(factors)
        return
    # A state that can be, and likelihoods of another variable.
    first = joint.marginal([names[0]]).values
    soft = rng.random(joint.shape[-1]) + 0.1
    evidence = {names[0]: int(first.argmax()), names[-1]: soft}
    told = [Factor([names[-1]], soft)] if len(names) > 1 else []
    clamp = np.zeros(len(first))
    clamp[first.argmax()] = 1.0
    told.append(Factor([names[0]], clamp))
    if len(names) == 1:
        evidence = {names[0]: int(first.argmax())}
    truth = enumerate_joint([*factors, *told], names)
    found = sum_product(factors, evidence)
    assert found.log_partition == pytest.approx(truth.total(), rel=1e-12, abs=1e-12)
    for name in names:
        np.testing.assert_allclose(found.marginals[name], truth.marginal([name]).normalized().values, rtol=1e-11, atol=1e-300)
    assert found.certify().holds


def test_a_forest_of_several_trees_with_lonely_variables_and_constants():
    factors = [*CHAIN, Factor([], 5.0), Factor(["lonely"], [1.0, 3.0]), Factor(["x", "y"], np.ones((2, 3)))]
    found = sum_product(factors)
    assert np.exp(found.log_partition) == pytest.approx(27 * 5 * 4 * 6, rel=1e-14)
    np.testing.assert_allclose(found.marginals["lonely"], [0.25, 0.75], rtol=1e-15)
    at_variables, at_factors = found.log_partitions()
    np.testing.assert_allclose([*at_variables.values(), *at_factors], found.log_partition, rtol=1e-14)
    np.testing.assert_allclose(found.pairwise("lonely", 1), np.outer([0.25, 0.75], found.marginals[1]), rtol=1e-13)
    assert found.certify().holds


def test_a_chain_of_thousands_neither_overflows_nor_recurses():
    n, table = 3000, np.array([[100.0, 1.0], [1.0, 50.0]])
    found = sum_product([Factor([t, t + 1], table) for t in range(n)])
    # Z = 1ᵀ Tⁿ 1, in logarithms by powers of the leading eigenvalue.
    values, vectors = np.linalg.eigh(table)
    weights = vectors.sum(axis=0) ** 2
    truth = n * np.log(values[-1]) + np.log(weights[-1] + weights[0] * (values[0] / values[-1]) ** n)
    assert found.log_partition == pytest.approx(truth, rel=1e-13)
    np.testing.assert_allclose(found.marginals[0], found.marginals[n], rtol=1e-9)


@pytest.mark.item("GRM-09")
def test_operations_grow_as_the_formula_says():
    def cost(n_factors, k, scope):
        """Count on a tree of many factors over `scope` variables, in which every inner variable has about k factors."""
        factors, free, fresh = [], [(0, 0)], 1
        for _ in range(n_factors):
            variable, used = free.pop(0)
            new = list(range(fresh, fresh + scope - 1))
            fresh += scope - 1
            factors.append(Factor([variable, *new], np.ones([2] * scope)))
            if used + 1 < k:
                free.insert(0, (variable, used + 1))
            free += [(v, 1) for v in new]
        return sum_product(factors).operations, (fresh + n_factors) * (k + scope) * 2 ** (scope - 1)

    ratios = [
        ours / formula for n in (20, 40, 80) for k in (2, 4) for size in range(2, 11) for ours, formula in [cost(n, k, size)]
    ]
    assert max(ratios) < 4  # the constant: two messages an edge, two states
    # In l: doubling with every further variable of a factor, times the growth of l itself and of the number of edges.
    ours = np.array([cost(20, 2, size)[0] for size in range(4, 12)], dtype=float)
    sizes = np.arange(4, 12)
    scaled = ours / (sizes**2 * 2.0**sizes * 20)
    np.testing.assert_allclose(scaled, scaled[-1], rtol=0.08)
    # In the number of factors: linear.
    assert cost(80, 3, 4)[0] / cost(40, 3, 4)[0] == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(
    ("scopes", "cycle"),
    [
        ([("a", "b"), ("b", "a")], "'a' - f0 - 'b' - f1 - 'a'"),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")], "'b' - f1 - 'c' - f2 - 'd' - f3 - 'b'"),
        ([("a", "b", "c"), ("b", "c")], "f0 - 'b' - f1 - 'c' - f0"),
    ],
)
def test_a_cycle_is_named(scopes, cycle):
    with pytest.raises(ValueError, match="not a tree") as caught:
        sum_product([Factor(scope, np.ones([2] * len(scope))) for scope in scopes])
    ring = str(caught.value).split("the cycle ")[1].split(";")[0].split(" - ")
    assert ring[0] == ring[-1]
    # It is a cycle: factors and variables in turn, joined, and none is met twice.
    for one, two in itertools.pairwise(ring):
        factor, variable = sorted([one, two], key=lambda vertex: vertex[0] != "f")
        assert variable.strip("'") in scopes[int(factor[1:])]
    assert len(set(ring)) == len(ring) - 1
    assert set(ring) == set(cycle.split(" - "))


def test_sabotage_of_any_message_or_marginal_is_refused():
    for kind in ("q", "r", "marginals"):
        for scale in (1.01, 0.99):
            found = sum_product(random_tree(3))
            arrays = getattr(found, kind)
            for key in arrays:
                kept = arrays[key]
                arrays[key] = kept * np.linspace(1.0, scale, len(kept)) if len(kept) > 1 else kept * scale
                moved = np.linalg.norm(arrays[key] - kept) > 1e-3 * max(np.linalg.norm(kept), 1e-3)
                assert found.certify().holds != moved, (kind, key)
                arrays[key] = kept
    found = sum_product(CHAIN)
    found.log_partition *= 1.01
    assert found.certify().failed[0].name == "partition"


def test_refusals():
    with pytest.raises(ValueError, match="has 2 states in one factor and 3 in another"):
        sum_product([Factor(["a"], [1, 1]), Factor(["a"], [1, 1, 1])])
    with pytest.raises(ValueError, match="in no factor"):
        sum_product(CHAIN, {"z": 0})
    with pytest.raises(ValueError, match="no state 2; its states are 0, 1"):
        sum_product(CHAIN, {1: 2})
    with pytest.raises(ValueError, match="needs 2 likelihoods"):
        sum_product(CHAIN, {1: [1.0, 2.0, 3.0]})
    for likelihoods in ([np.inf, 1.0], [np.nan, 1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="finite and not negative"):
            sum_product(CHAIN, {1: likelihoods})
    with pytest.raises(ValueError, match="no state"):
        sum_product(CHAIN, {1: (0.5, 1.0)})  # as elsewhere, likelihoods are a list or an array
    with pytest.raises(ValueError, match=r"not a FactorGraph; give it the model's \.factors"):
        sum_product(FactorGraph(CHAIN))
    with pytest.raises(ValueError, match="two variables"):
        sum_product(CHAIN).pairwise(1, 1)
    with pytest.raises(ValueError, match="no variable 9"):
        sum_product(CHAIN).pairwise(1, 9)
    with pytest.raises(ValueError, match="contradict"):
        sum_product([Factor(["a"], [0.0, 1.0])], {"a": 0})
    assert walk_forest([], ["alone"]) == []


def test_pairs_are_factors():
    table = [[3, 1], [1, 2]]
    found = sum_product([("ab", table)], {"a": np.array([0.5, 1.0])})
    np.testing.assert_allclose(found.marginals["b"], sum_product([Factor("ab", table)], {"a": [0.5, 1.0]}).marginals["b"])
    np.testing.assert_allclose(found.marginals["b"], np.array([2.5, 2.5]) / 5, rtol=1e-14)
    assert found.certify().holds
