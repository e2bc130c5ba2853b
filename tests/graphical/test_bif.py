"""BIF files: both readers, the writer, and the line of every kind of mistake."""

import gzip
import io
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemmata.graphical.arrows import cycle_of
from lemmata.graphical.bayes_net import BayesNet
from lemmata.graphical.bif import from_bif, parse_bif, read_quickly, to_bif
from lemmata.graphical.bif_careful import CarefulReader
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.text_files import FileFormatError

# Lauritzen and Spiegelhalter, Journal of the Royal Statistical Society B 1988: a visit to Asia, shortness of breath.
ASIA = """network asia {
}
variable asia {
  type discrete [ 2 ] { yes, no };
}
variable tub {
  type discrete [ 2 ] { yes, no };
}
variable smoke {
  type discrete [ 2 ] { yes, no };
}
variable lung {
  type discrete [ 2 ] { yes, no };
}
variable bronc {
  type discrete [ 2 ] { yes, no };
}
variable either {
  type discrete [ 2 ] { yes, no };
}
variable xray {
  type discrete [ 2 ] { yes, no };
}
variable dysp {
  type discrete [ 2 ] { yes, no };
}
probability ( asia ) {
  table 0.01, 0.99;
}
probability ( tub | asia ) {
  (yes) 0.05, 0.95;
  (no) 1e-2, 9.9E-1;
}
probability ( smoke ) {
  table .5, 0.5;
}
probability ( lung | smoke ) {
  (yes) 0.1, 0.9;
  (no) 0.01, 0.99;
}
probability ( bronc | smoke ) {
  (yes) 0.6, 0.4;
  (no) 0.3, 0.7;
}
probability ( either | lung, tub ) {
  (yes, yes) 1.0, 0.0;
  (no, yes) 1.0, 0.0;
  (yes, no) 1.0, 0.0;
  (no, no) 0.0, 1.0;
}
probability ( xray | either ) {
  (yes) 0.98, 0.02;
  (no) 0.05, 0.95;
}
probability ( dysp | bronc, either ) {
  (yes, yes) 0.9, 0.1;
  (no, yes) 0.7, 0.3;
  (yes, no) 0.8, 0.2;
  (no, no) 0.1, 0.9;
}
"""
SMALL = """network small {
}
variable a { type discrete [ 2 ] { x, y }; }
variable b { type discrete [ 3 ] { u, v, w }; }
variable c { type discrete [ 2 ] { x, y }; }
probability ( a ) { table 0.25, 0.75; }
probability ( b ) { table 0.5, 0.25, 0.25; }
probability ( c | a, b ) {
  (x, u) 0.1, 0.9;
  (y, u) 0.2, 0.8;
  (x, v) 0.3, 0.7;
  (y, v) 0.4, 0.6;
  (x, w) 0.5, 0.5;
  (y, w) 0.6, 0.4;
}
"""
SMALL_TABLE = np.array([[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]])  # of the first state, by a and b


def same(found, other):
    """Compare descriptions to the bit, and the order of their entries."""
    assert found[:3] == other[:3]
    assert list(found.states) == list(other.states) == list(found.parents) == list(found.tables) == list(other.tables)
    for name, table in found.tables.items():
        np.testing.assert_array_equal(table, other.tables[name], strict=True)


def both(text):
    """Read with both readers, which must agree."""
    found, other = read_quickly(text), CarefulReader(text).read()
    same(found, other)
    return found


def careful(text):
    """Read what only the careful reader understands."""
    assert read_quickly(text) is None
    return parse_bif(text)


def test_published_marginals_of_asia():
    found = from_bif(ASIA).marginals()
    published = {"asia": 0.01, "tub": 0.0104, "smoke": 0.5, "lung": 0.055, "bronc": 0.45, "either": 0.064828}
    for name, chance in published.items():
        np.testing.assert_allclose(found[name][0], chance, rtol=1e-12)
    np.testing.assert_allclose(found["xray"][0], 0.11029004, rtol=1e-8)  # as many digits as are published
    np.testing.assert_allclose(found["dysp"][0], 0.4359706, rtol=1e-7)


