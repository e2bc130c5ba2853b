"""Many small ridge problems at once: one for each row of a sparse table, all with columns of one common table.

Row i has m entries: targets t with weights s, at places j. With rows √s wⱼ of the common table in B, and √s t in y, it asks for

    zᵢ = argmin ½‖y − Bz‖² + ½ρᵢ‖z‖²,    (ρᵢI + BᵀB) z = Bᵀy.

A row with fewer entries than unknowns is solved in as many unknowns as it has entries: z = Bᵀa with (ρᵢI + BBᵀ) a = y, which
is the same z and costs m²d instead of md² steps. Both start from a given z₀: with the gradient g = Bᵀ(y − Bz₀) − ρz₀ the step
δ solves (ρI + BᵀB) δ = g, and the objective falls by ½gᵀδ exactly, so that no second pass over the entries is needed to know
it.

Time goes into BᵀB. It is computed in tiles of 2 × 4 dot products over up to 128 entries, which are gathered so that each of
the d columns lies contiguous: six loads for eight multiplications and additions, and no stores.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.prefetch import prefetch

CHUNK = 128  # entries gathered at once: with 40 unknowns 40 KiB, which the nearest cache holds
AHEAD = 4  # entries whose rows of the table are asked for before they are needed
LINE = 8  # numbers in a line of the cache
SPARE = 4  # rows and columns beyond those in use, which tiles at the edge may touch
SINGULAR = 1e-13  # share of a diagonal entry that must be left at its turn; rounding leaves some 1e-16


@kernel
def add_products(rows, n, m, out):
    """Add the products of n rows, over their first m entries, to the lower triangle of `out`."""
    for i in range(0, n, 2):
        for j in range(i, n, 4):
            s0, s1, s2, s3, t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for r in range(m):
                a, b = rows[i, r], rows[i + 1, r]
                x0, x1, x2, x3 = rows[j, r], rows[j + 1, r], rows[j + 2, r], rows[j + 3, r]
                s0 += a * x0
                s1 += a * x1
                s2 += a * x2
                s3 += a * x3
                t0 += b * x0
                t1 += b * x1
                t2 += b * x2
                t3 += b * x3
            out[j, i] += s0
            out[j + 1, i] += s1
            out[j + 2, i] += s2
            out[j + 3, i] += s3
            out[j, i + 1] += t0
            out[j + 1, i + 1] += t1
            out[j + 2, i + 1] += t2
            out[j + 3, i + 1] += t3


@kernel
def factor(gram, n):
    """Replace the lower triangle of a positive definite matrix by L with LLᵀ = the matrix; return whether it was one.

    Eight columns at a time get what those before take off them, in tiles as of `add_products`, and are then finished singly.
    Row n + 1 has the diagonal to compare with.
    """
    sound = True
    for j in range(0, n, 8):
        q = min(j + 8, n)
        if j > 0:
            for i in range(j, n, 2):
                for c in range(j, q, 4):
                    s0, s1, s2, s3, t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                    for p in range(j):
                        a, b = gram[i, p], gram[i + 1, p]
                        x0, x1, x2, x3 = gram[c, p], gram[c + 1, p], gram[c + 2, p], gram[c + 3, p]
                        s0 += a * x0
                        s1 += a * x1
                        s2 += a * x2
                        s3 += a * x3
                        t0 += b * x0
                        t1 += b * x1
                        t2 += b * x2
                        t3 += b * x3
                    gram[i, c] -= s0
                    gram[i, c + 1] -= s1
                    gram[i, c + 2] -= s2
                    gram[i, c + 3] -= s3
                    gram[i + 1, c] -= t0
                    gram[i + 1, c + 1] -= t1
                    gram[i + 1, c + 2] -= t2
                    gram[i + 1, c + 3] -= t3
        for k in range(j, q):
            pivot = gram[k, k]
            for p in range(j, k):
                pivot -= gram[k, p] * gram[k, p]
            if not pivot > SINGULAR * gram[n + 1, k]:
                sound = False
                pivot = 1.0
            gram[k, k] = np.sqrt(pivot)
            scale = 1.0 / gram[k, k]
            for i in range(k + 1, n):
                s = gram[i, k]
                for p in range(j, k):
                    s -= gram[i, p] * gram[k, p]
                gram[i, k] = s * scale
    return sound


@kernel
def solve(root, n, x):
    """Solve LLᵀ x = x in place."""
    for i in range(n):
        s = x[i]
        for j in range(i):
            s -= root[i, j] * x[j]
        x[i] = s / root[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= root[i, i]
        a = x[i]
        for j in range(i):
            x[j] -= a * root[i, j]


@kernel
def gather(first, start, stop, indices, weights, table, across, out):
    """Copy the table's rows of some entries, times the root of their weights, into rows of `out`, or across into columns."""
    d, last = table.shape[1], len(indices)
    flat = table.reshape(table.size)
    for r in range(stop - start):
        e = first + start + r
        if e + AHEAD < last:
            for f in range(0, d, LINE):
                prefetch(flat, indices[e + AHEAD] * d + f)
        j = indices[e] * d
        root = np.sqrt(weights[e]) if len(weights) else 1.0
        if across:
            for f in range(d):
                out[f, r] = root * flat[j + f]
        else:
            for f in range(d):
                out[r, f] = root * flat[j + f]


