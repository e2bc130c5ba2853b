"""How probable are documents that were not fitted? Two estimates that need no bound and count every word once.

Given topics β and the prior α, a document w₁ … w_N has the probability Σ over all assignments z of p(w, z): too many terms. The
left-to-right estimate takes the words one after another,

    p(w) = Πₙ p(wₙ | w₁ … wₙ₋₁) ≈ Πₙ (1/R) Σᵣ Σₖ βₖwₙ (cₖʳ + αₖ)/(n − 1 + Σα),

where cʳ counts the topics of the words before in the r-th of R particles, which are drawn again, one by one, before each new
word; the estimate of p(w) is unbiased [1, 2]. It takes R N² K operations for a document of N words.

Document completion is cheaper and compares any two models: half of the words of each document, drawn at random, say what it is
about, and the other half is to be told: the mean of log Σₖ θ̂_dk βₖw over the words of the other halves [1].

Perplexity is e^−(log probability of the words told, divided by their number): a uniform law of V words has V.

[1] Wallach, Murray, Salakhutdinov & Mimno, ICML (2009). [2] Buntine, ACML (2009).
"""

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.blocks import Blocks
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.topic.variational import as_counts


@kernel
def draw_topic(topics, w, counts, alpha, odds, state):
    """Draw the topic of a word w given how many words the topics have; return it, and Σₖ βₖw (cₖ + αₖ)."""
    total, k = 0.0, len(alpha)
    for t in range(k):
        total += topics[w, t] * (counts[t] + alpha[t])
        odds[t] = total
    u, drawn = next_uniform(state) * total, 0
    while drawn < k - 1 and odds[drawn] <= u:
        drawn += 1
    return drawn, total


@kernel
def left_to_right(values, columns, starts, seeds, topics, alpha, n_particles, logs):
    """Estimate the log probability of each document; topics are (words, topics), one state of random numbers a document."""
    k, longest, whole = len(alpha), 0, alpha.sum()
    for i in range(len(starts) - 1):
        length = 0
        for e in range(starts[i], starts[i + 1]):
            length += int(values[e])
        longest = max(longest, length)
    words, place, told = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
    counts, odds, state = np.empty(k), np.empty(k), np.empty(4, np.uint64)
    for i in range(len(starts) - 1):
        length = 0
        for e in range(starts[i], starts[i + 1]):
            for _ in range(int(values[e])):
                words[length] = columns[e]
                length += 1
        state[:] = seeds[i]
        for a in range(length - 1, 0, -1):  # in a random order: words of a kind would else come together
            b = int(next_uniform(state) * (a + 1))
            words[a], words[b] = words[b], words[a]
        told[:length] = 0.0
        for _ in range(n_particles):
            counts[:] = 0.0
            for a in range(length):
                for b in range(a):
                    counts[place[b]] -= 1.0
                    place[b], _ = draw_topic(topics, words[b], counts, alpha, odds, state)
                    counts[place[b]] += 1.0
                place[a], total = draw_topic(topics, words[a], counts, alpha, odds, state)
                counts[place[a]] += 1.0
                told[a] += total / (a + whole)
        logs[i] = 0.0
        for a in range(length):
            logs[i] += np.log(told[a] / n_particles)


def whole_counts(X):
    """Give documents as a CSR table of their own, once every count is whole: what is drawn is single words."""
    X = csr_array(X, dtype=float) if not is_sparse(X) else csr_array(X.astype(float))
    if (X.data != np.floor(X.data)).any():
        raise ValueError("Counts must be whole numbers here, because the words of a document are told one by one.")
    return X


def left_to_right_block(X, seeds, topics, alpha, n_particles):
    """Estimate the log probability of each document of a block."""
    logs = np.empty(X.shape[0])
    left_to_right(*as_counts(X), seeds, topics, alpha, n_particles, logs)
    return logs


def left_to_right_logs(X, topics, alpha, n_particles, rng):
    """Estimate log p of each document of whole counts, under the topics (topics, words) and the prior α."""
    seeds = rng.integers(1, 2**64, size=(X.shape[0], 4), dtype=np.uint64)
    return Blocks.of(X, seeds).map(left_to_right_block, np.ascontiguousarray(topics.T), alpha, n_particles)


def completion_logs(X, shares_of, topics, rng):
    """Tell one half of each document from the other; return log probability and number of the words told, of each document.

    Parameters
    ----------
    shares_of : Function that gives the shares of topics in documents, as `transform` does.
    """
    seen = X.copy()
    seen.data = rng.binomial(X.data.astype(np.int64), 0.5).astype(float)
    rest = X.data - seen.data
    shares = np.asarray(shares_of(seen), dtype=float)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    logs = np.zeros(len(rest))
    for first in range(0, len(rest), 1 << 16):  # so that no more than that many rows of topics are copied at a time
        part = slice(first, first + (1 << 16))
        told = np.einsum("ek,ek->e", shares[rows[part]], topics.T[X.indices[part]])
        with np.errstate(divide="ignore"):
            logs[part] = np.where(rest[part] > 0, rest[part] * np.log(told), 0.0)
    count = np.bincount(rows, rest, minlength=X.shape[0])
    return np.bincount(rows, logs, minlength=X.shape[0]), count
