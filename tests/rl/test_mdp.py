"""Models: every form of chances and rewards means the same, ends are ends, nothing sparse becomes dense, walks obey the law."""

import itertools
import tracemalloc

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, random_array

from lemmata.markov import MarkovChain
from lemmata.rl import MDP, evaluate_policy, from_gymnasium, policy_iteration, value_iteration


def naive_q(T, R, gamma, terminal, value):
    """Q from its definition; a terminal state pays what it pays itself, and nothing follows it."""
    S, A, _ = T.shape
    q = np.zeros((S, A))
    for s, a in itertools.product(range(S), range(A)):
        if R.ndim < 3:
            q[s, a] = R[s] if R.ndim == 1 else R[s, a]
        if s in terminal:
            continue
        for j in range(S):
            after = value[j] if j not in terminal or R.ndim < 3 else 0.0
            q[s, a] += T[s, a, j] * ((R[s, a, j] if R.ndim == 3 else 0.0) + gamma * after)
    return q


def forms(T, R):
    """Give T and R dense, as one sparse matrix, and as a list of them."""
    S, A, _ = T.shape
    chances = (T, csr_array(T.reshape(S * A, S)), [csc_array(T[:, a]) for a in range(A)])
    rewards = (R,) if R.ndim < 3 else (R, csr_array(R.reshape(S * A, S)), [csr_array(R[:, a]) for a in range(A)])
    return itertools.product(chances, rewards)


@pytest.mark.item("RLN-03", "RLN-06")
@given(st.data())
@settings(deadline=None, max_examples=40, derandomize=True)
def test_every_form_means_what_the_definition_says(data):
    S, A = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    axes, seed = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 99))
    terminal = data.draw(st.sets(st.integers(0, S - 1)))
    rng = np.random.default_rng(seed)
    T = rng.random((S, A, S)) * (rng.random((S, A, S)) < 0.6) + 1e-3
    T /= T.sum(axis=2, keepdims=True)
    R = rng.normal(size=(S, A, S)[:axes])
    ends = R.max(axis=1) if axes == 2 else R if axes == 1 else np.zeros(S)
    value = rng.normal(size=S)
    value[list(terminal)] = ends[list(terminal)]
    for chances, rewards in forms(T, R):
        mdp = MDP(chances, rewards, 0.9, terminal=sorted(terminal))
        expected = naive_q(T, R, 0.9, terminal, value)
        np.testing.assert_allclose(mdp.q(value), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mdp.bellman(value), expected.max(axis=1), rtol=0, atol=1e-12)
        policy = rng.integers(A, size=S)
        np.testing.assert_allclose(np.asarray(mdp.chain(policy).sum(axis=1)).ravel(), 1.0, rtol=1e-12)
        assert mdp.indptr.dtype == np.int64
        assert mdp.successors.dtype == np.int32
        assert mdp.transition_ends.any() == bool(terminal)
        assert (mdp.transition_rewards is None) == (axes < 3)


