"""Histograms of gradients in integers: for every bin of every column the sums of g and h over the rows of a node.

A row's gradient and second derivative are written in fixed point into one 64-bit integer, g·2³² + h with h ≥ 0, so that one
addition serves both; and as integers add up to the same in any order, the histogram of a node less that of one child is
exactly that of the other, and no thread can change a bit. Scales are powers of two for which no sum can overflow.

Codes of eight columns lie in one 64-bit word, all words of a row side by side; for partitions they lie by column as well. The
histogram of eight columns has 16 KB and stays in the nearest cache.

Rows are dealt out to threads in stripes, so that each has its share of any stretch of the table. A thread keeps the numbers of
its rows in a part of `rows` that is its own; those of a node stand together there, and move from one row of the array to the
other as the node is split, so that a node at depth k is in row k % 2. The root is not written down: it has all rows, in order.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.prefetch import prefetch

U = np.uint64
BYTE = U(255)
TILE = 128  # rows gathered at a time
STRIPE = 32 * TILE  # rows dealt out at a time
PRECISE = 1 << 16  # rows up to which rounding to the nearest is precise enough
GOLDEN, GOLDEN_2 = 0.6180339887498949, 0.7548776662466927  # multiples of which run evenly through [0, 1)
MOST_G, MOST_H = 2.0**31, 2.0**32  # what sums must stay below


class Codes(NamedTuple):
    """A table of codes: words by row, bytes by column; bins and kinds of the columns."""

    by_row: np.ndarray
    by_column: np.ndarray
    n_bins: np.ndarray
    is_categorical: np.ndarray
    trends: np.ndarray


def new_codes(codes, bins, trends):
    """Lay codes, (rows, columns padded to a multiple of eight) of uint8, out for the histograms."""
    d = len(bins.edges)
    kinds = np.zeros(d, bool) if bins.is_categorical is None else np.asarray(bins.is_categorical)
    by_column = np.ascontiguousarray(codes[:, :d].T)
    return Codes(codes.view(np.uint64), by_column, bins.n_bins.astype(np.int64), kinds, np.asarray(trends, np.int64))


def histogram_length(d):
    """Return the length of a histogram: 256 bins for each of d columns, padded to a multiple of four columns."""
    return 256 * (-(-d // 4) * 4)


def shares(n, n_threads):
    """Return where the rows of each thread begin, and where those of the last one end."""
    stripe = np.arange(n) // STRIPE % n_threads
    return np.concatenate([[0], np.cumsum(np.bincount(stripe, minlength=n_threads))])


@kernel
def add8(x, v, hist, start):
    """Add the value of a row to the bins of the eight columns of a word."""
    hist[start + (x & BYTE)] += v
    hist[start + U(256) + ((x >> U(8)) & BYTE)] += v
    hist[start + U(512) + ((x >> U(16)) & BYTE)] += v
    hist[start + U(768) + ((x >> U(24)) & BYTE)] += v
    hist[start + U(1024) + ((x >> U(32)) & BYTE)] += v
    hist[start + U(1280) + ((x >> U(40)) & BYTE)] += v
    hist[start + U(1536) + ((x >> U(48)) & BYTE)] += v
    hist[start + U(1792) + (x >> U(56))] += v


@kernel
def add4(x, v, hist, start):
    """Add the value of a row to the bins of the first four columns of a word."""
    hist[start + (x & BYTE)] += v
    hist[start + U(256) + ((x >> U(8)) & BYTE)] += v
    hist[start + U(512) + ((x >> U(16)) & BYTE)] += v
    hist[start + U(768) + ((x >> U(24)) & BYTE)] += v


@kernel
def fill_all(codes, values, me, n_threads, hist):
    """Write the histograms of all columns over all rows of a thread."""
    by_row, n = codes.by_row, codes.by_row.shape[0]
    hist[:] = 0
    for stripe in range(me * STRIPE, n, n_threads * STRIPE):
        for s in range(stripe, min(stripe + STRIPE, n), TILE):
            a, b = U(s), U(min(s + TILE, n))
            for g in range(by_row.shape[1]):
                word, start = U(g), U(g * 2048)
                if start + U(2048) <= U(len(hist)):
                    for i in range(a, b):
                        add8(by_row[i, word], values[i], hist, start)
                else:
                    for i in range(a, b):
                        add4(by_row[i, word], values[i], hist, start)


@kernel
def fill_histogram(codes, rows, a, b, values, hist, words, tile):
    """Write the histograms of all columns over the rows in places a, …, b − 1.

    Parameters
    ----------
    values : Packed derivatives, or weights, of all rows.
    words, tile : Room for the words and values of `TILE` rows.
    """
    by_row = codes.by_row
    flat, stride = by_row.ravel(), U(by_row.shape[1])
    hist[:] = 0
    for s in range(a, b, TILE):
        m = min(TILE, b - s)
        for i in range(m):
            tile[i] = values[U(rows[s + i])]
        for g in range(by_row.shape[1]):
            word, start = U(g), U(g * 2048)
            for i in range(m):  # first, as these loads do not wait for each other
                words[i] = by_row[U(rows[s + i]), word]
            if g == 0 and s + 2 * TILE <= b and U(2048) <= U(len(hist)):
                for i in range(m):
                    add8(words[i], tile[i], hist, start)
                    row = U(rows[s + TILE + i])
                    prefetch(flat, row * stride)
                    prefetch(values, row)
            elif start + U(2048) <= U(len(hist)):
                for i in range(m):
                    add8(words[i], tile[i], hist, start)
            else:
                for i in range(m):
                    add4(words[i], tile[i], hist, start)


@kernel
def part_all(codes, goes_left, me, n_threads, a, b, out):
    """Write the rows of a thread to the places a, …, b − 1: those that go left from the front, the others from the back.

    Parameters
    ----------
    codes : Codes of one column.
    goes_left : 1 for each code that goes left, else 0.

    Returns
    -------
    Where the second begin; their order is turned round, which integers do not mind.
    """
    left, right = U(a), U(b - 1)
    for stripe in range(me * STRIPE, len(codes), n_threads * STRIPE):
        for i in range(U(stripe), U(min(stripe + STRIPE, len(codes)))):
            g = U(goes_left[codes[i]])
            out[left] = i
            out[right] = i
            left += g
            right -= U(1) - g
    return np.int64(left)


@kernel
def part(codes, goes_left, source, a, b, out):
    """Do the same with the rows in places a, …, b − 1 of `source`."""
    left, right = U(a), U(b - 1)
    for i in range(U(a), U(b)):
        e = source[i]
        g = U(goes_left[codes[U(e)]])
        out[left] = e
        out[right] = e
        left += g
        right -= U(1) - g
    return np.int64(left)


@kernel
def unit(total, rows, most):
    """Return the largest power of two by which numbers may be multiplied so that their sum, each one rounded, stays below."""
    scale = (most - rows) / max(total, 1e-280)
    return 2.0 ** min(max(np.floor(np.log2(scale)), -960.0), 960.0)


@kernel
def quantize(g, h, even, g_scale, h_scale, n, first, turn, packed):
    """Write derivatives in fixed point.

    Of many rows each has few digits, and many may have the same derivatives: so that their rounding errors do not add up, they
    are rounded up or down by a dither that runs evenly through [0, 1).

    Parameters
    ----------
    even : Whether h is 1 for all rows, and need not be read.
    n : Number of all rows.
    first, turn : Number of the first row, and of the tree, so that each has a dither of its own.
    """
    shift, one, spread = turn * GOLDEN_2, np.int64(h_scale), 0.0 if n <= PRECISE else 1.0
    for i in range(len(g)):
        u = (first + i) * GOLDEN + shift
        u = 0.5 + spread * (u - np.floor(u) - 0.5)
        packed[i] = np.int64(np.floor(g[i] * g_scale + u)) << 32
    if even:
        for i in range(len(g)):
            packed[i] += one
        return
    for i in range(len(g)):
        u = (first + i) * GOLDEN + shift
        u = 0.5 + spread * (u - np.floor(u) - 0.5)
        packed[i] += np.int64(np.floor(h[i] * h_scale + u))
