"""Tail bounds against exact tails, their inverses, and the laws for which they are equalities."""

from math import comb

import numpy as np
import pytest
from scipy.stats import binom, norm

from lemmata.probability.concentration import (
    bennett,
    bernstein,
    cantelli,
    chebyshev,
    hoeffding,
    markov,
    mcdiarmid,
    union_bound,
)

# Values and probabilities: fair and unfair coins, a die, one with a heavy tail, skew, two and three points, a constant
BANK = {
    "coin": ([0.0, 1.0], [0.5, 0.5]),
    "rare": ([0.0, 1.0], [0.99, 0.01]),
    "die": (np.arange(1.0, 7.0), np.full(6, 1 / 6)),
    "heavy": (np.arange(1.0, 200.0), np.arange(1.0, 200.0) ** -2.5 / (np.arange(1.0, 200.0) ** -2.5).sum()),
    "skew": ([0.0, 1.0, 10.0], [0.6, 0.3, 0.1]),
    "geometric": (np.arange(60.0), 0.5 ** np.append(np.arange(1.0, 60.0), 59)),
    "zero": ([0.0, 4.0], [0.75, 0.25]),
    "three": ([0.0, 2.0, 4.0], [0.125, 0.75, 0.125]),
    "constant": ([3.0], [1.0]),
}
bank = pytest.mark.parametrize("law", BANK.values(), ids=BANK)
MEANS = {
    "chebyshev": chebyshev,
    "cantelli": cantelli,
    "hoeffding": hoeffding,
    "bernstein": lambda *a, **k: bernstein(*a, variance=0.04, **k),
    "bennett": lambda *a, **k: bennett(*a, variance=0.04, **k),
}
means = pytest.mark.parametrize("bound", MEANS.values(), ids=MEANS)


@pytest.mark.item("PRB-29")
@bank
def test_markov_and_chebyshev_hold_for_every_law(law):
    x, p = map(np.asarray, law)
    mean = float(p @ x)
    variance = float(p @ (x - mean) ** 2)
    drawn = np.random.default_rng(0).choice(x, p=p, size=10_000)
    for a in np.linspace(0.1, 12, 60):
        assert p[x >= a].sum() <= markov(mean=mean, threshold=a) + 1e-15
        # of a sample, with its own mean and variance, they are exact statements too
        assert (drawn >= a).mean() <= markov(mean=drawn.mean(), threshold=a) + 1e-15
        assert (np.abs(drawn - drawn.mean()) >= a).mean() <= chebyshev(n=1, epsilon=a, variance=drawn.var()) + 1e-12
        assert p[np.abs(x - mean) >= a].sum() <= chebyshev(n=1, epsilon=a, variance=variance) + 1e-15
        assert p[x - mean >= a].sum() <= cantelli(n=1, epsilon=a, variance=variance) + 1e-15
        assert p[x - mean <= -a].sum() <= cantelli(n=1, epsilon=a, variance=variance) + 1e-15
    for c in (1.5, 2.0, 7.0):
        assert p[x >= c * mean].sum() <= markov(mean=1.0, threshold=c)


@pytest.mark.item("PRB-29")
def test_two_and_three_point_laws_reach_the_bounds():
    x, p = map(np.asarray, BANK["zero"])  # 0 or 4, mean 1: zero is allowed, X > 0 is not needed
    assert x.min() == 0
    assert p[x >= 4].sum() == markov(mean=1.0, threshold=4.0) == 0.25
    x, p = map(np.asarray, BANK["three"])  # 2 ± 2 with probability 1/8 each: σ² = 1
    assert p @ (x - 2) ** 2 == 1
    assert p[np.abs(x - 2) >= 2].sum() == chebyshev(n=1, epsilon=2) == 0.25
    x, p = np.array([-0.5, 2.0]), np.array([0.8, 0.2])  # mean 0, variance 1
    assert p @ x == 0
    assert p @ x**2 == pytest.approx(1, rel=1e-15)
    assert p[x >= 2].sum() == cantelli(n=1, epsilon=2) == 0.2
    assert markov(mean=0.0, threshold=1.0) == 0  # the form with a multiple of the mean would need E X > 0


