"""Tables are read as a person would read them, and become numbers that a model can be saved with."""

import csv
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor

import lemmata
from lemmata.cluster import KMeans
from lemmata.core.table import Table, as_table, distinct, is_missing, kind_of, looks_like, parse_column, read_table, write_table
from lemmata.core.table_encoder import TableEncoder, plan_column
from lemmata.core.table_model import TableModel
from lemmata.linear_model import LinearRegression
from lemmata.mixture import GaussianMixture


def text(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2.5", "3e4"], "number"),
        (["1", "", "3"], "number"),
        (["", "NA"], "number"),
        (["true", "False", "TRUE"], "boolean"),
        (["true", "", "false"], "boolean"),
        (["true", "1"], "text"),
        (["2024-05-31", "1999-12-31"], "date"),
        (["2024-05-31T10:00", "1999-12-31 23:59:59.5", "2000-01-01T00:00:00Z"], "date"),
        (["2024-02-30", "2024-02-28"], "text"),  # no such day: then it is not a date at all
        (["20240531", "20240601"], "number"),
        (["08010", "1010"], "text"),  # postal codes
        (["1_000", "2_000"], "text"),
        (["1,5", "2,5"], "text"),  # a decimal comma is not guessed
        (["0", "0.5", "-0.25"], "number"),
        (["a", "b"], "text"),
    ],
)
def test_kind_of_cells(cells, kind):
    column = parse_column(cells)
    assert kind_of(column) == kind
    assert len(column) == len(cells)


@pytest.mark.parametrize("cell", ["", "  ", "NA", "na", "N/A", "NaN", "null", "NULL", "None", "?"])
@pytest.mark.parametrize("rest", [["1", "2"], ["true", "false"], ["2024-01-01", "2024-01-02"], ["a", "b"]])
def test_missing_cells_do_not_change_the_kind(cell, rest):
    column = parse_column([rest[0], cell, rest[1]])
    assert kind_of(column) == kind_of(parse_column(rest))
    assert_array_equal(is_missing(column), [False, True, False])


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["37,3", " -4,25", "+0,5"], [37.3, -4.25, 0.5]),
        (["37,3", "4", ""], [37.3, 4, np.nan]),
        (["0,125", "0,250"], [0.125, 0.25]),  # no thousands begin with a zero
        (["1,000", "2,5"], [1, 2.5]),
        (["1,000", "2,500"], None),  # a thousand or one
        (["1,000", "2500"], None),
        (["1,000,000", "2,500,000"], None),
        (["08,5", "1,5"], None),  # a code
        (["1.000,5", "2,5"], None),
        (["1,5", "many"], None),
        (["1,5,2", "1,5"], None),
    ],
)
def test_decimal_commas_are_read_between_semicolons(tmp_path, cells, values):
    (tmp_path / "a.csv").write_text("\n".join(["size;city", *(f"{cell};Graz" for cell in cells)]))
    column = read_table(tmp_path / "a.csv")["size"]
    if values is None:
        assert column.tolist() == cells
    else:
        assert_array_equal(column, values)
    (tmp_path / "b.csv").write_text("\n".join(["size,city", *(f'"{cell}",Graz' for cell in cells)]))
    assert kind_of(read_table(tmp_path / "b.csv")["size"]) == "text"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("37,3", "4", None), "looks like numbers with a decimal comma: write 37.3 for 37,3"),
        (("1,000", "2500"), "looks like thousands separated by commas: write 1000 for 1,000, or 1.000 if the comma is decimal"),
        (("1,000,000", "2,500"), "looks like thousands separated by commas: write 1000000 for 1,000,000"),
        (("1,5", "many"), ""),
        (("a", "b"), ""),
        (("1,5,2",), ""),
        ((None, None), ""),
    ],
)
def test_text_that_looks_like_numbers_is_said(values, words):
    assert looks_like(text(*values)) == words


def test_time_zones_become_utc():
    column = parse_column(["2024-01-01T10:00+02:00", "2024-01-01T08:00Z"])
    assert column[0] == column[1] == np.datetime64("2024-01-01T08:00")


def test_days_stay_days_and_moments_keep_their_time():
    assert parse_column(["2024-01-01", ""]).dtype == "datetime64[D]"
    assert parse_column(["2024-01-01T12:00", "2024-01-01"])[0] == np.datetime64("2024-01-01T12:00")


