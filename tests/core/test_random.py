"""Random numbers: one stream for each seed, and children that do not depend on one another."""

from itertools import combinations

import numpy as np
import pytest

from lemmata.core.random import generator, spawn

DRAWS = 20000
SIGMAS = 6.6  # of a normal variable: beyond it once in 2.4e10, so once in 1e7 among the 276 correlations tested


@pytest.mark.parametrize("seed", [0, 7, 2**40, np.int64(3), [1, 2, 3]])
def test_a_seed_is_that_of_numpy(seed):
    assert generator(seed).random(5).tolist() == np.random.default_rng(seed).random(5).tolist()


@pytest.mark.parametrize("seed", ["a", -1, 0.5, [0, "a"]])
def test_what_is_no_seed_is_said(seed):
    with pytest.raises(
        ValueError, match="random_state must be a whole number of at least 0, a generator of NumPy's, or None; got"
    ):
        generator(seed)


def test_a_generator_is_used_itself():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_no_seed_is_a_new_stream_each_time():
    assert generator().random() != generator().random()


def test_a_legacy_state_gives_a_stream_and_moves_on():
    state = np.random.RandomState(3)
    first, second = generator(state).random(4).tolist(), generator(state).random(4).tolist()
    assert first != second
    again = np.random.RandomState(3)
    assert [generator(again).random(4).tolist() for _ in range(2)] == [first, second]
    assert generator(np.random.RandomState(4)).random(4).tolist() != first


def test_the_global_state_counts_when_it_is_named():
    kept = np.random.get_state()  # noqa: NPY002 - what scikit-learn's users seed
    try:
        found = []
        for seed in (5, 5, 6):
            np.random.seed(seed)  # noqa: NPY002
            found.append(generator(np.random).random(4).tolist())
    finally:
        np.random.set_state(kept)  # noqa: NPY002
    assert found[0] == found[1] != found[2]


def test_children_are_the_same_for_the_same_seed():
    few, many = spawn(generator(1), 3), spawn(generator(1), 10)
    assert [r.random() for r in few] == [r.random() for r in many[:3]]  # how many blocks follow does not matter
    assert [r.random() for r in spawn(generator(1), 3)] != [r.random() for r in spawn(generator(2), 3)]


def test_children_do_not_wait_for_one_another():
    forward, backward = spawn(generator(1), 4), spawn(generator(1), 4)
    draws = {i: forward[i].random(3).tolist() for i in range(4)}
    assert {i: backward[i].random(3).tolist() for i in reversed(range(4))} == draws


def test_a_second_brood_is_another():
    rng = generator(1)
    draws = [r.random() for r in spawn(rng, 4) + spawn(rng, 4)] + [rng.random()]
    assert len(set(draws)) == 9


@pytest.mark.parametrize("seed", range(3))
def test_children_and_parent_are_uncorrelated(seed):
    parent = generator(seed)
    streams = np.array([r.random(DRAWS) for r in [*spawn(parent, 23), parent]]) - 0.5
    for a, b in combinations(streams, 2):
        # The mean of n products of two centered uniforms has standard deviation 1/(12 √n).
        assert abs((a * b).mean()) < SIGMAS / 12 / np.sqrt(DRAWS)
