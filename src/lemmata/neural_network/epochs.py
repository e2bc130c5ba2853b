"""An epoch: all rows once, block after block, wherever they live; and what is carried from block to block.

The order of the visits and the rows that are held out depend on the seed, the number of the epoch and the sizes of the blocks,
and on nothing else; so a fit can be repeated, from memory, from Parquet or on Dask.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.visits import in_units
from lemmata.neural_network.layers import Shape
from lemmata.neural_network.passes import outputs_of, rows_of
from lemmata.neural_network.steps import Moving, Steps
from lemmata.neural_network.training import Plan, train_block


class State(NamedTuple):
    """A fit after some epochs."""

    epoch: int
    parameters: np.ndarray
    moments1: np.ndarray
    moments2: np.ndarray
    steps: int
    best: float  # least loss, or the highest score with the sign turned
    idle: int  # epochs since it fell by more than the tolerance
    kept: np.ndarray  # parameters at the best score; of no length if no rows are held out
    scores: tuple


class Lesson(NamedTuple):
    """What visits of a block need to know."""

    plan: tuple
    unit: float  # weight of a row that counts as one
    batch_size: int
    shuffle: bool
    mean: np.ndarray | None
    scale: np.ndarray | None
    held_out: int  # rows
    n_rows: int
    seed: int


class Going(NamedTuple):
    """What is carried from block to block in an epoch."""

    moving: Moving
    rng: np.random.Generator
    row: int  # where the block begins
    total: float
    weight: float


def visit_block(X, Y, weight, going, own, lesson):
    """Train on the rows of a block, but for those held out; return (what is carried on, what the block keeps)."""
    n, held = X.shape[0], held_out(lesson, going.row, X.shape[0])
    going = going._replace(row=going.row + n)
    if len(held) == n:
        return going, own
    if len(held):
        rows = np.delete(np.arange(n), held)
        X, Y, weight = X[rows], Y[rows], None if weight is None else weight[rows]
    weight = None if weight is None else in_units(weight, lesson.unit)
    dtype = going.moving.parameters.dtype
    table, Y = rows_of(X, lesson.mean, lesson.scale, dtype), np.ascontiguousarray(Y, dtype=dtype)
    shape, loss, dropout, steps = lesson.plan
    plan = Plan(Shape(*shape), loss, dropout, Steps(*steps))
    moved, total, mass = train_block(plan, going.moving, table, Y, weight, lesson.batch_size, lesson.shuffle, going.rng)
    return going._replace(moving=moved, total=going.total + total, weight=going.weight + mass), own


def held_out(lesson, start, n):
    """Return the rows of a block that are held out: the same in every epoch, and of all blocks as many as the lesson says."""
    before, after = (row * lesson.held_out // lesson.n_rows for row in (start, start + n))
    if after == before:
        return np.zeros(0, np.int64)
    return np.sort(np.random.default_rng([lesson.seed, 1, start]).choice(n, after - before, replace=False))


def judge_block(X, Y, weight, going, own, lesson, parameters, marks):
    """Add up what a score is made of over the rows of a block that are held out; return ((next row, sums), what it keeps)."""
    (start, sums), n = going, X.shape[0]
    rows = held_out(lesson, start, n)
    if len(rows) == 0:
        return (start + n, sums), own
    shape = Shape(*lesson.plan[0])
    outputs = outputs_of(shape, parameters, rows_of(X[rows], lesson.mean, lesson.scale, parameters.dtype))
    w = np.ones(len(rows)) if weight is None else np.asarray(weight[rows], dtype=float)
    return (start + n, sums + marks(outputs, np.asarray(Y, dtype=float)[rows], w)), own


def parameters_of(state):
    """Return the parameters of a state: the best ones if rows were held out, else the last; of L-BFGS, where it is."""
    if not isinstance(state, State):
        return state[0]
    return state.kept if len(state.kept) else state.parameters
