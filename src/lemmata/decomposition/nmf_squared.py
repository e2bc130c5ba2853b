"""The squared loss of a non-negative factorization, and how its two factors are improved.

    F(W, H) = ½ Σᵢ sᵢ Σⱼ mᵢⱼ (xᵢⱼ − wᵢ·hⱼ)² + penalties

A pass over the rows improves each wᵢ given H and sums what H needs of them: for a complete table A = Σ sᵢ wᵢwᵢᵀ (k × k) and
B = Σ sᵢ wᵢxᵢᵀ; where entries are missing every column has its own A, which makes k² numbers a column. F follows from A and B,
and H is improved from them without the rows. Both sides are the small problems of `nmf_rows`.
"""

import numpy as np

from lemmata.core import config
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.threads import run
from lemmata.decomposition import nmf_rows
from lemmata.decomposition.nmf_entries import entries, ones_or

CHUNK = 2048  # columns of H that a thread improves at once


@kernel
def products(indptr, indices, values, inverse, H, b):
    """Write b = X H / unit, H with a row for each column of X."""
    k = H.shape[1]
    for i in range(len(indptr) - 1):
        for r in range(k):
            b[i, r] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, j = values[p] * inverse, indices[p]
            for r in range(k):
                b[i, r] += x * H[j, r]


@kernel
def gather(indptr, indices, values, inverse, W, B):
    """Add XᵀW / unit to B."""
    k = W.shape[1]
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            x, j = values[p] * inverse, indices[p]
            for r in range(k):
                B[j, r] += x * W[i, r]


@kernel
def sparse_pass(indptr, indices, values, inverse, weight, W, H, G, penalty, n_rounds, B):
    """Improve all rows by rounds of descent, and add their part to B; return the moves.

    One call for all, since threads that come back from compiled code wait for each other's turn in Python.
    """
    b = np.empty(W.shape)
    products(indptr, indices, values, inverse, H, b)
    m = G.shape[0]
    room = np.zeros((2 * m + 4, nmf_rows.TILE))
    moved = nmf_rows.descend_tiles(
        W,
        b,
        G,
        penalty,
        weight,
        n_rounds,
        room[:m],
        room[m : 2 * m],
        room[2 * m],
        room[2 * m + 1],
        room[2 * m + 2],
        room[2 * m + 3],
    )
    for i in range(W.shape[0]):
        for r in range(W.shape[1]):
            b[i, r] = weight[i] * W[i, r]
    gather(indptr, indices, values, inverse, b, B)
    return moved, np.dot(W.T, b)


@kernel
def own_problem(indptr, indices, values, marks, inverse, H, ridge, i, b, G):
    """Write b = Σⱼ mᵢⱼ xᵢⱼ hⱼ and G = Σⱼ mᵢⱼ hⱼhⱼᵀ + ridge of the seen entries of row i."""
    k = H.shape[1]
    for r in range(k):
        b[0, r] = 0.0
        for c in range(k):
            G[0, r, c] = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        j, m = indices[p], marks[p]
        x = m * values[p] * inverse
        for r in range(k):
            b[0, r] += x * H[j, r]
            h = m * H[j, r]
            for c in range(k):
                G[0, r, c] += h * H[j, c]
    for r in range(k):
        G[0, r, r] += ridge


@kernel
def seen_pass(indptr, indices, values, marks, inverse, weight, W, fresh, H, penalty, ridge, n_rounds, A, B, b, G, gradient):
    """Improve each row by its seen entries, and add its part to A (columns, k, k) and B; return moves and sizes."""
    k, moved, size = W.shape[1], 0.0, 0.0
    for i in range(len(indptr) - 1):
        s = weight[i]
        own_problem(indptr, indices, values, marks, inverse, H, ridge, i, b, G)
        if fresh:
            nmf_rows.start_row(W, i, b, 0, G, 0)
        moved += s * nmf_rows.improve(W, i, b, 0, G, 0, penalty, gradient, n_rounds)
        for r in range(k):
            size += s * G[0, r, r] * W[i, r] * W[i, r]
        add_seen(indptr, indices, values, marks, inverse, s, W, i, A, B)
    return moved, size


