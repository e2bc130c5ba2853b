"""Targets that several test files draw from, compiled as a user would compile them."""

import numba
import numpy as np


@numba.njit  # noqa: TID251 - what a user writes
def gaussian(x, precision):
    """Log density of a normal law about zero."""
    total = 0.0
    for i in range(len(x)):
        row = 0.0
        for j in range(len(x)):
            row += precision[i, j] * x[j]
        total -= 0.5 * x[i] * row
    return total


def many(X, precision):
    """The same for many points."""
    return -0.5 * np.einsum("ni,ij,nj->n", X, precision, X)


def plain(x, precision):
    """The same, in plain Python."""
    return -0.5 * float(x @ precision @ x)


def covariance(d, correlation=0.8, spread=1.0):
    """Correlations that fall with the distance, and standard deviations between 1 and `spread`."""
    scales = np.geomspace(1.0, spread, d)
    distances = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return scales[:, None] * correlation**distances * scales
