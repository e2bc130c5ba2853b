"""Training a variational autoencoder: the bound of a batch, its two gradients, and an epoch in one compiled call.

The encoder gives μ and log σ² of each row, the decoder the parameters of p(x|z). With ε ~ N(0, I) and z = μ + σε, one draw of
the bound of log p(x) and its derivatives with respect to what the encoder gives are

    L = log p(x|z) − KL,    KL = ½ Σ (μ² + σ² − 1 − log σ²)
    reparametrized   ∂/∂μ = g − μ,    ∂/∂ log σ² = ½ g ε σ − ½ (σ² − 1),         g = ∂ log p(x|z)/∂z                      [1]
    score            g and ½ g ε σ give way to (f − b) ε/σ and (f − b) ½ (ε² − 1),   f = log p(x|z)                       [2]

both right in the mean, for any b that does not know ε. The first needs the decoder's derivative, the second its value alone, at
the price of far more noise; b is the mean of f over the other draws of the row, or of the other rows if there is one draw [3].
A Gaussian has one variance for all columns; the best is the mean square of what the decoder misses, which is followed by an
average over about an epoch.

Threads share a batch as in `neural_network.training`: parts of it, their number fixed by the sizes, each with its own draws.

[1] Kingma & Welling, ICLR (2014). [2] Williams, Machine Learning 8 (1992). [3] Kool, van Hoof & Welling, ICLR workshop (2019).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import APART, new_marks, threads_that_meet, together
from lemmata.core.threads import serial_blas
from lemmata.core.xoshiro import seed as seed_words
from lemmata.generative.visits import fill_normals, lay_out
from lemmata.neural_network.layers import Room, Shape, backward, forward, new_rooms, room_of, unit_rows
from lemmata.neural_network.losses import SQUARED, finish
from lemmata.neural_network.steps import Steps, move, room_for_squares
from lemmata.neural_network.training import gather, n_parts, part_of

LOG_2PI = float(np.log(2 * np.pi))
LEAST = 1e-6  # noise variance, as a share of that of the columns: below, a decoder that misses nothing would never rest


class Plan(NamedTuple):
    """What does not change while an autoencoder is trained."""

    encoder: Shape
    decoder: Shape
    loss: int
    n_draws: int
    score: bool  # which gradient
    follows: bool  # whether the noise variance is that of what the decoder misses
    total: float  # weight of all rows
    steps: Steps


class Work(NamedTuple):
    """What threads share while they train on a block; the first axis is that of the parts of a batch."""

    marks: np.ndarray
    rooms: Room  # of the encoder
    decoders: Room
    gradients: np.ndarray
    weights: np.ndarray
    targets: np.ndarray  # rows are their own targets: of no width
    noise: np.ndarray
    losses: np.ndarray  # of each part, over the block
    missed: np.ndarray  # (2, parts), mean square of what the decoder misses, in this batch and in the last one
    squares: np.ndarray
    states: np.ndarray


@kernel
def place(codes, noise, n, k, n_draws, z):
    """Write z = μ + σε, all rows of the first draw before those of the second."""
    half = codes.dtype.type(0.5)
    for i in range(n):
        for j in range(k):
            mean, deviation = codes[2 * i * k + j], np.exp(half * codes[(2 * i + 1) * k + j])
            for draw in range(n_draws):
                q = (draw * n + i) * k + j
                z[q] = mean + deviation * noise[q]


@kernel
def decode(plan, n_draws, outputs, target, share, n, deltas, losses, chunk):
    """Turn what the decoder gives into −log p(x|z), up to a constant, of each row and draw; leave its derivatives.

    Return the sum weighted by the shares. Losses of single rows are written only if there is room for them.
    """
    total, d = 0.0, target.shape[1]
    code, one = plan.decoder.codes[-1], np.ones(1, outputs.dtype)
    for draw in range(n_draws):
        a, b = draw * n * d, (draw + 1) * n * d
        if len(losses) == 0:
            total += finish(plan.loss, code, outputs[a:b], target, share, n, d, deltas[a:b], chunk)
        else:
            for i in range(n):
                row = slice(a + i * d, a + (i + 1) * d)
                loss = finish(plan.loss, code, outputs[row], target[i : i + 1], one, 1, d, deltas[row], chunk)
                losses[draw * n + i] = loss
                total += share[i] * loss
                for f in range(d):
                    deltas[a + i * d + f] *= share[i]
    return total


@kernel
def less_baseline(losses, n, n_draws):
    """Subtract from each loss the mean over the other draws of its row, or over other rows if there is one draw."""
    if n_draws > 1:
        for i in range(n):
            total = 0.0
            for draw in range(n_draws):
                total += losses[draw * n + i]
            for draw in range(n_draws):
                losses[draw * n + i] = (n_draws * losses[draw * n + i] - total) / (n_draws - 1)
    elif n > 1:
        total = 0.0
        for i in range(n):
            total += losses[i]
        for i in range(n):
            losses[i] = (n * losses[i] - total) / (n - 1)


@kernel
def encode_back(codes, noise, pull, losses, weight, precision, n, k, n_draws, deltas):
    """Write the derivatives with respect to what the encoder gives, and return the weighted sum of KL.

    `pull` holds the derivatives with respect to z, unless there are losses of single rows and draws.
    """
    kind, total, by_score = codes.dtype.type, 0.0, len(losses) > 0
    half, one = kind(0.5), kind(1.0)
    for i in range(n):
        kl = 0.0
        for j in range(k):
            mean, log_variance = codes[2 * i * k + j], codes[(2 * i + 1) * k + j]
            deviation = np.exp(half * log_variance)
            by_mean, by_log = kind(0.0), kind(0.0)
            for draw in range(n_draws):
                q = (draw * n + i) * k + j
                e = noise[q]
                if by_score:
                    f = kind(losses[draw * n + i] * precision / n_draws) * weight[i]
                    by_mean += f * e / deviation
                    by_log += half * f * (e * e - one)
                else:
                    by_mean += pull[q]
                    by_log += half * pull[q] * e * deviation
            variance = deviation * deviation
            deltas[2 * i * k + j] = by_mean + weight[i] * mean
            deltas[(2 * i + 1) * k + j] = by_log + half * weight[i] * (variance - one)
            kl += mean * mean + variance - one - log_variance
        total += 0.5 * weight[i] * kl
    return total


@kernel
def bound_gradient(plan, parameters, variance, room, out, weight, noise, n, state, gradient):
    """Write the gradient of minus the weighted bound of n rows, which lie at the front of the room, with given draws.

    Return minus the bound, and the weighted mean over the columns and draws of the squares that the decoder misses.
    """
    encoder, decoder, draws = plan.encoder, plan.decoder, plan.n_draws
    split, k, d = encoder.starts[-1], decoder.sizes[0], decoder.sizes[-1]
    ahead, behind, last = parameters[:split], parameters[split:], len(decoder.codes)
    precision = 1.0 / variance if plan.loss == SQUARED else 1.0
    forward(encoder, ahead, room, n, 0.0, state)
    codes = unit_rows(encoder, room.values, room.capacity, len(encoder.codes), n)
    place(codes, noise, n, k, draws, unit_rows(decoder, out.values, out.capacity, 0, n * draws))
    forward(decoder, behind, out, n * draws, 0.0, state)
    share, total = np.empty(n, parameters.dtype), 0.0
    for i in range(n):
        share[i] = weight[i] * precision / draws
        total += weight[i]
    losses = np.empty(n * draws if plan.score else 0)
    loss = decode(
        plan,
        draws,
        unit_rows(decoder, out.values, out.capacity, last, n * draws),
        unit_rows(encoder, room.values, room.capacity, 0, n).reshape(n, d),
        share,
        n,
        unit_rows(decoder, out.deltas, out.capacity, last, n * draws),
        losses,
        out.chunk,
    )
    backward(decoder, behind, out, n * draws, 0.0, gradient[split:], not plan.score)
    if plan.score:
        less_baseline(losses, n, draws)
    missed = 2.0 * loss * variance / d
    if plan.loss == SQUARED:
        loss += 0.5 * total * d * (LOG_2PI + np.log(variance))
    loss += encode_back(
        codes,
        noise,
        unit_rows(decoder, out.deltas, out.capacity, 0, n * draws),
        losses,
        weight,
        precision,
        n,
        k,
        draws,
        unit_rows(encoder, room.deltas, room.capacity, len(encoder.codes), n),
    )
    backward(encoder, ahead, room, n, 0.0, gradient[:split], False)
    return loss, missed


@kernel
def gradient_of(plan, parameters, variance, rows, batches, b, p, work):
    """Write the gradient of a part of batch b."""
    first, last = part_of(work.targets[0], batches, b, p, len(work.gradients), work)
    n, room, out = last - first, room_of(work.rooms, p), room_of(work.decoders, p)
    if n == 0:
        work.gradients[p], work.missed[b % 2, p] = 0.0, 0.0
        return
    gather(rows.values, None, None, rows.mean, rows.scale, batches.order, first, last, room.values)
    noise = work.noise[p, : n * plan.n_draws * plan.decoder.sizes[0]]
    fill_normals(work.states[p], noise)
    loss, missed = bound_gradient(
        plan, parameters, variance, room, out, work.weights[p], noise, n, work.states[p], work.gradients[p]
    )
    work.losses[p] += loss * (batches.cuts[b + 1] - batches.cuts[b])
    work.missed[b % 2, p] = missed


@kernel
def train(plan, moving, variance, rows, batches, work, me):
    """Take a step for each batch; thread `me` of as many as there are marks. Return the sum of penalties, and the variance."""
    n_threads, n_parts, penalty = len(work.marks) // APART, len(work.gradients), 0.0
    for b in range(len(batches.first)):
        for p in range(me, n_parts, n_threads):
            gradient_of(plan, moving.parameters, variance, rows, batches, b, p, work)
        weight, t = batches.cuts[b + 1] - batches.cuts[b], moving.steps + b + 1
        penalty += move(plan.steps, moving, work.gradients, work.squares, weight, t, work.marks, me)
        if plan.follows:  # every thread for itself, from what no thread overwrites before all have moved once more
            missed = 0.0
            for p in range(n_parts):
                missed += work.missed[b % 2, p]
            variance = max(variance + max(1.0 / t, min(weight / plan.total, 1.0)) * (missed - variance), LEAST)
    return penalty, variance


def new_work(plan, batches, dtype, batch_size, n_parameters):
    """Make room for the batches of a block."""
    chain = plan.encoder._replace(sizes=np.concatenate([plan.encoder.sizes, plan.decoder.sizes]))
    parts = n_parts(chain, batch_size * plan.n_draws)
    most = int(-(-(batches.last - batches.first).max() // parts))
    draws, k = plan.n_draws, int(plan.decoder.sizes[0])
    return Work(
        new_marks(min(threads_that_meet(), parts)),
        new_rooms(plan.encoder, parts, most, dtype),
        new_rooms(plan.decoder, parts, most * draws, dtype),
        np.zeros((parts, n_parameters), dtype),
        np.zeros((parts, most), dtype),
        np.zeros((parts, most, 0), dtype),
        np.zeros((parts, most * draws * k), dtype),
        np.zeros(parts),
        np.zeros((2, parts)),
        room_for_squares(n_parameters),
        np.zeros((parts, 4), np.uint64),
    )


def train_block(plan, moving, variance, rows, weight, unit, batch_size, shuffle, rng):
    """Visit the rows of a block once.

    Returns
    -------
    moving, variance : After the last step.
    loss, weight : Sum of minus the bound and of the penalties over the visits, and their weight.
    """
    batches = lay_out(len(rows.values), weight, unit, batch_size, rng if shuffle else None)
    work = new_work(plan, batches, moving.parameters.dtype, batch_size, len(moving.parameters))
    work.states[:] = [seed_words(rng) for _ in work.states]
    results = [None]

    def share(me):
        result = train(plan, moving, variance, rows, batches, work, me)
        if me == 0:
            results[0] = result

    with serial_blas():
        together(share, work.marks)
    penalty, variance = results[0]
    moved = moving._replace(steps=moving.steps + len(batches.first))
    return moved, float(variance), float(work.losses.sum()) + penalty, float(batches.cuts[-1])
