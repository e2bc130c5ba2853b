"""`LatentDirichletAllocation` by variational Bayes: topics that are known, the edges, online steps, samples."""

import numpy as np
import pytest
import sklearn.decomposition as peer
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from lemmata.core.certificate import free
from lemmata.topic import LatentDirichletAllocation
from topic.tiny import corpus


def matched(found, topics):
    """Total variation between topics and those found, best matched."""
    distance = np.abs(found[:, None] - topics[None]).sum(axis=2) / 2
    rows, columns = linear_sum_assignment(distance)
    return distance[rows, columns]


@pytest.mark.item("FAC-12", "FAC-13")
def test_known_topics_are_found():
    X, topics = corpus(n=1500, length=60)
    model = LatentDirichletAllocation(4, random_state=0).fit(X)
    assert matched(model.topic_word_, topics).max() < 0.06
    assert model.converged_
    assert model.certify(X).holds, str(model.certify(X))


def test_the_bound_never_falls_where_documents_have_one_optimum():
    X, _ = corpus(n=200, length=100)
    for seed in range(3):
        model = LatentDirichletAllocation(4, doc_topic_prior=1.0, random_state=seed, tol=1e-7).fit(X)
        assert (np.diff(model.trace_) > -1e-12).all()
        assert model.bound_ / X.sum() == pytest.approx(model.trace_[-1], rel=1e-9)


def test_the_bound_hardly_falls_where_they_have_several():
    X, _ = corpus(n=800, v=300, k=12, length=12, eta=0.05)
    model = LatentDirichletAllocation(12, random_state=0).fit(X)
    # Documents of a dozen words that change their mind: each costs a nat or so, of the 9,600 words there are.
    assert np.diff(model.trace_).min() > -1e-3
    assert model.certify(X).holds


def test_it_ends_no_lower_than_scikit_learn():
    X, _ = corpus(n=200, v=100, k=5, length=30)
    model = LatentDirichletAllocation(5, random_state=0).fit(X)
    settings = {"max_iter": 50, "mean_change_tol": 1e-5, "max_doc_update_iter": 200, "learning_method": "batch"}
    theirs = peer.LatentDirichletAllocation(5, random_state=0, **settings).fit(X)
    assert model.bound_ > theirs.score(X) - 0.005 * abs(theirs.score(X))  # local optima differ by parts of a percent
    model.components_ = theirs.components_  # the same topics have the same score
    assert model.score(X) == pytest.approx(theirs.score(X), rel=1e-4)


@pytest.mark.item("FAC-12")
def test_words_of_documents_have_probabilities_that_sum_to_one():
    X, _ = corpus(n=50)
    model = LatentDirichletAllocation(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1.0, rtol=1e-12)
    told = model.inverse_transform(model.transform(X))
    assert told.shape == X.shape
    np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="3 topics"):
        model.inverse_transform(np.ones((2, 4)))


@pytest.mark.item("FAC-12")
def test_drawn_documents_have_the_frequencies_of_the_model():
    X, _ = corpus(n=100, v=12, k=2)
    model = LatentDirichletAllocation(2, doc_topic_prior=[2.0, 0.5], random_state=0).fit(X)
    drawn = model.sample(20_000, length=1)  # one word each: independent draws from α/Σα · β
    expected = 20_000 * (np.array([0.8, 0.2]) @ model.topic_word_)
    found = np.asarray(drawn.sum(axis=0)).ravel()
    statistic = ((found - expected) ** 2 / expected).sum()
    assert statistic < chi2(11).isf(1e-6)
    longer = model.sample(50)
    np.testing.assert_array_equal(longer.sum(axis=1), 40)  # the length of the documents of the fit
    shares = model.sample(3000, length=400)  # long documents show the spread of their shares: var = m₁m₂/(A + 1)
    estimate = np.linalg.lstsq(model.topic_word_.T, (shares / 400).toarray().T, rcond=None)[0][0]
    assert estimate.var() == pytest.approx(0.8 * 0.2 / 3.5, rel=0.15)


