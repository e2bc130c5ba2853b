"""Sets of baskets as bits: 64 baskets to a word, one row of words for each item.

The baskets that hold two items are those whose bit is set in both rows, so a support is a bitwise AND and a count of bits.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.popcount import ones

WORD = 64

_1 = np.uint64(1)


def n_words(n):
    """Give the words that n bits take."""
    return -(-n // WORD)


def packed(table):
    """Pack a boolean table, one row a basket, into one row of bits for each item.

    >>> packed(np.array([[True, False], [True, True]]))
    array([[3],
           [2]], dtype=uint64)
    """
    n, p = table.shape
    bits = np.zeros((p, n_words(n) * 8), dtype=np.uint8)
    bits[:, : -(-n // 8)] = np.packbits(np.ascontiguousarray(table.T), axis=1, bitorder="little")
    return bits.view("<u8").astype(np.uint64, copy=False)


@kernel
def set_bits(indptr, indices, slot, bits):
    """Set bit i of row slot[j] for every item j of basket i; items whose slot is negative are left out."""
    for i in range(len(indptr) - 1):
        word, bit = i >> 6, _1 << np.uint64(i & 63)
        for e in range(indptr[i], indptr[i + 1]):
            s = slot[indices[e]]
            if s >= 0:
                bits[s, word] |= bit


@kernel
def intersect(A, a, B, b, out, o):
    """Write the bits that row a of A and row b of B share to row o of `out`, and count them.

    Rows are told by numbers, since a view of each would be counted atomically at every call.
    """
    n = np.uint64(0)
    for i in range(out.shape[1]):
        x = A[a, i] & B[b, i]
        out[o, i] = x
        n += ones(x)
    return np.float64(n)


@kernel
def total(bits, row, weight):
    """Sum the weights of the baskets whose bits are set in a row."""
    s = 0.0
    for i in range(bits.shape[1]):
        x = bits[row, i]
        while x:
            rest = x & (x - _1)  # without its lowest bit
            s += weight[(i << 6) + np.int64(ones((x ^ rest) - _1))]
            x = rest
    return s


@kernel
def supports(bits, weight):
    """Count the bits of every row, or sum their weights if there are any."""
    found = np.zeros(bits.shape[0])
    for j in range(bits.shape[0]):
        if weight.size:
            found[j] = total(bits, j, weight)
        else:
            found[j] = intersect(bits, j, bits, j, bits, j)
    return found
