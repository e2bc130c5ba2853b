"""Block Gibbs sampling with trees, against enumeration, and against single variables at the critical temperature."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import lemmata
from lemmata.core.xoshiro import seed
from lemmata.graphical import FactorGraph, enumerate_joint, gibbs_program
from lemmata.graphical.factor import Factor, lay_out
from lemmata.sampling import tree_blocks
from lemmata.sampling.block_gibbs import BlockProgram, block_gibbs
from lemmata.sampling.draws import Draws
from lemmata.sampling.factor_gibbs import certify_gibbs, gibbs_marginals, gibbs_on_factors
from lemmata.sampling.tree_blocks import default_blocks, forest, ties
from sampling.grids import SIGMAS, asia, loop, torus, transfer_energy, within

CRITICAL = np.log(1 + np.sqrt(2)) / 2


def chain(n, card=3, number=0):
    rng = np.random.default_rng(number)
    return FactorGraph([((i, i + 1), rng.gamma(0.5, size=(card, card))) for i in range(n - 1)])


def layout_of(scopes, number=0, cards=None):
    """Random factors with the given scopes."""
    rng = np.random.default_rng(number)
    n = max(v for scope in scopes for v in scope) + 1
    cards = [2] * n if cards is None else cards
    factors = [Factor(scope, rng.gamma(1.0, size=[cards[v] for v in scope])) for scope in scopes]
    return factors, lay_out(factors, {v: v for v in range(n)}, cards)


def surprise(counts, law):
    """Chance of counts so far from a law; what is expected less than five times is put together."""
    expected = law * counts.sum()
    often = expected > 5
    pairs = [np.append(a[often], a[~often].sum()) if (~often).any() else a.ravel() for a in (counts, expected)]
    return stats.chisquare(*pairs).pvalue


@pytest.fixture(params=["tables", "sums"])
def way(request, monkeypatch):
    """Both ways to the weights of a block: rows of tables, and logarithms that are summed at each draw."""
    if request.param == "sums":
        monkeypatch.setattr(gibbs_program, "MOST", 0)
    return request.param


@pytest.mark.item("SMP-09")
def test_a_chain_is_drawn_from_its_law(way):
    model = chain(4)
    joint = enumerate_joint(model.factors, model.variables).normalized().values
    program = BlockProgram(model.layout, [[0, 1, 2, 3]])
    assert (program.tables.starts >= 0).all() == (way == "tables")
    for x in product(range(3), repeat=4):  # the chance of every state is known exactly
        assert program.chance(0, x) == pytest.approx(joint[x], rel=1e-12)
    # β of the catalogue, with β(N) = 1
    betas = [np.ones(3)]
    for factor in model.factors[::-1]:
        betas.insert(0, factor.values @ betas[0])
    first = betas[0] / betas[0].sum()
    assert joint.sum(axis=(1, 2, 3)) == pytest.approx(first, rel=1e-12)
    draws, x, state = np.empty((20_000, 4), dtype=np.int32), np.zeros(4, dtype=np.int32), seed(np.random.default_rng(0))
    program.record(x, state, 1, False, draws, np.empty(20_000))
    counts = np.zeros((3,) * 4)
    np.add.at(counts, tuple(draws.T), 1)
    assert surprise(counts, joint) > 1e-3


@pytest.mark.item("SMP-09")
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_a_sweep_over_blocks_leaves_the_law_as_it_is(way, scan):
    cards = [2, 3, 2, 2, 3, 2]
    cases = [
        ([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]], [[0, 1, 2], [3, 4, 5]]),  # a ring in two paths
        ([[0, 1, 2], [2, 3], [3, 4, 5], [1, 4], [0]], [[0, 1, 2, 3], [4, 5]]),  # a factor of three inside
        ([[0, 1, 2], [1, 2], [2, 1, 0], [0, 3], [3, 4, 5], [1, 5]], [[0, 1, 2, 3], [3, 4], [5]]),  # sets in sets, and overlap
        ([[0, 1, 3], [1, 2, 4], [2, 3], [4, 5], [0, 5]], [[0, 1, 2], [3, 4, 5]]),  # pairs whose weights depend on outside
        ([[3, 0, 2, 1], [5, 2, 4], [1, 4]], [[0, 1, 2, 3, 5], [4]]),  # stars
    ]
    for number, (scopes, blocks) in enumerate(cases):
        factors, layout = layout_of(scopes, number, cards)
        program = BlockProgram(layout, blocks)
        x, law = program.states()
        joint = enumerate_joint(factors, range(6)).normalized().values
        np.testing.assert_allclose(law, joint[tuple(x.T)], rtol=1e-11)
        matrix = program.matrix(scan)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
        assert np.abs(law @ matrix - law).sum() < 1e-12
        for i, (block, step) in enumerate(zip(program.blocks, program.steps(), strict=True)):
            np.testing.assert_allclose(law[:, None] * step, (law[:, None] * step).T, rtol=1e-11, atol=1e-300)
            state = x[7]
            index = tuple(slice(None) if v in block else state[v] for v in range(6))
            given = joint[index] / joint[index].sum()
            assert program.chance(i, state) == pytest.approx(given[tuple(state[sorted(block)])], rel=1e-11)


@pytest.mark.item("SMP-09")
def test_draws_of_blocks_given_the_rest_follow_their_law(way):
    cards = [2, 2, 3, 3, 2, 3]
    scopes, block = [[3, 0, 2, 1], [5, 2, 4], [1, 4], [3], [5, 4]], [0, 1, 2, 3, 5]
    factors, layout = layout_of(scopes, 5, cards)
    program = BlockProgram(layout, [block], [-1, -1, -1, -1, 1, -1])
    joint = enumerate_joint(factors, range(6)).values[:, :, :, :, 1]
    joint /= joint.sum()
    state, n = seed(np.random.default_rng(1)), 20_000
    draws = np.empty((n, 6), dtype=np.int32)
    program.record(np.array([0, 0, 0, 0, 1, 0], dtype=np.int32), state, 1, False, draws, np.empty(n))
    assert (draws[:, 4] == 1).all()
    counts = np.zeros(joint.shape)
    np.add.at(counts, tuple(draws[:, block].T), 1)
    assert surprise(counts, joint) > 1e-3


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-09")
def test_marginals_are_those_of_the_model():
    for number, evidence in ((0, None), (1, {3: 2}), (2, {0: 1, 1: [0.2, 1.0, 0.7]})):
        model = loop(number=number)
        for blocks, scan in ((None, "systematic"), ([[0, 1], [2], [3, 4]], "random")):
            draws = block_gibbs(model, 3000, blocks, evidence=evidence, scan=scan, random_state=number)
            assert within(draws, model, evidence) < SIGMAS
        found, exact = (
            gibbs_marginals(model, 3000, evidence=evidence, blocks="trees", random_state=1),
            model.marginals(evidence),
        )
        for name in model.variables:
            off = np.abs(found.probabilities[name] - exact[name])
            assert (off <= SIGMAS * found.standard_errors[name] + 1e-14).all()


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-09")
def test_blocks_hold_what_single_variables_cannot_cross():
    model = asia()
    assert [check.name for check in certify_gibbs(model).failed] == ["classes"]
    assert certify_gibbs(model, blocks="trees").holds
    loose, equal = [[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 2.0]]
    ring = FactorGraph([("ab", loose), ("bc", loose), ("cd", loose), ("da", equal)])
    assert {"a", "d"} <= {ring.variables[v] for v in default_blocks(ring.layout, np.full(4, -1))[0]}
    assert not certify_gibbs(ring, blocks=["abc", "d"]).holds
    assert certify_gibbs(ring, blocks="trees").holds
    for evidence in (None, {"dysp": 1, "xray": 1}):
        draws = block_gibbs(model, 4000, evidence=evidence, random_state=0)
        assert within(draws, model, evidence) < SIGMAS


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-09")
def test_energy_of_a_torus_by_columns():
    rows, columns = 6, 5
    model = torus(rows, columns, CRITICAL)
    # a whole column is a cycle on a torus: the last row is drawn by itself
    blocks = [[(i, j) for i in range(rows - 1)] for j in range(columns)] + [[(rows - 1, j)] for j in range(columns)]
    draws = block_gibbs(model, 3000, blocks, random_state=0)
    energy = Draws(-draws.log_density[:, :, None] / CRITICAL)
    assert abs(energy.values.mean() - transfer_energy(rows, columns, CRITICAL)) < SIGMAS * energy.mcse[0]


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-09")
def test_blocks_forget_faster_at_the_critical_temperature():
    n, table = 24, np.exp(CRITICAL * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    pairs = [((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)]
    pairs += [((j, i), (j + 1, i)) for i in range(n) for j in range(n - 1)]
    model = FactorGraph([(pair, table) for pair in pairs])
    columns = [[(i, j) for i in range(n)] for j in range(n)]
    sizes = []
    for draws in (gibbs_on_factors(model, 4000, random_state=0), block_gibbs(model, 4000, columns, random_state=0)):
        energy = Draws(draws.log_density[:, :, None])
        spins = Draws(np.abs(2.0 * draws.values.mean(axis=2) - 1)[:, :, None])
        sizes.append([energy.ess_bulk[0], spins.ess_bulk[0]])
    assert sizes[1][0] > 1.5 * sizes[0][0]  # about twice as many effective draws of the energy
    assert sizes[1][1] > 1.5 * sizes[0][1]


@pytest.mark.slow_without_jit
def test_long_chains_do_not_run_out_of_range():
    n, rng = 3000, np.random.default_rng(0)
    random = [((i, i + 1), rng.gamma(1.0, size=(2, 2))) for i in range(n)]
    torn = [((i, i + 1), [[1.0, 0.05], [0.05, 1.0]]) for i in range(n)]  # equal neighbors, and each wants to be another
    torn += [([i], [1.0, 0.05][:: (-1) ** i]) for i in range(n + 1)]  # every second tie costs a factor: 0.05¹⁵⁰⁰ in all
    loose = [((i, i + 1), [[1.0, 1.0], [1.0, 0.9]]) for i in range(n)]  # and here sums reach 1.9³⁰⁰⁰
    scaled = [(scope, 1e-200 * table) for scope, table in random]
    for factors in (random, torn, loose, scaled):
        model = FactorGraph(factors)
        draws = block_gibbs(model, 200, n_chains=1, warmup=0, random_state=0).values[0]
        marginals = model.marginals()
        exact = np.array([marginals[v][1] for v in model.variables])
        off = (draws.mean(axis=0) - exact) / np.sqrt(exact * (1 - exact) / 200)
        assert np.mean(off**2) == pytest.approx(1, abs=0.4)  # 3001 squares, of which some hundred are independent
        if factors is random:
            expected = draws
    assert np.array_equal(draws, expected)


def test_a_cycle_is_named():
    model = torus(3, 4, 0.3)
    with pytest.raises(ValueError, match=r"Block 1 is no forest: .*\(1, 1\).* make a cycle"):
        block_gibbs(model, 10, [[(0, 0)], [(0, 0), (0, 1), (1, 1), (1, 0)], list(model.variables)])
    _, layout = layout_of([[0, 1], [1, 2], [2, 3], [3, 4], [4, 1]])
    with pytest.raises(ValueError, match="Block 0 is no forest") as told:
        BlockProgram(layout, [[0, 1, 2, 3, 4]])
    words = str(told.value).split(": ")[1].split(" make")[0].split(" – ")
    assert sorted(words) == ["1", "2", "3", "4"]
    _, layout = layout_of([[0, 1, 2], [1, 2, 3]])  # two factors that share two variables
    with pytest.raises(ValueError, match=r"Block 0 is no forest: (1 – 2|2 – 1) make"):
        BlockProgram(layout, [[0, 1, 2, 3]])
    BlockProgram(layout, [[0, 1, 2, 3]], [-1, 0, -1, -1])  # evidence cuts it


def test_blocks_are_checked():
    model = loop()
    with pytest.raises(ValueError, match="4 is in none"):
        block_gibbs(model, 10, [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="twice"):
        block_gibbs(model, 10, [[0, 0], [1, 2, 3], [4]])
    with pytest.raises(ValueError, match="'z', which is no variable"):
        block_gibbs(model, 10, [["z"]])
    with pytest.raises(ValueError, match='or "trees"'):
        gibbs_marginals(model, 10, blocks="columns")
    block_gibbs(model, 10, [[0, 1], [2, 3]], evidence={4: 0})  # what is known needs no block


def test_default_blocks_are_forests_that_cover_everything():
    rng = np.random.default_rng(0)
    for number in range(40):
        n = int(rng.integers(3, 12))
        scopes = [rng.choice(n, size=min(n, rng.integers(1, 5)), replace=False).tolist() for _ in range(rng.integers(2, 14))]
        _, layout = layout_of([*scopes, [n - 1]], number)
        codes = np.where(rng.random(n) < 0.2, 0, -1)
        blocks = default_blocks(layout, codes)
        assert sorted(v for block in blocks for v in block) == np.flatnonzero(codes < 0).tolist()
        BlockProgram(layout, blocks, codes)  # raises where one is no forest
        assert blocks == default_blocks(layout, codes)
    for tree in ([[0, 1], [1, 2], [1, 3], [3, 4]], [[0, 1, 2], [2, 3, 4], [4, 5]], [[0, 1, 2], [1, 2], [2, 0], [2, 3]]):
        _, layout = layout_of(tree)
        assert len(default_blocks(layout, np.full(len(layout.cards), -1))) == 1
    grid = torus(10, 10, 0.4)
    assert len(default_blocks(grid.layout, np.full(100, -1))) <= 3


def test_large_factors_are_cut_by_default(monkeypatch):
    monkeypatch.setattr(tree_blocks, "LARGEST", 8)
    _, layout = layout_of([[0, 1, 2, 3, 4]])
    assert default_blocks(layout, np.full(5, -1)) == [[0, 1, 2], [3, 4]]


def test_a_forest_is_rooted_from_its_ties():
    scopes = [[0, 1, 2], [1, 2], [2, 3], [3], [5, 6], [6, 9]]
    around = {v: [m for m, scope in enumerate(scopes) if v in scope] for v in range(10)}
    single, tied = ties([0, 1, 2, 3, 5, 6], scopes.__getitem__, around.__getitem__)
    assert single == {0: [], 1: [], 2: [], 3: [3], 5: [], 6: [5]}
    assert tied == {frozenset({0, 1, 2}): [0, 1], frozenset({2, 3}): [2], frozenset({5, 6}): [4]}
    roots, links = forest([0, 1, 2, 3, 5, 6], tied)
    assert roots == [0, 5]
    assert links == [(0, [1, 2], [0, 1]), (2, [3], [2]), (5, [6], [4])]


@pytest.mark.slow_without_jit
def test_the_same_bits_on_any_number_of_threads():
    model, found = torus(6, 6, 0.44), []
    for n_threads in (1, 2, 3):
        with lemmata.config(n_threads=n_threads):
            found.append(block_gibbs(model, 1500, random_state=3).values)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_a_chain_drawn_as_a_whole_is_independent():
    model = chain(6, card=2, number=4)
    draws = block_gibbs(model, 4000, n_chains=2, random_state=0)
    assert within(draws, model) < SIGMAS
    assert (draws.ess_bulk[draws.values.std(axis=(0, 1)) > 0.1] > 0.85 * 8000).all()
