"""How similarity falls with distance: exponentials of whole matrices in place, by loops that the compiler vectorizes."""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials, exponentials32

FAR = 1e4  # exponents beyond which an exponential is 0, whatever power multiplies it


@kernel
def decay_rows(S, bits, powers):
    """Replace squares s by exp(−s/2)."""
    m = S.shape[1]
    for i in range(S.shape[0]):
        for j in range(m):
            S[i, j] *= -0.5
        exponentials(S[i], m, bits, powers)


@kernel
def decay_rows32(S, bits, powers):
    """Replace squares s by exp(−s/2) in float32."""
    m = S.shape[1]
    for i in range(S.shape[0]):
        for j in range(m):
            S[i, j] *= np.float32(-0.5)
        exponentials32(S[i], m, bits, powers)


@kernel
def bent_rows(S, scale, a, b, c, u, bits, powers):
    """Replace squares s by (a + bu + cu²) exp(−u) with u² = scale·s; `u` is room for a row."""
    m = S.shape[1]
    for i in range(S.shape[0]):
        for j in range(m):
            u[j] = min(np.sqrt(scale * S[i, j]), FAR)
            S[i, j] = -u[j]
        exponentials(S[i], m, bits, powers)
        for j in range(m):
            S[i, j] *= a + (b + c * u[j]) * u[j]


@kernel
def bent_rows32(S, scale, a, b, c, u, bits, powers):
    """Do the same in float32."""
    m = S.shape[1]
    for i in range(S.shape[0]):
        for j in range(m):
            u[j] = min(np.sqrt(scale * S[i, j]), np.float32(FAR))
            S[i, j] = -u[j]
        exponentials32(S[i], m, bits, powers)
        for j in range(m):
            S[i, j] *= a + (b + c * u[j]) * u[j]


def decay(S):
    """Replace squares s by exp(−s/2) in place, and return them.

    >>> decay(np.array([[0.0, 2.0]])).round(6)
    array([[1.      , 0.367879]])
    """
    if S.dtype == np.float32:
        bits = np.empty(S.shape[1], np.int32)
        decay_rows32(S, bits, bits.view(np.float32))
    else:
        bits = np.empty(S.shape[1], np.int64)
        decay_rows(S, bits, bits.view(np.float64))
    return S


def bent_decay(S, scale, a=1.0, b=0.0, c=0.0):
    """Replace squares s by (a + bu + cu²) exp(−u) in place, u² = scale·s, and return them.

    >>> bent_decay(np.array([[0.0, 1.0]]), 1.0, b=1.0).round(6)
    array([[1.      , 0.735759]])
    """
    numbers = [S.dtype.type(v) for v in (scale, a, b, c)]
    u = np.empty(S.shape[1], S.dtype)
    if S.dtype == np.float32:
        bits = np.empty(S.shape[1], np.int32)
        bent_rows32(S, *numbers, u, bits, bits.view(np.float32))
    else:
        bits = np.empty(S.shape[1], np.int64)
        bent_rows(S, *numbers, u, bits, bits.view(np.float64))
    return S
