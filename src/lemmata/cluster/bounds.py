"""Lower bounds of the inertia of any k clusters.

Spectral: with S the scatter about the mean, k means explain at most k − 1 of its directions, so the inertia is at least tr S
minus the k − 1 largest eigenvalues of S [1]. One pass over the rows.
Semidefinite: with D the squared distances of n rows, the inertia of a partition is ½⟨D, P⟩, where P sums 11ᵀ/n_t over the
clusters: P1 = 1, tr P = k, P ≥ 0, and P is a projection. So for any a ∈ Rⁿ and B ≥ 0, with T = ½D − ½(a1ᵀ + 1aᵀ) − B, the
inertia is at least 1ᵀa + 1ᵀT1/n + (the sum of the k − 1 smallest eigenvalues of T on the complement of 1) [2]. Labels suggest
(a, B): the gap then closes to rounding where clusters are well apart [3]. It costs n² memory and n³ work.

[1] Ding & He, ICML (2004). [2] Peng & Wei, SIAM J. Optim. 18 (2007), with Ky Fan's theorem.
[3] Iguchi, Mixon, Peterson & Villar, Math. Program. 165 (2017).
"""

from itertools import combinations

import numpy as np

from lemmata.core.data import is_sparse


def scatter_block(X, weight, origin):
    """Sum of weights, of offsets from the origin, and of their products."""
    A = (X.toarray() if is_sparse(X) else X) - origin
    B = A if weight is None else weight[:, None] * A
    return float(len(A) if weight is None else weight.sum()), B.sum(axis=0), B.T @ A


def spectral_bound(scatter, k):
    """Bound the inertia of any k clusters from below by the eigenvalues of the scatter."""
    return float(np.linalg.eigvalsh(scatter)[: max(0, len(scatter) - k + 1)].sum())


def semidefinite_bound(X, labels, k):
    """Bound the inertia of any k clusters of the rows of X from below, by dual points made from these labels."""
    X = X - X.mean(axis=0)
    unit = np.abs(X).max() or 1.0  # so that products of squares stay in range
    return unit**2 * _best_dual_value(X / unit, labels, k)


def _best_dual_value(X, labels, k):
    squares = (X**2).sum(axis=1)
    D = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0)
    best = dual_value(D, np.zeros(len(X)), 0.0, k)
    sizes = np.bincount(labels, minlength=k)
    if k == 1 or sizes.min() == 0:
        return best
    member = np.eye(k)[labels]
    within = 0.5 * (D * (member @ member.T)).sum(axis=1)
    mean_within = np.array([within[labels == t].sum() / sizes[t] for t in range(k)])

    def dual_point(z):
        a = 2 / sizes[labels] * (within - z) - ((mean_within - z) / sizes)[labels]
        return a, 0.5 * D @ member - 0.5 * (np.outer(a, sizes) + (mean_within - z))

    slack0, slack1 = dual_point(0.0)[1], dual_point(1.0)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        smallest = np.nanmax(np.where(member == 0, -slack0 / (slack1 - slack0), -np.inf))  # from here on, all slacks are ≥ 0
    residual = X - (member.T @ X / sizes[:, None])[labels]
    needed = -(np.linalg.norm(residual, 2) ** 2)  # above it the gap cannot close
    for z in (smallest, needed, 1.5 * needed, 2 * needed):
        if np.isfinite(z):
            a, slack = dual_point(z)
            best = max(best, dual_value(D, a, _multipliers(np.maximum(slack, 0.0), labels, k), k))
    return best


def dual_value(D, a, B, k):
    """Evaluate the bound of a dual point (any a, any B ≥ 0)."""
    n = len(D)
    T = 0.5 * D - 0.5 * (a[:, None] + a) - B
    mean = T.sum(axis=1) / n
    centered = T - mean[:, None] - mean + mean.mean()
    values = np.linalg.eigvalsh(centered + (np.abs(centered).sum() + 1.0) * np.ones((n, n)) / n)  # 1 goes to the top
    return float(a.sum() + T.sum() / n + values[: k - 1].sum())


def _multipliers(slack, labels, k):
    """Spread the slacks of each pair of clusters over its block."""
    B = np.zeros((len(labels), len(labels)))
    for u, v in combinations(range(k), 2):
        rows, columns = slack[labels == u, v], slack[labels == v, u]
        if rows.sum() > 0 and columns.sum() > 0:
            B[np.ix_(labels == u, labels == v)] = np.outer(rows, columns) / np.sqrt(rows.sum() * columns.sum())
    return B + B.T
