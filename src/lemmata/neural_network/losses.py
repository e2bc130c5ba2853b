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
def log_products(e, m):
    """Sum log(1 + eᵢ) over the first m numbers, each between 0 and 1; a product of some costs one logarithm."""
    total = 0.0
    for start in range(0, m, FACTORS):
        product = 1.0
        for i in range(start, min(start + FACTORS, m)):
            product *= 1.0 + e[i]
        total += np.log(product)
    return total


@kernel
def finish_units(z, Y, weight, n_units, delta, room):
    """Do what `finish` does for cross-entropies of single units, log(1 + e^{−|a|}) + max(a, 0) − a y, a chunk at a time."""
    kind, total, e = z.dtype.type, 0.0, room[0]
    zero, one = kind(0.0), kind(1.0)
    for start in range(0, len(z), CHUNK):
        part = z[start : start + CHUNK]
        for q in range(len(part)):
            e[q] = -abs(part[q])
        exponentials_of(e, len(part), room)
        first = 0
        while first < len(part):  # rows, or what of them is in the chunk
            i = (start + first) // n_units
            last, before = min((i + 1) * n_units - start, len(part)), i * n_units - start
            w, y, linear = kind(weight[i]), Y[i], 0.0
            loss = log_products(e[first:last], last - first)
            for q in range(first, last):
                linear += max(part[q], zero) - part[q] * y[q - before]
            total += w * (loss + linear)
            for q in range(first, last):
                part[q] = (one if part[q] >= zero else e[q]) / (one + e[q])
            for q in range(first, last):
                delta[start + q] = w * (part[q] - y[q - before])
            first = last
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
        for i in range(n_rows):
            a, b, w = i * n_units, (i + 1) * n_units, weight[i]
            classes = Y.shape[1] == 1 and n_units > 1
            top, score, mass = z[a], 0.0, 0.0
            for j in range(a, b):
                top = max(top, z[j])
            if classes:
                score, mass = np.float64(z[a + np.int64(Y[i, 0])]), 1.0
            else:
                for j in range(n_units):
                    score += Y[i, j] * z[a + j]
                    mass += Y[i, j]
            soften(z[a:b], 1, n_units, room)
            largest = z[a]  # is e^0 over the sum of exponentials, so that the sum need not be taken again
            for j in range(a, b):
                largest = max(largest, z[j])
            total += w * (mass * (top - np.log(np.float64(largest))) - score)
            for j in range(n_units):
                delta[a + j] = kind(w) * kind(mass) * z[a + j]
            if classes:
                delta[a + np.int64(Y[i, 0])] -= kind(w)
            else:
                for j in range(n_units):
                    delta[a + j] -= kind(w) * Y[i, j]
    elif loss == CROSS_ENTROPY:
        total = finish_units(z, Y, weight, n_units, delta, room)
    else:
        activate(code, z, n_rows, n_units, room)
        for i in range(n_rows):
            a, w, squares = i * n_units, weight[i], 0.0
            for j in range(n_units):
                away = z[a + j] - Y[i, j]
                squares += away * away
                delta[a + j] = kind(w) * away
            total += 0.5 * w * squares
        pull_back(code, z, delta, n_rows, n_units)
    return total


def pair(loss, code):
    """Return the number of a loss, which must go with the last activation."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be 'squared' or 'cross_entropy', got {loss!r}.")
    if loss == "cross_entropy" and code not in (SIGMOID, SOFTMAX):
        raise ValueError("Cross-entropy needs probabilities: let the last activation be 'softmax' or 'sigmoid'.")
    return LOSSES[loss]
