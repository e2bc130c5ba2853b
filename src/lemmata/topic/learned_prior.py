"""The priors of topics, from counts: the α and γ that make words and topics of all tokens most probable [1].

Given the topics of all tokens, log p(w, z) of `gibbs` depends on α by f(α) = Σₖ Fₖ(αₖ) − G(Σαₖ), with

    Fₖ(a) = Σ_d log Γ(n_dk + a)/Γ(a),    G(A) = Σ_d log Γ(n_d + A)/Γ(A),

and in the logarithms θ of α the second derivatives are a diagonal and a matrix of rank one, so that a Newton step costs no more
than a gradient [2]: ∂f/∂θₖ = αₖ (Fₖ′ − G′), and H = diag(αₖ (Fₖ′ − G′) + αₖ² Fₖ″) − G″ α αᵀ. γ is a single number.

[1] Wallach, Mimno & McCallum, NeurIPS 22 (2009). [2] Minka, Estimating a Dirichlet distribution (2000).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, polygamma, psi

LEAST, MOST = 1e-6, 1e6  # of a prior that is learned: a topic without tokens would have 0, and never any again
STEPS, TINY_STEP = 100, 1e-6  # Newton's, at most, and the share of one below which nothing is gained
AT_REST = 1e-12  # change of log α or log γ


def rising(n, a):
    """Give log Γ(n + a) − log Γ(a), which is 0 for n = 0: most counts are."""
    n, a = np.broadcast_arrays(n, a)
    some, out = n > 0, np.zeros(n.shape)
    out[some] = gammaln(n[some] + a[some]) - gammaln(a[some])
    return out


def learned_alpha(of_documents, alpha):
    """Maximize p(w, z) over α given the counts (documents, topics), from some α.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> counts = [rng.multinomial(100, share) for share in rng.dirichlet([0.2, 1.0], size=20_000)]
    >>> learned_alpha(np.array(counts), np.ones(2)).round(1)
    array([0.2, 1. ])
    """
    lengths, times = np.unique(of_documents.sum(axis=1), return_counts=True)
    kinds = [np.unique(column, return_counts=True) for column in of_documents.T]
    alpha = np.clip(np.asarray(alpha, dtype=float), LEAST, MOST)

    def value(alpha):
        return sum(m @ rising(n, a) for a, (n, m) in zip(alpha, kinds, strict=True)) - times @ rising(lengths, alpha.sum())

    before = value(alpha)
    for _ in range(STEPS):
        total = alpha.sum()
        slope = np.array([m @ (psi(n + a) - psi(a)) for a, (n, m) in zip(alpha, kinds, strict=True)])
        bend = np.array([m @ (polygamma(1, n + a) - polygamma(1, a)) for a, (n, m) in zip(alpha, kinds, strict=True)])
        gradient = alpha * (slope - times @ (psi(lengths + total) - psi(total)))
        common = times @ (polygamma(1, total) - polygamma(1, lengths + total))  # −G″ ≥ 0
        diagonal = np.minimum(gradient, 0.0) + alpha**2 * bend
        diagonal = np.where(diagonal < 0, diagonal, -1.0)  # of a topic without tokens
        own = gradient / diagonal
        held = 1 + common * (alpha @ (alpha / diagonal))  # positive where H is that of a maximum
        step = -own if held <= 0 else -own + common * (alpha / diagonal) * (alpha @ own) / held
        size = min(1.0, 2.0 / max(np.abs(step).max(), 2.0))  # no α changes by more than e²
        while size > TINY_STEP and value(np.clip(alpha * np.exp(size * step), LEAST, MOST)) < before:
            size /= 2
        moved = np.clip(alpha * np.exp(size * step), LEAST, MOST)
        if size <= TINY_STEP or np.abs(np.log(moved / alpha)).max() <= AT_REST:
            break
        alpha, before = moved, value(moved)
    return alpha


def learned_gamma(of_words):
    """Maximize p(w, z) over γ given the counts (topics, words).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> counts = [rng.multinomial(5000, share) for share in rng.dirichlet(np.full(1000, 0.05), size=10)]
    >>> round(learned_gamma(np.array(counts)), 2)
    0.05
    """
    n, m = np.unique(of_words, return_counts=True)
    totals, width = of_words.sum(axis=1), of_words.shape[1]

    def slope(log_gamma):
        a = np.exp(log_gamma)
        return m @ (psi(n + a) - psi(a)) - width * (psi(totals + width * a) - psi(width * a)).sum()

    low, high = np.log(LEAST), np.log(MOST)
    if not slope(low) > 0 > slope(high):  # as where every topic has one word only, or all words equally often
        return LEAST if slope(low) <= 0 else MOST
    return float(np.exp(brentq(slope, low, high, xtol=AT_REST)))
