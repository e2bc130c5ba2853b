"""Hidden Markov models: against all paths of short sequences, mixtures, and what must not matter."""

import warnings
from itertools import product

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone

import lemmata
from lemmata.hmm import CategoricalHMM, GaussianHMM, HMMClassifier, baum_welch, hidden_markov
from lemmata.mixture import GaussianMixture

NAN = float("nan")


def rows(seed=0, n=200, k=2, d=2, stay=0.9):
    """Draw rows from a chain that tends to stay, and its states."""
    rng = np.random.default_rng(seed)
    transition = np.full((k, k), (1 - stay) / (k - 1)) + (stay - (1 - stay) / (k - 1)) * np.eye(k)
    states, now = [], 0
    for _ in range(n):
        now = rng.choice(k, p=transition[now])
        states.append(now)
    states = np.array(states)
    return 4.0 * rng.normal(size=(k, d))[states] + rng.normal(size=(n, d)), states


def all_paths(model, X):
    """Log joint probability of every path, written out."""
    k = len(model.means_)
    logs = np.zeros((len(X), k))
    for t, row in enumerate(X):
        seen = ~np.isnan(row)
        for s in range(k):
            if seen.any():
                logs[t, s] = multivariate_normal(model.means_[s][seen], model.covars_[s][np.ix_(seen, seen)]).logpdf(row[seen])
    paths = np.array(list(product(range(k), repeat=len(X))))
    values = np.log(model.startprob_)[paths[:, 0]] + logs[np.arange(len(X)), paths].sum(axis=1)
    return paths, values + np.log(model.transmat_)[paths[:, :-1], paths[:, 1:]].sum(axis=1)


@pytest.mark.item("SEQ-08", "SEQ-10", "SEQ-11")
@pytest.mark.parametrize("holes", [0.0, 0.4])
@pytest.mark.parametrize("k", [2, 3])
def test_inference_is_that_over_all_paths(k, holes):
    X, _ = rows(seed=k, n=60, k=k)
    model = GaussianHMM(k, covariance_type="full", random_state=0, startprob_prior=2.0, transmat_prior=1.5).fit(X)
    short = X[:6].copy()
    short[np.random.default_rng(1).random(short.shape) < holes] = NAN
    paths, values = all_paths(model, short)
    total = logsumexp(values)
    assert model.score(short) == pytest.approx(total, rel=1e-12)
    share = np.exp(values - total)
    expected = np.array([[share[paths[:, t] == s].sum() for s in range(k)] for t in range(6)])
    np.testing.assert_allclose(model.predict_proba(short), expected, rtol=1e-10, atol=1e-14)
    log_prob, path = model.decode(short)
    assert log_prob == pytest.approx(values.max(), rel=1e-12)
    assert np.array_equal(path, paths[values.argmax()])
    ahead = [all_paths(model, short[: t + 1]) for t in range(6)]
    filtered = [[np.exp(logsumexp(v[p[:, -1] == s]) - logsumexp(v)) for s in range(k)] for p, v in ahead]
    np.testing.assert_allclose(model.filter(short), filtered, rtol=1e-10, atol=1e-14)
    drawn = model.draw_states(short, 4000, random_state=0)
    frequencies = np.array([[(drawn[:, t] == s).mean() for s in range(k)] for t in range(6)])
    assert np.abs(frequencies - expected).max() < 5 * np.sqrt(0.25 / 4000)  # five standard errors


