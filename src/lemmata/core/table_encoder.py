"""From a table to a matrix: how columns of numbers, yes and no, dates and text become float64.

Each column gets a plan from the rows it is fitted on, a plain dictionary, and the plan alone turns later rows into numbers:

number, boolean  the value (0 and 1)
date             days since 1970, and if the dates span more than a year the sine and cosine of the season
text             a 0/1 column for each frequent level and one for all the others

A missing number becomes the median and a 1 in a column "… is missing", so that a model can tell, or stays NaN for a model that
takes it; missing text is a level of its own. All levels are kept: the columns of a text then sum to one, which estimators of
least norm or with a penalty take in their stride. Columns that cannot inform are left out, with the reason: empty, constant, or
text that differs in every row, as identifiers do.
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lemmata.core.table import Column, as_table, is_missing, kind_of, looks_like, parse_column, shown

Floats = NDArray[np.float64]
Plan = dict[str, Any]

YEAR = 365.2425  # days; the mean year, so that the season never drifts from the calendar by more than a day or two
PLURALS = {"number": "numbers", "boolean": "true or false", "date": "dates", "text": "text"}


def plan_column(column: Column, *, max_levels: int = 20, min_share: float = 0.01) -> Plan | str:
    """Decide how a column becomes numbers, or say why it is left out.

    Examples
    --------
    >>> plan_column(np.array([1.0, np.nan, 4.0, 2.0]))
    {'kind': 'number', 'missing': 1, 'fill': 2.0, 'varies': True, 'season': False, 'center': 0.0, 'width': 1.0}
    >>> plan_column(np.array(["a7", "b9", "c2"], dtype=object))
    'different in every row, as an identifier is'
    """
    kind, missing = kind_of(column), is_missing(column)
    if missing.all():
        return "empty"
    if kind == "text":
        return _plan_levels(column[~missing].tolist(), int(missing.sum()), max_levels, min_share)
    values = floats(column)[~missing]
    span = float(np.ptp(values))
    if span == 0 and not missing.any():
        return "constant"
    return {
        "kind": kind,
        "missing": int(missing.sum()),
        "fill": float(np.median(values)),
        "varies": span > 0,
        "season": kind == "date" and span > YEAR,
        "center": 0.0,
        "width": 1.0,
    }


def _plan_levels(values: list[str], n_missing: int, max_levels: int, min_share: float) -> Plan | str:
    counts = Counter(values)
    if len(counts) == len(values) > 1:
        return "different in every row, as an identifier is"
    # A level seen once teaches nothing that holds for another row.
    least = max(2, min_share * (len(values) + n_missing))
    frequent = sorted((level for level, n in counts.items() if n >= least), key=lambda level: (-counts[level], level))
    levels = sorted(frequent[:max_levels])
    other = sum(counts.values()) - sum(counts[level] for level in levels)
    if not levels:
        return "text without a frequent value"
    if len(levels) == 1 and not other and not n_missing:
        return "constant"
    return {"kind": "text", "missing": n_missing, "levels": levels, "other": other}


def plan_names(name: str, plan: Plan) -> list[str]:
    """Name the columns that a plan makes.

    Examples
    --------
    >>> plan_names("city", {"kind": "text", "missing": 0, "levels": ["Graz", "Linz"], "other": 7})
    ['city=Graz', 'city=Linz', 'city=(other)']
    """
    if plan["kind"] == "id":
        return [name]
    if plan["kind"] == "text":
        names = [f"{name}={level}" for level in plan["levels"]] + [f"{name}=(other)"] * bool(plan["other"])
    else:
        names = [name] * plan["varies"] + [f"{name} (sine of season)", f"{name} (cosine of season)"] * plan["season"]
    return names + [f"{name} is missing"] * bool(plan["missing"])


def apply_plan(column: Column, plan: Plan) -> list[NDArray[Any]]:
    """Turn a column into numbers as planned.

    Examples
    --------
    >>> plan = plan_column(np.array(["Graz", "Linz", "Graz", "Linz", "Wels"], dtype=object))
    >>> np.column_stack(apply_plan(np.array(["Linz", "Rome", None], dtype=object), plan)).astype(int)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    missing = is_missing(column)
    if plan["kind"] == "text":
        position = {level: j for j, level in enumerate(plan["levels"])}
        codes = np.array([position.get(value, len(position)) for value in column])
        codes[missing] = -1
        arrays = [codes == j for j in range(len(position) + bool(plan["other"]))]
    else:
        values = np.where(missing, plan["fill"], floats(column))
        arrays = [(values - plan["center"]) / plan["width"]] if plan["varies"] else []
        if plan["season"]:
            arrays += [np.sin(2 * np.pi * values / YEAR), np.cos(2 * np.pi * values / YEAR)]
    return arrays + [missing] * bool(plan["missing"])


