"""Sample compression: worked numbers, the equation of Campi and Garatti in exact fractions, and exact failure probabilities."""

from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from scipy.stats import beta

from lemmata.theory.bounds.compression import (
    campi_garatti_bound,
    compression_bound,
    graepel_bound,
    stable_compression_bound,
    support_vector_expectation,
)
from lemmata.theory.bounds.holdout import clopper_pearson

DELTA = 0.05
SIZES = (100, 1000, 10_000)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(compression_bound(30, 20, 1000, DELTA), 0.176421, id="5.1"),
        pytest.param(graepel_bound(30, 20, 1000, DELTA), 0.261802, id="5.1 Hoeffding"),
        pytest.param(compression_bound(0, 20, 1000, DELTA), 0.101382, id="5.2"),
        pytest.param(compression_bound(0, 200, 1000, DELTA), 0.471753, id="5.2 k=200"),
        pytest.param(stable_compression_bound(20, 1000, DELTA), 0.065452, id="5.3"),
        pytest.param(campi_garatti_bound(20, 1000, DELTA), 0.035522, id="5.4"),
        pytest.param(campi_garatti_bound(200, 1000, DELTA), 0.242044, id="5.4 k=200"),
        pytest.param(compression_bound(20, 15, 1000, DELTA), 0.134667, id="5.6"),
        pytest.param(support_vector_expectation(183, 1000), 0.183, id="5.7"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("bound", "share", "expected"),
    [
        pytest.param(lambda k, n: compression_bound(0, k, n, DELTA), 0.05, [0.2303, 0.1954, 0.1896], id="5.2 k=.05n"),
        pytest.param(lambda k, n: compression_bound(0, k, n, DELTA), 0.2, [0.5087, 0.4718, 0.4659], id="5.2 k=.2n"),
        pytest.param(lambda k, n: compression_bound(0, k, n, DELTA), 0.5, [0.7884, 0.7558, 0.7508], id="5.2 k=.5n"),
        pytest.param(lambda k, n: stable_compression_bound(k, n, DELTA), 0.05, [0.1962, 0.1427, 0.1315], id="5.3 k=.05n"),
        pytest.param(lambda k, n: stable_compression_bound(k, n, DELTA), 0.2, [0.4918, 0.4390, 0.4306], id="5.3 k=.2n"),
        pytest.param(lambda k, n: stable_compression_bound(k, n, DELTA), 0.5, [0.7884, 0.7558, 0.7508], id="5.3 k=.5n"),
        pytest.param(lambda k, n: campi_garatti_bound(k, n, DELTA), 0.05, [0.1342, 0.0732, 0.0575], id="5.4 k=.05n"),
        pytest.param(lambda k, n: campi_garatti_bound(k, n, DELTA), 0.2, [0.3303, 0.2420, 0.2142], id="5.4 k=.2n"),
        pytest.param(lambda k, n: campi_garatti_bound(k, n, DELTA), 0.5, [0.6488, 0.5529, 0.5183], id="5.4 k=.5n"),
    ],
)
def test_vacuity_table(bound, share, expected):
    np.testing.assert_allclose([bound(int(share * n), n) for n in SIZES], expected, atol=5.1e-5)


def test_vacuity_table_with_errors():
    found = [compression_bound(int(0.05 * (n - 20)), 20, n, DELTA) for n in SIZES]
    np.testing.assert_allclose(found, [0.5972, 0.2108, 0.0965], atol=5.1e-5)


@pytest.mark.parametrize("n", [1, 2, 6, 25])
@pytest.mark.parametrize("delta", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)])
def test_campi_garatti_solves_its_equation(n, delta):
    for k in range(n):
        eps = Fraction(campi_garatti_bound(k, n, float(delta)))
        total = sum(Fraction(comb(m, k), comb(n, k)) / (1 - eps) ** (n - m) for m in range(k, n)) * delta / n
        assert float(total) == pytest.approx(1.0, rel=1e-9 + 1e-14 / float(1 - eps))


