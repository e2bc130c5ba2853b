"""The sweeps of Gibbs samplers for Gaussian mixtures, compiled.

Rows are given in coordinates in which the prior of every component is Normal-inverse-Wishart with mean 0 and scale I. A
component keeps running counts: its number of rows N, their sum s, the posterior mean m = s/(κ₀ + N), the lower factor L of its
posterior scale Ψ = LLᵀ, with the reciprocals of the diagonal, and half the log-determinant. Terms that depend on N alone stand
in a table. To leave the component that a row x is in, write κ = κ₀ + N and ν = ν₀ + N with the row counted; without it

    Ψ⁻ = Ψ − κ/(κ−1) (x−m)(x−m)ᵀ,   |Ψ⁻| = |Ψ| (1 − u),   u = κ/(κ−1) ‖L⁻¹(x−m)‖²,

so that Student's density of the row given the others is c(N−1) − ½ log|Ψ| + ½(ν−1) log(1−u): the row is removed by algebra,
and factors change, by one rank, only when it moves. They never leave Ψ ⪰ I, so every pivot is at least 1, which also bounds
what rounding can do to a downdate; and each sweep begins with statistics that are summed anew. (A row that makes up nearly all
the scatter of its component leaves 1 − u with fewer digits, as any downdate would: at 10⁴ prior standard deviations, eight.)

Stochastic EM keeps running counts too, without a prior: N, s and the scatter C about the average s/N, from which a row at x
takes away N/(N−1) (x − s/N)(x − s/N)ᵀ when it leaves and to which it adds N/(N+1) (x − s/N)(x − s/N)ᵀ when it comes.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.mixture.gaussian_kernels import FULL, SPHERICAL, TIED


@kernel
def factor_in_place(matrix, inverse, least):
    """Replace a lower triangle by its Cholesky factor; write the reciprocals of its diagonal; return half the log-determinant.

    The eigenvalues of the matrix are known to be at least `least`, and so are the squares of all pivots.
    """
    half = 0.0
    for j in range(len(matrix)):
        pivot = matrix[j, j]
        for m in range(j):
            pivot -= matrix[j, m] * matrix[j, m]
        root = np.sqrt(max(pivot, least))
        matrix[j, j], inverse[j] = root, 1.0 / root
        half += np.log(root)
        for i in range(j + 1, len(matrix)):
            t = matrix[i, j]
            for m in range(j):
                t -= matrix[i, m] * matrix[j, m]
            matrix[i, j] = t / root
    return half


@kernel
def gather(Y, z, kappa, counts, sums, means, factors, inverses, halves):
    """Sum the statistics of all components anew, in two passes: the scatter about the averages of components loses nothing."""
    k, d = sums.shape
    counts[:], sums[:], factors[:] = 0, 0.0, 0.0
    for n in range(len(Y)):
        c = z[n]
        counts[c] += 1
        for j in range(d):
            sums[c, j] += Y[n, j]
    averages = np.zeros((k, d))
    for c in range(k):
        for j in range(d):
            means[c, j] = sums[c, j] / (kappa + counts[c])
            averages[c, j] = sums[c, j] / max(counts[c], 1)
    away = np.empty(d)
    for n in range(len(Y)):
        c = z[n]
        for i in range(d):
            away[i] = Y[n, i] - averages[c, i]
            for j in range(i + 1):
                factors[c, i, j] += away[i] * away[j]
    for c in range(k):
        pull = kappa * counts[c] / (kappa + counts[c])
        for i in range(d):
            for j in range(i + 1):
                factors[c, i, j] += pull * averages[c, i] * averages[c, j]
            factors[c, i, i] += 1.0
        halves[c] = factor_in_place(factors[c], inverses[c], 1.0)


@kernel
def rank_one(lower, inverse, x, sign):
    """Change LLᵀ by ± xxᵀ; x is overwritten."""
    d = len(x)
    for j in range(d):
        old, t = lower[j, j], x[j] * inverse[j]
        root = np.sqrt(max(old * old + sign * x[j] * x[j], 1.0))  # a pivot of a matrix ⪰ I
        grown, shrunk = root * inverse[j], old / root
        lower[j, j], inverse[j] = root, 1.0 / root
        for i in range(j + 1, d):
            lower[i, j] = (lower[i, j] + sign * t * x[i]) * shrunk
            x[i] = grown * x[i] - t * lower[i, j]


@kernel
def log_conditionals(y, current, kappa, nu, table, counts, means, factors, inverses, halves, w, logs, growths):
    """Write log P(row is in c | all other rows), up to a constant, and log |Ψ| with the row minus without, for every c.

    `current` is the component that the row is counted in, and `table` holds the terms that depend on the count alone.
    """
    k, d = means.shape
    for c in range(k):
        lower, inverse = factors[c], inverses[c]
        q = 0.0
        for i in range(d):
            t = y[i] - means[c, i]
            for j in range(i):
                t -= lower[i, j] * w[j]
            t *= inverse[i]
            w[i] = t
            q += t * t
        n = counts[c]
        if c != current:
            growths[c] = np.log(1.0 + (kappa + n) / (kappa + n + 1.0) * q)
            logs[c] = table[n] - halves[c] - 0.5 * (nu + n + 1.0) * growths[c]
        elif n == 1:  # without the row only the prior is left
            q = 0.0
            for i in range(d):
                q += y[i] * y[i]
            growths[c] = np.log(1.0 + kappa / (kappa + 1.0) * q)
            logs[c] = table[0] - 0.5 * (nu + 1.0) * growths[c]
        else:
            left = 1.0 - (kappa + n) / (kappa + n - 1.0) * q
            growths[c] = -np.log(max(left, 1e-16))  # rounding may not make it negative
            logs[c] = table[n - 1] - halves[c] - 0.5 * (nu + n - 1.0) * growths[c]


@kernel
def join(y, new, kappa, counts, sums, means, factors, inverses, halves, growths, w):
    """Put a row into a component, by running counts."""
    total = kappa + counts[new]
    scale = np.sqrt(total / (total + 1.0))
    for j in range(len(y)):
        w[j] = scale * (y[j] - means[new, j])
        sums[new, j] += y[j]
        means[new, j] = sums[new, j] / (total + 1.0)
    rank_one(factors[new], inverses[new], w, 1.0)
    halves[new] += 0.5 * growths[new]
    counts[new] += 1


@kernel
def move(y, old, new, kappa, counts, sums, means, factors, inverses, halves, growths, w):
    """Take a row out of one component and into another, by running counts."""
    d = len(y)
    total = kappa + counts[old]
    scale = np.sqrt(total / (total - 1.0))
    for j in range(d):
        w[j] = scale * (y[j] - means[old, j])
        sums[old, j] -= y[j]
    counts[old] -= 1
    if counts[old] == 0:  # nothing is left but the prior, exactly
        halves[old] = 0.0
        for i in range(d):
            sums[old, i], means[old, i], inverses[old, i] = 0.0, 0.0, 1.0
            for j in range(i + 1):
                factors[old, i, j] = 1.0 if i == j else 0.0
    else:
        rank_one(factors[old], inverses[old], w, -1.0)
        halves[old] -= 0.5 * growths[old]
        for j in range(d):
            means[old, j] = sums[old, j] / (total - 1.0)
    join(y, new, kappa, counts, sums, means, factors, inverses, halves, growths, w)


@kernel
def pick(logs, uniform):
    """Choose an index with probability ∝ exp(logs) by a uniform number; logs are overwritten."""
    top = logs[0]
    for c in range(1, len(logs)):
        top = max(top, logs[c])
    total = 0.0
    for c in range(len(logs)):
        total += np.exp(logs[c] - top)
        logs[c] = total
    chosen = 0
    while chosen < len(logs) - 1 and logs[chosen] <= uniform * total:
        chosen += 1
    return chosen


@kernel
def collapsed_sweep(Y, z, uniforms, kappa, nu, table, counts, sums, means, factors, inverses, halves):
    """Draw the component of every row given those of all others, row after row; all statistics run along."""
    w, logs, growths = np.empty(Y.shape[1]), np.empty(len(counts)), np.empty(len(counts))
    for n in range(len(Y)):
        log_conditionals(Y[n], z[n], kappa, nu, table, counts, means, factors, inverses, halves, w, logs, growths)
        new = pick(logs, uniforms[n])
        if new != z[n]:
            move(Y[n], z[n], new, kappa, counts, sums, means, factors, inverses, halves, growths, w)
            z[n] = new


@kernel
def process_sweep(Y, z, uniforms, first, kappa, nu, table, counts, sums, means, factors, inverses, halves):
    """Draw the cluster of every row from the first on, or a new one; return the row for which there is no room, or how many.

    Clusters stand at the front, and the component after the last of them is the new one. Where a row was alone, what it leaves
    behind is the new one: it is not offered another.
    """
    d, k = Y.shape[1], 0
    while k < len(counts) and counts[k] > 0:
        k += 1
    w, logs, growths = np.empty(d), np.empty(len(counts)), np.empty(len(counts))
    for n in range(first, len(Y)):
        old = z[n]
        alone = counts[old] == 1
        offered = k if alone else k + 1
        if offered > len(counts):
            return n
        log_conditionals(
            Y[n], old, kappa, nu, table,
            counts[:offered], means[:offered], factors[:offered], inverses[:offered], halves[:offered], w, logs, growths,
        )  # fmt: skip
        new = pick(logs[:offered], uniforms[n])
        if new == old:
            continue
        move(Y[n], old, new, kappa, counts, sums, means, factors, inverses, halves, growths, w)
        z[n] = new
        if new == k:
            k += 1
        if alone:  # the last cluster takes the place that fell empty
            k -= 1
            counts[old], sums[old], means[old], halves[old] = counts[k], sums[k], means[k], halves[k]
            factors[old], inverses[old] = factors[k], inverses[k]
            counts[k], sums[k], means[k], halves[k], factors[k], inverses[k] = 0, 0.0, 0.0, 0.0, 0.0, 1.0
            for i in range(d):
                factors[k, i, i] = 1.0
            for m in range(len(z)):
                if z[m] == k:
                    z[m] = old
    return len(Y)


@kernel
def split_or_merge(Y, z, i, j, order, uniforms, kappa, nu, table, joint):
    """Propose to part the cluster of rows i and j, or to make one of their two clusters; tell whether it was accepted.

    Row i begins one part and row j the other. All other rows of their clusters come in a random order, each joining a part with
    the probability of a Gibbs step given those that came before. Let q be the probability of the parting found like this or,
    where there are two clusters, of just the one they make. A parting is accepted with the odds p(parted)/(p(one) q), a merger
    with p(one) q/p(parted), and so each happens as often as the other.
    """
    d, one = Y.shape[1], z[i] == z[j]
    counts, halves, inverses = np.zeros(3, np.int64), np.zeros(3), np.ones((3, d))
    sums, means, factors = np.zeros((3, d)), np.zeros((3, d)), np.zeros((3, d, d))
    for c in range(3):
        for m in range(d):
            factors[c, m, m] = 1.0
    w, logs, growths, log_q = np.empty(d), np.empty(3), np.empty(3), 0.0
    part = np.zeros(len(z), np.int8)
    first, second = z[i], z[j]
    for m in range(-2, len(order)):
        n = i if m == -2 else j if m == -1 else order[m]
        if (z[n] != first and z[n] != second) or (m >= 0 and n in (i, j)):
            continue
        log_conditionals(Y[n], -1, kappa, nu, table, counts, means, factors, inverses, halves, w, logs, growths)
        side = 0 if n == i else 1
        if m >= 0:
            top = max(logs[0], logs[1])
            share = np.exp(logs[0] - top) / (np.exp(logs[0] - top) + np.exp(logs[1] - top))
            side = (0 if uniforms[m] < share else 1) if one else (0 if z[n] == first else 1)
            log_q += np.log(max(share if side == 0 else 1.0 - share, 1e-300))
        part[n] = side
        join(Y[n], side, kappa, counts, sums, means, factors, inverses, halves, growths, w)
        join(Y[n], 2, kappa, counts, sums, means, factors, inverses, halves, growths, w)
    gain = -log_q
    for c in range(3):
        gain += (1.0 if c < 2 else -1.0) * (joint[counts[c]] - (nu + counts[c]) * halves[c])
    if np.log(max(uniforms[len(order)], 1e-300)) >= (gain if one else -gain):
        return False
    name = 0
    for n in range(len(z)):
        name = max(name, z[n] + 1)
    for n in range(len(z)):
        if z[n] == first or z[n] == second:
            z[n] = name if one and part[n] == 1 else first
    return True


@kernel
def renumber(z, names):
    """Number the clusters of a partition in the order of their first rows, in place."""
    names[:], k = -1, 0
    for n in range(len(z)):
        if names[z[n]] < 0:
            names[z[n]] = k
            k += 1
        z[n] = names[z[n]]


@kernel
def conditional_rows(Y, z, rows, kappa, nu, table, counts, sums, means, factors, inverses, halves, out):
    """Write log P(row is in c | all other rows) of some rows, each up to a constant."""
    w, growths = np.empty(Y.shape[1]), np.empty(len(counts))
    for r in range(len(rows)):
        n = rows[r]
        log_conditionals(Y[n], z[n], kappa, nu, table, counts, means, factors, inverses, halves, w, out[r], growths)


@kernel
def scatters(X, z, counts, sums, products):
    """Sum rows by component: how many, their sum, and the lower half of their scatter about their average."""
    d = X.shape[1]
    counts[:], sums[:], products[:] = 0, 0.0, 0.0
    for n in range(len(X)):
        counts[z[n]] += 1
        for j in range(d):
            sums[z[n], j] += X[n, j]
    away = np.empty(d)
    for n in range(len(X)):
        c = z[n]
        for i in range(d):
            away[i] = X[n, i] - sums[c, i] / counts[c]
            for j in range(i + 1):
                products[c, i, j] += away[i] * away[j]


@kernel
def refactor(kind, c, floor, counts, products, factors, inverses, halves):
    """Factor the covariance of one component (that of all, if they share one) from its running counts."""
    k, d = inverses.shape
    first, last = (0, k) if kind == TIED else (c, c + 1)
    lower, divisor, trace = factors[first], 0, 0.0
    for m in range(first, last):
        divisor += counts[m]
    divisor = max(divisor, 1)
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for m in range(first, last):
                total += products[m, i, j]
            lower[i, j] = total / divisor if i == j or kind in (TIED, FULL) else 0.0
        trace += lower[i, i]
    for i in range(d):
        lower[i, i] = (trace / d if kind == SPHERICAL else lower[i, i]) + floor
    halves[first] = factor_in_place(lower, inverses[first], floor)


@kernel
def shift(x, c, step, counts, sums, products):
    """Put a row into a component (step 1) or take it out (step −1): N, s and the scatter follow."""
    before, after = counts[c], counts[c] + step
    for i in range(len(x)):
        for j in range(i + 1):
            if before > 0 and after > 0:
                away = (x[i] - sums[c, i] / before) * (x[j] - sums[c, j] / before)
                products[c, i, j] += step * before / after * away
            else:  # one row, or none, has no scatter
                products[c, i, j] = 0.0
    for i in range(len(x)):
        sums[c, i] = sums[c, i] + step * x[i] if after > 0 else 0.0
    counts[c] = after


@kernel
def running_sweep(X, z, uniforms, kind, floor, counts, sums, products):
    """Draw the component of every row from its posterior, row after row; after every move, all parameters follow at once."""
    k, d = sums.shape
    scatters(X, z, counts, sums, products)
    factors, inverses, halves = np.zeros((k, d, d)), np.ones((k, d)), np.zeros(k)
    w, logs = np.empty(d), np.empty(k)
    for c in range(k):
        refactor(kind, c, floor, counts, products, factors, inverses, halves)
    for n in range(len(X)):
        for c in range(k):
            logs[c] = -np.inf
            if counts[c] > 0:
                f, q, share = 0 if kind == TIED else c, 0.0, 1.0 / counts[c]
                for i in range(d):
                    t = X[n, i] - sums[c, i] * share
                    for j in range(i):
                        t -= factors[f, i, j] * w[j]
                    w[i] = t * inverses[f, i]
                    q += w[i] * w[i]
                logs[c] = np.log(counts[c]) - halves[f] - 0.5 * q
        new = pick(logs, uniforms[n])
        if new != z[n]:
            for side in range(2):
                c = z[n] if side == 0 else new
                shift(X[n], c, 2 * side - 1, counts, sums, products)
                refactor(kind, c, floor, counts, products, factors, inverses, halves)
            z[n] = new


@kernel
def choose(posterior, uniforms, z):
    """Write a component for each row, drawn with the probabilities of its line by a uniform number."""
    k = posterior.shape[1]
    for n in range(len(posterior)):
        c, total = 0, posterior[n, 0]
        while c < k - 1 and total <= uniforms[n]:
            c += 1
            total += posterior[n, c]
        z[n] = c


@kernel
def student_log(x, center, offset, factor, constant, exponent, away):
    """Log-density of one row under one component with Student's density."""
    q = 0.0
    for i in range(len(x)):
        away[i] = np.float64(x[i]) - center[i] - offset[i]
        t = 0.0
        for j in range(i + 1):
            t += factor[i, j] * away[j]
        q += t * t
    return constant - exponent * np.log(1.0 + q)


