"""The iteration of a non-negative factorization: passes over the rows that improve W, and H between them.

Plain alternation converges slowly where the two factors trade with each other, so each pass looks at H ahead of where it is,
by a step in the direction that it came from [1]. If the loss there is larger than at the last pass, the pass is done again at
H itself, where it cannot be: the loss never rises, and the momentum is lowered. Each block keeps its rows of W where it
lives.

[1] Ang & Gillis, Neural Computation 31 (2019).
"""

from typing import Any, NamedTuple

import numpy as np

FIRST, FASTER, LIFTED, SLOWER = 0.5, 1.05, 1.01, 1.5  # momentum at first, its growth, that of its ceiling, its cut; from [1]


class State(NamedTuple):
    """H, a bolder one, where the next pass looks, the loss of the last pass, momentum and its ceiling, and W by blocks."""

    H: Any
    bold: Any
    ahead: Any
    loss: float
    momentum: float
    ceiling: float
    W: Any


def first_state(H, W, momentum):
    """Begin at H, and at W by blocks if it is given."""
    return State(H, H, H, np.inf, FIRST if momentum else 0.0, 1.0, W)


class Memory:
    """What blocks keep of their rows from pass to pass: where it was made or, if portable, a plain value for a checkpoint."""

    def __init__(self, blocks, portable):
        self.blocks, self.portable = blocks, portable

    def by_blocks(self, W):
        """Give W in the form in which `Blocks` keep it."""
        return W if W is None or not self.portable else dict(enumerate(W))

    def kept(self, W):
        """Give W, as `Blocks` keep it, in the form that a state has."""
        if not self.portable:
            return W
        if self.blocks.home == "dask":
            import dask

            return tuple(dask.compute(*W))
        return tuple(W[i] for i in range(len(W)))


class Descent(Memory):
    """Steps of `iterate`.

    Parameters
    ----------
    loss : `Squared` or `Divergence`.
    total : What the loss needs to know of the table: Σ s m x² or Σ s m x.
    portable : Whether W must be a plain value, ready for a checkpoint, rather than stay where it was made.
    """

    def __init__(self, blocks, loss, total, portable):
        super().__init__(blocks, portable)
        self.loss, self.total = loss, total

    def step(self, state):
        """Improve W where H is ahead, or where it is if that was too far, and then H."""
        before = self.by_blocks(state.W)
        at, momentum, ceiling = state.ahead, state.momentum, state.ceiling
        value, sums, W = self._pass(before, at)
        if value > state.loss and at is not state.H:
            at, momentum, ceiling = state.H, momentum / SLOWER, momentum
            value, sums, W = self._pass(before, at)
        else:
            momentum, ceiling = min(ceiling, FASTER * momentum), min(1.0, LIFTED * ceiling)
        H, bold, moved_H, moved_W = self.loss.improve(sums, at)
        ahead = self.loss.ahead(bold, state.bold, momentum) if momentum else H
        return State(H, bold, ahead, value, momentum, ceiling, self.kept(W)), value, max(moved_H, moved_W)

    def _pass(self, W, H):
        sums, W = self.blocks.sweep(self.loss.pass_block, W, H)
        return self.loss.objective(sums, H, self.total), sums, W
