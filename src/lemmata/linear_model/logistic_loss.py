"""The logistic objective, binary and multinomial, as sums over blocks.

F(W, b) = (1/S) [Σᵢ sᵢ ℓᵢ + ½λ‖W‖²] with S = Σ sᵢ; for two classes one score z = x·w + b and ℓ = log(1 + eᶻ) − y z, for K
classes a score each and ℓ = log Σₖ eᶻᵏ − z_y. The gradient is Σ s (p − y) x̃ + λw and the Hessian Σ s (diag p − ppᵀ) ⊗ x̃x̃ᵀ + λI,
x̃ = (x, 1). Solvers see columns centered and in units of their spread, θ = (unit · W, b + center · W): then nothing depends
on the units of the data, and a gradient has the same meaning everywhere. Rows are never copied for it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.core.blocks import Blocks
from lemmata.core.data import WIDE, is_sparse
from lemmata.core.kernel import kernel

FULL = 400  # parameters up to which a multinomial Hessian is formed in full: beyond, its blocks by class serve as well


@kernel
def binary_rows(X, y, weight, coef, intercept):
    """Sum loss, residuals and residuals times columns over dense rows, for the scores x·w + b."""
    n, d = np.uint64(X.shape[0]), np.uint64(X.shape[1])
    total, constant, g = 0.0, 0.0, np.zeros(X.shape[1])
    for i in range(n):
        z = 0.0
        for f in range(d):
            z += X[i, f] * coef[f]
        z += intercept
        e = np.exp(-abs(z))
        s = 1.0 if weight is None else weight[i]
        total += s * (np.log1p(e) + max(z, 0.0) - (z if y[i] else 0.0))
        r = s * ((1.0 if z >= 0 else e) / (1.0 + e) - (1.0 if y[i] else 0.0))
        constant += r
        for f in range(d):
            g[f] += r * X[i, f]
    return total, constant, g


@kernel
def binary_sparse_rows(data, indices, indptr, y, weight, coef, intercept):
    """As `binary_rows`, over the rows of a CSR matrix."""
    total, constant, g = 0.0, 0.0, np.zeros(len(coef))
    for i in range(len(indptr) - 1):
        z = intercept
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            z += data[e] * coef[np.uint64(indices[e])]
        t = np.exp(-abs(z))
        s = 1.0 if weight is None else weight[i]
        total += s * (np.log1p(t) + max(z, 0.0) - (z if y[i] else 0.0))
        r = s * ((1.0 if z >= 0 else t) / (1.0 + t) - (1.0 if y[i] else 0.0))
        constant += r
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            g[np.uint64(indices[e])] += r * data[e]
    return total, constant, g


@kernel
def softmax_rows(scores, y, weight):
    """Turn scores into weighted residuals s (p − y), in place, and return the loss."""
    total = 0.0
    n, k = scores.shape
    for i in range(n):
        top = scores[i, 0]
        for j in range(1, k):
            top = max(top, scores[i, j])
        own = scores[i, y[i]] - top
        norm = 0.0
        for j in range(k):
            scores[i, j] = np.exp(scores[i, j] - top)
            norm += scores[i, j]
        s = 1.0 if weight is None else weight[i]
        total += s * (np.log(norm) - own)
        for j in range(k):
            scores[i, j] *= s / norm
        scores[i, y[i]] -= s
    return total


@kernel
def sparse_scores(data, indices, indptr, coef, intercept):
    """Scores of CSR rows, for coefficients with a row for each column of the data."""
    n, k = len(indptr) - 1, len(intercept)
    out = np.empty((n, k))
    for i in range(n):
        for j in range(k):
            out[i, j] = intercept[j]
        for e in range(indptr[i], indptr[i + 1]):
            for j in range(k):
                out[i, j] += data[e] * coef[indices[e], j]
    return out


@kernel
def sparse_product(data, indices, indptr, residual, d):
    """Return Xᵀ·residual for CSR rows."""
    g = np.zeros((d, residual.shape[1]))
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            for j in range(residual.shape[1]):
                g[indices[e], j] += data[e] * residual[i, j]
    return g


def scores_of(X, coef, intercept):
    """Scores of a block, in float64, for coefficients (d, k)."""
    if is_sparse(X):
        return sparse_scores(X.data, X.indices, X.indptr, coef, intercept)
    return X.astype(float, copy=False) @ coef + intercept


def gradient_block(X, y, weight, coef, intercept):
    """Sum over a block: loss, residuals (k,), and residuals times columns (d, k)."""
    if coef.shape[1] == 1:
        w, b = np.ascontiguousarray(coef[:, 0]), float(intercept[0])
        if is_sparse(X):
            total, constant, g = binary_sparse_rows(X.data, X.indices, X.indptr, y, weight, w, b)
        else:
            total, constant, g = binary_rows(X, y, weight, w, b)
        return total, np.array([constant]), g[:, None]
    R = scores_of(X, coef, intercept)
    total = softmax_rows(R, y, weight)
    if is_sparse(X):
        return total, R.sum(axis=0), sparse_product(X.data, X.indices, X.indptr, R, X.shape[1])
    return total, R.sum(axis=0), X.astype(float, copy=False).T @ R


def probabilities(scores):
    """Probabilities (n, k) of the classes that have a score: for a single score that of the second class."""
    if scores.shape[1] == 1:
        e = np.exp(-np.abs(scores))
        return np.where(scores >= 0, 1.0, e) / (1.0 + e)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def standard(X, center, unit):
    """Dense rows in standard coordinates, with the column of ones of the intercept last."""
    X = X.toarray() if is_sparse(X) else X
    return np.hstack([(X - center) / unit, np.ones((X.shape[0], 1))])


def hessian_block(X, y, weight, coef, intercept, center, unit):
    """Sum over a block the full Hessian ((d+1)k, (d+1)k) in standard coordinates, class by class inside a column."""
    P, Z = probabilities(scores_of(X, coef, intercept)), standard(X, center, unit)
    s, k = np.ones(len(Z)) if weight is None else weight, P.shape[1]
    H = np.empty((Z.shape[1], k, Z.shape[1], k))
    for a in range(k):
        for c in range(a + 1):
            H[:, a, :, c] = weighted_gram(Z, s * P[:, a] * (1 - P[:, a])) if a == c else -(Z.T * (s * P[:, a] * P[:, c])) @ Z
            H[:, c, :, a] = H[:, a, :, c]
    return H.reshape(Z.shape[1] * k, -1)


def class_hessians_block(X, y, weight, coef, intercept, center, unit):
    """Sum over a block the Hessian of each class by itself, (k, d+1, d+1)."""
    P, Z = probabilities(scores_of(X, coef, intercept)), standard(X, center, unit)
    s = np.ones(len(Z)) if weight is None else weight
    return np.array([weighted_gram(Z, s * p * (1 - p)) for p in P.T])


def diagonal_block(X, y, weight, coef, intercept):
    """Sum over a block the diagonal of the Hessian: (d, k) for the columns, (k,) for the intercepts."""
    P = probabilities(scores_of(X, coef, intercept))
    v = P * (1 - P) if weight is None else weight[:, None] * P * (1 - P)
    return (X.multiply(X) if is_sparse(X) else X.astype(float, copy=False) ** 2).T @ v, v.sum(axis=0)


def weighted_gram(Z, v):
    """Return Zᵀ diag(v) Z for v ≥ 0, as a product of a matrix with itself, which BLAS halves."""
    R = Z * np.sqrt(v)[:, None]
    return R.T @ R


def curvature_block(X, y, weight, coef, intercept, direction, slope):
    """Sum over a block the Hessian times a direction: (k,) for the intercepts and (d, k)."""
    P, V = probabilities(scores_of(X, coef, intercept)), scores_of(X, direction, slope)
    R = P * (1 - P) * V if P.shape[1] == 1 else P * (V - (P * V).sum(axis=1, keepdims=True))
    R = R if weight is None else weight[:, None] * R
    if is_sparse(X):
        return R.sum(axis=0), sparse_product(X.data, X.indices, X.indptr, R, X.shape[1])
    return R.sum(axis=0), X.astype(float, copy=False).T @ R


@dataclass(frozen=True)
class Objective:
    """The objective on some rows, as a function of θ in standard coordinates: one row a column, the intercept last.

    Parameters
    ----------
    blocks : Rows, class numbers and weights.
    n_scores : 1 for two classes, else the number of classes.
    penalty : λ, at least 0.
    intercept : Whether b is free.
    total : Sum of the weights.
    center, unit : Standard coordinates of the columns.
    """

    blocks: Blocks
    n_scores: int
    penalty: float
    intercept: bool
    total: float
    center: np.ndarray
    unit: np.ndarray

    @property
    def n_parameters(self):
        """How many numbers θ has."""
        return (len(self.unit) + self.intercept) * self.n_scores

    def parameters(self, theta):
        """Give coefficients (d, k) and intercepts (k,) in the units of the data."""
        theta = theta.reshape(-1, self.n_scores)
        coef = theta[: len(self.unit)] / self.unit[:, None]
        return coef, theta[-1] - self.center @ coef if self.intercept else np.zeros(self.n_scores)

    def theta(self, coef, intercept):
        """Give θ for coefficients (d, k) and intercepts (k,)."""
        rows = coef * self.unit[:, None]
        return (np.vstack([rows, intercept + self.center @ coef]) if self.intercept else rows).ravel()

    def __call__(self, theta):
        """Return the value and the gradient."""
        coef, intercept = self.parameters(theta)
        loss, constant, g = self.blocks.reduce(gradient_block, coef, intercept)
        value = (loss + (self.penalty / 2 * (coef**2).sum() if self.penalty else 0.0)) / self.total
        return value, self._assembled(constant, g, coef) / self.total

    def _assembled(self, constant, g, coef):
        """Turn sums over rows into a vector like θ, with the penalty's share."""
        unit = self.unit[:, None]
        g = (g - np.outer(self.center, constant)) / unit + self.penalty * (coef / unit)
        return (np.vstack([g, constant]) if self.intercept else g).ravel()

    def curvature(self, theta, direction):
        """Return the Hessian times a direction."""
        coef, intercept = self.parameters(theta)
        along, slope = self.parameters(direction)
        constant, g = self.blocks.reduce(curvature_block, coef, intercept, along, slope)
        return self._assembled(constant, g, along) / self.total

    def hessian(self, theta):
        """Return the full Hessian."""
        H = self.blocks.reduce(hessian_block, *self.parameters(theta), self.center, self.unit)
        return self._kept(H) / self.total

    def _kept(self, H):
        """Add the penalty, and leave the intercepts out if there are none."""
        return H[: self.n_parameters, : self.n_parameters] + np.diag(self.ridge() * self.total)

    def ridge(self):
        """Return the penalty's share of the diagonal of the Hessian."""
        ridge = np.repeat(self.penalty / self.unit / self.unit, self.n_scores) / self.total
        return np.append(ridge, np.zeros(self.n_scores)) if self.intercept else ridge

    def preconditioner(self, theta):
        """Return a cheap approximation of the inverse Hessian as a function: in full, by class, or the diagonal."""
        if len(self.unit) > WIDE:
            return self._diagonal(theta)
        if self.n_scores == 1 or self.n_parameters <= FULL:
            factor = factored(self.hessian(theta) + self.gauge())
            return lambda g: cho_solve(factor, g)
        H = self.blocks.reduce(class_hessians_block, *self.parameters(theta), self.center, self.unit)
        kept = self.n_parameters // self.n_scores
        ridge = self.ridge()[:: self.n_scores]
        factors = [factored(h[:kept, :kept] / self.total + np.diag(ridge)) for h in H]
        return lambda g: np.column_stack(
            [cho_solve(f, c) for f, c in zip(factors, g.reshape(-1, self.n_scores).T, strict=True)]
        ).ravel()

    def _diagonal(self, theta):
        columns, constant = self.blocks.reduce(diagonal_block, *self.parameters(theta))
        scale = columns / self.unit[:, None] ** 2 + self.penalty / self.unit[:, None] ** 2
        scale = (np.vstack([scale, constant]) if self.intercept else scale).ravel() / self.total
        scale = np.maximum(scale, np.finfo(float).eps * scale.max())
        return lambda g: g / scale

    def gauge(self):
        """Fill the directions that shift all scores alike, which the loss does not see."""
        if self.n_scores == 1:
            return 0.0
        return np.kron(np.eye(self.n_parameters // self.n_scores), np.full((self.n_scores,) * 2, 1 / self.n_scores**2))


def factored(H):
    """Factor a Hessian that may be singular: a little of its diagonal is added where it must be."""
    extra = 0.0
    while True:
        try:
            return cho_factor(H + extra * np.diag(np.maximum(np.diag(H), np.finfo(float).tiny) + np.diag(H).max() * 1e-3))
        except np.linalg.LinAlgError:
            extra = max(10 * extra, 1e-10)  # ten times the rounding of a factor of a few hundred columns, at first


def objective(blocks, n_scores, penalty, intercept):
    """Describe the problem in standard coordinates, taken from the first block; every home of the data has the same one."""
    X, _, weight = blocks.first()
    center, unit = np.zeros(X.shape[1]), np.ones(X.shape[1])
    weight = None if weight is None or not weight.any() else weight  # the first rows of a stored table may have none
    if not is_sparse(X):
        scale = np.abs(X).max(axis=0).astype(float)
        scale = np.where(scale > 0, scale, 1.0)  # squares of the raw columns may overflow
        mean = np.average(X / scale, axis=0, weights=weight)
        spread = np.sqrt(np.average((X / scale - mean) ** 2, axis=0, weights=weight))
        center = mean * scale if intercept else center
        unit = np.where(spread > 1e-8, spread, 1.0) * scale  # 1e-8: a constant column, to the rounding of its mean
    total = blocks.reduce(total_block)
    return Objective(blocks, n_scores, penalty, intercept, total, center, unit)


def total_block(X, y, weight):
    """Sum of the weights of a block."""
    return float(X.shape[0]) if weight is None else float(weight.sum())
