"""Bayes' rule by formula, where the prior is conjugate; `grid` has it for any prior on a finite set of parameters.

p(θ | x) = p(x | θ) p(θ) / p(x), and the denominator is the evidence p(x) = ∫ p(x | θ) p(θ) dθ, a number that is not 1.
Yesterday's posterior is today's prior: observations that are independent given θ may come at once, one by one, or in any
order; and the evidence of all is the product of what each had before it came, p(x₁) p(x₂ | x₁) ….

A family of priors is conjugate to a likelihood if the posterior stays in it; an update is then an addition:

    Beta(a, b)          and tosses with h ones and t zeros        Beta(a + h, b + t)
    Dirichlet(α)        and categories with the counts c          Dirichlet(α + c)
    Gamma(a, b)         and n waiting times, exponential          Gamma(a + n, b + Σx)
    Normal(μ₀, σ₀)      and n normal values, scale σ known        precision 1/σ₀² + n/σ², mean weighted by the precisions

Where the posterior is known the evidence is too, without any integral: Bayes' rule solved for it says
p(x) = p(x | θ) p(θ) / p(θ | x), at every θ alike [1].

[1] Besag, Biometrika 76 (1989).
"""

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from lemmata.core.certificate import Certificate, Check, length
from lemmata.core.random import generator
from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    MultivariateNormal,
    Normal,
)
from lemmata.probability.distributions.base import positive
from lemmata.probability.distributions.gamma_functions import log_rising
from lemmata.probability.distributions.multivariate_normal import covariance

ROUNDING = 1e-13  # relative; what one update may lose


def _tosses(prior, data):
    x = np.asarray(data, dtype=float)
    if x.ndim != 1 or not np.isin(x, (0, 1)).all():
        raise ValueError("The data of a Bernoulli likelihood are a list of zeros and ones.")
    return x


def _heads(prior, data):
    x = np.asarray(data, dtype=float)
    x = x[None] if x.ndim == 1 and x.size else x.reshape(-1, 2) if not x.size else x
    if x.ndim != 2 or x.shape[1] != 2 or not ((x == np.floor(x)) & (x >= 0)).all() or (x[:, 1] > x[:, 0]).any():
        raise ValueError("The data of a binomial likelihood are pairs (n, successes) with 0 ≤ successes ≤ n.")
    return x


def _labels(prior, data):
    x, k = np.asarray(data, dtype=float), len(prior.alpha)
    if x.ndim != 1 or not ((x == np.floor(x)) & (x >= 0) & (x < k)).all():
        raise ValueError(f"The data of a categorical likelihood are numbers from 0 to {k - 1}; for counts: 'multinomial'.")
    return x.astype(int)


def _counts(prior, data):
    x, k = np.atleast_2d(np.asarray(data, dtype=float)), len(prior.alpha)
    x = x.reshape(-1, k) if not x.size else x
    if x.ndim != 2 or x.shape[1] != k or not ((x >= 0) & (x == np.floor(x))).all():
        raise ValueError(f"The data of a multinomial likelihood are rows of {k} counts; for categories: 'categorical'.")
    return x


def _waits(prior, data):
    x = np.asarray(data, dtype=float)
    if x.ndim != 1 or not (np.isfinite(x) & (x >= 0)).all():
        raise ValueError("The data of an exponential likelihood are a list of finite numbers, none negative.")
    return x


def _values(prior, data):
    x = np.asarray(data, dtype=float)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError("The data of a normal likelihood are a list of finite numbers.")
    return x


def _rows(prior, data):
    x, d = np.atleast_2d(np.asarray(data, dtype=float)), len(prior.mean)
    x = x.reshape(-1, d) if not x.size else x
    if x.ndim != 2 or x.shape[1] != d or not np.isfinite(x).all():
        raise ValueError(f"The data of a multivariate normal likelihood are rows of {d} finite numbers.")
    return x


def _multinomial(theta, x):
    return (log_rising(1.0, x.sum(axis=1)) + (xlogy(x, theta) - log_rising(1.0, x)).sum(axis=1)).sum()  # log n! and log c!


def _normal_update(prior, x, scale):
    if not len(x):
        return prior
    noise = positive("scale", scale) / np.sqrt(len(x))
    both = np.hypot(prior.scale, noise)
    mean = prior.loc + (prior.scale / both) ** 2 * (x - prior.loc).mean()
    return Normal(mean, prior.scale / both * noise)


def _rows_update(prior, x, cov):
    cov, _ = covariance("cov", cov, len(prior.mean))
    if not len(x):
        return prior
    noise = cov / len(x)
    gain = np.linalg.solve(prior.cov + noise, prior.cov).T
    # Σ₀(Σ₀ + V)⁻¹V is the posterior covariance without a subtraction; it is symmetric but for rounding
    after = gain @ noise
    return MultivariateNormal(prior.mean + gain @ (x - prior.mean).mean(axis=0), (after + after.T) / 2)


class _Pair(NamedTuple):
    """How a prior meets a likelihood: read the data, update, and the log likelihood of a θ."""

    read: Callable
    update: Callable
    log_likelihood: Callable
    known: str | None = None


