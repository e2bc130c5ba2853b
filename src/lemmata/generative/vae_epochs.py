"""An epoch of a variational autoencoder: all rows once, block after block, wherever they live.

The order of the visits and the draws depend on the seed, the number of the epoch and the sizes of the blocks, on nothing else;
so a fit can be repeated, from memory, from Parquet or on Dask.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from lemmata.generative.vae_kernels import train_block
from lemmata.linear_model.stochastic import fold
from lemmata.neural_network.passes import rows_of
from lemmata.neural_network.steps import Moving


class State(NamedTuple):
    """A fit after some epochs."""

    epoch: int
    parameters: np.ndarray
    moments1: np.ndarray
    moments2: np.ndarray
    steps: int
    variance: float
    best: float  # least loss of an epoch
    idle: int  # epochs since it fell by more than the tolerance


class Going(NamedTuple):
    """What is carried from block to block in an epoch."""

    moving: Moving
    variance: float
    rng: np.random.Generator
    total: float
    weight: float


def visit_block(X, weight, going, own, lesson):
    """Train on the rows of a block; return (what is carried on, what the block keeps)."""
    rows = rows_of(X, lesson.mean, lesson.scale, float)
    options = (lesson.unit, lesson.batch_size, lesson.shuffle, going.rng)
    moved, variance, total, mass = train_block(lesson.plan, going.moving, going.variance, rows, weight, *options)
    return Going(moved, variance, going.rng, going.total + total, going.weight + mass), own


def epoch(blocks, lesson, state, tol):
    """Visit all rows once; return the state and minus the mean bound of the visits, with the penalty."""
    moving = Moving(state.parameters, state.moments1, state.moments2, state.steps)
    going = Going(moving, state.variance, np.random.default_rng([lesson.seed, state.epoch]), 0.0, 0.0)
    going, _ = fold(blocks, partial(visit_block, lesson=lesson), going)
    loss = going.total / going.weight
    if not (np.isfinite(loss) and np.isfinite(going.moving.parameters).all()):
        raise ValueError(f"The steps left the numbers in epoch {state.epoch + 1}; lower learning_rate_init, or set clip.")
    idle = 0 if loss < state.best - (tol or 0.0) else state.idle + 1
    return State(state.epoch + 1, *going.moving, going.variance, min(loss, state.best), idle), loss
