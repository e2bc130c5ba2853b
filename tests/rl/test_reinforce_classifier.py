"""Labels from rewards: visits by hand, weights, rewards that are not symmetric, and tables that are learned."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.xoshiro import next_uniform
from lemmata.core.xoshiro import seed as words
from lemmata.neural_network.network import plain_forward
from lemmata.optimize import Adam, GradientDescent
from lemmata.rl import ReinforceClassifier
from lemmata.rl.reward_epochs import RECENT, visits_in
from rl.naive import Interrupt


def rows(n=40, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 5.0] + [3.0, -2.0]
    return X, np.minimum(np.digitize(X[:, 0] - X[:, 1] / 5, [2.5, 4.0]), K - 1)


def by_hand(X, y, weight, K, batch, max_iter, eta, seed):
    """Run the epochs of a linear policy without shuffling, in plain Python."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight)
    mean = w @ X / w.sum()
    Z = (X - mean) / np.sqrt(w @ (X - mean) ** 2 / w.sum())
    stream = words(np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[1]))
    W, b, running, count = np.zeros((2, K)), np.zeros(K), 0.0, 0
    visits = [(i, min(1.0, w[i] - k)) for i in range(len(X)) for k in range(int(np.ceil(w[i])))]
    for _ in range(max_iter):
        for start in range(0, len(visits), batch):
            part = visits[start : start + batch]
            up, rise, earned, mass = np.zeros((2, K)), np.zeros(K), 0.0, 0.0
            for i, share in part:
                score = Z[i] @ W + b
                p = np.exp(score - score.max())
                p /= p.sum()
                a = min(int(np.searchsorted(np.cumsum(p), next_uniform(stream), side="right")), K - 1)
                r = float(a == y[i])
                slope = share * (r - running) * ((np.arange(K) == a) - p)
                up, rise, earned, mass = up + np.outer(Z[i], slope), rise + slope, earned + share * r, mass + share
            W, b = W + eta * up / mass, b + eta * rise / mass
            count = min(count + 1, RECENT)
            running += (earned / mass - running) / count
    return np.concatenate([W.ravel(), b])


@pytest.mark.item("RLN-01", "RLN-02")
@pytest.mark.parametrize("weight", [None, np.tile([1.0, 2.0, 0.5, 3.25], 10)])
def test_visits_are_those_of_the_formula(weight):
    X, y = rows()
    options = {"rule": GradientDescent(0.3), "batch_size": 7, "max_iter": 4, "shuffle": False, "random_state": 1}
    model = ReinforceClassifier(**options).fit(X, y, sample_weight=weight)
    expected = by_hand(X, y, weight, 3, 7, 4, 0.3, model.seed_)
    np.testing.assert_allclose(model.parameters_, expected, rtol=1e-9, atol=1e-12)  # other sums of the same numbers


def test_visits_of_weights():
    order, share = visits_in(np.array([3, 2, 1, 0]), np.array([1.0, 2.5, 0.25, 3.0]))
    assert order.tolist() == [3, 3, 3, 2, 1, 1, 1, 0]
    assert share.tolist() == [1.0, 1.0, 1.0, 0.25, 1.0, 1.0, 0.5, 1.0]
    order, share = visits_in(np.array([0, 1, 2]), np.array([2.5, 0.0, 1.0]))  # nobody comes to a row of no weight
    assert order.tolist() == [0, 0, 0, 2]
    assert share.tolist() == [1.0, 1.0, 0.5, 1.0]


def test_the_expected_reward_is_that_of_the_policy():
    X, y = rows()
    R = np.array([[1.0, -2.0, 0.0], [0.5, 3.0, 0.0], [0.0, 0.0, 1.0]])
    weight = np.arange(1, 41) / 7
    model = ReinforceClassifier((4,), reward=R, max_iter=5, random_state=0).fit(X, y, sample_weight=weight)
    chances = model.predict_proba(X)
    expected = (weight * (chances * R.T[y]).sum(axis=1)).sum() / weight.sum()
    assert model.expected_reward_ == pytest.approx(expected, rel=1e-12)
    Z = (X - model.mean_) / model.scale_
    np.testing.assert_allclose(chances, plain_forward(model._shape(), model.parameters_, Z)[1], rtol=1e-12)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("hidden", [(), (16,)])
