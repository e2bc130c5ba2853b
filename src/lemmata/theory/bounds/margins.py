"""Margin bounds: classifiers that are right by a margin, whatever the dimension of their space.

The margin of a point is y·f(x). With ramp_ρ(t) = clip(1 − t/ρ, 0, 1), 1 where t ≤ 0 and 0 from ρ on, the 0/1 risk is
at most the mean ramp plus (2/ρ)·E Rad(F) + √(ln(1/δ)/2n), where

    Rad(F) = E_σ sup_f (1/n)·Σ σᵢ f(xᵢ),   σᵢ = ±1 with equal chance,

is how well the class fits noise. (Others put 2/n and an absolute value; to mix the two loses or invents a factor 2.) With
the complexity of the sample itself in place of its expectation, the last term is 3√(ln(2/δ)/2n).

- Linear functions with ‖w‖ ≤ 1: Rad ≤ √(Σ K(xᵢ, xᵢ))/n, the root of the trace of the Gram matrix, at most r/√n on a ball.
  Divide a fitted (w, b) by its own norm, x extended by a fixed constant; an intercept that was not penalized counts too.
- Votes with Σ|α| = 1 over a class of base classifiers: a convex hull fits noise no better than its corners, and Massart's
  lemma gives √(2·ln G(n)/n) for these.

The width ρ must not be read off the sample, nor may the norm or the radius: here ρ = 2^(j/2) runs over the integers j, each at
δ times its weight, and the least of the bounds for −12 ≤ j ≤ 12 is taken, which is paid for.

Koltchinskii & Panchenko, Annals of Statistics 30 (2002). Bartlett & Mendelson, JMLR 3 (2002).
"""

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from lemmata.core.random import generator
from lemmata.theory.bounds.tails import check_count, check_delta, grid_weight

GRID = range(-12, 13)  # ρ from 1/64 to 64
ENUMERATED = 16  # points up to which all sign vectors are tried
AT_ONCE = 4096  # sign vectors


def ramp(margins, rho):
    """Return clip(1 − margin/ρ, 0, 1): at least the 0/1 loss, and 1/ρ-Lipschitz.

    Parameters
    ----------
    margins : Products y·f(x).
    rho : Width ρ > 0.

    Examples
    --------
    >>> ramp([-1.0, 0.0, 0.25, 3.0], rho=0.5)
    array([1. , 1. , 0.5, 0. ])
    """
    if not rho > 0:
        raise ValueError(f"The width rho of a ramp must be positive, not {rho!r}.")
    return np.clip(1 - np.asarray(margins, dtype=float) / rho, 0.0, 1.0)


def _least(margins, complexity, factor, failures, delta):
    """Return the least of mean ramp + (2/ρ)·complexity + factor·√(ln(failures/δ)/2n) over the grid of ρ, each δ weighted."""
    check_delta(delta)
    margins = np.asarray(margins, dtype=float)
    if margins.ndim != 1 or not len(margins) or not np.isfinite(margins).all():
        raise ValueError(f"margins must be one row of finite numbers, one for each point, not of shape {margins.shape}.")
    if not 0 <= complexity < np.inf:
        raise ValueError(f"The Gram trace, the radius and ln G(n) must be finite and not negative; got {complexity!r}.")
    bounds = []
    for j in GRID:
        rho, paid = 2.0 ** (j / 2), log(failures / (delta * grid_weight(j)))
        bounds.append(float(ramp(margins, rho).mean()) + 2 / rho * complexity + factor * sqrt(paid / (2 * len(margins))))
    return float(min(bounds))


def margin_bound(margins, trace, delta):
    """Bound the 0/1 risk of a linear or kernel classifier by its margins and the trace of the Gram matrix.

    Parameters
    ----------
    margins : Products y·f(x)/‖w‖ of the n training points; the norm includes an intercept that was not penalized.
    trace : Sum of K(x, x) over the same points, with the constant column if there is an intercept.
    delta : Probability of failure.

    Examples
    --------
    >>> margin_bound(np.repeat([-1.0, 0.5], [1000, 9000]), trace=10_000, delta=0.05)
    0.194412
    """
    if not trace >= 0:
        raise ValueError(f"The trace of a Gram matrix cannot be negative, but it is {trace!r}.")
    return _least(margins, sqrt(trace) / max(np.size(margins), 1), 3.0, 2.0, delta)


