"""Intervals from bootstrap replicates θ*₁, …, θ*_B of an estimate θ̂, at level 1 − α.

    percentile    quantiles α/2 and 1 − α/2 of the replicates
    basic         2 θ̂ minus these quantiles, the upper one first
    normal        θ̂ − bias ± z · standard error
    studentized   θ̂ − se · quantiles of t* = (θ* − θ̂) / se*, the upper one first; on a scale on which the statistic is nearly
                  normal, where one is known (log of a variance, Fisher's z of a correlation)
    bca           quantiles Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))) of the replicates, z = ±z_{α/2}: corrected for bias and for a
                  spread that changes with θ [1]. z₀ = Φ⁻¹ of the share of replicates below θ̂, half of those that equal it
                  counted: for a median, nearly a fifth of them may. a = Σ u³ / (6 (Σ u²)^{3/2}), u the jackknife's influences
    expanded      bca with √(n / (n − 1)) t in place of z, t the quantile of Student's law with n − 1 degrees of freedom [2]:
                  resamples spread as σ̂ with divisor n does, and n rows know σ only so well. For a mean of normal rows this is
                  Student's interval but for the chance of the resamples

The acceleration is a skewness: of rows with heavy tails the sample's is noise, and "percentile" or "basic" cover better. The
studentized interval of a quantile covers too seldom, since its own standard error is known badly; "bca" is the one to use.
Quantiles are those that B + 1 numbers between replicates make: quantile p lies at place p (B + 1).

[1] Efron, JASA 82 (1987); DiCiccio & Efron, Statistical Science 11 (1996). [2] Hesterberg, The American Statistician 69 (2015).
"""

import warnings
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

METHODS = ("bca", "expanded", "percentile", "basic", "normal", "studentized")
EQUAL = 1e-10  # of the replicates' range: the same rows in another order may add up to a slightly different sum
AGAIN = 200  # resamples of the replicates, by which the chance in an interval is judged: its size is known to 5 %


class NoIntervalError(ValueError):
    """These replicates give no interval of this kind at this level."""


class Interval(NamedTuple):
    """Ends of an interval, numbers or arrays of the statistic's shape."""

    low: np.ndarray
    high: np.ndarray


class Evidence(NamedTuple):
    """What an interval of one number is made from; what a method does not need may be None."""

    estimate: float
    replicates: np.ndarray  # (B,), without those that are not defined
    bias: float
    standard_error: float
    influences: np.ndarray | None = None  # of the rows on the statistic, over their number
    freedom: int = 0  # rows less groups
    estimate_error: float | None = None  # the statistic's own estimate of its standard error
    errors: np.ndarray | None = None  # (B,), the same of the replicates
    line: tuple | None = None  # to the scale of the studentized interval, its slope, and back


def check_level(level, n_resamples):
    """Refuse a level that so many replicates cannot tell."""
    if not (isinstance(level, Real) and 0 < level < 1):
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}.")
    needed = int(np.ceil(2 / (1 - level) - 1e-9)) - 1  # the smallest replicate must lie at place p (B + 1) ≥ 1
    if n_resamples < needed:
        raise NoIntervalError(f"level={level} needs {needed} replicates or more; there are {n_resamples}: raise n_resamples.")


def interval_of(evidence, level, method):
    """Give the ends of an interval.

    Examples
    --------
    >>> evidence = Evidence(5.0, np.arange(1.0, 20.0), 5.0, 5.6)
    >>> interval_of(evidence, 0.9, "percentile"), interval_of(evidence, 0.9, "basic")
    ((1.0, 19.0), (-9.0, 9.0))
    """
    estimate, replicates = evidence.estimate, evidence.replicates
    if replicates.min() == replicates.max():
        if replicates[0] != estimate:
            raise NoIntervalError(
                f"All replicates are {replicates[0]} and the estimate is {estimate}: no interval tells anything."
            )
        return estimate, estimate
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "normal":
        low, high = estimate - evidence.bias + evidence.standard_error * ndtri(tails)
    elif method == "studentized":
        low, high = _studentized(evidence, tails)
    elif method == "basic":
        high, low = 2 * estimate - placed(replicates, tails)
    elif method == "percentile":
        low, high = placed(replicates, tails)
    else:
        z = ndtri(tails)
        if method == "expanded":
            z = stdtrit(evidence.freedom, tails) * np.sqrt((evidence.freedom + 1) / evidence.freedom)
        low, high = placed(replicates, _corrected(evidence, z))
    return float(low), float(high)


