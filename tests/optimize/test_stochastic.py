"""Stochastic gradients: unbiased over all batches, rates against exact recursions, and what the theorem needs."""

from itertools import combinations, product

import numpy as np
import pytest

from helpers import bits
from lemmata.optimize import (
    GradientDescent,
    check_unbiased,
    constant,
    convergence_rate,
    inverse,
    inverse_sqrt,
    minimize,
    minimize_mean,
)
from lemmata.optimize.rates import stochastic_bound
from lemmata.optimize.schedules import Schedule
from lemmata.optimize.stochastic import batch_gradient

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=8)


def f(w, rows):
    return np.mean((X[rows] @ w - Y[rows]) ** 2) / 2


def grad(w, rows):
    return X[rows].T @ (X[rows] @ w - Y[rows]) / len(rows)


@pytest.mark.item("OPT-07", "OPT-08")
@pytest.mark.parametrize("size", range(1, 9))
def test_estimates_are_right_on_average_over_all_batches(size):
    w = np.array([0.5, -1.0, 2.0])
    rows = np.array([grad(w, [i]) for i in range(8)])
    assert check_unbiased(rows, size).holds
    batches = [list(batch) for batch in combinations(range(8), size)]
    mean = np.mean([batch_gradient(rows[batch]) for batch in batches], axis=0)
    total = np.mean([batch_gradient(rows[batch], 8) for batch in batches], axis=0)
    np.testing.assert_allclose(mean, grad(w, np.arange(8)), rtol=1e-12)
    np.testing.assert_allclose(total, rows.sum(axis=0), rtol=1e-12)
    unscaled = np.mean([rows[batch].sum(axis=0) for batch in batches], axis=0)
    np.testing.assert_allclose(unscaled, rows.sum(axis=0) * size / 8, rtol=1e-12)  # without n/b the sum is biased


def test_batches_that_cannot_be_enumerated_are_refused():
    with pytest.raises(ValueError, match="too many to try them all"):
        check_unbiased(np.ones((100, 1)), 50)
    with pytest.raises(ValueError, match="between 1 and 3 rows"):
        check_unbiased(np.ones((3, 1)), 4)


@pytest.mark.item("OPT-08")
def test_batches_of_all_rows_are_gradient_descent():
    every = np.arange(8)
    rule = GradientDescent(inverse_sqrt(0.3))
    with pytest.warns(match="did not converge"):
        batch = minimize_mean(f, np.zeros(3), grad, 8, rule=rule, batch_size=8, max_iter=30, random_state=1)
    with pytest.warns(match="did not converge"):
        whole = minimize(lambda w: f(w, every), np.zeros(3), lambda w: grad(w, every), rule=rule, max_iter=30)
    np.testing.assert_allclose(batch.trace, whole.trace, rtol=1e-12)  # rows are summed in another order


@pytest.mark.item("OPT-07", "OPT-08")
@pytest.mark.parametrize("size", [1, 3])
def test_every_pass_takes_the_formula_s_steps_and_reaches_the_minimum(size):
    visited = []

    def spying(w, rows):
        visited.append(np.array(rows))
        return grad(w, rows)

    rule = GradientDescent(inverse(0.5, 0.05))
    with pytest.warns(match="did not converge"):
        found = minimize_mean(
            f, np.zeros(3), spying, 8, rule=rule, batch_size=size, max_iter=2, tol=0.0, random_state=3, keep=True
        )
    batches = [rows for rows in visited if len(rows) < 8]
    for half in np.array_split(np.concatenate(batches), 2):
        assert sorted(half) == list(range(8))  # each pass visits every row once
    w = np.zeros(3)
    for t, rows in enumerate(batches, start=1):
        w = w - rule.learning_rate(t) * grad(w, rows)
    np.testing.assert_allclose(found.points[-1], w, rtol=1e-12)
    with pytest.warns(match="did not converge"):
        long = minimize_mean(
            f, np.zeros(3), grad, 8, rule=GradientDescent(inverse(0.8, 0.1)), batch_size=size, max_iter=3000, random_state=3
        )
    best = np.linalg.lstsq(X, Y)[0]
    np.testing.assert_allclose(long.x, best, atol=5e-3)  # the noise left is about the last rate, 0.8 / (0.1 · 3000)


def replicas(schedule, steps, n=4000, seed=0):
    """E(x_t − x*)² of SGD on f(x) = E(x − a)²/2, a = ±1 with mean zero: estimated over replicas, and by its exact recursion."""
    rng = np.random.default_rng(seed)
    rule, x = GradientDescent(schedule), np.full(n, 2.0)
    state, measured, exact, square = rule.init(n), [4.0], [4.0], 4.0
    for t in range(1, steps + 1):
        x, state = rule.step(x, x - rng.choice([-1.0, 1.0], size=n), state)
        rate = schedule(t)
        square = (1 - rate) ** 2 * square + rate**2  # the noise has variance one and mean zero
        measured.append(np.mean(x**2))
        exact.append(square)
    return np.array(measured), np.array(exact)