@kernel
def add_seen(indptr, indices, values, marks, inverse, s, W, i, A, B):
    """Add the part of row i to A (columns, k, k) and B."""
    k = W.shape[1]
    for p in range(indptr[i], indptr[i + 1]):
        j, m = indices[p], s * marks[p]
        x = m * values[p] * inverse
        for r in range(k):
            B[j, r] += x * W[i, r]
            v = m * W[i, r]
            for c in range(k):
                A[j, r, c] += v * W[i, c]


@kernel
def seen_solve(indptr, indices, values, marks, inverse, W, fresh, H, penalty, ridge, b, G, gradient, free, lower, step):
    """Bring each row to its minimum by its seen entries."""
    for i in range(len(indptr) - 1):
        own_problem(indptr, indices, values, marks, inverse, H, ridge, i, b, G)
        if fresh:
            nmf_rows.start_row(W, i, b, 0, G, 0)
        nmf_rows.solve(W, i, W.shape[1], b, 0, G, 0, penalty, gradient, free, lower, step)


@kernel
def seen_error(indptr, indices, values, marks, inverse, weight, W, H):
    """Return Σᵢ sᵢ Σⱼ mᵢⱼ (xᵢⱼ − wᵢ·hⱼ)² over the listed entries, and the same sum of (wᵢ·hⱼ)²."""
    k, error, explained = W.shape[1], 0.0, 0.0
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            fit, j = 0.0, indices[p]
            for r in range(k):
                fit += W[i, r] * H[j, r]
            s = weight[i] * (marks[p] if len(marks) else 1.0)
            error += s * (values[p] * inverse - fit) ** 2
            explained += s * fit * fit
    return error, explained


