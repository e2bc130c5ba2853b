"""Slow twins of the kernels of the linear models, written for reading, and brute force where the tables are tiny."""

from itertools import product
from math import exp, fsum, log1p

import numpy as np


def probabilities(x, coef, intercept):
    """Give the probabilities of the classes of one row; a single score is that of the second of two classes."""
    scores = [fsum(x * w) + b for w, b in zip(coef.T, intercept, strict=True)]
    scores = [0.0, *scores] if len(scores) == 1 else scores
    top = max(scores)
    weights = [exp(s - top) for s in scores]
    return np.array(weights) / fsum(weights), scores


def logistic_sums(X, y, weight, coef, intercept):
    """Sum row by row: loss, residuals (k,), and residuals times columns (d, k)."""
    total, constant, g = 0.0, np.zeros(coef.shape[1]), np.zeros(coef.shape)
    for i, x in enumerate(X):
        p, scores = probabilities(x, coef, intercept)
        s = 1.0 if weight is None else weight[i]
        top = max(scores)
        total += s * (top + log1p(fsum(exp(z - top) for z in scores) - 1) - scores[y[i]])
        residual = s * (p - (np.arange(len(p)) == y[i]))[-coef.shape[1] :]
        constant += residual
        g += np.outer(x, residual)
    return total, constant, g


def logistic_hessian(X, weight, coef, intercept):
    """Sum s (diag p − ppᵀ) ⊗ x̃x̃ᵀ row by row, x̃ = (x, 1); class by class inside a column."""
    k = coef.shape[1]
    H = np.zeros(((X.shape[1] + 1) * k,) * 2)
    for i, x in enumerate(X):
        p = probabilities(x, coef, intercept)[0][-k:]
        x = np.append(x, 1.0)
        H += (1.0 if weight is None else weight[i]) * np.kron(np.outer(x, x), np.diag(p) - np.outer(p, p))
    return H


def column_sums(X, root, c, center):
    """Give mean, squared length about it and product with c of the columns of rows that were multiplied by root."""
    means = np.array([(root * x).sum() / (root * root).sum() if center else 0.0 for x in X.T])
    A = X - np.outer(root, means)
    return means, (A * A).sum(axis=0), A.T @ c


def sweep(A, c, w, l1, l2, positive):
    """Make each coefficient in turn the best for the others, from the residual itself; return the largest violation."""
    w, worst = w.copy(), 0.0
    for j in range(A.shape[1]):
        norm = A[:, j] @ A[:, j]
        if norm == 0:
            continue
        z = A[:, j] @ (c - A @ w + A[:, j] * w[j])
        best = np.sign(z) * max((z if positive else abs(z)) - l1, 0.0) / (norm + l2)
        worst = max(worst, abs(best - w[j]) * (norm + l2))
        w[j] = best
    return w, worst


def penalized(A, c, w, l1, l2):
    """Evaluate ½‖c − Aw‖² + l1‖w‖₁ + ½ l2‖w‖²."""
    return ((c - A @ w) ** 2).sum() / 2 + l1 * np.abs(w).sum() + l2 / 2 * (w @ w)


def best_penalized(A, c, l1, l2=0.0, positive=False):
    """Find the coefficients of least objective by trying every support with every choice of signs."""
    d = A.shape[1]
    best, value = np.zeros(d), penalized(A, c, np.zeros(d), l1, l2)
    for signs in product((0, 1) if positive else (-1, 0, 1), repeat=d):
        signs = np.array(signs)
        on = np.flatnonzero(signs)
        H = A[:, on].T @ A[:, on] + l2 * np.eye(len(on))
        w = np.zeros(d)
        w[on] = np.linalg.lstsq(H, A[:, on].T @ c - l1 * signs[on], rcond=None)[0]
        if (w * signs >= 0).all() and penalized(A, c, w, l1, l2) < value:
            best, value = w, penalized(A, c, w, l1, l2)
    return best, value