@pytest.mark.item("SEQ-13", "SEQ-19")
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_chain_with_equal_rows_is_a_mixture(kind):
    X, _ = rows(seed=5, n=150, k=2)
    mixture = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    same = {"startprob_init": mixture.weights_, "transmat_init": [mixture.weights_] * 2}
    model = GaussianHMM(
        2,
        covariance_type=kind,
        means_init=mixture.means_,
        covars_init=mixture.covariances_,
        fixed=("startprob", "transmat", "means", "covars"),
        **same,
    ).fit(X)
    assert model.score(X) == pytest.approx(len(X) * mixture.score(X), rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), mixture.predict_proba(X), rtol=1e-9, atol=1e-14)
    # A step of the emissions is the mixture's, so its optimum stays where it is.
    free = GaussianHMM(
        2,
        covariance_type=kind,
        means_init=mixture.means_,
        covars_init=mixture.covariances_,
        fixed=("startprob", "transmat"),
        **same,
    ).fit(X)
    np.testing.assert_allclose(free.means_, mixture.means_, rtol=1e-4)


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_fits_are_certified_and_rise(kind, holes):
    X, _ = rows(seed=3, n=240, k=3)
    X[np.random.default_rng(0).random(X.shape) < holes] = NAN
    lengths = [100, 60, 80]
    model = GaussianHMM(3, covariance_type=kind, random_state=0).fit(X, lengths=lengths)
    certificate = model.certify(X, lengths=lengths)
    assert certificate.holds, str(certificate)
    plain = GaussianHMM(3, covariance_type=kind, random_state=0, acceleration=None, tol=1e-8).fit(X, lengths=lengths)
    assert (np.diff(plain.trace_) >= -1e-9).all()
    assert not model.certify(X[::-1].copy(), lengths=lengths).holds


def test_states_of_a_chain_that_stays_are_found_again():
    X, states = rows(seed=1, n=3000, k=3, stay=0.95)
    model = GaussianHMM(3, random_state=0).fit(X)
    order = np.array([np.bincount(model.predict(X)[states == s], minlength=3).argmax() for s in range(3)])
    assert sorted(order) == [0, 1, 2]
    assert np.mean(order[states] == model.predict(X)) > 0.99
    found = model.transmat_[np.ix_(order, order)]
    # Five standard errors of a share of about a thousand steps.
    assert np.abs(found - (0.025 + 0.925 * np.eye(3))).max() < 5 * np.sqrt(0.05 / 1000)


def test_sequences_may_come_in_any_form(tmp_path):
    X, _ = rows(n=90)
    lengths = [40, 20, 30]
    parts = np.split(X, np.cumsum(lengths)[:-1])
    model = GaussianHMM(2, random_state=0).fit(X, lengths=lengths)
    other = GaussianHMM(2, random_state=0).fit(parts)
    assert np.array_equal(model.means_, other.means_)
    assert np.array_equal(model.predict_proba(X, lengths), other.predict_proba(parts))
    cube = np.stack([parts[0][:20], parts[1], parts[2][:20]])
    assert model.score(cube) == pytest.approx(sum(model.score(part) for part in cube), rel=1e-12)
    assert model.score(X, lengths=lengths) == pytest.approx(sum(model.score(part) for part in parts), rel=1e-12)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "series": np.repeat([7.0, 8.0, 9.0], lengths)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=11)
    with lemmata.config(block_rows=16):
        stored = model.__class__(2, random_state=0, means_init=model.means_, covars_init=model.covars_)
        stored.fit(tmp_path / "rows.parquet", lengths="series")
        memory = model.__class__(2, random_state=0, means_init=model.means_, covars_init=model.covars_)
        memory.fit(X, lengths=lengths)
        np.testing.assert_allclose(stored.transmat_, memory.transmat_, rtol=1e-6)
        whole = stored.score(tmp_path / "rows.parquet", lengths="series")
        assert whole == pytest.approx(len(X) * stored.lower_bound_, rel=1e-12)
        frame = dd.from_pandas(table.to_pandas(), npartitions=4)  # sequences that span partitions
        clustered = clone(stored).fit(frame, lengths="series")
        np.testing.assert_allclose(clustered.transmat_, memory.transmat_, rtol=1e-6)
        assert clustered.certify(frame, lengths="series").holds


