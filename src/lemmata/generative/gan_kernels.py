"""Training an adversarial network: the losses of both players, their gradients, and an epoch in one compiled call.

With a the discriminator's logit, D = σ(a), a batch of rows x and as many draws G(z), the discriminator lowers

    mean log(1 + e^{−a(x)}) + mean log(1 + e^{a(G(z))}) + γ/2 mean (∂a(x)/∂u)²,    u ~ N(0, I),

minus the value of the game plus a penalty on its slope at the data, E_u (∂a/∂u)² = ‖∇a‖², without which the game need not
converge even near its end [1]; a derivative along u is a difference of two logits, so that back-propagation is all it takes.
The generator lowers mean log(1 − D(G(z))) ("minimax", which is flat where the discriminator is sure) or −mean log D(G(z))
("non_saturating", which is steep there) [2]. Both see rows through noise that is the same for all, if it is asked for: laws
that do not overlap have nothing to learn from each other [3]. The generator that is given away is an average over its last
steps: players circle around the end of the game, and the middle of the circle is nearer to it [4].

Threads share a batch as in `neural_network.training`: parts of it, their number fixed by the sizes, each with its own draws.

[1] Mescheder, Geiger & Nowozin, ICML (2018). [2] Goodfellow et al., NeurIPS (2014). [3] Sønderby, Caballero, Theis, Shi &
Huszár, ICLR (2017). [4] Yazıcı et al., ICLR (2019).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import APART, new_marks, threads_that_meet, together
from lemmata.core.threads import serial_blas
from lemmata.core.xoshiro import seed as seed_words
from lemmata.generative.visits import fill_normals, lay_out
from lemmata.neural_network.layers import Room, Shape, backward, forward, new_rooms, room_of, unit_rows
from lemmata.neural_network.steps import Moving, Steps, move, room_for_squares
from lemmata.neural_network.training import gather, n_parts, part_of

ASIDE = 0.01  # standard deviations between the two logits of a slope


class Plan(NamedTuple):
    """What does not change while both players are trained."""

    generator: Shape
    discriminator: Shape
    minimax: bool  # what the generator lowers
    noise: float  # standard deviation of what both see rows through
    penalty: float  # γ
    n_critic: int  # steps of the discriminator for each of the generator
    memory: float  # share of the averaged generator that a step keeps
    generator_steps: Steps
    discriminator_steps: Steps


class Players(NamedTuple):
    """Both players on their way; the arrays change in place."""

    generator: Moving
    discriminator: Moving
    average: np.ndarray


class Work(NamedTuple):
    """What threads share while they train on a block; the first axis is that of the parts of a batch."""

    marks: np.ndarray
    rooms: Room  # of the discriminator: rows, draws, and rows a step aside
    makers: Room  # of the generator
    gradients: np.ndarray  # of the discriminator
    pulls: np.ndarray  # of the generator
    weights: np.ndarray
    targets: np.ndarray  # of no width: nothing is to be predicted
    noise: np.ndarray
    losses: np.ndarray  # of each part, over the block
    squares: np.ndarray
    squares2: np.ndarray
    states: np.ndarray


@kernel
def blur(rows, deviation, noise, state):
    """Add normal numbers to rows."""
    if deviation > 0:
        fill_normals(state, noise[: len(rows)])
        size = rows.dtype.type(deviation)
        for q in range(len(rows)):
            rows[q] += size * noise[q]


@kernel
def make(generator, parameters, room, n, state, to):
    """Draw coordinates, carry them through the generator, and write the rows that come out."""
    fill_normals(state, unit_rows(generator, room.values, room.capacity, 0, n))
    forward(generator, parameters, room, n, 0.0, state)
    to[:] = unit_rows(generator, room.values, room.capacity, len(generator.codes), n)


@kernel
def softplus(a):
    """Return log(1 + eᵃ)."""
    return max(a, 0.0) + np.log1p(np.exp(-abs(a)))


@kernel
def chance(a):
    """Return 1/(1 + e⁻ᵃ)."""
    e = np.exp(-abs(a))
    return (1.0 if a >= 0 else e) / (1.0 + e)


@kernel
def judge(logits, weight, n, penalty, deltas):
    """Return the discriminator's loss on n rows, n draws, and with a penalty n rows aside; write derivatives by the logits."""
    kind, total, slope = logits.dtype.type, 0.0, 0.0
    for i in range(n):
        a, b, w = np.float64(logits[i]), np.float64(logits[n + i]), np.float64(weight[i])
        total += w * (softplus(-a) + softplus(b))
        deltas[i], deltas[n + i] = kind(w * (chance(a) - 1.0)), kind(w * chance(b))
        if penalty > 0:
            rise = (np.float64(logits[2 * n + i]) - a) / ASIDE
            slope += 0.5 * penalty * w * rise * rise
            pull = kind(penalty * w * rise / ASIDE)
            deltas[i] -= pull
            deltas[2 * n + i] = pull
    return total, slope


