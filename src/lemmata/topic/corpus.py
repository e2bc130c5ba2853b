"""Documents as single tokens, laid out in blocks of documents and words.

Documents are cut into P shards of about as many tokens each, in their order, and words, the most frequent first, go each to
the group of words that has the fewest tokens so far. The tokens of block (b, g) are those of shard b with words of group g. How
many shards there are depends on the number of tokens alone, never on threads: so does everything that is drawn.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.topic.gibbs_kernels import Corpus

# Up to so many tokens, so many shards. One shard draws exactly; of eight, each sub-sweep changes an eighth of the tokens while
# the totals of the topics stand still.
SHARDS = ((1 << 16, 1), (1 << 24, 8), (1 << 28, 16), (1 << 62, 32))


def n_shards(n_tokens):
    """Return into how many shards so many tokens are cut.

    >>> n_shards(1_000), n_shards(1_000_000)
    (1, 8)
    """
    return next(shards for most, shards in SHARDS if n_tokens < most)


@kernel
def group_words(order, frequencies, groups, loads):
    """Give each word, in this order, to the group with the fewest tokens."""
    for w in order:
        least = 0
        for g in range(1, len(loads)):
            if loads[g] < loads[least]:
                least = g
        groups[w] = least
        loads[least] += frequencies[w]


@kernel
def count_blocks(starts, columns, counts, shards, groups, n_shards, tokens, visits):
    """Count the tokens and the visits of each block, at its number + 1."""
    last = np.full(n_shards, -1)  # document that was the last to have words of a group
    for d in range(len(starts) - 1):
        for e in range(starts[d], starts[d + 1]):
            g = groups[columns[e]]
            block = shards[d] * n_shards + g
            tokens[block + 1] += counts[e]
            if last[g] != d:
                last[g] = d
                visits[block + 1] += 1


@kernel
def place_tokens(starts, columns, counts, shards, groups, n_shards, tokens, visits, places, words, documents, visit_starts):
    """Say where each token goes, and write the visits; `tokens` and `visits` are where the next of each block go."""
    last, i = np.full(n_shards, -1), 0
    for d in range(len(starts) - 1):
        for e in range(starts[d], starts[d + 1]):
            w = columns[e]
            g = groups[w]
            block = shards[d] * n_shards + g
            if last[g] != d:
                last[g] = d
                documents[visits[block]] = d
                visit_starts[visits[block]] = tokens[block]
                visits[block] += 1
            for _ in range(counts[e]):
                words[tokens[block]] = w
                places[i] = tokens[block]
                tokens[block] += 1
                i += 1


def lay_out(X, shards=None):
    """Cut documents into tokens and these into blocks.

    Parameters
    ----------
    X : CSR table of whole counts, in which the words of a document stand once and in their order.
    shards : How many; by default what `n_shards` says.

    Returns
    -------
    corpus : A `Corpus`.
    places : Where the tokens of the documents, in their order, are in it.
    lengths : Tokens of each document.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> corpus, places, lengths = lay_out(csr_array([[2, 0, 1], [0, 1, 1]]), shards=2)
    >>> corpus.words, places, lengths
    (array([0, 0, 2, 1, 2], dtype=int32), array([0, 1, 2, 3, 4], dtype=int32), array([3, 2]))
    """
    counts = X.data.astype(np.int64)
    running = np.concatenate([[0], np.cumsum(counts)])
    starts, lengths = X.indptr, np.diff(running[X.indptr])
    n, n_words = int(running[-1]), X.shape[1]
    if n == 0:
        raise ValueError("The documents have no words at all: there is nothing to draw a topic for.")
    shards = n_shards(n) if shards is None else shards
    frequencies = np.bincount(X.indices, counts, minlength=n_words).astype(np.int64)
    groups = np.zeros(n_words, np.int64)
    group_words(np.argsort(-frequencies, kind="stable"), frequencies, groups, np.zeros(shards, np.int64))
    of_document = running[starts[:-1]] * shards // n
    tokens, visits = np.zeros(shards * shards + 1, np.int64), np.zeros(shards * shards + 1, np.int64)
    parts = starts, X.indices, counts, np.minimum(of_document, shards - 1), groups, shards
    count_blocks(*parts, tokens, visits)
    tokens, block_visits = tokens.cumsum(), visits.cumsum()
    places = np.empty(n, np.int32 if n < 1 << 31 else np.int64)
    words, documents = np.empty(n, np.int32), np.empty(block_visits[-1], np.int32)
    visit_starts = np.full(block_visits[-1] + 1, n)
    place_tokens(*parts, tokens, block_visits.copy(), places, words, documents, visit_starts)
    return Corpus(shards, words, documents, visit_starts, block_visits), places, lengths
