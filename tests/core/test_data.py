"""What counts as a table, how it becomes numbers, and which of them are refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from helpers import bits, finished, python
from lemmata.core.data import as_matrix, finite_rows, is_path, is_sparse, is_stored


@pytest.mark.parametrize("X", ["a.parquet", Path("a"), ["a", Path("b")], ("a",)])
def test_paths_are_stored_tables(X):
    assert is_path(X)
    assert is_stored(X)


@pytest.mark.parametrize("X", [[], [[1.0]], np.ones((1, 1)), pd.DataFrame({"a": [1]}), None, 3])
def test_tables_in_memory_are_not_stored(X):
    assert not is_path(X)
    assert not is_stored(X)


def test_functions_are_stored_tables():
    assert is_stored(lambda: iter(()))


def test_sparse_is_what_scipy_calls_so():
    assert [is_sparse(X) for X in (sp.coo_matrix((1, 1)), sp.csr_array((1, 1)), np.ones((1, 1)))] == [True, True, False]


def test_dask_and_pyarrow_are_imported_only_when_used():
    code = """
        from lemmata import Blocks
        Blocks.of([[1.0]]).reduce(lambda X: X.sum())
        print(sorted({"dask", "distributed", "pyarrow", "pandas", "polars", "numba"} & set(sys.modules)))
    """
    assert finished(python(code))[0].strip() == "[]"


def test_arrays_of_numbers_are_not_copied():
    for X in (np.ones((2, 2)), np.ones((2, 2), dtype=np.int8), sp.csr_array(np.eye(2))):
        assert as_matrix(X)[0] is X


def test_names_of_columns():
    assert as_matrix(pd.DataFrame({"b": [1], "a": [2]}))[1] == ["b", "a"]
    assert as_matrix(pd.DataFrame([[1, 2]]))[1] == ["0", "1"]
    X, names = as_matrix(pd.DataFrame({"b": [1], "a": [2]}), ["a"])
    assert (bits(X), names) == (bits(np.array([[2.0]])), ["a"])


BAD = st.sampled_from([np.nan, np.inf, -np.inf])


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 4)),
    bad=st.lists(st.tuples(st.integers(0, 47), BAD), max_size=4),
    first=st.integers(0, 1000),
    allow_nan=st.booleans(),
    sparse=st.booleans(),
    large=st.booleans(),
)
def test_the_first_bad_row_is_named(shape, bad, first, allow_nan, sparse, large):
    X = np.arange(float(np.prod(shape))).reshape(shape) % 3
    X *= 1e308 / 2 if large else 1.0  # large numbers are finite though their sum is not
    for place, value in bad:
        X.flat[place % X.size] = value
    wrong = np.isinf(X) if allow_nan else ~np.isfinite(X)
    table, number = sp.csr_array(X) if sparse else X, (lambda row: first + row)
    if not wrong.any():
        assert finite_rows(table, number, allow_nan) is None
        return
    row = int(np.flatnonzero(wrong.any(axis=1))[0])
    kind = "NaN" if np.isnan(X[row][wrong[row]][0]) else "infinity"
    with pytest.raises(ValueError, match=f"^Input X contains {kind} in row {first + row};"):
        finite_rows(table, number, allow_nan)
