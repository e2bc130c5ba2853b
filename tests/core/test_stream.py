"""Streams: Parquet files and iterators of blocks give the bits of the array they hold, a few blocks at a time."""

import contextlib
import gc
import itertools
import threading
import time
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import lemmata
from helpers import bits, failing_block, lengths_block, rough, rows_of, verbs
from lemmata.association import Apriori
from lemmata.cluster import KMeans
from lemmata.core.blocks import Blocks
from lemmata.core.stream import AHEAD, read_ahead, recut
from lemmata.linear_model import LinearRegression, Ridge

ROWS, CUT = 1003, 100
NAMES = ["a", "b", "c"]
PATIENCE = 10.0  # seconds to wait for a thread on a busy machine before it counts as lost


@pytest.fixture(scope="module")
def table():
    return rough(0, ROWS, 3), rough(1, ROWS), np.random.default_rng(2).random(ROWS)


@pytest.fixture(scope="module")
def arrow(table):
    X, y, weight = table
    text = [f"row {i}" for i in range(ROWS)]
    return pa.table({"a": X[:, 0], "y": y, "b": X[:, 1], "note": text, "c": X[:, 2], "w": weight})


def one_file(arrow, folder):
    pq.write_table(arrow, folder / "all.parquet")
    return folder / "all.parquet"


def odd_row_groups(arrow, folder):
    with pq.ParquetWriter(folder / "odd.parquet", arrow.schema) as writer:
        start = 0
        for n in (1, 7, 350, 2, 99, 100, 101, ROWS):
            writer.write_table(arrow.slice(start, n))
            start += n
    return str(folder / "odd.parquet")


def many_files(arrow, folder):
    cuts = [0, 400, 400, 401, 950, ROWS]  # one file is empty
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(arrow.slice(start, stop - start), folder / f"part-{i}.parquet", row_group_size=37)
    return [folder / f"part-{i}.parquet" for i in range(5)]


def one_folder(arrow, folder):
    (folder / "deep").mkdir()
    for i, file in enumerate(many_files(arrow, folder)):
        file.rename(folder / "deep" / f"{i}.parquet")
    (folder / "deep" / "_SUCCESS").touch()  # what Spark leaves behind
    return folder


PARQUET = [one_file, odd_row_groups, many_files, one_folder]


def readers():
    return [t for t in threading.enumerate() if t is not threading.main_thread() and "read" in t.name]


@contextlib.contextmanager
def no_thread_left():
    """Fail unless every reader thread that began inside has ended, without any help of the garbage collector."""
    before = set(readers())
    gc.disable()
    try:
        yield
        assert set(readers()) <= before
    finally:
        gc.enable()


# The bits of the array.


@pytest.mark.parametrize("store", PARQUET)
def test_parquet_gives_the_bits_of_the_array(tmp_path, table, arrow, store):
    source = store(arrow, tmp_path)
    expected = verbs(Blocks.of(*table, block_rows=CUT), 3)
    blocks = Blocks.of(source, "y", "w", block_rows=CUT, columns=NAMES)
    assert (blocks.home, blocks.columns, blocks.dtype) == ("stream", NAMES, np.float64)
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            assert verbs(blocks, 3) == expected


def test_the_default_cut_is_that_of_the_array(tmp_path):
    X = np.arange(10000.0).reshape(-1, 200)  # 2048 rows a block at most
    X = np.vstack([X] * 60)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(200)}), tmp_path / "x.parquet")
    lengths = Blocks.of(tmp_path / "x.parquet").map(lengths_block)
    assert bits(lengths) == bits(Blocks.of(X).map(lengths_block))
    assert len(set(lengths)) == 2


@pytest.mark.parametrize("n_aligned", [0, 1, 2])
@pytest.mark.parametrize("cuts", [[ROWS], [1, 2, 500, 501], [300, 300, 700], []])
def test_an_iterator_gives_the_bits_of_the_array(table, cuts, n_aligned):
    arrays = table[: 1 + n_aligned]

    def factory():
        for start, stop in zip([0, *cuts], [*cuts, ROWS], strict=True):
            part = tuple(a[start:stop] for a in arrays)
            yield part if n_aligned else part[0]  # a bare array will do

    absent = [None] * 2
    blocks = Blocks.of(factory, *absent, block_rows=CUT)
    reference = Blocks.of(*arrays, *absent[n_aligned:], block_rows=CUT)
    assert bits(blocks.map(lambda X, y, w: X)) == bits(reference.map(lambda X, y, w: X))
    assert bits(blocks.take(np.arange(5, ROWS, 7))) == bits(reference.take(np.arange(5, ROWS, 7)))
    if n_aligned == 2:
        assert verbs(blocks, 3) == verbs(reference, 3)


