"""Columns sorted once: the elements from which an exact tree reads its splits.

An element is one word, rank · 2³⁶ + row · 2⁸ + class: sorted by value, it names the row and carries its class, so that a scan
over a node reads one stream and nothing else. Ranks count the distinct values of a column; equal values have equal ranks, and a
missing value has the rank 2²⁸ − 1, behind all others.

To sort, the upper half of each number (as bits that order like it) and its row are packed into one word, which NumPy sorts
several times faster than numbers indirectly; runs of equal halves are then sorted by the numbers themselves.
"""

import numpy as np

from lemmata.core.kernel import kernel

RANK, ROW = np.uint64(36), np.uint64(8)
ROWS = np.uint64(2**28 - 1)
CLASS = np.uint64(255)
MISSING = 2**28 - 1  # rank of a missing value
SHORT = 32  # up to so many equal halves are sorted by insertion
SIGN, HIGH, ROW_HALF = np.uint64(2**63), np.uint64(2**64 - 2**32), np.uint64(2**32 - 1)


@kernel
def keys(bits, out):
    """Pack the upper halves of numbers, as bits that order like them, with the numbers of their rows."""
    for i in range(len(bits)):
        b = bits[i]
        ordered = ~b if b & SIGN else b | SIGN
        out[i] = (ordered & HIGH) | np.uint64(i)


@kernel
def unpack_rows(packed, x, rows):
    """Unpack rows in the order of x; tell whether it was done: not if many numbers differ in their last digits only."""
    n = len(packed)
    for i in range(n):
        rows[i] = packed[i] & ROW_HALF
    start = 0
    for i in range(1, n + 1):
        if i < n and (packed[i] & HIGH) == (packed[start] & HIGH):
            continue
        if i - start <= SHORT:
            for j in range(start + 1, i):
                r, v, k = rows[j], x[rows[j]], j - 1
                while k >= start and x[rows[k]] > v:
                    rows[k + 1] = rows[k]
                    k -= 1
                rows[k + 1] = r
        else:
            v = x[rows[start]]
            for j in range(start + 1, i):
                if x[rows[j]] != v and v == v:
                    return False
        start = i
    return True


def order_of(x):
    """Return the rows in the order of their numbers, equal ones as they stand, missing ones last.

    Examples
    --------
    >>> order_of(np.array([2.0, np.nan, -1.0, 2.0]))
    array([2, 0, 3, 1])
    """
    x = np.where(np.isnan(x), np.nan, x + 0.0)  # one NaN of the many, one zero of the two
    packed, rows = np.empty(len(x), dtype=np.uint64), np.empty(len(x), dtype=np.int64)
    keys(x.view(np.uint64), packed)
    packed.sort()
    return rows if unpack_rows(packed, x, rows) else np.argsort(x, kind="stable")


@kernel
def pack(x, rows, labels, elements, values):
    """Write the elements of a column and its distinct values; return how many there are."""
    count = 0
    for i in range(len(rows)):
        row = rows[i]
        v = x[row]
        if v != v:
            rank = MISSING
        else:
            if count == 0 or v != values[count - 1]:
                values[count] = v
                count += 1
            rank = count - 1
        elements[i] = (np.uint64(rank) << RANK) | (np.uint64(row) << ROW) | np.uint64(labels[row])
    return count
