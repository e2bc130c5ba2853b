"""The pass over a block: against a naive twin, whatever it remembers, and exact in its sums."""

from copy import deepcopy
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from cluster import naive
from lemmata.cluster import lloyd
from lemmata.cluster.kmeans import draw_grid
from lemmata.core.blocks import Blocks


def table(n, d, seed, offset=0.0, dtype=float):
    rng = np.random.default_rng(seed)
    return np.ascontiguousarray((rng.normal(size=(n, d)) + 2 * rng.integers(0, 3, (n, 1)) + offset).astype(dtype))


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d", "k"), [(300, 2, 3), (300, 7, 31), (700, 20, 8), (513, 3, 1), (64, 40, 64)])
def test_labels_are_those_of_exact_distances(n, d, k, dtype, offset):
    X = table(n, d, seed=n + k, offset=offset, dtype=dtype)
    centers = X[np.random.default_rng(k).choice(n, k, replace=False)].astype(float)
    labels, squared = lloyd.nearest(X, lloyd.scoring_of(centers))
    expected, distance = naive.nearest(X.astype(float), centers)
    differs = labels != expected
    np.testing.assert_allclose(squared, distance, rtol=1e-12, atol=1e-20)
    assert (squared[differs] <= distance[differs] * (1 + 1e-12)).all(), "a label may differ only in a tie"
    assert differs.mean() < 0.01


def test_ties_go_to_the_first_center():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    centers = np.repeat(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 0.0]]), 20, axis=0)
    labels, _ = lloyd.nearest(X, lloyd.scoring_of(centers))
    assert labels.tolist() == [0, 0, 20]
    labels, _ = lloyd.nearest(X, lloyd.scoring_of(centers[[0, 20]]))
    assert labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "k"), [(2, 4), (9, 25)])
def test_what_a_block_remembers_does_not_change_a_bit(d, k, weighted):
    rng = np.random.default_rng(5)
    X = table(2000, d, seed=1)
    weight = rng.random(2000) if weighted else None
    grid, *_ = draw_grid(Blocks.of(X, weight))
    centers = X[:k].copy()
    memory = None
    skipped = 0
    for _ in range(25):
        statistics, memory = lloyd.sweep(X, weight, memory, lloyd.scoring_of(centers), grid)
        fresh = lloyd.lloyd_block(X, weight, lloyd.scoring_of(centers), grid)
        for kept, new in zip(statistics, fresh, strict=True):
            assert np.array_equal(kept, new)
        labels, _ = lloyd.nearest(X, lloyd.scoring_of(centers))
        assert np.array_equal(memory.labels, labels)
        counts, sums = grid.counts(statistics), grid.sums(statistics)
        moved = np.where(counts[:, None] > 0, grid.origin + sums / np.maximum(counts, 1e-300)[:, None], centers)
        later = deepcopy(memory)
        lloyd.drift(later, moved)
        skipped += len(X) - lloyd.survivors(X, lloyd.scoring_of(moved), later, np.empty(len(X), dtype=np.int64))
        centers = moved
    assert skipped > 2000, "the bounds never let a row skip: this test shows nothing"


def test_bounds_bound():
    X = table(500, 6, seed=2)
    centers = X[:20].copy()
    grid, *_ = draw_grid(Blocks.of(X, None))
    _, memory = lloyd.sweep(X, None, None, lloyd.scoring_of(centers), grid)
    rng = np.random.default_rng(0)
    for _ in range(10):
        centers = centers + 0.05 * rng.normal(size=centers.shape)
        lloyd.drift(memory, centers)
        distance = np.sqrt(((X[:, None] - centers) ** 2).sum(axis=2))
        own = distance[np.arange(500), memory.labels].copy()
        distance[np.arange(500), memory.labels] = np.inf
        assert (memory.upper + memory.grown[memory.labels] >= own).all()
        assert (memory.lower - memory.shrunk[memory.labels] <= distance.min(axis=1)).all()


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_reach_is_half_the_way_to_the_next_center_at_most(offset):
    centers = np.random.default_rng(0).normal(size=(30, 5)) + offset
    distance = np.sqrt(((centers[:, None] - centers) ** 2).sum(axis=2)) + np.diag(np.full(30, np.inf))
    half = distance.min(axis=1) / 2
    reach = lloyd.scoring_of(centers).reach
    assert (reach <= half).all()
    np.testing.assert_allclose(reach, half, rtol=1e-6)
    assert lloyd.scoring_of(centers[:1]).reach.tolist() == [np.inf]
    assert lloyd.scoring_of(centers[[0, 0]]).reach.tolist() == [0.0, 0.0]


def test_sums_are_exact_and_forget_nothing():
    rng = np.random.default_rng(3)
    X = np.ascontiguousarray(rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-6, 6, (200, 1)))
    weight = rng.random(200)
    blocks = Blocks.of(X, weight)
    grid, *_ = draw_grid(blocks)
    centers = X[:3].copy()
    sums = grid.sums(lloyd.lloyd_block(X, weight, lloyd.scoring_of(centers), grid))
    labels, _ = lloyd.nearest(X, lloyd.scoring_of(centers))
    for j in range(3):
        for f in range(2):
            terms = weight[labels == j] * (X[labels == j, f] - grid.origin[f])
            exact = float(sum(map(Fraction, terms)))
            assert sums[j, f] == pytest.approx(exact, rel=1e-15, abs=1e-24 * grid.size)


@pytest.mark.parametrize("cuts", [(0, 10, 100), (0, 1, 99, 100), (0, 50, 100)])
def test_block_sums_add_up_exactly(cuts):
    X = table(100, 3, seed=4)
    grid, *_ = draw_grid(Blocks.of(X, None))
    centers = X[:5].copy()
    whole = lloyd.lloyd_block(X, None, lloyd.scoring_of(centers), grid)
    parts = [lloyd.lloyd_block(X[a:b], None, lloyd.scoring_of(centers), grid) for a, b in pairwise(cuts)]
    for j, expected in enumerate(whole):
        assert np.array_equal(sum(p[j] for p in parts), expected)


def test_sparse_rows_are_treated_as_dense_ones():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 12)) * (rng.random((150, 12)) < 0.3)
    S, centers = csr_array(X), rng.normal(size=(5, 12))
    (labels, squared), (expected, distance) = lloyd.nearest(S, lloyd.scoring_of(centers)), naive.nearest(X, centers)
    assert np.array_equal(labels, expected)
    np.testing.assert_allclose(squared, distance, rtol=1e-12)
    grid, total, scatter = draw_grid(Blocks.of(S, None))
    statistics = lloyd.lloyd_block(S, None, lloyd.scoring_of(centers), grid)
    assert np.array_equal(grid.counts(statistics), np.bincount(labels, minlength=5))
    expected = np.array([X[labels == j].sum(axis=0) for j in range(5)])
    np.testing.assert_allclose(grid.sums(statistics), expected, rtol=1e-14, atol=1e-14)
    assert (total, scatter) == (150, pytest.approx((X**2).sum(), rel=1e-14))
