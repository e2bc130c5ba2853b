"""Inverse links: distribution functions F that turn a score into a probability, and the losses that they make.

P(second class) = F(z) and P(first class) = 1 − F(z). A row costs ℓ = −log of the probability of its own class, with the slope
ℓ′ = −f/F or f/(1 − F) and the curvature ℓ″; the expected curvature is the information f²/F(1 − F) = −ℓ′(second) ℓ′(first).
The density f of "probit" (normal), "logit" (logistic) and "cloglog" (F = 1 − exp(−eᶻ), Gumbel) is log-concave: then so are F
and 1 − F [1], and every loss is convex. That of "cauchit" (Cauchy) is not: far from the boundary a row gives up. The link
itself, the quantile function Q = F⁻¹, maps the open interval (0, 1) to the numbers; 0 and 1 have no finite score.
Far in the tails everything is computed from scaled functions and series, so that no digit is lost where F is 0 or 1.

[1] Pratt, J. Amer. Statist. Assoc. 76 (1981).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri

from lemmata.linear_model.links import log_sigmoid, logit, sigmoid

FAR = 50.0  # standard deviations beyond which four terms of the normal tail's series are exact, and differences are not
SMALL = 0.1  # below it four terms of the series of u/(eᵘ − 1) are exact, and differences are not
STEP = 6e-6  # of a numerical derivative: the cube root of the rounding
NEWTON_STEPS = 50  # Newton's method for a number that is known to a few digits at the start: five are usual


def normal_rate(z):
    """Return φ(z)/Φ(z), the slope of log Φ.

    Examples
    --------
    >>> normal_rate(np.array([-1e8, 0.0, 50.0]))
    array([1e+08, 7.97884561e-01, 0e+00])
    """
    with np.errstate(over="ignore"):
        return np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2))


def normal_curvature(z):
    """Return −(log Φ)″ = r(r + z) with r = φ/Φ, which goes to 1 for z → −∞.

    Examples
    --------
    >>> normal_curvature(np.array([-1e8, 0.0]))
    array([1.        , 0.63661977])
    """
    rate = normal_rate(z)
    t = np.minimum(z, -FAR) ** -2
    return np.where(z < -FAR, 1 - t * (1 - t * (6 - t * (50 - t * 518))), rate * (rate + z))  # r = t + 1/t − 2/t³ + 10/t⁵ …


def logistic_rate(z):
    """Return the slope 1 − σ(z) of log σ."""
    return sigmoid(-z)


def logistic_curvature(z):
    """Return −(log σ)″ = σ(1 − σ)."""
    return sigmoid(z) * sigmoid(-z)


def cauchy_log_cdf(z):
    """Return log(½ + arctan(z)/π), exact in both tails."""
    above = np.log1p(-np.arctan2(1.0, np.maximum(z, 0.0)) / np.pi)
    return np.where(z > 0, above, np.log(np.arctan2(1.0, -np.minimum(z, 0.0)) / np.pi))


def cauchy_rate(z):
    """Return f/F for the Cauchy distribution."""
    return 1 / ((1 + z * z) * np.arctan2(1.0, -z))


def cauchy_curvature(z):
    """Return −(log F)″ for the Cauchy distribution: negative where z is, roughly."""
    rate = cauchy_rate(z)
    return rate * (rate + 2 * z / (1 + z * z))


def cauchy_quantile(p):
    """Return −cot(πp), the sign from the nearer end."""
    p = np.asarray(p, dtype=float)
    with np.errstate(divide="ignore"):
        return np.where(p < 0.5, -1.0, 1.0) / np.tan(np.pi * np.minimum(p, 1 - p))


class InverseLink:
    """What every inverse link gives from its losses; `second` says for each score whether its row is of the second class."""

    convex = False  # whether every loss is convex

    def information(self, z):
        """Give the expected curvature of the loss, f²/F(1 − F)."""
        every = np.ones(z.shape, dtype=bool)
        return -self.slope(z, every) * self.slope(z, ~every)

    def log_probabilities(self, z):
        """Give the logarithms of the probabilities of both classes, (n, 2)."""
        every = np.ones(z.shape, dtype=bool)
        return -np.column_stack([self.loss(z, ~every), self.loss(z, every)])

    def conjugate(self, slope, second, start):
        """Give sup over t of (a t − ℓ(t)) for slopes a of convex losses, from above; infinite where a is no slope.

        It is attained at ℓ′(t) = a, found by Newton's method from near it; an error e of the slope costs e²/2ℓ″ to first order.
        """
        t = np.array(start)
        with np.errstate(all="ignore"):
            for _ in range(NEWTON_STEPS):
                miss, bend = self.slope(t, second) - slope, self.curvature(t, second)
                step = np.where(miss == 0, 0.0, miss / bend)
                t = t - step
                if not (np.abs(step) > 1e-8 * (1 + np.abs(t))).any():  # the next step would have the square of that
                    break
            miss, bend = self.slope(t, second) - slope, self.curvature(t, second)
            value = slope * t - self.loss(t, second) + np.where(miss == 0, 0.0, miss * miss / bend)
        close = np.abs(miss) <= np.sqrt(np.finfo(float).eps) * np.abs(slope)
        return np.where(close & np.isfinite(value), value, np.inf)


@dataclass(frozen=True)
class Symmetric(InverseLink):
    """A distribution with F(−z) = 1 − F(z): one tail tells of both.

    Parameters
    ----------
    log_cdf, rate, bend : log F, its slope f/F, and minus its second derivative.
    quantile : F⁻¹.
    convex : Whether −log F is convex.
    """

    log_cdf: Callable
    rate: Callable
    bend: Callable
    quantile: Callable
    convex: bool

    def loss(self, z, second):
        """Give −log of the probability of the own class."""
        return -self.log_cdf(np.where(second, z, -z))

    def slope(self, z, second):
        """Give the derivative of the loss."""
        return np.where(second, -1.0, 1.0) * self.rate(np.where(second, z, -z))

    def curvature(self, z, second):
        """Give the second derivative of the loss."""
        return self.bend(np.where(second, z, -z))


class ComplementaryLogLog(InverseLink):
    """F(z) = 1 − exp(−eᶻ): whether a count with the mean eᶻ is positive."""

    convex = True

    @staticmethod
    def quantile(p):
        """Give log(−log(1 − p))."""
        with np.errstate(divide="ignore"):
            return np.log(-np.log1p(-np.asarray(p, dtype=float)))

    @staticmethod
    def _mean(z):
        """Return eᶻ, at most a number whose products with the data are finite."""
        return np.exp(np.minimum(z, 350.0))  # the square root of the largest number

    @staticmethod
    def _rate(u):
        """Return u/(eᵘ − 1) = f/F."""
        u = np.clip(u, np.finfo(float).tiny, 700.0)  # e⁷⁰⁰ is about the largest number
        return u / np.expm1(u)

    def loss(self, z, second):
        """Give −log of the probability of the own class."""
        u = self._mean(z)
        low = np.clip(u, np.finfo(float).tiny, 1.0)
        near = np.where(z > -40, -np.log(-np.expm1(-low)), -z)  # −40: the difference, u/2, is below rounding
        return np.where(second, np.where(z > 0, -np.log1p(-np.exp(-np.maximum(u, 1.0))), near), u)

    def slope(self, z, second):
        """Give the derivative of the loss."""
        u = self._mean(z)
        return np.where(second, -self._rate(u), u)

    def curvature(self, z, second):
        """Give the second derivative of the loss."""
        u = self._mean(z)
        rate, low = self._rate(u), np.minimum(u, SMALL)
        series = low * (1 / 2 + low * (1 / 12 - low**2 * (1 / 720 - low**2 / 30240)))  # Bernoulli numbers over factorials
        return np.where(second, rate * np.where(u < SMALL, series, rate - 1 + np.minimum(u, 700.0)), u)


@dataclass(frozen=True)
class Frozen(InverseLink):
    """Any continuous distribution on all numbers, such as `scipy.stats.t(5)`; nothing is assumed of its losses."""

    distribution: Any

    def quantile(self, p):
        """Give F⁻¹(p)."""
        return self.distribution.ppf(p)

    def loss(self, z, second):
        """Give −log of the probability of the own class."""
        out = np.empty(z.shape)
        out[second], out[~second] = -self.distribution.logcdf(z[second]), -self.distribution.logsf(z[~second])
        return out

    def slope(self, z, second):
        """Give the derivative of the loss."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(second, -1.0, 1.0) * np.exp(self.distribution.logpdf(z) + self.loss(z, second))

    def curvature(self, z, second):
        """Give the second derivative of the loss, by differences of the first."""
        h = STEP * np.maximum(np.abs(z), 1.0)
        return (self.slope(z + h, second) - self.slope(z - h, second)) / (2 * h)


LINKS = {
    "probit": Symmetric(log_ndtr, normal_rate, normal_curvature, ndtri, convex=True),
    "logit": Symmetric(log_sigmoid, logistic_rate, logistic_curvature, logit, convex=True),
    "cloglog": ComplementaryLogLog(),
    "cauchit": Symmetric(cauchy_log_cdf, cauchy_rate, cauchy_curvature, cauchy_quantile, convex=False),
}


def inverse_link(link):
    """Return the inverse link of a name or of a frozen distribution.

    Examples
    --------
    >>> probit = inverse_link("probit")
    >>> probit.quantile([0.025, 0.5, 1.0])
    array([-1.95996398,  0.        ,         inf])
    >>> np.exp(probit.log_probabilities(np.array([-1.95996398, 40.0])))
    array([[0.975, 0.025],
           [0.   , 1.   ]])
    """
    if isinstance(link, str):
        return LINKS[link]
    low, high = link.support()
    if (low, high) != (-np.inf, np.inf):
        raise ValueError(f"link must be a distribution on all numbers; this one has the support ({low:g}, {high:g}).")
    return Frozen(link)
