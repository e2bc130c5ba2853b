"""Kernels of the generalized Kullback–Leibler divergence, one row of W at a time.

With H given, a row w minimizes the convex function

    D(w) = Σⱼ mⱼ (xⱼ log(xⱼ/w·hⱼ) − xⱼ + w·hⱼ) + λ Σᵣ wᵣ + ½μ Σᵣ wᵣ².

Only entries with xⱼ > 0 meet the logarithm; the others enter through cᵣ = λ + Σⱼ mⱼ hⱼᵣ alone. The multiplicative update
minimizes an upper bound of D that touches it at w [1]: with qᵣ = wᵣ Σⱼ mⱼ hⱼᵣ xⱼ/(w·hⱼ) it is the positive root of μw² + cw =
q, which is q/c where μ = 0. `solve_row` finds the minimum by Newton's method: it minimizes the quadratic that touches D at w
over w ≥ 0, which `nmf_rows` can, and goes there as far as D falls.

[1] Lee & Seung, NIPS (2000).
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.decomposition.nmf_rows import solve

EXACT = 1e-13  # share of the mass of w that a step may still move: what rounding leaves
NEARLY = 1e-8  # the same before a last step, which squares it
NEARLY_AN_ERROR = 1e-6  # as NEARLY, where only the loss is wanted, which squares it once more
FARTHER = 3.0  # times that of Newton's method: an update that moves more mass leads better
SMALL = 1e-2  # share of the mass of w below which a coordinate that is on its way down is tried at zero
NEGLIGIBLE = 1e-15  # share of the mass of w below which a coordinate that is not pulled up is zero
ROUNDS, HALVINGS = 100, 30
WARM = 4  # multiplicative updates before the first quadratic: from far away they lead better


@kernel
def costs(indptr, indices, marks, H, penalty, i, shared, c):
    """Write cᵣ = λ + Σⱼ mᵢⱼ hⱼᵣ of row i; where all entries are seen it is the same for all rows."""
    k = len(c)
    if len(marks) == 0:
        for r in range(k):
            c[r] = shared[r]
    else:
        for r in range(k):
            c[r] = penalty
        for p in range(indptr[i], indptr[i + 1]):
            m, j = marks[p], indices[p]
            for r in range(k):
                c[r] += m * H[j, r]


@kernel
def start_row(indptr, values, marks, inverse, i, c, w):
    """Start at the multiple of (1, …, 1) that gives the row the sum it has."""
    k, total, cost = len(c), 0.0, 0.0
    for p in range(indptr[i], indptr[i + 1]):
        total += values[p] * inverse * (marks[p] if len(marks) else 1.0)
    for r in range(k):
        cost += c[r]
    for r in range(k):
        w[r] = total / cost if cost > 0.0 else 0.0
    return total


@kernel
def ratios(indptr, indices, values, marks, inverse, H, i, w, pull):
    """Write pullᵣ = Σⱼ mⱼ hⱼᵣ xⱼ/(w·hⱼ)."""
    k = len(w)
    for r in range(k):
        pull[r] = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        j, fit = indices[p], 0.0
        for r in range(k):
            fit += w[r] * H[j, r]
        v = values[p] * inverse / fit if fit > 0.0 else 0.0
        if len(marks):
            v *= marks[p]
        for r in range(k):
            pull[r] += v * H[j, r]


@kernel
def root(q, c, ridge):
    """Return the positive root of ridge·w² + c·w = q."""
    twice = c + (c * c + 4.0 * ridge * q) ** 0.5
    return 2.0 * q / twice if twice > 0.0 else 0.0


@kernel
def divergence_at(indptr, indices, values, marks, inverse, H, i, w, c, ridge):
    """Return D(w) of row i with its penalties."""
    k, loss = len(w), 0.0
    for r in range(k):
        loss += w[r] * (c[r] + 0.5 * ridge * w[r])
    for p in range(indptr[i], indptr[i + 1]):
        x = values[p] * inverse
        if x > 0.0:
            j, fit, reach = indices[p], 0.0, 0.0
            for r in range(k):
                fit += w[r] * H[j, r]
                reach += H[j, r]
            if reach > 0.0:  # what no w can give is no reason to prefer one
                m = marks[p] if len(marks) else 1.0
                loss += m * x * (np.log(x / fit) - 1.0) if fit > 0.0 else np.inf
    return loss


@kernel
def model(indptr, indices, values, marks, inverse, H, ridge, i, w, c, pull, free, Q, b, h):
    """Write the quadratic that touches D at w, over the coordinates that are positive or want to be; return how many there are.

    Coordinates with a negligible share of the mass, and no pull, are set to zero.

    As `nmf_rows` has it, the quadratic is ½ zᵀQz − bᵀz, with Q = Σⱼ mⱼ hⱼhⱼᵀ xⱼ/(w·hⱼ)² + μ and b = Qw − gradient.
    """
    k, n, size = len(w), 0, 0.0
    for r in range(k):
        size += c[r] * w[r]
    for r in range(k):
        if c[r] * w[r] > NEGLIGIBLE * size or pull[r] > c[r]:
            free[n] = r
            n += 1
        else:
            w[r] = 0.0
    for a in range(n):
        for t in range(n):
            Q[0, a, t] = 0.0
        Q[0, a, a] = ridge
    for p in range(indptr[i], indptr[i + 1]):
        j, fit = indices[p], 0.0
        for r in range(k):
            fit += w[r] * H[j, r]
        if fit > 0.0:
            v = values[p] * inverse / fit / fit * (marks[p] if len(marks) else 1.0)
            for a in range(n):
                h[a] = H[j, free[a]]
            for a in range(n):
                vh = v * h[a]
                if vh > 0.0:
                    for t in range(n):
                        Q[0, a, t] += vh * h[t]
    for a in range(n):
        b[0, a] = pull[free[a]] - c[free[a]] - ridge * w[free[a]]
        for t in range(n):
            b[0, a] += Q[0, a, t] * w[free[t]]
    return n


@kernel
def misfit(w, c, ridge, pull, free, n, Q):
    """Return the mass that Newton steps along each coordinate would move, that of a multiplicative update, and that of w.

    Near zero they differ: where hardly anything explains an entry Newton's method doubles it, an update jumps.
    """
    moved, updated, size = 0.0, 0.0, 0.0
    for a in range(n):
        r = free[a]
        g = c[r] + ridge * w[r] - pull[r]
        target = max(w[r] - g / Q[0, a, a], 0.0) if Q[0, a, a] > 0.0 else 0.0
        moved += c[r] * abs(w[r] - target)
        updated += w[r] * abs(g)
        size += c[r] * w[r]
    return moved, updated, size


@kernel
def step_towards(indptr, indices, values, marks, inverse, H, i, ridge, w, c, pull, target, loss, slack, trial):
    """Go from w towards the target, as far as the loss falls as it should, and write where to; return the loss there.

    No w·hⱼ with xⱼ > 0 falls below a tenth of what it was: the way back up from near zero would be long.
    """
    k, length, there = len(w), 1.0, np.inf
    for p in range(indptr[i], indptr[i + 1]):
        if values[p] > 0.0:
            j, here, end = indices[p], 0.0, 0.0
            for r in range(k):
                here += w[r] * H[j, r]
                end += target[r] * H[j, r]
            if end < 0.1 * here:
                length = min(length, 0.9 * here / (here - end))
    for _ in range(HALVINGS):
        slope = 0.0
        for r in range(k):
            trial[r] = w[r] + length * (target[r] - w[r]) if length < 1.0 else target[r]
            slope += (c[r] + ridge * w[r] - pull[r]) * (trial[r] - w[r])
        there = divergence_at(indptr, indices, values, marks, inverse, H, i, trial, c, ridge)
        if there <= loss + 1e-4 * slope + slack:  # Armijo's rule
            break
        length *= 0.5
    return there


# fmt: off
@kernel
def solve_row(
    indptr, indices, values, marks, inverse, H, i, ridge, n_rounds, nearly,
    w, c, pull, trial, target, free, Q, b, z, gradient, inner, lower, step,
):
    """Bring w to the minimum of row i: minimize the quadratic that touches D over what is not negative, and go there.

    Return what `misfit` says of w as it was.
    """
    k, first, whole = len(w), 0.0, 0.0
    loss = divergence_at(indptr, indices, values, marks, inverse, H, i, w, c, ridge)
    for turn in range(n_rounds):
        ratios(indptr, indices, values, marks, inverse, H, i, w, pull)
        n = model(indptr, indices, values, marks, inverse, H, ridge, i, w, c, pull, free, Q, b, trial)
        moved, updated, size = misfit(w, c, ridge, pull, free, n, Q)
        farther = max(moved, updated)
        if turn == 0:
            first, whole = farther, size
        if farther <= EXACT * size:
            break
        for r in range(k):
            target[r] = 0.0
            z[0, r] = 0.0
        if updated > FARTHER * moved:
            for r in range(k):
                target[r] = root(w[r] * pull[r], c[r], ridge)
        else:
            for a in range(n):
                z[0, a] = w[free[a]]
            solve(z, 0, n, b, 0, Q, 0, 0.0, gradient, inner, lower, step)
            for a in range(n):
                target[free[a]] = z[0, a]
        there = step_towards(
            indptr, indices, values, marks, inverse, H, i, ridge, w, c, pull, target, loss, 1e-15 * size, trial
        )
        if not there <= loss + 1e-15 * size:
            break
        loss = there
        for r in range(k):
            w[r] = trial[r]
        if farther <= nearly * size:
            break
    return first, whole
# fmt: on


# fmt: off
@kernel
def solve_rows(
    indptr, indices, values, marks, inverse, W, fresh, H, shared, penalty, ridge, nearly,
    w, c, pull, trial, target, free, Q, b, z, gradient, inner, lower, step,
):
    """Bring each row to its minimum, from W or from a start that follows from the row and H."""
    for i in range(len(indptr) - 1):
        costs(indptr, indices, marks, H, penalty, i, shared, c)
        if fresh:
            start_row(indptr, values, marks, inverse, i, c, w)
        else:
            for r in range(W.shape[1]):
                w[r] = W[i, r]
        size = 0.0
        for _ in range(WARM):
            ratios(indptr, indices, values, marks, inverse, H, i, w, pull)
            size = 0.0
            for r in range(W.shape[1]):
                w[r] = root(w[r] * pull[r], c[r], ridge)
                size += c[r] * w[r]
        for r in range(W.shape[1]):
            trial[r] = w[r]
            if pull[r] < 0.9 * c[r] and c[r] * w[r] < SMALL * size:  # 0.9: down by a tenth in one update
                w[r] = 0.0
        if np.isinf(divergence_at(indptr, indices, values, marks, inverse, H, i, w, c, ridge)):
            for r in range(W.shape[1]):  # together they were all that an entry had
                w[r] = trial[r]
        solve_row(
            indptr, indices, values, marks, inverse, H, i, ridge, ROUNDS, nearly,
            w, c, pull, trial, target, free, Q, b, z, gradient, inner, lower, step,
        )
        for r in range(W.shape[1]):
            W[i, r] = w[r]
# fmt: on
