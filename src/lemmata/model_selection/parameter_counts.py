"""How many parameters a model has, where that is more than counting entries.

A penalty holds parameters back. Where the fit minimizes −L(θ) + ½ θᵀPθ, and F is the information that the rows have of θ, the
fit follows noise in the rows as far as tr[(F + P)⁻¹F] free parameters would: the effective number of parameters [1].
For least squares it is the trace of the hat matrix, Σ s/(s + α) over the squared singular values s of the columns, and exactly
the optimism of the fit [2]; for other likelihoods it is so to first order. Without a penalty it is the rank of F: directions
of θ that change no probability, such as the same number added to all scores of a softmax (a gauge freedom), do not count.
A penalty with a corner at zero also chooses which parameters there are. The lasso spends one parameter on each column that it
keeps, no more: what choosing costs, shrinkage gives back [3]; the elastic net has the trace among the kept columns [4].
Where parameters are redundant, the likelihood of no row moves along some direction of θ: `identified_parameters` counts the
others, the rank of the Fisher information. Matrix factorizations are counted in full nevertheless, all (M₁ + M₂)R
entries, though W and H can exchange an invertible R × R matrix: where all entries are positive R² of them are redundant.

[1] Moody, NIPS (1991). [2] Efron, J. Am. Stat. Assoc. 99 (2004). [3] Zou, Hastie & Tibshirani, Ann. Stat. 35 (2007).
[4] Tibshirani & Taylor, Ann. Stat. 40 (2012).
"""

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.data import as_matrix, is_sparse
from lemmata.linear_model import least_squares
from lemmata.linear_model.spectrum import compress
from lemmata.optimize.derivatives import jacobian

RESOLVED = 1e-6  # share of the largest below which a singular value is the error of differences, ε^⅔, times thousands
DIGITS = 1e-10  # share of the largest below which a direction is rounding, and not one that the rows determine
SQUARED = 1e-12  # the same for eigenvalues of matrices that hold squares, of which fewer digits are right
MOST = 3000  # parameters whose information is a matrix worth making


def effective_parameters(information, penalty):
    """Give tr[(F + P)⁻¹F] for an information matrix F and the diagonal of P; what neither determines counts as nothing.

    Parameters
    ----------
    penalty : (m,), entries of at least 0; infinite for a parameter that is held at zero.

    Examples
    --------
    >>> effective_parameters(np.diag([3.0, 1.0, 5.0]), [1.0, 1.0, 0.0])
    2.25
    >>> effective_parameters(np.ones((2, 2)), [0.0, 0.0])  # only the sum of the two is determined
    1.0
    """
    F, penalty = np.asarray(information, dtype=float), np.broadcast_to(np.asarray(penalty, dtype=float), len(information))
    kept = np.isfinite(penalty) & (np.diag(F) > 0)
    F, penalty = F[np.ix_(kept, kept)], penalty[kept]
    size = np.sqrt(np.diag(F) + penalty)  # columns of any scale are treated alike
    F, both = F / size / size[:, None], (F + np.diag(penalty)) / size / size[:, None]
    values, vectors = np.linalg.eigh(both)
    found = values > SQUARED * values.max(initial=0.0)
    if not penalty.any():
        return float(found.sum())
    half = vectors[:, found] / np.sqrt(values[found])
    return float(np.einsum("ij,ik,kj->", half, F, half))


def identified_parameters(row_logs, theta):
    """Count the directions of θ that change the likelihood of some row: the rank of the Fisher information, by differences.

    Parameters
    ----------
    row_logs : Function of θ that gives the log-likelihood of each row (or sequence): (n,). More rows than parameters are
        needed, and rows of all kinds: a direction that none of them shows is not counted.
    theta : (m,), a point where nothing is on its border.

    Examples
    --------
    >>> rows = np.array([-1.0, 0.5, 2.0, 3.0])
    >>> identified_parameters(lambda theta: -0.5 * (rows - theta[0] - theta[1]) ** 2, [1.0, 2.0])  # only their sum
    1
    """
    slopes = jacobian(row_logs, np.asarray(theta, dtype=float))
    values = np.linalg.svd(slopes, compute_uv=False)
    return int((values > RESOLVED * values.max(initial=0.0)).sum())


