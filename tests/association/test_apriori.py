"""Frequent sets: against all subsets, counted one by one; every form of baskets; what a certificate sees; limits."""

from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

import lemmata
from association.naive import by_set, frequent_sets, sets_of, table
from lemmata.association import Apriori, certificate, frequent_itemsets, mining
from lemmata.association.baskets import of_lists
from lemmata.association.mining import TooManySets

FIVE = [["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]  # the catalogue's example


@pytest.mark.item("ASC-02")
def test_the_catalogues_example():
    found = frequent_itemsets(FIVE, min_support=0.4)
    support = dict(zip(found["itemset"], found.support, strict=True))
    assert support[frozenset("ab")] == pytest.approx(0.6, abs=1e-15)
    assert support[frozenset("abc")] == pytest.approx(0.4, abs=1e-15)


@pytest.mark.item("ASC-04")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("algorithm", ["depth", "levels"])
@pytest.mark.parametrize("form", [np.asarray, csr_array, sets_of], ids=["table", "sparse", "lists"])
def test_all_subsets_counted_one_by_one(seed, algorithm, form, monkeypatch):
    T = table(seed)
    for dense in (0.0, 2.0):  # bits of the whole table, and of an item's baskets
        monkeypatch.setattr(mining, "DENSE", dense)
        model = Apriori(0.05, algorithm=algorithm).fit(form(T))
        assert by_set(model.itemsets_) == frequent_sets(sets_of(T), 3)
        assert model.certify(form(T)).kind == "proof"
        assert model.certify(form(T)).holds


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 4))
def test_any_baskets(baskets, least, longest):
    model = Apriori(least, max_length=longest).fit([sorted(basket) for basket in baskets])
    assert by_set(model.itemsets_) == (frequent_sets(baskets, least, longest=longest) if any(baskets) else {})
    assert model.certify(baskets).holds


@pytest.mark.item("ASC-03")
@pytest.mark.parametrize("seed", range(3))
def test_a_superset_is_in_no_more_baskets(seed):
    found = by_set(frequent_itemsets(table(seed), 0.05))
    for chosen, count in found.items():
        for item in chosen:
            smaller = chosen - {item}
            assert not smaller or found[smaller] >= count


@pytest.mark.parametrize("seed", range(3))
def test_closed_and_maximal_sets(seed):
    T = table(seed, n=25)
    found = frequent_itemsets(T, 0.08)
    counts = by_set(found)
    closed = {a: n for a, n in counts.items() if not any(a < b and n == counts[b] for b in counts)}
    maximal = {a: n for a, n in counts.items() if not any(a < b for b in counts)}
    assert by_set(found.closed()) == closed
    assert by_set(found.maximal()) == maximal
    for chosen, count in counts.items():  # closed sets tell the support of all others
        assert count == max(n for other, n in closed.items() if chosen <= other)
    with pytest.raises(ValueError, match="not all frequent sets"):
        found.maximal().closed()
    gone = found.take([s != found["itemset"][np.flatnonzero(found.length == 2)[-1]] for s in found["itemset"]])
    assert (gone.length > 2).any()  # each prefix is there, and yet not each subset
    for kind in (gone.closed, gone.maximal):
        with pytest.raises(ValueError, match="not all frequent sets"):
            kind()


@pytest.mark.parametrize("share", [0.02, 0.07, 0.1, 0.29, 0.3, 0.7])
def test_a_share_is_what_people_mean_by_it(share):
    n = 100
    T = np.zeros((n, 3), dtype=bool)
    at = round(share * n)
    T[:at, 0], T[: at - 1, 1], T[: at + 1, 2] = True, True, True
    assert [min(s) for s in frequent_itemsets(T, share, max_length=1)["itemset"]] == [0, 2]
    assert [min(s) for s in frequent_itemsets(T, share, max_length=1, strict=True)["itemset"]] == [2]
    assert by_set(frequent_itemsets(T, at)) == by_set(frequent_itemsets(T, share))


