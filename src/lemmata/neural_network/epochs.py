"""An epoch: all rows once, block after block, wherever they live; and what is carried from block to block.

The order of the visits and the rows that are held out depend on the seed, the number of the epoch and the sizes of the blocks,
and on nothing else; so a fit can be repeated, from memory, from Parquet or on Dask.
"""

from typing import NamedTuple

import numpy as np

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
    batch_size: int
    shuffle: bool
    mean: np.ndarray | None
    scale: np.ndarray | None
    held_out: float
    seed: int


class Going(NamedTuple):
    """What is carried from block to block in an epoch."""

    moving: Moving
    rng: np.random.Generator
    block: int
    total: float
    weight: float


def visit_block(X, Y, weight, going, own, lesson):
    """Train on the rows of a block, but for those held out; return (what is carried on, what the block keeps)."""
    rows = np.flatnonzero(~held_out(lesson, going.block, X.shape[0]))
    if len(rows) == 0:
        return going._replace(block=going.block + 1), own
    if len(rows) < X.shape[0]:
        X, Y, weight = X[rows], Y[rows], None if weight is None else weight[rows]
    dtype = going.moving.parameters.dtype
    table, Y = rows_of(X, lesson.mean, lesson.scale, dtype), np.ascontiguousarray(Y, dtype=dtype)
    shape, loss, dropout, steps = lesson.plan
    plan = Plan(Shape(*shape), loss, dropout, Steps(*steps))
    moved, total, mass = train_block(plan, going.moving, table, Y, weight, lesson.batch_size, lesson.shuffle, going.rng)
    return going._replace(moving=moved, block=going.block + 1, total=going.total + total, weight=going.weight + mass), own


def held_out(lesson, block, n):
    """Mark the rows of a block that are held out: the same in every epoch."""
    if lesson.held_out == 0:
        return np.zeros(n, dtype=bool)
    return np.random.default_rng([lesson.seed, 1, block]).random(n) < lesson.held_out


def judge_block(X, Y, weight, going, own, lesson, parameters, marks):
    """Add up what a score is made of over the rows of a block that are held out; return ((block, sums), what it keeps)."""
    block, sums = going
    rows = np.flatnonzero(held_out(lesson, block, X.shape[0]))
    if len(rows) == 0:
        return (block + 1, sums), own
    shape = Shape(*lesson.plan[0])
    outputs = outputs_of(shape, parameters, rows_of(X[rows], lesson.mean, lesson.scale, parameters.dtype))
    w = np.ones(len(rows)) if weight is None else np.asarray(weight[rows], dtype=float)
    return (block + 1, sums + marks(outputs, np.asarray(Y, dtype=float)[rows], w)), own


def parameters_of(state):
    """Return the parameters of a state: the best ones if rows were held out, else the last; of L-BFGS, where it is."""
    if not isinstance(state, State):
        return state[0]
    return state.kept if len(state.kept) else state.parameters