@pytest.mark.parametrize("make", [np.asarray, csr_array, csr_matrix])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_counts_come_in_every_form(make, dtype):
    X, _ = corpus(n=40)
    expected = LatentDirichletAllocation(3, random_state=0).fit(X.toarray())
    model = LatentDirichletAllocation(3, random_state=0).fit(make(X.toarray().astype(dtype)))
    assert model.components_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-5)


def test_columns_in_any_order_and_stored_zeros_do_not_matter():
    X, _ = corpus(n=40)
    expected = LatentDirichletAllocation(3, random_state=0).fit(X)
    turned = X.copy()
    for i in range(40):
        part = slice(X.indptr[i], X.indptr[i + 1])
        turned.indices[part], turned.data[part] = X.indices[part][::-1], X.data[part][::-1]
    turned.has_sorted_indices = False
    zeros = csr_array(
        (np.append(X.data, 0.0), np.append(X.indices, 3), np.append(X.indptr[:-1], len(X.data) + 1)), shape=X.shape
    )
    for other in (turned, zeros):
        np.testing.assert_allclose(
            LatentDirichletAllocation(3, random_state=0).fit(other).components_, expected.components_, rtol=1e-6
        )


def test_empty_documents_have_the_prior_shares_and_unseen_words_the_prior_counts():
    X, _ = corpus(n=40)
    X = X.toarray()
    X[[3, 17]] = 0.0
    X[:, 5] = 0.0
    model = LatentDirichletAllocation(2, doc_topic_prior=[0.2, 0.6], topic_word_prior=0.3, random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(X)[[3, 17]], [[0.25, 0.75]] * 2, rtol=1e-12)
    np.testing.assert_allclose(model.components_[:, 5], 0.3, rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(X)[[3, 17]], 0.0, atol=1e-12)
    assert model.certify(X).holds
    unseen = np.zeros((1, 60))
    unseen[0, 5] = 4.0
    assert np.isfinite(model.score_samples(unseen)).all()
    nothing = LatentDirichletAllocation(2, random_state=0).fit(np.zeros((3, 4)))
    np.testing.assert_allclose(nothing.components_, 0.5, rtol=1e-12)
    assert nothing.certify(np.zeros((3, 4))).holds


