"""Bayes nets: what is given is checked, and what is asked is answered."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lemmata
from graphical.models import random_net
from lemmata.graphical import BayesNet

RAIN = {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BayesNet({"a": ["b"], "b": ["c"], "c": ["a"]}).variables, "cycle: a → c → b → a|cycle: .* → "),
        (lambda: BayesNet({"a": ["a"]}).variables, "cycle: a → a"),
        (lambda: BayesNet({}).variables, "at least one variable"),
        (lambda: BayesNet({"a": ["b", "b"]}).variables, "parent twice"),
        (lambda: BayesNet({"a": []}, {}).marginals(), "no table for 'a'"),
        (lambda: BayesNet({"a": []}, {"a": [0.5, 0.6]}).marginals(), "miss it by 0.1"),
        (lambda: BayesNet({"a": []}, {"a": 0.5}).marginals(), "axis for its own states"),
        (lambda: BayesNet({"a": [], "b": ["a"]}, {"a": [0.5, 0.5], "b": [0.5, 0.5]}).marginals(), r"shape \(2, 2\)"),
        (lambda: BayesNet({"b": "ab"}).variables, "a list of names"),
        (lambda: BayesNet({"a": []}, {"a": [1.0], "b": [1.0]}).marginals(), "no variable of the net"),
        (lambda: BayesNet({"a": []}, {"a": [0.5, 0.5]}, {"a": ["x"]}).marginals(), "2 states and there are 1 labels"),
        (lambda: BayesNet({"a": [], "b": ["a"]}, {"a": [1.0], "b": [[1.0], [1.0]]}).marginals(), r"shape \(1, 1\)"),
        (lambda: BayesNet({"a": []}, {"a": [0.5, 0.5]}, {"a": ["x", "x"]}).marginals(), "all different"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_net_without_tables_is_not_fitted():
    with pytest.raises(NotFittedError, match="give them, or fit"):
        BayesNet({"a": []}).marginals()


@pytest.mark.item("GRM-01")
def test_certificate_of_a_given_net():
    net = random_net(1)
    assert net.certify(assignment=net.map()).holds
    assert net.certify()["rows"].value < 1e-12
    arrows = [(parent, child) for child, above in net.parents_.items() for parent in above]
    assert {child for _, child in arrows} == {child for child, above in net.parents_.items() if above}


def test_rows_that_do_not_sum_to_one_are_refused():
    certificate = BayesNet({"a": []}, {"a": [0.505, 0.5]}).certify()
    assert not certificate.holds
    assert abs(certificate["rows"].value - 0.005) < 1e-12


def test_arrows_or_parents():
    net = BayesNet([("rain", "wet")], RAIN)
    assert net.parents_ == {"rain": (), "wet": ("rain",)}
    np.testing.assert_allclose(
        net.marginals({"wet": 1})["rain"], BayesNet({"wet": ["rain"]}, RAIN).marginals({"wet": 1})["rain"]
    )


def test_parameters_can_be_cloned_set_and_saved(tmp_path):
    net = BayesNet([("rain", "wet")], RAIN, {"rain": ["no", "yes"]})
    expected = net.marginals({"wet": 1})["rain"]
    np.testing.assert_array_equal(clone(net).marginals({"wet": 1})["rain"], expected)
    net.save(tmp_path / "rain.lemmata")
    np.testing.assert_array_equal(lemmata.load(tmp_path / "rain.lemmata").marginals({"wet": 1})["rain"], expected)
    net.set_params(tables={"rain": [0.5, 0.5], "wet": RAIN["wet"]})
    np.testing.assert_allclose(net.marginals({"wet": 1})["rain"], [0.1 / 1.05, 0.95 / 1.05])
    assert net.map({"wet": 1}) == {"rain": "yes", "wet": 1}


def test_draws_have_the_labels():
    net = BayesNet([("rain", "wet")], RAIN, {"rain": ["no", "yes"]})
    drawn = net.sample(2000, random_state=0)
    assert set(drawn["rain"]) == {"no", "yes"}
    assert abs((drawn["rain"] == "yes").mean() - 0.2) < 0.03  # three standard errors
    given = net.sample(2000, {"wet": 1}, random_state=0)
    assert set(given["wet"]) == {1}
    assert abs((given["rain"] == "yes").mean() - 0.19 / 0.27) < 0.03
    np.testing.assert_array_equal(drawn["wet"], net.sample(2000, random_state=0)["wet"])


def test_barren_nodes_do_not_matter():
    net = random_net(9, n=8)
    from lemmata.graphical.variable_elimination import query, relevant_factors

    leaf = next(name for name in net.variables if all(name not in above for above in net.parents_.values()))
    others = [name for name in net.variables if name != leaf]
    assert len(relevant_factors(net, {others[0]})) < len(net.variables)
    for name in others:
        np.testing.assert_allclose(query(net, [name]).values, net.marginals()[name], atol=1e-13)


def test_a_net_that_is_not_right_can_still_be_shown():
    assert repr(BayesNet({"a": ["a"]}, {"a": [1.0]})).startswith("BayesNet(parents=")