ROWS = [
    ["name", "size", "note"],
    ["Ann", "1.5", "has, a comma; a bar | and a \t tab"],
    ["Bo", "", 'a "quoted" word'],
    ["Cy", "3", "two\nlines"],
]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_same_table_whatever_the_dialect(tmp_path, delimiter, encoding, ending):
    path = tmp_path / "data.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=ending).writerows(ROWS)
    table = read_table(path)
    assert list(table) == ["name", "size", "note"]
    assert_array_equal(table["size"], [1.5, np.nan, 3.0])
    assert table["note"].tolist() == [row[2] for row in ROWS[1:]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 cell, but the header has 2; leave a cell empty"),
        ('a,b\n"x\ny",2\n3,4,5\n', "line 4: 3 cells, but the header has 2; put a cell that holds the separator into"),
        ("a,b,a\n1,2,3\n", "two columns named 'a'"),
        ("1,2.5\n3,4\n", "has no header"),
        ("1,1\n3,4\n", "has no header"),
        ('a,b\n1,"2\n3,4\n', "line 3"),
    ],
)
def test_errors_are_one_sentence_that_names_the_file(tmp_path, content, message):
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(path)
    assert "data.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_errors_about_the_file_itself(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError, match="folder"):
        read_table(tmp_path)
    (tmp_path / "sheet.csv").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(ValueError, match="spreadsheet"):
        read_table(tmp_path / "sheet.csv")
    (tmp_path / "latin.csv").write_bytes("a,b\nGrüße,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="UTF-8"):
        read_table(tmp_path / "latin.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(ValueError, match="not a Parquet file"):
        read_table(tmp_path / "broken.parquet")


def test_years_may_be_names_of_columns(tmp_path):
    (tmp_path / "wide.csv").write_text("country,2019,2020\nA,1,2\n")
    assert list(read_table(tmp_path / "wide.csv")) == ["country", "2019", "2020"]


def test_row_numbers_of_pandas_are_left_out(tmp_path):
    pd.DataFrame({"a": [5.0, 6.0], "b": ["x", "y"]}).to_csv(tmp_path / "indexed.csv")
    assert list(read_table(tmp_path / "indexed.csv")) == ["a", "b"]
    pd.DataFrame({"a": [5.0, 6.0]}, index=["p", "q"]).to_csv(tmp_path / "named.csv")
    assert list(read_table(tmp_path / "named.csv")) == ["column 1", "a"]


def test_parquet_and_csv_agree(tmp_path):
    frame = pa.table(
        {
            "x": pa.array([1, None, 3]),
            "flag": pa.array([True, False, None]),
            "day": pa.array(["2024-01-01", None, "2024-03-01"]).cast(pa.date32()),
            "name": pa.array(["a", "b", None]),
        }
    )
    pa.parquet.write_table(frame, tmp_path / "data.parquet")
    (tmp_path / "data.csv").write_text("x,flag,day,name\n1,true,2024-01-01,a\n,false,,b\n3,,2024-03-01,\n")
    one, two = read_table(tmp_path / "data.parquet"), read_table(tmp_path / "data.csv")
    assert repr(one) == repr(two)
    for name in one:
        assert_array_equal(is_missing(one[name]), is_missing(two[name]))
        assert distinct(one[name]) == distinct(two[name])


def test_parquet_without_pyarrow_says_how_to_get_it(tmp_path, monkeypatch):
    pa.parquet.write_table(pa.table({"x": [1, 2]}), tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install \"lemmata\[dask\]\""):
        read_table(tmp_path / "data.parquet")


@given(
    st.lists(st.floats(allow_infinity=False), min_size=1, max_size=8),
    st.lists(st.text(alphabet="abc,;\"'\n 07-é", min_size=1, max_size=6), min_size=8, max_size=8),
)
def test_written_tables_are_read_back(tmp_path_factory, numbers, words):
    words = [f"<{word}>" for word in words]  # so that no word is a number, a date or a missing value
    table = Table({"number": np.array(numbers), "word": text(*words[: len(numbers)])})
    path = tmp_path_factory.mktemp("written") / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_table(table, file)
    back = read_table(path)
    assert_array_equal(back["number"], table["number"])  # to the bit: repr is exact
    assert back["word"].tolist() == table["word"].tolist()


COLUMNS = {
    "x": [1.5, None, 3.0, 4.0],
    "n": [1, 2, 3, 4],
    "flag": [True, False, None, True],
    "name": ["a", None, "b", "a"],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "pyarrow", "mapping"])
def test_any_frame_is_the_same_table(make):
    table = as_table(make(COLUMNS))
    assert repr(table) == "<Table of 4 rows: x (number), n (number), flag (boolean), name (text)>"
    assert_array_equal(table["x"], [1.5, np.nan, 3, 4])
    assert table["flag"].tolist() == [True, False, None, True]
    assert table["name"].tolist() == ["a", None, "b", "a"]


def test_dates_and_categories_of_frames():
    days = ["2024-01-01", "2024-06-01"]
    frames = [
        pd.DataFrame({"day": pd.to_datetime(days), "level": pd.Categorical(["u", "v"])}),
        pl.DataFrame({"day": days, "level": ["u", "v"]}).with_columns(
            pl.col("day").str.to_datetime(), pl.col("level").cast(pl.Categorical)
        ),
    ]
    for frame in frames:
        table = as_table(frame)
        assert [kind_of(table[name]) for name in table] == ["date", "text"]
        assert_array_equal(table["day"], np.array(days, dtype="datetime64[D]"))


def test_nullable_columns_of_pandas():
    frame = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "s": pd.array(["a", None], dtype="string")})
    table = as_table(frame)
    assert_array_equal(table["n"], [1, np.nan])
    assert table["s"].tolist() == ["a", None]


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="a table is"):
        as_table("rents.csv")
    with pytest.raises(ValueError, match="different lengths"):
        Table({"a": np.zeros(2), "b": np.zeros(3)})