class Squared:
    """The squared loss in units of the table: blocks' parts, the improvement of H, and the loss itself.

    Parameters
    ----------
    layout : What the blocks look like.
    inverse : One over the unit in which the table is counted.
    penalty_W, ridge_W, penalty_H, ridge_H : Factors of Σ and of ½Σ² of the entries of each factor.

    Attributes
    ----------
    n_rounds : Rounds of coordinate descent at most; 0 for one multiplicative update.
    """

    power = 2  # the loss of a table in units u is the loss in units of one, times u to this power

    n_rounds = 0

    def __init__(self, layout, inverse, penalties):
        self.layout, self.inverse = layout, inverse
        self.penalty_W, self.ridge_W, self.penalty_H, self.ridge_H = penalties

    def gram(self, H):
        """Give HHᵀ with the ridge of W."""
        return (H.T @ H + self.ridge_W * np.eye(H.shape[1]))[None]

    def pass_block(self, X, weight, W, H):
        """Improve W on a block; return what H needs, moves and sizes, the penalty of W, and W."""
        n, k, fresh = X.shape[0], H.shape[1], W is None
        W = np.empty((n, k)) if fresh else W.copy()
        s = ones_or(weight, n)
        d = self.layout.n_columns
        B = np.zeros((d, k))
        if self.layout.missing:
            A, b, G = np.zeros((d, k, k)), np.empty((1, k)), np.empty((1, k, k))
            options = (H, self.penalty_W, self.ridge_W, self.n_rounds, A, B, b, G, np.empty(k))
            moved, size = seen_pass(*entries(X, self.layout), self.inverse, s, W, fresh, *options)
        elif is_sparse(X) and not fresh and self.n_rounds:
            G = self.gram(H)
            options = (H, nmf_rows.filled(G[0]), self.penalty_W, self.n_rounds, B)
            moved, A = sparse_pass(*entries(X, self.layout)[:3], self.inverse, s, W, *options)
            size = float(np.diagonal(G[0]) @ np.diagonal(A))
        else:
            G, b = self.gram(H), self._right_side(X, H)
            if fresh:
                nmf_rows.start_rows(W, b, G)
            moved = nmf_rows.improve_alike(W, b, G[0], self.penalty_W, s, self.n_rounds)
            A, B = self._sums(X, weight, W, B)
            size = float(np.diagonal(G[0]) @ np.diagonal(A))
        return (A, B, np.array([moved, size, self._penalty_of(W, s)])), W

    def _right_side(self, X, H):
        if not is_sparse(X):
            return (X.astype(float, copy=False) @ H) * self.inverse
        b = np.empty((X.shape[0], H.shape[1]))
        products(*entries(X, self.layout)[:3], self.inverse, H, b)
        return b

    def _sums(self, X, weight, W, B):
        weighted = W if weight is None else weight[:, None] * W
        if is_sparse(X):
            gather(*entries(X, self.layout)[:3], self.inverse, weighted, B)
        else:
            B = (X.astype(float, copy=False).T @ weighted) * self.inverse
        return W.T @ weighted, B

    def _penalty_of(self, W, s):
        if not (self.penalty_W or self.ridge_W):
            return 0.0
        return float(s @ (self.penalty_W * W.sum(axis=1) + 0.5 * self.ridge_W * (W * W).sum(axis=1)))

    def objective(self, sums, H, total):
        """Give the loss at W and H; `total` is Σ s m x²."""
        A, B, (_, _, penalty) = sums
        quadratic = np.einsum("jrc,jr,jc->", A, H, H, optimize=True) if A.ndim == 3 else np.sum(A * (H.T @ H))
        penalty += self.penalty_H * H.sum() + 0.5 * self.ridge_H * np.sum(H * H)
        return float(0.5 * (total - 2 * np.sum(B * H) + quadratic) + penalty)

    def improve(self, sums, H):
        """Improve H by the sums of a pass; return it, twice, and how far it and W moved at first, as shares of their sizes.

        Of the two, the first may not raise the loss, the second may, and is tried first; here they are the same.
        """
        A, B, (moved_W, size_W, _) = sums
        G = (A if A.ndim == 3 else A[None]) + self.ridge_H * np.eye(H.shape[1])
        H = H.copy()
        parts = [slice(start, start + CHUNK) for start in range(0, len(H), CHUNK)]
        moved = np.zeros(len(parts))

        def work(task):
            i, rows = task
            if A.ndim == 3:
                room = np.empty(H.shape[1])
                moved[i] = nmf_rows.improve_apart(H[rows], B[rows], G[rows], self.penalty_H, room, self.n_rounds)
            else:
                ones = np.ones(len(H[rows]))
                moved[i] = nmf_rows.improve_alike(H[rows], B[rows], G[0], self.penalty_H, ones, self.n_rounds)

        run(work, list(enumerate(parts)), min(config.n_threads(), len(parts)))
        size = np.sum(np.diagonal(G, axis1=1, axis2=2) * (H * H))
        return H, H, share(moved.sum(), size) ** 0.5, share(moved_W, size_W) ** 0.5

    def ahead(self, H, before, momentum):
        """Go on from H the way it came from `before`."""
        return np.maximum(H + momentum * (H - before), 0.0)

    def solve_block(self, X, weight, H, W=None):
        """Find the best W of a block, from a W nearby if there is one."""
        k, fresh = H.shape[1], W is None
        W = np.empty((X.shape[0], k)) if fresh else W.copy()
        room = (np.empty(k), np.empty(k, np.int64), np.empty((k, k)), np.empty(k))
        if self.layout.missing:
            b, G = np.empty((1, k)), np.empty((1, k, k))
            seen_solve(*entries(X, self.layout), self.inverse, W, fresh, H, self.penalty_W, self.ridge_W, b, G, *room)
        else:
            G, b = self.gram(H), self._right_side(X, H)
            if fresh:
                nmf_rows.start_rows(W, b, G)
            nmf_rows.solve_rows(W, b, G, self.penalty_W, *room)
        return W

    def error_block(self, X, weight, W, H):
        """Give the loss of a block at its best W, without penalties, and this W, found from one nearby if there is one."""
        W, s = self.solve_block(X, weight, H, W), ones_or(weight, X.shape[0])
        if not is_sparse(X) and not self.layout.missing:
            return 0.5 * float(s @ ((X.astype(float) * self.inverse - W @ H.T) ** 2).sum(axis=1)), W
        error, explained = seen_error(*entries(X, self.layout), self.inverse, s, W, H)
        if not self.layout.missing:  # entries that are not stored are zeros: what W and H give them is error
            error += max(float(np.sum((W.T @ (s[:, None] * W)) * (H.T @ H))) - explained, 0.0)
        return 0.5 * error, W

    def total_block(self, X, weight):
        """Give Σ s m x² of a block."""
        seen = entries(X, self.layout)
        row = np.repeat(ones_or(weight, X.shape[0]), np.diff(seen.indptr))
        return float((row * (seen.marks if len(seen.marks) else 1.0)) @ (seen.values * self.inverse) ** 2)


def share(part, whole):
    """Divide, where nothing of nothing is nothing."""
    return part / whole if whole > 0 else 0.0
