"""Sigmoid, softmax and their logarithms against SciPy, in the middle and far out."""

import numpy as np
import pytest
from scipy import special

from lemmata.linear_model.links import log_sigmoid, log_sum_exp, logit, sigmoid, softmax

Z = np.concatenate([np.linspace(-40, 40, 161), [-1e3, -745.0, -700.0, 700.0, 1e3], np.geomspace(1e-300, 1e-3, 7)])


@pytest.mark.parametrize(("ours", "theirs"), [(sigmoid, special.expit), (log_sigmoid, special.log_expit)])
def test_every_digit_is_that_of_scipy(ours, theirs):
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(ours(Z), theirs(Z), rtol=1e-15, atol=5e-324)  # roundings of both; one is subnormal
    assert ours(Z.reshape(-1, 1)[:4]).shape == (4, 1)
    assert float(ours(0)) == float(theirs(0.0))


def test_the_logit_is_that_of_scipy_and_infinite_at_the_ends_of_the_open_interval():
    p = np.concatenate([np.geomspace(1e-300, 0.4, 50), 1 - np.geomspace(1e-15, 0.4, 50)])
    np.testing.assert_allclose(logit(p), special.logit(p), rtol=1e-14)  # ln p and ln(1 − p) are rounded apart
    assert logit([0.0, 0.5, 1.0]).tolist() == [-np.inf, 0.0, np.inf]


def test_softmax_and_log_sum_exp_take_the_last_axis_and_any_size():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 5, 4)) * 10.0 ** rng.integers(-2, 4, size=(3, 5, 1))
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(softmax(scores), special.softmax(scores, axis=-1), rtol=1e-14)
        np.testing.assert_allclose(log_sum_exp(scores), special.logsumexp(scores, axis=-1), rtol=1e-14)
    assert softmax([1e300, 1e300]).tolist() == [0.5, 0.5]
    assert float(log_sum_exp([[7.0]])[0]) == 7.0
