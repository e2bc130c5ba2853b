"""Variational Bayes for topics: the step of a document, the sums over documents, and the bound that they raise.

A document d holds n_dw times the word w. Topics βₖ ~ Dirichlet(η) are laws of words, θ_d ~ Dirichlet(α) are the shares of the
topics in a document, and each word is drawn from Σₖ θ_dk βₖw. The posterior is sought among the independent laws
θ_d ~ Dirichlet(γ_d), βₖ ~ Dirichlet(λₖ), and φ_dwk, the share of topic k in the word w of document d, which maximize [1]

    L = Σ_d [ Σ_w n_dw log Σₖ e^(E log θ_dk + E log βₖw) − KL(Dir(γ_d) ‖ Dir(α)) ] − Σₖ KL(Dir(λₖ) ‖ Dir(η)),

a lower bound of the log evidence, with E log θ_dk = ψ(γ_dk) − ψ(Σγ_d). The maximum over one part given the others is

    φ_dwk ∝ e^(E log θ_dk + E log βₖw),    γ_dk = αₖ + Σ_w n_dw φ_dwk,    λₖw = η + Σ_d n_dw φ_dwk.

A pass takes every document from one start, γ = α + n_d/K, through its own steps until they come to rest, and then moves λ [2].
So γ is a function of λ, a fit and `transform` agree, and blocks keep nothing. (To go on from the γ of the pass before looks
cheaper and could never lower L, but ends badly: e^ψ(γ) of a topic that a document has given up is next to nothing, so what the
first topics, drawn at random, made of a document would last for ever.) For the same reason documents take few steps in the
first passes: while they are undecided the topics take shape, which costs less and ends higher; and priors are not learned from
undecided documents. Where a document has several optima, the start may lead to another one than a pass before, and L can then
fall by what that document loses; once documents come to rest, nothing else lets it fall.

Kernels keep the table e^(E log β) by words, K numbers in a row that is padded to whole vectors, each word's row divided by its
largest entry; a document copies the rows of its words into a buffer that stays in the cache. With z = x + 15/2

    e^ψ(x) = (z + 1/24z − 37/5760z³ + …) · exp(−Σ 1/(x + i), i < 8),

where the sum is one fraction in u = x(x + 7): nothing but multiplications, a division and an exponential is left.

[1] Blei, Ng & Jordan, J. Mach. Learn. Res. 3 (2003). [2] Hoffman, Blei & Bach, NeurIPS 23 (2010).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import gammaln, psi

from lemmata.core.certificate import TINY
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials
from lemmata.probability.distributions.dirichlet import concentrations

LANES = 8  # numbers in a vector: rows of the table are padded to whole ones
LOWEST = -345.0  # logarithm of the least weight of a topic: the product of two such is still a number with all its digits
HURRY = 5  # steps that a document may take in the first pass, and by which it may take more in each further one
BEGIN = 20  # passes before it may take all steps, and before priors are learned
FAR = 1e30  # beyond, x and x + 8 are the same number, and its ninth power would overflow


@kernel
def _split(x):
    """Give e^ψ(x + 8) by its series, and the sum of 1/(x + i) for i < 8."""
    v = min(x, FAR)
    u = v * (v + 7.0)  # (x + i)(x + 7 − i) = u + i (7 − i), and 1/(x + i) + 1/(x + 7 − i) = (2x + 7)/(u + i (7 − i))
    a, b, z = u * (u + 6.0), (u + 10.0) * (u + 12.0), v + 7.5
    once = 1.0 / (a * b * z)  # one division for both fractions
    below = (2.0 * v + 7.0) * ((2.0 * u + 6.0) * b + (2.0 * u + 22.0) * a) * z * once
    r = a * b * once
    t = r * r
    p = 0.08238185223878776  # of z⁻¹³, where the first term left out is below 5e-15; then of z⁻¹¹, …
    p = p * t - 0.020734675824368137
    p = p * t + 0.007365033269308669
    p = p * t - 0.0039535574489730305
    p = p * t + 0.003552482914462081
    p = p * t - 0.006423611111111111
    p = p * t + 0.041666666666666664
    return x + (7.5 + r * p), below


@kernel
def digamma(x):
    """Give ψ(x) for x > 0."""
    factor, below = _split(x)
    return math.log(factor) - below


@kernel
def exp_digammas(x, m, out, factor, bits, powers):
    """Write e^ψ(x) of the first m numbers, all positive, to `out`; the other arrays are room for as many."""
    for k in range(m):
        f, below = _split(x[k])
        factor[k] = f
        out[k] = max(-below, LOWEST)
    exponentials(out, m, bits, powers)
    for k in range(m):
        out[k] *= factor[k]


@kernel
def settle_documents(values, columns, starts, table, level, alpha, tol, most, gamma, bounds):
    """Take documents from their start to rest; write their γ, padded by ones, and their part of the bound.

    A document rests when a step moves γ by no more than tol on average over the topics; return how many were still moving after
    so many steps.
    """
    n, m, k = len(starts) - 1, table.shape[1], len(alpha)
    longest = 1
    for i in range(n):
        longest = max(longest, starts[i + 1] - starts[i])
    rows, ratio = np.empty(longest * m), np.empty(longest)
    theta, share, factor, bits = np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int64)
    powers = bits.view(np.float64)
    prior, g, start = np.ones(m), np.empty(m), np.zeros(m)  # where topics are padding, γ = 1 meets rows of zeros: nothing moves
    start[:k] = 1.0 / k
    whole, constant, restless = 0.0, 0.0, 0
    for t in range(k):
        prior[t] = alpha[t]
        whole += alpha[t]
        constant -= math.lgamma(alpha[t])
    constant += math.lgamma(whole)
    for i in range(n):
        first, size = starts[i], starts[i + 1] - starts[i]
        length, value = 0.0, constant
        for j in range(size):
            w = columns[first + j]
            length += values[first + j]
            value += values[first + j] * level[w]
            for t in range(m):
                rows[j * m + t] = table[w, t]
        for t in range(m):
            g[t] = prior[t] + length * start[t]
        change, steps = np.inf, 0
        while change > tol * k and steps < most:
            exp_digammas(g, m, theta, factor, bits, powers)
            for j in range(size):
                norm = 0.0
                for t in range(m):
                    norm += theta[t] * rows[j * m + t]
                ratio[j] = norm
            for j in range(size):
                ratio[j] = values[first + j] / ratio[j]
            for t in range(m):
                share[t] = 0.0
            for j in range(size):
                r = ratio[j]
                for t in range(m):
                    share[t] += r * rows[j * m + t]
            change = 0.0
            for t in range(m):
                moved = prior[t] + theta[t] * share[t]
                change += abs(moved - g[t])
                g[t] = moved
            steps += 1
        restless += change > tol * k
        exp_digammas(g, m, theta, factor, bits, powers)
        for j in range(size):
            norm = 0.0
            for t in range(m):
                norm += theta[t] * rows[j * m + t]
            value += values[first + j] * math.log(norm)
        total = 0.0
        for t in range(k):
            total += g[t]
            value += (alpha[t] - g[t]) * digamma(g[t]) + math.lgamma(g[t])
        bounds[i] = value - (length + whole - total) * digamma(total) - math.lgamma(total)
        for t in range(m):
            gamma[i, t] = g[t]
    return restless


@kernel
def count_words(values, columns, starts, weight, table, gamma, counts):
    """Add n φ, the expected number of times that each word came from each topic, over documents with these γ."""
    m = table.shape[1]
    g, theta, factor, bits = np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int64)
    powers = bits.view(np.float64)
    for i in range(len(starts) - 1):
        for t in range(m):
            g[t] = gamma[i, t]
        exp_digammas(g, m, theta, factor, bits, powers)
        for e in range(starts[i], starts[i + 1]):
            w = columns[e]
            norm = 0.0
            for t in range(m):
                norm += theta[t] * table[w, t]
            r = weight[i] * values[e] / norm
            for t in range(m):
                counts[w, t] += r * theta[t] * table[w, t]


class Words(NamedTuple):
    """What documents need of the topics: e^(E log β − level) by words, padded (words, m), and the level of each word."""

    table: np.ndarray
    level: np.ndarray


class Rest(NamedTuple):
    """When a document is at rest: mean change of γ over the topics, and steps at most."""

    tol: float
    most: int


TIGHT = Rest(1e-9, 100_000)  # for what is compared with what someone else computes
FIRM = Rest(1e-6, 10_000)  # for bounds, whose error is of the order of the square


def expected_logs(pseudo):
    """Give E log of the entries of Dirichlet vectors, whose parameters are the rows."""
    return psi(pseudo) - psi(pseudo.sum(axis=1, keepdims=True))


def words_of(components):
    """Prepare the topics, (topics, words), for the kernels."""
    logs = expected_logs(components)
    level = logs.max(axis=0)
    table = np.zeros((logs.shape[1], -(-len(logs) // LANES) * LANES))
    table[:, : len(logs)] = np.exp(np.maximum(logs - level, LOWEST)).T
    return Words(table, level)


def as_counts(X):
    """Give a block of documents as (values, columns, starts); what is stored of a sparse table stays where it is."""
    X = X if is_sparse(X) else csr_array(X)
    return X.data.astype(float, copy=False), X.indices, X.indptr


def settled(X, words, alpha, rest):
    """Take the documents of a block to rest; give their γ, padded, their parts of the bound, and how many still moved."""
    gamma, bounds = np.empty((X.shape[0], words.table.shape[1])), np.empty(X.shape[0])
    restless = settle_documents(*as_counts(X), *words, alpha, *rest, gamma, bounds)
    return gamma, bounds, restless


class Sums(NamedTuple):
    """What a pass sums over documents: the bound, counts (words, m), E log θ, how many they are, and how many still moved."""

    bound: float
    counts: np.ndarray
    logs: np.ndarray
    n_documents: float
    restless: int


def pass_block(X, weight, words, alpha, rest):
    """Sum over the documents of a block, as `Sums` says."""
    weight = np.ones(X.shape[0]) if weight is None else weight.astype(float)
    gamma, bounds, restless = settled(X, words, alpha, rest)
    counts = np.zeros(words.table.shape)
    count_words(*as_counts(X), weight, words.table, gamma, counts)
    return float(weight @ bounds), counts, weight @ expected_logs(gamma[:, : len(alpha)]), float(weight.sum()), restless


def topics_bound(components, eta):
    """Give the part of the bound that the topics have: minus their divergence from the prior."""
    k, v = components.shape
    own = (eta - components) * expected_logs(components) + gammaln(components)
    return float(own.sum() - gammaln(components.sum(axis=1)).sum() + k * (gammaln(v * eta) - v * gammaln(eta)))


class Posterior(NamedTuple):
    """What a fit moves: λ (topics, words), and the priors α (topics,) and η."""

    components: np.ndarray
    alpha: np.ndarray
    eta: float


def draw_start(k, v, alpha, eta, rng):
    """Draw topics to begin with: all words likely alike, up to a tenth."""
    return Posterior(rng.gamma(100.0, 0.01, size=(k, v)), alpha, eta)


def learned_alpha(logs, shares):
    """Maximize Σ_d E log p(θ_d | α) given the mean of E log θ; the shares say where to begin."""
    return concentrations(shares, np.log(shares) - logs)


def learned_eta(components):
    """Maximize Σₖ E log p(βₖ | η) over one number: ψ(Vη) − ψ(η) = −mean of E log β."""
    v, wanted = components.shape[1], -float(expected_logs(components).mean())
    # As η → 0 the left side is (1 − 1/V)/η, as η → ∞ it is log V + (1 − 1/V)/2η: the ends are beyond any root that matters.
    log_eta = brentq(lambda x: psi(v * np.exp(x)) - psi(np.exp(x)) - wanted, -30.0, 30.0, xtol=1e-14)
    return float(np.exp(log_eta))


def moved(posterior, sums, learns, scale=1.0):
    """Give the posterior that maximizes the bound given the documents' γ; `learns` says whether α and η are learned too.

    The scale is that of the corpus to the documents that were summed over.
    """
    components = posterior.eta + scale * sums.counts[:, : len(posterior.alpha)].T
    alpha, eta = posterior.alpha, posterior.eta
    if learns[0] and len(alpha) > 1:
        alpha = learned_alpha(sums.logs / sums.n_documents, alpha / alpha.sum())
    if learns[1] and components.shape[1] > 1:
        eta = learned_eta(components)
    return Posterior(components, alpha, eta)


def distance(one, other):
    """Give how far apart two posteriors are: the largest change of λ, α and η relative to their size."""
    return max(float(np.linalg.norm(np.subtract(a, b)) / max(np.linalg.norm(b), TINY)) for a, b in zip(one, other, strict=True))


def batch_step(blocks, n_tokens, rest, tol, learns, state):
    """Pass over all documents; return ((λ, α, η, passes), bound a token, how far λ, α and η moved).

    What hardly moves is kept as it is: that it is at rest is known of it, not of the next.
    """
    *posterior, passes = state
    posterior, begun = Posterior(*posterior), passes >= BEGIN
    most = rest.most if begun else min(rest.most, HURRY * (passes + 1))
    sums = Sums(*blocks.reduce(pass_block, words_of(posterior.components), posterior.alpha, Rest(rest.tol, most)))
    after = moved(posterior, sums, learns if begun else (False, False))
    known = (most == rest.most or not sums.restless) and (begun or not any(learns))
    change = distance(after, posterior) if known else np.inf
    bound = sums.bound + topics_bound(posterior.components, posterior.eta)
    return (*(posterior if change <= tol else after), passes + 1), bound / max(n_tokens, TINY), change
