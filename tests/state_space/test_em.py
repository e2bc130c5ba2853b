"""EM for the matrices, its certificate, and what else every estimator of the library keeps."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone

import lemmata
from helpers import bits
from lemmata.core.certificate import free as moved
from lemmata.core.certificate import symmetric
from lemmata.state_space import LinearGaussianModel
from lemmata.state_space.em import ascent, free_entries, pack, unpack
from lemmata.state_space.matrices import Matrices, check_matrices, check_series, system_of
from lemmata.state_space.moments import moments
from state_space.models import KINDS, case
from state_space.naive import joint, log_likelihood

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "kalman.json"
START = ("initial_mean", "initial_covariance")


def problem(seed=0, T=150, holes=0.1):
    """Draw a series of a model with two states and two outputs, and a model to begin from."""
    rng = np.random.default_rng(seed)
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    D, V = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.5, 0.2], [0.2, 0.8]])
    X, _ = LinearGaussianModel(0.9 * turn, D, np.diag([1.0, 0.5]), V).sample(T, seed)
    X[rng.random(X.shape) < holes] = np.nan
    return X, {"transition": 0.9 * turn, "observation": D, "transition_covariance": 1.0, "observation_covariance": 1.0}


def matrices(model):
    names = [name for name in Matrices._fields if hasattr(model, f"{name}_")]
    return {name: getattr(model, f"{name}_") for name in names}


@pytest.mark.filterwarnings("ignore:EM of a state-space model did not converge")
@pytest.mark.parametrize("acceleration", [True, False])
@pytest.mark.parametrize("fixed", [START, ("observation", *START), ("transition", "observation", *START)])
def test_the_likelihood_never_falls(acceleration, fixed):
    X, start = problem()
    model = LinearGaussianModel(**start, fixed=fixed, acceleration=acceleration, max_iter=60, tol=0.0)
    model.fit(X)
    assert (np.diff(model.trace_) > -1e-13).all()
    assert model.trace_[-1] > model.trace_[0] + 0.01
    entries = (~np.isnan(X)).sum()
    assert model.trace_[0] * entries == pytest.approx(LinearGaussianModel(**start).log_likelihood(X), rel=1e-12)
    assert model.log_likelihood_ == pytest.approx(model.log_likelihood(X), rel=1e-14)
    assert model.log_likelihood_ >= model.trace_[-1] * entries - 1e-9


def slopes(model, X, names, inputs=None):
    """Differentiate the density of the joint Gaussian numerically, in triangles of covariances."""
    given, found = matrices(model), {}
    for name in names:
        array = given[name]
        around = name.endswith("covariance")

        def value(vector, name=name, array=array, around=around):
            a = vector.reshape(array.shape)
            changed = given | {name: a @ a.T if around else a}
            return sum(log_likelihood(joint(changed, len(x), inputs), x) for x in X)

        at = np.linalg.cholesky(array) if around else array
        slope = approx_fprime(at.ravel(), value, 1e-6).reshape(array.shape)
        found[name] = np.tril(slope) if around else slope
    return found


def test_a_fit_is_stationary_in_the_joint_gaussian():
    """Partial holes, inputs, several series, the law of the start: everything that can be free, free."""
    rng = np.random.default_rng(2)
    X, start = problem(T=60)
    series = [X[:15], X[15:33], X[33:47], X[47:]]
    inputs = rng.normal(size=(18, 1))
    driven = [x + 0.7 * inputs[: len(x)] @ np.ones((1, 2)) for x in series]
    model = LinearGaussianModel(
        **start | {"control": [[0.0], [0.0]], "feedthrough": [[0.1], [0.0]]},
        fixed={"observation": True, "feedthrough": [[1], [0]]},
    )
    model.set_params(fixed={**model.fixed, "initial_covariance": True}, tol=1e-14)
    model.fit(driven, inputs=[inputs[: len(x)] for x in driven])
    assert np.array_equal(model.observation_, start["observation"])
    assert model.feedthrough_[0, 0] == 0.1
    names = ["transition", "transition_covariance", "observation_covariance", "initial_mean", "control", "feedthrough"]
    given = matrices(model)
    for name in names:
        found = sum_of_slopes(model, driven, inputs, name)
        if name == "feedthrough":
            found = found[1:]
        # Second derivatives are of the order of the rows, 60; forward differences leave 1e-6 of them.
        assert np.abs(found).max() < 3e-3, (name, found)
    assert model.certify(driven, inputs=[inputs[: len(x)] for x in driven]).holds
    assert given["initial_mean"].any()


def sum_of_slopes(model, driven, inputs, name):
    return sum(slopes(model, [x], [name], inputs[: len(x)])[name] for x in driven)


def test_the_law_of_the_start_of_many_series():
    parameters, _, _ = case("plain", seed=8, n=2)
    truth = LinearGaussianModel(**parameters)
    series = np.array([truth.sample(5, seed)[0] for seed in range(40)])
    fixed = [name for name in Matrices._fields if name not in START]
    model = LinearGaussianModel(**parameters | {"initial_mean": 0.0, "initial_covariance": 1.0}, fixed=fixed).fit(series)
    for name in START:
        found = sum(slopes(model, [x], [name])[name] for x in series)
        assert np.abs(found).max() < 3e-3, (name, found)  # of a sum of 40 terms, each with a derivative of the order of one
    np.testing.assert_allclose(model.initial_mean_, parameters["initial_mean"], atol=1.0)
    assert model.certify(series).holds, str(model.certify(series))


@pytest.mark.parametrize("kind", ["missing", "inputs"])
def test_leaps_know_the_derivative(kind):
    parameters, X, inputs = case(kind, seed=1, T=8, n=2)
    m = check_matrices({name: parameters.get(name) for name in Matrices._fields})
    series = check_series(X, inputs, m)
    off = {"transition": [[True, False], [False, False]], "transition_covariance": False, "observation": True}
    free = free_entries(off, m)
    here = pack(m, free)

    def value(vector):
        return log_likelihood(joint(unpack(vector, m, free)._asdict(), len(X), series.inputs), X)

    shift, rows = series.offsets(m)
    slope, scale = ascent(m, free, moments(system_of(m), rows, shift, series.starts, series.inputs))
    np.testing.assert_allclose(slope, approx_fprime(here, value, 1e-7), rtol=1e-4, atol=1e-4)
    assert (scale > 0).all()
    np.testing.assert_allclose(pack(unpack(here, m, free), free), here, rtol=1e-12, atol=1e-14)


def test_the_flow_of_the_nile():
    """Durbin & Koopman (Time Series Analysis by State Space Methods, 2001) found 15099 and 1469.1 with a diffuse start."""
    rows = np.array(json.loads(REFERENCE.read_text(encoding="ascii"))["Nile"]["rows"])
    model = LinearGaussianModel(1.0, 1.0, 1000.0, 10000.0, rows[0, 0], 1e9).fit(rows)
    assert model.observation_covariance_[0, 0] == pytest.approx(15099, rel=1e-3)
    assert model.transition_covariance_[0, 0] == pytest.approx(1469.1, rel=1e-3)
    assert model.certify(rows).holds


def test_fits_find_what_a_general_optimizer_finds():
    X, start = problem(seed=3, T=60)

    def build(v):
        return LinearGaussianModel(
            **start | {"transition_covariance": np.diag(np.exp(v[:2])), "observation_covariance": np.diag(np.exp(v[2:]))}
        )

    found = minimize(
        lambda v: -build(v).log_likelihood(X),
        np.zeros(4),
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000},
    )
    off = ~np.eye(2, dtype=bool)
    model = LinearGaussianModel(
        **start,
        fixed={
            "transition": True,
            "observation": True,
            "transition_covariance": off,
            "observation_covariance": off,
            "initial_mean": True,
            "initial_covariance": True,
        },
    ).fit(X)
    assert model.log_likelihood_ == pytest.approx(-found.fun, rel=1e-9)
    np.testing.assert_allclose(np.diagonal(model.transition_covariance_), np.exp(found.x[:2]), rtol=1e-4)
    assert (model.transition_covariance_[off] == 0).all()


def test_masks_hold_entries_of_a_coefficient_matrix():
    """With correlated noises the free rows must heed the errors of the fixed ones."""
    X, start = problem(seed=1, T=200, holes=0.05)
    mask = np.array([[True, False], [True, True]])
    start |= {"transition": np.array([[0.8, 0.0], [0.3, 0.7]]), "transition_covariance": np.array([[1.0, 0.4], [0.4, 0.6]])}
    fixed = {"transition": mask, "observation": True, "transition_covariance": True, "observation_covariance": True}
    model = LinearGaussianModel(**start, fixed=fixed | dict.fromkeys(START, True)).fit(X)
    assert np.array_equal(model.transition_[mask], start["transition"][mask])

    def value(a):
        A = start["transition"].copy()
        A[0, 1] = a[0]
        return -LinearGaussianModel(**start | {"transition": A}).log_likelihood(X)

    best = minimize(value, [0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert model.transition_[0, 1] == pytest.approx(best.x[0], abs=1e-5)
    assert model.certify(X).holds


def test_companions_keep_their_ones():
    """An autoregression of order two in companion form: a singular noise, and one free row."""
    rng = np.random.default_rng(0)
    y = np.zeros(400)
    for t in range(2, 400):
        y[t] = 0.5 * y[t - 1] + 0.3 * y[t - 2] + rng.normal()
    A, Q = np.array([[0.1, 0.1], [1.0, 0.0]]), np.diag([1.0, 0.0])
    keep = {"transition": [[False, False], [True, True]], "transition_covariance": [[False, True], [True, True]]}
    keep |= {"observation": True, "observation_covariance": True} | dict.fromkeys(START, True)
    model = LinearGaussianModel(A, [[1.0, 0.0]], Q, 0.0, fixed=keep).fit(y)
    # Without noise in the rows this is least squares, but for the first two rows.
    Z = np.column_stack([y[1:-1], y[:-2]])
    coefficients, (rest,), *_ = np.linalg.lstsq(Z, y[2:], rcond=None)
    np.testing.assert_allclose(model.transition_[0], coefficients, atol=5e-3)
    assert model.transition_covariance_[0, 0] == pytest.approx(rest / 398, rel=1e-2)
    assert np.array_equal(model.transition_[1], [1.0, 0.0])
    assert model.certify(y).holds, str(model.certify(y))


def test_a_variance_that_should_be_zero_and_one_that_should_not():
    rng = np.random.default_rng(4)
    y = 3 + rng.normal(size=120)
    level = LinearGaussianModel(1.0, 1.0, 1.0, 1.0, 0.0, 100.0).fit(y)
    assert level.transition_covariance_[0, 0] < 1e-3
    certificate = level.certify(y)
    assert certificate.holds, str(certificate)
    assert certificate["border: transition_covariance"].value <= 1e-6
    # EM never leaves a variance of zero; the certificate says that it should be left.
    stuck = LinearGaussianModel(1.0, 1.0, 0.0, 1.0, 0.0, 100.0).fit(np.cumsum(y - 3))
    assert stuck.transition_covariance_[0, 0] < 1e-20  # but for rounding
    assert [check.name for check in stuck.certify(np.cumsum(y - 3)).failed] == ["border: transition_covariance"]


@pytest.mark.parametrize("seed", range(3))
def test_default_fits_are_certified_and_sabotage_is_refused(seed):
    X, start = problem(seed=seed)
    model = LinearGaussianModel(**start).fit(X)
    certificate = model.certify(X)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "local"
    rng, names = np.random.default_rng(seed), []
    for name, value in vars(deepcopy(model)).items():
        array = np.asarray(value)
        if not name.endswith("_") or name in ("trace_", "n_iter_", "converged_", "n_features_in_") or not array.any():
            continue
        for move in (moved, symmetric) if array.ndim == 2 else (moved,):
            twin = deepcopy(model)
            setattr(twin, name, move(np.atleast_1d(array), rng).reshape(array.shape))
            assert not twin.certify(X).holds, f"1 % of {name} went unseen:\n{twin.certify(X)}"
        names.append(name)
    assert {"transition_", "observation_", "transition_covariance_", "observation_covariance_", "log_likelihood_"} <= set(names)
    assert not model.certify(problem(seed=seed + 10)[0]).holds
    for name in ("n_iter_", "converged_", "trace_"):
        setattr(model, name, None)
    assert model.certify(X).to_dict() == certificate.to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_certified_and_sabotaged_results_refused(kind):
    parameters, X, inputs = case(kind, seed=2, T=15)
    model = LinearGaussianModel(**parameters)
    result = model.smooth(X, inputs=inputs)
    certificate = model.certify(X, inputs=inputs, smoothed=result)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    rng = np.random.default_rng(0)
    for name, value in vars(result).items():
        array = np.asarray(value)
        if not array.any():  # a start that is known has no covariance
            continue
        twin = replace(result, **{name: moved(np.atleast_1d(array), rng).reshape(array.shape)})
        assert not model.certify(X, inputs=inputs, smoothed=twin).holds, name
    wrong = replace(result, mean=result.mean[:-1])
    with pytest.raises(ValueError, match="other rows"):
        model.certify(X, inputs=inputs, smoothed=wrong)


def test_certificates_of_many_series():
    parameters, _, _ = case("plain", seed=3)
    model, rng = LinearGaussianModel(**parameters), np.random.default_rng(0)
    stack = rng.normal(size=(20, 30, 2))
    assert model.certify(stack).holds
    several = [x[:n] for x, n in zip(stack, rng.integers(1, 30, 20), strict=True)]
    several[3][0] = np.nan
    assert model.certify(several).holds
    result = model.smooth(several)
    result[7] = replace(result[7], mean=1.01 * result[7].mean)
    assert [check.name for check in model.certify(several, smoothed=result).failed] == ["means"]
    wide = LinearGaussianModel(**parameters | {"transition_covariance": np.diag([1.0, 0.0, 0.0])})
    assert wide.certify(several).holds


@pytest.mark.slow_without_jit
def test_any_number_of_threads_gives_the_same_fit():
    X, start = problem(T=200)
    series = [X + i for i in range(60)]
    fits = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            fits.append(LinearGaussianModel(**start, max_iter=5, tol=1.0).fit(series))
    assert bits(matrices(fits[0])) == bits(matrices(fits[1]))
    assert bits(fits[0].trace_) == bits(fits[1].trace_)
    # An array and a list are the same series.
    again = LinearGaussianModel(**start, max_iter=5, tol=1.0).fit(np.array(series))
    assert bits(matrices(again)) == bits(matrices(fits[0]))


def test_models_are_saved_cloned_and_resumed(tmp_path):
    X, start = problem()
    model = LinearGaussianModel(**start, fixed={**dict.fromkeys(("transition", "observation", *START), True)}).fit(X)
    model.save(tmp_path / "model.lemmata")
    loaded = lemmata.load(tmp_path / "model.lemmata")
    assert bits(matrices(loaded)) == bits(matrices(model))
    assert np.array_equal(loaded.smooth(X).mean, model.smooth(X).mean)
    fresh = clone(model)
    assert not hasattr(fresh, "transition_")
    assert bits(matrices(fresh.fit(X))) == bits(matrices(model))
    halfway = clone(model).set_params(checkpoint=tmp_path / "fit", max_iter=4)
    with pytest.warns(match="did not converge"):
        halfway.fit(X)
    assert np.array_equal(halfway.trace_, model.trace_[:4])


def test_refusals_of_fit():
    X, start = problem()
    wrong = {
        "no matrices": {"fixed": ("transitions",)},
        "mask of shape": {"fixed": {"transition": [True, False]}},
        "whole blocks": {"fixed": {"transition_covariance": [[False, True], [False, False]]}},
        "must be zero": {
            "fixed": {"transition_covariance": ~np.eye(2, dtype=bool)},
            "transition_covariance": [[1, 0.5], [0.5, 1]],
        },
        "nothing to fit": {"fixed": Matrices._fields},
        "varies with time and cannot": {"transition": np.zeros((100, 2, 2)), "fixed": ()},
        "fix those rows": {"fixed": {"transition": [[True, False], [True, True]]}, "transition_covariance": np.zeros((2, 2))},
    }
    for message, changes in wrong.items():
        with pytest.raises(ValueError, match=message):
            LinearGaussianModel(**start | changes).fit(X)
    with pytest.raises(ValueError, match="Every entry of X is missing"):
        LinearGaussianModel(**start).fit(np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match="tol"):
        LinearGaussianModel(**start, tol=-1.0).fit(X)
    broken = LinearGaussianModel(**start).fit(X)
    broken.transition_covariance_ = -broken.transition_covariance_
    assert [check.name for check in broken.certify(X).failed] == ["matrices"]


def test_time_varying_matrices_may_stay_beside_free_ones():
    """A regression whose coefficient walks: the observation matrix is the row of regressors."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(150, 1, 2))
    walk = np.cumsum(0.1 * rng.normal(size=(150, 2)), axis=0)
    y = np.einsum("tij,tj->ti", z, walk) + 0.5 * rng.normal(size=(150, 1))
    off = {"transition": True, "observation": True, "transition_covariance": ~np.eye(2, dtype=bool)}
    model = LinearGaussianModel(1.0, z, 0.1, 1.0, fixed=off | dict.fromkeys(START, True)).fit(y)
    assert model.observation_covariance_[0, 0] == pytest.approx(0.25, rel=0.5)
    np.testing.assert_allclose(np.diagonal(model.transition_covariance_), 0.01, atol=0.02)
    assert model.certify(y).holds