@kernel
def residuals(first, start, stop, indices, targets, weights, offsets, out):
    """Write √s (t − offset) of some entries; return the sum of its squares."""
    total = 0.0
    for r in range(stop - start):
        e = first + start + r
        out[r] = targets[e] - offsets[indices[e]]
        if len(weights):
            out[r] *= np.sqrt(weights[e])
        total += out[r] * out[r]
    return total


@kernel
def set_up(first, last, indices, targets, weights, offsets, table, ridge, z, room, y, e, gram, gradient):
    """Build the matrix of one row, and its gradient at z; return (½‖y − Bz‖², ‖y‖²).

    The matrix is ρI + BBᵀ where there are fewer entries than unknowns, and then the gathered B stays in `room` and y in `y`;
    otherwise ρI + BᵀB. Its diagonal goes into row n + 1 of `gram` as well, for `factor` to compare with.
    """
    d, m = table.shape[1], last - first
    n = min(m, d)
    for i in range(n + SPARE):
        for j in range(n + SPARE):
            gram[i, j] = 0.0
    for f in range(d):
        gradient[f] = 0.0
    loss, energy = 0.0, 0.0
    if m < d:
        gather(first, 0, m, indices, weights, table, False, room)
        energy = residuals(first, 0, m, indices, targets, weights, offsets, y)
        add_products(room, m, d, gram)
        for r in range(m):
            fit = 0.0
            for f in range(d):
                fit += room[r, f] * z[f]
            rest = y[r] - fit
            loss += rest * rest
            for f in range(d):
                gradient[f] += room[r, f] * rest
    else:
        for start in range(0, m, CHUNK):
            stop = min(start + CHUNK, m)
            c = stop - start
            gather(first, start, stop, indices, weights, table, True, room)
            energy += residuals(first, start, stop, indices, targets, weights, offsets, e)
            add_products(room, d, c, gram)
            for f in range(d):
                if z[f] != 0.0:
                    for r in range(c):
                        e[r] -= room[f, r] * z[f]
            for r in range(c):
                loss += e[r] * e[r]
            for f in range(d):
                s = 0.0
                for r in range(c):
                    s += room[f, r] * e[r]
                gradient[f] += s
    for f in range(d):
        gradient[f] -= ridge * z[f]
    for i in range(n):
        gram[i, i] += ridge
        gram[n + 1, i] = gram[i, i]
    return 0.5 * loss, energy


