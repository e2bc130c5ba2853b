"""Sparse tables too wide for a triangle: the same answers as dense ones, by iteration."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from lemmata.linear_model import LinearRegression, Ridge, wide


def table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = csr_array(random_array((n, d), density=0.05, rng=rng))
    return X, X @ rng.normal(size=d) + rng.normal(size=n), rng.random(n)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 100.0])
def test_ridge_agrees_with_the_dense_route(alpha, intercept, monkeypatch):
    X, y, w = table(300, 120)
    dense = Ridge(alpha, fit_intercept=intercept).fit(X.toarray(), y, w)
    monkeypatch.setattr(wide, "WIDE", 100)
    model = Ridge(alpha, fit_intercept=intercept).fit(X, y, w)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-9, atol=1e-11)
    certificate = model.certify(X, y, w)
    assert certificate.holds
    assert certificate.kind == "proof"
    for name in ("coef_", "intercept_", "alpha_"):
        before = getattr(model, name)
        setattr(model, name, before * 1.01)
        if np.any(before):
            assert not model.certify(X, y, w).holds, name
        setattr(model, name, before)


@pytest.mark.parametrize("shape", [(400, 60), (60, 400)])
def test_least_squares_of_least_norm(shape, monkeypatch):
    X, y, w = table(*shape)
    dense = LinearRegression().fit(X.toarray(), y, w)
    monkeypatch.setattr(wide, "WIDE", 50)
    model = LinearRegression().fit(X, y, w)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-7, atol=1e-9)  # iterated, on a condition number of 1e2
    assert model.certify(X, y, w).holds
    assert model.rank_ is None
    assert np.isnan(model.standard_errors_).all()


def test_thirty_thousand_columns():
    X, y, _ = table(2000, 30_000)
    model = Ridge(1.0).fit(X, y)
    assert model.certify(X, y).holds
    assert LinearRegression().fit(X, y).certify(X, y).holds
    Y = np.column_stack([y, -y])
    both = Ridge([1.0, 2.0]).fit(X, Y)
    np.testing.assert_allclose(both.coef_[0], model.coef_, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="singular values"):
        Ridge("gcv").fit(X, y)
