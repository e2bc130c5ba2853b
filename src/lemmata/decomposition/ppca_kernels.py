"""Rows with holes under x = Wz + μ + noise: the posterior of z given the seen entries, and what EM sums of it.

Write W_O for the rows of W that belong to the seen entries and r = x_O − μ_O. With z ~ N(0, I) and noise of variance σ²,

    z | x_O ~ N(m, S),   S = (I + W_OᵀW_O/σ²)⁻¹,   m = S W_Oᵀr/σ²,
    −2 log p(x_O) = |O| log 2πσ² − log|S| + ‖r − W_O m‖²/σ² + ‖m‖²,

a sum of squares, in which nothing cancels. Rows are taken a tile at a time and stored by columns, so that each step is one
vector instruction for many rows: W_OᵀW_O of all of them is the product of the mask of the seen entries with the products of
the rows of W with themselves, and the small matrices are inverted side by side. Symmetric matrices are kept as their lower
halves, row by row: entry (a, b) at a(a + 1)/2 + b.
"""

import numpy as np

from lemmata.core.kernel import kernel

TILE = 128  # rows
LOGS = 4  # pivots whose product is sure to be a number, so that one logarithm serves them all


def products(loadings):
    """Give the lower halves of wwᵀ for the rows w of a matrix (d, k), as columns: (k(k + 1)/2, d)."""
    rows, columns = np.tril_indices(loadings.shape[1])
    return np.ascontiguousarray((loadings[:, rows] * loadings[:, columns]).T)


@kernel
def invert(A, S, k, logs, product):
    """Write the inverses of positive definite matrices, one a column of A, which is lost, and their log-determinants."""
    T = A.shape[1]
    logs[:] = 0.0
    product[:] = 1.0
    for i in range(k):  # Cholesky's factors, in place; the diagonal holds the inverse of the root
        row = i * (i + 1) // 2
        for j in range(i + 1):
            other = j * (j + 1) // 2
            for s in range(j):
                for t in range(T):
                    A[row + j, t] -= A[row + s, t] * A[other + s, t]
            if j < i:
                for t in range(T):
                    A[row + j, t] *= A[other + j, t]
            else:
                for t in range(T):
                    product[t] *= A[row + i, t]
                    A[row + i, t] = 1.0 / np.sqrt(A[row + i, t])
        if i % LOGS == LOGS - 1 or i == k - 1:
            for t in range(T):
                logs[t] += np.log(product[t])
                product[t] = 1.0
    for i in range(k):  # their inverses, in place
        row = i * (i + 1) // 2
        for j in range(i):
            for t in range(T):
                product[t] = 0.0
            for s in range(j, i):
                inner = s * (s + 1) // 2 + j
                for t in range(T):
                    product[t] -= A[row + s, t] * A[inner, t]
            for t in range(T):
                A[row + j, t] = product[t] * A[row + i, t]
    for i in range(k):
        for j in range(i + 1):
            at = i * (i + 1) // 2 + j
            for t in range(T):
                S[at, t] = 0.0
            for s in range(i, k):
                row = s * (s + 1) // 2
                for t in range(T):
                    S[at, t] += A[row + i, t] * A[row + j, t]


@kernel
def lay_out(X, start, mean, r, mask):
    """Write rows by columns: offsets from the mean, 0 in holes and behind the last row, and which entries are seen."""
    n, d = min(r.shape[1], X.shape[0] - start), X.shape[1]
    for t in range(r.shape[1]):
        for j in range(d):
            x = np.float64(X[start + t, j]) if t < n else np.nan
            seen = not np.isnan(x)
            r[j, t] = x - mean[j] if seen else 0.0
            mask[j, t] = 1.0 if seen else 0.0
    return n


