"""The best cut of one column for classes: a pass along its sorted elements.

With the weights l and r of the classes to the left and right of a cut, L = Σl, R = Σr, the impurity that is left is, times the
weight of the node, for

Gini     L + R − (Σ l²/L + Σ r²/R)
entropy  (L ln L − Σ l ln l) + (R ln R − Σ r ln r)      in nats
error    L + R − (max l + max r)

A cut is scored by what is subtracted; one element moves one class from right to left, so a score costs the same for any number
of classes. Missing values stand behind all others and so go right; for the other direction a pass begins with them on the left.
A cut wins only if it is better by more than rounding: then the first of equal cuts is the same whatever was rounded on the way.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.tree.presort import RANK, ROW, ROWS

GINI, ENTROPY, ERROR = 0, 1, 2
CHUNK = 512
TIE = 1e-12  # of the impurity: rounding is a thousand times less, and what a user can see a thousand times more
FEATHER = 1e-9  # share of a node's weight below which a side is too light for its mean to be known beside the other
U1 = np.uint64(1)


@kernel
def scan_pair(elements, column, a, stop, n, ones, n_left, ones_left, least, best, tie, prefix, score):
    """Find the best cut between two classes by Gini, rows counted; return (score, position), -1 if nothing is better.

    Parameters
    ----------
    elements, column : Elements of all columns, and which to scan: a view of one row would be counted by all threads.
    a, stop : Where the cuts begin and end: a cut is after an element.
    n, ones : Rows of the node, and how many are of the second class.
    n_left, ones_left : Rows that are left of every cut, because they miss the value.
    least : Least number of rows on a side.
    best, tie : Score to beat, and by how much.
    prefix, score : Room for a chunk of counts and scores.
    """
    position = -1
    total, t = np.float64(n), np.float64(ones)
    seen = ones_left
    # A score is far cheaper where a loop does nothing else, so counts, scores and the search for the best take turns.
    for s in range(a, stop, CHUNK):
        k = min(CHUNK, stop - s)
        for i in range(k):
            seen += np.int64(elements[column, s + i] & U1)
            prefix[i] = seen
        before = n_left + s - a + 1
        for i in range(k):
            left, c = np.float64(before + i), np.float64(prefix[i])
            u, right, d = left - c, total - left, t - c
            w = right - d
            v = ((c * c + u * u) * right + (d * d + w * w) * left) / (left * right)
            score[i] = -1.0 if (elements[column, s + i] >> RANK) == (elements[column, s + i + 1] >> RANK) else v
        for i in range(k):
            if score[i] > best + tie:
                left = before + i
                if left >= least and n - left >= least:
                    best, position = score[i], s + i
    return best, position


@kernel
def of_row(weight, row):
    """Give the weight of a row; without weights every row counts as one."""
    return weight[row] if len(weight) > 0 else 1.0


@kernel
def over(x, weight):
    """Divide by the weight of a side; one that is all rounding, beside much heavier rows, counts for nothing."""
    return x / weight if weight > 0 else 0.0


@kernel
def xlogx(x):
    """Give x ln x, 0 at 0."""
    return x * np.log(x) if x > 0 else 0.0


@kernel
def score_of(left, right, criterion):
    """Score a cut from the weights of the classes on its sides."""
    wl, wr, a, b = 0.0, 0.0, 0.0, 0.0
    for k in range(len(left)):
        wl += left[k]
        wr += right[k]
    for k in range(len(left)):
        if criterion == GINI:
            a += left[k] * left[k]
            b += right[k] * right[k]
        elif criterion == ENTROPY:
            a += xlogx(left[k])
            b += xlogx(right[k])
        else:
            a, b = max(a, left[k]), max(b, right[k])
    if criterion == GINI:
        return over(a, wl) + over(b, wr)
    return a + b - (xlogx(wl) + xlogx(wr) if criterion == ENTROPY else 0.0)


@kernel
def _grown(x, w, logs):
    """Give how much x ln x changes by a step w; of whole numbers from the table."""
    if len(logs) > 0:
        return logs[int(x + w)] - logs[int(x)]
    return xlogx(x + w) - xlogx(x)


@kernel
def scan_classes(
    e, a, stop, n, labels, weight, total, left, right, criterion, least, lightest, best, tie, suffix, logs, sign, low, high
):
    """Find the best cut between classes whose rows have weights; return (score, position).

    Parameters
    ----------
    e, a, stop, n, least, best, tie : As in `scan_pair`.
    labels, weight : Class and weight of each row; see `of_row`.
    total : Weight of each class in the node.
    left : On entry the weight of each class among the rows that are left of every cut; used up.
    right : Room for the weights on the other side.
    lightest : Least weight on a side.
    suffix : Room for the largest class on the right of each cut, for the error.
    logs : x ln x for whole x, where rows count as one.
    sign, low, high : Whether the share of the second class may only rise (1) or fall (-1) from left to right, 0 for either,
        and the bounds that it keeps on both sides; infinite where nothing is asked for.
    """
    position, n_left = -1, n - (stop - a) - 1
    if stop == a:
        return best, position
    wl, wr, sl, sr = 0.0, 0.0, 0.0, 0.0
    for k in range(len(total)):
        right[k] = total[k] - left[k]
        wl += left[k]
        wr += right[k]
    for k in range(len(total)):
        if criterion == GINI:
            sl += left[k] * left[k]
            sr += right[k] * right[k]
        elif criterion == ENTROPY:
            sl += xlogx(left[k])
            sr += xlogx(right[k])
        else:
            sl = max(sl, left[k])
    if criterion == ERROR:
        _suffix_largest(e, a, stop, labels, weight, left, total, right, suffix)
    for i in range(a, stop):
        row = (e[i] >> ROW) & ROWS
        k = labels[row]
        w = of_row(weight, row)
        if criterion == GINI:
            sl += w * (2.0 * left[k] + w)
            sr -= w * (2.0 * right[k] - w)
        elif criterion == ENTROPY:
            sl += _grown(left[k], w, logs)
            sr += _grown(right[k], -w, logs)
        left[k] += w
        right[k] -= w
        wl += w
        wr = max(wr - w, 0.0)
        if criterion == ERROR:
            sl, sr = max(sl, left[k]), suffix[i - a]
        n_left += 1
        if (e[i] >> RANK) == (e[i + 1] >> RANK) or n_left < least or n - n_left < least or wl < lightest or wr < lightest:
            continue
        if criterion == GINI:
            v = over(sl, wl) + min(over(sr, wr), wr)  # beside much heavier rows the right side is all rounding; Σ r² ≤ R²
        elif criterion == ENTROPY:
            v = sl + sr - (xlogx(wl) + xlogx(wr) if len(logs) == 0 else logs[int(wl)] + logs[int(wr)])
        else:
            v = sl + sr
        if v > best + tie and in_order(left[1], wl, right[1], wr, sign, low, high, TIE):
            best, position = v, i
    return best, position


@kernel
def in_order(left, wl, right, wr, sign, low, high, slack):
    """Tell whether the means of two sides obey a monotone constraint and stay within the bounds from above, but for rounding.

    Sums `left` and `right` are over sides of the weights wl and wr; the slack is that of the mean of all.
    """
    if sign == 0 and low == -np.inf and high == np.inf:
        return True
    if min(wl, wr) < FEATHER * (wl + wr):
        return False
    one, two, slack = left / wl, right / wr, slack * (wl + wr) / min(wl, wr)
    return (two - one) * sign >= -slack and min(one, two) >= low - slack and max(one, two) <= high + slack


@kernel
def scan_class_bins(
    order, m, rows, weights, n, n_left, total, left, right, criterion, least, lightest, best, tie, sign, low, high
):
    """Find the best cut between values that are counted rather than sorted; return (score, position in the order).

    Parameters
    ----------
    order, m : The values that occur, in the order in which cuts part them, and their number.
    rows, weights : Rows, and weight of each class, that have a value.
    n_left : Rows that are left of every cut; `left` holds the weights of their classes.
    """
    position = -1
    for k in range(len(total)):
        right[k] = total[k] - left[k]
    for i in range(m - 1):
        b = order[i]
        n_left += rows[b]
        wl, wr = 0.0, 0.0
        for k in range(len(total)):
            left[k] += weights[b, k]
            right[k] = max(total[k] - left[k], 0.0)
        for k in range(len(total)):
            wl += left[k]
            wr += right[k]
        if n_left < least or n - n_left < least or wl < lightest or wr < lightest:
            continue
        v = score_of(left, right, criterion)
        if v > best + tie and in_order(left[1], wl, right[1], wr, sign, low, high, TIE):
            best, position = v, i
    return best, position


@kernel
def _suffix_largest(e, a, stop, labels, weight, left, total, right, suffix):
    """Write the largest class to the right of each cut: a pass from behind, in which classes only grow."""
    for k in range(len(total)):
        right[k] = total[k] - left[k]
    for i in range(a, stop):
        row = (e[i] >> ROW) & ROWS
        right[labels[row]] -= of_row(weight, row)
    largest = 0.0
    for k in range(len(total)):
        largest = max(largest, right[k])
    for i in range(stop - 1, a - 1, -1):
        suffix[i - a] = largest
        row = (e[i] >> ROW) & ROWS
        k = labels[row]
        right[k] += of_row(weight, row)
        largest = max(largest, right[k])
