"""`GaussianNB`, against scikit-learn, SciPy and products of densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.naive_bayes import GaussianNB as Peer

from discriminant_analysis.naive_classes import drawn, joint
from lemmata.discriminant_analysis import GaussianBayes
from lemmata.naive_bayes import GaussianNB


@pytest.mark.item("NBR-06")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_agrees_with_scikit_learn(weighted, dtype):
    X, y, weight = drawn()
    X = X.astype(dtype)
    # scikit-learn's floor does not know weights, and its sums of float32 are float32
    options = {"sample_weight": weight.astype(float)} if weighted else {}
    smoothing = 0.0 if weighted else 1e-9
    ours = GaussianNB(var_smoothing=smoothing).fit(X, y, **options)
    peer = Peer(var_smoothing=smoothing).fit(X.astype(float), y, **options)
    for name in ("class_count_", "class_prior_", "theta_", "var_", "epsilon_"):
        assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-10, err_msg=name)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-5}
    assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X.astype(float)), **tolerance)
    assert_allclose(ours.predict_joint_log_proba(X), peer.predict_joint_log_proba(X.astype(float)), **tolerance)
    assert_array_equal(ours.predict(X), peer.predict(X.astype(float)))
    assert ours.predict_proba(X).dtype == dtype


@pytest.mark.item("NBR-06")
def test_a_missing_entry_is_a_factor_less():
    X, y, _ = drawn(share=0.2)
    model = GaussianNB().fit(X, y)
    for c in range(3):
        for f in range(4):
            values = X[y == c, f][~np.isnan(X[y == c, f])]
            assert_allclose(model.theta_[c, f], values.mean(), rtol=1e-12)
            assert_allclose(model.var_[c, f], values.var() + model.epsilon_, rtol=1e-11)
    densities = norm.logpdf(X[:, None], model.theta_, np.sqrt(model.var_))
    expected = np.log(model.class_prior_) + np.where(np.isnan(X)[:, None], 0.0, densities).sum(axis=2)
    assert_allclose(model.joint_log_likelihood(X), expected, rtol=1e-12, atol=1e-10)
    assert model.certify(X, y).holds
    assert model.certify(X, y).kind == "proof"


@pytest.mark.item("NBR-06")
def test_on_independent_columns_it_is_the_full_classifier():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = rng.normal(size=(2000, 3)) * np.array([[1.0, 2.0, 0.5], [2.0, 1.0, 1.0]])[y] + y[:, None]
    naive = GaussianNB().fit(X, y)
    matrices = np.eye(3) * naive.var_[:, None]
    assert_allclose(naive.joint_log_likelihood(X), joint(X, naive.class_prior_, naive.theta_, matrices), rtol=1e-12, atol=1e-10)
    agree = (naive.predict(X) == GaussianBayes("full").fit(X, y).predict(X)).mean()
    assert agree > 0.98  # they differ by estimates of covariances that are 0
    same = GaussianBayes("diag", var_smoothing=0.0).fit(X, y)
    assert_array_equal(GaussianNB(var_smoothing=0.0).fit(X, y).var_, same.covariance_)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_learning_in_parts_is_learning_at_once(share):
    X, y, weight = drawn(share=share)
    whole = GaussianNB().fit(X, y, sample_weight=weight + 1)
    model = GaussianNB()
    for rows in np.array_split(np.argsort(y, kind="stable"), 4):
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weight[rows] + 1)
    for name in ("class_count_", "class_prior_", "theta_", "var_", "epsilon_"):
        assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-11, err_msg=name)
    assert model.certify(X, y, sample_weight=weight + 1).holds
    more = GaussianNB().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert_allclose(more.var_, GaussianNB().fit(X, y).var_, rtol=1e-11)


def test_a_class_that_is_still_to_come_has_no_chance():
    X, y, _ = drawn()
    rows = y < 2
    model = GaussianNB().partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert model.class_prior_[2] == 0
    assert (model.predict_proba(X)[:, 2] == 0).all()
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ValueError, match="not a class of the fit"):
        model.partial_fit(X, y + 5)
    with pytest.raises(ValueError, match="must name all classes"):
        GaussianNB().partial_fit(X, y)


def test_variances_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 2
    X = rng.normal(size=(1000, 2)) + y[:, None]
    far = X + 1e9
    exact = far - 1e9  # what is left of X
    near, moved = GaussianNB(var_smoothing=0.0).fit(exact, y), GaussianNB(var_smoothing=0.0).fit(far, y)
    assert_allclose(moved.var_, near.var_, rtol=1e-6)  # the mean is rounded to 1e-7 there, and no more is lost
    assert moved.certify(far, y).holds


def test_constant_columns():
    X, y, _ = drawn()
    X[:, 1] = 4.2
    model = GaussianNB().fit(X, y)
    assert_allclose(model.var_[:, 1], model.epsilon_, rtol=1e-15)
    without = GaussianNB().fit(np.delete(X, 1, axis=1), y)
    assert_allclose(model.predict_proba(X), without.predict_proba(np.delete(X, 1, axis=1)), rtol=1e-9, atol=1e-15)
    with pytest.raises(ValueError, match="set var_smoothing above 0"):
        GaussianNB(var_smoothing=0.0).fit(X, y)


def test_drawn_rows_have_the_law_that_was_fitted():
    X, y, _ = drawn()
    model = GaussianNB().fit(X, y)
    assert model.generative
    rows, labels = model.sample(20_000, random_state=1)
    again = GaussianNB().fit(rows, labels)
    errors = np.sqrt(model.var_ / again.class_count_[:, None])
    assert (np.abs(again.theta_ - model.theta_) < 5 * errors).all()  # five standard errors
    assert (np.abs(again.var_ / model.var_ - 1) < 5 * np.sqrt(2 / again.class_count_)[:, None]).all()
