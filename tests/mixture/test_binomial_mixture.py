"""The binomial mixture: the two coins of the catalogue, SciPy's mass function, and an EM written out in NumPy."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import brute
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning

from lemmata.mixture import BernoulliMixture, BinomialMixture

NAN = float("nan")
HEADS = np.array([[5.0], [9.0], [8.0], [4.0], [7.0]])
ORDERS = sum(np.log(comb(10, int(x))) for x in HEADS[:, 0])  # of the flips, which the catalogue counts one by one


def coins(first=0.6, second=0.5, **options):
    settings = {"n_trials": 10, "fit_weights": False, "probabilities_init": [[first], [second]], "acceleration": None}
    return BinomialMixture(2, **{**settings, **options})


def after(steps, *start):
    """Stop EM after so many steps."""
    with pytest.warns(ConvergenceWarning):
        return coins(*start, max_iter=steps, tol=0.0).fit(HEADS)


def at(first, second):
    """Make a model of two coins with these chances, and nothing fitted."""
    model = coins().fit(HEADS)
    model.probabilities_ = np.array([[first], [second]])
    return model


def table(seed=0, n=200, d=3, k=2, trials=(6, 1, 9), holes=0.0):
    rng = np.random.default_rng(seed)
    X = rng.binomial(trials, rng.uniform(0.1, 0.9, (k, d))[rng.integers(k, size=n)]).astype(float)
    X[rng.random(X.shape) < holes] = NAN
    return X


def log_joint(X, trials, weights, heads):
    logs = binom.logpmf(np.nan_to_num(X)[:, None, :], trials, heads)
    return np.where(np.isnan(X)[:, None, :], 0.0, logs).sum(axis=2) + np.log(weights)


@pytest.mark.item("CLU-08")
def test_two_coins_likelihoods_and_posteriors():
    row = [np.exp(BinomialMixture(n_trials=10).fit([[5]]).set_params().score_samples([[5]]))[0]]
    assert row[0] == pytest.approx(binom.pmf(5, 10, 0.5), rel=1e-12)
    single = BinomialMixture(n_trials=10).fit(HEADS)
    for chance, likelihood in ((0.6, 0.000796262), (0.5, 0.000976563)):
        single.probabilities_ = np.array([[chance]])
        assert np.exp(single.score_samples([[5]])[0]) / comb(10, 5) == pytest.approx(likelihood, abs=5e-10)
    posterior = at(0.6, 0.5).predict_proba(HEADS)
    np.testing.assert_allclose(posterior[:, 0], [0.449149, 0.804986, 0.733467, 0.352156, 0.647215], atol=5e-7)
    heads, tails = posterior.T @ HEADS[:, 0], posterior.T @ (10 - HEADS[:, 0])
    np.testing.assert_allclose([heads[0], tails[0]], [21.297482, 8.572247], atol=5e-7)
    np.testing.assert_allclose([heads[1], tails[1]], [11.702518, 8.427753], atol=5e-7)


@pytest.mark.item("CLU-08")
def test_two_coins_iterates_and_limit():
    np.testing.assert_allclose(after(1).probabilities_[:, 0], [0.713012, 0.581339], atol=5e-7)
    np.testing.assert_allclose(after(2).probabilities_[:, 0], [0.745292, 0.569256], atol=5e-7)
    for acceleration in (None, "squarem"):
        model = coins(acceleration=acceleration, tol=1e-15).fit(HEADS)
        np.testing.assert_allclose(model.probabilities_[:, 0], [0.796789, 0.519583], atol=5e-7)
        ordered = 5 * model.trace_ - ORDERS
        assert ordered[0] == pytest.approx(-33.093863, abs=5e-7)
        assert ordered[-1] == pytest.approx(-31.570200, abs=5e-7)
        assert 5 * model.lower_bound_ - ORDERS == pytest.approx(-31.570200, abs=5e-7)
        assert np.array_equal(model.weights_, [0.5, 0.5])
        certificate = model.certify(HEADS)
        assert certificate.holds
        assert certificate["weights"].kind == "proof"
        assert (np.diff(model.trace_) >= -1e-15).all()
    plain = coins().fit(HEADS)
    assert 5 * plain.trace_[1] - ORDERS == pytest.approx(-31.859258, abs=5e-7)
    assert (np.diff(plain.trace_) > 0).all()


@pytest.mark.item("CLU-08")
def test_two_coins_labels_may_be_swapped():
    one, other = coins(0.6, 0.5).fit(HEADS), coins(0.5, 0.6).fit(HEADS)
    np.testing.assert_allclose(one.probabilities_, other.probabilities_[::-1], rtol=1e-13)
    np.testing.assert_allclose(one.trace_, other.trace_, rtol=1e-14)
    np.testing.assert_allclose(one.predict_proba(HEADS), other.predict_proba(HEADS)[:, ::-1], rtol=1e-10)
    same = coins(0.5, 0.5).fit(HEADS)  # and what is symmetric stays so
    assert same.probabilities_[0, 0] == same.probabilities_[1, 0] == pytest.approx(0.66, rel=1e-14)


@pytest.mark.item("CLU-08")
def test_two_coins_known_labels():
    first, second = HEADS[[1, 2, 4]], HEADS[[0, 3]]
    assert (first.sum(), 30 - first.sum()) == (24, 6)
    assert BinomialMixture(n_trials=10).fit(first).probabilities_[0, 0] == pytest.approx(0.8, rel=1e-14)
    assert BinomialMixture(n_trials=10).fit(second).probabilities_[0, 0] == pytest.approx(0.45, rel=1e-14)


@pytest.mark.item("CLU-08")
def test_two_coins_the_misprint_takes_the_wrong_row():
    def printed(first, second):  # P(X₂|B) in the denominator of the first row
        a, b = binom.pmf(5, 10, first) / comb(10, 5), binom.pmf(9, 10, second) / comb(10, 9)
        return a / (a + b)

    assert printed(0.6, 0.5) == pytest.approx(at(0.6, 0.5).predict_proba(HEADS)[0, 0], rel=1e-12)  # a fair coin hides it
    model = after(1)
    right = model.predict_proba(HEADS)[0, 0]
    a, b = binom.pmf(5, 10, model.probabilities_[:, 0])
    assert right == pytest.approx(a / (a + b), rel=1e-12)
    assert abs(printed(*model.probabilities_[:, 0]) - right) > 0.1


def test_two_coins_are_best_on_a_grid():
    def cost(chances):
        logs = binom.logpmf(HEADS, 10, np.asarray(chances)[None, :])
        return -logsumexp(logs, axis=1).sum()

    best = brute(cost, (slice(0.02, 1, 0.02), slice(0.02, 1, 0.02)), finish=None)
    np.testing.assert_allclose(sorted(best), sorted(coins().fit(HEADS).probabilities_[:, 0]), atol=0.02)
    assert -cost(coins().fit(HEADS).probabilities_[:, 0]) >= -cost(best)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_iterates_are_those_of_em_written_out(holes, alpha):
    X, trials = table(holes=holes), np.array([6, 1, 9])
    weights, heads = np.array([0.3, 0.7]), np.random.default_rng(1).uniform(0.2, 0.8, (2, 3))
    with pytest.warns(ConvergenceWarning):
        model = BinomialMixture(
            2,
            n_trials=trials,
            alpha=alpha,
            weights_init=weights,
            probabilities_init=heads,
            acceleration=None,
            tol=0.0,
            max_iter=8,
        ).fit(X)
    trace = []
    for _ in range(8):
        logs = log_joint(X, trials, weights, heads)
        density = logsumexp(logs, axis=1)
        trace.append(density.mean() + alpha * (np.log(heads) + np.log(1 - heads)).sum() / len(X))
        r = np.exp(logs - density[:, None])
        ones, tosses = r.T @ np.nan_to_num(X), trials * (r.T @ ~np.isnan(X))
        weights, heads = r.mean(axis=0), (ones + alpha) / (tosses + 2 * alpha)
    np.testing.assert_allclose(model.trace_, trace, rtol=1e-12)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-11)
    np.testing.assert_allclose(model.probabilities_, heads, rtol=1e-11)


@pytest.mark.item("CLU-09")
def test_the_density_sums_to_one_and_the_posterior_is_bayes_rule():
    trials = [3, 1, 4]
    model = BinomialMixture(2, n_trials=trials, random_state=0).fit(table(trials=trials))
    every = np.array(list(product(range(4), range(2), range(5))), dtype=float)
    density = np.exp(model.score_samples(every))
    assert density.sum() == pytest.approx(1.0, rel=1e-13)
    for k in range(2):
        part = BinomialMixture(n_trials=trials).fit(every)
        part.probabilities_ = model.probabilities_[[k]]
        np.testing.assert_allclose(
            part.score_samples(every), binom.logpmf(every, trials, model.probabilities_[k]).sum(axis=1), rtol=1e-11
        )
        assert np.exp(part.score_samples(every)).sum() == pytest.approx(1.0, rel=1e-13)
    logs = log_joint(every, trials, model.weights_, model.probabilities_)
    posterior = model.predict_proba(every)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(posterior, np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), rtol=1e-10)


@pytest.mark.item("CLU-09")
def test_a_simulation_has_the_density_of_the_mixture():
    trials = [2, 3]
    model = BinomialMixture(2, n_trials=trials, random_state=3).fit(table(d=2, trials=trials))
    model.weights_, model.probabilities_ = np.array([0.3, 0.7]), np.array([[0.9, 0.0], [0.2, 0.6]])
    X, components = model.sample(100_000)
    every = np.array(list(product(range(3), range(4))))
    share = np.array([(row == X).all(axis=1).mean() for row in every])
    density = np.exp(model.score_samples(every))
    assert (np.abs(share - density) <= 5 * np.sqrt(density * (1 - density) / len(X))).all()
    np.testing.assert_allclose(X.mean(axis=0), trials * (model.weights_ @ model.probabilities_), atol=5 * 1.5 / np.sqrt(len(X)))
    assert abs(components.mean() - 0.7) < 5 * np.sqrt(0.21 / len(X))


def test_a_missing_entry_is_summed_out():
    model = BinomialMixture(2, n_trials=[6, 1, 9], random_state=0).fit(table(holes=0.1))
    completions = np.array([[2.0, 1.0, x] for x in range(10)])
    density = np.exp(model.score_samples(completions))
    assert np.exp(model.score_samples([[2.0, 1.0, NAN]])[0]) == pytest.approx(density.sum(), rel=1e-12)
    expected = density @ model.predict_proba(completions) / density.sum()
    np.testing.assert_allclose(model.predict_proba([[2.0, 1.0, NAN]])[0], expected, rtol=1e-10)


def test_one_toss_is_a_bernoulli_mixture():
    X = np.minimum(table(seed=5), 1.0)
    init = {"weights_init": [0.4, 0.6], "probabilities_init": np.random.default_rng(0).uniform(0.2, 0.8, (2, 3))}
    one, other = BinomialMixture(2, n_trials=1, **init).fit(X), BernoulliMixture(2, **init).fit(X)
    assert np.array_equal(one.probabilities_, other.probabilities_)
    assert np.array_equal(one.trace_, other.trace_)
    assert one.bic(X) == other.bic(X)


def test_tosses_are_the_largest_counts_unless_given():
    X = table(seed=1)
    model = BinomialMixture(2, random_state=0).fit(X)
    assert np.array_equal(model.n_trials_, X.max(axis=0))
    assert model.certify(X).holds
    assert np.array_equal(BinomialMixture(n_trials=9).fit(X).n_trials_, [9, 9, 9])
    given = BinomialMixture(n_trials=[7, 2, 11]).fit(X)
    np.testing.assert_allclose(given.probabilities_[0], X.mean(axis=0) / [7, 2, 11], rtol=1e-13)
    model.n_trials_ = model.n_trials_ + np.array([0, 0, 1])
    assert "n_trials" in {check.name for check in model.certify(X).failed}
    never = BinomialMixture().fit([[0, NAN, 2], [0, NAN, 1]])
    assert np.array_equal(never.n_trials_, [0, 0, 2])
    assert np.array_equal(never.probabilities_, [[0.5, 0.5, 0.75]])  # a coin that is not tossed keeps its secret
    assert never.score_samples([[0, 0, 2]])[0] == pytest.approx(np.log(0.75**2), rel=1e-14)


def test_weights_may_be_fixed():
    X = table(seed=2, n=400)
    model = BinomialMixture(2, n_trials=9, fit_weights=False, weights_init=[0.25, 0.75], random_state=0).fit(X)
    assert np.array_equal(model.weights_, [0.25, 0.75])
    assert model.certify(X).holds
    free = BinomialMixture(2, n_trials=9, weights_init=[0.25, 0.75], random_state=0).fit(X)
    assert free.lower_bound_ > model.lower_bound_
    assert free._n_parameters() == 7
    assert model._n_parameters() == 6
    model.weights_ = np.array([0.252, 0.748])
    assert "weights" in {check.name for check in model.certify(X).failed}


def test_chances_of_zero_and_one():
    model = BinomialMixture(n_trials=4).fit([[4, 0, 2], [4, 0, 3]])
    assert np.array_equal(model.probabilities_, [[1.0, 0.0, 0.625]])
    density = model.score_samples([[4, 0, 4], [3, 0, 4], [4, 1, 4], [NAN, 0, 4]])
    np.testing.assert_allclose(density, [4 * np.log(0.625), -np.inf, -np.inf, 4 * np.log(0.625)], rtol=1e-13)
    assert np.array_equal(model.predict_proba([[3, 1, 4]]), [[1.0]])
    assert model.certify([[4, 0, 2], [4, 0, 3]]).holds


def test_counts_of_millions():
    rng = np.random.default_rng(0)
    X = rng.binomial(10**6, rng.permutation(np.repeat([0.2, 0.7, 0.701], 30))[:, None], (90, 2))
    model = BinomialMixture(3, n_trials=10**6, n_init=5, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(model.probabilities_[:, 0]), [0.2, 0.7, 0.701], atol=3e-4)
    assert model.certify(X).holds
    assert model.lower_bound_ == pytest.approx(
        logsumexp(log_joint(X, 10**6, np.maximum(model.weights_, 1e-300), model.probabilities_), axis=1).mean(), rel=1e-8
    )


def test_sparse_counts():
    X = table(n=100, trials=(6, 3, 2)) * (np.random.default_rng(0).random((100, 3)) < 0.3)
    model = BinomialMixture(2, n_trials=6, random_state=0).fit(csr_array(X))
    dense = BinomialMixture(2, n_trials=6, random_state=0).fit(X)
    np.testing.assert_allclose(model.probabilities_, dense.probabilities_, atol=1e-6)
    np.testing.assert_allclose(model.score_samples(csr_array(X)), model.score_samples(X), rtol=1e-12)
    assert model.certify(csr_array(X)).holds
    assert np.array_equal(BinomialMixture().fit(csr_array(X)).n_trials_, X.max(axis=0))


def test_bad_input_is_refused():
    X = table(n=20)
    with pytest.raises(ValueError, match="Negative values in data passed to BinomialMixture"):
        BinomialMixture().fit(-X)
    with pytest.raises(ValueError, match="counts, whole numbers from 0, but 1 entries are not"):
        BinomialMixture().fit([[0.5], [1.0]])
    with pytest.raises(ValueError, match="infinity"):
        BinomialMixture().fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match="X holds 11 in column 1, where n_trials allows 10 at most"):
        BinomialMixture(n_trials=10).fit([[3, 11], [4, 5]])
    with pytest.raises(ValueError, match="X holds 7 in column 0, where n_trials allows 3 at most"):
        BinomialMixture().fit([[3], [2]]).predict([[7]])
    for bad in ([1, 2], [[1, 2, 3]], [0, 1, 1], [1.5, 9, 9], [NAN, 9, 9]):
        with pytest.raises(ValueError, match="n_trials must be a whole number of at least 1, or 3 of them"):
            BinomialMixture(n_trials=bad).fit(X)
    with pytest.raises(ValueError, match="some row is impossible"):
        BinomialMixture(n_trials=9, probabilities_init=[[1.0, 0.5, 0.5]]).fit(X)
