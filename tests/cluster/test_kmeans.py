"""K-means against naive Lloyd, brute force, scikit-learn, and the inequalities it rests on."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans as Peer
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import lemmata
from cluster import naive
from lemmata.cluster import KMeans, kmeans_plusplus
from lemmata.cluster.bounds import semidefinite_bound


def blobs(n=300, d=3, k=4, seed=0, spread=6.0):
    rng = np.random.default_rng(seed)
    return (spread * rng.normal(size=(k, d)))[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@pytest.mark.item("CLU-01")
def test_small_example():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    model = KMeans(2, random_state=0).fit(X)
    assert sorted(model.cluster_centers_.ravel().tolist()) == [0.5, 10.5]
    assert model.inertia_ == 1.0
    assert KMeans(4, random_state=0).fit(X).inertia_ == 0.0  # k = n


@pytest.mark.item("CLU-01", "CLU-02")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_follows_naive_lloyd_to_the_same_fixed_point(seed, weighted):
    X = blobs(400, 5, 6, seed, spread=1.0)
    weight = np.random.default_rng(seed).random(400) if weighted else None
    start = X[np.random.default_rng(seed).choice(400, 12, replace=False)]
    centers, labels, trace = naive.lloyd(X, start, weight)
    with lemmata.config(block_rows=64):
        model = KMeans(12, init=start).fit(X, sample_weight=weight)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-11)
    assert np.array_equal(model.labels_, labels)
    assert model.inertia_ == pytest.approx(trace[-1], rel=1e-12)
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(model.trace_)), "the inertia never rises"
    assert model.converged_
    # the trace is the inertia after each move, bounded below by that of the next assignment
    for ours, theirs in zip(model.trace_, trace[1:], strict=False):
        assert theirs <= ours * (1 + 1e-12)


@pytest.mark.item("CLU-02")
def test_the_mean_minimizes_and_each_half_step_descends():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3))
    cost = lambda c: ((X - c) ** 2).sum()  # noqa: E731
    assert all(cost(X.mean(axis=0)) <= cost(X.mean(axis=0) + 0.1 * rng.normal(size=3)) for _ in range(100))
    # the catalogue's example: after the assignment, moving the means gains, and reassigning gains again (not equality)
    X, centers = np.array([[0.0], [2.0], [3.0], [10.0]]), np.array([[0.0], [3.0]])
    labels, squared = naive.nearest(X, centers)
    before = squared.sum()
    moved = np.array([X[labels == j].mean(axis=0) for j in range(2)])
    after_move = ((X - moved[labels]) ** 2).sum()
    after_assign = naive.nearest(X, moved)[1].sum()
    assert before == 50.0
    assert (after_move, after_assign) == (38.0, 33.0)
    model = KMeans(2, init=centers).fit(X)
    assert model.trace_[0] == pytest.approx(38.0, rel=1e-14)
    assert model.inertia_ <= after_assign


@pytest.mark.item("CLU-03")
def test_scatter_identity_and_the_two_objectives():
    def pairs(x):
        return 0.5 * ((x[:, None] - x[None]) ** 2).sum()

    def within(x):
        return len(x) * ((x - x.mean(axis=0)) ** 2).sum()

    assert pairs(np.array([[1.0], [2.0], [4.0]])) == pytest.approx(14.0)
    assert within(np.array([[1.0], [2.0], [4.0]])) == pytest.approx(14.0)
    X = blobs(60, 3, 3)
    model = KMeans(3, random_state=0).fit(X)
    groups = [X[model.labels_ == j] for j in range(3)]
    assert sum(within(g) / len(g) for g in groups) == pytest.approx(model.inertia_, rel=1e-12)
    weighted = sum(pairs(g) for g in groups)  # the textbook objective: clusters count by their size
    assert weighted == pytest.approx(sum(within(g) for g in groups), rel=1e-12)
    assert model.size_weighted_inertia_ == pytest.approx(weighted, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_partition_is_better_than_the_bound(k):
    rng = np.random.default_rng(k)
    for _ in range(4):
        X = rng.normal(size=(8, 2)) + 4 * rng.integers(0, 2, (8, 1))
        best = naive.best_inertia(X, k)
        model = KMeans(k, n_init=20, random_state=0).fit(X)
        certificate = model.certify(X)
        bound = model.inertia_ * (1 - certificate["excess"].value)
        assert bound <= best * (1 + 1e-9)
        assert best <= model.inertia_ * (1 + 1e-12)


def test_bounds_from_any_labels_are_bounds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    best = naive.best_inertia(X, 3)
    for _ in range(30):
        labels = np.r_[[0, 1, 2], rng.integers(0, 3, 6)]
        assert semidefinite_bound(X, labels, 3) <= best * (1 + 1e-9)


def test_well_separated_clusters_are_proved_optimal():
    X = blobs(90, 2, 3, seed=3, spread=30.0)
    certificate = KMeans(3, random_state=0).fit(X).certify(X)
    assert certificate["excess"].value < 1e-6
    assert certificate.holds
    assert certificate.kind == "proof"
    assert KMeans(3, random_state=0).fit(blobs(90, 2, 3, spread=0.5)).certify(blobs(90, 2, 3, spread=0.5)).kind == "local"


@pytest.mark.parametrize(("d", "k"), [(2, 8), (10, 20), (64, 30)])
def test_same_labels_as_scikit_learn(d, k):
    X = blobs(3000, d, k, seed=d, spread=1.0)
    start = X[:k].copy()
    ours, peer = KMeans(k, init=start).fit(X), Peer(k, init=start, n_init=1, tol=0, max_iter=1000).fit(X)
    assert np.array_equal(ours.labels_, peer.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, peer.cluster_centers_, rtol=1e-9, atol=1e-10)
    assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-12)
    assert np.array_equal(ours.predict(X + 0.1), peer.predict(X + 0.1))
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), rtol=1e-7, atol=1e-7)
    assert ours.score(X) == pytest.approx(peer.score(X), rel=1e-12)


def test_bits_do_not_depend_on_the_blocks_either():
    X = blobs(1000, 4, 5, spread=1.0)
    start = X[:9].copy()
    results = []
    for rows in (10, 64, 999, 5000):
        with lemmata.config(block_rows=rows):
            results.append(KMeans(9, init=start).fit(X))
    for other in results[1:]:
        np.testing.assert_allclose(other.cluster_centers_, results[0].cluster_centers_, rtol=1e-13)
        assert np.array_equal(other.labels_, results[0].labels_)


def test_empty_clusters_are_put_to_use():
    X = blobs(200, 2, 3, spread=20.0)
    start = np.vstack([X[:2], np.full((2, 2), 1e4)])  # two centers that no row is near
    model = KMeans(4, init=start).fit(X)
    assert len(np.unique(model.labels_)) == 4
    assert model.certify(X).holds
    with pytest.warns(ConvergenceWarning, match="Only 3 of 5"):
        few = KMeans(5, random_state=0).fit(np.repeat(np.eye(3), 4, axis=0))
    assert few.inertia_ == 0.0


def test_restarts_keep_the_best():
    X = blobs(300, 2, 6, spread=2.0)
    one = [KMeans(6, init="random", n_init=1, random_state=s).fit(X).inertia_ for s in range(5)]
    assert KMeans(6, init="random", n_init=30, random_state=0).fit(X).inertia_ <= min(one) * (1 + 1e-9)


def test_a_function_may_choose_the_start():
    def corners(X, n_clusters, random_state):
        return X[np.argsort(X[:, 0])[[0, -1]]]

    X = blobs(100, 2, 2, spread=20.0)
    model = KMeans(2, init=corners).fit(X)
    assert model.certify(X).holds
    with pytest.raises(ValueError, match="init must return"):
        KMeans(3, init=corners).fit(X)
    with pytest.raises(ValueError, match="init must have 2 rows and 2 columns"):
        KMeans(2, init=np.zeros((3, 2))).fit(X)
    with pytest.raises(ValueError, match="init contains NaN"):
        KMeans(2, init=np.full((2, 2), np.nan)).fit(X)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        KMeans(3).fit(X[:2])


def test_sparse_is_dense():
    rng = np.random.default_rng(2)
    X = blobs(200, 6, 3) * (rng.random((200, 6)) < 0.5)
    S, start = csr_array(X), X[:4].copy()
    sparse, dense = KMeans(4, init=start).fit(S), KMeans(4, init=start).fit(X)
    assert np.array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, rtol=1e-10, atol=1e-12)
    assert sparse.certify(S).holds
    assert KMeans(4, random_state=0).fit(S).certify(S).holds


@pytest.mark.parametrize("trials", [1, None])
def test_seeding_keeps_its_promise(trials):
    X = blobs(150, 2, 5, spread=15.0)
    best = KMeans(5, n_init=20, random_state=0).fit(X).inertia_
    inertia = []
    for seed in range(60):
        centers, rows = kmeans_plusplus(X, 5, random_state=seed, n_local_trials=trials)
        assert np.array_equal(centers, X[rows])
        assert len(set(rows.tolist())) == 5
        inertia.append(naive.nearest(X, centers)[1].sum())
    assert np.mean(inertia) <= 8 * (2 + np.log(5)) * best


def test_the_first_center_is_drawn_by_weight():
    X, weight = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 1.0])
    first = [kmeans_plusplus(X, 1, sample_weight=weight, random_state=s)[1][0] for s in range(400)]
    share = np.bincount(first, minlength=4) / 400
    assert share[0] == 0
    assert np.abs(share[1:] - [0.25, 0.5, 0.25]).max() < 5 * np.sqrt(0.25 / 400)  # five standard deviations


def test_digits_certificate():
    X, _ = load_digits(return_X_y=True)
    model = KMeans(10, random_state=0).fit(X)
    certificate = model.certify(X)
    assert certificate.holds
    assert certificate["single move"].value < 1e-3
    assert 0 < certificate["excess"].value < 1


def test_transform_names_and_generators():
    X = blobs(50, 2, 2)
    model = KMeans(2, random_state=np.random.default_rng(0)).fit(X)
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1"]
    assert model.set_output(transform="pandas").fit_transform(X).shape == (50, 2)
    assert np.array_equal(model.fit_predict(X), model.labels_)


def test_centers_of_the_wrong_width_are_refused():
    X = blobs(50, 3, 2)
    model = KMeans(2, random_state=0).fit(X)
    model.cluster_centers_ = model.cluster_centers_[:, :1]
    with pytest.raises(ValueError, match="cluster_centers_"):
        model.predict(X)
