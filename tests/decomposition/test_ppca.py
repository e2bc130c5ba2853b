"""Probabilistic PCA: the closed form, EM with holes against dense Gaussians, and what is promised of holes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import lemmata
from lemmata.core.blocks import Blocks
from lemmata.decomposition import PCA, ProbabilisticPCA
from lemmata.decomposition.ppca import _Factors
from lemmata.mixture.em import em
from lemmata.mixture.gaussian import Table


def rows(n=400, d=6, k=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) * 2 + noise * rng.normal(size=(n, d)) + 10 * rng.normal(size=d)


def pierced(X, share=0.25, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def seen_log_density(model, X):
    """Log-density of the seen entries of each row, by SciPy."""
    covariance = model.get_covariance()
    out = np.zeros(len(X))
    for i, row in enumerate(X):
        seen = ~np.isnan(row)
        if seen.any():
            out[i] = multivariate_normal(model.mean_[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])
    return out


@pytest.mark.item("FAC-06")
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_closed_form_is_the_formula_and_the_direct_density(k):
    X = rows()
    n, d = X.shape
    model = ProbabilisticPCA(k).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    assert model.noise_variance_ == pytest.approx(values[k:].mean(), rel=1e-9)
    W = vectors[:, :k] * np.sqrt(values[:k] - values[k:].mean())
    np.testing.assert_allclose(model.components_.T @ model.components_, W @ W.T, rtol=1e-8, atol=1e-9)
    formula = -n / 2 * (d * np.log(2 * np.pi) + np.log(values[:k]).sum() + (d - k) * np.log(values[k:].mean()) + d)
    assert model.score(X) * n == pytest.approx(formula, rel=1e-10)
    assert seen_log_density(model, X).sum() == pytest.approx(formula, rel=1e-10)
    certificate = model.certify(X)
    assert certificate.kind == "proof"
    assert certificate.holds


class _FromAfar(_Factors):
    """EM that starts where nothing is known."""

    def start(self, blocks, rng):
        return self.table.mean + 1.0, rng.normal(size=(blocks.n_columns, self.k)), 1.0


def em_step(X, W, noise):
    """Take the textbook step on centered complete rows: W first, then the noise with the new W."""
    M = np.linalg.inv(np.eye(W.shape[1]) + W.T @ W / noise)
    z = X @ W @ M / noise
    second = len(X) * M + z.T @ z
    new = X.T @ z @ np.linalg.inv(second)
    left = (X**2).sum() - 2 * np.einsum("nk,dk,nd->", z, new, X) + np.trace(second @ new.T @ new)
    return new, left / X.size


@pytest.mark.item("FAC-05")
def test_em_rises_from_anywhere_to_the_closed_form():
    X = rows(k=2)
    blocks = Blocks.of(X, None)
    model = _FromAfar(2, None, Table(blocks))
    run = em(model, X, tol=1e-14, acceleration=False, max_iter=5000, random_state=0)
    assert (np.diff(run.trace) > -1e-12).all()
    closed = ProbabilisticPCA(2).fit(X)
    mean, W, noise = run.state
    np.testing.assert_allclose(W @ W.T, closed.components_.T @ closed.components_, rtol=1e-5, atol=1e-5)
    assert noise == pytest.approx(closed.noise_variance_, rel=1e-6)
    np.testing.assert_allclose(mean, closed.mean_, rtol=1e-5)
    assert run.trace[-1] == pytest.approx(closed.lower_bound_, abs=1e-9)


@pytest.mark.item("FAC-05")
def test_a_step_of_em_is_the_one_of_the_textbook():
    X = rows(k=2, seed=3)
    X -= X.mean(axis=0)
    model = _Factors(2, None, Table(Blocks.of(X, None)))
    rng = np.random.default_rng(0)
    W, noise = rng.normal(size=(6, 2)), 0.7
    for _ in range(4):
        statistics = model.e_step(X, None, model.prepare((np.zeros(6), W, noise)))
        mean, new, variance = model.m_step(statistics, (np.zeros(6), W, noise))
        W, noise = em_step(X, W, noise)
        np.testing.assert_allclose(mean, 0.0, atol=1e-12)  # the posterior means of centered rows sum to zero
        np.testing.assert_allclose(new, W, rtol=1e-10)
        assert variance == pytest.approx(noise, rel=1e-10)


@pytest.mark.item("FAC-05")
def test_with_a_given_noise_variance():
    X = rows()
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    for method in ("closed", "em"):
        model = ProbabilisticPCA(2, noise_variance=0.3, method=method).fit(X)
        assert model.noise_variance_ == 0.3
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1) ** 2, values[:2] - 0.3, rtol=1e-6)
        assert model.certify(X).holds
    holes = pierced(X)
    assert ProbabilisticPCA(2, noise_variance=0.3).fit(holes).certify(holes).holds


def test_without_holes_em_equals_the_closed_form_to_the_eighth_digit():
    for seed in range(5):
        X = rows(seed=seed)
        closed, by_em = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2, method="em").fit(X)
        np.testing.assert_allclose(by_em.components_, closed.components_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(by_em.mean_, closed.mean_, rtol=1e-8)
        assert by_em.noise_variance_ == pytest.approx(closed.noise_variance_, rel=1e-8)


@pytest.mark.parametrize("k", [1, 3])
def test_densities_and_posteriors_with_holes_are_those_of_dense_gaussians(k):
    X = pierced(rows(n=60))
    X[0] = np.nan  # a row of which nothing is seen
    model = ProbabilisticPCA(k).fit(X)
    np.testing.assert_allclose(model.score_samples(X), seen_log_density(model, X), rtol=1e-9, atol=1e-12)
    W, covariance = model.components_.T, model.get_covariance()
    means, covariances = model.posterior(X)
    filled, std = model.fill(X), model.fill_std(X)
    np.testing.assert_array_equal(means, model.transform(X))
    for i, row in enumerate(X):
        seen = ~np.isnan(row)
        gain = W[seen].T @ np.linalg.inv(covariance[np.ix_(seen, seen)]) if seen.any() else np.zeros((k, 0))
        np.testing.assert_allclose(means[i], gain @ (row - model.mean_)[seen], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(covariances[i], np.eye(k) - gain @ W[seen], rtol=1e-8, atol=1e-10)
        across = covariance[np.ix_(~seen, seen)] @ np.linalg.pinv(covariance[np.ix_(seen, seen)])
        expected = model.mean_[~seen] + across @ (row - model.mean_)[seen]
        np.testing.assert_allclose(filled[i, ~seen], expected, rtol=1e-8)
        spread = covariance[np.ix_(~seen, ~seen)] - across @ covariance[np.ix_(seen, ~seen)]
        np.testing.assert_allclose(std[i, ~seen] ** 2, np.diag(spread), rtol=1e-8)
        np.testing.assert_array_equal(filled[i, seen], row[seen])
        assert (std[i, seen] == 0).all()


def test_the_fit_with_holes_is_a_maximum_of_the_density_of_what_is_seen():
    X = pierced(rows(n=150))
    model = ProbabilisticPCA(2).fit(X)
    best = seen_log_density(model, X).sum()
    assert model.lower_bound_ * len(X) == pytest.approx(best, rel=1e-10)
    assert (np.diff(ProbabilisticPCA(2, acceleration=None).fit(X).trace_) > -1e-12).all()
    rng = np.random.default_rng(0)
    for name in ("mean_", "components_", "noise_variance_"):
        value = getattr(model, name)
        for _ in range(10):
            setattr(model, name, value * (1 + 1e-3 * rng.normal(size=np.shape(value))))
            assert seen_log_density(model, X).sum() < best, name
        setattr(model, name, value)


def test_holes_find_the_truth_and_filling_first_finds_too_little_noise():
    X = rows(n=4000, d=8, k=2, noise=1.0)
    holes = pierced(X, 0.4)
    model = ProbabilisticPCA(2).fit(holes)
    assert model.noise_variance_ == pytest.approx(1.0, abs=0.05)  # 3 standard errors of a variance of so many entries: 0.04
    mean_filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    naive = PCA(2).fit(mean_filled)
    assert abs(naive.noise_variance_ - 1.0) > 0.2
    z = (X - model.fill(holes))[np.isnan(holes)] / model.fill_std(holes)[np.isnan(holes)]
    assert z.std() == pytest.approx(1.0, abs=0.03)  # doubts are as large as errors


def test_draws_have_the_law():
    model = ProbabilisticPCA(2, random_state=0).fit(rows())
    drawn = model.sample(100_000)
    np.testing.assert_allclose(np.cov(drawn.T), model.get_covariance(), rtol=0.05, atol=0.1)
    np.testing.assert_allclose(drawn.mean(axis=0), model.mean_, atol=0.05)
    assert model.aic(drawn) < model.bic(drawn)


def test_refusals_and_edges():
    X = rows(n=30)
    with pytest.raises(ValueError, match="less than n_features = 6"):
        ProbabilisticPCA(6).fit(X)
    with pytest.raises(ValueError, match="needs complete rows"):
        ProbabilisticPCA(2, method="closed").fit(pierced(X))
    with pytest.raises(ValueError, match="3 columns"):
        ProbabilisticPCA(2).fit(X).inverse_transform(np.ones((1, 3)))
    flat = X[:, :2] @ np.random.default_rng(0).normal(size=(2, 6))  # exactly two dimensions: no noise to be seen
    model = ProbabilisticPCA(2).fit(flat)
    assert model.noise_variance_ > 0
    assert model.certify(flat).holds
    few = X[:2]  # fewer rows than coordinates
    assert ProbabilisticPCA(4).fit(few).certify(few).holds


def test_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 2100)) + rng.normal(size=(40, 2100))
    model = ProbabilisticPCA(3).fit(X)
    assert model.certify(X).holds
    assert model.certify(X).kind == "evidence"
    covariance, away = model.get_covariance(), X - model.mean_
    squares = np.einsum("ij,ij->i", away, np.linalg.solve(covariance, away.T).T).mean()
    assert model.score(X) == pytest.approx(-0.5 * (squares + np.linalg.slogdet(2 * np.pi * covariance)[1]), rel=1e-9)


def test_weights_of_rows_with_holes_are_repetitions():
    X, weight = pierced(rows(n=80)), np.random.default_rng(0).integers(0, 4, 80)
    weighted = ProbabilisticPCA(2).fit(X, sample_weight=weight)
    repeated = ProbabilisticPCA(2).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-6)
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-7)
    with lemmata.config(n_threads=2, block_rows=16):
        two = ProbabilisticPCA(2).fit(X)
    with lemmata.config(n_threads=1, block_rows=16):
        one = ProbabilisticPCA(2).fit(X)
    assert two.components_.tobytes() == one.components_.tobytes()
