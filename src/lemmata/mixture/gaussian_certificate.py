"""The checks of a Gaussian mixture: the exact log-likelihood and the EM map, by dense linear algebra.

By Fisher's identity the gradient of the log-likelihood at θ is that of Q(·; θ), so θ is stationary exactly where the EM map
leaves it. The checker evaluates that map from the stored parameters by another way than the kernels: triangular systems with
the Cholesky factor of each covariance, SciPy's log-sum-exp, and moments about the means given. Means are compared in units of
the standard deviations of their components, so that an offset of the table hides nothing, and covariances relative to
themselves. This is a local statement: the likelihood has many stationary points and, but for the floor, no maximum.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from lemmata.core.blocks import Largest
from lemmata.core.certificate import SABOTAGE, SAME_LIMIT, TINY, Certificate, Check, equi, length, same, simplex
from lemmata.mixture.gaussian import as_matrices, of_kind
from lemmata.mixture.gaussian_kernels import posterior_block

STILL = 1e-7  # probabilities that move by no more stand still: where components coincide, nothing depends on their weights
ROUNDED = 1e-5  # the most that ever counts as rounding: a hundredth of the limit


def bayes(X, weights, means, lowers):
    """Posterior of each row and its log-density, from Cholesky factors (k, d, d)."""
    d = X.shape[1]
    logs = np.empty((len(X), len(weights)))
    for k, (mean, lower) in enumerate(zip(means, lowers, strict=True)):
        white = solve_triangular(lower, (X - mean).T, lower=True, check_finite=False)
        logs[:, k] = -0.5 * (white**2).sum(axis=0) - np.log(np.diagonal(lower)).sum() - 0.5 * d * np.log(2 * np.pi)
    logs += np.log(weights, where=weights > 0, out=np.full(len(weights), -np.inf))
    density = logsumexp(logs, axis=1)
    return np.exp(logs - density[:, None]), density


def map_block(X, weight, weights, means, lowers):
    """Log-likelihood of a block, weights of the components in it and moments about their means."""
    X = X.astype(float)
    posterior, density = bayes(X, weights, means, lowers)
    if weight is not None:
        posterior, density = posterior * weight[:, None], density * weight
    first, second = [], []
    for k, mean in enumerate(means):
        z = X - mean
        first.append(posterior[:, k] @ z)
        second.append((posterior[:, k, None] * z).T @ z)
    return float(density.sum()), posterior.sum(axis=0), np.stack(first), np.stack(second)


def disagreement_block(X, weight, weights, means, lowers, components):
    """Largest difference of the kernel's posterior from that by Bayes' rule."""
    difference = posterior_block(X, weight, components)[0] - bayes(X.astype(float), weights, means, lowers)[0]
    return Largest(float(np.abs(difference).max()))


class Map:
    """The EM map on a table, in whatever kind of covariance, by dense algebra."""

    def __init__(self, blocks, kind, floor):
        self.blocks, self.kind, self.floor = blocks, kind, floor

    def lowers(self, means, covariances):
        """Factor the covariances of all components."""
        return np.linalg.cholesky(as_matrices(covariances, self.kind, *means.shape))

    def __call__(self, weights, means, covariances):
        """Return the parameters after one step, and the mean log-likelihood before it."""
        value, counts, first, second = self.blocks.reduce(map_block, weights, means, self.lowers(means, covariances))
        has = counts > 0
        divisor = np.where(has, counts, 1.0)
        shifts = first / divisor[:, None]
        matrices = second / divisor[:, None, None] - shifts[:, :, None] * shifts[:, None, :]
        matrices += self.floor * np.eye(means.shape[1])
        matrices[~has] = as_matrices(covariances, self.kind, *means.shape)[~has]
        new = counts / counts.sum()
        return (new, means + shifts, of_kind(matrices, new, self.kind)), value / counts.sum()


def certificate(blocks, kind, floor, weights, means, covariances, stored, components, subject):
    """Check stored parameters against a table.

    Parameters
    ----------
    stored : The mean log-likelihood that the fit reported.
    components : Function without arguments that gives the parameters as the kernels want them.
    """
    claim = "weights are probabilities, covariances symmetric with an inverse"
    fault = _fault(weights, covariances, kind)
    sound = Check("parameters", fault, SAME_LIMIT, "proof", claim)
    if not sound.holds:
        return Certificate(sound, subject=subject)
    step = Map(blocks, kind, floor)
    lowers = step.lowers(means, covariances)
    value = step(weights, means, covariances)[1]
    spectra = np.linalg.eigvalsh(as_matrices(covariances, kind, *means.shape))
    condition = float((spectra[:, -1] / spectra[:, 0]).max())

    def weight_residual(a):
        residual = a - step(a, means, covariances)[0][0]
        return np.where(np.abs(residual) > STILL, residual, 0.0)

    def mean_residual(a):
        residual = _whitened(lowers, a - step(weights, a, covariances)[0][1])
        return beyond_rounding(residual, 1.0 + np.abs(_whitened(lowers, a)).max())

    def relative(a):  # to the stored covariances, factor by factor
        matrices = as_matrices(a, kind, *means.shape)
        left = np.stack([solve_triangular(f, m, lower=True) for f, m in zip(lowers, matrices, strict=True)])
        return np.stack([solve_triangular(f, m.T, lower=True) for f, m in zip(lowers, left, strict=True)])

    def covariance_residual(a):
        return beyond_rounding(relative(a - step(weights, means, a)[0][2]), condition)

    def move_means(a, rng):
        """Move by 1 % of the means or of the standard deviations, whichever is less."""
        u = rng.standard_normal(a.shape)
        by = np.einsum("kij,kj->ki", lowers, u) / length(u) * np.sqrt(len(a))
        return a + SABOTAGE * min(1.0, length(a) / max(length(by), TINY)) * by

    def move_covariances(a, rng):
        """Move each by 1 % of itself, so that it keeps an inverse."""
        u = rng.standard_normal((len(means), means.shape[1], means.shape[1]))
        u = u + np.swapaxes(u, 1, 2)
        u /= np.sqrt((u**2).sum(axis=(1, 2), keepdims=True))
        if kind == "tied":
            u[:] = u[0]
        moved = lowers @ (np.eye(means.shape[1]) + SABOTAGE * u) @ np.swapaxes(lowers, 1, 2)
        return of_kind(moved, weights / weights.sum(), kind)

    posterior = blocks.reduce(disagreement_block, weights, means, lowers, components()).value
    return Certificate(
        sound,
        equi(weight_residual, weights, "weights", "an EM step leaves the weights where they are", move=simplex),
        equi(mean_residual, means, "means", "an EM step leaves the means where they are", move=move_means),
        equi(covariance_residual, covariances, "covariances", "an EM step leaves them as they are", move=move_covariances),
        same(stored, value, "log-likelihood", "the mean log-density of the rows", floor=1e-3),
        Check("posterior", posterior, SAME_LIMIT, "proof", "the E-step is Bayes' rule"),
        Check("floor", floor / float(spectra.min()), np.inf, "evidence", "share of reg_covar in the smallest variance"),
        subject=subject,
    )


def beyond_rounding(residual, scale):
    """Set to zero what is no more than a hundred roundings: where nothing depends on a parameter, no step is shorter."""
    return np.where(np.abs(residual) > min(100 * np.finfo(float).eps * scale, ROUNDED), residual, 0.0)


def _whitened(lowers, rows):
    """Divide the row of each component by its Cholesky factor."""
    return np.stack([solve_triangular(f, v, lower=True) for f, v in zip(lowers, rows, strict=True)])


def _fault(weights, covariances, kind):
    """Say how far weights are from probabilities and covariances from symmetric; infinite where they are of no use."""
    if not (np.isfinite(weights).all() and np.isfinite(covariances).all() and (weights >= 0).all()):
        return np.inf
    fault = abs(float(weights.sum()) - 1.0)
    if kind in ("diag", "spherical"):
        return fault if (covariances > 0).all() else np.inf
    turned = np.swapaxes(covariances, -1, -2)
    try:
        np.linalg.cholesky((covariances + turned) / 2)
    except np.linalg.LinAlgError:
        return np.inf
    return max(fault, length(covariances - turned) / max(length(covariances), TINY))
