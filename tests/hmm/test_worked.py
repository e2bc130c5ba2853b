"""The worked example of the catalogue, in fractions: two states, three symbols, nine rows; and all paths by brute force."""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from lemmata.hmm import CategoricalHMM

P = [[F(1, 3), F(2, 3)], [F(1, 2), F(1, 2)]]
Q = [[F(1), F(0), F(0)], [F(1, 3), F(1, 2), F(1, 6)]]
SYMBOLS = [0, 1, 2, 0, 0, 0, 0, 0, 1]  # a b c a a a a a b
SHOWN = [0, 1, 1, 0, 0, 1, 0, 0, 1]
HALF, STATIONARY = (F(1, 2), F(1, 2)), (F(3, 7), F(4, 7))


def joint(path, start):
    value = start[path[0]] * Q[path[0]][SYMBOLS[0]]
    for before, now, symbol in zip(path[:-1], path[1:], SYMBOLS[1:], strict=True):
        value *= P[before][now] * Q[now][symbol]
    return value


def paths():
    return list(product(range(2), repeat=9))


def floats(table):
    return np.array([[float(x) for x in row] for row in table])


def model(start=HALF, **options):
    given = {"startprob_init": [float(x) for x in start], "transmat_init": floats(P), "emissionprob_init": floats(Q)}
    everything = {"fixed": ("startprob", "transmat", "emissionprob")} | options
    return CategoricalHMM(2, n_features=3, **given, **everything).fit(np.array(SYMBOLS)[:, None])


ROWS = np.array(SYMBOLS)[:, None]


@pytest.mark.item("SEQ-14", "SEQ-08", "SEQ-09")
@pytest.mark.parametrize(
    ("start", "shown", "evidence"),
    [(HALF, F(1, 34992), F(3865, 8957952)), (STATIONARY, None, None)],
)
def test_evidence_is_the_sum_over_all_paths(start, shown, evidence):
    total = sum(joint(path, start) for path in paths())
    if evidence is not None:
        assert joint(SHOWN, start) == shown
        assert total == evidence
        assert float(joint(SHOWN, start) / total) == pytest.approx(0.0662354, abs=5e-8)
    else:
        assert float(joint(SHOWN, start)) == pytest.approx(2.449539e-5, abs=5e-12)
        assert float(total) == pytest.approx(3.944779e-4, abs=5e-11)
    fit = model(start)
    assert fit.score(ROWS) == pytest.approx(np.log(float(total)), rel=1e-13)
    certificate = fit.certify(ROWS)
    assert certificate.holds, str(certificate)
    assert certificate["both ends"].value < 1e-13


@pytest.mark.item("SEQ-14", "SEQ-10")
def test_states_given_all_rows():
    total = sum(joint(path, HALF) for path in paths())
    second = [float(sum(joint(path, HALF) for path in paths() if path[t] == 1) / total) for t in range(9)]
    np.testing.assert_allclose(second, [0.2, 1, 1, 0.280724, 0.394567, 0.373868, 0.394567, 0.280724, 1], atol=5e-7)
    proba = model().predict_proba(ROWS)
    np.testing.assert_allclose(proba[:, 1], second, rtol=1e-13)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)


def test_the_filter_knows_only_what_came_before():
    found = model().filter(ROWS)
    for t in range(9):
        ahead = [F(0), F(0)]
        for path in product(range(2), repeat=t + 1):
            ahead[path[t]] += _prefix(path, HALF)
        assert found[t, 1] == pytest.approx(float(ahead[1] / sum(ahead)), rel=1e-13)


def _prefix(path, start):
    value = start[path[0]] * Q[path[0]][SYMBOLS[0]]
    for t in range(1, len(path)):
        value *= P[path[t - 1]][path[t]] * Q[path[t]][SYMBOLS[t]]
    return value


