"""UAI files: models and evidence, read, written, and refused with the line of the mistake."""

import gzip
import io

import numpy as np
import pytest

from lemmata.graphical.bayes_net import BayesNet
from lemmata.graphical.factor import Factor, enumerate_joint
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.text_files import FileFormatError
from lemmata.graphical.uai import from_uai, parse_uai, read_uai_evidence, to_uai

# The example in the description of the format: x0 with a table of its own, f(x0, x1), f(x1, x2), and x2 has three states.
MARKOV = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""
BAYES = MARKOV.replace("MARKOV", "BAYES")


def random_net(rng, n=5):
    states = {f"v{i}": tuple("xyz"[: rng.integers(2, 4)]) for i in range(n)}
    names = list(states)
    parents = {v: tuple(u for u in names[:i] if rng.random() < 0.5) for i, v in enumerate(names)}
    tables = {v: rng.dirichlet(np.ones(len(states[v])), [len(states[u]) for u in parents[v]]) for v in names}
    return BayesNet(parents, tables, states)


def test_the_example_of_the_format():
    kind, cards, factors = parse_uai(MARKOV)
    assert (kind, cards) == ("MARKOV", [2, 2, 3])
    assert [factor.variables for factor in factors] == [(0,), (0, 1), (1, 2)]
    np.testing.assert_array_equal(factors[2].values, [[0.21, 0.333, 0.457], [0.811, 0, 0.189]])
    first = np.array([0.436, 0.564])
    last = first @ factors[1].values @ factors[2].values
    for text in (MARKOV, BAYES, " ".join(BAYES.split()).lower().replace("bayes", "Bayes")):
        found = from_uai(text).marginals()
        np.testing.assert_allclose(found[0], first, rtol=1e-12)
        np.testing.assert_allclose(found[2], last, rtol=1e-12)


def test_bayes_files_give_bayes_nets_where_tables_are_conditional():
    assert isinstance(from_uai(MARKOV), FactorGraph)
    net = from_uai(BAYES)
    assert isinstance(net, BayesNet)
    assert net.parents == {0: (), 1: (0,), 2: (1,)}
    assert isinstance(from_uai(BAYES.replace("0.436", "0.536")), FactorGraph)  # a row that sums to 1.1
    assert isinstance(from_uai(BAYES.replace("2 1 2\n", "2 2 1\n").replace("0.210 0.333 0.457", "1 0 1")), FactorGraph)
    circle = "BAYES 2 2 2 2 2 0 1 2 1 0 4 .5 .5 .5 .5 4 .5 .5 .5 .5"
    assert isinstance(from_uai(circle), FactorGraph)


def test_small_drift_of_rows_is_divided_away():
    net = from_uai("BAYES 1 3 1 1 0 3 .333 .333 .333")
    np.testing.assert_allclose(net.factors[0].values, np.ones(3) / 3, rtol=1e-15)


