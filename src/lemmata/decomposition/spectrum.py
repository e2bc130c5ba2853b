"""The leading principal directions of a table: four routes to the same eigenvectors.

With s the weights, n their sum and x̄ the weighted mean, the covariance is C = Σ s (x − x̄)(x − x̄)ᵀ/(n − 1); the directions asked
for are its eigenvectors q₁, q₂, … with the largest eigenvalues λ₁ ≥ λ₂ ≥ …

- covariance: C itself, a sum over blocks, and its eigenvectors. One pass, but C squares the condition number: an eigenvalue
  below 1e-7 λ₁ would keep fewer than nine digits, so tables with such ones take the next route instead.
- full: the triangle R of the centered rows, by QR of each block; two triangles are stacked and factored again. The singular
  values of R are those of the rows, to all digits [1].
- gram: where rows are few, the products of the rows with each other; q = Aᵀu/σ for an eigenvector u of AAᵀ.
- krylov: products C V with few vectors at a time, each one pass over the rows, never C: subspaces span{V, CV, C²V, …} hold ever
  better eigenvectors, and their residuals ‖Cq − λq‖ say when to stop [2]. One vector at a time (ARPACK) where rows are sparse,
  since it needs the fewest products; many at a time where they are dense, since reading the rows is what costs.

Signs are free: the entry of largest size in each direction is positive.

[1] Golub & Van Loan, Matrix Computations, ch. 8. [2] Musco & Musco, NeurIPS (2015); Lehoucq, Sorensen & Yang, ARPACK (1998).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from lemmata.core.data import WIDE, is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.moments import moments_block
from lemmata.core.threads import serial_blas
from lemmata.linear_model.least_squares import Factor, dense, triangle

EPS = np.finfo(float).eps
ROUNDINGS = 4  # of the data, below which a deviation is taken for rounding
CLEAR = 1e-7  # eigenvalues of C above this share of the largest keep nine digits
FEW = 0.1  # share of the directions up to which products with vectors are cheaper than C
TOLERANCE = 1e-8  # of ‖Cq − λq‖/λ; an eigenvalue is then right to about its square
SPARE = 10  # vectors more than asked for, which speed up the convergence of the last ones
PASSES = 500  # over the rows at most


class Spectrum(NamedTuple):
    """The leading eigenvectors of the covariance of a table."""

    weight: float
    mean: np.ndarray  # (d,)
    values: np.ndarray  # (k,), eigenvalues of the scatter Σ s (x − x̄)(x − x̄)ᵀ, falling
    vectors: np.ndarray  # (k, d)
    total: float  # trace of the scatter: sum of all eigenvalues
    converged: bool = True


def route(blocks, k):
    """Choose how to find k directions (None: all of them) by the shape of a table."""
    n, d = blocks.n_rows, blocks.n_columns
    if d <= WIDE:
        return "covariance_eigh"
    if n <= WIDE:
        return "gram"
    if is_sparse(blocks.first()[0]):
        return "arpack"
    return "randomized" if k is not None and k <= FEW * min(n, d) else "covariance_eigh"


def spectrum_of(blocks, k, solver, rng, tol=0.0):
    """Find the k leading directions of a table, or all along which rows vary, by one of the routes.

    Parameters
    ----------
    solver : "covariance_eigh", "full", "gram", "arpack" or "randomized".
    tol : Residual of the last two at which to stop; 0 for the default.
    """
    if solver in ("arpack", "randomized"):
        return _by_products(blocks, k, solver, rng, tol or TOLERANCE)
    if solver == "gram":
        found = _by_gram(blocks, k)
    elif solver == "covariance_eigh":
        found = _by_covariance(blocks, k)
    if solver == "full" or found.values[-1] < CLEAR * found.values[0]:
        found = _by_factor(blocks, k)
    return found if k is not None else _varying(found)


def _varying(found):
    """Leave out directions along which rows do not vary, by more than rounding: which ones these are is left to chance."""
    d, n = len(found.mean), max(found.weight, 1.0)
    rounding = EPS * (d * np.sqrt(found.values[0]) + np.sqrt(n) * float(np.abs(found.mean).max()))
    rank = max(int((np.sqrt(found.values) > ROUNDINGS * rounding).sum()), 1)
    return found._replace(values=found.values[:rank], vectors=found.vectors[:rank])


def upright(vectors):
    """Turn each row such that its entry of largest size is positive."""
    largest = np.abs(vectors).argmax(axis=1)
    signs = np.where(vectors[np.arange(len(vectors)), largest] < 0, -1.0, 1.0)
    return vectors * signs[:, None]


def _leading(matrix, k):
    """Give the k largest eigenvalues of a symmetric matrix, falling, and their eigenvectors as rows."""
    d = len(matrix)
    with serial_blas():
        values, vectors = eigh(matrix, subset_by_index=None if k == d else [d - k, d - 1], check_finite=False)
    return np.maximum(values[::-1], 0.0), vectors.T[::-1]


def _by_covariance(blocks, k):
    moments = blocks.reduce(moments_block)
    values, vectors = _leading(moments.scatter, min(blocks.n_rows, blocks.n_columns) if k is None else k)
    return Spectrum(moments.weight, moments.mean, values, upright(vectors), float(np.trace(moments.scatter)))


def factor_block(X, weight, origin):
    """Total weight, and the triangle of the rows √s (1, x − o)."""
    Z = np.column_stack([np.ones(X.shape[0]), dense(X) - origin])
    if weight is not None:
        Z *= np.sqrt(weight)[:, None]
    return float(X.shape[0] if weight is None else weight.sum()), Factor(triangle(Z))


def _by_factor(blocks, k):
    X, weight = blocks.first()
    origin = np.average(dense(X), axis=0, weights=weight)
    total, factor = blocks.reduce(factor_block, origin)
    d = blocks.n_columns
    wanted = min(blocks.n_rows, d) if k is None else k
    with serial_blas():
        rows = np.linalg.qr(factor.rows, mode="r")
        A = rows[1:, 1:]
        if len(A) < wanted:  # fewer rows than directions asked for: the last have no variance
            A = np.vstack([A, np.zeros((wanted - len(A), d))])
        _, sigma, vectors = np.linalg.svd(A, full_matrices=False)
    mean = origin + rows[0, 1:] / rows[0, 0]
    return Spectrum(total, mean, sigma[:wanted] ** 2, upright(vectors[:wanted]), float((sigma**2).sum()))


def mean_block(X, weight):
    """Total weight, weighted sum of the rows, and of their squares."""
    s = np.ones(X.shape[0]) if weight is None else weight
    squares = X.multiply(X).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, X, dtype=float)
    return float(s.sum()), np.asarray(X.T @ s, dtype=float).ravel(), float(s @ np.asarray(squares, dtype=float).ravel())


def _by_gram(blocks, k):
    X, weight = blocks.whole()
    total, sums, _ = mean_block(X, weight)
    mean = sums / total
    with serial_blas():
        if is_sparse(X):
            X = X.astype(float)
            along = X @ mean
            G = (X @ X.T).toarray() - along[:, None] - along + mean @ mean
        else:
            X = X - mean
            G = X @ X.T
        if weight is not None:
            root = np.sqrt(weight)
            G *= root[:, None] * root
    values, rows = _leading(G, min(k or len(G), len(G)))
    back = rows if weight is None else rows * root
    with serial_blas():
        vectors = back @ X - (back.sum(axis=1)[:, None] * mean if is_sparse(X) else 0.0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Spectrum(total, mean, values, upright(vectors / np.maximum(lengths, np.finfo(float).tiny)), float(np.trace(G)))


@kernel
def scatter_product(indptr, indices, data, weight, v, offset, out):
    """Add Σ s t x over sparse rows to `out`, with t = x·v − offset; return Σ s t."""
    total = 0.0
    for i in range(len(indptr) - 1):
        t = -offset
        for e in range(indptr[i], indptr[i + 1]):
            t += data[e] * v[indices[e]]
        if weight is not None:
            t *= weight[i]
        for e in range(indptr[i], indptr[i + 1]):
            out[indices[e]] += t * data[e]
        total += t
    return total


def product_block(X, weight, V, offset):
    """Σ s t x and Σ s t over the rows of a block, t = Vᵀx − offset, for the columns of V."""
    if is_sparse(X) and V.shape[1] == 1:
        out = np.zeros(len(V))
        total = scatter_product(X.indptr, X.indices, X.data, weight, np.ascontiguousarray(V[:, 0]), float(offset[0]), out)
        return out[:, None], np.array([total])
    T = X @ V - offset
    if weight is not None:
        T *= weight[:, None]
    return X.T @ T, T.sum(axis=0)


class Scatter:
    """The scatter of a table about its mean, as something to multiply with."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.weight, sums, squares = blocks.reduce(mean_block)
        self.mean = sums / self.weight
        self.total = squares - float(sums @ self.mean)

    def __matmul__(self, V):
        """Multiply with the columns of V, in one pass."""
        products, totals = self.blocks.reduce(product_block, V, self.mean @ V)
        return products - self.mean[:, None] * totals


