"""`LinearDiscriminantAnalysis`, against scikit-learn, R's published numbers and closed forms."""

from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as Peer
from sklearn.exceptions import ConvergenceWarning

from discriminant_analysis.naive_classes import drawn, joint, log_posterior
from lemmata.discriminant_analysis import LinearDiscriminantAnalysis


def same_up_to_sign(a, b, **tolerance):
    assert_allclose(a * np.sign((a * b).sum(axis=0)), b, **tolerance)


@pytest.mark.item("NBR-05")
@pytest.mark.parametrize("k", [2, 3, 6])
def test_it_agrees_with_scikit_learn(k):
    X, y, _ = drawn(n=400, k=k)
    ours, peer = LinearDiscriminantAnalysis().fit(X, y), Peer(store_covariance=True).fit(X, y)
    for name in ("priors_", "means_", "covariance_", "xbar_", "coef_", "intercept_", "explained_variance_ratio_"):
        assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-7, atol=1e-9, err_msg=name)
    same_up_to_sign(ours.scalings_, peer.scalings_, rtol=1e-7, atol=1e-9)
    same_up_to_sign(ours.transform(X), peer.transform(X), rtol=1e-7, atol=1e-8)
    assert_allclose(ours.decision_function(X), peer.decision_function(X), rtol=1e-8, atol=1e-8)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=1e-7, atol=1e-12)
    assert_array_equal(ours.predict(X), peer.predict(X))
    assert list(ours.get_feature_names_out()) == list(peer.get_feature_names_out())


@pytest.mark.parametrize("shrinkage", ["auto", 0.0, 0.3, 1.0])
@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_shrinkage_is_that_of_scikit_learn(shrinkage, solver):
    X, y, _ = drawn(n=80)
    ours = LinearDiscriminantAnalysis(shrinkage=shrinkage).fit(X, y)
    peer = Peer(solver, shrinkage=shrinkage).fit(X, y)
    assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-10, atol=1e-12)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=1e-8, atol=1e-12)
    assert ours.certify(X, y).holds
    ours.transform(X)  # which one of the peer's solvers does not


def test_priors_move_the_boundary_and_not_the_covariance():
    X, y, _ = drawn()
    given = [0.5, 0.25, 0.25]
    ours, peer = LinearDiscriminantAnalysis(priors=given).fit(X, y), Peer(priors=given).fit(X, y)
    assert_array_equal(ours.covariance_, LinearDiscriminantAnalysis().fit(X, y).covariance_)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=1e-8, atol=1e-12)  # the default solver does the same
    assert ours.certify(X, y).holds


def test_iris_by_r():
    """The directions that MASS::lda prints for the iris, with divisor n − 3, and the share of each ("proportion of trace")."""
    X, y = load_iris(return_X_y=True)
    published = [[0.8293776, 0.02410215], [1.5344731, 2.16452123], [-2.2012117, -0.93192121], [-2.8104603, 2.83918785]]
    model = LinearDiscriminantAnalysis().fit(X, y)
    same_up_to_sign(model.scalings_ * np.sqrt(147 / 150), np.array(published), rtol=1e-6)
    assert_allclose(model.explained_variance_ratio_, [0.9912, 0.0088], atol=5e-5)
    assert (model.predict(X) != y).sum() == 3


def test_directions_solve_the_generalized_eigenproblem():
    X, y, _ = drawn(k=4, d=5)
    model = LinearDiscriminantAnalysis().fit(X, y)
    away = model.means_ - model.xbar_
    between = (model.priors_ * away.T) @ away
    values, vectors = eigh(between, model.covariance_)
    same_up_to_sign(model.scalings_, vectors[:, ::-1][:, :3], rtol=1e-7, atol=1e-9)
    assert_allclose(model.explained_variance_ratio_, values[::-1][:3] / values.sum(), rtol=1e-8)
    Z = LinearDiscriminantAnalysis(n_components=2).fit(X, y).transform(X)
    assert Z.shape == (len(X), 2)
    within = sum((Z[y == c] - Z[y == c].mean(axis=0)).T @ (Z[y == c] - Z[y == c].mean(axis=0)) for c in range(4)) / len(X)
    assert_allclose(within, np.eye(2), atol=1e-10)
    with pytest.raises(ValueError, match=r"n_components must be at most .* = 3, got 4"):
        LinearDiscriminantAnalysis(n_components=4).fit(X, y)