@pytest.mark.item("PRB-29")
def test_two_standard_deviations_of_a_normal_variable():
    assert chebyshev(n=1, epsilon=2) == 0.25
    truth = 2 * norm.sf(2)
    assert truth == pytest.approx(0.045500, abs=5e-7)
    assert truth <= 0.25
    for k in np.linspace(0.1, 8, 50):
        assert 2 * norm.sf(k) <= chebyshev(n=1, epsilon=k)
        assert norm.sf(k) <= cantelli(n=1, epsilon=k) <= chebyshev(n=1, epsilon=k)


@pytest.mark.item("PRB-29")
def test_markov_gives_the_third_of_three():
    assert markov(mean=2.0, threshold=8.0) == 0.25
    assert markov(mean=2.0, delta=0.25) == 8.0
    assert markov(threshold=8.0, delta=0.25) == 2.0
    assert markov(mean=8.0, threshold=2.0) == 1.0
    np.testing.assert_allclose(markov(mean=1.0, threshold=[2.0, 4.0]), [0.5, 0.25], rtol=1e-15)


@pytest.mark.item("PRB-30")
def test_hoeffding_of_the_catalogue():
    assert hoeffding(n=1000, epsilon=0.05) == pytest.approx(0.013476, abs=5e-7)
    weaker = 2 * np.exp(-1000 * 0.05**2)
    assert weaker == pytest.approx(0.164170, abs=5e-7)
    assert hoeffding(n=1000, epsilon=0.05) < weaker  # valid, and inconsistent with the theorem
    assert hoeffding(n=1000, epsilon=0.05, sides=1) == pytest.approx(np.exp(-5), rel=1e-14)


@pytest.mark.item("PRB-30")
@pytest.mark.parametrize("n", [1, 2, 7, 50, 400])
def test_exact_binomial_tails_are_below_the_bounds(n):
    k = np.arange(n + 1)
    for p in np.linspace(0, 1, 41):
        mass, variance = binom.pmf(k, n, p), p * (1 - p)
        for epsilon in (0.01, 0.05, 0.1, 0.3, 0.5, 0.9):
            above = mass[k / n - p >= epsilon - 1e-12].sum()
            both = mass[np.abs(k / n - p) >= epsilon - 1e-12].sum()
            assert above <= hoeffding(n=n, epsilon=epsilon, sides=1) + 1e-12
            assert both <= hoeffding(n=n, epsilon=epsilon) + 1e-12
            assert both <= hoeffding(n=n, epsilon=n * epsilon, total=True) + 1e-12
            assert both <= chebyshev(n=n, epsilon=epsilon, variance=variance) + 1e-12
            assert above <= cantelli(n=n, epsilon=epsilon, variance=variance) + 1e-12
            assert both <= mcdiarmid(squares=1 / n, epsilon=epsilon) + 1e-12
            if variance > 0:
                sharper = bennett(n=n, epsilon=epsilon, variance=variance)
                assert both <= sharper + 1e-12
                assert sharper <= bernstein(n=n, epsilon=epsilon, variance=variance)


@pytest.mark.item("PRB-30")
def test_the_form_for_sums_is_wrong_for_means_and_the_other_way():
    n, p = 100, 0.5
    k = np.arange(n + 1)
    mass = binom.pmf(k, n, p)
    t = 10.0  # of the sum; 0.1 of the mean
    truth = mass[k - n * p >= t].sum()
    assert truth <= hoeffding(n=n, epsilon=t, sides=1, total=True) == pytest.approx(np.exp(-2 * t**2 / n), rel=1e-14)
    assert truth <= hoeffding(n=n, epsilon=t / n, sides=1) == pytest.approx(np.exp(-2 * n * (t / n) ** 2), rel=1e-14)
    # exp(−2t²/n) with the deviation of the mean in the place of t says nothing; exp(−2nε²) with that of the sum is false
    assert np.exp(-2 * (t / n) ** 2 / n) > 0.999
    assert np.exp(-2 * n * t**2) < 1e-300 < truth


