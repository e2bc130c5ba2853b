"""The Bernoulli mixture: against brute force over all rows, an EM written out in NumPy, and SciPy's optimizer."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from scipy.special import log_expit, log_softmax, logsumexp, softmax
from scipy.stats import bernoulli
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.blocks import Blocks
from lemmata.mixture import BernoulliMixture, discrete, discrete_certificate
from lemmata.mixture.discrete_kernels import Trials

NAN = float("nan")


def table(seed=0, n=300, d=5, k=3, holes=0.0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < rng.uniform(0.05, 0.95, (k, d))[rng.integers(k, size=n)]).astype(float)
    X[rng.random(X.shape) < holes] = NAN
    return X


def start(X, k=3, seed=1):
    rng = np.random.default_rng(seed)
    return {"weights_init": rng.dirichlet(np.full(k, 5.0)), "probabilities_init": rng.uniform(0.2, 0.8, (k, X.shape[1]))}


def log_joint(X, weights, heads):
    """Entry by entry with SciPy's mass function; what is missing has no factor."""
    logs = bernoulli.logpmf(np.nan_to_num(X)[:, None, :], heads)
    return np.where(np.isnan(X)[:, None, :], 0.0, logs).sum(axis=2) + np.log(weights)


def reference(X, weights, heads, steps, alpha=0.0, repeat=None):
    """EM, written out: return the mean log-likelihood before each step, and the parameters after the last."""
    repeat = np.ones(len(X)) if repeat is None else repeat
    trace = []
    for _ in range(steps):
        logs = log_joint(X, weights, heads)
        density = logsumexp(logs, axis=1)
        trace.append(repeat @ density / repeat.sum() + alpha * (np.log(heads) + np.log(1 - heads)).sum() / repeat.sum())
        r = np.exp(logs - density[:, None]) * repeat[:, None]
        ones, seen = r.T @ np.nan_to_num(X), r.T @ (~np.isnan(X)).astype(float)
        weights, heads = r.sum(axis=0) / repeat.sum(), (ones + alpha) / (seen + 2 * alpha)
    return np.array(trace), weights, heads


def fixed(weights, heads, **options):
    """Make a model with these parameters."""
    heads = np.array(heads, dtype=float)
    model = BernoulliMixture(len(heads), binarize=None, **options).fit(np.tile([[0.0], [1.0]], (len(heads), heads.shape[1])))
    model.weights_, model.probabilities_ = np.array(weights, dtype=float), heads
    return model


def refused_only_by(model, X, *names):
    return {check.name for check in model.certify(X).failed} == set(names)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_iterates_are_those_of_em_written_out(holes, alpha):
    X = table(holes=holes)
    given = start(X)
    trace, weights, heads = reference(X, *given.values(), steps=15, alpha=alpha)
    with pytest.warns(ConvergenceWarning):
        model = BernoulliMixture(3, alpha=alpha, binarize=None, tol=0.0, max_iter=15, acceleration=None, **given).fit(X)
    np.testing.assert_allclose(model.trace_, trace, rtol=1e-12)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-11)
    np.testing.assert_allclose(model.probabilities_, heads, rtol=1e-11)
    assert (np.diff(model.trace_) > 0).all()


def test_weights_are_repetitions():
    X, repeat = table(n=80), np.random.default_rng(5).integers(1, 4, 80)
    given = start(X)
    trace, weights, heads = reference(X, *given.values(), steps=8, repeat=repeat.astype(float))
    with pytest.warns(ConvergenceWarning):
        model = BernoulliMixture(3, tol=0.0, max_iter=8, acceleration=None, **given).fit(X, sample_weight=repeat)
    np.testing.assert_allclose(model.trace_, trace, rtol=1e-12)
    np.testing.assert_allclose(model.probabilities_, heads, rtol=1e-11)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-11)


