"""REINFORCE: estimates that are right on average over all episodes, and tasks that are solved."""

import itertools
from copy import deepcopy

import gymnasium
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import lemmata
from contracts.problems import assert_same_bits
from lemmata.neural_network.layers import draw_parameters
from lemmata.neural_network.network import plain_forward
from lemmata.optimize import GradientDescent
from lemmata.rl import MDP, Reinforce
from lemmata.rl.environment import world_of
from lemmata.rl.reinforce_batches import Batch, improve, values_of
from rl.naive import LINE, STAY_OR_GO, Interrupt

TWO_ARMS = MDP([[[0.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], [[1.0, 0.0], [0.0, 0.0]], 0.9, terminal=[1])
STEPS = 3  # of the episodes below


def small_task(gamma):
    """Three states, two actions, and moves that may end the episode by leading to the third."""
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.ones(3), size=(3, 2))
    return MDP(T, rng.normal(size=(3, 2)), gamma, terminal=[2], initial=0), T


def episodes_of(mdp, T, chances):
    """List all episodes of at most STEPS steps with their probability under a policy; the last step ends whatever it does."""
    found = []

    def go_on(path, p, s):
        if path and (s == 2 or len(path) == STEPS):
            found.append((path, p))
            return
        for a, after in itertools.product(range(2), range(3)):
            go_on([*path, (s, a, mdp.rewards[s, a])], p * chances[s, a] * T[s, a, after], after)

    go_on([], 1.0, 0)
    return found


def as_batch(path):
    """Make a batch of one episode that ended."""
    rows, n = np.eye(3)[[s for s, _, _ in path]], len(path)
    actions, rewards = np.array([a for _, a, _ in path]), np.array([r for _, _, r in path])
    return Batch(rows, actions, rewards, np.arange(n) == n - 1, np.eye(3)[[2]], np.array([True]))


def value_of(mdp, T, chances, n_steps):
    """Find the expected undiscounted return of n steps, from each state."""
    value = np.zeros(3)
    for _ in range(n_steps):
        q = mdp.rewards + T @ np.where(mdp.terminal, 0.0, value)
        value = np.where(mdp.terminal, 0.0, (chances * q).sum(axis=1))
    return value


@pytest.mark.item("RLN-01", "RLN-02")
@pytest.mark.parametrize("baseline", ["value", "mean", None])
@pytest.mark.parametrize("hidden", [(), (3,)])
def test_the_mean_of_the_steps_over_all_episodes_is_the_gradient_of_the_expected_return(baseline, hidden):
    mdp, T = small_task(1.0)
    model = Reinforce(hidden, baseline=baseline, normalize=False, rule=GradientDescent(1.0), n_steps=100)
    step, first = model._steps(world_of(mdp), 0)
    settings = step.args[1].args[1]
    shape, rng = settings.policy, np.random.default_rng(3)
    w = draw_parameters(shape, rng)
    memory = first.memory._replace(parameters=w, mean=np.array([0.7, 5.0]))
    if baseline == "value":
        memory = memory._replace(value=draw_parameters(settings.baseline, rng))

    def expected_return(v):
        return value_of(mdp, T, plain_forward(shape, v, np.eye(3))[1], STEPS)[0]

    chances, mean, total = plain_forward(shape, w, np.eye(3))[1], 0.0, 0.0
    for path, p in episodes_of(mdp, T, chances):
        own = type(memory)(*(array.copy() for array in memory))
        improve(settings, own, as_batch(path))
        mean, total = mean + p * (own.parameters - w), total + p
    assert total == pytest.approx(1.0, rel=1e-12)
    h = 1e-6
    exact = [(expected_return(w + h * u) - expected_return(w - h * u)) / (2 * h) for u in np.eye(len(w))]
    np.testing.assert_allclose(mean, exact, atol=1e-9)  # differences at 1e-6 have ten digits


@pytest.mark.item("RLN-02")
def test_a_fitted_baseline_lowers_the_variance_of_the_steps():
    mdp, T = small_task(1.0)
    rewards = mdp.rewards + 3.0  # far from zero, where a baseline matters most
    task = MDP(T, rewards, 1.0, terminal=[2], initial=0)
    spread = {}
    for baseline in ("value", "mean", None):
        model = Reinforce((), baseline=baseline, normalize=False, rule=GradientDescent(1.0), n_steps=100)
        step, first = model._steps(world_of(task), 0)
        settings, memory = step.args[1].args[1], first.memory
        chances = plain_forward(settings.policy, memory.parameters, np.eye(3))[1]
        value = value_of(task, T, chances, STEPS)
        if baseline == "value":  # the exact one, as weights of one-hot rows
            memory.value[:3] = value
        memory.mean[:] = value[0] / 2, 100.0
        moves, odds = [], []
        for path, p in episodes_of(task, T, chances):
            own = type(memory)(*(array.copy() for array in memory))
            improve(settings, own, as_batch(path))
            moves.append(own.parameters)
            odds.append(p)
        moves, odds = np.array(moves), np.array(odds)
        spread[baseline] = odds @ ((moves - odds @ moves) ** 2).sum(axis=1)
    assert spread["value"] < 0.8 * spread["mean"]
    assert spread["mean"] < 0.5 * spread[None]


def test_an_episode_that_was_cut_goes_on_with_the_baseline():
    model = Reinforce((), normalize=False, rule=GradientDescent(1.0), gamma=0.9, n_steps=100)
    mdp, _ = small_task(0.9)
    step, first = model._steps(world_of(mdp), 0)
    settings, memory = step.args[1].args[1], first.memory
    memory.value[:3] = [1.0, 5.0, 0.0]
    assert values_of(settings.baseline, memory.value, np.eye(3)).tolist() == [1.0, 5.0, 0.0]
    batch = Batch(np.eye(3)[[0]], np.array([0]), np.array([2.0]), np.array([True]), np.eye(3)[[1]], np.array([False]))
    for ended, weight in ((False, 2.0 + 0.9 * 5.0 - 1.0), (True, 2.0 - 1.0)):
        own = type(memory)(*(array.copy() for array in memory))
        improve(settings, own, batch._replace(ended=np.array([ended])))
        # from w = 0 the score of action 0 in state 0 is ±½
        np.testing.assert_allclose(own.parameters[:2] - memory.parameters[:2], [weight / 2, -weight / 2], rtol=1e-12)


def test_an_arm_that_pays_is_preferred():
    for baseline in ("value", "mean", None):
        model = Reinforce((), baseline=baseline, n_steps=3000, random_state=0).fit(TWO_ARMS)
        assert model.predict_proba([0])[0, 0] > 0.9
        assert model.returns_[-100:].mean() > model.returns_[:100].mean()
        assert (model.lengths_ == 1).all()
    soft = Reinforce((), entropy=1.0, normalize=False, n_steps=10_000, random_state=0).fit(TWO_ARMS)
    # E[R] + H(π) is largest at π ∝ e^R
    assert soft.predict_proba([0])[0, 0] == pytest.approx(np.e / (1 + np.e), abs=0.05)


def test_a_known_law_tells_how_good_the_policy_is():
    model = Reinforce((), n_steps=20_000, max_episode_steps=20, random_state=0).fit(STAY_OR_GO)
    certificate = model.certify(STAY_OR_GO)
    assert certificate.holds
    assert certificate["policy loss"].value < 1e-12
    assert model.predict([0, 1]).tolist() == [1, 0]


@pytest.mark.slow_without_jit
def test_a_pole_is_kept_up():
    env = gymnasium.make("CartPole-v1")
    model = Reinforce(stop_at=500, random_state=0).fit(env)
    assert model.score(env, n_episodes=20) >= 475  # what counts as solved


def test_one_percent_of_sabotage_is_refused():
    env = gymnasium.make("CartPole-v1")
    model = Reinforce((4,), n_steps=3000, n_evaluations=2, random_state=0).fit(env)
    assert model.certify(env).holds, str(model.certify(env))
    for name in ("parameters_", "value_parameters_", "returns_", "lengths_", "scores_"):
        twin, array = deepcopy(model), np.asarray(getattr(model, name))
        setattr(twin, name, array * 1.01 if array.dtype.kind == "f" else array + 1)
        assert not twin.certify(env).holds, name


def test_stored_seeded_interrupted(tmp_path):
    env = gymnasium.make("CartPole-v1")
    model = Reinforce((8,), n_steps=10_000, n_evaluations=1, random_state=0)
    fits = []
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads):
            fits.append(clone(model).fit(env))
    assert_same_bits(*fits)
    fits[0].save(tmp_path / "policy.lemmata")
    loaded = lemmata.load(tmp_path / "policy.lemmata")
    assert_same_bits(fits[0], loaded)
    seen = [env.observation_space.sample() for _ in range(5)]
    assert np.array_equal(loaded.predict_proba(seen), fits[0].predict_proba(seen))
    np.testing.assert_allclose(loaded.predict_proba(seen).sum(axis=1), 1.0, rtol=1e-14)
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        clone(model).set_params(checkpoint=path).set_callbacks(Interrupt()).fit(env)
    assert_same_bits(fits[0], clone(model).set_params(checkpoint=path).fit(env))


def test_clear_errors():
    with pytest.raises(NotFittedError):
        Reinforce().predict([0])
    with pytest.raises(ValueError, match="baseline"):
        Reinforce(baseline="best").fit(TWO_ARMS)
    with pytest.raises(ValueError, match="did not suffice for 10 episodes; raise n_steps, or cut episodes"):
        Reinforce((), n_steps=1000).fit(STAY_OR_GO)
    model = Reinforce((), n_steps=100, random_state=0).fit(TWO_ARMS)
    for use in (model.certify, model.score):
        with pytest.raises(ValueError, match="with 2 states and 2 actions, and this environment has 3 states and 1 actions"):
            use(LINE)
    with pytest.raises(ValueError, match="actions must be discrete"):
        Reinforce().fit(gymnasium.make("Pendulum-v1"))
