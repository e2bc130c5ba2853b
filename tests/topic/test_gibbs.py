"""The collapsed Gibbs sampler: against enumeration, against its closed forms, the same for any number of threads."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import lemmata
from contracts.crash import Crash
from contracts.problems import assert_same_bits
from contracts.test_certificate import sabotaged
from lemmata.core.diagnostics import autocorrelation_time
from lemmata.core.kernel import kernel
from lemmata.topic import LatentDirichletAllocation
from lemmata.topic.corpus import lay_out
from lemmata.topic.gibbs import Sampler, log_joint, token_counts
from lemmata.topic.lanes import LANES, choose, room
from lemmata.topic.learned_prior import learned_alpha, learned_gamma

TINY = csr_array(np.array([[2, 1, 0], [0, 1, 1], [1, 0, 1]]))  # 7 tokens


def corpus(n_documents=200, n_words=50, n_topics=3, length=60, seed=0):
    """Draw documents from the model itself."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.2), n_documents)
    return csr_array(np.array([rng.multinomial(length, share @ topics) for share in shares]).astype(float))


def enumerated(X, k, alpha, gamma):
    """List all assignments of topics to the tokens of a small corpus, and their probabilities."""
    labelings = np.array(list(product(range(k), repeat=int(X.sum()))))
    logs = np.array([log_joint(*token_counts(X, z, k), alpha, gamma) for z in labelings])
    odds = np.exp(logs - logs.max())
    return labelings, odds / odds.sum()


def long_run(X, k, alpha, gamma, n_sweeps, shards=None, seed=0):
    """Give the topics of all tokens after each of many sweeps."""
    sampler, rng = Sampler(X, k, shards), np.random.default_rng(seed)
    sampler.load(sampler.start(rng))
    sampler.believe(alpha, gamma)
    draws = np.empty((n_sweeps, sampler.n_tokens), np.int64)
    for draw in draws:
        sampler.sweep(rng)
        draw[:] = sampler.counts.topics
    return sampler.in_order(draws)


def together(labelings):
    """Tell of every pair of tokens whether they share a topic."""
    n = labelings.shape[1]
    return np.stack([labelings[:, i] == labelings[:, j] for i in range(n) for j in range(i)], axis=1).astype(float)


@pytest.mark.item("FAC-13")
@pytest.mark.parametrize(("k", "alpha", "gamma"), [(2, [0.5, 0.5], 0.3), (3, [1.0, 0.4, 0.2], 1.0)])
def test_long_run_frequencies_are_the_posterior(k, alpha, gamma):
    alpha = np.array(alpha)
    labelings, probabilities = enumerated(TINY, k, alpha, gamma)
    draws = long_run(TINY, k, alpha, gamma, 20_000)
    exact, series = probabilities @ together(labelings), together(draws)
    times = np.array([max(autocorrelation_time(chain[None]), 1.0) for chain in series.T])
    errors = np.sqrt(exact * (1 - exact) * times / len(series))
    assert (np.abs(series.mean(axis=0) - exact) < 5 * errors).all()  # of 21 pairs, by chance once in 80,000 runs
    # And whole labelings: χ² of all that are expected often enough, thinned so that draws are nearly independent.
    numbers = draws[::10] @ k ** np.arange(draws.shape[1])[::-1]
    expected = probabilities * len(numbers)
    often = expected >= 5
    seen = np.bincount(numbers, minlength=len(labelings))
    chi = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert chi < often.sum() + 6 * np.sqrt(2 * often.sum())


@pytest.mark.item("FAC-13")
def test_shards_change_the_posterior_by_little_only():
    # Two shards of seven tokens: totals are stale for a quarter of all, which is far worse than in any corpus that is cut.
    alpha, gamma = np.array([0.5, 0.5]), 0.3
    labelings, probabilities = enumerated(TINY, 2, alpha, gamma)
    found = together(long_run(TINY, 2, alpha, gamma, 20_000, shards=2)).mean(axis=0)
    np.testing.assert_allclose(found, probabilities @ together(labelings), atol=0.1)  # found: 0.056 at worst