@pytest.mark.item("GRM-05")
@pytest.mark.parametrize("seed", range(4))
def test_the_product_of_factors_is_the_joint_of_the_net(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng)
    text = to_uai(net)
    numbers = {name: i for i, name in enumerate(net.variables)}
    joint = enumerate_joint(net.factors, net.variables).values
    for model in (from_uai(text), from_uai(text.replace("BAYES", "MARKOV"))):
        assert isinstance(model, BayesNet if model.variables and hasattr(model, "parents_") else FactorGraph)
        for _ in range(20):
            codes = [int(rng.integers(len(net.states[name]))) for name in net.variables]
            labels = {name: net.states[name][code] for name, code in zip(net.variables, codes, strict=True)}
            chance = np.prod(
                [table[tuple(codes[numbers[v]] for v in (*net.parents[name], name))] for name, table in net.tables.items()]
            )
            np.testing.assert_allclose(joint[tuple(codes)], chance, rtol=1e-13)
            np.testing.assert_allclose(np.exp(net.log_value(labels)), chance, rtol=1e-12)
            np.testing.assert_allclose(np.exp(model.log_value(dict(enumerate(codes)))), chance, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_writing_and_reading_give_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    for model in (
        random_net(rng),
        FactorGraph([Factor("ba", rng.exponential(size=(2, 3))), Factor("bc", rng.exponential(size=(2, 2)))]),
    ):
        text = to_uai(model)
        found = from_uai(text)
        assert to_uai(found) == text
        numbers = {name: i for i, name in enumerate(model.variables)}
        ordered = sorted(model.factors, key=lambda factor: numbers[factor.variables[-1]]) if "BAYES" in text else model.factors
        for old, new in zip(ordered, found.factors, strict=True):
            assert new.variables == tuple(numbers[name] for name in old.variables)
            np.testing.assert_array_equal(old.values, new.values, strict=True)


def test_numbers_keep_their_places_and_logarithms_are_undone():
    graph = FactorGraph(
        [Factor([2, 0], np.log([[1.0, 2.0], [3.0, 4.0]]), log=True), Factor([1, 2], np.ones((3, 2))), Factor([], 7.0)]
    )
    kind, cards, factors = parse_uai(to_uai(graph))
    assert (kind, cards) == ("MARKOV", [2, 3, 2])
    assert [factor.variables for factor in factors] == [(2, 0), (1, 2), ()]
    np.testing.assert_allclose(factors[0].values, [[1, 2], [3, 4]], rtol=1e-15)
    assert factors[2].values == 7


def test_evidence():
    assert read_uai_evidence("1 2 0") == {2: 0}
    assert read_uai_evidence("0") == read_uai_evidence("1\n0\n") == {}
    assert read_uai_evidence("1\n2 0 1 2 2\n") == read_uai_evidence("2 0 1 2 2") == {0: 1, 2: 2}
    assert read_uai_evidence("1\n1 0 1") == {0: 1}
    plain = from_uai(MARKOV)
    for evidence in ("1 2 0", {2: 0}, io.StringIO("1\n1 2 0")):
        model = from_uai(BAYES, evidence)
        assert isinstance(model, FactorGraph)
        np.testing.assert_allclose(model.log_partition(), plain.log_partition({2: 0}), rtol=1e-12)
        np.testing.assert_allclose(model.marginals()[0], plain.marginals({2: 0})[0], rtol=1e-12)


def test_variables_without_a_factor_are_there():
    model = from_uai("MARKOV 2 2 3 1 1 0 2 1 3")
    np.testing.assert_allclose(model.marginals()[1], np.ones(3) / 3, rtol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("MARKOV", "MARKOW", 1, "expected MARKOV or BAYES, found 'MARKOW'"),
        ("\n3\n2 2 3", "\nx\n2 2 3", 2, "expected the number of variables, at least 1, found 'x'"),
        ("2 2 3", "2 0 3", 3, "expected the number of states of variable 1, at least 1, found '0'"),
        ("2 2 3", "2 2.0 3", 3, "expected the number of states of variable 1, at least 1, found '2.0'"),
        ("2 0 1\n", "2 0 3\n", 6, "expected a variable of factor 1, from 0 to 2, found '3'"),
        ("2 0 1\n", "2 0 0\n", 6, "factor 1 has a variable twice"),
        ("2 0 1\n", "9 0 1\n", 6, "expected the number of variables of factor 1, from 0 to 3, found '9'"),
        ("\n4\n", "\n5\n", 12, "factor 1 has 4 values by the states of its variables, and 5 are announced"),
        ("0.872", "zero", 13, "expected a finite number of at least 0, found 'zero'"),
        ("0.872", "-0.872", 13, "expected a finite number of at least 0, found '-0.872'"),
        ("0.872", "nan", 13, "expected a finite number of at least 0, found 'nan'"),
        ("0.872", "inf", 13, "expected a finite number of at least 0, found 'inf'"),
        (" 0.189", "", 18, "expected 1 more numbers, found the end of the file"),
        ("\n6\n 0.210 0.333 0.457\n 0.811 0.000 0.189\n", "", 14, "expected the number of values of factor 2, found the end"),
        ("0.189\n", "0.189\n\n1\n", 20, "expected the end of the file, found '1'"),
    ],
)
def test_mistakes_are_told_with_their_line(old, new, line, message):
    assert MARKOV.count(old) == 1
    with pytest.raises(FileFormatError) as caught:
        from_uai(MARKOV.replace(old, new))
    assert message in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("2\n0 1", 2, "expected an observed variable, at least 0, found the end of the file"),
        ("2\n0 1\n0 1", 3, "the variable 0 is observed twice"),
        ("1\n0 x", 2, "expected the state of variable 0, at least 0, found 'x'"),
        ("1\n0 1\n1 1", 3, "expected the end of the file, found '1'"),
    ],
)
def test_mistakes_in_evidence(text, line, message):
    with pytest.raises(FileFormatError) as caught:
        read_uai_evidence(text)
    assert message.replace(", at least 0, found the end", ", found the end") in str(caught.value)
    assert caught.value.line == line


