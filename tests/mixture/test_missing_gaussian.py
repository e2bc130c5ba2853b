"""`MissingGaussian`, against the catalogue, closed forms and simulations."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lemmata.mixture import MissingGaussian
from lemmata.probability import MultivariateNormal

NAN = float("nan")
FIVE = np.array([[1, 2], [2, NAN], [3, 5], [4, NAN], [0, 1.5]])


def correlated(n=400, seed=0, share=0.25):
    rng = np.random.default_rng(seed)
    A = np.array([[1.0, 0, 0], [0.9, 0.5, 0], [-0.4, 0.3, 0.8]])
    X = rng.normal(size=(n, 3)) @ A.T + [10.0, -5.0, 0.0]
    Y = X.copy()
    Y[rng.random(X.shape) < share] = np.nan
    return Y, X


@pytest.mark.item("CLU-16")
def test_five_rows_by_hand():
    model = MissingGaussian(reg_covar=0.0, tol=1e-15).fit(FIVE)
    np.testing.assert_allclose(model.mean_, [2, 3.642857], atol=6e-7)
    np.testing.assert_allclose(model.covariance_, [[2, 2.428571], [2.428571, 3.044218]], atol=6e-7)
    assert model.score(FIVE) * 5 == pytest.approx(-9.557313, abs=6e-7)
    # Only the second column has holes, so the likelihood factors: x alone, and y given x from the rows in which it is seen.
    x, seen = FIVE[:, 0], ~np.isnan(FIVE[:, 1])
    slope = np.cov(x[seen], FIVE[seen, 1], bias=True)[0, 1] / np.var(x[seen])
    rest = np.var(FIVE[seen, 1] - slope * x[seen])
    mean = FIVE[seen, 1].mean() + slope * (x.mean() - x[seen].mean())
    np.testing.assert_allclose(model.mean_, [x.mean(), mean], rtol=1e-7)
    variance = rest + slope**2 * np.var(x)
    np.testing.assert_allclose(model.covariance_, [[np.var(x), slope * np.var(x)], [slope * np.var(x), variance]], rtol=1e-6)
    # The distribution of every hole: its mean on the line, its variance the rest.
    for row in FIVE[~seen]:
        law = model.conditional(row)
        np.testing.assert_allclose(law.mean, mean + slope * (row[0] - x.mean()), rtol=1e-6)
        np.testing.assert_allclose(law.cov, rest, rtol=1e-5)
        np.testing.assert_allclose(model.transform(row[None])[0, 1], law.mean[0], rtol=1e-12)
        np.testing.assert_allclose(model.fill_std(row[None]) ** 2, [[0, law.cov[0, 0]]], rtol=1e-9)


@pytest.mark.item("CLU-16")
def test_the_likelihood_of_what_is_seen_never_falls():
    Y, _ = correlated()
    model = MissingGaussian(acceleration=None).fit(Y)
    assert (np.diff(model.trace_) > -1e-13).all()
    assert len(model.trace_) > 5
    total = sum(
        multivariate_normal(model.mean_[o], model.covariance_[np.ix_(o, o)]).logpdf(row[o])
        for row in Y
        for o in [~np.isnan(row)]
        if o.any()
    )
    assert model.lower_bound_ * len(Y) == pytest.approx(total, rel=1e-12)
    assert model.certify(Y).holds, str(model.certify(Y))


@pytest.mark.item("CLU-16")
def test_nothing_missing_is_the_mean_and_the_covariance():
    _, X = correlated()
    model = MissingGaussian(reg_covar=0.0).fit(X)
    exact = MultivariateNormal.fit(X)
    np.testing.assert_allclose(model.mean_, exact.mean, rtol=1e-13)
    np.testing.assert_allclose(model.covariance_, exact.cov, rtol=1e-11)
    assert np.array_equal(model.transform(X), X)
    assert (model.fill_std(X) == 0).all()


def test_filling_first_would_find_too_little_variance():
    Y, X = correlated(n=4000, share=0.4)
    model = MissingGaussian().fit(Y)
    filled = np.cov(model.transform(Y).T, bias=True)
    truth = np.cov(X.T, bias=True)
    assert (np.diagonal(filled) < 0.9 * np.diagonal(truth)).all()
    np.testing.assert_allclose(np.diagonal(model.covariance_), np.diagonal(truth), rtol=0.1)
    # Draws have the variance that means lack, and their mean over draws is the conditional mean.
    draws = model.set_params(random_state=0).draw(Y, 20)
    np.testing.assert_allclose(np.cov(draws[0].T, bias=True), model.covariance_, rtol=0.1, atol=0.05)
    holes = np.isnan(Y)
    np.testing.assert_allclose(draws.mean(axis=0)[~holes], Y[~holes])
    error = (draws.mean(axis=0) - model.transform(Y))[holes] / model.fill_std(Y)[holes] * np.sqrt(20)
    assert abs(error.std() - 1.0) < 0.05
    assert abs(draws.var(axis=0, ddof=1)[holes] / model.fill_std(Y)[holes] ** 2 - 1.0).mean() < 0.4


def test_standardized_errors_of_filled_entries_are_normal():
    Y, X = correlated(n=5000)
    model = MissingGaussian().fit(Y)
    holes = np.isnan(Y)
    z = (model.transform(Y) - X)[holes] / model.fill_std(Y)[holes]
    assert abs(z.mean()) < 0.06
    assert abs(z.var() - 1.0) < 0.08


def test_rows_of_which_nothing_is_seen_add_nothing():
    Y, _ = correlated()
    more = np.vstack([Y, np.full((50, 3), np.nan)])
    one, other = MissingGaussian(tol=1e-15).fit(Y), MissingGaussian(tol=1e-15).fit(more)
    np.testing.assert_allclose(one.mean_, other.mean_, rtol=1e-6)
    np.testing.assert_allclose(other.transform(more[-1:])[0], other.mean_)
    np.testing.assert_allclose(other.conditional(more[-1]).cov, other.covariance_)


def test_refusals():
    model = MissingGaussian().fit(FIVE)
    with pytest.raises(ValueError, match="no missing entry"):
        model.conditional([1.0, 2.0])
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        model.draw(FIVE, 0)
    with pytest.raises(ValueError, match="raise reg_covar"):
        MissingGaussian(reg_covar=0.0).fit([[1.0, 2.0], [1.0, NAN], [1.0, 6.0]])
