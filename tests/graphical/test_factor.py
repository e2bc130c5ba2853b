"""Factors: products, sums and maxima against NumPy, as numbers and as logarithms."""

import numpy as np
import pytest

from lemmata.graphical import Factor, FactorGraph, enumerate_joint


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return rng.random((2, 3)), rng.random((4, 3, 2))


@pytest.mark.parametrize("log", [False, True])
def test_products_sums_and_maxima(tables, log):
    f, g = tables
    a, b = (Factor(v, np.log(t) if log else t, log=log) for v, t in (("xy", f), ("zyx", g)))
    whole = np.einsum("xy,zyx->xyz", f, g)
    joint = a * b
    assert joint.variables == ("x", "y", "z")
    np.testing.assert_allclose(joint.as_linear().values, whole, rtol=1e-12)
    np.testing.assert_allclose(joint.marginal("zx").as_linear().values, whole.sum(axis=1).T, rtol=1e-12)
    np.testing.assert_allclose(joint.maximum("zx").as_linear().values, whole.max(axis=1).T, rtol=1e-12)
    np.testing.assert_allclose(joint.given({"y": 2}).as_linear().values, whole[:, 2], rtol=1e-12)
    np.testing.assert_allclose(joint.normalized().as_linear().values, whole / whole.sum(), rtol=1e-12)
    assert np.isclose(joint.total(), np.log(whole.sum()))
    np.testing.assert_allclose((a * b.as_log()).as_linear().values, whole, rtol=1e-12)


def test_zeros_have_logarithms():
    factor = Factor("a", [0.0, 2.0])
    np.testing.assert_array_equal(factor.as_log().values, [-np.inf, np.log(2)])
    np.testing.assert_array_equal(factor.as_log().as_linear().values, [0.0, 2.0])
    with pytest.raises(ValueError, match="no mass"):
        Factor("a", [0.0, 0.0]).normalized()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Factor("aa", np.ones((2, 2))), "repeats one"),
        (lambda: Factor("ab", [1.0, 2.0]), "as many axes"),
        (lambda: Factor("a", [1.0, -2.0]), "not negative"),
        (lambda: Factor("a", [1.0, np.nan]), "finite"),
        (lambda: Factor("a", [1.0, np.inf]), "finite"),
        (lambda: Factor("a", [1.0, np.inf], log=True), "below infinity"),
        (lambda: Factor("a", []), "at least one state"),
        (lambda: Factor("a", [1.0, 2.0]) * Factor("a", [1.0, 2.0, 3.0]), "2 states in one factor and 3"),
        (lambda: Factor("a", [1.0, 2.0]).marginal("b"), "no variable 'b'"),
        (lambda: FactorGraph([]), "at least one variable"),
        (lambda: FactorGraph([("a", [1, 2]), ("a", [1, 2, 3])]), "2 states in one factor and 3"),
        (lambda: FactorGraph([("a", [1, 2])], {"a": ["x"]}), "2 states and 1 labels"),
        (lambda: FactorGraph([("a", [1, 2])], {"a": ["x", "x"]}), "all different"),
        (lambda: enumerate_joint([Factor([i], np.ones(2)) for i in range(30)], range(30)), "junction tree"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_variable_with_one_state_does_not_hide_a_mismatch():
    with pytest.raises(ValueError, match="1 states in one factor and 2"):
        Factor("a", [1.0]) * Factor("a", [1.0, 2.0])
