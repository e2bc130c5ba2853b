"""The compiled conditionals of single variables, against enumeration of the joint and a sweep written for reading."""

import numpy as np
import pytest
from scipy import stats

from lemmata.core.xoshiro import fill_uniform, seed
from lemmata.graphical import gibbs_kernels, gibbs_program
from lemmata.graphical.factor import Factor, enumerate_joint, lay_out
from lemmata.graphical.gibbs_program import SiteProgram, chains


def graph(number, cards=(2, 3, 2, 4, 2), zeros=0.0):
    """Random factors of one to three variables each."""
    rng = np.random.default_rng(number)
    scopes = [[0, 1], [3, 1, 2], [2, 4], [0, 4], [1], [4, 2, 0], [2, 4]]
    factors = []
    for scope in scopes:
        table = rng.gamma(0.7, size=[cards[v] for v in scope])
        factors.append(Factor(scope, np.where(rng.random(table.shape) < zeros, 0.0, table)))
    return factors, lay_out(factors, {v: v for v in range(len(cards))}, cards)


def given_all_others(factors, n, codes, v, x):
    """p(x_v | all others), from the joint of everything."""
    joint = enumerate_joint(factors, range(n)).values
    row = joint[tuple(slice(None) if u == v else x[u] for u in range(n))]
    return row / row.sum()


def spins(rows, columns, beta):
    """Layout of a grid of spins."""
    table, factors = np.exp(beta * np.array([[1.0, -1.0], [-1.0, 1.0]])), []
    for i in range(rows):
        for j in range(columns):
            k = i * columns + j
            factors += [Factor([k, k + 1], table)] * (j + 1 < columns) + [Factor([k, k + columns], table)] * (i + 1 < rows)
    n = rows * columns
    return lay_out(factors, dict(zip(range(n), range(n), strict=True)), [2] * n)


@pytest.fixture(params=["tables", "sums"])
def way(request, monkeypatch):
    """Both ways to a conditional: a row of a table, and logarithms that are summed at each draw."""
    if request.param == "sums":
        monkeypatch.setattr(gibbs_program, "MOST", 0)
    return request.param


@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("codes", [[-1, -1, -1, -1, -1], [-1, 2, -1, -1, 1]])
def test_conditionals_are_those_of_the_joint(way, codes):
    for number in range(3):
        factors, layout = graph(number)
        program, rng = SiteProgram(layout, codes), np.random.default_rng(number)
        assert (program.tables.starts >= 0).all() == (way == "tables")
        for _ in range(10):
            x = np.where(program.codes >= 0, program.codes, rng.integers(0, layout.cards))
            for i, v in enumerate(program.free):
                np.testing.assert_allclose(
                    program.conditional(i, x), given_all_others(factors, 5, codes, v, x), rtol=1e-12, atol=1e-15
                )


@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_a_sweep_leaves_the_law_as_it_is(way, scan):
    for number, codes in ((0, None), (1, [-1, -1, 1, -1, -1])):
        factors, layout = graph(number)
        program = SiteProgram(layout, codes)
        x, law = program.states()
        joint = enumerate_joint(factors, range(5)).values
        expected = joint[tuple(x.T)]
        np.testing.assert_allclose(law, expected / expected.sum(), rtol=1e-12)
        matrix = program.matrix(scan)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
        assert np.abs(law @ matrix - law).sum() < 1e-12
        assert np.linalg.matrix_power(matrix, 2000)[0] == pytest.approx(law, abs=1e-10)  # and it is reached


@pytest.mark.item("SMP-08")
def test_every_draw_is_a_metropolis_step_with_ratio_one(way):
    _, layout = graph(2)
    program = SiteProgram(layout)
    _, law = program.states()
    for step in program.steps():
        there, back = law[:, None] * step, (law[:, None] * step).T
        assert (there > 0).sum() > len(law)
        np.testing.assert_allclose(there, back, rtol=1e-12)


def test_a_sweep_equals_its_slow_twin(way):
    factors, layout = graph(3)
    program = SiteProgram(layout, [-1, -1, 0, -1, -1])
    for random_scan in (False, True):
        state = seed(np.random.default_rng(0))
        copy, x = state.copy(), np.array([0, 2, 0, 3, 1], dtype=np.int32)
        slow = x.copy()
        program.run(x, state, 5, random_scan)
        n = len(program.free)
        for _ in range(5):
            u, sites = np.empty(n), np.arange(n)
            if random_scan:
                fill_uniform(copy, u)
                sites = np.floor(u * n).astype(int)
            fill_uniform(copy, u)
            for t, i in enumerate(sites):
                v = program.free[i]
                slow[v] = np.searchsorted(np.cumsum(given_all_others(factors, 5, None, v, slow))[:-1], u[t], side="right")
        assert np.array_equal(x, slow)


