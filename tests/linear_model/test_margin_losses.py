"""Losses of the margin: convex, with true subgradients and conjugates, above zero-one where they are said to be."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from lemmata.linear_model.margin_losses import LOSSES, loss_derivative, loss_value

CONVEX = [name for name, loss in LOSSES.items() if loss.convex]
MARGINS = np.linspace(-6.0, 6.0, 2401)  # its steps of 1/200 meet every kink
KINKS = {"zero_one": [0.0], "perceptron": [0.0], "hinge": [1.0]}
DEFINITIONS = {
    "zero_one": lambda m: (m <= 0).astype(float),
    "perceptron": lambda m: np.maximum(0, -m),
    "hinge": lambda m: np.maximum(0, 1 - m),
    "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
    "logistic": lambda m: np.log(1 + np.exp(-m)),
    "log_loss": lambda m: np.log(1 + np.exp(-m)),
    "deviance": lambda m: np.log(1 + np.exp(-2 * m)),
    "exponential": lambda m: np.exp(-m),
    "squared": lambda m: (1 - m) ** 2 / 2,
    "modified_huber": lambda m: np.where(m < -1, -4 * m, np.maximum(0, 1 - m) ** 2),
}


def test_the_registry_holds_what_the_catalogue_names():
    assert set(LOSSES) == set(DEFINITIONS)
    assert LOSSES["log_loss"] is LOSSES["logistic"]
    assert not LOSSES["zero_one"].convex


@pytest.mark.item("CLS-20")
@pytest.mark.parametrize("name", LOSSES)
def test_values_are_the_definition(name):
    # 1e-12: a few roundings of logarithms and exponentials
    np.testing.assert_allclose(LOSSES[name].value(MARGINS), DEFINITIONS[name](MARGINS), rtol=1e-12, atol=1e-14)


@pytest.mark.item("CLS-20")
@pytest.mark.parametrize("name", CONVEX)
def test_losses_are_convex_and_derivatives_are_subgradients(name):
    loss = LOSSES[name]
    value, slope = loss.value(MARGINS), loss.derivative(MARGINS)
    assert (np.diff(value, 2) >= -1e-11).all(), "second differences"  # roundings of values up to 400
    tangents = value[:, None] + slope[:, None] * (MARGINS - MARGINS[:, None])
    assert (tangents <= value + 1e-9 * (1 + np.abs(tangents))).all(), "a tangent lies above the loss"


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_finite_differences(name):
    loss, h = LOSSES[name], 1e-6
    away = MARGINS[np.min(np.abs(MARGINS[:, None] - KINKS.get(name, [np.inf])), axis=1) > h]
    numeric = (loss.value(away + h) - loss.value(away - h)) / (2 * h)
    # 1e-6: h times the second derivative where it jumps, and the rounding of the difference
    np.testing.assert_allclose(loss.derivative(away), numeric, rtol=1e-6, atol=5e-6)
    for kink in [] if loss.smooth or not loss.convex else KINKS[name]:
        left, right = loss.derivative(kink - h), loss.derivative(kink + h)
        assert left < right
        assert left <= loss.derivative(kink) <= right


@pytest.mark.item("CLS-20")
def test_which_losses_lie_above_zero_one():
    errors = LOSSES["zero_one"].value(MARGINS)
    above = {name for name in CONVEX if (LOSSES[name].value(MARGINS) >= errors).all()}
    assert above == {"hinge", "squared_hinge", "exponential", "modified_huber"}
    for name in ("logistic", "deviance"):
        assert (LOSSES[name].value(MARGINS) / np.log(2) >= errors - 1e-15).all(), name
    assert LOSSES["perceptron"].value(0.0) == 0.0 < errors[MARGINS == 0.0], "which is why w = 0 minimizes it"
    assert (2 * LOSSES["squared"].value(MARGINS) >= errors).all()


@pytest.mark.item("CLS-20")
@pytest.mark.parametrize("p", [0.1, 0.4, 0.8])
def test_population_minimizers(p):
    def best(name):
        def risk(f):
            return float(p * LOSSES[name].value(f) + (1 - p) * LOSSES[name].value(-f))

        return minimize_scalar(risk, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10}).x

    # 1e-6: the search stops where the risk no longer changes in float64
    np.testing.assert_allclose(best("logistic"), logit(p), rtol=1e-6)
    np.testing.assert_allclose(best("deviance"), logit(p) / 2, rtol=1e-6)
    np.testing.assert_allclose(best("exponential"), logit(p) / 2, rtol=1e-6)
    for name in ("squared", "squared_hinge", "modified_huber"):
        np.testing.assert_allclose(best(name), 2 * p - 1, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(best("hinge"), np.sign(2 * p - 1), rtol=1e-6)


@pytest.mark.parametrize("name", CONVEX)
def test_conjugates_are_suprema(name):
    loss, wide = LOSSES[name], np.linspace(-40.0, 40.0, 80_001)
    inside = -loss.derivative(np.array([-3.0, -1.0, -0.3, 0.4, 0.99, 2.5]))
    supremum = np.max(-inside[:, None] * wide - loss.value(wide), axis=1)
    # 1e-5: the square of the grid's step of 1/1000, times the curvature
    np.testing.assert_allclose(loss.conjugate(inside), supremum, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONVEX)
def test_fenchel_and_young_meet_at_the_derivative(name):
    loss = LOSSES[name]
    slopes = -loss.derivative(MARGINS)
    # 1e-10: cancellation of terms up to 400
    np.testing.assert_allclose(loss.value(MARGINS) + loss.conjugate(slopes), -slopes * MARGINS, rtol=1e-10, atol=1e-10)
    other = np.linspace(-1.0, 5.0, 61)
    assert (loss.value(MARGINS)[:, None] + loss.conjugate(other) >= -other * MARGINS[:, None] - 1e-10).all()


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_overflows_at_large_margins(name):
    loss = LOSSES[name]
    for m in (-1e3, 1e3):
        if name == "exponential" and m < 0:
            assert loss.value(m) == np.inf
            assert loss.derivative(m) == -np.inf
        else:
            assert np.isfinite(loss.value(m))
            assert np.isfinite(loss.derivative(m))
    np.testing.assert_allclose(LOSSES["logistic"].derivative(MARGINS), -expit(-MARGINS), rtol=1e-14)


def test_kernels_and_objects_are_the_same_formulas():
    for name, loss in LOSSES.items():
        for m in (-2.5, 0.0, 0.3, 1.0, 4.0):
            assert loss_value(loss.code, m) == loss.value(m), name
            assert loss_derivative(loss.code, m) == loss.derivative(m), name
    assert LOSSES["hinge"].value([[0.0, 2.0]]).shape == (1, 2)
