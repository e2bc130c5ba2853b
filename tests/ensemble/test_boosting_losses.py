"""Losses of boosting: derivatives by differences, best constants by search, AdaBoost's weights."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from lemmata.ensemble.gradient_losses import Loss, best_step, weighted_quantile

CASES = [
    ("squared_error", 1),
    ("absolute_error", 1),
    ("quantile", 1),
    ("huber", 1),
    ("log_loss", 2),
    ("exponential", 2),
    ("log_loss", 3),
]


def drawn(name, n_classes, n=700, seed=0):
    rng = np.random.default_rng(seed)
    loss = Loss(name, n_classes, quantile=0.3, delta=0.7)
    y = rng.integers(0, n_classes, n).astype(float) if n_classes > 1 else rng.normal(size=n)
    return loss, y, rng.normal(size=(loss.n_scores, n)) * 2, rng


@pytest.mark.item("TRE-12")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_gradients_are_differences_of_the_loss(name, n_classes, weighted):
    loss, y, F, rng = drawn(name, n_classes)
    weight = rng.random(len(y)) if weighted else None
    g, h = np.empty(F.shape), np.empty(F.shape)
    assert loss.fill(y, F, weight, g, h) == pytest.approx(loss.total(y, F, weight), rel=1e-14)
    direction, step = rng.normal(size=F.shape), 1e-6
    difference = (loss.total(y, F + step * direction, weight) - loss.total(y, F - step * direction, weight)) / (2 * step)
    assert (g * direction).sum() == pytest.approx(difference, rel=1e-6)  # the square of the step, and rounding / step
    if not loss.flat:
        up, down = np.empty(F.shape), np.empty(F.shape)
        k = rng.integers(len(F))
        move = np.zeros(F.shape)
        move[k] = step
        loss.fill(y, F + move, weight, up, np.empty(F.shape))
        loss.fill(y, F - move, weight, down, np.empty(F.shape))
        np.testing.assert_allclose(h[k], (up - down)[k] / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.item("TRE-12")
def test_the_catalogues_minimizers():
    y = np.array([1.0] * 8 + [0.0] * 2)  # P(y = 1) = 0.8
    half = np.log(4) / 2
    assert half == pytest.approx(0.693147, abs=5e-7)
    assert Loss("exponential", 2).best_constant(y, None)[0] == pytest.approx(half, rel=1e-14)
    # The Bernoulli deviance log(1 + e^(−2yf)) has its argument doubled: our score is 2f.
    assert Loss("log_loss", 2).best_constant(y, None)[0] / 2 == pytest.approx(half, rel=1e-14)
    sign, f = 2 * y - 1, 0.37
    deviance = np.log1p(np.exp(-2 * sign * f)).sum()
    assert Loss("log_loss", 2).total(y, np.full((1, 10), 2 * f), None) == pytest.approx(deviance, rel=1e-14)
    wrong = minimize_scalar(lambda f: np.exp(-2 * sign * f).sum(), bracket=(0, 1), tol=1e-12).x
    assert wrong == pytest.approx(0.346574, abs=5e-7)  # the erratum: half of it


@pytest.mark.parametrize(("name", "n_classes"), CASES[:-1])
def test_best_constants_are_found_by_search(name, n_classes):
    loss, y, _, rng = drawn(name, n_classes)
    weight = rng.random(len(y))
    found = minimize_scalar(lambda c: loss.total(y, np.full((1, len(y)), c), weight), bracket=(-1, 1), tol=1e-12)
    ours = loss.total(y, np.full((1, len(y)), loss.best_constant(y, weight)[0]), weight)
    assert ours <= found.fun * (1 + 1e-12)


def test_best_constants_of_three_classes_are_logs_of_their_shares():
    y = np.array([0.0, 0, 0, 1, 1, 2])
    scores = Loss("log_loss", 3).best_constant(y, None)
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), [1 / 2, 1 / 3, 1 / 6], rtol=1e-14)


@pytest.mark.item("TRE-12")
def test_line_searches_of_the_exponential_loss_are_adaboost():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300) > 0).astype(int)
    peer = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=8).fit(X, y)
    F, loss = np.zeros((1, 300)), Loss("exponential", 2)
    for stump, alpha in zip(peer.estimators_, peer.estimator_weights_, strict=True):
        vote = 2.0 * stump.predict(X) - 1
        gamma = best_step(loss, y.astype(float), F, None, vote)
        assert gamma == pytest.approx(alpha / 2, rel=1e-9)  # SAMME counts twice α
        F[0] += gamma * vote


def test_a_direction_that_separates_moves_scores_so_far_and_no_further():
    y = np.array([0.0, 1.0])
    for size in (1e-9, 1.0, 1e9):
        step = best_step(Loss("log_loss", 2), y, np.zeros((1, 2)), None, size * (2 * y - 1))
        assert step * size == pytest.approx(16.0, rel=1e-12)


def test_quantiles_of_weights_are_those_of_repetition():
    rng = np.random.default_rng(4)
    x, weight = rng.normal(size=41), rng.integers(1, 5, 41)
    for q in (0.1, 0.5, 0.77):
        repeated = np.quantile(np.repeat(x, weight), q, method="averaged_inverted_cdf")
        assert weighted_quantile(x, weight.astype(float), q) == repeated
