"""Stability bounds: worked numbers, and the stability of ridge regression measured by removing every point."""

from math import sqrt

import numpy as np
import pytest

from lemmata.theory.bounds.stability import hinge_stability, nearest_neighbor_bound, ridge_stability, stability_bound

DELTA = 0.05
SIZES = (100, 1000, 10_000)


def hinge(mean, penalty, n):
    return stability_bound(mean, hinge_stability(1.0, penalty, n, 0.25), n, DELTA)


def ridge(mean, penalty, n):
    beta, upper = ridge_stability(1.0, penalty, n)
    return stability_bound(mean, beta, n, DELTA, upper)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(hinge(0.2, 1.0, 10_000), 0.310549, id="7.2 hinge"),
        pytest.param(ridge(0.5, 1.0, 10_000), 0.942194, id="7.2 ridge"),
        pytest.param(nearest_neighbor_bound(0.1, 5, 10_000, DELTA), 0.346994, id="7.3"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        pytest.param(lambda n: hinge(0.2, 1.0, n), [1.3415, 0.5523, 0.3105], id="λ=1"),
        pytest.param(lambda n: nearest_neighbor_bound(0.1, 5, n, DELTA), [2.5821, 0.8814, 0.3470], id="5 neighbors"),
    ],
)
def test_vacuity_table(bound, expected):
    np.testing.assert_allclose([bound(n) for n in SIZES], expected, atol=5.1e-5)


def test_small_penalties_say_nothing():
    assert all(hinge(0.1, 0.01, n) > 9 for n in SIZES)


def test_fixed_c_makes_the_bound_grow():
    """λ = 1/(2nC) leaves β = κ²C/γ, and 4nβ·√(ln(1/δ)/2n) grows with √n."""
    values = [hinge(0.1, 1 / (2 * n), n) for n in SIZES]
    assert hinge_stability(1.0, 1 / (2 * 100), 100, 0.25) == hinge_stability(1.0, 1 / (2 * 10_000), 10_000, 0.25) == 4
    assert values[1] / values[0] > 2.5
    assert values[2] / values[1] > 3


@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_ridge_is_as_stable_as_claimed(penalty):
    rng = np.random.default_rng(0)
    n = 30
    X = rng.normal(size=(n, 3))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    y = np.sign(rng.normal(size=n))
    y[0] = -np.sign(y[1:] @ X[1:] @ X[0]) or 1.0  # one point against the others
    beta, upper = ridge_stability(1.0, penalty, n)

    def fitted(kept):
        return np.linalg.solve(X[kept].T @ X[kept] / kept.sum() + penalty * np.eye(3), X[kept].T @ y[kept] / kept.sum())

    everywhere = rng.normal(size=(500, 3))
    everywhere /= np.linalg.norm(everywhere, axis=1, keepdims=True)
    full = fitted(np.ones(n, dtype=bool))
    assert np.linalg.norm(full) <= 1 / sqrt(penalty)
    worst = 0.0
    for i in range(n):
        without = fitted(np.arange(n) != i)
        for target in (-1, 1):
            change = (everywhere @ full - target) ** 2 - (everywhere @ without - target) ** 2
            worst = max(worst, np.abs(change).max())
            assert ((everywhere @ full - target) ** 2).max() <= upper
    assert 0 < worst <= beta


def test_ridge_scales_with_the_target():
    beta, upper = ridge_stability(2.0, 0.5, 100, target=3.0)
    assert upper == pytest.approx(9 * (1 + 2 / sqrt(0.5)) ** 2, rel=1e-14)
    assert beta == pytest.approx(2 * 4 * upper / (0.5 * 100), rel=1e-14)


def test_leave_one_out_mean_pays_one_beta_less():
    assert stability_bound(0.2, 0.01, 100, DELTA) - stability_bound(0.2, 0.01, 100, DELTA, leave_one_out=True) == pytest.approx(
        0.01
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stability_bound(0.1, -1.0, 10, DELTA), "beta"),
        (lambda: stability_bound(1.5, 0.1, 10, DELTA), "mean"),
        (lambda: stability_bound(0.5, 0.1, 10, DELTA, upper=0.0), "upper"),
        (lambda: hinge_stability(1.0, 0.0, 10, 0.25), "penalty"),
        (lambda: hinge_stability(1.0, 1.0, 10, -0.25), "ramp"),
        (lambda: ridge_stability(0.0, 1.0, 10), "kappa"),
        (lambda: nearest_neighbor_bound(0.1, 0, 10, DELTA), "k must be"),
        (lambda: nearest_neighbor_bound(0.1, 1, 1, DELTA), "n must be"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
