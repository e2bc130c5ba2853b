"""Steps on pairs: what theory says of every one of them."""

import numpy as np
import pytest

from lemmata.kernels import RBF
from lemmata.svm.pairs import extremes, optimize_pairs


def small_dual(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return RBF(gamma=0.5)(X), sign, rng.uniform(0.5, 2.0, n)


@pytest.mark.item("KRN-21")
@pytest.mark.parametrize("seed", range(5))
def test_every_step_lowers_the_objective_and_keeps_the_balance(seed):
    K, sign, cap = small_dual(seed)
    Q = sign[:, None] * K * sign
    a, v, objective = np.zeros(len(K)), sign.copy(), 0.0
    for _ in range(10_000):
        steps, lowered = optimize_pairs(K, a, v, sign, cap, 1e-9, 1)
        if steps == 0:
            break
        now = 0.5 * a @ Q @ a - a.sum()
        assert lowered > 0
        assert now - (objective - lowered) == pytest.approx(0.0, abs=1e-12)  # roundings of sums of 40 terms
        assert abs(sign @ a) <= 1e-12
        assert (a >= 0).all()
        assert (a <= cap).all()
        np.testing.assert_allclose(v, sign - K @ (sign * a), atol=1e-9)  # v is updated, step after step
        objective = now
    high, low = np.empty(len(a)), np.empty(len(a))
    extremes(a, sign - K @ (sign * a), sign, cap, high, low)
    assert high.max() - low.min() <= 1e-9 + 1e-10


def test_a_pair_is_moved_to_the_minimum_along_it():
    K, sign, _ = small_dual()
    a, v = np.zeros(len(K)), sign.copy()
    optimize_pairs(K, a, v, sign, np.full(len(K), 100.0), 1e-9, 1)
    i, j = np.flatnonzero(a)
    Q = sign[:, None] * K * sign

    def objective(t):
        b = np.zeros(len(K))
        b[i], b[j] = sign[i] * t, -sign[j] * t
        return 0.5 * b @ Q @ b - b.sum()

    t = sign[i] * a[i]
    assert objective(t) < min(objective(t + 1e-4), objective(t - 1e-4))


def test_bounds_are_reached_exactly():
    K, sign, _ = small_dual(3)
    a, v, cap = np.zeros(len(K)), sign.copy(), np.full(len(K), 0.1)
    optimize_pairs(K, a, v, sign, cap, 1e-6, 100_000)
    assert (a == 0.1).sum() > 5
    near = (np.abs(a) < 1e-12) | (np.abs(a - 0.1) < 1e-12)
    assert ((a == 0) | (a == 0.1))[near].all()


def test_negative_values_are_ordered_like_numbers():
    # The largest is found among bits: all values negative is where that could go wrong.
    K = np.eye(4)
    a, v = np.array([0.5, 0.5, 0.5, 0.5]), np.array([-5.0, -1.0, -3.0, -2.0])
    sign = np.array([1.0, -1.0, 1.0, -1.0])
    optimize_pairs(K, a, v, sign, np.ones(4), 1e-9, 1)
    # The best pair of second order: up 1 (v = −1), down 0 (v = −5); the step of 2 is clipped at the bounds.
    np.testing.assert_allclose(a, [0.0, 0.0, 0.5, 0.5])