@pytest.mark.item("OPT-07")
@pytest.mark.parametrize(("schedule", "power"), [(inverse_sqrt(0.5), 0.5), (inverse(1.0), 1.0), (Schedule(0.7, 0.75), 0.75)])
def test_error_of_strongly_convex_functions_falls_like_the_rates(schedule, power):
    measured, exact = replicas(schedule, 3000)
    # squares of the error are chi-square-like: relative standard error √(2/4000) = 2.2 %; 6 of them
    np.testing.assert_allclose(measured[10:], exact[10:], rtol=6 * np.sqrt(2 / 4000))
    rate = convergence_rate(exact, optimum=0.0)
    assert rate.kind == "power"
    assert rate.power == pytest.approx(power, abs=0.03)
    assert convergence_rate(measured, optimum=0.0).power == pytest.approx(power, abs=0.1)  # the same 2 %, over a decade or so


@pytest.mark.item("OPT-07")
def test_what_the_theorem_needs():
    # A rate that vanishes too fast stops on the way: Π(1 − 1/k²), k = 2 … T + 1, is (T + 2)/(2T + 2).
    rule, x = GradientDescent(lambda t: 1 / (t + 1) ** 2), np.array([1.0])
    state = rule.init(1)
    for _ in range(2000):
        x, state = rule.step(x, x, state)
    assert x[0] == pytest.approx(2002 / 4002, rel=1e-12)
    # Without strong convexity, ‖x − x*‖² may fall more slowly than 1/√t: x⁶/6, even without any noise.
    rule, x = GradientDescent(inverse_sqrt(0.5)), np.array([1.0])
    state, squares = rule.init(1), []
    for _ in range(20_000):
        x, state = rule.step(x, x**5, state)
        squares.append(x[0] ** 2)
    assert convergence_rate(squares, optimum=0.0).power == pytest.approx(0.25, abs=0.02)
    # A constant rate never gets below the noise: E(x − x*)² → η/(2 − η) on the quadratic.
    _, exact = replicas(constant(0.3), 300, n=2)
    assert exact[-1] == pytest.approx(0.3 / 1.7, rel=1e-12)


@pytest.mark.item("OPT-07")
def test_averages_of_merely_convex_functions_obey_their_bound_exactly():
    # f(x) = E|x − a|, a uniform on {−1, 0, 3}: all 3ᵀ runs are averaged, so E f(x̄) is exact and no luck is involved.
    data, steps, schedule = np.array([-1.0, 0.0, 3.0]), 7, inverse_sqrt(1.0)
    rates = [schedule(t) for t in range(1, steps + 1)]
    values = []
    for run in product(data, repeat=steps):
        rule, x, mean, total = GradientDescent(schedule), np.array([2.0]), 0.0, 0.0
        state = rule.init(1)
        for a, rate in zip(run, rates, strict=True):
            total += rate
            mean += rate / total * (x[0] - mean)
            x, state = rule.step(x, np.sign(x - a), state)
        values.append(np.abs(mean - data).mean())
    excess = np.mean(values) - np.abs(0.0 - data).mean()
    bound = stochastic_bound(rates, distance=2.0, length=1.0)
    assert 0 < excess <= bound
    horizons = np.array([10**2, 10**4, 10**6])
    bounds = [stochastic_bound(schedule(np.arange(1, T + 1)), 2.0, 1.0) for T in horizons]
    shares = bounds / (np.log(horizons) / np.sqrt(horizons))
    assert (np.diff(shares) < 0).all()  # O(log T / √T), with room that shrinks
    assert shares[-1] > 0.25


def test_average_is_weighted_by_rates():
    schedule, points = inverse(0.5), []

    def spying(w, rows):
        if len(rows) == 1:
            points.append(w.copy())
        return grad(w, rows)

    with pytest.warns(match="did not converge"):
        found = minimize_mean(
            f, np.ones(3), spying, 8, rule=GradientDescent(schedule), average=True, max_iter=3, random_state=0
        )
    weights = np.array([schedule(t) for t in range(1, 25)])
    means = [np.average(points[:k], axis=0, weights=weights[:k]) for k in (8, 16, 24)]
    np.testing.assert_allclose(found.trace[1:], [f(mean, np.arange(8)) for mean in means], rtol=1e-12)


def test_a_checkpoint_resumes_with_the_same_bits(tmp_path):
    rule = GradientDescent(inverse(0.8, 0.1))
    options = {"rule": rule, "random_state": 5, "max_iter": 12, "tol": 0.0}
    states = []

    class Keep:
        def begin(self, iteration, state):
            pass

        def end(self, iteration, state):
            states.append(state)

    with pytest.warns(match="did not converge"):
        whole = minimize_mean(f, np.zeros(3), grad, 8, callbacks=[Keep()], **options)
    assert len({id(state[-1]) for state in states}) == 12  # a step leaves the generator of the state before it alone

    class Cut:
        def begin(self, iteration, state):
            pass

        def end(self, iteration, state):
            if iteration == 6:
                raise KeyboardInterrupt

    path = tmp_path / "run"
    with pytest.warns(match="interrupted"):
        minimize_mean(f, np.zeros(3), grad, 8, checkpoint=path, callbacks=[Cut()], **options)
    assert path.exists()
    with pytest.warns(match="did not converge"):
        resumed = minimize_mean(f, np.zeros(3), grad, 8, checkpoint=path, **options)
    assert bits((resumed.x, resumed.trace)) == bits((whole.x, whole.trace))
    assert not path.exists()


def test_refusals():
    with pytest.raises(ValueError, match="batch_size must be between 1 and n_rows = 8, got 9"):
        minimize_mean(f, np.zeros(3), grad, 8, rule=GradientDescent(0.1), batch_size=9)
