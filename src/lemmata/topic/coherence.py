"""Coherence of topics: whether the words that a topic prefers occur in the same documents.

Of the D documents, D(v) hold the word v and D(v, w) both words. For the top words w₁, w₂, … of a topic, in their order,

    u_mass = mean over i > j of log (D(wᵢ, wⱼ) + 1) / D(wⱼ)                                  [1]
    c_npmi = mean over i > j of log (pᵢⱼ/pᵢpⱼ) / (−log pᵢⱼ),   pᵢ = D(wᵢ)/D, pᵢⱼ = D(wᵢ, wⱼ)/D      [2]

c_npmi lies between −1 (never together) and 1 (only together), and 0 is chance. Both are exact counts of documents; a pair with
a word that no document holds says nothing and is left out. Neither is the likelihood of anything, and c_npmi of the documents
that were fitted favors the fit: give others.

[1] Mimno et al., EMNLP (2011). [2] Bouma, GSCL (2009); Röder, Both & Hinneburg, WSDM (2015), with documents for windows.
"""

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.blocks import Blocks
from lemmata.core.threads import serial_blas

MEASURES = ("u_mass", "c_npmi")


def ranked(topics, n):
    """Give the numbers of the n most probable words of each topic, the first among equals first."""
    topics = np.asarray(topics)
    return np.argsort(-topics, axis=1, kind="stable")[:, : min(n, topics.shape[1])]


def together_block(X, *rest):
    """Count the documents that hold each word and each two of them (words, words), and all documents."""
    *_, words = rest  # weights, if there are any, stand before
    held = csr_array(csr_array(X)[:, words] > 0).astype(float)
    return (held.T @ held).toarray(), X.shape[0]


def u_mass(together, n_documents):
    """Mean of log (D(wᵢ, wⱼ) + 1)/D(wⱼ) over pairs of top words."""
    later, earlier = np.tril_indices(len(together), -1)
    single = together.diagonal()
    seen = (single[later] > 0) & (single[earlier] > 0)
    later, earlier = later[seen], earlier[seen]
    return np.log((together[later, earlier] + 1.0) / single[earlier])


def c_npmi(together, n_documents):
    """Mean of the normalized pointwise mutual information over pairs of top words."""
    later, earlier = np.tril_indices(len(together), -1)
    single = together.diagonal() / n_documents
    seen = (single[later] > 0) & (single[earlier] > 0)
    later, earlier = later[seen], earlier[seen]
    joint, apart = together[later, earlier] / n_documents, single[later] * single[earlier]
    never, always = joint == 0, joint == 1
    safe = np.where(never | always, 0.5, joint)
    return np.where(never, -1.0, np.where(always, 1.0, np.log(safe / apart) / -np.log(safe)))


def coherence(topics, X, *, top=10, measure="c_npmi"):
    """Measure how much the top words of each topic keep company in documents.

    Parameters
    ----------
    topics : (n_topics, n_words), how much a topic prefers each word: probabilities, counts, or anything of that order.
    X : Documents: counts of words, dense or sparse, `lemmata.Blocks`, or any table that these take.
    top : Words of a topic that are looked at.
    measure : "c_npmi" or "u_mass".

    Returns
    -------
    coherence : (n_topics,), larger is better; NaN for a topic no two of whose top words occur at all.

    Examples
    --------
    >>> X = [[1, 2, 0, 0], [3, 1, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1]]
    >>> coherence([[0.5, 0.4, 0.1, 0.0], [0.4, 0.1, 0.5, 0.0]], X, top=2)
    array([ 1., -1.])
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}.")
    if top < 2:
        raise ValueError(f"top must be at least 2, for coherence is of pairs of words; got {top!r}.")
    topics, blocks = np.asarray(topics, dtype=float), X if isinstance(X, Blocks) else Blocks.of(X)
    if topics.ndim != 2 or topics.shape[1] != blocks.n_columns:
        raise ValueError(f"topics must have one column for each of {blocks.n_columns} words, got the shape {topics.shape}.")
    best = ranked(topics, top)
    words, places = np.unique(best, return_inverse=True)
    with serial_blas():
        together, n_documents = blocks.reduce(together_block, words)
    pairs = {"u_mass": u_mass, "c_npmi": c_npmi}[measure]
    values = [pairs(together[np.ix_(own, own)], n_documents) for own in places.reshape(best.shape)]
    return np.array([v.mean() if len(v) else np.nan for v in values])
