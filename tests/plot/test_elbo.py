"""The picture of EM keeps the identity L = Q + H + D at every step, and replays the steps of the fit."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as OtherMixture

from lemmata.cluster import KMeans
from lemmata.mixture import GaussianMixture, StochasticEM
from lemmata.plot import ElboDisplay
from lemmata.plot.elbo import log_joint, replay


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) * [0.5, 1.5] + [2.0, 1.0]])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("start", ["kmeans", "random_from_data"])
def test_the_identity_holds_at_every_step(kind, start):
    X = rows()
    model = GaussianMixture(3, covariance_type=kind, init_params=start, random_state=1, reg_covar=0.0).fit(X)
    display = ElboDisplay.from_estimator(model, X, n_steps=12)
    assert len(display.likelihood) == 13
    assert_allclose(display.likelihood[1:], display.Q + display.H + display.D, rtol=1e-12)
    assert (display.D >= 0).all()
    assert (display.bound <= display.likelihood[1:]).all()
    assert (display.bound >= display.likelihood[:-1] - 1e-12).all()  # the M-step raises the bound from where it touched
    assert (np.diff(display.likelihood) >= display.D - 1e-12).all()  # a step gains what the bound gains, and D more


def test_terms_match_their_definitions():
    X, model = rows(), GaussianMixture(2, random_state=0, reg_covar=0.0)
    display = ElboDisplay.from_estimator(model.fit(X), X, n_steps=4)
    (run,) = replay(model, X, 4)
    for t, (old, new) in enumerate(pairwise(run)):
        before, after = (
            np.column_stack([np.log(w) + multivariate_normal(m, C).logpdf(X) for w, m, C in zip(*parameters, strict=True)])
            for parameters in (old, new)
        )
        q, r = (np.exp(table - logsumexp(table, axis=1, keepdims=True)) for table in (before, after))
        assert_allclose(display.Q[t], (q * after).sum() / len(X), rtol=1e-10)
        assert_allclose(display.H[t], -(q * np.log(q)).sum() / len(X), rtol=1e-9)
        assert_allclose(display.D[t], (q * np.log(q / r)).sum() / len(X), rtol=1e-6, atol=1e-12)


def test_the_replay_is_plain_em_from_the_same_start():
    X = rows()
    options = {"init_params": "random_from_data", "random_state": 3, "n_init": 4}
    plain = GaussianMixture(3, acceleration=None, **options).fit(X)
    display = ElboDisplay.from_estimator(plain, X, n_steps=15)
    assert_allclose(display.likelihood[:15], plain.trace_[:15], rtol=1e-12)
    fast = GaussianMixture(3, **options).fit(X)
    assert not np.allclose(fast.trace_[5:15], plain.trace_[5:15], rtol=1e-9)  # leaps: not what is shown
    assert len(ElboDisplay.from_estimator(fast, X, n_steps=2).others) == 3
    assert fast.acceleration == "squarem"


def test_steps_are_those_of_another_implementation():
    X = rows()
    start = {"weights_init": [0.5, 0.5], "means_init": [[0.0, 1.0], [1.0, 0.0]], "precisions_init": [np.eye(2)] * 2}
    display = ElboDisplay.from_estimator(GaussianMixture(2, **start).fit(X), X, n_steps=6)
    for n in (1, 3, 6):
        other = OtherMixture(2, max_iter=n, tol=0.0, **start)
        with pytest.warns(ConvergenceWarning):
            other.fit(X)
        assert_allclose(display.likelihood[n], other.score(X), rtol=1e-9)


def test_what_is_drawn():
    X = rows()
    model = GaussianMixture(3, init_params="random_from_data", random_state=3, n_init=4).fit(X)
    display = ElboDisplay.from_estimator(model, X, n_steps=5)
    lines = {line.get_label(): line for line in display.ax_.lines}
    assert_array_equal(lines["log-likelihood L"].get_xdata(), range(6))
    assert_array_equal(lines["log-likelihood L"].get_ydata(), display.likelihood)
    assert_array_equal(lines["3 other starts"].get_ydata(), display.others[0])
    teeth = display.ax_.lines[4]  # after three other starts and the log-likelihood
    low = teeth.get_ydata().reshape(5, 3)
    assert_array_equal(low[:, 0], display.likelihood[:-1])  # a bound touches where its step begins
    assert_array_equal(low[:, 1], display.bound)
    assert_array_equal(display.gap_ax_.lines[0].get_ydata(), display.D)
    assert display.gap_ax_.get_yscale() == "log"
    (gap,) = display.ax_.collections
    heights = np.concatenate([path.vertices for path in gap.get_paths()])[:, 1]
    assert set(display.bound) <= set(heights)
    assert set(display.likelihood[1:]) <= set(heights)
    display.figure_.canvas.draw()


def test_the_title_says_how_starts_differ():
    parts = {"likelihood": np.array([-3.0, -2.5]), "Q": np.array([-3.0]), "H": np.array([0.4]), "D": np.array([0.1])}
    for reached, told in (
        ([-2.5], ""),
        ([-2.5, -2.5 - 1e-9], "all 2 starts reached −2.5000"),
        ([-2.5, -2.25], "2 starts reached −2.50 to −2.25"),
        ([-2.5, -2.504, -2.5004], "3 starts reached −2.504 to −2.500"),
    ):
        assert ElboDisplay(**parts, reached=np.array(reached)).plot().ax_.get_title() == told
    model = GaussianMixture(3, init_params="random_from_data", random_state=3, n_init=4).fit(rows())
    assert ElboDisplay.from_estimator(model, rows(), n_steps=1).ax_.get_title().startswith("GaussianMixture: ")


def test_missing_entries_are_integrated_out():
    X = rows()
    X[::7, 0], X[1::9, 1], X[5] = np.nan, np.nan, np.nan
    model = GaussianMixture(2, random_state=0).fit(X)
    display = ElboDisplay.from_estimator(model, X, n_steps=5)
    assert_allclose(display.likelihood[1:], display.bound + display.D, rtol=1e-12)
    (run,) = replay(model, X, 5)
    fitted = GaussianMixture(2, random_state=0).fit(X)
    fitted.weights_, fitted.means_, fitted.covariances_ = run[-1]
    assert_allclose(display.likelihood[-1], fitted.score(X), rtol=1e-10)
    joint = log_joint(X, *run[-1])
    assert_allclose(joint[5], np.log(run[-1][0]))  # nothing is known of this row
    assert_allclose(
        joint[7], [np.log(w) + multivariate_normal(m[1], C[1, 1]).logpdf(X[7, 1]) for w, m, C in zip(*run[-1], strict=True)]
    )


def test_a_component_without_weight_and_an_exact_fit():
    X = rows()
    joint = log_joint(X, np.array([1.0, 0.0]), np.zeros((2, 2)), np.stack([np.eye(2)] * 2))
    assert (joint[:, 1] == -np.inf).all()
    display = ElboDisplay.from_estimator(GaussianMixture(1).fit(X), X, n_steps=3)  # nothing is hidden: no gap to draw
    assert_allclose(display.D, 0.0, atol=1e-15)
    display.figure_.canvas.draw()


def test_what_is_no_em_is_refused():
    X = rows()
    with pytest.raises(ValueError, match="KMeans is none"):
        ElboDisplay.from_estimator(KMeans(2, random_state=0).fit(X), X)
    with pytest.raises(ValueError, match="StochasticEM is none"):
        ElboDisplay.from_estimator(StochasticEM(2, n_sweeps=5, burn_in=0, random_state=0).fit(X), X)
    with pytest.raises(NotFittedError):
        ElboDisplay.from_estimator(GaussianMixture(2), X)
    with pytest.raises(ValueError, match="n_steps must be at least 1"):
        ElboDisplay.from_estimator(GaussianMixture(2, random_state=0).fit(X), X, n_steps=0)
