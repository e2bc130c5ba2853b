"""Prior correction against Bayes' rule in fractions and models trained on the right priors; EM against a direct maximum."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from lemmata.decision import Decide, bayes_risk, correct_priors, estimate_priors
from lemmata.linear_model import LogisticRegression


def test_the_correction_is_bayes_rule():
    likelihood = [Fraction(1, 7), Fraction(3, 5), Fraction(2, 9)]

    def posterior(priors):
        joint = [p * q for p, q in zip(priors, likelihood, strict=True)]
        return [float(j / sum(joint)) for j in joint]

    old = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    new = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    found = correct_priors(posterior(old), [float(p) for p in old], [float(p) for p in new])
    np.testing.assert_allclose(found, posterior(new), rtol=1e-14)
    np.testing.assert_allclose(correct_priors([found], new, old)[0], posterior(old), rtol=1e-14)


def world(priors, n, seed):
    """Draw two Gaussian classes with a common covariance, for which the logistic model is the truth."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < priors[1]).astype(int)
    return rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [1.5, -0.7]])[y], y


def test_a_corrected_model_costs_what_one_trained_on_the_right_priors_does():
    costs, new = np.array([[0.0, 10.0], [1.0, 0.0]]), [0.9, 0.1]
    X, y = world([0.4, 0.6], 100_000, 0)
    shifted = Decide(LogisticRegression(C=np.inf), costs, priors=new).fit(X, y)
    right = Decide(LogisticRegression(C=np.inf), costs).fit(*world(new, 100_000, 1))
    wrong = Decide(LogisticRegression(C=np.inf), costs).fit(X, y)
    test = world(new, 200_000, 2)
    assert shifted.cost(*test) == pytest.approx(right.cost(*test), rel=0.02)  # the bar
    assert wrong.cost(*test) > 1.1 * right.cost(*test)
    # under its own posterior a model expects what it then meets: 5 standard errors of a mean of costs up to 10
    assert bayes_risk(shifted.predict_proba(test[0]), costs).mean() == pytest.approx(
        shifted.cost(*test), abs=5 * 2 / 200_000**0.5
    )
    np.testing.assert_allclose(shifted.training_priors_, [0.4, 0.6], atol=0.01)
    np.testing.assert_array_equal(shifted.priors_, new)


def test_priors_are_found_without_labels():
    X, y = world([0.5, 0.5], 50_000, 0)
    model = LogisticRegression(C=np.inf).fit(X, y)
    X_new, _ = world([0.85, 0.15], 50_000, 1)
    posterior = model.predict_proba(X_new)
    found = estimate_priors(posterior, np.bincount(y) / len(y))
    np.testing.assert_allclose(found, [0.85, 0.15], atol=0.01)  # 4 standard errors of such a share, at this overlap

    def loss(p):
        return -np.log(posterior @ (np.array([1 - p, p]) / (np.bincount(y) / len(y)))).sum()

    direct = minimize_scalar(loss, bounds=(0.01, 0.99), method="bounded", options={"xatol": 1e-10}).x
    assert found[1] == pytest.approx(direct, abs=1e-6)


def test_a_class_that_vanished_gets_nothing():
    posterior = np.array([[0.9, 0.05, 0.05], [0.6, 0.3, 0.1], [0.7, 0.25, 0.05]])
    found = estimate_priors(posterior, [1 / 3] * 3)
    np.testing.assert_allclose(found, [1, 0, 0], atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="prior shares did not converge"):
        estimate_priors(posterior, [1 / 3] * 3, max_iter=2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ([0.5, 0.5], [0.5, 0.6], "new must be positive and sum to one"),
        ([0.5, 0.6], [0.5, 0.5], "old must be positive and sum to one"),
        ([0.5, 0.5], [1.0, 0.0], "positive"),
        ([0.5, 0.5], [0.5, 0.3, 0.2], r"2 numbers, one for each class; got the shape \(3,\)"),
        ([0.5, 0.5], ["a", "b"], "must be numbers"),
        ([0.5, 0.5], [0.5, np.nan], "positive"),
    ],
)
def test_nonsense_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        correct_priors([0.2, 0.8], old, new)
