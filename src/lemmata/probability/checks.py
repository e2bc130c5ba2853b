"""Certificates of distributions: density, distribution function, moments, gradient and draws must be those of one law.

The checker believes none of the formulas. On the line it integrates the density over its support, between quantiles: the mass
must be 1, the pieces must be the differences F(b) − F(a) of the distribution function, and the integrals of x − μ and (x − μ)²
must be 0 and the variance. A discrete law is summed exactly. A normal vector of up to three entries is integrated by the
trapezoidal rule in z, x = μ + Lz with LLᵀ = Σ, where it is exact to rounding for analytic densities; a Dirichlet vector of up
to three in the logits of broken sticks, stretched by sinh so that both ends decay doubly exponentially [1]. The gradient is
compared with central differences, the entropy with the mean of −log p over draws, within four standard errors (a right one is
refused once in 16 000 times), and the draws with F (on the line, by Kolmogorov's distance) or their mean with μ.

What cannot be seen: a density with an exponent near −1 at an end (a shape below about 0.1 at 0, below 0.4 at 1) has visible
mass nearer to this end than any number; such a law is refused although it is right.

[1] Takahasi & Mori, Publ. RIMS 9 (1974).
"""

import warnings
from itertools import pairwise

import numpy as np
from scipy.integrate import IntegrationWarning, quad
from scipy.special import digamma, expit, polygamma, xlogy

from lemmata.core.certificate import TINY, Certificate, Check, length
from lemmata.probability.distributions import Dirichlet, Mixture, MultivariateNormal

__all__ = ["check_distribution", "check_maximum_entropy"]

LIMIT = 1e-6  # of integrals, relative; the quadrature leaves a hundredth of it
EXACT = 1e-10  # of sums and identities
SLOPE = 1e-5  # of derivatives by differences
SIGMAS = 4.0
KOLMOGOROV = 2.3  # 2 exp(−2·2.3²) is 5e-5
LEVELS = np.array([1e-10, 1e-6, 1e-3, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1 - 1e-3, 1 - 1e-6, 1 - 1e-10])
STEP = 1e-5  # of a central difference, relative to the scale of the law
NARROW = 1e-9  # of a number: nearer to an end, or with a smaller scale, it has no neighbors for a difference
WIDEST = 10_000_000  # values of a discrete law that are summed


def check_distribution(distribution, n_draws=20_000, random_state=0):
    """Check a distribution's own statements against each other.

    Parameters
    ----------
    distribution : Any of `lemmata.probability.distributions`.
    n_draws : Draws for the entropy and the mean; 0 leaves these two checks (of the kind "evidence") out.
    random_state : Seed of the draws.

    Examples
    --------
    >>> from lemmata.probability.distributions import Normal
    >>> print(check_distribution(Normal(1, 2), n_draws=0))
    certificate holds (proof)
      check     value     limit  kind   claim
      mass      ... ≤ 1e-06  proof  the density integrates to 1
      mean      ... ≤ 1e-06  proof  the mean is that of the density, in standard deviations
      variance  ... ≤ 1e-06  proof  the variance is that of the density
      cdf       ... ≤ 1e-06  proof  the distribution function is the integral of the density
      quantile  ... ≤ 1e-10  proof  icdf is the inverse of cdf
      gradient  ... ≤ 1e-05  proof  the gradient is the derivative of the log density
    """
    if distribution.discrete:
        checks = _sums(distribution)
    elif not np.ndim(distribution.mean):
        checks = [*_integrals(distribution), _slopes(distribution)]
    else:
        checks = [*_volumes(distribution), _slopes(distribution)]
    if n_draws:
        checks += _draws(distribution, n_draws, random_state)
    return Certificate(*checks)


def _moments(mass, first, second):
    """Return the checks of three integrals: of the density, of (x − μ)/σ, and how far that of (x − μ)² is from the variance."""
    return [
        Check("mass", abs(mass - 1), LIMIT, "proof", "the density integrates to 1"),
        Check("mean", first, LIMIT, "proof", "the mean is that of the density, in standard deviations"),
        Check("variance", second, LIMIT, "proof", "the variance is that of the density"),
    ]


def _sums(law):
    low, high = law.support
    if high - low > WIDEST:
        raise ValueError(f"There are {high - low + 1} values, more than can be summed here.")
    k = np.arange(low, high + 1)
    log_p = law.logpdf(k)
    p, off = np.exp(log_p), (k - law.mean) / np.sqrt(law.var or 1.0)
    F, u = law.cdf(k), np.linspace(0, 1, 101)
    at = law.icdf(u)
    wrong = np.maximum(u - law.cdf(at), np.where(at > low, law.cdf(at - 1) - u, 0.0))
    return [
        *_moments(p.sum(), abs(p @ off), abs(p @ off**2 - (law.var > 0))),
        Check(
            "cdf", float(np.abs(np.cumsum(p) - F).max()), EXACT, "proof", "the distribution function is the sum of the density"
        ),
        Check("quantile", float(max(wrong.max(), 0.0)), EXACT, "proof", "icdf is the least value where cdf reaches u"),
        Check("surprise", abs(law.entropy() + xlogy(p, p).sum()), LIMIT, "proof", "the entropy is the sum of −p log p"),
    ]


