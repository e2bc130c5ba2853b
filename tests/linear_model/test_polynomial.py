"""Polynomial regression: interpolation, nesting, features, and the NIST polynomials."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from lemmata.linear_model import PolynomialRegression
from lemmata.linear_model.polynomial import exponents, monomials
from reference.nist import datasets, digits


@pytest.mark.item("LIN-05")
def test_degree_n_minus_one_interpolates_n_points():
    rng = np.random.default_rng(0)
    for n in range(2, 8):
        x, y = np.sort(rng.uniform(-1, 1, n))[:, None], rng.normal(size=n)
        model = PolynomialRegression(n - 1).fit(x, y)
        np.testing.assert_allclose(model.predict(x), y, atol=1e-8 * np.abs(model.coef_).max())


@pytest.mark.item("LIN-05")
def test_nested_models_never_fit_worse():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=60)
    rss = [((y - PolynomialRegression(d).fit(X, y).predict(X)) ** 2).sum() for d in range(1, 6)]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(rss))


@pytest.mark.item("LIN-05")
@pytest.mark.parametrize(("n_features", "degree"), [(1, 5), (2, 3), (4, 2), (3, 4)])
def test_monomials_are_all_products_up_to_the_degree(n_features, degree):
    X = np.random.default_rng(2).normal(size=(10, n_features))
    powers = exponents(n_features, degree)
    peer = PolynomialFeatures(degree, include_bias=False).fit(X)
    assert np.array_equal(powers, peer.powers_)
    np.testing.assert_allclose(monomials(X, powers), peer.transform(X), rtol=1e-13)
    quadratic = monomials(np.array([[2.0, 3.0]]), exponents(2, 2))
    assert quadratic.tolist() == [[2.0, 3.0, 4.0, 6.0, 9.0]]


def test_names():
    model = PolynomialRegression(2).fit(np.eye(4)[:, :2], [1.0, 2.0, 3.0, 4.0])
    assert model.get_feature_names_out().tolist() == ["x0", "x1", "x0^2", "x0 x1", "x1^2"]


@pytest.mark.parametrize("data", [d for d in datasets() if d.degree], ids=lambda d: d.name)
def test_nist_polynomials(data):
    model = PolynomialRegression(data.degree, fit_intercept=data.intercept).fit(data.x, data.y)
    found = np.r_[model.intercept_, model.coef_] if data.intercept else model.coef_
    bar = {"Filip": 7, "Wampler4": 7, "Wampler5": 6}.get(data.name, 9)
    assert digits(found, data.coef) >= bar
    assert model.certify(data.x, data.y).holds


def test_a_quadratic_of_a_million_monomial_entries_is_made_in_blocks():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 8))
    y = (X**2).sum(axis=1) + X[:, 0] * X[:, 1]
    model = PolynomialRegression(2).fit(X, y)
    expected = np.array([1.0 * (p.max() == 2) + 1.0 * (p[0] == p[1] == 1) for p in model.powers_])
    np.testing.assert_allclose(model.coef_, expected, atol=1e-12)
