"""Slow twins of the Gaussian class models, written for reading."""

import numpy as np
from scipy.special import logsumexp


def drawn(n=300, d=4, k=3, seed=0, share=0.0, offset=5.0):
    """Draw rows of k Gaussian classes, of different covariances and sizes, with holes, and integer weights."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    factors = np.eye(d) + 0.4 * rng.normal(size=(k, d, d))
    X = np.einsum("nij,nj->ni", factors[y], rng.normal(size=(n, d))) + 2 * rng.normal(size=(k, d))[y] + offset
    X *= np.logspace(-1, 1, d)
    X[rng.random(X.shape) < share] = np.nan
    return X, y, rng.integers(0, 4, n)


def likeliest(X, y, weight, structure):
    """Give the means and covariance matrices of maximum likelihood of complete rows, row by row."""
    k, d = int(y.max()) + 1, X.shape[1]
    counts, means, scatter = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    for x, c, w in zip(X, y, weight, strict=True):
        counts[c] += w
        means[c] += w * x
    means /= counts[:, None]
    for x, c, w in zip(X, y, weight, strict=True):
        scatter[c] += w * np.outer(x - means[c], x - means[c])
    if structure in ("tied", "tied-diag"):
        matrices = np.repeat(scatter.sum(axis=0)[None], k, axis=0) / counts.sum()
    else:
        matrices = scatter / counts[:, None, None]
    if structure in ("diag", "tied-diag"):
        matrices = matrices * np.eye(d)
    if structure == "spherical":
        matrices = np.array([np.trace(m) / d * np.eye(d) for m in matrices])
    return counts, means, matrices


def log_normal(x, mean, matrix):
    """Give log N(x|mean, matrix) by elimination, in units of the standard deviations: SciPy's eigenvalues lose digits."""
    unit = np.sqrt(np.diagonal(matrix))
    z, correlation = (x - mean) / unit, matrix / np.outer(unit, unit)
    squared = z @ np.linalg.solve(correlation, z)
    return -0.5 * (squared + np.linalg.slogdet(correlation)[1] + len(x) * np.log(2 * np.pi)) - np.log(unit).sum()


def joint(X, priors, means, matrices):
    """Give log p(x, y), with the rows and columns of what is missing dropped, row by row."""
    out = np.empty((len(X), len(priors)))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        for c, (prior, mean, matrix) in enumerate(zip(priors, means, matrices, strict=True)):
            out[i, c] = np.log(prior) + (log_normal(x[o], mean[o], matrix[np.ix_(o, o)]) if o.any() else 0.0)
    return out


def log_posterior(X, priors, means, matrices):
    """Give log P(y|x) by Bayes' rule."""
    logs = joint(X, priors, means, matrices)
    return logs - logsumexp(logs, axis=1, keepdims=True)
