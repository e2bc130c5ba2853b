"""Inverse links against SciPy's distributions, continued fractions in 60 digits, finite differences and brute force."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.stats as st
from scipy.optimize import minimize_scalar

from lemmata.linear_model.inverse_links import LINKS, Frozen, inverse_link, normal_curvature, normal_rate
from lemmata.linear_model.links import log_sigmoid, sigmoid

PEERS = {"probit": st.norm(), "logit": st.logistic(), "cloglog": st.gumbel_l(), "cauchit": st.cauchy()}
links = pytest.mark.parametrize("name", LINKS)
Z = np.linspace(-6, 3, 37)
BOTH = np.tile(Z, 2), np.repeat([False, True], len(Z))


@pytest.mark.item("CLS-17")
@links
def test_probabilities_are_those_of_the_distribution(name):
    logs = LINKS[name].log_probabilities(Z)
    peer = np.column_stack([PEERS[name].logsf(Z), PEERS[name].logcdf(Z)])
    np.testing.assert_allclose(logs, peer, rtol=1e-11, atol=1e-15)  # the peer takes log(1 − p) in the upper tail
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-14)


@links
def test_slopes_and_curvatures_are_derivatives(name):
    link, (z, second), h = LINKS[name], BOTH, 1e-5
    slope = (link.loss(z + h, second) - link.loss(z - h, second)) / (2 * h)
    curvature = (link.slope(z + h, second) - link.slope(z - h, second)) / (2 * h)
    # 1e-9: h² of the central difference, and rounding over h
    np.testing.assert_allclose(link.slope(z, second), slope, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(link.curvature(z, second), curvature, rtol=1e-9, atol=1e-9)


@links
def test_the_information_is_the_expected_curvature(name):
    link, every = LINKS[name], np.ones(len(Z), dtype=bool)
    p = np.exp(link.log_probabilities(Z))
    expected = p[:, 0] * link.curvature(Z, ~every) + p[:, 1] * link.curvature(Z, every)
    np.testing.assert_allclose(link.information(Z), expected, rtol=1e-9)  # the curvatures of "cauchit" cancel


def mills(t, terms=4000):
    """φ(−t)/Φ(−t) = t + 1/(t + 2/(t + 3/(t + …))) by Laplace's continued fraction, in 60 digits."""
    with localcontext(prec=60):
        value = Decimal(t)
        for k in range(terms, 0, -1):
            value = Decimal(t) + k / value
        return value, value * (value - Decimal(t))


@pytest.mark.parametrize("t", [5.0, 20.0, 49.9, 50.1, 200.0, 1e4, 1e8])
def test_the_normal_tail_keeps_its_digits(t):
    rate, curvature = mills(t)
    assert normal_rate(-t) == pytest.approx(float(rate), rel=1e-14)
    assert normal_curvature(np.array([-t]))[0] == pytest.approx(float(curvature), rel=2e-12)  # 50² roundings at 50


@links
def test_nothing_overflows_far_out(name):
    link, z = LINKS[name], np.array([-1e4, -800.0, -60.0, 60.0, 600.0])
    for second in (np.zeros(5, dtype=bool), np.ones(5, dtype=bool)):
        for values in (link.loss(z, second), link.slope(z, second), link.curvature(z, second)):
            assert np.isfinite(values).all()
    if link.convex:  # a row of the second class costs its distance, or its square, far below
        far = {"probit": 1e8 / 2, "logit": 1e4, "cloglog": 1e4}[name]
        assert link.loss(np.array([-1e4]), np.array([True]))[0] == pytest.approx(far, rel=1e-6)


def test_the_complementary_log_log_keeps_its_digits_near_the_series():
    link, second = LINKS["cloglog"], np.array([True])
    for z in (-800.0, -40.001, -39.999, -10.0, -2.4, -2.303, -2.302, 0.0, 1.0, 3.5):
        with localcontext(prec=800):  # e⁻⁸⁰⁰ beside 1
            u = Decimal(z).exp()
            rate = u / (u.exp() - 1)
            loss, curvature = -(1 - (-u).exp()).ln(), rate * (rate - 1 + u)
        at = np.array([z])
        assert link.loss(at, second)[0] == pytest.approx(float(loss), rel=1e-14)
        assert link.slope(at, second)[0] == pytest.approx(-float(rate), rel=1e-14)
        assert link.curvature(at, second)[0] == pytest.approx(float(curvature), rel=1e-12)


@pytest.mark.item("CLS-17")
@links
def test_the_link_inverts_the_distribution_on_the_open_interval(name):
    p = np.array([1e-300, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
    z = LINKS[name].quantile(p)
    kept = np.abs(z) < 1e100  # the Cauchy quantile of 1e-300 is 1e299
    logs = LINKS[name].log_probabilities(z[kept])
    np.testing.assert_allclose(logs[:, 1], np.log(p[kept]), rtol=1e-12, atol=1e-15)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(LINKS[name].quantile(np.array([0.0, 1.0])), [-np.inf, np.inf])


@links
def test_losses_are_convex_just_where_they_are_said_to_be(name):
    link, (z, second) = LINKS[name], BOTH
    assert (link.curvature(z, second) >= 0).all() == link.convex


def test_the_logistic_link_is_the_sigmoid():
    logs = LINKS["logit"].log_probabilities(Z)
    np.testing.assert_array_equal(logs[:, 1], log_sigmoid(Z))
    np.testing.assert_allclose(np.exp(logs[:, 1]), sigmoid(Z), rtol=1e-15)


@pytest.mark.parametrize("name", [n for n in LINKS if LINKS[n].convex])
def test_the_conjugate_is_a_supremum(name):
    link = LINKS[name]
    for second in (False, True):
        own = np.array([second])
        for t in (-3.0, -0.4, 0.0, 1.1, 2.5):
            a = link.slope(np.array([t]), own)
            value = link.conjugate(a, own, np.array([t + 0.05]))[0]
            brute = minimize_scalar(
                lambda x, a=a, own=own: float((link.loss(np.array([x]), own) - a * x)[0]),
                bounds=(-10, 5),
                method="bounded",
                options={"xatol": 1e-9},
            )
            assert value == pytest.approx(-brute.fun, rel=1e-9, abs=1e-12)
        # the loss falls towards its own class: a slope of the other sign is none
        assert link.conjugate(np.array([0.1 if second else -0.1]), own, np.array([0.0]))[0] == np.inf


@pytest.mark.parametrize("name", LINKS)
def test_a_frozen_distribution_is_the_same_link(name):
    ours, theirs, (z, second) = LINKS[name], inverse_link(PEERS[name]), BOTH
    assert isinstance(theirs, Frozen)
    assert not theirs.convex
    np.testing.assert_allclose(theirs.loss(z, second), ours.loss(z, second), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(theirs.slope(z, second), ours.slope(z, second), rtol=1e-11)
    np.testing.assert_allclose(theirs.curvature(z, second), ours.curvature(z, second), rtol=1e-7, atol=1e-9)  # differences
    np.testing.assert_allclose(theirs.quantile([0.2, 0.7]), ours.quantile([0.2, 0.7]), rtol=1e-12)


def test_a_distribution_must_live_on_all_numbers():
    with pytest.raises(ValueError, match=r"distribution on all numbers; this one has the support \(0"):
        inverse_link(st.expon())
