"""PAC-Bayes: worked numbers, order of the bounds, Gaussian formulas by quadrature, exact failure probabilities."""

from math import log, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, multivariate_normal, norm

from lemmata.theory.bounds.pac_bayes import (
    c_bound,
    catoni_bound,
    first_order_bound,
    gaussian_divergence,
    gibbs_risk,
    lambda_bound,
    langford_bound,
    mcallester_bound,
    seeger_bound,
    tandem_bound,
)
from lemmata.theory.bounds.tails import kl_upper

DELTA = 0.05
SIZES = (100, 1000, 10_000)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(seeger_bound(0.1, 5, 1000, DELTA), 0.152001, id="6.1"),
        pytest.param(kl_upper(0.1, (5 + log(2 * sqrt(1000) / DELTA)) / 1000), 0.153110, id="6.1 with 2√n"),
        pytest.param(lambda_bound(0.1, 5, 1000, DELTA), 0.162897, id="6.2"),
        pytest.param(mcallester_bound(0.1, 5, 1000, DELTA), 0.177919, id="6.2 McAllester"),
        pytest.param(catoni_bound(0.1, 5, 1000, DELTA, 1.0), 0.161945, id="6.3"),
        pytest.param(gaussian_divergence([1, 1], 0.1 * np.eye(2), [0, 0], 1.0), 2.402585, id="6.4"),
        pytest.param(gibbs_risk(np.full(1000, 10 * 0.2), 1.0), 0.022750, id="6.5 Gibbs"),
        pytest.param(seeger_bound(gibbs_risk(np.full(1000, 2.0), 1.0), 50, 1000, DELTA), 0.111289, id="6.5 bound"),
        pytest.param(first_order_bound(gibbs_risk(np.full(1000, 2.0), 1.0), 1000, 50, DELTA), 0.222577, id="6.5 model"),
        pytest.param(c_bound(0.15, 0.2), 0.183333, id="6.7 C"),
        pytest.param(first_order_bound(0.15, 360, 0, DELTA), 0.447678, id="6.7 forest"),
        pytest.param(tandem_bound(0.03, 120, 0, DELTA), 0.453026, id="6.7 tandem"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        pytest.param(lambda n: seeger_bound(0.05, 5, n, DELTA), [0.2124, 0.0904, 0.0618], id="KL=5"),
        pytest.param(lambda n: seeger_bound(0.05, 50, n, DELTA), [0.5327, 0.1575, 0.0770], id="KL=50"),
        pytest.param(lambda n: first_order_bound(0.05, n, 50, DELTA), [1.0654, 0.3149, 0.1539], id="KL=50, vote"),
        pytest.param(lambda n: first_order_bound(0.15, int(0.35 * n), 0, DELTA), [0.7931, 0.4498, 0.3481], id="forest"),
        pytest.param(lambda n: tandem_bound(0.03, int(0.11 * n), 0, DELTA), [1.6706, 0.4717, 0.2113], id="tandem"),
    ],
)
def test_vacuity_table(bound, expected):
    np.testing.assert_allclose([bound(n) for n in SIZES], expected, atol=5.1e-5)


@pytest.mark.parametrize("gibbs", [0.0, 0.01, 0.1, 0.4])
@pytest.mark.parametrize("divergence", [0.0, 3.0, 80.0])
@pytest.mark.parametrize("n", [30, 1000, 100_000])
def test_seeger_is_below_its_relaxations(gibbs, divergence, n):
    best = seeger_bound(gibbs, divergence, n, DELTA)
    assert best <= lambda_bound(gibbs, divergence, n, DELTA) + 1e-15
    assert best <= mcallester_bound(gibbs, divergence, n, DELTA) + 1e-15


def test_rate_of_the_lambda_bound_is_the_best():
    cost = 5 + log(2 * sqrt(1000) / DELTA)
    rates = np.linspace(0.01, 1.99, 1981)
    values = 0.1 / (1 - rates / 2) + cost / (1000 * rates * (1 - rates / 2))
    assert lambda_bound(0.1, 5, 1000, DELTA) == pytest.approx(values.min(), rel=1e-6)
    assert lambda_bound(0.1, 5, 1000, DELTA) <= values.min()


