"""How far a logistic fit can be from the optimum: a bound from its gradient and Hessian, at any scale.

Along any direction v the third derivative of the objective P is at most ρ(v) times the second, where ρ(v) is the largest range
of the scores of v over the rows; with R² = max ρ(v)²/vᵀHv, one pass over the rows, P(θ + v) ≥ P + g·v + (e⁻ᵃᴿ + aR − 1)/R² for
vᵀHv = a² [1]. With the Newton decrement ν² = gᵀH⁻¹g and t = νR < 1 the least value of the right-hand side is attained:

    P(θ) − min P ≤ (t + (1 − t) log(1 − t)) / R² = ν²/2 · (1 + t/3 + …),

and a minimum exists. No penalty, no tolerance and no units enter. Where the Hessian is too large to form, the penalty λ
gives a weaker bound: with the best intercept for these coefficients, P is λ-strongly convex in them, so the excess is at most
that of the intercept plus ‖g‖²/2λ.

[1] Bach, Electron. J. Statist. 4 (2010).
"""

import numpy as np

from lemmata.core.blocks import Largest
from lemmata.core.threads import serial_blas
from lemmata.linear_model.logistic_loss import probabilities, scores_of, standard
from lemmata.linear_model.logistic_solvers import DENSE, conjugate_gradients

SERIES = 1e-4  # below it t² exceeds what two terms of the series leave out, and the closed form begins to cancel
STILL = 1e-6  # of what its terms may add up to: a score that moves less does so by rounding, whose root H's eigenvectors have
ROUNDED = 1e-12  # of the number of rows: what rounding may leave of the sum of as many residuals
INTERCEPT_STEPS = 20  # Newton's method in as many dimensions as there are classes: five are usual


def leverage_block(X, y, weight, center, unit, halves, flats, lengths):
    """Return the largest squared length of a row of a block, in the metric that the halves of H⁻¹ for each score give.

    Also how far any score moves along the flat directions of H, and how far all parameters together could move one.
    """
    Z = standard(X, center, unit)[:, : halves.shape[1]]
    squares = max(float(((Z @ half) ** 2).sum(axis=1).max()) for half in halves)
    moves = max(float(np.abs(Z @ flat).max(initial=0.0)) for flat in flats)
    most = max(float((np.abs(Z) @ own).max()) for own in lengths)
    return Largest(squares), Largest(moves), Largest(most)


def intercept_block(X, y, weight, coef, intercept):
    """Sum over a block: the gradient in the intercepts, and the Hessian."""
    P = probabilities(scores_of(X, coef, intercept))
    s = np.ones(len(P)) if weight is None else weight
    residual = P - (y[:, None] == (1 if P.shape[1] == 1 else np.arange(P.shape[1])))
    return s @ residual, np.diag(s @ P) - (P.T * s) @ P


def excess(objective, theta):
    """Bound by how much the objective at θ exceeds its least value; say whether that is a "proof" or "evidence"."""
    value, gradient = objective(theta)
    if objective.n_parameters <= DENSE:
        return concordant_excess(objective, theta, gradient), "proof"
    if objective.penalty > 0:
        return convex_excess(objective, theta, value), "proof"
    with serial_blas():
        step = conjugate_gradients(lambda v: objective.curvature(theta, v), gradient, objective.preconditioner(theta))
    return gradient @ step / 2, "evidence"


def concordant_excess(objective, theta, gradient):
    """Bound the excess by self-concordance; infinite where the gradient is too large for it."""
    k, total = objective.n_scores, objective.total
    gradient, common = apart(objective, theta, gradient)
    with serial_blas():
        H = objective.hessian(theta) + objective.gauge()
        size = np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
        values, vectors = np.linalg.eigh(H / size / size[:, None])
        least = objective.ridge() / size**2 @ vectors**2  # the penalty's share, free of the rounding of the whole
        keep = (values > len(values) * np.finfo(float).eps * values[-1]) | (least > 0)  # else no score moves
        values = np.maximum(values, least)
        half, flat = vectors[:, keep] / np.sqrt(values[keep]) / size[:, None], vectors[:, ~keep] / size[:, None]
        decrement = total * float(((half.T @ gradient) ** 2).sum())
    by_score = [a.reshape(len(H) // k, k, a.shape[1]).swapaxes(0, 1) for a in (half, flat, 1 / size[:, None])]
    leverage, moves, most = objective.blocks.reduce(leverage_block, objective.center, objective.unit, *by_score)
    radius = (1 if k == 1 else 2) * np.sqrt(leverage.value / total)  # scores of several classes have twice the range of one
    t = np.sqrt(decrement) * radius
    if not t < 1 or moves.value > STILL * most.value:  # flat because all rows are certain, not because none moves
        return np.inf
    bound = decrement / 2 * (1 + t / 3 + t * t) if t < SERIES else (t + (1 - t) * np.log1p(-t)) / radius**2
    return bound / total + common


def apart(objective, theta, gradient):
    """Take out of a gradient what shifts the scores of all classes alike, and return the excess due to that shift.

    The loss does not see it, so the objective is the sum of the two parts, and the least of the second is zero.
    """
    if objective.n_scores == 1:
        return gradient, 0.0
    by_class = gradient.reshape(-1, objective.n_scores)
    shift = objective.parameters(theta)[0].mean(axis=1)
    excess = objective.penalty / 2 * objective.n_scores * float(shift @ shift) / objective.total
    return (by_class - by_class.mean(axis=1, keepdims=True)).ravel(), excess


def convex_excess(objective, theta, value):
    """Bound the excess by strong convexity in the coefficients, once the intercepts are the best for them."""
    coef, intercept = objective.parameters(theta)
    left, eps = 0.0, np.finfo(float).eps
    for _ in range(INTERCEPT_STEPS if objective.intercept else 0):
        g, H = objective.blocks.reduce(intercept_block, coef, intercept)
        step = np.linalg.lstsq(H, g, rcond=1e-12)[0]  # the common shift of all scores has no curvature
        left = float(g @ step) / objective.total  # twice what Newton's method expects to gain
        if left <= eps * value:
            break
        intercept = intercept - step
    if not left <= eps * value or (objective.intercept and np.abs(g - H @ step).max() > ROUNDED * objective.total):
        return np.inf  # the intercepts are too far off for Newton's method, or all rows certain
    best, gradient = objective(objective.theta(coef, intercept))
    columns = gradient.reshape(-1, objective.n_scores)[: len(objective.unit)] * objective.unit[:, None]
    return value - best + left + objective.total * float((columns**2).sum()) / (2 * objective.penalty)
