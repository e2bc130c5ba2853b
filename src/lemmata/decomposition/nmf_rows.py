"""Non-negative least squares, one small problem a row: what both factors of a squared loss are made of.

With W given, every column h of H minimizes a quadratic of its own, and with H given every row w of W does:

    q(w) = ½ wᵀGw − bᵀw + λ Σᵣ wᵣ,   w ≥ 0,   with the gradient  g = Gw − b + λ.

For W the matrix G is HHᵀ and b is Hx; for H it is WᵀW and Wᵀx; where entries are missing or weighted each row has its own G.
`descend` minimizes along one coordinate after the other, wᵣ ← (wᵣ − gᵣ/Gᵣᵣ)₊, and stops when a round moves much less than the
first one did [1]. `multiply` is the multiplicative update wᵣ ← wᵣ bᵣ/(Gw + λ)ᵣ, which never leaves zero [2]. `solve` finds
the minimum: rounds of descent find which coordinates are zero, Newton steps on the others find their values.

[1] Gillis & Glineur, Neural Computation 24 (2012). [2] Lee & Seung, NIPS (2000).
"""

import numpy as np

from lemmata.core.kernel import kernel

TILE = 64  # rows that go through the same step together: enough to fill vectors, few enough for the first cache
ENOUGH = 1e-2  # of the squared move of the first round: a later round that moves less is not worth its time
EXACT = 1e-28  # squared share of w that a coordinate step may still move: what rounding of the gradient leaves
FLAT = 1e-13  # a pivot this small beside its diagonal is a direction in which G is flat
ROUNDS = 60  # of descent and Newton steps at most; each settles at least one coordinate unless rounding decides


@kernel
def gradient_at(w, i, k, b, row, G, g, penalty, gradient):
    """Write Gw − b + λ of the first k coordinates of row i."""
    for r in range(k):
        gradient[r] = penalty - b[row, r]
    for c in range(k):
        value = w[i, c]
        if value != 0.0:
            for r in range(k):
                gradient[r] += value * G[g, c, r]


@kernel
def descend(w, i, k, b, row, G, g, penalty, gradient, n_rounds):
    """Improve row i of w by rounds of coordinate descent; return Σᵣ Gᵣᵣ (move of wᵣ)² of the first round."""
    gradient_at(w, i, k, b, row, G, g, penalty, gradient)
    first = 0.0
    for turn in range(n_rounds):
        moved = 0.0
        for r in range(k):
            curvature = G[g, r, r]
            if curvature > 0.0:
                old = w[i, r]
                new = max(old - gradient[r] / curvature, 0.0)
                step = new - old
                if step != 0.0:
                    w[i, r] = new
                    moved += curvature * step * step
                    for c in range(k):
                        gradient[c] += step * G[g, r, c]
        if turn == 0:
            first = moved
        if moved <= ENOUGH * first:
            break
    return first


@kernel
def multiply(w, i, b, row, G, g, penalty, gradient):
    """Improve row i of w by one multiplicative update; return Σᵣ Gᵣᵣ (move of wᵣ)²."""
    k = w.shape[1]
    for r in range(k):
        gradient[r] = penalty
    for c in range(k):
        value = w[i, c]
        for r in range(k):
            gradient[r] += value * G[g, c, r]
    moved = 0.0
    for r in range(k):
        if gradient[r] > 0.0:
            old = w[i, r]
            w[i, r] = old * (b[row, r] / gradient[r])
            moved += G[g, r, r] * (w[i, r] - old) ** 2
    return moved


@kernel
def improve(w, i, b, row, G, g, penalty, gradient, n_rounds):
    """Improve row i of w by rounds of descent, or, where n_rounds is 0, by one multiplicative update."""
    if n_rounds == 0:
        moved = multiply(w, i, b, row, G, g, penalty, gradient)
    else:
        moved = descend(w, i, w.shape[1], b, row, G, g, penalty, gradient, n_rounds)
    return moved


@kernel
def newton(w, i, k, G, g, gradient, free, lower, step):
    """Step towards the minimum over the coordinates that are positive, as far as none becomes negative.

    Parameters
    ----------
    free, lower, step : Room for k numbers of coordinates, a Cholesky factor (k, k) and k numbers.
    """
    m = 0
    for r in range(k):
        if w[i, r] > 0.0:
            for c in range(m):
                s = G[g, r, free[c]]
                for t in range(c):
                    s -= lower[m, t] * lower[c, t]
                lower[m, c] = s / lower[c, c]
            pivot = G[g, r, r]
            for t in range(m):
                pivot -= lower[m, t] * lower[m, t]
            if pivot > FLAT * G[g, r, r]:
                lower[m, m] = pivot**0.5
                free[m] = r
                m += 1
    for a in range(m):
        s = -gradient[free[a]]
        for t in range(a):
            s -= lower[a, t] * step[t]
        step[a] = s / lower[a, a]
    for a in range(m - 1, -1, -1):
        s = step[a]
        for t in range(a + 1, m):
            s -= lower[t, a] * step[t]
        step[a] = s / lower[a, a]
    length, first = 1.0, -1
    for a in range(m):
        if step[a] < 0.0 and w[i, free[a]] < -length * step[a]:
            length, first = -w[i, free[a]] / step[a], a
    for a in range(m):
        w[i, free[a]] = max(w[i, free[a]] + length * step[a], 0.0)
    if first >= 0:
        w[i, free[first]] = 0.0