@pytest.mark.parametrize("k", [2, 3])
def test_scores_with_holes_are_those_of_what_is_seen(k):
    X, y, _ = drawn(k=k)
    holes = drawn(k=k, share=0.25)[0]
    model = LinearDiscriminantAnalysis().fit(X, y)
    matrices = np.repeat(model.covariance_[None], k, axis=0)
    assert_allclose(
        model.predict_log_proba(holes), log_posterior(holes, model.priors_, model.means_, matrices), atol=1e-10, rtol=1e-11
    )
    # The linear score of what is seen, by its formula with the rows and columns of the rest dropped.
    scores = model.decision_function(holes)
    for x, score in zip(holes, scores, strict=True):
        o = ~np.isnan(x)
        away = (model.means_ - model.xbar_)[:, o]
        weights = np.linalg.solve(model.covariance_[np.ix_(o, o)], away.T).T if o.any() else away
        own = weights @ (x - model.xbar_)[o] - 0.5 * (weights * away).sum(axis=1) + np.log(model.priors_)
        assert_allclose(score, own[1] - own[0] if k == 2 else own, rtol=1e-8, atol=1e-8)
    # A block without holes and the same rows in a block with one agree.
    mixed = np.vstack([X, holes[:1]])
    assert_allclose(model.decision_function(mixed)[:-1], model.decision_function(X), rtol=1e-8, atol=1e-8)
    assert_allclose(model.predict_proba(mixed)[:-1], model.predict_proba(X), rtol=1e-9, atol=1e-13)


def test_transform_fills_by_the_mean_given_the_rest():
    X, y, _ = drawn()
    model = LinearDiscriminantAnalysis().fit(X, y)
    row = X[:1].copy()
    row[0, 2] = np.nan
    o = ~np.isnan(row[0])
    slope = np.linalg.solve(model.covariance_[np.ix_(o, o)], model.covariance_[o, 2])
    guess = model.means_[:, 2] + (row[0, o] - model.means_[:, o]) @ slope
    row[0, 2] = model.predict_proba(row)[0] @ guess
    lacking = row.copy()
    lacking[0, 2] = np.nan
    assert_allclose(model.transform(lacking), model.transform(row), rtol=1e-9)


def test_joint_densities_hold_what_the_scores_leave_out():
    X, y, _ = drawn()
    model = LinearDiscriminantAnalysis().fit(X, y)
    matrices = np.repeat(model.covariance_[None], 3, axis=0)
    assert_allclose(model.joint_log_likelihood(X), joint(X, model.priors_, model.means_, matrices), rtol=1e-9, atol=1e-9)
    rest = model.decision_function(X) - model.joint_log_likelihood(X)
    assert_allclose(rest, rest[:, :1] + np.zeros(3), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 4])
def test_what_follows_from_the_parameters_is_checked(k, seed):
    X, y, _ = drawn(k=k, seed=seed)
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.certify(X, y).holds, str(model.certify(X, y))
    rng = np.random.default_rng(seed)
    for name in ("coef_", "intercept_", "scalings_", "xbar_", "explained_variance_ratio_"):
        kept = getattr(model, name)
        u = rng.normal(size=kept.shape)
        setattr(model, name, kept + 0.01 * np.linalg.norm(kept) * u / np.linalg.norm(u))
        assert not model.certify(X, y).holds, name
        setattr(model, name, kept)


