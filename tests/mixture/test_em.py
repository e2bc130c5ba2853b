"""The EM engine: monotone, restarted, accelerated without harm; and the bound under it."""

import sys

import numpy as np
import pytest
from scipy.special import logsumexp, xlog1py, xlogy
from scipy.stats import multivariate_normal

from lemmata.core.blocks import Blocks
from lemmata.core.iterate import MonotonicityError
from lemmata.mixture import GaussianMixture, LatentModel, decomposition, elbo, em

ENGINE = sys.modules["lemmata.mixture.em"]  # the package names its function like the module
HEADS = np.array([[5.0], [9.0], [8.0], [4.0], [7.0]])


class Coins(LatentModel):
    """Coins of unknown odds, ten tosses of one of them a row; weights are repetitions."""

    def start(self, blocks, rng):
        return (np.sort(rng.uniform(0.2, 0.8, size=2))[::-1],)

    def log_joint(self, X, odds):
        return np.log(0.5) + xlogy(X, odds) + xlog1py(10 - X, -odds)

    def e_step(self, X, weight, parameters):
        logs = self.log_joint(X, *parameters)
        total = logsumexp(logs, axis=1)
        posterior = np.exp(logs - total[:, None]) * (1 if weight is None else weight[:, None])
        return (posterior.sum(axis=1) * total).sum(), (posterior * X).sum(axis=0), 10 * posterior.sum(axis=0)

    def m_step(self, statistics, parameters):
        return (statistics[1] / statistics[2],)


class Leaping(Coins):
    def pack(self, parameters):
        return np.log(parameters[0] / (1 - parameters[0]))

    def unpack(self, vector):
        return (1 / (1 + np.exp(-vector)),)


class Backwards(Coins):
    """An M-step that maximizes nothing."""

    def m_step(self, statistics, parameters):
        return (np.array([0.99, 0.01]),)


def likelihood(odds):
    return logsumexp(Coins().log_joint(HEADS, odds), axis=1).mean()


def test_the_two_coins_reach_the_limit_that_scipy_finds():
    from scipy.optimize import minimize

    run = em(Coins(), HEADS, random_state=0)
    best = minimize(lambda t: -likelihood(1 / (1 + np.exp(-t))), [1.0, 0.0], tol=1e-12)
    np.testing.assert_allclose(run.trace[-1], -best.fun, rtol=1e-8)
    np.testing.assert_allclose(run.state[0], 1 / (1 + np.exp(-best.x)), atol=1e-3)
    assert run.converged
    assert (np.diff(run.trace) >= -1e-15).all()


def test_leaps_reach_the_same_optimum_in_fewer_passes_and_never_fall():
    plain = em(Leaping(), HEADS, acceleration=False, tol=1e-13, random_state=0)
    fast = em(Leaping(), HEADS, tol=1e-13, random_state=0)
    np.testing.assert_allclose(fast.state[0], plain.state[0], rtol=1e-5)
    assert fast.n_iter < plain.n_iter
    assert (np.diff(fast.trace) >= -1e-15).all()


def test_a_leap_that_falls_is_taken_back():
    class Wild(Leaping):
        def unpack(self, vector):
            return (np.array([0.999, 0.001]),)

    run = em(Wild(), HEADS, tol=1e-13, random_state=0)
    np.testing.assert_allclose(run.state[0], em(Coins(), HEADS, tol=1e-13, random_state=0).state[0], rtol=1e-5)
    assert (np.diff(run.trace) >= 0).all()
    assert (np.diff(run.trace) == 0).any(), "no leap was taken back, so nothing was tested"


def test_a_step_that_lowers_the_likelihood_raises():
    with pytest.raises(MonotonicityError, match="the log-likelihood fell in an EM step"):
        em(Backwards(), HEADS, random_state=0)


def test_the_best_of_several_starts_is_kept():
    class Stuck(Coins):
        """Goes nowhere, so that the starts are the ends."""

        def m_step(self, statistics, parameters):
            return parameters

    runs = [likelihood(np.sort(g.uniform(0.2, 0.8, size=2))[::-1]) for g in np.random.default_rng(5).spawn(7)]
    np.testing.assert_allclose(em(Stuck(), HEADS, n_init=7, random_state=5).trace[-1], max(runs), rtol=1e-12)
    assert np.argmax(runs) != 0


def test_weights_are_repetitions():
    weight = np.array([1.0, 3.0, 0.0, 2.0, 1.0])
    one = em(Coins(), HEADS, sample_weight=weight, random_state=0)
    other = em(Coins(), np.repeat(HEADS, weight.astype(int), axis=0), random_state=0)
    np.testing.assert_allclose(one.state[0], other.state[0], rtol=1e-12)


def gaussian_log_joint(X, weights, means, covariances):
    return np.column_stack(
        [np.log(w) + multivariate_normal(m, c).logpdf(X) for w, m, c in zip(weights, means, covariances, strict=True)]
    )


def some_parameters(rng, k=3, d=2):
    A = rng.normal(size=(k, d, d))
    return rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), A @ np.swapaxes(A, 1, 2) + 0.3 * np.eye(d)


