"""Losses of a network, taken together with its last activation, so that nothing overflows and nothing cancels.

    squared        ½ ‖ŷ − y‖²
    cross-entropy  −Σ yⱼ log ŷⱼ after softmax;   −Σ [yⱼ log ŷⱼ + (1 − yⱼ) log(1 − ŷⱼ)] after the sigmoid, one unit at a time

For both cross-entropies ∂E/∂a = ŷ − y. The pairing matters: −Σ yⱼ log ŷⱼ after an elementwise activation would let a unit say
"yes" to everything, and is refused. From the inputs a of the last activation, −log σ(a) = log(1 + e⁻ᵃ) and
−log softmax = log Σ e^{aₖ − aⱼ} are exact where ŷ itself has become 0 or 1.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.neural_network.activations import CHUNK, SIGMOID, SOFTMAX, activate, exponentials_of, pull_back, soften

SQUARED, CROSS_ENTROPY = range(2)
LOSSES = {"squared": SQUARED, "cross_entropy": CROSS_ENTROPY}
FACTORS = 16  # of a product whose logarithm is taken at once: each is at most 2


@kernel
def log_products(e):
    """Sum log(1 + eᵢ) over numbers between 0 and 1; a product of some costs one logarithm."""
    total = 0.0
    for start in range(0, len(e), FACTORS):
        some, product = e[start : start + FACTORS], 1.0
        for i in range(len(some)):
            product *= 1.0 + some[i]
        total += np.log(product)
    return total


@kernel
def finish_units(z, Y, weight, n_units, delta, room):
    """Do what `finish` does for cross-entropies of single units, log(1 + e^{−|a|}) + max(a, 0) − a y, a chunk at a time."""
    kind, total, powers = z.dtype.type, 0.0, room[0]
    zero, one = kind(0.0), kind(1.0)
    for start in range(0, len(z), CHUNK):
        chunk = z[start : start + CHUNK]
        for q in range(len(chunk)):
            powers[q] = -abs(chunk[q])
        exponentials_of(powers, len(chunk), room)
        first = start
        while first < start + len(chunk):  # rows, or what of them is in the chunk; loops begin at zero to be vectorized
            i = first // n_units
            last, linear, w = min((i + 1) * n_units, start + len(chunk)), 0.0, kind(weight[i])
            part, change, e = z[first:last], delta[first:last], powers[first - start : last - start]
            y = Y[i, first - i * n_units : last - i * n_units]
            for j in range(len(part)):
                linear += max(part[j], zero) - part[j] * y[j]
            total += w * (log_products(e) + linear)
            for j in range(len(part)):
                part[j] = (one if part[j] >= zero else e[j]) / (one + e[j])
                change[j] = w * (part[j] - y[j])
            first = last
    return total


@kernel
def finish_classes(z, Y, weight, n_rows, n_units, delta, room):
    """Do what `finish` does for the cross-entropy of classes: log Σ e^{aₖ} less what the targets say, row by row."""
    kind, total, numbers = z.dtype.type, 0.0, Y.shape[1] == 1 and n_units > 1
    for i in range(n_rows):
        row, top, score, mass = z[i * n_units : (i + 1) * n_units], z[i * n_units], 0.0, 1.0
        for j in range(1, n_units):
            top = max(top, row[j])
        if numbers:
            score = np.float64(row[np.int64(Y[i, 0])])
        else:
            mass = 0.0
            for j in range(n_units):
                score += Y[i, j] * row[j]
                mass += Y[i, j]
        total += weight[i] * (mass * top - score)
        delta[i * n_units] = mass  # waits there until the row has its probabilities
    soften(z, n_rows, n_units, room)
    for i in range(n_rows):
        row, change, w = z[i * n_units : (i + 1) * n_units], delta[i * n_units : (i + 1) * n_units], kind(weight[i])
        mass, largest = change[0], row[0]  # the largest is e⁰ over the sum of exponentials, which need not be taken again
        for j in range(1, n_units):
            largest = max(largest, row[j])
        total -= weight[i] * mass * np.log(np.float64(largest))
        for j in range(n_units):
            change[j] = w * mass * row[j]
        if numbers:
            change[np.int64(Y[i, 0])] -= w
        else:
            for j in range(n_units):
                change[j] -= w * Y[i, j]
    return total


@kernel
def finish(loss, code, z, Y, weight, n_rows, n_units, delta, room):
    """Turn the inputs z of the last activation into its outputs, and return the weighted sum of the losses of the rows.

    Parameters
    ----------
    Y : Targets, a row each; a single column where there are several units holds the numbers of the classes.
    delta : Receives the derivatives of the sum with respect to the inputs; matrices are given flat.
    """
    kind, total = z.dtype.type, 0.0
    if loss == CROSS_ENTROPY and code == SOFTMAX:
        total = finish_classes(z, Y, weight, n_rows, n_units, delta, room)
    elif loss == CROSS_ENTROPY:
        total = finish_units(z, Y, weight, n_units, delta, room)
    else:
        activate(code, z, n_rows, n_units, room)
        for i in range(n_rows):
            row, change, squares = z[i * n_units : (i + 1) * n_units], delta[i * n_units : (i + 1) * n_units], 0.0
            for j in range(n_units):
                away = row[j] - Y[i, j]
                squares += away * away
                change[j] = kind(weight[i]) * away
            total += 0.5 * weight[i] * squares
        pull_back(code, z, delta, n_rows, n_units)
    return total


def pair(loss, code):
    """Return the number of a loss, which must go with the last activation."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be 'squared' or 'cross_entropy', got {loss!r}.")
    if loss == "cross_entropy" and code not in (SIGMOID, SOFTMAX):
        raise ValueError("Cross-entropy needs probabilities: let the last activation be 'softmax' or 'sigmoid'.")
    return LOSSES[loss]
