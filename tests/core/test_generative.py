"""What follows from log p(x, y), against SciPy and by hand."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from lemmata.core.generative import class_shares, label_block, log_posterior_block, marginal_block, posterior_block
from lemmata.naive_bayes import BernoulliNB, GaussianNB

PRIOR = np.log([0.2, 0.5, 0.3])


def scores(X, weight):
    return X.copy()


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-12])
def test_bayes_rule_is_the_soft_maximum(scale):
    joint = np.random.default_rng(0).normal(size=(50, 3)) * scale - 700
    logs = log_softmax(joint, axis=1)
    np.testing.assert_allclose(posterior_block(joint, None, scores, [], PRIOR), np.exp(logs), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(log_posterior_block(joint, None, scores, [], PRIOR), logs, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(marginal_block(joint, None, scores, [], PRIOR), logsumexp(joint, axis=1), rtol=1e-14)
    p = posterior_block(joint, None, scores, [], PRIOR).astype(np.float32)
    np.testing.assert_array_equal(label_block(joint, None, scores, [], PRIOR, np.float32), p.argmax(axis=1))


def test_a_row_that_says_nothing_leaves_the_prior():
    never = np.full((2, 3), -np.inf)
    never[1, 0] = -5.0
    np.testing.assert_allclose(posterior_block(never, None, scores, [], PRIOR), [[0.2, 0.5, 0.3], [1, 0, 0]], rtol=1e-14)
    assert label_block(never, None, scores, [], PRIOR, np.float64).tolist() == [1, 0]
    assert marginal_block(never, None, scores, [], PRIOR).tolist() == [-np.inf, -5.0]


def test_priors_are_probabilities():
    counts = np.array([1.0, 3.0])
    np.testing.assert_allclose(class_shares([0.3333333, 0.6666667], counts), [1 / 3, 2 / 3], rtol=1e-6)
    for wrong in ([0.5, 0.51], [1.5, -0.5], [1.0], [[0.5, 0.5]], ["a", "b"], [np.nan, 0.5], 0.5):
        with pytest.raises(
            ValueError, match="priors must hold 2 numbers, one for each class, that are at least 0 and sum to 1"
        ):
            class_shares(wrong, counts)


@pytest.mark.parametrize("model", [GaussianNB(), BernoulliNB()], ids=repr)
def test_a_number_of_draws_is_a_whole_number(model):
    model.fit([[0.0], [1.0], [1.0], [0.0]], [0, 0, 1, 1])
    for wrong in (0, -1, 2.5, "two"):
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1"):
            model.sample(wrong)