@pytest.mark.item("SEQ-14", "SEQ-11")
def test_five_paths_tie_for_the_best():
    best = max(joint(path, HALF) for path in paths())
    ties = [path for path in paths() if joint(path, HALF) == best]
    assert best == F(1, 34992)
    assert len(ties) == 5
    assert tuple(SHOWN) in ties
    log_prob, path = model().decode(ROWS)
    assert tuple(path) in ties
    assert log_prob == pytest.approx(np.log(float(best)), rel=1e-13)
    assert sorted(map(tuple, model().decode_all(ROWS)[1])) == sorted(ties)


@pytest.mark.item("SEQ-12")
def test_a_step_of_baum_welch_and_the_misprint():
    with pytest.warns(UserWarning, match="did not converge"):
        one = model(fixed=(), n_iter=1, acceleration=None)
    np.testing.assert_allclose(one.emissionprob_[1], [0.390795, 0.406137, 0.203068], atol=5e-7)
    assert model().score(ROWS) == pytest.approx(-7.748335, abs=5e-7)
    assert one.score(ROWS) == pytest.approx(-7.341883, abs=5e-7)
    # The printed formula has β of the next row in the place of β, αₜ(a) βₜ₊₁(a); beyond the last row β is 1.
    alpha, beta = _unscaled()
    wrong = np.zeros(3)
    for t in range(9):
        wrong[SYMBOLS[t]] += alpha[t, 1] * (beta[t + 1, 1] if t < 8 else 1.0)
    np.testing.assert_allclose(wrong / wrong.sum(), [0.221969, 0.688788, 0.089243], atol=5e-7)
    many = model(fixed=(), n_iter=200, acceleration=None, tol=0.0)
    assert many.score(ROWS) == pytest.approx(-7.053037, abs=5e-7)
    assert (np.diff(many.trace_) >= -1e-12).all()
    np.testing.assert_allclose(many.transmat_.sum(axis=1), 1.0, rtol=1e-14)


def _unscaled():
    transition, emission = floats(P), floats(Q)
    alpha, beta = np.zeros((9, 2)), np.ones((9, 2))
    alpha[0] = [0.5, 0.5] * emission[:, SYMBOLS[0]]
    for t in range(1, 9):
        alpha[t] = alpha[t - 1] @ transition * emission[:, SYMBOLS[t]]
    for t in range(7, -1, -1):
        beta[t] = transition @ (emission[:, SYMBOLS[t + 1]] * beta[t + 1])
    return alpha, beta


@pytest.mark.item("SEQ-09")
def test_forward_times_backward_is_the_same_everywhere():
    alpha, beta = _unscaled()
    np.testing.assert_allclose((alpha * beta).sum(axis=1), float(F(3865, 8957952)), rtol=1e-13)


@pytest.mark.item("SEQ-07")
def test_probabilities_of_everything_sum_to_one():
    total = F(0)
    for path in product(range(2), repeat=3):
        for symbols in product(range(3), repeat=3):
            value = HALF[path[0]] * Q[path[0]][symbols[0]]
            for t in (1, 2):
                value *= P[path[t - 1]][path[t]] * Q[path[t]][symbols[t]]
            total += value
    assert total == 1
    fit = model()
    sums = [np.exp(fit.score(np.array(symbols)[:, None])) for symbols in product(range(3), repeat=3)]
    assert sum(sums) == pytest.approx(1.0, rel=1e-13)


@pytest.mark.item("SEQ-07")
def test_sampled_sequences_have_the_frequencies_of_the_model():
    X, states = model().sample(60_000, random_state=0)
    pairs = np.zeros((2, 2))
    np.add.at(pairs, (states[:-1], states[1:]), 1)
    counts = pairs.sum(axis=1, keepdims=True)
    # Five standard errors of a share.
    assert (np.abs(pairs / counts - floats(P)) <= 5 * np.sqrt(0.25 / counts)).all()
    emitted = np.zeros((2, 3))
    np.add.at(emitted, (states, X[:, 0]), 1)
    counts = emitted.sum(axis=1, keepdims=True)
    assert (np.abs(emitted / counts - floats(Q)) <= 5 * np.sqrt(0.25 / counts)).all()
