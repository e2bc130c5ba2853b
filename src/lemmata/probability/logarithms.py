"""Logarithms: the units of information, and t − log(1 + t) where t is small."""

from numbers import Real

import numpy as np

NEAR = 0.1  # |t| below which t − log(1 + t) is summed as a series
TERMS = 8  # of the series in r² ≤ (0.1 / 1.9)²: the next one is below 10⁻²⁰


def units(base):
    """Return how many nats the unit of information with this base has; a nat is one nat.

    Examples
    --------
    >>> units(2), units(None)
    (0.693147, 1.0)
    """
    if base is None:
        return 1.0
    if not (isinstance(base, Real) and 1 < base < np.inf):
        raise ValueError(f"The base of the logarithm must be a number greater than 1; got {base!r}.")
    return float(np.log(base))


def log_excess(t):
    """Return t − log(1 + t) for t ≥ −1 to full relative precision, also near 0, where it is ½t².

    With r = t / (2 + t), log(1 + t) = 2 (r + r³/3 + r⁵/5 + …) and t − 2r = t r.

    Examples
    --------
    >>> log_excess([0.0, 1e-9, 1.0])
    array([0.0e+00, 5.0e-19, 3.06853e-01])
    """
    t = np.asarray(t, dtype=float)
    near = np.abs(t) < NEAR
    small = np.where(near, t, 0.0)
    r = small / (2 + small)
    series = sum(r ** (2 * k) / (2 * k + 3) for k in range(TERMS))
    with np.errstate(divide="ignore"):  # infinite at −1
        far = t - np.log1p(np.where(near, 0.0, t))
    return np.where(near, small * r - 2 * r**3 * series, far)
