"""`MarkovChain`: counting, likelihoods, orders, and what every estimator must keep."""

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import lemmata
from lemmata.core.certificate import free
from lemmata.markov import MarkovChain
from markov import exact

WEATHER = [list("rrssrsssrr"), list("srrsr"), list("ss")]


def sequences(seed=0, k=3, n=5, length=40):
    rng = np.random.default_rng(seed)
    return [rng.integers(k, size=rng.integers(2, length)) for _ in range(n)]


def naive_counts(X, symbols, order):
    """Count windows by looking at each."""
    counts = np.zeros((len(symbols),) * (order + 1))
    for sequence in X:
        for t in range(len(sequence) - order):
            window = sequence[t : t + order + 1]
            if all(s is not None and s == s for s in window):
                counts[tuple(symbols.index(s) for s in window)] += 1
    return counts


@pytest.mark.item("SEQ-02")
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_rows_are_relative_frequencies(order, alpha):
    for X, symbols in ((WEATHER, ["r", "s"]), ([list(s) for s in sequences()], [0, 1, 2])):
        model = MarkovChain(order=order, alpha=alpha).fit(X)
        counts = naive_counts(X, symbols, order)
        np.testing.assert_array_equal(model.counts_, counts)
        smoothed = (counts + alpha) / (counts + alpha).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(model.transition_, smoothed, rtol=1e-15)
        assert model.states_.tolist() == symbols


@pytest.mark.item("SEQ-02")
def test_no_rows_have_a_larger_likelihood():
    model = MarkovChain().fit(WEATHER)
    best, rng = model.log_likelihood(WEATHER), np.random.default_rng(0)
    for _ in range(50):
        other = MarkovChain(rng.dirichlet([1, 1], size=2), states=["r", "s"], initial=model.initial_)
        assert other.log_likelihood(WEATHER) < best
    # Stationary under the constraint: the derivative Σ n_ij / P_ij is the same for all entries of a row.
    np.testing.assert_allclose(model.counts_ / model.transition_, np.tile(model.counts_.sum(axis=1), (2, 1)).T)


@pytest.mark.item("SEQ-01")
def test_probabilities_of_all_sequences_sum_to_one():
    for order in (1, 2, 3):
        model = MarkovChain(order=order, alpha=0.3).fit(sequences(k=2))
        for length in (1, 2, 4):
            logs = [model.log_likelihood(np.array(s)) for s in product(range(2), repeat=length)]
            assert np.exp(logs).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.item("SEQ-01")
@pytest.mark.parametrize("order", [2, 3])
def test_a_chain_of_higher_order_is_one_of_order_one_on_tuples(order):
    X = sequences(seed=3)
    model = MarkovChain(order=order, alpha=0.5).fit(X)
    embedded, k = model.embedded(), 3
    np.testing.assert_allclose(embedded.transition.sum(axis=1), 1, rtol=1e-14)
    for sequence in (s for s in X if len(s) >= order):
        windows = np.array(
            [sequence[t : t + order] @ k ** np.arange(order - 1, -1, -1) for t in range(len(sequence) - order + 1)]
        )
        assert embedded.log_likelihood(windows) == pytest.approx(model.log_likelihood(sequence), rel=1e-13)
    np.testing.assert_allclose(model.stationary().reshape(1, -1), embedded.stationary(), rtol=1e-14)
    # The law of pairs has the same margins from both sides.
    law = model.stationary()[0]
    np.testing.assert_allclose(law.sum(axis=0), law.sum(axis=-1), rtol=1e-12)
    w = np.full((k,) * order, k**-order)
    np.testing.assert_allclose(model.propagate(w, 3).ravel(), embedded.propagate(w.ravel(), 3), rtol=1e-14)


@pytest.mark.parametrize("order", [1, 2])
def test_what_is_not_seen_is_summed_over(order):
    model = MarkovChain(order=order, alpha=0.4).fit(sequences(seed=1))
    for partial in ([0, None, 2, 1], [None, 1, None, None, 0], [2, 1, None], [None, None], [None]):
        filled = product(*[range(3) if s is None else [s] for s in partial])
        total = sum(np.exp(model.log_likelihood(np.array(s))) for s in filled)
        assert np.exp(model.log_likelihood([partial])) == pytest.approx(total, rel=1e-12)
    assert model.log_likelihood([[0, float("nan"), 2]]) == model.log_likelihood([[0, None, 2]])