def test_a_weight_is_a_repetition():
    T, rng = table(5), np.random.default_rng(0)
    weight = rng.integers(0, 3, len(T))
    repeated = frequent_itemsets(np.repeat(T, weight, axis=0), 0.1)
    for algorithm in ("depth", "levels"):
        assert by_set(frequent_itemsets(T, 0.1, sample_weight=weight, algorithm=algorithm)) == by_set(repeated)
    fractions = rng.random(len(T))
    expected = frequent_sets(sets_of(T), 0.1 * fractions.sum(), fractions)
    found = by_set(frequent_itemsets(sets_of(T), 0.1, sample_weight=fractions))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[k] for k in expected], list(expected.values()), rtol=1e-12)  # sums in another order


@pytest.mark.item("ASC-01")
def test_every_form_of_the_same_baskets():
    T = table(7)
    names = list("abcdefgh")
    lists = [[names[j] for j in sorted(basket)] for basket in sets_of(T)]
    expected = {frozenset(names[j] for j in chosen): n for chosen, n in by_set(frequent_itemsets(T, 0.1)).items()}
    frame = pd.DataFrame(T, columns=names)
    pairs = pd.DataFrame([(i, item) for i, basket in enumerate(lists) for item in basket], columns=["order", "product"])
    forms = {
        "lists": lists,
        "tuples": [tuple(basket) for basket in lists],
        "generator": (basket for basket in lists),
        "twice": [basket + basket for basket in lists],
        "pandas": frame,
        "zeros and ones": frame.astype(int),
        "polars": pl.DataFrame(frame),
        "arrow": pa.Table.from_pandas(frame),
        "series": pd.Series(lists),
        "polars series": pl.Series(lists),
        "column": pd.DataFrame({"n": range(len(lists)), "basket": lists}),
        "polars column": pl.DataFrame({"basket": lists}),
    }
    for name, form in forms.items():
        assert by_set(frequent_itemsets(form, 0.1)) == expected, name
    empty = sum(not basket for basket in lists)  # of which pairs know nothing
    found = frequent_itemsets(pairs.sample(frac=1, random_state=0), len(T) // 10, columns=["order", "product"])
    assert by_set(found) == expected
    assert found.n_baskets == len(T) - empty
    back = np.zeros_like(T)
    baskets = of_lists(lists)
    for i in range(len(T)):
        back[i, [names.index(baskets.items[j]) for j in baskets.held.indices[slice(*baskets.held.indptr[i : i + 2])]]] = True
    assert np.array_equal(back, T)  # round trip


@pytest.mark.parametrize(
    "items", [("a", 1, 2.5), (frozenset("ab"), frozenset("a"), frozenset("bc")), (("a", 1), ("b", 2), ("a", 2))]
)
def test_items_are_anything_that_a_set_can_hold(items, monkeypatch):
    monkeypatch.setattr(certificate, "ROWS", 10)
    baskets = [{items[j] for j in basket} for basket in sets_of(table(4, p=3))]
    model = Apriori(0.1).fit(baskets)
    assert by_set(model.itemsets_) == {
        frozenset(items[j] for j in chosen): n for chosen, n in frequent_sets(sets_of(table(4, p=3)), 6).items()
    }
    assert model.certify(baskets).holds
    pairs = pd.DataFrame([(i, item) for i, basket in enumerate(baskets) for item in basket], columns=["order", "product"])
    assert by_set(frequent_itemsets(pairs, 6, columns=["order", "product"])) == by_set(model.itemsets_)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_fit_to_one_form_is_checked_against_another():
    T = table(4)
    frame = pd.DataFrame(T, columns=list("hgfedcba"))
    lists = [[frame.columns[j] for j in basket] for basket in sets_of(T)]
    for form in (frame, lists):
        model = Apriori(0.1).fit(form)
        for other in (frame, lists, pl.DataFrame(frame)):
            assert model.certify(other).holds
            assert np.array_equal(model.transform(other).sum(axis=0), model.itemsets_.count)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_fit_to_an_array_takes_columns_by_their_places():
    T = table(4)
    frame = pd.DataFrame(T, columns=list("hgfedcba"))
    for X, form in ((T, frame), (T, pl.DataFrame(frame)), (T.astype(float), frame.astype(float))):
        model = Apriori(0.1).fit(X)
        assert model.certify(form).holds
        assert np.array_equal(model.transform(form), model.transform(X))


def test_numbers_of_more_than_64_bits_and_times_are_items_too(tmp_path):
    large, times = [2**63 + 5, 2**63 + 6], pd.to_datetime(["2026-01-30", "2026-01-31"])
    assert by_set(frequent_itemsets([[2**70, 1], [2**70]], 2)) == {frozenset([2**70]): 2}
    for items, dtype in ((large, np.uint64), (times.to_pydatetime().tolist(), "datetime64[ns]")):
        pairs = pd.DataFrame({"order": [1, 1], "item": np.array(items, dtype=dtype)})
        model = Apriori(1, columns=["order", "item"]).fit(pairs)
        assert by_set(model.itemsets_) == dict.fromkeys(map(frozenset, (items[:1], items[1:], items)), 1)
        pairs.to_parquet(tmp_path / "pairs.parquet")
        assert model.certify(tmp_path / "pairs.parquet").holds
        assert by_set(Apriori(1, columns=["order", "item"]).fit(tmp_path / "pairs.parquet").itemsets_) == by_set(
            model.itemsets_
        )


def test_columns_that_are_numbers_name_the_items():
    frame = pd.DataFrame(table(4, p=3), columns=[30, 10, 20])
    expected = {frozenset([30, 10, 20][j] for j in chosen): n for chosen, n in frequent_sets(sets_of(table(4, p=3)), 6).items()}
    for form in (frame, frame.astype(float)):
        model = Apriori(0.1).fit(form)
        assert by_set(model.itemsets_) == expected
        assert model.certify(form).holds
        assert model.certify(frame.to_numpy()).holds
        assert np.array_equal(model.transform(frame).sum(axis=0), model.itemsets_.count)
        with pytest.raises(ValueError, match="other names"):
            model.transform(frame[[10, 20, 30]])
    pair = pd.DataFrame(table(4, p=2), columns=pd.MultiIndex.from_tuples([("tea", "green"), ("tea", "black")]))
    assert ("tea", "black") in set().union(*frequent_itemsets(pair, 0.1)["itemset"])
    assert not hasattr(model.fit(FIVE), "item_names_")


def test_weights_whose_sums_are_not_exact_are_no_numbers_of_baskets():
    found = frequent_itemsets(FIVE, 0.4, sample_weight=[1e30] * 5)
    assert by_set(found) == pytest.approx({s: n * 1e30 for s, n in by_set(frequent_itemsets(FIVE, 0.4)).items()}, rel=1e-12)


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7, 1 / 3, 1.1])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["table", "sparse"])
def test_equal_weights_change_nothing(weight, form):
    """The sum of 100,000 times 0.7, one after the other, is not 70,000: off by 2e-12 of it."""
    n = 100_000
    T = np.zeros((n, 3), dtype=bool)
    T[:, 0], T[: n // 10, 1], T[: n // 2, 2] = True, True, True
    X, weights = form(T), np.full(n, weight)
    for support, sets in ((1.0, 1), (0.5, 3), (0.1, 7)):
        model = Apriori(support).fit(X, sample_weight=weights)
        assert len(model.itemsets_) == sets
        assert model.certify(X, sample_weight=weights).holds
        strict = Apriori(support, strict=True).fit(X, sample_weight=weights)
        assert len(strict.itemsets_) == {1.0: 0, 0.5: 1, 0.1: 3}[support]
        assert strict.certify(X, sample_weight=weights).holds
    assert len(model.rules(min_confidence=0.5)) == len(Apriori(0.1).fit(X).rules(min_confidence=0.5)) == 7
    assert len(model.rules(min_confidence=0.0, min_lift=1.0)) == 12


def test_a_share_of_less_digits_is_the_number_that_is_written():
    T = np.zeros((30, 2), dtype=bool)
    T[:3, 0], T[:4, 1] = True, True
    for share in (0.1, np.float32(0.1), np.float16(0.1)):
        assert len(frequent_itemsets(T, share)) == 3
        assert [min(s) for s in frequent_itemsets(T, share, strict=True)["itemset"]] == [1]


def test_threads_do_not_matter():
    T = table(3, n=500, p=20)
    with lemmata.config(n_threads=1):
        one = frequent_itemsets(T, 0.02)
    with lemmata.config(n_threads=3):
        three = frequent_itemsets(T, 0.02)
    assert one.indices.tobytes() == three.indices.tobytes()
    assert one.count.tobytes() == three.count.tobytes()


@pytest.fixture(scope="module")
def fit():
    T = table(11)
    return T, Apriori(0.1).fit(T)


def without(itemsets, row):
    """Leave out a set and all that contain it."""
    chosen = itemsets["itemset"][row]
    return itemsets.take([i for i, other in enumerate(itemsets["itemset"]) if not chosen <= other])


@pytest.mark.item("ASC-04")
def test_sabotage_is_seen_by_the_check_that_should(fit):
    T, model = fit
    assert model.certify(T).holds
    last = len(model.itemsets_) - 1
    for change, seen in (
        (lambda s: s.count.__setitem__(3, s.count[3] + 1), "counts"),
        (lambda s: s.count.__setitem__(last, s.count[last] - 1), "counts"),
        (lambda s: setattr(s, "n_baskets", s.n_baskets + 1), "baskets"),
        (lambda s: setattr(s, "n_baskets", s.n_baskets * (1 + 1e-8)), "baskets"),  # as one basket of a hundred million
        (lambda s: setattr(s, "n_baskets", np.nan), "baskets"),
        (lambda s: setattr(s, "max_length", 2), "border"),
        (lambda s: s.items.__setitem__(0, s.items[1]), "counts"),
    ):
        twin = deepcopy(model)
        change(twin.itemsets_)
        assert seen in [check.name for check in twin.certify(T).failed]
    twin = deepcopy(model)
    twin.minimum_ = np.nan
    assert [check.name for check in twin.certify(T).failed] == ["baskets"]
    twin = deepcopy(model)
    twin.itemsets_.count = model.itemsets_.count[:-1]
    assert [check.name for check in twin.certify(T).failed] == ["sets"]
    twin = deepcopy(model)
    twin.itemsets_ = without(model.itemsets_, last)
    assert [check.name for check in twin.certify(T).failed] == ["border"]
    twin.itemsets_ = model.itemsets_.take(model.itemsets_.length > 0).take(np.arange(1, last + 1))
    assert "sets" in [check.name for check in twin.certify(T).failed]
    more = Apriori(0.05).fit(T)
    twin.itemsets_ = more.itemsets_  # sets that are not frequent enough
    assert "subsets" in [check.name for check in twin.certify(T).failed]


def test_a_border_that_is_too_long_is_counted_in_part(fit, monkeypatch):
    T, model = fit
    monkeypatch.setattr(certificate, "BORDER", 2)
    monkeypatch.setattr(mining, "SHARE", 4)
    found = model.certify(T)
    assert found.holds
    assert found["border"].kind == "evidence"
    assert found["counts"].kind == "proof"


def test_transform_marks_the_sets_of_each_basket(fit):
    T, model = fit
    marks = model.transform(T)
    for i, basket in enumerate(sets_of(T)):
        assert marks[i].tolist() == [chosen <= basket for chosen in model.itemsets_["itemset"]]
    assert np.array_equal(marks.sum(axis=0), model.itemsets_.count)
    assert model.get_feature_names_out()[0] == "{" + str(model.itemsets_.items[0]) + "}"
    words = Apriori(0.4).fit(FIVE)
    assert words.transform([["a", "zebra"], ["c", "b"]]).tolist() == [[1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 1, 0]]


@pytest.mark.slow_without_jit
def test_giant_baskets_take_no_giant_time():
    rng = np.random.default_rng(0)
    small = [rng.choice(1000, size=rng.integers(2, 9), replace=False).tolist() for _ in range(2000)]
    giant = list(range(0, 1000, 2))
    model = Apriori(2).fit([*small, giant])  # one: what it shares with the small ones
    assert model.certify([*small, giant]).holds
    with pytest.raises(TooManySets, match=r"in at least 2 of 2,002 baskets.*min_support=3 has room") as told:
        Apriori(2, memory_limit=1 << 24).fit([*small, giant, giant])  # two: all 2⁵⁰⁰ subsets
    room = int(str(told.value).split("min_support=")[1].split()[0])
    assert len(Apriori(room, memory_limit=1 << 24).fit([*small, giant, giant]).itemsets_)
    assert Apriori(2, max_length=2).fit([*small, giant, giant]).itemsets_.length.max() == 2


@pytest.mark.parametrize("algorithm", ["depth", "levels"])
def test_more_sets_than_memory_are_said(algorithm):
    T = np.ones((10, 14), dtype=bool)
    with pytest.raises(MemoryError, match="which is all that memory_limit has room for"):
        Apriori(0.5, algorithm=algorithm, memory_limit=80 * 1000).fit(T)


def test_the_support_that_is_named_if_it_is_to_be_exceeded():
    baskets = [range(9), range(9), range(2)]
    with pytest.raises(TooManySets, match=r"in more than 1 of 3 baskets.*min_support=2 has room \(3 sets\)"):
        Apriori(1, strict=True, memory_limit=80 * 100).fit(baskets)
    assert len(frequent_itemsets(baskets, 2, strict=True)) == 3


def test_the_support_that_is_named_of_small_weights():
    """Doubled until there is room, also if all baskets together weigh less than one."""
    T = np.random.default_rng(0).random((40, 14)) < 0.7
    for unit in (1e-3, 0.031, 7.5):
        weight = np.full(40, unit)
        with pytest.raises(TooManySets, match="has room") as told:
            Apriori(0.02, memory_limit=80 * 1000).fit(T, sample_weight=weight)
        room = float(str(told.value).split("min_support=")[1].split()[0])
        found = frequent_itemsets(T, room, sample_weight=weight, memory_limit=80 * 1000)
        assert f"({len(found):,} sets)" in str(told.value)


@pytest.mark.parametrize(
    ("baskets", "options", "told"),
    [
        ([["a"], "milk"], {}, "basket 1 is 'milk'"),
        ([["a"], 3], {}, "basket 1 is 3"),
        ([["a", ["b"]]], {}, "something that a set can hold"),
        ([], {}, "no baskets"),
        (np.array([[1.0, -1.0]]), {}, "Negative values"),
        (np.array([[1.0, np.nan]]), {}, "NaN"),
        (csr_matrix(np.array([[1.0, -1.0]])), {}, "Negative values"),
        ([["a"]], {"columns": ["order", "product"]}, "no column 'order'"),
        (pd.DataFrame({"a": [1]}), {"columns": ["a", "b", "c"]}, "columns names a column of lists"),
        ([["a"]], {"min_support": 1.5}, "min_support"),
        ([["a"]], {"min_support": 0}, "min_support"),
        ([["a"]], {"max_length": 0}, "max_length"),
        ([["a"]], {"min_support": True}, "min_support"),
        ([["a", None]], {}, "leave out what is missing"),
        ([["a", float("nan")]], {}, "leave out what is missing"),
        ([["a", pd.NA]], {}, "leave out what is missing"),
        (pd.DataFrame({"o": [1, 1], "i": ["a", None]}), {"columns": ["o", "i"]}, "Row 1 of the pairs has no item"),
        (pd.DataFrame({"o": [1, 1], "i": [2, np.nan]}), {"columns": ["o", "i"]}, "Row 1 of the pairs has no item"),
        (pd.DataFrame({"o": [1, np.nan], "i": ["a", "a"]}), {"columns": ["o", "i"]}, "Row 1 of the pairs has no basket"),
        (pl.DataFrame({"o": [1, None], "i": ["a", "a"]}), {"columns": ["o", "i"]}, "Row 1 of the pairs has no basket"),
        (pd.DataFrame({"basket": [None, ["a"]]}), {}, "basket 0 is None"),
        ([[0, 1, 1], [1, 0, 0]], {}, "table of zeros and ones"),
        (["ab", "b"], {}, "read as files"),
        (None, {}, "a list of lists of items"),
        ([[7.0, 8.0], [7.0]], {}, "items that are numbers are whole"),
        (pl.DataFrame({"a": [True]}).lazy(), {}, r"collect\(\)"),
        (pl.DataFrame({"a": [["x"]], "b": [["y"]]}), {}, "Columns 'a' and 'b' both hold lists"),
        (pd.DataFrame({"o": [1], "i": [pd.Timedelta(1, "ns")]}), {"columns": ["o", "i"]}, "has nanoseconds"),
        (pd.DataFrame({"order": [1, 1], "item": ["a", "b"]}), {}, r"columns=\[basket, item\]"),
        (pl.DataFrame({"o": [1, 1], "i": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"]))}), {}, r"columns=\[basket, item\]"),
        (pa.array([["a"], ["b"]]), {}, "tables and chunked arrays"),
        (pa.RecordBatch.from_pydict({"a": [True, False]}), {}, r"pa.table\(batch\)"),
        (frequent_itemsets(FIVE, 0.4), {}, "give a list of baskets"),
        (Apriori(), {}, "got Apriori"),
    ],
)
def test_bad_input_gets_a_clear_sentence(baskets, options, told):
    with pytest.raises(ValueError, match=told):
        Apriori(**options).fit(baskets)


def test_weights_are_checked():
    with pytest.raises(ValueError, match="one weight a basket"):
        Apriori().fit([["a"], ["b"]], sample_weight=[1.0])
    with pytest.raises(ValueError, match="weight is zero"):
        Apriori().fit([["a"], ["b"]], sample_weight=[0.0, 0.0])
    for baskets in ([["a"], ["b"]], np.eye(2)):
        with pytest.raises(ValueError, match="more than a number can hold"):
            Apriori().fit(baskets, sample_weight=[1e308, 1e308])
    pairs = pd.DataFrame({"order": [1, 1], "product": ["a", "b"]})
    with pytest.raises(ValueError, match="Pairs take no weights"):
        Apriori(columns=["order", "product"]).fit(pairs, sample_weight=[1.0, 1.0])


def test_a_frame_of_results():
    found = frequent_itemsets(FIVE, 0.4)
    pandas, polars, arrow = found.to_pandas(), found.to_polars(), found.to_arrow()
    assert list(pandas.columns) == polars.columns == arrow.column_names == ["itemset", "support", "count"]
    assert pandas["itemset"].tolist() == [frozenset(items) for items in polars["itemset"].to_list()]
    assert arrow["itemset"].to_pylist() == polars["itemset"].to_list()
    assert pl.DataFrame(found).equals(polars)
    assert found.sort("count")["itemset"][0] in [{"a"}, {"b"}, {"c"}]
    assert len(found.head(2)) == 2
    for wrong in (0, [0.5], ["itemset", "count"]):
        with pytest.raises(ValueError, match="Rows are told by"):
            found[wrong]
    assert "Itemsets: 7 rows" in repr(found)
    assert "<td>{a, b, c}</td>" in found._repr_html_()
    assert "support" in list(found)
    for basket in (["a", 1], [2**70], [np.datetime64("2026-01-31")]):
        with pytest.raises(ValueError, match="Arrow has no type"):
            frequent_itemsets([basket], 1).to_arrow()


def test_saved_and_loaded(tmp_path):
    model = Apriori(0.4).fit(FIVE)
    model.save(tmp_path / "model.lemmata")
    twin = lemmata.load(tmp_path / "model.lemmata")
    assert by_set(twin.itemsets_) == by_set(model.itemsets_)
    assert twin.certify(FIVE).holds