def test_nothing_underflows_and_stretches_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    symbols = rng.integers(3, size=(300_000, 1)).astype(float)
    chain = {"startprob_init": [0.5, 0.5], "transmat_init": [[0.9, 0.1], [0.2, 0.8]]}
    emission = [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]
    everything = ("startprob", "transmat", "emissionprob")
    model = CategoricalHMM(2, **chain, emissionprob_init=emission, fixed=everything).fit(symbols[:100])
    whole, filtered = model.score(symbols), model.filter(symbols[:5000])
    assert np.isfinite(whole)
    monkeypatch.setattr(hidden_markov, "ROWS", 1000)
    assert model.score(symbols) == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(model.filter(symbols[:5000]), filtered, rtol=1e-12)  # stretches of 1,000 rows now
    assert np.isfinite(model.predict_proba(symbols)).all()


def test_structure_is_kept_and_rows_without_a_way_are_refused():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=40), 5 + rng.normal(size=40), 10 + rng.normal(size=40)])[:, None]
    left_to_right = [[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]]
    start = {"startprob_init": [1.0, 0.0, 0.0], "transmat_init": left_to_right, "means_init": [[0.0], [5.0], [10.0]]}
    model = GaussianHMM(3, **start).fit(X)
    assert np.array_equal(model.transmat_ > 0, np.array(left_to_right) > 0)
    assert (np.diff(model.decode(X)[1]) >= 0).all()
    assert model.certify(X).holds
    emission = [[1.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="some sequence is impossible"):
        CategoricalHMM(2, emissionprob_init=emission).fit([[0], [1], [0]])


def test_priors_pull():
    X, _ = rows(n=60)
    free = GaussianHMM(2, random_state=0).fit(X)
    sticky = GaussianHMM(2, random_state=0, transmat_prior=1.0 + 500.0 * np.eye(2)).fit(X)
    assert np.diagonal(sticky.transmat_).min() > np.diagonal(free.transmat_).min()
    assert sticky.certify(X).holds, str(sticky.certify(X))
    wide = GaussianHMM(2, random_state=0, covars_prior=1000.0, covars_weight=10.0).fit(X)
    assert (wide.covars_ > free.covars_.max(axis=0)).all()
    assert wide.certify(X).holds, str(wide.certify(X))
    # Σ = (n Σ̂ + Ψ)/(n + w), for one state in closed form.
    one = GaussianHMM(1, covars_prior=6.0, covars_weight=3.0, min_covar=0.0).fit(X)
    np.testing.assert_allclose(one.covars_[0], (len(X) * X.var(axis=0) + 6.0) / (len(X) + 3.0), rtol=1e-12)


def test_forecasts_forget():
    X, _ = rows(n=200)
    model = GaussianHMM(2, random_state=0).fit(X)
    forecast = model.forecast(X, 500)
    np.testing.assert_allclose(forecast.states[0], model.filter(X)[-1] @ model.transmat_, rtol=1e-12)
    stationary = np.linalg.matrix_power(model.transmat_, 2000)[0]
    np.testing.assert_allclose(forecast.states[-1], stationary, rtol=1e-6)
    means, covariances = forecast.emissions
    drawn, _ = model.sample(200_000, random_state=0)
    # Five standard errors; rows of a sticky chain count for a twentieth of independent ones.
    assert np.abs(means[-1] - drawn.mean(axis=0)).max() < 5 * np.sqrt(covariances[-1].max() * 20 / 200_000)


@pytest.mark.item("SEQ-15")
def test_a_classifier_is_bayes_rule(tmp_path):
    rng = np.random.default_rng(0)

    def toss(stay, n=40):
        flips = rng.random(n) > stay
        return (np.cumsum(flips) % 2)[:, None] + 0.3 * rng.normal(size=(n, 1))

    X = [toss(0.95) for _ in range(8)] + [toss(0.5) for _ in range(8)]
    y = np.repeat(["slow", "fast"], 8)
    model = HMMClassifier(GaussianHMM(2, random_state=0)).fit(X, y)
    fresh = [toss(0.95) for _ in range(20)] + [toss(0.5) for _ in range(20)]
    labels = np.repeat(["slow", "fast"], 20)
    assert model.score(fresh, labels) > 0.9
    logs = np.array([[one.score(sequence) for one in model.estimators_] for sequence in fresh])
    assert np.array_equal(model.predict(fresh), model.classes_[logs.argmax(axis=1)])
    shifted = logs + rng.normal(size=(40, 1))  # what all classes have in common does not count
    assert np.array_equal(shifted.argmax(axis=1), logs.argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(fresh), np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), rtol=1e-9)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    model.save(tmp_path / "model.lemmata")
    assert np.array_equal(lemmata.load(tmp_path / "model.lemmata").predict(fresh), model.predict(fresh))
    model.class_prior_ = np.array([0.51, 0.49])
    assert not model.certify(X, y).holds
    with pytest.raises(ValueError, match="Give a list of sequences"):
        model.predict(fresh[0])
    with pytest.raises(ValueError, match="give one label for each"):
        HMMClassifier().fit(X, y[:-1])


