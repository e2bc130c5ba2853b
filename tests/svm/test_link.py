"""Probabilities of machines: valid, calibrated on rows not seen, and never of another opinion than the prediction."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from lemmata.svm import SVC
from lemmata.svm.link import fit_link, folds_of


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_the_most_probable_class_is_predicted(n_classes, seed):
    X, y = make_classification(300, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=seed)
    model = SVC(probability=True).fit(X[:150], y[:150])
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    assert (P >= 0).all()
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))


def test_probabilities_are_worth_something():
    X, y = make_classification(1200, 6, n_informative=4, flip_y=0.2, random_state=0)
    X, new, y, truth = train_test_split(X, y, random_state=0, test_size=0.5)
    model = SVC(probability=True).fit(X, y)
    P = model.predict_proba(new)
    scores = model.decision_function(new)
    platt = minimize(lambda p: log_loss(truth, expit(p[0] * scores + p[1])), [1.0, 0.0]).fun  # even with the truth in hand
    assert log_loss(truth, P) < platt + 0.03
    assert log_loss(truth, P) < log_loss(truth, expit(5 * scores)) - 0.1


def test_the_link_has_the_largest_likelihood():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=400)
    labels = (rng.uniform(size=400) < expit(np.where(scores > 0, 2.5, 0.8) * scores)).astype(int)
    weight = rng.integers(1, 4, 400).astype(float)
    slopes = fit_link(scores, labels, weight, 2)

    def loss(s):
        return -weight @ np.log(expit(np.where(labels == 1, 1, -1) * np.where(scores > 0, s[0], s[1]) * scores))

    assert loss(slopes) <= minimize(loss, [1.0, 1.0]).fun + 1e-3  # the prior of a thousandth of a row
    np.testing.assert_allclose(slopes, [2.5, 0.8], atol=0.6)  # two standard errors at 400 rows
    np.testing.assert_allclose(fit_link(np.repeat(scores, weight.astype(int)), np.repeat(labels, weight.astype(int)),
                                        np.ones(int(weight.sum())), 2), slopes, rtol=1e-7)  # fmt: skip


def test_scores_that_separate_leave_slopes_finite():
    slopes = fit_link(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]), np.ones(4), 2)
    assert np.isfinite(slopes).all()
    assert (slopes > 1).all()


def test_equal_rows_are_left_out_together_and_classes_are_spread():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(50, 2)), 3, axis=0)
    labels = np.repeat(np.arange(50) % 2, 3)
    fold = folds_of(X, labels, 2)
    assert (fold.reshape(50, 3) == fold[::3, None]).all()
    assert (np.bincount(fold[labels == 0]) == 15).all()


def test_a_weight_is_repetition_for_probabilities_too():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = SVC(probability=True).fit(X, y, sample_weight=weight.astype(float))
    repeated = SVC(probability=True).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


def test_the_certificate_watches_the_link():
    X, y = make_classification(120, 4, random_state=0, flip_y=0.2)
    model = SVC(probability=True).fit(X, y)
    assert model.certify(X, y).holds
    model.link_ = model.link_ * [1.01, 1.0]
    assert [check.name for check in model.certify(X, y).failed] == ["link"]


def test_without_probability_there_is_no_predict_proba():
    assert not hasattr(SVC(), "predict_proba")


def test_probabilities_that_were_not_fitted_are_asked_for_in_vain():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="fit it again with probability=True"):
        SVC().fit(X, y).set_params(probability=True).predict_proba(X)
