"""The checks of principal components: eigenvectors, and none with a larger eigenvalue left out.

The covariance C is summed again, about the mean found first. Orthonormal rows Q with CQᵀ = QᵀΛ are eigenvectors, but perhaps
not the leading ones. What is left after taking them out is C' = (I − QᵀQ)C(I − QᵀQ), and (λ_k + δ)I − C' has a Cholesky factor
exactly if no eigenvalue of C' exceeds λ_k + δ (Sylvester's law of inertia); then, by Fan's theorem, no k directions have more
variance in all than these by more than kδ, and by Eckart and Young no subspace is nearer. With few rows the same is asked of
the products of the rows with each other, whose eigenvalues are the same. Where both are many, the largest eigenvalue of C' is
sought by Lanczos' method instead, which is evidence and no proof. Vectors are never compared: signs, and rotations among equal
eigenvalues, are free.
"""

import numpy as np
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, eigsh

from lemmata.cluster.bounds import scatter_block
from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, length
from lemmata.core.data import WIDE, is_sparse
from lemmata.core.generative import same_entries
from lemmata.core.threads import serial_blas
from lemmata.decomposition.spectrum import Scatter, mean_block

ROUNDINGS = 8  # of a stored number, that comparing it with a recomputed one may cost
LANCZOS = 1e-3  # relative error of the largest eigenvalue that is sought as evidence


def squares_block(X, weight, mean, components):
    """Weighted squares of what the projections of the rows of a block miss, and of offsets from the mean, by column."""
    s = np.ones(X.shape[0]) if weight is None else weight
    if is_sparse(X):  # without the rows themselves: squares of both parts
        z = X @ components.T - components @ mean
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2 * (X @ mean) + mean @ mean
        by_column = np.asarray(X.multiply(X).T @ s).ravel() - 2 * mean * np.asarray(X.T @ s).ravel() + s.sum() * mean**2
        return float(s @ (squares - (z**2).sum(axis=1))), np.maximum(by_column, 0.0)
    away = X - mean
    missed = away - (away @ components.T) @ components
    return float(s @ (missed**2).sum(axis=1)), s @ away**2


def certificate(model, blocks):
    """Check the fitted attributes of a `PCA` against the rows."""
    Q, variances = model.components_.astype(float), model.explained_variance_.astype(float)
    (k, d), eps = Q.shape, float(np.finfo(model.components_.dtype).eps)
    weight, sums, _ = blocks.reduce(mean_block)
    mean = _refined(blocks, sums / weight, weight)
    rest = max(weight - 1, 0.0) or 1.0
    missed, by_column = blocks.reduce(squares_block, mean, Q)
    total = float(by_column.sum()) / rest
    floor = (eps * float(np.abs(mean).max())) ** 2 * d + TINY  # a table that does not vary leaves rounding
    scale = max(total, floor)
    deviations = np.sqrt(np.maximum(by_column / weight, scale * np.finfo(float).eps))
    small = d <= WIDE or blocks.n_rows <= WIDE
    with serial_blas():
        product, largest = (_by_columns if d <= WIDE else _by_rows if small else _by_products)(blocks, mean, Q, variances, rest)
    excess = max(largest - variances[-1], 0.0) / scale
    left = max(total - float(variances.sum()), 0.0)
    residual = length(product - Q * variances[:, None]) / max(length(product), scale * np.sqrt(k))
    derived = [
        _apart(model.explained_variance_ratio_, variances / scale, 1.0),
        _apart(model.singular_values_, np.sqrt(variances * rest), np.sqrt(scale * rest)),
        _apart(model.noise_variance_, left / (d - k) if k < d else 0.0, max(left / max(d - k, 1), scale * eps * ROUNDINGS)),
        _apart(model.n_samples_, weight, weight),
    ]
    return Certificate(
        Check(
            "orthonormal", length(Q @ Q.T - np.eye(k)), SAME_LIMIT, "proof", "the directions are orthogonal and of unit length"
        ),
        same_entries(
            model.mean_, mean, "mean", "the mean of the rows", deviations + ROUNDINGS * eps / SAME_LIMIT * np.abs(mean)
        ),
        Check("eigenvectors", residual, SAME_LIMIT, "proof", "the covariance maps each direction to itself times its variance"),
        Check(
            "leading",
            excess,
            SAME_LIMIT if small else LANCZOS,
            "proof" if small else "evidence",
            "no direction beside them has more variance, by more than this share of all",
        ),
        Check(
            "reconstruction",
            abs(missed / rest - left) / scale,
            SAME_LIMIT,
            "proof",
            "projections miss the rows by what the variances left out say",
        ),
        Check(
            "derived", max(derived), SAME_LIMIT, "proof", "shares, singular values, noise and number of rows follow from them"
        ),
        subject=repr(model),
    )


