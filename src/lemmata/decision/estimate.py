"""Point estimates: the one number that costs least, given a posterior and a loss.

The Bayes estimate under a loss λ(guess, θ) minimizes the posterior expected loss ∫ λ(guess, θ) p(θ|data) dθ. For the squared
loss that is the posterior mean, and the expected loss there is the posterior variance; for the absolute loss the median; for
the zero-one loss the mode. If θ is continuous, a loss of 1 − δ would be 1 whatever is guessed: zero-one loss then means the
limit of a loss of 1 outside of a ball around the guess, as the ball shrinks. Any other loss of one number is minimized
numerically.
Certificate: to the right of the estimate the expected loss rises, to the left it falls, which for a loss that is convex in
the guess proves that nothing is better.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, same
from lemmata.decision.expectation import nodes

STEP = 1e-5  # of the spread: an estimate that is off by more shows a slope
LEVELS = np.linspace(0, 1, 131)[1:-1]  # quantiles among which the search for a general loss begins


def squared(guess, theta):
    """(guess − θ)², summed over the entries of vectors."""
    return _entries((theta - guess) ** 2)


def absolute(guess, theta):
    """|guess − θ|, summed over the entries of vectors."""
    return _entries(np.abs(theta - guess))


def _entries(losses):
    return losses.sum(axis=1) if losses.ndim == 2 else losses


class Finite:
    """A posterior on finitely many values, (m,) or (m, d), with their probabilities: a grid, or samples."""

    def __init__(self, theta, weights):
        self.theta, weights = np.asarray(theta, dtype=float), np.asarray(weights, dtype=float)
        if self.theta.ndim not in (1, 2) or weights.shape != self.theta.shape[:1] or not np.isfinite(self.theta).all():
            raise ValueError(f"A posterior needs finite values with a weight each; got {self.theta.shape} and {weights.shape}.")
        if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise ValueError("The weights of a posterior must not be negative, and must have a finite positive sum.")
        self.weights = weights / weights.sum()

    def expected(self, loss, guess):
        """Posterior expected loss of a guess."""
        return float(self.weights @ np.asarray(loss(guess, self.theta), dtype=float))

    def icdf(self, u):
        """Least value with a probability of at least u of one of at most it; of vectors, entry by entry."""
        columns = self.theta[:, None] if self.theta.ndim == 1 else self.theta
        found = []
        for column in columns.T:
            order = np.argsort(column, kind="stable")
            total = np.cumsum(self.weights[order])
            # a share of rounding, or half of ten tenths would be reached one value late
            found.append(column[order][np.minimum(np.searchsorted(total, u * (1 - 1e-12) * total[-1]), len(column) - 1)])
        return found[0] if self.theta.ndim == 1 else np.stack(found, axis=-1)

    @property
    def mean(self):
        """Mean."""
        return self.weights @ self.theta

    @property
    def var(self):
        """Variance, of vectors that of each entry."""
        return self.weights @ (self.theta - self.mean) ** 2

    def totals(self):
        """Return the different values and the probability of each."""
        values, number = np.unique(self.theta, axis=0, return_inverse=True)
        return values, np.bincount(number.ravel(), weights=self.weights)


class Continuous:
    """A posterior that is a distribution of one number, with `mean`, `var`, `cdf` and `icdf`."""

    def __init__(self, distribution):
        self.distribution = distribution
        self.mean, self.var, self.icdf = distribution.mean, distribution.var, distribution.icdf

    def expected(self, loss, guess):
        """Posterior expected loss of a guess; the loss may have a corner at θ = guess."""
        theta, weights = nodes(self.distribution, [guess])
        return float(weights @ np.asarray(loss(guess, theta), dtype=float))


@dataclass(frozen=True)
class PointEstimate:
    """The estimate of least posterior expected loss, of `estimate`.

    Attributes
    ----------
    value : The estimate.
    risk : Its posterior expected loss; under the squared loss, the posterior variance.
    loss : Name of the loss, or the function.

    Examples
    --------
    >>> found = estimate([1.0, 2.0, 6.0], "squared")
    >>> found.value, found.risk, float(found)
    (3.0, 4.666667, 3.0)
    """

    value: Any
    risk: float
    loss: str | Callable
    posterior: Any = field(repr=False, compare=False)
    density: Callable | None = field(repr=False, compare=False, default=None)

    def __float__(self):
        return float(self.value)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype=dtype)

    def certificate(self):
        """Check that the posterior expected loss is as stated, and rises on both sides of the estimate."""
        if self.loss == "zero-one":
            return self._mode_certificate()
        loss = {"squared": squared, "absolute": absolute}.get(self.loss, self.loss)
        kind = "local" if callable(self.loss) else "proof"
        here = self.posterior.expected(loss, self.value)
        spread = np.sqrt(np.atleast_1d(self.posterior.var).astype(float))
        step = STEP * np.where(spread > 0, spread, np.maximum(1.0, np.abs(self.value)))
        fall = 0.0
        for j, h in enumerate(step):
            move = np.zeros(len(step))
            move[j] = h
            for sign in (1, -1):
                there = self.posterior.expected(loss, self.value + sign * (move if np.ndim(self.value) else h))
                fall = max(fall, (here - there) / STEP)
        claim = "the expected loss rises on both sides of the estimate: a step of its spread would not gain this share"
        slope = Check("slope", fall / max(abs(here), TINY), SAME_LIMIT, kind, claim)
        return Certificate(slope, same(self.risk, here, "risk", "the expected loss is as stated"), subject="estimate")

    def _mode_certificate(self):
        if self.density is None:
            values, totals = self.posterior.totals()
            own = totals[np.all(values.reshape(len(values), -1) == np.ravel(self.value), axis=1)].sum()
            value, kind = float(totals.max() - own), "proof"
            claim = "no value is more probable"
        else:
            own = float(self.density(self.value))
            others = self.density(self.posterior.icdf(LEVELS)) if hasattr(self.posterior, "icdf") else np.array([own])
            value, kind = 0.0 if np.isposinf(own) else float(np.exp(np.max(others) - own)) - 1, "evidence"
            claim = "the density is no greater at any of many other values, by this share"
        return Certificate(Check("mode", value, SAME_LIMIT, kind, claim), subject="estimate")


def estimate(posterior, loss="squared"):
    """Estimate a parameter from its posterior: the value of least posterior expected loss.

    Parameters
    ----------
    posterior : Distribution, such as `lemmata.probability` has; grid, as a tuple (theta, weights) or a `GridPosterior`; or
        samples, an array (n,) or (n, d).
    loss : "squared" (mean), "absolute" (median; of vectors, of each entry), "zero-one" (mode), or a function of (guess, θ) that
        works on an array θ, for a parameter that is one number.

    Returns
    -------
    result : `PointEstimate`, with `value`, `risk` and `certificate()`.

    Examples
    --------
    >>> from lemmata.probability.distributions import Gamma
    >>> after = Gamma(4, 5)
    >>> [float(estimate(after, loss)) for loss in ("squared", "absolute", "zero-one")]
    [0.8, 0.734412, 0.6]

    To guess too high costs three times as much as to guess too low by the same amount:

    >>> found = estimate(after, lambda guess, theta: np.where(guess > theta, 3 * (guess - theta), theta - guess))
    >>> found.value, float(after.icdf(0.25)), found.certificate().holds
    (0.507, 0.507, True)
    """
    if not callable(loss) and loss not in ("squared", "absolute", "zero-one"):
        raise ValueError(f"loss must be 'squared', 'absolute', 'zero-one' or a function of (guess, theta); got {loss!r}.")
    world, samples = _read(posterior)
    if loss == "zero-one":
        return _mode(world, posterior, samples)
    if isinstance(world, Finite) and world.theta.ndim == 2 and callable(loss):
        raise ValueError("A loss that is a function is minimized over one number; the posterior is of vectors.")
    if not isinstance(world, Finite | Continuous) and loss != "squared":
        raise ValueError(
            "The posterior is a distribution of vectors, of which only the mean and the mode are known: draw samples."
        )
    if loss == "squared":
        value = _plain(world.mean)
        return PointEstimate(value, float(np.sum(world.var)), loss, world if hasattr(world, "expected") else _Moments(world))
    if loss == "absolute":
        value = _plain(world.icdf(0.5))
        return PointEstimate(value, world.expected(absolute, value), loss, world)
    value = _least(lambda guess: world.expected(loss, guess), world)
    return PointEstimate(value, world.expected(loss, value), loss, world)


def _plain(value):
    """Give a single number as a float."""
    return float(value) if np.ndim(value) == 0 else value


class _Moments:
    """A distribution of vectors, of which mean and variances tell the expected squared loss."""

    def __init__(self, distribution):
        self.mean, self.var = np.asarray(distribution.mean), np.asarray(distribution.var)

    def expected(self, loss, guess):
        return float(np.sum(self.var + (self.mean - guess) ** 2))


def _read(posterior):
    """Return a posterior as `Finite`, `Continuous` or a distribution of vectors, and whether it is samples."""
    if hasattr(posterior, "theta") and hasattr(posterior, "probabilities"):
        return Finite(posterior.theta, posterior.probabilities), False
    if isinstance(posterior, tuple) and len(posterior) == 2 and np.ndim(posterior[0]) > 0:
        return Finite(*posterior), False
    if hasattr(posterior, "logpdf"):
        return Continuous(posterior) if np.ndim(posterior.mean) == 0 else posterior, False
    values = np.asarray(posterior, dtype=float)
    if values.ndim == 0 or len(values) == 0:
        raise ValueError("The posterior must be a distribution, a tuple (theta, weights), or an array of samples.")
    return Finite(values, np.ones(len(values))), True


def _mode(world, posterior, samples):
    if isinstance(world, Finite):
        values, totals = world.totals()
        if samples and len(values) == len(world.theta) > 1:
            raise ValueError("All samples differ, and have no mode: give the posterior as a distribution or on a grid.")
        best = int(np.argmax(totals))
        return PointEstimate(_plain(values[best]), float(1 - totals[best]), "zero-one", world)
    if not hasattr(posterior, "mode"):
        raise ValueError(f"The mode of a {type(posterior).__name__} is not known: put its density on a GridPosterior.")
    value = _plain(posterior.mode)
    hit = float(posterior.pdf(value)) if posterior.discrete else 0.0  # of a continuous value no guess is exactly right
    return PointEstimate(value, 1 - hit, "zero-one", world, posterior.logpdf)


def _least(risk, world):
    """Minimize a risk of one number: the best of many quantiles, then Brent's method between its neighbors."""
    points = np.unique(np.append(world.icdf(LEVELS), world.mean))
    if len(points) == 1:
        points = points + max(1.0, abs(points[0])) * np.array([-1.0, 0.0, 1.0])
    values = np.array([risk(point) for point in points])
    best = int(np.argmin(values))
    width = np.ptp(points)
    while best in (0, len(points) - 1) and width < np.finfo(float).max / 4:  # beyond the quantiles
        new = points[best] + (width if best else -width)
        points = np.append(points, new) if best else np.append(new, points)
        values = np.append(values, risk(new)) if best else np.append(risk(new), values)
        best, width = int(np.argmin(values)), 2 * width
    around = points[[best - 1, best + 1]] if 0 < best < len(points) - 1 else points[[0, -1]]
    found = minimize_scalar(risk, bounds=tuple(around), method="bounded", options={"xatol": 1e-12 * np.ptp(around)})
    candidates = [float(points[best]), float(found.x)]
    if isinstance(world, Finite):  # corners of the expected loss
        near = np.unique(world.theta)[np.clip(np.searchsorted(np.unique(world.theta), found.x) + np.array([-1, 0]), 0, None)]
        candidates += near.tolist()
    return min(candidates, key=risk)