@kernel
def discriminator_gradient(plan, parameters, room, weight, n, state, gradient):
    """Write the discriminator's gradient for rows, draws and rows aside that lie in its room; return its loss and penalty."""
    shape, m = plan.discriminator, 3 * n if plan.penalty > 0 else 2 * n
    last = len(shape.codes)
    forward(shape, parameters, room, m, 0.0, state)
    logits, deltas = (
        unit_rows(shape, room.values, room.capacity, last, m),
        unit_rows(shape, room.deltas, room.capacity, last, m),
    )
    loss, slope = judge(logits, weight, n, plan.penalty, deltas)
    backward(shape, parameters, room, m, 0.0, gradient, False)
    return loss, slope


@kernel
def generator_gradient(plan, parameters, judge_parameters, maker, room, weight, n, state, scrap, gradient):
    """Write the generator's gradient for its draws, which lie in the discriminator's room; return its loss.

    `scrap` receives derivatives with respect to the discriminator, which are of no use here.
    """
    shape, generator, total = plan.discriminator, plan.generator, 0.0
    last = len(shape.codes)
    forward(shape, judge_parameters, room, n, 0.0, state)
    logits = unit_rows(shape, room.values, room.capacity, last, n)
    deltas, kind = unit_rows(shape, room.deltas, room.capacity, last, n), logits.dtype.type
    for i in range(n):
        a, w = np.float64(logits[i]), np.float64(weight[i])
        if plan.minimax:
            total -= w * softplus(a)
            deltas[i] = kind(-w * chance(a))
        else:
            total += w * softplus(-a)
            deltas[i] = kind(w * (chance(a) - 1.0))
    backward(shape, judge_parameters, room, n, 0.0, scrap, True)
    to = unit_rows(generator, maker.deltas, maker.capacity, len(generator.codes), n)
    to[:] = unit_rows(shape, room.deltas, room.capacity, 0, n)
    backward(generator, parameters, maker, n, 0.0, gradient, False)
    return total


@kernel
def judge_part(plan, players, rows, batches, b, p, work):
    """Write the discriminator's gradient for a part of batch b."""
    first, last = part_of(work.targets[0], batches, b, p, len(work.gradients), work)
    n, d, room, state = last - first, plan.discriminator.sizes[0], room_of(work.rooms, p), work.states[p]
    if n == 0:
        work.gradients[p] = 0.0
        return
    values = room.values
    gather(rows.values, None, None, rows.mean, rows.scale, batches.order, first, last, values)
    make(plan.generator, players.generator.parameters, room_of(work.makers, p), n, state, values[n * d : 2 * n * d])
    blur(values[: 2 * n * d], plan.noise, work.noise[p], state)
    if plan.penalty > 0:
        values[2 * n * d : 3 * n * d] = values[: n * d]
        blur(values[2 * n * d : 3 * n * d], ASIDE, work.noise[p], state)
    weight = work.weights[p]
    loss, _ = discriminator_gradient(plan, players.discriminator.parameters, room, weight, n, state, work.gradients[p])
    work.losses[p] -= loss * (batches.cuts[b + 1] - batches.cuts[b])


