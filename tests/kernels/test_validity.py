"""What makes a kernel: no negative eigenvalues, features whose inner products it is, and an algebra that keeps both."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array

from lemmata.kernels import (
    RBF,
    Constant,
    Function,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
    feature_map,
    feature_names,
    finite_features,
    integral_features,
    is_positive_semidefinite,
    taylor_error,
    taylor_features,
)
from lemmata.kernels.validity import warn_if_indefinite

x, z = np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]])


def point_sets(d=2):
    """Yield random points, and such as are hard: equal, in line, on a grid, on a circle, near and far."""
    rng = np.random.default_rng(0)
    yield rng.normal(size=(40, d))
    yield 100 * rng.standard_t(1, size=(40, d))
    yield np.repeat(rng.normal(size=(5, d)), 6, axis=0)
    yield np.outer(np.linspace(-1, 1, 30), np.ones(d))
    yield np.array(list(itertools.product(range(6), repeat=d)), dtype=float)
    turn = np.linspace(0, 2 * np.pi, 30, endpoint=False)
    yield np.column_stack([np.cos(turn), np.sin(turn)])[:, :d]
    yield np.concatenate([1e-6 * rng.normal(size=(15, d)), 1e4 + rng.normal(size=(15, d))])
    yield np.zeros((3, d))
    yield rng.normal(size=(1, d))


VALID = [
    RBF(0.7),
    RBF([0.3, 5.0]),
    Matern(nu=0.5),
    Matern(nu=1.7),
    Matern(nu=2.5),
    Periodic(0.8, 1.7),
    Linear(),
    Polynomial(4, 0.5),
    Polynomial(3, 0.0),
    Constant(2.0),
    White(0.3),
    RBF(0.5) + Linear(),
    RBF(0.5) * Linear(),
    2.0 * RBF(0.5) * Periodic(1.0, 2.0) * Matern(nu=1.5),
    (RBF() + Linear()) ** 3,
    (0.5 * RBF(0.4)).exp(),
    (2.0 * Linear() + 3.0 * Linear() ** 2 + 1.0).of(np.tanh),
    Linear().of(np.tanh).exp(),
    RBF(0.4).weighted(lambda X: np.sin(X[:, 0])),
    Matern(nu=0.5).of(lambda X: np.column_stack([X, X**2])),
]


@pytest.mark.item("KRN-01", "KRN-08")
@pytest.mark.parametrize("k", VALID, ids=lambda k: repr(k).split("<")[0][:50])
def test_valid_kernels_have_no_negative_eigenvalue_on_any_points(k):
    assert k.positive
    for X in point_sets():
        found = is_positive_semidefinite(k, X)
        assert found, found
        assert found.vector is None
        K = k(X)
        assert found.least == pytest.approx(np.linalg.eigvalsh(K)[0], abs=found.tolerance + 1e-15)
        assert np.linalg.eigvalsh(K)[0] >= -found.tolerance


@pytest.mark.item("KRN-08")
def test_products_of_positive_matrices_are_positive():
    # Schur: of any two positive semidefinite matrices, of low rank and of full rank
    rng = np.random.default_rng(1)
    for rank_a, rank_b in itertools.product((1, 3, 12), repeat=2):
        A, B = (M @ M.T for M in (rng.normal(size=(12, rank_a)), rng.normal(size=(12, rank_b))))
        rows = np.arange(12)[:, None]
        product, total = Precomputed(A) * Precomputed(B), Precomputed(A) + 3.0 * Precomputed(B)
        np.testing.assert_allclose(product(rows), A * B, rtol=1e-15)
        np.testing.assert_allclose(total(rows), A + 3 * B, rtol=1e-14)
        for k in (product, total, product**2, Precomputed(A / 50).exp()):
            assert k.positive is None  # no theorem about a matrix that was given
            assert is_positive_semidefinite(k, rows)


@pytest.mark.item("KRN-08")
def test_the_algebra_is_that_of_the_values():
    X, Y = np.random.default_rng(2).normal(size=(2, 9, 3))
    a, b = RBF(0.8), Linear()
    A, B = a(X, Y), b(X, Y)
    f, psi = (lambda X: X[:, 0] - 2), (lambda X: X[:, :2] ** 2)
    for k, values in (
        (a + b, A + B),
        (2.0 * a + 3 * b, 2 * A + 3 * B),
        (a * b, A * B),
        (b**3, B**3),
        (1 + 2 * b + b**2, 1 + 2 * B + B**2),
        (b.exp(), np.exp(B)),
        (a.weighted(f), f(X)[:, None] * A * f(Y)),
        (a.of(psi), a(psi(X), psi(Y))),
        (a + 1.0, A + 1),
    ):
        np.testing.assert_allclose(k(X, Y), values, rtol=1e-12)


@pytest.mark.item("KRN-07", "KRN-01")
@pytest.mark.parametrize(("b", "least"), [(-1.0, -1.269772), (0.0, -0.090867), (1.0, -0.013737)])
def test_the_tanh_is_refuted_by_a_vector(b, least):
    points = np.array([[0.0], [1.0], [2.0]])
    k = Sigmoid(1.0, b)
    assert k.positive is None
    found = is_positive_semidefinite(k, points)
    assert not found
    assert found.least == pytest.approx(least, abs=1e-6)
    assert np.linalg.norm(found.vector) == pytest.approx(1.0)
    K = np.tanh(points @ points.T + b)
    assert found.vector @ K @ found.vector == pytest.approx(least, abs=1e-6)  # by hand
    with pytest.warns(UserWarning, match="not positive semidefinite on these rows"):
        warn_if_indefinite(k, points)
    with pytest.warns(UserWarning, match=f"least eigenvalue {least:.2f}"):
        warn_if_indefinite(k, K=k(points))


def test_what_is_tested_may_be_a_kernel_a_function_or_a_matrix():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 3))
    assert is_positive_semidefinite(lambda A, B: A @ B.T, X)
    assert is_positive_semidefinite(X @ X.T)
    assert is_positive_semidefinite(csr_array(np.eye(4)))
    assert is_positive_semidefinite(Linear(), csr_array(X))
    # minus the distance is no kernel, nor is a product that is not symmetric
    distance = Function(lambda A, B: -np.linalg.norm(A[:, None] - B, axis=2))
    assert is_positive_semidefinite(distance, X).vector is not None
    lopsided = is_positive_semidefinite(lambda A, B: A @ B.T + A[:, :1], X)
    assert not lopsided
    assert lopsided.asymmetry > 0.1
    assert "not symmetric" in repr(is_positive_semidefinite(np.array([[1.0, 0.0], [0.1, 1.0]])))
    assert is_positive_semidefinite(np.diag([1.0, -1e-3]), tol=0.01)
    for bad, match in ((np.ones((2, 3)), "row and a column"), (np.full((2, 2), np.nan), "NaN")):
        with pytest.raises(ValueError, match=match):
            is_positive_semidefinite(bad)
    with pytest.raises(ValueError, match="give them as X"):
        is_positive_semidefinite(RBF())
    with pytest.raises(ValueError, match="leave X out"):
        is_positive_semidefinite(np.eye(2), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warn_if_indefinite(RBF(), X) is None
        assert warn_if_indefinite(Function(lambda A, B: A @ B.T), np.repeat(X, 50, axis=0))


@pytest.mark.item("KRN-02")
@pytest.mark.parametrize("k", [RBF(0.7), Matern(nu=0.5), Polynomial(2), Linear(), RBF() * Periodic()], ids=repr)
def test_features_of_points_give_their_matrix_back(k):
    for X in point_sets():
        features = finite_features(k, X)
        K = k(X)
        # √tolerance of dropped eigenvalues each leave at most the tolerance in K
        np.testing.assert_allclose(features @ features.T, K, atol=len(K) * is_positive_semidefinite(K).tolerance + 1e-300)
        assert features.shape[1] <= len(X)
    assert finite_features(Linear(), X=np.random.default_rng(0).normal(size=(30, 2))).shape == (30, 2)
    with pytest.raises(ValueError, match="Only a positive semidefinite matrix has features"):
        finite_features(Sigmoid(), np.array([[0.0], [1.0], [2.0]]))


@pytest.mark.item("KRN-03")
def test_features_of_the_homogeneous_polynomial():
    k = Polynomial(2, 0.0)
    assert k(x, z) == 25
    r = math.sqrt(2)
    assert sorted(feature_map(k, x)[0]) == pytest.approx(sorted([r * 1 * 2, 1, 4]))
    assert float(feature_map(k, x)[0] @ feature_map(k, z)[0]) == pytest.approx(25.0, rel=1e-14)
    rng = np.random.default_rng(0)
    for d, m in itertools.product((1, 2, 4), (1, 2, 3, 5)):
        X, Y = rng.normal(size=(2, 6, d))
        for k in (Polynomial(m, 0.0), Linear() ** m):
            features = feature_map(k, X) @ feature_map(k, Y).T
            np.testing.assert_allclose(features, (X @ Y.T) ** m, rtol=1e-10, atol=1e-12)
            assert feature_map(k, X).shape[1] == math.comb(d + m - 1, m) == len(feature_names(k, d))
    np.testing.assert_array_equal(feature_map(Linear(), X), X)


@pytest.mark.item("KRN-04")
def test_features_of_the_inhomogeneous_polynomial():
    k = Polynomial(2)
    assert k(x, z) == 36
    assert float(feature_map(k, x)[0] @ feature_map(k, z)[0]) == pytest.approx(36.0, rel=1e-14)
    r = math.sqrt(2)
    assert sorted(feature_map(k, x)[0]) == pytest.approx(sorted([1, r * 1, r * 2, 1, 4, r * 1 * 2]))
    # without the roots it is another kernel: 31
    assert np.array([1, 1, 2, 1, 4, r * 2]) @ np.array([1, 3, 1, 9, 1, r * 3]) == pytest.approx(31.0)
    rng = np.random.default_rng(0)
    for d, m, c in itertools.product((1, 3), (1, 2, 4), (0.5, 2.0)):
        X, Y = rng.normal(size=(2, 6, d))
        k = Polynomial(m, c, gamma=0.7)
        np.testing.assert_allclose(feature_map(k, X) @ feature_map(k, Y).T, k(X, Y), rtol=1e-10, atol=1e-12)
        assert feature_map(k, X).shape[1] == math.comb(d + m, m)


def test_features_follow_the_algebra_and_have_names():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 6, 2))
    for k in (
        Linear() + 2.0,
        (Linear() + 1.0) * Polynomial(2, 0.5),
        (2.0 * Linear() + 1.0) ** 2,
        Linear().weighted(lambda X: X[:, 0]),
        Polynomial(2).of(lambda X: X**2),
    ):
        np.testing.assert_allclose(feature_map(k, X) @ feature_map(k, Y).T, k(X, Y), rtol=1e-10, atol=1e-12)
    assert feature_names(Linear() + 2.0, 2) == ["x0", "x1", "√2"]
    assert feature_names(Linear() ** 3, ["a", "b"]) == ["a³", "√3·a²·b", "√3·a·b²", "b³"]
    assert feature_names(4.0 * Linear(), 1) == ["2·x0"]
    names = feature_names(Polynomial(3), 2)
    assert len(set(names)) == 10
    np.testing.assert_array_equal(feature_map(Linear(), csr_array(X)), X)
    for make, match in (
        (lambda: feature_map(RBF(), X), "no finite list of features"),
        (lambda: feature_map(Polynomial(2, -1.0), X), "coef0 of at least 0"),
        (lambda: feature_map(Polynomial(9), np.ones((100, 100))), "more than is sensible"),
        (lambda: feature_names(Linear().of(np.abs), 2), "have no names"),
        (lambda: feature_map("poly", X), "takes a kernel"),
    ):
        with pytest.raises(ValueError, match=match):
            make()


@pytest.mark.item("KRN-06")
def test_the_integral_of_rbf_features():
    # a = 1, b = 2: exp(−(x − z)²/2), by the formula, by SciPy's quadrature and by our features
    a, b, s, t = 1.0, 2.0, 0.3, -0.8

    def phi(u, v):
        return math.sqrt(a) * (4 / (math.pi * b)) ** 0.25 * math.exp(-2 * (u - v) ** 2 / b)

    integral = quad(lambda v: phi(s, v) * phi(t, v), -20, 20, epsabs=1e-13)[0]
    features = integral_features(RBF(gamma=1 / b), [[s], [t]])
    assert float(RBF(gamma=1 / b)([[s]], [[t]])[0, 0]) == pytest.approx(0.546074, abs=5e-7)
    assert integral == pytest.approx(0.546074, abs=5e-7)
    assert float(features[0] @ features[1]) == pytest.approx(integral, abs=1e-10)
    X = np.random.default_rng(0).normal(size=(20, 1)) * 5
    for gamma, tol in itertools.product((0.1, 1.0, 30.0), (1e-3, 1e-8, 1e-12)):
        k = RBF(gamma=gamma)
        features = integral_features(k, X, tol=tol)
        assert np.abs(features @ features.T - k(X)).max() <= tol + 1e-14
    with pytest.raises(ValueError, match="one column"):
        integral_features(RBF(), x)
    with pytest.raises(ValueError, match="an RBF with one length_scale"):
        integral_features(Matern(), [[1.0]])


@pytest.mark.item("KRN-06")
def test_the_series_of_rbf_features_and_its_error():
    X = np.random.default_rng(0).normal(size=(15, 1))
    k = RBF(gamma=1.0)
    first = taylor_features(k, X, 6)
    by_hand = [np.exp(-(X[:, 0] ** 2)) * np.sqrt(2.0**j / math.factorial(j)) * X[:, 0] ** j for j in range(6)]
    np.testing.assert_allclose(first, np.transpose(by_hand), rtol=1e-12)
    for d in (1, 2, 3):
        X = np.random.default_rng(d).normal(size=(12, d))
        for gamma, m in itertools.product((0.2, 1.0), (1, 4, 9, 25)):
            k = RBF(gamma=gamma)
            features = taylor_features(k, X, m)
            error, bound = np.abs(features @ features.T - k(X)).max(), taylor_error(k, X, m)
            assert error <= bound + 1e-14
            assert error >= 0.99 * bound - 1e-14  # the longest row itself attains it
    assert taylor_error(k, X, 200) < 1e-15
