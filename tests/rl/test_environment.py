"""Environments: draws have the right odds, ends are ends and cuts are cuts, and what does not fit is refused."""

import gymnasium
import numpy as np
import pytest

from lemmata.core.xoshiro import seed as words
from lemmata.rl import MDP, QLearning, TDNetwork
from lemmata.rl.environment import alias_tables, discount_of, draw, law_of, tabular, world_of
from lemmata.rl.known_law import model_of

LINE = MDP([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]], [0.0, 1.0, 0.0], 0.9, terminal=[2], initial=0)


@pytest.mark.parametrize("seed", range(20))
def test_alias_tables_hold_the_odds_exactly(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=5)
    rows = [rng.dirichlet(np.full(n, 0.3)) for n in sizes]
    indptr = np.append(0, np.cumsum(sizes))
    keep, alias = alias_tables(indptr, np.concatenate(rows))
    for k, row in enumerate(rows):
        # an entry is drawn itself, with its chance to stay, or as the alias of another
        found, n = np.zeros(len(row)), len(row)
        for p in range(indptr[k], indptr[k + 1]):
            found[p - indptr[k]] += keep[p] / n
            found[alias[p] - indptr[k]] += (1 - keep[p]) / n
        np.testing.assert_allclose(found, row, rtol=0, atol=1e-15)  # rounding of sums of a few numbers below one
        assert ((keep[indptr[k] : indptr[k + 1]] >= 0) & (keep[indptr[k] : indptr[k + 1]] <= 1)).all()


def test_draws_have_the_frequencies_of_the_row():
    chances = np.array([0.5, 0.0, 0.2, 0.3, 1.0])
    indptr = np.array([0, 4, 5])
    tables, stream = alias_tables(indptr, chances), words(np.random.default_rng(0))
    n = 20_000
    counts = np.bincount([draw(indptr, *tables, 0, stream) for _ in range(n)], minlength=4)
    assert counts[1] == 0
    deviations = np.sqrt(n * chances[:4] * (1 - chances[:4]))
    assert (np.abs(counts - n * chances[:4]) <= 5 * deviations).all()  # 5 standard deviations: once in two million
    before = stream.copy()
    assert draw(indptr, *tables, 1, stream) == 4
    assert np.array_equal(stream, before)  # no choice, no random number


def test_the_law_of_an_mdp_has_rows_for_beginnings():
    law = law_of(LINE)
    assert law.indptr.tolist() == [0, 1, 2, 3, 4, 6]
    assert law.successors.tolist() == [1, 2, 2, 0, 0, 1]
    assert law.ends[:3].tolist() == [False, True, True]
    assert law.rewards[:3].tolist() == [0.0, 1.0, 0.0]
    nowhere = MDP([[[1.0]]], [0.0], 0.9, terminal=[0])
    with pytest.raises(ValueError, match="terminal states only"):
        law_of(nowhere)


def test_an_episode_of_an_mdp_ends_where_nothing_follows():
    world = world_of(LINE)
    assert world.reset(3) == 0
    assert world.step(0) == (1, 0.0, False, False)
    assert world.step(0) == (2, 1.0, True, False)
    row = np.empty(3)
    world.write(1, row)
    assert row.tolist() == [0.0, 1.0, 0.0]


def test_episodes_repeat_by_their_seeds():
    for env in (gymnasium.make("FrozenLake-v1"), MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), 0.9)):
        world, walks = world_of(env), []
        for seed in (7, 8, 7):
            walk = [world.reset(seed)]
            for action in (1, 2, 1, 2, 1, 1, 2):
                state, *_, ended, cut = world.step(action)
                walk.append(state)
                if ended or cut:
                    break
            walks.append(walk)
        assert walks[0] == walks[2]


def test_observations_with_bounds_are_scaled_by_them_and_others_are_left():
    world = world_of(gymnasium.make("CartPole-v1"))
    row = np.empty(4)
    world.write(np.array([4.8, 7.0, -0.41887903, -3.0], dtype=np.float32), row)
    np.testing.assert_allclose(row, [1.0, 7.0, -1.0, -3.0], rtol=1e-6)  # float32
    assert world.n_states is None
    assert world.n_actions == 2


