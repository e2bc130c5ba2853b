"""Additive smoothing against exact fractions, the posterior mean by quadrature, and both limits of its weight."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from lemmata.probability.distributions import Dirichlet
from lemmata.probability.smoothing import smooth


@pytest.mark.item("PRB-18")
def test_the_unseen_vote():
    counts = [[0, 8], [5, 3]]  # rows are parties, columns votes
    assert smooth(counts, alpha=0)[0, 0] == 0
    assert smooth(counts)[0, 0] == 0.1


@pytest.mark.item("PRB-18")
@pytest.mark.parametrize("alpha", [Fraction(1), Fraction(1, 2), Fraction(7, 3), Fraction(1, 1000), Fraction(10**6)])
def test_table_is_the_exact_one(alpha):
    counts = np.random.default_rng(0).integers(0, 9, size=(5, 4))
    counts[2] = 0  # a condition that was never seen
    p = smooth(counts, float(alpha))
    for i, row in enumerate(counts):
        exact = [(Fraction(int(c)) + alpha) / (int(row.sum()) + 4 * alpha) for c in row]
        np.testing.assert_allclose(p[i], [float(e) for e in exact], rtol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-15)
    assert (p > 0).all()
    np.testing.assert_array_equal(smooth(counts.T, float(alpha), axis=0), p.T)


@pytest.mark.item("PRB-18")
def test_limits_of_the_weight():
    counts = np.array([[3, 0, 1], [2, 2, 4]])
    likely = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(smooth(counts, 0), likely)
    np.testing.assert_allclose(smooth(counts, 1e-12), likely, atol=1e-12)
    for alpha in (1e300, 1.7e308, np.inf):
        np.testing.assert_allclose(smooth(counts, alpha), 1 / 3, rtol=1e-15)
    np.testing.assert_array_equal(smooth([0, 0], 1e-320), [0.5, 0.5])


@pytest.mark.item("PRB-18")
@pytest.mark.parametrize(("c", "alpha"), [((0, 8), 1.0), ((3, 2), 0.5), ((0, 0), 2.0)])
def test_is_the_posterior_mean_under_a_symmetric_dirichlet_prior(c, alpha):
    density = lambda t: t ** (c[0] + alpha - 1) * (1 - t) ** (c[1] + alpha - 1)  # noqa: E731
    mean = quad(lambda t: t * density(t), 0, 1, epsabs=0)[0] / quad(density, 0, 1, epsabs=0)[0]
    assert smooth(c, alpha)[0] == pytest.approx(mean, rel=1e-8)
    predictive = Dirichlet([alpha, alpha]).update(c).predictive()
    np.testing.assert_allclose(smooth(c, alpha), predictive.pmf([0, 1]), rtol=1e-14)


def test_wrong_input_is_refused():
    for counts in ([-1, 2], [np.inf, 1], [np.nan, 1], 3.0, []):
        with pytest.raises(ValueError, match="Counts must be"):
            smooth(counts)
    for alpha in (-1, np.nan, [1, 2]):
        with pytest.raises(ValueError, match="alpha must be"):
            smooth([1, 2], alpha)
    with pytest.raises(ValueError, match="needs a count"):
        smooth([[1, 2], [0, 0]], 0)
