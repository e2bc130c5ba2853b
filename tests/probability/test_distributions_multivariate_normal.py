"""Gaussian algebra: density, likelihood, marginals, conditionals, affine maps, missing entries; by SciPy and quadrature."""

import math

import numpy as np
import pytest
import scipy.stats as st
from scipy.integrate import quad

from lemmata.probability.distributions import MultivariateNormal, Normal


def random_law(seed, d):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d + 1))
    return MultivariateNormal(rng.normal(size=d), root @ root.T), rng


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_density_entropy_and_gradient_agree_with_scipy(d):
    law, rng = random_law(d, d)
    theirs = st.multivariate_normal(law.mean, law.cov)
    x = rng.normal(scale=3, size=(4, 6, d))
    np.testing.assert_allclose(law.logpdf(x), theirs.logpdf(x).reshape(4, 6), rtol=1e-9)
    assert np.ndim(law.logpdf(x[0, 0])) == 0
    assert law.entropy() == pytest.approx(theirs.entropy(), rel=1e-12)
    np.testing.assert_allclose(
        law.logpdf_gradient(x[0]), -np.linalg.solve(law.cov, (x[0] - law.mean).T).T, rtol=1e-6, atol=1e-9
    )
    assert law.logpdf_gradient(x[0, 0]).shape == (d,)
    np.testing.assert_array_equal(law.var, np.diag(law.cov))
    np.testing.assert_array_equal(law.mode, law.mean)
    draws = law.sample(20000, 0)
    np.testing.assert_allclose(draws.mean(axis=0), law.mean, atol=5 * np.sqrt(law.var.max() / 20000))
    np.testing.assert_allclose(np.cov(draws.T, ddof=0).reshape(d, d), law.cov, atol=8 * law.var.max() / math.sqrt(20000))


@pytest.mark.item("PRB-10")
def test_density_reduces_to_one_dimension_factorizes_and_has_the_mass_one():
    x = np.linspace(-5, 9, 30)
    np.testing.assert_allclose(MultivariateNormal([2], [[9]]).logpdf(x[:, None]), Normal(2, 3).logpdf(x), rtol=1e-14)
    variances = np.array([0.5, 2.0, 10.0])
    rows = np.random.default_rng(0).normal(size=(10, 3))
    product = sum(Normal(0, math.sqrt(v)).logpdf(rows[:, k]) for k, v in enumerate(variances))
    np.testing.assert_allclose(MultivariateNormal(np.zeros(3), np.diag(variances)).logpdf(rows), product, rtol=1e-13)
    law = MultivariateNormal([1, -1], [[2, 1.2], [1.2, 1]])
    grid = np.arange(-14, 14, 0.1)
    plane = np.stack(np.meshgrid(grid, grid), axis=-1)
    assert law.pdf(plane).sum() * 0.01 == pytest.approx(1, abs=1e-10)
    wrong = np.exp(-0.5 * np.einsum("...i,ij,...j", plane - law.mean, np.linalg.inv(law.cov), plane - law.mean))
    printed = wrong / (2 * np.pi ** (2 / 2) * math.sqrt(np.linalg.det(law.cov)))  # 2π^(d/2) for (2π)^(d/2)
    assert printed.sum() * 0.01 == pytest.approx(1, abs=1e-10)  # for d = 2 both are 2π: the slip shows in d = 1 and 3 …
    assert quad(lambda t: math.exp(-t * t / 2) / (2 * math.sqrt(math.pi)), -40, 40)[0] == pytest.approx(
        math.sqrt(2) / 2, rel=1e-9
    )
    cube = np.stack(np.meshgrid(*[np.arange(-8, 8.1, 0.5)] * 3), axis=-1)
    standard = MultivariateNormal(np.zeros(3), np.eye(3))
    assert standard.pdf(cube).sum() / 8 == pytest.approx(1, abs=1e-10)
    printed = np.exp(-0.5 * (cube**2).sum(axis=-1)) / (2 * math.pi**1.5)
    assert printed.sum() / 8 == pytest.approx(math.sqrt(2), rel=1e-10)
    assert abs(law.certify()["mass"].value) < 1e-10


