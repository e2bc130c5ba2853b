"""Functions of many numbers at once, for kernels: loops that the compiler turns into vector instructions.

The compiler's own exponential is called for one number at a time. With n = round(x/log 2) and r = x − n log 2, at most ½ log 2
in absolute value, eˣ = 2ⁿ eʳ: a polynomial of degree 13 gives eʳ to the last digits, and 2ⁿ is the number with the exponent n
and no other bits, so nothing but additions, multiplications and shifts is left.
"""

from typing import Any

import numpy as np

from lemmata.core.kernel import kernel

LOWEST = -708.0  # below, eˣ is smaller than the smallest number with all its digits, and counts as 0
LOG2E = 1.4426950408889634
LOG2_HIGH, LOG2_LOW = 6.93145751953125e-1, 1.42860682030941723e-6  # log 2 in two parts, the first with room for a factor n
BIAS, MANTISSA = 1023, 52  # of the exponents of double precision, and the bits below them


@kernel
def exponentials(x: Any, m: int, bits: Any, powers: Any) -> None:
    """Replace the first m numbers, all at most 0, by their exponentials; accurate to a few roundings of x itself.

    Parameters
    ----------
    bits, powers : Room for as many integers, and the same room seen as numbers: `bits.view(np.float64)`.

    Examples
    --------
    >>> x, bits = np.array([0.0, -1.0, -np.inf]), np.empty(3, np.int64)
    >>> exponentials(x, 3, bits, bits.view(np.float64))
    >>> x
    array([1.        , 0.36787944, 0.        ])
    """
    for i in range(m):
        v = max(x[i], LOWEST)
        n = np.floor(v * LOG2E + 0.5)
        r = (v - n * LOG2_HIGH) - n * LOG2_LOW
        p = 1.6059043836821613e-10  # 1/13!, then 1/12!, …
        p = p * r + 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 1.984126984126984e-04
        p = p * r + 1.388888888888889e-03
        p = p * r + 8.333333333333333e-03
        p = p * r + 4.1666666666666664e-02
        p = p * r + 1.6666666666666666e-01
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        bits[i] = (np.int64(np.int32(n)) + BIAS) << MANTISSA if x[i] >= LOWEST else 0
        x[i] = p
    for i in range(m):
        x[i] *= powers[i]


LOWEST32 = -87.0  # the same for single precision
BIAS32, MANTISSA32 = 127, 23


@kernel
def exponentials32(x: Any, m: int, bits: Any, powers: Any) -> None:
    """Replace the first m numbers of single precision, all at most 0, by their exponentials; see `exponentials`.

    Examples
    --------
    >>> x, bits = np.array([0.0, -1.0, -np.inf], np.float32), np.empty(3, np.int32)
    >>> exponentials32(x, 3, bits, bits.view(np.float32))
    >>> x
    array([1.        , 0.36787945, 0.        ], dtype=float32)
    """
    for i in range(m):
        v = max(x[i], np.float32(LOWEST32))
        n = np.floor(v * np.float32(LOG2E) + np.float32(0.5))
        r = (v - n * np.float32(LOG2_HIGH)) - n * np.float32(LOG2_LOW)
        p = np.float32(1.98412698e-04)  # 1/7!, then 1/6!, …
        p = p * r + np.float32(1.38888889e-03)
        p = p * r + np.float32(8.33333333e-03)
        p = p * r + np.float32(4.16666667e-02)
        p = p * r + np.float32(1.66666667e-01)
        p = p * r + np.float32(0.5)
        p = p * r + np.float32(1.0)
        p = p * r + np.float32(1.0)
        bits[i] = (np.int32(n) + np.int32(BIAS32)) << np.int32(MANTISSA32) if x[i] >= LOWEST32 else np.int32(0)
        x[i] = p
    for i in range(m):
        x[i] *= powers[i]
