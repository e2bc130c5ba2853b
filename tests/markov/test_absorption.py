"""Absorption: exact fractions, powers of the matrix, known walks, and states from which it is not certain."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

from lemmata.markov import MarkovChain
from lemmata.markov.absorption import absorption_checks, settle
from lemmata.markov.classes import classes_of
from lemmata.markov.transient import large_absorption
from markov import exact
from markov.test_stationary import blocks, lattice, normalized


def ruin(n, p=0.5):
    """Gambler's ruin on 0 … n + 1, the ends absorbing."""
    P = np.diag(np.full(n + 1, p), 1) + np.diag(np.full(n + 1, 1 - p), -1)
    P[[0, -1]] = 0
    P[0, 0] = P[-1, -1] = 1
    return P


def absorbing_chain(seed, n=6, ends=2):
    W = exact.random_weights(n + ends, seed, zeros=0.4)
    W[n:] = 0
    W[n:, n:] = np.eye(ends, dtype=int)
    return exact.rational(W)


@pytest.mark.item("SEQ-05")
@pytest.mark.parametrize("seed", range(5))
def test_chances_and_steps_are_exact(seed):
    P = absorbing_chain(seed)
    A = [[exact.Fraction(int(i == j)) - P[i][j] for j in range(6)] for i in range(6)]
    found = MarkovChain(exact.floats(P)).absorption()
    assert found.ends == [6, 7]
    assert found.certain.all()
    for end in (6, 7):
        truth = [float(v) for v in exact.solve(A, [P[i][end] for i in range(6)])]
        np.testing.assert_allclose(found.probabilities[:6, end - 6], truth, rtol=1e-13)
    np.testing.assert_allclose(found.steps[:6], [float(v) for v in exact.solve(A, [1] * 6)], rtol=1e-13)
    np.testing.assert_array_equal(found.probabilities[6:], np.eye(2))
    np.testing.assert_array_equal(found.steps[6:], 0)


@pytest.mark.item("SEQ-05")
def test_they_are_the_limit_of_powers():
    P = ruin(5, 0.4)
    found = MarkovChain(P).absorption()
    np.testing.assert_allclose(np.linalg.matrix_power(P, 4000)[:, [0, 6]], found.probabilities, atol=1e-12)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-14)
    steps = sum(np.linalg.matrix_power(P, t)[:, 1:-1].sum(axis=1) for t in range(2000))  # chances of being still on the way
    np.testing.assert_allclose(found.steps, steps, rtol=1e-10)
    odds = 1.5 ** np.arange(7)  # the classical solution for p = 0.4
    np.testing.assert_allclose(found.probabilities[:, 1], (odds - 1) / (odds[-1] - 1), rtol=1e-12, atol=1e-15)


@pytest.mark.item("SEQ-05")
def test_an_absorbing_state_that_is_not_reached_from_everywhere():
    # 0 is absorbing; 3 and 4 go round for ever, and 1 may go either way.
    P = np.array([[1, 0, 0, 0, 0], [0.5, 0, 0.25, 0.25, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]])
    found = MarkovChain(P).absorption()
    assert found.ends == [0]
    assert found.certain.tolist() == [True, False, True, False, False]
    np.testing.assert_allclose(found.probabilities.ravel(), [1, 0.75, 1, 0, 0])
    np.testing.assert_array_equal(found.steps, [0, np.inf, 1, np.inf, np.inf])
    settled = MarkovChain(P).settling()
    np.testing.assert_allclose(settled.probabilities[1], [0.75, 0.25])
    np.testing.assert_allclose(settled.steps, [0, 1.25, 1, 0, 0])
    with pytest.raises(ValueError, match="no absorbing state"):
        MarkovChain([[0.5, 0.5], [0.5, 0.5]]).absorption()


def test_hitting_by_simulation_and_known_walks():
    # On a circle of n states a fair walk takes k(n − k) steps to get k states further.
    n = 10
    P = (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)) / 2
    found = MarkovChain(P).hitting(0)
    np.testing.assert_allclose(found.steps, np.arange(n) * (n - np.arange(n)), rtol=1e-12)
    two = MarkovChain(P).hitting([7, 2])
    np.testing.assert_allclose(two.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(two.probabilities[3], [0.2, 0.8])
    assert two.ends == [7, 2]
    named = MarkovChain(ruin(1), states=["lost", "playing", "won"])
    assert named.absorption().ends == ["lost", "won"]
    assert named.settling().ends == [["lost"], ["won"]]
    assert two.steps[2] == two.steps[7] == 0
    with pytest.raises(ValueError, match="99 is no state"):
        MarkovChain(P).hitting(99)


@pytest.mark.parametrize("P", [lattice(36, 0.0), lattice(36, 0.02), blocks(1200, 6, 1e-2), normalized(ruin(1300, 0.5))])
def test_many_transient_states(P):
    P = csr_array(P)
    n, ends = P.shape[0], [0, P.shape[0] - 1]
    inner = np.setdiff1d(np.arange(n), ends)
    A, B = csr_array(P[inner][:, inner]), P[inner][:, ends].toarray()
    X, steps = large_absorption(A, B)
    truth = np.linalg.solve(np.eye(n - 2) - A.toarray(), np.column_stack([B, np.ones(n - 2)]))
    np.testing.assert_allclose(X, truth[:, :2], atol=1e-9)
    np.testing.assert_allclose(steps, truth[:, 2], rtol=1e-8)
    stays = diags_array(np.isin(np.arange(n), ends).astype(float))
    chain = csr_array(diags_array((~np.isin(np.arange(n), ends)).astype(float)) @ P + stays)
    chain.eliminate_zeros()
    found = settle(chain, classes_of(chain))
    checks = absorption_checks(chain, classes_of(chain), found)
    assert all(check.holds for check in checks), checks


@pytest.mark.parametrize("n", [8, 1200])
def test_sabotage_is_refused(n):
    P = csr_array(ruin(n))
    classes = classes_of(P)
    found = settle(P, classes)
    assert all(check.holds for check in absorption_checks(P, classes, found))
    rng = np.random.default_rng(0)
    for twin in (
        found._replace(probabilities=found.probabilities * (1 + 0.01 * rng.standard_normal(found.probabilities.shape))),
        found._replace(steps=found.steps * (1 + 0.01 * rng.standard_normal(len(found.steps)))),
        found._replace(steps=np.full(len(found.steps), np.inf)),
    ):
        assert not all(check.holds for check in absorption_checks(P, classes, twin))