@pytest.mark.item("PRB-11")
@pytest.mark.parametrize(("seed", "d"), [(0, 1), (1, 2), (2, 4)])
def test_maximum_likelihood(seed, d):
    law, _ = random_law(seed, d)
    n = 200
    x = law.sample(n, seed)
    fitted = MultivariateNormal.fit(x)
    np.testing.assert_allclose(fitted.mean, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(fitted.cov, np.cov(x.T, ddof=0).reshape(d, d), rtol=1e-11)
    score = np.linalg.solve(fitted.cov, (x - fitted.mean).T).sum(axis=1)
    assert np.abs(score).max() < 1e-9
    assert np.abs(fitted.logpdf_gradient(x).sum(axis=0)).max() < 1e-9
    best = fitted.logpdf(x).sum()
    determinant = np.linalg.slogdet(fitted.cov)[1]
    assert best == pytest.approx(-n / 2 * (d * math.log(2 * math.pi) + determinant + d), rel=1e-12)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(10):
            mean = fitted.mean + size * rng.normal(size=d)
            turn = np.eye(d) + size * rng.normal(size=(d, d))
            assert MultivariateNormal(mean, fitted.cov).logpdf(x).sum() < best
            assert MultivariateNormal(fitted.mean, turn @ fitted.cov @ turn.T).logpdf(x).sum() < best
    line = Normal.fit(x[:, 0])
    assert (line.loc, line.scale) == pytest.approx(
        (x[:, 0].mean(), math.sqrt(((x[:, 0] - x[:, 0].mean()) ** 2).mean())), rel=1e-12
    )


@pytest.mark.item("PRB-12")
def test_marginal_is_the_integral_of_the_joint():
    law = MultivariateNormal([1, -2], [[2, 1.5], [1.5, 3]])
    for x in (-2.0, 0.3, 4.0):
        integral = quad(lambda y, x=x: law.pdf([x, y]), -40, 40, points=[-2, 0, 2])[0]
        assert law.marginal([0]).pdf([x]) == pytest.approx(integral, rel=1e-8)
    big, _ = random_law(3, 4)
    part = big.marginal([2, 0])
    np.testing.assert_array_equal(part.mean, big.mean[[2, 0]])
    np.testing.assert_array_equal(part.cov, big.cov[np.ix_([2, 0], [2, 0])])
    assert big.marginal(-1) == big.marginal([3])
    assert big.marginal(np.array([True, False, False, True])) == big.marginal([0, 3])


@pytest.mark.item("PRB-12")
def test_affine_map_has_the_moments_of_transformed_draws():
    law, rng = random_law(4, 3)
    A, b, V = rng.normal(size=(2, 3)), np.array([5.0, -1.0]), np.array([[0.5, 0.2], [0.2, 0.4]])
    image = law.affine(A, b, V)
    np.testing.assert_allclose(image.mean, A @ law.mean + b, rtol=1e-13)
    np.testing.assert_allclose(image.cov, A @ law.cov @ A.T + V, rtol=1e-12)
    n = 100_000
    draws = law.sample(n, 1) @ A.T + b + MultivariateNormal([0, 0], V).sample(n, 2)
    np.testing.assert_allclose(draws.mean(axis=0), image.mean, atol=5 * math.sqrt(image.var.max() / n))
    np.testing.assert_allclose(np.cov(draws.T), image.cov, atol=8 * image.var.max() / math.sqrt(n))
    pick = law.affine(np.eye(3)[[2, 0]])  # dropping rows is an affine map too
    np.testing.assert_allclose(pick.cov, law.marginal([2, 0]).cov, rtol=1e-12)
    np.testing.assert_allclose(pick.mean, law.marginal([2, 0]).mean, rtol=1e-14)


@pytest.mark.item("PRB-13")
def test_conditional():
    law = MultivariateNormal([0, 0], [[2, 1], [1, 2]]).condition([1], [1.0])
    assert (law.mean[0], law.cov[0, 0]) == pytest.approx((0.5, 1.5), rel=1e-14)
    joint, rng = random_law(5, 5)
    b, a = [3, 0], [1, 2, 4]
    for _ in range(5):
        x = rng.normal(size=5)
        given = joint.condition(b, x[b])
        assert joint.logpdf(x) == pytest.approx(joint.marginal(b).logpdf(x[b]) + given.logpdf(x[a]), rel=1e-10)
        precision = np.linalg.inv(joint.cov)
        np.testing.assert_allclose(given.cov, np.linalg.inv(precision[np.ix_(a, a)]), rtol=1e-8)
        gain = joint.cov[np.ix_(a, b)] @ np.linalg.inv(joint.cov[np.ix_(b, b)])
        np.testing.assert_allclose(given.mean, joint.mean[a] + gain @ (x[b] - joint.mean[b]), rtol=1e-9)
        np.testing.assert_allclose(given.cov, joint.cov[np.ix_(a, a)] - gain @ joint.cov[np.ix_(b, a)], rtol=1e-8)


def test_missing_entries_are_integrated_out():
    law, rng = random_law(6, 3)
    x = rng.normal(size=(50, 3))
    x[rng.random(x.shape) < 0.4] = np.nan
    x[0] = np.nan
    values = law.logpdf(x)
    assert values[0] == 0
    for row, value in zip(x, values, strict=True):
        seen = np.flatnonzero(~np.isnan(row))
        if len(seen):
            part = st.multivariate_normal(law.mean[seen], law.cov[np.ix_(seen, seen)])
            assert value == pytest.approx(part.logpdf(row[seen]), rel=1e-10)
    pair = MultivariateNormal([0, 1], [[2, 1], [1, 2]])
    assert pair.pdf([0.7, np.nan]) == pytest.approx(quad(lambda y: pair.pdf([0.7, y]), -30, 30)[0], rel=1e-8)
    assert law.logpdf(np.empty((0, 3))).shape == (0,)


def test_extreme_scales():
    law = MultivariateNormal([0, 0], [[1e-200, 0], [0, 1e200]])
    assert law.logpdf([0, 0]) == pytest.approx(-math.log(2 * math.pi), rel=1e-12)
    assert law.logpdf([1e-99, 0]) == pytest.approx(-50 - math.log(2 * math.pi), rel=1e-12)
    assert law.logpdf([1e150, 0]) == -np.inf
    assert law.logpdf([np.inf, 0]) == -np.inf
    many = MultivariateNormal(np.zeros(400), 1e-3 * np.eye(400))  # its determinant is 0 in floating point
    assert many.entropy() == pytest.approx(200 * math.log(2 * math.pi * math.e * 1e-3), rel=1e-12)
    near = MultivariateNormal([0, 0], [[1, 1 - 1e-10], [1 - 1e-10, 1]])
    assert near.condition([0], [1.0]).cov[0, 0] == pytest.approx(2e-10, rel=1e-5)
    hash(law)
    assert law == MultivariateNormal([0.0, 0.0], np.diag([1e-200, 1e200]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultivariateNormal([0, 0], np.eye(3)), r"shape \(2, 2\)"),
        (lambda: MultivariateNormal([0, np.inf], np.eye(2)), "mean must be a list"),
        (lambda: MultivariateNormal([0, 0], [[1, 0.5], [0.2, 1]]), "symmetric"),
        (lambda: MultivariateNormal([0, 0], [[1, 2], [2, 1]]), "positive definite"),
        (lambda: MultivariateNormal([0, 0], [[1, 1], [1, 1]]), "positive definite"),
        (lambda: MultivariateNormal([0, 0], [[1, 0], [0, 0]]), "positive definite"),
        (lambda: MultivariateNormal([0, 0], [[1, 1], [1, 1 + 2.0**-52]]), "positive definite"),
        (lambda: MultivariateNormal([0, 0], [[-1, 0], [0, 1]]), "positive definite"),
        (lambda: MultivariateNormal([0, 0], [[np.nan, 0], [0, 1]]), "finite"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).logpdf([1.0, 2.0, 3.0]), "2 entries"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).marginal([]), "at least one entry"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).marginal([0, 0]), "none twice"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).condition([0, 1], [0, 0]), "leave at least one entry open"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).condition([0], [0, 0]), "one value for each"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).affine(np.eye(3)), "2 columns"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).affine(np.ones((2, 2))), "positive definite"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).affine(np.eye(2), noise_cov=[[1]]), "noise_cov must be"),
    ],
)
def test_refuses_bad_input_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
