"""The categorical mixture: against brute force over all rows, an EM written out in NumPy, and the Bernoulli mixture."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multinomial
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import CategoricalNB

from lemmata.mixture import BernoulliMixture, CategoricalMixture

NAN = float("nan")
SIZES = (3, 2, 4)


def chances(seed, k=2, sizes=SIZES):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(size), k) for size in sizes]


def table(seed=0, n=200, k=2, sizes=SIZES, holes=0.0):
    rng = np.random.default_rng(seed)
    truth, label = chances(seed + 50, k, sizes), rng.integers(k, size=n)
    X = np.array([[rng.choice(len(p[z]), p=p[z]) for p in truth] for z in label], dtype=float)
    X[0] = np.array(sizes) - 1  # every code is seen
    X[1:][rng.random((n - 1, len(sizes))) < holes] = NAN
    return X


def log_joint(X, weights, probabilities):
    """Row by row, category by category."""
    logs = np.tile(np.log(weights), (len(X), 1))
    for i, row in enumerate(X):
        for x, p in zip(row, probabilities, strict=True):
            if not np.isnan(x):
                logs[i] += np.log(p[:, int(x)])
    return logs


def every(sizes=SIZES):
    return np.array(list(product(*map(range, sizes))), dtype=float)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_iterates_are_those_of_em_written_out(holes, alpha):
    X, weights, p = table(holes=holes), np.array([0.3, 0.7]), chances(1)
    with pytest.warns(ConvergenceWarning):
        model = CategoricalMixture(
            2, alpha=alpha, weights_init=weights, probabilities_init=p, acceleration=None, tol=0.0, max_iter=12
        ).fit(X)
    trace = []
    for _ in range(12):
        logs = log_joint(X, weights, p)
        density = logsumexp(logs, axis=1)
        trace.append(density.mean() + alpha * sum(np.log(column).sum() for column in p) / len(X))
        r = np.exp(logs - density[:, None])
        weights = r.mean(axis=0)
        counts = [np.stack([r[X[:, j] == c].sum(axis=0) for c in range(size)], axis=1) + alpha for j, size in enumerate(SIZES)]
        p = [column / column.sum(axis=1, keepdims=True) for column in counts]
    np.testing.assert_allclose(model.trace_, trace, rtol=1e-12)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-11)
    for ours, theirs in zip(model.probabilities_, p, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert (np.diff(model.trace_) > 0).all()


@pytest.mark.item("CLU-09")
def test_the_density_sums_to_one_and_the_posterior_is_bayes_rule():
    model = CategoricalMixture(2, random_state=0, alpha=0.1).fit(table())
    rows = every()
    density = np.exp(model.score_samples(rows))
    assert density.sum() == pytest.approx(1.0, rel=1e-13)
    for k in range(2):
        part = CategoricalMixture().fit(rows)
        part.probabilities_ = [p[[k]] for p in model.probabilities_]
        assert np.exp(part.score_samples(rows)).sum() == pytest.approx(1.0, rel=1e-13)
        one_hot = [
            multinomial.logpmf(np.eye(s)[rows[:, j].astype(int)], 1, p[k])
            for j, (s, p) in enumerate(zip(SIZES, model.probabilities_, strict=True))
        ]
        np.testing.assert_allclose(part.score_samples(rows), sum(one_hot), rtol=1e-11)
    logs = log_joint(rows, model.weights_, model.probabilities_)
    posterior = model.predict_proba(rows)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(posterior, np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), rtol=1e-11)


@pytest.mark.item("CLU-09")
def test_a_simulation_has_the_density_of_the_mixture():
    model = CategoricalMixture(2, random_state=3).fit(table())
    model.weights_, model.probabilities_ = np.array([0.3, 0.7]), chances(9)
    model.probabilities_[0] = np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])
    X, components = model.sample(100_000)
    rows = every()
    share = np.array([(row == X).all(axis=1).mean() for row in rows])
    density = np.exp(model.score_samples(rows))
    assert (np.abs(share - density) <= 5 * np.sqrt(density * (1 - density) / len(X))).all()
    assert abs(components.mean() - 0.7) < 5 * np.sqrt(0.21 / len(X))
    for j, p in enumerate(model.probabilities_):
        marginal = model.weights_ @ p
        found = np.bincount(X[:, j], minlength=SIZES[j]) / len(X)
        assert (np.abs(found - marginal) <= 5 * np.sqrt(marginal * (1 - marginal) / len(X))).all()


def test_a_missing_entry_is_summed_out():
    model = CategoricalMixture(2, random_state=0).fit(table(holes=0.1))
    completions = np.array([[1.0, b, c] for b in range(2) for c in range(4)])
    density = np.exp(model.score_samples(completions))
    assert np.exp(model.score_samples([[1.0, NAN, NAN]])[0]) == pytest.approx(density.sum(), rel=1e-12)
    expected = density @ model.predict_proba(completions) / density.sum()
    np.testing.assert_allclose(model.predict_proba([[1.0, NAN, NAN]])[0], expected, rtol=1e-11)
    np.testing.assert_allclose(model.predict_proba([[NAN] * 3])[0], model.weights_, rtol=1e-14)


def test_two_categories_are_a_bernoulli_mixture():
    X, heads = table(sizes=(2, 2, 2)), np.random.default_rng(0).uniform(0.2, 0.8, (2, 3))
    init = [np.stack([1 - heads[:, j], heads[:, j]], axis=1) for j in range(3)]
    model = CategoricalMixture(2, probabilities_init=init).fit(X)
    other = BernoulliMixture(2, probabilities_init=heads).fit(X)
    assert model.lower_bound_ == pytest.approx(other.lower_bound_, abs=1e-8)
    np.testing.assert_allclose([p[:, 1] for p in model.probabilities_], other.probabilities_.T, atol=1e-4)
    assert model.bic(X) == pytest.approx(other.bic(X), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_one_component_is_one_class_of_naive_bayes(alpha):
    X = table()
    model = CategoricalMixture(alpha=alpha).fit(X)
    peer = CategoricalNB(alpha=alpha).fit(X, np.zeros(len(X)))
    for ours, theirs in zip(model.probabilities_, peer.feature_log_prob_, strict=True):
        np.testing.assert_allclose(np.log(ours), theirs, rtol=1e-12)


def test_one_component_is_the_frequency():
    X, weight = table(holes=0.2), np.random.default_rng(2).integers(0, 3, 200)
    weight[0] = 1
    model = CategoricalMixture().fit(X, sample_weight=weight)
    for j, size in enumerate(SIZES):
        counts = np.array([weight[X[:, j] == c].sum() for c in range(size)])
        np.testing.assert_allclose(model.probabilities_[j][0], counts / counts.sum(), rtol=1e-13)
    assert model._n_parameters() == 6
    assert CategoricalMixture(2, random_state=0).fit(X)._n_parameters() == 13


def test_components_that_lie_apart_are_found():
    X = np.repeat([[0, 2, 1], [1, 0, 3], [2, 1, 0]], [5, 3, 2], axis=0)
    model = CategoricalMixture(3, random_state=0).fit(X)
    labels = model.predict(X)
    assert np.array_equal(np.bincount(labels)[labels[[0, 5, 8]]], [5, 3, 2])
    np.testing.assert_allclose(model.weights_[labels[[0, 5, 8]]], [0.5, 0.3, 0.2], atol=1e-9)
    assert model.lower_bound_ == pytest.approx(sum(p * np.log(p) for p in (0.5, 0.3, 0.2)), abs=1e-8)
    assert model.certify(X).holds


def test_chances_of_zero_and_rows_that_are_impossible():
    model = CategoricalMixture(2, n_categories=3, random_state=0).fit([[0, 0], [0, 0], [1, 1]])
    rows = [[2, 0], [0, 0], [2, 2], [NAN, 2]]
    assert np.array_equal(np.isinf(model.score_samples(rows)), [True, False, True, True])
    np.testing.assert_allclose(model.predict_proba(rows)[[0, 2, 3]], np.tile(model.weights_, (3, 1)), rtol=1e-14)
    assert not model.certify(rows).holds


def test_the_certificate_sees_a_zero_that_should_be_raised():
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=(400, 1))
    X = np.hstack([rng.integers(3, size=(400, 1)), np.where(rng.random((400, 2)) < 0.95, label, 1 - label)])
    apart = np.array([[0.95, 0.05], [0.05, 0.95]])  # the first column has nothing to do with the components
    init = [np.array([[0.0, 0.5, 0.5], [0.4, 0.3, 0.3]]), apart, apart]
    model = CategoricalMixture(2, probabilities_init=init).fit(X)
    assert model.probabilities_[0][0, 0] == 0.0
    failed = {check.name for check in model.certify(X).failed}
    assert failed == {"border"}


def test_categories_are_those_seen_unless_given():
    X = table()
    assert np.array_equal(CategoricalMixture().fit(X).n_categories_, SIZES)
    model = CategoricalMixture(2, n_categories=5, random_state=0).fit(X)
    assert [p.shape for p in model.probabilities_] == [(2, 5)] * 3
    assert model.certify(X).holds
    model = CategoricalMixture(2, n_categories=[3, 7, 4], alpha=0.5, random_state=0).fit(X)
    assert [p.shape for p in model.probabilities_] == [(2, 3), (2, 7), (2, 4)]
    assert all((p > 0).all() for p in model.probabilities_)
    assert model.certify(X).holds
    model.n_categories_ = model.n_categories_ + np.array([0, 0, 1])
    assert {check.name for check in model.certify(X).failed} == {"parameters", "n_categories"}
    unseen = CategoricalMixture().fit([[0, NAN], [1, NAN]])
    assert np.array_equal(unseen.n_categories_, [2, 1])
    assert np.array_equal(unseen.probabilities_[1], [[1.0]])


def test_the_certificate_wants_each_column_to_sum_to_one():
    X = table()
    model = CategoricalMixture(2, random_state=0).fit(X)
    model.probabilities_[1] = model.probabilities_[1] * 1.001
    assert {check.name for check in model.certify(X).failed} == {"parameters"}


def test_bad_input_is_refused():
    X = table()
    with pytest.raises(ValueError, match="Negative values in data passed to CategoricalMixture"):
        CategoricalMixture().fit(X - 1)
    with pytest.raises(ValueError, match="codes, whole numbers from 0, but 2 entries are not"):
        CategoricalMixture().fit([[0.5], [1.0], [2.5]])
    with pytest.raises(ValueError, match="infinity"):
        CategoricalMixture().fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match="X holds 3 in column 2, where n_categories allows 2 at most"):
        CategoricalMixture(n_categories=3).fit(X)
    with pytest.raises(ValueError, match="X holds 2 in column 1, where n_categories allows 1 at most"):
        CategoricalMixture().fit(X).predict([[0, 2, 0]])
    for bad in (chances(0)[:2], chances(0, k=3), [2 * p for p in chances(0)], [p - 0.5 for p in chances(0)]):
        with pytest.raises(ValueError, match="probabilities_init must hold arrays of the shapes"):
            CategoricalMixture(2, probabilities_init=bad).fit(X)
    with pytest.raises(ValueError, match="n_categories must be a whole number of at least 1"):
        CategoricalMixture(n_categories=[1, 2]).fit(X)