def placed(values, shares):
    """Find the values at places p (B + 1) of the order, between two of them in proportion."""
    return np.quantile(values, shares, method="weibull")


def _corrected(evidence, z):
    """Give the probabilities at which BCa reads the replicates."""
    above = evidence.replicates - evidence.estimate
    equal = np.abs(above) <= EQUAL * np.ptp(evidence.replicates)
    below = float(np.where(equal, 0.5, above < 0).mean())
    if not 0 < below < 1:
        raise NoIntervalError(
            f"The estimate {evidence.estimate:.6g} lies beyond all replicates, so bca and expanded intervals are not defined; "
            'method="basic" or "normal" is.'
        )
    shift = ndtri(below)
    moved = shift + z
    bend = 1 - acceleration(evidence.influences) * moved
    if (bend <= 0).any():
        raise NoIntervalError(
            'The jackknife finds the statistic too skewed for bca or expanded; use method="percentile" or "basic".'
        )
    shares, n = ndtr(shift + moved / bend), len(evidence.replicates)
    if shares[0] * (n + 1) < 1 or (1 - shares[1]) * (n + 1) < 1:
        warnings.warn(
            f"The interval would end beyond the outermost of {n} replicates and ends there: raise n_resamples.", stacklevel=2
        )
    return shares


def acceleration(influences):
    """Give a sixth of the skewness of the influences' sum; 0 if there are none.

    Examples
    --------
    >>> round(acceleration(np.array([-1.0, -1.0, 2.0])), 6)
    0.06804
    """
    largest = np.abs(influences).max()
    if largest == 0:
        return 0.0
    u = influences / largest
    return float((u**3).sum() / (6 * (u**2).sum() ** 1.5))


def _studentized(evidence, tails):
    estimate, error, replicates, errors = evidence.estimate, evidence.estimate_error, evidence.replicates, evidence.errors
    to_line, slope, from_line = evidence.line or (lambda v: v, lambda v: 1.0, lambda v: v)
    with np.errstate(divide="ignore", invalid="ignore"):
        center, error = to_line(estimate), error * slope(estimate)
        ratio = (to_line(replicates) - center) / (errors * slope(replicates))
    ratio = ratio[~np.isnan(ratio)]  # 0/0 at a replicate that equals the estimate and has no spread, or at an end of the scale
    if not (np.isfinite(error) and len(ratio)):
        raise NoIntervalError("The statistic has no standard error at this sample, so there is no studentized interval.")
    with np.errstate(invalid="ignore"):  # of infinite ratios, which are said below
        upper, lower = placed(ratio, tails)[::-1]
    low, high = center - error * upper, center - error * lower
    if not np.isfinite([low, high]).all():
        raise NoIntervalError(
            'Too many resamples have no spread of their own for a studentized interval; use method="bca" or more rows.'
        )
    return from_line(low), from_line(high)


def chance_of_ends(evidence, level, method, rng):
    """Estimate the standard deviations of the ends over the resamples drawn, by drawing anew among the replicates."""
    ends, n = [], len(evidence.replicates)
    for _ in range(AGAIN):
        chosen = rng.integers(n, size=n)
        replicates = evidence.replicates[chosen]
        errors = None if evidence.errors is None else evidence.errors[chosen]
        bias, spread = replicates.mean() - evidence.estimate, replicates.std(ddof=1)
        again = evidence._replace(replicates=replicates, errors=errors, bias=bias, standard_error=spread)
        ends.append(interval_of(again, level, method))
    return np.std(ends, axis=0, ddof=1)
