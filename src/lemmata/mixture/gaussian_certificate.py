"""The checks of a Gaussian mixture: the exact log-likelihood and the EM map, by dense linear algebra.

By Fisher's identity the gradient of the log-likelihood at θ is that of Q(·; θ), so θ is stationary exactly where the EM map
leaves it. The checker evaluates that map from the stored parameters by another way than the kernels: triangular systems with
the Cholesky factor of each covariance, SciPy's log-sum-exp, and moments about the means given. Means are compared in units of
the standard deviations of their components, so that an offset of the table hides nothing, and covariances relative to
themselves. Rows with holes enter by the regression of all columns on the seen ones, pattern by pattern.

Stationary is not yet a maximum. Where components coincide, every derivative along which they part is zero by symmetry, and the
point is as a rule a saddle; so they are nudged apart, and the EM map must not carry them further. All this is local: the
likelihood has many stationary points and, but for the floor, no maximum.
"""

from itertools import combinations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from lemmata.core.blocks import Largest
from lemmata.core.certificate import SABOTAGE, SAME_LIMIT, TINY, Certificate, Check, equi, length, same, simplex
from lemmata.mixture.gaussian import as_matrices, of_kind, posterior_block

STILL = 1e-10  # probabilities that move by no more stand still
TWINS = 1e-3  # components closer than this, in their own standard deviations, coincide
NUDGES = 0.01, 0.1, 0.5  # of a standard deviation
NEGLIGIBLE = 1e-9  # weights of components below: too few rows to say anything of their means and covariances
NUDGED = 50  # steps of the EM map after each
PARTED = 1.5  # times the nudge: more is drifting apart
ROUNDED = 1e-7  # the most that ever counts as rounding


def log_densities(X, means, lowers):
    """Log-density of each row under each component, from Cholesky factors (k, d, d)."""
    d = X.shape[1]
    logs = np.empty((len(X), len(means)))
    for k, (mean, lower) in enumerate(zip(means, lowers, strict=True)):
        white = solve_triangular(lower, (X - mean).T, lower=True, check_finite=False)
        logs[:, k] = -0.5 * (white**2).sum(axis=0) - np.log(np.diagonal(lower)).sum() - 0.5 * d * np.log(2 * np.pi)
    return logs


def bayes(X, weights, means, lowers):
    """Posterior of each row and its log-density."""
    logs = log_densities(X, means, lowers)
    logs += np.log(weights, where=weights > 0, out=np.full(len(weights), -np.inf))
    density = logsumexp(logs, axis=1)
    return np.exp(logs - density[:, None]), density


def patterns(X):
    """Give the rows (as a mask) and the seen columns (as a mask) of each pattern of holes."""
    holes = np.isnan(X)
    if not holes.any():
        return [(slice(None), ~holes[0])]
    kinds, of = np.unique(holes, axis=0, return_inverse=True)
    return [(of.ravel() == i, ~kind) for i, kind in enumerate(kinds)]


def seen_part(means, covariances, seen):
    """Give means and Cholesky factors of the seen columns."""
    return means[:, seen], np.linalg.cholesky(covariances[:, seen][:, :, seen])


def map_block(X, weight, weights, means, covariances):
    """Log-likelihood of a block, weights of the components in it and expected moments about their means."""
    X, (k, d) = X.astype(float), means.shape
    value, counts, first, second, sights = 0.0, np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), np.zeros((k, d))
    for rows, seen in patterns(X):
        part, share = X[rows][:, seen], None if weight is None else weight[rows]
        posterior, density = bayes(part, weights, *seen_part(means, covariances, seen))
        if share is not None:
            posterior, density = posterior * share[:, None], density * share
        value += float(density.sum())
        counts += posterior.sum(axis=0)
        add_moments(part, seen, posterior, means, covariances, first, second, sights)
    return value, counts, first, second, sights