def test_draws_follow_the_law(way):
    for random_scan, number in ((False, 0), (True, 1)):
        _, layout = graph(number, cards=(2, 2, 2, 3, 2))
        program = SiteProgram(layout, [-1, 0, -1, -1, -1])
        x, law = program.states()
        [(now, state)] = chains(program, 1, np.random.default_rng(3))
        out, logs = np.empty((4000, 5), dtype=np.int32), np.empty(4000)
        program.record(now, state, 10, random_scan, out, logs)  # ten sweeps apart: hardly dependent
        counts = np.array([(out == row).all(axis=1).sum() for row in x])
        often = law * 4000 > 5
        observed, expected = np.append(counts[often], counts[~often].sum()), np.append(law[often], law[~often].sum()) * 4000
        assert stats.chisquare(observed, expected).pvalue > 1e-3
        np.testing.assert_allclose(logs[:20], [program.log_density(row) for row in out[:20]], rtol=1e-13)


def test_equal_tables_are_stored_once():
    program = SiteProgram(spins(9, 9, 0.4))
    assert len(program.tables.values) == 16 + 8 + 4  # inside, along an edge, in a corner
    assert len(set(program.tables.starts.tolist())) == 3


def test_other_values_of_the_same_factors():
    _, first = graph(0)
    _, second = graph(1)
    program = SiteProgram(first)
    program.refill(second.tables)
    fresh = SiteProgram(second)
    x = np.array([1, 0, 1, 2, 0])
    for i in range(5):
        assert np.array_equal(program.conditional(i, x), fresh.conditional(i, x))


def test_counts_are_those_of_the_states():
    factors, layout = graph(4)
    counts, x = np.zeros(len(layout.tables)), np.array([1, 2, 0, 3, 1], dtype=np.int32)
    gibbs_kernels.count_tables(layout.scope_starts, layout.scopes, layout.cards, layout.table_starts, x, counts)
    for m, factor in enumerate(factors):
        table = counts[layout.table_starts[m] : layout.table_starts[m + 1]].reshape(factor.shape)
        assert table.sum() == 1
        assert table[tuple(x[list(factor.variables)])] == 1


@pytest.mark.item("SMP-08")
def test_deterministic_factors():
    equal = Factor("ab", [[1.0, 0.0], [0.0, 2.0]])
    layout = lay_out([equal], {"a": 0, "b": 1}, [2, 2])
    assert SiteProgram(layout).classes() == 2
    assert SiteProgram(layout, [1, -1]).classes() == 1
    loose = lay_out([equal, Factor("b", [0.5, 0.0])], {"a": 0, "b": 1}, [2, 2])
    assert SiteProgram(loose).classes() == 1  # only (0, 0) is possible
    assert SiteProgram(loose).start(np.random.default_rng(0)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="The factor of 'b' is zero for every state that the evidence allows"):
        SiteProgram(loose, [-1, 1], "ab")
    never = lay_out([equal, Factor("a", [1.0, 0.0]), Factor("a", [0.0, 1.0])], {"a": 0, "b": 1}, [2, 2])
    with pytest.raises(ValueError, match="No state of 'a' has a probability above zero"):
        SiteProgram(never, names="ab")
    chain = [Factor([i, i + 1], [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.2, 0.0, 0.0]]) for i in range(29)]
    long = SiteProgram(lay_out(chain, {i: i for i in range(30)}, [3] * 30))
    assert long.classes() is None  # too many states to look at
    for number in range(5):
        assert np.isfinite(long.log_density(long.start(np.random.default_rng(number))))


def test_zeros_that_evidence_takes_away_do_not_count():
    layout = lay_out([Factor("ab", [[1.0, 0.0], [1.0, 2.0]])], {"a": 0, "b": 1}, [2, 2])
    assert not SiteProgram(layout).positive
    assert SiteProgram(layout, [1, -1]).positive
    assert SiteProgram(layout, [1, 0]).free.size == 0
    x = np.array([1, 0], dtype=np.int32)
    SiteProgram(layout, [1, 0]).run(x, seed(np.random.default_rng(0)), 3)
    assert x.tolist() == [1, 0]


def test_a_state_of_probability_zero_is_never_drawn():
    layout = lay_out([Factor("a", [0.0, 1e-300, 0.0, 3.0, 0.0])], {"a": 0}, [5])
    program = SiteProgram(layout)
    assert program.conditional(0, [1]).tolist() == [0, pytest.approx(3.3e-301, rel=0.02), 0, 1, 0]
    x, state = np.array([1], dtype=np.int32), seed(np.random.default_rng(0))
    for _ in range(50):
        program.run(x, state, 1)
        assert x[0] == 3


def test_starts_are_checked():
    _, layout = graph(0)
    program, rng = SiteProgram(layout, [1, -1, -1, -1, -1]), np.random.default_rng(0)
    (x, _), (y, _) = chains(program, 2, rng, [0, 1, 1, 1, 1])
    assert x.tolist() == y.tolist() == [1, 1, 1, 1, 1]  # evidence has the last word
    for bad in ([0, 1], [0, 3, 0, 0, 0], [0, -1, 0, 0, 0]):
        with pytest.raises(ValueError, match="start must hold 5 numbers"):
            chains(program, 1, rng, bad)
    zero = SiteProgram(lay_out([Factor("ab", [[1.0, 0.0], [1.0, 1.0]])], {"a": 0, "b": 1}, [2, 2]))
    with pytest.raises(ValueError, match="probability zero"):
        chains(zero, 1, rng, [0, 1])
