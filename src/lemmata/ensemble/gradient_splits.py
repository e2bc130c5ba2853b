"""The best split of a node, from its histogram.

With G and H the sums of gradients and second derivatives over a node, the second-order model Gv + ½(H + λ)v² of the loss is
least at v = −G/(H + λ), where it is −½G²/(H + λ). A split is worth what it lowers the model by,
½[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)].

- Numbers: all thresholds between bins, with missing values on the right and, if there are any, on the left as well.
- Categories: in the order of G/H of each, missing values being one of them, and cut like numbers. The gain is convex in
  (G_L, H_L), so the best subset is a vertex of the set of all subset sums, and these are cut off by lines αG + βH: they are the
  beginnings of that order (Fisher 1958; Breiman et al. 1984, th. 4.5). No subset is better, for any λ, as long as no child has
  too few rows; categories of equal G/H stay in the order of their codes.
- Monotone columns: the values of both children are held in the bounds of the node, −½G²/(H + λ) becomes the model at the
  bounded value, and a split whose values go the wrong way counts for nothing.

A child needs `least` rows, by weight. Histograms hold no counts, but h ≤ c·(weight of the row) for a known c, so a child with
H ≥ c·least has enough rows for certain. Where a split that may have too few looks better than all that are certain, the
weights are counted in a histogram of their own.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel

HIGH = 32
LOW = 0xFFFFFFFF
NO_SPLIT = -np.inf
LEAST_GAIN = 1e-9  # of the scores compared: less is rounding
LEAST_HESSIAN = 1e-3  # of a child, as elsewhere: below it a Newton step means nothing


class Room(NamedTuple):
    """What a thread needs to scan a column."""

    scores: np.ndarray
    sums: np.ndarray


def new_room():
    """Make room for a thread."""
    return Room(np.empty((4, 257)), np.empty((3, 257), np.int64))


@kernel
def model(g, h, low, high):
    """Twice what the second-order model falls by at its best value within bounds, h including λ."""
    v = min(max(-g / h, low), high)
    return -(2.0 * g + h * v) * v


@kernel
def score_prefixes(prefix, m, total, counted, weights, g_unit, h_unit, ridge, least_h, least, low, high, trend, room, score):
    """Score the splits that put the first 1, …, m bins left; −∞ where a child has too little.

    Parameters
    ----------
    prefix : Sums over these bins, packed.
    weights : Sums of weights over the same bins and, at the end, over all; looked at where `counted`.
    least_h, least : What each child needs of h, and of weight if that is known.
    low, high, trend : Bounds of the values, and 1, −1 or 0 for a column that must raise the value, lower it, or may do both.
    room : (2, 256) numbers.
    """
    G, H = np.float64(total >> HIGH) * g_unit, np.float64(total & LOW) * h_unit
    for b in range(m):
        room[0, b] = np.float64(np.int32(prefix[b] >> HIGH))
        room[1, b] = np.float64(np.uint32(prefix[b] & LOW))
    if trend == 0 and low == -np.inf and high == np.inf:
        for b in range(m):
            a, c = room[0, b] * g_unit, room[1, b] * h_unit
            d, e = G - a, H - c
            enough = min(c, e) >= least_h
            c, e = c + ridge, e + ridge
            score[b] = (a * a * e + d * d * c) / (c * e) if enough else NO_SPLIT
    else:
        for b in range(m):
            a, c = room[0, b] * g_unit, room[1, b] * h_unit
            d, e = G - a, H - c
            score[b] = NO_SPLIT
            if min(c, e) >= least_h:
                c, e = c + ridge, e + ridge
                rise = min(max(-d / e, low), high) - min(max(-a / c, low), high)
                if trend * rise >= 0.0:
                    score[b] = model(a, c, low, high) + model(d, e, low, high)
    if counted:
        for b in range(m):
            if min(weights[b], weights[256] - weights[b]) < least:
                score[b] = NO_SPLIT


@kernel
def argmax(score, m):
    """Position of the first of the largest scores; −1 if none is a split."""
    best, at = NO_SPLIT, -1
    for b in range(m):
        if score[b] > best:
            best, at = score[b], b
    return at


@kernel
def category_order(hist, start, n_bins, order, keys):
    """Order the categories present in a node by G/H; return how many there are."""
    m = 0
    for b in range(257):
        code = b if b < 256 else 255
        if (b < n_bins or b == 256) and hist[start + code] != 0:
            v = hist[start + code]
            h = np.float64(v & LOW)
            g = np.float64(v >> HIGH)
            key = g / h if h > 0 else np.copysign(np.inf, g)
            at = m
            while at > 0 and keys[at - 1] > key:
                keys[at], order[at] = keys[at - 1], order[at - 1]
                at -= 1
            keys[at], order[at] = key, code
            m += 1
    return m


@kernel
def scan_column(hist, start, n_bins, categorical, counted, counts, total, units, needs, low, high, trend, room, found):
    """Find the best split of one column.

    Parameters
    ----------
    counts : Histogram of weights, looked at where `counted`.
    units : Units of g and of h, and λ.
    needs : What a child needs: of h at the least, of h to have enough rows for certain, and of weight.
    low, high : Bounds of the values of the children.
    found : Written: score, where, score of the best split that may have too few rows. `where` is twice the number of bins on
        the left less one, plus 1 if missing values go left.

    Returns
    -------
    The sums over the left child, packed.
    """
    score, keys, weights, prefix, order = room.scores[2], room.scores[3], room.sums[0], room.sums[1], room.sums[2]
    found[0], found[1], found[2] = NO_SPLIT, -1.0, NO_SPLIT
    left = np.int64(0)
    missing = hist[start + 255] != 0
    turns = 2 if missing and not categorical else 1
    m = category_order(hist, start, n_bins, order, keys) if categorical else n_bins
    for turn in range(turns):
        m_here = m - 1 + (1 if missing and turn == 0 and not categorical else 0)
        sums = hist[start + 255] if turn == 1 else np.int64(0)
        if categorical:
            for b in range(m_here):
                sums += hist[start + order[b]]
                prefix[b] = sums
        else:
            for b in range(m_here):
                sums += hist[start + b]
                prefix[b] = sums
        if counted:
            heavy = counts[start + 255] if turn == 1 else np.int64(0)
            weights[256] = counts[start + 255]
            for b in range(n_bins):
                weights[256] += counts[start + b]
            for b in range(m_here):
                heavy += counts[start + (order[b] if categorical else b)]
                weights[b] = heavy
        for strict in range(2):
            least_h = needs[1] if strict == 1 and not counted else needs[0]
            score_prefixes(
                prefix, m_here, total, counted, weights, units[0], units[1], units[2], least_h, needs[2], low, high,
                trend, room.scores, score,
            )  # fmt: skip
            at = argmax(score, m_here)
            if at < 0:
                break
            h = min(prefix[at] & LOW, (total & LOW) - (prefix[at] & LOW)) * units[1]
            if counted or strict == 1 or h >= needs[1]:
                if score[at] > found[0]:
                    found[0], found[1] = score[at], 2 * at + turn
                    left = prefix[at]
                break
            found[2] = max(found[2], score[at])
    return left


@kernel
def fill_table(hist, start, n_bins, categorical, where, order, keys, table):
    """Mark the codes that go left by a split that was found; those that no row of the node has go where missing values go."""
    bins, missing_left = where >> 1, where & 1
    if not categorical:
        for b in range(255):
            table[b] = 1 if b <= bins else 0
        table[255] = missing_left
        return
    m = category_order(hist, start, n_bins, order, keys)
    for b in range(m):
        if order[b] == 255:  # missing values are one of the categories here
            missing_left = 1 if b <= bins else 0
    for b in range(256):
        table[b] = missing_left
    for b in range(m):
        table[order[b]] = 1 if b <= bins else 0


@kernel
def best_column(found, drawn):
    """Return the best of the columns that were drawn, its score, and the best score of a split that may have too few rows."""
    best, unsure, at = NO_SPLIT, NO_SPLIT, -1
    for j in range(len(drawn)):
        if drawn[j]:
            unsure = max(unsure, found[j, 2])
            if found[j, 0] > best:
                best, at = found[j, 0], j
    return at, best, unsure


@kernel
def gain_of(score, total, units, low, high):
    """Return what a split gains, −∞ if no more than rounding."""
    gain = score - model((total >> HIGH) * units[0], (total & LOW) * units[1] + units[2], low, high)
    return NO_SPLIT if gain <= LEAST_GAIN * abs(score) else 0.5 * gain


@kernel
def where_missing(where, no_hole, left, total):
    """Complete `where` of a split: missing values, if the node has none, follow the larger child."""
    if not no_hole:
        return where
    return (where >> 1 << 1) + (1 if 2 * (left & LOW) > (total & LOW) else 0)
