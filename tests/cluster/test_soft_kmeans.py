"""Soft k-means against the catalogue's numbers, the free energy's definition, SciPy's derivatives, and its limits."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp, softmax, xlogy

from lemmata.cluster import KMeans, SoftKMeans
from lemmata.cluster.soft_kmeans import curvature_block, soft_block


def rows(n=90, d=2, seed=0, spread=4.0):
    rng = np.random.default_rng(seed)
    return (spread * rng.normal(size=(3, d)))[np.arange(n) % 3] + rng.normal(size=(n, d))


def squares(X, centers):
    return ((X[:, None] - centers) ** 2).sum(axis=2)


def free_energy(X, centers, shares, beta, weight=1.0):
    """Evaluate the definition, for any shares."""
    return (weight * ((shares * squares(X, centers)).sum(axis=1) + xlogy(shares, shares).sum(axis=1) / beta)).sum()


@pytest.mark.item("CLU-05")
def test_the_entropy_term_is_what_makes_soft_shares_the_best():
    # the catalogue: squared distances 1, 2, 4 and stiffness 1, from a row at 0 to centers at 1, sqrt 2 and 2
    X, centers = np.zeros((1, 1)), np.sqrt([[1.0], [2.0], [4.0]])
    energy, inertia, counts, _ = soft_block(X, None, centers, 1.0)
    hard = np.array([[1.0, 0.0, 0.0]])
    soft = softmax([[-1.0, -2.0, -4.0]], axis=1)
    np.testing.assert_allclose(counts, soft[0], rtol=1e-14)
    assert energy == pytest.approx(0.650988, abs=5e-7)
    assert free_energy(X, centers, soft, 1.0) == pytest.approx(0.650988, abs=5e-7)
    assert energy < free_energy(X, centers, hard, 1.0) == pytest.approx(1.0)
    # the erratum: the printed objective, without the entropy, prefers hard shares
    assert inertia == pytest.approx(1.364854, abs=5e-7)
    assert (hard * squares(X, centers)).sum() == pytest.approx(1.0)
    assert inertia > 1.0
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 500):
        assert free_energy(X, centers, other[None], 1.0) >= energy


@pytest.mark.item("CLU-05")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_free_energy_falls_to_a_fixed_point(seed, weighted):
    X, beta = rows(seed=seed, spread=2.0), 0.3
    weight = np.random.default_rng(seed).random(90) + 0.1 if weighted else None
    w = np.ones(90) if weight is None else weight
    model = SoftKMeans(4, beta=beta, random_state=seed).fit(X, sample_weight=weight)
    assert model.converged_
    assert all(after <= before + 1e-9 * abs(before) for before, after in pairwise(model.trace_))
    centers = model.cluster_centers_
    shares = softmax(-beta * squares(X, centers), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-9, atol=1e-14)
    assert np.array_equal(model.predict(X), shares.argmax(axis=1))
    means = (w[:, None] * shares).T @ X / (w @ shares)[:, None]
    np.testing.assert_allclose(centers, means, atol=1e-8)
    # after the step of the shares it is a sum of log-sum-exp
    log_sums = -w @ logsumexp(-beta * squares(X, centers), axis=1) / beta
    assert model.free_energy_ == pytest.approx(log_sums, rel=1e-12)
    assert model.free_energy_ == pytest.approx(free_energy(X, centers, shares, beta, w), rel=1e-9)
    assert model.inertia_ == pytest.approx(w @ (shares * squares(X, centers)).sum(axis=1), rel=1e-12)
    assert model.score(X, sample_weight=weight) == pytest.approx(-log_sums, rel=1e-12)
    assert model.certify(X, sample_weight=weight).holds


def test_each_half_step_descends():
    X, beta = rows(seed=5), 0.2
    rng = np.random.default_rng(0)
    centers, shares = X[:3].copy(), rng.dirichlet(np.ones(3), 90)
    for _ in range(5):
        before = free_energy(X, centers, shares, beta)
        shares = softmax(-beta * squares(X, centers), axis=1)
        middle = free_energy(X, centers, shares, beta)
        centers = shares.T @ X / shares.sum(axis=0)[:, None]
        assert free_energy(X, centers, shares, beta) <= middle <= before


@pytest.mark.item("CLU-05")
def test_a_stiff_limit_is_k_means():
    X = rows(seed=1)
    start = X[:3]
    hard = KMeans(3, init=start).fit(X)
    soft = SoftKMeans(3, beta=1e6, init=start).fit(X)
    np.testing.assert_allclose(soft.cluster_centers_, hard.cluster_centers_, atol=1e-9)
    assert np.array_equal(soft.labels_, hard.labels_)
    assert soft.free_energy_ == pytest.approx(hard.inertia_, rel=1e-9)
    gaps = [abs(SoftKMeans(3, beta=b, init=start).fit(X).inertia_ - hard.inertia_) for b in (0.3, 1.0, 3.0, 10.0)]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.item("CLU-05")
def test_it_is_em_for_equal_gaussians_of_fixed_covariance():
    # catalogue's beta is 1/ours: covariance (1/(2 beta)) I, equal weights
    X, beta, centers = rows(seed=2, spread=1.5), 0.4, rows(seed=2)[:3]
    _, _, counts, offsets = soft_block(X, None, centers, beta)
    from scipy.stats import multivariate_normal

    density = np.array([multivariate_normal(c, np.eye(2) / (2 * beta)).pdf(X) / 3 for c in centers]).T
    posterior = density / density.sum(axis=1, keepdims=True)
    means = posterior.T @ X / posterior.sum(axis=0)[:, None]
    np.testing.assert_allclose(centers + offsets / counts[:, None], means, rtol=1e-10)
    likelihood = np.log(density.sum(axis=1)).sum()
    constant = len(X) * (-np.log(3) - np.log(np.pi / beta))
    assert -beta * soft_block(X, None, centers, beta)[0] + constant == pytest.approx(likelihood, rel=1e-12)


def test_second_derivative():
    X, beta = rows(40, seed=3), 0.3
    centers = X[:3] + 0.5

    def gradient(c):
        return -2.0 * soft_block(X, None, c.reshape(3, 2), beta)[3].ravel()

    def energy(c):
        return soft_block(X, None, c.reshape(3, 2), beta)[0]

    np.testing.assert_allclose(gradient(centers.ravel()), approx_fprime(centers.ravel(), energy, 1e-6), rtol=1e-4, atol=1e-3)
    exact = curvature_block(X, None, centers, beta)
    step = 1e-6
    numeric = [(gradient(centers.ravel() + step * e) - gradient(centers.ravel() - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


def test_coincident_centers_are_refused_above_the_critical_stiffness_only():
    X = rows(seed=4)
    critical = 1.0 / (2.0 * np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1])
    start = np.repeat(X.mean(axis=0)[None], 2, axis=0)
    below = SoftKMeans(2, beta=0.9 * critical, init=start).fit(X)
    assert below.certify(X).holds
    apart = SoftKMeans(2, beta=0.5 * critical, random_state=0).fit(X)
    np.testing.assert_allclose(apart.cluster_centers_, start, atol=1e-6)
    above = SoftKMeans(2, beta=1.2 * critical, init=start).fit(X)
    assert [check.name for check in above.certify(X).failed] == ["curvature"]
    moved = SoftKMeans(2, beta=1.2 * critical, random_state=0).fit(X)
    assert moved.certify(X).holds
    assert moved.free_energy_ < above.free_energy_


def test_as_good_as_a_general_minimizer():
    X, beta = rows(seed=6, spread=1.5), 0.5
    model = SoftKMeans(3, beta=beta, random_state=0).fit(X)

    def energy(c):
        return soft_block(X, None, c.reshape(3, 2), beta)[0]

    best = minimize(energy, model.cluster_centers_.ravel() + 0.05)
    assert model.free_energy_ <= best.fun + 1e-6


def test_stiffness_by_scale_and_any_block_size():
    X = rows(700, 3, seed=7)
    model = SoftKMeans(3, random_state=0).fit(X)
    assert model.beta_ == pytest.approx(3 / (2 * X.var(axis=0).mean()), rel=1e-12)
    assert model.certify(X).holds
    one = soft_block(X, None, model.cluster_centers_, model.beta_)
    two = [soft_block(part, None, model.cluster_centers_, model.beta_) for part in (X[:300], X[300:])]
    for whole, a, b in zip(one, *two, strict=True):
        np.testing.assert_allclose(whole, np.add(a, b), rtol=1e-11, atol=1e-9)
    far = SoftKMeans(3, beta=1e300, init=X[:3]).fit(X)
    assert np.isfinite(far.free_energy_)
    with pytest.raises(ValueError, match="finite numbers"):
        SoftKMeans(3, init=X[:2]).fit(X)
    with pytest.raises(ValueError, match="beta"):
        SoftKMeans(3, beta=0.0).fit(X)
