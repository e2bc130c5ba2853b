"""From scores to probabilities and back: sigmoid, softmax, and their logarithms, at any scale.

σ(z) = 1/(1 + e⁻ᶻ) with σ(−z) = 1 − σ(z), σ′ = σ(1 − σ) and the logit as its inverse; softmaxₖ(z) = eᶻᵏ / Σⱼ eᶻʲ, which
approximates the indicator of the largest score and does not change when all scores are shifted; log Σ eᶻʲ, which approximates
the largest score itself. Exponentials are taken of numbers that are not positive, so nothing overflows.
"""

import numpy as np


def sigmoid(z):
    """Return 1/(1 + e⁻ᶻ).

    Examples
    --------
    >>> sigmoid([-1000.0, 0.0, 1000.0])
    array([0. , 0.5, 1. ])
    """
    z = np.asarray(z, dtype=float)
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)


def log_sigmoid(z):
    """Return ln σ(z) = −ln(1 + e⁻ᶻ).

    Examples
    --------
    >>> float(log_sigmoid(-1000.0)), round(float(log_sigmoid(0.0)), 6)
    (-1000.0, -0.693147)
    """
    z = np.asarray(z, dtype=float)
    return np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))


def logit(p):
    """Return ln(p / (1 − p)), the inverse of the sigmoid on the open interval (0, 1).

    Examples
    --------
    >>> logit([0.5, 0.731058579])
    array([0., 1.])
    """
    p = np.asarray(p, dtype=float)
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log1p(-p)


def softmax(scores):
    """Return exp(z − log Σ exp z) along the last axis.

    Examples
    --------
    >>> softmax([1.0, 2.0, 3.0])
    array([0.0900306, 0.2447285, 0.6652410])
    """
    scores = np.asarray(scores, dtype=float)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_sum_exp(scores):
    """Return ln Σ exp(z) along the last axis.

    Examples
    --------
    >>> log_sum_exp([1000.0, 1000.0]) - 1000.0
    np.float64(0.6931)
    """
    scores = np.asarray(scores, dtype=float)
    top = scores.max(axis=-1)
    return top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
