"""Ascent on the simplex: never leaves it, its gradient is the chain rule's, and it ends where expectation maximization does."""

import numpy as np
import pytest

from lemmata.optimize import gradient, maximize_on_simplex
from lemmata.optimize.simplex import simplex_gradient, softmax


def mixture(seed, n=60, k=3):
    """The likelihoods of n points under k fixed components, and the log likelihood of the weights with its gradient."""
    rng = np.random.default_rng(seed)
    means = np.array([-2.0, 0.0, 3.0])[:k]
    x = rng.normal(size=n) + rng.choice(means, size=n, p=np.array([0.2, 0.5, 0.3])[:k] / np.array([0.2, 0.5, 0.3])[:k].sum())
    p = np.exp(-((x[:, None] - means) ** 2) / 2) / np.sqrt(2 * np.pi)
    return p, lambda t: np.log(p @ t).sum(), lambda t: p.T @ (1 / (p @ t))


@pytest.mark.item("OPT-25")
@pytest.mark.parametrize("seed", range(3))
def test_gradient_in_the_parameters_is_that_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    _, f, grad = mixture(seed)
    logits = rng.normal(size=3)
    theta = softmax(logits)
    np.testing.assert_allclose(theta, np.exp(logits) / np.exp(logits).sum(), rtol=1e-13)
    g = grad(theta)
    naive = [theta[k] * (g[k] - sum(theta[j] * g[j] for j in range(3))) for k in range(3)]
    np.testing.assert_allclose(simplex_gradient(theta, g), naive, rtol=1e-12, atol=1e-12)
    numeric = gradient(lambda z: f(softmax(z)), logits)
    np.testing.assert_allclose(simplex_gradient(theta, g), numeric, rtol=1e-7, atol=1e-7)
    printed = [theta[k] * (g[k] - sum(theta[k] * g[k] for _ in range(3))) for k in range(3)]  # both indices k
    assert np.abs(printed - numeric).max() > 1


@pytest.mark.item("OPT-25")
@pytest.mark.parametrize("method", ["gd", "lbfgs"])
@pytest.mark.parametrize("seed", range(3))
def test_ends_where_expectation_maximization_does_and_stays_on_the_simplex(seed, method):
    p, f, grad = mixture(seed)
    found = maximize_on_simplex(f, grad, np.ones(3), method=method, keep=True)
    weights = np.full(3, 1 / 3)
    for _ in range(5000):
        shares = p * weights
        weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(found.theta, weights, atol=1e-7)
    for logits in found.minimum.points:
        theta = softmax(logits)
        assert (theta > 0).all()
        assert theta.sum() == pytest.approx(1.0, abs=1e-14)
    assert (np.diff(found.minimum.trace) <= 1e-12 * abs(found.value)).all()
    assert found.certificate().holds
    assert -1e-9 <= found.gap < 1e-6 * abs(found.value)


@pytest.mark.item("OPT-25")
def test_gap_bounds_what_is_left_and_reaches_corners():
    _, f, grad = mixture(0)
    best = maximize_on_simplex(f, grad, np.ones(3))
    rough = maximize_on_simplex(f, grad, [8.0, 1.0, 1.0], tol=5.0)
    assert 0 < best.value - rough.value <= rough.gap
    assert not rough.certificate().holds
    rng = np.random.default_rng(0)
    assert max(f(t) for t in rng.dirichlet(np.ones(3), size=500)) <= best.value + best.gap
    slope = np.array([1.0, 3.0, 2.0])
    corner = maximize_on_simplex(lambda t: slope @ t, lambda t: slope, np.ones(3))  # the optimum is at a corner, approached
    np.testing.assert_allclose(corner.theta, [0.0, 1.0, 0.0], atol=1e-7)
    assert corner.certificate().holds


def test_extreme_logits_and_wrong_starts():
    np.testing.assert_array_equal(softmax(np.array([1e4, -1e4])), [1.0, 0.0])
    for start in ([1.0, 0.0], [1.0, np.nan], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="positive numbers"):
            maximize_on_simplex(lambda t: 0.0, lambda t: t, start)
