"""Features of a row and a class together, and the objective of the log-linear model that they make.

P(y | x) = exp(Σⱼ wⱼ fⱼ(x, y)) / Z(x); minimize F(w) = (1/S) [Σᵢ sᵢ (log Z(xᵢ) − w·f(xᵢ, yᵢ)) + ½λ‖w‖²]. The gradient is what
the model expects of the features less what the data show, E f(x, ·) − f(x, y), and the Hessian their covariance over the
classes, both summed over rows. What does not differ between the classes of a row has no effect, so a feature's unit is its
spread over the classes. Features that come from the columns of X, one copy for each class, make softmax regression, whose
sums `logistic_loss` has; all other features are a function of a block of rows and a label.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from lemmata.core.blocks import Blocks
from lemmata.core.certificate import length
from lemmata.core.data import WIDE, is_sparse
from lemmata.linear_model.link_objective import RIDGE
from lemmata.linear_model.logistic_loss import (
    Objective,
    factored,
    objective,
    probabilities,
    scores_of,
    softmax_rows,
    total_block,
    weighted_gram,
)


@dataclass(frozen=True)
class ClassIndexed:
    """The columns of a row and a constant, once for each class, zero for all classes but their own."""

    n_classes: int

    def scores(self, X, weights):
        """Give w·f(x, k) for each row and class, (n, n_classes)."""
        W = weights.reshape(self.n_classes, -1)
        return scores_of(X, np.ascontiguousarray(W[:, :-1].T), np.ascontiguousarray(W[:, -1]))

    def moments(self, X, R):
        """Sum R[i, k] f(xᵢ, k) over rows and classes."""
        return np.column_stack([np.asarray((X.T @ R).T), R.sum(axis=0)]).ravel()

    def rows(self, X):
        """Give the features of all rows, an array (n, m) for each class."""
        X = np.column_stack([X.toarray() if is_sparse(X) else X, np.ones(X.shape[0])])
        return [np.kron(own, X) for own in np.eye(self.n_classes)[:, None, :]]


@dataclass(frozen=True)
class Joint:
    """Features that a function of a block of rows and a label gives."""

    function: Callable
    labels: tuple

    @property
    def n_classes(self):
        """How many classes there are."""
        return len(self.labels)

    def scores(self, X, weights):
        """Give w·f(x, k) for each row and class, (n, n_classes)."""
        return np.column_stack([F @ weights for F in self.rows(X)])

    def moments(self, X, R):
        """Sum R[i, k] f(xᵢ, k) over rows and classes."""
        return sum(F.T @ r for F, r in zip(self.rows(X), R.T, strict=True))

    def rows(self, X):
        """Give the features of all rows, a matrix (n, m) for each class, dense or CSR."""
        return [self._checked(self.function(X, label), X.shape[0]) for label in self.labels]

    @staticmethod
    def _checked(F, n):
        F = F.tocsr().astype(float) if is_sparse(F) else np.asarray(F, dtype=float)
        if F.ndim != 2 or F.shape[0] != n:
            raise ValueError(f"features must return a row of features for each row of X, got the shape {F.shape} for {n} rows.")
        if not np.isfinite(F.data if is_sparse(F) else F).all():
            raise ValueError("features must return finite numbers, got NaN or infinity.")
        return F


def gradient_block(X, y, weight, design, weights):
    """Sum over a block: loss, and what the model expects of the features less what the data show."""
    R = design.scores(X, weights)
    loss = softmax_rows(R, y, weight)
    return loss, design.moments(X, R)


def centered(X, y, weight, design, weights, unit):
    """Give for each class its weighted probabilities, and its features less their mean over the classes, in units."""
    P = probabilities(design.scores(X, weights))
    rows = [(F.toarray() if is_sparse(F) else F) / unit for F in design.rows(X)]
    mean = sum(p[:, None] * F for p, F in zip(P.T, rows, strict=True))
    return [(p if weight is None else weight * p, F - mean) for p, F in zip(P.T, rows, strict=True)]


def hessian_block(X, y, weight, design, weights, unit):
    """Sum over a block the covariance of the features over the classes."""
    return sum(weighted_gram(F, p) for p, F in centered(X, y, weight, design, weights, unit))


def curvature_block(X, y, weight, design, weights, direction):
    """Sum over a block that covariance times a direction."""
    P, V = probabilities(design.scores(X, weights)), design.scores(X, direction)
    R = P * (V - (P * V).sum(axis=1, keepdims=True))
    return design.moments(X, R if weight is None else weight[:, None] * R)


def diagonal_block(X, y, weight, design, weights):
    """Sum over a block the squares of the features: an upper bound of the diagonal of the covariance."""
    P = probabilities(design.scores(X, weights))
    P = P if weight is None else weight[:, None] * P
    squares = (F.multiply(F) if is_sparse(F) else F**2 for F in design.rows(X))
    return sum(np.asarray(S.T @ p) for S, p in zip(squares, P.T, strict=True))


@dataclass(frozen=True)
class ClassObjective(Objective):
    """Softmax regression as a log-linear model: intercepts are not penalized."""

    design: Any

    def gauge(self):
        """Fill the directions that no probability sees: common shifts, and with a little curvature those of equal columns."""
        return super().gauge() + RIDGE * np.eye(self.n_parameters)

    def weights(self, theta):
        """Give the weights, class by class, the constant last in each."""
        coef, intercept = self.parameters(theta)
        return np.column_stack([coef.T, intercept]).ravel()

    def standard(self, weights):
        """Give θ for weights."""
        W = weights.reshape(self.n_scores, -1)
        return self.theta(W[:, :-1].T, W[:, -1])

    def penalized(self, weights):
        """Give the squared length of what the penalty sees."""
        return float((weights.reshape(self.n_scores, -1)[:, :-1] ** 2).sum())

    def terms(self, weights):
        """Give the length of the terms of which θ is the sum."""
        return length(replace(self, center=np.abs(self.center)).standard(np.abs(weights)))

    @property
    def length_unit(self):
        """Units in which the shortest θ is meant: those of the columns, about their center."""
        return np.ones(self.n_parameters)


@dataclass(frozen=True)
class FeatureObjective:
    """The objective of any features as a function of θ, the weights in units of the features' spread over the classes.

    Parameters
    ----------
    blocks : Rows, class numbers and weights.
    design : The features.
    penalty : λ, at least 0.
    total : Sum of the weights of the rows.
    unit : Spread of each feature.
    """

    blocks: Blocks
    design: Joint
    penalty: float
    total: float
    unit: np.ndarray
    n_scores = 1  # θ is one vector for all classes

    @property
    def n_parameters(self):
        """How many features there are."""
        return len(self.unit)

    def weights(self, theta):
        """Give the weights."""
        return theta / self.unit

    def standard(self, weights):
        """Give θ for weights."""
        return weights * self.unit

    def penalized(self, weights):
        """Give the squared length of what the penalty sees."""
        return float(weights @ weights)

    def terms(self, weights):
        """Give the length of the terms of which θ is the sum: it is no sum."""
        return length(self.standard(weights))

    @property
    def length_unit(self):
        """Units in which the shortest θ is meant: those of the weights, as under a small penalty."""
        return self.unit

    def __call__(self, theta):
        """Return the value and the gradient."""
        weights = self.weights(theta)
        loss, moments = self.blocks.reduce(gradient_block, self.design, weights)
        gradient = (moments + self.penalty * weights) / self.unit
        return (loss + self.penalty / 2 * self.penalized(weights)) / self.total, gradient / self.total

    def hessian(self, theta):
        """Return the Hessian."""
        H = self.blocks.reduce(hessian_block, self.design, self.weights(theta), self.unit)
        return (H + np.diag(self.penalty / self.unit**2)) / self.total

    def curvature(self, theta, direction):
        """Return the Hessian times a direction."""
        along = self.weights(direction)
        moments = self.blocks.reduce(curvature_block, self.design, self.weights(theta), along)
        return (moments + self.penalty * along) / self.unit / self.total

    def preconditioner(self, theta):
        """Return a cheap approximation of the inverse Hessian as a function: in full, or the diagonal."""
        if self.n_parameters <= WIDE:
            factor = factored(self.hessian(theta) + self.gauge())
            return lambda g: cho_solve(factor, g)
        diagonal = self.blocks.reduce(diagonal_block, self.design, self.weights(theta)) + self.penalty
        scale = diagonal / self.unit**2 / self.total
        scale = np.maximum(scale, np.finfo(float).eps * scale.max())
        return lambda g: g / scale

    def gauge(self):
        """Fill the directions that no score sees with a little curvature."""
        return RIDGE * np.eye(self.n_parameters)


def log_linear(blocks, design, penalty):
    """Describe the problem in units of the features, taken from the first block."""
    if isinstance(design, ClassIndexed):
        return ClassObjective(**vars(objective(blocks, design.n_classes, penalty, intercept=True)), design=design)
    X, _, weight = blocks.first()
    rows = [F.toarray() if is_sparse(F) else F for F in design.rows(X)]
    if len({F.shape[1] for F in rows}) > 1:
        raise ValueError(f"features must return as many features for every label, got {[F.shape[1] for F in rows]}.")
    scale = np.abs(rows).max(axis=(0, 1))
    scale = np.where(scale > 0, scale, 1.0)
    spread = np.sqrt(np.average(np.var(rows / scale, axis=0), axis=0, weights=weight))
    unit = np.where(spread > 1e-8, spread, 1.0) * scale  # 1e-8: the same for every class, to rounding
    return FeatureObjective(blocks, design, penalty, blocks.reduce(total_block), unit)
