"""Derivatives of the likelihood: against differences of SciPy's densities, exact formulas for one Gaussian, and simulation."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import multivariate_normal, norm

import lemmata
from lemmata.mixture import (
    BernoulliMixture,
    GaussianMixture,
    likelihood_gradient,
    maximize_likelihood,
    observed_information,
    standard_errors,
)
from lemmata.optimize import gradient as differences
from lemmata.optimize import hessian, jacobian

kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])


def rows(seed=0, n=150, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 3, d) + 3 * rng.integers(2, size=(n, 1)) + 10
    return X, rng.uniform(0.2, 2, size=n)


def read(theta, kind, k, d):
    """Read (weights, means, covariance matrices) off the coordinates, as the module's docstring says."""
    entries = iter(theta)
    powers = np.exp([*(next(entries) for _ in range(k - 1)), 0.0])
    means = np.array([[next(entries) for _ in range(d)] for _ in range(k)])
    matrices = []
    for component in range(k):
        P = np.zeros((d, d))
        if kind == "tied" and component:
            matrices.append(matrices[0])
            continue
        common = next(entries) if kind == "spherical" else None
        for i in range(d):
            for j in range(i if kind in ("full", "tied") else 0):
                P[i, j] = next(entries)
            P[i, i] = np.exp(next(entries) if common is None else common)
        matrices.append(np.linalg.inv(P.T @ P))
    assert not list(entries)
    return powers / powers.sum(), means, np.array(matrices)


def likelihood(theta, X, weight, kind, k):
    weights, means, matrices = read(theta, kind, k, X.shape[1])
    density = sum(w * multivariate_normal(m, c).pdf(X) for w, m, c in zip(weights, means, matrices, strict=True))
    return weight @ np.log(density)


def of_kind(matrices, kind):
    if kind == "full":
        return matrices
    if kind == "tied":
        return matrices[0]
    return np.array([np.diag(m) if kind == "diag" else m[0, 0] for m in matrices])


def mixture(theta, kind, k, d):
    weights, means, matrices = read(theta, kind, k, d)
    precisions = np.linalg.inv(matrices)
    precisions = (precisions + np.swapaxes(precisions, 1, 2)) / 2
    given = {"weights_init": weights, "means_init": means, "precisions_init": of_kind(precisions, kind)}
    return GaussianMixture(k, covariance_type=kind, **given)


def somewhere(kind, k, d, seed=0):
    rng = np.random.default_rng(seed)
    size = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}[kind]
    means = 10 + 3 * rng.uniform(size=k * d)
    return np.concatenate([rng.normal(size=k - 1), means, 0.4 * rng.normal(size=size) - 0.5])


@kinds
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 1), (3, 3)])
def test_fishers_gradient_is_that_of_the_likelihood(kind, k, d):
    X, weight = rows(d=d)
    theta = somewhere(kind, k, d)
    numeric = differences(lambda t: likelihood(t, X, weight, kind, k), theta)
    found = likelihood_gradient(mixture(theta, kind, k, d), X, weight)
    np.testing.assert_allclose(found, numeric, atol=1e-6 * np.abs(numeric).max())


@kinds
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 1), (3, 3)])
def test_louis_information_is_minus_the_hessian(kind, k, d):
    X, weight = rows(d=d)
    theta = somewhere(kind, k, d, seed=1)
    found = observed_information(mixture(theta, kind, k, d), X, weight)
    of_gradient = -jacobian(lambda t: likelihood_gradient(mixture(t, kind, k, d), X, weight), theta)
    np.testing.assert_allclose(found, of_gradient, atol=1e-7 * np.abs(found).max())
    of_value = -hessian(lambda t: likelihood(t, X, weight, kind, k), theta)
    np.testing.assert_allclose(found, of_value, atol=1e-4 * np.abs(found).max())
    np.testing.assert_allclose(found, found.T, atol=1e-12 * np.abs(found).max())


@pytest.mark.item("CLU-17")
@kinds
def test_the_gradient_vanishes_where_em_stands_still(kind):
    X, weight = rows(n=400)
    fit = GaussianMixture(2, covariance_type=kind, reg_covar=0.0, tol=1e-15, max_iter=100_000, random_state=0)
    fit.fit(X, sample_weight=weight)
    moved = GaussianMixture(
        2, covariance_type=kind, weights_init=fit.weights_, means_init=fit.means_ + 0.01, precisions_init=fit.precisions_
    )
    assert np.abs(likelihood_gradient(fit, X, weight)).max() < 1e-3
    assert np.abs(likelihood_gradient(moved, X, weight)).max() > 0.1


@kinds
def test_a_weight_is_a_repetition(kind):
    X, _ = rows(n=60)
    times = np.arange(60) % 3
    model = mixture(somewhere(kind, 2, 2), kind, 2, 2)
    for function in (likelihood_gradient, observed_information):
        once = function(model, X, times)
        np.testing.assert_allclose(once, function(model, np.repeat(X, times, axis=0)), atol=1e-10 * np.abs(once).max())


