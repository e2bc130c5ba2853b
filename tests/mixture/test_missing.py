"""Gaussian mixtures on rows with holes, against a row-by-row E-step, simulations and closed forms."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

import lemmata
from lemmata.mixture import GaussianMixture, MissingGaussian
from lemmata.mixture.gaussian import GaussianModel, Table, as_matrices, components_of, of_kind
from lemmata.mixture.missing import by_pattern, e_block, fill_block, posterior_block
from mixture import naive_missing

kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])


def random_parameters(kind, k=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(k, d, d))
    matrices = A @ np.swapaxes(A, 1, 2) + 0.5 * np.eye(d)
    weights = rng.dirichlet(np.ones(k))
    return weights, 2 * rng.normal(size=(k, d)) + 100.0, of_kind(matrices, weights, kind)


def holed(n=60, d=4, share=0.3, seed=0):
    """Rows of which entries are missing: some complete, some with one hole, the last two with nothing at all."""
    rng = np.random.default_rng(seed)
    X = 100.0 + 2 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < share] = np.nan
    X[-2:] = np.nan
    return X


def blobs_with_holes(n=1500, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0, 0], [4, 4, 0], [0, 5, 5]])
    factors = rng.normal(size=(3, 3, 3)) * 0.3 + np.eye(3)
    labels = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    X = means[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(n, 3)))
    Y = X.copy()
    Y[rng.random(X.shape) < share] = np.nan
    return Y, X, labels, means, factors @ np.swapaxes(factors, 1, 2)


@kinds
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_is_that_of_a_loop_over_rows(kind, weighted):
    X = holed()
    weight = np.random.default_rng(1).uniform(0.5, 3.0, len(X)) if weighted else None
    weights, means, covariances = random_parameters(kind)
    k, d = means.shape
    components = components_of(weights, means, covariances, kind, X[~np.isnan(X)].mean() * np.ones(d))
    value, counts, first, second, sights = e_block(X, weight, components)
    matrices = as_matrices(covariances, kind, k, d)
    expected = naive_missing.expectation(X, np.ones(len(X)) if weight is None else weight, weights, means, matrices)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(counts, expected[2], rtol=1e-11)
    np.testing.assert_allclose(first, expected[3], rtol=1e-9, atol=1e-10)
    if kind in ("full", "tied"):
        np.testing.assert_allclose(np.tril(second), np.tril(expected[4]), rtol=1e-9, atol=1e-9)
    else:
        diagonals = np.diagonal(expected[4], axis1=1, axis2=2)
        wanted = diagonals[:, None] if kind == "diag" else diagonals.sum(axis=1)[:, None, None]
        np.testing.assert_allclose(second, wanted, rtol=1e-10)
    posterior, density = posterior_block(X, None, components)
    np.testing.assert_allclose(posterior, expected[1], rtol=1e-9, atol=1e-12)
    shares = expected[1] if weight is None else expected[1] * weight[:, None]
    np.testing.assert_allclose(sights, shares.T @ ~np.isnan(X), rtol=1e-9)
    np.testing.assert_allclose(posterior[-1], weights, rtol=1e-12)
    np.testing.assert_allclose(density[-1], 0.0, atol=1e-12)  # nothing was seen, and that is certain


@kinds
def test_holes_are_filled_by_total_expectation_and_variance(kind):
    X = holed()
    weights, means, covariances = random_parameters(kind)
    matrices = as_matrices(covariances, kind, *means.shape)
    filled, variance = fill_block(X, None, components_of(weights, means, covariances, kind, means.mean(axis=0)))
    for i, row in enumerate(X):
        logs = naive_missing.log_joint(row, weights, means, matrices)
        share = np.exp(logs - np.logaddexp.reduce(logs))
        parts = [naive_missing.conditional(row, m, c) for m, c in zip(means, matrices, strict=True)]
        mean = sum(s * part[0] for s, part in zip(share, parts, strict=True))
        doubt = sum(s * (np.diagonal(rest) + (f - mean) ** 2) for s, (f, rest) in zip(share, parts, strict=True))
        np.testing.assert_allclose(filled[i], mean, rtol=1e-11)
        np.testing.assert_allclose(variance[i], doubt, rtol=1e-9, atol=1e-12)
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert (variance[~np.isnan(X)] == 0).all()


def test_patterns_keep_every_row_once():
    X = holed(n=200, d=11)  # more columns than bits of a byte
    order, starts, seen = by_pattern(X)
    assert np.array_equal(np.sort(order), np.arange(200))
    for p, (start, stop) in enumerate(pairwise(starts)):
        assert (np.isnan(X[order[start:stop]]) == ~seen[p]).all()
        assert (np.diff(order[start:stop]) > 0).all()  # rows of a pattern stay in their order
    assert len(np.unique(seen, axis=0)) == len(seen)


@kinds
def test_nothing_missing_is_the_complete_fit_bit_for_bit(kind):
    _, X, *_ = blobs_with_holes()
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    assert not Table(model._checked(X)).holes
    # The path for holes, on rows without any, sums in another order but finds the same.
    components = model._components()
    one, other = GaussianModel("full", 0.0, Table(model._checked(X))).e_step(X, None, components), e_block(X, None, components)
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-11)
    np.testing.assert_allclose(one[2], other[2], rtol=1e-9, atol=1e-9)


@kinds
def test_estimates_are_the_truth_within_simulation_error(kind):
    rng = np.random.default_rng(3)
    n, d = 20_000, 3
    means = np.array([[0.0, 0, 0], [6, 0, 3]])
    A = np.array([[1.0, 0, 0], [0.8, 1, 0], [-0.5, 0.3, 0.7]])
    truth = {"full": np.array([A @ A.T, np.diag([2.0, 1.0, 0.5])]), "tied": A @ A.T}
    truth |= {"diag": np.array([[1.0, 2, 3], [0.5, 1, 1]]), "spherical": np.array([1.0, 2.0])}
    matrices = as_matrices(truth[kind], kind, 2, d)
    labels = (rng.random(n) < 0.4).astype(int)
    X = means[labels] + np.einsum("nij,nj->ni", np.linalg.cholesky(matrices)[labels], rng.normal(size=(n, d)))
    # The second column is missing where the first is large: not completely at random, but ignorable.
    X[(X[:, 0] > np.median(X[:, 0])) & (rng.random(n) < 0.6), 1] = np.nan
    X[rng.random(n) < 0.2, 2] = np.nan
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert model.certify(X).holds
    order = model.means_[:, 0].argsort()
    np.testing.assert_allclose(model.weights_[order], [0.6, 0.4], atol=4 * np.sqrt(0.24 / n) * 1.5)
    scale = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    error = np.abs(model.means_[order] - means) / (scale / np.sqrt(0.4 * n * 0.3))
    assert error.max() < 5
    found = as_matrices(model.covariances_, kind, 2, d)[order]
    spread = np.sqrt(2.0) * scale[:, :, None] * scale[:, None, :] / np.sqrt(0.4 * n * 0.3)
    assert (np.abs(found - matrices) / spread).max() < 5
    # The mean of the second column over the rows in which it is seen is far off: dropping rows is not the answer.
    overall = 0.6 * means[0, 1] + 0.4 * means[1, 1]
    estimate = model.weights_ @ model.means_[:, 1]
    assert abs(estimate - overall) < 0.1


@kinds
def test_fits_with_holes_are_certified_and_the_same_everywhere(kind, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, *_ = blobs_with_holes()
    model = GaussianMixture(3, covariance_type=kind, random_state=0)
    with lemmata.config(block_rows=256, n_threads=1):
        one = model.fit(X).means_
        assert model.certify(X).holds, str(model.certify(X))
        path = tmp_path / "rows.parquet"
        pq.write_table(pa.table(dict(zip("abc", X.T, strict=True))), path)
        assert model.fit(path).means_.tobytes() == one.tobytes()
    with lemmata.config(block_rows=256, n_threads=2):
        assert model.fit(X).means_.tobytes() == one.tobytes()


@kinds
def test_weights_are_repetitions_of_rows_with_holes(kind):
    X, *_ = blobs_with_holes(n=200)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    start = {"means_init": np.array([[0.0, 0, 0], [4, 4, 0], [0, 5, 5]])}
    one = GaussianMixture(3, covariance_type=kind, **start).fit(X, sample_weight=weight)
    other = GaussianMixture(3, covariance_type=kind, **start).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=1e-9)


@pytest.mark.parametrize("how", ["kmeans", "k-means++", "random_from_data"])
def test_every_start_copes_with_holes(how):
    X, *_ = blobs_with_holes(n=400)
    model = GaussianMixture(3, init_params=how, random_state=0).fit(X)
    assert model.certify(X).holds
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert (model.fill_std(X)[np.isnan(X)] > 0).all()


def test_holes_filled_by_clusters_beat_the_mean_of_the_column():
    Y, X, *_ = blobs_with_holes()
    holes = np.isnan(Y)
    model = GaussianMixture(3, random_state=0).fit(Y)
    error = (model.fill(Y) - X)[holes]
    column = (np.broadcast_to(np.nanmean(Y, axis=0), Y.shape) - X)[holes]
    assert (error**2).mean() < 0.5 * (column**2).mean()
    # What is said of the doubt is true: standardized errors have unit variance.
    assert abs((error / model.fill_std(Y)[holes]).var() - 1.0) < 0.2


def test_columns_without_a_value_or_without_company_are_named():
    X, *_ = blobs_with_holes(n=100)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="Column 1 has no value in any row"):
        GaussianMixture(2).fit(X)
    X, *_ = blobs_with_holes(n=100)
    X[:50, 0], X[50:, 1] = np.nan, np.nan
    with pytest.warns(UserWarning, match="Columns 0 and 1 are never seen in the same row"):
        GaussianMixture(1).fit(X)
    GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)  # needs no company: a warning would be an error


def test_float32_with_holes_answers_in_float32():
    X, *_ = blobs_with_holes(n=300)
    model = GaussianMixture(3, random_state=0).fit(X.astype(np.float32))
    assert model.fill(X.astype(np.float32)).dtype == np.float32
    assert model.certify(X.astype(np.float32)).holds


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_column_that_a_component_never_shows_keeps_its_width(kind):
    # Only what is seen gets the floor: a variance that nothing is known of would rise by it in every pass, and never rest.
    rng = np.random.default_rng(0)
    far = np.column_stack([rng.normal(size=50) + 20.0, np.full(50, np.nan)])
    X = np.vstack([rng.normal(size=(50, 2)), far])
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert model.converged_
    assert model.certify(X).holds, str(model.certify(X))
    assert model.fill_std([[20.0, np.nan]])[0, 1] > 0.3


def test_more_components_than_groups_are_certified_with_holes_too():
    refused, passes = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 4)) + 6 * rng.normal(size=(4, 4))[rng.integers(4, size=100)]
        X[rng.random(X.shape) < 0.1] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some components follow single rows, and say so
            model = GaussianMixture(6, covariance_type="diag", random_state=seed).fit(X)
        refused += not model.certify(X).holds
        passes.append(model.n_iter_)
    assert refused == 0
    assert max(passes) < 1000


def test_rounding_of_a_narrow_covariance_is_no_fall_of_the_likelihood():
    rows = [2.1, -0.8, 0.2, -0.8], [-1.7, 0.2, -2.1, -0.3], [-0.4, -1.1, -1.6, -2.1], [-64.7, 14.3, 9.1, np.nan]
    assert MissingGaussian().fit([*rows, [-0.5, 0.7, 3.1, -2.1]]).converged_