def add_moments(part, seen, shares, means, covariances, first, second, sights):
    """Add the expected moments about the means of rows of which these columns are seen, by their shares in the components."""
    sights += np.outer(shares.sum(axis=0), seen)
    for j in range(len(means)):
        # Regression of all columns on the seen ones: these answer for themselves, the others keep a rest.
        slope = np.linalg.solve(covariances[j][np.ix_(seen, seen)], covariances[j][seen]).T
        rest = covariances[j] - slope @ covariances[j][seen]
        z = (part - means[j, seen]) @ slope.T
        first[j] += shares[:, j] @ z
        second[j] += (shares[:, j, None] * z).T @ z + shares[:, j].sum() * rest * np.outer(~seen, ~seen)


def disagreement_block(X, weight, weights, means, covariances, components):
    """Largest difference of the kernel's posterior from that by Bayes' rule."""
    ours, worst = posterior_block(X, weight, components)[0], 0.0
    for rows, seen in patterns(X):
        theirs = bayes(X[rows][:, seen].astype(float), weights, *seen_part(means, covariances, seen))[0]
        worst = max(worst, float(np.abs(ours[rows] - theirs).max()))
    return Largest(worst)


class Map:
    """The EM map on a table, in whatever kind of covariance, by dense algebra."""

    def __init__(self, blocks, kind, floor):
        self.blocks, self.kind, self.floor = blocks, kind, floor

    def __call__(self, weights, means, covariances):
        """Return the parameters after one step, and the mean log-likelihood before it."""
        before = as_matrices(covariances, self.kind, *means.shape)
        value, *moments = self.blocks.reduce(map_block, weights, means, before)
        new, means, matrices = from_moments(*moments, means, before, self.floor)
        return (new, means, of_kind(matrices, new, self.kind)), value / moments[0].sum()


def from_moments(counts, first, second, sights, means, before, floor):
    """Give weights, means and covariance matrices from counts and moments about the old means; what is seen gets the floor."""
    has = counts > 0
    divisor = np.where(has, counts, 1.0)
    shifts = first / divisor[:, None]
    matrices = second / divisor[:, None, None] - shifts[:, :, None] * shifts[:, None, :]
    matrices += floor * as_matrices(sights / divisor[:, None], "diag", *means.shape)
    matrices[~has] = before[~has]
    return counts / counts.sum(), means + shifts, matrices


def certificate(blocks, kind, floor, weights, means, covariances, stored, components, subject):
    """Check stored parameters against a table.

    Parameters
    ----------
    stored : The mean log-likelihood that the fit reported.
    components : Function without arguments that gives the parameters as the kernels want them.
    """
    sound = soundness(weights, covariances, kind)
    if not sound.holds:
        return Certificate(sound, subject=subject)
    step = Map(blocks, kind, floor)
    matrices = as_matrices(covariances, kind, *means.shape)
    lowers, spectra = np.linalg.cholesky(matrices), np.linalg.eigvalsh(matrices)
    value = step(weights, means, covariances)[1]

    pairs = twins(weights, means, lowers)
    first = np.arange(len(weights))  # of the components that coincide: the density knows only the sum of their weights
    for a, b in pairs:
        first[b] = min(first[a], first[b])

    def weight_residual(a):
        residual = np.bincount(first, a - step(a, means, covariances)[0][0])
        return np.where(np.abs(residual) > STILL, residual, 0.0)

    shares = equi(weight_residual, weights, "weights", "an EM step leaves the weights where they are", move=simplex)
    parting = [Check("split", _parting(step, weights, means, lowers, pairs), PARTED, "local", SPLIT)] if pairs else []
    posterior = blocks.reduce(disagreement_block, weights, means, matrices, components()).value
    return Certificate(
        sound,
        *([] if len(weights) == 1 else [shares]),
        *stationary(lambda m, c: step(weights, m, c)[0][1:], kind, weights, means, covariances),
        *parting,
        same(stored, value, "log-likelihood", "the mean log-density of the rows", floor=1e-3),
        Check("posterior", posterior, SAME_LIMIT, "proof", "the E-step is Bayes' rule"),
        Check("floor", floor / float(spectra.min()), np.inf, "evidence", "share of reg_covar in the smallest variance"),
        subject=subject,
    )


