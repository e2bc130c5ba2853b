"""Write german_credit.csv from Weka's file of the German credit data.

    python tests/reference/make_german_credit.py /usr/share/doc/weka/examples/credit-g.arff

Weka spells out the values of the qualitative columns; here they have the codes of the original again, A11, A12, … for the first
column, in the order in which the file declares them. Before it is written, every value must be a declared one, the first row
must be that of the original, and the known totals must come out: 1,000 rows, 700 good and 300 bad.
"""

import csv
import re
import sys
from pathlib import Path

FROM_ZERO = (3, 4)  # columns whose codes begin with 0: A30, A31, …
FIRST = "A11,6,A34,A43,1169,A65,A75,4,A93,A101,4,A121,67,A143,A152,2,A173,1,A192,A201,good"


def read(path):
    """Return the declared columns (name, allowed values or None for numbers) and the rows."""
    lines = [line for line in path.read_text(encoding="latin-1").splitlines() if line.strip() and not line.startswith("%")]
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    columns = []
    for line in lines[:start]:
        if match := re.match(r"@attribute\s+(\w+)\s+(\{.*\}|numeric)", line):
            name, kind = match.groups()
            columns.append((name, None if kind == "numeric" else fields(kind.strip("{}"))))
    return columns, [fields(line) for line in lines[start + 1 :]]


def fields(line):
    """Split a line at its commas, outside of single quotes."""
    return [field.strip() for field in next(csv.reader([line], quotechar="'", skipinitialspace=True))]


def coded(value, column, allowed):
    """Give a value its code in the original; numbers and the class stay as they are."""
    return value if allowed is None or column == 21 else f"A{column}{allowed.index(value) + (column not in FROM_ZERO)}"


def main(source):
    """Check what was read, and write it."""
    columns, rows = read(Path(source))
    assert len(columns) == 21, "20 columns and the class"
    assert len(rows) == 1000
    for row in rows:
        assert len(row) == len(columns)
        for value, (name, allowed) in zip(row, columns, strict=True):
            assert value.isdigit() if allowed is None else value in allowed, (name, value)
    assert [sum(row[-1] == label for row in rows) for label in ("good", "bad")] == [700, 300]
    rows = [
        [coded(value, j, allowed) for j, (value, (_, allowed)) in enumerate(zip(row, columns, strict=True), 1)] for row in rows
    ]
    assert rows[0] == FIRST.split(",")
    with open(Path(__file__).with_name("german_credit.csv"), "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for name, _ in columns])
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