def test_evidence_must_be_of_the_model():
    with pytest.raises(ValueError, match="variable 0 is in state 2, and the model has no such state"):
        from_uai(MARKOV, {0: 2})
    with pytest.raises(ValueError, match="variable 5 is in state 0"):
        from_uai(MARKOV, "1 5 0")


def test_sources(tmp_path):
    plain, packed = tmp_path / "a.uai", tmp_path / "a.uai.gz"
    graph = from_uai(MARKOV)
    text = to_uai(graph, plain)
    to_uai(graph, packed)
    assert gzip.decompress(packed.read_bytes()).decode() == text == plain.read_text(encoding="utf-8")
    for source in (plain, str(packed), io.BytesIO(text.encode()), text):
        assert to_uai(from_uai(source)) == text
    (tmp_path / "e.evid").write_text("1 0 1", encoding="utf-8")
    assert read_uai_evidence(tmp_path / "e.evid") == read_uai_evidence(str(tmp_path / "e.evid")) == {0: 1}
    with pytest.raises(FileNotFoundError):
        from_uai("missing.uai")


def test_paths_with_blanks_are_paths(tmp_path):
    text = to_uai(from_uai(MARKOV))
    for name in ("my model.uai", "bayes net.uai", "markov"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert to_uai(from_uai(str(tmp_path / name))) == text
    with pytest.raises(FileNotFoundError):
        from_uai("bayes net.uai")
    with pytest.raises(FileNotFoundError):
        read_uai_evidence("2 models.evid")
    with pytest.raises(FileFormatError, match="Line 1: expected the number of variables"):
        from_uai("MARKOV")
    for empty in ("", " \n"):
        with pytest.raises(ValueError, match="this text is empty"):
            from_uai(empty)


@pytest.mark.parametrize(
    "logs", [[1000.0, 999.0], [-1000.0, -1001.0], [-700.0, -720.0], [-2000.0, -np.inf], [-np.inf, -np.inf]]
)
def test_logarithms_out_of_range_are_written_without_their_scale(logs):
    factor = parse_uai(to_uai(FactorGraph([Factor("a", logs, log=True)])))[2][0]
    expected = np.exp(np.array(logs) - (max(logs) if np.isfinite(max(logs)) else 0))
    np.testing.assert_array_equal(factor.values, expected)


def test_logarithms_within_range_keep_their_scale():
    factor = parse_uai(to_uai(FactorGraph([Factor("a", [650.0, -650.0], log=True)])))[2][0]
    np.testing.assert_array_equal(factor.values, np.exp([650.0, -650.0]))


def test_only_rows_that_miss_one_are_divided():
    net = from_uai("BAYES 2 2 3 2 1 0 2 0 1 2 0.5 0.5 6 0.1 0.2 0.7 .333 .333 .333")
    table = net.factors[1].values
    np.testing.assert_array_equal(table[0], [0.1, 0.2, 0.7])
    np.testing.assert_allclose(table[1], 1 / 3, rtol=1e-15)
