"""Histograms of gradients in integers: for every bin of every column the sums of g and h over the rows of a node.

A row's gradient and second derivative are written in fixed point into one 64-bit integer, g·2³² + h with h ≥ 0, so that one
addition serves both; and as integers add up to the same in any order, the histogram of a node less that of one child is
exactly that of the other, and no thread can change a bit. Scales are powers of two for which no sum can overflow.

A row of a node is an element of 64 bits: its number below, and above it g and h in 16 bits each, so that a pass over the node
reads them without a second jump through memory. Up to 65,536 rows, where jumps are cheap, g and h keep all their bits in an
array of their own. With 16 bits a number is rounded up or down by a dither that runs evenly through [0, 1): as the largest
is at least 2¹⁴ units, the error of a sum over all n rows is about √n/2 units against a norm of 2¹⁴ or more.

Codes of eight columns lie in one 64-bit word, by row (all words of a row side by side: for small nodes) and by group of columns
(the words of all rows side by side: for large ones); for partitions they lie by column as well. The histogram of a group has
16 KB and stays in the nearest cache.
"""

import numpy as np

from lemmata.core.kernel import kernel

U = np.uint64
ROW = U(0xFFFFFFFF)  # the part of an element that is the row's number
BYTE = U(255)
TILE = 1024  # rows gathered at a time
DENSE = 8  # a node with more than an eighth of the rows is read by group
WIDE = 1 << 16  # rows up to which gradients keep all their bits
GOLDEN = 0.6180339887498949  # multiples of it run evenly through [0, 1)


@kernel
def add8(words, values, m, hist, start):
    """Add the values of m rows to the bins of the eight columns of their words."""
    for i in range(m):
        x = words[i]
        v = values[i]
        hist[start + (x & BYTE)] += v
        hist[start + U(256) + ((x >> U(8)) & BYTE)] += v
        hist[start + U(512) + ((x >> U(16)) & BYTE)] += v
        hist[start + U(768) + ((x >> U(24)) & BYTE)] += v
        hist[start + U(1024) + ((x >> U(32)) & BYTE)] += v
        hist[start + U(1280) + ((x >> U(40)) & BYTE)] += v
        hist[start + U(1536) + ((x >> U(48)) & BYTE)] += v
        hist[start + U(1792) + (x >> U(56))] += v


@kernel
def add4(words, values, m, hist, start):
    """Add the values of m rows to the bins of the first four columns of their words."""
    for i in range(m):
        x = words[i]
        v = values[i]
        hist[start + (x & BYTE)] += v
        hist[start + U(256) + ((x >> U(8)) & BYTE)] += v
        hist[start + U(512) + ((x >> U(16)) & BYTE)] += v
        hist[start + U(768) + ((x >> U(24)) & BYTE)] += v


@kernel
def fill_histogram(codes, elements, a, b, wide, packed, hist, room):
    """Write the histograms of all columns over the elements a, …, b − 1.

    Parameters
    ----------
    wide : Whether the values are looked up in `packed` instead of read from the elements.
    hist : Flat, 256 bins for each column; a last group of four columns has half the length.
    """
    by_row, by_group, words, values = codes.by_row, codes.by_group, room.words, room.values
    dense = (b - a) * DENSE >= by_row.shape[0]
    for k in range(len(hist)):
        hist[k] = 0
    for s in range(a, b, TILE):
        m = min(TILE, b - s)
        if wide:
            for i in range(m):
                values[i] = packed[U(elements[s + i]) & ROW]
        else:
            for i in range(m):
                x = elements[s + i] >> 32
                values[i] = ((x >> 16) << 32) + (x & 0xFFFF)
        for g in range(by_row.shape[1]):  # one group at a time: loads that do not wait for each other
            if dense:
                for i in range(m):
                    words[i] = by_group[U(g), U(elements[s + i]) & ROW]
            else:
                for i in range(m):
                    words[i] = by_row[U(elements[s + i]) & ROW, U(g)]
            if g * 2048 + 2048 <= len(hist):
                add8(words, values, m, hist, U(g * 2048))
            else:
                add4(words, values, m, hist, U(g * 2048))


@kernel
def add_histogram(hist, other, sign):
    """Add another histogram, or subtract it."""
    for k in range(len(hist)):
        hist[k] += sign * other[k]


@kernel
def partition(codes, goes_left, source, a, b, out):
    """Write the elements a, …, b − 1 to `out`: those that go left from the front, the others from the back.

    Parameters
    ----------
    codes : Codes of one column.
    goes_left : 1 for each code that goes left, else 0.

    Returns
    -------
    Where the second begin; their order is turned round, which integers do not mind.
    """
    left, right = U(a), U(b - 1)
    for i in range(U(a), U(b)):
        e = source[i]
        g = U(goes_left[codes[U(e) & ROW]])
        out[left] = e
        out[right] = e
        left += g
        right -= U(1) - g
    return np.int64(left)


@kernel
def quantize(g, h, g_scale, h_scale, wide, first, turn, packed, elements):
    """Write gradients in fixed point, into `packed` or into the elements, which number the rows from `first` on.

    Parameters
    ----------
    turn : Number of the tree, so that each has a dither of its own.
    """
    if wide:
        for i in range(len(g)):
            packed[i] = (np.int64(np.floor(g[i] * g_scale + 0.5)) << 32) + np.int64(np.floor(h[i] * h_scale + 0.5))
            elements[i] = first + i
        return
    for i in range(len(g)):
        u = (first + i) * GOLDEN + turn * 0.7548776662466927
        u -= np.floor(u)
        q = np.int64(np.floor(g[i] * g_scale + u))
        w = np.int64(np.floor(h[i] * h_scale + u))
        elements[i] = (((q << 16) + w) << 32) + (first + i)
