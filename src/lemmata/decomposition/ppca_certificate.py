"""The checks of probabilistic PCA, by dense linear algebra.

Complete rows: the log-likelihood of the stored parameters is that of a Gaussian with covariance WWᵀ + σ²I, and the largest that
any parameters have follows from the eigenvalues of the covariance of the rows alone: a global proof, however z is turned. With
holes: the EM map, from the posterior of z in each row by LAPACK, must leave the parameters where they are. By Fisher's identity
that is a stationary point of the likelihood of what is seen; it is local.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.cluster.bounds import scatter_block
from lemmata.core.certificate import GAP_LIMIT, SAME_LIMIT, Certificate, Check, equi, same
from lemmata.core.data import WIDE
from lemmata.core.generative import same_entries
from lemmata.decomposition.spectrum import Scatter, mean_block, route, spectrum_of

EPS = np.finfo(float).eps
ROUNDINGS = 100  # that two ways to the same number may differ by
DENSITY = "mean log-density of the rows, recomputed"


def certificate(model, blocks, floor, holes):
    """Check the fitted attributes of a `ProbabilisticPCA` against the rows; `floor` gives the least noise variance."""
    mean, loadings, noise = (
        np.asarray(model.mean_, dtype=float),
        model.components_.T.astype(float),
        float(model.noise_variance_),
    )
    checks = (_with_holes if holes else _complete)(model, blocks, floor, mean, loadings, noise)
    return Certificate(*checks, subject=repr(model))


def _complete(model, blocks, floor, mean, loadings, noise):
    (d, k), (weight, sums, _) = loadings.shape, blocks.reduce(mean_block)
    if d <= WIDE:
        _, offsets, products = blocks.reduce(scatter_block, sums / weight)
        center = sums / weight + offsets / weight
        S = products / weight - np.outer(offsets, offsets) / weight**2
        values, total, kind = np.maximum(np.linalg.eigvalsh(S)[::-1], 0.0)[:k], float(np.trace(S)), "proof"
    else:
        S, center = _PerRow(Scatter(blocks)), sums / weight
        found = spectrum_of(blocks, k, route(blocks, k), np.random.default_rng(0))
        values, total, kind = found.values / weight, found.total / weight, "evidence"
    unit = np.sqrt(total / d) or 1.0  # everything is measured in it, so that squares of squares stay in range
    values, total, W, sigma = values / unit**2, total / unit**2, loadings / unit, noise / unit**2
    left, fixed = max(total - float(values.sum()), 0.0), model.noise_variance is not None
    best = (model.noise_variance if fixed else max(left / (d - k) * unit**2, floor(center, total * unit**2 / d))) / unit**2
    value = _log_density(S, unit, total, (center - mean) / unit, W, sigma)
    rounding = ROUNDINGS * EPS * total / sigma

    def residual(W):
        """Give what the equation SC⁻¹W = W leaves, with C⁻¹W = W(σ²I + WᵀW)⁻¹."""
        return S @ _divided(W, sigma) / unit**2 - W

    gap = _largest(values, left, d, best) - value
    checks = [
        Check("gap", gap, GAP_LIMIT * d + rounding, kind, "no parameters make a row more probable by more nats"),
        same_entries(mean, center, "mean", "the mean of the rows", unit + 1e7 * EPS * np.abs(center)),
        same(sigma, best, "noise", "the variance given" if fixed else "the mean variance left out", floor=rounding * sigma),
        same(model.lower_bound_, value - d * np.log(unit), "density", DENSITY, floor=1.0 + rounding / SAME_LIMIT),
    ]
    if W.any():
        checks.append(equi(residual, W, "loadings", "the likelihood is stationary in the loadings", kind=kind))
    return checks


class _PerRow:
    """The scatter of a table over its weight, as something to multiply with."""

    def __init__(self, scatter):
        self.scatter = scatter

    def __matmul__(self, V):
        return (self.scatter @ V) / self.scatter.weight


def _divided(W, noise):
    """Give C⁻¹W."""
    return cho_solve(cho_factor(W.T @ W + noise * np.eye(W.shape[1])), W.T).T


def _largest(values, left, d, noise):
    """Give the largest mean log-density with this noise variance: directions with less variance than noise are not used."""
    used = np.maximum(values, noise)
    return -0.5 * (
        d * np.log(2 * np.pi) + np.log(used).sum() + (values / used).sum() + (d - len(values)) * np.log(noise) + left / noise
    )


def _log_density(S, unit, total, away, W, noise):
    """Give the mean log-density of rows with covariance S, whose mean is so far from that of the model; the rest in units."""
    d, k = W.shape
    inner = W.T @ W + noise * np.eye(k)
    along, to = S @ (W / unit**2), W.T @ away
    explained = np.trace(np.linalg.solve(inner, W.T @ along)) + to @ np.linalg.solve(inner, to)
    squares = (total + away @ away - explained) / noise
    return -0.5 * (d * np.log(2 * np.pi) + np.linalg.slogdet(inner)[1] + (d - k) * np.log(noise) + squares)


def map_block(X, weight, mean, W, noise):
    """Weight, log-density and weight of the seen entries of a block, and what the regressions of columns on (z, 1) need."""
    (d, k), n, s = W.shape, len(X), np.ones(len(X)) if weight is None else weight
    seen = ~np.isnan(X)
    away = np.where(seen, X - mean, 0.0)
    precision = np.eye(k) + (seen @ (W[:, :, None] * W[:, None, :]).reshape(d, k * k)).reshape(n, k, k) / noise
    spread = np.linalg.inv(precision)
    z = np.einsum("nab,nb->na", spread, away @ W) / noise
    left = np.where(seen, away - z @ W.T, 0.0)
    squares = seen.sum(axis=1) * np.log(2 * np.pi * noise) + (left**2).sum(axis=1) / noise + (z**2).sum(axis=1)
    value = -0.5 * float(s @ (squares + np.linalg.slogdet(precision)[1]))
    z = np.column_stack([z, np.ones(n)])
    moments = z[:, :, None] * z[:, None, :]
    moments[:, :k, :k] += spread
    share = seen * s[:, None]
    second = (share.T @ moments.reshape(n, -1)).reshape(d, k + 1, k + 1)
    return float(s.sum()), value, float(share.sum()), second, (s[:, None] * away).T @ z, s @ away**2


def _with_holes(model, blocks, floor, mean, loadings, noise):
    k = loadings.shape[1]

    def mapped(mean, W, noise):
        """Take an EM step: the mean log-density before it, and the parameters after it."""
        total, value, entries, second, first, squares = blocks.reduce(map_block, mean, W, noise)
        change = np.linalg.solve(second, first[:, :, None])[:, :, 0]
        left = float((squares - (change * first).sum(axis=1)).sum()) / entries
        variance = max(left, floor(mean, float(squares.sum()) / entries)) if model.noise_variance is None else noise
        return value / total, mean + change[:, k], change[:, :k], variance

    value = mapped(mean, loadings, noise)[0]
    deviations = np.sqrt((loadings**2).sum(axis=1) + noise)

    def mean_residual(steps):
        """Give the EM step of the mean that many deviations, less one each, beside the mean: free of offsets of the table."""
        here = mean + (steps - 1.0) * deviations
        return (mapped(here, loadings, noise)[1] - here) / deviations

    def noise_residual(variance):
        return mapped(mean, loadings, float(np.abs(variance[0])))[3] - variance

    checks = [
        equi(mean_residual, np.ones(len(mean)), "mean", "an EM step leaves the mean where it is"),
        same(model.lower_bound_, value, "density", DENSITY, floor=1.0),
    ]
    if loadings.any():
        stationary = "an EM step leaves the loadings where they are"
        checks.append(equi(lambda W: mapped(mean, W, noise)[2] - W, loadings, "loadings", stationary))
    if model.noise_variance is None:
        checks.append(equi(noise_residual, [noise], "noise", "an EM step leaves the noise variance where it is"))
    else:
        checks.append(same(noise, model.noise_variance, "noise", "the variance given"))
    return checks
