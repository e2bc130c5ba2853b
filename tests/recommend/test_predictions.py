"""What follows from a fit: variances by sampling, unknown users, recommendations, similar items, and who is new."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from lemmata.linear_model import BayesianLinearRegression
from lemmata.recommend import ProbabilisticMatrixFactorization
from recommend.problems import SETTINGS, ratings


@pytest.fixture(scope="module")
def fit():
    X, y = ratings()
    return X, y, ProbabilisticMatrixFactorization(**SETTINGS, noise_variance=0.2).fit(X, y)


def test_the_variance_is_that_of_a_product_of_normals(fit):
    X, _, model = fit
    rng = np.random.default_rng(0)
    sides = []
    for column, own, other in ((0, "user", "item"), (1, "item", "user")):
        here = X[:, column] == 4
        j = X[here, 1 - column]
        design = np.column_stack([getattr(model, f"{other}_factors_")[j], np.ones(len(j))])
        precision = design.T @ design / 0.2 + 2.0 * np.eye(4)
        mean = np.append(getattr(model, f"{own}_factors_")[4], getattr(model, f"{own}_biases_")[4])
        sides.append(rng.multivariate_normal(mean, np.linalg.inv(precision), size=400_000))
    u, v = sides
    drawn = model.mean_ + u[:, 3] + v[:, 3] + (u[:, :3] * v[:, :3]).sum(axis=1) + np.sqrt(0.2) * rng.standard_normal(len(u))
    law = model.predict_dist([(4, 4)])
    np.testing.assert_allclose(law.mean(), drawn.mean(), atol=5 * drawn.std() / np.sqrt(len(drawn)))
    np.testing.assert_allclose(law.var(), drawn.var(), rtol=5 * np.sqrt(2 / len(drawn)))  # five standard errors


def test_a_user_given_the_items_is_a_bayesian_regression(fit):
    X, y, model = fit
    here = X[:, 0] == 7
    design = np.column_stack([model.item_factors_[X[here, 1]], np.ones(here.sum())])
    twin = BayesianLinearRegression(prior_precision=2.0, noise_variance=0.2, fit_intercept=False)
    twin.fit(design, y[here] - model.mean_ - model.item_biases_[X[here, 1]])
    np.testing.assert_allclose(0.2 * model._inverses("user", np.array([7]))[0], twin.covariance_, rtol=1e-8, atol=1e-12)


def test_unknown_ids_get_the_mean_and_the_known_bias(fit):
    _, _, model = fit
    known, stranger, both = model.predict([(0, 3), (99, 3), (99, 99)])
    assert both == model.mean_
    np.testing.assert_allclose(stranger, model.mean_ + model.item_biases_[3])
    assert known != stranger
    variances = model.predict_dist([(0, 3), (99, 3), (99, 99)]).var()
    assert variances[0] < min(variances[1:])
    np.testing.assert_allclose(variances[2], 0.2 + 2 / 2.0 + 3 / 2.0**2)  # noise, two biases, three products


def test_recommendations_are_the_best_of_what_was_not_seen(fit):
    X, _, model = fit
    items, scores = model.recommend(5, n=4)
    unseen = np.setdiff1d(np.arange(25), X[X[:, 0] == 5, 1])
    expected = model.predict([(5, j) for j in unseen])
    assert items.tolist() == unseen[np.argsort(-expected)[:4]].tolist()
    np.testing.assert_allclose(scores, np.sort(expected)[::-1][:4], rtol=1e-12)
    many, of_many = model.recommend([5, 0], n=4)
    assert many.shape == of_many.shape == (2, 4)
    assert many[0].tolist() == items.tolist()
    assert len(model.recommend(5, n=100)[0]) == len(unseen)
    assert len(model.recommend(5, n=100, exclude_seen=False)[0]) == 25
    with pytest.raises(ValueError, match="no user 77; recommend_for"):
        model.recommend(77)


def test_similar_items_by_cosine(fit):
    _, _, model = fit
    V = model.item_factors_
    cosines = V @ V[2] / np.linalg.norm(V, axis=1) / np.linalg.norm(V[2])
    items, values = model.similar_items(2, n=3)
    order = [j for j in np.argsort(-cosines) if j != 2][:3]
    assert items.tolist() == order
    np.testing.assert_allclose(values, cosines[order], rtol=1e-12)


@pytest.mark.parametrize("implicit", [False, True])
def test_folding_in_known_users_and_items_gives_them_back(implicit):
    X, y = ratings()
    y = np.exp(y / 2) if implicit else y
    model = ProbabilisticMatrixFactorization(**SETTINGS, noise_variance=0.5, implicit=implicit, confidence=2.0, tol=1e-9).fit(
        X, y
    )
    here = X[:, 0] < 3
    new = model.fold_in_users(X[here], y[here])
    assert new.ids.tolist() == [0, 1, 2]
    np.testing.assert_allclose(new.factors, model.user_factors_[:3], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new.biases, model.user_biases_[:3], rtol=1e-5, atol=1e-6)
    here = X[:, 1] == 9
    new = model.fold_in_items(X[here], y[here])
    np.testing.assert_allclose(new.factors, model.item_factors_[[9]], rtol=1e-5, atol=1e-6)
    rated = X[:, 0] == 0
    expected, scores = model.recommend(0, n=5)
    items, others = model.recommend_for(X[rated, 1], y[rated], n=5)
    assert items.tolist() == expected.tolist()
    np.testing.assert_allclose(others, scores, rtol=1e-5)
    with pytest.raises(ValueError, match="no item 77; fold_in_items"):
        model.fold_in_users([("new", 77)], [3.0])


def test_text_ids():
    X, y = ratings()
    names = np.array([[f"user {u}", f"item {i}"] for u, i in X])
    model = ProbabilisticMatrixFactorization(**SETTINGS).fit(names, y)
    assert model.users_[0] == "user 0"
    assert model.recommend("user 3", n=2)[0].dtype.kind == "U"
    assert model.recommend_for(["item 0", "item 1"], [5.0, 1.0], n=2)[0].shape == (2,)
    assert model.certify(names, y).holds


def test_without_kept_ratings():
    X, y = ratings()
    model = ProbabilisticMatrixFactorization(**SETTINGS, keep_ratings=False).fit(X, y)
    assert model.seen_ is None
    assert len(model.recommend(0, exclude_seen=False)[0]) == 10
    for call in (lambda: model.recommend(0), lambda: model.predict_dist(X)):
        with pytest.raises(ValueError, match="keep_ratings=True"):
            call()
    assert model.certify(X, y).holds


def test_scores_of_a_sparse_matrix():
    X, y = ratings()
    matrix = csr_array((y, (X[:, 0], X[:, 1])), shape=(40, 25))
    model = ProbabilisticMatrixFactorization(**SETTINGS).fit(matrix)
    np.testing.assert_allclose(model.score(matrix), model.score(X, y), rtol=1e-12)
    np.testing.assert_allclose(model.rmse(matrix), np.sqrt(np.mean((model.predict(X) - y) ** 2)), rtol=1e-12)
    np.testing.assert_allclose(model.item_scores([3])[0], model.predict([(3, j) for j in range(25)]), rtol=1e-12)
