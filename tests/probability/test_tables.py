"""Joint tables against exact fractions: marginals, conditions, expectations, covariances, and what independence is not."""

from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from lemmata.probability.arrays import check_probabilities
from lemmata.probability.information import entropy, mutual_information
from lemmata.probability.tables import JointTable, total_probability

NAMES = ["x", "y", "z"]
VALUES = [[-1, 0, 2], [1, 3], [0, 5, 7, 8]]


def counted(seed, shape=(3, 2, 4)):
    """Random counts, none zero, their table and the exact probabilities."""
    counts = np.random.default_rng(seed).integers(1, 20, size=shape)
    exact = {cell: Fraction(int(counts[cell]), int(counts.sum())) for cell in np.ndindex(*shape)}
    return JointTable.from_counts(counts, NAMES[: len(shape)], VALUES[: len(shape)]), exact


def exactly(exact, kept):
    """Sum exact probabilities over all axes but those kept, in the order given."""
    result = {}
    for cell, p in exact.items():
        key = tuple(cell[i] for i in kept)
        result[key] = result.get(key, 0) + p
    return result


@pytest.mark.item("PRB-01")
@pytest.mark.parametrize("seed", range(3))
def test_marginals_and_conditionals_are_the_exact_ones(seed):
    table, exact = counted(seed)
    assert table.p.sum() == pytest.approx(1, abs=1e-15)
    for k in (1, 2, 3):
        for kept in permutations(range(3), k):
            found = table.marginal([NAMES[i] for i in kept])
            assert found.names == tuple(NAMES[i] for i in kept)
            assert found.p.sum() == pytest.approx(1, abs=1e-15)
            for cell, p in exactly(exact, kept).items():
                assert found.p[cell] == pytest.approx(float(p), rel=1e-14)
                event = {NAMES[i]: VALUES[i][j] for i, j in zip(kept, cell, strict=True)}
                assert table.probability(**event) == pytest.approx(float(p), rel=1e-14)
    for names, given in (("x", "y"), ("y", ["z", "x"]), (["z", "x"], "y"), ("z", "x")):
        n, g = ([NAMES.index(name) for name in ([part] if isinstance(part, str) else part)] for part in (names, given))
        found, below = table.conditional(names, given), exactly(exact, g)
        assert found.shape == tuple(table.p.shape[i] for i in g + n)
        for cell, p in exactly(exact, g + n).items():
            assert found[cell] == pytest.approx(float(p / below[cell[: len(g)]]), rel=1e-14)


@pytest.mark.item("PRB-01")
@pytest.mark.parametrize("seed", range(3))
def test_the_product_rule_rebuilds_the_joint_and_the_order_of_sums_does_not_matter(seed):
    table, _ = counted(seed)
    rebuilt = JointTable.from_conditional(table.marginal("y").p, table.conditional(["x", "z"], "y"), ["y", "x", "z"])
    np.testing.assert_allclose(rebuilt.marginal(NAMES).p, table.p, rtol=1e-14)
    np.testing.assert_allclose(table.conditional("x", "y").sum(axis=1), 1, rtol=1e-15)
    for order in permutations(["y", "z"]):
        step = table
        for name in order:
            step = step.marginal([other for other in step.names if other != name])
        np.testing.assert_allclose(step.p, table.marginal("x").p, rtol=1e-14)
    np.testing.assert_allclose(
        total_probability(table.marginal("y").p, table.conditional("x", "y")), table.marginal("x").p, rtol=1e-14
    )
    # the definition of a conditional is a quotient; the product of conditional and joint is no joint
    wrong = table.conditional("x", "y") * table.marginal(["y", "x"]).p
    assert abs(wrong.sum() - 1) > 0.1


@pytest.mark.item("PRB-01")
def test_evidence_selects_and_normalizes():
    table, exact = counted(0)
    given = table.condition(y=3, z=7)
    below = exactly(exact, [1, 2])[1, 2]
    np.testing.assert_allclose(given.p, [float(exact[i, 1, 2] / below) for i in range(3)], rtol=1e-14)
    assert given.names == ("x",)
    assert given.values == {"x": [-1, 0, 2]}
    np.testing.assert_allclose(table.condition(y=3).condition(z=7).p, given.p, rtol=1e-14)


@pytest.mark.item("PRB-01")
@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.6], "sum to 1"),
        ([1.5, -0.5], "at least 0"),
        ([np.nan, 1.0], "at least 0"),
        ([], "at least one"),
        (1.0, "array"),
    ],
)
def test_what_is_no_distribution_is_refused(p, message):
    with pytest.raises(ValueError, match=message):
        JointTable(p)


def test_probabilities_in_single_precision_are_accepted_and_not_changed():
    p = np.full(3, 1 / 3, dtype=np.float32)
    assert abs(p.astype(float).sum() - 1) > 2e-8
    np.testing.assert_array_equal(check_probabilities(p), p)
    with pytest.raises(ValueError, match="sum to 1"):
        check_probabilities(p.astype(float))
    with pytest.raises(ValueError, match="along axis 1"):
        check_probabilities([[0.5, 0.5], [0.5, 0.6]], 1)


