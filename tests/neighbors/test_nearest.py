"""`NearestNeighbors` against scikit-learn's, and its certificate."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import neighbors as peer

from lemmata.neighbors import NearestNeighbors, stored


def tables(seed=0, n=300, m=80, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d))


@pytest.mark.item("NBR-02")
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_answers_are_those_of_scikit_learn(p, kind):
    X, Q = tables(n=150, m=30)
    ours, theirs = (
        NearestNeighbors(7, p=p, radius=1.0).fit(kind(X)),
        peer.NearestNeighbors(n_neighbors=7, p=p, radius=1.0).fit(X),
    )
    for rows in (None, Q):
        asked = None if rows is None else kind(rows)
        for k in (None, 3):
            found, expected = ours.kneighbors(asked, k), theirs.kneighbors(rows, k)
            assert np.array_equal(found[1], expected[1])
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)  # a few roundings
        assert np.array_equal(ours.kneighbors(asked, return_distance=False), theirs.kneighbors(rows, return_distance=False))
        found, expected = ours.radius_neighbors(asked), theirs.radius_neighbors(rows, sort_results=True)
        for a, b, c, e in zip(*found, *expected, strict=True):
            assert np.array_equal(b, e)
            np.testing.assert_allclose(a, c, rtol=1e-12)
        for mode in ("connectivity", "distance"):
            for name in ("kneighbors_graph", "radius_neighbors_graph"):
                one, other = (getattr(model, name)(part, mode=mode) for model, part in ((ours, asked), (theirs, rows)))
                np.testing.assert_allclose(one.toarray(), other.toarray(), rtol=1e-12)
    assert ours.certify(kind(X)).kind == "proof"


def test_single_precision_is_compared_in_double_and_answered_in_single():
    X, Q = (a.astype(np.float32) for a in tables())
    model = NearestNeighbors(4).fit(X)
    distance, index = model.kneighbors(Q)
    assert distance.dtype == np.float32
    expected = NearestNeighbors(4).fit(X.astype(float)).kneighbors(Q.astype(float))
    assert np.array_equal(index, expected[1])
    assert np.array_equal(distance, expected[0].astype(np.float32))


def test_the_callers_array_may_change_afterwards():
    X, Q = tables()
    model = NearestNeighbors(3).fit(X)
    before = model.kneighbors(Q)[0]
    X *= 2
    assert np.array_equal(model.kneighbors(Q)[0], before)
    assert not model.certify(X).holds


def test_another_power_is_searched_anew():
    X, Q = tables()
    model = NearestNeighbors(3).fit(X)
    model.kneighbors(Q)
    assert np.array_equal(model.set_params(p=1).kneighbors(Q)[0], NearestNeighbors(3, p=1).fit(X).kneighbors(Q)[0])


def test_what_cannot_be_asked_is_refused():
    X, Q = tables(n=6)
    model = NearestNeighbors(6).fit(X)
    assert model.kneighbors(Q)[1].shape == (80, 6)
    with pytest.raises(ValueError, match="from 1 to 5, which is the number of other rows, got 6"):
        model.kneighbors()
    with pytest.raises(ValueError, match="from 1 to 6, which is the number of rows, got 7"):
        model.kneighbors(Q, 7)
    with pytest.raises(TypeError, match="integer"):
        model.kneighbors(Q, 2.5)
    with pytest.raises(ValueError, match="mode must be"):
        model.kneighbors_graph(Q, mode="weight")
    with pytest.raises(ValueError, match="radius must be at least 0"):
        model.radius_neighbors(Q, -1.0)
    with pytest.raises(ValueError, match="'p' parameter"):
        NearestNeighbors(p=0.5).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        model.kneighbors(np.full((1, 4), np.nan))


@pytest.mark.slow_without_jit
def test_of_a_large_table_a_sample_is_compared(monkeypatch):
    X, _ = tables(n=3000)
    model = NearestNeighbors(5).fit(X)
    assert model.certify(X).kind == "proof"
    monkeypatch.setattr(stored, "COMPARED", 3000 * 4 * 100)
    certificate = model.certify(X)
    assert certificate.kind == "evidence"
    assert "100 sampled" in certificate["neighbors"].claim


def test_a_search_that_errs_is_refused(monkeypatch):
    """A certificate that cannot fail would be a defect: let the search forget a row."""
    X, _ = tables(n=200)
    model = NearestNeighbors(5).fit(X)
    honest = stored.Table.nearest

    def forgetful(self, k, queries=None, **options):
        index, distance = honest(self, k + 1, queries, **options)
        return index[:, [*range(k - 1), k]], distance[:, [*range(k - 1), k]]

    def lost(self, k, queries=None, **options):
        index, distance = honest(self, k, queries, **options)
        return index, np.full_like(distance, np.nan)

    for dishonest in (forgetful, lost):
        monkeypatch.setattr(stored.Table, "nearest", dishonest)
        assert [check.name for check in model.certify(X).failed] == ["neighbors"]
    monkeypatch.undo()
    model.X_ = model.X_.copy()
    model.X_[7, 2] = np.nextafter(model.X_[7, 2], np.inf)
    assert [check.name for check in model.certify(X).failed] == ["rows"]
