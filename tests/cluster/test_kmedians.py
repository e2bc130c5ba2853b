"""K-medians against NumPy's median, brute force over all partitions, and its fixed point."""

from itertools import pairwise, product

import numpy as np
import pytest

from lemmata.cluster import KMeans, KMedians, KMedoids
from lemmata.cluster.kmedians import medians


def rows(n=60, seed=0, spread=4.0):
    rng = np.random.default_rng(seed)
    return (spread * rng.normal(size=(3, 2)))[np.arange(n) % 3] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_medians_are_numpys(n):
    rng = np.random.default_rng(n)
    X, weight = rng.normal(size=(n, 3)), rng.integers(1, 4, n)
    np.testing.assert_allclose(medians(X, np.ones(n)), np.median(X, axis=0), rtol=1e-15)
    np.testing.assert_allclose(medians(X, weight.astype(float)), np.median(np.repeat(X, weight, axis=0), axis=0), rtol=1e-15)


@pytest.mark.item("CLU-04")
def test_the_median_by_columns_is_the_best_free_center():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21, 3))
    center = KMedians(1, random_state=0).fit(X).cluster_centers_[0]
    assert np.array_equal(center, np.median(X, axis=0))
    cost = lambda c: np.abs(X - c).sum()  # noqa: E731
    assert all(cost(center) <= cost(center + 0.1 * rng.normal(size=3)) for _ in range(200))
    # the erratum: a free center is no medoid; what is restricted to rows costs more
    assert cost(center) < KMedoids(1, metric="l1").fit(X).inertia_
    assert not (center == X).all(axis=1).any()


@pytest.mark.item("CLU-04")
@pytest.mark.parametrize("seed", range(5))
def test_monotone_to_a_fixed_point(seed):
    X = rows(90, seed, spread=1.0)
    model = KMedians(5, random_state=seed).fit(X)
    assert model.converged_
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(model.trace_))
    to = np.abs(X[:, None] - model.cluster_centers_).sum(axis=2)
    assert np.array_equal(model.labels_, to.argmin(axis=1))
    assert model.inertia_ == pytest.approx(to.min(axis=1).sum(), rel=1e-12)
    for j in range(5):
        np.testing.assert_allclose(model.cluster_centers_[j], np.median(X[model.labels_ == j], axis=0), rtol=1e-12)
    assert model.certify(X).holds
    np.testing.assert_allclose(model.transform(X), to, rtol=1e-12)


def test_never_below_the_best_partition():
    X = rows(8, 3)
    best = np.inf
    for labels in product(range(3), repeat=8):
        groups = [X[np.array(labels) == j] for j in set(labels)]
        best = min(best, sum(np.abs(g - np.median(g, axis=0)).sum() for g in groups))
    losses = [KMedians(3, random_state=seed).fit(X).inertia_ for seed in range(5)]
    assert min(losses) == pytest.approx(best, rel=1e-12)


@pytest.mark.item("CLU-04")
def test_an_outlier_does_not_move_the_median_far():
    X = np.concatenate([rows(30, 1, spread=0.0), [[1e4, 0.0]]])
    assert np.abs(KMedians(1).fit(X).cluster_centers_).max() < 1.0
    assert KMeans(1, random_state=0).fit(X).cluster_centers_.max() > 300.0


def test_a_given_start_and_a_center_without_rows():
    X = rows(30, 2)
    start = np.concatenate([X[:2], [[1e6, 1e6]]])
    model = KMedians(3, init=start).fit(X)
    assert len(np.unique(model.labels_)) == 3
    assert model.certify(X).holds
    for init in (X[:2], [[np.nan, 0.0]] * 3):
        with pytest.raises(ValueError, match="finite numbers"):
            KMedians(3, init=init).fit(X)