def test_blocks_of_an_iterator_stay_unless_a_cut_is_asked_for(table):
    cuts = [3, 100, 900]
    blocks = Blocks.of(lambda: iter(np.split(table[0], cuts)))
    lengths = [3, 97, 800, 103]
    assert blocks.map(lengths_block).tolist() == np.repeat(lengths, lengths).tolist()
    assert (blocks.n_blocks, blocks.n_rows, blocks.n_columns) == (4, ROWS, 3)


@pytest.mark.parametrize("make", [sp.csr_array, pd.DataFrame, lambda X: X.astype(np.float32), lambda X: X.tolist()])
def test_an_iterator_may_give_any_kind_of_table(make):
    X = np.random.default_rng(0).integers(-2, 3, (50, 3)).astype(float)
    blocks = Blocks.of(lambda: (make(part) for part in np.split(X, [7, 30])), block_rows=8)
    np.testing.assert_array_equal(blocks.map(lambda X: X.toarray() if sp.issparse(X) else X), X)
    assert blocks.dtype == (np.float32 if getattr(make(X), "dtype", None) == np.float32 else np.float64)


@settings(deadline=None, max_examples=100)
@given(lengths=st.lists(st.integers(0, 9), max_size=12), rows=st.integers(1, 10))
def test_recut_keeps_rows_and_makes_equal_blocks(lengths, rows):
    numbers = iter(range(sum(lengths)))
    parts = [np.array([next(numbers) for _ in range(n)], dtype=float)[:, None] for n in lengths]
    again = list(recut(((p, None, p[:, 0]) for p in parts), rows))
    assert [len(block[0]) for block in again[:-1]] == [rows] * (len(again) - 1)
    assert all(0 < len(block[0]) <= rows and block[1] is None for block in again)
    assert [x for block in again for x in block[2]] == list(range(sum(lengths)))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_estimators_give_the_bits_of_the_array(tmp_path, table, n_threads):
    X, y, weight = np.cbrt(table[0]), np.cbrt(table[1]), table[2]  # rough sums, but no row that drowns the others
    columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"w": weight}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=77)
    pq.write_table(pa.table(columns | {"y": y}), tmp_path / "xy.parquet", row_group_size=77)
    with lemmata.config(n_threads=n_threads, block_rows=CUT):
        for make in (LinearRegression, Ridge):
            stored, memory = make().fit(tmp_path / "xy.parquet", "y", "w"), make().fit(X, y, weight)
            assert bits((stored.coef_, stored.intercept_)) == bits((memory.coef_, memory.intercept_))
        stored = KMeans(4, random_state=0).fit(tmp_path / "x.parquet", sample_weight="w")
        memory = KMeans(4, random_state=0).fit(X, sample_weight=weight)
        for name in ("cluster_centers_", "labels_", "inertia_", "trace_"):
            assert bits(getattr(stored, name)) == bits(getattr(memory, name))


# What is read.


