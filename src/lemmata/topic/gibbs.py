"""Collapsed Gibbs sampling of topics: draw the topic of every token given those of all others.

With topics βₖ ~ Dirichlet(γ) and the documents' shares θ_d ~ Dirichlet(α) integrated out, words w and topics z of all tokens
have the joint probability

    p(w, z) = Π_d Γ(A)/Γ(n_d + A) Πₖ Γ(n_dk + αₖ)/Γ(αₖ) · Πₖ Γ(Vγ)/Γ(nₖ + Vγ) Π_v Γ(nₖv + γ)/Γ(γ),   A = Σαₖ,

n_dk the tokens of document d with topic k, nₖv those of word v, nₖ all. So the topic of one token given all others is drawn by

    p(z = k | others) ∝ (n_dk + αₖ)(nₖv + γ)/(nₖ + Vγ),   the token itself taken out of the counts first [1].

A sweep draws all tokens once, in an order that lets threads, and the draws within one, run abreast (`gibbs_kernels`): documents
are cut into shards and words into groups, and what is drawn at the same time shares neither [2]. The one approximation: totals
nₖ are as old as the sub-sweep, which moves a small part of a P-th of all tokens. A corpus of fewer than 65,536 tokens is one
shard, and there the sampler is exact. The result is the same for any number of threads.

Given z, α and γ may be learned (`learned_prior`).

[1] Griffiths & Steyvers, PNAS 101 (2004). [2] Yan, Xu & Qi, NeurIPS 22 (2009).
"""

import math
from functools import partial

import numpy as np
from scipy.special import gammaln

from lemmata.core import threads
from lemmata.core.meeting import new_marks, threads_that_meet
from lemmata.topic.corpus import lay_out
from lemmata.topic.gibbs_kernels import STRETCHES, Counts, Prior, Room, count_tokens, sweep
from lemmata.topic.lanes import LANES
from lemmata.topic.learned_prior import rising

SMALL = 1 << 12  # counts for which logarithms of Γ are tabulated


class Sampler:
    """Chains over the tokens of some documents.

    Parameters
    ----------
    X : CSR table of whole counts, in which the words of a document stand once and in their order.
    n_topics : Number of topics.
    shards : Into how many documents are cut; by default as many as the number of tokens says.
    """

    def __init__(self, X, n_topics, shards=None):
        self.corpus, self.places, self.lengths = lay_out(X, shards)
        self.n_topics, self.n_words, self.n_documents = n_topics, X.shape[1], X.shape[0]
        self.n_tokens = len(self.corpus.words)
        self.width = -(-n_topics // LANES) * LANES
        self.n_threads = min(threads_that_meet(), self.corpus.n_shards)
        seen = np.zeros((2, self.corpus.n_shards, self.width), np.int32)
        self.room = Room(new_marks(self.n_threads), seen, np.zeros((2, STRETCHES)))
        self.counts, self.prior, self.key = None, None, None

    def start(self, rng):
        """Give every token a topic, all equally probable."""
        return rng.integers(self.n_topics, size=self.n_tokens, dtype=label_type(self.n_topics))

    def load(self, topics):
        """Count the topics of the tokens; the array is the sampler's from now on."""
        counts = partial(np.zeros, dtype=np.int32)
        small = np.uint16 if self.lengths.max() < 1 << 16 else np.int32
        of_documents = np.zeros(self.n_documents * self.width, small)
        self.counts = Counts(topics, aligned(self.n_words * self.width), of_documents, counts(self.width))
        count_tokens(self.corpus, self.counts, self.width)

    def believe(self, alpha, gamma):
        """Set the prior: α of each topic, and γ."""
        if self.key == (tuple(alpha), gamma):
            return
        alphas = np.zeros(self.width, np.float32)
        alphas[: self.n_topics] = alpha
        longest = min(int(self.lengths.max()) + 1, SMALL)
        rows = np.zeros((self.width if np.ptp(alpha) > 0 else 1, longest))
        rows[: len(alpha)] = rising(np.arange(longest), np.asarray(alpha)[: len(rows), None])
        self.prior = Prior(alphas, float(gamma), rising(np.arange(SMALL), gamma)[None], rows)
        a, k = float(np.sum(alpha)), self.n_topics
        self.constant = float((gammaln(a) - gammaln(self.lengths + a)).sum() + k * gammaln(self.n_words * gamma))
        self.key = tuple(alpha), gamma

    def sweep(self, rng):
        """Draw all tokens once; return log p(w, z)."""
        states = rng.integers(1, 2**64, size=(self.corpus.n_shards, 4), dtype=np.uint64)
        work = partial(sweep, self.corpus, self.counts, self.prior, self.room, states, self.n_topics)
        threads.run(work, range(self.n_threads), self.n_threads)
        totals = gammaln(self.counts.totals[: self.n_topics] + self.n_words * self.prior.gamma).sum()
        return self.constant + math.fsum(self.room.sums.ravel()) - float(totals)

    def topic_words(self):
        """Give the tokens of each word in each topic, (topics, words)."""
        return self.counts.of_words.reshape(-1, self.width)[:, : self.n_topics].T

    def document_topics(self):
        """Give the tokens of each topic in each document, (documents, topics)."""
        return self.counts.of_documents.reshape(-1, self.width)[:, : self.n_topics]

    def in_order(self, topics):
        """Give topics of tokens, the last axis, in the order of the documents."""
        return topics[..., self.places]

    def from_order(self, topics):
        """Undo `in_order`."""
        own = np.empty_like(topics)
        own[..., self.places] = topics
        return own


def label_type(n_topics):
    """Return the smallest type for the number of a topic."""
    return np.uint8 if n_topics <= 1 << 8 else np.uint16 if n_topics <= 1 << 16 else np.int32


def aligned(n):
    """Make zeros of 32 bits that begin where a line of the cache does."""
    raw = np.zeros(n + LANES, np.int32)
    skip = -raw.ctypes.data % 64 // 4
    return raw[skip : skip + n]


def token_counts(X, topics, n_topics):
    """Count tokens whose topics are given in the order of the documents: by document and topic, and by topic and word.

    >>> from scipy.sparse import csr_array
    >>> token_counts(csr_array([[2, 0, 1], [0, 1, 1]]), np.array([0, 1, 1, 0, 0]), 2)
    (array([[1, 2],
           [2, 0]]), array([[1, 1, 1],
           [1, 0, 1]]))
    """
    counts, topics = X.data.astype(np.int64), topics.astype(np.int64)
    words = np.repeat(X.indices.astype(np.int64), counts)
    documents = np.repeat(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), counts)
    of_documents = np.bincount(documents * n_topics + topics, minlength=X.shape[0] * n_topics).reshape(-1, n_topics)
    return of_documents, np.bincount(topics * X.shape[1] + words, minlength=n_topics * X.shape[1]).reshape(n_topics, -1)


def log_joint(of_documents, of_words, alpha, gamma):
    """Give log p(w, z) from the counts (documents, topics) and (topics, words)."""
    a, lengths = float(np.sum(alpha)), of_documents.sum(axis=1)
    shares = rising(of_documents, np.asarray(alpha)).sum() - rising(lengths, a).sum()
    return float(shares + rising(of_words, gamma).sum() - rising(of_words.sum(axis=1), of_words.shape[1] * gamma).sum())
