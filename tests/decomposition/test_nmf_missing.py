"""Entries that are not seen do not matter; those that count twice count twice; what is hidden can be found again."""

import numpy as np
import pytest
import scipy.sparse as sp

from decomposition.test_nmf import holed, losses, solvers, table
from lemmata.decomposition import NMF


@losses
@solvers
def test_what_a_mask_hides_is_never_looked_at(loss, solver):
    X = table()
    mask = np.isfinite(holed(X))
    model = NMF(3, loss=loss, solver=solver, tol=1e-4, random_state=0)
    plain = model.fit(X, mask=mask)
    H, err, W = plain.components_.copy(), plain.reconstruction_err_, plain.transform(X, mask=mask)
    for value in (0.0, -5.0, 1e6, np.nan):
        other = np.where(mask, X, value)
        again = model.fit(other, mask=mask)
        assert np.array_equal(again.components_, H)
        assert again.reconstruction_err_ == err
        assert np.array_equal(again.transform(other, mask=mask), W)
    assert np.array_equal(model.fit(np.where(mask, X, np.nan)).components_, H)
    assert np.array_equal(model.fit(X, mask=mask.astype(float)).components_, H)
    assert np.array_equal(model.fit(X, mask=sp.csr_array(mask)).components_, H)


@losses
@solvers
def test_a_mask_of_ones_changes_nothing(loss, solver):
    X = np.where(table() > 2, table(), 0.0)
    model = NMF(3, loss=loss, solver=solver, tol=1e-4, random_state=0)
    plain = model.fit(X).components_
    np.testing.assert_allclose(model.fit(X, mask=np.ones(X.shape)).components_, plain, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.fit(sp.csr_array(X), mask=np.ones(X.shape)).components_, plain, rtol=1e-6, atol=1e-8)


@losses
def test_stored_entries_of_a_sparse_mask_are_the_seen_ones(loss):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 8)) < 0.3, 0.0, table(n=50, d=8))
    seen = rng.random(X.shape) < 0.6
    sparse = NMF(3, loss=loss, random_state=0).fit(sp.csr_array(X), mask=sp.csr_array(seen))
    dense = NMF(3, loss=loss, random_state=0).fit(np.where(seen, X, np.nan))
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-12)
    assert sparse.certify(sp.csr_array(X), mask=sp.csr_array(seen)).holds


@losses
def test_weights_of_entries_are_weights_of_rows_where_they_are_alike(loss):
    X = table()
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    by_row = NMF(3, loss=loss, random_state=0).fit(X, sample_weight=weight)
    by_entry = NMF(3, loss=loss, random_state=0).fit(X, mask=np.repeat(weight[:, None], X.shape[1], axis=1))
    np.testing.assert_allclose(by_entry.reconstruction_err_, by_row.reconstruction_err_, rtol=1e-7)
    assert by_row.certify(X, mask=np.repeat(weight[:, None], X.shape[1], axis=1)).holds


@pytest.mark.parametrize("seed", range(3))
def test_the_weighted_loss_is_stationary(seed):
    """Finite differences of Σ m (x − wh)² in every entry of H, at the best W."""
    rng = np.random.default_rng(seed)
    X, mask = table(seed, n=20, d=6, k=2), rng.exponential(size=(20, 6)) * (rng.random((20, 6)) < 0.8)
    model = NMF(2, tol=1e-9, max_iter=20_000, random_state=0).fit(X, mask=mask)
    W, H = model.transform(X, mask=mask), model.components_

    def value(H):
        return 0.5 * np.sum(mask * (X - W @ H) ** 2)

    np.testing.assert_allclose(2 * value(H), model.reconstruction_err_**2, rtol=1e-9)
    for place in np.ndindex(H.shape):
        step = np.zeros(H.shape)
        step[place] = 1e-5
        slope = (value(H + step) - value(H - step)) / 2e-5
        assert abs(slope) < 1e-4 if H[place] > 0 else slope > -1e-4


@losses
def test_an_exact_factorization_is_found_again_from_seventy_percent(loss):
    rng = np.random.default_rng(5)
    W, H = (
        rng.exponential(size=(200, 3)) * (rng.random((200, 3)) < 0.7),
        rng.exponential(size=(3, 20)) * (rng.random((3, 20)) < 0.7),
    )
    W[:, 0] += 0.01
    H[0] += 0.01
    X = W @ H
    hidden = rng.random(X.shape) < 0.3
    seen = np.where(hidden, np.nan, X)
    model = NMF(3, loss=loss, tol=1e-7, max_iter=20_000, random_state=0).fit(seen)
    made = model.inverse_transform(model.transform(seen))
    assert np.abs(made - X)[hidden].max() < 1e-2 * X.max()
    assert np.sqrt(np.mean((made - X)[hidden] ** 2)) < 1e-3 * X.std()


def test_a_row_without_entries_has_no_parts():
    X = holed(table())
    X[4] = np.nan
    model = NMF(3).fit(X)
    assert not model.transform(X)[4].any()
    assert model.certify(X).holds


def test_masks_are_checked():
    X = table()
    for mask, match in (
        (np.ones((3, 3)), "shape of X"),
        (-np.ones(X.shape), "not negative"),
        (np.full(X.shape, np.nan), "finite"),
        (np.arange(X.shape[1]) * np.ones(X.shape), "Column 0 has no value"),
    ):
        with pytest.raises(ValueError, match=match):
            NMF(2).fit(X, mask=mask)
    with pytest.raises(ValueError, match="in memory"):
        NMF(2).fit(lambda: iter([X]), mask=np.ones(X.shape))
    with pytest.raises(ValueError, match="Negative values in data"):
        NMF(2).fit(-X)
