"""Ranking metrics against scikit-learn and against their definitions, one place after another."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from lemmata.recommend import (
    ProbabilisticMatrixFactorization,
    auc,
    average_precision,
    mean_reciprocal_rank,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((12, 20))
    held_out = rng.integers(1, 6, scores.shape) * (rng.random(scores.shape) < 0.2)
    held_out[4] = 0  # a user without anything held out
    seen = (rng.random(scores.shape) < 0.3) & (held_out == 0)
    return scores, held_out.astype(float), seen


def test_against_scikit_learn(table):
    scores, held_out, _ = table
    rows = np.flatnonzero(held_out.any(axis=1))
    sparse = csr_array(held_out)
    for k in (1, 5, 40):
        expected = np.mean([ndcg_score(held_out[[i]], scores[[i]], k=k) for i in rows])
        np.testing.assert_allclose(ndcg_at_k(scores, sparse, k), expected, rtol=1e-12)
    expected = np.mean([roc_auc_score(held_out[i] > 0, scores[i]) for i in rows])
    np.testing.assert_allclose(auc(scores, sparse), expected, rtol=1e-12)
    expected = np.mean([average_precision_score(held_out[i] > 0, scores[i]) for i in rows])
    np.testing.assert_allclose(average_precision(scores, sparse), expected, rtol=1e-12)


def test_against_the_definitions_without_what_was_seen(table):
    scores, held_out, seen = table
    precision, recall, reciprocal = [], [], []
    for i in np.flatnonzero(held_out.any(axis=1)):
        order = [j for j in np.argsort(-scores[i]) if not seen[i, j]]
        hits = [held_out[i, j] > 0 for j in order]
        precision.append(sum(hits[:4]) / 4)
        recall.append(sum(hits[:4]) / sum(hits))
        reciprocal.append(1 / (hits.index(True) + 1))
    arguments = scores, csr_array(held_out)
    exclude = csr_array(seen.astype(float))
    np.testing.assert_allclose(precision_at_k(*arguments, k=4, exclude=exclude), np.mean(precision), rtol=1e-12)
    np.testing.assert_allclose(recall_at_k(*arguments, k=4, exclude=exclude), np.mean(recall), rtol=1e-12)
    np.testing.assert_allclose(mean_reciprocal_rank(*arguments, exclude=exclude), np.mean(reciprocal), rtol=1e-12)


def test_a_model_ranks_as_its_recommendations_do():
    rng = np.random.default_rng(0)
    X = csr_array(rng.poisson(0.4, (30, 15)).astype(float))
    model = ProbabilisticMatrixFactorization(3, implicit=True, random_state=0).fit(X)
    held_out = csr_array((rng.random((30, 15)) < 0.1).astype(float))
    hits = []
    for user in range(30):
        relevant = set(held_out[[user]].nonzero()[1]) - set(X[[user]].nonzero()[1])
        if relevant:
            hits.append(len(relevant & set(model.recommend(user, n=5)[0])) / 5)
    np.testing.assert_allclose(precision_at_k(model, held_out, k=5), np.mean(hits), rtol=1e-12)
    user, item = held_out.nonzero()
    triples = np.column_stack([user, item, np.ones(len(user))])
    assert precision_at_k(model, triples, k=5) == precision_at_k(model, held_out, k=5)


def test_nonsense_is_refused(table):
    scores, held_out, _ = table
    with pytest.raises(ValueError, match="k must be at least 1"):
        precision_at_k(scores, csr_array(held_out), k=0)
    with pytest.raises(ValueError, match="shape"):
        auc(scores, csr_array(held_out[:, :5]))
    with pytest.raises(ValueError, match="No user"):
        auc(scores, csr_array(scores.shape))
    with pytest.raises(ValueError, match="sparse matrix"):
        auc(scores, held_out)
