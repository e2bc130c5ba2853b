"""NIST's linear regression data sets with certified values, and the number of digits an estimate shares with them."""

import json
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Dataset(NamedTuple):
    """One regression: data as float64 nearest to what NIST printed, and its certified solution.

    `X` is what a linear model is given: the features, or for a polynomial the powers 1, …, `degree` of the one feature in `x`.
    `coef` and `std_err` start with the intercept where the model has one.
    """

    name: str
    X: np.ndarray  # (n, p)
    x: np.ndarray  # (n, number of features)
    y: np.ndarray  # (n,)
    degree: int | None
    intercept: bool
    coef: np.ndarray
    std_err: np.ndarray
    residual_std: float
    r_squared: float
    residual_df: int


def datasets():
    return [_dataset(record) for record in json.loads(Path(__file__).with_name("nist.json").read_text(encoding="ascii"))]


def _dataset(record):
    x = _float(record["x"]).T
    return Dataset(
        **record
        | {key: _float(record[key]) for key in ("y", "coef", "std_err")}
        | {key: float(record[key]) for key in ("residual_std", "r_squared")}
        | {"x": x, "X": _powers(record["x"][0], record["degree"]) if record["degree"] else x}
    )


def _powers(printed, degree):
    # Rounded once, from the exact power of the printed number: Filip feels a last bit of x¹⁰, and pow differs by platform.
    return np.array([[float(Fraction(value) ** power) for power in range(1, degree + 1)] for value in printed])


def _float(printed):
    return np.array(printed).astype(np.float64)


def digits(estimate, certified):
    """Count the correct digits of the worst entry: −log₁₀ of its relative error (absolute where 0 is certified), at most 15."""
    estimate, certified = np.atleast_1d(estimate), np.atleast_1d(certified)
    error = np.abs(estimate - certified) / np.where(certified == 0, 1, np.abs(certified))
    # 1e-15: the certified values have 15 digits.
    return float(-np.log10(np.maximum(error, 1e-15).max()))