def linear_parameters(X, y, weight, fit_intercept, penalty):
    """Give tr[(AᵀA + P)⁻¹AᵀA] for the columns A of a table, centered if there is an intercept, each row by its weight.

    Parameters
    ----------
    penalty : Diagonal of P beside the plain sum of squares: a number or one for each column, infinite for columns left out.

    Examples
    --------
    >>> X = [[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]]  # one direction, twice
    >>> linear_parameters(X, None, None, True, 0.0)
    1.0
    """
    X, _ = as_matrix(X)
    penalty = np.broadcast_to(np.asarray(penalty, dtype=float), X.shape[1])
    X, penalty = X[:, np.isfinite(penalty)], penalty[np.isfinite(penalty)]
    if X.shape[1] == 0:
        return 0.0
    if X.shape[1] > MOST:
        raise ValueError(f"The directions of {X.shape[1]} columns are too many to count; {MOST} are not.")
    target = np.zeros(X.shape[0]) if y is None else np.asarray(y, dtype=float)
    problem = compress(Blocks.of(X, target, weight), fit_intercept)
    A = problem.centered[0]
    varies = np.linalg.norm(A, axis=0) > least_squares.ROUNDING * least_squares.raw_lengths(problem)
    A = A * np.where(varies, problem.shift.unit, 0.0)  # in raw units, without what is rounding of a constant column
    size = np.sqrt((A**2).sum(axis=0) + penalty)
    size[size == 0] = 1.0
    # singular values of the columns over those of columns and penalty: no square of a condition number
    stacked = np.vstack([A, np.diag(np.sqrt(penalty))]) / size
    U, values, _ = np.linalg.svd(stacked, full_matrices=False)
    found = values > DIGITS * values.max(initial=0.0)
    if not penalty.any():
        return float(found.sum())
    return float((U[: len(A), found] ** 2).sum())


def softmax_information(Z, probabilities, weight):
    """Give the information of rows Z about the weights of K scores, class by class: Σ s (diag p − ppᵀ) ⊗ zzᵀ, (Km, Km).

    Examples
    --------
    >>> softmax_information(np.ones((2, 1)), np.full((2, 2), 0.5), np.ones(2))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    K, m = probabilities.shape[1], Z.shape[1]
    F = np.empty((K, m, K, m))
    for a in range(K):
        for b in range(a, K):
            share = weight * probabilities[:, a] * ((a == b) - probabilities[:, b])
            F[a, :, b] = Z.T @ (share[:, None] * Z)
            F[b, :, a] = F[a, :, b].T
    return F.reshape(K * m, K * m)


def with_constant(X, fit_intercept, centered=True):
    """Give a table in float64, dense; if there is an intercept with a column of ones, and centered if that makes up for it."""
    X, _ = as_matrix(X)
    X = (X.toarray() if is_sparse(X) else X).astype(float)
    return np.column_stack([X - X.mean(axis=0) * centered, np.ones(len(X))]) if fit_intercept else X


def covariance_parameters(kind, n_components, n_features):
    """Count the entries of covariances: "full", "tied", "diag", "tied-diag" or "spherical".

    Examples
    --------
    >>> [covariance_parameters(kind, 3, 2) for kind in ("full", "tied", "diag", "tied-diag", "spherical")]
    [9, 3, 6, 2, 3]
    """
    k, d = n_components, n_features
    one = d * (d + 1) // 2
    return {"full": k * one, "tied": one, "diag": k * d, "tied-diag": d, "spherical": k}[kind]


def loading_parameters(n_components, n_features):
    """Count the loadings of hidden coordinates: dk entries less the k(k − 1)/2 of a rotation, which changes no density.

    Examples
    --------
    >>> loading_parameters(2, 5)
    9
    """
    k, d = n_components, n_features
    return d * k - k * (k - 1) // 2


def factorization_parameters(n_rows, n_columns, n_components):
    """Count the entries of both factors of an n_rows × n_columns table: (M₁ + M₂)R.

    Examples
    --------
    >>> factorization_parameters(100, 50, 5), factorization_parameters(4, 3, 2)
    (750, 14)
    """
    return (n_rows + n_columns) * n_components
