"""Certificates of distributions: right ones hold, and every kind of lie is refused by the check that is about it."""

import math

import numpy as np
import pytest
import scipy.stats as st

from lemmata.probability.checks import check_distribution, check_maximum_entropy
from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    LogisticDistribution,
    Mixture,
    MultivariateNormal,
    Normal,
)

RIGHT = [
    Normal(0, 1),
    Normal(1e6, 1e-3),
    LogisticDistribution(-5, 100),
    Exponential(1e-8),
    Gamma(0.1, 3),
    Gamma(1e8, 1e4),
    Beta(0.1, 3),
    Beta(2, 3),
    Beta(1e6, 2e6),
    Bernoulli(0.3),
    Bernoulli(1),
    Binomial(10, 0.3),
    Binomial(5, 1),
    Binomial(20_000, 0.01),
    Categorical([0.2, 0, 0.8]),
    MultivariateNormal([1], [[4]]),
    MultivariateNormal([1, 2], [[2e-8, 1], [1, 2e8]]),
    MultivariateNormal([1, 2, 3], [[2, 1, 0], [1, 2, 0.5], [0, 0.5, 1]]),
    MultivariateNormal(np.zeros(6), np.eye(6) + 1),
    Dirichlet([0.5, 0.3]),
    Dirichlet([0.2, 0.5, 0.9]),
    Dirichlet([1e6, 2e6, 3e6]),
    Dirichlet([1, 2, 3, 4, 5]),
    Mixture([0.3, 0.7], [Normal(0, 1), Normal(5, 0.01)]),
    Mixture([0.5, 0.5], [Normal(0, 1e-3), Normal(1e3, 1)]),
    Mixture([0.5, 0.5], [Normal(0, 1), Exponential(1)]),
    Mixture([0.5, 0.5], [Dirichlet([2, 3, 4]), Dirichlet([9, 1, 2])]),
    Mixture([0.5, 0.5], [Binomial(5, 0.3), Bernoulli(0.2)]),
    Mixture([0.5, 0.5], [MultivariateNormal([0, 0], np.eye(2)), MultivariateNormal([5, 5], np.eye(2) * 0.1)]),
]


@pytest.mark.parametrize("law", RIGHT, ids=lambda law: type(law).__name__)
def test_right_distributions_are_certified(law):
    certificate = law.certify()
    assert certificate.holds, str(certificate)
    assert certificate.kind == "evidence"
    if law.discrete or not np.ndim(law.mean):
        assert check_distribution(law, n_draws=0).kind == "proof"
        assert {"mass", "mean", "variance", "cdf", "quantile"} <= {check.name for check in certificate}


class PrintedNormal(Normal):
    """The density of the notes: 1/√(2πσ) for 1/√(2πσ²)."""

    def _logpdf(self, x):
        return super()._logpdf(x) + 0.5 * math.log(self.scale)


class PrintedMultivariateNormal(MultivariateNormal):
    """The density of the notes: 1/(2π^(d/2)) for 1/(2π)^(d/2)."""

    def logpdf(self, x):
        return super().logpdf(x) + (len(self.mean) / 2 - 1) * math.log(2)


@pytest.mark.item("PRB-09", "PRB-10")
def test_printed_normal_densities_are_refused():
    certificate = PrintedNormal(0, 2).certify()
    assert certificate["mass"].value == pytest.approx(math.sqrt(2) - 1, abs=1e-6)
    assert {"mass", "variance", "cdf", "entropy"} <= {check.name for check in certificate.failed}
    assert Normal(0, 2).certify().holds
    for d in (1, 3, 5):
        wrong = PrintedMultivariateNormal(np.zeros(d), np.eye(d)).certify()
        assert "entropy" in {check.name for check in wrong.failed}
        if d <= 3:
            assert wrong["mass"].value == pytest.approx(abs(2 ** (d / 2 - 1) - 1), abs=1e-6)


def test_mass_that_no_number_can_reach_is_refused_without_a_warning():
    certificate = Beta(2, 0.03).certify()  # a good part of its mass lies nearer to 1 than any number below 1
    assert {"mass", "entropy"} <= {check.name for check in certificate.failed}
    assert Gamma(0.05, 1).certify().holds


def lie(law, **methods):
    """A subclass of the law's class with some methods replaced, and the same parameters."""
    kind = type("Liar", (type(law),), methods)
    return kind(*(getattr(law, name) for name, f in law.__dataclass_fields__.items() if f.init))


