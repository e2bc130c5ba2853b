"""Blocks in memory: every kind of table, the same sums in every order of arrival, and clear refusals."""

import functools
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import lemmata
from helpers import bits, lengths_block, moments_block, pairwise, rough, rows_block, rows_of, squared, verbs, visits_block
from lemmata.core.blocks import Blocks, Tree, add

ROWS, COLUMNS, CUT = 103, 3, 10  # the last block is shorter
SUM_RTOL = 1e-12  # a hundred well-scaled terms lose no more than 100 roundings


def dense(X, *aligned):
    return X.toarray()


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    return rng.standard_normal((ROWS, COLUMNS)), rng.standard_normal(ROWS), rng.random(ROWS)


# What may be cut.

SMALL = np.array([[1.0, 2.0, -3.0], [0.0, 5.0, 0.0], [7.0, 0.0, 9.0], [-2.0, 4.0, 8.0], [6.0, -6.0, 1.0]])


def memory_map(tmp_path):
    np.save(tmp_path / "x.npy", SMALL)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def read_only(tmp_path):
    X = SMALL.copy()
    X.flags.writeable = False
    return X


COLUMN_DICT = {name: SMALL[:, j] for j, name in enumerate("abc")}
DENSE = {
    "C": lambda _: SMALL.copy(),
    "Fortran": lambda _: np.asfortranarray(SMALL),
    "strided": lambda _: np.repeat(np.repeat(SMALL, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda _: SMALL[::-1].copy()[::-1],
    "memory-mapped": memory_map,
    "read-only": read_only,
    "big-endian": lambda _: SMALL.astype(">f8"),
    "float16": lambda _: SMALL.astype(np.float16),
    "integers": lambda _: SMALL.astype(int),
    "small integers": lambda _: SMALL.astype(np.int8),
    "objects": lambda _: SMALL.astype(object),
    "lists": lambda _: SMALL.tolist(),
    "tuples": lambda _: tuple(map(tuple, SMALL.tolist())),
    "pandas": lambda _: pd.DataFrame(COLUMN_DICT),
    "pandas, numbered columns": lambda _: pd.DataFrame(SMALL),
    "pandas, mixed types": lambda _: pd.DataFrame(COLUMN_DICT).astype({"a": "Int64", "b": "float32"}),
    "Polars": lambda _: pl.DataFrame(COLUMN_DICT),
    "PyArrow": lambda _: pa.table(COLUMN_DICT),
    "PyArrow, chunked": lambda _: pa.concat_tables([pa.table(COLUMN_DICT).slice(0, 2), pa.table(COLUMN_DICT).slice(2)]),
}
SPARSE = {
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "CSR matrix": sp.csr_matrix,
}


@pytest.mark.parametrize("kind", DENSE)
@pytest.mark.parametrize("block_rows", [1, 2, 5, 100])
def test_every_dense_table_becomes_contiguous_floats(tmp_path, kind, block_rows):
    seen = []

    def look(X):
        seen.append((X.flags.c_contiguous, X.dtype.str, X.shape[0] <= block_rows))
        return X

    blocks = Blocks.of(DENSE[kind](tmp_path), block_rows=block_rows)
    assert bits(blocks.map(look)) == bits(SMALL)
    assert set(seen) == {(True, "<f8", True)}
    assert (blocks.n_rows, blocks.n_columns, blocks.n_blocks) == (5, 3, len(seen))
    assert blocks.dtype == np.float64
    assert blocks.home == "memory"


@pytest.mark.parametrize("kind", SPARSE)
def test_every_sparse_table_becomes_rows_of_csr(kind):
    blocks = Blocks.of(SPARSE[kind](SMALL.astype(int)), block_rows=2)
    assert bits(blocks.map(dense)) == bits(SMALL)
    assert blocks.first()[0].format == "csr"
    assert bits(blocks.take(np.array([0, 3]))[0].toarray()) == bits(SMALL[[0, 3]])


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.asfortranarray,
        sp.csr_array,
        lambda X: pd.DataFrame(X),
        lambda X: pl.DataFrame(X),
        lambda X: pa.table({"a": X[:, 0]}),
    ],
)
def test_single_precision_stays(make):
    X = SMALL.astype(np.float32)
    blocks = Blocks.of(make(X), block_rows=2)
    assert blocks.dtype == np.float32
    assert blocks.first()[0].dtype == np.float32
    assert blocks.take(np.array([1]))[0].dtype == np.float32


