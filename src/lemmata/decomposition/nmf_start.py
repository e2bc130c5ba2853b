"""Where a non-negative factorization starts: H from the leading singular vectors of the table, or at random.

NNDSVD [1] takes the k leading singular triplets (σ, u, v) of X and keeps of each the positive or the negative parts,
whichever pair is longer: h = √(σ‖u₊‖‖v₊‖) v₊/‖v₊‖. It needs of u no more than two lengths, and all it needs of the rows are
sums: repeated rows and weighted rows start alike, in any order. The right singular vectors come from passes of Q ← orth(XᵀXQ)
[2], or from XᵀX itself where it is small. Missing entries count as the mean of their column here. W needs no start: each row
has one that follows from H.

[1] Boutsidis & Gallopoulos, Pattern Recognition 41 (2008). [2] Halko, Martinsson & Tropp, SIAM Review 53 (2011).
"""

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.decomposition.nmf_entries import column_block, entries, ones_or
from lemmata.decomposition.nmf_squared import gather, products

WHOLE = 256  # columns up to which XᵀX is summed as it is
EXTRA, PASSES = 10, 5  # further directions, and passes, of the search for singular vectors: a start needs no more digits
NOTHING = 1e-6  # share of the largest singular value below which a vector is rounding


def _projected(X, layout, inverse, mean, Q):
    """Give X Q with missing entries at their column's mean, and the entries less what they would be by then."""
    if not layout.missing and not is_sparse(X):
        return (X.astype(float, copy=False) @ Q) * inverse, None
    seen = entries(X, layout)
    values = seen.values * inverse - (mean[seen.indices] if layout.missing else 0.0)
    out = np.empty((X.shape[0], Q.shape[1]))
    products(seen.indptr, seen.indices, values, 1.0, Q, out)
    return (out + mean @ Q if layout.missing else out), (seen.indptr, seen.indices, values)


def span_block(X, weight, layout, inverse, mean, Q):
    """Sum XᵀXQ over the rows of a block."""
    T, rest = _projected(X, layout, inverse, mean, Q)
    s = ones_or(weight, X.shape[0])
    if rest is None:
        return (X.astype(float, copy=False).T @ (s[:, None] * T)) * inverse
    out = np.outer(mean, s @ T) if layout.missing else np.zeros(Q.shape)
    gather(*rest, 1.0, s[:, None] * T, out)
    return out


def halves_block(X, weight, layout, inverse, mean, V):
    """Sum the squares of the positive and of the negative entries of XV."""
    T, _ = _projected(X, layout, inverse, mean, V)
    s = ones_or(weight, X.shape[0])
    return s @ np.maximum(T, 0) ** 2, s @ np.minimum(T, 0) ** 2


def singular_vectors(blocks, layout, inverse, mean, k, rng):
    """Find the leading right singular vectors of the table, in columns, and the singular values."""
    d = layout.n_columns
    if d <= max(WHOLE, k + EXTRA):
        Q = np.eye(d)
        spanned = blocks.reduce(span_block, layout, inverse, mean, Q)
    else:
        spanned = rng.standard_normal((d, k + EXTRA))
        for _ in range(PASSES):
            Q = np.linalg.qr(spanned)[0]
            spanned = blocks.reduce(span_block, layout, inverse, mean, Q)
    small = Q.T @ spanned
    squares, vectors = np.linalg.eigh((small + small.T) / 2)
    order = np.argsort(-squares, kind="stable")[:k]
    return Q @ vectors[:, order], np.sqrt(np.maximum(squares[order], 0.0))


def start(kind, table, k, rng):
    """Give a start of H, with a row for each column of the table: "nndsvd", "nndsvda", "nndsvdar" or "random"."""
    blocks, layout, inverse = table.blocks, table.layout, 1 / table.unit
    sums, counts = blocks.reduce(column_block, layout, inverse)
    d, level = layout.n_columns, np.sqrt(sums.sum() / counts.sum() / k)
    H = level * np.abs(rng.standard_normal((d, k)))
    if kind == "random":
        return H
    V, values = singular_vectors(blocks, layout, inverse, sums / counts, k, rng)
    positive, negative = blocks.reduce(halves_block, layout, inverse, sums / counts, V)
    for r in np.flatnonzero(values > NOTHING * values[0]):
        up, down = np.maximum(V[:, r], 0.0), np.maximum(-V[:, r], 0.0)
        sizes = [np.linalg.norm(up) * positive[r] ** 0.5, np.linalg.norm(down) * negative[r] ** 0.5]
        part = np.abs(V[:, r]) if r == 0 else up if sizes[0] >= sizes[1] else down
        size = values[0] if r == 0 else max(sizes)
        H[:, r] = np.sqrt(size) * part / np.linalg.norm(part)
    if kind == "nndsvda":
        H[H == 0] = level
    elif kind == "nndsvdar":
        H[H == 0] = level * rng.random(np.count_nonzero(H == 0)) / 100  # 100: as scikit-learn has it
    return H