def test_nothing_asked_is_certain():
    table, _ = counted(0)
    assert table.probability() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(table.condition().p, table.p, rtol=1e-15)
    np.testing.assert_array_equal(table.marginal([-1, 0]).p, table.marginal(["z", "x"]).p)
    two = total_probability(table.marginal(["x", "y"]).p, table.conditional("z", ["x", "y"]))
    np.testing.assert_allclose(two, table.marginal("z").p, rtol=1e-14)


def test_wrong_questions_are_answered_with_one_sentence():
    table = JointTable([[0.5, 0.0], [0.5, 0.0]], ["x", "y"], {"y": ["a", "b"]})
    for call, message in [
        (lambda: table.condition(y="b"), "probability 0"),
        (lambda: table.conditional("x", "y"), "'y': 'b'.* probability 0"),
        (lambda: table.conditional_expectation("x", "y"), "'y': 'b'.* probability 0"),
        (lambda: table.condition(y="c"), "never 'c'"),
        (lambda: table.condition(w=1), "no variable 'w'"),
        (lambda: table.condition(x=0, y="a"), "every variable"),
        (lambda: table.marginal(["x", "x"]), "once only"),
        (lambda: table.marginal(2), "2 variables"),
        (lambda: table.marginal([1, -1]), "once only"),
        (lambda: table.conditional("x", "x"), "once only"),
        (lambda: table.dependence("x", ["x", "y"]), "once only"),
        (lambda: JointTable([0.5, 0.5], ["x", "y"]), "1 different names"),
        (lambda: JointTable([0.5, 0.5], ["x"], [[1, 1]]), "2 different values"),
        (lambda: JointTable([0.5, 0.5], ["x"], {"y": [1, 2]}), "values of"),
        (lambda: JointTable([0.5, 0.5], ["x"], [[0, 1], [0, 1]]), "1 variables"),
        (lambda: JointTable.from_counts([0, 0]), "not all 0"),
        (lambda: JointTable.from_samples(x=[1], y=[1, 2]), "same length"),
        (lambda: JointTable.from_conditional([0.5, 0.5], [[1.0, 0.0]]), "shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.item("PRB-03")
def test_pairwise_independence_is_less_than_independence():
    xor = JointTable([[[0.25, 0.0], [0.0, 0.25]], [[0.0, 0.25], [0.25, 0.0]]], NAMES)
    for a, b in combinations(NAMES, 2):
        assert xor.dependence(a, b) == 0
        assert xor.is_independent(a, b)
        assert mutual_information(xor, a, b) == 0
    assert xor.dependence() == xor.dependence(*NAMES) == 1 / 8  # 1/4 or 0 against 1/8
    assert not xor.is_independent("x", "y", "z")
    assert xor.dependence("x", ["y", "z"]) == 1 / 8
    assert xor.dependence("x", "y", given="z") == 1 / 4
    assert mutual_information(xor, "x", "y", given="z", base=2) == 1


@pytest.mark.item("PRB-03")
@pytest.mark.parametrize("seed", range(3))
def test_dependence_is_the_largest_difference_and_zero_with_no_information(seed):
    table, exact = counted(seed)
    x, y, xy = (exactly(exact, kept) for kept in ([0], [1], [0, 1]))
    expected = max(abs(p - x[i,] * y[j,]) for (i, j), p in xy.items())
    assert table.dependence("x", "y") == pytest.approx(float(expected), rel=1e-12)
    assert not table.is_independent("x", "y")
    z, xz, yz = (exactly(exact, kept) for kept in ([2], [0, 2], [1, 2]))
    expected = max(abs(p / z[k,] - xz[i, k] / z[k,] * yz[j, k] / z[k,]) for (i, j, k), p in exact.items())
    assert table.dependence("x", "y", given="z") == pytest.approx(float(expected), rel=1e-12)
    assert mutual_information(table, "x", "y") > 1e-6
    rng = np.random.default_rng(seed)
    apart = JointTable.independent(**{name: rng.dirichlet(np.ones(3)) for name in NAMES})
    assert apart.dependence() < 1e-16
    assert apart.is_independent()
    assert mutual_information(apart, "x", ["y", "z"]) < 1e-16
    # a common cause: independent given z, dependent without; a value of z that never occurs says nothing
    z = np.append(rng.dirichlet(np.ones(3)), 0.0)
    px, py = rng.dirichlet(np.ones(2), size=4), rng.dirichlet(np.ones(3), size=4)
    common = JointTable(np.einsum("k,ki,kj->ijk", z, px, py), NAMES)
    assert common.is_independent("x", "y", given="z")
    assert not common.is_independent("x", "y")
    assert mutual_information(common, "x", "y", given="z") < 1e-15
    assert mutual_information(common, "x", "y") > 1e-4


@pytest.mark.item("PRB-03")
def test_likelihood_of_independent_draws_is_a_product():
    p = np.array([0.5, 0.125, 0.375])
    sample = JointTable.independent(a=p, b=p, c=p, d=p)
    for cell in product(range(3), repeat=4):
        assert sample.p[cell] == np.prod(p[list(cell)])
    assert entropy(sample.p.ravel()) == pytest.approx(4 * entropy(p), rel=1e-14)


@pytest.mark.item("PRB-04")
@pytest.mark.parametrize("seed", range(3))
def test_expectation_is_linear_under_dependence_and_has_the_tower_property(seed):
    table, exact = counted(seed)
    assert not table.is_independent("x", "y")
    f = lambda x, y, z: x * y**2 - 3 * z  # noqa: E731
    value = sum(p * f(*(v[i] for v, i in zip(VALUES, cell, strict=True))) for cell, p in exact.items())
    assert table.expectation(f) == pytest.approx(float(value), rel=1e-13)
    assert table.expectation(lambda x, y, z: x + y) == pytest.approx(table.expectation("x") + table.expectation("y"), abs=1e-14)
    for given in ("x", ["z", "y"], NAMES):
        inner = table.conditional_expectation(f, given)
        names = [given] if isinstance(given, str) else given
        assert inner.shape == tuple(len(table.values[name]) for name in names)
        assert (inner * table.marginal(given).p).sum() == pytest.approx(table.expectation(f), abs=1e-12)
    inner = table.conditional_expectation(f, ["z", "y"])
    assert inner[2, 1] == pytest.approx(table.condition(z=7, y=3).expectation(lambda x: f(x, 3, 7)), rel=1e-13)


@pytest.mark.item("PRB-04")
def test_error_of_a_classifier_is_the_mean_of_its_conditional_errors():
    table = JointTable([[0.27, 0.03], [0.28, 0.42]], ["sky", "cloud"], [["rain", "dry"], ["gray", "blue"]])
    wrong = lambda sky, cloud: (sky == "rain") != (cloud == "gray")  # noqa: E731
    given = table.conditional_expectation(wrong, "cloud")
    np.testing.assert_allclose(given, [0.28 / 0.55, 0.03 / 0.45], rtol=1e-14)
    assert given @ table.marginal("cloud").p == pytest.approx(0.31, abs=1e-15)
    assert table.expectation(wrong) == pytest.approx(0.31, abs=1e-15)


def test_a_cell_that_never_occurs_does_not_count_whatever_f_is_there():
    table = JointTable([0.0, 1.0], ["x"], [[0.0, 2.0]])
    assert table.expectation(lambda x: 1 / x) == 0.5


@pytest.mark.item("PRB-05")
@pytest.mark.parametrize("seed", range(3))
def test_variances_and_covariances_are_exact_and_keep_their_identities(seed):
    table, exact = counted(seed)

    def mean(f):
        return sum(p * f(*(v[i] for v, i in zip(VALUES, cell, strict=True))) for cell, p in exact.items())

    ex, ey = mean(lambda x, y, z: x), mean(lambda x, y, z: y)
    assert table.var("x") == pytest.approx(float(mean(lambda x, y, z: (x - ex) ** 2)), rel=1e-13)
    assert table.cov("x", "y") == pytest.approx(float(mean(lambda x, y, z: (x - ex) * (y - ey))), rel=1e-12)
    assert table.var(lambda x, y, z: -3 * x) == pytest.approx(9 * table.var("x"), rel=1e-13)
    both = table.var(lambda x, y, z: x + y)
    assert both == pytest.approx(table.var("x") + table.var("y") + 2 * table.cov("x", "y"), rel=1e-13)
    C = table.covariance()
    np.testing.assert_array_equal(C, C.T)
    assert np.linalg.eigvalsh(C).min() >= -1e-14
    expected = [[table.cov(a, b) for b in NAMES] for a in NAMES]
    np.testing.assert_allclose(C, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(table.covariance(["z", "x"]), C[np.ix_([2, 0], [2, 0])], rtol=1e-14)


@pytest.mark.item("PRB-05")
def test_zero_covariance_is_not_independence():
    square = JointTable([[0, 0.25], [0.5, 0], [0, 0.25]], ["x", "y"], [[-1, 0, 1], [0, 1]])  # y = x²
    assert square.cov("x", "y") == 0
    assert square.dependence("x", "y") == 0.25
    assert mutual_information(square, base=2) == 1  # y is a function of x, and a fair bit
    # a singular covariance matrix: y is a linear function of x
    line = JointTable(np.diag([0.25, 0.5, 0.25]), ["x", "y"], [[-1, 0, 1], [-2, 0, 2]])
    np.testing.assert_allclose(line.covariance(), [[0.5, 1.0], [1.0, 2.0]], rtol=1e-15)


def test_samples_have_the_frequencies_of_the_table():
    table, _ = counted(0)
    n = 40_000
    columns = table.sample(n, random_state=3)
    counts = JointTable.from_samples(**columns).p * n
    statistic = ((counts - n * table.p) ** 2 / (n * table.p)).sum()  # 23 degrees of freedom
    assert statistic < 72  # exceeded once in a million
    again = table.sample(n, random_state=3)
    assert all((columns[name] == again[name]).all() for name in NAMES)
    assert repr(table) == "<JointTable x: 3, y: 2, z: 4>"