def encoded(table, **parameters):
    encoder = TableEncoder(**parameters).fit(table)
    return encoder, dict(zip(encoder.get_feature_names_out(), encoder.transform(table).T, strict=True))


def test_numbers_stay_and_missing_ones_become_the_median_and_a_mark():
    _, columns = encoded({"x": [1.0, None, 2.0, 9.0]})
    assert_array_equal(columns["x"], [1, 2, 2, 9])
    assert_array_equal(columns["x is missing"], [0, 1, 0, 0])


def test_missing_for_the_first_time_in_later_rows():
    encoder = TableEncoder().fit({"x": [1.0, 2.0, 9.0], "city": ["a", "a", "b"], "c": ["u", "u", "v"]})
    assert_array_equal(encoder.transform({"x": [None], "city": [None], "c": ["u"]}), [[2, 0, 0, 1, 0]])


def test_levels_rare_ones_and_new_ones():
    values = ["a"] * 50 + ["b"] * 30 + ["c"] * 19 + ["rare"]
    encoder, columns = encoded({"s": values})
    assert list(columns) == ["s=a", "s=b", "s=c", "s=(other)"]
    assert_array_equal(sum(columns.values()), np.ones(100))  # exactly one is set in each row
    assert_array_equal(encoder.transform({"s": ["new"]}), [[0, 0, 0, 1]])
    without_other = TableEncoder().fit({"s": ["a", "b"] * 5})
    assert_array_equal(without_other.transform({"s": ["new"]}), [[0, 0]])


def test_only_the_most_frequent_levels_get_a_column():
    values = [f"level {k}" for k in range(30) for _ in range(40 - k)]
    _, columns = encoded({"s": values}, max_levels=3, min_share=0.0)
    assert list(columns) == ["s=level 0", "s=level 1", "s=level 2", "s=(other)"]


def test_what_cannot_inform_is_left_out_with_a_reason():
    table = {"x": [1.0, 2.0, 3.0], "constant": [5.0] * 3, "same": ["k"] * 3, "empty": [None] * 3, "id": ["p", "q", "r"]}
    encoder, columns = encoded(table)
    assert list(columns) == ["x"]
    assert encoder.dropped_["constant"] == encoder.dropped_["same"] == "constant"
    assert encoder.dropped_["empty"] == "empty"
    assert "identifier" in encoder.dropped_["id"]
    with pytest.raises(ValueError, match=r"no column is left.*id \(different"):
        TableEncoder().fit({"id": ["p", "q", "r"]})


def test_a_constant_with_gaps_keeps_the_mark():
    _, columns = encoded({"x": [5.0, None, 5.0]})
    assert list(columns) == ["x is missing"]


