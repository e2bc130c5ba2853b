"""TD(λ): numbers of the catalogue, explicit sums, forward view, and the exact value of the policy."""

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
from lemmata.optimize import inverse
from lemmata.rl import TDLambda
from lemmata.rl.environment import draw, law_of
from lemmata.rl.td_lambda import lambda_returns
from rl.naive import LINE, STAY_OR_GO, Interrupt, Played, assert_close, random_mdp, rich_lake, td_recursion


@pytest.mark.item("RLN-09")
def test_numbers_of_the_catalogue():
    model = TDLambda(lambda_=0.5, learning_rate=0.1, n_episodes=1).fit(LINE)
    np.testing.assert_allclose(model.value_, [0.045, 0.1, 0.0], rtol=1e-15)
    zero = TDLambda(lambda_=0.0, learning_rate=0.1, n_episodes=1).fit(LINE)  # TD(0) is legitimate
    np.testing.assert_allclose(zero.value_, [0.0, 0.1, 0.0], rtol=1e-15)


def episodes_of(log):
    """Cut a record of whole episodes into them, each a list of (state, reward, next state, ended)."""
    found = [[]]
    for s, _, r, after, ended, over in log:
        found[-1].append((s, r, after, ended))
        if over:
            found.append([])
    return [rows for rows in found if rows]


