"""`lemmata rules` sees the baskets in a table, finds the rules that counting finds, and says what it cannot read."""

import re
from collections import Counter
from functools import partial
from itertools import combinations, islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy.stats import false_discovery_control, fisher_exact

import lemmata
from cli.commandline import offer, run, save
from lemmata.association import Apriori
from lemmata.cli import baskets as reading
from lemmata.cli import rules as work
from lemmata.cli.baskets import paired, read_baskets, see
from lemmata.cli.warm import tiny_fits
from lemmata.core.table import Table, read_table

GOODS = ("bread", "butter", "cheese", "jam", "tea", "wine")


def bought(n=120, seed=0):
    """Baskets in which butter comes with bread and wine with cheese."""
    rng = np.random.default_rng(seed)
    held = rng.random((n, 6)) < [0.5, 0.3, 0.2, 0.3, 0.4, 0.3]
    held[:, 0] |= held[:, 1] & (rng.random(n) < 0.9)
    held[:, 2] |= held[:, 5] & (rng.random(n) < 0.8)
    held[:, 4] |= ~held.any(axis=1)  # pairs cannot tell of a basket without an item
    return [{GOODS[j] for j in np.flatnonzero(row)} for row in held]


def items_table(baskets):
    return Table({good: np.array([float(good in b) for b in baskets]) for good in GOODS})


def pairs_table(baskets, seed=0):
    rows = [(1000.0 + i, good) for i, basket in enumerate(baskets) for good in sorted(basket)]
    np.random.default_rng(seed).shuffle(rows := [list(row) for row in rows])
    receipt, item = zip(*rows, strict=True)
    return Table({"receipt": np.array(receipt), "item": np.array(item, dtype=object)})


def counted_rules(baskets, support, confidence):
    """Count every set in every basket: (left, right) to (count of both, of the left, of the right)."""
    sets = Counter(frozenset(c) for b in baskets for k in range(1, len(b) + 1) for c in combinations(sorted(b), k))
    found = {}
    for whole, both in sets.items():
        for k in range(1, len(whole)):
            for left in map(frozenset, combinations(sorted(whole), k)):
                one, other = sets[left], sets[whole - left]
                if both >= support * len(baskets) and both >= confidence * one:
                    found[left, whole - left] = both, one, other
    return found


