"""Planning: values and policies against enumeration, closed forms, linear programs and walks, and what their proofs see."""

from fractions import Fraction
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from lemmata.rl import MDP, evaluate_policy, from_gymnasium, linear_program, policy_iteration, value_iteration
from lemmata.rl.policy import chain_of
from lemmata.rl.value_iteration import METHODS
from rl.naive import LINE, STAY_OR_GO, best_value, exact_value, random_mdp

PLANNERS = {f"value iteration, {m}": lambda mdp, m=m: value_iteration(mdp, method=m) for m in METHODS} | {
    "policy iteration": policy_iteration,
    "linear program": linear_program,
}
planners = pytest.mark.parametrize("plan", PLANNERS.values(), ids=PLANNERS)


def sparse_twin(mdp, table, R):
    """The same model from sparse rows."""
    return MDP(csr_array(table.reshape(-1, mdp.n_states)), R, mdp.gamma, terminal=mdp.terminal)


@pytest.mark.item("RLN-03")
def test_rewards_of_states_pairs_and_moves_mean_the_same():
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.ones(4), size=(4, 3))
    R = rng.normal(size=4)
    wide = np.broadcast_to(R[:, None], (4, 3)), np.broadcast_to(R[:, None, None], T.shape)
    values = [value_iteration(MDP(T, r, 0.8)).value for r in (R, *wide)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-7)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-7)
    per_move = rng.normal(size=T.shape)
    mdp = MDP(T, per_move, 0.8)
    np.testing.assert_allclose(mdp.rewards, (T * per_move).sum(axis=2), rtol=1e-12)
    lists = MDP([csr_array(T[:, a]) for a in range(3)], [csr_array(per_move[:, a]) for a in range(3)], 0.8)
    np.testing.assert_allclose(lists.rewards, mdp.rewards, rtol=1e-12)
    np.testing.assert_allclose(policy_iteration(lists).value, policy_iteration(mdp).value, rtol=1e-10)


@pytest.mark.item("RLN-03")
def test_a_return_is_no_larger_than_the_largest_reward_for_ever():
    for seed in range(5):
        mdp = random_mdp(seed)
        steps = mdp.sample(np.full((6, 3), 1 / 3), 2_000, random_state=seed)
        discounted = (0.9 ** np.arange(200)) @ steps.rewards[:200]
        most = np.abs(mdp.rewards).max() / (1 - 0.9)
        assert abs(discounted) <= most
        assert np.abs(value_iteration(mdp).value).max() <= most


