"""Make supermarket.npz of supermarket.arff, which Debian's package weka brings: `python make_supermarket.py supermarket.arff`.

4,627 baskets of a supermarket in New Zealand; 216 departments and products that are bought (t) or not (?), and the size of the
basket (low or high), of which "high" is kept as an item.
"""

import sys
from pathlib import Path

import numpy as np


def main(source):
    """Read the table, and write its bits and names."""
    lines = Path(source).read_text(encoding="latin-1").splitlines()
    names = [line.split("'")[1] if "'" in line else line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    rows = [line.split(",") for line in lines[start + 1 :] if line.strip()]
    table = np.array([[cell.strip() in ("t", "high") for cell in row] for row in rows])
    bits = np.packbits(table, axis=1)
    np.savez_compressed(Path(__file__).with_name("supermarket.npz"), bits=bits, names=np.array(names))
    print(table.shape, int(table.sum()))


if __name__ == "__main__":
    main(sys.argv[1])
