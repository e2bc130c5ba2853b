"""Estimates and standard errors against statsmodels, whose numbers stand in tests/reference/statsmodels.json."""

import json
from pathlib import Path

import numpy as np
import pytest

from lemmata.linear_model import LinearRegression, LogisticRegression, ProbitRegression

PATH = Path(__file__).resolve().parents[1] / "reference" / "statsmodels.json"
REFERENCE = json.loads(PATH.read_text(encoding="ascii"))
CLASSES = ["voters", "seeded"]
# 1e-8: what iterative reweighting in raw coordinates leaves of the peer's digits where columns are off center.
RTOL = 1e-8


def data(name):
    record = REFERENCE[name]
    return np.array(record["X"]), np.array(record["y"]), record["fits"]


def joined(model):
    return np.append(model.coef_, model.intercept_)


def log_likelihood(model, X, y, weight=None):
    own = model.predict_log_proba(X)[np.arange(len(y)), y.astype(int)]
    return np.average(own, weights=weight) * (len(y) if weight is None else weight.sum())


@pytest.mark.parametrize("name", ["states", "voters", "seeded"])
def test_linear_regression(name):
    X, y, fits = data(name)
    model, peer = LinearRegression().fit(X, y), fits["OLS"]
    np.testing.assert_allclose(joined(model), peer["coef"], rtol=RTOL)
    np.testing.assert_allclose(np.append(model.standard_errors_, model.intercept_standard_error_), peer["std_err"], rtol=RTOL)
    assert model.noise_variance_ == pytest.approx(peer["noise_variance"], rel=RTOL)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("kind", ["Logit", "GLM logit"])
def test_logistic_regression(name, kind):
    X, y, fits = data(name)
    model, peer = LogisticRegression(C=np.inf, solver="newton").fit(X, y), fits[kind]
    np.testing.assert_allclose(joined(model), peer["coef"], rtol=RTOL)
    np.testing.assert_allclose(model.standard_errors(X), peer["std_err"], rtol=RTOL)
    assert log_likelihood(model, X, y) == pytest.approx(peer["log_likelihood"], rel=1e-12)


@pytest.mark.item("CLS-17")
@pytest.mark.parametrize("name", CLASSES)
def test_probit_with_the_observed_information(name):
    X, y, fits = data(name)
    model, peer = ProbitRegression(C=np.inf).fit(X, y), fits["Probit"]
    np.testing.assert_allclose(joined(model), peer["coef"], rtol=RTOL)
    np.testing.assert_allclose(model.standard_errors(X, y), peer["std_err"], rtol=RTOL)
    assert log_likelihood(model, X, y) == pytest.approx(peer["log_likelihood"], rel=1e-12)
    assert model.certify(X, y).holds


@pytest.mark.item("CLS-17")
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
def test_every_link_with_the_expected_information(name, link):
    X, y, fits = data(name)
    model, peer = ProbitRegression(C=np.inf, link=link).fit(X, y), fits[f"GLM {link}"]
    np.testing.assert_allclose(joined(model), peer["coef"], rtol=RTOL)
    np.testing.assert_allclose(model.standard_errors(X), peer["std_err"], rtol=RTOL)
    assert log_likelihood(model, X, y) == pytest.approx(peer["log_likelihood"], rel=1e-12)
    assert model.certify(X, y).holds


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
def test_weights_are_counts(link):
    X, y, _ = data("seeded")
    weight, peer = np.array(REFERENCE["seeded"]["weight"]), REFERENCE["seeded"]["weighted fits"][f"GLM {link}"]
    model = ProbitRegression(C=np.inf, link=link).fit(X, y, weight)
    np.testing.assert_allclose(joined(model), peer["coef"], rtol=RTOL)
    np.testing.assert_allclose(model.standard_errors(X, sample_weight=weight), peer["std_err"], rtol=RTOL)
    assert log_likelihood(model, X, y, weight) == pytest.approx(peer["log_likelihood"], rel=1e-12)
