"""A chain of Gibbs sweeps over documents: what is kept of it, and how it is checked.

After the burn-in every so many-th draw is kept, the last among them. What a draw knows of the topics is its counts nₖv; their
expectation given the draw is (nₖv + γ)/(nₖ + Vγ), so the mean of the counts over the draws, plus γ, are the pseudo-counts of
the fitted topics. (A chain stays near one numbering of its topics for longer than anyone waits; chains from different starts
number them otherwise, and are not averaged.) Priors that are learned follow the chain, and in the end the last draw.

Certificate: the draws are what they claim to be, since counts, pseudo-counts, learned priors and log p(w, z) follow from the
topics of the single tokens by the closed forms. That the chain has converged cannot be proved from draws; as evidence, it goes
on for some sweeps, in which log p(w, z) may move by no more than a hundredth of a nat a token, or than it fluctuates.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.random import generator
from lemmata.topic.evaluation import whole_counts
from lemmata.topic.gibbs import Sampler, label_type, log_joint, token_counts
from lemmata.topic.learned_prior import learned_alpha, learned_gamma

MOST_LABELS = 1 << 26  # kept in all; beyond, draws are kept at larger intervals
LEARN_EVERY = 10  # sweeps; a prior that is learned moves slowly
MORE_SWEEPS = 20  # of the certificate, of which the second half counts
AT_REST = 0.01  # nats a token
MOST_ERRORS = 5.0  # standard deviations of log p(w, z) that a single draw may lie off


class Plan(NamedTuple):
    """How long a chain is, how many sweeps are forgotten, how many lie between two draws, and which priors are learned."""

    n_sweeps: int
    burn_in: int
    thinning: int
    learns: tuple[bool, bool]

    def kept(self, n_tokens):
        """Give the numbers of the sweeps that are kept."""
        spacing = max(self.thinning, -(-(self.n_sweeps - self.burn_in) * n_tokens // MOST_LABELS))
        return np.arange(self.n_sweeps - 1, self.burn_in - 1, -spacing)[::-1]


def tokens_of(blocks):
    """Give all documents as a CSR table of whole counts, words once and in their order; weights repeat documents."""
    X, weight = blocks.whole()
    X = csr_array(whole_counts(X))
    if weight is not None:
        if (weight != np.floor(weight)).any():
            raise ValueError("sample_weight must be whole numbers for method='gibbs': a document is there twice, or not.")
        X = X[np.repeat(np.arange(X.shape[0]), weight.astype(np.int64))]
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def learned(learns, of_documents, of_words, alpha, gamma):
    """Give the priors that make the topics of the tokens most probable, or those that were given."""
    alpha = learned_alpha(of_documents, alpha) if learns[0] else alpha
    return alpha, learned_gamma(of_words) if learns[1] else gamma


class Chain:
    """The sweeps of a fit: `start` gives a state, `step` the next one, `attributes` what it amounts to."""

    def __init__(self, X, n_topics, plan):
        self.X, self.plan = X, plan
        self.sampler = Sampler(X, n_topics)
        self.kept = plan.kept(self.sampler.n_tokens)

    def start(self, alpha, gamma, random_state):
        """Give the state before the first sweep: sweeps done, topics of the tokens, generator, priors, draws."""
        rng = generator(random_state)
        topics = self.sampler.start(rng)
        return 0, topics, rng, alpha, gamma, np.zeros((len(self.kept), len(topics)), topics.dtype)

    def step(self, state):
        """Sweep once; return (state, log p(w, z) a token, whether anything is left to do)."""
        done, topics, rng, alpha, gamma, draws = state
        sampler = self.sampler
        if sampler.counts is None or sampler.counts.topics is not topics:
            sampler.load(topics)
        if done and done % LEARN_EVERY == 0 and any(self.plan.learns):
            alpha, gamma = learned(self.plan.learns, sampler.document_topics(), sampler.topic_words(), alpha, gamma)
        sampler.believe(alpha, gamma)
        topics = topics.copy()  # what is interrupted leaves the state as it was
        sampler.counts = sampler.counts._replace(topics=topics)
        try:
            value = sampler.sweep(rng)
        except BaseException:
            sampler.counts = None
            raise
        place = np.searchsorted(self.kept, done)
        if place < len(self.kept) and self.kept[place] == done:
            draws[place] = topics
        done += 1
        state = done, topics, rng, alpha, gamma, draws
        return state, value / sampler.n_tokens, 0.0 if done == self.plan.n_sweeps else np.inf

    def attributes(self, state):
        """Turn a state into the posterior (pseudo-counts, α, γ), the draws in order of the documents, and log p of the last."""
        done, topics, _, alpha, gamma, draws = state
        n = int(np.searchsorted(self.kept, done))
        draws = self.sampler.in_order(draws[:n] if n else topics[None])
        mean, of_words, of_documents = counts_of(self.X, draws, len(alpha))
        alpha, gamma = learned(self.plan.learns, of_documents, of_words, alpha, gamma)
        return (mean + gamma, alpha, gamma), draws, log_joint(of_documents, of_words, alpha, gamma)


def counts_of(X, draws, n_topics):
    """Give counts (topics, words), their mean over the draws and those of the last, and (documents, topics) of the last."""
    total = np.zeros((n_topics, X.shape[1]))
    for topics in draws:
        of_documents, of_words = token_counts(X, topics, n_topics)
        total += of_words
    return total / len(draws), of_words, of_documents


def chain_certificate(model, X, posterior, asked, learns):
    """Check a chain's fitted attributes against documents X and the priors that were asked for."""
    components, alpha, gamma = posterior
    k, draws = len(alpha), np.asarray(model.assignments_)
    n_tokens = int(X.data.sum())
    right = draws.ndim == 2 and len(draws) and draws.shape[1] == n_tokens and draws.min() >= 0 and draws.max() < k
    checks = [Check("assignments", 0.0 if right else np.inf, 0.0, "proof", "every draw has a topic for every token")]
    if right:
        mean, of_words, of_documents = counts_of(X, draws, k)
        expected = learned(learns, of_documents, of_words, *asked)
        joint = log_joint(of_documents, of_words, alpha, gamma)
        checks += [
            same(np.append(alpha, gamma), np.append(*expected), "priors", "as asked for, or most probable given the last draw"),
            same(components, mean + gamma, "pseudo-counts", "mean counts of the draws, plus the prior"),
            same(model.document_length_, n_tokens / X.shape[0], "length", "mean number of words of a document"),
            same(model.log_joint_, joint, "log joint", "log p(w, z) of the last draw is the closed form"),
            rest(X, draws[-1], alpha, gamma, joint),
        ]
    return Certificate(*checks, subject=repr(model))


def rest(X, topics, alpha, gamma, joint):
    """Let the chain go on, and see whether log p(w, z) stays where it is."""
    sampler, rng = Sampler(X, len(alpha)), np.random.default_rng(0)
    sampler.load(sampler.from_order(topics.astype(label_type(len(alpha)))))
    sampler.believe(alpha, gamma)
    values = np.array([sampler.sweep(rng) for _ in range(MORE_SWEEPS)])[MORE_SWEEPS // 2 :]
    allowed = AT_REST * sampler.n_tokens + MOST_ERRORS * values.std()
    claim = "log p(w, z) stays as it is in further sweeps, in units of what it may move"
    return Check("at rest", float(abs(values.mean() - joint) / allowed), 1.0, "evidence", claim)
