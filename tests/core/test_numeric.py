"""Exponentials by the loop against those of NumPy."""

import numpy as np
import pytest

from lemmata.core.numeric import LOWEST, exponentials


def exponentials_of(x):
    out, bits = np.array(x, dtype=float), np.empty(len(x), np.int64)
    exponentials(out, len(x), bits, bits.view(np.float64))
    return out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 30.0, 700.0])
def test_exponentials_are_those_of_numpy(seed, scale):
    x = -scale * np.random.default_rng(seed).random(500)
    # The argument itself is known to a rounding, which the exponential multiplies by |x|.
    np.testing.assert_array_less(np.abs(exponentials_of(x) / np.exp(x) - 1), 2**-51 * (2 + np.abs(x)))


def test_the_ends():
    x = [0.0, -0.0, LOWEST, np.nextafter(LOWEST, -np.inf), -1e300, -np.inf]
    out = exponentials_of(x)
    assert np.array_equal(out[:2], [1.0, 1.0])
    assert out[2] == pytest.approx(np.exp(LOWEST), rel=1e-12)
    assert np.array_equal(out[3:], [0.0, 0.0, 0.0])


def test_halves_of_log_two_on_either_side():
    x = -np.log(2) * (np.arange(40) + 0.5)
    near = np.concatenate([np.nextafter(x, 0), x, np.nextafter(x, -np.inf)])
    np.testing.assert_allclose(exponentials_of(near), np.exp(near), rtol=2e-14)


def test_only_the_first_numbers_are_replaced():
    x, bits = np.full(4, -1.0), np.empty(4, np.int64)
    exponentials(x, 2, bits, bits.view(np.float64))
    assert np.array_equal(x[2:], [-1.0, -1.0])