@kernel
def posterior_of_tile(W, outers, noise, r, mask, A, S, along, m, value, work):
    """Write m, S and log p(x_O) for the rows of a tile, and leave r − W_O m in place of r."""
    k, T = m.shape
    np.dot(outers, mask, A)
    np.dot(W.T, r, along)
    for e in range(A.shape[0]):
        for t in range(T):
            A[e, t] /= noise
    for a in range(k):
        for t in range(T):
            A[a * (a + 1) // 2 + a, t] += 1.0
    invert(A, S, k, value, work)
    for a in range(k):
        for t in range(T):
            m[a, t] = 0.0
        for b in range(k):
            at = a * (a + 1) // 2 + b if b <= a else b * (b + 1) // 2 + a
            for t in range(T):
                m[a, t] += S[at, t] * along[b, t]
        for t in range(T):
            m[a, t] /= noise
            value[t] += m[a, t] * m[a, t]
    constant = np.log(2.0 * np.pi * noise)
    for j in range(r.shape[0]):
        for a in range(k):
            w = W[j, a]
            for t in range(T):
                r[j, t] -= w * m[a, t]
        for t in range(T):
            r[j, t] *= mask[j, t]
            value[t] += r[j, t] * r[j, t] / noise + mask[j, t] * constant
    for t in range(T):
        value[t] *= -0.5


@kernel
def room(d, k):
    """Make room for a tile: r, mask, A, S, along, m, value and work, as `posterior_of_tile` takes them."""
    p = k * (k + 1) // 2
    return (
        np.empty((d, TILE)),
        np.empty((d, TILE)),
        np.empty((p, TILE)),
        np.empty((p, TILE)),
        np.empty((k, TILE)),
        np.empty((k, TILE)),
        np.empty(TILE),
        np.empty(TILE),
    )


@kernel
def expectation(X, weight, mean, W, outers, noise, spread, second, slope, misfit):
    """Add the statistics of a block; return its log-likelihood and the weight of its seen entries.

    Sums for column j go over the rows that show it.

    Parameters
    ----------
    spread : (d, k(k + 1)/2), lower halves of Σ S.
    second : (d, (k + 1)(k + 2)/2), lower halves of Σ m̃m̃ᵀ, m̃ = (m, 1).
    slope : (d, k + 1), Σ (x − μ − w·m) m̃.
    misfit : (d,), Σ (x − μ − w·m)².
    """
    d, k = W.shape
    r, mask, A, S, along, m, value, work = room(d, k)
    moments, tilde = np.empty((second.shape[1], TILE)), np.empty((k + 1, TILE))
    total, seen = 0.0, 0.0
    for start in range(0, len(X), TILE):
        n = lay_out(X, start, mean, r, mask)
        posterior_of_tile(W, outers, noise, r, mask, A, S, along, m, value, work)
        tilde[:k] = m
        tilde[k] = 1.0
        for t in range(n):
            s = 1.0 if weight is None else weight[start + t]
            work[t] = s
            total += s * value[t]
        work[n:] = 0.0
        for a in range(k + 1):
            for b in range(a + 1):
                for t in range(TILE):
                    moments[a * (a + 1) // 2 + b, t] = work[t] * tilde[a, t] * tilde[b, t]
        for e in range(S.shape[0]):
            for t in range(TILE):
                S[e, t] *= work[t]
        for j in range(d):
            for t in range(TILE):
                misfit[j] += work[t] * r[j, t] * r[j, t]
                r[j, t] *= work[t]
                seen += work[t] * mask[j, t]
        spread += np.dot(mask, S.T)
        second += np.dot(mask, moments.T)
        slope += np.dot(r, tilde.T)
    return total, seen


@kernel
def posteriors(X, mean, W, outers, noise, scores, covariances, density):
    """Write the posterior mean of z of each row, its covariance if there is room for it, and the log-density of the row."""
    d, k = W.shape
    r, mask, A, S, along, m, value, work = room(d, k)
    for start in range(0, len(X), TILE):
        n = lay_out(X, start, mean, r, mask)
        posterior_of_tile(W, outers, noise, r, mask, A, S, along, m, value, work)
        for t in range(n):
            density[start + t] = value[t]
            for a in range(k):
                scores[start + t, a] = m[a, t]
                for b in range(a + 1 if len(covariances) else 0):
                    covariances[start + t, a, b] = S[a * (a + 1) // 2 + b, t]
                    covariances[start + t, b, a] = S[a * (a + 1) // 2 + b, t]


@kernel
def fill(X, mean, W, outers, noise, out, variance):
    """Write the rows of a block with the mean of each hole given the seen entries, and the variance of that."""
    d, k = W.shape
    r, mask, A, S, along, m, value, work = room(d, k)
    for start in range(0, len(X), TILE):
        n = lay_out(X, start, mean, r, mask)
        posterior_of_tile(W, outers, noise, r, mask, A, S, along, m, value, work)
        for t in range(n):
            i = start + t
            for j in range(d):
                out[i, j] = X[i, j]
                variance[i, j] = 0.0
                if mask[j, t] == 0.0:
                    out[i, j] = mean[j]
                    variance[i, j] = noise
                    for a in range(k):
                        out[i, j] += W[j, a] * m[a, t]
                        for b in range(a + 1):
                            at = a * (a + 1) // 2 + b
                            variance[i, j] += (2.0 if b < a else 1.0) * outers[at, j] * S[at, t]