@kinds
def test_blocks_tiles_threads_and_files_add_up_to_the_same(kind, tmp_path, monkeypatch):
    import lemmata.mixture.information as module

    X, weight = rows(n=400)
    model = mixture(somewhere(kind, 3, 2), kind, 3, 2)
    whole = observed_information(model, X, weight)
    monkeypatch.setattr(module, "SCORES", 200)  # a few rows a tile
    np.testing.assert_allclose(observed_information(model, X, weight), whole, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "w": weight}), tmp_path / "rows.parquet")
    answers = []
    for n_threads in (1, 3):
        with lemmata.config(block_rows=64, n_threads=n_threads):
            answers.append((likelihood_gradient(model, X, weight), observed_information(model, X, weight)))
            stored = tmp_path / "rows.parquet"
            answers.append((likelihood_gradient(model, stored, "w"), observed_information(model, stored, "w")))
    np.testing.assert_allclose(answers[0][1], whole, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    for first, second in answers[1:]:
        np.testing.assert_array_equal(first, answers[0][0])
        np.testing.assert_array_equal(second, answers[0][1])


def test_a_table_far_from_zero_keeps_its_digits():
    X, weight = rows()
    theta = somewhere("full", 2, 2)
    near = observed_information(mixture(theta, "full", 2, 2), X, weight)
    theta[1:5] += 2.0**20
    far = observed_information(mixture(theta, "full", 2, 2), X + 2.0**20, weight)
    np.testing.assert_allclose(far, near, atol=1e-7 * np.abs(near).max())


@kinds
def test_one_gaussian_has_the_errors_of_the_textbook(kind):
    X, _ = rows(n=200)
    n, d = X.shape
    errors = standard_errors(GaussianMixture(1, covariance_type=kind, reg_covar=0.0).fit(X), X)
    S = np.cov(X.T, bias=True)
    if kind == "spherical":
        S = np.eye(d) * np.trace(S) / d
    variances = np.diag(S)
    exact = {
        "full": np.sqrt((np.outer(variances, variances) + S**2) / n)[None],
        "tied": np.sqrt((np.outer(variances, variances) + S**2) / n),
        "diag": variances[None] * np.sqrt(2 / n),
        "spherical": variances[:1] * np.sqrt(2 / (n * d)),
    }[kind]
    np.testing.assert_allclose(errors.weights, [0.0], atol=1e-12)
    np.testing.assert_allclose(errors.means, [np.sqrt(variances / n)], rtol=1e-9)
    np.testing.assert_allclose(errors.covariances, exact, rtol=1e-9)


def overlapping(rng, n=500):
    return np.where(rng.uniform(size=n) < 0.35, rng.normal(0.0, 1.0, n), rng.normal(3.5, 1.5, n))[:, None]


START = {"weights_init": [0.35, 0.65], "means_init": [[0.0], [3.5]], "precisions_init": [[[1.0]], [[1 / 2.25]]]}


def test_two_normals_have_the_errors_of_a_numeric_hessian_in_other_coordinates():
    X = overlapping(np.random.default_rng(0))
    fit = GaussianMixture(2, **START, reg_covar=0.0, tol=1e-15, max_iter=100_000).fit(X)

    def negative(p):  # weight, means and variances themselves
        return -np.log(p[0] * norm.pdf(X[:, 0], p[1], p[3] ** 0.5) + (1 - p[0]) * norm.pdf(X[:, 0], p[2], p[4] ** 0.5)).sum()

    at = np.array([fit.weights_[0], *fit.means_[:, 0], *fit.covariances_[:, 0, 0]])
    expected = np.sqrt(np.diag(np.linalg.inv(hessian(negative, at))))
    errors = standard_errors(fit, X)
    found = [errors.weights[0], *errors.means[:, 0], *errors.covariances[:, 0, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(errors.weights[1], errors.weights[0], rtol=1e-9)


def test_two_normals_scatter_as_their_standard_errors_say():
    rng = np.random.default_rng(1)
    estimates, errors = [], []
    for _ in range(120):
        X = overlapping(rng)
        up = maximize_likelihood(GaussianMixture(2, **START), X)
        fit = GaussianMixture(2, weights_init=up.weights, means_init=up.means, precisions_init=np.linalg.inv(up.covariances))
        error = standard_errors(fit, X)
        estimates.append([up.weights[0], *up.means[:, 0], *up.covariances[:, 0, 0]])
        errors.append([error.weights[0], *error.means[:, 0], *error.covariances[:, 0, 0]])
    ratio = np.median(errors, axis=0) / np.std(estimates, axis=0)
    np.testing.assert_allclose(ratio, 1.0, atol=0.25)  # four times 1/√240, what so many draws tell about a deviation


def test_no_errors_at_a_saddle_or_of_coincident_components():
    X = overlapping(np.random.default_rng(2))
    mean, variance = X.mean(), X.var()
    same = GaussianMixture(
        2, weights_init=[0.5, 0.5], means_init=[[mean], [mean]], precisions_init=[[[1 / variance]], [[1 / variance]]]
    )
    np.testing.assert_allclose(likelihood_gradient(same, X), 0.0, atol=1e-9)  # stationary, and no maximum
    with pytest.raises(ValueError, match="not positive definite"):
        standard_errors(same, X)
    empty = GaussianMixture(2, **{**START, "weights_init": [0.0, 1.0]})
    with pytest.raises(ValueError, match="not positive definite"):
        standard_errors(empty, X)


@pytest.mark.parametrize("function", [likelihood_gradient, observed_information, standard_errors, maximize_likelihood])
def test_what_cannot_be_done_is_refused(function):
    X, _ = rows()
    model = mixture(somewhere("full", 2, 2), "full", 2, 2)
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        function(model, holes)
    with pytest.raises(ValueError, match="Fit the mixture first, or give it weights_init"):
        function(GaussianMixture(2, means_init=X[:2]), X)
    with pytest.raises(ValueError, match=r"must be lemmata.s GaussianMixture, got .*BernoulliMixture"):
        function(BernoulliMixture(2), X)
    with pytest.raises(ValueError, match="Negative"):
        function(model, X, sample_weight=-np.ones(len(X)))
    assert not hasattr(model, "n_features_in_")
