"""Entropies and divergences: catalogue numbers, identities, bounds, exact arithmetic, quadrature, brute force."""

from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.spatial.distance import jensenshannon

from lemmata.probability.distributions import Bernoulli, Exponential, LogisticDistribution, MultivariateNormal, Normal
from lemmata.probability.gaussian_information import gaussian_entropy, gaussian_kl, gaussian_mutual_information
from lemmata.probability.information import (
    conditional_entropy,
    cross_entropy,
    differential_entropy,
    entropy,
    joint_entropy,
    js_divergence,
    kl_divergence,
    l1_distance,
    mutual_information,
    symmetric_kl,
    total_variation,
)
from lemmata.probability.logarithms import log_excess
from lemmata.probability.tables import JointTable

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
TABLE = np.array([[0.4, 0.1], [0.1, 0.4]])
SEEDS = pytest.mark.parametrize("seed", range(4))
distributions = arrays(float, 5, elements=st.one_of(st.just(0.0), st.floats(1e-12, 1.0))).filter(lambda w: w.sum() > 0)


def drawn(seed, *shape):
    """Random distributions along the last axis, some cells zero."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.5, size=shape) * (rng.random(shape) < 0.8) + 1e-3 * (rng.random(shape) < 0.5)
    weights[..., 0] += 1e-3
    return weights / weights.sum(axis=-1, keepdims=True)


def table(seed, *shape):
    return drawn(seed, int(np.prod(shape))).reshape(shape)


def exact_divergence(p, q, digits=60):
    """D of the normalized vectors in decimal arithmetic, from the exact values of the floats."""
    with localcontext() as context:
        context.prec = digits
        p, q = ([Decimal(float(v)) for v in w] for w in (p, q))
        p_sum, q_sum = sum(p), sum(q)
        return float(sum(a / p_sum * ((a / p_sum) / (b / q_sum)).ln() for a, b in zip(p, q, strict=True) if a))


# Entropy


@pytest.mark.item("PRB-19")
def test_entropy_of_uniform_distributions_and_point_masses():
    for n in range(1, 8):
        assert entropy(np.full(2**n, 0.5**n), base=2) == n
    assert entropy([1 / 3] * 3) == pytest.approx(1.098612, abs=5e-7)
    assert entropy([1 / 3] * 3, base=2) == pytest.approx(1.584963, abs=5e-7)
    assert entropy([0.0, 1.0, 0.0]) == 0
    assert entropy([1.0 + 1e-9]) == 0  # a sum of 1 up to rounding must not make it negative


@pytest.mark.item("PRB-19")
def test_one_base_for_siblings():
    three, two = [1 / 3] * 3, [1 / 2] * 2
    assert entropy(three, base=2) / entropy(two, base=2) == pytest.approx(entropy(three) / entropy(two), rel=1e-15)
    # log 3 in nats beside 1 in bits reverses no order here, but the ratio is wrong
    assert entropy(three) / entropy(two, base=2) < 0.7 * entropy(three) / entropy(two)


@pytest.mark.item("PRB-19")
@settings(deadline=None)
@given(distributions)
def test_entropy_keeps_its_bounds_and_does_not_see_the_order(weights):
    p = weights / weights.sum()
    value = entropy(p)
    assert 0 <= value <= np.log(5) + 1e-15
    assert value == pytest.approx(float(scipy.stats.entropy(p)), rel=1e-12, abs=1e-15)
    assert entropy(p[::-1]) == pytest.approx(value, rel=1e-14)
    assert entropy(np.roll(p, 2)) == pytest.approx(value, rel=1e-14)


@pytest.mark.item("PRB-19")
@pytest.mark.parametrize("k", [2, 3, 10])
def test_entropy_is_stationary_at_the_uniform_distribution_and_nowhere_higher(k):
    uniform, h = np.full(k, 1 / k), 1e-4
    for i in range(1, k):
        step = np.zeros(k)
        step[[0, i]] = h, -h  # the directions that keep the sum
        slope = (entropy(uniform + step) - entropy(uniform - step)) / (2 * h)
        assert abs(slope) < 1e-10
        assert entropy(uniform + step) < entropy(uniform)
    other = np.append(1.5, np.ones(k - 1)) / (k + 0.5)
    step = np.zeros(k)
    step[:2] = h, -h
    assert abs(entropy(other + step) - entropy(other - step)) / (2 * h) > 0.1  # stationary there it is not
    assert (entropy(drawn(0, 200, k)) <= np.log(k)).all()


@SEEDS
def test_rows_and_columns_are_distributions_by_the_axis(seed):
    p = drawn(seed, 6, 4)
    np.testing.assert_allclose(entropy(p), [entropy(row) for row in p], rtol=1e-15)
    np.testing.assert_allclose(entropy(p.T, axis=0, base=2), entropy(p) / np.log(2), rtol=1e-14)
    q = drawn(seed + 10, 6, 4) * 0.5 + 0.125
    for f in (cross_entropy, kl_divergence, symmetric_kl, js_divergence, l1_distance, total_variation):
        np.testing.assert_allclose(f(p, q), [f(a, b) for a, b in zip(p, q, strict=True)], rtol=1e-14)
        np.testing.assert_allclose(f(p.T, q.T, axis=0), f(p, q), rtol=1e-14)
        np.testing.assert_allclose(f(p, q[0]), [f(a, q[0]) for a in p], rtol=1e-14)


@pytest.mark.item("PRB-20")
def test_joint_and_conditional_entropy_of_the_catalogue():
    assert joint_entropy(TABLE) == pytest.approx(1.193550, abs=5e-7)
    assert conditional_entropy(TABLE, given=1) == pytest.approx(0.500402, abs=5e-7)


@pytest.mark.item("PRB-20")
@SEEDS
def test_chain_rule_and_bounds(seed):
    p = table(seed, 3, 4)
    x, y = p.sum(axis=1), p.sum(axis=0)
    assert joint_entropy(p) == pytest.approx(entropy(y) + conditional_entropy(p, given=1), rel=1e-13)
    assert joint_entropy(p) == pytest.approx(entropy(x) + conditional_entropy(p, given=0), rel=1e-13)
    assert 0 <= conditional_entropy(p, given=1) <= entropy(x) + 1e-15
    assert 0 <= conditional_entropy(p, given=0) <= entropy(y) + 1e-15
    rows = sum(y[j] * entropy(p[:, j] / y[j]) for j in range(4) if y[j] > 0)  # the mean entropy of the columns
    assert conditional_entropy(p, given=1) == pytest.approx(rows, rel=1e-13)
    q = table(seed, 2, 3, 4)
    named = JointTable(q, ["x", "y", "z"])
    step = joint_entropy(named.marginal("z")) + conditional_entropy(named.marginal(["y", "z"]), given="z")
    assert joint_entropy(q) == pytest.approx(step + conditional_entropy(named, given=["y", "z"]), rel=1e-13)
    assert conditional_entropy(q, given=[1, 2]) == conditional_entropy(named, given=["z", "y"])


@pytest.mark.item("PRB-20")
def test_what_is_known_or_irrelevant():
    assert conditional_entropy(np.diag([0.2, 0.3, 0.5]), given=0) == 0
    apart = np.outer([0.25, 0.75], [0.5, 0.25, 0.25])
    assert conditional_entropy(apart, given=0, base=2) == 1.5


# Divergences


@pytest.mark.item("PRB-24")
def test_divergences_of_the_catalogue():
    assert kl_divergence(P, Q) == pytest.approx(0.360062, abs=5e-7)
    assert kl_divergence(Q, P) == pytest.approx(0.394816, abs=5e-7)
    assert kl_divergence(P, P) == 0


@pytest.mark.item("PRB-24")
def test_divergence_is_infinite_where_q_vanishes_and_p_does_not():
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert kl_divergence([1.0, 0.0], [0.5, 0.5]) == pytest.approx(np.log(2), rel=1e-15)
    assert cross_entropy([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert symmetric_kl([1.0, 0.0], [0.5, 0.5]) == np.inf
    assert kl_divergence([1.0, 0.0], [1e-320, 1.0]) == pytest.approx(320 * np.log(10), rel=1e-4)  # 1e-320 has four digits
    assert kl_divergence([1e-320, 1.0], [1.0, 0.0]) == np.inf


@pytest.mark.item("PRB-24")
@settings(deadline=None)
@given(distributions, distributions)
def test_divergence_is_never_negative_and_zero_only_for_equals(u, v):
    p, q = u / u.sum(), v / v.sum()
    value = kl_divergence(p, q)
    assert value >= 0
    assert kl_divergence(p, p) == 0
    if np.abs(p - q).max() > 1e-12:
        assert value > 0
    if np.isfinite(value):
        assert value == pytest.approx(float(scipy.stats.entropy(p, q)), rel=1e-9, abs=1e-14)
        assert value == pytest.approx(cross_entropy(p, q) - entropy(p), rel=1e-9, abs=1e-13)


@pytest.mark.item("PRB-24")
@SEEDS
@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-6, 1e-9, 1e-12])
def test_divergence_of_neighbors_keeps_its_digits(seed, distance):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(6))
    q = p * (1 + distance * rng.uniform(-1, 1, size=6))
    q /= q.sum()
    # q and p are rounded: at 1e-12 their difference has four digits
    assert kl_divergence(p, q) == pytest.approx(exact_divergence(p, q), rel=max(1e-13, 1e-15 / distance))
    if distance < 1e-8:
        naive = float((p * np.log(p / q)).sum())
        assert abs(naive - exact_divergence(p, q)) > 0.5 * exact_divergence(p, q)


@pytest.mark.item("PRB-24")
@SEEDS
def test_divergence_adds_over_products_and_cannot_grow_by_merging(seed):
    p, q, r, s = drawn(seed, 4) * 0.9 + 0.025, drawn(seed + 9, 4) * 0.9 + 0.025, drawn(seed, 3), np.array([0.2, 0.3, 0.5])
    joint = kl_divergence(np.outer(p, r).ravel(), np.outer(q, s).ravel())
    assert joint == pytest.approx(kl_divergence(p, q) + kl_divergence(r, s), rel=1e-12)
    merged = kl_divergence([p[:2].sum(), p[2:].sum()], [q[:2].sum(), q[2:].sum()])
    assert merged <= kl_divergence(p, q)


@pytest.mark.item("PRB-25")
def test_cross_entropy_and_symmetrized_divergence_of_the_catalogue():
    assert cross_entropy(P, Q) == pytest.approx(1.389715, abs=5e-7)
    assert entropy(P) == pytest.approx(1.029653, abs=5e-7)
    assert symmetric_kl(P, Q) == pytest.approx(0.377439, abs=5e-7)
    assert cross_entropy(P, Q, base=2) == pytest.approx(1.389715 / np.log(2), abs=1e-6)


@pytest.mark.item("PRB-25")
@settings(deadline=None)
@given(distributions, distributions)
def test_cross_entropy_is_least_for_the_truth_and_symmetric_is_symmetric(u, v):
    p, q = u / u.sum(), v / v.sum()
    assert cross_entropy(p, q) >= entropy(p) - 1e-15
    assert cross_entropy(p, p) == pytest.approx(entropy(p), rel=1e-14)
    assert symmetric_kl(p, q) == symmetric_kl(q, p)


@pytest.mark.item("PRB-26")
def test_jensen_shannon_of_the_catalogue_and_the_doubled_form():
    value = js_divergence(P, Q)
    assert value == pytest.approx(0.0905658, abs=5e-8)
    middle = (P + Q) / 2
    printed = kl_divergence(P, middle) + kl_divergence(Q, middle)
    assert printed == pytest.approx(2 * value, rel=1e-14)
    assert abs(printed - value) > 0.09


@pytest.mark.item("PRB-26")
@settings(deadline=None)
@given(distributions, distributions, distributions)
def test_jensen_shannon_has_its_bounds_and_its_root_is_a_metric(u, v, w):
    p, q, r = u / u.sum(), v / v.sum(), w / w.sum()
    value = js_divergence(p, q)
    assert 0 <= value <= np.log(2) + 1e-15
    assert value == js_divergence(q, p)
    assert js_divergence(p, p) == 0
    assert value == pytest.approx(float(jensenshannon(p, q)) ** 2, rel=1e-9, abs=1e-14)
    assert np.sqrt(value) <= np.sqrt(js_divergence(p, r)) + np.sqrt(js_divergence(r, q)) + 1e-14


@pytest.mark.item("PRB-26")
def test_jensen_shannon_itself_is_no_metric_and_reaches_its_bound():
    a, b, c = [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]
    assert js_divergence(a, c) > js_divergence(a, b) + js_divergence(b, c)
    assert js_divergence(a, c) == pytest.approx(np.log(2), rel=1e-15)


@pytest.mark.item("PRB-27")
def test_distances_of_the_catalogue_and_pinsker():
    assert l1_distance(P, Q) == pytest.approx(0.8, rel=1e-15)
    assert total_variation(P, Q) == pytest.approx(0.4, rel=1e-15)
    assert l1_distance(P, Q) ** 2 / 2 == pytest.approx(0.32, rel=1e-14)
    assert l1_distance(P, Q) ** 2 / 2 <= kl_divergence(P, Q)


@pytest.mark.item("PRB-27")
@SEEDS
def test_total_variation_is_the_largest_difference_over_events(seed):
    for k in (1, 2, 3, 6):
        p, q = drawn(seed, k), drawn(seed + 50, k)
        events = np.array(list(product([0, 1], repeat=k)))
        assert total_variation(p, q) == pytest.approx(np.abs(events @ (p - q)).max(), abs=1e-15)
        assert 0 <= l1_distance(p, q) <= 2
        assert kl_divergence(p, q) >= l1_distance(p, q) ** 2 / 2 - 1e-16
    assert l1_distance([1.0, 0.0], [0.0, 1.0]) == 2


@pytest.mark.item("PRB-27")
@SEEDS
def test_the_mass_to_move_is_half_the_distance(seed):
    p, q = drawn(seed, 5), drawn(seed + 50, 5)
    left, right = np.maximum(p - q, 0), np.maximum(q - p, 0)  # what leaves a place, and what arrives
    moved = np.outer(left, right) / right.sum()
    np.testing.assert_allclose(p - moved.sum(axis=1) + moved.sum(axis=0), q, atol=1e-15)
    assert moved.sum() == pytest.approx(total_variation(p, q), rel=1e-13)
    assert moved.sum() < 0.6 * l1_distance(p, q)
    # and less will not do: each place that has too much must lose all of it
    assert left.sum() == pytest.approx(total_variation(p, q), rel=1e-13)


# Mutual information


@pytest.mark.item("PRB-23")
def test_mutual_information_of_the_catalogue():
    assert mutual_information(TABLE) == pytest.approx(0.192745, abs=5e-7)
    assert mutual_information(TABLE, base=2) == pytest.approx(0.278072, abs=5e-7)
    p = np.array([0.2, 0.3, 0.5])
    assert mutual_information(np.diag(p)) == pytest.approx(entropy(p), rel=1e-14)  # X = Y


@pytest.mark.item("PRB-23")
@SEEDS
def test_three_formulas_agree_within_the_bounds(seed):
    p = table(seed, 4, 5)
    x, y = p.sum(axis=1), p.sum(axis=0)
    value = mutual_information(p)
    assert value == pytest.approx(entropy(x) + entropy(y) - joint_entropy(p), abs=1e-13)
    assert value == pytest.approx(kl_divergence(p.ravel(), np.outer(x, y).ravel()), rel=1e-13)
    direct = sum(p[i, j] * np.log(p[i, j] / (x[i] * y[j])) for i, j in np.ndindex(*p.shape) if p[i, j] > 0)
    assert value == pytest.approx(direct, abs=1e-13)
    assert value == pytest.approx(entropy(x) - conditional_entropy(p, given=1), abs=1e-13)
    assert 0 <= value <= min(entropy(x), entropy(y)) + 1e-15
    assert value == pytest.approx(mutual_information(p, 1, 0), rel=1e-14)


@pytest.mark.item("PRB-23")
@SEEDS
def test_chain_rule_of_mutual_information(seed):
    p = table(seed, 2, 3, 4)
    whole = mutual_information(p, 0, [1, 2])
    assert whole == pytest.approx(mutual_information(p, 0, 1) + mutual_information(p, 0, 2, given=1), abs=1e-13)
    assert mutual_information(p) == pytest.approx(mutual_information(p.sum(axis=2)), rel=1e-14)  # the third is summed out
    entropies = joint_entropy(p.sum(axis=2)) + joint_entropy(p.sum(axis=0)) - joint_entropy(p) - entropy(p.sum(axis=(0, 2)))
    assert mutual_information(p, 0, 2, given=1) == pytest.approx(entropies, abs=1e-13)


@pytest.mark.item("PRB-23")
def test_weak_dependence_keeps_its_digits():
    c = 1e-7  # I = ½ [(1 + 4c) log(1 + 4c) + (1 − 4c) log(1 − 4c)] = 8c² + O(c⁴)
    p = np.array([[0.25 + c, 0.25 - c], [0.25 - c, 0.25 + c]])
    assert mutual_information(p) == pytest.approx(8 * (p[0, 0] - 0.25) ** 2, rel=1e-8)
    assert mutual_information(np.outer(P, Q)) < 1e-30


# Densities


@pytest.mark.item("PRB-21")
@pytest.mark.parametrize(
    "law",
    [Normal(1.0, 0.1), Normal(-2.0, 3.0), LogisticDistribution(0.5, 2.0), Exponential(4.0)],
    ids=lambda d: type(d).__name__,
)
def test_differential_entropy_by_quadrature(law):
    low, high = law.mean - 40 * np.sqrt(law.var), law.mean + 40 * np.sqrt(law.var)
    low = 0.0 if isinstance(law, Exponential) else low
    h = quad(lambda x: -law.pdf(x) * law.logpdf(x) if law.pdf(x) > 0 else 0.0, low, high, points=[law.mean], limit=500)[0]
    assert differential_entropy(law) == pytest.approx(h, abs=1e-8)
    assert differential_entropy(law, base=2) == pytest.approx(h / np.log(2), abs=1e-8)


@pytest.mark.item("PRB-21")
def test_gaussian_entropy_is_closed_form_scales_and_may_be_negative():
    cov = np.array([[2.0, 0.7], [0.7, 0.5]])
    assert differential_entropy(cov) == pytest.approx(np.log((2 * np.pi * np.e) ** 2 * np.linalg.det(cov)) / 2, rel=1e-14)
    law = MultivariateNormal([1.0, 2.0], cov)
    assert differential_entropy(law) == pytest.approx(differential_entropy(cov), rel=1e-14)
    x, y = np.linspace(-14, 16, 301), np.linspace(-6, 10, 321)  # the rule of rectangles is spectrally exact for a Gaussian
    cells = np.stack(np.meshgrid(x, y), axis=-1)
    h = (-law.pdf(cells) * law.logpdf(cells)).sum() * (x[1] - x[0]) * (y[1] - y[0])
    assert differential_entropy(cov) == pytest.approx(h, rel=1e-11)
    for a in (0.01, -3.0):
        assert differential_entropy(a**2) == pytest.approx(differential_entropy(1.0) + np.log(abs(a)), rel=1e-14)
        A = a * np.array([[1.0, 2.0], [0.0, 1.0]])
        moved = differential_entropy(A @ cov @ A.T)
        assert moved == pytest.approx(differential_entropy(cov) + 2 * np.log(abs(a)), rel=1e-12)
    for law in (Exponential(2.0), LogisticDistribution(0.0, 1.0)):
        wide = {Exponential: Exponential(2.0 / 5), LogisticDistribution: LogisticDistribution(0.0, 5.0)}[type(law)]
        assert differential_entropy(wide) == pytest.approx(differential_entropy(law) + np.log(5), rel=1e-13)


@pytest.mark.item("PRB-21")
def test_integral_and_sum_are_not_one_entropy():
    assert differential_entropy(Normal(0, 0.01)) < 0  # no entropy of a finite distribution is
    # cut the line into cells of width h: their entropy is that of the density plus log 1/h, and has no limit
    law, values = Normal(0, 1), []
    for h in (0.1, 0.01):
        edges = np.arange(-10, 10 + h / 2, h)
        values.append(entropy(np.diff(law.cdf(edges))))
        assert values[-1] == pytest.approx(differential_entropy(law) - np.log(h), abs=1e-3)
    assert values[1] - values[0] == pytest.approx(np.log(10), abs=1e-3)
    with pytest.raises(ValueError, match="no density"):
        differential_entropy(Bernoulli(0.5))


@pytest.mark.item("PRB-24", "PRB-25")
def test_divergence_of_gaussians_by_quadrature():
    p, q = Normal(0.3, 1.2), Normal(-0.5, 0.8)
    d = quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -15, 15, epsabs=1e-12)[0]
    assert kl_divergence(p, q) == pytest.approx(d, abs=1e-10)
    cross = quad(lambda x: -p.pdf(x) * q.logpdf(x), -15, 15, epsabs=1e-12)[0]
    assert cross_entropy(p, q) == pytest.approx(cross, abs=1e-10)
    assert symmetric_kl(p, q) == pytest.approx((kl_divergence(p, q) + kl_divergence(q, p)) / 2, rel=1e-15)
    assert kl_divergence(p, q, base=2) == pytest.approx(d / np.log(2), abs=1e-10)
    same = MultivariateNormal([0.3], [[1.44]])
    assert kl_divergence(same, q) == pytest.approx(d, abs=1e-10)


@pytest.mark.item("PRB-24")
@SEEDS
def test_divergence_of_gaussian_vectors_is_that_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, 4, 6))
    S, T, m, n = A @ A.T, B @ B.T, rng.normal(size=4), rng.normal(size=4)
    inverse = np.linalg.inv(T)
    formula = (np.trace(inverse @ S) - 4 + (m - n) @ inverse @ (m - n) + np.log(np.linalg.det(T) / np.linalg.det(S))) / 2
    assert kl_divergence(MultivariateNormal(m, S), MultivariateNormal(n, T)) == pytest.approx(formula, rel=1e-10)
    assert gaussian_kl(m, S, m, S) == 0
    # neighbors: D is quadratic, ¼ tr((S⁻¹E)²), and the determinants would not show it
    E = 1e-9 * (A[:, :4] + A[:, :4].T)
    near = np.trace(np.linalg.solve(S, E) @ np.linalg.solve(S, E)) / 4
    assert gaussian_kl(m, S + E, m, S) == pytest.approx(near, rel=1e-4)  # S + E is rounded at 1e-16


@pytest.mark.item("PRB-24")
def test_divergence_of_very_different_scales():
    # D = log(s'/s) + s²/2s'² − ½
    assert gaussian_kl(0.0, 1e-40, 0.0, 1.0) == pytest.approx(20 * np.log(10) - 0.5, rel=1e-14)
    assert gaussian_kl(0.0, 1e10, 0.0, 1.0) == pytest.approx(5e9 - 5 * np.log(10) - 0.5, rel=1e-14)
    assert gaussian_kl([0, 0], np.diag([1e-40, 1.0]), [0, 0], np.eye(2)) == pytest.approx(20 * np.log(10) - 0.5, rel=1e-14)


@pytest.mark.item("PRB-23")
@SEEDS
def test_mutual_information_of_gaussians(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, 7))
    S = A @ A.T
    law = MultivariateNormal(np.zeros(5), S)
    x, y, z = [0, 3], [1, 4], [2]
    h = lambda idx: differential_entropy(S[np.ix_(idx, idx)])  # noqa: E731
    assert mutual_information(law, x, y) == pytest.approx(h(x) + h(y) - h(x + y), abs=1e-12)
    assert mutual_information(law, x, y, base=2) == pytest.approx((h(x) + h(y) - h(x + y)) / np.log(2), abs=1e-12)
    conditional = h(x + z) + h(y + z) - h(z) - h(x + y + z)
    assert mutual_information(law, x, y, given=z) == pytest.approx(conditional, abs=1e-12)
    whole = mutual_information(law, x, y + z)
    assert whole == pytest.approx(mutual_information(law, x, y) + mutual_information(law, x, z, given=y), abs=1e-12)
    apart = np.where(np.isin(np.arange(5)[:, None], x) == np.isin(np.arange(5), x), S, 0.0)
    divergence = kl_divergence(law, MultivariateNormal(np.zeros(5), apart))
    assert mutual_information(law, x, [1, 2, 4]) == pytest.approx(divergence, rel=1e-11)


@pytest.mark.item("PRB-23")
def test_mutual_information_of_two_gaussian_numbers():
    for rho in (0.0, 1e-9, 0.6, -0.999):
        S = [[4.0, 2 * rho], [2 * rho, 1.0]]
        assert gaussian_mutual_information(S) == pytest.approx(-np.log1p(-(rho**2)) / 2, rel=1e-12)
    assert gaussian_mutual_information(np.eye(100), 0, range(50, 100)) == 0


def test_gaussian_entropy_in_many_dimensions_does_not_overflow():
    assert gaussian_entropy(1e-8 * np.eye(300)) == pytest.approx(
        300 * (np.log(2 * np.pi * np.e) / 2 - 4 * np.log(10)), rel=1e-13
    )


# Numerics and refusals


def test_log_excess_to_full_precision():
    t = np.concatenate([-np.logspace(-15, -0.001, 60), np.logspace(-15, 5, 60), [0.0, 0.0999999, 0.1, -0.0999999, -0.1]])
    with localcontext() as context:
        context.prec = 60
        exact = [float(Decimal(float(v)) - (1 + Decimal(float(v))).ln()) for v in t]
    np.testing.assert_allclose(log_excess(t), exact, rtol=1e-14)
    assert log_excess(-1.0) == np.inf


def test_wrong_input_is_refused():
    for call, message in [
        (lambda: entropy([0.5, 0.6]), "sum to 1"),
        (lambda: entropy(TABLE), "along axis -1"),
        (lambda: entropy([0.5, 0.5], base=1), "base"),
        (lambda: entropy([0.5, 0.5], base="2"), "base of the logarithm must be a number greater than 1; got '2'"),
        (lambda: kl_divergence(P, [0.5, 0.5]), "same values"),
        (lambda: kl_divergence(Normal(0, 1), P), "both probabilities"),
        (lambda: kl_divergence(Normal(0, 1), Exponential(1.0)), "not for Exponential"),
        (lambda: mutual_information(TABLE, 0, 0), "once only"),
        (lambda: mutual_information(TABLE, "x", "y"), "no variable 'x'"),
        (lambda: conditional_entropy(TABLE, given=2), "2 variables"),
        (lambda: differential_entropy([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: differential_entropy([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: gaussian_kl([0, 0], np.eye(2), 0, 1.0), "dimension"),
        (lambda: gaussian_mutual_information(np.eye(3), [0, 1], 1), "once only"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