def test_directions_that_are_turned_are_refused():
    """Turned among themselves they still have unit variance and no correlation, but the means are no longer widest apart."""
    X, y, _ = drawn(k=4)
    model = LinearDiscriminantAnalysis().fit(X, y)
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(0.01), -np.sin(0.01)], [np.sin(0.01), np.cos(0.01)]]
    model.scalings_ = model.scalings_ @ turn
    assert "discriminants" in [check.name for check in model.certify(X, y).failed]


def test_a_singular_covariance_leaves_what_others_say():
    """Directions in which classes do not vary are raised to the floor and no others, so a copy of a column changes nothing."""
    X, y, _ = drawn(k=3)
    with pytest.warns(ConvergenceWarning, match="singular"):
        twice = LinearDiscriminantAnalysis().fit(np.column_stack([X, X[:, 0]]), y)
    once = LinearDiscriminantAnalysis().fit(X, y)
    # 1e-7: what the rounding of the means, 1e-16 of their distance, becomes over the root of the floor and squared
    assert_allclose(twice.predict_proba(np.column_stack([X, X[:, 0]])), once.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_an_offset_of_the_table_costs_no_digits(k):
    X, y, _ = drawn(k=k, d=2)
    X = np.round(X * 1024) / 1024  # so that the offset itself is exact
    far = LinearDiscriminantAnalysis().fit(X + 2.0**27, y)
    assert far.certify(X + 2.0**27, y).holds
    near = LinearDiscriminantAnalysis().fit(X, y)
    # 1e-6: what the means, 2**27 and more, lose to rounding when they are stored
    assert_allclose(far.predict_log_proba(X + 2.0**27), near.predict_log_proba(X), rtol=1e-6, atol=1e-6)
    matrices = np.repeat(far.covariance_[None], k, axis=0)
    expected = log_posterior(X + 2.0**27, far.priors_, far.means_, matrices)
    assert_allclose(far.predict_log_proba(X + 2.0**27), expected, rtol=1e-9, atol=1e-10)


def test_a_center_that_is_off_is_refused_also_far_from_zero():
    X, y, _ = drawn(k=2, d=1)
    model = LinearDiscriminantAnalysis().fit(X + 1e8, y)
    model.xbar_ = model.xbar_ + 40
    assert "xbar" in [check.name for check in model.certify(X + 1e8, y).failed]


def test_it_takes_the_parameters_of_scikit_learn_in_their_order():
    X, y, _ = drawn(k=3)
    ours, theirs = (signature(cls).parameters for cls in (LinearDiscriminantAnalysis, Peer))
    assert list(ours)[:6] == list(theirs)[:6]
    assert [ours[name].default for name in list(ours)[:6]] == [theirs[name].default for name in list(ours)[:6]]
    expected = LinearDiscriminantAnalysis().fit(X, y).predict_log_proba(X)
    for solver in ("svd", "lsqr", "eigen"):
        model = LinearDiscriminantAnalysis(solver, None, None, 1, True, 1e-3).fit(X, y)
        assert_array_equal(model.predict_log_proba(X), expected)
    with pytest.raises(ValueError, match="'solver' parameter"):
        LinearDiscriminantAnalysis("newton").fit(X, y)


@pytest.mark.parametrize("k", [2, 3])
def test_a_class_without_a_chance_hides_no_intercept(k):
    X, y, _ = drawn(k=k)
    model = LinearDiscriminantAnalysis(priors=[0.0, *[1 / (k - 1)] * (k - 1)]).fit(X, y)
    assert model.certify(X, y).holds
    assert (model.predict(X) > 0).all()
    model.intercept_[-1] = model.intercept_[-1] * 1.01 if k == 3 else 0.0
    assert "intercept" in [check.name for check in model.certify(X, y).failed]


def test_what_is_too_large_is_refused_without_a_warning():
    X, y, _ = drawn()
    for scale in (1e160, 1e200, 1e306):
        with pytest.raises(ValueError, match="The squares of X are beyond the range of numbers"):
            LinearDiscriminantAnalysis().fit(X * scale, y)
