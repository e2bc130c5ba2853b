"""Inverse-CDF sampling: a uniform number, sent through the quantile function.

If U is uniform on (0, 1) and F⁻¹(u) = min {x : F(x) ≥ u}, then X = F⁻¹(U) has the distribution function F, because
F⁻¹(u) ≤ x exactly when u ≤ F(x), so that P(X ≤ x) = P(U ≤ F(x)) = F(x). For the standard normal F(x) = (1 + erf(x/√2))/2, and
F⁻¹(u) = √2 erf⁻¹(2u − 1) with erf(x) = (2/√π) ∫₀ˣ exp(−t²) dt. The numbers must be uniform on the range of F: an integral of
the density that starts at 0 has the range (−½, ½), and its inverse is not for numbers from (0, 1).

Devroye, Non-Uniform Random Variate Generation, ch. 2 (1986).
"""

from lemmata.core.random import generator

__all__ = ["inverse_cdf_sample"]

BITS = 52  # (k + ½) / 2⁵² is exact for every k < 2⁵², and neither 0 nor 1, where quantiles may be infinite


def inverse_cdf_sample(icdf, n, random_state=None):
    """Draw n numbers from the distribution with the quantile function `icdf`.

    Parameters
    ----------
    icdf : Function of an array of numbers strictly between 0 and 1, such as `Normal(0, 1).icdf`.
    n : How many.
    random_state : Seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> x = inverse_cdf_sample(lambda u: -np.log1p(-u) / 2, 10000, random_state=0)  # exponential, rate 2
    >>> print(abs(x.mean() - 0.5) < 0.02)
    True
    """
    if not callable(icdf):
        raise ValueError(f"icdf must be a function of numbers between 0 and 1, got {icdf!r}; pass distribution.icdf.")
    if n != int(n) or n < 0:
        raise ValueError(f"n must be a whole number of draws, not negative; got {n!r}.")
    return icdf((generator(random_state).integers(2**BITS, size=int(n)) + 0.5) / 2.0**BITS)