@pytest.mark.item("CLU-09")
def test_the_density_sums_to_one_and_the_posterior_is_bayes_rule():
    model = BernoulliMixture(3, random_state=0).fit(table(d=4))
    every = np.array(list(product([0.0, 1.0], repeat=4)))
    density = np.exp(model.score_samples(every))
    assert density.sum() == pytest.approx(1.0, rel=1e-13)
    for k in range(3):
        part = fixed([1.0], model.probabilities_[[k]])
        assert np.exp(part.score_samples(every)).sum() == pytest.approx(1.0, rel=1e-13)
    logs = log_joint(every, model.weights_, model.probabilities_)
    posterior = model.predict_proba(every)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(posterior, softmax(logs, axis=1), rtol=1e-11)
    np.testing.assert_allclose(np.log(density), logsumexp(logs, axis=1), rtol=1e-12)


@pytest.mark.item("CLU-09")
def test_a_simulation_has_the_density_of_the_mixture():
    model = fixed([0.2, 0.5, 0.3], [[0.9, 0.1, 0.5], [0.2, 0.3, 0.0], [0.6, 1.0, 0.7]], random_state=3)
    X, components = model.sample(100_000)
    every = np.array(list(product([0, 1], repeat=3)))
    share = np.array([(row == X).all(axis=1).mean() for row in every])
    density = np.exp(model.score_samples(every))
    assert (np.abs(share - density) <= 5 * np.sqrt(density * (1 - density) / len(X))).all()
    marginal = model.weights_ @ model.probabilities_
    assert (np.abs(X.mean(axis=0) - marginal) <= 5 * np.sqrt(marginal * (1 - marginal) / len(X))).all()
    counts = np.bincount(components)
    assert (np.abs(counts / len(X) - model.weights_) < 5 * np.sqrt(0.25 / len(X))).all()
    for k in range(3):
        p = model.probabilities_[k]
        assert (np.abs(X[components == k].mean(axis=0) - p) <= 5 * np.sqrt(p * (1 - p) / counts[k])).all()


def test_a_missing_entry_is_summed_out():
    model = BernoulliMixture(2, random_state=0).fit(table(d=4, k=2))
    for row in ([1.0, NAN, 0.0, NAN], [NAN, NAN, NAN, 1.0], [NAN] * 4):
        free = np.flatnonzero(np.isnan(row))
        completions = np.tile(row, (2 ** len(free), 1))
        completions[:, free] = list(product([0.0, 1.0], repeat=len(free)))
        density = np.exp(model.score_samples(completions))
        assert np.exp(model.score_samples([row])[0]) == pytest.approx(density.sum(), rel=1e-12)
        expected = density @ model.predict_proba(completions) / density.sum()
        np.testing.assert_allclose(model.predict_proba([row])[0], expected, rtol=1e-11)
    np.testing.assert_allclose(model.predict_proba([[NAN] * 4])[0], model.weights_, rtol=1e-13)


def test_a_column_that_is_never_seen_says_nothing():
    X = table(d=3, k=2)
    wide = np.column_stack([X, np.full(len(X), NAN)])
    given = start(X, k=2)
    init = np.column_stack([given["probabilities_init"], [0.3, 0.6]])
    narrow = BernoulliMixture(2, **given).fit(X)
    model = BernoulliMixture(2, weights_init=given["weights_init"], probabilities_init=init).fit(wide)
    np.testing.assert_allclose(model.probabilities_[:, :3], narrow.probabilities_, atol=1e-6)
    np.testing.assert_allclose(model.probabilities_[:, 3], [0.3, 0.6], atol=1e-12)
    assert model.certify(wide).holds
    assert BernoulliMixture(2, random_state=0).fit(wide).certify(wide).holds


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
def test_one_component_is_the_frequency(alpha):
    X, weight = table(holes=0.2), np.random.default_rng(2).integers(0, 3, 300)
    model = BernoulliMixture(alpha=alpha).fit(X, sample_weight=weight)
    ones, seen = weight @ np.nan_to_num(X), weight @ ~np.isnan(X)
    np.testing.assert_allclose(model.probabilities_[0], (ones + alpha) / (seen + 2 * alpha), rtol=1e-13)
    p = ones / seen
    if alpha == 0:
        value = (ones * np.log(p) + (seen - ones) * np.log(1 - p)).sum()
        assert model.lower_bound_ == pytest.approx(value / weight.sum(), rel=1e-12)
        assert model.bic(X, sample_weight=weight) == pytest.approx(-2 * value + 5 * np.log(weight.sum()), rel=1e-12)
        assert model.aic(X, sample_weight=weight) == pytest.approx(-2 * value + 10, rel=1e-12)


