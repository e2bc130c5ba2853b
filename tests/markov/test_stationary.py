"""Stationary laws: exact fractions, powers of the matrix, known chains, and large chains against small ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array, diags_array, eye_array, kron

from lemmata.core.certificate import simplex
from lemmata.markov import MarkovChain
from lemmata.markov.aggregation import TOL, by_groups, incoming, large_law, level_of
from lemmata.markov.classes import classes_of
from lemmata.markov.elimination import reduced_law
from lemmata.markov.stationary import ELIMINATED, law_checks, law_of
from markov import exact


def normalized(W):
    W = csr_array(W, dtype=float)
    return csr_array(diags_array(1 / W.sum(axis=1)) @ W)


def lattice(k, drift, seed=0):
    """A walk on a square, uneven and with a drift, its states shuffled: it mixes in about k² steps."""
    rng, index = np.random.default_rng(seed), np.arange(k * k).reshape(k, k)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    one = np.concatenate([a.ravel() for a, _ in pairs])
    other = np.concatenate([b.ravel() for _, b in pairs])
    forth, back = (1 + drift) * rng.uniform(0.5, 1.5, len(one)), (1 - drift) * rng.uniform(0.5, 1.5, len(one))
    q = rng.permutation(k * k)
    W = csr_array((np.r_[forth, back], (q[np.r_[one, other]], q[np.r_[other, one]])), shape=(k * k, k * k))
    return normalized(W)


def blocks(n, n_blocks, link, seed=0):
    """Random chains that mix at once, held together by rare moves."""
    rng, m = np.random.default_rng(seed), n // n_blocks
    rows = np.repeat(np.arange(n), 5)
    columns = rows // m * m + rng.integers(m, size=5 * n)
    columns[::5] = rows[::5] // m * m + (rows[::5] + 1) % m
    ends = np.arange(n_blocks) * m
    rows, columns = np.r_[rows, ends], np.r_[columns, np.roll(ends, -1)]
    return normalized(csr_array((np.r_[rng.random(5 * n), np.full(n_blocks, link)], (rows, columns)), shape=(n, n)))


@pytest.mark.item("SEQ-03")
def test_the_numbers_of_the_catalogue():
    chain = MarkovChain([[0.6, 0.4], [0.3, 0.7]])
    np.testing.assert_allclose(chain.stationary(), [[3 / 7, 4 / 7]], rtol=1e-15)
    for p in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(MarkovChain([[1 - p, p], [p, 1 - p]]).stationary(), [[0.5, 0.5]], rtol=1e-15)
    # The identity has infinitely many laws: one for each class, and their mixtures.
    np.testing.assert_array_equal(MarkovChain(np.eye(3)).stationary(), np.eye(3))
    assert MarkovChain(np.eye(3)).ergodicity().reason.startswith("there are 3 recurrent classes")


@pytest.mark.item("SEQ-03", "SMP-05")
def test_one_law_does_not_mean_convergence():
    flip = MarkovChain([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(flip.stationary(), [[0.5, 0.5]])
    assert flip.is_irreducible
    assert not flip.is_aperiodic
    np.testing.assert_array_equal(flip.propagate([1.0, 0.0], 101), [0.0, 1.0])
    assert not flip.ergodicity().holds
    assert "2 steps" in flip.ergodicity().reason
    np.testing.assert_allclose(sorted(flip.spectrum()), [-1, 1], atol=1e-15)
    # Balance gives a periodic chain its law, only not the convergence; the lazy chain has both.
    assert flip.is_reversible
    assert flip.lazy().ergodicity().holds
    np.testing.assert_allclose(flip.lazy().propagate([1.0, 0.0], 101), [0.5, 0.5], atol=1e-15)
    np.testing.assert_array_equal(flip.limit([1.0, 0.0]), [0.5, 0.5])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_elimination_is_right_in_every_entry(n, seed):
    P = exact.rational(exact.random_weights(n, seed))
    truth = np.array([float(v) for v in exact.law(P)])
    np.testing.assert_allclose(reduced_law(exact.floats(P)), truth, rtol=1e-13)


def test_elimination_does_not_lose_digits_where_others_do():
    # Two pairs that exchange 1e-14: 1 - P_ii has hardly a digit left for Gaussian elimination.
    eps = 2.0**-47
    P = np.array([[0.5, 0.5 - eps, eps, 0], [0.25, 0.75, 0, 0], [0, 0, 0.5, 0.5], [0, 3 * eps, 0.5 - 3 * eps, 0.5]])
    truth = np.array([float(v) for v in exact.law([[exact.Fraction(v) for v in row] for row in P])])
    np.testing.assert_allclose(law_of(csr_array(P))[0], truth, rtol=1e-13)
    A = np.vstack([(np.eye(4) - P).T[:-1], np.ones(4)])
    assert np.abs(np.linalg.solve(A, [0, 0, 0, 1]) / truth - 1).max() > 1e-4


def test_masses_that_span_more_than_the_numbers_can():
    n = 900
    up = np.full(n - 1, 0.95)
    P = diags_array([np.r_[0.05, np.full(n - 1, 0.0)], up, np.full(n - 1, 0.05)], offsets=[0, 1, -1]).tocsr()
    P = normalized(P)
    law = law_of(P)[0]
    assert np.isfinite(law).all()
    np.testing.assert_allclose(law[-100:-2] / law[-99:-1], 0.05 / 0.95, rtol=1e-12)


@pytest.mark.item("SEQ-03")
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_limit_of_powers(seed):
    P = exact.floats(exact.rational(np.minimum(exact.random_weights(6, seed, zeros=0.3), 100)))
    chain = MarkovChain((P + np.eye(6)) / 2)
    assert chain.ergodicity().holds
    power = np.linalg.matrix_power((P + np.eye(6)) / 2, 1 << 14)  # each step adds a rounding: 2e4 of them
    np.testing.assert_allclose(power, np.tile(chain.stationary()[0], (6, 1)), rtol=1e-10)


@pytest.mark.item("SEQ-03")
def test_reducible_chains_have_a_law_for_every_recurrent_class():
    one, other = exact.random_weights(4, 1), exact.random_weights(3, 2)
    P = np.zeros((9, 9))
    P[np.ix_([1, 3, 5, 7], [1, 3, 5, 7])] = one / one.sum(axis=1, keepdims=True)
    P[np.ix_([0, 4, 8], [0, 4, 8])] = other / other.sum(axis=1, keepdims=True)
    P[2, [2, 6]] = 0.5
    P[6, [2, 3, 4]] = [0.5, 0.25, 0.25]
    chain = MarkovChain(P)
    found = chain.classes()
    assert found.label.tolist() == [0, 1, 2, 1, 0, 1, 2, 1, 0]
    assert found.recurrent.tolist() == [True, True, False]
    laws = chain.stationary()
    np.testing.assert_allclose(laws[0, [0, 4, 8]], [float(v) for v in exact.law(exact.rational(other))], rtol=1e-13)
    np.testing.assert_allclose(laws[1, [1, 3, 5, 7]], [float(v) for v in exact.law(exact.rational(one))], rtol=1e-13)
    assert (laws[:, [2, 6]] == 0).all()
    start = np.full(9, 1 / 9)
    late = start @ np.linalg.matrix_power((P + np.eye(9)) / 2, 1 << 30)  # odds of 1e-7 need long, and roundings add up
    np.testing.assert_allclose(chain.limit(start), late, atol=1e-5)
    assert chain.certify().holds, str(chain.certify())


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("route", [large_law, "groups"])
@pytest.mark.parametrize(
    "P",
    [
        lattice(20, 0.0),
        lattice(20, 0.2),
        blocks(400, 8, 1e-6),
        blocks(400, 8, 1.0),
        normalized(csr_array((np.ones(300), (np.arange(300), np.roll(np.arange(300), -1))), shape=(300, 300))),  # a circle
        kron(normalized(np.array([[0, 1.0], [1.0, 0]])), lattice(12, 0.1)).tocsr(),  # and one of period 2 (or two classes)
    ],
    ids=["lattice", "drift", "weak links", "rare links", "circle", "product"],
)
def test_large_routes_agree_with_elimination(P, route):
    found = classes_of(csr_array(P))
    P = csr_array(P[found.members(0)][:, found.members(0)])
    truth, n = reduced_law(P.toarray()), P.shape[0]
    if route == "groups":
        law, residual = by_groups(level_of(*incoming(P.indptr, P.indices, P.data, n), n), np.full(n, 1 / n))
    else:
        law, residual = route(P)
    assert residual <= 10 * TOL
    assert law.min() > 0
    assert law.sum() == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(np.abs(P.T @ law - law).sum(), residual, atol=1e-15)
    assert np.abs(law - truth).sum() < 1e-7  # a residual of 1e-14 over a gap that weak links make 1e-7 or less


@pytest.mark.slow_without_jit
def test_beyond_elimination_the_chain_takes_the_large_route():
    P = lattice(40, 0.05)
    assert P.shape[0] > ELIMINATED
    chain = MarkovChain(P)
    law = chain.stationary()[0]
    np.testing.assert_allclose(law, reduced_law(P.toarray()), rtol=1e-8, atol=1e-14)
    assert np.abs(law @ P - law).sum() <= 1e-12
    certificate = chain.certify()
    assert certificate.holds, str(certificate)
    assert certificate["stationary"].limit == 1e-12


def test_many_classes_give_sparse_rows():
    P = csr_array(block_diag([eye_array(8000), np.array([[0.6, 0.4], [0.3, 0.7]])]))
    laws = MarkovChain(P).stationary()
    assert laws.shape == (8001, 8002)
    np.testing.assert_allclose(laws[[8000]].data, [3 / 7, 4 / 7])
    assert laws.nnz == 8002


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10**6), st.floats(0.0, 0.95))
def test_any_chain_is_certified_and_its_laws_sum_to_one(n, seed, zeros):
    W = exact.random_weights(n, seed, zeros=zeros, ring=False)
    W[W.sum(axis=1) == 0, 0] = 1
    chain = MarkovChain(W / W.sum(axis=1, keepdims=True))
    laws, P = chain.stationary(), chain.transition
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(laws @ P, laws, atol=1e-14)
    assert len(laws) == chain.classes().recurrent.sum() >= 1
    # As many laws as the eigenvalue one has eigenvectors.
    assert np.linalg.matrix_rank(np.eye(n) - P, tol=1e-9) >= n - len(laws)
    assert chain.certify().holds, str(chain.certify())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("P", [lattice(9, 0.1), lattice(36, 0.1)], ids=["small", "large"])
def test_another_law_is_refused(P, seed):
    found, law = classes_of(P), law_of(P)[0]
    assert all(check.holds for check in law_checks(P, found, law[None]))
    assert not all(c.holds for c in law_checks(P, found, simplex(law, np.random.default_rng(seed))[None]))
    assert not all(c.holds for c in law_checks(P, found, 1.01 * law[None]))
    assert not all(c.holds for c in law_checks(P, found, np.vstack([law, law])))


def test_the_laws_of_classes_are_not_exchanged():
    P = csr_array(block_diag([eye_array(2), np.array([[0.6, 0.4], [0.3, 0.7]])]))
    found, laws = classes_of(P), MarkovChain(P).stationary()
    assert all(check.holds for check in law_checks(P, found, laws))
    exchanged = law_checks(P, found, laws[[1, 0, 2]])  # each of them is stationary, on another class than its own
    assert [check.name for check in exchanged if not check.holds] == ["mass"]