@kernel
def student_rows(X, center, offsets, factors, constants, exponents, out):
    """Write the log-density of every row (n, k) under every component."""
    away = np.empty(X.shape[1])
    for n in range(len(X)):
        for c in range(len(constants)):
            out[n, c] = student_log(X[n], center, offsets[c], factors[c], constants[c], exponents[c], away)


@kernel
def student_total(X, center, offsets, factors, constants, exponents, out):
    """Write the logarithm of the sum over components of the densities of every row."""
    away = np.empty(X.shape[1])
    for n in range(len(X)):
        top, total = -np.inf, 0.0
        for c in range(len(constants)):
            value = student_log(X[n], center, offsets[c], factors[c], constants[c], exponents[c], away)
            if value > top:
                total = total * np.exp(top - value) + 1.0
                top = value
            else:
                total += np.exp(value - top)
        out[n] = top + np.log(total)


def rows_block(X, weight):
    """Give the rows of a block themselves, in double precision and one after the other."""
    return np.ascontiguousarray(X, dtype=float)


def student_block(X, weight, components):
    """Log-density of each row of a block under each component."""
    out = np.empty((len(X), len(components.constants)))
    student_rows(X, *components, out)
    return out


def total_block(X, weight, components):
    """Logarithm of the sum of the densities of each row of a block."""
    out = np.empty(len(X))
    student_total(X, *components, out)
    return out
