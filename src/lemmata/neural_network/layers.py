"""Layers of a network in flat buffers: forward, backward, and where to start.

With the rows of a batch in Z⁰, a layer is Aˡ = Zˡ⁻¹ Wˡ + bˡ, Zˡ = g(Aˡ). The chain rule runs back through the same layers:

    Δˡ = ∂E/∂Aˡ,    ∂E/∂Wˡ = (Zˡ⁻¹)ᵀ Δˡ,    ∂E/∂bˡ = Σ rows of Δˡ,    ∂E/∂Zˡ⁻¹ = Δˡ (Wˡ)ᵀ,    Δˡ⁻¹ = g′ ∘ ∂E/∂Zˡ⁻¹      [1]

All weights and biases lie in one vector, layer after layer, so that a step rule is one pass over one array, and a gradient
has the same form. Outputs and derivatives of a batch lie in a `Room` that is made once. The products are BLAS's, called from
compiled code: a whole epoch is one call, and threads may share a batch (`training`).

A start keeps the size of what passes through: with n inputs and m outputs of a layer, Var w = 2/(n + m) keeps both what goes
forward and what comes back about as large [3]; after ReLU, which stops half of it, Var w = 2/n keeps the former exactly [2].

[1] Rumelhart, Hinton & Williams, Nature 323 (1986). [2] He, Zhang, Ren & Sun, ICCV (2015).
[3] Glorot & Bengio, AISTATS (2010).
"""

from itertools import pairwise
from numbers import Integral
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.neural_network.activations import CODES, RELU, activate, pull_back, scratch

STARTS = ("glorot", "he")


class Shape(NamedTuple):
    """What a network looks like: L layers between L + 1 rows of units."""

    sizes: np.ndarray  # (L + 1,), units: inputs first, outputs last
    starts: np.ndarray  # (L + 1,), where the weights of each layer begin among the parameters; the biases follow them
    places: np.ndarray  # (L + 2,), how many units come before those of each row of units
    codes: np.ndarray  # (L,), activations


class Room(NamedTuple):
    """Outputs of all units, derivatives with respect to them, which of them are dropped, and room for a chunk of exponentials.

    The units of layer l begin at places[l] · capacity; the matrix (rows, units) of a smaller batch lies at the front of that.
    """

    capacity: int
    values: np.ndarray
    deltas: np.ndarray
    kept: np.ndarray  # of no length if no unit is ever dropped
    chunk: tuple


def hidden_sizes(sizes, name="hidden_layer_sizes"):
    """Return numbers of hidden units, checked; one number is one layer.

    Examples
    --------
    >>> hidden_sizes((8, 4)), hidden_sizes(5), hidden_sizes(())
    ([8, 4], [5], [])
    """
    try:
        found = np.atleast_1d(np.asarray(sizes))
    except ValueError:  # rows that are not equally long
        found = np.zeros((0, 0))
    if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or (found < 1).any())):
        raise ValueError(f"{name} must hold whole numbers of at least 1, one for each hidden layer; got {sizes!r}.")
    return [int(n) for n in found]


def new_shape(sizes, activations):
    """Describe a network; activations are names, one for each layer.

    Examples
    --------
    >>> shape = new_shape([2, 3, 1], ["tanh", "sigmoid"])
    >>> n_parameters(shape)
    13
    """
    if len(sizes) < 2 or not all(isinstance(n, Integral) and n > 0 for n in sizes):
        found = ", ".join(str(n) for n in sizes)
        raise ValueError(f"A network needs at least two rows of units, whole numbers and none of them empty; got {found}.")
    sizes = np.array(sizes, np.int64)
    if len(activations) != len(sizes) - 1:
        raise ValueError(f"{len(sizes) - 1} layers need as many activations, got {len(activations)}.")
    for name in activations:
        if name not in CODES:
            raise ValueError(f"An activation is one of {', '.join(CODES)}; got {name!r}.")
    starts = np.concatenate([[0], np.cumsum(sizes[:-1] * sizes[1:] + sizes[1:])]).astype(np.int64)
    places = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Shape(sizes, starts, places, np.array([CODES[name] for name in activations], np.int64))


def n_parameters(shape):
    """Return the number of weights and biases."""
    return int(shape.starts[-1])


def new_rooms(shape, n, capacity, dtype, dropout=False):
    """Make n rooms for so many rows each: a `Room` of arrays with a leading axis."""
    total = capacity * int(shape.places[-1])
    kept = np.ones((n, total if dropout else 0), np.uint8)
    return Room(int(capacity), np.zeros((n, total), dtype), np.zeros((n, total), dtype), kept, scratch(np.dtype(dtype), n))


@kernel
def room_of(rooms, p):
    """Return one of several rooms."""
    chunk = rooms.chunk
    return Room(rooms.capacity, rooms.values[p], rooms.deltas[p], rooms.kept[p], (chunk[0][p], chunk[1][p], chunk[2][p]))


def draw_parameters(shape, rng, dtype=np.float64, start="glorot"):
    """Draw weights to start from, by a uniform law; biases are zero.

    Parameters
    ----------
    start : "glorot", or "he" for layers before ReLU and Glorot's for the others.

    Examples
    --------
    >>> shape = new_shape([50, 40, 2], ["relu", "softmax"])
    >>> W, b = layer(shape, draw_parameters(shape, np.random.default_rng(0), start="he"), 0)
    >>> W.shape, bool(0.9 < W.var() * 50 / 2 < 1.1), bool(b.any())
    ((50, 40), True, False)
    """
    if start not in STARTS:
        raise ValueError(f"start must be 'glorot' or 'he', got {start!r}.")
    parameters = np.zeros(n_parameters(shape), dtype)
    for k, (n, m) in enumerate(pairwise(shape.sizes)):
        variance = 2.0 / n if start == "he" and shape.codes[k] == RELU else 2.0 / (n + m)
        widest = np.sqrt(3 * variance)  # a uniform law on (−c, c) has the variance c²/3
        W, _ = layer(shape, parameters, k)
        W[:] = rng.uniform(-widest, widest, size=(n, m))
    return parameters