def test_both_readers_put_rows_where_they_belong():
    found = both(SMALL)
    assert found.states == {"a": ("x", "y"), "b": ("u", "v", "w"), "c": ("x", "y")}
    assert found.parents == {"a": (), "b": (), "c": ("a", "b")}
    np.testing.assert_array_equal(found.tables["c"], np.stack([SMALL_TABLE, 1 - SMALL_TABLE], axis=-1).round(3))
    both(ASIA)


def test_rows_in_any_order():
    head, *rows, foot = re.split(r"(?<=;)\n|(?<=\{)\n(?=  \(x, u)", SMALL[SMALL.index("probability ( c") :])
    rng = np.random.default_rng(0)
    expected = both(SMALL)
    for _ in range(10):
        shuffled = "\n".join([head, *(rows[i] for i in rng.permutation(6)), foot])
        same(both(SMALL[: SMALL.index("probability ( c")] + shuffled), expected)


def test_blocks_in_any_order():
    blocks = [block + "}" for block in ASIA.split("\n}")[1:-1]]
    rng = np.random.default_rng(1)
    for _ in range(5):
        found = both("network asia {\n}" + "".join(blocks[i].replace("}", "\n}") for i in rng.permutation(16)))
        for name, table in both(ASIA).tables.items():
            np.testing.assert_array_equal(found.tables[name], table)


def test_layout_does_not_matter():
    squeezed = re.sub(r"\s*([{}()\[\];,|])\s*", r"\1", SMALL)
    same(both(squeezed), both(SMALL))
    spread = re.sub(r"([{}()\[\];,|])", r"\n\t\1\r\n ", SMALL)
    same(both(spread), both(SMALL))


def test_comments_properties_quotation_marks_and_missing_commas():
    expected = both(SMALL)
    text = SMALL.replace("network small {", 'network "small" { property "written { by hand }" ; property x = (1, 2);')
    text = text.replace("variable b {", "// a comment; with { marks\nvariable b { property position = (73, 165) ;")
    text = text.replace("{ u, v, w }", '{ u /* first */ v, "w" }').replace("(x, u) 0.1, 0.9", '("x" u) 0.1 0.9')
    text = text.replace("0.25, 0.75;", "0.25 0.75; property p;").replace("a, b )", "a b )")
    same(careful(text), expected)


def test_what_other_programs_add_is_read_quickly():
    expected = both(SMALL)
    text = SMALL.replace("network small {", 'network "small" {\n// written by a program\n property "version 1" ; property x;')
    text = text.replace("variable b {", '/* a { comment } */ variable "b" { property position = (73, 165) ;')
    text = text.replace("{ u, v, w }", '{ "u", v, w }').replace("(x, u)", '("x", u)').replace("(x, v)", "property y; (x, v)")
    same(both(text), expected)
    rows = text.index("probability")
    same(both(text[:rows] + re.sub(r"(\d),", r"\1", text[rows:])), expected)  # no commas between numbers


@pytest.mark.parametrize("label", ['a\\"b', "a;b", "a{b", "a//b", "a/*b", "property", "", " ", "a\nb"])
def test_quotation_marks_hide_marks(label):
    text = SMALL.replace("{ u, v", f'{{ "{label}", v').replace(", u)", f', "{label}")')
    found = parse_bif(text)
    same(CarefulReader(text).read(), found)
    assert found.states["b"][0] == label.replace("\\", "")
    np.testing.assert_array_equal(found.tables["c"], both(SMALL).tables["c"])


def test_default_fills_the_rows_that_are_not_told():
    text = SMALL.replace("(x, v) 0.3, 0.7;", "default 0.125, 0.875;").replace("(y, w) 0.6, 0.4;", "")
    table = SMALL_TABLE.copy()
    table[0, 1] = table[1, 2] = 0.125
    np.testing.assert_allclose(careful(text).tables["c"][..., 0], table, rtol=1e-15)