@kernel
def solve_rows(indptr, indices, targets, weights, offsets, table, ridge, old, new, loss, step, energy):
    """Solve the ridge problem of every row from `old`; return the first row whose matrix is singular, or −1.

    `loss` gets ½‖y − Bz‖² + ½ρ‖z‖² at the solution, `step` gᵀδ, and `energy` ‖y‖² of each row.
    """
    d = table.shape[1]
    size = max(d, CHUNK) + SPARE
    room, y, e = np.zeros((d + SPARE, size)), np.zeros(size), np.zeros(size)
    gram, gradient, z = np.zeros((d + 2 * SPARE, d + 2 * SPARE)), np.zeros(d), np.zeros(d)
    singular = -1
    for i in range(len(indptr) - 1):
        m = indptr[i + 1] - indptr[i]
        n = min(m, d)
        square = 0.0
        for f in range(d):
            z[f] = old[i, f]
            square += z[f] * z[f]
        half, energy[i] = set_up(
            indptr[i], indptr[i + 1], indices, targets, weights, offsets, table, ridge[i], z, room, y, e, gram, gradient
        )
        if n > 0 and not factor(gram, n) and singular < 0:
            singular = i
        step[i] = 0.0
        if m < d:
            solve(gram, m, y)
            for f in range(d):
                new[i, f] = 0.0
            for r in range(m):
                for f in range(d):
                    new[i, f] += room[r, f] * y[r]
            for f in range(d):
                step[i] += gradient[f] * (new[i, f] - z[f])
        else:
            for f in range(d):
                y[f] = gradient[f]
            solve(gram, d, y)
            for f in range(d):
                new[i, f] = z[f] + y[f]
                step[i] += gradient[f] * y[f]
        loss[i] = half + 0.5 * ridge[i] * square - 0.5 * step[i]
    return singular


@kernel
def improve_rows(indptr, indices, targets, weights, offsets, table, ridge, old, new, loss, step, energy):
    """Move every unknown of every row, one after another, to where the objective is least; arguments as of `solve_rows`.

    Here `step` is gᵀδ with each entry of δ as if its unknown moved alone.
    """
    d, longest = table.shape[1], 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    room, y = np.zeros((d, longest)), np.zeros(longest)
    for i in range(len(indptr) - 1):
        first, m = indptr[i], indptr[i + 1] - indptr[i]
        gather(first, 0, m, indices, weights, table, True, room)
        energy[i] = residuals(first, 0, m, indices, targets, weights, offsets, y)
        for f in range(d):
            new[i, f] = old[i, f]
            for r in range(m):
                y[r] -= room[f, r] * old[i, f]
        step[i] = 0.0
        for f in range(d):
            slope, curvature = 0.0, ridge[i]
            for r in range(m):
                slope += room[f, r] * y[r]
                curvature += room[f, r] * room[f, r]
            slope -= ridge[i] * old[i, f]
            if curvature > 0.0:
                step[i] += slope * slope / curvature
        loss[i] = 0.0
        for f in range(d):
            slope, curvature = 0.0, ridge[i]
            for r in range(m):
                slope += room[f, r] * y[r]
                curvature += room[f, r] * room[f, r]
            move = (slope - ridge[i] * new[i, f]) / curvature if curvature > 0.0 else 0.0
            new[i, f] += move
            for r in range(m):
                y[r] -= room[f, r] * move
            loss[i] += 0.5 * ridge[i] * new[i, f] * new[i, f]
        for r in range(m):
            loss[i] += 0.5 * y[r] * y[r]
    return -1


