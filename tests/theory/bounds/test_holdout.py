"""Test-set bounds: worked numbers, their order, exact probabilities of failure, and the wrong forms shown failing."""

from math import log

import numpy as np
import pytest
from scipy.stats import binom

from lemmata.theory.bounds.holdout import (
    bentkus_bound,
    betting_bound,
    clopper_pearson,
    clopper_pearson_interval,
    cross_validation_bound,
    empirical_bernstein_bound,
    hoeffding_bound,
    kl_bound,
    progressive_bound,
    progressive_exponential_bound,
)
from lemmata.theory.bounds.tails import kl_upper

DELTA = 0.05
FIVE_FIRST = np.repeat([1.0, 0.0], [5, 95])
FIVE_EVENLY = np.zeros(100)
FIVE_EVENLY[19::20] = 1


def graded(mean, deviation, n):
    """Return n losses with exactly this mean and sample deviation."""
    signs = np.tile([1.0, -1.0], n // 2)
    return mean + signs * deviation / signs.std(ddof=1)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(clopper_pearson(5, 100, DELTA), 0.102253, id="1.1"),
        pytest.param(clopper_pearson(0, 100, DELTA), 0.029513, id="1.1 no errors"),
        pytest.param(clopper_pearson_interval(5, 100, DELTA)[0], 0.016432, id="1.1 low"),
        pytest.param(clopper_pearson_interval(5, 100, DELTA)[1], 0.112835, id="1.1 high"),
        pytest.param(kl_bound(0.05, 100, DELTA), 0.121527, id="1.2"),
        pytest.param(hoeffding_bound(0.05, 100, DELTA), 0.172387, id="1.3"),
        pytest.param(bentkus_bound(0.05, 100, DELTA), 0.117301, id="1.4"),
        pytest.param(empirical_bernstein_bound(FIVE_FIRST, DELTA), 0.196440, id="1.5 errors"),
        pytest.param(empirical_bernstein_bound(graded(0.1, 0.03, 300), DELTA), 0.133492, id="1.5 graded"),
        pytest.param(betting_bound(FIVE_EVENLY, DELTA), 0.112360, id="1.6 evenly"),
        pytest.param(betting_bound(FIVE_FIRST, DELTA), 0.116357, id="1.6 first"),
        pytest.param(clopper_pearson(5, 100, DELTA / 50), 0.155367, id="1.7"),
        pytest.param(progressive_bound(0.1, 1000, DELTA), 0.138702, id="1.8 Azuma"),
        pytest.param(progressive_exponential_bound(0.1, 1000, DELTA, 1.0), 0.154827, id="1.8 exponential"),
        pytest.param(cross_validation_bound(0.1, 5, 1000, DELTA), 0.188108, id="1.9"),
        pytest.param(clopper_pearson(5, 100, DELTA / 8), 0.132198, id="9"),
    ],
)
def test_worked_numbers(found, expected):
    assert found == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        pytest.param(lambda n: clopper_pearson(n // 20, n, DELTA), [0.1023, 0.0629, 0.0537], id="CP"),
        pytest.param(lambda n: kl_bound(0.05, n, DELTA), [0.1215, 0.0687, 0.0555], id="kl"),
        pytest.param(lambda n: hoeffding_bound(0.05, n, DELTA), [0.1724, 0.0887, 0.0622], id="Hoeffding"),
        pytest.param(
            lambda n: empirical_bernstein_bound(np.repeat([1.0, 0.0], [n // 20, n - n // 20]), DELTA),
            [0.1964, 0.0773, 0.0568],
            id="empirical Bernstein",
        ),
        pytest.param(
            lambda n: empirical_bernstein_bound(graded(0.05, 0.02, n), DELTA), [0.1424, 0.0603, 0.0514], id="the same, graded"
        ),
        pytest.param(lambda n: clopper_pearson(n // 20, n, DELTA / 1000), [0.1895, 0.0822, 0.0590], id="CP of 1000 models"),
    ],
)
def test_vacuity_table(bound, expected):
    np.testing.assert_allclose([bound(n) for n in (100, 1000, 10_000)], expected, atol=5.1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 50, 500])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_clopper_pearson_is_below_kl_and_kl_below_hoeffding(n, delta):
    for k in range(n + 1):
        exact, chernoff, hoeffding = clopper_pearson(k, n, delta), kl_bound(k / n, n, delta), hoeffding_bound(k / n, n, delta)
        assert exact <= chernoff + 1e-15
        assert chernoff <= min(hoeffding, 1.0) + 1e-15
        assert exact <= bentkus_bound(k / n, n, delta) + 1e-15


def misses(p, n, bound):
    """Return the exact probability that a bound on the risk, a function of the number of errors, lies below the risk p."""
    k = np.arange(n + 1)
    return float(binom.pmf(k, n, p)[np.array([bound(int(i)) for i in k]) < p].sum())


def wald(k, n):
    return k / n + 1.6448536269514722 * np.sqrt(k / n * (1 - k / n) / n)


@pytest.mark.parametrize(
    ("n", "p", "exact", "chernoff", "hoeffding", "wrong"),
    [(100, 0.2, 0.0469, 0.0057, 0.0003, 0.0804), (1000, 0.1, 0.0485, 0.0072, 0.0000, 0.0607)],
)
def test_exact_probabilities_of_failure(n, p, exact, chernoff, hoeffding, wrong):
    assert misses(p, n, lambda k: clopper_pearson(k, n, DELTA)) == pytest.approx(exact, abs=5e-5)
    assert misses(p, n, lambda k: kl_bound(k / n, n, DELTA)) == pytest.approx(chernoff, abs=5e-5)
    assert misses(p, n, lambda k: hoeffding_bound(k / n, n, DELTA)) == pytest.approx(hoeffding, abs=5e-5)
    assert misses(p, n, lambda k: wald(k, n)) == pytest.approx(wrong, abs=5e-5)


def test_wald_fails_where_errors_are_rare():
    """Section 12.1: the interval misses 13% at n = 100, p = .02, and is 0 when there are no errors."""
    assert misses(0.02, 100, lambda k: wald(k, 100)) == pytest.approx(0.13, abs=0.005)
    assert wald(0, 100) == 0 < clopper_pearson(0, 100, DELTA)


@pytest.mark.parametrize("n", [3, 40])
def test_no_risk_is_missed_more_often_than_delta(n):
    tables = [[clopper_pearson(k, n, DELTA) for k in range(n + 1)], [bentkus_bound(k / n, n, DELTA) for k in range(n + 1)]]
    intervals = [clopper_pearson_interval(k, n, DELTA) for k in range(n + 1)]
    for p in np.linspace(0.005, 0.995, 199):
        assert all(misses(p, n, table.__getitem__) <= DELTA + 1e-12 for table in tables)
        outside = [not low <= p <= high for low, high in intervals]
        assert binom.pmf(np.arange(n + 1), n, p)[outside].sum() <= DELTA + 1e-12


@pytest.mark.parametrize(
    ("n", "a", "b", "q", "rounding", "wrong"),
    [(20, 0.94, 0.9986, 0.99, np.floor, 1.0), (3, 0.44, 1.0, 0.97, np.rint, 0.087)],
)
def test_clopper_pearson_on_rounded_losses_is_no_bound(n, a, b, q, rounding, wrong):
    """Section 12.2: losses of two values, all outcomes enumerated; Bentkus' bound holds on the same losses."""
    j = np.arange(n + 1)
    sums, probabilities, risk = a * (n - j) + b * j, binom.pmf(j, n, q), a + (b - a) * q
    rounded = np.array([clopper_pearson(int(k), n, DELTA) for k in rounding(sums)])
    assert probabilities[rounded < risk].sum() == pytest.approx(wrong, abs=5e-4)
    assert probabilities[rounded < risk].sum() > DELTA
    proper = np.array([bentkus_bound(s / n, n, DELTA) for s in sums])
    assert probabilities[proper < risk].sum() <= DELTA


@pytest.mark.parametrize(
    ("n", "p", "models", "wrong", "right"),
    [pytest.param(200, 0.3, 200, 0.999, 0.030, id="12.4 winner"), pytest.param(100, 0.25, 8, 0.272, 0.048, id="12.4 minimum")],
)
def test_least_of_several_must_pay(n, p, models, wrong, right):
    def at_least_one(delta):
        return 1 - (1 - misses(p, n, lambda k: clopper_pearson(k, n, delta))) ** models

    assert at_least_one(DELTA) == pytest.approx(wrong, abs=0.03)
    assert at_least_one(DELTA / models) == pytest.approx(right, abs=0.01)
    assert at_least_one(DELTA / models) <= DELTA


def test_leave_one_out_is_no_test_set():
    """Section 12.3: the parity rule has no error or only errors when each point is left out, half of the time each."""
    assert clopper_pearson(0, 101, DELTA) < 0.5


@pytest.mark.parametrize(
    ("draw", "gap"),
    [
        pytest.param(lambda rng: (rng.random(300) < 0.1).astype(float), 0.042, id="Bernoulli"),
        pytest.param(lambda rng: rng.beta(0.2, 1.8, 300), 0.023, id="Beta(.2, 1.8)"),
        pytest.param(lambda rng: rng.beta(10, 90, 300), 0.012, id="Beta(10, 90)"),
    ],
)
def test_betting_covers_and_is_close(draw, gap):
    rng = np.random.default_rng(3)
    bounds = np.array([betting_bound(draw(rng), DELTA) for _ in range(400)])
    assert (bounds < 0.1).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert np.median(bounds) - 0.1 == pytest.approx(gap, abs=0.004)


def test_betting_is_the_least_mean_at_which_the_capital_succeeds():
    losses = np.random.default_rng(0).beta(1, 5, 60)
    bound = betting_bound(losses, DELTA)

    def most(m):
        capital, largest, total, squares, variance = 1.0, 0.0, 0.5, 0.25, 0.25
        for t, z in enumerate(losses, start=1):
            stake = min(np.sqrt(2 * log(1 / DELTA) / (60 * variance)), 0.75 / (1 - m))
            capital *= 1 - stake * (z - m)
            largest = max(largest, capital)
            total += z
            squares += (z - total / (t + 1)) ** 2
            variance = squares / (t + 1)
        return largest

    assert most(bound) >= 1 / DELTA * (1 - 1e-9)
    assert most(bound - 1e-9) < 1 / DELTA
    assert (np.diff([most(m) for m in np.linspace(0, 0.99, 100)]) > 0).all()
    assert betting_bound(np.ones(5), DELTA) == 1


def test_capital_is_a_martingale_at_the_risk():
    """All sequences of 8 coins: the capital reaches 1/δ with probability at most δ, so the bound fails no more often."""
    for p in (0.1, 0.3, 0.6):
        failed = 0.0
        for number in range(2**8):
            losses = (number >> np.arange(8) & 1).astype(float)
            if betting_bound(losses, 0.2) < p:
                failed += p ** losses.sum() * (1 - p) ** (8 - losses.sum())
        assert failed <= 0.2


def test_rates_are_paid_for():
    several = progressive_exponential_bound(0.1, 1000, DELTA, [0.5, 1.0])
    assert several == min(progressive_exponential_bound(0.1, 1000, DELTA / 2, rate) for rate in (0.5, 1.0))


def test_folds_of_unequal_size_count_as_the_smallest():
    assert cross_validation_bound(0.1, 3, 1001, DELTA) == cross_validation_bound(0.1, 3, 999, DELTA)
    assert cross_validation_bound(0.1, 5, 1000, DELTA) > kl_upper(0.1, log(1 / DELTA) / 1000)


def test_hoeffding_scales_with_the_range():
    assert hoeffding_bound(0.5, 100, DELTA, upper=10) == pytest.approx(10 * hoeffding_bound(0.05, 100, DELTA), rel=1e-14)


def test_whole_sums_are_not_rounded_up_twice():
    assert 100 * (7 / 100) > 7
    for n in (49, 100):
        assert all(bentkus_bound(k / n, n, DELTA) == clopper_pearson(k, n, DELTA / np.e) for k in range(n))


def test_numpy_numbers_come_back_as_floats():
    mean, n, k = np.float64(0.1), np.int64(50), np.int64(5)
    values = [f(mean, n, DELTA) for f in (kl_bound, hoeffding_bound, bentkus_bound, progressive_bound)]
    values += [clopper_pearson(k, n, DELTA), *clopper_pearson_interval(k, n, DELTA), betting_bound(np.zeros(3), DELTA)]
    values += [cross_validation_bound(mean, k, n, DELTA), hoeffding_bound(mean, n, DELTA, upper=np.float64(2.0))]
    assert all(type(value) is float for value in values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clopper_pearson(5, 4, DELTA), "more errors than points"),
        (lambda: kl_bound(1.2, 10, DELTA), "lies in"),
        (lambda: hoeffding_bound(2.0, 10, DELTA), "upper"),
        (lambda: betting_bound([0.1, 1.2], DELTA), "losses must lie"),
        (lambda: betting_bound([0.1, np.nan], DELTA), "losses must lie"),
        (lambda: empirical_bernstein_bound([0.1], DELTA), "at least 2"),
        (lambda: cross_validation_bound(0.1, 11, 10, DELTA), "more folds"),
        (lambda: kl_bound(0.1, 0, DELTA), "n must be a whole number"),
        (lambda: kl_bound(0.1, 10, 1.0), "delta"),
        (lambda: progressive_exponential_bound(0.1, 10, DELTA, []), "rates"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
