"""Filter, smoother, likelihood and draws against the joint Gaussian, closed forms, Riccati's equation and statsmodels."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.stats import kstest, multivariate_normal

import lemmata
from helpers import bits
from lemmata.state_space import LinearGaussianModel
from state_space.models import KINDS, case
from state_space.naive import block, condition, joint, log_likelihood

PATH = Path(__file__).resolve().parents[1] / "reference" / "kalman.json"
REFERENCE = json.loads(PATH.read_text(encoding="ascii"))
EXACT = {"rtol": 1e-9, "atol": 1e-10}  # dense conditioning of a joint of 18 states and 12 numbers loses a few digits


def walk():
    return LinearGaussianModel(1.0, 1.0, 1.0, 1.0)


@pytest.mark.item("SEQ-17")
def test_three_rows_by_hand():
    filtered = walk().filter([[1.0], [2.0], [1.5]])
    np.testing.assert_allclose(filtered.mean.ravel(), [2 / 3, 1.5, 1.5], rtol=1e-14)
    np.testing.assert_allclose(filtered.covariance.ravel(), [2 / 3, 5 / 8, 13 / 21], rtol=1e-14)
    np.testing.assert_allclose(filtered.predicted_covariance.ravel(), [2, 5 / 3, 13 / 8], rtol=1e-14)
    # The gain of the walk settles at the golden ratio.
    long = walk().filter(np.zeros((200, 1)))
    golden = (1 + np.sqrt(5)) / 2
    assert long.predicted_covariance[-1, 0, 0] == pytest.approx(golden, rel=1e-14)
    assert long.covariance[-1, 0, 0] == pytest.approx(golden - 1, rel=1e-14)


@pytest.mark.item("SEQ-16", "SEQ-17")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_filter_conditions_the_joint(kind, seed):
    parameters, X, inputs = case(kind, seed)
    model, j, n = LinearGaussianModel(**parameters), joint(parameters, len(X), inputs), 3
    found = model.filter(X, inputs=inputs)
    for t in range(len(X)):
        mean, covariance = condition(j, X, t + 1)
        np.testing.assert_allclose(found.mean[t], block(mean, t + 1, n), **EXACT)
        np.testing.assert_allclose(found.covariance[t], block(block(covariance, t + 1, n).T, t + 1, n), **EXACT)
        mean, covariance = condition(j, X, t)
        np.testing.assert_allclose(found.predicted_mean[t], block(mean, t + 1, n), **EXACT)
        np.testing.assert_allclose(found.predicted_covariance[t], block(block(covariance, t + 1, n).T, t + 1, n), **EXACT)
    assert found.log_likelihood == pytest.approx(log_likelihood(j, X), rel=1e-10)
    assert model.log_likelihood(X, inputs=inputs) == found.log_likelihood
    # Whitened innovations: their squares are the quadratic form of the rows.
    seen = np.flatnonzero(~np.isnan(X.ravel()))
    centered = X.ravel()[seen] - j.row_mean[seen]
    form = centered @ np.linalg.solve(j.row_covariance[np.ix_(seen, seen)], centered)
    assert np.nansum(found.whitened**2) == pytest.approx(form, rel=1e-9)
    assert np.array_equal(np.isnan(found.whitened), np.isnan(X))


@pytest.mark.item("SEQ-16", "SEQ-18")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_smoother_conditions_the_joint(kind, seed):
    parameters, X, inputs = case(kind, seed)
    model, j, n = LinearGaussianModel(**parameters), joint(parameters, len(X), inputs), 3
    found, filtered = model.smooth(X, inputs=inputs), model.filter(X, inputs=inputs)
    mean, covariance = condition(j, X, len(X))
    np.testing.assert_allclose(found.initial_mean, block(mean, 0, n), **EXACT)
    np.testing.assert_allclose(found.initial_covariance, covariance[:n, :n], **EXACT)
    for t in range(len(X)):
        rows = block(covariance, t + 1, n)
        np.testing.assert_allclose(found.mean[t], block(mean, t + 1, n), **EXACT)
        np.testing.assert_allclose(found.covariance[t], block(rows.T, t + 1, n).T, **EXACT)
        np.testing.assert_allclose(found.lag_one_covariance[t], block(rows.T, t, n).T, **EXACT)
        # To know more is to doubt less.
        assert np.linalg.eigvalsh(filtered.covariance[t] - found.covariance[t]).min() > -1e-10
    np.testing.assert_allclose(found.mean[-1], filtered.mean[-1], rtol=1e-12)
    assert found.log_likelihood == pytest.approx(filtered.log_likelihood, rel=1e-13)


@pytest.mark.item("SEQ-17")
@pytest.mark.parametrize("seed", range(4))
def test_covariances_settle_at_riccatis_fixed_point(seed):
    rng = np.random.default_rng(seed)
    A, D, Q, V = 0.5 * rng.normal(size=(3, 3)), rng.normal(size=(2, 3)), np.diag([1.0, 0.5, 2.0]), np.diag([1.0, 0.3])
    found = LinearGaussianModel(A, D, Q, V, initial_covariance=100.0).filter(np.zeros((500, 2)))
    limit = solve_discrete_are(A.T, D.T, Q, V)
    np.testing.assert_allclose(found.predicted_covariance[-1], limit, rtol=1e-10, atol=1e-12)
    gain = limit @ D.T @ np.linalg.inv(D @ limit @ D.T + V)
    np.testing.assert_allclose(found.covariance[-1], (np.eye(3) - gain @ D) @ limit, rtol=1e-10, atol=1e-12)


def test_the_steady_state_changes_nothing():
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.normal(size=(4, 4)))[0] * 0.9
    D, Q, V = rng.normal(size=(2, 4)), np.diag([1.0, 0.5, 2.0, 0.1]), np.array([[1.0, 0.2], [0.2, 0.3]])
    X = rng.normal(size=(600, 2))
    X[300, 1] = np.nan  # which ends a steady state; another begins
    still = LinearGaussianModel(A, D, Q, V)
    moving = LinearGaussianModel(np.broadcast_to(A, (600, 4, 4)), D, Q, V)  # varies with time, as far as anybody knows
    for verb in ("filter", "smooth"):
        one, other = getattr(still, verb)(X), getattr(moving, verb)(X)
        for name in vars(one):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11, atol=1e-12, err_msg=name)
    # And it was one: its covariances repeat to the bit.
    covariance = still.filter(X).covariance
    assert np.array_equal(covariance[290], covariance[291])
    assert not np.array_equal(covariance[300], covariance[299])


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("kind", ["precise rows", "wide start", "long", "singular", "redundant"])
def test_covariances_stay_positive(kind, scale):
    rng = np.random.default_rng(1)
    A = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    Q, D, V, P0, T = np.diag([1e-9, 1e-7, 1e-4]), np.array([[1.0, 0, 0], [1.0, 1e-6, 0]]), np.eye(2), np.eye(3), 200
    if kind == "precise rows":
        V = 1e-14 * np.eye(2)
    elif kind == "wide start":
        P0, V = 1e14 * np.eye(3), np.array([[1e-8, 0.99e-8], [0.99e-8, 1e-8]])
    elif kind == "long":
        T = 20_000
    elif kind == "singular":
        Q, P0 = np.zeros((3, 3)), np.diag([1e10, 1e10, 0.0])
    else:
        D = np.ones((2, 3))
    X = rng.normal(size=(T, 2)) * np.sqrt(scale)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = LinearGaussianModel(A, D, scale * Q, scale * V, initial_covariance=scale * P0)
    filtered, smoothed = model.filter(X), model.smooth(X)
    for P in (filtered.covariance, filtered.predicted_covariance, smoothed.covariance, smoothed.initial_covariance[None]):
        assert np.array_equal(P, np.swapaxes(P, 1, 2))
        variances = np.diagonal(P, axis1=1, axis2=2)
        assert (variances >= 0).all()
        units = np.sqrt(np.where(variances > 0, variances, 1.0))
        assert np.linalg.eigvalsh(P / units[:, :, None] / units[:, None, :]).min() > -1e-14
    assert np.isfinite(smoothed.mean).all()
    after, before = (np.diagonal(P, axis1=1, axis2=2) for P in (smoothed.covariance, filtered.covariance))
    assert (after <= before * (1 + 1e-6)).all()  # the wide start costs some digits


@pytest.mark.item("SEQ-19")
def test_without_memory_it_is_a_factor_model():
    rng = np.random.default_rng(3)
    D, V = rng.normal(size=(4, 2)), np.diag(rng.uniform(0.5, 1.5, 4))
    X = rng.normal(size=(50, 4))
    model = LinearGaussianModel(np.zeros((2, 2)), D, 1.0, V)
    law = multivariate_normal(np.zeros(4), D @ D.T + V)
    assert model.log_likelihood(X) == pytest.approx(law.logpdf(X).sum(), rel=1e-12)
    # The posterior of a state is that of a factor: it depends on its own row only, in any order of rows.
    posterior = X @ np.linalg.inv(D @ D.T + V) @ D
    np.testing.assert_allclose(model.smooth(X).mean, posterior, rtol=1e-10, atol=1e-12)
    order = rng.permutation(50)
    np.testing.assert_allclose(model.smooth(X[order]).mean, posterior[order], rtol=1e-10, atol=1e-12)


def test_missing_entries_are_as_if_they_had_no_rows():
    parameters, X, _ = case("plain", T=12)
    model = LinearGaussianModel(**parameters)
    X[5:7] = np.nan
    X[3, 1] = np.nan
    wide = LinearGaussianModel(**parameters | {"observation_covariance": _wide(parameters["observation_covariance"], X)})
    filled = np.nan_to_num(X)
    np.testing.assert_allclose(model.smooth(X).mean, wide.smooth(filled).mean, rtol=1e-7, atol=1e-7)
    before = model.log_likelihood(X)
    longer = np.vstack([X, np.full((4, 2), np.nan)])
    assert model.log_likelihood(longer) == pytest.approx(before, rel=1e-14)
    np.testing.assert_allclose(model.smooth(longer).mean[:12], model.smooth(X).mean, rtol=1e-12)


def _wide(V, X):
    out = np.broadcast_to(V, (len(X), *V.shape)).copy()
    for t, j in zip(*np.nonzero(np.isnan(X)), strict=True):
        out[t, j, j] = 1e12
    return out


def test_forecasts_are_the_joint():
    for kind in ("plain", "missing", "inputs"):
        parameters, X, inputs = case(kind, seed=5, T=9)
        j, known = joint(parameters, 9, inputs), X[:6]
        model = LinearGaussianModel(**parameters)
        found = model.forecast(known, 3, inputs=inputs)
        padded = np.vstack([known, np.full((3, 2), np.nan)]).ravel()
        seen, later = np.flatnonzero(~np.isnan(padded)), np.arange(12, 18)
        gain = np.linalg.solve(j.row_covariance[np.ix_(seen, seen)], j.row_covariance[np.ix_(seen, later)]).T
        mean = j.row_mean[later] + gain @ (padded[seen] - j.row_mean[seen])
        covariance = j.row_covariance[np.ix_(later, later)] - gain @ j.row_covariance[np.ix_(seen, later)]
        np.testing.assert_allclose(found.mean.ravel(), mean, **EXACT)
        for step in range(3):
            own = slice(2 * step, 2 * step + 2)
            np.testing.assert_allclose(found.covariance[step], covariance[own, own], **EXACT)
        reach = 1.6448536269514722 * np.sqrt(np.diagonal(covariance)).reshape(3, 2)
        np.testing.assert_allclose(found.interval(0.9)[..., 1] - found.mean, reach, rtol=1e-9)


@pytest.mark.slow_without_jit
def test_intervals_of_forecasts_hold_what_they_promise():
    parameters, _, _ = case("plain", seed=2)
    model = LinearGaussianModel(**parameters)
    inside = []
    for seed in range(300):
        X, _ = model.sample(20, seed)
        ends = model.forecast(X[:15], 5).interval(0.8)
        inside.append((ends[..., 0] <= X[15:]) & (X[15:] <= ends[..., 1]))
    assert abs(np.mean(inside) - 0.8) < 0.05  # five standard errors of 300 series, whose ten numbers go together


@pytest.mark.slow_without_jit
def test_draws_of_states_have_the_smoothed_law():
    parameters, X, inputs = case("everything", seed=4)
    model, n = LinearGaussianModel(**parameters), 3
    draws = model.simulate_states(X, 40_000, random_state=0, inputs=inputs)
    mean, covariance = condition(joint(parameters, len(X), inputs), X, len(X))
    mean, covariance = mean[n:], covariance[n:, n:]
    flat = draws.reshape(len(draws), -1)
    error = (flat.mean(axis=0) - mean) / np.sqrt(np.diagonal(covariance) / len(draws))
    assert np.abs(error).max() < 5
    # Every direction of the whole path has its variance, those between times too.
    half = np.linalg.cholesky(covariance)
    z = np.linalg.solve(half, (flat - mean).T)
    assert np.abs(np.cov(z) - np.eye(len(z))).max() < 0.04
    assert kstest(z[7], "norm").pvalue > 1e-4


def test_samples_have_the_law_of_the_model():
    parameters, _, inputs = case("inputs", seed=6, T=4)
    model, j = LinearGaussianModel(**parameters), joint(case("inputs", seed=6, T=4)[0], 4, inputs)
    rows = np.array([model.sample(4, seed, inputs=inputs)[0].ravel() for seed in range(4000)])
    z = np.linalg.solve(np.linalg.cholesky(j.row_covariance), (rows - j.row_mean).T)
    assert np.abs(z.mean(axis=1)).max() < 5 / np.sqrt(4000)
    assert np.abs(np.cov(z) - np.eye(8)).max() < 0.12
    X, S = model.sample(4, np.random.default_rng(1), inputs=inputs)
    assert X.shape == (4, 2)
    assert S.shape == (4, 3)


def test_innovations_of_the_right_model_are_white():
    parameters, _, _ = case("plain", seed=1)
    model = LinearGaussianModel(**parameters)
    X, _ = model.sample(3000, 0)
    found = model.filter(X)
    assert kstest(found.whitened.ravel(), "norm").pvalue > 1e-4
    white = found.whiteness(10)
    assert white.p_value.min() > 1e-4
    wrong = LinearGaussianModel(**parameters | {"transition": -parameters["transition"]})
    assert wrong.filter(X).whiteness(10).p_value.min() < 1e-6


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("holes", [0.0, 0.0005, 0.05])  # all series share their covariances; some do; none does
def test_many_series_and_any_number_of_threads(holes):
    parameters, _, _ = case("plain", seed=3)
    model, rng = LinearGaussianModel(**parameters), np.random.default_rng(0)
    stack = rng.normal(size=(50, 300, 2))
    stack[rng.random(stack.shape) < holes] = np.nan
    lengths = rng.integers(1, 300, 50)
    several = [x[:n] for x, n in zip(stack, lengths, strict=True)]
    with lemmata.config(n_threads=1):
        smoothed, filtered, listed = model.smooth(stack), model.filter(stack), model.smooth(several)
        draws, forecast = model.simulate_states(stack, 2, random_state=0), model.forecast(stack, 2)
    with lemmata.config(n_threads=3):
        assert bits(list(vars(model.smooth(stack)).values())) == bits(list(vars(smoothed).values()))
        assert bits(list(vars(model.filter(stack)).values())) == bits(list(vars(filtered).values()))
        assert bits(model.simulate_states(stack, 2, random_state=0)) == bits(draws)
    assert smoothed.mean.shape == (50, 300, 3)
    assert forecast.mean.shape == (50, 2, 2)
    for i in (0, 1, 17, 49):
        alone = model.smooth(stack[i])
        assert np.array_equal(model.filter(stack[i]).covariance, filtered.covariance[i])
        assert np.array_equal(model.filter(stack[i]).predicted_mean, filtered.predicted_mean[i])
        assert np.array_equal(alone.covariance, smoothed.covariance[i])
        assert np.array_equal(alone.mean, model.smooth([stack[i]])[0].mean)
        assert alone.log_likelihood == smoothed.log_likelihood[i]
        short = model.smooth(several[i])
        assert np.array_equal(short.lag_one_covariance, listed[i].lag_one_covariance)
        assert np.array_equal(model.forecast(several[i], 3).mean, model.forecast(several, 3)[i].mean)
    np.testing.assert_allclose(model.log_likelihood(several), [r.log_likelihood for r in listed], rtol=1e-13)


@pytest.mark.item("SEQ-17", "SEQ-18")
@pytest.mark.parametrize("name", [name for name in REFERENCE if name != "statsmodels"])
def test_other_programs_agree(name):
    """Numbers of R's KFAS, of Stata and of statsmodels, which tests/reference/make_kalman.py collected."""
    problem = REFERENCE[name]
    X = np.array(problem["rows"], dtype=float)  # null becomes NaN
    model = LinearGaussianModel(**{k: np.array(v, dtype=float) for k, v in problem["model"].items()})
    filtered, smoothed, rtol = model.filter(X), model.smooth(X), problem["rtol"]
    found = {
        "filtered": filtered.mean,
        "filtered covariance": filtered.covariance,
        "predicted": filtered.predicted_mean,
        "smoothed": smoothed.mean,
        "smoothed covariance": smoothed.covariance,
        "smoothed determinant": np.linalg.det(smoothed.covariance),
        "lag-one covariance": smoothed.lag_one_covariance[1:],
        "log-likelihood": filtered.log_likelihood,
    }
    for quantity, value in problem["expected"].items():
        value = np.array(value, dtype=float)
        np.testing.assert_allclose(
            found[quantity], value, rtol=rtol, atol=rtol * np.abs(value).max(), err_msg=f"{name}: {quantity}"
        )
    assert model.certify(X).holds, str(model.certify(X))


