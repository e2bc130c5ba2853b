"""A split carried out: which rows go left, every column parted stably, and the threshold between the sides."""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.presort import MISSING, RANK, ROW, ROWS
from lemmata.tree.scan_classes import TIE, of_row

U1, SIX, LOW6 = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel
def mark_left(data, a, b, column, cut, missing_left, chosen, marks):
    """Mark the rows that go left; return how many do."""
    count = 0
    if data.counted_at[column] < 0:
        e = data.elements[data.sorted_at[column]]
        for i in range(a, b):
            rank = np.int64(e[i] >> RANK)
            left = rank <= cut or (missing_left and rank == MISSING)
            marks[(e[i] >> ROW) & ROWS] = left
            count += left
        return count
    own, last, categorical = data.codes[data.counted_at[column]], data.n_codes[column], data.categorical[column]
    e = data.elements[len(data.elements) - 1]
    for i in range(a, b):
        row = (e[i] >> ROW) & ROWS
        c = own[row]
        if c == last:
            left = missing_left
        elif categorical:
            left = ((chosen[np.uint64(c) >> SIX] >> (np.uint64(c) & LOW6)) & U1) > 0
        else:
            left = c <= cut
        marks[row] = left
        count += left
    return count


@kernel
def part(elements, first, last, a, b, marks, spare):
    """Part the elements of some columns into those that go left and the rest, each in order."""
    for k in range(np.uint64(first), np.uint64(last)):
        front, r = np.uint64(a), np.uint64(0)
        for i in range(np.uint64(a), np.uint64(b)):
            x = elements[k, i]
            go = np.uint64(marks[(x >> ROW) & ROWS])
            elements[k, front] = x
            spare[r] = x
            front += go
            r += U1 - go
        for i in range(r):
            elements[k, front + i] = spare[i]


@kernel
def has_missing(data, a, b, column):
    """Tell whether a row of the node misses the value of a column."""
    if not data.missing_at[column]:
        return False
    if data.counted_at[column] < 0:
        return (data.elements[data.sorted_at[column]][b - 1] >> RANK) == MISSING
    own, last, rows = data.codes[data.counted_at[column]], data.n_codes[column], data.elements[len(data.elements) - 1]
    count = 0
    for i in range(a, b):
        count += own[(rows[i] >> ROW) & ROWS] == last
    return count > 0


@kernel
def heavier(data, rows, a, b, marks):
    """Tell whether the left side has more than half of the weight, by more than rounding."""
    weight, total, left = data.weight, 0.0, 0.0
    for i in range(a, b):
        row = (rows[i] >> ROW) & ROWS
        w = of_row(weight, row)
        total += w
        left += w * marks[row]
    return 2.0 * left > total * (1.0 + TIE)


@kernel
def threshold_of(data, a, b, column, cut, values, offsets):
    """Give the midpoint of the last value on the left and the first on the right; infinity if only missing ones follow."""
    next_rank = MISSING
    if data.counted_at[column] < 0:
        e = data.elements[data.sorted_at[column]]
        low, high = a, b  # the first element beyond the cut, by halving
        while low < high:
            middle = (low + high) // 2
            if np.int64(e[middle] >> RANK) <= cut:
                low = middle + 1
            else:
                high = middle
        if low < b:
            next_rank = np.int64(e[low] >> RANK)
    else:
        own, last, rows = data.codes[data.counted_at[column]], data.n_codes[column], data.elements[len(data.elements) - 1]
        for i in range(a, b):
            c = np.int64(own[(rows[i] >> ROW) & ROWS])
            if cut < c < last and c < next_rank:
                next_rank = c
    if next_rank == MISSING:
        return np.inf
    lower, upper = values[offsets[column] + cut], values[offsets[column] + next_rank]
    middle = 0.5 * lower + 0.5 * upper
    return middle if lower <= middle < upper else lower