LIES = [
    (lie(Normal(0, 1), mean=0.01), {"mean"}),
    (lie(Gamma(3, 2), var=0.76), {"variance"}),
    (lie(Beta(2, 3), _cdf=lambda self, x: x * x * (3 - 2 * x)), {"cdf", "quantile"}),
    (lie(Exponential(2), _icdf=lambda self, u: -np.log1p(-u) / 2.001), {"quantile"}),
    (lie(LogisticDistribution(0, 1), logpdf_gradient=lambda self, x: -np.tanh(x)), {"gradient"}),
    (lie(Normal(0, 1), entropy=lambda self: 1.45), {"entropy"}),
    (lie(Gamma(3, 2), _draw=lambda self, n, rng: rng.gamma(3.2, 0.5, size=n)), {"draws", "entropy"}),
    (lie(Normal(0, 1), _draw=lambda self, n, rng: 1.1 * rng.normal(size=n)), {"draws"}),
    (lie(Gamma(3, 2), _logpdf=lambda self, x: Gamma(3.001, 2).logpdf(x)), {"mean", "cdf"}),
    (lie(Binomial(10, 0.3), _logpdf=lambda self, k: Binomial(10, 0.3).logpdf(k) + 0.01), {"mass", "cdf"}),
    (lie(Binomial(10, 0.3), _cdf=lambda self, k: st.binom(10, 0.31).cdf(k)), {"cdf"}),
    (lie(Binomial(10, 0.3), icdf=lambda self, u: st.binom(10, 0.4).ppf(u).astype(int)), {"quantile"}),
    (lie(Binomial(10, 0.3), entropy=lambda self: 1.8), {"surprise"}),
    (lie(Categorical([0.2, 0.5, 0.3]), mean=1.2), {"mean"}),
    (lie(MultivariateNormal([0, 0], np.eye(2)), entropy=lambda self: 2.9), {"entropy"}),
    (lie(MultivariateNormal([0, 0], np.eye(2)), logpdf_gradient=lambda self, x: -2 * x), {"gradient"}),
    (lie(MultivariateNormal([0, 0], np.eye(2)), _draw=lambda self, n, rng: 0.1 + rng.normal(size=(n, 2))), {"draws"}),
    (lie(Dirichlet([2, 3, 4]), logpdf=lambda self, x: Dirichlet([2, 3, 4]).logpdf(x) + 1e-5), {"mass"}),
    (lie(Dirichlet([2, 3, 4]), mean=np.array([0.3, 0.3, 0.4])), {"mean"}),
    (lie(Dirichlet([2, 3, 4]), logpdf_gradient=lambda self, x: self.alpha / x), {"gradient"}),
    (lie(Dirichlet([2, 3, 4, 5]), entropy=lambda self: -5.0), {"entropy"}),
    (lie(Mixture([0.5, 0.5], [Normal(0, 1), Normal(5, 1)]), icdf=lambda self, u: 2.5 + st.norm.ppf(u)), {"quantile"}),
    (
        lie(
            Mixture([0.5, 0.5], [MultivariateNormal([0, 0], np.eye(2)), MultivariateNormal([1, 1], np.eye(2))]),
            logpdf=lambda self, x: self.components[0].logpdf(x),
        ),
        {"density"},
    ),
]


@pytest.mark.parametrize(("liar", "checks"), LIES, ids=range(len(LIES)))
def test_a_lie_is_refused_by_the_check_that_is_about_it(liar, checks):
    certificate = liar.certify()
    assert not certificate.holds
    assert checks <= {check.name for check in certificate.failed}, str(certificate)


def test_interval_of_the_entropy_is_stated_and_holds_the_entropy():
    check = Normal(0, 2).certify()["entropy"]
    low, high = (float(end) for end in check.claim.split("[")[1].split("]")[0].split(", "))
    assert low < Normal(0, 2).entropy() < high
    assert high - low == pytest.approx(8 * math.sqrt(0.5 / 20_000), rel=0.1)  # −log p has the variance ½
    assert check.kind == "evidence"
    refused = sum(not check_distribution(Normal(0, 1), 500, seed)["entropy"].holds for seed in range(40))
    assert refused == 0
    with pytest.raises(ValueError, match="more than can be summed"):
        check_distribution(Binomial(10**8, 0.5))


@pytest.mark.item("PRB-14")
def test_normal_has_the_largest_entropy_for_its_variance():
    assert Normal(0, 1).entropy() == pytest.approx(1.418939, abs=5e-7)
    assert Normal(3, 2).entropy() == pytest.approx(2.112086, abs=5e-7)
    for sigma in (0.1, 1, 2, 50):
        best = Normal(0, sigma).entropy()
        assert best == pytest.approx(0.5 * math.log(2 * math.pi * math.e * sigma**2), rel=1e-13)
        others = [
            st.laplace(scale=sigma / math.sqrt(2)),
            st.uniform(scale=sigma * math.sqrt(12)),
            st.logistic(scale=sigma * math.sqrt(3) / math.pi),
        ]
        for law in others:
            assert law.std() == pytest.approx(sigma)
            assert law.entropy() < best - 0.01
        logistic = LogisticDistribution(0, sigma * math.sqrt(3) / math.pi)
        assert logistic.entropy() < best
        assert check_maximum_entropy(Normal(7, sigma)).holds
        refused = check_maximum_entropy(logistic)
        assert {check.name for check in refused.failed} == {"stationarity", "multiplier", "bound"}
    assert not check_maximum_entropy(Gamma(100, 1)).holds
    assert not check_maximum_entropy(Exponential(1)).holds  # a density that is zero somewhere
    assert not check_maximum_entropy(Mixture([0.5, 0.5], [Normal(-1, 1), Normal(1, 1)])).holds


@pytest.mark.item("PRB-14")
@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_discretized_entropy_problem_has_its_solution_at_the_normal_density(sigma):
    """Maximize −Σ p log p on a grid under mass and variance, by Newton on the dual; compare p and the multiplier."""
    x = np.linspace(-12 * sigma, 12 * sigma, 2001)
    h = x[1] - x[0]
    multiplier = -0.1 / sigma**2
    for _ in range(100):
        p = np.exp(multiplier * x**2)
        p /= p.sum() * h
        second, fourth = (p @ x**2) * h, (p @ x**4) * h
        multiplier -= np.clip((second - sigma**2) / (fourth - second**2), -abs(multiplier) / 2, abs(multiplier) / 2)
    assert multiplier == pytest.approx(-1 / (2 * sigma**2), rel=1e-9)
    assert multiplier < 0  # with the other sign exp(λx²) has no integral
    np.testing.assert_allclose(p, Normal(0, sigma).pdf(x), rtol=1e-7)
    q = Normal(0, sigma).pdf(x)
    slope = -np.log(q) - 1  # of the entropy; at the solution an affine function of the constraints' slopes 1 and x²
    design = np.stack([np.ones_like(x), x**2], axis=1)
    residual = slope - design @ np.linalg.lstsq(design, slope, rcond=None)[0]
    assert np.abs(residual).max() < 1e-9
