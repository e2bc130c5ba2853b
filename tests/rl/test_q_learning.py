"""Q-learning: against textbook updates of a recorded walk, Bellman's equation, known policies, and itself in another world."""

from copy import deepcopy

import gymnasium
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import lemmata
from contracts.problems import assert_same_bits
from lemmata.core.random import spawn
from lemmata.core.xoshiro import seed as words
from lemmata.optimize import Schedule, inverse, inverse_sqrt
from lemmata.rl import MDP, QLearning
from lemmata.rl.environment import draw, law_of
from rl.naive import LINE, STAY_OR_GO, Interrupt, Played, Recorded, assert_close, best_value, exact_value, random_mdp, rich_lake

OPTIMUM = np.array([[7.902439, 8.780488], [10.0, 9.121951]])  # of STAY_OR_GO, from the catalogue


def textbook(log, shape, gamma, rate, epsilon, target):
    """Apply the update of a textbook to a recorded walk: (state, action, reward, next state, ended, over) for each step."""
    Q, N = np.zeros(shape), np.zeros(shape)
    for t, (s, a, r, after, ended, over) in enumerate(log):
        follows = Q[after].max()
        if target == "sample" and not over:
            if t + 1 == len(log):
                break  # what would have come next is not in the record
            follows = Q[after, log[t + 1][1]]
        elif target != "max":
            follows = (1 - epsilon) * follows + epsilon * Q[after].mean()
        N[s, a] += 1
        eta = rate(N[s, a])
        Q[s, a] = (1 - eta) * Q[s, a] + eta * (r + (0.0 if ended else gamma * follows))
    return Q, N


@pytest.mark.item("RLN-07")
@pytest.mark.parametrize("target", ["max", "expected", "sample"])
@pytest.mark.parametrize("rate", [0.3, inverse(1.0), Schedule(0.8, power=0.6, decay=0.5)])
def test_steps_are_those_of_the_textbook(target, rate):
    env = rich_lake()
    options = {"target": target, "learning_rate": rate, "epsilon": 0.3, "max_episode_steps": 7, "random_state": 1}
    model = QLearning(0.9, n_steps=3000, **options).fit(env)
    assert sum(over and not ended for *_, ended, over in env.log) > 20  # episodes that were cut are among them
    schedule = rate if callable(rate) else lambda n: rate
    Q, N = textbook(env.log, (16, 4), 0.9, schedule, 0.3, target)
    s, a = env.log[-1][:2]
    untold = np.zeros((16, 4), dtype=bool)
    untold[s, a] = target == "sample"  # the last step of the record lacks what came next
    np.testing.assert_allclose(model.q_[~untold], Q[~untold], rtol=1e-12, atol=1e-14)  # another order of the same sums
    assert np.array_equal(model.visits_[~untold], N[~untold])


@pytest.mark.parametrize("target", ["max", "expected", "sample"])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("epsilon", [0.2, Schedule(1.0, power=0.5, decay=0.1)])
def test_a_compiled_run_and_an_environment_take_the_same_steps(target, double, epsilon):
    mdp = random_mdp(3, terminal=[5], paid_by_move=True)
    options = {"target": target, "double": double, "epsilon": epsilon, "max_episode_steps": 9, "random_state": 4}
    compiled = QLearning(n_steps=5000, **options).fit(mdp)
    stream = words(spawn(np.random.default_rng(compiled.seed_), 2)[1])
    played = QLearning(0.9, n_steps=5000, **options).fit(Played(mdp, law_of(mdp), draw, stream))
    assert played.source_ == "gymnasium"
    played.source_ = "mdp"
    assert_close(compiled, played)


@pytest.mark.item("RLN-07")
def test_the_error_falls_to_nothing_along_the_run():
    errors = []
    for n in (1000, 10_000, 100_000, 1_000_000):
        models = [QLearning(n_steps=n, random_state=seed).fit(STAY_OR_GO) for seed in range(5)]
        errors.append(np.mean([np.abs(model.q_ - OPTIMUM).max() for model in models]))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05  # 0.5 % of the largest value: noise falls like the root of the visits of the rarest pair, 2,500


@pytest.mark.parametrize("seed", range(3))
def test_plain_robbins_monro_steps_get_there_too_where_the_horizon_is_short(seed):
    mdp = random_mdp(seed, gamma=0.5)
    model = QLearning(learning_rate=inverse(1.0), epsilon=1.0, random_state=seed).fit(mdp)
    np.testing.assert_allclose(model.value_, best_value(mdp), atol=0.02)  # 1 % of the values after 50,000 visits of each pair


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("target", ["expected", "sample"])
def test_sarsa_learns_the_value_of_the_policy_that_explores(target, double):
    epsilon = 0.2
    Q = np.zeros((2, 2))
    for _ in range(500):
        V = (1 - epsilon) * Q.max(axis=1) + epsilon * Q.mean(axis=1)
        Q = STAY_OR_GO.q(V)
    model = QLearning(target=target, double=double, epsilon=epsilon, random_state=0).fit(STAY_OR_GO)
    np.testing.assert_allclose(model.q_, Q, atol=0.1)  # 1 % of the largest value; two tables have half of the steps each
    assert np.abs(Q - OPTIMUM).max() > 0.5  # which is not that of the best policy


