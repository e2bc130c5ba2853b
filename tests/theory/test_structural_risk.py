"""Structural risk minimization: the smallest bound of a hierarchy, proved, pruned and kept in simulation."""

import pickle
from copy import deepcopy

import numpy as np
import pytest

from lemmata.linear_model import LogisticRegression
from lemmata.theory.bounds.growth import log_cover
from lemmata.theory.bounds.holdout import clopper_pearson_interval
from lemmata.theory.bounds.uniform import hypergeometric_bound
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.learnability import Hierarchy, first_class, srm_weights, telescoping
from lemmata.theory.risk import FiniteDistribution, predicted
from lemmata.theory.step_functions import log_steps
from lemmata.theory.structural_risk import (
    EstimatorClass,
    StructuralRiskMinimizer,
    search,
    structural_risk_minimization,
)


def bands(n, seed, noise=0.1, columns=3):
    """Draw rows whose label depends on two cuts of the second column, with flipped labels; the Bayes error is the noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, columns))
    y = (np.abs(X[:, 1]) < 0.5) ^ (rng.random(n) < noise)
    return X, y.astype(int)


def nested(seed, k=6, sizes=(2, 6, 20, 40)):
    """Finite classes on k points, each within the next."""
    rng = np.random.default_rng(seed)
    table = np.unique(rng.random((300, k)) < 0.5, axis=0)
    table = table[rng.permutation(len(table))]
    return Hierarchy([(FiniteClass(table[:size]), 1) for size in sizes]), rng


@pytest.mark.item("LRN-29")
@pytest.mark.parametrize("seed", range(8))
def test_selected_bound_is_the_smallest_of_all_hypotheses(seed):
    hierarchy, rng = nested(seed)
    law = FiniteDistribution(np.arange(6), label_probabilities=rng.random(6).tolist())
    X, y = law.sample(int(rng.integers(5, 400)), rng)
    m = len(y)
    found = structural_risk_minimization(hierarchy, X, y, 0.1)
    table, number = first_class(hierarchy, np.arange(6))
    objective = [(row[X] != y).mean() + hierarchy.penalty(n, m, 0.1) for row, n in zip(table, number, strict=True)]
    assert found.bound == pytest.approx(min(objective), rel=1e-12)
    assert all(found.bound <= value + 1e-12 for value in objective)
    assert found.bound == pytest.approx(min(found.bounds))
    assert found.empirical == (predicted(found.hypothesis, X) != y).mean()
    # classes passed over: their penalty alone is no smaller
    assert all(hierarchy.penalty(n, m, 0.1) >= found.bound for n in range(len(found.bounds) + 1, len(hierarchy) + 1))


@pytest.mark.item("LRN-29")
def test_the_bound_holds_and_the_competitor_is_reached():
    """At the non-uniform sample size of h, the risk is within ε of that of h with probability 1 − δ, for each h."""
    hierarchy, rng = nested(3, sizes=(2, 8))
    delta, accuracy, trials = 0.2, 0.35, 200
    law = FiniteDistribution(np.arange(6), label_probabilities=rng.random(6).tolist())
    table, number = first_class(hierarchy, np.arange(6))
    risks = np.array([float(r) for r in law.risks(table)])
    for n in (1, 2):
        m = hierarchy.sample_size(n, accuracy, delta)
        w = srm_weights(2)[n - 1]
        assert hierarchy.penalty(n, m, delta) <= accuracy / 2  # m(h, ε, δ) = m_n(ε/2, w(n) δ)
        assert m == int(np.ceil(np.log(2 * (2, 8)[n - 1] / (w * delta)) / (2 * (accuracy / 2) ** 2)))
        misses, broken = 0, 0
        for _ in range(trials):
            found = structural_risk_minimization(hierarchy, *law.sample(m, rng), delta)
            risk = float(law.risks([found.hypothesis])[0])
            misses += risk > risks[number <= n].min() + accuracy  # L_D(A(S)) ≤ L_D(h) + ε
            broken += risk > found.bound
        assert clopper_pearson_interval(misses, trials, 0.01)[1] <= delta
        assert clopper_pearson_interval(broken, trials, 0.01)[1] <= delta


@pytest.mark.item("LRN-29")
def test_search_prunes_only_what_cannot_win():
    rng = np.random.default_rng(0)
    for _ in range(200):
        k = int(rng.integers(1, 8))
        errors, penalties = rng.integers(0, 50, k), rng.integers(0, 50, k)  # in any order, with ties
        looked = []

        def errors_of(c, errors=errors, looked=looked):
            looked.append(c)
            return int(errors[c])

        best, found, bounds = search(k, errors_of, lambda c, e, penalties=penalties: int(penalties[c]) + e)
        objective = errors + penalties
        assert best == objective.argmin()
        assert looked == list(range(len(found)))
        assert bounds == objective[: len(bounds)].tolist()
        assert all(penalties[len(bounds) :] >= objective.min())
    assert len(search(5, [10, 0, 0, 0, 0].__getitem__, lambda c, e: e + 20 * c)[1]) == 1


@pytest.mark.item("LRN-29")
@pytest.mark.parametrize("seed", range(3))
def test_estimator_minimizes_the_bound_over_the_hierarchy(seed):
    X, y = bands(400, seed)
    model = StructuralRiskMinimizer(classes=6, delta=0.1).fit(X, y)
    assert (model.class_index_, model.column_, model.first_class_) == (2, 1, 0)
    np.testing.assert_allclose(np.abs(model.cuts_), 0.5, atol=0.05)
    assert model.score(X, y) == 1 - model.errors_[2] / 400
    w = srm_weights(6)
    expected = [
        hypergeometric_bound(int(e), 400, lambda m, c=c: log_steps(m, 3, c), 0.1 * w[c]) for c, e in enumerate(model.errors_)
    ]
    np.testing.assert_allclose(model.bounds_, expected)
    assert model.risk_bound_ == min(expected)
    assert model.certify(X, y).holds
    # the whole hierarchy, without pruning
    for c in range(len(model.bounds_), 6):
        assert hypergeometric_bound(0, 400, lambda m, c=c: log_steps(m, 3, c), 0.1 * w[c]) >= model.risk_bound_


@pytest.mark.item("LRN-29")
def test_the_bound_of_the_estimator_holds_in_simulation():
    """The risk of a step function of the second column under `bands` is an integral of known lengths."""
    trials, broken, tightness = 60, 0, []
    for seed in range(trials):
        model = StructuralRiskMinimizer(classes=4, delta=0.1).fit(*bands(120, seed))
        if model.column_ == 1 or not len(model.cuts_):
            edges = np.concatenate([[-1.0], model.cuts_, [1.0]])
            grid = np.union1d(np.clip(edges, -1, 1), [-0.5, 0.5])
            middle = (grid[1:] + grid[:-1]) / 2
            said = (model.first_class_ + np.searchsorted(model.cuts_, middle, side="right")) % 2
            wrong = ((said == 1) != (np.abs(middle) < 0.5)) @ np.diff(grid) / 2
            risk = 0.1 + 0.8 * wrong
        else:
            risk = 0.5  # a column that has nothing to do with the label
        broken += risk > model.risk_bound_
        tightness.append(model.risk_bound_ - risk)
    assert clopper_pearson_interval(broken, trials, 0.01)[0] <= 0.1
    assert broken == 0
    assert np.median(tightness) < 0.4


def test_more_rows_allow_richer_classes():
    chosen = []
    for n in (20, 200, 3000):
        rng = np.random.default_rng(1)
        x = rng.random((n, 1))
        y = (np.sin(10 * np.pi * x[:, 0]) > 0) ^ (rng.random(n) < 0.05)
        chosen.append(StructuralRiskMinimizer().fit(x, y).class_index_)
    assert chosen == sorted(chosen)
    assert chosen[0] < chosen[-1] == 9  # sin(10πx) changes its sign nine times


@pytest.mark.item("LRN-29")
def test_certificate_refuses_what_is_not_the_minimum():
    X, y = bands(300, 5)
    model = StructuralRiskMinimizer().fit(X, y)

    def refused(check, **changes):
        twin = deepcopy(model)
        for name, value in changes.items():
            setattr(twin, name, value)
        certificate = twin.certify(X, y)
        assert check in [c.name for c in certificate.failed], str(certificate)

    refused("hypothesis", first_class_=1 - model.first_class_)
    refused("hypothesis", first_class_=model.first_class_ + 2)
    refused("hypothesis", column_=99)
    refused("hypothesis", class_index_=1)
    refused("choice", class_index_=3)
    refused("cuts", cuts_=model.cuts_ + 1e-4)
    refused("cuts", cuts_=model.cuts_ + 100.0)
    refused("fewest errors", errors_=model.errors_ + 1)
    refused("bounds", bounds_=model.bounds_ * 0.99)
    refused("choice", risk_bound_=model.risk_bound_ - 0.01)
    # a fit that stopped too early: all that it says of class 0 and 1 is right, and class 2 was not looked at
    early = StructuralRiskMinimizer(classes=2).fit(X, y)
    early.set_params(classes=16)
    assert [c.name for c in early.certify(X, y).failed] == ["passed over"]
    # a constant is a function of no column
    constant = StructuralRiskMinimizer(classes=1).fit(X, y)
    assert constant.certify(X, y).holds
    constant.column_ = 1
    assert not constant.certify(X, y).holds


def test_fractional_weights_are_rounded_against_us():
    X, y = bands(200, 0)
    model = StructuralRiskMinimizer().fit(X, y, sample_weight=np.full(200, 1.5))
    whole = StructuralRiskMinimizer().fit(X, y)
    np.testing.assert_allclose(model.errors_[: len(whole.errors_)], 1.5 * whole.errors_[: len(model.errors_)])
    w = srm_weights(16)
    expected = hypergeometric_bound(int(np.ceil(model.errors_[2])), 300, lambda m: log_steps(m, 3, 2), 0.05 * w[2])
    assert model.bounds_[2] == expected
    assert model.certify(X, y, sample_weight=np.full(200, 1.5)).holds
    tenths = StructuralRiskMinimizer().fit(X, y, sample_weight=np.full(200, 0.1))
    assert tenths.certify(X, y, sample_weight=np.full(200, 0.1)).holds
    with pytest.raises(ValueError, match="less than one row"):
        StructuralRiskMinimizer().fit(X, y, sample_weight=np.full(200, 1e-3))


def test_weights_of_classes():
    X, y = bands(300, 2)
    flat = StructuralRiskMinimizer(classes=4, weights=[0.25] * 4).fit(X, y)
    early = StructuralRiskMinimizer(classes=4, weights=telescoping).fit(X, y)
    never = StructuralRiskMinimizer(classes=4, weights=[0.5, 0.5, 0.0, 0.0]).fit(X, y)
    assert flat.class_index_ == early.class_index_ == 2
    assert never.class_index_ < 2
    for model in (flat, early, never):
        assert model.certify(X, y).holds
    with pytest.raises(ValueError, match="sum to at most 1"):
        StructuralRiskMinimizer(classes=2, weights=[0.9, 0.9]).fit(X, y)


def test_listed_classes_and_estimators():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(400, 1))
    y = np.where((np.abs(x[:, 0]) < 0.4) ^ (rng.random(400) < 0.05), "b", "a")
    model = StructuralRiskMinimizer(classes=[Thresholds(), Intervals()]).fit(x, y)
    assert model.class_index_ == 1
    assert (model.predict(x) != y).sum() == model.errors_[1]
    certificate = model.certify(x, y)
    assert certificate.holds
    assert certificate.kind == "proof"
    other = deepcopy(model)
    other.hypothesis_ = Intervals().erm(x + 0.3, y == "b").hypothesis
    assert not other.certify(x, y).holds
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))

    lines = [EstimatorClass(LogisticRegression(C=c), lambda m: log_cover(m, 1)) for c in (1.0, 10.0)]
    fitted = StructuralRiskMinimizer(classes=lines).fit(x, y)
    certificate = fitted.certify(x, y)
    assert certificate.holds
    assert certificate.kind == "local"
    assert fitted.risk_bound_ > model.risk_bound_
    # a new fit leaves nothing of the one before
    again = model.set_params(classes=None).fit(x, y)
    assert not hasattr(again, "hypothesis_")
    assert len(again.cuts_) == 2
    assert again.certify(x, y).holds
    with pytest.raises(ValueError, match="list of classes is empty"):
        StructuralRiskMinimizer(classes=[]).fit(x, y)
