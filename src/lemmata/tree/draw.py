"""Chance at the nodes of a tree, in a way that can be replayed: what a node draws depends on the tree's seed and its path only.

The key of the root is the seed; that of a child is a hash of its parent's key and the branch. A certificate that walks down a
finished tree finds the same columns drawn, whatever the order in which the nodes were split.

Reference: Steele, Lea & Flood, OOPSLA 2014 (the mixing function).

>>> key = np.uint64(mix(np.uint64(7), np.uint64(1)))
>>> order = np.arange(5, dtype=np.int32)
>>> shuffle(key, order)
>>> sorted(order.tolist())
[0, 1, 2, 3, 4]
"""

import numpy as np

from lemmata.core.kernel import kernel

# Products are made of halves: plain Python, in which kernels run as well, would warn of their overflow.
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
U11, U27, U30, U31 = (np.uint64(k) for k in (11, 27, 30, 31))
ALL, TOP = np.uint64(2**63 - 1), np.uint64(2**63)
ULP = 2.0**-53


@kernel
def _times(a, b):
    """Multiply modulo 2⁶⁴."""
    high = ((a >> HALF) * (b & LOW) & LOW) + ((a & LOW) * (b >> HALF) & LOW)
    low = (a & LOW) * (b & LOW)
    return _plus((high & LOW) << HALF, low)


@kernel
def _plus(a, b):
    """Add modulo 2⁶⁴."""
    return ((a & ALL) + (b & ALL)) ^ ((a ^ b) & TOP)


@kernel
def mix(key, branch):
    """Give the key of a child (branch 1 or 2), or of any numbered use of a key."""
    z = _plus(key, _times(GOLDEN, _plus(branch, np.uint64(1))))
    z = _times(z ^ (z >> U30), FIRST)
    z = _times(z ^ (z >> U27), SECOND)
    return z ^ (z >> U31)


@kernel
def uniform(key):
    """Turn a key into a number of [0, 1)."""
    return np.float64(key >> U11) * ULP


@kernel
def shuffle(key, order):
    """Put numbers into an order that depends on the key only."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(mix(key, np.uint64(2 + i))) * (i + 1))
        order[i], order[j] = order[j], order[i]
