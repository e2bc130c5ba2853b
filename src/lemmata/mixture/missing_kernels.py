"""The E-step of a Gaussian mixture on rows with holes, compiled.

Rows with the same holes share their algebra, so a block is ordered by its patterns of missing entries. Let o be the seen
columns of a pattern and m the missing ones. Given component k, the seen part of a row is N(μₒ, Σₒₒ), and the missing part is
normal about its regression on the seen one,

    E[xₘ|xₒ] = μₘ + B(xₒ − μₒ),   B = Σₘₒ Σₒₒ⁻¹,   Var[xₘ|xₒ] = V = Σₘₘ − B Σₒₘ.

With P the inverse Cholesky factor of Σₒₒ and W = P Σₒₘ these are B = WᵀP and V = Σₘₘ − WᵀW. The expected statistics of the
rows are linear in those of their seen parts: from n = Σ r, s = Σ r z and S = Σ r zzᵀ, z = xₒ − μₒ, follow the sums for the
missing part, Bs for the first moments, BS and BSBᵀ + nV for the second. So a row costs no more than its seen entries do, and a
pattern a few small products for each component. No entry is filled in, and nothing is dropped.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.mixture.gaussian_kernels import (
    DIAG,
    FULL,
    SPHERICAL,
    TIED,
    TILE,
    add_tile,
    filled_up,
    gather_all,
    log_joints,
    posteriors,
    scratch,
)


@kernel
def split(seen, at):
    """List the seen columns of a pattern, then the missing ones; return how many are seen."""
    o = 0
    for j in range(len(seen)):
        if seen[j]:
            at[o] = j
            o += 1
    m = o
    for j in range(len(seen)):
        if not seen[j]:
            at[m] = j
            m += 1
    return o


@kernel
def regress(covariance, at, factor, across):
    """Write P and W = P Σₒₘ for the columns `at`, of which the first len(factor) are seen; return Σ log Pⱼⱼ."""
    o, half = len(factor), 0.0
    for i in range(o):
        for j in range(i + 1):
            s = covariance[at[i], at[j]]
            for t in range(j):
                s -= factor[i, t] * factor[j, t]
            factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
    for j in range(o):
        factor[j, j] = 1.0 / factor[j, j]
        half += np.log(factor[j, j])
        for i in range(j + 1, o):
            s = 0.0
            for t in range(j, i):
                s -= factor[i, t] * factor[t, j]
            factor[i, j] = s / factor[i, i]  # still that of L: column i is inverted after column j
    for i in range(o):
        for q in range(across.shape[1]):
            s = 0.0
            for t in range(i + 1):
                s += factor[i, t] * covariance[at[t], at[o + q]]
            across[i, q] = s
    return half


@kernel
def marginal(kind, offsets, covariances, logs, at, o):
    """Derive what `posteriors` needs for the seen columns, and W."""
    k, d = offsets.shape
    wide = kind in (FULL, TIED)
    near, constants = np.empty((k, o)), np.empty(k)
    factors = np.zeros((len(covariances), o if wide else 1, o if wide or kind == DIAG else 1))
    across = np.empty((len(covariances), o, d - o if wide else 0))
    halves = np.zeros(len(covariances))
    for c in range(len(covariances)):
        if wide:
            halves[c] = regress(covariances[c], at, factors[c], across[c])
        elif kind == DIAG:
            for i in range(o):
                factors[c, 0, i] = 1.0 / np.sqrt(covariances[c, 0, at[i]])
                halves[c] += np.log(factors[c, 0, i])
        else:
            factors[c, 0, 0] = 1.0 / np.sqrt(covariances[c, 0, 0])
            halves[c] = o * np.log(factors[c, 0, 0])
    for c in range(k):
        constants[c] = logs[c] + halves[c if kind != TIED else 0] - 0.5 * o * np.log(2 * np.pi)
        for i in range(o):
            near[c, i] = offsets[c, at[i]]
    return near, factors, constants, across


@kernel
def lay_out_seen(X, order, start, stop, center, at, tile):
    """Write the seen columns of rows side by side into a tile, relative to the center, and fill it up; return how many rows."""
    m = min(tile.shape[1], stop - start)
    for r in range(m):
        row = order[start + r]
        for i in range(tile.shape[0]):
            tile[i, r] = np.float64(X[row, at[i]]) - center[at[i]]
    tile[:, m : filled_up(m)] = 0.0
    return m


@kernel
def coefficients(factor, across):
    """Give B = WᵀP."""
    o, m = across.shape
    slope = np.zeros((m, o))
    for q in range(m):
        for t in range(o):
            for i in range(t, o):
                slope[q, t] += across[i, q] * factor[i, t]
    return slope


@kernel
def spread(at, o, covariance, factor, across, n, s, S, first, second):
    """Add to the moments of all columns what those of the seen ones imply; only the lower halves of S and `second` count."""
    d = len(first)
    slope = coefficients(factor, across)
    for i in range(o):
        first[at[i]] += s[i]
        for j in range(i + 1):
            second[at[i], at[j]] += S[i, j]  # `at` rises, so this is the lower half
    for q in range(d - o):
        row = np.zeros(o)  # of BS
        for t in range(o):
            first[at[o + q]] += slope[q, t] * s[t]
            for i in range(o):
                row[i] += slope[q, t] * (S[t, i] if t >= i else S[i, t])
        for i in range(o):
            second[max(at[o + q], at[i]), min(at[o + q], at[i])] += row[i]
        for p in range(q + 1):
            v = n * covariance[at[o + q], at[o + p]]
            for i in range(o):
                v += row[i] * slope[p, i] - n * across[i, q] * across[i, p]
            second[at[o + q], at[o + p]] += v


@kernel
def spread_apart(kind, at, o, variances, n, s, S, first, second):
    """Do the same where columns are independent within a component: a missing entry adds its variance."""
    for i in range(o):
        first[at[i]] += s[i]
        if kind == DIAG:
            second[0, at[i]] += S[0, i]
    if kind == SPHERICAL:
        second[0, 0] += S[0, 0] + n * (len(first) - o) * variances[0, 0]
    else:
        for i in range(o, len(first)):
            second[0, at[i]] += n * variances[0, at[i]]


@kernel
def spread_all(kind, at, o, covariances, factors, across, n, s, S, counts, first, second, sights):
    """Add to the statistics of all columns what those of the seen ones of a pattern imply, and how often each was seen."""
    for c in range(len(n)):
        f = c if kind != TIED else 0
        counts[c] += n[c]
        for i in range(o):
            sights[c, at[i]] += n[c]
        if kind in (FULL, TIED):
            spread(at, o, covariances[f], factors[f], across[f], n[c], s[c], S[c], first[c], second[c])
        else:
            spread_apart(kind, at, o, covariances[c], n[c], s[c], S[c], first[c], second[c])


@kernel
def room_for_seen(kind, k, o):
    """Make room for the statistics of the seen columns of a pattern."""
    wide = kind in (FULL, TIED)
    return np.zeros(k), np.zeros((k, o)), np.zeros((k, o if wide else 1, 1 if kind == SPHERICAL else o))


@kernel
def expectation_by_pattern(
    X, order, weight, starts, seen, kind, center, offsets, covariances, logs, counts, first, second, sights
):
    """Add the statistics of a block to the last four; return its log-likelihood. Weights come in the order given."""
    k, d = offsets.shape
    moments = FULL if kind == TIED else kind
    at = np.empty(d, np.int64)
    wide, narrow, shares = scratch(k, d)
    total = 0.0
    for p in range(len(seen)):
        o = split(seen[p], at)
        near, factors, constants, across = marginal(kind, offsets, covariances, logs, at, o)
        tile = wide[2, :o]
        n, s, S = room_for_seen(kind, k, o)
        for start in range(starts[p], starts[p + 1], TILE):
            m = lay_out_seen(X, order, start, starts[p + 1], center, at, tile)
            total += add_tile(kind, moments, near, factors, constants, tile, m, weight, start, wide, narrow, shares, n, s, S)
        spread_all(kind, at, o, covariances, factors, across, n, s, S, counts, first, second, sights)
    return total


@kernel
def moments_by_pattern(
    X, order, starts, seen, posterior, kind, center, offsets, covariances, logs, counts, first, second, sights
):
    """Add the statistics of a block to the last four, with the shares (n, k) of the components in its rows given."""
    k, d = offsets.shape
    moments = FULL if kind == TIED else kind
    at = np.empty(d, np.int64)
    wide, narrow, shares = scratch(k, d)
    for p in range(len(seen)):
        o = split(seen[p], at)
        near, factors, _, across = marginal(kind, offsets, covariances, logs, at, o)
        tile = wide[2, :o]
        n, s, S = room_for_seen(kind, k, o)
        for start in range(starts[p], starts[p + 1], TILE):
            m = lay_out_seen(X, order, start, starts[p + 1], center, at, tile)
            for r in range(m):
                for c in range(k):
                    shares[c, r] = posterior[order[start + r], c]
            gather_all(moments, near, tile, m, shares, wide[1], narrow[0], n, s, S)
        spread_all(kind, at, o, covariances, factors, across, n, s, S, counts, first, second, sights)


@kernel
def posterior_by_pattern(X, order, starts, seen, kind, center, offsets, covariances, logs, normalize, out, density):
    """Write the posterior (n, k), or the log joint density, and the log-density (n,), or the largest of a row."""
    k, d = offsets.shape
    at = np.empty(d, np.int64)
    wide, narrow, shares = scratch(k, d)
    white, z, a, q, norm = wide[0], wide[1], narrow[0], narrow[1], narrow[2]
    for p in range(len(seen)):
        o = split(seen[p], at)
        near, factors, constants, _ = marginal(kind, offsets, covariances, logs, at, o)
        tile = wide[2, :o]
        for start in range(starts[p], starts[p + 1], TILE):
            m = lay_out_seen(X, order, start, starts[p + 1], center, at, tile)
            if normalize:
                posteriors(kind, near, factors, constants, tile, filled_up(m), white, z, a, q, shares, norm)
            else:
                log_joints(kind, near, factors, constants, tile, filled_up(m), white, z, a, q, shares, norm)
            for r in range(m):
                row = order[start + r]
                density[row] = norm[r]
                for c in range(k):
                    out[row, c] = shares[c, r]


@kernel
def predictors(kind, covariances, factors, across, at, o):
    """Give B and the diagonal of V for each covariance; B has no columns where columns are independent."""
    f, m = len(covariances), len(at) - o
    wide = kind in (FULL, TIED)
    slopes, rests = np.zeros((f, m, o if wide else 0)), np.empty((f, m))
    for c in range(f):
        if wide:
            slopes[c] = coefficients(factors[c], across[c])
        for q in range(m):
            j = at[o + q]
            if wide:
                rests[c, q] = covariances[c, j, j] - (across[c, :, q] ** 2).sum()
            else:
                rests[c, q] = covariances[c, 0, j if kind == DIAG else 0]
    return slopes, rests


@kernel
def fill_by_pattern(X, order, starts, seen, kind, center, offsets, covariances, logs, posterior, out, variance):
    """Write the rows of a block with the mean of each hole given the seen entries, and the variance of that.

    By the laws of total expectation and variance over the components, whose posterior for each row is given.
    """
    k, d = offsets.shape
    at, guess = np.empty(d, np.int64), np.empty(k)
    for p in range(len(seen)):
        o = split(seen[p], at)
        near, factors, _, across = marginal(kind, offsets, covariances, logs, at, o)
        slopes, rests = predictors(kind, covariances, factors, across, at, o)
        for r in order[starts[p] : starts[p + 1]]:
            for i in range(o):
                out[r, at[i]] = X[r, at[i]]
                variance[r, at[i]] = 0.0
            for q in range(d - o):
                mean, doubt = 0.0, 0.0
                for c in range(k):
                    slope = slopes[c if kind != TIED else 0, q]
                    guess[c] = offsets[c, at[o + q]]
                    for i in range(len(slope)):
                        guess[c] += slope[i] * (np.float64(X[r, at[i]]) - center[at[i]] - near[c, i])
                    mean += posterior[r, c] * guess[c]
                for c in range(k):
                    rest = rests[c if kind != TIED else 0, q]
                    doubt += posterior[r, c] * (max(rest, 0.0) + (guess[c] - mean) ** 2)
                out[r, at[o + q]] = center[at[o + q]] + mean
                variance[r, at[o + q]] = doubt
