"""Step rules and schedules: the printed examples, naive twins, theorems at every step, and one formula for both forms."""

from functools import partial

import numpy as np
import pytest

from helpers import bits
from lemmata.core.kernel import kernel
from lemmata.core.persistence import read_state, write_state
from lemmata.optimize import (
    Adagrad,
    Adam,
    GradientDescent,
    Momentum,
    RMSProp,
    Schedule,
    constant,
    inverse,
    inverse_sqrt,
    minimize,
)
from lemmata.optimize.rates import adagrad_bound
from lemmata.optimize.rules import apply_rule
from lemmata.optimize.schedules import rate_at

RULES = [
    GradientDescent(0.1),
    Momentum(inverse(0.3), 0.8),
    Adagrad(0.1),
    Adagrad(0.1, 1e-3, True),
    RMSProp(inverse_sqrt(0.1), 0.7),
    RMSProp(0.1, epsilon_inside=True),
    Adam(0.1),
    Adam(inverse(0.1, 0.01), 0.7, 0.9, 1e-4, True),
]


def path(rule, gradients, x=0.0):
    """All points of a rule along given gradients."""
    gradients = np.asarray(gradients, dtype=float)
    x, state = np.full(gradients.shape[1:], x), rule.init(gradients.shape[1:])
    points = [x]
    for g in gradients:
        x, state = rule.step(x, g, state)
        points.append(x)
    return np.array(points)


def naive(rule, gradients):
    """The same, from the formulas of the module docstring, in plain NumPy."""
    x = np.zeros(gradients.shape[1:])
    u, v = np.zeros_like(x), np.zeros_like(x)
    points = [x]
    inside = getattr(rule, "epsilon_inside", False)
    for t, g in enumerate(gradients, start=1):
        rate = rule.learning_rate(t) if callable(rule.learning_rate) else rule.learning_rate
        if isinstance(rule, GradientDescent):
            move = g
        elif isinstance(rule, Momentum):
            move = u = rule.beta * u + (1 - rule.beta) * g
        else:
            if isinstance(rule, Adam):
                u = rule.beta1 * u + (1 - rule.beta1) * g
                v = rule.beta2 * v + (1 - rule.beta2) * g**2
                top, square = u / (1 - rule.beta1**t), v / (1 - rule.beta2**t)
            else:
                v = v + g**2 if isinstance(rule, Adagrad) else rule.beta * v + (1 - rule.beta) * g**2
                top, square = g, v
            move = top / (np.sqrt(square + rule.epsilon) if inside else np.sqrt(square) + rule.epsilon)
        x = x - rate * move
        points.append(x)
    return np.array(points)


@kernel
def loop(code, x, gradients, moments1, moments2, eta, power, decay, beta1, beta2, epsilon, inside):
    """A compiled loop as the families write it: rates and moves without leaving compiled code."""
    for t in range(1, len(gradients) + 1):
        rate = rate_at(t, eta, power, decay)
        apply_rule(code, x, gradients[t - 1], moments1, moments2, t, rate, beta1, beta2, epsilon, inside)


@pytest.mark.item("OPT-10", "OPT-11", "OPT-12", "OPT-13")
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_both_forms_give_the_numbers_of_the_formulas(rule):
    gradients = np.random.default_rng(0).normal(size=(50, 7))
    pure = path(rule, gradients)
    np.testing.assert_allclose(pure, naive(rule, gradients), rtol=1e-12, atol=1e-14)  # sums in another order
    x = np.zeros(7)
    _, first, second = rule.init(7)
    loop(rule.code, x, gradients, first, second, *rule.compiled_schedule.constants, *rule.constants)
    assert bits(x) == bits(pure[-1])


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_pure_form_changes_nothing_and_keeps_shapes(rule, tmp_path):
    rng = np.random.default_rng(1)
    x, g = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    _, state = rule.step(x, g, rule.init((2, 3)))
    before = bits((x, g, state))
    following, after = rule.step(x, g, state)
    assert bits((x, g, state)) == before
    assert following.shape == (2, 3)
    write_state(tmp_path / "state", after)
    assert bits(read_state(tmp_path / "state")) == bits(after)
    assert after[0] == 2
    flat, _ = rule.step(x.T, g.T, (1, *(m.T for m in state[1:])))  # neither order of memory nor shape matter
    np.testing.assert_array_equal(flat, following.T)


