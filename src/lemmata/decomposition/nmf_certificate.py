"""What can be proved of a non-negative factorization from its parts H and the table alone.

W is no part of the model: the checker finds the best one for H anew, and proves it. Given H the loss is convex in W, so that

    w = (w − g/q)₊   in every coordinate, g the gradient and q > 0 any scale,

makes it the least. The same equation for H, given this W, makes H stationary, also where it is zero and multiplicative
updates would be stuck: there the gradient must not be negative. Both factors together may still have better ones elsewhere.
In the scale q of the second derivatives, and parts in units of what they contribute, nothing depends on how a part's size is
shared by W and H. All sums here are written again, in NumPy and SciPy. The best factors of any sign have the error of the
singular values left out [1], and no others have less: how far above it the fit is bounds how far it is above the best fit.

[1] Eckart & Young, Psychometrika 1 (1936).
"""

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check, equi, nonnegative, same
from lemmata.core.data import WIDE, is_sparse
from lemmata.decomposition.nmf_entries import entries, ones_or

BEST_LIMIT = 1e-6  # share of W that a step along its coordinates may still move; the error it leaves is the square of that
ROUNDING = 1e-8  # share of the table's own size (squared length, or sum) below which an error is not told from rounding


def certificate(table, loss, H, stored, subject):
    """Check parts, with a row for each column and in the table's units, and the stored error."""
    blocks, kind = table.blocks, SquaredCheck if loss.power == 2 else DivergenceCheck
    error, W = blocks.sweep(loss.error_block, None, H)
    total = blocks.reduce(loss.total_block)
    check = kind(loss)
    (moved, size, *rest), W = blocks.sweep(check.rows_block, W, H)
    moved = check.measure(moved / max(size, TINY))
    known = (stored / table.unit ** (loss.power / 2)) ** 2
    checks = [
        Check("non-negative", abs(float(np.minimum(H, 0.0).min())), 0.0, "proof", "no entry of the parts is negative"),
        Check("W", float(moved), BEST_LIMIT, "proof", "no other W is better for these parts"),
        check.parts(blocks, W, H),
        same(known, 2 * error, "error", "the stored error is that of the best W, squared", floor=ROUNDING * total),
        *check.more(table, rest, H, error, total),
    ]
    return Certificate(*checks, subject=subject)


def projected(values, gradient, curvature):
    """Give values − (values − gradient/curvature)₊; where nothing curves, a positive gradient leaves nothing but zero."""
    flat = np.where(gradient > 0, values, 0.0)
    step = np.divide(gradient, curvature, out=np.zeros_like(values), where=curvature > 0)
    return np.where(curvature > 0, values - np.maximum(values - step, 0.0), flat)


def farther(values, gradient, curvature, cost):
    """Give the larger one of the steps by second derivatives and by a multiplicative update, values × gradient/cost.

    Near zero the divergence bends so much that only the update tells how far the way is.
    """
    step = projected(values, gradient, curvature)
    update = np.divide(values * gradient, cost, out=np.zeros_like(values), where=cost > 0)
    return np.where(np.abs(update) > np.abs(step), update, step)


def matrix(seen, values, shape):
    """Give the listed entries as a sparse matrix with these values."""
    from scipy.sparse import csr_array

    return csr_array((values, seen.indices, seen.indptr), shape=shape)


class SquaredCheck:
    """The equations of the squared loss."""

    def __init__(self, loss):
        self.loss = loss

    def rows_block(self, X, weight, W, H):
        """Sum, over rows, how far steps along the coordinates of W would go, and the size of W, in units of the fit."""
        loss, s = self.loss, ones_or(weight, X.shape[0])[:, None]
        if loss.layout.missing:
            seen, shape = entries(X, loss.layout), (X.shape[0], H.shape[0])
            pairs = (H[:, :, None] * H[:, None, :]).reshape(len(H), -1)
            G = (matrix(seen, seen.marks, shape) @ pairs).reshape(len(W), *2 * (H.shape[1],))
            b = matrix(seen, seen.marks * seen.values * loss.inverse, shape) @ H
            gradient, curvature = np.einsum("irc,ic->ir", G, W) - b, np.einsum("irr->ir", G)
        else:
            G = H.T @ H
            gradient, curvature = W @ G - (X @ H) * loss.inverse, np.broadcast_to(np.diag(G), W.shape)
        gradient, curvature = gradient + loss.penalty_W + loss.ridge_W * W, curvature + loss.ridge_W
        moves = projected(W, gradient, curvature)
        return np.array([np.sum(s * curvature * moves**2), np.sum(s * curvature * W**2)]), W

    measure = staticmethod(np.sqrt)  # of a share of squares

    def sums_block(self, X, weight, W):
        """Sum what the equations of H need, with W as it is."""
        loss, weighted = self.loss, ones_or(weight, X.shape[0])[:, None] * W
        if not loss.layout.missing:
            return (W.T @ weighted, np.asarray(X.T @ weighted) * loss.inverse), W
        seen, shape = entries(X, loss.layout), (X.shape[0], loss.layout.n_columns)
        pairs = (W[:, :, None] * weighted[:, None, :]).reshape(len(W), -1)
        A = matrix(seen, seen.marks, shape).T @ pairs
        B = matrix(seen, seen.marks * seen.values * loss.inverse, shape).T @ weighted
        return (A.reshape(-1, *2 * (W.shape[1],)), B), W

    def parts(self, blocks, W, H):
        """Check that the parts are stationary."""
        (A, B), _ = blocks.sweep(self.sums_block, W)
        A = np.broadcast_to(A, (len(H), *A.shape[-2:])) + self.loss.ridge_H * np.eye(H.shape[1])
        curvature = np.einsum("jrr->jr", A)
        size = np.sqrt(curvature.mean(axis=0))

        def residual(scaled):
            parts = np.divide(scaled, size, out=np.zeros_like(scaled), where=size > 0)
            gradient = np.einsum("jrc,jc->jr", A, parts) - B + self.loss.penalty_H
            return projected(parts, gradient, curvature) * size

        return stationary(residual, H * size)

    def more(self, table, rest, H, error, total):
        """Compare the error with that of the best factors of any sign, where a table is complete and not too wide."""
        loss = self.loss
        penalized = loss.penalty_W or loss.ridge_W or loss.penalty_H or loss.ridge_H
        if table.layout.missing or table.layout.n_columns > WIDE or penalized:
            return []
        squares = np.linalg.eigvalsh(table.blocks.reduce(gram_block, loss.inverse))[: -H.shape[1]]
        excess = max(2 * error - float(np.maximum(squares, 0.0).sum()), 0.0) / max(2 * error, ROUNDING * total, TINY)
        claim = f"no factors of rank {H.shape[1]} have a squared error smaller by more than this share"
        return [Check("excess", excess, np.inf, "proof", claim)]


