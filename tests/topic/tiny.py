"""Corpora so small that every assignment of topics to words can be written down, and one with known topics."""

from itertools import product

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp


def log_polya(counts, prior):
    """Log probability of a sequence with these counts (last axis) whose law is drawn from Dirichlet(prior)."""
    prior = np.broadcast_to(prior, counts.shape[-1:])
    rising = (gammaln(counts + prior) - gammaln(prior)).sum(axis=-1)
    return rising + gammaln(prior.sum()) - gammaln(counts.sum(axis=-1) + prior.sum())


def tokens(X):
    """Documents and words of all tokens."""
    X = np.asarray(X, dtype=int)
    rows, words = np.nonzero(X)
    return np.repeat(rows, X[rows, words]), np.repeat(words, X[rows, words])


def log_evidence(X, k, alpha, eta):
    """Log probability of the words of all documents, in their order, summed over all assignments of topics."""
    (n, v), (documents, words) = np.shape(X), tokens(X)
    logs = []
    for z in product(range(k), repeat=len(words)):
        of_documents, of_topics = np.zeros((n, k)), np.zeros((k, v))
        np.add.at(of_documents, (documents, z), 1)
        np.add.at(of_topics, (z, words), 1)
        logs.append(log_polya(of_documents, alpha).sum() + log_polya(of_topics, eta).sum())
    return logsumexp(logs)


def log_probability(row, topics, alpha):
    """Log probability of the words of one document, in their order, given topics (topics, words)."""
    _, words = tokens([row])
    k = len(topics)
    logs = [
        log_polya(np.bincount(z, minlength=k), alpha) + np.log(topics[list(z), words]).sum()
        for z in product(range(k), repeat=len(words))
    ]
    return logsumexp(logs)


def corpus(n=300, v=60, k=4, length=40, seed=0, alpha=0.2, eta=0.1):
    """Documents drawn from known topics, and these."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(v, eta), k)
    shares = rng.dirichlet(np.full(k, alpha), n)
    return csr_array(np.array([rng.multinomial(length, share @ topics) for share in shares]).astype(float)), topics
