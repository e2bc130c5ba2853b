"""Settings: they hold inside their `with` statement and nowhere else."""

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lemmata
from helpers import lengths_block
from lemmata.core import config
from lemmata.core.blocks import Blocks

DEFAULT = joblib.cpu_count()
MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def current():
    return config.n_threads(), config.block_rows(10)


def test_settings_hold_inside_and_are_restored():
    before = current()
    with lemmata.config(n_threads=7, block_rows=123):
        assert current() == (7, 123)
    assert current() == before == (DEFAULT, config.block_rows(10))


def test_settings_nest_and_leave_the_others_alone():
    with lemmata.config(n_threads=7):
        with lemmata.config(block_rows=5):
            assert current() == (7, 5)
            with lemmata.config(n_threads=3):
                assert current() == (3, 5)
            with lemmata.config():
                assert current() == (7, 5)
            assert current() == (7, 5)
        assert config.n_threads() == 7
        assert config.block_rows(10) != 5


def fails():
    with lemmata.config(n_threads=7, block_rows=5):
        raise ZeroDivisionError


def test_settings_are_restored_after_an_error():
    before = current()
    with pytest.raises(ZeroDivisionError):
        fails()
    assert current() == before


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", [2]])
@pytest.mark.parametrize("name", ["n_threads", "block_rows"])
def test_wrong_values_are_refused_and_change_nothing(name, wrong):
    before, right = current(), {"n_threads": 7, "block_rows": 5}
    with pytest.raises(ValueError, match=rf"{name} must be a whole number of at least 1, got ({wrong!r}|\[2\])"):
        lemmata.config(**right | {name: wrong}).__enter__()
    assert current() == before


def test_numpy_integers_are_whole_numbers():
    with lemmata.config(n_threads=np.int64(2), block_rows=np.uint8(9)):
        assert current() == (2, 9)


@pytest.mark.parametrize(
    ("value", "threads"),
    [("1", 1), ("1,4", 1), ("100000", DEFAULT), ("0", DEFAULT), ("", DEFAULT), ("many", DEFAULT), ("-1", DEFAULT)],
)
def test_the_environment_is_an_upper_limit(monkeypatch, value, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert config.n_threads() == threads
    with lemmata.config(n_threads=5):  # what is asked for in the program goes before
        assert config.n_threads() == 5


@given(n_columns=st.integers(1, 20000))
def test_block_rows_of_any_width(n_columns):
    rows = config.block_rows(n_columns)
    size = rows * n_columns * 8
    assert rows & (rows - 1) == 0
    assert 256 <= rows <= 1 << 16
    assert size <= 64 * MEBIBYTE or rows == 256
    if 4 * n_columns * n_columns * 8 <= 64 * MEBIBYTE:
        assert rows > 2 * n_columns  # so that the triangle of a block is smaller than the block
    if rows > 4 * n_columns:  # the width leaves a choice
        assert size <= 4 * MEBIBYTE
        assert size > 2 * MEBIBYTE or rows == 1 << 16


@pytest.mark.parametrize("n_columns", [1, 40])
def test_block_rows_depend_on_the_columns_alone(n_columns):
    expected = config.block_rows(n_columns)
    for n_rows in (expected + 1, 2 * expected, 3 * expected):
        for n_threads in (1, 5):
            with lemmata.config(n_threads=n_threads):
                for dtype in (np.float32, np.int8):
                    assert Blocks.of(np.zeros((n_rows, n_columns), dtype=dtype)).map(lengths_block).max() == expected
