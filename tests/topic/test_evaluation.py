"""How probable unseen documents are, against sums over all assignments of topics."""

import numpy as np
import pytest

from lemmata.core.random import generator
from lemmata.topic import LatentDirichletAllocation
from lemmata.topic.evaluation import completion_logs, left_to_right_logs, whole_counts
from topic.tiny import corpus, log_probability

METHODS = ("document-completion", "left-to-right", "bound")


@pytest.mark.item("FAC-12")
def test_left_to_right_is_the_sum_over_all_assignments():
    rng = np.random.default_rng(0)
    topics, alpha = rng.dirichlet(np.full(4, 0.5), 3), np.array([0.3, 0.8, 0.5])
    rows = np.array([[3, 1, 0, 2], [0, 0, 4, 1], [1, 0, 0, 0], [0, 0, 0, 0], [2, 2, 2, 0]])
    exact = np.array([log_probability(row, topics, alpha) for row in rows])
    # The mean over independent estimates of p, not of log p, is unbiased.
    estimates = np.array([left_to_right_logs(whole_counts(rows), topics, alpha, 50, generator(seed)) for seed in range(100)])
    ratio = np.exp(estimates - exact)
    error = ratio.std(axis=0) / np.sqrt(len(ratio))
    assert (np.abs(ratio.mean(axis=0) - 1) <= 5 * error + 1e-9).all()  # five standard errors: once in a million
    np.testing.assert_allclose(estimates.mean(axis=0), exact, atol=0.02)
    np.testing.assert_allclose(estimates[:, 2], exact[2], rtol=1e-12)  # a single word has nothing before it
    assert (estimates[:, 3] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_uniform_model_has_the_perplexity_of_as_many_words(method):
    X, _ = corpus(n=80, v=30)
    model = LatentDirichletAllocation(3, random_state=0).fit(X)
    model.components_ = np.full((3, 30), 1e9)  # so sure of themselves that the bound is tight in β
    assert model.perplexity(X, method=method) == pytest.approx(30.0, rel=1e-6 if method != "bound" else 0.2)
    if method != "bound":
        assert model.perplexity(X, method=method) == pytest.approx(30.0, rel=1e-12)


def test_perplexity_does_not_depend_on_how_many_documents_there_are():
    X, _ = corpus(n=400, length=30)
    model = LatentDirichletAllocation(4, random_state=0).fit(X[:200])
    for method in METHODS:
        half, whole = (model.perplexity(X[200:stop], method=method) for stop in (300, 400))
        assert half == pytest.approx(whole, rel=0.1)
    twice = [np.concatenate([X[200:300].toarray()] * 2)]
    bound = model.perplexity(X[200:300], method="bound")
    assert model.perplexity(twice[0], method="bound") == pytest.approx(bound, rel=1e-12)


def test_estimates_agree_and_the_bound_is_above():
    X, topics = corpus(n=600, length=30)
    model = LatentDirichletAllocation(4, random_state=0).fit(X[:500])
    found = {method: model.perplexity(X[500:], method=method) for method in METHODS}
    assert found["left-to-right"] < found["bound"] < 1.1 * found["left-to-right"]
    worse = LatentDirichletAllocation(1, random_state=0).fit(X[:500])
    for method in METHODS:
        assert worse.perplexity(X[500:], method=method) > 1.3 * found[method]
    # The true model, by the definition of document completion.
    entropy = -np.log(topics[topics > 0]) @ topics[topics > 0] / 4
    assert np.exp(entropy) < found["document-completion"]


def test_halves_of_documents_make_the_whole():
    X, _ = corpus(n=50)
    counts = whole_counts(X)
    seen = []

    def shares_of(half):
        seen.append(half)
        return np.full((50, 2), 0.5)

    topics = np.full((2, 60), 1 / 60)
    logs, told = completion_logs(counts, shares_of, topics, generator(0))
    np.testing.assert_array_equal(seen[0].sum(axis=1) + told, 40)
    assert (seen[0].data <= counts.data).all()
    np.testing.assert_allclose(logs, -told * np.log(60), rtol=1e-12)


def test_fractions_and_nothing_are_refused():
    X, _ = corpus(n=20)
    model = LatentDirichletAllocation(2, random_state=0).fit(X * 0.5)
    assert np.isfinite(model.perplexity(X * 0.5, method="bound"))
    for method in ("document-completion", "left-to-right"):
        with pytest.raises(ValueError, match="whole numbers"):
            model.perplexity(X * 0.7, method=method)
        with pytest.raises(ValueError, match="no word to be told"):
            model.perplexity(np.zeros((2, 60)), method=method)
    with pytest.raises(ValueError, match="method must be"):
        model.perplexity(X, method="guess")