def test_tables_are_learned_without_a_label(load, hidden):
    X, y = load(return_X_y=True)
    model = ReinforceClassifier(hidden, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.expected_reward_ > 0.9
    assert model.trace_[-10:].mean() > model.trace_[:3].mean()
    assert model.certify(X, y).holds


@pytest.mark.parametrize(("hidden", "entropy"), [((), 0.0), ((32,), 0.0), ((64, 64), 0.05)])
def test_no_digit_is_forgotten(hidden, entropy):
    """With longer steps, a network is soon certain of some labels, and no longer tries the others."""
    X, y = load_digits(return_X_y=True)
    for seed in range(3):
        model = ReinforceClassifier(hidden, entropy=entropy, random_state=seed).fit(X[:1200], y[:1200])
        assert set(model.predict(X[1200:])) == set(range(10))
        assert model.score(X[1200:], y[1200:]) > 0.8


def test_rewards_decide_what_is_learned():
    X, y = rows(K=2)
    labels = np.array(["ham", "spam"])[y]
    perverse = ReinforceClassifier(reward=[[0.0, 1.0], [1.0, 0.0]], random_state=0).fit(X, labels)
    assert (perverse.predict(X) != labels).mean() > 0.9
    timid = ReinforceClassifier(
        reward=lambda chosen, right: 1.0 if chosen == "ham" else 0.5 * (right == "spam"), random_state=0
    )
    assert set(timid.fit(X, labels).predict(X)) == {"ham"}  # nothing can go wrong with it
    assert timid.reward_.tolist() == [[1.0, 1.0], [0.0, 0.5]]


def test_a_baseline_helps_where_rewards_are_far_from_zero():
    X, y = load_iris(return_X_y=True)
    R = 20.0 + np.eye(3)
    options = {"reward": R, "rule": GradientDescent(0.5), "max_iter": 30, "random_state": 0}
    with_it, without = (ReinforceClassifier(baseline=b, **options).fit(X, y).score(X, y) for b in (True, False))
    assert with_it > without + 0.1


def test_units_of_columns_do_not_matter():
    X, y = rows()
    one = ReinforceClassifier((3,), max_iter=10, random_state=0).fit(X, y).predict_proba(X)
    other = ReinforceClassifier((3,), max_iter=10, random_state=0).fit(X * [1e-6, 1e6] + [5.0, -1e6], y)
    np.testing.assert_allclose(other.predict_proba(X * [1e-6, 1e6] + [5.0, -1e6]), one, atol=1e-3)  # digits lost to the offset


def test_a_wrong_gradient_is_refused(monkeypatch):
    X, y = rows()
    model = ReinforceClassifier(max_iter=5, random_state=0).fit(X, y)
    assert model.certify(X, y)["mean of the steps"].value < 1e-8
    from lemmata.rl import reinforce_classifier

    monkeypatch.setattr(reinforce_classifier, "mean_score", lambda *given: 1.01 * np.ones(len(model.parameters_)))
    assert not model.certify(X, y).holds


def test_an_interrupted_fit_keeps_the_last_epoch_and_repeats_what_ran():
    X, y = rows()
    model = ReinforceClassifier(learning_rate=10.0, max_iter=6, random_state=0)  # so long that epochs get worse
    whole = clone(model).fit(X, y)
    for at in range(2, 6):
        with pytest.warns(ConvergenceWarning, match="was interrupted"):
            cut = clone(model).set_callbacks(Interrupt(at)).fit(X, y)
        assert np.array_equal(cut.trace_, whole.trace_[: at - 1])
        assert cut.certify(X, y).holds
        assert np.array_equal(cut.parameters_, clone(model).set_params(max_iter=at - 1).fit(X, y).parameters_)


def test_clear_errors():
    X, y = rows()
    with pytest.raises(ValueError, match="reward must have 3 rows and 3 columns of finite numbers"):
        ReinforceClassifier(reward=np.eye(2)).fit(X, y)
    with pytest.raises(ValueError, match="reward must have 3 rows and 3 columns"):
        ReinforceClassifier(reward=np.full((3, 3), np.nan)).fit(X, y)
    for wrong in ([[1, 2], [3]], [["a", "b"]], lambda chosen, right: None, lambda chosen, right: [1.0, 2.0]):
        with pytest.raises(ValueError, match="reward must have 3 rows and 3 columns"):
            ReinforceClassifier(reward=wrong).fit(X, y)
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        ReinforceClassifier((0,)).fit(X, y)
    with pytest.raises(ValueError, match="left the numbers in epoch"), np.errstate(all="ignore"):
        ReinforceClassifier((4, 4), "identity", reward=1e300 * np.eye(3), rule=GradientDescent(1e300)).fit(X, y)
    model = ReinforceClassifier(rule=Adam(0.01), max_iter=2).fit(X, y)
    model.parameters_ = model.parameters_[:-1]
    with pytest.raises(ValueError, match="not that of a fit"):
        model.predict(X)
