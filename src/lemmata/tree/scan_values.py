"""The best cut of one column for numbers: a pass along its sorted elements.

Squares. About the mean m of the node, with D = Σ s (y − m) over the rows left of a cut and L, R the weights of the sides, the
sum of squares falls by D²/L + D²/R. A cut is scored by that.

Absolute values. The cost of a side is Σ s |y − median|. Rows enter a side one at a time; two trees of partial sums over the
ranks of y (Fenwick) hold their weights and weighted values, so that the median and the cost of the side take log n steps. A
cut is scored by the negative cost of both sides.

Reference: Fenwick, Software: Practice and Experience, 1994.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.presort import RANK, ROW, ROWS
from lemmata.tree.scan_classes import CHUNK, in_order, of_row, over


@kernel
def scan_mean(
    e, a, stop, n, y, weight, mean, total, sum_total, wl, sum_left, least, lightest, best, tie, sign, low, high, slack
):
    """Find the best cut by squares; return (score, position).

    Parameters
    ----------
    mean : Of the node; sums are of the distances to it.
    total, sum_total : Weight of the node, and the sum, which is zero up to rounding.
    wl, sum_left : The same of the rows that are left of every cut, because they miss the value.
    e, a, stop, n, least, lightest, best, tie, sign, low, high : As in `scan_classes`, for means.
    slack : By how much rounding may break a constraint; see `in_order`.
    """
    position, n_left = -1, n - (stop - a) - 1
    for i in range(a, stop):
        row = (e[i] >> ROW) & ROWS
        w = of_row(weight, row)
        wl += w
        sum_left += w * (y[row] - mean)
        n_left += 1
        if (e[i] >> RANK) == (e[i + 1] >> RANK) or n_left < least or n - n_left < least:
            continue
        wr, sum_right = max(total - wl, 0.0), sum_total - sum_left
        if wl < lightest or wr < lightest:
            continue
        v = over(sum_left * sum_left, wl) + over(sum_right * sum_right, wr)
        if v > best + tie and in_order(sum_left, wl, sum_right, wr, sign, low - mean, high - mean, slack):
            best, position = v, i
    return best, position


@kernel
def scan_mean_of_rows(elements, column, a, stop, n, y, mean, sum_total, n_left, sum_left, least, best, tie, sums, score):
    """Do as `scan_mean` where rows are counted and no column is monotone: the usual case, in steps as in `scan_pair`.

    Parameters
    ----------
    n_left, sum_left : Rows that are left of every cut, because they miss the value, and their sum.
    sums, score : Room for a chunk of sums and scores.
    """
    position, rows = -1, np.float64(n)
    for s in range(a, stop, CHUNK):
        k = min(CHUNK, stop - s)
        for i in range(k):
            score[i] = y[(elements[column, s + i] >> ROW) & ROWS]  # loads that do not wait for the sum
        for i in range(k):
            sum_left += score[i] - mean
            sums[i] = sum_left
        before = n_left + s - a + 1
        for i in range(k):
            left, u = np.float64(before + i), sums[i]
            right, w = rows - left, sum_total - u
            v = (u * u * right + w * w * left) / (left * right)
            score[i] = -1.0 if (elements[column, s + i] >> RANK) == (elements[column, s + i + 1] >> RANK) else v
        for i in range(k):
            if score[i] > best + tie:
                left = before + i
                if left >= least and n - left >= least:
                    best, position = score[i], s + i
    return best, position


@kernel
def scan_mean_bins(
    order, m, rows, weights, sums, n, n_left, mean, total, sum_total, wl, sum_left, least, lightest, best, tie, sign, low, high,
    slack,
):  # fmt: skip
    """Find the best cut by squares between values that are counted, not sorted; return (score, position in the order)."""
    position = -1
    for i in range(m - 1):
        b = order[i]
        n_left += rows[b]
        wl += weights[b, 0]
        sum_left += sums[b]
        wr, sum_right = max(total - wl, 0.0), sum_total - sum_left
        if n_left < least or n - n_left < least or wl < lightest or wr < lightest:
            continue
        v = over(sum_left * sum_left, wl) + over(sum_right * sum_right, wr)
        if v > best + tie and in_order(sum_left, wl, sum_right, wr, sign, low - mean, high - mean, slack):
            best, position = v, i
    return best, position


@kernel
def enter(weights, sums, place, w, v):
    """Let a row with this rank enter a side."""
    i = place + 1
    while i < len(weights):
        weights[i] += w
        sums[i] += w * v
        i += i & -i


@kernel
def cost(weights, sums, sorted_y, center, total, sum_total):
    """Give Σ s |y − median| of a side; `sorted_y` has the values by rank, and sums are about the center."""
    m = len(weights) - 1
    step = 1
    while 2 * step <= m:
        step *= 2
    place, below, sum_below = 0, 0.0, 0.0
    while step > 0:  # to the last rank below which less than half of the weight lies
        if place + step <= m and 2.0 * (below + weights[place + step]) < total:
            place += step
            below += weights[place]
            sum_below += sums[place]
        step //= 2
    median = sorted_y[min(place, m - 1)] - center
    return median * below - sum_below + (sum_total - sum_below) - median * (total - below)


@kernel
def scan_median(
    e, a, stop, b, n, y, weight, place, sorted_y, center, missing_left, least, lightest, best, tie, weights, sums, suffix
):
    """Find the best cut by absolute values; return (score, position).

    Parameters
    ----------
    b : End of the node; the elements from `stop` + 1 to here miss the value if `missing_left`, and are left of every cut.
    place, sorted_y : Rank of each row's y among those of the node, and the values by rank.
    center : A number near the values, for the sake of rounding.
    weights, sums, suffix : Room for the trees of partial sums, and for the cost to the right of each cut.
    """
    position = -1
    weights[:] = 0.0
    sums[:] = 0.0
    total, sum_total = 0.0, 0.0
    for i in range((stop if missing_left else b - 1), a, -1):
        row = (e[i] >> ROW) & ROWS
        w = of_row(weight, row)
        enter(weights, sums, place[row], w, y[row] - center)
        total += w
        sum_total += w * (y[row] - center)
        if i <= stop:
            suffix[i - 1 - a] = cost(weights, sums, sorted_y, center, total, sum_total)
    right = total
    weights[:] = 0.0
    sums[:] = 0.0
    total, sum_total, n_left = 0.0, 0.0, n - (stop - a) - 1
    if missing_left:
        for i in range(stop + 1, b):
            row = (e[i] >> ROW) & ROWS
            w = of_row(weight, row)
            enter(weights, sums, place[row], w, y[row] - center)
            total += w
            sum_total += w * (y[row] - center)
    for i in range(a, stop):
        row = (e[i] >> ROW) & ROWS
        w = of_row(weight, row)
        enter(weights, sums, place[row], w, y[row] - center)
        total += w
        sum_total += w * (y[row] - center)
        if i > a:
            right = max(right - w, 0.0)
        n_left += 1
        if (e[i] >> RANK) == (e[i + 1] >> RANK) or n_left < least or n - n_left < least or total < lightest or right < lightest:
            continue
        v = -cost(weights, sums, sorted_y, center, total, sum_total) - suffix[i - a]
        if v > best + tie:
            best, position = v, i
    return best, position