def test_only_the_columns_that_are_needed_are_read(tmp_path, table, arrow, monkeypatch):
    asked, own = [], pq.ParquetFile.iter_batches

    def observed(self, *args, **kwargs):
        asked.append(kwargs["columns"])
        return own(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", observed)
    blocks = Blocks.of(one_file(arrow, tmp_path), "y", None, columns=["c", "a"])  # the column of text is not among them
    X, y, nothing = blocks.take(np.arange(ROWS))
    assert bits(X) == bits(table[0][:, [2, 0]].copy())
    assert bits(y) == bits(table[1])
    assert nothing is None
    assert asked == [["c", "a", "y"]]


def test_target_and_weight_are_not_among_the_columns(tmp_path, arrow):
    blocks = Blocks.of(one_file(arrow.drop_columns(["note"]), tmp_path), "y", "w")
    assert blocks.columns == NAMES


def test_a_file_that_is_none_or_was_cut_is_named(tmp_path):
    (tmp_path / "x.parquet").write_text("a,b\n1,2\n")
    pq.write_table(pa.table({"a": np.arange(1000)}), tmp_path / "y.parquet")
    (tmp_path / "y.parquet").write_bytes((tmp_path / "y.parquet").read_bytes()[:-100])
    for name in ("x.parquet", "y.parquet"):
        for fit in (lambda path: Blocks.of(path), lambda path: Apriori().fit(path)):
            with pytest.raises(ValueError, match=f"{name} cannot be read as Parquet"):
                fit(tmp_path / name)


def test_types_of_columns(tmp_path):
    kinds = {"i": pa.int8(), "u": pa.uint32(), "f": pa.float32(), "h": pa.float16(), "b": pa.bool_()}
    source = pa.table({name: pa.array(np.array([0, 1, 1]), type=pa.int64()).cast(kind) for name, kind in kinds.items()})
    pq.write_table(source, tmp_path / "x.parquet")
    blocks = Blocks.of(tmp_path / "x.parquet")
    assert blocks.dtype == np.float64
    np.testing.assert_array_equal(blocks.map(rows_of), np.repeat([[0.0], [1.0], [1.0]], 5, axis=1))
    single = Blocks.of(tmp_path / "x.parquet", columns=["f"])
    assert single.dtype == single.first()[0].dtype == np.float32


def test_one_file_of_doubles_makes_all_doubles(tmp_path):
    for i, kind in enumerate([pa.float32(), pa.float64(), pa.float32()]):
        pq.write_table(pa.table({"a": pa.array([0.1], kind)}), tmp_path / f"{i}.parquet")
    single = float(np.float32(0.1))
    for files, values in (([0, 1], [single, 0.1]), ([1, 2], [0.1, single])):
        blocks = Blocks.of([tmp_path / f"{i}.parquet" for i in files])
        assert blocks.dtype == np.float64
        assert blocks.map(rows_of)[:, 0].tolist() == values
    assert Blocks.of([tmp_path / "0.parquet", tmp_path / "2.parquet"]).dtype == np.float32


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.bool_()])
def test_a_null_is_nan_and_refused_by_the_number_of_its_row(tmp_path, kind):
    column = pa.array([1] * 250 + [None] + [0] * 49).cast(kind)
    pq.write_table(pa.table({"a": np.ones(300), "b": column, "y": np.arange(300.0)}), tmp_path / "x.parquet", row_group_size=70)
    X = Blocks.of(tmp_path / "x.parquet", columns=["a", "b"], block_rows=60).map(rows_of)
    assert np.argwhere(np.isnan(X)).tolist() == [[250, 1]]
    with lemmata.config(block_rows=60), pytest.raises(ValueError, match="Input X contains NaN in row 250"):
        LinearRegression().fit(tmp_path / "x.parquet", "y")


@pytest.mark.parametrize("bad", [None, np.inf, -np.inf])
def test_a_bad_target_is_refused_by_the_number_of_its_row(tmp_path, bad):
    y = pa.array([*np.arange(120.0), bad, 1.0])
    pq.write_table(pa.table({"a": np.arange(122.0) ** 2, "y": y}), tmp_path / "x.parquet")
    kind = "NaN" if bad is None else "infinity"
    with lemmata.config(block_rows=50), pytest.raises(ValueError, match=f"y or sample_weight contains {kind} in row 120"):
        LinearRegression().fit(tmp_path / "x.parquet", "y")
    with pytest.raises(ValueError, match=f"y or sample_weight contains {kind} in row 120"):
        KMeans(2).fit(tmp_path / "x.parquet", sample_weight="y")


