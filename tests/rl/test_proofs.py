"""What a residual proves is true, for any value and any policy; and large models are solved as small ones are."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve
from sklearn.exceptions import ConvergenceWarning

import lemmata
from helpers import bits
from lemmata.rl import MDP, evaluate_policy, policy_iteration, value_iteration
from lemmata.rl.bounds import bracket, margin, reach_of
from lemmata.rl.evaluation import error_of, horizon_of
from lemmata.rl.linear_system import DIRECT, solve_chain
from lemmata.rl.policy import Chain, chain_of
from lemmata.rl.value_iteration import METHODS
from rl.naive import best_value, exact_value, random_mdp


def grid_world(side, gamma, slip=0.1, walls=0.0, seed=0, gold=0.0):
    """Four moves that slip to either side, at a cost, until the last corner; the states are shuffled."""
    rng, n = np.random.default_rng(seed), side * side
    wall = rng.random(n) < walls
    wall[-1] = False
    i, j = np.divmod(np.arange(n), side)
    ahead = []
    for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1)):
        to = np.clip(i + down, 0, side - 1) * side + np.clip(j + right, 0, side - 1)
        ahead.append(np.where(wall[to], np.arange(n), to))
    name = rng.permutation(n)
    rows, columns, chances = [], [], []
    for a, (turn, p) in itertools.product(range(4), ((0, 1 - 2 * slip), (1, slip), (3, slip))):
        rows.append(name * 4 + a)
        columns.append(name[ahead[(a + turn) % 4]])
        chances.append(np.full(n, p))
    T = csr_array((np.concatenate(chances), (np.concatenate(rows), np.concatenate(columns))), shape=(4 * n, n))
    R = np.empty(n)
    R[name] = np.where(np.arange(n) == n - 1, gold, -1 - rng.random(n) * (walls > 0))
    return MDP(T, R, gamma, terminal=[int(name[-1])])


def coin_walk(n):
    """A walk that stops with some chance at every step, whatever is done; without a discount and with rewards of any sign."""
    rng = np.random.default_rng(n)
    T = rng.dirichlet(np.ones(n), size=(n, 2)) * 0.8
    T[:, :, -1] += 0.2
    return MDP(T, np.append(rng.normal(size=n - 1), 0.0), 1.0, terminal=[n - 1])


def costly_walk(n):
    """Every step costs, and some policies never end; the last step brings something."""
    rng = np.random.default_rng(n)
    T = np.zeros((n, 3, n))
    T[:, 0] = np.roll(np.eye(n), 1, axis=1)
    T[:, 1] = np.eye(n)  # to stay for ever
    T[:, 2] = rng.dirichlet(np.ones(n), size=n)
    R = -rng.uniform(0.5, 1.5, size=(n, 3))
    R[-1] = 4.0
    return MDP(T, R, 1.0, terminal=[n - 1])


MODELS = {
    "discounted": random_mdp(0, n_states=4),
    "with an end": random_mdp(1, n_states=4, terminal=(2,)),
    "with an end, paid by move": random_mdp(2, n_states=4, terminal=(2,), paid_by_move=True),
    "undiscounted, always ends": coin_walk(4),
    "undiscounted, costly": costly_walk(4),
}
models = pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)


def proper(mdp, policy):
    """Tell whether the episodes of a policy end, by walking long enough; for models with a discount it does not matter."""
    rows = chain_of(mdp, np.array(policy)).dense
    return mdp.gamma < 1 or np.linalg.matrix_power(rows, 5000).max() < 1e-9


@models
def test_bounds_hold_for_any_value_and_any_policy(mdp):
    policies = [p for p in itertools.product(range(mdp.n_actions), repeat=mdp.n_states) if proper(mdp, p)]
    truth = {policy: exact_value(mdp, policy) for policy in policies}
    best, reach, rng = np.max(list(truth.values()), axis=0), reach_of(mdp), np.random.default_rng(0)
    for size in (1e-9, 1e-3, 0.1, 1.0, 30.0):
        for _ in range(20):
            value = best + size * rng.normal() + size * rng.normal(size=mdp.n_states)
            policy = policies[rng.integers(len(policies))]
            q = mdp.q(value)
            taken = q[np.arange(mdp.n_states), policy]
            below, above = bracket(mdp, reach, float((taken - value).min()), float((q.max(axis=1) - value).max()), value)
            assert (best <= value + above + 1e-12).all()
            assert (truth[policy] >= value + below - 1e-12).all()
            # and an action that looks worse by the margin is worse
            lowest, _ = bracket(mdp, reach, float((q.max(axis=1) - value).min()), 0.0, value)
            struck = q.max(axis=1)[:, None] - q > margin(mdp, lowest, above, value)
            assert not (struck & (mdp.q(best) >= best[:, None] - 1e-12)).any()


@models
def test_bounds_are_of_the_size_of_the_error(mdp):
    found = policy_iteration(mdp)
    reach = reach_of(mdp)
    value = found.value + 1e-4 * np.random.default_rng(0).normal(size=mdp.n_states)
    residual = mdp.bellman(value) - value
    below, above = bracket(mdp, reach, float(residual.min()), float(residual.max()), value)
    assert above - below < 1e-4 * 100  # some dozens of steps at most, each wrong by a few times 1e-4


@models
def test_the_error_of_an_evaluation_is_bounded(mdp):
    rng, states = np.random.default_rng(1), np.arange(mdp.n_states)
    for policy in [p for p in itertools.product(range(mdp.n_actions), repeat=mdp.n_states) if proper(mdp, p)][::7]:
        chain, truth = chain_of(mdp, np.array(policy)), exact_value(mdp, policy)
        horizon = horizon_of(mdp, np.array(policy), chain)
        wrong = truth + rng.normal() + 0.1 * rng.normal(size=len(states))
        wrong[mdp.terminal] = truth[mdp.terminal]
        assert np.abs(wrong - truth).max() <= error_of(mdp, chain, wrong, horizon)
        found = evaluate_policy(mdp, policy)
        assert np.abs(found.value - truth).max() <= found.bound + 1e-12
        found.value = found.value * 1.01
        assert not found.certify().holds


@models
def test_plans_without_a_discount_too_are_those_of_enumeration(mdp):
    policies = [p for p in itertools.product(range(mdp.n_actions), repeat=mdp.n_states) if proper(mdp, p)]
    best = np.max([exact_value(mdp, policy) for policy in policies], axis=0)
    for method in METHODS:
        found = value_iteration(mdp, method=method)
        np.testing.assert_allclose(found.value, best, rtol=0, atol=1e-7 * np.abs(best).max())
        assert np.abs(found.value - best).max() <= found.error
        assert found.certify().holds


def exactly(T, r, gamma):
    """Solve V = r + γTV in fractions."""
    n = len(r)
    A = [[Fraction(int(i == j)) - gamma * T[i][j] for j in range(n)] + [r[i]] for i in range(n)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if A[i][k] != 0)
        A[k], A[pivot] = A[pivot], A[k]
        A[k] = [x / A[k][k] for x in A[k]]
        for i in range(n):
            if i != k:
                A[i] = [x - A[i][k] * y for x, y in zip(A[i], A[k], strict=True)]
    return [A[i][n] for i in range(n)]


@pytest.mark.item("RLN-04", "RLN-05")
@pytest.mark.parametrize("nines", [3, 6, 8])
def test_a_discount_near_one_costs_no_more_digits_than_it_must(nines):
    rng, gamma = np.random.default_rng(nines), 1 - Fraction(1, 10**nines)
    shares = rng.multinomial(64, np.full(3, 1 / 3), size=(3, 2))
    T = [[[Fraction(int(x), 64) for x in row] for row in pair] for pair in shares]
    R = [[Fraction(int(x), 8) for x in row] for row in rng.integers(-8, 9, size=(3, 2))]
    values = [
        exactly([T[s][a] for s, a in enumerate(p)], [R[s][a] for s, a in enumerate(p)], gamma)
        for p in itertools.product(range(2), repeat=3)
    ]
    best = np.array([float(max(v[s] for v in values)) for s in range(3)])
    mdp = MDP(shares / 64, np.array(R, dtype=float), float(gamma))
    for plan in (value_iteration, policy_iteration):
        found = plan(mdp)
        assert found.certify().holds
        # γ itself is rounded: its last bit changes 1/(1 − γ) by 10ⁿ ε, relatively
        assert np.abs(found.value - best).max() <= found.error + 10.0**nines * 2.3e-16 * np.abs(best).max()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_do_not_matter(scale):
    for mdp in (random_mdp(3, n_states=30), random_mdp(4, n_states=30, terminal=(0,))):
        found = value_iteration(mdp)
        other = value_iteration(MDP(mdp.table.reshape(30, 3, 30), scale * mdp.rewards, 0.9, terminal=mdp.terminal))
        np.testing.assert_allclose(other.value, scale * found.value, rtol=0, atol=1e-7 * scale * np.abs(found.value).max())
        assert other.certify().holds
        other.value = other.value * 1.01
        assert not other.certify().holds


def test_a_forbidding_reward_hides_no_error():
    mdp = random_mdp(5, n_states=10)
    R = mdp.rewards.copy()
    R[np.arange(10), mdp.q(np.zeros(10)).argmin(axis=1)] = -1e9  # how people forbid an action
    forbidding = MDP(mdp.table.reshape(10, 3, 10), R, 0.9)
    found = value_iteration(forbidding)
    np.testing.assert_allclose(found.value, best_of(forbidding), rtol=0, atol=1e-6)
    found.value = found.value * (1 + 0.01 * np.random.default_rng(0).choice([-1, 1], size=10))
    found.q = forbidding.q(found.value)
    assert not found.certify().holds


def best_of(mdp):
    """Iterate a thousand times."""
    value = np.zeros(mdp.n_states)
    for _ in range(1000):
        value = mdp.q(value).max(axis=1)
    return value


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    "mdp",
    [grid_world(45, 0.99), grid_world(45, 0.9999, walls=0.2), grid_world(45, 1.0), grid_world(45, 0.999, slip=0.0, gold=50.0)],
    ids=["slippery", "walls", "undiscounted", "deterministic"],
)
def test_grids_are_solved_in_few_passes(mdp):
    assert mdp.n_states > DIRECT
    found = value_iteration(mdp)
    assert found.n_iter < 60
    assert found.certify().holds
    chain = chain_of(mdp, found.policy)
    direct = spsolve((eye_array(mdp.n_states) - mdp.gamma * chain.rows).tocsc(), chain.rewards)
    np.testing.assert_allclose(found.value, direct, rtol=0, atol=1e-6 * np.abs(direct).max())
    evaluated = evaluate_policy(mdp, found.policy)
    np.testing.assert_allclose(evaluated.value, direct, rtol=0, atol=1e-9 * np.abs(direct).max())
    assert evaluated.certify().holds


@pytest.mark.parametrize("kind", ["line", "everywhere", "everywhere, rare ends"])
def test_large_equations_are_solved(kind):
    rng, n = np.random.default_rng(0), 2_000
    if kind == "line":
        columns = np.clip(np.arange(n)[:, None] + [-1, 1], 0, n - 1)
        columns = rng.permutation(n)[columns]  # so that an order has to be found
    else:
        columns = rng.integers(n, size=(n, 4))
    chances = rng.dirichlet(np.ones(columns.shape[1]), size=n)
    leak = 1 - 1e-4 * rng.random(n) if "rare" in kind else np.ones(n)
    rows = np.repeat(np.arange(n), columns.shape[1])
    P = csr_array(((chances * leak[:, None]).ravel(), (rows, columns.ravel())), shape=(n, n))
    P.sum_duplicates()
    chain = Chain(P, rng.normal(size=n), 1.0 if "rare" in kind else 0.999)
    value = solve_chain(chain)
    direct = np.linalg.solve(np.eye(n) - chain.gamma * P.toarray(), chain.rewards)
    np.testing.assert_allclose(value, direct, rtol=0, atol=1e-8 * np.abs(direct).max())


def test_equations_that_come_by_columns_are_solved():
    rng, n = np.random.default_rng(0), DIRECT + 100
    moves = rng.dirichlet(np.ones(3), size=n).ravel(), (np.repeat(np.arange(n), 3), rng.integers(n, size=3 * n))
    flow = Chain(csr_array(moves, shape=(n, n)).T, np.ones(n), 0.98)  # as of the occupancy of a linear program
    direct = np.linalg.solve(np.eye(n) - flow.gamma * flow.dense, flow.rewards)
    np.testing.assert_allclose(solve_chain(flow), direct, rtol=1e-9)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("method", METHODS)
def test_threads_that_are_used_do_not_matter(method):
    rng = np.random.default_rng(0)
    T = rng.random((300, 12, 300)) ** 20
    dense = MDP(T / T.sum(axis=2, keepdims=True), rng.normal(size=(300, 12)), 0.9)  # 1,080,000 numbers
    n = 90_000
    columns, chances = (np.arange(n * 4)[:, None] // 4 + [1, 300, 7]) % n, rng.dirichlet(np.ones(3), size=n * 4)
    ends = np.arange(0, n, 50)
    T = csr_array((chances.ravel(), columns.ravel(), np.arange(0, 12 * n + 1, 3)), shape=(4 * n, n))
    sparse = MDP(T, rng.normal(size=(n, 4)), 0.9, terminal=ends)  # 1,080,000 moves
    for mdp in (dense, sparse) if method != "prioritized" else (dense,):
        found = []
        for n_threads in (1, 2, 3):
            with lemmata.config(n_threads=n_threads):
                plan = value_iteration(mdp, 1e-3, method=method)
                found.append(bits((plan.value, plan.policy, plan.trace)))
        assert found[1] == found[0]
        assert found[2] == found[0]


def test_news_takes_the_short_way():
    n = 300  # a corridor with gold at its end: a pass carries the news by one state, a queue all the way
    T = csr_array((np.ones(n), (np.arange(n), np.minimum(np.arange(n) + 1, n - 1))), shape=(n, n))
    mdp = MDP(T, np.append(np.zeros(n - 1), 1.0), 0.99, terminal=[n - 1])
    for method, most in (("value", n + 1), ("prioritized", 3), ("auto", 3), ("gauss-seidel", 4)):
        found = value_iteration(mdp, 1e-9, method=method)
        assert found.n_iter <= most
        np.testing.assert_allclose(found.value, 0.99 ** np.arange(n - 1, -1, -1), rtol=1e-9)
    assert value_iteration(mdp, 1e-9, method="value").n_iter > n / 2


class Interrupt:
    """Press Ctrl-C after the second pass."""

    def begin(self, iteration, state):
        if iteration == 2:
            raise KeyboardInterrupt

    def end(self, iteration, state):
        return False


def test_an_interrupted_plan_keeps_what_is_proved():
    mdp = random_mdp(0, n_states=50, gamma=0.99)
    with pytest.warns(ConvergenceWarning, match="was interrupted after 2 iterations"):
        found = value_iteration(mdp, method="value", callbacks=[Interrupt()])
    assert not found.converged
    assert found.bound == found.trace.min()
    best = value_iteration(mdp).value
    assert (best - evaluate_policy(mdp, found.policy).value).max() <= found.bound
    assert np.abs(best - found.value).max() <= found.error + 1e-6


def test_less_than_rounding_cannot_be_proved_and_is_said():
    mdp = random_mdp(0, n_states=5, gamma=0.999)
    with pytest.warns(ConvergenceWarning, match="epsilon=1e-20 cannot be proved"):
        found = value_iteration(mdp, 1e-20)
    assert not found.converged
    assert found.bound < 1e-8
    np.testing.assert_allclose(found.value, best_value(mdp), rtol=0, atol=found.error + 1e-10)


@pytest.mark.parametrize("gamma", [0.99999, 1 - 1e-8])
def test_a_long_horizon_hides_no_shift(gamma):
    # Rewards that cancel: values are about ½, and returns could be 1/(1 − γ).
    mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [1.0, -1.0], gamma)
    for found in (policy_iteration(mdp), evaluate_policy(mdp, [0, 0])):
        assert found.certify().holds
        assert found.certify()["value"].limit < 1e-3
        found.value = found.value + 0.01 * np.abs(found.value).max()
        found.q = mdp.q(found.value)
        assert not found.certify()["value"].holds
    endless = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [1.0, -1.0], 1 - 1e-15)
    with pytest.warns(ConvergenceWarning, match="is known up to"):
        assert evaluate_policy(endless, [0, 0]).certify()["value"].limit == 1e-3  # however much rounding does


def test_rows_that_miss_one_by_rounding_do_not_end():
    row = np.full(3, 1 / 3) - 5e-13 / 3
    mdp = MDP(np.tile(row, (3, 1, 1)), np.ones(3), 1.0)
    with pytest.raises(ValueError, match="from state 0 it never does"):
        evaluate_policy(mdp, [0, 0, 0])
    rare = MDP(np.array([[[1 - 1e-13, 1e-13]], [[0.0, 1.0]]]), [1.0, 0.0], 1.0, terminal=[1])  # a rare end is one
    with pytest.warns(ConvergenceWarning, match="is known up to"):
        assert evaluate_policy(rare, [0, 0]).value[0] == pytest.approx(1e13, rel=1e-2)
