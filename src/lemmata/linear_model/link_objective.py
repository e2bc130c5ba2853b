"""The objective of a regression with any inverse link, as sums over blocks, and how far a fit is from its least value.

P(θ) = (1/S) [Σᵢ sᵢ ℓᵢ(zᵢ) + ½λ‖w‖²], z = x·w + b, in the standard coordinates of `logistic_loss`. If every ℓ is convex, let
δ be the Newton step from θ. The slopes aᵢ = ℓᵢ′(zᵢ) + ℓᵢ″(zᵢ) (xᵢ·δw + δb) satisfy Σ s a x + λ(w + δw) = 0 and Σ s a = 0, so by
Fenchel's inequality no parameters have an objective below

    D = (1/S) [−Σ sᵢ ℓᵢ*(aᵢ) − ½λ‖w + δw‖²],    ℓ* the convex conjugate.

P − D is half the squared Newton decrement to leading order, whatever the units and the penalty; where some a is no slope of
its loss, a point nearer to the optimum gives one, and the bound. Without a penalty,
slopes that balance, Σ s a x̃ = 0, also prove that an optimum exists: no plane separates the classes [1]. Where the Hessian is
too large to form, the penalty gives a weaker bound, as in `logistic_bounds`.

[1] Albert & Anderson, Biometrika 71 (1984).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from lemmata.core.data import is_sparse
from lemmata.core.threads import serial_blas
from lemmata.linear_model.inverse_links import InverseLink
from lemmata.linear_model.logistic_loss import (
    Objective,
    factored,
    objective,
    scores_of,
    sparse_product,
    standard,
    weighted_gram,
)
from lemmata.linear_model.logistic_solvers import DENSE, conjugate_gradients, newton_step

BALANCED = 1e-9  # imbalance of the slopes that is rounding, relative to what cancels in it
KEPT = 1e-3  # share of a slope that a step must leave: less may be nothing but rounding, where classes are separable
RIDGE = 1e-12  # added to a Hessian of unit diagonal: more than its rounding, less than what moves any score
BLIND = 1e-30  # of the largest curvature: what a constant column has by rounding, whose square this is
REFINEMENTS = 3  # of a solution with the ridge, to one without it
TRIES = 5  # Newton steps towards slopes that are slopes; a fit of the usual precision needs none
INTERCEPT_STEPS = 20  # Newton's method for one number: five are usual


def link_gradient_block(X, y, weight, coef, intercept, link):
    """Sum over a block: loss, slopes (1,), and slopes times columns (d, 1)."""
    z, second = scores_of(X, coef, intercept)[:, 0], y == 1
    loss, slope = link.loss(z, second), link.slope(z, second)
    if weight is not None:
        loss, slope = weight * loss, weight * slope
    return float(loss.sum()), np.array([slope.sum()]), transposed(X, slope)


def transposed(X, r):
    """Return Xᵀ·r as a column."""
    if is_sparse(X):
        return sparse_product(X.data, X.indices, X.indptr, r[:, None], X.shape[1])
    return X.astype(float, copy=False).T @ r[:, None]


def bends(X, y, weight, coef, intercept, link, expected):
    """Weighted curvature of the loss of each row, observed or expected."""
    z = scores_of(X, coef, intercept)[:, 0]
    bend = link.information(z) if expected else link.curvature(z, y == 1)
    return bend if weight is None else weight * bend


def link_hessian_block(X, y, weight, coef, intercept, link, expected, center, unit):
    """Sum over a block the Hessian, or the information, in standard coordinates."""
    bend, Z = bends(X, y, weight, coef, intercept, link, expected), standard(X, center, unit)
    return weighted_gram(Z, bend) if expected or link.convex else (Z.T * bend) @ Z


def link_curvature_block(X, y, weight, coef, intercept, link, expected, direction, slope):
    """Sum over a block the Hessian times a direction: (1,) for the intercept and (d, 1)."""
    bend = bends(X, y, weight, coef, intercept, link, expected) * scores_of(X, direction, slope)[:, 0]
    return np.array([bend.sum()]), transposed(X, bend)


def link_diagonal_block(X, y, weight, coef, intercept, link, expected):
    """Sum over a block the diagonal of the Hessian: (d, 1) for the columns, (1,) for the intercept."""
    bend = bends(X, y, weight, coef, intercept, link, expected)[:, None]
    return (X.multiply(X) if is_sparse(X) else X.astype(float, copy=False) ** 2).T @ bend, bend.sum(axis=0)


def conjugate_block(X, y, weight, coef, intercept, link, direction, slope, center, unit):
    """Sum over a block s ℓ*(a) for the slopes a after a Newton step, and the sizes of what cancels in Σ s a x̃."""
    z, step, second = scores_of(X, coef, intercept)[:, 0], scores_of(X, direction, slope)[:, 0], y == 1
    before = link.slope(z, second)
    a = before + link.curvature(z, second) * step
    conjugate = np.where(np.abs(a - before) <= (1 - KEPT) * np.abs(before), link.conjugate(a, second, z + step), np.inf)
    if weight is not None:
        conjugate, a = weight * conjugate, weight * a
    return float(conjugate.sum()), np.abs(a) @ np.abs(standard(X, center, unit))


@dataclass(frozen=True)
class LinkObjective(Objective):
    """The objective of a link on some rows; see `logistic_loss.Objective`.

    Parameters
    ----------
    link : The inverse link.
    expected : Whether the information stands in for the Hessian everywhere.
    """

    link: InverseLink
    expected: bool

    def __call__(self, theta):
        """Return the value and the gradient."""
        coef, intercept = self.parameters(theta)
        loss, constant, g = self.blocks.reduce(link_gradient_block, coef, intercept, self.link)
        value = (loss + self.penalty / 2 * (coef**2).sum()) / self.total
        return value, self._assembled(constant, g, coef) / self.total

    def hessian(self, theta):
        """Return the Hessian, or the information where that is asked for or the Hessian is not positive definite."""
        if not self.expected:
            H = self.second_derivatives(theta, expected=False)
            if self.link.convex or definite(H):
                return H
        return self.second_derivatives(theta, expected=True)

    def second_derivatives(self, theta, *, expected):
        """Return the Hessian, definite or not, or the information."""
        parameters = (*self.parameters(theta), self.link, expected, self.center, self.unit)
        return self._kept(self.blocks.reduce(link_hessian_block, *parameters)) / self.total

    def curvature(self, theta, direction):
        """Return the Hessian, or the information, times a direction."""
        along, slope = self.parameters(direction)
        parameters = (*self.parameters(theta), self.link, self.expected or not self.link.convex, along, slope)
        return self._assembled(*self.blocks.reduce(link_curvature_block, *parameters), along) / self.total

    def gauge(self):
        """Fill the directions that no score sees, such as those of equal columns, with a little curvature."""
        return RIDGE * np.eye(self.n_parameters)

    def _diagonal(self, theta):
        expected = self.expected or not self.link.convex
        columns, constant = self.blocks.reduce(link_diagonal_block, *self.parameters(theta), self.link, expected)
        scale = (columns[:, 0] + self.penalty) / self.unit**2
        scale = (np.append(scale, constant) if self.intercept else scale) / self.total
        scale = np.maximum(scale, np.finfo(float).eps * scale.max())
        return lambda g: g / scale


def definite(H):
    """Tell whether a symmetric matrix is positive definite."""
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return False
    return True


def link_objective(blocks, link, penalty, intercept, *, expected=False):
    """Describe the problem in standard coordinates."""
    return LinkObjective(**vars(objective(blocks, 1, penalty, intercept)), link=link, expected=expected)


def excess(problem, theta):
    """Bound by how much a convex objective exceeds its least value at θ; say whether that is a "proof" or "evidence"."""
    value, gradient = problem(theta)
    if problem.n_parameters <= DENSE:
        return dual_excess(dual_value, problem, theta, value, gradient), "proof"
    if problem.penalty > 0:
        return convex_excess(problem, theta, value), "proof"
    with serial_blas():
        step = conjugate_gradients(lambda v: problem.curvature(theta, v), gradient, problem.preconditioner(theta))
    return gradient @ step / 2, "evidence"


def dual_excess(dual_value, problem, theta, value, gradient):
    """Bound the excess by the dual point that a Newton step gives, at θ or nearer to the optimum; infinite if none does.

    dual_value(problem, θ, gradient) is a lower bound of the objective, −∞ where the step leads to no dual point.
    """
    state = (theta, value, gradient)
    for _ in range(TRIES):
        dual = dual_value(problem, state[0], state[2])
        if dual > -np.inf:
            return value - dual
        state, _, _ = newton_step(problem, state)
    return np.inf


def dual_value(problem, theta, gradient):
    """Return the dual objective at the slopes after a Newton step: a lower bound, −∞ where one of them is no slope."""
    step, left = balanced_step(problem, theta, gradient)
    coef, intercept = problem.parameters(theta)
    along, slope = problem.parameters(step)
    parameters = (coef, intercept, problem.link, along, slope, problem.center, problem.unit)
    conjugate, size = problem.blocks.reduce(conjugate_block, *parameters)
    if problem.total * np.abs(left).max() > BALANCED * size.max():
        return -np.inf
    rounding = np.abs(left) @ np.abs(theta)  # what is left of the balance
    return -(conjugate + problem.penalty / 2 * ((coef + along) ** 2).sum()) / problem.total - rounding


def balanced_step(problem, theta, gradient):
    """Return −H⁻¹·gradient, and what it leaves of gradient + H·step."""
    with serial_blas():
        H = problem.hessian(theta)
        diagonal = np.diag(H)
        size = np.where(diagonal > BLIND * diagonal.max(), np.sqrt(np.abs(diagonal)), 1.0)
        factor = factored(H / size / size[:, None] + RIDGE * np.eye(len(H)))
        step, left = np.zeros(len(gradient)), gradient
        for _ in range(REFINEMENTS):
            step = step - cho_solve(factor, left / size) / size
            left = gradient + H @ step
    return step, left


def convex_excess(problem, theta, value):
    """Bound the excess by strong convexity in the coefficients, once the intercept is the best for them."""
    theta, last = theta.copy(), np.append(np.zeros(len(theta) - 1), 1.0)
    for _ in range(INTERCEPT_STEPS if problem.intercept else 0):
        step = problem(theta)[1][-1] / problem.curvature(theta, last)[-1]
        theta[-1] -= step
        if abs(step) <= 1e-12 * (1 + abs(theta[-1])):  # a few thousand roundings
            break
    best, gradient = problem(theta)
    columns = gradient[: len(problem.unit)] * problem.unit
    return value - best + problem.total * float(columns @ columns) / (2 * problem.penalty)