def _integrals(law):
    """Integrate on the line: in (x − μ)/σ, or in log(x − low) where the support has a lower end, which may be a pole."""
    (low, high), mean, sd = law.support, law.mean, np.sqrt(law.var)
    parts = getattr(law, "components", ())  # of a mixture: a narrow part hides between the quantiles of the whole
    cuts = np.unique([each.icdf(LEVELS) for each in (law, *parts)])
    cuts = cuts[(cuts > low) & (cuts < high)]
    if np.isfinite(low):
        ends = np.concatenate([[-744.0], np.log(cuts - low), [np.log(high - low)]])

        def point(t):
            return low + np.exp(t), np.exp(t)
    else:
        ends = np.concatenate([[-np.inf], (cuts - mean) / sd, [(high - mean) / sd]])

        def point(t):
            return mean + sd * t, sd

    def integral(power, a, b):
        def f(t):
            x, width = point(t)
            density = law.pdf(x) * width
            return ((x - mean) / sd) ** power * density if 0 < density < np.inf else 0.0  # a pole is a point, and no mass

        return quad(f, a, b, epsabs=1e-10, epsrel=1e-8, limit=50)[0]

    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", IntegrationWarning)  # a bad integral shows in the checks
        pieces = np.array([[integral(power, a, b) for power in range(3)] for a, b in pairwise(ends)])
    total = pieces.sum(axis=0)
    F = law.cdf(np.concatenate([[low], cuts, [high]]))
    u = LEVELS[3:-3]
    at = law.icdf(u)
    rounding = 4 * np.finfo(float).eps * np.abs(at) * np.minimum(law.pdf(at), 1 / TINY)  # what rounding the quantile does to F
    missed = np.abs(law.cdf(at) - u) - rounding
    return [
        *_moments(total[0], abs(total[1]), abs(total[2] - 1)),
        Check("cdf", float(np.abs(np.diff(F) - pieces[:, 0]).max()), LIMIT, "proof", _CDF),
        Check("quantile", float(max(missed.max(), 0.0)), EXACT, "proof", "icdf is the inverse of cdf"),
    ]


_CDF = "the distribution function is the integral of the density"


def _volumes(law):
    """Integrate vectors of up to three entries; of a mixture of vectors, compare the density with that of its components."""
    if isinstance(law, Mixture):
        x = law.sample(100, 0)
        parts = sum(w * c.pdf(x) for w, c in zip(law.weights, law.components, strict=True))
        value = float(np.abs(law.pdf(x) / parts - 1).max())
        inner = [check for c in law.components for check in _volumes(c)]
        return [*inner, Check("density", value, EXACT, "proof", "the density is the weighted sum of those of the components")]
    if len(law.mean) > 3 or not isinstance(law, MultivariateNormal | Dirichlet):
        return []
    x, w = _normal_nodes(law) if isinstance(law, MultivariateNormal) else _simplex_nodes(law)
    density, sd = law.pdf(x), np.sqrt(law.var)
    mass = w * np.where(density < np.inf, density, 0.0)  # a node that was rounded to a pole
    off = (x - law.mean) / sd
    return _moments(mass.sum(), length(mass @ off), length((mass * off.T) @ off - law.cov / np.outer(sd, sd)))


def _normal_nodes(law):
    z = np.arange(-9, 9.25, 0.5)
    z = np.stack(np.meshgrid(*[z] * len(law.mean)), axis=-1).reshape(-1, len(law.mean))
    L = np.linalg.cholesky(law.cov)
    return law.mean + z @ L.T, np.full(len(z), 0.5 ** len(law.mean) * np.prod(np.diag(L)))


def _simplex_nodes(law):
    """Break a stick of length 1 at shares vₖ, each the logistic of c + s sinh t, whose first guess is a beta law's logit."""
    t = np.arange(-4.5, 4.525, 0.05)
    parts, weight, rest = [], np.ones(1), np.ones(1)
    for k in range(len(law.alpha) - 1):
        a, b = law.alpha[k], law.alpha[k + 1 :].sum()
        logit = digamma(a) - digamma(b) + np.sqrt(polygamma(1, a) + polygamma(1, b)) * np.sinh(t)
        width = 0.05 * np.sqrt(polygamma(1, a) + polygamma(1, b)) * np.cosh(t)
        v, left = expit(logit), expit(-logit)
        parts = [np.repeat(p, len(t)) for p in parts] + [np.outer(rest, v).ravel()]
        weight = np.outer(weight * rest, width * v * left).ravel()
        rest = np.outer(rest, left).ravel()
    return np.stack([*parts, rest], axis=-1), weight


