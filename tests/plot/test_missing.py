"""Patterns of missing entries are counted exactly, wherever the table lives, and drawn as counted."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lemmata.core.blocks import Blocks
from lemmata.plot import MissingPatternDisplay
from lemmata.plot.missing import MOST, patterns_of


def table(n=500, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) < np.linspace(0, 0.3, d)] = np.nan
    return X


def counted(frame):
    """Count patterns by pandas."""
    return {tuple(map(bool, key)): n for key, n in frame.isna().value_counts().items()}


def as_dict(patterns):
    return {tuple(map(bool, row)): n for row, n in zip(patterns.missing, patterns.counts, strict=True)}


@pytest.mark.parametrize("d", [1, 5, 9, 20])
def test_patterns_match_pandas(d):
    X = table(d=d)
    patterns = patterns_of(X)
    assert as_dict(patterns) == counted(pd.DataFrame(X))
    assert (np.diff(patterns.counts) <= 0).all()
    assert patterns.names == [f"x{j}" for j in range(d)]


def test_one_answer_in_every_home(tmp_path, monkeypatch):
    X = table()
    expected, names = as_dict(patterns_of(X)), list("abcde")
    frame = pd.DataFrame(X, columns=names)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet", row_group_size=64)
    homes = (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), tmp_path / "rows.parquet")
    for home in homes:
        found = patterns_of(home)
        assert as_dict(found) == expected
        assert found.names == names
    of = Blocks.of
    monkeypatch.setattr(Blocks, "of", staticmethod(lambda X: of(X, block_rows=7)))
    assert as_dict(patterns_of(X)) == expected
    assert as_dict(patterns_of(X.tolist())) == expected


def test_frames_may_hold_anything():
    frame = pd.DataFrame(
        {
            "text": ["a", None, "b", None],
            "date": pd.to_datetime(["2020-01-01", None, "2021-01-01", None]),
            "whole": pd.array([1, 2, None, 4], dtype="Int64"),
            "real": [0.5, np.nan, 1.0, 2.0],
            "kind": pd.Categorical(["x", "y", None, "x"]),
            "yes": [True, False, True, True],
        }
    )
    assert as_dict(patterns_of(frame)) == counted(frame)
    assert as_dict(patterns_of(pl.from_pandas(frame))) == counted(frame)
    nan_and_null = pl.DataFrame({"a": [1.0, float("nan"), None]})  # Polars knows both
    assert_array_equal(patterns_of(nan_and_null).counts, [2, 1])


def test_cells_and_bars_are_drawn_as_counted():
    X = table()
    display = MissingPatternDisplay.from_data(X, max_patterns=4)
    patterns = patterns_of(X)
    assert_array_equal(display.cells[:4], patterns.missing[:4])
    assert_array_equal(display.bars, [*patterns.counts[:4], patterns.counts[4:].sum()])
    rare = ~(np.isnan(X)[:, None] == patterns.missing[:4]).all(axis=2).any(axis=1)
    assert_allclose(display.cells[4], np.isnan(X[rare]).mean(axis=0))
    (mesh,) = display.ax_.collections
    assert_array_equal(mesh.get_array().reshape(display.cells.shape), display.cells)
    assert [bar.get_width() for bar in display.count_ax_.patches] == list(display.bars)
    assert_allclose([bar.get_height() for bar in display.share_ax_.patches], np.isnan(X).mean(axis=0))
    texts = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert texts[-1] == f"{len(patterns.counts) - 4} rarer patterns"
    assert texts[:4] == ["complete" if not k else f"{k} missing" for k in patterns.missing[:4].sum(axis=1)]
    complete = int((~np.isnan(X).any(axis=1)).sum())
    assert display.ax_.get_title() == f"{complete} of 500 rows are complete"
    assert display.ax_.get_ylim()[0] > display.ax_.get_ylim()[1]  # the most frequent on top


def test_the_last_pattern_is_not_called_rare_alone():
    X = np.array([[1.0, 1.0], [np.nan, 1.0], [1.0, np.nan]])
    display = MissingPatternDisplay.from_data(X, max_patterns=2)
    assert display.n_rest == 0
    assert len(display.bars) == 3
    with pytest.raises(ValueError, match="max_patterns must be at least 1"):
        MissingPatternDisplay.from_data(X, max_patterns=0)


@pytest.mark.parametrize("X", [np.zeros((3, 1)), np.full((2, 3), np.nan), table(d=100, n=200), table(d=30, n=200)])
def test_every_table_has_a_picture_and_nothing_is_cut_off(X):
    display = MissingPatternDisplay.from_data(X, name="a table")
    figure = display.figure_
    figure.canvas.draw()
    assert display.ax_.get_title() == "a table"
    assert len(display.bars) <= MOST + 1
    assert display.bars.sum() == len(X)
    inside, page = figure.get_tightbbox(), figure.get_size_inches()
    assert min(inside.x0, inside.y0) >= -0.01  # inches
    assert (np.array([inside.x1, inside.y1]) <= page + 0.01).all()