def test_no_optimizer_does_better():
    X = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 0]], dtype=float)

    def cost(z):
        logs = X @ log_expit(z[2:].reshape(2, 3)).T + (1 - X) @ log_expit(-z[2:].reshape(2, 3)).T
        return -logsumexp(logs + log_softmax(z[:2]), axis=1).mean()

    rng = np.random.default_rng(0)
    theirs = -min(minimize(cost, rng.normal(size=8), method="L-BFGS-B", options={"maxiter": 100}).fun for _ in range(8))
    model = BernoulliMixture(2, n_init=20, random_state=0).fit(X)
    assert model.lower_bound_ >= theirs - 1e-7
    assert model.lower_bound_ == pytest.approx(model.restarts_.max(), abs=1e-8)
    assert len(model.restarts_) == 20
    assert model._n_parameters() == 7


def test_with_a_prior_the_log_posterior_rises_and_is_stationary():
    X, alpha = table(n=60, k=4, seed=4), 0.5
    for acceleration in ("squarem", None):
        model = BernoulliMixture(3, alpha=alpha, acceleration=acceleration, random_state=1).fit(X)
        assert (np.diff(model.trace_) >= -1e-14).all()
        p = model.probabilities_
        posterior = model.lower_bound_ + alpha * (np.log(p) + np.log1p(-p)).sum() / len(X)
        assert model.trace_[-1] == pytest.approx(posterior, abs=1e-9)
        assert model.certify(X).holds
        plain = BernoulliMixture(3, acceleration=acceleration, random_state=1).fit(X)
        plain.alpha = alpha
        assert not plain.certify(X).holds


def test_leaping_arrives_where_em_does_in_fewer_passes():
    X = table(n=500, k=3, seed=8)
    leaping, plain = (BernoulliMixture(3, acceleration=a, **start(X), max_iter=50_000).fit(X) for a in ("squarem", None))
    assert leaping.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1e-6)
    assert leaping.n_iter_ < plain.n_iter_ / 2
    assert leaping.certify(X).holds


def test_chances_of_zero_and_one():
    X = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0]], dtype=float)
    model = BernoulliMixture(2, random_state=0).fit(X)
    p = model.probabilities_[model.predict(X)]
    np.testing.assert_allclose(p[:, :3], X[:, :3], atol=1e-9)
    assert model.certify(X).holds
    single = BernoulliMixture().fit([[1, 0, 1], [1, 0, 0]])
    assert np.array_equal(single.probabilities_, [[1.0, 0.0, 0.5]])  # exactly, whatever the order of adding
    assert single.score_samples([[1, 0, 1]])[0] == pytest.approx(np.log(0.5), rel=1e-14)
    many = BernoulliMixture().fit(np.ones((10_007, 3)), sample_weight=np.random.default_rng(0).random(10_007))
    assert np.array_equal(many.probabilities_, np.ones((1, 3)))
    impossible = fixed([0.3, 0.7], [[1.0, 0.5, 0.0], [0.0, 1.0, 0.4]])
    rows = [[1, 1, 0], [0, 0, 1], [0, 1, 1], [1, NAN, 1], [NAN, NAN, NAN]]
    density, posterior = impossible.score_samples(rows), impossible.predict_proba(rows)
    np.testing.assert_allclose(density, [np.log(0.15), -np.inf, np.log(0.28), -np.inf, 0.0], atol=1e-14)
    np.testing.assert_allclose(posterior, [[1, 0], [0.3, 0.7], [0, 1], [0.3, 0.7], [0.3, 0.7]], rtol=1e-14)
    assert impossible.score(rows) == -np.inf
    assert not impossible.certify(rows).holds