def test_mistakes_are_said():
    X, _ = rows(n=30)
    with pytest.raises(ValueError, match=r"write lengths="):
        GaussianHMM(2).fit(X, [10, 20])
    with pytest.raises(ValueError, match="add up to the 30 rows"):
        GaussianHMM(2).fit(X, lengths=[10, 10])
    with pytest.raises(ValueError, match="'colors', and what can be fixed is"):
        GaussianHMM(2, fixed=("colors",)).fit(X)
    with pytest.raises(ValueError, match="transmat_init must hold probabilities"):
        GaussianHMM(2, transmat_init=[[1.0, 1.0], [0.0, 1.0]]).fit(X)
    with pytest.raises(ValueError, match="symbols, whole numbers from 0"):
        CategoricalHMM(2).fit(X - X.min())
    with pytest.raises(ValueError, match="raise n_features"):
        CategoricalHMM(2, random_state=0).fit([[0], [1], [0]]).predict([[5]])
    with pytest.raises(ValueError, match="different numbers of columns"):
        GaussianHMM(2).fit([np.ones((3, 1)), np.ones((3, 2))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianHMM(2, n_iter=1).fit(X)
    with pytest.raises(ValueError, match="'viterbi' or 'map'"):
        model.decode(X, algorithm="best")


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_a_long_sequence_is_worked_from_both_ends_with_the_same_answers(monkeypatch, holes):
    X, _ = rows(seed=2, n=700, k=3, stay=0.8)
    X[np.random.default_rng(0).random(X.shape) < holes] = NAN
    start = {"random_state": 0, "n_iter": 6, "tol": 0.0, "acceleration": None}

    def fitted():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # six steps do not converge
            return GaussianHMM(3, **start).fit(X)

    short = fitted()
    log_prob, path = short.decode(X)
    monkeypatch.setattr(baum_welch, "LONG", 100)
    monkeypatch.setattr(baum_welch, "STRETCH", 64)
    monkeypatch.setattr(hidden_markov, "LONG", 100)
    monkeypatch.setattr(hidden_markov, "STRETCH", 64)
    found = []
    for n_threads in (1, 2, 3):
        with lemmata.config(n_threads=n_threads):
            found.append((fitted(), *short.decode(X)))
    for model, value, long_path in found:
        np.testing.assert_allclose(model.transmat_, short.transmat_, rtol=1e-9)
        np.testing.assert_allclose(model.means_, short.means_, rtol=1e-9)
        np.testing.assert_allclose(model.trace_, short.trace_, rtol=1e-12)
        assert value == pytest.approx(log_prob, rel=1e-12)
        assert np.array_equal(long_path, path)
        assert np.array_equal(model.transmat_, found[0][0].transmat_)
        assert np.array_equal(model.means_, found[0][0].means_)