@pytest.mark.item("PRB-30")
def test_tails_are_exact_fractions_in_small_cases():
    # four fair coins: P(|mean − ½| ≥ ½) = 1/8, P(|mean − ½| ≥ ¼) = 10/16
    assert 2 / 16 <= hoeffding(n=4, epsilon=0.5) == pytest.approx(2 * np.exp(-2), rel=1e-14)
    assert (2 * comb(4, 1) + 2) / 16 <= hoeffding(n=4, epsilon=0.25) == 1.0  # 2 e^−½ is more than 1


@pytest.mark.item("PRB-30")
def test_union_bound_of_dependent_events():
    assert union_bound([0.1, 0.2]) == pytest.approx(0.3, rel=1e-15)
    assert union_bound([0.9, 0.9]) == 1.0
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(16))
    for _ in range(100):
        events = rng.random((rng.integers(1, 6), 16)) < 0.2
        assert p[events.any(axis=0)].sum() <= union_bound(events @ p) + 1e-15
    apart = np.arange(16) // 4 == np.arange(4)[:, None]  # disjoint events: equality
    assert p[apart[:3].any(axis=0)].sum() == pytest.approx(union_bound(apart[:3] @ p), rel=1e-14)
    # 100 means at once: a bound for each of delta/100
    assert hoeffding(n=1000, epsilon=0.08, union=100) == pytest.approx(100 * hoeffding(n=1000, epsilon=0.08), rel=1e-14)
    assert hoeffding(n=1000, delta=0.05, union=100) == pytest.approx(hoeffding(n=1000, delta=0.0005), rel=1e-14)
    assert hoeffding(epsilon=0.1, delta=0.05, union=100) == hoeffding(epsilon=0.1, delta=0.0005)


@pytest.mark.item("PRB-29", "PRB-30")
@means
@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("union", [1, 20])
def test_the_three_directions_are_one_relation(bound, total, union):
    for n in (1, 10, 1234):
        for delta in (0.3, 0.01, 1e-9):
            epsilon = bound(n=n, delta=delta, total=total, union=union)
            assert bound(n=n, epsilon=epsilon, total=total, union=union) == pytest.approx(delta, rel=1e-8)
            assert bound(n=n, epsilon=0.99 * epsilon, total=total, union=union) > delta
    for epsilon, delta in ((0.05, 0.05), (0.013, 1e-3), (0.3, 0.4), (2.5, 0.01)):
        n = bound(epsilon=epsilon, delta=delta, total=total, union=union)
        assert isinstance(n, int)
        if total:  # the most variables whose sum stays
            assert n == 0 or bound(n=n, epsilon=epsilon, delta=None, total=True, union=union) <= delta
            assert bound(n=n + 1, epsilon=epsilon, total=True, union=union) > delta
        else:  # the fewest whose mean does
            assert bound(n=n, epsilon=epsilon, union=union) <= delta
            assert n == 1 or bound(n=n - 1, epsilon=epsilon, union=union) > delta


@pytest.mark.item("PRB-30")
def test_inverses_are_the_closed_forms():
    assert hoeffding(n=1000, delta=0.05) == pytest.approx(np.sqrt(np.log(40) / 2000), rel=1e-14)
    assert hoeffding(epsilon=0.05, delta=0.05) == np.ceil(np.log(40) / (2 * 0.05**2)) == 738
    assert hoeffding(epsilon=0.05, delta=0.05, sides=1) == np.ceil(np.log(20) / (2 * 0.05**2))
    assert hoeffding(epsilon=0.5, delta=0.05, width=10) == hoeffding(epsilon=0.05, delta=0.05)
    assert hoeffding(epsilon=50, delta=0.05, total=True) == np.floor(2 * 50**2 / np.log(40))
    assert chebyshev(epsilon=0.1, delta=0.05, variance=0.25) == 500
    assert bernstein(epsilon=0.05, delta=0.05, variance=0.01) == np.ceil(np.log(40) * (0.02 + 0.1 / 3) / 0.05**2)
    np.testing.assert_array_equal(hoeffding(epsilon=[0.05, 0.1], delta=0.05), [738, 185])
    np.testing.assert_allclose(hoeffding(n=[1, 1000], epsilon=0.05), [1.0, 0.013476], atol=5e-7)