@pytest.mark.item("OPT-10")
def test_momentum_by_its_example_and_as_a_heavy_ball():
    assert minimize_once(Momentum(0.1, 0.9)) == pytest.approx(0.99, abs=1e-15)
    gradients = np.random.default_rng(2).normal(size=(40, 3))
    assert bits(path(Momentum(0.1, beta=0.0), gradients)) == bits(path(GradientDescent(0.1), gradients))
    eta, beta = 0.3, 0.8
    x, ball, points = np.zeros(3), np.zeros(3), [np.zeros(3)]
    for g in gradients:
        ball = beta * ball + g  # the classical form, with the rate η(1 − β)
        x = x - eta * (1 - beta) * ball
        points.append(x)
    np.testing.assert_allclose(path(Momentum(eta, beta), gradients), points, rtol=1e-11, atol=1e-14)


def minimize_once(rule):
    """One step on f(x) = ½x² from x = 1, where the gradient is 1."""
    return float(rule.step([1.0], [1.0], rule.init(1))[0][0])


@pytest.mark.item("OPT-11")
def test_adagrad_by_its_example_and_where_epsilon_stands():
    assert minimize_once(Adagrad(0.1)) == pytest.approx(0.9, abs=1e-8)  # 1e-8 is ε
    assert minimize_once(Adagrad(0.1, 0.21)) == pytest.approx(1 - 0.1 / 1.21, rel=1e-15)
    assert minimize_once(Adagrad(0.1, 0.21, epsilon_inside=True)) == pytest.approx(1 - 0.1 / 1.1, rel=1e-15)
    gradients = np.array([[1e-3, -5.0, 700.0]])
    np.testing.assert_allclose(path(Adagrad(0.1), gradients)[1], -0.1 * np.sign(gradients[0]), rtol=1e-4)  # ε / 1e-3


@pytest.mark.item("OPT-11")
@pytest.mark.parametrize("seed", range(4))
def test_adagrad_pays_no_more_than_its_regret_bound_at_any_time(seed):
    rng = np.random.default_rng(seed)
    T, d, eta, epsilon = 400, 4, 0.5, 1e-8
    target = rng.uniform(-1, 1, size=d)
    a = rng.normal(size=(T, d)) * (rng.random((T, d)) < 0.3)  # sparse: what the rule is for
    b = a @ target + 0.1 * rng.normal(size=T)
    rule, x = Adagrad(eta, epsilon), np.zeros(d)
    state, gradients, points = rule.init(d), [], []
    for t in range(T):
        g = a[t] * np.sign(a[t] @ x - b[t])  # a subgradient of |a·x − b|, another function at every time
        gradients.append(g)
        points.append(x)
        x, state = rule.step(x, g, state)
    losses = np.abs(np.einsum("td,td->t", a, points) - b)
    regret = np.cumsum(losses - np.abs(a @ target - b))
    distance = np.abs(np.array(points) - target).max()
    for t in range(T):
        assert regret[t] <= adagrad_bound(gradients[: t + 1], eta, distance, epsilon)
    assert adagrad_bound(gradients, eta, distance) < 20 * np.sqrt(T) * d  # O(√T): no gradient is longer than about 3 per entry
    assert regret[-1] > 0
    by_hand = sum(np.sqrt(sum(g[i] ** 2 for g in gradients)) * (distance**2 / (2 * eta) + eta) for i in range(d))
    assert adagrad_bound(gradients, eta, distance) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.item("OPT-12")
def test_rmsprop_by_its_example_and_free_of_scale():
    assert minimize_once(RMSProp(0.1, 0.9)) == pytest.approx(0.683772, abs=5e-7)
    assert minimize_once(RMSProp(0.1, 0.9, 0.06, epsilon_inside=True)) == pytest.approx(1 - 0.1 / 0.4, rel=1e-14)
    gradients = np.random.default_rng(3).normal(size=(30, 3))
    tiny = partial(RMSProp, 0.1, 0.9, 1e-200)
    np.testing.assert_allclose(path(tiny(), 1e6 * gradients), path(tiny(), gradients), rtol=1e-10, atol=1e-13)


