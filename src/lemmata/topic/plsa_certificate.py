"""What can be proved of PLSA from the laws of words p(w|z) and the counts alone.

p(z|d) is found anew, and must be stationary, which for a concave likelihood is to be the best. With W_dz = n_d p(z|d) and
H = p(w|z), all is as in a non-negative factorization by the Kullback–Leibler divergence, and `decomposition` has the checks,
also of entries that are zero. Tempered, the equations are those of EM: expected counts, normalized, are the laws again.
"""

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, equi, same, simplex
from lemmata.decomposition.nmf_certificate import BEST_LIMIT, DivergenceCheck
from lemmata.decomposition.nmf_entries import entries, ones_or
from lemmata.decomposition.nmf_kl import Divergence
from lemmata.topic.plsa_em import fold_block, likelihood_block


def shares_block(X, weight, state, layout, phi, beta, prior):
    """Let a block keep n_d p(z|d), found anew."""
    lengths = np.asarray(X.sum(axis=1, dtype=float)).reshape(-1, 1)
    return 0.0, lengths * fold_block(X, weight, layout, phi, beta, prior)


def expected_block(X, weight, W, layout, phi, beta):
    """Give the expected counts (words, topics) under the tempered posterior, and how far p(z|d) is from its own equation."""
    seen, s = entries(X, layout), ones_or(weight, X.shape[0])
    rows = np.repeat(np.arange(X.shape[0]), np.diff(seen.indptr))
    lengths = np.maximum(W.sum(axis=1, keepdims=True), TINY)
    odds = ((W / lengths)[rows] * phi[seen.indices]) ** beta
    expected = odds * (seen.values / np.maximum(odds.sum(axis=1), TINY))[:, None]
    counts, back = np.zeros(phi.shape), np.zeros(W.shape)
    np.add.at(counts, seen.indices, s[rows, None] * expected)
    np.add.at(back, rows, expected)
    return (counts, float(s @ np.abs(back - W).sum(axis=1))), W


def certificate(model, blocks, n_tokens, layout, phi, beta, prior):
    """Check the fitted attributes of a `PLSA`."""
    _, W = blocks.sweep(shares_block, None, layout, phi, beta, prior)
    value, mass = blocks.reduce(likelihood_block, layout, phi, beta, prior)
    lack = max(float(np.abs(phi.sum(axis=0) - 1).max()), float(-phi.min()), 0.0)
    if beta == 1:
        check = DivergenceCheck(Divergence(layout, 1.0, np.zeros(4)))
        (moved, size, *_), _ = blocks.sweep(check.rows_block, W, phi)
        moved, laws = moved / max(size, TINY), check.parts(blocks, W, phi)
    else:
        (_, moved), _ = blocks.sweep(expected_block, W, layout, phi, beta)
        moved, laws = moved / max(n_tokens, TINY), tempered(blocks, W, layout, phi, beta, mass)
    laws = Check("p(w|z)", laws.value, laws.limit, laws.kind, "given p(z|d), no small change of p(w|z) is better")
    return Certificate(
        Check("laws", lack, 10 * SAME_LIMIT, "proof", "probabilities of words are not negative and sum to one"),
        Check("p(z|d)", float(moved), BEST_LIMIT, "proof", "no other p(z|d) is better for these topics"),
        laws,
        same(prior, mass / mass.sum() if mass.sum() > 0 else prior, "p(z)", "shares of the topics in all words"),
        same(model.log_likelihood_, value, "likelihood", "log probability of all words with the best p(z|d)"),
        subject=repr(model),
    )


def tempered(blocks, W, layout, phi, beta, mass):
    """Check that a step of EM leaves the laws of words as they are, in units of words."""

    def residual(laws):
        (counts, _), _ = blocks.sweep(expected_block, W, layout, np.ascontiguousarray(laws.T), beta)
        totals = counts.sum(axis=0)
        return mass * (laws.T - counts / np.maximum(totals, TINY))

    return equi(residual, phi.T, "p(w|z)", "", move=simplex)
