"""Silhouettes against scikit-learn's, and the rule of the elbow."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples

from lemmata.cluster import Elbow, KMeans, KMedians, KMedoids, SoftKMeans, dissimilarity, elbow, silhouette


def rows(n=90, d=3, k=3, seed=0, spread=5.0):
    rng = np.random.default_rng(seed)
    return (spread * rng.normal(size=(k, d)))[np.arange(n) % k] + rng.normal(size=(n, d))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "precomputed", lambda a, b: float(np.abs(a - b).max())])
def test_silhouettes_are_scikit_learns(metric, monkeypatch):
    monkeypatch.setattr(dissimilarity, "CHUNK", 16)  # so that rows come in several slices
    X = rows(spread=1.0)
    labels = np.random.default_rng(1).choice(["a", "b", "c"], 90)
    labels[0] = "alone"
    table = cdist(X, X) if metric == "precomputed" else X
    np.testing.assert_allclose(silhouette(table, labels, metric), silhouette_samples(table, labels, metric=metric), atol=1e-12)


def test_a_weight_is_repetition():
    X = rows(40)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    labels = np.arange(40) % 3
    ours = silhouette(X, labels, sample_weight=weight)
    theirs = silhouette_samples(np.repeat(X, weight, axis=0), np.repeat(labels, weight))
    np.testing.assert_allclose(np.repeat(ours, weight), theirs, atol=1e-7)  # their distances are from products


def test_rows_that_coincide_have_a_silhouette_of_zero():
    assert silhouette(np.ones((4, 2)), [0, 0, 1, 1]).tolist() == [0.0] * 4


def test_silhouette_refusals():
    X = rows(6)
    for labels in (np.zeros(6), np.arange(6)):
        with pytest.raises(ValueError, match="from 2 to 5 clusters"):
            silhouette(X, labels)
    with pytest.raises(ValueError, match="one for each row"):
        silhouette(X, [0, 1])
    with pytest.raises(ValueError, match="one column for each row"):
        silhouette(X, [0, 0, 0, 1, 1, 1], "precomputed")
    with pytest.raises(ValueError, match="no row of positive weight"):
        silhouette(X, [0, 0, 0, 1, 1, 1], sample_weight=[1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize("model", [KMeans(random_state=0), KMedoids(), KMedians(random_state=0), SoftKMeans(random_state=0)])
def test_the_elbow_finds_clusters_that_lie_apart(model):
    corners = 20.0 * np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    X = corners[np.arange(120) % 4] + np.random.default_rng(2).normal(size=(120, 2))
    curve = elbow(model, X, range(1, 9))
    assert curve.suggested == curve.by_silhouette == 4
    assert np.isnan(curve.silhouette[0])
    metric = getattr(model, "metric", "euclidean")
    assert curve.silhouette[3] == pytest.approx(silhouette_samples(X, curve.models[3].labels_, metric=metric).mean(), abs=1e-7)
    assert [m.n_clusters for m in curve.models] == list(range(1, 9))
    assert curve.inertia[3] == curve.models[3].inertia_
    assert elbow(model, X, range(1, 9)).suggested == 4, "the choice is reproducible"


def test_the_loss_of_the_best_medoids_falls_with_their_number():
    X = rows(60, 2, 3, seed=3, spread=1.0)
    assert (np.diff(elbow(KMedoids(), X).inertia) <= 0).all()


def test_the_chord_rule():
    curve = Elbow(np.array([2, 4, 6]), np.array([9.0, 3.0, 1.0]), np.full(3, np.nan))
    np.testing.assert_allclose(curve.below_chord, [0.0, 0.25, 0.0])
    assert curve.suggested == 4
    flat = Elbow(np.array([1, 2, 3]), np.zeros(3), np.full(3, np.nan))
    assert flat.suggested == 1


def test_elbow_with_weights_and_precomputed_distances():
    X = rows(45, 2, 3, seed=4)
    weight = (np.arange(45) % 4).astype(float)
    one = elbow(KMedoids(), X, [1, 2, 3, 4], sample_weight=weight)
    two = elbow(KMedoids(metric="precomputed"), cdist(X, X), [1, 2, 3, 4], sample_weight=weight)
    np.testing.assert_allclose(one.inertia, two.inertia, rtol=1e-12)
    np.testing.assert_allclose(one.silhouette, two.silhouette, rtol=1e-9)
    for numbers in ([1, 2], [3, 2, 1], [0, 1, 2], [1, 2, 2.5]):
        with pytest.raises(ValueError, match="at least three"):
            elbow(KMedoids(), X, numbers)
