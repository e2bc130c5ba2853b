"""Ranks against sorting: rank(x) ≤ r exactly if x ≤ edge r, whatever the column."""

import numpy as np
import pytest

from lemmata.ensemble.bag import bag_counts, bag_size
from lemmata.ensemble.ranks import COARSE, FINE, learn_ranks

COLUMNS = {
    "few values": lambda rng: rng.integers(0, 9, 500) / 7,
    "many values": lambda rng: rng.normal(size=3000),
    "more than two bytes": lambda rng: rng.permutation(70_000).astype(float),
    "neighbors in floating point": lambda rng: np.nextafter(1.0, 2.0) ** rng.integers(0, 400, 900),
    "one value": lambda rng: np.full(50, 3.0),
    "missing": lambda rng: np.where(rng.random(400) < 0.3, np.nan, rng.normal(size=400)),
    "nothing": lambda rng: np.full(20, np.nan),
    "a crowd": lambda rng: np.where(rng.random(5000) < 0.9, 0.0, rng.normal(size=5000)),
    "huge": lambda rng: rng.choice([-1.7e308, 1.7e308, 0.0], 40),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_ranks_are_comparisons_with_edges(kind):
    x = COLUMNS[kind](np.random.default_rng(0))
    ranks = learn_ranks(x[:, None])
    fine, coarse, edges = ranks.fine[:, 0].astype(int), ranks.coarse[:, 0].astype(int), ranks.edges
    there = ~np.isnan(x)
    assert (np.diff(edges) > 0).all()
    assert np.array_equal(fine[there], np.searchsorted(edges, x[there]))  # the number of edges below x
    assert (fine[~there] == FINE).all()
    assert (coarse[~there] == COARSE).all()
    values = np.unique(x[there])
    if len(values) <= FINE:
        assert len(edges) == max(len(values) - 1, 0), "no two values share a fine rank"
    if there.any():
        last = ranks.last[0].astype(int)[: coarse[there].max() + 1]
        assert np.array_equal(coarse[there], np.searchsorted(last, fine[there])), "coarse ranks are runs of fine ones"
        sizes = np.bincount(coarse[there])
        if len(values) > 4 * COARSE and kind != "a crowd":  # wide in the middle, narrow at the ends
            assert sizes.max() <= np.pi / 2 * there.sum() / COARSE + 1
            assert sizes[[0, -1]].max() <= 1 + there.sum() * (np.pi / 2 / COARSE) ** 2


def test_weights_place_the_groups_as_repetition_does():
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=600), rng.integers(1, 5, 600)
    one, other = learn_ranks(x[:, None], weight.astype(float)), learn_ranks(np.repeat(x, weight)[:, None])
    assert np.array_equal(np.repeat(one.coarse[:, 0], weight), other.coarse[:, 0])


def test_bags_draw_rows_by_their_odds():
    odds = np.array([1.0, 2.0, 0.0, 5.0])
    counts = sum(bag_counts(seed, 100, 4, odds) for seed in range(200))
    assert counts.sum() == 20_000
    assert counts[2] == 0
    # 5 deviations of a binomial count
    np.testing.assert_allclose(counts / 20_000, odds / 8, atol=5 * np.sqrt(0.25 / 20_000))


def test_size_of_bags():
    assert bag_size(None, 5, np.array([0.3] * 5)) == 5, "odds are not repetitions"
    with pytest.raises(ValueError, match="max_samples"):
        bag_size(1.5, 10, None)