def test_one_topic_is_counting():
    X, _ = corpus(n=30)
    model = LatentDirichletAllocation(1, topic_word_prior=0.5).fit(X)
    np.testing.assert_allclose(model.components_[0], 0.5 + X.sum(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(model.transform(X), 1.0)
    for prior in ("doc_topic_prior", "topic_word_prior"):
        learned = LatentDirichletAllocation(1, **{prior: "learn"}).fit(X)
        assert learned.certify(X).holds, str(learned.certify(X))


def test_learned_priors_come_near_those_of_the_documents():
    X, _ = corpus(n=1000, length=80, alpha=0.3, eta=0.2)
    model = LatentDirichletAllocation(4, doc_topic_prior="learn", topic_word_prior="learn", random_state=0).fit(X)
    np.testing.assert_allclose(model.doc_topic_prior_, 0.3, rtol=0.4)
    assert model.topic_word_prior_ == pytest.approx(0.2, rel=0.3)
    assert model.bound_ > LatentDirichletAllocation(4, random_state=0).fit(X).bound_
    assert model.certify(X).holds, str(model.certify(X))
    for name in ("doc_topic_prior_", "topic_word_prior_"):
        twin = LatentDirichletAllocation(**model.get_params())
        vars(twin).update(vars(model))
        setattr(twin, name, 1.01 * getattr(model, name))
        assert not twin.certify(X).holds


@pytest.mark.filterwarnings("ignore:variational Bayes did not converge")
def test_online_steps_come_near_the_batch():
    X, topics = corpus(n=1500, length=60)
    settings = {"learning_method": "online", "random_state": 0, "max_iter": 15}
    model = LatentDirichletAllocation(4, **settings).fit(X)
    assert matched(model.topic_word_, topics).max() < 0.1
    parts = LatentDirichletAllocation(4, total_samples=1500, batch_size=128, random_state=0)
    for _ in range(15):
        for start in range(0, 1500, 128):
            parts.partial_fit(X[start : start + 128])
    assert parts.n_iter_ == 15 * 12
    np.testing.assert_allclose(parts.components_, model.components_, rtol=1e-9)


def test_an_online_step_is_scikit_learns():
    X, _ = corpus(n=100, v=30, k=3, length=80)
    settings = {"doc_topic_prior": 1.0, "topic_word_prior": 0.5, "mean_change_tol": 1e-12, "max_doc_update_iter": 5000}
    settings |= {"total_samples": 1000, "learning_decay": 0.6, "learning_offset": 3.0}
    theirs = peer.LatentDirichletAllocation(3, **settings, random_state=0).partial_fit(X)
    ours = LatentDirichletAllocation(3, **settings, random_state=0).partial_fit(X)
    before = ours.components_.copy(), theirs.components_.copy()
    ours.components_, ours._n_steps = theirs.components_.copy(), 1
    ours.partial_fit(X)
    theirs.partial_fit(X)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6)
    assert not np.allclose(before[0], before[1])  # from another start


def test_coincident_topics_are_not_certified_where_they_would_part():
    X, _ = corpus(n=300)
    model = LatentDirichletAllocation(2, random_state=0).fit(X)
    row = 0.5 + np.asarray(X.sum(axis=0)) / 2  # both topics alike: every document has equal shares, and nothing moves
    model.components_ = np.array([row, row])
    model.bound_ = model.score(X)
    certificate = model.certify(X)
    assert [check.name for check in certificate.failed] == ["topics 0 and 1"]


@pytest.mark.parametrize("seed", range(3))
def test_a_percent_of_sabotage_is_refused_with_many_topics(seed):
    X, _ = corpus(n=300, v=100, k=8, length=30, seed=seed)
    model = LatentDirichletAllocation(8, random_state=seed).fit(X)
    assert model.certify(X).holds, str(model.certify(X))
    model.components_ = np.abs(free(model.components_, np.random.default_rng(seed)))
    assert not model.certify(X).holds


def test_names_and_numbers_of_words():
    X = np.array([[5, 0, 1], [4, 0, 0], [0, 6, 0], [0, 5, 1]])
    model = LatentDirichletAllocation(2, random_state=0).fit(X)
    assert sorted(words[0] for words in model.top_words(1, ["a", "b", "c"])) == ["a", "b"]
    assert sorted(words[0] for words in model.top_words(1)) == [0, 1]
    assert model.get_feature_names_out().tolist() == ["latentdirichletallocation0", "latentdirichletallocation1"]
    with pytest.raises(ValueError, match="must name 3 words"):
        model.top_words(1, ["a"])


def test_nonsense_is_refused():
    X = np.ones((4, 3))
    with pytest.raises(ValueError, match="Negative values in data passed to LatentDirichletAllocation"):
        LatentDirichletAllocation(2).fit(-X)
    with pytest.raises(ValueError, match="doc_topic_prior must be 2 positive numbers"):
        LatentDirichletAllocation(2, doc_topic_prior=[1.0, 2.0, 3.0]).fit(X)
    with pytest.raises(ValueError, match="doc_topic_prior must be 2 positive numbers"):
        LatentDirichletAllocation(2, doc_topic_prior=[1.0, -2.0]).fit(X)
    with pytest.raises(ValueError, match="topic_word_prior"):
        LatentDirichletAllocation(2, topic_word_prior=0.0).fit(X)
    with pytest.raises(NotFittedError):
        LatentDirichletAllocation(2).top_words()
    with pytest.warns(ConvergenceWarning, match="did not converge after 3 iterations"):
        model = LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(corpus(n=30)[0])
    assert not model.certify(corpus(n=30)[0]).holds
    model.components_[0, 0] = -1.0
    assert not model.certify(corpus(n=30)[0]).holds
