"""Point estimates from posteriors against quadrature, SciPy, and a brute-force search of the posterior expected loss."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from lemmata.decision import estimate
from lemmata.decision.density import Density
from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    Mixture,
    MultivariateNormal,
    Normal,
)
from lemmata.probability.grid import GridPosterior

LOSSES = {"squared": lambda g, t: (g - t) ** 2, "absolute": lambda g, t: np.abs(g - t)}
CONTINUOUS = [Normal(3, 2), Gamma(4, 5), Gamma(0.7, 1), Beta(2, 5), Exponential(0.3)]


@pytest.mark.item("DEC-05", "DEC-06")
@pytest.mark.parametrize("posterior", CONTINUOUS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES)
def test_each_estimate_minimizes_its_own_expected_loss(posterior, loss):
    def expected(guess):
        low, high = posterior.icdf(1e-13), posterior.icdf(1 - 1e-13)
        pieces = [(low, guess), (guess, high)]
        return sum(integrate.quad(lambda t: LOSSES[loss](guess, t) * posterior.pdf(t), a, b, limit=200)[0] for a, b in pieces)

    found = estimate(posterior, loss)
    assert found.risk == pytest.approx(expected(found.value), rel=1e-5)
    bracket = (posterior.icdf(0.01), posterior.icdf(0.99))
    search = optimize.minimize_scalar(expected, bounds=bracket, method="bounded", options={"xatol": 1e-7})
    assert found.value == pytest.approx(search.x, rel=1e-4)
    assert found.risk <= search.fun * (1 + 1e-6)
    certificate = found.certificate()
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    assert not replace(found, value=1.01 * found.value).certificate().holds
    assert not replace(found, risk=1.01 * found.risk).certificate().holds


@pytest.mark.item("DEC-06")
@pytest.mark.parametrize("posterior", [*CONTINUOUS, Bernoulli(0.3), Categorical([0.2, 0.5, 0.3])], ids=repr)
def test_the_mean_costs_the_variance(posterior):
    found = estimate(posterior)
    assert found.value == pytest.approx(posterior.mean)
    assert found.risk == pytest.approx(posterior.var)
    assert found.certificate().holds


@pytest.mark.item("DEC-05")
def test_the_absolute_loss_gives_the_median():
    for posterior in CONTINUOUS:
        assert float(estimate(posterior, "absolute")) == posterior.icdf(0.5)
    assert estimate(stats.gamma(4, scale=0.2).rvs(1001, random_state=0), "absolute").value == pytest.approx(
        np.median(stats.gamma(4, scale=0.2).rvs(1001, random_state=0))
    )


@pytest.mark.item("DEC-05")
@pytest.mark.parametrize("posterior", CONTINUOUS, ids=repr)
def test_a_general_loss(posterior):
    for level in (0.1, 0.5, 0.8):
        found = estimate(posterior, lambda g, t, q=level: np.where(t > g, q * (t - g), (1 - q) * (g - t)))
        assert found.value == pytest.approx(posterior.icdf(level), rel=1e-6)
        assert found.certificate().holds
        assert not replace(found, value=found.value * 1.01).certificate().holds
    # the quadratic loss weighted by 1/θ² has E[1/θ]/E[1/θ²]
    if isinstance(posterior, Gamma) and posterior.shape > 2:
        found = estimate(posterior, lambda g, t: ((g - t) / t) ** 2)
        a, b = posterior.shape, posterior.rate
        assert found.value == pytest.approx((b / (a - 1)) / (b**2 / ((a - 1) * (a - 2))), rel=1e-6)


@pytest.mark.item("DEC-05")
def test_the_linex_loss_of_a_normal_posterior():
    # exp(a(g − θ)) − a(g − θ) − 1 has its least expectation at μ − aσ²/2
    for a in (0.5, -0.5):
        found = estimate(Normal(1, 2), lambda g, t, a=a: np.exp(a * (g - t)) - a * (g - t) - 1)
        assert found.value == pytest.approx(1 - a * 4 / 2, abs=1e-6)
        certificate = found.certificate()
        assert certificate.holds
        assert certificate.kind == "local"


def test_a_minimum_beyond_the_quantiles_is_found():
    found = estimate(Normal(0, 1), lambda g, t: (g - t - 7) ** 2)
    assert found.value == pytest.approx(7, rel=1e-6)
    found = estimate(([2.0], [1.0]), lambda g, t: (g - t + 5) ** 2)
    assert found.value == pytest.approx(-3, rel=1e-6)


@pytest.mark.item("DEC-05", "DEC-06", "DEC-07")
@pytest.mark.parametrize("seed", range(10))
def test_a_grid_posterior(seed):
    """Mean, median and mode of a grid each minimize their own expected loss (Examples 1.3.1, 1.3.2)."""
    rng = np.random.default_rng(seed)
    theta, weights = np.sort(rng.normal(size=30)), rng.dirichlet(np.ones(30))
    candidates = np.union1d(theta, np.linspace(-3, 3, 4001))
    for loss, function in LOSSES.items():
        found = estimate((theta, 7 * weights), loss)
        brute = np.array([weights @ function(c, theta) for c in candidates])
        assert found.risk == pytest.approx(weights @ function(found.value, theta), rel=1e-12)
        assert found.risk <= brute.min() + 1e-12
        assert found.certificate().holds
        pinned = estimate((theta, weights), function)
        assert pinned.value == pytest.approx(found.value, abs=1e-6)
        assert loss == "squared" or pinned.value in theta, "a corner is found exactly"
    mode = estimate((theta, weights), "zero-one")
    zero_one = [weights @ (theta != c) for c in theta]
    assert mode.value == theta[np.argmin(zero_one)]
    assert mode.risk == pytest.approx(min(zero_one))
    assert mode.certificate().holds
    assert mode.certificate().kind == "proof"
    assert not replace(mode, value=theta[np.argmin(weights)]).certificate().holds
    grid = GridPosterior(theta, np.log(weights))
    assert float(estimate(grid)) == pytest.approx(grid.mean)


@pytest.mark.item("DEC-07")
@pytest.mark.parametrize("posterior", [Normal(3, 2), Gamma(4, 5), Beta(2, 5)], ids=repr)
def test_zero_one_loss_is_the_limit_of_a_shrinking_ball(posterior):
    """A Kronecker delta has probability 0: every guess then costs 1, and only the limit of small balls has a best one."""
    found = estimate(posterior, "zero-one")
    assert found.value == posterior.mode
    assert found.risk == 1.0
    assert found.certificate().holds
    distances = []
    for radius in (0.3, 0.03, 0.003):

        def outside(guess, radius=radius):
            return 1 - (posterior.cdf(guess + radius) - posterior.cdf(guess - radius))

        bracket = (posterior.icdf(0.05), posterior.icdf(0.95))
        best = optimize.minimize_scalar(outside, bounds=bracket, method="bounded", options={"xatol": 1e-9}).x
        distances.append(abs(best - posterior.mode))
    assert distances[-1] < 1e-3
    assert distances[2] <= distances[0] + 1e-6
    assert not replace(found, value=posterior.icdf(0.95)).certificate().holds


def test_half_of_equal_weights_is_reached_in_the_middle():
    for n in range(2, 120, 2):
        theta = np.arange(float(n))
        assert estimate((theta, np.full(n, 0.1)), "absolute").value == n // 2 - 1
        assert estimate(theta, "absolute").value == n // 2 - 1


def test_discrete_and_multivariate_posteriors():
    found = estimate(Categorical([0.2, 0.5, 0.3]), "zero-one")
    assert (found.value, found.risk) == (1, 0.5)
    assert estimate(Categorical([0.2, 0.5, 0.3]), "absolute").value == 1
    normal = MultivariateNormal([1.0, -2.0], [[2.0, 0.3], [0.3, 1.0]])
    found = estimate(normal)
    np.testing.assert_array_equal(found.value, [1.0, -2.0])
    assert found.risk == pytest.approx(3.0)
    assert found.certificate().holds
    assert not replace(found, value=found.value * 1.01).certificate().holds
    np.testing.assert_array_equal(estimate(normal, "zero-one").value, [1.0, -2.0])
    np.testing.assert_allclose(estimate(Dirichlet([2.0, 3.0])).value, [0.4, 0.6])
    rows = normal.sample(501, 0)
    found = estimate(rows, "absolute")
    np.testing.assert_allclose(found.value, np.median(rows, axis=0))
    assert found.certificate().holds
    np.testing.assert_allclose(np.asarray(estimate(rows)), rows.mean(axis=0))
    assert estimate(rows).risk == pytest.approx(rows.var(axis=0).sum())
    np.testing.assert_array_equal(estimate([[1, 2], [3, 4], [1, 2]], "zero-one").value, [1, 2])
    mixture = Mixture([0.5, 0.5], [Normal(-2, 1), Normal(3, 1)])
    assert estimate(mixture, "absolute").certificate().holds


def test_a_density_known_up_to_a_factor():
    reference = stats.gamma(3.5, scale=0.5)
    density = Density(lambda x: 7.0 + 2.5 * np.log(x) - 2 * x if x > 0 else -np.inf, mode=1.25, scale=0.9)
    assert density.mean == pytest.approx(reference.mean(), rel=1e-8)
    assert density.var == pytest.approx(reference.var(), rel=1e-7)
    levels = np.array([0.001, 0.01, 0.3, 0.5, 0.9, 0.9999])
    np.testing.assert_allclose(density.icdf(levels), reference.ppf(levels), rtol=1e-5)
    points = np.array([0.2, 1.0, 4.0])
    np.testing.assert_allclose(density.cdf(points), reference.cdf(points), atol=1e-8)
    np.testing.assert_allclose(density.pdf(points), reference.pdf(points), rtol=1e-8)
    step = Density(lambda x: 0.0 if 1 <= x <= 3 else -np.inf, mode=1.5, scale=0.1)  # ends that are cliffs
    assert step.mean == pytest.approx(2, rel=1e-9)
    assert step.var == pytest.approx(1 / 3, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimate(Normal(0, 1), "cubic"), "'squared', 'absolute', 'zero-one' or a function"),
        (lambda: estimate([0.1, 0.2, 0.3], "zero-one"), "All samples differ"),
        (lambda: estimate(np.empty(0)), "a distribution, a tuple"),
        (lambda: estimate(Mixture([0.5, 0.5], [Normal(0, 1), Normal(5, 1)]), "zero-one"), "mode of a Mixture is not known"),
        (lambda: estimate(([1.0, 2.0], [0.5, -0.5])), "must not be negative"),
        (lambda: estimate(([1.0, 2.0], [0.0, 0.0])), "finite positive sum"),
        (lambda: estimate(([1.0, 2.0], [1.0])), r"\(2,\) and \(1,\)"),
        (lambda: estimate([1.0, np.nan]), "finite values"),
        (lambda: estimate(np.ones((3, 2)), lambda g, t: t), "over one number"),
        (lambda: estimate(Dirichlet([1, 2]), "absolute"), "draw samples"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
