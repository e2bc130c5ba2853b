"""Which rows the resamples have: drawn in tables of several resamples, each table from a generator of its own.

How many resamples a table has depends on the number of rows only, so the resamples do not depend on who draws them, and all
can be drawn again from one seed.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from lemmata.core.random import generator, spawn
from lemmata.core.xoshiro import seed as xoshiro_state
from lemmata.model_selection.bootstrap_kernels import draw_balanced, draw_rows, draw_runs

RESAMPLING = ("independent", "balanced", "moving-block", "circular-block")
TABLE = 1 << 16  # draws of a table: a quarter of a megabyte, which stays in the processor's cache
TALLEST = 512  # resamples of a table, so that threads have work to share
MOST = 1 << 28  # draws that are held at once, where resamples are balanced: a gigabyte


class Draws(NamedTuple):
    """What settles every resample: groups of rows, the way of drawing, and the seed."""

    members: np.ndarray  # rows, one group after the other
    bounds: np.ndarray  # where each group begins, and the end
    resampling: str
    length: int
    n_resamples: int
    seed: int

    @property
    def in_runs(self):
        """Whether rows are those of a series."""
        return self.resampling in ("moving-block", "circular-block")

    @property
    def n_rows(self):
        """Rows of a resample."""
        return int(self.bounds[-1])

    def tasks(self):
        """List the tables: (generator, resamples), or the rows themselves where they are balanced over all."""
        height = min(max(TABLE // self.n_rows, 1), TALLEST)
        if self.resampling == "balanced":
            table = np.empty((self.n_resamples, self.n_rows), dtype=np.int32)
            draw_balanced(xoshiro_state(generator(self.seed)), self.members, self.bounds, table)
            return [table[i : i + height] for i in range(0, self.n_resamples, height)]
        sizes = [min(height, self.n_resamples - i) for i in range(0, self.n_resamples, height)]
        return list(zip(spawn(generator(self.seed), len(sizes)), sizes, strict=True))

    def table(self, task):
        """Give the rows of a table: (resamples, rows)."""
        if isinstance(task, np.ndarray):
            return task
        rng, size = task
        out = np.empty((size, self.n_rows), dtype=np.int32)
        state = xoshiro_state(rng)
        if self.in_runs:
            draw_runs(state, self.members, self.bounds, self.length, self.resampling == "circular-block", out)
        else:
            draw_rows(state, self.members, self.bounds, out)
        return out


def lay_out(groups, resampling, length, n_resamples, seed):
    """Settle the resamples of rows in groups.

    Parameters
    ----------
    groups : (n_rows,), number of the group of each row.
    length : Rows of a run; None for the default.

    Examples
    --------
    >>> draws = lay_out(np.array([0, 1, 0, 1]), "independent", None, 100, 0)
    >>> table = draws.table(draws.tasks()[0])
    >>> table.shape, sorted(set(table[:, :2].ravel().tolist()))
    ((100, 4), [0, 2])
    """
    if resampling not in RESAMPLING:
        raise ValueError(f"resampling must be one of {', '.join(RESAMPLING)}; got {resampling!r}.")
    members, n_rows = np.argsort(groups, kind="stable"), len(groups)
    sizes = np.bincount(groups)
    bounds = np.append(0, np.cumsum(sizes))
    if sizes.min() < 2:
        raise ValueError("A group of one row has no resamples but itself: every sample and stratum must have 2 rows or more.")
    if resampling == "balanced" and n_rows * n_resamples > MOST:
        raise ValueError(
            f"Balanced resamples are drawn all at once, and {n_resamples} of {n_rows} rows are too many; "
            'use resampling="independent" or fewer of them.'
        )
    in_runs = resampling in ("moving-block", "circular-block")
    if not in_runs and length is not None:
        raise ValueError(f'block_length={length} is for resampling="moving-block" or "circular-block"; it is {resampling!r}.')
    if in_runs and length is None:  # the rate that is right for variances and biases; only its constant depends on the series
        length = max(int(np.ceil(sizes.min() ** (1 / 3))), 2) if sizes.min() > 2 else 1
    if in_runs and not (isinstance(length, Integral) and 1 <= length < sizes.min()):
        most = f"{sizes.min() - 1}, less than the rows of each series"
        raise ValueError(f"block_length must be a whole number from 1 to {most}; got {length!r}.")
    return Draws(members, bounds, resampling, length or 1, n_resamples, seed)