def test_given_matrices_are_neither_changed_nor_made_dense():
    twice = csr_array((np.full(4, 0.5), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))  # entries given twice
    kept = twice.copy()
    np.testing.assert_allclose(MDP(twice, [0.0, 1.0], 0.9).chain([0, 0]).toarray(), [[0, 1], [1, 0]])
    assert np.array_equal(twice.indptr, kept.indptr)
    assert np.array_equal(twice.indices, kept.indices)
    n, rng = 50_000, np.random.default_rng(0)
    T = [csr_array((np.ones(n), (np.arange(n), rng.integers(n, size=n))), shape=(n, n)) for _ in range(2)]
    tracemalloc.start()
    mdp = MDP(T, np.zeros(n), 0.9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert mdp.successors.shape == (2 * n,)
    assert peak < 20e6  # dense, it would be 40 GB


def test_rows_that_are_nearly_one_are_divided_and_exact_ones_are_not_copied():
    T = np.array([[[1 / 3, 1 / 3, 1 / 3]]] * 3)
    assert np.shares_memory(MDP(T, np.zeros(3), 0.9).table, T)
    printed = MDP(np.round(T, 7), np.zeros(3), 0.9)
    np.testing.assert_allclose(printed.table.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match=r"that of state 1, action 0 sums to 0\.9"):
        MDP(T * np.array([1.0, 0.9, 1.0])[:, None, None], np.zeros(3), 0.9)
    with pytest.raises(ValueError, match="state 'b', action 'go'"):
        MDP(T * np.array([1.0, -1.0, 1.0])[:, None, None], np.zeros(3), 0.9, states=["a", "b", "c"], actions=["go"])
    MDP(T * np.array([1.0, 0.0, 1.0])[:, None, None], np.zeros(3), 0.9, terminal=[1])  # nothing follows a terminal state


def test_what_is_wrong_is_said():
    T = np.ones((1, 1, 1))
    for message, given_ in (
        (r"name all 1 of them in a list; got \['a', 'b'\]", lambda: MDP(T, [0.0], 0.9, states=["a", "b"])),
        ("name all 1 of them in a list; got 2", lambda: MDP(T, [0.0], 0.9, actions=2)),
        ("initial must be", lambda: MDP(T, [0.0], 0.9, initial=[0.5])),
        (r"S·A rows", lambda: MDP(random_array((5, 2), density=0.5, rng=np.random.default_rng(0)), [0.0, 1.0], 0.9)),
        ("one S × S sparse matrix", lambda: MDP([csr_array(np.eye(2)), csr_array(np.eye(3))], [0.0, 1.0], 0.9)),
        ("n_steps, or of episodes", lambda: MDP(T, [0.0], 0.9).sample([0])),
        ("n_steps must be a whole number of at least 1", lambda: MDP(T, [0.0], 0.9).sample([0], 2.5)),
        ("episodes must be a whole number of at least 1", lambda: MDP(T, [0.0], 0.9, terminal=[0]).sample([0], episodes=0)),
        ("No move of this model ends", lambda: MDP(T, [0.0], 0.9).sample([0], episodes=1)),
        ("whole numbers from 0 to 0", lambda: MDP(T, [0.0], 0.9).chain([1])),
        ("numbers of at least 0 that sum to 1", lambda: MDP(T, [0.0], 0.9).chain([[0.5]])),
        ("a number for each of 1 states", lambda: MDP(T, [0.0], 0.9).q([0.0, 1.0])),
        ("gamma must be a number", lambda: MDP(T, [0.0], None)),
        ("gamma must be a number", lambda: MDP(T, [0.0], "0.9")),
        ("T must hold numbers", lambda: MDP([[[1.0], [0.5, 0.5]]], [0.0], 0.9)),
        ("T must hold numbers", lambda: MDP(T * 1j, [0.0], 0.9)),
        ("T must hold numbers", lambda: MDP([csr_array(np.eye(2)), np.eye(2)], [0.0, 0.0], 0.9)),
        ("R must hold numbers", lambda: MDP(T, ["much"], 0.9)),
        ("R must hold numbers", lambda: MDP(np.ones((2, 1, 2)) / 2, [[0.0], [0.0, 1.0]], 0.9)),
        ("initial must hold numbers", lambda: MDP(T, [0.0], 0.9, initial="first")),
        ("initial must be the number of a state", lambda: MDP(T, [0.0], 0.9, initial=np.nan)),
        ("initial must be the number of a state", lambda: MDP(T, [0.0], 0.9, initial=np.inf)),
        ("twice: name each state once, or give a mask", lambda: MDP(np.eye(3)[:, None], [0.0] * 3, 0.9, terminal=[0, 0, 1])),
        ("A policy must hold numbers", lambda: MDP(T, [0.0], 0.9).chain([["stay"]])),
        ("mdp must be an MDP", lambda: value_iteration(MDP(T, [0.0], 0.9)).certify(gymnasium.make("FrozenLake-v1"))),
        ("mdp must be an MDP", lambda: evaluate_policy(MDP(T, [0.0], 0.9), [0]).certify("lake")),
    ):
        with pytest.raises(ValueError, match=message):
            given_()


def test_a_terminal_state_ends_on_arrival_or_pays_once():
    T = [[[0.0, 1.0]], [[0.5, 0.5]]]
    silent = MDP(T, [[[0.0, 3.0]], [[7.0, 7.0]]], 0.5, terminal=[1], initial=0)  # what would be paid for moving on is not
    paying = MDP(T, [3.0, 8.0], 0.5, terminal=[1], initial=0)
    for mdp, rewards, value in ((silent, [3.0], [3.0, 0.0]), (paying, [3.0, 8.0], [7.0, 8.0])):
        steps = mdp.sample([0, 0], episodes=1, random_state=0)
        assert steps.rewards.tolist() == rewards
        assert steps.ends.tolist() == [False] * (len(rewards) - 1) + [True]
        np.testing.assert_allclose(evaluate_policy(mdp, [0, 0]).value, value, rtol=1e-12)


@pytest.mark.item("RLN-03")
def test_walks_obey_the_law_and_the_seed():
    rng = np.random.default_rng(1)
    T, policy = rng.dirichlet(np.ones(3), size=(3, 2)), rng.dirichlet(np.ones(2), size=3)
    mdp = MDP(T, rng.normal(size=T.shape), 0.9)
    steps, n = mdp.sample(policy, 200_000, random_state=5), 200_000
    assert np.array_equal(steps.next_states[:-1], steps.states[1:])
    np.testing.assert_array_equal(
        steps.rewards, mdp.transition_rewards.reshape(3, 2, 3)[steps.states, steps.actions, steps.next_states]
    )
    counts = np.zeros((3, 2, 3))
    np.add.at(counts, (steps.states, steps.actions, steps.next_states), 1)
    law = MarkovChain(mdp.chain(policy)).stationary()[0]
    expected = n * law[:, None, None] * policy[:, :, None] * T
    assert (np.abs(counts - expected) < 10 * np.sqrt(expected)).all()  # 10: steps depend on each other; else one in 10²⁰
    again = mdp.sample(policy, n, random_state=5)
    assert all(np.array_equal(a, b) for a, b in zip(steps, again, strict=True))


def test_gymnasium_s_table_is_read_as_it_is():
    lake = gymnasium.make("FrozenLake-v1")
    mdp, P = from_gymnasium(lake, 0.9), lake.unwrapped.P
    assert np.flatnonzero(mdp.terminal).tolist() == [5, 7, 11, 12, 15]
    assert mdp.initial.tolist() == [1.0] + [0.0] * 15
    for s, a in itertools.product(range(16), range(4)):
        if not mdp.terminal[s]:
            chance, reward = np.zeros(16), 0.0
            for p, successor, r, _ in P[s][a]:
                chance[successor] += p
                reward += p * r
            row = slice(mdp.indptr[s * 4 + a], mdp.indptr[s * 4 + a + 1])
            found = np.bincount(mdp.successors[row], weights=mdp.probabilities[row], minlength=16)
            np.testing.assert_allclose(found, chance, rtol=1e-12)
            assert len(mdp.successors[row]) == np.count_nonzero(chance)  # those given twice are merged
            assert mdp.rewards[s, a] == pytest.approx(reward, rel=1e-12)
    assert np.flatnonzero(from_gymnasium(gymnasium.make("CliffWalking-v1"), 0.9).terminal).tolist() == [47]
    assert from_gymnasium(gymnasium.make("Taxi-v4"), 0.9).terminal.sum() == 4  # the passenger is where they wanted to go


class Tiny:
    """An environment in which state 1 is the end of one move, and a station of another."""

    P = {
        0: {0: [(1.0, 1, 1.0, True)], 1: [(1.0, 1, 0.0, False)]},
        1: {0: [(1.0, 0, 3.0, True)], 1: [(1.0, 2, 0.0, True)]},
        2: {0: [(1.0, 2, 9.0, True)], 1: [(1.0, 2, 9.0, True)]},
    }
    initial_state_distrib = np.array([1.0, 0.0, 0.0])


def test_a_move_may_end_where_another_goes_on():
    mdp = from_gymnasium(Tiny(), 0.5)
    assert mdp.terminal.tolist() == [False, False, True]
    found = value_iteration(mdp)
    np.testing.assert_allclose(found.q, [[1.0, 1.5], [3.0, 0.0], [0.0, 0.0]], rtol=0, atol=1e-12)
    steps = mdp.sample(found.policy, episodes=1, random_state=0)
    assert steps.states.tolist() == [0, 1]
    assert steps.rewards.tolist() == [0.0, 3.0]


@pytest.mark.item("RLN-05")
def test_examples_of_other_books_and_libraries():
    # Puterman, Markov Decision Processes (1994), section 3.1, with a second copy of the only action of the second state.
    puterman = MDP([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], [[5.0, 10.0], [-1.0, -1.0]], 0.95)
    # The forest of pymdptoolbox, forest(S=3, r1=4, r2=2, p=0.1), whose policy iteration gives these values at 0.9.
    wait, cut = [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]], [[1.0, 0.0, 0.0]] * 3
    forest = MDP(np.stack([wait, cut], axis=1), [[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]], 0.9)
    for plan in (value_iteration, policy_iteration):
        np.testing.assert_allclose(plan(puterman).value, [-4.5 / 0.525, -20.0], rtol=1e-7)
        assert plan(puterman).policy[0] == 0
        np.testing.assert_allclose(plan(forest).value, [26.244, 29.484, 33.484], rtol=1e-7)
        assert plan(forest).policy.tolist() == [0, 0, 0]
