"""Random numbers inside kernels: xoshiro256+ on a state of four 64-bit words, one state for each chain.

NumPy's generators cost a call through a pointer for every number; a chain that takes a few nanoseconds a step needs numbers
that are made in place. The state is linear over bits and has period 2²⁵⁶ − 1; its sum of two words is free of linear
artifacts in the high 53 bits, which are all that a uniform number uses.

    x = s₀ + s₃,    s ← T s,    u = (x >> 11) · 2⁻⁵³ ∈ [0, 1)

References: Blackman & Vigna, ACM Transactions on Mathematical Software, 2021; Marsaglia & Bray, SIAM Review, 1964 (normals).

>>> state = seed(np.random.default_rng(0))
>>> bool(0 <= next_uniform(state) < 1)
True
"""

import math

import numpy as np
from numpy.typing import NDArray

from lemmata.core.kernel import kernel

Words = NDArray[np.uint64]

LOW = np.uint64(2**63 - 1)
TOP = np.uint64(2**63)
ELEVEN, SEVENTEEN, NINETEEN, FORTY_FIVE = (np.uint64(k) for k in (11, 17, 19, 45))
ULP = 2.0**-53


def seed(rng: np.random.Generator) -> Words:
    """Draw a state from a generator of NumPy: 256 bits, never all zero."""
    state = np.zeros(4, dtype=np.uint64)
    while not state.any():
        state[:] = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    return state


@kernel
def next_uniform(state: Words) -> float:
    """Draw a number from [0, 1): a multiple of 2⁻⁵³."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    # The sum modulo 2⁶⁴, without the overflow that plain Python would warn of.
    x = ((s0 & LOW) + (s3 & LOW)) ^ ((s0 ^ s3) & TOP)
    s2 ^= s0
    s3 ^= s1
    state[0], state[1] = s0 ^ s3, s1 ^ s2
    state[2] = s2 ^ (s1 << SEVENTEEN)
    state[3] = (s3 << FORTY_FIVE) | (s3 >> NINETEEN)
    return np.float64(x >> ELEVEN) * ULP


@kernel
def fill_uniform(state: Words, out: NDArray[np.float64]) -> None:
    """Draw len(out) numbers, the same as by as many calls of `next_uniform`; the state stays in registers meanwhile."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for i in range(len(out)):
        x = ((s0 & LOW) + (s3 & LOW)) ^ ((s0 ^ s3) & TOP)
        out[i] = np.float64(x >> ELEVEN) * ULP
        t = s1 << SEVENTEEN
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = (s3 << FORTY_FIVE) | (s3 >> NINETEEN)
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@kernel
def next_normal(state: Words) -> float:
    """Draw a standard normal number by the polar method; the second of the pair is dropped, so that the state is all."""
    while True:
        a = 2.0 * next_uniform(state) - 1.0
        b = 2.0 * next_uniform(state) - 1.0
        r = a * a + b * b
        if 0.0 < r < 1.0:
            return a * math.sqrt(-2.0 * math.log(r) / r)
