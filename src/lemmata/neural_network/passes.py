"""Passes over a table that change nothing: outputs of a network, its loss, and the gradient over all rows.

Rows are taken some hundred at a time, so that what passes between layers stays in the cache.
"""

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.neural_network.layers import (
    Shape,
    backward,
    backward_to,
    bend,
    conclude,
    forward,
    forward_from,
    new_rooms,
    room_of,
    unit_rows,
)
from lemmata.neural_network.losses import finish
from lemmata.neural_network.network import UNMOVED
from lemmata.neural_network.sparse_layer import enter, entered, leave
from lemmata.neural_network.training import Rows, gather

TILE = 512  # rows at once


def rows_of(X, mean, scale, dtype):
    """Describe the rows of a block for kernels, centered by a mean and divided by a scale (either None for nothing)."""
    d = X.shape[1]
    mean = np.zeros(d, dtype) if mean is None else np.asarray(mean, dtype=dtype)
    inverse = np.ones(d, dtype) if scale is None else (1 / np.asarray(scale, dtype=float)).astype(dtype)
    if is_sparse(X):
        return Rows(sealed(X.data[None, :]), sealed(X.indices), sealed(X.indptr), mean, inverse)
    return Rows(sealed(X), None, None, mean, inverse)


def sealed(array):
    """Return an array that cannot be written to, so that kernels are compiled once for those that can and those that cannot."""
    array = array.view()
    array.flags.writeable = False
    return array


@kernel
def carry(shape, parameters, values, indices, indptr, mean, scale, order, start, end, room, state):
    """Carry rows through all layers but the last activation."""
    if indices is None:
        gather(values, indices, indptr, mean, scale, order, start, end, room.values)
        forward(shape, parameters, room, end - start, 0.0, state)
    else:
        enter(shape, parameters, room, values, indices, indptr, mean, scale, order, start, end)
        if len(shape.codes) > 1:
            bend(shape, room, end - start, 1, 0.0, state)
        forward_from(1, shape, parameters, room, end - start, 0.0, state)


@kernel
def fill_outputs(shape, parameters, values, indices, indptr, mean, scale, room, state, out):
    """Write the outputs for every row."""
    n, last = len(out), len(shape.codes)
    order, m = np.arange(n), out.shape[1]
    for start in range(0, n, room.capacity):
        end = min(start + room.capacity, n)
        carry(shape, parameters, values, indices, indptr, mean, scale, order, start, end, room, state)
        conclude(shape, room, end - start)
        out[start:end] = unit_rows(shape, room.values, room.capacity, last, end - start).reshape(end - start, m)


@kernel
def add_gradients(shape, parameters, loss, values, indices, indptr, mean, scale, Y, weight, room, state, gradient, total):
    """Add the gradient of every tile of rows to a total; return the loss."""
    n, last, value = len(Y), len(shape.codes), 0.0
    order = np.arange(n)
    for start in range(0, n, room.capacity):
        end = min(start + room.capacity, n)
        m = end - start
        carry(shape, parameters, values, indices, indptr, mean, scale, order, start, end, room, state)
        outputs = unit_rows(shape, room.values, room.capacity, last, m)
        deltas = unit_rows(shape, room.deltas, room.capacity, last, m)
        value += finish(
            loss, shape.codes[last - 1], outputs, Y[start:end], weight[start:end], m, shape.sizes[last], deltas, room.chunk
        )
        if indices is None:
            backward(shape, parameters, room, m, 0.0, gradient, False)
        else:
            backward_to(1, shape, parameters, room, m, 0.0, gradient, False)
            leave(shape, room, values, indices, indptr, mean, scale, order, start, end, gradient)
        for i in range(len(total)):
            total[i] += gradient[i]
    return value


def outputs_of(shape, parameters, rows):
    """Return the outputs for the rows of a block, (n, units)."""
    sparse = rows.indptr is not None
    n, shape = (len(rows.indptr) - 1, entered(shape)) if sparse else (len(rows.values), shape)
    out = np.empty((n, int(shape.sizes[-1])), parameters.dtype)
    room = room_of(new_rooms(shape, 1, min(TILE, n), parameters.dtype), 0)
    with serial_blas():
        fill_outputs(shape, parameters, *rows, room, UNMOVED, out)
    return out


def sure_outputs(shape, parameters, X, mean, scale):
    """Return the outputs for the rows of a block, of a network that says how sure it is.

    The sums of a row that is very far off may overflow, and leave no number; it is as sure of a nearer row in that direction.
    """
    out = outputs_of(shape, parameters, rows_of(X, mean, scale, float))
    lost = np.isnan(out).any(axis=1)
    if lost.any():
        far = nearer(X[lost], mean, scale, parameters.dtype)
        out[lost] = outputs_of(shape, parameters, rows_of(far, None, None, float))
    return out


def nearer(X, mean, scale, dtype):
    """Center rows by a mean, divide them by a scale, and shorten them so that layers of weights leave them numbers.

    Examples
    --------
    >>> row = nearer(np.array([[1e308, 0.0, -5e307]]), np.zeros(3), np.full(3, 10.0), np.float64)
    >>> bool(row[0, 0] < 1e103), row / row[0, 0]
    (True, array([[ 1. ,  0. , -0.5]]))
    """
    X = np.asarray(X.toarray() if is_sparse(X) else X, dtype=float)
    with np.errstate(over="ignore"):
        Z = X if mean is None else (X - mean) / scale
    largest = np.finfo(float).max
    Z = np.clip(Z, -largest, largest)
    return (np.cbrt(np.finfo(dtype).max) / np.abs(Z).max(axis=1, keepdims=True, initial=1.0) * Z).astype(dtype)


def output_block(X, weight, shape, parameters, mean, scale):
    """Return the outputs for the rows of a block of (X, weight)."""
    return outputs_of(Shape(*shape), parameters, rows_of(X, mean, scale, parameters.dtype))


def gradient_block(X, Y, weight, shape, parameters, loss, mean, scale):
    """Sum over a block: weight, loss, and gradient with respect to the parameters."""
    shape, n, dtype = entered(Shape(*shape)) if is_sparse(X) else Shape(*shape), X.shape[0], parameters.dtype
    w = np.ones(n, dtype) if weight is None else np.asarray(weight, dtype=dtype)
    room, total = room_of(new_rooms(shape, 1, min(TILE, n), dtype), 0), np.zeros(len(parameters))
    Y, gradient = np.ascontiguousarray(Y, dtype=dtype), np.empty_like(parameters)
    with serial_blas():
        rows = rows_of(X, mean, scale, dtype)
        value = add_gradients(shape, parameters, loss, *rows, Y, w, room, UNMOVED, gradient, total)
    return float(w.sum(dtype=float)), value, total
