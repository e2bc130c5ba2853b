"""The E-step of a Gaussian mixture, compiled.

A block is worked off in tiles of 256 rows, laid out side by side so that every innermost loop runs over rows and vectorizes.
For component k with mean μₖ and covariance Σₖ = LLᵀ, the factor P = L⁻¹ gives the squared distance ‖P(x − μₖ)‖², and

    log πₖ N(x|μₖ, Σₖ) = cₖ − ½ ‖P(x − μₖ)‖²,   cₖ = log πₖ + Σ log Pⱼⱼ − ½ d log 2π.

The posterior follows by log-sum-exp. Statistics are summed about the old means: with z = x − μₖ they are nₖ = Σ r,
Σ r z and Σ r zzᵀ (its lower half, its diagonal or its trace), so that neither an offset of the table nor the distance
between components costs digits. With one covariance for all, P(x − c) is the same for every component and is made once; and
since Σₖ Σᵢ rᵢₖ (x − μₖ)(x − μₖ)ᵀ is the total scatter minus that of the means, second moments are not summed at all.
"""

from typing import Any, NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials

TILE = 256
LANES = 32  # tiles are filled up to a multiple of so many rows: what vector instructions leave over goes one by one
KINDS = {"full": 0, "tied": 1, "diag": 2, "spherical": 3}
FULL, TIED, DIAG, SPHERICAL = KINDS.values()


class Components(NamedTuple):
    """Gaussian components as the kernels want them; factors have the shape (k or 1, d or 1, d or 1) of their kind."""

    kind: int
    center: Any  # near the rows, so that differences lose nothing
    offsets: Any  # (k, d), means − center
    factors: Any
    constants: Any  # (k,)
    covariances: Any  # in the shape of the factors: what is seen of a row with holes has factors of its own
    logs: Any  # (k,), of the weights


@kernel
def filled_up(m):
    """Count the rows of a tile with m rows, filled up."""
    return (m + LANES - 1) // LANES * LANES


@kernel
def lay_out(X, start, center, tile):
    """Write rows side by side into a tile, relative to the center, and fill it up with zeros; return how many rows."""
    m = min(tile.shape[1], X.shape[0] - start)
    for r in range(m):
        for j in range(X.shape[1]):
            tile[j, r] = np.float64(X[start + r, j]) - center[j]
    tile[:, m : filled_up(m)] = 0.0
    return m


@kernel
def distances(kind, offset, factor, tile, white, m, z, a, out):
    """Squared distances of the rows of a tile to one component."""
    d = tile.shape[0]
    out[:m] = 0.0
    if kind == FULL:
        for j in range(d):
            x, y, b = tile[j], z[j], offset[j]
            for r in range(m):
                y[r] = x[r] - b
        for i in range(d):
            a[:m] = 0.0
            for j in range(i + 1):
                y, p = z[j], factor[i, j]
                for r in range(m):
                    a[r] += p * y[r]
            for r in range(m):
                out[r] += a[r] * a[r]
    elif kind == TIED:
        for i in range(d):
            b = 0.0
            for j in range(i + 1):
                b += factor[i, j] * offset[j]
            x = white[i]
            for r in range(m):
                t = x[r] - b
                out[r] += t * t
    else:
        for j in range(d):
            x, b, p = tile[j], offset[j], factor[0, j if kind == DIAG else 0]
            for r in range(m):
                t = p * (x[r] - b)
                out[r] += t * t


@kernel
def log_joints(kind, offsets, factors, constants, tile, m, white, z, a, q, shares, norm):
    """Log joint density of every component and the rows of a tile (k, m), and the largest of each row."""
    k, d = offsets.shape
    if kind == TIED:
        factor = factors[0]
        for i in range(d):
            y = white[i]
            y[:m] = 0.0
            for j in range(i + 1):
                x, p = tile[j], factor[i, j]
                for r in range(m):
                    y[r] += p * x[r]
    norm[:m] = -np.inf
    for c in range(k):
        distances(kind, offsets[c], factors[c if kind != TIED else 0], tile, white, m, z, a, q)
        share, constant = shares[c], constants[c]
        for r in range(m):
            v = constant - 0.5 * q[r]
            share[r] = v
            norm[r] = max(norm[r], v)


@kernel
def posteriors(kind, offsets, factors, constants, tile, m, white, z, a, q, shares, norm):
    """Posterior of every component for the rows of a tile (k, m), and the log-density of each row."""
    k = len(offsets)
    log_joints(kind, offsets, factors, constants, tile, m, white, z, a, q, shares, norm)
    q[:m] = 0.0
    for r in range(m):
        a[r] = norm[r] if norm[r] > -np.inf else 0.0  # a row beyond all numbers belongs to nobody
    bits = np.empty(TILE, np.int64)
    powers = bits.view(np.float64)
    for c in range(k):
        share = shares[c]
        for r in range(m):
            share[r] -= a[r]
        exponentials(share, m, bits, powers)
        for r in range(m):
            q[r] += share[r]
    for r in range(m):
        norm[r] = a[r] + np.log(q[r])
        q[r] = 1.0 / q[r] if q[r] > 0.0 else 0.0
    for c in range(k):
        share = shares[c]
        for r in range(m):
            share[r] *= q[r]