def test_rates_are_paid_for_and_a_good_one_can_win():
    rates = [0.25, 0.5, 1.0]
    assert catoni_bound(0.1, 5, 1000, DELTA, rates) == min(catoni_bound(0.1, 5, 1000, DELTA / 3, r) for r in rates)
    assert catoni_bound(0.1, 5, 1000, DELTA, 0.4) < seeger_bound(0.1, 5, 1000, DELTA)


def test_gaussian_divergence_by_quadrature():
    def integrand(x):
        return norm.pdf(x, 0.7, 0.5) * (norm.logpdf(x, 0.7, 0.5) - norm.logpdf(x, -0.2, 1.5))

    assert gaussian_divergence([0.7], [[0.25]], [-0.2], 2.25) == pytest.approx(quad(integrand, -5, 6)[0], rel=1e-8)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    mean, cov, prior = rng.normal(size=4), root @ root.T + np.eye(4), rng.normal(size=4)
    draws = rng.multivariate_normal(mean, cov, size=40_000)
    logs = multivariate_normal(mean, cov).logpdf(draws) - multivariate_normal(prior, 2.0 * np.eye(4)).logpdf(draws)
    assert gaussian_divergence(mean, cov, prior, 2.0) == pytest.approx(logs.mean(), abs=5 * logs.std() / 200)
    assert gaussian_divergence(mean, np.diag([1.0, 2, 3, 4]), prior, 2.0) == pytest.approx(
        gaussian_divergence(mean, [1.0, 2, 3, 4], prior, 2.0), rel=1e-14
    )
    assert gaussian_divergence(prior, np.full(4, 3.0), prior, 3.0) == pytest.approx(0, abs=1e-14)


def test_gibbs_risk_is_that_of_random_planes():
    rng = np.random.default_rng(1)
    X, y, mean, cov = (
        rng.normal(size=(20, 2)),
        rng.choice([-1, 1], 20),
        np.array([1.0, -0.5]),
        np.array([[1.0, 0.3], [0.3, 0.5]]),
    )
    draws = rng.multivariate_normal(mean, cov, size=40_000)
    errors = ((draws @ X.T) * y <= 0).mean(axis=1)
    exact = gibbs_risk(y * (X @ mean), np.einsum("ij,jk,ik->i", X, cov, X))
    assert exact == pytest.approx(errors.mean(), abs=5 * errors.std() / 200)


@pytest.mark.parametrize("seed", range(3))
def test_langford_bound_is_the_least_over_all_lengths(seed):
    rng = np.random.default_rng(seed)
    cosines = rng.uniform(-0.05, 0.6, size=400)
    bound, mu = langford_bound(cosines, DELTA)
    assert bound == seeger_bound(gibbs_risk(mu * cosines, 1.0), mu**2 / 2, 400, DELTA)
    lengths = np.geomspace(0.01, 100, 500)
    others = [seeger_bound(float(ndtr(-m * cosines).mean()), m**2 / 2, 400, DELTA) for m in lengths]
    assert bound <= min(others) + 1e-12
    assert bound == pytest.approx(min(others), rel=1e-3)


def test_langford_bound_of_equal_margins():
    bound, mu = langford_bound(np.full(1000, 0.2), DELTA)
    assert bound < 0.111289
    assert mu > 10
    assert langford_bound([1.0], DELTA)[0] <= 1
    assert langford_bound(np.full(50, -0.3), DELTA)[0] > 0.5  # a classifier worse than a coin


def test_gibbs_bounds_cover_a_single_hypothesis():
    n = 100
    k = np.arange(n + 1)
    tables = [
        np.array([bound(float(i) / n, 0.0, n, DELTA) for i in k])
        for bound in (seeger_bound, lambda_bound, mcallester_bound, lambda *a: catoni_bound(*a, [0.5, 1.0, 2.0]))
    ]
    for p in (0.01, 0.1, 0.3, 0.5, 0.9):
        weights = binom.pmf(k, n, p)
        assert all(weights[table < p].sum() <= DELTA for table in tables)