def written(path):
    """Read rules back from a CSV file."""
    table = read_table(path)
    names = [[frozenset(text.split(", ")) for text in table[side]] for side in ("antecedent", "consequent")]
    return table, list(zip(*names, strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(items_table(bought()), tmp_path / "items.csv")
    save(pairs_table(bought()), tmp_path / "pairs.csv")
    return tmp_path


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("make", [items_table, pairs_table])
def test_rules_are_those_that_counting_finds(folder, make, seed):
    baskets = bought(seed=seed)
    save(make(baskets), folder / "data.csv")
    done = run("rules", "data.csv", "--min-support", 0.05, "--min-confidence", 0.6, "--out", "found.csv")
    assert done.exit_code == 0, done.output
    expected = counted_rules(baskets, 0.05, 0.6)
    table, rules = written("found.csv")
    assert len(rules) == len(expected) > 5
    counts = np.array([expected[rule] for rule in rules]).T
    both, one, other = counts / len(baskets)
    assert_allclose(table["support"], both, rtol=1e-12)  # one division
    assert_allclose(table["confidence"], both / one, rtol=1e-12)
    assert_allclose(table["lift"], both / one / other, rtol=1e-12)
    order = sorted(range(len(rules)), key=lambda i: (-round(both[i] / one[i] / other[i], 9), -both[i]))
    assert order == list(range(len(rules)))  # sorted is stable, so ties prove nothing and everything else does
    assert (
        f"120 baskets; 6 items, 6 of them frequent; {len(frequent(baskets, 0.05))} frequent sets; {len(rules)} rules."
        in done.stdout
    )
    assert "proved: no set is missing" in done.stdout
    shown = done.stdout.split("who has")[1].splitlines()[1]
    assert shown.split()[-4:] == [
        f"{both[0]:.3f}",
        f"{both[0] / one[0]:.3f}",
        f"{both[0] / one[0] / other[0]:.3f}",
        f"{counts[0][0]}",
    ]


def frequent(baskets, support):
    sets = Counter(frozenset(c) for b in baskets for k in range(1, len(b) + 1) for c in combinations(sorted(b), k))
    return [s for s, n in sets.items() if n >= support * len(baskets)]


def test_thresholds_are_kept(folder):
    run(
        "rules",
        "items.csv",
        "--min-support",
        6,
        "--min-confidence",
        0.5,
        "--min-lift",
        1.2,
        "--max-length",
        2,
        "--out",
        "a.csv",
    )
    expected = {
        rule
        for rule, (both, one, other) in counted_rules(bought(), 0.05, 0.5).items()
        if both * 120 >= 1.2 * one * other and len(rule[0] | rule[1]) == 2
    }
    assert set(written("a.csv")[1]) == expected
    assert expected


def test_with_a_level_rules_are_tested(folder):
    done = run("rules", "items.csv", "--min-support", 0.05, "--min-confidence", 0, "--alpha", 0.05, "--out", "tested.csv")
    cuts = counted_rules(bought(), 0.05, 0)
    n_tests = (n_sets := len(frequent(bought(), 0.05))) * (n_sets - 1)  # also pairs of frequent sets that hardly meet
    tables = [[[x, a - x], [b - x, 120 - a - b + x]] for x, a, b in cuts.values()]
    p = [fisher_exact(t, alternative="greater").pvalue for t in tables]
    q = false_discovery_control([*p, *np.ones(n_tests - len(p))])[: len(p)]
    table, rules = written("tested.csv")
    expected = {rule: value for rule, value in zip(cuts, q, strict=True) if value <= 0.05}
    assert set(rules) == set(expected)
    assert 0 < len(rules) < len(cuts)
    assert_allclose(table["adjusted_p_value"], [expected[rule] for rule in rules], rtol=1e-9)  # two ways to the same tail
    assert f"{len(rules)} rules after the test, of {n_tests:,} pairs of sets." in " ".join(done.stdout.split())
    assert "adjusted p" in done.stdout


def test_top_rules_are_shown_and_all_are_written(folder):
    done = run("rules", "items.csv", "--min-support", 0.05, "--min-confidence", 0.5, "--top", 2)
    n = len(counted_rules(bought(), 0.05, 0.5))
    body = done.stdout.split("\n\n")[1].splitlines()
    assert len(body) == 3  # heads, two rules
    assert f"{n - 2} more rules; --out writes all of them." in done.stdout
    done = run("rules", "items.csv", "--min-support", 0.05, "--min-confidence", 0.5, "--top", 0, "--out", "r.parquet")
    assert "who has" not in done.stdout
    table = pq.read_table("r.parquet")
    assert {
        (frozenset(a), frozenset(b)) for a, b in zip(*(table[c].to_pylist() for c in ("antecedent", "consequent")), strict=True)
    } == set(counted_rules(bought(), 0.05, 0.5))
    assert run("rules", "items.csv", "--min-support", 0.9, "--out", "none.parquet").exit_code == 0
    assert pq.read_table("none.parquet").num_rows == 0


def test_nothing_found_says_what_to_lower(folder):
    done = run("rules", "items.csv", "--min-support", 0.99)
    assert "6 items, 0 of them frequent; 0 frequent sets; 0 rules." in done.stdout
    assert "lower --min-support" in done.stdout
    done = run("rules", "items.csv", "--min-confidence", 1)
    assert "no rule: lower --min-confidence to see more." in done.stdout
    done = run("rules", "items.csv", "--min-confidence", 0.1, "--alpha", 1e-300)
    assert "no rule: raise --alpha to see more." in done.stdout
    done = run("rules", "items.csv", "--min-lift", 99)
    assert "no rule: lower --min-lift to see more." in done.stdout
    done = run("rules", "items.csv", "--min-confidence", 1, "--min-lift", 99)
    assert "no rule: lower --min-confidence or lower --min-lift to see more." in done.stdout
    assert done.exit_code == 0


def column(*values):
    return np.array(values, dtype=object if {type(v) for v in values} - {bool, float} else None)


def test_what_is_not_there_is_said_and_left_out():
    pairs = Table({"r": np.array([1.0, 1, 2, 2, np.nan]), "i": column("a", "b", "a", None, "b")})
    found = see(pairs, "x.csv")
    assert found.baskets == [["a", "b"], ["a"]]
    assert found.remarks == ("2 rows without r or i are left out.",)
    assert found.columns == ("r", "i")
    assert see(pairs.take([0, 1, 2, 3]), "x.csv").remarks == ("1 row without r or i is left out.",)
    blank = Table({"id": np.arange(3.0) + 7, "tea": np.array([1.0, np.nan, 1.0]), "milk": column(True, None, False)})
    found = see(blank, "x.csv")
    assert found.baskets == [["tea", "milk"], [], ["tea"]]
    assert found.remarks == (
        "left out: id (different in every row, as an identifier is).",
        "2 empty cells: the item is not there.",
    )


def test_columns_of_text_are_items_by_their_values():
    table = Table(
        {
            "who": column("ann", "bob", "cy"),
            "sky": column("blue", None, "blue"),
            "windy": np.array([True, False, True]),
            "warm": np.array([1.0, 0.0, 1.0]),
            "void": np.full(3, np.nan),
        }
    )
    found = see(table, "x.csv")
    assert found.baskets == [
        ["sky=blue", "windy=true", "warm=1"],
        ["windy=false", "warm=0"],
        ["sky=blue", "windy=true", "warm=1"],
    ]
    assert found.remarks[0] == "left out: who (different in every row, as an identifier is), void (empty)."
    many = Table({"name": column(*(f"n{i % 21}" for i in range(63))), "sky": column(*["blue", "gray", "red"] * 21)})
    assert see(Table({**many, "x": np.arange(63) % 2 == 0}), "x.csv").remarks == ("left out: name (more than 20 values).",)
    few = Table({"name": column(*(f"n{i % 20}" for i in range(63))), "x": np.arange(63) % 2 == 0})
    assert see(few, "x.csv").remarks == ()


@pytest.mark.parametrize(
    ("first", "second", "pair"),
    [
        (["r", "r", "s"], ["a", "b", "a"], ("first", "second")),
        ([1.0, 1, 2], ["a", "b", "a"], ("first", "second")),
        (["a", "b", "a"], [1.0, 1, 2], ("second", "first")),
        ([1.0, 1, 2], [7.0, 8, 7], ("first", "second")),
        ([1.0, 2, 3], ["a", "b", "a"], None),  # a basket each
        ([1.5, 1.5, 2], ["a", "b", "a"], None),  # measurements
        (["a", "b"] * 10, ["x", "y"] * 10, None),  # rows come again and again: classes
        (["r", "r", "s"] * 7 + ["r"], [f"{i % 20}" for i in range(22)], ("first", "second")),  # one of them twice
    ],
)
def test_pairs_are_seen(first, second, pair):
    columns = (np.array(c) if isinstance(c[0], float) else column(*c) for c in (first, second))
    assert paired(Table(dict(zip(("first", "second"), columns, strict=True)))) == pair


REPEATED = [["milk", "milk", "tea"], ["milk", "bread", "milk"], ["tea", "tea", "bread"], ["bread", "bread", "milk"]]


@pytest.mark.parametrize(
    ("basket", "item"), [("receipt", "item"), ("Order ID", "products"), ("receiptNo", "what"), ("order", "item_id")]
)
@pytest.mark.parametrize("name", [float, "r{}".format])
@pytest.mark.parametrize("order", [1, -1])
def test_pairs_whose_rows_repeat_are_seen_by_their_names(basket, item, name, order):
    receipt = column(*(name(i) for i in range(20) for _ in range(3)))
    columns = [(basket, receipt), (item, column(*(good for _ in range(5) for bought in REPEATED for good in bought)))]
    found = see(Table(dict(columns[::order])), "x.csv")
    assert found.columns == (basket, item)
    assert sorted(map(sorted, found.baskets)) == sorted(map(sorted, REPEATED * 5))


@pytest.mark.parametrize(
    ("names", "first", "todo"),
    [
        (("a", "b"), [f"r{i // 3}" for i in range(60)], "rename the columns, in words,"),
        (("a", "b"), [float(i // 3) for i in range(60)], "cut the numbers into parts with names,"),
        (("who", "what"), [f"{chr(97 + i // 10 % 10)}{chr(97 + i // 2 % 5)}" for i in range(60)], "rename"),
        (("customer", "product"), ["private", "company"] * 30, "rename the columns,"),
        (("age", "product"), [30.0, 40.0] * 30, "cut the numbers into parts with names,"),
    ],
)
def test_what_may_be_pairs_is_asked(names, first, todo):
    table = Table(dict(zip(names, (column(*first), column(*["tea", "tea", "milk", "tea"] * 15)), strict=True)))
    with pytest.raises(ValueError, match="these look like pairs in which rows repeat; say --basket") as error:
        see(table, "x.csv")
    assert f"say --basket {names[0]} --item {names[1]}, or {todo}" in str(error.value)


def test_classes_in_two_columns_are_values():
    table = Table({"sky": column(*["blue", "gray", "blue"] * 9), "mood": column(*["good", "bad", "good"] * 9)})
    assert see(table, "x.csv").baskets[0] == ["sky=blue", "mood=good"]


def test_yes_and_no_in_two_columns_are_items():
    assert see(Table({"a": np.array([1.0, 1, 0]), "b": np.array([0.0, 1, 1])}), "x.csv").columns is None


@pytest.mark.parametrize(
    ("yes", "no"), [("yes", "no"), ("Yes", "NO"), ("y", "n"), ("T", "F"), ("x", ""), ("X", ""), ("true", "false"), ("1", "0")]
)
def test_words_for_yes_and_no_are_items(folder, yes, no):
    rows = [(yes, no, yes), (yes, yes, no), (no, no, no), (yes, yes, yes)]
    (folder / "words.csv").write_text("\n".join(["bread,tea,wine", *map(",".join, rows)]))
    assert read_baskets(folder / "words.csv").baskets == [["bread", "wine"], ["bread", "tea"], [], ["bread", "tea", "wine"]]


def test_words_of_more_than_two_kinds_are_values():
    table = Table({"a": column("yes", "no", "maybe", "no"), "b": column("yes", "f", "f", "f")})
    assert see(table, "x.csv").baskets[0] == ["a=yes", "b=yes"]


@pytest.mark.parametrize("name", ["order", "item"])
@pytest.mark.parametrize(("number", "told"), [(10**15, False), (2**53, True)])
def test_numbers_that_a_table_does_not_tell_apart_are_refused(folder, name, number, told):
    table = pa.table({"order": [1, 1, 2], "item": [1, 2, 1]} | {name: [number, number + 1, 5]})
    pq.write_table(table, folder / "long.parquet")
    table.to_pandas().to_csv(folder / "long.csv", index=False)
    for file in ("long.csv", "long.parquet"):
        done = run("rules", file, "--basket", "order", "--item", "item")
        assert done.exit_code == (2 if told else 0)
        assert (f"the column '{name}' holds numbers of more than 15 digits" in done.stderr) == told


def test_named_columns_are_pairs_and_numbers_stay_numbers(folder):
    table = pairs_table(bought())
    number = {good: 10.0 + j for j, good in enumerate(GOODS)}
    codes = np.array([number[good] for good in table["item"]])
    save(Table({**table, "code": codes, "price": np.linspace(0, 9, table.n_rows)}), folder / "more.csv")
    done = run("rules", "more.csv", "--basket", "receipt", "--item", "code", "--min-support", 0.05, "--save", "m.lemmata")
    assert "a row is a pair of a basket, receipt, and an item, code." in done.stdout
    found = lemmata.load("m.lemmata").itemsets_
    assert {frozenset(s) for s in found["itemset"]} == {frozenset(int(number[g]) for g in s) for s in frequent(bought(), 0.05)}
    import pandas as pd

    assert lemmata.load("m.lemmata").certify(pd.read_csv("more.csv")).holds  # the model knows its columns


@pytest.mark.parametrize("name", ["items", "pairs", "lists"])
def test_what_is_too_large_to_be_read_at_once_gives_the_same(folder, monkeypatch, name):
    table = pairs_table(bought())
    order = np.argsort(table["receipt"], kind="stable")  # a stream of pairs has its baskets together
    tables = {
        "items": pa.table({good: pa.array(c.astype(int)) for good, c in items_table(bought()).items()}),
        "pairs": pa.table({"receipt": table["receipt"][order], "item": table["item"][order]}),
        "lists": pa.table({"receipt": range(120), "goods": [sorted(b) for b in bought()]}),
    }
    pq.write_table(tables[name], "data.parquet")
    monkeypatch.setattr(reading, "CELLS", 100)
    named = ("--basket", "receipt", "--item", "item") if name == "pairs" else ()
    stored = run("rules", "data.parquet", "--min-support", 0.05, *named, "--out", "stored.csv", "--save", "m.lemmata")
    assert stored.exit_code == 0, stored.output
    assert "120 baskets; 6 frequent items;" in stored.stdout
    run("rules", "items.csv", "--min-support", 0.05, "--out", "read.csv")
    (table, rules), (expected, others) = written("stored.csv"), written("read.csv")
    assert rules == others
    assert_allclose(table["lift"], expected["lift"], rtol=1e-12)  # the same counts
    assert run("certify", "m.lemmata", "data.parquet").exit_code == 0


def test_small_parquet_is_read_like_csv(folder):
    pq.write_table(pa.table({good: column > 0 for good, column in items_table(bought()).items()}), "items.parquet")
    assert read_baskets(folder / "items.parquet").baskets == read_baskets(folder / "items.csv").baskets


def test_saved_models_are_certified_and_others_refused(folder):
    for data in ("items.csv", "pairs.csv"):
        assert "saved  m.lemmata" in run("rules", data, "--save", "m.lemmata").stdout
        done = run("certify", "m.lemmata", data)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("proved  Apriori()")
    save(pairs_table(bought(seed=1)), folder / "other.csv")
    assert run("certify", "m.lemmata", "other.csv").exit_code == 1
    done = run("certify", "m.lemmata", "items.csv")
    assert done.exit_code == 2
    assert "there is no column 'receipt'" in done.stderr
    done = run("predict", "m.lemmata", "pairs.csv")
    assert done.exit_code == 2
    assert "this command takes a model that 'lemmata fit' saved." in done.stderr


def test_a_refused_certificate_is_said(folder, monkeypatch):
    fit = Apriori.fit

    def forgetful(self, X, y=None, sample_weight=None):
        fit(self, X).itemsets_.count[0] += 3
        return self

    monkeypatch.setattr(Apriori, "fit", forgetful)
    done = run("rules", "items.csv")
    assert "refused: counts: do not rely on these sets and rules." in done.stdout


def write_inputs(folder):
    texts = {
        "numbers.csv": "age,sky\n20.5,blue\n21,gray\n20.5,blue\n",
        "dates.csv": "day,sky\n2024-01-01,blue\n2024-01-01,gray\n",
        "names.csv": "name\nann\nbob\ncy\n",
        "ragged.csv": "tea,milk\ntea,milk,jam\n",
        "nobody.csv": "r,i\n1,\n,a\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    pq.write_table(pa.table({"a": [1, 0, 7], "b": [1, 1, 0]}), folder / "sevens.parquet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.csv",), "there is no file absent.csv."),
        (("numbers.csv",), "the column 'age' holds numbers: cut it into parts with names, such as 'low' and 'high'"),
        (("dates.csv",), "the column 'day' holds dates: cut it into parts with names, such as 'Monday'"),
        (
            ("names.csv",),
            "names.csv has no columns of items (left out: name (different in every row, as an identifier is)): give",
        ),
        (("ragged.csv",), "ragged.csv, line 2: 3 cells, but the header has 2; baskets of unequal length are written"),
        (("nobody.csv", "--basket", "r", "--item", "i"), "no row has both 'r' and 'i': there are no baskets."),
        (("pairs.csv", "--basket", "receipt"), "--basket and --item go together"),
        (("pairs.csv", "--item", "item", "--basket", "item"), "--basket and --item are the same column, 'item'"),
        (("pairs.csv", "--basket", "receipt", "--item", "x"), "there is no column 'x'; the columns are receipt, item."),
        (("items.csv", "--min-support", 0), "--min-support is 0; it is a share of the baskets, such as 0.1, or from 2 on"),
        (("items.csv", "--min-support", 2.5), "--min-support is 2.5;"),
        (("items.csv", "--min-support", "inf"), "--min-support is inf;"),
        (("items.csv", "--min-support", "nan"), "--min-support is nan;"),
        (("items.csv", "--min-confidence", 3), "--min-confidence must be a share from 0 to 1, got 3.0."),
        (("items.csv", "--min-lift", -1), "--min-lift must be None or at least 0, got -1.0."),
        (("items.csv", "--alpha", 0), "--alpha must be None or a level of (0, 1], got 0.0."),
        (("items.csv", "--out", "rules.txt"), "rules.txt ends in neither of .csv and .parquet"),
        (("items.csv", "--out", "items.csv"), "items.csv is the data itself; choose another file to write to."),
        (("items.csv", "--save", "items.csv"), "items.csv is the data itself; choose another file to write to."),
        (("items.csv", "--save", "no/m.lemmata"), "there is no folder no."),
    ],
)
def test_what_is_wrong_is_one_sentence(folder, arguments, message):
    write_inputs(folder)
    done = run("rules", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["1,1,1,1,1,1,1,1,1"] * 2 + ["1,1,0,0,0,0,0,0,0"],
            "memory has room for. --min-support 3 has room (3 sets); or set --max-length.",
        ),
        (["1,1,1,1,1,1,1,1,1"] * 3, "which is all that memory has room for. Set --max-length."),
    ],
)
def test_too_many_sets_are_one_sentence(folder, monkeypatch, rows, message):
    monkeypatch.setattr(work, "Apriori", partial(Apriori, memory_limit=80 * 100))  # room for a hundred sets
    (folder / "full.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,i", *rows]))
    done = run("rules", "full.csv", "--min-support", 2)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_too_many_rules_are_one_sentence(folder, monkeypatch):
    monkeypatch.setattr(work, "Apriori", partial(Apriori, memory_limit=80 * 600))  # room for 2⁹ sets, not for 3⁹ rules
    (folder / "full.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,i", *["1,1,1,1,1,1,1,1,1"] * 3]))
    done = run("rules", "full.csv")
    assert done.exit_code == 2
    assert "more rules than memory has room for: raise --min-confidence" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("sevens.parquet",),
            "sevens.parquet is too large to be read at once, and its columns are not all of true and false, or of 0 and 1",
        ),
        (("sevens.parquet", "--basket", "a", "--item", "x"), "there is no column 'x'; the columns are a, b."),
        (("sevens.parquet", "--basket", "a", "--item", "b"), "Baskets must stand together: sort the rows by 'a', ascending."),
    ],
)
def test_what_is_wrong_with_large_files_is_one_sentence(folder, monkeypatch, arguments, message):
    write_inputs(folder)
    monkeypatch.setattr(reading, "CELLS", 0)
    done = run("rules", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(message)


def test_fit_tells_of_rules_where_all_columns_are_yes_or_no(folder, monkeypatch):
    offer(monkeypatch)  # of no models: the line comes before any fit
    hint = "all columns are yes or no; what goes together: lemmata rules items.csv\n"
    assert hint in run("fit", "items.csv").stdout
    table = items_table(bought())
    save(Table({**table, "price": np.linspace(1, 9, 120)}), folder / "priced.csv")
    assert "lemmata rules" not in run("fit", "priced.csv").stdout
    assert "lemmata rules" not in run("fit", "items.csv", "--target", "tea").output


def test_rules_are_warmed(monkeypatch):
    asked = []
    rules = Apriori.rules
    monkeypatch.setattr(Apriori, "rules", lambda self, **options: asked.append(options) or rules(self, **options))
    offer(monkeypatch, Apriori)
    for _, tiny_fit in islice(tiny_fits(), 3):  # without weights, and with two kinds of them, which the test cannot count
        tiny_fit()
    assert asked == [{"test": "fisher"}]


def test_help_has_an_example():
    shown = run("rules", "--help").stdout
    assert "lemmata rules baskets.csv" in shown.split("Example:")[1]
    assert re.search(r"\brules\b", run("--help").stdout)
