"""Write nist.json from a folder with NIST's linear regression files.

    python tests/reference/make_nist.py /usr/share/gretl/data/nist

Every number is kept as the decimal string that NIST printed. Before anything is written, the normal equations are solved in
rational arithmetic from the printed data, and each certified value must be that solution rounded to its last printed digit:
a misread table cannot pass.
"""

import json
import re
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

NAMES = ["Norris", "Pontius", "NoInt1", "NoInt2", "Filip", "Longley", *(f"Wampler{i}" for i in range(1, 6))]
NUMBER = r"-?\d*\.?\d+(?:E[+-]?\d+)?"


def read(path):
    """Read the data, the form of the model and the certified values of one file."""
    text = path.read_text(encoding="ascii")
    coefficients = re.findall(rf"^\s+B(\d+)\s+({NUMBER})\s+({NUMBER})\s*$", text, re.MULTILINE)
    rows = [line.split() for line in re.split(r"^Data: +y +x.*$", text, flags=re.MULTILINE)[1].splitlines() if line.strip()]
    return {
        "name": path.stem,
        "degree": max(int(index) for index, _, _ in coefficients) if "x**2" in text else None,
        "intercept": coefficients[0][0] == "0",
        "coef": [estimate for _, estimate, _ in coefficients],
        "std_err": [error for _, _, error in coefficients],
        "residual_std": re.search(rf"^\s+Standard Deviation\s+({NUMBER})", text, re.MULTILINE)[1],
        "r_squared": re.search(rf"^\s+R-Squared\s+({NUMBER})", text, re.MULTILINE)[1],
        "residual_df": int(re.search(r"^Residual\s+(\d+)", text, re.MULTILINE)[1]),
        "n_rows": int(re.search(r"(\d+) Observations", text)[1]),
        "y": [row[0] for row in rows],
        "x": [list(column) for column in list(zip(*rows, strict=True))[1:]],
    }


def design(dataset):
    """Return the exact matrix of the model: the constant if there is one, then the features or the powers of x."""
    rows = [[Fraction(value) for value in row] for row in zip(*dataset["x"], strict=True)]
    if dataset["degree"]:
        rows = [[x**power for power in range(1, dataset["degree"] + 1)] for (x,) in rows]
    return [[Fraction(1), *row] for row in rows] if dataset["intercept"] else rows


def solve(A, y):
    """Return the exact least-squares coefficients and (A'A)⁻¹, by Gauss-Jordan elimination on (A'A | A'y | I)."""
    p = len(A[0])
    M = [
        [sum(row[i] * row[j] for row in A) for j in range(p)]
        + [sum(row[i] * target for row, target in zip(A, y, strict=True))]
        + [Fraction(i == j) for j in range(p)]
        for i in range(p)
    ]
    for k in range(p):
        # A'A is positive definite, so no pivot vanishes.
        M[k] = [value / M[k][k] for value in M[k]]
        for i in range(p):
            if i != k:
                M[i] = [value - M[i][k] * pivot for value, pivot in zip(M[i], M[k], strict=True)]
    return [row[p] for row in M], [row[p + 1 :] for row in M]


def exact(dataset):
    """Return every certified quantity of a data set from the exact solution, to 40 digits."""
    A, y = design(dataset), [Fraction(value) for value in dataset["y"]]
    coef, inverse = solve(A, y)
    residual = sum((target - sum(a * b for a, b in zip(row, coef, strict=True))) ** 2 for row, target in zip(A, y, strict=True))
    variance = residual / (len(y) - len(coef))
    # Without an intercept NIST measures the sum of squares from zero.
    middle = sum(y) / len(y) if dataset["intercept"] else 0
    return {
        "coef": [decimal(value) for value in coef],
        "std_err": [root(variance * inverse[j][j]) for j in range(len(coef))],
        "residual_std": root(variance),
        "r_squared": decimal(1 - residual / sum((target - middle) ** 2 for target in y)),
        "residual_df": len(y) - len(coef),
    }


def decimal(value):
    with localcontext(prec=40):
        return Decimal(value.numerator) / Decimal(value.denominator)


def root(value):
    with localcontext(prec=40):
        return decimal(value).sqrt()


def units(printed, value):
    """Return how far a printed number is from a value, in units of its last digit."""
    printed = Decimal(printed)
    return float(abs(printed - value).scaleb(-printed.as_tuple().exponent))


def check(dataset):
    """Raise unless the file was read whole and its certified values are those of the exact solution."""
    name, truth = dataset["name"], exact(dataset)
    if len(dataset["y"]) != dataset.pop("n_rows") or dataset["residual_df"] != truth["residual_df"]:
        raise ValueError(f"{name}: the number of rows or of coefficients is not the one the file announces")
    worst = {}
    for key in ("coef", "std_err", "residual_std", "r_squared"):
        printed, values = (dataset[key], truth[key]) if isinstance(dataset[key], list) else ([dataset[key]], [truth[key]])
        worst[key] = max(units(p, v) for p, v in zip(printed, values, strict=True))
    print(f"{name:9s}" + "  ".join(f"{key} {distance:.3f}" for key, distance in worst.items()) + "  units of the last digit")
    if max(worst.values()) > 0.5:
        raise ValueError(f"{name}: a certified value is not the exact solution, rounded")


def main(folder):
    datasets = [read(Path(folder) / f"{name}.dat") for name in NAMES]
    for dataset in datasets:
        check(dataset)
    text = json.dumps(datasets, indent=1)
    # A list of strings takes one line: a column of data each.
    text = re.sub(r"\[\s+(\"[^\[\]]*?\")\s+\]", lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text)
    Path(__file__).with_name("nist.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