def test_booleans_are_zeros_and_ones():
    X = SMALL > 0
    for table in (X, X.tolist(), pd.DataFrame(X), pl.DataFrame(X), pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})):
        assert bits(Blocks.of(table).map(rows_of)) == bits(X.astype(float))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.array([True, None], dtype="boolean"), "c": [0.5, None]}),
        pl.DataFrame({"a": [1, None], "b": [True, None], "c": [0.5, None]}),
        pa.table({"a": [1, None], "b": [True, None], "c": [0.5, None]}),
    ],
    ids=["pandas", "Polars", "PyArrow"],
)
def test_missing_entries_are_nan(frame):
    np.testing.assert_array_equal(Blocks.of(frame).map(rows_of), [[1, 1, 0.5], [np.nan] * 3])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_chosen_by_name_and_in_order(make):
    blocks = Blocks.of(make(COLUMN_DICT | {"text": list("vwxyz")}), columns=["c", "a"])
    assert blocks.columns == ["c", "a"]
    assert bits(blocks.map(rows_of)) == bits(SMALL[:, [2, 0]].copy())


def test_aligned_arrays_are_cut_alongside_and_may_be_absent(table):
    X, y, weight = table
    targets = np.column_stack([y, -y])
    seen = Blocks.of(X, targets, None, weight.tolist(), block_rows=CUT)
    first = seen.first()
    assert first[2] is None
    assert bits(first[1]) == bits(targets[:CUT])
    assert bits(seen.map(lambda X, y, nothing, w: np.column_stack([X, y, w]))) == bits(np.column_stack([X, targets, weight]))
    taken = seen.take(np.array([2, 50]))
    assert (bits(taken[1]), taken[2], bits(taken[3])) == (bits(targets[[2, 50]]), None, bits(weight[[2, 50]]))


# The verbs, against NumPy.


@pytest.mark.parametrize("block_rows", [1, 7, CUT, ROWS, 10 * ROWS])
def test_block_sums_add_up_for_every_cut(table, block_rows):
    X, y, weight = (np.round(8 * a) for a in table)  # sums of small integers are exact, so any cut gives the same
    shift = np.array([1.0, 2.0, 3.0])
    whole = moments_block(X, y, weight, shift)
    for cut in (1, 50, ROWS - 1):
        parts = [moments_block(X[s], y[s], weight[s], shift) for s in (slice(cut), slice(cut, None))]
        assert bits(add(*parts)) == bits(whole)
    assert bits(Blocks.of(X, y, weight, block_rows=block_rows).reduce(moments_block, shift)) == bits(whole)


def test_reduce_equals_numpy(table):
    X, y, weight = table
    shift = np.array([1.0, -2.0, 0.5])
    total, first, second, third = Blocks.of(X, y, weight, block_rows=CUT).reduce(moments_block, shift)
    Z = X - shift
    np.testing.assert_allclose(total, np.sum(weight), rtol=SUM_RTOL)
    np.testing.assert_allclose(first, np.einsum("i,ij->j", weight, Z), rtol=SUM_RTOL)
    np.testing.assert_allclose(second, np.einsum("i,ij,ik->jk", weight, Z, Z), rtol=SUM_RTOL)
    np.testing.assert_allclose(third, np.sum(weight * y), rtol=SUM_RTOL)


def test_reduce_follows_the_tree(table):
    X, y, weight = (a * 10.0 ** np.arange(-50, 53).reshape((-1,) + (1,) * (a.ndim - 1)) for a in table)
    parts = [moments_block(X[s : s + CUT], y[s : s + CUT], weight[s : s + CUT], np.zeros(3)) for s in range(0, ROWS, CUT)]
    assert bits(Blocks.of(X, y, weight, block_rows=CUT).reduce(moments_block, np.zeros(3))) == bits(pairwise(parts, add))


def test_map_keeps_the_order_of_rows(table):
    X, y, weight = table
    sums, signs = Blocks.of(X, y, weight, block_rows=CUT).map(rows_block, np.ones(3))
    assert bits(sums) == bits((X - 1).sum(axis=1))
    assert bits(signs) == bits(np.column_stack([y > 0, weight > 0.5]))


def test_sweep_keeps_the_state_of_each_block(table):
    X, y, weight = table
    blocks = Blocks.of(X, y, weight, block_rows=CUT)
    state = None
    for step, visits in ((1, 1), (10, 11), (100, 111)):
        (counted, total), state = blocks.sweep(visits_block, state, step)
        assert counted == visits * 11
        np.testing.assert_allclose(total, X.sum(axis=0), rtol=SUM_RTOL)
    (counted, _), _ = blocks.sweep(visits_block, None, 1)
    assert counted == 11