def test_two_tables_do_not_overestimate_a_maximum_of_noise():
    # From the start, "stop" pays nothing, and "play" leads to ten machines that pay −0.1 on average, ±1 in truth.
    T = np.zeros((4, 10, 4))
    T[0, :, 2], T[0, 0, 2], T[0, 0, 1] = 1.0, 0.0, 1.0
    T[1, :, 2], T[1, :, 3] = 0.55, 0.45
    T[2:, :, 2:] = np.eye(2)[:, None]
    R = np.zeros(T.shape)
    R[1, :, 2], R[1, :, 3] = -1.0, 1.0
    mdp = MDP(T, R, 1.0, terminal=[2, 3], initial=0)
    options = {"learning_rate": 0.1, "epsilon": 1.0, "n_steps": 5000}
    single, double = (
        np.mean([QLearning(double=d, random_state=seed, **options).fit(mdp).q_[0, 0] for seed in range(20)])
        for d in (False, True)
    )
    assert single > 0.1  # the truth is −0.1, and the largest of ten noisy values is about 0.35 above
    assert -0.2 < double < 0.0


def converged(mdp):
    """Iterate values until they stand still."""
    value = np.zeros(mdp.n_states)
    while np.abs(mdp.bellman(value) - value).max() > 1e-12:
        value = mdp.bellman(value)
    return value


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
@pytest.mark.parametrize("seed", range(3))
def test_policies_of_known_environments_are_optimal(name, seed):
    mdp = MDP.from_gymnasium(gymnasium.make(name), 0.95)
    model = QLearning(n_steps=3_000_000, epsilon=0.3, random_state=seed).fit(mdp)
    loss = converged(mdp) - exact_value(mdp, model.policy_)
    there = model.visits_.any(axis=1)
    assert there.sum() >= {"FrozenLake-v1": 11, "CliffWalking-v1": 37, "Taxi-v4": 400}[name]
    assert loss[there].max() < 1e-9  # rounding
    certificate = model.certify(mdp)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"


@pytest.mark.item("RLN-08")
def test_random_actions_are_as_frequent_as_epsilon_says():
    arms = MDP(np.ones((1, 4, 1)), [[0.0, 3.0, 1.0, 2.0]], 0.5)
    n, epsilon = 200_000, 0.2
    visits = QLearning(epsilon=epsilon, n_steps=n, random_state=0).fit(arms).visits_[0]
    expected = n * (epsilon / 4 + (1 - epsilon) * (np.arange(4) == 1))
    # 5 standard deviations of a binomial count, and the few steps before the best arm is known
    assert (np.abs(visits - expected) < 5 * np.sqrt(n * epsilon / 4) + 10).all()
    falling = QLearning(epsilon=inverse(1.0), n_steps=n, random_state=0).fit(arms).visits_[0]
    assert falling.min() > 0  # Σ 1/n diverges
    assert falling.sum() - falling[1] < n / 1000  # it becomes greedy


@pytest.mark.item("RLN-08")
def test_among_equals_each_action_has_the_same_chance():
    equal, n = MDP(np.ones((1, 4, 1)), np.zeros((1, 4)), 0.5), 40_000
    for double in (False, True):
        visits = QLearning(epsilon=0.0, double=double, n_steps=n, random_state=0).fit(equal).visits_[0]
        assert (np.abs(visits - n / 4) < 5 * np.sqrt(n * 3 / 16)).all()  # 5 standard deviations


@pytest.mark.item("RLN-08")
def test_every_pair_is_visited_where_states_can_be_reached_from_each_other():
    for seed in range(3):
        mdp = random_mdp(seed, n_states=20)
        model = QLearning(epsilon=inverse_sqrt(1.0), n_steps=200_000, random_state=seed).fit(mdp)
        assert model.visits_.min() > 0
        assert model.certify(mdp)["never tried"].value == 0


def test_exploring_starts_reach_what_no_action_reaches():
    islands = MDP(np.eye(3)[:, None].repeat(2, axis=1), [[0.0, 1.0]] * 3, 0.5, initial=0)
    alone = QLearning(n_steps=1000, max_episode_steps=5, random_state=0).fit(islands)
    assert alone.visits_[1:].sum() == 0
    everywhere = QLearning(exploring_starts=True, epsilon=0.0, n_steps=3000, max_episode_steps=5, random_state=0).fit(islands)
    assert everywhere.visits_.min() > 50
    assert everywhere.policy_.tolist() == [1, 1, 1]