def _refined(blocks, mean, weight):
    """Add the mean of the offsets from a mean, so that no offset of the table costs digits."""
    return mean + blocks.reduce(offsets_block, mean) / weight


def offsets_block(X, weight, mean):
    """Weighted sum of the offsets of the rows of a block from a mean."""
    s = np.ones(X.shape[0]) if weight is None else weight
    return X.T @ s - s.sum() * mean if is_sparse(X) else s @ (X - mean)


def _apart(stored, expected, unit):
    """Give the largest difference, in a unit."""
    return float(np.abs(np.asarray(stored, dtype=float) - expected).max(initial=0.0)) / max(unit, TINY)


def _by_columns(blocks, mean, Q, variances, rest):
    """Give QC, and the least bound on the variance beside Q that a Cholesky factor proves, from the covariance."""
    _, _, products = blocks.reduce(scatter_block, mean)
    C = products / rest
    product = Q @ C
    inner = product @ Q.T
    beside = C - Q.T @ product - product.T @ Q + Q.T @ inner @ Q
    return product, proved(beside, variances[-1], np.trace(C))


def _by_rows(blocks, mean, Q, variances, rest):
    """Give the same from the products of the rows with each other."""
    X, weight = blocks.whole()
    root = np.ones((X.shape[0], 1)) if weight is None else np.sqrt(weight)[:, None]
    if is_sparse(X):
        along = X @ mean
        G = (X @ X.T).toarray() - along[:, None] - along + mean @ mean
        Z = X @ Q.T - Q @ mean
        product = ((root**2 * Z).T @ X - (root**2 * Z).sum(axis=0)[:, None] * mean) / rest
    else:
        A = X - mean
        G, Z = A @ A.T, A @ Q.T
        product = (root**2 * Z).T @ A / rest
    G = root * (G - Z @ Z.T) * root.T / rest
    return product, proved(G, variances[-1], float(variances.sum()) + np.trace(G))


def _by_products(blocks, mean, Q, variances, rest):
    """Give QC and an estimate of the largest variance beside Q, from products with few vectors."""
    scatter, d = Scatter(blocks), Q.shape[1]

    def beside(v):
        v = v.ravel() - Q.T @ (Q @ v.ravel())
        v = (scatter @ v[:, None])[:, 0] / rest
        return v - Q.T @ (Q @ v)

    start = np.random.default_rng(0).standard_normal(d)
    operator = LinearOperator((d, d), matvec=beside, dtype=float)
    return (scatter @ Q.T).T / rest, float(eigsh(operator, 1, tol=LANCZOS, v0=start, return_eigenvectors=False)[0])


def proved(matrix, value, total):
    """Give a bound on the eigenvalues of a matrix that is proved: a value and half the slack allowed, or else the largest."""
    bound = value + 0.5 * SAME_LIMIT * max(total, TINY)
    _, failed = lapack.dpotrf(bound * np.eye(len(matrix)) - matrix)
    return bound if failed == 0 else float(np.linalg.eigvalsh(matrix)[-1])