def test_refusals():
    model, X = walk(), [[1.0], [2.0]]
    wrong = {
        "observation must be": ({"observation": np.ones(3)}, X),
        "transition must have the shape": ({"transition": np.eye(2)}, X),
        "must be symmetric": (
            {"observation": np.ones((1, 2)), "transition": 1.0, "transition_covariance": [[1, 2], [0, 1]]},
            X,
        ),
        "positive semidefinite": ({"transition_covariance": [[-1.0]]}, X),
        "initial_mean must be a number": ({"initial_mean": [1.0, 2.0]}, X),
        "finite": ({"transition": [[np.nan]]}, X),
        "must have 1 columns": ({}, [[1.0, 2.0]]),
        "infinity": ({}, [[np.inf]]),
        "at least one series": ({}, np.empty((0, 1))),
        "has neither a control": ({}, X),
        "1 inputs": ({"control": [[1.0]]}, X),
        "given for 1 times": ({"transition": np.ones((1, 1, 1))}, X),
        "fixed by the rows before": ({"transition_covariance": 0.0, "observation_covariance": 0.0}, X),
    }
    for message, (changes, rows) in wrong.items():
        inputs = [[1.0], [2.0]] if message.startswith("has neither") else None
        with pytest.raises(ValueError, match=message):
            LinearGaussianModel(**model.get_params() | changes).filter(rows, inputs=inputs)
    with pytest.raises(ValueError, match="inputs have"):
        LinearGaussianModel(1.0, 1.0, 1.0, 1.0, control=[[1.0]]).filter(X, inputs=[[1.0]])
    with pytest.raises(ValueError, match="n_steps must be"):
        model.forecast(X, 0)
    with pytest.raises(ValueError, match="n_draws must be"):
        model.simulate_states(X, 0)
    with pytest.raises(ValueError, match="level must be"):
        model.forecast(X, 1).interval(1.0)
    with pytest.raises(ValueError, match="whiteness looks at"):
        model.filter(X).whiteness()


def test_forms_of_a_series():
    import pandas as pd
    import polars as pl

    model, x = walk(), np.array([1.0, 2.0, np.nan, 1.5])
    expected = model.smooth(x[:, None]).mean
    for form in (x, list(x), pd.DataFrame({"level": x}), pl.DataFrame({"level": x}), x.astype(np.float32)[:, None]):
        assert np.array_equal(model.smooth(form).mean, expected)
    assert np.array_equal(model.smooth([pd.DataFrame({"level": x})] * 2)[1].mean, expected)