def stationary(step, kind, weights, means, covariances, names=("means", "covariances")):
    """Check that a step, a function of means and covariances, leaves both where they are."""
    matrices = as_matrices(covariances, kind, *means.shape)
    lowers, spectra = np.linalg.cholesky(matrices), np.linalg.eigvalsh(matrices)
    condition = float((spectra[:, -1] / spectra[:, 0]).max())

    alive = weights > NEGLIGIBLE

    def mean_residual(a):
        residual = _whitened(lowers, a - step(a, covariances)[0])[alive]
        return beyond_rounding(residual, 1.0 + np.abs(_whitened(lowers, a)).max())

    def relative(a):  # to the stored covariances, factor by factor
        matrices = as_matrices(a, kind, *means.shape)
        left = np.stack([solve_triangular(f, m, lower=True) for f, m in zip(lowers, matrices, strict=True)])
        return np.stack([solve_triangular(f, m.T, lower=True) for f, m in zip(lowers, left, strict=True)])

    def covariance_residual(a):
        return beyond_rounding(relative(a - step(means, a)[1])[alive], condition)

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

    return [
        equi(mean_residual, means, names[0], "an EM step leaves the means where they are", move=move_means),
        equi(covariance_residual, covariances, names[1], "an EM step leaves them as they are", move=move_covariances),
    ]


SPLIT = "components that coincide do not drift apart when nudged"


def twins(weights, means, lowers):
    """List the pairs of components that coincide."""
    alive = np.flatnonzero(weights > 0)
    return [(a, b) for a, b in combinations(alive, 2) if _apart(means[a], lowers[a], means[b], lowers[b]) < TWINS]


def _apart(mean, lower, other_mean, other_lower):
    """Distance of a Gaussian from another one, in units of the first."""
    shift = solve_triangular(lower, other_mean - mean, lower=True)
    ratio = solve_triangular(lower, other_lower, lower=True)
    return length(shift) + length(ratio @ ratio.T - np.eye(len(mean)))


def _parting(step, weights, means, lowers, pairs):
    """Nudge components that coincide apart; return how many times farther the EM map takes them."""
    rng, (k, d) = np.random.default_rng(0), means.shape

    def apart(means, covariances):
        factors = np.linalg.cholesky(as_matrices(covariances, step.kind, k, d))
        return max(_apart(means[a], factors[a], means[b], factors[b]) for a, b in pairs)

    sign = np.zeros(k)
    for a, b in pairs:
        sign[a], sign[b] = sign[a] or 1.0, sign[b] or -1.0
    u, v = rng.standard_normal(d), rng.standard_normal((d, d))
    shift, stretch = lowers @ (u / length(u)), (v + v.T) / length(v)

    def carried(size, bend):
        factors = lowers @ (np.eye(d) + 0.5 * bend * size * sign[:, None, None] * stretch)
        moved = factors @ np.swapaxes(factors, 1, 2)
        state = weights, means + size * sign[:, None] * shift, of_kind(moved, weights, step.kind)
        before = apart(*state[1:])
        for _ in range(NUDGED):
            state = step(*state)[0]
        return apart(*state[1:]) / before

    return max(carried(size, bend) for size in NUDGES for bend in (0.0, 1.0))  # the means alone, and both


def beyond_rounding(residual, scale):
    """Set to zero what is no more than a hundred roundings: where nothing depends on a parameter, no step is shorter."""
    return np.where(np.abs(residual) > min(100 * np.finfo(float).eps * scale, ROUNDED), residual, 0.0)


def _whitened(lowers, rows):
    """Divide the row of each component by its Cholesky factor."""
    return np.stack([solve_triangular(f, v, lower=True) for f, v in zip(lowers, rows, strict=True)])


def soundness(weights, covariances, kind):
    """Check that parameters are such as a Gaussian mixture has."""
    claim = "weights are probabilities, covariances symmetric with an inverse"
    return Check("parameters", _fault(weights, covariances, kind), SAME_LIMIT, "proof", claim)


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
