"""Principal components, against scikit-learn and scikit-learn-intelex; probabilistic PCA with holes, against EM in NumPy.

The objective of PCA is the share of the variance that the directions keep, computed from the rows. scikit-learn's randomized
solver stops after a fixed number of products and keeps slightly less; ours go on until the residuals vanish. Wide sparse rows
are drawn at random, the hardest case: the eigenvalues lie close together.

The peers of probabilistic PCA are EM as one writes it in NumPy: with the exact posterior of every row, from products with the
mask of the seen entries and batched inverses; and in the way of R's pcaMethods, which fills the holes and goes on. All stop
when a step changes the mean log-density of a row by no more than 1e-8; ours leaps.
"""

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA as PeerPCA

from bench.harness import Row
from lemmata.decomposition import PCA, ProbabilisticPCA

TOL = 1e-8  # change of the mean log-density of a row at which EM stops, for all


def rows(n, d, rank):
    """Make rows of falling variances in `rank` directions, with noise."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((n, rank)) * np.geomspace(10, 1, rank)
    return factors @ rng.standard_normal((rank, d)) / np.sqrt(rank) + rng.standard_normal((n, d)) + rng.standard_normal(d)


def sparse_rows(n, d, share):
    """Draw places of entries at random; few coincide, and are added."""
    rng = np.random.default_rng(0)
    size = int(n * d * share)
    return sp.csr_matrix((rng.random(size), (rng.integers(n, size=size), rng.integers(d, size=size))), (n, d))


def fit(cls, k, X, **options):
    return cls(k, **options).fit(X)


def intel(k, X):
    from sklearnex.decomposition import PCA as IntelPCA

    return IntelPCA(k).fit(X)


def kept(X, model):
    """Share of the variance that the directions keep."""
    Q = np.asarray(model.components_)
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij->", X, X)
    z = X @ Q.T - Q @ mean
    return float((z**2).sum() / (squares - X.shape[0] * mean @ mean))


def pierced():
    X = rows(20_000, 30, 5)
    return np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)


def start(X, k=5):
    """Give the mean and random loadings to start from."""
    return np.nanmean(X, axis=0), np.random.default_rng(2).standard_normal((X.shape[1], k)), 1.0


def posterior(X, mean, W, noise):
    """Posterior of z of each row with holes, all rows at once, and the mean log-density."""
    (n, d), k, seen = X.shape, W.shape[1], ~np.isnan(X)
    away = np.where(seen, X - mean, 0.0)
    precision = np.eye(k) + (seen.astype(float) @ (W[:, :, None] * W[:, None, :]).reshape(d, k * k)).reshape(n, k, k) / noise
    spread = np.linalg.inv(precision)
    z = np.einsum("nab,nb->na", spread, away @ W) / noise
    squares = (np.where(seen, away - z @ W.T, 0.0) ** 2).sum() / noise + (z**2).sum() + np.linalg.slogdet(precision)[1].sum()
    return z, spread, -0.5 * (squares + seen.sum() * np.log(2 * np.pi * noise)) / n


def exact_em(X, k=5):
    """Take plain EM steps with the exact posterior, until a step changes the mean log-density by no more than TOL."""
    (n, d), (mean, W, noise), before = X.shape, start(X, k), -np.inf
    seen = ~np.isnan(X)
    mask, filled = seen.astype(float), np.where(seen, X, 0.0)
    while True:
        z, spread, value = posterior(X, mean, W, noise)
        if abs(value - before) <= TOL:
            return mean, W, noise
        before = value
        z = np.concatenate([z, np.ones((n, 1))], axis=1)
        moments = z[:, :, None] * z[:, None, :]
        moments[:, :k, :k] += spread
        second = (mask.T @ moments.reshape(n, -1)).reshape(d, k + 1, k + 1)
        both = np.linalg.solve(second, (filled.T @ z)[:, :, None])[:, :, 0]
        W, mean = both[:, :k], both[:, k]
        hidden = np.einsum("nab,da,db,nd->", spread, W, W, mask, optimize=True)
        noise = ((np.where(seen, X - mean - z[:, :k] @ W.T, 0.0) ** 2).sum() + hidden) / mask.sum()


def filling_em(X, k=5):
    """Take steps in the way of R's pcaMethods: holes are filled by the last reconstruction, and add their share of noise.

    The mean is that of the filled table. It stops by the same rule, applied to its own bound of the log-density.
    """
    n, d = X.shape
    holes = np.isnan(X)
    missing = holes.sum()
    mean, W, noise = start(X, k)
    filled, before = np.where(holes, mean, X), -np.inf
    z = None
    while True:
        spread = np.linalg.inv(np.eye(k) + W.T @ W / noise)
        if z is not None:
            filled[holes] = (z @ W.T + mean)[holes]
            mean = filled.mean(axis=0)
        away = filled - mean
        z = away @ W @ spread / noise
        total = z.T @ z
        W = away.T @ z @ np.linalg.inv(total + n * spread)
        old = noise
        noise = (((away - z @ W.T) ** 2).sum() + n * np.trace(W.T @ W @ spread) + missing * old) / (n * d)
        value = -0.5 * (n * (d * np.log(noise) - np.linalg.slogdet(spread)[1] + np.trace(spread)) + np.trace(total)) / n
        value += 0.5 * missing * np.log(old) / n
        if abs(value - before) <= TOL:
            return mean, W, noise
        before = value


def ours(X, k=5):
    return ProbabilisticPCA(k, tol=TOL).fit(X)


def density(X, fitted):
    """Mean log-density of the seen entries of a row."""
    if not isinstance(fitted, tuple):
        fitted = fitted.mean_, fitted.components_.T, fitted.noise_variance_
    return posterior(X, *fitted)[2]


def row(name, make, k, bars, *, repeats=5, agree=1e-6, **options):
    peers = {"scikit-learn": partial(fit, PeerPCA, k, **options)}
    if "intelex" in bars:
        peers["intelex"] = partial(intel, k)
    return Row(name, make, partial(fit, PCA, k), peers, kept, bars, agree, repeats)


BARS = {"scikit-learn": 1.5, "intelex": 1.0}
ROWS = [
    row("PCA 1,000,000 × 50 → 10", partial(rows, 1_000_000, 50, 50), 10, BARS),
    row("PCA 20,000 × 2,000 → 50", partial(rows, 20_000, 2_000, 100), 50, BARS, agree=1e-4, repeats=3),
    row(
        "PCA sparse 100,000 × 20,000, 0.1 % → 50",
        partial(sparse_rows, 100_000, 20_000, 1e-3),
        50,
        {"scikit-learn": 1.5},
        repeats=1,
        svd_solver="arpack",
    ),
    Row(
        "PCA sparse 100,000 × 50,000, 0.1 % → 20, memory",
        partial(sparse_rows, 100_000, 50_000, 1e-3),
        partial(fit, PCA, 20),
        {},
        kept,
        repeats=1,
    ),
    Row(
        "ProbabilisticPCA 20,000 × 30 → 5, 20 % NaN",
        pierced,
        ours,
        {"exact EM in NumPy": exact_em, "EM of pcaMethods in NumPy": filling_em},
        density,
        {"exact EM in NumPy": 10.0, "EM of pcaMethods in NumPy": 10.0},
        1e-6,
        2,
    ),
]