def test_prior_fitted_to_the_same_data_is_no_prior():
    """Section 12.6: the best of 2,000 useless hypotheses on 50 points, quoted with KL = 0, is below ½ in 61% of samples."""
    k = np.arange(51)
    lucky = binom.pmf(k, 50, 0.5)[np.array([seeger_bound(i / 50, 0, 50, DELTA) for i in k]) < 0.5].sum()
    assert 1 - (1 - lucky) ** 2000 == pytest.approx(0.61, abs=0.03)
    honest = binom.pmf(k, 50, 0.5)[np.array([seeger_bound(i / 50, log(2000), 50, DELTA) for i in k]) < 0.5].sum()
    assert 1 - (1 - honest) ** 2000 <= DELTA


@pytest.mark.parametrize("seed", range(5))
def test_votes_keep_their_three_bounds(seed):
    """True risks of a random finite vote: majority ≤ 2·Gibbs, ≤ 4·tandem, ≤ the C-bound."""
    rng = np.random.default_rng(seed)
    wrong = rng.random((7, 400)) < rng.uniform(0, 0.7, size=400)
    weights = rng.dirichlet(np.ones(7))
    per_point = weights @ wrong
    vote, gibbs = float((per_point >= 0.5).mean()), float(per_point.mean())
    tandem, disagreement = float((per_point**2).mean()), float((2 * per_point * (1 - per_point)).mean())
    assert vote <= min(2 * gibbs, 4 * tandem) + 1e-12
    assert vote <= c_bound(gibbs, disagreement) + 1e-12


def test_tandem_pays_twice_the_divergence():
    """Two independent draws have the divergence 2·KL; ξ(3) = 2·(1 + 3·(1/3)·(2/3)²) = 26/9."""
    expected = 4 * kl_upper(0.1, (2 * 0.4 + log(26 / 9 / DELTA)) / 3)
    assert tandem_bound(0.1, 3, 0.4, DELTA) == pytest.approx(expected, rel=1e-14)


def test_numpy_numbers_come_back_as_floats():
    gibbs, divergence, n = np.float64(0.1), np.float64(2.0), np.int64(50)
    values = [f(gibbs, divergence, n, DELTA) for f in (seeger_bound, lambda_bound, mcallester_bound)]
    values += [catoni_bound(gibbs, divergence, n, DELTA, np.array([1.0])), c_bound(gibbs, np.float64(0.05))]
    values += [first_order_bound(gibbs, n, divergence, DELTA), tandem_bound(gibbs, n, divergence, DELTA)]
    values += [*langford_bound(np.full(20, 0.3), DELTA), gibbs_risk(np.ones(3), np.ones(3))]
    assert all(type(value) is float for value in values)


def test_c_bound_at_its_ends():
    assert c_bound(0.5, 0.1) == 1
    assert c_bound(0.3, 0.0) == pytest.approx(1 - 0.4**2)
    assert c_bound(0.1, 0.18) == pytest.approx(0, abs=1e-12)
    assert c_bound(0.1, 0.5) == pytest.approx(0, abs=1e-12)  # impossible unless one of the two bounds failed
    assert c_bound(0.0, 0.0) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seeger_bound(1.1, 0, 10, DELTA), "in \\[0, 1\\]"),
        (lambda: seeger_bound(0.1, -1, 10, DELTA), "divergence"),
        (lambda: catoni_bound(0.1, 1, 10, DELTA, []), "rates"),
        (lambda: gaussian_divergence([0.0, 0.0], np.eye(3), 0.0, 1.0), "cov must fit"),
        (lambda: gaussian_divergence([0.0, 0.0], np.zeros((2, 2)), 0.0, 1.0), "positive definite"),
        (lambda: gaussian_divergence([0.0, 0.0], [1.0, 0.0], 0.0, 1.0), "positive definite"),
        (lambda: gaussian_divergence([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], 0.0, 1.0), "symmetric"),
        (lambda: gaussian_divergence([0.0], [1.0], 0.0, 0.0), "prior_variance"),
        (lambda: gibbs_risk([1.0], [0.0]), "variances"),
        (lambda: langford_bound([2.0], DELTA), "cosines"),
        (lambda: c_bound(-0.1, 0.2), "in \\[0, 1\\]"),
        (lambda: tandem_bound(0.1, 0, 0, DELTA), "n must be"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
