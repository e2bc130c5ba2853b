"""The machine without a bias: its gradient against differences, its ascent against theory, its end against other solvers."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.svm import LinearSVC as Peer

from lemmata.kernels import RBF
from lemmata.optimize import gradient
from lemmata.svm import homogeneous_dual
from lemmata.svm.homogeneous import dual_gradient


def rows(n=40, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X @ [1.0, -2.0, 0.5] + noise * rng.normal(size=n) > 0, 1, -1)


def signed(K, y):
    return np.outer(y, y) * K


@pytest.mark.item("KRN-15")
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_the_objective(seed):
    X, y = rows(12, seed)
    K = RBF(0.5)(X)
    Q, a = signed(K, y), np.random.default_rng(seed).random(12)
    g = dual_gradient(a, K, y)
    assert_allclose(g, gradient(lambda a: a.sum() - 0.5 * a @ Q @ a, a), rtol=1e-6, atol=1e-8)  # central differences
    assert np.abs(g - (1 - 0.5 * Q @ a)).max() > 0.1  # what the notes print is another vector


@pytest.mark.item("KRN-15")
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_every_step_climbs_by_what_theory_says(share):
    X, y = rows()
    K = RBF(0.5)(X)
    Q = signed(K, y)
    largest = np.linalg.eigvalsh(Q)[-1]
    result = homogeneous_dual(K, y, 2.0, step=share / largest, tol=1e-9, max_iter=200_000)
    assert (np.diff(result.trace) >= -1e-12 * abs(result.dual)).all()
    best, k = result.dual, np.arange(1, result.n_iter + 1)
    bound = (result.multipliers**2).sum() * largest / (2 * share * k)
    assert (best - result.trace <= bound + 1e-9 * best).all()
    # One step by hand, from zero: each multiplier becomes s, within its bound.
    one = min(share / largest, 2.0)
    assert result.trace[0] == pytest.approx(len(y) * one - 0.5 * one**2 * Q.sum(), rel=1e-12)


@pytest.mark.item("KRN-15")
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_the_end_is_that_of_other_solvers(C):
    X, y = rows()
    K = X @ X.T
    result = homogeneous_dual(K, y, C, tol=1e-9, max_iter=500_000)
    peer = Peer(C=C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(X, y)
    assert_allclose((result.multipliers * y) @ X, peer.coef_[0], rtol=1e-4)  # the root of the gap
    w = peer.coef_[0]
    objective = 0.5 * w @ w + C * np.maximum(1 - y * (X @ w), 0).sum()
    assert result.dual <= objective * (1 + 1e-12)
    assert result.dual == pytest.approx(objective, rel=1e-7)
    assert result.certify(K, y).holds


@pytest.mark.item("KRN-15")
def test_without_a_bound_it_is_the_hard_margin():
    X = np.array([[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]])
    y = np.array([1, 1, -1, -1])
    result = homogeneous_dual(X @ X.T, y, tol=1e-12)
    assert_allclose((result.multipliers * y) @ X, [2 / 3, 1 / 3], rtol=1e-6)  # b = 0 in KRN-13: the two problems agree
    found = minimize(
        lambda w: 0.5 * w @ w,
        [1.0, 1.0],
        constraints={"type": "ineq", "fun": lambda w: y * (X @ w) - 1},
        options={"ftol": 1e-14},
    )
    assert result.primal == pytest.approx(found.fun, rel=1e-9)
    assert result.multipliers.sum() == pytest.approx(2 * result.dual, rel=1e-6)  # Σλ = ‖w‖²
    assert result.certify(X @ X.T, y).holds


def test_a_kernel_without_a_bias():
    X, y = rows()
    K = RBF(0.5)(X)
    result = homogeneous_dual(K, y)
    assert (y * (K @ (y * result.multipliers)) > 1 - 1e-2).all()
    assert result.certify(K, y).holds
    again = homogeneous_dual(K, y, start=result.multipliers)
    assert again.n_iter == 1
    assert again.gap <= result.gap


def test_a_change_of_one_percent_is_refused():
    X, y = rows()
    for C in (1.0, np.inf):
        K = RBF(0.5)(X)
        result = homogeneous_dual(K, y, C)
        moved = result.multipliers * (1 + 0.01 * np.where(np.arange(len(y)) % 2, -1, 1))
        assert not replace(result, multipliers=np.maximum(moved, 0)).certify(K, y).holds
        assert not replace(result, dual=1.01 * result.dual).certify(K, y).holds
        assert not replace(result, multipliers=result.multipliers - 0.01).certify(K, y).holds


def test_what_cannot_be_solved_is_said():
    X, y = rows()
    K = X @ X.T
    with pytest.raises(ValueError, match="a plane through the origin of the features separates"):
        homogeneous_dual(K, y)
    with pytest.raises(ValueError, match="at most 1/L"):
        homogeneous_dual(K, y, 1.0, step=1.0)
    with pytest.raises(ValueError, match="y must hold two classes, got 1"):
        homogeneous_dual(K, np.ones(len(y)), 1.0)
    with pytest.raises(ValueError, match="square matrix of finite numbers"):
        homogeneous_dual(K[:3], y, 1.0)
    with pytest.raises(ValueError, match="C must be positive"):
        homogeneous_dual(K, y, 0.0)
    with pytest.raises(ValueError, match="positive semidefinite"):
        homogeneous_dual(-K, y, 1.0)
    with pytest.raises(ValueError, match="start must hold a finite number for each of the 40 rows"):
        homogeneous_dual(K, y, 1.0, start=[1.0])