def test_dates_become_days_and_seasons():
    days = np.arange("2020-01-01", "2023-01-01", dtype="datetime64[D]")
    _, columns = encoded(Table({"day": days}))
    assert_array_equal(columns["day"], days.astype(int))
    sine, cosine = columns["day (sine of season)"], columns["day (cosine of season)"]
    assert_allclose(sine**2 + cosine**2, 1, rtol=1e-12)
    january, july = days == np.datetime64("2022-01-05"), days == np.datetime64("2022-07-05")
    assert cosine[january] > 0.9 > -0.9 > cosine[july]
    _, short = encoded(Table({"day": days[:300]}))
    assert list(short) == ["day"]


def test_scaled_columns_have_mean_zero_and_deviation_one():
    rng = np.random.default_rng(3)
    _, columns = encoded({"x": rng.normal(50, 9, 200).tolist(), "flag": (rng.random(200) < 0.5).tolist()}, scale=True)
    assert_allclose([columns["x"].mean(), columns["x"].std()], [0, 1], atol=1e-12)
    assert set(columns["flag"]) == {0.0, 1.0}


def test_rows_are_encoded_one_by_one():
    table = as_table(COLUMNS)
    encoder = TableEncoder().fit(table)
    whole = encoder.transform(table)
    for i in range(table.n_rows):
        assert_array_equal(encoder.transform(table.take([i])), whole[[i]])
    assert whole.dtype == np.float64
    assert whole.flags.c_contiguous


def test_columns_are_found_by_name():
    encoder = TableEncoder().fit(COLUMNS)
    shuffled = {name: COLUMNS[name] for name in reversed(COLUMNS)} | {"further": [0] * 4}
    assert_array_equal(encoder.transform(shuffled), encoder.transform(COLUMNS))
    with pytest.raises(ValueError, match="lacks the column 'n'"):
        encoder.transform({name: COLUMNS[name] for name in ("x", "flag", "name")})


def test_kinds_that_changed_are_refused_unless_nothing_is_lost():
    encoder = TableEncoder().fit({"x": [1.0, 2.0, 3.0], "s": ["1", "1", "b"], "flag": [True, False, True]})
    same = encoder.transform({"x": [True, False], "s": [1, 1], "flag": [1.0, 0.0]})
    assert_array_equal(same, encoder.transform({"x": [1.0, 0.0], "s": ["1", "1"], "flag": [True, False]}))
    was = "column 'x' was numbers when the model was fitted"
    for values, now in (
        (["1", None, "many", "few"], ", and row 3 holds 'many': correct that or leave it empty."),
        (["1", "2,5"], " and now looks like numbers with a decimal comma: write 2.5 for 2,5."),
        (pd.to_datetime(["2024-05-31"]), ", and row 1 holds '2024-05-31': correct that or leave it empty."),
        (["1", "2"], " and is text now."),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(was + now)}$"):
            encoder.transform({"x": values, "s": ["1"] * len(values), "flag": [True] * len(values)})


def test_infinity_is_refused_by_name():
    with pytest.raises(ValueError, match="'x' holds infinite"):
        TableEncoder().fit({"x": [1.0, np.inf]})
    with pytest.raises(ValueError, match="'x' holds infinite"):
        TableEncoder().fit({"x": [1.0, 2.0]}).transform({"x": [np.inf]})


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=30))
def test_every_row_of_a_text_falls_into_exactly_one_column(values):
    plan = plan_column(text(*values))
    if isinstance(plan, dict):
        encoder = TableEncoder().fit({"s": values})
        assert_array_equal(encoder.transform({"s": values}).sum(axis=1), np.ones(len(values)))


def test_encoder_keeps_scikit_learns_protocol():
    encoder = TableEncoder(scale=True, max_levels=4)
    assert clone(encoder).get_params() == encoder.get_params()
    assert_array_equal(encoder.fit_transform(COLUMNS), encoder.fit(COLUMNS).transform(COLUMNS))


def rents(n=80, seed=0):
    rng = np.random.default_rng(seed)
    size, city = rng.uniform(20, 120, n), rng.choice(["Graz", "Linz", "Wels"], n)
    rent = 9 * size + np.array([{"Graz": 100, "Linz": 50, "Wels": 0}[c] for c in city]) + rng.normal(0, 30, n)
    return Table({"size": size, "city": city.astype(object), "rent": rent})