@pytest.mark.item("RLN-03")
@pytest.mark.parametrize(
    ("T", "R", "gamma", "options", "message"),
    [
        ([[[0.5, 0.4]], [[0.0, 1.0]]], [0, 1], 0.9, {}, "state 0, action 0"),
        ([[[1.5, -0.5]], [[0.0, 1.0]]], [0, 1], 0.9, {}, "state 0, action 0"),
        ([[[1.0]]], [0, 1], 0.9, {}, "R"),
        ([[[1.0]]], [np.nan], 0.9, {}, "R|reward"),
        ([[[1.0]]], [0], 1.5, {}, "gamma must be a number from 0 to 1"),
        ([[[1.0]]], [0], 0.9, {"terminal": [3]}, "terminal"),
        ([[1.0]], [0], 0.9, {}, "T"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(T, R, gamma, options, message):
    with pytest.raises(ValueError, match=message) as error:
        MDP(np.array(T, dtype=float), R, gamma, **options)
    assert "\n" not in str(error.value)


@pytest.mark.item("RLN-04")
def test_a_policy_is_worth_what_the_catalogue_says():
    found = evaluate_policy(STAY_OR_GO, [1, 1])
    np.testing.assert_allclose(found.value, [4.675325, 5.324675], rtol=0, atol=5e-7)  # as printed
    assert found.bound < 1e-12
    assert found.certify().holds


@pytest.mark.item("RLN-04")
@pytest.mark.parametrize("seed", range(5))
def test_values_solve_their_equations_for_sure_and_for_mixed_policies(seed):
    mdp = random_mdp(seed, terminal=(2,) if seed % 2 else (), paid_by_move=seed > 2)
    rng = np.random.default_rng(seed)
    policy = rng.integers(3, size=6)
    found = evaluate_policy(mdp, policy)
    np.testing.assert_allclose(found.value, exact_value(mdp, policy), rtol=0, atol=1e-11)
    mixed = rng.dirichlet(np.ones(3), size=6)
    found = evaluate_policy(mdp, mixed)
    np.testing.assert_allclose((mixed * mdp.q(found.value)).sum(axis=1), found.value, rtol=0, atol=1e-12)
    assert found.certify().holds
    found.value = found.value * 1.01
    assert not found.certify().holds


@pytest.mark.item("RLN-04")
def test_a_value_is_the_mean_return_of_walks():
    mdp, policy = random_mdp(3, gamma=0.8), np.array([0, 1, 2, 0, 1, 2])
    steps = mdp.sample(policy, 400_000, random_state=0)
    horizon, starts = 60, np.arange(0, 399_900, 7)  # 0.8⁶⁰ is a millionth
    returns = sum(0.8**t * steps.rewards[starts + t] for t in range(horizon))
    value = evaluate_policy(mdp, policy).value
    for s in range(6):
        some = returns[steps.states[starts] == s]
        if len(some) > 500:
            assert abs(some.mean() - value[s]) < 6 * some.std() / np.sqrt(len(some)) * 2  # walks overlap: twice the error


@pytest.mark.item("RLN-05", "RLN-06")
@planners
def test_the_catalogue_s_model_is_solved(plan):
    found = plan(STAY_OR_GO)
    np.testing.assert_allclose(found.value, [8.780488, 10.0], rtol=0, atol=5e-7)
    np.testing.assert_allclose(found.q, [[7.902439, 8.780488], [10.0, 9.121951]], rtol=0, atol=5e-7)
    assert found.policy.tolist() == [1, 0]
    np.testing.assert_allclose(found.q.max(axis=1), found.value, rtol=0, atol=1e-6)
    assert found.certify().holds


@pytest.mark.item("RLN-05")
@planners
@pytest.mark.parametrize("seed", range(4))
def test_no_policy_of_all_is_better(plan, seed):
    mdp = random_mdp(seed, n_states=5, terminal=(1,) if seed % 2 else (), paid_by_move=seed > 1)
    found, best = plan(mdp), best_value(mdp)
    np.testing.assert_allclose(found.value, best, rtol=0, atol=1e-6 * np.abs(best).max())
    assert np.abs(found.value - best).max() <= found.error
    loss = (best - exact_value(mdp, found.policy)).max()
    assert loss <= found.bound
    assert found.bound <= 1e-6 * np.abs(best).max()
    assert found.certify().holds


@pytest.mark.item("RLN-05")
@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("method", METHODS)
def test_a_policy_is_as_good_as_asked_for_whenever_it_stops(epsilon, method):
    mdp = random_mdp(7, n_states=40, n_actions=4, gamma=0.97)
    best = value_iteration(mdp, 1e-9).value
    found = value_iteration(mdp, epsilon, method=method)
    assert found.bound <= epsilon
    assert (best - evaluate_policy(mdp, found.policy).value).max() <= epsilon


@pytest.mark.item("RLN-05")
def test_bellman_s_operator_contracts():
    mdp = random_mdp(1, n_states=20, gamma=0.9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        V, U = rng.normal(size=(2, 20))
        assert np.abs(mdp.bellman(V) - mdp.bellman(U)).max() <= 0.9 * np.abs(V - U).max() + 1e-12
    trace = value_iteration(mdp, 1e-8, method="value").trace
    assert (trace[1:] <= 0.9 * trace[:-1] * (1 + 1e-6) + 1e-12).all()


@pytest.mark.item("RLN-06")
def test_q_is_its_own_equation():
    for seed in range(4):
        mdp = random_mdp(seed, terminal=(0,))
        q = value_iteration(mdp, 1e-10).q
        np.testing.assert_allclose(q, mdp.q(q.max(axis=1)), rtol=0, atol=1e-8)


@planners
def test_sparse_rows_are_dense_rows(plan):
    rng = np.random.default_rng(5)
    T = np.where(rng.random((30, 3, 30)) < 0.15, rng.random((30, 3, 30)), 0.0) + 0.01 * np.eye(30)[:, None, :]
    T /= T.sum(axis=2, keepdims=True)
    R = rng.normal(size=(30, 3))
    dense = MDP(T, R, 0.95, terminal=[4])
    sparse = sparse_twin(dense, T, R)
    assert sparse.table is None
    np.testing.assert_allclose(plan(sparse).value, plan(dense).value, rtol=0, atol=1e-5)
    assert np.array_equal(plan(sparse).policy[dense.terminal == 0], plan(dense).policy[dense.terminal == 0])


@planners
def test_one_percent_of_anything_is_refused(plan):
    mdp = random_mdp(2, n_states=8)
    found = plan(mdp)
    for name in ("value", "q"):
        twin = plan(mdp)
        array = np.array(getattr(twin, name))
        setattr(twin, name, array * (1 + 0.01 * np.random.default_rng(0).choice([-1, 1], size=array.shape)))
        assert not twin.certify(mdp).holds, name
    other = (found.policy[0] + 1) % 3
    assert found.q[0, other] < found.value[0] - 1e-3
    found.policy = np.concatenate([[other], found.policy[1:]])
    failed = [check.name for check in found.certify(mdp).failed]
    assert failed == ["policy loss", "bound"] + ["occupancy"] * (found.occupancy is not None)


def test_a_constant_added_to_the_value_is_seen():
    mdp = random_mdp(2)
    found = value_iteration(mdp)
    found.value = found.value + 1.0
    found.q = mdp.q(found.value)
    assert "value" in [check.name for check in found.certify(mdp).failed]


@pytest.mark.item("RLN-05")
@pytest.mark.parametrize(("name", "gamma"), [("FrozenLake-v1", 0.99), ("CliffWalking-v1", 0.95), ("Taxi-v4", 0.99)])
def test_environments_of_gymnasium_are_solved(name, gamma):
    env = gymnasium.make(name)
    mdp = from_gymnasium(env, gamma)
    found = value_iteration(mdp, 1e-7)
    assert found.certify().holds
    exact = policy_iteration(mdp)
    np.testing.assert_allclose(found.value, exact.value, rtol=0, atol=1e-6)
    rewards, seen = [], []
    for seed in range(30):  # the environment itself, under this policy
        state, _ = env.reset(seed=seed)
        total, discount, start = 0.0, 1.0, state
        for _ in range(1_000):
            state, reward, terminated, truncated, _ = env.step(int(found.policy[state]))
            total, discount = total + discount * reward, discount * gamma
            if terminated or truncated:
                break
        rewards.append(total)
        seen.append(found.value[start])
    if name != "FrozenLake-v1":  # which is slippery, and cut short
        np.testing.assert_allclose(rewards, seen, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="P"):
        from_gymnasium(gymnasium.make("CartPole-v1"), 0.9)


def test_without_a_discount_the_shortest_way_is_found():
    n = 6  # a corridor; each step costs one, and either end is the end
    T = np.zeros((n, 2, n))
    for s in range(n):
        T[s, 0, max(s - 1, 0)] = T[s, 1, min(s + 1, n - 1)] = 1.0
    mdp = MDP(T, np.append(-1.0, np.append(np.full(n - 2, -1.0), -1.0)) * [0, 1, 1, 1, 1, 0], 1.0, terminal=[0, n - 1])
    for plan in (value_iteration, policy_iteration, linear_program):
        found = plan(mdp)
        np.testing.assert_allclose(found.value, [0, -1, -2, -2, -1, 0], rtol=0, atol=1e-6)
        assert found.certify().holds
    assert evaluate_policy(mdp, np.zeros(n, dtype=int)).value.round(9).tolist() == [0, -1, -2, -3, -4, 0]
    stuck = np.array([0, 1, 0, 0, 0, 0])  # from 1 to 2 and back
    with pytest.raises(ValueError, match="from state 1 it never does"):
        evaluate_policy(mdp, stuck)
    with pytest.raises(ValueError, match="nothing is proved"):
        value_iteration(MDP(T, np.zeros(n), 1.0, terminal=[0]))


@planners
def test_without_a_discount_an_end_out_of_reach_is_said_before_work_starts(plan):
    T = np.eye(4)[[[0, 1], [0, 1], [1, 3], [3, 3]]]  # from 0 and 1 the way leads back to them
    with pytest.raises(ValueError, match="from state 0 no end can be reached, so that it is worth −∞"):
        plan(MDP(T, [-1.0, -1.0, -1.0, 0.0], 1.0, terminal=[3]))


def test_the_line_pays_once():
    found = value_iteration(LINE)
    np.testing.assert_allclose(found.value, [0.9, 1.0, 0.0], rtol=0, atol=1e-9)
    paid = MDP([[[0.0, 1.0]], [[0.0, 1.0]]], [0.0, 5.0], 0.9, terminal=[1])  # a terminal state that pays is paid once
    np.testing.assert_allclose(policy_iteration(paid).value, [4.5, 5.0], rtol=0, atol=1e-12)


def test_a_plan_that_is_not_done_says_so():
    with pytest.warns(ConvergenceWarning, match="value iteration did not converge after 3 iterations"):
        found = value_iteration(random_mdp(0, gamma=0.99), 1e-9, method="value", max_iter=3)
    assert not found.converged
    assert found.bound > 1e-9
    for plan in (value_iteration, policy_iteration):
        for wrong in (0, 2.5):
            with pytest.raises(ValueError, match=f"max_iter must be a whole number of at least 1, got {wrong}"):
                plan(STAY_OR_GO, max_iter=wrong)
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        value_iteration(STAY_OR_GO, 0.0)
    with pytest.raises(ValueError, match="method must be one of"):
        value_iteration(STAY_OR_GO, method="fast")
    with pytest.raises(ValueError, match="one action for each state"):
        policy_iteration(STAY_OR_GO, start=[[0.5, 0.5], [0.5, 0.5]])
    for wrong in ("small", np.nan):
        with pytest.raises(ValueError, match="epsilon must be above 0"):
            value_iteration(STAY_OR_GO, wrong)
    with pytest.raises(ValueError, match="must hold numbers"):
        value_iteration(STAY_OR_GO, start=["a", "b"])
    for plan in (value_iteration, policy_iteration, linear_program, lambda env: evaluate_policy(env, [0])):
        with pytest.raises(ValueError, match="mdp must be an MDP, got TimeLimit; from_gymnasium"):
            plan(gymnasium.make("FrozenLake-v1"))


def test_a_good_start_saves_work():
    mdp = random_mdp(0, n_states=50, gamma=0.99)
    cold = value_iteration(mdp, 1e-6, method="value")
    warm = value_iteration(mdp, 1e-6, method="value", start=cold.value)
    assert warm.n_iter < cold.n_iter / 5
    assert policy_iteration(mdp, start=cold.policy).n_iter == 1


@pytest.mark.parametrize("method", METHODS)
def test_updates_in_place_do_not_go_round_in_circles(method):
    mdp = MDP(csr_array(np.eye(3)[[2, 1, 1]]), [[-1.0], [-1.0], [-2.0]], 0.9)
    np.testing.assert_allclose(value_iteration(mdp, method=method).value, [-10.9, -10.0, -11.0], rtol=1e-7)


def grid(n):
    """A walk over a grid, whose moves may slip to either side, without end, with rewards that are drawn."""
    row, column = np.divmod(np.arange(n * n), n)
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    to = [np.clip(row + down, 0, n - 1) * n + np.clip(column + right, 0, n - 1) for down, right in moves]
    T = np.zeros((n * n, 4, n * n))
    for action in range(4):
        for turn, chance in ((0, 0.8), (1, 0.1), (3, 0.1)):
            T[np.arange(n * n), action, to[(action + turn) % 4]] += chance
    return T.reshape(-1, n * n), np.random.default_rng(0).normal(size=n * n)


def test_sweeps_between_bounds_do_not_go_round_in_circles():
    """Where no episode ends, a bound that comes back to what it was is no gain, and the equations are solved."""
    stuck = csr_array([[0.95, 0.05], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    moves, R = grid(20)
    for mdp in (MDP(stuck, [[0.6, -0.6], [-0.7, 0.2]], 0.999), MDP(csr_array(moves), R, 0.99)):
        found = value_iteration(mdp, max_iter=1_000)
        assert found.converged
        assert found.certify().holds
        np.testing.assert_allclose(found.value, policy_iteration(mdp).value, rtol=0, atol=2 * found.error)


@pytest.mark.parametrize("scale", [1.0, 1e12])
@pytest.mark.parametrize("n_states", [2, 5])
def test_few_states_and_a_long_horizon_do_not_stop_a_queue(n_states, scale):
    mdp = random_mdp(0, n_states=n_states, gamma=0.9999)
    mdp = MDP(mdp.table.reshape(n_states, 3, n_states), scale * mdp.rewards, 0.9999)
    found = value_iteration(mdp, method="prioritized", max_iter=100)
    assert found.converged
    np.testing.assert_allclose(found.value, policy_iteration(mdp).value, rtol=0, atol=2 * found.error)


@pytest.mark.parametrize("plan", [value_iteration, policy_iteration])
def test_a_horizon_that_rounding_does_not_leave_a_proof_for_is_warned_of(plan):
    endless = MDP(STAY_OR_GO.table.reshape(2, 2, 2), [0.0, 1.0], 1 - 1e-12)
    with pytest.warns(ConvergenceWarning, match="take a smaller gamma"):
        found = plan(endless)
    assert not found.converged
    assert not found.certify().holds


def test_a_program_that_is_not_solved_names_other_ways():
    with pytest.raises(ValueError, match="exact to 1e-7; use value_iteration or policy_iteration"):
        linear_program(MDP(STAY_OR_GO.table.reshape(2, 2, 2), [0.0, 1.0], 1 - 1e-9))


@planners
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e300])
def test_a_plan_has_no_units(plan, scale):
    mdp = random_mdp(0, n_states=4)
    scaled = MDP(mdp.table.reshape(4, 3, 4), scale * mdp.rewards, 0.9)
    found = plan(scaled)
    assert found.converged
    assert np.array_equal(found.policy, policy_iteration(mdp).policy)
    assert found.certify().holds


def test_what_forbids_an_action_does_not_hide_the_others_from_a_program():
    T = np.eye(2)[[[0, 1, 1], [1, 0, 0]]]
    found = linear_program(MDP(T, [[1.0, 2.0, -1e300], [3.0, 1.0, -1e300]], 0.9))
    assert found.policy.tolist() == [1, 0]
    assert found.converged


def test_a_program_that_was_not_solved_well_says_so(monkeypatch):
    wrong = SimpleNamespace(status=0, ineqlin=SimpleNamespace(marginals=[-1.0, 0.0, 0.0, -1.0]))
    monkeypatch.setitem(linear_program.__globals__, "linprog", lambda *given, **options: wrong)
    with pytest.warns(ConvergenceWarning, match="its policy is proved to lose at most"):
        found = linear_program(STAY_OR_GO)
    assert not found.converged
    assert (best_value(STAY_OR_GO) - exact_value(STAY_OR_GO, found.policy)).max() <= found.bound


@planners
def test_nothing_that_comes_later_may_count(plan):
    mdp = random_mdp(1, gamma=0.0)
    found = plan(mdp)
    np.testing.assert_allclose(found.value, mdp.rewards.max(axis=1), rtol=1e-12)
    assert found.certify().holds


@planners
def test_bounds_are_plain_numbers_and_claims_are_checked(plan):
    mdp = random_mdp(2, n_states=8)
    found = plan(mdp)
    assert (type(found.bound), type(found.error)) == (float, float)
    for name in ("bound", "error"):
        twin = plan(mdp)
        setattr(twin, name, 0.0)  # more than was proved
        assert [check.name for check in twin.certify().failed] == [name]
    evaluated = evaluate_policy(mdp, found.policy)
    evaluated.bound = 0.0
    assert [check.name for check in evaluated.certify().failed] == ["bound"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("far", [1e5, 1e12])
def test_a_start_that_is_far_off_does_not_pass_for_the_size_of_the_value(method, far):
    mdp = random_mdp(0)
    found = value_iteration(mdp, method=method, start=np.full(6, far))
    assert found.converged
    assert found.certify().holds, str(found.certify())


@pytest.mark.parametrize("gamma", [0.0, 1e-4])
@pytest.mark.parametrize("start", [0.0, 1e-6])
def test_a_value_that_one_pass_finds_is_rounded_in_its_own_size(gamma, start):
    mdp = MDP([[[1.0]]], [1.1], gamma)
    found = value_iteration(mdp, start=[start])
    assert abs(Fraction(float(found.value[0])) - Fraction(1.1) / (1 - Fraction(gamma))) <= found.error
    assert found.certify().holds, str(found.certify())


@pytest.mark.parametrize("gamma", [0.9, 0.999999])
def test_an_occupancy_is_a_flow(gamma):
    mdp = random_mdp(3, n_states=5, gamma=gamma, terminal=(4,))
    found = linear_program(mdp)
    x = np.linalg.inv(np.eye(5) - gamma * chain_of(mdp, found.policy).dense).sum(axis=0)  # Σ_t γᵗ of walks from each state
    np.testing.assert_allclose(found.occupancy[np.arange(5), found.policy], x, rtol=1e-9)
    assert found.certify()["occupancy"].holds
    for wrong in (found.occupancy * 1.01, -found.occupancy, found.occupancy + 0.01, found.occupancy[:, :1]):
        found.occupancy = wrong
        assert [check.name for check in found.certify().failed] == ["occupancy"]