def test_a_table_under_parents_has_its_own_variable_slowest():
    rows = ", ".join(str(v) for v in np.concatenate([SMALL_TABLE.ravel(), 1 - SMALL_TABLE.ravel()]).round(3))
    text = SMALL[: SMALL.index("  (x, u)")] + f"table {rows};\n}}\n"
    np.testing.assert_array_equal(careful(text).tables["c"], both(SMALL).tables["c"])


def test_states_may_have_blanks_and_marks():
    text = SMALL.replace("u, v, w", '"a, b", two  words, c').replace(", u)", ', "a, b")').replace(", v)", ", two words)")
    found = careful(text.replace(", w)", ", c)"))
    assert found.states["b"] == ("a, b", "two words", "c")
    np.testing.assert_array_equal(found.tables["c"], both(SMALL).tables["c"])


@pytest.mark.parametrize("label", ["Asy/Patch", "<5", ">=7.5", "12+", "5-12", "é", "a:b", "table", "1e-3"])
def test_odd_names_are_names(label):
    assert both(SMALL.replace("u, v", f"{label}, v").replace(", u)", f", {label})")).states["b"][0] == label


def test_small_drift_is_divided_away_and_rounding_is_left_alone():
    found = both(SMALL.replace("0.5, 0.25, 0.25", "0.333, 0.333, 0.333"))
    np.testing.assert_allclose(found.tables["b"], np.ones(3) / 3, rtol=1e-15)
    found = both(SMALL.replace("0.5, 0.25, 0.25", "0.7, 0.2, 0.1"))  # whose sum in floats is below one
    assert found.tables["b"].tolist() == [0.7, 0.2, 0.1]
    found = both(SMALL.replace("0.5, 0.25, 0.25", "0.7, 0.2, 0.1").replace("0.25, 0.75", "0.25, 0.749"))
    assert found.tables["b"].tolist() == [0.7, 0.2, 0.1]  # though another row drifts
    np.testing.assert_allclose(found.tables["a"], np.array([0.25, 0.749]) / 0.999, rtol=1e-15)