@kernel
def make_part(plan, players, batches, b, p, work):
    """Write the generator's gradient for a part of batch b, of which it knows the number of rows and their weights."""
    size, parts = batches.last[b] - batches.first[b], len(work.gradients)
    n, d = size * (p + 1) // parts - size * p // parts, plan.discriminator.sizes[0]
    if n == 0:
        work.pulls[p] = 0.0
        return
    room, maker, state = room_of(work.rooms, p), room_of(work.makers, p), work.states[p]
    make(plan.generator, players.generator.parameters, maker, n, state, room.values[: n * d])
    blur(room.values[: n * d], plan.noise, work.noise[p], state)
    generator_gradient(
        plan,
        players.generator.parameters,
        players.discriminator.parameters,
        maker,
        room,
        work.weights[p],
        n,
        state,
        work.gradients[p],
        work.pulls[p],
    )


@kernel
def train(plan, players, rows, batches, work, me):
    """Let the players take their steps, batch by batch; thread `me` of as many as there are marks."""
    n_threads, n_parts = len(work.marks) // APART, len(work.gradients)
    judge, maker, average = players.discriminator, players.generator, players.average
    for b in range(len(batches.first)):
        for p in range(me, n_parts, n_threads):
            judge_part(plan, players, rows, batches, b, p, work)
        weight, t = batches.cuts[b + 1] - batches.cuts[b], judge.steps + b + 1
        move(plan.discriminator_steps, judge, work.gradients, work.squares, weight, t, work.marks, me)
        if t % plan.n_critic == 0:
            for p in range(me, n_parts, n_threads):
                make_part(plan, players, batches, b, p, work)
            t //= plan.n_critic
            move(plan.generator_steps, maker, work.pulls, work.squares2, weight, t, work.marks, me)
            keep = average.dtype.type(min(plan.memory, (1.0 + t) / (10.0 + t)))  # at first, of no more steps than there were
            n = len(average)
            for i in range(n * me // n_threads, n * (me + 1) // n_threads):
                average[i] = keep * average[i] + (average.dtype.type(1.0) - keep) * maker.parameters[i]


def new_work(plan, batches, dtype, batch_size, players):
    """Make room for the batches of a block."""
    chain = plan.generator._replace(sizes=np.concatenate([plan.generator.sizes, plan.discriminator.sizes]))
    parts = n_parts(chain, 2 * batch_size)
    most = int(-(-(batches.last - batches.first).max() // parts))
    n, m, d = len(players.discriminator.parameters), len(players.generator.parameters), int(plan.discriminator.sizes[0])
    return Work(
        new_marks(min(threads_that_meet(), parts)),
        new_rooms(plan.discriminator, parts, most * (3 if plan.penalty > 0 else 2), dtype),
        new_rooms(plan.generator, parts, most, dtype),
        np.zeros((parts, n), dtype),
        np.zeros((parts, m), dtype),
        np.zeros((parts, most), dtype),
        np.zeros((parts, most, 0), dtype),
        np.zeros((parts, 2 * most * d), dtype),
        np.zeros(parts),
        room_for_squares(n),
        room_for_squares(m),
        np.zeros((parts, 4), np.uint64),
    )


def train_block(plan, players, rows, weight, unit, batch_size, shuffle, rng):
    """Visit the rows of a block once; return the players, the sum of the game's values over the visits, and their weight."""
    batches = lay_out(len(rows.values), weight, unit, batch_size, rng if shuffle else None)
    work = new_work(plan, batches, players.average.dtype, batch_size, players)
    work.states[:] = [seed_words(rng) for _ in work.states]
    with serial_blas():
        together(lambda me: train(plan, players, rows, batches, work, me), work.marks)
    judge, maker = players.discriminator, players.generator
    steps = judge.steps + len(batches.first)
    judge, maker = judge._replace(steps=steps), maker._replace(steps=steps // plan.n_critic)
    return Players(maker, judge, players.average), float(work.losses.sum()), float(batches.cuts[-1])
