"""Activations of the units of a network, and their derivatives, on many numbers at once.

    sigmoid σ(a) = 1/(1 + e⁻ᵃ),  σ′ = σ(1 − σ)        tanh(a) = 2σ(2a) − 1,  tanh′ = 1 − tanh²
    ReLU max(a, 0), derivative 1 where positive       softmax e^{aⱼ} / Σₖ e^{aₖ}, whose Jacobian is not elementwise

Every derivative is a function of the output z = g(a), so the inputs of the units need not be kept. Exponentials are taken of
numbers that are not positive, which cannot overflow, by the vectorized ones of `core.numeric`; near zero, where 1 − e⁻²ᵃ loses
its digits, tanh is its series.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials, exponentials32

IDENTITY, SIGMOID, TANH, RELU, SOFTMAX = range(5)
CODES = {"identity": IDENTITY, "sigmoid": SIGMOID, "logistic": SIGMOID, "tanh": TANH, "relu": RELU, "softmax": SOFTMAX}
NAMES = ("identity", "sigmoid", "tanh", "relu", "softmax")
CHUNK = 1024  # numbers at once: they and their exponentials stay in the first cache
SMALL = 0.02  # below, four terms of the series of tanh are exact to the last digit of double precision


def scratch(dtype, n):
    """Return room for a chunk of exponentials of each of n threads: numbers, bits, and the bits seen as numbers."""
    bits = np.empty((n, CHUNK), np.int32 if dtype == np.float32 else np.int64)
    return np.empty((n, CHUNK), dtype), bits, bits.view(dtype)


@kernel
def exponentials_of(x, m, room):
    """Replace the first m numbers, none of them positive and at most a chunk, by their exponentials."""
    if x.itemsize == 4:
        exponentials32(x, m, room[1], room[2])
    else:
        exponentials(x, m, room[1], room[2])


@kernel
def squash(code, z, room):
    """Apply an elementwise activation to numbers in a row, in place."""
    kind = z.dtype.type
    zero, one, two = kind(0.0), kind(1.0), kind(2.0)
    if code == RELU:
        for i in range(len(z)):
            z[i] = max(z[i], zero)
    elif code == SIGMOID:
        for start in range(0, len(z), CHUNK):
            part, e = z[start : start + CHUNK], room[0]
            for i in range(len(part)):
                e[i] = -abs(part[i])
            exponentials_of(e, len(part), room)
            for i in range(len(part)):
                part[i] = (one if part[i] >= zero else e[i]) / (one + e[i])
    elif code == TANH:
        third, fifteenth, rest = kind(1 / 3), kind(2 / 15), kind(17 / 315)
        for start in range(0, len(z), CHUNK):
            part, e = z[start : start + CHUNK], room[0]
            for i in range(len(part)):
                e[i] = -two * abs(part[i])
            exponentials_of(e, len(part), room)
            for i in range(len(part)):
                a = part[i]
                square, large = a * a, (one - e[i]) / (one + e[i])
                series = a * (one - square * (third - square * (fifteenth - square * rest)))
                part[i] = series if abs(a) < SMALL else (large if a >= zero else -large)


@kernel
def soften(z, n_rows, n_units, room):
    """Apply softmax to the rows of a matrix, in place; many short rows share a chunk of exponentials."""
    together = max(1, CHUNK // n_units)
    for first in range(0, n_rows, together):
        last = min(first + together, n_rows)
        for i in range(first, last):
            row = z[i * n_units : (i + 1) * n_units]
            top = row[0]
            for j in range(1, n_units):
                top = max(top, row[j])
            for j in range(n_units):
                row[j] -= top
        for start in range(first * n_units, last * n_units, CHUNK):
            part = z[start : min(start + CHUNK, last * n_units)]
            exponentials_of(part, len(part), room)
        for i in range(first, last):
            row, total = z[i * n_units : (i + 1) * n_units], 0.0
            for j in range(n_units):
                total += row[j]
            share = z.dtype.type(1.0 / total)
            for j in range(n_units):
                row[j] *= share


@kernel
def activate(code, z, n_rows, n_units, room):
    """Apply an activation to the rows of a matrix, given flat, in place."""
    if code == SOFTMAX:
        soften(z, n_rows, n_units, room)
    else:
        squash(code, z, room)


@kernel
def pull_back(code, z, delta, n_rows, n_units):
    """Multiply derivatives with respect to the outputs z of an activation by its Jacobian, in place; matrices lie flat."""
    kind = z.dtype.type
    zero, one = kind(0.0), kind(1.0)
    if code == RELU:
        for i in range(len(z)):
            delta[i] = delta[i] if z[i] > zero else zero
    elif code == SIGMOID:
        for i in range(len(z)):
            delta[i] *= z[i] * (one - z[i])
    elif code == TANH:
        for i in range(len(z)):
            delta[i] *= one - z[i] * z[i]
    elif code == SOFTMAX:
        for i in range(n_rows):
            a, b = i * n_units, (i + 1) * n_units
            mean = zero
            for j in range(a, b):
                mean += z[j] * delta[j]
            for j in range(a, b):
                delta[j] = z[j] * (delta[j] - mean)