def test_take_and_first_are_slices(table):
    X, y, weight = table
    blocks = Blocks.of(X, y, weight, block_rows=CUT)
    assert bits(blocks.first()) == bits((X[:CUT], y[:CUT], weight[:CUT]))
    for rows in (np.array([0]), np.array([5, 9, 10, 11, 102]), np.arange(ROWS)):
        assert bits(blocks.take(rows)) == bits((X[rows], y[rows], weight[rows]))


def test_with_columns_makes_columns_on_the_way(table):
    X, y, weight = table
    blocks = Blocks.of(X, y, weight, block_rows=CUT)
    wide = blocks.with_columns(squared, 6)
    once = np.hstack([X, X**2])
    assert (wide.n_rows, wide.n_columns, wide.columns) == (ROWS, 6, None)
    assert bits(wide.map(rows_of)) == bits(once)
    assert bits(wide.first()) == bits((once[:CUT], y[:CUT], weight[:CUT]))
    assert bits(wide.take(np.array([2, 50]))) == bits((once[[2, 50]], y[[2, 50]], weight[[2, 50]]))
    assert bits(wide.with_columns(squared, 12).map(rows_of)) == bits(np.hstack([once, once**2]))
    assert bits(blocks.map(rows_of)) == bits(X)


def test_with_columns_keeps_the_cut_that_was_asked_for(table):
    wide = Blocks.of(*table, block_rows=CUT).with_columns(squared, 6)
    assert wide.map(lengths_block).tolist() == [CUT] * 100 + [3] * 3
    with lemmata.config(block_rows=CUT):
        wide = Blocks.of(*table).with_columns(squared, 6)
        assert wide.map(lengths_block).tolist() == [CUT] * 100 + [3] * 3


def test_with_columns_cuts_wide_rows_into_shorter_blocks():
    X = np.zeros((3000, 1))
    assert set(Blocks.of(X).map(lengths_block)) == {3000}
    wide = Blocks.of(X).with_columns(lambda X: np.repeat(X, 300, axis=1), 300)
    assert wide.map(lengths_block).max() == Blocks.of(np.zeros((3000, 300))).map(lengths_block).max() < 3000


@settings(deadline=None, max_examples=60)
@given(n=st.integers(1, 40), d=st.integers(1, 4), block_rows=st.integers(1, 50), seed=st.integers(0, 10))
def test_any_shape_in_any_cut(n, d, block_rows, seed):
    X = np.random.default_rng(seed).integers(-3, 4, (n, d)).astype(float)
    blocks = Blocks.of(X, block_rows=block_rows)
    assert bits(blocks.reduce(lambda X: X.sum(axis=0))) == bits(X.sum(axis=0))
    assert bits(blocks.map(rows_of)) == bits(X)
    assert blocks.n_blocks == len(range(0, n, block_rows))


# One order of adding.


def word(a, b):
    """Add as nothing else does: neither order nor grouping can be confused."""
    return f"({a} {b})"


@settings(deadline=None, max_examples=200)
@given(order=st.integers(1, 70).flatmap(lambda n: st.permutations(range(n))))
def test_every_order_of_arrival_gives_one_total(order):
    tree = Tree(word)
    for i in order:
        tree.put(0, i, str(i))
    assert tree.total() == pairwise([str(i) for i in range(len(order))], word)


