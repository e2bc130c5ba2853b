"""What a posterior of topics says of documents: their shares, how probable they are, and documents drawn from it."""

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.blocks import Blocks
from lemmata.topic.evaluation import completion_logs, left_to_right_logs, whole_counts
from lemmata.topic.variational import settled, topics_bound, words_of


def bound_block(X, weight, words, alpha, rest):
    """Sum the documents' parts of the bound."""
    bounds = settled(X, words, alpha, rest)[1]
    return float(bounds.sum() if weight is None else weight @ bounds)


def shares_block(X, weight, words, alpha, rest):
    """Expected shares of the topics in each document."""
    gamma = settled(X, words, alpha, rest)[0][:, : len(alpha)]
    return gamma / gamma.sum(axis=1, keepdims=True)


def bounds_block(X, weight, words, alpha, rest):
    """Each document's part of the bound."""
    return settled(X, words, alpha, rest)[1]


def laws_of(components):
    """Give the expected probabilities of words in each topic."""
    return components / components.sum(axis=1, keepdims=True)


def evidence_bound(blocks, components, alpha, eta, rest):
    """Give the lower bound of the log evidence: the documents' parts and that of the topics."""
    return blocks.reduce(bound_block, words_of(components), alpha, rest) + topics_bound(components, eta)


def perplexity(blocks, n_tokens, components, alpha, rest, method, n_particles, rng):
    """Give e^−(mean log probability of a word that is told), by one of three methods; see `evaluation`."""
    words, topics = words_of(components), laws_of(components)
    if method == "bound":
        logs = blocks.reduce(bound_block, words, alpha, rest)
    elif method == "left-to-right":
        logs = left_to_right_logs(whole_counts(blocks.whole()[0]), topics, alpha, n_particles, rng).sum()
    elif method == "document-completion":

        def shares_of(X):
            return Blocks.of(X, None).map(shares_block, words, alpha, rest)

        told, count = completion_logs(whole_counts(blocks.whole()[0]), shares_of, topics, rng)
        logs, n_tokens = told.sum(), count.sum()
    else:
        raise ValueError(f"method must be 'document-completion', 'left-to-right' or 'bound'; got {method!r}.")
    if not n_tokens:
        raise ValueError("There is no word to be told: every document is empty, or too short to be parted.")
    return float(np.exp(-logs / n_tokens))


def draw_documents(components, alpha, n_documents, length, rng):
    """Draw documents of so many words; return their counts, sparse."""
    topics = laws_of(components)
    values, columns, starts = [np.empty(0)], [np.empty(0, dtype=int)], [0]
    for share in rng.dirichlet(alpha, size=n_documents):  # topic by topic, so that no table of probabilities is needed
        counts = np.zeros(topics.shape[1])
        for k, m in enumerate(rng.multinomial(length, share)):
            if m:
                counts += rng.multinomial(m, topics[k])
        columns.append(np.flatnonzero(counts))
        values.append(counts[columns[-1]])
        starts.append(starts[-1] + len(columns[-1]))
    return csr_array((np.concatenate(values), np.concatenate(columns), starts), shape=(n_documents, topics.shape[1]))