def test_spaces_that_do_not_begin_at_zero_are_numbered_from_zero():
    class Shifted:
        action_space = gymnasium.spaces.Discrete(2, start=5)
        observation_space = gymnasium.spaces.Discrete(3, start=-1)

        def reset(self, seed):
            return np.int64(-1), {}

        def step(self, action):
            assert action in (5, 6)
            return np.int64(1), 1, np.bool_(False), True, {}

    world = world_of(Shifted())
    assert world.reset(0) == 0
    assert world.step(1) == (2, 1.0, False, True)


def test_what_is_no_environment_is_refused():
    with pytest.raises(ValueError, match="must be an MDP or an environment of Gymnasium, got list"):
        world_of([1, 2])
    with pytest.raises(ValueError, match="vector of environments"):
        world_of(gymnasium.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(ValueError, match=r"actions must be discrete.*TransformAction"):
        world_of(gymnasium.make("Pendulum-v1"))
    switches = gymnasium.make("FrozenLake-v1")
    switches.action_space = gymnasium.spaces.MultiBinary(4)
    with pytest.raises(ValueError, match="actions must be discrete"):
        world_of(switches)
    with pytest.raises(ValueError, match="FlattenObservation"):
        world_of(gymnasium.make("Blackjack-v1"))
    with pytest.raises(ValueError, match="use TDNetwork or Reinforce"):
        tabular(gymnasium.make("CartPole-v1"), "QLearning")


def test_a_model_is_seen_through_wrappers_that_only_look():
    assert model_of(world_of(gymnasium.make("FrozenLake-v1")), 0.9).n_states == 16
    assert model_of(world_of(LINE), 0.9) is LINE
    assert model_of(world_of(gymnasium.make("CartPole-v1")), 0.9) is None
    other = gymnasium.wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), lambda reward: 2 * reward)
    assert model_of(world_of(other), 0.9) is None  # the table of the lake does not know these rewards


def test_a_discount_may_not_contradict_the_model():
    world = world_of(LINE)
    assert discount_of(None, world) == 0.9
    assert discount_of(0.9, world) == 0.9
    with pytest.raises(ValueError, match=r"contradicts the MDP, whose gamma is 0\.9"):
        discount_of(0.5, world)
    frozen = world_of(gymnasium.make("FrozenLake-v1"))
    assert (discount_of(None, frozen), discount_of(0.5, frozen)) == (0.99, 0.5)


class Lost:
    """An environment that does not keep to its spaces."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, observation_space, first, then, reward):
        self.observation_space, self.first, self.then, self.reward = observation_space, first, then, reward

    def reset(self, seed):
        return self.first, {}

    def step(self, action):
        return self.then, self.reward, False, False, {}


@pytest.mark.parametrize("then", [3, -1, 1.5, np.nan, "a", None, [0]])
def test_a_state_that_is_none_is_refused_before_compiled_code_sees_it(then):
    with pytest.raises(ValueError, match=r"which is not in its Discrete\(3\)"):
        QLearning(n_steps=10).fit(Lost(gymnasium.spaces.Discrete(3), 0, then, 0.0))


def test_observations_and_rewards_of_another_kind_are_refused():
    box = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    for then in (np.zeros(2), 0.0):  # the second would fit anywhere
        with pytest.raises(ValueError, match="which is not in its Box"):
            TDNetwork((), n_steps=10).fit(Lost(box, np.zeros(3), then, 0.0))
    for reward in (None, np.zeros(2), "a"):
        with pytest.raises(ValueError, match="must pay numbers as rewards, and paid"):
            TDNetwork((), n_steps=10).fit(Lost(box, np.zeros(3), np.zeros(3), reward))
    with pytest.raises(ValueError, match="are all rewards and observations finite"):
        TDNetwork((), n_steps=10, n_evaluations=0).fit(Lost(box, np.zeros(3), np.full(3, np.nan), 0.0))
    plain = TDNetwork((), n_steps=10, n_evaluations=0).fit(Lost(box, [0, 0, 0], [0, 0, 0], np.array(1)))  # plain lists will do
    assert plain.n_steps_ == 10
