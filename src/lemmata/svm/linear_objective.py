"""What linear support vector machines minimize, smooth or smoothed, as sums over blocks.

P(w, b) = Σᵢ cᵢ ℓ(tᵢ − w·xᵢ − b) + ½‖w‖²,  cᵢ = C sᵢ, over planes with a free intercept. A row costs, at the residual r = t − f,

    ℓ(r) = max over slopes a in A of  a·r − ε|a| − ½μ a²,

with A = [0, 1] for a row of the class t = 1, [−1, 0] for t = −1 and [−1, 1] in regression: hinge and ε-insensitive loss for
μ = 0. For μ = ½ and slopes of any size it is the square of those losses. So all of them are one problem, and its dual is

    max over a of  Σ cᵢ (tᵢ aᵢ − ε|aᵢ| − ½μ aᵢ²) − ½‖Σ cᵢ aᵢ xᵢ‖²,    Σ cᵢ aᵢ = 0, which the free intercept asks for;

at the optimum w = Σ cᵢ aᵢ xᵢ. With μ > 0 the loss has a derivative, −a, which is piecewise linear. Where μ = 0 the solver sees
the loss through a proximal term ½μ(a − a⁰)² around slopes a⁰ of its own, which moves the minimum less and less as a⁰ comes
near the optimal slopes. Slopes are never stored: a⁰ is what the steps so far make of a row, `replayed` where the row lives.
Coordinates are the standard ones of `logistic_loss`, and sums are divided by S = Σ sᵢ, so that C enters as the penalty 1/C.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lemmata.core.blocks import ArrayBlocks
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.linear_model.logistic_loss import Objective

CLASSES = 0.5  # slope of a row of a class before anything is known: in the middle of those it may have


class Loss(NamedTuple):
    """What a row costs, and what makes a row of one: target and weight."""

    two_sided: bool  # regression, rather than classes
    bounded: bool  # slopes of at most 1 in size, rather than any: the loss, rather than its square
    epsilon: float
    positive: int  # number of the class whose target is 1; those of the rest are −1
    class_weight: np.ndarray | None


class Step(NamedTuple):
    """A proximal step: at these planes the slopes moved by the residual over the width."""

    coef: np.ndarray
    intercept: float
    width: float


@kernel
def slope_at(r, t, center, width, epsilon, two_sided, bounded):
    """Return the slope that the smoothed loss has at a residual, and how much it changes with the residual."""
    e = epsilon / width
    a = center + r / width
    bend = 1.0 / width
    if e > 0:
        if a > e:
            a -= e
        elif a < -e:
            a += e
        else:
            a, bend = 0.0, 0.0
    if not two_sided and a * t < 0:
        a, bend = 0.0, 0.0
    if bounded and abs(a) > 1:
        a, bend = np.sign(a), 0.0
    return a, bend


@kernel
def slopes_of(z, t, center, width, epsilon, two_sided, bounded, slopes, bends):
    """Fill in slopes and their changes for the scores of some rows."""
    for i in range(len(z)):
        own = 0.0 if center is None else center[i]
        slopes[i], bends[i] = slope_at(t[i] - z[i], t[i], own, width, epsilon, two_sided, bounded)


@kernel
def costs_of(z, t, s, slopes, center, width, epsilon, two_sided, bounded):
    """Sum over rows: smoothed losses, losses, and by how much each loss exceeds what its slope proves."""
    smoothed, total, excess = 0.0, 0.0, 0.0
    for i in range(len(z)):
        r, a, weight = t[i] - z[i], slopes[i], 1.0 if s is None else s[i]
        own = 0.0 if center is None else center[i]
        over = max((abs(r) if two_sided else r * t[i]) - epsilon, 0.0)
        proved = a * r - epsilon * abs(a)
        smoothed += weight * (proved - width / 2 * (a - own) ** 2)
        total += weight * (over if bounded else over * over)
        if bounded:
            excess += weight * (over - proved)
        else:
            excess += weight * (over - abs(a) / 2) ** 2
    return smoothed, total, excess


@kernel
def line_slope(step, r, dz, t, s, center, width, epsilon, two_sided, bounded):
    """Return the derivative along a line of the sum of smoothed losses, and the derivative of that."""
    first, second = 0.0, 0.0
    for i in range(len(r)):
        own = 0.0 if center is None else center[i]
        a, bend = slope_at(r[i] - step * dz[i], t[i], own, width, epsilon, two_sided, bounded)
        weight = 1.0 if s is None else s[i]
        first -= weight * a * dz[i]
        second += weight * bend * dz[i] * dz[i]
    return first, second


def rows_of(y, weight, loss):
    """Return targets and weights of a block."""
    y = np.asarray(y)
    t = y.astype(float) if loss.two_sided else np.where(y == loss.positive, 1.0, -1.0)
    s = None if weight is None else np.asarray(weight, dtype=float)
    if loss.class_weight is not None:
        s = loss.class_weight[y] if s is None else s * loss.class_weight[y]
    return t, s


def scores(X, coef, intercept):
    """Scores of a block in float64, for one vector of coefficients or several columns of them."""
    return (X if is_sparse(X) else X.astype(float, copy=False)) @ coef + intercept


def transposed(X, r):
    """Return Xᵀ·r."""
    return X.T @ r if is_sparse(X) else X.astype(float, copy=False).T @ r


def slopes_block(X, t, center, coef, intercept, width, loss):
    """Scores, slopes and their changes for the rows of a block."""
    z = scores(X, coef, intercept)
    slopes, bends = np.empty_like(z), np.empty_like(z)
    slopes_of(z, t, center, width, loss.epsilon, loss.two_sided, loss.bounded, slopes, bends)
    return z, slopes, bends


def centers_block(X, y, weight, loss, path):
    """Replay the proximal steps so far: the slopes around which the next one is taken; None before the first."""
    if not loss.bounded:
        return None
    t, _ = rows_of(y, weight, loss)
    center = np.zeros(len(t)) if loss.two_sided else CLASSES * t
    for step in path:
        _, center, _ = slopes_block(X, t, center, step.coef, step.intercept, step.width, loss)
    return center


class Replayed:
    """A block kernel that is told the slopes to be near to, as the steps so far give them."""

    def __init__(self, function, loss, path):
        self.function, self.loss, self.path = function, loss, path

    def __call__(self, X, y, weight, *params):
        """Work on a block."""
        return self.function(X, y, weight, centers_block(X, y, weight, self.loss, self.path), *params)


def gradient_block(X, y, weight, center, coef, intercept, width, loss):
    """Sum over a block: smoothed losses, losses, excess, minus the slopes (1,), and minus the slopes times columns."""
    t, s = rows_of(y, weight, loss)
    z, slopes, _ = slopes_block(X, t, center, coef, intercept, width, loss)
    sums = costs_of(z, t, s, slopes, center, width, loss.epsilon, loss.two_sided, loss.bounded)
    g = -slopes if s is None else -s * slopes
    return *sums, np.array([g.sum()]), transposed(X, g)[:, None]


def bend_block(X, y, weight, center, coef, intercept, width, loss):
    """Curvature of the smoothed loss of each row, with its weight."""
    t, s = rows_of(y, weight, loss)
    bends = slopes_block(X, t, center, coef, intercept, width, loss)[2]
    return bends if s is None else s * bends


def hessian_block(X, y, weight, center, coef, intercept, width, loss, center_x, unit):
    """Sum over a block the Hessian in standard coordinates, from the rows where the loss curves."""
    bends = bend_block(X, y, weight, center, coef, intercept, width, loss)
    curved = np.flatnonzero(bends)
    rows = X[curved]
    Z = (rows.toarray() if is_sparse(rows) else rows.astype(float, copy=False)) - center_x
    Z /= unit
    R = np.hstack([Z, np.ones((len(curved), 1))]) * np.sqrt(bends[curved])[:, None]
    return R.T @ R


def line_block(X, y, weight, center, coef, intercept, along, slope, loss):
    """Residuals, the change of the scores along a direction, targets, weights and centers of the rows of a block."""
    t, s = rows_of(y, weight, loss)
    both = scores(X, np.column_stack([coef, along]), np.array([intercept, slope]))
    s = np.ones(len(t)) if s is None else s
    center = np.zeros(len(t)) if center is None else center
    return t - both[:, 0], np.ascontiguousarray(both[:, 1]), t, s, center


@kernel
def sparse_product(data, indices, indptr, bends, direction, slope):
    """Return bends times scores, summed over CSR rows, and the same times columns."""
    constant, g = 0.0, np.zeros(len(direction))
    for i in range(len(indptr) - 1):
        z = slope
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            z += data[e] * direction[np.uint64(indices[e])]
        z *= bends[i]
        constant += z
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            g[np.uint64(indices[e])] += z * data[e]
    return constant, g


def product_block(X, bends, direction, slope):
    """Sum over a block of curved rows the Hessian of the losses times a direction: (1,) for the intercept and (d, 1)."""
    if is_sparse(X):
        constant, g = sparse_product(X.data, X.indices, X.indptr, bends, direction, slope)
        return np.array([constant]), g[:, None]
    r = bends * scores(X, direction, slope)
    return np.array([r.sum()]), transposed(X, r)[:, None]


def squares_block(X, bends, center):
    """Sum over a block of curved rows the diagonal of the Hessian."""
    return (X.multiply(X) if is_sparse(X) else (X - center) ** 2).T @ bends, bends.sum()


@dataclass(frozen=True)
class MarginObjective(Objective):
    """The smoothed objective on some rows; see `logistic_loss.Objective`.

    Parameters
    ----------
    loss : What a row costs.
    path : Proximal steps so far.
    width : μ of the next one, or ½ for squared losses.
    known : Whether the blocks hold the slopes to be near to, rather than have them replayed.
    """

    loss: Loss
    path: tuple
    width: float
    known: bool

    def over(self, verb, function, *params):
        """Run a block kernel that is told the slopes to be near to."""
        function = function if self.known else Replayed(function, self.loss, self.path)
        return getattr(self.blocks, verb)(function, *params)

    def at(self, theta):
        """Return coefficients (d,), intercept, width and loss: what the block kernels take."""
        coef, intercept = self.parameters(theta)
        return coef[:, 0], float(intercept[0]), self.width, self.loss

    def evaluate(self, theta):
        """Return smoothed value, gradient, value, and by how much the value exceeds what balanced slopes would prove."""
        coef = self.at(theta)[0]
        smoothed, total, excess, constant, g = self.over("reduce", gradient_block, *self.at(theta))
        penalty = self.penalty / 2 * float(coef @ coef)
        gradient = self._assembled(constant, g, coef[:, None]) / self.total
        return (smoothed + penalty) / self.total, gradient, (total + penalty) / self.total, excess / self.total

    def __call__(self, theta):
        """Return the smoothed value and its gradient."""
        return self.evaluate(theta)[:2]

    def hessian(self, theta):
        """Return the full Hessian of the smoothed value."""
        H = self.over("reduce", hessian_block, *self.at(theta), self.center, self.unit)
        return self._kept(H) / self.total

    def curved(self, theta):
        """Return the rows where the smoothed loss curves, as blocks in memory with their curvature; None if there are none."""
        bends = np.asarray(self.over("map", bend_block, *self.at(theta)))
        rows = np.flatnonzero(bends)
        return ArrayBlocks(self.blocks.take(rows)[0], (bends[rows],), None, None) if len(rows) else None

    def product(self, curved, direction):
        """Return the Hessian, given its curved rows, times a direction."""
        along, slope = self.parameters(direction)
        constant, g = np.zeros(1), np.zeros_like(along)
        if curved is not None:
            constant, g = curved.reduce(product_block, along[:, 0], float(slope[0]))
        return self._assembled(constant, g, along) / self.total

    def diagonal(self, curved):
        """Return the diagonal of the Hessian, given its curved rows."""
        columns, constant = (0.0, 0.0) if curved is None else curved.reduce(squares_block, self.center)
        ridge = self.ridge() * self.total
        return (ridge + np.append(columns / self.unit**2, constant)[: len(ridge)]) / self.total

    def line(self, theta, direction):
        """Return what the smoothed value along a direction is made of, row by row."""
        along, slope = self.parameters(direction)
        coef, intercept, *_ = self.at(theta)
        parts = self.over("map", line_block, coef, intercept, along[:, 0], float(slope[0]), self.loss)
        return tuple(np.asarray(part) for part in parts), float(coef @ along[:, 0]), float(along[:, 0] @ along[:, 0])