@pytest.mark.item("OPT-13")
def test_adam_by_its_example_and_on_a_constant_gradient():
    assert minimize_once(Adam(0.1)) == pytest.approx(0.900000001, abs=1e-12)
    assert minimize_once(Adam(0.1, epsilon_inside=True)) == pytest.approx(0.9000000005, abs=1e-12)  # ε in the root: half of it
    for scale in (1e-3, 1.0, 1e5):
        points = path(Adam(0.1), np.full((200, 1), scale))
        np.testing.assert_allclose(np.diff(points[:, 0]), -0.1, rtol=2e-5)  # unit steps whatever the scale, up to ε / 1e-3


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: GradientDescent(0.0), "learning_rate must be positive"),
        (lambda: GradientDescent(np.inf), "learning_rate must be positive"),
        (lambda: Momentum(0.1, 1.0), r"in \[0, 1\), got 1"),
        (lambda: Adam(0.1, beta2=-0.1), r"in \[0, 1\), got -0.1"),
        (lambda: Adagrad(0.1, 0.0), "epsilon must be positive"),
        (lambda: constant(-1.0), "eta must be finite and positive"),
        (lambda: inverse(1.0, -1.0), "decay must be finite and zero or positive"),
        (lambda: Schedule(1.0, np.nan), "power must be finite"),
        (lambda: GradientDescent(0.1).step([1.0, 2.0], [1.0], GradientDescent(0.1).init(2)), r"shape \(1,\)"),
        (lambda: GradientDescent(lambda t: 1 / t).compiled_schedule, "needs a number or a schedule"),
    ],
)
def test_refusals(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.item("OPT-09")
def test_schedules_are_the_formulas():
    t = np.arange(1, 50)
    np.testing.assert_array_equal(constant(0.3)(t), np.full(49, 0.3))
    np.testing.assert_allclose(inverse(0.3)(t), 0.3 / t, rtol=1e-15)
    np.testing.assert_allclose(inverse(0.3, 0.1)(t), 0.3 / (1 + 0.1 * (t - 1)), rtol=1e-15)
    np.testing.assert_allclose(inverse_sqrt(0.3)(t), 0.3 / np.sqrt(t), rtol=1e-15)
    total, squares = inverse(2.0).sums(1000)
    np.testing.assert_allclose(total, np.cumsum(2 / np.arange(1, 1001)), rtol=1e-13)
    np.testing.assert_allclose(squares, np.cumsum(4 / np.arange(1, 1001) ** 2), rtol=1e-13)
    assert squares[-1] < 4 * np.pi**2 / 6 < squares[-1] + 4 / 1000  # Euler's sum, and what is left of it


@pytest.mark.item("OPT-09")
@pytest.mark.parametrize(
    ("schedule", "vanishes", "diverges", "squares"),
    [
        (constant(0.1), False, True, False),
        (inverse_sqrt(0.1), True, True, False),
        (inverse(0.1), True, True, True),
        (inverse(3.0, 0.01), True, True, True),
        (Schedule(0.5, 0.75), True, True, True),
        (Schedule(0.5, 2.0), True, False, True),
        (inverse(0.5, 0.0), False, True, False),
    ],
)
def test_sums_diverge_and_squares_converge_as_reported(schedule, vanishes, diverges, squares):
    assert (schedule.vanishes, schedule.sum_diverges, schedule.squares_converge) == (vanishes, diverges, squares)
    certificate = schedule.robbins_monro()
    assert certificate["sum"].holds is diverges
    assert certificate["squares"].holds is squares
    assert certificate.holds is (diverges and squares)
    total, square = (s[[999, 9_999, 99_999]] for s in schedule.sums(100_000))
    for sums, grows in ((total, diverges), (square, not squares)):
        growth = (sums[2] - sums[1]) / (sums[1] - sums[0])  # of the last decade over the one before: 1 for Σ1/t, less if finite
        assert bool(growth > 0.95) is grows


@pytest.mark.item("OPT-09")
@pytest.mark.parametrize("schedule", [inverse(1.0), inverse_sqrt(1.0), lambda t: 2 / (t + 3)], ids=["1/t", "1/√t", "user"])
def test_subgradient_descent_converges_in_the_limit_if_rates_vanish_but_their_sum_does_not(schedule):
    rule, x = GradientDescent(schedule), np.array([3.3])
    state, values = rule.init(1), []
    for _ in range(20_000):
        x, state = rule.step(x, np.sign(x), state)  # f(x) = |x| has no gradient that vanishes
        values.append(abs(x[0]))
    assert min(values) < 1e-3
    assert max(values[-100:]) < 2 * schedule(19_900)
    stuck, state = np.array([3.3]), rule.init(1)
    for _ in range(1000):
        stuck, state = GradientDescent(0.5).step(stuck, np.sign(stuck), state)
    assert abs(stuck[0]) > 0.15  # a constant rate stays about as far away as it is long: 3.3 − 0.5 k is never within 0.15 of 0


@pytest.mark.parametrize("rule", [Adam(0.1), RMSProp(inverse_sqrt(0.1)), Momentum(0.2), Adagrad(1.0)], ids=repr)
def test_rules_find_the_minimum_of_a_bowl(rule):
    found = minimize(
        lambda x: 2 * x @ x - x.sum(), np.array([3.0, -1.0]), lambda x: 4 * x - 1, rule=rule, tol=1e-4, max_iter=5000
    )
    np.testing.assert_allclose(found.x, 0.25, atol=1e-4)  # tol over the curvature 4, and slack