def _by_products(blocks, k, solver, rng, tol):
    scatter, d = Scatter(blocks), blocks.n_columns
    with serial_blas():
        if solver == "arpack":
            operator = LinearOperator((d, d), matvec=lambda v: (scatter @ v.reshape(-1, 1))[:, 0], dtype=float)
            values, vectors = eigsh(operator, k, tol=tol, v0=rng.standard_normal(d))
            values, vectors, converged = values[::-1], vectors.T[::-1], True
        else:
            start = rng.standard_normal((d, min(k + SPARE, d)))
            values, vectors, converged = krylov(scatter, start, k, tol)
    return Spectrum(scatter.weight, scatter.mean, values, upright(vectors), scatter.total, converged)


def krylov(matrix, start, k, tol):
    """Find the k largest eigenvalues of something symmetric to multiply with, from random columns to start with.

    A subspace grows by the residuals of what is not found yet, made orthogonal to it; when it is six times as wide as at the
    start, its best half that width goes on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> values, vectors, converged = krylov(np.diag(np.arange(100.0)), rng.standard_normal((100, 6)), 3, 1e-8)
    >>> values.round(9), converged
    (array([99., 98., 97.]), True)
    """
    d, width = start.shape
    V = np.linalg.qr(start)[0]
    C = matrix @ V
    for passes in range(PASSES):
        values, turn = np.linalg.eigh(V.T @ C)
        values, turn = values[::-1], turn[:, ::-1]
        residual = C @ turn[:, :k] - (V @ turn[:, :k]) * values[:k]
        sizes = np.linalg.norm(residual, axis=0)
        open_ = sizes > tol * np.abs(values[:k])
        found = not open_.any() or V.shape[1] == d
        if found or passes == PASSES - 1:
            break
        if V.shape[1] + open_.sum() > min(6 * width, d):
            keep = min(3 * width, d - int(open_.sum()))
            V, C = V @ turn[:, :keep], C @ turn[:, :keep]
        new = residual[:, open_] / sizes[open_]
        for _ in range(2):  # twice is enough
            new = np.linalg.qr(new - V @ (V.T @ new))[0]
        V, C = np.hstack([V, new]), np.hstack([C, matrix @ new])
    return values[:k], (V @ turn[:, :k]).T, found
