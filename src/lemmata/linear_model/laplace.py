"""Laplace's approximation of the posterior of a logistic model, its evidence, and averages over it.

With H the Hessian of P(θ) = −Σ s log p(y | x, θ) + ½λ‖w‖² at its minimum θ̂, the posterior is about N(θ̂, H⁻¹). The evidence
under w ~ N(0, λ⁻¹I) and a flat prior (of density one) on b is about −P(θ̂) + ½d log λ − ½ log |H| (+ ½ log 2π for b) [1].
Let c be the mean of the rows with the weights s p(1 − p): the score at c and the coefficients are independent, so with Σ = LLᵀ
the covariance of w, a score has the variance (x − c)ᵀΣ(x − c) + 1/Σ s p(1 − p), a sum of squares however far from zero the
data lie. The slope of the log evidence in log λ is ½[d − λ‖ŵ‖² − λ tr Σ − Σ s p(1 − p)(1 − 2p) ż v], where v is the variance
of a row's score and ż = −λ(x − c)ᵀΣŵ its own slope; MacKay's fixed point [2] leaves out the last term.

[1] Spiegelhalter & Lauritzen, Networks 20 (1990). [2] MacKay, Neural Computation 4 (1992).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from lemmata.core.data import is_sparse
from lemmata.core.threads import serial_blas
from lemmata.linear_model import logistic_solvers
from lemmata.linear_model.links import sigmoid
from lemmata.linear_model.logistic_loss import probabilities, scores_of
from lemmata.linear_model.posterior import lower
from lemmata.optimize.lbfgs import lbfgs_start

EPS = float(np.finfo(float).eps)
STEP = 0.5  # of the quadratures: their error is about exp(−2π²/STEP) and less than rounding
DECADE = np.log(10.0)
NARROW = 14  # decades above the first guess of λ, where the coefficients are zero for all purposes
WIDE_PRIOR = 8  # decades below it, where only scores that separate the classes are still better
REFITS = 50  # Newton steps of a refit from a neighbor's mode: three are usual
PRECISE = 1e-12  # gradient of a refit: the slope of the evidence is to have nine digits


class Laplace(NamedTuple):
    """The normal approximation, in the units of the data: w ~ N(ŵ, LLᵀ), and independently the score at the center."""

    center: np.ndarray  # (d,)
    root: np.ndarray  # (d, d) lower triangle L
    center_variance: float
    log_evidence: float


def about_center(problem, theta):
    """Return the Hessian of the coefficients about the center of the rows, that center, and Σ s p(1 − p): standard units."""
    with serial_blas():
        H = problem.hessian(theta) * problem.total
    d = len(problem.unit)
    if not problem.intercept:
        return H, np.zeros(d), np.inf
    u = H[:d, d] / H[d, d]
    return H[:d, :d] - H[d, d] * np.outer(u, u), u, H[d, d]


def laplace(problem, theta):
    """Approximate the posterior at its mode."""
    S, u, weight = about_center(problem, theta)
    with serial_blas():
        size = np.sqrt(np.maximum(np.diag(S), problem.penalty / problem.unit**2))
        try:
            R = np.linalg.cholesky(S / size / size[:, None])
        except np.linalg.LinAlgError:
            raise ValueError(
                f"The prior precision {problem.penalty:.3g} is lost in the rounding of columns that depend on each other; "
                "give a larger one, or leave such columns out."
            ) from None
        half = solve_triangular(R, np.eye(len(R)), lower=True).T / (size * problem.unit)[:, None]
        root = lower(half)
    log_determinant = 2 * np.log(np.diag(R)).sum() + 2 * np.log(size).sum() + 2 * np.log(problem.unit).sum()
    evidence = -problem(theta)[0] * problem.total + (len(R) * np.log(problem.penalty) - log_determinant) / 2
    if problem.intercept:
        evidence += np.log(2 * np.pi / weight) / 2
    return Laplace(problem.center + problem.unit * u, root, 1 / weight, float(evidence))


def offsets(X, center):
    """Dense rows less the center."""
    return (X.toarray() if is_sparse(X) else X) - center


def score_block(X, weight, coef, intercept, center, root, center_variance):
    """Mean and variance of the score of each row."""
    return scores_of(X, coef, intercept)[:, 0], ((offsets(X, center) @ root) ** 2).sum(axis=1) + center_variance


def turning_block(X, y, weight, coef, intercept, center, root, center_variance, direction):
    """Sum over a block s p(1 − p)(1 − 2p) ż v: how much the curvature changes as the mode moves, weighed by the variances."""
    p, Z = probabilities(scores_of(X, coef, intercept))[:, 0], offsets(X, center)
    terms = p * (1 - p) * (1 - 2 * p) * (Z @ direction) * (((Z @ root) ** 2).sum(axis=1) + center_variance)
    return float(terms.sum() if weight is None else weight @ terms)


def evidence_slope(problem, theta, found):
    """Return the derivative of the log evidence by log λ, the mode following."""
    coef, intercept = problem.parameters(theta)
    w, d, precision = coef[:, 0], len(coef), problem.penalty
    direction = -precision * (found.root @ (found.root.T @ w))
    turning = problem.blocks.reduce(turning_block, coef, intercept, *found[:3], direction)
    return (d - precision * (w @ w + (found.root**2).sum()) - turning) / 2


def refitted(problem, theta):
    """Return the mode, from one nearby."""
    state = lbfgs_start(problem, theta)[:3]
    for _ in range(REFITS):
        after, _, residual = logistic_solvers.newton_step(problem, state)
        if after is state or residual <= PRECISE:
            return after[0]
        state = after
    return state[0]


def evidence_start(problem, theta):
    """Evaluate the evidence at a precision under which scores vary by about one.

    The state is (log λ, slope, both at the step before, ends of an interval around the top, first log λ, mode).
    """
    largest = problem.unit.max()
    rho = float(np.log(((problem.unit / largest) ** 2).sum()) + 2 * np.log(largest))
    return evidence_at(problem, rho, theta, (np.nan, np.nan, -np.inf, np.inf, rho))[0]


def evidence_at(problem, rho, theta, rest):
    """Evaluate the evidence at log λ and return (state, value)."""
    problem = replace(problem, penalty=float(np.exp(rho)))
    theta = refitted(problem, theta)
    found = laplace(problem, theta)
    return (rho, evidence_slope(problem, theta, found), *rest, theta), found.log_evidence


def evidence_step(problem, state):
    """Move log λ uphill: by decades until the top is passed, then by secants that halve the last step, else by halving."""
    rho, slope, before, last, low, high, first, theta = state
    low, high = (rho, high) if slope > 0 else (low, rho)
    if low == -np.inf or high == np.inf:
        to = rho + (DECADE if slope > 0 else -DECADE)
    else:
        to = rho - slope * (rho - before) / (slope - last) if slope != last else np.inf
        if not (low < to < high and abs(to - rho) <= abs(rho - before) / 2):
            to = (low + high) / 2
    if to < first - WIDE_PRIOR * DECADE:
        raise ValueError(
            "The evidence rises without end as the prior widens, as it does where a plane separates the classes: "
            "give prior_precision a number."
        )
    after, value = evidence_at(problem, to, theta, (rho, slope, low, high, first))
    flat, settled = to >= first + NARROW * DECADE, abs(to - rho) <= 4 * EPS * abs(rho)
    return after, -value, 0.0 if flat or settled else abs(after[1])


def moderated(mean, variance):
    """Return the probit approximation σ(μ/√(1 + πv/8)) of E σ(N(μ, v)), within 0.02.

    Examples
    --------
    >>> moderated(np.array([2.0]), np.array([4.0]))
    array([0.776845])
    """
    return sigmoid(mean / np.sqrt(1 + np.pi * variance / 8))


def averaged(mean, variance):
    """Return E σ(N(μ, v)) to rounding.

    It is also E Φ((μ − T)/√v) for a logistic T. The trapezoidal rule converges exponentially for either; the first for small v,
    the second for large.

    Examples
    --------
    >>> averaged(np.array([2.0, 2.0]), np.array([0.0, 4.0]))
    array([0.88079708, 0.77520025])
    """
    deviation, narrow = np.sqrt(variance), variance <= 1
    out = np.zeros(len(mean))
    nodes = STEP * np.arange(-17, 18)  # φ(8.5) is below rounding
    odds = np.exp(-(nodes**2) / 2)
    for t, share in zip(nodes, odds / odds.sum(), strict=True):
        out[narrow] += share * sigmoid(mean[narrow] + deviation[narrow] * t)
    nodes = STEP * np.arange(-76, 77)  # so is σ(−38)
    odds = sigmoid(nodes) * sigmoid(-nodes)
    for t, share in zip(nodes, odds / odds.sum(), strict=True):
        out[~narrow] += share * ndtr((mean[~narrow] - t) / deviation[~narrow])
    return out
