"""Topics by collapsed Gibbs sampling: the same number of sweeps with the same priors, from starts drawn at random.

Documents are drawn from the model itself, over topics that share a Zipf law of their words: frequent words belong to all topics
and rare ones to few. Both samplers are held to log p(words, topics) a word of their last draw, by one function. tomotopy gets
its corpus ready-made, outside the clock; ours begins with the counts. A chain from another start ends elsewhere, so the two
agree to within what starts differ by, where ours is not below.
"""

from functools import partial

import numpy as np
import tomotopy
from scipy.sparse import coo_array

from bench.harness import THREADS, Row
from lemmata.topic import LatentDirichletAllocation
from lemmata.topic.gibbs import log_joint, token_counts

SWEEPS, ALPHA, ETA = 100, 0.1, 0.01
WORDS, OFFSET, SPREAD = 8_000, 20.0, 400.0  # of the vocabulary; of its Zipf law; and how alike topics are


def table(n, length, k):
    rng = np.random.default_rng(0)
    law = 1 / (np.arange(WORDS) + OFFSET)
    topics = np.cumsum(rng.gamma(SPREAD * law / law.sum(), size=(k, WORDS)), axis=1)
    shares = rng.dirichlet(np.full(k, ALPHA), size=n)
    rows, columns = [], []
    for d, m in enumerate(np.maximum(rng.poisson(length, n), 1)):
        for topic, many in enumerate(rng.multinomial(m, shares[d])):
            if many:
                columns.append(np.searchsorted(topics[topic], rng.random(many) * topics[topic, -1]))
                rows.append(np.full(many, d))
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    X = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, WORDS)).tocsr()
    X.sum_duplicates()
    names = np.array([str(w) for w in range(WORDS)])
    corpus = tomotopy.utils.Corpus()
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        corpus.add_doc(np.repeat(names[X.indices[a:b]], X.data[a:b].astype(int)).tolist())
    return X, corpus, k


def ours(data):
    X, _, k = data
    settings = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA, "max_iter": SWEEPS, "thinning": SWEEPS}
    return LatentDirichletAllocation(k, method="gibbs", random_state=0, **settings).fit(X)


def peer(data):
    model = tomotopy.LDAModel(k=data[2], alpha=ALPHA, eta=ETA, seed=1, corpus=data[1])
    model.optim_interval = 0
    model.train(SWEEPS, workers=THREADS)
    return model


def likelihood(data, model):
    X, _, k = data
    if isinstance(model, LatentDirichletAllocation):
        counts = token_counts(X, model.assignments_[-1], k)
    else:
        order = np.array([int(name) for name in model.used_vocabs])
        counts = np.zeros((X.shape[0], k), int), np.zeros((k, X.shape[1]), int)
        for row, document in zip(counts[0], model.docs, strict=True):
            topics = np.array(document.topics)
            row += np.bincount(topics, minlength=k)
            np.add.at(counts[1], (topics, order[np.array(document.words)]), 1)
    return log_joint(*counts, np.full(k, ALPHA), ETA) / X.sum()


ROWS = [
    Row(
        f"LDA by Gibbs, 5,000 documents of {length:,} words, {k} topics, {SWEEPS} sweeps",
        partial(table, 5_000, length, k),
        ours,
        {"tomotopy": peer},
        likelihood,
        {"tomotopy": bar},
        agree=1e-2,
        repeats=repeats,
    )
    for length, k, bar, repeats in ((60, 20, 1.0, 3), (60, 200, 2.5, 3), (1_000, 20, 1.0, 1), (1_000, 200, 2.5, 1))
]
