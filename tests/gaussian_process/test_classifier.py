"""Gaussian process classification against scikit-learn, brute-force integrals, finite differences and dense algebra."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as peer_kernels

from lemmata.gaussian_process import GaussianProcessClassifier
from lemmata.gaussian_process.classifier import softmax_average
from lemmata.kernels import RBF, Constant, Matern, White

KERNEL = Constant(2.3) * RBF([0.7, 1.5])


def table(n=40, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    scores = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1], np.cos(X[:, 1] + X[:, 0])])[:, :classes]
    return X, (3 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def given(kernel=KERNEL):
    return GaussianProcessClassifier(kernel, optimizer=None)


def test_two_classes_are_as_scikit_learn_has_them():
    X, y = table()
    new = np.random.default_rng(1).uniform(-3, 3, (50, 2))
    peer = Peer(peer_kernels.ConstantKernel(2.3) * peer_kernels.RBF([0.7, 1.5]), optimizer=None).fit(X, y)
    model = given().fit(X, y)
    assert model.log_marginal_likelihood_ == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-8)
    # 5e-3: scikit-learn fits five error functions to the logistic function, we integrate it
    np.testing.assert_allclose(model.predict_proba(new), peer.predict_proba(new), atol=5e-3)
    mean, variance = model.latent_distribution(new)
    inner = peer.base_estimator_
    cross = inner.kernel_(inner.X_train_, new)
    np.testing.assert_allclose(mean, cross.T @ (inner.y_train_ - inner.pi_), rtol=1e-5, atol=1e-5)  # its mode has five digits
    v = np.linalg.solve(inner.L_, inner.W_sr_[:, None] * cross)
    np.testing.assert_allclose(variance, inner.kernel_.diag(new) - (v**2).sum(axis=0), rtol=1e-4)
    x = mean[:5, None] + np.sqrt(variance[:5, None]) * np.linspace(-8, 8, 4001)
    odds = np.exp(-(np.linspace(-8, 8, 4001) ** 2) / 2)
    np.testing.assert_allclose(model.predict_proba(new[:5])[:, 1], (expit(x) @ odds) / odds.sum(), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_mode_is_the_largest_posterior(classes):
    X, y = table(25, classes)
    model = given().fit(X, y)
    K = KERNEL(X)
    one_hot = np.eye(classes)[y]

    def loss(alpha):
        A = alpha.reshape(-1, len(X))
        f = A @ K
        scores = np.vstack([np.zeros(len(X)), f]).T if classes == 2 else f.T
        gradient = (softmax(scores, axis=1) - one_hot).T[-len(A) :] @ K + f
        return -(one_hot * log_softmax(scores, axis=1)).sum() + (A * f).sum() / 2, gradient.ravel()

    best = minimize(loss, np.zeros(model.alpha_.size), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    np.testing.assert_allclose(model.alpha_ @ K, best.x.reshape(-1, 25) @ K, atol=1e-5)  # BFGS stops at √ε or so
    assert loss(model.alpha_.ravel())[0] <= best.fun + 1e-10


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", [KERNEL, Constant(0.5) * Matern(0.9, nu=2.5) + RBF(2.0)])
def test_slopes_of_the_evidence_are_its_differences(classes, kernel):
    """With all implicit terms (scikit-learn#31366)."""
    X, y = table(30, classes)
    model = given(kernel).fit(X, y, np.arange(30) % 3 + 1.0)
    value, slopes = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert value == model.log_marginal_likelihood(kernel.theta)
    for i, slope in enumerate(slopes):
        h = 1e-5 * np.eye(len(slopes))[i]
        found = (model.log_marginal_likelihood(kernel.theta + h) - model.log_marginal_likelihood(kernel.theta - h)) / 2e-5
        assert slope == pytest.approx(found, rel=1e-6, abs=1e-7)  # the error of a central difference


def test_the_evidence_of_three_classes_is_that_of_all_latent_values_at_once():
    X, y = table(20, 3)
    model = given().fit(X, y)
    f, K = model.latent_, np.kron(np.eye(3), KERNEL(X))
    p = softmax(f, axis=0)
    W = np.diag(p.ravel()) - np.vstack([np.diag(q) for q in p]) @ np.vstack([np.diag(q) for q in p]).T
    value = log_softmax(f, axis=0)[y, np.arange(20)].sum() - (model.alpha_ * f).sum() / 2
    value -= np.linalg.slogdet(np.eye(60) + K @ W)[1] / 2
    assert model.log_marginal_likelihood_ == pytest.approx(value, rel=1e-10)
    new = np.random.default_rng(1).uniform(-3, 3, (10, 2))
    covariance = np.linalg.inv(np.linalg.inv(K + 1e-10 * np.eye(60)) + W)
    a = np.kron(np.eye(3), np.linalg.solve(KERNEL(X) + 1e-10 * np.eye(20), KERNEL(X, new)).T)
    joint = np.kron(np.eye(3), KERNEL(new) - KERNEL(new, X) @ np.linalg.solve(KERNEL(X) + 1e-10 * np.eye(20), KERNEL(X, new)))
    variance = np.diag(joint + a @ covariance @ a.T).reshape(3, 10).T
    np.testing.assert_allclose(model.latent_distribution(new)[1], variance, rtol=1e-5)  # κ of a kernel matrix without noise


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_are_repetition(classes):
    X, y = table(40, classes)
    weight = np.arange(40) % 4.0
    repeated = np.repeat(np.arange(40), weight.astype(int))
    one, two = given().fit(X, y, weight), given().fit(X[repeated], y[repeated])
    assert one.log_marginal_likelihood_ == pytest.approx(two.log_marginal_likelihood_, rel=1e-11)
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)
    apart = given(KERNEL + White(1e-12)).fit(X[repeated], y[repeated])  # a kernel that keeps the repetitions as rows
    assert one.log_marginal_likelihood_ == pytest.approx(apart.log_marginal_likelihood_, rel=1e-8)
    with pytest.raises(ValueError, match="tells equal rows apart"):
        given(KERNEL + White(0.1)).fit(X, y, weight)


def test_the_average_of_the_softmax():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(4, 3))
    half = rng.normal(size=(4, 3, 3))
    draws = mean[:, None] + np.einsum("nab,kb->nka", half, rng.standard_normal((400_000, 3)))
    # 3e-3: what 512 points leave; the draws have a fifth of it
    np.testing.assert_allclose(
        softmax_average(mean, half @ half.transpose(0, 2, 1)), softmax(draws, axis=2).mean(axis=1), atol=3e-3
    )


def test_iris_by_one_model_of_three_classes():
    X, y = load_iris(return_X_y=True)
    train = np.arange(150) % 2 == 0
    model = GaussianProcessClassifier().fit(X[train], y[train])
    assert model.converged_
    assert model.score(X[~train], y[~train]) >= 0.94
    certificate = model.certify(X[train], y[train])
    assert certificate.holds, str(certificate)
    far = model.predict_proba([[100.0, 100.0, 100.0, 100.0]])
    np.testing.assert_allclose(far, 1 / 3, atol=0.01)  # nothing is known there
    two = GaussianProcessClassifier().fit(X[:100], y[:100])
    assert two.certify(X[:100], y[:100]).holds


def test_probabilities_are_drawn_together_where_little_is_known():
    X, y = table(60)
    model = given().fit(X, y)
    near, far = model.predict_proba(X), model.predict_proba(X * 10)
    assert np.abs(near - 0.5).mean() > np.abs(far - 0.5).mean()
    np.testing.assert_array_equal(near[:, 1] > 0.5, model.latent_distribution(X)[0] > 0)
