"""Resamples, and statistics of them, compiled: rows are drawn by the thousand and every resample is gone through once.

A table of draws is (resamples, rows): entry (r, i) is the row that stands in place i of resample r. Rows lie in groups, the
strata or the samples: `members` lists the rows of one group after the other and `bounds` says where each group begins, so a
place is filled from its own group.
A statistic's kernel gives for every resample the statistic and an estimate of its own standard error:
    mean          s / √n
    variance      √((m₄ − m₂²) / n) · n/(n − 1), m the central moments of the resample
    correlation   √(Σ uᵢ²) / n, where uᵢ = xᵢ yᵢ − r (xᵢ² + yᵢ²)/2 for standardized x, y
    quantile      √(Σ wₖ x₍ₖ₎² − (Σ wₖ x₍ₖ₎)²), where wₖ is the chance that the quantile of a resample of this resample is
                  its k-th value [1].

[1] Maritz & Jarrett, JASA 73 (1978); Harrell & Davis, Biometrika 69 (1982).
"""

import math

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import fill_uniform, next_uniform


@kernel
def draw_rows(state, members, bounds, out):
    """Fill a table of draws, each row by itself."""
    uniform = np.empty(out.shape[1])
    for r in range(out.shape[0]):
        fill_uniform(state, uniform)
        for g in range(len(bounds) - 1):
            first, n = bounds[g], bounds[g + 1] - bounds[g]
            for i in range(first, first + n):
                out[r, i] = members[first + int(uniform[i] * n)]


@kernel
def draw_runs(state, members, bounds, length, circular, out):
    """Fill a table of draws, run by run; circular runs go on at the group's first row after its last."""
    for r in range(out.shape[0]):
        for g in range(len(bounds) - 1):
            first, end = bounds[g], bounds[g + 1]
            n = end - first
            starts = n if circular else n - length + 1
            i = first
            while i < end:
                at = int(next_uniform(state) * starts)
                for step in range(min(length, end - i)):
                    out[r, i + step] = members[first + (at + step) % n]
                i += length


@kernel
def draw_balanced(state, members, bounds, out):
    """Fill a table of draws in which every row stands as often as there are resamples: copies of all rows, shuffled."""
    n_resamples = out.shape[0]
    for g in range(len(bounds) - 1):
        first, n = bounds[g], bounds[g + 1] - bounds[g]
        for r in range(n_resamples):
            for i in range(n):
                out[r, first + i] = members[first + i]
        for k in range(n_resamples * n - 1, 0, -1):
            j = int(next_uniform(state) * (k + 1))
            a, b, c, d = k // n, first + k % n, j // n, first + j % n
            out[a, b], out[c, d] = out[c, d], out[a, b]


@kernel
def means(rows, x, out, error):
    """Average each resample of centered values."""
    n = rows.shape[1]
    for r in range(rows.shape[0]):
        s = q = 0.0
        for i in range(n):
            v = x[rows[r, i]]
            s += v
            q += v * v
        out[r] = s / n
        error[r] = math.sqrt(max(q - s * s / n, 0.0) / (n - 1) / n)


@kernel
def variances(rows, x, out, error):
    """Give the variance, over n − 1, of each resample of centered values."""
    n = rows.shape[1]
    for r in range(rows.shape[0]):
        mean = 0.0
        for i in range(n):
            mean += x[rows[r, i]]
        mean /= n
        second = fourth = 0.0
        for i in range(n):
            square = (x[rows[r, i]] - mean) ** 2
            second += square
            fourth += square * square
        out[r] = second / (n - 1)
        error[r] = math.sqrt(max(fourth - second * second / n, 0.0)) / (n - 1)


@kernel
def correlations(rows, x, y, out, error):
    """Give the correlation of each resample of two columns; NaN where one of them is constant."""
    n = rows.shape[1]
    for r in range(rows.shape[0]):
        first, last = rows[r, 0], rows[r, 0]
        same_x = same_y = True
        mean_x = mean_y = 0.0
        for i in range(n):
            last = rows[r, i]
            same_x = same_x and x[last] == x[first]
            same_y = same_y and y[last] == y[first]
            mean_x += x[last]
            mean_y += y[last]
        if same_x or same_y:
            out[r] = error[r] = np.nan
            continue
        mean_x /= n
        mean_y /= n
        xx = yy = xy = 0.0
        for i in range(n):
            a, b = x[rows[r, i]] - mean_x, y[rows[r, i]] - mean_y
            xx += a * a
            yy += b * b
            xy += a * b
        value = min(max(xy / math.sqrt(xx * yy), -1.0), 1.0)
        scale_x, scale_y, total = math.sqrt(n / xx), math.sqrt(n / yy), 0.0
        for i in range(n):
            a, b = (x[rows[r, i]] - mean_x) * scale_x, (y[rows[r, i]] - mean_y) * scale_y
            total += (a * b - 0.5 * value * (a * a + b * b)) ** 2
        out[r], error[r] = value, math.sqrt(total) / n


@kernel
def quantiles(rows, rank, ordered, center, share, chance, out, error):
    """Give a quantile of each resample: counts of the ranks, gone through in order, need no sorting.

    Parameters
    ----------
    rank : (N,), place of each row among the values in order.
    ordered : (N,), the values in order.
    center : A value near the quantile: squares of what is left cancel less.
    share : Probability of the quantile; between two values it is interpolated.
    chance : (n + 1,), chance that the quantile is one of the first k values.
    """
    n = rows.shape[1]
    counts = np.zeros(len(ordered), np.int64)
    at = share * (n - 1)
    low = int(at)
    high = min(low + 1, n - 1)
    for r in range(rows.shape[0]):
        for i in range(n):
            counts[rank[rows[r, i]]] += 1
        below = above = mean = square = 0.0
        k = 0
        for v in range(len(ordered)):
            end = k + counts[v]
            if end == k:
                continue
            counts[v] = 0
            value, weight = ordered[v] - center, chance[end] - chance[k]
            if k <= low < end:
                below = ordered[v]
            if k <= high < end:
                above = ordered[v]
            mean += weight * value
            square += weight * value * value
            k = end
        out[r] = below + (at - low) * (above - below)
        error[r] = math.sqrt(max(square - mean * mean, 0.0))