@kernel
def gather(kind, offset, tile, m, share, z, a, first, second):
    """Add the moments of a tile about one mean, weighted by the share of its component in each row."""
    d = tile.shape[0]
    for i in range(d):
        x, y, b, s = tile[i], z[i], offset[i], 0.0
        for r in range(m):
            y[r] = x[r] - b
        for r in range(m):
            s += share[r] * y[r]
        first[i] += s
        if kind == FULL:
            for r in range(m):
                a[r] = share[r] * y[r]
            for j in range(i + 1):
                w, s = z[j], 0.0
                for r in range(m):
                    s += a[r] * w[r]
                second[i, j] += s
        elif kind != TIED:
            s = 0.0
            for r in range(m):
                s += share[r] * y[r] * y[r]
            second[0, i if kind == DIAG else 0] += s


@kernel
def gather_all(kind, offsets, tile, m, shares, z, a, counts, first, second):
    """Add the weights and moments of all components in a tile."""
    full = filled_up(m)
    for c in range(len(offsets)):
        share, s = shares[c], 0.0
        share[m:full] = 0.0
        for r in range(full):
            s += share[r]
        counts[c] += s
        gather(kind, offsets[c], tile, full, share, z, a, first[c], second[c if kind != TIED else 0])


@kernel
def scratch(k, d):
    """Make room for the work on a tile: rows side by side four times over, and posteriors."""
    return np.empty((3, d, TILE)), np.empty((3, TILE)), np.empty((k, TILE))


@kernel
def add_tile(kind, moments, offsets, factors, constants, tile, m, weight, start, wide, narrow, shares, counts, first, second):
    """Add the statistics of a tile whose rows begin at start; return its log-likelihood. Moments have a kind of their own."""
    white, z, a, q, norm = wide[0], wide[1], narrow[0], narrow[1], narrow[2]
    posteriors(kind, offsets, factors, constants, tile, filled_up(m), white, z, a, q, shares, norm)
    if weight is not None:
        for r in range(m):
            norm[r] *= weight[start + r]
        for c in range(len(offsets)):
            share = shares[c]
            for r in range(m):
                share[r] *= weight[start + r]
    total = 0.0
    for r in range(m):
        total += norm[r]
    gather_all(moments, offsets, tile, m, shares, z, a, counts, first, second)
    return total


@kernel
def expectation(X, weight, kind, center, offsets, factors, constants, counts, first, second):
    """Add the statistics of a block to (counts, first, second); return its log-likelihood."""
    k, d = offsets.shape
    wide, narrow, shares = scratch(k, d)
    tile = wide[2]
    total = 0.0
    for start in range(0, X.shape[0], TILE):
        m = lay_out(X, start, center, tile)
        total += add_tile(
            kind, kind, offsets, factors, constants, tile, m, weight, start, wide, narrow, shares, counts, first, second
        )
    return total


@kernel
def posterior_rows(X, kind, center, offsets, factors, constants, out, density):
    """Write the posterior (n, k) and the log-density (n,) of the rows of a block."""
    k, d = offsets.shape
    wide, narrow, shares = scratch(k, d)
    white, z, tile, a, q, norm = wide[0], wide[1], wide[2], narrow[0], narrow[1], narrow[2]
    for start in range(0, X.shape[0], TILE):
        m = lay_out(X, start, center, tile)
        posteriors(kind, offsets, factors, constants, tile, filled_up(m), white, z, a, q, shares, norm)
        for r in range(m):
            density[start + r] = norm[r]
            for c in range(k):
                out[start + r, c] = shares[c, r]


@kernel
def log_density_rows(X, kind, center, offsets, factors, constants, out):
    """Write the log joint density (n, k) of the rows of a block and every component."""
    k, d = offsets.shape
    wide, narrow, shares = scratch(k, d)
    white, z, tile, a, q, norm = wide[0], wide[1], wide[2], narrow[0], narrow[1], narrow[2]
    for start in range(0, X.shape[0], TILE):
        m = lay_out(X, start, center, tile)
        log_joints(kind, offsets, factors, constants, tile, filled_up(m), white, z, a, q, shares, norm)
        for r in range(m):
            for c in range(k):
                out[start + r, c] = shares[c, r]


@kernel
def moments_of_shares(X, posterior, kind, center, offsets, counts, first, second):
    """Add the statistics of a block to (counts, first, second), with the shares (n, k) of the components in its rows given."""
    k, d = offsets.shape
    wide, narrow, shares = scratch(k, d)
    z, tile, a = wide[1], wide[2], narrow[0]
    for start in range(0, X.shape[0], TILE):
        m = lay_out(X, start, center, tile)
        for r in range(m):
            for c in range(k):
                shares[c, r] = posterior[start + r, c]
        gather_all(kind, offsets, tile, m, shares, z, a, counts, first, second)


def room(components):
    """Make room for counts, first and second moments."""
    k, d = components.offsets.shape
    second = {FULL: (k, d, d), TIED: (1, 1, 1), DIAG: (k, 1, d), SPHERICAL: (k, 1, 1)}[components.kind]
    return np.zeros(k), np.zeros((k, d)), np.zeros(second)


def e_block(X, weight, components):
    """Log-likelihood of a block, weights of the components in it, and moments about their means."""
    statistics = room(components)
    return float(expectation(X, weight, *components[:5], *statistics)), *statistics


def log_density_block(X, components):
    """Log joint density of the rows of a block and every component."""
    out = np.empty((X.shape[0], len(components.offsets)))
    log_density_rows(X, *components[:5], out)
    return out


def moments_block(X, shares, components):
    """Weights of the components in a block, and moments about their means, with the shares of components in rows given."""
    statistics = room(components)
    moments_of_shares(X, shares, *components[:3], *statistics)
    return statistics


def posterior_block(X, weight, components):
    """Posterior of each row of a block, and its log-density."""
    out, density = np.empty((X.shape[0], len(components.offsets))), np.empty(X.shape[0])
    posterior_rows(X, *components[:5], out, density)
    return out, density
