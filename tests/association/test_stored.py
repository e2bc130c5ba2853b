"""Baskets that are stored: Parquet in three forms and Dask give what the same baskets in memory give."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lemmata
from association.naive import by_set, table
from lemmata.association import Apriori, frequent_itemsets, stored
from lemmata.association.baskets import of_lists
from lemmata.association.partition import Candidates, frequent_in_parts, mine_block, threshold


@pytest.fixture(scope="module")
def baskets():
    rng = np.random.default_rng(0)
    words = np.array(["jam", "tea", "milk", "rice", "salt", "oil", "soap", "yeast", "ink", "bread"])
    popular = np.repeat(rng.beta(1, 3, (4, 10)), 100, axis=0)  # parts that differ: what is frequent here is rare there
    return [words[row].tolist() for row in rng.random((400, 10)) < popular]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(stored, "ENTRIES", 60)
    monkeypatch.setattr(stored, "BATCH", 7)


def lists_file(path, baskets, kind=None):
    pq.write_table(pa.table({"n": range(len(baskets)), "basket": pa.array(baskets, kind)}), path, row_group_size=50)
    return path


@pytest.mark.parametrize("support", [0.02, 0.1, 0.3, 5])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.usefixtures("small_parts")
def test_a_column_of_lists(baskets, tmp_path, support, strict):
    path = lists_file(tmp_path / "baskets.parquet", baskets)
    model = Apriori(support, strict=strict).fit(path)
    expected = Apriori(support, strict=strict).fit(baskets)
    assert by_set(model.itemsets_) == by_set(expected.itemsets_)
    assert model.itemsets_.indices.tobytes() == expected.itemsets_.indices.tobytes()
    assert model.itemsets_.n_baskets == 400
    certificate = model.certify(path)
    assert certificate.holds
    assert certificate.kind == "proof"
    assert model.certify(baskets).holds


@pytest.mark.usefixtures("small_parts")
def test_pairs_sorted_by_basket_and_several_files(baskets, tmp_path):
    baskets = [basket for basket in baskets if basket]
    pairs = pd.DataFrame([(i, item) for i, basket in enumerate(baskets) for item in basket], columns=["order", "product"])
    half = len(pairs) // 2 + 1  # in the middle of a basket, perhaps
    for name, part in (("a", pairs[:half]), ("b", pairs[half:])):
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), tmp_path / f"{name}.parquet")
    model = Apriori(0.1, columns=["order", "product"]).fit(tmp_path)
    assert by_set(model.itemsets_) == by_set(frequent_itemsets(baskets, 0.1))
    assert model.itemsets_.n_baskets == len(baskets)
    assert model.certify(tmp_path).holds
    pq.write_table(pa.Table.from_pandas(pairs.sample(frac=1, random_state=0), preserve_index=False), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="sort the rows by 'order'"):
        model.fit(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"holds text: for pairs name the columns, columns=\[basket, item\]"):
        Apriori(0.1).fit(tmp_path / "a.parquet")


@pytest.mark.usefixtures("small_parts")
def test_lists_on_dask(baskets):
    with dask.config.set({"dataframe.convert-string": False}):  # lists are no text
        series = dd.from_pandas(pd.Series(baskets), npartitions=5)
    expected = by_set(frequent_itemsets(baskets, 0.1))
    model = Apriori(0.1).fit(series)
    assert by_set(model.itemsets_) == expected
    assert model.certify(series).holds
    with pytest.raises(ValueError, match="turned the lists into text"):
        Apriori(0.1).fit(dd.from_pandas(pd.Series(baskets), npartitions=2))
    frame = series.to_frame("basket")
    assert by_set(Apriori(0.1, columns="basket").fit(frame).itemsets_) == expected


def test_a_table_on_dask():
    T = table(9)
    frame = dd.from_pandas(pd.DataFrame(T, columns=list("abcdefgh")), npartitions=3)
    model = Apriori(0.1).fit(frame)
    expected = {frozenset("abcdefgh"[j] for j in chosen): n for chosen, n in by_set(frequent_itemsets(T, 0.1)).items()}
    assert by_set(model.itemsets_) == expected
    assert model.certify(frame).holds


@pytest.mark.parametrize("stored_fit", [False, True])
def test_a_fit_to_lists_is_checked_against_a_stored_table(tmp_path, stored_fit):
    frame = pd.DataFrame(table(4), columns=list("hgfedcba"))
    lists = [frame.columns[row].tolist() for row in frame.to_numpy()]
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "table.parquet")
    model = Apriori(0.1).fit(lists_file(tmp_path / "lists.parquet", lists) if stored_fit else lists)
    for form in (tmp_path / "table.parquet", dd.from_pandas(frame, npartitions=3)):
        assert model.certify(form).holds
        assert np.array_equal(np.asarray(model.transform(form)).sum(axis=0), model.itemsets_.count)
    assert not hasattr(model, "n_features_in_")


def test_numbers_as_items(baskets, tmp_path):
    numbers = [[len(item) for item in basket] for basket in baskets]
    path = lists_file(tmp_path / "numbers.parquet", numbers)
    assert by_set(frequent_itemsets(path, 0.1)) == by_set(frequent_itemsets(numbers, 0.1))
    path = lists_file(tmp_path / "words.parquet", baskets, pa.large_list(pa.large_string()))
    assert by_set(frequent_itemsets(path, 0.1)) == by_set(frequent_itemsets(baskets, 0.1))


@pytest.mark.parametrize("seed", range(20))
def test_two_passes_miss_nothing(seed):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(int(rng.integers(1, 7))):
        T = rng.random((int(rng.integers(1, 30)), 6)) < rng.random(6)
        parts.append([np.flatnonzero(row).tolist() for row in T])
    weighted = seed % 2 == 1
    weights = [rng.random(len(part)) if weighted else np.empty(0) for part in parts]

    class InParts:
        def reduce(self, kernel, *params):
            found = [kernel(of_lists(part, w), *params) for part, w in zip(parts, weights, strict=True)]
            total = found[0]
            for other in found[1:]:
                total = total + other
            return total

    share = float(rng.uniform(0.05, 0.6))
    names, found, candidates = frequent_in_parts(InParts(), share, False, longest=99, memory=1 << 30, algorithm="depth")
    everything = [basket for part in parts for basket in part]
    model = Apriori(share).fit(everything, sample_weight=np.concatenate(weights) if weighted else None)
    assert names.tolist() == model.itemsets_.items.tolist()
    assert np.array_equal(found.trie.last, model.itemsets_.indices[model.itemsets_.indptr[1:] - 1])
    np.testing.assert_allclose(found.support, model.itemsets_.count, rtol=1e-12)  # sums in another order
    exact = dict(zip(model.itemsets_["itemset"], model.itemsets_.count, strict=True))
    assert candidates.total == pytest.approx(sum(w.sum() for w in weights) if weighted else len(everything), rel=1e-14)
    assert (candidates.counted <= candidates.bound * (1 + 1e-12)).all()
    assert max(exact.values(), default=0) <= candidates.bound.max(initial=0) * (1 + 1e-12)


def test_the_sum_of_candidates_does_not_depend_on_the_order():
    parts = [of_lists([np.flatnonzero(row).tolist() for row in table(seed, n=20)]) for seed in range(4)]
    mined = [mine_block(part, 0.2, False, 99, 1 << 30, "depth") for part in parts]
    left, right = ((mined[0] + mined[1]) + mined[2]) + mined[3], mined[3] + (mined[2] + (mined[1] + mined[0]))
    assert isinstance(left, Candidates)
    for name in ("names", "counted", "bound"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert all(np.array_equal(a, b) for a, b in zip(left.trie, right.trie, strict=True))
    assert left.slack == sum(np.ceil(threshold(0.2, False, 20)) - 1 for _ in range(4))


@pytest.mark.parametrize("support", [1, 0.01])
@pytest.mark.parametrize("entries", [60, 400, 10_000])  # parts that have no room, their sum, and all baskets in one
def test_the_support_that_is_named_has_room(baskets, tmp_path, monkeypatch, support, entries):
    monkeypatch.setattr(stored, "ENTRIES", entries)
    monkeypatch.setattr(stored, "BATCH", 7)
    path = lists_file(tmp_path / "a.parquet", baskets)
    with pytest.raises(MemoryError, match=r"More than 150 sets .* has room; or set max_length") as told:
        Apriori(support, memory_limit=80 * 150).fit(path)
    named = float(str(told.value).split("min_support=")[1].split()[0])
    found = Apriori(named, memory_limit=80 * 150).fit(path).itemsets_
    assert by_set(found) == by_set(frequent_itemsets(baskets, named))
    with pytest.raises(MemoryError, match=r"has room for. Set max_length, or raise memory_limit."):
        Apriori(0.5, memory_limit=80 * 20).fit(lists_file(tmp_path / "b.parquet", [list(range(9))] * 200))


def test_a_rest_of_few_baskets_is_no_part(tmp_path, monkeypatch):
    """Alone, the basket of 35 items at the end would be a part in which all of its 2³⁵ subsets are frequent."""
    monkeypatch.setattr(stored, "ENTRIES", 100)
    monkeypatch.setattr(stored, "BATCH", 10)
    baskets = [[f"item {i}", f"item {i + 1}"] for i in range(30)] * 10 + [[f"item {i}" for i in range(35)]]
    path = lists_file(tmp_path / "lists.parquet", baskets)
    model = Apriori(0.03, memory_limit=80 * 1000).fit(path)
    assert by_set(model.itemsets_) == by_set(frequent_itemsets(baskets, 0.03))
    assert model.certify(path).holds
    table = np.zeros((33, 35), dtype=bool)
    table[:32, :2] = table[32] = True
    frame = pd.DataFrame(table, columns=[f"item {i}" for i in range(35)])
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "table.parquet")
    with lemmata.config(block_rows=16):
        model = Apriori(0.1, memory_limit=80 * 1000).fit(tmp_path / "table.parquet")
    assert by_set(model.itemsets_) == by_set(frequent_itemsets(frame, 0.1))


def test_parts_show_their_progress(baskets, tmp_path, capsys):
    path = lists_file(tmp_path / "a.parquet", baskets)
    Apriori(0.1).fit(path)
    assert not capsys.readouterr().err
    Apriori(0.1, verbose=1).fit(path)
    assert "parts mined: 1" in capsys.readouterr().err


def test_lists_of_categories(baskets, tmp_path):
    path = lists_file(tmp_path / "a.parquet", baskets, pa.list_(pa.dictionary(pa.int32(), pa.string())))
    assert by_set(frequent_itemsets(path, 0.1)) == by_set(frequent_itemsets(baskets, 0.1))


def test_lists_of_a_fixed_size(tmp_path):
    path = lists_file(tmp_path / "a.parquet", [["a", "b"], ["a", "c"]], pa.list_(pa.string(), 2))
    assert by_set(frequent_itemsets(path, 2)) == {frozenset("a"): 2}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"basket": [["tea", None], ["milk"]]}, "item that is missing"),
        ({"basket": [[1.5, np.nan], [1.5]]}, "item that is missing"),
        ({"basket": [["tea"], None]}, "A basket is missing"),
        ({"basket": [[{"name": "tea"}]]}, "Items must be text or numbers, .* struct"),
        ({"order": [1, None, None], "product": ["tea", "jam", "tea"]}, "leave out the rows in which 'order' is missing"),
        ({"order": [1, 2, 2], "product": ["tea", None, "tea"]}, "item that is missing"),
        ({"order": [1.0, np.nan, 2.0], "product": ["tea", "jam", "tea"]}, "leave out the rows in which 'order' is missing"),
    ],
)
def test_what_is_missing_in_files_is_said(columns, told, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=told):
        Apriori(columns=list(columns)).fit(tmp_path / "a.parquet")


def test_items_without_an_order_in_parts_are_refused(tmp_path):
    for name, items in (("a", [["tea"]]), ("b", [[7]])):
        lists_file(tmp_path / f"{name}.parquet", items)
    with pytest.raises(ValueError, match="all text, or all numbers"):
        Apriori().fit(tmp_path)
    with dask.config.set({"dataframe.convert-string": False}):
        series = dd.from_pandas(pd.Series([[frozenset("ab")], [frozenset("c")]]), npartitions=2)
    with pytest.raises(ValueError, match="which sets have not"):
        Apriori().fit(series)


def test_bad_files_get_a_clear_sentence(tmp_path):
    path = lists_file(tmp_path / "a.parquet", [["tea"], ["milk"]])
    with pytest.raises(ValueError, match="no column 'order'"):
        Apriori(columns=["order", "product"]).fit(path)
    with pytest.raises(ValueError, match="holds no lists but int64"):
        Apriori(columns="n").fit(path)
    pq.write_table(pa.table({"a": [["tea"]], "b": [["tea"]]}), tmp_path / "two.parquet")
    with pytest.raises(ValueError, match="both hold lists"):
        Apriori().fit(tmp_path / "two.parquet")
    with pytest.raises(ValueError, match="take no weights"):
        Apriori().fit(path, sample_weight="n")
    with pytest.raises(FileNotFoundError, match="no file"):
        Apriori().fit(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="no baskets"):
        Apriori().fit(lists_file(tmp_path / "b.parquet", [], pa.list_(pa.string())))
    pq.write_table(pa.table({"tea": pa.array([], pa.bool_())}), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="no baskets"):
        Apriori().fit(tmp_path / "c.parquet")
    with dask.config.set({"dataframe.convert-string": False}):
        series = dd.from_pandas(pd.Series([["tea"], ["milk"]]), npartitions=2)
    for support in (1, 0.1):
        with pytest.raises(ValueError, match="no baskets"):
            Apriori(support).fit(series[series.index > 1])
    with pytest.raises(ValueError, match="no baskets"):
        Apriori().fit([["tea"]]).certify(series[series.index > 1])


def test_parts_of_small_and_of_large_numbers(tmp_path):
    large = 2**63 + 5
    for name, items in (("a", [[3, 4], [4]]), ("b", [[3, large], [large]])):
        lists_file(tmp_path / f"{name}.parquet", items, pa.list_(pa.uint64()))
    expected = {frozenset([4]): 2, frozenset([3]): 2, frozenset([large]): 2}
    assert by_set(Apriori(2).fit(tmp_path).itemsets_) == expected
    views = pa.array([["tea", "jam"], ["tea"]], pa.list_(pa.string_view()))
    pq.write_table(pa.table({"basket": views}), tmp_path / "view.parquet")
    assert by_set(frequent_itemsets(tmp_path / "view.parquet", 2)) == {frozenset(["tea"]): 2}


def test_a_column_of_lists_is_found_beside_text(baskets, tmp_path):
    lists = [sorted(map(str, basket)) for basket in baskets]
    frame = pa.table({"customer": [f"c{i}" for i in range(len(lists))], "basket": lists})
    pq.write_table(frame, tmp_path / "a.parquet")
    expected = by_set(frequent_itemsets(lists, 0.1))
    for form in (frame, tmp_path / "a.parquet"):
        assert by_set(frequent_itemsets(form, 0.1)) == expected
