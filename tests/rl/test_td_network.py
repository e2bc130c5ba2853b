"""TD with networks: tables as a special case, plain derivatives, the projected Bellman equation, and a pole that stays up."""

from copy import deepcopy

import gymnasium
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import lemmata
from contracts.problems import assert_same_bits
from lemmata.core.xoshiro import seed as words
from lemmata.optimize import GradientDescent, Schedule, inverse
from lemmata.rl import MDP, QLearning, Reinforce, TDLambda, TDNetwork
from lemmata.rl.environment import draw, law_of
from rl.naive import LINE, STAY_OR_GO, Interrupt, Played, Recorded, random_mdp, rich_lake, td_recursion

UNIFORM = np.full((16, 4), 0.25)


@pytest.mark.item("RLN-10", "RLN-11")
@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_one_hot_rows_make_it_td_with_a_table(lambda_):
    env = rich_lake()
    options = {"learning_rate": 0.1, "fit_intercept": False, "max_episode_steps": 12, "n_steps": 3000, "random_state": 0}
    model = TDNetwork((), policy=UNIFORM, lambda_=lambda_, gamma=0.9, **options).fit(env)
    assert any(over and not ended for *_, ended, over in env.log)
    np.testing.assert_allclose(
        model.predict(np.arange(16)), td_recursion(env.log, 16, 0.9, lambda_, 0.1), rtol=1e-12, atol=1e-15
    )


@pytest.mark.item("RLN-11")
def test_without_traces_lambda_counts_as_zero():
    options = {"policy": UNIFORM, "learning_rate": 0.1, "n_steps": 1000, "random_state": 0}
    env = gymnasium.make("FrozenLake-v1")
    one = TDNetwork((4,), traces=False, lambda_=0.9, **options).fit(env)
    other = TDNetwork((4,), lambda_=0.0, **options).fit(env)
    assert np.array_equal(one.parameters_, other.parameters_)
    assert not np.array_equal(one.parameters_, TDNetwork((4,), lambda_=0.9, **options).fit(env).parameters_)


@pytest.mark.item("RLN-10", "RLN-11")
@pytest.mark.parametrize("lambda_", [0.0, 0.8])
def test_steps_of_a_network_are_those_of_derivatives_by_differences(lambda_):
    mdp = random_mdp(1, terminal=[5])
    columns, eta, gamma = np.random.default_rng(0).normal(size=(6, 2)), 0.2, 0.9
    played = Played(mdp, law_of(mdp), draw, words(np.random.default_rng(0)), columns)
    env = Recorded(played, number=lambda seen: int(np.abs(columns - seen).sum(axis=1).argmin()))
    options = {"learning_rate": eta, "lambda_": lambda_, "gamma": gamma, "random_state": 0}
    model = TDNetwork((3,), policy=lambda seen: 0, n_steps=40, **options).fit(env)

    def value(w, x):
        return np.tanh(x @ w[:6].reshape(2, 3) + w[6:9]) @ w[9:12] + w[12]

    w = TDNetwork((3,), policy=lambda seen: 0, n_steps=1, **options | {"learning_rate": 1e-300}).fit(played).parameters_
    e, h = np.zeros(13), 1e-5
    for s, _, r, after, ended, over in env.log:
        delta = r + (0.0 if ended else gamma * value(w, columns[after])) - value(w, columns[s])
        slope = [(value(w + h * u, columns[s]) - value(w - h * u, columns[s])) / (2 * h) for u in np.eye(13)]
        e = gamma * lambda_ * e + slope
        w = w + eta * delta * e
        if over:
            e[:] = 0
    np.testing.assert_allclose(model.parameters_, w, rtol=0, atol=1e-7)  # differences have about nine digits


@pytest.mark.item("RLN-10")
@pytest.mark.parametrize("lambda_", [0.0, 0.8])
def test_linear_values_solve_the_projected_bellman_equation(lambda_):
    mdp = random_mdp(5, n_states=6, n_actions=1)
    P, r, gamma = mdp.table, mdp.rewards[:, 0], 0.9
    columns = np.random.default_rng(1).normal(size=(6, 2))
    d = np.linalg.matrix_power(P, 200)[0]  # the share of time in each state
    inverse_of_traces = np.linalg.inv(np.eye(6) - gamma * lambda_ * P)
    A = columns.T @ np.diag(d) @ inverse_of_traces @ (np.eye(6) - gamma * P) @ columns
    solution = np.linalg.solve(A, columns.T @ np.diag(d) @ inverse_of_traces @ r)
    env = Played(mdp, law_of(mdp), draw, words(np.random.default_rng(3)), columns)
    rule = GradientDescent(Schedule(0.1, power=0.9, decay=0.005))
    options = {"policy": lambda seen: 0, "gamma": gamma, "rule": rule, "fit_intercept": False, "random_state": 0}
    model = TDNetwork((), lambda_=lambda_, n_steps=60_000, **options).fit(env)
    found = model.parameters_[:2]
    assert np.abs(found - solution).max() < 0.05 * np.abs(solution).max()  # noise of the last steps
    exact = np.linalg.solve(np.eye(6) - gamma * P, r)
    assert np.abs(columns @ solution - exact).max() > 0.1 * np.abs(exact).max()  # two columns cannot hold six values


