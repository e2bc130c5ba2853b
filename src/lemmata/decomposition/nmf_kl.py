"""The generalized Kullback–Leibler divergence of a non-negative factorization, and how its two factors are improved.

    F(W, H) = Σᵢ sᵢ Σⱼ mᵢⱼ (xᵢⱼ log(xᵢⱼ/wᵢ·hⱼ) − xᵢⱼ + wᵢ·hⱼ) + penalties

Up to a constant it is the negative log-likelihood of counts xᵢⱼ that are Poisson with the means wᵢ·hⱼ. A pass over the rows
improves each wᵢ by multiplicative updates, while its entries are in the cache, and sums Σᵢ sᵢmᵢⱼ wᵢ xᵢⱼ/(wᵢ·hⱼ) and Σᵢ sᵢmᵢⱼ
wᵢ, from which H has its own update. After it, and without penalties, Σ WH = Σ X [1].

[1] Lee & Seung, NIPS (2000).
"""

import numpy as np

from lemmata.decomposition import nmf_kl_pass, nmf_kl_rows, nmf_rows
from lemmata.decomposition.nmf_entries import entries, ones_or
from lemmata.decomposition.nmf_squared import share

LEAST = 0.1  # share of an entry of H that going ahead leaves of it: it must stay positive, since updates multiply


class Divergence:
    """The Kullback–Leibler loss in units of the table; see `nmf_squared.Squared`, which has the same methods.

    Attributes
    ----------
    n_rounds : Rounds of Newton's method for a row in one pass; 0 for one multiplicative update, of H as well.
    """

    power = 1

    n_rounds = 0

    def __init__(self, layout, inverse, penalties):
        self.layout, self.inverse = layout, inverse
        self.penalty_W, self.ridge_W, self.penalty_H, self.ridge_H = penalties

    def pass_block(self, X, weight, W, H):
        """Improve W on a block; return what H needs, the loss, moves and sizes, and W."""
        (d, k), fresh = H.shape, W is None
        seen = entries(X, self.layout)
        W = np.empty((X.shape[0], k)) if fresh else W.copy()
        pulls, mass = np.zeros((d, k)), np.zeros((d if self.layout.missing else 1, k))
        bends = np.zeros((d if self.n_rounds else 0, k, k))
        longest = int(np.diff(seen.indptr).max(initial=0))
        v, exponent, fraction = np.empty((3, longest))
        logs = (v, v.view(np.int64), exponent, fraction, fraction.view(np.int64))
        weight, shared = ones_or(weight, X.shape[0]), H.sum(axis=0) + self.penalty_W
        options = (shared, self.penalty_W, self.ridge_W, self.n_rounds, pulls, mass, bends)
        found = nmf_kl_pass.pass_rows(*seen, self.inverse, weight, W, fresh, H, *options, *logs, *room(k))
        return (pulls, mass, bends, np.array(found)), W

    def objective(self, sums, H, total):
        """Give the loss at W and H."""
        return float(sums[-1][0] + self.penalty_H * H.sum() + 0.5 * self.ridge_H * np.sum(H * H))

    def improve(self, sums, H):
        """Update H by the sums of a pass; return it, where Newton's method would go, and which shares of the mass would move.

        The update cannot raise the loss. Newton's method goes to the least of the quadratic that touches the loss at H,
        column by column; it can leave zero, and may go too far.
        """
        pulls, mass, bends, (_, moved_W, size_W) = sums
        q, c = H * pulls, mass + self.penalty_H
        twice = c + np.sqrt(c * c + 4 * self.ridge_H * q)
        new = np.divide(2 * q, twice, out=np.zeros_like(H), where=twice > 0)
        new[new < nmf_kl_pass.VANISHED] = 0.0
        bold = self._newton(pulls - c - self.ridge_H * H, bends, H) if len(bends) else new
        return new, bold, share(np.sum(c * np.abs(bold - H)), np.sum(c * bold)), share(moved_W, size_W)

    def _newton(self, downhill, bends, H):
        k = H.shape[1]
        G = bends + self.ridge_H * np.eye(k)
        goal = np.where(np.einsum("jrr->jr", G) > 0, H, 0.0)  # a part that nothing bends has nothing to explain here
        b = np.einsum("jrc,jc->jr", G, H) + downhill
        nmf_rows.solve_apart(goal, b, G, np.empty(k), np.empty(k, np.int64), np.empty((k, k)), np.empty(k))
        return goal

    def ahead(self, H, before, momentum):
        """Go on from H the way it came from `before`, but where updates multiply keep every entry positive."""
        if self.n_rounds:
            return np.maximum(H + momentum * (H - before), 0.0)
        return np.maximum(H + momentum * (H - before), LEAST * H)

    def solve_block(self, X, weight, H, W=None):
        """Find the best W of a block; from a W nearby, if there is one, as precisely as its loss asks for."""
        k, fresh = H.shape[1], W is None
        W = np.empty((X.shape[0], k)) if fresh else W.copy()
        nearly = nmf_kl_rows.NEARLY if fresh else nmf_kl_rows.NEARLY_AN_ERROR
        shared, options = H.sum(axis=0) + self.penalty_W, (self.penalty_W, self.ridge_W, nearly)
        nmf_kl_rows.solve_rows(*entries(X, self.layout), self.inverse, W, fresh, H, shared, *options, *room(k))
        return W

    def error_block(self, X, weight, W, H):
        """Give the loss of a block at its best W, without penalties, and this W, found from one nearby if there is one."""
        W, s = self.solve_block(X, weight, H, W), ones_or(weight, X.shape[0])
        return float(nmf_kl_pass.error_rows(*entries(X, self.layout), self.inverse, s, W, H, H.sum(axis=0))), W

    def total_block(self, X, weight):
        """Give Σ s m x of a block."""
        seen = entries(X, self.layout)
        row = np.repeat(ones_or(weight, X.shape[0]), np.diff(seen.indptr))
        return float((row * (seen.marks if len(seen.marks) else 1.0)) @ (seen.values * self.inverse))


def room(k):
    """Make room for what the kernels write while they work on a row."""
    w, c, pull, trial, target, gradient, step = np.empty((7, k))
    (free, inner), (b, z) = np.empty((2, k), np.int64), np.empty((2, 1, k))
    return w, c, pull, trial, target, free, np.empty((1, k, k)), b, z, gradient, inner, np.empty((k, k)), step
