"""The Bayes classifier and its error, for a world that is known.

If class k has the prior πₖ and the density p(x|k), the classifier f*(x) = argmaxₖ πₖ p(x|k) errs at x with the probability 1
− maxₖ P(k|x), the least there is, and altogether with E[1 − maxₖ P(k|X)], the Bayes error: no classifier has a smaller one,
for P(f(X) ≠ Y) = E[P(f(X) ≠ Y | X)] is an average of what f does at each x. For discrete x the error is a sum; for two normal
densities on the line it is known from the roots of the log odds, a quadratic in x (a line if the variances agree):
log(π₁σ₀/π₀σ₁) + (x − μ₀)²/2σ₀² − (x − μ₁)²/2σ₁². Otherwise it is an average over draws, with its standard error.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check
from lemmata.core.random import generator
from lemmata.decision.priors import checked_priors
from lemmata.probability.distributions import Normal

FAR = 40.0  # standard deviations, beyond which a normal distribution has no mass that a number could hold


class ErrorRate(NamedTuple):
    """A probability of error; the standard error is zero where it is exact."""

    value: float
    standard_error: float

    def interval(self, level=0.95):
        """Return the normal confidence interval."""
        half = float(ndtri((1 + level) / 2)) * self.standard_error
        return max(0.0, self.value - half), min(1.0, self.value + half)


@dataclass(frozen=True)
class BayesRule:
    """The Bayes classifier of known class-conditional distributions.

    Parameters
    ----------
    conditionals : Distribution of x in each class, with `logpdf` and `sample`.
    priors : Class priors; default all equal.
    classes : Labels; default 0, 1, …

    Examples
    --------
    >>> from lemmata.probability.distributions import Categorical
    >>> rule = BayesRule([Categorical([0.6, 0.3, 0.1]), Categorical([0.1, 0.3, 0.6])], priors=[0.6, 0.4])
    >>> rule.predict([0, 1, 2]), rule.error().value
    (array([0, 0, 1]), 0.22)
    """

    conditionals: tuple = field(repr=False)
    priors: np.ndarray | None = None
    classes: np.ndarray | None = None

    def __post_init__(self):
        k = len(self.conditionals)
        if k < 2:
            raise ValueError("There must be at least two classes, with a distribution each.")
        priors = np.full(k, 1 / k) if self.priors is None else checked_priors(self.priors, k)
        classes = np.arange(k) if self.classes is None else np.asarray(self.classes)
        if len(np.unique(classes)) != k:
            raise ValueError(f"There must be {k} different labels, one for each class; got {classes.tolist()}.")
        for name, value in (("conditionals", tuple(self.conditionals)), ("priors", priors), ("classes", classes)):
            object.__setattr__(self, name, value)

    def log_joint(self, x):
        """Return log πₖ p(x|k), (n, classes)."""
        return np.stack([np.asarray(p.logpdf(x), dtype=float) for p in self.conditionals], axis=-1) + np.log(self.priors)

    def posterior(self, x):
        """Return P(k|x), (n, classes); the priors where x is impossible in every class."""
        joint = self.log_joint(x)
        top = joint.max(axis=-1, keepdims=True)
        odds = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
        odds = np.where(np.isneginf(top), self.priors, odds)
        return odds / odds.sum(axis=-1, keepdims=True)

    def predict(self, x):
        """Return the most probable class, the first of equals."""
        return self.classes[self.log_joint(x).argmax(axis=-1)]

    def error(self, n_samples=100_000, random_state=0):
        """Return the Bayes error: exact for discrete x and for two normal distributions on the line, else from draws."""
        if len(self.conditionals) == 2 and all(isinstance(p, Normal) for p in self.conditionals):
            means, scales = zip(*((p.loc, p.scale) for p in self.conditionals), strict=True)
            return ErrorRate(gaussian_rule(means, scales, self.priors).error, 0.0)
        return self.error_of(self.predict, n_samples, random_state)

    def error_of(self, rule, n_samples=100_000, random_state=0):
        """Return the error P(rule(X) ≠ Y) of any rule x ↦ class: exact for discrete x, else from draws."""
        if all(getattr(p, "discrete", False) for p in self.conditionals):
            lowest, highest = (f(p.support[i] for p in self.conditionals) for i, f in enumerate((min, max)))
            x = np.arange(lowest, highest + 1)
            joint = np.exp(self.log_joint(x))
            return ErrorRate(float(joint.sum() - joint[np.asarray(rule(x))[:, None] == self.classes].sum()), 0.0)
        x, _ = self._draw(n_samples, random_state)
        right = np.asarray(rule(x))[:, None] == self.classes
        each = 1 - (self.posterior(x) * right).sum(axis=1)  # varies less than the count of mistakes
        return ErrorRate(float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))))

    def sample(self, n, random_state=None):
        """Draw n rows x with their classes."""
        x, y = self._draw(n, random_state)
        return x, self.classes[y]

    def _draw(self, n, random_state):
        rng = generator(random_state)
        y = np.sort(rng.choice(len(self.priors), size=n, p=self.priors))
        parts = [p.sample(int((y == k).sum()), rng) for k, p in enumerate(self.conditionals)]
        return np.concatenate(parts), y


@dataclass(frozen=True)
class GaussianRule:
    """The Bayes rule of two normal classes on the line, of `gaussian_rule`.

    Attributes
    ----------
    thresholds : Where the log odds are zero, sorted: one, two, or none. A root more than 40 standard deviations from both means
        is left out.
    regions : The class, 0 or 1, of each piece of the line that they leave, from left to right.
    error : Bayes error.
    """

    means: np.ndarray
    scales: np.ndarray
    priors: np.ndarray
    thresholds: np.ndarray
    regions: np.ndarray
    error: float

    def log_odds(self, x):
        """Return log P(1|x)/P(0|x)."""
        x = np.asarray(x, dtype=float)
        z0, z1 = ((x - m) / s for m, s in zip(self.means, self.scales, strict=True))
        level = np.log(self.priors[1] / self.priors[0]) - np.log(self.scales[1] / self.scales[0])
        return level + (z0 - z1) * (z0 + z1) / 2

    def predict(self, x):
        """Return the more probable class, 0 or 1; 0 if both are."""
        return (self.log_odds(x) > 0).astype(int)

    def certificate(self):
        """Check that the log odds vanish at the thresholds and change sign there only, and the error by quadrature."""
        from scipy.integrate import quad

        scale = max(self.scales)
        checks = []
        if len(self.thresholds):
            slope = np.abs(self.log_odds(self.thresholds + 1e-3 * scale) - self.log_odds(self.thresholds - 1e-3 * scale)) / 2e-3
            off = np.abs(self.log_odds(self.thresholds)) / np.maximum(slope, np.finfo(float).tiny)
            claim = "the log odds vanish at the thresholds, up to this share of the larger scale"
            checks.append(Check("roots", float(off.max()), SAME_LIMIT, "proof", claim))
        wrong = float((self.predict(_inside(self.thresholds, scale)) != self.regions).sum())
        checks.append(Check("regions", wrong, 0.0, "proof", "each piece of the line has its more probable class"))

        def least(x):
            z = (x - self.means) / self.scales
            return float(np.min(self.priors * np.exp(-(z**2) / 2) / self.scales)) / np.sqrt(2 * np.pi)

        # 9 standard deviations: what lies beyond has the probability 1e-19
        low, high = float((self.means - 9 * self.scales).min()), float((self.means + 9 * self.scales).max())
        edges = np.unique(np.clip(np.concatenate([[low, high], self.means, self.thresholds]), low, high))
        total = sum(quad(least, a, b, epsabs=1e-12)[0] for a, b in pairwise(edges))
        claim = "the error is the integral of the smaller of both densities, each times its prior"
        checks.append(Check("error", abs(self.error - total), SAME_LIMIT, "proof", claim))
        return Certificate(*checks, subject="Gaussian rule")


def gaussian_rule(means, scales, priors=(0.5, 0.5)):
    """Return the Bayes rule of two normal classes on the line, with its thresholds and its exact error.

    Parameters
    ----------
    means, scales : Mean and standard deviation of class 0 and of class 1.
    priors : Class priors.

    Examples
    --------
    >>> rule = gaussian_rule([0, 2], [1, 1])
    >>> rule.thresholds, rule.error
    (array([1.]), 0.158655)
    >>> rule = gaussian_rule([0, 2], [1, 2])
    >>> rule.thresholds, rule.regions, rule.error
    (array([-2.570917, 1.237584]), array([1, 0, 1]), 0.226694)
    >>> rule.certificate().holds
    True
    """
    means, scales = np.asarray(means, dtype=float), np.asarray(scales, dtype=float)
    if means.shape != (2,) or scales.shape != (2,) or not np.isfinite([means, scales]).all() or not (scales > 0).all():
        raise ValueError("There must be two finite means and two positive scales, of class 0 and of class 1.")
    priors = checked_priors(priors, 2)
    thresholds = _roots(means, scales, priors)
    rule = GaussianRule(means, scales, priors, thresholds, np.zeros(1, dtype=int), 0.0)
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    regions = rule.predict(_inside(thresholds, scales.max()))
    wrong = 0.0
    for region, (low, high) in zip(regions, pairwise(edges), strict=True):
        other = 1 - region
        wrong += priors[other] * _mass((low - means[other]) / scales[other], (high - means[other]) / scales[other])
    return GaussianRule(means, scales, priors, thresholds, regions, float(wrong))


def _inside(thresholds, unit):
    """Give a point inside each piece of the line that the thresholds leave."""
    if not len(thresholds):
        return np.zeros(1)
    return np.concatenate([thresholds[:1] - unit, (thresholds[1:] + thresholds[:-1]) / 2, thresholds[-1:] + unit])


def _mass(low, high):
    """Probability of an interval under the standard normal, exact in either tail."""
    return ndtr(-low) - ndtr(-high) if low > 0 else ndtr(high) - ndtr(low)


def _roots(means, scales, priors):
    """Roots of the log odds a t² + b t + c at x = μ₀ + σ₀ t, by the formula in which nothing cancels."""
    shift, ratio = (means[1] - means[0]) / scales[0], scales[0] / scales[1]
    a = (1 - ratio) * (1 + ratio) / 2
    b = shift * ratio**2
    c = np.log(priors[1] / priors[0]) + np.log(ratio) - b * shift / 2
    if a == 0:
        return np.array([means[0] - scales[0] * c / b]) if b else np.empty(0)
    discriminant = b**2 - 4 * a * c
    if discriminant <= 0:  # a double root separates nothing
        return np.empty(0)
    q = -(b + np.copysign(np.sqrt(discriminant), b)) / 2
    with np.errstate(over="ignore"):  # as the variances become equal, one root goes to infinity
        roots = np.sort(means[0] + scales[0] * np.array([q / a, c / q]))
    return roots[np.abs((roots[:, None] - means) / scales).min(axis=1) < FAR]
