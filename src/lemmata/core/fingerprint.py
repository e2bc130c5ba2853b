"""A number that rows have in any order: by it a table is known again without being kept."""

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: a product with it carries a change to all higher bits


def fingerprint(*arrays: NDArray[Any]) -> int:
    """Sum a hash of each row over the rows; arrays stand side by side.

    Other rows have another number, but for a chance of one in billions.

    Examples
    --------
    >>> X, y = np.array([[1.0, np.nan], [2.0, 0.0]]), np.array(["no", "yes"], dtype=object)
    >>> fingerprint(X, y) == fingerprint(X[::-1], y[::-1]), fingerprint(X, y) == fingerprint(X, y[::-1])
    (True, False)
    """
    rows = np.zeros(len(arrays[0]), np.uint64)
    for array in arrays:
        for column in array.reshape(len(array), -1).T:
            rows = (rows ^ _bits(column)) * ODD
            rows ^= rows >> np.uint64(32)
    return int(rows.sum())


def _bits(column: NDArray[Any]) -> NDArray[np.uint64]:
    """Give equal entries equal bits; zeros have no sign, and missing numbers are alike."""
    if column.dtype.kind not in "biuf":
        names, places = np.unique(column.astype(str), return_inverse=True)
        return np.array([crc32(name.encode()) for name in names], np.uint64)[places]
    numbers = column.astype(float) + 0.0
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