def _slopes(law):
    """Compare the gradient with central differences along the axes (on the simplex: towards the last corner)."""
    if np.ndim(law.mean):
        x, ways = law.sample(20, 0), np.eye(len(law.mean))
        room = np.full(len(x), np.sqrt(law.var).min())
        if isinstance(law.components[0] if isinstance(law, Mixture) else law, Dirichlet):
            x, ways = x[x.min(axis=1) > 0], ways[:-1] - ways[-1]
            room = np.min(np.minimum(x, np.sqrt(law.var)), axis=1)
    else:
        x, ways = law.icdf(np.linspace(0.0217, 0.9789, 9)), np.ones(1)  # no round numbers: jumps of mixtures like them
        room = np.minimum(np.sqrt(law.var), np.minimum(x - law.support[0], law.support[1] - x))
        x, room = x[room > NARROW * np.abs(x)], room[room > NARROW * np.abs(x)]
    value = 0.0
    for way in ways:
        step = (STEP * room)[:, None] * way if np.ndim(way) else STEP * room
        up, down = x + step, x - step
        numeric, gradient = law.logpdf(up) - law.logpdf(down), law.logpdf_gradient(x) * (up - down)
        gradient = gradient.sum(axis=1) if np.ndim(way) else gradient
        value = max(value, np.max(np.abs(numeric - gradient) / (np.abs(gradient) + 2 * STEP), initial=0.0))
    return Check("gradient", float(value), SLOPE, "proof", "the gradient is the derivative of the log density")


def _draws(law, n, random_state):
    """Compare the entropy, in standard errors, and the distribution function or the mean with those of draws."""
    x = law.sample(n, random_state)
    checks = []
    if not (isinstance(law, Mixture) and np.ndim(law.mean)):
        surprise = -law.logpdf(x)
        surprise = np.where(np.isfinite(surprise), surprise, np.nan)  # a draw that was rounded to a pole: nothing can be said
        entropy = law.entropy()
        error = max(surprise.std() / np.sqrt(n), 1e-12 * (1 + abs(entropy)))
        low, high = surprise.mean() - SIGMAS * error, surprise.mean() + SIGMAS * error
        claim = f"the entropy lies in [{low:.6g}, {high:.6g}], four standard errors about that of {n} draws"
        checks.append(Check("entropy", abs(entropy - surprise.mean()) / error, SIGMAS, "evidence", claim))
    if not law.discrete and not np.ndim(law.mean):
        F, steps = np.sort(law.cdf(x)), np.arange(n + 1) / n
        distance = np.sqrt(n) * max(np.max(F - steps[:-1]), np.max(steps[1:] - F))
        claim = f"no cdf value of {n} draws is farther from its rank than chance allows (Kolmogorov, level 5e-5)"
        return [*checks, Check("draws", float(distance), KOLMOGOROV, "evidence", claim)]
    error = np.maximum(np.sqrt(law.var / n), 1e-12 * (TINY + np.abs(law.mean)))
    value = float(np.max(np.abs(x.mean(axis=0) - law.mean) / error))
    claim = f"the mean of {n} draws is the mean, in standard errors"
    return [*checks, Check("draws", value, SIGMAS + 1, "evidence", claim)]  # + 1, as there may be many entries


def check_maximum_entropy(distribution):
    """Check that no density on the line with the same mean and variance has a larger entropy.

    The problem is concave, so stationarity is enough: at 1001 points within eight standard deviations the log density must be
    ν + λ(x − μ)², with λ = −1/(2σ²), the one negative slope for which mass and variance are right. Only a normal one passes.

    Examples
    --------
    >>> from lemmata.probability.distributions import LogisticDistribution, Normal
    >>> check_maximum_entropy(Normal(3, 2)).holds, check_maximum_entropy(LogisticDistribution(0, 1)).holds
    (True, False)
    """
    z = np.linspace(-8, 8, 1001)
    values = distribution.logpdf(distribution.mean + np.sqrt(distribution.var) * z)
    if not np.isfinite(values).all():
        values = np.full(len(z), np.nan)  # a density that vanishes somewhere is not stationary: log p is infinite there
    design = np.stack([np.ones(len(z)), z**2], axis=1)
    coefficients = np.linalg.lstsq(design, np.nan_to_num(values), rcond=None)[0]
    residual = float(np.abs(design @ coefficients - values).max())
    bound = 0.5 * np.log(2 * np.pi * np.e * distribution.var)
    return Certificate(
        Check("stationarity", residual, LIMIT, "proof", "the log density is an affine function of (x − μ)²"),
        Check("multiplier", abs(coefficients[1] + 0.5), LIMIT, "proof", "its slope is −1/2 in units of 1/σ², and so negative"),
        Check("bound", abs(bound - distribution.entropy()), LIMIT, "proof", "the entropy is ½ log(2πeσ²), the largest one"),
    )
