"""SVR against worked examples, libsvm, and the conditions of optimality."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import SVR as LibSVR

from lemmata.kernels import RBF, Linear
from lemmata.svm import SVR, LinearSVR, decomposition


def wave(seed=0, n=150):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 3))
    return X, np.sin(X[:, 0]) * 3 + X[:, 1] + 0.3 * rng.normal(size=n)


def objective(beta, K, y, epsilon):
    return y @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ K @ beta


def coefficients(model, n):
    beta = np.zeros(n)
    beta[model.support_] = np.ravel(model.dual_coef_)
    return beta


@pytest.mark.item("KRN-23")
def test_three_points_without_a_bias():
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 3.3])
    model = LinearSVR(C=10.0, epsilon=0.2, fit_intercept=False).fit(X, y)
    assert float(model.coef_.ravel()[0]) == pytest.approx(1.033333, abs=5e-7)
    w = float(model.coef_.ravel()[0])
    assert 0.5 * w**2 + 10 * np.maximum(np.abs(y - w * X[:, 0]) - 0.2, 0).sum() == pytest.approx(0.533889, abs=5e-7)
    assert objective(np.array([0, 0, 0.344444]), Linear()(X), y, 0.2) == pytest.approx(0.533889, abs=5e-7)


@pytest.mark.item("KRN-23")
@pytest.mark.parametrize("seed", range(3))
def test_points_inside_and_outside_the_tube(seed):
    X, y = wave(seed)
    model = SVR(C=0.8, epsilon=0.2, gamma=0.3).fit(X, y)
    beta, error = coefficients(model, len(y)), y - model.predict(X)
    assert (beta[np.abs(error) < 0.2 - 1e-8] == 0).all()
    outside = np.abs(error) > 0.2 + 1e-8
    np.testing.assert_allclose(beta[outside], 0.8 * np.sign(error[outside]))
    free = (np.abs(beta) > 0) & (np.abs(beta) < 0.8)
    assert free.sum() > 10
    np.testing.assert_allclose(np.abs(error[free]), 0.2, atol=1e-8)
    assert abs(beta.sum()) < 1e-10
    certificate = model.certify(X, y)
    assert certificate.holds
    assert certificate["gap"].value < 1e-9


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_libsvm_finds_the_same(kernel, epsilon):
    X, y = wave()
    settings = {"C": 2.0, "epsilon": epsilon, "kernel": kernel, "gamma": 0.2}
    ours, theirs = SVR(**settings).fit(X, y), LibSVR(**settings, tol=1e-8).fit(X, y)
    K = (Linear() if kernel == "linear" else RBF(gamma=0.2))(X)
    values = [objective(coefficients(m, len(y)), K, y, epsilon) for m in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-7)  # libsvm rounds its kernel to float32
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    assert ours.certify(X, y).holds


def test_working_sets_solve_what_is_solved_at_once(monkeypatch):
    X, y = wave(1, 300)
    whole = SVR(C=3.0).fit(X, y)
    monkeypatch.setattr(decomposition, "WHOLE", 20)
    monkeypatch.setattr(decomposition, "SET", 24)
    parts = SVR(C=3.0).fit(X, y)
    assert parts.n_iter_ > 5
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-7)
    assert parts.certify(X, y).holds


def test_a_constant_target():
    X, _ = wave(0, 30)
    model = SVR().fit(X, np.full(30, 5.0))
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), 5.0)
    assert model.certify(X, np.full(30, 5.0)).holds


def test_precomputed_sparse_and_warm():
    X, y = wave(2, 80)
    expected = SVR(gamma=0.3).fit(X, y).predict(X)
    K = RBF(gamma=0.3)(X)
    given = SVR(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given.predict(K), expected, rtol=1e-8)
    assert given.certify(K, y).holds
    sparse = SVR(gamma=0.3).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.predict(csr_array(X)), expected, rtol=1e-8)
    warm = SVR(gamma=0.3, warm_start=True).fit(X, y).set_params(C=2.0).fit(X, y)
    np.testing.assert_allclose(warm.predict(X), SVR(2.0, gamma=0.3).fit(X, y).predict(X), atol=1e-7)


def test_certificate_refuses_another_tube():
    X, y = wave(0, 60)
    model = SVR(epsilon=0.1).fit(X, y)
    assert not model.set_params(epsilon=0.12).certify(X, y).holds