def test_conditionals_are_ratios_of_the_joint_probability():
    X, k, gamma = corpus(20, 12, 5, 15), 5, 0.2
    alpha, rng = np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.random.default_rng(0)
    topics = rng.integers(k, size=int(X.sum()))
    words = np.repeat(X.indices, X.data.astype(int))
    documents = np.repeat(np.repeat(np.arange(20), np.diff(X.indptr)), X.data.astype(int))
    for i in rng.integers(len(topics), size=20):
        logs = np.empty(k)
        for topic in range(k):
            topics[i] = topic
            logs[topic] = log_joint(*token_counts(X, topics, k), alpha, gamma)
        of_documents, of_words = token_counts(X, topics, k)
        of_documents[documents[i], topics[i]] -= 1
        of_words[topics[i], words[i]] -= 1
        odds = (of_documents[documents[i]] + alpha) * (of_words[:, words[i]] + gamma) / (of_words.sum(axis=1) + 12 * gamma)
        exact = np.exp(logs - logs.max())
        np.testing.assert_allclose(odds / odds.sum(), exact / exact.sum(), rtol=1e-9)  # differences of sums of logarithms


@kernel
def draw_all(weights, counts, sums, n, gamma, shares, out):
    zero = np.uint64(0)
    for i in range(len(shares)):
        out[i] = choose(weights, zero, counts, zero, sums, zero, np.uint64(n), gamma, shares[i])


@pytest.mark.parametrize("n", [LANES, 3 * LANES, 13 * LANES, 70 * LANES])
def test_a_draw_ends_where_its_share_does(n):
    rng = np.random.default_rng(n)
    weights, counts = rng.random(n).astype(np.float32), rng.poisson(0.5, n).astype(np.int32)
    weights[n - 3 :] = 0.0
    m, gamma = 20_000, np.float32(0.01)
    shares = ((np.arange(m) + 0.5) / m).astype(np.float32)
    sums, drawn = np.full(room(n), np.inf, np.float32), np.empty(m, np.int64)
    draw_all(weights, counts, sums, n, gamma, shares, drawn)
    odds = (weights * (counts + gamma)).astype(float)
    found = np.bincount(drawn, minlength=n) / m
    np.testing.assert_allclose(found, odds / odds.sum(), atol=2.5 / m)  # a grid counts an interval to within one, and rounding
    assert not found[n - 3 :].any()


def test_the_layout_keeps_every_token():
    X = corpus(50, 30, 3, 20)
    words = np.repeat(X.indices, X.data.astype(int))
    for shards in (1, 2, 5, 8):
        laid, places, lengths = lay_out(X, shards)
        visits = np.repeat(laid.visit_documents, np.diff(laid.visit_starts))
        assert np.array_equal(np.sort(places), np.arange(len(words)))
        assert np.array_equal(laid.words[places], words)
        assert np.array_equal(visits[places], np.repeat(np.arange(50), lengths))
        tokens = laid.visit_starts[laid.block_visits]
        for diagonal in range(shards):  # no two blocks of a sub-sweep share a document or a word
            blocks = [b * shards + (b + diagonal) % shards for b in range(shards)]
            for values in (laid.words, visits):
                each = [np.unique(values[tokens[block] : tokens[block + 1]]) for block in blocks]
                assert len(np.unique(np.concatenate(each))) == sum(map(len, each))


@pytest.mark.parametrize("k", [20, 300])
def test_any_number_of_threads_gives_the_same_draws(k):
    X = corpus(2000, 300, 20, 60)
    assert X.sum() > 1 << 16  # eight shards
    alpha, draws = np.linspace(0.05, 0.15, k), []
    for n_threads in (1, 2, 3, 8):
        with lemmata.config(n_threads=n_threads):
            sampler, rng = Sampler(X, k), np.random.default_rng(0)
        sampler.load(sampler.start(rng))
        sampler.believe(alpha, 0.01)
        values = [sampler.sweep(rng) for _ in range(3)]
        of_documents, of_words = token_counts(X, sampler.in_order(sampler.counts.topics), k)
        assert np.array_equal(of_words, sampler.topic_words())
        assert np.array_equal(of_documents, sampler.document_topics())
        assert np.array_equal(of_words.sum(axis=1), sampler.counts.totals[:k])
        np.testing.assert_allclose(values[-1], log_joint(of_documents, of_words, alpha, 0.01), rtol=1e-12)
        draws.append((values, sampler.counts.topics))
    for values, topics in draws[1:]:
        assert values == draws[0][0]
        assert np.array_equal(topics, draws[0][1])


@pytest.mark.item("FAC-13")
def test_the_chain_finds_topics_as_probable_as_those_of_tomotopy():
    X = corpus(500, 200, 10, 80)
    settings = {"doc_topic_prior": 0.1, "topic_word_prior": 0.01, "max_iter": 300, "random_state": 0}
    ours = LatentDirichletAllocation(10, method="gibbs", **settings).fit(X)
    peer = json.loads((Path(__file__).parents[1] / "reference" / "tomotopy.json").read_text())
    assert peer["tokens"] == X.sum()
    assert ours.trace_[-50:].mean() >= peer["log_joint"] - 0.02  # nats a word: chains from other starts differ by as much


