"""Hidden entries tell the rank that a table was made with."""

import numpy as np
import pytest
import scipy.sparse as sp

from lemmata.decomposition import NMF, ProbabilisticPCA, RankCurve, select_rank
from lemmata.decomposition.select_rank import divergences, held_out_error, hidden_entries


@pytest.mark.parametrize("loss", ["squared", "kl"])
def test_the_rank_of_parts_is_found(loss):
    rng = np.random.default_rng(0)
    means = rng.exponential(size=(120, 3)) ** 2 @ rng.exponential(size=(3, 15)) ** 2
    X = rng.poisson(20 * means).astype(float)
    curve = select_rank(NMF(loss=loss, tol=1e-3, random_state=0), X, [1, 2, 3, 4, 5], random_state=0)
    assert curve.errors.shape == (3, 5)
    assert curve.simplest == 3
    assert curve.suggested in (3, 4)


def test_the_rank_of_a_density_is_found():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 8)) * 3 + rng.normal(size=(150, 8))
    assert select_rank(ProbabilisticPCA(), X, [1, 2, 3, 4], random_state=0).suggested == 2


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_no_row_or_column_loses_more_than_half(share):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 7)) < 0.2, np.nan, 1.0)
    seen = np.isfinite(X)
    rows, columns = hidden_entries(X, share, rng)
    assert len({*zip(rows.tolist(), columns.tolist(), strict=True)}) == len(rows) <= max(share * seen.sum(), 1)
    assert seen[rows, columns].all()
    left = seen.copy()
    left[rows, columns] = False
    assert (left.sum(axis=1) >= seen.sum(axis=1) / 2).all()
    assert (left.sum(axis=0) >= seen.sum(axis=0) / 2).all()


def test_the_error_is_that_of_the_hidden_entries_alone():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(30, 2)) @ rng.exponential(size=(2, 6)) + 0.1
    rows, columns = hidden_entries(X, 0.2, rng)
    hole = X.copy()
    hole[rows, columns] = np.nan
    weight = rng.integers(1, 3, 30).astype(float)
    model = NMF(2, random_state=0).fit(hole, sample_weight=weight)
    made = (model.transform(hole) @ model.components_)[rows, columns]
    expected = np.average(0.5 * (made - X[rows, columns]) ** 2, weights=weight[rows])
    np.testing.assert_allclose(held_out_error(NMF(2, random_state=0), X, rows, columns, weight), expected, rtol=1e-12)
    np.testing.assert_allclose(divergences(np.array([0.0, 2.0]), np.array([3.0, 2.0])), [3.0, 0.0], atol=1e-15)


def test_the_same_seed_gives_the_same_curve_and_nonsense_is_refused():
    X = np.random.default_rng(0).exponential(size=(20, 5))
    one, two = (select_rank(NMF(tol=1e-3, random_state=0), X, [2, 1, 2], random_state=3) for _ in range(2))
    assert np.array_equal(one.errors, two.errors)
    assert one.ranks.tolist() == [1, 2]
    for bad in ({"ranks": []}, {"ranks": [0, 1]}, {"ranks": [1], "share": 1.0}, {"ranks": [1], "n_repeats": 0}):
        with pytest.raises(ValueError, match="must"):
            select_rank(NMF(), X, **bad)
    with pytest.raises(ValueError, match="dense"):
        select_rank(NMF(), sp.csr_array(X), [1])
    with pytest.raises(ValueError, match="too few entries"):
        select_rank(NMF(), np.ones((1, 1)), [1])


def test_one_standard_error():
    curve = RankCurve(np.array([1, 2, 3, 4]), np.array([[9.0, 1.1, 1.2, 1.3], [9.0, 1.3, 1.4, 1.3]]))
    assert (curve.suggested, curve.simplest) == (2, 2)
    curve = RankCurve(np.array([1, 2, 3]), np.array([[9.0, 1.1, 0.8], [9.0, 1.3, 1.4]]))
    assert (curve.suggested, curve.simplest) == (3, 2)
