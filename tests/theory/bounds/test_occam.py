"""Finite and countable classes: worked numbers, exact failure probability, and a prefix code whose Kraft sum is one."""

from fractions import Fraction
from math import comb, exp, log, sqrt

import numpy as np
import pytest

from lemmata.theory.bounds.growth import log_catalan
from lemmata.theory.bounds.occam import excess_bound, finite_class_bound, occam_bound, realizable_bound, tree_code_length

DELTA = 0.05


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(realizable_bound(1000, 500, DELTA), 0.019612, id="2.1"),
        pytest.param(finite_class_bound(50, 500, 1000, DELTA), 0.161571, id="2.2 binomial"),
        pytest.param(finite_class_bound(50, 500, 1000, DELTA, form="kl"), 0.169995, id="2.2 kl"),
        pytest.param(finite_class_bound(50, 500, 1000, DELTA, form="hoeffding"), 0.199516, id="2.2 Hoeffding"),
        pytest.param(excess_bound(1000, 500, DELTA), 0.199043, id="2.3"),
        pytest.param(tree_code_length(8, 10, 8), 70.876723, id="2.5 nats"),
        pytest.param(occam_bound(50, 1000, tree_code_length(8, 10, 8), DELTA), 0.174905, id="2.5 bound"),
        pytest.param(finite_class_bound(5, 100, 50, DELTA), 0.155367, id="1.7"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        pytest.param(lambda n: finite_class_bound(n // 20, n, 10**6, DELTA), [0.2578, 0.0962, 0.0625], id="a million"),
        pytest.param(
            lambda n: occam_bound(n // 20, n, tree_code_length(8, 10, 8), DELTA), [0.6105, 0.1749, 0.0802], id="8 leaves"
        ),
        pytest.param(
            lambda n: occam_bound(n // 20, n, tree_code_length(50, 10, 8), DELTA), [0.9953, 0.4963, 0.1474], id="50 leaves"
        ),
    ],
)
def test_vacuity_table(bound, expected):
    np.testing.assert_allclose([bound(n) for n in (100, 1000, 10_000)], expected, atol=5.1e-5)


def test_realizable_bound_is_nearly_attained():
    """Section 11: 200 independent hypotheses of equal risk, 60 points; some hypothesis is lucky with probability .0488."""
    risk = realizable_bound(200, 60, DELTA)
    lucky = 1 - (1 - (1 - risk) ** 60) ** 200
    assert lucky == pytest.approx(0.0488, abs=5e-5)
    assert realizable_bound(1000, 500, DELTA) < log(1000 / DELTA) / 500 == pytest.approx(0.019807, abs=5e-7)


def test_excess_is_below_the_textbook_form():
    textbook = 2 * sqrt(log(2 * 1000 / DELTA) / (2 * 500))
    assert excess_bound(1000, 500, DELTA) < textbook == pytest.approx(0.205880, abs=5e-7)
    enough = int(np.ceil(2 / 0.1**2 * log(2 * 1000 / DELTA)))
    assert excess_bound(1000, enough, DELTA) <= 0.1
    assert excess_bound(1000, enough // 4, DELTA) > 0.19  # a sample for the deviation is not one for the excess


def test_kraft_sum_of_the_tree_code_is_one():
    shapes = [Fraction(comb(2 * L - 2, L - 1), L) / 2 ** (2 * L - 1) for L in range(1, 60)]
    for leaves, total in enumerate(np.cumsum(shapes), start=1):
        assert 1 - total == Fraction(comb(2 * leaves, leaves), 4**leaves)  # tends to 0 like 1/√(π·leaves)
    for leaves in (1, 2, 9):  # all trees with so many leaves, 7 features, 3 bits, 4 classes
        trees = log_catalan(leaves - 1) + (leaves - 1) * log(7 * 2**3) + leaves * log(4)
        assert exp(trees - tree_code_length(leaves, 7, 3, classes=4)) == pytest.approx(float(shapes[leaves - 1]), rel=1e-11)


def test_classes_larger_than_a_float():
    assert finite_class_bound(10, 10_000, 2**2000, DELTA) == occam_bound(10, 10_000, 2000 * log(2), DELTA)
    assert realizable_bound(2**2000, 10_000, DELTA) == pytest.approx(1 - exp((log(DELTA) - 2000 * log(2)) / 10_000), rel=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: finite_class_bound(5, 100, 10, DELTA, form="wald"), "form must be"),
        (lambda: finite_class_bound(5, 100, 0, DELTA), "hypotheses"),
        (lambda: occam_bound(5, 100, -1.0, DELTA), "nats"),
        (lambda: tree_code_length(3, 2, -1), "bits"),
        (lambda: excess_bound(10, 10, 1.0), "delta"),
        (lambda: realizable_bound(10, 10, 0.0), "delta"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