@pytest.mark.parametrize("learn", [{}, {"doc_topic_prior": "learn", "topic_word_prior": "learn"}])
def test_a_chain_is_certified_and_sabotage_refused(learn):
    X = corpus()
    model = LatentDirichletAllocation(3, method="gibbs", max_iter=100, random_state=0, **learn).fit(X)
    assert model.assignments_.shape == (5, X.sum())
    assert model.certify(X).holds, str(model.certify(X))
    names = []
    for name, twin in sabotaged(model):
        names.append(name)
        assert not twin.certify(X).holds, name
    assert {"components_", "assignments_", "log_joint_", "doc_topic_prior_"} <= set(names)
    assert not model.certify(corpus(seed=1)).holds
    single = clone(model).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    assert single.certify(X.astype(np.float32)).holds


def test_a_chain_that_still_climbs_is_refused():
    X = corpus(1000, 200, 20, 60)
    settings = {"doc_topic_prior": 0.1, "topic_word_prior": 0.01, "max_iter": 2, "random_state": 0}
    model = LatentDirichletAllocation(20, method="gibbs", **settings).fit(X)
    assert [check.name for check in model.certify(X).failed] == ["at rest"]


def test_weights_are_repetitions_and_counts_are_whole():
    X, weight = corpus(60), np.arange(60) % 3
    model = LatentDirichletAllocation(3, method="gibbs", max_iter=20, random_state=0)
    weighted = clone(model).fit(X, sample_weight=weight)
    assert_same_bits(weighted, clone(model).fit(X[np.repeat(np.arange(60), weight)]))
    assert weighted.certify(X, sample_weight=weight)["pseudo-counts"].holds
    with pytest.raises(ValueError, match="whole numbers"):
        model.fit(X * 0.5)
    with pytest.raises(ValueError, match="sample_weight must be whole"):
        model.fit(X, sample_weight=np.full(60, 0.5))
    with pytest.raises(ValueError, match="no words at all"):
        model.fit(X * 0)
    with pytest.raises(ValueError, match="burn_in=20 leaves nothing"):
        clone(model).set_params(burn_in=20).fit(X)


def test_a_checkpoint_resumes_with_the_same_bits(tmp_path):
    X, path = corpus(), tmp_path / "chain"
    model = LatentDirichletAllocation(3, method="gibbs", max_iter=40, random_state=0, doc_topic_prior="learn")
    with pytest.raises(MemoryError):
        clone(model).set_params(checkpoint=path).set_callbacks(Crash(15)).fit(X)
    assert_same_bits(clone(model).set_params(checkpoint=path).fit(X), clone(model).fit(X))


def test_a_chain_finds_the_topics_that_the_bound_finds():
    X = corpus(300, 50, 3, 100)
    model = LatentDirichletAllocation(3, method="gibbs", max_iter=200, random_state=0).fit(X)
    variational = LatentDirichletAllocation(3, random_state=0).fit(X)
    distance = 0.5 * np.abs(model.topic_word_[:, None] - variational.topic_word_[None]).sum(axis=2)
    match = distance.argmin(axis=1)  # the same topics, in another order
    assert sorted(match) == [0, 1, 2]
    assert distance.min(axis=1).max() < 0.05
    np.testing.assert_allclose(model.transform(X), variational.transform(X)[:, match], atol=0.1)
    assert abs(model.perplexity(X) / variational.perplexity(X) - 1) < 0.02


def test_learned_priors_are_the_most_probable():
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(50, share) for share in rng.dirichlet([0.1, 0.5, 2.0, 0.05], size=400)])
    words = np.array([rng.multinomial(500, share) for share in rng.dirichlet(np.full(40, 0.3), size=6)])
    alpha, gamma = learned_alpha(counts, np.ones(4)), learned_gamma(words)
    value = log_joint(counts, words, alpha, gamma)
    for moved in alpha * np.exp(0.01 * rng.standard_normal((20, 4))):
        assert log_joint(counts, words, moved, gamma) < value
    assert log_joint(counts, words, alpha, 1.01 * gamma) < value > log_joint(counts, words, alpha, 0.99 * gamma)
    np.testing.assert_allclose(learned_alpha(counts, np.full(4, 1e-3)), alpha, rtol=1e-6)
    none = np.hstack([counts, np.zeros((400, 1), int)])  # a topic without tokens
    assert learned_alpha(none, np.ones(5))[4] < 1e-3