@kernel
def line_rows(indptr, indices, targets, weights, offsets, table, start, direction, out):
    """Sum e², el, ec, l², lc and c² over each row, where e − al − a²c are the residuals at z = start + a·direction.

    The table has the columns w of the other side and, beside them, their changes ẇ; the offsets have two columns likewise. So
    e = t − o − wz, l = ȯ + ẇz + wż and c = ẇż.
    """
    d, last = start.shape[1], len(indices)
    flat, z, move = table.reshape(table.size), np.zeros(d), np.zeros(d)
    for i in range(len(indptr) - 1):
        ee, el, ec, ll, lc, cc = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for f in range(d):
            z[f], move[f] = start[i, f], direction[i, f]
        for r in range(indptr[i], indptr[i + 1]):
            if r + AHEAD < last:
                for f in range(0, 2 * d, LINE):
                    prefetch(flat, indices[r + AHEAD] * 2 * d + f)
            j = indices[r]
            here = j * 2 * d
            fit, swing, lift, curve = 0.0, 0.0, 0.0, 0.0
            for f in range(d):
                w, change = flat[here + f], flat[here + d + f]
                fit += w * z[f]
                swing += change * z[f]
                lift += w * move[f]
                curve += change * move[f]
            s = weights[r] if len(weights) else 1.0
            e, slope = targets[r] - offsets[j, 0] - fit, offsets[j, 1] + swing + lift
            ee += s * e * e
            el += s * e * slope
            ec += s * e * curve
            ll += s * slope * slope
            lc += s * slope * curve
            cc += s * curve * curve
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4], out[i, 5] = ee, el, ec, ll, lc, cc


@kernel
def inverse_root(root, n, row):
    """Replace L in the lower triangle by its inverse; `row` is room for n numbers."""
    for i in range(n):
        for j in range(i):
            row[j] = 0.0
        for k in range(i):
            a = root[i, k]
            for j in range(k + 1):
                row[j] += a * root[k, j]
        root[i, i] = 1.0 / root[i, i]
        for j in range(i):
            root[i, j] = -row[j] * root[i, i]


@kernel
def determined_rows(indptr, indices, targets, weights, table, ridge, out):
    """Count the unknowns of each row that its entries determine: tr (ρI + BᵀB)⁻¹BᵀB, between 0 and min(m, d)."""
    d = table.shape[1]
    size = max(d, CHUNK) + SPARE
    room, y, e = np.zeros((d + SPARE, size)), np.zeros(size), np.zeros(size)
    gram, gradient, z = np.zeros((d + 2 * SPARE, d + 2 * SPARE)), np.zeros(d), np.zeros(d)
    nothing = np.zeros(len(table))
    for i in range(len(indptr) - 1):
        n = min(indptr[i + 1] - indptr[i], d)
        set_up(indptr[i], indptr[i + 1], indices, targets, weights, nothing, table, ridge[i], z, room, y, e, gram, gradient)
        trace = 0.0
        factor(gram, n)
        inverse_root(gram, n, e)
        for p in range(n):
            for q in range(p + 1):
                trace += gram[p, q] * gram[p, q]
        out[i] = n - ridge[i] * trace


@kernel
def inverse_rows(rows, indptr, indices, weights, table, ridge, out):
    """Give (ρI + BᵀB)⁻¹ of some rows, by their numbers."""
    d = table.shape[1]
    gram, row = np.zeros((d + 2 * SPARE, d + 2 * SPARE)), np.zeros(d)
    for k in range(len(rows)):
        i = rows[k]
        for p in range(d):
            for q in range(d):
                gram[p, q] = out[k, p, q] = 0.0
            gram[p, p] = ridge[i]
        for e in range(indptr[i], indptr[i + 1]):
            for f in range(d):
                row[f] = table[indices[e], f]
            for p in range(d):
                a = weights[e] * row[p]
                for q in range(p + 1):
                    gram[p, q] += a * row[q]
        for p in range(d):
            gram[d + 1, p] = gram[p, p]
        factor(gram, d)
        inverse_root(gram, d, row)
        for r in range(d):  # (LLᵀ)⁻¹ = L⁻ᵀL⁻¹, a row of L⁻¹ at a time
            for p in range(r + 1):
                a = gram[r, p]
                for q in range(p + 1):
                    out[k, p, q] += a * gram[r, q]
        for p in range(d):
            for q in range(p):
                out[k, q, p] = out[k, p, q]
