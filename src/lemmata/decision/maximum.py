"""Maximum likelihood, maximum a posteriori, and Bayes estimates of the parameters of a model.

The likelihood of independent data is Π p(xᵢ|θ); its maximum θ̂, where the score ∇ Σ log p(xᵢ|θ) vanishes and the observed
information −∇² Σ log p(xᵢ|θ) is positive definite, is the maximum likelihood estimate. With a prior, Σ log p(xᵢ|θ) + log p(θ)
has its maximum at the MAP estimate, the mode of the posterior; the prior is one term against n, so that its influence fades
as 1/n. Closed forms are used where there are any, and a quasi-Newton ascent where not (`ascent`). Probabilities of
categories, which must sum to one, are in `categories`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check
from lemmata.core.random import generator
from lemmata.decision.ascent import EPS, Likelihood, ascend, derivatives, shaped, units_of
from lemmata.decision.categories import counts_of, on_simplex
from lemmata.decision.density import Density
from lemmata.decision.estimate import estimate
from lemmata.probability.conjugate import posterior as conjugate_posterior
from lemmata.probability.distributions import Categorical, Dirichlet

GAIN = 1e-6  # nats: what a Newton step may still gain


@dataclass(frozen=True)
class Estimate:
    """A maximum of a log likelihood or of a log posterior.

    Attributes
    ----------
    value : θ̂, a number or an array.
    log_value : The log likelihood, or the log posterior up to a constant, at θ̂.
    score : Its gradient there; NaN at an end of the parameters' range.
    information : Minus its Hessian, the observed information.
    model : The distribution with these parameters, if a family was given.

    Examples
    --------
    >>> from lemmata.probability.distributions import Exponential
    >>> found = mle(Exponential, [0.5, 1.5, 2.0])
    >>> found.value, found.standard_errors, found.certificate().holds
    (0.75, 0.433, True)
    """

    value: Any
    log_value: float
    score: Any
    information: Any
    model: Any = None
    objective: Callable | None = field(repr=False, compare=False, default=None)

    def __float__(self):
        return float(self.value)

    @property
    def standard_errors(self):
        """Roots of the diagonal of the inverse of the information."""
        errors = np.sqrt(np.diag(np.linalg.inv(np.atleast_2d(self.information))))
        return float(errors[0]) if np.ndim(self.value) == 0 else errors

    def certificate(self):
        """Check by differences that the score vanishes and that the information is positive, and that no perturbation gains."""
        theta = np.atleast_1d(np.asarray(self.value, dtype=float))
        unit = units_of(self.objective, theta)
        if unit is None:
            return Certificate(self._perturbed(theta, np.maximum(np.abs(theta), EPS)), subject="estimate")
        score, information = derivatives(self.objective, theta, unit)
        if not np.isfinite(information).all():
            return Certificate(Check("information", np.inf, SAME_LIMIT, "local", "there are derivatives"), subject="estimate")
        eigenvalues = np.linalg.eigvalsh(information)
        size = max(float(np.abs(eigenvalues).max()), TINY)
        gain = float(score @ np.linalg.solve(information + SAME_LIMIT * size * np.eye(len(theta)), score)) / 2
        return Certificate(
            Check("score", gain if np.isfinite(gain) else np.inf, GAIN, "local", "a Newton step would gain no more nats"),
            Check("information", -float(eigenvalues[0]) / size, SAME_LIMIT, "local", "the log density is curved downwards"),
            self._perturbed(theta, unit),
            subject="estimate",
        )

    def _perturbed(self, theta, unit):
        here, rng = self.objective(theta), generator(0)
        moved = [self.objective(theta + r * unit * rng.standard_normal(len(theta))) for r in (0.1, 1.0, 3.0) for _ in range(10)]
        rise = (max(moved) - here) / max(abs(here), 1.0)
        claim = "no random change of the parameters gains more than this share"
        return Check("perturbations", rise, SAME_LIMIT, "evidence", claim)


def _result(f, theta, model=None):
    unit = units_of(f, theta)
    if unit is None:  # at an end of the parameters' range there are no derivatives
        unit, score, information = np.ones(len(theta)), np.full(len(theta), np.nan), np.full((len(theta),) * 2, np.nan)
    else:
        score, information = derivatives(f, theta, unit)
    score, information = score / unit, information / np.outer(unit, unit)
    if len(theta) == 1:
        return Estimate(float(theta[0]), f(theta), float(score[0]), float(information[0, 0]), model, f)
    return Estimate(theta, f(theta), score, information, model, f)


def mle(model, data, sample_weight=None, *, start=None, **known):
    """Estimate parameters by maximum likelihood.

    Parameters
    ----------
    model : Class of distributions of `lemmata.probability`, or a function of (theta, data) that returns log densities.
    data : Observations.
    sample_weight : Weights of the observations, which mean repetition.
    start : Where to begin, for a function.
    known : Parameters of the distribution that are known; for `Categorical`, `n_categories`.

    Returns
    -------
    result : `Estimate`, with `value`, `score`, `information`, `standard_errors` and `certificate()`; for `Categorical`,
        `SimplexEstimate`.

    Examples
    --------
    >>> from lemmata.probability.distributions import Normal
    >>> mle(Normal, [1.0, 2.0, 6.0]).model
    Normal(loc=3.0, scale=2.160247)
    >>> def cauchy(center, x):
    ...     return -np.log1p((x - center) ** 2)
    >>> found = mle(cauchy, np.array([-1.0, 0.0, 0.5, 9.0]), start=0.0)
    >>> found.value, found.certificate().holds
    (0.0066, True)
    """
    if model is Categorical:
        return on_simplex(counts_of(data, sample_weight, known.get("n_categories")))
    f = Likelihood(model, data, sample_weight, known)
    if f.family:
        theta, exact = f.start()
        theta = theta if exact else ascend(f, theta)
        return _result(f, theta, f.at(theta))
    return _result(f, ascend(f, _started(start)))


def _started(start):
    if start is None or not np.isfinite(start).all():
        raise ValueError("A model that is a function needs a finite start.")
    return np.atleast_1d(np.asarray(start, dtype=float))


def map_estimate(model, data, prior, sample_weight=None, *, start=None, **known):
    """Estimate parameters by the mode of their posterior (maximum a posteriori).

    Parameters
    ----------
    model : Class of distributions of `lemmata.probability`, or a function of (theta, data) that returns log densities.
    data : Observations.
    prior : Distribution of the parameters that are not known, with `logpdf`.
    sample_weight : Weights of the observations, which mean repetition.
    start : Where to begin, for a function; default the mean of the prior.
    known : Parameters of the distribution that are known.

    Returns
    -------
    result : `Estimate`, or for `Categorical` with a Dirichlet prior `SimplexEstimate`.

    Examples
    --------
    An exponential prior of rate one acts like one more unit of waiting time, without one more event:

    >>> from lemmata.probability.distributions import Exponential
    >>> found = map_estimate(Exponential, [0.5, 1.5, 2.0], prior=Exponential(1.0))
    >>> found.value, found.certificate().holds
    (0.6, True)
    """
    if model is Categorical and isinstance(prior, Dirichlet):
        k = len(prior.alpha)
        return on_simplex(counts_of(data, sample_weight, k) + prior.alpha - 1)
    likelihood = Likelihood(model, data, sample_weight, known)

    def f(theta):
        with np.errstate(all="ignore"):
            total = likelihood(theta) + float(prior.logpdf(shaped(theta)))
        return total if total < np.inf else -np.inf

    if likelihood.family and start is None:
        begin = likelihood.start()[0]
        begin = begin if np.isfinite(f(begin)) else np.atleast_1d(np.asarray(prior.mean, dtype=float))
    else:
        begin = _started(prior.mean if start is None else start)
    theta = ascend(f, begin)
    return _result(f, theta, likelihood.at(theta) if likelihood.family else None)


def bayes_estimate(model, data, prior, loss="squared", *, start=None, **known):
    """Estimate a parameter by the least posterior expected loss.

    Conjugate posteriors are exact; any other one, of a parameter that is one number, is integrated numerically.

    Parameters
    ----------
    model : Class of distributions of `lemmata.probability`, or a function of (theta, data) that returns log densities.
    data : Observations.
    prior : Distribution of the parameters that are not known, with `logpdf`.
    loss : As in `estimate`.
    start : Where to begin the search for the mode, for a function.
    known : Parameters of the distribution that are known.

    Returns
    -------
    result : `PointEstimate`.

    Examples
    --------
    >>> from lemmata.probability.distributions import Bernoulli, Beta
    >>> tosses = [1, 1, 1, 1, 1, 1, 1, 0, 0, 0]
    >>> mle(Bernoulli, tosses).value, map_estimate(Bernoulli, tosses, Beta(2, 2)).value
    (0.7, 0.666667)
    >>> bayes_estimate(Bernoulli, tosses, Beta(2, 2)).value
    0.642857
    """
    try:
        after = conjugate_posterior(prior, model, data, **known)
    except ValueError:  # no conjugate pair
        after = _on_line(map_estimate(model, data, prior, start=start, **known))
    return estimate(after, loss)


def _on_line(mode):
    """Make the posterior of one number around its mode a distribution."""
    if np.ndim(mode.value):
        raise ValueError("The posterior of several parameters is known only for conjugate priors: draw samples of it.")
    return Density(lambda theta: mode.objective(np.array([theta])), mode.value, mode.standard_errors)