WRONG = [
    ("network small {", "network small {{", 1, "expected 'property' or '}', found '{'"),
    ("network small {\n}", "network small {\n", 3, "expected 'property' or '}', found 'variable'"),
    ("variable b", "varable b", 4, "expected 'variable' or 'probability' or 'network', found 'varable'"),
    ("variable b {", "variable b", 4, "expected '{', found 'type'"),
    ("variable b", "variable a", 4, "the variable 'a' is declared twice"),
    ("[ 3 ]", "[ 4 ]", 4, "the variable 'b' should have 4 states, and another number is listed"),
    ("[ 3 ]", "[ three ]", 4, "the variable 'b' should have three states"),
    ("u, v, w", "u, v, u", 4, "the variable 'b' has a state twice"),
    ("{ u, v, w }", "{ property p; u, v, w }", 4, "expected a name or '}', found ';'"),
    ("u, v, w", "u, , w", 4, "expected a name or '}', found ','"),
    ("u, v, w", "u, v,", 4, "a comma with nothing after it"),
    ("discrete [ 3 ]", "continuous [ 3 ]", 4, "expected 'discrete', found 'continuous'"),
    ("type discrete [ 3 ] { u, v, w };", "", 4, "the variable 'b' has no type"),
    ("0.25, 0.75;", "0.25, 0.75", 6, "expected a number or ';', found '}'"),
    ("0.25, 0.75", "0.25, x", 6, "expected a number or ';', found 'x'"),
    ("0.25, 0.75", "", 6, "expected a number, found ';'"),
    ("0.25, 0.75", "0.25, 0.75, 0", 6, "'a' needs 2 numbers here, and there are 3"),
    ("0.25, 0.75", "-0.25, 1.25", 6, "a probability cannot be -0.25"),
    ("0.25, 0.75", "nan, 0.75", 6, "expected a number, found 'nan'"),
    ("0.25, 0.75", "1e999, 0.75", 6, "a probability cannot be 1e999"),
    ("0.25, 0.75", "0.2_5, 0.75", 6, "expected a number, found '0.2_5'"),
    ("0.25, 0.75", "0.25, 0.65", 6, "the probabilities of 'a' sum to 0.9, not to one"),
    ("table 0.25", "tabel 0.25", 6, "expected 'table' or 'default'"),
    ("( a ) { table 0.25, 0.75; }", "( a ) { }", 6, "'a' has no probabilities"),
    ("( a )", "( d )", 6, "there is no variable 'd'"),
    ("( a )", "( b )", 7, "the variable 'b' has a second probability block"),
    ("probability ( a ) { table 0.25, 0.75; }", "", 3, "the variable 'a' has no probability block"),
    ("( c | a, b )", "( c | a, d )", 8, "there is no variable 'd'"),
    ("( c | a, b )", "( c | a, a )", 8, "a parent of 'c' is named twice"),
    (
        "( b ) { table 0.5, 0.25, 0.25; }",
        "( b | a, a ) { (x, x) 1, 0, 0; (x, y) 1, 0, 0; (y, x) 1, 0, 0; (y, y) 1, 0, 0; }",
        7,
        "a parent of 'b' is named twice",
    ),
    ("( c | a, b )", "( c a, b )", 8, "expected ')', found 'a'"),
    ("( c | a, b )", "( c | a, c )", 8, "the parents go round in a circle: c → c"),
    ("(x, v) 0.3", "(z, v) 0.3", 11, "a row of 'c' has the state 'z', and the parent has ['x', 'y']"),
    ("(x, v) 0.3", "(x) 0.3", 11, "a row of 'c' names 2 states, one for each parent"),
    ("(x, v) 0.3", "(x, v 0.3", 11, "expected a name or ')', found ';'"),
    ("(x, v) 0.3, 0.7", "(x, v) 0.3 0.3, 0.7", 11, "'c' needs 2 numbers here, and there are 3"),
    ("(x, v) 0.3, 0.7", "(x, v) 0.3, 0.8", 11, "the probabilities of 'c' given (x, v) sum to 1.1, not to one"),
    ("(x, v)", "(x, u)", 11, "'c' has these probabilities already"),
    ("(x, v) 0.3, 0.7;", "", 8, "'c' has no probabilities given (x, v)"),
    ("(x, v) 0.3", "default 0.5, 0.5; default 0.3", 11, "'c' has a second default"),
    ("(y, w) 0.6, 0.4;\n}", "(y, w) 0.6, 0.4;\n", 14, "found the end of the file"),
    ("network small", 'network "small', 1, "a quotation mark is opened and never closed"),
    ("probability ( b )", "/* probability ( b )", 7, "a comment is opened and never closed"),
    ("variable b {", "variable b { property p\n", 5, "the variable 'b' has no type"),  # the property goes on to the semicolon
]


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG)
def test_mistakes_are_told_with_their_line(old, new, line, message):
    assert SMALL.count(old) >= 1
    text = SMALL.replace(old, new, 1)
    assert read_quickly(text) is None
    with pytest.raises(FileFormatError) as caught:
        parse_bif(text)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"Line {line}: ")
    assert str(caught.value).count(".\n") == 0
    assert isinstance(caught.value, ValueError)


def test_damaged_files_are_read_by_both_or_refused():
    rng = np.random.default_rng(0)
    quoted = SMALL.replace("network small {", 'network "small" { // here\n property a b;').replace("variable b", 'variable "b"')
    pieces = [
        *'(){}[]|,;"/* \n\\abxyuvw0.157-e_',
        "property p;",
        '"x"',
        "//c\n",
        "/*c*/",
        "default 0.5, 0.5;",
        "(x, u)",
        "table ",
    ]
    read = 0
    for _ in range(3000):
        text = (SMALL, quoted)[rng.integers(2)]
        for _ in range(rng.integers(1, 3)):
            at, gone = rng.integers(len(text)), rng.integers(3)
            text = text[:at] + pieces[rng.integers(len(pieces))] + text[at + gone :]
        found = read_quickly(text)
        if found is not None:
            same(CarefulReader(text).read(), found)
            read += 1
        else:  # nothing but an error of the right kind may come of it
            with suppress(FileFormatError):
                parse_bif(text)
    assert 50 < read < 2500