def describe_plan(plan: Plan) -> str:
    """Say in words how a column is used.

    Examples
    --------
    >>> describe_plan({"kind": "text", "missing": 0, "levels": ["Graz", "Linz"], "other": 7})
    'a 0/1 column for each of 2 levels; one for the others'
    """
    if plan["kind"] == "id":
        return "an identifier, as it is"
    if plan["kind"] == "text":
        words = [f"a 0/1 column for each of {len(plan['levels'])} levels"] + ["one for the others"] * bool(plan["other"])
        return "; ".join(words + ["one for missing"] * bool(plan["missing"]))
    words = [{"number": "its value", "boolean": "0 or 1", "date": "days since 1970"}[plan["kind"]]] * plan["varies"]
    if plan["width"] != 1.0:
        words = ["standardized"]
    words += ["sine and cosine of the season"] * plan["season"]
    return "; ".join(words + ["missing: the median, and marked so"] * bool(plan["missing"]))


def floats(column: Column) -> Floats:
    """Turn numbers, booleans and dates (into days since 1970) into float64 with NaN where missing.

    Examples
    --------
    >>> floats(np.array(["1970-01-02T12:00", "NaT"], dtype="datetime64[s]"))
    array([1.5, nan])
    """
    if column.dtype.kind != "M":
        return column.astype(float)  # None becomes NaN
    days = (column.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    return np.asarray(days, dtype=float)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn tables of numbers, booleans, dates and text into matrices of float64.

    Parameters
    ----------
    scale : Whether to center numbers and dates and divide them by their standard deviation, for models that compare
        columns with each other (distances, penalties). The 0/1 columns stay as they are.
    max_levels : Most levels of a text that get a column of their own.
    min_share : Least share of the rows that a level must have for a column of its own; two rows at least.
    keep_missing : Whether missing numbers stay NaN, for models that know what to do with them.

    Attributes
    ----------
    plans_ : How each column becomes numbers, by name.
    dropped_ : Why each other column was left out, by name.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [40, 65, None, 80], "city": ["Graz", "Linz", "Linz", "Graz"], "id": list("abcd")})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size is missing', 'city=Graz', 'city=Linz']
    >>> encoder.transform(frame)
    array([[40.,  0.,  1.,  0.],
           [65.,  0.,  0.,  1.],
           [65.,  1.,  0.,  1.],
           [80.,  0.,  1.,  0.]])
    >>> encoder.dropped_
    {'id': 'different in every row, as an identifier is'}
    """

    def __init__(self, scale: bool = False, max_levels: int = 20, min_share: float = 0.01, keep_missing: bool = False) -> None:
        self.scale = scale
        self.keep_missing = keep_missing
        self.max_levels = max_levels
        self.min_share = min_share

    def fit(self, X: Any, y: Any = None) -> "TableEncoder":
        """Plan each column from the rows of X."""
        table = as_table(X)
        self.plans_: dict[str, Plan] = {}
        self.dropped_: dict[str, str] = {}
        for name, column in table.items():
            refuse_infinity(column, name)
            plan = plan_column(column, max_levels=self.max_levels, min_share=self.min_share)
            if self.keep_missing and not isinstance(plan, str) and plan["kind"] != "text":
                plan = plan | {"fill": np.nan, "missing": 0} if plan["varies"] else "constant"
            if isinstance(plan, str):
                self.dropped_[name] = plan
            else:
                self.plans_[name] = self._scaled(column, plan)
        if not self.plans_:
            reasons = "; ".join(f"{name} ({reason})" for name, reason in self.dropped_.items())
            raise ValueError(f"no column is left to learn from: {reasons or 'the table has none'}.")
        self.n_features_in_ = len(table)
        self.feature_names_in_ = np.array(list(table), dtype=object)
        return self

    def _scaled(self, column: Column, plan: Plan) -> Plan:
        if not self.scale or plan["kind"] not in ("number", "date") or not plan["varies"]:
            return plan
        values = np.where(is_missing(column), plan["fill"], floats(column))
        return plan | {"center": float(np.nanmean(values)), "width": float(np.nanstd(values))}

    def transform(self, X: Any) -> Floats:
        """Turn the rows of X into numbers; columns that were not seen in `fit` are ignored."""
        check_is_fitted(self)
        table = as_table(X)
        absent = [name for name in self.plans_ if name not in table]
        if absent:
            raise ValueError(f"the table lacks {_listed(absent)}, which the model was fitted with.")
        arrays: list[NDArray[Any]] = []
        for name, plan in self.plans_.items():
            column = _as_kind(table[name], plan["kind"], name)
            refuse_infinity(column, name)
            arrays += apply_plan(column, plan)
        return np.column_stack(arrays).astype(float, order="C")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns of the matrix."""
        check_is_fitted(self)
        return np.array([new for name, plan in self.plans_.items() for new in plan_names(name, plan)], dtype=object)


