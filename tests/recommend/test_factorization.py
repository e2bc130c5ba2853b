"""The factorization against other solvers: ridge regressions, brute force, finite differences, a convex program."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from lemmata.linear_model import Ridge
from lemmata.recommend import ProbabilisticMatrixFactorization
from recommend.problems import SETTINGS, ratings
from reference.make_implicit import loss, table

NOISE = 0.2


def fitted(X, y, tol=1e-9, **settings):
    return ProbabilisticMatrixFactorization(**{**SETTINGS, "noise_variance": NOISE, "tol": tol, **settings}).fit(X, y)


def objective(model, X, y, precision=(2.0, 2.0), noise=NOISE):
    """Minus the log posterior, from its definition."""
    user, item = np.searchsorted(model.users_, X[:, 0]), np.searchsorted(model.items_, X[:, 1])
    U, V, b, c = model.user_factors_, model.item_factors_, model.user_biases_, model.item_biases_
    e = y - model.mean_ - b[user] - c[item] - (U[user] * V[item]).sum(axis=1)
    prior = precision[0] * ((U**2).sum() + (b**2).sum()) + precision[1] * ((V**2).sum() + (c**2).sum())
    return 0.5 * (e @ e) / noise + 0.5 * prior


@pytest.mark.item("FAC-09")
@pytest.mark.parametrize("precision", [2.0, (1.0, 4.0)])
def test_every_user_and_item_is_a_ridge_regression_with_penalty_lambda_sigma_squared(precision):
    X, y = ratings()
    model = fitted(X, y, prior_precision=precision)
    by_user, by_item = np.broadcast_to(precision, 2) * NOISE
    for column, own, other, penalty in ((0, "user", "item", by_user), (1, "item", "user", by_item)):
        factors, biases = getattr(model, f"{own}_factors_"), getattr(model, f"{own}_biases_")
        others, other_biases = getattr(model, f"{other}_factors_"), getattr(model, f"{other}_biases_")
        for i in range(len(factors)):
            here = X[:, column] == i
            j = X[here, 1 - column]
            design = np.column_stack([others[j], np.ones(len(j))])
            ridge = Ridge(alpha=penalty, fit_intercept=False).fit(design, y[here] - model.mean_ - other_biases[j])
            # 1e-6: what a relative distance of 1e-9 to rest leaves, times the condition of a few ratings
            np.testing.assert_allclose([*factors[i], biases[i]], ridge.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.item("FAC-09")
@pytest.mark.parametrize("settings", [{}, {"acceleration": False, "tol": 1e-6}, {"solver": "coordinate", "tol": 1e-6}])
def test_the_objective_falls_and_is_what_it_says(settings):
    X, y = ratings()
    model = fitted(X, y, **settings)
    assert (np.diff(model.trace_) <= 1e-9 * np.abs(model.trace_[1:])).all()
    np.testing.assert_allclose(model.trace_[-1], objective(model, X, y), rtol=1e-9)


@pytest.mark.item("FAC-09")
def test_coordinate_ascent_reaches_the_same_optimum():
    X, y = ratings()
    values = [
        min(fitted(X, y, tol=1e-7, solver=solver, random_state=seed).trace_[-1] for seed in range(3))
        for solver in ("als", "coordinate")
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)


def test_no_other_factors_nearby_do_better():
    X, y = ratings(n_users=8, n_items=6, share=0.7)
    model = fitted(X, y, n_components=2, tol=1e-10)
    shapes = [(8, 2), (6, 2), (8,), (6,)]
    names = ["user_factors_", "item_factors_", "user_biases_", "item_biases_"]

    def value(x):
        parts = np.split(x, np.cumsum([np.prod(s) for s in shapes])[:-1])
        for name, part, shape in zip(names, parts, shapes, strict=True):
            setattr(model, name, part.reshape(shape))
        return objective(model, X, y)

    start = np.concatenate([getattr(model, name).ravel() for name in names])
    here = value(start)
    found = minimize(value, start, method="BFGS", options={"gtol": 1e-7})
    assert found.fun >= here * (1 - 1e-9)


@pytest.mark.item("FAC-08")
def test_unobserved_cells_have_no_part_in_the_fit():
    X, y = ratings()
    triples = fitted(X, y)
    matrix = csr_array((y, (X[:, 0], X[:, 1])), shape=(40, 25))
    from_matrix = ProbabilisticMatrixFactorization(**SETTINGS, noise_variance=NOISE, tol=1e-9).fit(matrix)
    assert triples.user_factors_.tobytes() == from_matrix.user_factors_.tobytes()
    assert triples.item_biases_.tobytes() == from_matrix.item_biases_.tobytes()
    wider = csr_array((y, (X[:, 0], X[:, 1])), shape=(43, 29))  # users and items without a rating
    model = ProbabilisticMatrixFactorization(**SETTINGS, noise_variance=NOISE, tol=1e-9).fit(wider)
    assert not model.user_factors_[40:].any()
    assert not model.item_biases_[25:].any()
    np.testing.assert_allclose(model.trace_[-1], triples.trace_[-1], rtol=0.05)  # from another start


@pytest.mark.item("FAC-08")
def test_held_out_ratings_are_predicted_nearly_as_well_as_the_noise_allows():
    X, y = ratings(n_users=300, n_items=120, share=0.3)
    train = np.arange(len(y)) < 0.9 * len(y)
    model = ProbabilisticMatrixFactorization(2, prior_precision=2.0, random_state=0).fit(X[train], y[train])
    assert model.rmse(X[~train], y[~train]) < 1.15 * 0.4
    np.testing.assert_allclose(model.noise_variance_, 0.16, rtol=0.1)
    low, high = model.predict_interval(X[~train], level=0.9).T
    covered = np.mean((low <= y[~train]) & (y[~train] <= high))
    assert abs(covered - 0.9) < 0.04  # four standard errors of a share among 1,000
    with_mean = np.sqrt(np.mean((y[~train] - y[train].mean()) ** 2))
    assert model.rmse(X[~train], y[~train]) < 0.4 * with_mean


def test_enough_factors_close_the_gap_to_the_convex_problem():
    X, y = ratings(n_users=20, n_items=15, share=0.6)
    model = fitted(X, y, n_components=12, prior_precision=8.0, tol=1e-10)
    certificate = model.certify(X, y)
    assert certificate.holds
    assert certificate["nuclear gap"].value <= 1e-6
    assert certificate["nuclear gap"].limit == 1e-6
    one = fitted(X, y, n_components=1, prior_precision=8.0, tol=1e-10).certify(X, y)
    assert one.holds
    assert one["nuclear gap"].value > 1e-3


def test_the_gap_is_true():
    """No number of factors and no start gets below the bound that the certificate of a small model gives."""
    X, y = ratings(n_users=12, n_items=9, share=0.6)
    small = fitted(X, y, n_components=1)
    gap = small.certify(X, y)["nuclear gap"].value
    bound = small.trace_[-1] * (1 - gap)
    best = min(fitted(X, y, n_components=9, random_state=seed).trace_[-1] for seed in range(5))
    assert bound <= best <= small.trace_[-1]


def test_implicit_feedback_against_dense_weighted_least_squares():
    rng = np.random.default_rng(1)
    R = rng.poisson(0.5, (15, 10)).astype(float)
    model = ProbabilisticMatrixFactorization(3, implicit=True, confidence=5.0, prior_precision=2.0, tol=1e-10, random_state=0)
    model.fit(csr_array(R))
    U, V = model.user_factors_, model.item_factors_
    P, C = (R > 0).astype(float), 1 + 5.0 * R
    for i in range(15):
        expected = np.linalg.solve((V.T * C[i]) @ V + 2.0 * np.eye(3), (V.T * C[i]) @ P[i])
        np.testing.assert_allclose(U[i], expected, rtol=1e-6, atol=1e-7)
    value = 0.5 * (C * (P - U @ V.T) ** 2).sum() + ((U**2).sum() + (V**2).sum())
    np.testing.assert_allclose(model.trace_[-1], value, rtol=1e-9)
    assert (np.diff(model.trace_) <= 1e-9 * np.abs(model.trace_[1:])).all()
    assert model.certify(csr_array(R)).holds
    wide = ProbabilisticMatrixFactorization(10, implicit=True, confidence=5.0, prior_precision=9.0, tol=1e-11, random_state=0)
    assert wide.fit(csr_array(R)).certify(csr_array(R))["nuclear gap"].value <= 1e-6
    plain = csr_array(np.where(R > 0, R, 0))
    stored = plain.copy()
    stored.data[0] = 0.0
    plain.data[0] = 0.0
    plain.eliminate_zeros()
    assert model.fit(stored).user_factors_.tobytes() == model.fit(plain).user_factors_.tobytes()
    assert not hasattr(model, "predict_dist")  # amounts are not normal about what is expected
    with pytest.raises(ValueError, match="at least 0"):
        model.fit(-csr_array(R))


def test_implicit_agrees_with_the_package_of_that_name():
    peer = json.loads((Path(__file__).parents[1] / "reference" / "implicit.json").read_text())
    R = table()
    assert peer["entries"] == R.sum()
    ours = [
        ProbabilisticMatrixFactorization(4, implicit=True, confidence=10.0, prior_precision=1.0, random_state=s).fit(
            csr_array(R)
        )
        for s in range(4)
    ]
    best = min(loss(R, m.user_factors_, m.item_factors_) for m in ours)
    assert best <= min(peer["objectives"]) * (1 + 1e-5)  # single precision, and not quite at rest


def test_without_a_prior_every_row_needs_enough_ratings():
    X, y = ratings(share=0.9)
    assert fitted(X, y, prior_precision=0.0, n_components=2, tol=1e-7).certify(X, y).holds
    few = np.concatenate([np.flatnonzero(X[:, 0] == 3)[:2], np.flatnonzero(X[:, 0] != 3)])
    with pytest.raises(ValueError, match=r"every user needs at least 3 ratings .* user 3 has 2"):
        fitted(X[few], y[few], prior_precision=0.0, n_components=2)


def test_the_noise_variance_is_a_fixed_point_near_the_truth_from_any_start():
    X, y = ratings()
    found = [ProbabilisticMatrixFactorization(**{**SETTINGS, "random_state": s}).fit(X, y) for s in range(3)]
    for model in found:
        assert model.certify(X, y).holds
    np.testing.assert_allclose([m.noise_variance_ for m in found], found[0].noise_variance_, rtol=0.1)


def test_scaled_by_counts():
    X, y = ratings()
    model = fitted(X, y, prior_precision=0.1, scale_by_counts=True)
    assert model.certify(X, y).holds
    here = X[:, 0] == 5
    design = np.column_stack([model.item_factors_[X[here, 1]], np.ones(here.sum())])
    target = y[here] - model.mean_ - model.item_biases_[X[here, 1]]
    ridge = Ridge(alpha=0.1 * NOISE * here.sum(), fit_intercept=False).fit(design, target)
    np.testing.assert_allclose([*model.user_factors_[5], model.user_biases_[5]], ridge.coef_, rtol=1e-6, atol=1e-7)


def test_it_is_a_scikit_learn_regressor():
    X, y = ratings()
    model = ProbabilisticMatrixFactorization(**SETTINGS)
    assert cross_val_score(model, X, y, cv=3).min() > 0.4
    search = GridSearchCV(model, {"n_components": [1, 2], "prior_precision": [2.0, 50.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_components": 2, "prior_precision": 2.0}


def test_too_few_sweeps_are_said():
    X, y = ratings()
    with pytest.warns(ConvergenceWarning, match="did not converge after 2"):
        assert not fitted(X, y, max_iter=2).converged_