def test_the_certificate_sees_a_zero_that_should_be_raised():
    X = table(n=400, k=2, seed=3)
    init = np.array([[0.0, 0.6, 0.5, 0.5, 0.4], [0.5, 0.4, 0.5, 0.5, 0.6]])
    model = BernoulliMixture(2, probabilities_init=init).fit(X)
    assert model.probabilities_[0, 0] == 0.0  # EM never leaves it
    assert refused_only_by(model, X, "border")
    assert BernoulliMixture(2, probabilities_init=np.maximum(init, 0.01)).fit(X).certify(X).holds
    model = BernoulliMixture(2, weights_init=[1.0, 0.0], probabilities_init=np.array([X.mean(axis=0), X[0] * 0.8 + 0.1])).fit(X)
    assert np.array_equal(model.weights_, [1.0, 0.0])
    assert refused_only_by(model, X, "border")


def test_a_derivative_by_a_zero_is_that_of_differences():
    X, weights, heads = table(n=50, d=3), np.array([0.4, 0.6]), np.array([[0.0, 0.5, 1.0], [0.3, 0.6, 0.7]])
    outcomes = Trials(np.ones(3), 0.0)
    _, slopes = Blocks.of(X, None).reduce(discrete_certificate.slopes_block, outcomes, weights, outcomes.full(heads))

    def value(tail, head, j):  # not normalized: a partial derivative
        logs = np.zeros((50, 2))
        for k in range(2):
            up, down = heads[k].copy(), 1 - heads[k]
            if k == 0:
                up[j], down[j] = head, tail
            with np.errstate(divide="ignore"):
                logs[:, k] = np.log(weights[k]) + np.where(X > 0, np.log(up), np.log(down)).sum(axis=1)
        return logsumexp(logs, axis=1).sum()

    h = 1e-7
    assert slopes[0, 1] == pytest.approx((value(1.0, h, 0) - value(1.0, 0.0, 0)) / h, rel=1e-4)
    assert slopes[0, 4] == pytest.approx((value(h, 1.0, 2) - value(0.0, 1.0, 2)) / h, rel=1e-4)
    assert slopes[0, 1] > 0 < slopes[0, 4]
    assert np.count_nonzero(slopes) == 2


@pytest.mark.parametrize("container", [csr_matrix, csr_array])
def test_sparse_tables_are_not_made_dense(container, monkeypatch):
    X = table(n=200, d=30, seed=2) * np.random.default_rng(0).uniform(0.5, 3.0, (200, 30))
    X[:, 4] = 1.0
    dense = BernoulliMixture(3, random_state=0).fit(X)
    S = container(X)
    sparse = BernoulliMixture(3, random_state=0).fit(S)
    np.testing.assert_allclose(sparse.probabilities_, dense.probabilities_, atol=1e-6)
    for method in ("predict_proba", "score_samples"):
        np.testing.assert_allclose(getattr(dense, method)(S), getattr(dense, method)(X), atol=1e-12)
    assert dense.certify(S).holds
    one, other = dense.certify(S).to_dict(), dense.certify(X).to_dict()
    for a, b in zip(one["checks"], other["checks"], strict=True):
        assert a["value"] == pytest.approx(b["value"], rel=1e-3, abs=1e-12)
    monkeypatch.setattr(discrete_certificate, "CELLS", 1)
    given = BernoulliMixture(3, weights_init=dense.weights_, probabilities_init=dense.probabilities_)
    monkeypatch.setattr(container, "toarray", None)
    assert given.fit(S).certify(S).holds


