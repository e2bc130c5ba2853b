"""Hyperplanes: feet, distances and margins; and the plane with the fewest errors, found by trying all."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from lemmata.linear_model.hyperplane import (
    exact_zero_one,
    fold,
    functional_margin,
    geometric_margin,
    offset,
    project,
    signed_distance,
)

SEEDS = range(3)


def plane(seed, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, d)), rng.choice([-1, 1], 20), rng.normal(size=d), float(rng.normal())


@pytest.mark.item("CLS-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_folding_and_scaling_change_no_prediction(seed):
    X, _, w, b = plane(seed)
    scores = X @ w + b
    folded = np.column_stack([np.ones(len(X)), X]) @ fold(w, b)
    np.testing.assert_allclose(folded, scores, rtol=1e-12)  # the same sum, in another order
    for c in (1e-3, 7.0):
        assert np.array_equal(np.sign(np.column_stack([np.ones(len(X)), X]) @ fold(c * w, c * b)), np.sign(scores))
        np.testing.assert_allclose(signed_distance(X, c * w, c * b), signed_distance(X, w, b), rtol=1e-12)


@pytest.mark.item("CLS-02")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_foot_is_the_nearest_point_of_the_plane(seed):
    X, _, w, b = plane(seed)
    feet = project(X, w, b)
    np.testing.assert_allclose(feet @ w + b, 0, atol=1e-12)  # roundings of numbers of size 1
    for x, foot, distance in zip(X[:5], feet, signed_distance(X, w, b), strict=False):
        on_plane = {"type": "eq", "fun": lambda z: z @ w + b}
        nearest = minimize(lambda z, x=x: ((z - x) ** 2).sum(), np.zeros(3), constraints=[on_plane], options={"ftol": 1e-14})
        np.testing.assert_allclose(foot, nearest.x, atol=1e-6)  # the root of the solver's tolerance
        np.testing.assert_allclose(abs(distance), np.sqrt(nearest.fun), rtol=1e-6)
        assert np.sign(distance) == np.sign(x @ w + b)


@pytest.mark.item("CLS-02")
@pytest.mark.parametrize("seed", SEEDS)
def test_margins_are_signed_once(seed):
    X, y, w, b = plane(seed)
    np.testing.assert_allclose(functional_margin(X, y, w, b), y * (X @ w + b), rtol=1e-15)
    # the erratum: multiplied by y twice, a row on the wrong side would count as one on its own
    least = min(float(s * (x @ w + b) / np.linalg.norm(w)) for x, s in zip(X, y, strict=True))
    np.testing.assert_allclose(geometric_margin(X, y, w, b), least, rtol=1e-12)
    assert geometric_margin(X, y, w, b) < 0 < geometric_margin(X, np.sign(X @ w + b), w, b)
    foot_of_origin = project(np.zeros((1, 3)), w, b)[0]
    np.testing.assert_allclose(offset(w, b) * w / np.linalg.norm(w), foot_of_origin, rtol=1e-12)


def test_no_plane_without_a_direction():
    with pytest.raises(ValueError, match="not all zero"):
        project([[1.0]], [0.0], 1.0)


def fewest_errors(X, y):
    """Try all labelings, each by a linear program: the fewest errors of any plane that holds no row."""
    best = len(X)
    for labels in product((-1, 1), repeat=len(X)):
        errors = int((np.array(labels) != 2 * y - 1).sum())
        if errors < best:
            A = -np.array(labels)[:, None] * np.column_stack([X, np.ones(len(X))])
            if linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(X)), bounds=(None, None)).status == 0:
                best = errors
    return best


@pytest.mark.item("CLS-05")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", ["general", "lattice"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_plane_has_fewer_errors(d, kind, seed):
    rng = np.random.default_rng(seed)
    # on a lattice many rows share a plane, and some coincide
    X = rng.normal(size=(8, d)) if kind == "general" else rng.integers(0, 3, size=(8, d)).astype(float)
    y = np.append([0, 1], rng.integers(0, 2, 6))
    best = exact_zero_one(X, y)
    assert best.n_errors == fewest_errors(X, y)
    assert ((X @ best.coef + best.intercept) * (2 * y - 1) <= 0).sum() == best.n_errors, "the plane does not do what is said"
    assert best.accuracy == 1 - best.n_errors / 8


@pytest.mark.item("CLS-05")
@pytest.mark.parametrize("seed", SEEDS)
def test_surrogates_are_never_better(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(18, 2))
    y = (X[:, 0] + 0.8 * rng.normal(size=18) > 0).astype(int)
    best = exact_zero_one(X, y)
    for model in (LogisticRegression(C=1e6), LinearSVC(C=100.0, max_iter=100_000)):
        assert model.fit(X, y).score(X, y) <= best.accuracy


def test_an_outlier_moves_a_convex_loss_and_not_the_optimum():
    X, y = np.array([[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0], [50.0]]), np.array([0, 0, 0, 1, 1, 1, 0])
    assert exact_zero_one(X, y).n_errors == 1
    assert LogisticRegression(C=1e6).fit(X, y).score(X, y) < 6 / 7


def test_the_search_does_not_care_for_units_and_names_its_limits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), rng.integers(0, 2, 12)
    best = exact_zero_one(X, y)
    for moved in (1e9 * X, 1e-9 * X, X + 1e4):
        assert exact_zero_one(moved, np.where(y, "b", "a")).n_errors == best.n_errors
    with pytest.raises(ValueError, match="planes"):
        exact_zero_one(rng.normal(size=(200, 3)), rng.integers(0, 2, 200))
    with pytest.raises(ValueError, match="two classes"):
        exact_zero_one(X, np.zeros(12))