@pytest.mark.item("PRB-30")
def test_variance_helps_and_width_is_a_unit():
    assert bernstein(n=1000, epsilon=0.05, variance=0.01) < 1e-10 * hoeffding(n=1000, epsilon=0.05)
    for f in (bernstein, bennett):
        assert f(n=50, epsilon=3.0, variance=4.0, width=10.0) == pytest.approx(f(n=50, epsilon=0.3, variance=0.04), rel=1e-13)
        assert f(n=50, delta=0.1, variance=4.0, width=10.0) == pytest.approx(10 * f(n=50, delta=0.1, variance=0.04), rel=1e-13)
    # Bennett's exponent for a rare event, by hand: n σ² h(u), u = ε/σ²
    assert bennett(n=100, epsilon=0.2, variance=0.1, sides=1) == pytest.approx(np.exp(-10 * (3 * np.log(3) - 2)), rel=1e-13)
    # for many observations the deviation is σ √(2 log(2/δ)/n)
    assert bennett(n=10**12, delta=0.05, variance=0.1) == pytest.approx(np.sqrt(0.2 * np.log(40) / 1e12), rel=1e-5)


@pytest.mark.item("PRB-30")
def test_bounded_differences_of_a_sum_are_hoeffdings_inequality():
    widths = np.array([1.0, 2.0, 0.5])
    signs = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1)
    for epsilon in (0.5, 1.0, 1.75):
        truth = (np.abs(widths @ signs - widths.sum() / 2) >= epsilon).mean()
        assert truth <= mcdiarmid(squares=widths @ widths, epsilon=epsilon)
    assert mcdiarmid(squares=100.0, epsilon=15.0) == pytest.approx(hoeffding(n=100, epsilon=15, total=True), rel=1e-14)
    assert mcdiarmid(squares=0.01, delta=0.05) == pytest.approx(hoeffding(n=100, delta=0.05), rel=1e-14)
    assert mcdiarmid(epsilon=1.0, delta=0.05) == pytest.approx(2 / np.log(40), rel=1e-14)


def test_extremes_make_no_warnings():
    assert chebyshev(n=1, epsilon=0) == 1.0
    for bound in (chebyshev, cantelli, bernstein):  # a constant: P(0 ≥ 0) = 1, and it goes no farther
        assert bound(n=1, epsilon=0, variance=0) == 1.0
        assert bound(n=10**6, epsilon=1e-3, variance=0) < 1e-300
    assert chebyshev(n=5, epsilon=1, variance=0) == 0.0
    assert hoeffding(n=1e9, epsilon=1.0) == 0.0
    assert hoeffding(n=1, epsilon=0) == 1.0
    assert cantelli(n=1, delta=0.999999) == pytest.approx(1e-3, rel=1e-5)


def test_wrong_input_is_refused():
    for call, message in [
        (lambda: hoeffding(n=10), "exactly two of n, epsilon, delta; got 1"),
        (lambda: hoeffding(n=10, epsilon=0.1, delta=0.1), "got 3"),
        (lambda: hoeffding(n=0, epsilon=0.1), "n must be positive"),
        (lambda: hoeffding(n=10, epsilon=-0.1), "epsilon must be at least 0"),
        (lambda: hoeffding(epsilon=0, delta=0.1), "epsilon must be positive"),
        (lambda: hoeffding(n=10, delta=1.0), "delta must lie"),
        (lambda: hoeffding(n=10, delta=0.1, sides=3), "sides"),
        (lambda: hoeffding(n=10, delta=0.1, union=0), "union"),
        (lambda: hoeffding(n=10, delta=0.1, width=0), "width"),
        (lambda: hoeffding(epsilon=1e-12, delta=0.1), "2\\^62"),
        (lambda: chebyshev(n=10, delta=0.1, variance=-1), "variance"),
        (lambda: markov(mean=-1.0, threshold=2.0), "mean must be at least 0"),
        (lambda: markov(mean=1.0, threshold=0.0), "threshold must be positive"),
        (lambda: union_bound([0.5, 1.5]), "between 0 and 1"),
        (lambda: mcdiarmid(squares=0.0, epsilon=1.0), "squares"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