@pytest.mark.parametrize("target", ["max", "expected", "sample"])
def test_learning_to_act_with_one_hot_rows_is_a_table_with_traces(target):
    env, eta, gamma, lambda_, epsilon = rich_lake(), 0.1, 0.9, 0.8, 0.4
    options = {"learning_rate": eta, "gamma": gamma, "lambda_": lambda_, "epsilon": epsilon, "fit_intercept": False}
    model = TDNetwork((), target=target, n_steps=3000, max_episode_steps=9, n_evaluations=0, random_state=2, **options).fit(env)
    Q, e = np.zeros((16, 4)), np.zeros((16, 4))
    for t, (s, a, r, after, ended, over) in enumerate(env.log[:-1]):
        follows, taken = Q[after].max(), env.log[t + 1][1]
        breaks = target == "max" and not over and Q[after, taken] < follows
        if target == "sample" and not over:
            follows = Q[after, taken]
        elif target != "max":
            follows = (1 - epsilon) * follows + epsilon * Q[after].mean()
        delta = r + (0.0 if ended else gamma * follows) - Q[s, a]
        e *= gamma * lambda_
        e[s, a] += 1
        Q += eta * delta * e
        if over or breaks:
            e[:] = 0
    # the last step of the record lacks what came next, and moves what has a trace
    untold = (e != 0).any(axis=1) | (np.arange(16) == env.log[-1][0])
    assert untold.sum() < 10
    np.testing.assert_allclose(model.values(np.arange(16))[~untold], Q[~untold], rtol=1e-11, atol=1e-15)


def test_the_parameters_that_did_best_are_kept():
    env = gymnasium.make("CartPole-v1")
    for seed in range(10):  # until there is one for which the best are not the last
        model = TDNetwork((8,), n_steps=40_000, n_evaluations=3, learning_rate=0.003, random_state=seed)
        whole = clone(model).fit(env)
        at = int(whole.scores_.argmax())
        if at < 9 and (whole.scores_ == whole.scores_[at]).sum() == 1:
            break
    else:
        pytest.fail("the last parameters were the best for ten seeds")
    last = clone(model).set_params(n_evaluations=0).fit(env)
    assert len(whole.scores_) == model.max_iter == 10
    stopped = clone(model).set_params(stop_at=whole.scores_[at]).fit(env)
    assert np.array_equal(stopped.scores_, whole.scores_[: at + 1])
    assert np.array_equal(stopped.parameters_, whole.parameters_)
    assert not np.array_equal(last.parameters_, whole.parameters_)
    assert stopped.certify(env).holds


@pytest.mark.slow_without_jit
def test_a_pole_is_kept_up():
    env = gymnasium.make("CartPole-v1")
    model = TDNetwork(stop_at=500, random_state=0).fit(env)
    assert model.score(env, n_episodes=20) >= 475  # what counts as solved
    seen, _ = env.reset(seed=0)
    assert model.predict(seen).shape == (1,)
    assert model.values([seen, seen]).shape == (2, 2)


def test_one_percent_of_sabotage_is_refused():
    env = gymnasium.make("FrozenLake-v1")
    for policy in (None, UNIFORM):
        model = TDNetwork((4,), policy=policy, n_steps=3000, max_episode_steps=20, random_state=0).fit(env)
        assert model.certify(env).holds, str(model.certify(env))
        for name in ("parameters_", "returns_", "lengths_", "scores_"):
            twin, array = deepcopy(model), np.asarray(getattr(model, name))
            if array.any():
                setattr(twin, name, array * 1.01 if array.dtype.kind == "f" else array + 1)
                assert not twin.certify(env).holds, name


def test_how_observations_are_read_belongs_to_the_fit():
    env = gymnasium.make("MountainCar-v0", max_episode_steps=50)
    for learner in (TDNetwork((2,), n_evaluations=0), Reinforce((2,), n_evaluations=0)):
        model = learner.set_params(n_steps=1000, random_state=0).fit(env)
        assert model.certify(env).holds, str(model.certify(env))
        for name in ("center", "scale"):
            twin = deepcopy(model)
            setattr(twin, f"{name}_", getattr(model, f"{name}_") * 1.01)
            assert [check.name for check in twin.certify(env).failed] == [name]


@pytest.mark.parametrize("policy", [None, UNIFORM])
def test_what_cannot_be_repeated_is_judged_by_the_known_law(policy):
    env = gymnasium.make("FrozenLake-v1")
    model = TDNetwork((), policy=policy, learning_rate=0.1, gamma=0.9, n_steps=3000, random_state=0).fit(env)
    model.parameters_ = np.tile([0.0, 0.0, 0.0, 1.0], 17) if policy is None else model.parameters_ * 2  # nothing was repeated
    assert not model.certify(MDP.from_gymnasium(env, 0.9)).holds