def margin_bound_known_radius(margins, radius, delta):
    """Bound the same risk where √K(x, x) ≤ r for every x there can be: 1 for an RBF kernel or rows divided by their norm.

    Parameters
    ----------
    margins : Products y·f(x)/‖w‖ of the n training points.
    radius : Bound r that holds surely; the largest norm in the sample is not one.
    delta : Probability of failure.

    Examples
    --------
    >>> margin_bound_known_radius(np.repeat([-1.0, 0.5], [1000, 9000]), radius=1.0, delta=0.05)
    0.157155
    """
    return _least(margins, radius / sqrt(max(np.size(margins), 1)), 1.0, 1.0, delta)


def boosting_margin_bound(margins, log_growth, delta):
    """Bound the 0/1 risk of a vote, however many take part in it, by its margins and the base class.

    Parameters
    ----------
    margins : Products y·Σ αₜ hₜ(x)/Σ|αₜ| of the n training points, in [−1, 1].
    log_growth : Function of m that returns ln G(m) of the base class, such as ``lambda m: log_stumps(m, d)``.
    delta : Probability of failure.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_stumps
    >>> boosting_margin_bound(np.repeat([-1.0, 0.5], [1000, 9000]), lambda m: log_stumps(m, 10), delta=0.05)
    0.314789
    """
    n = max(np.size(margins), 1)
    return _least(margins, sqrt(2 * float(log_growth(n)) / n), 1.0, 1.0, delta)


class RademacherComplexity(NamedTuple):
    """Empirical Rademacher complexity with an interval that holds it: of length zero if every sign vector was tried."""

    value: float
    low: float
    high: float


def empirical_rademacher(outputs, draws=10_000, delta=0.05, random_state=None):
    """Return E_σ max_f (1/n)·Σ σᵢ f(xᵢ) of finitely many functions: exactly up to 16 points, else by random signs.

    One sign moves the maximum by at most 2·max|f(xᵢ)|/n, so by McDiarmid's inequality the mean of M draws is farther than
    √(Σ max f(xᵢ)²)/n·√(2 ln(2/δ)/M) from the expectation with probability at most δ.

    Parameters
    ----------
    outputs : Values of the functions, one row for each, one column for each point.
    draws : Number M of random sign vectors where there are too many to try all.
    delta : Probability that the interval fails, where signs are random.
    random_state : Seed or generator.

    Returns
    -------
    complexity : `RademacherComplexity` with value, low and high.

    Examples
    --------
    >>> empirical_rademacher([[1.0, 1.0], [-1.0, -1.0]]).value
    0.5
    >>> labelings = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> empirical_rademacher(labelings).value
    1.0
    """
    check_delta(delta)
    outputs = np.asarray(outputs, dtype=float)
    if outputs.ndim != 2 or not outputs.size or not np.isfinite(outputs).all():
        raise ValueError("outputs must be a table of finite numbers: a row for each function, a column for each point.")
    n = outputs.shape[1]
    exact = n <= ENUMERATED
    draws = 2**n if exact else check_count(draws, "draws")
    rng = generator(random_state)
    total = 0.0
    for start in range(0, draws, AT_ONCE):
        stop = min(start + AT_ONCE, draws)
        bits = np.arange(start, stop)[:, None] >> np.arange(n) & 1 if exact else rng.integers(0, 2, size=(stop - start, n))
        total += float((outputs @ (2.0 * bits - 1).T).max(axis=0).sum())
    value = total / draws / n
    radius = 0.0 if exact else float(np.linalg.norm(np.abs(outputs).max(axis=0))) / n * sqrt(2 * log(2 / delta) / draws)
    return RademacherComplexity(value, value - radius, value + radius)


def linear_rademacher(X, norm=1.0):
    """Return Λ·√(Σ ‖xᵢ‖²)/n, which bounds the empirical Rademacher complexity of linear functions with ‖w‖ ≤ Λ.

    Parameters
    ----------
    X : Rows, (n, d).
    norm : Bound Λ of the norm.

    Examples
    --------
    >>> linear_rademacher([[3.0, 0.0], [0.0, 4.0]])
    2.5
    """
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or not len(X) or not np.isfinite(X).all() or not norm >= 0:
        raise ValueError("X must be a table of finite numbers with at least one row, and norm must not be negative.")
    return float(norm * np.linalg.norm(X) / len(X))