class DivergenceCheck:
    """The equations of the Kullback–Leibler divergence."""

    def __init__(self, loss):
        self.loss = loss

    def _listed(self, X, W, H):
        """Give the entries with x > 0, or all that are seen where some are missing: weights, values, x/wh and x/(wh)²."""
        seen = entries(X, self.loss.layout)
        rows = np.repeat(np.arange(len(W)), np.diff(seen.indptr))
        fits = np.zeros(len(rows))
        for r in range(H.shape[1]):
            fits += W[rows, r] * H[seen.indices, r]
        marks = seen.marks if len(seen.marks) else np.ones(len(rows))
        values = seen.values * self.loss.inverse
        ratio = np.divide(values, fits, out=np.zeros_like(fits), where=fits > 0)
        bend = np.divide(ratio, fits, out=np.zeros_like(fits), where=fits > 0)
        return seen, marks, values, ratio, bend

    def rows_block(self, X, weight, W, H):
        """Sum, over rows, the mass that steps along the coordinates of W would move, that of W, and those of WH and X."""
        loss, s, shape = self.loss, ones_or(weight, X.shape[0])[:, None], (X.shape[0], len(H))
        seen, marks, values, ratio, bend = self._listed(X, W, H)
        missing = loss.layout.missing
        cost = matrix(seen, marks, shape) @ H if missing else np.broadcast_to(H.sum(axis=0), W.shape)
        gradient = cost + loss.penalty_W + loss.ridge_W * W - matrix(seen, marks * ratio, shape) @ H
        moves = farther(W, gradient, matrix(seen, marks * bend, shape) @ H**2 + loss.ridge_W, cost)
        given = s[:, 0] @ np.sum(cost * W, axis=1), s[:, 0] @ (matrix(seen, marks * values, shape) @ np.ones(len(H)))
        return np.array([np.sum(s * cost * np.abs(moves)), np.sum(s * cost * W), *given]), W

    measure = staticmethod(float)

    def sums_block(self, X, weight, W, H):
        """Sum what the equations of H need, with W as it is."""
        shape, weighted = (X.shape[0], len(H)), ones_or(weight, X.shape[0])[:, None] * W
        seen, marks, _, ratio, bend = self._listed(X, W, H)
        missing = self.loss.layout.missing
        mass = matrix(seen, marks, shape).T @ weighted if missing else weighted.sum(axis=0)[None]
        return (matrix(seen, marks * ratio, shape).T @ weighted, mass, matrix(seen, marks * bend, shape).T @ (weighted * W)), W

    def parts(self, blocks, W, H):
        """Check that the parts are stationary."""
        loss, (_, mass, curvature) = self.loss, blocks.sweep(self.sums_block, W, H)[0]
        size = mass.mean(axis=0)

        def residual(scaled):
            parts = np.divide(scaled, size, out=np.zeros_like(scaled), where=size > 0)
            pulls, mass, _ = blocks.sweep(self.sums_block, W, parts)[0]
            gradient = mass + loss.penalty_H + loss.ridge_H * parts - pulls
            return farther(parts, gradient, curvature + loss.ridge_H, mass) * size

        return stationary(residual, H * size)

    def more(self, table, rest, H, error, total):
        """Compare the sums of the table and of the fit, which are equal at the best W, if there is no penalty."""
        if self.loss.penalty_W or self.loss.ridge_W:
            return []
        fitted, there = rest
        return [Check("sum", abs(fitted - there) / max(there, TINY), BEST_LIMIT, "proof", "WH has the sum that X has")]


def stationary(residual, scaled):
    """Check that the parts are where no small change of them lowers the loss, given W."""
    return equi(residual, scaled, "H", "given W, no small change of the parts lowers the loss", move=nonnegative)


def gram_block(X, weight, inverse):
    """Sum XᵀX of a block."""
    weighted = X.astype(float) * inverse
    if is_sparse(X):
        from scipy.sparse import diags_array

        return (weighted.T @ (diags_array(ones_or(weight, X.shape[0])) @ weighted)).toarray()
    return weighted.T @ (ones_or(weight, X.shape[0])[:, None] * weighted)