@pytest.mark.item("CLU-06")
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_the_likelihood_minus_a_divergence_and_touches_at_the_posterior(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    joint = gaussian_log_joint(X, *some_parameters(rng))
    value = logsumexp(joint, axis=1)
    log_posterior = joint - value[:, None]
    q = rng.dirichlet(np.ones(3), size=40)
    bound = elbo(q, joint)
    np.testing.assert_allclose(bound, value - (q * (np.log(q) - log_posterior)).sum(axis=1), rtol=1e-12)
    assert (bound < value).all()
    np.testing.assert_allclose(elbo(np.exp(log_posterior), joint), value, rtol=1e-12)
    # Erratum: with −H(q) in place of +H(q) the posterior does not make the bound touch.
    entropy = -(q * np.log(q)).sum(axis=1)
    wrong = elbo(np.exp(log_posterior), joint) - 2 * -(np.exp(log_posterior) * log_posterior).sum(axis=1)
    assert (np.abs(wrong - value) > 1e-9).all()
    # Erratum: nor is the ELBO the expectation of log p(x|z, θ), which has no prior and no entropy in it.
    conditional = joint - np.log(some_parameters(np.random.default_rng(seed))[0])
    assert (np.abs((q * conditional).sum(axis=1) - bound) > 1e-9).any()
    assert (entropy > 0).all()


def test_the_bound_takes_hard_assignments_and_refuses_what_is_no_distribution():
    joint = np.array([[np.log(0.3), -np.inf]])
    assert elbo([[1.0, 0.0]], joint) == pytest.approx(np.log(0.3), rel=1e-15)
    with pytest.raises(ValueError, match="sum to 1"):
        elbo([[0.5, 0.6]], joint)
    with pytest.raises(ValueError, match="shape"):
        elbo([[1.0]], joint)
    with pytest.raises(ValueError, match="shapes"):
        decomposition(joint, joint[:, :1])


@pytest.mark.item("CLU-07")
@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_is_q_plus_h_plus_d_anywhere(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2)) * 2
    old, new = some_parameters(rng), some_parameters(rng)
    joint, joint_old = gaussian_log_joint(X, *new), gaussian_log_joint(X, *old)
    terms = decomposition(joint, joint_old)
    np.testing.assert_allclose(sum(terms), logsumexp(joint, axis=1).sum(), rtol=1e-12)
    assert terms.D > 0
    at = decomposition(joint_old, joint_old)
    assert pytest.approx(0.0, abs=1e-10) == at.D  # at least 0, and 0 here: not "positive"
    # The bound is tangent at θ_old: the gradients of Q and of the log-likelihood agree there, by central differences.
    for k in range(3):
        for j in range(2):
            ends = []
            for h in (1e-5, -1e-5):
                means = old[1].copy()
                means[k, j] += h
                moved = gaussian_log_joint(X, old[0], means, old[2])
                ends.append((logsumexp(moved, axis=1).sum(), decomposition(moved, joint_old).Q))
            (up, q_up), (down, q_down) = ends
            assert (up - down) / 2e-5 == pytest.approx((q_up - q_down) / 2e-5, rel=1e-4, abs=1e-4)


@pytest.mark.item("CLU-07")
def test_the_bound_need_not_be_concave():
    # Erratum: 004 calls the bound convex with one maximum. As a function of a variance, Q bends both ways.
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    old = gaussian_log_joint(X, [0.5, 0.5], [[0.0], [5.0]], np.ones((2, 1, 1)))
    grid = np.linspace(0.05, 8.0, 200)
    Q = [decomposition(gaussian_log_joint(X, [0.5, 0.5], [[0.5], [4.5]], np.full((2, 1, 1), v)), old).Q for v in grid]
    bends = np.diff(Q, 2)
    assert bends.min() < 0 < bends.max()


@pytest.mark.item("CLU-07")
def test_likelihoods_rise_and_differ_between_starts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) + 4 * rng.integers(0, 3, size=(150, 2))
    ends = []
    for seed in range(6):
        model = GaussianMixture(5, init_params="random_from_data", random_state=seed, acceleration=None, tol=1e-6).fit(X)
        assert (np.diff(model.trace_) >= -1e-12).all()
        ends.append(model.lower_bound_)
    assert np.ptp(ends) > 1e-3
    best = GaussianMixture(5, init_params="random_from_data", n_init=6, random_state=0, acceleration=None, tol=1e-6).fit(X)
    assert best.lower_bound_ >= ends[0]
    # The fit reports what each start reached: the best is kept, and the others are not all as good.
    assert best.restarts_.shape == (6,)
    assert best.restarts_.max() == best.trace_[-1]
    assert np.ptp(best.restarts_) > 1e-3
    assert len(np.unique(best.restarts_.round(6))) > 1


def test_a_state_is_plain_data_and_a_pass_depends_on_nothing_else():
    blocks = Blocks.of(HEADS, None)
    state = ENGINE.begin((np.array([0.6, 0.5]),))
    for _ in range(4):
        one = ENGINE.step(Leaping(), blocks, 5.0, True, 0.0, state)
        other = ENGINE.step(Leaping(), blocks, 5.0, True, 0.0, state)
        assert one[1:] == other[1:]
        state = one[0]


@pytest.mark.parametrize(("name", "value"), [("n_init", 0), ("max_iter", 0), ("tol", -1.0), ("tol", float("nan"))])
def test_settings_that_cannot_be_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        em(Coins(), HEADS, **{name: value})
