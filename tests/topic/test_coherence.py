"""Coherence of topics, against gensim and against counting by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import lemmata
from lemmata.topic import LatentDirichletAllocation, coherence
from topic.tiny import corpus

GENSIM = json.loads((Path(__file__).parents[1] / "reference" / "coherence.json").read_text())


def test_npmi_is_gensims():
    topics = np.zeros((2, 6))
    for topic, words in zip(topics, GENSIM["topics"], strict=True):
        topic[words] = [4, 3, 2, 1]
    # 1e-9: gensim adds 1e-12 to probabilities
    np.testing.assert_allclose(coherence(topics, GENSIM["counts"], top=4), GENSIM["c_npmi"], rtol=1e-9)


def by_hand(words, X, measure):
    held = np.asarray(X) > 0
    values = []
    for i in range(1, len(words)):
        for j in range(i):
            one, other = held[:, words[i]], held[:, words[j]]
            both = (one & other).sum()
            if measure == "u_mass":
                values.append(np.log((both + 1) / other.sum()))
            elif both == 0:
                values.append(-1.0)
            else:
                p = both / len(held)
                values.append(np.log(p / (one.mean() * other.mean())) / -np.log(p))
    return np.mean(values)


@pytest.mark.parametrize("measure", ["u_mass", "c_npmi"])
def test_counts_by_hand(measure):
    X, topics = corpus(n=200, length=15)
    dense = X.toarray()
    expected = [by_hand(np.argsort(-t, kind="stable")[:7], dense, measure) for t in topics]
    for form in (X, dense, csr_array(X.astype(np.float32))):
        np.testing.assert_allclose(coherence(topics, form, top=7, measure=measure), expected, rtol=1e-12)
    with lemmata.config(block_rows=17):
        np.testing.assert_allclose(coherence(topics, dense, top=7, measure=measure), expected, rtol=1e-12)


def test_the_topics_of_the_documents_are_more_coherent_than_any():
    X, _ = corpus(n=500, length=20)
    model = LatentDirichletAllocation(4, random_state=0).fit(X)
    random = np.random.default_rng(0).random((4, 60))
    for measure in ("u_mass", "c_npmi"):
        own = model.coherence(X, top=5, measure=measure)
        assert own.shape == (4,)
        assert own.min() > coherence(random, X, top=5, measure=measure).max()


def test_words_that_no_document_holds_say_nothing():
    X = np.array([[1, 1, 0], [2, 1, 0]])
    for measure, both in (("u_mass", np.log(1.5)), ("c_npmi", 1.0)):
        assert coherence([[3, 2, 1]], X, top=3, measure=measure) == pytest.approx(both)
        assert np.isnan(coherence([[3, 1, 2]], X, top=2, measure=measure)).all()


def test_nonsense_is_refused():
    X = np.ones((3, 4))
    with pytest.raises(ValueError, match="measure must be one of"):
        coherence(np.ones((1, 4)), X, measure="c_v")
    with pytest.raises(ValueError, match="at least 2"):
        coherence(np.ones((1, 4)), X, top=1)
    with pytest.raises(ValueError, match="one column for each of 4 words"):
        coherence(np.ones((1, 5)), X)