def test_values_go_on_where_an_episode_is_cut_and_not_where_it_ends():
    class OneStep:
        action_space = observation_space = gymnasium.spaces.Discrete(1)
        spec = None

        def __init__(self, ends):
            self.ends, self.unwrapped = ends, self

        def reset(self, seed):
            return 0, {}

        def step(self, action):
            return 0, 1.0, self.ends, not self.ends, {}

    for ends, value in ((True, 1.0), (False, 2.0)):
        model = QLearning(0.5, n_steps=5000, random_state=0).fit(OneStep(ends))
        np.testing.assert_allclose(model.q_, value, rtol=1e-3)  # the rates fall like 2/n
        assert len(model.returns_) == 5000
    limited = QLearning(n_steps=1000, max_episode_steps=10, random_state=0).fit(STAY_OR_GO)
    assert limited.lengths_.tolist() == [10] * 100
    assert np.array_equal(limited.returns_, limited.returns_.round())


def test_a_terminal_state_that_pays_is_entered_and_pays_once():
    paying = MDP([[[0.0, 1.0]], [[0.0, 1.0]]], [1.0, 10.0], 0.5, terminal=[1], initial=0)
    model = QLearning(n_steps=1000, random_state=0).fit(paying)
    np.testing.assert_allclose(model.value_, [6.0, 10.0], rtol=1e-3)  # the first visits came before the end was known
    assert model.returns_.tolist() == [11.0] * 500


@pytest.mark.parametrize("env", [STAY_OR_GO, gymnasium.make("FrozenLake-v1", is_slippery=False)])
def test_one_percent_of_sabotage_is_refused(env):
    model = QLearning(epsilon=0.9, n_steps=20_000, max_episode_steps=50, random_state=0).fit(env)
    assert model.certify(env).holds, str(model.certify(env))
    rng = np.random.default_rng(0)
    for name in ("q_", "value_", "returns_"):
        twin, array = deepcopy(model), getattr(model, name)
        noise = rng.normal(size=array.shape)
        setattr(twin, name, array + 0.01 * np.linalg.norm(array) * noise / np.linalg.norm(noise))
        assert not twin.certify(env).holds, name
    for name in ("policy_", "visits_", "lengths_", "n_steps_"):
        twin = deepcopy(model)
        setattr(twin, name, getattr(model, name) + 1 if name != "policy_" else 1 - model.policy_)
        assert not twin.certify(env).holds, name


def test_the_bound_of_the_policy_is_true_and_a_bad_policy_is_refused():
    for seed in range(5):
        mdp = random_mdp(seed, n_states=4)
        model = QLearning(n_steps=30, random_state=seed).fit(mdp)  # hardly anything is learned
        check = model.certify(mdp)["policy loss"]
        value = exact_value(mdp, model.policy_)
        loss = (best_value(mdp) - value).max() / np.abs(value).max()
        assert loss <= check.value * (1 + 1e-9) + 1e-12
        assert check.holds == (check.value <= 0.01)
        table = model.certify(mdp)["Bellman error"]
        optimum = mdp.q(best_value(mdp))
        assert np.abs(model.q_ - optimum).max() / np.abs(model.q_).max() <= table.value * (1 + 1e-9)