def test_binarize():
    X = np.random.default_rng(0).normal(size=(100, 3))
    at = BernoulliMixture(binarize=0.3).fit(X)
    np.testing.assert_allclose(at.probabilities_[0], (X > 0.3).mean(axis=0), rtol=1e-14)
    assert np.array_equal(at.score_samples(X), BernoulliMixture(binarize=None).fit((X > 0.3) * 1).score_samples((X > 0.3) * 1))
    with pytest.raises(ValueError, match="0 and 1 only, but 300 entries are neither"):
        BernoulliMixture(binarize=None).fit(X)
    with pytest.raises(ValueError, match="no negative binarize"):
        BernoulliMixture(binarize=-1.0).fit(csr_matrix(X))
    model = BernoulliMixture(binarize=None).fit([[0.0], [1.0], [NAN]])
    with pytest.raises(ValueError, match="0 and 1 only"):
        model.predict([[2.0]])


def test_bad_input_is_refused():
    X = table(n=20)
    with pytest.raises(ValueError, match="infinity"):
        BernoulliMixture().fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match="infinity"):
        BernoulliMixture().fit(X).predict([[-np.inf] * 5])
    with pytest.raises(ValueError, match="sparse and contains NaN"):
        BernoulliMixture().fit(csr_matrix([[NAN, 1.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="n_samples=20 should be >= n_components=21"):
        BernoulliMixture(21).fit(X)
    for weights in ([0.5, 0.6], [1.5, -0.5], [1.0], [NAN, 1.0]):
        with pytest.raises(ValueError, match="weights_init must hold 2 numbers"):
            BernoulliMixture(2, weights_init=weights).fit(X)
    for heads in (np.full((2, 4), 0.5), np.full((2, 5), 1.5), np.full((2, 5), -0.5), np.full((2, 5), NAN)):
        with pytest.raises(ValueError, match=r"numbers from 0 to 1 in the shape \(2, 5\)"):
            BernoulliMixture(2, probabilities_init=heads).fit(X)
    with pytest.raises(ValueError, match="some row is impossible"):
        BernoulliMixture(1, probabilities_init=np.zeros((1, 5))).fit(X)
    with pytest.raises(ValueError, match="alpha > 0 rules out"):
        BernoulliMixture(1, alpha=1.0, probabilities_init=np.ones((1, 5))).fit(np.ones((20, 5)))


def test_the_certificate_refuses_what_are_no_probabilities():
    X = table(n=50)
    model = BernoulliMixture(2, random_state=0).fit(X)
    good = model.probabilities_
    for bad in (good + 2.0, -good - 1.0, good[:1], np.full_like(good, NAN)):
        model.probabilities_ = bad
        assert refused_only_by(model, X, "parameters")
    model.probabilities_, model.weights_ = good, model.weights_ * 1.001
    assert refused_only_by(model, X, "parameters")


def test_a_start_is_drawn_from_a_sample_of_a_large_table(monkeypatch):
    X = table(n=3000, d=8, k=3, seed=6)
    monkeypatch.setattr(discrete, "CELLS", 1600)
    model = BernoulliMixture(3, random_state=0).fit(X)
    assert model.certify(X).holds
    assert model.lower_bound_ > BernoulliMixture().fit(X).lower_bound_ + 0.1


def test_components_that_coincide_on_a_saddle_are_refused():
    rng = np.random.default_rng(0)
    X = np.r_[rng.random((100, 6)) < 0.95, rng.random((100, 6)) < 0.05].astype(int)
    model = BernoulliMixture(2, probabilities_init=np.full((2, 6), 0.5)).fit(X)
    assert np.allclose(model.probabilities_[0], model.probabilities_[1])
    assert [check.name for check in model.certify(X).failed] == ["split"]
    one = (rng.random((200, 6)) < 0.5).astype(int)  # of one kind: nothing drives two components apart
    for seed in range(3):
        assert BernoulliMixture(2, random_state=seed).fit(one).certify(one).holds
