"""Boolean message passing against brute force, known counts and refutations."""

from itertools import combinations, islice, product

import numpy as np
import pytest

from lemmata.graphical.constraints import ConstraintProblem, Message, Verdict, spread


def brute(domains, constraints):
    """List all solutions of constraints that are functions."""
    names = list(domains)
    for values in product(*domains.values()):
        row = dict(zip(names, values, strict=True))
        if all(rule(*(row[name] for name in scope)) for scope, rule in constraints):
            yield row


def random_sat(seed, n=9, ratio=4.3):
    rng = np.random.default_rng(seed)
    scopes = [rng.choice(n, 3, replace=False) + 1 for _ in range(int(ratio * n))]
    return [[int(v) * int(rng.choice([-1, 1])) for v in scope] for scope in scopes]


def satisfies(row, clauses):
    return all(any(row[abs(literal)] == (literal > 0) for literal in clause) for clause in clauses)


def differ(a, b):
    return a != b


def coloring(edges, n, colors):
    return ConstraintProblem({v: range(colors) for v in range(n)}, [(edge, differ) for edge in edges])


@pytest.mark.item("GRM-12")
@pytest.mark.parametrize("seed", range(12))
def test_random_sat_is_decided_counted_and_listed(seed):
    clauses = random_sat(seed)
    problem = ConstraintProblem.from_cnf(clauses, 9)
    rows = [dict(zip(range(1, 10), bits, strict=True)) for bits in product([False, True], repeat=9)]
    truth = [row for row in rows if satisfies(row, clauses)]
    found = problem.solve()
    assert found.satisfiable == bool(truth)
    assert problem.count() == len(truth)
    listed = list(problem.all_solutions())
    assert len(listed) == len(truth)
    assert all(row in truth for row in listed)
    if truth:
        assert found.assignment in truth
    else:
        assert found.exhausted is not None
        assert not found.messages[-1].table.any()
    assert problem.certify(found).holds, str(problem.certify(found))
    assert problem.certify(found).kind == "proof"


def test_there_were_both_kinds():
    kinds = {ConstraintProblem.from_cnf(random_sat(seed), 9).solve().satisfiable for seed in range(12)}
    assert kinds == {True, False}


@pytest.mark.item("GRM-12")
@pytest.mark.parametrize(("n", "colors"), [(5, 3), (6, 3), (7, 2), (12, 4), (200, 3)])
def test_colorings_of_a_cycle_are_known(n, colors):
    # (k − 1)ⁿ + (−1)ⁿ (k − 1): 2¹⁹⁹-ish for the last, which no machine integer holds.
    problem = coloring([(v, (v + 1) % n) for v in range(n)], n, colors)
    truth = (colors - 1) ** n + (-1) ** n * (colors - 1)
    assert problem.count() == truth
    assert problem.width == 2
    assert problem.solve().satisfiable == (truth > 0)
    assert problem.certify().holds


@pytest.mark.item("GRM-12")
@pytest.mark.parametrize("seed", range(5))
def test_colorings_of_random_graphs(seed):
    rng = np.random.default_rng(seed)
    edges = [pair for pair in combinations(range(7), 2) if rng.random() < 0.5]
    problem = coloring(edges, 7, 3)
    truth = list(brute({v: range(3) for v in range(7)}, [(edge, differ) for edge in edges]))
    assert problem.count() == len(truth)
    found = list(problem.all_solutions())
    key = lambda row: tuple(row.values())  # noqa: E731
    assert sorted(found, key=key) == sorted(truth, key=key)
    assert list(islice(problem.all_solutions(), 3)) == list(problem.all_solutions(limit=3))


@pytest.mark.parametrize(("n", "solutions"), [(1, 1), (2, 0), (3, 0), (4, 2), (5, 10), (6, 4), (7, 40)])
def test_queens(n, solutions):
    rules = [((i, j), lambda a, b, d=j - i: a != b and abs(a - b) != d) for i, j in combinations(range(n), 2)]
    problem = ConstraintProblem({row: range(n) for row in range(n)}, rules)
    assert problem.count() == solutions
    assert len(list(problem.all_solutions())) == solutions
    assert problem.solve().satisfiable == (solutions > 0)
    assert problem.certify().holds


def test_pigeons_do_not_fit():
    # Four pigeons, three holes: unsatisfiable, and proved so.
    problem = coloring(list(combinations(range(4), 2)), 4, 3)
    found = problem.solve()
    assert not found.satisfiable
    assert set(found.exhausted) <= set(range(4))
    assert problem.count() == 0
    assert list(problem.all_solutions()) == []
    assert problem.certify(found).holds


def test_counts_that_overflow_machine_integers():
    # 100 free switches and a chain: 2¹⁰⁰ times 3 · 2⁹⁹.
    domains = {("switch", i): (0, 1) for i in range(100)} | {("link", i): "abc" for i in range(100)}
    problem = ConstraintProblem(domains, [((("link", i), ("link", i + 1)), differ) for i in range(99)])
    assert problem.count() == 2**100 * 3 * 2**99
    assert len(list(problem.all_solutions(limit=50))) == 50
    # A star whose hub hears 64 messages of two: just more than a machine integer holds.
    star = ConstraintProblem(dict.fromkeys(range(65), (0, 1)), [((0, i), np.ones((2, 2), bool)) for i in range(1, 65)])
    assert star.count() == 2**65


