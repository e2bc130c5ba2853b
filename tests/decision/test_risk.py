"""Conditional risks and Bayes actions against enumeration of all rules, and the umbrella of the lecture."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

import lemmata
from lemmata.decision import bayes_action, bayes_risk, conditional_risk, decision_cost
from lemmata.decision.risk import best_actions

UMBRELLA = [[0, 1], [5, 0]]  # take, leave × rain, dry


@pytest.mark.item("DEC-01")
def test_the_umbrella():
    rain = float(Fraction(3, 10) * Fraction(9, 10) / (Fraction(3, 10) * Fraction(9, 10) + Fraction(7, 10) * Fraction(4, 10)))
    assert rain == pytest.approx(0.490909, abs=5e-7)  # the digits printed
    risks = conditional_risk([rain, 1 - rain], UMBRELLA)
    np.testing.assert_allclose(risks, [0.509091, 2.454545], atol=5e-7)
    assert bayes_action([rain, 1 - rain], UMBRELLA, actions=["take", "leave"]) == "take"
    assert bayes_risk([rain, 1 - rain], UMBRELLA) == risks[0]


@pytest.mark.item("DEC-01")
@pytest.mark.parametrize("seed", range(20))
def test_no_deterministic_rule_has_a_lower_expected_cost(seed):
    rng = np.random.default_rng(seed)
    n_x, n_classes, n_actions = 4, rng.integers(2, 5), rng.integers(2, 5)
    joint = rng.dirichlet(np.ones(n_x * n_classes)).reshape(n_x, n_classes)
    costs = rng.normal(size=(n_actions, n_classes))
    posterior = joint / joint.sum(axis=1, keepdims=True)
    expected = {rule: sum(joint[x] @ costs[a] for x, a in enumerate(rule)) for rule in product(range(n_actions), repeat=n_x)}
    assert min(expected, key=expected.get) == tuple(bayes_action(posterior, costs))
    least = joint.sum(axis=1) @ bayes_risk(posterior, costs)
    assert least == pytest.approx(min(expected.values()), rel=1e-12)


@pytest.mark.item("DEC-02")
@pytest.mark.parametrize("seed", range(10))
def test_zero_one_costs_give_the_mode_of_the_posterior(seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(2, 9)
    posterior = np.vstack([rng.dirichlet(np.full(k, 0.3), 500), np.full((1, k), 1 / k)])  # and a tie of all
    np.testing.assert_allclose(conditional_risk(posterior), 1 - posterior, atol=1e-15)  # roundings of a sum
    np.testing.assert_array_equal(conditional_risk(posterior), conditional_risk(posterior, 1 - np.eye(k)))
    np.testing.assert_array_equal(bayes_action(posterior), posterior.argmax(axis=1))
    np.testing.assert_array_equal(bayes_action(posterior, 1 - np.eye(k)), posterior.argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_actions", "n_classes"), [(2, 2), (2, 5), (1, 3), (7, 4), (30, 30)])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_kernels_are_brute_force(n_actions, n_classes, dtype, n_threads):
    rng = np.random.default_rng(n_actions)
    posterior = rng.dirichlet(np.ones(n_classes), 70_000 if n_classes == 2 else 3000).astype(dtype)
    costs = rng.normal(size=(n_actions, n_classes))
    labels = np.array([f"action {a}" for a in range(n_actions)])
    expected = (posterior.astype(float) @ costs.T).argmin(axis=1)
    with lemmata.config(n_threads=n_threads):
        np.testing.assert_array_equal(best_actions(posterior, costs), expected)
        np.testing.assert_array_equal(best_actions(np.asfortranarray(posterior), costs, labels), labels[expected])
        each = rng.normal(size=(len(posterior), n_actions, n_classes))
        expected = (posterior[:, None].astype(float) * each).sum(axis=2).argmin(axis=1)
        np.testing.assert_array_equal(best_actions(posterior, each), expected)
        np.testing.assert_array_equal(best_actions(posterior, each[:, ::-1]), n_actions - 1 - expected)


@pytest.mark.parametrize("costs", [np.eye(2), np.eye(3)[:, :2], np.ones((1, 2)), np.ones((4, 2, 2))])
def test_equal_risks_go_to_the_first_action_and_nan_is_refused(costs):
    n = len(costs) if costs.ndim == 3 else 4
    assert not best_actions(np.full((n, 2), 0.5), np.ones_like(costs)).any()
    posterior = np.full((n, 2), 0.5)
    posterior[2] = np.nan
    with pytest.raises(ValueError, match="probabilities of a row are NaN"):
        best_actions(posterior, costs)


def test_a_metric_for_any_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.array(["dry", "rain"])[(X[:, 0] + rng.normal(size=300) > 0).astype(int)]
    costs = np.array([[0.0, 5.0], [1.0, 0.0]])
    model = GaussianNB().fit(X, y)
    taken = model.predict(X)
    brute = np.mean(
        [costs[list(model.classes_).index(a), list(model.classes_).index(k)] for a, k in zip(taken, y, strict=True)]
    )
    assert decision_cost(y, taken, costs) == pytest.approx(brute, rel=1e-14)
    assert decision_cost(y, taken) == pytest.approx(1 - accuracy_score(y, taken))
    weight = rng.integers(0, 3, 300)
    assert decision_cost(y, taken, costs, sample_weight=weight) == pytest.approx(
        decision_cost(np.repeat(y, weight), np.repeat(taken, weight), costs)
    )
    each = np.broadcast_to(costs, (300, 2, 2))
    assert decision_cost(y, taken, each) == pytest.approx(brute, rel=1e-14)
    scorer = make_scorer(decision_cost, greater_is_better=False, costs=costs, classes=["dry", "rain"])
    assert (cross_val_score(GaussianNB(), X, y, scoring=scorer) < 0).all()
    taken = np.where(rng.random(300) < 0.2, "?", taken)
    refused = taken == "?"
    expected = (decision_cost(y[~refused], taken[~refused], costs) * (~refused).sum() + 0.3 * refused.sum()) / 300
    assert decision_cost(y, taken, costs, reject_cost=0.3, reject_label="?") == pytest.approx(expected)
    assert decision_cost(y, np.full(300, "?"), reject_cost=0.3, reject_label="?") == pytest.approx(0.3)
    with pytest.raises(ValueError, match=r"action taken is \?, which is not an action"):
        decision_cost(y, taken, costs)
    with pytest.raises(ValueError, match="y holds the label snow"):
        decision_cost(["snow"], ["dry"], costs, classes=["dry", "rain"])


@pytest.mark.parametrize("names", [["rain", "dry"], ["dry", "rain"]])
def test_the_names_of_a_frame_decide_which_cost_is_which(names):
    costs = pd.DataFrame({"dry": [1, 0], "rain": [0, 5]}, index=["take", "leave"])[names]
    given = {"classes": ["dry", "rain"], "actions": ["leave", "take"]}
    assert decision_cost(["rain", "dry", "dry"], ["leave", "take", "leave"], costs, **given) == 2.0
    with pytest.raises(ValueError, match=r"columns of costs are \['dry', 'snow'\], and the classes are \['dry', 'rain'\]"):
        decision_cost(["rain"], ["take"], costs[["dry", "rain"]].rename(columns={"rain": "snow"}), **given)


def test_unsorted_labels_are_found():
    costs = [[1, 2], [3, 4], [5, 6]]
    taken = decision_cost(["b", "a"], ["z", "x"], costs, classes=["b", "a"], actions=["z", "x", "y"])
    assert taken == (1 + 4) / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conditional_risk([0.5, 0.6]), "each row summing to one"),
        (lambda: conditional_risk([1.5, -0.5]), "none negative"),
        (lambda: conditional_risk([np.nan, 1.0]), "none negative or NaN"),
        (lambda: conditional_risk(np.ones((0, 2))), r"got \(0, 2\)"),
        (lambda: conditional_risk([0.5, 0.5], np.ones((2, 3))), r"\(actions, 2\).*got \(2, 3\)"),
        (lambda: conditional_risk([0.5, 0.5], [1, 2]), r"a column for each class.*got \(2,\)"),
        (lambda: conditional_risk([0.5, 0.5], np.ones((3, 2, 2))), "3 matrices for 1 rows"),
        (lambda: conditional_risk([0.5, 0.5], np.ones((0, 2))), "at least one action"),
        (lambda: conditional_risk([0.5, 0.5], [[0, np.nan], [1, 0]]), "costs hold NaN"),
        (lambda: conditional_risk([0.5, 0.5], [["a", "b"]]), "costs must be numbers"),
        (lambda: bayes_action([0.5, 0.5], actions=["one"]), "2 actions in costs"),
        (lambda: decision_cost([1, 0], [1]), "one class and one action for each row"),
        (lambda: decision_cost([1, 0], [1, 2], actions=[1, 2, 3]), "costs"),
        (lambda: decision_cost([0, 0], [1, 1], UMBRELLA), r"the labels of y, \[0\]; if it lacks some, give classes="),
        (lambda: decision_cost(["a", "b"], ["a", "c"]), r"c, which is not an action: \['a', 'b'\]"),
        (lambda: decision_cost([0, 1], [1, 1], sample_weight=[0, 0]), "none negative and one positive"),
        (lambda: decision_cost([0, 1], [1, 1], sample_weight=[-1, 2]), "none negative and one positive"),
        (lambda: decision_cost([0, 1], [1, 1], sample_weight=[1]), "sample_weight must be 2 finite numbers"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