class PairEncoder(TransformerMixin, BaseEstimator):
    """Keep two columns of identifiers as text, for models of pairs: users and items, say.

    Attributes
    ----------
    plans_ : For both columns, by name, that they are identifiers.
    dropped_ : Empty: nothing is left out.

    Examples
    --------
    >>> table = {"user": ["ann", "bob"], "film": [7.0, 12.0]}
    >>> PairEncoder().fit_transform(table).tolist()
    [['ann', '7'], ['bob', '12']]
    """

    def fit(self, X: Any, y: Any = None) -> "PairEncoder":
        """Remember the names of the two columns."""
        table = as_table(X)
        if len(table) != 2:
            raise ValueError(f"a model of pairs reads two columns beside the target, and there are {len(table)}.")
        self.plans_: dict[str, Plan] = {name: {"kind": "id"} for name in table}
        self.dropped_: dict[str, str] = {}
        self.n_features_in_ = 2
        self.feature_names_in_ = np.array(list(table), dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.object_]:
        """Give the identifiers as text, two a row."""
        check_is_fitted(self)
        table = as_table(X)
        absent = [name for name in self.plans_ if name not in table]
        if absent:
            raise ValueError(f"the table lacks {_listed(absent)}, which the model was fitted with.")
        for name in self.plans_:
            if is_missing(table[name]).any():
                raise ValueError(f"column {name!r} lacks an identifier in row {int(is_missing(table[name]).argmax())}.")
        return np.array([[shown(value) for value in table[name]] for name in self.plans_], dtype=object).T

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the two columns."""
        check_is_fitted(self)
        return np.array(list(self.plans_), dtype=object)


def _as_kind(column: Column, kind: str, name: str) -> Column:
    """Read a column of later rows as the kind it had in `fit`, where that loses nothing."""
    found = kind_of(column)
    if found == kind or {found, kind} == {"number", "boolean"}:
        return column
    if is_missing(column).all():
        return np.full(len(column), None) if kind == "text" else np.full(len(column), np.nan)
    if kind == "text":
        return np.array([shown(value) or None for value in column], dtype=object)
    raise ValueError(f"column {name!r} was {PLURALS[kind]} when the model was fitted{_strange_value(column, kind)}.")


def _strange_value(column: Column, kind: str) -> str:
    """Name the first value that is not of this kind, its row (from 1 on) and the remedy."""
    if looks_like(column):
        return f" and now {looks_like(column)}"
    texts = [shown(value) for value in column.tolist()]
    for row, text in enumerate(texts, 1):
        if text and kind_of(parse_column([text])) != kind:
            return f", and row {row} holds {text!r}: correct that or leave it empty"
    return f" and is {PLURALS[kind_of(column)]} now"


def refuse_infinity(column: Column, name: str) -> None:
    """Raise an error if a column holds infinite values."""
    if column.dtype.kind == "f" and np.isinf(column).any():
        raise ValueError(f"column {name!r} holds infinite values; correct them or leave them empty.")


def _listed(names: list[str]) -> str:
    return f"the column {names[0]!r}" if len(names) == 1 else f"the columns {', '.join(map(repr, names))}"