def test_a_discount_of_another_fit_is_refused():
    for learner in (TDNetwork((2,), n_steps=50), TDLambda(n_steps=50), QLearning(n_steps=50), Reinforce((2,), n_steps=50)):
        model = learner.set_params(max_episode_steps=3, random_state=0).fit(STAY_OR_GO)
        assert model.certify(STAY_OR_GO)["gamma"].holds
        model.gamma_ *= 0.99
        assert not model.certify(STAY_OR_GO)["gamma"].holds


def test_a_known_law_tells_how_good_it_is():
    acting = TDNetwork((), learning_rate=0.1, n_steps=5000, max_episode_steps=100, random_state=0).fit(STAY_OR_GO)
    assert acting.certify(STAY_OR_GO)["policy loss"].value < 1e-12
    options = {"learning_rate": 0.05, "n_steps": 20_000, "max_episode_steps": 100, "random_state": 0}
    judging = TDNetwork((), policy=[1, 0], **options).fit(STAY_OR_GO)
    check = judging.certify(STAY_OR_GO)["value error"]
    assert check.value == pytest.approx(np.abs(judging.predict([0, 1]) - [8.780488, 10.0]).max() / 10, rel=1e-5)
    assert check.value < 0.1


def test_stored_seeded_interrupted(tmp_path):
    env = gymnasium.make("CartPole-v1")
    model = TDNetwork((8,), rule="adam", epsilon=inverse(1.0, decay=1e-3), n_steps=10_000, n_evaluations=1, random_state=0)
    fits = []
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads):
            fits.append(clone(model).fit(env))
    assert_same_bits(*fits)
    fits[0].save(tmp_path / "td.lemmata")
    loaded = lemmata.load(tmp_path / "td.lemmata")
    assert_same_bits(fits[0], loaded)
    seen = [env.observation_space.sample() for _ in range(5)]
    assert np.array_equal(loaded.predict(seen), fits[0].predict(seen))
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        cut = clone(model).set_params(checkpoint=path).set_callbacks(Interrupt()).fit(env)
    assert cut.predict(seen).shape == (5,)
    assert cut.certify(env).holds  # what ran is repeated
    assert_same_bits(fits[0], clone(model).set_params(checkpoint=path).fit(env))


def test_clear_errors():
    with pytest.raises(NotFittedError):
        TDNetwork().predict([0])
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        TDNetwork((0,)).fit(LINE)
    with pytest.raises(ValueError, match="is a function of the observation"):
        TDNetwork(policy=[0, 1]).fit(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="take shorter steps by learning_rate"), np.errstate(all="ignore"):
        TDNetwork((), learning_rate=1e6, n_steps=5000, random_state=0).fit(STAY_OR_GO)
    model = TDNetwork((2,), policy=[0, 0, 0], n_steps=10, random_state=0).fit(LINE)
    with pytest.raises(ValueError, match="there is nothing to score"):
        model.score(LINE)
    with pytest.raises(ValueError, match="States are numbers from 0 to 2"):
        model.predict([3])
    pole = TDNetwork((2,), n_steps=10, n_evaluations=0, random_state=0).fit(gymnasium.make("CartPole-v1"))
    for wrong in ([1.0, 2.0, 3.0], np.zeros((2, 6)), np.zeros((4, 2))):
        with pytest.raises(ValueError, match="Observations have 4 numbers each"):
            pole.predict(wrong)
    for wrong in ([0.0, np.nan, 0.0, 0.0], [0.0, np.inf, 0.0, 0.0]):
        with pytest.raises(ValueError, match="Observations must be finite numbers"):
            pole.predict(wrong)
    with pytest.raises(ValueError, match="Observations must hold numbers"):
        pole.predict("upright")
    assert [len(pole.predict(np.zeros(shape))) for shape in ((4,), (1, 4), (3, 4), (3, 2, 2), (0, 4))] == [1, 1, 3, 3, 0]
    with pytest.raises(
        ValueError, match="with observations of 4 numbers and 2 actions, and this environment has 3 states and 1"
    ):
        pole.score(LINE)
    pole.set_params(hidden_layer_sizes=(64,))
    for use in (pole.predict, lambda seen: pole.certify(gymnasium.make("CartPole-v1"))):
        with pytest.raises(ValueError, match="not that of a fit with these parameters"):
            use(np.zeros(4))
    for policy in ([0, 0, 0], None):
        model = TDNetwork((), policy=policy, n_steps=10, n_evaluations=0, random_state=0).fit(LINE)
        with pytest.raises(ValueError, match="with 3 states and 1 actions, and this environment has 2 states and 2 actions"):
            model.certify(STAY_OR_GO)


@pytest.mark.parametrize("action", [5, -1, 0.5, "left", [0], None])
def test_an_action_that_is_none_is_refused_before_compiled_code_sees_it(action):
    with pytest.raises(ValueError, match="policy must return actions from 0 to 1, and returned"):
        TDNetwork((), policy=lambda seen: action, n_steps=10).fit(STAY_OR_GO)