def test_a_policy_need_not_end_where_nobody_can_get():
    T = [[[0, 1, 0], [0, 1, 0]], [[0, 1, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]]
    mdp = MDP(np.array(T, dtype=float), [-1.0, 0.0, -1.0], 1.0, terminal=[1], initial=0)
    model = QLearning(n_steps=100, random_state=0).fit(mdp)
    assert model.policy_[2] == 0  # never tried, and it would stay there for ever
    assert model.certify(mdp)["policy loss"].value < 1e-9
    trap = MDP(np.array(T, dtype=float), [-1.0, 0.0, -1.0], 1.0, terminal=[1], initial=2)
    model = QLearning(n_steps=100, random_state=0).fit(trap)
    model.policy_ = np.array([0, 0, 0])
    assert model.certify(trap)["policy loss"].value == np.inf


def test_what_was_learned_in_gymnasium_can_be_held_against_its_model():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    model = QLearning(0.9, epsilon=0.9, n_steps=20_000, random_state=0).fit(env)
    certificate = model.certify(MDP.from_gymnasium(env, 0.9))
    assert certificate.holds
    assert [check.name for check in certificate] == ["policy loss", "Bellman error", "never tried"]
    with pytest.raises(ValueError, match="was learned in an MDP: certify it there"):
        QLearning(n_steps=100, random_state=0).fit(MDP.from_gymnasium(env, 0.9)).certify(env)
    other = "learned with 16 states and 4 actions, and this environment has 2 states and 2 actions: give that of the fit"
    for use in (model.certify, model.score):
        with pytest.raises(ValueError, match=other):
            use(STAY_OR_GO)
    with pytest.raises(ValueError, match="n_episodes must be a whole number of at least 1, got 0"):
        model.score(env, n_episodes=0)
    assert model.score(env) == 1.0


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads_and_another_one_others():
    fits = []
    for n_threads in (1, 2, 7):
        with lemmata.config(n_threads=n_threads):
            fits.append(QLearning(n_steps=10_000, random_state=3).fit(STAY_OR_GO))
    assert_same_bits(fits[0], fits[1])
    assert_same_bits(fits[0], fits[2])
    assert not np.array_equal(fits[0].q_, QLearning(n_steps=10_000, random_state=4).fit(STAY_OR_GO).q_)
    unseeded = QLearning(n_steps=1000).fit(STAY_OR_GO)
    assert unseeded.certify(STAY_OR_GO)["q"].holds  # the seed that was drawn is kept


def test_a_stored_model_is_the_same_model(tmp_path):
    model = QLearning(learning_rate=inverse(1.0), n_steps=5000, random_state=0).fit(STAY_OR_GO)
    model.save(tmp_path / "q.lemmata")
    loaded = lemmata.load(tmp_path / "q.lemmata")
    assert_same_bits(model, loaded)
    assert loaded.certify(STAY_OR_GO)["q"].holds


@pytest.mark.parametrize("env", [STAY_OR_GO, gymnasium.make("FrozenLake-v1")])
def test_ctrl_c_keeps_what_was_learned_and_a_checkpoint_goes_on_with_the_same_bits(env, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = QLearning(n_steps=30_000, max_episode_steps=60, random_state=0)
    whole = clone(model).fit(env)
    cut = clone(model).set_params(checkpoint=path).set_callbacks(Interrupt())
    with pytest.warns(ConvergenceWarning, match="was interrupted after 1 iterations"):
        cut.fit(env)
    assert 0 < cut.n_steps_ < 30_000
    assert all(cut.certify(env)[name].holds for name in ("q", "visits", "returns", "n_steps"))  # what ran is repeated
    cut.n_steps_ += 1
    assert not cut.certify(env)["n_steps"].holds
    assert path.exists()
    resumed = clone(model).set_params(checkpoint=path).fit(env)
    assert_same_bits(whole, resumed)
    assert not path.exists()
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        clone(model).set_params(checkpoint=path).set_callbacks(Interrupt()).fit(env)
    with pytest.raises(ValueError, match="belongs to another fit"):
        clone(model).set_params(checkpoint=path, epsilon=0.2).fit(env)


def test_clear_errors():
    with pytest.raises(NotFittedError):
        QLearning().predict([0])
    with pytest.raises(ValueError, match="learning_rate"):
        QLearning(learning_rate=1.5).fit(LINE)
    with pytest.raises(ValueError, match="target"):
        QLearning(target="best").fit(LINE)
    with pytest.raises(ValueError, match="exploring_starts needs an MDP"):
        QLearning(exploring_starts=True).fit(gymnasium.make("FrozenLake-v1"))
    model = QLearning(n_steps=10, random_state=0).fit(LINE)
    with pytest.raises(ValueError, match="States are numbers from 0 to 2"):
        model.predict([3])
    for wrong in ([0.5], [[1], [1, 2]]):
        with pytest.raises(ValueError, match="States are numbers from 0 to 2"):
            model.predict(wrong)
    assert model.predict(np.array([], dtype=int)).shape == (0,)


def test_rewards_that_are_no_numbers_are_refused():
    env = Recorded(gymnasium.make("FrozenLake-v1"), reward=lambda *move: np.nan)
    with pytest.raises(ValueError, match="left the numbers"):
        QLearning(n_steps=100, random_state=0).fit(env)


def test_progress_is_shown(capsys):
    QLearning(n_steps=10_000, verbose=1, random_state=0).fit(STAY_OR_GO)
    assert "QLearning: 100%" in capsys.readouterr().err


def test_what_a_policy_loses_once_is_not_counted_as_if_lost_at_every_step():
    T = np.zeros((3, 2, 3))
    T[0, :, :2] = 0.5
    T[1:, :, 2] = 1
    mdp = MDP(T, [[1, 0.9995], [0, 10], [0, 0]], 0.999, terminal=[2], initial=0)  # 0.0005 too little a step, for two steps
    model = QLearning(n_steps=60, random_state=1).fit(mdp)
    model.policy_ = np.array([1, 1, 0])
    lost = best_value(mdp) - exact_value(mdp, model.policy_)
    check = model.certify(mdp)["policy loss"]
    assert check.value == pytest.approx(lost.max() / np.abs(exact_value(mdp, model.policy_)).max(), rel=1e-3)
    assert check.holds
