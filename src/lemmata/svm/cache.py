"""Rows of a kernel matrix that does not fit in memory: computed in blocks when asked for, and kept while there is room.

Missing rows are computed together, all their columns in blocks, so that nearly all the work is multiplication of matrices; the
rows asked for longest ago make room. When some columns are not needed any more, the others move together in the same memory,
and more rows find room. Single precision halves the memory and doubles the speed; `decomposition` corrects what it loses.
"""

import numpy as np

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.core.kernel import kernel

ROWS, COLUMNS = 128, 1024  # of a block, which stays in the nearest memory while it is worked on
FEWEST = 32  # rows there is always room for


class KernelCache:
    """Rows of a kernel matrix between prepared rows.

    Parameters
    ----------
    kernel : The kernel.
    rows : Prepared rows in float32.
    size : Bytes of memory.
    """

    def __init__(self, kernel, rows, size):
        self.kernel, self.rows, self.columns = kernel, rows, rows
        n = len(rows)
        self._memory = np.empty(min(max(size // 4, FEWEST * n), n * n), np.float32)
        self._place = np.full(n, -1)  # the slot of a row, or −1
        self._clock = 0
        self._cut(n)

    def _cut(self, n_columns):
        """Cut the memory into slots of so many columns, without any row."""
        capacity = min(len(self._memory) // n_columns, len(self._place))
        self.store = self._memory[: capacity * n_columns].reshape(capacity, n_columns)
        self._owner = np.full(capacity, -1)  # the row in a slot, or −1
        self._used = np.zeros(capacity, dtype=int)  # when a slot was asked for last; 0 if never

    @property
    def capacity(self):
        """How many rows there is room for."""
        return len(self._owner)

    def slots(self, wanted):
        """Return where in the store these rows are, once they are there; not more of them than there is room for."""
        rows = np.unique(wanted)
        self._clock += 1
        there = self._place[rows]
        self._used[there[there >= 0]] = self._clock
        missing = rows[there < 0]
        if len(missing):
            free = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
            old = self._owner[free]
            self._place[old[old >= 0]] = -1
            self._owner[free], self._used[free], self._place[missing] = missing, self._clock, free
            self._compute(missing, free)
        return self._place[wanted]

    def _compute(self, missing, free):
        """Compute rows into their slots, block by block of columns."""
        ahead = self.rows[missing]

        def work(start):
            part = slice(start, start + COLUMNS)
            columns = self.columns[part]
            for first in range(0, len(missing), ROWS):
                some = slice(first, first + ROWS)
                put_rows(self.kernel.values(ahead[some], columns), self.store, free[some], start)

        threads.run(work, range(0, self.store.shape[1], COLUMNS), n_threads())

    def narrow(self, kept, columns):
        """Keep these columns only: numbers in the store, ascending, and the rows of the matrix that they are."""
        full = self.store.shape[1]
        held = np.flatnonzero(self._owner >= 0)
        held = held[np.isin(self._owner[held], columns)]
        owners, used = self._owner[held], self._used[held]
        move_together(self._memory, held, full, kept)
        self._place[:] = -1
        self._cut(len(kept))
        self._owner[: len(held)], self._used[: len(held)] = owners, used
        self._place[owners] = np.arange(len(held))
        self.columns = self.rows[columns]

    def widen(self):
        """Take all columns again; the rows that were kept are given up."""
        self._place[:] = -1
        self._cut(len(self._place))
        self.columns = self.rows


@kernel
def put_rows(block, store, slots, start):
    """Copy the rows of a block to their slots, from a column on."""
    for i in range(block.shape[0]):
        row = store[slots[i]]
        for j in range(block.shape[1]):
            row[start + j] = block[i, j]


@kernel
def move_together(memory, held, full, kept):
    """Move the kept columns of the held slots, both ascending, to the front of the memory, without gaps."""
    end = 0
    for slot in held:
        for column in kept:
            memory[end] = memory[slot * full + column]
            end += 1
