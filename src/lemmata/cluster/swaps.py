"""The arithmetic of k-medoids: greedy start, swaps evaluated for all medoids at once, and a lower bound of the loss.

Rows i have weights wᵢ and dissimilarities D[c, i] of row i from candidate c. A set M of k candidates has the loss
L(M) = Σᵢ wᵢ min_{m ∈ M} D[m, i]. Let nᵢ and sᵢ be the distances of row i to its nearest and second nearest medoid.

Swaps [1]. Without medoid m the loss rises by Rₘ = Σ wᵢ (sᵢ − nᵢ) over the rows nearest to m. If candidate c takes its place,

    Δ(m, c) = Rₘ + Σ_{i: D[c,i] < nᵢ} wᵢ (D[c,i] − nᵢ) + Σ_{i nearest to m, D[c,i] < sᵢ} wᵢ (max(D[c,i], nᵢ) − sᵢ).

The middle sum does not depend on m, and every row is in the last sum of a single m: one look at the rows gives Δ(m, c) for all
k medoids. A swap is made as soon as it gains, and a pass ends where the last swap of the pass before was made: then no swap
of one medoid gains.

Greedy start. Medoids are added one by one, each the candidate that lowers the loss most. What a candidate gains can only fall
as medoids join (the loss is supermodular), so a gain computed earlier bounds it from above, and only candidates whose bound
exceeds the best gain are looked at again [2]: the same choice as by trying all, at a fraction of the work.

Lower bound [3]. Each row goes to one open candidate, and k are open. Relax "to one" with prices λᵢ: any λ gives
L(M) ≥ Σ wᵢ λᵢ + (the sum of the k smallest of Σᵢ wᵢ min(0, D[c, i] − λᵢ)) for every M. Subgradient steps improve λ.

[1] Schubert & Rousseeuw, Information Systems 101 (2021). [2] Minoux, Lecture Notes in Control 7 (1978).
[3] Cornuéjols, Fisher & Nemhauser, Management Science 23 (1977).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import TINY
from lemmata.core.kernel import kernel

STEPS = 300  # subgradient steps of the lower bound


class Nearest(NamedTuple):
    """The two nearest medoids of each row (by their places in the list) and the distances to them."""

    first: np.ndarray
    near: np.ndarray
    second: np.ndarray
    far: np.ndarray


@kernel
def look_up(D, medoids, i, first, near, second, far):
    """Find the two nearest medoids of row i by looking at all of them."""
    a, b, da, db = 0, -1, np.inf, np.inf
    for j in range(len(medoids)):
        d = np.float64(D[medoids[j], i])
        if d < da:
            a, b, da, db = j, a, d, da
        elif d < db:
            b, db = j, d
    first[i], near[i], second[i], far[i] = a, da, b, db


@kernel
def update(D, medoids, place, first, near, second, far):
    """Renew the two nearest medoids of every row after the one at this place was replaced."""
    row = D[medoids[place]]
    for i in range(len(row)):
        d = np.float64(row[i])
        if first[i] == place:
            if d < far[i]:
                near[i] = d
            else:
                look_up(D, medoids, i, first, near, second, far)
        elif d < near[i]:
            second[i], far[i] = first[i], near[i]
            first[i], near[i] = place, d
        elif second[i] == place:
            if d < far[i]:
                far[i] = d
            else:
                look_up(D, medoids, i, first, near, second, far)
        elif d < far[i]:
            second[i], far[i] = place, d


@kernel
def weighted_sum(weight, near):
    """Sum the weighted distances: the loss."""
    total = 0.0
    for i in range(len(weight)):
        total += weight[i] * near[i]
    return total


@kernel
def removals(weight, first, near, far, out):
    """Sum what the loss would rise by without each medoid."""
    out[:] = 0.0
    for i in range(len(weight)):
        out[first[i]] += weight[i] * (far[i] - near[i])


@kernel
def changes(row, weight, first, near, far, removal, inside, out):
    """Change of the loss if a candidate with these distances took the place of each medoid."""
    count = 0
    for i in range(len(row)):  # without a branch, which would be guessed wrong in one row of k
        inside[count] = i
        count += row[i] < far[i]
    out[:] = removal
    shared = 0.0
    for r in range(count):
        i = inside[r]
        d, w = np.float64(row[i]), weight[i]
        if d < near[i]:
            shared += w * (d - near[i])
            out[first[i]] += w * (near[i] - far[i])
        else:
            out[first[i]] += w * (d - far[i])
    place = 0
    for j in range(1, len(out)):
        if out[j] < out[place]:
            place = j
    return place, out[place] + shared


@kernel
def one_medoid(D, weight, medoids):
    """Set the best single medoid: there is no second nearest, so the losses are compared as they are."""
    best, loss = medoids[0], np.inf
    for c in range(-1, len(D)):  # the present one first, so that it stays among equals
        total = 0.0
        for i in range(D.shape[1]):
            total += weight[i] * D[medoids[0] if c < 0 else c, i]
        if total < loss * (1.0 - 1e-12):
            best, loss = medoids[0] if c < 0 else c, total
    medoids[0] = best
    return loss


@kernel
def swap_pass(D, weight, medoids, last):
    """Try every candidate in turn and make every swap that gains; return the loss and where the last swap was made.

    The medoids change in place. `last` is what the pass before returned, or the number of candidates: beyond it nothing needs
    to be tried unless a swap was made. -1 is returned when no swap was.
    """
    n, k = D.shape[1], len(medoids)
    first, second = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    near, far, inside = np.empty(n), np.empty(n), np.empty(n + 1, dtype=np.int64)
    removal, out, chosen = np.empty(k), np.empty(k), np.zeros(len(D), dtype=np.bool_)
    for i in range(n):
        look_up(D, medoids, i, first, near, second, far)
    loss = weighted_sum(weight, near)
    for j in range(k):
        chosen[medoids[j]] = True
    removals(weight, first, near, far, removal)
    made = -1
    for c in range(len(D)):
        if made < 0 and c > last:
            break
        if chosen[c]:
            continue
        place, change = changes(D[c], weight, first, near, far, removal, inside, out)
        if change < -1e-12 * loss:  # less is rounding
            chosen[medoids[place]], chosen[c] = False, True
            medoids[place] = c
            update(D, medoids, place, first, near, second, far)
            removals(weight, first, near, far, removal)
            loss, made = weighted_sum(weight, near), c
    return loss, made


@kernel
def gain_of(row, weight, near):
    """Decrease of the loss if a candidate with these distances joined."""
    gain = 0.0
    for i in range(len(row)):
        gain += weight[i] * max(near[i] - row[i], 0.0)
    return gain


@kernel
def build(D, weight, medoids, given):
    """Fill the list of medoids greedily from the place `given` on."""
    n = D.shape[1]
    near, bound, round_of = np.full(n, np.inf), np.full(len(D), np.inf), np.zeros(len(D), dtype=np.int64)
    for j in range(given):
        bound[medoids[j]] = -np.inf
        for i in range(n):
            near[i] = min(near[i], D[medoids[j], i])
    for j in range(given, len(medoids)):
        best = 0
        if j == 0:
            least = np.inf
            for c in range(len(D)):
                total = 0.0
                for i in range(n):
                    total += weight[i] * D[c, i]
                if total < least:
                    best, least = c, total
        else:
            while True:
                best = np.argmax(bound)
                if round_of[best] == j:
                    break
                bound[best], round_of[best] = gain_of(D[best], weight, near), j
        medoids[j], bound[best] = best, -np.inf
        for i in range(n):
            near[i] = min(near[i], D[best, i])


@kernel
def is_symmetric(D):
    """Compare a matrix with its transpose, tile by tile."""
    n, tile = len(D), 64
    for a in range(0, n, tile):
        for b in range(0, a + 1, tile):
            for i in range(a, min(a + tile, n)):
                for j in range(b, min(b + tile, n)):
                    if D[i, j] != D[j, i]:
                        return False
    return True


def two_nearest(to_medoids):
    """List the two nearest medoids of each row from the distances (n_rows, k) to all of them; k is at least 2."""
    each = np.arange(len(to_medoids))
    first = to_medoids.argmin(axis=1)
    rest = to_medoids.astype(float)
    rest[each, first] = np.inf
    second = rest.argmin(axis=1)
    return Nearest(first, to_medoids[each, first].astype(float), second, rest[each, second])


@kernel
def best_change(D, weight, first, near, far, k):
    """Find the least change of the loss by any candidate among the rows of D in place of any of k medoids."""
    removal, out, inside = np.empty(k), np.empty(k), np.empty(D.shape[1] + 1, dtype=np.int64)
    removals(weight, first, near, far, removal)
    least = np.inf
    for c in range(len(D)):
        least = min(least, changes(D[c], weight, first, near, far, removal, inside, out)[1])
    return least


def relaxed_bound(D, weight, nearest, loss, k):
    """Bound the loss of any k medoids from below by prices that start at the second nearest distances."""
    unit = float(np.abs(D).max()) or 1.0
    D, price, loss = D / unit, nearest.far / unit, loss / unit
    best, step = -np.inf, 1.0
    worse = 0
    for _ in range(STEPS):
        savings = np.minimum(D - price, 0.0) @ weight
        open_ = np.argpartition(savings, k - 1)[:k]
        value = float(weight @ price + savings[open_].sum())
        best, worse = (value, 0) if value > best else (best, worse + 1)
        slope = weight * (1.0 - (D[open_] < price).sum(axis=0))
        square = float((slope**2 / weight).sum())
        if square == 0.0 or loss - best <= 1e-9 * loss:
            break
        if worse == 15:
            step, worse = 0.5 * step, 0
        price = price + step * (loss - value) / max(square, TINY) * slope / weight
    return best * unit