def test_gaps_break_windows():
    model = MarkovChain(alpha=1.0).fit([["a", None, "b", "b", "a"], ["b", "a"]])
    np.testing.assert_array_equal(model.counts_, [[0, 0], [2, 1]])
    np.testing.assert_allclose(model.initial_, [0.5, 0.5])
    nan = MarkovChain(alpha=1.0).fit([[0.0, np.nan, 1.0, 1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(nan.counts_, model.counts_)
    assert nan.states_.dtype.kind == "i"
    late = MarkovChain(alpha=0.0).fit([[None, 0, 1, 0, 1, 0, 0], [None, 1, 1, 0]])  # nobody knows how they began
    np.testing.assert_allclose(late.initial_, [0.5, 0.5])


def test_one_sequence_many_forms():
    reference = MarkovChain(alpha=1.0).fit([0, 1, 1, 0, 2, 0])
    for X in (np.array([0, 1, 1, 0, 2, 0]), [[0, 1, 1, 0, 2, 0]], (0, 1, 1, 0, 2, 0), np.array([[0, 1, 1, 0, 2, 0]])):
        np.testing.assert_array_equal(MarkovChain(alpha=1.0).fit(X).transition_, reference.transition_)
    twice = MarkovChain().fit([[0, 1, 1, 0, 2, 0]] * 2)
    np.testing.assert_array_equal(twice.transition_, MarkovChain().fit([0, 1, 1, 0, 2, 0]).transition_)
    known = MarkovChain(alpha=1.0, states=[2, 0, 1, 7]).fit([0, 1, 1, 0, 2, 0])
    assert known.states_.tolist() == [2, 0, 1, 7]
    np.testing.assert_allclose(known.transition_[3], 0.25)


def test_a_state_that_is_never_left_is_told():
    with pytest.warns(UserWarning, match="No sequence leaves the states c"):
        model = MarkovChain().fit([list("abac")])
    np.testing.assert_allclose(model.transition_[2], 1 / 3)
    assert model.certify([list("abac")]).holds
    with pytest.warns(UserWarning, match="the contexts"):
        MarkovChain(order=2).fit([list("abac")])


@pytest.mark.parametrize("order", [1, 2])
def test_samples_have_the_chances_of_the_chain(order):
    model = MarkovChain(order=order, alpha=0.5).fit(sequences(seed=5))
    drawn = model.sample(60_000, random_state=0)
    assert np.array_equal(drawn, model.sample(60_000, random_state=0))
    again = MarkovChain(order=order).fit(drawn)
    rows = again.counts_.sum(axis=-1, keepdims=True)
    z = (again.counts_ - rows * model.transition_) / np.sqrt(rows * model.transition_ * (1 - model.transition_))
    assert np.abs(z).max() < 5.5  # of at most 27 normal numbers: once in a million
    assert model.sample(1, random_state=0).shape == (1,)
    short = MarkovChain([[0.0, 1.0], [1.0, 0.0]], states=["a", "b"], initial=[0, 1]).sample(5)
    assert short.tolist() == list("babab")


def test_orders_are_told_apart_by_the_criteria():
    rng, X = np.random.default_rng(0), [0, 1]
    for _ in range(3000):
        X.append(int(rng.random() < (0.9 if X[-2] == 0 else 0.2)))
    bic = [MarkovChain(order=m, alpha=1e-9).fit(X).bic(X) for m in (1, 2, 3)]
    assert int(np.argmin(bic)) == 1
    model = MarkovChain(order=2, alpha=1e-9).fit(X)
    assert model.aic(X) == pytest.approx(2 * (4 + 3) - 2 * model.log_likelihood(X))
    assert model.score(X) == pytest.approx(model.log_likelihood(X) / len(X))


def test_many_symbols_are_kept_sparse():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.permutation(2500), rng.integers(2500, size=9000), rng.permutation(2500), [0]])
    X[-1] = X[0]
    model = MarkovChain().fit(X)
    assert issparse(model.transition_)
    dense = np.zeros((2500, 2500))
    np.add.at(dense, (X[:-1], X[1:]), 1)
    np.testing.assert_allclose(model.transition_.toarray(), dense / dense.sum(axis=1, keepdims=True), rtol=1e-15)
    certificate = model.certify(X)
    assert certificate.holds, str(certificate)
    twin = deepcopy(model)
    twin.transition_.data[:] = free(twin.transition_.data, rng)
    assert not twin.certify(X).holds
    assert np.isfinite(model.log_likelihood(X))


# What the contracts ask of every estimator; they feed tables, and a chain is fitted to sequences.

CASES = [
    ({}, WEATHER),
    ({"alpha": 1.0}, sequences(2)),
    ({"order": 2, "alpha": 0.5}, sequences(3)),
    ({"order": 3, "alpha": 1.0}, WEATHER),
]


@pytest.mark.parametrize(("settings", "X"), CASES)
def test_a_fit_is_certified_and_sabotage_refused(settings, X):
    model = MarkovChain(**settings).fit(X)
    certificate = model.certify(X)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    rng = np.random.default_rng(7)
    for name in ("transition_", "initial_", "counts_"):
        for _ in range(5):
            twin = deepcopy(model)
            setattr(twin, name, free(getattr(model, name), rng))
            assert not twin.certify(X).holds, name
    twin = deepcopy(model)
    twin.states_ = twin.states_[::-1].copy()
    assert not twin.certify(X).holds
    twin.states_ = np.array(["q", "z", "y"][: len(model.states_)])
    assert not twin.certify(X).holds
    assert not model.certify([*X[:-1], X[0]]).holds  # other sequences


@pytest.mark.parametrize(("settings", "X"), CASES)
def test_save_and_load(settings, X, tmp_path):
    model = MarkovChain(**settings).fit(X)
    model.save(tmp_path / "chain")
    again = lemmata.load(tmp_path / "chain")
    for name in ("states_", "transition_", "initial_", "counts_"):
        assert np.array_equal(getattr(again, name), getattr(model, name))
    assert again.certify(X).to_dict() == model.certify(X).to_dict()


def test_given_chains_are_saved_cloned_and_certified(tmp_path):
    for P in (np.array([[0.6, 0.4], [0.3, 0.7]]), csr_array([[0.6, 0.4], [0.3, 0.7]])):
        chain = MarkovChain(P, states=["a", "b"])
        assert clone(chain).certify().holds
        chain.save(tmp_path / "chain")
        again = lemmata.load(tmp_path / "chain")
        np.testing.assert_allclose(again.stationary(), [[3 / 7, 4 / 7]])
        fitted = clone(chain).fit()
        np.testing.assert_allclose(fitted.stationary(), [[3 / 7, 4 / 7]])
        assert fitted.certify().holds
        twin = deepcopy(fitted)
        twin.transition_ = twin.transition_ * 1.01
        assert not twin.certify().holds
    params = MarkovChain(order=2, alpha=0.5).get_params()
    assert params["order"] == 2
    assert repr(MarkovChain(order=2)) == "MarkovChain(order=2)"


def test_it_is_found_and_says_what_its_data_are():
    assert dict(lemmata.all_estimators())["MarkovChain"] is MarkovChain
    tags = get_tags(MarkovChain()).input_tags
    assert not tags.two_d_array
    assert tags.one_d_array


def test_certifying_changes_nothing_and_reads_no_record():
    model = MarkovChain().fit(WEATHER)
    before = deepcopy(vars(model))
    model.certify(WEATHER)
    assert vars(model).keys() == before.keys()
    for name, value in before.items():
        assert np.array_equal(getattr(model, name), value)


@pytest.mark.parametrize(
    ("settings", "X", "message"),
    [
        ({}, "abba", "list\\(text\\)"),
        ({}, [0.5, 1.5], "cut numbers into bins"),
        ({}, [["a", 1]], "all integers or all strings"),
        ({}, [["a"], [1]], "symbols of one kind"),
        ({}, [], "no symbol"),
        ({}, [None, None], "no symbol"),
        ({}, 3, "list of sequences"),
        ({"states": ["a", "b"]}, [list("abc")], "c is no state of the chain: its states are a, b"),
        ({"states": ["a", "a"]}, [list("ab")], "2 different"),
        ({"order": 12}, sequences(k=9), "lower the order"),
        ({"transition": [[0.5, 0.6], [0.5, 0.5]]}, None, "row 0 sums to 1.1"),
        ({"transition": [[1.5, -0.5], [0.5, 0.5]]}, None, "at least 0"),
        ({"transition": [[0.5, 0.5]]}, None, "2 axes of one length"),
        ({"transition": np.eye(2), "order": 2}, None, "3 axes"),
        ({"transition": np.eye(2), "initial": [0.5, 0.6]}, None, "initial must be a law"),
        ({"order": 0}, [0, 1], "order"),
        ({"alpha": -1.0}, [0, 1], "alpha"),
    ],
)
def test_errors_say_what_is_wrong(settings, X, message):
    with pytest.raises(ValueError, match=message):
        MarkovChain(**settings).fit(X)


def test_other_refusals():
    with pytest.raises(NotFittedError, match="give one, or fit it"):
        MarkovChain().stationary()
    with pytest.raises(NotFittedError):
        MarkovChain().certify(WEATHER)
    chain = MarkovChain([[0.6, 0.4], [0.3, 0.7]])
    with pytest.raises(ValueError, match="shape \\(2,\\)"):
        chain.propagate([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="n_steps"):
        chain.propagate([1.0, 0.0], -1)
    with pytest.raises(ValueError, match="length of at least 1"):
        chain.sample(0)
    with pytest.raises(ValueError, match="takes the sequences"):
        MarkovChain().fit(WEATHER).certify()
    with pytest.raises(ValueError, match="is no state"):
        chain.log_likelihood([0, 5])
    with pytest.raises(ValueError, match="embedded"):
        MarkovChain(order=2, alpha=1.0).fit([0, 1, 0]).hitting(0)
    assert chain.log_likelihood([[]]) == 0.0
    impossible = MarkovChain([[1.0, 0.0], [0.5, 0.5]])
    assert impossible.log_likelihood([0, 1]) == -np.inf
    assert impossible.log_likelihood([0, None, 1]) == -np.inf


def test_propagation_matches_powers_exactly():
    P = exact.floats(exact.rational(exact.random_weights(5, 0)))
    w = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    for steps in (0, 1, 4, 50):
        np.testing.assert_allclose(MarkovChain(P).propagate(w, steps), w @ np.linalg.matrix_power(P, steps), rtol=1e-12)