def test_circles_are_named():
    text = SMALL.replace("( a ) { table 0.25, 0.75; }", "( a | c ) { (x) 0.25, 0.75; (y) 0.5, 0.5; }")
    assert read_quickly(text) is None
    with pytest.raises(FileFormatError, match=r"Line 6: the parents go round in a circle: a → c → a\."):
        parse_bif(text)
    assert cycle_of({1: (), 2: (1, 4), 3: (2,), 4: (3,), 5: (4,)}) in ([2, 3, 4, 2], [3, 4, 2, 3], [4, 2, 3, 4])


def test_tables_that_no_machine_holds_are_refused():
    names = [f"v{i}" for i in range(40)]
    text = "network n { }" + "".join(f"variable {v} {{ type discrete [ 2 ] {{ x, y }}; }}\n" for v in names)
    text += "".join(f"probability ( {v} ) {{ table 0.5, 0.5; }}\n" for v in names[1:])
    text += f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}"
    with pytest.raises(FileFormatError, match="Line 80: the table of 'v0' would have 1,099,511,627,776 entries"):
        parse_bif(text)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_writing_and_reading_give_the_same_bits(data):
    variables = data.draw(st.lists(names, min_size=1, max_size=5, unique=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    states = {v: tuple(data.draw(st.lists(names, min_size=1, max_size=3, unique=True))) for v in variables}
    parents = {v: tuple(u for u in variables[:i] if rng.random() < 0.6) for i, v in enumerate(variables)}
    tables = {v: rng.dirichlet(np.ones(len(states[v])), [len(states[u]) for u in parents[v]]) for v in variables}
    text = to_bif(BayesNet(parents, tables, states))
    found = parse_bif(text)
    assert found.states == states
    assert found.parents == parents
    for v in variables:
        np.testing.assert_array_equal(found.tables[v], tables[v], strict=True)
    same(CarefulReader(text).read(), found)
    assert to_bif(from_bif(text)) == text


def test_plain_names_are_read_quickly():
    assert read_quickly(to_bif(from_bif(ASIA))) is not None


def test_numbers_are_written_as_text_and_may_not_look_alike():
    net = BayesNet({0: (), 1: (0,)}, {0: [0.5, 0.5], 1: [[0.1, 0.9], [0.2, 0.8]]})
    assert parse_bif(to_bif(net)).states == {"0": ("0", "1"), "1": ("0", "1")}
    with pytest.raises(ValueError, match="Two variables look the same as text"):
        to_bif(BayesNet({0: (), "0": ()}, {0: [0.5, 0.5], "0": [0.5, 0.5]}))
    with pytest.raises(ValueError, match="Two states of 0 look the same as text"):
        to_bif(BayesNet({0: ()}, {0: [0.5, 0.5]}, {0: [1, "1"]}))


def test_sources(tmp_path):
    expected = both(SMALL)
    plain, packed = tmp_path / "small.bif", tmp_path / "small.bif.gz"
    net = from_bif(SMALL)
    assert to_bif(net, plain) == plain.read_text(encoding="utf-8") == gzip.decompress(_written(net, packed)).decode()
    packed_text = io.BytesIO(gzip.compress(SMALL.encode("utf-8-sig")))
    for source in (plain, str(plain), packed, str(packed), io.StringIO(SMALL), packed_text, SMALL.encode(), SMALL):
        read = from_bif(source)
        assert read.states == expected.states
        for factor, table in zip(read.factors, expected.tables.values(), strict=True):
            np.testing.assert_array_equal(factor.values, table)
    with plain.open(encoding="utf-8") as file:
        assert from_bif(file).states == expected.states
    with pytest.raises(FileNotFoundError):
        from_bif(tmp_path / "missing.bif")
    with pytest.raises(ValueError, match="not from int"):
        from_bif(7)
    with pytest.raises(FileFormatError, match="no UTF-8 text") as caught:
        from_bif(SMALL.replace("u, v", "ü, v").encode("latin-1"))
    assert caught.value.line == 4


def _written(net, path):
    to_bif(net, path)
    return path.read_bytes()


def networks():
    """Find the networks of the bnlearn repository, if pgmpy is here, without importing it."""
    found = find_spec("pgmpy")
    return sorted((Path(found.origin).parent / "utils" / "example_models").glob("*.bif.gz")) if found else []


@pytest.mark.skipif(not networks(), reason="the networks come with pgmpy")
def test_all_networks_of_the_repository_are_read_quickly():
    paths = networks()
    assert len(paths) == 24
    for path in paths:
        text = gzip.decompress(path.read_bytes()).decode()
        found = read_quickly(text)
        assert found is not None, path.name
        for name, table in found.tables.items():
            assert table.shape == tuple(len(found.states[v]) for v in (*found.parents[name], name))
            np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-12)
        if len(text) < 300_000:
            same(CarefulReader(text).read(), found)


@pytest.mark.skipif(not networks(), reason="the networks come with pgmpy")
def test_tables_agree_with_pyagrum():
    pyagrum = pytest.importorskip("pyagrum")
    for path in networks():
        if path.name.split(".")[0] not in ("alarm", "andes", "asia", "hailfinder", "hepar2", "insurance", "munin1", "win95pts"):
            continue
        text = gzip.decompress(path.read_bytes()).decode()
        found, net = parse_bif(text), _loaded(pyagrum, text)
        assert list(found.states) == [net.variable(i).name() for i in sorted(net.nodes())]
        for name, table in found.tables.items():
            potential = net.cpt(name)
            assert list(found.states[name]) == list(net.variable(name).labels())
            axes = list(reversed(potential.names))  # slowest first
            family = (*found.parents[name], name)
            other = potential.toarray().transpose([axes.index(v) for v in family])
            np.testing.assert_allclose(table, other, rtol=0, atol=3e-7)  # it reads numbers as float32


def _loaded(pyagrum, text):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "net.bif"
        path.write_text(text, encoding="utf-8")
        return pyagrum.loadBN(str(path))


@pytest.mark.slow_without_jit
@pytest.mark.skipif(not networks(), reason="the networks come with pgmpy")
@pytest.mark.parametrize(
    "network", ["asia", "child", "insurance", "alarm", "win95pts", "hailfinder", "andes", "pigs", "munin1"]
)
def test_marginals_agree_with_pyagrum(network):
    path = next(path for path in networks() if path.name == f"{network}.bif.gz")
    net = from_bif(path)
    with np.load(Path(__file__).parent / "reference" / "pyagrum.npz") as frozen:
        observed = {net.variables[i]: net.states[net.variables[i]][code] for i, code in frozen[f"{network}_observed"]}
        for evidence, which in [({}, "prior"), (observed, "posterior")]:
            found = net.marginals(evidence)
            joined = np.concatenate([found[name] for name in net.variables])
            np.testing.assert_allclose(joined, frozen[f"{network}_{which}"], rtol=0, atol=1e-10)


def test_what_is_no_net_is_not_written():
    with pytest.raises(ValueError, match="holds a Bayes net, and a FactorGraph is none"):
        to_bif(FactorGraph([("ab", [[3, 1], [1, 2]])]))


def test_what_has_no_variable_is_not_read():
    for empty in ("", "  \n"):
        with pytest.raises(ValueError, match="this text is empty"):
            from_bif(empty)
    for text, line in (("network a { }", 1), ("// nothing\n\nnetwork a { }\n", 3), ('network "a b" {\n}', 2)):
        with pytest.raises(FileFormatError, match=f"Line {line}: expected a variable, found the end of the file"):
            from_bif(text)
    with pytest.raises(FileFormatError, match="Line 1: expected a variable"):
        from_bif(io.StringIO(""))
