"""Principal axes of covariances whose columns may differ in scale by any factor.

Σ = R diag(s) Rᵀ. The usual routines get every variance right to a share of the largest one, so those of a column in
micrometers are lost beside one in kilometers. Jacobi's method, turning pairs of rows of the Cholesky factor of Σ until all are
orthogonal, gets each right relative to itself, as far as the correlations allow [1].

[1] Demmel & Veselić, SIAM J. Matrix Anal. Appl. 13 (1992).
"""

import numpy as np

from lemmata.core.kernel import kernel

ALIKE = 1e3  # standard deviations that differ by less cost the usual routines six digits of sixteen at most
ORTHOGONAL = 1e-15  # cosine of two rows that need no turn
SWEEPS = 60  # at most; about ten are usual


@kernel
def turn_rows(A, W):
    """Turn the rows of A until they are orthogonal, and those of W with them, in place."""
    d = A.shape[0]
    for _ in range(SWEEPS):
        turned = False
        for p in range(d - 1):
            for q in range(p + 1, d):
                a, b, c = 0.0, 0.0, 0.0
                for i in range(d):
                    a += A[p, i] * A[p, i]
                    b += A[q, i] * A[q, i]
                    c += A[p, i] * A[q, i]
                if abs(c) > ORTHOGONAL * np.sqrt(a) * np.sqrt(b):
                    turned = True
                    z = (b - a) / (2.0 * c)
                    tangent = (1.0 if z >= 0.0 else -1.0) / (abs(z) + np.sqrt(1.0 + z * z))
                    cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                    sine = cosine * tangent
                    for i in range(d):
                        A[p, i], A[q, i] = cosine * A[p, i] - sine * A[q, i], sine * A[p, i] + cosine * A[q, i]
                        W[p, i], W[q, i] = cosine * W[p, i] - sine * W[q, i], sine * W[p, i] + cosine * W[q, i]
        if not turned:
            return


def by_jacobi(covariance):
    """Give variances along the principal axes of one matrix, each right relative to itself, and the axes as columns."""
    scale = np.sqrt(np.diagonal(covariance))
    order = np.argsort(-scale, kind="stable")  # from large to small few turns are needed
    units = scale[order] / scale.max()
    lower = units[:, None] * np.linalg.cholesky((covariance / np.outer(scale, scale))[np.ix_(order, order)])
    turns = np.eye(len(scale))
    turn_rows(lower, turns)
    vectors = np.empty_like(turns)
    vectors[order] = turns.T
    return (scale.max() * np.sqrt((lower**2).sum(axis=1))) ** 2, vectors


def principal_axes(covariances):
    """Give variances (k, d), the largest first, and axes (k, d, d) as columns, of which the largest entry is positive.

    Examples
    --------
    >>> values, vectors = principal_axes(np.array([[[1e-12, 0.0], [0.0, 1e12]]]))
    >>> values, vectors
    (array([[1.e+12, 1.e-12]]), array([[[0., 1.],
            [1., 0.]]]))
    """
    scales = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    if (scales.max(axis=1) < ALIKE * scales.min(axis=1)).all():
        values, vectors = np.linalg.eigh(covariances)
    else:
        values, vectors = (np.stack(part) for part in zip(*map(by_jacobi, covariances), strict=True))
    order = np.argsort(-values, axis=1, kind="stable")
    values, vectors = np.take_along_axis(values, order, axis=1), np.take_along_axis(vectors, order[:, None], axis=2)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
    return values, vectors * np.where(largest < 0, -1.0, 1.0)
