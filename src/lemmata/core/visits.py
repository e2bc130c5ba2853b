"""Visits of rows by algorithms that learn row after row: what a weight of one is, and how often each row comes.

A weight of k is k visits, and what is left below one is a visit that counts less. Weights that are all below one are no counts,
and are taken relative to their mean: that of the table, wherever its blocks are cut.
"""

from typing import Any

import numpy as np

from lemmata.core.blocks import Blocks, Largest
from lemmata.core.data import Array

ROUNDING = 1e-12  # relative: of a mean and a quotient
MOST = 10**8  # visits of a block: their order and their shares take some gigabytes


def _weights_block(X: Any, *aligned: Any) -> tuple[Largest, float, int]:
    """Largest weight of a block, sum of the weights, and number of rows."""
    weight, n = aligned[-1], X.shape[0]
    return (Largest(1.0), float(n), n) if weight is None else (Largest(float(weight.max())), float(weight.sum()), n)


def unit_of(blocks: Blocks) -> tuple[float, float]:
    """Return the weight of one visit, and the weight of all rows in visits; weights are the last of what blocks hold.

    Examples
    --------
    >>> unit_of(Blocks.of(np.eye(2), np.array([3.0, 1.0]))), unit_of(Blocks.of(np.eye(2), np.array([0.3, 0.1])))
    ((1.0, 4.0), (0.2, 2.0))
    """
    largest, total, n = blocks.reduce(_weights_block)
    return (1.0, total) if largest.value >= 1 else (total / n, float(n))


def in_units(weight: Any, unit: float) -> Array:
    """Return weights in visits; a whole number but for rounding is one, since a visit more has draws of its own.

    Examples
    --------
    >>> in_units(np.array([0.3, 0.6, 0.1]), 0.1)
    array([3., 6., 1.])
    """
    times = np.asarray(weight, dtype=float) / unit
    whole = np.round(times)
    return np.where(np.abs(times - whole) <= ROUNDING * times, whole, times)


def visits_of(weight: Any) -> tuple[Array, Array]:
    """Return the number of the row of each visit, in the order of the rows, and the share of a visit that each counts.

    Examples
    --------
    >>> visits_of([2.5, 0.0, 1.0])
    (array([0, 0, 0, 2]), array([1. , 1. , 0.5, 1. ]))
    """
    weight = np.asarray(weight, dtype=float)
    counts = np.ceil(weight)
    if counts.sum() > MOST:
        raise ValueError(
            f"A weight of k is k visits, and the weights of a block of rows add up to {counts.sum():.3g}: divide sample_weight "
            "by a number that leaves fewer."
        )
    rows, shares = np.repeat(np.arange(len(weight)), counts.astype(np.int64)), np.ones(int(counts.sum()))
    some = counts > 0
    shares[np.cumsum(counts[some]).astype(np.int64) - 1] = (weight - (counts - 1))[some]
    return rows, shares