def test_campi_garatti_of_many_points():
    """With k = 0 the sum is geometric; a hundred thousand points and every share of them keep their order."""
    n = 100_000
    eps = campi_garatti_bound(0, n, DELTA)
    r = 1 / (1 - eps)
    assert log(DELTA / n) + log(r * (r**n - 1) / (r - 1)) == pytest.approx(0, abs=1e-7)
    values = [campi_garatti_bound(k, n, DELTA) for k in (0, 10, 1000, 50_000, 99_999, 100_000)]
    assert (np.diff(values) > 0).all()
    assert values[-1] == 1
    assert 1 - values[-2] == pytest.approx(DELTA / n / n, rel=1e-4)


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_order_of_the_three_bounds(n):
    for k in range(0, n // 2, max(n // 20, 1)):
        plain, stable, ordered = (
            compression_bound(0, k, n, DELTA),
            stable_compression_bound(k, n, DELTA),
            campi_garatti_bound(k, n, DELTA),
        )
        assert stable <= plain + 1e-15  # B = n is among the blocks
        if k > 0:
            assert ordered <= stable + 1e-15


def test_blocks_contain_the_closed_form():
    """Section 5.3: (2/(n−2k))·(k·ln 4 + ln 1/(δ·w_k)) = 0.076786 is never smaller."""
    for k, n in [(20, 1000), (1, 50), (7, 300), (100, 5000)]:
        closed = 2 / (n - 2 * k) * (k * log(4) + log((k + 1) * (k + 2) / DELTA))
        assert stable_compression_bound(k, n, DELTA) <= closed
        if (k, n) == (20, 1000):
            assert closed == pytest.approx(0.076786, abs=5e-7)


def test_hull_of_an_interval():
    """The least and the largest of n uniform points: the range is Beta(n−1, 2), so probabilities of failure are exact."""
    n = 50
    failures = [
        float(beta.cdf(1 - bound, n - 1, 2))
        for bound in (
            campi_garatti_bound(2, n, DELTA),
            compression_bound(0, 2, n, 12 * DELTA),  # without w₂ = 1/12, legal as k = 2 is known here
            stable_compression_bound(2, n, DELTA),
        )
    ]
    assert failures[0] == pytest.approx(0.0015, abs=5e-4)
    assert failures[1] == pytest.approx(0.0002, abs=2e-4)
    assert failures[2] == pytest.approx(0.0001, abs=5e-5)


def test_nothing_kept_is_a_test_set_and_everything_kept_says_nothing():
    assert compression_bound(5, 0, 100, DELTA) == clopper_pearson(5, 100, DELTA / 2)  # w₀ = ½
    assert stable_compression_bound(0, 100, DELTA) == pytest.approx(clopper_pearson(0, 100, DELTA / 2), rel=1e-14)
    for bound in (
        compression_bound(0, 30, 30, DELTA),
        graepel_bound(0, 30, 30, DELTA),
        stable_compression_bound(30, 30, DELTA),
        campi_garatti_bound(30, 30, DELTA),
    ):
        assert bound == 1


def test_a_message_costs_its_bits():
    assert compression_bound(3, 5, 100, DELTA, bits=1) == pytest.approx(compression_bound(3, 5, 100, DELTA / 2), rel=1e-13)
    assert compression_bound(30, 20, 1000, DELTA) < graepel_bound(30, 20, 1000, DELTA)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compression_bound(0, 11, 10, DELTA), "kept"),
        (lambda: compression_bound(6, 5, 10, DELTA), "more errors"),
        (lambda: compression_bound(1, 5, 10, DELTA, bits=-1), "bits"),
        (lambda: campi_garatti_bound(-1, 10, DELTA), "kept"),
        (lambda: stable_compression_bound(1, 10, 0.0), "delta"),
        (lambda: support_vector_expectation(11, 10), "more errors|kept"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