def test_rules_of_all_kinds_mean_the_same():
    domains = {"a": ["x", "y", "z"], "b": [10, 20]}
    allowed = [("x", 10), ("y", 20), ("z", 10)]
    table = np.array([[True, False], [False, True], [True, False]])
    ways = [allowed, set(allowed), table, lambda a, b: (a, b) in allowed]
    for rule in ways:
        problem = ConstraintProblem(domains, [("ab", rule)])
        assert problem.count() == 3
        assert sorted((row["a"], row["b"]) for row in problem.all_solutions()) == sorted(allowed)
        assert problem.certify().holds
        assert problem.violated({"a": "y", "b": 10}) == [0]


def test_degenerate_problems():
    assert ConstraintProblem({}, []).count() == 1
    assert ConstraintProblem({}, []).solve().assignment == {}
    assert ConstraintProblem({"a": [1, 2]}, []).count() == 2
    empty = ConstraintProblem.from_cnf([[1, 2], []])
    assert not empty.solve().satisfiable
    assert empty.solve().exhausted == ()
    assert empty.count() == 0
    assert empty.certify().holds
    assert ConstraintProblem.from_cnf([[1, -1]]).count() == 2
    assert ConstraintProblem.from_cnf([[1, 1, 0]], 2).count() == 2
    never = ConstraintProblem({"a": [1, 2], "b": [1]}, [("a", lambda a: False)])
    assert never.solve().exhausted == ("a",)
    assert never.certify().holds


@pytest.mark.parametrize("seed", range(8))
def test_false_proofs_and_false_solutions_are_refused(seed):
    problem = ConstraintProblem.from_cnf(random_sat(seed), 9)
    found = problem.solve()
    if found.satisfiable:
        wrong = dict(found.assignment)
        clauses = random_sat(seed)
        flipped = next(v for v in wrong if not satisfies(wrong | {v: not wrong[v]}, clauses))
        wrong[flipped] = not wrong[flipped]
        assert not problem.certify(found._replace(assignment=wrong)).holds
        assert not problem.certify(found._replace(assignment={**found.assignment, 1: "maybe"})).holds
        # A forged proof: the last message, emptied.
        *before, last = found.messages
        forged = Verdict(None, (1,), [*before, last._replace(table=np.zeros_like(last.table))])
        assert not problem.certify(forged).holds
        assert not problem.certify(Verdict(None, (), [])).holds
        assert not problem.certify(Verdict(None, (1, 2), [Message(1, (2,), np.zeros(0, bool))])).holds
    else:
        assert not problem.certify(found._replace(messages=found.messages[:-1])).holds
        *before, last = found.messages
        kept = Message(last.eliminated, last.variables, np.ones_like(last.table))
        assert not problem.certify(found._replace(messages=[*before, kept])).holds
        assert not problem.certify(found._replace(messages=[last])).holds


def test_refusals():
    with pytest.raises(ValueError, match=r"width 29 .* 1,073,741,824 entries"):
        coloring(list(combinations(range(30), 2)), 30, 2)
    with pytest.raises(ValueError, match="max_entries=100"):
        ConstraintProblem(
            {v: range(8) for v in range(3)}, [((0, 1), differ), ((1, 2), differ), ((0, 2), differ)], max_entries=100
        )
    with pytest.raises(ValueError, match="split it into smaller ones"):
        ConstraintProblem({v: range(10) for v in range(9)}, [(range(9), lambda *x: True)])
    with pytest.raises(ValueError, match="has no domain"):
        ConstraintProblem({"a": [1]}, [("ab", differ)])
    with pytest.raises(ValueError, match="repeats one"):
        ConstraintProblem({"a": [1, 2]}, [("aa", differ)])
    with pytest.raises(ValueError, match="all different"):
        ConstraintProblem({"a": [1, 1]}, [])
    with pytest.raises(ValueError, match="needs the shape"):
        ConstraintProblem({"a": [1, 2]}, [("a", np.ones(3, dtype=bool))])
    with pytest.raises(ValueError, match="not values of these"):
        ConstraintProblem({"a": [1, 2]}, [("a", [(3,)])])
    with pytest.raises(ValueError, match="must be a function"):
        ConstraintProblem({"a": [1, 2]}, [("a", 7)])
    with pytest.raises(ValueError, match="n_variables is 2"):
        ConstraintProblem.from_cnf([[1, 3]], 2)


def test_tables_are_spread_over_larger_scopes():
    for dtype in (bool, np.int64, object):
        table = np.arange(6).astype(dtype).reshape(2, 3)
        found = spread(("b", "a"), table, ("a", "z", "b"))
        assert found.dtype == table.dtype
        np.testing.assert_array_equal(found, table.T[:, None, :])
