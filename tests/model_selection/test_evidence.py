"""Laplace's approximation of the evidence: exact for normal posteriors, near quadrature for others, refused off the mode."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import multivariate_normal, norm

from lemmata.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from lemmata.model_selection import laplace_evidence

X3, Y3 = np.array([1.0, 2.0, -1.0]), np.array([1.0, 1.0, -1.0])  # the three rows of CLS-07 and CLS-16


def log_labels(w):
    return -np.log1p(np.exp(-Y3 * X3 * w)).sum()


@pytest.mark.item("MSL-08")
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("given", ["differences", "gradient", "hessian"])
def test_exact_where_the_posterior_is_normal(seed, given):
    rng = np.random.default_rng(seed)
    X, prior, noise = rng.normal(size=(20, 3)), 0.7, 0.4
    y = X @ rng.normal(size=3) + noise * rng.normal(size=20)
    model = BayesianLinearRegression(prior, noise, fit_intercept=False).fit(X, y)

    def log_joint(w):
        return norm(X @ w, np.sqrt(noise)).logpdf(y).sum() + norm(0, prior**-0.5).logpdf(w).sum()

    def gradient(w):
        return X.T @ (y - X @ w) / noise - prior * w

    more = {"gradient": {"gradient": gradient}, "hessian": {"hessian": -(X.T @ X / noise + prior * np.eye(3))}}.get(given, {})
    value = laplace_evidence(log_joint, model.coef_, **more)
    exact = multivariate_normal(np.zeros(20), noise * np.eye(20) + X @ X.T / prior).logpdf(y)
    atol = {"differences": 1e-5, "gradient": 1e-8, "hessian": 1e-8}[given]  # second differences have half the digits
    assert value == pytest.approx(exact, abs=atol)
    assert model.log_evidence_ == pytest.approx(exact, abs=1e-8)


@pytest.mark.item("MSL-08")
def test_exact_with_an_intercept_under_a_flat_prior():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2)) + 4
    y = X @ [1.0, -2.0] + 3 + rng.normal(size=30)
    model = BayesianLinearRegression(0.5, 1.3).fit(X, y)

    def log_joint(theta):
        return norm(X @ theta[:2] + theta[2], 1.3**0.5).logpdf(y).sum() + norm(0, 0.5**-0.5).logpdf(theta[:2]).sum()

    assert laplace_evidence(log_joint, model.mean_) == pytest.approx(model.log_evidence_, abs=1e-5)  # second differences


@pytest.mark.item("CLS-16", "MSL-08")
def test_the_three_rows_of_the_notes():
    """The notes leave the constant −½ ln 2π of the prior out, in the approximation and in the exact value."""
    mode = minimize_scalar(lambda w: -log_labels(w) + w**2 / 2, bounds=(0, 3), method="bounded", options={"xatol": 1e-12}).x
    p = 1 / (1 + np.exp(-X3 * mode))
    curvature = 1 + (p * (1 - p) * X3**2).sum()
    assert 1 / curvature == pytest.approx(0.522070, abs=5e-7)
    value = laplace_evidence(lambda w: log_labels(w[0]) - w[0] ** 2 / 2, mode)
    assert value == pytest.approx(-0.645940, abs=1e-6)
    exact = np.log(quad(lambda w: np.exp(log_labels(w) - w**2 / 2), -30, 30)[0])
    assert exact == pytest.approx(-0.635190, abs=5e-7)
    model = BayesianLogisticRegression(1.0, fit_intercept=False).fit(X3[:, None], Y3)
    assert value - np.log(2 * np.pi) / 2 == pytest.approx(model.log_evidence_, abs=1e-6)


@pytest.mark.item("MSL-08")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_logistic_model_with_an_intercept(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2)) + np.array([1.0, 0.0])
    y = (X @ [1.0, -1.0] + rng.logistic(size=60) > 0).astype(int)
    model = BayesianLogisticRegression(2.0).fit(X, y)

    def log_joint(theta):
        z = (2 * y - 1) * (X @ theta[:2] + theta[2])
        return -np.log1p(np.exp(-z)).sum() + norm(0, 2.0**-0.5).logpdf(theta[:2]).sum()

    mode = np.append(model.coef_[0], model.intercept_)
    assert laplace_evidence(log_joint, mode) == pytest.approx(model.log_evidence_, abs=1e-5)  # second differences


@pytest.mark.item("MSL-08")
def test_the_error_falls_like_one_over_n():
    """Beta integrals: the evidence of n tosses is B(h + 1, t + 1); 4 times the tosses leave a quarter of the error."""
    from scipy.special import betaln

    errors = []
    for n in (20, 80, 320):
        heads, tails = 0.3 * n, 0.7 * n

        def log_joint(z, heads=heads, tails=tails):
            p = 1 / (1 + np.exp(-z[0]))
            return (heads + 1) * np.log(p) + (tails + 1) * np.log1p(-p)

        mode = np.log((heads + 1) / (tails + 1))
        hessian = -(n + 2) * (heads + 1) / (n + 2) * (tails + 1) / (n + 2)
        errors.append(laplace_evidence(log_joint, mode, hessian) - betaln(heads + 1, tails + 1))
    ratios = np.divide(errors[1:], errors[:-1])
    assert (np.abs(ratios - 0.25) < 0.03).all()  # the next order of the series, at 20 tosses


def test_units_of_the_parameters_do_not_matter():
    def log_joint(theta):
        return norm(0, 1e-4).logpdf(theta[0]) + norm(0, 1e5).logpdf(theta[1])

    assert laplace_evidence(log_joint, [0.0, 0.0], np.diag([-1e8, -1e-10])) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.item("MSL-08")
@pytest.mark.parametrize("given", ["differences", "gradient"])
@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e-3, 1e3, 1e4, 1e6, 1e100])
def test_differences_are_as_long_as_the_posterior_is_wide(scale, given):
    """The same rows in other units: the mode is near zero, and the width says how far it is to anywhere."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    s = np.where(X @ [1.0, 1.0] + rng.logistic(size=30) > 0, 1, -1)

    def log_joint(w, unit=1.0):
        return -np.logaddexp(0, -s * (X @ (w * unit))).sum() + norm(0, 1).logpdf(w * unit).sum() + 2 * np.log(unit)

    def gradient(w, unit=1.0):
        return unit * (X.T @ (s / (1 + np.exp(s * (X @ (w * unit))))) - w * unit)

    mode = minimize(lambda w: -log_joint(w), [0.0, 0.0], jac=lambda w: -gradient(w), tol=1e-12).x
    p = 1 / (1 + np.exp(-X @ mode))
    expected = laplace_evidence(log_joint, mode, -(X.T @ ((p * (1 - p))[:, None] * X) + np.eye(2)))
    more = {} if given == "differences" else {"gradient": lambda w: gradient(w, scale)}
    found = laplace_evidence(lambda w: log_joint(w, scale), mode / scale, **more)
    assert found == pytest.approx(expected, abs=1e-5)  # second differences