def layer(shape, parameters, k):
    """Return weights (inputs, outputs) and biases of layer k, as views."""
    n, m = shape.sizes[k], shape.sizes[k + 1]
    start = shape.starts[k]
    return parameters[start : start + n * m].reshape(n, m), parameters[start + n * m : start + n * m + m]


def penalized(shape, dtype=np.float64):
    """Mark the parameters that a penalty is for, 1 for weights and 0 for biases."""
    marks = np.zeros(n_parameters(shape), dtype)
    for k in range(len(shape.codes)):
        layer(shape, marks, k)[0][:] = 1.0
    return marks


@kernel
def unit_rows(shape, buffer, capacity, k, n_rows):
    """Return the part of a buffer that belongs to row k of units, flat: n_rows × units."""
    start = shape.places[k] * capacity
    return buffer[start : start + n_rows * shape.sizes[k]]


@kernel
def drop(z, kept, share, state):
    """Set units to zero with a given chance, and stretch the others so that means stay."""
    stretch = z.dtype.type(1.0 / (1.0 - share))
    for i in range(len(z)):
        if next_uniform(state) < share:
            kept[i], z[i] = 0, 0
        else:
            kept[i] = 1
            z[i] *= stretch


@kernel
def undrop(z, kept, delta, share):
    """Take a derivative back through `drop`, and its outputs back to what they were; those that were dropped stay zero."""
    kind = z.dtype.type
    stretch, shrink = kind(1.0 / (1.0 - share)), kind(1.0 - share)
    for i in range(len(z)):
        delta[i] = stretch * delta[i] if kept[i] else kind(0.0)
        z[i] *= shrink


@kernel
def bend(shape, room, n_rows, k, dropout, state):
    """Apply the activation of a hidden layer to what went into its units, and drop some of them."""
    flat = unit_rows(shape, room.values, room.capacity, k, n_rows)
    activate(shape.codes[k - 1], flat, n_rows, shape.sizes[k], room.chunk)
    if dropout > 0:
        drop(flat, unit_rows(shape, room.kept, room.capacity, k, n_rows), dropout, state)


@kernel
def forward(shape, parameters, room, n_rows, dropout, state):
    """Carry rows, written at the front of the room, through all layers but the last activation.

    Parameters
    ----------
    dropout : Chance that a hidden unit is left out, or zero; `state` draws them (`core.xoshiro`).
    """
    forward_from(0, shape, parameters, room, n_rows, dropout, state)


@kernel
def forward_from(first, shape, parameters, room, n_rows, dropout, state):
    """Carry rows on from a layer; see `forward`."""
    n_layers = len(shape.codes)
    for k in range(first, n_layers):
        n, m, start = shape.sizes[k], shape.sizes[k + 1], shape.starts[k]
        W = parameters[start : start + n * m].reshape(n, m)
        b = parameters[start + n * m : start + n * m + m]
        flat = unit_rows(shape, room.values, room.capacity, k + 1, n_rows)
        Z = flat.reshape(n_rows, m)
        np.dot(unit_rows(shape, room.values, room.capacity, k, n_rows).reshape(n_rows, n), W, Z)
        for i in range(n_rows):
            for j in range(m):
                Z[i, j] += b[j]
        if k < n_layers - 1:
            bend(shape, room, n_rows, k + 1, dropout, state)


@kernel
def conclude(shape, room, n_rows):
    """Apply the last activation, which `forward` leaves to the loss."""
    last = len(shape.codes)
    flat = unit_rows(shape, room.values, room.capacity, last, n_rows)
    activate(shape.codes[last - 1], flat, n_rows, shape.sizes[last], room.chunk)


@kernel
def backward(shape, parameters, room, n_rows, dropout, gradient, to_inputs):
    """Carry derivatives from the inputs of the last activation, written at the end of the room, back through all layers.

    Parameters
    ----------
    gradient : Receives the derivatives with respect to the parameters.
    to_inputs : Whether the derivatives with respect to the rows themselves are wanted too, at the front of the room.
    """
    backward_to(0, shape, parameters, room, n_rows, dropout, gradient, to_inputs)


@kernel
def backward_to(first, shape, parameters, room, n_rows, dropout, gradient, to_inputs):
    """Carry derivatives back to the units that go into a layer; see `backward`."""
    for step in range(len(shape.codes) - first):
        k = len(shape.codes) - 1 - step
        n, m, start = shape.sizes[k], shape.sizes[k + 1], shape.starts[k]
        before = unit_rows(shape, room.values, room.capacity, k, n_rows)
        delta = unit_rows(shape, room.deltas, room.capacity, k + 1, n_rows).reshape(n_rows, m)
        np.dot(before.reshape(n_rows, n).T, delta, gradient[start : start + n * m].reshape(n, m))
        sums = gradient[start + n * m : start + n * m + m]
        sums[:] = 0.0
        for i in range(n_rows):
            for j in range(m):
                sums[j] += delta[i, j]
        if k > 0 or to_inputs:
            W = parameters[start : start + n * m].reshape(n, m)
            back = unit_rows(shape, room.deltas, room.capacity, k, n_rows)
            np.dot(delta, W.T, back.reshape(n_rows, n))
            if k > 0:
                if dropout > 0:
                    undrop(before, unit_rows(shape, room.kept, room.capacity, k, n_rows), back, dropout)
                pull_back(shape.codes[k - 1], before, back, n_rows, n)