_PAIRS = {
    (Beta, "bernoulli"): _Pair(
        _tosses,
        lambda prior, x: Beta(prior.a + x.sum(), prior.b + (1 - x).sum()),
        lambda theta, x: Bernoulli(theta).logpdf(x).sum(),
    ),
    (Beta, "binomial"): _Pair(
        _heads,
        lambda prior, x: Beta(prior.a + x[:, 1].sum(), prior.b + (x[:, 0] - x[:, 1]).sum()),
        lambda theta, x: sum(Binomial(n, theta).logpdf(k) for n, k in x),
    ),
    (Dirichlet, "categorical"): _Pair(
        _labels,
        lambda prior, x: prior.update(np.bincount(x, minlength=len(prior.alpha))),
        lambda theta, x: Categorical(theta).logpdf(x).sum(),
    ),
    (Dirichlet, "multinomial"): _Pair(_counts, lambda prior, x: prior.update(x.sum(axis=0)), _multinomial),
    (Gamma, "exponential"): _Pair(
        _waits,
        lambda prior, x: Gamma(prior.shape + len(x), prior.rate + x.sum()),
        lambda theta, x: Exponential(theta).logpdf(x).sum(),
    ),
    (Normal, "normal"): _Pair(_values, _normal_update, lambda theta, x, scale: Normal(theta, scale).logpdf(x).sum(), "scale"),
    (MultivariateNormal, "multivariatenormal"): _Pair(
        _rows, _rows_update, lambda theta, x, cov: MultivariateNormal(theta, cov).logpdf(x).sum(), "cov"
    ),
}


def _pair(prior, likelihood, data, known):
    """Return the pair and the data as an array; refuse a prior that is not conjugate, and a missing known parameter."""
    name = (likelihood if isinstance(likelihood, str) else getattr(likelihood, "__name__", "")).lower().replace("_", "")
    pair = next((pair for (family, of), pair in _PAIRS.items() if isinstance(prior, family) and of == name), None)
    if pair is None:
        pairs = ", ".join(f"{family.__name__} and {of!r}" for family, of in _PAIRS)
        raise ValueError(f"No conjugate update of {type(prior).__name__} by {likelihood!r}; there are {pairs}.")
    if set(known) != ({pair.known} if pair.known else set()):
        wanted = f"takes {pair.known}=, which must be known," if pair.known else "takes no known parameter,"
        raise ValueError(f"The likelihood {likelihood!r} {wanted} got {sorted(known)}.")
    return pair, pair.read(prior, data)


def posterior(prior, likelihood, data, **known):
    """Return the distribution of the parameter after the data: one of the prior's family.

    Parameters
    ----------
    prior : Distribution of the parameter.
    likelihood : Name or class: "bernoulli", "binomial" (data: pairs (n, successes)), "categorical" (data: categories),
        "multinomial" (data: counts), "exponential", "normal" (with scale=), "multivariate_normal" (with cov=).
    data : Observations, independent given the parameter; none gives the prior back.
    known : The parameter of the likelihood that is known: scale or cov.

    Examples
    --------
    >>> posterior(Beta(2, 2), "bernoulli", [1, 1, 1, 1, 1, 1, 1, 0, 0, 0])
    Beta(a=9.0, b=5.0)
    >>> posterior(Gamma(1, 1), Exponential, [0.5, 2.5])
    Gamma(shape=3.0, rate=4.0)
    >>> posterior(Normal(0, 1), Normal, [1.0, 2.0, 3.0], scale=1.0)
    Normal(loc=1.5, scale=0.5)
    """
    pair, x = _pair(prior, likelihood, data, known)
    return pair.update(prior, x, **known)


def log_evidence(prior, likelihood, data, **known):
    """Return log p(data), the parameter integrated out under the prior.

    Examples
    --------
    >>> import numpy as np
    >>> float(np.exp(log_evidence(Dirichlet([1, 1, 1]), "categorical", [0, 0, 2, 0]))) * 60
    1.0
    """
    pair, x = _pair(prior, likelihood, data, known)
    after = pair.update(prior, x, **known)
    theta = after.mean  # any θ would do; here the three terms are of moderate size
    if isinstance(prior, Beta):
        theta = min(max(theta, np.finfo(float).tiny), np.nextafter(1, 0))  # a mean that was rounded to an end
    return float(pair.log_likelihood(theta, x, **known) + prior.logpdf(theta) - after.logpdf(theta))


def _flat(distribution):
    return np.concatenate([np.ravel(getattr(distribution, f.name)) for f in fields(distribution) if f.init])


def check_posterior(prior, likelihood, data, random_state=0, **known):
    """Check that the data give the same posterior and evidence at once and one by one, in an order drawn at random.

    Examples
    --------
    >>> print(check_posterior(Beta(2, 2), "bernoulli", [1, 0, 1, 1]))
    certificate holds (proof)
      check     value     limit  kind   claim
      order     0.0e+00 ≤ 1e-12  proof  the posterior is that of one observation after another, in another order
      evidence  ...  ≤ 1e-12  proof  the evidence is the product of the one-step predictive probabilities
    """
    pair, x = _pair(prior, likelihood, data, known)
    now, chain = prior, 0.0
    for i in generator(random_state).permutation(len(x)):
        chain += log_evidence(now, likelihood, x[i : i + 1], **known)
        now = pair.update(now, x[i : i + 1], **known)
    limit = ROUNDING * max(len(x), 10)
    batch, at_once = _flat(pair.update(prior, x, **known)), log_evidence(prior, likelihood, x, **known)
    return Certificate(
        Check(
            "order",
            length(batch - _flat(now)) / length(batch),
            limit,
            "proof",
            "the posterior is that of one observation after another, in another order",
        ),
        Check(
            "evidence",
            abs(chain - at_once) / max(abs(at_once), 1.0),
            limit,
            "proof",
            "the evidence is the product of the one-step predictive probabilities",
        ),
    )
