"""Learning curves and validation curves against loops written out by hand, scikit-learn's, and theorems on nested models."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, PredefinedSplit, TimeSeriesSplit
from sklearn.model_selection import validation_curve as their_validation_curve
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from helpers import bits
from lemmata.linear_model import PolynomialRegression, Ridge
from lemmata.mixture import GaussianMixture
from lemmata.model_selection import LearningCurve, ValidationCurve, cross_validate, learning_curve, validation_curve
from lemmata.naive_bayes import GaussianNB

ROUNDING = 1e-9  # of two exact solutions of the same least squares
SEEDS = [0, 1, 2]


def numbers(seed, n=50):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 1))
    return X, np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=n)


def curve_of(test, train=None, cls=LearningCurve, values=None, **more):
    """Make a curve of given scores (folds, points), of which each fold holds out a fifth."""
    test = np.asarray(test, dtype=float)
    splits = [(np.arange(8), np.arange(8, 10))] * len(test)
    return cls(values or list(range(test.shape[1])), test if train is None else train, test, splits, [], None, None, {}, **more)


# Learning curves


@pytest.mark.item("MSL-02")
@pytest.mark.parametrize("seed", SEEDS)
def test_larger_fits_keep_the_rows_of_smaller_ones(seed):
    X, y = numbers(seed)
    curve = learning_curve(Ridge(alpha=0.1), X, y, train_sizes=[5, 11, 40], cv=5, random_state=seed)
    assert_array_equal(curve.sizes, [5, 11, 40])
    assert curve.test_scores.shape == curve.train_scores.shape == (5, 3)
    for i, (train, test) in enumerate(curve.splits):
        small, middle, large = (set(rows.tolist()) for rows in curve.rows[i])
        assert small != set(train[:5].tolist())  # at random
        assert small < middle < large == set(train.tolist())
        for j, rows in enumerate(curve.rows[i]):
            assert len(rows) == curve.sizes[j]
            A, target = X[rows, 0] - X[rows, 0].mean(), y[rows] - y[rows].mean()
            slope = A @ target / (A @ A + 0.1)
            line = y[rows].mean() + slope * (X[:, 0] - X[rows, 0].mean())
            assert_allclose(curve.test_scores[i, j], r2_score(y[test], line[test]), rtol=1e-8)
            assert_allclose(curve.train_scores[i, j], r2_score(y[rows], line[rows]), rtol=1e-8)
    whole = cross_validate(Ridge(alpha=0.1), X, y, cv=5, random_state=seed)
    assert_allclose(curve.test_scores[:, -1], whole.test_scores, rtol=ROUNDING)
    assert curve.certify(X, y).holds


def test_sizes_are_numbers_or_shares_of_the_smallest_fit():
    X, y = numbers(0, n=43)
    curve = learning_curve(Ridge(), X, y, train_sizes=[0.5, 1.0], cv=4, random_state=0)
    assert min(len(train) for train, _ in curve.splits) == 32
    assert_array_equal(curve.sizes, [16, 32])
    assert_array_equal(learning_curve(Ridge(), X, y, train_sizes=[9, 4, 4], cv=4, random_state=0).sizes, [4, 9])
    assert_array_equal(learning_curve(Ridge(), X, y, train_sizes=9, cv=4, random_state=0).sizes, [9])
    assert_array_equal(learning_curve(Ridge(), X, y, train_sizes=(k for k in (4, 9)), cv=4, random_state=0).sizes, [4, 9])
    for sizes in ("ab", None, [0.0, 1.0], [1.5], [33], [0], [], [-3]):
        with pytest.raises(ValueError, match="numbers of rows from 1 to 32"):
            learning_curve(Ridge(), X, y, train_sizes=sizes, cv=4)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_class_has_its_share_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["a", "b", "c"], [60, 30, 10]))
    X = rng.normal(size=(100, 2)) + np.searchsorted(["a", "b", "c"], y)[:, None]
    curve = learning_curve(GaussianNB(), X, y, train_sizes=[10, 40, 80], cv=5, random_state=seed)
    for own in curve.rows:
        for size, rows in zip(curve.sizes, own, strict=True):
            counts = np.array([(y[rows] == name).sum() for name in "abc"])
            assert np.abs(counts - size * np.array([0.6, 0.3, 0.1])).max() <= 1.5  # one row more, and rounding
    first = learning_curve(TheirLogistic(), X, y, train_sizes=[3], cv=5, random_state=seed)
    assert all(len(set(y[rows])) == 3 for (rows,) in first.rows)


def test_time_goes_backwards_from_the_rows_held_out():
    X, y = numbers(0)
    curve = learning_curve(Ridge(), X, y, train_sizes=[4, 8], cv=TimeSeriesSplit(4))
    for (train, _), own in zip(curve.splits, curve.rows, strict=True):
        for rows, size in zip(own, (4, 8), strict=True):
            assert_array_equal(rows, train[-size:])


def test_the_same_seed_gives_the_same_bits_on_any_threads():
    X, y = numbers(0)
    first = learning_curve(Ridge(), X, y, random_state=3, n_jobs=1)
    assert bits(learning_curve(Ridge(), X, y, random_state=3, n_jobs=2).test_scores) == bits(first.test_scores)
    assert not np.array_equal(learning_curve(Ridge(), X, y, random_state=4).test_scores, first.test_scores)


def test_mixtures_have_a_curve_of_held_out_likelihood():
    X = np.random.default_rng(0).normal(size=(60, 2))
    curve = learning_curve(GaussianMixture(1), X, train_sizes=[5, 40], cv=3, random_state=0)
    assert (np.diff(curve.test_means) > 0).all()
    assert curve.certify(X).holds


# Validation curves


@pytest.mark.item("MSL-02")
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_are_those_of_scikit_learn(seed):
    X, y = numbers(seed)
    cv, alphas = KFold(4, shuffle=True, random_state=seed), [100.0, 1.0, 0.01]
    expected = their_validation_curve(TheirRidge(), X, y, param_name="alpha", param_range=alphas, cv=cv)
    for model in (TheirRidge(), Ridge()):
        curve = validation_curve(model, X, y, param_name="alpha", param_range=alphas, cv=cv)
        assert_allclose(curve.train_scores, expected[0].T, rtol=1e-8)
        assert_allclose(curve.test_scores, expected[1].T, rtol=1e-8)
        assert curve.certify(X, y, nested=True).holds  # a larger penalty never fits the rows of the fit better
    piped = validation_curve(
        make_pipeline(StandardScaler(), Ridge()), X, y, param_name="ridge__alpha", param_range=alphas, cv=cv
    )
    assert piped.test_scores.shape == (4, 3)


@pytest.mark.item("MSL-02")
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_the_fit_never_fall_with_nested_complexity(seed):
    X, y = numbers(seed, n=60)
    labels = np.where(y > 0, "up", "down")
    nested = [
        (PolynomialRegression(), y, "degree", [1, 2, 3, 4, 5, 6, 7]),  # one column more
        (DecisionTreeRegressor(random_state=0), y, "max_leaf_nodes", [2, 3, 5, 8, 13, 21]),  # best first: one split more
        (DecisionTreeClassifier(random_state=0), labels, "max_leaf_nodes", [2, 3, 5, 8, 13]),
        (DecisionTreeRegressor(random_state=0), y, "ccp_alpha", [1.0, 0.1, 0.01, 0.001, 0.0]),  # pruned less
        (Ridge(), y, "alpha", [1e3, 1e1, 1e-1, 1e-3]),  # a larger ball of coefficients
    ]
    for model, target, name, values in nested:
        curve = validation_curve(model, X, target, param_name=name, param_range=values, cv=4, random_state=seed)
        certificate = curve.certify(X, target, nested=True)
        assert certificate.holds, certificate
        assert certificate.kind == "proof"
        assert (np.diff(curve.train_scores, axis=1) >= -1e-9).all()  # rounding
    backwards = validation_curve(Ridge(), X, y, param_name="alpha", param_range=[1e-3, 1e1], cv=4, random_state=seed)
    assert [check.name for check in backwards.certify(X, y, nested=True).failed] == ["fall of a fit's score"]
    neighbors = validation_curve(
        KNeighborsRegressor(), X, y, param_name="n_neighbors", param_range=[9, 1, 5], random_state=seed
    )
    assert not neighbors.certify(X, y, nested=True).holds
    assert neighbors.certify(X, y).holds


@pytest.mark.item("MSL-02")
def test_the_rows_held_out_tell_when_a_model_fits_noise():
    X, y = numbers(0, n=40)
    curve = validation_curve(PolynomialRegression(), X, y, param_name="degree", param_range=[1, 3, 12], random_state=0)
    assert curve.best == 3
    assert curve.test_means[2] < curve.test_means[1]
    assert curve.train_means[2] > curve.train_means[1]


def test_weights_are_repetitions_and_zero_is_absent():
    X, y = numbers(0, n=30)
    rng = np.random.default_rng(0)
    weight, fold = rng.integers(0, 3, size=30).astype(float), rng.permutation(30) % 3
    copies = np.repeat(np.arange(30), weight.astype(int))
    options = {"param_name": "alpha", "param_range": [1.0, 0.1]}
    weighted = validation_curve(Ridge(), X, y, cv=PredefinedSplit(fold), sample_weight=weight, **options)
    repeated = validation_curve(Ridge(), X[copies], y[copies], cv=PredefinedSplit(fold[copies]), **options)
    assert_allclose(weighted.test_scores, repeated.test_scores, rtol=ROUNDING)
    assert_allclose(weighted.train_scores, repeated.train_scores, rtol=ROUNDING)
    assert weighted.certify(X, y, weight).holds
    assert not weighted.certify(X, y).holds


# What both say


def test_best_and_simplest_by_their_definitions():
    curve = curve_of([[0.1, 0.70, 0.80, 0.75], [0.3, 0.70, 0.84, 0.85], [0.2, 0.82, 0.76, 0.79]], values=[3, 9, 27, 81])
    assert curve.best == 27
    error = np.std([0.80, 0.84, 0.76], ddof=1) / np.sqrt(3)
    assert 0.80 - error > 0.74  # so 9 is not within one standard error
    assert curve.simplest == 27
    wider = curve_of([[0.1, 0.70, 0.90, 0.75], [0.3, 0.70, 0.84, 0.85], [0.2, 0.82, 0.66, 0.79]], values=[3, 9, 27, 81])
    assert np.std([0.90, 0.84, 0.66], ddof=1) / np.sqrt(3) > 0.06
    assert (wider.best, wider.simplest) == (27, 9)
    assert curve_of([[0.1, 0.5, 0.4]]).simplest == 1  # a single fold has no spread


def test_a_point_without_scores_is_not_the_best():
    curve = curve_of([[np.nan, 0.5, 0.7], [0.9, 0.5, 0.6]], values=[1, 2, 4])
    assert (curve.best, curve.simplest) == (4, 4)
    with pytest.raises(ValueError, match="All losses are NaN"):
        _ = curve_of([[np.nan, np.nan]]).best


def test_intervals_are_corrected_for_shared_rows():
    scores = np.random.default_rng(0).normal(size=(5, 3))
    curve = curve_of(scores, cls=ValidationCurve, param_name="alpha")
    mean, s = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    reach = t.ppf(0.95, 4) * s * np.sqrt(1 / 5 + 2 / 8)  # Nadeau & Bengio (2003): 2 rows held out, 8 fitted
    assert_allclose(curve.test_interval(0.9), [mean - reach, mean + reach], rtol=1e-12)
    assert_allclose(curve.train_interval(0.9), [mean - reach, mean + reach], rtol=1e-12)
    assert_allclose(curve.test_standard_errors, s / np.sqrt(5), rtol=1e-12)


@pytest.mark.parametrize("name", ["train_scores", "test_scores"])
def test_changed_scores_and_leaks_are_refused(name):
    X, y = numbers(0)
    curve = learning_curve(Ridge(), X, y, random_state=0)
    changed = getattr(curve, name).copy()
    changed[1, 2] *= 1.01
    assert len(replace(curve, **{name: changed}).certify(X, y).failed) == 1
    rows = [own.copy() for own in curve.rows]
    rows[0][-1] = np.r_[rows[0][-1], curve.splits[0][1][:1]]
    assert [check.name for check in replace(curve, rows=rows).certify(X, y).failed] == ["rows on both sides"]


def test_fits_of_other_rows_than_is_claimed_are_refused():
    X, y = numbers(0)
    learned = learning_curve(Ridge(), X, y, random_state=0)
    tuned = validation_curve(Ridge(), X, y, param_name="alpha", param_range=[1.0, 0.1], random_state=0)
    fewer = [(train[5:], test) for train, test in learned.splits]
    renamed = replace(learned, values=[size + 1 for size in learned.values])
    for curve in (renamed, replace(learned, splits=fewer), replace(tuned, splits=fewer)):
        assert [check.name for check in curve.certify(X, y).failed] == ["rows of the fits"]


def test_what_draws_anew_is_said_to_be_unprovable():
    X, y = numbers(0)
    curve = learning_curve(RandomForestRegressor(5), X, y, cv=3, random_state=0)
    for check in ("scores of held-out rows", "scores of the fits"):
        claim = curve.certify(X, y)[check].claim
        assert claim == "cannot be proved: random_state is None, so every fit draws anew; give it a number"


def test_scores_that_explode_hide_no_others():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(20, 1))
    y = X[:, 0] ** 3 + rng.normal(size=20)
    curve = validation_curve(PolynomialRegression(), X, y, param_name="degree", param_range=[1, 3, 15], random_state=0)
    assert curve.test_means[2] < -1e9
    assert curve.certify(X, y).holds
    for name, check in (("test_scores", "scores of held-out rows"), ("train_scores", "scores of the fits")):
        for point in range(3):
            scores = getattr(curve, name).copy()
            scores[:, point] *= 1.01
            assert [each.name for each in replace(curve, **{name: scores}).certify(X, y).failed] == [check]


def test_an_error_names_its_fold_and_point():
    X, y = numbers(0)
    with pytest.raises(ValueError, match="max_depth") as raised:
        validation_curve(DecisionTreeRegressor(), X, y, param_name="max_depth", param_range=[2, -1], cv=KFold(5))
    assert raised.value.__notes__ == ["In fold 0, fitting DecisionTreeRegressor(max_depth=-1) to 40 rows."]


def test_errors_say_what_to_do():
    X, y = numbers(0)
    with pytest.raises(ValueError, match="Ridge has no parameter 'lambda'"):
        validation_curve(Ridge(), X, y, param_name="lambda", param_range=[1.0])
    for values in ([], None, 3):
        with pytest.raises(ValueError, match="param_range must hold"):
            validation_curve(Ridge(), X, y, param_name="alpha", param_range=values)
    with pytest.raises(ValueError, match="needs a table in memory"):
        learning_curve(Ridge(), "rows.parquet", y)
