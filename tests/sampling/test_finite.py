"""Exact transition matrices: stationarity and balance, rejection mass, Gibbs as Metropolis-Hastings that accepts always."""

from itertools import product

import numpy as np
import pytest

from lemmata.markov import MarkovChain
from lemmata.sampling import detailed_balance, gibbs_matrix, metropolis_matrix, stationarity, transition_matrix
from lemmata.sampling.finite import conditional_matrix

UNIFORM = (np.ones((3, 3)) - np.eye(3)) / 2


@pytest.mark.item("SMP-06")
def test_three_states_and_a_uniform_proposal():
    target = [0.2, 0.3, 0.5]
    T = metropolis_matrix(target, UNIFORM)
    np.testing.assert_allclose(T, [[0, 0.5, 0.5], [1 / 3, 1 / 6, 1 / 2], [0.2, 0.3, 0.5]], rtol=1e-12)
    assert detailed_balance(T, target).holds
    assert stationarity(T, target).holds
    np.testing.assert_allclose(MarkovChain(T).stationary()[0], target, rtol=1e-12)
    np.testing.assert_allclose(metropolis_matrix([4, 6, 10], UNIFORM), T, rtol=1e-12)  # without its constant


@pytest.mark.item("SMP-06")
@pytest.mark.parametrize("seed", range(5))
def test_any_proposal_has_balance_by_the_definition(seed):
    rng = np.random.default_rng(seed)
    p, Q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6), size=6)
    T = metropolis_matrix(p, Q)
    for x, y in product(range(6), repeat=2):
        if x != y:
            accept = min(1.0, p[y] * Q[y, x] / (p[x] * Q[x, y]))
            assert T[x, y] == pytest.approx(Q[x, y] * accept, rel=1e-12)
    refused = [sum(Q[x, y] - T[x, y] for y in range(6) if y != x) for x in range(6)]
    np.testing.assert_allclose(np.diagonal(T), np.diagonal(Q) + refused, rtol=1e-10)  # stays proposed, and rejections
    assert detailed_balance(T, p).holds
    assert stationarity(T, p).holds


@pytest.mark.item("SMP-07")
def test_proposing_from_the_target_accepts_always():
    p = np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(metropolis_matrix(p, np.tile(p, (3, 1))), np.tile(p, (3, 1)), rtol=1e-12)


@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("blocks", [None, [[0], [1, 2]], [[0, 1], [1, 2]]])
def test_sweeps_of_a_joint_table(blocks):
    joint = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2)
    for scan in ("systematic", "random"):
        T = gibbs_matrix(joint, blocks, scan)
        assert stationarity(T, joint).holds
        np.testing.assert_allclose(MarkovChain(T).stationary()[0], joint.ravel(), rtol=1e-9)
    assert detailed_balance(gibbs_matrix(joint, blocks, "random"), joint).holds
    assert not detailed_balance(gibbs_matrix(joint, blocks), joint).holds


@pytest.mark.item("SMP-08")
def test_a_conditional_is_a_proposal_that_is_always_accepted():
    joint = np.random.default_rng(1).dirichlet(np.ones(12)).reshape(2, 3, 2)
    for block in ([0], [1], [2], [0, 2]):
        step = conditional_matrix(joint, block)
        np.testing.assert_allclose(metropolis_matrix(joint, step), step, atol=1e-12)


def test_kernels_as_functions():
    joint = np.random.default_rng(2).dirichlet(np.ones(6)).reshape(2, 3)
    states = list(product(range(2), range(3)))

    def first(x):
        return {(i, x[1]): joint[i, x[1]] / joint[:, x[1]].sum() for i in range(2)}

    def second(x):
        return {(x[0], j): joint[x[0], j] / joint[x[0]].sum() for j in range(3)}

    for scan in ("systematic", "random"):
        found = transition_matrix([first, second], states, scan)
        np.testing.assert_allclose(found, gibbs_matrix(joint, scan=scan), rtol=1e-12)
    np.testing.assert_allclose(transition_matrix(lambda i: UNIFORM[i], range(3)), UNIFORM)


def test_what_is_wrong_is_refused():
    target = np.array([0.2, 0.3, 0.5])
    T = metropolis_matrix(target, UNIFORM)
    assert [check.name for check in stationarity(T, [0.3, 0.2, 0.5]).failed] == ["stationary"]
    assert not detailed_balance(T, [0.3, 0.2, 0.5]).holds
    forgot = T.copy()  # the erratum: what is rejected is lost
    np.fill_diagonal(forgot, np.diagonal(UNIFORM))
    assert "rows" in [check.name for check in stationarity(forgot, target).failed]
    assert not detailed_balance(forgot, target).holds
    turning = np.roll(np.eye(3), 1, axis=1)
    assert [check.name for check in stationarity(turning, np.ones(3)).failed] == ["ergodic"]  # stationary, but periodic
    assert [check.name for check in stationarity(np.eye(3), target).failed] == ["ergodic"]  # and this one goes nowhere
    moved = T * 1.01
    assert not stationarity(moved, target).holds


def test_states_without_mass_are_left_and_never_entered():
    T = metropolis_matrix([0.5, 0.5, 0.0], UNIFORM)
    np.testing.assert_allclose(T, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]])
    assert stationarity(T, [0.5, 0.5, 0.0]).holds


def test_errors():
    with pytest.raises(ValueError, match="add up to one"):
        metropolis_matrix([0.5, 0.5], [[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(ValueError, match="not all zero"):
        metropolis_matrix([0.0, 0.0], np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="they must be the same"):
        metropolis_matrix([1.0], np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="not one of the states"):
        transition_matrix(lambda x: {x + 1: 1.0}, range(3))
    with pytest.raises(ValueError, match="different"):
        transition_matrix(lambda x: {x: 1.0}, [1, 1])
    with pytest.raises(ValueError, match="scan"):
        gibbs_matrix(np.ones((2, 2)), scan="up")
    with pytest.raises(ValueError, match="shape"):
        stationarity(np.eye(2), [1.0])


def test_axes_and_empty_lists_are_checked():
    joint = np.ones((2, 2))
    for blocks, match in (([[5]], "the axis 5"), ([[-1]], "the axis -1"), ([], "at least one block")):
        with pytest.raises(ValueError, match=match):
            gibbs_matrix(joint, blocks=blocks)
    with pytest.raises(ValueError, match="a list of at least one"):
        transition_matrix([], range(3))
