"""Convexity, tested on chords and on Hessians, and Jensen's inequality.

f is convex if no chord runs below its graph, f(θx + (1 − θ)y) ≤ θ f(x) + (1 − θ) f(y) for 0 ≤ θ ≤ 1. Jensen's inequality says
the same of all averages at once: f(E X) ≤ E f(X). A positive semidefinite Hessian everywhere is sufficient, not necessary: |x|
is convex without one.

One chord below the graph is a proof that f is not convex. Any number of chords above it proves nothing: a test can only fail to
find a violation. A Hessian with a negative eigenvalue is a proof too, one without is one at its own point only.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lemmata.core.random import generator
from lemmata.probability.arrays import check_probabilities

ROUNDING = 1e-10  # of the values of f: what is smaller may be rounding, and is no violation
SHORTEST = 3  # half of the chords are shortened, at most to 10⁻³: dents are smaller than domains


def jensen_gap(f, x, p=None):
    """Return E f(X) − f(E X) of n points with probabilities: at least 0, up to rounding, if f is convex.

    Parameters
    ----------
    f : Function of one point that returns a number.
    x : Points, one for each entry of the first axis.
    p : Their probabilities; all equal if missing.

    Examples
    --------
    >>> jensen_gap(lambda x: x**2, [1.0, 3.0])  # the variance
    1.0
    """
    x = np.asarray(x, dtype=float)
    if x.ndim == 0 or len(x) == 0:
        raise ValueError("There must be at least one point, along the first axis of x.")
    p = np.full(len(x), 1 / len(x)) if p is None else check_probabilities(p)
    if p.shape != (len(x),):
        raise ValueError(f"There must be one probability for each of {len(x)} points; got the shape {p.shape}.")
    held = p > 0
    values = np.array([float(f(point)) for point in x[held]])
    return float(p[held] @ values) - float(f(np.tensordot(p, x, axes=1)))


class Witness(NamedTuple):
    """A chord that runs below the graph: f(θx + (1 − θ)y) exceeds θ f(x) + (1 − θ) f(y) by `amount`."""

    x: Any
    y: Any
    theta: float
    amount: float


@dataclass(frozen=True)
class ConvexityTest:
    """What a search for a chord below the graph found.

    Attributes
    ----------
    n_trials : Number of chords that were tried.
    witness : The `Witness` with the largest amount relative to the values of f; None if there is none.
    """

    n_trials: int
    witness: Witness | None

    @property
    def violated(self):
        """Whether a chord runs below the graph, which proves that f is not convex."""
        return self.witness is not None

    def __str__(self):
        if self.witness is None:
            return f"no violation found in {self.n_trials} trials"
        x, y, theta, amount = self.witness
        return f"not convex: at {theta:.3g} x + {1 - theta:.3g} y with x = {x}, y = {y} the chord is too low by {amount:.3g}"


def convexity_test(f, domain, n_trials=1000, random_state=None):
    """Search for a chord that runs below the graph of f.

    Parameters
    ----------
    f : Function of one point that returns a number, or infinity outside its domain.
    domain : A box (low, high) of numbers or arrays, or a function `sample(n, random_state)` that draws points of a convex set.
    n_trials : Number of chords; every second one is shortened, to find small dents too.
    random_state : Seed or generator.

    Returns
    -------
    result : `ConvexityTest`; a witness is a proof, no witness is none.

    Examples
    --------
    >>> print(convexity_test(abs, (-1.0, 1.0), random_state=0))
    no violation found in 1000 trials
    >>> convexity_test(np.sin, (0.0, 3.0), random_state=0).violated
    True
    """
    if n_trials < 1:
        raise ValueError(f"n_trials must be at least 1; got {n_trials}.")
    rng = generator(random_state)
    if not callable(domain) and len(domain) != 2:
        raise ValueError(f"domain must be a box (low, high), or a function that draws points; got {domain!r}.")
    sample = domain if callable(domain) else _box(*domain)
    starts, ends = np.asarray(sample(n_trials, rng)), np.asarray(sample(n_trials, rng))
    shares = 10.0 ** (-SHORTEST * rng.random(n_trials) * (np.arange(n_trials) % 2))
    worst, witness = ROUNDING, None
    for x, y, share, theta in zip(starts, ends, shares, rng.random(n_trials), strict=True):
        y = x + share * (y - x)
        here, there, between = (_value(f, point) for point in (x, y, theta * x + (1 - theta) * y))
        if max(here, there) == np.inf:  # a chord from outside the domain of f is infinitely high
            continue
        amount = between - (theta * here + (1 - theta) * there)
        relative = amount / max(abs(here), abs(there), min(abs(between), np.finfo(float).max), np.finfo(float).tiny)
        if relative > worst:
            worst, witness = relative, Witness(x, y, float(theta), float(amount))
    return ConvexityTest(n_trials, witness)


def _value(f, point):
    value = float(f(point))
    if np.isnan(value) or value == -np.inf:
        raise ValueError(f"f must be a number or +infinity, and it is {value} at {point}; is the domain too large?")
    return value


def _box(low, high):
    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    if not ((low < high) & np.isfinite(low) & np.isfinite(high)).all():
        raise ValueError(f"A box has finite bounds, and low < high; got {low} and {high}.")
    return lambda n, rng: rng.uniform(low, high, size=(n, *low.shape))


class Curvature(NamedTuple):
    """The least eigenvalue of a Hessian, and the point and the direction (a unit vector) in which it was found."""

    value: float
    point: Any
    direction: np.ndarray


def least_curvature(hessian, points):
    """Return the least eigenvalue of a Hessian over some points.

    If it is negative, f is not convex: along the direction it bends down. If not, f is convex near these points, if strictly
    positive; all points of a convex set would prove it there.

    Parameters
    ----------
    hessian : Function of a point that returns a symmetric matrix, or a number for functions of a number.
    points : Points, one for each entry of the first axis.

    Examples
    --------
    >>> least_curvature(lambda x: [[2.0, 0.0], [0.0, 6 * x[1]]], [[0.0, 1.0], [1.0, -0.5]])
    Curvature(value=-3.0, point=array([ 1. , -0.5]), direction=array([0., 1.]))
    """
    points = np.asarray(points, dtype=float)
    if points.ndim == 0 or len(points) == 0:
        raise ValueError("There must be at least one point, along the first axis of points.")
    least = None
    for point in points:
        matrix = np.atleast_2d(np.asarray(hessian(point), dtype=float))
        if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-6 * np.abs(matrix).max()):  # differences leave 10⁻⁸
            raise ValueError(f"A Hessian must be symmetric, and at {point} it is not.")
        values, vectors = np.linalg.eigh(matrix)
        if least is None or values[0] < least.value:
            least = Curvature(float(values[0]), point, vectors[:, 0])
    return least
