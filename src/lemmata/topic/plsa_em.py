"""EM for probabilistic latent semantic analysis, literally, and tempered.

With shares θ_d = p(z|d) of the topics in the documents and laws φ_z = p(w|z) of words, the posterior of the topic of a word,
and what follows from it,

    E: q_dwz ∝ (θ_dz φ_zw)^β,      M: φ_zw ∝ Σ_d n_dw q_dwz,   θ_dz ∝ Σ_w n_dw q_dwz,

never lower L_β = 1/β Σ n_dw log Σ_z (θ_dz φ_zw)^β. β = 1 is EM, and L₁ the log-likelihood of the words given their documents;
β < 1 flattens the posterior, and a fit at such a "temperature" 1/β is less sure of itself than the data seem to allow [1].
For β ≤ 1 and given φ, L_β is concave in the shares of a document: to fold a document in has one answer.

[1] Hofmann, Machine Learning 42 (2001).
"""

import numpy as np

from lemmata.core.certificate import TINY
from lemmata.core.kernel import kernel
from lemmata.decomposition.nmf_descent import Memory
from lemmata.decomposition.nmf_entries import entries, ones_or
from lemmata.decomposition.nmf_kl import Divergence

FOLDED = 1e-13  # mean move of a share at which a document is at rest
STEPS = 100_000  # of a document, at most


@kernel
def document_step(indptr, indices, values, i, theta, powers, beta, weight, counts, odds, new):
    """Write where EM leads the shares of document i, and add weight × n q to the counts; return its part of L_β.

    Parameters
    ----------
    theta : Shares of the document; `new` receives those after the step, or the same for a document without words.
    powers : (words, topics), φ^β.
    odds : Room for θ^β.
    """
    k, value, length = len(theta), 0.0, 0.0
    for z in range(k):
        odds[z] = theta[z] if beta == 1.0 else theta[z] ** beta
        new[z] = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        w, total = indices[p], 0.0
        for z in range(k):
            total += odds[z] * powers[w, z]
        if total > 0.0:  # a word that no topic has says nothing
            ratio = values[p] / total
            value += values[p] * np.log(total)
            length += values[p]
            if weight > 0.0:
                for z in range(k):
                    counts[w, z] += weight * ratio * odds[z] * powers[w, z]
            for z in range(k):
                new[z] += ratio * odds[z] * powers[w, z]
    for z in range(k):
        new[z] = new[z] / length if length > 0.0 else theta[z]
    return value / beta


@kernel
def step_rows(indptr, indices, values, weight, theta, powers, beta, counts, odds, new):
    """Take one step of EM for all documents of a block, in place; return L_β, the words moved, and all words."""
    value, moved, total = 0.0, 0.0, 0.0
    for i in range(len(theta)):
        value += weight[i] * document_step(indptr, indices, values, i, theta[i], powers, beta, weight[i], counts, odds, new)
        length = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            length += values[p]
        for z in range(len(new)):
            moved += weight[i] * length * abs(new[z] - theta[i, z])
            theta[i, z] = new[z]
        total += weight[i] * length
    return value, moved, total


@kernel
def fold_rows(indptr, indices, values, theta, powers, beta, counts, odds, new):
    """Bring the shares of each document to rest, in place."""
    k = theta.shape[1]
    for i in range(len(theta)):
        for _ in range(STEPS):
            document_step(indptr, indices, values, i, theta[i], powers, beta, 0.0, counts, odds, new)
            moved = 0.0
            for z in range(k):
                moved += abs(new[z] - theta[i, z])
                theta[i, z] = new[z]
            if moved <= FOLDED * k:
                break


def step_block(X, weight, theta, layout, phi, beta):
    """Take one step of EM on a block; return expected counts (words, topics), L_β, words moved, all words; and the shares."""
    seen, (n, k) = entries(X, layout), (X.shape[0], phi.shape[1])
    theta = np.full((n, k), 1.0 / k) if theta is None else theta.copy()
    counts = np.zeros(phi.shape)
    s = ones_or(weight, n)
    found = step_rows(*seen[:3], s, theta, phi**beta, beta, counts, np.empty(k), np.empty(k))
    return (counts, np.array(found)), theta


def fold_block(X, weight, layout, phi, beta, prior):
    """Find the shares of the documents of a block; a document without words that are known has those of the prior."""
    k = phi.shape[1]
    if beta == 1.0:
        theta = Divergence(layout, 1.0, np.zeros(4)).solve_block(X, weight, phi)
    else:
        theta = np.full((X.shape[0], k), 1.0 / k)
        fold_rows(*entries(X, layout)[:3], theta, phi**beta, beta, np.empty((0, k)), np.empty(k), np.empty(k))
    totals = theta.sum(axis=1, keepdims=True)
    known = (np.asarray((X > 0).astype(float) @ phi.sum(axis=1)).reshape(-1, 1) > 0) & (totals > 0)
    return np.where(known, theta / np.where(known, totals, 1.0), prior)


def likelihood_block(X, weight, layout, phi, beta, prior):
    """Sum the log-likelihood of the words of a block given their documents, and the words of each topic."""
    theta, seen, s = fold_block(X, weight, layout, phi, beta, prior), entries(X, layout), ones_or(weight, X.shape[0])
    rows = np.repeat(np.arange(X.shape[0]), np.diff(seen.indptr))
    odds = np.zeros(len(rows))
    for z in range(phi.shape[1]):
        odds += theta[rows, z] * phi[seen.indices, z]
    with np.errstate(divide="ignore"):
        logs = np.where(seen.values > 0, seen.values * np.log(odds), 0.0)
    lengths = np.bincount(rows, seen.values, minlength=X.shape[0])
    return float(s[rows] @ logs) if len(rows) else 0.0, (s * lengths) @ theta


class Iteration(Memory):
    """Steps of `iterate` by EM."""

    def __init__(self, blocks, layout, beta, portable):
        super().__init__(blocks, portable)
        self.layout, self.beta = layout, beta

    def step(self, state):
        """Step once; return ((laws of words, shares by blocks), L_β a word, share of the words that changed their topics)."""
        phi, theta = state
        options = (self.layout, phi, self.beta)
        (counts, (value, moved, total)), theta = self.blocks.sweep(step_block, self.by_blocks(theta), *options)
        mass = counts.sum(axis=0)
        new = np.where(mass > 0, counts / np.maximum(mass, TINY), phi)  # a topic without words stays as it is
        moved = max(moved, float((mass * np.abs(new - phi)).sum())) / max(total, TINY)
        return (new, self.kept(theta)), value / max(total, TINY), moved
