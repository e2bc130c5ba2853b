"""The gamma function where its logarithms cancel: differences and remainders that keep all their digits.

Γ(x) = ∫₀^∞ e⁻ᵗ tˣ⁻¹ dt, so Γ(x + 1) = xΓ(x) and Γ(n + 1) = n!. Stirling's formula leaves a small remainder S,

    log Γ(x) = (x − ½) log x − x + ½ log 2π + S(x),    S(x) = 1/(12x) − 1/(360x³) + 1/(1260x⁵) − …,

and its derivatives ψ(x) = log x − L(x) with L(x) = 1/(2x) + 1/(12x²) − 1/(120x⁴) + … and ψ′. Densities with gamma functions
are differences of large terms: log Γ(10¹⁵ + 1) − log Γ(10¹⁵) = log 10¹⁵ ≈ 35 is a difference of numbers near 3·10¹⁶, whose
spacing is 4. Written with S and L the large terms cancel on paper. The other partner is the excess of a number over the
logarithm, y − 1 − log y ≥ 0 with y = x/m: x ↦ α(log y − y + 1) − log x is, up to a constant, the log density of a gamma
variable with the mean m, and the sum of such terms that of a Dirichlet vector.

Abramowitz & Stegun, Handbook of Mathematical Functions, 6.1.40, 6.3.18, 6.4.12 (1964).
"""

import numpy as np
from scipy.special import digamma, gammaln, polygamma, xlogy

from lemmata.probability.logarithms import log_excess

LARGE = 20.0  # from here on the series below are exact to rounding
HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def stirling_remainder(x):
    """Return S(x) = log Γ(x) − (x − ½) log x + x − ½ log 2π for x > 0.

    Examples
    --------
    >>> float(stirling_remainder(1e8)) * 12e8
    1.0
    """
    small, large = np.minimum(x, LARGE), np.maximum(x, LARGE)
    v = 1 / large**2
    series = (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * 691 / 360360))))) / large
    return np.where(x < LARGE, gammaln(small) - (small - 0.5) * np.log(small) + small - HALF_LOG_2PI, series)


def log_minus_digamma(x):
    """Return L(x) = log x − ψ(x) for x > 0.

    Examples
    --------
    >>> float(log_minus_digamma(1e12)) * 2e12
    1.0
    """
    small, large = np.minimum(x, LARGE), np.maximum(x, LARGE)
    v = 1 / large**2
    series = 0.5 / large + v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v * (1 / 240 - v * (1 / 132 - v * 691 / 32760)))))
    return np.where(x < LARGE, np.log(small) - digamma(small), series)


def trigamma_gap(x):
    """Return x − 1/ψ′(x) for x > 0; it grows from 0 to ½.

    Examples
    --------
    >>> float(trigamma_gap(1e12))
    0.5
    """
    small, large = np.minimum(x, LARGE), np.maximum(x, LARGE)
    v = 1 / large
    w = v * v
    # ψ′(x) = (1 + t)/x, and x − x/(1 + t) = x t/(1 + t)
    t = v * (0.5 + v * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w * (1 / 30 - w * (5 / 66 - w * 691 / 2730))))))
    return np.where(x < LARGE, small - 1 / polygamma(1, small), large * t / (1 + t))


def log_rising(a, n):
    """Return log Γ(a + n) − log Γ(a) for a > 0, n ≥ 0: the logarithm of a(a + 1)…(a + n − 1) for whole n.

    Examples
    --------
    >>> import math
    >>> float(log_rising(1.0, 5)), math.log(120)
    (4.787, 4.787)
    >>> float(log_rising(1e15, 1)), math.log(1e15)
    (34.538776, 34.538776)
    """
    a, n = np.asarray(a, dtype=float), np.asarray(n, dtype=float)
    large = np.maximum(a, LARGE)
    stirling = (large - 0.5) * np.log1p(n / large) + xlogy(n, large + n) - n
    stirling += stirling_remainder(large + n) - stirling_remainder(large)
    return np.where(a < LARGE, gammaln(np.minimum(a, LARGE) + n) - gammaln(np.minimum(a, LARGE)), stirling)[()]


def ratio_excess(x, m):
    """Return y − 1 − log y for y = x/m > 0, with all its digits also where y is near 1 or too small to be a number.

    Examples
    --------
    >>> float(ratio_excess(3.0, 1.0)), float(ratio_excess(1 + 1e-9, 1.0)) * 1e18
    (0.901388, 0.5)
    """
    d = (x - m) / m
    near = np.abs(d) < 0.5
    return np.where(near, log_excess(np.where(near, d, 0.0)), d - (np.log(x) - np.log(m)))


def log_gamma_kernel(x, alpha, m):
    """Return α(log y − y + 1) − log x for y = x/m, and its limit where x = 0.

    Examples
    --------
    >>> float(log_gamma_kernel(0.0, 1.0, 1.0)), float(log_gamma_kernel(0.0, 2.0, 1.0))
    (1.0, -inf)
    """
    inner = np.where(x > 0, x, m)
    regular = -alpha * ratio_excess(inner, m) - np.log(inner)
    return np.where(x > 0, regular, alpha * (1 - np.log(m)) + xlogy(alpha - 1, 0.0))
