"""The E-step on rows with holes, a row at a time, by SciPy's densities and the textbook's conditional moments."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def conditional(row, mean, covariance):
    """Mean and covariance of a whole row given its seen entries, zero variance where seen."""
    o, m = ~np.isnan(row), np.isnan(row)
    filled, rest = mean.copy(), np.zeros_like(covariance)
    filled[o] = row[o]
    if o.any():
        gain = covariance[np.ix_(m, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
        filled[m] = mean[m] + gain @ (row[o] - mean[o])
        rest[np.ix_(m, m)] = covariance[np.ix_(m, m)] - gain @ covariance[np.ix_(o, m)]
    else:
        rest = covariance.copy()
    return filled, rest


def log_joint(row, weights, means, covariances):
    """Logarithm of the weight times the density of the seen entries, for each component."""
    o = ~np.isnan(row)
    if not o.any():
        return np.log(weights)
    pairs = zip(weights, means, covariances, strict=True)
    return np.array([np.log(w) + multivariate_normal(m[o], c[np.ix_(o, o)]).logpdf(row[o]) for w, m, c in pairs])


def expectation(X, weight, weights, means, covariances):
    """Log-likelihood, posterior, weights of the components, first and second moments about the means."""
    k, d = means.shape
    value, posterior = 0.0, np.zeros((len(X), k))
    counts, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    for i, row in enumerate(X):
        logs = log_joint(row, weights, means, covariances)
        value += weight[i] * logsumexp(logs)
        posterior[i] = np.exp(logs - logsumexp(logs))
        for j in range(k):
            filled, rest = conditional(row, means[j], covariances[j])
            share, z = weight[i] * posterior[i, j], filled - means[j]
            counts[j] += share
            first[j] += share * z
            second[j] += share * (np.outer(z, z) + rest)
    return value, posterior, counts, first, second