@kernel
def misfit(w, i, k, G, g, gradient):
    """Return Σᵣ Gᵣᵣ (wᵣ − (wᵣ − gᵣ/Gᵣᵣ)₊)² and Σᵣ Gᵣᵣ wᵣ²: zero against the size of w where w is the minimum."""
    moved, size = 0.0, 0.0
    for r in range(k):
        curvature = G[g, r, r]
        if curvature > 0.0:
            step = w[i, r] - max(w[i, r] - gradient[r] / curvature, 0.0)
            moved += curvature * step * step
            size += curvature * w[i, r] * w[i, r]
    return moved, size


@kernel
def solve(w, i, k, b, row, G, g, penalty, gradient, free, lower, step):
    """Bring the first k coordinates of row i to the minimum over them, from anywhere."""
    for _ in range(ROUNDS):
        descend(w, i, k, b, row, G, g, penalty, gradient, 2)  # 2: as cheap as the Newton step that follows
        newton(w, i, k, G, g, gradient, free, lower, step)
        gradient_at(w, i, k, b, row, G, g, penalty, gradient)
        moved, size = misfit(w, i, k, G, g, gradient)
        if moved <= EXACT * size:
            break


@kernel
def improve_apart(w, b, G, penalty, gradient, n_rounds):
    """Improve every row, each with a G (rows, k, k) of its own; return the moves."""
    moved = 0.0
    for i in range(w.shape[0]):
        moved += improve(w, i, b, i, G, i, penalty, gradient, n_rounds)
    return moved


@kernel
def descend_tiles(W, b, G, penalty, weight, n_rounds, w, a, acc, moved, first, going):
    """Do what `descend` does for all rows, G the same for all, many rows at a time; return the moves, summed with the weights.

    A row alone is a chain of short steps, each waiting for the one before; the same step of many rows fills the vector units.
    A row that has moved enough stands still while others of its tile go on, so that it does not matter which those are.

    Parameters
    ----------
    G : (m, m), m the next multiple of four, filled up with zeros; w and a have room for m × TILE numbers, others for TILE.
    """
    n, k, m = W.shape[0], W.shape[1], G.shape[0]
    total = 0.0
    for start in range(0, n, TILE):
        rows = min(TILE, n - start)
        for t in range(rows):
            for r in range(k):
                w[r, t] = W[start + t, r]
                a[r, t] = b[start + t, r] - penalty
        for t in range(TILE):
            going[t] = 1.0 if t < rows else 0.0
        for turn in range(n_rounds):
            for t in range(TILE):
                moved[t] = 0.0
            for r in range(k):
                curvature = G[r, r]
                over = 1.0 / curvature if curvature > 0.0 else 0.0
                for t in range(TILE):
                    acc[t] = a[r, t]
                for c in range(0, m, 4):
                    g0, g1, g2, g3 = G[r, c], G[r, c + 1], G[r, c + 2], G[r, c + 3]
                    for t in range(TILE):
                        acc[t] -= (g0 * w[c, t] + g1 * w[c + 1, t]) + (g2 * w[c + 2, t] + g3 * w[c + 3, t])
                for t in range(TILE):
                    step = (max(w[r, t] + acc[t] * over, 0.0) - w[r, t]) * going[t]
                    moved[t] += curvature * step * step
                    w[r, t] += step
            left = 0.0
            for t in range(TILE):
                if turn == 0:
                    first[t] = moved[t]
                going[t] = going[t] if moved[t] > ENOUGH * first[t] else 0.0
                left += going[t]
            if left == 0.0:
                break
        for t in range(rows):
            total += weight[start + t] * first[t]
            for r in range(k):
                W[start + t, r] = w[r, t]
    return total


@kernel
def multiply_rows(W, b, G, penalty, gradient, weight):
    """Improve every row by one multiplicative update, G the same for all; return the moves, summed with the weights."""
    moved = 0.0
    for i in range(W.shape[0]):
        moved += weight[i] * multiply(W, i, b, i, G, 0, penalty, gradient)
    return moved


def filled(G):
    """Fill a matrix up with zeros, to the next multiple of four."""
    k = len(G)
    m = -(-k // 4) * 4
    out = np.zeros((m, m))
    out[:k, :k] = G
    return out


def improve_alike(W, b, G, penalty, weight, n_rounds):
    """Improve every row, G (k, k) the same for all, by rounds of descent or, where n_rounds is 0, a multiplicative update."""
    k = W.shape[1]
    if n_rounds == 0:
        return multiply_rows(W, b, G[None], penalty, np.empty(k), weight)
    G = filled(G)
    return descend_tiles(W, b, G, penalty, weight, n_rounds, *np.zeros((2, len(G), TILE)), *np.empty((4, TILE)))


@kernel
def solve_rows(w, b, G, penalty, gradient, free, lower, step):
    """Bring every row to its minimum, G the same for all."""
    for i in range(w.shape[0]):
        solve(w, i, w.shape[1], b, i, G, 0, penalty, gradient, free, lower, step)


@kernel
def solve_apart(w, b, G, gradient, free, lower, step):
    """Bring every row to its minimum, each with a G (rows, k, k) of its own."""
    for i in range(w.shape[0]):
        solve(w, i, w.shape[1], b, i, G, i, 0.0, gradient, free, lower, step)


@kernel
def start_row(w, i, b, row, G, g):
    """Start row i at the multiple of (1, …, 1) that is best without a penalty: positive where there is anything to explain."""
    k, total, along = w.shape[1], 0.0, 0.0
    for r in range(k):
        along += b[row, r]
        for c in range(k):
            total += G[g, r, c]
    for r in range(k):
        w[i, r] = along / total if total > 0.0 else 0.0


@kernel
def start_rows(w, b, G):
    """Start every row, G the same for all."""
    for i in range(w.shape[0]):
        start_row(w, i, b, i, G, 0)
