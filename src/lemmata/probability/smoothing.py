"""Additive smoothing of conditional tables, Lidstone's and Laplace's.

    P(k | y) = (c(k, y) + α) / (c(y) + K α)

is the mean of the posterior when P(· | y) has a symmetric Dirichlet prior of weight α for each of K values: α imaginary
observations of each. α = 0 is maximum likelihood, which calls impossible what was not seen; α → ∞ is the uniform distribution.
"""

import numpy as np


def smooth(counts, alpha=1.0, axis=-1):
    """Return smoothed relative frequencies along an axis.

    Parameters
    ----------
    counts : Counts or weights, at least 0; the values k run along `axis`, the conditions y along the others.
    alpha : Imaginary observations of each value, from 0 (maximum likelihood) to infinity (uniform).

    Examples
    --------
    >>> smooth([[0, 8], [3, 3]])
    array([[0.1, 0.9],
           [0.5, 0.5]])
    """
    counts = np.asarray(counts, dtype=float)
    if counts.ndim == 0 or counts.shape[axis] == 0 or not ((counts >= 0) & (counts < np.inf)).all():
        raise ValueError("Counts must be an array of finite numbers, at least 0.")
    if not np.ndim(alpha) == 0 or not alpha >= 0:
        raise ValueError(f"alpha must be one number, at least 0; got {alpha}.")
    total, k = counts.sum(axis=axis, keepdims=True), counts.shape[axis]
    if alpha == 0 and (total == 0).any():
        raise ValueError("With alpha=0 each condition needs a count, and one has none; take alpha > 0.")
    scale = max(1.0, float(alpha))  # alpha itself may be infinite, alpha / scale is not
    weight = 1.0 if alpha >= 1 else float(alpha)
    smoothed = (counts / scale + weight) / np.where(total == 0, 1.0, total / scale + k * weight)
    return np.where(total == 0, 1 / k, smoothed)