@pytest.mark.parametrize("cut", [CUT, None])
def test_rows_of_weight_zero_are_left_out_before_blocks_are_cut(tmp_path, table, cut):
    X, y, _ = table
    weight = np.where(np.arange(ROWS) % 3 > 0, 2.0, 0.0)
    weight[: CUT + 1] = 0.0  # a whole block and more
    wild, there = np.where(weight[:, None] > 0, X, np.nan), weight > 0
    pq.write_table(
        pa.table(dict(zip(NAMES, wild.T, strict=True)) | {"y": np.where(there, y, np.inf), "w": weight}), tmp_path / "x"
    )
    parquet = Blocks.of(tmp_path / "x", "y", "w", block_rows=CUT, allow_nan=False, weighted=True)

    def factory():
        return (tuple(a[i : i + CUT] for a in (wild, y, weight)) for i in range(0, ROWS, CUT))

    iterator = Blocks.of(factory, None, None, block_rows=cut, allow_nan=False, weighted=True)
    memory = Blocks.of(X[there], y[there], weight[there], block_rows=CUT)
    for blocks in (parquet, iterator):
        assert (blocks.n_rows, blocks.n_table, blocks.complete) == (there.sum(), ROWS, False)
        assert bits(blocks.numbers()) == bits(np.flatnonzero(there))
        assert bits(blocks.map(rows_of)) == bits(X[there])
    assert verbs(parquet, 3) == verbs(memory, 3)
    assert cut is None or verbs(iterator, 3) == verbs(memory, 3)
    assert iterator.n_blocks == (memory.n_blocks if cut else 10)  # of 11 parts the first has no row left


def test_a_bad_row_has_its_number_in_the_table_also_where_others_are_left_out(tmp_path):
    x, w = np.arange(120.0), np.ones(120)
    x[[7, 90]], w[:30] = np.nan, 0.0
    pq.write_table(pa.table({"a": x, "y": x, "w": w}), tmp_path / "x.parquet")
    with lemmata.config(block_rows=50), pytest.raises(ValueError, match="Input X contains NaN in row 90;"):
        LinearRegression().fit(tmp_path / "x.parquet", "y", sample_weight="w")


def test_stored_weights_that_are_all_zero_or_negative_are_refused(tmp_path):
    for w, message in ((np.zeros(9), "Every sample weight is zero"), (-np.ones(9), "Negative values in sample_weight")):
        pq.write_table(pa.table({"a": np.arange(9.0), "w": w}), tmp_path / "x.parquet")
        with pytest.raises(ValueError, match=message):
            KMeans(2).fit(tmp_path / "x.parquet", sample_weight="w")
        with pytest.raises(ValueError, match=message):
            KMeans(2).fit(lambda w=w: iter([(np.arange(9.0)[:, None], w)]))


def test_what_is_said_of_rows_is_said_of_those_of_weight_zero_too():
    X, w = np.arange(20.0)[:, None] // 10, np.arange(20.0) % 2

    def parts():
        return ((X[i : i + 5], w[i : i + 5]) for i in range(0, 20, 5))

    model = KMeans(2, random_state=0).fit(parts)
    assert model.labels_.shape == (20,)
    assert np.array_equal(model.predict(parts), model.labels_)


# Reading ahead.


def test_read_ahead_gives_all_in_order():
    assert list(read_ahead(iter(range(1000)), 3)) == list(range(1000))
    assert list(read_ahead(iter(()), 3)) == []


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_read_ahead_stays_within_its_depth(depth):
    produced = []

    def source():
        for i in range(100):
            produced.append(i)
            yield i

    ahead = read_ahead(source(), depth)
    for used in range(1, 11):
        assert next(ahead) == used - 1
        deadline = time.monotonic() + PATIENCE
        while len(produced) < used + depth and time.monotonic() < deadline:
            time.sleep(1e-3)
        time.sleep(0.01)  # enough for a reader that goes too far to do so
        assert len(produced) == used + depth
    ahead.close()


def test_read_ahead_raises_the_error_of_its_source():
    class Broken(Exception):
        pass

    error = Broken("disk on fire")

    def source():
        yield 1
        yield 2
        raise error

    with no_thread_left():
        ahead = read_ahead(source(), 2)
        assert [next(ahead), next(ahead)] == [1, 2]
        with pytest.raises(Broken) as caught:
            next(ahead)
    assert caught.value is error
    assert "source" in [entry.name for entry in caught.traceback]


def test_read_ahead_stops_its_thread_and_its_source_when_abandoned():
    closed = threading.Event()

    def source():
        try:
            while True:
                yield np.zeros(10)
        finally:
            closed.set()

    with no_thread_left():
        ahead = read_ahead(source(), 2)
        next(ahead)
        assert readers()
        started = time.monotonic()
        del ahead
        assert time.monotonic() - started < PATIENCE
    gc.collect()
    assert closed.is_set()


def test_no_pass_leaves_a_thread_behind(tmp_path, arrow):
    blocks = Blocks.of(one_file(arrow, tmp_path), columns=NAMES, block_rows=10)

    kept = None
    with no_thread_left():
        blocks.first()
        blocks.take(np.array([3]))
        try:
            blocks.reduce(failing_block)
        except ZeroDivisionError as error:
            kept = error  # as an interactive session does, whose traceback then holds every frame
    assert kept is not None


