"""Classes, periods, balance and ergodicity, against powers of the matrix and enumeration."""

from math import gcd

import numpy as np
import pytest
from scipy.sparse import csr_array

from lemmata.markov import MarkovChain
from lemmata.markov.classes import classes_of
from markov import exact


def sparse_chain(n, seed, degree=1.3):
    rng = np.random.default_rng(seed)
    W = (rng.random((n, n)) < degree / n) * rng.integers(1, 9, (n, n))
    W[W.sum(axis=1) == 0, rng.integers(n)] = 1
    return W / W.sum(axis=1, keepdims=True)


@pytest.mark.item("SMP-05")
@pytest.mark.parametrize("seed", range(30))
def test_classes_and_periods_by_powers(seed):
    n = 7
    P = sparse_chain(n, seed)
    step = P > 0
    reach, powers = np.eye(n, dtype=bool), []
    for _ in range(4 * n * n):  # long enough for every cycle and every sum of two
        powers.append(step if not powers else (powers[-1].astype(int) @ step) > 0)
    for power in powers[:n]:
        reach |= power
    together = reach & reach.T
    found = classes_of(csr_array(P))
    assert np.array_equal(found.label[:, None] == found.label, together)
    assert np.array_equal(np.unique(found.label, return_index=True)[1], np.sort(np.unique(found.label, return_index=True)[1]))
    for i in range(n):
        assert found.recurrent[found.label[i]] == (not (reach[i] & ~together[i]).any())
        returns = [t + 1 for t, power in enumerate(powers) if power[i, i]]
        assert found.period[found.label[i]] == gcd(*returns)
    chain = MarkovChain(P)
    assert chain.is_irreducible == bool(reach.all())
    positive = bool(powers[-1].all())  # a power without zeros: irreducible and aperiodic, and the other way round
    assert chain.ergodicity().holds == positive
    assert chain.is_aperiodic == all(found.period[k] == 1 for k in range(len(found.period)) if found.recurrent[k])


@pytest.mark.item("SMP-04")
@pytest.mark.parametrize("seed", range(5))
def test_balance_makes_a_law_stationary(seed):
    rng = np.random.default_rng(seed)
    flows = rng.random((6, 6)) * (rng.random((6, 6)) < 0.7)
    flows = flows + flows.T + np.eye(6)
    w = flows.sum(axis=1) / flows.sum()
    chain = MarkovChain(flows / flows.sum(axis=1, keepdims=True))
    assert chain.detailed_balance(w).holds
    assert chain.detailed_balance().holds
    assert chain.is_reversible
    np.testing.assert_allclose(chain.propagate(w), w, rtol=1e-13)
    # Reversible: similar to a symmetric matrix, so the spectrum is real, and the same as that of P.
    values = chain.spectrum()
    assert values.dtype.kind == "f"
    np.testing.assert_allclose(np.sort(values), np.sort(np.linalg.eigvals(chain.transition).real), atol=1e-12)
    other = np.roll(w, 1)
    assert not chain.detailed_balance(other).holds


@pytest.mark.item("SMP-04")
def test_a_stationary_law_need_not_be_in_balance():
    turning = MarkovChain([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
    w = turning.stationary()[0]
    np.testing.assert_allclose(w, 1 / 3, rtol=1e-15)
    found = turning.detailed_balance()
    assert not found.holds
    assert found.violation == pytest.approx(3 * (0.9 - 0.1) / 3)
    assert not turning.is_reversible
    assert turning.spectrum().dtype.kind == "c"
    assert not MarkovChain([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]).is_reversible  # moves without a way back


def test_columns_of_the_notes_are_rows_here():
    # Metropolis with the uniform proposal on (.2, .3, .5), of the catalogue (SMP-06): balance, hence stationary.
    T = np.array([[0, 0.5, 0.5], [1 / 3, 1 / 6, 1 / 2], [0.2, 0.3, 0.5]])
    chain = MarkovChain(T)
    np.testing.assert_allclose(chain.stationary(), [[0.2, 0.3, 0.5]], rtol=1e-14)
    assert chain.is_reversible
    assert chain.detailed_balance([0.2, 0.3, 0.5]).holds


@pytest.mark.parametrize("seed", range(4))
def test_reversibility_is_seen_in_masses_of_any_size(seed):
    n = 40
    rng = np.random.default_rng(seed)
    up, down = 10.0 ** rng.uniform(-9, 0, n - 1), 10.0 ** rng.uniform(-9, 0, n - 1)
    P = np.diag(up / 2, 1) + np.diag(down / 2, -1)
    P += np.diag(1 - P.sum(axis=1))
    assert MarkovChain(P).is_reversible  # birth and death always is
    P[0, 2], P[2, 0] = P[0, 1] / 7, 1e-9
    P[[0, 2], [0, 2]] = 0
    P[[0, 2], [0, 2]] = 1 - P[[0, 2]].sum(axis=1)
    assert not MarkovChain(P).is_reversible


def test_the_last_reason():
    chain = MarkovChain([[0.5, 0.5], [0.0, 1.0]])
    assert not chain.ergodicity().holds
    assert "1 transient states" in chain.ergodicity().reason
    assert exact.law(exact.rational([[1, 1], [1, 0]])) == [exact.Fraction(2, 3), exact.Fraction(1, 3)]
    with pytest.raises(ValueError, match="up to 1,000 states"):
        MarkovChain(csr_array(np.eye(1001))).spectrum()
