"""Gradients of policies: exact numbers, enumeration, central differences, and baselines."""

import numpy as np
import pytest

from lemmata.neural_network.layers import draw_parameters, n_parameters, new_shape
from lemmata.neural_network.network import plain_forward
from lemmata.rl.network_learner import UNMOVED, new_room
from lemmata.rl.policy_gradient import add_errors, add_scores, drawn, mean_score, returns_to_go

TWO_ARMS = new_shape([1, 2], ["softmax"])


def differences(function, w, h=1e-6):
    """Take central differences in every parameter."""
    return np.array([(function(w + h * u) - function(w - h * u)) / (2 * h) for u in np.eye(len(w))])


def scores(shape, w, X, actions, weights, entropy=0.0):
    """Return the sum of scores for rows."""
    room, gradient = new_room(shape, len(X)), np.empty(len(w))
    room.values[: X.size] = X.ravel()
    add_scores(shape, w, room, len(X), np.asarray(actions), np.asarray(weights, dtype=float), entropy, gradient, UNMOVED)
    return gradient


@pytest.mark.item("RLN-01")
def test_two_arms_have_the_gradient_of_the_catalogue():
    found = mean_score(TWO_ARMS, np.zeros(4), np.ones((1, 1)), np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(found[:2], [0.25, -0.25], rtol=1e-15)
    one_draw = scores(TWO_ARMS, np.zeros(4), np.ones((1, 1)), [0], [1.0])
    np.testing.assert_allclose(one_draw[:2], [0.5, -0.5], rtol=1e-15)  # ∇ log π(a) = 1[a] − π


@pytest.mark.item("RLN-01")
@pytest.mark.parametrize("hidden", [(), (4,), (3, 5)])
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_the_mean_of_the_estimator_is_the_gradient_of_the_expected_reward(hidden, activation):
    shape = new_shape([3, *hidden, 4], [activation] * len(hidden) + ["softmax"])
    rng = np.random.default_rng(len(hidden))
    w, X, R = draw_parameters(shape, rng), rng.normal(size=(5, 3)), rng.normal(size=(5, 4))
    exact = differences(lambda v: (plain_forward(shape, v, X)[1] * R).sum(), w)
    np.testing.assert_allclose(mean_score(shape, w, X, R), exact, atol=1e-9)  # differences at 1e-6 have ten digits
    # by hand: every action of every row, weighted by its chance
    chances = plain_forward(shape, w, X)[1]
    each = sum(chances[i, a] * R[i, a] * scores(shape, w, X[i : i + 1], [a], [1.0]) for i in range(5) for a in range(4))
    np.testing.assert_allclose(each, exact, atol=1e-9)


@pytest.mark.item("RLN-02")
def test_a_constant_baseline_leaves_the_mean_and_the_best_one_has_the_least_variance():
    shape = new_shape([2, 3, 3], ["tanh", "softmax"])
    rng = np.random.default_rng(0)
    w, x = draw_parameters(shape, rng), rng.normal(size=(1, 2))
    R = np.array([3.0, 5.0, 4.0])
    chances = plain_forward(shape, w, x)[1][0]
    g = np.array([scores(shape, w, x, [a], [1.0]) for a in range(3)])  # ∇ log π(a)
    np.testing.assert_allclose(chances @ g, 0.0, atol=1e-15)  # E ∇ log π = 0
    squares = (g**2).sum(axis=1)

    def mean_and_variance(b):
        estimates = (R - b)[:, None] * g
        mean = chances @ estimates
        return mean, chances @ ((estimates - mean) ** 2).sum(axis=1)

    best = (chances * squares) @ R / (chances @ squares)
    mean, least = mean_and_variance(best)
    for b in (0.0, chances @ R, best - 0.1, best + 0.1, 10.0):
        np.testing.assert_allclose(mean_and_variance(b)[0], mean, atol=1e-14)
        assert mean_and_variance(b)[1] >= least
    assert mean_and_variance(chances @ R)[1] < 0.2 * mean_and_variance(0.0)[1]  # the mean of R takes most of it away


def test_the_entropy_has_its_gradient():
    shape = new_shape([2, 3, 4], ["tanh", "softmax"])
    rng = np.random.default_rng(1)
    w, X = draw_parameters(shape, rng), rng.normal(size=(6, 2))

    def entropy(v):
        p = plain_forward(shape, v, X)[1]
        return -(p * np.log(p)).sum()

    found = scores(shape, w, X, np.zeros(6, dtype=int), np.zeros(6), entropy=0.7)
    np.testing.assert_allclose(found, 0.7 * differences(entropy, w), atol=1e-9)
    certain = np.array([800.0, 0.0, 0.0, 0.0])
    assert np.isfinite(scores(TWO_ARMS, certain, np.ones((1, 1)), [0], [1.0], entropy=1.0)).all()  # 0 log 0 is 0


def test_errors_of_a_baseline_have_their_gradient():
    shape = new_shape([2, 3, 1], ["tanh", "identity"])
    rng = np.random.default_rng(2)
    w, X, y = draw_parameters(shape, rng), rng.normal(size=(6, 2)), rng.normal(size=6)
    room, gradient = new_room(shape, 6), np.empty(n_parameters(shape))
    room.values[:12] = X.ravel()
    add_errors(shape, w, room, 6, y, gradient, UNMOVED)
    exact = differences(lambda v: 0.5 * ((plain_forward(shape, v, X)[1][:, 0] - y) ** 2).sum(), w)
    np.testing.assert_allclose(gradient, exact, atol=1e-8)


def test_returns_are_discounted_sums_to_the_end_of_the_episode():
    rewards, closed = np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    after, out = np.array([9.0, 10.0, 9.0, 0.0]), np.empty(4)
    returns_to_go(rewards, closed, after, 0.5, out)
    assert out.tolist() == [1 + 0.5 * (2 + 0.5 * 10), 2 + 0.5 * 10, 3 + 0.5 * 4, 4]


def test_draws_have_their_chances():
    chances = np.array([0.2, 0.0, 0.5, 0.3])
    u = (np.arange(1000) + 0.5) / 1000
    assert np.bincount([drawn(chances, x) for x in u], minlength=4).tolist() == [200, 0, 500, 300]
    assert drawn(np.array([0.3, 0.3]), 0.99) == 1  # sums that miss one by rounding