def test_what_is_no_mode_is_refused():
    with pytest.raises(ValueError, match="bends upwards"):
        laplace_evidence(lambda t: t[0] ** 2 - t[1] ** 2, [0.0, 0.0])
    with pytest.raises(ValueError, match="lies flat"):
        laplace_evidence(lambda t: -((t[0] + t[1]) ** 2), [0.0, 0.0])
    with pytest.raises(ValueError, match=r"0\.5 nats more"):
        laplace_evidence(lambda t: -(t[0] ** 2) / 2, [1.0])
    assert laplace_evidence(lambda t: -(t[0] ** 2) / 2, [1e-3]) == pytest.approx(np.log(2 * np.pi) / 2, abs=1e-6)
    with pytest.raises(ValueError, match="finite there"):
        laplace_evidence(lambda t: -np.inf, [0.0])
    with pytest.raises(ValueError, match="not symmetric"):
        laplace_evidence(lambda t: -(t @ t), [0.0, 0.0], [[-2.0, 1.0], [0.0, -2.0]])
    with pytest.raises(ValueError, match="shape"):
        laplace_evidence(lambda t: -(t @ t), [0.0, 0.0], -2.0)
    for mode in ([0.0, np.nan], []):
        with pytest.raises(ValueError, match="finite numbers"):
            laplace_evidence(lambda t: -(t @ t), mode)
    with pytest.raises(ValueError, match=r"one number, the sum over all rows; got an array of shape \(3,\)"):
        laplace_evidence(lambda t: -((t - np.arange(3.0)) ** 2), [1.0])
