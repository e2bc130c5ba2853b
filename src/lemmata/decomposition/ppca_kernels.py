"""Rows with holes under x = Wz + μ + noise: the posterior of z given the seen entries, and what EM sums of it.

Write W_O for the rows of W that belong to the seen entries and r = x_O − μ_O. With z ~ N(0, I) and noise of variance σ²,

    z | x_O ~ N(m, S),   S = (I + W_OᵀW_O/σ²)⁻¹,   m = S W_Oᵀr/σ²,
    −2 log p(x_O) = |O| log 2πσ² − log|S| + ‖r − W_O m‖²/σ² + ‖m‖²,

a sum of squares, in which nothing cancels. W_OᵀW_O is the sum of the products of the seen rows of W with themselves, which are
made once for a pass; symmetric matrices are kept as their lower halves, row by row.
"""

import numpy as np

from lemmata.core.kernel import kernel


def products(loadings):
    """Give the lower halves of wwᵀ for the rows w of a matrix (d, k)."""
    rows, columns = np.tril_indices(loadings.shape[1])
    return loadings[:, rows] * loadings[:, columns]


@kernel
def invert(half, k, S):
    """Write the inverse of a positive definite matrix, given as its lower half, which is lost; return the log-determinant."""
    log_determinant = 0.0
    for i in range(k):  # Cholesky's factor in place
        row = i * (i + 1) // 2
        for j in range(i + 1):
            other = j * (j + 1) // 2
            v = half[row + j]
            for t in range(j):
                v -= half[row + t] * half[other + t]
            half[row + j] = np.sqrt(v) if i == j else v / half[other + j]
        log_determinant += 2.0 * np.log(half[row + i])
    for i in range(k):  # its inverse, in place
        row = i * (i + 1) // 2
        for j in range(i):
            v = 0.0
            for t in range(j, i):
                v -= half[row + t] * half[t * (t + 1) // 2 + j]
            half[row + j] = v / half[row + i]
        half[row + i] = 1.0 / half[row + i]
    for i in range(k):
        for j in range(i + 1):
            v = 0.0
            for t in range(i, k):
                v += half[t * (t + 1) // 2 + i] * half[t * (t + 1) // 2 + j]
            S[i, j] = v
            S[j, i] = v
    return log_determinant


@kernel
def posterior_of_row(X, i, mean, loadings, outers, noise, at, r, half, along, m, S):
    """Write the posterior of z for row i, its seen columns and what is left of them; return their number and log-density."""
    d, k = loadings.shape
    along[:] = 0.0
    half[:] = 0.0
    o = 0
    for j in range(d):
        x = np.float64(X[i, j])
        if not np.isnan(x):
            at[o] = j
            r[o] = x - mean[j]
            for e in range(len(half)):
                half[e] += outers[j, e]
            for a in range(k):
                along[a] += loadings[j, a] * r[o]
            o += 1
    for e in range(len(half)):
        half[e] /= noise
    for a in range(k):
        half[a * (a + 1) // 2 + a] += 1.0
    value = invert(half, k, S)
    for a in range(k):
        m[a] = 0.0
        for b in range(k):
            m[a] += S[a, b] * along[b] / noise
        value += m[a] * m[a]
    squares = 0.0
    for q in range(o):
        for a in range(k):
            r[q] -= loadings[at[q], a] * m[a]
        squares += r[q] * r[q]
    return o, -0.5 * (value + squares / noise + o * np.log(2.0 * np.pi * noise))


@kernel
def expectation(X, weight, mean, loadings, outers, noise, second, slope, misfit):
    """Add the statistics of a block; return its log-likelihood and the weight of its seen entries.

    Parameters
    ----------
    second : (d, (k + 1)(k + 2)/2), for each column the lower half of Σ E[z̃z̃ᵀ] over the rows that show it, z̃ = (z, 1).
    slope : (d, k + 1), Σ E[(x − μ − w·z) z̃], half the descent of the squares below in (w, μ).
    misfit : (d,), Σ E[(x − μ − w·z)²].
    """
    d, k = loadings.shape
    at, r, half, along, m, S = (
        np.empty(d, np.int64),
        np.empty(d),
        np.empty(outers.shape[1]),
        np.empty(k),
        np.empty(k),
        np.empty((k, k)),
    )
    moments = np.empty(second.shape[1])
    total, seen = 0.0, 0.0
    for i in range(len(X)):
        o, value = posterior_of_row(X, i, mean, loadings, outers, noise, at, r, half, along, m, S)
        s = 1.0 if weight is None else weight[i]
        total += s * value
        seen += s * o
        e = 0
        for a in range(k):
            for b in range(a + 1):
                moments[e] = s * (S[a, b] + m[a] * m[b])
                e += 1
        for a in range(k):
            moments[e + a] = s * m[a]
        moments[e + k] = s
        for q in range(o):
            j = at[q]
            for f in range(len(moments)):
                second[j, f] += moments[f]
            spread = r[q] * r[q]
            for a in range(k):
                v = 0.0
                for b in range(k):
                    v += S[a, b] * loadings[j, b]
                spread += v * loadings[j, a]
                slope[j, a] += s * (r[q] * m[a] - v)
            slope[j, k] += s * r[q]
            misfit[j] += s * spread
    return total, seen


@kernel
def posteriors(X, mean, loadings, outers, noise, scores, covariances, density):
    """Write the posterior mean of z of each row, its covariance if there is room for it, and the log-density of the row."""
    d, k = loadings.shape
    at, r, half, along, m, S = (
        np.empty(d, np.int64),
        np.empty(d),
        np.empty(outers.shape[1]),
        np.empty(k),
        np.empty(k),
        np.empty((k, k)),
    )
    for i in range(len(X)):
        density[i] = posterior_of_row(X, i, mean, loadings, outers, noise, at, r, half, along, m, S)[1]
        for a in range(k):
            scores[i, a] = m[a]
            if len(covariances):
                for b in range(k):
                    covariances[i, a, b] = S[a, b]


@kernel
def fill(X, mean, loadings, outers, noise, out, variance):
    """Write the rows of a block with the mean of each hole given the seen entries, and the variance of that."""
    d, k = loadings.shape
    at, r, half, along, m, S = (
        np.empty(d, np.int64),
        np.empty(d),
        np.empty(outers.shape[1]),
        np.empty(k),
        np.empty(k),
        np.empty((k, k)),
    )
    for i in range(len(X)):
        posterior_of_row(X, i, mean, loadings, outers, noise, at, r, half, along, m, S)
        for j in range(d):
            out[i, j] = X[i, j]
            variance[i, j] = 0.0
            if np.isnan(X[i, j]):
                out[i, j] = mean[j]
                variance[i, j] = noise
                for a in range(k):
                    out[i, j] += loadings[j, a] * m[a]
                    for b in range(k):
                        variance[i, j] += loadings[j, a] * S[a, b] * loadings[j, b]