@pytest.mark.parametrize("n_threads", [1, 2])
def test_few_blocks_are_in_memory_at_a_time(n_threads):
    made, most = [], 0

    def factory():
        for _ in range(60):
            block = np.ones((100, 2))
            made.append(weakref.ref(block))
            yield block

    def kernel(X):
        nonlocal most
        time.sleep(1e-3)
        most = max(most, sum(block() is not None for block in made))
        return X.sum()

    blocks = Blocks.of(factory)
    with lemmata.config(n_threads=n_threads):
        assert blocks.reduce(kernel) == 60 * 200
    assert AHEAD < most <= AHEAD + n_threads + 1  # waiting, at work, and one that a thread is about to give up


# Refusals.


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.parquet"):
        Blocks.of(tmp_path / "nowhere.parquet")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*b\.parquet"):
        Blocks.of([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"There is no \.parquet file in the folder .*empty"):
        Blocks.of(tmp_path / "empty")


@pytest.mark.parametrize("arguments", [{"aligned": "price"}, {"columns": ["a", "price"]}])
def test_an_unknown_column_is_named_with_those_there_are(tmp_path, arrow, arguments):
    source = one_file(arrow.drop_columns(["note"]), tmp_path)
    with pytest.raises(ValueError, match=r"no column 'price' in all\.parquet; it has a, y, b, c, w"):
        Blocks.of(source, *([arguments["aligned"]] if "aligned" in arguments else []), columns=arguments.get("columns"))


def test_every_file_must_have_the_columns(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "b": [1.0]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"no column 'b' in 1\.parquet; it has a"):
        Blocks.of(tmp_path)
    pq.write_table(pa.table({"a": [1.0], "b": ["one"]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match="Column 'b' holds string, not numbers"):
        Blocks.of(tmp_path)


def test_a_column_of_text_is_named(tmp_path, arrow):
    with pytest.raises(ValueError, match="Column 'note' holds string, not numbers"):
        Blocks.of(one_file(arrow, tmp_path), "y")
    with pytest.raises(ValueError, match="Column 'note' holds string, not numbers"):
        Blocks.of(one_file(arrow, tmp_path), "note", columns=NAMES)


def test_values_beside_a_file_are_refused(tmp_path, arrow, table):
    with pytest.raises(ValueError, match="name the column of the target"):
        Blocks.of(one_file(arrow, tmp_path), table[1], columns=NAMES)


def test_no_rows_in_a_file(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="Found no rows"):
        Blocks.of(tmp_path / "x.parquet").reduce(lambda X: X.sum())


@pytest.mark.parametrize("parts", [[], [np.empty((0, 2))]])
def test_no_rows_in_an_iterator(parts):
    with pytest.raises(ValueError, match="The iterator gave no block"):
        Blocks.of(lambda: iter(parts))


def test_an_iterator_that_can_be_used_only_once(table):
    once = iter([table[0], table[0]])
    with pytest.raises(ValueError, match="Found no rows"):
        Blocks.of(lambda: once).reduce(lambda X: X.sum())


def test_blocks_of_an_iterator_must_fit_together(table):
    X, y, weight = table
    with pytest.raises(ValueError, match="a block of 3 columns and then one of 2"):
        Blocks.of(lambda: iter([X, X[:, :2]]))
    with pytest.raises(ValueError, match="Found 1003 rows and 1002 aligned values"):
        Blocks.of(lambda: iter([(X, y[1:])]), None)
    with pytest.raises(ValueError, match="gives 2 arrays beside X, 1 at most"):
        Blocks.of(lambda: iter([(X, y, weight)]), None)
    with pytest.raises(ValueError, match="An iterator brings targets and weights itself"):
        Blocks.of(lambda: iter([X]), y)


def test_an_error_of_the_iterator_reaches_the_caller():
    def factory():
        yield np.ones((3, 1))
        if len(calls) > 2:
            raise OSError("tape torn")

    calls = []
    blocks = Blocks.of(lambda: calls.append(0) or factory())
    with no_thread_left(), pytest.raises(OSError, match="tape torn"):
        blocks.reduce(lambda X: X.sum())