@pytest.mark.item("RLN-09")
@pytest.mark.parametrize("lambda_", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("trace", ["accumulating", "replacing"])
def test_the_recursion_is_that_of_the_textbook(lambda_, trace):
    env = rich_lake()
    options = {"lambda_": lambda_, "trace": trace, "learning_rate": 0.2, "max_episode_steps": 12, "random_state": 0}
    model = TDLambda(gamma=0.9, n_steps=3000, **options).fit(env)
    assert any(over and not ended for *_, ended, over in env.log)
    expected = td_recursion(env.log, 16, 0.9, lambda_, 0.2, trace)
    np.testing.assert_allclose(model.value_, expected, rtol=1e-12, atol=1e-15)  # another order of the same sums


@pytest.mark.item("RLN-09")
def test_the_explicit_sum_is_the_recursion():
    # V(s) changes by η Σ_t 1[s_t = s] Σ_{u ≥ t} (γλ)^{u−t} δ_u, with the errors δ that occurred.
    env, gamma, lambda_, eta = rich_lake(), 0.9, 0.7, 0.1
    model = TDLambda(gamma=gamma, lambda_=lambda_, learning_rate=eta, n_episodes=40, random_state=3).fit(env)
    V = np.zeros(16)
    for rows in episodes_of(env.log):
        # each error belongs to the values of its moment; they are followed by the sum itself, step by step
        start, errors = V.copy(), []
        for u, (s, r, after, ended) in enumerate(rows):
            errors.append(r + (0.0 if ended else gamma * V[after]) - V[s])
            V = start.copy()
            for t in range(u + 1):
                V[rows[t][0]] += eta * sum((gamma * lambda_) ** (k - t) * errors[k] for k in range(t, u + 1))
    np.testing.assert_allclose(model.value_, V, rtol=1e-11, atol=1e-15)


@pytest.mark.item("RLN-09")
@pytest.mark.parametrize("lambda_", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("limit", [None, 5])
def test_offline_updates_are_those_of_forward_returns(lambda_, limit):
    env, gamma, eta = rich_lake(), 0.95, 0.05
    options = {"lambda_": lambda_, "learning_rate": eta, "online": False, "max_episode_steps": limit, "random_state": 1}
    model = TDLambda(gamma=gamma, n_episodes=200, **options).fit(env)
    V = np.zeros(16)
    for rows in episodes_of(env.log):
        # G_t^λ from its definition: a mixture of all n-step returns, what is left of the weights on the longest
        after, T, change = [0.0 if ended else V[x] for _, _, x, ended in rows], len(rows), np.zeros(16)
        for t in range(T):
            n_step, total = [], 0.0
            for n in range(1, T - t + 1):
                total += gamma ** (n - 1) * rows[t + n - 1][1]
                n_step.append(total + gamma**n * after[t + n - 1])
            weights = [(1 - lambda_) * lambda_ ** (n - 1) for n in range(1, T - t)] + [lambda_ ** (T - t - 1)]
            change[rows[t][0]] += eta * (np.dot(weights, n_step) - V[rows[t][0]])
            found = lambda_returns([r for _, r, _, _ in rows[t:]], after[t:], gamma, lambda_)[0]
            assert found == pytest.approx(np.dot(weights, n_step), rel=1e-12)
        V += change
    np.testing.assert_allclose(model.value_, V, rtol=1e-11, atol=1e-15)


@pytest.mark.item("RLN-09")
@pytest.mark.parametrize("lambda_", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("trace", ["accumulating", "replacing"])
def test_the_fixed_point_is_the_value_of_the_policy(lambda_, trace):
    for seed in range(3):
        mdp, rng = random_mdp(seed), np.random.default_rng(seed)
        policy = rng.dirichlet(np.ones(3), size=6)
        P = np.einsum("sa,sat->st", policy, mdp.table.reshape(6, 3, 6))
        value = np.linalg.solve(np.eye(6) - 0.9 * P, (policy * mdp.rewards).sum(axis=1))
        model = TDLambda(policy, lambda_=lambda_, trace=trace, max_episode_steps=200, random_state=seed).fit(mdp)
        # 2 %: noise of a million steps; more where traces that are replaced learn from first visits only, which are few
        few = trace == "replacing" and lambda_ == 1
        np.testing.assert_allclose(model.value_, value, atol=(0.1 if few else 0.02) * np.abs(value).max())
        assert model.certify(mdp).holds


def test_the_exact_value_does_not_move_where_nothing_is_random():
    for lambda_ in (0.0, 0.5, 1.0):
        first = TDLambda([0, 0, 0], lambda_=lambda_, n_steps=100_000).fit(LINE)
        np.testing.assert_allclose(first.value_, [0.9, 1.0, 0.0], atol=1e-3)  # the start is forgotten like 1/n


@pytest.mark.parametrize("is_online", [True, False])
@pytest.mark.parametrize("policy", [None, [0, 1, 2, 0, 1, 2]])
def test_a_compiled_run_and_an_environment_take_the_same_steps(is_online, policy):
    mdp = random_mdp(3, terminal=[5], paid_by_move=True)
    options = {"lambda_": 0.8, "online": is_online, "max_episode_steps": 9, "random_state": 4, "n_steps": 5000}
    compiled = TDLambda(policy, **options).fit(mdp)
    stream = words(spawn(np.random.default_rng(compiled.seed_), 2)[1])
    played = TDLambda(policy, gamma=0.9, **options).fit(Played(mdp, law_of(mdp), draw, stream))
    played.source_ = "mdp"
    assert_close(compiled, played)


def test_steps_or_episodes_whichever_comes_first():
    assert len(TDLambda(n_episodes=7).fit(LINE).returns_) == 7
    model = TDLambda(n_episodes=7, n_steps=5).fit(LINE)
    assert (model.n_steps_, model.returns_.tolist(), model.lengths_.tolist()) == (5, [1.0, 1.0], [2, 2])
    assert model.visits_.tolist() == [3, 2, 0]
    frozen = TDLambda(n_episodes=7, random_state=0).fit(gymnasium.make("FrozenLake-v1"))
    assert len(frozen.returns_) == 7
    assert frozen.lengths_.sum() == frozen.n_steps_


def test_one_percent_of_sabotage_is_refused():
    for env in (STAY_OR_GO, gymnasium.make("FrozenLake-v1")):
        model = TDLambda(n_steps=30_000, max_episode_steps=50, random_state=0).fit(env)
        assert {check.name for check in model.certify(env).failed} <= {"value error"}
        for name in ("value_", "returns_", "visits_", "lengths_"):
            twin, array = deepcopy(model), np.asarray(getattr(model, name))
            setattr(twin, name, array * 1.01 if array.dtype.kind == "f" else array + 1)
            assert not twin.certify(env)[name.strip("_")].holds


def test_values_that_are_off_are_refused_by_the_exact_ones():
    model = TDLambda([1, 0], n_steps=100, max_episode_steps=10, random_state=0).fit(STAY_OR_GO)
    error = np.abs(model.value_ - [8.780488, 10.0]).max() / 10
    check = model.certify(STAY_OR_GO)["value error"]
    assert check.value == pytest.approx(error, rel=1e-6)
    assert not check.holds


def test_where_a_policy_never_goes_it_need_not_end():
    env = gymnasium.make("CliffWalking-v1")  # without a discount, as in the textbook
    along = np.zeros(48, dtype=int)  # up, which elsewhere runs against the wall for ever
    along[24:35], along[35] = 1, 2
    model = TDLambda(along, gamma=1.0, n_steps=5_000, max_episode_steps=100, random_state=0).fit(env)
    certificate = model.certify(env)
    assert certificate.holds
    assert certificate["value error"].value == pytest.approx(abs(model.value_[36] + 13) / 13, abs=1e-2)
    model = TDLambda(np.zeros(48, dtype=int), gamma=1.0, n_steps=500, max_episode_steps=100, random_state=0).fit(env)
    with pytest.raises(ValueError, match="it ends, and from state 0 it never does"):
        model.certify(env)


def test_stored_seeded_interrupted(tmp_path):
    model = TDLambda([[0.5, 0.5], [0.1, 0.9]], learning_rate=inverse(0.5), n_steps=20_000, random_state=0)
    fits = []
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads):
            fits.append(clone(model).fit(STAY_OR_GO))
    assert_same_bits(*fits)
    fits[0].save(tmp_path / "td.lemmata")
    assert_same_bits(fits[0], lemmata.load(tmp_path / "td.lemmata"))
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        cut = clone(model).set_params(checkpoint=path).set_callbacks(Interrupt()).fit(STAY_OR_GO)
    assert cut.certify(STAY_OR_GO)["value"].holds  # what ran is repeated
    assert_same_bits(fits[0], clone(model).set_params(checkpoint=path).fit(STAY_OR_GO))


def test_clear_errors():
    with pytest.raises(NotFittedError):
        TDLambda().predict([0])
    with pytest.raises(ValueError, match="lambda_"):
        TDLambda(lambda_=1.5).fit(LINE)
    with pytest.raises(ValueError, match="policy"):
        TDLambda([0, 1]).fit(LINE)
    with pytest.raises(ValueError, match="not equally long"):
        TDLambda([[0.5, 0.5], [1.0]]).fit(STAY_OR_GO)
    with pytest.raises(ValueError, match="take shorter steps by learning_rate"):
        TDLambda(lambda_=1.0, learning_rate=1.0, random_state=0).fit(random_mdp(0))
    model = TDLambda(n_episodes=3).fit(LINE)
    with pytest.raises(ValueError, match="there is nothing to score"):
        model.score(LINE)
    with pytest.raises(
        ValueError, match="learned with 3 states and 1 actions, and this environment has 2 states and 2 actions"
    ):
        model.certify(STAY_OR_GO)
    with pytest.raises(ValueError, match="States are numbers"):
        model.predict([7])
    assert model.predict([1, 1]).shape == (2,)