class Nearest(ClassifierMixin, BaseEstimator):
    """The class of the nearest class mean: a classifier small enough to be sure of."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]

    def predict_proba(self, X):
        odds = np.exp(-((X[:, None] - self.means_) ** 2).sum(axis=2))
        return odds / odds.sum(axis=1, keepdims=True)


def test_table_model_is_encoder_and_estimator():
    table = rents()
    model = TableModel(LinearRegression(), "rent").fit(table)
    X = TableEncoder(scale=True).fit_transform(table.without("rent"))
    direct = LinearRegression().fit(X, table["rent"])
    assert_array_equal(model.predict(table), direct.predict(X))
    assert model.score(table) == direct.score(X, table["rent"])
    assert is_regressor(model)


def test_rows_without_target_do_not_count():
    table = rents()
    gaps = Table({**table, "rent": np.where(np.arange(80) % 7 == 0, np.nan, table["rent"])})
    fitted = TableModel(LinearRegression(), "rent").fit(gaps)
    again = TableModel(LinearRegression(), "rent").fit(gaps.take(~is_missing(gaps["rent"])))
    assert_array_equal(fitted.estimator_.coef_, again.estimator_.coef_)
    assert fitted.certify(gaps).holds
    assert len(fitted.predict(gaps)) == 80


def test_certificate_of_a_table_refuses_other_parameters_and_other_data():
    table = rents()
    model = TableModel(LinearRegression(), "rent").fit(table)
    assert model.certify(table).holds
    assert not model.certify(rents(seed=1)).holds
    model.estimator_.coef_ = model.estimator_.coef_ * 1.01
    assert not model.certify(table).holds


def test_saved_model_predicts_from_a_raw_table(tmp_path):
    table = rents()
    dated = Table({**table, "built": np.datetime64("1990-01-01") + np.arange(80) * 100, "flag": text(*[True, None] * 40)})
    model = TableModel(LinearRegression(), "rent").fit(dated)
    model.save(tmp_path / "model.lemmata")
    loaded = lemmata.load(tmp_path / "model.lemmata")
    assert_array_equal(loaded.predict(dated), model.predict(dated))
    assert loaded.certify(dated).holds
    assert loaded.encoder_.plans_ == model.encoder_.plans_


@pytest.mark.parametrize(
    "labels",
    [text(*["low", "high"] * 10), np.array([True, False] * 10), np.array([3.0, 7.0] * 10)],
    ids=["text", "boolean", "number"],
)
def test_classes_are_decoded(labels):
    table = Table({"x": np.where(np.arange(20) % 2, 5.0, -5.0) + np.linspace(0, 1, 20), "label": labels})
    model = TableModel(Nearest(), "label").fit(table)
    assert is_classifier(model)
    assert_array_equal(model.predict(table), labels)
    assert model.predict(table).dtype == labels.dtype
    assert model.score(table) == 1.0
    assert_allclose(model.predict_proba(table).sum(axis=1), 1, rtol=1e-12)
    strange = Table({"x": np.zeros(1), "label": text("never seen")})
    with pytest.raises(ValueError, match="never seen"):
        model.score(strange)


def test_targets_that_cannot_be():
    table = rents()
    with pytest.raises(ValueError, match="no column 'price'; it has 'size'"):
        TableModel(LinearRegression(), "price").fit(table)
    with pytest.raises(ValueError, match="holds text, not numbers"):
        TableModel(LinearRegression(), "city").fit(table)
    with pytest.raises(ValueError, match="missing in every row"):
        TableModel(LinearRegression(), "rent").fit(Table({**table, "rent": np.full(80, np.nan)}))
    assert not hasattr(TableModel(LinearRegression(), "rent"), "predict_proba")


def test_missing_numbers_stay_missing_where_a_model_takes_them():
    table = {"a": [1.0, None, 3.0, 8.0], "b": ["x", None, "x", "y"], "c": [2.0, None, 2.0, 2.0]}
    encoder = TableEncoder(scale=True, keep_missing=True).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["a", "b=x", "b=(other)", "b is missing"]
    assert encoder.dropped_ == {"c": "constant"}
    numbers = encoder.transform(table)[:, 0]
    assert np.array_equal(np.isnan(numbers), [False, True, False, False])
    np.testing.assert_allclose([np.nanmean(numbers), np.nanstd(numbers)], [0.0, 1.0], atol=1e-15)
    rng = np.random.default_rng(0)
    x = np.where(rng.random(60) < 0.3, np.nan, rng.normal(size=60))
    rows = {"x": x, "y": rng.normal(size=60)}
    model = TableModel(GaussianMixture(2, random_state=0)).fit(rows)
    assert model.encoder_.keep_missing
    assert model.certify(rows).holds
    assert not TableModel(KMeans(2, random_state=0)).fit(rows).encoder_.keep_missing
