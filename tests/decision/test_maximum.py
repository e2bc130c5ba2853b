"""Maximum likelihood, MAP and Bayes estimates against closed forms, SciPy and the numbers of the lecture."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from lemmata.decision import bayes_estimate, estimate, map_estimate, mle
from lemmata.decision.categories import on_simplex
from lemmata.probability.conjugate import posterior
from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    LogisticDistribution,
    MultivariateNormal,
    Normal,
)

TOSSES = [1] * 7 + [0] * 3


@pytest.mark.item("DEC-08")
@pytest.mark.parametrize(
    ("family", "true"),
    [
        (Exponential, Exponential(2.0)),
        (Normal, Normal(1e3, 1e-2)),
        (Gamma, Gamma(2.5, 3.0)),
        (Beta, Beta(2.0, 5.0)),
        (Bernoulli, Bernoulli(0.3)),
        (LogisticDistribution, LogisticDistribution(-1.0, 0.5)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_maximum_likelihood_of_the_families(family, true):
    data = true.sample(200, 0)
    found = mle(family, data)
    theta = np.atleast_1d(found.value)
    assert type(found.model) is family
    assert found.log_value == pytest.approx(found.model.logpdf(data).sum(), rel=1e-12)
    certificate = found.certificate()
    assert certificate.holds, str(certificate)
    # score ≈ 0 in units of its own standard deviation, the observed information is positive definite
    information = np.atleast_2d(found.information)
    assert np.linalg.eigvalsh(information)[0] > 0
    z = np.atleast_1d(found.score) @ np.linalg.solve(information, np.atleast_1d(found.score))
    assert z < 1e-6
    rng = np.random.default_rng(0)
    for _ in range(50):
        moved = theta + rng.normal(size=len(theta)) * np.atleast_1d(found.standard_errors)
        assert found.objective(moved) <= found.log_value
    off = replace(found, value=found.value + 0.01 * found.standard_errors)
    assert not off.certificate()["score"].holds


@pytest.mark.item("DEC-08")
def test_the_information_is_the_known_one():
    data = Normal(3, 2).sample(100, 1)
    found = mle(Normal, data)
    loc, scale = found.value
    np.testing.assert_allclose([loc, scale], [data.mean(), data.std()], rtol=1e-12)
    np.testing.assert_allclose(found.information, np.diag([100, 200]) / scale**2, rtol=1e-5, atol=1e-5 * 100 / scale**2)
    np.testing.assert_allclose(found.standard_errors, scale / np.sqrt([100, 200]), rtol=1e-5)
    weight = np.random.default_rng(0).integers(0, 3, 100)
    weighted, repeated = mle(Normal, data, weight), mle(Normal, np.repeat(data, weight))
    np.testing.assert_allclose(weighted.value, repeated.value, rtol=1e-12)
    np.testing.assert_allclose(weighted.information, repeated.information, rtol=1e-5, atol=1e-3)


@pytest.mark.item("DEC-08")
def test_models_without_a_formula():
    x = stats.cauchy(2.0, 0.5).rvs(300, random_state=0)

    def cauchy(theta, x):
        return stats.cauchy.logpdf(x, theta[0], np.exp(theta[1]))

    found = mle(cauchy, x, start=[np.median(x), 0.0])
    loc, scale = stats.cauchy.fit(x)
    np.testing.assert_allclose([found.value[0], np.exp(found.value[1])], [loc, scale], rtol=1e-3)  # SciPy's own stopping rule
    assert found.log_value >= stats.cauchy.logpdf(x, loc, scale).sum()
    assert found.certificate().holds
    known = mle(Normal, [1.0, 2.0, 6.0], scale=2.0)
    assert known.value == pytest.approx(3.0, rel=1e-8)
    assert known.model == Normal(known.value, 2.0)
    assert known.information == pytest.approx(3 / 4, rel=1e-6)
    assert mle(Binomial, [3, 4, 2], n=10).value == pytest.approx(0.3)


def test_an_estimate_at_the_end_of_its_range():
    found = mle(Bernoulli, [1, 1, 1])
    assert found.value == 1
    assert np.isnan(found.score)
    assert found.certificate().holds
    assert [check.name for check in found.certificate()] == ["perturbations"]
    assert map_estimate(Bernoulli, [1, 1, 1], Beta(2, 1)).value == 1
    assert map_estimate(Bernoulli, [1, 1, 1], Beta(2, 2)).value == pytest.approx(4 / 5, rel=1e-7)


@pytest.mark.item("DEC-09", "DEC-07")
def test_exponential_data_with_an_exponential_prior():
    x = [0.5, 1.5, 2.0]
    n, total = len(x), sum(x)
    found = map_estimate(Exponential, x, prior=Exponential(1.0))
    assert found.value == pytest.approx(0.6, rel=1e-8)
    assert mle(Exponential, x).value == pytest.approx(0.75, rel=1e-12)
    assert bayes_estimate(Exponential, x, Exponential(1.0)).value == pytest.approx(0.8, rel=1e-8)  # by quadrature
    assert bayes_estimate(Exponential, x, Gamma(1, 1)).value == pytest.approx(0.8, rel=1e-14)  # by the conjugate formula
    # the equation of the maximum, exactly, and the mode of Gamma(n + 1, 1 + Σx)
    theta = Fraction(n, 1) / (1 + Fraction(total))
    assert n / theta - Fraction(total) - 1 == 0
    assert float(theta) == 0.6
    assert n / found.value - total - 1 == pytest.approx(0, abs=1e-7)
    assert posterior(Gamma(1, 1), Exponential, x) == Gamma(n + 1, 1 + total)
    assert Gamma(n + 1, 1 + total).mode == pytest.approx(found.value, rel=1e-8)
    assert found.certificate().holds
    # one unit of exposure and no event: the prior is a waiting time of 1 in which nothing happened
    assert found.value == pytest.approx(n / (total + 1), rel=1e-8)
    rng = np.random.default_rng(0)
    for size in (1, 10, 1000):
        x = rng.exponential(2.0, size)
        assert map_estimate(Exponential, x, Exponential(1.0)).value == pytest.approx(size / (1 + x.sum()), rel=1e-7)


@pytest.mark.item("DEC-07")
def test_map_is_where_the_gradient_of_the_log_posterior_vanishes():
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 2.0, 30)
    found = map_estimate(Normal, x, Normal(0, 0.5), scale=2.0)
    after = posterior(Normal(0, 0.5), Normal, x, scale=2.0)
    assert found.value == pytest.approx(after.mode, rel=1e-7)
    assert found.information == pytest.approx(1 / after.var, rel=1e-5)
    assert found.score == pytest.approx(0, abs=1e-5)
    assert found.certificate().holds
    assert not replace(found, value=found.value + 0.05).certificate().holds
    # a prior that has no conjugate form, of two parameters
    prior = MultivariateNormal([0.0, 0.0], np.eye(2))

    def normal(theta, x):
        return stats.norm.logpdf(x, theta[0], np.exp(theta[1]))

    found = map_estimate(normal, x, prior)
    direct = optimize.minimize(lambda t: -normal(t, x).sum() - prior.logpdf(t), [0.0, 0.0], tol=1e-10).x
    np.testing.assert_allclose(found.value, direct, rtol=1e-5)
    assert found.certificate().holds
    assert map_estimate(normal, x, prior, start=[0.5, 0.5]).value == pytest.approx(found.value, rel=1e-6)


@pytest.mark.item("DEC-07")
def test_the_influence_of_the_prior_fades_as_one_over_n():
    rng = np.random.default_rng(1)
    gaps = []
    for n in (100, 1000, 10_000):
        x = rng.exponential(1 / 3, n)
        gaps.append(n * abs(map_estimate(Exponential, x, Exponential(1.0)).value - mle(Exponential, x).value))
    # n (n/Σx − n/(1 + Σx)) = n²/(Σx (1 + Σx)) tends to θ² = 9
    np.testing.assert_allclose(gaps, 9.0, rtol=0.3)


@pytest.mark.item("DEC-10")
def test_categories_by_a_lagrange_multiplier():
    found = mle(Categorical, [0, 0, 2, 0])
    np.testing.assert_array_equal(found.value, [0.75, 0, 0.25])
    assert found.multiplier == 4  # the number of observations
    counts, theta = np.array([3.0, 0.0, 1.0]), found.value
    np.testing.assert_allclose(counts[counts > 0] / theta[counts > 0] - 4, 0, atol=1e-12)
    assert stats.entropy(counts / 4, theta) == 0
    assert found.certificate().holds
    assert found.log_value == pytest.approx(3 * np.log(0.75) + np.log(0.25))
    for wrong in ([0.7, 0.05, 0.25], [0.74, 0.0, 0.26], [0.75, 0.0, 0.26]):
        assert not replace(found, value=np.array(wrong)).certificate().holds
    # the erratum: ∇f + λ∇g alone does not tell the constraint; every c/|λ| solves it, and only λ = −N is on the simplex
    for multiplier in (2.0, 4.0, 8.0):
        solution = counts / multiplier
        np.testing.assert_allclose((counts[[0, 2]] / solution[[0, 2]]) - multiplier, 0)
        assert (solution.sum() == 1) == (multiplier == found.multiplier)
    weighted = mle(Categorical, [0, 1, 2], [3, 0, 1], n_categories=3)
    np.testing.assert_array_equal(weighted.value, found.value)
    rng = np.random.default_rng(0)
    for _ in range(100):
        other = rng.dirichlet(np.ones(3))
        assert counts[[0, 2]] @ np.log(other[[0, 2]]) <= found.log_value


@pytest.mark.item("DEC-11")
def test_mle_map_and_bayes_of_categories():
    data = [0, 0, 0, 2]
    np.testing.assert_allclose(mle(Categorical, data).value, [0.75, 0, 0.25])
    two, one = Dirichlet([2, 2, 2]), Dirichlet([1, 1, 1])
    most = map_estimate(Categorical, data, two)
    np.testing.assert_allclose(most.value, [0.571429, 0.142857, 0.285714], atol=5e-7)
    np.testing.assert_allclose(most.value, bayes_estimate(Categorical, data, one).value)
    np.testing.assert_allclose(bayes_estimate(Categorical, data, two).value, [0.5, 0.2, 0.3])
    np.testing.assert_allclose(map_estimate(Categorical, data, one).value, [0.75, 0, 0.25])
    assert most.certificate().holds
    assert mle(Bernoulli, TOSSES).value == pytest.approx(0.7)
    assert map_estimate(Bernoulli, TOSSES, Beta(2, 2)).value == pytest.approx(0.666667, abs=5e-7)
    assert bayes_estimate(Bernoulli, TOSSES, Beta(2, 2)).value == pytest.approx(0.642857, abs=5e-7)
    assert bayes_estimate(Bernoulli, TOSSES, Beta(2, 2), "zero-one").value == pytest.approx(2 / 3)
    assert bayes_estimate(Bernoulli, TOSSES, Beta(2, 2), "absolute").value == pytest.approx(stats.beta(9, 5).median())


@pytest.mark.item("DEC-11")
@pytest.mark.parametrize("seed", range(10))
def test_map_is_the_predictive_of_one_pseudocount_less(seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(2, 6)
    alpha, data = 1 + 3 * rng.random(k), rng.integers(0, k, 20)
    counts = np.bincount(data, minlength=k)
    found = map_estimate(Categorical, data, Dirichlet(alpha)).value
    np.testing.assert_allclose(found, (counts + alpha - 1) / (20 + alpha.sum() - k), rtol=1e-12)
    np.testing.assert_allclose(found, Dirichlet(alpha - 1).update(counts).predictive().p, rtol=1e-12)
    shares = rng.dirichlet(np.ones(k))
    many = rng.choice(k, 200_000, p=shares)
    estimates = [
        mle(Categorical, many, n_categories=k).value,
        map_estimate(Categorical, many, Dirichlet(alpha)).value,
        bayes_estimate(Categorical, many, Dirichlet(alpha)).value,
    ]
    for value in estimates:
        np.testing.assert_allclose(value, shares, atol=0.006)  # 5 standard errors
        np.testing.assert_allclose(value, estimates[0], atol=2e-4)  # the prior's k·α against 200,000


@pytest.mark.item("DEC-11")
def test_below_one_the_mode_lies_on_the_boundary():
    alpha, counts = np.array([0.5, 0.4, 1.5]), np.array([3, 0, 1])
    formula = (counts + alpha - 1) / (counts.sum() + alpha.sum() - 3)
    assert formula.min() < 0, "the printed formula is no probability"
    found = map_estimate(Categorical, [0, 0, 0, 2], Dirichlet(alpha))
    np.testing.assert_allclose(found.value, [2.5 / 4, 0, 1.5 / 4])
    assert found.certificate().holds
    # over θ ≥ ε the maximum tends to it, as ε falls
    exponents = counts + alpha - 1
    for epsilon in (1e-2, 1e-4, 1e-6):
        middle, split = np.meshgrid(np.geomspace(epsilon, 0.9, 200), np.linspace(0.01, 0.99, 981), indexing="ij")
        theta = np.stack([(1 - middle) * split, middle, (1 - middle) * (1 - split)], axis=-1)
        best = theta.reshape(-1, 3)[np.argmax(np.log(theta) @ exponents)]
        assert best[1] == epsilon
        np.testing.assert_allclose(best, found.value, atol=epsilon + 0.001)  # 0.001: the step of the grid
    with pytest.raises(ValueError, match="no one mode"):
        on_simplex([-0.5, 0.0, -0.1])


def test_a_bayes_estimate_without_a_conjugate_prior():
    x = np.array([0.3, 2.0, 1.1, 0.7])
    for loss, expected in (("squared", stats.gamma.mean), ("absolute", stats.gamma.median)):
        found = bayes_estimate(Exponential, x, Exponential(2.0), loss)
        assert found.value == pytest.approx(expected(5, scale=1 / (2 + x.sum())), rel=1e-7)
        assert found.certificate().holds
    assert bayes_estimate(Exponential, x, Exponential(2.0), "zero-one").value == pytest.approx(4 / (2 + x.sum()), rel=1e-7)
    with pytest.raises(ValueError, match="draw samples"):
        bayes_estimate(Normal, x, MultivariateNormal([0.0, 1.0], np.eye(2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mle("normal", [1.0]), "class of distributions, or a function"),
        (lambda: mle(lambda t, x: -(t**2), None), "needs a finite start"),
        (lambda: mle(lambda t, x: -(t**2), None, start=np.inf), "needs a finite start"),
        (lambda: mle(lambda t, x: -(t**2), None, [1.0], start=1.0), "weights inside"),
        (lambda: mle(lambda t, x: np.log(-1.0 - t * t), None, start=1.0), "choose another start"),
        (lambda: mle(Categorical, [0.5]), "whole numbers from 0"),
        (lambda: mle(Categorical, [3], n_categories=3), "whole numbers from 0"),
        (lambda: mle(MultivariateNormal, np.random.default_rng(0).normal(size=(9, 2))), "parameters that are arrays"),
        (lambda: mle(Exponential, [-1.0]), "no negative values"),
        (lambda: mle(Normal, [1.0, 2.0], scal=1.0), "Normal has no parameter 'scal'"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.item("DEC-08")
def test_on_a_grid_the_flat_prior_makes_map_the_maximum_of_the_likelihood():
    x = np.array([0.5, 1.5, 2.0])
    theta = np.linspace(0.01, 5, 4991)
    likelihood = np.exp(3 * np.log(theta) - theta * x.sum())
    mode = estimate((theta, likelihood), "zero-one")
    assert mode.value == pytest.approx(mle(Exponential, x).value, abs=1e-3)  # the step of the grid
    assert mode.risk == pytest.approx(1 - likelihood.max() / likelihood.sum())
