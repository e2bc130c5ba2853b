"""Training by mini-batches: what a batch is, how threads share it, and one step of a rule for each.

A step lowers the mean of w ℓ over a batch plus α/2 ‖W‖² over the weight of the batch. A weight of k is k copies of a row, side
by side: the rows, in the order of their visits, are laid end to end, each as long as its weight, and the line is cut into
batches of equal length; a row that lies across a cut is in both batches, with its share.

The rows of a batch are cut into parts, their number fixed by the size of a batch alone; each part is carried forward and
backward by one thread, into a gradient of its own. The threads meet (`core.meeting`), add the gradients of the parts in their
order, piece by piece of the parameters, apply the rule to the pieces, and meet again. So nothing depends on how many threads
there are, and a thread leaves compiled code once in a block of rows.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import APART, new_marks, threads_that_meet, together
from lemmata.core.threads import serial_blas
from lemmata.core.xoshiro import seed as seed_words
from lemmata.neural_network.layers import (
    Room,
    Shape,
    backward,
    backward_to,
    bend,
    forward,
    forward_from,
    new_rooms,
    room_of,
    unit_rows,
)
from lemmata.neural_network.losses import finish
from lemmata.neural_network.sparse_layer import enter, entered, leave
from lemmata.neural_network.steps import PIECE, Steps, move, room_for_squares

SMALLEST = 16  # weight of a batch that is a tenth of the table
PART_WORK = 1 << 19  # multiplications of a part at least, some ten microseconds: less would be spent on meeting
MOST_PARTS = 8
MANY_PIECES = 8  # for each thread that helps to move parameters without a part of its own
FEWEST = 64  # rows of a part: fewer slow the products down


class Plan(NamedTuple):
    """What does not change while a network is trained."""

    shape: Shape
    loss: int
    dropout: float
    steps: Steps


class Rows(NamedTuple):
    """Rows of a block, dense or in CSR form (then `indices` and `indptr` are arrays), and how to center and scale them."""

    values: np.ndarray
    indices: np.ndarray | None
    indptr: np.ndarray | None
    mean: np.ndarray
    scale: np.ndarray


class Batches(NamedTuple):
    """The batches of a block: rows order[first:last], their weights, and the weight of the batch."""

    order: np.ndarray
    first: np.ndarray
    last: np.ndarray
    weight: np.ndarray  # of each row in the order
    before: np.ndarray  # weight of the rows before it
    cuts: np.ndarray  # where batches begin and end on the line of weights


class Work(NamedTuple):
    """What threads share while they train on a block."""

    marks: np.ndarray
    rooms: Room  # of the parts: arrays with one row for each
    gradients: np.ndarray  # (parts, parameters)
    weights: np.ndarray  # (parts, rows) of the rows of a part
    targets: np.ndarray  # (parts, rows, columns)
    losses: np.ndarray  # of each part, over the block
    squares: np.ndarray  # room for `move`
    states: np.ndarray  # of the draws of each part


def cut(weight, order, batch_size):
    """Cut rows, visited in an order, into batches of equal weight.

    Examples
    --------
    >>> batches = cut(np.array([3.0, 1.0, 2.0]), np.array([2, 0, 1]), 3)
    >>> [batches.order[a:b].tolist() for a, b in zip(batches.first, batches.last)]
    [[2, 0], [0, 1]]
    """
    n = len(order)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)[order]
    ends = np.cumsum(w)
    total = ends[-1]
    n_batches = int(min(max(np.ceil(total / batch_size), 1), n))
    cuts = np.round(np.arange(n_batches + 1) * (total / n_batches))  # whole numbers, so that whole weights stay whole
    cuts[-1] = total
    cuts = np.unique(cuts)
    first, last = np.searchsorted(ends, cuts[:-1], side="right"), np.searchsorted(ends, cuts[1:], side="left") + 1
    return Batches(np.asarray(order, np.int64), first, np.minimum(last, n), w, ends - w, cuts)


def batch_of(batch_size, total, largest):
    """Return the weight of a batch; if it is ours to choose, a tenth of the weight of the table, within bounds."""
    return int(min(max(total // 10, SMALLEST), largest)) if batch_size == "auto" else int(batch_size)


def n_parts(shape, batch_size, held=None):
    """Return into how many parts a batch is cut, by the multiplications it takes; none may take less than adding its gradient.

    Parameters
    ----------
    held : Numbers that a row holds, if rows are sparse.
    """
    products = shape.sizes[:-1] * shape.sizes[1:]
    work = batch_size * int(products.sum() if held is None else products[1:].sum() + held * shape.sizes[1])
    least = max(PART_WORK, MOST_PARTS * int(products.sum()))
    return int(np.clip(work // least, 1, min(MOST_PARTS, max(batch_size // FEWEST, 1))))


@kernel
def gather(values, indices, indptr, mean, scale, order, first, last, out):
    """Write rows, centered and scaled, to the front of a buffer; sparse ones become dense."""
    n, d = last - first, len(mean)
    rows = out[: n * d].reshape(n, d)
    for q in range(n):
        i = order[first + q]
        if indices is None:
            for f in range(d):
                rows[q, f] = (values[i, f] - mean[f]) * scale[f]
        else:
            for f in range(d):
                rows[q, f] = -mean[f] * scale[f]
            for p in range(indptr[i], indptr[i + 1]):
                rows[q, indices[p]] += values[0, p] * scale[indices[p]]


@kernel
def part_of(Y, batches, b, p, n_parts, work):
    """Give the rows of a part of batch b, as places in the order; write their targets, and their shares of the batch."""
    n = batches.last[b] - batches.first[b]
    first, last = batches.first[b] + n * p // n_parts, batches.first[b] + n * (p + 1) // n_parts
    low, high = batches.cuts[b], batches.cuts[b + 1]
    for q in range(first, last):
        begin = batches.before[q]
        overlap = min(begin + batches.weight[q], high) - max(begin, low)
        work.weights[p, q - first] = overlap / (high - low)
        for c in range(Y.shape[1]):
            work.targets[p, q - first, c] = Y[batches.order[q], c]
    return first, last


@kernel
def gradient_of(plan, parameters, values, indices, indptr, mean, scale, Y, batches, b, p, work):
    """Write the gradient of a part of batch b."""
    begin, end = part_of(Y, batches, b, p, len(work.gradients), work)
    n, room, gradient = end - begin, room_of(work.rooms, p), work.gradients[p]
    if n == 0:
        gradient[:] = 0.0
        return
    shape, last, order = plan.shape, len(plan.shape.codes), batches.order
    if indices is None:
        gather(values, indices, indptr, mean, scale, order, begin, end, room.values)
        forward(shape, parameters, room, n, plan.dropout, work.states[p])
    else:
        enter(shape, parameters, room, values, indices, indptr, mean, scale, order, begin, end)
        if last > 1:
            bend(shape, room, n, 1, plan.dropout, work.states[p])
        forward_from(1, shape, parameters, room, n, plan.dropout, work.states[p])
    outputs = unit_rows(shape, room.values, room.capacity, last, n)
    deltas = unit_rows(shape, room.deltas, room.capacity, last, n)
    targets, weights, code = work.targets[p], work.weights[p], shape.codes[last - 1]
    loss = finish(plan.loss, code, outputs, targets, weights, n, shape.sizes[last], deltas, room.chunk)
    work.losses[p] += loss * (batches.cuts[b + 1] - batches.cuts[b])
    if indices is None:
        backward(shape, parameters, room, n, plan.dropout, gradient, False)
    else:
        backward_to(1, shape, parameters, room, n, plan.dropout, gradient, False)
        leave(shape, room, values, indices, indptr, mean, scale, order, begin, end, gradient)


@kernel
def train(plan, moving, rows, Y, batches, work, me):
    """Take a step for each batch; thread `me` of as many as there are marks. Return the sum of the penalties."""
    n_threads, penalty = len(work.marks) // APART, 0.0
    for b in range(len(batches.first)):
        for p in range(me, len(work.gradients), n_threads):
            gradient_of(
                plan, moving.parameters, rows.values, rows.indices, rows.indptr, rows.mean, rows.scale, Y, batches, b, p, work
            )
        weight, t = batches.cuts[b + 1] - batches.cuts[b], moving.steps + b + 1
        penalty += move(plan.steps, moving, work.gradients, work.squares, weight, t, work.marks, me)
    return penalty


def new_work(plan, batches, parts, n_columns, dtype, n_parameters):
    """Make room for the batches of a block."""
    most = int(-(-(batches.last - batches.first).max() // parts))
    threads = min(threads_that_meet(), max(parts, n_parameters // (MANY_PIECES * PIECE)))
    return Work(
        new_marks(threads),
        new_rooms(plan.shape, parts, most, dtype, plan.dropout > 0),
        np.zeros((parts, n_parameters), dtype),
        np.zeros((parts, most), dtype),
        np.zeros((parts, most, n_columns), dtype),
        np.zeros(parts),
        room_for_squares(n_parameters),
        np.zeros((parts, 4), np.uint64),
    )


def train_block(plan, moving, rows, Y, weight, batch_size, shuffle, rng):
    """Visit the rows of a block once; return what moves, the sum of losses and penalties over the rows, and their weight.

    Parameters
    ----------
    shuffle : Whether the rows are visited in an order that is drawn, or in that of the table.
    rng : Draws it, and the units to drop.
    """
    n, sparse = len(Y), rows.indices is not None
    parts = n_parts(plan.shape, batch_size, len(rows.indices) / n if sparse else None)
    plan = plan._replace(shape=entered(plan.shape)) if sparse else plan
    batches = cut(weight, rng.permutation(n) if shuffle else np.arange(n), batch_size)
    work = new_work(plan, batches, parts, Y.shape[1], moving.parameters.dtype, len(moving.parameters))
    if plan.dropout > 0:
        work.states[:] = [seed_words(rng) for _ in work.states]
    penalties = []

    def share(me):
        penalty = train(plan, moving, rows, Y, batches, work, me)
        if me == 0:
            penalties.append(penalty)

    with serial_blas():
        together(share, work.marks)
    moved = moving._replace(steps=moving.steps + len(batches.first))
    return moved, float(work.losses.sum()) + penalties[0], float(batches.cuts[-1])