@pytest.mark.parametrize("n", [1, 2, 31, 64, 77])
def test_arrival_from_many_threads_gives_one_total(n):
    for seed in range(10):
        tree, order = Tree(word), np.random.default_rng(seed).permutation(n)
        barrier = threading.Barrier(4)

        def arrive(numbers, tree=tree, barrier=barrier):
            barrier.wait()
            for i in numbers:
                tree.put(0, int(i), str(i))

        threads = [threading.Thread(target=arrive, args=(order[t::4],)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tree.total() == pairwise([str(i) for i in range(n)], word)


def test_any_number_of_threads_gives_the_same_bits():
    X, y, weight = rough(0, 1000, 5), rough(1, 1000), np.random.default_rng(2).random(1000)

    def slow(*block):
        time.sleep(abs(block[1][0]) % 1e-3)  # blocks finish in another order than they began
        return moments_block(*block)

    blocks = Blocks.of(X, y, weight, block_rows=13)
    results = set()
    for n_threads in (1, 2, 4):
        with lemmata.config(n_threads=n_threads):
            results |= {bits(blocks.reduce(slow, np.zeros(5))) for _ in range(5)}
    assert len(results) == 1
    cuts = [slice(s, s + 13) for s in range(0, 1000, 13)]
    parts = [moments_block(X[s], y[s], weight[s], np.zeros(5)) for s in cuts]
    assert results == {bits(pairwise(parts, add))}
    others = [functools.reduce(add, parts), functools.reduce(add, parts[::-1]), pairwise(parts[::-1], add)]
    assert results.isdisjoint(bits(other) for other in others)  # the data are such that another order shows


def test_every_verb_gives_the_same_bits_for_any_number_of_threads():
    X, y, weight = rough(3, 500, 3), rough(4, 500), np.random.default_rng(5).random(500)
    found = []
    for n_threads in (1, 2, 4):
        with lemmata.config(n_threads=n_threads):
            found.append(verbs(Blocks.of(X, y, weight, block_rows=11), 3))
    assert found[0] == found[1] == found[2]


def test_the_cut_shows_in_the_last_bits():
    """So that the two tests above do not pass for data whose sums are exact."""
    X, y, weight = rough(0, 1000, 5), rough(1, 1000), np.random.default_rng(2).random(1000)
    one, other = (Blocks.of(X, y, weight, block_rows=n).reduce(moments_block, np.zeros(5)) for n in (13, 17))
    assert bits(one) != bits(other)


def test_threads_work_at_the_same_time():
    barrier = threading.Barrier(2, timeout=30)  # broken, and an error, unless two blocks are at work together
    with lemmata.config(n_threads=2):
        assert Blocks.of(np.ones((2, 1)), block_rows=1).reduce(lambda X: barrier.wait() * 0 + 1) == 2


# Refusals.


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize("verb", ["reduce", "map", "sweep"])
def test_a_kernel_error_is_raised_once_and_stops_the_rest(verb, n_threads):
    calls = []

    def fails(X, *rest):
        calls.append(float(X[0, 0]))
        time.sleep(1e-3)
        if X[0, 0] == 3:
            raise ZeroDivisionError("block three")
        return (0, None) if rest else X[:, 0]

    blocks = Blocks.of(np.arange(1000.0)[:, None], block_rows=1)
    with lemmata.config(n_threads=n_threads), pytest.raises(ZeroDivisionError, match="block three") as caught:
        blocks.sweep(fails, None) if verb == "sweep" else getattr(blocks, verb)(fails)
    assert caught.value.__context__ is None
    assert 3.0 in calls
    assert len(calls) <= 4 + 20 * (n_threads - 1)  # helpers finish the block they are at, and may have just begun another
    assert blocks.reduce(lambda X: X.sum()) == 499500  # and nothing is broken afterwards


@pytest.mark.parametrize("n", [0, 4, 6])
def test_aligned_arrays_of_another_length(n):
    with pytest.raises(ValueError, match=f"Found 5 rows and {n} aligned values"):
        Blocks.of(SMALL, np.ones(5), np.ones(n))


@pytest.mark.parametrize("X", [np.empty((0, 3)), sp.csr_array((0, 3)), pd.DataFrame({"a": []}, dtype=float)])
def test_no_rows(X):
    with pytest.raises(ValueError, match="Found no rows"):
        Blocks.of(X)


@pytest.mark.parametrize(
    "X",
    [
        np.ones(3),
        [1.0, 2.0],
        [],
        np.ones((2, 2, 2)),
        np.float64(1.0),
        pd.Series([1.0]),
        pl.Series([1.0]),
        sp.coo_array(np.ones(3)),
    ],
)
def test_tables_have_two_axes(X):
    with pytest.raises(
        ValueError, match=rf"rows and columns, got an array with {np.ndim(X) if not sp.issparse(X) else 1} axes"
    ):
        Blocks.of(X)


WRONG_COLUMNS = {
    "text": ["p", "q"],
    "digits": ["1", "2"],
    "dates": np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ms]"),
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("wrong", WRONG_COLUMNS)
def test_a_column_that_holds_no_numbers_is_named(make, wrong):
    with pytest.raises(ValueError, match=r"Column 'town' holds .*, not numbers"):
        Blocks.of(make({"price": [1.0, 2.0], "town": WRONG_COLUMNS[wrong]}))


@pytest.mark.parametrize(
    "X", [[["a", "b"]], np.array([[1j]]), sp.csr_array([[1j]]), np.array([["2020-01-01"]], dtype="M8[D]"), [[{}]]]
)
def test_an_array_that_holds_no_numbers(X):
    with pytest.raises(ValueError, match="Expected numbers, got an array of"):
        Blocks.of(X)


@pytest.mark.parametrize("block_rows", [0, -1, 2.5, "10"])
def test_block_rows_must_be_a_positive_whole_number(block_rows):
    with pytest.raises(ValueError, match="block_rows must be a whole number of at least 1"):
        Blocks.of(SMALL, block_rows=block_rows)
