"""The one-standard-error rule: against the rule done by hand, and inside scikit-learn's search."""

import pickle

import numpy as np
import pytest
from scipy.stats import sem
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from lemmata.decomposition.select_rank import RankCurve
from lemmata.linear_model import Ridge
from lemmata.model_selection import one_standard_error


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_rule_done_by_hand(seed):
    rng = np.random.default_rng(seed)
    order, losses = rng.permutation(8), rng.normal(size=(6, 8)) + np.linspace(0, 0.8, 8)
    means = losses.mean(axis=0)
    limit = means.min() + sem(losses[:, means.argmin()])  # SciPy's standard error
    assert one_standard_error(losses, order) == min(k for k, mean in zip(order, means, strict=True) if mean <= limit)
    assert one_standard_error(losses, order, simpler="larger") == max(
        k for k, mean in zip(order, means, strict=True) if mean <= limit
    )
    ascending = np.argsort(order)
    assert one_standard_error(losses, order) == RankCurve(np.sort(order), losses[:, ascending]).simplest


def test_the_error_is_that_of_the_best_and_not_of_others():
    losses = np.array([[1.5, 1.0], [1.4, 1.0], [1.3, 1.0]])  # the best has no spread, so nothing else is near it
    assert one_standard_error(losses, [1, 2]) == 2
    assert one_standard_error(losses + np.outer([-0.9, 0.0, 0.9], [0, 1]), [1, 2]) == 1
    # its standard error, 0.9/√3 = 0.52, not its standard deviation, 0.9
    assert one_standard_error([[1.6, 0.1], [1.6, 1.0], [1.6, 1.9]], [1, 2]) == 2


def test_one_repeat_has_no_error_and_equals_are_the_simplest():
    assert one_standard_error([3.0, 1.0, 1.0, 2.0], [4, 3, 2, 1]) == 2
    assert one_standard_error([3.0, 1.0], [np.int64(1), np.int64(2)]) == 2
    assert isinstance(one_standard_error([3.0, 1.0], np.array([1, 2])), int)


def test_models_that_failed_are_not_chosen():
    losses = np.array([[np.nan, 2.0, 1.0], [0.0, 2.0, 1.0]])
    assert one_standard_error(losses, [1, 2, 3]) == 3
    for endless in (np.inf, -np.inf):
        losses[0, 0] = endless
        assert one_standard_error(losses, [1, 2, 3]) == 3
    with pytest.raises(ValueError, match="All losses are NaN or infinite"):
        one_standard_error([[np.nan, -np.inf], [1.0, np.inf]], [1, 2])


def test_no_limit_is_the_most_complex():
    flat = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert one_standard_error(flat, [None, 3]) == 3
    assert one_standard_error(flat, [None, 3], simpler="larger") is None


@pytest.mark.parametrize("cv", [3, 5, 10])
def test_a_search_takes_the_simplest_candidate_within_one_error(cv):
    X, y = load_breast_cancer(return_X_y=True)
    depths = [None, 6, 5, 4, 3, 2, 1]
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": depths}, cv=cv, refit=one_standard_error("max_depth")
    ).fit(X, y)
    scores = np.array([search.cv_results_[f"split{i}_test_score"] for i in range(cv)])
    best = scores.mean(axis=0).argmax()
    limit = scores.mean(axis=0)[best] - sem(scores[:, best])
    allowed = [np.inf if d is None else d for d, mean in zip(depths, scores.mean(axis=0), strict=True) if mean >= limit]
    assert search.best_params_["max_depth"] == min(allowed)
    assert search.best_estimator_.get_depth() <= min(allowed)
    assert search.predict(X).shape == y.shape


def test_of_equally_simple_candidates_the_best_is_taken():
    X, y = load_diabetes(return_X_y=True)
    grid = {"alpha": [1e-3, 1e-1], "fit_intercept": [False, True]}
    rule = one_standard_error(param="alpha", simpler="larger")
    search = GridSearchCV(Ridge(), grid, refit=rule).fit(X, y)
    assert search.best_params_ == {"alpha": 0.1, "fit_intercept": True}  # without an intercept it is hopeless


def test_the_rule_is_copied_and_stored_with_the_search():
    rule = one_standard_error(param="alpha", simpler="larger")
    search = clone(GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 10.0]}, refit=pickle.loads(pickle.dumps(rule))))
    assert search.fit(*load_diabetes(return_X_y=True)).best_params_ == {"alpha": 0.1}


def test_one_of_several_scores_decides():
    X, y = load_diabetes(return_X_y=True)
    scoring = {"r2": "r2", "error": "neg_mean_absolute_error"}
    rule = one_standard_error("alpha", simpler="larger", scoring="error")
    search = GridSearchCV(Ridge(), {"alpha": [0.01, 1.0]}, scoring=scoring, refit=rule).fit(X, y)
    scores = -np.array([search.cv_results_[f"split{i}_test_error"] for i in range(5)])
    assert search.best_params_["alpha"] == one_standard_error(scores, [0.01, 1.0], simpler="larger")
    with pytest.raises(ValueError, match="no scores named 'score'"):
        GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=scoring, refit=one_standard_error("alpha")).fit(X, y)


def test_errors_say_what_to_do():
    for arguments, options, match in (
        (([1.0, 2.0], [1, 2]), {"simpler": "less"}, "simpler must be 'smaller' or 'larger', got 'less'"),
        (([1.0, 2.0], [1, 2, 3]), {}, r"one column for each of the 3 orders, got the shape \(1, 2\)"),
        (([1.0, 2.0], ["a", "b"]), {}, "An order is a number, or None for no limit; got 'a'"),
        (("alpha", [1]), {}, "not both"),
        (("alpha",), {"param": "alpha"}, "not both"),
        ((), {}, "or the name of a parameter"),
        (([1.0, 2.0], 2), {}, "order must hold one number for each of several models, got 2"),
        ((["low", "high"], [1, 2]), {}, "losses must be numbers"),
        ((np.empty((0, 2)), [1, 2]), {}, "one column for each of the 2 orders"),
    ):
        with pytest.raises(ValueError, match=match):
            one_standard_error(*arguments, **options)
    with pytest.raises(ValueError, match="does not vary 'depth'; it varies \\['alpha'\\]"):
        GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, refit=one_standard_error("depth")).fit(*load_diabetes(return_X_y=True))
